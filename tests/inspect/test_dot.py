"""DOT text: what stands in it, that it is safe to read back, and its size."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError
from graphgrad.inspect.layout import colours
from graphgrad.inspect.layout.picture import Picture
from graphgrad.inspect.scene.escape import for_dot
from graphgrad.inspect.scene.view import view_of

from .random_nets import guided_cnn
from .seeing import (
    ONE_HOSTILE_NAME,
    boxes,
    chain,
    contradiction,
    edges,
    hostile,
    inner_region,
    labels,
    log1pexp,
    marked,
    nested,
    network,
    parsed,
    ste,
    titled,
)

needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz on the PATH")


def laid_out(text):
    """What Graphviz makes of a DOT text."""
    made = subprocess.run(["dot", "-Tjson0"], input=text.encode(), capture_output=True, check=True)
    return json.loads(made.stdout)


def test_columns_regions_and_spliced_rules():
    g, loss, grads = marked()
    found = boxes(parsed(gg.to_dot([loss, *grads])))
    assert any(t.startswith('override "ste" #0 (seeing.py:') for t in found)
    assert any(t.startswith('spliced "ste" for #0 (seeing.py:') for t in found)
    assert any("for Exp_" in t for t in found)
    forward, backward = titled(found, "forward"), titled(found, "backward")
    assert {"n0", "n1"} <= forward
    assert f"n{loss.node.index}" in forward
    assert f"n{loss.node.index + 1}" in backward
    assert f"n{grads[1].node.index}" in titled(found, 'spliced "ste')
    region = g.regions[0]
    assert {f"n{n.index}" for n in g.nodes if n.region is region} == titled(found, 'override "ste')


def test_scopes_are_boxes_on_both_sides():
    text = gg.to_dot(network(1))
    assert text.count('label="layer0"') == text.count('label="loss"') == 2
    assert "layer0/" not in "".join(labels(parsed(text)).values())
    text = gg.to_dot(network(1), scopes=False)
    assert 'label="layer0"' not in text
    assert "layer0/w" in "".join(labels(parsed(text)).values())


def test_every_node_has_a_label_and_every_edge_a_type():
    graph = parsed(gg.to_dot(marked()[0], bypassed=True))
    assert len(labels(graph)) > 15
    said = set()
    for edge in edges(graph):
        label = edge.get("label") or edge.get("xlabel")
        said |= {edge.get_source(), edge.get_destination()} if label else set()
        assert "[" in (edge.get("tooltip") or label), edge.to_string()
    for edge in edges(graph):  # to another column: another edge of the tensor says it
        assert edge.get("tooltip") is None or edge.get_source() in said


def test_backward_edges_are_mirrored_and_ranks_shared():
    _, loss, grads = marked()
    view = view_of([loss, *grads])
    text = gg.to_dot([loss, *grads])
    mul = loss.node.inputs[0].node
    (beside,) = [n for n in view.pairs[mul] if n.type == "Multiply"]
    assert f"{{rank=same; n{mul.index} -> n{beside.index} [style=invis];}}" in text
    reader = next(e for e in view.edges if e.source is beside and e.kind == "dy")
    assert f"n{reader.target.index} -> n{beside.index} [" in text
    assert "dir=back" in text.split(f"n{reader.target.index} -> n{beside.index} [")[1][:60]


@pytest.mark.parametrize("options", [{}, {"collapse": "all"}, {"bypassed": True}])
@pytest.mark.parametrize("make", [lambda: marked()[0], lambda: log1pexp(3), network, nested])
def test_ranks_never_contradict_each_other(make, options):
    assert contradiction(gg.to_dot(make(), saved_edges=True, **options)) is None
    assert contradiction(gg.to_dot(make(), scopes=False, **options)) is None


def test_what_crosses_a_boundary_is_thick_and_said():
    text = gg.to_dot(marked()[0])
    for tag in ("in 0 ", "in 1 (capture) ", "out 0 ", "dy ", "dx, dy "):
        label = re.compile(rf'label="{re.escape(tag)}(arg \d )?f32\[')
        (row, *_) = filter(label.search, text.splitlines())
        assert "penwidth=2" in row
    assert "arrowhead=odiamond" in text
    assert "style=dotted" in text


def test_saved_edges_are_left_out_of_large_graphs():
    with gg.Graph() as g:
        x = y = gg.placeholder((3,), name="x")
        for _ in range(120):
            y = gg.exp(y) * x
        gg.gradients([y], [x])
    assert len(g) > 300
    assert "style=dotted" not in gg.to_dot(g)
    assert "style=dotted" in gg.to_dot(g, saved_edges=True)
    assert "style=dotted" not in gg.to_dot(marked()[0], saved_edges=False)
    with pytest.raises(ValueError, match="auto"):
        gg.to_dot(g, saved_edges="yes")


def test_shared_constants_are_drawn_for_each_reader():
    with gg.Graph() as g:
        x = y = gg.placeholder((3,), name="x")
        for _ in range(3):
            with gg.override_gradient(ste):
                y = gg.sign(y)
        gg.gradients([y], [x])
    assert gg.to_dot(g).count("\\narg 1 = 1.0") == 3
    assert len([n for n in g.nodes if n.type == "Constant"]) == 2


def test_what_cannot_be_shown():
    with pytest.raises(TypeError, match="can be shown"):
        gg.to_dot([1.0])
    with pytest.raises(GraphError, match="a picture shows one graph"):
        gg.to_dot([log1pexp(0)[0], log1pexp(0)[0]])
    with pytest.raises(TypeError, match="Did you mean 'collapse'"):
        view_of([], colapse="all")
    assert parsed(gg.to_dot([])) is not None
    assert parsed(gg.to_dot(gg.Graph())) is not None


def test_nodes_and_op_types_can_be_hidden():
    g, loss, _ = marked()
    text = gg.to_dot(g, hide=["Constant", loss.node])
    assert "shape=note" not in text
    assert f"n{loss.node.index} [" not in text
    assert "4 nodes are hidden" in text
    with pytest.raises(ValueError, match="Did you mean 'Constant'"):
        gg.to_dot(g, hide=["Constnt"])
    with pytest.raises(TypeError, match="nodes and op types"):
        gg.to_dot(g, hide=[3])


def test_a_rule_that_is_gone_still_has_a_title():
    with gg.temporary_gradient("passing", lambda site, dy: dy), gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient("passing"):
            y = gg.exp(x)
        gg.gradients([y * 2.0], [x])
        with g:
            with gg.override_gradient("passing"):
                z = gg.exp(x)
            gg.gradients([z], [x])
    assert 'override \\"passing\\" #1' in gg.to_dot(g)


# --- colours ------------------------------------------------------------------------------------


def lines(text):
    """Colour of each edge that has one, the last that counts, with how it is written."""
    found = re.findall(r"^(\w+ -> \w+) \[(.*)\];$", text, re.MULTILINE)
    return [(ends, re.findall(r' color="(#\w+)"', rest)[-1:], rest) for ends, rest in found]


def test_in_a_comparison_regions_and_rules_have_no_colour_of_their_own():
    loss, *grads = network()
    with loss.graph:
        plain = gg.gradients(loss, loss.graph.tensor("x:0"), overrides="none")
    own = {tint.line for tint in (*colours.REGIONS, colours.STAMPED)}
    own |= {tint.ground for tint in (*colours.REGIONS, colours.STAMPED)}
    assert own & set(re.findall(r"#\w{6}", gg.to_dot([loss, *grads])))
    compared = gg.to_dot(gg.graph_diff([loss, plain], [loss, *grads]), saved_edges=False)
    assert not own & set(re.findall(r"#\w{6}", compared))
    assert f'color="{colours.COMPARED.line}"' in compared
    guided, plain = guided_cnn()
    (relu, *_) = [n for n in guided[0].graph.nodes if n.type == "Relu"]
    (row,) = re.findall(
        rf"^n{relu.index} \[.*$", gg.to_dot(gg.graph_diff(plain, guided)), re.MULTILINE
    )
    assert 'style="rounded,filled,dashed"' in row  # still seen to be marked


def test_what_enters_and_leaves_a_marked_op_is_thick():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.gradient_override_map({"Exp": lambda op, dy: dy}):
            y = gg.exp(gg.sin(x))
        z = y * 2.0
    found = {ends: (colour, rest) for ends, colour, rest in lines(gg.to_dot(z))}
    for ends in (f"n{y.node.index - 1} -> n{y.node.index}", f"n{y.node.index} -> n{z.node.index}"):
        colour, rest = found[ends]
        assert colour == [colours.STAMPED.line]
        assert "penwidth=2" in rest
    assert "thick: over its boundary" in gg.to_dot(z)


def test_what_is_saved_and_enters_a_region_of_a_rule_has_its_colour():
    y, dx = inner_region()
    view = view_of([y, dx])
    (edge,) = [e for e in view.edges if e.kind == "saved"]
    assert edge.owner is y.graph.regions[1]
    assert edge.tag == "in 0"
    (row,) = [row for row in lines(gg.to_dot([y, dx])) if "style=dotted" in row[2]]
    assert row[1] == [colours.REGIONS[1].line]
    assert 'xlabel="in 0 f64[3]"' in row[2]


def test_a_region_that_a_rule_opened_says_at_which_line():
    y, dx = inner_region()
    assert re.search(r'override \\"Tanh\\" #1 \(seeing\.py:\d+\)', gg.to_dot([y, dx]))


def test_types_are_not_said_again_on_edges_to_other_columns():
    text = gg.to_dot(network())
    assert len(re.findall(r'tooltip="f32\[[^"]*", constraint=false', text)) > 2
    sin, dx = sin_and_its_gradient()
    assert 'xlabel="f64[3]", constraint=false' in gg.to_dot([sin, dx], hide=[sin.node])


def sin_and_its_gradient():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.sin(x)
        return y, gg.gradients(y, x)


# --- what would stand alone ---------------------------------------------------------------------


def test_a_dy_that_the_default_gradient_does_not_read_is_left_out():
    text = gg.to_dot(network(), bypassed=True)  # the gradient of sign is zero
    assert "default gradient of #0, bypassed" in text
    assert "<s>dy</s>" not in text
    assert "<s>dy</s>" in gg.to_dot(log1pexp(1), bypassed=True)


@needs_graphviz
def test_a_constant_that_only_gradients_read_stands_with_its_scope():
    with gg.Graph():
        h = x = gg.placeholder((3,), name="x")
        for i in range(4):
            with gg.name_scope(f"layer{i}"):
                h = gg.tanh(h * x)
        with gg.name_scope("loss"):
            loss = gg.sum(h**2.0)
        f = gg.compile([x], [loss, gg.gradients(loss, x)])
    laid = laid_out(gg.to_dot(f))
    (loss_box, *_) = [o for o in laid["objects"] if o.get("label") == "loss"]
    _, low, _, high = map(float, loss_box["bb"].split(","))
    assert high - low < float(laid["bb"].split(",")[3]) / 2


def test_boxes_in_which_nothing_is_drawn_are_left_out():
    """The constants that a rule made first are drawn where those of a later call read them."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: gg.clip(dy, -1.0, 1.0)):
            y = gg.exp(x)
        loss = gg.sum(y)
        first, second = gg.gradients(loss, x), gg.gradients(loss, x)
    for dx in (first, second):
        assert gg.to_dot([loss, dx]).count('label="spliced') == 1


