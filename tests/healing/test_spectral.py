"""Functions of matrices by eigenvectors, healed: gradients where eigenvalues repeat."""

import copy
import pickle

import numpy as np
import pytest

import graphgrad as gg

rng = np.random.default_rng(3)
Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
P = np.linalg.qr(rng.normal(size=(6, 6)))[0]
W, E = rng.normal(size=(2, 4, 4))
E = E + E.T
V, F = rng.normal(size=(2, 4, 6))
REPEATED = {
    "all": [2.0, 2.0, 2.0, 2.0],
    "pairs": [1.0, 1.0, 3.0, 3.0],
    "nearly": [1.0, 1.0 + 1e-9, 2.0, 2.5],
}
FUNCTIONS = {
    "log": gg.log,
    "sqrt": gg.sqrt,
    "exp": gg.exp,
    "square": lambda w: w * w,
    "shrunk": lambda w: w / (w + 1.0),
}
ODD = {
    "tanh": gg.tanh,
    "cube": lambda s: s**3,
    "ridge": lambda s: s / (s * s + 1.0),
    "itself": lambda s: 2.0 * s,
}
SPELLINGS = {
    "scaled columns": lambda w, v, f: (v * f(w)) @ v.T,
    "the other way round": lambda w, v, f: (f(w)[None, :] * v) @ gg.transpose(v),
    "scaled rows": lambda w, v, f: v @ (f(w)[:, None] * v.T),
    "a diagonal matrix": lambda w, v, f: v @ gg.diag(f(w)) @ v.T,
    "its parts": lambda w, v, f: (v * f(w)) @ v.T,
}


def along(y, x, direction):
    """y and its first two derivatives along a direction, of a healed sum."""
    made = gg.heal(y)
    ys = [made.ys]
    for _ in range(2):
        ys.append(gg.sum(gg.gradients(ys[-1], x) * direction))
    return ys, [site.name for site in made.sites]


def differences(f, a, e, h=1e-4):
    """f and its first two derivatives along e, by differences of the fourth order."""
    y = [f(a + k * h * e) for k in (-2, -1, 0, 1, 2)]
    first = (y[0] - 8 * y[1] + 8 * y[3] - y[4]) / (12 * h)
    second = (-y[0] + 16 * y[1] - 30 * y[2] + 16 * y[3] - y[4]) / (12 * h * h)
    return [y[2], first, second]


