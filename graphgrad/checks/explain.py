"""`explain`: which rules a question uses for each x, and why an x has no gradient.

The paths are read off the graph. What a rule returns is known only by calling it, so `gradients` is
asked once, and where an x gets nothing, the steps on its path are asked one by one. What that
builds are derived nodes, as those of any gradient: no forward node is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ..base.errors import GradientError, GraphGradError
from ..base.tree import flatten
from ..base.words import shortened, visible
from ..differentiate.choosing import choice_of
from ..differentiate.gradients import gradients
from ..differentiate.levels import Key, Step, key_of
from ..differentiate.plan import SweepPlan
from ..differentiate.question import Question
from ..differentiate.steps import leading_to, lowest_of, reads
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.notebook import show_as_text
from ..ir.region_tree import RegionTree
from ..ir.residual import vantage
from ..ops.create.creation import ones_like
from ..ops.identities.sequencing import After
from ..ops.sources import StopGradient
from ..regions.boundary import boundary_of
from ..regions.index import marked_regions
from ..regions.rules import BuiltinRule, as_rule
from .bodies import all_graphs, bodies
from .target import Checked

__all__ = ["Explanation", "PathOf", "SiteUse", "explain"]

ASKED_ALL = 200
"""On a longer path only the sites, not every op, are asked why nothing flows."""
SHOWN = 4
"""How many paths, and rules of a path, a repr names."""
LONG = 120
"""Longer names have their middle left out."""


@dataclass(frozen=True, eq=False)
class SiteUse:
    """A site on a path, with the rule that applies to it.

    site      the node or region
    rule      the rule's name
    defined   `grads.py:3`: where the rule was defined, or asked for in the library
    contract  what the rule declares itself to be, in words; "" for nothing
    inside    the marks inside, which have an effect only if the rule calls site.default

    >>> x = gg.constant(2.0, name="x")
    >>> (site,) = gg.explain(gg.override("Identity")(gg.floor)(x), x)[x].sites
    >>> site.rule
    'Identity'
    """

    site: Node | Region
    rule: str
    defined: str
    contract: str
    inside: tuple[str, ...]

    def __str__(self) -> str:
        of = "" if isinstance(self.site, Node) else f" #{self.site.index}"
        kind = "node" if isinstance(self.site, Node) else "region"
        contract = f", declared {self.contract}" if self.contract else ""
        own = self.defined == "<own gradient>"
        where = "the op type's own gradient" if own else self.defined
        name, rule = shortened(self.site.name, LONG), shortened(self.rule, LONG)
        row = f"{kind} {name!r}{of} ({self.site.where}): rule {rule!r} ({where})"
        inside = f"; has an effect only if it calls site.default: {', '.join(self.inside)}"
        return visible(row + contract + (inside if self.inside else ""))

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, eq=False)
class PathOf:
    """What lies between ys and one x.

    x       the tensor
    sites   the sites with rules on its paths, from x to ys
    found   whether it has a gradient
    reason  why not; "" where it has

    >>> x = gg.constant(2, name="x")
    >>> gg.explain(gg.sin(x), x)[x].found
    False
    """

    x: Tensor
    sites: tuple[SiteUse, ...]
    found: bool
    reason: str

    def __str__(self) -> str:
        rows = [f"{_name(self.x)}: {shortened(repr(self.x.type), LONG)} ({self.x.where})"]
        rows += [f"  through {use}" for use in self.sites]
        if not self.sites and self.found:
            rows.append("  through no site with a rule: the ops' own gradients")
        rows.append("  has a gradient" if self.found else f"  no gradient: {self.reason}")
        return "\n".join(map(visible, rows))

    def __repr__(self) -> str:
        return f"<{self._short()}>"

    def _short(self) -> str:
        """`w through 'ste', 'clip'`."""
        return visible(self._said())

    def _said(self) -> str:
        if not self.found:
            return f"{_name(self.x)} has no gradient"
        rules = ", ".join(repr(shortened(use.rule, LONG)) for use in self.sites[:SHOWN])
        more = ", ..." if len(self.sites) > SHOWN else ""
        name = _name(self.x)
        return f"{name} through {rules}{more}" if rules else f"{name} by no rule"


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer of explain(): a PathOf for each x, in order. Printed, it says all of it.

    >>> x = gg.constant(2.0, name="x")
    >>> gg.explain(gg.override("Identity")(gg.floor)(x), x)
    <explanation: x:0 through 'Identity'>
    """

    paths: tuple[PathOf, ...] = field(default_factory=tuple)

    def __getitem__(self, x: Tensor | int) -> PathOf:
        if isinstance(x, int):
            return self.paths[x]
        for path in self.paths:
            if path.x is x:
                return path
        raise KeyError(f"{x.name} is not one of the xs of this explanation")

    def __str__(self) -> str:
        return "\n".join(map(str, self.paths))

    def __repr__(self) -> str:
        paths = "; ".join(path._short() for path in self.paths[:SHOWN])
        more = f"; and {len(self.paths) - SHOWN} more" if len(self.paths) > SHOWN else ""
        return f"<explanation: {paths or 'of nothing'}{more}>"


