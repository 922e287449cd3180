"""Formulas found in programs: where the nodes stand that a function of tensors would build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiled import compile
from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, RuleCall, Tensor
from ...ir.op import Op
from ...ir.program import Program
from ...ir.types import TensorType
from ...ops.base import Constant
from ...ops.sources import Placeholder

__all__ = ["FoundOperator", "OperatorPattern", "found_in"]


class OperatorPattern(NamedTuple):
    """A formula, and what is written for it.

    by       an op in it that reads or makes the type of y: without one nothing is looked for
    formula  of placeholders: y, and what of its parts may be read beside it
    types    of the placeholders
    write    (to, read, *inputs) -> values of y and the parts; read: which of them somebody reads,
             the others may be None. Of inputs, arrays for numbers
    numbers  how many placeholders, the last ones, stand for constants
    stays    whether nodes of it that others read stay, beside what is written
    derived  whether it is of gradients by the derivatives of ops alone
    """

    by: Op
    formula: Callable[..., tuple[Tensor, ...]]
    types: tuple[TensorType, ...]
    write: Callable[..., Sequence[Any]]
    numbers: int = 0
    stays: bool = False
    derived: bool = False


class FoundOperator(NamedTuple):
    """A pattern, found.

    inputs  the tensors that it is of; made: y and its parts, None for those that nobody reads
    inside  the nodes that need not run
    """

    pattern: OperatorPattern
    inputs: tuple[Tensor, ...]
    made: tuple[Tensor | None, ...]
    inside: frozenset[Node]


PatternsOf = Callable[[TensorType], Iterator[OperatorPattern]]


def found_in(program: Program, patterns_of: PatternsOf) -> dict[Node, FoundOperator]:
    """{node: what it is the last of}: the largest formulas first, none of which share a node.

    patterns_of: patterns of results of a type, larger ones first.
    """
    readers = _readers(program)
    order = {node: i for i, node in enumerate(program.nodes)}
    found: dict[Node, FoundOperator] = {}
    taken: set[Node] = set()
    nodes = program.nodes
    present = {(node.op, t.type) for node in nodes for t in (*node.inputs, *node.outputs)}
    known: dict[TensorType, Mapping[Op, list[Built]]] = {}
    for node in reversed(program.nodes):
        if node in taken or len(node.outputs) != 1:
            continue
        (y,) = node.outputs
        if y.type not in known:
            here = [p for p in patterns_of(y.type) if (p.by, y.type) in present]
            known[y.type] = _by_last_op(here)
        for pattern, built in known[y.type].get(node.op, ()):
            if pattern.derived and (node.origin is None or isinstance(node.origin, RuleCall)):
                continue
            bound = _matched(built.outputs[0], y, {}, set(built.inputs))
            one = None if bound is None else _closed(pattern, built, bound, readers, order)
            if one is not None and taken.isdisjoint(one.inside):
                found[node] = one
                taken |= one.inside
                _leave(readers, one.inside - {node})
                break
    return found


Readers = Mapping[Tensor, set[Node | None]]


def _leave(readers: Readers, nodes: Iterable[Node]) -> None:
    """Nodes that read nothing any more."""
    for node in nodes:
        for t in node.inputs:
            readers[t].discard(node)


def _readers(program: Program) -> Readers:
    """The nodes that read a tensor; None for whoever reads outputs."""
    readers: defaultdict[Tensor, set[Node | None]] = defaultdict(set)
    for node in program.nodes:
        for t in node.inputs:
            readers[t].add(node)
    for t in program.outputs:
        readers[t].add(None)
    return readers


Built = tuple[OperatorPattern, Program]


def _by_last_op(patterns: Iterable[OperatorPattern]) -> Mapping[Op, list[Built]]:
    """Patterns with their programs, by the op that makes the result."""
    found: defaultdict[Op, list[Built]] = defaultdict(list)
    for pattern in patterns:
        for built in _built(pattern):
            found[built.outputs[0].node.op].append((pattern, built))
    return found


def _built(pattern: OperatorPattern) -> Iterator[Program]:
    """The formula as it is built, and as it is after optimisation, where that is another."""
    with Graph():
        xs = [apply(Placeholder(t.shape, t.dtype)) for t in pattern.types]
        ys = pattern.formula(*xs)
    plain = Program(xs, ys)
    better = compile(xs, list(ys), backend="numpy").program
    yield plain
    if _ops(better) != _ops(plain):
        yield better


def _ops(program: Program) -> list[Op]:
    return [node.op for node in program.nodes if not isinstance(node.op, Constant)]


def _matched(
    wanted: Tensor, given: Tensor, bound: dict[Tensor, Tensor], inputs: set[Tensor]
) -> dict[Tensor, Tensor] | None:
    """What stands for the tensors of a formula where `given` is `wanted`; None where it is not."""
    if wanted in bound:
        return bound if bound[wanted] is given else None
    if wanted.type is not given.type:
        return None
    here = {**bound, wanted: given}
    if wanted in inputs:
        return here
    a, b = wanted.node, given.node
    if isinstance(a.op, Constant):
        same = isinstance(b.op, Constant) and np.array_equal(a.op.value, b.op.value)
        return here if same else None
    if a.op is not b.op or wanted.index != given.index or b.controls:
        return None
    orders = [b.inputs]
    if len(b.inputs) == 2 and b.op.traits.commutes:
        orders.append(b.inputs[::-1])
    for order in orders:
        made: dict[Tensor, Tensor] | None = here
        for x, t in zip(a.inputs, order, strict=True):
            made = None if made is None else _matched(x, t, made, inputs)
        if made is not None:
            return made
    return None


def _closed(
    pattern: OperatorPattern,
    built: Program,
    bound: Mapping[Tensor, Tensor],
    readers: Readers,
    order: Mapping[Node, int],
) -> FoundOperator | None:
    """The nodes inside, where nobody reads of them but what the pattern gives, and later."""
    nodes = [bound[n.outputs[0]].node for n in built.nodes if n.outputs[0] in bound]
    inside = {node for node in nodes if not isinstance(node.op, Constant)}
    y = bound[built.outputs[0]]
    parts = {bound[t]: i for i, t in enumerate(built.outputs)}
    made: list[Tensor | None] = [y, *[None] * (len(built.outputs) - 1)]
    for node in reversed(nodes):
        (t,) = node.outputs
        outside = readers[t] - inside
        if t is y or not outside or node not in inside:
            continue
        if pattern.stays:
            inside.remove(node)
        elif t in parts and all(n is None or order[n] > order[y.node] for n in outside):
            made[parts[t]] = t
        else:
            return None
    inputs = tuple([bound[t] for t in built.inputs])
    if any(t.node in inside for t in inputs):
        return None
    numbers = inputs[len(inputs) - pattern.numbers :]
    if not all(isinstance(t.node.op, Constant) for t in numbers):
        return None
    return FoundOperator(pattern, inputs, tuple(made), frozenset(inside))
