"""Forward mode: through plain graphs, and through every kind of rule."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.forward.jvp import jvp
from graphgrad.differentiate.linearity import NonLinear, check_linear

from .helpers import impure, scaled, value, values

EPS = 1e-6


def by_difference(ys, feeds, directions):
    """How the values of ys move when the fed values move along directions."""
    ends = [
        values(ys, {x: np.asarray(a) + s * EPS * directions.get(x, 0) for x, a in feeds.items()})
        for s in (1, -1)
    ]
    return [(np.asarray(p) - np.asarray(m)) / (2 * EPS) for p, m in zip(*ends, strict=True)]


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


# --- plain graphs --------------------------------------------------------------------------------


def softmax_loss(x, w):
    return gg.nn.softmax(x @ w, axis=-1) * gg.log(1.5 + gg.sin(x @ w))


def shapes_and_sums(x, w):
    z = gg.concat([gg.reshape(x, (3, 2)), w], axis=0)
    return gg.cumulative_sum(z.T, axis=1) / (2.0 + gg.max(z * z))


def pieces(x, w):
    return gg.where(x > 0, gg.exp(x), gg.square(x))[:, ::2] @ w[:2]


def decompositions(x, w):
    a = gg.matmul(x, x.T) + 3.0 * np.eye(2)
    return gg.linalg.solve(a, x) * gg.linalg.det(gg.matmul(w.T, w))


@pytest.mark.parametrize("f", [softmax_loss, shapes_and_sums, pieces, decompositions])
@pytest.mark.parametrize("known", [True, False])
def test_jvp_of_plain_graphs_is_the_directional_derivative(f, known):
    rng = np.random.default_rng(0)
    if f is shapes_and_sums and not known:
        pytest.skip("the reshape needs known lengths")
    x = gg.placeholder((2, 3) if known else (None, None))
    w = gg.placeholder((3, 2) if known else (None, None))
    feeds = {x: rng.normal(size=(2, 3)), w: rng.normal(size=(3, 2))}
    directions = {x: rng.normal(size=(2, 3)), w: rng.normal(size=(3, 2))}
    y = f(x, w)
    found = jvp([y], [x, w], [directions[x], directions[w]])
    close(values(found, feeds), by_difference([y], feeds, directions))


def test_jvp_of_many_outputs_that_depend_on_each_other():
    x, w = gg.placeholder((3,)), gg.placeholder(())
    a = gg.sin(x) * w
    b = gg.sum(a * a)
    ys = {"a": a, "b": b, "c": [b * w, a + b]}
    directions = {x: np.array([1.0, -2.0, 0.5]), w: np.array(0.25)}
    found = jvp(ys, (x, w), (directions[x], directions[w]))
    assert found.keys() == ys.keys()
    feeds = {x: np.array([0.1, 0.2, 0.3]), w: np.array(1.5)}
    flat = gg.base.tree.flatten
    close(flat(values(found, feeds)), by_difference(flat(ys), feeds, directions))


def test_jvp_takes_tensors_arrays_and_ones_as_tangents():
    x, v = gg.placeholder((2,)), gg.placeholder((2,))
    y = x * x
    feeds = {x: [3.0, 4.0], v: [1.0, 10.0]}
    assert value(jvp(y, x, v), feeds).tolist() == [6, 80]
    assert value(jvp(y, x, np.array([1.0, 10.0])), feeds).tolist() == [6, 80]
    assert value(jvp(y, x), feeds).tolist() == [6, 8]


def test_jvp_is_zero_where_nothing_flows_or_none():
    x, z = gg.placeholder((2,)), gg.placeholder((None,))
    y = [x * 2.0, z * 2.0]
    found = values(jvp(y, x), {x: [1.0, 2.0], z: [1.0, 2.0, 3.0]})
    assert [f.tolist() for f in found] == [[2, 2], [0, 0, 0]]
    some, none = jvp(y, x, unconnected="none")
    assert some is not None
    assert none is None
    assert jvp(gg.stop_gradient(x) * 2.0, x, unconnected="none") is None
    assert value(jvp(gg.stop_gradient(x) * 2.0, x), {x: [1.0, 2.0]}).tolist() == [0, 0]


def test_jvp_tells_a_zero_gradient_from_none():
    x = gg.placeholder((2,))
    sign, none = jvp([gg.sign(x), gg.placeholder(())], x, unconnected="none")
    assert none is None
    assert value(sign, {x: [1.0, 2.0]}).tolist() == [0, 0]


def test_jvp_with_respect_to_itself_and_to_an_inner_tensor():
    x = gg.placeholder(())
    h = x * x
    y = h * 3.0
    assert values(jvp([x, h, y], h, 2.0), {x: 5.0}) == [0, 2, 6]


def test_jvp_respects_stop_gradients():
    x = gg.placeholder(())
    h = x * x
    assert value(jvp(h * x, x, stop_gradients=h), {x: 3.0}) == 9


def test_jvp_through_cond():
    x = gg.placeholder(())
    y = gg.cond(x > 0, lambda: gg.sin(x) * x, lambda: x * 5.0)
    t = jvp(y, x)
    assert value(t, {x: -1.0}) == 5
    assert value(t, {x: 2.0}) == pytest.approx(np.sin(2) + 2 * np.cos(2))
    assert value(gg.gradients(t, x), {x: 2.0}) == pytest.approx(2 * np.cos(2) - 2 * np.sin(2))


def test_jvp_of_jvp_and_of_gradients():
    x = gg.placeholder(())
    y = gg.sin(x) * x
    second = -np.sin(2) * 2 + 2 * np.cos(2)
    assert value(jvp(jvp(y, x), x), {x: 2.0}) == pytest.approx(second)
    assert value(jvp(gg.gradients(y, x), x), {x: 2.0}) == pytest.approx(second)
    assert value(gg.gradients(jvp(y, x), x), {x: 2.0}) == pytest.approx(second)


def test_jvp_of_a_wrong_question():
    x, i = gg.placeholder((2,)), gg.placeholder((2,), "int64")
    with pytest.raises(gg.GradientError, match="a tangent of"):
        jvp(x * 2.0, x, np.ones(3))
    with pytest.raises(gg.GradientError, match="a tangent of"):
        jvp(x * 2.0, x, np.ones(2, "float32"))
    with pytest.raises(gg.GradientError, match="2 tangents for 1 xs"):
        jvp(x * 2.0, [x], [np.ones(2), np.ones(2)])
    with pytest.raises(gg.DTypeError):
        jvp(x * 2.0, i)
    with pytest.raises(gg.GradientError, match="not a tensor"):
        jvp(3.0, x)
    with pytest.raises(ValueError, match="unconnected"):
        jvp(x, x, unconnected="ones")


def test_jvp_does_not_stamp_what_it_builds():
    x = gg.placeholder((None,))
    y = x * x
    with gg.gradient_override_map({"ZerosLike": "Identity", "Multiply": scaled(2.0)}):
        y = y * x
        t = jvp(y, x)
    assert all(n.stamp is None for n in t.graph.nodes if n.origin is not None)


# --- S25: rules that are linear ------------------------------------------------------------------


def test_S25_a_linear_rule_is_transposed():
    x, w = gg.placeholder((2,)), gg.placeholder((2, 2))

    def rule(site, dy):
        x, w = site.inputs
        return 2.0 * (w @ dy), gg.outer(x, dy) - gg.outer(dy, x)

    with gg.override_gradient(rule):
        y = x @ w
    feeds = {x: [1.0, 2.0], w: [[3.0, 4.0], [5.0, 6.0]]}
    dx, dw = np.array([1.0, -1.0]), np.array([[0.5, 1.0], [2.0, -3.0]])
    columns = [values(gg.gradients(y, [x, w], np.eye(2)[i]), feeds) for i in range(2)]
    expected = [np.vdot(gx, dx) + np.vdot(gw, dw) for gx, gw in columns]
    close(values([jvp(y, [x, w], [dx, dw])], feeds), [expected])


@pytest.mark.parametrize(
    ("rule", "slope"),
    [
        (lambda s, dy: dy, 1.0),
        (scaled(3.0), 18.0),
        (lambda s, dy: dy * s.outputs[0], 9.0),
        (lambda s, dy: gg.where(s.inputs[0] > 1, dy, 0.0), 1.0),
        (lambda s, dy: -dy, -1.0),
        (lambda s, dy: dy / s.inputs[0] + 2.0 * dy, 7.0 / 3.0),
        (lambda s, dy: gg.stop_gradient(dy) * 2.0, 2.0),
        (lambda s, dy: gg.zero_gradient(dy) * 2.0, 2.0),
        (lambda s, dy: gg.NO_GRAD, 0.0),
        (lambda s, dy: gg.DEFAULT, 6.0),
        (lambda s, dy: 0.0, 0.0),
    ],
)
def test_S25_forward_mode_uses_the_rule(rule, slope):
    x = gg.placeholder(())
    with gg.override_gradient(rule):
        y = x * x
    z = gg.sin(y * 2.0)
    expected = 2 * np.cos(18) * slope
    assert value(jvp(z, x, 10.0), {x: 3.0}) == pytest.approx(10 * expected)
    found = gg.gradients(z, x, unconnected="zero")
    assert value(found, {x: 3.0}) == pytest.approx(expected)


def test_S25_marks_inside_a_rule_do_not_count_when_it_is_transposed():
    """What a rule computes is what counts: a reversal inside it is not reversed again."""

    @gg.custom_gradient
    def reversal(t):
        return t * 2.0, lambda dt: -dt

    x = gg.placeholder(())
    with gg.override_gradient(lambda s, dy: reversal(dy)):
        y = x * x
    with gg.override_gradient(lambda s, dy: (reversal(s.default(dy)[0]),)):
        z = y * 5.0
    assert value(gg.gradients(z, x), {x: 3.0}) == 20
    assert value(jvp(z, x), {x: 3.0}) == 20


def test_S25_op_type_maps_count_in_forward_mode():
    x = gg.placeholder((3,))
    with gg.gradient_override_map({"Round": "Identity", "Tanh": scaled(2.0)}):
        y = gg.tanh(gg.round(x) * 0.5)
    found = value(jvp(y, x), {x: [0.2, 1.3, -2.2]})
    np.testing.assert_allclose(found, 1 - np.tanh(np.round([0.2, 1.3, -2.2]) * 0.5) ** 2)


def test_S25_custom_gradient_closures():
    @gg.custom_gradient
    def log1pexp(x):
        e = gg.exp(x)
        return gg.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = gg.placeholder(())
    t = jvp(log1pexp(x), x)
    assert value(t, {x: 1.0}) == pytest.approx(1 / (1 + np.exp(-1)))
    s = 1 / (1 + np.exp(-1))
    assert value(gg.gradients(t, x), {x: 1.0}) == pytest.approx(s * (1 - s))


def test_S25_many_inputs_and_outputs():
    @gg.custom_gradient
    def f(a, b):
        return (a * b, a + b, a - b), lambda du, dv, dw: (du * 2.0 + dv, dv * b - dw)

    a, b = gg.placeholder(()), gg.placeholder(())
    u, v, w = f(a, b)
    feeds = {a: 2.0, b: 3.0}
    assert values(jvp([u, v, w, u * v], [a, b], [1.0, 10.0]), feeds) == [2, 31, -10, 2 * 5 + 31 * 6]
    assert values(jvp([u, w], a), feeds) == [2, 0]


def test_S25_a_rule_declared_linear_is_believed():
    def norm(dy):
        return impure(dy, lambda a: 2 * a, lambda node, d: 2.0 * d)

    x = gg.placeholder(())
    for declared in (True, None):
        with gg.override_gradient(gg.Rule(lambda s, dy: norm(dy), "opaque", linear=declared)):
            y = x * x
        if declared:
            assert value(jvp(y, x), {x: 3.0}) == 2
        else:
            with pytest.raises(gg.GradientError, match=r"PyFunction.* is not linear in it"):
                jvp(y, x)


def test_S25_second_order_through_a_transposed_rule():
    """The tangent is made by the rule, so it is differentiated as S23 says of the rule."""
    x = gg.placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0]):
        y = x * x
    assert value(gg.gradients(jvp(y, x), x), {x: 3.0}) == 9
    assert value(jvp(jvp(y, x), x), {x: 3.0}) == 9

    @gg.custom_gradient
    def f(x):
        y = x * x
        return y, lambda dy: dy * y

    assert value(gg.gradients(jvp(f(x), x), x), {x: 3.0}) == 6


def test_S25_a_second_order_rule_does_not_disturb_the_first():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: (dy * 5.0 * x, lambda ddx: ddx * 100.0)

    x = gg.placeholder(())
    assert value(jvp(f(x), x), {x: 3.0}) == 15


def test_S25_order_error_forbids_derivatives_of_the_rule_not_its_transpose():
    x = gg.placeholder(())
    with gg.override_gradient(scaled(2.0), order="error"):
        y = x * x
    assert value(jvp(y, x), {x: 3.0}) == 12
    with pytest.raises(gg.GradientError, match="order='error'"):
        jvp(gg.gradients(y, x), x)


def test_S25_overrides_of_the_call():
    x = gg.placeholder(())
    with gg.override_gradient(scaled(2.0)) as region:
        y = x * x
    assert value(jvp(y, x, overrides={region: scaled(10.0)}), {x: 3.0}) == 120
    assert value(jvp(y, x, overrides={region: None}), {x: 3.0}) == 6
    assert value(jvp(y, x, overrides="none"), {x: 3.0}) == 6
    assert value(jvp(y, x, overrides={"Multiply": scaled(5.0), region: None}), {x: 3.0}) == 30
    assert value(jvp(y, x), {x: 3.0}) == 12


def test_S25_inside_a_body_of_cond():
    x = gg.placeholder(())

    def marked():
        with gg.override_gradient(lambda s, dy: gg.stop_gradient(dy) * s.outputs[0]):
            return x * x

    y = gg.cond(x > 0, marked, lambda: x)
    assert value(jvp(y, x), {x: 3.0}) == 9
    assert value(jvp(y, x), {x: -3.0}) == 1

    def guided():
        with gg.override_gradient(lambda s, dy: gg.maximum(dy, 0.0)):
            return x * x

    with pytest.raises(gg.GradientError, match="Maximum"):
        jvp(gg.cond(x > 0, guided, lambda: x), x)


def test_S25_a_region_in_which_jvp_is_called_does_not_matter():
    x = gg.placeholder(())
    with gg.override_gradient(scaled(7.0)):
        y = gg.sin(x)
        t = jvp(y, x)
        z = t * 1.0
    assert value(z, {x: 0.5}) == pytest.approx(np.cos(0.5))
    assert value(gg.gradients(z, x), {x: 0.5}) == pytest.approx(-7 * np.sin(0.5))


# --- S25: rules that are not ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "node", "why"),
    [
        (lambda s, dy: dy * dy, "Multiply", "multiplies it with itself"),
        (lambda s, dy: dy * 2.0 + s.inputs[0], "Add", "affine"),
        (lambda s, dy: gg.clip(dy, -1.0, 1.0), "Clip", "not linear"),
        (lambda s, dy: gg.where(dy > 0, dy, 0.0), "Greater", "not linear"),
        (lambda s, dy: gg.tanh(s.default(dy)[0]), "Tanh", "not linear"),
        (lambda s, dy: 2.0 / dy, "Divide", "not linear"),
        (lambda s, dy: 3.0, "Constant", "does not depend on it"),
        (lambda s, dy: s.inputs[0], "Placeholder", "does not depend on it"),
        (lambda s, dy: dy.astype("int64").astype("float64"), "Cast", "converts it to int64"),
    ],
)
def test_S25_a_rule_that_is_not_linear_is_an_error(rule, node, why):
    x = gg.placeholder(())
    with gg.override_gradient(gg.Rule(rule, "crooked")):
        y = x * x
    with pytest.raises(gg.GradientError) as caught:
        jvp(y, x)
    message = str(caught.value)
    for part in ("crooked", node, why, "test_forward.py", "jvp=", "linear=True"):
        assert part in message
    assert gg.gradients(y, x) is not None


def test_S25_a_rule_declared_not_linear_is_an_error_whatever_it_builds():
    x = gg.placeholder(())
    with gg.override_gradient(gg.Rule(lambda s, dy: dy, "shy", linear=False)):
        y = x * x
    with pytest.raises(gg.GradientError, match=r"'shy'.*declared linear=False"):
        jvp(y, x)


def test_S25_a_rule_that_is_not_on_the_way_is_not_asked():
    x, z = gg.placeholder(()), gg.placeholder(())
    with gg.override_gradient(lambda s, dy: dy * dy):
        y = z * z
    assert values(jvp([x * 2.0, y], x), {x: 1.0, z: 1.0}) == [2, 0]


def test_S25_a_rule_inside_a_default_is_judged_too():
    x = gg.placeholder(())
    inner = gg.Rule(lambda s, dy: gg.clip(dy, -1.0, 1.0), "inner")
    with gg.override_gradient(scaled(2.0)), gg.override_gradient(inner):
        y = x * x
    with pytest.raises(gg.GradientError, match="'inner'"):
        jvp(y, x)
    with gg.override_gradient(lambda s, dy: dy), gg.override_gradient(inner):
        y = x * x
    assert value(jvp(y, x), {x: 3.0}) == 1


def test_S25_what_a_rule_asks_for_itself_is_judged_by_its_result():
    """A rule may use rules that are not linear on the way, on what does not vary."""
    x = gg.placeholder(())

    def rule(site, dy):
        t = site.inputs[0] * 1.0
        with gg.override_gradient(lambda s, d: gg.tanh(d)):
            u = t * t
        return dy * gg.gradients(u, t)

    with gg.override_gradient(rule):
        y = x * x
    assert value(jvp(y, x), {x: 3.0}) == pytest.approx(np.tanh(1))

    def crooked(site, dy):
        t = site.inputs[0] * 1.0
        with gg.override_gradient(lambda s, d: gg.tanh(d)):
            u = t * t
        return gg.gradients(u, t, grad_ys=dy)

    with gg.override_gradient(crooked):
        y = x * x
    with pytest.raises(gg.GradientError, match=r"crooked.*Tanh"):
        jvp(y, x)


def test_S25_the_vjp_of_a_python_function_is_judged():
    x = gg.placeholder((2,))
    straight = impure(x, np.round, lambda node, dy: 2.0 * dy)
    assert value(jvp(straight, x), {x: [1.2, 2.2]}).tolist() == [2, 2]
    crooked = impure(x, np.round, lambda node, dy: dy * dy)
    with pytest.raises(gg.GradientError, match=r"Multiply.*multiplies it with itself"):
        jvp(crooked, x)


# --- S25: rules with their own jvp ---------------------------------------------------------------


def clipped(calls=None):
    """dx = clip(dy), and forward a tangent 100 times clipped."""

    def forward(site, dx):
        if calls is not None:
            calls.append(site)
        return gg.clip(dx, -1.0, 1.0) * site.inputs[0] * 100.0

    return gg.Rule(lambda s, dy: gg.clip(dy, -1.0, 1.0), "clipped", jvp=forward)


def test_S25_a_rule_s_own_jvp_is_used():
    calls = []
    x = gg.placeholder(())
    with gg.override_gradient(clipped(calls)) as region:
        y = gg.sin(x)
    z = y * 5.0
    assert value(jvp(z, x, 7.0), {x: 3.0}) == 5 * 300
    assert [s.outputs for s in calls] == [(y,)]
    assert value(gg.gradients(z, x), {x: 3.0}) == 1
    assert value(jvp(z, x, overrides={region: None}), {x: 3.0}) == pytest.approx(5 * np.cos(3))


def test_S25_own_jvp_registered_by_name_on_an_op_type():
    def relu_jvp(site, dx):
        return gg.where(site.inputs[0] > 0, dx, 0.1 * dx)

    with gg.Graph():
        gg.register_gradient("test/guided", replace=True, jvp=relu_jvp)(
            lambda s, dy: gg.where(dy > 0, s.default(dy)[0], 0.0)
        )
        x = gg.placeholder((2,))
        with gg.gradient_override_map({"Relu": "test/guided"}):
            y = gg.nn.relu(x) * 2.0
        assert value(jvp(y, x), {x: [1.0, -1.0]}).tolist() == [2, 0.2]
        gg.unregister_gradient("test/guided")


def test_S25_own_jvp_of_many_inputs_and_outputs():
    seen = []

    def forward(site, da, di, db):
        seen.append((da, di, db))
        return [da * 2.0, None, db * site.inputs[0] + da]

    rule = gg.Rule(
        lambda s, *dys: [gg.tanh(dys[0]), gg.NO_GRAD, gg.tanh(dys[2])], "many", jvp=forward
    )
    a, b = gg.placeholder(()), gg.placeholder(())
    i = gg.placeholder((), "int64")
    with gg.override_gradient(rule, inputs=[a, i, b]) as region:
        u, k, v = a * b, i * 2, a + b
        region.declare(outputs=[u, k, v])
    feeds = {a: 2.0, b: 3.0, i: 1}
    assert values(jvp([u, v, u * v], [a, b], [1.0, 10.0]), feeds) == [2, 21, 2 * 5 + 21 * 6]
    (given,) = seen
    assert given[1] is None
    assert values(jvp([u], [a]), feeds) == [2]
    assert gg.is_zero(seen[-1][2])


def test_S25_own_jvp_two_sites_in_a_row_and_beside_each_other():
    rule = gg.Rule(lambda s, dy: dy * dy, "square", jvp=lambda s, dx: 3.0 * dx)
    x = gg.placeholder(())
    with gg.override_gradient(rule):
        a = gg.exp(x)
    with gg.override_gradient(rule):
        b = gg.exp(a)
    with gg.override_gradient(rule):
        c = gg.exp(x)
    assert values(jvp([a, b, c, b + c], x, 2.0), {x: 0.1}) == [6, 18, 6, 24]


def test_S25_own_jvp_at_second_order():
    """The tangent is what the user's jvp built: it is differentiated like any other nodes."""
    x = gg.placeholder(())
    rule = gg.Rule(lambda s, dy: dy * dy, "square", jvp=lambda s, dx: dx * s.inputs[0] ** 3.0)
    with gg.override_gradient(rule):
        y = gg.exp(x)
    t = jvp(y, x)
    assert values([t, gg.gradients(t, x), jvp(t, x)], {x: 2.0}) == [8, 12, 12]
    reads = gg.Rule(lambda s, dy: dy * dy, "square", jvp=lambda s, dx: dx * s.outputs[0])
    with gg.override_gradient(reads):
        y = x * x
    t = jvp(y, x)
    assert values([t, jvp(t, x)], {x: 3.0}) == [9, 9]
    assert value(gg.gradients(t, x), {x: 3.0}) == 1  # reads y again, whose rule squares the 1


