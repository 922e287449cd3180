"""Families of element-wise ops by the kinds of number they take, and the operands made to fit."""

from __future__ import annotations

from .base import (
    Any,
    Binary,
    Comparison,
    Constant,
    DType,
    DTypeError,
    Elementwise,
    Op,
    Samples,
    Tensor,
    TensorLike,
    Unary,
    apply,
    as_dtype,
    as_tensor,
    build,
    cast,
    inexact,
    kind_of,
    np,
    promoted,
)

__all__ = [
    "FloatUnary",
    "Kinds",
    "NumberBinary",
    "Ordering",
    "Predicate",
    "RealBinary",
    "RealUnary",
    "binary",
    "float_ufunc",
    "floating_binary",
    "floating_unary",
    "known_number",
    "numbers",
]

_KINDS = {"b": "bool", "iu": "integer", "f": "floating", "c": "complex"}


class Kinds(Elementwise, abstract=True):
    """Family: takes the dtypes of these kinds (NumPy's letters: b, i, u, f, c) and no others."""

    kinds = "iufc"

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) not in self.kinds:
            known = [name for letters, name in _KINDS.items() if letters[0] in self.kinds]
            raise DTypeError(
                f"{self.type} takes {' or '.join(known)} operands, got {dtype}; use gg.cast"
            )


class FloatUnary(Kinds, Unary, abstract=True):
    """Family: one operand, floating or complex.

    Parameters: x: any shape; floating or complex, ints and bools become floats.
    """

    kinds = "fc"

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [rng.uniform(*cls.domain, size=3) + 1j * rng.uniform(0.3, 1.2, size=3)]


class RealUnary(Kinds, Unary, abstract=True):
    """Family: one operand, floating.

    Parameters: x: any shape; floating, ints and bools become float64.

    Raises: DTypeError if x is complex.
    """

    kinds = "f"


class NumberBinary(Kinds, Binary, abstract=True):
    """Family: two operands, real numbers.

    Parameters:
        x, y: shapes that broadcast; integer or floating, dtypes promoted, bools count as int8.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.
    """

    kinds = "iuf"


class RealBinary(Kinds, Binary, abstract=True):
    """Family: two operands, floating.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.
    """

    kinds = "f"


class Ordering(Comparison, Kinds, abstract=True):
    """Family: two operands that have an order (all but complex), a bool.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; integers by value, complex
            numbers by the real part, ties by the imaginary one.
    """

    kinds = "biuf"


class Predicate(Kinds, Unary, abstract=True):
    """Family: one operand, a bool.

    Returns: bool, of the shape of x.

    Gradient: none, the result is bool.
    """

    kinds = "biufc"
    differentiable = False

    def result(self, dtype: DType) -> DType:
        return as_dtype(bool)


def binary(op: Op, x: TensorLike, y: TensorLike) -> Tensor:
    """op of the operands, promoted."""
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(op, (x, y)).outputs[0]
    return apply(op, *promoted(x, y))


def float_ufunc(op: Op, *operands: TensorLike) -> Tensor:
    """op of the operands, promoted; bools and integers become floats as of NumPy's ufuncs."""
    x = operands[0]
    if len(operands) == 1 and isinstance(x, Tensor) and x.type.differentiable:
        return build(op, (x,)).outputs[0]
    return apply(op, *promoted(*operands, floating=True, small=True))


def floating_binary(op: Op, x: TensorLike, y: TensorLike) -> Tensor:
    """op of the operands, promoted; integers and bools become float64."""
    return apply(op, *promoted(x, y, floating=True))


def floating_unary(op: Op, x: TensorLike) -> Tensor:
    """op of x; integers and bools become float64."""
    if isinstance(x, Tensor) and x.type.differentiable:
        return build(op, (x,)).outputs[0]
    x = as_tensor(x)
    return apply(op, cast(x, inexact(x.dtype)))


def numbers(*operands: TensorLike) -> tuple[Tensor, ...]:
    """The operands promoted, bools as int8: what NumPy makes of bools where it counts with them."""
    tensors = promoted(*operands)
    if kind_of(tensors[0].dtype) == "b":
        return tuple([cast(t, "int8") for t in tensors])
    return tensors


def known_number(t: Tensor) -> Any:
    """The number that t is known to be when the graph is built, else None."""
    op = t.node.op
    if isinstance(op, Constant) and op.value.size == 1:
        return op.value.item()
    return op.attrs["value"] if op.type == "Full" else None
