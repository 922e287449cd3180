"""Loops that run as one compiled call give the bits of those that are driven run by run."""

import re
import threading

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

pytest.importorskip("llvmlite")
from graphgrad.execute.llvm import backend as llvm_backend
from graphgrad.execute.llvm.machine import driven, records
from graphgrad.ops.control import Cond, Scan, While

RNG = np.random.default_rng(0)
ROWS, H, W = RNG.normal(size=(7, 2, 5)), RNG.normal(size=(2, 5)), 0.3 * RNG.normal(size=(5, 5))


def ema(x, h, w):
    return gg.scan(lambda m, row: (0.9 * m + 0.1 * row, m * row), h, x)


def rnn(x, h, w):
    def run(h, row):
        h = gg.tanh(row @ w + h @ gg.transpose(w))
        return h, h

    return gg.scan(run, h, x)


def backwards(x, h, w):
    return gg.scan(lambda m, row: (gg.tanh(m * row) @ w, m), h, x, reverse=True)


def gates(x, h, w):
    def run(h, row):
        both = gg.concat([row @ w, h], axis=1)
        return gg.tanh(both[:, 3:8]) * both[:, :5], both

    return gg.scan(run, h, x)


def moved_views(x, h, w):
    def run(s, row):
        turned = gg.transpose(s) * row[:1]
        return gg.transpose(gg.exp(-turned)) @ turned, turned[1:, ::2]

    return gg.scan(run, gg.transpose(h) @ h, x)


def pieces(x, h, w):
    """Views of values without elements, which lie nowhere, and what is made of them."""

    def run(s, row):
        nothing, few, rest, none = gg.split(gg.tanh(s * row), [0, 2, 5], axis=1)
        turned = gg.reshape(gg.transpose(nothing), (0, 2))[:, 1:]
        joined = gg.concat([turned, gg.transpose(rest)[:, :1], gg.transpose(few)[:, 1:]])
        return gg.concat([rest, none, few], axis=1), joined

    return gg.scan(run, h, x)


def swapped(x, h, w):
    """Carries that change places, one that stays, and a constant row."""
    (a, b, _), ys = gg.scan(lambda c, row: ((c[1], c[0] * row, c[2]), (c[0], w)), (h, h + 1, h), x)
    return a, b, *ys


def counted(x, h, w):
    return gg.fori_loop(0, 9, lambda i, s: gg.sin(s) + gg.cast(i, "float64"), h)


def numbers(x, h, w):
    return gg.scan(lambda s, row: (s * 0.5 + row, s), x[0, 0, 0], x[:, 0, 0])


def stacks(x, h, w):
    s = gg.stack([w, w * 2.0])
    return gg.scan(lambda c, row: (gg.tanh(c @ s), c[0] * 2.0), gg.stack([h, h * 2.0]), x)


def broadcast_stacks(x, h, w):
    """Products of a stack with one matrix, and with a stack of one."""

    def run(c, row):
        return gg.tanh(w @ c + c[:1] @ gg.sin(c)), row

    return gg.scan(run, gg.stack([w, w * 2.0]), x)


def powers(x, h, w):
    """A matrix that is another one in each run, on the right of a product."""
    return gg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, gg.tanh(w @ c[1])), (0, w))[1]


def rows_of_a_loop(x, h, w):
    """A view, from the second row on, of what a loop in a loop leaves."""

    def run(s, row):
        start = 0, gg.stop_gradient(s)
        _, end = gg.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, gg.sin(c[1])), start)
        return gg.tanh(gg.split(end, [1])[1]) * row, None

    return gg.scan(run, h, x)[0]


def until(x, h, w):
    return gg.while_loop(lambda c: gg.sum(c) < 1e6, lambda c: c * 1.5 + gg.abs(h), gg.abs(h))


def until_at_most(x, h, w):
    return gg.while_loop(
        lambda c: gg.sum(c) < 1e3, lambda c: c * 1.5 + gg.abs(h), gg.abs(h), max_trips=40
    )


