"""The largest under a window: values, shares of the gradient, borders, ties and NaN."""

from __future__ import annotations

import numpy as np
import pytest

from graphgrad.execute.numpy import pooling
from graphgrad.execute.numpy.pooling import max_pool, max_pool_gradient
from graphgrad.ops.nn.pool2d import MaxPool, MaxPoolGrad

IMAGES = [
    *MaxPool.geometries(np.random.default_rng(0)),
    (((1, 2), "SAME", "NHWC", (3, 3)), np.random.default_rng(1).integers(0, 3, (5, 9, 8, 3)) / 1.0),
    (((3, 3), "VALID", "NHWC", (2, 2)), np.random.default_rng(2).normal(size=(5, 9, 8, 3))),
    (((2, 2), "SAME", "NCHW", (2, 2)), np.random.default_rng(3).normal(size=(5, 3, 7, 7))),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [1, 1 << 18])
@pytest.mark.parametrize(("attributes", "x"), IMAGES, ids=[str(a) for a, _ in IMAGES])
def test_as_the_general_kernels(attributes, x, size, threads, monkeypatch):
    monkeypatch.setattr(pooling, "IMAGES", size)
    op, back = MaxPool(*attributes), MaxPoolGrad(*attributes)
    wanted = op.kernel(np, x)
    y, dx = np.full_like(wanted, 7), np.full_like(x, 7)
    max_pool(op.over(x), op.last(np, x), op.last(np, y), threads)
    np.testing.assert_array_equal(y, wanted)
    dy = np.random.default_rng(4).normal(size=y.shape).astype(x.dtype)
    images = [op.last(np, a) for a in (dy, x, y, dx)]
    max_pool_gradient(op.over(x), *images, threads)
    np.testing.assert_allclose(dx, back.kernel(np, dy, x, y), atol=1e-6)


def test_nan_and_infinities():
    op, back = MaxPool((2, 2), "SAME", "NHWC", (2, 2)), MaxPoolGrad((2, 2), "SAME", "NHWC", (2, 2))
    x = np.zeros((1, 3, 3, 2))
    x[0, 0, 0], x[0, 2, 2], x[0, 0, 2] = np.nan, -np.inf, [np.inf, -np.inf]
    y, dx = op.kernel(np, x), np.empty_like(x)
    dy = np.arange(8.0).reshape(y.shape)
    max_pool_gradient(op.over(x), dy, x, y, dx, 1)
    np.testing.assert_array_equal(dx, back.kernel(np, dy, x, y))


def test_integers():
    op = MaxPool((1, 1), "SAME", "NHWC", (2, 2))
    x = np.random.default_rng(0).integers(-9, 9, (2, 4, 5, 3))
    y = np.empty_like(x)
    max_pool(op.over(x), x, y, 2)
    np.testing.assert_array_equal(y, op.kernel(np, x))
