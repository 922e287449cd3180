"""Overlays: one number a node (a gradient's norm, time, bytes, a count of NaN), shown as a colour.

The number stands in the label too: colour is never all there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..ir.errors import GraphError
from ..ir.node import Node, Tensor

__all__ = ["Overlay"]

Colour = tuple[int, int, int]

_UP = ((255, 250, 224), (253, 208, 117), (240, 124, 74), (190, 38, 70), (98, 14, 82))
_DOWN = ((240, 246, 252), (165, 204, 229), (79, 146, 195), (26, 88, 150), (9, 42, 92))
"""From small to large numbers above zero, and below."""
_ODD = "#ffffff"
_TICKS = 5
_SPAN = 1000.0


class Overlay:
    """Numbers for nodes, and the colours that stand for them.

    values   {tensor or node: number}; of several tensors of one node the number of the largest
             magnitude counts, a NaN before all
    title    what the numbers are, for the legend
    combine  "max" or "sum": what a collapsed box shows of what is in it
    log      whether colours follow the logarithm; None: where all numbers are above zero and span
             more than three orders of magnitude

    TypeError for keys that are no tensors or nodes, and for values that are no real numbers.
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
        for key, value in values.items():
            node = key.node if isinstance(key, Tensor) else key
            if not isinstance(node, Node):
                raise TypeError(f"an overlay is {{tensor or node: number}}, got the key {key!r}")
            number = _number(key, value)
            known = self.values.get(node)
            self.values[node] = number if known is None else _larger(known, number)
        finite = [v for v in self.values.values() if math.isfinite(v)]
        self.low, self.high = min(finite, default=0.0), max(finite, default=0.0)
        self.log = self._spans_much() if log is None else log
        if self.log and self.low <= 0.0 and finite:
            raise ValueError(f"log=True takes numbers above zero, got {self.low}")

    def _spans_much(self) -> bool:
        return self.low > 0.0 and self.high / self.low > _SPAN

    def of(self, nodes: Iterable[Node]) -> float | None:
        """The number of a box with these nodes; None where none has one."""
        found = [self.values[n] for n in nodes if n in self.values]
        if not found:
            return None
        if self.combine == "sum":
            return math.fsum(found) if all(map(math.isfinite, found)) else _largest(found)
        return _largest(found)

    def colour(self, value: float) -> str:
        """The fill colour of a number; white for NaN and infinities, which are hatched instead."""
        if not math.isfinite(value):
            return _ODD
        side = _DOWN if value < 0.0 else _UP
        return "#{:02x}{:02x}{:02x}".format(*_between(side, self._share(value)))

    def ink(self, value: float) -> str:
        """The colour of text on that: black or white."""
        if not math.isfinite(value):
            return "#b00020"
        r, g, b = _between(_DOWN if value < 0.0 else _UP, self._share(value))
        return "#ffffff" if 0.299 * r + 0.587 * g + 0.114 * b < 140 else "#1b1f24"

    def legend(self) -> list[float]:
        """Numbers from low to high that show the scale; at most five."""
        if self.low == self.high:
            return [self.low] if self.values else []
        if self.log:
            step = (self.high / self.low) ** (1 / (_TICKS - 1))
            return [self.low * step**i for i in range(_TICKS)]
        ticks = [self.low + (self.high - self.low) * i / (_TICKS - 1) for i in range(_TICKS)]
        if self.low < 0.0 < self.high:
            ticks[_TICKS // 2] = 0.0
            ticks = sorted(ticks)
        return ticks

    def _share(self, value: float) -> float:
        """Where a number stands on its side of the scale, from 0 to 1."""
        if self.log:
            span = math.log(self.high / self.low)
            return math.log(value / self.low) / span if span else 0.5
        if self.low < 0.0:
            return abs(value) / max(-self.low, abs(self.high))
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return min(max(share, 0.0), 1.0)

    def __repr__(self) -> str:
        return f"<overlay {self.title!r}: {len(self.values)} numbers>"


Values = Overlay | Mapping[Any, Any] | None


def overlay_of(values: Values, nodes: Iterable[Node]) -> Overlay | None:
    """The overlay that was meant; GraphError where it names no node that is shown."""
    if values is None:
        return None
    overlay = values if isinstance(values, Overlay) else Overlay(values)
    if overlay.values and not any(n in overlay.values for n in nodes):
        first = next(iter(overlay.values))
        raise GraphError(
            f"none of the {len(overlay.values)} nodes of the overlay is shown; the first is "
            f"{first.name} ({first.where}) of {first.graph!r}"
        )
    return overlay


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
