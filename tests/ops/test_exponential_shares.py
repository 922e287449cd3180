"""Gradients of logaddexp, logsumexp and softmax are shares of exponentials, whatever their size."""

import numpy as np
import pytest
from scipy import special as scipy_special

import graphgrad as gg

LARGE = [("float64", 1e16), ("float64", -1e16), ("float32", 1e5), ("float32", -3e7)]
INF = float("inf")


def pair(x, y):
    return gg.logaddexp(x, y)


def over_a_stack(x, y):
    return gg.special.logsumexp(gg.stack([x, y]))


def run(fn, x, y, backend, order=1, **options):
    """The first derivatives of fn, or the second ones."""
    x, y = np.asarray(x), np.asarray(y)
    with gg.Graph():
        ts = [gg.placeholder(a.shape, a.dtype) for a in (x, y)]
        found = gg.gradients(fn(*ts), ts)
        if order == 2:
            found = [gg.gradients(d, ts, unconnected="zero") for d in found]
        return gg.compile(ts, found, backend=backend, **options)(x, y)


@pytest.mark.parametrize("fn", [pair, over_a_stack])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("dtype", "value"), LARGE)
@pytest.mark.parametrize("fast", [False, True])
def test_a_tie_of_large_numbers_is_shared(fn, backend, dtype, value, fast):
    x = np.array(value, dtype)
    assert run(fn, x, x, backend, fast_math=fast) == [0.5, 0.5]
    assert run(fn, x, x, backend, 2, fast_math=fast) == [[0.25, -0.25], [-0.25, 0.25]]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_with_fast_math_a_tie_is_shared_where_it_is_written_out(backend):
    with gg.Graph():
        t = gg.placeholder((3, 2))
        dx = gg.gradients(gg.sum(gg.log(gg.sum(gg.exp(t), axis=1))), t)
        found = gg.compile([t], dx, backend=backend, fast_math=True)(np.full((3, 2), 1e16))
    np.testing.assert_array_equal(found, np.full((3, 2), 0.5))


@pytest.mark.parametrize("fn", [pair, over_a_stack])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_shares_are_those_of_the_difference(fn, backend):
    for base in (0.0, 1e6, -1e10):
        for gap in (-30.0, -1.0, 0.5, 3.0, 800.0):
            dx, dy = run(fn, base + gap, base, backend)
            np.testing.assert_allclose(dx, scipy_special.expit(gap), rtol=1e-12)
            np.testing.assert_allclose(dy, scipy_special.expit(-gap), rtol=1e-12)
            (dxx, dxy), _ = run(fn, base + gap, base, backend, 2)
            want = scipy_special.expit(gap) * scipy_special.expit(-gap)
            np.testing.assert_allclose([dxx, -dxy], want, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_infinite_operands_of_logaddexp(backend):
    assert run(pair, INF, 1.0, backend) == [1, 0]
    assert run(pair, -INF, 1.0, backend) == [0, 1]
    for equal in (INF, -INF):
        assert run(pair, equal, equal, backend) == [0.5, 0.5]
    assert np.isnan(run(pair, np.nan, 1.0, backend)).all()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("order", [1, 2])
def test_rows_of_minus_infinity_have_gradients_of_zero(backend, order):
    x = np.array([[-INF, -INF, -INF], [-INF, 2.0, 2.0]])
    with gg.Graph():
        t = gg.placeholder(x.shape)
        dx = gg.gradients(gg.sum(gg.special.logsumexp(t, axis=1)), t)
        if order == 2:
            dx = gg.gradients(gg.sum(dx * np.arange(3.0)), t)
        found = gg.compile([t], dx, backend=backend)(x)
    want = [[0, 0, 0], [0, 0.5, 0.5]] if order == 1 else [[0, 0, 0], [0, -0.25, 0.25]]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("dtype", "value"), LARGE)
def test_softmax_and_its_losses_lose_nothing_for_large_numbers(backend, dtype, value):
    x = np.full((2, 2), value, dtype)
    with gg.Graph():
        t = gg.placeholder(x.shape, dtype)
        weights = gg.constant(np.array([1.0, 0.0], dtype))
        losses = [
            gg.nn.softmax(t) * weights,
            gg.nn.log_softmax(t) * weights,
            gg.nn.cross_entropy(t, np.array([0, 0])),
            gg.nn.cross_entropy(t, np.array([[1.0, 0.0]] * 2, dtype)),
        ]
        dxs = [gg.gradients(gg.sum(y), t) for y in losses]
        again = [gg.gradients(gg.sum(dx * weights), t) for dx in dxs]
        firsts, seconds = gg.compile([t], [dxs, again], backend=backend)(x)
    for found, row in zip(firsts, [[0.25, -0.25], [0.5, -0.5], *[[-0.5, 0.5]] * 2], strict=True):
        np.testing.assert_allclose(found, [row] * 2, rtol=1e-6, atol=1e-16)
    for found, row in zip(seconds, [[0, 0], [-0.25, 0.25], *[[0.25, -0.25]] * 2], strict=True):
        np.testing.assert_allclose(found, [row] * 2, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_masked_logits_have_gradients_of_zero(backend):
    x = np.array([[1.0, -INF, 2.0]])
    with gg.Graph():
        t = gg.placeholder(x.shape)
        for y in (
            gg.nn.softmax(t)[:, 0],
            gg.nn.log_softmax(t)[:, 0],
            gg.nn.cross_entropy(t, np.array([0])),
            gg.special.logsumexp(t, axis=1),
        ):
            dx = gg.gradients(gg.sum(y), t)
            found = gg.compile([t], dx, backend=backend)(x)
            assert np.isfinite(found).all()
            assert found[0, 1] == 0
