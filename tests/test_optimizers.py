"""Optimisers against the formulas of their papers in NumPy; schedules; clipping; initial values."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import initializers
from graphgrad.base.errors import GradientError, ShapeError, StateError
from graphgrad.compiled import compile, evaluate
from graphgrad.ir.graph import Graph
from graphgrad.ops.base import constant
from graphgrad.ops.sources import placeholder, variable
from graphgrad.optimizers import (
    SGD,
    AdaGrad,
    Adam,
    AdamW,
    RMSProp,
    clip_by_global_norm,
    cosine_decay,
    exponential_decay,
    piecewise_constant,
    polynomial_decay,
    warmup,
)

START = np.array([1.0, -2.0, 3.0])


def train(optimizer, steps=5, dtype="float64"):
    """p after steps on the loss sum(p**2) / 2, whose gradient is p."""
    with Graph() as g:
        p = variable(START, dtype, name="p")
        step = compile([], None, updates=optimizer.updates([p], [p]))
        for _ in range(steps):
            step()
    return g.state[p]


def by_hand(update, steps=5):
    p, memory = START.copy(), {}
    for t in range(1, steps + 1):
        p = update(p, p.copy(), t, memory)
    return p


def sgd(p, g, t, memory):
    return p - 0.1 * g


def momentum(p, g, t, memory):
    memory["v"] = 0.9 * memory.get("v", 0) + g
    return p - 0.1 * memory["v"]


def nesterov(p, g, t, memory):
    memory["v"] = 0.9 * memory.get("v", 0) + g
    return p - 0.1 * (0.9 * memory["v"] + g)


def adam(p, g, t, memory, decay=0.0):
    memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * g
    memory["v"] = 0.999 * memory.get("v", 0) + 0.001 * g * g
    mean, spread = memory["m"] / (1 - 0.9**t), memory["v"] / (1 - 0.999**t)
    return p - 0.1 * (mean / (np.sqrt(spread) + 1e-8) + decay * p)


def adamw(p, g, t, memory):
    return adam(p, g, t, memory, decay=0.01)


def rmsprop(p, g, t, memory):
    memory["v"] = 0.9 * memory.get("v", 0) + 0.1 * g * g
    return p - 0.1 * g / (np.sqrt(memory["v"]) + 1e-8)


def adagrad(p, g, t, memory):
    memory["v"] = memory.get("v", 0) + g * g
    return p - 0.1 * g / (np.sqrt(memory["v"]) + 1e-8)


CASES = [
    (SGD(0.1), sgd),
    (SGD(0.1, momentum=0.9), momentum),
    (SGD(0.1, momentum=0.9, nesterov=True), nesterov),
    (Adam(0.1), adam),
    (AdamW(0.1), adamw),
    (RMSProp(0.1), rmsprop),
    (AdaGrad(0.1), adagrad),
]


@pytest.mark.parametrize(("optimizer", "formula"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_formula_of_the_paper(optimizer, formula):
    np.testing.assert_allclose(train(optimizer), by_hand(formula), rtol=1e-12)


@pytest.mark.parametrize("optimizer", [c[0] for c in CASES])
def test_float32_stays_float32(optimizer):
    value = train(optimizer, dtype="float32")
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, train(optimizer), rtol=1e-5)


def test_one_optimiser_may_be_used_twice():
    opt = SGD(0.1, momentum=0.9)
    np.testing.assert_array_equal(train(opt), train(opt))
    with Graph():
        p = variable(1.0, name="p")
        first, second = opt.updates([p], [p]), opt.updates([p], [p])
    assert not {*first}.intersection(second) - {p}


def test_a_gradient_that_is_none_is_named():
    with Graph():
        p, q = variable(1.0, name="p"), variable(1.0, name="q")
        with pytest.raises(GradientError, match=r"gradient of q:0 .*test_optimizers.py"):
            SGD(0.1).updates([p, q], [p, None])
        assert q not in SGD(0.1).updates([p, q], [p, None], skip_none=True)
        assert SGD(0.1).updates([q], [None], skip_none=True) == {}


def test_what_does_not_fit():
    with Graph():
        p, x = variable(np.ones(2), name="p"), placeholder((2,), name="x")
        with pytest.raises(GradientError, match="1 parameters, but 2"):
            SGD(0.1).updates([p], [p, p])
        with pytest.raises(StateError, match="parameters are variables"):
            SGD(0.1).updates([x], [x])
        with pytest.raises(ShapeError, match="gradient of p:0"):
            SGD(0.1).updates([p], [constant(1.0)])


def test_the_rate_may_be_a_tensor():
    with Graph() as g:
        p, rate = variable(1.0, "float32", name="p"), placeholder((), name="rate")
        step = compile(rate, None, updates=SGD(rate).updates([p], [p]))
        step(0.5)
        step(0.0)
    assert g.state[p] == 0.5
    assert g.state[p].dtype == np.float32


def rates(schedule, steps):
    with Graph():
        step = placeholder((), "int64", name="step")
        f = compile(step, schedule(step))
        return [float(f(s)) for s in steps]


def test_schedules():
    steps = [0, 5, 10, 20]
    np.testing.assert_allclose(
        rates(exponential_decay(1.0, 10, 0.5), steps), [1, 0.5**0.5, 0.5, 0.25]
    )
    stairs = exponential_decay(1.0, 10, 0.5, staircase=True)
    np.testing.assert_allclose(rates(stairs, steps), [1, 1, 0.5, 0.25])
    np.testing.assert_allclose(rates(cosine_decay(1.0, 10, 0.2), steps), [1, 0.6, 0.2, 0.2])
    np.testing.assert_allclose(rates(polynomial_decay(1.0, 10), steps), [1, 0.5, 0, 0])
    pieces = piecewise_constant([5, 20], [1.0, 0.1, 0.01])
    np.testing.assert_allclose(rates(pieces, steps), [1, 0.1, 0.1, 0.01])
    np.testing.assert_allclose(rates(warmup(10, 2.0), [0, 4, 9, 50]), [0.2, 1, 2, 2])
    np.testing.assert_allclose(rates(warmup(10, pieces), [4, 50]), [0.5, 0.01])
    with pytest.raises(ValueError, match="one entry more than boundaries"):
        piecewise_constant([1], [1.0])


def test_a_schedule_counts_the_updates():
    with Graph() as g:
        p = variable(0.0, name="p")
        opt = SGD(piecewise_constant([2], [1.0, 10.0]))
        step = compile([], None, updates=opt.updates([p], [constant(-1.0)]))
        for _ in range(4):
            step()
    assert g.state[p] == 1 + 1 + 10 + 10


@pytest.mark.parametrize("optimizer", [Adam(0.01), RMSProp(0.01), AdaGrad(0.01)])
def test_float16_trains_as_float32_does(optimizer):
    grads, found = np.array([0.0, 1e-4, 1.0, 300.0]), []
    for dtype in ("float16", "float32"):
        with Graph() as g:
            p = variable(np.ones(4), dtype)
            dp = placeholder((4,), dtype)
            step = compile([dp], [], updates=optimizer.updates([p], [dp]))
            for _ in range(10):
                step(grads.astype("float16").astype(dtype))
        found.append(g.state[p])
    np.testing.assert_allclose(found[0].astype("float32"), found[1], 1e-3)


@pytest.mark.parametrize("values", [[300.0, 400.0], [1e-4, 1e-4], [2e4] * 3, [0.0, 0.0]])
def test_norms_of_float16_are_those_of_float32(values):
    limit, found = 0.5, []
    for dtype in ("float16", "float32"):
        with Graph():
            g = constant(np.array(values, "float16").astype(dtype))
            x = constant(np.ones(len(values)), dtype)
            rules = {"Square": gg.rules.clip_norm(limit)}
            dx = gg.gradients(gg.square(x), x, g, overrides=rules)
            (clipped,), _ = clip_by_global_norm([g], limit)
            found.append(evaluate([clipped, dx]))
            assert all(a.dtype == dtype for a in found[-1])
    for half, full in zip(*found, strict=True):
        np.testing.assert_allclose(half.astype("float32"), full, 2e-3, 1e-7)


def test_clipping_by_the_global_norm():
    with Graph():
        a, b = constant(np.array([3.0, 0.0])), constant(4.0, "float64")
        (x, none, y), norm = clip_by_global_norm([a, None, b], 1.0)
        (u, v), _ = clip_by_global_norm([a, b], 10.0)
        (n,), _ = clip_by_global_norm([constant(np.inf)], 1.0)
        values = evaluate([x, y, norm, u, v, n])
    assert none is None
    np.testing.assert_allclose(values[0], [0.6, 0])
    np.testing.assert_allclose(values[1:3], [0.8, 5.0])
    np.testing.assert_array_equal(values[3], [3, 0])
    assert values[4] == 4
    assert np.isnan(values[5])
    with pytest.raises(GradientError, match="no gradient"):
        clip_by_global_norm([None], 1.0)


@pytest.mark.parametrize(
    ("make", "variance"),
    [
        (initializers.glorot_uniform, 2 / 500),
        (initializers.glorot_normal, 2 / 500),
        (initializers.he_uniform, 2 / 300),
        (initializers.he_normal, 2 / 300),
        (initializers.lecun_normal, 1 / 300),
    ],
)
def test_initial_values_have_the_variance_they_promise(make, variance):
    a = make((300, 200), seed=1, dtype="float32")
    assert a.dtype == np.float32
    np.testing.assert_allclose(a.var(), variance, rtol=0.05)
    np.testing.assert_array_equal(a, make((300, 200), seed=1, dtype="float32"))
    assert (a != make((300, 200), seed=2)).any()
    with pytest.raises(ShapeError):
        make((3,), seed=1)


def test_the_plain_initial_values():
    assert initializers.zeros(3).tolist() == [0, 0, 0]
    assert initializers.ones((1, 2), "int32").tolist() == [[1, 1]]
    assert initializers.normal((), seed=0).shape == ()
    u = initializers.uniform((1000,), seed=0, low=2, high=3)
    assert 2 <= u.min() <= u.max() < 3
    for shape in [(3, 5), (5, 3), (4, 4)]:
        q = initializers.orthogonal(shape, seed=0)
        eye = q @ q.T if shape[0] <= shape[1] else q.T @ q
        np.testing.assert_allclose(eye, np.eye(min(shape)), atol=1e-12)
    with pytest.raises(ShapeError):
        initializers.orthogonal((3,), seed=0)
