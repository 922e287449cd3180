"""Pooling taken apart: the same values as the ops' own, ties, NaN and infinities included."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.ir.program import Program
from graphgrad.lower.decompose import decompose
from graphgrad.ops import nn

POOLS = ("MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad")


def pooled(kind, shape, dtype, *args, **options):
    """A program of a pooling and its gradient."""
    with gg.Graph():
        x = gg.placeholder(shape, dtype)
        y = getattr(nn, f"{kind}_pool")(x, *args, **options)
        dy = gg.placeholder(y.shape, dtype)
        dx = [] if x.dtype.kind != "f" else gg.gradients(y, [x], grad_ys=[dy])
        return Program([x, dy], [y, *dx])


def left(program):
    return [n.type for n in decompose(program).nodes if n.type in POOLS]


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("window", [(2, 2), (3, 1), (1, 4), (4, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_side_by_side(kind, data_format, window, dtype):
    shape = (2, 12, 8, 3) if data_format == "NHWC" else (2, 3, 12, 8)
    program = pooled(kind, shape, dtype, window, data_format=data_format)
    assert not left(program)
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, -0.0, 1, 2, np.nan, -np.inf, np.inf], shape).astype(dtype)
    x[0] = rng.integers(0, 3, shape[1:])  # ties
    dy = rng.normal(size=program.inputs[1].shape).astype(dtype)
    with np.errstate(all="ignore"):
        wanted = one_call_per_node(program, Kernels(np))(x, dy)
        found = one_call_per_node(decompose(program), Kernels(np))(x, dy)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_that_overlap_or_leave_pixels_out_go_forward_only(kind):
    rng = np.random.default_rng(0)
    for length, strides in ((9, (2, 2)), (8, (3, 3)), (7, (2, 2))):
        program = pooled(kind, (2, length, length, 3), "float64", (3, 3), strides)
        assert left(program) == [f"{kind.capitalize()}PoolGrad"]
        x, dy = (rng.normal(size=t.shape) for t in program.inputs)
        wanted = one_call_per_node(program, Kernels(np))(x, dy)
        found = one_call_per_node(decompose(program), Kernels(np))(x, dy)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def test_integers():
    program = pooled("max", (1, 4, 4, 2), "int8", 2)
    assert not left(program)
    x = np.arange(32, dtype="int8").reshape(1, 4, 4, 2) - 20
    dy = np.zeros((1, 2, 2, 2), "int8")
    (found,) = one_call_per_node(decompose(program), Kernels(np))(x, dy)
    np.testing.assert_array_equal(found, x[:, 1::2, 1::2])


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_borders_and_large_windows_stay_as_they_are(kind):
    names = [f"{kind.capitalize()}Pool", f"{kind.capitalize()}PoolGrad"]
    assert left(pooled(kind, (1, 5, 5, 2), "float64", 2, padding="SAME")) == names
    assert left(pooled(kind, (1, 6, 6, 2), "float64", 2, 2, ((1, 1), (0, 0)))) == names
    assert left(pooled(kind, (1, 20, 20, 2), "float64", 5)) == names
    assert not left(pooled(kind, (1, 6, 6, 2), "float64", 2, padding="SAME"))
