"""Forward mode judges each rule that is called: whether it can be transposed, and what if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import GradientError
from ...base.position import of_function
from ...ir.context import Within
from ...ir.graph import current
from ...ir.node import Region, Tensor
from ...ops.base import NO_GRAD, ZERO, is_zero
from ...regions.rules import BuiltinRule, Rule, as_rule
from ..call import Calling, call_rule
from ..linearity import NonLinear, check_linear
from ..question import asking, knowing
from ..site import Gradient, NodeSite, RegionSite, Site
from .jvp_rule import jvp_as_rule, marked_piece


class Judge:
    """Says of each rule that a jvp calls whether it can be transposed.

    known   gradient -> the dys that it is declared to be linear in
    final   regions whose rule says order="error": transposing it is no derivative of it
    """

    def __init__(self) -> None:
        self.known: dict[Tensor, list[Tensor]] = {}
        self.final: list[Region] = []

    def answer(self, site: Site, dys: list[Tensor | None]) -> list[Gradient]:
        """What the site's rule gives, once it is known that it can be transposed."""
        rule = as_rule(site.reference, lambda: f"named by {site!r}")
        judged = watched(site, self)
        if isinstance(rule, BuiltinRule):
            return call_rule(judged, rule, dys)
        call = Calling(rule, site, dys)
        if rule.linear is False and rule.jvp is None:
            raise _refused(call, "it is declared linear=False")
        if isinstance(site, RegionSite) and site.region.order == "error":
            self.final.append(site.region)
        gradients = call_rule(judged, _piece(call) if rule.jvp else rule, dys)
        self._judge(call, [dx for _, dx in gradients if dx is not None and not is_zero(dx)])
        return gradients

    def _judge(self, call: Calling, dxs: Sequence[Tensor]) -> None:
        """GradientError unless what the rule gave is linear in dys."""
        rule, dys = call.rule, [dy for dy in call.dys if dy is not None]
        if rule.linear or rule.jvp is not None:
            varying = dict.fromkeys(dy for dy in dys if not is_zero(dy))
            self.known.update((dx, list(varying)) for dx in dxs if dx not in varying)
            return
        try:
            check_linear(dxs, dys, self.known)
        except NonLinear as error:
            raise _refused(call, str(error)) from None


def _piece(call: Calling) -> Rule:
    """In place of a rule with its own jvp: a region from dys to dxs with that as its rule."""
    rule, inputs = call.rule, call.site.inputs

    def piece(_: Site, *dys: Any) -> list[Any]:
        real = [dy is not None and not is_zero(dy) for dy in dys]
        pins = [dy for dy, here in zip(dys, real, strict=True) if here]
        if not pins:
            return [ZERO if x.type.differentiable else NO_GRAD for x in inputs]
        at = of_function(rule.jvp) or rule.position
        own = Rule(jvp_as_rule(call, real), f"{rule.name}.jvp", position=at)
        return marked_piece(own, pins, inputs)

    return Rule(piece, rule.name, position=rule.position)


def _refused(call: Calling, why: str) -> GradientError:
    rule, site = call.rule, call.site
    return GradientError(
        f"forward mode through {site!r} needs the transpose of its gradient rule {rule.name!r} "
        f"(defined at {rule.where}), which has to be linear in the gradients it is given: {why}.\n"
        "Give the rule its own forward mode with jvp=, a function jvp(site, *dxs) -> tangents of "
        "the outputs, or declare linear=True if it is linear all the same."
    )


def judging(judge: Judge) -> Within:
    """Rules called in this block are judged; but none while a rule itself runs."""
    return asking(current().question, judge=judge)


class Watched(Site):
    """A site whose default belongs to the jvp again, although it is the rule that asks for it."""

    judge: Judge

    def default(self, *dys: Any) -> tuple[Any, ...]:
        """The site's default, whose rules are judged."""
        with judged_inside(self):
            return super().default(*dys)


class WatchedNode(Watched, NodeSite):
    """A node."""


class WatchedRegion(Watched, RegionSite):
    """A region."""


def judged_inside(site: Site) -> Within:
    """Rules called in this block, by the rule of a site, are judged as that rule is."""
    return knowing(judge=site.judge if isinstance(site, Watched) else current().answering.judge)


def watched(site: Site, judge: Judge) -> Site:
    """The site, as one whose default the judge hears of."""
    kind: Any = WatchedNode if isinstance(site, NodeSite) else WatchedRegion
    watched_site: Watched = kind(site._target, site.reference, site._sweep)
    watched_site.judge = judge
    return watched_site
