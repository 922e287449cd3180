"""A choice for a batch: one for all examples between bodies, or one for each between values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ShapeError
from ...ir.build import apply
from ...ir.context import CONTEXT
from ...ir.node import Node, Tensor
from ...ir.types import compatible
from ...ops.control import BodyGraph, BodyScope, Cond, choose
from ...ops.elementwise.accumulate import EnsureLike
from ...ops.elementwise.logic import Where
from ..control.bodies import body_of
from .batch import batched_outputs, repeated
from .batcher import Batcher
from .bodies import adopting, built, check_pure, door, give, known


def batched_choice(
    batcher: Batcher,
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
    check_pure(node, op, "choose differently in", "both branches are")
    columns = []
    for program, read, first in zip(op.programs, given, (True, False), strict=True):
        inner = known(batcher, program, read)
        if inner is None:
            inner = batcher.within(body_of(program), door(batcher, inputs[0], first))
        with batcher.standing_for(node):
            give(batcher, inner, read)
        columns.append(built(inner, program))
    with batcher.standing_for(node):
        outputs = tuple(
            _chosen(batcher, node, inputs[0], *pair) for pair in zip(*columns, strict=True)
        )
    batcher.examples.batched.update(outputs)
    return outputs


def _one_for_all(
    batcher: Batcher,
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
        inner = known(batcher, program, read)
        body: Any = BodyGraph(graph, f"{name} of {node.name}") if inner is None else inner.graph
        bodies.append(body)
        with BodyScope(body):
            inner = inner or batcher.within(body_of(program), adopting(body))
            give(batcher, inner, read)
            columns.append(built(inner, program))
    flags = [
        for_each or any(t in batcher.examples for t in pair) for pair in zip(*columns, strict=True)
    ]
    for body, column in zip(bodies, columns, strict=True):
        with BodyScope(body):
            column[:] = batcher.examples.each(column, flags)
    with batcher.standing_for(node):
        outputs = choose(pred, bodies, columns)
    batcher.examples.batched.update(t for t, flag in zip(outputs, flags, strict=True) if flag)
    return outputs


# --- values --------------------------------------------------------------------------------------


def _chosen(batcher: Batcher, node: Node, pred: Tensor, then: Tensor, other: Tensor) -> Tensor:
    flags = True, then in batcher.examples, other in batcher.examples
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
