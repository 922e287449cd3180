"""The reverse sweep: gradients flow back over nodes and regions, and rules are called in place.

One step is a node or a whole region. A tensor inside a region has two gradients: what flows through
reads for which the region's rule answers, kept under (tensor, region), and what flows through reads
for which its producer answers, kept under the tensor itself. Both are delivered, none twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ..ir.build import apply
from ..ir.context import Context
from ..ir.errors import GradientError, RegionError
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.region_tree import MARKED, RegionTree
from ..ir.residual import viewpoint
from ..ops.accumulate import AddN
from ..ops.arithmetic import ADD
from ..ops.base import NO_GRAD, ZERO, ZeroTensor
from ..ops.own import OwnStep
from ..ops.sequencing import After
from ..ops.sources import StopGradient
from ..regions.boundary import boundary_of, why_idle
from ..regions.index import is_marked
from .additive import check_additive, in_parts
from .builtin import fitted, given, own_gradients
from .call import Gradient, call_rule, refuse_rule_derivative
from .choices import Choice
from .levels import Hidden, Key, Off, Step, key_of, level, present_stamp
from .site import NodeSite, RegionSite, Site
from .steps import lowest_of, plan

ADD_N = AddN()


ASKED: ContextVar[Any] = ContextVar("asked", default=None)
"""A running question of forward mode: it judges every rule that is called."""


NOTHING: Any = {}
"""No rule was chosen."""


class Sweep:
    """One question: the gradients of ys with respect to xs.

    context    the ambient record of the call; its origin is written once a step
    off        regions and nodes whose mark does not count here
    stop       tensors through which nothing flows
    overrides  the rules that the call chose
    tree       the tree of regions, with the groups of nodes that it names
    grads      key -> its gradient so far: a tensor, or a list of what is to be added up
    live       keys whose gradient somebody wants
    complex    whether complex numbers are among them
    """

    __slots__ = (
        "again",
        "chooses",
        "complex",
        "context",
        "grads",
        "live",
        "off",
        "overrides",
        "regional",
        "stop",
        "tree",
    )

    def __init__(
        self,
        context: Context,
        off: Off,
        stop: frozenset[Tensor],
        overrides: Choice | Mapping[Step, Any] = NOTHING,
    ) -> None:
        self.context = context
        self.off = off
        self.stop = stop
        self.overrides = overrides
        self.tree = overrides.tree if isinstance(overrides, Choice) else MARKED
        self.chooses = bool(overrides)
        self.grads: dict[Key, Any] = {}
        self.live: set[Key] = set()
        self.regional = False
        self.again = False
        self.complex = False

    def run(
        self,
        seeds: Sequence[tuple[Key, Tensor]],
        xs: Sequence[Tensor],
        through: Sequence[Tensor] = (),
    ) -> list[Tensor | None]:
        """The gradient of each x: None where nothing flows, maybe a structural zero.

        through: complex tensors that depend on what is asked about elsewhere.
        """
        if not xs and not through:
            return []
        steps = self.reach([key for key, _ in seeds], xs, through)
        tree = self.tree
        for key, dy in seeds:
            self._add(key, dy)
        outer = self.context.origin, self.context.live, self.context.called
        if self.context.called is None:
            self.context.called = {}
        self.context.live = _Wanted(self.live, tree) if tree.regions else self.live
        try:
            for step in reversed(steps):
                if isinstance(step, Node):
                    self._pull_node(step)
                else:
                    self._pull_region(step)
            found = {x: self._total(x) for x in xs}
        finally:
            self.context.origin, self.context.live, self.context.called = outer
        return [found[x] for x in xs]

    # --- which steps matter ------------------------------------------------------------------

    def reach(
        self, keys: Sequence[Key], xs: Sequence[Tensor], through: Sequence[Tensor] = ()
    ) -> list[Step]:
        """The steps through which xs, or `through`, reach keys, in order; notes what is live."""
        sources = (*xs, *through)
        graph = sources[0].node.graph
        assert graph is not None
        tree = self.tree
        self.regional = bool(tree.regions) or is_marked(graph)
        self.again = bool(graph.again)
        lowest = lowest_of(sources, graph, tree)
        steps = plan(keys, lowest, self.stop, self.off, self.regional, tree)
        for x in xs:
            if not x.type.complex:
                self.live.update(self._keys(x))
        for t in through:
            self.live.update(self._keys(t))
            self.complex = True
        return self._live(steps)

    def _live(self, steps: list[Step]) -> list[Step]:
        """The steps through which an x reaches a y, in order; notes their outputs as live."""
        live, stop, regional = self.live, self.stop, self.regional
        moved = self.tree.moved
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Node):
                for t in step.inputs:
                    if not regional or (t.node.region is None and t.node not in moved):
                        if t in live:
                            break
                    elif self._key(t, step) in live:
                        break
                else:
                    continue
                if type(step.op) is StopGradient and self._rule(step, step.stamp) is None:
                    continue
                if type(step.op) is After and self._key(step.inputs[0], step) not in live:
                    continue  # the others say when, not what
                found.append(step)
                for t in step.outputs:
                    if t.type.differentiable and t not in stop:
                        live.add(t)
                    elif t.type.complex and t not in stop:
                        live.add(t)
                        self.complex = True
            elif self._region_is_live(step):
                found.append(step)
        return found

    def _key(self, t: Tensor, reader: Node) -> Key:
        return key_of(t, viewpoint(reader, self.tree), self.off, self.tree)

    def _keys(self, t: Tensor) -> list[Key]:
        """All keys of a tensor: it, and it as each region around shows it."""
        tree = self.tree
        return [t, *((t, region) for region in tree.chain(tree.around(t.node)))]

    def _region_is_live(self, region: Region) -> bool:
        """Whether an input is live; then all outputs are: the rule says what depends on what."""
        boundary = boundary_of(region)
        reads = (*boundary.inputs, *boundary.undeclared)
        live, off, tree = self.live, self.off, self.tree
        if not any(key_of(t, region, off, tree) in live for t in reads):
            return False
        outputs = [t for t in boundary.outputs if t.type.flows]
        if not outputs and not region.allow_empty:
            raise RegionError(
                f"region {region.name!r} ({region.where}) {why_idle(reads, boundary.outputs)}\n"
                "Put what makes floats of these into it too, or say allow_empty=True."
            )
        for t in outputs:
            if t not in self.stop:
                self.live.add((t, region))
                self.complex = self.complex or t.type.complex
        return True

    # --- accumulation ------------------------------------------------------------------------

    def _add(self, key: Key, dx: Tensor) -> None:
        grads = self.grads
        before = grads.get(key)
        if before is None:
            grads[key] = dx
        elif type(before) is list:
            before.append(dx)
        else:
            grads[key] = [before, dx]

    def _sum(self, key: Key) -> Tensor | None:
        """The gradient of a key, its contributions added up once."""
        found = self.grads.get(key)
        if type(found) is list:
            terms = [d for d in found if not isinstance(d, ZeroTensor)] or found[:1]
            found = terms[0] if len(terms) == 1 else added(terms)
            self.grads[key] = found
        return found

    def _total(self, x: Tensor) -> Tensor | None:
        """The gradient of x as the question asks for it: over all the ways it was read."""
        parts = [self._sum(key) for key in self._keys(x)]
        terms = [p for p in parts if p is not None]
        real = [p for p in terms if not isinstance(p, ZeroTensor)] or terms[:1]
        if not real:
            return None
        self.context.origin = x.node
        return real[0] if len(real) == 1 else added(real)

    # --- steps ---------------------------------------------------------------------------------

    def _pull_node(self, node: Node) -> None:
        self.context.origin = node
        if self.context.asked is not None:
            self.context.asked.add(node)
        stop, outputs = self.stop, node.outputs
        if len(outputs) == 1:
            dy = self._sum(outputs[0])
            if dy is None or outputs[0] in stop:
                return
            dys: list[Tensor | None] = [dy]
        else:
            dys = [None if t in stop else self._sum(t) for t in outputs]
            if all(d is None for d in dys):
                return
        if type(node.origin) is RuleCall:
            refuse_rule_derivative(node.origin, self.context)
        if self.complex:
            self._refuse_complex(node, node.inputs, dys)
        step: Any = node
        stamp = present_stamp(node) if self.again else node.stamp
        if stamp is not None or self.chooses:
            rule = self._rule(node, stamp)
            if rule is not None:
                self._pull_site(NodeSite(node, rule, self), dys)
                return
            if stamp is not None:
                step = OwnStep(node)
        if node.op.linear_zero and all(type(d) is ZeroTensor or d is None for d in dys):
            dxs: Sequence[Any] = [ZERO] * len(node.inputs)
        else:
            dxs = own_gradients(node.op, step, given(node.op, outputs, dys))
        inputs = node.inputs
        if len(dxs) != len(inputs):
            raise GradientError(
                f"the gradient of {node.name} = {node.op!r}, built at {node.where}, has "
                f"{len(dxs)} entries for {len(inputs)} inputs"
            )
        regional, live, tree = self.regional, self.live, self.tree
        for x, dx in zip(inputs, dxs, strict=True):
            if dx is NO_GRAD:
                continue
            if not regional or (x.node.region is None and x.node not in tree.moved):
                if x in live:
                    self._add(x, fitted(dx, x, node.op))
            else:
                view = viewpoint(node, tree)
                if key_of(x, view, self.off, tree) in live:
                    self._deliver(x, fitted(dx, x, node.op), view, node)

    def _rule(self, step: Step, mark: Any) -> Any:
        """The reference of the rule that answers for a step; None: a node's own gradient."""
        if step in self.off:
            return None
        return self.overrides.get(step, mark) if self.chooses else mark

    def _deliver(self, x: Tensor, dx: Tensor, view: Region | None, reader: Step) -> None:
        """Add to the gradient of x as it is read, by a step, from inside `view`."""
        if not self.regional:
            self._add(x, dx)
            return
        found = level(x, view, self.off, self.tree)
        if isinstance(found, Hidden):
            raise found.error("a gradient has to flow through", reader)
        self._add(x if found is None else (x, found), dx)

    def _pull_region(self, region: Region) -> None:
        dys: list[Tensor | None] = []
        for t in boundary_of(region).outputs:
            self.context.origin = t.node
            dys.append(None if t in self.stop else self._sum((t, region)))
        if any(d is not None for d in dys):
            if self.context.asked is not None:
                self.context.asked.add(region)
            if self.complex:
                self._refuse_complex(region, self._read_for(region, dys), dys)
            rule = self._rule(region, region.rule)
            self._pull_site(RegionSite(region, rule, self), dys)

    def _pull_site(self, site: Site, dys: list[Tensor | None]) -> None:
        """Call a user's rule and deliver what it returns."""
        for x, dx in self.ask(site, dys):
            if dx is not None and self.is_live(x, site.view):
                self._deliver(x, dx, site.view, site._target)

    def _read_for(self, region: Region, dys: Sequence[Tensor | None]) -> list[Tensor]:
        """What a region reads that leads to an output with a gradient, as far as that is known."""
        boundary = boundary_of(region)
        declared = boundary.input_set if region.pinned_inputs is not None else frozenset()
        used = [i for i, dy in enumerate(dys) if dy is not None]
        return [
            t
            for t in (*boundary.inputs, *boundary.undeclared)
            if t in declared or any(boundary.reach(t) >> i & 1 for i in used)
        ]

    def _refuse_complex(
        self, step: Step, inputs: Sequence[Tensor], dys: Sequence[Tensor | None]
    ) -> None:
        """GradientError where a gradient has to flow on to a complex number."""
        if all(dy is None or isinstance(dy, ZeroTensor) for dy in dys):
            return
        view = step if isinstance(step, Region) else viewpoint(step, self.tree)
        for x in inputs:
            if x.type.complex and self.is_live(x, view):
                raise GradientError(
                    f"a gradient has to flow through {step.name} ({step.where}) to {x.name}: "
                    f"{x.type!r}, built at {x.where}, and there are no gradients of complex "
                    "numbers.\nCompute with real and imaginary parts as floating tensors, or "
                    "gg.stop_gradient the complex tensor, or what is made of it, if nothing is to "
                    "flow."
                )

    def ask(self, site: Site, dys: list[Tensor | None]) -> list[Gradient]:
        """What the site's rule gives for these gradients of its outputs."""
        asked = ASKED.get()
        if asked is not None:
            judged: list[Gradient] = asked.answer(site, dys)
            return judged
        found = call_rule(site, site.reference, dys)
        called = self.context.called
        if called is not None and in_parts(site._target):
            check_additive(called, site, dys, found)
        return found

    def is_live(self, x: Tensor, view: Region | None) -> bool:
        """Whether somebody wants the gradient of x as it is read from inside `view`."""
        return key_of(x, view, self.off, self.tree) in self.live

    def inner(self, context: Context, off: Off, stop: frozenset[Tensor]) -> Sweep:
        """A sweep of the same call over the inside of a region."""
        return Sweep(context, off, stop, self.overrides)


class _Wanted:
    """The tensors that a gradient may be wanted for, where there are groups: all inside them."""

    def __init__(self, live: set[Key], tree: RegionTree) -> None:
        self.live = live
        self.tree = tree

    def __contains__(self, t: Tensor) -> bool:
        return t in self.live or self.tree.around(t.node) is not None


def added(terms: Sequence[Tensor]) -> Tensor:
    """The sum of gradients of one tensor."""
    return apply(ADD, *terms) if len(terms) == 2 else apply(ADD_N, *terms)