def test_S25_own_jvp_inside_a_default():
    x = gg.placeholder(())
    with gg.override_gradient(scaled(2.0)), gg.override_gradient(clipped()):
        y = gg.exp(x)
    assert value(jvp(y, x, 0.5), {x: 3.0}) == 2 * 150
    tanh = gg.Rule(lambda s, dy: gg.tanh(s.default(dy)[0]), "outer")
    square = gg.Rule(lambda s, dy: s.default(dy)[0] ** 2.0, "outer")
    product = gg.Rule(lambda s, dy: s.default(dy)[0] * s.default(dy)[0], "outer")
    for outer in (tanh, square, product):
        with gg.override_gradient(outer), gg.override_gradient(clipped()):
            y = gg.exp(x)
        with pytest.raises(gg.GradientError, match="'outer'"):
            jvp(y, x)


def test_S25_own_jvp_outermost_wins():
    x = gg.placeholder(())
    outer = gg.Rule(lambda s, dy: s.default(dy), "outer", jvp=lambda s, dx: dx * 4.0)
    with gg.override_gradient(outer), gg.override_gradient(lambda s, dy: dy * dy):
        y = gg.exp(x)
    assert value(jvp(y, x), {x: 3.0}) == 4


def test_S25_own_jvp_may_ask_for_the_inside():
    """While it runs its site counts as unmarked, so it can start from the true tangent."""
    x = gg.placeholder(())

    def forward(site, dx):
        return 10.0 * jvp(site.outputs[0], site.inputs[0], dx)

    with gg.override_gradient(gg.Rule(lambda s, dy: gg.tanh(dy), "own", jvp=forward)):
        y = gg.sin(x)
    assert value(jvp(y, x), {x: 0.5}) == pytest.approx(10 * np.cos(0.5))


