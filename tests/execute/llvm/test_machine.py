"""What the loop machine notes of loops: no copy that nobody needs, and memory as it is counted."""

import weakref

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")
from graphgrad.execute.llvm.backend import LlvmBackend
from graphgrad.execute.llvm.machine import driven, records
from graphgrad.execute.llvm.machine.words import (
    CopyRecord,
    GroupRecord,
    PackRecord,
    ProductRecord,
    record_length,
)
from graphgrad.ops.control import While

RNG = np.random.default_rng(0)
X, H, W = RNG.normal(size=(7, 2, 5)), RNG.normal(size=(2, 5)), 0.3 * RNG.normal(size=(5, 5))


@pytest.fixture
def noted(monkeypatch):
    """The records of steps, of those in inner loops too."""
    seen = []
    record = records.Records.record
    monkeypatch.setattr(
        records.Records, "record", lambda self, r: seen.append(r) or record(self, r)
    )
    return seen


def compiled(loop, arrays, **options):
    """A loop as a function of arrays that has been called, and what runs it."""
    with gg.Graph():
        inputs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        f = gg.compile(inputs, loop(*inputs), backend="llvm", num_threads=1, **options)
    f(*arrays)
    return f, f._executable.run._binding._compiled


def ema(x, h, w):
    return gg.scan(lambda m, row: (0.9 * m + 0.1 * row, m * row), h, x)


def steps(x, h, w):
    """What the first one makes is a row; what the last one makes is carried on."""

    def run(h, row):
        made = row @ w
        return gg.tanh(made + h) @ w, made

    return gg.scan(run, h, x)


def written_over(x, h, w):
    return gg.scan(lambda h, row: (gg.tanh(h @ w), None), h, x)[0]


def within(x, h, w):
    def run(h, row):
        made = gg.exp(row)
        return gg.fori_loop(0, 3, lambda i, c: gg.tanh(c @ w), h), made

    return gg.scan(run, h, x)


def chosen(x, h, w):
    def run(h, row):
        made = gg.exp(row)
        return gg.cond(gg.sum(row) > 0, lambda: h * 0.5, lambda: h + row), made

    return gg.scan(run, h, x)


@pytest.mark.parametrize("loop", [ema, steps, written_over, within, chosen])
def test_what_runs_leave_is_written_where_it_goes(loop, noted):
    compiled(loop, (X, H, W))
    assert {GroupRecord, ProductRecord} & {*map(type, noted)}
    assert CopyRecord not in map(type, noted)


def test_only_addresses_that_change_are_set_in_each_run(noted):
    numbers = RNG.normal(size=(2, 5))
    compiled(lambda x, h: gg.scan(lambda s, row: (s * row + numbers, None), h, x)[0], (X, H))
    (group,) = noted
    assert len(group.arrays) == 3  # a carry, a row, and the next carry


def test_a_matrix_is_packed_once_whoever_reads_it():
    def loop(x, h, w):
        return gg.scan(lambda s, row: (gg.tanh(s @ w) + gg.sin(row) @ w, None), h, x)[0]

    _, (packing,) = compiled(loop, (X, H, W))
    (waiting,) = packing._idle
    assert len(waiting.before) == record_length(PackRecord)
    with gg.Graph():
        inputs = [gg.placeholder(a.shape) for a in (X, H, W)]
        f = gg.compile(inputs, loop(*inputs), backend=LlvmBackend().frugal())
    f(X, H, W)
    (packing,) = f._executable.run._binding._compiled
    (waiting,) = packing._idle
    assert not waiting.before


@pytest.mark.parametrize("more", [0, 1])
def test_a_product_of_many_matrices_is_a_step_of_the_machine_up_to_a_number(more, noted):
    s = RNG.normal(size=(records.STACKED + more, 2, 2))
    f, _ = compiled(lambda s: gg.scan(lambda c, _: (gg.tanh(c @ c), None), s, length=2)[0], (s,))
    assert len([r for r in noted if type(r) is ProductRecord]) == (0 if more else len(s))
    assert ("as one compiled function" in f.explain()) is not bool(more)


def until(x, h, w):
    """A loop with a test in each run, of which rows are kept, and the gradient."""

    def run(s, row):
        return gg.while_loop(lambda c: gg.sum(c) < 3.0, lambda c: c + gg.exp(row * c), s), None

    y = gg.sum(gg.scan(run, h, x)[0])
    return y, gg.gradients(y, x)


def test_a_loop_with_loops_in_it_takes_what_is_planned_and_some_slack(monkeypatch):
    """Beside what it packs and the rows it keeps; else it is driven."""
    _, (_, loop) = compiled(until, (X, H, W))
    (waiting,) = loop._idle
    slack = waiting.size - driven.ROOM * H.nbytes - loop._planned
    monkeypatch.setattr(driven, "SLACK", slack)
    f, _ = compiled(until, (X, H, W))
    assert "from Python" not in f.explain()
    monkeypatch.setattr(driven, "SLACK", slack - 1)
    f, _ = compiled(until, (X, H, W))
    assert f"it takes {waiting.size:,} bytes as a whole" in f.explain()


