"""The beta function and binomial coefficients."""

from __future__ import annotations

from ...base.errors import DTypeError
from ...base.flags import truth
from ..base import NO_GRAD, Any, Gradients, Node, Tensor, TensorLike, is_floating, promoted, wants
from ..documented import documented
from ..elementwise.logic import equal, less_equal, where
from ..families import floating_binary
from . import elementary
from .gammas import digamma_difference
from .scipy_functions import ScipyBinary, need_scipy

__all__ = [
    "beta",
    "betaln",
    "binom",
    "comb",
]


def _log_beta(xp: Any, a: Any, b: Any) -> Any:
    """log |beta(a, b)|."""
    first, second, both = (elementary.log_gamma(xp, x) for x in (a, b, a + b))
    return first + second - both


class Beta(ScipyBinary):
    """z = gamma(a) gamma(b) / gamma(a + b).

    Gradient: da = dz * z * (digamma(a) - digamma(a + b)), db likewise.
    """

    scipy = "beta"

    def formula(self, xp: Any, a: Any, b: Any) -> Any:
        """By its logarithm and its sign."""
        sign = [elementary.gamma_sign(xp, x) for x in (a, b, a + b)]
        return sign[0] * sign[1] * sign[2] * xp.exp(_log_beta(xp, a, b))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        a, b = node.inputs
        scaled = dz * node.outputs[0]
        return (
            -scaled * digamma_difference(a, b) if wants(a) else NO_GRAD,
            -scaled * digamma_difference(b, a) if wants(b) else NO_GRAD,
        )


class BetaLn(ScipyBinary):
    """z = log |beta(a, b)|. Gradient: da = dz * (digamma(a) - digamma(a + b)), db likewise."""

    scipy = "betaln"

    def formula(self, xp: Any, a: Any, b: Any) -> Any:
        """By logarithms of gamma functions."""
        return _log_beta(xp, a, b)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        a, b = node.inputs
        return (
            -dz * digamma_difference(a, b) if wants(a) else NO_GRAD,
            -dz * digamma_difference(b, a) if wants(b) else NO_GRAD,
        )


class Binomial(ScipyBinary):
    """y = gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)).

    Gradient: dn = dy * y * (digamma(n + 1) - digamma(n - k + 1)), dk = dy * y * (digamma(n - k
        + 1) - digamma(k + 1)).
    """

    scipy = "binom"

    def formula(self, xp: Any, n: Any, k: Any) -> Any:
        """1 / ((n + 1) beta(n - k + 1, k + 1))."""
        a, b = n - k + 1.0, k + 1.0
        sign = [elementary.gamma_sign(xp, x) for x in (a, b, a + b)]
        return sign[0] * sign[1] * sign[2] * xp.exp(-_log_beta(xp, a, b)) / (n + 1.0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        n, k = node.inputs
        scaled = dy * node.outputs[0]
        return (
            scaled * digamma_difference(n - k + 1.0, k) if wants(n) else NO_GRAD,
            scaled * digamma_difference(k + 1.0, n - 2.0 * k) if wants(k) else NO_GRAD,
        )


@documented(Beta)
def beta(a: TensorLike, b: TensorLike, /) -> Tensor:
    """The beta function gamma(a) gamma(b) / gamma(a + b) [DLMF 5.12.1], element by element.

    Parameters:
        a, b: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.beta.

    >>> gg.evaluate(gg.special.beta(2.0, [1.0, 3.0])).round(4)
    array([0.5   , 0.0833])
    """
    need_scipy("beta")
    return floating_binary(Beta(), a, b)


@documented(BetaLn)
def betaln(a: TensorLike, b: TensorLike, /) -> Tensor:
    """z = log |beta(a, b)|, element by element.

    Parameters:
        a, b: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.betaln.

    >>> gg.evaluate(gg.special.betaln(2.0, [1.0, 3.0])).round(4)
    array([-0.6931, -2.4849])
    """
    need_scipy("betaln")
    return floating_binary(BetaLn(), a, b)


@documented(Binomial)
def binom(n: TensorLike, k: TensorLike, /) -> Tensor:
    """The binomial coefficient n over k of real numbers, element by element.

    Parameters:
        n, k: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.binom.

    >>> gg.evaluate(gg.special.binom(5.0, [1.0, 2.0])).round(4)
    array([ 5., 10.])
    """
    need_scipy("binom")
    return floating_binary(Binomial(), n, k)


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
    truth("exact", exact)
    truth("repetition", repetition)
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
