"""Random numbers: reproducible by seed, distributed as promised."""

import numpy as np
import pytest

from graphgrad.compiled import evaluate
from graphgrad.differentiate.gradients import gradients
from graphgrad.ir.errors import DTypeError, ShapeError
from graphgrad.ir.graph import Graph
from graphgrad.ops import random
from graphgrad.ops.sources import placeholder

DRAWS = [
    lambda shape, seed: random.uniform(shape, seed=seed),
    lambda shape, seed: random.uniform(shape, -1.0, 3.0, seed=seed, dtype="float32"),
    lambda shape, seed: random.normal(shape, seed=seed),
    lambda shape, seed: random.normal(shape, 2.0, 0.5, seed=seed, dtype="float32"),
    lambda shape, seed: random.bernoulli(shape, 0.5, seed=seed),
    lambda shape, seed: random.integers(0, 100, shape, seed=seed),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_one_seed_one_value_and_other_seeds_other_values(draw):
    with Graph():
        seed = placeholder((), "int64")
        fixed = draw((5, 4), 3)
        a, b, c, d = evaluate([fixed, draw((5, 4), 3), draw((5, 4), 4), draw((5, 4), -3)])
        again = evaluate([fixed, draw((5, 4), seed)], {seed: 3})
    assert (a.shape, a.dtype) == (fixed.shape, fixed.dtype)
    for same in (b, *again):
        np.testing.assert_array_equal(a, same)
    for other in (c, d):
        assert (a != other).any()


@pytest.mark.parametrize("draw", DRAWS)
def test_shape_of_a_tensor(draw):
    with Graph():
        known, unknown = placeholder((5, 4)), placeholder(("N", 4))
        a = evaluate(draw((5, 4), 3))
        np.testing.assert_array_equal(evaluate(draw(known, 3)), a)
        drawn = draw(unknown, 3)
        assert drawn.shape == ("N", 4)
        np.testing.assert_array_equal(evaluate(drawn, {unknown: np.zeros((5, 4))}), a)


def test_functions_draw_independently_from_one_seed():
    with Graph():
        u, z = evaluate([random.uniform((10_000,), seed=1), random.normal((10_000,), seed=1)])
    assert abs(np.corrcoef(u, z)[0, 1]) < 0.05


def test_neighbouring_seeds_are_independent():
    with Graph():
        u, v = evaluate([random.uniform((10_000,), seed=i) for i in (1, 2)])
    assert abs(np.corrcoef(u, v)[0, 1]) < 0.05


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_distributions(dtype):
    n = 100_000
    with Graph():
        u = evaluate(random.uniform((n,), -1.0, 3.0, seed=1, dtype=dtype)).astype(float)
        z = evaluate(random.normal((n,), 2.0, 0.5, seed=1, dtype=dtype)).astype(float)
    assert u.min() >= -1
    assert u.max() <= 3
    assert abs(u.mean() - 1) < 0.02
    assert abs(u.var() - 16 / 12) < 0.02
    assert abs(z.mean() - 2) < 0.01
    assert abs(z.std() - 0.5) < 0.01


def test_bernoulli_and_integers():
    with Graph():
        kept = evaluate(random.bernoulli((100_000,), 0.3, seed=1))
        p = np.array([0.0, 0.5, 1.0])
        by_place = evaluate(random.bernoulli((10_000, 3), p, seed=1))
        i = evaluate(random.integers(-3, 4, (10_000,), seed=1, dtype="int8"))
    assert kept.dtype == bool
    assert abs(kept.mean() - 0.3) < 0.01
    np.testing.assert_allclose(by_place.mean(0), p, atol=0.02)
    assert sorted(set(i.tolist())) == list(range(-3, 4))


def test_permutation():
    with Graph():
        x = placeholder((None, 2))
        a, b = random.permutation(10, seed=1), random.permutation(x, seed=1)
        found = evaluate([a, b], {x: np.zeros((10, 2))})
        other = evaluate(random.permutation(10, seed=2))
        assert random.permutation(placeholder((4, 2)), seed=1).shape == (4,)
    assert b.shape == (None,)
    for order in found:
        assert sorted(order.tolist()) == list(range(10))
    np.testing.assert_array_equal(*found)
    assert (found[0] != other).any()


def test_gradients_flow_to_the_parameters():
    with Graph():
        mean, std = placeholder(()), placeholder(())
        z = random.normal((3,), mean, std, seed=1)
        feeds = {mean: 2.0, std: 0.5}
        dmean, dstd, value = evaluate([*gradients([z], [mean, std]), z], feeds)
    assert dmean == 3
    assert dstd == pytest.approx(((value - 2) / 0.5).sum())


def test_arguments_are_checked():
    with Graph():
        with pytest.raises(DTypeError, match="explicit seed"):
            random.uniform((3,), seed=None)
        with pytest.raises(DTypeError, match="seed"):
            random.uniform((3,), seed=0.5)
        with pytest.raises(DTypeError, match="floating"):
            random.normal((3,), seed=1, dtype="int64")
        with pytest.raises(DTypeError, match="no integers"):
            random.integers(0, 300, (3,), seed=1, dtype="uint8")
        with pytest.raises(ShapeError, match="known lengths"):
            random.uniform(("N", 3), seed=1)
