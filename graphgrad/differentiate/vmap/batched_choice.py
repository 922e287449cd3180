"""A choice for a batch: one for all examples between bodies, or one for each between values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...ir.build import apply
from ...ir.context import CONTEXT
from ...ir.errors import GraphError, ShapeError
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ir.program import Program
from ...ir.types import compatible
from ...ops.accumulate import EnsureLike
from ...ops.control import BodyGraph, BodyScope, Cond, choose
from ...ops.logic import Where
from ...ops.sources import stop_gradient
from ...regions.boundary import boundary_of
from ...regions.index import marked_regions
from .batch import aligned, batched_outputs, repeated


class Batching(Protocol):
    """What builds the graph or body around a choice for the batch, or a body of it: a Batcher.

    source   what it builds
    tensors  what stands for which tensor of it
    batched  the new tensors that have the batch axis first
    enter    how a body reads a tensor of the batch around
    inside   body of the source -> what built it, and what it was given
    graph    where the nodes go
    around   the region they go to
    """

    source: Graph
    tensors: dict[Tensor, Tensor]
    batched: set[Tensor]
    enter: Callable[[Tensor], Tensor] | None
    inside: dict[Graph, Any]
    graph: Graph
    around: Region | None

    def within(self, body: BodyGraph, enter: Callable[[Tensor], Tensor]) -> Batching:
        """What builds a body, in the current graph."""

    def run(self, nodes: Iterable[Node]) -> None:
        """Build nodes of the source."""

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor of the source."""

    def repeated(self, t: Tensor) -> Tensor:
        """t for every example."""

    def standing_for(self, node: Node) -> AbstractContextManager[None]:
        """What is built in this block stands for a node of the source."""


def batched_choice(
    batcher: Batching,
    node: Node,
    op: Cond,
    inputs: tuple[Tensor, ...],
    flags: tuple[bool, ...],
    for_each: bool,
) -> tuple[Tensor, ...]:
    """The outputs of a choice in a batch; for_each: all of them for every example.

    Where the examples may choose differently, both bodies are built for all of them, in place.
    A choice and what was derived from it share their bodies; so do the two in the batch, where a
    site inside stays one, with one rule to call.
    GraphError where that might be noticed, ShapeError where the bodies return different shapes.
    """
    given = [
        dict(zip(program.inputs, [inputs[1 + i] for i in reads], strict=True))
        for program, reads in zip(op.programs, op.reads, strict=True)
    ]
    if not flags[0]:
        return _one_for_all(batcher, node, op, inputs[0], given, for_each)
    _check_pure(node, op)
    columns = []
    for program, read, first in zip(op.programs, given, (True, False), strict=True):
        inner = _known(batcher, program, read)
        if inner is None:
            inner = batcher.within(_body(program), _door(batcher, inputs[0], first))
        with batcher.standing_for(node):
            _give(batcher, inner, read)
        columns.append(_built(inner, program))
    with batcher.standing_for(node):
        outputs = tuple(
            _chosen(batcher, node, inputs[0], *pair) for pair in zip(*columns, strict=True)
        )
    batcher.batched.update(outputs)
    return outputs


def _one_for_all(
    batcher: Batching,
    node: Node,
    op: Cond,
    pred: Tensor,
    given: Sequence[dict[Tensor, Tensor]],
    for_each: bool,
) -> tuple[Tensor, ...]:
    """A choice between bodies that are built for the batch."""
    graph = CONTEXT.get().graph
    bodies, columns = [], []
    for name, program, read in zip(("then", "else"), op.programs, given, strict=True):
        known = _known(batcher, program, read)
        body: Any = BodyGraph(graph, f"{name} of {node.name}") if known is None else known.graph
        bodies.append(body)
        with BodyScope(body):
            inner = known or batcher.within(_body(program), _adopting(body))
            _give(batcher, inner, read)
            columns.append(_built(inner, program))
    flags = [
        for_each or not batcher.batched.isdisjoint(pair) for pair in zip(*columns, strict=True)
    ]
    for body, column in zip(bodies, columns, strict=True):
        with BodyScope(body):
            column[:] = [
                batcher.repeated(t) if flag else t for t, flag in zip(column, flags, strict=True)
            ]
    with batcher.standing_for(node):
        outputs = choose(pred, bodies, columns)
    batcher.batched.update(t for t, flag in zip(outputs, flags, strict=True) if flag)
    return outputs


