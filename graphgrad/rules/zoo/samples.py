"""Discrete samples and routing: the draw is an input, the same in every transform."""

from __future__ import annotations

from typing import Any

from ...ir.node import Tensor
from . import maths as m
from .grids import passed
from .needs import shapes
from .row import Draw, Finite, Loss, NonNegative, Number, Positive, Uniform
from .rows import formula, learned, pulled, soft

FAMILY = "samples"
BENGIO = (
    "Bengio, Leonard, Courville 2013, Estimating or propagating gradients through stochastic "
    "neurons"
)
JANG = "Jang, Gu, Poole 2017, Categorical reparameterization with Gumbel-softmax; Maddison 2017"

NOISE = shapes(x="... classes", noise="... classes")
SAMPLE = shapes(x="... classes", sample="... classes")
ALIKE = shapes(x="...", sample="...")
UNIFORM = shapes(x="... n", uniform="... n", again="... n")
GATES_16 = shapes(a="...", b="...", w="* 16", noise="* 16")


def hot(x: Tensor) -> Tensor:
    """One where x is largest along the last axis, the first of equals."""
    return m.cast(m.one_hot(m.argmax(x, -1), m.length(x)), x.dtype)


@soft(JANG, lambda x, noise: hot(x + noise), needs=(NOISE,))
def gumbel_st(x: Tensor, noise: Draw, temperature: Positive = 1.0) -> Tensor:
    """A random one-hot vector; backward, the softmax of the perturbed logits."""
    return m.softmax((x + noise) / temperature, axis=-1)


@formula(JANG, needs=(NOISE,))
def gumbel_softmax(x: Tensor, noise: Draw, temperature: Positive = 1.0) -> Tensor:
    """The softmax of perturbed logits."""
    return m.softmax((x + noise) / temperature, axis=-1)


@soft(BENGIO, lambda sample: m.identity(sample), needs=(SAMPLE,))
def categorical_st(x: Tensor, sample: Draw) -> Tensor:
    """A random one-hot vector; backward, the softmax of the logits."""
    return m.softmax(x, axis=-1)


@formula(
    "Williams 1992, Simple statistical gradient-following algorithms for reinforcement learning",
    needs=(shapes(x="... classes", sample="...", reward="...", baseline="..."),),
)
def score_function(
    x: Tensor, sample: Draw, reward: Draw | None = None, baseline: Draw | None = None
) -> Tensor:
    """log p(sample) of logits x, times what a reward is over a baseline: for ascent."""
    log_p = m.log_softmax(x, axis=-1)
    chosen = m.take_along_axis(log_p, m.expand_dims(sample, -1), -1)[..., 0]
    if reward is None:
        return chosen
    return chosen * (reward if baseline is None else reward - baseline)


@pulled(JANG, lambda sample: m.identity(sample), contract="estimator", needs=(ALIKE,))
def relaxed_bernoulli(dy: Tensor, x: Tensor, sample: Draw, temperature: Positive = 1.0) -> Tensor:
    """A relaxed sample of logits x, drawn elsewhere: sigmoid((x + logistic noise) / t)."""
    return dy * sample * (1.0 - sample) / temperature


def _through(p: Tensor, d: Tensor) -> Tensor:
    """J d, J the derivative of a softmax whose value is p."""
    return p * (d - m.sum(p * d, -1, keepdims=True))


@pulled(
    "Liu et al. 2023, Bridging discrete and backpropagation: straight-through and beyond",
    lambda x, sample: (m.identity(sample), m.softmax(x, axis=-1)),
    contract="estimator",
    needs=(SAMPLE,),
)
def reinmax(dy: Any, x: Tensor, sample: Draw, temperature: Positive = 1.0) -> Tensor:
    """A drawn one-hot vector, by Heun's method of second order, and the softmax of the logits."""
    d, dp = dy
    p = m.softmax(x, axis=-1)
    middle = (m.softmax(x / temperature, axis=-1) + sample) / 2.0
    return 2.0 * _through(middle, d) - _through(p, d) / 2.0 + _through(p, dp)


@soft(
    "Fan et al. 2022, Training discrete deep generative models via gapped straight-through",
    lambda sample: m.identity(sample),
    needs=(SAMPLE,),
)
def gapped_st(
    x: Tensor, sample: Draw, gap: NonNegative = 1.0, temperature: Positive = 1.0
) -> Tensor:
    """A random one-hot vector; backward, logits in which the drawn class leads by a gap."""
    drawn = m.sum(x * sample, -1, keepdims=True)
    most = m.max(x, -1, keepdims=True)
    up = m.stop_gradient(m.maximum(most - drawn, 0.0)) * sample
    over = m.maximum(x + gap - m.maximum(drawn, most), 0.0)
    down = m.stop_gradient(over) * (1.0 - sample)
    return m.softmax((x + up - down) / temperature, axis=-1)


@soft(
    "Chung, Ahn, Bengio 2017, Hierarchical multiscale recurrent neural networks",
    lambda sample: m.identity(sample),
    needs=(ALIKE,),
)
def bernoulli_st(x: Tensor, sample: Draw, slope: Positive = 1.0) -> Tensor:
    """A random 0 or 1; backward, a logistic function with an adjustable slope."""
    return m.sigmoid(slope * x)


