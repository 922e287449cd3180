"""What the calls of rules built, as formulas: trees that formula_text and formula_math write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...ir.node import Node, Region, RuleCall, Tensor
from ...regions.boundary import boundary_of
from ..scene.view import View
from ..scene.wording import kind_of, local_name, short_attrs, value_of

__all__: list[str] = []

LIMIT = 40
"""A formula of more nodes is not a help to a reader: there is none."""


class Name(NamedTuple):
    """A tensor by its letter or its name."""

    text: str


class Literal(NamedTuple):
    """A constant by its value, as it is written."""

    text: str


class Apply(NamedTuple):
    """An op of operands; attributes as they are written, and `[1]` of one output of several."""

    type: str
    operands: tuple[Term, ...]
    attrs: str = ""
    out: str = ""


Term = Name | Literal | Apply


class Equation(NamedTuple):
    """`name = value`."""

    name: str
    value: Term


class Formula(NamedTuple):
    """Lines in the order of computing, and what letters stand for: `x: layer0/MatMul_3`."""

    lines: tuple[Equation, ...]
    stands: tuple[str, ...]


def formulas_of(view: View) -> dict[RuleCall, Formula]:
    """Rule call -> what it built, a line for each value that leaves it or is used twice in it.

    `x`, `y` and `dy` are the one input and the one output of the region (or node) and what comes
    in for that output; `dx` is what leaves, where the one input is all that can have a gradient.
    What there are several of goes by its name. Calls that built more than LIMIT nodes, or loops,
    have no formula.
    """
    boxes = [box for column in view.columns for box in column.within() if box.kind == "rule"]
    inside: dict[RuleCall, list[Node]] = {}
    for box in boxes:
        if isinstance(box.owner, RuleCall) and box.size <= LIMIT:
            inside.setdefault(box.owner, []).extend(box.members())
    for call in [c for c, nodes in inside.items() if _is_loop(nodes, view) or len(nodes) > LIMIT]:
        del inside[call]
    place = {n: i for i, n in enumerate(view.nodes)} if inside else {}
    for nodes in inside.values():
        nodes.sort(key=place.__getitem__)
    leaving = _leaving(view, inside)
    return {c: _Reader(c, nodes, leaving[c], view).formula() for c, nodes in inside.items()}


def _is_loop(nodes: Sequence[Node], view: View) -> bool:
    return any(n.op.bodies or n in view.bodies for n in nodes)


def _leaving(
    view: View, inside: Mapping[RuleCall, Sequence[Node]]
) -> dict[RuleCall, dict[Tensor, None]]:
    """What each call made that its sweep, the user or nobody reads: what it gave back.

    Derivatives of a higher order read the inside of a call too.
    """
    calls = {node: call for call, nodes in inside.items() for node in nodes}
    results = set(view.results)
    leaving: dict[RuleCall, dict[Tensor, None]] = {call: {} for call in inside}
    read: set[Tensor] = set()
    for reader in view.nodes:
        for t, _ in view.reads(reader):
            call = calls.get(t.node)
            if call is None:
                continue
            read.add(t)
            higher = reader.origin is not None and view.column[reader] > view.column[t.node]
            if calls.get(reader) is not call and not higher:
                leaving[call][t] = None
    for node, call in calls.items():
        leaving[call].update((t, None) for t in node.outputs if t in results or t not in read)
    return {
        call: {t: None for t in tensors if kind_of(t.node) != "constant"}
        for call, tensors in leaving.items()
    }


class _Reader:
    """Reads the formula of one call off its nodes.

    symbols  tensor -> what it is called
    """

    def __init__(
        self, call: RuleCall, nodes: Sequence[Node], leaving: Mapping[Tensor, None], view: View
    ) -> None:
        self.nodes = nodes
        self.view = view
        self.members = set(nodes)
        self.leaving = frozenset(leaving)
        self.uses = Counter(t for n in self.nodes for t in view.operands(n))
        self.symbols, self.only = self._symbols(call)

    def formula(self) -> Formula:
        """A line for each value that has a name, then what the letters stand for."""
        lines = []
        terms: dict[Tensor, Term] = {}
        for node in self.nodes:
            for t in node.outputs:
                term = self._term(t, terms)
                if t in self.leaving or (self._is_shared(t) and kind_of(node) != "constant"):
                    name = self._left(t)
                    lines.append(Equation(name, term))
                    term = Name(name)
                terms[t] = term
        stands = [f"{s}: {t.name}" for t, s in self.symbols.items() if s != _name(t)]
        return Formula(tuple(lines), tuple(stands))

    def _symbols(self, call: RuleCall) -> tuple[dict[Tensor, str], bool]:
        """What is read from outside by its symbol, and whether `dx` is what leaves."""
        inputs, outputs = _ends(call)
        outside = [t for t in self.uses if t.node not in self.members]
        ends = {*inputs, *outputs}
        variable = [t for t in inputs if t.dtype.kind in "fcV"]
        coming = [
            t
            for t in outside
            if t.node.origin is not None and kind_of(t.node) != "constant" and t not in ends
        ]
        short: dict[Tensor, str] = {}
        if len(inputs) == 1:
            short[inputs[0]] = "x"
        if len(outputs) == 1:
            short.setdefault(outputs[0], "y")
            if len(coming) == 1 and coming[0].type == outputs[0].type:
                short.setdefault(coming[0], "dy")
        only = len(variable) == len(inputs) == len(self.leaving) == 1
        taken = {_name(t) for t in outside if t not in short}
        if taken & {*short.values(), *(["dx"] if only else [])}:
            return {t: _name(t) for t in outside}, False
        return {t: short.get(t, _name(t)) for t in outside}, only

    def _left(self, t: Tensor) -> str:
        return "dx" if self.only and t in self.leaving else _name(t)

    def _is_shared(self, t: Tensor) -> bool:
        return self.uses[t] > 1

    def _term(self, t: Tensor, terms: Mapping[Tensor, Term]) -> Term:
        node = t.node
        if kind_of(node) == "constant":
            return _number(node)
        operands = [terms.get(read) or self._outside(read) for read in self.view.operands(node)]
        if node.type == "Identity":
            return operands[0]
        out = f"[{t.index}]" if len(node.outputs) > 1 else ""
        return Apply(node.type, tuple(operands), short_attrs(node, 200), out)

    def _outside(self, t: Tensor) -> Term:
        return _number(t.node) if kind_of(t.node) == "constant" else Name(self.symbols[t])


def _ends(call: RuleCall) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """What enters and leaves the region or node that a call was for."""
    site = call.site
    if isinstance(site, Region):
        boundary = boundary_of(site)
        return boundary.inputs, boundary.outputs
    return site.inputs, site.outputs


def _name(t: Tensor) -> str:
    node = t.node
    name = node.name if node.origin is None else local_name(node)
    return name if len(node.outputs) == 1 else f"{name}:{t.index}"


def _number(node: Node) -> Term:
    """A small constant's value, a large or named one's name."""
    if node._name is not None or np.size(node.attrs["value"]) > 4:
        return Name(local_name(node))
    return Literal(value_of(node))
