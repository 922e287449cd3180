"""Sums of many gradients, and shape checks at run time."""

from __future__ import annotations

from ...base.errors import ExecutionError, ShapeError
from ...base.kinds import is_floating
from ...ir.types import compatible, elements
from ..base import (
    ZERO,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    np,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..making import Making

TERMS = 256  # of one AddN

__all__ = ["AddN", "EnsureLike"]


class AddN(Op):
    """y = x0 + x1 + ... of equal types, added from left to right. Gradient: every dx = dy."""

    elementwise = True
    onnx = Onnx("Sum")
    linear = "joint"

    def infer(self, *types: TensorType) -> Types:
        first = types[0]
        for t in types:
            if t.dtype is not first.dtype or not compatible(t.shape, first.shape):
                raise ShapeError(f"AddN takes tensors of one type, got {first!r} and {t!r}")
        return (first,)

    def kernel(self, xp: Any, *xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = xp.add(total, x)
        return total

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        return to.Sum(*xs) if is_floating(xs[0].dtype) else None

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy,) * len(node.inputs)

    def decompose(self, make: Making) -> Tensor | None:
        """Sums of a few at a time, where there are very many terms."""
        terms = make.inputs
        if len(terms) <= TERMS:
            return None
        total = terms[0]
        for i in range(1, len(terms), TERMS - 1):
            total = make(self, total, *terms[i : i + TERMS - 1])
        return total

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of every term but the first."""
        return (len(inputs) - 1) * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)) for _ in range(2)]
        yield cls(), [rng.normal(size=()) for _ in range(5)]


class EnsureLike(Op):
    """y = x, checked at run time to have the shape of the second input. Gradient: dx = dy.

    message  what the error says
    """

    message: str
    memory = Memory(view=True, alias=True)
    linear = (0,)
    shape_only = (1,)
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if not compatible(x.shape, like.shape):
            raise ShapeError(f"{self.message}: expected {like!r}, got {x!r}")
        if x.dtype is not like.dtype:
            raise DTypeError(f"{self.message}: expected {like!r}, got {x!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        self.check(x.shape, like.shape)
        return x

    def to_onnx(self, to: Any, x: Any, like: Any) -> Any:
        """In that shape: another number of elements is an error of the runtime."""
        return to.Reshape(x, to.shape(like), allowzero=1)

    def check(self, shape: Any, expected: Any) -> None:
        """ExecutionError unless these shapes, which are those of a run, are equal."""
        if tuple(shape) != tuple(expected):
            raise ExecutionError(
                f"{self.message}: expected shape {tuple(expected)}, got {tuple(shape)}"
            )

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, ZERO

    def batch(self, batch: Batch) -> Outputs | None:
        return batch.build(self, *batch.every()) if batch.alike else None

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("sample"), [rng.normal(size=(2, 3)), rng.normal(size=(2, 3))]
