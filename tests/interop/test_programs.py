"""Reports of what opening makes of a program, and functions of JAX with rules put on them."""

import numpy as np
import pytest

import graphgrad as gg

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

rng = np.random.default_rng(0)
PARAMETERS = {"w": rng.normal(size=(3, 4)).astype("float32"), "b": np.zeros(4, "float32")}
X = rng.normal(size=(2, 3)).astype("float32")


@jax.custom_jvp
def doubled(x):
    return x**2


doubled.defjvps(lambda dx, y, x: 4 * x**2 * dx)


def network(params, x, *, scale=1.0, train=False):
    h = jax.nn.relu(x @ params["w"] + params["b"])
    if train:
        h = 2 * h
    return {"y": (h * scale).sum(-1), "n": jnp.argmax(h), "rest": (h, None)}


def guided(graph):
    graph.mark(gg.select.op("Relu"), gg.rules.guided())


def nothing(graph):
    """Marks nothing."""


# --- reports ------------------------------------------------------------------------------------


def reported(x):
    def step(carry, row):
        return doubled(carry) + row, jnp.tanh(row)

    noise = jax.random.uniform(jax.random.key(0), x.shape[1:])
    return lax.scan(step, noise, x)[1] + jax.nn.relu(x)


def test_a_report_says_what_became_of_what():
    report = gg.interop.open_report(reported, jax.ShapeDtypeStruct((2, 3), "float32"))
    rows = {row.theirs: row for row in report.rows}
    line = reported.__code__.co_firstlineno
    assert rows["scan"].ours["Scan"] == rows["scan"].count == 1
    assert rows["tanh"] == gg.interop.OpenedRow(
        "tanh", {"Tanh": 1}, 1, f"test_programs.py:{line + 2}"
    )
    assert rows["jax.nn.relu"].ours == {"Relu": 1}
    assert [(r.theirs, r.count) for r in report.rules] == [("doubled", 1)]
    (draw,) = report.draws
    assert (draw.theirs, draw.where) == ("random_bits", f"test_programs.py:{line + 4}")
    assert (report.missing, report.weights) == ((), {})
    shown = str(report)
    for part in ("count  theirs", "Tanh", "rules that become regions", "random numbers"):
        assert part in shown


def test_a_report_says_what_is_missing_and_builds_nothing():
    def fn(params, x):
        return jnp.linalg.eig(x)[1].real @ params["w"] + x.at[0].apply(jnp.sin)

    with gg.Graph() as graph:
        x = gg.placeholder((3, 3))
        report = gg.interop.open_report(fn, {"w": np.eye(3)}, x)
        assert len(graph) == 1
    assert [(r.theirs, r.count) for r in report.missing] == [("eig", 1), ("scatter", 1)]
    assert {"eig", "scatter"}.isdisjoint(row.theirs for row in report.rows)
    assert {name: type.shape for name, type in report.weights.items()} == {"w": (3, 3)}
    assert "cannot be opened:\n  eig: 1 time, first at test_programs.py:" in str(report)
    assert repr(report).endswith(" nodes, 2 cannot be opened>")
    constants = gg.interop.open_report(fn, {"w": np.eye(3)}, x, parameters="constants")
    assert constants.weights == {}


def test_a_type_stands_for_a_tensor_in_reports_only():
    with gg.Graph() as graph, pytest.raises(TypeError, match="pass a placeholder"):
        gg.interop.open_jax(lambda w, x: w + x, np.ones(3), jax.ShapeDtypeStruct((3,), "float32"))
    assert len(graph) == 0


# --- the way back -------------------------------------------------------------------------------


def tree_close(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, 1e-5, 1e-6)


def guided_by_hand(params, x, scale):
    """The gradient of -sum(y) by guided backpropagation: what is negative does not pass."""
    h = x @ params["w"] + params["b"]
    dh = np.where(h > 0, np.maximum(-scale, 0.0), 0.0).astype("float32") * np.ones_like(h)
    return {"w": x.T @ dh, "b": dh.sum(0)}, dh @ params["w"].T


