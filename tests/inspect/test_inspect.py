"""Pictures and listings: what stands in them, that they are safe to read back, and their size."""

from __future__ import annotations

import io
import subprocess
import sys
import time
import warnings

import numpy as np
import pydot
import pytest

import graphgrad as gg
from graphgrad.inspect import svg
from graphgrad.inspect.dot import escaped, to_dot, write_dot
from graphgrad.inspect.svg import RenderError, to_svg
from graphgrad.inspect.text import graph_text, print_graph
from graphgrad.inspect.view import view_of
from graphgrad.ir.errors import GraphError
from graphgrad.ops.arithmetic import abs, maximum, sign
from graphgrad.ops.exponential import exp, log
from graphgrad.ops.logic import where
from graphgrad.ops.reductions import sum
from graphgrad.ops.sources import placeholder, variable

HOSTILE = [
    'quote " and \\ and \\N',
    "back\\",
    "line\nbreak\r\ttab",
    "</script><!-- &lt; & <b>",
    "bidi \u202e txt \u2066 \u200f",
    "null \x00 esc \x1b[31m",
    "n" * 1000,
    "größe 形 \U0001f600",
    "graph } subgraph { a -> b; // # /*",
    "%s {} {0} \\l\\r\\G",
]


def ste(site, dy):
    return tuple(gg.sum_to(where(abs(x) <= 1.0, dy, 0.0), like=x) for x in site.inputs)


def marked():
    """sign under a region, exp under a stamp, and the gradients of both."""
    with gg.Graph() as g:
        x = placeholder(("N", 4), "float32", name="x")
        w = variable(np.ones(4, np.float32), name="w")
        with gg.override_gradient(ste):
            s = sign(x * w)
        with gg.gradient_override_map({"Exp": lambda op, dy: maximum(dy, 0.0)}):
            e = exp(s)
        loss = sum(e * 2.0)
        grads = gg.gradients([loss], [x, w])
    return g, loss, grads


def log1pexp(order):
    @gg.custom_gradient
    def log1pexp(x):
        e = exp(x)
        return log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    with gg.Graph():
        x = placeholder((), name="x")
        tensors = [log1pexp(x)]
        for _ in range(order):
            tensors += gg.gradients([tensors[-1]], [x])
    return tensors


