"""Complex numbers against NumPy and JAX: values, cuts, gradients of two orders, every backend."""

import numpy as np
import pytest

import graphgrad as gg

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
RNG = np.random.default_rng(5)
POINTS = np.round(RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)), 3)
OTHERS = np.round(RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3)), 3)

ALSO = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "asinh": "arcsinh"}
ALSO |= {"acosh": "arccosh", "atanh": "arctanh"}
UNARY = [
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "abs", "real", "imag"),
    *("conj", "square", "reciprocal", "negative", "sum", "mean", "prod", "var", "std", "cumsum"),
    *("cumprod", "ravel", "transpose"),
]
BINARY = {
    "power": lambda np, z, w: z**w.T,
    "cube": lambda np, z, w: z**3 + w.T**-1,
    "divide": lambda np, z, w: z / w.T,
    "matmul": lambda np, z, w: z @ w,
    "einsum": lambda np, z, w: np.einsum("ij,jk->k", z, w),
    "tensordot": lambda np, z, w: np.tensordot(z, w, axes=1),
    "vdot": lambda np, z, w: np.vdot(z, w),
    "vecdot": lambda np, z, w: np.vecdot(z, w.T),
    "inner": lambda np, z, w: np.inner(z, w.T),
    "outer": lambda np, z, w: np.outer(z, w),
    "where": lambda np, z, w: np.where(np.real(z) > 0, z, w.T),
    "concat": lambda np, z, w: np.concatenate([z * z, w.T], axis=1),
    "index": lambda np, z, w: z[1:, ::2] * w.T[np.asarray([0, 0])][:, 1::2],
}


def both(f, jax_f, arrays):
    """Value, gradient, and gradient of that, of this library and of JAX."""
    v = [np.cos(np.arange(a.size)).reshape(a.shape) * (1 - 0.5j) for a in arrays]
    with jax.enable_x64(True):
        y, back = jax.vjp(jax_f, *map(jnp.asarray, arrays))
        dy = (np.sin(1.0 + np.arange(y.size)).reshape(y.shape) * (1 + 0.5j)).astype(complex)
        dy = (dy if np.iscomplexobj(y) else dy.real).astype(y.dtype)

        def first(*xs):
            return jax.vjp(jax_f, *xs)[1](jnp.asarray(dy))

        expected = [y, *back(jnp.asarray(dy))]
        expected += jax.vjp(first, *map(jnp.asarray, arrays))[1](tuple(map(jnp.asarray, v)))
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        y = f(*xs)
        dxs = gg.gradients(y, xs, dy, unconnected="zero")
        found = [y, *dxs, *gg.gradients(dxs, xs, v, unconnected="zero")]
        runs = [gg.compile(xs, found, backend=b)(*arrays) for b in ("numpy", "llvm", "jax")]
        runs.append(gg.compile(xs, found, fast_math=True)(*arrays))
    return runs, [np.asarray(e) for e in expected]


def compare(f, jax_f, arrays):
    runs, expected = both(f, jax_f, arrays)
    for run in runs:
        for got, want in zip(run, expected, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array_are_those_of_jax(name):
    compare(getattr(gg, name), getattr(jnp, ALSO.get(name, name)), [POINTS])


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_are_those_of_jax(name):
    f = BINARY[name]
    compare(lambda z, w: f(gg, z, w), lambda z, w: f(jnp, z, w), [POINTS, OTHERS])


PARTS = (0.0, -0.0, 0.5, -0.5, 2.0, -2.0)
EDGES = np.array([complex(a, b) for a in PARTS for b in PARTS])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "name", ["sqrt", "log", "log1p", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sign"]
)
def test_cuts_are_where_numpy_has_them(name, backend):
    with gg.Graph():
        z = gg.placeholder(EDGES.shape, complex)
        found = gg.compile(z, getattr(gg, name)(z), backend=backend)(EDGES)
    with np.errstate(all="ignore"):
        wanted = getattr(np, ALSO.get(name, name))(EDGES)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "asinh", "atanh"])
def test_on_a_cut_the_derivative_is_that_of_the_side_one_is_on(name):
    """The side is told by the sign of a zero, which a step along the cut does not change."""
    along = (1e-6, 0.0) if name != "asinh" else (0.0, 1e-6)
    cut = (-3.0, 0.0) if name != "asinh" else (0.0, 3.0)
    for side in (0.0, -0.0):
        points = [[cut[0] or side, cut[1] or side], [-cut[0] or side, -cut[1] or side]]
        ends = [np.array(points) + s * np.array(along) for s in (-1, 0, 1)]
        for end in ends:  # adding 0.0 makes 0.0 of -0.0
            end[end == 0] = side
        left, at, right = [np.ascontiguousarray(e).view(complex)[:, 0] for e in ends]
        with gg.Graph():
            z = gg.placeholder(at.shape, complex)
            y = getattr(gg, name)(z)
            run = gg.compile(z, [y, gg.gradients(y, z, holomorphic=True)])
        with np.errstate(all="ignore"):
            slope = (run(right)[0] - run(left)[0]) / (2e-6 * complex(*np.sign(along)))
        np.testing.assert_allclose(run(at)[1], slope, rtol=1e-6)


def test_the_slope_of_the_argument():
    """Of x / |x|, against differences: JAX has zero there."""
    with gg.Graph():
        z = gg.placeholder(POINTS.shape, complex)
        y, v = gg.sign(z), OTHERS.T
        f = gg.compile(z, y)
        moved = gg.evaluate(gg.jvp(y, z, v), {z: POINTS})
        still = gg.evaluate(gg.gradients(y, z, np.ones_like(POINTS)), {z: 0 * POINTS})
    np.testing.assert_allclose(moved, (f(POINTS + 1e-6 * v) - f(POINTS - 1e-6 * v)) / 2e-6, 1e-6)
    np.testing.assert_array_equal(still, 0)


def test_the_root_of_a_square_keeps_its_phase_in_fast_math():
    with gg.Graph():
        z = gg.placeholder((3, 4), complex)
        y = gg.sqrt(gg.square(z))
        found = gg.compile(z, y, fast_math=True)(POINTS)
    np.testing.assert_allclose(found, np.sqrt(POINTS**2))


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_both_parts_are_rounded(decimals):
    z = np.array([1.25 + 15.5j, -0.75 - 26.0j, complex(np.inf, 1.0)])
    np.testing.assert_array_equal(gg.evaluate(gg.round(z, decimals)), np.round(z, decimals))
    with gg.Graph():
        x = gg.placeholder((3,), complex)
        dx = gg.gradients(gg.round(x, decimals), x, np.ones(3, complex))
        assert gg.evaluate(dx, {x: z})[:2].tolist() == [0, 0]