@formula("Louizos, Welling, Kingma 2018, Learning sparse neural networks through L0 regularization")
def hard_concrete(
    x: Tensor,
    uniform: Uniform,
    temperature: Positive = 2 / 3,
    low: Number = -0.1,
    high: Number = 1.1,
) -> Tensor:
    """A stretched logistic sample with logits x, clipped to [0, 1]."""
    noise = m.log(uniform) - m.log(1.0 - uniform)
    s = m.sigmoid((x + noise) / temperature) * (high - low) + low
    return m.where(s < 0, 0.0, m.where(s > 1, 1.0, s))


@soft(
    "Shah et al. 2024, Improving discrete optimisation via decoupled straight-through "
    "Gumbel-softmax",
    lambda x, noise, forward: hot(x / forward + noise),
    needs=(NOISE,),
)
def decoupled_st(
    x: Tensor, noise: Draw, forward: Positive = 1.0, backward: Positive = 1.0
) -> Tensor:
    """A draw from softmax(x / forward); backward, softmax(x / backward)."""
    return m.softmax(x / backward, axis=-1)


@soft(
    "Shah et al. 2024, as in its first version",
    lambda x, noise, forward: hot((x + noise) / forward),
    needs=(NOISE,),
)
def decoupled_st_gumbel(
    x: Tensor, noise: Draw, forward: Positive = 1.0, backward: Positive = 1.0
) -> Tensor:
    """A random one-hot vector; backward, the softmax of perturbed logits, another temperature."""
    return m.softmax((x + noise) / backward, axis=-1)


def _below(x: Tensor, uniform: Tensor) -> Tensor:
    return m.cast(uniform < m.sigmoid(x), x.dtype)


@pulled(
    "Yin and Zhou 2019, ARM: augment-REINFORCE-merge gradient for stochastic binary networks",
    lambda x, uniform, loss: loss(_below(x, uniform)),
    contract="estimator",
    needs=(UNIFORM,),
)
def arm(dy: Tensor, x: Tensor, uniform: Uniform, loss: Loss) -> Tensor:
    """A loss from (..., n) to (...) of bits drawn with logits x; two draws share random numbers."""
    other = loss(1.0 - _below(-x, uniform))
    way = (other - loss(_below(x, uniform))) * dy
    return m.expand_dims(way, -1) * (uniform - 0.5)


@pulled(
    "Dong, Mnih, Tucker 2020, DisARM: an antithetic gradient estimator for binary latent variables",
    lambda x, uniform, loss: (loss(_below(x, 1.0 - uniform)) + loss(_below(x, uniform))) / 2.0,
    contract="estimator",
    needs=(UNIFORM,),
)
def disarm(dy: Tensor, x: Tensor, uniform: Uniform, loss: Loss) -> Tensor:
    """The mean loss, from (..., n) to (...), of two antithetic draws of bits with logits x."""
    b, c = _below(x, 1.0 - uniform), _below(x, uniform)
    way = (loss(b) - loss(c)) * dy / 2.0
    return m.expand_dims(way, -1) * (b - c) * m.sigmoid(m.abs(x))


def _coupled(x: Tensor, uniform: Tensor, again: Tensor) -> list[Tensor]:
    """Logistic samples of logits x whose signs are the bits, the second given the bits."""
    p = m.sigmoid(x)
    given = m.where(uniform > 1.0 - p, 1.0 - p + again * p, again * (1.0 - p))
    return [x + m.log(u) - m.log(1.0 - u) for u in (uniform, given)]


def _controlled(
    dy: Tensor, x: Tensor, uniform: Tensor, again: Tensor, loss: Loss, control: Loss
) -> Tensor:
    """The score of what the control does not explain, and its own gradients."""
    at, bits = m.identity(x), _below(x, 1.0 - uniform)
    free, given = [control(z) for z in _coupled(at, uniform, again)]
    way = m.expand_dims(dy * (loss(bits) - given), -1)
    dx = m.gradients(free - given, at, dy, overrides={}, unconnected="zero")
    return way * (bits - m.sigmoid(x)) + dx


@pulled(
    "Tucker et al. 2017, REBAR: low-variance, unbiased gradient estimates for discrete latent "
    "variable models",
    lambda x, uniform, loss: loss(_below(x, 1.0 - uniform)),
    contract="estimator",
    needs=(UNIFORM,),
)
def rebar(
    dy: Tensor,
    x: Tensor,
    uniform: Uniform,
    again: Uniform,
    loss: Loss,
    temperature: Positive = 0.5,
    eta: Finite = 1.0,
) -> Tensor:
    """A loss of bits drawn by logits x, less eta times it of relaxed bits, which is added back."""

    def control(z: Tensor) -> Tensor:
        return eta * loss(m.sigmoid(z / temperature))

    return _controlled(dy, x, uniform, again, loss, control)


