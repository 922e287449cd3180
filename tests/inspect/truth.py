"""What pictures say, read back: every node, edge, type, box, line and count, beside the graph.

`told(graph)` says what is so, by a walk of its own over the graph. The readers say what a picture
tells. Both are Told, so that they are compared as they are.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import NamedTuple
from xml.etree import ElementTree

from graphgrad.base.position import show
from graphgrad.inspect.write.text import graph_text
from graphgrad.ir.node import Region, RuleCall
from graphgrad.ir.residual import Residual
from graphgrad.regions.boundary import boundary_of

from .pages import model_in
from .seeing import read

COLUMNS = (
    *("kind", "name", "index", "op", "brief", "attrs"),
    *("type", "line", "scope", "region", "origin", "stamp", "tensors"),
)
"""Of the table of nodes in a page."""


class Told(NamedTuple):
    """What is told of a graph.

    nodes   name of each node -> its line, in the user's code or rule; '' where it was derived
    edges   (from, to, what stands on it): how often
    inside  name of each node -> the boxes of regions and rule calls around it, outermost first;
            but for constants that rules share, which stand with each of their readers
    counts  regions and rule calls
    """

    nodes: dict[str, str]
    edges: Counter
    inside: dict[str, tuple]
    counts: tuple[int, int]


# --- as it is ------------------------------------------------------------------------------------


def told(results) -> Told:
    """What is so of tensors and what they are computed from."""
    nodes = shown(results)
    inside = {n: marks_around(n.region, n.origin) for n in nodes}
    marks = {m for n, around in inside.items() if not is_private(n) for m in around}
    edges = Counter((name_in(s), n.name, words) for n in nodes for s, words in edges_into(n))
    return Told(
        {n.name: line_of(n) for n in nodes if not is_number(n)},
        edges,
        {n.name: around for n, around in inside.items() if not (is_private(n) or is_number(n))},
        (sum(isinstance(m, Region) for m in marks), sum(isinstance(m, RuleCall) for m in marks)),
    )


def shown(results):
    """The nodes that results are computed from, in order of building."""
    found, stack = set(), [t.node for t in results]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [t.node for t in node.inputs]
    real = [n for n in found if type(n.op) is not Residual]
    return sorted(real, key=lambda n: n.index)


def marks_around(region, origin) -> tuple:
    """The regions and rule calls around what has this region and origin, outermost first."""
    if region is None:
        return (origin,) if isinstance(origin, RuleCall) else ()
    if region.origin is origin:
        return (*marks_around(region.parent, origin), region)
    around = marks_around(region, region.origin)
    return (*around, origin) if isinstance(origin, RuleCall) else around


def edges_into(node):
    """What a node reads, each tensor once, with its type and which operands it is."""
    behind = []
    for t in node.inputs:
        while type(t.node.op) is Residual:
            t = t.node.inputs[0]
        behind.append(t)
    for t in dict.fromkeys(behind):
        places = [str(i) for i, other in enumerate(behind) if other is t]
        operand = f"arg {','.join(places)}" if len(behind) > 1 else ""
        if node.type in ("Add", "Multiply", "Equal", "NotEqual", "AddN"):
            operand = f"x{len(places)}" if len(places) > 1 else ""
        output = f":{t.index}" if len(t.node.outputs) > 1 else ""
        written = "" if is_number(t.node) else type_text(t.type)
        yield t.node, " ".join(filter(None, (operand, output, written)))


def type_text(type):
    kind = {"f": "f", "i": "i", "b": "bool"}[type.dtype.kind]
    bits = "" if kind == "bool" else 8 * type.dtype.itemsize
    return f"{kind}{bits}[{','.join(map(str, type.shape))}]"


def is_private(node):
    return node.type == "Constant" and node.origin is not None


def is_number(node):
    """Whether it is one number without a name, which pictures write on the nodes that read it."""
    return node.type == "Constant" and node._name is None and not node.outputs[0].type.shape


def name_in(node):
    """How edges call a node: what is one number by its value."""
    return f"={node.attrs['value'][()]}" if is_number(node) else node.name


def numbers_on(rows, name):
    """The edges that stand on a node: `arg 1 = 2.0`, `with 2.0`."""
    for row in rows:
        if found := re.fullmatch(r"(?:(arg [\d,]+) =|with) (\S+)", row):
            yield f"={found[2]}", name, found[1] or ""


def line_of(node):
    """The user's line, or that of the user's rule."""
    if node.origin is not None and not isinstance(node.origin, RuleCall):
        return ""
    return "" if node.position is None else show(node.position)


# --- as pictures tell it --------------------------------------------------------------------------


def same_boxes(told_inside, picture_inside) -> bool:
    """Whether boxes of a picture and marks of a graph are the same, one to one."""
    there, back = {}, {}
    if told_inside.keys() != picture_inside.keys():
        return False
    for name, marks in told_inside.items():
        boxes = picture_inside[name]
        if len(boxes) != len(marks):
            return False
        for mark, (box, title) in zip(marks, boxes, strict=True):
            if there.setdefault(mark, box) != box or back.setdefault(box, mark) is not mark:
                # one rule call may have parts in two columns, never the other way round
                return False
            if not names(title, mark):
                return False
    return True


def names(title, mark) -> bool:
    """Whether a title says which region or rule call it is of."""
    if isinstance(mark, Region):
        return f'"{mark.name}" #{mark.index}' in title
    site = f"#{mark.site.index}" if isinstance(mark.site, Region) else mark.site.name
    return title.startswith(f'spliced "{mark.rule}" for {site}')


def without_tags(words, results, source, target):
    """What stands on an edge without `in 0`, `out 1`, `dy`, `saved`, which are looked at here."""
    graph = results[0].graph
    found = re.match(r"(?:(in|out) (\d+)(?: \(capture\))?(, )?)+", words)
    for way, place in re.findall(r"\b(in|out) (\d+)", words) if found else ():
        ends = [
            (boundary_of(r).inputs if way == "in" else boundary_of(r).outputs)
            for r in graph.regions
        ]
        there = [ts[int(place)].node.name for ts in ends if int(place) < len(ts)]
        assert source in there, (words, source, target)
    tag = r"(in \d+( \(capture\))?|out \d+|dy|dx|saved|residual|capture|undeclared out)"
    return re.sub(rf"^({tag}(, | |$))+", "", words)


def of_dot(text, results) -> Told:
    """What a DOT text tells."""
    nodes, inside, name_of, edges = {}, {}, {}, Counter()
    for around, row in rows_of_dot(text):
        if found := re.fullmatch(r"(n\d+(?:_\d+)?) \[(.*)\];", row):
            about = read(attributes(found[2])["tooltip"]).split("\n")
            name, place = about[0], next(row for row in about if row.startswith("at "))
            style = attributes(found[2])
            if style.get("shape") == "note" and about[-1].endswith("[]"):
                name_of[found[1]] = f"={read(style['label'])}"
                continue
            name_of[found[1]] = name
            edges.update(numbers_on(read(style["label"]).split("\n"), name))
            nodes[name] = "" if place.startswith("at gradient of") else place[3:]
            derived = name.startswith("gradients/")
            if not (derived and about[1].startswith("Constant(")):
                inside[name] = tuple(box for box in around if _is_mark(box[1]))
        elif found := re.fullmatch(r"(n\w+) -> (n\w+) \[(.*)\];", row):
            style = attributes(found[3])
            if style.get("style") == "invis":
                continue
            ends = [name_of[found[1]], name_of[found[2]]]
            a, b = reversed(ends) if style.get("dir") == "back" else ends
            words = read(next(style[k] for k in ("tooltip", "label", "xlabel") if k in style))
            words = without_tags(words, results, a, b)
            edges[a, b, re.sub(r" ?\S+\[\]$", "", words) if a.startswith("=") else words] += 1
    return Told(nodes, edges, inside, _counts(inside))


def rows_of_dot(text):
    """Each line of a DOT text of ours with the boxes around it: (id, title), outermost first."""
    around: list[tuple[str, str]] = []
    rows = iter(text.splitlines())
    for row in rows:
        if found := re.match(r"subgraph cluster_(\w+) \{", row):
            around.append((found[1], read(attributes(next(rows))["label"])))
        elif row == "}" and around:
            around.pop()
        else:
            yield tuple(around), row


def attributes(text):
    return dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|<.*>|[^,;\] ]+)', text))


def _is_mark(title):
    return re.match(r'(override|custom_gradient|group|spliced) "', title) is not None


def _counts(inside):
    boxes = {box for around in inside.values() for box in around}
    calls = sum(title.startswith("spliced") for _, title in boxes)
    return len(boxes) - calls, calls


def of_mermaid(text, results) -> Told:
    """What a Mermaid flow chart tells; it has names in boxes and no lines of derived nodes."""
    nodes, inside, name_of, around, edges = {}, {}, {}, [], Counter()
    own = {f"n{n.index}": n for n in shown(results)}
    for row in text.splitlines():
        row = row.strip()
        if found := re.match(r'subgraph (\w+)\["(.*)"\]$', row):
            around.append((found[1], _plain(found[2])))
        elif row == "end":
            around.pop()
        elif found := re.match(r'(n\d+)(?:_\d+)?([(\[>]+)"(.*)"[)\]]+:::', row):
            node, rows = own[found[1]], _plain(found[3]).split("\n")
            assert node.type == "Constant" or node.name.endswith(rows[0]), (node, rows)
            name_of[found[1]] = name_in(node)
            if is_number(node):
                continue
            edges.update(numbers_on(rows, node.name))
            said = line_of(node) if node.type == "Constant" or line_of(node) in rows else ""
            nodes[node.name] = said
            if not is_private(node):
                inside[node.name] = tuple(box for box in around if _is_mark(box[1]))
        elif found := re.match(r'(n\d+)(?:_\d+)? \S+\|"(.*)"\| (n\d+)', row):
            a, b = name_of[found[1]], name_of[found[3]]
            words = without_tags(_plain(found[2]), results, a, b)
            edges[a, b, re.sub(r" ?\S+\[\]$", "", words) if a.startswith("=") else words] += 1
    return Told(nodes, edges, inside, _counts(inside))


def _plain(words):
    return html.unescape(re.sub(r"#(\d+);", r"&#\1;", words).replace("<br/>", "\n"))


def of_page(page, results) -> Told:
    """What the tables of a page tell."""
    model = model_in(page)
    frame = model["frames"][0]
    columns = [
        "kind",
        "name",
        "index",
        "op",
        "brief",
        "attrs",
        "type",
        "line",
        "scope",
        "region",
        "origin",
        "stamp",
        "tensors",
    ]
    table = dict(zip(columns, model["nodes"], strict=True))
    strings = model["strings"]

    def number(n):
        constant = strings[table["op"][n]] == "Constant" and table["name"][n] < 0
        return constant and model["types"][table["type"][n]][0].endswith("[]")

    def called(n):
        return f"={strings[table['brief'][n]]}" if number(n) else name(n)

    def name(n):
        if table["name"][n] >= 0:
            return strings[table["name"][n]]
        return f"{strings[table['scope'][n]]}{strings[table['op'][n]]}_{table['index'][n]}"

    nodes, inside, edges = {}, {}, Counter()
    for n, box in zip(frame["nodes"], frame["box"], strict=True):
        if number(n):
            continue
        line = table["line"][n]
        nodes[name(n)] = "" if line < 0 else model["lines"][line][0]
        if not (strings[table["op"][n]] == "Constant" and table["origin"][n] >= 0):
            inside[name(n)] = tuple(_page_boxes(model, frame, box))
    for a, out, b, kind, tag, _owner, operand in zip(*frame["edges"][:7], strict=True):
        types = table["type"][a]
        types = types if isinstance(types, list) else [types]
        output = f":{out}" if len(types) > 1 else ""
        written = "" if number(a) else model["types"][types[out]][0]
        words = " ".join(filter(None, (strings[operand], output, written)))
        assert kind != 9
        without_tags(strings[tag], results, name(a), name(b))
        edges[called(a), name(b), words] += 1
    return Told(nodes, edges, inside, _counts(inside))


def _page_boxes(model, frame, box):
    """The boxes of regions and rules around a place, as the page's script keeps them apart."""
    found, key = [], []
    around = []
    while box >= 0:
        around.append(frame["boxes"][box])
        box = around[-1][0]
    for _, kind, what, *mark in reversed(around):
        key.append(f"{kind}:{mark[0] if mark else what}")
        if kind in ("region", "rule"):
            title = model["regions" if kind == "region" else "calls"][what]["title"]
            found.append(("/".join(key), title))
    return found


