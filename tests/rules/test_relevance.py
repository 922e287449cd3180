"""Relevance is conserved; differences from a reference are complete."""

from math import erf

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import calls_of, value, values
from . import by_hand

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


# --- what each op does -------------------------------------------------------------------------


def through(f, *xs, dy=None, chosen=None, **options):
    """The relevances of xs for f, whose every output starts with dy (with its value: None)."""
    given = [gg.placeholder(np.shape(v), name=f"x{i}") for i, v in enumerate(xs)]
    y = f(*given)
    score = y if dy is None else gg.sum(y * dy)
    found = rules.relevance(score, given, chosen, **options)
    return values([*found, score], dict(zip(given, xs, strict=True)))


V = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * np.array([2.0, -1.0, 0.5]),
        lambda x: x / np.array([2.0, -1.0, 0.5]),
        lambda x: -x,
        lambda x: gg.transpose(x),
        lambda x: gg.reshape(x, (3, 2))[::2],
        lambda x: gg.concat([x, 2.0 * x], 0),
        lambda x: gg.stack([x, x], 1),
        lambda x: gg.pad(x, ((1, 1), (0, 2))),
        lambda x: gg.broadcast_to(x, (4, 2, 3)),
        lambda x: gg.take(x, [1, 0, 1], axis=0),
        lambda x: gg.flip(x, 1),
        lambda x: gg.roll(x, 1, 1),
        lambda x: gg.tile(x, (2, 1)),
        lambda x: gg.expand_dims(x, 0),
        lambda x: gg.where(V > 0, x, 2.0 * x),
        lambda x: gg.sort(x, axis=1),
        lambda x: gg.maximum(x, -x),
        lambda x: gg.max(x, 1),
        lambda x: gg.nn.relu(x),
        lambda x: gg.nn.gelu(x),
        lambda x: gg.nn.gelu(x, approximate=True),
        lambda x: gg.nn.silu(x),
        lambda x: x * gg.nn.sigmoid(x),
        lambda x: gg.tanh(x),
        lambda x: x * x,
        lambda x: x**3,
        lambda x: x / gg.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: x * (gg.mean(x * x, -1, True) + 1e-6) ** -0.5,
        lambda x: x * gg.reciprocal(gg.sqrt(gg.mean(x * x, -1, True) + 1e-6)),
        lambda x: x * (1.0 / gg.sqrt(gg.mean(x * x, -1, True) + 1e-6)),
        lambda x: gg.nn.softmax(x) @ gg.transpose(x),
        lambda x: gg.nn.layer_norm(x) * V,
        lambda x: gg.nn.batch_norm(x)[0] * V,
        lambda x: gg.cumsum(x, 1),
        lambda x: gg.nn.conv_transpose(gg.reshape(x, (1, 2, 3, 1)), np.ones((2, 2, 1, 1))),
        lambda x: gg.linalg.solve(np.array([[2.0, 1.0], [0.5, 3.0]]), x),
        lambda x: gg.einsum("ij,kj->ik", x, np.ones((2, 3))),
        lambda x: gg.linalg.norm(x, axis=1),
        lambda x: np.eye(2) @ x,
        lambda x: gg.cond(gg.sum(x) > 0, lambda: 2.0 * x, lambda: gg.tanh(x)),
        lambda x: gg.cond(
            gg.sum(x) > 0, lambda: x @ gg.constant(np.ones((3, 2))), lambda: 2.0 * x[:, :2]
        ),
    ],
)
def test_relevance_is_conserved_through(f):
    x = gg.placeholder(V.shape, name="x")
    score = f(x)
    found, score = values([rules.relevance(score, x, epsilon=1e-12), score], {x: V})
    np.testing.assert_allclose(found.sum(), np.sum(score), rtol=1e-9)


def test_the_same_function_in_other_words_has_the_same_relevance():
    c = np.array([[1.0, -2.0, 3.0]])
    x = gg.placeholder((1, 3), name="x")
    scores = [
        gg.sum(x @ c.T),
        gg.sum(x * c),
        gg.sum(c @ gg.transpose(x)),
        gg.einsum("ij,ij->", x, c),
    ]
    found = values([rules.relevance(s, x) for s in scores], {x: V[:1]})
    for r in found:
        np.testing.assert_allclose(r, V[:1] * c, rtol=1e-5)


def test_a_gate_gets_nothing_and_signals_get_equal_parts():
    a, b = V, 2.0 - V
    for gate in (
        gg.nn.sigmoid,
        lambda t: 0.5 * (1.0 + gg.tanh(t)),
        gg.nn.softmax,
        lambda t: 1.0 / t,
        lambda t: gg.clip(t + 3.0, 0.0, 6.0) / 6.0,
        lambda t: 1.0 + gg.clip(t, -1.0, 1.0),
    ):
        of_a, of_b, score = through(lambda a, b, gate=gate: a * gate(b), a, b)
        np.testing.assert_allclose(of_a, score)
        np.testing.assert_array_equal(of_b, np.zeros_like(b))
    for signal in (gg.tanh, lambda t: gg.clip(t, -1.0, 1.0)):
        of_a, of_b, score = through(lambda a, b, signal=signal: signal(a) * b, a, b)
        np.testing.assert_allclose([of_a, of_b], [score / 2, score / 2])
    equal = {"Multiply": rules.lrp_product(gated=False)}
    of_a, of_b, score = through(lambda a, b: a * gg.nn.sigmoid(b), a, b, chosen=equal)
    np.testing.assert_allclose([of_a, of_b], [score / 2, score / 2])


