"""Sums of many gradients, and shapes that can only be checked when run."""

from __future__ import annotations

from ..ir.errors import ExecutionError, ShapeError
from ..ir.types import compatible
from .base import (
    ZERO,
    Any,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    np,
    tensor_type,
)

__all__ = ["AddN", "EnsureLike"]


class AddN(Op):
    """y = x0 + x1 + ... of equal types, added from left to right; every dx = dy."""

    elementwise = True
    onnx = "Sum"
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

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy,) * len(node.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)) for _ in range(2)]
        yield cls(), [rng.normal(size=()) for _ in range(5)]


class EnsureLike(Op):
    """y = x, checked when run to have the shape of the second input. dx = dy.

    message  what the error says
    """

    message: str
    view = True
    linear = (0,)

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if not compatible(x.shape, like.shape):
            raise ShapeError(f"{self.message}: expected {like!r}, got {x!r}")
        if x.dtype is not like.dtype:
            raise DTypeError(f"{self.message}: expected {like!r}, got {x!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        self.check(x.shape, like.shape)
        return x

    def check(self, shape: Any, expected: Any) -> None:
        """ExecutionError unless these shapes, which are those of a run, are equal."""
        if tuple(shape) != tuple(expected):
            raise ExecutionError(
                f"{self.message}: expected shape {tuple(expected)}, got {tuple(shape)}"
            )

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("sample"), [rng.normal(size=(2, 3)), rng.normal(size=(2, 3))]
