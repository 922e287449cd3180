"""The rows of the zoo: as recorded, through every journey, and as they say they are."""

import importlib.util
import inspect

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.rules.zoo.glossary import ALSO

from ..each import each
from .adapter import build_of, graph_of, run
from .cases import alike, deviation, differences, recorded
from .formulas import BY_FORMULA, LOSS, U, X, formulas, logit

ROWS = {name: e for name, e in gg.rules.library().items() if hasattr(e, "row")}
CASES = [(name, case) for name, case in recorded().items() if build_of(case) is not None]
AGREEING = [(name, case) for name, case in CASES if not deviation(name)]


def finite(case):
    return all(np.isfinite(a).all() for a in [*case["y"], *case["grads"].values()])


FIRST = {name.rpartition("/")[0]: case for name, case in reversed(AGREEING) if finite(case)}


def by_family(name):
    return name.partition("/")[0]


def is_as_recorded(case):
    with np.errstate(all="ignore"):
        ys, grads = run(build_of(case), case)
    assert differences(ys, grads, case) == []


@each(AGREEING[::4], by_family)
def test_a_row_is_as_recorded(case):
    is_as_recorded(case)


@pytest.mark.ci
@each(AGREEING, by_family)
def test_every_case_is_as_recorded(case):
    is_as_recorded(case)


@pytest.mark.ci
@each([(name, case) for name, case in CASES if deviation(name)], by_family)
def test_where_a_package_deviates_a_row_does_not_follow(case):
    with np.errstate(all="ignore"):
        ys, grads = run(build_of(case), case)
    assert differences(ys, grads, case) != []


def test_all_but_some_cases_agree():
    missing = sum(build_of(case) is None for case in recorded().values())
    assert len(recorded()) == 943
    assert len(AGREEING) >= 920
    assert missing <= 1


# --- what rows say of themselves ----------------------------------------------------------------

SLOPES = {n: e for n, e in ROWS.items() if e.row.form.startswith("dx = dy * slope")}


@pytest.mark.parametrize("name", SLOPES)
def test_the_second_order_of_a_slope_is_its_derivative(name):
    at = np.array([-1.37, -0.61, -0.23, 0.19, 0.57, 1.43])
    with gg.Graph():
        x = gg.placeholder(at.shape, name="x")
        with gg.override_gradient(ROWS[name].make()):
            y = gg.heaviside(x, 1.0)
        (dx,) = gg.gradients([y], [x])
        (ddx,) = gg.gradients([dx], [x], unconnected="zero")
        f = gg.compile([x], [dx, ddx], backend="numpy")
    step = 1e-6
    slope = (f(at + step)[0] - f(at - step)[0]) / (2 * step)
    np.testing.assert_allclose(f(at)[1], slope, atol=1e-4)


@pytest.mark.parametrize("name", SLOPES)
def test_a_slope_loses_no_digits_in_float32(name):
    at, found = np.linspace(-4.03, 4.01, 97), []
    for dtype in ("float64", "float32"):
        with gg.Graph():
            x = gg.placeholder(at.shape, dtype, name="x")
            with gg.override_gradient(ROWS[name].make()):
                y = gg.heaviside(x, 1.0)
            dx = gg.gradients(y, x)
            found.append(gg.compile(x, dx, backend="numpy")(at.astype("float32").astype(dtype)))
    assert alike(found[1], found[0], 1e-6)


