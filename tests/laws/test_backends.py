"""Laws over the registry: every backend computes the same, and the checking backend agrees."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.numpy_backend import NumpyBackend

from .cases import CASES, IDS, placed
from .test_types import close

HAS_JAX = importlib.util.find_spec("jax") is not None


@pytest.mark.parametrize(("_name", "op", "arrays"), CASES, ids=IDS)
def test_the_checking_backend_finds_nothing(_name, op, arrays):
    """Promise, declared views, and no writing to inputs, checked after every step."""
    xs, node = placed(op, arrays)
    expected = gg.compile(xs, list(node.outputs))(*arrays)
    found = gg.compile(xs, list(node.outputs), backend=NumpyBackend(check=True))(*arrays)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jax")
@pytest.mark.parametrize(("_name", "op", "arrays"), CASES, ids=IDS)
def test_jax_agrees_with_numpy(_name, op, arrays):
    xs, node = placed(op, arrays)
    expected = gg.compile(xs, list(node.outputs))(*arrays)
    found = gg.compile(xs, list(node.outputs), backend="jax")(*arrays)
    for got, want in zip(found, expected, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        close(np.asarray(got), want)
