"""Numbers rounded to grids whose steps, zeros and ranges may learn."""

from __future__ import annotations

from itertools import pairwise
from math import log
from typing import Annotated, Literal

from ...base.domains import Domain
from ...base.flags import truth
from ...ir.node import Tensor
from ..quantisation import StepSharing
from . import maths as m
from .needs import Need, shapes
from .row import (
    Axis,
    Bits,
    Count,
    Finite,
    FiniteTensor,
    Integer,
    NonNegative,
    Number,
    Positive,
    PositiveTensor,
    Size,
    Uniform,
)
from .rows import learned, passing, pull, pulled, soft

FAMILY = "quantisation"
PARETO = "Liu et al. 2025, ParetoQ: scaling laws in extremely low-bit LLM quantization"
SIGNED_BITS = Annotated[int, Domain(2, 64, whole=True)]
LOW_BITS = Annotated[int, Domain(0, 16, whole=True)]


def passed(value: Tensor, x: Tensor) -> Tensor:
    """A value, through which the gradient goes to x."""
    return x + m.stop_gradient(value - x)


def _slowed(t: Tensor, factor: Finite) -> Tensor:
    """t, whose gradient is multiplied by a factor."""
    return t if isinstance(factor, float) and factor == 1.0 else passed(t, t * factor)


def _grid(
    x: Tensor,
    step: Tensor,
    zero: Tensor | None,
    low: int,
    high: int,
    factor: Finite,
    inside: str,
    zero_is: str,
    axis: int | None,
    group: int | None,
) -> Tensor:
    sharing = StepSharing(x, axis, group)
    sharing.check("step", step)
    if zero is None:
        zero = m.zeros_like(step)
    elif zero_is != "real":
        zero = passed(m.clip(m.rint(zero), low, high), zero)
    sharing.check("zero", zero)
    x, (step, zero) = sharing.split(x), [sharing.spread(_slowed(t, factor)) for t in (step, zero)]
    place = x / step + zero
    q = m.rint(x / step) + zero if zero_is == "added" else m.rint(place)
    at = q if inside == "rounded" else place
    bound = m.clip(q, low, high)
    v = passed(bound, place)
    if inside != "all":
        v = m.where(m.logical_and(at >= low, at <= high), v, m.stop_gradient(bound))
    return sharing.join((v - zero) * step)


@soft(
    "Jacob et al. 2018, Quantization and training of neural networks for efficient integer-"
    "arithmetic-only inference; Bhalgat et al. 2020, LSQ+",
    lambda zero_is, **given: _grid(zero_is="real" if zero_is == "real" else "added", **given),
    traps='torch and torchao ask whether the rounded value is inside (inside="rounded"), and round '
    'zero: they add it after rounding (zero_is="added"), or in the value alone ("rounded"); from '
    "torch 2.14 on nothing passes at the ends themselves",
)
def int_quant(
    x: Tensor,
    step: PositiveTensor,
    zero: Tensor | None = None,
    low: Integer = -128,
    high: Integer = 127,
    factor: Finite = 1.0,
    inside: Literal["exact", "rounded", "all"] = "exact",
    zero_is: Literal["real", "added", "rounded"] = "real",
    axis: Axis | None = None,
    group: Count | None = None,
) -> Tensor:
    """x as integers times a step, with a zero point; step and zero point are learned.

    dx = dy inside; dstep = factor * sum of dy * (round(v) - v inside, else bound - zero), dzero =
    -factor * step * sum of dy outside, v = x / step + zero.
    """
    return _grid(x, step, zero, low, high, factor, inside, zero_is, axis, group)


def integer_range(bits: int, signed: bool = True, narrow: bool = False) -> tuple[int, int]:
    """The least and the largest integer of so many bits.

    Parameters:
        bits: how many, an int in [1, 64].
        signed: whether there are negative ones.
        narrow: whether the least one is left out.

    Returns: a tuple of two ints.

    >>> gg.rules.integer_range(4)
    (-8, 7)
    """
    Domain(1, 64, whole=True)("bits", bits)
    truth("signed", signed)
    truth("narrow", narrow)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return low + narrow, high


