"""Straight-through estimators: a step passes gradients as if it were not there."""

from __future__ import annotations

from typing import Any

from ..base.domains import POSITIVE_OR_INFINITE
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.demands import within
from ..ops.elementwise.bounds import clip
from ..ops.elementwise.logic import where
from ..ops.elementwise.magnitudes import absolute
from ..regions.contracts import surrogate_of
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import alike, only

FAMILY = "straight-through"


@entry(FAMILY, "surrogate")
def ste(window: float | Tensor | None = None) -> Rule:
    """The gradient passes as if there were no step, within a window around 0 if one is given.

    dx = dy where |x| <= window, else 0; without a window dx = dy
    [Bengio, Leonard, Courville 2013, "Estimating or propagating gradients through stochastic
    neurons"; Hubara et al. 2016, "Binarized neural networks"].

    Parameters: window: half its width, a number > 0 or a scalar tensor; None: no window.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([0.3, -2.0])
    >>> with gg.override_gradient(gg.rules.ste(window=1.0)):
    ...     y = gg.sign(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([1., 0.])
    """
    if window is not None:
        window = within(POSITIVE_OR_INFINITE, "window", window)

    def ste(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        inside = dy if window is None else where(absolute(x) <= window, dy, 0.0)
        return only(site, x, inside)

    def hard_tanh(x: Tensor) -> Tensor:
        return x if window is None else clip(x, -window, window)

    return rule(ste, surrogate_of(hard_tanh), window=window)