def never(x, h, w):
    return gg.while_loop(lambda c: gg.sum(c) < -1e9, lambda c: c * 1.5, h)


def nested(x, h, w):
    """A loop of two loops in it, the other way round, of which one keeps its runs."""

    def run(s, row):
        a, made = gg.scan(lambda t, v: (gg.tanh(t * v[:1] + row), t @ w), s, x, reverse=True)
        return gg.fori_loop(0, 3, lambda i, c: gg.sin(c) * a, s), (gg.sum(made), made[0])

    return gg.scan(run, h, x)


def backwards_within(x, h, w):
    """A loop the other way round, of which what runs took is kept; one of no run, one of one."""

    def run(s, row):
        t = gg.scan(lambda t, v: (gg.sin(t * v) + row, None), s, x, reverse=True)[0]
        t = gg.fori_loop(0, 0, lambda i, c: c + row, t)
        t = gg.sin(gg.scan(lambda t, v: (gg.sin(t * v), None), t, x[:1])[0])
        return t, gg.fori_loop(3, 2, lambda i, c: c + c, h[0])

    return gg.scan(run, h, x)


def three_deep(x, h, w):
    def level(depth, s):
        if not depth:
            return gg.tanh(s @ w + 0.1)
        return gg.scan(lambda s, _: (level(depth - 1, s), None), s, length=1 + depth)[0]

    return level(3, h)


def until_in_each(x, h, w):
    """A loop with a test in a loop, of which some rows have no run."""

    def run(s, row):
        test = gg.stop_gradient(gg.sum(row))
        end = gg.while_loop(
            lambda c: c[0] < 3.0 * test, lambda c: (c[0] + 1.0, gg.sin(c[1]) + w[0]), (0.0, row)
        )
        return s + gg.stop_gradient(end[1]), end[0]

    return gg.scan(run, h, x)


def chosen(x, h, w):
    """A choice with a loop in it, of which one branch gives what it was given."""

    def run(s, row):
        def other():
            return gg.fori_loop(0, 2, lambda i, c: gg.tanh(c @ w) + row, s), gg.transpose(row) @ s

        a, b = gg.cond(gg.sum(row) > 0, lambda: (s, w), other)
        return a, gg.sum(b)

    return gg.scan(run, h, x)


def switched(x, h, w):
    """One of three, in a choice by what the runs before made."""

    def run(carry, row):
        i, s = carry
        some = gg.switch(i % 4, [lambda: s * row, lambda: s @ w, lambda: row + h])
        s = gg.cond(gg.sum(some * some) > 40.0, lambda: some * 0.1, lambda: some)
        return (i + 1, s), s

    return gg.scan(run, (0, h), x)[1]


def gathered(x, h, w):
    """Rows and elements at places that a run finds, from the end too."""

    def run(s, row):
        i = gg.cast(gg.floor(gg.abs(row) * 2.0), "int64") % 5
        return gg.tanh(s + w[i[0, 0] - 5]) * row, gg.take_along_axis(h, i, axis=1)

    return gg.scan(run, h, x)


def until_with_gradient(x, h, w, **how):
    """A loop with a test in each run of a loop: no run, few, and more than there is room for."""

    def run(s, row):
        def test(c):
            return c[0] < gg.stop_gradient(gg.floor(20.0 * gg.maximum(row[0, 0], 0.0)))

        def body(c):
            return c[0] + 1.0, gg.tanh(c[1] @ w) + 0.1 * row

        n, s = gg.while_loop(test, body, (0.0, s), **how)
        return s, n

    return gg.scan(run, h, x)


def until_at_most_in_each(x, h, w):
    return until_with_gradient(x, h, w, max_trips=40)


