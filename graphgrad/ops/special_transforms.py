"""Box-Cox transforms, binomials of counts, the Faddeeva function, spherical harmonics, and more."""

from __future__ import annotations

import math

from ..ir.errors import DTypeError
from .arithmetic import multiply, square
from .base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Samples,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    cast,
    constant,
    is_floating,
    kind_of,
    np,
    promoted,
    wants,
    whole,
)
from .exponential import exp, log, log1p
from .families import floating_binary
from .joining import stack
from .logic import equal, less, less_equal, where
from .scipy_functions import ScipyBinary, need_scipy, scipy_special
from .special import gammaln
from .special_bessel import jv
from .special_error import Scaled
from .special_gamma import Hyp1F1, binom
from .trigonometry import cos, sin

__all__ = [
    "bernoulli",
    "bessel_jn",
    "boxcox",
    "boxcox1p",
    "comb",
    "loggamma",
    "sph_harm_y",
    "wofz",
]

_ROOT_PI = math.sqrt(math.pi)


class BoxCox(ScipyBinary):
    """y = (x**p - 1) / p, log(x) at p = 0; dx = dy * x**(p - 1) and, with u = log(x),
    dp = dy * u**2 * the integral of t exp(t p u) from 0 to 1, which is 1F1(2; 3; p u) / 2.
    """

    scipy = "boxcox"

    def log(self, x: Tensor) -> Tensor:
        """The transform of power 0."""
        return log(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, p = node.inputs
        u = self.log(x)
        dp: Any = NO_GRAD
        if wants(p):
            nothing = u == -np.inf  # of x = 0 the transform is -1 / p
            u_p = where(nothing, 0.0, u)
            inner = u_p * u_p / 2.0 * apply(Hyp1F1(2.0, 3.0), u_p * p)
            limit = where(less(0.0, p), 1.0 / square(where(nothing, p, 1.0)), np.inf)
            dp = dy * where(nothing, limit, inner)
        return (dy * exp((p - 1.0) * u) if wants(x) else NO_GRAD), dp


class BoxCox1p(BoxCox):
    """y = ((1 + x)**p - 1) / p, log1p(x) at p = 0: BoxCox of 1 + x, exact for small x."""

    scipy = "boxcox1p"

    def log(self, x: Tensor) -> Tensor:
        """The transform of power 0."""
        return log1p(x)


class Faddeeva(Scaled):
    """y = exp(-z**2) erfc(-i z), or the derivative of this order, of complex z.

    It is holomorphic: w' = 2 i / sqrt(pi) - 2 z w [DLMF 7.10.2].
    """

    scipy = "wofz"
    kinds = "c"
    form = (-1.0, 2j / _ROOT_PI)

    def kernel(self, xp: Any, x: Any) -> Any:
        """In the lower half plane, where w grows, by w(z) = 2 exp(-z**2) - w(-z)."""
        below = x.imag < 0
        w = super().kernel(xp, np.where(below, -x, x) if self.order else x)
        if not self.order or not np.any(below):
            return w
        previous, grown = 0.0, 2 * np.exp(-x * x)
        for n in range(1, self.order + 1):
            previous, grown = grown, -2 * (x * grown + (n - 1) * previous)
        return np.where(below, grown - (-1) ** self.order * w, w).astype(x.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        z = rng.uniform(-2, 2, size=(2, 3)) + 1j * rng.uniform(-1, 1, size=(2, 3))
        for order in (0, 1) if scipy_special else ():
            yield cls(order), [z]
            yield cls(order), [z[0].astype("complex64")]


def wofz(z: TensorLike, /) -> Tensor:
    """The Faddeeva function w(z) = exp(-z**2) erfc(-i z), element by element.

    Parameters: z: any shape; complex, what is real becomes complex.

    Returns: w, complex, shape of z.

    Raises: GraphGradError without SciPy (the extra `scipy`).

    Gradient: dz = dw * (2 i / sqrt(pi) - 2 z w).

    Source: scipy.special.wofz; DLMF 7.10.2.

    >>> gg.evaluate(gg.special.wofz(0.0))
    array(1.+0.j)
    """
    need_scipy("wofz")
    (z,) = promoted(z, floating=True)
    if kind_of(z.dtype) != "c":
        z = cast(z, "complex64" if z.dtype.itemsize < 8 else "complex128")
    return apply(Faddeeva(0), z)


def boxcox(x: TensorLike, lmbda: TensorLike, /) -> Tensor:
    """The Box-Cox transform of x: (x**lmbda - 1) / lmbda, or log(x) where lmbda is 0.

    Parameters: x, lmbda: shapes that broadcast; floating, ints and bools become float64.

    Returns: the broadcast shape, the promoted dtype; NaN where x < 0.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * x**(lmbda - 1), dlmbda = dy * log(x)**2 * the integral of t x**(t lmbda)
        from 0 to 1, which loses no digits near lmbda = 0.

    Source: scipy.special.boxcox.

    >>> gg.evaluate(gg.special.boxcox([1.0, 4.0], 0.5))
    array([0., 2.])
    """
    need_scipy("boxcox")
    return floating_binary(BoxCox(), x, lmbda)


def boxcox1p(x: TensorLike, lmbda: TensorLike, /) -> Tensor:
    """The Box-Cox transform of 1 + x: ((1 + x)**lmbda - 1) / lmbda, or log1p(x) where lmbda is 0.

    Parameters: x, lmbda: shapes that broadcast; floating, ints and bools become float64.

    Returns: the broadcast shape, the promoted dtype; NaN where x < -1.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * (1 + x)**(lmbda - 1); of lmbda as of boxcox.

    Source: scipy.special.boxcox1p.

    >>> gg.evaluate(gg.special.boxcox1p([0.0, 3.0], 0.5))
    array([0., 2.])
    """
    need_scipy("boxcox1p")
    return floating_binary(BoxCox1p(), x, lmbda)


def comb(
    N: TensorLike, k: TensorLike, /, *, exact: bool = False, repetition: bool = False
) -> Tensor:
    """How many ways there are to choose k of N things.

    Parameters:
        N, k: shapes that broadcast; floating, ints and bools become float64.
        exact: False; SciPy's True is for Python's integers of any size.
        repetition: whether a thing may be chosen more than once.

    Returns: the broadcast shape, the promoted dtype; 0 where k > N, k < 0 or
        N < 0, but with repetition binom(N + k - 1, k).

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands, ValueError
        for exact=True; GraphGradError without SciPy (the extra `scipy`).

    Gradient: that of binom, 0 where the result is 0.

    Source: scipy.special.comb.

    >>> gg.evaluate(gg.special.comb(5, [2, 3, 6])).round(4)
    array([10., 10.,  0.])
    """
    if exact:
        raise ValueError("comb(exact=True) is for numbers: use math.comb for them")
    n, k = promoted(N, k, floating=True)
    if not is_floating(n.dtype):
        raise DTypeError(f"comb takes real numbers, got {n.type!r}")
    if repetition:
        one = equal(k, 0.0) & less_equal(0.0, n)
        return where(one, 1.0, binom(where(one, 1.0, n + k - 1.0), k))
    some = less_equal(k, n) & less_equal(0.0, k) & less_equal(0.0, n)
    return where(some, binom(where(some, n, 1.0), where(some, k, 0.0)), 0.0)


def loggamma(x: TensorLike, /) -> Tensor:
    """The logarithm of the gamma function of real numbers, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, shape and dtype of x; NaN where x < 0, infinity at 0. gammaln is log |gamma(x)|.

    Raises: DTypeError for complex operands.

    Gradient: dx = dy * digamma(x).

    Source: scipy.special.loggamma, of real numbers.

    >>> gg.evaluate(gg.special.loggamma([1.0, 3.0])).round(4)
    array([0.    , 0.6931])
    """
    (x,) = promoted(x, floating=True)
    negative = less(x, 0.0)
    return where(negative, np.nan, gammaln(where(negative, 1.0, x)))


def bernoulli(n: int, /) -> Tensor:
    """The Bernoulli numbers B_0 to B_n, B_1 = -1/2.

    Parameters: n: a known integer >= 0.

    Returns: float64, (n + 1,).

    Raises: ValueError for n < 0; GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.bernoulli.

    >>> gg.evaluate(gg.special.bernoulli(4)).round(4)
    array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333])
    """
    if whole("n", n) < 0:
        raise ValueError(f"Bernoulli numbers count from 0, got {n}")
    numbers = need_scipy("bernoulli").bernoulli(max(n, 2))
    return constant(numbers[: n + 1])


def bessel_jn(z: TensorLike, /, *, v: int) -> Tensor:
    """The Bessel functions J_0(z) to J_v(z), along a new first axis.

    Parameters:
        z: any shape; floating, ints and bools become float64.
        v: a known integer >= 0.

    Returns: (v + 1, ...), dtype of z.

    Raises: ValueError for v < 0; DTypeError for complex z; GraphGradError without SciPy (the extra
        `scipy`).

    Gradient: dz = the sum of dy[n] * (J_(n-1)(z) - J_(n+1)(z)) / 2.

    Source: jax.scipy.special.bessel_jn; DLMF 10.6.1.

    >>> gg.evaluate(gg.special.bessel_jn(1.0, v=2)).round(4)
    array([0.7652, 0.4401, 0.1149])
    """
    if whole("v", v) < 0:
        raise ValueError(f"bessel_jn counts orders from 0, got v={v}")
    z = as_tensor(z)
    return stack([jv(float(n), z) for n in range(v + 1)])


def sph_harm_y(n: int, m: int, theta: TensorLike, phi: TensorLike, /) -> Tensor:
    """The spherical harmonic of degree n and order m, with the Condon-Shortley phase.

    It is the Legendre function of cos(theta), of which the integral of the square over the sphere
    is 1, times exp(i m phi).

    Parameters:
        n, m: known integers, n >= 0; of |m| > n it is 0.
        theta: the angle from the pole; floating, ints and bools become float64.
        phi: the angle around it; the shapes broadcast.

    Returns: complex, the broadcast shape.

    Raises: ValueError for n < 0; ShapeError if the shapes do not broadcast; DTypeError for complex
        angles.

    Gradient: that of the sums and products of its recurrence, for theta and phi.

    Source: scipy.special.sph_harm_y; the recurrence is that of Holmes and Featherstone 2002, "A
        unified approach to the Clenshaw summation", eq. 11.

    >>> gg.evaluate(gg.special.sph_harm_y(1, 0, [0.0], 0.0)).round(4)
    array([0.4886+0.j])
    """
    if whole("n", n) < 0:
        raise ValueError(f"degrees of spherical harmonics count from 0, got {n}")
    theta, phi = promoted(theta, phi, floating=True)
    if not is_floating(theta.dtype):
        raise DTypeError(f"sph_harm_y takes real angles, got {theta.type!r}")
    turn = multiply(phi, float(whole("m", m)))
    size = _legendre(n, abs(m), theta)
    if m < 0 and m % 2:
        size = -size
    return size * cos(turn) + 1j * (size * sin(turn))


def _legendre(n: int, m: int, theta: Tensor) -> Tensor:
    """The normalised Legendre function, m >= 0: the degrees from m to n, one after the other."""
    if m > n:
        return multiply(theta, 0.0)
    x = cos(theta)
    one = math.sqrt(1 / (4 * math.pi))
    for k in range(1, m + 1):
        one *= -math.sqrt((2 * k + 1) / (2 * k))
    before, last = multiply(x, 0.0), one * sin(theta) ** m if m else one + 0.0 * x
    for k in range(m + 1, n + 1):
        a = math.sqrt((2 * k + 1) * (2 * k - 1) / ((k - m) * (k + m)))
        b = 0.0
        if k > m + 1:
            b = (2 * k + 1) * (k + m - 1) * (k - m - 1) / ((k - m) * (k + m) * (2 * k - 3))
        before, last = last, a * x * last - math.sqrt(b) * before
    return last
