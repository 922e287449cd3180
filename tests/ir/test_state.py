"""Values of variables, held outside the graph."""

import copy
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.collector import having
from graphgrad.base.errors import DTypeError, ShapeError, StateError, SymbolicError
from graphgrad.ir.state import RUN


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


def test_who_reads_again_reads_what_was_written_since(graph, v):
    w = gg.variable([0.0, 0.0], "float32")
    look = gg.compile([], [v, w])
    both = gg.compile([], [], updates={v: v + 1, w: v})
    one = gg.compile([], [], updates={w: w * 2})
    for _ in range(2):
        assert np.array_equal(look(), [[1, 2], [0, 0]])
        assert np.array_equal(look(), [[1, 2], [0, 0]])
        both()
        both()
        one()
        assert np.array_equal(look(), [[3, 4], [4, 6]])
        graph.state[v] = [7, 8]
        assert np.array_equal(look(), [[7, 8], [4, 6]])
        graph.state.reset()


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


def test_a_state_is_pickled_with_its_values(graph, v):
    graph.state[v] = [3.0, 4.0]
    again = pickle.loads(pickle.dumps(graph.state))
    assert [a.tolist() for a in again.values().values()] == [[3.0, 4.0]]


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
        ("x", r"no variable is named 'x'. There are 'v'."),
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


def test_the_number_of_a_run_is_put_back_when_a_run_in_it_has_ended():
    inner = partial(having, RUN, 5, RUN.get)
    assert having(RUN, 3, lambda: (inner(), RUN.get())) == (5, 3)
    assert RUN.get() == 0


# --- runs that write take turns ------------------------------------------------------------------


@pytest.fixture
def often():
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def counter(name, state=None, around=None):
    """A variable, and the run that adds 1 to it; around() is called in that run."""
    w = gg.variable(np.zeros(()), name=name)
    one = gg.py_function(lambda: [around and around(), 1.0][1], [], [((), "float64")])
    return w, gg.compile([], w, updates={w: w + one}, state=state)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_threads_lose_no_update(graph, often, backend):
    pytest.importorskip("llvmlite") if backend == "llvm" else None
    w = gg.variable(np.zeros(()))
    runs = [gg.compile([], w, updates={w: w + 1.0}, backend=backend) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda i: [runs[i % 2]() for _ in range(200)], range(8))]
    assert graph.state[w] == 1600


def test_threads_of_a_session_lose_no_update(graph, often):
    w = gg.variable(np.zeros(()), name="w")
    add = gg.assign(w, w + 1.0)
    session = gg.Session(graph)
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda _: [session.run(add) for _ in range(100)], range(8))]
    assert session.run(w) == 800


def test_what_is_written_by_hand_comes_before_a_run_or_after_it(graph):
    inside, go_on = threading.Event(), threading.Event()
    w, add = counter("w", around=lambda: inside.set() or go_on.wait(60))
    with ThreadPoolExecutor(2) as pool:
        run = pool.submit(add)
        assert inside.wait(60)
        by_hand = pool.submit(graph.state.__setitem__, w, 100.0)
        assert graph.state[w] == gg.evaluate(w) == 0  # who reads waits for nobody
        assert not by_hand.done()
        go_on.set()
        assert (run.result(20), by_hand.result(20)) == (0, None)
    assert graph.state[w] == 100


def test_a_run_in_a_run_that_writes_the_same_state_is_an_error(graph):
    seen = []

    def again():
        with pytest.raises(StateError, match="a thread that is already writing it"):
            add()
        with pytest.raises(StateError, match="Write it after that run"):
            graph.state[w] = 5.0
        with pytest.raises(StateError, match="already writing it"):
            graph.state.reset()
        seen.append(float(graph.state[w]))

    w, add = counter("w", around=again)
    assert (add(), add()) == (0, 1)
    assert (seen, graph.state[w]) == ([0, 1], 2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_signal_handler_that_writes_what_is_being_written_gets_an_error(graph):
    seen = []

    def handler(*_):
        with pytest.raises(StateError, match="signal handler"):
            add()
        seen.append(1)

    def wait():
        signal.raise_signal(signal.SIGUSR1)

    w, add = counter("w", around=wait)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        add()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (seen, graph.state[w]) == ([1], 1)


def test_a_run_in_a_run_may_write_another_state_and_read_this_one(graph):
    v, add_v = counter("v", state=gg.State())
    read = gg.compile([], gg.variable(np.zeros(()), name="u") * 0.0 + v)
    w, add = counter("w", around=lambda: (add_v(), add_v(), read()))
    add()
    assert (graph.state[w], add_v()) == (1, 2)
    add()
    assert (graph.state[w], add_v()) == (2, 5)


def test_threads_that_would_wait_for_each_other_are_told(graph):
    """Each writes one state and then wants the other's."""
    states, both, refused = [gg.State(), gg.State()], threading.Barrier(2), []

    def other(i):
        both.wait(60)
        try:
            inner[1 - i][1]()
        except StateError as error:
            refused.append(str(error))

    inner = [counter(f"v{i}", state=states[i]) for i in range(2)]
    outer = [counter(f"w{i}", states[i], lambda i=i: other(i))[1] for i in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(run) for run in outer]:
            assert done.result(20) == 0
    assert len(refused) == 1
    assert "in a cycle of threads" in refused[0]
    assert sorted(float(states[i][inner[i][0]]) for i in range(2)) == [0, 1]
    assert sorted(float(run()) for _, run in inner) == [0, 1]  # it is nobody's turn any more


def test_a_run_that_fails_ends_its_turn_and_writes_nothing(graph):
    def fail():
        raise KeyboardInterrupt

    w, add = counter("w", around=fail)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            add()
    assert graph.state[w] == 0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(graph.state.__setitem__, w, 3.0).result(20)
    assert graph.state[w] == 3


def test_a_copy_made_in_a_run_has_turns_of_its_own(graph):
    copies = []

    def take():
        copies.extend([graph.state.copy(), copy.copy(graph.state)])
        for each in copies:
            each[w] = 7.0

    w, add = counter("w", around=take)
    add()
    assert ([float(c[w]) for c in copies], graph.state[w]) == ([7, 7], 1)


def test_what_is_no_variable_is_not_written():
    with gg.Graph() as g:
        w = gg.variable(np.ones(3), name="w")
        y = w * 2.0
    for key in ("w", w, y.node):
        with pytest.raises(gg.StateError, match="not the node of a variable"):
            g.state.commit({key: np.zeros(3)})
    np.testing.assert_array_equal(g.state[w], np.ones(3))