def test_S25_gradients_that_an_own_jvp_asks_for_are_questions_of_their_own():
    """Each calls the rules on its way anew: a draw is another, and no two are parts of one call."""
    x = gg.placeholder(())
    noise = []

    def forward(site, dx):
        z = 2.0 * site.inputs[0]

        def squashed():
            with gg.override_gradient(lambda s, dy: gg.tanh(dy)):
                return gg.sin(z)

        y = gg.cond(z > 0, squashed, lambda: z)
        with gg.override_gradient(lambda s, dy: dy * gg.random.normal(())):
            drawn = gg.sin(z)
        noise.extend(gg.gradients(drawn, z) for _ in range(2))
        return dx * (gg.gradients(y, z) + gg.gradients(2.0 * y, z))

    with gg.override_gradient(gg.Rule(lambda s, dy: dy, "own", jvp=forward)):
        y = gg.exp(x)
    dy = jvp(y, x)
    assert value(dy, {x: 1.0}) == pytest.approx(np.tanh(1) + np.tanh(2))
    first, second = values(noise, {x: 1.0})
    assert first != second


def test_S25_own_jvp_in_a_body_of_cond():
    x = gg.placeholder(())

    def marked():
        with gg.override_gradient(clipped()):
            return gg.exp(x)

    y = gg.cond(x > 0, marked, lambda: x)
    assert value(jvp(y, x, 5.0), {x: 3.0}) == 300
    assert value(jvp(y, x, 5.0), {x: -3.0}) == 5


