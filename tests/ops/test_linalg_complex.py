"""Complex matrices: values and gradients against JAX, and against differences to order two.

The gradient is JAX's: df/dx - i df/dy of a real f. Functions of vectors that have free phases are
such that do not depend on them.
"""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import linalg

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
jsl = pytest.importorskip("jax.scipy.linalg")
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


A, TALL, WIDE, B = normal(3, 3) + 2 * np.eye(3), normal(4, 2), normal(2, 4), normal(3, 2)
WIDE_B = normal(4, 2)
POSITIVE = A @ A.conj().T + np.eye(3)


class Ours:
    """What a case is written with: graphgrad's functions."""

    np, la, solvers = gg, linalg, linalg

    @staticmethod
    def lstsq(x, y):
        return linalg.lstsq(x, y)[0]

    @staticmethod
    def hermitian(x):
        return (x + gg.conj(gg.matrix_transpose(x))) * 0.5


class Theirs:
    """The same of JAX."""

    np, la, solvers = jnp, jnp.linalg, jsl

    @staticmethod
    def lstsq(x, y):
        return jnp.linalg.pinv(x) @ y

    @staticmethod
    def hermitian(x):
        return (x + jnp.conj(x.mT)) / 2


def weighted(m, y):
    """A real number that depends on every part of y."""
    weights = np.random.default_rng(1).normal(size=(2, *y.shape))
    if y.dtype.kind != "c":
        return m.np.sum(y * weights[0])
    return m.np.sum(m.np.real(y) * weights[0] + m.np.imag(y) * weights[1])


def sizes(m, y):
    return weighted(m, m.np.abs(y) ** 2)


CASES = {
    "inv": (lambda m, x: weighted(m, m.la.inv(x)), A),
    "solve": (lambda m, x: weighted(m, m.la.solve(x, B)), A),
    "det": (lambda m, x: weighted(m, m.la.det(x)), A),
    "slogdet": (lambda m, x: weighted(m, m.la.slogdet(x)[0]) + m.la.slogdet(x)[1], A),
    "matrix_power": (lambda m, x: weighted(m, m.la.matrix_power(x, -3)), A),
    "cholesky": (lambda m, x: weighted(m, m.la.cholesky(m.hermitian(x))), POSITIVE),
    "cholesky upper": (
        lambda m, x: weighted(m, m.la.cholesky(m.hermitian(x), upper=True)),
        POSITIVE,
    ),
    "cho_solve": (
        lambda m, x: weighted(m, m.solvers.cho_solve((m.la.cholesky(m.hermitian(x)), True), B)),
        POSITIVE,
    ),
    "eigvalsh": (lambda m, x: weighted(m, m.la.eigvalsh(m.hermitian(x), UPLO="U")), POSITIVE),
    "eigh": (lambda m, x: sizes(m, m.la.eigh(m.hermitian(x))[1]), POSITIVE),
    "eigvals": (lambda m, x: weighted(m, m.la.eigvals(x)), A),
    "eigvals of real": (lambda m, x: weighted(m, m.la.eigvals(x)), A.real.copy()),
    "svdvals": (lambda m, x: weighted(m, m.la.svdvals(x)), TALL),
    "svd": (lambda m, x: sum(sizes(m, t) for t in m.la.svd(x, full_matrices=False)), TALL),
    "polar": (
        lambda m, x: weighted(m, m.la.svd(x, False)[0] @ m.la.svd(x, False)[2]),
        A,
    ),
    "polar wide": (
        lambda m, x: weighted(m, m.la.svd(x, False)[0] @ m.la.svd(x, False)[2]),
        WIDE,
    ),
    "qr": (lambda m, x: weighted(m, m.la.qr(x)[0]) + weighted(m, m.la.qr(x)[1]), TALL),
    "pinv": (lambda m, x: weighted(m, m.la.pinv(x)), TALL),
    "pinv wide": (lambda m, x: weighted(m, m.la.pinv(x)), WIDE),
    "lstsq": (lambda m, x: weighted(m, m.lstsq(x, WIDE_B)), TALL),
    "expm": (lambda m, x: weighted(m, m.solvers.expm(x)), A / 3),
    "lu": (lambda m, x: weighted(m, m.solvers.lu(x)[1]) + weighted(m, m.solvers.lu(x)[2]), A),
    "adjoint system": (
        lambda m, x: weighted(m, m.solvers.solve_triangular(x, B, trans="C", lower=True)),
        A,
    ),
    "cond": (lambda m, x: m.la.cond(x), A),
    **{
        f"norm {ord}": (lambda m, x, ord=ord: m.la.norm(x, ord), A)
        for ord in (None, "nuc", 2, -2, 1, np.inf)
    },
    "vector_norm": (lambda m, x: m.la.vector_norm(x, ord=3), A),
}


