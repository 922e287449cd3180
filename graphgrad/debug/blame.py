"""Which step of the backward pass first poisons a gradient, or kills it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..ir.errors import GradientError
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.state import State
from ..ir.types import Array
from .running import Question
from .words import derivation, described

__all__ = ["Blame", "Suspect", "blame"]


class Suspect(NamedTuple):
    """One step of the backward pass: the own gradient of a node, or one call of a rule.

    kind      "poisoned": finite values went in, NaN or inf came out; "killed": a gradient that
              is not zero went in, and all that came out is zero; or nothing went in, since on
              every path to it some step passes nothing on
    site      the forward node or region whose gradient it is
    rule      the name of the rule; None where it is the op's own gradient
    where     the user's line of the site
    message   all of it in words
    """

    kind: str
    site: Node | Region
    rule: str | None
    where: str
    message: str


class Blame(NamedTuple):
    """What `blame` found, in the order in which the backward pass ran; empty where nothing is odd.

    suspects  every step that poisoned or killed what reached it unharmed
    """

    suspects: tuple[Suspect, ...]

    @property
    def first(self) -> Suspect | None:
        """The step to look at first: the first that poisons, else the first that kills."""
        poisoned = [s for s in self.suspects if s.kind == "poisoned"]
        return next(iter([*poisoned, *self.suspects]), None)

    def __bool__(self) -> bool:
        return bool(self.suspects)

    def __str__(self) -> str:
        return "\n".join(s.message for s in self.suspects) or "no step poisons or kills a gradient"


def blame(
    gradients: Any, feeds: Mapping[Any, Any] | None = None, *, state: State | None = None
) -> Blame:
    """Which regions and nodes poison or kill the gradients, by running the backward pass.

    gradients: what `gg.gradients` returned, or any nesting of such tensors. feeds: {tensor or name:
    array}. A step is judged by what goes in and out of it: the derived values that it reads and
    those of its own that others read. GradientError where nothing was derived.
    """
    question = Question(gradients, feeds, state)
    if not any(n.origin is not None for n in question.program.nodes):
        raise GradientError("blame() takes gradients: none of these tensors was derived")
    held: dict[Tensor, Array] = dict(question.given)
    for ran in question.run():
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            held.setdefault(t, array)
    steps = _steps(question.program.nodes)
    left = _left(question)
    found = [_judged(origin, nodes, held, left) for origin, nodes in steps.items()]
    return Blame(tuple([s for s in found if s is not None]))


def _steps(nodes: tuple[Node, ...]) -> dict[Node | RuleCall, list[Node]]:
    """The nodes that were derived, by what they derive from, in the order of running."""
    steps: dict[Node | RuleCall, list[Node]] = {}
    for node in nodes:
        if node.origin is not None:
            steps.setdefault(node.origin, []).append(node)
    return steps


def _left(question: Question) -> set[Tensor]:
    """The derived tensors that another step reads, or that are asked for."""
    left = set(question.outputs)
    for node in question.program.nodes:
        left.update(t for t in node.inputs if t.node.origin is not node.origin)
    return left


def _judged(
    origin: Node | RuleCall, nodes: list[Node], held: dict[Tensor, Array], left: set[Tensor]
) -> Suspect | None:
    inside = set(nodes)
    reads = list(dict.fromkeys(t for n in nodes for t in n.inputs if t.node not in inside))
    cotangents = [t for t in reads if t.node.origin is not None]
    made = [t for n in nodes for t in n.outputs if t in left]
    came = list(_floats(reads, held))
    went = list(_floats(made, held))
    if not went:
        return None
    if all(np.isfinite(a).all() for _, a in came):
        if not all(np.isfinite(a).all() for _, a in went):
            return _suspect("poisoned", origin, came, went)
        flows = not cotangents or any(a.any() for _, a in _floats(cotangents, held))
        if flows and not any(a.any() for _, a in went):
            found = _suspect("killed", origin, came, went)
            return found if cotangents else _unreached(found)
    return None


def _unreached(found: Suspect) -> Suspect:
    """A gradient that is zero from the start: the rule, or a step before, reads no other."""
    if found.rule is not None:
        return found
    name = getattr(found.site, "name", "")
    why = (
        f"  nothing reaches it: on every path to {name} some step passes no gradient on, and "
        "gg.explain(ys, xs) says which"
    )
    return found._replace(message=f"{found.message}\n{why}")


def _floats(tensors: list[Tensor], held: dict[Tensor, Array]) -> Iterator[tuple[Tensor, Array]]:
    for t in tensors:
        array = np.asarray(held[t])
        if array.dtype.kind in "fc":
            yield t, array


def _suspect(
    kind: str,
    origin: Node | RuleCall,
    came: list[tuple[Tensor, Array]],
    went: list[tuple[Tensor, Array]],
) -> Suspect:
    site = origin.site if isinstance(origin, RuleCall) else origin
    rows = [f"{kind} {derivation(origin)}"]
    rows += [f"  in:  {t.name}: {described(a)}" for t, a in came]
    rows += [f"  out: {t.name}: {described(a)}" for t, a in went]
    rule = origin.rule if isinstance(origin, RuleCall) else None
    return Suspect(kind, site, rule, str(site.where), "\n".join(rows))
