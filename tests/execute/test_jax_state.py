"""Variables on the JAX backend stay where the last run left them, and are NumPy's when read."""

import copy
import pickle
import threading

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ExecutionError, StateError
from graphgrad.ir.held import fetched

jax = pytest.importorskip("jax")


class Training:
    """w goes half the way to x in each step; n counts."""

    def __init__(self, **options):
        with gg.Graph() as self.graph:
            self.x = gg.placeholder((3,), name="x")
            self.w = gg.variable([4.0, 8.0, 16.0], name="w")
            self.n = gg.variable(0, name="n")
            self.loss = gg.sum((self.w - self.x) ** 2)
            updates = {self.w: (self.w + self.x) / 2, self.n: self.n + 1}
            self.step = gg.compile(self.x, self.loss, updates=updates, backend="jax", **options)
        self.state = self.graph.state

    def held(self):
        return self.state.held([self.w.node, self.n.node])


@pytest.fixture(params=[False, True], ids=["", "donate"])
def trained(request):
    found = Training(donate=request.param)
    assert found.step(np.zeros(3)) == 336
    return found


def test_no_value_of_a_variable_moves_in_100_steps(trained):
    """The guard sees what goes to a CPU device, and on others what comes from it too."""
    with jax.enable_x64(True):
        x = jax.device_put(np.zeros(3))
    step = gg.compile(trained.x, [], updates=trained.step.updates, backend="jax")
    step(x)
    with jax.transfer_guard("disallow"):
        for _ in range(100):
            before = trained.held()
            assert all(isinstance(value, jax.Array) for value in before)
            step(x)
            assert all(a is not b for a, b in zip(before, trained.held(), strict=True))
    assert "101 calls: 0 bytes of inputs and 0 values of variables" in step.explain()
    assert trained.state[trained.n] == 102


def test_nothing_is_read_back_in_100_steps_and_donated_memory_is_kept():
    """Values leave the device by `fetched` alone; new ones are written where the old ones were."""
    with gg.Graph() as graph:
        x, w = gg.placeholder((64,), name="x"), gg.variable(np.ones(64), name="w")
        updates = gg.optimizers.SGD(0.1, momentum=0.9).updates([w], [w * x])
        step = gg.compile(x, gg.sum(w * x), updates=updates, backend="jax", donate=True)
    x = np.linspace(0.0, 1.0, 64)
    step(x)
    read = []
    kept = fetched.dispatch(jax.Array)
    fetched.register(jax.Array, lambda value: read.append(value) or kept(value))
    try:
        places = set()
        for _ in range(100):
            step(x)
            for value in graph.state.held([v.node for v in graph.variables]):
                places.add(value.unsafe_buffer_pointer())
        assert read == []
        assert len(places) == len(list(graph.variables)) > 1
        assert graph.state["w"][-1] < 1.0
        assert len(read) == 1
    finally:
        fetched.register(jax.Array, kept)


def test_what_is_moved_is_counted(trained):
    trained.step(jax.device_put(np.zeros(3, "float32")))  # another dtype: by way of the host
    trained.state["n"] = 5
    trained.step(np.zeros(3))
    moved = "moved in 3 calls: 72 bytes of inputs and 3 values of variables (40 bytes)"
    assert moved in trained.step.explain()


def test_every_reader_sees_arrays_of_numpy(trained, tmp_path):
    state, w, graph = trained.state, trained.w, trained.graph
    expected = [2.0, 4.0, 8.0]
    state["n"] = 7  # by hand: an array of NumPy's beside those of the device
    seen = [state[w], state["w"], state.as_dict()["w"], *state.read([w.node])]
    seen += [state.values()[w.node], pickle.loads(pickle.dumps(graph)).state["w"]]
    seen += [copy.copy(state)[w], copy.deepcopy(graph).state["w"], graph.copy().state["w"]]
    seen += [gg.evaluate(w), gg.compile([], w, backend="llvm")(), gg.Session(graph).run(w)]
    gg.save(tmp_path / "g.gg", graph)
    seen.append(gg.load(tmp_path / "g.gg").graph.state["w"])
    gg.Checkpoints(tmp_path).save(1, graph)
    state.reset()
    gg.Checkpoints(tmp_path).resume(graph)
    seen.append(state[w])
    for array in seen:
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, expected)
    state[w][0] = 99.0
    with pytest.raises(ValueError, match="read-only"):
        state.read([w.node])[0][0] = 99.0
    assert trained.step(np.zeros(3)) == 84


def test_backends_hand_the_state_to_each_other(trained):
    step = gg.compile(trained.x, [], updates=trained.step.updates, backend="numpy")
    for _ in range(2):
        step(np.zeros(3))
        trained.step(np.zeros(3))
    assert trained.state[trained.w].tolist() == [2 / 16, 4 / 16, 8 / 16]
    assert trained.state[trained.n] == 5


def test_an_array_on_the_device_is_fed_as_it_is_and_stays_the_callers(trained):
    with jax.enable_x64(True):
        there = jax.device_put(np.ones(3))
    taken = gg.compile(trained.x, [], updates={trained.w: trained.x}, backend="jax", donate=True)
    with jax.transfer_guard("disallow_explicit"):
        taken(there)
    taken(there)
    assert np.asarray(there).tolist() == trained.state[trained.w].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(gg.ShapeError, match=r"'x' .* got an array of shape \(1, 3\)"):
        taken(there[None])


