"""The same twice: undone, enough once, or two equal operands."""

from __future__ import annotations

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ops.elementwise.arithmetic import Multiply, Subtract
from ...ops.elementwise.bounds import Maximum, Minimum
from ...ops.elementwise.logic import (
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
)
from ...ops.elementwise.powers import SQUARE
from ..build import filled, instead
from ..facts import REAL, WHOLE
from ..rule import RewriteRule, rule


def _is_involution(op: type[Op]) -> bool:
    return op.traits.involution


def _is_idempotent(op: type[Op]) -> bool:
    return op.traits.idempotent


@rule(fits=_is_involution, of=_is_involution)
def there_and_back(node: Node, inner: Node) -> Tensor | None:
    """not not x -> x; ~~x -> x; x flipped twice -> x; x conjugated twice -> x"""
    return inner.inputs[0] if inner.op is node.op else None


@rule(fits=_is_idempotent, of=_is_idempotent)
def once_is_enough(node: Node, inner: Node) -> Tensor | None:
    """||x|| -> |x|; sign, relu likewise; floor, ceil, trunc, round of one of these -> that one"""
    (x,) = node.inputs
    whole = node.op.traits.rounds and inner.op.traits.rounds
    return x if whole or (inner.op is node.op and kind_of(x.dtype) in REAL) else None


@rule(Maximum, Minimum, LogicalAnd, LogicalOr, BitwiseAnd, BitwiseOr)
def with_itself(node: Node) -> Tensor | None:
    """max(x, x), min(x, x), x & x, x | x -> x"""
    x, y = node.inputs
    return x if x is y else None


@rule(Multiply)
def times_itself(node: Node) -> Tensor | None:
    """x * x -> x^2"""
    x, y = node.inputs
    return instead(node, SQUARE, x) if x is y and kind_of(x.dtype) in REAL else None


@rule(Subtract, BitwiseXor, LogicalXor)
def integer_minus_itself(node: Node) -> Tensor | None:
    """x - x -> 0 and x ^ x -> 0, for integers and bools"""
    x, y = node.inputs
    return filled(node, 0, x) if x is y and kind_of(x.dtype) in WHOLE else None


TWICE: tuple[RewriteRule, ...] = (
    there_and_back,
    once_is_enough,
    with_itself,
    times_itself,
    integer_minus_itself,
)
