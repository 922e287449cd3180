"""Discrete Fourier transforms. Each op is linear and is listed with its adjoint.

With w = exp(-2 pi i / n), the transform of n numbers is y[k] = sum over j of x[j] w**(j k). A
gradient is the plain transpose, without a conjugate, as JAX has it: where a real input makes
complex numbers it is the real part of that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import ClassVar

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import Dim, computed, elements, is_negative, lengths
from ..base import (
    ZERO,
    Any,
    DType,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    cast,
    constant,
    count,
    inexact,
    is_floating,
    kind_of,
    np,
    tensor_type,
)
from ..create.creation import arange
from ..documented import documented
from ..dtypes import check_device
from ..elementwise.complex_parts import conj
from ..elementwise.logic import less, where
from ..shape.indexing import getitem
from ..shape.padding import EnsureLength, Pad, roll
from ..shape.reshaping import listed, normal_axis

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norms: where 1/n stands; and that of the inverse which has the factor of this direction."""


class Fourier(Op, abstract=True):
    """Family: a transform along an axis."""

    axis: int
    norm: str
    linear: ClassVar[str | tuple[int, ...]] = "joint"
    axis_attrs = ("axis",)

    def length(self, x: TensorType, kind: str) -> Dim:
        """The length of the axis; ShapeError where there is none, DTypeError for an unsupported
        dtype."""
        if self.axis >= len(x.shape) or x.shape[self.axis] == 0:
            raise ShapeError(f"a Fourier transform along axis {self.axis} of {x!r}")
        if kind_of(x.dtype) != kind:
            expected = "complex" if kind == "c" else "real floating"
            raise DTypeError(f"{self.type} takes {expected} numbers, got {x!r}")
        return x.shape[self.axis]

    def made(self, x: TensorType, n: Dim, dtype: DType) -> Types:
        """The type of x with another length and dtype."""
        shape = (*x.shape[: self.axis], n, *x.shape[self.axis + 1 :])
        return (tensor_type(shape, dtype),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """5 n log2(n) of complex numbers, half of that where one side is real."""
        n = max(lengths(t)[self.axis] for t in (inputs[0], outputs[0]))
        rows = elements(inputs[0]) / max(lengths(inputs[0])[self.axis], 1)
        both = kind_of(inputs[0].dtype) == kind_of(outputs[0].dtype)
        return rows * (5 if both else 2.5) * n * log2(max(n, 2))


class Fft(Fourier):
    """y[k] = sum of x[j] w**(j k) along an axis, or its inverse. Gradient: dx = the same of dy.

    Source: Cooley and Tukey 1965, "An algorithm for the machine calculation of complex Fourier
    series".
    """

    inverse: bool = False

    def infer(self, x: TensorType) -> Types:
        self.length(x, "c")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        transform = xp.fft.ifft if self.inverse else xp.fft.fft
        return xp.astype(transform(x, axis=self.axis, norm=self.norm), x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(self, dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward"), [_complex(rng, (3,))]
        yield cls(1, "ortho", True), [_complex(rng, (2, 4)).astype("complex64")]


class Rfft(Fourier):
    """y[k] = sum of x[j] w**(j k) of real x, for k up to n / 2.

    Gradient: dx[j] = real part of the sum of dy[k] exp(-2 pi i j k / n).
    """

    def infer(self, x: TensorType) -> Types:
        n = self.length(x, "f")
        return self.made(x, computed(lambda n: n // 2 + 1, n), complex_of(x.dtype))

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.astype(xp.fft.rfft(x, axis=self.axis, norm=self.norm), complex_of(x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        n = x.shape[self.axis]
        if isinstance(n, int):
            return (apply(RfftAdjoint(self.axis, self.norm, n), dy),)
        return (apply(RfftAdjointLike(self.axis, self.norm), dy, x),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward"), [rng.normal(size=(4,))]
        yield cls(1, "forward"), [rng.normal(size=(2, 3, 1))]
        yield cls(0, "ortho"), [rng.normal(size=(5,)).astype("float32")]


class RfftAdjoint(Fourier):
    """x[j] = real part of the sum of y[k] w**(j k), k up to n / 2, for j < n.

    Gradient: dy = Rfft of dx.

    That is the inverse of the conjugate, of which it counts what stands for two terms as one.
    """

    n: int

    def infer(self, y: TensorType) -> Types:
        _check_half(self, self.length(y, "c"), self.n)
        return self.made(y, self.n, real_of(y.dtype))

    def kernel(self, xp: Any, y: Any) -> Any:
        return _halved(self, xp, y, self.n)

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        return (apply(Rfft(self.axis, self.norm), dx),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward", 4), [_complex(rng, (3,))]
        yield cls(1, "ortho", 5), [_complex(rng, (2, 3)).astype("complex64")]


class RfftAdjointLike(Fourier):
    """RfftAdjoint for as many j as a second input has, known only at run time.

    Gradient: dy = Rfft of dx; zero for the second input.
    """

    linear = (0,)
    shape_only = (1,)

    def infer(self, y: TensorType, like: TensorType) -> Types:
        n = like.shape[self.axis]
        _check_half(self, self.length(y, "c"), n)
        return self.made(y, n, real_of(y.dtype))

    def kernel(self, xp: Any, y: Any, like: Any) -> Any:
        return _halved(self, xp, y, like.shape[self.axis])

    def static(self, inputs: Types) -> Op:
        return RfftAdjoint(self.axis, self.norm, lengths(inputs[1])[self.axis])

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        return apply(Rfft(self.axis, self.norm), dx), ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward"), [_complex(rng, (2,)), rng.normal(size=(3,))]


class Irfft(Fourier):
    """x[j] = sum of y[k] w**(-j k) / n over all k, where y[n - k] = conj(y[k]), for j < n.

    Gradient: dx[k] = sum of dy[j] exp(2 pi i j k / n) / n, twice that but for k = 0 and n / 2.

    n: None: 2 (m - 1) of m numbers. Of y[0] and y[n / 2] only the real parts count.
    """

    n: Any

    def infer(self, y: TensorType) -> Types:
        m = self.length(y, "c")
        n = computed(lambda m: 2 * (m - 1), m) if self.n is None else self.n
        if n == 0:
            raise ShapeError(f"irfft of {y!r} along axis {self.axis} would be empty; give n")
        if n is not None:
            _check_half(self, m, n)
        return self.made(y, n, real_of(y.dtype))

    def kernel(self, xp: Any, y: Any) -> Any:
        x = xp.fft.irfft(y, n=self.n, axis=self.axis, norm=self.norm)
        return xp.astype(x, real_of(y.dtype))

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        return (apply(IrfftAdjoint(self.axis, self.norm, self.n), dx),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward", None), [_complex(rng, (3,))]
        yield cls(1, "ortho", 3), [_complex(rng, (2, 2)).astype("complex64")]


class IrfftAdjoint(Fourier):
    """y[k] = sum of x[j] w**(-j k) / n, k up to n / 2, twice that where it stands for two terms.

    Gradient: dx = Irfft of dy.
    """

    n: Any

    def infer(self, x: TensorType) -> Types:
        n = self.length(x, "f")
        return self.made(x, computed(lambda n: n // 2 + 1, n), complex_of(x.dtype))

    def kernel(self, xp: Any, x: Any) -> Any:
        y = xp.conj(xp.fft.rfft(x, axis=self.axis, norm=NORMS[self.norm]))
        weights = _weights(self, xp, y, x.shape[self.axis], 2.0)
        return xp.astype(y * weights, complex_of(x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        n = x.shape[self.axis]
        return (apply(Irfft(self.axis, self.norm, self.n if n is None else n), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, "backward", 4), [rng.normal(size=(4,))]
        yield cls(1, "forward", 3), [rng.normal(size=(2, 3))]


def _check_half(op: Op, m: Dim, n: Dim) -> None:
    if isinstance(m, int) and isinstance(n, int) and m != n // 2 + 1:
        raise ShapeError(f"{op!r} of {n} numbers takes {n // 2 + 1} of their transform, got {m}")


def _halved(op: Fourier, xp: Any, y: Any, n: Any) -> Any:
    halves = xp.conj(y) * _weights(op, xp, y, n, 0.5)
    return xp.astype(xp.fft.irfft(halves, n=n, axis=op.axis, norm=NORMS[op.norm]), real_of(y.dtype))


def _weights(op: Fourier, xp: Any, y: Any, n: Any, weight: float) -> Any:
    """1 for y[0] and y[n / 2], which stand for themselves; the weight for those between."""
    places = xp.arange(y.shape[op.axis])
    alone = (places == 0) | (2 * places == n)
    column = xp.where(alone, 1.0, weight).astype(real_of(y.dtype))
    return xp.reshape(column, (-1,) + (1,) * (y.ndim - 1 - op.axis))


def _complex(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def complex_of(dtype: DType) -> DType:
    """The complex dtype of as many bits a part."""
    return as_dtype("complex64" if dtype.itemsize <= 4 else "complex128")


def real_of(dtype: DType) -> DType:
    """The floating dtype of the parts."""
    return as_dtype("float32" if dtype.name == "complex64" else "float64")


# --- arguments ---------------------------------------------------------------------------------


def _norm(norm: str | None) -> str:
    mode = "backward" if norm is None else norm
    if mode not in NORMS:
        raise ShapeError(f"norm is one of {', '.join(map(repr, NORMS))}, got {norm!r}")
    return mode


def _as_complex(x: TensorLike) -> Tensor:
    x = as_tensor(x)
    return x if kind_of(x.dtype) == "c" else cast(x, complex_of(inexact(x.dtype)))


def _as_real(x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if kind_of(x.dtype) == "c":
        raise DTypeError(f"rfft takes real numbers, got {x.type!r}; gg.fft.fft takes complex ones")
    return cast(x, real_of(complex_of(inexact(x.dtype))))


def _fitted(x: Tensor, n: Any, axis: int) -> Tensor:
    """x cut, or padded with zeros, to a length of an axis."""
    if n is None or x.shape[axis] == n:
        return x
    length = x.shape[axis]
    fixed = isinstance(length, int) and isinstance(n, int)
    more = n - length if fixed else n
    if not fixed or more > 0:
        x = apply(Pad(tuple([(0, more if i == axis else 0) for i in range(x.ndim)]), 0), x)
    return getitem(x, (slice(None),) * axis + (slice(n),))


def _length(n: Any) -> Any:
    length = None if n is None else count("n", n)
    if length is not None and is_negative(length - 1):
        raise ShapeError(f"a Fourier transform takes at least one number, got n={n}")
    return length


def _axes(x: Tensor, s: Any, axes: Any) -> list[tuple[int, int | None]]:
    """The axes of a transform over several, with the length that is asked for each, or None."""
    sizes = None if s is None else list(listed(s))
    if axes is None:
        count = x.ndim if sizes is None else len(sizes)
        axes = range(-count, 0)
    normal_axes = [normal_axis(axis, x.ndim) for axis in listed(axes)]
    sizes = [None] * len(normal_axes) if sizes is None else [None if n == -1 else n for n in sizes]
    if len(sizes) != len(normal_axes) or not normal_axes:
        raise ShapeError(f"a transform of {x.type!r} over axes {normal_axes} has lengths s={s}")
    return list(zip(normal_axes, map(_length, sizes), strict=True))


# --- transforms ----------------------------------------------------------------------------------


def fft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The discrete Fourier transform along an axis: y[k] = sum of x[j] exp(-2 pi i j k / n).

    Parameters:
        x: at least one axis, any dtype; other dtypes become complex.
        n: how many numbers are transformed, an int or a length: x is cut, or padded with zeros;
            None: all.
        axis: the axis.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with n along the axis; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int.

    Gradient: dx = fft(dy), cut or padded to the length of x; the real part of it for real x.

    Source: the array API standard, fft.

    >>> gg.evaluate(gg.fft.fft([1.0, 0.0, 1.0, 0.0])).round(3)
    array([2.+0.j, 0.+0.j, 2.+0.j, 0.+0.j])
    """
    x, norm, n = _as_complex(x), _norm(norm), _length(n)
    axis = normal_axis(axis, x.ndim)
    return apply(Fft(axis, norm, False), _fitted(x, n, axis))


def ifft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of fft along an axis: x[j] = sum of y[k] exp(2 pi i j k / n) / n.

    Parameters:
        x: at least one axis, any dtype; other dtypes become complex.
        n: how many numbers are transformed, an int or a length: x is cut, or padded with zeros;
            None: all.
        axis: the axis.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with n along the axis; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int.

    Gradient: dx = ifft(dy), cut or padded to the length of x; the real part of it for real x.

    Source: the array API standard, ifft.

    >>> gg.evaluate(gg.fft.ifft([2.0, 0.0, 2.0, 0.0])).round(3)
    array([1.+0.j, 0.+0.j, 1.+0.j, 0.+0.j])
    """
    x, norm, n = _as_complex(x), _norm(norm), _length(n)
    axis = normal_axis(axis, x.ndim)
    return apply(Fft(axis, norm, True), _fitted(x, n, axis))


@documented(Rfft)
def rfft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The transform of real numbers along an axis, without the half that is its conjugate.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        n: how many numbers are transformed, an int or a length: x is cut, or padded with zeros;
            None: all.
        axis: the axis.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with n // 2 + 1 along the axis; complex128, complex64 of float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int; DTypeError if x is complex.

    Source: the array API standard, rfft.

    >>> gg.evaluate(gg.fft.rfft([1.0, 0.0, 1.0, 0.0])).round(3)
    array([2.+0.j, 0.+0.j, 2.+0.j])
    """
    x, norm, n = _as_real(x), _norm(norm), _length(n)
    axis = normal_axis(axis, x.ndim)
    return apply(Rfft(axis, norm), _fitted(x, n, axis))


@documented(Irfft)
def irfft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of rfft along an axis.

    Parameters:
        x: at least one axis, any dtype; other dtypes become complex. Of x[0], and x[n / 2], only
            the real part counts.
        n: how many real numbers are made, of the first n // 2 + 1 of x, or x padded with zeros;
            None: 2 (m - 1) of m.
        axis: the axis.
        norm: where 1 / n stands: "backward", here in the inverse; "forward", in the transform; or
            "ortho", as the square root, in both.

    Returns: x with n along the axis; float64, float32 of complex64 and float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int.

    Source: the array API standard, irfft.

    >>> gg.evaluate(gg.fft.irfft([2.0, 0.0, 2.0])).round(3)
    array([1., 0., 1., 0.])
    """
    x, norm, n = _as_complex(x), _norm(norm), _length(n)
    axis = normal_axis(axis, x.ndim)
    return apply(Irfft(axis, norm, n), _fitted(x, None if n is None else n // 2 + 1, axis))


def hfft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The transform, which is real, of numbers of which the other half is the conjugate.

    Parameters:
        x: as of irfft.
        n: how many real numbers are made; None: 2 (m - 1) of m.
        axis: the axis.
        norm: where 1 / n stands, as of fft.

    Returns: x with n along the axis; float64, float32 of complex64 and float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int.

    Gradient: that of irfft(conj(x)).

    Source: the array API standard, hfft.

    >>> gg.evaluate(gg.fft.hfft([1.0, 2.0, 1.0])).round(3)
    array([ 6.,  0., -2.,  0.])
    """
    return irfft(conj(_as_complex(x)), n=n, axis=axis, norm=NORMS[_norm(norm)])


def ihfft(x: TensorLike, /, n: Any = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of hfft along an axis.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        n: how many numbers are transformed, an int or a length: x is cut, or padded with zeros;
            None: all.
        axis: the axis.
        norm: where 1 / n stands, as of ifft.

    Returns: x with n // 2 + 1 along the axis; complex128, complex64 of float32.

    Raises: ShapeError if x has no such axis, nothing along it, or for an unknown norm or an n below
    1; TypeError for an n that is not an int; DTypeError if x is complex.

    Gradient: that of conj(rfft(x)).

    Source: the array API standard, ihfft.

    >>> gg.evaluate(gg.fft.ihfft([6.0, 0.0, -2.0, 0.0])).real.round(3)
    array([1., 2., 1.])
    """
    return conj(rfft(x, n=n, axis=axis, norm=NORMS[_norm(norm)]))


# --- over several axes ---------------------------------------------------------------------------


def _each(
    x: Tensor, inverse: bool, pairs: list[tuple[int, int | None]], norm: str | None
) -> Tensor:
    for axis, n in pairs:
        x = (ifft if inverse else fft)(x, n=n, axis=axis, norm=norm)
    return x


def fftn(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = None,
    norm: str | None = "backward",
) -> Tensor:
    """The discrete Fourier transform over several axes: fft along each.

    Parameters:
        x: at least one axis; any dtype; other dtypes become complex.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the axes; None: all, or as many of the last ones as s has lengths.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: dx = fftn(dy), cut or padded to the lengths of x; the real part of it for real x.

    Source: the array API standard, fftn.

    >>> gg.evaluate(gg.fft.fftn(np.ones((2, 2)))).real
    array([[4., 0.],
           [0., 0.]])
    """
    x = _as_complex(x)
    return _each(x, False, _axes(x, s, axes), norm)


def ifftn(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = None,
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of fftn over several axes: ifft along each.

    Parameters:
        x: at least one axis; any dtype; other dtypes become complex.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the axes; None: all, or as many of the last ones as s has lengths.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: dx = ifftn(dy), cut or padded to the lengths of x; the real part of it for real x.

    Source: the array API standard, ifftn.

    >>> gg.evaluate(gg.fft.ifftn(np.ones((2, 2)))).real
    array([[1., 0.],
           [0., 0.]])
    """
    x = _as_complex(x)
    return _each(x, True, _axes(x, s, axes), norm)


def rfftn(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = None,
    norm: str | None = "backward",
) -> Tensor:
    """The transform of real numbers over several axes: rfft along the last, fft along the others.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the axes; None: all, or as many of the last ones as s has lengths.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths, n // 2 + 1 along the last of the axes; complex128, complex64 of
    float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int; DTypeError if x is complex.

    Gradient: those of rfft and fft, one after the other.

    Source: the array API standard, rfftn.

    >>> gg.evaluate(gg.fft.rfftn(np.ones((2, 2)))).real
    array([[4., 0.],
           [0., 0.]])
    """
    x = _as_real(x)
    *others, (axis, n) = _axes(x, s, axes)
    return _each(rfft(x, n=n, axis=axis, norm=norm), False, others, norm)


def irfftn(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = None,
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of rfftn over several axes: ifft along the others, irfft along the last.

    Parameters:
        x: at least one axis; any dtype; other dtypes become complex.
        s: how many numbers are made along each of the axes: x is cut, or padded with zeros; None,
            or -1 for one of them: all.
        axes: the axes; None: all, or as many of the last ones as s has lengths.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths, 2 (m - 1) along the last of the axes unless s says another;
    float64, float32 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: those of ifft and irfft, one after the other.

    Source: the array API standard, irfftn.

    >>> gg.evaluate(gg.fft.irfftn(np.ones((2, 2))))
    array([[1., 0.],
           [0., 0.]])
    """
    x = _as_complex(x)
    *others, (axis, n) = _axes(x, s, axes)
    if s is not None and n is None:
        n = _as_many(x, axis)
    return irfft(_each(x, True, others, norm), n=n, axis=axis, norm=norm)


def fft2(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """The discrete Fourier transform over two axes: fft along each.

    Parameters:
        x: at least two axes; any dtype; other dtypes become complex.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the two axes.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: dx = fft2(dy), cut or padded to the lengths of x; the real part of it for real x.

    Source: numpy.fft.fft2.

    >>> gg.evaluate(gg.fft.fft2(np.ones((2, 2)))).real
    array([[4., 0.],
           [0., 0.]])
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of fft2 over two axes: ifft along each.

    Parameters:
        x: at least two axes; any dtype; other dtypes become complex.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the two axes.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths; complex128, complex64 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: dx = ifft2(dy), cut or padded to the lengths of x; the real part of it for real x.

    Source: numpy.fft.ifft2.

    >>> gg.evaluate(gg.fft.ifft2(np.ones((2, 2)))).real
    array([[1., 0.],
           [0., 0.]])
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """The transform of real numbers over two axes: rfft along the last, fft along the others.

    Parameters:
        x: at least two axes; floating, ints and bools become float64.
        s: how many numbers are transformed along each of the axes: x is cut, or padded with zeros;
            None, or -1 for one of them: all.
        axes: the two axes.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths, n // 2 + 1 along the last of the axes; complex128, complex64 of
    float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int; DTypeError if x is complex.

    Gradient: those of rfft and fft, one after the other.

    Source: numpy.fft.rfft2.

    >>> gg.evaluate(gg.fft.rfft2(np.ones((2, 2)))).real
    array([[4., 0.],
           [0., 0.]])
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(
    x: TensorLike,
    /,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: str | None = "backward",
) -> Tensor:
    """The inverse of rfft2 over two axes: ifft along the others, irfft along the last.

    Parameters:
        x: at least two axes; any dtype; other dtypes become complex.
        s: how many numbers are made along each of the axes: x is cut, or padded with zeros; None,
            or -1 for one of them: all.
        axes: the two axes.
        norm: which transform has the factor 1 / n: "backward", the inverse; "forward", this one;
            or "ortho", both, as its square root.

    Returns: x with these lengths, 2 (m - 1) along the last of the axes unless s says another;
    float64, float32 of complex64 and float32.

    Raises: ShapeError if x has no such axes, nothing along one, s of another count, or for an
    unknown norm; TypeError for a length that is not an int.

    Gradient: those of ifft and irfft, one after the other.

    Source: numpy.fft.irfft2.

    >>> gg.evaluate(gg.fft.irfft2(np.ones((2, 2))))
    array([[1., 0.],
           [0., 0.]])
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


def _as_many(x: Tensor, axis: int) -> Any:
    """What -1 means for the last axis of irfftn: as many as x has there, as for NumPy."""
    length = x.shape[axis]
    if length is not None:
        return length
    raise ShapeError(
        f"s of irfftn of {x.type!r} has -1 for axis {axis}, whose length depends on values"
    )


# --- frequencies ---------------------------------------------------------------------------------


def fftfreq(n: Any, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of what fft makes, in cycles per unit: [0, 1, ..., -2, -1] / (n d).

    Parameters:
        n: how many numbers are transformed, an int or a length.
        d: the distance from each to the next.
        dtype: floating; None: float64.
        device: "cpu", or None.

    Returns: a vector (n,).

    Raises: ShapeError for an n below 1; TypeError for one that is not an int; DTypeError for a
    dtype that is not floating; DeviceError for an unsupported device.

    Source: the array API standard, fftfreq.

    >>> gg.evaluate(gg.fft.fftfreq(4))
    array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device, half=False)


def rfftfreq(n: Any, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of what rfft makes, in cycles per unit: [0, 1, ..., n // 2] / (n d).

    Parameters:
        n: how many numbers are transformed, an int or a length.
        d: the distance from each to the next.
        dtype: floating; None: float64.
        device: "cpu", or None.

    Returns: a vector (n // 2 + 1,).

    Raises: as fftfreq.

    Source: the array API standard, rfftfreq.

    >>> gg.evaluate(gg.fft.rfftfreq(4))
    array([0.  , 0.25, 0.5 ])
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device, half=True)


def _frequencies(make: Any, n: Any, d: float, dtype: Any, device: Any, *, half: bool) -> Tensor:
    check_device(device)
    float_dtype = as_dtype("float64" if dtype is None else dtype)
    if not is_floating(float_dtype):
        raise DTypeError(f"frequencies are floating, got dtype {float_dtype}")
    length = _length(count("n", n))
    if not isinstance(length, Length):
        return constant(make(length, d), float_dtype)
    numbers = arange(length)
    if not at_least(length, 1):
        numbers = apply(EnsureLength(0, 1, "frequencies"), numbers)
    if half:
        numbers = numbers[: length // 2 + 1]
    else:
        numbers = where(less(numbers, (length + 1) // 2), numbers, numbers - length)
    return cast(numbers * (1.0 / (length * float(d))), float_dtype)


def fftshift(x: TensorLike, /, axes: Any = None) -> Tensor:
    """x with the frequency 0 in the middle, where fft has it first.

    Parameters:
        x: any shape and dtype.
        axes: an int or several; None: all.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axes.

    Gradient: dx = ifftshift(dy).

    Source: the array API standard, fftshift.

    >>> gg.evaluate(gg.fft.fftshift(gg.fft.fftfreq(4)))
    array([-0.5 , -0.25,  0.  ,  0.25])
    """
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: TensorLike, /, axes: Any = None) -> Tensor:
    """The inverse of fftshift, which differs from it for odd lengths.

    Parameters:
        x: any shape and dtype.
        axes: an int or several; None: all.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axes.

    Gradient: dx = fftshift(dy).

    Source: the array API standard, ifftshift.

    >>> gg.evaluate(gg.fft.ifftshift([-1, 0, 1]))
    array([ 0,  1, -1])
    """
    return _shifted(x, axes, lambda n: -(n // 2))


def _shifted(x: TensorLike, axes: Any, by: Callable[[Any], Any]) -> Tensor:
    x = as_tensor(x)
    normal_axes = [
        normal_axis(axis, x.ndim) for axis in (range(x.ndim) if axes is None else listed(axes))
    ]
    shifts: list[Any] = []
    for axis in normal_axes:
        length = x.shape[axis]
        if length is None:
            raise ShapeError(f"the middle of axis {axis} of {x.type!r} depends on values")
        shifts.append(by(length))
    return roll(x, tuple(shifts), tuple(normal_axes)) if normal_axes else x
