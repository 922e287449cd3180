"""Products in slices: the whole product, whatever the layout."""

from __future__ import annotations

import numpy as np
import pytest

from graphgrad.execute.numpy.blas import ALONE, product, slice_rows

SHAPES = [
    ((100, 288), (288, 64)),
    ((7, 3), (3, 2)),
    ((1000, 288), (288, 64)),
    ((3, 100, 64), (3, 64, 128)),
    ((2, 3, 128, 64), (2, 3, 64, 128)),
    ((2, 3, 128, 64), (3, 64, 128)),
    ((0, 5), (5, 3)),
    ((100, 0), (0, 5)),
    ((33, 600), (600, 700)),
    ((100, 8), (5, 8, 300)),
    ((1, 100, 8), (5, 8, 300)),
    ((100, 0), (2, 0, 3, 0, 5)),
]


def by_columns(a):
    return np.ascontiguousarray(a.mT).mT


@pytest.mark.parametrize("right", [np.ascontiguousarray, by_columns])
@pytest.mark.parametrize("left", [np.ascontiguousarray, by_columns])
@pytest.mark.parametrize(("of_a", "of_b"), SHAPES)
def test_as_matmul(of_a, of_b, left, right):
    rng = np.random.default_rng(0)
    a, b = left(rng.normal(size=of_a)), right(rng.normal(size=of_b))
    wanted = np.matmul(a, b)
    for out in (np.full(wanted.shape, 7.0), by_columns(np.full(wanted.shape, 7.0))):
        product(a, b, out)
        np.testing.assert_allclose(out, wanted, atol=1e-10)


def test_slices_are_small_enough_for_one_thread():
    for inner, columns in [(288, 64), (1, 1), (512, 64), (3, 10_000), (2304, 256), (0, 5)]:
        rows = slice_rows(inner, columns)
        assert rows % 4 == 0
        assert rows * inner * columns <= ALONE
        assert rows >= 8 or 8 * inner * columns > ALONE
