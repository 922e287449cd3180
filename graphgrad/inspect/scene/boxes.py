"""The boxes of a picture: columns, name scopes, regions, spliced rules, each within another.

A node is inside the regions and rule calls that the graph says. Name scopes are put around and
between these: a region stands in the scope that all its nodes share. A gradient stands in the scope
of what it is the gradient of, so that a scope has a box in the forward part and its mirror image in
the backward part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...base.ancestry import OUTSIDE, Ancestry
from ...ir.node import Node, Region, RuleCall
from .columns import column_title
from .wording import call_title, how_often, local_name, region_title, shortened, site_name, site_of


class NameScope:
    """A name scope as it stands in one place.

    path      such as "encoder/attention"
    title     the last part of it, as a rule
    operator  whether it holds one operator of a file, and stays shut
    """

    __slots__ = ("operator", "path", "title")

    def __init__(self, path: str, title: str) -> None:
        self.path = path
        self.title = title
        self.operator = False


class Part:
    """Some things of a box that has very many, named by the first and the last of them.

    repeats: whether they are what comes once more, after the first of its kind.
    """

    __slots__ = ("repeats", "title")

    def __init__(self, title: str, repeats: bool = False) -> None:
        self.title = title
        self.repeats = repeats


class Bypass:
    """The default gradient that a rule call was made instead of."""

    __slots__ = ("call", "why_not")

    def __init__(self, call: RuleCall, why_not: str = "") -> None:
        self.call = call
        self.why_not = why_not


class BodyMark:
    """One of the bodies of a node of control flow.

    Of a choice, number 0 is taken where the condition holds. A loop has one, number 0, in which its
    test is too.
    """

    __slots__ = ("number", "site")

    def __init__(self, site: Node, number: int) -> None:
        self.site = site
        self.number = number

    @property
    def word(self) -> str:
        """`then`, `else` or `body`."""
        names = self.site.op.body_names
        return names[-1] if self.often else names[self.number]

    @property
    def often(self) -> str:
        """`, x 200` where it is the body of a loop; '' of a choice."""
        words = how_often(self.site)
        return f", {words}" if words else ""


Owner = Region | RuleCall
"""What the graph itself says is around a node."""
Mark = Owner | Bypass | BodyMark
Around = Mark | NameScope | Part


class Box:
    """A box around nodes and inner boxes.

    id      unique in the view: b0, b1, ... in the order in which they are drawn
    owner   what it stands for; None for a column
    kind    "column", "scope", "region", "rule", "part", "bypass", "body"
    title   what stands on it
    column  the column it is in
    parent  the box around it; None for a column
    nodes   nodes directly inside
    boxes   boxes directly inside
    size    how many nodes are inside, at any depth
    depth   how many boxes are around it
    """

    __slots__ = (
        "boxes",
        "column",
        "depth",
        "id",
        "kind",
        "nodes",
        "owner",
        "parent",
        "size",
        "title",
    )

    def __init__(self, owner: Around | None, column: int, parent: Box | None) -> None:
        self.id = ""
        self.owner = owner
        self.column = column
        self.parent = parent
        self.kind, self.title = _named(owner, column)
        self.nodes: list[Node] = []
        self.boxes: list[Box] = []
        self.size = 0
        self.depth = 0

    def within(self) -> list[Box]:
        """This box and all inside it, in the order in which they are drawn."""
        boxes, stack = [], [self]
        while stack:
            box = stack.pop()
            boxes.append(box)
            stack.extend(reversed(box.boxes))
        return boxes

    def around(self) -> Iterator[Box]:
        """This box and all around it, innermost first."""
        box: Box | None = self
        while box is not None:
            yield box
            box = box.parent

    def members(self) -> list[Node]:
        """All nodes inside, box by box."""
        return [n for box in self.within() for n in box.nodes]

    def __repr__(self) -> str:
        return f"<{self.kind} box {self.title!r}: {self.size} nodes>"


def _named(owner: Around | None, column: int) -> tuple[str, str]:
    if owner is None:
        return "column", column_title(column)
    if isinstance(owner, Region):
        return "region", region_title(owner)
    if isinstance(owner, RuleCall):
        return "rule", call_title(owner)
    if isinstance(owner, NameScope):
        return "scope", owner.title
    if isinstance(owner, Part):
        return "part", owner.title
    if isinstance(owner, BodyMark):
        return "body", f"{owner.word} of {shortened(local_name(owner.site), 40)}{owner.often}"
    why = f": {owner.why_not}" if owner.why_not else ""
    return "bypass", f"default gradient of {shortened(site_name(owner.call), 40)}, bypassed{why}"


# --- regions and rule calls -------------------------------------------------------------------

Path = Ancestry
"""What is around a node. Where the same is around, that is one object."""


class Paths:
    """The paths of one picture.

    twins  what stands for others
    """

    def __init__(self, twins: Mapping[Owner, Owner]) -> None:
        self._twins = twins
        self._inner: dict[tuple[Path, Mark], Path] = {}
        self._moved: dict[tuple[Path, Path], Path] = {}
        self._known: dict[object, Path] = {None: OUTSIDE}

    def of(self, node: Node) -> Path:
        """The regions and rule calls around a node.

        A region that a rule opened stands inside the call of that rule.
        """
        known = self._known
        origin = node.origin if isinstance(node.origin, RuleCall) else None
        at: tuple[Region | None, Node | RuleCall | None] | None = node.region, origin
        inner: list[tuple[object, Owner | None]] = []
        while at not in known:
            assert at is not None
            inner.append((at, owner := _innermost(*at)))
            at = _around(owner, *at)
        path = known[at]
        for each, owner in reversed(inner):
            if owner is not None:
                path = self.put(self._twins.get(owner, owner), path)
            known[each] = path
        return path

    def put(self, mark: Mark, path: Path) -> Path:
        """A path with something in it, around what is within."""
        cached = self._inner.get((path, mark))
        if cached is None:
            cached = self._inner[path, mark] = Path(mark, path)
        return cached

    def within(self, path: Path, around: Path) -> Path:
        """A path as it is inside another one."""
        moved = self._moved
        inner: list[Path] = []
        while path.depth and (path, around) not in moved:
            inner.append(path)
            path = path.outer
        inside = moved.get((path, around), around)
        for each in reversed(inner):
            inside = moved[each, around] = self.put(each.item, inside)
        return inside


def _innermost(region: Region | None, origin: Node | RuleCall | None) -> Owner | None:
    """What is next around what has this region and origin, if the graph says so of these."""
    if region is not None and region.origin is origin:
        return region
    return origin if isinstance(origin, RuleCall) else None


def _around(
    owner: Owner | None, region: Region | None, origin: Node | RuleCall | None
) -> tuple[Region | None, Node | RuleCall | None] | None:
    """Region and origin of what is around that."""
    if region is None:
        return None
    return (region.parent, origin) if owner is region else (region, region.origin)


def unseen(paths: Iterable[Path]) -> Iterator[list[Mark]]:
    """Of each path what none before it has, innermost first."""
    seen = {OUTSIDE}
    for path in paths:
        marks: list[Mark] = []
        while path not in seen:
            seen.add(path)
            marks.append(path.item)
            path = path.outer
        yield marks


# --- scopes -----------------------------------------------------------------------------------


def scopes_of(
    nodes: Sequence[Node], path: Mapping[Node, Path], homes: Mapping[Node, tuple[str, ...]]
) -> dict[Node, tuple[str, ...]]:
    """The parts of the scope each node belongs to: its own, or that of what it comes from.

    homes: nodes that belong to another scope than the one they were built in.
    """
    split: dict[str, tuple[str, ...]] = {}
    own: dict[Node, tuple[str, ...]] = {}
    for node in nodes:
        scope = node.scope
        if scope not in split:
            split[scope] = tuple(part for part in scope.split("/") if part)
        own[node] = homes[node] if node in homes else split[scope]
    shared = _shared((path[n], own[n]) for n in nodes if n.origin is None)
    return {n: own[n] if n.origin is None else _inherited(n, own, shared, split) for n in nodes}


def _inherited(
    node: Node,
    own: Mapping[Node, tuple[str, ...]],
    shared: Mapping[Mark, tuple[str, ...]],
    split: dict[str, tuple[str, ...]],
) -> tuple[str, ...]:
    site: Node | Region | None = node
    while site is not None and site.origin is not None:
        site = site_of(site.origin)
    if isinstance(site, Region):
        return shared.get(site, ())
    if site is None:
        return ()
    if site in own:
        return own[site]
    if site.scope not in split:
        split[site.scope] = tuple(part for part in site.scope.split("/") if part)
    return split[site.scope]


def _shared(scopes: Iterable[tuple[Path, tuple[str, ...]]]) -> dict[Mark, tuple[str, ...]]:
    """The outermost scopes that all which is in a mark shares, inner marks included."""
    common: dict[Path, tuple[str, ...]] = {OUTSIDE: ()}
    for path, scope in scopes:
        common[path] = _common(common.get(path, scope), scope)
    paths = list(common)
    for path in paths:
        if path.outer not in common:
            common[path.outer] = common[path]
            paths.append(path.outer)
    shared: dict[Mark, tuple[str, ...]] = {}
    for path in sorted(common, key=len, reverse=True):
        scope = common[path]
        common[path.outer] = _common(common[path.outer], scope)
        shared[path.item] = _common(shared.get(path.item, scope), scope)
    return shared


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    if a is b:
        return a
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return a[:count]


# --- the tree ---------------------------------------------------------------------------------


class Tree:
    """The boxes of a view.

    columns  the outermost ones, from left to right
    box      node -> the box it is directly in
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        column: Mapping[Node, int],
        marks: Mapping[Node, Path],
        scopes: Mapping[Node, tuple[str, ...]],
    ) -> None:
        self._column: dict[int, Box] = {}
        self._inner: dict[tuple[Box, object], Box] = {}
        self._marked: dict[tuple[int, Path], Box] = {}
        shared = _shared((marks[n], scopes[n]) for n in nodes)
        self._home = {mark: len(scope) for mark, scope in shared.items()}
        self.box: dict[Node, Box] = {}
        known: dict[tuple[int, Path, tuple[str, ...]], Box] = {}
        for node in nodes:
            key = (column[node], marks[node], scopes[node])
            box = known.get(key)
            if box is None:
                box = known[key] = self._place(*key)
            box.nodes.append(node)
            self.box[node] = box

    @property
    def columns(self) -> list[Box]:
        """The columns, from left to right."""
        return [self._column[c] for c in sorted(self._column)]

    def scopes(self) -> Iterator[NameScope]:
        """The name scopes that have a box, once for each."""
        for box in (box for column in self.columns for box in column.within()):
            if isinstance(box.owner, NameScope):
                yield box.owner

    def _place(self, column: int, marks: Path, scope: tuple[str, ...]) -> Box:
        """From the outside: the scopes down to where each mark is at home, the mark, the rest."""
        if column not in self._column:
            self._column[column] = self._marked[column, OUTSIDE] = Box(None, column, None)
        inner: list[Path] = []
        at = marks
        while (column, at) not in self._marked:
            inner.append(at)
            at = at.outer
        box, depth = self._marked[column, at], self._home[at.item]
        for each in reversed(inner):
            home = self._home[each.item]
            box = self.inside(self._scopes(box, scope, depth, home), each.item, each.item)
            self._marked[column, each] = box
            depth = home
        return self._scopes(box, scope, depth, len(scope))

    def _scopes(self, box: Box, scope: tuple[str, ...], start: int, end: int) -> Box:
        for k in range(start, end):
            known = self._inner.get((box, scope[k]))
            box = known or self.inside(box, scope[k], NameScope("/".join(scope[: k + 1]), scope[k]))
        return box

    def inside(self, box: Box, key: object, owner: Around) -> Box:
        """The box of an owner directly inside another; made when it is first asked for."""
        inner = self._inner.get((box, key))
        if inner is None:
            inner = self._inner[box, key] = Box(owner, box.column, box)
            box.boxes.append(inner)
        return inner

    def move(self, thing: Node | Box, box: Box) -> None:
        """Put a node or a box directly into another box."""
        if isinstance(thing, Node):
            box.nodes.append(thing)
            self.box[thing] = box
        else:
            box.boxes.append(thing)
            thing.parent = box

    def number(self) -> None:
        """Give each box its id, its depth, and the count of what is inside."""
        boxes = [box for column in self.columns for box in column.within()]
        for i, box in enumerate(boxes):
            box.id, box.size = f"b{i}", len(box.nodes)
            box.depth = 0 if box.parent is None else box.parent.depth + 1
        for box in reversed(boxes):
            if box.parent is not None:
                box.parent.size += box.size


def mirrored(columns: Sequence[Box]) -> dict[Box, Box]:
    """For each box of column 1 the one of column 0 whose mirror image it is, where there is one."""
    sides: dict[int, list[Box]] = {b.column: b.within() for b in columns if b.column < 2}
    if len(sides) < 2:
        return {}
    left = {(b.parent, _twin_key(b)): b for b in sides[0] if b.kind != "region"}
    regions = {b.owner: b for b in sides[0] if b.kind == "region"}
    twins: dict[Box, Box] = {sides[1][0]: sides[0][0]}
    for box in sides[1][1:]:
        assert box.parent is not None
        site = box.owner.site if isinstance(box.owner, RuleCall) else box.owner
        twin = regions.get(site) if isinstance(site, Region) else None
        if twin is None and box.parent in twins:
            twin = left.get((twins[box.parent], _twin_key(box)))
        if twin is not None:
            twins[box] = twin
    return twins


def _twin_key(box: Box) -> object:
    owner = box.owner
    if isinstance(owner, BodyMark):
        origin = owner.site.origin
        return owner.site if origin is None else site_of(origin), owner.number
    return owner.path if isinstance(owner, NameScope) else owner
