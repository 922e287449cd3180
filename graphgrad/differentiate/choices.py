"""What `overrides=` of a gradients() call says: worked out once on its graph, for the whole call.

Calls that its rules make on the same graph, or in a body of it, use the same record. It holds
whatever "for this call only" means: which marks are off, which rules were chosen, and the tree of
regions with the groups that were named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ..ir.context import Unasked
from ..ir.errors import GradientError, GraphError, RegionError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, RuleCall
from ..ir.position import caller, show
from ..ir.region_tree import MARKED, RegionTree
from ..ir.residual import Residual
from ..ops.control import around as graphs_around
from ..ops.sources import StopGradient
from ..regions.index import bodies_of, index_of
from ..regions.marks import sites_of
from ..regions.named import group_of, put_in_place
from ..regions.plans import check_has_gradient
from ..regions.rules import check_reference
from ..regions.select import Group, Selection, is_in, members_of, op_types, targets_of
from .levels import Off, Step, built_from

NONE: frozenset[Step] = frozenset()

OTHERS: Any = object()
"""A key of overrides=: every node with its own derivative otherwise, derived ones too.

Apart from what the rules build that the call calls: they differentiate it as they say.
"""


class _Everything:
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
        self._entries: list[_Entry] = []
        self._elsewhere: dict[Graph, Choice] = {}

    def __bool__(self) -> bool:
        return bool(self.rules or self.types or self.others is not None)

    def get(self, step: Step, mark: Any = None) -> Any:
        """The rule for a step; `mark` where none was chosen."""
        first = built_from(step)
        for each in (step, first):
            if each in self.rules:
                return self.rules[each]
            if _by_type(each, self.types):
                return self.types[_type_of(each)]
        if self.others is not None and mark is None and self._is_other(first):
            return self.others
        return mark

    def __contains__(self, step: Step) -> bool:
        return any(s in self.rules or _by_type(s, self.types) for s in (step, built_from(step)))

    def _is_other(self, step: object) -> bool:
        """Whether the rule for others is for a step, if it is not marked."""
        if not isinstance(step, Node) or isinstance(step.op, _DOORS):
            return False
        rules = [site for site in current().question.running if site not in self.running]
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

    def on(self, graph: Graph) -> Choice:
        """The same overrides for a call within the call, maybe on another graph."""
        if self.graph in graphs_around(graph):
            return self
        found = self._elsewhere.get(graph)
        if found is None:
            found = self._elsewhere[graph] = resolved(self.overrides, graph, inherited=True)
        return found

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
        for entry in self._entries:
            if types.isdisjoint(entry.types) and reached.isdisjoint(entry.steps):
                for step, region in self._inside(entry, closed):
                    raise _in_vain(step, region)

    def _all_around(self, regions: Iterable[Region | None]) -> set[Region]:
        """These regions and all around them."""
        found: set[Region] = set()
        for region in regions:
            while region is not None and region not in found:
                found.add(region)
                region = self.tree.around(region)
        return found

    def _inside(self, entry: _Entry, regions: Collection[Region]) -> Iterator[tuple[Step, Region]]:
        """What an entry is for inside some regions, with those."""
        for step in entry.steps:
            for region in self.tree.chain(self.tree.around(step)):
                if region in regions:
                    yield step, region
        for region in regions if entry.types else ():
            for node in members_of(region):
                if _by_type(node, entry.types):
                    yield node, region


_DOORS = (StopGradient, Residual)
"""Through the first nothing flows, and the second is no step of its own."""


def _type_of(step: object) -> str:
    """The op type of a node that the user built, or of what stands for one in a batch; else ""."""
    if isinstance(step, Region):
        return step.stamped or ""
    if not isinstance(step, Node) or step.origin is not None:
        return ""
    within = step.region
    return "" if within is not None and within.stamped is not None else step.op.type


def _by_type(step: object, types: Collection[str]) -> bool:
    """Whether it is a node that the user built, of one of these types, or stands for one."""
    return _type_of(step) in types


class _Off:
    """Some steps, and what stands in a batch for stamped nodes of some types."""

    def __init__(self, steps: Collection[Step], types: Collection[str]) -> None:
        self.steps = steps
        self.types = types

    def __contains__(self, step: object) -> bool:
        return step in self.steps or (isinstance(step, Region) and step.stamped in self.types)


class _Entry:
    """One entry of overrides=: the op types or the steps that its key stands for."""

    def __init__(self, types: Sequence[str], steps: list[Step]) -> None:
        self.types = types
        self.steps = steps


# --- working it out -----------------------------------------------------------------------------


def choice_of(overrides: Any, graph: Graph, question: Unasked) -> Choice | None:
    """What is chosen in a call with these overrides; None: those of the call around it, if any.

    question: that of the call around. What it chooses does not reach a graph that one of its rules
    opens for itself.
    """
    if overrides is not None:
        return resolved(overrides, graph, inherited=False, running=running_groups(question))
    known: Choice | None = question.choice
    return known if known is not None and known.graph in graphs_around(graph) else None


def running_groups(question: Unasked) -> list[Region]:
    """Groups whose rule is running.

    They stay in the tree, switched off: what is derived reads them as their inside, whatever a call
    within the rule chooses.
    """
    return [s for s in question.running if isinstance(s, Region) and s.group is not None]


def inherited_choice(graph: Graph) -> Choice:
    """What is chosen on a graph by the running call; a choice of nothing where it chooses none."""
    known: Choice | None = current().question.choice
    return resolved({}, graph, inherited=True) if known is None else known.on(graph)


def resolved(
    overrides: Any, graph: Graph, inherited: bool, running: Sequence[Region] = ()
) -> Choice:
    """What overrides say on a graph; every error is raised before anything changes.

    inherited: by a call within the call, in whose graph there may be nothing of what is selected.
    running: groups whose rule is running.
    """
    everything = isinstance(overrides, str) and overrides == "none"
    if not everything and not isinstance(overrides, Mapping):
        raise GradientError(f'overrides is a mapping of sites to rules, or "none": {overrides!r}')
    choice = Choice(overrides, graph)
    try:
        work = _Work(choice, inherited)
        for key, rule in () if everything else overrides.items():
            work.take_in(key, rule)
        work.finish(running)
    except (RegionError, GraphError) as error:
        error.add_note(f"named in overrides= of gradients() at {show(caller())}")
        raise
    if everything:
        choice.off = Switched(NONE, _Everything())
    return choice


class _Work:
    """The overrides of a call, while they are worked out.

    off    what is switched off
    named  groups, with their rule and entry
    """

    def __init__(self, choice: Choice, inherited: bool) -> None:
        self.choice = choice
        self.inherited = inherited
        self.lenient = inherited or hasattr(choice.graph, "outer")
        self.off: set[Step] = set()
        self.named: list[tuple[Group, Any, _Entry]] = []

    def take_in(self, key: Any, rule: Any) -> None:
        """One entry."""
        if rule is not None:
            check_reference(rule, lambda: "named in overrides= of gradients()", late=False)
        choice = self.choice
        if key is OTHERS:
            choice.others, choice.running = rule, current().question.running
            return
        entry = _Entry(_types_of(key, choice.graph, self.lenient), [])
        choice._entries.append(entry)
        for op_type in entry.types:
            if op_type in choice.types and (twice := _any_of_type(op_type, choice.graph)):
                raise _two_entries(twice)
            choice.types[op_type] = rule
        for target in () if entry.types else _targets(key, choice.graph, self.lenient):
            if not isinstance(target, Group):
                self._choose(target, rule, entry)
            elif rule is not None:
                self.named.append((target, rule, entry))
            elif not self.inherited and not isinstance(key, Region):
                raise _nothing_to_switch_off(target)

    def _choose(self, step: Step, rule: Any, entry: _Entry) -> None:
        if step in self.off or step in self.choice.rules:
            raise _two_entries(step)
        entry.steps.append(step)
        if rule is None:
            self.off.add(step)
        else:
            self.choice.rules[step] = rule

    def finish(self, running: Sequence[Region]) -> None:
        """Put the groups into the tree of regions, once all entries are known to be right."""
        choice = self.choice
        for step in (*self.off, *choice.rules):
            if _by_type(step, choice.types):
                raise _two_entries(step)
        if self.named or running:
            self._put_groups(running)
        own = {op_type for op_type, rule in choice.types.items() if rule is None}
        if self.off or own:
            choice.off = Switched(NONE, _Off(frozenset(self.off), own))

    def _put_groups(self, running: Sequence[Region]) -> None:
        groups = [group for group, _, _ in self.named]
        chosen = {group.key for group in groups}
        groups += [g for g in map(group_of, running) if g.key not in chosen]
        self.choice.tree, regions = put_in_place(groups, caller())
        for region, (_, rule, entry) in zip(regions, self.named, strict=False):
            entry.steps.append(region)
            self.choice.rules[region] = rule
        busy = {region.group for region in running}
        self.off.update(region for region in regions if region.group in busy)


def _types_of(key: Any, graph: Graph, lenient: bool) -> Sequence[str]:
    """The op types that a key is for, if it is for such alone."""
    if not isinstance(key, str | Node | Region | Selection):
        raise GradientError(
            "overrides= takes op types, nodes, regions and selections of gg.select as keys, got "
            f"{key!r}"
        )
    types = op_types(key)
    if types and not lenient and not any(_any_of_type(t, graph) for t in types):
        targets_of(key, graph)  # an error that says what there is
    return types


def _any_of_type(op_type: str, graph: Graph) -> Any:
    """A node of a type that the user built, in the graph or a body in it; None: there is none."""
    for each in (graph, *bodies_of(graph)):
        found = index_of(each).types.get(op_type)
        if found:
            return found[0]
    return None


def _targets(key: Any, graph: Graph, lenient: bool) -> Iterable[Node | Region | Group]:
    """The sites of one entry that is not for op types; what stands for a group is that group."""
    if isinstance(key, Node | Region) and is_in(key, graph):
        if isinstance(key, Node):
            check_has_gradient(key)
        found: Sequence[Node | Region | Group] = (key,)
    else:
        found = sites_of(key, graph, lenient)
    return [group_of(t) if isinstance(t, Region) and t.group is not None else t for t in found]


def _in_vain(step: Step, region: Region) -> RegionError:
    return RegionError(
        f"overrides= chooses for {step.name} ({step.where}), which lies inside region "
        f"{region.name!r} ({region.where}), whose rule does not ask for its default: the choice "
        "has no effect.\nChoose for the region, or switch it off with overrides={region: None}."
    )


def _two_entries(step: Any) -> RegionError:
    return RegionError(f"two entries of overrides= are for {step!r}")


def _nothing_to_switch_off(group: Group) -> RegionError:
    return RegionError(
        f"overrides= has None for {group!r}, which is a group of {len(group.nodes)} nodes and not "
        "marked as a region: there is no rule to switch off.\nSay `.each()` for the marks of its "
        "nodes, or select regions with select.rule(...)."
    )
