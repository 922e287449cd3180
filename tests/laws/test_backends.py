"""Laws over the registry: every backend computes the same, and the checking backend agrees."""

import importlib.util

import numpy as np
import pytest

from graphgrad.laws import backends

from ..each import each
from .cases import CASES

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_LLVM = importlib.util.find_spec("llvmlite") is not None
ULPS = 4  # in the last place, by which compiled functions may be off
SUMS = ("ReduceSum", "ReduceMean", "SumToShape", "SumTo", "AddN")
PRODUCTS = ("MatMul", "Einsum", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


@each(CASES)
def test_the_checking_backend_finds_nothing(op, arrays):
    backends.checked(op, arrays)


@pytest.mark.skipif(not HAS_LLVM, reason="llvmlite is not installed")
@each(CASES)
def test_llvm_agrees_with_numpy(op, arrays):
    """The same types, NaN, infinities and signs of zeros; floats within some units in the last
    place, sums and products within the rounding of their terms, and sums as exact as NumPy's.
    """
    for got, want in backends.on_both(op, arrays, "llvm"):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        numbers = np.isfinite(want)
        np.testing.assert_array_equal(got[~numbers], want[~numbers])
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
        off = np.abs(got - want)[numbers]
        assert (off <= ULPS * np.spacing(_size(op, arrays, want))[numbers]).all()
        if op.type in SUMS:
            exact = np.asarray(op.kernel(np, *[np.asarray(a, np.longdouble) for a in arrays]))
            a, b = (np.abs(exact - x)[numbers] for x in (got, want))
            assert (a <= np.maximum(b, 2 * np.spacing(_size(op, arrays, want))[numbers])).all()


def _size(op, arrays, want):
    """How large a result is; or what it is the sum of, all terms being positive."""
    if type(op).__name__ not in SUMS + PRODUCTS:
        return np.abs(want)
    return np.abs(np.asarray(op.kernel(np, *[np.abs(a) for a in arrays]), want.dtype))


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jax")
@each(CASES)
def test_jax_agrees_with_numpy(op, arrays):
    backends.agrees(op, arrays, "jax")
