"""Constant folding: what is computed before, what is not, and within which limits."""

import warnings
from typing import ClassVar

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import Op
from graphgrad.ops.base import Constant, Full, as_dtype
from graphgrad.ops.base import apply as node
from graphgrad.ops.shape.reshaping import broadcast_to, reshape

from .helpers import fold_constants, run, types, verified


class FailsForTest(Op):
    """A kernel that raises."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        raise ValueError("no value")


class CountsForTest(Op):
    """A kernel with an effect."""

    pure = False
    runs: ClassVar[list[int]] = []

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        self.runs.append(1)
        return x + 1.0


class BodyForTest(Op):
    """An op with a body of its own."""

    body: object

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        raise AssertionError("was run")


def folded(*ys):
    return verified(fold_constants(gg.Program([], ys)))


@pytest.fixture(autouse=True)
def _graph():
    with gg.Graph():
        yield


def test_constants_fold():
    (made,) = folded(gg.exp(gg.constant(1.0) + 2.0)).nodes
    assert type(made.op) is Constant
    assert made.op.value == np.exp(3.0)
    assert not made.op.value.flags.writeable


def test_nothing_to_do_is_the_same_object():
    x = gg.placeholder((2,), name="x")
    p = gg.Program([x], [gg.exp(x) * 3.0])
    assert fold_constants(p) is p


def test_folding_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(folded(gg.log(gg.divide(gg.constant(-1.0), 0.0))).nodes[0].op.value)


def test_folding_sees_through_broadcasts_but_never_writes_them_out():
    p = gg.Program([], [broadcast_to(gg.constant(2.0), (1000,))])
    assert fold_constants(p) is p
    full = gg.Program([], [node(Full((1000,), 1.0, as_dtype("float64")))])
    assert fold_constants(full) is full
    assert types(folded(broadcast_to(gg.constant([2.0, 3.0]), (1, 2)))) == ["Constant"]
    small = reshape(broadcast_to(gg.constant(2.0), (3,)) + 1.0, (3, 1))
    assert types(folded(small)) == ["Constant"]


def test_folding_stops_at_its_limits():
    p = gg.Program([], [gg.exp(gg.constant(np.ones(200_000)))])
    assert fold_constants(p) is p
    many = gg.Program([], [gg.exp(gg.constant(np.full(10, float(i)))) for i in range(4)])
    assert types(fold_constants(many, total_bytes=160)).count("Exp") == 2


def test_a_kernel_that_fails_stays():
    p = gg.Program([], [node(FailsForTest(), gg.constant(1.0))])
    assert fold_constants(p) is p
    with pytest.raises(ValueError, match="no value"):
        run(p, [])


class LiesForTest(Op):
    """A kernel that returns another thing than was promised."""

    shape: tuple
    dtype: object

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return np.ones(self.shape, self.dtype)


@pytest.mark.parametrize("returned", [((2,), "float32"), ((3,), "float64")])
def test_a_kernel_that_returns_what_was_not_promised_stays(returned):
    p = gg.Program([], [node(LiesForTest(*returned), gg.constant([1.0, 2.0]))])
    assert fold_constants(p) is p


def test_an_op_with_a_body_is_not_run():
    p = gg.Program([], [node(BodyForTest(lambda: None), gg.constant(1.0))])
    assert fold_constants(p) is p


def test_ops_with_several_outputs_fold():
    a, b = gg.split(gg.constant(np.arange(4.0)), [1])
    assert [n.op.value.tolist() for n in folded(a, b).nodes] == [[0.0], [1.0, 2.0, 3.0]]


def test_what_waits_for_others_does_not_fold():
    x = gg.placeholder((), name="x")
    first = gg.exp(x)
    y = gg.exp(gg.constant(1.0))
    y.node.controls = (first.node,)
    p = gg.Program([x], [y])
    assert fold_constants(p) is p


def test_what_has_effects_is_run_each_time():
    y = node(CountsForTest(), gg.constant(1.0))
    p = gg.Program([], [y])
    assert fold_constants(p) is p
    assert not CountsForTest.runs
