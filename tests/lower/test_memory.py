"""Offsets in the arena: what lives at the same time is apart, and little room is lost."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.lower.memory import ALIGNMENT, LODGED, Buffer, lodge, pack
from graphgrad.ops.base import apply, build


def packed(rows):
    """Buffers of (size, first, last), and the bytes of their arena."""
    buffers = [Buffer(*row, False) for row in sorted(rows, key=lambda row: row[1])]
    return buffers, pack(buffers)


def most_at_once(buffers):
    ends = {b.last for b in buffers}
    rounded = [(-(-b.size // ALIGNMENT) * ALIGNMENT, b) for b in buffers]
    return max(sum(size for size, b in rounded if b.first <= at <= b.last) for at in ends)


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_at_the_same_time_is_apart(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 100, size=200)
    last = first + rng.geometric(0.1, size=200) - 1
    size = rng.choice([0, 1, 8, 64, 100, 4096, 5000], size=200)
    buffers, arena = packed(zip(size.tolist(), first.tolist(), last.tolist(), strict=True))
    for i, a in enumerate(buffers):
        assert a.offset % ALIGNMENT == 0
        assert a.offset + a.size <= arena
        for b in buffers[:i]:
            if a.size and b.size and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert most_at_once(buffers) <= arena <= 1.5 * most_at_once(buffers)


def test_a_place_is_used_again_after_its_last_use_and_not_at_it():
    (a, b, c), arena = packed([(64, 0, 1), (64, 1, 2), (64, 2, 3)])
    assert (a.offset, b.offset, c.offset, arena) == (0, 64, 0, 128)


def test_the_smallest_place_that_is_large_enough_is_taken():
    rows = [(256, 0, 1), (64, 0, 9), (128, 0, 1), (64, 0, 9), (128, 2, 9)]
    buffers, arena = packed(rows)
    assert buffers[4].offset == buffers[2].offset
    assert arena == 512


@pytest.mark.parametrize("lasts", [(1, 1, 1), (1, 2, 3), (3, 2, 1), (1, 3, 2), (2, 1, 3)])
def test_places_that_become_free_join(lasts):
    rows = [(64, 0, last) for last in lasts]
    buffers, arena = packed([*rows, (64, 0, 9), (192, 4, 9)])
    assert (buffers[4].offset, arena) == (0, 256)


def test_the_last_place_grows():
    buffers, arena = packed([(64, 0, 9), (64, 0, 1), (256, 2, 3)])
    assert (buffers[2].offset, arena) == (64, 320)


def test_only_large_buffers_of_the_arena_lodge_and_only_in_results():
    """Each with the one host that there is, which is written after its last reader."""

    def host_of(size=LODGED, fresh=False, last=1, host_fresh=True, host_last=9):
        lodger, host = Buffer(size, 0, last, fresh), Buffer(LODGED, 2, host_last, host_fresh)
        lodge([lodger, host], 9)
        return lodger.host

    assert host_of() is not None
    assert host_of(size=LODGED - 1) is None
    assert host_of(fresh=True) is None
    assert host_of(last=2) is None
    assert host_of(host_fresh=False) is None
    assert host_of(host_last=8) is None


def test_an_output_of_unknown_length_is_handed_out_as_it_is():
    with gg.Graph():
        x = gg.placeholder((None,))
        plan = NumpyBackend().plan(gg.Program([x], [gg.exp(x), gg.sin(x)[1:]]))
    assert [r.copied for r in plan.results] == [False, True]


@pytest.mark.parametrize(
    ("look", "over"),
    [
        (lambda a: a, 1),
        (lambda a: gg.reshape(a, (3, 2)), 1),
        (lambda a: a[1:], 0),  # a part
        (lambda a: a.T, 0),  # of other strides
        (lambda a: gg.broadcast_to(a, (1, 2, 3)), 0),  # whose array is read-only
        (lambda a: gg.split(a, [2])[0], 1),  # beside an empty piece
    ],
)
def test_what_is_all_of_a_value_is_written_over(look, over):
    with gg.Graph():
        x = gg.placeholder((2, 3))
        y = gg.sin(look(gg.exp(x)))
        programs = [gg.Program([x], [gg.sum(y)]), gg.Program([x], [y])]
    a = np.arange(6.0).reshape(2, 3)
    for program in programs:
        assert NumpyBackend().plan(program).over == over
        (found,) = NumpyBackend(check=True).compile(program)(a)
        (wanted,) = one_call_per_node(program, NumpyBackend.kernels)(a)
        np.testing.assert_array_equal(found, wanted)


def test_a_view_whose_layout_only_a_run_knows_is_not_written_over():
    with gg.Graph():
        x, like = gg.placeholder((3,)), gg.placeholder((None,))
        same = apply(gg.op_types()["EnsureLike"]("as it was"), gg.exp(x), like)
        y = gg.sin(gg.reshape(same, (3,)))
        plan = NumpyBackend().plan(gg.Program([x, like], [gg.sum(y)]))
    assert plan.looks == 2
    assert [step.node.type for step in plan.steps if step.writes] == ["Exp", "Sin", "ReduceSum"]
    assert plan.over == 0


def test_an_output_that_is_given_leaves_it_to_another_to_be_written_over_an_input():
    class TwoResults(gg.Op):
        """sin x and cos x, each of which may be written over x."""

        __module__ = "graphgrad.ops.two_results"  # of an op from elsewhere, x is kept

        def infer(self, x):
            return x, x

    class InPlace(NumpyBackend):
        kernels = Kernels(np)

    InPlace.kernels.writes(TwoResults, lambda node: [(0, 0), (1, 0)])(lambda node, threads: print)
    with gg.Graph():
        x = gg.placeholder((3,))
        sin, cos = build(TwoResults(), (gg.exp(x),)).outputs
        over = []
        for inputs in ([x], [x, sin], [x, cos]):
            steps = InPlace().plan(gg.Program(inputs, [gg.sum(sin), gg.sum(cos)])).steps
            (step,) = [step for step in steps if step.node.type == "TwoResults"]
            over.append([slot in step.over for slot in step.outputs])
    assert over == [[True, False], [False, True], [True, False]]


def test_an_output_that_nothing_reads_has_memory_while_it_is_written():
    class SineLast(gg.Op):
        """sin x and cos x, of which the cosine is written first."""

        __module__ = "graphgrad.ops.sine_last"

        def infer(self, x):
            return x, x

    class Writing(NumpyBackend):
        kernels = Kernels(np)

    def writer(node, threads):
        def write(x, sin, cos):
            np.cos(x, out=cos)
            np.sin(x, out=sin)

        return write

    Writing.kernels.writes(SineLast)(writer)
    with gg.Graph():
        x = gg.placeholder((LODGED // 8,))
        _, cos = build(SineLast(), (x,)).outputs
        y = x * gg.sum(cos)  # in its memory both have room, but not at once
    a = np.linspace(0.0, 9.0, LODGED // 8)
    (found,) = Writing().compile(gg.Program([x], [y]))(a)
    np.testing.assert_allclose(found, a * np.cos(a).sum())


def test_nothing_takes_no_room():
    assert packed([]) == ([], 0)
    assert packed([(0, 0, 5)])[1] == 0


def test_a_value_without_elements_takes_no_room():
    with gg.Graph():
        x = gg.placeholder((0, 3))
        program = gg.Program([x], [gg.sum(gg.sin(gg.exp(x) * x))])
    assert NumpyBackend().plan(program).arena == 0


def lodging(rows, end=100):
    """Buffers of (size in units, first, last, fresh) in their order, after they sought hosts."""
    buffers = [Buffer(LODGED * size, *row) for size, *row in rows]
    lodge(buffers, end)
    return buffers


def test_what_a_later_result_has_room_for_lodges_there():
    early, late, result = lodging([(1, 0, 4, False), (1, 5, 8, False), (2, 9, 100, True)])
    assert early.host is late.host is result
    assert result.since == 0


def test_what_is_read_when_the_result_is_written_does_not_lodge_there():
    before, result = lodging([(1, 0, 5, False), (1, 5, 100, True)])
    assert before.host is None
    assert result.since == 5


def test_two_at_once_lodge_apart_in_the_smallest_results_that_do():
    rows = [(1, 0, 4, False), (1, 4, 5, False), (3, 6, 100, True), (2, 7, 100, True)]
    a, b, large, small = lodging(rows)
    assert (a.host, b.host) == (small, large)


def test_of_equal_results_the_one_that_is_written_soonest_is_the_host():
    rows = [(1, 0, 3, False), (1, 1, 7, False), (1, 5, 100, True), (1, 9, 100, True)]
    a, b, soon, late = lodging(rows)
    assert (a.host, b.host) == (soon, late)


def test_a_result_that_is_free_again_is_found_as_before():
    rows = [(1, 0, 1, False), (1, 2, 3, False), (1, 5, 100, True), (1, 9, 100, True)]
    a, b, soon, _ = lodging(rows)
    assert a.host is b.host is soon


def test_small_ones_and_what_is_dropped_before_the_end_neither_lodge_nor_host():
    rows = [(0, 0, 1, False), (1, 0, 1, False), (1, 5, 99, True)]
    assert not any(b.host for b in lodging(rows))


@pytest.mark.parametrize("seed", range(10))
def test_lodgers_of_one_result_are_apart_in_time(seed):
    rng = np.random.default_rng(seed)
    first = np.sort(rng.integers(0, 90, size=150))
    rows = [
        (int(size), int(at), 100 if fresh else int(at + rng.geometric(0.2) - 1), bool(fresh))
        for at, size, fresh in zip(
            first, rng.integers(1, 6, size=150), rng.random(150) < 0.3, strict=True
        )
    ]
    buffers = lodging(rows)
    lodgers = [b for b in buffers if b.host]
    assert lodgers
    for b in lodgers:
        assert b.host.since <= b.first
        assert b.last < b.host.first
        assert b.size <= b.host.size
        same = [c for c in lodgers if c.host is b.host and c is not b]
        assert all(c.last < b.first or b.last < c.first for c in same)