# --- hostile words ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_HOSTILE_NAME)
def test_hostile_words_read_back_as_they_are(name):
    g = hostile(name)
    text = gg.to_dot(g, title=name, bypassed=True)
    assert text.isascii()
    assert all(c.isprintable() for c in text.replace("\n", ""))
    assert "</script" not in text
    assert "<!" not in text
    graph = parsed(text)
    shown = gg.base.words.visible(name)
    whole = {title for title in boxes(graph) if len(name) < 40 and shown in title}
    assert len(name) >= 40 or {t.split(" ")[0] for t in whole} >= {"override", "spliced"}
    assert len(name) >= 40 or shown.strip("/").replace("/", "|") in labels(graph)["n0"]
    assert {"n0", "n1"} <= set().union(*boxes(graph).values())
    view = view_of(g, bypassed=True)
    written = sum(len(item.numbers) for item in Picture(view).items)
    assert len(edges(graph)) == len(view.edges) - written


def test_escaping():
    assert for_dot('a"b') == 'a\\"b'
    assert for_dot("a\\") == "a\\\\"
    assert for_dot("a\nb") == "a\\\\nb"
    assert for_dot("</x>&") == "&lt;/x&gt;&amp;"
    assert for_dot("\u202eé") == "\\\\u202e&#233;"
    assert len(for_dot("n" * 1000, 40)) == 40
    assert for_dot("plain_name/0") == "plain_name/0"


