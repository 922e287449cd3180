"""What NumPy does better gives what the general kernels give, whatever the layout of the inputs."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy.kernels import KERNELS, element_writer
from graphgrad.ir.build import build

from ..each import each, initial
from ..laws.cases import CASES, placed

LAYOUTS = {
    "as they are": lambda a: a,
    "by columns": lambda a: np.array(a, order="F"),
    "apart": lambda a: np.repeat(a[..., None], 2, axis=-1)[..., 0],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1] if a.ndim else a,
}


def writer_of(node, threads):
    """What writes the results of a node that is not element by element."""
    if node.op.traits.reduction is not None:
        return element_writer(node, threads)
    return KERNELS.writer_of(node, threads)


WRITTEN = []
for _name, _op, _arrays in CASES:
    _, _node = placed(_op, _arrays)
    if all(t.type.static for t in _node.outputs) and writer_of(_node, 2) is not None:
        WRITTEN.append((_name, _node, _arrays))


def check(node, arrays, threads=1):
    """Every output written as the general kernel makes it, and nothing else written to."""
    before = [np.array(a) for a in arrays]
    with np.errstate(all="ignore"):
        wanted = node.op.kernel(np, *arrays)
        outs = [np.full(t.shape, 7, t.dtype) for t in node.outputs]
        writer_of(node, threads)(*arrays, *outs)
    for out, want in zip(outs, wanted if len(outs) > 1 else (wanted,), strict=True):
        tolerance = 1e-4 if out.dtype in ("float32", "complex64") else 1e-10
        np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
@each(WRITTEN, initial)
def test_writers_agree_with_the_general_kernels(node, arrays, layout, threads):
    check(node, [LAYOUTS[layout](a) for a in arrays], threads)


def test_what_is_written():
    found = {node.op.type for _, node, _ in WRITTEN}
    assert found >= {
        *("Concat", "Stack", "Pad", "Tile", "Untile", "Repeat", "Unrepeat", "Roll", "Gather"),
        *("Unslice", "UnsliceLike", "MatMul", "Einsum", "Softmax", "LogSoftmax"),
        *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad"),
        *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "SumToShape"),
    }


def test_softmax_over_what_it_reads():
    rng = np.random.default_rng(0)
    for f in (gg.nn.softmax, gg.nn.log_softmax):
        for shape, axis in [((300, 500), 1), ((300, 500), 0), ((2, 3), 1)]:
            a = rng.normal(size=shape)
            with gg.Graph():
                node = f(gg.placeholder(shape), axis).node
            assert KERNELS.overwrites(node) == ((0, 0),)
            wanted = node.op.kernel(np, a)
            KERNELS.writer_of(node, 2)(a, a)
            np.testing.assert_array_equal(a, wanted)


def test_a_single_ufunc_is_called_as_it_is():
    with gg.Graph():
        x = gg.placeholder((3,))
        assert element_writer((x + x * 2.0).node, 1) is np.add
        assert element_writer(gg.exp(x).node, 1) is np.exp


def test_gathering_beyond_the_end_is_an_error():
    with gg.Graph():
        x, i = gg.placeholder((3, 2)), gg.placeholder((2,), "int64")
        y = gg.take(x, i, 0)
    out = np.empty((2, 2))
    write = KERNELS.writer_of(y.node, 1)
    write(np.arange(6.0).reshape(3, 2), np.array([-3, 2]), out)
    np.testing.assert_array_equal(out, [[0, 1], [4, 5]])
    for index in (3, -4):
        with pytest.raises(IndexError, match="out of bounds"):
            write(np.ones((3, 2)), np.array([0, index]), out)


@pytest.mark.parametrize("shift", [-7, -1, 0, 2, 5, 11])
def test_rolls(shift):
    with gg.Graph():
        x = gg.placeholder((5, 3))
        for axis in (0, 1, (0, 1), (0, 0)):
            check(gg.roll(x, shift, axis).node, [np.arange(15.0).reshape(5, 3)]) if shift else None


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [gg.nn.softmax, gg.nn.log_softmax])
def test_softmax_of_many_rows(f, dtype, axis):
    a = np.random.default_rng(0).normal(size=(300, 40, 30)).astype(dtype) * 30
    with gg.Graph():
        y = f(gg.placeholder(a.shape, dtype), axis)
    check(y.node, [a], threads=3)


EDGES = [-np.inf, np.inf, np.nan, -1e30, 0.0, 1e30]


@pytest.mark.parametrize("f", [gg.nn.softmax, gg.nn.log_softmax])
def test_softmax_at_the_edges(f):
    a = np.array([[p, q, r] for p in EDGES for q in EDGES for r in EDGES])
    with gg.Graph():
        y = f(gg.placeholder(a.shape), 1)
    check(y.node, [a])


def test_user_ops_have_no_writer():
    class TwiceUnregistered(gg.Op):
        """2 x."""

        def infer(self, x):
            return (x,)

        def kernel(self, xp, x):
            return x + x

    with gg.Graph():
        assert KERNELS.writer_of(build(TwiceUnregistered(), (gg.placeholder((2,)),)), 1) is None
