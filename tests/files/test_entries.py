"""Entry points on tensors: built where they are called, with their rules."""

import numpy as np
import pytest

import graphgrad as gg


def doubled(site, dy):
    return [None if dx is None else 2.0 * dx for dx in site.default(dy)]


def network():
    with gg.Graph():
        x = gg.placeholder(("N", 2), name="x")
        scale = gg.placeholder((), name="scale")
        gg.placeholder((), name="unused")
        w = gg.variable(np.eye(2), name="w")
        with gg.override_gradient(doubled):
            y = gg.tanh(x @ w)
        return gg.EntryPoint([x, scale], {"y": y * scale, "none": None}), w


def test_S27_on_tensors_it_is_built_with_its_rule_and_without_what_it_does_not_need():
    entry, _ = network()
    data = np.array([[0.3, -0.2]])
    with gg.Graph() as graph:
        image = gg.variable(data, name="image")
        y = entry(gg.sin(image), scale=3.0)
        assert y["none"] is None
        dx = gg.gradients(y["y"], image)
        value, slope = gg.evaluate([y["y"], dx])
        assert "unused" not in {n.name for n in graph.nodes}
    np.testing.assert_allclose(value, 3 * np.tanh(np.sin(data)))
    by_hand = 2 * 3 * (1 - np.tanh(np.sin(data)) ** 2) * np.cos(data)
    np.testing.assert_allclose(slope, by_hand)


def test_calls_on_tensors_have_variables_of_their_own_that_begin_with_present_values():
    entry, w = network()
    w.graph.state["w"] = 2 * np.eye(2)
    with gg.Graph() as graph:
        x = gg.constant(np.ones((1, 2)))
        first, second = entry(x, 1.0)["y"], entry(x, 1.0)["y"]
        np.testing.assert_allclose(gg.evaluate(first), np.tanh(2 * np.ones((1, 2))))
        assert len(graph.variables) == 2
        assert first is not second


def test_calls_on_tensors_that_cannot_be_are_errors_that_leave_the_graph_as_it_was():
    entry, w = network()
    with gg.Graph() as graph:
        x = gg.constant(np.ones((1, 2)))
        before = len(graph)
        with pytest.raises(TypeError, match="takes x, scale, each once; got 1 by position"):
            entry(x)
        with pytest.raises(gg.GraphError, match="cannot stand for"):
            entry(gg.constant(1.0), 1.0)
        with pytest.raises(gg.GraphError, match="writes variables"):
            gg.EntryPoint(entry.inputs, entry.outputs, {w: w})(x, 1.0)
        assert len(graph) == before + 1
    with w.graph, pytest.raises(gg.GraphError, match="in which nodes are being built"):
        entry(entry.inputs[0], 1.0)