def test_S25_own_jvp_with_unknown_lengths():
    x = gg.placeholder((None,))
    rule = gg.Rule(lambda s, dy: gg.sign(dy) * gg.sum(dy * dy), "odd", jvp=lambda s, dx: -dx)
    with gg.override_gradient(rule):
        y = gg.exp(x)
    found = value(jvp(gg.sum(y * 2.0), x), {x: [1.0, 2.0, 3.0]})
    assert found == -6


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda s, dx: None, "None; is a `return` missing"),
        (lambda s, dx: [dx, dx], "2 tangents"),
        (lambda s, dx: gg.sum(dx), "must return"),
        (lambda s, dx: dx.astype("float32"), "float32"),
        (lambda s, dx: gg.DEFAULT, "DEFAULT is for gradients only"),
        (lambda s, dx, more: dx, "gets the site and 1 tangent, one per input"),
    ],
)
def test_S25_what_an_own_jvp_returns_is_checked(forward, message):
    x = gg.placeholder((2,))
    with gg.override_gradient(gg.Rule(lambda s, dy: dy, "odd", jvp=forward)):
        y = gg.exp(x)
    with pytest.raises(gg.GradientError, match=message) as caught:
        jvp(y, x)
    assert "test_forward.py" in str(caught.value)


@pytest.mark.parametrize("kind", [KeyError, TypeError])
def test_S25_an_own_jvp_that_fails_keeps_its_error(kind):
    def forward(site, dx):
        raise kind("mine")

    x = gg.placeholder(())
    with gg.override_gradient(gg.Rule(lambda s, dy: dy, "odd", jvp=forward)):
        y = gg.exp(x)
    with pytest.raises(kind, match="mine") as caught:
        jvp(y, x)
    assert any("odd.jvp" in note for note in caught.value.__notes__)


