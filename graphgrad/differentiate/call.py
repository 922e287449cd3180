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
from ..regions.rules import BuiltinRule, Rule, as_rule, is_own
from .additive import at_home
from .builtin import builtin, filled
from .returned import entries_of, finished, rows, who
from .site import Gradient, NodeSite, RegionSite, Site


def call_rule(site: Site, reference: Any, dys: Sequence[Tensor | None]) -> list[Gradient]:
    """Call the rule of a site once: (input, gradient) in order of inputs, then what a mapping adds.

    A gradient is None where nothing flows. While the rule runs, the site counts as unmarked and
    what is built has this call as its origin.
    """
    check_room()
    rule = as_rule(reference, lambda: f"named by {site!r}")
    start = len(CONTEXT.get().graph.nodes)
    given = filled(site.outputs, dys)
    with running(rule, site):
        if not _once(site):
            gradients = finished(rule, site, answer(rule, site, given), dys, given, start)
            site.told = told(given)
            return [(x, _passed_on(dx, given)) for x, dx in gradients]
        message = _not_again(rule, site)
        zeros = tuple(given)
        given = [_through(RuleInput(message), dy) for dy in given]
        gradients = finished(rule, site, answer(rule, site, given), dys, given, start)
        site.told = told(zeros)
        return [(x, _through(RuleOutput(message), dx)) for x, dx in gradients]


def told(given: Sequence[Any]) -> frozenset[int]:
    """The places of what a rule asked about and was told to be zero."""
    return frozenset([i for i, d in enumerate(given) if isinstance(d, ZeroTensor) and d.asked])


def _once(site: Site) -> bool:
    """Whether what the site's rule builds is not to be differentiated."""
    return isinstance(site, RegionSite) and site.region.order == "error"


def _not_again(rule: Rule, site: Site) -> str:
    return (
        f"differentiating through the gradient rule {rule.name!r} of {site!r}, which says "
        "order='error': its gradient is not to be differentiated again"
    )


def _through(op: Op, t: Tensor | None) -> Tensor | None:
    return t if t is None or is_zero(t) else apply(op, t)


def _passed_on(dx: Tensor | None, dys: Sequence[Tensor | None]) -> Tensor | None:
    """dx; by way of a node of this call where it is a dy as it came, so that the graph shows it."""
    for dy in dys:
        if dx is dy:
            return _through(Identity(), dx)
    return dx


class running:
    """The site counts as unmarked, and what is built comes from this call of its rule.

    What the rule asks in turn is a question of its own: nothing is known to be wanted, and forward
    mode judges what it calls by what it gives alone. That of a checkpoint goes on with the running
    one: what it builds once more gets a part of what flows to the inside.
    """

    __slots__ = ("_call", "_context", "_judge", "_known", "_origin", "_own")

    def __init__(self, rule: Rule, site: Site) -> None:
        self._context = context = CONTEXT.get()
        site.place = context.graph, context.region
        self._known = context.answering
        self._call = RuleCall(site._target, rule.name, outer_reads(site._target, site.outputs))
        self._own = is_own(rule.name)
        self._judge = self._known.judge if isinstance(rule, BuiltinRule) else None

    def __enter__(self) -> None:
        context, known = self._context, self._known
        self._origin = context.origin
        context.origin = self._call
        draws = Draws(known.draws, self._drawn)
        context.answering = known.calling(self._call.site, self._own, draws, self._judge)

    def __exit__(self, *exc: object) -> None:
        self._context.origin, self._context.answering = self._origin, self._known

    def _drawn(self, made: list[int]) -> Sequence[int]:
        """The numbers that another part of this call has drawn; made: those of this one."""
        drawn = self._known.drawn
        first = made if drawn is None else drawn.setdefault(at_home(self._call.site), made)
        return () if first is made else first


def answer(rule: Rule, site: Site, dys: list[Tensor | None]) -> list[tuple[Tensor, Any]]:
    """What the running rule returns: one entry per input, then those a mapping adds."""
    return entries_of(rule, site, _call(rule, site, dys))


