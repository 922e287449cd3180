"""Triangular systems, factors and solvers against NumPy, SciPy and differences."""

import warnings

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import linalg
from graphgrad.ops.linalg import lapack

from .test_linalg import check_gradient, run

scipy_linalg = pytest.importorskip("scipy.linalg")
RNG = np.random.default_rng(3)


def regular(*shape):
    return RNG.normal(size=shape) + 3 * np.eye(shape[-1])


def close(found, want):
    np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("trans", [0, 1, "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_solve_triangular_is_scipys_and_reads_one_triangle(trans, lower, unit):
    x, y = regular(3, 3), RNG.normal(size=(3, 2))

    def fn(s, t):
        return linalg.solve_triangular(s, t, lower=lower, trans=trans, unit_diagonal=unit)

    for b in (y, y[:, 0]):
        want = scipy_linalg.solve_triangular(x, b, trans, lower, unit)
        close(run(fn, x, b), want)
        check_gradient(fn, x, b, unknown=True)
    found = run(lambda s, t: gg.gradients(gg.sum(fn(s, t) ** 2), s), x, y)
    unread = np.triu(found, 1 - unit) if lower else np.tril(found, unit - 1)
    np.testing.assert_array_equal(unread, 0)


def test_triangular_systems_broadcast_and_refuse_what_is_singular():
    x, y = regular(2, 1, 3, 3), RNG.normal(size=(4, 3, 2))
    close(run(linalg.solve_triangular, x, y), np.linalg.solve(np.triu(x), y))
    check_gradient(linalg.solve_triangular, x, y)
    for a, b in (((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (0, 3, 1))):
        assert run(linalg.solve_triangular, np.ones(a), np.ones(b)).shape == b
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run(linalg.solve_triangular, np.diag([1.0, 0.0]), np.ones(2))
    with gg.Graph():
        s = gg.placeholder((3, 3))
        with pytest.raises(ValueError, match="trans is"):
            linalg.solve_triangular(s, np.ones(3), trans="X")
        with pytest.raises(gg.ShapeError, match="equal lengths"):
            linalg.solve_triangular(s, np.ones((2, 2)))
        with pytest.raises(gg.DTypeError, match="32 or 64 bits"):
            linalg.solve_triangular(gg.cast(s, "float16"), np.ones(3, "float16"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (70, 70), (2, 70, 70), (3, 4, 4), (0, 70, 70)])
def test_cholesky_is_numpys_and_reads_one_triangle(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if "c" in dtype else 0)
    x = (x @ x.conj().mT + shape[-1] * np.eye(shape[-1])).astype(dtype)
    given = np.where(np.tri(shape[-1], dtype=bool), x, x.dtype.type(np.nan))
    found, wanted = run(linalg.cholesky, given), np.linalg.cholesky(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e4 * np.finfo(dtype).eps, atol=1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        run(linalg.cholesky, -np.eye(70, dtype=dtype))


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_systems_of_one_column_are_those_of_several(trans, dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2, 6, 6)) + 9 * np.eye(6)).astype(dtype)
    y = rng.normal(size=(2, 6, 3)).astype(dtype)
    for lower, unit in [(True, False), (False, True)]:
        several = lapack.solve_triangular(x, y, lower, trans, unit)
        one = [lapack.solve_triangular(x, y[..., i, None], lower, trans, unit) for i in range(3)]
        np.testing.assert_allclose(np.concatenate(one, -1), several, rtol=1e-5)
        alone = lapack.solve_triangular(x[1], y[1][:, :1], lower, trans, unit)
        np.testing.assert_array_equal(alone, one[0][1])


@pytest.mark.parametrize("n", [1, 63, 65, 150])
def test_gradient_of_cholesky_in_panels_is_that_of_the_whole(n):
    x = RNG.normal(size=(n, n))
    x = x @ x.T / n + np.eye(n)
    y, dy = np.linalg.cholesky(x), RNG.normal(size=(n, n))
    half = np.tril(y.T @ dy) - np.diag(np.diag(y.T @ dy)) / 2
    s = np.linalg.solve(y.T, np.linalg.solve(y.T, half.T).T)
    want = np.tril(s + s.T) - np.diag(np.diag(s))
    found = run(lambda t, d: gg.gradients(linalg.cholesky(t), t, d), x, dy)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("lower", [False, True])
def test_cho_solve(lower):
    x = regular(2, 3, 3)
    x, y = x @ x.mT, RNG.normal(size=(3, 2))

    def fn(s, t):
        return linalg.cho_solve(linalg.cho_factor(s, lower=lower), t)

    close(run(fn, x, y), np.linalg.solve(x, y))
    close(run(fn, x[0], y[:, 0]), scipy_linalg.cho_solve(scipy_linalg.cho_factor(x[0]), y[:, 0]))
    check_gradient(fn, x, y)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3), (0, 3), (2, 0, 0)])
