"""gg.debug: every value, the first NaN, who poisons or kills a gradient, where two runs part."""

from __future__ import annotations

import io

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import debug
from graphgrad.execute.backend import Kernels, one_call_per_node
from graphgrad.ops.trigonometry import Sin


@pytest.fixture
def graph():
    with gg.Graph() as g:
        yield g


class TestValues:
    def test_every_tensor_on_the_way_by_name_in_order(self, graph):
        x = gg.placeholder((2,), name="x")
        v = gg.variable(np.ones(2), name="v")
        h = gg.exp(x)
        y = gg.sum(h * v)
        found = debug.values(y, {x: [0.0, 1.0]})
        assert list(found)[:2] == [x.name, v.name]
        np.testing.assert_array_equal(found[h.name], np.exp([0.0, 1.0]))
        assert found[y.name] == 1 + np.e
        assert y.name == list(found)[-1]

    def test_a_fed_tensor_keeps_what_it_was_fed(self, graph):
        x = gg.placeholder((), name="x")
        h = gg.exp(x)
        found = debug.values(h + 1.0, {h: 5.0})
        assert found[h.name] == 5.0
        assert x.name not in found

    def test_gradients_and_rules_are_among_them(self, graph):
        x = gg.placeholder((), name="x")
        with gg.override_gradient(lambda site, dy: dy * 7.0):
            y = gg.sin(x)
        (dx,) = gg.gradients(y, [x])
        assert debug.values([y, dx], {"x:0": 0.5})[dx.name] == 7.0

    def test_errors_are_those_of_compile(self, graph):
        x = gg.placeholder((2,), name="x")
        with pytest.raises(gg.GraphError, match="placeholder"):
            debug.values(gg.exp(x))
        with pytest.raises(gg.ShapeError):
            debug.values(gg.exp(x), {x: [1.0]})

    def test_state_is_read_and_never_written(self, graph):
        v = gg.variable(1.0)
        other = gg.State()
        gg.compile([], v, updates={v: v + 1.0}, state=other)()
        assert debug.values(v, state=other)[v.name] == 2.0
        debug.values([v + 1.0, gg.assign(v, 5.0)])
        assert debug.values(v)[v.name] == 1.0


class TestNanGuard:
    def test_values_where_all_is_finite(self, graph):
        x = gg.placeholder((2,))
        found = debug.nan_guard({"y": gg.exp(x), "none": None}, {x: [0.0, 1.0]})
        np.testing.assert_array_equal(found["y"], np.exp([0.0, 1.0]))
        assert found["none"] is None

    def test_names_the_first_node_its_region_and_line(self, graph):
        x = gg.placeholder((2,), name="x")
        with gg.override_gradient(lambda site, dy: dy) as region:
            h = gg.log(x)
        y = gg.sum(h * 0.0)
        with pytest.raises(debug.NotFiniteError) as caught:
            debug.nan_guard(y, {x: [1.0, 0.0]})
        assert caught.value.node is h.node
        assert caught.value.region is region
        message = str(caught.value)
        assert "test_debug.py" in message
        assert "1 inf" in message
        assert "x:0" in message

    def test_backward_names_the_rule(self, graph):
        x = gg.placeholder((), name="x")

        def spoiled(site, dy):
            return dy / (site.inputs[0] * 0.0)

        with gg.override_gradient(spoiled):
            y = gg.sin(x)
        (dx,) = gg.gradients(y, [x])
        with pytest.raises(debug.NotFiniteError, match="rule 'spoiled'") as caught:
            debug.nan_guard([y, dx], {x: 0.5})
        assert caught.value.region is graph.regions[0]

    def test_backward_of_a_node_names_the_forward_line(self, graph):
        x = gg.placeholder(())
        (dx,) = gg.gradients(gg.sqrt(x), [x])
        with pytest.raises(debug.NotFiniteError, match=r"backward pass of Sqrt_1.*test_debug"):
            debug.nan_guard(dx, {x: 0.0})

    def test_feeds_are_looked_at(self, graph):
        x = gg.placeholder((), name="x")
        with pytest.raises(debug.NotFiniteError, match="is fed"):
            debug.nan_guard(x + 1.0, {x: np.nan})

    def test_infinities_can_be_let_through(self, graph):
        x = gg.placeholder((2,))
        masked = gg.where(gg.greater(x, 0.0), x, -np.inf)
        found = debug.nan_guard(gg.max(masked), {x: [1.0, -1.0]}, inf=False)
        assert found == 1.0
        with pytest.raises(debug.NotFiniteError):
            debug.nan_guard(masked - masked, {x: [1.0, -1.0]}, inf=False)


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
        assert "test_debug.py" in str(found)

    def test_nothing_odd_nothing_found(self, graph):
        x = gg.placeholder((2,))
        (dx,) = gg.gradients(gg.sum(gg.tanh(x)), [x])
        found = debug.blame(dx, {x: [0.1, 0.2]})
        assert not found
        assert found.first is None
        assert "no step" in str(found)

    def test_needs_gradients(self, graph):
        x = gg.placeholder(())
        with pytest.raises(gg.GradientError, match="none of these tensors was derived"):
            debug.blame(gg.sin(x), {x: 1.0})

    def test_the_chain_of_a_poisoned_gradient_blames_only_the_first(self, graph):
        x = gg.placeholder((2,))
        (dx,) = gg.gradients(gg.sum(gg.sqrt(gg.sin(gg.tanh(x)))), [x])
        found = debug.blame(dx, {x: [0.0, 1.0]})
        assert [s.site.type for s in found.suspects if s.kind == "poisoned"] == ["Sqrt"]


