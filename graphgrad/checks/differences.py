"""Finite differences that know where they can be trusted.

Central differences at two steps, extrapolated [Richardson 1911]. An entry is NaN, and counts as
unknown, where the two steps disagree (a jump nearby) or where the one-sided differences do not
come together as the step shrinks (a kink at the point itself).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.kinds import is_inexact, limits_of
from ..ir.types import Array

Along = Callable[[float], Array]
"""The values of a function at a distance from a point, along one direction."""

STEPS = (1.0, 1 / 32, 1 / 1024)


@dataclass(frozen=True)
class Precision:
    """How exact differences can be for values of one floating dtype.

    eps   the spacing of numbers at 1
    step  how far to go from the point
    rtol  how far a right gradient may be off, relatively
    """

    eps: float
    step: float
    rtol: float


def precision_of(dtypes: Sequence[Any]) -> Precision:
    """The precision of the coarsest of the floating dtypes."""
    eps = max([float(limits_of(d).eps) for d in dtypes if is_inexact(np.dtype(d))], default=2**-52)
    step = eps**0.2
    return Precision(eps, step, 1e-6 if eps < 1e-12 else 2e-3 if eps < 1e-6 else 0.1)


def slope(along: Along, precision: Precision) -> tuple[Array, Array]:
    """The derivative at distance 0, NaN where it cannot be trusted, and its rounding noise."""
    here = along(0.0)
    derivative = np.full(here.shape, np.nan)
    noise = np.zeros(here.shape)
    for shrink in STEPS:
        open_ = np.isnan(derivative)
        if not open_.any():
            break
        h = precision.step * shrink
        estimate, error, blurred = _two_steps(along, here, h, precision.eps)
        scale = np.abs(estimate) + blurred
        good = open_ & np.isfinite(estimate) & (error <= 1e-3 * scale + 4 * blurred)
        derivative = np.where(good, estimate, derivative)
        noise = np.where(good, blurred, noise)
    return derivative, noise


def _two_steps(along: Along, here: Array, h: float, eps: float) -> tuple[Array, Array, Array]:
    """Extrapolated estimate, its error (infinite at a kink), and the noise of rounding."""
    right, left = along(h), along(-h)
    near_right, near_left = along(h / 2), along(-h / 2)
    wide, narrow = (right - left) / (2 * h), (near_right - near_left) / h
    largest = np.max(np.abs([here, right, left]), axis=0)
    noise = 20 * eps * largest / h
    bend, near_bend = (right - 2 * here + left) / h, (near_right - 2 * here + near_left) / (h / 2)
    kink = np.abs(near_bend) > 0.75 * np.abs(bend)
    kink &= np.abs(near_bend) > 1e-6 * np.abs(narrow) + 4 * noise
    error = np.where(kink, np.inf, np.abs(wide - narrow))
    return (4 * narrow - wide) / 3, error, noise


def partials(
    f: Callable[[list[Array]], Array], point: Sequence[Array], which: int, precision: Precision
) -> tuple[Array, Array]:
    """d f / d point[which], entry by entry: (size of f, size of the input), and the noise."""
    x = np.asarray(point[which])
    columns = [
        slope(_along_entry(f, point, which, i, max(1.0, abs(float(x.flat[i])))), precision)
        for i in range(x.size)
    ]
    if not columns:
        empty = np.zeros((f(list(point)).size, 0))
        return empty, empty
    sizes = [max(1.0, abs(float(v))) for v in x.flat]
    jacobian = np.stack([c[0] / s for c, s in zip(columns, sizes, strict=True)], axis=1)
    return jacobian, np.stack([c[1] / s for c, s in zip(columns, sizes, strict=True)], axis=1)


def _along_entry(f: Any, point: Sequence[Array], which: int, entry: int, size: float) -> Along:
    def along(t: float) -> Array:
        moved = np.array(point[which])
        moved.flat[entry] += t * size
        return f([*point[:which], moved, *point[which + 1 :]])  # type: ignore[no-any-return]

    return along


def along_direction(f: Any, point: Sequence[Array], direction: Sequence[Array | None]) -> Along:
    """f at a distance from a point; None: that input does not move."""

    def along(t: float) -> Array:
        moved = [
            x if v is None else (x + t * v).astype(x.dtype)
            for x, v in zip(point, direction, strict=True)
        ]
        return f(moved)  # type: ignore[no-any-return]

    return along


def worst(expected: Array, got: Array, noise: Array | float, rtol: float) -> tuple[int, ...] | None:
    """The position where two arrays differ most beyond tolerance; None where they agree.

    Entries whose expected value is NaN are unknown and agree with everything finite.
    """
    expected, got = np.broadcast_arrays(expected, got)
    known = np.isfinite(expected)
    if not known.any():
        return None
    scale = np.max(np.abs(expected[known]), initial=0.0)
    allowed = rtol * (np.maximum(np.abs(expected), np.abs(got)) + 0.01 * scale) + noise
    with np.errstate(invalid="ignore"):
        off = np.where(known, np.abs(expected - got) - allowed, -1.0)
    off = np.where(known & ~np.isfinite(got), np.inf, off)
    if not (off > 0).any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))
