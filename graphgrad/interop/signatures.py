"""What calls of opened programs are told apart by, and what their arguments are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.op import OP_TYPES
from .opened import clean

__all__ = ["Fixed", "names_of_leaves"]


class Fixed:
    """What is not an array, by its value; by what it is, where it has no hash."""

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self._key = type(value), hash(value)
        except TypeError:
            self._key = type(value), id(value)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fixed) or self._key != other._key:
            return False
        return self.value is other.value or bool(self.value == other.value)


def names_of_leaves(fn: Callable[..., Any], count: int, paths: Sequence[Any]) -> list[str]:
    """What leaves of (fn, its arguments, those by name) are called: by the keys that lead there."""
    try:
        known = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        known = []
    named = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    arguments = [named[i] if i < len(named) else f"arg{i}" for i in range(count)]
    return [_name_of([_key(entry) for entry in path], arguments) for path in paths]


def _name_of(keys: Sequence[str], arguments: Sequence[str]) -> str:
    """The keys within the argument; the argument's name where it is all of an argument."""
    whole = keys[0] == "1" and len(keys) == 2
    name = arguments[int(keys[1])] if whole else clean("/".join(keys[1 + (keys[0] == "1") :]))
    base, _, number = name.rpartition("/")[2].rpartition("_")
    return f"{name}_" if number.isdecimal() and base in OP_TYPES else name  # that of unnamed nodes


def _key(entry: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)
