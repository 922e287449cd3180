"""Fake quantisation: numbers rounded to a grid, with gradients for the numbers and for the grid."""

from __future__ import annotations

from typing import Any

from ..base.domains import BITS, FINITE, FROM_ONE, POSITIVE, Domain
from ..base.errors import ShapeError
from ..base.flags import truth
from ..differentiate.site import Site
from ..ir.build import apply
from ..ir.node import Tensor
from ..ops.base import TensorLike, as_tensor, cast, is_floating, like
from ..ops.create.creation import ones_like
from ..ops.demands import in_order, within_dtype
from ..ops.elementwise.bounds import clip
from ..ops.elementwise.exponential import sqrt
from ..ops.elementwise.grids import FLOAT8, FakeFloat8, FakeQuantise
from ..ops.elementwise.logic import logical_and, where
from ..ops.elementwise.rounding import rint
from ..ops.shape.reshaping import expand_dims, normal_axis, reshape, sum_to
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

    With s = (high - low) / (2**bits - 1) and z = rint(-low / s) it is s * (rint(x / s) + z - z),
    rounded half to even and held within 0 and 2**bits - 1 before z is taken off: the numbers of
    QuantizeLinear of ONNX.

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
        return apply(FakeQuantise(0, levels), x, step, zero)


def _of_range(site: Site, dy: Tensor) -> Any:
    x, low, high = site.inputs
    inside = logical_and(x >= low, x <= high)
    return (
        where(inside, dy, 0.0),
        sum_to(where(x < low, dy, 0.0), like=low),
        sum_to(where(x > high, dy, 0.0), like=high),
    )


@entry(FAMILY, "policy")
def lsq(
    x: TensorLike,
    step: TensorLike,
    bits: int = 8,
    signed: bool = True,
    inside: str = "exact",
) -> Tensor:
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
        inside: of what it is asked whether it is inside: "exact", of v, or, as in torch, of
            "rounded" v, which is wider by half a step.

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for an unknown word, and for a step that is not > 0, which a run raises for a
    tensor; ShapeError if the shapes do not broadcast; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.lsq(gg.constant([-9.0, 0.3, 0.8]), 0.5, bits=3))
    array([-2. ,  0.5,  1. ])
    """
    low, p = _ends(bits, signed)
    if inside not in ("exact", "rounded"):
        raise ValueError(f"inside is 'exact' or 'rounded', got {inside!r}")
    n = -low
    x = as_tensor(x)
    step = _of(x, POSITIVE, "step", step)

    def lsq(site: Site, dy: Tensor) -> Any:
        x, step = site.inputs
        v = x / step
        at = rint(v) if inside == "rounded" else v
        kept = logical_and(at >= -n, at <= p)
        slope = where(kept, rint(v) - v, clip(v, -n, p))
        count = sum_to(ones_like(x), like=step)
        dstep = sum_to(dy * slope, like=step) / sqrt(count * float(max(p, 1)))
        return where(kept, dy, 0.0), dstep

    with override_gradient(rule(lsq, bits=bits, signed=signed), inputs=[x, step]):
        return apply(FakeQuantise(low, p), x, step, like(0, x))


def _ends(bits: int, signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of so many bits."""
    truth("signed", signed)
    (SIGNED_BITS if signed else BITS)("bits", bits)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


@entry(FAMILY, "policy")
def lsq_plus(
    x: TensorLike,
    step: TensorLike,
    zero: TensorLike = 0.0,
    *,
    bits: int = 8,
    signed: bool = True,
    axis: int | None = None,
    group: int | None = None,
) -> Tensor:
    """x on a grid whose step and zero are learned, per tensor, per channel or per group.

    z = rint(zero), v = x / step + z, inside where low <= v <= high: dx = dy inside, else 0;
    dstep = g * sum of dy * (rint(x / step) - x / step inside, else low - z or high - z);
    dzero = -g * step * sum of dy that is not inside, g = 1 / sqrt(count * high)
    [Bhalgat et al. 2020, "LSQ+: Improving low-bit quantization through learnable offsets and better
    initialization"].

    The value is step * (clip(rint(x / step) + z, low, high) - z). Of the paper's offset beta, zero
    is -beta / step: an integer when used, as runtimes of integers have it. For the weights of a
    layer, with a step for each output: `lsq_plus(w, step, bits=8, axis=-1)`.

    Parameters:
        x: any shape, floating.
        step: finite and > 0, cast to the dtype of x. Without axis it broadcasts to x; with it, a
            vector of one for each channel, or one for all; with group, of the shape of x but for
            x.shape[axis] // group along the axis, or one for all.
        zero: the number of the grid that stands for 0.0, finite, in shape as step; its value is
            rounded and held within low and high.
        bits: how many bits a value has, an int in [2, 64]: low = -2**(bits - 1), high = -low - 1;
            unsigned in [1, 64]: low = 0, high = 2**bits - 1.
        signed: whether there are numbers below zero.
        axis: that of the channels, or that along which groups lie.
        group: how many neighbours along the axis share a step; it divides their number.

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for a step that is not > 0, which a run raises for a tensor, and for a group
    without an axis; ShapeError if the shapes do not fit; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.lsq_plus(gg.constant([-9.0, 0.3, 0.8]), 0.5, 1.0, bits=3))
    array([-2.5,  0.5,  1. ])
    >>> w = gg.constant([[0.3, 30.0], [0.8, 80.0]])
    >>> gg.evaluate(gg.rules.lsq_plus(w, [0.5, 50.0], bits=3, axis=1))
    array([[  0.5,  50. ],
           [  1. , 100. ]])
    """
    low, high = _ends(bits, signed)
    x = as_tensor(x)
    sharing = StepSharing(x, axis, group)
    step, zero = _of(x, POSITIVE, "step", step), _of(x, FINITE, "zero", zero)
    sharing.check("step", step)
    sharing.check("zero", zero)

    def lsq_plus(site: Site, dy: Tensor) -> Any:
        x, step, zero = site.inputs
        s, z = sharing.spread(step), clip(rint(sharing.spread(zero)), low, high)
        steps, dy = sharing.split(x) / s, sharing.split(dy)
        inside = logical_and(steps + z >= low, steps + z <= high)
        slope = where(inside, rint(steps) - steps, clip(steps + z, low, high) - z)
        count = sum_to(ones_like(steps), like=s)
        g = 1.0 / sqrt(count * float(max(high, 1)))
        dstep = g * sum_to(dy * slope, like=s)
        dzero = sum_to(-g * s * where(inside, 0.0, dy), like=z)
        return (
            sharing.join(where(inside, dy, 0.0)),
            reshape(dstep, step.shape),
            reshape(dzero, zero.shape),
        )

    made = rule(lsq_plus, bits=bits, signed=signed, axis=axis, group=group)
    with override_gradient(made, inputs=[x, step, zero]):
        z = clip(rint(sharing.spread(zero)), low, high)
        grid = apply(FakeQuantise(low, high), sharing.split(x), sharing.spread(step), z)
        return sharing.join(grid)


