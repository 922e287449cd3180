"""Relevance is conserved; differences from a reference are complete."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 1.0, size=(3, 5))
W = RNG.normal(size=(5, 4))
B = RNG.normal(size=4)
DY = RNG.normal(size=(3, 4))


def layer_relevance(rule, bias=None):
    x, w = gg.placeholder((3, 5), name="x"), gg.placeholder((5, 4), name="w")
    with gg.override_gradient(rule):
        y = x @ w if bias is None else x @ w + gg.constant(bias)
    dx, dw = gg.gradients([y], [x, w], [DY])
    assert dw is None, "relevance is for inputs, not for weights"
    return value(dx, {x: X, w: W})


@pytest.mark.parametrize(
    "rule",
    [rules.lrp_epsilon(1e-9), rules.lrp_gamma(0.25), rules.lrp_zbox(0.0, 1.0)],
    ids=lambda r: r.name,
)
def test_a_layer_without_bias_conserves_relevance(rule):
    found = layer_relevance(rule)
    np.testing.assert_allclose(found.sum(axis=1), DY.sum(axis=1), rtol=1e-5)


def test_epsilon_is_the_published_formula():
    z = X @ W + B
    share = X[:, :, None] * W[None] / (z + 0.1 * np.where(z >= 0, 1, -1))[:, None, :]
    found = layer_relevance(rules.lrp_epsilon(0.1), bias=B)
    np.testing.assert_allclose(found, (share * DY[:, None, :]).sum(axis=2))


def test_gamma_is_the_published_formula_and_zero_gamma_is_epsilon():
    raised, bias = W + 0.25 * np.maximum(W, 0), B + 0.25 * np.maximum(B, 0)
    share = X[:, :, None] * raised[None] / (X @ raised + bias)[:, None, :]
    found = layer_relevance(rules.lrp_gamma(0.25), bias=B)
    np.testing.assert_allclose(found, (share * DY[:, None, :]).sum(axis=2), rtol=1e-6)
    np.testing.assert_allclose(
        layer_relevance(rules.lrp_gamma(0.0)), layer_relevance(rules.lrp_epsilon(1e-9))
    )


def test_zbox_is_the_published_formula():
    parts = X[:, :, None] * W - 0.0 * np.maximum(W, 0) - 2.0 * np.minimum(W, 0)
    share = parts / parts.sum(axis=1, keepdims=True)
    found = layer_relevance(rules.lrp_zbox(0.0, 2.0))
    np.testing.assert_allclose(found, (share * DY[:, None, :]).sum(axis=2), rtol=1e-6)
    assert (share >= 0).all(), "in the box every share is positive"


def network(x, bias=True):
    rng = np.random.default_rng(1)
    w1, w2, w3 = [rng.normal(size=s) for s in [(5, 8), (8, 8), (8, 1)]]
    b = rng.normal(size=8) if bias else np.zeros(8)
    h = gg.nn.relu(x @ w1 + b)
    h = gg.tanh(h @ w2)
    return gg.sum(h @ w3)


def test_the_relevances_of_a_network_add_up_to_its_score():
    x = gg.placeholder((1, 5), name="x")
    score = network(x, bias=False)
    found, score = values([rules.relevance(score, x), score], {x: X[:1]})
    np.testing.assert_allclose(found.sum(), score, rtol=1e-4)


def test_relevance_through_a_convolution():
    x = gg.placeholder((1, 5, 5, 2), name="x")
    k = gg.constant(RNG.normal(size=(3, 3, 2, 4)))
    h = gg.nn.relu(gg.nn.conv(x, k))
    score = gg.sum(gg.nn.avg_pool(h, 2))
    image = RNG.uniform(size=(1, 5, 5, 2))
    found, score = values([rules.relevance(score, x), score], {x: image})
    np.testing.assert_allclose(found.sum(), score, rtol=1e-4)


def test_marked_first_layers_keep_their_own_rule():
    x = gg.placeholder((1, 5), name="x")
    with gg.override_gradient(rules.lrp_zbox(-1.0, 1.0)):
        h = x @ W
    score = gg.sum(gg.nn.relu(h))
    of_box = rules.relevance(score, x)
    plain = rules.relevance(score, x, rules={x.graph.regions[0]: None})
    of_box, plain, score = values([of_box, plain, score], {x: X[:1]})
    np.testing.assert_allclose([of_box.sum(), plain.sum()], [score, score], rtol=1e-4)
    assert np.abs(of_box - plain).max() > 0.01


@pytest.mark.parametrize("reference", [0.0, 0.5])
def test_deeplift_contributions_add_up_to_the_difference(reference):
    x = gg.placeholder((1, 5), name="x")
    contributions = rules.deeplift(network, x, reference)
    difference = network(x) - network(gg.full_like(x, reference))
    plain = (x - reference) * gg.gradients(network(x), x)
    found, difference, plain = values([contributions, difference, plain], {x: X[:1]})
    np.testing.assert_allclose(found.sum(), difference, rtol=1e-9)
    assert abs(plain.sum() - difference) > 1e-3


def test_rescale_sees_through_saturation():
    """1 - relu(1 - a - b): where a + b > 1 the gradient is zero, yet both contribute."""

    def f(x):
        return 1.0 - gg.nn.relu(1.0 - gg.sum(x))

    x = gg.placeholder((2,), name="x")
    plain = gg.gradients(f(x), x)
    found = rules.deeplift(f, x, 0.0)
    plain, found = values([plain, found], {x: [1.0, 1.0]})
    np.testing.assert_array_equal(plain, [0.0, 0.0])
    np.testing.assert_allclose(found, [0.5, 0.5])


def test_deeplift_at_the_reference_is_the_gradient_times_zero():
    x = gg.placeholder((2,), name="x")
    found = rules.deeplift(lambda x: gg.sum(gg.tanh(x)), x, np.array([0.3, 0.4]))
    np.testing.assert_array_equal(value(found, {x: [0.3, 0.4]}), [0.0, 0.0])