# --- the analysis --------------------------------------------------------------------------------


def test_linearity_of_pieces():
    v, w, c = (gg.placeholder((2,)) for _ in range(3))
    check_linear([v * 2.0, v + w - v, -w, gg.sum(v * c), gg.stop_gradient(v) * c], [v, w])
    check_linear([v * 0.0 + gg.zeros((2,)), gg.zeros_like(v), gg.zeros_like(gg.tanh(c))], [v])
    check_linear([gg.cond(gg.sum(c) > 0, lambda: v * c, lambda: gg.zeros((2,)))], [v])
    for wrong in (
        v * w,
        v + c,
        c,
        gg.exp(v),
        gg.ones_like(v),
        gg.cond(gg.sum(v) > 0, lambda: v, lambda: v * 2.0),
        gg.cond(gg.sum(c) > 0, lambda: v * v, lambda: v),
        gg.cond(gg.sum(c) > 0, lambda: c, lambda: v),
    ):
        with pytest.raises(NonLinear):
            check_linear([wrong], [v, w])


def test_linearity_of_lengths_that_are_read_and_of_what_is_waited_for():
    """A length is not a value, and who runs first says when, not what."""
    v, c = gg.placeholder((None,)), gg.placeholder((None,))
    after = gg.op_types()["After"]()
    check_linear([v + gg.zeros_like(v), gg.extend.apply(after, v, c)], [v])
    check_linear([gg.extend.apply(gg.op_types()["ReshapeLike"](), v, v)], [v])
    check_linear([gg.extend.apply(after, v * 2.0, v * v), v + gg.zeros_like(gg.exp(v))], [v])
    for wrong in (gg.ones_like(v), gg.extend.apply(after, c, v)):
        with pytest.raises(NonLinear, match="does not depend on it"):
            check_linear([wrong], [v])


