"""Rules for ReLU that show what a network looks at."""

from __future__ import annotations

from ...ir.node import Tensor
from . import maths as m
from .row import Finite, Positive
from .rows import pull, slope

FAMILY = "saliency"


@pull(
    "Springenberg et al. 2015, Striving for simplicity: the all convolutional net",
    linear=False,
    contract="attribution",
)
def guided(dy: Tensor, x: Tensor) -> Tensor:
    """Guided backpropagation: only positive gradients of active units pass."""
    return m.where(m.logical_and(x > 0, dy > 0), dy, 0.0)


@pull(
    "Zeiler and Fergus 2014, Visualizing and understanding convolutional networks",
    linear=False,
    contract="attribution",
)
def deconvnet(dy: Tensor, x: Tensor) -> Tensor:
    """The deconvolutional network: only positive gradients pass, also of inactive units."""
    return m.maximum(dy, 0.0)


@pull(
    "the Lucid library, Olah, Mordvintsev, Schubert 2017, Feature visualization; for descent",
    linear=False,
)
def redirected(dy: Tensor, x: Tensor) -> Tensor:
    """Where an example's gradient would be all zero, gradients that activate a unit pass."""
    own = m.where(x > 0, dy, 0.0)
    waking = m.where(m.logical_and(x < 0, dy > 0), 0.0, dy)
    some = m.any(own != 0, tuple(range(1, x.ndim)), keepdims=True)
    return m.where(some, own, waking)


@slope("Dombrowski et al. 2019, Explanations can be manipulated and geometry is to blame")
def beta_smooth(x: Tensor, beta: Positive = 10.0) -> Tensor:
    """For ReLU: the slope of a softplus."""
    return m.sigmoid(beta * x)


@pull(
    "Kim et al. 2019, Why are saliency maps noisy? Cause of and solution to noisy saliency maps",
    linear=False,
    contract="attribution",
)
def rectgrad(dy: Tensor, x: Tensor, threshold: Finite = 0.0) -> Tensor:
    """For ReLU: passes where x dy exceeds a threshold, which may be a percentile of the layer."""
    return m.where(x * dy > threshold, dy, 0.0)


@pull("practice in feature visualisation, Olah, Mordvintsev, Schubert 2017", linear=False)
def clamp_inward(dy: Tensor, x: Tensor, low: Finite = 0.0, high: Finite = 1.0) -> Tensor:
    """For clip: outside the bounds, gradients pass if a descent step would move x back inside."""
    outward = m.logical_or(m.logical_and(x < low, dy > 0), m.logical_and(x > high, dy < 0))
    return m.where(outward, 0.0, dy)


__all__ = ["beta_smooth", "clamp_inward", "deconvnet", "guided", "rectgrad", "redirected"]
