"""Fourier transforms: NumPy's values, and gradients that are plain transposes."""

import importlib.util
import warnings

import numpy as np
import pytest

import graphgrad as gg

BACKENDS = ["numpy"]
BACKENDS += ["llvm"] if importlib.util.find_spec("llvmlite") else []
BACKENDS += ["jax"] if importlib.util.find_spec("jax") else []
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
TWO = ("fft2", "ifft2", "rfft2", "irfft2")
NORMS = ("backward", "ortho", "forward")


def of_real(name):
    return name in ("rfft", "rfftn", "rfft2", "ihfft")


def run(fn, *arrays, backend="numpy", shape=None):
    with gg.Graph():
        xs = [gg.placeholder(a.shape if shape is None else shape, a.dtype) for a in arrays]
        return gg.compile(xs, fn(*xs), backend=backend)(*arrays)


def close(found, wanted, rtol=1e-12):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    scale = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * scale)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis_it_is_numpys(name, norm, backend):
    x = REAL if of_real(name) else COMPLEX
    for axis, n in ((-1, None), (0, 2), (1, 7), (2, 4)):
        asked = {"n": n, "axis": axis, "norm": norm}
        found = run(lambda x: getattr(gg.fft, name)(x, **asked), x, backend=backend)  # noqa: B023
        close(found, getattr(np.fft, name)(x, **asked))


