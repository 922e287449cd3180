"""Scopes that repeat: of layer0, layer1, ... layer19 the first is shown, the rest is one box.

Found in the forward part by what is in them; the boxes of the same scopes in the other columns
follow, so that a scope stands beside its gradient there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .boxes import Box, NameScope, Part, Tree

__all__: list[str] = []

LEAST = 3
"""How often they come at least."""
LONGEST = 4
"""How many different ones may take turns."""

_numbered = re.compile(r"(.*?)(\d+)$")


def fold_repeats(tree: Tree) -> None:
    """Put all but the first of scopes that repeat into a box."""
    boxes = [box for column in tree.columns for box in column.within()]
    alike = _signatures(boxes)
    places: dict[tuple[str, int], Box] = {}
    for box in boxes:
        if isinstance(box.owner, NameScope):
            places.setdefault((box.owner.path, box.column), box)
    for box in boxes:
        if box.column == 0:
            for run, period in _runs(box.boxes, alike):
                _fold(tree, run[period:], places)


def _fold(tree: Tree, run: Sequence[Box], places: dict[tuple[str, int], Box]) -> None:
    """A box for the rest of a run, and in other columns for what is of the same scopes."""
    part = Part(f"{run[0].title} ... {run[-1].title}, x {len(run)}", repeats=True)
    for column in tree.columns:
        same = [places.get((_path(box), column.column)) for box in run]
        members = [box for box in same if box is not None and box.parent is not None]
        if not members:
            continue
        around = members[0].parent
        assert around is not None
        gone = {box for box in members if box.parent is around}
        at = min(i for i, box in enumerate(around.boxes) if box in gone)
        inner = tree.inside(around, part, part)
        kept = [box for box in around.boxes if box not in gone and box is not inner]
        around.boxes = [*kept[:at], inner, *kept[at:]]
        for box in members:
            if box in gone:
                tree.move(box, inner)


def _path(box: Box) -> str:
    assert isinstance(box.owner, NameScope)
    return box.owner.path


def _runs(boxes: Sequence[Box], alike: dict[Box, int]) -> Iterator[tuple[list[Box], int]]:
    """Scopes whose numbers count up and that repeat, and after how many: A B A B after two."""
    scopes = [box for box in boxes if isinstance(box.owner, NameScope)]
    start = 0
    while start < len(scopes):
        period, end = max(
            ((p, _end(scopes, start, p, alike)) for p in range(1, LONGEST + 1)),
            key=lambda run: (run[1] - start >= LEAST * run[0], run[1], -run[0]),
        )
        if end - start >= LEAST * period:
            yield scopes[start:end], period
            start = end
        else:
            start += 1


def _end(scopes: Sequence[Box], start: int, period: int, alike: dict[Box, int]) -> int:
    """How far scopes repeat with a period."""
    end = start + 1
    while end < len(scopes) and _follows(scopes[end - 1].title, scopes[end].title):
        if end - start >= period and alike[scopes[end]] != alike[scopes[end - period]]:
            break
        end += 1
    return end


def _follows(before: str, after: str) -> bool:
    a, b = _numbered.match(before), _numbered.match(after)
    return a is not None and b is not None and a[1] == b[1] and int(a[2]) + 1 == int(b[2])


def _signatures(boxes: Sequence[Box]) -> dict[Box, int]:
    """Box -> a number, the same where ops and boxes inside are of the same kinds in one order."""
    numbers: dict[object, int] = {}
    signatures: dict[Box, int] = {}
    for box in reversed(boxes):
        ops = tuple(n.type for n in box.nodes)
        key = box.kind, ops, tuple(signatures[inner] for inner in box.boxes)
        signatures[box] = numbers.setdefault(key, len(numbers))
    return signatures
