"""Which step of the backward pass first poisons a gradient, or kills it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import GradientError
from ..base.kinds import is_inexact
from ..base.tree import flatten
from ..base.words import visible
from ..compiled import CompiledFunction
from ..ir.graph import restored
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.state import State
from ..ir.types import Array
from .blockers import Blocker, blockers
from .remedies import remedies
from .running import Evaluation, Given, Inside, Ran, place_of
from .words import derivation, described, who

__all__ = ["Blame", "Suspect", "blame"]


NAMED = 8
"""How many gradients that one step stops are named."""


class Suspect(NamedTuple):
    """One step of the backward pass: the own gradient of a node, or one call of a rule.

    kind      "poisoned": finite values went in, NaN or inf came out; "killed": a gradient that
              is not zero went in, and all that came out is zero, or nothing did
    site      the forward node or region whose gradient it is, or that made NaN or inf forward
    rule      the name of the rule; None where it is the op's own gradient
    where     the user's line of the site
    message   all of it in words

    >>> x = gg.constant(2.0)
    >>> y = gg.override(gg.rules.scale(0.0))(gg.exp)(x)
    >>> found = gg.debug.blame(gg.gradients(y, x)).first
    >>> found.kind, found.rule
    ('killed', 'scale(factor=0)')
    """

    kind: str
    site: Node | Region
    rule: str | None
    where: str
    message: str


class Blame(NamedTuple):
    """What `blame` found, in the order in which the backward pass ran; empty where nothing is odd.

    suspects  every step that poisoned or killed what reached it unharmed

    >>> x = gg.constant([2.0, 1.0])
    >>> print(gg.debug.blame(gg.gradients(gg.sqrt(x), x)))
    no step poisons or kills a gradient
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


@restored
def blame(gradients: Any, feeds: Given = None, *, state: State | None = None) -> Blame:
    """Which regions and nodes poison or kill the gradients, by running the backward pass.

    A step is judged by what goes in and out of it: the derived values that it reads and those of
    its own that others read, in branches of `cond` and runs of loops too. For a gradient that
    nothing reaches, the step that gets a gradient and passes none on is named. Where a gradient is
    NaN or infinite and no step back is to blame, the first step forward that is.

    Parameters:
        gradients: what `gg.gradients` returned, or any nesting of such tensors; what gg.compile or
            gg.function made of them.
        feeds: {tensor or name: array}; of a compiled function its arguments in a tuple too, of a
            gg.function only those.
        state: where variables live; the graph's own by default.

    Returns: a Blame, which is true where something was found.

    Raises: GradientError where nothing was derived, or all gradients are None; what running raises.

    >>> x = gg.constant([0.0, 1.0])
    >>> found = gg.debug.blame(gg.gradients(gg.sqrt(x), x))
    >>> found.first.kind, found.first.site.type
    ('poisoned', 'Sqrt')
    """
    _check(gradients)
    question = Evaluation(gradients, feeds, state)
    if not any(n.origin is not None for n in question.program.nodes):
        raise GradientError("blame() takes gradients, and none of these tensors is one")
    return Blame(tuple(_Trial(question).suspects()))


def _check(gradients: Any) -> None:
    asked = gradients.outputs if isinstance(gradients, CompiledFunction) else gradients
    leaves = flatten(asked) if isinstance(asked, list | tuple | dict) or asked is None else [asked]
    if all(t is None for t in leaves):
        raise GradientError(
            "all gradients are None: nothing flows to these xs, so there is nothing to run. "
            "print(gg.explain(ys, xs)) says where each path ends"
        )


Place = tuple[tuple[Node, int | None], ...]
Moved = list[tuple[Tensor, Array]]