def test_a_gate_alone_is_a_signal():
    """What multiplies a constant carries all the relevance there is."""
    (found, score) = through(lambda x: 3.0 * gg.nn.sigmoid(x), V)
    np.testing.assert_allclose(found, score)


def test_both_factors_of_a_product_of_matrices_share():
    """Uniform rule after the epsilon rule: half of R_ik * (a_ij b_jk / z_ik) to each."""
    a, b = V, V.T + 0.5
    dy = np.array([[1.0, -2.0], [0.5, 3.0]])
    z = a @ b
    share = a[:, :, None] * b[None] / z[:, None, :] * (z * dy)[:, None, :] / 2
    of_a, of_b, _ = through(lambda a, b: a @ b, a, b, dy=dy, epsilon=1e-12)
    np.testing.assert_allclose(of_a, share.sum(axis=2), atol=1e-9)
    np.testing.assert_allclose(of_b, share.sum(axis=0), atol=1e-9)


def test_softmax_is_its_taylor_expansion():
    """R_i = x_i * (R_i - y_i * sum of R), and nothing where an element is masked."""
    x = np.array([0.3, -1.0, 2.0, -np.inf])
    dy = np.array([1.0, 2.0, -0.5, 4.0])
    y = np.exp(x) / np.exp(x).sum()
    r = y * dy
    (found, _) = through(gg.nn.softmax, x, dy=dy, epsilon=1e-12)
    expected = np.where(y > 0, np.where(y > 0, x, 0) * (r - y * r.sum()), 0)
    np.testing.assert_allclose(found, expected)


def test_an_embedding_gets_the_relevance_of_its_rows():
    table = RNG.normal(size=(5, 3))
    w = RNG.normal(size=(3, 2))
    (found, score) = through(lambda t: gg.take(t, [2, 4, 2], axis=0) @ w, table, epsilon=1e-12)
    np.testing.assert_allclose(found.sum(), score.sum())
    assert (np.abs(found).sum(axis=1) > 0).tolist() == [False, False, True, False, True]


def test_relevance_stops_at_stop_gradient():
    c = conserved(lambda x: gg.sum(gg.stop_gradient(2.0 * x) + x), V)
    np.testing.assert_allclose(c.relevance, V, rtol=1e-5)
    np.testing.assert_allclose(c.biases, 2.0 * V.sum(), rtol=1e-5)


def test_an_lstm_step_hands_all_to_its_signals():
    """c = f * c0 + i * tanh(g), h = o * tanh(c): the gates f, i and o get none."""
    names = {n: RNG.normal(size=(3, 3)) for n in "fiog"}

    def step(x, c0):
        f, i, o = (gg.nn.sigmoid(x @ names[n]) for n in "fio")
        return gg.sum(o * gg.tanh(f * c0 + i * gg.tanh(x @ names["g"])))

    xs = V[:1], np.array([[0.3, -0.4, 0.9]])
    of_x, of_c, score = through(step, *xs, epsilon=1e-12)
    f, i = [1 / (1 + np.exp(-xs[0] @ names[n])) for n in "fi"]
    kept, made = f * xs[1], i * np.tanh(xs[0] @ names["g"])
    o = 1 / (1 + np.exp(-xs[0] @ names["o"]))
    np.testing.assert_allclose(of_c, o * np.tanh(kept + made) * kept / (kept + made))
    np.testing.assert_allclose(of_x.sum() + of_c.sum(), score)


def test_a_gru_step_hands_all_to_its_signals():
    """(1 - z) * h + z * n: z and 1 - z are gates."""

    def step(h, n, z):
        z = gg.nn.sigmoid(z)
        return (1.0 - z) * h + z * gg.tanh(n)

    h, n, z = V, 1.0 - V, V / 2
    of_h, of_n, of_z, _ = through(step, h, n, z, epsilon=1e-12)
    gate = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(of_h, (1 - gate) * h)
    np.testing.assert_allclose(of_n, gate * np.tanh(n))
    np.testing.assert_array_equal(of_z, np.zeros_like(z))


def test_attention_weights_are_known_behind_dropout_and_heads():
    def f(logits, v):
        a = gg.nn.dropout(gg.reshape(gg.nn.softmax(logits), (1, 2, 2)), 0.3, seed=1)
        return a[0] @ v

    of_logits, of_v, score = through(f, V[:, :2], V, epsilon=1e-12)
    np.testing.assert_array_equal(of_logits, np.zeros((2, 2)))
    np.testing.assert_allclose(of_v.sum(), score.sum())


def test_the_layer_rules_follow_what_carries():
    """w @ x is x' @ w' turned round, whichever factor the rule takes for the weights."""
    x = gg.placeholder((5, 1), name="x")
    for rule in (rules.lrp_epsilon(0.1), rules.lrp_gamma(), rules.lrp_zbox()):
        column, row = [
            rules.relevance(gg.sum(y), x, {"MatMul": rule}) for y in (W.T @ x, gg.transpose(x) @ W)
        ]
        column, row = values([column, row], {x: X[:1].T})
        np.testing.assert_allclose(column, row)
        assert np.abs(column).min() > 0


