"""What a `gradients` call asks: one record for all readers, never written.

A call asks one question. A part of it asks one of its own: what it asks in one graph where a body
and the graph around it are asked about, the inside of a region whose rule asks for its default, a
call of `gradients` in a rule or in a body, a trace of a rule. What is known while a question is
answered stands beside it in the ambient record (`Answering` in `ir/context.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..ir.context import AnyQuestion, Within
from ..ir.graph import current
from ..ir.node import Tensor
from ..ir.region_tree import MARKED, RegionTree
from .choices import NONE, Choice
from .levels import Off, Step


class Question(NamedTuple):
    """The gradients of ys with respect to xs.

    ys, xs   what is asked for
    seeds    the cotangents that ys start from; None: ones
    stops    tensors through which nothing flows
    choice   the rules that were chosen for the call; None: none
    tree     the tree of regions, with the groups of nodes that the call names
    off      regions and nodes whose mark does not count
    spare    constants among xs that only a default is asked for: nobody around wants their gradient
    """

    ys: Sequence[Tensor] = ()
    xs: Sequence[Tensor] = ()
    seeds: Sequence[Any] = ()
    stops: Sequence[Tensor] = ()
    choice: Choice | None = None
    tree: RegionTree = MARKED
    off: Off = NONE
    spare: frozenset[Tensor] = frozenset()

    @classmethod
    def under(
        cls,
        choice: Choice | None,
        ys: Sequence[Tensor] = (),
        xs: Sequence[Tensor] = (),
        seeds: Sequence[Any] = (),
        stops: Sequence[Tensor] = (),
    ) -> Question:
        """A question where these choices count, whatever is chosen around."""
        if choice is None:
            return cls(ys, xs, seeds, stops)
        return cls(ys, xs, seeds, stops, choice, choice.tree, choice.off)

    def without(self, off: Off) -> Question:
        """The same, where these marks do not count."""
        ys, xs, seeds, stops, choice, tree, _, spare = self
        return Question(ys, xs, seeds, stops, choice, tree, off, spare)

    def rule_of(self, step: Step, mark: Any) -> Any:
        """The reference of the rule that answers for a step; None: a node's own gradient."""
        if step in self.off:
            return None
        return self.choice.get(step, mark) if self.choice else mark

    def decides(self, step: Step) -> bool:
        """Whether the call chooses for a step, or its mark does not count."""
        return step in self.off or (self.choice is not None and step in self.choice)


def asking(question: AnyQuestion, **changes: Any) -> Within:
    """Where a question is asked; so are those in it that choose nothing anew.

    changes  what the answering knows that is other than around it
    """
    context = current().copy()
    context.question = question
    context.answering = context.answering.within()
    if changes:
        context.answering = context.answering._replace(**changes)
    return Within(context)


def knowing(**changes: Any) -> Within:
    """Where something else is known of the question that is answered; nothing is asked anew."""
    context = current().copy()
    context.answering = context.answering._replace(**changes)
    return Within(context)