# --- bodies --------------------------------------------------------------------------------------


def _body(program: Program) -> BodyGraph:
    body = program.outputs[0].graph
    assert isinstance(body, BodyGraph)
    return body


def _known(batcher: Batching, program: Program, given: dict[Tensor, Tensor]) -> Batching | None:
    """What built the body for a choice before this one; None where that does not serve.

    It has to have read the same, and what is built in place has to stand in the same region.
    """
    inner, before = batcher.inside.get(_body(program), (None, {}))
    if inner is None or any(before.get(t, here) is not here for t, here in given.items()):
        return None
    in_place = inner.graph is CONTEXT.get().graph
    return None if in_place and inner.around is not CONTEXT.get().region else inner


def _give(batcher: Batching, inner: Batching, given: dict[Tensor, Tensor]) -> None:
    """Let a body read what it is given, in the current graph, and remember it for `_known`."""
    assert inner.enter is not None
    for t, here in given.items():
        if t not in inner.tensors:
            inner.tensors[t] = inner.enter(here)
    last, before = batcher.inside.get(inner.source, (inner, {}))
    batcher.inside[inner.source] = inner, (before if last is inner else {}) | given


def _built(inner: Batching, program: Program) -> list[Tensor]:
    """The outputs of a body, built with all that stood in it then, which its rules may read."""
    body = _body(program)
    captured = set(body.captures.values())
    stood = body.nodes[: _end(program, body)]
    inner.run(n for n in stood if captured.isdisjoint(n.outputs))
    return [inner.tensor(t) for t in program.outputs]


def _end(program: Program, body: Graph) -> int:
    """Where in a body to stop: what comes later belongs to derivatives that were built later."""
    end = 1 + max(t.node.index for t in program.outputs)
    spans = [(b.first, b.last) for b in map(boundary_of, marked_regions(body))]
    while True:
        last = max((b.index for a, b in spans if a and b and a.index < end), default=-1)
        if last < end:
            return end
        end = last + 1


def _adopting(body: BodyGraph) -> Callable[[Tensor], Tensor]:
    """A tensor of the batch around is read through its placeholder."""
    return lambda t: t if t.graph is body else body.adopt(t)


def _door(batcher: Batching, pred: Tensor, first: bool) -> Callable[[Tensor], Tensor]:
    """A tensor of the batch around is read through a door: y = x, dx = dy where chosen, else 0.

    Where an example chooses the other body nothing may flow back through this one, and be it NaN:
    not to what differs between examples, nor to what is shared, which is read for every example.
    """

    def enter(t: Tensor) -> Tensor:
        if not t.type.differentiable:
            return t
        row = t if t in batcher.batched else repeated(t, pred)
        sides = (row, stop_gradient(row)) if first else (stop_gradient(row), row)
        door = apply(Where(), *aligned((pred, *sides), (True, True, True)))
        batcher.batched.add(door)
        return door

    return enter


# --- values --------------------------------------------------------------------------------------


def _chosen(batcher: Batching, node: Node, pred: Tensor, then: Tensor, other: Tensor) -> Tensor:
    flags = True, then in batcher.batched, other in batcher.batched
    shapes = then.shape[flags[1] :], other.shape[flags[2] :]
    if not compatible(*shapes):
        raise ShapeError(
            f"under vmap, where each example chooses, the branches of {node.name} ({node.where}) "
            f"have to return equal shapes, got {shapes[0]} and {shapes[1]}"
        )
    if shapes[0] != shapes[1] or None in shapes[0]:
        message = f"the branches of {node.name} ({node.where}) under vmap"
        then, other = (
            t if flag else repeated(t, pred)
            for t, flag in zip((then, other), flags[1:], strict=True)
        )
        other, flags = apply(EnsureLike(message), other, then), (True, True, True)
    return batched_outputs(Where(), (pred, then, other), flags)[0]


def _check_pure(node: Node, op: Cond) -> None:
    """GraphError where somebody would notice that a body is run for who does not choose it."""
    programs = list(op.bodies)
    for program in programs:
        for inner in program.nodes:
            programs += inner.op.bodies
            if not inner.op.pure:
                raise GraphError(
                    f"under vmap, the examples choose differently in {node.name} ({node.where}), "
                    f"so both branches are run for all of them; but {inner.name} ({inner.where}) "
                    f"is a {inner.type}, which may have effects. Build it outside of cond()."
                )
