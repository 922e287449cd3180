"""Random programs, optimised and not: equal up to rounding, with the same NaN and infinities.

A program is built step by step from earlier values; each step picks an op and operands that fit.
The programs have the shapes that the rules look for: repeated slices, joins, broadcasts, products
that share an operand, sums of many terms, and gradients of all of it.
"""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops import nn
from graphgrad.optimise.pipeline import optimise

from .helpers import SPECIAL, arrays_for, compare, run

SHAPES = [(), (3,), (2, 3), (3, 2), (1, 3), (3, 3), (2, 3, 3)]


class Builder:
    """The values of a program so far, and the choices of how it goes on."""

    def __init__(self, rng):
        self.rng = rng
        self.values = []

    def pick(self, fits=lambda t: True):
        found = [t for t in self.values if t.dtype == np.float64 and fits(t)]
        if not found:
            return None
        near = found[-6:] if self.rng.random() < 0.7 else found
        return near[self.rng.integers(len(near))]

    def number(self):
        return float(self.rng.choice([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -np.inf, np.inf]))

    def step(self):
        return STEPS[self.rng.integers(len(STEPS))](self)


def unary(b):
    fs = [
        gg.negative, gg.abs, gg.exp, gg.sin, gg.tanh, nn.relu, gg.square, gg.floor, gg.sign,
        lambda x: gg.log(1.0 + x), lambda x: gg.log(1.0 + gg.exp(x)), lambda x: gg.exp(x) - 1.0,
        lambda x: x**2, lambda x: 1.0 - gg.exp(x), lambda x: gg.log(1.0 - x),
    ]  # fmt: skip
    return fs[b.rng.integers(len(fs))](b.pick())


def with_a_number(b):
    x, c = b.pick(), b.number()
    fs = [
        lambda: x * c, lambda: x + c, lambda: x - c, lambda: c - x, lambda: x / c,
        lambda: gg.maximum(x, c), lambda: gg.minimum(c, x), lambda: gg.where(x > c, x, c),
    ]  # fmt: skip
    return fs[b.rng.integers(len(fs))]()


def binary(b):
    x = b.pick()
    y = b.pick(lambda t: fits(t.shape, x.shape))
    fs = [
        gg.add,
        gg.subtract,
        gg.multiply,
        gg.divide,
        gg.maximum,
        lambda x, y: gg.where(x < y, x, y),
    ]
    return fs[b.rng.integers(len(fs))](x, y)


