"""Gradients kept in bounds: of one tensor by itself, and of several together."""

from __future__ import annotations

from typing import Annotated

from ...base.domains import POSITIVE_OR_INFINITE, PROBABILITY
from ...base.kinds import accumulated_in
from ...ir.node import Tensor
from ...ops.base import rounded_once
from ..sites import number, total
from . import maths as m
from .needs import Need, shapes
from .row import (
    Axis,
    Bits,
    Bound,
    Count,
    Draw,
    Finite,
    NonNegative,
    Number,
    Positive,
    PositiveOrInfinite,
)
from .rows import gate, pulled, through, together

FAMILY = "clipping"
Chance = Annotated[float | Tensor, PROBABILITY]
PASCANU = "Pascanu, Mikolov, Bengio 2013, On the difficulty of training recurrent neural networks"


def _wide(d: Tensor) -> Tensor:
    """d in the dtype in which such are added up."""
    return m.cast(d, accumulated_in(d.dtype))


def _squares(d: Tensor) -> Tensor:
    """The squared magnitude of each element."""
    d = _wide(d)
    return m.real(d * m.conj(d))


@gate("Mikolov 2012, Statistical language models based on neural networks")
def clip_value(d: Tensor, limit: PositiveOrInfinite) -> Tensor:
    """Each element of the gradient is clipped."""
    return m.clip(d, -limit, limit)


@gate("Mikolov 2012, Statistical language models based on neural networks")
def clip_range(d: Tensor, low: Finite = -1.0, high: Finite = 1.0) -> Tensor:
    """Each element of the gradient is clipped to two bounds."""
    return m.clip(d, low, high)


def _shrunk(d: Tensor, limit: Positive, example: int | None) -> Tensor:
    axes = tuple(i for i in range(d.ndim) if i != example)
    squares = total(m.real(d * m.conj(d)), axes, keepdims=True)
    most = number(limit, squares)
    return d * (most / m.sqrt(m.maximum(squares, most * most)))


@gate(PASCANU)
def clip_norm(d: Tensor, limit: Positive, axis: Axis | None = None) -> Tensor:
    """A gradient whose norm exceeds the limit is scaled down to it; with an axis, per example."""
    example = None if axis is None else m.normal_axis(axis, d.ndim)
    return rounded_once(lambda d: _shrunk(d, limit, example), d)


@gate("folklore")
def nan_guard(d: Tensor, nan: Number = 0.0, limit: Bound | None = None) -> Tensor:
    """NaN in the gradient is replaced by a number, and infinities by plus or minus the limit."""
    return m.nan_to_num(d, nan=nan, posinf=limit, neginf=None if limit is None else -limit)


@gate("optax, DeepMind 2020")
def zero_nans(d: Tensor) -> Tensor:
    """NaN is replaced by 0; infinities are unchanged."""
    return m.where(m.isnan(d), 0.0, d)


@gate("optax, DeepMind 2020; Shazeer and Stern 2018, Adafactor")
def clip_block_rms(d: Tensor, limit: Positive = 1.0) -> Tensor:
    """The gradient divided by max(1, root mean square / limit)."""
    return d / m.maximum(1.0, m.root(m.mean(_squares(d))) / limit)


@gate("Yong et al. 2020, Gradient centralization: a new optimization technique")
def centralise(d: Tensor, axis: Axis = 0) -> Tensor:
    """The gradient minus its mean over all axes but that of the outputs; a vector is unchanged."""
    if d.ndim < 2:
        return d
    kept = m.normal_axis(axis, d.ndim)
    return d - m.mean(d, tuple(i for i in range(d.ndim) if i != kept), keepdims=True)


@gate("optax, DeepMind 2020")
def normalise(d: Tensor, epsilon: NonNegative = 1e-6) -> Tensor:
    """The gradient divided by its norm."""
    return d / (m.root(m.sum(_squares(d))) + epsilon)


@gate("Sun et al. 2017, meProp: sparsified back propagation for accelerated deep learning")
def meprop(d: Tensor, k: Count = 1) -> Tensor:
    """Only the k elements of the gradient with the largest magnitude along the last axis."""
    size = m.abs(d)
    return m.where(size >= m.topk(size, k)[0][..., -1:], d, 0.0)


