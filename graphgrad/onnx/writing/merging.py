"""Calls of one operator on the same values, of which others read other outputs, as one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .folding import renamed
from .forms import what_is_called
from .values import OnnxBlock, OnnxCall

__all__ = ["merge_outputs"]


def merge_outputs(block: OnnxBlock) -> None:
    """Let one call stand for those that differ in how many outputs they have.

    Runtimes merge calls that are equal; of these they would run each.
    """
    several = {what_is_called(call) for call in block.calls if len(call.outputs) > 1}
    if not several:
        return
    names: dict[str, str] = {}
    place: dict[Any, int] = {}
    calls: list[OnnxCall] = []
    for old in block.calls:
        call = renamed(old, names)
        key = what_is_called(call)
        if key not in several or key not in place:
            place[key] = len(calls)
            calls.append(call)
            continue
        first = calls[place[key]]
        names.update(zip(call.outputs, first.outputs, strict=False))
        more = call.outputs[len(first.outputs) :]
        calls[place[key]] = replace(first, outputs=(*first.outputs, *more))
    block.calls = calls
