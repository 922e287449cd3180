"""Joins: of few, of joins, of cuts that follow each other; and what takes joins apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...ir.node import Node, Tensor
from ...ops.shape.joining import Concat, Split, Stack, Unstack
from ...ops.shape.slicing import Slice
from ..build import instead, reshaped
from ..cuts import Cut, cut_of, follows, joined, read
from ..facts import ints
from ..rule import NodeOf, RewriteRule, rule


@rule(Concat)
def concat_of_one(node: NodeOf[Concat]) -> Tensor | None:
    """concat(x, an empty tensor) -> x"""
    kept = [x for x in node.inputs if x.shape[node.op.axis] != 0] or [node.inputs[0]]
    if len(kept) == len(node.inputs) > 1:
        return None
    return kept[0] if len(kept) == 1 else instead(node, node.op, *kept)


@rule(Concat, over=Concat)
def concat_of_concat(node: Node) -> Tensor | None:
    """concat(concat(x, y), z) -> concat(x, y, z)"""
    parts: list[Tensor] = []
    for x in node.inputs:
        parts += x.node.inputs if x.node.op is node.op else [x]
    return instead(node, node.op, *parts) if len(parts) > len(node.inputs) else None


@rule(Concat, over=(Slice, Split, Unstack))
def concat_of_cuts(node: NodeOf[Concat]) -> Tensor | None:
    """concat(x[a:b], x[b:c]) -> x[a:c]; concat(x[i], x[i + 1]) -> x[i : i + 2] reshaped"""
    axis = node.op.axis
    if not all(t.type.static for t in node.inputs):
        return None
    parts: list[Tensor] = []
    for run in _runs([cut_of(t) for t in node.inputs], axis, node.inputs):
        if len(run) == 1:
            parts.append(run[0])
            continue
        whole = joined([c for t in run if (c := cut_of(t)) is not None])
        shape = list(run[0].shape)
        shape[axis] = sum(ints(tuple([t.shape[axis] for t in run])))
        parts.append(reshaped(node, read(node, whole), tuple(shape)))
    if len(parts) == len(node.inputs):
        return None
    return parts[0] if len(parts) == 1 else instead(node, node.op, *parts)


def _runs(cuts: Sequence[Cut | None], axis: int, tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors in runs of cuts that follow each other along the axis."""
    runs: list[list[Tensor]] = []
    last: Cut | None = None
    for t, cut in zip(tensors, cuts, strict=True):
        if cut is not None and cut.axis != axis:
            cut = None
        if last is not None and cut is not None and follows(last, cut):
            runs[-1].append(t)
        else:
            runs.append([t])
        last = cut
    return runs


@rule(Stack, over=(Slice, Unstack))
def stack_of_cuts(node: NodeOf[Stack]) -> Tensor | None:
    """stack(x[i], x[i + 1]) -> x[i : i + 2]"""
    cuts = [cut_of(t) for t in node.inputs]
    axis = node.op.axis
    indexed = [c for c in cuts if c is not None and isinstance(c.at, int) and c.axis == axis]
    if len(indexed) < len(cuts) or not all(follows(a, b) for a, b in pairwise(indexed)):
        return None
    return read(node, joined(indexed))


@rule(Unstack, of=Stack)
def unstack_of_stack(node: NodeOf[Unstack], inner: NodeOf[Stack]) -> tuple[Tensor, ...] | None:
    """unstack(stack(x, y)) -> x, y"""
    return inner.inputs if inner.op.axis == node.op.axis else None


@rule(Split, of=Concat)
def split_of_concat(node: NodeOf[Split], inner: NodeOf[Concat]) -> tuple[Tensor, ...] | None:
    """split(concat(x, y)) at the seams -> x, y"""
    same = inner.op.axis == node.op.axis and len(inner.inputs) == len(node.outputs)
    return inner.inputs if same and all(t.type.static for t in inner.inputs) else None


JOINS: tuple[RewriteRule, ...] = (
    concat_of_one,
    concat_of_concat,
    concat_of_cuts,
    stack_of_cuts,
    unstack_of_stack,
    split_of_concat,
)
