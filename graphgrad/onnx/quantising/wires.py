"""Who makes and who reads the values of a block, subgraphs included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...ir.types import Array
from ..writing.values import OnnxBlock, OnnxCall

__all__ = ["names_read", "prune", "readers_of", "renamed"]


def names_read(block: OnnxBlock) -> Iterator[str]:
    """The names that calls and results of a block read."""
    yield from (value.name for value in block.results)
    for call in block.calls:
        yield from reads_of(call)


def reads_of(call: OnnxCall) -> Iterator[str]:
    """The names that a call reads, those of its subgraphs too."""
    yield from filter(None, call.inputs)
    for inner in call.attributes.values():
        if isinstance(inner, OnnxBlock):
            yield from names_read(inner)


def readers_of(block: OnnxBlock) -> defaultdict[str, list[OnnxCall]]:
    """{name: the calls that read it}."""
    readers: defaultdict[str, list[OnnxCall]] = defaultdict(list)
    for call in block.calls:
        for name in reads_of(call):
            readers[name].append(call)
    return readers


def renamed(call: OnnxCall, name_of: Callable[[str], str]) -> OnnxCall:
    """A call that reads other names; those of its subgraphs too."""
    for inner in call.attributes.values():
        if isinstance(inner, OnnxBlock):
            inner.calls = [renamed(each, name_of) for each in inner.calls]
            for value in inner.results:
                value.name = name_of(value.name)
    return replace(call, inputs=tuple([name_of(n) if n else "" for n in call.inputs]))


def prune(block: OnnxBlock, initial: Mapping[str, Array]) -> dict[str, Array]:
    """Drop the calls of which nobody reads anything, types of what is no more, and constants; the
    initial values that are read or are inputs are returned."""
    read = {value.name for value in block.results}
    kept: list[OnnxCall] = []
    for call in reversed(block.calls):
        if read.intersection(call.outputs):
            read.update(reads_of(call))
            kept.append(call)
    block.calls = kept[::-1]
    made = {name for call in kept for name in call.outputs}
    block.typed = [value for value in block.typed if value.name in made]
    block.constants = {n: a for n, a in block.constants.items() if n in read}
    given = {value.name for value in block.given}
    return {n: a for n, a in initial.items() if n in read or n in given}
