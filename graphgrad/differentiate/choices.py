"""What `overrides=` of a gradients() call says, as it was worked out (`choosing`) on its graph.

Calls that its rules make on the same graph, or in a body of it, use the same record. It holds
whatever "for this call only" means: which marks are off, which rules were chosen, and the tree of
regions with the groups that were named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ..base.errors import RegionError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, RuleCall
from ..ir.region_tree import MARKED, RegionTree
from ..ir.residual import Residual
from ..ops.sources import StopGradient
from ..regions.index import bodies_of, index_of
from ..regions.select import members_of
from .levels import Off, Step, built_from

NONE: frozenset[Step] = frozenset()

OTHERS: Any = object()
"""A key of overrides=: every node with its own derivative otherwise, derived ones too.

Apart from what the rules build that the call calls: they differentiate it as they say.
"""


class Everything:
    """Every mark there is."""

    def __contains__(self, step: object) -> bool:
        return True


class Switched:
    """Marks that do not count: some steps, and what the call switched off, which is not copied."""

    __slots__ = ("call", "steps")

    def __init__(self, steps: frozenset[Step], call: Any) -> None:
        self.steps = steps
        self.call = call

    def __contains__(self, step: Any) -> bool:
        return step in self.steps or step in self.call or built_from(step) in self.call

    def __or__(self, steps: AbstractSet[Step]) -> Switched:
        return Switched(self.steps.union(steps), self.call)


class Choice:
    """The overrides of a call, on one graph and the bodies in it.

    overrides  what the user gave
    graph      where that was worked out
    off        the marks that it switches off
    rules      node or region -> the rule chosen for it
    types      op type -> the rule chosen for the user's nodes of that type; None: their own
    others     the rule of nodes that have no other; None: their own derivative
    running    the rules within which the call was made
    tree       the tree of regions, with the groups that it names
    entries    what each entry is for
    elsewhere  graph that is not around this one -> the same overrides there
    """

    def __init__(self, overrides: Any, graph: Graph) -> None:
        self.overrides = overrides
        self.graph = graph
        self.off: Off = NONE
        self.rules: dict[Step, Any] = {}
        self.types: dict[str, Any] = {}
        self.others: Any = None
        self.running: Sequence[Step] = ()
        self.tree: RegionTree = MARKED
        self.entries: list[ChosenFor] = []
        self.elsewhere: dict[Graph, Choice] = {}

    def __bool__(self) -> bool:
        return bool(self.rules or self.types or self.others is not None)

    def get(self, step: Step, mark: Any = None) -> Any:
        """The rule for a step; `mark` where none was chosen."""
        first = built_from(step)
        for each in (step, first):
            if each in self.rules:
                return self.rules[each]
            if by_type(each, self.types):
                return self.types[_type_of(each)]
        if self.others is not None and mark is None and self._is_other(first):
            return self.others
        return mark

    def __contains__(self, step: Step) -> bool:
        return any(s in self.rules or by_type(s, self.types) for s in (step, built_from(step)))

    def _is_other(self, step: object) -> bool:
        """Whether the rule for others is for a step, if it is not marked."""
        if not isinstance(step, Node) or isinstance(step.op, _DOORS):
            return False
        rules = [site for site in current().answering.running if site not in self.running]
        origin = step.origin
        while origin is not None:
            by = origin.site if isinstance(origin, RuleCall) else origin
            if isinstance(origin, RuleCall) and by in rules:
                return False
            origin = by.origin
        return True

    def __iter__(self) -> Iterator[Step]:
        yield from self.rules
        for graph in bodies_of(self.graph) if self.types else ():
            for op_type in self.types:
                yield from index_of(graph).types.get(op_type, ())

    def check_reached(self, asked: Collection[Step], opened: Collection[Step]) -> None:
        """RegionError where what was chosen lies inside regions whose rules never asked for it.

        asked   the steps that were asked for their gradient
        opened  those whose rule asked for their default
        """
        asked, opened = ({*steps, *map(built_from, steps)} for steps in (asked, opened))
        types = set(map(_type_of, asked))
        innermost = {self.tree.around(step) for step in asked}
        reached = {*asked, *opened, *self._all_around(innermost)}
        closed = {s for s in asked if isinstance(s, Region) and s not in opened}
        closed -= self._all_around(innermost)
        for entry in self.entries:
            if types.isdisjoint(entry.types) and reached.isdisjoint(entry.steps):
                for step, region in self._inside(entry, closed):
                    raise _in_vain(step, region)

    def _all_around(self, regions: Iterable[Region | None]) -> set[Region]:
        """These regions and all around them."""
        enclosing: set[Region] = set()
        for region in regions:
            while region is not None and region not in enclosing:
                enclosing.add(region)
                region = self.tree.around(region)
        return enclosing

    def _inside(
        self, entry: ChosenFor, regions: Collection[Region]
    ) -> Iterator[tuple[Step, Region]]:
        """What an entry is for inside some regions, with those."""
        for step in entry.steps:
            for region in self.tree.chain(self.tree.around(step)):
                if region in regions:
                    yield step, region
        for region in regions if entry.types else ():
            for node in members_of(region):
                if by_type(node, entry.types):
                    yield node, region


_DOORS = (StopGradient, Residual)
"""Through the first nothing flows, and the second is not a step of its own."""


def _type_of(step: object) -> str:
    """The op type of a node that the user built, or of what stands for one in a batch; else ""."""
    if isinstance(step, Region):
        return step.stamped or ""
    if not isinstance(step, Node) or step.origin is not None:
        return ""
    within = step.region
    return "" if within is not None and within.stamped is not None else step.op.type


def by_type(step: object, types: Collection[str]) -> bool:
    """Whether it is a node that the user built, of one of these types, or stands for one."""
    return _type_of(step) in types


class SomeOff:
    """Some steps, and what stands in a batch for stamped nodes of some types."""

    def __init__(self, steps: Collection[Step], types: Collection[str]) -> None:
        self.steps = steps
        self.types = types

    def __contains__(self, step: object) -> bool:
        return step in self.steps or (isinstance(step, Region) and step.stamped in self.types)


class ChosenFor:
    """One entry of overrides=: the op types or the steps that its key stands for."""

    def __init__(self, types: Sequence[str], steps: list[Step]) -> None:
        self.types = types
        self.steps = steps


def _in_vain(step: Step, region: Region) -> RegionError:
    return RegionError(
        f"overrides= chooses for {step.name} ({step.where}), which lies inside region "
        f"{region.name!r} ({region.where}), whose rule does not call its default: the choice has "
        "no effect.\n"
        "Choose for the region, or switch it off with overrides={region: None}."
    )
