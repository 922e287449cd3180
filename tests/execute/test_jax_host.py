"""What JAX asks of the host keeps its 64 bits, in whichever thread XLA asks."""

import threading

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base import locks

jax = pytest.importorskip("jax")
HostCalls = pytest.importorskip("graphgrad.execute.jax.host").HostCalls

VALUES = [np.float64(1 / 3), np.int64(2**40 + 1), np.uint64(2**62 + 5), np.array([[1 / 3 + 2j]])]
VALUES += [np.zeros((0, 2)), np.float32(1 / 3), np.array([True]), np.complex64(1j)]


def elsewhere(run, made, *arrays):
    """As pure_callback calls it, from a thread that has not enabled 64-bit types."""
    found = []

    def call():
        there = [np.asarray(jax.device_put(np.asarray(x))) for x in arrays]
        found.extend(np.asarray(jax.device_put(y)) for y in run(*there))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert [(y.shape, y.dtype) for y in found] == [(t.shape, t.dtype) for t in made]
    return found


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{list(v.shape)}")
def test_numbers_go_to_the_host_and_back_as_they_are(value):
    from graphgrad.execute.jax.host import on_host

    seen = []
    with jax.enable_x64(True):
        made = [jax.ShapeDtypeStruct(value.shape, value.dtype)] * 2
        found = on_host(elsewhere, lambda x: seen.append(x) or (x, x + x), made, [value])
    for y, wanted in zip([*seen, *found], [value, value, value + value], strict=True):
        assert (y.dtype, y.shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(y, wanted)


def test_a_call_of_the_host_has_no_derivative_of_zero():
    from graphgrad.execute.jax.host import on_host

    def f(x):
        return on_host(jax.pure_callback, np.sin, [jax.ShapeDtypeStruct((), x.dtype)], [x])[0]

    with jax.enable_x64(True), pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(f)(1.0)


def test_loops_side_by_side_count_their_trips():
    with gg.Graph():
        m = gg.placeholder((64, 64))
        outs = [
            gg.while_loop(
                lambda c, k=k: c[0] < 5.0 + k,
                lambda c: (c[0] + 1.0, c[1] @ c[1] * 0.01),
                (0.0, m),
                max_trips=10,
            )[1]
            for k in range(4)
        ]
        f = gg.compile(m, outs, backend="jax")
        for _ in range(8):  # XLA's own threads make the calls now and then
            f(np.ones((64, 64)))


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_what_code_of_ones_own_raises_is_raised_as_it_is_on_every_backend(backend):
    def wrong(x):
        raise KeyError("mine", float(x.sum()))

    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        f = gg.compile(x, gg.py_function(wrong, [x], [((2,), "float64")]), backend=backend)
        many = gg.while_loop(lambda y: y < 9, lambda y: y + 1, gg.sum(x), max_trips=2)
        g = gg.compile(x, many, backend=backend)
    for _ in range(2):  # when it is traced, and after
        with pytest.raises(KeyError, match=r"'mine', 2.0") as error:
            f(np.ones(2))
        assert any("py_function 'wrong'" in note for note in error.value.__notes__)
        with pytest.raises(gg.ExecutionError, match="still true after max_trips=2 runs"):
            g(np.ones(2))


def test_what_failed_in_a_thread_of_xla_is_no_matter_of_the_next_run():
    """JAX has calls with effects wait for one another, and would raise it again for ever."""
    calls = []

    def at_first(x):
        calls.append(x)
        if len(calls) == 1:
            raise KeyError("mine")
        return x

    with gg.Graph():
        x = gg.placeholder((400, 400), name="x")
        y = gg.py_function(at_first, [x @ x], [((400, 400), "float64")])
        f = gg.compile(x, y[0, 0], backend="jax")
    with pytest.raises(KeyError, match="mine"):
        f(np.ones((400, 400)))
    assert [f(np.ones((400, 400))) for _ in range(2)] == [400.0, 400.0]


def test_code_that_writes_the_state_of_the_run_that_waits_for_it_is_an_error_on_jax():
    """In a thread of XLA it would wait for the run, and the run for it."""
    with gg.Graph() as graph:
        gg.variable(1.0, name="w")
    calls, raised = HostCalls(), []

    def of_xla():
        try:
            with calls.acting():
                graph.state["w"] = 2.0
        except gg.StateError as error:
            raised.append(str(error))

    def run():
        with calls.awaited():
            thread = threading.Thread(target=of_xla, daemon=True)
            thread.start()
            thread.join(10)

    graph.state.turn.take(run)
    assert "during a run with updates" in raised[0]
    assert graph.state["w"] == 1.0
    run()  # one that only reads
    assert graph.state["w"] == 2.0
    with calls.acting():  # for nobody: the run is over
        assert locks._acting == {}


def test_an_error_of_xla_says_what_is_large():
    with gg.Graph():
        x = gg.placeholder(("N",), name="x")
        large = gg.sort(x[:, None] * x, axis=0)
        f = gg.compile(x, gg.sin(gg.sum(gg.tanh(gg.max(large, 0)) * x)), backend="jax")
    with pytest.raises(Exception, match="RESOURCE_EXHAUSTED") as error:
        f(np.ones(2**20))  # 8 TB
    (note,) = error.value.__notes__
    assert "float64[1048576, 1048576], 8796093022208 bytes, built at test_jax_host.py:" in note
