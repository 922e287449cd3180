"""The rows of the zoo: as recorded, through every journey, and as they say they are."""

import importlib.util
import inspect
import re

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.rules.zoo.glossary import ALSO

from ..each import each
from .adapter import RULES, graph_of, run
from .cases import alike, deviation, differences, recorded
from .journeys import JOURNEYS, as_onnx, on_jax

ROWS = {name: e for name, e in gg.rules.library().items() if hasattr(e, "row")}
ANSWERS = ("composite_", "deconvnet_net", "deep_shap", "deeplift", "excitation_", "guided_net")
ANSWERS += ("relevance_",)
"""Cases where a rule is asked for an answer: there is no gradient to take elsewhere."""
REFUSED = {"optimisation/argmin_ridge", "optimisation/fixed_point", "optimisation/root_bisection"}
"""What calls Python in its solver is not put into files, and its body not pickled by itself."""


def build_of(case):
    """How gg.rules has a case, by the name of its family or of its rule alone."""
    name = case["id"].rpartition("/")[0]
    return RULES.get(name) or RULES.get(case["rule"])


CASES = [(name, case) for name, case in recorded().items() if build_of(case) is not None]
AGREEING = [(name, case) for name, case in CASES if not deviation(name)]


def finite(case):
    return all(np.isfinite(a).all() for a in [*case["y"], *case["grads"].values()])


FIRST = {name.rpartition("/")[0]: case for name, case in reversed(AGREEING) if finite(case)}
TRAVELS = [
    (f"{journey}, {name}", journey, case)
    for journey in JOURNEYS
    for name, case in sorted(FIRST.items())
    if journey in ("vmap", "LLVM") or not (case["rule"].startswith(ANSWERS) or name in REFUSED)
]


ROUNDED_OTHERWISE = {"lowbit/fake_quantise_tokens"}
"""XLA divides where x * (1 / step) is written, and ties fall to the other side."""


def by_journey(name):
    return name.partition(",")[0]


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


def arrives(journey, case):
    with np.errstate(all="ignore"):
        ys, grads = JOURNEYS[journey](build_of(case), case)
    assert differences(ys, grads, case) == []


@each([t for i, t in enumerate(TRAVELS) if i % 13 == 0 and t[1] != "LLVM"], by_journey)
def test_S27_a_row_travels(journey, case):
    arrives(journey, case)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:PyFunction has no batched form:graphgrad.PerformanceWarning")
@each(TRAVELS[1::4], by_journey)
def test_S27_more_rows_travel(journey, case):
    arrives(journey, case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyFunction has no batched form:graphgrad.PerformanceWarning")
@each(TRAVELS, by_journey)
def test_S27_every_row_travels(journey, case):
    arrives(journey, case)


@pytest.mark.slow
@each([c for c in sorted(FIRST.items()) if c[0] not in ROUNDED_OTHERWISE], by_family)
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="no JAX")
def test_every_row_on_jax(case):
    with np.errstate(all="ignore"):
        ys, grads = on_jax(build_of(case), case)
    assert differences(ys, grads, case) == []


@pytest.mark.slow
@each(sorted(FIRST.items()), by_family)
def test_every_row_in_onnx_runtime_or_refused(case):
    """What it has no kernel for in float64, and what calls Python, is named."""
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package)
    refused = ""
    try:
        ys, grads = as_onnx(build_of(case), case)
    except gg.ExportError as error:
        refused = str(error)
    if refused:
        assert re.search("no float64 kernel|PyFunction has no form", refused)
    else:
        assert differences(ys, grads, case) == []


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


@each([(n, c) for n, c in sorted(FIRST.items()) if not c["rule"].startswith(ANSWERS)], by_family)
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
    without = {n for n in ROWS if f'"{n}"' not in source and f"R.{n}(" not in source}
    assert without <= set(BY_FORMULA), sorted(without - set(BY_FORMULA))


X = np.array([-1.3, -0.4, 0.2, 0.9])
U = np.array([0.1, 0.6, 0.8, 0.3])


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def jacobian_of(p, d):
    return p * (d - np.sum(p * d))


