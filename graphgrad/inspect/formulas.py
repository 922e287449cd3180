"""What the calls of rules built, as formulas: `dx = where(abs(x) <= 1.0, dy, 0.0)`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..ir.node import Node, Region, RuleCall, Tensor
from ..regions.boundary import boundary_of
from .view import View
from .wording import kind_of, local_name, short_attrs, value_of

__all__: list[str] = []

LIMIT = 40
"""A formula of more nodes is no help to a reader: there is none."""

_INFIX = {
    "Equal": ("==", 1),
    "NotEqual": ("!=", 1),
    "Less": ("<", 1),
    "LessEqual": ("<=", 1),
    "Greater": (">", 1),
    "GreaterEqual": (">=", 1),
    "Add": ("+", 2),
    "Subtract": ("-", 2),
    "Multiply": ("*", 3),
    "Divide": ("/", 3),
    "MatMul": ("@", 3),
    "Power": ("**", 5),
}
"""Op type -> its sign, and how tightly that binds, as in Python."""
_NEGATIVE, _ATOM = 4, 6


class Term(NamedTuple):
    """Part of a formula, and how tightly what is outermost in it binds."""

    text: str
    binds: int = _ATOM

    def within(self, binds: int) -> str:
        """It as an operand of what binds so tightly."""
        return self.text if self.binds >= binds else f"({self.text})"


def formulas_of(view: View) -> dict[RuleCall, str]:
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
    return {c: _Formula(c, nodes, leaving[c], view).text() for c, nodes in inside.items()}


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
    found: dict[RuleCall, dict[Tensor, None]] = {call: {} for call in inside}
    read: set[Tensor] = set()
    for reader in view.nodes:
        for t, _ in view.reads(reader):
            call = calls.get(t.node)
            if call is None:
                continue
            read.add(t)
            higher = reader.origin is not None and view.column[reader] > view.column[t.node]
            if calls.get(reader) is not call and not higher:
                found[call][t] = None
    for node, call in calls.items():
        found[call].update((t, None) for t in node.outputs if t in results or t not in read)
    return {
        call: {t: None for t in tensors if kind_of(t.node) != "constant"}
        for call, tensors in found.items()
    }


class _Formula:
    """The formula of one call.

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

    def text(self) -> str:
        """A line for each value that has a name, then what the letters stand for."""
        lines = []
        terms: dict[Tensor, Term] = {}
        for node in self.nodes:
            for t in node.outputs:
                term = self._term(t, terms)
                if t in self.leaving or (self._is_shared(t) and kind_of(node) != "constant"):
                    name = self._left(t)
                    lines.append(f"{name} = {term.text}")
                    term = Term(name)
                terms[t] = term
        stands = [f"{s}: {t.name}" for t, s in self.symbols.items() if s != _name(t)]
        return "\n".join(lines + ([f"({', '.join(stands)})"] if stands else []))

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
        attrs = short_attrs(node, 200)
        if node.type == "Negative":
            return Term(f"-{operands[0].within(_NEGATIVE + 1)}", _NEGATIVE)
        if node.type in _INFIX and len(operands) == 2 and not attrs:
            sign, binds = _INFIX[node.type]
            left, right = operands
            first = binds + 1 if sign == "**" or binds == 1 else binds
            return Term(f"{left.within(first)} {sign} {right.within(binds + 1)}", binds)
        words = ", ".join([o.text for o in operands] + ([attrs] if attrs else []))
        out = f"[{t.index}]" if len(node.outputs) > 1 else ""
        return Term(f"{_function(node.type)}({words}){out}")

    def _outside(self, t: Tensor) -> Term:
        return _number(t.node) if kind_of(t.node) == "constant" else Term(self.symbols[t])


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
        return Term(local_name(node))
    text = value_of(node)
    return Term(text, _NEGATIVE if text.startswith("-") else _ATOM)


def _function(type: str) -> str:
    """`sum` of ReduceSum, `sum_to_shape` of SumToShape."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type).lower().removeprefix("reduce_")