def slopes(f, x):
    """df/dx - i df/dy of every element, by differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            step = np.zeros_like(x)
            step[place] = 1e-6 * unit
            found[place] += (f(x + step) - f(x - step)) / 2e-6 * np.conj(unit)
    return found


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_of_complex_matrices_are_jaxs(name):
    fn, x = CASES[name]
    with jax.enable_x64(True):
        want, slope = jax.value_and_grad(lambda t: fn(Theirs, t))(x)
        want, slope = np.asarray(want), np.asarray(slope)
    with gg.Graph():
        t = gg.placeholder(x.shape, x.dtype)
        y = fn(Ours, t)
        dx = gg.gradients(y, t)
        second = weighted(Ours, dx)
        run = gg.compile([t], [y, dx, second, gg.gradients(second, t)])
    value, found, _, of_second = run(x)
    np.testing.assert_allclose(value, want, rtol=1e-9)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)
    assert found.dtype == x.dtype
    by_differences = slopes(lambda a: run(a)[2], x)
    scale = 1 + np.abs(of_second).max()
    np.testing.assert_allclose(of_second / scale, by_differences / scale, atol=1e-6)


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "cholesky", "slogdet", "expm", "lstsq"])
def test_backends_agree_on_complex_matrices(name):
    fn, x = CASES[name]
    found = []
    for backend in ("numpy", "llvm", "jax"):
        with gg.Graph():
            t = gg.placeholder(x.shape, x.dtype)
            y = fn(Ours, t)
            found.append(gg.compile([t], [y, gg.gradients(y, t)], backend=backend)(x))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("x", [A, A.real.copy()], ids=["complex", "real"])
def test_gradients_of_eigenvectors_that_do_not_depend_on_their_phases(x):
    with gg.Graph():
        t = gg.placeholder(x.shape, x.dtype)
        y = sizes(Ours, linalg.eig(t)[1])
        run = gg.compile([t], [y, gg.gradients(y, t)])
    np.testing.assert_allclose(run(x)[1], slopes(lambda a: run(a)[0], x), atol=1e-7)


def test_cofactors_of_singular_complex_matrices():
    x = np.array([[1, 1j], [1j, -1]])
    with gg.Graph():
        t = gg.placeholder((2, 2), "complex128")
        dx = gg.gradients(linalg.det(t), t, holomorphic=True)
        np.testing.assert_allclose(gg.evaluate(dx, {t: x}), [[-1, -1j], [-1j, 1]], atol=1e-12)


def test_small_complex_numbers_stay_small():
    with gg.Graph():
        t = gg.placeholder((3, 3), "complex64")
        for fn in (linalg.inv, linalg.svdvals, linalg.eigvals, linalg.pinv, linalg.expm):
            y = fn(t)
            real = np.float32 if y.dtype.kind == "f" else np.complex64
            value, dx = gg.evaluate([y, gg.gradients(weighted(Ours, y), t)], {t: A.astype("c8")})
            assert (value.dtype, dx.dtype) == (real, np.complex64)
