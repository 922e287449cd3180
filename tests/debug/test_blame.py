"""blame: who poisons a gradient, who kills it, in branches and where nothing reaches it."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import debug

from .nets import mlp


@pytest.fixture
def graph():
    with gg.Graph() as g:
        yield g


class TestBlame:
    def test_finds_the_region_that_poisons(self, graph):
        x = gg.placeholder((2,), name="x")
        with gg.override_gradient(lambda site, dy: dy * np.inf * 0.0) as region:
            h = gg.sin(x)
        (dx,) = gg.gradients(gg.sum(gg.exp(h)), [x])
        found = debug.blame(dx, {x: [0.1, 0.2]})
        assert found.first.kind == "poisoned"
        assert found.first.site is region

    def test_finds_the_node_that_kills(self, graph):
        x = gg.placeholder((2,), name="x")
        dead = gg.nn.relu(x - 10.0)
        (dx,) = gg.gradients(gg.sum(gg.tanh(dead) + dead), [x])
        found = debug.blame(dx, {x: [0.1, 0.2]})
        assert found.first.kind == "killed"
        assert found.first.site is dead.node
        assert found.first.rule is None
        assert "test_blame.py" in str(found)

    def test_nothing_odd_nothing_found(self, graph):
        x = gg.placeholder((2,))
        (dx,) = gg.gradients(gg.sum(gg.tanh(x)), [x])
        found = debug.blame(dx, {x: [0.1, 0.2]})
        assert not found
        assert found.first is None
        assert "no step" in str(found)

    def test_needs_gradients(self, graph):
        x = gg.placeholder(())
        with pytest.raises(gg.GradientError, match="none of these tensors is one"):
            debug.blame(gg.sin(x), {x: 1.0})

    def test_the_chain_of_a_poisoned_gradient_blames_only_the_first(self, graph):
        x = gg.placeholder((2,))
        (dx,) = gg.gradients(gg.sum(gg.sqrt(gg.sin(gg.tanh(x)))), [x])
        found = debug.blame(dx, {x: [0.0, 1.0]})
        assert [s.site.type for s in found.suspects if s.kind == "poisoned"] == ["Sqrt"]


def test_blame_names_a_rule_that_reads_no_gradient():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: gg.zeros((3,))):
            y = gg.sin(x)
        found = gg.debug.blame(gg.gradients(gg.sum(y), x), {x: np.ones(3)})
        assert [(s.kind, s.rule) for s in found.suspects] == [("killed", "<lambda>")]


class TestWhatNothingReaches:
    """The step that gets a gradient and passes none on is named, once for all xs below it."""

    def test_an_op_without_a_gradient(self, graph):
        x = gg.placeholder((3,), name="x")
        w = gg.variable(np.ones(3), name="w")
        y = gg.sign(x * w)
        dw = gg.gradients(gg.sum(y**2), w)
        (found,) = debug.blame(dw, {x: np.ones(3)}).suspects
        assert (found.kind, found.site, found.rule) == ("killed", y.node, None)
        assert "a gradient reaches it and stops there" in found.message
        assert "so nothing reaches w" in found.message
        assert "test_blame.py" in found.where

    def test_beside_another_gradient_of_the_same_graph(self):
        """The very network whose override was switched off, and that has both gradients."""
        (loss, *_), feeds = mlp()
        graph = loss.graph
        weights = [n.outputs[0] for n in graph.nodes if n.type == "Variable"]
        with graph:
            plain = gg.gradients(loss, weights, overrides="none")
        (found,) = debug.blame(plain, feeds).suspects
        assert found.site.name == "layer1/" + found.site.name.rpartition("/")[2]
        assert found.site.type == "Sign"
        assert "so nothing reaches layer0/w, layer1/w" in found.message
        assert "the rule 'clipped' around it was not used" in found.message

    def test_the_nearest_to_the_loss_is_named(self, graph):
        w = gg.variable(np.ones(3), name="w")
        y = gg.round(gg.sign(w) * 2.0)
        dw = gg.gradients(gg.sum(y * y), w)
        assert [s.site for s in debug.blame(dw).suspects] == [y.node]

    def test_of_many_gradients_some_are_named(self, graph):
        weights = [gg.variable(np.ones(3), name=f"w{i}") for i in range(30)]
        dws = gg.gradients(gg.sum(gg.sign(sum(weights)) ** 2), weights)
        (found,) = debug.blame(dws).suspects
        assert found.message.endswith("w7 and 22 more")

    def test_all_ways_are_followed(self, graph):
        w = gg.variable(np.ones(3), name="w")
        a, b = gg.sign(w), gg.floor(w)
        dw = gg.gradients(gg.sum(a * b + 1.0), w)
        assert {s.site for s in debug.blame(dw).suspects} == {a.node, b.node}

    def test_what_passes_a_gradient_on_unchanged_is_not_named(self, graph):
        w = gg.variable(np.ones(3), name="w")
        y = gg.sign(w)
        h = y + gg.constant(np.ones(3))
        dw = gg.gradients(gg.sum(h * h), w)
        assert [s.site for s in debug.blame(dw).suspects] == [y.node]

    def test_a_whole_number_on_the_way(self, graph):
        w = gg.variable(np.ones(3), name="w")
        chosen = w > 0.5
        y = gg.where(chosen, 2.0, gg.constant(np.ones(3)))
        (dw,) = gg.gradients(gg.sum(y * y), [w], unconnected="zero")
        assert [s.site for s in debug.blame(dw).suspects] == [chosen.node]

    def test_a_rule_that_gives_nothing(self, graph):
        w = gg.variable(np.ones(3), name="w")
        with gg.override_gradient(lambda site, dy: [None]) as region:
            y = gg.exp(w)
        (dw,) = gg.gradients(gg.sum(y * y), [w], unconnected="zero")
        assert [s.site for s in debug.blame(dw).suspects] == [region]

    def test_a_rule_that_gives_nothing_to_one_of_its_inputs(self, graph):
        v, w = (gg.variable(np.ones(3), name=n) for n in "vw")
        with gg.override_gradient(lambda site, dy: [dy * 2.0, None]) as region:
            y = v * w
        found = gg.gradients(gg.sum(y * y), [v, w], unconnected="zero")
        (suspect,) = debug.blame(found).suspects
        assert (suspect.site, suspect.rule) == (region, "<lambda>")
        assert suspect.message.endswith("nothing reaches w")

    def test_asking_adds_nothing_to_the_graph(self, graph):
        w = gg.variable(np.ones(3), name="w")
        dw = gg.gradients(gg.sum(gg.sign(gg.exp(w)) ** 2), w)
        count = len(graph.nodes)
        debug.blame(dw)
        assert len(graph.nodes) == count

    def test_where_none_is_found_explain_is_named(self, graph):
        w = gg.variable(np.ones(3), name="w")
        (dw,) = gg.gradients(gg.sum(gg.ones(3)), [w], unconnected="zero")
        assert "gg.explain(ys, xs) says which" in str(debug.blame(dw))


def test_all_gradients_none(graph):
    w = gg.variable(np.ones(3), name="w")
    found = gg.gradients(gg.sum(gg.stop_gradient(w)), [w])
    with pytest.raises(gg.GradientError, match=r"all gradients are None.*explain"):
        debug.blame(found, {"x": 1.0})


def test_the_branch_of_a_choice_is_looked_into(graph):
    def spoiled(site, dy):
        return dy / site.inputs[0]

    def then():
        with gg.override_gradient(spoiled):
            return gg.exp(x)

    x = gg.placeholder((3,), name="x")
    y = gg.cond(gg.sum(x) > 0, then, lambda: gg.log(x))
    dx = gg.gradients(gg.sum(y), x)
    (found,) = debug.blame(dx, {x: [1.0, 2.0, 0.0]}).suspects
    assert (found.kind, found.rule) == ("poisoned", "spoiled")
    assert "x:0" in found.message
    assert not debug.blame(dx, {x: [1.0, 2.0, 3.0]})


def test_a_compiled_function_and_a_function():
    def loss(w):
        return gg.gradients(gg.sum(gg.sqrt(w)), w)

    f = gg.function(loss)
    assert debug.blame(f, (np.zeros(2),)).first.site.type == "Sqrt"
    assert debug.blame(f.build(np.zeros(2)), (np.zeros(2),)).first.site.type == "Sqrt"


def test_a_suspect_says_what_heals_it():
    x = gg.placeholder((3,), name="x")
    found = gg.debug.blame(gg.gradients(gg.sqrt(gg.sum(x * x)), x), {x: np.zeros(3)})
    assert "healable: norm (gg.heal, before gg.gradients)" in str(found)
    healed = debug.blame(gg.gradients(gg.heal(gg.sqrt(gg.sum(x * x))).ys, x), {x: np.zeros(3)})
    assert "poisoned" not in [suspect.kind for suspect in healed.suspects]


def test_what_poisons_forward_is_to_blame_where_nothing_does_on_the_way_back():
    x = gg.placeholder((3,), name="x")
    loss = gg.log(gg.sum(gg.exp(x)))
    dx = gg.gradients(loss, x)
    found = gg.debug.blame(dx, {x: np.full(3, 800.0)})
    assert (found.first.kind, found.first.site.type) == ("poisoned", "Exp")
    assert str(found).startswith("poisoned by Exp_")
    assert "healable: logsumexp (gg.heal, before gg.gradients)" in str(found)
    assert not gg.debug.blame(dx, {x: np.full(3, 1.0)})
    with pytest.raises(debug.NotFiniteError, match="healable: logsumexp"):
        gg.debug.nan_guard(loss, {x: np.full(3, 800.0)})


def test_where_nothing_heals_it_a_suspect_says_what_to_change():
    x = gg.placeholder((3,), name="x")
    loss = gg.sum(gg.sqrt(gg.abs(x)))
    found = gg.debug.blame(gg.gradients(loss, x), {x: np.array([0.0, 1.0, 2.0])})
    assert "change: the slope of a root is infinite at 0" in str(found)
    assert "healable" not in str(found)
