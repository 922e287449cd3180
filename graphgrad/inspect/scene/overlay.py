"""Overlays: one number a node (a gradient's norm, time, bytes, a count of NaN), shown as a colour.

The number stands in the label too: colour is never all there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from ...base.errors import GraphError
from ...base.flags import truth
from ...base.kinds import is_inexact
from ...ir.graph import Graph
from ...ir.node import Node, Tensor
from ...ir.program import Program
from .profile import Profile

__all__ = ["Overlay"]

Colour = tuple[int, int, int]

_UP = ((255, 250, 224), (253, 208, 117), (240, 124, 74), (190, 38, 70), (98, 14, 82))
_DOWN = ((240, 246, 252), (165, 204, 229), (79, 146, 195), (26, 88, 150), (9, 42, 92))
"""From small to large numbers above zero, and below."""
_ODD = "#ffffff"
_ZERO = (221, 225, 230)
"""Of zero where colours follow the logarithm: it is on no such scale. Pages have the same one."""
_EVEN = 0.179
"""The luminance on which black and white are equally easy to read [WCAG 2.2, 1.4.3]."""
_TICKS = 5
_SPAN = 1000.0


class Overlay:
    """Numbers for nodes, and the colours that stand for them.

    Parameters:
        values: {tensor, node or name of one: number}; of several tensors of one node the number of
            the largest magnitude counts, a NaN before all. Names are those of what is shown; a name
            that nothing shown has is left out.
        title: what the numbers are, for the legend.
        combine: "max" or "sum": what a collapsed box shows of what is in it.
        log: whether colours follow the logarithm; None: where no number is below zero, and those
            above it span more than three orders of magnitude. Zero has a colour of its own then.

    Raises: TypeError for keys that are not tensors, nodes or names, and for values that are not
    real numbers; ValueError for another combine, or log=True with numbers below zero.

    >>> x = gg.constant([3.0, 4.0])
    >>> overlay = gg.Overlay.of_values(gg.debug.values(x).by_tensor)
    >>> overlay.values[x.node]
    5.0
    """

    def __init__(
        self,
        values: Mapping[Any, Any],
        title: str = "",
        *,
        combine: str = "max",
        log: bool | None = None,
    ) -> None:
        if combine not in ("max", "sum"):
            raise ValueError(f'combine is "max" or "sum", got {combine!r}')
        self.title = title
        self.combine = combine
        self.values: dict[Node, float] = {}
        self.named: dict[str, float] = {}
        for key, value in values.items():
            number = _number(key, value)
            if isinstance(key, str):
                self.named[key] = number
                continue
            node = key.node if isinstance(key, Tensor) else key
            if not isinstance(node, Node):
                raise TypeError(f"an overlay is {{tensor or node: number}}, got the key {key!r}")
            self._put(node, number)
        finite = [v for v in (*self.values.values(), *self.named.values()) if math.isfinite(v)]
        self.low, self.high = min(finite, default=0.0), max(finite, default=0.0)
        self.least = min((v for v in finite if v > 0.0), default=0.0)
        self.log = self._spans_much() if log is None else truth("log", log)
        if self.log and finite and (self.low < 0.0 or not self.least):
            raise ValueError(
                "log=True takes numbers that are not negative, and one that is positive; got "
                f"{self.low}"
            )

    @classmethod
    def of_values(
        cls,
        values: Mapping[Any, Any],
        measure: Callable[[np.ndarray], Any] | None = None,
        title: str = "length",
    ) -> Overlay:
        """One number for each array, such as what `gg.debug.values` returns.

        values: {tensor, node or name: array}. measure: array -> number; by default the Euclidean
        length of arrays of floating point and complex numbers, and no number for others.
        """
        arrays = {key: np.asarray(value) for key, value in values.items()}
        if measure is None:
            measure = _length
            arrays = {key: a for key, a in arrays.items() if is_inexact(a.dtype)}
        return cls({key: measure(a) for key, a in arrays.items()}, title)

    @classmethod
    def of_profile(
        cls, profile: Profile, within: Graph | Program, title: str = "microseconds"
    ) -> Overlay:
        """What each node of a graph, or of a program, takes in one call of what it was compiled to.

        Nodes that run as one loop share its time in equal parts. What passes and lowering made
        counts for the node that they made it of; nodes that do not run have no number.
        """
        places: dict[tuple[str, int], Node] = {}
        for node in within.nodes:
            place = node.scope, node.index
            if node.inputs or place not in places:
                places[place] = node
        times: dict[Node, float] = {}
        for step in profile.steps:
            for ran in step.nodes:
                site = places.get((ran.scope, ran.index))
                if site is not None:
                    times[site] = times.get(site, 0.0) + 1e6 * step.seconds / len(step.nodes)
        return cls(times, title, combine="sum")

    def on(self, nodes: Iterable[Node]) -> Overlay:
        """The same with the nodes that are shown in the place of their names."""
        if not self.named:
            return self
        known = by_name(nodes)
        overlay = copy(self)
        overlay.values, overlay.named = dict(self.values), {}
        for name, number in self.named.items():
            if name in known:
                key = known[name]
                overlay._put(key.node if isinstance(key, Tensor) else key, number)
        return overlay

    def _put(self, node: Node, number: float) -> None:
        known = self.values.get(node)
        self.values[node] = number if known is None else _larger(known, number)

    def _spans_much(self) -> bool:
        return self.low >= 0.0 and self.high > _SPAN * self.least

    def of(self, nodes: Iterable[Node]) -> float | None:
        """The number of a box with these nodes; None where none has one."""
        numbers = [self.values[n] for n in nodes if n in self.values]
        if not numbers:
            return None
        if self.combine == "sum":
            return math.fsum(numbers) if all(map(math.isfinite, numbers)) else _largest(numbers)
        return _largest(numbers)

    def colour(self, value: float) -> str:
        """The fill colour of a number; white for NaN and infinities, which are hatched instead."""
        if not math.isfinite(value):
            return _ODD
        return "#{:02x}{:02x}{:02x}".format(*self._mixed(value))

    def ink(self, value: float) -> str:
        """The colour of text on that: black or white, whichever is easier to read."""
        if not math.isfinite(value):
            return "#b00020"
        return "#ffffff" if _luminance(self._mixed(value)) < _EVEN else "#000000"

    def legend(self) -> list[float]:
        """Five numbers at most, from low to high, that show the scale; and zero where it is off."""
        if self.low == self.high:
            return [self.low] if self.values else []
        if self.log:
            step = (self.high / self.least) ** (1 / (_TICKS - 1))
            return [0.0] * (self.low == 0.0) + [self.least * step**i for i in range(_TICKS)]
        ticks = [self.low + (self.high - self.low) * i / (_TICKS - 1) for i in range(_TICKS)]
        if self.low < 0.0 < self.high:
            ticks[_TICKS // 2] = 0.0
            ticks = sorted(ticks)
        return ticks

    def _mixed(self, value: float) -> Colour:
        if self.log and value == 0.0:
            return _ZERO
        return _between(_DOWN if value < 0.0 else _UP, self._share(value))

    def _share(self, value: float) -> float:
        """Where a number stands on its side of the scale, from 0 to 1."""
        if self.log:
            span = math.log(self.high / self.least)
            return math.log(value / self.least) / span if span else 0.5
        if self.low < 0.0:
            return abs(value) / max(-self.low, abs(self.high))
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return min(max(share, 0.0), 1.0)

    def __repr__(self) -> str:
        return f"<overlay {self.title!r}: {len(self.values) + len(self.named)} numbers>"


Values = Overlay | Mapping[Any, Any] | None


def overlay_of(values: Values, nodes: Iterable[Node]) -> Overlay | None:
    """The overlay that was meant; GraphError where it names no node that is shown."""
    if values is None:
        return None
    given = values if isinstance(values, Overlay) else Overlay(values)
    nodes = list(nodes)
    overlay = given.on(nodes)
    if given.named and not overlay.values:
        raise GraphError(
            f"none of the {len(given.named)} names of the overlay is a tensor or node that is "
            f"shown; the first is {next(iter(given.named))!r}"
        )
    if overlay.values and not any(n in overlay.values for n in nodes):
        first = next(iter(overlay.values))
        raise GraphError(
            f"none of the {len(overlay.values)} nodes of the overlay is shown; the first is "
            f"{first.name} ({first.where}) of {first.graph!r}"
        )
    return overlay


def by_name(nodes: Iterable[Node]) -> dict[str, Node | Tensor]:
    """Names of nodes and of their tensors; the first of several with one name."""
    named: dict[str, Node | Tensor] = {}
    for node in nodes:
        named.setdefault(node.name, node)
        for t in node.outputs:
            named.setdefault(t.name, t)
    return named


def _luminance(colour: Colour) -> float:
    """How light a colour is, from 0 to 1 [WCAG 2.2, relative luminance]."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _shares(colour))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _shares(colour: Colour) -> tuple[float, ...]:
    return tuple(c / 255 for c in colour)


def number_text(value: float) -> str:
    """`0`, `12`, `0.25`, `1.2e-05`, `NaN`, `-inf`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}"


def _number(key: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"an overlay is {{tensor or node: number}}, got {value!r} for {key!r}"
        ) from None


def _length(array: np.ndarray) -> float:
    return float(np.linalg.norm(array))


def _larger(a: float, b: float) -> float:
    return b if math.isnan(b) or abs(b) > abs(a) else a


def _largest(values: Iterable[float]) -> float:
    best = 0.0
    for i, value in enumerate(values):
        best = (
            value
            if i == 0 or math.isnan(value)
            else best
            if math.isnan(best)
            else _larger(best, value)
        )
    return best


def _between(stops: tuple[Colour, ...], share: float) -> Colour:
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(at), len(stops) - 2)
    low, high = stops[i], stops[i + 1]
    r, g, b = (round(x + (y - x) * (at - i)) for x, y in zip(low, high, strict=True))
    return r, g, b
