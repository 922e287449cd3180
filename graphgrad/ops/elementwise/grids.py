"""Numbers put on a grid of whole multiples of a step, element by element."""

from __future__ import annotations

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

__all__ = ["FakeQuantise"]


class FakeQuantise(Kinds, Elementwise):
    """y = (clip(rint(x / step) + zero, low, high) - zero) * step.

    Gradient: dx = 0, a step; dstep = dy * y / step; dzero = -dy * step where the clip acts, else 0.

    It rounds as QuantizeLinear of ONNX does: the quotient half to even, then the whole number zero
    is added. Inputs: x, step and zero, of one floating dtype, which broadcast.

    low, high  the least and the greatest whole number of the grid
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
