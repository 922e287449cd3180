"""Gathers, by arrays of indices: what the ops say, and whether the indices are in range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....ir.node import Node
from ....ir.strided import Strided, contiguous
from ....ir.types import DType
from ....lower.alias import is_view
from ....ops.base import Constant, Full
from ....ops.reduce.sorting import GatherElements
from ....ops.shape.indexing import AT, AddAt, Gather, GetItem
from ....ops.shape.slicing import FULL, Key
from ..emit.text import Text

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


def check(ranges: Sequence[Range], arrays: Sequence[Any]) -> None:
    """IndexError for indices that are out of range. arrays: inputs of a kernel, in any order."""
    for place, (shape, strides, offset), axis, length in ranges:
        flat = np.ascontiguousarray(arrays[place]).reshape(-1)[offset:]
        index = as_strided(flat, shape, [s * flat.itemsize for s in strides], writeable=False)
        check_index(index, axis, length)


def check_index(index: Any, axis: int, length: int) -> None:
    """IndexError, with NumPy's words, for an array of indices with one that is out of range."""
    least, most = index.min(), index.max()
    if least < -length or most >= length:
        wrong = most if most >= length else least
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {length}")


def write_check(
    t: Text, data: str, dtype: DType, range_: Range, unless: Callable[[str], None]
) -> None:
    """Loops over the indices in memory; unless(condition) goes elsewhere where it does not hold."""
    shape, strides, offset = range_.view.squeezed
    size, signed, length = dtype.itemsize, dtype.kind == "i", range_.length

    def along(axis: int, where: str) -> None:
        if axis < len(shape):
            step = strides[axis] * size
            t.loop(0, shape[axis], 1, lambda i: along(axis + 1, t.at(where, t.mul(i, step))))
            return
        index = t.load(f"i{8 * size}", where)
        if size < 8:
            index = t(f"{'sext' if signed else 'zext'} i{8 * size} {index} to i64")
        if signed:
            index = t.add(index, length)
        unless(t(f"icmp ult i64 {index}, {2 * length if signed else length}"))

    along(0, t.at(data, offset * size))