class StepSharing:
    """How x shares steps: all of it, each channel of an axis, each group of neighbours along it."""

    def __init__(self, x: Tensor, axis: int | None, group: int | None) -> None:
        self.shape = x.shape
        self.axis = None if axis is None else normal_axis(axis, x.ndim)
        self.group = group
        if group is None:
            return
        FROM_ONE("group", group)
        if self.axis is None:
            raise ValueError("group= groups neighbours along an axis: pass axis= too")
        length = self.shape[self.axis]
        if not isinstance(length, int) or length % group:
            raise ShapeError(f"groups of {group} do not divide axis {self.axis} of {x!r}")

    def check(self, what: str, t: Tensor) -> None:
        """ShapeError unless it is one for each channel or group, or one for all."""
        if self.axis is None or t.ndim == 0:
            return
        wanted: tuple[Any, ...] = (self.shape[self.axis],)
        if self.group is not None:
            wanted = (*self.shape[: self.axis], wanted[0] // self.group)
            wanted += self.shape[self.axis + 1 :]
        if t.shape != wanted:
            raise ShapeError(f"{what} must have shape {wanted} or (), got {t.shape}")

    def spread(self, t: Tensor) -> Tensor:
        """Steps that broadcast with what `split` gives."""
        if self.axis is None or t.ndim == 0:
            return t
        if self.group is not None:
            return expand_dims(t, self.axis + 1)
        return reshape(t, [-1 if i == self.axis else 1 for i in range(len(self.shape))])

    def split(self, x: Tensor) -> Tensor:
        """x with an axis for the neighbours in a group."""
        if self.group is None or self.axis is None:
            return x
        rest = self.shape[self.axis + 1 :]
        return reshape(x, (*self.shape[: self.axis], -1, self.group, *rest))

    def join(self, x: Tensor) -> Tensor:
        """It, as x was."""
        return x if self.group is None else reshape(x, self.shape)


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
        return apply(FakeQuantise(0, levels), x, alpha / levels, like(0, x))


@entry(FAMILY, "surrogate")
def fake_float8(x: TensorLike, step: TensorLike, format: str = "e4m3fn") -> Tensor:
    """x rounded to 8-bit floats times a step, saturating at the largest float.

    v = x / step, inside where |v| <= largest: dx = dy inside, else 0; dstep = sum of dy *
    (rounded v - v inside, else largest with the sign of v)
    [Micikevicius et al. 2022, "FP8 formats for deep learning"].

    Parameters:
        x: any shape, floating.
        step: finite and > 0; one, or one per channel by broadcasting to x; cast to its dtype.
        format: "e4m3fn" (largest 448) or "e5m2" (largest 57344), names of ONNX and ml_dtypes.

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for another format, and for a step that is not > 0, which a run raises for a
    tensor; ShapeError if the shapes do not broadcast; RegionError if x is not floating.

    >>> gg.evaluate(gg.rules.fake_float8(gg.constant([0.3, -17.2, 30.0]), 1.0))
    array([  0.3125, -18.    ,  30.    ])
    """
    if not isinstance(format, str) or format not in FLOAT8:
        raise ValueError(f"format is one of {', '.join(FLOAT8)}, got {format!r}")
    x = as_tensor(x)
    step = _of(x, POSITIVE, "step", step)
    largest = FLOAT8[format].largest

    def fake_float8(site: Site, dy: Tensor) -> Any:
        x, step = site.inputs
        (y,) = site.outputs
        v = x / step
        inside = logical_and(v >= -largest, v <= largest)
        slope = y / step - where(inside, v, 0.0)
        return where(inside, dy, 0.0), sum_to(dy * slope, like=step)

    with override_gradient(rule(fake_float8, format=format), inputs=[x, step]):
        return apply(FakeFloat8(format), x, step)
