"""Lengths that an op counts as equal: only a run shows whether they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.length import Length
from ..ir.op import Op
from ..ir.types import Equated, TensorType, lengths_equated

__all__ = ["equated", "unequal", "words"]


def equated(op: Op, types: Sequence[TensorType]) -> Sequence[Equated]:
    """The lengths that an op on inputs of these types counts as equal."""
    if op.bodies or all(t.static for t in types):
        return ()
    dims = {d for t in types for d in t.shape if isinstance(d, Length)}
    if len(dims) < 2 and not op.open_lengths:
        return ()
    return lengths_equated(op.infer, types)


def unequal(pairs: Sequence[Equated], sizes: Mapping[str, Any]) -> str | None:
    """What is wrong where lengths do not broadcast to the one that both count as."""
    for pair in pairs:
        a, b, taken = (d.at(sizes) for d in pair)
        known = isinstance(a, int) and isinstance(b, int)
        if known and (taken != (b if a == 1 else a) or (a != b and 1 not in (a, b))):
            names = sorted(pair.a.names | pair.b.names)
            told = " and ".join(f"{name} is {sizes[name]}" for name in names)
            return f"{words(pair)}: where {told}, these are {a} and {b}"
    return None


def words(pair: Equated) -> str:
    """What is said of two lengths that are not equal."""
    return f"the lengths '{pair.a}' and '{pair.b}' count as equal where they meet, and are not"
