"""Laws over the registry: what is promised is what is executed, and nobody's arrays change."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import OP_TYPES

from ..each import each
from .cases import CASES, placed

WITHOUT_SAMPLES = {
    "Placeholder",
    "Constant",
    "Variable",
    "Assign",
    "Residual",
    "Default",
    "Own",
    "Fused",
    "RuleOutput",
    "UndefinedGradient",
    "Cond",
    "Scan",
    "While",
    "RandomKey",
    "PyFunction",
    "PerExample",
    *("MaskPlaces", "Nonzero", "RepeatedPlaces"),  # as long as values say: tests/ops/test_nonzero
    *("RandomLogGamma", "LogGammaSlope"),  # tests/ops/test_random
}


def test_every_op_has_samples():
    sampled = {name.rpartition("-")[0] for name, _, _ in CASES}
    ours = {n for n, c in OP_TYPES.items() if c.__module__.startswith("graphgrad.")}
    assert ours - sampled == WITHOUT_SAMPLES


@each(CASES)
def test_the_executed_type_is_the_promised_type(op, arrays):
    xs, node = placed(op, arrays)
    before = [a.copy() for a in arrays]
    for optimize in (True, False):
        found = gg.compile(xs, list(node.outputs), optimize=optimize)(*arrays)
        for value, t in zip(found, node.outputs, strict=True):
            assert isinstance(value, np.ndarray)
            assert (value.shape, value.dtype) == (t.shape, t.dtype)
            assert not any(np.shares_memory(value, a) for a in arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


@each(CASES)
def test_layouts_do_not_matter(op, arrays):
    """The same values with other strides: Fortran order, a reversed view, a read-only array."""
    xs, node = placed(op, arrays)
    f = gg.compile(xs, list(node.outputs))
    expected = f(*arrays)
    for change in (_fortran, _reversed_twice, _read_only):
        for got, want in zip(f(*[change(a) for a in arrays]), expected, strict=True):
            close(got, want)


def close(got, want):
    """Equal but for the order of additions."""
    tolerance = 2e-5 if got.dtype in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def _fortran(a):
    return np.array(a, order="F")


def _reversed_twice(a):
    every = (slice(None, None, -1),) * a.ndim
    return np.array(a[every], order="C")[every]


def _read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@each(CASES)
def test_unknown_lengths_give_the_same_values(op, arrays):
    """Inferred with unknown lengths, the op promises what is compatible and computes the same."""
    expected = gg.compile(*_as_lists(placed(op, arrays)))(*arrays)
    with gg.Graph():
        xs = [gg.placeholder((None,) * a.ndim, a.dtype) for a in arrays]
        try:
            node = gg.ir.build.build(op, tuple(xs))
        except gg.ShapeError:
            pytest.skip("the op says that it needs known lengths")
        found = gg.compile(xs, list(node.outputs))(*arrays)
    for value, want, t in zip(found, expected, node.outputs, strict=True):
        assert len(t.shape) == value.ndim
        assert all(d is None or d == n for d, n in zip(t.shape, value.shape, strict=True))
        close(value, want)


def _as_lists(pair):
    xs, node = pair
    return xs, list(node.outputs)
