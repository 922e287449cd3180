"""S33: gradients flow through complex numbers as in JAX, and nothing is lost on the way."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import build

from ..laws.cases import CASES
from .helpers import value

ONE = np.ones(3)
Z = np.array([0.5 + 1j, -1.5 + 0.25j, 2 - 0.75j])
TURN = 1j * ONE


def wave(x):
    return gg.exp(1j * x) * x


def by_parts(f, z, h=1e-6):
    """df/da - i df/db of a real function of z = a + ib, by differences, element by element."""
    found = np.zeros_like(z)
    for i in range(z.size):
        step = np.zeros_like(z)
        step.flat[i] = h
        along = [(f(z + d) - f(z - d)) / (2 * h) for d in (step, 1j * step)]
        found.flat[i] = along[0] - 1j * along[1]
    return found


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_S33_the_gradient_of_a_real_function_is_conjugated_nowhere(dtype):
    z = gg.placeholder((3,), dtype)
    y = gg.sum(gg.sin(gg.real(z * z)) * gg.imag(gg.exp(z)) + abs(z) ** 3)
    dz = gg.gradients(y, z)
    assert dz.type is z.type
    f = gg.compile(z, y)
    tolerance = 1e-6
    if dtype == "complex64":
        wide = gg.placeholder((3,), "complex128")
        y = gg.sum(gg.sin(gg.real(wide * wide)) * gg.imag(gg.exp(wide)) + abs(wide) ** 3)
        f, tolerance = gg.compile(wide, y), 1e-4
    np.testing.assert_allclose(value(dz, {z: Z.astype(dtype)}), by_parts(f, Z), rtol=tolerance)


def test_S33_the_gradient_of_a_holomorphic_function_is_its_derivative():
    z = gg.placeholder((3,), "complex128")
    y, total = gg.sin(z) * z, gg.sum(z**3)
    feeds = {z: Z}
    dz = gg.gradients(y, z, holomorphic=True)
    np.testing.assert_allclose(value(dz, feeds), np.cos(Z) * Z + np.sin(Z), rtol=1e-14)
    np.testing.assert_array_equal(value(gg.gradients(y, z, TURN), feeds), 1j * value(dz, feeds))
    value_of, slope = gg.value_and_grad(total, z, holomorphic=True)
    np.testing.assert_allclose(value(value_of, feeds), (Z**3).sum(), rtol=1e-14)
    np.testing.assert_allclose(value(slope, feeds), 3 * Z**2, rtol=1e-14)
    jacobian = gg.jacobian(y, z, holomorphic=True)
    np.testing.assert_allclose(value(jacobian, feeds), np.diag(value(dz, feeds)), rtol=1e-14)
    hessian = gg.hessian(total, z, holomorphic=True)
    np.testing.assert_allclose(value(hessian, feeds), np.diag(6 * Z), rtol=1e-14)
    hvp = gg.hvp(total, z, TURN, holomorphic=True)
    np.testing.assert_allclose(value(hvp, feeds), 6j * Z, rtol=1e-14)


def test_S33_a_loss_of_real_numbers_through_complex_ones():
    x = gg.placeholder((3,), name="x")
    loss = gg.sum(abs(wave(x)) ** 2) + gg.sum(x)
    at = np.array([1.0, 0.5, -2.0])
    feeds = {x: at}
    np.testing.assert_allclose(value(gg.gradients(loss, x), feeds), 2 * at + 1, rtol=1e-14)
    np.testing.assert_allclose(value(gg.jvp(loss, x), feeds), (2 * at + 1).sum(), rtol=1e-14)
    np.testing.assert_allclose(value(gg.jacobian(loss, x), feeds), 2 * at + 1, rtol=1e-14)
    np.testing.assert_allclose(value(gg.hessian(loss, x), feeds), 2 * np.eye(3), atol=1e-13)
    np.testing.assert_allclose(value(gg.hvp(loss, x, at), feeds), 2 * at, rtol=1e-13)


def test_S33_the_hvp_of_a_complex_x_is_the_gradient_of_the_slope_along_v():
    z = gg.placeholder((3,), "complex128")
    y = gg.sum(abs(gg.exp(z)) * gg.real(z * z))
    v = np.array([1j, 2 - 1j, 0.5])
    slope = gg.real(gg.sum(gg.gradients(y, z) * v))
    found = value(gg.hvp(y, z, v), {z: Z})
    np.testing.assert_allclose(found, by_parts(gg.compile(z, slope), Z), rtol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x, z, w: gg.gradients(w, z),
        lambda x, z, w: gg.gradients([gg.sum(x), w], z, [1.0, None]),
        lambda x, z, w: gg.jacobian(w, z),
        lambda x, z, w: gg.jacobian(gg.exp(1j * x), x),
        lambda x, z, w: gg.hessian(gg.sum(w), z),
        lambda x, z, w: gg.hvp(gg.sum(w), z, TURN),
        lambda x, z, w: gg.value_and_grad(gg.sum(w), z),
        lambda x, z, w: gg.hessian(gg.sum(abs(w)), z),
        lambda x, z, w: gg.gradients(gg.exp(1j * x), x, holomorphic=True),
        lambda x, z, w: gg.gradients(abs(w), z, holomorphic=True),
        lambda x, z, w: gg.jacobian(abs(w), z, holomorphic=True),
        lambda x, z, w: gg.gradients(gg.sin(x), x, TURN),
        lambda x, z, w: gg.gradients(gg.sin(x), x, gg.constant(TURN)),
        lambda x, z, w: gg.jvp(gg.sin(x), x, TURN),
        lambda x, z, w: gg.hvp(gg.sum(gg.sin(x)), x, TURN),
    ],
)
def test_S33_what_has_no_single_meaning_is_an_error_that_names_the_remedy(ask):
    x, z = gg.placeholder((3,)), gg.placeholder((3,), "complex128")
    with pytest.raises(gg.DTypeError, match=r"holomorphic|must have its shape and dtype|hvp"):
        ask(x, z, z * z)


def test_S33_integers_have_no_gradient_still():
    n, x = gg.placeholder((3,), "int64"), gg.placeholder((3,))
    with pytest.raises(gg.DTypeError, match="Cast it first"):
        gg.gradients(gg.sum(x), n)


def test_S33_forward_mode_is_how_ys_move():
    z = gg.placeholder((3,), "complex128")
    y = gg.sum(gg.conj(z) * gg.sin(z)) * abs(z)
    v = np.array([1j, 2 - 1j, 0.5])
    f = gg.compile(z, y)
    found = value(gg.jvp(y, z, v), {z: Z})
    np.testing.assert_allclose(found, (f(Z + 1e-6 * v) - f(Z - 1e-6 * v)) / 2e-6, rtol=1e-6)


def test_S33_what_is_stopped_before_or_behind_complex_numbers_does_not_flow():
    x = gg.placeholder((3,))
    z = wave(x)
    for lost in (
        gg.real(gg.stop_gradient(z)),
        gg.stop_gradient(gg.real(z)),
        gg.real(wave(gg.stop_gradient(x))),
        gg.zero_gradient(gg.real(z)),
        gg.cast(z == 1j, "float64"),
    ):
        dx = gg.gradients(gg.sum(lost * x), x)
        feeds = {x: np.array([0.5, 1.0, 2.0])}
        np.testing.assert_array_equal(value(dx, feeds), value(lost, feeds))
    dx = gg.gradients(gg.sum(gg.real(z) + x), x, stop_gradients=z)
    np.testing.assert_array_equal(value(dx, {x: ONE}), ONE)


# --- rules ------------------------------------------------------------------------------------


def test_S33_a_rule_is_given_complex_gradients_and_gives_them():
    seen = []

    def rule(site, dy):
        seen.append(dy.type)
        return 2 * dy

    z = gg.placeholder((3,), "complex128")
    with gg.override_gradient(rule):
        w = gg.exp(z)
    dz = gg.gradients(gg.sum(abs(w)), z)
    assert seen == [w.type]
    np.testing.assert_allclose(value(dz, {z: Z}), 2 * np.conj(np.sign(np.exp(Z))), rtol=1e-14)


@pytest.mark.parametrize("answer", [lambda dy: dy, lambda dy: 1j, lambda dy: np.full(3, 1j)])
def test_S33_what_a_rule_gives_a_real_input_is_real(answer):
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: answer(dy)):
        z = gg.exp(1j * x)
    with pytest.raises(gg.GradientError, match=r"float64\[3\]; got"):
        gg.gradients(gg.sum(gg.real(z)), x)


def test_S33_the_error_says_to_take_the_real_part():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: dy):
        z = gg.exp(1j * x)
    with pytest.raises(gg.GradientError, match=r"take gg\.real\(dx\)"):
        gg.gradients(gg.sum(gg.real(z)), x)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (lambda site, dy: 1j * site.default(dy)[0], 1j),
        (lambda site, dy: gg.DEFAULT, 1),
        (lambda site, dy: 0, 0),
        (lambda site, dy: {site.inputs[0]: 3j * site.default(dy)[0]}, 3j),
    ],
)
def test_S33_defaults_and_markers_of_complex_sites(answer, wanted):
    z = gg.placeholder((3,), "complex128")
    with gg.override_gradient(answer):
        w = gg.sin(z) * z
    dz = gg.gradients(gg.sum(gg.real(w)), z)
    own = np.cos(Z) * Z + np.sin(Z)
    np.testing.assert_allclose(value(dz, {z: Z}), wanted * own, rtol=1e-14)
    moved = gg.jvp(gg.sum(gg.real(w)), z, TURN)
    np.testing.assert_allclose(value(moved, {z: Z}), (1j * wanted * own).sum().real, atol=1e-13)


def test_S33_a_stamp_and_an_override_of_the_call_reach_complex_nodes():
    z = gg.placeholder((3,), "complex128")
    with gg.gradient_override_map({"Exp": lambda site, dy: 5 * dy}):
        w = gg.exp(z)
    dz = gg.gradients(w, z, ONE + 0j)
    np.testing.assert_array_equal(value(dz, {z: Z}), 5 * ONE + 0j)
    dz = gg.gradients(w, z, ONE + 0j, overrides={"Exp": lambda site, dy: 7j * dy})
    np.testing.assert_array_equal(value(dz, {z: Z}), 7j * ONE)


def test_S33_a_custom_gradient_of_complex_numbers():
    @gg.custom_gradient
    def modulus(z):
        return abs(z), lambda dy: 7j * dy

    z = gg.placeholder((3,), "complex128")
    assert value(gg.gradients(gg.sum(modulus(z)), z), {z: Z}).tolist() == [7j] * 3


def test_S33_a_rule_with_its_own_jvp():
    rule = gg.Rule(lambda site, dy: 2 * dy, jvp=lambda site, dz: 10j * dz)
    z = gg.placeholder((3,), "complex128")
    with gg.override_gradient(rule):
        w = gg.exp(z)
    np.testing.assert_array_equal(value(gg.jvp(w, z, ONE + 0j), {z: Z}), 10j * ONE)


# --- transforms -------------------------------------------------------------------------------


def test_S33_complex_numbers_that_a_branch_reads():
    x, flag = gg.placeholder((3,)), gg.placeholder((), "bool")
    z = wave(x)
    outside = gg.cond(flag, lambda: gg.sum(abs(z) ** 2), lambda: gg.sum(x))
    inside = gg.cond(flag, lambda: gg.sum(abs(wave(x)) ** 2), lambda: gg.sum(x))
    at = np.array([0.5, 1.0, 2.0])
    for loss in (outside, inside):
        dx = gg.gradients(loss, x)
        np.testing.assert_allclose(value(dx, {x: at, flag: True}), 2 * at, rtol=1e-14)
        np.testing.assert_array_equal(value(dx, {x: at, flag: False}), ONE)


def test_S33_a_gradient_asked_in_a_branch_flows_out_of_it():
    x, flag = gg.placeholder((3,)), gg.constant(True)
    z = wave(x)
    y = gg.cond(flag, lambda: gg.gradients(gg.sum(abs(z * 2.0) ** 2), x), lambda: gg.zeros_like(x))
    np.testing.assert_allclose(value(y, {x: ONE}), 8 * ONE, rtol=1e-14)


def test_S33_a_batch_of_examples():
    x = gg.placeholder((4, 3))
    at = np.arange(1.0, 13).reshape(4, 3)

    def loss(row):
        return gg.sum(abs(wave(row)) ** 2)

    for dx in (
        gg.vmap(lambda row: gg.gradients(loss(row), row))(x),
        gg.gradients(gg.sum(gg.vmap(loss)(x)), x),
    ):
        np.testing.assert_allclose(value(dx, {x: at}), 2 * at, rtol=1e-13)


def test_S33_copies_and_recomputation():
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        z = gg.rules.checkpoint(wave)(x)
        gg.identity(gg.sum(abs(z) ** 2), name="loss")
    copy = pickle.loads(pickle.dumps(graph))
    for g in (graph, copy):
        at = g.nodes[0].outputs[0]
        with g:
            dx = gg.gradients(g.nodes[-1].outputs[0], at)
        np.testing.assert_allclose(value(dx, {at: ONE}), 2 * ONE, rtol=1e-14)


# --- the library of rules, checks, optimisers ---------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (gg.rules.scale(0.5), lambda g: 0.5 * g),
        (gg.rules.reverse(), lambda g: -g),
        (gg.rules.ste(), lambda g: g / np.cos(Z)),
        (gg.rules.clip_norm(0.5), lambda g: g * 0.5 / np.linalg.norm(g)),
    ],
)
def test_S33_rules_of_the_library_on_complex_sites(rule, wanted):
    z = gg.placeholder((3,), "complex128")
    y = gg.override(rule)(gg.sin)(z)
    found = value(gg.gradients(y, z, TURN), {z: Z})
    np.testing.assert_allclose(found, wanted(1j * np.cos(Z)), rtol=1e-13)


def test_S33_the_rule_of_a_norm_of_complex_numbers():
    z = gg.placeholder((3,), "complex128")
    y = gg.override(gg.rules.norm())(lambda z: gg.sqrt(gg.sum(gg.real(z * gg.conj(z)))))(z)
    found = value(gg.gradients(y, z), {z: Z})
    np.testing.assert_allclose(found, Z.conj() / np.linalg.norm(Z), rtol=1e-14)


@pytest.mark.parametrize("rule", [gg.rules.fast_sigmoid(), gg.rules.triangle()])
def test_S33_rules_of_real_numbers_refuse_complex_ones(rule):
    z = gg.placeholder((3,), "complex128")
    with pytest.raises(gg.DTypeError, match="real numbers"):
        gg.gradients(gg.override(rule)(gg.sin)(z), z, TURN)


@pytest.mark.parametrize("solve", [gg.rules.root, gg.rules.linear_solve])
def test_S33_solvers_of_real_numbers_refuse_complex_ones(solve):
    with pytest.raises((gg.GraphGradError, TypeError), match="real numbers"):
        gg.evaluate(solve(lambda z: z * (2 + 1j), gg.constant(TURN)))


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda z: gg.sin(z) * gg.conj(z), [Z]),
        (gg.abs, [Z]),
        (lambda z, w: (z * w, gg.real(z) / abs(w)), [Z, 2 * Z[::-1]]),
        (lambda x, z: gg.sum(gg.exp(1j * x) * z), [ONE, Z]),
    ],
)
def test_S33_check_gradient_knows_both_parts(function, arrays):
    assert gg.check_gradient(lambda site, *dys: site.default(*dys), function, *arrays)
    wrong = gg.check_gradient(
        lambda site, *dys: [gg.conj(dx) * 1.5 for dx in site.default(*dys)], function, *arrays
    )
    assert {f.kind for f in wrong.findings} >= {"truth"}


def test_S33_check_gradient_finds_a_conjugate_that_is_too_many():
    conjugate = gg.check_gradient(lambda site, dy: gg.conj(site.default(dy)[0]), gg.sin, Z)
    assert [f.kind for f in conjugate.findings][:1] == ["truth"]
    with gg.Graph():
        assert gg.check_gradient(gg.tanh(gg.placeholder((2,), "complex64")).node)


@pytest.mark.parametrize(
    "optimizer",
    [
        gg.optimizers.SGD(0.1),
        gg.optimizers.SGD(0.05, 0.9, True),
        gg.optimizers.Adam(0.1),
        gg.optimizers.RMSProp(0.05),
        gg.optimizers.AdaGrad(0.9),
    ],
)
def test_S33_optimisers_go_downhill_in_complex_parameters(optimizer):
    w = gg.variable(np.zeros(3, complex))
    loss = gg.sum(abs(w - Z) ** 2)
    step = gg.compile([], loss, updates=optimizer.updates([w], gg.gradients([loss], [w])))
    for _ in range(300):
        final = step()
    assert final < 1e-6


def test_S33_adam_squares_moduli():
    w = gg.variable(np.zeros(3, complex))
    updates = gg.optimizers.Adam(0.1).updates([w], [gg.constant(Z)])
    first = gg.evaluate(updates[w])
    np.testing.assert_allclose(first, -0.1 * Z.conj() / abs(Z), rtol=1e-6)
    clipped, had = gg.optimizers.clip_by_global_norm([gg.constant(Z)], 1.0)
    assert gg.evaluate(had) == np.linalg.norm(Z)
    np.testing.assert_allclose(gg.evaluate(clipped[0]), Z / np.linalg.norm(Z), rtol=1e-14)


def outputs_read(op, arrays, dtype):
    """The outputs of an op that its gradient reads, by place; of real or of complex numbers."""
    with gg.Graph():
        types = [dtype if a.dtype.kind in "fc" else a.dtype for a in arrays]
        xs = [gg.placeholder(a.shape, t) for a, t in zip(arrays, types)]
        node = build(op, tuple(xs))
        ys = [y for y in node.outputs if y.type.differentiable]
        dys = [gg.placeholder(y.shape, y.dtype) for y in ys]
        wanted = [x for x in xs if x.type.differentiable]
        dxs = [dx for dx in gg.gradients(ys, wanted, dys) if dx is not None]
        nodes = gg.Program([*xs, *dys, *node.outputs], dxs).nodes
        return {t.index for n in nodes for t in n.inputs if t.node is node}


def test_S23_gradients_of_complex_numbers_read_the_output_where_those_of_real_ones_do():
    """So the rule of a region counts as often at second order."""
    tried = set()
    for _, op, arrays in CASES:
        if op.type == "Sign" or op.type in tried or not op.elementwise:
            continue  # of real numbers the gradient of Sign is zero
        try:
            read = [outputs_read(op, arrays, dtype) for dtype in ("complex128", "float64")]
        except (gg.GraphGradError, NotImplementedError):
            continue  # it is for numbers of one kind alone
        assert read[0] == read[1], op
        tried.add(op.type)
    assert {"Tanh", "Asinh", "Exp", "Divide"} <= tried