def test_linearity_of_a_choice_between_something_and_nothing():
    v, c = gg.placeholder((2,)), gg.placeholder((2,))
    for branches in ((lambda: v, lambda: v * 0.0), (lambda: v * 0.0, lambda: v)):
        chosen = gg.cond(gg.sum(c) > 0, *branches)
        check_linear([chosen * c], [v])
        with pytest.raises(NonLinear, match="multiplies it with itself"):
            check_linear([chosen * chosen], [v])


def test_linearity_goes_on_where_zeros_become_integers():
    v = gg.placeholder((2,))
    zeros = gg.zeros_like(v)
    check_linear([v + gg.cast(gg.cast(zeros, "int64"), v.dtype)], [v])
    with pytest.raises(NonLinear, match="converts it to int64"):
        check_linear([gg.cast(v, "int64")], [v])


def test_linearity_of_loops_that_a_test_ends():
    v, c = gg.placeholder((2,)), gg.placeholder((2,))

    def loop(init, body, test=lambda t: gg.sum(c) > 0):
        return gg.while_loop(test, body, init)

    check_linear([loop(v, lambda t: t * c)], [v])
    check_linear([loop((gg.zeros((2,)), c), lambda t: (t[0] + v, t[1] * t[1]))[0]], [v])
    for wrong, why in (
        (loop(v, lambda t: t * t), "multiplies it with itself"),
        (loop(v, lambda t: t * v), "multiplies it with itself"),
        (loop(v, lambda t: t + c), "affine"),
        (loop(v, lambda t: t * c, lambda t: gg.sum(t) > 0), "is not linear in it"),
        (loop(c, lambda t: v), "carries a value that depends on it"),
    ):
        with pytest.raises(NonLinear, match=why):
            check_linear([wrong], [v])


