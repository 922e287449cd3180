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
from ..documented import documented

__all__ = ["conj", "conjugate", "imag", "real"]


class Imag(Real):
    """y = the imaginary part of x. Gradient: dx = -i dy of complex x; dx = 0 of any other."""

    memory = Memory(view=True, alias=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.imag(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (cast(dy, node.inputs[0].dtype) * -1j,)


class Conj(Real):
    """y = the complex conjugate of x. Gradient: dx = conj(dy)."""

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


@documented(Real)
def real(x: TensorLike, /) -> Tensor:
    """The real part, element by element; x itself where it is not complex.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    >>> gg.evaluate(gg.real([1 + 2j]))
    array([1.])
    """
    x = as_tensor(x)
    return apply(REAL, x) if kind_of(x.dtype) == "c" else x


@documented(Imag)
def imag(x: TensorLike, /) -> Tensor:
    """The imaginary part, element by element; zeros where x is not complex.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    >>> gg.evaluate(gg.imag([1 + 2j]))
    array([2.])
    """
    x = as_tensor(x)
    return apply(IMAG, x) if kind_of(x.dtype) == "c" else apply(ZerosLike(), x)


@documented(Conj)
def conj(x: TensorLike, /) -> Tensor:
    """The complex conjugate, element by element; x itself where it is not complex.

    >>> gg.evaluate(gg.conj([1 + 2j]))
    array([1.-2.j])
    """
    x = as_tensor(x)
    return apply(CONJ, x) if kind_of(x.dtype) == "c" else x


conjugate = conj
