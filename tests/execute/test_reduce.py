"""Reductions in another order: NumPy's values, and sums at least as exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphgrad.execute.numpy.reduce import means, reducer

SHAPES = [(5,), (3000,), (3000, 4), (2999, 7), (40, 50, 6), (9, 2, 300), (2, 600), (0, 3), (3, 0)]


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["int64", "int32", "float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_numpy(shape, dtype, ufunc):
    x = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    for n in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), n):
            if ufunc is not np.add and 0 in [shape[a] for a in axes]:
                continue
            wanted = np.asarray(ufunc.reduce(x, axes, x.dtype))
            apart = np.repeat(x[..., None], 2, axis=-1)[..., 0]
            for given in (x, np.asfortranarray(x), apart):
                out = np.full(wanted.shape, 7, dtype)
                reducer(ufunc, axes, shape, x.dtype)(given, out)
                if dtype == "float32" and ufunc is np.add:
                    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-2)
                else:
                    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-10)


def test_fewer_rows_than_promised():
    reduce = reducer(np.add, (0,), (3000, 4), np.dtype(float))
    for rows in (2999, 1024, 1023, 5, 1):
        out = np.empty(4)
        reduce(np.ones((rows, 4)), out)
        np.testing.assert_array_equal(out, rows)


def test_sums_over_first_axes_are_more_exact_than_numpys():
    x = np.random.default_rng(0).uniform(size=(100_000, 8)).astype("float32")
    exact = x.sum(0, dtype=float)
    out = np.empty(8, "float32")
    reducer(np.add, (0,), x.shape, x.dtype)(x, out)
    assert abs(out - exact).max() < 0.2 * abs(np.add.reduce(x, 0) - exact).max()


def test_a_mean_over_nothing_is_nan():
    out = np.empty(3)
    with np.errstate(all="ignore"):
        means(reducer(np.add, (0,), (0, 3), out.dtype), 0, out.dtype)(np.empty((0, 3)), out)
    assert np.isnan(out).all()