def parsed(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pydot's own calls of pyparsing
        (graph,) = pydot.graph_from_dot_data(text)
    return graph


def boxes(graph):
    """Every subgraph cluster by its title, with the ids of the nodes directly inside."""
    found, stack = {}, [graph]
    while stack:
        here = stack.pop()
        stack += here.get_subgraphs()
        if here.get_name().startswith("cluster"):
            names = {n.get_name() for n in here.get_nodes()} - {"node", "edge", "graph"}
            found[here.get_label()] = names
    return found


def edges(graph):
    return [e for e in graph.get_edges() if e.get("style") != "invis"]


def titled(found, start):
    (names,) = [names for title, names in found.items() if title.startswith(f'"{start}')]
    return names


# --- what is shown ----------------------------------------------------------------------------


def test_columns_regions_and_spliced_rules():
    g, loss, grads = marked()
    found = boxes(parsed(to_dot([loss, *grads])))
    here = "test_inspect.py:"
    assert any(t.startswith(f'"override \\"ste\\" #0 ({here}') for t in found)
    assert any(t.startswith(f'"spliced \\"ste\\" for #0 ({here}') for t in found)
    assert any("for Exp_" in t for t in found)
    forward, backward = titled(found, "forward"), titled(found, "backward")
    assert {"n0", "n1"} <= forward
    assert f"n{loss.node.index}" in forward
    assert f"n{loss.node.index + 1}" in backward
    assert f"n{grads[1].node.index}" in titled(found, 'spliced \\"ste')
    region = g.regions[0]
    assert {f"n{n.index}" for n in g.nodes if n.region is region} == titled(
        found, 'override \\"ste'
    )


def test_every_node_has_a_label_and_every_edge_a_type():
    graph = parsed(to_dot(marked()[0]))
    stack, seen = [graph], 0
    while stack:
        here = stack.pop()
        stack += here.get_subgraphs()
        for node in here.get_nodes():
            if node.get_name().startswith("n") and node.get_name() != "node":
                assert "label" in node.get_attributes() or "group" in node.get_attributes()
                seen += 1
    assert seen > 10
    for edge in edges(graph):
        label = edge.get("label") or edge.get("xlabel")
        assert "[" in label, edge.to_string()


def test_backward_edges_are_mirrored_and_ranks_shared():
    _, loss, grads = marked()
    view = view_of([loss, *grads])
    text = to_dot([loss, *grads])
    mul = loss.node.inputs[0].node
    (beside,) = [n for n in view.pairs[mul] if n.type == "Multiply"]
    assert f"{{rank=same; n{mul.index} -> n{beside.index} [style=invis];}}" in text
    reader = next(e for e in view.edges if e.source is beside and e.kind == "dy")
    assert f"n{reader.target.index} -> n{beside.index} [" in text
    assert "dir=back" in text.split(f"n{reader.target.index} -> n{beside.index} [")[1][:60]


def test_ranks_never_contradict_each_other():
    for shown in (marked()[0], log1pexp(3)[0].graph):
        graph = parsed(to_dot(shown, saved_edges=True))
        same = {}
        for sub in graph.get_subgraphs():
            if sub.get("rank") == "same":
                names = [sub.get_edges()[0].get_source(), sub.get_edges()[0].get_destination()]
                for e in sub.get_edges():
                    names += [e.get_source(), e.get_destination()]
                same.update(dict.fromkeys(names, names[0]))
        above = {}
        for e in edges(graph):
            if e.get("constraint") != "false":
                a, b = e.get_source(), e.get_destination()
                above.setdefault(same.get(a, a), set()).add(same.get(b, b))
        state = {}
        stack = [(n, False) for n in above]
        while stack:
            node, left = stack.pop()
            if left:
                state[node] = "done"
                continue
            if node in state:
                assert state[node] == "done" or node not in above
                continue
            state[node] = "open"
            stack.append((node, True))
            for below in above.get(node, ()):
                assert state.get(below) != "open", f"{node} and {below} are above each other"
                stack.append((below, False))


def test_kinds_of_edges():
    view = view_of(marked()[0])
    kinds = {(e.kind, e.tag) for e in view.edges}
    assert {("input", "in 0"), ("capture", "in 1 (capture)"), ("output", "out 0")} <= kinds
    assert {("dy", "dy"), ("dy", "dx, dy"), ("saved", "saved")} <= kinds
    assert ("residual", "residual") in {(e.kind, e.tag) for e in view_of(log1pexp(1)).edges}
    assert all(n.type != "Residual" for n in view_of(log1pexp(1)).nodes)


def test_tensors_show_their_ancestors_only():
    g, loss, grads = marked()
    assert len(view_of(loss).nodes) < len(view_of([loss, *grads, None]).nodes) <= len(g.nodes)
    assert {n.column for n in view_of(loss).columns} == {0}
    assert "backward" not in to_dot(loss)
    assert "result 1" in to_dot([loss, *grads])


def test_second_order_stands_in_a_column_of_its_own():
    y, dx, ddx = log1pexp(2)
    view = view_of([y, dx, ddx])
    assert [b.title for b in view.columns] == ["forward", "backward", "backward, order 2"]
    assert [view.column[t.node] for t in (y, dx, ddx)] == [0, 1, 3]


def test_nodes_built_from_gradients_stand_in_a_column_of_their_own():
    with gg.Graph():
        x, w = placeholder((3,), name="x"), variable(np.ones(3), name="w")
        (dx,) = gg.gradients([sum(exp(x * w))], [x])
        penalty = sum(dx * dx)
        (dww,) = gg.gradients([penalty], [w])
    view = view_of([penalty, dww])
    assert view.column[penalty.node] == 2
    assert view.column[dww.node] == 3


def test_nested_regions_are_nested_boxes():
    with gg.Graph() as g:
        x = placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: site.default(dy), allow_empty=True):
            a = exp(x)
            with gg.override_gradient(ste):
                b = sign(a)
            c = b * 3.0
        gg.gradients([c], [x])
    outer, inner = g.regions
    assert view_of(g).path[b.node] == (inner, outer)
    forward = view_of(g).columns[0]
    assert [box.owner for box in forward.boxes] == [outer]
    assert [box.owner for box in forward.boxes[0].boxes] == [inner]