LOOPS = [
    chosen,
    switched,
    gathered,
    until_with_gradient,
    until_at_most_in_each,
    ema,
    rnn,
    backwards,
    gates,
    moved_views,
    pieces,
    swapped,
    counted,
    numbers,
    stacks,
    broadcast_stacks,
    powers,
    rows_of_a_loop,
    until,
    until_at_most,
    never,
    nested,
    backwards_within,
    three_deep,
    until_in_each,
]


def tensors(found):
    """The tensors of a nesting of tuples."""
    return [t for part in found for t in tensors(part)] if isinstance(found, tuple) else [found]


def compiled(loop, rows, w=W, threads=1):
    """Values and gradients of a loop, as a function of arrays."""
    with gg.Graph():
        inputs = [gg.placeholder(a.shape, a.dtype) for a in (rows, H.astype(rows.dtype), w)]
        found = tensors(loop(*inputs))
        total = sum(gg.sum(t * t) for t in found)
        dxs = [dx for dx in gg.gradients(total, inputs) if dx is not None]
        return gg.compile(inputs, [*found, *dxs], backend="llvm", num_threads=threads)


@pytest.fixture
def by_runs(monkeypatch):
    """Compile so that loops are driven from Python."""

    def make(*args):
        with monkeypatch.context() as patch:
            patch.setattr(llvm_backend, "compiled_loop", lambda *_, **__: "a test")
            f = compiled(*args)
            f(*ARRAYS)  # bodies are bound when the program is
            return f

    return make


ARRAYS = ROWS, H, W


@pytest.fixture
def calls(monkeypatch):
    """Counts the loops that ran as one call."""
    made = []
    steps = driven._Loop.steps
    monkeypatch.setattr(driven._Loop, "steps", lambda *a: made.append(1) or steps(*a))
    return made


