"""Gathers, by arrays of indices: what the ops say of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..ir.node import Node
from ..ir.strided import Strided, contiguous
from ..ops.base import Constant, Full
from ..ops.reduce.sorting import GatherElements
from ..ops.shape.indexing import AT, AddAt, Gather, GetItem
from ..ops.shape.slicing import FULL, Key
from .alias import is_view

GATHERS = frozenset([Gather, GatherElements, GetItem])
"""Ops that read their first input at places that the others hold."""


class Range(NamedTuple):
    """An array of indices: the input where it is, how it lies there, and what it gathers from.

    view    of the input's elements
    axis    of the array gathered from, and its length
    """

    place: int
    view: Strided
    axis: int
    length: int


Indexed = tuple[int, int, int]
"""An axis that an array of indices gathers from, its length and its stride."""


class Gathering(NamedTuple):
    """What an op gathers of a view.

    offset   where integers and slices begin
    indexed  for each array of indices what it gathers from
    kept     (length, stride) of each axis of the result that no index stands for
    """

    offset: int
    indexed: list[Indexed]
    kept: list[tuple[int, int]]


def gathering(op: Any, view: Strided) -> Gathering:
    """Which elements of a view an op gathers; indices apart."""
    gathered = Gathering(view.offset, [], [])
    axes = iter(zip(range(len(view.shape)), view.shape, view.strides, strict=True))
    for entry in _key(op):
        if entry is None:
            gathered.kept.append((1, 0))
            continue
        axis, length, stride = next(axes)
        if entry == AT:
            gathered.indexed.append((axis, length, stride))
        elif type(entry) is int:
            gathered = gathered._replace(offset=gathered.offset + entry % length * stride)
        else:
            taken = range(length)[slice(*entry)]
            gathered = gathered._replace(offset=gathered.offset + taken.start * stride)
            gathered.kept.append((len(taken), taken.step * stride))
    gathered.kept.extend((length, stride) for _, length, stride in axes)
    return gathered


def first_index(op: Any) -> int:
    """Before which of the kept axes those of the indices stand, by NumPy's rules."""
    arrays = [i for i, entry in enumerate(_key(op)) if entry == AT or type(entry) is int]
    return arrays[0] if arrays[-1] - arrays[0] == len(arrays) - 1 else 0


def has_indices(op: Any) -> bool:
    """Whether there are arrays of indices."""
    return AT in _key(op)


def _key(op: Any) -> Key:
    return op.key if type(op) in (GetItem, AddAt) else (*[FULL] * op.axis, AT)


def in_range(node: Node) -> bool:
    """Whether all indices that are known before, one number each, are in range."""
    x, *indices = node.inputs
    shape: Any = x.shape
    indexed = gathering(node.op, contiguous(shape)).indexed
    for t, (_, length, _) in zip(indices, indexed, strict=True):
        while is_view(t.node):
            t = t.node.inputs[0]
        op = t.node.op
        if isinstance(op, Full | Constant) and not np.all(
            (-length <= np.asarray(op.value)) & (np.asarray(op.value) < length)
        ):
            return False
    return True
