"""Partial pictures: what failed while building or running is ringed."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.position import source_line
from graphgrad.inspect.scene.view import view_of

from .seeing import labels, marked, network, parsed


def ringed(text):
    found = labels(parsed(text))
    return [name for name, label in found.items() if label.endswith("FAILED")]


def test_a_node_a_tensor_and_a_name_are_ringed():
    g, loss, _ = marked()
    for failed in (loss, loss.node, loss.name, loss.node.name, [loss]):
        text = gg.to_dot(g, failed=failed)
        assert ringed(text) == [f"n{loss.node.index}"]
        assert "peripheries=2" in text


def test_what_could_not_be_built_is_shown_with_what_it_was_to_read():
    with gg.Graph() as g:
        x = gg.placeholder((2, 3), name="x")
        with pytest.raises(gg.ShapeError) as error:
            gg.exp(x) @ x
    text = gg.to_dot(g, failed=error.value)
    (name,) = ringed(text)
    assert name.startswith("x")
    assert labels(parsed(text))[name].startswith("MatMul")
    assert f"n1 -> {name} [" in text
    assert f"n0 -> {name} [" in text
    assert "failed: ShapeError: matmul needs equal inner lengths" in text
    assert "FAILED" in gg.graph_text(g, failed=error.value)
    assert len(g.nodes) == 2


def test_what_could_not_be_built_stands_at_the_line_that_asked_for_it():
    def product(x):
        return gg.exp(x) @ x

    with gg.Graph() as g:
        x = gg.placeholder((2, 3), name="x")
        with pytest.raises(gg.ShapeError) as error:
            product(x)
    (node,) = view_of(g, failed=error.value).failed
    assert source_line(node.position) == "return gg.exp(x) @ x"


def test_what_failed_to_run_is_ringed():
    def wrong(array):
        raise ValueError("no <good>")

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        y = gg.py_function(wrong, [gg.exp(x)], [((3,), "float64")])
        z = gg.sum(y[0] if isinstance(y, list | tuple) else y)
    f = gg.compile([x], z, optimize=False)
    with pytest.raises(ValueError, match="no <good>") as error:
        f(np.ones(3))
    (node,) = [n for n in g.nodes if n.type == "PyFunction"]
    text = gg.to_dot(g, failed=error.value)
    assert ringed(text) == [f"n{node.index}"]
    assert "no &#60;good&#62;" in text


def test_an_error_that_knows_no_node_is_a_title():
    text = gg.to_dot(marked()[0], failed=RuntimeError("out of memory\nand more"))
    assert ringed(text) == []
    assert "failed: RuntimeError: out of memory" in text
    assert "and more" not in text


def test_a_collapsed_box_says_that_something_inside_failed():
    tensors = network()
    node = tensors[0].graph.node("layer0/MatMul_2")
    text = gg.to_dot(tensors[0], failed=node, collapse=["layer0"])
    assert "FAILED inside" in text


def test_what_is_not_shown_cannot_have_failed():
    with pytest.raises(gg.GraphError, match="not in the picture"):
        gg.to_dot(marked()[0], failed=marked()[1])
    with pytest.raises(gg.GraphError, match="not in the picture"):
        gg.to_dot(marked()[0], failed="nothing")
    with pytest.raises(TypeError, match="exceptions"):
        gg.to_dot(marked()[0], failed=3)