D = np.array([1.0, -0.5, 2.0, 0.25])
HOT = np.array([0.0, 1.0, 0.0, 0.0])


def xnor_formula():
    """One number a channel, the last axis, of one row: its scale is |x|."""
    return D * (1.0 + np.abs(X) * (np.abs(X) <= 1))


W = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, -0.25], [2.0, 1.0]])
LOSS = np.array([0.5, -1.0, 2.0, 1.5])


def weighed(b):
    return gg.sum(b * b * gg.constant(LOSS), axis=-1)


def arms():
    one, other = (sigmoid(X) > U) * 1.0, (sigmoid(-X) < U) * 1.0
    return (np.sum(other**2 * LOSS) - np.sum(one**2 * LOSS)) * (U - 0.5)


def disarms():
    b, c = (sigmoid(X) > 1 - U) * 1.0, (sigmoid(X) > U) * 1.0
    return np.sum((b - c) * LOSS) / 2 * (b - c) * sigmoid(np.abs(X))


def at_rest(x):
    """z = tanh(z / 2 + x) for each x."""
    return lambda z: gg.tanh(z / 2 + x)


def rest():
    z = np.zeros(4)
    for _ in range(200):
        z = np.tanh(z / 2 + X)
    return z


def phantoms():
    slope, dz = 1 - rest() ** 2, 0.0
    for _ in range(3):
        dz = 0.5 * dz + 0.5 * slope * (dz / 2 + 1)
    return D * dz


def logit(u):
    return np.log(u) - np.log(1 - u)


def relaxed(control, dcontrol):
    """REBAR and RELAX for LOSS weighed bits; control and its derivative are per logistic sample."""
    p, v = sigmoid(X), 0.7 - U / 2
    bits = (X + logit(U) > 0) * 1.0
    u = np.where(bits > 0, 1 - p + v * p, v * (1 - p))
    z, given = X + logit(U), X + logit(u)
    du = np.where(bits > 0, -1 + v, -v) * p * (1 - p)
    dgiven = 1 + du / (u * (1 - u))
    score = np.sum(bits * bits * LOSS) - np.sum(control(given))
    return score * (bits - p) + dcontrol(z) - dcontrol(given) * dgiven


def of_relaxed_bits(z):
    return 0.8 * sigmoid(2 * z) ** 2 * LOSS


def slope_of_relaxed_bits(z):
    s = sigmoid(2 * z)
    return 0.8 * 2 * s * 2 * s * (1 - s) * LOSS


def adapted():
    """AIMLE of a solver that squares, for two noises, U and -U."""
    strength = 0.5 * np.linalg.norm(X) / np.linalg.norm(D)
    moved = [(X + e + s * strength * D) ** 2 for e in (U, -U) for s in (1, -1)]
    return (moved[0] - moved[1] + moved[2] - moved[3]) / 2 / (2 * strength)


def at_an_event():
    """Of g = sum(x**2) - t and dx/dt = -x."""
    return -2 * X / (-1 - 2 * np.sum(X * X))


def averse():
    """CAGrad of two gradients, D and 2 D + X, the weight by a fine search."""
    g = np.stack([D, 2 * D + X])
    mean = g.mean(0)
    radius = 0.4 * np.linalg.norm(mean)
    low, high = 0.0, 1.0
    for _ in range(60):
        w = np.linspace(low, high, 11)
        rows = np.stack([w, 1 - w], 1) @ g
        best = np.argmin(rows @ mean + radius * np.linalg.norm(rows, axis=1))
        low, high = w[max(best - 1, 0)], w[min(best + 1, 10)]
    way = low * g[0] + (1 - low) * g[1]
    return mean + radius * way / np.linalg.norm(way)


def averse_of(x):
    one, other = gg.rules.jd_cagrad(x, 2, c=0.4)
    return one + other * 2.0 + gg.stop_gradient(other) * other / gg.constant(D)