def of_svg(text) -> tuple[Counter, dict[str, set[str]]]:
    """What a laid out picture tells: the edges between ids, and id -> the boxes drawn around it."""
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    boxes, nodes, edges = {}, {}, Counter()
    for group in root.iter(f"{space}g"):
        title = group.findtext(f"{space}title") or ""
        shape = [
            e for e in group.iter() if e.tag.rpartition("}")[2] in ("polygon", "path", "ellipse")
        ]
        if group.get("class") == "cluster":
            boxes[title.removeprefix("cluster_")] = _bounds(shape[0])
        elif group.get("class") == "node" and re.fullmatch(r"n\d+(_\d+)?", title):
            nodes[title] = _bounds(shape[0])
        elif group.get("class") == "edge" and re.match(r"n\d+(_\d+)?->n", title) and shape:
            edges[tuple(re.sub(r"_\d+", "", title).split("->"))] += 1
    inside = {
        name: {box for box, around in boxes.items() if _within(at, around)}
        for name, at in nodes.items()
    }
    return edges, inside


def _bounds(shape):
    if shape.tag.endswith("ellipse"):
        x, y, rx, ry = (float(shape.get(k)) for k in ("cx", "cy", "rx", "ry"))
        return x - rx, y - ry, x + rx, y + ry
    numbers = [float(v) for v in re.findall(r"-?[\d.]+", shape.get("points") or shape.get("d"))]
    xs, ys = numbers[::2], numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _within(inner, outer):
    return (
        outer[0] <= inner[0] + 1
        and outer[1] <= inner[1] + 1
        and inner[2] <= outer[2] + 1
        and inner[3] <= outer[3] + 1
    )


def of_text(results) -> tuple[dict[str, tuple], dict[str, tuple], tuple[int, ...]]:
    """What a listing tells: name -> (types, op, operands, line), titles around, counts."""
    rows = graph_text(results, style="list").splitlines()
    counts = tuple(
        map(int, re.search(r"(\d+) nodes?, (\d+) regions?, (\d+) spliced", rows[0]).groups())
    )
    made, inside, around = {}, {}, []
    for row in rows[1:]:
        depth = row[2:].count("| ")
        words = row[2:].replace("| ", "").strip()
        if row.startswith("results:") or not row.startswith("  "):
            around = []
        elif _is_mark(words):
            around = [*around[:depth], re.sub(r"( \(continued\)|: \(.*)$", "", words)]
        else:
            name, types, op, args, why = re.fullmatch(
                r'(\S+): (.*) = (\w+)\((.*?)\)(?: override "[^"]*")?(?:\s{2,}(.*))?', words
            ).groups()
            made[name] = (types, op, args, why or "")
            inside[name] = tuple(around[:depth])
    return made, inside, counts
