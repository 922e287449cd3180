"""Casts."""

from __future__ import annotations

from ...base.kinds import can_cast, is_inexact, kind_of, limits_of
from ...ir.node import Node, Tensor
from ...ir.types import DType
from ...ops.base import Cast
from ..build import instead
from ..rule import RewriteRule, rule


@rule(Cast)
def cast_to_own_dtype(node: Node) -> Tensor | None:
    """x as its own dtype -> x"""
    return node.inputs[0]


@rule(Cast, of=Cast)
def cast_of_cast(node: Node, inner: Node) -> Tensor | None:
    """x as a dtype that holds all its values and then as another -> as the other at once"""
    (start,) = inner.inputs
    middle, last = node.inputs[0].dtype, node.outputs[0].dtype
    if not _holds(start.dtype, middle):
        return None
    if start.dtype is last:
        return start
    if is_inexact(middle) and kind_of(last) in "iu" and not _holds(start.dtype, last):
        return None  # what no integer holds becomes this or that, by the dtype it comes from
    return instead(node, Cast(last), start)


def _holds(small: DType, big: DType) -> bool:
    """Whether big has every value of small."""
    if kind_of(small) in "iu" and is_inexact(big):
        return bool(8 * small.itemsize - (kind_of(small) == "i") <= limits_of(big).nmant + 1)
    return can_cast(small, big)


CASTS: tuple[RewriteRule, ...] = (
    cast_to_own_dtype,
    cast_of_cast,
)
