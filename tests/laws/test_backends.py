"""Laws over the registry: every backend computes the same, and the checking backend agrees."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.tree import flatten
from graphgrad.ir.build import build
from graphgrad.laws import backends
from graphgrad.laws.trying import close, of_type

from ..each import by_law, each, every, grouped, judge
from .cases import CASES, first_and_more

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_LLVM = importlib.util.find_spec("llvmlite") is not None
ULPS = 4  # in the last place, by which compiled functions may be off
SUMS = ("ReduceSum", "ReduceMean", "SumToShape", "SumTo", "AddN")
FIRST, MORE = first_and_more(CASES)
FIRST_ON_JAX, MORE_ON_JAX = first_and_more(CASES, few=1)  # XLA takes its time to compile each
PRODUCTS = ("MatMul", "Einsum", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


def like_numpy(op, arrays):
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


LAWS = {
    "the checking backend finds nothing": backends.checked,
    **({"compiled code agrees with NumPy": like_numpy} if HAS_LLVM else {}),
}


@each(by_law(LAWS, FIRST))
def test_the_backends_that_are_always_there_agree(law, op, arrays):
    law(op, arrays)


@pytest.mark.slow
@each(by_law(LAWS, MORE)[::3])
def test_so_they_do_on_more_samples(law, op, arrays):
    law(op, arrays)


def on_jax(cases):
    """A test for each op type, which gets its samples."""
    groups = grouped(cases if HAS_JAX else [])
    return pytest.mark.parametrize("cases", every(1, groups.values()), ids=groups)


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jax")
@on_jax(FIRST_ON_JAX)
def test_jax_agrees_with_numpy(cases):
    same_on_jax(cases)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jax")
@on_jax(MORE_ON_JAX)
def test_jax_agrees_with_numpy_on_more_samples(cases):
    same_on_jax(cases)


def same_on_jax(cases):
    """The samples of an op type in one program, for XLA takes its time for each."""
    with gg.Graph():
        xs = [[gg.placeholder(a.shape, a.dtype) for a in arrays] for _, (_, arrays) in cases]
        ys = [list(build(op, tuple(x)).outputs) for x, (_, (op, _)) in zip(xs, cases, strict=True)]
    feeds = [a for _, (_, arrays) in cases for a in arrays]
    found, want = (gg.compile(flatten(xs), ys, backend=b)(*feeds) for b in ("jax", "numpy"))
    outputs = zip(cases, found, want, strict=True)
    judge([(name, pair) for (name, _), *pair in outputs], _same)


def _same(found, want):
    for got, expected in zip(found, want, strict=True):
        of_type(got, expected, "what jax gives")
        close(np.asarray(got), expected)
