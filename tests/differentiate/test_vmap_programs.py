"""S27: random programs with rules and choices, under vmap and one example after the other."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph

COUNT, WIDTH = 4, 3
ONE = [
    gg.sin,
    gg.tanh,
    lambda x: x * x,
    lambda x: gg.sum(x) * x,
    lambda x: gg.cumsum(x, axis=0),
    lambda x: x[::-1],
    lambda x: gg.exp(x) / gg.sum(gg.exp(x)),
]
TWO = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a / (b * b + 1.0),
    gg.maximum,
    lambda a, b: a * gg.sum(b),
]


def by_default(c):
    return lambda site, *dys: [d if d is gg.NO_GRAD else c * d for d in site.default(*dys)]


def by_its_inputs(c):
    return lambda site, *dys: [gg.sum(sum(dys)) * x * c for x in site.inputs]


def by_its_outputs(c):
    return lambda site, *dys: [sum(dys) * site.outputs[0] * c for _ in site.inputs]


def for_one(c):
    def rule(site, *dys):
        return {**dict.fromkeys(site.inputs, gg.NO_GRAD), site.inputs[0]: sum(dys) * c}

    return rule


def squashed_default(c):
    return lambda site, *dys: [d if d is gg.NO_GRAD else gg.tanh(d) for d in site.default(*dys)]


def affine(c):
    return lambda site, *dys: [gg.sin(sum(dys)) + x for x in site.inputs]


LINEAR = [by_default, by_its_inputs, by_its_outputs, for_one]
ANY = [*LINEAR, squashed_default, affine]


def program(seed, rules):
    """A function of x and w; what it does follows from the seed alone."""

    def f(x, w):
        rng = np.random.default_rng(seed)

        def pick(values):
            return values[int(rng.integers(len(values)))]

        def block(values, depth):
            values = list(values)
            for _ in range(rng.integers(2, 5)):
                kind = rng.random()
                if kind < 0.35:
                    values.append(pick(ONE)(pick(values)))
                elif kind < 0.65:
                    values.append(pick(TWO)(pick(values), pick(values)))
                elif kind < 0.8 and depth < 3:
                    rule = pick(rules)(float(rng.normal()))
                    with gg.override_gradient(rule, allow_empty=True):
                        inner = block(values, depth + 1)
                    values += inner[-1 - int(rng.random() < 0.3) :]
                elif depth < 2:
                    of = w if rng.random() < 0.3 else pick(values)
                    pred = gg.sum(of) > 0.3 * float(rng.normal())
                    branch = lambda v=tuple(values): block(v, depth + 1)[-1]  # noqa: E731
                    values.append(gg.cond(pred, branch, branch))
            return values

        found = block([x, w, x * w], 0)
        return gg.tanh(found[-1]) + gg.sin(found[-2])

    return f


def slopes(f, x, w):
    return gg.gradients(gg.sum(f(x, w) ** 2), [x, w], unconnected="zero")


def derivatives(outputs, xs, w, order):
    found = list(outputs)
    y = sum(gg.sum(t * t) for t in outputs)
    for _ in range(order):
        dx, dw = gg.gradients(y, [xs, w], unconnected="zero")
        found += [dx, dw]
        y = gg.sum(dx * np.cos(np.arange(12.0)).reshape(4, 3)) + gg.sum(dw * [0.3, -0.2, 0.5])
    return found


def check(seeds, rules, orders):
    """Derivatives of the programs, and of their gradients, to the first and the second order."""
    for seed in seeds:
        f = program(seed, rules)
        rng = np.random.default_rng(seed + 1)
        with gg.Graph() as g:
            xs, w = gg.placeholder((COUNT, WIDTH)), gg.placeholder((WIDTH,))
            rows = [xs[i] for i in range(COUNT)]
            by_row = [slopes(f, x, w) for x in rows]
            asked = [
                [gg.vmap(f, (0, None))(xs, w)],
                [gg.stack([f(x, w) for x in rows])],
                gg.vmap(lambda x, w, f=f: slopes(f, x, w), (0, None))(xs, w),
                [gg.stack(column) for column in zip(*by_row, strict=True)],
            ]
            answers = [
                derivatives(outputs, xs, w, orders[i // 2]) for i, outputs in enumerate(asked)
            ]
        verify_graph(g)
        feeds = {xs: rng.normal(size=(COUNT, WIDTH)), w: rng.normal(size=WIDTH)}
        found = gg.evaluate(answers, feeds)
        for together, alone in (found[:2], found[2:]):
            for a, b in zip(together, alone, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"seed {seed}")


@pytest.mark.parametrize(
    "first", [0, pytest.param(5, marks=pytest.mark.ci), pytest.param(10, marks=pytest.mark.ci)]
)
def test_S27_random_programs_under_vmap_are_those_of_every_example(first):
    """Also gradients taken inside of vmap."""
    check(range(first, first + 5), ANY, (1, 0))


def test_S27_random_programs_under_vmap_at_second_order():
    """Where rules are linear; cond() refuses another rule at second order."""
    check(range(30, 33), LINEAR, (2, 2))


@pytest.mark.slow
def test_S27_more_random_programs_under_vmap_at_second_order():
    check(range(33, 36), LINEAR, (2, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "orders"), [(ANY, (1, 0)), (LINEAR, (2, 2))], ids=["any", "linear"]
)
def test_S27_many_random_programs_under_vmap(rules, orders):
    check(range(100, 400), rules, orders)
