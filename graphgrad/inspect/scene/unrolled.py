"""Steps of an unrolled loop without scopes: the same lines build the same ops over and over.

Of each run the first step is a box, and the rest another; what is derived from a step stands in
the boxes of the same step in the other column.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache

from ...base.position import Position, full, show
from ...ir.node import Node, Region, Tensor
from .boxes import Box, Part, Tree
from .wording import kind_of

__all__: list[str] = []

LEAST = 3
"""How often the steps come at least, and how many ops one has."""
LONGEST = 2000
"""How many ops a step may have."""

SiteOf = Callable[[Node], "Node | Region | None"]
Reads = Callable[[Node], Sequence[tuple[Tensor, bool]]]
Step = tuple[Part, Part | None]
"""The box of a step, and the one around all steps but the first."""


def fold_steps(tree: Tree, site_of: SiteOf, reads: Reads, loader: Position | None) -> None:
    """Put steps that stand directly in a box of the forward part into boxes of their own.

    loader: the line that built most of it, which tells no step from another.
    """
    line_at = cache(full)  # an instruction may have several offsets, a line has one number
    step: dict[Node, Step] = {}
    for column in tree.columns[:1]:
        for box in column.within():
            ops = [n for n in box.nodes if n.inputs and n.position not in (None, loader)]
            for start, period, times in runs_of([(line_at(n.position), n.type) for n in ops]):
                step |= _steps(ops[start : start + period * times], period)
    if not step:
        return
    boxes = [box for column in tree.columns[:2] for box in column.within()]
    step |= {n: s for n, s in _sources(boxes, step, site_of, reads) if s is not None}
    for box in boxes:
        _move(tree, box, step, site_of)


def _sources(
    boxes: Sequence[Box], step: Mapping[Node, Step], site_of: SiteOf, reads: Reads
) -> Iterator[tuple[Node, Step | None]]:
    """Variables and constants that one step alone reads, and what is derived from it."""
    sources: dict[Node, Step | None] = {}
    for box in boxes:
        for node in box.nodes:
            own = step.get(node) or step.get(site_of(node))  # type: ignore[arg-type]
            for t, _ in reads(node):
                if kind_of(t.node) in ("variable", "constant"):
                    same = sources.setdefault(t.node, own) is own
                    sources[t.node] = own if same else None
    yield from sources.items()


def _steps(ops: Sequence[Node], period: int) -> dict[Node, Step]:
    """Each of the ops with its step."""
    lines = _lines_of(ops[:period])
    times = len(ops) // period
    rest = Part(f"steps 1 ... {times - 1} of {lines}, x {times - 1}", repeats=True)
    parts = [Part(f"step {k} of {lines}") for k in range(times)]
    return {n: (parts[i // period], rest if i >= period else None) for i, n in enumerate(ops)}


def _lines_of(ops: Sequence[Node]) -> str:
    """`model.py:44 to 47`: the lines of one step, in the file of its first op."""
    shown = [show(n.position).rpartition(":") for n in ops]
    file = shown[0][0]
    lines = sorted({int(line) for name, _, line in shown if name == file})
    return f"{file}:{lines[0]}" if len(lines) == 1 else f"{file}:{lines[0]} to {lines[-1]}"


def _move(tree: Tree, box: Box, step: Mapping[Node, Step], site_of: SiteOf) -> None:
    """Move the nodes of steps, and what is derived from them, out of a box into boxes in it."""
    kept: list[Node] = []
    for node in box.nodes:
        site = node if node in step else site_of(node)
        if not isinstance(site, Node) or site not in step:
            kept.append(node)
            continue
        part, rest = step[site]
        around = box if rest is None else tree.inside(box, rest, rest)
        tree.move(node, tree.inside(around, part, part))
    box.nodes = kept


def runs_of(keys: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """Where keys repeat: the start, how many are repeated, and how often they come."""
    following: list[int] = [0] * len(keys)
    seen: dict[Hashable, int] = {}
    for i in range(len(keys) - 1, -1, -1):
        following[i] = seen.get(keys[i], 0)
        seen[keys[i]] = i
    start = 0
    while start < len(keys):
        period = following[start] - start
        end = start
        if LEAST <= period <= LONGEST:
            while end + period < len(keys) and keys[end] == keys[end + period]:
                end += 1
        times = (end - start) // period + 1 if end > start else 1
        if times >= LEAST:
            yield start, period, times
            start += period * times
        else:
            start += 1