def test_a_layer_rule_for_a_product_of_signals_is_an_error_and_epsilon_shares():
    x = gg.placeholder((2, 2), name="x")
    score = gg.sum(x @ gg.tanh(x))
    with pytest.raises(gg.GradientError, match=r"both factors of node 'MatMul.*lrp_product"):
        rules.relevance(score, x, {"MatMul": rules.lrp_gamma()})
    with pytest.raises(gg.GradientError, match="a node that is a product"):
        rules.relevance(score, x, {"Tanh": rules.lrp_product()})
    own, usual = values(
        [rules.relevance(score, x, {"MatMul": rules.lrp_epsilon()}), rules.relevance(score, x)],
        {x: V[:, :2]},
    )
    np.testing.assert_array_equal(own, usual)


def test_several_inputs_are_asked_for_at_once_in_their_structure():
    x, b = gg.placeholder((3, 5), name="x"), gg.placeholder((4,), name="b")
    score = gg.sum((x @ W + b) * DY)
    c = rules.conservation(score, {"x": x, "b": b}, epsilon=1e-12)
    found, biases, score = values([c.relevance, c.biases, score], {x: X, b: B})
    np.testing.assert_allclose(found["b"], (DY * B).sum(axis=0))
    np.testing.assert_allclose(found["x"].sum() + found["b"].sum(), score)
    assert biases == 0.0


def test_lengths_may_be_unknown_and_dtypes_small():
    x = gg.placeholder(("N", 3), "float32", name="x")
    w = gg.constant(RNG.normal(size=(3, 3)).astype("float32"))
    h = gg.nn.layer_norm(gg.nn.gelu(x @ w)) * gg.nn.sigmoid(x @ w)
    c = rules.conservation(gg.sum(h @ w), x)
    assert {t.dtype for t in c} == {np.dtype("float32")}
    c = values(c, {x: V})
    assert abs(c.rest) < 1e-4 * np.abs(c.relevance).sum()


# --- no rule -----------------------------------------------------------------------------------


def unknown_net(x):
    h = gg.exp(x)
    return gg.sum(gg.cos(h) + gg.prod(x, 1, True))


def test_ops_without_a_rule_are_an_error_that_names_all_of_them_and_their_lines():
    x = gg.placeholder(V.shape, name="x")
    with pytest.raises(gg.GradientError) as caught:
        rules.relevance(unknown_net(x), x)
    line = unknown_net.__code__.co_firstlineno
    for op, where in [("Exp", line + 1), ("Cos", line + 2), ("ReduceProd", line + 2)]:
        assert f"({op}), built at test_relevance.py:{where}" in str(caught.value)
    assert 'unknown="gradient"' in str(caught.value)


def test_unknown_gradient_is_the_derivative_there_and_conservation_says_what_it_makes():
    x = gg.placeholder(V.shape, name="x")
    score = gg.sum(gg.exp(x))
    c = rules.conservation(score, x, unknown="gradient", epsilon=1e-12)
    found, rest, score = values([c.relevance, c.rest, score], {x: V})
    np.testing.assert_allclose(found, np.exp(V) * np.exp(V))
    np.testing.assert_allclose(rest, score - found.sum())
    with pytest.raises(ValueError, match="'error' or 'gradient'"):
        rules.relevance(score, x, unknown="ignore")


def test_an_op_beside_the_way_to_x_needs_no_rule():
    x, w = gg.placeholder((2, 3), name="x"), gg.placeholder((3, 2), name="w")
    score = gg.sum(x @ gg.exp(w)) + gg.sum(x * gg.nn.sigmoid(gg.cos(x)))
    found = rules.relevance(score, x)
    assert np.isfinite(value(found, {x: V, w: np.ones((3, 2))})).all()


def test_a_rule_for_an_unknown_op_is_enough():
    x = gg.placeholder(V.shape, name="x")
    score = gg.sum(gg.exp(x))
    for chosen in ({"Exp": rules.lrp_pass()}, {gg.select.op("Exp"): rules.lrp_pass()}):
        np.testing.assert_allclose(
            value(rules.relevance(score, x, chosen), {x: V}), np.exp(V), rtol=1e-4
        )
    plain = rules.relevance(score, x, {"Exp": None})
    np.testing.assert_allclose(value(plain, {x: V}), np.exp(V) ** 2, rtol=1e-4)


def test_unknown_ops_inside_branches_and_derived_nodes_are_errors_too():
    x = gg.placeholder((), name="x")
    with pytest.raises(gg.GradientError, match=r"1 op .*\n.*\(Exp\)"):
        rules.relevance(gg.cond(x > 0, lambda: gg.exp(x), lambda: x), x)
    slope = gg.gradients(gg.exp(x) * 3.0, x)
    with pytest.raises(gg.GradientError, match=r"\(Exp\)"):
        rules.relevance(slope, x)


def test_nothing_at_all_reaches_x():
    x, y = gg.placeholder((2,), name="x"), gg.placeholder((2,), name="y")
    np.testing.assert_array_equal(
        value(rules.relevance(gg.sum(y), x), {x: [1, 2], y: [1, 2]}), [0, 0]
    )


