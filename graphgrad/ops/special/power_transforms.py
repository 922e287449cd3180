"""Box-Cox transforms."""

from __future__ import annotations

from ..base import NO_GRAD, Any, Gradients, Node, Tensor, TensorLike, apply, np, wants
from ..documented import documented
from ..elementwise.exponential import exp, log, log1p
from ..elementwise.logic import less, where
from ..elementwise.powers import square
from ..families import floating_binary
from .hypergeometric import Hyp1F1
from .scipy_functions import ScipyBinary, need_scipy

__all__ = [
    "boxcox",
    "boxcox1p",
]


class BoxCox(ScipyBinary):
    """y = (x**lmbda - 1) / lmbda, log(x) at lmbda = 0.

    Gradient: dx = dy * x**(lmbda - 1), dlmbda = dy * log(x)**2 * the integral of t x**(t lmbda)
        from 0 to 1, which is 1F1(2; 3; lmbda log(x)) / 2 and loses no digits near lmbda = 0.
    """

    scipy = "boxcox"

    def log(self, x: Tensor) -> Tensor:
        """The transform of power 0."""
        return log(x)

    def formula(self, xp: Any, x: Any, p: Any) -> Any:
        """(exp(p u) - 1) / p, and u where p is 0, of the logarithm u."""
        u = (xp.log if type(self) is BoxCox else xp.log1p)(x)
        return xp.where(p == 0, u, xp.expm1(p * u) / xp.where(p == 0, 1.0, p))

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
    """y = ((1 + x)**lmbda - 1) / lmbda, log1p(x) at lmbda = 0: BoxCox of 1 + x, exact for small x.

    Gradient: dx = dy * (1 + x)**(lmbda - 1); of lmbda as of boxcox.
    """

    scipy = "boxcox1p"

    def log(self, x: Tensor) -> Tensor:
        """The transform of power 0."""
        return log1p(x)


@documented(BoxCox)
def boxcox(x: TensorLike, lmbda: TensorLike, /) -> Tensor:
    """The Box-Cox transform of x: (x**lmbda - 1) / lmbda, or log(x) where lmbda is 0.

    Parameters: x, lmbda: shapes that broadcast; floating, ints and bools become float64.

    Returns: the broadcast shape, the promoted dtype; NaN where x < 0.

    Source: scipy.special.boxcox.

    >>> gg.evaluate(gg.special.boxcox([1.0, 4.0], 0.5))
    array([0., 2.])
    """
    need_scipy("boxcox")
    return floating_binary(BoxCox(), x, lmbda)


@documented(BoxCox1p)
def boxcox1p(x: TensorLike, lmbda: TensorLike, /) -> Tensor:
    """The Box-Cox transform of 1 + x: ((1 + x)**lmbda - 1) / lmbda, or log1p(x) where lmbda is 0.

    Parameters: x, lmbda: shapes that broadcast; floating, ints and bools become float64.

    Returns: the broadcast shape, the promoted dtype; NaN where x < -1.

    Source: scipy.special.boxcox1p.

    >>> gg.evaluate(gg.special.boxcox1p([0.0, 3.0], 0.5))
    array([0., 2.])
    """
    need_scipy("boxcox1p")
    return floating_binary(BoxCox1p(), x, lmbda)
