"""What each rule of the library declares is so."""

import subprocess
import sys

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

XS = np.array([-2.3, -0.9, -0.3, 0.2, 0.6, 1.7])
OTHER = np.linspace(0.7, -1.1, 6)


def log1pexp(x):
    return gg.log(1.0 + gg.exp(x))


def logsumexp(x):
    return gg.log(gg.sum(gg.exp(x), axis=-1))


def euclidean(x):
    return gg.sqrt(gg.sum(x * x))


def masked_sqrt(x):
    return gg.where(x > 0, gg.sqrt(gg.absolute(x)), 0.0)


def spike(x):
    return gg.heaviside(x, 1.0)


ON = {
    "ste": (rules.ste(), gg.sign),
    "ste in a window": (rules.ste(window=1.0), gg.sign),
    "scale": (rules.scale(3.0), gg.sin),
    "reverse": (rules.reverse(0.5), gg.sin),
    "stop": (rules.stop(), gg.sin),
    "stop one": (rules.stop(0), gg.sin),
    "clip_value": (rules.clip_value(0.3), gg.sin),
    "clip_norm": (rules.clip_norm(0.3), gg.sin),
    "nan_guard": (rules.nan_guard(), gg.sin),
    "surrogate": (rules.surrogate(gg.tanh), gg.sign),
    "fast_sigmoid": (rules.fast_sigmoid(), spike),
    "atan": (rules.atan(), spike),
    "triangle": (rules.triangle(), spike),
    "guided": (rules.guided(), gg.nn.relu),
    "deconvnet": (rules.deconvnet(), gg.nn.relu),
    "redirected": (rules.redirected(), gg.nn.relu),
    "lrp_epsilon": (rules.lrp_epsilon(), gg.sum),
    "lrp_pass": (rules.lrp_pass(), gg.nn.relu),
    "rescale": (rules.rescale(0.0, 0.0), gg.nn.relu),
    "log1pexp": (rules.log1pexp(), log1pexp),
    "logsumexp": (rules.logsumexp(), logsumexp),
    "norm": (rules.norm(), euclidean),
    "masked": (rules.masked(gg.sqrt, lambda x: x > 0), masked_sqrt),
    "feedback": (
        rules.feedback(weights=np.ones((1, 1))),
        lambda x: gg.squeeze(gg.expand_dims(x, 1) @ gg.constant([[2.0]]), 1),
    ),
    "target_prop": (rules.target_prop(gg.tanh), gg.exp),
    "spsa": (rules.spsa(gg.sin), gg.sin),
}
ELSEWHERE = {"lrp_gamma", "lrp_product", "lrp_zbox"}  # on layers: test_relevance.py
ELSEWHERE |= {"lrp_alpha_beta", "lrp_flat", "lrp_signed_gamma"}  # tests/attribution
ELSEWHERE |= {"lrp_wsquare", "lrp_zplus", "epsilon_plus", "epsilon_plus_flat"}  # tests/zoo
ELSEWHERE |= {"epsilon_alpha2_beta1", "epsilon_gamma_box"}
ROWS = {name for name, e in rules.library().items() if hasattr(e, "row")}  # tests/zoo
CASES = [pytest.param(*case, id=name) for name, case in ON.items() if name != "feedback"]


def marked(rule, f):
    x = gg.placeholder(XS.shape, name="x")
    with gg.override_gradient(rule):
        y = f(x)
    return x, y


def slope(f, x, dy, at):
    """<dy, f> by central differences."""
    found = np.empty_like(at)
    for i in range(at.size):
        ends = []
        for side in (1e-6, -1e-6):
            moved = at.copy()
            moved[i] += side
            ends.append(np.sum(dy * value(f, {x: moved})))
        found[i] = (ends[0] - ends[1]) / 2e-6
    return found


def test_every_rule_is_tried_here():
    tried = {rule.name.partition("(")[0] for rule, _ in ON.values()}
    made = {name for name, e in rules.library().items() if not e.builds}
    assert made - ROWS == (tried | ELSEWHERE) - ROWS