def test_lu_is_scipys(shape):
    x = RNG.normal(size=shape)
    factors = [run(lambda t, i=i: linalg.lu(t)[i], x) for i in range(3)]
    for found, want in zip(factors, scipy_linalg.lu(x), strict=True):
        close(found, want)
    for i in (1, 2):
        check_gradient(lambda t, i=i: linalg.lu(t)[i], x)


def test_lu_of_singular_matrices_and_without_scipy():
    from graphgrad.ops.linalg import lapack

    for x in (np.ones((3, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5)), np.zeros((2, 2))):
        for found, want in zip(lapack._lu_by_numpy(x), lapack._lu(x), strict=True):
            close(found, want)
    x, y = regular(3, 3), RNG.normal(size=(3, 2))
    for flags in np.ndindex(2, 2, 2):
        bools = [bool(f) for f in flags]
        close(lapack._by_numpy(x, y, *bools), lapack.solve_triangular(x, y, *bools))


@pytest.mark.parametrize("trans", [0, 1])
def test_lu_solve(trans):
    x, y = regular(2, 3, 3), RNG.normal(size=(2, 3, 2))

    def fn(s, t):
        return linalg.lu_solve(linalg.lu_factor(s), t, trans=trans)

    close(run(fn, x, y), np.linalg.solve(x.mT if trans else x, y))
    close(run(fn, x[0], y[0, :, 0]), np.linalg.solve(x[0].T if trans else x[0], y[0, :, 0]))
    check_gradient(fn, x, y)
    with gg.Graph(), pytest.raises(gg.ShapeError, match="do not depend on values"):
        linalg.lu_factor(gg.take(np.eye(3), gg.nonzero(gg.placeholder((3,)))[0], 0))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_lstsq_is_numpys(shape):
    x, y = RNG.normal(size=shape), RNG.normal(size=(shape[0], 2))
    for b in (y, y[:, 0]):
        for i, want in enumerate(np.linalg.lstsq(x, b)):
            close(run(lambda s, t, i=i: linalg.lstsq(s, t)[i], x, b), want)
        for i in (0, 1, 3):
            check_gradient(lambda s, t, i=i: linalg.lstsq(s, t)[i], x, b)
    deficient = x @ np.diag([1.0] + [0.0] * (shape[1] - 1))
    for i, want in enumerate(np.linalg.lstsq(deficient, y)):
        if i != 1:
            close(run(lambda s, t, i=i: linalg.lstsq(s, t)[i], deficient, y), want)


def test_lstsq_of_stacks():
    x, y = RNG.normal(size=(2, 1, 4, 2)), RNG.normal(size=(3, 4, 2))
    close(run(lambda s, t: linalg.lstsq(s, t)[0], x, y), np.linalg.pinv(x) @ y)
    check_gradient(lambda s, t: linalg.lstsq(s, t)[0], x, y, unknown=True)


def test_expm_and_its_derivatives():
    x = RNG.normal(size=(2, 3, 3))
    close(run(linalg.expm, x), scipy_linalg.expm(x))
    check_gradient(linalg.expm, x, unknown=True)
    check_gradient(lambda t: gg.gradients(gg.sum(linalg.expm(t) ** 2), t), x)
    assert run(linalg.expm, np.zeros((0, 0))).shape == (0, 0)


def test_eig_is_numpys_and_complex():
    x = RNG.normal(size=(2, 3, 3))
    for fn, want in (
        (linalg.eigvals, np.linalg.eigvals(x)),
        (lambda t: np.linalg.eigvals(t), np.linalg.eigvals(x)),
        (lambda t: np.linalg.eig(t).eigenvectors, np.linalg.eig(x)[1]),
    ):
        found = run(fn, x)
        assert found.dtype == "complex128"
        np.testing.assert_allclose(found, want)
    assert run(linalg.eigvals, np.eye(2, dtype="float32")).dtype == "complex64"


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_cond_is_numpys(p):
    x = regular(2, 3, 3)
    close(run(lambda t: linalg.cond(t, p), x), np.linalg.cond(x, p))
    check_gradient(lambda t: linalg.cond(t, p), x)