def test_an_open_region_is_not_settled_by_a_look():
    with gg.Graph() as g:
        x = placeholder((3,), name="x")
        with gg.override_gradient(ste) as region:
            y = exp(x)
            graph_text(g)
            to_dot(g)
            z = sign(y)
        gg.gradients([z], [x])
    assert region.boundary.outputs == (z,)


def test_saved_edges_are_left_out_of_large_graphs():
    with gg.Graph() as g:
        x = y = placeholder((3,), name="x")
        for _ in range(120):
            y = exp(y) * x
        gg.gradients([y], [x])
    assert len(g) > 300
    assert "style=dotted" not in to_dot(g)
    assert "style=dotted" in to_dot(g, saved_edges=True)
    assert "style=dotted" not in to_dot(marked()[0], saved_edges=False)
    with pytest.raises(ValueError, match="auto"):
        to_dot(g, saved_edges="yes")


def test_shared_constants_are_drawn_in_each_box():
    with gg.Graph() as g:
        x = y = placeholder((3,), name="x")
        for _ in range(3):
            with gg.override_gradient(ste):
                y = sign(y)
        gg.gradients([y], [x])
    text = to_dot(g)
    assert text.count('label="1.0"') == 3
    assert len([n for n in g.nodes if n.type == "Constant"]) == 2


def test_what_cannot_be_shown():
    with pytest.raises(TypeError, match="can be shown"):
        to_dot([1.0])
    with pytest.raises(GraphError, match="one picture"):
        to_dot([log1pexp(0)[0], log1pexp(0)[0]])
    assert parsed(to_dot([])) is not None
    assert parsed(to_dot(gg.Graph())) is not None


def test_a_rule_that_is_gone_still_has_a_title():
    with gg.temporary_gradient("passing", lambda site, dy: dy), gg.Graph() as g:
        x = placeholder((3,), name="x")
        with gg.override_gradient("passing"):
            y = exp(x)
        gg.gradients([y * 2.0], [x])
        with g:
            with gg.override_gradient("passing"):
                z = exp(x)
            gg.gradients([z], [x])
    to_dot(g)
    assert 'override "passing" #1' in graph_text(g)


# --- hostile words ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_words_are_escaped_everywhere(name):
    def rule(site, dy):
        return dy

    rule.__name__ = name
    with gg.Graph(name) as g:
        x = placeholder((name, 3), name=name.strip("/").replace("/", "|"))
        with gg.override_gradient(rule, allow_empty=True):
            y = exp(x)
        gg.gradients([y], [x])
    text = to_dot(g, title=name)
    assert text.isascii()
    assert "</" not in text
    assert "<!" not in text
    graph = parsed(text)
    assert len(boxes(graph)) >= 3
    assert {"n0", "n1"} <= set().union(*boxes(graph).values())
    assert len(edges(graph)) == len(view_of(g).edges)
    shown = graph_text(g)
    assert all(c.isprintable() for c in shown.replace("\n", ""))
    assert len(shown.splitlines()) == len(graph_text(g).split("\n")) - 1
    if svg.find_spec("pygraphviz") or svg.shutil.which("dot"):
        assert to_svg(g).lstrip().startswith("<?xml")


