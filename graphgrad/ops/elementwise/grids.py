"""Element-wise rounding to multiples of a step."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Derivative,
    Elementwise,
    Gradients,
    Node,
    Samples,
    Tensor,
    apply,
    like,
    np,
    wants,
)
from ..families import Kinds
from .logic import WHERE, greater, less, logical_or
from .rounding import ROUND

__all__ = ["FLOAT8", "FakeFloat8", "FakeQuantise", "Float8"]


class Float8(NamedTuple):
    """A format of floating numbers of eight bits.

    digits   binary ones behind the point
    least    the exponent of the least number that is not subnormal
    largest  the greatest number
    """

    digits: int
    least: int
    largest: float


def facts_of(name: str) -> tuple[int, int, float]:
    """Digits behind the point, the least exponent and the largest number of a format."""
    return (3, -6, 448.0) if name == "e4m3fn" else (2, -14, 57344.0)


FLOAT8 = {name: Float8(*facts_of(name)) for name in ("e4m3fn", "e5m2")}


class FakeQuantise(Kinds, Elementwise):
    """y = (clip(rint(x / step) + zero, low, high) - zero) * step.

    Gradient: dx = 0, a step; dstep = dy * y / step; dzero = -dy * step where the clip acts, else 0.

    It rounds as QuantizeLinear of ONNX does: the quotient half to even, then the integer zero
    is added. Inputs: x, step and zero, of one floating dtype, which broadcast.

    low, high  the least and the greatest integer of the grid
    """

    low: int
    high: int
    kinds = "f"
    derivative = Derivative(jumps=(0,))

    def kernel(self, xp: Any, x: Any, step: Any, zero: Any) -> Any:
        held = xp.minimum(xp.maximum(xp.rint(x / step) + zero, self.low), self.high)
        return (held - zero) * step

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, step, zero = node.inputs
        dstep = dy * (node.outputs[0] / step) if wants(step) else NO_GRAD
        if not wants(zero):
            return ZERO, dstep, NO_GRAD
        at = apply(ROUND, x / step) + zero
        beyond = logical_or(less(at, self.low), greater(at, self.high))
        return ZERO, dstep, apply(WHERE, beyond, -dy * step, like(0, dy))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        at = rng.integers(-9, 9, size=(2, 3)) + rng.uniform(-0.4, 0.4, size=(2, 3))
        yield cls(-4, 3), [0.5 * at, np.array(0.5), np.array(0.25)]
        yield cls(0, 7), [at * [0.5, 1.0, 2.0], np.array([0.5, 1.0, 2.0]), np.array([[3.0], [0.0]])]
        yield cls(-8, 7), [np.asarray(v, "float32") for v in (at, 1, -1)]


class FakeFloat8(Kinds, Elementwise):
    """y = step * (x / step rounded to a floating number of eight bits, the greatest ones at most).

    Gradient: dx = 0, a step; dstep = dy * y / step.

    Inputs: x and step, of one floating dtype, which broadcast.

    format  "e4m3fn" or "e5m2"
    """

    format: str
    kinds = "f"
    derivative = Derivative(jumps=(0,))

    def kernel(self, xp: Any, x: Any, step: Any) -> Any:
        digits, least, largest = facts_of(self.format)
        v = xp.minimum(xp.maximum(x / step, -largest), largest)
        size = xp.abs(v)
        spacing = xp.ones_like(v) * 2.0 ** (least - digits)
        for exponent in range(least + 1, int(math.log2(largest)) + 1):
            at_least = size >= 2.0**exponent
            spacing = xp.where(at_least, 2.0 ** (exponent - digits) * xp.ones_like(v), spacing)
        return xp.rint(v / spacing) * spacing * step

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        _, step = node.inputs
        return ZERO, dy * (node.outputs[0] / step) if wants(step) else NO_GRAD

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        at = np.array([[0.01, -0.3, 1.03], [17.2, -250.0, 900.0]])
        yield cls("e4m3fn"), [at, np.array(1.5)]
        yield cls("e5m2"), [at, np.array([0.5, 1.0, 0.01])]
        yield cls("e4m3fn"), [np.asarray(v, "float32") for v in (at, 0.5)]
