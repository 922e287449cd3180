"""Nested lists, tuples, namedtuples and dicts: `tf.contrib.framework.nest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = [
    "assert_same_structure", "flatten", "is_nested", "is_sequence", "map_structure",
    "pack_sequence_as",
]  # fmt: skip


def is_nested(value: Any) -> bool:
    """Whether this is a list, tuple or dict."""
    return isinstance(value, list | tuple | Mapping) or _fields_of(value) is not None


is_sequence = is_nested


def _fields_of(value: Any) -> Any:
    """The names of the parts of an object of attrs, or None."""
    parts = getattr(type(value), "__attrs_attrs__", None)
    return None if parts is None else [p.name for p in parts]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[k] for k in sorted(value)]
    fields = _fields_of(value)
    return list(value) if fields is None else [getattr(value, f) for f in fields]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, in order; those of dicts by key."""
    if not is_nested(structure):
        return [structure]
    found: list[Any] = []
    for part in _parts(structure):
        found += flatten(part)
    return found


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    parts = [_packed(p, leaves) for p in _parts(structure)]
    if isinstance(structure, Mapping):
        named = dict(zip(sorted(structure), parts, strict=True))
        rebuilt: Any = type(structure)
        return rebuilt((k, named[k]) for k in structure)
    if hasattr(structure, "_fields") or _fields_of(structure) is not None:
        return type(structure)(*parts)
    return type(structure)(parts)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Leaves in a structure. Raises ValueError where there are too many or too few."""
    flat = list(flat_sequence)
    count = len(flatten(structure))
    if count != len(flat):
        raise ValueError(f"the structure has {count} leaves, {len(flat)} were given: {structure!r}")
    return _packed(structure, iter(flat))


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """A function of the leaves at each place, in their structure."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    flat = [flatten(s) for s in structure]
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*flat, strict=True)])


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError where two structures differ."""
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"The two structures don't have the same nested structure: {nest1!r}, "
                         f"{nest2!r}")  # fmt: skip
    if not is_nested(nest1):
        return
    first, second = _parts(nest1), _parts(nest2)
    if len(first) != len(second):
        raise ValueError("The two structures don't have the same nested structure: they have "
                         f"{len(first)} and {len(second)} parts")  # fmt: skip
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"the structures have different types: {type(nest1)}, {type(nest2)}")
    for a, b in zip(first, second, strict=True):
        assert_same_structure(a, b, check_types)
