"""Next values of variables, written over old ones that nobody holds any more."""

import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.execute.run import arena, planned
from graphgrad.execute.run.arena import NextValues, is_gathered
from graphgrad.ir.types import tensor_type

BACKENDS = ["numpy", "llvm"]
TYPES = [tensor_type((3,), "float64"), tensor_type((), "int8"), tensor_type((0, 2), "float32")]


def at(arrays):
    return [a.__array_interface__["data"][0] for a in arrays]


def two(backend="numpy", **options):
    """A graph with two variables, and a step that adds 1 to the one and doubles the other."""
    with gg.Graph() as g:
        v, w = gg.variable([0.0, 0.0], name="v"), gg.variable(1.0, name="w")
        updates = {v: v + 1.0, w: 2.0 * w}
        return g, v, w, gg.compile([], [gg.sum(v)], updates=updates, backend=backend, **options)


def test_a_set_has_its_arrays_in_one_block_to_write_and_to_read():
    written, shown = NextValues(TYPES)()
    assert at(written) == at(shown)
    for t, a, b in zip(TYPES, written, shown, strict=True):
        assert (a.shape, a.dtype, b.shape, b.dtype) == (t.shape, t.dtype) * 2
        assert (a.flags.writeable, b.flags.writeable) == (True, False)
        assert a.flags.c_contiguous
        assert a.ctypes.data % arena.ALIGNMENT == 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            b.flags.writeable = True
    assert len({id(a.base) for a in (*written, *shown)}) == 1
    assert len({*at(written[:2])}) == 2


def test_two_sets_take_turns():
    new = NextValues(TYPES)
    latest, seen = None, []
    for _ in range(6):
        latest = [*new()[1]]
        seen.append(at(latest)[0])
    assert seen == seen[:2] * 3
    assert seen[0] != seen[1]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    "hold",
    [lambda a: a, lambda a: a[...], lambda a: a.T, memoryview, lambda a: weakref.ref(a.base)],
    ids=["itself", "view", "turned", "buffer", "block"],
)
def test_a_set_of_which_somebody_can_see_anything_is_not_taken_again(hold, which):
    new = NextValues(TYPES)
    written, shown = new()
    where, held = at(written), hold(shown[which])
    del written, shown
    assert all(at(new()[0]) != where for _ in range(6))
    assert held is not None


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_read_stays_as_it_was(backend):
    g, v, w, step = two(backend)
    nodes = [v.node, w.node]
    look = gg.compile([], [v, w], backend=backend)
    held = []
    for n in range(8):
        values = g.state.read(nodes)
        held += [(n, values), (n, [*g.state.values().values()] or values), (n, look())]
        held += [(n, [a[...] for a in g.state.read(nodes)]), (n, g.state.copy().read(nodes))]
        with pytest.raises(ValueError, match="read-only"):
            values[0][0] = 7.0
        assert step()[0] == 2.0 * n
    for n, (a, b) in held:
        assert (a.tolist(), float(b)) == ([n, n], 2.0**n)


def test_a_state_keeps_the_memory_of_two_sets():
    g, v, _w, step = two()
    seen = set()
    for _ in range(50):
        step()
        gc.collect(0)
        seen.add(at(g.state.read([v.node]))[0])
    assert len(seen) <= 3  # one before the program is run by a function of its own, maybe


def test_what_was_found_again_is_not_written():
    """A weak reference to what `read` returned is to a view, which is gone."""
    g, v, _, step = two()
    step()
    found = weakref.ref(g.state.read([v.node])[0])
    assert found() is None


