"""Gradients kept in bounds."""

from __future__ import annotations

from typing import Any

from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.arithmetic import clip, maximum, nan_to_num
from ..ops.exponential import sqrt
from ..ops.shaping import normal_axis
from ..regions.rules import Rule
from .entries import entry, rule
from .sites import changed, total

FAMILY = "clipping"


@entry(FAMILY, "policy", linear=False)
def clip_value(limit: float) -> Rule:
    """Each element of the gradient is clipped.

    dx = clip(the gradient without the rule, -limit, limit)
    [Mikolov 2012, "Statistical language models based on neural networks"].
    """

    def clip_value(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: clip(dx, -limit, limit))

    return rule(clip_value, limit=limit)


@entry(FAMILY, "policy", linear=False)
def clip_norm(limit: float, axis: int | None = None) -> Rule:
    """A gradient whose norm is over the limit is shrunk to it; with an axis, per example.

    dx = d * min(1, limit / norm(d)), d the gradient without the rule; axis: the examples' axis
    [Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent neural networks"].
    """

    def shrunk(dx: Tensor) -> Tensor:
        example = None if axis is None else normal_axis(axis, dx.ndim)
        axes = tuple(i for i in range(dx.ndim) if i != example)
        squares = total(dx * dx, axes, keepdims=True)
        return dx * (limit / sqrt(maximum(squares, limit * limit)))

    def clip_norm(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, shrunk)

    return rule(clip_norm, limit=limit, axis=axis)


@entry(FAMILY, "policy", linear=False)
def nan_guard(nan: float = 0.0, limit: float | None = None) -> Rule:
    """NaN in the gradient becomes a number; infinities become plus or minus the limit.

    dx = nan_to_num(the gradient without the rule); limit: None for the dtype's largest number
    [folklore].
    """
    below = None if limit is None else -limit

    def nan_guard(site: Site, *dys: Tensor) -> Any:
        return changed(site, dys, lambda dx: nan_to_num(dx, nan=nan, posinf=limit, neginf=below))

    return rule(nan_guard, nan=nan, limit=limit)
