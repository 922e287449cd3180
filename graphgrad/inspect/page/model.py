"""What the page knows of graphs: tables of plain values, for JSON.

Nodes, regions and rule calls stand in tables and are named by their place in them. A frame is one
picture of some of them; the same node in several frames is one row. Text is printable: control,
combining and bidi characters are spelled out.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base import kinds
from ...base.errors import GraphGradError
from ...base.position import Position, show, source_line
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.op import OP_TYPES
from ...ir.types import TensorType, size_of
from ...regions.boundary import boundary_of
from ...regions.rules import BuiltinRule, Rule, as_rule
from ..scene.boxes import BodyMark, Box, Bypass, NameScope, Owner, Part
from ..scene.matching import Matches
from ..scene.operators import parameters_of
from ..scene.scene import behind
from ..scene.view import View
from ..scene.wording import (
    call_title,
    kind_of,
    region_title,
    rule_of,
    short_attrs,
    short_type,
    shortened,
    sites_on,
    stamp_name,
    value_of,
    visible,
)
from .file import FileTables
from .formula_math import Element, equation_math
from .formula_text import equation_text, formula_text
from .formulas import Formula, formulas_of

__all__ = ["Overlays", "model_of"]

Overlays = Mapping[str, Mapping[Any, Any]]

_TEXT_LIMIT = 2000
_KINDS = ("op", "input", "variable", "constant")


def model_of(
    title: str, views: Sequence[tuple[str, View]], overlays: Overlays, compare: bool
) -> dict[str, Any]:
    """Everything that the page shows.

    views     (title, view) of each frame
    overlays  name -> tensor or node -> number
    compare   whether the page opens with differences to the frame before
    """
    matches = Matches([view for _, view in views])
    tables = _Tables(
        {n: text for _, view in views for n, text in view.stands_for().items()},
        {n: "".join(f"{p}/" for p in view.scope[n]) for _, view in views for n in view.homes},
        {call: lines for _, view in reversed(views) for call, lines in formulas_of(view).items()},
    )
    file = FileTables(view for _, view in views)
    frames = [_frame(name, view, tables, matches, file) for name, view in views]
    shown = [_overlay(name, numbers, matches) for name, numbers in overlays.items()]
    rows = tables.rows()
    return {
        "title": visible(title),
        "file": file.rows(tables.nodes),
        "compare": compare,
        "reason": visible(
            shortened(next((v.reason for _, v in views if v.reason), ""), _TEXT_LIMIT)
        ),
        "frames": frames,
        "overlays": shown,
        **rows,
    }


# --- tables -----------------------------------------------------------------------------------


class _Strings:
    """Texts, each once."""

    def __init__(self) -> None:
        self.all: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.all.setdefault(text, len(self.all))


class _Tables:
    """Rows of nodes, regions and calls, and what they refer to."""

    def __init__(
        self,
        stands_for: Mapping[Node, str],
        homes: Mapping[Node, str],
        formulas: Mapping[RuleCall, Formula],
    ) -> None:
        self._stands_for, self._homes, self._formulas = stands_for, homes, formulas
        self.math: dict[int, list[tuple[str, Element]]] = {}
        self.strings = _Strings()
        self.types: dict[TensorType, int] = {}
        self.lines: dict[Position, int] = {}
        self.nodes: dict[Node, int] = {}
        self.regions: dict[Region, int] = {}
        self.calls: dict[RuleCall, int] = {}

    def node(self, node: Node) -> int:
        return self.nodes.setdefault(node, len(self.nodes))

    def region(self, region: Region) -> int:
        return self.regions.setdefault(region, len(self.regions))

    def call(self, call: RuleCall) -> int:
        return self.calls.setdefault(call, len(self.calls))

    def type(self, type: TensorType) -> int:
        return self.types.setdefault(type, len(self.types))

    def line(self, position: Position | None) -> int:
        return -1 if position is None else self.lines.setdefault(position, len(self.lines))

    def text(self, text: str) -> int:
        return self.strings(visible(shortened(text, _TEXT_LIMIT)))

    def tensor(self, t: Tensor) -> list[int]:
        return [self.node(behind(t)[0].node), behind(t)[0].index]

    def origin(self, origin: Node | RuleCall | None) -> int:
        """-1: the user's. 2 n: derived from node n. 2 c + 1: built by call c."""
        if origin is None:
            return -1
        if isinstance(origin, RuleCall):
            return 2 * self.call(origin) + 1
        return 2 * self.node(origin)

    def owner(self, owner: Owner | None) -> int:
        """-1: none. 2 r: region r. 2 c + 1: call c."""
        if owner is None:
            return -1
        return 2 * self.call(owner) + 1 if isinstance(owner, RuleCall) else 2 * self.region(owner)

    def rows(self) -> dict[str, Any]:
        """All tables, the rows that rows refer to included."""
        nodes: list[list[Any]] = []
        regions: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        while True:
            if len(nodes) < len(self.nodes):
                nodes += [self._node(n) for n in list(self.nodes)[len(nodes) :]]
            elif len(regions) < len(self.regions):
                regions += [self._region(r) for r in list(self.regions)[len(regions) :]]
            elif len(calls) < len(self.calls):
                calls += [self._call(c) for c in list(self.calls)[len(calls) :]]
            else:
                break
        return {
            "nodes": [list(column) for column in zip(*nodes, strict=True)],
            "regions": regions,
            "calls": calls,
            "types": [[visible(short_type(t)), _bytes(t)] for t in self.types],
            "lines": [[visible(show(p)), visible(source_line(p))] for p in self.lines],
            "says": {type: self.strings(_lines(_formula(type))) for type in self._types()},
            "math": self.math,
            "strings": list(self.strings.all),
        }

    def _types(self) -> list[str]:
        return list(dict.fromkeys(visible(n.type) for n in self.nodes))

    def _node(self, node: Node) -> list[Any]:
        """One value for each column: kind, name (-1: scope, op type and index), index, op type,
        short attributes, attributes, type or types, line, scope, region, origin, stamp, sites of
        tensors."""
        kind = kind_of(node)
        types = [self.type(t.type) for t in node.outputs]
        brief = value_of(node) if kind == "constant" else short_attrs(node)
        brief = self._stands_for.get(node, brief)
        return [
            _KINDS.index(kind),
            -1 if node._name is None else self.text(node._name),
            node.index,
            self.text(node.type),
            self.text(brief),
            self.strings(_pairs(node.attrs)),
            types[0] if len(types) == 1 else types,
            self.line(node.position),
            self.text(self._scope(node)),
            -1 if node.region is None else self.region(node.region),
            self.origin(node.origin),
            -1 if node.stamp is None else self.text(stamp_name(node)),
            self.text(sites) if (sites := sites_on(node)) else -1,
        ]

    def _scope(self, node: Node) -> str:
        """The scope in which it is shown, where its name says so too."""
        home = self._homes.get(node, node.scope)
        return home if node.name.startswith(home) else node.scope

    def _region(self, region: Region) -> dict[str, Any]:
        boundary = None if region.open else boundary_of(region)
        return {
            "title": visible(region_title(region)),
            "name": visible(shortened(region.name, _TEXT_LIMIT)),
            "index": region.index,
            "kind": region.kind,
            "parent": -1 if region.parent is None else self.region(region.parent),
            "line": self.line(region.position),
            "origin": self.origin(region.origin),
            "inputs": [self.tensor(t) for t in boundary.inputs] if boundary else [],
            "outputs": [self.tensor(t) for t in boundary.outputs] if boundary else [],
            "attrs": _pairs(region.attrs),
            **self._rule(_rule_named(region)),
        }

    def _call(self, call: RuleCall) -> dict[str, Any]:
        site = call.site
        return {
            "title": visible(call_title(call)),
            "name": visible(shortened(call.rule, _TEXT_LIMIT)),
            "region": self.region(site) if isinstance(site, Region) else -1,
            "node": -1 if isinstance(site, Region) else self.node(site),
            "formula": self._built(call),
            **self._rule(rule_of(call)),
        }

    def _built(self, call: RuleCall) -> int:
        """The formula of what a call built, as text; -1: none. Its lines are in `math` too."""
        formula = self._formulas.get(call)
        if formula is None:
            return -1
        text = self.strings(_lines(formula_text(formula)))
        if text not in self.math:
            self.math[text] = [
                (visible(equation_text(line)), equation_math(line)) for line in formula.lines
            ]
        return text

    def _rule(self, rule: Rule | None) -> dict[str, Any]:
        """Where a rule was registered, what it declares itself to be, its docstring and code."""
        if rule is None:
            return {"rule": -1, "builtin": False, "contract": "", "says": -1, "code": -1}
        return {
            "rule": self.line(rule.position),
            "builtin": isinstance(rule, BuiltinRule),
            "contract": "" if rule.contract is None else rule.contract.kind,
            "says": self.strings(_lines(inspect.getdoc(rule.fn) or "")),
            "code": self.strings(_lines(_code_of(rule))),
        }


