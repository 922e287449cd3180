"""The plan: slots, what is dropped when, what may be written over, peak bytes."""

import numpy as np

import graphgrad.ops.methods  # noqa: F401  (operators)
from graphgrad.execute.numpy_backend import NumpyBackend
from graphgrad.ir.graph import Graph
from graphgrad.ir.program import Program
from graphgrad.lower.schedule import NEVER, last_uses, peak_bytes, schedule
from graphgrad.ops.arithmetic import negative
from graphgrad.ops.exponential import exp
from graphgrad.ops.reductions import sum as reduce_sum
from graphgrad.ops.shaping import reshape
from graphgrad.ops.sources import identity, placeholder

BIG = 100_000


def chain(n, shape=(BIG,)):
    with Graph():
        x = placeholder(shape, name="x")
        y = x
        for _ in range(n):
            y = exp(y)
    return Program([x], [y])


def test_a_chain_needs_one_temporary_slot():
    plan = schedule(chain(5))
    assert plan.slots == 2
    assert [s.inputs for s in plan.steps] == [(0,), (1,), (1,), (1,), (1,)]
    assert all(s.frees == () for s in plan.steps)


def test_a_value_is_dropped_after_its_last_use_and_inputs_are_kept():
    with Graph():
        x = placeholder((3,), name="x")
        a = exp(x)
        b = exp(a)
        c = reduce_sum(a * b)
    plan = schedule(Program([x], [c]))
    assert plan.steps[2].inputs == (1, 2)
    assert {*plan.steps[2].outputs, *plan.steps[2].frees} == {1, 2}
    assert all(0 not in s.frees for s in plan.steps)


def test_outputs_are_never_dropped():
    with Graph():
        x = placeholder((3,), name="x")
        a = exp(x)
        b = exp(exp(a))
    plan = schedule(Program([x], [a, b, x]))
    assert len({*plan.outputs}) == 3
    assert all(plan.outputs[0] not in (*s.frees, *s.outputs) for s in plan.steps[1:])


def test_last_uses():
    with Graph():
        x = placeholder((3,), name="x")
        a, b = exp(x), negative(x)
        y = a + a
    p = Program([x], [y])
    assert last_uses(p) == {x: 0, a: 1, y: 2}
    assert b not in last_uses(p)


def test_constants_have_slots_of_their_own():
    with Graph():
        x = placeholder((3,), name="x")
        y = (x * 2.0) * 3.0
    plan = schedule(Program([x], [y]))
    assert [slot for slot, _ in plan.constants] == [1, 2]
    assert len(plan.steps) == 2


def numpy_plan(program):
    return NumpyBackend().plan(program)


def test_a_chain_is_written_over_itself_but_never_over_the_input():
    plan = numpy_plan(chain(4))
    assert [s.into for s in plan.steps] == [NEVER, 1, 1, 1]
    assert peak_bytes(plan) == (BIG * 8, True)


def test_what_a_view_may_see_is_not_written_over():
    with Graph():
        x = placeholder((BIG,), name="x")
        a = exp(x)
        b = reshape(a, (BIG // 2, 2))
        y = exp(a)
    plan = numpy_plan(Program([x], [b, y]))
    assert all(s.into == NEVER for s in plan.steps)
    b_value, y_value = NumpyBackend().compile(Program([x], [b, y]))(np.zeros(BIG))
    assert (b_value == 1).all()
    assert (y_value == np.e).all()


def test_outputs_small_values_and_other_dtypes_are_not_written_over():
    with Graph():
        x = placeholder((BIG,), name="x")
        a = exp(x)
        b = exp(a)
    assert all(s.into == NEVER for s in numpy_plan(Program([x], [a, b])).steps)
    assert all(s.into == NEVER for s in numpy_plan(chain(4, shape=(8,))).steps)
    with Graph():
        x = placeholder((BIG,), "float32", name="x")
        y = exp(exp(x).astype("float64"))
    assert all(s.into == NEVER for s in numpy_plan(Program([x], [y])).steps)


def test_reductions_may_read_what_is_written_over():
    with Graph():
        x = placeholder((BIG,), name="x")
        a = exp(x)
        s = reduce_sum(a)
        b = exp(a)
    assert [step.into for step in numpy_plan(Program([x], [s, b])).steps] == [NEVER, NEVER, 1]


def test_peak_counts_views_as_their_buffer():
    with Graph():
        x = placeholder((10,), name="x")
        a = reshape(identity(exp(x)), (2, 5))
        y = exp(a)
    assert peak_bytes(schedule(Program([x], [y]))) == (160, True)


def test_peak_says_when_lengths_are_unknown():
    with Graph():
        x = placeholder((None,), name="x")
        y = exp(x)
    assert peak_bytes(schedule(Program([x], [y]))) == (0, False)


def test_an_input_made_by_a_node_of_the_program_keeps_its_given_value():
    with Graph():
        x = placeholder((2,), name="x")
        y = exp(x)
        z = negative(y)
    plan = schedule(Program([x, y], [z, y]))
    assert len(plan.steps) == 1
    assert plan.outputs[1] == 1


def test_a_long_chain_is_planned_without_recursion():
    assert len(schedule(chain(50_000, shape=())).steps) == 50_000
