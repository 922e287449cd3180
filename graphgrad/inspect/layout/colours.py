"""Colours and strokes of every picture. Shapes, dashes and words say the same as the colours."""

from __future__ import annotations

from typing import NamedTuple


class Tint(NamedTuple):
    """The line, the background and the nodes of a box."""

    line: str
    ground: str
    fill: str


COLUMNS = (Tint("#5b7fae", "#f8fafd", "#eaf1fc"), Tint("#a98250", "#fdfaf6", "#fbf0e2"))
"""Of the user's columns, and of the derived ones."""
REGIONS = (
    Tint("#c8403b", "#fdeceb", "#f8cdca"),
    Tint("#00795c", "#e6f5f0", "#bfe5d8"),
    Tint("#1f62a8", "#e8f1fa", "#c5dcf2"),
    Tint("#9a5b00", "#fbf2e2", "#f2dcb3"),
    Tint("#a8347f", "#fbeaf4", "#f1c8e1"),
    Tint("#4d6b00", "#f2f6e3", "#dbe7b4"),
)
"""Of a region and of the rule spliced for it, in turn."""
STAMPED = Tint("#6a3fb0", "#f1ecfa", "#d9ccf2")
"""Of nodes under an op-type map, and of the rules spliced for them."""
COMPARED = Tint("#4b5563", "#f3f4f6", "#e5e7eb")
"""Of all of these in a comparison: there a colour says what was added, removed and changed."""
BYPASSED = Tint("#737373", "#f6f6f6", "#ececec")
SCOPE = Tint("#6e7781", "#f3f4f6", "#f3f4f6")
FAILED = Tint("#d40000", "#fff0f0", "#ffd6d6")
DIFF = {
    "added": ("+", Tint("#1a7f37", "#eefbf1", "#d3f2da"), "rounded,filled,bold"),
    "removed": ("-", Tint("#b42318", "#fff1ef", "#fddcd8"), "rounded,filled,dashed"),
    "changed": ("~", Tint("#8a5d00", "#fffaeb", "#fdedb8"), "rounded,filled"),
    "": ("", Tint("#9aa2ab", "#fafbfc", "#f4f5f6"), "rounded,filled"),
}
"""Mark, tint and style of what a comparison says of a node."""
KINDS = {
    "input": ("ellipse", "#d9f2d9"),
    "variable": ("cylinder", "#fff3cd"),
    "constant": ("note", "#f4f4f4"),
}
"""Shape and fill of what is not computed."""
EDGES = {
    "capture": ", style=dashed, arrowhead=odiamond",
    "saved": ', style=dotted, color="#737373", fontcolor="#666666"',
    "residual": ', style=dotted, color="#a8347f", fontcolor="#a8347f", arrowhead=onormal',
    "loop": ', style=bold, color="#2f6f4f", fontcolor="#2f6f4f"',
    "control": ', style=dashed, color="#999999"',
}
BYPASSED_STYLE = (
    f', style="rounded,dashed,filled", color="{BYPASSED.line}", fontcolor="#5f5f5f", '
    f'fillcolor="{BYPASSED.fill}"'
)
HEAD = """\
digraph graphgrad {
graph [rankdir=TB, compound=true, newrank=true, nodesep=0.3, ranksep=0.35, fontname="Helvetica", \
fontsize=15, labelloc=t, bgcolor="white", tooltip=" "];
node [shape=box, style="rounded,filled", fillcolor="#eaf1fc", color="#4a5a70", \
fontname="Helvetica", fontsize=10, margin="0.12,0.05", height=0.35];
edge [fontname="Helvetica", fontsize=8, color="#555555", fontcolor="#444444", arrowsize=0.7];
"""