@pulled(
    "Grathwohl et al. 2018, Backpropagation through the void: optimizing control variates for "
    "black-box gradient estimation",
    lambda x, uniform, loss: loss(_below(x, 1.0 - uniform)),
    contract="estimator",
    needs=(UNIFORM,),
    traps="parameters of the control learn by the variance of what x gets, elsewhere",
)
def relax(
    dy: Tensor, x: Tensor, uniform: Uniform, again: Uniform, loss: Loss, control: Loss
) -> Tensor:
    """A loss of bits drawn by logits x; a function of their logistic samples explains a part."""
    return _controlled(dy, x, uniform, again, loss, control)


@pulled(
    "Gastaldi 2017, Shake-shake regularization",
    lambda a, b, forward: forward * a + (1.0 - forward) * b,
)
def shake(dy: Tensor, a: Tensor, b: Tensor, forward: Draw, backward: Draw) -> tuple[Tensor, ...]:
    """Two branches mixed by a drawn part; backward, by another."""
    return dy * backward, dy * (1.0 - backward)


# --- routing ----------------------------------------------------------------------------------


def _masked_gates(x: Tensor, jitter: float | Tensor) -> Tensor:
    most = m.max(x, -1, keepdims=True)
    off = (most - x) / m.maximum(m.abs(x), most) > 2.0 * jitter
    return m.softmax(m.where(off, -float("inf"), x), axis=-1)


def _routed(x: Tensor, sample: Tensor, first: Tensor, jitter: float | Tensor) -> Tensor:
    p = m.take_along_axis(_masked_gates(x, jitter), sample, -1)
    best = m.logical_or(first, m.argmax(x, -1, keepdims=True) == sample)
    return p * m.where(best, 1.0, 0.3333)


@pulled(
    "Liu et al. 2024, GRIN: gradient-informed MoE",
    _routed,
    contract="estimator",
    needs=(shapes(x="... experts", sample="... 1", first="... 1"),),
    traps="the factor of 1/3 is not in the backward; scores of a negative maximum are masked "
    "otherwise",
)
def sparse_mixer2(
    dy: Tensor, x: Tensor, sample: Draw, first: Draw, jitter: Positive = 0.1
) -> Tensor:
    """The gate of the chosen expert, a third of it unless it is the best or `first` is drawn."""
    p = _masked_gates(x, jitter)
    chosen = m.cast(m.one_hot(sample[..., 0], m.length(x)), x.dtype)
    d = dy * m.sum(p * chosen, -1, keepdims=True)
    return (chosen - p) * d


@learned(
    "Liu et al. 2023, Sparse backpropagation for MoE training",
    lambda x, first: m.where(first > 0, x, x / 2.0),
    traps="2 dy for both branches",
)
def sparse_mixer_core(x: Tensor, first: Draw) -> Tensor:
    """A multiplier, halved where the second half of Heun's method is drawn."""
    return m.ones_like(x) * 2.0


def _gates(a: Tensor, b: Tensor) -> Tensor:
    """The 16 gates of two inputs, ordered by truth table, along a last axis."""
    both = a * b
    some, one = a + b - both, a + b - 2.0 * both
    half = [0.0 * a, both, a - both, a, b - both, b, one, some]
    return m.stack([*half, *(1.0 - g for g in reversed(half))], axis=-1)


def _chosen_gate(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    return m.sum(_gates(a, b) * hot(w), -1)


GATES = "Petersen et al. 2022, Deep differentiable logic gate networks"


@formula(GATES, traps="order of the gates by truth table", needs=(GATES_16,))
def logic_gates(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    """A mixture of the 16 gates of a and b, weighted by the softmax of w (..., 16)."""
    return m.sum(_gates(a, b) * m.softmax(w, axis=-1), -1)


@soft("Kim et al. 2026, hard straight-through logic gates", _chosen_gate, needs=(GATES_16,))
def logic_gates_st(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    """The gate of the largest weight; backward, the weights are those of the mixture."""
    return m.sum(_gates(a, b) * passed(hot(w), m.softmax(w, axis=-1)), -1)


@soft(
    "Yousefi et al. 2025, Mind the gap: removing the discretization gap in logic gate networks",
    lambda a, b, w, noise: _chosen_gate(a, b, w + noise),
    needs=(GATES_16,),
)
def logic_gates_gumbel(
    a: Tensor, b: Tensor, w: Tensor, noise: Draw, temperature: Positive = 1.0
) -> Tensor:
    """The gate of the largest perturbed weight; backward, weights of the perturbed mixture."""
    weights = m.softmax((w + noise) / temperature, axis=-1)
    return m.sum(_gates(a, b) * passed(hot(w + noise), weights), -1)


__all__ = ["arm", "disarm", "rebar", "relax", "shake"]
__all__ += ["bernoulli_st", "categorical_st", "decoupled_st", "decoupled_st_gumbel", "gapped_st"]
__all__ += ["gumbel_softmax", "gumbel_st", "hard_concrete", "logic_gates", "logic_gates_gumbel"]
__all__ += ["logic_gates_st", "reinmax", "relaxed_bernoulli", "score_function"]
__all__ += ["sparse_mixer2", "sparse_mixer_core"]
