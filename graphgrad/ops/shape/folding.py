"""Axes made one, and one cut into several: how a batch axis becomes part of another."""

from __future__ import annotations

from operator import floordiv, mul

from ...ir.types import Dim, computed
from ..base import Any, Tensor, apply
from .reshaping import Reshape, moveaxis


def merged(x: Tensor, axis: int) -> Tensor:
    """x with an axis and the next one as one."""
    a, b = x.shape[axis : axis + 2]
    length = computed(mul, a, b)
    kept = _lengths(x)
    return apply(Reshape((*kept[:axis], _or_rest(length), *kept[axis + 2 :])), x)


def parted(x: Tensor, axis: int, *lengths: Dim) -> Tensor:
    """x with an axis cut into several, of which one may have an unknown length."""
    parts = [_or_rest(d) for d in lengths]
    kept = _lengths(x)
    return apply(Reshape((*kept[:axis], *parts, *kept[axis + 1 :])), x)


def _lengths(x: Tensor) -> list[Any]:
    return [d if isinstance(d, int) else ("axis", i) for i, d in enumerate(x.shape)]


def _or_rest(d: Dim) -> Any:
    """A length for Reshape, which finds by itself what is not known."""
    return -1 if d is None else d


def folded(x: Tensor, axis: int, groups: int = 1) -> Tensor:
    """x with its batch axis as part of an axis of the example, in each group of that."""
    if groups == 1:
        return merged(moveaxis(x, 0, axis), axis)
    length = x.shape[axis + 1]
    x = parted(x, axis + 1, groups, computed(floordiv, length, groups))
    return merged(merged(moveaxis(x, 0, axis + 1), axis + 1), axis)


def unfolded(y: Tensor, axis: int, count: Dim, length: Dim, groups: int = 1) -> Tensor:
    """What was folded, with its batch axis in front: `count` examples whose axis has a length."""
    if groups == 1:
        return moveaxis(parted(y, axis, count, length), axis, 0)
    y = parted(y, axis, groups, count, computed(floordiv, length, groups))
    return merged(moveaxis(y, axis + 1, 0), axis + 1)