@pytest.mark.parametrize("name", [*SEVERAL, *TWO])
def test_over_several_axes_it_is_numpys(name):
    x = REAL if of_real(name) else COMPLEX
    for s, axes in ((None, (1, 2)), ((2, 6), (-1, 0)), ((3, -1), (0, 2))):
        asked = {"s": s, "axes": axes, "norm": "ortho"}
        found = run(lambda x: getattr(gg.fft, name)(x, **asked), x)  # noqa: B023
        close(found, getattr(np.fft, name)(x, **asked))
    close(run(getattr(gg.fft, name), x), getattr(np.fft, name)(x))


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64"])
def test_real_numbers_become_what_holds_them(name, dtype):
    x = (REAL > 0).astype(dtype)
    wide = x.astype("float32" if dtype == "float32" else "float64")
    close(run(getattr(gg.fft, name), x), getattr(np.fft, name)(wide), 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n", [None, 3, 8])
def test_unknown_lengths(name, n, backend):
    x = REAL if of_real(name) else COMPLEX
    found = run(lambda x: getattr(gg.fft, name)(x, n=n), x, shape=(None,) * 3, backend=backend)
    close(found, getattr(np.fft, name)(x, n=n))


@pytest.mark.parametrize("name", ONE)
def test_a_batch_is_one_transform(name):
    x = REAL if of_real(name) else COMPLEX
    with warnings.catch_warnings():
        warnings.simplefilter("error", gg.PerformanceWarning)
        found = run(gg.vmap(lambda x: getattr(gg.fft, name)(x, axis=0)), x)
    close(found, getattr(np.fft, name)(x, axis=1))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("norm", NORMS)
def test_transforms_of_real_numbers_and_their_adjoints_are_transposes(n, norm):
    """<dy, A x> = <A^T dy, x>, the real part of both, without a conjugate."""
    types = gg.op_types()
    m = n // 2 + 1
    x, y = RNG.normal(size=n), RNG.normal(size=m) + 1j * RNG.normal(size=m)
    pairs = [
        (types["Rfft"](0, norm), types["RfftAdjoint"](0, norm, n), x, y),
        (types["Irfft"](0, norm, n), types["IrfftAdjoint"](0, norm, n), y, x),
    ]
    for op, adjoint, a, b in pairs:
        one = np.sum(b * op.kernel(np, a)).real
        other = np.sum(adjoint.kernel(np, b) * a).real
        np.testing.assert_allclose(one, other, rtol=1e-12)


def power(x):
    """The energy of a filtered signal: of a real tensor through rfft and irfft."""
    y = gg.fft.rfft(x)
    return gg.sum(gg.real(y) ** 3 + gg.imag(y) ** 2 * gg.real(y))


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("shape", [None, (None,)], ids=["known", "unknown"])
def test_gradients_through_rfft_are_differences(n, shape):
    x, v = RNG.normal(size=n), RNG.normal(size=n)
    dx = run(lambda x: gg.gradients([power(x)], [x])[0], x, shape=shape)
    plus, minus = (run(power, x + s * 1e-6 * v) for s in (1, -1))
    np.testing.assert_allclose(np.dot(dx, v), (plus - minus) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("n", [None, 3, 6])
def test_a_filter_is_differentiated_through_both_ways(n):
    """irfft(rfft(x) * h): gradients to x, to second order."""
    x, v, h = RNG.normal(size=5), RNG.normal(size=5), RNG.normal(size=3)

    def loss(x):
        return gg.sum(gg.fft.irfft(gg.fft.rfft(x) * h, n=n) ** 3)

    def first(x):
        return gg.gradients([loss(x)], [x])[0]

    def second(x):
        return gg.gradients([gg.sum(first(x) * v)], [x])[0]

    for f, g in ((loss, first), (lambda x: gg.sum(first(x) * v), second)):
        plus, minus = (run(f, x + s * 1e-6 * v) for s in (1, -1))
        np.testing.assert_allclose(np.dot(run(g, x), v), (plus - minus) / 2e-6, rtol=1e-5)


def test_gradients_are_those_of_jax():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        for name in ("fft", "ifft", "rfft", "ihfft"):

            def loss(x, fft=jax.numpy.fft, np=jax.numpy, name=name):
                y = getattr(fft, name)(x, n=6)
                return np.sum(np.real(y) ** 3 + np.imag(y) ** 2)

            def ours(x, loss=loss):
                return gg.gradients([loss(x, gg.fft, gg)], [x])[0]

            close(run(ours, REAL[0, 0]), np.asarray(jax.grad(loss)(REAL[0, 0])))


def test_frequencies_and_shifts_are_numpys():
    for n in (1, 4, 5):
        np.testing.assert_array_equal(gg.evaluate(gg.fft.fftfreq(n, d=0.1)), np.fft.fftfreq(n, 0.1))
        found = gg.evaluate(gg.fft.rfftfreq(n, dtype="float32"))
        np.testing.assert_array_equal(found, np.fft.rfftfreq(n).astype("float32"))
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 1, (0, -1)):
            found = run(lambda x: getattr(gg.fft, name)(x, axes=axes), REAL)  # noqa: B023
            np.testing.assert_array_equal(found, getattr(np.fft, name)(REAL, axes))
    x = gg.placeholder(("N",), name="x")
    found = gg.evaluate(gg.fft.fftshift(x), {x: np.arange(5.0)})
    np.testing.assert_array_equal(found, np.fft.fftshift(np.arange(5.0)))
    with pytest.raises(gg.ShapeError):
        gg.fft.fftshift(x[x > 0.0])


def test_what_cannot_be_transformed_is_said():
    x = gg.placeholder((3,))
    for fn, error, words in [
        (lambda: gg.fft.fft(x, axis=1), gg.ShapeError, "axis"),
        (lambda: gg.fft.fft(x, norm="both"), gg.ShapeError, "norm is one of"),
        (lambda: gg.fft.fft(x, n=0), gg.ShapeError, "at least one number"),
        (lambda: gg.fft.fft(x, n=2.5), TypeError, "n is an int"),
        (lambda: gg.fft.fft(gg.zeros((0,))), gg.ShapeError, "Fourier transform along"),
        (lambda: gg.fft.rfft(gg.zeros(3, dtype="complex64")), gg.DTypeError, "real numbers"),
        (lambda: gg.fft.irfft(gg.zeros(1)), gg.ShapeError, "give n"),
        (lambda: gg.fft.fftn(x, s=(1, 2)), gg.ShapeError, "axis"),
        (lambda: gg.fft.fftfreq(3, dtype="int32"), gg.DTypeError, "floating"),
        (lambda: gg.fft.fftfreq(3, device="gpu"), gg.DeviceError, "no device"),
    ]:
        with pytest.raises(error, match=words):
            fn()
