"""Runs with a clock around every step are the runs that the backend does anyway."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ExecutionError
from graphgrad.execute.backend import Backend
from graphgrad.execute.loading import load_backend
from graphgrad.execute.run.timed import timed_runs
from graphgrad.ir.program import Program


def spans(outputs, inputs, *arrays, repeat=2, backend="numpy", **options):
    program = Program(inputs, outputs)
    return timed_runs(load_backend(backend, **options), program, arrays, repeat)


def test_every_step_is_timed_in_every_run():
    x = gg.placeholder((3, 3))
    y = gg.sum(gg.exp(x) @ x)
    runs = spans([y], [x], np.ones((3, 3)), repeat=3)
    assert len(runs) == 3
    for run in runs:
        assert [s.node.type for s in run.spans] == ["Exp", "MatMul", "ReduceSum"]
        stamps = [run.start, *(t for s in run.spans for t in (s.start, s.end)), run.end]
        assert stamps == sorted(stamps)


def test_bytes_are_what_a_step_reads_and_writes_and_none_for_a_view():
    x = gg.placeholder((3, 4))
    y = gg.exp(x.T)
    (run,) = spans([y], [x], np.ones((3, 4)), repeat=1)
    assert {s.node.type: s.bytes for s in run.spans} == {"Transpose": 0, "Exp": 2 * 12 * 8}


def test_outputs_of_one_step_are_counted_each():
    x = gg.placeholder((4, 3))
    made = gg.split(x, 2)
    (run,) = spans([t * 1.5 for t in made], [x], np.ones((4, 3)), repeat=1)
    assert sum(s.node.type == "Multiply" for s in run.spans) == 2
    assert all(s.bytes > 0 for s in run.spans if s.node.type == "Multiply")


def test_lengths_that_are_known_only_at_run_time():
    x = gg.placeholder((None, 2))
    (run,) = spans([gg.exp(x)], [x], np.ones((5, 2)), repeat=1)
    assert [(s.node.type, s.bytes) for s in run.spans] == [("Exp", 2 * 5 * 2 * 8)]


def test_a_branch_is_one_step_of_the_run():
    x = gg.placeholder(())
    y = gg.cond(x > 0.0, lambda: gg.exp(x), lambda: x)
    (run,) = spans([y], [x], np.array(1.0), repeat=1)
    assert [s.node.type for s in run.spans] == ["Greater", "Cond"]


def test_an_error_in_a_step_is_as_it_is_without_a_clock():
    x = gg.placeholder((None,))
    y = gg.reshape(x, (2, 2))
    with pytest.raises(gg.ShapeError, match="5"):
        spans([y], [x], np.ones(5))


def test_a_backend_that_runs_a_program_as_a_whole_cannot_be_timed_by_steps():
    class Whole(Backend):
        name = "whole"

    x = gg.placeholder(())
    with pytest.raises(ExecutionError, match="'whole' runs a program as a whole"):
        timed_runs(Whole(), Program([x], [x + 1.0]), [np.array(1.0)], 1)


def test_the_backend_is_left_as_it_was():
    backend = load_backend("numpy")
    x = gg.placeholder(())
    before = dict(vars(backend))
    timed_runs(backend, Program([x], [x + 1.0]), [np.array(1.0)], 1)
    assert vars(backend) == before
