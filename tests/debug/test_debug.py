"""gg.debug: every value, the first NaN, printing."""

from __future__ import annotations

import io

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import debug


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


def test_a_tensor_is_fed_once():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with pytest.raises(gg.GraphError, match="fed twice"):
            gg.debug.values(gg.sin(x), {x: 1.0, "x:0": 5.0})


class TestChoices:
    """The branch of a cond that runs is looked into."""

    @pytest.fixture
    def choice(self, graph):
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy):
            y = gg.cond(gg.sum(x) > 0, lambda: gg.exp(x), lambda: gg.log(x))
        return x, y

    def test_values_are_named_by_choice_and_branch(self, choice):
        x, y = choice
        found = debug.values(y, {x: np.ones(3)})
        (name,) = [n for n in found if "/then/" in n]
        assert name.startswith(f"{y.node.name}/then/Exp")
        np.testing.assert_array_equal(found[name], np.exp(np.ones(3)))
        assert not any("/else/" in n for n in found)
        assert list(found).index(name) < list(found).index(y.name)

    def test_choices_in_choices(self, graph):
        x = gg.placeholder((), name="x")
        y = gg.cond(x > 0, lambda: gg.cond(x > 1, lambda: gg.exp(x), lambda: x), lambda: x)
        (name,) = [n for n in debug.values(y, {x: 2.0}) if "Exp" in n]
        assert name.count("/then/") == 2

    def test_the_guard_names_the_node_and_its_branch(self, choice):
        x, y = choice
        with pytest.raises(debug.NotFiniteError, match="made by Log") as caught:
            debug.nan_guard(y, {x: -np.ones(3)})
        assert caught.value.node.type == "Log"
        assert f"in the else branch of {y.node.name}" in str(caught.value)
        assert "from x:0" in str(caught.value)

    def test_the_region_in_a_branch(self, graph):
        def marked():
            with gg.override_gradient(lambda site, dy: dy) as region:
                found.append(region)
                return gg.log(x)

        found = []
        x = gg.placeholder((3,), name="x")
        y = gg.cond(gg.sum(x) > 0, lambda: x, marked)
        with pytest.raises(debug.NotFiniteError) as caught:
            debug.nan_guard(y, {x: -np.ones(3)})
        assert caught.value.region in found

    def test_what_fails_in_a_branch_is_named(self, graph):
        def fails(a):
            raise RuntimeError("oh")

        x = gg.placeholder((), name="x")
        y = gg.cond(x > 0, lambda: gg.py_function(fails, [x], [x.type]), lambda: x)
        with pytest.raises(RuntimeError) as caught:
            debug.values(y, {x: 1.0})
        assert caught.value.failed.type == "PyFunction"
        assert debug.values(y, {x: -1.0})[y.name] == -1.0


class TestWhatIsLookedAt:
    def test_compiled_functions(self, graph):
        x = gg.placeholder((2,), name="x")
        v = gg.variable(1.0, name="v")
        state = gg.State()
        f = gg.compile(x, {"y": gg.exp(x) * v}, state=state)
        gg.compile([], v, updates={v: 3.0}, state=state)()
        for feeds in ({x: np.zeros(2)}, {"x": np.zeros(2)}, (np.zeros(2),), [np.zeros(2)]):
            assert debug.values(f, feeds)["v:0"] == 3.0
            np.testing.assert_array_equal(debug.nan_guard(f, feeds)["y"], [3.0, 3.0])
        with pytest.raises(TypeError, match="missing 'x'"):
            debug.values(f, ())

    def test_functions(self):
        f = gg.function(lambda a, b: gg.log(a["k"]) + b)
        arguments = {"k": np.ones(2)}, 2.0
        assert len(debug.values(f, arguments)) == 4
        np.testing.assert_array_equal(debug.nan_guard(f, arguments), [2.0, 2.0])
        with pytest.raises(TypeError, match="arguments of a call, in a tuple"):
            debug.values(f, arguments[0])

    def test_nothing_but_none(self):
        with pytest.raises(gg.GraphError, match="only None"):
            debug.values([None], {"x": 1.0})

    def test_feeds_of_tensors_are_a_mapping(self, graph):
        x = gg.placeholder(())
        with pytest.raises(TypeError, match="tensor or name: array"):
            debug.values(gg.exp(x), (1.0,))


def test_values_are_an_overlay_by_tensor(graph):
    x = gg.placeholder((2,), name="x")
    y = gg.cond(gg.sum(x) > 0, lambda: gg.exp(x), lambda: x) * -2.0
    found = debug.values(y, {x: [0.0, np.log(3.0)]})
    (inner,) = [t for t in found.by_tensor if t.node.type == "Exp"]
    np.testing.assert_allclose(found.by_tensor[inner], [1.0, 3.0])
    largest = {t: np.abs(a).max() for t, a in found.by_tensor.items()}
    gg.to_html(y, overlays={"largest": largest})
    assert gg.to_dot(y, overlay=largest) != gg.to_dot(y)


def test_a_failure_is_what_pictures_ring(graph):
    x = gg.placeholder((3,), name="x")
    y = gg.log(x)
    with pytest.raises(debug.NotFiniteError) as caught:
        debug.nan_guard(y, {x: -np.ones(3)})
    assert caught.value.failed is y.node
    assert "FAILED" in gg.to_dot(graph, failed=caught.value)


def test_names_are_shown_and_never_run(capsys):
    name = "a\x1b[31m\u202eb\nc"
    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
        with gg.name_scope("s"), gg.gradient_override_map({"Log": lambda site, dy: dy * 3.0}):
            y = gg.log(x)
        dx = gg.gradients(y, x)
        dead = gg.gradients(gg.round(x), x)
    for node in g.nodes:
        node._name = f"{name}{node.index}"
    texts = [str(debug.blame(dead)), str(gg.explain(y, x)), repr(gg.explain(y, x))]
    with pytest.raises(debug.NotFiniteError) as caught:
        debug.nan_guard(dx, {x: np.array([0.0, np.inf])})
    texts += [str(caught.value), str(gg.check_gradient(y.node)), repr(gg.compile(x, y))]
    gg.compile(x, debug.print(y))(np.ones(2))
    texts.append(capsys.readouterr().out)
    texts.append(str(debug.compare(y, {x: np.ones(2)}, tolerance=-1.0)))
    for text in texts:
        assert "\\x1b[31m\\u202eb\\nc" in text
        assert not any(c in text for c in "\x1b\u202e")
