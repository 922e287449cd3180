"""Convolution and pooling for a batch: the batch axis becomes part of an axis that is there.

Images fold it into their own batch axis; where the filters differ between examples, it becomes part
of the channels, and of the groups where the images differ too.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from ..ir.build import apply
from ..ir.node import Tensor
from ..ir.types import Dim
from .batch import Batched, Flags, Inputs, every_batched, folded, unfolded

IN, OUT = 2, 3
"""The axes of a filter (height, width, in / groups, out)."""


def counted(rule: Batched) -> Batched:
    """A rule for where the number of examples can be told from what is in an image or a filter."""

    @wraps(rule)
    def told(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
        rows = [t.shape for t, flag in zip(inputs, flags, strict=True) if flag]
        unknown = any(not isinstance(shape[0], int) for shape in rows)
        empty = any(0 in t.shape[flag:] for t, flag in zip(inputs, flags, strict=True))
        return None if unknown and empty else rule(op, inputs, flags)

    return told


@counted
def pool(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    """Pooling and its adjoints, on images alone."""
    images = every_batched(inputs, flags)
    count, length = images[0].shape[:2]
    if not _one_known(count, length):
        return None
    return (unfolded(apply(op, *(folded(t, 0) for t in images)), 0, count, length),)


@counted
def conv(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    """z of x and w."""
    (x, w), at, groups = inputs, op.channels, op.groups
    if not flags[1]:
        count, length = x.shape[:2]
        if not _one_known(count, length):
            return None
        return (unfolded(apply(op, folded(x, 0), w), 0, count, length),)
    out = w.shape[1 + OUT]
    if not flags[0]:
        z = apply(op, x, folded(w, OUT, groups))
        return (unfolded(z, at, w.shape[0], out, groups),)
    count = _count(x, w)
    if count is None:
        return None
    z = apply(_grouped(op, count), folded(x, at), folded(w, OUT))
    return (unfolded(z, at, count, out),)


@counted
def conv_input(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    """dx of w and dz, and maybe a tensor like x."""
    (w, dz, *like), at, groups = inputs, op.channels, op.groups
    if not flags[0]:
        if not flags[1]:
            return None
        count, length = dz.shape[:2]
        if not _one_known(count, length):
            return None
        like = [folded(t, 0) if flag else t for t, flag in zip(like, flags[2:], strict=True)]
        return (unfolded(apply(op, w, folded(dz, 0), *like), 0, count, length),)
    per_group = w.shape[1 + IN]
    if like or not isinstance(per_group, int):
        return None
    if not flags[1]:
        dx = apply(op, folded(w, IN), dz)
        return (unfolded(dx, at, w.shape[0], per_group * groups, groups),)
    count = _count(w, dz)
    if count is None:
        return None
    dx = apply(_grouped(op, count), folded(w, OUT), folded(dz, at))
    return (unfolded(dx, at, count, per_group * groups),)


@counted
def conv_filter(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    """dw of x and dz, and maybe a tensor like w."""
    (x, dz, *like), at, groups = inputs, op.channels, op.groups
    if like or not any(flags[:2]):
        return None
    if not flags[1]:
        c = x.shape[1 + at]
        if not isinstance(c, int):
            return None
        dw = apply(op, folded(x, at, groups), dz)
        return (unfolded(dw, IN, x.shape[0], c // groups),)
    out = dz.shape[1 + at]
    if not flags[0]:
        dw = apply(op, x, folded(dz, at, groups))
        return (unfolded(dw, OUT, dz.shape[0], out, groups),)
    count = _count(x, dz)
    if count is None:
        return None
    dw = apply(_grouped(op, count), folded(x, at), folded(dz, at))
    return (unfolded(dw, OUT, count, out),)


def _one_known(*lengths: Dim) -> bool:
    """Whether one of two lengths is known, so that an axis can be cut into these."""
    return any(isinstance(d, int) for d in lengths)


def _count(*tensors: Tensor) -> int | None:
    """The number of examples, which has to be known to be a number of groups."""
    return next((t.shape[0] for t in tensors if isinstance(t.shape[0], int) and t.shape[0]), None)


def _grouped(op: Any, count: int) -> Any:
    return type(op)(**{**op.attrs, "groups": op.groups * count})
