"""Programs of the survival matrix, and what their batches give."""

from __future__ import annotations

from contextlib import contextmanager

import graphgrad as gg

from ..survival.overrides import OVERRIDES
from ..survival.transforms import EXAMPLES, world

SAVED = [row for row in OVERRIDES if row.name != "BlackBox"]
"""BlackBox calls a Python function, which no file carries."""


def built(row):
    """A program with an override, in a graph of its own."""
    with gg.Graph():
        return world(row)


def saved(path, w):
    """Write the program, with what is asked about as functions of it."""
    wrt = {f"wrt{i}": t for i, t in enumerate(w.wrt)}
    gg.save(path, w.x.graph, functions={"loss": ([w.x], {"loss": w.loss, **wrt})})


def batched(x, loss, wrt):
    """The gradients of each example of a batch, of the graph brought into another."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")

        def gradient(row):
            there = gg.import_graph(x.graph, {x: row})
            return gg.gradients(there[loss], row, unconnected="zero")

        try:
            return gg.evaluate(gg.vmap(gradient)(xs), {xs: EXAMPLES})
        except gg.GraphGradError as error:
            return type(error).__name__


@contextmanager
def without_rules():
    """A process in which nobody registered the rules of the matrix."""
    for row in OVERRIDES:
        name = f"survival/{row.name}"
        if gg.is_registered(name):
            gg.unregister_gradient(name)
    try:
        yield
    finally:
        for row in OVERRIDES:
            row.register()