def own_jvp(rule: Rule, site: Site, dxs: Sequence[Tensor | None]) -> list[Any]:
    """What the running rule's own jvp returns: one entry per output."""
    assert rule.jvp is not None
    try:
        tangents = rule.jvp(site, *dxs)
    except TypeError as error:
        if _takes(rule.jvp, site, dxs):
            raise
        raise GradientError(
            f"the jvp of {who(rule, site)} gets the site and {counted(len(dxs), 'tangent')}, one "
            f"per input, but it is {rule.name}{inspect.signature(rule.jvp)}. The inputs "
            f"are{rows(site.inputs)}"
        ) from error
    entries = list(tangents) if isinstance(tangents, list | tuple) else [tangents]
    if tangents is None or len(entries) != len(site.outputs):
        got = (
            "None; is a `return` missing?" if tangents is None else counted(len(entries), "tangent")
        )
        raise GradientError(
            f"the jvp of {who(rule, site)} gives one tangent for each output, got {got}. "
            f"The outputs are{rows(site.outputs)}"
        )
    if any(entry is DEFAULT for entry in entries):
        raise GradientError(f"the jvp of {who(rule, site)}: DEFAULT is for gradients only")
    return entries


def outer_reads(target: Node | Region, outputs: Sequence[Tensor]) -> frozenset[Tensor]:
    """The outputs that a rule of a site reads as outer ones; its other reads are residuals."""
    if isinstance(target, Node) or target.order == "through":
        return frozenset()
    return frozenset(outputs)


def _call(rule: Rule, site: Site, dys: list[Tensor | None]) -> Any:
    if isinstance(rule, BuiltinRule):
        return [NO_GRAD if dx is None else dx for dx in _own_of_op(rule, site, dys)]
    try:
        return rule.fn(site, *dys)
    except Exception as error:
        if isinstance(error, TypeError) and not _takes(rule.fn, site, dys):
            raise _arity(rule, site) from error
        error.add_note(f"in {who(rule, site)}")
        raise


RULE_CALLERS.add(_call.__code__)


def _takes(fn: Any, site: Site, dys: Sequence[Any]) -> bool:
    try:
        inspect.signature(fn).bind(site, *dys)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _arity(rule: Rule, site: Site) -> GradientError:
    return GradientError(
        f"{who(rule, site)} gets the site and {counted(len(site.outputs), 'gradient')}, one per "
        f"output, but it is {rule.name}{inspect.signature(rule.fn)}. The outputs "
        f"are{rows(site.outputs)}"
    )


def _own_of_op(rule: BuiltinRule, site: Site, dys: Sequence[Any]) -> list[Tensor | None]:
    """What the own gradient of an op type gives, for a node of it or for another site."""
    op = _op_of(rule, site)
    try:
        return builtin(op, site, dys)
    except (TypeError, ValueError) as error:
        if isinstance(error, GraphGradError) or (isinstance(site, NodeSite) and site.op is op):
            raise
        raise GradientError(
            f"the gradient of op type {rule.op_type!r} does not fit {site!r}, which has "
            f"{counted(len(site.inputs), 'input')} and {counted(len(site.outputs), 'output')}: "
            f"{error}. The inputs are{rows(site.inputs)}\nThe outputs are{rows(site.outputs)}"
        ) from error


def _op_of(rule: BuiltinRule, site: Site) -> Op:
    """The op whose own rule is used for the site."""
    cls = OP_TYPES[rule.op_type]
    if isinstance(site, NodeSite) and type(site.op) is cls:
        return site.op
    try:
        return cls(**{n: site.attrs[n] for n in cls.fields if n in site.attrs})
    except TypeError as error:
        raise GradientError(
            f"the gradient of op type {rule.op_type!r} needs the attributes {list(cls.fields)}, "
            f"which {site!r} does not have"
        ) from error


def refuse_rule_derivative(origin: RuleCall, running: Collection[Node | Region]) -> None:
    """GradientError where a rule that says order="error", and is not running, is differentiated."""
    region = origin.site
    if isinstance(region, Region) and region.order == "error" and region not in running:
        raise GradientError(
            f"differentiating through the gradient rule {origin.rule!r} of region "
            f"{region.name!r} ({region.where}), which says order='error': its gradient is not to "
            "be differentiated again"
        )
