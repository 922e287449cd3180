"""Training that goes on in another process: the graph in a file, with its rule, and as NumPy code.

The rule of `sign` travels with the graph: whoever loads the file needs none of the code below. The
exported file needs nothing but NumPy.
"""

import runpy
import tempfile
from pathlib import Path

import numpy as np

import graphgrad as gg

inputs = np.random.default_rng(0).normal(size=(50, 4))
targets = np.where(inputs @ [1.0, -2.0, 0.5, 3.0] > 0, 1.0, -1.0)


@gg.register_gradient("saved/straight_through")
def straight_through(site, dy):
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1.0, dy, 0.0)


def built():
    """A compiled training step of a binary unit."""
    with gg.Graph():
        x, y = gg.placeholder((None, 4), name="x"), gg.placeholder((None,), name="y")
        w = gg.variable(np.full(4, 0.1), name="w")
        h = x @ w
        with gg.override_gradient("saved/straight_through"):
            found = gg.sign(h)
        loss = gg.mean((found - y) ** 2)
        updates = gg.optimizers.Adam(0.05).updates([w], [gg.gradients(loss, w)])
        return gg.compile([x, y], loss, updates=updates), w


folder = Path(tempfile.mkdtemp())
step, w = built()
for _ in range(10):
    step(inputs, targets)
gg.save(folder / "model.gg", w.graph, functions={"step": step})
gg.export_numpy(step, folder / "step.py")
uninterrupted = [float(step(inputs, targets)) for _ in range(10)]

gg.unregister_gradient("saved/straight_through")
loaded = gg.load(folder / "model.gg")
resumed = [float(loaded.functions["step"](inputs, targets)) for _ in range(10)]
print("loaded:  ", loaded.graph.variables.names, np.round(resumed[-3:], 2))
assert resumed == uninterrupted

written = runpy.run_path(str(folder / "step.py"))
state, exported = written["STATE"], []
for _ in range(10):
    loss, state = written["step"](inputs, targets, state)
    exported.append(float(loss))
print("exported:", np.round(exported[-3:], 2))
assert np.allclose(exported, uninterrupted, rtol=1e-12)
assert uninterrupted[-1] < uninterrupted[0]
