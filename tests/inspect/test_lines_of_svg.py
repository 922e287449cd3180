"""No line of a picture by Graphviz runs under a node that is not its end."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

import graphgrad as gg
from graphgrad.inspect.write import svg

from .random_nets import guided_cnn, two_gradients
from .seeing import log1pexp, nested
from .zoo import ZOO

pytestmark = pytest.mark.skipif(not svg.can_render(), reason="Graphviz is not installed")
PICTURES = {
    "training": ZOO["training"],
    "scan": ZOO["scan"],
    "nested": nested,
}
MORE = {
    "log1pexp": lambda: log1pexp(2),
    "cnn": lambda: guided_cnn()[0],
    "layers": lambda: two_gradients()[0],
    **{name: ZOO[name] for name in ("lstm20", "transformer2", "layers20")},
}


def points_of(element):
    """The corners of polygons and paths, and what ellipses reach."""
    if element.tag.endswith("ellipse"):
        cx, cy, rx, ry = (float(element.get(name)) for name in ("cx", "cy", "rx", "ry"))
        return [(cx - rx, cy - ry), (cx + rx, cy + ry)]
    found = [float(s) for s in re.findall(r"-?[\d.]+", element.get("points") or element.get("d"))]
    return list(zip(found[::2], found[1::2], strict=True))


def along(points):
    """Points 2 pt or less apart on a path of cubic curves."""
    for k in range(0, len(points) - 3, 3):
        curve = points[k : k + 4]
        steps = 4 + int(sum(abs(a - b) for a, b in zip(curve[0], curve[3], strict=True)))
        for i in range(steps + 1):
            t = i / steps
            shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield [sum(s * p[axis] for s, p in zip(shares, curve, strict=True)) for axis in (0, 1)]


def under_nodes(text):
    """(line, node) of each line that runs under a node, and how many lines there are."""
    rects, lines = {}, []
    for group in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}g"):
        name = group.findtext("{http://www.w3.org/2000/svg}title")
        shapes = [
            e for e in group.iter() if e.tag.rpartition("}")[2] in ("polygon", "path", "ellipse")
        ]
        if group.get("class") == "node" and shapes:
            xs, ys = zip(*itertools.chain(*map(points_of, shapes)), strict=True)
            rects[name] = (min(xs) + 1, min(ys) + 1, max(xs) - 1, max(ys) - 1)
        elif group.get("class") == "edge":
            line = next(e for e in shapes if e.tag.endswith("path"))
            lines.append((re.split(r"->", re.sub(r":\w+", "", name)), points_of(line)))
    found = set()
    for ends, points in lines:
        for (x, y), (node, (left, top, right, bottom)) in itertools.product(
            along(points), rects.items()
        ):
            if left < x < right and top < y < bottom and node not in ends:
                found.add((*ends, node))
    return found, len(lines)


@pytest.mark.parametrize(
    "pictures", [PICTURES, pytest.param(MORE, marks=pytest.mark.ci)], ids=["few", "more"]
)
def test_no_line_runs_under_a_node(pictures):
    for make in pictures.values():
        found, count = under_nodes(gg.to_svg(make()))
        assert found == set()
        assert count > 15


def test_straight_lines_would():
    text = gg.to_dot(PICTURES["training"]()).replace("graph [", "graph [splines=line, ", 1)
    made, _ = svg._run(svg._command("svg"), text, 60.0)
    assert len(under_nodes(made.decode())[0]) > 5
