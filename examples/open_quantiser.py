"""A rule on a function that somebody else wrote: straight-through in a quantiser of JAX.

Its gradient is zero, for that of rounding is, so nothing learns. `retrofit` opens it, the rounding
is marked, and what comes back is a function of JAX through which `jax.grad` learns.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

jax = import_module("jax") if find_spec("jax") else None


def quantised(w, bits=3):
    """Somebody's quantiser: weights on a grid between their extremes."""
    jnp = jax.numpy
    low, high = jax.lax.stop_gradient((jnp.min(w), jnp.max(w)))
    step = (high - low) / (2**bits - 1)
    return jnp.round((w - low) / step) * step + low


def straight_through(graph):
    graph.mark(gg.select.op("Round"), gg.rules.ste())


def trained(quantiser):
    """The losses of a regression with quantised weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 6)).astype("float32")
    y = x @ np.linspace(-1.0, 1.0, 6, dtype="float32")

    def loss_of(w):
        return jax.numpy.mean((x @ quantiser(w) - y) ** 2)

    step = jax.jit(jax.value_and_grad(loss_of))
    w, losses = jax.numpy.asarray(0.3 * rng.normal(size=6), "float32"), []
    for _ in range(100):
        loss, slope = step(w)
        losses.append(float(loss))
        w = w - 0.1 * slope
    return losses


if jax is None:
    print("JAX is not installed: pip install 'graphgrad[jax]'")
else:
    stuck = trained(quantised)
    losses = trained(gg.interop.retrofit(quantised, straight_through))
    print(f"as it is: {stuck[0]:.3f} -> {stuck[-1]:.3f}")
    print(f"straight-through: {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert stuck[-1] == stuck[0], "the gradient of rounding is zero"
    assert losses[0] == stuck[0]
    assert losses[-1] < 0.1 * losses[0]
