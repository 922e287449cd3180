"""Where two executions of one graph part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compile import compile
from ..ir.node import Tensor
from ..ir.state import State
from ..ir.types import Array
from .running import Question
from .words import described, who

__all__ = ["Difference", "compare"]


class Difference(NamedTuple):
    """The first tensor, in the order of running, that two executions disagree on.

    tensor          which
    first, second   what each made of it
    worst           the largest difference, relative to 1 + |first|
    at              where that is
    alone           True where it shows only when the tensor is the only output: keeping the values
                    on the way alive hides it, as other nodes are fused then
    """

    tensor: Tensor
    first: Array
    second: Array
    worst: float
    at: tuple[int, ...]
    alone: bool

    def __str__(self) -> str:
        t = self.tensor
        return (
            f"{t.name}: {t.type!r}, made by {who(t.node)}, differs by {self.worst:.3g} at "
            f"{list(self.at)}:\n  {self.first[self.at]!r}, in {described(self.first)}\n"
            f"  {self.second[self.at]!r}, in {described(self.second)}"
        )


def compare(
    outputs: Any,
    feeds: Mapping[Any, Any] | None = None,
    *,
    backends: Sequence[Any] = ("numpy", "auto"),
    optimize: Sequence[bool] = (False, True),
    tolerance: float | None = None,
    state: State | None = None,
) -> Difference | None:
    """The first tensor on the way to outputs on which two executions differ, or None.

    outputs: a tensor or any nesting of them. feeds: {tensor or name: array}. backends, optimize:
    one entry for each of the two executions. tolerance: differences up to this, relative to
    1 + |value|, are rounding; by default the square root of the dtype's precision times 1e-2
    (float64: 1.5e-10, float32: 3.5e-6). NaN equals NaN, inf equals inf of the same sign. Integers
    and bools are compared exactly.
    """
    for what, pair in (("backends", backends), ("optimize", optimize)):
        if len(pair) != 2:
            raise ValueError(f"compare() runs twice: {what} takes two entries, got {pair!r}")
    question = Question(outputs, feeds, state)
    inputs = [t for t in question.given if t.node.type != "Variable"]
    arrays = [question.given[t] for t in inputs]
    given = set(question.given)
    on_the_way = [t for n in question.program.nodes for t in n.outputs if t not in given]

    def both(tensors: list[Tensor]) -> list[tuple[Tensor, Array, Array]]:
        made = [
            compile(inputs, tensors, backend=b, optimize=o, state=state)(*arrays)
            for b, o in zip(backends, optimize, strict=True)
        ]
        return list(zip(tensors, *made, strict=True))

    found = _first(both(on_the_way), tolerance, alone=False)
    if found is not None:
        return found
    if _first(both(question.outputs), tolerance, alone=True) is None:
        return None
    for t in on_the_way:  # what is kept alive for looking changes what is fused
        found = _first(both([t]), tolerance, alone=True)
        if found is not None:
            return found
    return _first(both(question.outputs), tolerance, alone=True)


def _first(
    pairs: list[tuple[Tensor, Array, Array]], tolerance: float | None, *, alone: bool
) -> Difference | None:
    for t, a, b in pairs:
        if a.shape != b.shape:
            return Difference(t, a, b, np.inf, (), alone)
        if not a.size:
            continue
        off = _off(a, b)
        worst = tuple(map(int, np.unravel_index(np.argmax(off), off.shape)))
        if off[worst] > _allowed(a, tolerance):
            return Difference(t, a, b, float(off[worst]), worst, alone)
    return None


def _allowed(a: Array, tolerance: float | None) -> float:
    if a.dtype.kind not in "fc":
        return 0.0
    return 1e-2 * float(np.sqrt(np.finfo(a.dtype).eps)) if tolerance is None else tolerance


def _off(a: Array, b: Array) -> Array:
    """The difference of each pair, relative to 1 + |a|; inf where only one is NaN or infinite."""
    off: Array
    if a.dtype.kind not in "fc":
        off = np.asarray(a != b, np.float64)
        return off
    with np.errstate(all="ignore"):
        off = np.asarray(np.abs(a - b) / (1 + np.abs(a)))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    off[same] = 0.0
    off[np.isnan(off)] = np.inf
    return off
