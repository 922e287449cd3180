"""Sums of matrix products as one product: the gradient of a matrix that many steps share.

h1.T @ d1 + ... + hn.T @ dn is one product of the h and the d, joined along the axis that is summed
over. It changes last bits, saves the additions, and copies the operands, but for cuts of one tensor
that follow each other; it is done where that pays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...base.kinds import is_floating
from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ops.elementwise.accumulate import AddN
from ...ops.elementwise.arithmetic import Add
from ...ops.reduce.reductions import ReduceSum
from ...ops.shape.joining import Concat
from ..build import beside, total
from ..facts import elements
from ..rewrite import Now
from .matrices import CALL, FEW, in_a_row, in_parts, is_plain, summed_axis

Joined = dict[tuple[int, frozenset[int]], list[Tensor]]
"""What is joined anyway: (axis, identities of the pieces) -> the pieces in order."""


class _Sum(NamedTuple):
    """The terms of a sum in order, and the groups of them that are to be joined."""

    terms: list[Tensor]
    groups: list[list[Tensor]]

    def made(self, node: Node, now: Now) -> Tensor:
        """The sum with each group of its terms as one term, in the place of the group's first."""
        group_of = {t: group for group in self.groups for t in group}
        done: set[Tensor] = set()
        terms: list[Tensor] = []
        for t in self.terms:
            if t not in group_of:
                terms.append(now.get(t, t))
            elif t not in done:
                done.update(group_of[t])
                terms.append(_joined(node, [u.node for u in group_of[t]], now))
        return total(node, terms)


def _joined(node: Node, terms: Sequence[Node], now: Now) -> Tensor:
    """Products, or sums over axes, as one of the operands joined."""
    op = terms[0].op
    axes = (
        [op.axes[0]]
        if isinstance(op, ReduceSum)
        else [summed_axis(terms[0], side) for side in (0, 1)]
    )
    joined = [
        beside(node, Concat(axis), *(now.get(x, x) for x in pieces))
        for axis, pieces in zip(axes, zip(*(t.inputs for t in terms), strict=True), strict=True)
    ]
    return beside(node, op, *joined)


# --- which -------------------------------------------------------------------------------------


def sums_to_join(program: Program) -> dict[Node, _Sum]:
    """The sums of which terms are to be joined, with what makes them.

    x1^T @ y1 + x2^T @ y2 + ... -> [x1; x2; ...]^T @ [y1; y2; ...]; where the y are joined so, the
    sum of sum(y1), sum(y2), ... is taken of them joined. A sum that only a sum reads is part of it.
    """
    place = {n: i for i, n in enumerate(program.nodes)}
    reads = Counter(t for n in program.nodes for t in n.inputs)
    reads.update(program.outputs)
    sums = [n for n in program.nodes if _is_sum(n)]

    def made_for_it(ts: Iterable[Tensor]) -> list[Tensor]:
        return [t for t in ts if reads[t] == 1 and t.node in place]

    inner = {t.node for n in sums for t in made_for_it(n.inputs) if _is_sum(t.node)}
    terms = {n: _terms(n, inner) for n in sums if n not in inner}
    plans = {n: _Sum(ts, []) for n, ts in terms.items() if len(ts) >= FEW}
    joined: Joined = {}
    for plan in plans.values():
        plan.groups.extend(g for g in _products(made_for_it(plan.terms), place) if _pays(g))
        for group in plan.groups:
            _note(group, joined)
    for plan in plans.values():
        plan.groups.extend(_reductions(made_for_it(plan.terms), joined))
    return {node: plan for node, plan in plans.items() if plan.groups}


def _is_sum(node: Node) -> bool:
    """Whether a node adds tensors of its own type."""
    if type(node.op) not in (Add, AddN) or node.controls:
        return False
    (y,) = node.outputs
    return is_floating(y.dtype) and y.type.static and all(t.type is y.type for t in node.inputs)


def _terms(node: Node, inner: set[Node]) -> list[Tensor]:
    """What is added, from left to right."""
    terms: list[Tensor] = []
    stack = [*reversed(node.inputs)]
    while stack:
        t = stack.pop()
        if t.node in inner:
            stack += reversed(t.node.inputs)
        else:
            terms.append(t)
    return terms


def _products(terms: Iterable[Tensor], place: dict[Node, int]) -> list[list[Tensor]]:
    """Products of matrices that can be one, in the order in which their earlier side is made."""
    groups: dict[object, list[Node]] = {}
    for t in terms:
        if is_plain(t.node):
            groups.setdefault(t.node.op, []).append(t.node)
    products = []
    for group in groups.values():
        sides = [[place.get(n.inputs[side].node, -1) for n in group] for side in (0, 1)]
        first = min(sides, key=min)
        order = sorted(range(len(group)), key=first.__getitem__)
        parts = in_parts([group[i] for i in order], lambda n: n.inputs)
        products += [[n.outputs[0] for n in part] for part in parts]
    return products


def _pays(group: Sequence[Tensor]) -> bool:
    """Whether copying the operands costs less than adding the products one by one does."""
    copied = 0
    for side in (0, 1):
        pieces = [t.node.inputs[side] for t in group]
        if not in_a_row(pieces, summed_axis(group[0].node, side)):
            copied += sum(elements(x.shape) for x in pieces)
    return copied <= sum(elements(t.shape) + CALL for t in group)


def _note(group: Sequence[Tensor], joined: Joined) -> None:
    for side in (0, 1):
        pieces = [t.node.inputs[side] for t in group]
        key = summed_axis(group[0].node, side), frozenset(map(id, pieces))
        joined.setdefault(key, pieces)


def _reductions(terms: Iterable[Tensor], joined: Joined) -> list[list[Tensor]]:
    """Terms that are sums of tensors that are joined anyway, in that order."""
    groups: dict[ReduceSum, dict[int, Tensor]] = {}
    for t in terms:
        op = t.node.op
        if isinstance(op, ReduceSum) and op.axes and not t.node.controls:
            groups.setdefault(op, {})[id(t.node.inputs[0])] = t
    reductions = []
    for op, by_piece in groups.items():
        order = joined.get((op.axes[0], frozenset(by_piece)))
        if order is not None:
            reductions.append([by_piece[id(x)] for x in order])
    return reductions
