"""Incomplete gamma and beta functions and their inverses, with gradients for every argument."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Samples,
    Tensor,
    TensorLike,
    apply,
    np,
    promoted,
    wants,
)
from ..documented import documented
from ..elementwise.exponential import exp, log, log1p
from ..families import floating_binary
from .betas import betaln
from .gammas import Digamma, PolyGamma, gammaln
from .information import xlog1py, xlogy
from .scipy_functions import OfScipy, ScipyBinary, need_scipy, scipy_special

__all__ = [
    "betainc",
    "betaincinv",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
]

_NODES = np.arange(-128, 129) / 32
"""Of the trapezoidal rule after the substitution s = exp(pi/2 sinh u) [Takahasi and Mori 1974]."""


def _bell(orders: tuple[int, ...], cumulant: Callable[[tuple[int, ...]], Any]) -> Any:
    """The derivative of these orders of exp f, over exp f: of the derivatives of f, its cumulants.

    It is the sum over k of the ways to choose k, times cumulant(k + 1), times that of the rest.
    """
    place = next((i for i, n in enumerate(orders) if n), None)
    if place is None:
        return 1.0
    rest = tuple(n - (i == place) for i, n in enumerate(orders))
    total: Any = 0.0
    for chosen in np.ndindex(*[n + 1 for n in rest]):
        ways = math.prod(map(math.comb, rest, chosen))
        left = tuple(n - k for n, k in zip(rest, chosen, strict=True))
        with_one = tuple(k + (i == place) for i, k in enumerate(chosen))
        total = total + ways * _bell(left, cumulant) * cumulant(with_one)
    return total


def _quadrature(density: Callable[[Any], Any], start: Any, up: Any) -> Any:
    """The integral of a density from start on, upwards or downwards; minus that if upwards."""
    offset = np.exp(np.pi / 2 * np.sinh(_NODES))
    weights = offset * (np.pi / 2) * np.cosh(_NODES) / 32
    direction = np.where(up, 1.0, -1.0)
    s = start[..., None] + direction[..., None] * offset
    return -direction * np.sum(np.nan_to_num(density(s)) * weights, axis=-1)


class GammaInc(OfScipy):
    """z = P(a, x), or its derivative of this order by a.

    Gradient: dx = dz * exp(-x) x**(a-1) / gamma(a) [DLMF 8.8.13]; da by quadrature of d/da of
        the integrand, of any order.

    With s = log x, P is the integral of exp(a s - exp(s) - log gamma(a)) up to s, and those of
    its derivatives add up to 0: they are taken over the side that keeps one sign at order 1.
    """

    order: int = 0
    scipy = "gammainc"
    upper = False

    def kernel(self, xp: Any, a: Any, x: Any) -> Any:
        if not self.order:
            name = "gammaincc" if self.upper else "gammainc"
            return np.asarray(getattr(need_scipy(name), name)(a, x)).astype(x.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(self._integral(a, x)).astype(x.dtype)

    def _integral(self, a: Any, x: Any) -> Any:
        lib = need_scipy("gammainc")
        a, x = np.broadcast_arrays(np.asarray(a, "float64"), np.asarray(x, "float64"))
        shape = a[..., None]
        moments = [lib.polygamma(n, a)[..., None] for n in range(self.order)]
        log_gamma = lib.gammaln(shape)

        def density(s: Any) -> Any:
            made = _bell((self.order,), lambda k: (s if k == (1,) else 0.0) - moments[k[0] - 1])
            return np.exp(shape * s - np.exp(s) - log_gamma) * made

        start = np.log(x)
        made = _quadrature(density, start, start > moments[0][..., 0])
        made = np.where((x == 0) | (x == np.inf), 0.0, made)
        return np.where((a > 0) & (x >= 0), -made if self.upper else made, np.nan)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        a, x = node.inputs
        return (
            dz * apply(self.replace(order=self.order + 1), a, x) if wants(a) else NO_GRAD,
            dz * self._by_x(a, x) if wants(x) else NO_GRAD,
        )

    def _by_x(self, a: Tensor, x: Tensor) -> Tensor:
        density = exp(xlogy(a - 1.0, x) - x - gammaln(a))
        made = _bell((self.order,), lambda k: _log_if(k == (1,), x) - _polygamma(k[0] - 1, a))
        slope: Tensor = (-density if self.upper else density) * made
        return slope

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (0, 1) if scipy_special else ():
            yield cls(order), [rng.uniform(0.5, 3.0, size=s) for s in ((2, 3), (3,))]


class GammaIncC(GammaInc):
    """z = Q(a, x) = 1 - P(a, x), or its derivative by a.

    Gradient: that of gammainc with the other sign.
    """

    scipy = "gammaincc"
    upper = True


class BetaInc(OfScipy):
    """z = I_x(a, b), or its derivative of these orders by a and b.

    Gradient: dx = dz * x**(a-1) (1-x)**(b-1) / beta(a, b); da, db by quadrature of the
        derivatives of the integrand, of any order.

    With t = 1 / (1 + exp(-s)), I is the integral of t**a (1-t)**b / beta(a, b) over s; its
    derivatives add up to 0, as those of GammaInc.
    """

    of_a: int = 0
    of_b: int = 0
    scipy = "betainc"

    def kernel(self, xp: Any, a: Any, b: Any, x: Any) -> Any:
        if not self.of_a + self.of_b:
            return np.asarray(need_scipy("betainc").betainc(a, b, x)).astype(x.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(self._integral(a, b, x)).astype(x.dtype)

    def _integral(self, a: Any, b: Any, x: Any) -> Any:
        lib = need_scipy("betainc")
        a, b, x = np.broadcast_arrays(*[np.asarray(t, "float64") for t in (a, b, x)])
        first, second = a[..., None], b[..., None]
        scale = lib.betaln(first, second)

        def polygamma(n: int, t: Any) -> Any:
            return lib.polygamma(n, t) if n else lib.digamma(t)

        def density(s: Any) -> Any:
            log_t, log_u = -np.logaddexp(0, -s), -np.logaddexp(0, s)
            made = self._terms(first, second, log_t, log_u, polygamma)
            return np.exp(first * log_t + second * log_u - scale) * made

        root = lib.digamma(a) - lib.digamma(a + b)
        other = lib.digamma(b) - lib.digamma(a + b)
        up = np.log(x) > root if self.of_a else np.log1p(-x) < other
        made = np.where((x == 0) | (x == 1), 0.0, _quadrature(density, lib.logit(x), up))
        return np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), made, np.nan)

    def _terms(self, a: Any, b: Any, log_t: Any, log_u: Any, polygamma: Callable[..., Any]) -> Any:
        def cumulant(k: tuple[int, ...]) -> Any:
            i, j = k
            n = i + j - 1
            both = polygamma(n, a + b)
            if i and j:
                return both
            own = both - polygamma(n, a if i else b)
            return own if n else own + (log_t if i else log_u)

        return _bell((self.of_a, self.of_b), cumulant)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        a, b, x = node.inputs
        by_a, by_b = self.replace(of_a=self.of_a + 1), self.replace(of_b=self.of_b + 1)
        return (
            dz * apply(by_a, a, b, x) if wants(a) else NO_GRAD,
            dz * apply(by_b, a, b, x) if wants(b) else NO_GRAD,
            dz * self._by_x(a, b, x) if wants(x) else NO_GRAD,
        )

    def _by_x(self, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        density = exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))
        if not self.of_a + self.of_b:
            return density
        slope: Tensor = density * self._terms(a, b, log(x), log1p(-x), _polygamma)
        return slope

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for orders in ((0, 0), (1, 0), (0, 1)) if scipy_special else ():
            sizes = (((2, 3), 3.0), ((3,), 3.0), ((), 0.9))
            yield cls(*orders), [rng.uniform(0.3, most, size=s) for s, most in sizes]


def _polygamma(n: int, x: Tensor) -> Tensor:
    """digamma for n = 0."""
    return apply(PolyGamma(n) if n else Digamma(), x)


def _log_if(wanted: bool, x: Tensor) -> Any:
    return log(x) if wanted else 0.0


class GammaIncInv(ScipyBinary):
    """x with P(a, x) = y.

    Gradient: dy = dx / p with p = exp(-x) x**(a-1) / gamma(a), da = -dx * (d P / d a) / p.
    """

    scipy = "gammaincinv"
    upper = False
    domain = (0.2, 0.8)

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        a, _ = node.inputs
        (x,) = node.outputs
        kind = GammaIncC if self.upper else GammaInc
        by_y = dx / kind(0)._by_x(a, x)
        return -(by_y * apply(kind(1), a, x)) if wants(a) else NO_GRAD, by_y


class GammaIncCInv(GammaIncInv):
    """x with Q(a, x) = y.

    Gradient: dy = -dx / p with p = exp(-x) x**(a-1) / gamma(a), da = dx * (d Q / d a) / p.
    """

    scipy = "gammainccinv"
    upper = True


class BetaIncInv(OfScipy):
    """x with I_x(a, b) = y.

    Gradient: dy = dx / p with p = x**(a-1) (1-x)**(b-1) / beta(a, b), da = -dx * (d I / d a) /
        p, db likewise.
    """

    scipy = "betaincinv"

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        a, b, _ = node.inputs
        (x,) = node.outputs
        by_y = dx / BetaInc(0, 0)._by_x(a, b, x)
        return (
            -(by_y * apply(BetaInc(1, 0), a, b, x)) if wants(a) else NO_GRAD,
            -(by_y * apply(BetaInc(0, 1), a, b, x)) if wants(b) else NO_GRAD,
            by_y,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        if scipy_special:
            yield cls(), [rng.uniform(0.5, 2.0, size=s) for s in ((2, 3), (3,))] + [np.array(0.4)]


@documented(GammaInc)
def gammainc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) [DLMF 8.2.4], element by element.

    Parameters:
        a, x: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.gammainc.

    >>> gg.evaluate(gg.special.gammainc(2.0, [1.0, 3.0])).round(4)
    array([0.2642, 0.8009])
    """
    need_scipy("gammainc")
    return floating_binary(GammaInc(0), a, x)