# --- keys of rules= ----------------------------------------------------------------------------


def two_layers(x):
    h = x @ W
    return h, gg.sum(gg.nn.relu(h) @ np.ones((4, 1)))


def test_nodes_regions_and_selections_go_over_the_usual_rules():
    x = gg.placeholder((3, 5), name="x")
    h, score = two_layers(x)
    box = rules.lrp_zbox(0.0, 1.0)
    keys = [h.node, gg.select.nodes(h), gg.select.where(lambda n: n is h.node)]
    with gg.override_gradient(rules.lrp_gamma()) as region:
        g = x @ W
    other = gg.sum(gg.nn.relu(g) @ np.ones((4, 1)))
    found = [rules.relevance(score, x, {key: box}) for key in keys]
    found += [rules.relevance(other, x, {region: box})]
    usual, *found = values([rules.relevance(score, x), *found], {x: X})
    for r in found:
        np.testing.assert_allclose(r, found[0])
    assert np.abs(usual - found[0]).max() > 0.01


def test_a_node_without_its_mark_or_with_none_has_its_derivative():
    x = gg.placeholder((3, 5), name="x")
    h, score = two_layers(x)
    found, plain = values(
        [rules.relevance(score, x, {h.node: None}), gg.gradients(h, x, rules.relevance(score, h))],
        {x: X},
    )
    np.testing.assert_allclose(found, plain)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        ("MatMull", gg.RegionError, "Did you mean 'MatMul'"),
        ("Conv2D", gg.RegionError, "selects nothing"),
        (3, gg.GradientError, "got 3"),
        (gg.select.op("Exp"), gg.RegionError, "selects nothing"),
    ],
)
def test_a_key_that_is_for_nothing_is_an_error(key, error, words):
    x = gg.placeholder((3, 5), name="x")
    _, score = two_layers(x)
    with pytest.raises((error, LookupError), match=words):
        rules.relevance(score, x, {key: rules.lrp_gamma()})


def test_two_keys_for_one_node_are_an_error():
    x = gg.placeholder((3, 5), name="x")
    h, score = two_layers(x)
    with pytest.raises(gg.RegionError, match="two entries"):
        rules.relevance(score, x, {h.node: rules.lrp_gamma(), "MatMul": rules.lrp_epsilon()})


def test_stamps_and_marks_keep_their_rule_and_the_call_may_replace_it():
    x = gg.placeholder(V.shape, name="x")
    with gg.gradient_override_map({"Relu": rules.scale(0.0)}):
        score = gg.sum(gg.nn.relu(x))
    kept, chosen = values(
        [rules.relevance(score, x), rules.relevance(score, x, {"Relu": rules.lrp_pass()})], {x: V}
    )
    np.testing.assert_array_equal(kept, np.zeros_like(V))
    np.testing.assert_allclose(chosen, np.maximum(V, 0), rtol=1e-5)


def test_the_rule_of_a_region_that_asks_for_its_default_gets_relevance():
    x = gg.placeholder((3, 5), name="x")
    w = gg.placeholder((5, 4), name="w")
    with gg.override_gradient(rules.scale(0.5)):
        h = gg.nn.relu(x @ w)
    plain, half = values(
        [
            rules.relevance(gg.sum(gg.nn.relu(x @ w)), x, epsilon=1e-12),
            rules.relevance(gg.sum(h), x, epsilon=1e-12),
        ],
        {x: X, w: W},
    )
    np.testing.assert_allclose(half, plain / 2)


def test_what_a_users_rule_differentiates_stays_a_derivative():
    """A rule that calls gradients() on what it built means the gradient, not relevance."""

    def squared(site, dy):
        x = gg.identity(site.inputs[0])
        return gg.gradients(gg.exp(x) * x, x, dy)

    x = gg.placeholder(V.shape, name="x")
    with gg.override_gradient(squared):
        y = gg.tanh(x)
    found, slope = values([rules.relevance(y, x), gg.gradients(y, x, y)], {x: V})
    np.testing.assert_allclose(found, slope)


def test_relevance_through_a_checkpoint_is_that_without_it():
    x = gg.placeholder((3, 5), name="x")

    def block(h):
        return gg.nn.gelu(h @ W) @ W.T

    saved, plain = values(
        [rules.relevance(gg.sum(f(x)), x) for f in (rules.checkpoint(block), block)], {x: X}
    )
    np.testing.assert_allclose(saved, plain, rtol=1e-9)


def test_a_mark_inside_a_checkpoint_keeps_its_rule_and_unknown_ops_there_are_errors():
    x = gg.placeholder((3, 5), name="x")

    def block(h):
        with gg.override_gradient(rules.lrp_zbox(0.0, 1.0)):
            z = h @ W
        return gg.nn.relu(z)

    def twice(h):
        return rules.checkpoint(block)(gg.nn.silu(h))

    inner, outer, plain = values(
        [
            rules.relevance(gg.sum(f(x)), x)
            for f in (twice, rules.checkpoint(twice), lambda h: block(gg.nn.silu(h)))
        ],
        {x: X},
    )
    np.testing.assert_allclose([inner, outer], [plain, plain])
    with pytest.raises(gg.GradientError, match=r"\(Exp\)"):
        rules.relevance(gg.sum(rules.checkpoint(gg.exp)(x)), x)


