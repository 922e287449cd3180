"""Rewrite rules: what a rule is, and the one pass that applies them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, derive, with_inputs
from ..ops.sources import Placeholder

Rewrite = Callable[[Node], Tensor | None]
Pass = Callable[[Program], Program]

AGAIN = 100  # times that one node may be rewritten before that is an endless loop


class Rule:
    """A rewrite of nodes of some op types; its docstring is the algebra.

    It takes a node with one output and returns the tensor that stands for it, or None.
    """

    def __init__(self, types: tuple[str, ...], apply: Rewrite) -> None:
        self.types = types
        self.apply = apply
        self.name = apply.__name__
        self.__doc__ = apply.__doc__

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self.__doc__}>"


def rule(*types: str) -> Callable[[Rewrite], Rule]:
    """Make a rewrite a rule for these op types."""
    return lambda apply: Rule(types, apply)


def rewrite(*rules: Rule, fired: Counter[str] | None = None) -> Pass:
    """The pass that applies rules to every node, inputs first, until none fires on it.

    fired: counts how often each rule did. RuntimeError where rules undo each other for ever.
    """
    by_type: dict[str, list[Rule]] = {}
    for each in rules:
        for type_ in each.types:
            by_type.setdefault(type_, []).append(each)
    log: Counter[str] = Counter() if fired is None else fired

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if node.op.type not in by_type or len(node.outputs) != 1:
            return None
        (start,) = node.outputs
        now = start
        for _ in range(AGAIN):
            after = _first(by_type.get(now.node.op.type, ()), now.node, log)
            if after is None:
                return None if now is start else (now,)
            now = after
        raise RuntimeError(f"rewriting {node!r} does not come to an end; the last is {now.node!r}")

    def run(program: Program) -> Program:
        closed = standing_alone(program)
        after = closed.rebuild(visit)
        return program if after is closed else after

    return run


def standing_alone(program: Program) -> Program:
    """The program with a placeholder for every input, so that no rule looks at what is not run."""
    stands: dict[Tensor, Tensor] = {
        t: derive(t.node, Placeholder(t.shape, t.dtype), ()).outputs[0]
        for t in program.inputs
        if not t.node.op.source
    }
    if not stands:
        return program

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if any(t in stands for t in node.inputs):
            return with_inputs(node, tuple([stands.get(t, t) for t in node.inputs])).outputs
        return None

    after = program.rebuild(visit)
    return Program(
        [stands.get(t, t) for t in program.inputs], [stands.get(t, t) for t in after.outputs]
    )


def _first(rules: Any, node: Node, log: Counter[str]) -> Tensor | None:
    if node.controls:
        return None
    for each in rules:
        found: Tensor | None = each.apply(node)
        if found is not None:
            log[each.name] += 1
            return found
    return None


def instead(node: Node, op: Op, *inputs: Tensor) -> Tensor:
    """The output of a new node that stands for `node`, with its name, line and origin."""
    return derive(node, op, inputs).outputs[0]
