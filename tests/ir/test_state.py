"""Values of variables, held outside the graph."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.errors import DTypeError, ShapeError, StateError, SymbolicError


@pytest.fixture
def graph():
    with gg.Graph() as g:
        yield g


@pytest.fixture
def v(graph):
    return gg.variable(np.array([1.0, 2.0], "float32"), name="v")


def test_a_variable_begins_with_its_initial_value_and_goes_back_to_it(graph, v):
    state = graph.state
    assert (len(state), state.values(), state[v].tolist()) == (0, {}, [1.0, 2.0])
    state[v] = [3, 4]
    assert (len(state), state[v].tolist(), state[v].dtype) == (1, [3.0, 4.0], np.float32)
    assert [*state.values()] == [v.node]
    state.reset()
    assert (len(state), state[v].tolist()) == (0, [1.0, 2.0])


def test_what_is_handed_out_cannot_change_the_state(graph, v):
    state = graph.state
    state[v][0] = 9.0
    given = np.array([5.0, 6.0], "float32")
    for _ in range(2):  # the initial value, then one that was written
        with pytest.raises(ValueError, match="read-only"):
            state.read([v.node])[0][0] = 9.0
        before = state[v].tolist()
        state.values().clear()
        assert state[v].tolist() == before
        state[v] = given
        given[0] = 9.0
        assert state[v].tolist() == [5.0, 6.0]
        given[0] = 5.0


def test_a_copy_is_a_state_of_its_own(graph, v):
    graph.state[v] = [3.0, 4.0]
    for copied in (graph.state.copy(), copy.copy(graph.state)):
        copied[v] = [5.0, 6.0]
        assert graph.state[v].tolist() == [3.0, 4.0]
        copied.reset()
        assert graph.state[v].tolist() == [3.0, 4.0]


def test_a_state_is_pickled_with_its_graph(graph, v):
    graph.state[v] = [3.0, 4.0]
    again = pickle.loads(pickle.dumps(graph))
    w = again.tensor("v")
    assert again.state[w].tolist() == [3.0, 4.0]
    again.state[w] = [5.0, 6.0]
    assert graph.state[v].tolist() == [3.0, 4.0]


def test_values_of_other_graphs_variables_stay_behind_in_a_pickle(graph, v):
    """A state may be shared by graphs: a value of another graph's is for no variable of this."""
    with gg.Graph():
        other = gg.variable(np.zeros(2, "float32"), name="other")
    graph.state[other] = [7.0, 8.0]
    assert other.node.index == v.node.index
    assert graph.state[v].tolist() == [1.0, 2.0]
    for again in (pickle.loads(pickle.dumps(graph)), graph.copy()):
        assert again.state[again.tensor("v")].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ([1j, 2], DTypeError, "v is float32, cannot take complex128"),
        (["a", "b"], DTypeError, "v is float32, cannot take <U1"),
        (None, DTypeError, "v is float32, cannot take object"),
        ([1.0], ShapeError, r"v is float32\[2\], cannot take shape \(1,\)"),
        (1.0, ShapeError, r"v is float32\[2\], cannot take shape \(\)"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_the_old_one_stays(graph, v, value, kind, said):
    graph.state[v] = [3.0, 4.0]
    with pytest.raises(kind, match=said):
        graph.state[v] = value
    assert graph.state[v].tolist() == [3.0, 4.0]


def test_a_tensor_is_no_value(graph, v):
    with pytest.raises(SymbolicError, match=r"gg\.evaluate"):
        graph.state[v] = v
    assert len(graph.state) == 0


def test_what_is_no_variable_is_refused(graph, v):
    x = gg.placeholder((2,), name="x")
    for wrong, said in [
        (x, r"x:0 \(built at test_state.py:\d+\) is not a variable"),
        ("v", "'v' is not a variable"),
        (3, "3 is not a variable"),
    ]:
        with pytest.raises(StateError, match=said):
            graph.state[wrong]
        with pytest.raises(StateError, match=said):
            graph.state[wrong] = [1.0, 2.0]
    assert len(graph.state) == 0


def test_what_is_written_together_is_read_together(graph):
    a, b = (gg.variable(np.zeros(1), name=n).node for n in "ab")

    def write(i):
        graph.state.commit({a: np.full(1, float(i)), b: np.full(1, float(i))})
        return [x.item() for x in graph.state.read([a, b])]

    with ThreadPoolExecutor(8) as pool:
        assert all(x == y for x, y in pool.map(write, range(2000)))
