"""Names that users of NumPy, SciPy and TensorFlow look for."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import graphgrad as gg

from .against_numpy import difference, gradient, same

X = np.random.default_rng(0).normal(size=(3, 4))
INF = np.inf
BACKENDS = [
    b for b, p in {"numpy": "numpy", "llvm": "llvmlite", "jax": "jax"}.items() if find_spec(p)
]


@pytest.mark.parametrize("name", ["invert", "bitwise_not", "left_shift", "right_shift"])
def test_bits_have_numpys_names(name):
    others = [np.array([1, 0, 3])] if "shift" in name else []
    same(getattr(gg, name), getattr(np, name), np.array([5, -3, 0]), *others)


def test_extrema_and_rounding_have_numpys_names():
    same(lambda x: gg.amax(x, axis=0), lambda x: np.amax(x, axis=0), X)
    same(lambda x: gg.amin(x, 1, keepdims=True), lambda x: np.amin(x, 1, keepdims=True), X)
    same(lambda x: gg.around(x, 2), lambda x: np.around(x, 2), X)
    assert_allclose(gg.evaluate(gg.i0(X)), np.i0(X))


def test_an_array_is_a_constant_and_a_tensor_its_own_copy():
    with gg.Graph():
        x = gg.placeholder((3,))
        assert gg.copy(x) is gg.array(x) is x
        assert gg.array([1, 2], dtype="float32").type == gg.constant([1.0, 2.0], "float32").type
        assert gg.array([x, x]).shape == (2, 3)


# --- put_along_axis, block_diag, split, einsum, logsumexp ----------------------------------------


def put(x, indices, values, axis):
    x = x.copy()
    np.put_along_axis(x, indices, values, axis)
    return x


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_values_are_put_where_take_along_axis_reads(axis):
    shape = {0: (2, 4), None: (5,)}.get(axis, (3, 2))
    indices = np.argsort(np.random.default_rng(1).normal(size=shape), axis=axis or 0)
    for values in (np.float64(7), np.arange(indices.size, dtype=float).reshape(shape)):
        same(
            lambda x, i, v: gg.put_along_axis(x, i, v, axis),
            lambda x, i, v: put(x, i, v, axis),
            *(X, indices, values),
            static=True,
        )
    weights = np.cos(np.arange(12.0)).reshape(3, 4)
    dx = gradient(lambda x: gg.put_along_axis(x * x, indices, 0.0, axis), X, 1, weights)
    assert_allclose(dx, 2 * X * put(weights, indices, 0.0, axis))


def test_lengths_of_1_are_broadcast_and_what_does_not_fit_is_refused():
    indices = np.array([[1], [0], [2]])
    same(
        lambda x, i: gg.put_along_axis(x, i, 5, 1),
        lambda x, i: put(x, i, 5, 1),
        X,
        indices,
        static=True,
    )
    same(
        lambda x, i: gg.put_along_axis(x, i, 5, 0),
        lambda x, i: put(x, i, 5, 0),
        X,
        indices,
        static=True,
    )
    with gg.Graph():
        counted = gg.nonzero(gg.placeholder((3,)))[0]
        for x, i in ((gg.placeholder((3, 4)), [1]), (gg.stack([counted] * 2, 1), [[1]])):
            with pytest.raises(gg.ShapeError, match="put_along_axis"):
                gg.put_along_axis(x, i, 1, 1)


def test_blocks_along_a_diagonal():
    blocks = [np.ones((2, 1)), np.arange(3), np.float32(4), np.zeros((0, 2)), np.full((1, 0), 1j)]
    wanted = np.zeros((5, 7), "complex128")
    wanted[:2, 0], wanted[2, 1:4], wanted[3, 4] = 1, [0, 1, 2], 4
    same(gg.block_diag, lambda *_: wanted, *blocks, static=True)
    same(gg.block_diag, lambda x: x, X, static=True)
    assert gg.block_diag().shape == (1, 0)
    with gg.Graph():
        assert gg.block_diag(gg.placeholder(("N", 2)), [1.0]).shape == ("N + 1", 3)
        assert gg.block_diag(gg.placeholder((2, "M")), [1.0]).shape == (3, "M + 1")
        with pytest.raises(gg.ShapeError, match="takes matrices, whose numbers of columns"):
            gg.block_diag(gg.placeholder((1, 2, 3)))
    weights = np.arange(28.0).reshape(4, 7)
    found = gradient(lambda x: gg.block_diag([[1.0, 2.0, 3.0]], x * x), X, 1, weights)
    assert_allclose(found, 2 * X * weights[1:, 3:])


@pytest.mark.parametrize("at", [[3, 1], [1, 3, 2], [-1, 1], [4, 0, 9], [-9, 2]])
def test_parts_between_places_in_any_order(at):
    same(lambda x: gg.split(x, at), lambda x: np.split(x, at), X)
    same(lambda x: gg.split(x, at, 1), lambda x: np.split(x, at, 1), X)
    weights = [np.cos(np.arange(p.size)).reshape(p.shape) for p in np.split(X, at, 1)]
    dx = np.zeros_like(X)
    for part, w in zip(np.split(np.arange(12).reshape(3, 4), at, 1), weights, strict=True):
        np.add.at(dx.ravel(), part.ravel(), w.ravel())
    found = gradient(
        lambda x: sum(
            gg.sum(gg.constant(w) * gg.split(x, at, 1)[i]) for i, w in enumerate(weights)
        ),
        X,
    )
    assert_allclose(found, dx)


def test_einsum_takes_numpys_optimize_and_refuses_others():
    for how in (None, True, False, "greedy", "optimal", ["einsum_path", (0, 1)], ("greedy", 100)):
        same(
            lambda x: gg.einsum("ij,kj->ik", x, x, optimize=how),  # noqa: B023
            lambda x: np.einsum("ij,kj->ik", x, x),
            X,
            static=True,
        )
    for how in ("best", 3, ["greedier"]):
        with pytest.raises(ValueError, match="optimize"):
            gg.einsum("ij->i", X, optimize=how)


def test_logsumexp_counts_where_a_mask_holds():
    mask = np.array([True, False, True, True])
    want = np.log(np.exp(X[:, mask]).sum(1))
    same(lambda x: gg.logsumexp(x, 1, where=mask), lambda x: want, X)
    same(
        lambda x: gg.logsumexp(x * 1j, 1, where=mask).real,
        lambda x: np.log(np.exp(x[:, mask] * 1j).sum(1)).real,
        X,
    )
    dx = gradient(lambda x: gg.logsumexp(x, 1, where=mask), X)
    assert_allclose(dx, np.where(mask, np.exp(X - want[:, None]), 0))
    assert_array_equal(gg.evaluate(gg.logsumexp(X, 1, where=False)), [-INF] * 3)
    with pytest.raises(gg.DTypeError, match="bools"):
        gg.logsumexp(X, where=np.ones(4))


# --- cumulative_logsumexp ------------------------------------------------------------------------

LONG = np.array([[-1e4, 1e4, 3.0, 1e4, -INF], [-INF, -INF, 700.0, 710.0, 0.0], [0.0, 1, 2, 3, 4]])
FORMS = [
    pytest.param(b, e, r, marks=[pytest.mark.ci] if b == "jax" and not (e and r) else [])
    for b in BACKENDS
    for e in (False, True)
    for r in (False, True)
]


def shares(x, exclusive, reverse):
    """exp(x[k] - y[j]) by k and j, and y[j], of one row: sums of each place by themselves."""
    n = len(x)
    with np.errstate(all="ignore"):
        y = np.full(n, -INF)
        s = np.zeros((n, n))
        for j in range(n):
            before = np.arange(n) > j if reverse else np.arange(n) < j
            rows = before | (not exclusive and np.arange(n) == j)
            top = np.max(x[rows], initial=-INF)
            if top > -INF:
                y[j] = top + np.log(np.sum(np.exp(x[rows] - top)))
                s[rows, j] = np.exp(x[rows] - y[j])
    return y, s


@pytest.mark.parametrize(("backend", "exclusive", "reverse"), FORMS)
def test_running_logsumexp_and_its_derivatives_are_finite_and_right(backend, exclusive, reverse):
    dy, t = np.cos(np.arange(15.0)).reshape(3, 5), np.sin(np.arange(15.0)).reshape(3, 5)
    with gg.Graph():
        x = gg.placeholder(LONG.shape)
        y = gg.cumulative_logsumexp(x, 1, exclusive=exclusive, reverse=reverse)
        dx = gg.gradients(y, x, gg.constant(dy))
        ddx = gg.gradients(gg.sum(dx * t), x)
        tangent = gg.jvp([y], [x], [gg.constant(t)])[0]
        rows = gg.vmap(lambda r: gg.cumulative_logsumexp(r, exclusive=exclusive, reverse=reverse))(
            x
        )
        found = gg.compile(x, [y, rows, dx, tangent, ddx], backend=backend)(LONG)
    pairs = [shares(row, exclusive, reverse) for row in LONG]
    ys, ss = np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])
    means = np.einsum("bkj,bk->bj", ss, t)
    second = t * np.einsum("bkj,bj->bk", ss, dy) - np.einsum("bkj,bj,bj->bk", ss, dy, means)
    wanted = [ys, ys, np.einsum("bkj,bj->bk", ss, dy), means, second]
    for got, want in zip(found, wanted, strict=True):
        assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_running_logsumexp_of_all_shapes_and_dtypes():
    def numpys(x, axis):
        return np.logaddexp.accumulate(x if axis is not None else x.ravel(), axis=axis or 0)

    for axis in (None, 0, 1, -1):
        same(lambda x: gg.cumulative_logsumexp(x, axis), lambda x: numpys(x, axis), X)  # noqa: B023
    for x in (X.astype("float32"), np.zeros((0, 2)), np.zeros((2, 0)), np.ones((1, 1))):
        same(lambda x: gg.cumulative_logsumexp(x, 1), lambda x: numpys(x, 1), x)
        same(
            lambda x: gg.cumulative_logsumexp(x, 1, exclusive=True, reverse=True)[:, :-1],
            lambda x: numpys(x[:, :0:-1], 1)[:, ::-1],
            x,
        )
    same(gg.cumulative_logsumexp, lambda x: numpys(x.astype(float), 0), np.array([3, 1, 2]))
    weights = np.cos(np.arange(12)).reshape(3, 4)
    fn = lambda x: gg.cumulative_logsumexp(x, 0, exclusive=True)[1:]  # noqa: E731
    wanted = difference(fn, X, weights[1:], 2)
    assert_allclose(gradient(fn, X, 2, weights[1:]), wanted, rtol=1e-5, atol=1e-7)
    with pytest.raises(gg.DTypeError, match="real floating"):
        gg.cumulative_logsumexp(X * 1j, 0)
    for bad in ({"exclusive": "no"}, {"reverse": 2}):
        with pytest.raises(TypeError):
            gg.cumulative_logsumexp(X, 0, **bad)
