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


def test_nested_lists_of_tensors_are_stacked_by_asarray():
    with gg.Graph():
        a, b = gg.placeholder((), "int8"), gg.placeholder((2,))
        made = (
            gg.asarray([[a, 2], [3.5, a]], dtype="float32"),
            gg.asarray(((b, b * 2),)),
            gg.asarray([a]),
        )
        assert [(t.shape, t.dtype) for t in made[1:]] == [((1, 2, 2), "float64"), ((1,), "int8")]
        found = gg.evaluate([*made, *gg.gradients([made[1]], [b])], {a: np.int8(7), b: np.ones(2)})
        with pytest.raises(gg.ShapeError, match="joined"):
            gg.asarray([a, b])
        with pytest.raises(gg.DTypeError):
            gg.asarray([a, "one"])
    for got, want in zip(found, ([[7, 2], [3.5, 7]], [[[1, 1], [2, 2]]], [7], [3, 3]), strict=True):
        np.testing.assert_array_equal(got, want)
