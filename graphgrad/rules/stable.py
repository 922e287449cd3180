"""True derivatives, in a form that neither overflows nor makes NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.domains import FINITE, INTEGER
from ..base.flags import function
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.demands import within
from ..ops.elementwise.complex_parts import conj
from ..ops.elementwise.logic import where
from ..ops.nn.activations import sigmoid
from ..ops.nn.softmaxes import softmax
from ..ops.reduce.reductions import normal_axes
from ..ops.shape.reshaping import expand_dims
from ..ops.sources import identity
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import alike, number, only, reduced

FAMILY = "stable"


@entry(FAMILY, "exact")
def log1pexp() -> Rule:
    """For y = log(1 + exp(x)): no infinity over infinity for large x.

    dx = dy / (1 + exp(-x))
    [Maechler 2012, "Accurately computing log(1 - exp(-|a|))"].

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([0.0, 100.0])
    >>> y = gg.override(gg.rules.log1pexp())(lambda x: gg.log(1 + gg.exp(x)))(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([0.5, 1. ])
    """

    def log1pexp(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        return only(site, x, dy * sigmoid(x))

    return rule(log1pexp)


@entry(FAMILY, "exact")
def logsumexp(axis: int = -1) -> Rule:
    """For y = log(sum(exp(x), axis)), with the axis kept or not.

    dx = dy * softmax(x, axis)
    [Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp and softmax functions"].

    Parameters: axis: that of the sum.

    Returns: a rule for a site of one floating or complex input and one floating output.

    Raises: GradientError at another site; ShapeError if its input has no such axis.

    >>> x = gg.constant([0.0, 0.0])
    >>> y = gg.override(gg.rules.logsumexp())(lambda x: gg.log(gg.sum(gg.exp(x))))(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([0.5, 0.5])
    """
    INTEGER("axis", axis)

    def logsumexp(site: Site, dy: Tensor) -> Any:
        x = reduced(site, axis)
        return only(site, x, _wide(dy, x, axis) * softmax(x, axis))

    return rule(logsumexp, axis=axis)


@entry(FAMILY, "exact")
def norm(axis: Any = None) -> Rule:
    """For y = sqrt(sum(x * x, axis)), with the axes kept or not: gradient 0 at 0 instead of NaN.

    dx = dy * conj(x) / y where y > 0, else 0 (the smallest of the subgradients)
    [Boyd and Vandenberghe 2022, "Subgradients", lecture notes].

    Parameters: axis: that of the sum, or several in a tuple; None: all.

    Returns: a rule for a site of one floating or complex input and one floating output.

    Raises: GradientError at another site; ShapeError if its input has no such axis.

    >>> x = gg.constant([0.0, 0.0])
    >>> y = gg.override(gg.rules.norm())(lambda x: gg.sqrt(gg.sum(x * x)))(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([0., 0.])
    """

    def norm(site: Site, dy: Tensor) -> Any:
        x, y = reduced(site, axis), site.outputs[0]
        length, dlength = _wide(y, x, axis), _wide(dy, x, axis)
        there = length > 0
        return only(site, x, where(there, dlength * conj(x) / where(there, length, 1.0), 0.0))

    return rule(norm, axis=axis)


def _wide(y: Tensor, x: Tensor, axis: Any) -> Tensor:
    """y with the axes that were summed over put back, if they are not there."""
    return y if y.ndim == x.ndim else expand_dims(y, normal_axes(axis, x.ndim))


@entry(FAMILY, "exact")
def masked(
    f: Callable[[Tensor], Tensor], mask: Callable[[Tensor], Tensor], safe: float | Tensor = 1.0
) -> Rule:
    """For y = where(mask(x), f(x), other): no NaN from elements that are not selected.

    dx = dy * f'(x) where mask(x), else 0; f is only ever differentiated where the mask holds, or at
    `safe`
    [the "double where" of autodiff folklore].

    Parameters:
        f: a function of x that returns tensors, element by element.
        mask: a function of x that gives a bool tensor of its shape.
        safe: a finite number at which f has a finite derivative, or a tensor that broadcasts to x.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: TypeError if f or mask is not a function; GradientError at another site.

    >>> x = gg.constant([0.0, 4.0])
    >>> positive = lambda x: x > 0
    >>> root = lambda x: gg.where(positive(x), gg.sqrt(x), 0.0)
    >>> y = gg.override(gg.rules.masked(gg.sqrt, positive))(root)(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([0.  , 0.25])
    """
    function("f", f)
    function("mask", mask)
    safe = within(FINITE, "safe", safe)

    def masked(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        taken = mask(x)
        at = identity(where(taken, x, number(safe, x)))
        return only(site, x, gradients(f(at), at, where(taken, dy, 0.0), unconnected="zero"))

    return rule(masked, f=f, mask=mask)
