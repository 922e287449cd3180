"""Signs and few levels: the gradient passes as if there were no step."""

from __future__ import annotations

from ...ir.node import Tensor
from . import maths as m
from .row import Bits, Finite, NonNegative, Positive, PositiveOrInfinite
from .rows import learned, passing, pull, slope, soft

FAMILY = "straight-through"
BENGIO = (
    "Bengio, Leonard, Courville 2013, Estimating or propagating gradients through stochastic "
    "neurons"
)


@slope(
    f"{BENGIO}; Hubara et al. 2016, Binarized neural networks",
    of=lambda x, window: x if window is None else m.clip(x, -window, window),
    real=False,
)
def ste(x: Tensor, window: PositiveOrInfinite | None = None) -> Tensor | float:
    """The gradient passes as if there were no step, within a window around 0 if one is given."""
    return 1.0 if window is None else m.where(m.abs(x) <= window, 1.0, 0.0)


@slope("Darabi et al. 2018, BNN+: improved binary network training")
def swish_sign(x: Tensor, beta: Positive = 5.0) -> Tensor:
    """For signs: the slope of 2 s(b x) (1 + b x (1 - s(b x))) - 1."""
    u = m.abs(beta * x)
    e = m.exp(-u)
    return beta * (2.0 - u * m.tanh(u / 2.0)) * (2.0 * e / m.square(1.0 + e))


@slope("Liu et al. 2019, Soft rasterizer: a differentiable renderer for image-based 3D reasoning")
def soft_edge(x: Tensor, sigma: Positive = 1e-2, squared: bool = True) -> Tensor:
    """For a step at a signed distance: the slope of s(sign(x) x**2 / sigma), or s(x / sigma)."""
    u = x * m.abs(x) / sigma if squared else x / sigma
    rise = 2.0 * m.abs(x) / sigma if squared else 1.0 / sigma
    return rise * m.sigmoid(u) * m.sigmoid(-u)


@pull("Kato, Ushiku, Harada 2018, Neural 3D mesh renderer", linear=False)
def mesh_edge(dy: Tensor, x: Tensor, epsilon: Positive = 1e-4) -> Tensor:
    """For a step at a signed distance: dy over the distance where a descent crosses the edge."""
    crosses = m.where(x >= 0, dy > 0, dy < 0)
    return m.where(crosses, dy / (m.abs(x) + epsilon), 0.0)


@slope("brevitas, Pappalardo 2018")
def abs_sign(x: Tensor) -> Tensor:
    """For |x|: its sign, which counts as 1 at 0."""
    return m.where(x >= 0, 1.0, -1.0)


def signed(x: Tensor) -> Tensor:
    """1 where x >= 0, else -1."""
    return m.where(x >= 0, 1.0, -1.0)


def _window(x: Tensor, window: PositiveOrInfinite | None) -> Tensor:
    return m.ones_like(x) if window is None else m.where(m.abs(x) <= window, 1.0, 0.0)


@learned(BENGIO, lambda x: signed(x))
def sign_ste(x: Tensor, window: Positive | None = None) -> Tensor:
    """The sign of x, where the sign of 0 is 1."""
    return _window(x, window)


@passing(BENGIO)
def to_zero_ste(x: Tensor) -> Tensor:
    """x rounded towards zero."""
    return m.trunc(x)


@passing(BENGIO)
def dpu_round_ste(x: Tensor) -> Tensor:
    """x rounded to the nearest integer; negative ties are rounded up."""
    return m.where(m.logical_and(x < 0, m.ceil(x) - x == 0.5), m.ceil(x), m.rint(x))


@passing(BENGIO)
def clamp_ste(x: Tensor, low: Finite | None = None, high: Finite | None = None) -> Tensor:
    """x between two bounds; the gradient passes everywhere."""
    return m.clip(x, low, high)


def _scale(x: Tensor) -> Tensor:
    """The mean magnitude over all axes but the last."""
    return m.mean(m.abs(x), tuple(range(x.ndim - 1)), keepdims=True)


@learned(
    "Liu et al. 2018, Bi-Real Net: enhancing the performance of 1-bit CNNs",
    lambda x: signed(x) * _scale(x),
)
def magnitude_aware_sign(x: Tensor, window: Positive = 1.0) -> Tensor:
    """The sign of x times the mean magnitude of its channel, the last axis."""
    return _scale(x) * _window(x, window)