@documented(GammaIncC)
def gammaincc(a: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) [DLMF 8.2.4], element by element.

    Parameters:
        a, x: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.gammaincc.

    >>> gg.evaluate(gg.special.gammaincc(2.0, [1.0, 3.0])).round(4)
    array([0.7358, 0.1991])
    """
    need_scipy("gammaincc")
    return floating_binary(GammaIncC(0), a, x)


@documented(GammaIncInv)
def gammaincinv(a: TensorLike, y: TensorLike, /) -> Tensor:
    """The x with gammainc(a, x) = y, element by element.

    Parameters:
        a, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.gammaincinv.

    >>> gg.evaluate(gg.special.gammaincinv(2.0, [0.1, 0.5])).round(4)
    array([0.5318, 1.6783])
    """
    need_scipy("gammaincinv")
    return floating_binary(GammaIncInv(), a, y)


@documented(GammaIncCInv)
def gammainccinv(a: TensorLike, y: TensorLike, /) -> Tensor:
    """The x with gammaincc(a, x) = y, element by element.

    Parameters:
        a, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.gammainccinv.

    >>> gg.evaluate(gg.special.gammainccinv(2.0, [0.1, 0.5])).round(4)
    array([3.8897, 1.6783])
    """
    need_scipy("gammainccinv")
    return floating_binary(GammaIncCInv(), a, y)


@documented(BetaInc)
def betainc(a: TensorLike, b: TensorLike, x: TensorLike, /) -> Tensor:
    """The regularised incomplete beta function I_x(a, b) [DLMF 8.17.2], element by element.

    Parameters:
        a, b, x: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.betainc.

    >>> gg.evaluate(gg.special.betainc(2.0, 3.0, [0.25, 0.5])).round(4)
    array([0.2617, 0.6875])
    """
    need_scipy("betainc")
    return apply(BetaInc(0, 0), *promoted(a, b, x, floating=True))


@documented(BetaIncInv)
def betaincinv(a: TensorLike, b: TensorLike, y: TensorLike, /) -> Tensor:
    """The x with betainc(a, b, x) = y, element by element.

    Parameters:
        a, b, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: x, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.betaincinv.

    >>> gg.evaluate(gg.special.betaincinv(2.0, 3.0, [0.25, 0.5])).round(4)
    array([0.243 , 0.3857])
    """
    need_scipy("betaincinv")
    return apply(BetaIncInv(), *promoted(a, b, y, floating=True))
