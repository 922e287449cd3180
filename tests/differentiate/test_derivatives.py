"""Derivatives made of gradients, and functions made of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.derivatives import hessian, hvp, jacobian, value_and_grad, vjp
from graphgrad.differentiate.forward.jvp import jvp
from graphgrad.functions import function

from .helpers import scaled, value, values

# --- vjp -----------------------------------------------------------------------------------------


def test_vjp_is_gradients_with_seeds():
    x, w = gg.placeholder((2,)), gg.placeholder(())
    ys = {"a": x * w, "b": gg.sum(x)}
    found = vjp(ys, [x, w], {"a": np.array([1.0, 2.0]), "b": 10.0})
    dx, dw = values(found, {x: [3.0, 4.0], w: 5.0})
    assert dx.tolist() == [15, 20]
    assert dw == 11
    assert vjp(ys["b"], [w], 1.0) == [None]


def test_vjp_and_jvp_agree_under_a_linear_rule():
    x = gg.placeholder((3,))
    with gg.override_gradient(scaled(2.0)):
        y = gg.cumulative_sum(gg.sin(x)) * x
    u, v = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.25, 4.0])
    forward, back = values([jvp(y, x, v), vjp(y, x, u)], {x: [0.1, 0.2, 0.3]})
    assert np.vdot(forward, u) == pytest.approx(np.vdot(back, v))


# --- jacobian ------------------------------------------------------------------------------------


def test_jacobian_has_the_axes_of_y_and_of_x():
    x, w = gg.placeholder((3,)), gg.placeholder((3, 2))
    y = gg.tanh(x) @ w
    found = jacobian(y, {"x": x, "w": w})
    assert found["x"].shape == (2, 3)
    assert found["w"].shape == (2, 3, 2)
    rng = np.random.default_rng(0)
    xv, wv = rng.normal(size=3), rng.normal(size=(3, 2))
    got = values(found, {x: xv, w: wv})
    np.testing.assert_allclose(got["x"], (wv * (1 - np.tanh(xv) ** 2)[:, None]).T)
    np.testing.assert_allclose(got["w"], np.einsum("i,jk->jik", np.tanh(xv), np.eye(2)))


def test_jacobian_of_a_number_and_of_a_matrix():
    x = gg.placeholder((2, 2))
    assert value(jacobian(gg.sum(x * x), x), {x: np.ones((2, 2))}).tolist() == [[2, 2], [2, 2]]
    found = value(jacobian(x.T * 3.0, x), {x: np.ones((2, 2))})
    np.testing.assert_array_equal(found, 3 * np.einsum("il,jk->ijkl", np.eye(2), np.eye(2)))


def test_jacobian_by_a_tensor_of_unknown_length():
    x = gg.placeholder((None,))
    y = gg.stack([gg.sum(x), gg.sum(x * x)])
    assert value(jacobian(y, x), {x: [1.0, 2.0, 3.0]}).tolist() == [[1, 1, 1], [2, 4, 6]]
    with pytest.raises(gg.ShapeError, match="every length"):
        jacobian(x * 2.0, x)


def test_jacobian_where_nothing_flows():
    x, z = gg.placeholder((2,)), gg.placeholder((3,))
    some, none = jacobian(x * 2.0, [x, z])
    assert some is not None
    assert none is None
    zero = jacobian(x * 2.0, z, unconnected="zero")
    assert value(zero, {z: [1.0, 2.0, 3.0]}).tolist() == [[0, 0, 0], [0, 0, 0]]
    partly = jacobian(gg.stack([gg.sum(x), gg.sum(z)]), x)
    assert value(partly, {x: [1.0, 2.0]}).tolist() == [[1, 1], [0, 0]]


def test_jacobian_of_no_elements():
    x = gg.placeholder((3,))
    y = gg.reshape(x[:0], (0, 1))
    assert value(jacobian(y, x), {x: [1.0, 2.0, 3.0]}).shape == (0, 1, 3)


def test_jacobian_through_overrides():
    x = gg.placeholder((2,))
    with gg.override_gradient(lambda site, dy: gg.clip(dy, -0.5, 0.5)) as region:
        y = x * x
    feeds = {x: [3.0, 4.0]}
    assert value(jacobian(y, x), feeds).tolist() == [[0.5, 0], [0, 0.5]]
    assert value(jacobian(y, x, overrides={region: None}), feeds).tolist() == [[6, 0], [0, 8]]


def test_jacobian_stamps_nothing():
    x = gg.placeholder((2,))
    y = gg.stack([gg.sum(x), gg.sum(x * x)])
    with gg.gradient_override_map({"Stack": "Identity"}, allow_empty=True):
        found = jacobian(y, x)
    assert found.node.stamp is None


# --- hessian and hvp -----------------------------------------------------------------------------


def quadratic(x, w):
    return gg.sum(x * x * x) * gg.sum(w) + gg.sum(gg.sin(w)) + x[0] * x[1]


def test_hessian_of_one_tensor_against_differences():
    x, w = gg.placeholder((2,)), gg.placeholder((3,))
    y = quadratic(x, w)
    feeds = {x: np.array([0.5, -0.25]), w: np.array([0.1, 0.2, 0.3])}
    found = value(hessian(y, x), feeds)
    grad, eps = gg.gradients(y, x), 1e-6
    for i, step in enumerate(np.eye(2) * eps):
        plus, minus = (value(grad, feeds | {x: feeds[x] + s * step}) for s in (1, -1))
        np.testing.assert_allclose(found[:, i], (plus - minus) / (2 * eps), atol=1e-8)


def test_hessian_of_many_tensors_in_their_structure():
    x, w = gg.placeholder((2,)), gg.placeholder((3,))
    y = quadratic(x, w)
    found = hessian(y, {"x": x, "w": w})
    assert found["x"]["w"].shape == (2, 3)
    assert found["w"]["x"].shape == (3, 2)
    feeds = {x: [0.5, -0.25], w: [0.1, 0.2, 0.3]}
    got = values(found, feeds)
    np.testing.assert_allclose(got["x"]["w"], got["w"]["x"].T)
    np.testing.assert_allclose(got["w"]["w"], np.diag(-np.sin(feeds[w])))


def test_hessian_where_nothing_flows():
    x, z = gg.placeholder((2,)), gg.placeholder(())
    assert hessian(gg.sum(x), x) is None
    assert hessian(gg.sum(x), [x, z]) == [[None, None], [None, None]]
    zeros = hessian(gg.sum(x), [x, z], unconnected="zero")
    assert [[t.shape for t in row] for row in zeros] == [[(2, 2), (2,)], [(2,), ()]]
    with pytest.raises(gg.ShapeError, match="Sum it first"):
        hessian(x, x)


def test_hvp_is_the_hessian_times_a_vector():
    x, w = gg.placeholder((2,)), gg.placeholder((3,))
    y = quadratic(x, w)
    feeds = {x: [0.5, -0.25], w: [0.1, 0.2, 0.3]}
    v = [np.array([1.0, 2.0]), np.array([-1.0, 0.5, 3.0])]
    rows, got = values([hessian(y, [x, w]), hvp(y, [x, w], v)], feeds)
    for j in range(2):
        np.testing.assert_allclose(got[j], sum(v[i] @ rows[i][j] for i in range(2)))


def test_hvp_in_forward_mode_is_the_same_without_overrides():
    x = gg.placeholder((3,))
    y = gg.sum(gg.sin(x) * gg.sum(x * x))
    v = np.array([1.0, -2.0, 0.5])
    feeds = {x: [0.1, 0.2, 0.3]}
    a, b = values([hvp(y, x, v), jvp(gg.gradients(y, x), x, v)], feeds)
    np.testing.assert_allclose(a, b)


def test_hvp_where_nothing_flows_and_wrong_questions():
    x = gg.placeholder((2,))
    assert hvp(gg.sum(x), x, np.ones(2)) is None
    z = gg.placeholder(())
    assert hvp(gg.sum(x), z, 1.0) is None
    assert value(hvp(gg.sum(x), x, np.ones(2), unconnected="zero"), {x: [1, 2]}).tolist() == [0, 0]
    with pytest.raises(gg.GradientError, match="2 vs for 1 xs"):
        hvp(gg.sum(x), [x], [np.ones(2), np.ones(2)])
    with pytest.raises(gg.GradientError, match="None among vs"):
        hvp(gg.sum(x), [x], [None])


def test_second_order_through_overrides():
    x = gg.placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0]) as region:
        y = x * x
    assert values([hessian(y, x), hvp(y, x, 2.0)], {x: 3.0}) == [9, 18]
    off = {region: None}
    assert values([hessian(y, x, overrides=off), hvp(y, x, 2.0, overrides=off)], {x: 3.0}) == [2, 4]


# --- value_and_grad and function -----------------------------------------------------------------


def loss(params, batch):
    """How far off."""
    return gg.sum((batch @ params["w"] + params["b"]) ** 2.0)


def test_value_and_grad_of_a_tensor():
    x = gg.placeholder(())
    with gg.override_gradient(scaled(2.0)) as region:
        y = x * x
    assert values(value_and_grad(y, [x]), {x: 3.0}) == (9, [12])
    assert values(value_and_grad(y, x, overrides={region: None}), {x: 3.0}) == (9, 6)
    with pytest.raises(gg.ShapeError, match="single number"):
        value_and_grad(gg.placeholder((2,)) * 2.0, x)


def test_value_and_grad_of_a_function():
    a, b = gg.placeholder(()), gg.placeholder(())
    f = value_and_grad(lambda a, b: a * b * b)
    assert values(f(a, b), {a: 2.0, b: 3.0}) == (18, 9)
    f = value_and_grad(lambda a, b: a * b * b, (1, 0))
    assert values(f(a, b), {a: 2.0, b: 3.0}) == (18, (12, 9))


def test_value_and_grad_of_a_function_is_of_a_single_number():
    x = gg.placeholder((2,))
    with pytest.raises(
        gg.ShapeError, match=r"value_and_grad\(\) takes a y that is a single number"
    ):
        value_and_grad(lambda a: a * 2.0)(x)


def test_function_from_example_arrays():
    params = {"w": np.ones((3, 2)), "b": np.zeros(2)}
    step = function(value_and_grad(loss), params, np.ones((4, 3)))
    y, grads = step(params, np.ones((4, 3)))
    assert y == 72
    assert grads["b"].tolist() == [24, 24]
    assert grads["w"].shape == (3, 2)
    assert step.__name__ == "loss"
    assert step.__doc__ == "How far off."


def test_function_as_a_decorator_builds_once_for_each_signature():
    built = []

    @function
    def f(x, y=1.0):
        built.append(x.type)
        return {"s": x * y, "parts": [gg.sum(x), None]}

    assert f(np.ones(3))["s"].tolist() == [1, 1, 1]
    assert f(np.full(3, 2.0))["parts"][0] == 6
    assert len(built) == 1
    assert f(np.ones(3), 2.0)["parts"][1] is None
    assert f(np.ones(4))["s"].shape == (4,)
    assert f(np.ones(3, "float32"))["s"].dtype == np.float32
    assert len(built) == len(f.compiled) == 4


def test_function_with_options_and_overrides():
    @function(optimize=False)
    def f(x):
        with gg.override_gradient(scaled(3.0)):
            y = x * x
        return gg.gradients(y, x)

    assert f(2.0) == 12
    (compiled,) = f.compiled.values()
    assert "not optimised" in compiled.explain()


def test_function_says_what_is_wrong():
    with pytest.raises(TypeError, match="takes a function"):
        function(np.ones(3))
    f = function(lambda x: x * 2.0)
    with pytest.raises(gg.DTypeError, match="takes arrays"):
        f(gg.placeholder(()))
    with pytest.raises(gg.DTypeError):
        f("text")
    assert f.__name__ == "<lambda>"
