"""Places in order, of many elements: those of a stable sort, ties and NaN as NumPy has them."""

import runpy

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.reduce.sorting import TopK

SHAPES = [(1500,), (40, 40), (5, 300), (2, 30, 30), (1030, 1)]


def _cases(dtype, shape):
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        x = rng.normal(size=shape).astype(dtype)
        special = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45]
        other = x.copy().reshape(-1)
        other[::3] = rng.choice(np.array(special, dtype), other[::3].shape)
        one = x.copy().reshape(-1)
        one[7] = one[8] = one[-1]
        return [x, other.reshape(shape), one.reshape(shape), np.zeros(shape, dtype)]
    info = np.iinfo(dtype)
    full = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    full.reshape(-1)[:2] = info.min, info.max
    few = rng.integers(0, 5, shape).astype(dtype)
    return [full, few, few + np.array(info.max - 9, dtype), np.zeros(shape, dtype)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("descending", [False, True])
def test_order_is_stable(dtype, descending):
    for shape in SHAPES:
        for x in _cases(dtype, shape):
            for axis in range(x.ndim):
                found = gg.evaluate(gg.argsort(x, axis, descending=descending))
                order = np.argsort(np.flip(x, axis) if descending else x, axis, kind="stable")
                expected = x.shape[axis] - 1 - np.flip(order, axis) if descending else order
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", [4, 40])
def test_zeros_of_both_signs_keep_their_order(dtype, descending, n):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).choice([0.0, -0.0, 1.0, np.nan], (n, 3))
    with gg.Graph():
        x = gg.cast(values, dtype)
        y = gg.sort(x, 0, descending=descending)
        picked = gg.take_along_axis(x, gg.argsort(x, 0, descending=descending), 0)
        y, picked = gg.evaluate([gg.cast(y, "float64"), gg.cast(picked, "float64")])
    np.testing.assert_array_equal(y, picked)
    np.testing.assert_array_equal(np.signbit(y) & (y == 0), np.signbit(picked) & (picked == 0))


def test_the_gradient_of_a_descending_order_goes_where_elements_came_from():
    with gg.Graph():
        x = gg.constant([2.0, 3.0, 1.0])
        dx = gg.gradients(gg.sum(gg.sort(x, descending=True) * np.array([1.0, 2.0, 4.0])), x)
        np.testing.assert_array_equal(gg.evaluate(dx), [2.0, 1.0, 4.0])


def test_places_of_a_partition_are_those_of_the_axis():
    x = np.array([3, 1, 2])
    for kth in (-3, 0, 2, [0, -1]):
        np.testing.assert_array_equal(gg.evaluate(gg.partition(x, kth)), [1, 2, 3])
    for kth in (-4, 3, [0, 3]):
        with pytest.raises(gg.ShapeError, match="partition at"):
            gg.partition(x, kth)
    with gg.Graph(), pytest.raises(gg.ShapeError, match="the first -1"):
        gg.extend.apply(TopK(-1, 0), gg.placeholder((3,)))


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "float32", "complex64", "complex128"]
)
def test_sort_complex_has_numpys_dtype(dtype):
    x = np.array([3, 1, 2], dtype)
    found, expected = gg.evaluate(gg.sort_complex(x)), np.sort_complex(x)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_an_exported_file_has_what_it_needs(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 40)).astype("float32")
    with gg.Graph():
        t = gg.placeholder(x.shape, "float32")
        f = gg.compile(t, gg.argsort(t, 1), backend="numpy")
    path = tmp_path / "order.py"
    gg.export_numpy(f, path)
    module = runpy.run_path(str(path))
    np.testing.assert_array_equal(module["order"](x), np.argsort(x, 1, kind="stable"))
