"""Rules for ReLU that show what a network looks at."""

from __future__ import annotations

from typing import Any

from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.elementwise.bounds import maximum
from ..ops.elementwise.logic import logical_and, where
from ..ops.reduce.reductions import any as some
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import alike, only

FAMILY = "saliency"


@entry(FAMILY, "attribution", linear=False)
def guided() -> Rule:
    """Guided backpropagation: only positive gradients of active units pass.

    dx = dy where x > 0 and dy > 0, else 0
    [Springenberg et al. 2015, "Striving for simplicity: the all convolutional net"].

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([1.0, -1.0, 1.0])
    >>> dy = np.array([3.0, 3.0, -3.0])
    >>> gg.evaluate(gg.gradients(gg.nn.relu(x), x, dy, overrides={"Relu": gg.rules.guided()}))
    array([3., 0., 0.])
    """

    def guided(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        return only(site, x, where(logical_and(x > 0, dy > 0), dy, 0.0))

    return rule(guided)


@entry(FAMILY, "attribution", linear=False)
def deconvnet() -> Rule:
    """The deconvolutional network: positive gradients pass, active unit or not.

    dx = max(dy, 0)
    [Zeiler and Fergus 2014, "Visualizing and understanding convolutional networks"].

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([1.0, -1.0, 1.0])
    >>> dy = np.array([3.0, 3.0, -3.0])
    >>> gg.evaluate(gg.gradients(gg.nn.relu(x), x, dy, overrides={"Relu": gg.rules.deconvnet()}))
    array([3., 3., 0.])
    """

    def deconvnet(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        return only(site, x, maximum(dy, 0.0))

    return rule(deconvnet)


@entry(FAMILY, "policy", linear=False)
def redirected() -> Rule:
    """Where an example's gradient would be all zero, gradients that activate a unit pass.

    dx = dy where x > 0, if that is not all zero for the example (axis 0), else dy except where x <
    0 and dy > 0
    [the Lucid library, Olah, Mordvintsev, Schubert 2017, "Feature visualization"; for descent].

    Returns: a rule for a site of one floating input (examples, ...) and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([[1.0, -1.0], [-1.0, -1.0]])
    >>> dy = np.array([[3.0, 3.0], [-3.0, 3.0]])
    >>> gg.evaluate(gg.gradients(gg.nn.relu(x), x, dy, overrides={"Relu": gg.rules.redirected()}))
    array([[ 3.,  0.],
           [-3.,  0.]])
    """

    def redirected(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        own = where(x > 0, dy, 0.0)
        waking = where(logical_and(x < 0, dy > 0), 0.0, dy)
        axes = tuple(range(1, x.ndim))
        return only(site, x, where(some(own != 0, axes, keepdims=True), own, waking))

    return rule(redirected)
