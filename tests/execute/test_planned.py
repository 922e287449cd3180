"""Planned runs give bit for bit what one call per node gives, whatever is in whose memory."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ExecutionError, ShapeError
from graphgrad.execute.kernels import Kernels
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.execute.run import planned
from graphgrad.execute.run.planned import KernelBinding, PlannedBackend
from graphgrad.ir.facts import Memory
from graphgrad.ir.op import Op
from graphgrad.ir.program import Program
from graphgrad.lower import alias, memory, schedule
from graphgrad.lower.alias import is_view
from graphgrad.ops.base import apply, build

UNARY = [gg.exp, gg.tanh, gg.sin, gg.negative, gg.abs, lambda x: x * 2.0, lambda x: x * x]
BINARY = [gg.add, gg.multiply, gg.subtract, gg.maximum, lambda x, y: gg.where(x > y, x, y)]
VIEWS = [
    lambda x: x.T,
    lambda x: x[::-1],
    lambda x: x[:, 1:3] + x[:, :2],
    lambda x: gg.reshape(x, (-1,))[:16].reshape((4, 4)),
    lambda x: gg.reshape(x.T, (2, 8)).reshape((4, 4)),
    lambda x: gg.broadcast_to(x[0], (4, 4)),
    lambda x: gg.stack(gg.unstack(x)[::-1], 1),
    lambda x: gg.concat(gg.split(x, 2, 1)[::-1], 1),
    lambda x: gg.expand_dims(x, 1)[:, 0],
    lambda x: gg.flip(x, 1),
    lambda x: gg.array_split(x, [0], 1)[1],
    lambda x: gg.concat(gg.split(x, [0, 1, 1, 4])[::-1]),
    lambda x: gg.concat([*gg.array_split(x, 7)[2:], x[:2]]),
    lambda x: x[2:2],
    lambda x: gg.broadcast_to(gg.sum(x[:, 3:3].T, 0), (4, 4)),
    lambda x: gg.reshape(x, (4, 4)),
    gg.real,
    gg.identity,
]


class TurnedAndDoubled(Op):
    """Two outputs, a view of the input and what is none."""

    memory = Memory(view=True)

    def infer(self, x):
        return x, x

    def kernel(self, xp, x):
        return x[::-1], x * 2.0

    def vjp(self, node, dy, dz):
        return ((0.0 if dy is None else gg.flip(dy, 0)) + (0.0 if dz is None else dz * 2.0),)


OTHERS = [
    lambda x: gg.add(*build(TurnedAndDoubled(), (x,)).outputs),
    lambda x: build(TurnedAndDoubled(), (x,)).outputs[0],
    lambda x: gg.sum(x, 0) + x,
    lambda x: gg.sum(x) * x,
    lambda x: gg.matmul(x, x.T) * 0.1,
    lambda x: gg.max(x, 1, keepdims=True) - x,
    lambda x: x.astype("float32").astype("float64"),
    lambda x: gg.cumsum(x, 0),
    lambda x: gg.cond(gg.sum(x) > 0, lambda: x, lambda: gg.sin(x)),
    lambda x: gg.py_function(lambda a: a[:, 0], [gg.stop_gradient(x)], [((4,), "float64")]) + x,
    lambda x: gg.einsum("ij->ji", x),
    lambda x: gg.take(x, gg.constant([3, 1, 0, 0]), axis=0),
]


def random_program(rng: np.random.Generator, length: int, unknown: bool = False) -> Program:
    """Values of shape (4, 4) made from each other; outputs that share memory in every way."""
    with gg.Graph():
        xs = [gg.placeholder((None, 4) if unknown else (4, 4)) for _ in range(3)]
        made = [*xs, gg.constant(rng.normal(size=(4, 4)))]
        while len(made) < length:
            fns = [UNARY, BINARY, VIEWS, OTHERS][rng.choice(4, p=[0.3, 0.3, 0.25, 0.15])]
            fn = fns[rng.integers(len(fns))]
            recent = made[-6:] if rng.random() < 0.7 else made
            a, b = (recent[rng.integers(len(recent))] for _ in range(2))
            try:
                y = fn(a, b) if fns is BINARY else fn(a)
            except ShapeError:  # this one needs known lengths
                continue
            fits = y.shape in ((4, 4), (None, 4))
            made.append(y if fits else gg.sin(gg.broadcast_to(gg.sum(y), (4, 4))))
        picked = [made[i] for i in rng.integers(len(made), size=6)]
        outputs = [made[-1], *picked, picked[0], picked[1].T, picked[2][0], gg.sum(picked[3])]
        outputs += gg.gradients(gg.sum(made[-1]), xs[:1], unconnected="zero")
    return Program(xs, outputs)


def one_by_one(program: Program, arrays):
    """Every node's own kernel, its result as a plan would have it: in row-major order."""
    values = dict(zip(program.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for node in program.nodes:
            made = node.op.kernel(np, *[values[t] for t in node.inputs])
            parts = made if len(node.outputs) > 1 else (made,)
            if not is_view(node):
                parts = [np.ascontiguousarray(p).reshape(np.shape(p)) for p in parts]
            for t, part in zip(node.outputs, parts, strict=True):
                values.setdefault(t, part)
    return [np.array(values[t]) for t in program.outputs]


class EverythingWrites(PlannedBackend):
    """Whatever a kernel returns is written where the plan says, so all of it is in the arena."""

    name = "everything"
    kernels = Kernels(np)

    def bind(self):
        return WritingBinding(self)


class WritingBinding(KernelBinding):
    def writer(self, node):
        kernel, count = node.op.kernel, len(node.inputs)

        def write(*arrays):
            made = kernel(np, *arrays[:count])
            parts = made if len(node.outputs) > 1 else (made,)
            for out, part in zip(arrays[count:], parts, strict=True):
                out[...] = part

        pairs = [(0, i) for i in range(len(node.inputs))]
        return write, tuple(pairs) if node.op.elementwise else ()


def unfused(**options):
    backend = NumpyBackend(**options)
    backend.fuse = lambda program: program
    return backend


BACKENDS = {
    "ufuncs": unfused,
    "checked": lambda: unfused(check=True),
    "everything": EverythingWrites,
    "everything checked": lambda: EverythingWrites(check=True),
}


def check(program, backend, arrays):
    before = [a.copy() for a in arrays]
    want = one_by_one(program, arrays)
    run = backend.compile(program)
    for _ in range(2):  # on the same arena
        got = run(*arrays)
        for t, a, b in zip(program.outputs, got, want, strict=True):
            assert type(a) is np.ndarray
            assert (a.dtype, a.flags.writeable) == (t.dtype, True)
            np.testing.assert_array_equal(a, b)
        for i, a in enumerate(got):
            assert not any(np.shares_memory(a, b) for b in [*arrays, *got[:i]])
            a[...] = 7
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("long", [0, 20_000], ids=["loop", "straight line"])
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(name, seed, long, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    rng = np.random.default_rng(seed)
    program = random_program(rng, 40, unknown=seed % 4 == 3)
    arrays = [rng.normal(size=(4, 4)) for _ in range(3)]
    arrays[1] = arrays[1].T
    check(program, BACKENDS[name](), arrays)


# --- who else looks at memory ----------------------------------------------------------------


class ReturnsWhatItReads(Op):
    """A user's op whose kernel returns what it reads, and does not say so."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x


class RaisesIfNegative(Op):
    """A user's op that raises for what is negative, after it has made an array."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        y = x + 0
        MADE.append(weakref.ref(y))
        if y.min() < 0:
            raise ZeroDivisionError("on purpose")
        return y


MADE: list = []
LONGS = pytest.mark.parametrize("long", [0, 20_000], ids=["loop", "straight line"])


@LONGS
def test_what_a_python_function_keeps_stays_as_it_was(long, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    kept = []
    with gg.Graph():
        x = gg.placeholder((50_000,))
        a = gg.exp(x)
        view = gg.py_function(lambda a: kept.append(a) or a[0], [a[10:]], [((), "float64")])
        y = gg.sin(gg.sin(gg.sin(a * 2.0)) * view)
    run = unfused().compile(Program([x], [y]))
    for i in range(4):
        run(np.full(50_000, float(i)))
    for i, a in enumerate(kept):
        np.testing.assert_array_equal(a, np.exp(np.full(49_990, float(i))))


def test_a_kernel_that_returns_what_it_reads():
    with gg.Graph():
        x = gg.placeholder((4,))
        a = gg.exp(x)
        b = apply(ReturnsWhatItReads(), a)
        c = gg.sin(a)  # where a was, if b did not count
        outputs = [b + c, apply(ReturnsWhatItReads(), x), b]
    for backend in (unfused(), EverythingWrites()):
        check(Program([x], outputs), backend, [np.arange(4.0)])


def test_a_result_that_is_fed_back_is_not_written_into():
    with gg.Graph():
        x = gg.placeholder((50_000,))
        program = Program([x], [x + 1.0])
    run = unfused().compile(program)
    (y,) = run(np.zeros(50_000))
    view = y[:5]
    for i in range(5):
        (y,) = run(y)
        assert (y == i + 2).all()
    assert (view == 1).all()


# --- errors and threads ----------------------------------------------------------------------


@LONGS
def test_a_run_that_fails_leaves_nothing_behind(long, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    with gg.Graph():
        x = gg.placeholder((50,))
        a = gg.exp(x) * x
        y = apply(RaisesIfNegative(), a) + gg.sum(a)
    run = unfused().compile(Program([x], [y]))
    good, bad = np.ones(50), -np.ones(50)
    want = run(good)[0].copy()
    for _ in range(3):
        MADE.clear()
        with pytest.raises(ZeroDivisionError, match="on purpose") as error:
            run(bad)
        assert "RaisesIfNegative" in error.value.__notes__[0]
        assert "float64[50]" in error.value.__notes__[0]
        assert len(run._idle[0]) == 1
        del error
        gc.collect()
        assert [made() for made in MADE] == [None]
        np.testing.assert_array_equal(run(good)[0], want)


def test_many_threads_and_some_that_fail():
    rng = np.random.default_rng(0)
    program = random_program(rng, 30)
    x = program.inputs[0]
    with x.node.graph:
        program = Program(
            program.inputs, [*program.outputs, apply(RaisesIfNegative(), gg.abs(x) * x[0, 0])]
        )
    run = unfused().compile(program)
    cases = []
    for i in range(8):
        arrays = [rng.normal(size=(4, 4)) for _ in range(3)]
        arrays[0][0, 0] = 1.0 if i % 2 else -1.0
        cases.append((arrays, one_by_one(program, arrays) if i % 2 else None))
    wrong = []

    def work(arrays, want):
        for _ in range(30):
            try:
                got = run(*arrays)
            except ZeroDivisionError:
                got = None
            same = got is want or all(
                np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True)
            )
            if not same:
                wrong.append(arrays)

    threads = [threading.Thread(target=work, args=case) for case in cases]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert 1 <= len(run._idle[0]) <= 8


def test_a_function_may_call_itself():
    with gg.Graph():
        x = gg.placeholder(())
        a = gg.exp(x)
        inner = gg.py_function(
            lambda v: run(v - 1.0)[0] if v > 0.5 else v * 0.0, [x], [((), "float64")]
        )
        program = Program([x], [a + inner])
    run = unfused().compile(program)
    np.testing.assert_allclose(run(np.array(3.0))[0], np.exp([3.0, 2.0, 1.0, 0.0]).sum())


# --- memory ----------------------------------------------------------------------------------


def _training_step():
    x, y = gg.placeholder((256, 300)), gg.placeholder((256, 300))
    ws = [gg.placeholder((300, 300)) for _ in range(4)]
    h = x
    for w in ws:
        h = gg.tanh(h @ w)
    loss = gg.mean((h - y) ** 2)
    dws = gg.gradients(loss, ws)
    return [x, y, *ws], [loss, *(w - 0.1 * dw for w, dw in zip(ws, dws, strict=True))]


def _waves():
    x = gg.placeholder((200_000,))
    return [x], [gg.sum(gg.sin(x) * gg.cos(x) + gg.exp(-x) * x), gg.cumsum(gg.sin(x * x))[::2]]


def _moved_about():
    x = gg.placeholder((400, 500))
    a, b = gg.exp(x), gg.sin(x).T
    c = gg.concat([a.T, b], 1)
    return [x], [c @ a[:, :200].T.reshape((1000, 80)).reshape((800, 100)), x.T, c[:10]]


def _chosen():
    x, flag = gg.placeholder((300, 400)), gg.placeholder((300, 400))

    def then():
        return gg.sum((gg.tanh(x @ flag.T) @ gg.exp(x)) ** 2)

    y = gg.cond(gg.all(flag > -100), then, lambda: gg.sum(x))
    return [x, flag], [y, gg.gradients(y, x)]


@pytest.mark.parametrize("build", [_training_step, _waves, _moved_about, _chosen])
@pytest.mark.parametrize("backend", [NumpyBackend, unfused])
def test_the_peak_is_known_before_the_run(build, backend):
    with gg.Graph():
        inputs, outputs = build()
        f = gg.compile(inputs, outputs, backend=backend(num_threads=1))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=t.shape) for t in inputs]
    f(*[a[:0].reshape(a.shape) if a.size == 0 else a for a in arrays])  # what is made only once
    f.release()
    gc.collect()
    tracemalloc.start()
    results = f(*arrays)
    _, measured = tracemalloc.get_traced_memory()
    del results
    f.release()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 * measured <= f.peak_bytes <= 1.1 * measured
    assert left < 0.01 * measured


def test_explain_tells_of_branches_and_of_what_needs_more_inside():
    with gg.Graph():
        x, flag = gg.placeholder((30,)), gg.placeholder((), "bool")
        y = gg.cond(flag, lambda: gg.sort(x), lambda: gg.exp(x))
        f = gg.compile([x, flag], [y, gg.sort(-x)], backend="numpy")
        n = gg.placeholder(("n",))
        late = gg.compile([n, flag], gg.cond(flag, lambda: gg.sort(n), lambda: gg.exp(n)))
    said = str(f.explain())
    assert "constants, and what Sort need inside" in said
    for branch in ("then", "else"):
        assert f"{y.node.name}, {branch}: plan for (float64[30]): 1 steps" in said
    assert late.peak_bytes is None
    assert "then: planned when the lengths are known" in str(late.explain())
    late(np.ones(3), True)
    assert "then: plan for (float64[3])" in str(late.explain())


def test_large_arenas_are_kept_for_one_run_small_ones_for_each(monkeypatch):
    with gg.Graph():
        x = gg.placeholder((8,))
        inside = gg.py_function(lambda v: barrier.wait() + v, [gg.exp(x)], [((8,), "float64")])
        program = Program([x], [gg.sum(gg.sin(inside) * 2.0) * inside])
    barrier = threading.Barrier(3)
    for big, kept in ((1, 1), (1 << 20, 3)):
        monkeypatch.setattr(planned, "BIG", big)
        run = unfused().compile(program)
        threads = [threading.Thread(target=run, args=(np.ones(8),)) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(run._idle[0]) == kept


# --- lengths that are not known before ----------------------------------------------------------


def test_a_long_program_is_compiled_when_it_has_run_often(monkeypatch):
    monkeypatch.setattr(planned, "LONG", 3)
    monkeypatch.setattr(planned, "OFTEN", 2)
    with gg.Graph():
        x = gg.placeholder((5,))
        y = apply(RaisesIfNegative(), gg.sin(x) * 2.0 + gg.exp(x))
    run = unfused().compile(Program([x], [y]))
    want = np.full(5, np.sin(1.0) * 2.0 + np.exp(1.0))
    for arenas in ([1], [0, 1], [0, 1]):
        with pytest.raises(ZeroDivisionError) as error:
            run(np.full(5, -3.0))
        assert len(error.value.__notes__) == 1
        np.testing.assert_array_equal(run(np.ones(5))[0], want)
        assert [len(idle) for idle in run._idle] == arenas
    run.release()
    assert [len(idle) for idle in run._idle] == [0, 0]


def test_a_plan_for_each_set_of_shapes():
    with gg.Graph():
        x, w = gg.placeholder(("N", 4)), gg.placeholder((4, None))
        y = gg.sum(gg.tanh(x @ w) * 2.0, 0)
        f = gg.compile([x, w], y, backend=unfused())
    assert "at least" in f.explain()
    assert f.peak_bytes is None
    for n, m in [(2, 3), (5, 3), (2, 3), (7, 1), (0, 3)]:
        a, b = np.ones((n, 4)), np.ones((4, m))
        np.testing.assert_allclose(f(a, b), np.sum(np.tanh(a @ b) * 2.0, 0))
    assert len(f.plans) == 4
    assert all(plan.exact for plan in f.plans)
    assert f.peak_bytes == max(plan.peak for plan in f.plans)
    assert "plan for (float64[0, 4], float64[4, 3])" in f.explain()


def test_the_plans_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(planned, "PLANS", 3)
    with gg.Graph():
        x = gg.placeholder((None,))
        run = unfused().compile(Program([x], [gg.sum(gg.sin(x) * x)]))
    for n in (1, 2, 3, 1, 4, 5):
        run(np.ones(n))
    assert [p.program.inputs[0].shape for p in run.plans] == [(1,), (4,), (5,)]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_views_of_one_place_whose_shapes_come_from_elsewhere_are_apart(backend):
    """Both sines stand in one place of the arena, and both nodes are a BroadcastLike of it."""
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    with gg.Graph():
        x, a, b = gg.placeholder((3,)), gg.placeholder((None, 3)), gg.placeholder((None, 3))
        y = gg.sum(gg.broadcast_like(gg.sin(x), a) * 2.0)
        z = gg.sum(gg.broadcast_like(gg.sin(y * x), b) * 2.0)
        f = gg.compile([x, a, b], [y, z], backend=backend, optimize=False)
    X = np.arange(3.0)
    wanted = 8 * np.sin(X).sum()
    found = f(X, np.ones((4, 3)), np.ones((5, 3)))
    np.testing.assert_allclose(found, [wanted, 10 * np.sin(wanted * X).sum()])


def test_shapes_that_do_not_fit_each_other():
    with gg.Graph():
        x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
        f = gg.compile([x, y], gg.sin(x) + y, backend=unfused())
        n, m = gg.placeholder(("N",), name="n"), gg.placeholder(("N",), name="m")
        run = unfused().compile(Program([n, m], [n + 1.0, m + 1.0]))
    with pytest.raises(ShapeError, match="do not broadcast") as error:
        f(np.ones(2), np.ones(3))
    assert "y:0: float64[3]" in error.value.__notes__[0]
    np.testing.assert_allclose(f(np.ones(3), np.ones(3)), np.sin(1.0) + 1.0)
    with pytest.raises(ExecutionError, match="length 'N' is 2 in n:0, and 3 in m:0"):
        run(np.ones(2), np.ones(3))


def test_shapes_that_depend_on_values():
    with gg.Graph():
        x = gg.placeholder((None, 3))
        y = gg.py_function(lambda a: a[a[:, 0] > 0], [x], [((None, 3), "float64")])
        y = gg.sin(y) * y
        f = gg.compile(x, [y, gg.sum(y)], backend=unfused())
    for n in (4, 2, 4):
        a = np.random.default_rng(n).normal(size=(n, 3))
        got, total = f(a)
        part = a[a[:, 0] > 0]
        want = np.sin(part) * part
        np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(total, want.sum())


# --- check mode -------------------------------------------------------------------------------


def test_a_place_that_is_given_away_too_early_shows(monkeypatch):
    def too_early(buffers):
        buffers = list(buffers)
        for b in buffers:
            b.last = max(b.first, b.last - 1)
        return memory.pack(buffers)

    monkeypatch.setattr(schedule, "pack", too_early)
    with gg.Graph():
        x = gg.placeholder((4,))
        a = gg.exp(x)
        y = gg.sum(gg.sin(x) * 2.0) + gg.sum(a)
    program = Program([x], [y])
    with pytest.raises(ExecutionError, match="over what it reads"):
        EverythingWrites(check=True).compile(program)(np.ones(4))
    monkeypatch.undo()
    check(program, EverythingWrites(check=True), [np.ones(4)])


def test_a_view_that_is_planned_as_a_copy_shows(monkeypatch):
    monkeypatch.setattr(alias, "looks_into", np.may_share_memory)  # an empty array shares nothing
    with gg.Graph():
        x = gg.placeholder((1, 2))
        program = Program([x], [gg.split(gg.exp(x), [0], axis=1)[1]])
    with pytest.raises(
        ExecutionError, match=r"Split_2 .* input .*, which the plan takes for copied"
    ):
        unfused(check=True).compile(program)(np.ones((1, 2)))
    monkeypatch.undo()
    check(program, unfused(check=True), [np.ones((1, 2))])


@pytest.mark.parametrize(
    ("look", "last"), [(gg.identity, 1), (lambda a: a.T, 2), (lambda a: gg.split(a, [0])[1], 2)]
)
def test_a_value_that_is_written_over_while_it_is_read_shows(look, last, monkeypatch):
    """Its place is given away after its first reader, and there is another one."""

    def too_early(buffers):
        buffers = list(buffers)
        buffers[0].last = last
        return memory.pack(buffers)

    monkeypatch.setattr(schedule, "pack", too_early)
    with gg.Graph():
        x = gg.placeholder((2, 2))
        a = gg.exp(x)
        program = Program([x], [look(a) @ gg.cumsum(gg.sum(a, 0, keepdims=True).T, 0)])
    with pytest.raises(ExecutionError, match=r"over memory of Exp_1, which MatMul_\d reads later"):
        EverythingWrites(check=True).compile(program)(np.ones((2, 2)))


@pytest.mark.parametrize("place", [0, 1])
def test_an_output_that_is_given_is_written_beside_the_others(place):
    with gg.Graph():
        x = gg.placeholder((3, 3))
        parts = gg.linalg.qr(gg.exp(x) + gg.eye(3) * 9.0)
        program = Program([x, parts[place]], [gg.sin(parts[1 - place]), parts[place] * 2.0])
    a = np.random.default_rng(0).normal(size=(3, 3))
    for backend in (EverythingWrites(), EverythingWrites(check=True)):
        check(program, backend, [a, np.ones((3, 3))])


class InOneMemory(Op):
    """Two outputs, of which one is a view of the other, in a tuple or a list."""

    kind: type

    def infer(self, x):
        return x, x

    def kernel(self, xp, x):
        y = x + 1.0
        return self.kind([y, y[::-1]])


@pytest.mark.parametrize("kind", [tuple, list])
def test_results_of_a_kernel_in_one_memory(kind):
    with gg.Graph():
        x = gg.placeholder((3,))
        program = Program([x], build(InOneMemory(kind), (x,)).outputs)
    with pytest.raises(
        ExecutionError, match=r"InOneMemory.* returned two results that share memory"
    ):
        unfused(check=True).compile(program)(np.ones(3))
    check(program, unfused(), [np.arange(3.0)])


def test_what_is_known_of_shapes_only_when_arrays_come_is_used_then():
    """The same steps as if the lengths had been given, in calls and in profiles."""

    def steps(batch):
        with gg.Graph():
            x, t = gg.placeholder((batch, 5), name="x"), gg.placeholder((batch, 3), name="t")
            w, b = gg.placeholder((5, 3), name="w"), gg.placeholder((3,), name="b")
            loss = gg.mean((gg.tanh(x @ w + b) - t) ** 2)
            f = gg.compile([x, t, w, b], [loss, *gg.gradients(loss, [w, b])], verify=True)
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=s) for s in [(7, 5), (7, 3), (5, 3), (3,)]]
        found = f(*arrays)
        assert len(f.profile(*arrays, repeat=1).steps) == len(f.plans[-1].steps)
        return found, [s.node.type for s in f.plans[-1].steps]

    (known, fixed), (unknown, later) = steps(7), steps(None)
    assert fixed == later
    for a, b in zip(known, unknown, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [8, 600])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_foreign_code_in_a_branch_was_given_is_not_written_over(size, backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    held = []

    def keep(a):
        held.append((a, a.copy()))
        return np.float32(a[0, 0])

    with gg.Graph():
        x, p = gg.placeholder((size, size), "float32"), gg.placeholder((), "bool")
        h = gg.exp(x) @ x
        one = gg.constant(np.float32(1))
        c = gg.cond(p, lambda: gg.py_function(keep, [h], [((), "float32")]), lambda: one)
        z = gg.sin((gg.tanh(h) + c) @ x)
        f = gg.compile([x, p], z, backend=backend)
    a = np.random.default_rng(0).normal(size=(size, size)).astype("float32") / size
    f(a, True)
    f(a * 2, True)
    for given, before in held:
        np.testing.assert_array_equal(given, before)


def test_explain_and_watch_tell_of_lengths_that_came_later():
    seen = []
    with gg.Graph():
        x = gg.placeholder((None, 3), name="x")
        y = gg.reshape(gg.reshape(gg.exp(x), (-1,)), (-1, 3)) * 1.0
        f = gg.compile([x], gg.mean(y, axis=0), watch=lambda name, program: seen.append(name))
    passes = len(seen)
    f(np.ones((4, 3)))
    f(np.ones((4, 3)))
    assert len(seen) == 2 * passes
    assert any(row.startswith("for (float64[4, 3]), ") for row in f.explain().splitlines())


@pytest.mark.parametrize("wrong", [2.5, "2", True, [2]])
def test_a_number_of_threads_is_an_integer(wrong):
    with pytest.raises(TypeError, match="num_threads is a number of threads, got"):
        NumpyBackend(num_threads=wrong)


@pytest.mark.parametrize("name", ["fast_math", "check"])
def test_flags_are_bools(name):
    with pytest.raises(TypeError, match=f"{name} is True or False, got 'yes'"):
        NumpyBackend(**{name: "yes"})
    assert getattr(NumpyBackend(**{name: np.True_}), name) is True


def test_a_body_that_an_interrupt_abandons_leaves_the_errors_of_numpy():
    """The garbage collector closes it when nothing is ignored any more."""
    with gg.Graph():
        x = gg.placeholder((3,))
        program = Program([x], [gg.exp(x)])
    block = NumpyBackend().compile(program).held()
    before = np.geterr()
    with np.errstate(all="ignore"):
        block.__enter__()
    del block
    gc.collect()
    assert np.geterr() == before


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_bodies_of_loops_set_off_no_warnings(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    with gg.Graph():
        x = gg.placeholder((3,))
        y, _ = gg.scan(lambda h, _: (gg.cumulative_prod(gg.exp(h)), None), x, length=3)
        z = gg.while_loop(lambda h: gg.sum(h) < 1.0, gg.exp, x)
    f = gg.compile(x, [y, z], backend=backend)
    for run in (f, f.profile):
        run(np.full(3, 900.0))


@pytest.mark.parametrize("steps", [1, 450])
def test_programs_of_one_shape_have_kernels_and_errors_of_their_own(steps):
    """Those that are short have one code."""
    x = gg.placeholder((2,), name="x")

    def refused(a):
        raise ValueError("no")

    def plan(f):
        y = x
        for _ in range(steps):
            y = f(y)
        out = gg.py_function(refused, [y], [((2,), "float64")])
        return [gg.compile(x, t, backend="numpy") for t in (y, out)]

    (first, wrong), (second, _) = plan(gg.sin), plan(gg.cos)
    a = b = np.array([0.5, 1.0])
    for _ in range(steps):
        a, b = np.sin(a), np.cos(b)
    np.testing.assert_allclose([first([0.5, 1.0]), second([0.5, 1.0])], [a, b], rtol=1e-12)
    with pytest.raises(ValueError, match="no") as error:
        wrong([0.5, 1.0])
    assert "PyFunction" in "".join(error.value.__notes__)
