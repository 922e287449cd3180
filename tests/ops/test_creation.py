"""Tensors of given numbers: what is refused rather than changed."""

import numpy as np
import pytest

import graphgrad as gg


@pytest.mark.parametrize("value", [[1j], 1j, np.complex64(1j), np.array([1.0 + 0j])])
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
def test_an_imaginary_part_is_not_dropped(value, dtype):
    with pytest.raises(gg.DTypeError, match="drop the imaginary part"):
        gg.constant(value, dtype)
    if not np.ndim(value):
        with pytest.raises(gg.DTypeError, match="drop the imaginary part"):
            gg.full(2, value, dtype=dtype)
        with pytest.raises(gg.DTypeError, match="drop the imaginary part"):
            gg.full_like(gg.zeros(2), value, dtype=dtype)
    assert gg.constant(value, "complex64").dtype == "complex64"


@pytest.mark.parametrize(("value", "dtype"), [(300, "int8"), (-1, "uint8"), (2**70, "int64")])
def test_a_python_integer_that_does_not_fit_overflows(value, dtype):
    with pytest.raises(gg.DTypeError, match="does not fit"):
        gg.constant(value, dtype)
    with pytest.raises(gg.DTypeError, match="does not fit"):
        gg.full(2, value, dtype=dtype)
    with pytest.raises(gg.DTypeError, match="does not fit"):
        gg.full_like(gg.placeholder(("N",)), value, dtype=dtype)