@each(sorted(FIRST.items()), by_family)
def test_a_row_that_says_so_is_linear_and_has_a_forward_mode(case):
    """Twice the gradient that arrives gives twice of each; <dy, jvp> is <gradient, tangent>."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        t, ys, grads = graph_of(build_of(case), case)
        rules = {r.rule.name.partition("(")[0] for r in ys[0].graph.regions}
        if not rules <= ROWS.keys() or not all(ROWS[r].linear for r in rules) or not rules:
            return
        seeds = [gg.constant(2.0 * d, dtype=y.dtype) for d, y in zip(case["dy"], ys, strict=True)]
        xs = [t[n] for n in grads]
        double = gg.gradients(ys, xs, seeds, unconnected="zero")
        ways = [gg.constant(rng.normal(size=x.shape), dtype=x.dtype) for x in xs]
        tangents = gg.jvp(ys, xs, ways)
        f = gg.compile(list(t.values()), [list(grads.values()), double, tangents, ways])
    with np.errstate(all="ignore"):
        once, twice, tangents, ways = f(*case["inputs"].values())
    for a, b in zip(once, twice, strict=True):
        assert alike(b, 2.0 * a, 1e-5)
    left = sum(np.sum(d * v) for d, v in zip(case["dy"], tangents, strict=True))
    right = sum(np.sum(g * w) for g, w in zip(once, ways, strict=True))
    assert alike(left, right, 1e-4)


def test_every_row_has_cases_or_is_named_here():
    """What has none is a formula that its paper states, and is tried by what is below."""
    source = inspect.getsource(importlib.import_module(f"{__package__}.adapter"))
    known = BY_FORMULA.keys() | {case["rule"] for case in recorded().values()}
    without = {n for n in ROWS.keys() - known if f'"{n}"' not in source and f"R.{n}(" not in source}
    assert not without


VALUES = {
    "rebar": lambda: np.sum((X + logit(U) > 0) * LOSS),
    "relax": lambda: np.sum((X + logit(U) > 0) * LOSS),
    "aimle": lambda: X * X + U * U,
    "event_time": lambda: 3.0,
}


@pytest.mark.parametrize("name", VALUES)
def test_a_row_has_the_value_of_its_formula(name):
    with gg.Graph():
        x = gg.placeholder(X.shape, name="x")
        found = gg.compile([x], BY_FORMULA[name][0](x), backend="numpy")(X)
    np.testing.assert_allclose(found, VALUES[name](), rtol=1e-9)


@pytest.mark.parametrize("name", ALSO)
def test_a_name_from_elsewhere_leads_to_a_row(name):
    assert gg.rules.find(name) or "gg.linalg" in ALSO[name]


@each(list(formulas().items()), by_family)
def test_a_row_is_its_formula(case):
    ys, grads = run(build_of(case), case)
    assert differences(ys, grads, case, 1e-9) == []


# --- edges ---------------------------------------------------------------------------------------


def test_a_length_neither_overflows_nor_is_lost():
    x, y = gg.constant([3e200, 3e-200, np.inf]), gg.constant([4e200, 4e-200, 1.0])
    made = gg.rules.hypot(x, y)
    found = gg.evaluate([made, gg.gradients(made, x)])
    np.testing.assert_allclose(found[0], [5e200, 5e-200, np.inf])
    np.testing.assert_allclose(found[1][:2], [0.6, 0.6])


def test_one_tensor_given_twice_counts_twice():
    """S42."""
    x = gg.constant([0.3, -2.0])
    y = gg.rules.soft_greater(x, x, 1.0)
    np.testing.assert_allclose(gg.evaluate(gg.gradients(y, x)), [0.0, 0.0], atol=1e-12)
    (dx,) = gg.gradients([gg.rules.multiply_no_nan(x, x)], [x])
    np.testing.assert_allclose(gg.evaluate(dx), [0.6, -4.0])


def test_a_task_that_does_not_reach_counts_as_zeros():
    """Of three tasks two are asked for: the mean is over three."""
    x = gg.constant([3.0])
    first, second, _ = gg.rules.jd_mean(x, 3)
    dx = gg.gradients(gg.sum(first) + 2.0 * gg.sum(second), x)
    np.testing.assert_allclose(gg.evaluate(dx), [1.0])


def test_a_signature_and_a_formula_come_from_the_row():
    assert str(inspect.signature(gg.rules.jump_relu)).startswith("(x: 'TensorLike', threshold:")
    entry = gg.rules.library()["atan"]
    assert entry.formula == (
        "dx = dy * slope, slope = alpha / 2 / (1.0 + square(pi * alpha / 2 * x))"
    )
    assert "0 at the origin in torch" in gg.rules.library()["arctan2"].traps