@pytest.mark.parametrize("scale", [1.0, -0.5])
def test_S04_S44_values_are_those_of_the_function_and_gradients_of_the_rules(scale):
    fn = gg.interop.retrofit(network, guided)
    tree_close(fn(PARAMETERS, X, scale=scale), network(PARAMETERS, X, scale=scale))

    def loss(params, x):
        return -fn(params, x, scale=scale)["y"].sum()

    for grad in (jax.grad(loss, (0, 1)), jax.jit(jax.grad(loss, (0, 1)))):
        tree_close(
            grad(PARAMETERS, X), jax.tree.map(jnp.asarray, guided_by_hand(PARAMETERS, X, scale))
        )
    mapped = jax.vmap(jax.grad(loss, (0, 1)), (None, 0))(PARAMETERS, X[:, None])
    tree_close(mapped[1][:, 0], jnp.asarray(guided_by_hand(PARAMETERS, X, scale)[1]))


def test_it_is_opened_once_for_each_signature():
    opened = []
    fn = gg.interop.retrofit(network, opened.append, PARAMETERS, X)
    assert len(opened) == 1
    for _ in range(2):
        fn(PARAMETERS, X + 1)
        fn(PARAMETERS, X, train=True)
        fn(PARAMETERS, X[:1])
        fn(PARAMETERS, X, scale=2.0)
    assert len(opened) == 4
    tree_close(fn(PARAMETERS, X, train=True), network(PARAMETERS, X, train=True))


def test_S23_S44_second_orders_go_through_the_rule():
    def fn(x):
        return jnp.sum(jnp.round(x) ** 3)

    through = gg.interop.retrofit(fn, lambda graph: graph.mark("Round", gg.rules.ste()))
    second = jax.grad(lambda x: jnp.sum(jax.grad(through)(x) ** 2))(X)
    np.testing.assert_allclose(second, 2 * 3 * np.round(X) ** 2 * 6 * np.round(X), 1e-5)
    once = gg.interop.retrofit(fn, nothing, gradients=1)
    with pytest.raises(gg.GradientError, match=r"retrofit\(gradients=2\)"):
        jax.grad(lambda x: jnp.sum(jax.grad(once)(x) ** 2))(X)


def test_keys_and_scans_go_through():
    def draw(key, x):
        return jax.random.split(key)[0], x * jax.random.normal(key, x.shape, x.dtype)

    fn, key = gg.interop.retrofit(draw, nothing), jax.random.key(3)

    def last(f):
        return lax.scan(lambda c, _: (f(*c), c[1].sum()), (key, X), None, length=3)[1]

    np.testing.assert_allclose(last(fn), last(draw), 1e-6)
    assert (
        jax.random.key_data(fn(key, X)[0]).tolist() == jax.random.key_data(draw(key, X)[0]).tolist()
    )


def test_numbers_that_jit_traces_keep_their_weak_type():
    with jax.enable_x64(True):
        fn = gg.interop.retrofit(lambda x, s: x * s, nothing)
        assert jax.jit(fn)(X, 0.5).dtype == "float32"
        assert fn(X.astype("float64"), X).dtype == "float64"


def test_what_cannot_be_is_said():
    with pytest.raises(TypeError, match="takes a function of JAX or a module"):
        gg.interop.retrofit(network, "Relu")
    with pytest.raises(ValueError, match="gradients= is the number of"):
        gg.interop.retrofit(network, guided, gradients=-1)
    with pytest.raises(gg.RegionError, match="selects nothing"):
        gg.interop.retrofit(jnp.sin, guided, X)
    with pytest.raises(gg.GraphError, match=r"closes over a ~float32\[\]"):
        jax.grad(lambda w: gg.interop.retrofit(lambda x: jnp.sum(x * w), nothing)(X))(1.0)