# --- size, sameness ---------------------------------------------------------------------------


@pytest.mark.ci
def test_same_bytes_in_another_process():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import graphgrad as gg\n"
        "from seeing import marked, network\n"
        "for shown in (marked()[0], network()):\n"
        "    sys.stdout.write(gg.to_dot(shown, bypassed=True) + gg.graph_text(shown))\n"
        "    sys.stdout.write(gg.to_mermaid(shown))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )
    here = [
        gg.to_dot(shown, bypassed=True) + gg.graph_text(shown) + gg.to_mermaid(shown)
        for shown in (marked()[0], network())
    ]
    assert done.stdout.decode() == "".join(here)


@pytest.mark.ci
def test_thirty_thousand_nodes():
    tensors = chain(15_000)
    assert len(tensors[0].graph) > 30_000
    assert gg.to_dot(tensors, collapse="none").count("\n") > 60_000
    assert gg.to_dot(tensors).count("\n") < 4_000
    assert gg.graph_text(tensors).count("\n") > 30_000
    assert gg.graph_text(tensors, style="list").count("\n") > 30_000


def test_a_hundred_nested_regions():
    with gg.Graph() as g:
        x = y = gg.placeholder((3,), name="x")
        scopes = [gg.override_gradient(ste) for _ in range(100)]
        for scope in scopes:
            scope.__enter__()
            y = gg.exp(y)
        for scope in reversed(scopes):
            scope.__exit__(None, None, None)
        gg.gradients([y], [x])
    assert gg.to_dot(g).count('style="rounded,dashed"') == 100
    for style in ("tree", "list"):
        assert len(max(gg.graph_text(g, style=style).splitlines(), key=len)) < 400


