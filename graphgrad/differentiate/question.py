"""What a `gradients` call asks, and what is known while it is answered: one object for all readers.

A call makes one question. A part of it makes one of its own: what it asks in one graph where a body
and the graph around it are asked about, the inside of a region whose rule asks for its default, a
call of `gradients` in a rule or in a body, a trace of a rule. It takes on what is known around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.context import Unasked, Within
from ..ir.graph import current
from ..ir.node import Tensor
from ..ir.region_tree import MARKED
from .choices import NONE, Choice
from .levels import Off, Step


class Question(Unasked):
    """The gradients of ys with respect to xs; what is known around it besides.

    ys, xs   what is asked for
    seeds    the cotangents that ys start from; None: ones
    stops    tensors through which nothing flows
    off      regions and nodes whose mark does not count
    spare    constants among xs that only a default is asked for: nobody around wants their gradient
    unsaid   those of them for which a rule that reads them does not answer
    """

    __slots__ = (
        "asked",
        "called",
        "choice",
        "chooses",
        "drawn",
        "draws",
        "judge",
        "live",
        "off",
        "opened",
        "running",
        "seeds",
        "spare",
        "stops",
        "tree",
        "unsaid",
        "xs",
        "ys",
    )

    def __init__(
        self,
        around: Unasked,
        ys: Sequence[Tensor] = (),
        xs: Sequence[Tensor] = (),
        seeds: Sequence[Any] = (),
        stops: Sequence[Tensor] = (),
    ) -> None:
        self.ys, self.xs, self.seeds, self.stops = ys, xs, seeds, stops
        self.off: Off = NONE
        self.spare: frozenset[Tensor] = frozenset()
        self.unsaid: set[Tensor] = set()
        self.choice: Choice | None = around.choice
        self.chooses, self.tree, self.running = around.chooses, around.tree, around.running
        self.asked, self.opened, self.judge = around.asked, around.opened, around.judge
        self.live = None
        self.called = {} if around.called is None else around.called
        self.drawn = {} if around.drawn is None else around.drawn
        self.draws = around.draws

    def choose(self, choice: Choice | None) -> None:
        """Have these choices count instead of those around."""
        self.choice, self.chooses = choice, bool(choice)
        self.tree = MARKED if choice is None else choice.tree
        self.off = NONE if choice is None else choice.off

    def rule_of(self, step: Step, mark: Any) -> Any:
        """The reference of the rule that answers for a step; None: a node's own gradient."""
        if step in self.off:
            return None
        return self.choice.get(step, mark) if self.chooses else mark  # type: ignore[union-attr]

    def decides(self, step: Step) -> bool:
        """Whether the call chooses for a step, or its mark does not count."""
        return step in self.off or (self.choice is not None and step in self.choice)


def asking(question: Question) -> Within:
    """Where a question is asked; so are those in it that choose nothing anew."""
    context = current().copy()
    context.question = question
    return Within(context)
