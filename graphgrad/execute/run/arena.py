"""The memory of one run at a time: constants, the places of an arena, and arrays for the caller
and for the next values of variables.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

import numpy as np

from ...ir.types import Array, TensorType
from ...lower.alias import nbytes
from ...lower.memory import ALIGNMENT
from ...lower.plan import Plan

LARGE = 1 << 17  # bytes; from here on new memory costs more than it takes to find old one again


def fixed_arrays(plan: Plan) -> list[Any]:
    """New arrays for the slots below 0, in their order from the lowest on, in one new arena."""
    fixed: list[Any] = [None] * plan.fixed
    for slot, array in plan.constants:
        fixed[slot] = array
    block = np.empty(plan.arena + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    for slot, offset, type in plan.places:
        shape: Any = type.shape
        fixed[slot] = np.ndarray(shape, type.dtype, block, start + offset)
    for step in plan.views:
        made = step.kernel(*[fixed[slot] for slot in step.inputs])
        parts = made if len(step.outputs) > 1 else (made,)
        for slot, part in zip(step.outputs, parts, strict=True):
            fixed[slot] = part
    return fixed


def part_of(host: Array, type: TensorType) -> Array:
    """An array of a type in the memory of another, which is large enough."""
    shape: Any = type.shape
    return np.ndarray(shape, type.dtype, host)


def is_renewed(type: TensorType) -> bool:
    """Whether it pays to look for an old array of this type before a new one is made."""
    return _COUNTED and (nbytes(type) or 0) >= LARGE


def is_gathered(type: TensorType) -> bool:
    """Whether a next value of this type has its place in a block with others."""
    return _COUNTED and type.static and (nbytes(type) or 0) < LARGE


class Renewed:
    """Arrays of one type for the caller: an old one again when nobody holds it any more.

    The system hands out large memory page by page as it is written, which costs as much as many a
    computation. So the two latest arrays are remembered: what a variable was before its latest
    update, or a result that was thrown away, becomes the next one. Not for two threads at once.
    """

    def __init__(self, type: TensorType) -> None:
        self._shape: Any = type.shape
        self._dtype = type.dtype
        self._arrays: list[Array] = []

    def __call__(self) -> Array:
        """An array that nobody else holds, writable, with any content."""
        arrays = self._arrays
        for i in range(len(arrays)):
            if _holders(arrays, i) == _ALONE and self._is_as_made(arrays[i]):
                array = arrays[i]
                array.flags.writeable = True
                return array
        array = np.empty(self._shape, self._dtype)
        self._arrays = [*arrays[-1:], array]
        return array

    def _is_as_made(self, a: Array) -> bool:
        same = a.shape == self._shape and a.dtype is self._dtype and a.flags.c_contiguous
        return same and not getweakrefcount(a)


class NextValues:
    """Small arrays for the next values of variables: an old set again when nobody holds any of it.

    To make an array costs as much as to compute what is in it. A set is one block of memory, with
    two arrays at each place: one to write, and one that is read-only, which the state gets. Who
    looks into one of these holds it, or the block. Not for two threads at once.
    """

    def __init__(self, types: Sequence[TensorType]) -> None:
        self._types = types
        self._alone = _IN_TUPLE * len(types)
        self._older, self._newer = _Set(types), _Set(types)

    def __call__(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Arrays to write, with any content, and for each the read-only one."""
        chosen = self._older
        if (
            sum(map(getrefcount, chosen.shown)) != self._alone
            or getrefcount(chosen.block) != chosen.held
            or getweakrefcount(chosen.block)
        ):
            chosen = _Set(self._types)
        self._older, self._newer = self._newer, chosen
        return chosen.written, chosen.shown


class _Set:
    """Arrays of several types in one block. held: by how many, by these arrays for one."""

    def __init__(self, types: Sequence[TensorType]) -> None:
        sizes = [-(-(nbytes(t) or 0) // ALIGNMENT) * ALIGNMENT for t in types]
        self.block = np.empty(sum(sizes) + ALIGNMENT, np.uint8)
        offsets = [*accumulate(sizes, initial=-self.block.ctypes.data % ALIGNMENT)]
        self.written = self._arrays(types, offsets)
        self.shown = self._arrays(types, offsets)
        for array in self.shown:
            array.flags.writeable = False
        self.block.flags.writeable = False
        self.held = getrefcount(self.block)

    def _arrays(self, types: Sequence[TensorType], offsets: Sequence[int]) -> tuple[Array, ...]:
        places: Any = zip(types, offsets, strict=False)
        return tuple([np.ndarray(t.shape, t.dtype, self.block, at) for t, at in places])


def _holders(arrays: Sequence[Array], i: int) -> int:
    return getrefcount(arrays[i])


_ALONE = _holders([np.empty(0)], 0)
(_IN_TUPLE,) = map(getrefcount, (np.empty(0),))
_COUNTED = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
