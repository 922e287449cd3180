"""Arrays with some elements changed: the same in every array namespace."""

import numpy as np
import pytest

from graphgrad.ops.shape.updates import plus, plus_along, plus_at, with_at

KEY = (slice(None), np.array([0, 2, 0]))
VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture(params=["numpy", "jax"])
def xp(request):
    if request.param == "numpy":
        yield np
        return
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax.numpy


def test_values_at_a_key(xp):
    found = with_at(xp.zeros((2, 3)), (0, slice(1, 3)), xp.asarray([1.0, 2.0]))
    np.testing.assert_array_equal(found, [[0, 1, 2], [0, 0, 0]])


def test_values_added_at_a_cut(xp):
    found = plus(xp.ones((2, 3)), (slice(None), 1), xp.asarray([1.0, 2.0]))
    np.testing.assert_array_equal(found, [[1, 2, 1], [1, 3, 1]])


@pytest.mark.parametrize(
    "add", [lambda *a: plus_at(a[0], KEY, a[1]), lambda *a: plus_along(a[0], 1, KEY[1], a[1])]
)
def test_what_is_named_twice_is_added_twice_to_a_copy(xp, add):
    x = xp.ones((2, 3))
    np.testing.assert_array_equal(add(x, xp.asarray(VALUES)), [[3, 1, 2], [9, 1, 5]])
    np.testing.assert_array_equal(x, np.ones((2, 3)))


def test_an_index_out_of_bounds_is_an_error():
    for index in (3, -4):
        with pytest.raises(IndexError, match="out of bounds for length 3"):
            plus_along(np.ones(3), 0, np.array([index]), np.ones(1))
