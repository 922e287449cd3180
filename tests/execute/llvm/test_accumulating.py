"""Cumulative ops in LLVM code give NumPy's bits: any axis, length and order, on any threads."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.emit.call import possible
from graphgrad.execute.llvm.kernels import accumulating
from graphgrad.execute.llvm.kernels.accumulating import accumulation_writer
from graphgrad.execute.llvm.kernels.accumulations import PIECE
from graphgrad.ops.reduce.cumulative import CumProd, CumSum
from graphgrad.ops.reduce.running_extrema import CumMax, CumMin

OPS = {
    CumSum: lambda x, axis: np.cumsum(x, axis, x.dtype),
    CumProd: lambda x, axis: np.cumprod(x, axis, x.dtype),
    CumMax: np.maximum.accumulate,
    CumMin: np.minimum.accumulate,
}
SHAPES = [(1,), (9,), (3, 1), (1, 5), (19, 7), (150, 2), (5, 150), (3, 4, 70), (2, 3, PIECE + 5)]


@pytest.fixture(autouse=True)
def _possible():
    if not possible():
        pytest.skip("compiled functions take no arrays here")


def _values(shape, dtype):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-5, 6, shape).astype(dtype)
    x = rng.normal(size=shape).astype(dtype)
    flat = x.reshape(-1)
    flat[: flat.size // 3] = rng.choice([0.0, -0.0, 1.0], flat.size // 3)
    flat[flat.size // 2 :: 7] = np.inf
    flat[flat.size // 2 + 3 :: 29] = np.nan
    return x


def _node(op, shape, dtype, axis, **options):
    with gg.Graph():
        return gg.extend.apply(op(axis, **options), gg.placeholder(shape, dtype)).node


def _written(node, x, threads=1):
    write, out = accumulation_writer(node, threads), np.empty(x.shape, x.dtype)
    write(x, out)
    return out


def _same(a, b):
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        there = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a)[there], np.signbit(b)[there])


@pytest.mark.parametrize("dtype", accumulating.DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_bits_are_numpys(op, dtype, monkeypatch):
    monkeypatch.setattr(accumulating, "SHARED", 1)
    for shape in SHAPES:
        x = _values(shape, dtype)
        for axis in range(len(shape)):
            node = _node(op, shape, dtype, axis)
            with np.errstate(all="ignore"):
                expected = OPS[op](x, axis)
            for threads in (1, 2):
                _same(_written(node, x, threads), expected)
                _same(_written(node, np.asfortranarray(x), threads), expected)


@pytest.mark.parametrize("shape", [(19, 7), (16, 9), (3, 5, 21)])
def test_nothing_outside_the_result_is_written(shape):
    x = _values(shape, "float64")
    for axis in range(len(shape)):
        memory = np.full(x.size + 512, 7.0)
        out = memory[256:-256].reshape(shape)
        accumulation_writer(_node(CumMax, shape, "float64", axis), 1)(x, out)
        _same(out, np.maximum.accumulate(x, axis))
        assert (memory[:256] == 7).all()
        assert (memory[-256:] == 7).all()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("op", [CumSum, CumProd])
def test_from_the_end_and_without_the_last(op, exclusive, reverse):
    for shape in SHAPES:
        x = _values(shape, "float64")
        for axis in range(len(shape)):
            node = _node(op, shape, "float64", axis, reverse=reverse, exclusive=exclusive)
            with np.errstate(all="ignore"):
                _same(_written(node, x), node.op.kernel(np, x))


def test_what_is_left_to_numpy():
    assert accumulation_writer(_node(CumSum, (3,), "float32", 0), 1) is not None
    assert accumulation_writer(_node(CumSum, (0, 3), "float32", 0), 1) is None
    assert accumulation_writer(_node(CumSum, (3,), "float16", 0), 1) is None
    assert accumulation_writer(_node(CumMax, (3,), "uint64", 0), 1) is None
    with gg.Graph():
        assert accumulation_writer(gg.exp(gg.placeholder((3,))).node, 1) is None