@pytest.mark.parametrize("kind", ["straight", "looped", "warming", "checked", "uncounted", "open"])
def test_every_kind_of_run_gives_the_state_what_cannot_be_written(kind, monkeypatch):
    if kind in ("looped", "warming"):
        monkeypatch.setattr(planned, "LONG", 0)
        monkeypatch.setattr(planned, "OFTEN", 100 if kind == "looped" else 2)
    if kind == "uncounted":
        monkeypatch.setattr(arena, "_COUNTED", False)
        assert not is_gathered(TYPES[0])
    with gg.Graph() as g:
        x = gg.placeholder(("N",) if kind == "open" else (2,))
        v, w = gg.variable([1.0, 2.0]), gg.variable([3.0, 4.0])
        u, same = gg.variable([0.0, 0.0]), gg.variable([0.0, 0.0])
        big = gg.variable(np.zeros(arena.LARGE))
        new = gg.exp(v) * 0.0 + w
        updates = {v: new, w: v, u: gg.reshape(x, (2,)), same: new, big: big + 1.0}
        check = kind == "checked"
        step = gg.compile([x], [new, v * w], updates=updates, backend=NumpyBackend(check=check))
    nodes = [t.node for t in (v, w, u, same, big)]
    old, other = [1.0, 2.0], [3.0, 4.0]
    for n in range(1, 6):
        made, product = step([5.0, float(n)])
        assert (made.tolist(), product.tolist()) == (other, [3.0, 8.0])
        assert made.flags.writeable
        made[...] = product[...] = 99.0
        values = g.state.read(nodes)
        assert [a.tolist() for a in values[:4]] == [other, old, [5.0, n], other]
        assert (values[4] == n).all()
        assert not any(a.flags.writeable for a in values)
        old, other = other, old


@pytest.mark.parametrize("backend", BACKENDS)
def test_places_of_slots_that_are_taken_twice(backend):
    """A slot that an argument leaves free is that of the result."""
    with gg.Graph() as g:
        m = np.array([[2.0, 1.0], [1.0, 3.0]])
        vs = [gg.variable(m * (i + 1.0)) for i in range(3)]
        new = [gg.linalg.inv(v) + gg.sort(v, 0) for v in vs]
        sums = gg.sort(gg.stack([gg.sum(t) for t in new]))
        step = gg.compile([], sums, updates=dict(zip(vs, new, strict=True)), backend=backend)
    values = [m * (i + 1.0) for i in range(3)]
    for _ in range(5):
        values = [np.linalg.inv(a) + np.sort(a, 0) for a in values]
        np.testing.assert_allclose(step(), sorted(a.sum() for a in values), rtol=1e-9)
        for v, a in zip(vs, values, strict=True):
            np.testing.assert_allclose(g.state[v], a, rtol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_that_fails_writes_nothing(backend):
    with gg.Graph() as g:
        x = gg.placeholder((), "int64")
        v, w = gg.variable([1.0, 2.0]), gg.variable([3.0, 4.0])
        row = gg.take(v, x)
        step = gg.compile([x], [], updates={v: v + 1.0, w: w * row}, backend=backend)
    for n in range(4):
        step(0)
        before = g.state[v].tolist(), g.state[w].tolist()
        with pytest.raises(IndexError):
            step(2)
        assert (g.state[v].tolist(), g.state[w].tolist()) == before
        assert before[0] == [n + 2.0, n + 3.0]


def test_what_is_ahead_is_found_wherever_a_state_is_looked_into():
    g, v, w, step = two()
    for n in range(1, 4):
        step()
        g.state[w] = 1.0
        step()
        assert (len(g.state), g.state[v].tolist()) == (2, [2.0 * n, 2.0 * n])
        assert {k.name: a.tolist() for k, a in g.state.values().items()} == {
            "v": [2.0 * n] * 2,
            "w": 2.0,
        }
        step()
        assert g.state.as_dict()["w"] == 4.0
        assert pickle.loads(pickle.dumps(g.state))["w"] == 4.0
        assert g.state.copy()[w] == 4.0
        g.state[v] = g.state[v] - 1.0
    g.state.reset()
    assert (len(g.state), g.state[w]) == (0, 1.0)
    step()
    assert g.state[w] == 2.0


def test_the_order_of_what_was_written_stays():
    g, _v, w, step = two()
    g.state[w] = 1.0
    for _ in range(3):
        step()
        assert [n.name for n in g.state.values()] == ["w", "v"]


def test_old_values_are_given_up():
    g, v, _w, step = two()
    g.state[v] = [5.0, 5.0]
    old = weakref.ref(g.state._values[v.node])
    step()
    assert old() is None


def test_functions_that_write_the_same_variables_in_turn():
    with gg.Graph() as g:
        v, w = gg.variable(0.0), gg.variable(0.0)
        one = gg.compile([], [], updates={v: v + 1.0, w: w + v}, backend="numpy")
        other = gg.compile([], [], updates={w: w + 10.0, v: v + w * 0.0}, backend="llvm")
        alone = gg.compile([], [], updates={v: v * 2.0}, backend="numpy")
    a = b = 0.0
    for _ in range(5):
        for _ in range(2):
            one()
            a, b = a + 1.0, b + a
        other()
        b += 10.0
        alone()
        a *= 2.0
        assert (float(g.state[v]), float(g.state[w])) == (a, b)


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_reads_in_another_thread_sees_one_moment(backend):
    with gg.Graph() as g:
        vs = [gg.variable(np.zeros(3)) for _ in range(20)]
        step = gg.compile([], [], updates={v: v + 1.0 for v in vs}, backend=backend)
        look = gg.compile([], gg.stack(vs), backend=backend)
    nodes = [v.node for v in vs]
    wrong, done = [], threading.Event()

    def read():
        while not done.is_set():
            for values in (
                look(),
                np.stack(g.state.read(nodes)),
                np.stack(g.state.copy().read(nodes)),
            ):
                if (values != values[0, 0]).any():
                    wrong.append(values)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=read) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(1000):
            step()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not wrong
    assert (g.state[vs[0]] == 1000.0).all()


