"""Matrix products and linear algebra against NumPy, and their gradients against differences."""

import numpy as np
import pytest

from graphgrad.base.errors import DTypeError, GradientError, ShapeError
from graphgrad.compiled import compile, evaluate
from graphgrad.differentiate.gradients import gradients
from graphgrad.ir.graph import Graph
from graphgrad.ir.program import Program
from graphgrad.ops import linalg
from graphgrad.ops.contract import products
from graphgrad.ops.create import diagonal
from graphgrad.ops.reduce import reductions
from graphgrad.ops.sources import placeholder

RNG = np.random.default_rng(0)


def run(fn, *arrays, unknown=False):
    """The value of fn of placeholders, fed with arrays; its type is checked."""
    with Graph():
        shapes = [(None,) * a.ndim if unknown else a.shape for a in arrays]
        xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        y = fn(*xs)
        value = evaluate(y, dict(zip(xs, arrays, strict=True)))
    if not unknown:
        assert (value.shape, value.dtype) == (y.shape, y.dtype)
    return value


def check_gradient(fn, *arrays, unknown=False):
    """The gradient of a weighted sum against central differences, element by element."""
    with Graph():
        shapes = [(None,) * a.ndim if unknown else a.shape for a in arrays]
        xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        y = fn(*xs)
        value = evaluate(y, dict(zip(xs, arrays, strict=True)))
        weights = np.random.default_rng(1).normal(size=value.shape)
        dxs = gradients([reductions.sum(y * weights)], xs)
        found = evaluate(dxs, dict(zip(xs, arrays, strict=True)))

    def at(i, place, step):
        moved = [a.copy() for a in arrays]
        moved[i][place] += step
        return (evaluate(y, dict(zip(xs, moved, strict=True))) * weights).sum()

    for i, (dx, x) in enumerate(zip(found, arrays, strict=True)):
        assert dx.shape == x.shape
        for place in np.ndindex(x.shape):
            slope = (at(i, place, 1e-6) - at(i, place, -1e-6)) / 2e-6
            assert dx[place] == pytest.approx(slope, rel=1e-5, abs=1e-7)


SHAPES = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 1, 2, 3), (3, 3, 1)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 2)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
]


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_is_numpys_and_so_is_its_gradient(a, b, unknown):
    x, y = RNG.normal(size=a), RNG.normal(size=b)
    np.testing.assert_allclose(run(linalg.matmul, x, y, unknown=unknown), x @ y, rtol=1e-12)
    check_gradient(linalg.matmul, x, y, unknown=unknown)


def test_gradient_of_a_product_of_matrices_is_two_products_and_no_transpose():
    with Graph():
        x, w = placeholder(("N", 3)), placeholder((3, 4))
        z = linalg.matmul(x, w)
        dz = placeholder(z.shape)
        dxs = gradients([z], [x, w], [dz])
    kinds = [repr(n.op) for n in Program((x, w, dz), tuple(dxs)).nodes]
    assert kinds == [
        "MatMul(transpose_a=False, transpose_b=True)",
        "MatMul(transpose_a=True, transpose_b=False)",
    ]
    assert dxs[0].shape == ("N", 3)


def test_gradient_of_a_weight_under_a_stack_is_one_contraction():
    with Graph():
        x, w = placeholder(("N", "T", 3)), placeholder((3, 4))
        z = linalg.matmul(x, w)
        dz = placeholder(z.shape)
        (dw,) = gradients([z], [w], [dz])
    assert [n.type for n in Program((x, w, dz), (dw,)).nodes] == ["Einsum"]


def test_matmul_refuses_what_numpy_refuses():
    with Graph():
        x = placeholder(("N", 3))
        with pytest.raises(ShapeError, match="equal inner lengths, got 3 and 4"):
            linalg.matmul(x, placeholder((4, 2)))
        with pytest.raises(ShapeError, match="0-d"):
            linalg.matmul(x, 2.0)


def test_matmul_promotes():
    x, y = np.ones((2, 3), "float32"), np.arange(6).reshape(3, 2)
    assert run(linalg.matmul, x, y).dtype == np.float64
    np.testing.assert_array_equal(run(linalg.matmul, y, y[:2, :2]), y @ y[:2, :2])


