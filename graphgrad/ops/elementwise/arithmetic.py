"""Element-wise sums, differences, products and quotients."""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    Any,
    Binary,
    Derivative,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    Unary,
    apply,
    as_tensor,
    build,
    is_inexact,
    kind_of,
    np,
    promoted,
    wants,
)
from ..documented import documented

__all__ = ["add", "divide", "multiply", "negative", "positive", "subtract", "true_divide"]


class Arithmetic(Binary, abstract=True):
    """Family: two operands of any number, complex too."""

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        parts = rng.uniform(*cls.domain, size=(2, 5))
        z = parts[0] + 1j * parts[1]
        yield cls(), [z[:2], z[2:].reshape(3, 1)]


class Add(Arithmetic):
    """z = x + y.

    Gradient: dx = dz, dy = dz, each summed over the axes along which its operand was broadcast.
    """

    onnx = Onnx("Add")
    linear = "joint"
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.add(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to("Or" if kind_of(x.dtype) == "b" else "Add", x, y)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, dy


class Subtract(Arithmetic):
    """z = x - y. Gradient: dx = dz, dy = -dz."""

    onnx = Onnx("Sub")
    linear = "joint"

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) == "b":
            raise DTypeError("bools cannot be subtracted; use gg.logical_xor")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.subtract(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return dz, apply(NEGATIVE, dz) if wants(node.inputs[1]) else NO_GRAD


class Multiply(Arithmetic):
    """z = x * y. Gradient: dx = dz * y, dy = dz * x."""

    onnx = Onnx("Mul")
    linear = "each"
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.multiply(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to("And" if kind_of(x.dtype) == "b" else "Mul", x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            apply(MULTIPLY, dz, y) if wants(x) else NO_GRAD,
            apply(MULTIPLY, dz, x) if wants(y) else NO_GRAD,
        )


class Divide(Arithmetic):
    """z = x / y. Gradient: dx = dz / y, dy = -dz * z / y."""

    onnx = Onnx("Div")
    domain = (0.5, 2.0)
    linear = (0,)
    derivative = Derivative(singular=1)

    def check(self, dtype: DType) -> None:
        if not is_inexact(dtype):
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
    """y = -x. Gradient: dx = -dy."""

    onnx = Onnx("Neg")
    linear = "joint"
    derivative = Derivative(relevance="passed")

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) == "b":
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


@documented(Add)
def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum: z = x + y, element by element.

    Returns: z, of the broadcast shape and the promoted dtype; of bools whether either holds.

    >>> gg.evaluate(gg.add([1.0, 2.0], 3))
    array([4., 5.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(ADD, (x, y)).outputs[0]
    return apply(ADD, *promoted(x, y))


@documented(Subtract)
def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Difference: z = x - y, element by element.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for two bools.

    >>> gg.evaluate(gg.subtract([1.0, 2.0], 3))
    array([-2., -1.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(SUBTRACT, (x, y)).outputs[0]
    return apply(SUBTRACT, *promoted(x, y))


@documented(Multiply)
def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Product: z = x * y, element by element.

    Returns: z, of the broadcast shape and the promoted dtype; of bools whether both hold.

    >>> gg.evaluate(gg.multiply([1.0, 2.0], 3))
    array([3., 6.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(MULTIPLY, (x, y)).outputs[0]
    return apply(MULTIPLY, *promoted(x, y))


@documented(Divide)
def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Quotient: z = x / y, element by element.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does, ints and bools become float64.

    >>> gg.evaluate(gg.divide([1, 2], 4))
    array([0.25, 0.5 ])
    """
    return apply(DIVIDE, *promoted(x, y, floating=True))


@documented(Negative)
def negative(x: TensorLike, /) -> Tensor:
    """y = -x, element by element.

    Parameters: x: any shape and dtype but bool.

    Raises: DTypeError if x is bool.

    >>> gg.evaluate(gg.negative([1.0, -2.0]))
    array([-1.,  2.])
    """
    return apply(NEGATIVE, as_tensor(x))


def positive(x: TensorLike, /) -> Tensor:
    """+x, which is x itself.

    Parameters: x: any shape and dtype but bool.

    Returns: x as a tensor; no node is built for one that is a tensor.

    Raises: DTypeError if x is bool.

    Gradient: dx = dy.

    >>> gg.evaluate(gg.positive([1.0, -2.0]))
    array([ 1., -2.])
    """
    x = as_tensor(x)
    if kind_of(x.dtype) == "b":
        raise DTypeError("bools have no sign; use gg.cast to make numbers of them")
    return x


true_divide = divide