@pytest.mark.parametrize("block", every(2, [3, 1, 256]))
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_a_compiled_loop_has_the_bits_of_one_that_is_driven(
    loop, block, by_runs, calls, monkeypatch
):
    monkeypatch.setattr(driven, "FIRST", block)
    wanted = by_runs(loop, ROWS)(*ARRAYS)
    assert not calls
    found = compiled(loop, ROWS)
    for _ in range(2):  # with memory of the run before
        for a, b in zip(found(*ARRAYS), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    assert calls


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_runs(count):
    f = compiled(rnn, ROWS[:count])
    h, made = f(ROWS[:count], H, W)[:2]
    assert made.shape == (count, 2, 5)
    np.testing.assert_array_equal(h, made[-1] if count else H)


def test_results_are_the_callers_own():
    f = compiled(ema, ROWS)
    first = f(*ARRAYS)
    kept = [a.copy() for a in first]
    second = f(ROWS * 2, H, W)
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.flags.writeable
    assert not any(np.may_share_memory(a, b) for a in first for b in (*second, *ARRAYS))


def test_arrays_in_any_layout():
    f = compiled(gates, ROWS)
    wanted = f(*ARRAYS)
    turned = [np.asfortranarray(ROWS), H[::-1][::-1], np.repeat(W, 2, 1)[:, ::2]]
    for a, b in zip(f(*turned), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


LAYOUTS = {
    "turned": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "every second": lambda x: np.repeat(x, 2, 0)[::2],
    "one for all": lambda x: np.broadcast_to(x[0], x.shape),
    "one number": lambda x: np.broadcast_to(x[0, 0, 0], x.shape),
    "numbers": lambda x: np.broadcast_to(x[:, :1, :1], x.shape),
    "columns": lambda x: np.asfortranarray(x),
    "unaligned": lambda x: np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(x.dtype),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loop", [rnn, backwards], ids=lambda f: f.__name__)
def test_stacks_in_any_layout(loop, layout, calls):
    with gg.Graph():
        inputs = [gg.placeholder(a.shape) for a in ARRAYS]
        f = gg.compile(inputs, tensors(loop(*inputs)), backend="llvm")
    for change in (LAYOUTS[layout], np.array):  # and again as ever
        x = change(ROWS).reshape(ROWS.shape)
        for a, b in zip(f(x, H, W), f(np.array(x), H, W), strict=True):
            np.testing.assert_array_equal(a, b)
    assert calls


def packed_in_scan(h, w, u):
    return gg.scan(lambda c, _: (gg.tanh(c @ w @ gg.transpose(u)), c @ w), h, length=3)


def packed_in_stacks(h, w, u):
    """A stack of matrices, one of which is read in two ways."""
    s = gg.stack([w @ gg.transpose(u), u @ gg.transpose(w)])
    return gg.scan(lambda c, _: (gg.sin((c @ s)[::-1]) @ s, None), gg.stack([h, h]), length=3)[0]


def packed_until(h, w, u):
    def run(c):
        return c[0] + 1, gg.tanh(c[1] @ w @ gg.transpose(u)) + (h @ w)[:, :1]

    return gg.while_loop(lambda c: gg.logical_and(c[0] < 4, gg.sum(c[1] @ w) < 1e9), run, (0, h))


def packed_within(h, w, u):
    """What is the same in each run of an inner loop is another in each run of the outer one."""

    def run(c, k):
        v = w * k
        return gg.fori_loop(0, 3, lambda _, d: gg.tanh(d @ v @ gg.transpose(u)), c), c @ w

    return gg.scan(run, h, np.array([0.5, 1.0, -2.0], h.dtype.name))


PACKED = [(packed_in_scan, "float32")]
PACKED += [(f, "float64") for f in (packed_in_scan, packed_in_stacks, packed_until, packed_within)]


@pytest.mark.parametrize(("loop", "dtype"), PACKED, ids=lambda x: getattr(x, "__name__", x))
def test_matrices_that_are_packed_once_give_the_same_bits(loop, dtype, calls, monkeypatch):
    """Deeper than a slice, with a panel's rest; too large for the room of some."""
    arrays = [RNG.normal(size=s).astype(dtype) / 20 for s in ((7, 300), (300, 37), (300, 37))]
    found, packed = [], []
    for slabs in (records.SLABS, 0, records.library.packed_bytes(np.dtype(dtype), 300, 37)):
        monkeypatch.setattr(records, "SLABS", slabs)
        with gg.Graph():
            inputs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
            f = gg.compile(inputs, tensors(loop(*inputs)), backend="llvm", num_threads=1)
        f(*[a + 1 for a in arrays])  # what was packed for one call is not for the next
        found.append(f(*arrays))
        loops = [loop for made in f._executable.run._binding._compiled for loop in made._idle]
        packed.append(sum(len(loop.before) for loop in loops))
    assert packed[0] >= packed[2] >= packed[1] == 0 < packed[0]
    for some in found[1:]:
        for a, b in zip(found[0], some, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(calls) == 6


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_rows_that_nobody_gets_lie_in_the_arena(backend):
    """Which waits for the next run: memory is taken once, and given away when rows are read."""
    with gg.Graph():
        x, h, w = (gg.placeholder(a.shape) for a in ARRAYS)
        y = gg.sum(rnn(x, h, w)[1])
        f = gg.compile([x, h, w], [y, *gg.gradients(y, [h, w])], backend=backend)
    (plan,) = f._executable.run.plans
    scans = [step for step in plan.steps if isinstance(step.node.op, Scan)]
    assert len(scans) == 2
    assert all(step.writes for step in scans)
    made = [pair for s in scans for pair in zip(s.outputs, s.node.outputs, strict=True)]
    rows = {slot for slot, t in made if len(t.shape) == 3}
    assert len(rows) > 1
    assert rows <= {place.slot for place in plan.places}


def test_float32_and_many_threads_at_once():
    rows = ROWS.astype(np.float32)
    f = compiled(rnn, rows, W.astype(np.float32))
    given = [(rows * k, H.astype(np.float32), W.astype(np.float32)) for k in range(8)]
    wanted = [f(*arrays) for arrays in given]
    wrong = []

    def work(k):
        for _ in range(20):
            pairs = zip(f(*given[k]), wanted[k], strict=True)
            wrong.extend(k for a, b in pairs if not np.array_equal(a, b))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_too_many_trips_is_an_error():
    with gg.Graph():
        h = gg.placeholder((2, 5))
        y = gg.while_loop(lambda c: gg.sum(c) > -1.0, lambda c: c + 1.0, h, max_trips=5)
        f = gg.compile([h], [y], backend="llvm")
    with pytest.raises(gg.ExecutionError, match="max_trips=5"):
        f(np.abs(H))


WITHIN = [
    nested,
    backwards_within,
    three_deep,
    until_in_each,
    chosen,
    switched,
    until_with_gradient,
]


@pytest.mark.parametrize("loop", [*WITHIN, until_at_most_in_each])
def test_loops_in_a_compiled_loop_never_come_back_to_python(loop, calls, monkeypatch):
    def refuse(*_):
        raise AssertionError

    for kind in (Cond, Scan, While):
        monkeypatch.setattr(kind, "drive", refuse)
    made = []
    steps = driven._Loop.steps
    monkeypatch.setattr(
        driven._Loop, "steps", lambda self, *a: made.append(self) or steps(self, *a)
    )
    f = compiled(loop, ROWS)
    f(*ARRAYS)
    assert len({*made}) == sum(isinstance(n.op, Scan) for n in f.program.nodes)


def test_what_a_test_keeps_gets_as_much_room_as_it_needs(by_runs, calls, monkeypatch):
    """And has it from then on."""
    monkeypatch.setattr(driven, "ROOM", 1)
    wanted = by_runs(until_with_gradient, ROWS)(*ARRAYS)
    f = compiled(until_with_gradient, ROWS)
    made = []
    for _ in range(2):
        calls.clear()
        for a, b in zip(f(*ARRAYS), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        made.append(len(calls))
    assert made[0] > made[1] == 2


def test_what_a_test_keeps_moves_to_where_there_is_more_room(by_runs, calls, monkeypatch):
    monkeypatch.setattr(driven, "ROOM", 1)
    for a, b in zip(compiled(until, ROWS)(*ARRAYS), by_runs(until, ROWS)(*ARRAYS), strict=True):
        np.testing.assert_array_equal(a, b)
    assert calls


def row_by_row(x, h, w):
    """At most nine of the rows of w, by a number that each run leaves to the next."""

    def run(s, row):
        most = gg.stop_gradient(gg.clip(row[0, 0] * 2.0, 0.0, 5.0))

        return gg.while_loop(
            lambda c: gg.cast(c[0], "float64") < most,
            lambda c: (c[0] + 1, gg.tanh(c[1] * gg.stop_gradient(w)[c[0]]) + row),
            (0, s),
            max_trips=9,
        )[1], None

    return gg.scan(run, h, x)[0]


def test_rows_without_a_run_are_those_of_the_last_one(by_runs, monkeypatch):
    """Or of what the first would have taken, whatever lay there: a gradient reads indices."""
    wanted = by_runs(row_by_row, ROWS)(*ARRAYS)
    room = records.Cells._room

    def filled(self, size):
        address = room(self, size)
        self.held[-1].fill(0x7F)
        return address

    monkeypatch.setattr(records.Cells, "_room", filled)
    for name in ("drive", "fill"):  # as is done where an index is out of range
        monkeypatch.delattr(Scan, name)
    for a, b in zip(compiled(row_by_row, ROWS)(*ARRAYS), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_that_need_more_room_at_once(by_runs, monkeypatch):
    monkeypatch.setattr(driven, "ROOM", 1)
    wanted, f, wrong = by_runs(until_with_gradient, ROWS)(*ARRAYS), None, []
    start = threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(5):
            pairs = zip(f(*ARRAYS), wanted, strict=True)
            wrong.extend(a for a, b in pairs if not np.array_equal(a, b))

    f = compiled(until_with_gradient, ROWS)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run_by_number(x, numbers):
    """The rows of x at numbers that come with each run."""
    return gg.scan(lambda s, i: (s + x[i], s), gg.zeros(3), numbers)[0]


@pytest.mark.parametrize("inside", [False, True])
def test_an_index_that_is_out_of_range_leaves_the_loop_with_the_error(inside, calls):
    """Whose words are those of a loop that is driven; and the next call is as ever."""
    with gg.Graph():
        x, numbers = gg.placeholder((4, 3)), gg.placeholder((6,), "int64")
        if inside:
            scales = gg.constant([1.0, 2.0])
            y = gg.sum(gg.map(lambda k: run_by_number(x * k, numbers), scales), 0)
        else:
            y = run_by_number(x, numbers)
        f, slow = (gg.compile([x, numbers], y, backend=b) for b in ("llvm", "numpy"))
    rows, good = RNG.normal(size=(4, 3)), np.array([0, -4, 3, -1, 2, 2])
    for wrong in (4, -5, 1 << 62):
        at = np.where(np.arange(6) == 4, wrong, good)
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds") as error:
            f(rows, at)
        assert any("test_compiled_loops.py" in note for note in error.value.__notes__)
    np.testing.assert_allclose(f(rows, good), slow(rows, good), rtol=1e-14)
    assert calls


def test_too_many_trips_in_a_run_are_an_error(calls):
    with gg.Graph():
        x = gg.placeholder((3,))
        y = gg.map(lambda k: gg.while_loop(lambda c: c < k, lambda c: c + 1.0, 0.0, 5), x)
        f = gg.compile([x], y, backend="llvm")
    assert f([1.0, 5.0, 0.0]).tolist() == [1, 5, 0]
    assert len(calls) == 1
    with pytest.raises(gg.ExecutionError, match="max_trips=5"):
        f([1.0, 6.0, 0.0])


def test_rows_may_lie_anywhere_without_memory_for_a_copy_of_them():
    peaks = []
    for rows in (lambda x: x, lambda x: x[::-1], lambda x: gg.transpose(gg.transpose(x) * 1.0)):
        with gg.Graph():
            x, h = gg.placeholder((7, 5)), gg.placeholder((5,))
            y = gg.scan(lambda h, row: (gg.tanh(h + row), None), h, rows(x))[0]
        peaks.append(llvm_backend.LlvmBackend().plan(gg.Program([x, h], [y])).peak)
    assert peaks[0] == peaks[1]


def told(outputs, inputs, **options):
    """What is said of how loops run."""
    rows = gg.compile(inputs, outputs, **options).explain().splitlines()
    return [row.strip() for row in rows if " runs " in row and row.strip()[0] != "c"]


def within(keep=False):
    """A loop with a test in each run of a scan, and derivatives: the second one keeps more rows."""
    x, h = gg.placeholder((4, 3)), gg.placeholder((3,))

    def run(s, row):
        return gg.while_loop(lambda c: gg.sum(c) < 3.0, lambda c: c + gg.exp(row * c), s), None

    y = gg.sum(gg.scan(run, h, x)[0])
    dx = gg.gradients(y, x)
    return [x, h], [y, gg.gradients(gg.sum(dx * dx), x) if keep else dx]


def one_step(f, shape=(3,)):
    x, h = gg.placeholder((4, *shape)), gg.placeholder(shape)
    return [x, h], [gg.scan(lambda s, row: (f(s, row), None), h, x)[0]]


def by_integers(s, row):
    n = gg.cast(gg.reshape(row, (3, 1)), "int64")
    return s + gg.cast(n @ gg.transpose(n), "float64")[0]


def long_products(s, row):
    w = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    return gg.tanh(gg.tanh(s @ w) @ w) @ w + row


def one_after_the_other(s, row):
    """Loops whose memory is planned for one at a time."""
    for _ in range(4):
        s = gg.fori_loop(0, 3, lambda i, c: gg.sin(c) + row, s)
    return s


def without_elements():
    x, h = gg.placeholder((4, 3)), gg.placeholder((3,))
    return [x, h], gg.scan(lambda s, row: (s + row, row[:0]), h, x)


def of_unknown_length():
    x, h = gg.placeholder((4, 3)), gg.placeholder((3,))
    return [x, h], gg.scan(lambda s, row: (s + row, gg.nonzero(row)[0]), h, x)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (lambda: one_step(lambda s, row: gg.sort(s + row)), r"Sort_\d+ = Sort\(.* is run by NumPy"),
        (
            lambda: one_step(lambda s, row: gg.cond(gg.sum(s) > 0, lambda: s, lambda: gg.sort(s))),
            r"Sort_\d+ = Sort\(.* is run by NumPy",
        ),
        (
            lambda: one_step(lambda s, row: s[:0] @ gg.reshape(row[3:], (0, 3)) + row),
            r"MatMul_\d+ = MatMul\(.* multiplies empty arrays",
        ),
        (lambda: within(keep=True), r"gradients/Scan.* lengths are only known at run time"),
        (lambda: one_step(gg.add, ("n",)), "it has lengths that are only known at run time"),
        (lambda: one_step(by_integers), r"MatMul_\d+ = MatMul\(.* is run by NumPy"),
        (lambda: one_step(long_products, (1 << 17, 2)), "it takes so much memory in a run"),
        (lambda: one_step(one_after_the_other, (10_000,)), "it takes [0-9,]+ bytes as a whole"),
        (without_elements, "it takes or returns empty arrays"),
        (of_unknown_length, "it has lengths that are only known at run time"),
    ],
)
def test_explain_says_which_step_keeps_a_loop_from_being_one_function(program, why):
    with gg.Graph():
        rows = told(*program()[::-1], backend="llvm")
    driven = [row for row in rows if "runs run by run from Python: " in row]
    assert driven
    for row in driven:
        assert re.search(rf"Scan_\d+ runs run by run from Python: {why}", row), row
    assert all("runs as one compiled function" in row for row in rows if row not in driven)


def test_rows_that_lie_side_by_side_are_copied_at_once_whatever_their_axes():
    with gg.Graph():
        x, h = gg.placeholder((4, 9, 9, 2)), gg.placeholder((9, 9, 2))
        outputs = gg.scan(lambda s, row: (gg.tanh(row), s), h, x)
        (row,) = told(outputs, [x, h], backend="llvm")
    assert row.endswith("runs as one compiled function")


def test_explain_says_that_a_loop_is_one_function_or_why_none_is():
    with gg.Graph():
        inputs, outputs = one_step(lambda s, row: gg.fori_loop(0, 2, lambda i, c: c * row, s))
        (row,) = told(outputs, inputs, backend="llvm")
        assert row.endswith("Scan_2 runs as one compiled function")  # and the loop in it with it
        assert all(
            "the numpy backend compiles" in r for r in told(outputs, inputs, backend="numpy")
        )
        assert all("check=True" in r for r in told(outputs, inputs, backend="llvm", check=True))


def test_release_gives_back_the_memory_of_loops():
    f = compiled(nested, ROWS)
    wanted = f(*ARRAYS)
    loops = f._executable.run._binding._compiled
    assert any(loop._idle for loop in loops)
    f.release()
    assert not any(loop._idle for loop in loops)
    for a, b in zip(f(*ARRAYS), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def six(row):
    return gg.sum(gg.reshape(row, (3, 2)))


@pytest.mark.parametrize("total", [six, lambda row: gg.fori_loop(0, 1, lambda i, c: six(row), 0.0)])
def test_a_choice_of_which_one_branch_does_not_fit_the_lengths_is_driven(total, calls):
    with gg.Graph():
        x, h = gg.placeholder((3, "n")), gg.placeholder(("n",))

        def run(s, row):
            return s + gg.cond(gg.sum(row) < 0, lambda: total(row), lambda: row[0]), None

        f = gg.compile([x, h], gg.scan(run, h, x)[0], backend="llvm")
    np.testing.assert_array_equal(f(np.ones((3, 5)), np.ones(5)), [4.0] * 5)
    assert not calls
    np.testing.assert_array_equal(f(-np.ones((3, 6)), np.ones(6)), [-17.0] * 6)
    assert calls


def test_a_body_that_is_not_compiled_is_driven(calls):
    with gg.Graph():
        x = gg.placeholder((4, 3))
        y = gg.scan(lambda s, row: (s + gg.sort(row), s), gg.zeros(3), x)[1]
        f = gg.compile([x], [y], backend="llvm")
    x = RNG.normal(size=(4, 3))
    expected = np.cumsum(np.sort(x, 1), 0) - np.sort(x, 1)
    np.testing.assert_allclose(f(x)[0], expected, rtol=1e-12, atol=1e-15)
    assert not calls


@pytest.mark.parametrize(("backend", "copied"), [("llvm", 50 * 50 * 8), ("numpy", 0)])
def test_what_each_run_reads_needs_memory_for_a_copy_where_it_is_turned(backend, copied):
    """But not in a loop that is driven from Python."""
    peaks = []
    for turned in (gg.identity, gg.transpose):
        with gg.Graph():
            x, h, w = (gg.placeholder(shape) for shape in [(7, 50), (50,), (50, 50)])
            read = turned(w)
            y = gg.scan(lambda h, row, w=read: (gg.sum(w * h, 0) + row, None), h, x)[0]
            f = gg.compile([x, h, w], y, backend=backend)
        peaks.append(f.plans[0].planned)
    assert peaks[1] - peaks[0] == copied


def test_a_loop_over_as_many_rows_as_a_run_finds(calls):
    with gg.Graph():
        x = gg.placeholder((6, 3))
        (places,) = gg.nonzero(x[:, 0] > 0)
        y = gg.scan(lambda s, i: (0.5 * s + x[i], None), gg.zeros(3), places)[0]
        f = gg.compile([x], y, backend="llvm")
    x, wanted = RNG.normal(size=(6, 3)), np.zeros(3)
    x[4, 0] = 1.0
    for row in x[x[:, 0] > 0]:
        wanted = 0.5 * wanted + row
    np.testing.assert_allclose(f(x), wanted, rtol=1e-14)
    assert calls


def test_arenas_of_bodies_are_kept_beside_that_of_the_program():
    with gg.Graph():
        inputs, outputs = one_step(long_products, (8, 2))
        plan = llvm_backend.LlvmBackend().plan(gg.Program(inputs, outputs))
    ((_, body),) = plan.bodies
    assert plan.kept - plan.arena == sum(p.arena for p in body.plans) > 0


def test_what_lodges_in_a_result_of_a_run(calls):
    """A large product that is read before the result is written."""
    w = np.array([[1.0, 2.0], [3.0, 4.0]])
    with gg.Graph():
        x = gg.placeholder((3, 1 << 14, 2))
        y = gg.scan(lambda s, row: (row * gg.mean(gg.tanh(s) @ w), None), x[0], x)[0]
        f = gg.compile([x], y, backend="llvm")
    (body,) = [body for _, body in f.plans[0].bodies]
    assert any(step.lodged for plan in body.plans for step in plan.steps)
    x = RNG.normal(size=(3, 1 << 14, 2))
    wanted = x[0]
    for row in x:
        wanted = row * (np.tanh(wanted) @ w).mean()
    np.testing.assert_allclose(f(x), wanted, rtol=1e-9)
    assert calls
