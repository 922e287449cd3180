"""Picking by indices, and adding at them, for a batch."""

from __future__ import annotations

from typing import Any

from ..ir.build import apply
from ..ir.node import Tensor
from ..ops.indexing import AT, AddAt, Gather, GetItem, ScatterAdd
from ..ops.shaping import expand_dims, moveaxis
from ..ops.slicing import FULL, Key
from .batch import Flags, Inputs, aligned, every_batched, places

Axes = tuple[int, ...]


def gather(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """x at the indices along one axis."""
    if not flags[1]:
        return (apply(Gather(op.axis + 1), *inputs),)
    if not flags[0]:
        return (moveaxis(apply(op, *inputs), op.axis, 0),)
    return get_item(GetItem((*(FULL,) * op.axis, AT)), inputs, flags)


def scatter_add(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """x with updates added at the indices along one axis."""
    (x, indices, updates), (_, by_example, _) = inputs, flags
    if by_example:
        key = (*(FULL,) * op.axis, AT)
        return add_at(AddAt(key), (x, updates, indices), (flags[0], flags[2], by_example))
    x, updates = every_batched((x, updates), (flags[0], flags[2]))
    return (apply(ScatterAdd(op.axis + 1), x, indices, updates),)


def get_item(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """x at any mixture of slices and indices."""
    x, *indices = inputs
    key, found, here, there = _keyed(op.key, x, indices, flags[1:], flags[0])
    return (moveaxis(apply(GetItem(key), x, *found), here, there),)


def add_at(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """x with updates added at any mixture of slices and indices."""
    x, updates, *indices = inputs
    if not any(flags[:2]):
        like = inputs[flags.index(True)]
        x = every_batched((x, like), (False, True))[0]
        flags = (True, *flags[1:])
    x, updates = every_batched((x, updates), flags[:2])
    key, found, here, there = _keyed(op.key, x, indices, flags[2:], True)
    return (apply(AddAt(key), x, moveaxis(updates, there, here), *found),)


def _keyed(
    key: Key, x: Tensor, indices: list[Tensor], flags: Flags, of_batch: bool
) -> tuple[Key, Inputs, Axes, Axes]:
    """The key for a batch with its indices, and which axes of what it picks to move where.

    of_batch: whether x has the batch axis. NumPy puts the axes of the indices where they stand in
    the key if they stand together, else in front.
    """
    arrays = [i for i, item in enumerate(key) if item == AT or type(item) is int]
    together = AT not in key or arrays[-1] - arrays[0] == len(arrays) - 1
    at = arrays[0] if together and arrays else 0
    rank = max((t.ndim - flag for t, flag in zip(indices, flags, strict=True)), default=0)
    if not any(flags):
        return (FULL, *key), tuple(indices), () if together else (rank,), () if together else (0,)
    found = aligned(tuple(indices), flags)
    if not of_batch:
        return key, found, (at,), (0,)
    rows = expand_dims(places(x), tuple(range(1, 1 + rank)))
    axes = range(1, 1 + rank)
    return (AT, *key), (rows, *found), tuple(axes), tuple(i + at for i in axes)