def test_relevance_inside_a_branch_of_what_lies_around_it():
    x = gg.placeholder((), name="x")
    y = gg.cond(x > 0, lambda: rules.relevance(gg.tanh(2.0 * x) * 3.0, x), lambda: x)
    assert value(y, {x: 0.5}) == pytest.approx(3 * np.tanh(1.0))


@pytest.mark.parametrize(
    "rule", [rules.lrp_epsilon(), rules.lrp_gamma(), rules.lrp_zbox()], ids=lambda r: r.name
)
def test_marked_layers_in_a_batch_keep_their_rule(rule):
    x = gg.placeholder((3, 5), name="x")

    def net(row):
        row = gg.expand_dims(row, 0)
        with gg.override_gradient(rule):
            h = row @ W
        return gg.sum(gg.nn.relu(h))

    rows = gg.stack([net(x[i]) for i in range(3)])
    scores = gg.sum(gg.vmap(net)(x)), gg.sum(rows)
    mapped, single = values([rules.relevance(s, x, epsilon=1e-12) for s in scores], {x: X})
    np.testing.assert_allclose(mapped, single, rtol=1e-9)


def test_what_a_rule_asks_for_in_a_batch_is_relevance_there():
    def net(row):
        with gg.override_gradient(rules.scale(0.5)):
            return gg.tanh(row)

    x = gg.placeholder((3, 5), name="x")
    batch = rules.relevance(gg.sum(gg.vmap(net)(x)), x)
    plain = rules.relevance(gg.sum(gg.tanh(x)), x)
    batch, plain = values([batch, plain], {x: X})
    np.testing.assert_allclose(batch, 0.5 * plain)


def test_what_a_rule_asks_for_in_another_graph_is_an_error():
    """The partial of what the examples share is worked out for one of them, at home."""
    x, w = gg.placeholder((3, 5), name="x"), gg.placeholder((5,), name="w")

    def net(row):
        with gg.override_gradient(lambda site, dy: [0.5 * d for d in site.default(dy)]):
            return gg.tanh(row * w)

    score = gg.sum(gg.vmap(net)(x))
    with pytest.raises(gg.GradientError, match="by the rule of a region that was copied"):
        rules.relevance(score, x)


def test_relevance_in_a_batch_is_that_of_each_example():
    def of_one(row):
        h = gg.nn.relu(gg.reshape(row, (1, 5)) @ W + B)
        return rules.relevance(gg.sum(h), row)

    x = gg.placeholder((3, 5), name="x")
    batch = gg.vmap(of_one)(x)
    rows = [gg.placeholder((5,), name=f"row{i}") for i in range(3)]
    batch, *single = values(
        [batch, *(of_one(r) for r in rows)], {x: X, **dict(zip(rows, X, strict=True))}
    )
    np.testing.assert_allclose(batch, single)


def test_relevance_through_a_vmapped_network():
    def net(row):
        return gg.sum(gg.nn.relu(gg.reshape(row, (1, 5)) @ W))

    x = gg.placeholder((3, 5), name="x")
    whole, mapped = values(
        [
            rules.relevance(gg.sum(gg.nn.relu(x @ W)), x),
            rules.relevance(gg.sum(gg.vmap(net)(x)), x),
        ],
        {x: X},
    )
    np.testing.assert_allclose(mapped, whole, rtol=1e-4)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_relevance_is_a_tensor_like_any_other(backend):
    """It compiles and is differentiated: here against differences."""
    x = gg.placeholder((1, 5), name="x")
    r = gg.sum(rules.relevance(network(x), x)[0, 0])
    f = gg.compile(x, [r, gg.gradients(r, x)], backend=backend)
    at = X[:1]
    slope = np.zeros_like(at)
    for j in range(5):
        step = np.zeros_like(at)
        step[0, j] = 1e-6
        slope[0, j] = (f(at + step)[0] - f(at - step)[0]) / 2e-6
    np.testing.assert_allclose(f(at)[1], slope, rtol=1e-4, atol=1e-6)


# --- conservation ------------------------------------------------------------------------------


def conserved(f, *xs, **options):
    """The values of what conservation() finds; that it is the whole score is asserted."""
    given = [gg.placeholder(np.shape(v), name=f"x{i}") for i, v in enumerate(xs)]
    score = f(*given)
    c = rules.conservation(score, given if len(given) > 1 else given[0], **options)
    c, score = values([c, score], dict(zip(given, xs, strict=True)))
    kept = sum(np.sum(r) for r in gg.base.tree.flatten(c.relevance)) + c.biases + c.stabiliser
    np.testing.assert_allclose(kept, np.sum(score), rtol=1e-6)
    assert abs(c.rest) <= 1e-6 * abs(np.sum(score))
    return c


def test_what_bias_and_stabiliser_keep_is_their_term():
    z = X @ W + B
    c = conserved(lambda x: gg.sum((x @ W + B) * DY), X, epsilon=0.1)
    after_sum = DY * z / (np.sum(DY * z) + 0.1 * np.sign(np.sum(DY * z))) * np.sum(DY * z)
    over = after_sum / (z + 0.1 * np.sign(z))
    np.testing.assert_allclose(c.biases, np.sum(over * B))
    at_product = z - B
    r = over * at_product
    kept = np.sum(over * 0.1 * np.sign(z)) + np.sum(
        r * 0.1 * np.sign(at_product) / (at_product + 0.1 * np.sign(at_product))
    )
    total = np.sum(DY * z)
    kept += total * 0.1 * np.sign(total) / (total + 0.1 * np.sign(total))
    np.testing.assert_allclose(c.stabiliser, kept)


