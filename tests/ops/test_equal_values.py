"""Gradients through vectors of equal eigenvalues and singular values: never finite and wrong."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import linalg

INSTALLED = {"llvm": "llvmlite", "jax": "jax"}
BACKENDS = ["numpy", *[b for b, package in INSTALLED.items() if importlib.util.find_spec(package)]]
RNG = np.random.default_rng(5)
Q, P = (np.linalg.qr(RNG.normal(size=(4, 4)))[0] for _ in range(2))
W, E = RNG.normal(size=(2, 4, 4))
SYMMETRIC = E + E.T
EQUAL = {
    "the identity": np.eye(4),
    "zeros": np.zeros((4, 4)),
    "turned": (Q * [1, 1, 2, 3]) @ Q.T,
    "of less rank": (Q * [0, 0, 2, 3]) @ Q.T,
}


def of_eigh(x, f):
    w, v = linalg.eigh(x)
    return (v * f(w)) @ gg.transpose(v)


def of_eig(x, f):
    w, v = linalg.eig(x)
    return gg.real((v * f(w)) @ linalg.inv(v))


def of_svd(x, f):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return (u * f(s)) @ vh


def lost(found):
    """Whether no number is finite, in the lower triangle of a gradient."""
    read = found if found.ndim == 0 else found[np.tril_indices(len(found))]
    return not np.isfinite(read).any()


def derivatives(function, f=gg.exp, dtype="float64"):
    """The input, and what has a NaN where two values are equal: gradient, tangent, second order."""
    x = gg.placeholder((4, 4), dtype)
    y = gg.sum(gg.constant(W.astype(dtype)) * function(x, f))
    dx = gg.gradients(y, x)
    return x, [dx, gg.jvp(y, x, gg.ones((4, 4), dtype)), gg.gradients(gg.sum(dx * dx), x)]


SLOW = [pytest.param(b, marks=pytest.mark.ci) if b == "jax" else b for b in BACKENDS]


@pytest.mark.skipif("jax" not in BACKENDS, reason="JAX is not installed")
def test_jax_has_none_either():
    x, (dx, *_) = derivatives(of_eigh)
    f = gg.compile(x, dx, backend="jax")
    assert all(lost(f(a)) for a in EQUAL.values())


@pytest.mark.parametrize("backend", SLOW)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_equal_values_have_no_finite_derivative(backend, dtype):
    with gg.Graph():
        functions = (of_eigh, of_svd) if backend == "jax" else (of_eigh, of_svd, of_eig)
        for function in functions:
            x, made = derivatives(function, dtype=dtype)
            f = gg.compile(x, made, backend=backend)
            for name, a in EQUAL.items():
                with np.errstate(all="ignore"):
                    for found in f(a.astype(dtype)):
                        assert lost(found), (function, name, found)


@pytest.mark.parametrize("f", [lambda w: w, lambda w: w - 1, gg.sqrt, gg.exp])
def test_what_has_no_cotangent_there_is_not_taken_for_what_has_no_gradient(f):
    """w - 1 at the identity: no vector is read with a number but 0, and the gradient is W."""
    with gg.Graph():
        x = gg.placeholder((2, 2))
        y = gg.sum(gg.constant([[0.0, 1.0], [1.0, 0.0]]) * of_eigh(x, f))
        assert lost(gg.evaluate(gg.gradients(y, x), {x: np.eye(2)}))


def test_values_alone_have_their_gradient_there():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        w, s = linalg.eigh(x)[0], linalg.svd(x, full_matrices=False)[1]
        ys = [gg.sum(w**2), gg.sum(s**2), gg.sum(linalg.eigvalsh(x)), linalg.norm(x, "nuc")]
        found = gg.compile(x, [gg.gradients(y, x) for y in ys])(2 * np.eye(4))
    for got, want in zip(found, (4, 4, 1, 1), strict=True):
        np.testing.assert_allclose(got, want * np.eye(4), atol=1e-12)


def difference(f, a, along, step=1e-6):
    return (f(a + step * along) - f(a - step * along)) / (2 * step)


def test_values_that_differ_have_the_gradient_of_differences():
    a = (Q * [1, 1.001, 2, 3]) @ Q.T
    with gg.Graph():
        for function in (of_eigh, of_svd, of_eig):
            x = gg.placeholder((4, 4))
            y = gg.sum(gg.constant(W) * function(x, gg.exp))
            f, df = gg.compile(x, y), gg.compile(x, gg.gradients(y, x))
            np.testing.assert_allclose(
                np.sum(df(a) * SYMMETRIC), difference(f, a, SYMMETRIC), rtol=1e-6
            )


def test_vectors_that_nobody_reads_may_have_values_that_only_rounding_tells_apart():
    """The largest two of a matrix of rank 2: those of the null space are arbitrary."""
    a = (Q * [0, 0, 2, 3]) @ Q.T
    low = (Q * [0, 1e-17, 2, 3]) @ P
    assert 0 < np.diff(np.linalg.eigvalsh(a))[0] < 1e-14
    with gg.Graph():
        x = gg.placeholder((4, 4))
        u, _, vh = linalg.svd(x, full_matrices=False)
        top, left = linalg.eigh(x)[1][:, 2:], u[:, :2] @ vh[:2]
        ys = [gg.sum(gg.constant(W) * (top @ gg.transpose(top))), gg.sum(gg.constant(W) * left)]
        for y, at, along in zip(ys, (a, low), (SYMMETRIC, E), strict=True):
            f, df = gg.compile(x, y), gg.compile(x, gg.gradients(y, x))
            np.testing.assert_allclose(np.sum(df(at) * along), difference(f, at, along), rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 4), (4, 3), (3, 4)])
def test_vectors_of_a_singular_value_of_zero_have_no_gradient(shape):
    m, n = shape
    for least in (0.0, 1e-18):
        s = np.zeros(shape)
        np.fill_diagonal(s, [2, 1, *[least] * (min(m, n) - 2)])
        with gg.Graph():
            x = gg.placeholder(shape)
            u, _, vh = linalg.svd(x, full_matrices=False)
            y = gg.sum(gg.constant(W[:m, :n]) * (u @ vh))
            with np.errstate(all="ignore"):
                assert not np.isfinite(gg.evaluate(gg.gradients(y, x), {x: s})).any()


def test_one_matrix_of_a_stack_leaves_the_others_alone():
    stack = np.stack([np.eye(4), (Q * [1, 4, 2, 3]) @ Q.T])
    x, made = derivatives(of_eigh)
    single = gg.compile(x, made[0])
    with gg.Graph():
        xs = gg.placeholder((2, 4, 4))
        y = gg.sum(gg.constant(W) * (lambda w, v: (v * w[:, None]) @ v.mT)(*_exp(xs)))
        found = gg.evaluate(gg.gradients(y, xs), {xs: stack})
    assert lost(found[0])
    np.testing.assert_allclose(found[1], single(stack[1]), rtol=1e-12)


def _exp(x):
    w, v = linalg.eigh(x)
    return gg.exp(w), v


def test_the_nan_is_named_with_the_line_of_the_decomposition():
    with gg.Graph():
        x = gg.placeholder((2, 2), name="x")
        dx = gg.gradients(gg.sum(of_eigh(x, gg.exp) * np.array([[1.0, 2.0], [3.0, 4.0]])), x)
        with pytest.raises(gg.debug.NotFiniteError, match="OverGaps") as error:
            gg.debug.nan_guard(dx, {x: np.eye(2)})
        suspect = gg.debug.blame(dx, {x: np.eye(2)}).first
    assert "gradient of Eigh" in str(error.value)
    assert "test_equal_values.py" in str(error.value)
    assert (suspect.kind, suspect.site.type) == ("poisoned", "Eigh")
