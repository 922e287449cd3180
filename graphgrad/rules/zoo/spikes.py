"""Spikes: slopes in place of a step's, x being what is above the threshold."""

from __future__ import annotations

from math import pi
from typing import Literal

from ...ir.node import Tensor
from . import maths as m
from .needs import Need
from .row import Count, Finite, NonNegative, Positive, Uniform
from .rows import learned, pulled, slope

FAMILY = "surrogates"


@slope(
    "Zenke and Ganguli 2018, SuperSpike: supervised learning in multilayer spiking neural networks",
    of=lambda x, slope: x / (1.0 + slope * m.abs(x)),
)
def fast_sigmoid(x: Tensor, slope: Positive = 10.0) -> Tensor:
    """For spikes: the derivative of the fast sigmoid of the membrane potential x."""
    return 1.0 / m.square(1.0 + slope * m.abs(x))


@slope(
    "Fang et al. 2021, Incorporating learnable membrane time constant to enhance learning of "
    "spiking neural networks",
    of=lambda x, alpha: m.arctan((pi * alpha / 2) * x) / pi + 0.5,
)
def atan(x: Tensor, alpha: Positive = 2.0) -> Tensor:
    """For spikes: the derivative of an arc tangent that rises from 0 to 1."""
    return (alpha / 2) / (1.0 + m.square((pi * alpha / 2) * x))


def _smooth_triangle(x: Tensor, width: Positive, height: NonNegative) -> Tensor:
    c = m.clip(x, -width, width)
    return height * (c - c * m.abs(c) / (2 * width))


@slope(
    "Esser et al. 2016, Convolutional networks for fast, energy-efficient neuromorphic computing; "
    "Bellec et al. 2018, Long short-term memory and learning-to-learn in networks of spiking "
    "neurons",
    of=_smooth_triangle,
)
def triangle(x: Tensor, width: Positive = 1.0, height: NonNegative = 1.0) -> Tensor:
    """For spikes: a triangle around the threshold."""
    return height * m.maximum(1.0 - m.abs(x) / width, 0.0)


@slope("Zenke and Ganguli 2018, SuperSpike", traps="norse leaves alpha out")
def super_spike(x: Tensor, alpha: Positive = 1.0) -> Tensor:
    """For spikes: a fast sigmoid's slope, alpha high."""
    return alpha / m.square(1.0 + m.abs(x))


@slope("Neftci, Mostafa, Zenke 2019, Surrogate gradient learning in spiking neural networks")
def softsign(x: Tensor, alpha: Positive = 2.0) -> Tensor:
    """For spikes: the slope of a soft sign that rises from 0 to 1."""
    return 1.0 / (2.0 * alpha * m.square(1.0 / alpha + m.abs(x)))


@slope(
    "Zenke and Vogels 2021, The remarkable robustness of surrogate gradient learning for "
    "instilling complex function in spiking neural networks",
    traps="snntorch gives NaN far below 0",
)
def sigmoid(x: Tensor, slope: Positive = 25.0) -> Tensor:
    """For spikes: the slope of the logistic function."""
    return slope * m.sigmoid(slope * x) * m.sigmoid(-slope * x)


@slope("Wu et al. 2018, Spatio-temporal backpropagation for training high-performance SNNs")
def erf(x: Tensor, alpha: Positive = 2.0) -> Tensor:
    """For spikes: the slope of an error function that rises from 0 to 1."""
    return alpha / pi**0.5 * m.exp(-m.square(alpha * x))


@slope("Wu et al. 2018, Spatio-temporal backpropagation for training high-performance SNNs")
def rect(x: Tensor, alpha: Positive = 1.0) -> Tensor:
    """For spikes: a rectangle of area 1, open at its ends."""
    return m.where(m.abs(x) < 0.5 / alpha, alpha, 0.0)


@slope(
    "Jiang et al. 2025, Adaptive gradient learning for spiking neural networks by exploiting "
    "membrane potential dynamics"
)
def mpd_agl(
    x: Tensor, gain: Positive = 0.5, tau: NonNegative = 0.0, threshold: Positive = 1.0
) -> Tensor:
    """For spikes: a rectangle as wide as the spread of normalised potentials."""
    width = 2.0 * (1.0 + tau * tau) ** 0.5 * gain * threshold
    return m.where(m.abs(x) < width / 2.0, 1.0, 0.0) / width


