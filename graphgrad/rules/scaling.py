"""The gradient times a factor, reversed, or held back."""

from __future__ import annotations

from typing import Any

from ..base.domains import ANY, FROM_ZERO
from ..base.errors import GradientError, counted
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.base import DEFAULT, NO_GRAD, TensorLike
from ..ops.demands import within
from ..regions.contracts import Contract
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import changed, number

FAMILY = "scaling"


@entry(FAMILY, "scaled")
def scale(factor: TensorLike) -> Rule:
    """The gradient times a factor: a number, or a tensor that follows a schedule.

    dx = factor * (the gradient without the rule)
    [folklore; as a layer in Ganin and Lempitsky 2015, "Unsupervised domain adaptation by
    backpropagation"].

    Parameters: factor: any number, or a tensor that broadcasts to the gradients.

    Returns: a rule for any site.

    >>> x = gg.constant([1.0, 2.0])
    >>> y = gg.override(gg.rules.scale(0.5))(gg.square)(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([1., 2.])
    """
    within(ANY, "factor", factor)

    def scale(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: dx * number(factor, dx))

    return rule(scale, Contract("scaled", factor), factor=factor)


@entry(FAMILY, "scaled")
def reverse(scale: TensorLike = 1.0) -> Rule:
    """Gradient reversal: layers after it learn the task, layers before it learn against it.

    dx = -scale * (the gradient without the rule)
    [Ganin et al. 2016, "Domain-adversarial training of neural networks"].

    Parameters: scale: any number, or a tensor that broadcasts to the gradients.

    Returns: a rule for any site.

    >>> x = gg.constant([1.0, 2.0])
    >>> y = gg.override(gg.rules.reverse())(gg.square)(x)
    >>> gg.evaluate(gg.gradients(y, x))
    array([-2., -4.])
    """
    within(ANY, "scale", scale)

    def reverse(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: -dx * number(scale, dx))

    factor = -scale if isinstance(scale, int | float) else None
    return rule(reverse, Contract("scaled", factor), scale=scale)


@entry(FAMILY, "stop")
def stop(*inputs: int) -> Rule:
    """Nothing flows to the inputs at these places; without places, to none.

    dx = nothing where listed, else the gradient without the rule
    [the stop-gradient of autodiff systems, for some of the inputs].

    Parameters: *inputs: places among the site's inputs, ints >= 0.

    Returns: a rule for any site.

    Raises: GradientError at a site that has no input at a place.

    >>> x = gg.constant(3.0)
    >>> gg.evaluate(gg.gradients(x * x, x, overrides={"Multiply": gg.rules.stop(0)}))
    array(3.)
    """
    for i in inputs:
        FROM_ZERO("inputs", i)

    def stop(site: Site, *dys: Tensor) -> Any:
        count = len(site.inputs)
        if max(inputs, default=0) >= count:
            raise GradientError(
                f"{site!r} has {counted(count, 'input')}, and this rule stops {list(inputs)}"
            )
        return [NO_GRAD if i in inputs or not inputs else DEFAULT for i in range(count)]

    return rule(stop, Contract("policy") if inputs else None, inputs=inputs or None)