@pytest.mark.parametrize("donate", [False, True])
def test_variables_that_get_one_value_or_each_others_are_apart(donate):
    with gg.Graph() as graph:
        a, b = gg.variable([1.0, 2.0], name="a"), gg.variable([3.0, 4.0], name="b")
        c = gg.variable([0.0, 0.0], name="c")
        options = {"backend": "jax", "donate": donate}
        swap = gg.compile([], [a, b], updates={a: b, b: a, c: b}, **options)
        both = gg.compile([], [], updates={a: a + b, b: a + b, c: a + 1}, **options)
    assert [v.tolist() for v in swap()] == [[1.0, 2.0], [3.0, 4.0]]
    assert [graph.state[v].tolist() for v in (a, b, c)] == [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    both()
    both()
    assert [graph.state[v].tolist() for v in (a, b, c)] == [[8.0, 12.0], [8.0, 12.0], [5.0, 7.0]]


@pytest.mark.parametrize("donate", [False, True])
def test_a_run_that_fails_before_it_runs_changes_nothing(donate):
    with gg.Graph() as graph:
        x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
        w = gg.variable(1.0, name="w")
        new = w + gg.sum(x * y)
        step = gg.compile([x, y], [], updates={w: new}, backend="jax", donate=donate)
    step([1.0], [1.0])
    for _ in range(2):
        with pytest.raises(gg.ShapeError):
            step([1.0, 2.0], [1.0, 2.0, 3.0])
    assert graph.state[w] == 2.0


def test_donated_values_are_taken_over_and_copies_of_the_state_keep_theirs():
    trained = Training(donate=True)
    trained.step(np.zeros(3))
    before = trained.held()
    trained.step(np.zeros(3))
    assert all(value.is_deleted() for value in before)
    kept, session = trained.state.copy(), gg.Session(trained.graph, "jax")
    for _ in range(3):
        trained.step(np.zeros(3))
    assert kept["n"] == session.run(trained.n) == 2
    assert trained.state["n"] == 5
    assert "gives away the memory of w, n" in trained.step.explain()


def test_values_lost_in_a_failed_run_are_an_error_that_says_how_to_go_on(monkeypatch):
    trained = Training(donate=True)
    reads = gg.compile([], trained.w, backend="jax")
    saved = trained.state.as_dict()
    trained.step(np.zeros(3))

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(trained.step._executable.run, "_handed_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained.step(np.zeros(3))
    for read in [
        lambda: trained.state["w"],
        lambda: trained.state.as_dict(),
        lambda: pickle.dumps(trained.state),
        lambda: trained.step(np.zeros(3)),
        reads,
        lambda: gg.evaluate(trained.w),
    ]:
        with pytest.raises(StateError, match=r"values? of w.* lost: .*donate=True(.|\n)*reset\(\)"):
            read()
    trained.state.load(saved)
    assert trained.step(np.zeros(3)) == 336


def test_what_a_run_that_nobody_waited_for_raised_is_said_by_the_next_read():
    class Failed:
        is_fully_addressable = True

        def __array__(self, dtype=None, copy=None):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    Training()  # which loads the backend
    of_jax = fetched.dispatch(type(jax.numpy.zeros(1)))
    with pytest.raises(StateError, match="of a variable has failed: RESOURCE_EXHAUSTED"):
        of_jax(Failed())


def test_threads_that_read_see_whole_moments_while_another_gives_values_away():
    with gg.Graph() as graph:
        a, b = gg.variable(np.zeros(2000), name="a"), gg.variable(np.zeros(2000), name="b")
        step = gg.compile([], [], updates={a: a + 1, b: b - 1}, backend="jax", donate=True)
        both = gg.compile([], gg.max(gg.abs(a + b)), backend="jax")
    wrong, done = [], threading.Event()

    def look(read):
        while not done.is_set():
            wrong.extend(x for x in read() if x != 0)

    reads = [lambda: [both()], lambda: [np.abs(np.add(*graph.state.read([a.node, b.node]))).max()]]
    reads.append(lambda: [np.abs(np.add(*graph.state.copy().as_dict().values())).max()])
    threads = [threading.Thread(target=look, args=(read,)) for read in reads]
    for each in threads:
        each.start()
    try:
        for _ in range(30):
            step()
    finally:
        done.set()
        for each in threads:
            each.join()
    assert wrong == []
    assert graph.state[a][0] == 30


def test_a_state_takes_no_values_from_a_function_that_jax_traces():
    with gg.Graph() as graph:
        x, w = gg.placeholder((3,), "float32", name="x"), gg.variable(np.zeros(3, "float32"))
        step = gg.compile(x, [], updates={w: w + x}, backend="jax")
    ones = np.ones((2, 3), "float32")
    for transform, given in [(jax.jit, ones[0]), (jax.grad, ones[0]), (jax.vmap, ones)]:
        with pytest.raises(gg.ExecutionError, match="while JAX traces a function"):
            transform(lambda x: step(x))(given)
    assert graph.state[w].tolist() == [0.0, 0.0, 0.0]


def test_code_on_the_host_could_look_at_what_is_given_away():
    with gg.Graph():
        w = gg.variable(1.0, name="w")
        new = gg.py_function(lambda x: x + 1, [w], out_types=[((), "float64")])
        within = gg.cond(w > 0, lambda: gg.py_function(abs, [w], [((), "float64")]), lambda: w)
        for value in (new, within):
            with pytest.raises(ExecutionError, match=r"donate=True cannot .*test_jax_state\.py"):
                gg.compile([], [], updates={w: value}, backend="jax", donate=True)
        with pytest.raises(TypeError, match="donate is True or False, got 1"):
            gg.compile([], w, backend="jax", donate=1)
        with pytest.raises(TypeError, match="'llvm' takes no donate"):
            gg.compile([], w, backend="llvm", donate=True)
