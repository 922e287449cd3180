"""The formulas of the simple rules, and how they behave at their site."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

XS = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
DY = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0])


def gradient(rule, f, at=XS, dy=DY, dtype="float64"):
    x = gg.placeholder(np.shape(at), dtype, name="x")
    with gg.override_gradient(rule):
        y = f(x)
    return value(gg.gradients(y, x, np.asarray(dy)), {x: at})


def test_straight_through_passes_everything_or_what_is_in_the_window():
    np.testing.assert_array_equal(gradient(rules.ste(), gg.sign), DY)
    expected = np.where(np.abs(XS) <= 1.0, DY, 0.0)
    np.testing.assert_array_equal(gradient(rules.ste(window=1.0), gg.sign), expected)


def test_a_rule_can_be_put_everywhere():
    x = gg.placeholder((), name="x")
    with gg.gradient_override_map({"Sign": rules.ste()}):
        mapped = gg.sign(x)
    plain = gg.sign(x)
    decorated = gg.override(rules.ste())(gg.sign)(x)
    for y, overrides in [(mapped, None), (decorated, None), (plain, {"Sign": rules.ste()})]:
        assert value(gg.gradients(y, x, overrides=overrides), {x: 0.3}) == 1.0


def test_ste_casts_to_the_dtype_of_its_input():
    x = gg.placeholder((2,), "float32", name="x")
    with gg.override_gradient(rules.ste()):
        y = gg.cast(gg.round(x), "float64")
    assert gg.gradients(y, x).dtype == np.float32


def test_ste_on_two_inputs_says_what_to_do():
    x, s = gg.placeholder((2,), name="x"), gg.placeholder((), name="s")
    with gg.override_gradient(rules.ste()):
        y = gg.round(x / s) * s
    with pytest.raises(gg.GradientError, match="one floating input") as error:
        gg.gradients(y, x)
    assert "x:0" in str(error.value)
    assert "s:0" in str(error.value)


def test_ste_where_the_shape_changes_is_an_error():
    x = gg.placeholder((2,), name="x")
    with gg.override_gradient(rules.ste()):
        y = gg.sum(gg.sign(x))
    with pytest.raises(gg.GradientError, match="shape of the output"):
        gg.gradients(y, x)


def test_scale_follows_a_tensor():
    x, k = gg.placeholder((), name="x"), gg.placeholder((), "float32", name="k")
    with gg.override_gradient(rules.reverse(k)):
        y = gg.square(x)
    dx = gg.gradients(y, x)
    assert value(dx, {x: 3.0, k: 0.5}) == -3.0


def test_stop_holds_back_some_inputs():
    x, w = gg.placeholder((), name="x"), gg.placeholder((), name="w")
    with gg.override_gradient(rules.stop(1)):
        y = x * w
    with gg.override_gradient(rules.stop()):
        z = x * w
    assert value(gg.gradients(y, x), {x: 2.0, w: 3.0}) == 3.0
    assert gg.gradients([y], [w]) == [None]
    assert gg.gradients([z], [x, w]) == [None, None]


def test_clipping_by_value_and_by_norm():
    dy = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    at = np.zeros((3, 2))
    np.testing.assert_allclose(
        gradient(rules.clip_value(1.0), gg.identity, at, dy), np.clip(dy, -1, 1)
    )
    whole = gradient(rules.clip_norm(1.0), gg.identity, at, dy)
    np.testing.assert_allclose(whole, dy / np.linalg.norm(dy))
    each = gradient(rules.clip_norm(1.0, axis=0), gg.identity, at, dy)
    np.testing.assert_allclose(each, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])
    last = gradient(rules.clip_norm(1.0, axis=-1), gg.identity, at, dy)
    np.testing.assert_allclose(last, dy / np.maximum(1, np.linalg.norm(dy, axis=0)))


def test_clip_norm_of_a_batch_of_unknown_length():
    x = gg.placeholder((None, 2), name="x")
    with gg.override_gradient(rules.clip_norm(1.0, axis=0)):
        y = gg.identity(x)
    dx = gg.gradients(3.0 * y, x)
    np.testing.assert_allclose(value(dx, {x: np.zeros((5, 2))}), np.full((5, 2), 0.5**0.5))


def test_nan_guard_repairs_what_is_not_finite():
    dy = np.array([np.nan, np.inf, -np.inf, 1.0])
    found = gradient(rules.nan_guard(nan=0.0, limit=10.0), gg.identity, np.zeros(4), dy)
    np.testing.assert_array_equal(found, [0.0, 10.0, -10.0, 1.0])
    assert gradient(rules.nan_guard(), lambda x: gg.sqrt(x) * 0.0, np.zeros(1), np.ones(1)) == 0.0


def test_surrogate_of_two_inputs_and_two_outputs():
    def smooth(x, t):
        return x * t, gg.exp(x)

    x, t = gg.placeholder((), name="x"), gg.placeholder((), name="t")
    with gg.override_gradient(rules.surrogate(smooth)):
        y, z = gg.round(x * t), gg.floor(gg.exp(x))
    dx, dt = gg.gradients([y, z], [x, t])
    found = values([dx, dt], {x: 2.0, t: 3.0})
    np.testing.assert_allclose(found, [3.0 + np.exp(2.0), 2.0])


def test_spikes_have_the_published_derivatives():
    f = lambda x: gg.heaviside(x, 1.0)  # noqa: E731
    np.testing.assert_allclose(
        gradient(rules.fast_sigmoid(slope=10.0), f), DY / (1 + 10 * np.abs(XS)) ** 2
    )
    np.testing.assert_allclose(gradient(rules.atan(alpha=2.0), f), DY / (1 + (np.pi * XS) ** 2))
    np.testing.assert_allclose(
        gradient(rules.triangle(width=1.0, height=0.3), f), DY * 0.3 * np.maximum(0, 1 - np.abs(XS))
    )


def test_three_ways_to_look_through_a_relu():
    np.testing.assert_array_equal(
        gradient(rules.guided(), gg.nn.relu), np.where((XS > 0) & (DY > 0), DY, 0)
    )
    np.testing.assert_array_equal(gradient(rules.deconvnet(), gg.nn.relu), np.maximum(DY, 0))


def test_redirected_passes_what_wakes_up_a_dead_example():
    at = np.array([[-1.0, -2.0], [-1.0, 3.0]])
    dy = np.array([[5.0, -6.0], [-7.0, 8.0]])
    found = gradient(rules.redirected(), gg.nn.relu, at, dy)
    np.testing.assert_array_equal(found, [[0.0, -6.0], [0.0, 8.0]])


def test_stable_rules_where_the_plain_gradient_is_nan():
    big = np.array([-1000.0, 0.0, 1000.0])

    def log1pexp(x):
        return gg.log(1.0 + gg.exp(x))

    with np.errstate(over="ignore"):
        found = gradient(rules.log1pexp(), log1pexp, big, np.ones(3))
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0])


@pytest.mark.parametrize("keepdims", [False, True])
def test_norm_has_a_zero_gradient_at_zero(keepdims):
    def euclidean(x):
        return gg.sqrt(gg.sum(x * x, axis=1, keepdims=keepdims))

    at = np.array([[3.0, 4.0], [0.0, 0.0]])
    dy = np.array([[2.0], [5.0]]) if keepdims else np.array([2.0, 5.0])
    found = gradient(rules.norm(axis=1), euclidean, at, dy)
    np.testing.assert_allclose(found, [[1.2, 1.6], [0.0, 0.0]])


@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_shares_by_softmax(keepdims):
    def lse(x):
        return gg.log(gg.sum(gg.exp(x), axis=0, keepdims=keepdims))

    at = np.array([[3.0, 4.0], [0.0, 1.0]])
    dy = np.array([[2.0, 5.0]]) if keepdims else np.array([2.0, 5.0])
    shares = np.exp(at) / np.exp(at).sum(axis=0)
    np.testing.assert_allclose(gradient(rules.logsumexp(axis=0), lse, at, dy), shares * [2.0, 5.0])


def test_masked_where_makes_no_nan_at_any_order():
    def root(x):
        return gg.where(x > 0, gg.sqrt(x), 0.0)

    x = gg.placeholder((3,), name="x")
    with gg.override_gradient(rules.masked(gg.sqrt, lambda x: x > 0)):
        y = root(x)
    dx = gg.gradients(y, x)
    ddx = gg.gradients(dx, x)
    plain = gg.gradients(y, x, overrides="none")
    with np.errstate(invalid="ignore", divide="ignore"):
        dx, ddx, plain = values([dx, ddx, plain], {x: [-1.0, 0.0, 4.0]})
    np.testing.assert_allclose(dx, [0.0, 0.0, 0.25])
    np.testing.assert_allclose(ddx, [0.0, 0.0, -1 / 32])
    assert np.isnan(plain).any()


def test_feedback_replaces_the_way_back_alone():
    rng = np.random.default_rng(0)
    x, w = gg.placeholder((4, 3), name="x"), gg.placeholder((3, 2), name="w")
    back = rng.normal(size=(2, 3))
    bias = gg.placeholder((2,), name="bias")
    with gg.override_gradient(rules.feedback(weights=back)):
        y = x @ w + bias
    dy = rng.normal(size=(4, 2))
    found = gg.gradients(y, [x, w, bias], dy)
    feeds = {x: rng.normal(size=(4, 3)), w: rng.normal(size=(3, 2)), bias: np.zeros(2)}
    dx, dw, db = values(found, feeds)
    np.testing.assert_allclose(dx, dy @ back)
    np.testing.assert_allclose(dw, feeds[x].T @ dy)
    np.testing.assert_allclose(db, dy.sum(axis=0))


def test_drawn_feedback_is_fixed_by_its_seed():
    x, w = gg.placeholder((1, 3), name="x"), gg.placeholder((3, 2), name="w")
    found = []
    for seed in (1, 1, 2):
        with gg.gradient_override_map({"MatMul": rules.feedback(seed=seed)}):
            y = x @ w
        found.append(gg.gradients(y, x))
    one, again, other = values(found, {x: np.ones((1, 3)), w: np.zeros((3, 2))})
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


def test_feedback_on_what_is_no_layer_says_so():
    x = gg.placeholder((2, 2), name="x")
    with gg.override_gradient(rules.feedback()):
        y = gg.tanh(x)
    with pytest.raises(gg.GradientError, match="consists of Tanh"):
        gg.gradients(y, x)
