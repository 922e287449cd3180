"""Keys of slices: what they read, in one spelling, and one after another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from ..ir.types import Shape
from ..ops.shape.slicing import Key, normal_slice, trimmed
from .facts import ints

Place: TypeAlias = int | range | None
"""What a key reads of an axis: one index, a range of them; None is a new axis."""


def places(key: Key, shape: Shape) -> list[Place]:
    """The key with every index counted from the front, and an entry for every axis of the shape."""
    lengths = iter(ints(shape))
    entries: list[Place] = []
    for item in key:
        if item is None:
            entries.append(None)
            continue
        every = range(next(lengths))
        entries.append(every[slice(*item)] if type(item) is tuple else every[item])
    return entries + [range(n) for n in lengths]


@lru_cache(maxsize=1 << 12)
def one_spelling(key: Key, shape: Shape) -> Key:
    """The one key that reads what this one reads of the shape."""
    return key_of(places(key, shape), shape)


def key_of(entries: Sequence[Place], shape: Shape) -> Key:
    """The one key that reads these places of the shape."""
    lengths = iter(ints(shape))
    items: list[object] = []
    for place in entries:
        if place is None:
            items.append(None)
            continue
        length = next(lengths)
        if isinstance(place, int):
            items.append(place)
        else:
            stop = place.stop if place.stop >= 0 else None
            items.append(normal_slice(slice(place.start, stop, place.step), length))
    return trimmed(items)


def composed(first: Key, second: Key, shape: Shape, between: Shape) -> Key | None:
    """The key that reads of the shape what `second` reads of what `first` reads; None: no key."""
    then = places(second, between)
    entries: list[Place] = []
    for place in places(first, shape):
        while then and then[0] is None and not isinstance(place, int):
            entries.append(then.pop(0))
        if isinstance(place, int):
            entries.append(place)
            continue
        again = then.pop(0)
        if place is not None:
            assert again is not None
            entries.append(place[again] if isinstance(again, int) else _within(place, again))
        elif isinstance(again, range):  # an axis that the first key made
            if len(again) != 1:
                return None
            entries.append(None)
    return key_of([*entries, *then], shape)


def _within(outer: range, inner: range) -> range:
    """The elements of outer at the places of inner."""
    if not inner:
        return range(0)
    stop = outer[inner[-1]] + (1 if outer.step * inner.step > 0 else -1)
    return range(outer[inner[0]], stop, outer.step * inner.step)


def along_one_axis(key: Key, shape: Shape) -> tuple[int, int | range] | None:
    """(axis, place) of a key that reads all of every other axis, with step 1."""
    if None in key:
        return None
    lengths = ints(shape)
    parts = [(i, p) for i, p in enumerate(places(key, shape)) if p != range(lengths[i])]
    if len(parts) != 1:
        return None
    axis, place = parts[0]
    if place is None or (isinstance(place, range) and (place.step != 1 or not place)):
        return None
    return axis, place
