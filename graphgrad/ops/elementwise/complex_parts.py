"""Real and imaginary parts and conjugates of complex numbers."""

from __future__ import annotations

from ..base import (
    Any,
    DType,
    Gradients,
    Memory,
    Node,
    Real,
    Tensor,
    TensorLike,
    Traits,
    ZerosLike,
    apply,
    as_tensor,
    cast,
    kind_of,
)

__all__ = ["conj", "conjugate", "imag", "real"]


class Imag(Real):
    """The imaginary part of a complex number: z = x + iy, dz = -i dy."""

    memory = Memory(view=True, alias=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.imag(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (cast(dy, node.inputs[0].dtype) * -1j,)


class Conj(Real):
    """The complex conjugate, dx = conj(dy)."""

    traits = Traits(involution=True)

    def result(self, dtype: DType) -> DType:
        return dtype

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.conj(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(CONJ, dy),)


REAL = Real()
IMAG = Imag()
CONJ = Conj()


def real(x: TensorLike, /) -> Tensor:
    """The real part, element by element; x itself where it is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy, as a complex number of complex x.

    >>> gg.evaluate(gg.real([1 + 2j]))
    array([1.])
    """
    x = as_tensor(x)
    return apply(REAL, x) if kind_of(x.dtype) == "c" else x


def imag(x: TensorLike, /) -> Tensor:
    """The imaginary part, element by element; zeros where x is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = -i dy of complex x; dx = 0 of any other.

    >>> gg.evaluate(gg.imag([1 + 2j]))
    array([2.])
    """
    x = as_tensor(x)
    return apply(IMAG, x) if kind_of(x.dtype) == "c" else apply(ZerosLike(), x)


def conj(x: TensorLike, /) -> Tensor:
    """The complex conjugate, element by element; x itself where it is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = conj(dy).

    >>> gg.evaluate(gg.conj([1 + 2j]))
    array([1.-2.j])
    """
    x = as_tensor(x)
    return apply(CONJ, x) if kind_of(x.dtype) == "c" else x


conjugate = conj
