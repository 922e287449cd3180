"""JAX and graphs in one training: a layer with a rule in a loss of JAX, and the whole in a file.

The layer counts how many of its inputs are above learned thresholds: its own gradient is zero, the
rule's is that of a soft step. JAX differentiates the loss around it, the graph the layer itself.
What was learned is a file then, which a process with JAX alone can run and differentiate.
"""

import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import graphgrad as gg

jax = import_module("jax") if find_spec("jax") and find_spec("flatbuffers") else None


def counts():
    """How many of x are above the thresholds t, compiled; softly in the gradient."""
    with gg.Graph():
        x = gg.placeholder(("N", 5), "float32", name="x")
        t = gg.placeholder((5, 3), "float32", name="t")
        above = x[:, :, None] - t

        def soft(site, dy):
            (z,) = site.inputs
            slope = gg.nn.sigmoid(4.0 * z)
            return dy * 4.0 * slope * (1.0 - slope)

        with gg.override_gradient(soft):
            steps = gg.cast(above > 0.0, "float32")
        return gg.compile([x, t], gg.sum(steps, axis=1))


def train(layer, x, wanted):
    """Weights and thresholds, by jax.grad through both."""

    def loss_of(weights):
        made = layer(x, weights["t"]) @ weights["w"]
        return jax.numpy.mean((made - wanted) ** 2)

    step = jax.jit(jax.value_and_grad(loss_of))
    weights = {"w": 0.1 * np.ones(3, "float32"), "t": np.linspace(-1.0, 1.0, 15).reshape(5, 3)}
    weights = jax.tree.map(lambda a: jax.numpy.asarray(a, "float32"), weights)
    losses, slopes = [], []
    for _ in range(60):
        loss, slope = step(weights)
        weights = jax.tree.map(lambda w, d: w - 0.05 * d, weights, slope)
        losses.append(float(loss))
        slopes.append(float(jax.numpy.abs(slope["t"]).max()))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < 0.5 * losses[0]
    assert min(slopes) > 0.0, "thresholds learn by the rule alone"
    return weights


def from_a_file(f, x, t):
    """The layer as others run it: the same counts, and the same gradient."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.zip"
        f.export_stablehlo(path, gradients=1)
        call = gg.interop.load_stablehlo(path).call
        size = path.stat().st_size
    total = jax.grad(lambda t: jax.numpy.sum(call({"x": x, "t": t})[0]))(t)
    own = jax.grad(lambda t: jax.numpy.sum(gg.interop.to_jax(f)(x, t)))(t)
    np.testing.assert_allclose(total, own, rtol=1e-6)
    assert np.abs(total).min() > 0.0
    print(f"a file of {size} bytes has the layer with its rule")


if jax is None:
    print("JAX is not installed: pip install 'graphgrad[jax]'")
else:
    x = np.random.default_rng(0).normal(size=(64, 5)).astype("float32")
    f = counts()
    weights = train(gg.interop.to_jax(f), x, (x > 0.3).sum(1).astype("float32"))
    from_a_file(f, x, weights["t"])
