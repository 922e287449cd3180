"""Variables and their values by name."""

import copy
import pickle

import numpy as np
import pytest

import graphgrad as gg


@pytest.fixture
def graph():
    with gg.Graph() as g:
        w = gg.variable(np.ones((2, 3), "float32"), name="layer/w")
        gg.variable(np.zeros(3), name="layer/b", trainable=False)
        gg.variable(0, name="count")
        gg.optimizers.SGD(momentum=0.9).updates([w], [gg.constant(np.ones((2, 3), "float32"))])
    return g


def test_the_variables_of_a_graph_are_listed_with_what_they_are_for(graph):
    found = graph.variables
    assert found.names == ["layer/w", "layer/b", "count", "optimizer/step", "layer/w/momentum"]
    assert found.trainable.names == ["layer/w"]
    assert found.slots.names == ["optimizer/step", "layer/w/momentum"]
    assert found["layer/w"] is found[0] is graph.tensor("layer/w")
    assert found[1:3].names == ["layer/b", "count"]
    assert "count" in found
    assert found[2] in found
    assert "layer" not in found
    assert "layer/w: float32[2, 3], trainable; layer/b: float64[3]; count: int64[];" in repr(found)
    with pytest.raises(
        gg.StateError, match=r"no variable is named 'layer/W'. Did you mean 'layer/w'"
    ):
        found["layer/W"]
    with pytest.raises(IndexError):
        found[9]
    assert repr(gg.Graph().variables) == "<0 variables>"


def test_marks_outlive_copies_and_pickles(graph):
    for again in (graph.copy(), pickle.loads(pickle.dumps(graph)), copy.copy(graph)):
        assert repr(again.variables) == repr(graph.variables)


def test_a_mark_is_a_bool(graph):
    with graph, pytest.raises(TypeError, match="True or False, got 'no'"):
        gg.variable(1.0, trainable="no")


def test_all_values_go_out_by_name_and_in_again(graph):
    state = graph.state
    state["layer/b"] = [1.0, 2.0, 3.0]
    values = state.as_dict()
    assert list(values) == graph.variables.names
    values["layer/b"][0] = 9.0  # the caller's own
    assert state["layer/b"].tolist() == [1.0, 2.0, 3.0]
    other = gg.State(graph)
    assert other.load(values) == ([], [])
    assert other["layer/b"].tolist() == [9.0, 2.0, 3.0]
    assert other["layer/w"].dtype == "float32"
    values["layer/b"][0] = 8.0
    assert other["layer/b"].tolist() == [9.0, 2.0, 3.0]


def test_all_that_is_wrong_is_listed_and_nothing_is_written(graph):
    wrong = {"layer/w": np.ones((3, 2)), "layer/B": 1.0, "count": 0.5, "optimizer/step": 4, 3: 1}
    with pytest.raises(gg.StateError) as error:
        graph.state.load(wrong)
    assert str(error.value).split("\n") == [
        "the values do not fit the variables; none was written.",
        "  does not fit: layer/w is float32[2, 3], cannot take shape (3, 2)",
        "  does not fit: count is int64, cannot take float64",
        "  missing: layer/b, float64[3]",
        "  missing: layer/w/momentum, float32[2, 3]",
        "  unknown: 'layer/B'. Did you mean 'layer/b'?",
        "  unknown: 3. There are 'count', 'layer/b', 'layer/w', 'layer/w/momentum', "
        "'optimizer/step'.",
    ]
    with pytest.raises(gg.StateError, match="none was written"):
        graph.state.load(wrong, strict=False)  # what does not fit is wrong all the same
    assert len(graph.state) == 0
    assert graph.state["optimizer/step"] == 0


def test_a_part_can_be_loaded(graph):
    missing, unknown = graph.state.load({"count": 7, "other": 1}, strict=False)
    assert (len(missing), unknown, graph.state["count"]) == (4, ["other"], 7)


@pytest.mark.parametrize("key", ["layer/v", "cuont", "zzz"])
def test_an_unknown_name_is_an_error_that_names_near_ones(graph, key):
    said = {"layer/v": "Did you mean 'layer/w'", "cuont": "Did you mean 'count'"}
    with pytest.raises(gg.StateError, match=said.get(key, "There are 'count', 'layer/b'")):
        graph.state[key]
    with pytest.raises(gg.StateError, match=f"no variable is named '{key}'"):
        graph.state[key] = 1.0


def test_a_state_learns_its_graph_from_its_first_use(graph):
    w, b = graph.variables[:2]
    for use in (lambda s: gg.compile([], w, state=s), lambda s: s[b]):
        state = gg.State()
        with pytest.raises(gg.StateError, match=r"gg.State\(graph\)"):
            state.as_dict()
        with pytest.raises(gg.StateError, match=r"gg.State\(graph\)"):
            state["layer/w"]
        use(state)
        assert list(state.as_dict()) == graph.variables.names
    for session in (gg.Session(graph), gg.Session(graph, fresh=True)):
        assert session.state["count"] == 0
    assert pickle.loads(pickle.dumps(gg.State(graph)))["count"] == 0
    assert graph.copy().state["count"] == 0


def test_one_state_for_two_graphs_knows_what_was_written_of_the_second():
    with gg.Graph() as g:
        gg.variable(1.0, name="a")
    with gg.Graph() as h:
        b, a = gg.variable(2.0, name="b"), gg.variable(3.0, name="a")
    g.state[b] = 5.0
    assert g.state.as_dict() == {"a": 1.0, "b": 5.0}
    g.state[a] = 6.0
    assert g.state[a] == 6.0
    with pytest.raises(gg.StateError, match=r"two variables are named .a., built at .*graphs"):
        g.state.as_dict()
    assert h.state.as_dict() == {"b": 2.0, "a": 3.0}
