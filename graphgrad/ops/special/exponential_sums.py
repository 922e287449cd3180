"""Logarithms of sums of exponentials, and the softmax under SciPy's name."""

from __future__ import annotations

import math

from ...base.flags import truth
from ..base import Any, Tensor, TensorLike, promoted
from ..create.creation import zeros_like
from ..elementwise.complex_parts import real
from ..elementwise.exponential import exp, log
from ..elementwise.logic import equal, isfinite, where
from ..elementwise.magnitudes import abs, sign
from ..reduce import reductions
from ..shape.reshaping import squeeze
from ..sources import stop_gradient

__all__ = [
    "log_softmax",
    "logsumexp",
    "softmax",
]


def logsumexp(
    a: TensorLike,
    axis: Any = None,
    b: TensorLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """y = log(sum(b * exp(a))) over axes, without overflow.

    Parameters:
        a: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        b: factors, of a shape that broadcasts with that of a; None: 1. A term with 0 is 0.
        keepdims: whether the axes stay, with length 1.
        return_sign: whether the sum may be negative or complex: y is the logarithm of its modulus.

    Returns: y, a without the axes, or with length 1 there; -inf over nothing, NaN where the sum is
        negative. With return_sign, y and the sign of the sum.

    Raises: ShapeError if a has no such axis or b does not broadcast.

    Gradient: da = dy * b * exp(a - y) * the sign, db = dy * exp(a - y) * the sign.

    Source: scipy.special.logsumexp.

    >>> gg.evaluate(gg.special.logsumexp([99.0, 99.0], b=[1.0, 2.0])).round(4)
    np.float64(100.0986)
    """
    truth("keepdims", keepdims)
    truth("return_sign", return_sign)
    if b is None and not return_sign:
        return reductions.logsumexp(a, axis, keepdims)
    a, b = promoted(a, 1.0 if b is None else b, floating=True)
    a = a + zeros_like(b)
    shown = where(equal(b, 0), -math.inf, a)
    most = reductions.max(real(stop_gradient(shown)), axis, keepdims=True)
    most = where(isfinite(most), most, 0.0)
    total = reductions.sum(b * exp(where(equal(b, 0), 0.0, a - most)), axis, keepdims=True)
    axes = () if keepdims else reductions.normal_axes(axis, a.ndim)
    y = squeeze(log(abs(total) if return_sign else total) + most, axes)
    return (y, squeeze(sign(total), axes)) if return_sign else y


def log_softmax(x: TensorLike, axis: Any = None) -> Tensor:
    """y = log(softmax(x)) over axes, without overflow or log of zero.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis.

    Gradient: dx = dy - exp(y) * sum(dy), the sum over the axes.

    Source: scipy.special.log_softmax.

    >>> gg.evaluate(gg.special.log_softmax([0.0, 0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    shifted, _, total = _exponentials(x, axis)
    return shifted - log(total)


def softmax(x: TensorLike, axis: Any = None) -> Tensor:
    """y = exp(x) / sum(exp(x)) over axes, without overflow; nn.softmax is that over one.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis.

    Gradient: dx = y * (dy - sum(dy * y)), the sum over the axes.

    Source: scipy.special.softmax.

    >>> gg.evaluate(gg.special.softmax([0.0, 0.0]))
    array([0.5, 0.5])
    """
    _, e, total = _exponentials(x, axis)
    return e / total


def _exponentials(x: TensorLike, axis: Any) -> tuple[Tensor, Tensor, Tensor]:
    """x less its largest (real part, if finite) over axes; e to that; the sum of these."""
    (x,) = promoted(x, floating=True)
    most = reductions.max(real(stop_gradient(x)), axis, keepdims=True, initial=-math.inf)
    shifted = x - where(isfinite(most), most, 0.0)
    e = exp(shifted)
    return shifted, e, reductions.sum(e, axis, keepdims=True)