def test_escaping():
    assert escaped('a"b') == 'a\\"b'
    assert escaped("a\\") == "a\\\\"
    assert escaped("a\nb") == "a\\\\nb"
    assert escaped("</x>&") == "&lt;/x&gt;&amp;"
    assert escaped("\u202eé") == "\\\\u202e&#233;"
    assert len(escaped("n" * 1000, 40)) == 40
    assert escaped("plain_name/0") == "plain_name/0"


# --- size, sameness ---------------------------------------------------------------------------


def test_same_bytes_in_another_process(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_inspect import marked, to_dot, graph_text\n"
        "g = marked()[0]; sys.stdout.write(to_dot(g) + graph_text(g))\n"
    )
    folder = __file__.rpartition("/")[0]
    runs = [
        subprocess.run(
            [sys.executable, "-c", program, folder],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert runs[0].decode() == to_dot(marked()[0]) + graph_text(marked()[0])


def test_a_hundred_thousand_nodes():
    with gg.Graph() as g:
        x = y = placeholder((3,), name="x")
        for _ in range(50_000):
            y = exp(y)
        (dx,) = gg.gradients([y], [x])
    assert len(g) > 100_000
    start = time.perf_counter()
    text = to_dot([y, dx])
    assert text.count("\n") > 200_000
    assert graph_text(g).count("\n") > 100_000
    assert time.perf_counter() - start < 30


def test_a_hundred_nested_regions():
    with gg.Graph() as g:
        x = y = placeholder((3,), name="x")
        scopes = [gg.override_gradient(ste) for _ in range(100)]
        for scope in scopes:
            scope.__enter__()
            y = exp(y)
        for scope in reversed(scopes):
            scope.__exit__(None, None, None)
        gg.gradients([y], [x])
    assert to_dot(g).count('style="rounded,dashed"') == 100
    assert len(max(graph_text(g).splitlines(), key=len)) < 400


# --- text, files, SVG -------------------------------------------------------------------------


def test_listing():
    _, loss, grads = marked()
    text = graph_text([loss, *grads])
    rows = text.splitlines()
    assert rows[0].startswith("graph: ")
    assert rows[1] == "forward"
    assert "backward" in rows
    assert '  override "ste" #0 (test_inspect.py:' in text
    assert ": (x, w) -> (Sign_" in text
    names = [row.strip(" |").partition(":")[0] for row in rows if " = " in row]
    assert len(names) == len(set(names)) == len(view_of([loss, *grads]).nodes)
    assert "grad of Multiply_" in text
    assert "~Exp_1" in graph_text(log1pexp(1))
    assert rows[-1].startswith("results: ReduceSum_")


def test_print_graph(capsys):
    g = marked()[0]
    print_graph(g)
    assert capsys.readouterr().out == graph_text(g)
    out = io.StringIO()
    print_graph(g, file=out)
    assert out.getvalue() == graph_text(g)


def test_write_dot(tmp_path):
    g = marked()[0]
    write_dot(tmp_path / "g.dot", g, title="t")
    assert (tmp_path / "g.dot").read_bytes() == to_dot(g, title="t").encode()


def test_svg_without_graphviz(monkeypatch):
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    monkeypatch.setattr(svg.shutil, "which", lambda name: None)
    with pytest.raises(RenderError, match=r"graphgrad\[viz\]"):
        to_svg(marked()[0])


def test_svg_that_takes_too_long_or_fails(monkeypatch):
    wait = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(svg, "_command", lambda: wait)
    with pytest.raises(RenderError, match=r"within 0\.2 s"):
        to_svg(marked()[0], timeout=0.2)
    monkeypatch.setattr(svg, "_command", lambda: [sys.executable, "-c", "import nothing_here"])
    with pytest.raises(RenderError, match="nothing_here"):
        to_svg(marked()[0])
    monkeypatch.setattr(svg, "_command", lambda: ["/nonexistent/dot"])
    with pytest.raises(RenderError, match="nonexistent"):
        to_svg(marked()[0])
