"""Transposed constants as constants, and constants that nothing reads left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from .values import OnnxBlock, OnnxCall

__all__ = ["fold_transposes", "renamed"]


def fold_transposes(block: OnnxBlock) -> None:
    """Put what Transpose makes of a constant in place of the call, where nothing else reads it.

    Filters are loaded in another layout than ONNX's: so they lie in the file in that which they
    were loaded from. What is read in two layouts lies there once, and a runtime makes the other.
    """
    while turned := _turned(block):
        _fold(block, turned)


def _fold(block: OnnxBlock, turned: Mapping[str, tuple[int, ...]]) -> None:
    """Those that are named, with the orders of their axes; then unread constants go."""
    made: dict[str, str] = {}
    names: dict[str, str] = {}
    calls: list[OnnxCall] = []
    for call in block.calls:
        source = call.inputs[0] if _is_transpose(call) else ""
        if source not in turned:
            calls.append(call)
            continue
        (name,) = call.outputs
        first = made.setdefault(source, name)
        names[name] = first
        if first == name:
            array = np.transpose(block.constants[source], turned[source])
            block.constants[name] = np.ascontiguousarray(array)
    block.calls = [renamed(call, names) for call in calls]
    read = set(_read(block))
    block.constants = {n: a for n, a in block.constants.items() if n in read}


def _is_transpose(call: OnnxCall) -> bool:
    return call.operator == "Transpose" and not call.domain


def _turned(block: OnnxBlock) -> dict[str, tuple[int, ...]]:
    """The constants that are read by Transpose alone, and the one order of their axes."""
    orders: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
    others = set(_read(block, _is_transpose))
    for call in block.calls:
        array = block.constants.get(call.inputs[0]) if _is_transpose(call) else None
        if array is not None and call.inputs[0] not in others:
            perm = call.attributes.get("perm", range(array.ndim)[::-1])
            orders[call.inputs[0]].add(tuple(perm))
    return {name: next(iter(perms)) for name, perms in orders.items() if len(perms) == 1}


def renamed(call: OnnxCall, names: Mapping[str, str]) -> OnnxCall:
    """A call that reads other names; those of its subgraphs too."""
    for inner in call.attributes.values():
        if isinstance(inner, OnnxBlock):
            inner.calls = [renamed(each, names) for each in inner.calls]
            for value in inner.results:
                value.name = names.get(value.name, value.name)
    return replace(call, inputs=tuple([names.get(name, name) for name in call.inputs]))


def _read(block: OnnxBlock, but: Callable[[OnnxCall], bool] = lambda call: False) -> Iterator[str]:
    """The names that calls read, some left out, and results."""
    yield from (value.name for value in block.results)
    for call in block.calls:
        if not but(call):
            yield from call.inputs
        for inner in call.attributes.values():
            if isinstance(inner, OnnxBlock):
                yield from _read(inner)