class _Trial:
    """One run of the backward pass, and what is known of it.

    held   tensor -> where it was made -> its value
    stand  tensor that a body takes -> the outer tensor that it stands for
    ran    node -> where it ran: the bodies around it, with the runs of loops
    within node -> the choices and loops that it ran in
    asked  the gradients
    left   the derived tensors that another step reads, or that are asked for
    """

    def __init__(self, question: Evaluation) -> None:
        self.held: dict[Tensor, dict[Place, Array]] = {
            t: {(): array} for t, array in question.given.items()
        }
        self.stand: dict[Tensor, Tensor] = {}
        self.ran: dict[Node, dict[Place, tuple[Inside, ...]]] = {}
        self.within: dict[Node, set[Node]] = {}
        self.asked = list(question.outputs)
        self.left = set(self.asked)
        question.run(self._note)
        self.nodes = list(self.within)
        for node in self.nodes:
            self.left.update(t for t in node.inputs if t.node.origin is not node.origin)

    def _note(self, ran: Ran) -> None:
        place = tuple([(body.node, body.step) for body in ran.within])
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            self.held.setdefault(t, {}).setdefault(place, array)
        if ran.within:
            body = ran.within[-1]
            self.left.update(body.program.outputs)
            for inner, outer in zip(body.program.inputs, body.reads, strict=True):
                if outer is not None:
                    self.stand.setdefault(inner, self.stand.get(outer, outer))
            if ran.node.type == "Placeholder":  # what a loop carries is no step
                return
        self.ran.setdefault(ran.node, {})[place] = ran.within
        self.within.setdefault(ran.node, set()).update(body.node for body in ran.within)

    def _value(self, t: Tensor, place: Place) -> Array | None:
        """The value of a tensor as it is read in a place."""
        by_place = self.held.get(t, {})
        for depth in range(len(place), -1, -1):
            if place[:depth] in by_place:
                return by_place[place[:depth]]
        return None

    def suspects(self) -> list[Suspect]:
        """What each step did, in the order of running; what is found in a choice is said once."""
        steps: dict[Node | RuleCall, list[Node]] = {}
        for node in self.nodes:
            if node.origin is not None:
                steps.setdefault(node.origin, []).append(node)
        suspects: dict[Suspect, list[Node]] = {}
        unreached: dict[Blocker, list[Node]] = {}
        for origin, nodes in steps.items():
            suspect, makers, cotangents = self._judged(origin, nodes)
            if suspect is None:
                continue
            if isinstance(origin, Node) and not cotangents and suspect.kind == "killed":
                stopped = blockers(origin, nodes[0], self.nodes)
                for blocker in stopped:
                    unreached.setdefault(blocker, []).append(origin)
                suspect = None if stopped else _unreached(suspect)
            if suspect is not None:
                suspects[suspect] = makers
        inner = set().union(*(self.within[n] for nodes in suspects.values() for n in nodes))
        outermost = [s for s, nodes in suspects.items() if not _is_choice(nodes, inner)]
        if not any(s.kind == "poisoned" for s in outermost):
            outermost = [*self._forward(), *outermost]
        return outermost + [_stopped(blocker, xs) for blocker, xs in unreached.items()]

    def _forward(self) -> Iterator[Suspect]:
        """The first step of the user's that poisons, where a gradient that is asked for is odd."""
        asked = [a for t in self.asked if (a := self._value(t, ())) is not None]
        if all(np.isfinite(a).all() for a in asked if is_inexact(np.asarray(a).dtype)):
            return
        for node in self.nodes:
            for place in self.ran[node] if node.origin is None and node.inputs else ():
                came, went = (
                    list(self._floats([*ts], place)) for ts in (node.inputs, node.outputs)
                )
                if _kind(came, went, False) == "poisoned":
                    yield _suspect("poisoned", node, came, went, self.ran[node][place], True)
                    return

    def _judged(
        self, origin: Node | RuleCall, nodes: list[Node]
    ) -> tuple[Suspect | None, list[Node], list[Tensor]]:
        """What a step did, if that is odd, the nodes that did, and the gradients that it reads.

        In a loop it did that in its first odd run; it kills what it kills in every run.
        """
        places = dict.fromkeys(place for n in nodes for place in self.ran[n])
        suspects: list[tuple[Suspect, list[Node]]] = []
        gradients: dict[Tensor, None] = {}
        passes = False
        for place in places:
            here = [n for n in nodes if place in self.ran[n]]
            known = self._read_by(here, place)
            cotangents = [t for t in known if t.node.origin is not None]
            gradients.update(dict.fromkeys(cotangents))
            came = list(self._floats(known, place))
            went = list(self._floats([t for n in here for t in n.outputs if t in self.left], place))
            flows = not cotangents or any(a.any() for _, a in self._floats(cotangents, place))
            kind = _kind(came, went, flows)
            passes = passes or any(a.any() for _, a in went)
            if kind is not None:
                suspect = _suspect(kind, origin, came, went, self.ran[here[0]][place])
                suspects.append((suspect, _makers(kind, went)))
        poisoned = [s for s in suspects if s[0].kind == "poisoned"]
        for suspect, makers in [*poisoned, *([] if passes else suspects)]:
            return suspect, makers, list(gradients)
        return None, [], list(gradients)

    def _read_by(self, nodes: list[Node], place: Place) -> list[Tensor]:
        """What nodes read of others that has a value there."""
        inside = set(nodes)
        reads = dict.fromkeys(
            self.stand.get(t, t) for n in nodes for t in n.inputs if t.node not in inside
        )
        return [t for t in reads if self._value(t, place) is not None]

    def _floats(self, tensors: list[Tensor], place: Place) -> Iterator[tuple[Tensor, Array]]:
        for t in tensors:
            array = np.asarray(self._value(t, place))
            if is_inexact(array.dtype):
                yield t, array


