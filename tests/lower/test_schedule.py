"""The plan: slots, what is dropped when, what is written over what, who owns outputs, peak."""

import numpy as np
import pytest

import graphgrad.ops.protocols.methods  # noqa: F401  (operators)
from graphgrad.execute.kernels import Kernels
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.execute.run.planned import PlannedBackend
from graphgrad.ir.build import build
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import Op, op_types
from graphgrad.ir.program import Program
from graphgrad.lower.schedule import of_one_run
from graphgrad.ops.arrays.nonzero import nonzero
from graphgrad.ops.arrays.taking import take
from graphgrad.ops.control import cond, scan
from graphgrad.ops.elementwise.arithmetic import negative
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.logic import where
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.reduce.sorting import sort, topk
from graphgrad.ops.shape.joining import split
from graphgrad.ops.shape.reshaping import reshape, transpose
from graphgrad.ops.sources import identity, placeholder

BIG = 100_000


class Kernelled(PlannedBackend):
    """Kernels that return what they make: no writers."""

    name = "kernels"
    kernels = Kernels(np)


def chain(n, shape=(BIG,)):
    with Graph():
        x = placeholder(shape, name="x")
        y = x
        for _ in range(n):
            y = exp(y)
    return Program([x], [y])


def plan(inputs, outputs):
    """With writers for ufuncs, and no groups."""
    backend = NumpyBackend()
    backend.fuse = lambda program: program
    return backend.plan(Program(inputs, outputs))


def test_results_of_kernels_take_turns_in_slots():
    found = Kernelled().plan(chain(5))
    assert found.changing == 2
    assert [s.inputs for s in found.steps] == [(0,), (1,), (1,), (1,), (1,)]
    assert all(s.frees == () for s in found.steps)
    assert (found.arena, found.peak) == (0, 2 * BIG * 8)


def test_a_value_is_dropped_after_its_last_use_and_inputs_are_kept():
    with Graph():
        x = placeholder((3,), name="x")
        a = exp(x)
        b = exp(a)
        c = reduce_sum(a * b)
    found = Kernelled().plan(Program([x], [c]))
    assert found.steps[2].inputs == (1, 2)
    assert {*found.steps[2].outputs, *found.steps[2].frees} == {1, 2}
    assert all(0 not in s.frees for s in found.steps)


def test_outputs_are_never_dropped():
    with Graph():
        x = placeholder((3,), name="x")
        a = exp(x)
        b = exp(exp(a))
    for found in (Kernelled().plan(Program([x], [a, b, x])), plan([x], [a, b, x])):
        slots = [r.slot for r in found.results]
        assert len({*slots}) == 3
        assert all(slots[0] not in (*s.frees, *s.outputs) for s in found.steps[1:])


def test_constants_have_slots_of_their_own():
    with Graph():
        x = placeholder((3,), name="x")
        y = (x * 2.0) * 3.0
    found = plan([x], [y])
    assert [float(array) for _, array in found.constants] == [2.0, 3.0]
    assert all(slot < 0 for slot, _ in found.constants)
    assert len(found.steps) == 2


def test_a_chain_is_written_over_itself_in_the_memory_of_its_output():
    program = chain(4)
    found = plan(program.inputs, program.outputs)
    assert (found.over, found.arena, found.peak, found.exact) == (3, 0, BIG * 8, True)
    assert [len(s.fresh) for s in found.steps] == [1, 0, 0, 0]


