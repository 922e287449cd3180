"""Compiled functions as functions of JAX: values, derivatives by the rules, state, 64 bits."""

import numpy as np
import pytest

import graphgrad as gg

from .. import opens

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.array([0.4, -0.7, 1.1])
ONE = np.ones(1)


@pytest.fixture
def wide():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def narrow():
    with jax.enable_x64(False):
        yield


def rule(site, dy):
    """Not linear, and of what went in: nothing else gives it by chance."""
    return 3.0 * dy * dy + site.inputs[0]


def model(dtype="float64"):
    """x, w, and a loss with an override in its middle."""
    x = gg.placeholder(("N",), dtype, name="x")
    w = gg.variable(np.array([0.5], dtype), name="w")
    h = w * x
    with gg.override_gradient(rule):
        y = gg.tanh(h)
    return x, w, gg.sum(y * y * y)


def training():
    """A step that writes its variable and draws, and what it takes."""
    with gg.Graph(seed=3):
        x, w, loss = model()
        noisy = loss + gg.sum(gg.random.normal((2,)) * w)
        dw = gg.gradients(noisy, w)
        return gg.compile(x, [noisy, w], updates={w: w - 0.1 * dw}, backend="numpy")


# --- values and structure -----------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [[X], (X,), {"x": X}, X], ids=["list", "tuple", "dict", "array"])
def test_jax_function_takes_inputs_in_order_by_name_or_the_only_one(wide, inputs):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, {"loss": loss, "none": None, "both": (x, loss)})
    outputs, state = f.as_jax()(inputs, f.state_tree())
    expected = f(X)
    assert outputs["none"] is None
    np.testing.assert_allclose(outputs["loss"], expected["loss"], rtol=1e-14)
    np.testing.assert_array_equal(outputs["both"][0], X)
    assert list(state) == ["w"]


def test_jax_function_without_state_may_leave_it_out(wide):
    x = gg.placeholder((3,), "int32", name="x")
    f = gg.compile([x], x * 2)
    outputs, state = f.as_jax()([np.arange(3)])
    np.testing.assert_array_equal(outputs, [0, 2, 4])
    assert (outputs.dtype, state) == (np.int32, {})


@pytest.mark.parametrize(
    ("inputs", "state", "error", "said"),
    [
        ([X, X], {"w": ONE}, TypeError, "takes 1 arrays"),
        ({"y": X}, {"w": ONE}, TypeError, "no input is called 'y'"),
        ([1j * X], {"w": ONE}, gg.DTypeError, "'x' .* cannot take complex128"),
        ([X[None]], {"w": ONE}, gg.ShapeError, "'x' .* got an array of shape"),
        ([X], {}, gg.StateError, "missing: 'w'"),
        ([X], {"w": ONE, "v": ONE}, gg.StateError, "unknown: 'v'"),
        ([X], {"w": X}, gg.ShapeError, "'w' .* got an array of shape"),
        ([X], [1.0], gg.StateError, "a dict by name"),
    ],
)
def test_jax_function_says_what_does_not_fit(wide, inputs, state, error, said):
    with gg.Graph():
        x, _, loss = model()
        fn = gg.compile(x, loss).as_jax()
    with pytest.raises(error, match=said):
        jax.jit(fn)(inputs, state)


def test_jax_function_checks_lengths_across_inputs(wide):
    with gg.Graph():
        x, y = gg.placeholder(("N",), name="x"), gg.placeholder(("N", None), name="y")
        fn = gg.compile([x, y], gg.sum(x) + gg.sum(y)).as_jax()
    with pytest.raises(gg.ShapeError, match="length 'N' is 3 in 'x'"):
        fn([X, np.ones((2, 2))])


def test_jax_function_checks_lengths_that_nobody_named(wide):
    with gg.Graph():
        x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
        fn = gg.compile([x, y], x * y).as_jax()
    with pytest.raises(gg.ShapeError) as error:
        fn([X, X[:2]])
    assert any("built at test_jax_functions.py" in note for note in error.value.__notes__)


def test_jax_function_refuses_what_may_have_effects():
    x = gg.placeholder((), name="x")
    y = gg.cond(x > 0, lambda: gg.py_function(np.sin, [x], [((), "float64")]), lambda: x)
    with pytest.raises(gg.GraphError, match=r"(?s)pure.*PyFunction\('sin'.*from_jax"):
        gg.compile(x, y).as_jax()