@pytest.mark.parametrize(("rule", "f"), CASES)
def test_the_kind_of_contract_is_the_listed_one(rule, f):
    listed = rules.library()[rule.name.partition("(")[0]]
    assert rule.contract.kind == listed.contract or rule.name == "stop(inputs=(0,))"
    assert rule.linear == listed.linear


@pytest.mark.parametrize(("rule", "f"), CASES)
def test_a_rule_is_linear_if_it_says_so(rule, f):
    x, y = marked(rule, f)
    dy, ddy = [gg.placeholder(y.shape, name=n) for n in ("dy", "ddy")]
    both, one, other = [
        gg.gradients(y, x, seed, unconnected="zero") for seed in (2.0 * dy - 3.0 * ddy, dy, ddy)
    ]
    rng = np.random.default_rng(0)
    feeds = {x: XS, dy: rng.normal(size=y.shape), ddy: rng.normal(size=y.shape)}
    if rule.name.startswith("nan_guard"):  # only where something is not finite
        feeds[dy] = np.full(y.shape, np.nan)
    both, one, other = values([both, one, other], feeds)
    assert np.allclose(both, 2.0 * one - 3.0 * other, atol=1e-12) == rule.linear


@pytest.mark.parametrize(
    ("rule", "f"), [c for c in CASES if c.values[0].contract.kind in ("surrogate", "exact")]
)
def test_the_gradient_is_that_of_the_function_declared_at_two_orders(rule, f):
    x, y = marked(rule, f)
    dy = OTHER[: y.size or 1].reshape(y.shape) if y.shape else np.array(0.7)
    (dx,) = gg.gradients([y], [x], [dy])
    of = rule.contract.of or f
    np.testing.assert_allclose(value(dx, {x: XS}), slope(of(x), x, dy, XS), rtol=1e-6, atol=1e-8)
    (ddx,) = gg.gradients([dx], [x], [OTHER], unconnected="zero")
    np.testing.assert_allclose(value(ddx, {x: XS}), slope(dx, x, OTHER, XS), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("factor", [3.0, -0.5, 0.0])
def test_a_scaled_rule_is_its_factor_times_the_derivative(factor):
    for rule in (rules.scale(factor), rules.reverse(-factor)):
        assert rule.contract.kind == "scaled"
        assert rule.contract.of == factor
        x, y = marked(rule, gg.sin)
        (dx,) = gg.gradients([y], [x])
        (ddx,) = gg.gradients([dx], [x])
        np.testing.assert_allclose(value(dx, {x: XS}), factor * np.cos(XS))
        np.testing.assert_allclose(value(ddx, {x: XS}), -factor * np.sin(XS))


@pytest.mark.parametrize(("rule", "f"), CASES)
def test_a_rule_works_in_float32(rule, f):
    x = gg.placeholder(XS.shape, "float32", name="x")
    with gg.override_gradient(rule):
        y = f(x)
    (dx,) = gg.gradients([y], [x], unconnected="zero")
    assert dx.dtype == np.float32
    assert value(dx, {x: XS}).dtype == np.float32


def test_names_are_those_of_the_call():
    assert rules.ste(window=1.0).name == "ste(window=1)"
    assert rules.ste().name == "ste()"
    assert rules.clip_norm(0.5, axis=0).name == "clip_norm(limit=0.5, axis=0)"
    assert rules.surrogate(gg.tanh).name == "surrogate(f=tanh)"


def test_nothing_is_registered_under_a_global_name():
    code = "import graphgrad as gg; assert not gg.registered_gradients()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("entry", rules.library().values(), ids=lambda e: e.name)
def test_every_entry_says_what_it_is_and_where_it_is_from(entry):
    assert entry.summary.endswith(".")
    assert entry.formula
    assert entry.source
    assert getattr(rules, entry.name) is entry.make
    gg.Contract(entry.contract)


def test_a_contract_is_shown_with_what_it_is_of():
    assert repr(gg.Contract("exact")) == "exact"
    assert repr(gg.Contract("scaled", 2.0)) == "scaled of 2.0"