def test_rank_and_pseudo_inverse_by_other_tolerances():
    x = np.diag([4.0, 1.0, 1e-3])
    for kwargs in ({"tol": 0.5}, {"rtol": 1e-2}, {"hermitian": True}, {"tol": 2.0}):
        found = (
            run(lambda t, k=kwargs: linalg.matrix_rank(t, **k), x, unknown=True)
            if ("hermitian" not in kwargs)
            else run(lambda t, k=kwargs: linalg.matrix_rank(t, **k), x)
        )
        assert found == np.linalg.matrix_rank(x, **kwargs)
    for kwargs in ({"rtol": 1e-2}, {"hermitian": True}, {"rcond": 0.5}):
        close(run(lambda t, k=kwargs: linalg.pinv(t, **k), x), np.linalg.pinv(x, **kwargs))
    close(run(lambda t: np.linalg.pinv(t, 0.5), x), np.linalg.pinv(x, 0.5))
    with gg.Graph():
        t = gg.placeholder((3, 3))
        with pytest.raises(TypeError, match="not both"):
            linalg.pinv(t, 0.1, rtol=0.1)
        with pytest.raises(gg.DTypeError, match="real tolerances"):
            linalg.pinv(t, rtol=[0.1j])
        with pytest.raises(TypeError, match="not both"):
            linalg.matrix_rank(t, 0.1, rtol=0.1)


@pytest.mark.parametrize(
    ("shape", "rtol"),
    [((4, 4), 0.5), ((4, 4), 0.9), ((4, 3), 0.9), ((3, 4), 0.5), ((2, 4, 3), 0.1)],
)
def test_the_gradient_of_what_is_cut_off_by_a_tolerance(shape, rtol):
    """Singular values 3, 3 (equal ones count too), 2 and 1, of which rtol keeps some."""
    u, _, vh = np.linalg.svd(RNG.normal(size=shape), full_matrices=False)
    x, y = (u * np.array([3.0, 3.0, 2.0, 1.0])[: u.shape[-1]]) @ vh, RNG.normal(size=(shape[-2], 2))
    check_gradient(lambda t: linalg.pinv(t, rtol=rtol), x)
    check_gradient(lambda t: gg.gradients(gg.sum(linalg.pinv(t, rtol=rtol) ** 3), t), x)
    check_gradient(lambda s, t: linalg.lstsq(s, t, rcond=rtol)[0], x, y)


def test_each_matrix_of_a_stack_has_its_tolerance():
    x, rtol = RNG.normal(size=(2, 1, 4, 3)), np.array([0.9, 0.1, 0.5], "float32")
    close(
        run(lambda t: linalg.pinv(t, rtol=rtol), x),
        np.linalg.pinv(np.tile(x, (3, 1, 1)), rtol=rtol),
    )
    check_gradient(lambda t: linalg.pinv(t, rtol=rtol), x)
    one = run(lambda t: gg.vmap(lambda a: linalg.pinv(a, rtol=rtol[:1])[0])(t), x[:, 0])
    close(one, np.linalg.pinv(x[:, 0], rtol=0.9))
    with gg.Graph(), pytest.raises(gg.ShapeError, match="lengths unknown"):
        linalg.pinv(gg.placeholder((None, 3)), rtol=rtol)


def test_tensorinv_and_tensorsolve():
    x, y = RNG.normal(size=(4, 6, 8, 3)), RNG.normal(size=(4, 6))
    close(run(linalg.tensorinv, x), np.linalg.tensorinv(x))
    close(run(linalg.tensorsolve, x, y), np.linalg.tensorsolve(x, y))
    moved = np.moveaxis(x, 2, 0)
    found = run(lambda s, t: np.linalg.tensorsolve(s, t, axes=(0,)), moved, y)
    close(found, np.linalg.tensorsolve(moved, y, axes=(0,)))
    small = RNG.normal(size=(2, 2, 4))
    check_gradient(linalg.tensorinv, small)
    with gg.Graph():
        with pytest.raises(gg.ShapeError, match="as many elements"):
            linalg.tensorinv(gg.placeholder((2, 3, 4)))
        picked = gg.nonzero(gg.placeholder((3,)))[0]
        with pytest.raises(gg.ShapeError, match="do not depend on values"):
            linalg.tensorsolve(gg.take(np.eye(3), picked, 0), np.ones(3))
        x = gg.placeholder((None, 3))
        solve = gg.compile(x, linalg.tensorsolve(x, np.ones(3)))
        close(solve(2 * np.eye(3)), np.full(3, 0.5))
        with pytest.raises(gg.ShapeError):
            solve(np.ones((4, 3)))


