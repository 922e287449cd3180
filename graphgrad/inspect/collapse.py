"""Which boxes are collapsed: as asked for, or so many that the picture stays readable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..ir.errors import GraphError, did_you_mean
from ..ir.node import Region, RuleCall
from .boxes import Box, NameScope
from .wording import site_name

VISIBLE_LIMIT = 2000

Collapse = str | Iterable[Any]


def is_large(collapse: Collapse, nodes: int) -> bool:
    """Whether the picture of so many nodes is to be made small."""
    return collapse == "auto" and nodes > VISIBLE_LIMIT


def collapsed_boxes(columns: Sequence[Box], collapse: Collapse, nodes: int) -> set[Box]:
    """The boxes to collapse.

    collapse  "none"; "all"; "auto": above 2,000 nodes, all boxes below the largest depth at which
              at most 2,000 nodes and boxes are seen; or what to collapse: regions, and names that
              may be patterns, of scopes ("encoder/*"), rules ("ste") and regions ("#0")

    GraphError for what names no box, ValueError for another word.
    """
    boxes = [b for column in columns for b in column.within() if b.parent is not None]
    if isinstance(collapse, str):
        if collapse not in ("auto", "all", "none"):
            raise ValueError(f'collapse is "auto", "all", "none" or a list, got {collapse!r}')
        if collapse == "none":
            return set()
        if collapse == "all":
            return {b for b in boxes if b.depth == 1}
        return _deep_ones(boxes, columns) if nodes > VISIBLE_LIMIT else set()
    found: set[Box] = set()
    for what in collapse:
        hits = {b for b in boxes if _is_meant(b, what)}
        if not hits:
            names = [name for b in boxes for name in _names(b)]
            hint = did_you_mean(str(what), names) if isinstance(what, str) else ""
            raise GraphError(f"there is no box {what!r} to collapse. {hint}".rstrip())
        found |= hits
    return found


def _deep_ones(boxes: Sequence[Box], columns: Sequence[Box]) -> set[Box]:
    """All boxes below the largest depth at which few enough are seen."""
    seen = sum(len(c.nodes) for c in columns) + sum(b.depth == 1 for b in boxes)
    by_depth: dict[int, list[Box]] = {}
    for box in boxes:
        by_depth.setdefault(box.depth, []).append(box)
    depth = 1
    while depth in by_depth:
        seen += sum(len(b.nodes) + len(b.boxes) - 1 for b in by_depth[depth])
        if seen > VISIBLE_LIMIT:
            break
        depth += 1
    return set(by_depth.get(depth, ()))


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
