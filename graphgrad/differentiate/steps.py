"""What lies between ys and xs, as steps in an order in which gradients can flow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from operator import itemgetter

from ..base.errors import RegionError
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.region_tree import MARKED, NamedTree, RegionTree
from ..ir.residual import viewpoint
from ..regions.boundary import boundary_of, settled_boundary
from ..regions.index import index_of
from .levels import Key, Off, Step, key_of


def reads(step: Step, off: Off, tree: RegionTree = MARKED) -> list[Key]:
    """The keys that a step reads."""
    if not isinstance(step, Node):
        boundary = settled_boundary(step)
        inputs = (*boundary.inputs, *boundary.undeclared)
        return [key_of(t, step, off, tree) for t in inputs]
    sites = step.graph.sites if step.graph is not None else {}
    for t in step.inputs:
        if t.node.region is not None or t.node in tree.moved or t in sites:
            view = viewpoint(step, tree)
            return [key_of(t, view, off, tree) for t in step.inputs]
    return list(step.inputs)


def step_of(key: Key) -> Step:
    """The step that makes a key's tensor."""
    return key.node if isinstance(key, Tensor) else key[1]


def is_stopped(key: Key, stop: frozenset[Tensor]) -> bool:
    """Whether nothing flows on from a key: from a site of tensors it does, to what is stopped."""
    if isinstance(key, Tensor):
        return key in stop
    t, region = key
    return t in stop and not region.on_tensors


def position(step: Step) -> float:
    """Where a step stands: its index, or after the last member of the region."""
    return step.index if isinstance(step, Node) else boundary_of(step).position


def lowest_of(xs: Iterable[Tensor], graph: Graph, tree: RegionTree = MARKED) -> int:
    """No step that stands before this can lead to an x.

    What reads an early member of a region that was marked afterwards may depend on a late one.
    """
    lowest = min([x.node.index for x in xs])
    if graph.scattered or tree.regions:
        spans = _spans(graph, tree)
        place = bisect_left(spans, lowest, key=itemgetter(1))
        if place < len(spans):
            lowest = min(lowest, spans[place][0])
    return lowest


Spans = list[tuple[int, float]]


def _spans(graph: Graph, tree: RegionTree) -> Spans:
    """Where the regions lie whose readers may stand among their members, in order, none in another.

    Worked out once for the marked ones, and once for a call that names groups.
    """
    index = index_of(graph)
    if index.spans is None or index.spans[0] != graph.scattered:
        index.spans = list(graph.scattered), _merged(graph.scattered)
    marked: Spans = index.spans[1]
    if not isinstance(tree, NamedTree):
        return marked
    if graph not in tree.spans:
        named = [region for region in tree.regions if region.graph is graph]
        tree.spans[graph] = _merged([*graph.scattered, *named])
    spans: Spans = tree.spans[graph]
    return spans


def _merged(regions: Iterable[Region]) -> Spans:
    """From the first member to the position of each, those that overlap as one."""
    bounds = ((boundary_of(r), r.on_tensors) for r in regions)
    starts = [(b, b.inputs if site else b.first and b.first.outputs) for b, site in bounds]
    spans = [(min(t.node.index for t in ts), b.position) for b, ts in starts if ts]
    merged: Spans = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def leading_to(
    keys: Iterable[Key],
    lowest: float,
    stop: frozenset[Tensor],
    off: Off,
    regional: bool,
    tree: RegionTree = MARKED,
) -> list[Step]:
    """The steps that keys depend on, inputs first.

    None stands before `lowest`, and none is there for the sake of a tensor in `stop`.

    RegionError with the path where regions and nodes need each other in a circle.
    """
    if not regional:
        return _nodes_leading_to([k.node for k in keys if isinstance(k, Tensor)], lowest, stop)
    place = {step: position(step) for step in map(step_of, keys)}
    stack = list(place)
    order: list[Step] = []
    disorder = False
    while stack:
        step = stack.pop()
        here = place[step]
        if here < lowest:
            continue
        order.append(step)
        for key in reads(step, off, tree):
            if stop and is_stopped(key, stop):
                continue
            before = step_of(key)
            if before not in place:
                place[before] = position(before)
                stack.append(before)
            if place[before] >= here:
                disorder = True
    order.sort(key=place.__getitem__)
    return _sorted(order, off, tree) if disorder else order


