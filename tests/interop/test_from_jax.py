"""JAX functions as ops: values, gradients of any order, overrides, files."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

X = np.random.default_rng(0).normal(size=(4, 3))
W = np.random.default_rng(1).normal(size=(3, 2))


def layer(params, x):
    """A tree in, a tree out, an integer among them."""
    h = jnp.tanh(x @ params["w"])
    return {"h": h, "rest": [jnp.sum(h**2), jnp.argmax(h, 1)]}


def same(x, w):
    """The layer as a graph."""
    h = gg.tanh(x @ w)
    return {"h": h, "rest": [gg.sum(h**2), gg.argmax(h, 1)]}


def derivatives(made, x, w):
    """Of two orders, backward and forward."""
    loss = gg.sum(made["h"] ** 3) + made["rest"][0]
    dx, dw = gg.gradients(loss, [x, w])
    second = gg.gradients(gg.sum(dw**2), [x, w])
    return [made, dx, dw, *second, gg.jvp(loss, [w], [W]), gg.jvp(dw, [w], [W])]


@pytest.mark.parametrize(
    ("backend", "rows"), [("numpy", "N"), ("llvm", 4), ("jax", None)], ids=lambda given: str(given)
)
def test_a_jax_function_is_an_op_of_any_order_on_every_backend(backend, rows):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    with gg.Graph():
        x, w = gg.placeholder((rows, 3), name="x"), gg.placeholder((3, 2), name="w")
        made = gg.interop.from_jax(layer, {"w": w}, x)
        assert [t.shape for t in (made["h"], *made["rest"])] == [(x.shape[0], 2), (), x.shape[:1]]
        pairs = [derivatives(made, x, w), derivatives(same(x, w), x, w)]
        found = gg.compile([x, w], pairs, backend=backend)(X, W)
    for got, wanted in zip(*map(jax.tree.leaves, found), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_a_jax_function_in_an_override_and_a_rule_that_asks_for_its_default():
    for asks, factor in ((False, 5.0), (True, 2.0)):

        def rule(site, dy, asks=asks):
            return [2.0 * dx for dx in site.default(dy)] if asks else 5.0 * dy

        with gg.Graph():
            x = gg.placeholder((3,), name="x")
            with gg.override_gradient(rule):
                y = gg.interop.from_jax(jnp.exp, x)
            (dx,) = gg.gradients([gg.sum(y)], [x])
            found = gg.evaluate(dx, {x: X[0]})
            fn = gg.compile(x, gg.sum(y)).as_jax()
        expected = factor * (np.exp(X[0]) if asks else np.ones(3))
        np.testing.assert_allclose(found, expected)
        with jax.enable_x64(True):
            np.testing.assert_allclose(jax.grad(lambda x, fn=fn: fn([x])[0])(X[0]), expected)


def test_a_custom_gradient_of_jax_is_the_gradient_of_the_op():
    @jax.custom_vjp
    def step(x):
        return jnp.round(x)

    step.defvjp(lambda x: (step(x), x), lambda x, dy: (3.0 * dy,))
    x = gg.constant(X[0])
    y = gg.interop.from_jax(step, x)
    np.testing.assert_array_equal(gg.evaluate(gg.gradients(gg.sum(y), x)), np.full(3, 3.0))


def test_a_jax_function_in_a_batch_has_no_warning_and_shares_what_is_shared():
    with gg.Graph():
        w = gg.constant(W)
        per = gg.vmap(lambda x: gg.interop.from_jax(lambda a, b: jnp.cumsum(a) @ b, x, w))
        y = per(gg.constant(X))
        dw = gg.gradients(gg.sum(y), w)
        found = gg.evaluate([y, dw])
    np.testing.assert_allclose(found[0], np.cumsum(X, 1) @ W)
    np.testing.assert_allclose(found[1], np.outer(np.cumsum(X, 1).sum(0), np.ones(2)))


def test_results_of_a_jax_function_share_no_memory_with_its_inputs():
    x = gg.placeholder((64, 64), name="x")
    f = gg.compile(x, gg.interop.from_jax(lambda a: (a, a.T), x), backend="numpy")
    given = np.zeros((64, 64))
    for y in f(given):
        y[:] = 1.0
    assert not given.any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_jax_function_keeps_the_dtype_of_the_graph(dtype):
    z = gg.constant(X[0].astype(dtype))
    y = gg.interop.from_jax(lambda z: jnp.sum(jnp.abs(jnp.sin(z)) ** 2), z)
    found = gg.gradients(y, z)
    wanted = gg.gradients(gg.sum(gg.abs(gg.sin(z)) ** 2), z)
    got, expected = gg.evaluate([found, wanted])
    assert got.dtype == expected.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("fn", "shapes", "error", "said"),
    [
        (lambda a, b: a + b, [(None,), (None,)], gg.ShapeError, "(?s)<lambda>.*one name"),
        (lambda a: a @ a, [(2, 3)], TypeError, "contracting dimensions"),
        (lambda a: jax.random.key(0), [()], gg.DTypeError, "tensors hold numbers"),
        ("sin", [()], TypeError, "takes a function"),
    ],
)
def test_what_a_jax_function_cannot_be_is_said(fn, shapes, error, said):
    with pytest.raises(error, match=said):
        gg.interop.from_jax(fn, *[gg.placeholder(shape) for shape in shapes])


def test_a_jax_function_without_a_gradient_says_so_when_it_is_needed():
    x = gg.placeholder((), name="x")
    y = gg.interop.from_jax(lambda x: jax.lax.while_loop(lambda v: v < 9, lambda v: v * 2, x), x)
    assert gg.evaluate(y, {x: 1.0}) == 16.0
    with pytest.raises(ValueError, match="Reverse-mode") as caught:
        gg.gradients(y, x)
    assert any("test_from_jax.py" in note for note in caught.value.__notes__)


def test_a_jax_function_is_saved_by_the_name_that_it_is_registered_under(tmp_path):
    def wave(x):
        return x * jnp.sin(x)

    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        dx = gg.gradients(gg.sum(gg.interop.from_jax(wave, x)), x)
        f = gg.compile(x, dx)
    with pytest.raises(gg.FileError, match="register_function"):
        gg.save(tmp_path / "wave.gg", g, functions={"f": f})
    gg.register_function("test_from_jax/wave")(wave)
    gg.save(tmp_path / "wave.gg", g, functions={"f": f})
    loaded = gg.load(tmp_path / "wave.gg").functions["f"]
    np.testing.assert_array_equal(loaded(X[0]), f(X[0]))
    with pytest.raises(gg.ExportError, match=r"JaxFunction\('wave'"):
        gg.export_numpy(f, tmp_path / "wave.py")


def test_S13_what_is_meant_for_its_inside_is_an_error_that_says_how_to_open_it():
    def rectified(x):
        return jax.nn.relu(x)

    said = r"(?s)'rectified' \(test_from_jax.py:\d+\).*is one node.*gg\.interop\.open_jax"
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        y = gg.interop.from_jax(rectified, x)
        with pytest.raises(gg.RegionError, match=said):
            graph.mark(gg.select.op("Relu"), gg.rules.guided())
        with pytest.raises(gg.RegionError, match=said):
            gg.gradients(gg.sum(y), x, overrides={gg.select.op("Relu"): gg.rules.guided()})
        with (
            pytest.raises(gg.RegionError, match=said),
            gg.gradient_override_map({"Relu": gg.rules.guided()}),
        ):
            gg.interop.from_jax(rectified, x)
