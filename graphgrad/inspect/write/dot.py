"""DOT text: the forward part on the left, its gradients mirrored on the right.

Edges of mirrored gradients are written from the reader to what it reads, with dir=back, so that a
node and its gradient can share a rank. Bytes depend on the graph alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from ...base.collector import collector_paused
from ...base.flags import truth
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.properties import ModelProperties, properties_of
from ...ir.region_tree import sites_at
from ...ir.tensor_sites import makes_sited
from ..layout.colours import (
    BYPASSED,
    BYPASSED_STYLE,
    COLUMNS,
    COMPARED,
    DIFF,
    EDGES,
    FAILED,
    HEAD,
    KINDS,
    REGIONS,
    SCOPE,
    STAMPED,
    Tint,
)
from ..layout.items import Link, PictureItem
from ..layout.labels import Labels
from ..layout.picture import Picture, site_in
from ..scene.boxes import Box
from ..scene.collapse import Collapse
from ..scene.edges import Edge
from ..scene.escape import for_dot, for_markup, quoted
from ..scene.operators import parameters_of
from ..scene.overlay import Values, number_text
from ..scene.view import View, view_of
from ..scene.wording import kind_of

__all__ = ["to_dot", "write_dot"]


def to_dot(
    shown: Any,
    *,
    title: str | None = None,
    saved_edges: bool | str = "auto",
    collapse: Collapse = "auto",
    scopes: bool = True,
    hide: Iterable[Any] = (),
    overlay: Values = None,
    failed: Any = None,
    bypassed: bool = False,
    made_by: dict[Node, str] | None = None,
) -> str:
    """The DOT text of a graph, or of tensors (any nesting, such as [loss, *grads]) and ancestors.

    Marked regions are dashed boxes, spliced rules filled ones of the same colour; what crosses them
    is thick. Every edge carries its type, such as f32[64,N]. The boundaries of the regions shown
    are settled by this.

    Parameters:
        shown: a graph, tensors, a compiled function, a program, a model of gg.onnx.load, a single
            node or region with what is around it, or what `graph_diff` returns.
        title: default: the graph's name, if it was given one.
        saved_edges: whether to draw (dotted) the edges from the forward pass into gradients: True,
            False, or "auto": up to 300 nodes.
        collapse: boxes that are drawn as one node: "auto" (above 120 nodes, all but the outer ones
            that there is room for), "none", "all" (the outermost ones), or a list of regions and
            of names, which may be patterns, of scopes ("encoder/*"), rules ("ste") and regions
            ("#0").
        scopes: whether name scopes are boxes.
        hide: nodes and op types that are left out.
        overlay: {tensor or node: number}, or an Overlay: shown as colours, with a legend.
        failed: what failed, ringed: a node, a tensor, a name, an exception, or a list of these.
        bypassed: whether to show, struck through, the default gradients that rules were used
            instead of.
        made_by: {node: the pass that made it}, of a PassRecord.

    Returns: text for Graphviz, in ASCII.

    Raises: TypeError for what cannot be shown, or an unknown option; ValueError for another
    collapse or saved_edges; GraphError for tensors of different graphs.

    Source: the DOT language of Graphviz [Gansner et al. 1993, "A technique for drawing directed
    graphs"].

    >>> x = gg.placeholder((2,), name="x")
    >>> gg.to_dot(gg.exp(x)).startswith("digraph")
    True
    """
    truth("scopes", scopes)
    truth("bypassed", bypassed)
    view = view_of(
        shown,
        title=title,
        saved_edges=saved_edges,
        collapse=collapse,
        scopes=scopes,
        hide=hide,
        overlay=overlay,
        failed=failed,
        bypassed=bypassed,
        made_by=made_by,
    )
    return dot_of(view)


@collector_paused
def dot_of(view: View, ordered: bool = True) -> str:
    """The DOT text of a view; ordered: with the edges that keep boxes below each other."""
    return "".join(_DotWriter(Picture(view)).text(ordered))


def write_dot(path: str | os.PathLike[str], shown: Any, **options: Any) -> None:
    """Write to_dot(shown, **options) to a file.

    Parameters:
        path: the file, which is replaced.
        shown: as for to_dot.
        **options: those of to_dot.

    Returns: nothing.

    Raises: the errors of to_dot; OSError where the file cannot be written.

    >>> import os
    >>> gg.write_dot(os.devnull, gg.constant(1.0))
    """
    Path(path).write_text(to_dot(shown, **options), encoding="ascii", newline="\n")


def _of_file(said: ModelProperties, view: View) -> str:
    """`ONNX by pytorch 2.13.0, ai.onnx 17, 11,684,712 parameters`."""
    return f"{said.short()}, {parameters_of(view.present)[0]:,} parameters"


class _DotWriter:
    """One picture: the view, and what has been looked up for it."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.view = view = picture.view
        self.labels = Labels(view)
        sites = {s: None for n in view.nodes for t in n.outputs for s in sites_at(t)}
        tinted = enumerate(dict.fromkeys((*view.regions, *sites)))
        self.tint = {r: REGIONS[i % len(REGIONS)] for i, r in tinted}
        self.words: dict[str, str] = {}
        self.said = self._said()

    def _said(self) -> set[Tensor]:
        """What has its type on an edge within a column: edges to other columns need not say it."""
        own = [k for k in self.picture.links if k.source.inside.column == k.target.inside.column]
        tensors = [(k.edge.kind, k.tensors()) for k in own]
        return {carried[0] for kind, carried in tensors if len(carried) == 1 and kind != "residual"}

    def text(self, ordered: bool) -> Iterator[str]:
        """The lines."""
        yield HEAD
        yield self._title()
        yield from self._boxes()
        yield from self._anchors()
        for row in self.picture.pairs():
            yield f"{{rank=same; {' -> '.join(i.id for i in row)} [style=invis];}}\n"
        for above, below in self.picture.ordering() if ordered else ():
            yield f"{above.id} -> {below.id} [style=invis];\n"
        for link in self.picture.links:
            yield self._link(link)
        yield "}\n"

    # --- the title and the legend -------------------------------------------------------------

    def _title(self) -> str:
        view = self.view
        said = properties_of(view.nodes)
        notes = [] if said is None else [_of_file(said, view)]
        notes += [f"failed: {view.reason}"] if view.reason else []
        notes += [f"{view.hidden} nodes are hidden"] if view.hidden else []
        rows = [(row, 15) for row in [view.title] if row] + [(row, 11) for row in notes]
        rows += [(row, 9) for row in self._key()]
        cells = [
            f'<tr><td><font point-size="{size}">{for_markup(row, 200)}</font></td></tr>'
            for row, size in rows
        ]
        legend = self._legend()
        if legend:
            row = f'<table border="0" cellspacing="3"><tr>{legend}</tr></table>'
            cells.append(f"<tr><td>{row}</td></tr>")
        table = "".join(cells)
        return f'label=<<table border="0" cellspacing="2">{table}</table>>;\n' if table else ""

    def _key(self) -> list[str]:
        """What the strokes mean, of those that are there."""
        kinds = {link.edge.kind for link in self.picture.links}
        boxes = {b.kind for column in self.view.columns for b in column.within()}
        said = {
            "dashed box: marked region": "region" in boxes,
            "dashed node: in a site of tensors": any(map(makes_sited, self.view.nodes)),
            "filled box: the rule spliced for it": "rule" in boxes,
            "thick: over its boundary": any(map(self._owner_tint, self.picture.links)),
            "dotted: saved for the gradient": "saved" in kinds,
            "bold: on to the next run of a loop": "loop" in kinds,
            "dotted, hollow: residual of a region": "residual" in kinds,
            "struck through: not used": self.view.bypassed,
        }
        shown = [words for words, there in said.items() if there]
        return ["   |   ".join(shown[i : i + 4]) for i in range(0, len(shown), 4)]

    def _legend(self) -> str:
        overlay = self.view.overlay
        if overlay is not None:
            name = for_markup(overlay.title or "overlay", 60)
            cells = [
                f'<td bgcolor="{overlay.colour(v)}" width="52"><font point-size="9" '
                f'color="{overlay.ink(v)}">{number_text(v)}</font></td>'
                for v in overlay.legend()
            ]
            return f'<td><font point-size="10">{name}</font></td>{"".join(cells)}'
        if self.view.status:
            counts = Counter(self.view.status.values())
            cells = [
                f'<td bgcolor="{tint.fill}" color="{tint.line}" border="1"><font point-size="9">'
                f"{mark} {counts[word]} {word}</font></td>"
                for word, (mark, tint, _) in DIFF.items()
                if word
            ]
            return "".join(cells)
        return ""

    # --- boxes ---------------------------------------------------------------------------------

    def _boxes(self) -> Iterator[str]:
        columns = self.view.columns
        stack: list[Box | str] = list(reversed(columns))
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                yield item
                continue
            yield f"subgraph cluster_{item.id} {{\n{self._box_style(item, len(columns) > 1)}"
            for inner in self.picture.inside[item]:
                yield self._item(inner)
            stack.append("}\n")
            stack.extend(b for b in reversed(item.boxes) if self.picture.is_open(b))

    def _box_style(self, box: Box, framed: bool) -> str:
        text = quoted(box.title, limit=160)
        title = f"label={text}; tooltip={text};"
        tint = self._box_tint(box)
        if box.kind == "column":
            frame = f'color="{tint.line}"; bgcolor="{tint.ground}"; style=rounded;'
            frame = frame if framed else 'color="white"; style=rounded;'
            title = title if framed else 'label="";'
            node = f'\nnode [fillcolor="{tint.fill}"];\n'
            return f'{title} fontsize=13; fontcolor="{tint.line}"; {frame}{node}'
        width, style, node = "1", 'style=rounded; bgcolor="transparent"', ""
        if box.kind == "region":
            width, style = "2", 'style="rounded,dashed"; bgcolor="transparent"'
        elif box.kind == "rule":
            width, style = "2", f'style="rounded,filled"; fillcolor="{tint.ground}"'
            node = f'; node [fillcolor="{tint.fill}"]'
        elif box.kind == "body":
            style = 'style="rounded,dotted"; bgcolor="transparent"'
        elif box.kind == "bypass":
            style = 'style="rounded,dashed"; bgcolor="#f6f6f6"'
        line = f'color="{tint.line}"; fontcolor="{tint.line}"; penwidth={width}'
        return f"{title} labeljust=l; fontsize=11; {line}; {style}{node};\n"

    def _box_tint(self, box: Box) -> Tint:
        if isinstance(box.owner, Region | RuleCall):
            return self._tint(site_in(box.owner))
        if box.kind == "column":
            return COLUMNS[box.column % 2]
        return BYPASSED if box.kind == "bypass" else SCOPE

    def _tint(self, site: Region | Node | None) -> Tint:
        if self.view.status:
            return COMPARED
        return self.tint.get(site, REGIONS[0]) if isinstance(site, Region) else STAMPED

    def _anchors(self) -> Iterator[str]:
        """Invisible nodes above and below that keep the columns in order from left to right."""
        if len(self.view.columns) < 2:
            return
        members: dict[int, list[PictureItem]] = {}
        for item in self.picture.items:
            members.setdefault(item.inside.column, []).append(item)
        tops: list[str] = []
        bottoms: list[str] = []
        for column, items in sorted(members.items()):
            ordered = sorted(items, key=lambda item: item.level)
            tops.append(f"top{column}")
            yield self._anchor(tops[-1], ordered[0].id, above=True)
            if column < 2:
                bottoms.append(f"bottom{column}")
                yield self._anchor(bottoms[-1], ordered[-1].id, above=False)
        for row, rank in ((tops, "min"), (bottoms, "max")) if bottoms else ((tops, "min"),):
            yield f"{{rank={rank}; {' -> '.join(row)} [style=invis];}}\n"

    def _anchor(self, name: str, beside: str, above: bool) -> str:
        ends = (name, beside) if above else (beside, name)
        return (
            f'{name} [label="", style=invis, shape=point, width=0];\n'
            f"{' -> '.join(ends)} [style=invis];\n"
        )

    # --- nodes -----------------------------------------------------------------------------------

    def _item(self, item: PictureItem) -> str:
        rows = self.labels.rows(item)
        tooltip = "\\n".join([for_dot(row, 200) for row in self.labels.tooltip(item)])
        struck = item.node in self.view.bypassed
        label = _struck(rows) if struck else quoted(*rows, limit=40 if item.box is None else 60)
        style = BYPASSED_STYLE if struck else self._item_style(item)
        return f'{item.id} [label={label}, tooltip="{tooltip}"{style}];\n'

    def _item_style(self, item: PictureItem) -> str:
        """Attributes in order; what is written later counts."""
        node = item.node
        style = self._box_item_style(item) if node is None else self._kind_style(node)
        if self.view.status:
            status = self.labels.status(item)
            _, tint, drawn = DIFF[status]
            line = tint.line
            if not status and node is not None and node.stamp is not None:
                line, drawn = COMPARED.line, f"{drawn},dashed"
            style += f', fillcolor="{tint.fill}", color="{line}", style="{drawn}"'
        if node in self.labels.results:
            style += ", penwidth=3"
        value = self.labels.value(item)
        overlay = self.view.overlay
        if overlay is not None and value is None:
            style += ', fillcolor="#ffffff"'  # on no scale
        if overlay is not None and value is not None:
            style += f', fillcolor="{overlay.colour(value)}", fontcolor="{overlay.ink(value)}"'
            if not isfinite(value):
                style += f', style="rounded,filled,dashed", color="{FAILED.line}", penwidth=2'
        if self.view.failed and any(n in self.view.failed for n in self.labels.nodes(item)):
            style += (
                f', color="{FAILED.line}", fillcolor="{FAILED.fill}", penwidth=3, peripheries=2'
            )
        return style

    def _kind_style(self, node: Node) -> str:
        sites = [site for t in node.outputs for site in sites_at(t)]
        if sites:
            rim = f', color="{self._tint(sites[0]).line}", penwidth=2'
            return f'{self._plain_style(node)}{rim}, style="rounded,filled,dashed"'
        return self._plain_style(node)

    def _plain_style(self, node: Node) -> str:
        kind = kind_of(node)
        if kind in KINDS:
            shape, fill = KINDS[kind]
            small = ", fontsize=9, height=0.25" if kind == "constant" else ""
            return f', shape={shape}, style=filled, fillcolor="{fill}"{small}'
        if node.stamp is not None:
            return f', color="{STAMPED.line}", penwidth=2, style="rounded,filled,dashed"'
        return ""

    def _box_item_style(self, item: PictureItem) -> str:
        box = item.box
        assert box is not None
        tint = self._box_tint(box)
        line = f', color="{tint.line}", fontcolor="{tint.line}", fillcolor="{tint.ground}"'
        if box.kind == "region":
            return f'{line}, penwidth=2, peripheries=2, style="rounded,filled,dashed"'
        if box.kind == "rule":
            return f', color="{tint.line}", fillcolor="{tint.fill}", penwidth=2, peripheries=2'
        return f"{line}, shape=box3d, style=filled"

    # --- edges -----------------------------------------------------------------------------------

    def _link(self, link: Link) -> str:
        edge, a, b = link.edge, link.source, link.target
        label = self._words(link.words())
        owner = self._owner_tint(link)
        here, there = a.inside.column, b.inside.column
        plain = a.box is None and b.box is None and self._is_of_one_graph(edge)
        ends = f"{a.id} -> {b.id}"
        if here != there or edge.kind == "residual":
            tensors = link.tensors()
            known = owner is None and tensors and self.said.issuperset(tensors)
            style = f'{"tooltip" if known else "xlabel"}="{label}"'
            style += f', xlabel="{link.operand}"' if known and link.operand else ""
            style += ", constraint=false"  # else the columns may change sides
        elif edge.kind == "loop":
            style = f'xlabel="{label}", constraint=false'
        elif here == 1:
            ends = f"{b.id} -> {a.id}"
            style = f'label="{label}", dir=back'
            style += "" if plain or b.level < a.level else ", constraint=false"
        else:
            style = f'label="{label}"'
            style += "" if plain or a.level < b.level else ", constraint=false"
        style += EDGES.get(edge.kind, "")
        if owner is not None:
            style += f', color="{owner.line}", fontcolor="{owner.line}", penwidth=2'
        if edge.target in self.view.bypassed:
            style += f', color="{BYPASSED.line}", fontcolor="{BYPASSED.line}", style=dashed'
        if edge.status:
            _, tint, drawn = DIFF[edge.status]
            style += f', color="{tint.line}", fontcolor="{tint.line}"'
            if edge.kind not in ("saved", "residual"):
                style += f", style={'dashed' if 'dashed' in drawn else 'bold'}"
        return f"{ends} [{style}];\n"

    def _owner_tint(self, link: Link) -> Tint | None:
        """The colour of the region or rule into or out of which a link leads, or of a marked op."""
        edge = link.edge
        if edge.owner is not None:
            return self._tint(site_in(edge.owner))
        marked = edge.source.stamp is not None or edge.target.stamp is not None
        return self._tint(None) if marked and edge.kind == "data" else None

    def _is_of_one_graph(self, edge: Edge) -> bool:
        """Whether it says what stands above what: edges of two graphs may run in a circle."""
        status = self.view.status
        ends = status.get(edge.source), status.get(edge.target)
        return edge.status != "removed" or ends == ("removed", "removed")

    def _words(self, text: str) -> str:
        escaped = self.words.get(text)
        if escaped is None:
            escaped = self.words[text] = for_dot(text, 60)
        return escaped


def _struck(rows: list[str]) -> str:
    return f"<{'<br/>'.join([f'<s>{for_markup(row)}</s>' for row in rows])}>"