def _nodes_leading_to(stack: list[Node], lowest: float, stop: frozenset[Tensor]) -> list[Step]:
    """The same for a graph without regions."""
    seen = set(stack)
    stack = list(seen)
    order: list[Step] = []
    while stack:
        node = stack.pop()
        if node.index < lowest:
            continue
        order.append(node)
        for t in node.inputs:
            before = t.node
            if before not in seen and not (stop and t in stop):
                seen.add(before)
                stack.append(before)
    order.sort(key=_index)
    return order


def _index(step: Step) -> int:
    return step.index


def _sorted(steps: list[Step], off: Off, tree: RegionTree) -> list[Step]:
    """Topological order of steps, earliest first among those that are ready."""
    among = set(steps)
    after: dict[Step, list[Step]] = {s: [] for s in steps}
    waits: dict[Step, int] = {}
    for step in steps:
        before = {b for b in map(step_of, reads(step, off, tree)) if b in among}
        waits[step] = len(before)
        for b in before:
            after[b].append(step)
    place = {s: i for i, s in enumerate(steps)}
    ready = [place[s] for s in steps if not waits[s]]
    heapify(ready)
    order: list[Step] = []
    while ready:
        step = steps[heappop(ready)]
        order.append(step)
        for later in after[step]:
            waits[later] -= 1
            if not waits[later]:
                heappush(ready, place[later])
    if len(order) < len(steps):
        raise _circle([s for s in steps if waits[s]], off, tree)
    return order


def _circle(stuck: list[Step], off: Off, tree: RegionTree) -> RegionError:
    """The error for steps that need each other, with the shortest way round through a region."""
    among = set(stuck)
    path: list[Step] = []
    for start in (s for s in stuck if isinstance(s, Region)):
        path = _way_back(start, among, off, tree)
        if path:
            break
    region = path[0]
    assert isinstance(region, Region)
    rows = "".join(f"\n  {_row(s)}" for s in reversed(path[1:]))
    others = [s for s in path[1:-1] if isinstance(s, Region)]
    what = (
        f"regions {region.name!r} ({region.where}) and {others[0].name!r} ({others[0].where}) "
        "depend on each other in a cycle"
        if others
        else f"region {region.name!r} ({region.where}) cannot be replaced as one step: a value "
        "leaves it and comes back"
    )
    remedy = "Build these inside the region too, end the region before them, or split the region."
    if any(isinstance(s, Region) and s.on_tensors for s in path):
        remedy = (
            "The first of several sites on one tensor is called first: mark them in another "
            "order, or put fewer tensors into one site."
        )
    return RegionError(f"{what}, through{rows}\n{remedy}")


def _way_back(start: Step, among: set[Step], off: Off, tree: RegionTree) -> list[Step]:
    """start, what it reads, ..., start; [] where it is in no circle. Breadth first."""
    came: dict[Step, Step] = {}
    frontier = [start]
    while frontier:
        following: list[Step] = []
        for step in frontier:
            for before in map(step_of, reads(step, off, tree)):
                if before is start:
                    path = [start, step]
                    while path[-1] is not start:
                        path.append(came[path[-1]])
                    return [start, *reversed(path[1:-1]), start]
                if before in among and before not in came:
                    came[before] = step
                    following.append(before)
        frontier = following
    return []


def _row(step: Step) -> str:
    if isinstance(step, Region):
        return f"region {step.name!r}, opened at {step.where}"
    return f"{step.name}, built at {step.where}"
