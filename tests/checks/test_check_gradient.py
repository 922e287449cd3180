"""check_gradient: what it finds, what it holds rules to, and what it leaves alone."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.checks.gradient import check_gradient
from graphgrad.ir.build import build

from ..each import each
from ..laws.cases import CASES
from .test_lint import line

X = np.array([0.3, -0.7, 1.4])


def kinds(report):
    return {f.kind for f in report.findings}


def ste(site, dy):
    return dy


def double(x):
    return x + x


# --- targets --------------------------------------------------------------------------------------


def test_S38_a_region_is_checked_where_it_stands():
    x, w = gg.placeholder(("N", 3), name="x"), gg.placeholder((3, 3), name="w")
    h = gg.exp(x)
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        y = gg.tanh(h @ w)
    gg.sum(y * h)
    report = check_gradient(region)
    assert report.ok, report
    assert report
    assert "second order" in report.checked


def test_S38_a_region_with_a_wrong_rule_is_reported_with_its_line():
    x = gg.placeholder((3,), name="x")
    with gg.override_gradient(lambda site, dy: 2 * dy) as region:
        y = gg.sin(x)
    at = line()
    gg.exp(y)
    report = check_gradient(region)
    assert kinds(report) == {"truth"}
    (finding,) = report.findings
    assert finding.line == f"test_check_gradient.py:{at - 2}"
    assert "x:0" in finding.message
    assert finding.got == pytest.approx(2.0)
    assert -1 <= finding.expected <= 1
    assert len(finding.at) == 2
    assert "contract=" in finding.suggestion
    with pytest.raises(gg.GradientError, match="not the derivative of the site"):
        report.raise_if_failed()
    assert "1 finding" in str(report)


def test_S38_only_the_site_is_checked_not_what_leads_to_it_or_on():
    x = gg.placeholder((3,))
    with gg.override_gradient(ste):
        r = gg.round(x)  # another rule, on the way in
    with gg.override_gradient(lambda site, dy: dy * gg.cos(site.inputs[0])) as region:
        y = gg.sin(r)
    with gg.override_gradient(ste):
        gg.sign(y)
    assert check_gradient(region).ok


def test_S38_an_input_that_depends_on_another_input_is_held():
    x = gg.placeholder((3,))
    h = x * x
    with gg.override_gradient(
        lambda site, dy: (dy * site.inputs[1], dy * site.inputs[0]), inputs=[x, h]
    ) as region:
        x * h
    assert check_gradient(region).ok


def test_S38_a_region_inside_a_region():
    x = gg.placeholder((3,))
    with gg.override_gradient(ste):
        a = gg.exp(x)
        with gg.override_gradient(lambda site, dy: dy * gg.cos(site.inputs[0])) as right:
            b = gg.sin(a)
        with gg.override_gradient(lambda site, dy: dy) as wrong:
            gg.sin(b)
    assert check_gradient(right).ok
    assert kinds(check_gradient(wrong)) == {"truth"}


def test_S38_a_stamped_node_and_a_plain_one():
    x = gg.placeholder((3,))
    with gg.gradient_override_map({"Sin": lambda op, dy: dy * gg.cos(op.inputs[0])}):
        right = gg.sin(x).node
    with gg.gradient_override_map({"Sin": ste}):
        wrong = gg.sin(x).node
    plain = gg.sin(x).node
    assert check_gradient(right).ok
    assert kinds(check_gradient(wrong)) == {"truth"}
    assert check_gradient(plain).ok
    assert "exact" in str(check_gradient(plain))


def test_S38_a_custom_gradient_with_example_arrays():
    @gg.custom_gradient
    def right(x, k):
        y = gg.exp(x) * k
        return y, lambda dy: (dy * y, gg.sum(dy * gg.exp(x)))

    @gg.custom_gradient
    def wrong(x, k):
        y = gg.exp(x) * k
        return y, lambda dy: (dy * y, gg.mean(dy * gg.exp(x)))

    assert check_gradient(right, X, 2.0).ok
    (finding,) = check_gradient(wrong, X, 2.0).findings
    assert finding.kind == "truth"


def test_S38_a_rule_with_a_function_in_both_spellings():
    def rule(site, dy):
        return dy * site.outputs[0]

    assert check_gradient(gg.exp, X, rule=rule).ok
    assert check_gradient(rule, gg.exp, X).ok
    assert not check_gradient(rule, gg.sin, X).ok


def test_S38_a_rule_by_name():
    assert check_gradient("Exp", gg.exp, X).ok
    assert kinds(check_gradient("Identity", gg.round, X)) == {"truth"}


def test_S38_the_rule_can_be_another_one_than_is_marked():
    x = gg.placeholder((3,))
    with gg.override_gradient(ste) as region:
        gg.sin(x)
    assert not check_gradient(region).ok
    assert check_gradient(region, rule=lambda site, dy: dy * gg.cos(site.inputs[0])).ok


def test_S38_values_by_order_and_by_name():
    x, i = gg.placeholder((3,), name="x"), gg.placeholder((2,), "int64", name="i")
    with gg.override_gradient(lambda site, *dys: site.default(*dys)) as region:
        gg.sqrt(gg.take(x, i, axis=0))
    for values in ([[1.0, 2.0, 3.0], [0, 2]], {"x": [1.0, 2.0, 3.0], i: [0, 2]}):
        assert check_gradient(region, values=values).ok
    with pytest.raises(gg.GradientError, match="values="):
        check_gradient(region, values=[X])
    with pytest.raises(gg.GradientError, match="i:0"):
        check_gradient(region, values={"x": X})


def test_S38_the_domain_is_found():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        gg.log(x) + gg.sqrt(x)
    assert check_gradient(region).ok


def test_S38_lengths_that_do_not_fit_are_left_out():
    x = gg.placeholder((None, 4))
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        gg.reshape(gg.sin(x), (3, 4)) * 2.0
    report = check_gradient(region)
    assert report.ok, report
    assert "first order" in report.checked


def test_S38_no_domain_is_a_finding():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        gg.log(x - 100)
    (finding,) = check_gradient(region).findings
    assert finding.kind == "no values"
    assert "values=" in finding.suggestion


def test_S38_what_is_no_target_is_refused():
    with pytest.raises(gg.GradientError, match="marks 0 sites"):
        check_gradient(gg.exp, X)
    with pytest.raises(gg.GradientError, match="floating"):
        check_gradient(gg.exp, 2, rule=ste)
    with pytest.raises(gg.GradientError, match="takes a region"):
        check_gradient("exp")
    with pytest.raises(ValueError, match="order"):
        check_gradient(gg.exp, X, rule=ste, order=4)
    with gg.override_gradient(ste) as region:
        gg.exp(gg.placeholder((3,)))
        with pytest.raises(gg.GradientError, match="open"):
            check_gradient(region)


def test_S38_nothing_stays_in_the_graph_as_a_forward_node(graph):
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        y = gg.sin(x)
    z = gg.exp(y)
    n = len(graph)
    check_gradient(region)
    assert all(node.origin is not None for node in graph.nodes[n:])
    (dx,) = gg.gradients([z], [x])
    assert np.allclose(gg.evaluate(dx, {x: X}), np.exp(np.sin(X)) * np.cos(X))


# --- what it finds --------------------------------------------------------------------------------


def test_S38_a_rule_that_fails_for_a_missing_gradient():
    def rule(site, dy, dz):
        if gg.is_zero(dz):
            raise KeyError("no dz")
        return dy * gg.cos(site.inputs[0]) + dz

    def two(x):
        return gg.sin(x), x + 0

    report = check_gradient(two, X, rule=rule)
    assert kinds(report) == {"error"}
    assert "KeyError" in str(report)
    assert "missing" in str(report)


def test_S38_a_rule_that_takes_a_missing_gradient_for_another():
    def rule(site, dy, dz):
        x = site.inputs[0]
        return dy * gg.cos(x) + (dy if gg.is_zero(dz) else dz)

    assert "missing gradients" in kinds(check_gradient(lambda x: (gg.sin(x), x + 0), X, rule=rule))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda site, dy: gg.sum(dy), "type float64"),
        (lambda site, dy: dy.astype("float32"), "astype"),
        (lambda site, dy: (dy, dy), "2 gradients for 1"),
        (lambda site, dy: None, "missing"),
    ],
)
def test_S38_wrong_shapes_dtypes_and_counts(rule, words):
    report = check_gradient(gg.exp, X, rule=rule)
    assert kinds(report) == {"error"}
    assert words in str(report)


def test_S38_a_rule_that_is_not_linear():
    def clipped(site, dy):
        return gg.clip(dy, -0.1, 0.1) * gg.cos(site.inputs[0])

    assert "linearity" in kinds(check_gradient(gg.sin, X, rule=clipped))
    policy = gg.Rule(clipped, contract="policy")
    assert check_gradient(gg.sin, X, rule=policy).ok
    declared = gg.Rule(clipped, contract="policy", linear=True)
    assert kinds(check_gradient(gg.sin, X, rule=declared)) == {"linearity"}


def test_S38_zero_gradients_that_do_not_give_zero():
    report = check_gradient(gg.sin, X, rule=lambda site, dy: dy * gg.cos(site.inputs[0]) + 1.0)
    assert any("zero gradients" in f.message for f in report.findings)


def test_S38_a_rule_that_is_not_the_same_twice():
    calls = iter(range(100))

    def drifting(site, dy):
        return dy * gg.cos(site.inputs[0]) * (1 + 1e-9 * next(calls))

    assert "determinism" in kinds(check_gradient(gg.sin, X, rule=drifting))


def test_S38_no_gradient_where_one_is_due():
    report = check_gradient(
        lambda x, w: x * w, X, X + 2, rule=lambda s, dy: (gg.NO_GRAD, dy * s.inputs[0])
    )
    (finding,) = report.findings
    assert finding.got == 0.0


def test_S38_second_order_cut_off():
    def cut(site, dy):
        return dy * gg.stop_gradient(gg.cos(site.inputs[0]))

    assert kinds(check_gradient(gg.sin, X, rule=cut)) == {"second order"}
    assert check_gradient(gg.sin, X, rule=cut, order=1).ok
    policy = gg.Rule(cut, contract=gg.surrogate_of(gg.sin))
    assert check_gradient(gg.sin, X, rule=policy).ok


def test_S38_a_wrong_second_rule():
    def with_second(factor):
        @gg.custom_gradient
        def f(x):
            def grad(dy):
                return dy * gg.cos(x), lambda ddx: -factor * ddx * dy * gg.sin(x)

            return gg.sin(x), grad

        return f

    assert check_gradient(with_second(1), X).ok
    assert kinds(check_gradient(with_second(2), X)) == {"second order"}


@pytest.mark.parametrize("order", ["again", "through"])
def test_S38_second_order_of_rules_that_read_their_outputs(order):
    """dy * y on y = x * x is no derivative; its own derivative is right all the same."""
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0], order=order) as region:
        x * x
    report = check_gradient(region, expect="policy")
    assert report.ok, report
    assert "second order" in report.checked


def test_S38_a_broadcast_argument_in_variants():
    def rule(site, dy):
        x, w = site.inputs
        return dy * w, dy * x  # right for equal shapes only

    assert check_gradient(lambda x, w: x * w, X, X + 2, rule=rule).ok
    report = check_gradient(lambda x, w: x * w, X, X + 2, rule=rule, variants=True)
    assert kinds(report) == {"error"}

    def summing(site, dy):
        x, w = site.inputs
        return gg.sum_to(dy * w, like=x), gg.sum_to(dy * x, like=w)

    assert check_gradient(lambda x, w: x * w, X, X + 2, rule=summing, variants=True).ok


def test_S38_many_entries_are_checked_along_directions():
    a = np.random.default_rng(0).normal(size=(20, 30))
    assert check_gradient(
        lambda x: gg.sum(gg.sin(x), axis=1), a, rule=lambda s, dy: s.default(dy)
    ).ok
    wrong = check_gradient(
        lambda x: gg.sum(gg.sin(x), axis=1),
        a,
        rule=lambda s, dy: gg.roll(s.default(dy)[0], 1, axis=0),
    )
    assert kinds(wrong) == {"truth"}
    assert "direction" in str(wrong)


# --- contracts ------------------------------------------------------------------------------------


def test_S38_a_surrogate_is_held_to_its_function():
    hard = gg.Rule(
        lambda site, dy: gg.where(gg.abs(site.inputs[0]) < 1, dy, 0.0),
        contract=gg.surrogate_of(lambda x: gg.clip(x, -1, 1)),
    )
    assert check_gradient(gg.sign, X, rule=hard).ok
    wrong = gg.Rule(ste, contract=gg.surrogate_of(gg.tanh))
    report = check_gradient(gg.sign, X, rule=wrong)
    assert kinds(report) == {"truth"}
    assert "derivative of f" in str(report)
    two = gg.Rule(ste, contract=gg.surrogate_of(lambda x: (x, x)))
    assert "2 tensors" in str(check_gradient(gg.sign, X, rule=two))


def test_S38_a_scaled_rule():
    reverse = gg.Rule(lambda site, dy: -0.5 * dy * gg.cos(site.inputs[0]), contract=gg.scaled(-0.5))
    assert check_gradient(gg.sin, X, rule=reverse).ok
    assert not check_gradient(gg.sin, X, rule=reverse, expect=gg.scaled(0.5)).ok


def test_S38_a_stop():
    assert check_gradient(gg.sin, X, rule=lambda s, dy: gg.NO_GRAD, expect="stop").ok
    assert check_gradient(gg.sin, X, rule=lambda s, dy: 0 * dy, expect="stop").ok
    assert kinds(check_gradient(gg.sin, X, rule=ste, expect="stop")) == {"truth"}


@pytest.mark.ci
def test_S38_an_estimator_is_right_on_average():
    def bernoulli(p, seed):
        return (gg.random.uniform((3,), seed=seed) < p).astype("float64")

    def straight(site, dy):
        return dy, gg.NO_GRAD

    p = np.array([0.3, 0.5, 0.7])
    right = gg.Rule(straight, contract="estimator")
    report = check_gradient(bernoulli, p, np.array(3), rule=right)
    assert report.ok, report
    assert any("draws" in c for c in report.checked)
    wrong = gg.Rule(lambda site, dy: (1.3 * dy, gg.NO_GRAD), contract="estimator")
    assert kinds(check_gradient(bernoulli, p, np.array(3), rule=wrong)) == {"truth"}


def test_S38_an_estimator_of_nothing_random_is_noted():
    report = check_gradient(gg.sin, X, rule=ste, expect="estimator")
    assert report.ok
    assert any("random" in n for n in report.notes)


@pytest.mark.parametrize("contract", ["attribution", "policy"])
def test_S38_an_attribution_or_policy_is_held_to_no_derivative(contract):
    report = check_gradient(gg.sign, X, rule=ste, expect=contract)
    assert report.ok
    assert any(contract in n for n in report.notes)
    assert kinds(check_gradient(gg.sin, X, rule=lambda s, dy: gg.sum(dy), expect=contract)) == {
        "error"
    }


def test_S38_a_straight_through_rule_without_a_contract_is_a_mismatch_with_a_hint():
    report = check_gradient(gg.round, X, rule=ste)
    assert kinds(report) == {"truth"}
    assert "surrogate_of" in str(report)
    assert check_gradient(gg.round, X, rule=ste, expect=gg.surrogate_of(gg.identity)).ok


# --- no false alarm -------------------------------------------------------------------------------


def test_S38_kinks_are_no_mismatch():
    at_kinks = np.array([0.0, -1.0, 1.0])
    assert check_gradient(
        lambda x: gg.nn.relu(x) + gg.abs(x), at_kinks, rule=lambda s, dy: s.default(dy)
    ).ok


def test_S38_nothing_to_compare_is_noted():
    report = check_gradient(gg.nn.relu, np.array([0.0]), rule=ste, order=1)
    assert not report.ok  # at the points near 0 it is compared
    i = gg.placeholder((3,), "int64")
    report = check_gradient((i + 1).node)
    assert report.ok
    assert any("no floating" in n for n in report.notes)


def test_S38_float32_is_checked_as_well_as_it_can_be():
    x = gg.placeholder((3,), "float32")
    with gg.override_gradient(lambda site, dy: dy * gg.cos(site.inputs[0])) as right:
        gg.sin(x)
    with gg.override_gradient(lambda site, dy: dy * gg.cos(site.inputs[0]) * 1.1) as wrong:
        gg.sin(x)
    assert check_gradient(right).ok
    assert not check_gradient(wrong).ok


def test_S38_stop_gradient_inside_counts_as_constant():
    def f(x):
        return x + gg.stop_gradient(gg.round(x) - x)

    assert check_gradient(f, X, rule=gg.Rule(ste, contract="exact")).ok


def test_S38_inner_rules_leave_second_order_alone():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: site.default(dy)) as region:
        with gg.gradient_override_map({"Round": "Identity"}):
            r = gg.round(x)
        r * r
    report = check_gradient(region, expect="policy")
    assert report.ok, report


INTERNAL = ("MaxPoolGrad", "NormalPoint")  # their inputs belong together: random ones do not
WITHOUT_DERIVATIVE = ("Eig",)  # of what depends on the phases of vectors


def is_checkable(op, arrays):
    """Whether differences tell: of float32 they are too coarse for sums over windows."""
    coarse = op.type == "Conv2DBackpropFilter" and arrays and arrays[0].dtype == np.float32
    return bool(arrays) and op.type not in (*INTERNAL, *WITHOUT_DERIVATIVE) and not coarse


FIRST = [(name, *case) for name, *case in CASES if name.endswith("-0")]


@each([c for c in FIRST if is_checkable(*c[1:])], sample=4)
def test_S38_no_false_alarm_on_the_ops_own_gradients(op, arrays):
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        report = check_gradient(build(op, tuple(xs)), values=arrays)
    assert report.ok, report
