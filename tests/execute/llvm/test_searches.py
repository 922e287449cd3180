"""Searches in LLVM code give NumPy's places: every length, NaN and ties, on any threads."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.emit.call import possible
from graphgrad.execute.llvm.kernels import searches
from graphgrad.execute.llvm.kernels.searches import search_writer


@pytest.fixture(autouse=True)
def _possible():
    if not possible():
        pytest.skip("compiled functions take no arrays here")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", searches.DTYPES)
def test_places_are_numpys(dtype, side, monkeypatch):
    monkeypatch.setattr(searches, "SHARED", 10)
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 7, 8, 40, 1000):
        x = np.sort(rng.integers(-5, 6, length).astype(dtype))
        v = rng.integers(-7, 8, (3, 7)).astype(dtype)
        if x.dtype.kind == "f":
            x[length - length // 3 :] = np.nan
            v[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
        with gg.Graph():
            places = gg.searchsorted(
                gg.placeholder(x.shape, dtype), gg.placeholder(v.shape, dtype), side
            )
        for threads in (1, 3):
            write, out = search_writer(places.node, threads), np.full(v.shape, -1)
            write(x[::-1].copy()[::-1], np.asfortranarray(v), out)
            np.testing.assert_array_equal(out, np.searchsorted(x, v, side))


def test_what_is_left_to_numpy():
    def written(*types):
        with gg.Graph():
            return search_writer(gg.searchsorted(*[gg.placeholder(*t) for t in types]).node, 1)

    assert written(((3,), "float64"), ((2,), "float64")) is not None
    assert written(((0,), "float64"), ((2,), "float64")) is None
    assert written(((3,), "uint64"), ((2,), "uint64")) is None