def _kind(came: Moved, went: Moved, flows: bool) -> str | None:
    """What a step did with what came: "poisoned", "killed", or nothing odd."""
    if not went or not all(np.isfinite(a).all() for _, a in came):
        return None
    if not all(np.isfinite(a).all() for _, a in went):
        return "poisoned"
    return "killed" if flows and not any(a.any() for _, a in went) else None


def _makers(kind: str, went: Moved) -> list[Node]:
    """The nodes that made what is odd."""
    odd = [t.node for t, a in went if kind == "killed" or not np.isfinite(a).all()]
    return list(dict.fromkeys(odd))


def _is_choice(nodes: list[Node], inner: set[Node]) -> bool:
    """Whether a step is only a choice, in which a suspect was found."""
    return all(n.op.bodies and n in inner for n in nodes)


def _unreached(suspect: Suspect) -> Suspect:
    """A gradient that is zero from the start, where nothing shows why."""
    name = visible(getattr(suspect.site, "name", ""))
    why = (
        f"  no gradient reaches it: on every path to {name} some step stops the gradient; "
        "gg.explain(ys, xs) says which"
    )
    return suspect._replace(message=f"{suspect.message}\n{why}")


def _stopped(blocker: Blocker, xs: list[Node]) -> Suspect:
    step, region = blocker
    if isinstance(step, Region):
        what = visible(f"rule {step.name!r} for region {step.name!r} ({step.where})")
    else:
        what = who(step)
    rows = [f"killed at {what}", "  a gradient reaches it and stops there"]
    if region is not None:
        name = visible(region.name)
        rows.append(
            f"  by its own gradient; the rule {name!r} around it was not used, or returned nothing"
        )
    more = f" and {len(xs) - NAMED} more" if len(xs) > NAMED else ""
    rows.append(f"  so nothing reaches {', '.join([visible(x.name) for x in xs[:NAMED]])}{more}")
    rule = step.name if isinstance(step, Region) else None
    return Suspect("killed", step, rule, str(step.where), "\n".join(rows))


def _suspect(
    kind: str,
    origin: Node | RuleCall,
    came: Moved,
    went: Moved,
    within: Sequence[Inside],
    forward: bool = False,
) -> Suspect:
    site = origin.site if isinstance(origin, RuleCall) else origin
    step = f"by {who(origin)}" if isinstance(origin, Node) and forward else derivation(origin)
    rows = [f"{kind} {step}"]
    rows += [f"  in {place_of(body)}" for body in reversed(within) if body.step is not None]
    rows += [f"  in:  {visible(t.name)}: {described(a)}" for t, a in came]
    rows += [f"  out: {visible(t.name)}: {described(a)}" for t, a in went]
    rule = origin.rule if isinstance(origin, RuleCall) else None
    rows += remedies(origin) if kind == "poisoned" else ()
    return Suspect(kind, site, rule, str(site.where), "\n".join(rows))
