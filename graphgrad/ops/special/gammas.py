"""The gamma function, its logarithm, the derivatives of that, factorials."""

from __future__ import annotations

import math

from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Derivative,
    Gradients,
    Node,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    apply,
    kind_of,
    np,
    promoted,
    wants,
    whole,
)
from ..documented import documented
from ..elementwise.arithmetic import multiply
from ..elementwise.logic import greater, less, where
from ..families import RealUnary, floating_binary, floating_unary
from . import elementary
from .complex_gammas import ComplexGamma, ComplexLogGamma, ComplexPolyGamma
from .scipy_functions import (
    OfOrders,
    ScipyBinary,
    ScipyUnary,
    is_order,
    need_scipy,
    of_either,
    of_integers,
    scipy_special,
)

__all__ = [
    "digamma",
    "factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "loggamma",
    "multigammaln",
    "poch",
    "polygamma",
]


class GammaLn(RealUnary):
    """y = log |gamma(x)|, by SciPy. Gradient: dx = dy * digamma(x) [DLMF 5.2.2]."""

    domain = (0.5, 3.0)
    scipy = "gammaln"
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("gammaln").gammaln(x).astype(x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(elementary.log_gamma, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(Digamma(), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return super().samples(rng) if scipy_special else iter(())


class Digamma(GammaLn):
    """y = the derivative of gammaln at x, by SciPy.

    Gradient: dx = dy * polygamma(1, x) [DLMF 5.15].
    """

    scipy = "digamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("digamma").digamma(x).astype(x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(elementary.digamma, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(1), node.inputs[0])),)


class PolyGamma(RealUnary):
    """y = the derivative of order n of digamma at x, by SciPy.

    Gradient: dx = dy * polygamma(n + 1, x).
    """

    order: int
    domain = (0.5, 3.0)
    scipy = "polygamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("polygamma").polygamma(self.order, x).astype(x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """(-1)**(n + 1) n! zeta(n + 1, x) [DLMF 25.11.12]."""
        n = self.order
        factor = float((-1) ** (n + 1) * math.factorial(n))
        return to.in_double(lambda xp, x: factor * elementary.hurwitz(xp, n + 1.0, x), x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(self.order + 1), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (1, 2) if scipy_special else ():
            yield cls(order), [rng.uniform(*cls.domain, size=(2, 3))]


class PolyGammaOfOrders(OfOrders):
    """y = the derivative of order n of digamma at x, of tensors.

    Gradient: dx = dy * polygamma(n + 1, x); none by n.
    """

    to_onnx = OfOrders.to_onnx

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        n, x = arrays
        return np.asarray(need_scipy("polygamma").polygamma(n, x)).astype(x.dtype)

    def slope(self, *inputs: Tensor) -> Tensor:
        n, x = inputs
        return apply(self, n + 1, x)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in ((3,), (2, 3)) if scipy_special else ():
            yield cls(), [np.array([0, 1, 2]), rng.uniform(0.5, 3.0, size=shape)]


class PolyGammaDifference(ScipyBinary):
    """z = psi_n(x + y) - psi_n(x), psi_n the derivative of this order of digamma.

    Gradient: dx = dz * (psi_(n+1)(x + y) - psi_(n+1)(x)), dy = dz * psi_(n+1)(x + y). Where x
        and x + y are positive, no digit is lost however near they are.
    """

    order: int = 0
    scipy = "polygamma"
    to_onnx = ScipyBinary.to_onnx

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        n, psi = self.order, need_scipy("polygamma").polygamma
        a, b = (np.asarray(t, np.float64) for t in (x, y))
        positive = (a > 0) & (a + b > 0) & np.isfinite(a + b)
        z = psi(n, a + b) - psi(n, a)
        a, b = (np.where(positive, t, 1.0) for t in (a, b))
        return np.where(positive, elementary.polygamma_difference(np, n, a, b), z).astype(x.dtype)

    def formula(self, xp: Any, x: Any, y: Any) -> Any:
        """That of a series; of digamma elsewhere too."""
        positive = (x > 0) & (x + y > 0)
        a, b = (xp.where(positive, t, 1.0) for t in (x, y))
        z = math.nan if self.order else elementary.digamma(xp, x + y) - elementary.digamma(xp, x)
        return xp.where(positive, elementary.polygamma_difference(xp, self.order, a, b), z)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        n = self.order + 1
        return (
            dz * apply(PolyGammaDifference(n), x, y) if wants(x) else NO_GRAD,
            dz * apply(PolyGamma(n), x + y) if wants(y) else NO_GRAD,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (0, 1) if scipy_special else ():
            yield cls(order), [rng.uniform(*cls.domain, size=s) for s in ((2, 3), (3,))]


def digamma_difference(x: Tensor, y: Tensor) -> Tensor:
    """digamma(x + y) - digamma(x), without cancellation where both are positive."""
    return apply(PolyGammaDifference(0), x, y)


class Gamma(ScipyUnary):
    """y = gamma(x). Gradient: dx = dy * y * digamma(x) [DLMF 5.2.2]."""

    scipy = "gamma"
    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """By its logarithm and its sign."""
        return elementary.gamma_sign(xp, x) * xp.exp(elementary.log_gamma(xp, x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * (y * digamma(x)),)


class GammaSign(ScipyUnary):
    """y = the sign of gamma(x). Gradient: zero, the result is a step."""

    scipy = "gammasgn"
    domain = (0.5, 3.0)
    traits = Traits(stepwise=True)

    def formula(self, xp: Any, x: Any) -> Any:
        """Minus for an odd number of steps below 0."""
        return elementary.gamma_sign(xp, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)


class Pochhammer(ScipyBinary):
    """y = gamma(z + m) / gamma(z).

    Gradient: dz = dy * y * (digamma(z + m) - digamma(z)), dm = dy * y * digamma(z + m).
    """

    scipy = "poch"

    def formula(self, xp: Any, z: Any, m: Any) -> Any:
        """By logarithms and signs."""
        sign = elementary.gamma_sign(xp, z + m) * elementary.gamma_sign(xp, z)
        return sign * xp.exp(elementary.log_gamma(xp, z + m) - elementary.log_gamma(xp, z))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        z, m = node.inputs
        scaled = dy * node.outputs[0]
        return (
            scaled * digamma_difference(z, m) if wants(z) else NO_GRAD,
            scaled * digamma(z + m) if wants(m) else NO_GRAD,
        )


@documented(GammaLn)
def gammaln(x: TensorLike, /) -> Tensor:
    """y = log |gamma(x)|, element by element.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.gammaln.

    >>> gg.evaluate(gg.special.gammaln([1.0, 5.0])).round(4)
    array([0.    , 3.1781])
    """
    need_scipy("gammaln")
    return floating_unary(GammaLn(), x)


@documented(Digamma)
def digamma(x: TensorLike, /) -> Tensor:
    """The derivative of gammaln: y = gamma'(x) / gamma(x) [DLMF 5.2.2], element by element.

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Raises: GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.digamma.

    >>> gg.evaluate(gg.special.digamma([1.0, 2.0])).round(4)
    array([-0.5772,  0.4228])
    """
    need_scipy("digamma")
    return of_either(Digamma(), ComplexPolyGamma(0), x)


@documented(PolyGamma)
def polygamma(n: TensorLike, x: TensorLike, /) -> Tensor:
    """The derivative of order n of digamma [DLMF 5.15], element by element.

    Parameters:
        n: an int >= 0, or ints that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; NaN where a tensor n is below 0.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x is complex, or n a tensor of
        other numbers than integers; TypeError for another n that is not an int, ValueError if n <
        0; GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.polygamma.

    >>> gg.evaluate(gg.special.polygamma(1, [1.0, 2.0])).round(4)
    array([1.6449, 0.6449])
    """
    need_scipy("polygamma")
    if is_order(n):
        return of_integers("polygamma", PolyGammaOfOrders(), n, x)
    n = whole("the order of polygamma", n)
    if n < 0:
        raise ValueError(f"polygamma takes an order n >= 0, got {n}")
    return floating_unary(PolyGamma(n), x) if n else digamma(x)


@documented(Gamma)
def gamma(x: TensorLike, /) -> Tensor:
    """The gamma function [DLMF 5.2.1], element by element.

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Raises: GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.gamma.

    >>> gg.evaluate(gg.special.gamma([0.5, 5.0])).round(4)
    array([ 1.7725, 24.    ])
    """
    need_scipy("gamma")
    return of_either(Gamma(), ComplexGamma(), x)


@documented(GammaSign)
def gammasgn(x: TensorLike, /) -> Tensor:
    """The sign of the gamma function, element by element.

    Source: scipy.special.gammasgn.

    >>> gg.evaluate(gg.special.gammasgn([0.5, -0.5])).round(4)
    array([ 1., -1.])
    """
    need_scipy("gammasgn")
    return floating_unary(GammaSign(), x)


def factorial(n: TensorLike, /) -> Tensor:
    """n! = gamma(n + 1), element by element; 0 for n < 0.

    Parameters: n: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of n.

    Raises: DTypeError if n is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dn = dy * y * digamma(n + 1).

    Source: scipy.special.factorial(exact=False).

    >>> gg.evaluate(gg.special.factorial([0, 1, 5])).round(4)
    array([  1.,   1., 120.])
    """
    need_scipy("factorial")
    (n,) = promoted(n, floating=True)
    below = less(n, 0)
    return where(below, 0.0, apply(Gamma(), where(below, 0.0, n) + 1.0))


def multigammaln(a: TensorLike, d: int, /) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension d, element by element.

    Parameters:
        a: any shape; floating, ints and bools become float64; NaN unless a > (d - 1) / 2.
        d: an int >= 1.

    Returns: y, of the shape and dtype of a.

    Raises: DTypeError if a is complex; TypeError if d is not an int, ValueError if d < 1;
        GraphGradError without SciPy (the extra `scipy`).

    Gradient: da = dy * the sum of digamma(a + (1 - j) / 2) over j = 1 ... d.

    Source: scipy.special.multigammaln.

    >>> gg.evaluate(gg.special.multigammaln([2.0, 3.0], 2)).round(4)
    array([0.4516, 1.5502])
    """
    need_scipy("multigammaln")
    d = whole("the dimension of multigammaln", d)
    if d < 1:
        raise ValueError(f"multigammaln takes a dimension d >= 1, got {d}")
    (a,) = promoted(a, floating=True)
    y = gammaln(a)
    for j in range(1, d):
        y = y + gammaln(a - 0.5 * j)
    y = y + d * (d - 1) / 4 * math.log(math.pi)
    return where(greater(a, (d - 1) / 2), y, math.nan)


@documented(Pochhammer)
def poch(z: TensorLike, m: TensorLike, /) -> Tensor:
    """Pochhammer's symbol gamma(z + m) / gamma(z) [DLMF 5.2.5], element by element.

    Parameters:
        z, m: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.poch.

    >>> gg.evaluate(gg.special.poch(2.0, [1.0, 3.0])).round(4)
    array([ 2., 24.])
    """
    need_scipy("poch")
    return floating_binary(Pochhammer(), z, m)


@documented(GammaLn)
def loggamma(x: TensorLike, /) -> Tensor:
    """The logarithm of the gamma function, element by element.

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Returns: y, shape and dtype of x. Of real x, NaN where x < 0 and infinity at 0; of complex x the
        branch that is real on the positive axis, with a cut along the negative one. gammaln is log
        |gamma(x)|.

    Raises: GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.loggamma.

    >>> gg.evaluate(gg.special.loggamma([1.0, 3.0])).round(4)
    array([0.    , 0.6931])
    """
    (x,) = promoted(x, floating=True)
    if kind_of(x.dtype) == "c":
        return of_either(GammaLn(), ComplexLogGamma(), x)
    negative = less(x, 0.0)
    return where(negative, np.nan, gammaln(where(negative, 1.0, x)))