def test_results_have_numpys_names():
    with gg.Graph():
        t = gg.placeholder((3, 3))
        for name in ("eigh", "eig", "qr", "svd", "slogdet"):
            ours, theirs = getattr(linalg, name)(t), getattr(np.linalg, name)(np.eye(3))
            assert ours._fields == theirs._fields
            assert type(ours).__name__ == type(theirs).__name__


EVERYDAY = {
    "solve_triangular": lambda t: linalg.solve_triangular(t, np.ones(3)),
    "cho_solve": lambda t: linalg.cho_solve(linalg.cho_factor(t @ t.mT), np.ones(3)),
    "lu_solve": lambda t: linalg.lu_solve(linalg.lu_factor(t), np.ones(3)),
    "lstsq": lambda t: linalg.lstsq(t, np.ones(3))[0],
    "expm": linalg.expm,
    "pinv": linalg.pinv,
    "cond": linalg.cond,
    "qr": lambda t: linalg.qr(t)[1],
    "eigvalsh": linalg.eigvalsh,
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_a_batch_is_one_call(name):
    fn, x = EVERYDAY[name], regular(4, 3, 3)
    with gg.Graph(), warnings.catch_warnings():
        warnings.simplefilter("error")
        t = gg.placeholder((4, 3, 3))
        batched = gg.vmap(lambda a: gg.gradients(gg.sum(fn(a)), a))(t)
        found = gg.evaluate(batched, {t: x})
    for one, got in zip(x, found, strict=True):
        close(run(lambda a: gg.gradients(gg.sum(fn(a)), a), one), got)


@pytest.mark.parametrize("name", EVERYDAY)
def test_all_backends_agree(name):
    pytest.importorskip("jax")
    x = regular(3, 3).astype("float32")
    found = []
    for backend in ("numpy", "llvm", "jax"):
        with gg.Graph():
            t = gg.placeholder((3, 3), "float32")
            y = fn = EVERYDAY[name](gg.cast(t, "float64"))
            dx = gg.gradients(gg.sum(fn), t)
            found.append(gg.compile([t], [y, dx], backend=backend)(x))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_svd_of_hermitian_matrices_and_of_values_alone(dtype):
    rng = np.random.default_rng(0)
    a = (
        rng.normal(size=(2, 3, 3)) + (1j * rng.normal(size=(2, 3, 3)) if dtype[0] == "c" else 0)
    ).astype(dtype)
    a = a + np.conj(np.swapaxes(a, -1, -2))
    a[1, 2] = a[1, :, 2] = 0
    digits = {"rtol": 1e-10, "atol": 1e-10} if dtype == "float64" else {"rtol": 2e-5, "atol": 2e-5}
    with gg.Graph():
        x = gg.placeholder(a.shape, dtype)
        u, s, vh = np.linalg.svd(x, hermitian=True)
        ss = [s, np.linalg.svd(x, compute_uv=False), np.linalg.svd(x, True, False, hermitian=True)]
        dxs = [gg.gradients([gg.sum(t**3)], [x])[0] for t in ss]
        sym = [gg.real(gg.sum(dx * gg.conj(a))) for dx in dxs]
        found, rest = (
            gg.evaluate([ss, sym], {x: a}),
            gg.evaluate((u * s[..., None, :]) @ vh, {x: a}),
        )
    np.testing.assert_allclose(rest, a, **digits)
    for got in found[0]:
        np.testing.assert_allclose(got, np.linalg.svd(a, compute_uv=False), **digits)
    np.testing.assert_allclose(found[1], found[1][1], rtol=1e-4)


def test_integers_count_as_float64_beside_float32():
    a, b = np.array([[2, 1], [1, 3]], "int16"), np.ones(2, "float32")
    for fn in (np.linalg.solve, np.linalg.tensorsolve, lambda x, y: np.linalg.lstsq(x, y)[0]):
        found = gg.evaluate(fn(gg.constant(a), gg.constant(b)))
        assert found.dtype == fn(a, b).dtype == np.float64
        np.testing.assert_allclose(found, fn(a, b))