def test_no_set_is_made_where_one_is_free(monkeypatch):
    made = []
    monkeypatch.setattr(arena, "_Set", lambda types, new=arena._Set: made.append(1) or new(types))
    _, _, _, step = two()
    for _ in range(20):
        step()
    assert len(made) == 2
    assert not is_gathered(tensor_type((arena.LARGE,), "int8"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_variables_of_one_next_value(backend):
    with gg.Graph() as g:
        a, b = gg.variable(np.array([[2.0, 1.0], [1.0, 3.0]])), gg.variable(np.eye(2))
        new = gg.linalg.inv(a) + gg.sort(b, 0)
        step = gg.compile([], gg.sum(a * b), updates={a: new, b: new}, backend=backend)
    for _ in range(4):
        x, y = g.state[a], g.state[b]
        step()
        values = g.state.read([a.node, b.node])
        for value in values:
            np.testing.assert_allclose(value, np.linalg.inv(x) + np.sort(y, 0))
            assert not value.flags.writeable
        assert not np.may_share_memory(*values)


def test_a_step_of_random_numbers_is_counted():
    with gg.Graph() as g:
        v = gg.variable([0.0, 0.0])
        step = gg.compile([], v, updates={v: v * 0.0 + gg.random.normal((2,))}, backend="numpy")
    drawn = [step().tolist() for _ in range(5)]
    assert len({tuple(row) for row in drawn}) == 5
    assert g.state.runs == 5


def test_values_of_another_kind_and_those_lent_are_committed():
    g, v, w, step = two()
    g.state.commit({v.node: np.zeros(2), w.node: np.ones(())}, own=True)
    step()
    with g.state.lent([v.node, w.node]) as alone:
        assert alone == [False, False]

    class Elsewhere:
        def __array__(self, dtype=None, copy=None):
            return np.array([7.0, 7.0])

    g.state.commit({v.node: Elsewhere()})
    assert step()[0] == 14.0
    assert g.state[v].tolist() == [8.0, 8.0]


def test_a_backend_that_compiles_in_its_own_way_is_asked():
    class Own(NumpyBackend):
        def compile(self, program):
            compiled.append(program)
            return super().compile(program)

    compiled = []
    g, v, w, step = two(Own())
    assert step()[0] == 0.0
    assert (len(compiled), g.state[v].tolist(), g.state[w]) == (1, [1.0, 1.0], 2.0)


@pytest.mark.parametrize(
    ("shape", "wrong"), [((4,), (4, 1)), ((4,), (5,)), ((4,), ()), ((2, 3), (3, 2)), ((), (1,))]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_of_one_type_are_looked_at_one_by_one(shape, wrong, backend):
    with gg.Graph():
        xs = [gg.placeholder(shape) for _ in range(3)]
        f = gg.compile(xs, xs[0] + xs[1] + xs[2], backend=backend)
    arrays = [np.ones(shape)] * 3
    assert (f(*arrays) == 3.0).all()
    for at_ in range(3):
        given = [*arrays]
        given[at_] = np.ones(wrong)
        with pytest.raises(gg.ShapeError):
            f(*given)
    with pytest.raises(TypeError, match="missing"):
        f(*arrays[:2])