@gate("Chen et al. 2020, Just pick a sign; Neelakantan et al. 2015, Adding gradient noise")
def gradient_noise(d: Tensor, noise: Finite = 0.0) -> Tensor:
    """A tensor of noise is added to the gradient."""
    return d + noise


@gate("Tseng et al. 2020, Regularizing meta-learning via gradient dropout")
def grad_dropout(
    d: Tensor, uniform: Chance = 1.0, rate: Annotated[float, PROBABILITY] = 0.1
) -> Tensor:
    """Zero where a tensor of uniform numbers is below the rate; the rest is scaled up."""
    return m.where(uniform < rate, 0.0, d) / max(1.0 - rate, 1e-30)


@gate("Wiedemann et al. 2020, Dithered backprop: a sparse and quantized backpropagation algorithm")
def dithered(d: Tensor, step: Positive = 1.0, uniform: Chance = 0.5) -> Tensor:
    """The gradient rounded to multiples of a step, with subtractive dither."""
    dither = step * (uniform - 0.5)
    return step * m.floor((d + dither) / step + 0.5) - dither


@gate("Wang et al. 2018, Training deep neural networks with 8-bit floating point numbers")
def low_precision(d: Tensor, bits: Bits = 8) -> Tensor:
    """The gradient rounded to 2**bits - 1 steps of its largest magnitude."""
    step = m.maximum(m.max(m.abs(d)), 1e-30) / (2 ** (bits - 1) - 0.5)
    return step * m.rint(d / step)


@gate("Zhou et al. 2016, DoReFa-Net: training low bitwidth convolutional neural networks")
def dorefa_gradient(d: Tensor, bits: Bits = 8, uniform: Chance = 0.5) -> Tensor:
    """The gradient quantised to bits over twice its largest magnitude, with stochastic rounding."""
    most, levels = 2.0 * m.maximum(m.max(m.abs(d)), 1e-30), 2**bits - 1
    place = m.clip(d / most + 0.5 + (uniform - 0.5) / levels, 0.0, 1.0)
    return most * (m.rint(place * levels) / levels - 0.5)


@through("Liao, Leibo, Poggio 2016, How important is weight symmetry in backpropagation?")
def sign_symmetry(w: Tensor, scale: Positive = 1.0) -> Tensor:
    """For a layer: errors are sent back through the signs of its weights."""
    return scale * m.sign(w)


@pulled(
    "Nokland 2016, Direct feedback alignment provides learning in deep neural networks",
    m.affine,
    linear=False,
    needs=(
        shapes(
            x="rows inputs", w="outputs inputs", b="outputs", feedback="n inputs", error="rows n"
        ),
    ),
)
def direct_feedback(
    dy: Tensor, x: Tensor, w: Tensor, b: Tensor, feedback: Draw, error: Draw
) -> tuple[Tensor, ...]:
    """x (rows, inputs) times w (outputs, inputs), and b: x gets error (rows, n) times feedback."""
    return m.matmul(error, feedback), m.matmul(m.swapaxes(dy, 0, 1), x), m.sum(dy, 0)


# --- several tensors --------------------------------------------------------------------------


def _norm(ds: list[Tensor], order: float = 2.0) -> Tensor:
    if order == float("inf"):
        return m.max(m.stack([m.max(m.abs(d)) for d in ds]))
    sizes = [_squares(d) if order == 2.0 else m.abs(_wide(d)) ** order for d in ds]
    return m.root(sum_of([m.sum(size) for size in sizes]), order)


def sum_of(terms: list[Tensor]) -> Tensor:
    """The sum of tensors."""
    return sum(terms[1:], terms[0])


@together(
    PASCANU,
    traps="torch divides by norm + 1e-6 (epsilon=1e-6), optax and TensorFlow by the norm; of an "
    "infinite norm all make 0, and NaN of what is infinite",
)
def clip_global_norm(
    ds: list[Tensor],
    xs: list[Tensor],
    *,
    limit: Positive,
    norm: Annotated[float, POSITIVE_OR_INFINITE] = 2.0,
    epsilon: NonNegative = 0.0,
) -> list[Tensor]:
    """All gradients are scaled by one factor if their global norm exceeds the limit."""
    length = _norm(ds, norm)
    factor = limit / m.maximum(length + epsilon, limit)
    return [d * factor for d in ds]


