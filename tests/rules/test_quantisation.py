"""Fake quantisation: the grid, and the gradients of numbers and of the grid."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

XS = np.array([-3.0, -1.2, -0.4, 0.0, 0.3, 0.9, 2.6])
DY = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0])


def test_min_max_quantisation_has_zero_on_its_grid():
    x = gg.placeholder((7,), name="x")
    y = rules.fake_quantise(x, -1.0, 2.0, bits=4)
    found = value(y, {x: XS})
    step = 3.0 / 15
    np.testing.assert_allclose(found / step, np.round(found / step), atol=1e-12)
    assert found[3] == 0.0
    assert len(np.unique(found)) <= 16
    inside = (XS > -1) & (XS < 2)
    assert np.abs(found - XS)[inside].max() <= step / 2 + 1e-12


def test_min_max_gradients_are_those_of_clipping():
    x, low, high = gg.placeholder((7,), name="x"), gg.placeholder(()), gg.placeholder(())
    y = rules.fake_quantise(x, low, high)
    clipped = gg.minimum(gg.maximum(x, low), high)
    found, expected = [gg.gradients(t, [x, low, high], DY) for t in (y, clipped)]
    found, expected = values([found, expected], {x: XS, low: -1.0, high: 2.0})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)


def test_lsq_is_the_published_rule():
    x, s = gg.placeholder((7,), name="x"), gg.placeholder((), name="s")
    y = rules.lsq(x, s, bits=3)
    dx, ds = gg.gradients(y, [x, s], DY)
    y, dx, ds = values([y, dx, ds], {x: XS, s: 0.5})
    v, n, p = XS / 0.5, 4, 3
    inside = (v >= -n) & (v <= p)
    np.testing.assert_allclose(y, np.round(np.clip(v, -n, p)) * 0.5)
    np.testing.assert_allclose(dx, np.where(inside, DY, 0))
    slope = np.where(inside, np.round(v) - v, np.where(v < 0, -n, p))
    np.testing.assert_allclose(ds, (DY * slope).sum() / np.sqrt(7 * p))


def test_lsq_with_a_step_for_each_channel_and_without_sign():
    x, s = gg.placeholder(("N", 2), name="x"), gg.placeholder((2,), name="s")
    y = rules.lsq(x, s, bits=2, signed=False)
    ds = gg.gradients(y, s)
    at = np.array([[0.1, 9.0], [0.9, -1.0], [1.4, 1.2]])
    y, ds = values([y, ds], {x: at, s: [0.5, 1.0]})
    np.testing.assert_allclose(y, [[0.0, 3.0], [1.0, 0.0], [1.5, 1.0]])
    expected = [(-0.2 + 0.2 + 0.2) / 3, (3.0 + 0.0 - 0.2) / 3]
    np.testing.assert_allclose(ds, expected)


def test_pact_learns_its_bound():
    x, alpha = gg.placeholder((7,), name="x"), gg.placeholder((), name="alpha")
    y = rules.pact(x, alpha, bits=2)
    dx, da = gg.gradients(y, [x, alpha], DY)
    y, dx, da = values([y, dx, da], {x: XS, alpha: 0.9})
    np.testing.assert_allclose(y, [0.0, 0.0, 0.0, 0.0, 0.3, 0.9, 0.9])
    np.testing.assert_allclose(dx, np.where((XS >= 0) & (XS < 0.9), DY, 0))
    assert da == -6.0 + 7.0


@pytest.mark.parametrize("build", [rules.fake_quantise, rules.lsq, rules.pact])
def test_regions_say_what_they_are_and_keep_float32(build):
    x = gg.placeholder((4,), "float32", name="x")
    y = build(x, *([-1.0, 1.0] if build is rules.fake_quantise else [0.5]))
    (region,) = x.graph.regions
    assert region.name.startswith(build.__name__)
    assert region.rule.contract.kind == rules.library()[build.__name__].contract
    assert y.dtype == gg.gradients(y, x).dtype == np.float32


def test_the_plain_gradient_of_rounding_is_zero():
    x = gg.placeholder((7,), name="x")
    y = rules.lsq(x, 0.5)
    assert not value(gg.gradients(y, x, overrides="none"), {x: XS}).any()
