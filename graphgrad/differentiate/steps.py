"""What lies between ys and xs, as steps in an order in which gradients can flow."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from ..ir.errors import RegionError
from ..ir.node import Node, Region, Tensor
from ..ir.residual import viewpoint
from ..regions.boundary import boundary_of
from .levels import Key, Step, key_of


def reads(step: Step, off: frozenset[Step]) -> list[Key]:
    """The keys that a step reads."""
    if isinstance(step, Node):
        view = viewpoint(step)
        return [t if t.node.region is None else key_of(t, view, off) for t in step.inputs]
    boundary = boundary_of(step)
    return [key_of(t, step, off) for t in (*boundary.inputs, *boundary.undeclared)]


def step_of(key: Key) -> Step:
    """The step that makes a key's tensor."""
    return key.node if isinstance(key, Tensor) else key[1]


def position(step: Step) -> float:
    """Where a step stands: its index, or after the last member of the region."""
    return step.index if isinstance(step, Node) else boundary_of(step).position


def plan(
    keys: Iterable[Key],
    lowest: float,
    stop: frozenset[Tensor],
    off: frozenset[Step],
    regional: bool,
) -> list[Step]:
    """The steps that keys depend on, inputs first.

    None stands before `lowest`, and none is there for the sake of a tensor in `stop`.

    RegionError with the path where regions and nodes need each other in a circle.
    """
    if not regional:
        return _plan_nodes([k.node for k in keys if isinstance(k, Tensor)], lowest, stop)
    seen: set[Step] = set()
    order: list[Step] = []
    disorder = False
    stack = [step_of(k) for k in keys]
    while stack:
        step = stack.pop()
        if step in seen:
            continue
        seen.add(step)
        here = position(step)
        if here < lowest:
            continue
        order.append(step)
        for key in reads(step, off):
            if stop and (key if isinstance(key, Tensor) else key[0]) in stop:
                continue
            before = step_of(key)
            if not disorder and position(before) >= here:
                disorder = True
            if before not in seen:
                stack.append(before)
    order.sort(key=position)
    return _sorted(order, off) if disorder else order


def _plan_nodes(stack: list[Node], lowest: float, stop: frozenset[Tensor]) -> list[Step]:
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


def _sorted(steps: list[Step], off: frozenset[Step]) -> list[Step]:
    """Topological order of steps, earliest first among those that are ready."""
    among = set(steps)
    after: dict[Step, list[Step]] = {s: [] for s in steps}
    waits: dict[Step, int] = {}
    for step in steps:
        before = {b for b in map(step_of, reads(step, off)) if b in among}
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
        raise _circle([s for s in steps if waits[s]], off)
    return order


def _circle(stuck: list[Step], off: frozenset[Step]) -> RegionError:
    """The error for steps that need each other, with the shortest way round through a region."""
    among = set(stuck)
    path: list[Step] = []
    for start in (s for s in stuck if isinstance(s, Region)):
        path = _way_back(start, among, off)
        if path:
            break
    region = path[0]
    assert isinstance(region, Region)
    rows = "".join(f"\n  {_row(s)}" for s in reversed(path[1:]))
    others = [s for s in path[1:-1] if isinstance(s, Region)]
    what = (
        f"regions {region.name!r} ({region.where}) and {others[0].name!r} ({others[0].where}) "
        "need each other in a circle"
        if others
        else f"region {region.name!r} ({region.where}) cannot be replaced as one step: a value "
        "leaves it and comes back"
    )
    return RegionError(
        f"{what}, through{rows}\n"
        "Build these inside the region too, end the region before them, or split the region."
    )


def _way_back(start: Step, among: set[Step], off: frozenset[Step]) -> list[Step]:
    """start, what it reads, ..., start; [] where it is in no circle. Breadth first."""
    came: dict[Step, Step] = {}
    frontier = [start]
    while frontier:
        following: list[Step] = []
        for step in frontier:
            for before in map(step_of, reads(step, off)):
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