@slope("Shrestha and Orchard 2018, SLAYER: spike layer error reassignment in time")
def exponential(x: Tensor, width: Positive = 1.0, height: NonNegative = 1.0) -> Tensor:
    """For spikes: two exponentials around the threshold."""
    return height * m.exp(-m.abs(x) / width)


@slope(
    "Yin, Corradi, Bohte 2021, Accurate and efficient time-domain classification with adaptive "
    "spiking recurrent neural networks"
)
def gaussian(x: Tensor, mu: Finite = 0.0, sigma: Positive = 0.5, scale: Finite = 1.0) -> Tensor:
    """For spikes: a normal density."""
    return scale * _normal(x, mu, sigma)


def _normal(x: Tensor, mu: Finite, sigma: Finite) -> Tensor:
    return m.exp(-m.square((x - mu) / sigma) / 2) / (sigma * (2 * pi) ** 0.5)


@slope(
    "Yin, Corradi, Bohte 2021, Accurate and efficient time-domain classification with adaptive "
    "spiking recurrent neural networks"
)
def multi_gaussian(
    x: Tensor,
    mu: Finite = 0.0,
    sigma: Positive = 0.5,
    h: Finite = 0.15,
    s: Positive = 6.0,
    scale: Finite = 1.0,
) -> Tensor:
    """For spikes: a normal density between two wide ones that are subtracted."""
    middle = (1.0 + h) * _normal(x, mu, sigma)
    sides = _normal(x, mu + sigma, s * sigma) + _normal(x, mu - sigma, s * sigma)
    return scale * (middle - h * sides)


def _at_multiples(
    x: Tensor, width: Positive, scale: Finite, threshold: Positive, above: Positive
) -> Tensor:
    nearest = m.maximum(m.floor(x / threshold + 0.5), 1.0) * threshold
    wide = threshold * width * m.where(x < threshold, 1.0, above)
    return scale / threshold * m.exp(-m.abs(x - nearest) / wide)


@slope(
    "Weidel and Sheik 2021, WaveSense: efficient temporal convolutions with spiking networks",
    traps="sinabs is half as wide above the threshold (above=0.5)",
)
def periodic_exponential(
    x: Tensor,
    width: Positive = 0.5,
    scale: Finite = 1.0,
    threshold: Positive = 1.0,
    above: Positive = 1.0,
) -> Tensor:
    """For several spikes a step, x being the potential: high at each multiple of the threshold."""
    return _at_multiples(x, width, scale, threshold, above)


@learned(
    "Weidel and Sheik 2021, WaveSense: efficient temporal convolutions with spiking networks",
    lambda x, threshold: m.maximum(m.floor(x / threshold), 0.0),
)
def multi_spike(
    x: Tensor,
    width: Positive = 0.5,
    scale: Finite = 1.0,
    threshold: Positive = 1.0,
    above: Positive = 1.0,
) -> Tensor:
    """The number of thresholds below x, with the slope of `periodic_exponential`."""
    return _at_multiples(x, width, scale, threshold, above)


@slope("Weidel and Sheik 2021, as in sinabs", traps="sinabs has no upper end of the window")
def heaviside_window(
    x: Tensor, window: Positive = 1.0, threshold: Positive = 1.0, upper: bool = False
) -> Tensor:
    """For spikes: 1 / threshold from -window on, x being what is above the threshold."""
    inside = m.logical_and(x >= -window, x <= window) if upper else x >= -window
    return m.where(inside, 1.0, 0.0) / threshold


@slope("the tanh step of norse, Pehle and Pedersen 2021", traps="norse documents a factor k / 2")
def tanh_step(x: Tensor, k: Positive = 2.0) -> Tensor:
    """For spikes: 1 - tanh(k x)**2."""
    return 1.0 - m.square(m.tanh(k * x))


@slope("the circular step of norse, Pehle and Pedersen 2021")
def circ_step(x: Tensor, alpha: Positive = 2.0) -> Tensor:
    """For spikes: the slope of x / sqrt(alpha**2 + x**2), 1 at the threshold."""
    return alpha**3 / (m.square(x) + alpha**2) ** 1.5