def fits(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def shaped(b):
    x = b.pick()
    how = b.rng.integers(5)
    if how == 0:
        return gg.transpose(x, b.rng.permutation(x.ndim).tolist())
    if how == 1:
        return gg.expand_dims(x, int(b.rng.integers(x.ndim + 1)))
    if how == 2:
        return gg.squeeze(x)
    if how == 3:
        return gg.broadcast_to(x, (2, *x.shape) if x.ndim < 3 else x.shape)
    return gg.reshape(x, x.shape[::-1])


def cut(b):
    x = b.pick(lambda t: t.ndim > 0 and 0 not in t.shape)
    n = x.shape[0]
    i = int(b.rng.integers(n))
    keys = [i, i - n, slice(i, n), slice(0, i + 1), slice(None, None, -1), None, (None, i)]
    return x[keys[b.rng.integers(len(keys))]]


def joined(b):
    x = b.pick(lambda t: t.ndim > 0)
    y = b.pick(lambda t: t.shape == x.shape)
    axis = int(b.rng.integers(x.ndim))
    how = b.rng.integers(4)
    if how == 0:
        return gg.concat([x, y], axis)
    if how == 1:
        return gg.stack([x, y], axis)
    if how == 2 and x.shape[axis] > 1:
        return gg.concat(gg.split(x, [x.shape[axis] // 2], axis)[:: b.rng.choice([1, -1])], axis)
    return gg.pad(x, [(1, 0)] * x.ndim)


def reduced(b):
    x = b.pick()
    axis = None if x.ndim == 0 or b.rng.random() < 0.3 else int(b.rng.integers(x.ndim))
    if axis is not None and x.shape[axis] == 0:
        return gg.sum(x, axis)
    f = [gg.sum, gg.sum, gg.mean, gg.max][b.rng.integers(4)]
    return f(x, axis, keepdims=bool(b.rng.random() < 0.3)) if 0 not in x.shape else gg.sum(x)


def product(b):
    x = b.pick(lambda t: t.ndim == 2)
    y = None if x is None else b.pick(lambda t: t.ndim == 2 and t.shape[0] == x.shape[1])
    if y is None:
        return b.pick()
    return x @ y


def unrolled(b):
    """Rows of a stack times one matrix, put together again."""
    x = b.pick(lambda t: t.ndim == 3 and t.shape[0] > 1)
    w = None if x is None else b.pick(lambda t: t.ndim == 2 and t.shape[0] == x.shape[2])
    if w is None:
        return b.pick()
    ys = [gg.tanh(x[i] @ w) for i in range(x.shape[0])] * 2
    return sum(ys[1:], ys[0]) if b.rng.random() < 0.5 else gg.concat(ys, 0)


def pieces(b):
    """What was cut apart, each with something done to it, and gathered again."""
    x = b.pick(lambda t: t.ndim > 0 and t.shape[-1] == 3)
    if x is None:
        return b.pick()
    ys = [f(x[..., i : i + 1]) for i, f in enumerate([gg.exp, gg.negative, gg.tanh])]
    return gg.concat(ys, -1) if b.rng.random() < 0.5 else sum(ys[1:], ys[0])


STEPS = [unary, with_a_number, binary, shaped, cut, joined, reduced, product, unrolled, pieces]


def random_program(seed, order=1):
    """Inputs, and outputs: some values and derivatives of their sum."""
    rng = np.random.default_rng(seed)
    with gg.Graph():
        xs = [gg.placeholder(s, name=f"x{i}") for i, s in enumerate(SHAPES)]
        b = Builder(rng)
        b.values += xs
        while len(b.values) < len(xs) + rng.integers(3, 14):
            made = b.step()
            if made is not None and made.ndim < 4 and (made.size or 0) < 300:
                b.values.append(made)
        ys = [b.values[-1], b.pick()]
        wanted = list(ys)
        for _ in range(order):
            found = gg.gradients([gg.sum(y) for y in ys], xs, unconnected="zero")
            wanted += found
            ys = found[:3]
    return gg.Program(xs, wanted)


def check(p, seed):
    rng = np.random.default_rng(seed)
    after, _ = optimise(p, verify=True)
    for values in (rng.normal(size=50), SPECIAL):
        arrays = arrays_for(p, rng, values)
        compare(run(p, arrays), run(after, arrays), rtol=1e-9)
    return after


def run_seeds(first, last, order=1):
    for seed in range(first, last):
        p = random_program(seed, order)
        try:
            check(p, seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


MORE = pytest.mark.ci  # by .ci/run alone


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=MORE) for k in (50, 100, 150))])
def test_optimised_and_not_agree(first):
    run_seeds(first, first + 50)


@pytest.mark.parametrize(
    "first", [1_000, *(pytest.param(k, marks=MORE) for k in (1_025, 1_050, 1_075))]
)
def test_second_derivatives_agree(first):
    run_seeds(first, first + 25, order=2)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 105_000, 500))
def test_thousands_agree(first):
    run_seeds(first, first + 500)


def tame(p, arrays):
    """Whether every value on the way is an ordinary number."""
    every = gg.Program(p.inputs, [t for n in p.nodes for t in n.outputs])
    found = run(every, arrays)
    return all(np.isfinite(a).all() and (np.abs(a) < 1e6).all() for a in found)


def test_fast_math_agrees_on_ordinary_numbers():
    checked = 0
    for seed in range(2_000, 2_150):
        p = random_program(seed)
        rng = np.random.default_rng(seed)
        arrays = arrays_for(p, rng, rng.uniform(0.5, 1.5, size=50))
        if tame(p, arrays):
            after, _ = optimise(p, verify=True, fast_math=True)
            compare(run(p, arrays), run(after, arrays), rtol=1e-6, signs=False)
            checked += 1
    assert checked > 50