@pytest.mark.parametrize("gradients", [-1, True, 1.5, None])
def test_jax_function_wants_a_number_of_gradients(gradients):
    x = gg.placeholder(())
    with pytest.raises(ValueError, match="the number of times"):
        gg.compile(x, x).as_jax(gradients)


# --- derivatives --------------------------------------------------------------------------------


def expected_orders():
    """Of the model: gradients of x and w, and those of their sum, by graphgrad."""
    with gg.Graph():
        x, w, loss = model()
        first = gg.gradients(loss, [x, w])
        second = gg.gradients(gg.sum(first[0]) + gg.sum(first[1]), [x, w])
        return gg.compile(x, [*first, *second], backend="numpy")(X)


@pytest.mark.parametrize(
    "through", [lambda f: f, jax.jit, jax.checkpoint], ids=["", "jit", "remat"]
)
def test_jax_gradients_go_through_overrides_at_both_orders(wide, through):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    fn, state = f.as_jax(gradients=2), f.state_tree()
    grad = jax.grad(through(lambda x, s: fn([x], s)[0]), (0, 1))
    again = jax.grad(lambda x, s: sum(jnp.sum(v) for v in jax.tree.leaves(grad(x, s))), (0, 1))
    found = jax.tree.leaves([grad(X, state), again(X, state)])
    for got, wanted in zip(found, expected_orders(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_jax_a_value_beside_its_gradient_is_differentiated_by_the_rules(wide):
    """The value that the forward rule gives is differentiated then, too."""
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    fn, state = f.as_jax(gradients=2), f.state_tree()

    def both(x, s):
        value, found = jax.value_and_grad(lambda *a: fn([a[0]], a[1])[0], (0, 1))(x, s)
        return value + sum(jnp.sum(v) for v in jax.tree.leaves(found))

    dx, dw, d2x, d2w = expected_orders()
    found = jax.tree.leaves(jax.grad(both, (0, 1))(X, state))
    for got, wanted in zip(found, (dx + d2x, dw + d2w), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("gradients", [0, 1])
def test_jax_gradients_beyond_what_was_asked_are_an_error(wide, gradients):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    fn, state = f.as_jax(gradients), f.state_tree()
    grad = lambda x: fn([x], state)[0]  # noqa: E731
    for _ in range(gradients + 1):
        grad = jax.grad(lambda x, grad=grad: jnp.sum(grad(x)))
    with pytest.raises(gg.GradientError, match=rf"as_jax\(gradients={gradients + 1}\)"):
        grad(X)


def test_jax_forward_mode_is_an_error_of_jax(wide):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    fn = f.as_jax()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: fn([x], f.state_tree())[0], (X,), (X,))


def test_jax_calls_no_rule_for_outputs_without_a_gradient(wide):
    """A rule that gives something for dy = 0 is not asked, as graphgrad does not ask it."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy + 7.0):
            other = gg.exp(x)
        f = gg.compile(x, [gg.sum(x * x), other])
    fn = f.as_jax()
    for through in (lambda f: f, jax.jit):
        found = jax.grad(through(lambda x: fn([x])[0][0]))(X)
        np.testing.assert_allclose(found, 2.0 * X)
        found = jax.grad(through(lambda x: jnp.sum(fn([x])[0][1])))(X)
        np.testing.assert_allclose(found, np.full(3, 8.0))


def test_jax_calls_no_rule_for_inputs_that_nobody_asks_about(wide):
    def asked(site, dy):
        raise LookupError("it was called")

    with gg.Graph():
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.ones(3), name="w")
        with gg.override_gradient(asked):
            h = gg.exp(w)
        f = gg.compile(x, gg.sum(x * h))
    fn, state = f.as_jax(), f.state_tree()
    np.testing.assert_allclose(jax.grad(lambda x: fn([x], state)[0])(X), np.exp(np.ones(3)))
    with pytest.raises(LookupError, match="it was called"):
        jax.grad(lambda s: fn([X], s)[0])(state)


def test_jax_integers_have_no_gradient_and_structural_zeros_are_zeros(wide):
    x, n = gg.placeholder((3,), name="x"), gg.placeholder((3,), "int64", name="n")
    z = gg.placeholder((2,), name="z")
    fn = gg.compile([x, n, z], [gg.sum(x * n), gg.max(n)]).as_jax()
    dx, dn, dz = jax.grad(lambda *a: fn(a)[0][0], (0, 1, 2), allow_int=True)(X, np.arange(3), X[:2])
    np.testing.assert_array_equal(dx, np.arange(3.0))
    assert dn.dtype == jax.dtypes.float0
    np.testing.assert_array_equal(dz, np.zeros(2))


def test_jax_tensors_given_in_the_middle_stop_what_is_before_them(wide):
    x = gg.placeholder((3,), name="x")
    h = gg.exp(x)
    fn = gg.compile([x, h], gg.sum(h * x)).as_jax()
    dx, dh = jax.grad(lambda *a: fn(a)[0], (0, 1))(X, 2.0 * X)
    np.testing.assert_allclose([dx, dh], [2.0 * X, X])


def test_jax_complex_gradients_are_as_jax_has_them(wide):
    def plain(z):
        return jnp.sum(jnp.abs(jnp.sin(z) * z) ** 2)

    z = gg.placeholder((3,), "complex128", name="z")
    fn = gg.compile(z, gg.sum(gg.abs(gg.sin(z) * z) ** 2)).as_jax(2)
    at = X + 1j * X[::-1]

    def orders(f):
        grad = jax.grad(f)
        return jax.jit(lambda z: [grad(z), jax.grad(lambda z: jnp.sum(jnp.abs(grad(z))))(z)])(at)

    for got, wanted in zip(orders(lambda z: fn([z])[0]), orders(plain), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_jax_counts_the_temporary_rules_of_the_call_that_made_the_function(wide):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.temporary_gradient("now", lambda site, dy: 5.0 * dy):
            with gg.override_gradient("now"):
                y = gg.exp(x)
            fn = gg.compile(x, gg.sum(y)).as_jax()
    np.testing.assert_array_equal(jax.grad(lambda x: fn([x])[0])(X), np.full(3, 5.0))


def test_jax_derivatives_are_built_beside_no_open_scope(wide):
    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        fn = gg.compile(x, gg.sum(gg.exp(x))).as_jax()
        with gg.override_gradient(lambda site, dy: 0.0 * dy) as region, gg.name_scope("scope"):
            gg.exp(x)
            before = len(g)
            jax.grad(lambda x: fn([x])[0])(X)
    built = g.nodes[before:]
    assert built
    assert not any(n.region is region or n.name.startswith("scope") for n in built)


@pytest.mark.parametrize("what", ["variable", "draw"])
def test_jax_says_what_a_gradient_needs_and_the_function_has_not(wide, what):
    with gg.Graph():
        x, v = gg.placeholder((3,), name="x"), gg.variable(2.0, name="v")
        scale = {"variable": lambda: v, "draw": lambda: gg.random.normal(())}[what]
        with gg.override_gradient(lambda site, dy: dy * scale()):
            y = gg.exp(x)
        fn = gg.compile(x, gg.sum(y)).as_jax()
    with pytest.raises(gg.StateError, match={"variable": "v = ", "draw": "seed"}[what]):
        jax.grad(lambda x: fn([x])[0])(X)


# --- state --------------------------------------------------------------------------------------


def test_jax_training_with_donated_state_is_the_training_of_the_function(wide):
    step, own = training(), training()
    fn, state = jax.jit(step.as_jax(), donate_argnums=1), step.state_tree()
    for _ in range(3):
        outputs, state = fn([X], state)
        for got, wanted in zip(outputs, own(X), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert int(state["/runs"]) == own._state.runs == 3
    step.commit(state)
    np.testing.assert_allclose(step(X)[0], own(X)[0], rtol=1e-12)


def test_jax_gradients_of_draws_see_the_same_draw(wide):
    with gg.Graph(seed=5):
        x = gg.placeholder((3,), name="x")
        drawn = gg.random.uniform((3,))
        f = gg.compile(x, [gg.sum(x * drawn), drawn])
    fn, state = f.as_jax(), {"/runs": 4}
    loss = lambda x: fn([x], state)[0]  # noqa: E731
    (_, seen), dx = jax.jit(lambda x: (loss(x), jax.grad(lambda x: loss(x)[0])(x)))(X)
    np.testing.assert_array_equal(dx, seen)
    with pytest.raises(gg.StateError, match="scalar integer"):
        fn([X], {"/runs": 0.5})


def test_state_tree_is_a_copy_and_commit_writes_all_or_nothing():
    step = training()
    tree = step.state_tree()
    assert {k: v.shape for k, v in tree.items()} == {"w": (1,), "/runs": ()}
    tree["w"][:] = 9.0
    np.testing.assert_array_equal(step.state_tree()["w"], [0.5])
    wrong = {"w": np.ones((2,)), "/runs": 0.5, "v": 1.0}
    with pytest.raises(
        gg.StateError, match=r"(?s)nothing was written.*'v'.*'w' is.*number of runs"
    ):
        step.commit(wrong)
    with pytest.raises(gg.StateError, match=r"(?s)missing: '/runs'.*unknown: 'v'"):
        step.commit({"w": [9.0], "v": 1.0})
    np.testing.assert_array_equal(step.state_tree()["w"], [0.5])
    step.commit({"w": np.array([9.0], "float32"), "/runs": 7})
    after = step.state_tree()
    assert (after["w"].dtype, after["w"][0], after["/runs"]) == (np.float64, 9.0, 7)


# --- 64 bits ------------------------------------------------------------------------------------


def test_jax_without_64_bits_is_an_error_that_names_what_needs_them(narrow):
    with gg.Graph():
        x, _, loss = model()
        f = gg.compile(x, loss)
    for fn in (f.as_jax(), jax.jit(f.as_jax())):
        with pytest.raises(
            gg.DTypeError, match=r'(?s)x \(built at .*jax_enable_x64.*dtype="float32"'
        ):
            fn([X.astype("float32")], f.state_tree())


@pytest.mark.parametrize("what", ["constant", "draw", "inside"])
def test_jax_without_64_bits_sees_what_is_inside(narrow, what):
    with gg.Graph():
        x = gg.placeholder((3,), "float32", name="x")
        y = {
            "constant": lambda: x * gg.constant(X, name="wide"),
            "draw": lambda: x + gg.random.normal((3,), dtype="float32"),
            "inside": lambda: x * gg.astype(gg.argmax(x), "float32"),
        }[what]()
        f = gg.compile(x, gg.astype(y, "float32"))
    with pytest.raises(gg.DTypeError, match="64"):
        f.as_jax()([X.astype("float32")], f.state_tree())


def test_jax_in_single_precision_on_purpose(narrow):
    with gg.Graph():
        x, w, loss = model()
        at = gg.argmax(x)
        f = gg.compile(x, [loss, at])
        expected = gg.compile(x, [loss, at, *gg.gradients(loss, [x, w])], backend="numpy")(X)
    fn, state = f.as_jax(dtype="float32"), f.state_tree("float32")
    assert state["w"].dtype == np.float32
    (value, place), after = jax.jit(fn)([X], state)
    dx, ds = jax.grad(lambda x, s: fn([x], s)[0][0], (0, 1))(jnp.asarray(X), state)
    found = [value, place, dx, ds["w"]]
    assert [str(a.dtype) for a in (*found, after["w"])] == [
        *("float32", "int32", "float32", "float32", "float32")
    ]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-5)
    drawing = gg.compile([], gg.random.normal((2,)))
    with pytest.raises(gg.DTypeError, match="random numbers"):
        drawing.as_jax(dtype="float32")([], drawing.state_tree())
    large = gg.compile([], gg.constant(2**40) + gg.constant(1))
    with pytest.raises(gg.DTypeError, match="integers that 32 bits do not hold"):
        large.as_jax(dtype="float32")([])
    with pytest.raises(ValueError, match="dtype is None"):
        f.as_jax(dtype="float16")


def test_jax_in_single_precision_keeps_integers_and_draws_where_64_bits_are_on(wide):
    with gg.Graph(seed=1):
        z = gg.placeholder((3,), "complex128", name="z")
        drawn = gg.random.uniform((3,), dtype="float32")
        body = gg.scan(lambda c, r: (c + gg.abs(r), c), gg.constant(0.5), z)
        f = gg.compile(z, [body, drawn, gg.argmax(gg.abs(z)), gg.mean(gg.abs(z))])
    outputs, _ = jax.jit(f.as_jax(dtype="float32"))([X + 1j], f.state_tree())
    expected = f(X + 1j)
    for got, wanted in zip(jax.tree.leaves(outputs), jax.tree.leaves(expected), strict=True):
        assert got.dtype == (np.int64 if wanted.dtype.kind == "i" else np.float32)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


# --- to_jax -------------------------------------------------------------------------------------


def test_to_jax_is_called_as_the_function_is(wide):
    with gg.Graph():
        x, y = gg.placeholder((3,), name="x"), gg.placeholder((), name="y")
        with gg.override_gradient(lambda site, dy: 2.0 * dy):
            z = gg.exp(x)
        f = gg.interop.to_jax(gg.compile([x, y], gg.sum(z) * y), gradients=2)
    np.testing.assert_allclose(f(X, y=3.0), 3.0 * np.exp(X).sum())
    np.testing.assert_allclose(jax.grad(f)(X, 3.0), np.full(3, 6.0))
    np.testing.assert_allclose(jax.grad(lambda y: jnp.sum(jax.grad(f)(X, y)))(3.0), 6.0)


def test_to_jax_of_a_function_of_tensors_is_built_as_jax_traces_it(wide):
    @gg.function
    def f(params, x):
        h = params["w"] * x
        with gg.override_gradient(lambda site, dy: 2.0 * dy):
            h = gg.tanh(h)
        return {"loss": gg.sum(h), "h": h}

    fn = gg.interop.to_jax(f)
    params = {"w": np.array(0.5)}
    found = jax.jit(jax.grad(lambda p, x: fn(p, x)["loss"]))(params, X)
    np.testing.assert_allclose(found["w"], 2.0 * X.sum())
    np.testing.assert_allclose(fn(params, X[:2])["h"], np.tanh(0.5 * X[:2]))
    assert len(f.compiled) == 2


def test_to_jax_refuses_state_and_what_is_no_function():
    step = training()
    with pytest.raises(gg.StateError, match=r"w, /runs.*as_jax"):
        gg.interop.to_jax(step)
    with pytest.raises(TypeError, match=r"gg\.compile or gg\.function"):
        gg.interop.to_jax(np.sin)


def open_function():
    with gg.Graph():
        x, v, rows = opens.placeholders()
        loss = opens.total([*opens.moved(x, v), *opens.looped(x, rows)])
        slopes = gg.gradients(loss, [x, v, rows])
        return [gg.compile([x, v, rows], y, backend="numpy") for y in (loss, slopes)]


def test_jax_knows_open_lengths_in_jit_grad_and_vmap(wide):
    f, slopes = open_function()
    fn = gg.interop.to_jax(f)
    for n in opens.LENGTHS:
        given = opens.arrays(n)
        found = jax.jit(jax.grad(fn, (0, 1, 2)))(*given)
        batch = [jnp.stack([a, 2 * a]) for a in given]
        mapped = jax.vmap(jax.grad(fn, (0, 1, 2)))(*batch)
        for a, of_two, b in zip(found, mapped, slopes(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
            np.testing.assert_allclose(of_two[0], b, rtol=1e-10)


def test_jax_knows_open_lengths_in_single_precision(narrow):
    f, slopes = open_function()
    fn = gg.interop.to_jax(f, dtype="float32")
    given = opens.arrays(5)
    for a, b in zip(jax.jit(jax.grad(fn, (0, 1, 2)))(*given), slopes(*given), strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


def test_jax_checks_what_is_assumed_of_lengths(wide):
    with gg.Graph():
        x = gg.placeholder(("N",), name="x")
        gg.assume(x.shape[0] >= 2)
        fn = gg.interop.to_jax(gg.compile(x, gg.zeros((x.shape[0] - 1,)), backend="numpy"))
    assert fn(np.ones(3)).shape == (2,)
    with pytest.raises(
        gg.ShapeError, match=r"gg.assume\(N >= 2\), stated at .*, does not hold: N is 1"
    ):
        fn(np.ones(1))
