"""Calling a user's rule: what it gets, and what counts while it runs."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import Any

from ..base.depth import check_room
from ..base.errors import GradientError, GraphGradError, counted
from ..base.position import RULE_CALLERS
from ..ir.build import apply
from ..ir.context import CONTEXT
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.op import OP_TYPES, Op
from ..ops.base import DEFAULT, NO_GRAD, ZeroTensor, is_zero
from ..ops.random.keys import Draws
from ..ops.sources import Identity, RuleInput, RuleOutput
from ..regions.rules import BuiltinRule, as_rule, is_own
from .additive import at_home
from .builtin import builtin, filled
from .returned import RuleCallCheck, rows
from .site import Gradient, NodeSite, RegionSite, Site


def call_rule(site: Site, reference: Any, dys: Sequence[Tensor | None]) -> list[Gradient]:
    """Call the rule of a site once: (input, gradient) in order of inputs, then what a mapping adds.

    A gradient is None where nothing flows. While the rule runs, the site counts as unmarked and
    what is built has this call as its origin.
    """
    check_room()
    rule = as_rule(reference, lambda: f"named by {site!r}")
    with Calling(rule, site, dys) as call:
        passed = call.given(filled(site.outputs, dys))
        final = call.final()
        if final:
            passed = [_through(RuleInput(final), dy) for dy in passed]
        gradients = call.gradients(call.answer(passed), passed)
        site.told = told(passed)
        if final:
            return [(x, _through(RuleOutput(final), dx)) for x, dx in gradients]
        return [(x, _passed_on(dx, passed)) for x, dx in gradients]


def told(given: Sequence[Any]) -> frozenset[int]:
    """The places of what a rule asked about and was told to be zero."""
    return frozenset([i for i, d in enumerate(given) if isinstance(d, ZeroTensor) and d.asked])


def _through(op: Op, t: Tensor | None) -> Tensor | None:
    return t if t is None or is_zero(t) else apply(op, t)


def _passed_on(dx: Tensor | None, dys: Sequence[Tensor | None]) -> Tensor | None:
    """dx; by way of a node of this call where it is a dy as it came, so that the graph shows it."""
    for dy in dys:
        if dx is dy:
            return _through(Identity(), dx)
    return dx


class Calling(RuleCallCheck):
    """One call of a rule. While it runs, the site counts as unmarked and nodes come from this call.

    What the rule asks in turn is a question of its own: nothing is known to be wanted, and forward
    mode judges what it calls by what it gives alone. That of a checkpoint goes on with the running
    one: what it builds once more gets a part of what flows to the inside.
    """

    __slots__ = ("_around", "_context", "_origin")

    def __enter__(self) -> Calling:
        rule, site, context = self.rule, self.site, CONTEXT.get()
        target, around = site._target, context.answering
        site.place = context.graph, context.region
        self.start = len(context.graph.nodes)
        self._context, self._origin, self._around = context, context.origin, around
        origin = RuleCall(target, rule.name, outer_reads(target, site.outputs))
        judge = around.judge if isinstance(rule, BuiltinRule) else None
        draws = Draws(around.draws, self._drawn)
        context.origin = origin
        context.answering = around.calling(target, is_own(rule.name), draws, judge)
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.origin, self._context.answering = self._origin, self._around

    def given(self, dys: list[Tensor | None]) -> list[Tensor | None]:
        """The cotangents, or tangents, as the rule gets them: arguments, as its inputs are.

        What it differentiates ends at them. One that is an input or an output too, as of x * y, is
        a tensor of its own.
        """
        if is_own(self.rule.name):
            return dys
        known = {*self.site.inputs, *self.site.outputs}
        dys = [_through(Identity(), dy) if dy in known else dy for dy in dys]
        ends = [dy for dy in dys if dy is not None and not isinstance(dy, ZeroTensor)]
        context = CONTEXT.get()
        context.answering = context.answering.ending_at(ends)
        return dys

    def _drawn(self, made: list[int]) -> Sequence[int]:
        """The numbers that another part of this call has drawn; made: those of this one."""
        drawn = self._around.drawn
        first = made if drawn is None else drawn.setdefault(at_home(self.site._target), made)
        return () if first is made else first

    def final(self) -> str:
        """What is wrong with differentiating what the rule builds; "" where nothing is."""
        site = self.site
        if not isinstance(site, RegionSite) or site.region.order != "error":
            return ""
        return (
            f"differentiating through the gradient rule {self.rule.name!r} of {site!r}, which has "
            "order='error': its gradient may not be differentiated again"
        )

    def answer(self, dys: list[Tensor | None]) -> list[tuple[Tensor, Any]]:
        """What the running rule returns: one entry per input, then those a mapping adds."""
        return self.entries(self._call(dys))

    def tangents(self, dxs: Sequence[Tensor | None]) -> list[Any]:
        """What the rule's own jvp returns: one entry per output."""
        rule, site = self.rule, self.site
        assert rule.jvp is not None
        try:
            tangents = rule.jvp(site, *self.given(list(dxs)))
        except TypeError as error:
            if _takes(rule.jvp, site, *dxs):
                raise
            raise GradientError(
                f"the jvp of {self.who()} gets the site and {counted(len(dxs), 'tangent')}, one "
                f"per input, but it is {rule.name}{inspect.signature(rule.jvp)}. The inputs "
                f"are{rows(site.inputs)}"
            ) from error
        entries = list(tangents) if isinstance(tangents, list | tuple) else [tangents]
        if tangents is None or len(entries) != len(site.outputs):
            got = counted(len(entries), "tangent")
            if tangents is None:
                got = "None; is a `return` missing?"
            raise GradientError(
                f"the jvp of {self.who()} gives one tangent for each output, got {got}. "
                f"The outputs are{rows(site.outputs)}"
            )
        if any(entry is DEFAULT for entry in entries):
            raise GradientError(f"the jvp of {self.who()}: DEFAULT is for gradients only")
        return entries

    def _call(self, dys: list[Tensor | None]) -> Any:
        rule, site = self.rule, self.site
        if isinstance(rule, BuiltinRule):
            return [NO_GRAD if dx is None else dx for dx in self._own_of_op(rule, dys)]
        try:
            return rule.fn(site, *dys)
        except Exception as error:
            if isinstance(error, TypeError) and not _takes(rule.fn, site, *dys):
                raise self._arity() from error
            error.add_note(f"in {self.who()}")
            raise

    def _arity(self) -> GradientError:
        rule, outputs = self.rule, self.site.outputs
        return GradientError(
            f"{self.who()} gets the site and {counted(len(outputs), 'gradient')}, one per "
            f"output, but it is {rule.name}{inspect.signature(rule.fn)}. The outputs "
            f"are{rows(outputs)}"
        )

    def _own_of_op(self, rule: BuiltinRule, dys: Sequence[Any]) -> list[Tensor | None]:
        """What the own gradient of an op type gives, for a node of it or for another site."""
        site, op = self.site, self._op_of(rule)
        try:
            return builtin(op, site, dys)
        except (TypeError, ValueError) as error:
            if isinstance(error, GraphGradError) or (isinstance(site, NodeSite) and site.op is op):
                raise
            raise GradientError(
                f"the gradient of op type {rule.op_type!r} does not fit {site!r}, which has "
                f"{counted(len(site.inputs), 'input')} and {counted(len(site.outputs), 'output')}: "
                f"{error}. The inputs are{rows(site.inputs)}\n"
                f"The outputs are{rows(site.outputs)}"
            ) from error

    def _op_of(self, rule: BuiltinRule) -> Op:
        """The op whose own rule is used for the site."""
        site, cls = self.site, OP_TYPES[rule.op_type]
        if isinstance(site, NodeSite) and type(site.op) is cls:
            return site.op
        try:
            return cls(**{n: site.attrs[n] for n in cls.fields if n in site.attrs})
        except TypeError as error:
            raise GradientError(
                f"the gradient of op type {rule.op_type!r} needs the attributes "
                f"{list(cls.fields)}, which {site!r} does not have"
            ) from error


RULE_CALLERS.add(Calling._call.__code__)


def _takes(fn: Any, *args: Any) -> bool:
    try:
        inspect.signature(fn).bind(*args)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def outer_reads(target: Node | Region, outputs: Sequence[Tensor]) -> frozenset[Tensor]:
    """The outputs that a rule of a site reads as outer ones; its other reads are residuals."""
    if isinstance(target, Node) or target.order == "through" or target.on_tensors:
        return frozenset()
    return frozenset(outputs)


def refuse_rule_derivative(origin: RuleCall, running: Collection[Node | Region]) -> None:
    """GradientError where a rule that says order="error", and is not running, is differentiated."""
    region = origin.site
    if isinstance(region, Region) and region.order == "error" and region not in running:
        raise GradientError(
            f"differentiating through the gradient rule {origin.rule!r} of region {region.name!r} "
            f"({region.where}), which has order='error': its gradient may not be differentiated "
            "again"
        )
