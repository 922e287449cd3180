"""Surrogates: the derivative of a smoother function in place of a step's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.flags import function
from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..regions.contracts import surrogate_of
from ..regions.rules import Rule
from .entries import entry, rule

FAMILY = "surrogates"


@entry(FAMILY, "surrogate")
def surrogate(f: Callable[..., Tensor]) -> Rule:
    """The derivative of f, a function of the site's inputs that returns tensors like its outputs.

    dxs = the gradient of f at xs
    [Neftci, Mostafa, Zenke 2019, "Surrogate gradient learning in spiking neural networks"].

    Parameters: f: is graph code; its results have the shapes and dtypes of the site's outputs.

    Returns: a rule for any site.

    Raises: TypeError if f is not a function; GradientError at a site whose outputs are not like
    what f returns.

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