@learned(
    "Rastegari et al. 2016, XNOR-Net: ImageNet classification using binary CNNs",
    lambda x: signed(x) * _scale(x),
)
def xnor(x: Tensor, window: Positive = 1.0) -> Tensor:
    """Like magnitude_aware_sign, but with the derivative of the scale, as in the paper."""
    return 1.0 / float(m.count(x[..., 0])) + _scale(x) * _window(x, window)


def _ternary(x: Tensor, threshold: NonNegative | None) -> Tensor:
    t = 0.7 * m.mean(m.abs(x)) if threshold is None else threshold
    return m.sign(m.sign(x + t) + m.sign(x - t))


@learned("Li, Zhang, Liu 2016, Ternary weight networks", _ternary)
def ternary(
    x: Tensor, threshold: NonNegative | None = None, window: Positive | None = 1.0
) -> Tensor:
    """-1, 0 or 1, with a threshold of 0.7 times the mean magnitude by default."""
    return _window(x, window)


@learned(
    "Zhu et al. 2017, Trained ternary quantization",
    lambda x, positive, negative, threshold: m.where(
        x > threshold, positive, m.where(x < -threshold, -negative, 0.0)
    ),
)
def ttq(
    x: Tensor, positive: Tensor, negative: Tensor, threshold: NonNegative = 0.05
) -> tuple[Tensor, ...]:
    """-negative, 0 or positive, with two learned scales."""
    up, down = x > threshold, x < -threshold
    dx = m.where(up, positive, m.where(down, negative, 1.0))
    return dx, m.where(up, 1.0, 0.0), m.where(down, -1.0, 0.0)


@soft(
    "Zhou et al. 2016, DoReFa-Net: training low bitwidth convolutional neural networks",
    lambda x, bits: 2.0 * _levels(_half_tanh(x), bits) - 1.0,
)
def dorefa_weights(x: Tensor, bits: Bits = 1) -> Tensor:
    """tanh(x), scaled to [-1, 1] and rounded to 2**bits values."""
    return 2.0 * _half_tanh(x) - 1.0


def _half_tanh(x: Tensor) -> Tensor:
    h = m.tanh(x)
    return h / (2.0 * m.stop_gradient(m.max(m.abs(h)))) + 0.5


def _levels(x: Tensor, bits: int) -> Tensor:
    return m.rint(x * float(2**bits - 1)) / float(2**bits - 1)


@learned(
    "Zhou et al. 2016, DoReFa-Net: training low bitwidth convolutional neural networks",
    lambda x, bits: _levels(m.clip(x, 0.0, 1.0), bits),
)
def dorefa_activations(x: Tensor, bits: Bits = 1) -> Tensor:
    """x clipped to [0, 1] and rounded to 2**bits values."""
    return m.where(m.logical_and(x >= 0, x <= 1), 1.0, 0.0)


@learned("brevitas, Pappalardo 2018", lambda x, scale: signed(x) * scale)
def binary_quant(x: Tensor, scale: Positive = 1.0, clamped: bool = False) -> Tensor:
    """scale times the sign of x; so is the gradient; clamped: only where |x| <= scale."""
    return scale * (m.where(m.abs(x) <= scale, 1.0, 0.0) if clamped else m.ones_like(x))


@learned(
    "brevitas, Pappalardo 2018",
    lambda x, scale, threshold: m.where(m.abs(x) > threshold * scale, m.sign(x) * scale, 0.0),
)
def ternary_quant(x: Tensor, scale: Positive = 1.0, threshold: NonNegative = 0.5) -> Tensor:
    """-scale, 0 or scale, with a threshold in units of the scale."""
    return m.where(m.abs(x) > threshold * scale, scale, 0.0)


__all__ = ["abs_sign", "binary_quant", "clamp_ste", "dorefa_activations", "dorefa_weights"]
__all__ += ["dpu_round_ste", "magnitude_aware_sign", "sign_ste", "ste", "swish_sign", "ternary"]
__all__ += ["mesh_edge", "soft_edge", "ternary_quant", "to_zero_ste", "ttq", "xnor"]
