"""The same twice: undone, enough once, or two equal operands."""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ...ops.arithmetic import (
    SQUARE,
    Abs,
    Ceil,
    Conj,
    Floor,
    Maximum,
    Minimum,
    Multiply,
    Round,
    Sign,
    Subtract,
    Trunc,
)
from ...ops.logic import (
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
)
from ...ops.nn import Relu
from ...ops.padding import Flip
from ..build import filled, instead
from ..facts import REAL, WHOLE
from ..rule import Rule, rule

_ONCE = Abs, Sign, Relu
_TO_WHOLE = Floor, Ceil, Trunc, Round
_INVERSES = LogicalNot, BitwiseNot, Flip, Conj


@rule(*_INVERSES, of=_INVERSES)
def there_and_back(node: Node, inner: Node) -> Tensor | None:
    """not not x -> x; ~~x -> x; x flipped twice -> x; x conjugated twice -> x"""
    return inner.inputs[0] if inner.op is node.op else None


@rule(*_ONCE, *_TO_WHOLE, of=(*_ONCE, *_TO_WHOLE))
def once_is_enough(node: Node, inner: Node) -> Tensor | None:
    """||x|| -> |x|; sign, relu likewise; floor, ceil, trunc, round of one of these -> that one"""
    (x,) = node.inputs
    whole = type(node.op) in _TO_WHOLE and type(inner.op) in _TO_WHOLE
    return x if whole or (inner.op is node.op and x.dtype.kind in REAL) else None


@rule(Maximum, Minimum, LogicalAnd, LogicalOr, BitwiseAnd, BitwiseOr)
def with_itself(node: Node) -> Tensor | None:
    """max(x, x), min(x, x), x & x, x | x -> x"""
    x, y = node.inputs
    return x if x is y else None


@rule(Multiply)
def times_itself(node: Node) -> Tensor | None:
    """x * x -> x^2"""
    x, y = node.inputs
    return instead(node, SQUARE, x) if x is y and x.dtype.kind in REAL else None


@rule(Subtract, BitwiseXor, LogicalXor)
def integer_minus_itself(node: Node) -> Tensor | None:
    """x - x -> 0 and x ^ x -> 0, for integers and bools"""
    x, y = node.inputs
    return filled(node, 0, x) if x is y and x.dtype.kind in WHOLE else None


TWICE: tuple[Rule, ...] = (
    there_and_back,
    once_is_enough,
    with_itself,
    times_itself,
    integer_minus_itself,
)
