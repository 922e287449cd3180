"""What is asked of a program in a file; it knows none of the rules that are marked there."""

from __future__ import annotations

import numpy as np

import graphgrad as gg

X = np.array([0.4, -0.7, 1.1])
DIRECTION = np.array([0.6, -1.0, 0.8])


def loaded(path, **options):
    """(x, loss, what gradients are asked for) of the program in a file."""
    entry = gg.load(path, **options).functions["loss"]
    loss, *wrt = entry.outputs.values()
    return entry.inputs[0], loss, wrt


def answers(x, loss, wrt, backend=None):
    """Derivatives of the program, each as arrays or as the error that it is."""
    asked = {
        "orders": lambda: derivatives(loss, wrt),
        "jvp": lambda: gg.jvp([loss], [x], [gg.constant(DIRECTION)]),
        "hvp": lambda: gg.hvp(loss, [x], [gg.constant(DIRECTION)]),
    }
    found = {}
    for name, ask in asked.items():
        with x.graph:
            try:
                tensors = ask()
                if backend is None:
                    found[name] = gg.evaluate(tensors, {x: X})
                else:
                    found[name] = gg.compile(x, tensors, backend=backend)(X)
            except gg.GraphGradError as error:
                found[name] = type(error).__name__
    return found


def derivatives(loss, wrt, count=3):
    """Of orders 1 to 3, each of the weighted sum of those before."""
    found, y = [loss], loss
    for _ in range(count):
        dxs = gg.gradients([y], wrt, unconnected="zero")
        found += dxs
        y = sum((gg.sum((0.7 + i) * dx) for i, dx in enumerate(dxs)), start=gg.constant(0.0))
    return found


def same(here, there):
    """Whether answers are equal, bit for bit."""
    if isinstance(here, str) or isinstance(there, str):
        return here == there
    return all(
        a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
        for a, b in zip(here, there, strict=True)
    )