def _rule_named(region: Region) -> Rule | None:
    """The rule of a region; None for a group, and where it is not registered any more."""
    if region.rule is None:
        return None
    try:
        return as_rule(region.rule)
    except GraphGradError:
        return None


def _formula(type: str) -> str:
    """What an op type says of itself: its formula, and that of its gradient."""
    op = OP_TYPES.get(type)
    return "" if op is None else (inspect.getdoc(op) or "").partition("\n\n")[0]


def _code_of(rule: Rule) -> str:
    """The source of a rule's function; '' where it cannot be read."""
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(rule.fn)))
    except (OSError, TypeError, ValueError):
        return ""


def _lines(text: str) -> str:
    """Printable text, line by line."""
    return "\n".join(map(visible, shortened(text, _TEXT_LIMIT).split("\n")))


def _bytes(type: TensorType) -> int:
    """Bytes of a tensor; -1 where a length is unknown."""
    size = size_of(type.shape)
    return -1 if size is None else size * type.dtype.itemsize


def _pairs(attrs: Mapping[str, Any]) -> str:
    """`name = value`, a line each; of arrays a line for each row."""
    return "\n".join([f"{k} = {_lines(shortened(_value(v), 400))}" for k, v in attrs.items()])


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=20, edgeitems=3, separator=", ")
    return repr(value)


