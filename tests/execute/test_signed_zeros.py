"""Signs of zeros are NumPy's, on every backend of NumPy's values and at every level."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

LENGTHS = [1, 2, 3, 4, 7, 8, 16, 33, 100]


def clipped(low, high):
    return lambda x, y: gg.clip(x, low, high)


ELEMENTWISE = {
    "relu": (lambda x, y: gg.nn.relu(x), lambda x, y: np.maximum(x, 0)),
    "elu": (
        lambda x, y: gg.nn.elu(x),
        lambda x, y: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    ),
    "leaky relu": (lambda x, y: gg.nn.leaky_relu(x), lambda x, y: np.where(x > 0, x, 0.01 * x)),
    "maximum": (lambda x, y: gg.maximum(x, y), np.maximum),
    "minimum": (lambda x, y: gg.minimum(x, y), np.minimum),
    "max with 0": (lambda x, y: gg.maximum(x, 0.0), lambda x, y: np.maximum(x, 0.0)),
    "max of 0": (lambda x, y: gg.maximum(0.0, x), lambda x, y: np.maximum(0.0, x)),
    "max with -0": (lambda x, y: gg.maximum(x, -0.0), lambda x, y: np.maximum(x, -0.0)),
    "min with 0": (lambda x, y: gg.minimum(x, 0.0), lambda x, y: np.minimum(x, 0.0)),
    "min of -0": (lambda x, y: gg.minimum(-0.0, x), lambda x, y: np.minimum(-0.0, x)),
    "clip from 0": (clipped(0.0, 1.0), lambda x, y: np.minimum(np.maximum(x, 0.0), 1.0)),
    "clip to -0": (clipped(-1.0, -0.0), lambda x, y: np.minimum(np.maximum(x, -1.0), -0.0)),
    "clip to 0": (clipped(-1.0, 0.0), lambda x, y: np.minimum(np.maximum(x, -1.0), 0.0)),
}


def same(found, want):
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))


def run(fn, *arrays, backend, optimize):
    with gg.Graph():
        ts = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        return gg.compile(ts, fn(*ts), backend=backend, optimize=optimize)(*arrays)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", every(2, ELEMENTWISE))
def test_element_by_element(name, dtype, optimize, backend):
    fn, reference = ELEMENTWISE[name]
    for n in LENGTHS:
        x = np.resize(np.array([-0.0, 0.0, 0.0, -0.0, 0.5, -0.5], dtype), n)
        y = np.resize(np.array([0.0, -0.0, 0.0, -0.0], dtype), n)
        same(run(fn, x, y, backend=backend, optimize=optimize), reference(x, y))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_of_equal_zeros_of_a_row_is_the_largest_and_the_least(dtype, optimize, backend):
    for n in (1, 2, 3, 4, 5, 7, 8, 16, 32):
        for bits in range(16):
            row = np.resize(np.array([-0.0 if bits >> i & 1 else 0.0 for i in range(4)], dtype), n)
            for fn, reference in ((gg.max, np.max), (gg.min, np.min)):
                found = run(fn, row, backend=backend, optimize=optimize)
                assert np.signbit(found) == np.signbit(row[-1])
                same(found, reference(row))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 4, 8, 16, 32])
def test_the_last_zero_among_others_is_the_largest_and_the_least(n, dtype, backend):
    rows = np.random.default_rng(n).choice(np.array([0.0, -0.0, -1.0], dtype), (40, n))
    rows[:, 0] = 0.0
    last = np.array([row[row == 0][-1] for row in rows])
    same(run(lambda x: gg.max(x, 1), rows, backend=backend, optimize=True), last)
    same(run(lambda x: gg.min(x, 1), -rows, backend=backend, optimize=True), -last)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_gradients_at_zeros_of_both_signs(backend):
    x = np.array([-0.0, 0.0])
    for fn, want in (
        (gg.nn.relu, [0, 0]),
        (gg.nn.elu, [1, 1]),
        (lambda t: gg.maximum(t, 0.0), [0.5, 0.5]),
        (gg.max, [0.5, 0.5]),
        (gg.min, [0.5, 0.5]),
    ):
        found = run(lambda t, fn=fn: gg.gradients(fn(t), t), x, backend=backend, optimize=True)
        np.testing.assert_array_equal(found, want)