def _tf_range(low: Tensor, high: Tensor, bits: int, narrow: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The step, and the range that is shifted so that 0 is on the grid."""
    least, most = float(narrow), float(2**bits - 1)
    step = (high - low) / (most - least)
    zero = m.clip(m.floor(least - low / step + 0.5), least, most)
    return step, (least - zero) * step, (most - zero) * step


def _tf_value(x: Tensor, low: Tensor, high: Tensor, bits: int, narrow: bool) -> Tensor:
    step, first, last = _tf_range(low, high, bits, narrow)
    return m.floor((m.clip(x, first, last) - first) / step + 0.5) * step + first


@learned(
    "Jacob et al. 2018, as tf.quantization.fake_quant_with_min_max_vars has it",
    _tf_value,
    needs=(Need("a narrow range has 2 bits or more", lambda bits, narrow: bits > narrow),),
)
def fake_quantise_tf(
    x: Tensor, low: Tensor, high: Tensor, bits: Bits = 8, narrow: bool = False
) -> tuple[Tensor, ...]:
    """x on a grid from low to high, shifted so that 0 is on it; halves go up."""
    _, first, last = _tf_range(low, high, bits, narrow)
    below, above = x < first, x > last
    inside = m.where(m.logical_or(below, above), 0.0, 1.0)
    return inside, m.where(below, 1.0, 0.0), m.where(above, 1.0, 0.0)


def _symmetric(x: Tensor, low: float, high: float, bits: int, halves: str) -> Tensor:
    steps = max(abs(low) / 2 ** (bits - 1), abs(high) / (2 ** (bits - 1) - 1))
    least, most = -(2 ** (bits - 1)) * steps, (2 ** (bits - 1) - 1) * steps
    v = m.clip(x, least, most) / steps
    return (m.rint(v) if halves == "even" else m.floor(v + 0.5)) * steps


@learned("tf.quantization.quantize_and_dequantize_v2, Abadi et al. 2016", _symmetric)
def quantise_and_dequantise(
    x: Tensor,
    low: Number = -1.0,
    high: Number = 1.0,
    bits: SIGNED_BITS = 8,
    halves: Literal["even", "up"] = "even",
) -> Tensor:
    """x as signed integers times a step, such that both ends of a range fit."""
    return m.where(m.logical_and(x >= low, x <= high), 1.0, 0.0)


def _learned_step(x: Tensor, step: Tensor, most: float) -> tuple[Tensor, float]:
    """A step that is at least 1e-5, and what its gradient is multiplied by."""
    return m.maximum(step, 1e-5), (float(m.count(x)) * max(most, 1.0)) ** -0.5


def _lsq_rows(x: Tensor, step: Tensor, bits: int) -> Tensor:
    low, high = integer_range(bits) if bits > 1 else (-1, 1)
    s, _ = _learned_step(x, step, high)
    return s * (m.sign(x) if bits == 1 else m.clip(m.rint(x / s), low, high))


@learned(f"Esser et al. 2020, Learned step size quantization; {PARETO}", _lsq_rows)
def lsq_rows(x: Tensor, step: Tensor, bits: LOW_BITS = 4) -> tuple[Tensor, ...]:
    """x in multiples of a learned step per row; with 1 bit, the step times the sign of x."""
    low, high = integer_range(bits) if bits > 1 else (-1, 1)
    s, factor = _learned_step(x, step, high)
    v = x / s
    inside = m.logical_and(v >= low, v <= high)
    error = m.sign(x) if bits == 1 else m.where(inside, m.rint(v) - v, m.clip(v, low, high))
    return m.where(inside, 1.0, 0.0), factor * error


def _stretched(v: Tensor, bits: int, clip: float) -> tuple[Tensor, float]:
    """The value in steps, and its largest."""
    n, shift = (1.5, 0.0) if bits == 0 else (float(2 ** (bits - 1)), 0.5)
    q = (m.rint(m.clip(v, -clip, clip) * n - shift) + shift) / n
    return m.sign(v) if bits == 1 else q, (n - shift) / n


@learned(
    PARETO,
    lambda x, step, bits, clip: (
        m.maximum(step, 1e-5) * _stretched(x / m.maximum(step, 1e-5), bits, clip)[0]
    ),
)
def stretched_elastic(
    x: Tensor, step: Tensor, bits: LOW_BITS = 2, clip: Annotated[float, Domain(0, 1, "()")] = 0.99
) -> tuple[Tensor, ...]:
    """x on an even number of levels without 0, or, for 0 bits, on -1, 0 and 1; learned step."""
    s, factor = _learned_step(x, step, 1.0 if bits < 2 else 2 ** (bits - 1) - 1)
    v = x / s
    q, most = _stretched(v, bits, clip)
    inside = m.logical_and(v >= -clip, v <= clip)
    error = m.sign(x) if bits == 1 else m.where(inside, q - v, most * m.sign(v))
    return m.where(inside, 1.0, 0.0), factor * error


def _token_grid(x: Tensor, low: int, high: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """The step and the zero point of each row."""
    most = m.maximum(m.max(x, -1, keepdims=True), 0.0)
    least = m.minimum(m.min(x, -1, keepdims=True), 0.0)
    span = m.maximum(-least, most) * 2.0 if symmetric else most - least
    step = m.maximum(span / (high - low), 2.0**-23)
    if symmetric:
        return step, m.zeros_like(step) + (high + low + 1) // 2
    return step, m.clip(low - m.rint(least / step), low, high)


def _token_value(x: Tensor, low: int, high: int, symmetric: bool) -> Tensor:
    step, zero = _token_grid(x, low, high, symmetric)
    return (m.clip(m.rint(x * (1.0 / step)) + zero, low, high) - zero) * step


@learned(
    "per-token fake quantisation of torchao, 2024",
    _token_value,
    traps="of a symmetric grid the largest element is clipped and gets 0, the least is not",
)
def fake_quantise_tokens(
    x: Tensor, low: Integer = -128, high: Integer = 127, symmetric: bool = False
) -> Tensor:
    """Each row on a grid between its own extremes; the step is constant in the backward pass."""
    step, zero = _token_grid(x, low, high, symmetric)
    q = m.rint(x * (1.0 / step)) + zero
    return m.where(m.logical_and(q >= low, q <= high), 1.0, 0.0)


FLOAT8 = {"float8_e4m3fn": (3, -6, 448.0), "float8_e5m2": (2, -14, 57344.0)}
Float8 = Literal["float8_e4m3fn", "float8_e5m2"]


def _as_float8(v: Tensor, format: str) -> Tensor:
    mantissa, least, largest = FLOAT8[format]
    size = m.abs(v)
    exponent = m.maximum(m.floor(m.log2(m.where(size > 0, size, 1.0))), float(least))
    step = m.exp2(exponent - mantissa)
    return m.clip(m.rint(v / step) * step, -largest, largest)


def _float8_value(x: Tensor, format: str) -> Tensor:
    scale = m.maximum(m.max(m.abs(x), -1, keepdims=True), 1e-12) / FLOAT8[format][2]
    return _as_float8(x / scale, format) * scale


@pulled(
    "Micikevicius et al. 2022, FP8 formats for deep learning",
    _float8_value,
    linear=False,
    traps="torchao differentiates the scale, so that the largest element gets the rest of the "
    "others, and casts the gradient to the format, too (learns=True, backward=True)",
)
def fake_float8_rows(
    dy: Tensor,
    x: Tensor,
    format: Float8 = "float8_e4m3fn",
    learns: bool = False,
    backward: bool = False,
) -> Tensor:
    """Each row as 8-bit floats, scaled so that its largest magnitude is the largest float."""
    size, largest = m.abs(x), FLOAT8[format][2]
    most = m.max(size, -1, keepdims=True)
    scale = m.maximum(most, 1e-12) / largest
    dv = _as_float8(dy * scale, format) if backward else dy * scale
    if not learns:
        return dv / scale
    dscale = m.sum(dy * _as_float8(x / scale, format) - dv * x / scale**2, -1, keepdims=True)
    at = m.where(size == most, 1.0, 0.0)
    share = at / m.sum(at, -1, keepdims=True)
    return dv / scale + dscale * share * m.sign(x) / largest


def _kept(scores: Tensor, sparsity: float) -> Tensor:
    """The scores that are at least a percentile of all."""
    size = m.count(scores)
    k = round(sparsity * (size - 1))
    return scores >= m.sort(m.reshape(scores, (-1,)))[k]


@learned(
    "Ramanujan et al. 2020, What's hidden in a randomly weighted neural network?",
    lambda scores, w, sparsity: m.where(_kept(scores, sparsity), w, 0.0),
    needs=(shapes(scores="...", w="..."),),
)
def supermask(
    scores: FiniteTensor, w: Tensor, sparsity: Annotated[float, Domain(0, 1)] = 0.5
) -> tuple[Tensor, ...]:
    """The weights with the highest scores; scores and weights are learned."""
    return w, m.where(_kept(scores, sparsity), 1.0, 0.0)


@learned(
    "the masks of torchao, 2024", lambda w, mask: w * mask, needs=(shapes(w="...", mask="..."),)
)
def apply_mask(w: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    """w * mask; both get the whole gradient."""
    return m.ones_like(w), m.ones_like(w)


BITNET = "Ma et al. 2024, The era of 1-bit LLMs: all large language models are in 1.58 bits"


@passing(BITNET, traps="per tensor; some ports have a scale per row or group")
def bitnet_ternary(x: Tensor, epsilon: Size = 1e-5) -> Tensor:
    """Weights as -1, 0 and 1 times their mean magnitude; the gradient passes everywhere."""
    scale = m.maximum(m.mean(m.abs(x)), epsilon)
    return m.clip(m.rint(x / scale), -1.0, 1.0) * scale


@passing(BITNET, traps="127 in some, 128 in the paper of 2023")
def bitnet_int8(x: Tensor, epsilon: Size = 1e-5) -> Tensor:
    """Activations in 8 bits of each token's largest magnitude; the gradient passes everywhere."""
    scale = 127.0 / m.maximum(m.max(m.abs(x), -1, keepdims=True), epsilon)
    return m.clip(m.rint(x * scale), -128.0, 127.0) / scale


@passing(
    "Wang et al. 2023, BitNet: scaling 1-bit transformers for large language models",
    traps="the sign of 0 is -1 in the paper, 0 in code",
)
def bitnet_binary(x: Tensor) -> Tensor:
    """The signs of weights minus their mean, times their mean magnitude."""
    return m.mean(m.abs(x)) * m.where(x > m.mean(x), 1.0, -1.0)


def _bit_linear(x: Tensor, w: Tensor, b: Tensor | None, epsilon: float) -> Tensor:
    return m.affine(bitnet_int8(x, epsilon), bitnet_ternary(w, epsilon), b)


@pulled(BITNET, _bit_linear, needs=(shapes(x="* inputs", w="outputs inputs", b="outputs"),))
def bitnet_linear(
    dy: Tensor, x: Tensor, w: Tensor, b: Tensor | None = None, epsilon: Size = 1e-5
) -> tuple[Tensor, ...]:
    """8-bit x (..., inputs) times ternary w (outputs, inputs); gradients use these factors."""
    flat = m.reshape(dy, (-1, m.length(dy)))
    rows = m.reshape(bitnet_int8(x, epsilon), (-1, m.length(x)))
    dw = m.matmul(m.swapaxes(flat, 0, 1), rows)
    return m.matmul(dy, bitnet_ternary(w, epsilon)), dw, m.sum(flat, 0)


FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
FP4_SIGNED = (*(-v for v in FP4[:0:-1]), *FP4)


def _fp4(x: Tensor) -> Tensor:
    y = m.zeros_like(x) + FP4_SIGNED[0]
    for low, high in pairwise(FP4_SIGNED):
        y = m.where(x >= (low + high) / 2, high, y)
    return y


@learned(
    "Wang et al. 2025, Optimizing large language model training using FP4 quantization",
    _fp4,
    traps="at and beyond 6: 0 here and in the Python, 1 / k at 6 in the CUDA kernel",
)
def dge_fp4(x: Tensor, k: Positive = 5.0, most: Positive = 3.0) -> Tensor:
    """x rounded to 4-bit floats; the slope between two values is that of a power function."""
    slope = m.zeros_like(x)
    for low, high in pairwise(FP4_SIGNED):
        u = m.abs(2.0 * (x - low) / (high - low) - 1.0)
        steep = m.minimum(m.maximum(u, 1e-30) ** (1.0 / k - 1.0) / k, most)
        slope = m.where(m.logical_and(x >= low, x < high), steep, slope)
    return slope


def _tqt_step(log2_t: Tensor, bits: int) -> Tensor:
    return m.exp2(m.ceil(log2_t)) / float(2 ** (bits - 1))


@learned(
    "Jain et al. 2020, Trained quantization thresholds for accurate and efficient fixed-point "
    "inference",
    lambda x, log2_t, bits: (
        _tqt_step(log2_t, bits)
        * m.clip(m.rint(x / _tqt_step(log2_t, bits)), *map(float, integer_range(bits)))
    ),
)
def tqt(x: Tensor, log2_t: FiniteTensor, bits: Bits = 8) -> tuple[Tensor, ...]:
    """x in steps that are powers of two, with a learned threshold."""
    low, high = integer_range(bits)
    s = _tqt_step(log2_t, bits)
    v = x / s
    q = m.rint(v)
    inside = m.logical_and(q >= low, q <= high)
    error = m.where(inside, q - v, m.clip(q, low, high))
    return m.where(inside, 1.0, 0.0), s * log(2) * error


@passing("Gupta et al. 2015, Deep learning with limited numerical precision")
def stochastic_round(x: Tensor, uniform: Uniform, step: Positive = 1.0) -> Tensor:
    """x in multiples of a step, with stochastic rounding; the gradient passes."""
    return step * m.floor(x / step + uniform)


@passing(
    "Balle, Laparra, Simoncelli 2017, End-to-end optimized image compression; Defossez et al. "
    "2021, Differentiable model compression via pseudo quantization noise"
)
def noise_quant(x: Tensor, uniform: Uniform, step: Positive = 1.0) -> Tensor:
    """x with uniform noise of width step, instead of rounding."""
    return x + step * (uniform - 0.5)


@soft(
    "Nagel et al. 2020, Up or down? Adaptive rounding for post-training quantization",
    lambda x, v, step: step * (m.floor(x / step) + _rectified(v)),
)
def adaround(x: Tensor, v: Tensor, step: Positive = 1.0) -> Tensor:
    """x rounded up or down as v learns; x gets its gradient as if it were not rounded."""
    return x + step * _rectified(v)


def _rectified(v: Tensor) -> Tensor:
    u = 1.2 * m.sigmoid(v) - 0.1
    return m.where(u < 0, 0.0, m.where(u > 1, 1.0, u))


@passing("Zhou et al. 2017, Incremental network quantization; Miyashita, Lee, Murmann 2016")
def power_of_two(x: Tensor, low: Integer = -8, high: Integer = 8) -> Tensor:
    """x as its sign times a power of two; the gradient passes."""
    exponent = m.rint(m.log2(m.where(x == 0, 1.0, m.abs(x))))
    return m.sign(x) * m.exp2(m.clip(exponent, low, high))


@pull("Lee, Kim, Ham 2021, Network quantization with element-wise gradient scaling", linear=False)
def ewgs(dy: Tensor, x: Tensor, delta: NonNegative = 0.1) -> Tensor:
    """For rounding: the gradient is larger if its sign agrees with the rounding error."""
    return dy * (1.0 + delta * m.sign(dy) * (x - m.rint(x)))


@learned(
    "Jung et al. 2019, Learning to quantize deep networks by optimizing quantization intervals",
    lambda x, centre, distance, levels: (
        m.sign(x)
        * m.rint(levels * m.clip((m.abs(x) - centre) / (2.0 * distance) + 0.5, 0.0, 1.0))
        / levels
    ),
)
def qil(x: Tensor, centre: Tensor, distance: Tensor, levels: Count = 3) -> tuple[Tensor, ...]:
    """x pruned below a learned interval, clipped above it and rounded inside it."""
    u = (m.abs(x) - centre) / (2.0 * distance)
    inside = m.where(m.logical_and(u >= -0.5, u <= 0.5), 1.0, 0.0)
    rise = inside / (2.0 * distance)
    return rise, -m.sign(x) * rise, -m.sign(x) * rise * 2.0 * u


__all__ = ["adaround", "apply_mask", "bitnet_binary", "bitnet_int8", "bitnet_linear"]
__all__ += ["bitnet_ternary", "dge_fp4", "ewgs", "fake_float8_rows", "fake_quantise_tf"]
__all__ += ["fake_quantise_tokens", "int_quant", "integer_range", "lsq_rows", "noise_quant"]
__all__ += ["power_of_two", "qil", "quantise_and_dequantise", "stochastic_round"]
__all__ += ["stretched_elastic", "supermask", "tqt"]