@pytest.mark.parametrize(
    "rule", [rules.lrp_epsilon(0.2), rules.lrp_gamma(0.3), rules.lrp_zbox(0.0, 1.0)], ids=repr
)
def test_the_rules_of_layers_say_what_they_keep(rule):
    def f(x):
        with gg.override_gradient(rule):
            h = x @ W + B
        return gg.sum(gg.nn.relu(h))

    c = conserved(f, X)
    assert (abs(c.biases) > 1e-3) == ("zbox" not in rule.name)


def test_a_constant_border_and_a_larger_constant_keep_their_share():
    c = conserved(lambda x: gg.pad(x, ((0, 0), (0, 1)), constant_values=3.0), V, epsilon=1e-12)
    np.testing.assert_allclose(c.biases, 6.0)
    c = conserved(lambda x: gg.maximum(x, 0.75), V, epsilon=1e-12)
    np.testing.assert_allclose(c.biases, 0.75 * np.sum(V < 0.75))
    np.testing.assert_allclose(c.relevance, np.where(V > 0.75, V, 0))


def test_what_is_kept_in_a_branch_cannot_be_counted():
    x = gg.placeholder((), name="x")
    score = gg.cond(x > 0, lambda: x + 1.0, lambda: x)
    rules.relevance(score, x)
    with pytest.raises(gg.GradientError, match="branch"):
        rules.conservation(score, x)


def convolutional(image):
    """conv, bias, batch norm, relu, max pool, conv, relu, average pool, dense, bias: one class."""
    h = gg.nn.conv(image, K1, padding="VALID") + C1
    h = (h - MEAN) / np.sqrt(VARIANCE + 1e-5) * SCALE + OFFSET
    h = gg.nn.max_pool(gg.nn.relu(h), 2)
    h = gg.nn.avg_pool(gg.nn.relu(gg.nn.conv(h, K2, padding="VALID") + C2), 2)
    return (gg.reshape(h, (1, -1)) @ W3 + B3)[0, 1]


NET = np.random.default_rng(7)
K1, C1 = NET.normal(size=(3, 3, 2, 3)), NET.normal(size=3)
MEAN, VARIANCE, SCALE, OFFSET = [NET.uniform(0.5, 1.5, size=3) for _ in range(4)]
K2, C2 = NET.normal(size=(2, 2, 3, 4)), NET.uniform(0.5, 1.0, size=4)
W3, B3 = NET.normal(size=(4, 2)), NET.normal(size=2)
IMAGE = NET.uniform(size=(8, 8, 2))


def convolutional_by_hand(image):
    """Its relevance and what its biases keep, with the batch norm in the convolution before it."""

    def conv(x, k, b):
        n = x.shape[0] - k.shape[0] + 1
        patches = np.lib.stride_tricks.sliding_window_view(x, k.shape[:2], axis=(0, 1))
        return np.einsum("ijcuv,uvck->ijk", patches[:n, :n], k) + b

    def pooled(x, how):
        n = x.shape[0] // 2
        return how(x[: 2 * n, : 2 * n].reshape(n, 2, n, 2, -1), axis=(1, 3))

    s = SCALE / np.sqrt(VARIANCE + 1e-5)
    k1, c1 = K1 * s, (C1 - MEAN) * s + OFFSET
    z1 = conv(image, k1, c1)
    a1 = np.maximum(z1, 0)
    p1 = pooled(a1, np.max)
    z2 = conv(p1, K2, C2)
    a2 = np.maximum(z2, 0)
    p2 = pooled(a2, np.mean)
    flat = p2.reshape(-1)
    r = np.zeros(2)
    r[1] = (flat @ W3 + B3)[1]
    r, kept3 = by_hand.dense(flat, W3, B3, r)
    with np.errstate(invalid="ignore"):
        r = np.nan_to_num(by_hand.pool(a2, r.reshape(p2.shape), most=False))
    r, kept2 = by_hand.conv(p1, K2, C2, r)
    r = by_hand.pool(a1, r, most=True) * (a1 > 0)
    r, kept1 = by_hand.conv(image, k1, c1, r)
    return r, kept1 + kept2 + kept3