@together("Mikolov 2012, Statistical language models based on neural networks")
def clip_value_all(ds: list[Tensor], xs: list[Tensor], *, limit: Positive) -> list[Tensor]:
    """Each element of each gradient is clipped."""
    return [m.clip(d, -limit, limit) for d in ds]


def _units(x: Tensor) -> Tensor:
    """The norm of each unit: over all axes but the last, of what has two axes or more."""
    axes = tuple(range(x.ndim - 1)) if x.ndim > 1 else None
    return m.root(m.sum(_squares(x), axes, keepdims=True))


@together("Brock et al. 2021, High-performance large-scale image recognition without normalization")
def clip_adaptive(
    ds: list[Tensor], xs: list[Tensor], *, limit: Positive = 0.01, epsilon: NonNegative = 1e-3
) -> list[Tensor]:
    """Each unit's gradient is clipped to the norm of the unit's weights times the limit."""
    most = [limit * m.maximum(_units(x), epsilon) for x in xs]
    pairs = zip(ds, most, strict=True)
    return [m.where(_units(d) < b, d, b * d / m.maximum(_units(d), 1e-6)) for d, b in pairs]


@together("optax, DeepMind 2020", traps="NaN at 0")
def normalise_global(
    ds: list[Tensor], xs: list[Tensor], *, epsilon: NonNegative = 0.0
) -> list[Tensor]:
    """All gradients are divided by their global norm."""
    length = _norm(ds) + epsilon
    return [d / length for d in ds]


@together("optax, DeepMind 2020", traps="optax lets them through after `errors` in a row")
def skip_not_finite(
    ds: list[Tensor], xs: list[Tensor], *, skipped: Finite = 0.0, errors: Count = 5
) -> list[Tensor]:
    """All gradients are 0 if any element is not finite, for at most `errors` steps in a row."""
    fine = m.all(m.stack([m.all(m.isfinite(d)) for d in ds]))
    passes = m.logical_or(fine, m.as_tensor(skipped) >= errors)
    return [m.where(passes, d, 0.0) for d in ds]


EXAMPLES = Need(
    "the first axis of all tensors is that of examples",
    lambda tensors: len({t.shape[:1] for t in tensors} | {()}) == 2,
)


def _of_examples(ds: list[Tensor]) -> list[Tensor]:
    """The squared norm of each example's gradient, of each tensor."""
    return [m.sum(_squares(d), tuple(range(1, d.ndim)), keepdims=True) for d in ds]


def _shrunk_examples(d: Tensor, squares: Tensor, limit: Positive) -> Tensor:
    length = m.reshape(m.root(squares), (-1, *[1] * (d.ndim - 1)))
    return d * (limit / m.maximum(length, limit))


@together("Abadi et al. 2016, Deep learning with differential privacy", needs=(EXAMPLES,))
def per_example_global_norm_clip(
    ds: list[Tensor], xs: list[Tensor], *, limit: Positive
) -> list[Tensor]:
    """The gradients of each example (first axis) are clipped by their global norm."""
    squares = sum_of([m.reshape(s, (-1,)) for s in _of_examples(ds)])
    return [_shrunk_examples(d, squares, limit) for d in ds]


@together(
    "McMahan et al. 2018, Learning differentially private recurrent language models",
    needs=(EXAMPLES,),
)
def per_example_layer_norm_clip(
    ds: list[Tensor], xs: list[Tensor], *, limit: Positive, uniform: bool = True
) -> list[Tensor]:
    """The gradient of each example (first axis) and tensor is clipped to its share of the limit."""
    sizes = [m.count(d[:1]) for d in ds]
    shares = [1 / len(ds) if uniform else size / sum(sizes) for size in sizes]
    pairs = zip(ds, _of_examples(ds), shares, strict=True)
    return [_shrunk_examples(d, squares, limit * share**0.5) for d, squares, share in pairs]


__all__ = ["centralise", "clip_adaptive", "clip_block_rms", "clip_global_norm", "clip_norm"]
__all__ += [
    "clip_range",
    "clip_value",
    "clip_value_all",
    "direct_feedback",
    "dithered",
    "dorefa_gradient",
]
__all__ += ["grad_dropout", "gradient_noise", "low_precision", "meprop", "nan_guard", "normalise"]
__all__ += ["normalise_global", "per_example_global_norm_clip", "per_example_layer_norm_clip"]
__all__ += ["sign_symmetry", "skip_not_finite", "zero_nans"]
