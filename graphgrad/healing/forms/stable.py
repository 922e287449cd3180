"""What forms are made of: series, choices that are safe on both sides, slopes of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ...differentiate.site import Site
from ...ir.node import Tensor
from ...ir.types import size_of
from ...ops.base import like
from ...ops.create.creation import zeros_like
from ...ops.elementwise.bounds import maximum, minimum
from ...ops.elementwise.logic import isfinite, logical_and, logical_not, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.reduce.reductions import max as largest
from ...ops.reduce.reductions import normal_axes
from ...ops.shape.reshaping import sum_to
from ...regions.rules import own_rule
from ...regions.scopes import override_gradient

Function = Callable[..., Tensor]
LOG2 = math.log(2.0)


class StableForm:
    """A stable function of tensors that a term may call: its name, and what it was made with."""

    __slots__ = ("fn", "name", "options")
    _known: dict[Any, StableForm] = {}

    def __init__(self, name: str, fn: Function, options: tuple[Any, ...]) -> None:
        self.name, self.fn, self.options = name, fn, options

    @classmethod
    def of(cls, fn: Function, *options: Any) -> StableForm:
        """The one form of a function and its options."""
        if isinstance(fn, StableForm):
            return fn
        form = cls._known.get((fn, options))
        if form is None:
            form = cls._known[fn, options] = cls(fn.__name__.strip("_"), fn, options)
        return form

    def __call__(self, *tensors: Tensor) -> Tensor:
        """The function of these tensors."""
        return self.fn(*self.options, *tensors)

    def __repr__(self) -> str:
        return self.name


def sloped(slopes: Callable[..., Any]) -> Callable[[Function], Function]:
    """Of a form whose gradient is a rule of its own: what dy becomes for each of its inputs."""

    def decorate(form: Function) -> Function:
        def rule(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
            made = slopes(dy, *site.inputs)
            made = made if isinstance(made, tuple) else (made,)
            return tuple([sum_to(d, like=x) for d, x in zip(made, site.inputs, strict=True)])

        name = own_rule(f"gg.healing.{form.__name__.strip('_')}", rule, contract="exact")

        @wraps(form)
        def made(*xs: Tensor) -> Tensor:
            with override_gradient(name, inputs=list(xs)):
                return form(*xs)

        return made

    return decorate


def series(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial in x, by Horner's rule."""
    total = like(coefficients[-1], x) + zeros_like(x)
    for c in reversed(coefficients[:-1]):
        total = total * x + like(c, x)
    return total


def chosen(where_near: Tensor, near: Function, far: Function, *xs: Tensor) -> Tensor:
    """near(*xs), of 0 where it is not chosen, else far(*xs), of 1 where it is not."""
    inside = [where(where_near, x, 0.0) for x in xs]
    return where(where_near, near(*inside), far(*[where(where_near, 1.0, x) for x in xs]))


def near_zero(x: Tensor, radius: float, near: Function, far: Function) -> Tensor:
    """near(x) for |x| below the radius, else far(x), each only where it is chosen."""
    return chosen(absolute(x) < radius, near, far, x)


def gap(x: Tensor, y: Tensor) -> Tensor:
    """x - y; 0 where both are the same infinity."""
    same = logical_and(x == y, logical_not(isfinite(x)))
    return where(same, 0.0, x) - where(same, 0.0, y)


def signed_gap(x: Tensor, y: Tensor, size: Function) -> Tensor:
    """size(larger, smaller) with the sign of y - x."""
    return where(x > y, like(-1.0, x), 1.0) * size(maximum(x, y), minimum(x, y))


def greatest(
    x: Tensor, axes: int | tuple[int, ...] | None, keep: bool = True, nothing: float = -math.inf
) -> Tensor:
    """The largest of x over axes; of no elements that which is given."""
    lengths = [x.shape[a] for a in normal_axes(axes, x.ndim)]
    return largest(x, axes, keep, initial=None if size_of(lengths) else nothing)


def finite_or_zero(x: Tensor) -> Tensor:
    """x where it is finite, else 0."""
    return where(isfinite(x), x, 0.0)