def test_rows_that_are_kept_of_a_loop_with_a_test_are_no_slack():
    x, h = RNG.normal(size=(3, 200)), RNG.normal(size=200)
    assert driven.ROOM * h.nbytes > driven.SLACK
    f, _ = compiled(until, (x, h, W))
    assert "from Python" not in f.explain()


def test_loops_in_a_loop_take_so_many_bytes_at_most(monkeypatch):
    sizes = []
    inner = driven._inner

    def measured(made, *args):
        inner(made, *args)
        sizes.append(made.cells.size)

    with monkeypatch.context() as patch:
        patch.setattr(driven, "_inner", measured)
        compiled(within, (X, H, W))
    monkeypatch.setattr(driven, "LARGE", max(sizes))
    f, _ = compiled(within, (X, H, W))
    assert "from Python" not in f.explain()
    monkeypatch.setattr(driven, "LARGE", max(sizes) - 1)
    f, _ = compiled(within, (X, H, W))
    assert driven.BIG in f.explain()
    assert f.explain().count("runs as one compiled function") == 1  # the inner one by itself


def test_what_a_compiled_loop_takes_beyond_the_plan_counts_for_the_peak():
    f, (loop,) = compiled(steps, (X, H, W))
    (plan,) = f.plans
    assert plan.peak - plan.planned == loop.own() > 0


def test_a_carry_of_which_runs_are_kept_needs_no_second_place():
    for keeps in (False, True):
        y, _ = gg.scan(lambda s, row: (gg.tanh(s * row), None), gg.placeholder((2, 5)), X)
        x = y.node.inputs[0]
        asked = [y, *gg.gradients(y, [x])] if keeps else [y]
        f = gg.compile([x], asked, backend="llvm")
        f(H)
        waiting = f._executable.run._binding._compiled[0]._idle[0]
        assert waiting.size == waiting.cells.size + (0 if keeps else H.nbytes)


def test_the_loop_that_explain_asks_for_is_the_one_that_runs(monkeypatch):
    built = []
    new = driven._loop
    monkeypatch.setattr(driven, "_loop", lambda *a: built.append(1) or new(*a))
    f, _ = compiled(ema, (X, H, W))
    f.release()
    f.explain()
    assert len(built) == 2
    f(X, H, W)
    assert len(built) == 2


@pytest.mark.parametrize(("loop", "first"), [(ema, driven.FIRST), (within, 1)])
def test_runs_of_a_loop_with_loops_in_it_begin_one_by_one(loop, first):
    """For each of those may be long, and Python may interrupt between them alone."""
    with gg.Graph():
        inputs = [gg.placeholder(a.shape) for a in (X, H, W)]
        f = gg.compile(inputs, loop(*inputs), backend="llvm")
        f.explain()
    (loop,) = f._executable.run._binding._compiled
    (waiting,) = loop._idle
    assert waiting._block == first


def test_a_loop_that_took_all_its_trips_is_not_run_again(monkeypatch):
    with gg.Graph():
        x = gg.placeholder(())
        y = gg.while_loop(lambda c: c < 5.0, lambda c: c + 1.0, x, max_trips=5)
        f = gg.compile([x], y, backend="llvm")
    monkeypatch.delattr(While, "drive")
    assert f(0.0) == 5


def test_what_runs_would_have_written_is_gone_where_there_are_none(monkeypatch):
    """Before the loop is driven, which makes its own."""
    with gg.Graph():
        x, h = gg.placeholder((3,)), gg.placeholder((4,))
        y = gg.while_loop(lambda c: gg.sum(c[0]) > 1e9, lambda c: (c[0] + 1.0, c[1] * c[1]), (x, h))
        f = gg.compile([x, h], gg.gradients(gg.sum(y[1]), h), backend="llvm")
    there = []
    like, drive = driven._like, While.drive

    def kept(array):
        made = like(array)
        there.append(weakref.ref(made))
        return made

    def alone(*args):
        assert there
        assert not any(ref() is not None for ref in there)
        return drive(*args)

    monkeypatch.setattr(driven, "_like", kept)
    monkeypatch.setattr(While, "drive", alone)
    np.testing.assert_array_equal(f(np.ones(3), np.ones(4)), np.ones(4))


def test_rows_that_are_one_row_are_copied_as_one():
    x = np.broadcast_to(np.repeat(H, 2, 1)[:, ::2], X.shape)
    rows = driven._rows_in_order(x)
    assert rows.strides[0] == 0
    assert rows[0].flags.c_contiguous
    np.testing.assert_array_equal(rows, x)
