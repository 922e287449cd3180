"""Python functions as ops: called with arrays, held to their promise, with their own rule."""

import numpy as np
import pytest

from graphgrad.base.errors import DTypeError, ExecutionError, GradientError
from graphgrad.compiled import evaluate
from graphgrad.differentiate.gradients import gradients
from graphgrad.ir.graph import Graph
from graphgrad.ops.python_function import py_function
from graphgrad.ops.sources import placeholder


def test_values_and_gradient():
    with Graph():
        x = placeholder((None,))
        y = py_function(
            lambda a: np.sort(a) ** 2, [x], [((None,), "float64")], vjp=lambda node, dy: dy * 2.0
        )
        (dx,) = gradients([y], [x])
        found = evaluate([y, dx], {x: np.array([3.0, 1.0])})
    np.testing.assert_array_equal(found[0], [1, 9])
    np.testing.assert_array_equal(found[1], [2, 2])


def test_rule_sees_inputs_and_outputs():
    def rule(node, dy, _):
        (x,), (y, _) = node.inputs, node.outputs
        return (dy * y / x,)

    with Graph():
        x = placeholder((2,))
        y, n = py_function(
            lambda a: (a**2, len(a)), [x], [((2,), "float64"), ((), "int64")], vjp=rule
        )
        (dx,) = gradients([y], [x])
        found = evaluate([y, n, dx], {x: np.array([3.0, 2.0])})
    np.testing.assert_array_equal(found[2], [3, 2])
    assert found[1] == 2


def test_missing_gradient_is_an_error_only_where_it_is_needed():
    def double(a):
        return a * 2

    with Graph():
        x = placeholder(())
        y = py_function(double, [x], [((), "float64")])
        with pytest.raises(GradientError, match=r"'double' \(test_python_function.py:\d+\)"):
            gradients([y], [x])


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda a: a.astype("float32"), r"returned float32\[2\]"),
        (lambda a: a[:1], r"returned float64\[1\]"),
        (lambda a: (a, a), "promised"),
        (lambda a: 1.0, r"returned float64\[\]"),
    ],
)
def test_broken_promises(fn, said):
    with Graph():
        x = placeholder((2,))
        y = py_function(fn, [x], [((2,), "float64")])
        with pytest.raises(ExecutionError, match=said):
            evaluate(y, {x: np.ones(2)})


def test_python_numbers_are_weak():
    with Graph():
        y = py_function(lambda: 3, [], [((), "float32")])
        assert evaluate(y).dtype == np.float32


def test_inputs_are_read_only_and_errors_name_the_function():
    def writes(a):
        a[0] = 1
        return a

    with Graph():
        x = placeholder((2,))
        y = py_function(writes, [x], [((2,), "float64")])
        with pytest.raises(ValueError, match="read-only") as error:
            evaluate(y, {x: np.ones(2)})
    assert any("'writes'" in note for note in error.value.__notes__)


def test_calls_are_not_merged():
    calls = []

    def count():
        calls.append(1)
        return len(calls)

    with Graph():
        a, b = (py_function(count, [], [((), "int64")]) for _ in range(2))
        assert sorted(int(v) for v in evaluate([a, b])) == [1, 2]


def test_out_types_are_checked():
    with Graph(), pytest.raises(DTypeError, match="pairs"):
        py_function(lambda: 1, [], ["float64"])
