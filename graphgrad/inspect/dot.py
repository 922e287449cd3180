"""DOT text: the forward part on the left, its gradients mirrored on the right.

Edges of mirrored gradients are written from the reader to what it reads, with dir=back, so that a
node and its gradient can share a rank. Bytes depend on the graph alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..ir.node import Node, Region, RuleCall
from ..ir.types import TensorType
from .view import Box, Edge, Owner, Place, View, behind, view_of
from .wording import (
    Lines,
    about,
    kind_of,
    short_attrs,
    short_name,
    short_type,
    shortened,
    stamp_name,
    value_of,
)

__all__ = ["to_dot", "write_dot"]

SAVED_LIMIT = 300
NAME_LIMIT, TOOLTIP_LIMIT = 40, 600

_HEAD = """\
digraph graphgrad {
graph [rankdir=TB, compound=true, newrank=true, nodesep=0.4, ranksep=0.5, fontname="Helvetica", \
fontsize=14, labelloc=t, bgcolor="white", tooltip=" "];
node [shape=box, style="rounded,filled", fillcolor="#eef4ff", color="#4a5a70", \
fontname="Helvetica", fontsize=10, margin="0.12,0.06"];
edge [fontname="Helvetica", fontsize=8, color="#555555", fontcolor="#444444", arrowsize=0.7];
"""
_COLUMNS = (
    ("#7a9cc6", "#f8fafd", "#eaf1fc"),
    ("#c6a27a", "#fdfaf6", "#fbf0e2"),
)
"""Line, background and nodes of the user's columns and of the derived ones."""
_COLOURS = (
    ("#c8403b", "#fdeceb", "#f8cdca"),
    ("#00795c", "#e6f5f0", "#bfe5d8"),
    ("#1f62a8", "#e8f1fa", "#c5dcf2"),
    ("#9a5b00", "#fbf2e2", "#f2dcb3"),
    ("#a8347f", "#fbeaf4", "#f1c8e1"),
    ("#4d6b00", "#f2f6e3", "#dbe7b4"),
)
"""Line, background and nodes of a region and of the rule spliced for it, in turn."""
_STAMPED = ("#6a3fb0", "#f1ecfa", "#d9ccf2")
_KINDS = {
    "input": 'shape=ellipse, style=filled, fillcolor="#d9f2d9"',
    "variable": 'shape=ellipse, style=filled, fillcolor="#fff3cd"',
    "constant": 'shape=note, style=filled, fillcolor="#f4f4f4", fontsize=9, height=0.3',
}
_EDGES = {
    "capture": ", style=dashed, arrowhead=odiamond",
    "saved": ', style=dotted, color="#8a8a8a", fontcolor="#8a8a8a"',
    "residual": ', style=dotted, color="#a8347f", fontcolor="#a8347f", arrowhead=onormal',
    "control": ', style=dashed, color="#999999"',
}


def to_dot(shown: Any, *, title: str | None = None, saved_edges: bool | str = "auto") -> str:
    """The DOT text of a graph, or of tensors (any nesting, such as [loss, *grads]) and ancestors.

    Marked regions are dashed boxes, spliced rules filled ones of the same colour; what crosses
    them is thick. Every edge carries its type, such as f32[64,N].

    title        default: the graph's name, if it was given one
    saved_edges  whether to draw (dotted) what gradients read of the forward part: True, False, or
                 "auto": up to 300 nodes

    The boundaries of the regions shown are settled by this. TypeError for what is no graph and no
    tensor, GraphError for tensors of different graphs.
    """
    if saved_edges not in (True, False, "auto"):
        raise ValueError(f'saved_edges is True, False or "auto", got {saved_edges!r}')
    view = view_of(shown, title)
    if saved_edges == "auto":
        saved_edges = len(view.nodes) <= SAVED_LIMIT
    return "".join(_Writer(view).text(bool(saved_edges)))


def write_dot(path: str | os.PathLike[str], shown: Any, **options: Any) -> None:
    """Write to_dot(shown, **options) to a file."""
    Path(path).write_text(to_dot(shown, **options), encoding="ascii", newline="\n")


# --- escaping ---------------------------------------------------------------------------------

_plain = re.compile(r"[ -~]*")
_special = re.compile(r'[^ -~]|[\\"&<>]')
_ENTITIES = {"\\": "\\\\", '"': '\\"', "&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escaped(text: str, limit: int = TOOLTIP_LIMIT) -> str:
    """The inside of a quoted DOT string that shows this text: ASCII, one line, not too long.

    Letters of any script become character references, other characters outside printable ASCII
    (line ends, control, bidi and combining marks) are spelled out, as \\n and \\u202e.
    """
    text = shortened(text, limit)
    if _special.search(text) is None:
        return text
    return _special.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    c = match[0]
    found = _ENTITIES.get(c)
    if found is not None:
        return found
    if c.isalnum():
        return f"&#{ord(c)};"
    return "\\" + c.encode("unicode_escape").decode("ascii")


def quoted(*lines: str, limit: int = NAME_LIMIT) -> str:
    """A quoted DOT string of these lines, each escaped."""
    return '"' + "\\n".join([escaped(line, limit) for line in lines]) + '"'


# --- writing ----------------------------------------------------------------------------------


class _Writer:
    """One picture: the view, and what has been looked up for it."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lines = Lines()
        self.types: dict[TensorType, str] = {}
        self.colour = {r: _COLOURS[i % len(_COLOURS)] for i, r in enumerate(view.regions)}
        self.results: dict[Node, list[str]] = {}
        for i, t in enumerate(view.results):
            self.results.setdefault(behind(t)[0].node, []).append(f"result {i}")
        self.ids: dict[Node, dict[Place, str]] = {}
        self.copies: dict[Place, list[tuple[Node, str]]] = {}
        self._place_constants()

    def _place_constants(self) -> None:
        """Ids of what is drawn elsewhere than it was built, or more than once."""
        for edge in self.view.edges:
            place, node = self.view.place_of_source(edge), edge.source
            if kind_of(node) == "constant" and place not in self.ids.setdefault(node, {}):
                known = self.ids[node]
                serial = f"_{len(known)}" if known else ""
                known[place] = f"n{self.view.number[node]}{serial}"
                self.copies.setdefault(place, []).append((node, known[place]))

    def text(self, saved: bool) -> Iterator[str]:
        yield _HEAD
        if self.view.title:
            yield f"label={quoted(self.view.title, limit=120)};\n"
        yield from self._boxes()
        yield from self._anchors()
        number = self.view.number
        for node, beside in self.view.pairs.items():
            row = " -> ".join(f"n{number[n]}" for n in (node, *beside))
            yield f"{{rank=same; {row} [style=invis];}}\n"
        for edge in self.view.edges:
            if saved or edge.kind not in ("saved", "residual"):
                yield self._edge(edge)
        yield "}\n"

    def _boxes(self) -> Iterator[str]:
        columns = self.view.columns
        stack: list[Box | str] = list(reversed(columns))
        serial = 0
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                yield item
                continue
            yield f"subgraph cluster_{serial} {{\n{self._box_style(item, len(columns) > 1)}"
            serial += 1
            place = self.view.place(item.nodes[0]) if item.nodes else None
            for node in item.nodes:
                if node not in self.ids:
                    yield self._node(node, f"n{self.view.number[node]}")
            for node, name in self.copies.get(place, ()) if place else ():
                yield self._node(node, name)
            stack.append("}\n")
            stack.extend(reversed(item.boxes))

    def _anchors(self) -> Iterator[str]:
        """Invisible nodes above and below that keep the columns in order from left to right."""
        tops: list[tuple[str, Node]] = []
        bottoms: list[tuple[str, Node]] = []
        columns = self.view.column
        for box in self.view.columns if len(self.view.columns) > 1 else []:
            members = [n for n in self.view.nodes if columns[n] == box.column]
            first, last = members[0], members[-1]
            tops.append((f"top{box.column}", last if box.column == 1 else first))
            if box.column < 2:
                bottoms.append((f"bottom{box.column}", first if box.column == 1 else last))
        for row, rank in ((tops, "min"), (bottoms, "max")):
            for anchor, node in row:
                name = f"n{self.view.number[node]}"
                ends = (anchor, name) if rank == "min" else (name, anchor)
                yield f'{anchor} [label="", group={anchor}, style=invis, shape=point, width=0];\n'
                yield f"{name} [group={anchor}];\n{' -> '.join(ends)} [style=invis];\n"
            if row:
                chain = " -> ".join(anchor for anchor, _ in row)
                yield f"{{rank={rank}; {chain} [style=invis];}}\n"

    def _box_style(self, box: Box, framed: bool) -> str:
        text = quoted(box.title, limit=160)
        title = f"label={text}; tooltip={text};"
        if box.owner is None:
            line, ground, fill = _COLUMNS[box.column % 2]
            frame = f'color="{line}"; bgcolor="{ground}"; style=rounded;'
            frame = frame if framed else "peripheries=0;"
            title = title if framed else 'label="";'
            return f'{title} fontsize=12; fontcolor="{line}"; {frame}\nnode [fillcolor="{fill}"];\n'
        line, ground, fill = self._colours(box.owner)
        if isinstance(box.owner, Region):
            style = f'style="rounded,dashed"; bgcolor="transparent"; color="{line}"'
        else:
            style = f'style="rounded,filled"; fillcolor="{ground}"; color="{line}"'
            style += f'; node [fillcolor="{fill}"]'
        return f'{title} labeljust=l; fontsize=11; fontcolor="{line}"; penwidth=2; {style};\n'

    def _colours(self, owner: Owner) -> tuple[str, str, str]:
        site = owner.site if isinstance(owner, RuleCall) else owner
        return self.colour.get(site, _COLOURS[0]) if isinstance(site, Region) else _STAMPED

    def _node(self, node: Node, name: str) -> str:
        style = ""
        kind = kind_of(node)
        if kind in _KINDS:
            style += f", {_KINDS[kind]}"
        if node.stamp is not None:
            style += f', color="{_STAMPED[0]}", penwidth=2, style="rounded,filled,dashed"'
        if node in self.results:
            style += ", penwidth=3"
        label = quoted(*self._label(node, kind))
        tooltip = "\\n".join([escaped(row, 200) for row in about(node).split("\n")])
        return f'{name} [label={label}, tooltip="{tooltip}"{style}];\n'

    def _label(self, node: Node, kind: str) -> list[str]:
        name, given = short_name(node), node._name is not None
        if kind == "constant":
            return [name, value_of(node)] if given else [value_of(node)]
        rows = [name]
        if given:
            rows.append(node.type)
        if kind == "op" and (attrs := short_attrs(node)):
            rows.append(attrs)
        if node.stamp is not None:
            rows.append(f'override "{stamp_name(node)}"')
        if not isinstance(node.origin, RuleCall) and (why := self.lines.why(node)):
            rows.append(why)
        if node in self.results:
            rows.append(", ".join(self.results[node]))
        return rows

    def _edge(self, edge: Edge) -> str:
        place = self.view.place_of_source(edge)
        a, b = self._id(edge.source, place), self._id(edge.target, None)
        label = self._edge_label(edge)
        column = place[0]
        if column != self.view.column[edge.target] or edge.kind == "residual":
            style = f'xlabel="{label}"' + ("" if self._falls(edge) else ", constraint=false")
        elif column == 1:
            a, b = b, a
            style = f'label="{label}", dir=back'
        else:
            style = f'label="{label}"'
        if edge.owner is not None:
            line = self._colours(edge.owner)[0]
            style += f', color="{line}", fontcolor="{line}", penwidth=2'
        return f"{a} -> {b} [{style}{_EDGES.get(edge.kind, '')}];\n"

    def _id(self, node: Node, place: Place | None) -> str:
        known = self.ids.get(node)
        return known[place] if known and place else f"n{self.view.number[node]}"

    def _falls(self, edge: Edge) -> bool:
        """Whether an edge over to the mirrored gradients leads down."""
        height, column = self.view.height, self.view.column
        a, b = edge.source, edge.target
        return column[a] == 0 and column[b] == 1 and height[a] < height[b]

    def _edge_label(self, edge: Edge) -> str:
        t = edge.tensor
        if t is None:
            return "control"
        text = self.types.get(t.type)
        if text is None:
            text = self.types[t.type] = escaped(short_type(t.type), 60)
        if len(t.node.outputs) > 1:
            text = f":{t.index} {text}"
        return f"{edge.tag} {text}" if edge.tag else text
