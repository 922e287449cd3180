"""The walk that settles every node of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, Visit, with_inputs
from ..ops.sources import Placeholder
from .build import beside
from .facts import forget
from .rule import RewriteRule, Step, applying

Pass: TypeAlias = Callable[[Program], Program]
Now: TypeAlias = Mapping[Tensor, Tensor]
"""What stands for the tensors of a program, as far as it was walked through."""
Plan: TypeAlias = Callable[[Node, Now], Tensor]
"""What makes the tensor that stands for a node."""

AGAIN = 100  # times that one node may be rewritten before that is an endless loop


class _Visits(dict[type[Op], list[Visit]]):
    """What is to be done with nodes of an op class, one after the other."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.steps = steps

    def __missing__(self, op_class: type[Op]) -> list[Visit]:
        asked = [step(op_class) for step in self.steps]
        visits = self[op_class] = [visit for visit in asked if visit is not None]
        return visits


class _Settling:
    """Visits every node, and every node that a visit makes, until no step changes it.

    placed  nodes of the new program: they are settled, and stand for themselves
    made    another node that was settled -> what stands for its outputs
    """

    def __init__(self, steps: tuple[Step, ...], given: Iterable[Tensor]) -> None:
        self.given = set(given)
        self.placed: set[Node] = set()
        self.made: dict[Node, tuple[Tensor, ...]] = {}
        self.visits = _Visits(steps)

    def visit(self, node: Node) -> tuple[Tensor, ...] | None:
        """What stands for the outputs of a node whose inputs are settled."""
        for each in self.visits[type(node.op)]:
            outputs = each(node)
            if outputs is not None:
                return self.settled(outputs)
        return None

    def settled(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What stands for tensors that a visit returned, with the new nodes behind them settled."""
        self._settle(tensors)
        return tuple(map(self._standing, tensors))

    def _first(self, node: Node) -> tuple[Tensor, ...] | None:
        for each in self.visits[type(node.op)]:
            outputs = each(node)
            if outputs is not None:
                return outputs
        return None

    def _settle(self, tensors: tuple[Tensor, ...]) -> None:
        """Visit the nodes behind tensors that a visit returned, as far as they are new."""
        becomes: dict[Node, tuple[Tensor, ...]] = {}
        times = {t.node: 1 for t in tensors}
        stack = self._unsettled(tensors)
        while stack:
            node = stack[-1]
            reads = becomes.get(node, node.inputs)
            first = self._unsettled(reads)
            if node in self.made:
                stack.pop()
            elif first:
                often = times[node] + (node in becomes)
                if often > AGAIN:
                    raise RuntimeError(f"rewriting does not come to an end; the last is {node!r}")
                times.update((n, often) for n in first if times.get(n, 0) < often)
                stack += first
            elif node in becomes:
                self.made[stack.pop()] = tuple(map(self._standing, becomes[node]))
            else:
                here = self._on_settled(node)
                made = self._first(here)
                if made is None:
                    self.made[stack.pop()] = self.made[here] = here.outputs
                else:
                    becomes[node] = made

    def _unsettled(self, tensors: Iterable[Tensor]) -> list[Node]:
        made, placed, given = self.made, self.placed, self.given
        new = [t for t in tensors if t.node not in placed and t.node not in made]
        return [t.node for t in new if not (t.node.op.source or t in given)]

    def _standing(self, t: Tensor) -> Tensor:
        outputs = self.made.get(t.node)
        return t if outputs is None else outputs[t.index]

    def _on_settled(self, node: Node) -> Node:
        inputs = tuple(map(self._standing, node.inputs))
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if same else with_inputs(node, inputs)


def settle(program: Program, *steps: Step) -> Program:
    """The program with the steps applied to every node, inputs first, until none changes it."""
    closed = standing_alone(program)
    settling = _Settling(steps, closed.inputs)
    try:
        after = closed.rebuild(settling.visit, settling.placed)
    finally:
        forget()
    return program if after is closed else after


def replace(program: Program, plans: Mapping[Node, Plan], *steps: Step) -> Program:
    """The program with what was planned in the place of nodes; what this changes is settled."""
    settling = _Settling(steps, program.inputs)
    now: dict[Tensor, Tensor] = {}
    old = iter(program.nodes)

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        was = next(old)
        plan = plans.get(was)
        if plan is not None:
            outputs: tuple[Tensor, ...] | None = settling.settled((plan(node, now),))
        elif node is was and node.inputs:
            return None
        else:
            outputs = settling.visit(node)
        now.update(zip(was.outputs, node.outputs if outputs is None else outputs, strict=True))
        return outputs

    try:
        return program.rebuild(visit, settling.placed)
    finally:
        forget()


def rewrite(*rules: RewriteRule, fired: Counter[str] | None = None) -> Pass:
    """The pass that applies rules to every node, inputs first, until none fires on it.

    fired: counts how often each rule did. RuntimeError where rules undo each other for ever.
    """
    log: Counter[str] = Counter() if fired is None else fired
    return lambda program: settle(program, applying(rules, log))


def standing_alone(program: Program) -> Program:
    """The program with a placeholder for every input, so that no rule looks at what is not run."""
    stands: dict[Tensor, Tensor] = {
        t: beside(t.node, Placeholder(t.shape, t.dtype)) for t in program.inputs if _made(t)
    }
    if not stands:
        return program

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if any(t in stands for t in node.inputs):
            return with_inputs(node, tuple([stands.get(t, t) for t in node.inputs])).outputs
        return None

    after = program.rebuild(visit)
    new = {t.node for t in stands.values()}
    return Program(
        [stands.get(t, t) for t in program.inputs],
        [stands.get(t, t) for t in after.outputs],
        [n for n in after.nodes if n not in new],
    )


def _made(t: Tensor) -> bool:
    return not t.node.op.source