def explain(ys: Any, xs: Any, stop_gradients: Any = None, overrides: Any = None) -> Explanation:
    """Explain, for each x, the sites and rules on its paths to ys, and why a result is None.

    Parameters:
        ys, xs, stop_gradients, overrides: as for gradients(). Integer tensors are not an error
            here, but a reason.

    Returns: an Explanation.

    Raises: the errors of gradients().

    >>> x = gg.constant(2.0, name="x")
    >>> gg.explain(gg.stop_gradient(x), x)[x].found
    False
    """
    y_list, x_list = _tensors(ys, "ys"), _tensors(xs, "xs")
    stops = _tensors(stop_gradients, "stop_gradients")
    graph = y_list[0].graph if y_list else None
    if graph is None:
        return Explanation()
    explained = _Explained(graph, y_list, x_list, stops, overrides)
    return Explanation(tuple(map(explained.path_of, x_list)))


def _name(t: Tensor) -> str:
    return shortened(t.name, LONG)


def _tensors(tree: Any, what: str) -> list[Tensor]:
    leaves = flatten(tree) if tree is not None else []
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise GradientError(f"{what} of explain() are tensors, got {leaf!r}")
    return leaves


class _Way(SweepPlan):
    """The sweep's plan for one x, where regions are passed as far as their inside connects.

    steps  those that x reaches, among those in `order` that ys depend on
    """

    __slots__ = ("order",)

    def __init__(self, x: Tensor, every: Question, order: list[Step]) -> None:
        self.order = order
        super().__init__(every._replace(xs=(x,)), ())

    def _order(self, keys: Sequence[Key], lowest: float) -> list[Step]:
        return self.order

    def led_to(self, region: Region) -> list[Tensor]:
        """The outputs that live inputs reach inside."""
        boundary = boundary_of(region)
        declared = boundary.input_set if region.pinned_inputs is not None else frozenset()
        bits = 0
        for t in (*boundary.inputs, *boundary.undeclared):
            if self.is_live(t, region):
                bits |= -1 if t in declared else boundary.reach(t)
        return [
            t for i, t in enumerate(boundary.outputs) if bits >> i & 1 and t.type.differentiable
        ]


