"""Correct digits along one input as SVG, which the style sheet of the page colours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from ..ir.types import Array
from .accuracy import AccuracyCurve, Axis, Interval

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 20, 12, 26
COLUMNS = 260
"""A line has a point for each, the worst of what falls into it."""
_DIGITS = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
TICKS = (None, 0, 300, 30, 3, -3, 16, -16, 2, 8, -8, 1, 4, 100, -300)
"""Exponents of the labels of the axis, the most wanted first; None is 0."""
ROOM = 44
"""Between two labels."""


def chart(curve: AccuracyCurve, row: int, axis: Axis, name: str, marks: Sequence[float]) -> str:
    """Two lines over the numbers of an axis: what was written, and the stable form.

    row: 0 for the value, 1 for the slope; marks: numbers that are marked on the axis.
    """
    place = _PlotArea(curve, axis)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(name)}">',
        *place.bands(curve.wrong[row]),
        *place.grid(),
    ]
    seen = [place.line(curve.xs, digits[row]) for digits in (curve.before, curve.after)]
    before, after = ("".join(_paths(line)) for line in seen)
    parts.append(f'<path class="gap" d="{_between(*seen)}"/>')
    parts.append(f'<path class="before" d="{before}"/><path class="after" d="{after}"/>')
    for mark in marks:
        at = place.x(axis.position(np.asarray(mark)))
        if LEFT <= at <= WIDTH - RIGHT:
            bottom = HEIGHT - BOTTOM
            parts.append(f'<path class="feed" d="M{at:.1f} {bottom}l-4 7h8z"/>')
    return "".join([*parts, "</svg>"])


class _PlotArea:
    """Where numbers and digits are: the whole line, or the half on which there are values."""

    def __init__(self, curve: AccuracyCurve, axis: Axis) -> None:
        known = axis.position(curve.xs[~np.isnan(curve.before).all(0)])
        self.low = -1.0 if (known < 0).any() else 0.0
        self.high = 1.0 if (known > 0).any() else 0.0
        if self.low == self.high:
            self.low, self.high = -1.0, 1.0
        self.axis, self.full = axis, axis.digits

    def x(self, position: Array | float) -> float:
        share = (float(position) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, digits: float) -> float:
        return TOP + (1 - digits / self.full) * (HEIGHT - TOP - BOTTOM)

    def bands(self, wrong: Sequence[Interval]) -> Iterator[str]:
        """Where what was written is wrong."""
        axis, bottom = self.axis, HEIGHT - BOTTOM
        for interval in wrong:
            ends = np.clip([interval.start, interval.end], -axis.most, axis.most)
            left, right = (self.x(p) for p in axis.position(ends))
            width = max(right - left, 1.5)
            yield (
                f'<rect class="wrong" x="{left:.1f}" y="{TOP}" width="{width:.1f}" '
                f'height="{bottom - TOP}"><title>{escape(str(interval))}</title></rect>'
            )

    def grid(self) -> Iterator[str]:
        bottom = HEIGHT - BOTTOM
        step = 4 if self.full > 8 else 2 if self.full > 4 else 1
        for digits in (*range(0, int(self.full - step / 2) + 1, step), self.full):
            y = self.y(digits)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text class="digits" x="{LEFT - 6}" y="{y + 3.5:.1f}">{digits:.0f}</text>'
        taken: list[float] = []
        for exponent in TICKS:
            for x, label in self._ticks(exponent):
                if all(abs(x - other) >= ROOM for other in taken):
                    taken.append(x)
                    yield f'<path class="tick" d="M{x:.1f} {bottom}v4"/>'
                    yield f'<text class="number" x="{x:.1f}" y="{bottom + 17}">{label}</text>'

    def _ticks(self, exponent: int | None) -> Iterator[tuple[float, str]]:
        """Where 0 or a power of ten of both signs is, and its label."""
        if exponent is None:
            numbers = {"0": 0.0}
        elif 10.0 ** abs(exponent) < self.axis.most:
            numbers = {_power(exponent): 10.0**exponent}
            numbers[f"\u2212{_power(exponent)}"] = -(10.0**exponent)
        else:
            numbers = {}
        for label, number in numbers.items():
            place = float(self.axis.position(np.asarray(number)))
            if self.low <= place <= self.high:
                yield self.x(place), label

    def line(self, xs: Array, digits: Array) -> list[tuple[float, float]]:
        """The worst of each column; NaN where there is no value."""
        share = (self.axis.position(xs) - self.low) / (self.high - self.low)
        inside = (share >= 0) & (share <= 1)
        column = np.round(share * COLUMNS).astype(int)
        made = []
        for c in range(COLUMNS + 1):
            here = digits[inside & (column == c)]
            if here.size:
                known = here[~np.isnan(here)]
                y = self.y(float(known.min())) if known.size else math.nan
                made.append((self.x(self.low + c / COLUMNS * (self.high - self.low)), y))
        return made


def _paths(line: Sequence[tuple[float, float]]) -> Iterator[str]:
    """The line, interrupted where there is no value."""
    up = True
    for x, y in line:
        if math.isnan(y):
            up = True
            continue
        yield f"{'M' if up else 'L'}{x:.1f} {y:.1f}"
        up = False


def _between(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> str:
    """The area between two lines, piece by piece."""
    made, top, low = [], list[str](), list[str]()
    for (x, a), (_, b) in zip(first, second, strict=True):
        if math.isnan(a) or math.isnan(b):
            made.append((top, low))
            top, low = [], []
            continue
        top.append(f"{x:.1f} {a:.1f}")
        low.append(f"{x:.1f} {b:.1f}")
    made.append((top, low))
    return "".join(f"M{'L'.join([*t, *reversed(b)])}Z" for t, b in made if len(t) > 1)


def _power(exponent: int) -> str:
    return {0: "1", 1: "10"}.get(exponent, "10" + str(exponent).translate(_DIGITS))
