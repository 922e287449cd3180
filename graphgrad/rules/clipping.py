"""Gradients kept in bounds."""

from __future__ import annotations

from typing import Any

from ..base.domains import FINITE, INTEGER, NON_NEGATIVE_OR_INFINITE, POSITIVE, POSITIVE_OR_INFINITE
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.base import rounded_once
from ..ops.demands import within
from ..ops.elementwise.bounds import clip, maximum, nan_to_num
from ..ops.elementwise.complex_parts import conj, real
from ..ops.elementwise.exponential import sqrt
from ..ops.shape.reshaping import normal_axis
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import changed, number, total

FAMILY = "clipping"


@entry(FAMILY, "policy", linear=False)
def clip_value(limit: float | Tensor) -> Rule:
    """Each element of the gradient is clipped.

    dx = clip(the gradient without the rule, -limit, limit)
    [Mikolov 2012, "Statistical language models based on neural networks"].

    Parameters: limit: a number > 0, or a tensor that broadcasts to the gradients.

    Returns: a rule for any site.

    >>> x = gg.constant([1.0, 10.0])
    >>> gg.evaluate(gg.gradients(gg.square(x), x, overrides={"Square": gg.rules.clip_value(5.0)}))
    array([2., 5.])
    """
    limit = within(POSITIVE_OR_INFINITE, "limit", limit)

    def clip_value(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: clip(dx, -limit, limit))

    return rule(clip_value, limit=limit)


@entry(FAMILY, "policy", linear=False)
def clip_norm(limit: float | Tensor, axis: int | None = None) -> Rule:
    """A gradient whose norm is over the limit is shrunk to it; with an axis, per example.

    dx = d * min(1, limit / norm(d)), d the gradient without the rule
    [Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent neural networks"].

    Parameters:
        limit: the largest norm, of each input's gradient by itself: a finite number > 0, or a
            scalar tensor.
        axis: the examples' axis; None: one norm for all.

    Returns: a rule for any site.

    Raises: ShapeError at a site of which an input has no such axis.

    >>> x = gg.constant([3.0, 4.0])
    >>> dx = gg.gradients(gg.square(x) / 2, x, overrides={"Square": gg.rules.clip_norm(1.0)})
    >>> gg.evaluate(dx)
    array([0.6, 0.8])
    """
    limit = within(POSITIVE, "limit", limit)
    INTEGER.if_given("axis", axis)

    def shrunk(dx: Tensor) -> Tensor:
        example = None if axis is None else normal_axis(axis, dx.ndim)
        axes = tuple(i for i in range(dx.ndim) if i != example)

        def scaled(dx: Tensor) -> Tensor:
            squares = total(real(dx * conj(dx)), axes, keepdims=True)
            most = number(limit, squares)
            return dx * (most / sqrt(maximum(squares, most * most)))

        return rounded_once(scaled, dx)

    def clip_norm(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, shrunk)

    return rule(clip_norm, limit=limit, axis=axis)


@entry(FAMILY, "policy", linear=False)
def nan_guard(nan: float = 0.0, limit: float | None = None) -> Rule:
    """NaN in the gradient becomes a number; infinities become plus or minus the limit.

    dx = nan_to_num(the gradient without the rule)
    [folklore].

    Parameters:
        nan: what a NaN becomes, a finite number.
        limit: what an infinity becomes, a number >= 0; None: the dtype's largest number.

    Returns: a rule for any site.

    >>> x = gg.constant([0.0, 4.0])
    >>> gg.evaluate(gg.gradients(gg.sqrt(x), x, overrides={"Sqrt": gg.rules.nan_guard(limit=1.0)}))
    array([1.  , 0.25])
    """
    FINITE("nan", nan)
    NON_NEGATIVE_OR_INFINITE.if_given("limit", limit)
    below = None if limit is None else -limit

    def nan_guard(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: nan_to_num(dx, nan=nan, posinf=limit, neginf=below))

    return rule(nan_guard, nan=nan, limit=limit)
