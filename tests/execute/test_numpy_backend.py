"""The NumPy backend: promises, memory, errors, threads."""

import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ExecutionError
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.execute.numpy.kernels import KERNELS
from graphgrad.execute.run import planned
from graphgrad.ir.graph import Graph
from graphgrad.ir.op import OP_TYPES, Op
from graphgrad.ir.program import Program
from graphgrad.ir.types import tensor_type
from graphgrad.ops.base import Cast, apply, build, constant
from graphgrad.ops.control import cond
from graphgrad.ops.elementwise.arithmetic import add, divide
from graphgrad.ops.elementwise.exponential import exp, log
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.shape.reshaping import (
    ExpandDims,
    Reshape,
    Squeeze,
    Transpose,
    broadcast_like,
    broadcast_to,
    reshape,
    transpose,
)
from graphgrad.ops.sources import identity, placeholder


class BadlyTyped(Op):
    """Promises its input's type, returns float32."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return xp.astype(x, "float32")


class BadlyShaped(Op):
    """Promises one more axis than it returns."""

    def infer(self, x):
        return (tensor_type((None, 3), x.dtype),)

    def kernel(self, xp, x):
        return x + 0


class Raises(Op):
    """A kernel that raises."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        raise ZeroDivisionError("on purpose")


class SecretView(Op):
    """Returns its input and does not say so."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x


class Writes(Op):
    """Writes into its input."""

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        x[...] = 7
        return x + 1


class TwoParts(Op):
    """Two outputs: x + 1 and the sum of x."""

    def infer(self, x):
        return x, tensor_type((), x.dtype)

    def kernel(self, xp, x):
        return x + 1, xp.sum(x)


def run(inputs, outputs, *arrays, check=False):
    return NumpyBackend(check).compile(Program(inputs, outputs))(*arrays)


LOOPS = pytest.mark.parametrize("long", [0, 20_000], ids=["loop", "straight line"])


@LOOPS
def test_values_types_and_order(long, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    with Graph():
        x, y = placeholder((2, 3), name="x"), placeholder((3,), "float32", name="y")
        s = reduce_sum(x * 2.0)
        outputs = [x, s, y * y, constant(5), x * 2.0]
    a, b = np.arange(6.0).reshape(2, 3), np.ones(3, "float32")
    values = run([x, y], outputs, a, b)
    assert [(type(v), v.dtype, v.shape) for v in values] == [
        (np.ndarray, t.dtype, t.shape) for t in outputs
    ]
    np.testing.assert_array_equal(values[1], 30)
    np.testing.assert_array_equal(values[4], a * 2)


@LOOPS
def test_several_outputs_of_a_node(long, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    with Graph():
        x = placeholder((3,), name="x")
        a, b = build(TwoParts(), (x,)).outputs
        c, _ = build(TwoParts(), (a,)).outputs
    values = run([x], [b, c], np.zeros(3))
    np.testing.assert_array_equal(values[0], 0)
    np.testing.assert_array_equal(values[1], [2, 2, 2])
    np.testing.assert_array_equal(run([x, a], [b], np.ones(3), np.ones(3))[0], 3)


@pytest.mark.parametrize("check", [False, True])
def test_results_share_memory_with_nothing(check):
    with Graph():
        x = placeholder((2, 3), name="x")
        c = constant(np.ones((2, 3)))
        e = exp(x)
        outputs = [
            x, identity(x), reshape(x, (6,)), transpose(x), c, c, e, e, reshape(e, (6,)),
            broadcast_to(x, (4, 2, 3)), broadcast_to(e, (4, 2, 3)), reshape(exp(x), (3, 2)),
        ]  # fmt: skip
    a = np.zeros((2, 3))
    values = run([x], outputs, a, check=check)
    everything = [a, c.node.op.value, *values]
    for i, u in enumerate(everything):
        for v in everything[:i]:
            assert not np.shares_memory(u, v)
    for v in values:
        assert v.flags.writeable
        v[...] = 9
    assert (a == 0).all()
    assert (c.node.op.value == 1).all()


def test_a_view_of_a_temporary_is_not_copied():
    with Graph():
        x = placeholder((2, 3), name="x")
        y = reshape(exp(x), (6,))
    (value,) = run([x], [y], np.zeros((2, 3)))
    assert value.base is not None


def test_views_of_foreign_memory_are_copied():
    with Graph():
        x = placeholder((4,), name="x")
        y = reshape(x, (2, 2))
    memory = bytearray(32)
    (value,) = run([x], [y], np.frombuffer(memory))
    value[...] = 1
    assert bytes(memory) == bytes(32)


@pytest.mark.parametrize(
    "a",
    [
        np.arange(12.0).reshape(3, 4)[::-1, ::-2],
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.broadcast_to(np.arange(3.0)[:, None], (3, 2)),
        np.arange(6.0).reshape(2, 3).T,
    ],
)
def test_layouts(a):
    with Graph():
        x = placeholder((3, 2), name="x")
        p = Program([x], [reduce_sum(exp(x) * x, 0), reshape(x, (6,))])
    before = a.copy()
    for got, want in zip(NumpyBackend().compile(p)(a), NumpyBackend().compile(p)(before)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(a, before)


def test_big_chains_are_right_and_leave_the_input_alone():
    with Graph():
        x = placeholder((50_000,), name="x")
        y = exp(x)
        z = y * y + y
        w = log(z * z)
    a = np.linspace(0, 1, 50_000)
    before = a.copy()
    got = run([x], [w, reduce_sum(z)], a)
    e = np.exp(before)
    f = e * e + e
    np.testing.assert_array_equal(got[0], np.log(f * f))
    np.testing.assert_array_equal(got[1], f.sum())
    np.testing.assert_array_equal(a, before)


def test_ieee_rules_without_warnings():
    with Graph():
        x = placeholder((2,), name="x")
        outputs = [divide(x, 0.0), log(x), exp(x * 1e4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = run([x], outputs, np.array([1.0, -1.0]))
    np.testing.assert_array_equal(values[0], [np.inf, -np.inf])
    with pytest.warns(RuntimeWarning):
        np.log(-np.ones(1))


@LOOPS
@pytest.mark.parametrize("check", [False, True])
def test_an_error_keeps_its_type_and_says_where(long, check, monkeypatch):
    monkeypatch.setattr(planned, "LONG", long)
    with Graph():
        x = placeholder((3,), name="x")
        y = exp(apply(Raises(), exp(x)))
    with pytest.raises(ZeroDivisionError, match="on purpose") as error:
        run([x], [y], np.ones(3), check=check)
    (note,) = error.value.__notes__
    assert "Raises_2" in note
    assert "test_numpy_backend.py" in note
    assert "Exp_1:0: float64[3]" in note


def test_an_error_of_a_ufunc_shows_the_shapes():
    with Graph():
        x, y = placeholder((None,), name="x"), placeholder((None,), name="y")
        z = add(x, y)
    with pytest.raises(ValueError, match="broadcast") as error:
        run([x, y], [z], np.ones(2), np.ones(3))
    assert "x:0: float64[2]" in error.value.__notes__[0]
    assert "y:0: float64[3]" in error.value.__notes__[0]


def test_broken_promises_are_caught():
    with Graph():
        x, u = placeholder((3,), name="x"), placeholder((None,), name="u")
        typed, shaped = apply(BadlyTyped(), x), apply(BadlyShaped(), u)
        hidden = exp(typed)
        inside = exp(apply(BadlyTyped(), u))
    with pytest.raises(ExecutionError, match=r"promised float64\[3\].*returned float32\[3\]"):
        run([x], [typed], np.ones(3))
    with pytest.raises(ExecutionError, match="BadlyShaped"):
        run([u], [shaped], np.ones(3))
    with pytest.raises(ExecutionError, match="BadlyTyped"):
        run([u], [inside], np.ones(3))
    with pytest.raises(ExecutionError, match="BadlyTyped"):
        run([x], [hidden], np.ones(3), check=True)


def test_check_finds_undeclared_views_and_writes():
    with Graph():
        x = placeholder((3,), name="x")
        view, write = apply(SecretView(), x), apply(Writes(), x)
    with pytest.raises(ExecutionError, match="set `view = True`"):
        run([x], [view], np.ones(3), check=True)
    with pytest.raises(ExecutionError, match="wrote into"):
        run([x], [write], np.ones(3), check=True)
    a = np.ones(3)
    assert not np.shares_memory(run([x], [view], a)[0], a)


def test_check_knows_named_lengths():
    with Graph():
        x, y = placeholder(("N",), name="x"), placeholder(("N",), name="y")
        z = exp(x), exp(y)
    with pytest.raises(ExecutionError, match="length 'N' is 2 in x:0, and 3 in y:0"):
        run([x, y], z, np.ones(2), np.ones(3), check=True)


def test_a_long_chain_runs_at_the_default_recursion_limit():
    assert sys.getrecursionlimit() <= 3000
    with Graph():
        x = placeholder((), name="x")
        y = x
        for _ in range(10_000):
            y = add(y, x)
    assert run([x], [y], np.array(1.0))[0] == 10_001


def test_buffers_are_dropped_while_running():
    with Graph():
        x = placeholder((100_000,), name="x")
        y = x
        for _ in range(30):
            y = transpose(exp(y))
        y = reduce_sum(y)
    f = NumpyBackend().compile(Program([x], [y]))
    a = np.zeros(100_000)
    tracemalloc.start()
    f(a)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * a.nbytes


def test_runs_repeat_bit_for_bit_and_in_many_threads():
    with Graph():
        x = placeholder((64, 64), name="x")
        y = reduce_sum(exp(x) * x, 1)
    f = NumpyBackend().compile(Program([x], [y]))
    arrays = [np.random.default_rng(i).normal(size=(64, 64)) for i in range(8)]
    wanted = [f(a)[0].tobytes() for a in arrays]
    got = [None] * 8

    def work(i):
        for _ in range(50):
            got[i] = f(arrays[i])[0].tobytes()
            assert got[i] == wanted[i]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == wanted


OVERRIDDEN = [
    Reshape,
    Transpose,
    ExpandDims,
    Squeeze,
    Cast,
    OP_TYPES["ReduceSum"],
    OP_TYPES["Full"],
]


@pytest.mark.parametrize("op_type", OVERRIDDEN)
def test_overrides_agree_with_the_general_kernel(op_type):
    for op, arrays in op_type.samples(np.random.default_rng(0)):
        got, want = KERNELS.of(op)(*arrays), op.kernel(np, *arrays)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.asarray(want).dtype
        assert got.shape == np.asarray(want).shape


def test_expand_dims_of_scalars_and_several_axes():
    for axes, shape in [((0,), ()), ((0, 1), ()), ((1, 3), (2, 3)), ((0, 2), (4,))]:
        a = np.ones(shape)[()]
        op = ExpandDims(axes)
        assert KERNELS.of(op)(a).shape == op.kernel(np, a).shape


def test_broadcast_like_at_run_time():
    with Graph():
        x, y = placeholder((), name="x"), placeholder((None, 2), name="y")
        z = broadcast_like(x, y)
    assert run([x, y], [z], np.array(3.0), np.ones((4, 2)))[0].shape == (4, 2)


@pytest.mark.parametrize("check", [False, True])
def test_cond_runs_one_branch(check):
    with Graph():
        p, x = placeholder((), "bool", name="p"), placeholder((2,), name="x")
        y = cond(p, lambda: exp(x) * 2.0, lambda: identity(x))
        a, b = cond(p, lambda: (x, x + 1.0), lambda: (x + 1.0, x))
    zeros = np.zeros(2)
    for pred, wanted in [(True, (2, 0, 1)), (False, (0, 1, 0))]:
        values = run([p, x], [y, a, b], np.array(pred), zeros, check=check)
        for value, number in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(value, [number, number])
            assert not np.shares_memory(value, zeros)


@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 1)])
def test_a_product_with_a_matrix_of_one_number_keeps_nan(shape):
    with gg.Graph():
        x, y = gg.placeholder(shape), gg.placeholder((1, 1))
        run = gg.compile([x, y], [x @ y, y @ gg.matrix_transpose(x)], backend="numpy")
    for found in run(np.full(shape, np.nan), np.zeros((1, 1))):
        assert np.isnan(found).all()
