"""Rests of divisions of floats are NumPy's, bit for bit."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

N = 20_000


def pairs(dtype, rng):
    """Dividends and divisors: any bits, numbers of one size, multiples and their neighbours."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")

    def any_bits():
        return rng.integers(0, np.iinfo(unsigned).max, N, unsigned, endpoint=True).view(dtype)

    info = np.finfo(dtype)
    special = np.array(
        [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5, 3, info.tiny / 4, info.max, 2.0**info.nmant],
        dtype,
    )
    whole, part = rng.integers(1, 1 << 20, N).astype(dtype), rng.random(N).astype(dtype)
    size = rng.normal(size=N).astype(dtype)
    yield any_bits(), any_bits()
    yield 10 * size, part - dtype(0.5)
    yield np.rint(100 * size), np.rint(10 * part) - 5
    yield whole * part, part
    yield np.nextafter(whole * part, dtype(0)), -part
    yield np.repeat(special, special.size), np.tile(special, special.size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["remainder", "floor_divide", "fmod"])
def test_it_is_numpys(dtype, name):
    rng = np.random.default_rng(0)
    for a, b in pairs(dtype, rng):
        with gg.Graph():
            x, y = gg.placeholder(a.shape, dtype), gg.placeholder(b.shape, dtype)
            f = gg.compile([x, y], getattr(gg, name)(x, y), backend="llvm")
        assert "run by NumPy" not in str(f.explain())
        with np.errstate(all="ignore"):
            right = getattr(np, name)(a, b)
        found = f(a, b)
        np.testing.assert_array_equal(found, right)
        numbers = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(right)[numbers])
