"""Functions of Hermitian matrices whose eigenvalues repeat, beside mpmath and differences."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import linalg
from graphgrad.differentiate.matrix_functions import divided_differences

mpmath = pytest.importorskip("mpmath")
INSTALLED = {"llvm": "llvmlite", "jax": "jax"}
BACKENDS = ["numpy", *[b for b, package in INSTALLED.items() if importlib.util.find_spec(package)]]
RNG = np.random.default_rng(11)
Q = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
W, E = RNG.normal(size=(2, 4, 4))
E = E + E.T
FUNCTIONS = {
    "exp": (gg.exp, mpmath.exp),
    "log": (gg.log, mpmath.log),
    "sqrt": (gg.sqrt, mpmath.sqrt),
    "w": (lambda w: w, lambda w: w),
    "w - 1": (lambda w: w - 1, lambda w: w - 1),
    "square": (gg.square, lambda w: w**2),
    "cube": (lambda w: w**3, lambda w: w**3),
    "reciprocal": (lambda w: 1 / w, lambda w: 1 / w),
    "sin": (gg.sin, mpmath.sin),
    "cos(9 w)": (lambda w: gg.cos(9 * w), lambda w: mpmath.cos(9 * w)),
    "tanh": (gg.tanh, mpmath.tanh),
    "arctan": (gg.arctan, mpmath.atan),
    "sigmoid": (gg.nn.sigmoid, lambda w: 1 / (1 + mpmath.exp(-w))),
    "w exp(-w)": (lambda w: w * gg.exp(-w), lambda w: w * mpmath.exp(-w)),
    "w**0.3": (lambda w: w**0.3, lambda w: w ** mpmath.mpf(0.3)),
}
EIGENVALUES = {
    "one": [2, 2, 2, 2],
    "two pairs": [1, 1, 3, 3],
    "nearly equal": [1, 1 + 1e-9, 1 + 1e-4, 1.2],
}


def symmetric(values):
    a = (Q * values) @ Q.T
    return (a + a.T) / 2


def in_many_digits(f, a):
    """sum(W * f(a + t E)) at t = 0, and its first two derivatives."""
    with mpmath.workdps(80):
        step = mpmath.mpf(10) ** -18

        def at(t):
            w, v = mpmath.eigsy(mpmath.matrix(a.tolist()) + t * mpmath.matrix(E.tolist()))
            y = v * mpmath.diag([f(x) for x in w]) * v.T
            return mpmath.fsum(W[i, j] * y[i, j] for i in range(4) for j in range(4))

        up, mid, down = at(step), at(0), at(-step)
        found = (mid, (up - down) / (2 * step), (up - 2 * mid + down) / step**2)
        return [float(y) for y in found]


def of_orders(f, dtype="float64"):
    """x, and sum(W * f(x)) with its first two derivatives along E."""
    x = gg.placeholder((4, 4), dtype)
    ys = [gg.sum(gg.constant(W, dtype) * linalg.matrix_function(x, f))]
    for _ in range(2):
        ys.append(gg.sum(gg.gradients(ys[-1], x) * gg.constant(E, dtype)))
    return x, ys


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_orders_are_those_of_many_digits(name):
    f, exact = FUNCTIONS[name]
    with gg.Graph():
        x, ys = of_orders(f)
        of = gg.compile(x, ys)
    for values in EIGENVALUES.values():
        a = symmetric(values)
        np.testing.assert_allclose(of(a), in_many_digits(exact, a), rtol=2e-9, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_backend_has_them(backend, dtype):
    with gg.Graph():
        x, ys = of_orders(gg.exp, dtype)
        a = symmetric([1, 1, 2, 2])
        found = gg.compile(x, ys, backend=backend)(a.astype(dtype))
    want = in_many_digits(mpmath.exp, a)
    np.testing.assert_allclose(found, want, rtol=1e-9 if dtype == "float64" else 1e-3)


@pytest.mark.parametrize("f", [gg.sign, gg.abs, gg.nn.relu])
def test_a_jump_or_kink_between_two_values_is_seen(f):
    at = np.array([-1e-9, 1e-9, 0.5, -2.0])
    with gg.Graph():
        w = gg.constant(at)
        found, values = gg.evaluate([divided_differences(f, w, 1), f(w)])
    apart = ~np.eye(4, dtype=bool)
    gaps = np.where(apart, at[:, None] - at, 1)
    want = (values[:, None] - values) / gaps
    np.testing.assert_allclose(found[apart], want[apart], rtol=1e-12)


def test_divided_differences_of_every_spacing_keep_their_digits():
    at = np.array([1, 1 + 1e-12, 1 + 1e-6, 1.01, 1.3, 2, 30])
    with gg.Graph():
        found = gg.evaluate(divided_differences(gg.log, gg.constant(at), 2))
    with mpmath.workdps(60):

        def exact(points):
            a, b, c = sorted(points)
            if a == c:
                return -1 / (2 * a**2)
            slopes = [
                1 / low if low == high else (mpmath.log(high) - mpmath.log(low)) / (high - low)
                for low, high in ((a, b), (b, c))
            ]
            return (slopes[1] - slopes[0]) / (c - a)

        ws = [mpmath.mpf(float(w)) for w in at]
        want = [[[float(exact((a, b, c))) for c in ws] for b in ws] for a in ws]
    np.testing.assert_allclose(found, want, rtol=2e-13)


@pytest.mark.ci
def test_third_order_of_the_exponential():
    """Of exp at 0 along E three times it is the sum of W * E**3."""
    with gg.Graph():
        x, ys = of_orders(gg.exp)
        third = gg.sum(gg.gradients(ys[-1], x) * gg.constant(E))
        found = gg.evaluate(third, {x: np.zeros((4, 4))})
    np.testing.assert_allclose(found, np.sum(W * (E @ E @ E)), rtol=1e-12)


def test_complex_matrices_and_complex_functions():
    c = RNG.normal(size=(2, 3, 3)) + 1j * RNG.normal(size=(2, 3, 3))
    q, along = np.linalg.qr(c[0])[0], c[1] + c[1].conj().T
    a = (q * [1, 1, 2]) @ q.conj().T
    a = (a + a.conj().T) / 2
    with gg.Graph():
        x = gg.placeholder((3, 3), "complex128")
        made = linalg.matrix_function(x, lambda w: gg.exp(1j * w))
        y = gg.sum(gg.real(gg.constant(c[0]) * made))
        slope = gg.sum(gg.real(gg.gradients(y, x) * gg.constant(along)))
        curve = gg.sum(gg.real(gg.gradients(slope, x) * gg.constant(along)))
        found = gg.evaluate([y, slope, curve], {x: a})

    def at(t):
        w, v = np.linalg.eigh(a + t * along)
        return np.sum(c[0] * ((v * np.exp(1j * w)) @ v.conj().T)).real

    h = 1e-3
    want = [at(0), (at(h) - at(-h)) / (2 * h), (at(h) - 2 * at(0) + at(-h)) / h**2]
    np.testing.assert_allclose(found, want, rtol=1e-4)


def test_stacks_vmap_and_forward_mode():
    stack = np.stack([np.eye(4), symmetric([1, 2, 2, 3])])
    with gg.Graph():
        one, xs = gg.placeholder((4, 4)), gg.placeholder((2, 4, 4))

        def gradient(x):
            return gg.gradients(gg.sum(gg.constant(W) * linalg.sqrtm(x)), x)

        single = gg.compile(one, gradient(one))
        want = np.stack([single(a) for a in stack])
        for made in (gradient(xs), gg.vmap(gradient)(xs)):
            np.testing.assert_allclose(gg.evaluate(made, {xs: stack}), want, atol=1e-13)
        tangent = gg.jvp(linalg.powm(one, 0.5), one, gg.constant(E))
        np.testing.assert_allclose(gg.evaluate(tangent, {one: 4 * np.eye(4)}), E / 4, atol=1e-14)


def test_roots_logarithms_and_powers():
    a = symmetric([1, 1, 4, 4])
    with gg.Graph():
        ys = [linalg.sqrtm(a), linalg.logm(a), linalg.powm(a, -1), linalg.powm(a, 2)]
        root, logarithm, inverse, square = gg.evaluate(ys)
        again = gg.evaluate(linalg.matrix_function(logarithm, gg.exp))
    np.testing.assert_allclose(root @ root, a, atol=1e-13)
    np.testing.assert_allclose(again, a, atol=1e-13)
    np.testing.assert_allclose(inverse @ a, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(square, a @ a, atol=1e-13)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (3, TypeError, "takes a function"),
        (lambda w: 3.0, TypeError, "returns a tensor"),
        (lambda w: gg.cumsum(w, -1), ValueError, "element by element"),
        (lambda w: w * gg.constant([1.0, 2.0, 3.0]), ValueError, "element by element"),
        (lambda w: w > 0, ValueError, "keep the shape and precision"),
    ],
)
def test_other_functions_are_refused_and_leave_nothing(f, error, words):
    with gg.Graph() as graph:
        x = gg.placeholder((3, 3))
        before = len(graph.nodes)
        with pytest.raises(error, match=words):
            linalg.matrix_function(x, f)
        assert len(graph.nodes) == before


def test_a_function_of_another_tensor_is_refused():
    with gg.Graph():
        x, p = gg.placeholder((3, 3)), gg.placeholder(())
        with pytest.raises(ValueError, match="from outside"):
            linalg.matrix_function(x, lambda w: w * p)
        for power, error in ((p, TypeError), (True, TypeError), (np.inf, ValueError)):
            with pytest.raises(error, match="powm"):
                linalg.powm(x, power)
