"""Lengths, directions and angles that neither over- nor underflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ...differentiate.site import Site
from ...ir.node import Tensor
from ...ops.elementwise.bounds import maximum, minimum
from ...ops.elementwise.exponential import log, log1p, sqrt
from ...ops.elementwise.logic import isfinite, logical_and, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.magnitudes import hypot
from ...ops.elementwise.trigonometry import arccos, arctan2
from ...ops.reduce.reductions import sum as total_of
from ...ops.shape.reshaping import squeeze
from ...ops.sources import stop_gradient
from ...regions.rules import own_rule
from ...regions.scopes import override_gradient
from .stable import Function, greatest, sloped


def _scale_of(size: Tensor) -> Tensor:
    """What to divide by: the size, held fixed; 1 where that is 0 or infinite."""
    size = stop_gradient(size)
    return where(logical_and(size > 0, isfinite(size)), size, 1.0)


def _sloped_along(slope: Function) -> Callable[[Function], Function]:
    """Of a form along axes whose gradient is a rule of its own: of x, y and the cotangent."""

    def decorate(form: Function) -> Function:
        def rule(site: Site, dy: Tensor) -> Tensor:
            (x,) = site.inputs
            return slope(dy, x, made(tuple([i for i, d in enumerate(dy.shape) if d == 1]), True, x))

        name = own_rule(f"gg.healing.{form.__name__}", rule, contract="exact")

        def made(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
            with override_gradient(name, inputs=[x]):
                y = form(axes, x)
            return y if keep else squeeze(y, axes)

        made.__name__ = form.__name__
        return made

    return decorate


@_sloped_along(lambda dy, x, y: dy * (x / whole_norm(y)))
def norm(axes: tuple[int, ...], x: Tensor) -> Tensor:
    """sqrt(sum(x * x)) without overflow or underflow, with the gradient 0 at 0."""
    s = _scale_of(greatest(absolute(x), axes, nothing=0.0))
    u = x / s
    return s * sqrt(total_of(u * u, axes, keepdims=True))


@_sloped_along(lambda dy, x, y: -dy * ((x * y) * y) * y)
def inverse_norm(axes: tuple[int, ...], x: Tensor) -> Tensor:
    """1 / sqrt(sum(x * x)), of which the slope by what is 0 is 0."""
    return 1.0 / norm(axes, True, x)


def whole_norm(length: Tensor) -> Tensor:
    """A length to divide by: 1 where it is 0."""
    return where(length == 0, 1.0, length)


def _each(xs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Each of these, with the others."""
    return [(x, *xs[:i], *xs[i + 1 :]) for i, x in enumerate(xs)]


def lengths(*xs: Tensor) -> Tensor:
    """sqrt(x1**2 + x2**2 + ...). Its slopes are directions, whose slopes do not cancel."""
    return absolute(xs[0]) if len(xs) == 1 else _lengths(*xs)


@sloped(lambda dy, *xs: tuple([dy * direction(*each) for each in _each(xs)]))
def _lengths(*xs: Tensor) -> Tensor:
    return reduce(hypot, xs)


