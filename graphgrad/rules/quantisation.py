"""Fake quantisation: numbers rounded to a grid, with gradients for the numbers and for the grid."""

from __future__ import annotations

from typing import Any

from ..base.domains import BITS, FINITE, POSITIVE, Domain
from ..base.flags import truth
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.base import TensorLike, as_tensor, cast, is_floating
from ..ops.create.creation import ones_like
from ..ops.demands import in_order, within_dtype
from ..ops.elementwise.bounds import clip
from ..ops.elementwise.exponential import sqrt
from ..ops.elementwise.logic import logical_and, where
from ..ops.elementwise.rounding import rint
from ..ops.shape.reshaping import sum_to
from ..regions.contracts import surrogate_of
from ..regions.scopes import override_gradient
from .entries import entry, rule

FAMILY = "quantisation"
SIGNED_BITS = Domain(2, 64, whole=True)


def _of(x: Tensor, domain: Domain, what: str, value: TensorLike) -> Tensor:
    """A parameter in the dtype of x; the region refuses an x that is not floating."""
    if is_floating(x.dtype):
        return within_dtype(domain, what, value, x.dtype)
    return cast(as_tensor(value, x.dtype), x.dtype)


@entry(FAMILY, "surrogate")
def fake_quantise(x: TensorLike, low: TensorLike, high: TensorLike, bits: int = 8) -> Tensor:
    """x on a grid of 2**bits values from low to high, shifted so that zero is on it.

    dx = dy where low <= x <= high, else 0; dlow = sum of dy where x < low, dhigh where x > high
    [Jacob et al. 2018, "Quantization and training of neural networks for efficient
    integer-arithmetic-only inference"].

    Parameters:
        x: any shape, floating.
        low, high: the ends of the range, finite, low < high; cast to the dtype of x, they broadcast
            to x.
        bits: how many bits a value has, an int in [1, 64].

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for an empty range, which a run raises for tensors; ShapeError if the shapes
    do not broadcast; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.fake_quantise(gg.constant([-1.0, 0.4, 2.6, 9.0]), 0.0, 3.0, bits=2))
    array([0., 0., 3., 3.])
    """
    levels = 2 ** BITS("bits", bits) - 1
    x = as_tensor(x)
    low, high = _of(x, FINITE, "low", low), _of(x, FINITE, "high", high)
    if is_floating(x.dtype):
        low, high = (as_tensor(t) for t in in_order("low", low, "high", high, strict=True))
    of_range = rule(_of_range, surrogate_of(clip), listed="fake_quantise", bits=bits)
    with override_gradient(of_range, inputs=[x, low, high]):
        step = (high - low) / levels
        zero = clip(rint(-low / step), 0, levels)
        bottom = -zero * step
        y: Tensor = bottom + step * rint((clip(x, bottom, bottom + levels * step) - bottom) / step)
    return y


def _of_range(site: Site, dy: Tensor) -> Any:
    x, low, high = site.inputs
    inside = logical_and(x >= low, x <= high)
    return (
        where(inside, dy, 0.0),
        sum_to(where(x < low, dy, 0.0), like=low),
        sum_to(where(x > high, dy, 0.0), like=high),
    )


@entry(FAMILY, "policy")
def lsq(x: TensorLike, step: TensorLike, bits: int = 8, signed: bool = True) -> Tensor:
    """x in multiples of a learned step.

    v = x / step, inside where -n <= v <= p: dx = dy inside, else 0; dstep = g * sum of dy *
    (round(v) - v inside, else -n or p), g = 1 / sqrt(count * p)
    [Esser et al. 2020, "Learned step size quantization"].

    Parameters:
        x: any shape, floating.
        step: finite and > 0; one, or one per channel by broadcasting to x; cast to its dtype.
        bits: how many bits a value has, an int in [2, 64]: n = 2**(bits - 1), p = n - 1; unsigned
            in [1, 64]: n = 0, p = 2**bits - 1.
        signed: whether there are multiples below zero.

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for a step that is not > 0, which a run raises for a tensor; ShapeError if
    the shapes do not broadcast; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.lsq(gg.constant([-9.0, 0.3, 0.8]), 0.5, bits=3))
    array([-2. ,  0.5,  1. ])
    """
    truth("signed", signed)
    (SIGNED_BITS if signed else BITS)("bits", bits)
    n, p = (2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    x = as_tensor(x)
    step = _of(x, POSITIVE, "step", step)

    def lsq(site: Site, dy: Tensor) -> Any:
        x, step = site.inputs
        v = x / step
        inside = logical_and(v >= -n, v <= p)
        slope = where(inside, rint(v) - v, clip(v, -n, p))
        count = sum_to(ones_like(x), like=step)
        dstep = sum_to(dy * slope, like=step) / sqrt(count * float(max(p, 1)))
        return where(inside, dy, 0.0), dstep

    with override_gradient(rule(lsq, bits=bits, signed=signed), inputs=[x, step]):
        return step * rint(clip(x / step, -n, p))


@entry(FAMILY, "surrogate")
def pact(x: TensorLike, alpha: TensorLike, bits: int = 4) -> Tensor:
    """A clipped and quantised ReLU whose upper bound is learned.

    dx = dy where 0 <= x < alpha, else 0; dalpha = sum of dy where x >= alpha
    [Choi et al. 2018, "PACT: parameterized clipping activation for quantized neural networks"].

    Parameters:
        x: any shape, floating.
        alpha: the upper bound, finite and > 0, cast to the dtype of x; it broadcasts to x.
        bits: how many bits a value has, an int in [1, 64].

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for an alpha that is not > 0, which a run raises for a tensor; ShapeError if
    the shapes do not broadcast; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.pact(gg.constant([-1.0, 1.4, 9.0]), 3.0, bits=2))
    array([0., 1., 3.])
    """
    levels = 2 ** BITS("bits", bits) - 1
    x = as_tensor(x)
    alpha = _of(x, POSITIVE, "alpha", alpha)

    def pact(site: Site, dy: Tensor) -> Any:
        x, alpha = site.inputs
        over = x >= alpha
        inside = logical_and(x >= 0, x < alpha)
        return where(inside, dy, 0.0), sum_to(where(over, dy, 0.0), like=alpha)

    def clipped(x: Tensor, alpha: Tensor) -> Tensor:
        return clip(x, 0.0, alpha)

    with override_gradient(rule(pact, surrogate_of(clipped), bits=bits), inputs=[x, alpha]):
        y: Tensor = rint(clip(x, 0.0, alpha) * (levels / alpha)) * (alpha / levels)
    return y