@slope("the erfc step of norse, Pehle and Pedersen 2021")
def erfc_step(x: Tensor, k: Positive = 2.0) -> Tensor:
    """For spikes: 2 / sqrt(pi) exp(-(k x)**2), the slope of an error function without its k."""
    return 2.0 / pi**0.5 * m.exp(-m.square(k * x))


@slope("Maas, Hannun, Ng 2013, Rectifier nonlinearities improve neural network acoustic models")
def leaky_step(
    x: Tensor, k: Finite = 1.0, leak: Finite = 0.1, at_zero: Literal["k", "leak"] = "k"
) -> Tensor:
    """For spikes: k above the threshold, leak below."""
    return m.where(x >= 0 if at_zero == "k" else x > 0, k, leak)


@slope("spikingjelly, Fang et al. 2023", traps="|x| = w is inside in braintools")
def piecewise_leaky(
    x: Tensor, w: Positive = 1.0, c: Finite = 0.01, edges: Literal["outside", "inside"] = "outside"
) -> Tensor:
    """For spikes: 1 / (2 w) within w of the threshold, c outside."""
    inside = m.abs(x) < w if edges == "outside" else m.abs(x) <= w
    return m.where(inside, 0.5 / w, c)


@slope("spikingjelly, Fang et al. 2023")
def log_step(x: Tensor, alpha: Positive = 1.0) -> Tensor:
    """For spikes: the slope of a logarithm on both sides."""
    return 1.0 / (1.0 / alpha + m.abs(x))


@slope("Cai et al. 2017, Deep learning with low precision by half-wave Gaussian quantization")
def log_tailed(x: Tensor, alpha: Finite = 0.0) -> Tensor:
    """For spikes: alpha below, 1 up to 1, 1 / x beyond."""
    return m.where(x > 1, 1.0 / m.maximum(x, 1.0), m.where(x > 0, 1.0, alpha))


@slope("Suetake et al. 2022, S3NN: time step reduction of spiking surrogate gradients")
def s2nn(x: Tensor, alpha: Positive = 4.0, beta: Finite = 1.0) -> Tensor:
    """For spikes: a logistic slope below, beta / (x + 1) above."""
    below = alpha * m.sigmoid(alpha * x) * m.sigmoid(-alpha * x)
    return m.where(x < 0, below, beta / (m.maximum(x, 0.0) + 1.0))


@slope(
    "Herranz-Celotti and Rouat 2022, Surrogate gradients design",
    traps="braintools has 2 |x| / (alpha + 1)",
    needs=(Need("alpha + shift > 0", lambda alpha, shift: alpha + shift > 0),),
)
def q_pseudo_spike(x: Tensor, alpha: Finite = 2.0, shift: Finite = -1.0) -> Tensor:
    """For spikes: a power law with a heavy tail, (1 + 2 |x| / (alpha + shift))**-alpha."""
    return (1.0 + 2.0 * m.abs(x) / (alpha + shift)) ** -alpha


@slope("spikingjelly, Fang et al. 2023", traps="spikingjelly has n - 1 terms, braintools n")
def squarewave(x: Tensor, n: Count = 2, period: Positive = 8.0) -> Tensor:
    """For spikes: n terms of the slope of a square wave's Fourier series."""
    terms = [m.cos((2 * i - 1) * (2 * pi / period) * x) for i in range(1, n + 1)]
    return (4.0 / period) * sum(terms[1:], terms[0])


@slope(
    "Perez-Nieves and Goodman 2021, Sparse spiking gradient descent",
    traps="snntorch passes above the band alone",
)
def sparse_fast_sigmoid(
    x: Tensor,
    slope: Positive = 25.0,
    band: Positive = 1.0,
    side: Literal["inside", "above"] = "inside",
) -> Tensor:
    """For spikes: a fast sigmoid's slope within a band, else 0."""
    kept = m.abs(x) < band if side == "inside" else x > band
    return m.where(kept, 1.0 / m.square(1.0 + slope * m.abs(x)), 0.0)


