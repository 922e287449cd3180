"""The inverse Gaussian (Wald) distribution, with implicit gradients of every order."""

from __future__ import annotations

import math

from ...base.domains import POSITIVE
from ...ir.types import alike
from ..base import (
    NO_GRAD,
    Any,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    cast,
    np,
    wants,
)
from ..demands import number
from ..elementwise.exponential import sqrt
from ..elementwise.logic import less, where
from ..special.error import erfcx
from .continuous import drawn, floating
from .draws import RandomNormal, RandomUniform
from .gammas import filled
from .keys import key_of

__all__ = ["wald"]


class WaldNumber(Op):
    """y = x, a number of Wald's distribution of this mean m and scale s, whose rank stays when they
    move.

    Gradient: dm = dy * y_m, ds = dy * (y - m y_m) / s with y_m = -(dF/dm) / (dF/dy), and that
        is sqrt(2 pi s y**3) / m**2 * erfcx(sqrt(s / (2 y)) (y / m + 1)). F is that of [Chhikara and
        Folks 1989, "The inverse Gaussian distribution"].
    """

    memory = Memory(view=True)

    def infer(self, x: TensorType, mean: TensorType, scale: TensorType) -> Types:
        made = alike(x, mean, scale)
        if made is None or made.dtype.name != "float64":
            raise DTypeError(
                f"WaldNumber takes float64 of one shape, got {x!r}, {mean!r}, {scale!r}"
            )
        return (made,)

    def kernel(self, xp: Any, x: Any, mean: Any, scale: Any) -> Any:
        return x

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (_, m, s), (y,) = node.inputs, node.outputs
        by_mean = sqrt(2 * math.pi * s * y) * y / (m * m) * erfcx(sqrt(0.5 * s / y) * (y / m + 1.0))
        by_scale = dy * ((y - m * by_mean) / s) if wants(s) else NO_GRAD
        return NO_GRAD, dy * by_mean, by_scale

    def batch(self, batch: Any) -> Any:
        """Element by element."""
        return batch.build(self, *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return iter(())


def wald(
    shape: Any,
    mean: TensorLike,
    scale: TensorLike = 1.0,
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Times at which a Brownian motion with drift first gets somewhere: inverse Gaussian numbers.

    Parameters:
        shape: ints and lengths, or a tensor of the shape wanted.
        mean, scale: numbers above 0, or tensors that broadcast to the shape. The variance is
            mean**3 / scale.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None, or parameters that do not broadcast to them;
    DTypeError for an unsupported dtype, or a seed that is not an integer; ValueError for a number
    that is not above 0.

    Gradient: by implicit differentiation, of every order; it needs SciPy (the extra `scipy`)
    [Figurnov et al. 2018, "Implicit reparameterization gradients"].

    Source: [Michael, Schucany and Haas 1976, "Generating random variates using transformations with
    multiple roots"], with the lesser root as a quotient, which does not cancel.

    >>> y = gg.evaluate(gg.random.wald((10_000,), 2.0, 5.0, seed=1))
    >>> bool(abs(np.mean(y) - 2.0) < 0.1)
    True
    """
    number(POSITIVE, "mean", mean)
    number(POSITIVE, "scale", scale)
    kind, key = floating(dtype), key_of(seed, shape, mean, scale)
    m, s = filled(shape, mean, scale)
    z = drawn(RandomNormal, m, "float64", key, "wald")
    a = 0.5 * m * z * z / s
    lesser = 1.0 / (1.0 + a + sqrt(a * (a + 2.0)))  # of the roots by the mean; their product is 1
    u = drawn(RandomUniform, m, "float64", key, "wald root")
    x = m * where(less(u * (1.0 + lesser), 1.0), lesser, 1.0 / lesser)
    return cast(apply(WaldNumber(), x, m, s), kind)
