"""Lengths that an op counts as equal: only a run shows whether they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.length import Length
from ..ir.op import Op
from ..ir.types import TensorType, lengths_equated

__all__ = ["equated", "unequal"]

_Pairs = Sequence[tuple[Length, Length]]


def equated(op: Op, types: Sequence[TensorType]) -> _Pairs:
    """The pairs of lengths that an op on inputs of these types counts as equal."""
    if op.bodies or all(t.static for t in types):
        return ()
    dims = {d for t in types for d in t.shape if isinstance(d, Length)}
    if len(dims) < 2 and not op.open_lengths:
        return ()
    return lengths_equated(op.infer, types)


def unequal(pairs: _Pairs, sizes: Mapping[str, Any]) -> str | None:
    """What is wrong where these lengths are not equal."""
    for a, b in pairs:
        x, y = a.at(sizes), b.at(sizes)
        if isinstance(x, int) and isinstance(y, int) and x != y:
            told = " and ".join(f"{n} is {sizes[n]}" for n in sorted(a.names | b.names))
            return f"{words(a, b)}: where {told}, these are {x} and {y}"
    return None


def words(a: Length, b: Length) -> str:
    """What is said of two lengths that are not equal."""
    return f"the lengths '{a}' and '{b}' count as equal where they meet, and are not"
