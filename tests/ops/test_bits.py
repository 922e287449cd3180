"""Bytes of bits, and windows, as NumPy has them."""

import numpy as np
import pytest

import graphgrad as gg

BYTES = np.random.default_rng(0).integers(0, 256, size=(3, 5), dtype="uint8")


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_bits_are_packed_and_unpacked(axis, order, backend):
    with gg.Graph():
        x = gg.placeholder(BYTES.shape, "uint8")
        ys = [
            gg.packbits(x & 1, axis, order),
            *(gg.unpackbits(x, axis, n, order) for n in (None, 5, 200, -3)),
        ]
        found = gg.compile(x, ys, backend=backend)(BYTES)
    wanted = [
        np.packbits(BYTES & 1, axis, order),
        *(np.unpackbits(BYTES, axis, n, order) for n in (None, 5, 200, -3)),
    ]
    for f, w in zip(found, wanted, strict=True):
        assert f.dtype == w.dtype
        np.testing.assert_array_equal(f, w)


def test_what_has_no_bits_is_an_error():
    for wrong in (lambda: gg.packbits([1.0]), lambda: gg.unpackbits([1])):
        with pytest.raises(gg.DTypeError):
            wrong()
    with gg.Graph(), pytest.raises(gg.ShapeError, match="does not depend on values"):
        gg.packbits(gg.nonzero(gg.placeholder((3,)))[0])
    with pytest.raises(ValueError, match="bitorder"):
        gg.packbits([1], bitorder="middle")


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("points", [-1, 0, 1, 2, 7])
def test_windows(name, points):
    wanted = getattr(np, name)(points)
    np.testing.assert_array_equal(gg.evaluate(getattr(gg, name)(points)), wanted)
    with pytest.raises(TypeError):
        getattr(gg, name)(2.5)


@pytest.mark.parametrize("points", [0, 1, 6])
def test_the_window_of_kaiser_has_a_gradient_for_its_fall(points):
    with gg.Graph():
        beta = gg.placeholder(())
        w = gg.kaiser(points, beta)
        run = gg.compile(beta, [w, gg.gradients(w, beta)], backend="numpy")
    found, slope = run(2.0)
    np.testing.assert_allclose(found, np.kaiser(points, 2.0))
    np.testing.assert_array_equal(gg.evaluate(gg.kaiser(points, 2.0)), np.kaiser(points, 2.0))
    by_difference = (np.kaiser(points, 2 + 1e-6) - np.kaiser(points, 2 - 1e-6)).sum() / 2e-6
    np.testing.assert_allclose(slope, by_difference, atol=1e-8)