# --- frames -----------------------------------------------------------------------------------

_EDGES = (
    "data",
    "input",
    "capture",
    "output",
    "dy",
    "dx",
    "saved",
    "residual",
    "gradient",
    "control",
    "loop",
)


def _frame(
    title: str, view: View, tables: _Tables, matches: Matches, file: FileTables
) -> dict[str, Any]:
    boxes = [box for column in view.columns for box in column.within()]
    place = {box: i for i, box in enumerate(boxes)}
    nodes = [tables.node(n) for n in view.nodes]
    keys = [matches.key[n] for n in view.nodes]
    return {
        "title": visible(title),
        "nodes": nodes,
        "key": [] if keys == nodes else keys,
        "box": [place[view.box[n]] for n in view.nodes],
        "height": [view.height.get(n, -1) for n in view.nodes],
        "boxes": [_box(box, place, tables, matches) for box in boxes],
        "shut": [place[box] for box in view.collapsed],
        "operators": [
            [place[b], list(map(visible, view.operator_rows(b)))]
            for b in boxes
            if view.is_operator(b)
        ],
        "files": file.of_boxes(place),
        "parameters": parameters_of(view.present),
        "oneLine": tables.line(view.one_line),
        "mirror": [[place[box], place[twin]] for box, twin in view.mirror.items() if box.parent],
        "columns": [[box.column, box.title] for box in view.columns],
        "pairs": [[tables.node(n) for n in (f, *b)] for f, b in view.pairs.items()],
        "results": [tables.tensor(t) for t in view.results],
        "failed": [tables.node(n) for n in view.failed],
        "edges": _edges(view, tables),
    }


