"""A rule inside a loop that somebody else wrote: gradients clipped in a recurrent net of equinox.

The cell runs in a `lax.scan`. Opened, the scan is a loop of the graph, and the state that one step
hands to the next can be marked inside of its body: what flows back is clipped at every step, not
only once at the end.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

THERE = find_spec("jax") and find_spec("equinox")
jax = import_module("jax") if THERE else None
STEPS = 60


def network():
    """A recurrent net as its author has it: a tanh cell whose state grows on the way back."""
    eqx = import_module("equinox")

    class Recurrent(eqx.Module):
        inner: jax.Array
        outer: jax.Array

        def __call__(self, rows):
            def cell(state, row):
                state = jax.numpy.tanh(self.inner @ state + self.outer @ row)
                return state, None

            return jax.lax.scan(cell, jax.numpy.zeros(len(self.inner)), rows)[0]

    rng = np.random.default_rng(0)
    inner = 1.2 * np.linalg.qr(rng.normal(size=(8, 8)))[0]
    return Recurrent(*(jax.numpy.asarray(a, "float32") for a in (inner, rng.normal(size=(8, 3)))))


def clipped(graph):
    graph.mark(gg.select.op("Tanh"), gg.rules.clip_norm(1.0))


def largest(net, rows):
    """The largest gradient of the last state by the first row."""
    slope = jax.grad(lambda rows: jax.numpy.sum(net(rows)))(rows)
    return float(jax.numpy.abs(slope).max())


if jax is None:
    print("JAX and equinox are not installed: pip install equinox")
else:
    net = network()
    rows = np.full((STEPS, 3), 1e-6, "float32")
    marked = gg.interop.retrofit(net, clipped)
    np.testing.assert_allclose(marked(rows), net(rows), atol=1e-4)
    plain, kept = largest(net, rows), largest(marked, rows)
    print(f"the largest gradient: {plain:.3g}, clipped at each of {STEPS} steps: {kept:.3g}")
    assert plain > 1e3
    assert kept < 30.0
