"""Cuts: what is read of a tensor along one axis, and cuts that follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ir.node import Node, Tensor
from ..ops.shape.joining import Split, Unstack
from ..ops.shape.slicing import Slice
from .build import beside
from .facts import ints
from .keys import Place, along_one_axis, key_of


class Cut(NamedTuple):
    """A tensor that is read of another along one axis alone: one index, or a range."""

    source: Tensor
    axis: int
    at: int | range


def cut_of(t: Tensor) -> Cut | None:
    """The cut that a tensor is, if it is one."""
    node, op = t.node, t.node.op
    if type(op) not in (Slice, Split, Unstack) or not node.inputs[0].type.static:
        return None
    (x,) = node.inputs
    if type(op) is Slice:
        axis_range = along_one_axis(op.key, x.shape)
        return None if axis_range is None else Cut(x, *axis_range)
    if type(op) is Split:
        start, length = _begin(op, t), ints(t.shape)[op.axis]
        return Cut(x, op.axis, range(start, start + length))
    return Cut(x, op.axis, t.index) if type(op) is Unstack else None


def _begin(op: Split, part: Tensor) -> int:
    """Where a part of known length begins, told without a look at the parts before it."""
    if isinstance(op.at, int):
        return part.index * ints(part.shape)[op.axis]
    return int(op.at[part.index - 1]) if part.index else 0


def follows(first: Cut, second: Cut) -> bool:
    """Whether a cut begins where another of the same source ends."""
    return (
        second.source is first.source
        and second.axis == first.axis
        and type(second.at) is type(first.at)
        and _start(second) == _end(first)
    )


def joined(cuts: Sequence[Cut]) -> Cut:
    """Cuts that follow each other, as one."""
    first, last = cuts[0], cuts[-1]
    return Cut(first.source, first.axis, range(_start(first), _end(last)))


def _start(cut: Cut) -> int:
    return cut.at if isinstance(cut.at, int) else cut.at.start


def _end(cut: Cut) -> int:
    return cut.at + 1 if isinstance(cut.at, int) else cut.at.stop


def read(node: Node, cut: Cut) -> Tensor:
    """A range of the source, the axis kept, to stand beside a node."""
    whole = [range(n) for n in ints(cut.source.shape)]
    assert isinstance(cut.at, range)
    if whole[cut.axis] == cut.at:
        return cut.source
    entries: list[Place] = [*whole]
    entries[cut.axis] = cut.at
    return beside(node, Slice(key_of(entries, cut.source.shape)), cut.source)