def _box(box: Box, place: Mapping[Box, int], tables: _Tables, matches: Matches) -> list[Any]:
    """Place of the box around it (-1: none), kind, what it is of, and a key where there is one.

    What it is of is the number of a column, a title, or a row of the regions or calls. Boxes of
    several frames that stand for each other have the same key.
    """
    around = -1 if box.parent is None else place[box.parent]
    owner = box.owner
    what: Any = box.column
    if isinstance(owner, Region):
        what = tables.region(owner)
    elif isinstance(owner, RuleCall):
        what = tables.call(owner)
    elif isinstance(owner, NameScope | BodyMark | Bypass | Part):
        what = visible(box.title)
    mark = owner.call if isinstance(owner, Bypass) else owner
    if isinstance(mark, Region | RuleCall):
        return [around, box.kind, what, matches.mark(mark)]
    return [around, box.kind, what]


def _edges(view: View, tables: _Tables) -> list[list[Any]]:
    """Columns: source, its output (-1: control), target, kind, tag, owner, operand; then copies.

    owner  -1: none. 2 r: region r. 2 c + 1: call c.
    copies the edges whose source, a constant, is drawn in the box of the target
    """
    rows = []
    copies = []
    for place, edge in enumerate(view.edges):
        owner = edge.owner
        rows.append(
            (
                tables.node(edge.source),
                -1 if edge.tensor is None else edge.tensor.index,
                tables.node(edge.target),
                _EDGES.index(edge.kind),
                tables.text(edge.tag),
                tables.owner(owner),
                tables.text(edge.operand),
            )
        )
        if kind_of(edge.source) == "constant" and view.place_of_source(edge) != view.place(
            edge.source
        ):
            copies.append(place)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(7)]
    return [*columns, copies]


# --- overlays ---------------------------------------------------------------------------------


def _overlay(name: str, numbers: Mapping[Any, Any], matches: Matches) -> dict[str, Any]:
    """Keys of nodes, outputs (-1: the node), numbers; what is in no picture is left out."""
    if not isinstance(numbers, Mapping):
        raise TypeError(f"overlay {name!r} is a dict of tensor or node to number, got {numbers!r}")
    nodes: dict[Node, None] = {}
    for key in numbers:
        if not isinstance(key, Tensor | Node):
            raise TypeError(f"overlay {name!r} is for tensors or nodes, got the key {key!r}")
        nodes[key.node if isinstance(key, Tensor) else key] = None
    elsewhere = matches.of(list(nodes))
    rows = []
    for key, value in numbers.items():
        node = key.node if isinstance(key, Tensor) else key
        counterpart = elsewhere.get(node, node)
        if counterpart in matches.key:
            out = key.index if isinstance(key, Tensor) else -1
            rows.append((matches.key[counterpart], out, _number(value, name, node)))
    if not rows:
        raise ValueError(
            f"overlay {name!r} has {len(numbers)} numbers, and none is of a node that is shown"
        )
    return {
        "name": visible(shortened(name, 200)),
        "rows": [list(column) for column in zip(*rows, strict=True)],
    }


def _number(value: Any, name: str, node: Node) -> float | str:
    """A float; what JSON has no number for as text."""
    array = np.asarray(value)
    if array.size != 1 or kinds.kind_of(array.dtype) not in "biuf":
        raise TypeError(
            f"overlay {name!r} must have one real number per node, got "
            f"{shortened(repr(value), 80)} for {node.name} ({node.where})"
        )
    number = float(array.reshape(()))
    return number if math.isfinite(number) else str(number)