@slope("Gerstner and Kistler 2002, Spiking neuron models")
def rate_escape(x: Tensor, beta: Finite = 1.0, slope: Finite = 25.0) -> Tensor:
    """For spikes: an escape rate, largest at x = 1."""
    return slope * m.exp(-beta * m.abs(x - 1.0))


@slope("Fang et al. 2023, SpikingJelly; Roy et al. 2019, Scaling deep spiking neural networks")
def relu_grad(x: Tensor, alpha: Positive = 0.3, width: Positive = 1.0) -> Tensor:
    """For spikes: a triangle, alpha * width high."""
    return m.maximum(alpha * width - alpha * m.abs(x), 0.0)


@slope("spikingjelly, Fang et al. 2023", traps="-inf at -0.0 there")
def fake_numerical_gradient(x: Tensor, alpha: Positive = 0.3) -> Tensor:
    """For spikes: (sign(x) / x), at most alpha: a difference quotient."""
    return m.minimum((m.where(x >= 0, 1.0, 0.0) * 2.0 - 1.0) / x, alpha)


@slope("snntorch, Eshraghian et al. 2023", traps="no triangle, as the paper draws it")
def signed_step(x: Tensor, threshold: Finite = 1.0) -> Tensor:
    """For spikes: threshold below 0, -threshold above, as a derivative of a triangle."""
    return m.where(x >= 0, -threshold, threshold)


@slope("Hunsberger and Eliasmith 2015, Spiking deep networks with LIF neurons")
def heaviside(x: Tensor) -> Tensor:
    """For spikes: the gradient passes above the threshold."""
    return m.where(x > 0, 1.0, 0.0)


@slope("Qin et al. 2020, Forward and backward information retention for accurate binary networks")
def ede(x: Tensor, t: Positive = 1.0, k: Positive = 1.0) -> Tensor:
    """For signs: k t (1 - tanh(t x)**2), t rising during the training."""
    return k * t * (1.0 - m.square(m.tanh(t * x)))


@slope("Wu et al. 2023, Estimator meets equilibrium perspective: a rectified straight through")
def reste(x: Tensor, p: Positive = 2.0, clip: Positive = 1.5, least: Positive = 0.1) -> Tensor:
    """For signs: the slope of sign(x) |x|**(1/p), even within `least` of 0, 0 outside of clip."""
    power = (1.0 - p) / p
    steep = m.maximum(m.abs(x), least) ** power / p
    return m.where(m.abs(x) <= clip, steep, 0.0)


@pulled("snntorch, Eshraghian et al. 2023", lambda x: m.where(x > 0, 1.0, 0.0))
def stochastic_spike(
    dy: Tensor, x: Tensor, uniform: Uniform, mean: Finite = 0.0, variance: Finite = 0.2
) -> Tensor:
    """A spike where x > 0; below it, the gradient is scaled by a uniform number."""
    return m.where(x > 0, dy, dy * (uniform - 0.5 + mean) * variance)


@slope("Zhang et al. 2020, Temporal spike sequence learning; as a window around the threshold")
def dsq(x: Tensor, k: Positive = 4.0, step: Positive = 1.0) -> Tensor:
    """For rounding to multiples of a step: tanh pieces between the levels."""
    place = x / step - m.floor(x / step) - 0.5
    from_end = m.tanh(k * 0.5)
    return k / (2.0 * from_end) * (1.0 - m.square(m.tanh(k * place)))


__all__ = ["atan", "circ_step", "dsq", "ede", "erf", "erfc_step", "exponential"]
__all__ += ["fake_numerical_gradient", "fast_sigmoid", "gaussian", "heaviside", "heaviside_window"]
__all__ += ["leaky_step", "log_step", "log_tailed", "mpd_agl", "multi_gaussian", "multi_spike"]
__all__ += ["periodic_exponential", "piecewise_leaky", "q_pseudo_spike", "rate_escape", "rect"]
__all__ += ["relu_grad", "reste", "s2nn", "sigmoid", "signed_step", "softsign"]
__all__ += ["sparse_fast_sigmoid", "squarewave", "stochastic_spike", "super_spike", "tanh_step"]
__all__ += ["triangle"]