@pytest.mark.parametrize("values", REPEATED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_two_orders_where_eigenvalues_repeat(name, values):
    f = FUNCTIONS[name]
    a = (Q * REPEATED[values]) @ Q.T
    a = (a + a.T) / 2
    with gg.Graph():
        x = gg.placeholder((4, 4))
        w, v = gg.linalg.eigh(x)
        y = gg.sum(W * ((v * f(w)) @ v.T))
        plain = gg.compile(x, y)
        ys, fired = along(y, x, E)
    assert fired == ["matrix_function"]
    np.testing.assert_allclose(gg.compile(x, ys)(a), differences(plain, a, E), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("values", [[2.0, 2.0, 1.0, 1.0], [3.0, 1.0, 1.0, 0.0]])
@pytest.mark.parametrize("name", ODD)
def test_gradients_of_two_orders_where_singular_values_repeat(name, values):
    f = ODD[name]
    a = (Q * values) @ P[:4]
    with gg.Graph():
        x = gg.placeholder((4, 6))
        u, s, vh = gg.linalg.svd(x, full_matrices=False)
        y = gg.sum(V * ((u * f(s)) @ vh))
        plain = gg.compile(x, y)
        ys, fired = along(y, x, F)
    assert fired[-1] == "odd_matrix_function"
    np.testing.assert_allclose(gg.compile(x, ys)(a), differences(plain, a, F), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", SPELLINGS)
def test_any_spelling_is_met(name):
    with gg.Graph():
        x = gg.placeholder((3, 3))
        w, v = gg.linalg.eigh(x)
        y = SPELLINGS[name](w, v, lambda w: gg.exp(-0.5 * w) + 1.0)
        made = gg.heal(y)
        both = [y, made.ys, gg.gradients(gg.sum(made.ys), x)]
    assert [site.name for site in made.sites] == ["matrix_function"]
    written, healed, dx = gg.compile(x, both)(2.0 * np.eye(3))
    np.testing.assert_allclose(healed, written, rtol=1e-14)
    np.testing.assert_allclose(np.tril(dx), dx)
    assert np.isfinite(dx).all()
    assert gg.heal(made.ys).sites == ()


def test_stacks_of_matrices():
    x = gg.placeholder((2, 3, 3))
    w, v = gg.linalg.eigh(x)
    made = gg.heal((v * gg.log(w)[..., None, :]) @ gg.matrix_transpose(v))
    assert [site.name for site in made.sites] == ["matrix_function"]
    values = gg.compile(x, [made.ys, gg.gradients(gg.sum(made.ys), x)])(np.stack([np.eye(3)] * 2))
    assert all(np.isfinite(a).all() for a in values)


def test_what_is_no_function_of_the_matrix_is_left_as_it_is():
    x, z = gg.placeholder((3, 3)), gg.placeholder((3,))
    w, v = gg.linalg.eigh(x)
    u, s, vh = gg.linalg.svd(x)
    for y in (
        (v * z) @ v.T,  # another vector
        (v * gg.cumsum(w)) @ v.T,  # not element by element
        v.T @ (gg.exp(w)[:, None] * v),  # the other order
        (u * gg.exp(s)) @ vh,  # not odd
        (u * (1.0 / s)) @ vh,  # a pole at 0
        (v * gg.exp(s)) @ v.T,
    ):
        assert gg.heal(y).sites == ()
    with gg.override_gradient(lambda site, dy: 3.0 * dy):
        g = gg.exp(w)
    assert gg.heal((v * g) @ v.T).sites == ()


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle", "save"])
def test_S27_a_matrix_function_travels(how, tmp_path):
    x = gg.placeholder((3, 3), name="x")
    w, v = gg.linalg.eigh(x)
    made = gg.heal(gg.sum(W[:3, :3] * ((v * gg.exp(w)) @ v.T))).ys
    graph = x.graph
    if how == "save":
        gg.save(tmp_path / "graph.gg", graph)
        there = gg.load(tmp_path / "graph.gg").graph
    elif how == "pickle":
        there = pickle.loads(pickle.dumps(graph))
    else:
        there = graph.copy() if how == "copy" else copy.deepcopy(graph)
    pairs = [(x, made), (there.tensor("x:0"), there.nodes[made.node.index].outputs[0])]
    slopes = [gg.compile(a, gg.gradients(y, a))(np.eye(3)) for a, y in pairs]
    np.testing.assert_allclose(slopes[1], slopes[0])
    assert np.isfinite(slopes[0]).all()


@pytest.mark.parametrize(
    ("values", "heals"),
    [([1.0, 2.0, 5.0], False), ([1.0, 1.0, 5.0], True), ([1.0, 1.0 + 1e-9, 5.0], True)],
)
def test_at_feeds_it_is_healed_where_values_are_near(values, heals):
    pytest.importorskip("mpmath")
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    at = (q * np.array(values)) @ q.T
    x = gg.placeholder((3, 3))
    w, v = gg.linalg.eigh(x)
    assert bool(gg.heal((v * gg.exp(w)) @ v.T, at={x: at}).sites) is heals
    u, s, vh = gg.linalg.svd(x, full_matrices=False)
    made = gg.heal((u * s**3) @ vh, at={x: at})
    assert bool(made.sites) is heals
    assert all(site.lost > 8 for site in made.sites)


def test_at_feeds_a_small_singular_value_is_near_to_itself_with_the_other_sign():
    pytest.importorskip("mpmath")
    x = gg.placeholder((2, 2))
    u, s, vh = gg.linalg.svd(x, full_matrices=False)
    cube = (u * s**3) @ vh
    assert gg.heal(cube, at={x: np.diag([1.0, 1e-6])}).sites
    assert not gg.heal(cube, at={x: np.diag([1.0, 0.5])}).sites
