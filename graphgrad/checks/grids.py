"""Grids of which runtimes make no operators of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.types import Array, size_of
from ..ops.base import Constant
from ..ops.elementwise.grids import FakeQuantise
from ..ops.sources import Variable
from .report import Finding

__all__ = ["unfused_grids"]

LAYERS = ("Conv2D", "Convolve", "MatMul")
MOVING = ("ExpandDims", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose")
FOUR_BITS, EIGHT_BITS = 15, 255
MOST = 50
"""Nodes of which the zero of a grid is computed at most."""


def unfused_grids(graph: Graph) -> Iterator[Finding]:
    """Grids behind which, or layers beside which, integers become floats."""
    nodes = [n for n in graph.nodes if n.origin is None]
    if not any(isinstance(n.op, FakeQuantise) for n in nodes):
        return
    grids: Grids = {}
    for node in nodes:
        grid = _made_grid(node, grids)
        if grid is not None:
            grids[node.outputs[0]] = grid
        if isinstance(node.op, FakeQuantise) and node.inputs[0].node.type == "Relu":
            yield from _behind_relu(node, node.op)
        if node.type in LAYERS:
            yield from _layer(node, grids)


def _behind_relu(node: Node, op: FakeQuantise) -> Iterator[Finding]:
    """A grid with numbers below zero, where none come."""
    zero = _value(node.inputs[2])
    if zero is not None and (zero > op.low).any():
        yield _finding(
            node,
            f"the grid of {node.name} has numbers below 0 after a Relu: they never occur, and no "
            "runtime removes the Relu, so no integer operator is used",
            "Let the grid begin at 0: fake_quantise with low=0.0, lsq with signed=False, "
            "lsq_plus with zero at its least number.",
        )


class _GridOf(NamedTuple):
    """The grid that a tensor is on, whatever moved it."""

    node: Node
    op: FakeQuantise

    @property
    def wide(self) -> bool:
        """Whether it has more than eight bits."""
        return self.op.high - self.op.low > EIGHT_BITS

    @property
    def narrow(self) -> bool:
        """Whether it has four bits or fewer."""
        return self.op.high - self.op.low <= FOUR_BITS


Grids = dict[Tensor, _GridOf]


def _made_grid(node: Node, grids: Grids) -> _GridOf | None:
    """The grid that the output of a node is on."""
    if isinstance(node.op, FakeQuantise):
        return _GridOf(node, node.op)
    found = [grids.get(t) for t in node.inputs]
    if node.type in MOVING or (node.type == "Concat" and all(found)):
        return found[0]
    return None


def _layer(node: Node, grids: Grids) -> Iterator[Finding]:
    """A layer that is computed with floats though something of it is on a grid."""
    data, weights = node.inputs[:2]
    of_data, of_weights = grids.get(data), grids.get(weights)
    why = ""
    if of_weights and not of_data and not of_weights.narrow:
        why = f"its weights are on a grid, and {data.name} is on none"
    elif of_data and not of_weights:
        why = f"{data.name} is on a grid, and its weights are on none"
    elif of_data and of_weights and (of_data.wide or of_weights.wide):
        why = "operators of integers take grids of up to 8 bits"
    elif of_data and of_weights and of_weights.narrow:
        why = "weights of 4 bits are small in a file, and become floats when they are read"
    elif of_data and size_of(of_data.node.inputs[1].shape) != 1:
        why = f"{data.name} has several steps, and operators of integers take one"
    if why:
        yield _finding(
            node,
            f"{node.name} is computed with floats: {why}",
            "To compute it with integers, put its inputs on grids of 8 bits, with one step for "
            "activations.",
        )


def _value(t: Tensor) -> Array | None:
    """A tensor by few constants and first values of variables; None where it needs others."""
    needed = [t.node]
    for node in needed:
        needed += [x.node for x in dict.fromkeys(node.inputs) if x.node not in needed]
        if len(needed) > MOST or not (node.inputs or isinstance(node.op, Constant | Variable)):
            return None
    values: dict[Tensor, Array] = {}
    for node in sorted(needed, key=lambda n: n.index):
        made = _run(node, values)
        if made is None:
            return None
        values[node.outputs[0]] = made
    return values[t]


def _run(node: Node, values: dict[Tensor, Array]) -> Array | None:
    op = node.op
    if isinstance(op, Constant | Variable):
        return op.value if isinstance(op, Constant) else op.initial
    if op.bodies or len(node.outputs) != 1:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(op.kernel(np, *[values[x] for x in node.inputs]))
    except ValueError:  # of a demand, which a run raises
        return None


def _finding(node: Node, what: str, fix: str) -> Finding:
    return Finding("unfused grid", what, node.where, fix)
