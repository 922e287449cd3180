"""Which boxes are collapsed: as asked for, or so many that the picture stays readable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ...base.errors import GraphError, did_you_mean
from ...ir.node import Region, RuleCall
from .boxes import Box, NameScope, Part
from .wording import site_name

LARGE = 120
"""Nodes above which a picture opens with boxes collapsed."""
READABLE = 80
"""How many things it then shows, or as few as it takes."""

Collapse = str | Iterable[Any]


def is_large(collapse: Collapse, nodes: int) -> bool:
    """Whether the picture of so many nodes is to be made small."""
    return collapse == "auto" and nodes > LARGE


def collapsed_boxes(
    columns: Sequence[Box], collapse: Collapse, nodes: int, mirror: Mapping[Box, Box]
) -> set[Box]:
    """The boxes to collapse.

    collapse  "none"; "all"; "auto": above 120 nodes, all boxes but the outer ones that there is
              room for; or what to collapse: regions, and names that may be patterns, of scopes
              ("encoder/*"), rules ("ste") and regions ("#0")
    mirror    gradients' box -> the forward box that it stands beside

    GraphError for what names no box, ValueError for an unknown word.
    """
    boxes = [b for column in columns for b in column.within() if b.parent is not None]
    if isinstance(collapse, str):
        if collapse not in ("auto", "all", "none"):
            raise ValueError(f'collapse is "auto", "all", "none" or a list, got {collapse!r}')
        if collapse == "none":
            return set()
        if collapse == "all":
            return {b for b in boxes if b.depth == 1}
        return set(boxes) - _first_open(columns, mirror) if nodes > LARGE else set()
    chosen: set[Box] = set()
    for what in collapse:
        hits = {b for b in boxes if _is_meant(b, what)}
        if not hits:
            names = [name for b in boxes for name in _names(b)]
            hint = did_you_mean(str(what), names) if isinstance(what, str) else ""
            raise GraphError(f"there is no box {what!r} to collapse. {hint}".rstrip())
        chosen |= hits
    return chosen


def _first_open(columns: Sequence[Box], mirror: Mapping[Box, Box]) -> set[Box]:
    """The boxes that a large picture opens with, each with its mirror image: outer ones first.

    What repeats and the updates of parameters stay shut.
    """
    opened = set(columns)
    seen = sum(len(box.nodes) + len(box.boxes) for box in columns)
    level = [box for column in columns for box in column.boxes]
    while level:
        pairs: dict[Box, list[Box]] = {}
        for box in level:
            pairs.setdefault(mirror.get(box, box), []).append(box)
        level = []
        for boxes in pairs.values():
            more = sum(len(box.nodes) + len(box.boxes) - 1 for box in boxes)
            if seen + more <= READABLE and all(map(_may_open, boxes)):
                seen += more
                opened.update(boxes)
                level += [inner for box in boxes for inner in box.boxes]
    return opened


def _may_open(box: Box) -> bool:
    repeats = isinstance(box.owner, Part) and box.owner.repeats
    return not repeats and (box.column < 2 or box.kind != "scope")


def _names(box: Box) -> list[str]:
    owner = box.owner
    if isinstance(owner, NameScope):
        return [owner.path]
    if isinstance(owner, Region):
        return [owner.name, f"#{owner.index}"]
    if isinstance(owner, RuleCall):
        return [owner.rule, site_name(owner)]
    return [box.title]


def _is_meant(box: Box, what: Any) -> bool:
    if isinstance(what, str):
        return any(name == what or fnmatchcase(name, what) for name in _names(box))
    owner = box.owner
    return owner is what or (isinstance(owner, RuleCall) and owner.site is what)
