"""Surrogates: the derivative of a smoother function in place of a step's."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from ..base.domains import NON_NEGATIVE, POSITIVE
from ..base.flags import function
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.demands import within
from ..ops.elementwise.bounds import clip, maximum
from ..ops.elementwise.magnitudes import absolute
from ..ops.elementwise.trigonometry import arctan
from ..regions.contracts import surrogate_of
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import alike, only, real_numbers

FAMILY = "surrogates"


@entry(FAMILY, "surrogate")
def surrogate(f: Callable[..., Tensor]) -> Rule:
    """The derivative of f, a function of the site's inputs that returns tensors like its outputs.

    dxs = the gradient of f at xs
    [Neftci, Mostafa, Zenke 2019, "Surrogate gradient learning in spiking neural networks"].

    Parameters: f: builds graph; its results have the shapes and dtypes of the site's outputs.

    Returns: a rule for any site.

    Raises: TypeError if f is no function; GradientError at a site whose outputs are not like what
    f returns.

    >>> x = gg.constant(1.0)
    >>> gg.evaluate(gg.gradients(gg.sign(x), x, overrides={"Sign": gg.rules.surrogate(gg.square)}))
    array(2.)
    """

    function("f", f)

    def surrogate(site: Site, *dys: Tensor) -> Any:
        xs = [x for x in site.inputs if x.type.differentiable]
        dxs = gradients(f(*site.inputs), xs, _seeds(dys), stop_gradients=xs)
        given = iter(dxs)
        return [next(given) if x.type.differentiable else None for x in site.inputs]

    return rule(surrogate, surrogate_of(f), f=f)


def _seeds(dys: tuple[Tensor, ...]) -> Any:
    return dys[0] if len(dys) == 1 else list(dys)


@entry(FAMILY, "surrogate")
def fast_sigmoid(slope: float | Tensor = 10.0) -> Rule:
    """For spikes: the derivative of the fast sigmoid of the membrane potential x.

    dx = dy / (1 + slope * |x|)**2, the derivative of x / (1 + slope * |x|)
    [Zenke and Ganguli 2018, "SuperSpike: supervised learning in multilayer spiking neural
    networks"].

    Parameters: slope: how steep it is, a finite number > 0 or a scalar tensor.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([0.0, 0.1])
    >>> y = gg.override(gg.rules.fast_sigmoid())(lambda x: gg.where(x > 0, 1.0, 0.0))(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([1.  , 0.25])
    """
    slope = within(POSITIVE, "slope", slope)

    def fast_sigmoid(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        real_numbers(site, x)
        near = 1.0 + slope * absolute(x)
        return only(site, x, dy / (near * near))

    def smooth(x: Tensor) -> Tensor:
        return x / (1.0 + slope * absolute(x))

    return rule(fast_sigmoid, surrogate_of(smooth), slope=slope)


@entry(FAMILY, "surrogate")
def atan(alpha: float | Tensor = 2.0) -> Rule:
    """For spikes: the derivative of an arc tangent that rises from 0 to 1.

    dx = dy * (alpha / 2) / (1 + (pi * alpha * x / 2)**2), the derivative of arctan(pi * alpha * x /
    2) / pi + 1/2
    [Fang et al. 2021, "Incorporating learnable membrane time constant to enhance learning of
    spiking neural networks"].

    Parameters: alpha: how steep it is, a finite number > 0 or a scalar tensor.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([0.0, 1.0])
    >>> y = gg.override(gg.rules.atan())(lambda x: gg.where(x > 0, 1.0, 0.0))(x)
    >>> gg.evaluate(gg.gradients(y, x)).round(3)
    array([1.   , 0.092])
    """
    alpha = within(POSITIVE, "alpha", alpha)

    def atan(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        at = (pi * alpha / 2) * x
        return only(site, x, dy * (alpha / 2) / (1.0 + at * at))

    def smooth(x: Tensor) -> Tensor:
        return arctan((pi * alpha / 2) * x) / pi + 0.5

    return rule(atan, surrogate_of(smooth), alpha=alpha)


@entry(FAMILY, "surrogate")
def triangle(width: float | Tensor = 1.0, height: float | Tensor = 1.0) -> Rule:
    """For spikes: a triangle around the threshold.

    dx = dy * height * max(0, 1 - |x| / width), the derivative of height * (c - c * |c| / (2 *
    width)), c = clip(x, -width, width)
    [Esser et al. 2016, "Convolutional networks for fast, energy-efficient neuromorphic computing";
    Bellec et al. 2018, "Long short-term memory and learning-to-learn in networks of spiking
    neurons"].

    Parameters:
        width: half the width of the triangle, in x: a finite number > 0, or a scalar tensor.
        height: the gradient at 0, a finite number >= 0 or a scalar tensor.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([0.0, 0.5, 2.0])
    >>> y = gg.override(gg.rules.triangle())(lambda x: gg.where(x > 0, 1.0, 0.0))(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([1. , 0.5, 0. ])
    """
    width, height = within(POSITIVE, "width", width), within(NON_NEGATIVE, "height", height)

    def triangle(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        real_numbers(site, x)
        return only(site, x, dy * (height * maximum(1.0 - absolute(x) / width, 0.0)))

    def smooth(x: Tensor) -> Tensor:
        c = clip(x, -width, width)
        return height * (c - c * absolute(c) / (2 * width))

    return rule(triangle, surrogate_of(smooth), width=width, height=height)