class _Explained:
    """One call of explain: the question, the steps between, and what gradients() answers."""

    def __init__(
        self, graph: Graph, ys: list[Tensor], xs: list[Tensor], stops: list[Tensor], overrides: Any
    ) -> None:
        self.inner: dict[Graph, dict[Region | None, list[Region]]] = {}
        self.ys = [y for y in ys if y.type.differentiable]
        context = current()
        choice = choice_of(overrides, graph, context)
        self.question = question = Question.under(choice, self.ys, xs, stops=stops)
        self.off, self.tree = question.off, question.tree
        self.keys = [key_of(y, vantage(y, context), self.off, self.tree) for y in self.ys]
        lowest = lowest_of(xs, graph, self.tree) if xs else 0
        regional = bool(graph.regions)
        self.order = leading_to(self.keys, lowest, frozenset(), self.off, regional, self.tree)
        self.used = {key for step in self.order for key in self._reads(step)} | set(self.keys)
        floating = [x for x in xs if x.type.differentiable]
        seeds = [ones_like(y) if y.type.complex else None for y in self.ys]
        dxs = gradients(self.ys, floating, seeds, stops or None, overrides=overrides)
        self.answers = dict(zip(floating, dxs, strict=True))

    def path_of(self, x: Tensor) -> PathOf:
        """The sites between x and ys, and the reason where x has no gradient."""
        way = _Way(x, self.question, self.order)
        steps = self._leading_on(way)
        sites = tuple(use for step in steps for use in self._use(step))
        found = self.answers.get(x) is not None
        return PathOf(x, sites, found, "" if found else self._why(x, way, steps))

    # --- along the steps ---------------------------------------------------------------------

    def _reads(self, step: Step) -> list[Key]:
        return reads(step, self.off, self.tree)

    def _blocks(self, way: SweepPlan) -> list[str]:
        """What ended the flow from x, in words."""
        blocks: list[str] = []
        for step in self.order:
            if not any(key in way.live for key in self._reads(step)):
                continue
            outputs = self._flowing(step, way)
            if not outputs:
                blocks.append(self._block(step))
            elif isinstance(step, Region) and not any((t, step) in self.used for t in outputs):
                blocks.append(
                    f"disconnected inside region {step.name} ({step.where}): it leads to none of "
                    "the outputs in use"
                )
            stopped = [t for t in outputs if t in way.stop]
            blocks += [f"stop_gradients holds {t.name} ({t.where})" for t in stopped]
        return blocks

    def _flowing(self, step: Step, way: SweepPlan) -> list[Tensor]:
        """The outputs of a step that what it reads flows to."""
        if isinstance(step, Region):
            return way.led_to(step)
        return [] if way.is_cut(step) else [t for t in step.outputs if t.type.differentiable]

    def _block(self, step: Step) -> str:
        at = f"{step.name} ({step.where})"
        if isinstance(step, Region):
            return f"inside region {at} it leads to no floating output"
        if type(step.op) is StopGradient:
            return f"stop_gradient {at}"
        if type(step.op) is After:
            return f"{at} only waits for it: its value does not depend on it"
        types = ", ".join(t.dtype.name for t in step.outputs)
        return f"integer path: {at} makes {types}, through which nothing flows"

    def _leading_on(self, way: SweepPlan) -> list[Step]:
        """The steps of the way that lead to a y, in order."""
        wanted = {key for key in self.keys if key in way.live}
        steps: list[Step] = []
        for step in reversed(way.steps):
            if any(key in wanted for key in _shown(step)):
                steps.append(step)
                wanted |= {key for key in self._reads(step) if key in way.live}
        return steps[::-1]

    # --- words ---------------------------------------------------------------------------------

    def _rule(self, step: Step) -> Any:
        return self.question.rule_of(step, step.rule if isinstance(step, Region) else step.stamp)

    def _use(self, step: Step) -> list[SiteUse]:
        reference = self._rule(step)
        if reference is None:
            return [] if isinstance(step, Region) else self._in_bodies(step)
        inside = self._marks_inside(step) if isinstance(step, Region) else ()
        try:
            rule = as_rule(reference)
        except GraphGradError:
            return [SiteUse(step, str(reference), "not registered", "", inside)]
        contract = f"{rule.contract.kind!r} ({rule.contract.meaning})" if rule.contract else ""
        where = "<own gradient>" if isinstance(rule, BuiltinRule) else rule.where
        return [SiteUse(step, rule.name, where, contract, inside)]

    def _marks_inside(self, region: Region) -> tuple[str, ...]:
        """The inner regions and stamped nodes of a region."""
        inner = self.inner.get(region.graph)
        if inner is None:
            inner = self.inner[region.graph] = _inner(region.graph, self.tree)
        regions: list[Region] = []
        stack = list(self.tree.chain(region)[-1:])
        while stack:
            inside = inner.get(stack.pop(), [])
            stack += inside
            regions += [r for r in inside if r.group is None and r.origin is None]
        regions.sort(key=attrgetter("index"))
        members = boundary_of(region).members
        stamped = [n for n in members if n.stamp is not None and n.origin is None]
        return tuple(
            [f"region {r.name!r} ({r.where})" for r in regions]
            + [f"node {n.name!r} ({n.where})" for n in stamped]
        )

    def _in_bodies(self, node: Node) -> list[SiteUse]:
        """The sites in the bodies of a node of control flow."""
        uses: list[SiteUse] = []
        for graph in [g for body in bodies(node) for g in all_graphs(body)]:
            named = [r for r in self.tree.regions if r.graph is graph]
            sites: list[Step] = [*marked_regions(graph), *named]
            sites += [n for n in graph.nodes if n.stamp is not None]
            for site in sites:
                if site.origin is None and self.tree.around(site) is None:
                    uses += self._use(site)
        return uses

    def _why(self, x: Tensor, way: SweepPlan, steps: list[Step]) -> str:
        """Why gradients() gives None for x."""
        if not x.type.differentiable:
            return f"it is {x.dtype.name}: only floating tensors have gradients; cast it first"
        if not self.ys:
            return "no y is floating"
        if not steps and not any(key in way.live for key in self.keys):
            blocks = "; ".join(dict.fromkeys(self._blocks(way)))
            return blocks or "it is not connected: no y depends on it"
        ends = self._ends(way.live, steps)
        return "; ".join(ends) or "every rule on the way gave a gradient, but none arrived"

    def _ends(self, live: set[Key], steps: list[Step]) -> list[str]:
        """The steps that return nothing for what lies on the path, asked one by one."""
        flow: set[Key] = set(self.keys)
        ends: list[str] = []
        for step in reversed(steps):
            used = [k if isinstance(k, Tensor) else k[0] for k in _shown(step) if k in flow]
            if not used:
                continue
            inputs, keys = _inputs(step), self._reads(step)
            pairs = [(t, k) for t, k in zip(inputs, keys, strict=False) if k in live]
            dxs = self._asked(step, used, [t for t, _ in pairs], len(steps))
            for (t, key), dx in zip(pairs, dxs, strict=True):
                if dx is not None:
                    flow.add(key)
                else:
                    ends.append(self._end(step, t, used))
        return list(dict.fromkeys(ends))

    def _asked(
        self, step: Step, ys: Sequence[Tensor], xs: Sequence[Tensor], many: int
    ) -> Sequence[Any]:
        rule = self._rule(step)
        if rule is None and many > ASKED_ALL:
            return [True] * len(xs)
        choice = self.question.choice
        target = Checked(step, None if choice is None else choice.get(step))
        return target.ask([y for y in ys if y.type.differentiable], xs, [None] * len(ys))

    def _end(self, step: Step, t: Tensor, used: Sequence[Tensor]) -> str:
        at = f"{step.name!r} ({step.where})"
        what = f"{t.name} ({t.where})"
        if isinstance(step, Region) and step.pinned_inputs is None:
            boundary = boundary_of(step)
            bits = boundary.reach(t)
            taken = set(used)
            if not any(bits >> i & 1 for i, y in enumerate(boundary.outputs) if y in taken):
                return f"{what} is disconnected inside region {at}: it reaches no output in use"
        uses = self._use(step)
        if uses:
            return f"rule {uses[0].rule!r} ({uses[0].defined}) of {at} returned nothing for {what}"
        return f"the own gradient of {at} gives nothing for {what}"


def _shown(step: Step) -> Sequence[Key]:
    """The keys of what a step makes."""
    return (
        step.outputs if isinstance(step, Node) else [(t, step) for t in boundary_of(step).outputs]
    )


def _inputs(step: Step) -> Sequence[Tensor]:
    if isinstance(step, Node):
        return step.inputs
    boundary = boundary_of(step)
    return (*boundary.inputs, *boundary.undeclared)


def _inner(graph: Graph, tree: RegionTree) -> dict[Region | None, list[Region]]:
    """Region -> those directly inside; marked ones, and groups that the call names."""
    inner: dict[Region | None, list[Region]] = {}
    named = [r for r in tree.regions if r.graph is graph]
    for region in (*marked_regions(graph), *named):
        inner.setdefault(tree.around(region), []).append(region)
    return inner


show_as_text(Explanation)
