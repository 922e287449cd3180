"""The reverse sweep: gradients flow back over nodes and regions, and rules are called in place.

One step is a node or a whole region. A tensor inside a region has two gradients: what flows through
reads for which the region's rule answers, kept under (tensor, region), and what flows through reads
for which its producer answers, kept under the tensor itself. Both are delivered, none twice.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ..ir.build import apply
from ..ir.context import CONTEXT
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.region_tree import RegionTree, sites_at
from ..ir.residual import viewpoint
from ..ops.base import NO_GRAD, ZERO, Constant, ZeroTensor
from ..ops.elementwise.accumulate import AddN
from ..ops.elementwise.arithmetic import ADD
from ..ops.identities.own import OwnStep
from ..regions.boundary import settled_boundary
from .additive import check_additive
from .builtin import fitted, given, own_gradients
from .call import call_rule, refuse_rule_derivative
from .levels import Hidden, Key, Off, Step, key_of, level
from .plan import SweepPlan
from .question import Question
from .site import Gradient, NodeSite, RegionSite, Site

ADD_N = AddN()


class Sweep:
    """Answers a question: executes its plan backward, and calls the rules on the way.

    context  the ambient record; its origin is written once a step
    grads    key -> its gradient so far: a tensor, or a list of what is to be added up
    chooses  whether rules were chosen for the call
    unsaid   spare constants for which a rule that reads them does not answer
    """

    __slots__ = ("chooses", "context", "grads", "plan", "question", "unsaid")

    def __init__(self, question: Question, keys: Sequence[Key] = ()) -> None:
        self.question = question
        self.plan = SweepPlan(question, keys)
        self.context = CONTEXT.get()
        self.grads: dict[Key, Any] = {}
        self.chooses = bool(question.choice)
        self.unsaid: set[Tensor] = set()

    def run(self, seeds: Sequence[tuple[Key, Tensor]]) -> list[Tensor | None]:
        """The gradient of each x: None where nothing flows, maybe a structural zero."""
        context, question, plan = self.context, self.question, self.plan
        for key, dy in seeds:
            self._add(key, dy)
        outer = context.origin, context.question, context.answering
        within = context.answering.within(_wanted(plan.live, question.tree))
        context.question, context.answering = question, within  # no call from here to `try`
        try:
            for step in reversed(plan.steps):
                if isinstance(step, Node):
                    self._pull_node(step)
                else:
                    self._pull_region(step)
            totals = {x: self._total(x) for x in question.xs}
        finally:
            context.origin, context.question, context.answering = outer
        return [totals[x] for x in question.xs]

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
        gradient = self.grads.get(key)
        if type(gradient) is list:
            terms = [d for d in gradient if not isinstance(d, ZeroTensor)] or gradient[:1]
            gradient = terms[0] if len(terms) == 1 else added(terms)
            self.grads[key] = gradient
        return gradient

    def _total(self, x: Tensor) -> Tensor | None:
        """The gradient of x as the question asks for it: over all the ways it was read."""
        parts = [self._sum(key) for key in self.plan.keys(x)]
        terms = [p for p in parts if p is not None]
        real = [p for p in terms if not isinstance(p, ZeroTensor)] or terms[:1]
        if not real:
            return None
        self.context.origin = x.node
        return real[0] if len(real) == 1 else added(real)

    # --- steps ---------------------------------------------------------------------------------

    def _pull_node(self, node: Node) -> None:
        context, plan = self.context, self.plan
        context.origin = node
        asked = context.answering.asked
        if asked is not None:
            asked.add(node)
        outputs = node.outputs
        if len(outputs) == 1:
            dy = self._sum(outputs[0])
            if dy is None or outputs[0] in plan.stop:
                return
            dys: list[Tensor | None] = [dy]
        else:
            dys = [None if t in plan.stop else self._sum(t) for t in outputs]
            if all(d is None for d in dys):
                return
        if type(node.origin) is RuleCall:
            refuse_rule_derivative(node.origin, context.answering.running)
        stamp = node.stamp
        if stamp is not None or self.chooses:
            rule = self.question.rule_of(node, stamp)
            if rule is not None:
                self._pull_site(NodeSite(node, rule, self), dys)
                return
        self._spread(node, _own_gradients(node, dys, stamp))

    def _spread(self, node: Node, dxs: Sequence[Any]) -> None:
        """Deliver the own gradients of a node."""
        plan, tree, inputs = self.plan, self.question.tree, node.inputs
        regional, live, sites = plan.regional, plan.live, plan.sites
        for x, dx in zip(inputs, dxs, strict=True):
            if dx is NO_GRAD:
                continue
            if not regional or (
                x.node.region is None and x.node not in tree.moved and x not in sites
            ):
                if x in live:
                    self._add(x, fitted(dx, x, node.op))
            else:
                key = self._wanted(x, viewpoint(node, tree), node)
                if key is not None:
                    self._add(key, fitted(dx, x, node.op))

    def _wanted(self, x: Tensor, view: Region | None, reader: Step) -> Key | None:
        """The key of x as a step reads it from inside `view`; None: nobody wants its gradient."""
        question = self.question
        owner = level(x, view, question.off, question.tree)
        key = (x, owner) if isinstance(owner, Region) else x
        if key not in self.plan.live:
            return None
        if isinstance(owner, Hidden):
            raise owner.error("a gradient has to flow through", reader)
        return key

    def _pull_region(self, region: Region) -> None:
        boundary = settled_boundary(region)
        dys: list[Tensor | None] = []
        for t in boundary.outputs:
            self.context.origin = t.node
            stopped = t in self.plan.stop and not region.on_tensors
            dys.append(None if stopped else self._sum((t, region)))
        if [d for d in dys if d is not None]:
            asked = self.context.answering.asked
            if asked is not None:
                asked.add(region)
            rule = self.question.rule_of(region, region.rule)
            self._pull_site(RegionSite(region, rule, self, boundary), dys)

    def _pull_site(self, site: Site, dys: list[Tensor | None]) -> None:
        """Call a user's rule and deliver what it returns."""
        for x, dx in self.ask(site, dys):
            if dx is not None:
                key = self._wanted(x, site.view, site._target)
                if key is not None:
                    self._add(key, dx)

    # --- what sites ask ------------------------------------------------------------------------

    def ask(self, site: Site, dys: list[Tensor | None]) -> list[Gradient]:
        """What the site's rule gives for these gradients of its outputs."""
        answering = CONTEXT.get().answering
        if answering.judge is not None:
            judged: list[Gradient] = answering.judge.answer(site, dys)
            return judged
        gradients = call_rule(site, site.reference, dys)
        if answering.called is not None:
            check_additive(answering.called, site, dys, gradients)
        return gradients

    def inside(self, site: RegionSite, dys: Sequence[Tensor | None], off: Off) -> list[Any]:
        """The gradients of a region's inputs by its inside, where these marks do not count."""
        xs = site.inputs
        if not xs:
            return []
        pairs = [(y, dy) for y, dy in zip(site.outputs, dys, strict=True) if dy is not None]
        around = CONTEXT.get().question
        choice, tree = around.choice, around.tree
        off |= {s for x in xs for s in sites_at(x)}
        question = Question((), xs, (), xs, choice, tree, off, self._spare(site))
        keys = [key_of(y, site.region, off, tree) for y, _ in pairs]
        sweep = Sweep(question, keys)
        dxs = sweep.run([(key, dy) for key, (_, dy) in zip(keys, pairs, strict=True)])
        return [NO_GRAD if x in sweep.unsaid else dx for x, dx in zip(xs, dxs, strict=True)]

    def _spare(self, site: RegionSite) -> frozenset[Tensor]:
        """The constants that a region reads whose gradient this sweep does not want."""
        if not self.plan.live:  # a trace, for whatever question
            return frozenset()
        wanted = (x for x in site.inputs if site.reads_live(x) and x not in self.question.spare)
        constants = (x for x in site.inputs if isinstance(x.node.op, Constant))
        return frozenset(constants).difference(wanted)


def _own_gradients(node: Node, dys: Sequence[Tensor | None], stamp: Any) -> Sequence[Any]:
    """What a node's own gradient gives for its inputs; a stamped one is read without its stamp."""
    op, first = node.op, dys[0]
    maybe_zero = op.derivative.linear_zero and (first is None or type(first) is ZeroTensor)
    if maybe_zero and all(d is None or type(d) is ZeroTensor for d in dys):
        return [ZERO] * len(node.inputs)
    if len(dys) > 1:
        dys = given(op, node.outputs, dys)
    return own_gradients(op, node if stamp is None else OwnStep(node), dys)


def _wanted(live: set[Key], tree: RegionTree) -> Container[Any]:
    return _Wanted(live, tree) if tree.regions else live


class _Wanted:
    """The tensors that a gradient may be wanted for, where there are groups: all inside them."""

    def __init__(self, live: set[Key], tree: RegionTree) -> None:
        self.live = live
        self.tree = tree

    def __contains__(self, t: Any) -> bool:
        return t in self.live or self.tree.around(t.node) is not None


def added(terms: Sequence[Tensor]) -> Tensor:
    """The sum of gradients of one tensor."""
    return apply(ADD, *terms) if len(terms) == 2 else apply(ADD_N, *terms)
