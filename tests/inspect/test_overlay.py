"""Overlays: one number a node, as a colour and as a number."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import graphgrad as gg

from .seeing import labels, marked, network, parsed


def fills(text):
    """Fill colour of each node that is written with one: the last that counts."""
    found = {}
    for name, rest in re.findall(r"^(\w+) \[(label=.*)\];$", text, re.MULTILINE):
        colours = re.findall(r'fillcolor="(#\w+)"', rest)
        if colours:
            found[name] = colours[-1]
    return found


def test_numbers_are_shown_with_a_legend():
    g, loss, _ = marked()
    node = loss.node
    values = {loss: 3.25, g.nodes[2]: 1.0, g.nodes[3]: 2.0}
    text = gg.to_dot(g, overlay=gg.Overlay(values, "gradient <norm>"))
    shown = labels(parsed(text))
    assert shown[f"n{node.index}"].endswith("\n3.25")
    assert shown["n2"].endswith("\n1")
    assert "gradient &#60;norm&#62;" in text
    assert text.count("<td bgcolor=") == 5
    found = fills(text)
    assert len({found["n2"], found["n3"], found[f"n{node.index}"]}) == 3


def test_large_is_dark_and_negative_is_another_colour():
    overlay = gg.Overlay(dict(zip(marked()[0].nodes, [-2.0, -1.0, 0.0, 1.0, 2.0], strict=False)))
    light = [sum(int(overlay.colour(v)[i : i + 2], 16) for i in (1, 3, 5)) for v in (0.0, 1.0, 2.0)]
    assert light == sorted(light, reverse=True)
    assert overlay.colour(-2.0) != overlay.colour(2.0)
    assert overlay.legend() == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert overlay.ink(2.0) == "#ffffff"
    assert overlay.ink(0.0) != "#ffffff"


def test_a_wide_span_is_logarithmic():
    nodes = marked()[0].nodes
    overlay = gg.Overlay({nodes[0]: 1e-6, nodes[1]: 1.0})
    assert overlay.log
    assert np.allclose(np.diff(np.log(overlay.legend())), np.log(1e6) / 4)
    assert not gg.Overlay({nodes[0]: 1e-6, nodes[1]: 1.0}, log=False).log
    with pytest.raises(ValueError, match="not negative, of which one is positive"):
        gg.Overlay({nodes[0]: 0.0}, log=True)


def test_zero_is_off_a_logarithmic_scale():
    nodes = marked()[0].nodes
    values = {nodes[0]: 0.0, nodes[1]: 1e-6, nodes[2]: 1.0}
    overlay = gg.Overlay(values)
    assert overlay.log
    assert overlay.legend()[0] == 0.0
    assert np.allclose(np.diff(np.log(overlay.legend()[1:])), np.log(1e6) / 4)
    assert overlay.colour(0.0) not in {overlay.colour(v) for v in overlay.legend()[1:]}
    assert overlay.ink(0.0) == "#000000"
    assert not gg.Overlay({nodes[0]: 0.0, nodes[1]: 1.0, nodes[2]: 1000.0}).log
    assert not gg.Overlay({nodes[0]: -1e-9, nodes[1]: 1e-6, nodes[2]: 1.0}).log
    assert gg.Overlay({nodes[0]: 0.0, nodes[1]: 2.0}, log=True).legend()[:2] == [0.0, 2.0]
    with pytest.raises(ValueError, match="not negative, of which one is positive"):
        gg.Overlay({nodes[0]: -1.0, nodes[1]: 2.0}, log=True)


def test_what_is_no_number_stands_out_in_stroke_and_word():
    g = marked()[0]
    values = {g.nodes[2]: math.nan, g.nodes[3]: math.inf, g.nodes[4]: 1.0}
    text = gg.to_dot(g, overlay=values)
    shown = labels(parsed(text))
    assert shown["n2"].endswith("NaN")
    assert shown["n3"].endswith("inf")
    for name in ("n2", "n3"):
        (row,) = re.findall(rf"^{name} \[.*$", text, re.MULTILINE)
        assert row.rstrip("];").endswith("penwidth=2")
        assert "dashed" in row


def test_one_number_is_enough():
    g = marked()[0]
    assert gg.Overlay({g.nodes[2]: 7}).legend() == [7.0]
    assert "7" in gg.to_dot(g, overlay={g.nodes[2]: np.float32(7)})
    assert gg.Overlay({}).legend() == []
    assert gg.to_dot(g, overlay={})


def test_of_several_tensors_of_a_node_the_largest_counts():
    with gg.Graph():
        a, b = gg.split(gg.placeholder((4,), name="x"), 2)
    assert gg.Overlay({a: 1.0, b: -3.0}).values == {a.node: -3.0}
    assert math.isnan(gg.Overlay({a: math.nan, b: 5.0}).values[a.node])


def test_collapsed_boxes_show_the_largest_or_the_sum():
    tensors = network()
    g = tensors[0].graph
    inside = [n for n in g.nodes if n.scope == "layer0/" and n.inputs]
    values = dict.fromkeys(inside, 2.0) | {inside[0]: -5.0}
    options = {"collapse": ["layer0"]}
    largest = labels(parsed(gg.to_dot(tensors[0], overlay=values, **options)))
    total = gg.Overlay(values, combine="sum")
    added = labels(parsed(gg.to_dot(tensors[0], overlay=total, **options)))
    (box,) = [k for k in largest if k.startswith("b")]
    assert largest[box].endswith("\n-5")
    assert added[box].endswith(f"\n{2 * len(inside) - 7}")


def test_what_is_no_overlay():
    g = marked()[0]
    with pytest.raises(TypeError, match="the key 3"):
        gg.Overlay({3: 1.0})
    with pytest.raises(TypeError, match="got 'much'"):
        gg.Overlay({g.nodes[0]: "much"})
    with pytest.raises(TypeError, match="number"):
        gg.Overlay({g.nodes[0]: np.ones(3)})
    with pytest.raises(ValueError, match="combine"):
        gg.Overlay({}, combine="mean")
    with pytest.raises(gg.GraphError, match="is shown"):
        gg.to_dot(g, overlay={marked()[1]: 1.0})


def test_names_stand_for_what_is_shown():
    g, loss, _ = marked()
    by_node = gg.to_dot(g, overlay={loss: 3.25, g.nodes[2]: 1.0})
    by_name = gg.to_dot(g, overlay={loss.name: 3.25, g.nodes[2].name: 1.0, "nowhere": 2.0})
    assert by_name == by_node
    with pytest.raises(gg.GraphError, match=r"none of the 1 names.*'nowhere'"):
        gg.to_dot(g, overlay={"nowhere": 1.0})


def test_an_overlay_of_values_has_one_number_an_array():
    values = {"a:0": np.array([3.0, 4.0]), "b:0": np.array([True]), "c": np.array(3 + 4j)}
    overlay = gg.Overlay.of_values(values)
    assert overlay.named == {"a:0": 5.0, "c": 5.0}
    counted = gg.Overlay.of_values(values, np.size, "elements")
    assert counted.named == {"a:0": 2.0, "b:0": 1.0, "c": 1.0}
    assert counted.title == "elements"


def test_an_overlay_of_a_profile_has_the_time_of_every_step():
    g, loss, grads = marked()
    passes = gg.PassRecord()
    f = gg.compile([g.tensor("x")], [loss, *grads], watch=passes)
    profile = f.profile(np.ones((2, 4), np.float32), repeat=2)
    whole = 1e6 * sum(step.seconds for step in profile.steps)
    for within in (g, f.program):
        overlay = gg.Overlay.of_profile(profile, within)
        assert sum(overlay.values.values()) == pytest.approx(whole)
        assert all(n in within.nodes for n in overlay.values)
        assert overlay.of(within.nodes) == pytest.approx(whole)
