"""Values under JAX are NumPy's, where JAX's own functions give others."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("jax")

NUMBERS = np.array([7, -7, 5, -3, 0, 1, 100, -128], "int64")


def both(fn, *arrays):
    """What fn gives on NumPy and on JAX."""
    with gg.Graph():
        ts = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        y = fn(*ts)
        return [gg.compile(ts, y, backend=b, optimize=False)(*arrays) for b in ("numpy", "jax")]


def agree(fn, *arrays, rtol=0.0):
    want, found = both(fn, *arrays)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=rtol)


def test_digamma_and_its_derivatives_at_negative_numbers():
    x = np.array([-8.315684908389088, -7.582430495695129, -0.3, 0.2, 1.0, 40.0])
    agree(gg.special.digamma, x, rtol=1e-12)
    agree(lambda t: gg.gradients(gg.special.digamma(t), t), x, rtol=1e-12)
    agree(lambda t: gg.gradients(gg.gradients(gg.special.digamma(t), t), t), x, rtol=1e-12)
    agree(lambda t: gg.special.polygamma(2, t), x.astype("float32"), rtol=1e-5)


@pytest.mark.parametrize("fn", [gg.floor_divide, gg.remainder, gg.fmod])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float64"])
def test_division_by_zero(fn, dtype):
    x = (
        np.abs(NUMBERS).astype(dtype)
        if dtype[0] == "u"
        else np.maximum(NUMBERS, -127).astype(dtype)
    )
    divisors = np.array([[0], [1], [3]], dtype)
    with np.errstate(all="ignore"):
        agree(fn, np.stack([x] * 3), np.broadcast_to(divisors, (3, *x.shape)))
        agree(fn, x, np.array(0, dtype))


@pytest.mark.parametrize("fn", [gg.all, gg.any])
def test_truth_of_complex_numbers_and_of_nan(fn):
    for row in ([1j, 1 + 1j], [0j, 1j], [0j, 0j], [complex(0, np.nan), 0j]):
        agree(fn, np.array(row))
    agree(fn, np.array([[1.0, np.nan], [0.0, -0.0]]))
    agree(lambda t: fn(t, axis=0, keepdims=True), np.array([[1, 0], [0, 0]]))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_powers_of_unsigned_integers_are_modulo_their_range(dtype):
    most = np.iinfo(dtype).max
    exponents = np.array([0, 1, 2, 7, 8, 31, 255, most, most - 1], dtype)
    x = np.array([[0], [1], [2], [3], [5], [255]], dtype)
    agree(gg.power, x, np.broadcast_to(exponents, (6, 9)))
    agree(gg.power, x[:, 0], np.array(most - 1, dtype))