def test_linearity_in_a_loop_is_that_of_all_its_runs():
    """What a run carries may be zero in the first, and linear from the second on."""
    v, rows = gg.placeholder((2,)), gg.placeholder((3, 2))

    def runs(f):
        init = gg.zeros((2,)), v
        return gg.scan(lambda t, row: ((t[1], t[1] * row), f(t[0], row)), init, rows)[1]

    check_linear([runs(lambda t, row: t * row)], [v])
    with pytest.raises(NonLinear, match="multiplies it with itself"):
        check_linear([runs(lambda t, row: t * t)], [v])


def test_linearity_is_not_recursive():
    v = t = gg.placeholder(())
    for _ in range(20_000):
        t = t + v
    check_linear([t], [v])
    with pytest.raises(NonLinear):
        check_linear([gg.exp(t)], [v])


def test_S25_a_zero_gradient_beside_others_leaves_their_tangents_alone():
    x, z = gg.placeholder(()), gg.placeholder(())
    found = gg.jvp([gg.zero_gradient(x), gg.sin(z)], [x, z], [2.0, 2.0], unconnected="none")
    assert values(found, {x: 0.1, z: 0.3}) == pytest.approx([0.0, 2 * np.cos(0.3)])


def test_S25_a_rule_may_read_the_shape_of_what_is_not_linear():
    x = gg.placeholder((None,))
    with gg.override_gradient(lambda site, dy: 3.0 * dy + gg.zeros_like(gg.exp(dy))):
        y = gg.sin(x)
    assert value(jvp(y, x), {x: [0.5, 1.0]}).tolist() == [3, 3]


