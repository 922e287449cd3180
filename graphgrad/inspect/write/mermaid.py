"""Mermaid: flow charts for places that render them out of text, such as READMEs and issues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir.node import Region, RuleCall
from ..layout.colours import BYPASSED, COLUMNS, DIFF, FAILED, KINDS, REGIONS, SCOPE, STAMPED, Tint
from ..layout.items import Link, PictureItem
from ..layout.labels import Labels
from ..layout.picture import Picture, site_in
from ..scene.boxes import Box
from ..scene.escape import for_mermaid, for_page, shortened, visible
from ..scene.view import view_of
from ..scene.wording import kind_of

__all__ = ["to_mermaid"]

_SHAPES = {
    "input": ("([", "])"),
    "variable": ("[(", ")]"),
    "constant": (">", "]"),
    "op": ("(", ")"),
    "box": ("[[", "]]"),
}
_CLASSES = {
    **{kind: f"fill:{fill},stroke:#4a5a70" for kind, (_, fill) in KINDS.items()},
    "op": "fill:#eaf1fc,stroke:#4a5a70",
    "grad": "fill:#fbf0e2,stroke:#4a5a70",
    "box": f"fill:{SCOPE.fill},stroke:{SCOPE.line},stroke-width:2px",
    "failed": f"fill:{FAILED.fill},stroke:{FAILED.line},stroke-width:4px",
    "bypassed": f"fill:{BYPASSED.fill},stroke:{BYPASSED.line},stroke-dasharray:4 3",
    "added": f"fill:{DIFF['added'][1].fill},stroke:{DIFF['added'][1].line},stroke-width:2px",
    "removed": f"fill:{DIFF['removed'][1].fill},stroke:{DIFF['removed'][1].line},"
    "stroke-dasharray:4 3",
    "changed": f"fill:{DIFF['changed'][1].fill},stroke:{DIFF['changed'][1].line}",
}


def to_mermaid(shown: Any, **options: Any) -> str:
    """A Mermaid flow chart of what can be shown.

    Columns, scopes, regions and spliced rules are subgraphs. Mermaid cannot mirror: gradients stand
    below what they are gradients of. Many places render at most 500 edges, so collapse what is
    larger.

    Parameters:
        shown: as for to_dot.
        **options: those of to_dot.

    Returns: the chart's text.

    Raises: the errors of to_dot.

    >>> gg.to_mermaid(gg.constant(1.0)).splitlines()[0]
    'flowchart TB'
    """
    return "".join(_MermaidWriter(Picture(view_of(shown, **options))).text())


def _yaml(title: str) -> str:
    """A title as a YAML string. There Mermaid knows no references, but looks for directives."""
    return for_page(visible(shortened(title, 120))).replace("%", "\\u0025")


class _MermaidWriter:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.view = picture.view
        self.labels = Labels(picture.view)
        self.tint = {r: REGIONS[i % len(REGIONS)] for i, r in enumerate(self.view.regions)}
        self.used: dict[str, None] = {}

    def text(self) -> Iterator[str]:
        if self.view.title:
            yield f"---\ntitle: {_yaml(self.view.title)}\n---\n"
        yield "flowchart TB\n"
        yield from self._boxes()
        styles = []
        for i, link in enumerate(self.picture.links):
            yield self._link(link)
            if link.edge.owner is not None:
                line = self._tint(link.edge.owner).line
                styles.append(f"linkStyle {i} stroke:{line},stroke-width:3px\n")
        for name in self.used:
            yield f"classDef {name} {_CLASSES[name]}\n"
        yield from styles

    def _boxes(self) -> Iterator[str]:
        stack: list[Box | str] = list(reversed(self.view.columns))
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                yield item
                continue
            pad = "  " * min(item.depth, 20)
            yield f'{pad}subgraph {item.id}["{for_mermaid(item.title, 80)}"]\n'
            for inner in self.picture.inside[item]:
                yield f"{pad}  {self._item(inner)}\n"
            stack.append(f"{pad}end\n{self._box_style(item)}")
            stack.extend(b for b in reversed(item.boxes) if self.picture.is_open(b))

    def _box_style(self, box: Box) -> str:
        tint = COLUMNS[box.column % 2] if box.kind == "column" else SCOPE
        if isinstance(box.owner, Region | RuleCall):
            tint = self._tint(box.owner)
        dashes = ",stroke-dasharray:6 4" if box.kind in ("region", "bypass") else ""
        fill = "none" if box.kind in ("region", "scope") else tint.ground
        return f"style {box.id} fill:{fill},stroke:{tint.line},color:{tint.line}{dashes}\n"

    def _item(self, item: PictureItem) -> str:
        kind = "box" if item.node is None else kind_of(item.node)
        before, after = _SHAPES[kind]
        rows = [for_mermaid(row) for row in self.labels.rows(item)]
        if item.node in self.view.bypassed:
            rows = [f"<s>{row}</s>" for row in rows]
        name = self._class(item, kind)
        self.used[name] = None
        return f'{item.id}{before}"{"<br/>".join(rows)}"{after}:::{name}'

    def _class(self, item: PictureItem, kind: str) -> str:
        if any(n in self.view.failed for n in self.labels.nodes(item)):
            return "failed"
        if item.node in self.view.bypassed:
            return "bypassed"
        status = self.labels.status(item) if self.view.status else ""
        if status:
            return status
        return "grad" if kind == "op" and item.inside.column % 2 else kind

    def _link(self, link: Link) -> str:
        dotted = link.edge.kind in ("saved", "residual", "capture", "control")
        arrow = "-.->" if dotted or link.edge.status == "removed" else "-->"
        arrow = "==>" if link.edge.owner is not None and arrow == "-->" else arrow
        words = for_mermaid(link.words(), 60)
        return f'{link.source.id} {arrow}|"{words}"| {link.target.id}\n'

    def _tint(self, owner: Any) -> Tint:
        site = site_in(owner)
        return self.tint.get(site, REGIONS[0]) if isinstance(site, Region) else STAMPED
