"""Sums, products and their kin, element by element."""

from __future__ import annotations

from .base import (
    NO_GRAD,
    Any,
    Binary,
    DType,
    DTypeError,
    Gradients,
    Node,
    Tensor,
    TensorLike,
    Unary,
    apply,
    as_tensor,
    promoted,
    wants,
)


class Add(Binary):
    """z = x + y, dx = dz, dy = dz."""

    onnx = "Add"

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.add(x, y)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, dy


class Subtract(Binary):
    """z = x - y, dx = dz, dy = -dz."""

    onnx = "Sub"

    def check(self, dtype: DType) -> None:
        if dtype.kind == "b":
            raise DTypeError("bools cannot be subtracted; use gg.logical_xor")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.subtract(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return dz, apply(NEGATIVE, dz) if wants(node.inputs[1]) else NO_GRAD


class Multiply(Binary):
    """z = x * y, dx = dz * y, dy = dz * x."""

    onnx = "Mul"

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.multiply(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            apply(MULTIPLY, dz, y) if wants(x) else NO_GRAD,
            apply(MULTIPLY, dz, x) if wants(y) else NO_GRAD,
        )


class Divide(Binary):
    """z = x / y, dx = dz / y, dy = -dz * z / y."""

    onnx = "Div"
    domain = (0.5, 2.0)

    def check(self, dtype: DType) -> None:
        if dtype.kind not in "fc":
            raise DTypeError(f"Divide takes floating operands, got {dtype}; use gg.divide to cast")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.divide(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        (z,) = node.outputs
        return (
            dz / y if wants(x) else NO_GRAD,
            -(dz * z) / y if wants(y) else NO_GRAD,
        )


class Negative(Unary):
    """y = -x, dx = -dy."""

    onnx = "Neg"

    def check(self, dtype: DType) -> None:
        if dtype.kind == "b":
            raise DTypeError("bools cannot be negated; use gg.logical_not")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.negative(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(NEGATIVE, dy),)


ADD = Add()
SUBTRACT = Subtract()
MULTIPLY = Multiply()
DIVIDE = Divide()
NEGATIVE = Negative()


def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x + y, element by element, broadcast; dtypes promoted as NumPy 2 does."""
    return apply(ADD, *promoted(x, y))


def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x - y, element by element, broadcast; dtypes promoted as NumPy 2 does."""
    return apply(SUBTRACT, *promoted(x, y))


def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x * y, element by element, broadcast; dtypes promoted as NumPy 2 does."""
    return apply(MULTIPLY, *promoted(x, y))


def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x / y, element by element, broadcast; integers become float64."""
    return apply(DIVIDE, *promoted(x, y, floating=True))


def negative(x: TensorLike, /) -> Tensor:
    """-x, element by element."""
    return apply(NEGATIVE, as_tensor(x))