def test_what_a_view_shows_is_not_written_over():
    with Graph():
        x = placeholder((BIG,), name="x")
        a = exp(x)
        b = reshape(a, (BIG // 2, 2))
        y = exp(a)
    assert plan([x], [b, y]).over == 0
    b_value, y_value = NumpyBackend().compile(Program([x], [b, y]))(np.zeros(BIG))
    assert (b_value == 1).all()
    assert (y_value == np.e).all()


def test_outputs_and_other_dtypes_are_not_written_over():
    with Graph():
        x = placeholder((BIG,), name="x")
        a = exp(x)
        b = exp(a)
    assert plan([x], [a, b]).over == 0
    with Graph():
        x = placeholder((BIG,), "float32", name="x")
        y = exp(x).astype("float64")
    assert plan([x], [y]).over == 0


def test_what_is_read_as_it_is_and_transposed_is_not_written_over():
    with Graph():
        x = placeholder((4, 4), name="x")
        a = exp(x)
        y = a - transpose(a)
        z = exp(x)
        w = z - identity(z)
    assert plan([x], [y]).over == 0
    assert plan([x], [w]).over == 1


@pytest.mark.parametrize("length", [4, 4096])  # a choice among many is made in place
def test_what_a_choice_reads_twice_is_not_written_over(length):
    with Graph():
        x, here = placeholder((length,)), placeholder((length,), "bool")
        a, m = exp(x), x > 0
        chosen = [where(here, a, identity(a)), where(identity(m), m, here), where(here, m, ~m)]
    given = np.linspace(-1, 1, length), np.arange(length) % 2 == 0
    positive = given[0] > 0
    expected = [np.exp(given[0]), positive | given[1], positive == given[1]]
    for y, right in zip(chosen, expected, strict=True):
        run = NumpyBackend().compile(Program([x, here], [y]))
        np.testing.assert_array_equal(run(*given)[0], right)


def test_a_view_of_a_whole_buffer_may_be_written_over():
    with Graph():
        x = placeholder((4, 6), name="x")
        y = reduce_sum(exp(reshape(exp(x), (6, 4))))
    found = plan([x], [y])
    assert found.over == 1
    np.testing.assert_allclose(
        NumpyBackend().compile(Program([x], [y]))(np.zeros((4, 6)))[0], 24 * np.exp(1.0)
    )


def test_views_in_the_arena_are_made_once():
    with Graph():
        x = placeholder((4, 6), name="x")
        a = exp(x)
        y = exp(transpose(a)) + exp(transpose(a)) + reshape(a, (6, 4))
    found = plan([x], [y])
    assert [s.node.type for s in found.views] == ["Transpose", "Reshape"]
    assert all(s.node.type in ("Exp", "Add") for s in found.steps)


def test_views_of_what_has_the_first_slot_and_is_no_input_are_made_in_the_run():
    with Graph():
        a = exp(identity(np.arange(6.0).reshape(2, 3)))
        b = exp(transpose(a))
    assert plan([], [a, b]).views == ()
    found = NumpyBackend().compile(Program([], [a, b]))()
    np.testing.assert_array_equal(found[1], np.exp(found[0].T))


def test_what_lodges_in_a_result_takes_no_room_in_the_arena():
    with Graph():
        x = placeholder((BIG,), name="x")
        y = x * reduce_sum(exp(x))
    found = plan([x], [y])
    assert found.arena < BIG * 8
    assert found.peak < 2 * BIG * 8
    assert [len(step.lodged) for step in found.steps] == [1, 0, 0]


def test_a_result_is_there_from_its_first_lodger_on():
    with Graph():
        x = placeholder((BIG,), name="x")
        y = x * reduce_sum(sort(exp(x)))
    found = plan([x], [y])
    assert [len(step.lodged) for step in found.steps] == [1, 0, 0, 0]
    assert found.peak == 2 * BIG * 8 + found.arena


def test_what_a_call_makes_for_nobody_counts_while_it_runs():
    with Graph():
        x = placeholder((BIG,), name="x")
        values, _ = topk(x, BIG)
    assert plan([x], [values]).peak == 2 * BIG * 8


def test_a_view_counts_as_its_buffer():
    with Graph():
        x = placeholder((10,), name="x")
        a = reshape(identity(exp(x)), (2, 5))
        y = exp(a)
    assert Kernelled().plan(Program([x], [y])).peak == 160
    assert plan([x], [y]).peak == 80


def test_outputs_in_one_memory_are_copied_but_one():
    with Graph():
        x = placeholder((2, 3), name="x")
        e = exp(x)
        outputs = [x, e, e, transpose(e), exp(e), reshape(exp(exp(e)), (6,)), exp(e)[0] * 2.0]
    found = plan([x], outputs)
    assert [r.copied for r in found.results] == [True, False, True, True, False, False, False]


def test_a_part_of_what_was_computed_is_copied():
    with Graph():
        x = placeholder((1000, 8), name="x")
        y = exp(x)[0]
    found = plan([x], [y])
    assert found.results[0].copied
    assert (found.arena, found.peak) == (64_000, 64_064)
    (value,) = NumpyBackend().compile(Program([x], [y]))(np.zeros((1000, 8)))
    assert value.base is None


def test_peak_says_when_lengths_are_unknown():
    with Graph():
        x = placeholder((None,), name="x")
        y = exp(x)
    found = plan([x], [y])
    assert (found.peak, found.exact) == (0, False)


def test_what_is_unknown_of_one_value_stays_unknown_beside_others():
    with Graph():
        x, z = placeholder((None,), name="x"), placeholder((2,), name="z")
        computed = exp(x), exp(z)
    assert not plan([x, z], [x, z]).exact, "they are copied"
    assert not Kernelled().plan(Program([x, z], computed)).exact
    assert plan([z], [z, computed[1]]).exact


def test_what_is_written_needs_nothing_beyond_its_result():
    with Graph():
        x = placeholder((2,), name="x")
        y = exp(x)
    assert plan([x], [y]).inside == ()
    assert Kernelled().plan(Program([x], [y])).inside == ("Exp",)


def test_a_small_output_that_nothing_reads_is_what_its_ufunc_returns():
    with Graph():
        x = placeholder((3,), name="x")
        a = exp(x)
        b = exp(a)
    assert [s.writes for s in plan([x], [a, b]).steps] == [True, False]
    assert [s.writes for s in plan([x], [b]).steps] == [True, True], "over what is there"
    for shape in ((), (10_000,)):  # of the one a ufunc makes a number, the other is large
        with Graph():
            x = placeholder(shape, name="x")
            y = exp(x)
        assert [s.writes for s in plan([x], [y]).steps] == [True]


def test_what_a_call_reads_for_the_last_time_is_dead_after_it():
    with Graph():
        x = placeholder((3,), name="x")
        found = plan([x], [sort(exp(x))])
    first, last = found.steps
    assert last.dead == first.outputs


def test_what_is_called_is_no_view_where_it_makes_something():
    with Graph():
        x = placeholder((3,), name="x")
        y = sort(exp(x))
        z = reshape(x, (3, 1))
    found = plan([x], [y, z])
    assert [(s.node.type, s.writes) for s in found.steps][1:] == [
        ("Sort", False),
        ("Reshape", False),
    ]
    assert found.looks == 1


def test_an_output_of_a_call_that_nothing_reads_is_dropped_at_once():
    with Graph():
        x = placeholder((4,), name="x")
        _, b = split(x, 2)
        outputs = [exp(b), negative(b)]
    found = Kernelled().plan(Program([x], outputs))
    first, second, _ = found.steps
    assert first.frees == first.outputs[:1] == second.outputs
    assert second.inputs == first.outputs[1:]
    assert found.changing == 3


def test_what_a_call_makes_of_a_value_that_is_given_is_dropped_at_once():
    with Graph():
        x = placeholder((4,), name="x")
        a, b = split(x, 2)
        outputs = [exp(a), exp(b)]
    first, *_ = Kernelled().plan(Program([x, a], outputs)).steps
    assert first.frees == first.outputs[:1]


def test_the_peak_of_a_choice_is_exact_where_those_of_its_bodies_are():
    for inside, exact in ((lambda x: x, True), (lambda x: take(x, nonzero(x)[0]), False)):
        with Graph():
            x = placeholder((4,), name="x")
            y = cond(x[0] > 0, lambda x=x, f=inside: reduce_sum(exp(f(x))), lambda x=x: x[0])
        assert plan([x], [y]).exact is exact


def test_bodies_that_several_nodes_run_have_the_name_of_the_first():
    with Graph():
        x = placeholder((4,), name="x")
        y = cond(x[0] > 0, lambda: exp(x), lambda: x)
        z = cond(x[1] > 0, lambda: exp(x), lambda: negative(x))
        again = build(y.node.op, y.node.inputs).outputs[0]
    found = plan([x], [y, z, again])
    assert {name for name, _ in found.bodies} == {y.node.name, z.node.name}


def test_a_choice_that_waits_for_its_lengths_counts_for_nothing_yet():
    with Graph():
        x, flag = placeholder((None,), name="x"), placeholder((), "bool", name="flag")
        y = cond(flag, lambda: exp(x), lambda: x)
        size = cond(flag, lambda: reduce_sum(exp(x)), lambda: 0.0)
    assert plan([x, flag], [y]).planned == 0
    assert not plan([x, flag], [size]).exact


def test_an_input_made_by_a_node_of_the_program_keeps_its_given_value():
    with Graph():
        x = placeholder((2,), name="x")
        y = exp(x)
        z = negative(y)
    found = plan([x, y], [z, y])
    assert len(found.steps) == 1
    assert found.results[1].slot == 1


def test_a_given_value_among_those_that_a_writer_makes_is_kept_and_not_written():
    class Both(Op, abstract=True):
        type = "Both"

        def infer(self, x):
            return (x, x)

        def kernel(self, xp, x):
            return 2.0 * x, 3.0 * x

    def writer(node, threads):
        def run(x, double, triple):
            np.multiply(x, 2.0, out=double)
            np.multiply(x, 3.0, out=triple)

        return run

    class Writing(PlannedBackend):
        name = "writing"
        kernels = Kernels(np)

    Writing.kernels.writes(Both)(writer)
    Writing.kernels.writes(op_types()["Negative"], lambda node: [(0, 0)])(
        lambda node, threads: np.negative
    )
    with Graph():
        x = placeholder((2,), name="x")
        double, triple = build(Both(), (exp(x),)).outputs
        y, z = negative(triple), negative(double)
    run = Writing().compile(Program([x, double], [y, double]))
    given = np.array([5.0, 7.0])
    found, same = run(np.zeros(2), given)
    assert (found.tolist(), same.tolist(), given.tolist()) == ([-3, -3], [5, 7], [5, 7])
    found, other = Writing().compile(Program([x, double], [triple, z]))(np.zeros(2), given)
    assert (found.tolist(), other.tolist(), given.tolist()) == ([3, 3], [-5, -7], [5, 7])


def test_what_reshapes_by_a_copy_is_no_view():
    with Graph():
        x = placeholder((4, 6), name="x")
        y = exp(reshape(transpose(exp(x)), (4, 6)))
    assert plan([x], [y]).explain()[1].startswith("1 views (1 made once)")


def test_a_long_chain_is_planned_without_recursion():
    program = chain(10_000, shape=())
    assert len(plan(program.inputs, program.outputs).steps) == 10_000


def test_carries_of_a_loop_lie_beside_their_places_where_it_has_these():
    with Graph():
        x, h = placeholder((4, 3), name="x"), placeholder((3,), name="h")
        op = scan(lambda s, row: (s + row, s * row), h, x)[0].node.op
    (body,) = op.bodies
    plans = [plan(body.inputs, body.outputs)]
    assert of_one_run(op, plans, True) - of_one_run(op, plans, False) == 3 * 8


def test_rows_without_elements_take_no_memory_in_a_run():
    with Graph():
        x, h = placeholder((4, 3), name="x"), placeholder((3,), name="h")
        op = scan(lambda s, row: (row, row[:0]), h, x)[0].node.op
    (body,) = op.bodies
    inside = plan(body.inputs, body.outputs)
    assert of_one_run(op, [inside], False) == inside.planned - inside.kept
