"""Compiled functions as built-in ones: what they hold outlives what the garbage collector takes."""

import gc

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.emit.call import possible
from graphgrad.execute.llvm.kernels import library
from graphgrad.ir.types import DType

pytestmark = pytest.mark.skipif(not possible(), reason="not CPython with its lock")


def test_a_function_stands_when_its_self_has_been_taken_apart():
    """As the garbage collector does where both are garbage: its `self` first, then the function."""
    function = library.matmul(DType("float32"), False, False)
    whole = type(function)
    fresh = library.built_in(function.__self__.loaded, function.__name__)
    assert type(fresh) is whole
    vars(fresh.__self__).clear()
    gc.collect()
    litter = [np.zeros(n, np.uint64) + n for n in range(1, 200)]
    assert fresh.__name__ == function.__name__
    del fresh, litter


def test_functions_in_cycles_are_freed():
    """Many at once, with what holds them among the garbage."""
    function = library.matmul(DType("float32"), False, False)
    for _ in range(200):
        ring: list[object] = [library.built_in(function.__self__.loaded, function.__name__)]
        ring.append(ring)
        ring[0].__self__.otherwise = ring
        del ring
    gc.collect()
    a = np.ones((3, 3), np.float32)
    out = np.empty_like(a)
    function(a, a, out)
    np.testing.assert_array_equal(out, a @ a)