def test_write_dot(tmp_path):
    g = marked()[0]
    gg.write_dot(tmp_path / "g.dot", g, title="t")
    assert (tmp_path / "g.dot").read_bytes() == gg.to_dot(g, title="t").encode()


def test_a_program_shows_its_inputs_and_stands_beside_its_gradients():
    loss, *grads = network()
    g = loss.graph
    f = gg.compile([g.tensor("x:0")], [loss, *grads])
    text = gg.to_dot(f)
    shown = labels(parsed(text))
    assert any(label.startswith("x\nPlaceholder") for label in shown.values())
    assert any(label.startswith("w\nVariable") for label in shown.values())
    assert len(re.findall(r"^\{rank=same;", text, re.MULTILINE)) > 2
    arrays = np.ones((2, 4), np.float32)
    assert f(arrays)[0].shape == ()


@needs_graphviz
@pytest.mark.parametrize(
    "shown",
    [network(1), network(3), log1pexp(1), marked()[1:], nested()[:2]],
    ids=["1", "3", "log1pexp", "marked", "nested"],
)
def test_graphviz_puts_the_forward_part_on_the_left(shown):
    left = {
        found.get("label"): float(found["bb"].split(",")[0])
        for found in laid_out(gg.to_dot(shown))["objects"]
        if found["name"].startswith("cluster_")
    }
    assert left["forward"] < left["backward"]