class TestCompare:
    def test_equal_executions(self, graph):
        x = gg.placeholder((3,))
        y = gg.sum(gg.tanh(x) * 2.0)
        assert debug.compare([y, *gg.gradients(y, [x])], {x: [1.0, 2.0, 3.0]}) is None

    def test_names_the_first_node_that_differs(self, graph):
        class Wrong:
            name = "wrong"
            kernels = Kernels(np)

            def compile(self, program):
                return one_call_per_node(program, self.kernels)

        Wrong.kernels.override(Sin)(lambda op: lambda x: np.sin(x) + (x > 1.5) * 1e-3)
        x = gg.placeholder((2,))
        h = gg.sin(gg.exp(x))
        y = gg.sum(h * 2.0)
        found = debug.compare(y, {x: [0.0, 1.0]}, backends=("numpy", Wrong()))
        assert found.tensor is h
        assert found.at == (1,)
        assert "Sin" in str(found)
        assert "test_debug.py" in str(found)

    def test_nan_and_inf_of_one_kind_are_equal(self, graph):
        x = gg.placeholder((3,))
        y = gg.log(x)
        assert debug.compare(y, {x: [-1.0, 0.0, 1.0]}) is None

    def test_takes_two_executions(self, graph):
        x = gg.placeholder(())
        with pytest.raises(ValueError, match="two entries"):
            debug.compare(x + 1.0, {x: 1.0}, backends=("numpy",))


class TestPrint:
    def test_prints_when_run_and_lets_gradients_through(self, graph):
        x = gg.placeholder((2,), name="x")
        out = io.StringIO()
        shown = debug.print(x, "here", file=out)
        (dx,) = gg.gradients(gg.sum(shown * 3.0), [x])
        f = gg.compile([x], [gg.sum(shown), dx])
        total, grad = f([1.0, 2.0])
        assert total == 3.0
        np.testing.assert_array_equal(grad, [3.0, 3.0])
        assert out.getvalue() == "here: float64[2] [1. 2.]\n"

    def test_the_name_and_line_stand_before_it(self, graph, capsys):
        x = gg.placeholder((), name="x")
        gg.compile([x], debug.print(x))(4.0)
        assert "x:0 (" in capsys.readouterr().out


def test_blame_names_a_gradient_that_nothing_reaches():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        w = gg.variable(np.ones(3), name="w")
        dw = gg.gradients(gg.sum(gg.sign(x * w) ** 2), w)
        found = gg.debug.blame(dw, {x: np.ones(3)})
        assert [s.kind for s in found.suspects] == ["killed"]
        assert found.first.site is w.node
        assert "gg.explain(ys, xs) says which" in str(found)


def test_blame_names_a_rule_that_reads_no_gradient():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: gg.zeros((3,))):
            y = gg.sin(x)
        found = gg.debug.blame(gg.gradients(gg.sum(y), x), {x: np.ones(3)})
        assert [(s.kind, s.rule) for s in found.suspects] == [("killed", "<lambda>")]


def test_a_tensor_is_fed_once():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with pytest.raises(gg.GraphError, match="fed twice"):
            gg.debug.values(gg.sin(x), {x: 1.0, "x:0": 5.0})
