"""The default gradients that rules were used instead of, shown struck through."""

from __future__ import annotations

import numpy as np

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of

from .seeing import boxes, labels, marked, nested, parsed, titled


def stable():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy * gg.special.expit(site.inputs[0])):
            y = gg.log(1.0 + gg.exp(x))
        dx = gg.gradients(gg.sum(y), x)
    return [y, dx]


def test_the_default_stands_beside_the_rule():
    text = gg.to_dot(stable(), bypassed=True)
    graph = parsed(text)
    inside = titled(boxes(graph), "default gradient of #0, bypassed")
    shown = [labels(graph)[name] for name in inside]
    assert all(name.startswith("d") for name in inside)
    assert {label.split("_")[0] for label in shown} == {"dy", "Divide", "Multiply"}
    assert text.count("<s>") == len(inside)
    assert "struck through: not used" in text
    assert "default gradient" not in gg.to_dot(stable())


def test_it_is_the_gradient_that_would_have_been():
    view = view_of(stable(), bypassed=True)
    default = [n for n in view.nodes if n in view.bypassed]
    (dy,) = [n for n in default if n.type == "Placeholder"]
    result = default[-1].outputs[0]
    x = next(t for t in result.graph.nodes[0].outputs)
    at = np.array([-1.0, 0.0, 2.0])
    found = gg.evaluate(result, {x: at, dy.outputs[0]: np.ones(3)})
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-at)))


def test_it_reads_the_forward_part_and_shares_its_ranks():
    view = view_of(stable(), bypassed=True)
    sources = {e.source for e in view.edges if e.target in view.bypassed}
    assert any(n.type == "Exp" and n not in view.bypassed for n in sources)
    assert any(m in view.bypassed for row in view.pairs.values() for m in row)


def test_stamps_nested_regions_and_second_orders_have_one_too():
    titles = boxes(parsed(gg.to_dot(marked()[0], bypassed=True)))
    assert len([t for t in titles if t.startswith("default gradient of ")]) == 2
    text = gg.to_dot(nested(), bypassed=True)
    assert text.count("default gradient of #0, bypassed") >= 2
    assert "default gradient of #1, bypassed" in text


def test_where_there_is_none_the_title_says_why():
    def twice(a):
        return 2 * a

    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy * 2.0):
            y = gg.py_function(twice, [x], [((3,), "float64")])
            y = y[0] if isinstance(y, list | tuple) else y
        dx = gg.gradients(gg.sum(y), x)
    text = gg.to_dot(dx, bypassed=True)
    assert "default gradient of #0, bypassed" in text