def _direction_slopes(dy: Tensor, x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    rest, scale = lengths(*others), 1.0 / lengths(x, *others)
    along, across = direction(x, *others), direction(rest, x)
    parts = [direction(y, x, *left) for y, *left in _each(others)]
    return dy * (across * across) * scale, *[-dy * (along * part) * scale for part in parts]


@sloped(_direction_slopes)
def direction(x: Tensor, *others: Tensor) -> Tensor:
    """x / sqrt(x**2 + y1**2 + ...); 0 at 0. Its slopes are products, without a difference."""
    return x / whole_norm(reduce(hypot, others, x))


def _inverse_length_slopes(dy: Tensor, *xs: Tensor) -> tuple[Tensor, ...]:
    y = inverse_length(*xs)
    return tuple([-dy * (direction(*each) * y) * y for each in _each(xs)])


@sloped(_inverse_length_slopes)
def inverse_length(*xs: Tensor) -> Tensor:
    """1 / sqrt(x1**2 + x2**2 + ...), of which the slopes by what is 0 are 0."""
    return 1.0 / reduce(hypot, xs)


@sloped(lambda dy, x, y: (2.0 * dy * over_squares(x, y), 2.0 * dy * over_squares(y, x)))
def log_squares(x: Tensor, y: Tensor) -> Tensor:
    """log(x**2 + y**2) without an overflow, and to all digits where that is near 1."""
    a, b = maximum(absolute(x), absolute(y)), minimum(absolute(x), absolute(y))
    near = logical_and(a > 0.5, a < 1.5)
    c, d = where(near, a, 1.0), where(near, b, 0.0)
    return where(near, log1p((c - 1.0) * (c + 1.0) + d * d), 2.0 * log(hypot(a, b)))


def _squares_difference_slopes(dy: Tensor, x: Tensor, y: Tensor, s: Tensor) -> tuple[Tensor, ...]:
    twice = 2.0 * dy * s
    return twice * (x * s), -twice * (y * s), 2.0 * dy * ((x - y) * ((x + y) * s))


@sloped(_squares_difference_slopes)
def squares_difference(x: Tensor, y: Tensor, s: Tensor) -> Tensor:
    """s**2 (x**2 - y**2) by its factors, with the slopes of the squares."""
    return ((x - y) * s) * ((x + y) * s)


def _over_squares_slopes(dy: Tensor, x: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    rest, s = lengths(*others), inverse_length(x, *others)
    away = -2.0 * dy * direction(x, *others) * s * s
    first = dy * (squares_difference(rest, x, s) * s * s)
    return first, *[away * direction(y, x, *left) for y, *left in _each(others)]


@sloped(_over_squares_slopes)
def over_squares(x: Tensor, *others: Tensor) -> Tensor:
    """x / (x**2 + y1**2 + ...), of which the slope along x is the product of two differences."""
    length = reduce(hypot, others, x)
    return x / length / length


def _root(x: Tensor, y: Tensor) -> Tensor:
    a, b = absolute(x), absolute(y)
    return sqrt(a - b) * sqrt(a + b)


def _over_root_slopes(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b, r = over_root(x, y), under_root(x, y), root_of_difference(x, y)
    return -dy * (b * b) / r, dy * (a * b) / r


def _under_root_slopes(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a, b, r = over_root(x, y), under_root(x, y), root_of_difference(x, y)
    return -dy * (a * b) / r, dy * (a * a) / r


@sloped(lambda dy, x, y: (dy * over_root(x, y), -dy * under_root(x, y)))
def root_of_difference(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x**2 - y**2) by its factors."""
    return _root(x, y)


@sloped(_over_root_slopes)
def over_root(x: Tensor, y: Tensor) -> Tensor:
    """x / sqrt(x**2 - y**2)."""
    return x / _root(x, y)


@sloped(_under_root_slopes)
def under_root(x: Tensor, y: Tensor) -> Tensor:
    """y / sqrt(x**2 - y**2)."""
    return y / _root(x, y)


def scaled_root(signs: tuple[float, ...], *pairs: Tensor) -> Tensor:
    """sqrt(c1 x1 y1 + c2 x2 y2 + ...) of (x1, y1, x2, y2, ...), without overflow or underflow."""
    xs, ys = pairs[::2], pairs[1::2]
    sizes = [sqrt(absolute(x)) * sqrt(absolute(y)) for x, y in zip(xs, ys, strict=True)]
    s = _scale_of(reduce(maximum, sizes))
    parts = []
    for c, x, y in zip(signs, xs, ys, strict=True):
        big = stop_gradient(absolute(x) >= absolute(y))
        a, b = where(big, x, y), where(big, y, x)
        parts.append(c * (a / s) * (b / s))
    return s * sqrt(reduce(lambda a, b: a + b, parts))


def angle(axes: tuple[int, ...], keep: bool, x: Tensor, y: Tensor) -> Tensor:
    """The angle between x and y, to all digits for parallel ones, too."""
    u, v = x / norm(axes, True, x), y / norm(axes, True, y)
    cosine = total_of(u * v, axes, keepdims=keep)
    apart = absolute(cosine) < 0.7
    near = 2.0 * arctan2(norm(axes, keep, u - v), norm(axes, keep, u + v))
    return where(apart, arccos(where(apart, cosine, 0.0)), near)
