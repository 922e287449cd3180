"""Surrogate spikes in a recurrent net that somebody else wrote: a threshold in a scan of JAX.

A neuron spikes where its voltage is above 1, a step whose gradient is zero. `retrofit` opens the
function, the step in the body of the scan is marked, and `jax.grad` learns through every step.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

jax = import_module("jax") if find_spec("jax") else None


def spikes(params, currents):
    """Somebody's leaky neurons: how often each of them spikes, for currents (time, inputs)."""
    jnp = jax.numpy

    def step(voltage, current):
        voltage = 0.9 * voltage + current @ params
        spike = (voltage > 1.0).astype(voltage.dtype)
        return voltage - spike, spike

    _, fired = jax.lax.scan(step, jnp.zeros(params.shape[1]), currents)
    return fired.mean(0)


def smooth(voltage, threshold):
    """What is differentiated in the place of the step."""
    return gg.nn.sigmoid(4.0 * (voltage - threshold))


def surrogate(graph):
    step = gg.select.pattern(("Cast", ("Greater", "?voltage", "?threshold")))
    graph.mark(step, gg.rules.surrogate(lambda v, t=1.0: smooth(v, t)))


def trained(net):
    """The losses on the way to rates of 0.1, 0.3 and 0.5."""
    rng = np.random.default_rng(0)
    currents = rng.uniform(0.0, 0.2, size=(40, 5)).astype("float32")
    wanted = np.array([0.1, 0.3, 0.5], "float32")

    def loss_of(params):
        return jax.numpy.sum((net(params, currents) - wanted) ** 2)

    step = jax.jit(jax.value_and_grad(loss_of))
    params, losses = jax.numpy.full((5, 3), 0.3, "float32"), []
    for _ in range(60):
        loss, slope = step(params)
        losses.append(float(loss))
        params = params - 0.2 * slope
    return losses


if jax is None:
    print("JAX is not installed: pip install 'graphgrad[jax]'")
else:
    stuck, losses = trained(spikes), trained(gg.interop.retrofit(spikes, surrogate))
    print(f"as it is: {stuck[0]:.3f} -> {stuck[-1]:.3f}")
    print(f"with surrogate spikes: {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert stuck[-1] == stuck[0], "the gradient of a step is zero"
    assert losses[0] == stuck[0]
    assert losses[-1] < 0.1 * losses[0]
