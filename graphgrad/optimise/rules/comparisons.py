"""Comparisons, and choices by them."""

from __future__ import annotations

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ir.op import OP_TYPES, Op
from ...ops.elementwise.logic import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_NOT,
    NOT_EQUAL,
    WHERE,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    LogicalNot,
    NotEqual,
    Where,
)
from ..build import filled, instead
from ..facts import KNOWN, WHOLE, adds_no_length, uniform_value
from ..rule import RewriteRule, rule


def _compares(op: type[Op]) -> bool:
    return op.traits.negated_type is not None


@rule(LogicalNot, of=_compares)
def not_of_comparison(node: Node, inner: Node) -> Tensor | None:
    """not (x == y) -> x != y; not (x < y) -> x >= y for integers; and so on"""
    if kind_of(inner.inputs[0].dtype) not in WHOLE and inner.op not in (EQUAL, NOT_EQUAL):
        return None  # a NaN is neither less nor greater
    return instead(node, OP_TYPES[inner.op.traits.negated_type or ""](), *inner.inputs)


@rule(Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual)
def compared_with_itself(node: Node) -> Tensor | None:
    """x < x, x > x -> False; x == x, x <= x -> True and x != x -> False, for integers"""
    x, y = node.inputs
    if x is not y:
        return None
    if node.op in (LESS, GREATER):
        return filled(node, False, x)
    holds = node.op in (EQUAL, LESS_EQUAL, GREATER_EQUAL)
    return filled(node, holds, x) if kind_of(x.dtype) in WHOLE else None


@rule(Where)
def where_of_the_same(node: Node) -> Tensor | None:
    """where(c, x, x) -> x"""
    c, x, y = node.inputs
    return x if x is y and adds_no_length(c.shape, x.shape) else None


@rule(Where, over=KNOWN)
def where_of_constant(node: Node) -> Tensor | None:
    """where(True, x, y) -> x; where(False, x, y) -> y"""
    c, x, y = node.inputs
    value = uniform_value(c)
    if value is None:
        return None
    taken, other = (x, y) if value else (y, x)
    fits = adds_no_length(c.shape, taken.shape) and adds_no_length(other.shape, taken.shape)
    return taken if fits else None


@rule(Where, over=LogicalNot)
def where_of_not(node: Node) -> Tensor | None:
    """where(not c, x, y) -> where(c, y, x)"""
    c, x, y = node.inputs
    return instead(node, WHERE, *c.node.inputs, y, x) if c.node.op is LOGICAL_NOT else None


COMPARISONS: tuple[RewriteRule, ...] = (
    not_of_comparison,
    compared_with_itself,
    where_of_the_same,
    where_of_constant,
    where_of_not,
)
