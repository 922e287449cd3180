"""Where a formula is right: how many digits are, along one input, over all exponents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
"""Numbers: so few between two intervals where it is wrong belong to them."""
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
    left    where the stable form still loses digits, in value or slope, between numbers of xs
    """

    xs: Array
    before: Array
    after: Array
    wrong: tuple[tuple[Interval, ...], tuple[Interval, ...]]
    left: tuple[Interval, ...]

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
    left = tuple([i for row in range(2) for i in _left(xs, after[row], row, axis)])
    return AccuracyCurve(xs, before, after, wrong, left)  # type: ignore[arg-type]


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


NAMES = ("the value", "the gradient")
RIGHT, LOSING, INFINITE, NO_NUMBER = range(4)
"""What was written is, at a number."""


def _states(truth: Array, got: Array, before: Array, after: Array, axis: Axis) -> Array:
    """Of each number; what the other form has lost as well counts as right."""
    with np.errstate(invalid="ignore"):
        wrong = (before <= axis.digits - LOSES) & (after >= before + 1)
    worse = np.where(np.isinf(got) & np.isfinite(truth), INFINITE, LOSING)
    worse = np.where(np.isnan(got), NO_NUMBER, worse)
    return np.asarray(np.where(wrong, worse, RIGHT))


def _row_of_intervals(
    measure: Callable[[Array], Measured],
    axis: Axis,
    xs: Array,
    row: int,
    found: Measured,
    before: Array,
    after: Array,
) -> tuple[Interval, ...]:
    known = np.flatnonzero(~np.isnan(before))
    at, got = xs[known], found.before[row, known]
    states = _states(found.truth[row, known], got, before[known], after[known], axis)
    _close(states, at)
    edges = np.flatnonzero(np.diff(states))
    lefts, rights = _edges(measure, axis, row, at, states, edges)
    made = []
    for i, j in zip([0, *(edges + 1)], [*edges, len(at) - 1], strict=True):
        if not len(at) or states[i] == RIGHT:
            continue
        first, last = rights.get(i - 1, at[i]), lefts.get(j, at[j])
        low = -math.inf if first < -axis.most / END else float(first)
        high = math.inf if last > axis.most / END else float(last)
        lost = axis.digits - float(before[known][i : j + 1].min())
        at_0 = got[i : j + 1][at[i : j + 1] == 0]
        made.append(Interval(low, high, f"{NAMES[row]} {_says(int(states[i]), lost, at_0, axis)}"))
    return tuple(made)


def _left(xs: Array, after: Array, row: int, axis: Axis) -> Iterator[Interval]:
    """Where the stable form loses digits, or numbers."""
    known = np.flatnonzero(~np.isnan(after))
    at, lost = xs[known], axis.digits - after[known]
    states = np.where(lost >= LOSES, LOSING, RIGHT)
    _close(states, at)
    edges = np.flatnonzero(np.diff(states))
    for i, j in zip([0, *(edges + 1)], [*edges, len(at) - 1], strict=True):
        if len(at) and states[i] == LOSING:
            says = _says(LOSING, float(lost[i : j + 1].max()), np.zeros(0), axis)
            low = -math.inf if i < j and at[i] < -axis.most / END else float(at[i])
            high = math.inf if i < j and at[j] > axis.most / END else float(at[j])
            yield Interval(low, high, f"{NAMES[row]} {says}")


def _close(states: Array, xs: Array) -> None:
    """What is wrong on both sides of a few numbers is so at these; and at 0."""
    for width in range(1, NARROW + 1):
        for i in range(1, len(states) - width):
            left, right = states[i - 1], states[i + width]
            inside = states[i : i + width]
            only_0 = width == 1 and xs[i] == 0 and inside[0] >= LOSING
            if left == right != RIGHT and ((inside == RIGHT).all() or only_0):
                states[i : i + width] = left


def _edges(
    measure: Callable[[Array], Measured],
    axis: Axis,
    row: int,
    xs: Array,
    states: Array,
    at: Array,
) -> tuple[dict[int, float], dict[int, float]]:
    """Where one state ends and another begins: the last number of one, the first of the other."""
    if not len(at):
        return {}, {}
    left, right, state = xs[at], xs[at + 1], states[at]
    held = (left == 0) | (right == 0)
    for _ in range(STEPS):
        a, b = axis.position(left), axis.position(right)
        middle = np.where(b - a > 1e-6, axis.number((a + b) / 2), left / 2 + right / 2)
        found = measure(middle)
        before, after = (correct_digits(found.truth[row], r[row], axis) for r in found[1:])
        same = _states(found.truth[row], found.before[row], before, after, axis) == state
        left = np.where(same & ~(held & (left == 0)), middle, left)
        right = np.where(same | (held & (right == 0)), right, middle)
    keys = at.tolist()
    return dict(zip(keys, left.tolist(), strict=True)), dict(zip(keys, right.tolist(), strict=True))


def _says(state: int, lost: float, at_0: Array, axis: Axis) -> str:
    """What a state is, in words."""
    if state == NO_NUMBER:
        return "is NaN"
    if state == INFINITE:
        return "is infinite"
    worst = "loses all digits" if lost >= axis.digits - 0.5 else f"loses up to {lost:.0f} digits"
    if np.isnan(at_0).any():
        return f"{worst}, and is NaN at 0"
    return f"{worst}, and is infinite at 0" if np.isinf(at_0).any() else worst
