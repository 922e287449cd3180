"""Adding at indices by compiled code: the very sums of NumPy, whatever the key."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.kernels import scatters

from .test_gathers import compiled


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("dtype", scatters.DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("last", [1, 3, 70])
def test_scatter_add_sums_in_numpys_order(dtype, axis, last, rng):
    x = (9 * rng.normal(size=(4, 5, last))).astype(dtype)
    i = rng.integers(-x.shape[axis], x.shape[axis], (6, 7))
    shape = (*x.shape[:axis], 6, 7, *x.shape[axis + 1 :])
    u = (9 * rng.normal(size=shape)).astype(dtype)
    _, found = compiled(lambda x, i, u: gg.scatter_add(x, i, u, axis=axis), x, i, u)
    wanted = x.copy()
    np.add.at(wanted, (*[slice(None)] * axis, i), u)
    np.testing.assert_array_equal(found, wanted)


KEYS = {
    "two": lambda i, j: (i, j),
    "the last": lambda i, j: (..., j),
    "apart": lambda i, j: (slice(1, None), i, j),
    "an integer": lambda i, j: (2, j),
    "a step": lambda i, j: (i, j, slice(None, None, 2)),
    "backwards": lambda i, j: (i, slice(None, None, -1), j),
    "a new axis": lambda i, j: (i, j, None),
}


@pytest.mark.parametrize("key", KEYS)
def test_any_key(key, rng):
    x = rng.normal(size=(4, 5, 6))
    i, j = np.array([3, 0, -1, 3]), np.array([[1], [-5]])
    of = KEYS[key]
    u = rng.normal(size=x[of(i, j)].shape)
    _, found = compiled(lambda x, i, j, u: gg.add_at(x, of(i, j), u), x, i, j, u)
    wanted = x.copy()
    np.add.at(wanted, of(i, j), u)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1])
def test_each_column_on_its_own(axis, rng):
    x = rng.normal(size=(5, 30)).astype("float32")
    shape = (9, 30) if axis == 0 else (5, 9)
    i = rng.integers(-5, 5, shape)

    def fn(x, i):
        y = gg.sum(gg.take_along_axis(x, i, axis=axis) ** 3)
        return gg.gradients(y, [x])[0]

    _, found = compiled(fn, x, i)
    wanted, columns = np.zeros_like(x), [*np.indices(shape)]
    columns[axis] = i
    np.add.at(wanted, tuple(columns), 3 * np.take_along_axis(x, i, axis) ** 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 100, 64), (300, 50, 1), (3, 5, 7)])
def test_threads_change_nothing(shape, rng, monkeypatch):
    before, length, after = shape
    x = rng.normal(size=shape)
    i = rng.integers(0, length, 500)
    u = rng.normal(size=(before, 500, after))
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in (x, i, u)]
        y = gg.scatter_add(*xs, axis=1)
    monkeypatch.setattr(scatters, "SHARED", 1)
    found = [gg.compile(xs, y, backend="llvm", num_threads=n)(x, i, u) for n in (1, 2, 3)]
    wanted = x.copy()
    np.add.at(wanted, (slice(None), i), u)
    for one in found:
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("wrong", [5, -6])
def test_an_index_out_of_range(wrong, rng):
    x, i, j = rng.normal(size=(5, 3)), np.array([0, 4, -5]), np.array([0, 1, 1])
    one, _ = compiled(lambda x, i: gg.scatter_add(x, i, np.ones((3, 3)), axis=0), x, i)
    two, _ = compiled(lambda x, i, j: gg.add_at(x, (i, j), np.ones(3)), x, i, j)
    each, _ = compiled(
        lambda x, i: gg.gradients(gg.sum(gg.take_along_axis(x, i[:, None], axis=0)), [x])[0],
        x[:, :1],
        i,
    )
    i[1] = wrong
    message = f"index {wrong} is out of bounds for axis 0 with size 5"
    for call in (lambda: one(x, i), lambda: two(x, i, j), lambda: each(x[:, :1], i)):
        with pytest.raises(IndexError, match=message) as error:
            call()
        assert "built at" in error.value.__notes__[0]


def test_what_is_left_to_numpy(rng):
    """Other dtypes, and kept axes that lie apart."""
    x, i = rng.integers(0, 9, (4, 5, 6)).astype("uint8"), np.array([1, 1, 3])
    y, key = rng.normal(size=(4, 5, 6)), (slice(1, 3), slice(1, 3), i)
    with gg.Graph():
        a, b = gg.placeholder(x.shape, x.dtype), gg.placeholder(y.shape, y.dtype)
        made = [gg.scatter_add(a, i, np.uint8(2), axis=2), gg.add_at(b, key, 1.0)]
        f = gg.compile([a, b], made, backend="llvm")
    assert "run by NumPy: AddAt, ScatterAdd" in str(f.explain())
    found = f(x, y)
    np.add.at(x, (..., i), np.uint8(2))
    np.add.at(y, key, 1.0)
    np.testing.assert_array_equal(found[0], x)
    np.testing.assert_array_equal(found[1], y)


def test_an_index_too_large_for_int64_is_out_of_range():
    i = np.array([2**64 - 1], "uint64")
    with gg.Graph():
        x, at = gg.placeholder((4,)), gg.placeholder((1,), "uint64")
        made = [gg.take(x, at, axis=0), gg.scatter_add(x, at, np.ones(1))]
        for y in made:
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 4"):
                gg.compile([x, at], y, backend="llvm")(np.ones(4), i)