EINSUMS = [
    ("ij,jk->ik", [(2, 3), (3, 2)]),
    ("ij,jk", [(2, 3), (3, 2)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(2, 2, 3)]),
    ("iii->i", [(2, 2, 2)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,j->ji", [(3,), (2,)]),
    ("ij,k->k", [(2, 3), (2,)]),
    (",i->i", [(), (3,)]),
    ("...i,i->...", [(2, 3), (3,)]),
    ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
    ("ij...,j", [(2, 3, 2), (3,)]),
    ("...", [(2, 3)]),
    ("ij,ij->ij", [(1, 3), (2, 3)]),
    ("ij,ij->j", [(2, 1), (2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 2)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
    ("ba,ba->", [(2, 3), (2, 3)]),
    ("ii,ij->j", [(2, 2), (2, 3)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum_is_numpys_and_so_is_its_gradient(subscripts, shapes):
    xs = [RNG.normal(size=s) for s in shapes]
    want = np.einsum(subscripts, *xs)
    np.testing.assert_allclose(run(lambda *t: linalg.einsum(subscripts, *t), *xs), want)
    check_gradient(lambda *t: linalg.einsum(subscripts, *t), *xs)


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum_of_unknown_lengths(subscripts, shapes):
    xs = [RNG.normal(size=s) for s in shapes]
    want = np.einsum(subscripts, *xs)
    found = run(lambda *t: linalg.einsum(subscripts, *t), *xs, unknown=True)
    np.testing.assert_allclose(found, want)
    check_gradient(lambda *t: linalg.einsum(subscripts, *t), *xs, unknown=True)


def test_equal_contractions_are_equal_ops():
    with Graph():
        x, y = placeholder((2, 3)), placeholder((3, 2))
        a, b = linalg.einsum("ij,jk->ik", x, y), linalg.einsum("xq, qa -> xa", x, y)
    assert a.node.op is b.node.op


@pytest.mark.parametrize("subscripts", ["ij,jk->il", "ij->ii", "ij,jk,k->i", "i->i", "i1->i"])
def test_einsum_refuses_what_does_not_fit(subscripts):
    with Graph():
        xs = [placeholder((2, 3)) for _ in range(subscripts.partition("->")[0].count(",") + 1)]
        with pytest.raises(ShapeError):
            linalg.einsum(subscripts, *xs)


PRODUCTS = [
    (linalg.outer, np.outer, (2,), (3,)),
    (products.outer, np.outer, (2, 2), (3,)),
    (linalg.inner, np.inner, (3,), (3,)),
    (linalg.inner, np.inner, (2, 3), (4, 3)),
    (linalg.inner, np.inner, (), (3,)),
    (linalg.dot, np.dot, (2, 3), (3,)),
    (linalg.dot, np.dot, (3,), (2, 3, 2)),
    (linalg.dot, np.dot, (2, 3), (2, 3, 2)),
    (linalg.dot, np.dot, (), (2,)),
    (linalg.vecdot, np.vecdot, (2, 3), (3,)),
    (linalg.vecdot, np.vecdot, (2, 1, 3), (4, 3)),
    (linalg.tensordot, np.tensordot, (2, 3, 2), (3, 2, 2)),
]


@pytest.mark.parametrize(("fn", "reference", "a", "b"), PRODUCTS)
def test_products_are_numpys(fn, reference, a, b):
    x, y = RNG.normal(size=a), RNG.normal(size=b)
    np.testing.assert_allclose(run(fn, x, y), reference(x, y))
    check_gradient(fn, x, y)


@pytest.mark.parametrize("axes", [0, 1, ([1], [0]), ([0, 1], [1, 0]), ((-1,), (-2,)), (1, 0)])
def test_tensordot_axes(axes):
    x, y = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
    found = run(lambda a, b: linalg.tensordot(a, b, axes=axes), x, y)
    np.testing.assert_allclose(found, np.tensordot(x, y, axes=axes))


def test_tensordot_and_vecdot_refuse_lengths_that_differ():
    with Graph():
        x, y = placeholder((2, 3)), placeholder((2, 4))
        with pytest.raises(ShapeError, match="differ in length"):
            linalg.tensordot(x, y, axes=1)
        with pytest.raises(ShapeError, match="differ in length"):
            linalg.vecdot(x, y)


@pytest.mark.parametrize("offset", [0, 1, -1, 2, 5])
def test_diagonal_and_trace(offset):
    x = RNG.normal(size=(2, 3, 4))
    for axes in [(0, 1), (1, 2), (2, 0), (-1, 0)]:
        found = run(lambda t, a=axes: diagonal.diagonal(t, offset, *a), x)
        np.testing.assert_array_equal(found, np.diagonal(x, offset, *axes))
        found = run(lambda t, a=axes: diagonal.trace(t, offset, *a), x)
        np.testing.assert_allclose(found, np.trace(x, offset, *axes))
    check_gradient(lambda t: diagonal.diagonal(t, offset, 2, 0), x)
    check_gradient(lambda t: diagonal.trace(t, offset), x, unknown=True)


@pytest.mark.parametrize(
    ("ord", "axis"),
    [
        (None, None),
        (None, -1),
        (2, 0),
        (1, 1),
        (np.inf, 1),
        (-np.inf, 0),
        (3, 1),
        (0.5, 1),
        (0, 1),
        ("fro", (0, 1)),
        (2, (0, 1)),
        (-2, (1, 0)),
        ("nuc", None),
        (1, (0, 1)),
        (-1, (1, 0)),
        (np.inf, (0, 1)),
        (-np.inf, None),
    ],
)
def test_norm_is_numpys(ord, axis):
    x = RNG.normal(size=(3, 4))
    for keep in (False, True):
        found = run(lambda t, k=keep: linalg.norm(t, ord, axis, k), x)
        np.testing.assert_allclose(found, np.linalg.norm(x, ord, axis, keep))
    if ord != 0:
        check_gradient(lambda t: linalg.norm(t, ord, axis), x)


def test_norm_at_zero_has_a_gradient_of_zero():
    with Graph():
        x = placeholder((2, 2))
        (dx,) = gradients([linalg.norm(x, axis=1)], [x])
        found = evaluate(dx, {x: np.array([[0.0, 0.0], [3.0, 4.0]])})
    np.testing.assert_allclose(found, [[0, 0], [0.6, 0.8]])


def positive(*shape):
    x = RNG.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_square_matrices(shape):
    x, y = RNG.normal(size=shape) + 2 * np.eye(shape[-1]), RNG.normal(size=(shape[-1], 2))
    np.testing.assert_allclose(run(linalg.inv, x), np.linalg.inv(x))
    np.testing.assert_allclose(run(linalg.det, x), np.linalg.det(x))
    np.testing.assert_allclose(run(linalg.solve, x, y), np.linalg.solve(x, y))
    np.testing.assert_allclose(run(linalg.solve, x, y[:, 0]), np.linalg.solve(x, y[:, 0]))
    for i in (0, 1):
        found = run(lambda t, i=i: linalg.slogdet(t)[i], x)
        np.testing.assert_allclose(found, np.linalg.slogdet(x)[i])
    for n in (-2, 0, 1, 5):
        found = run(lambda t, n=n: linalg.matrix_power(t, n), x)
        np.testing.assert_allclose(found, np.linalg.matrix_power(x, n), atol=1e-12)
    for fn in (linalg.inv, linalg.det, lambda t: linalg.slogdet(t)[1]):
        check_gradient(fn, x)
    check_gradient(linalg.solve, x, y)
    check_gradient(linalg.solve, x, y[:, 0], unknown=True)


def test_cholesky():
    x = positive(2, 3, 3)
    np.testing.assert_allclose(run(linalg.cholesky, x), np.linalg.cholesky(x))
    upper = run(lambda t: linalg.cholesky(t, upper=True), x)
    np.testing.assert_allclose(upper, np.linalg.cholesky(x, upper=True))
    check_gradient(linalg.cholesky, x)


def test_square_matrices_are_checked():
    with Graph():
        with pytest.raises(ShapeError, match="square"):
            linalg.inv(placeholder((2, 3)))
        with pytest.raises(ShapeError, match="square"):
            linalg.matrix_power(placeholder((2, 3)), 2)
        with pytest.raises(ShapeError, match="equal lengths"):
            linalg.solve(placeholder((2, 2)), placeholder((3, 1)))
        with pytest.raises(DTypeError):
            linalg.vecdot(placeholder((2,)), [placeholder(())])


def test_linalgs_diagonal_and_trace_take_the_last_axes():
    x = RNG.normal(size=(2, 3, 4))
    for offset in (0, 1):
        found = run(lambda t, k=offset: linalg.diagonal(t, offset=k), x)
        np.testing.assert_array_equal(found, np.linalg.diagonal(x, offset=offset))
        found = run(lambda t, k=offset: linalg.trace(t, offset=k), x)
        np.testing.assert_allclose(found, np.linalg.trace(x, offset=offset))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_singular_values_and_what_is_made_of_them(shape):
    x = RNG.normal(size=shape)
    np.testing.assert_allclose(run(linalg.svdvals, x), np.linalg.svdvals(x))
    np.testing.assert_allclose(run(linalg.pinv, x), np.linalg.pinv(x), atol=1e-12)
    np.testing.assert_allclose(run(linalg.matrix_norm, x), np.linalg.matrix_norm(x))
    assert (run(linalg.matrix_rank, x) == np.linalg.matrix_rank(x)).all()
    check_gradient(linalg.svdvals, x)
    check_gradient(linalg.pinv, x, unknown=True)

    def rebuilt(t):
        u, s, vh = linalg.svd(t, full_matrices=False)
        return linalg.matmul(u * linalg.einsum("...i->...i", s)[..., None, :], vh)

    np.testing.assert_allclose(run(rebuilt, x), x)
    for part in range(3):
        check_gradient(lambda t, i=part: linalg.svd(t, full_matrices=False)[i], x)
    check_gradient(rebuilt, x)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_svd_is_full_as_numpys(shape):
    x = RNG.normal(size=shape)
    for i in range(3):
        for unknown in (False, True):
            found = run(lambda t, i=i: linalg.svd(t)[i], x, unknown=unknown)
            np.testing.assert_allclose(found, np.linalg.svd(x)[i])
            found = run(lambda t, i=i: np.linalg.svd(t, False)[i], x, unknown=unknown)
            np.testing.assert_allclose(found, np.linalg.svd(x, False)[i])


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_full_svd_has_the_gradients_that_exist(shape):
    x = RNG.normal(size=shape)
    m, n = shape[-2:]
    whole = [i for i, there in enumerate((m <= n, True, n <= m)) if there]
    for i in whole:
        check_gradient(lambda t, i=i: linalg.svd(t)[i], x)

    def hessian(t):
        return gradients(reductions.sum(linalg.svd(t)[1] ** 3), t)

    check_gradient(hessian, x)
    with Graph():
        for i in {0, 1, 2} - set(whole):
            t = placeholder(shape)
            with pytest.raises(GradientError, match="full_matrices=False") as error:
                gradients([linalg.svd(t)[i]], [t])
            assert "test_linalg.py" in str(error.value)


def test_full_svd_of_unknown_lengths_has_the_gradient_of_singular_values():
    check_gradient(lambda t: linalg.svd(t)[1], RNG.normal(size=(3, 2)), unknown=True)
    with Graph():
        t = placeholder((None, None))
        with pytest.raises(GradientError, match="full_matrices=False"):
            gradients([linalg.svd(t)[0]], [t])
        square = placeholder(("n", "n"))
        assert gradients(linalg.svd(square)[0], square) is not None


def test_equal_singular_values_have_gradients():
    with Graph():
        x = placeholder((2, 2))
        (dx,) = gradients([linalg.svdvals(x)], [x])
        np.testing.assert_allclose(evaluate(dx, {x: np.eye(2)}), np.eye(2), atol=1e-12)


def triangle(x, uplo):
    """x with rubbish in the triangle that is not read."""
    other = np.triu if uplo == "L" else np.tril
    return x + other(RNG.normal(size=x.shape), 1 if uplo == "L" else -1)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_one_triangle_is_read_and_has_the_gradient(uplo):
    x = triangle(positive(2, 3, 3), uplo)
    upper = uplo == "U"
    for fn, want in (
        (lambda t: linalg.eigvalsh(t, uplo), np.linalg.eigvalsh(x, uplo)),
        (lambda t: linalg.eigh(t, UPLO=uplo)[0], np.linalg.eigh(x, uplo)[0]),
        (lambda t: np.linalg.eigvalsh(t, uplo), np.linalg.eigvalsh(x, uplo)),
        (lambda t: linalg.cholesky(t, upper=upper), np.linalg.cholesky(x, upper=upper)),
        (lambda t: np.linalg.cholesky(t, upper=upper), np.linalg.cholesky(x, upper=upper)),
    ):
        np.testing.assert_allclose(run(fn, x), want)
        check_gradient(fn, x)
        check_gradient(lambda t, fn=fn: gradients(reductions.sum(fn(t) ** 2), t), x)
    check_gradient(lambda t: linalg.eigh(t, uplo)[1], x)
    with Graph():
        t = placeholder((3, 3))
        dx = evaluate(gradients(linalg.eigvalsh(t, uplo), t), {t: x[0]})
        unread = np.triu(dx, 1) if uplo == "L" else np.tril(dx, -1)
        np.testing.assert_array_equal(unread, 0)
        with pytest.raises(ValueError, match="UPLO"):
            linalg.eigh(t, "lower")


SINGULAR = [
    np.array([[1.0, 2.0], [2.0, 4.0]]),
    np.zeros((2, 2)),
    np.zeros((1, 1)),
    np.ones((3, 3)),
    np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    np.diag([3.0, 2.0, 0.0, 0.0]) + np.diag([1.0, 0.0, 0.0], 1),
    np.diag([3.0, 0.0, 0.0, 0.0]),
    np.stack([np.ones((3, 3)), np.diag([1.0, 2.0, 0.0])]),
]


def cofactors(x):
    found = np.zeros_like(x)
    for *at, i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x[tuple(at)], i, 0), j, 1)
        found[(*at, i, j)] = (-1) ** (i + j) * np.linalg.det(minor)
    return found


@pytest.mark.parametrize("x", SINGULAR, ids=lambda x: f"{x.shape}")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_gradient_of_det_at_a_singular_matrix_is_its_cofactors(x, backend):
    with Graph():
        t = placeholder(x.shape)
        dx = compile([t], gradients(linalg.det(t), t), backend=backend)(x)
    np.testing.assert_allclose(dx, cofactors(x), atol=1e-13)
    check_gradient(linalg.det, x)
    check_gradient(lambda t: gradients(linalg.det(t), t), x)


def test_derivatives_of_det_are_right_to_order_three():
    x = RNG.normal(size=(2, 3, 3))

    def second(t):
        return gradients(reductions.sum(gradients(linalg.det(t), t) ** 2), t)

    check_gradient(second, x)


def test_the_gradient_of_det_is_nan_where_the_matrix_is_not_finite():
    x = np.stack([np.eye(2), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    with Graph():
        t = placeholder(x.shape)
        dx = evaluate(gradients(linalg.det(t), t), {t: x})
    np.testing.assert_array_equal(dx[0], np.eye(2))
    assert np.isnan(dx[1:]).all()


HERMITIAN = np.array([[2, 1j], [-1j, 3]])
COMPLEX = np.array([1j, 2 + 1j])


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, np.inf, -np.inf])
def test_norms_of_complex_vectors(ord):
    found = run(lambda t: linalg.norm(t, ord), COMPLEX)
    np.testing.assert_allclose(found, np.linalg.norm(COMPLEX, ord))
    assert found.dtype == "float64"
    if ord is not None:
        found = run(lambda t: linalg.vector_norm(t, ord=ord), COMPLEX)
        np.testing.assert_allclose(found, np.linalg.vector_norm(COMPLEX, ord=ord))


@pytest.mark.parametrize("ord", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_of_complex_matrices(ord):
    found = run(lambda t: linalg.matrix_norm(t, ord=ord), HERMITIAN)
    np.testing.assert_allclose(found, np.linalg.matrix_norm(HERMITIAN, ord=ord))
    assert found.dtype == "float64"


def test_products_that_conjugate_complex_vectors():
    x, y = COMPLEX, np.array([1 - 2j, 3j])
    for fn, want in ((np.vdot, np.vdot(x, y)), (np.vecdot, np.vecdot(x, y))):
        np.testing.assert_allclose(run(fn, x, y), want)
    np.testing.assert_allclose(run(np.vecmat, x, HERMITIAN), np.vecmat(x, HERMITIAN))
    np.testing.assert_allclose(run(np.matvec, HERMITIAN, x), np.matvec(HERMITIAN, x))
    rows = np.stack([x, y])
    found = run(lambda s, t: linalg.vecdot(s, t, axis=0), rows, rows)
    np.testing.assert_allclose(found, np.linalg.vecdot(rows, rows, axis=0))


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_eigh(shape):
    x = positive(*shape)
    np.testing.assert_allclose(run(linalg.eigvalsh, x), np.linalg.eigvalsh(x))
    check_gradient(linalg.eigvalsh, x)
    check_gradient(lambda t: linalg.eigh(t)[1], x)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_qr(shape):
    x = RNG.normal(size=shape)
    for i in (0, 1):
        np.testing.assert_allclose(run(lambda t, i=i: linalg.qr(t)[i], x), np.linalg.qr(x)[i])
        check_gradient(lambda t, i=i: linalg.qr(t)[i], x)


def test_completed_qr_has_no_gradient_where_columns_are_free():
    x = RNG.normal(size=(3, 2))
    for mode in ("complete", "r"):
        found = run(lambda t, m=mode: linalg.qr(t, m)[0] if m != "r" else linalg.qr(t, m), x)
        want = np.linalg.qr(x, mode)
        np.testing.assert_allclose(found, want if mode == "r" else want[0])
    check_gradient(lambda t: linalg.qr(t, "complete")[1], RNG.normal(size=(2, 3)))
    with Graph():
        t = placeholder((3, 2))
        with pytest.raises(GradientError, match="mode='reduced'"):
            gradients([linalg.qr(t, "complete")[1]], [t])
        with pytest.raises(ValueError, match="raw"):
            linalg.qr(t, mode="raw")


@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_vector_norm(axis):
    x = RNG.normal(size=(2, 3, 4))
    for ord in (2, 1, np.inf, 3):
        for keep in (False, True):
            want = np.linalg.vector_norm(x, axis=axis, ord=ord, keepdims=keep)
            found = run(
                lambda t, o=ord, k=keep: linalg.vector_norm(t, axis=axis, ord=o, keepdims=k), x
            )
            np.testing.assert_allclose(found, want)


def test_stacks_of_matrices_and_vectors():
    m, v = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4))
    np.testing.assert_allclose(run(products.matvec, m, v), np.matvec(m, v))
    np.testing.assert_allclose(run(products.vecmat, v, m.mT), np.vecmat(v, m.mT))
    np.testing.assert_allclose(run(products.vdot, v, v), np.vdot(v, v))
    with Graph(), pytest.raises(ShapeError, match="differ in length"):
        products.matvec(placeholder((2, 3)), placeholder((2,)))


@pytest.mark.parametrize("ends", [((9,), (7,)), ((2, 9), (7, 3)), ((2, 9), (7,))])
@pytest.mark.parametrize("unknown", [False, True])
def test_multi_dot(ends, unknown):
    shapes = [ends[0], (9, 2), (2, 8), (8, 7), ends[1]]
    xs = [RNG.normal(size=s) for s in shapes]
    found = run(lambda *t: linalg.multi_dot(t), *xs, unknown=unknown)
    np.testing.assert_allclose(found, np.linalg.multi_dot(xs))


@pytest.mark.parametrize("ord", [3, 1.5, 0.5, -1, -2.5])
def test_norms_of_powers_have_a_slope_of_zero_at_zero(ord):
    for x, slope in ((np.zeros(3), np.zeros(3)), (np.array([0.0, 1.0, 2.0]), None)):
        with Graph():
            t = placeholder((3,))
            y = linalg.norm(t, ord)
            value, dx = evaluate([y, gradients(y, t)], {t: x})
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(value, np.linalg.norm(x, ord))
        if slope is None:
            power = np.abs(x[1:]) ** (ord - 1) * value ** (1 - ord) if value else np.zeros(2)
            slope = [0.0, *power]
        np.testing.assert_allclose(dx, slope)
