"""The bodies of control flow, as their gradients need them.

Gradients are built in the bodies' own graphs, so that the rules and regions inside are called at
home; nothing is copied. Where the gradient is built in another graph than the node stands in (a
trace of a rule, a branch), it is that of a copy of the bodies there.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import current
from ...ir.node import Region, Tensor
from ...ir.program import Program
from ...ops.base import ZeroTensor
from ...ops.control import BodyGraph
from ...regions.index import bodies_of
from ..additive import copied_steps, note_built_again, note_twin
from ..travel.carrier import Carrier
from ..travel.transplant import copy_into


def body_of(program: Program) -> BodyGraph:
    """The body that a program is of."""
    body = program.outputs[0].graph
    assert isinstance(body, BodyGraph)
    return body


class Here(Carrier):
    """Carries what a body captured into the graph in which this was made."""

    def __init__(self) -> None:
        self.graph = current().graph

    def tensor(self, t: Tensor) -> Tensor:
        """The tensor as that graph knows it."""
        return t if t.graph is self.graph else self.graph.adopt(t)

    def region(self, region: Region) -> Region:
        """The region itself."""
        return region


def here(program: Program) -> Program:
    """The program, in a body of the graph in which nodes are being built now."""
    body = body_of(program)
    if body.outer is current().graph:
        return program
    move = _copied(body).tensor
    return Program(map(move, program.inputs), map(move, program.outputs))


def _copied(body: BodyGraph) -> Any:
    """What knows the copy of a body in the current graph: the steps here, built once more."""
    here = Here()
    copy = copy_into(body, BodyGraph(current().graph, ""), here)
    for inner, outer in list(body.captures.items()):
        copy.graph.capture(copy.tensor(inner), here.tensor(outer))
    for old, new in zip(bodies_of(body), bodies_of(copy.graph), strict=True):
        for first, step in copied_steps(old, new):
            note_twin(step, first)
            note_built_again(step, first)
    return copy


def zero_in(body: BodyGraph, x: Tensor) -> Tensor:
    """A gradient of zero, as a node of the body; x is of the body, or around it."""
    zero = ZeroTensor(x if x.type.static or x.graph is body else body.adopt(x))
    zero.node  # noqa: B018
    return zero
