"""Where a formula is right: how many digits are, along one input, over all exponents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.kinds import limits_of
from ..ir.types import Array, as_dtype

LOSES = 2.0
"""Digits: a formula is wrong where it loses as many, and another form of it does not."""
STEPS = 20
"""Halvings of the gap in which it begins to be wrong."""
END = 1e3
"""What reaches so near to the largest number reaches to the end."""
NARROW = 3
"""Points: a shorter interval between two where it is wrong is none."""
SIDE = 80
"""Points on each side of 0."""


class Axis:
    """Signed exponents on a line from -1 to 1: 0 in the middle, the ordinary ones spread out.

    >>> Axis("float64").position(np.array([-1e308, 0.0, 1.0])).round(2).tolist()
    [-1.0, 0.0, 0.48]
    """

    def __init__(self, dtype: Any) -> None:
        limits = limits_of(as_dtype(dtype))
        self.digits = -math.log10(float(limits.eps))
        self.tiny = 4 * float(limits.smallest_subnormal)
        self.most = float(limits.max)
        low, high = math.log10(float(limits.tiny)), math.log10(self.most)
        far = max(self.digits, 6.0)
        self._exponents = [low, -far, -3.0, 4.0, far, high]
        self._places = [0.02, 0.12, 0.27, 0.75, 0.9, 1.0]

    def position(self, x: Array) -> Array:
        """Where on the line numbers are."""
        size = np.abs(x)
        exponent = np.log10(np.where(size > 0, size, 1.0))
        place = np.interp(exponent, self._exponents, self._places)
        return np.asarray(np.where(size > 0, np.sign(x) * place, 0.0))

    def number(self, place: Array) -> Array:
        """What is at a place of the line."""
        size = np.abs(place)
        exponent = np.interp(size, self._places, self._exponents)
        with np.errstate(over="ignore"):
            number = np.minimum(10.0**exponent, self.most)
        return np.asarray(np.where(size < self._places[0], 0.0, np.sign(place) * number))

    def points(self, near: Sequence[float] = (), side: int = SIDE) -> Array:
        """0, numbers of all exponents and both signs, and some on either side of those named."""
        places = np.linspace(self._places[0], 1.0, side)
        around = 10.0 ** -np.arange(1.0, self.digits - 1, 1.0)
        named = [c * (1 + s * around) for c in (1.0, -1.0, *near) for s in (1.0, -1.0)]
        line = self.number(np.concatenate([-places[::-1], places]))
        return np.unique(np.concatenate([[0.0], line, *named]))


class Measured(NamedTuple):
    """What forms of one function are at some numbers; a row for the value, one for the slope.

    truth   what is right, NaN where nothing is
    before  what was written; after, what it became: what each computes
    """

    truth: Array
    before: Array
    after: Array


class Interval(NamedTuple):
    """From where to where what was written is wrong, and what it is there, in words.

    >>> str(Interval(709.8, math.inf, "the value is infinite"))
    'from 709.8: the value is infinite'
    """

    start: float
    end: float
    says: str

    def __str__(self) -> str:
        return f"{self.span}: {self.says}"

    @property
    def span(self) -> str:
        """From where to where."""
        if math.isinf(self.start) and math.isinf(self.end):
            return "everywhere"
        if math.isinf(self.end):
            return f"from {shown(self.start)}"
        if math.isinf(self.start):
            return f"below {shown(self.end)}"
        if self.start == self.end:
            return f"at {shown(self.start)}"
        return f"from {shown(self.start)} to {shown(self.end)}"


def shown(x: float) -> str:
    """A number in four digits; how far from 1 or -1 where these do not tell."""
    for whole in (1.0, -1.0):
        gap = x - whole
        if 0 < abs(gap) < 1e-3:
            return f"{whole:g} {'+' if gap > 0 else '-'} {abs(gap):.0e}".replace("e-0", "e-")
    return f"{x:.4g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


class AccuracyCurve(NamedTuple):
    """Correct digits along one input.

    xs      numbers, ascending
    before  digits of the value and of the slope of what was written, a row each; NaN where the
            function has no value
    after   the same of the stable form
    wrong   where the value of what was written is wrong, from left to right, and where the slope is
    """

    xs: Array
    before: Array
    after: Array
    wrong: tuple[tuple[Interval, ...], tuple[Interval, ...]]

    @property
    def intervals(self) -> list[Interval]:
        """Those of the value and of the slope, from left to right; one of both, where both are."""
        slopes = {interval.span: interval for interval in self.wrong[1]}
        made = [
            v._replace(says=f"{v.says}, {slopes.pop(v.span).says}") if v.span in slopes else v
            for v in self.wrong[0]
        ]
        return sorted([*made, *slopes.values()])


def correct_digits(truth: Array, got: Array, axis: Axis) -> Array:
    """How many digits are right; NaN where there is no truth."""
    with np.errstate(all="ignore"):
        gap = np.abs(got - truth)
        lost = gap / np.abs(truth)
        right = (got == truth) | (gap <= axis.tiny)
        digits = -np.log10(np.where(right | ~(lost > 0), 1.0, lost))
    digits = np.where(right, axis.digits, np.where(np.isnan(digits) | np.isnan(lost), 0.0, digits))
    digits = np.clip(np.where(np.isfinite(got) == np.isfinite(truth), digits, 0.0), 0, axis.digits)
    return np.asarray(np.where(np.isnan(truth), math.nan, digits))


def accuracy_curve(
    measure: Callable[[Array], Measured],
    axis: Axis,
    near: Sequence[float] = (),
    side: int = SIDE,
) -> AccuracyCurve:
    """How right both forms are along one input, of which they are measured at given numbers."""
    xs = axis.points(near, side)
    found = _with_limits(xs, measure(xs))
    before, after = (correct_digits(found.truth, a, axis) for a in found[1:])
    wrong = tuple(
        _row_of_intervals(measure, axis, xs, row, found, before[row], after[row])
        for row in range(2)
    )
    return AccuracyCurve(xs, before, after, wrong)  # type: ignore[arg-type]


def _with_limits(xs: Array, found: Measured) -> Measured:
    """At 0, where the formula may be 0 / 0, the truth is what it is on both sides of it."""
    (at,) = np.flatnonzero(xs == 0)
    truth = found.truth.copy()
    truth[:, np.isnan(truth[0]) & (xs != 0)] = math.nan
    for row in np.flatnonzero(np.isnan(truth[:, at])):
        left, right = truth[row, at - 1], truth[row, at + 1]
        limit = found.after[row, at]
        if np.isfinite([left, right]).all() and np.allclose([left, right], limit, atol=1e-200):
            truth[row, at] = limit
    return found._replace(truth=truth)


def _is_wrong(before: Array, after: Array, axis: Axis) -> Array:
    """Where what was written loses digits that the other form has."""
    with np.errstate(invalid="ignore"):
        return np.asarray((before <= axis.digits - LOSES) & (after >= before + 1))


def _row_of_intervals(
    measure: Callable[[Array], Measured],
    axis: Axis,
    xs: Array,
    row: int,
    found: Measured,
    before: Array,
    after: Array,
) -> tuple[Interval, ...]:
    bad = _is_wrong(before, after, axis)
    known = np.flatnonzero(~np.isnan(before))
    (at_0,) = np.flatnonzero(xs == 0)
    bad[at_0] |= bad[at_0 - 1] & bad[at_0 + 1]
    for i in range(1, len(known) - NARROW):
        gap = known[i : i + NARROW]
        bad[gap] |= bad[known[i - 1]] and bad[known[i + NARROW]]
    edges = [i for i in range(len(known) - 1) if bad[known[i]] != bad[known[i + 1]]]
    ends = _edges(measure, axis, row, xs[known], bad[known], edges)
    made, start = [], 0
    for i in range(len(known)):
        if i + 1 < len(known) and bad[known[i]] == bad[known[i + 1]]:
            continue
        if bad[known[i]]:
            inside = known[start : i + 1]
            first, last = ends.get(start - 1, xs[inside[0]]), ends.get(i, xs[inside[-1]])
            low = -math.inf if first < -axis.most / END else first
            high = math.inf if last > axis.most / END else last
            name = ("the value", "the gradient")[row]
            truth, got = found.truth[row, inside], found.before[row, inside]
            lost = axis.digits - float(before[inside].min())
            says = _says(xs[inside], truth, got, lost, axis)
            made.append(Interval(low, high, f"{name} {says}"))
        start = i + 1
    return tuple(made)


def _edges(
    measure: Callable[[Array], Measured],
    axis: Axis,
    row: int,
    xs: Array,
    bad: Array,
    at: Sequence[int],
) -> dict[int, float]:
    """Between which numbers it begins or ends to be wrong -> the last that is."""
    if not at:
        return {}
    left, right = xs[list(at)], xs[[i + 1 for i in at]]
    starts = bad[list(at)]
    for _ in range(STEPS):
        a, b = axis.position(left), axis.position(right)
        middle = np.where(b - a > 1e-6, axis.number((a + b) / 2), left / 2 + right / 2)
        found = measure(middle)
        before, after = (correct_digits(found.truth[row], r[row], axis) for r in found[1:])
        same = _is_wrong(before, after, axis) == starts
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    inside = np.where((xs[list(at)] == 0) & starts, 0.0, np.where(starts, left, right))
    up_to_0 = (xs[[i + 1 for i in at]] == 0) & ~starts
    return dict(zip(at, np.where(up_to_0, 0.0, inside).tolist(), strict=True))


def _says(xs: Array, truth: Array, got: Array, lost: float, axis: Axis) -> str:
    """What is wrong about some of what was computed."""
    kinds = {
        "is NaN": np.isnan(got) & ~np.isnan(truth),
        "is infinite": np.isinf(got) & np.isfinite(truth),
    }
    worst = "loses all digits" if lost >= axis.digits - 0.5 else f"loses up to {lost:.0f} digits"
    for says, where in kinds.items():
        if where.any():
            at_0 = bool((xs[where] == 0).all()) and len(xs) > 1
            return f"{worst}, and {says} at 0" if at_0 else says
    return worst
