"""Lines that are not drawn: columns stay in order, and Graphviz lays out every comparison."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.layout.picture import COPY_LIMIT, Picture
from graphgrad.inspect.scene.view import view_of

from .random_nets import guided_cnn, random_net, two_gradients
from .seeing import contradiction, nested, network


def pictures():
    """What has made Graphviz fail, lose edges, or draw the backward part on the left."""
    made = {"cnn": guided_cnn()} | {f"net{seed}": random_net(seed) for seed in (7, 9, 24, 38, 45)}
    for name, (marked, plain) in made.items():
        yield name, marked
        yield f"{name} added", gg.graph_diff(plain, marked)
        yield f"{name} removed", gg.graph_diff(marked, plain)


PICTURES = dict(pictures())


def bounds(laid, title):
    """Left, bottom, right and top of each box with a title."""
    found = [o for o in laid["objects"] if o["name"].startswith("cluster_")]
    return [[float(n) for n in o["bb"].split(",")] for o in found if o["label"] == title]


needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz on the PATH")


def laid_out(text):
    """What Graphviz makes of a DOT text, without a word of complaint about it."""
    laid = subprocess.run(["dot", "-Tjson0"], input=text.encode(), capture_output=True, check=True)
    assert b"rror" not in laid.stderr.replace(b"Fontconfig error", b"")
    return json.loads(laid.stdout)


@needs_graphviz
@pytest.mark.parametrize("name", PICTURES)
def test_graphviz_lays_it_out_with_the_forward_part_on_the_left(name):
    found = laid_out(gg.to_dot(PICTURES[name]))
    ((_, _, end, _),) = bounds(found, "forward")
    ((start, *_),) = bounds(found, "backward")
    assert end <= start


@needs_graphviz
@pytest.mark.parametrize("way", ["alone", "added", "removed"])
def test_the_boxes_of_layers_stand_below_each_other_in_both_columns(way):
    marked, plain = two_gradients()
    pair = {"added": (plain, marked), "removed": (marked, plain)}.get(way)
    found = laid_out(gg.to_dot(gg.graph_diff(*pair) if pair else marked))
    layers = [bounds(found, f"layer{i}") for i in range(3)]
    for above, below in pairwise(layers):
        for column in (0, 1):
            assert above[column][1] > below[column][3]


@pytest.mark.parametrize("name", PICTURES)
def test_no_rank_is_contradicted(name):
    assert contradiction(gg.to_dot(PICTURES[name])) is None


def test_an_ordering_edge_stays_in_its_column_and_goes_down():
    for shown in (network(3), nested(), PICTURES["cnn added"], PICTURES["cnn removed"]):
        found = Picture(view_of(shown)).ordering()
        assert found
        for above, below in found:
            assert above.inside.column == below.inside.column
            assert above.level < below.level


def test_what_reads_nothing_stands_below_what_comes_into_its_box():
    """The weight of the second layer goes below the sign, which leaves the first one."""
    found = Picture(view_of(network(2))).ordering()
    assert ("Sign", "Variable") in {(a.node.type, b.node.type) for a, b in found}
    assert ("MatMul", "Variable") not in {(a.node.type, b.node.type) for a, b in found}
    assert {a.inside.column for a, _ in found} == {0, 1}


def test_removed_boxes_have_ordering_edges_too():
    marked, plain = guided_cnn()
    found = Picture(view_of(gg.graph_diff(marked, plain))).ordering()
    status = view_of(gg.graph_diff(marked, plain)).status
    removed = {node.name for node, word in status.items() if word == "removed"}
    assert any({a.node.name, b.node.name} & removed for a, b in found)


def weighted(site, dy):
    """A rule with a constant that is no single number, which would stand on its reader."""
    return [dy * np.array([1.0, 2.0, 3.0])]


def signs(layers):
    with gg.Graph():
        h = x = gg.placeholder((3,), name="x")
        for i in range(layers):
            with gg.name_scope(f"layer{i}"), gg.override_gradient(weighted):
                h = gg.sign(h)
        return [h, gg.gradients(h, x)]


def test_copies_of_constants_have_ordering_edges_where_there_are_few():
    for layers in (3, 90):
        picture = Picture(view_of(signs(layers), collapse="none"))
        held = {item.node.type for pair in picture.ordering() for item in pair}
        assert ("Constant" in held) is (len(picture.items) <= COPY_LIMIT)
