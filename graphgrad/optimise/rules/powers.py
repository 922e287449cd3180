"""Powers and quotients by a number."""

from __future__ import annotations

import numpy as np

from ...base.kinds import is_floating, kind_of
from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import MULTIPLY, Divide
from ...ops.elementwise.powers import Power
from ..build import filled, instead, number_of
from ..facts import KNOWN, REAL, second_number
from ..rule import RewriteRule, rule


@rule(Power, over=KNOWN)
def power_zero(node: Node) -> Tensor | None:
    """x ** 0 -> 1, of NaN too"""
    x, _ = node.inputs
    value = second_number(node)
    right = kind_of(x.dtype) in REAL and value is not None and value == 0
    return filled(node, 1, x) if right else None


@rule(Divide, over=KNOWN)
def over_power_of_two(node: Node) -> Tensor | None:
    """x / 2^k -> x * 2^-k, which is the same number rounded once"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or not is_floating(x.dtype) or abs(np.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(over="ignore"):
        factor = 1 / value
    if not np.isfinite(factor):
        return None
    return instead(node, MULTIPLY, x, number_of(node, factor, x.dtype))


POWERS: tuple[RewriteRule, ...] = (
    power_zero,
    over_power_of_two,
)
