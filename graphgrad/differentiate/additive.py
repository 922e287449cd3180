"""Sites in bodies of control flow, whose rule is called for each choice between the bodies.

A choice and the choices that were derived from it share their bodies, and each is differentiated by
itself. What flows to a site inside arrives in parts then, one for each of them, and its rule is
called for each part instead of once for their sum. For a rule that is linear in its dys that is the
same; any other is refused. So it is where a site in a body was copied or batched more than once, or
where a checkpoint built a site once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.errors import GradientError
from ..ir.graph import Graph
from ..ir.node import Tensor, Twins
from ..ops.base import is_zero
from ..ops.control import BODY_OF, BodyGraph
from ..regions.rules import BuiltinRule, Rule, as_rule
from .levels import Step, built_from
from .linearity import NonLinear, check_linear
from .site import Gradient, Site

Part = tuple[list[Tensor | None], list[Gradient], Site]
"""What came, what the rule gave, and the site, which knows what it was told to be zero."""


def check_additive(
    called: dict[Any, Part], site: Site, dys: list[Tensor | None], gradients: list[Gradient]
) -> None:
    """Note a call of a site's rule; GradientError for a second one of a rule that is not linear.

    called  the first call of each site so far, in the bodies of the running question
    """
    step = at_home(site._target)
    first = called.get(step)
    if first is None:
        called[step] = dys, gradients, site
        return
    rule = as_rule(site.reference)
    part = dys, gradients, site
    why = _not_linear(rule, first, part)
    if why is not None:
        place, whole, remedy = _in_what(step)
        raise GradientError(
            f"gradients reach {site!r} in {place} both through the value of the {whole} and "
            f"through a derivative of it, so its gradient rule {rule.name!r} (defined at "
            f"{rule.where}) is called once for each part and not once for their sum. It must be "
            f"linear in the gradients that it is given, and {why}.\n"
            f"{remedy}, or declare linear=True if the rule is linear."
        )


def _in_what(step: Any) -> tuple[str, str, str]:
    """Where a site is: in words, what that is part of, and what to do instead."""
    graph = step.graph
    if not isinstance(graph, BodyGraph):
        return "a checkpoint", "checkpoint", "Put the override around the checkpoint"
    if not graph.repeats:
        return (
            "a branch of cond()",
            "branch",
            "Put the override around the cond(), choose with gg.where()",
        )
    loop = graph.name.removeprefix(BODY_OF)
    return f"the body of {loop}", "loop", "Put the override around the loop"


def at_home(step: Step) -> Any:
    """What a step has in common with its copies: itself where there are none."""
    step = built_from(step)
    assert step.graph is not None
    return step.graph.twins.get(step, step)


def note_twin(step: Step, first: Step) -> None:
    """Note that a step is a copy of another, or was made of the same one before."""
    assert first.graph is not None
    assert step.graph is not None
    step.graph.twins[step] = first.graph.twins.setdefault(first, Twins(first.graph, first))


def note_built_again(step: Step, first: Step) -> None:
    """Note that a step was built once more from another: choices and marks for that are its own."""
    assert step.graph is not None
    step.graph.again[step] = built_from(first)


def copied_steps(old: Graph, new: Graph) -> Iterator[tuple[Step, Step]]:
    """The nodes and regions of a graph that was copied as a whole, each with its copy."""
    yield from zip(old.nodes, new.nodes, strict=True)
    yield from zip(old.regions, new.regions, strict=True)


def _told_apart(one: Part, other: Part) -> str | None:
    """Why a rule may take two ways, where it was told that a part is zero and another is not."""
    dys, _, site = other
    if any(dys[i] is not None and not is_zero(dys[i]) for i in one[2].told):
        return "it asks which of them are zero, which differs between the parts"
    there = {at for at, dx in _partials(site) if is_zero(dx)}
    if any(at not in there for at, dx in _partials(one[2]) if is_zero(dx) and dx.asked):
        return "it asks which partials of its default are zero, which differs between the parts"
    return None


def _partials(site: Site) -> Iterator[tuple[tuple[int, int], Any]]:
    """What its default gave, by call and input."""
    for call, partials in enumerate(site.partials):
        for i, dx in enumerate(partials):
            yield (call, i), dx


def _not_linear(rule: Rule, *parts: Part) -> str | None:
    """Why a rule that gave these is not linear in its dys; None where it is."""
    if rule.linear or isinstance(rule, BuiltinRule):
        return None
    if rule.linear is False:
        return "it is declared linear=False"
    one, other = parts
    why = _told_apart(one, other) or _told_apart(other, one)
    if why is not None:
        return why
    for dys, gradients, _ in parts:
        dxs = [dx for _, dx in gradients if dx is not None and not is_zero(dx)]
        try:
            check_linear(dxs, [dy for dy in dys if dy is not None])
        except NonLinear as error:
            return str(error)
    return None
