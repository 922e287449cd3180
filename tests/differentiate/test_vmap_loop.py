"""S27: vmap(f) is the loop over examples, in values and derivatives, for random small programs.

They have regions, stamps and custom gradients, linear and not, that close over what the examples
share and what they do not, one in another, and gradients, vmap and jvp in each other to order two.
"""

import numpy as np
import pytest

import graphgrad as gg

COUNT, WIDTH = 3, 2
ROWS = np.cos(np.arange(float(COUNT * WIDTH))).reshape(COUNT, WIDTH)
ONE = [
    gg.sin,
    gg.tanh,
    lambda x: x * x,
    lambda x: gg.sum(x) * x,
    lambda x: gg.cumsum(x, axis=0),
    gg.sort,
    gg.nn.softmax,
    lambda x: x[::-1],
]
TWO = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a / (b * b + 1.0),
    lambda a, b: a * gg.sum(b),
]


def for_all(f):
    """A rule that gives every input the same."""
    return lambda site, *dys: [f(site, sum(dys))] * len(site.inputs)


def clipped(c, t):
    def rule(site, *dys):
        found = site.default(*dys)
        norm = gg.sqrt(sum(gg.sum(d * d) for d in found) + 0.1)
        return [d * c / norm for d in found]

    return rule


LINEAR = {
    "scaled": lambda c, t: for_all(lambda site, dy: dy * c),
    "by what it closes over": lambda c, t: for_all(lambda site, dy: dy * gg.sin(t)),
    "by its outputs": lambda c, t: for_all(lambda site, dy: dy * site.outputs[0]),
    "default": lambda c, t: lambda site, *dys: [d * c for d in site.default(*dys)],
    "default and more": lambda c, t: (
        lambda site, *dys: [d * t + c * sum(dys) for d in site.default(*dys)]
    ),
    "by its word": lambda c, t: gg.Rule(for_all(lambda site, dy: dy * t * c), linear=True),
}
OTHERS = {
    "dy |dy|": lambda c, t: for_all(lambda site, dy: dy * gg.sqrt(dy * dy + 0.1)),
    "tanh dy": lambda c, t: for_all(lambda site, dy: gg.tanh(dy * t)),
    "clipped": clipped,
    "affine": lambda c, t: for_all(lambda site, dy: dy + c * t),
    "the same for all": lambda c, t: for_all(lambda site, dy: gg.cos(site.inputs[0])),
    "tanh default": lambda c, t: lambda site, *dys: [gg.tanh(d) for d in site.default(*dys)],
    "one that marks": lambda c, t: for_all(lambda site, dy: dy * marked(dy, t)),
}


def marked(dy, t):
    with gg.override_gradient(for_all(lambda site, ddy: ddy * ddy)):
        return gg.sin(t) * 0.5


class Program:
    """A function of an example, of what all share, and of what it closes over; by its seed."""

    def __init__(self, seed, rules, closed):
        self.seed, self.rules, self.closed = seed, list(rules.values()), closed

    def __call__(self, x, w):
        self.rng = np.random.default_rng(self.seed)
        values = self.block([x, w, self.closed, self.closed * w], 0)
        shared = self.block([w, self.closed], 1)[-1]
        return gg.tanh(values[-1] * shared + values[-2] * x)

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def rule(self, values):
        return self.pick(self.rules)(float(self.rng.normal()), self.pick(values))

    def block(self, values, depth):
        values = list(values)
        for _ in range(self.rng.integers(1, 4)):
            kind = self.rng.random()
            if kind < 0.25:
                values.append(self.pick(ONE)(self.pick(values)))
            elif kind < 0.45:
                values.append(self.pick(TWO)(self.pick(values), self.pick(values)))
            elif kind < 0.75 and depth < 3:
                with gg.override_gradient(self.rule(values), allow_empty=True):
                    inner = self.block(values, depth + 1)
                values.append(inner[-1] * 1.0)
            elif kind < 0.9:
                with gg.gradient_override_map({"Multiply": self.rule(values)}):
                    values.append(self.pick(values) * self.pick(values))
            else:
                values.append(self.custom(values))
        return values

    def custom(self, values):
        kept, linear = self.pick(values), self.rules == list(LINEAR.values())

        @gg.custom_gradient
        def f(a):
            y = gg.sin(a)
            return y * 0.5, lambda dy: (dy if linear else dy * dy) * y * kept

        return f(self.pick(values))


def loop(f, axes):
    """What vmap is."""

    def mapped(*args):
        pairs = list(zip(args, axes, strict=True))
        rows = [f(*[a if p is None else a[i] for a, p in pairs]) for i in range(COUNT)]
        if not isinstance(rows[0], list):
            return gg.stack(rows)
        return [gg.stack(column) for column in zip(*rows, strict=True)]

    return mapped


def slopes(y, xs):
    return gg.gradients(y, xs, unconnected="zero")


def weighed(tensors):
    """A number made of all."""
    return sum(gg.sum(gg.sin(t) * (0.3 + i)) for i, t in enumerate(tensors))


def answers(over, seed, rules, forward):
    """Values and derivatives, taken around vmap, inside it, and both."""
    xs, w, c = gg.placeholder((COUNT, WIDTH)), gg.placeholder((WIDTH,)), gg.placeholder((WIDTH,))
    f = Program(seed, rules, c)
    ys = over(f, (0, None))(xs, w)
    first = slopes(gg.sum(ys * ys * ROWS), [xs, w, c])
    inside = over(lambda x, w: slopes(gg.sum(f(x, w) ** 2), [x, w]), (0, None))(xs, w)
    twice = over(lambda x, w: slopes(weighed(slopes(gg.sum(f(x, w)), [x, w])), [x, w]), (0, None))
    asked = [ys, first, slopes(weighed(first), [xs, w, c])]
    asked += [inside, slopes(weighed(inside), [xs, w, c]), twice(xs, w)]
    if forward:
        asked += [gg.jvp(ys, [xs, w, c]), gg.jvp(inside, [xs, w])]
        asked += [over(lambda x, w: gg.jvp(f(x, w), [x, w]), (0, None))(xs, w)]
        asked += [slopes(weighed([asked[-1]]), [xs, w])]
    return [xs, w, c], asked


def check(seed, rules=None, backend="numpy"):
    """Compare vmap with the loop, for one program."""
    forward = rules is LINEAR
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=s) for s in ((COUNT, WIDTH), (WIDTH,), (WIDTH,))]
    found = []
    for over in (gg.vmap, loop):
        with gg.Graph():
            inputs, asked = answers(over, seed, rules or LINEAR | OTHERS, forward)
            found.append(gg.compile(inputs, asked, backend=backend)(*arrays))
    for a, b in zip(*map(gg.base.tree.flatten, found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9, err_msg=f"seed {seed}")


MORE = pytest.mark.ci  # by .ci/run alone


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=MORE), pytest.param(20, marks=MORE)])
def test_S27_vmap_is_the_loop_over_examples(first):
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=MORE) for k in (5, 10, 15))])
def test_S27_vmap_is_the_loop_where_rules_are_linear_and_forward_mode_goes_through(first):
    for seed in range(first, first + 5):
        check(seed, LINEAR)


@pytest.mark.slow
@pytest.mark.parametrize("rules", [None, LINEAR], ids=["any", "linear"])
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_S27_many_programs(first, rules):
    for seed in range(first, first + 100):
        check(seed, rules)