def test_S25_a_jvp_of_the_rule_where_no_output_moves():
    x, i = gg.placeholder((3,)), gg.placeholder((2,), "int64")
    rule = gg.Rule(lambda site, dy: gg.NO_GRAD, jvp=lambda site, *dxs: 7.0 * dxs[0][:2])
    with gg.override_gradient(rule) as region:
        y = gg.take(x, i) * 2.0
        region.declare(inputs=[x, i])
    still = gg.zero_gradient(y)
    found = gg.jvp([still, still + gg.sum(x)], x, np.ones(3))
    still, moved = values(found, {x: [1.0, 2.0, 3.0], i: [0, 2]})
    assert still.tolist() == [0, 0]
    assert moved.tolist() == [3, 3]


def test_S25_an_error_in_a_jvp_says_where_that_is_defined():
    def wrong(site, dx):
        return gg.zeros((7,))

    x = gg.placeholder((3,))
    with gg.override_gradient(gg.Rule(lambda site, dy: dy, jvp=wrong)):
        y = gg.exp(x)
    with pytest.raises(gg.GradientError) as error:
        gg.jvp(y, x, np.ones(3))
    assert f"test_forward.py:{wrong.__code__.co_firstlineno}" in str(error.value)


def test_S25_what_a_rule_adds_up_of_constants_is_no_zero():
    x = gg.placeholder(())
    with gg.override_gradient(lambda site, dy: dy + (x + x)):
        y = gg.sin(x)
    with pytest.raises(gg.GradientError, match="affine"):
        gg.jvp(y, x, gg.constant(1.0))