BY_FORMULA = {
    "mpd_agl": (
        lambda x: on(x, "mpd_agl", gg.sign, gamma=0.4, tau=0.5),
        lambda: D * (np.abs(X) < 0.4 * 1.25**0.5) / (0.8 * 1.25**0.5),
    ),
    "rebar": (
        lambda x: gg.rules.rebar(x, U, 0.7 - U / 2, weighed, 0.5, 0.8),
        lambda: relaxed(of_relaxed_bits, slope_of_relaxed_bits),
    ),
    "relax": (
        lambda x: gg.rules.relax(
            x, U, 0.7 - U / 2, weighed, lambda z: gg.sum(gg.sin(z) * LOSS, axis=-1)
        ),
        lambda: relaxed(lambda z: np.sin(z) * LOSS, lambda z: np.cos(z) * LOSS),
    ),
    "aimle": (lambda x: gg.rules.aimle(x, np.stack([U, -U]), gg.square, 1.0, 0.5), adapted),
    "event_time": (
        lambda x: gg.rules.event_time(x, 3.0, lambda t, x: gg.sum(x * x, -1) - t, lambda t, x: -x),
        at_an_event,
    ),
    "jd_cagrad": (averse_of, averse),
    "sign_symmetry": (
        lambda x: gg.reshape(on(x[None], "sign_symmetry", lambda x: x @ W, scale=0.5), (-1,)),
        lambda: 0.5 * np.sign(W) @ D[:2],
    ),
    "pattern_attribution": (
        lambda x: gg.reshape(
            on(x[None], "pattern_attribution", lambda x: x @ W, patterns=W), (-1,)
        ),
        lambda: W * W @ D[:2],
    ),
    "soft_edge": (
        lambda x: on(x, "soft_edge", lambda x: gg.heaviside(x, 1.0), sigma=0.3),
        lambda: (
            D * 2 * np.abs(X) / 0.3 * sigmoid(X * np.abs(X) / 0.3) * sigmoid(-X * np.abs(X) / 0.3)
        ),
    ),
    "mesh_edge": (
        lambda x: on(x, "mesh_edge", lambda x: gg.heaviside(x, 1.0)),
        lambda: np.where((X >= 0) == (D > 0), D / (np.abs(X) + 1e-4), 0),
    ),
    "arm": (lambda x: gg.rules.arm(x, U, weighed), arms),
    "disarm": (lambda x: gg.rules.disarm(x, U, weighed), disarms),
    "bundled": (
        lambda x: gg.rules.bundled(x, np.stack([U, -U]), gg.square, 0.5),
        lambda: D * 2 * X,
    ),
    "jacobian_free": (
        lambda x: gg.rules.jacobian_free(np.zeros(4), at_rest(x)),
        lambda: D * (1 - rest() ** 2),
    ),
    "phantom": (lambda x: gg.rules.phantom(np.zeros(4), at_rest(x), 3), phantoms),
    "shake": (lambda x: gg.rules.shake(x, U, 0.3, 0.6), lambda: 0.6 * D),
    "abs_sign": None,
    "bernoulli_st": (
        lambda x: gg.rules.bernoulli_st(x, (U < 0.5) * 1.0, 2.0),
        lambda: D * 2 * sigmoid(2 * X) * sigmoid(-2 * X),
    ),
    "adaround": (lambda x: gg.rules.adaround(x, np.zeros(4)), lambda: D),
    "clamp_inward": (
        lambda x: on(x, "clamp_inward", lambda x: gg.clip(x, 0.0, 0.5)),
        lambda: np.where(((X < 0) & (D > 0)) | ((X > 0.5) & (D < 0)), 0, D),
    ),
    "clip_range": None,
    "dithered": (
        lambda x: on(x, "dithered", gg.identity, step=0.5),
        lambda: 0.5 * np.floor(D / 0.5 + 0.5),
    ),
    "dorefa_gradient": (
        lambda x: on(x, "dorefa_gradient", gg.identity, bits=2),
        lambda: 4 * (np.rint((D / 4 + 0.5) * 3) / 3 - 0.5),
    ),
    "dsq": (
        lambda x: on(x, "dsq", gg.rint, k=3.0),
        lambda: D * 3 / (2 * np.tanh(1.5)) * (1 - np.tanh(3 * (X - np.floor(X) - 0.5)) ** 2),
    ),
    "ede": (lambda x: on(x, "ede", gg.sign, t=2.0, k=0.5), lambda: D * (1 - np.tanh(2 * X) ** 2)),
    "ewgs": (
        lambda x: on(x, "ewgs", gg.rint, delta=0.3),
        lambda: D * (1 + 0.3 * np.sign(D) * (X - np.rint(X))),
    ),
    "gapped_st": (
        lambda x: gg.rules.gapped_st(x, HOT, 1.0),
        lambda: jacobian_of(
            softmax(np.where(HOT > 0, X.max(), X - np.maximum(X + 1 - X.max(), 0) * (1 - HOT))), D
        ),
    ),
    "grad_dropout": (
        lambda x: on(x, "grad_dropout", gg.identity, uniform=U, rate=0.2),
        lambda: np.where(U < 0.2, 0, D) / 0.8,
    ),
    "gradient_noise": (lambda x: on(x, "gradient_noise", gg.identity, noise=U), lambda: D + U),
    "hard_concrete": (lambda x: gg.rules.hard_concrete(x, U), lambda: hard_concrete()),
    "low_precision": (
        lambda x: on(x, "low_precision", gg.identity, bits=3),
        lambda: 4 / 7 * np.rint(D / (4 / 7)),
    ),
    "meprop": (lambda x: on(x, "meprop", gg.identity, k=2), lambda: np.where(np.abs(D) >= 1, D, 0)),
    "noise_quant": (lambda x: gg.rules.noise_quant(x, U), lambda: D),
    "power_of_two": (lambda x: gg.rules.power_of_two(x), lambda: D),
    "qil": (
        lambda x: gg.rules.qil(x, 0.6, 0.25),
        lambda: np.where((np.abs(X) >= 0.35) & (np.abs(X) <= 0.85), 2 * D, 0),
    ),
    "rectgrad": (
        lambda x: on(x, "rectgrad", gg.nn.relu, threshold=0.1),
        lambda: np.where(X * D > 0.1, D, 0),
    ),
    "redirected": None,
    "reste": (
        lambda x: on(x, "reste", gg.sign, p=2.0),
        lambda: D * np.maximum(np.abs(X), 0.1) ** -0.5 / 2,
    ),
    "stochastic_round": (lambda x: gg.rules.stochastic_round(x, U, 0.5), lambda: D),
    "stochastic_spike": (
        lambda x: gg.rules.stochastic_spike(x, U),
        lambda: np.where(X > 0, D, D * (U - 0.5) * 0.2),
    ),
    "tqt": (
        lambda x: gg.rules.tqt(x, 0.0, 2),
        lambda: np.where((np.rint(2 * X) >= -2) & (np.rint(2 * X) <= 1), D, 0),
    ),
    "ttq": (
        lambda x: gg.rules.ttq(x, 2.0, 3.0),
        lambda: D * np.where(X > 0.05, 2.0, np.where(X < -0.05, 3.0, 1.0)),
    ),
    "xnor": (
        lambda x: gg.rules.xnor(x),
        xnor_formula,
    ),
    "nan_guard": None,
    "imle": None,
    "interpolated": None,
    "integer_range": None,
    "l2_normalise": None,
}
"""Rows without a recorded case: (what they build of x, its gradient for D); None: see elsewhere."""


def on(x, rule, f, **given):
    """A rule on a function."""
    with gg.override_gradient(getattr(gg.rules, rule)(**given)):
        return f(x)


def hard_concrete():
    s = sigmoid((X + np.log(U) - np.log(1 - U)) / (2 / 3))
    wide = 1.2 * s - 0.1
    return np.where((wide > 0) & (wide < 1), D * 1.2 * s * (1 - s) * 1.5, 0)


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


@each([(n, *f) for n, f in BY_FORMULA.items() if f], lambda name: "all")
def test_a_row_is_its_formula(build, formula):
    with gg.Graph():
        x = gg.placeholder(X.shape, name="x")
        y = build(x)
        seed = gg.constant(D[: y.shape[0]] if y.ndim else np.array(1.0))
        found = gg.compile([x], gg.gradients(y, x, seed), backend="numpy")(X)
    np.testing.assert_allclose(found, formula(), rtol=1e-9, atol=1e-12)


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