def test_a_convolutional_network_is_as_by_hand():
    c = conserved(lambda x: convolutional(x), IMAGE[None], epsilon=1e-12)
    found, kept = convolutional_by_hand(IMAGE)
    np.testing.assert_allclose(c.relevance[0], found, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(c.biases, kept, rtol=1e-7)


D, HEADS, T = 6, 2, 4
BLOCK = {n: NET.normal(size=(D, D)) for n in ("q", "k", "v", "o")}
BLOCK |= {"up": NET.normal(size=(D, 9)), "down": NET.normal(size=(9, D))}
BLOCK |= {n: NET.uniform(0.5, 1.5, size=D) for n in ("s1", "b1", "s2", "b2", "bv", "bo", "b4")}
BLOCK["b3"] = NET.uniform(0.5, 1.5, size=9)
TOKENS = NET.normal(size=(T, D))


def attention(x, p):
    def split(t):
        return gg.transpose(gg.reshape(t, (T, HEADS, D // HEADS)), (1, 0, 2))

    q, k, v = split(x @ p["q"]), split(x @ p["k"]), split(x @ p["v"] + p["bv"])
    a = gg.nn.softmax(q @ gg.transpose(k, (0, 2, 1)) / np.sqrt(D / HEADS))
    return gg.reshape(gg.transpose(a @ v, (1, 0, 2)), (T, D)) @ p["o"] + p["bo"], a


def transformer(x, p=BLOCK, read=lambda y: y[0, 2]):
    h = x + attention(gg.nn.layer_norm(x, p["s1"], p["b1"]), p)[0]
    m = gg.nn.gelu(gg.nn.layer_norm(h, p["s2"], p["b2"]) @ p["up"] + p["b3"])
    return read(h + (m @ p["down"] + p["b4"]))


def transformer_by_hand(x):
    """Its relevance and what its biases keep."""
    p = BLOCK

    def norm(x, s, b):
        c = x - x.mean(1, keepdims=True)
        return c / np.sqrt((c**2).mean(1, keepdims=True) + 1e-5) * s + b

    def split(t):
        return t.reshape(T, HEADS, D // HEADS).transpose(1, 0, 2)

    n1 = norm(x, p["s1"], p["b1"])
    q, k, v = split(n1 @ p["q"]), split(n1 @ p["k"]), split(n1 @ p["v"] + p["bv"])
    e = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(D / HEADS))
    a = e / e.sum(-1, keepdims=True)
    mixed = (a @ v).transpose(1, 0, 2).reshape(T, D)
    attended = mixed @ p["o"] + p["bo"]
    h = x + attended
    n2 = norm(h, p["s2"], p["b2"])
    u = n2 @ p["up"] + p["b3"]
    m = u * (0.5 + np.vectorize(erf)(u / np.sqrt(2)) / 2)
    out = m @ p["down"] + p["b4"]
    r = np.zeros((T, D))
    r[0, 2] = (h + out)[0, 2]
    kept = np.zeros(6)
    of_h, r = by_hand.plus(h, out, r)
    r, kept[0] = by_hand.rows(m, p["down"], p["b4"], r)
    r, kept[1] = by_hand.rows(n2, p["up"], p["b3"], r)
    r, kept[2] = by_hand.layer_norm(h, p["s2"], p["b2"], 1e-5, r)
    of_x, r = by_hand.plus(x, attended, r + of_h)
    r, kept[3] = by_hand.rows(mixed, p["o"], p["bo"], r)
    r = by_hand.heads_mixed(a, v, split(r))
    r, kept[4] = by_hand.rows(n1, p["v"], p["bv"], r.transpose(1, 0, 2).reshape(T, D))
    r, kept[5] = by_hand.layer_norm(x, p["s1"], p["b1"], 1e-5, r)
    return of_x + r, kept.sum()


def test_a_transformer_block_is_as_by_hand():
    c = conserved(transformer, TOKENS, epsilon=1e-13)
    found, kept = transformer_by_hand(TOKENS)
    np.testing.assert_allclose(c.relevance, found, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(c.biases, kept, rtol=1e-6)


def test_a_transformer_block_without_biases_hands_all_to_its_input():
    p = {n: np.zeros_like(v) if n[0] == "b" else v for n, v in BLOCK.items()}
    c = conserved(lambda x: transformer(x, p), TOKENS, epsilon=1e-13)
    np.testing.assert_allclose(c.biases, 0.0, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2])
def test_networks_conserve_with_any_stabiliser(epsilon):
    conserved(transformer, TOKENS, epsilon=epsilon)
    conserved(convolutional, IMAGE[None], epsilon=epsilon)
    equal = {"MatMul": rules.lrp_product(gated=False, epsilon=epsilon)}
    conserved(transformer, TOKENS, epsilon=epsilon, rules=equal)


# --- random networks ---------------------------------------------------------------------------


def random_network(rng, x, bias):
    """Some layers on rows of x, and what lies between them: at each cut all that crosses it."""
    cuts = [x]
    for _ in range(rng.integers(2, 5)):
        h = cuts[-1]
        d = h.shape[1]
        w = rng.normal(size=(d, d))
        b = rng.normal(size=d) * bias
        kind = rng.integers(8)
        if kind == 0:
            h = gg.nn.gelu(h @ w + b)
        elif kind == 1:
            h = h + gg.tanh(h @ w + b)
        elif kind == 2:
            h = (h @ w) * gg.nn.sigmoid(h @ w.T + b)
        elif kind == 3:
            h = gg.nn.softmax(h @ w @ gg.transpose(h)) @ (h + b)
        elif kind == 4:
            h = gg.nn.layer_norm(h, offset=b)
        elif kind == 5:
            h = gg.concat([h[:, 1:], gg.nn.relu(h[:, :1] + 3.0 * bias)], 1)
        elif kind == 6:
            h = (h @ w) * h + b
        else:
            h = gg.maximum(h, (h @ w)) + b
        cuts.append(h)
    return cuts, gg.sum(cuts[-1] @ rng.normal(size=(d, 1)))


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_conserve_relevance_at_every_cut(seed):
    rng = np.random.default_rng(seed)
    x = gg.placeholder((3, 4), name="x")
    cuts, score = random_network(rng, x, bias=seed % 2)
    at_each = [rules.conservation(score, h, epsilon=1e-12) for h in cuts]
    at = rng.normal(size=(3, 4))
    at_each, score = values([at_each, score], {x: at})
    for c in at_each:
        np.testing.assert_allclose(
            c.relevance.sum() + c.biases + c.stabiliser, score, rtol=1e-6, atol=1e-9
        )
        if not seed % 2:
            np.testing.assert_allclose(c.relevance.sum(), score, rtol=1e-5, atol=1e-7)


# --- more differences from a reference ---------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: gg.sum(x * gg.nn.sigmoid(x)),
        lambda x: gg.sum(gg.nn.layer_norm(x, epsilon=0.1) * V),
        lambda x: gg.sum(x @ gg.transpose(gg.tanh(x))),
        lambda x: gg.sum(gg.maximum(x, 2.0 * x[:, ::-1])),
        lambda x: gg.sum(x[:, :1] / (2.0 + x[:, 1:] ** 2)),
        lambda x: gg.sum(gg.exp(x) - gg.cos(x)),
        lambda x: gg.sum(gg.where(V > 0, x, gg.square(x))),
        lambda x: gg.sum(gg.einsum("ij,kj->ik", x, gg.sin(x))),
        lambda x: gg.sum(gg.nn.softmax(x) * V),
        lambda x: gg.sum(gg.nn.softmax(gg.stack([x[0], x[0] * 40.0]), axis=0) * V),
        lambda x: gg.cond(gg.constant(True), lambda: gg.sum(2.0 * x), lambda: gg.sum(x)),
    ],
)
def test_deeplift_of_products_and_quotients_adds_up_too(f):
    x = gg.placeholder(V.shape, name="x")
    found, y, y0 = values([rules.deeplift(f, x, 0.3), f(x), f(gg.full_like(x, 0.3))], {x: V})
    np.testing.assert_allclose(found.sum(), y - y0, rtol=1e-9)


def test_deeplift_of_a_transformer_block_adds_up():
    x = gg.placeholder(TOKENS.shape, name="x")
    found, y, y0 = values(
        [
            rules.deeplift(transformer, x, TOKENS[::-1] * 0.5),
            transformer(x),
            transformer(gg.constant(TOKENS[::-1] * 0.5)),
        ],
        {x: TOKENS},
    )
    np.testing.assert_allclose(found.sum(), y - y0, rtol=1e-8)


def test_deeplift_where_nothing_changed_is_the_derivative_times_zero():
    def f(x):
        return gg.sum(gg.nn.softmax(x) * V + gg.nn.layer_norm(x) * gg.nn.gelu(x))

    x = gg.placeholder(V.shape, name="x")
    found = rules.deeplift(f, x, V + np.eye(2, 3))
    y, y0 = f(x), f(gg.constant(V + np.eye(2, 3)))
    found, change = values([found, y - y0], {x: V})
    np.testing.assert_allclose(found.sum(), change, rtol=1e-9)
    assert (found[np.eye(2, 3) == 0] == 0).all()


def test_deeplift_keeps_marks():
    def f(x):
        with gg.override_gradient(rules.scale(0.0)):
            return gg.sum(gg.tanh(x))

    x = gg.placeholder(V.shape, name="x")
    np.testing.assert_array_equal(value(rules.deeplift(f, x, 0.0), {x: V}), np.zeros_like(V))


def test_deeplift_of_a_product_is_symmetric():
    """The Shapley values of x * y from 0: half of the product to each."""
    x = gg.placeholder((2,), name="x")
    found = rules.deeplift(lambda x: x[0] * x[1], x, 0.0)
    np.testing.assert_allclose(value(found, {x: [2.0, 3.0]}), [3.0, 3.0])


def test_deeplift_names_the_ops_it_has_no_rule_for():
    def f(x):
        picked = gg.take(gg.reshape(x, (6,)), gg.argmax(x, 1))
        return gg.sum(gg.prod(x)) + gg.sum(gg.sort(x, 1)[:, 1]) + gg.sum(picked)

    x = gg.placeholder(V.shape, name="x")
    with pytest.raises(gg.GradientError) as caught:
        rules.deeplift(f, x, 0.0)
    for op in ("ReduceProd", "Sort", "Gather"):
        assert f"({op}), built at test_relevance.py" in str(caught.value)
    plain = rules.deeplift(f, x, 0.0, unknown="gradient")
    slope = gg.gradients(f(x), x)
    found, slope = values([plain, slope], {x: V})
    np.testing.assert_allclose(found, V * slope)


# --- cost --------------------------------------------------------------------------------------


def test_relevance_is_linear_in_the_length_of_a_network():
    def cost(n):
        x = gg.placeholder((2,), name="x")
        gates = x
        for _ in range(n):
            gates = gates * 1.5
        h = x
        for _ in range(n):
            h = gg.tanh(h) * gates
        return calls_of(lambda: rules.relevance(gg.sum(h), x))

    assert cost(200) < 2.2 * cost(100)
