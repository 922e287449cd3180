"""Kernels taken apart: which are, into what, and which are left whole."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.lower.calls import CAST, CHOOSE, calls_of
from graphgrad.ops.base import Cast
from graphgrad.ops.elementwise.arithmetic import Add
from graphgrad.ops.elementwise.bounds import Clip
from graphgrad.ops.elementwise.exponential import Sigmoid
from graphgrad.ops.elementwise.logic import Where
from graphgrad.ops.nn.activations import Relu, ReluGrad
from graphgrad.ops.shape.reshaping import Reshape
from graphgrad.ops.special.scipy_functions import OfScipy

from ..each import each, initial
from ..laws.cases import CASES, placed

WHOLE = {"Exponent", "FoldIn", "PolyGamma", "SphericalBessel"}
"""Element by element, but in kernels that are more than a chain of ufuncs."""

F4, F8, BOOL = np.dtype("float32"), np.dtype("float64"), np.dtype(bool)


def steps(op, inputs, output=None):
    return [s.fn for s in calls_of(op, inputs, output or inputs[0]).steps]


def test_kernels_as_calls():
    assert steps(Add(), (F4, F4)) == [np.add]
    assert steps(Clip(), (F4, F4, F4)) == [np.maximum, np.minimum]
    assert steps(Cast(F4), (F8,), F4) == [CAST]
    assert steps(Where(), (BOOL, F4, F4), F4) == [CHOOSE]
    assert steps(ReluGrad(), (F4, F4)) == [np.greater, CHOOSE]


def test_equal_calls_of_a_kernel_are_one():
    calls = calls_of(Sigmoid(), (F4,), F4)
    assert [s.fn for s in calls.steps].count(np.exp) == 1
    assert calls.result == len(calls.steps)  # the last, after one input


def test_numbers_of_a_kernel_have_the_dtype_that_numpy_gives_them():
    (step,) = calls_of(Relu(), (F4,), F4).steps
    number = step.operands[1]
    assert (number.dtype, number.shape, number.item()) == (F4, (), 0.0)
    assert not number.flags.writeable


def test_what_is_no_sequence_of_calls():
    assert calls_of(Reshape((2,)), (F4,), F4) is None
    assert calls_of(Add(), (F4, F4), F8) is None  # not what was promised


@pytest.mark.parametrize(
    "kernel",
    [
        lambda xp, x: x.sum(),
        lambda xp, x: x if x > 0 else -x,
        lambda xp, x: np.where(x > 0, x, 0),
        lambda xp, x: np.asarray(x) + 1,
        lambda xp, x: float(x),
        lambda xp, x: x**2,
        lambda xp, x: xp.sum(x),
        lambda xp, x: xp.add.reduce(x),
        lambda xp, x: xp.modf(x)[0],
        lambda xp, x: x + np.ones(3),
        lambda xp, x: x + "1",
        lambda xp, x: xp.where(x, x, 0),
        lambda xp, x: xp.where(x > 0, x, xp.astype(x, "float64")),
        lambda xp, x: xp.add(x, 1, where=x > 0),
        lambda xp, x: 3.0,
    ],
)
def test_kernels_that_stay_whole(kernel):
    class SaysElementwise(gg.Op):
        """Says that it is element by element."""

        elementwise = True

        def infer(self, x):
            return (x,)

    SaysElementwise.kernel = lambda self, xp, x: kernel(xp, x)
    assert calls_of(SaysElementwise(), (F4,), F4) is None


@each(CASES, initial)
def test_every_elementwise_kernel_is_taken_apart(op, arrays):
    _, node = placed(op, arrays)
    if not op.elementwise or op.memory.view or op.type in WHOLE or isinstance(op, OfScipy):
        pytest.skip("not element by element, a view, or no ufuncs")
    assert calls_of(op, tuple([a.dtype for a in arrays]), node.outputs[0].dtype) is not None
