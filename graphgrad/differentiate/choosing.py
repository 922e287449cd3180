"""What `overrides=` says, worked out: which steps and types each entry is for, or what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.errors import GradientError, GraphError, RegionError
from ..base.position import caller, show
from ..ir.context import Answering, Context
from ..ir.graph import Graph, current
from ..ir.node import Node, Region
from ..ops.control import around as graphs_around
from ..regions.index import bodies_of, index_of
from ..regions.marks import sites_of
from ..regions.named import group_of, put_in_place
from ..regions.plans import check_has_gradient
from ..regions.rules import check_reference
from ..regions.select import Group, Selection, is_in, op_types, targets_of
from .choices import NONE, OTHERS, Choice, ChosenFor, Everything, SomeOff, Switched, by_type
from .levels import Step


def choice_of(overrides: Any, graph: Graph, outer: Context) -> Choice | None:
    """What is chosen in a call with these overrides; None: those of the call around it, if any.

    outer: where the call is made. What the call around chooses does not reach a graph that one of
    its rules opens for itself.
    """
    if overrides is not None:
        running = running_groups(outer.answering)
        return resolved(overrides, graph, inherited=False, running=running)
    known: Choice | None = outer.question.choice
    return known if known is not None and known.graph in graphs_around(graph) else None


def running_groups(answering: Answering) -> list[Region]:
    """Groups whose rule is running.

    They stay in the tree, switched off: what is derived reads them as their inside, whatever a call
    within the rule chooses.
    """
    return [s for s in answering.running if isinstance(s, Region) and s.group is not None]


def inherited_choice(graph: Graph) -> Choice:
    """What is chosen on a graph, maybe another one, by the running call; nothing where it chooses
    nothing.
    """
    known: Choice | None = current().question.choice
    if known is None:
        return resolved({}, graph, inherited=True)
    if known.graph in graphs_around(graph):
        return known
    choice = known.elsewhere.get(graph)
    if choice is None:
        choice = known.elsewhere[graph] = resolved(known.overrides, graph, inherited=True)
    return choice


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
        choice.off = Switched(NONE, Everything())
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
        self.named: list[tuple[Group, Any, ChosenFor]] = []

    def take_in(self, key: Any, rule: Any) -> None:
        """One entry."""
        if rule is not None:
            check_reference(rule, lambda: "named in overrides= of gradients()", late=False)
        choice = self.choice
        if key is OTHERS:
            choice.others, choice.running = rule, current().answering.running
            return
        entry = ChosenFor(_types_of(key, choice.graph, self.lenient), [])
        choice.entries.append(entry)
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

    def _choose(self, step: Step, rule: Any, entry: ChosenFor) -> None:
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
            if by_type(step, choice.types):
                raise _two_entries(step)
        if self.named or running:
            self._put_groups(running)
        own = {op_type for op_type, rule in choice.types.items() if rule is None}
        if self.off or own:
            choice.off = Switched(NONE, SomeOff(frozenset(self.off), own))

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
        nodes = index_of(each).types.get(op_type)
        if nodes:
            return nodes[0]
    return None


def _targets(key: Any, graph: Graph, lenient: bool) -> Iterable[Node | Region | Group]:
    """The sites of one entry that is not for op types; what stands for a group is that group."""
    if isinstance(key, Node | Region) and is_in(key, graph):
        if isinstance(key, Node):
            check_has_gradient(key)
        targets: Sequence[Node | Region | Group] = (key,)
    else:
        targets = sites_of(key, graph, lenient)
    return [group_of(t) if isinstance(t, Region) and t.group is not None else t for t in targets]


def _two_entries(step: Any) -> RegionError:
    return RegionError(f"two entries of overrides= are for {step!r}")


def _nothing_to_switch_off(group: Group) -> RegionError:
    return RegionError(
        f"overrides= has None for {group!r}, which is a group of {len(group.nodes)} nodes and not "
        "marked as a region: there is no rule to switch off.\nSay `.each()` for the marks of its "
        "nodes, or select regions with select.rule(...)."
    )
