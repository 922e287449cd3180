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


def test_numbers_of_the_grid_are_those_of_quantize_linear():
    """ONNX: rint(x / s) + z, of halves the even one before z is added, then held within bounds."""
    x = gg.placeholder((None,), name="x")
    at = (np.arange(-30.0, 30.0) + 0.5) / 4
    for low, high in [(-0.75, 3.0), (-1.0, 2.75), (0.0, 3.75), (-3.75, 0.0)]:
        zero = round(-low / 0.25)
        numbers = np.clip(np.rint(at / 0.25) + zero, 0, 15)
        found = value(rules.fake_quantise(x, low, high, bits=4), {x: at})
        np.testing.assert_array_equal(found, 0.25 * (numbers - zero))


def lsq_plus_of(x, step, zero, dy, low, high):
    """LSQ+ in NumPy: y, dx, dstep, dzero, element by element, without the factor g."""
    z = np.clip(np.rint(zero), low, high)
    steps = x / step
    at = steps + z
    inside = (at >= low) & (at <= high)
    held = np.clip(np.rint(steps) + z, low, high) - z
    slope = np.where(inside, np.rint(steps) - steps, held)
    return held * step, np.where(inside, dy, 0), dy * slope, np.where(inside, 0, -dy * step)


@pytest.mark.parametrize(("signed", "low", "high"), [(True, -4, 3), (False, 0, 7)])
@pytest.mark.parametrize("kind", ["tensor", "channel", "group"])
def test_lsq_plus_is_the_published_rule(kind, signed, low, high):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6, 2)) * 3
    dy = rng.normal(size=x.shape)
    shape = {"tensor": (), "channel": (6,), "group": (4, 2, 2)}[kind]
    step, zero = rng.uniform(0.3, 0.8, shape), rng.uniform(-1, 3, shape)
    options = {"tensor": {}, "channel": {"axis": -2}, "group": {"axis": 1, "group": 3}}[kind]
    xs = [gg.placeholder(np.shape(a)) for a in (x, step, zero)]
    y = rules.lsq_plus(*xs, bits=3, signed=signed, **options)
    found = values([y, *gg.gradients(y, xs, dy)], dict(zip(xs, (x, step, zero), strict=True)))

    def spread(a):
        if kind == "group":
            return np.repeat(a, 3, 1)
        return a if kind == "tensor" else np.reshape(a, (-1, 1))

    def summed(a):
        if kind == "group":
            return a.reshape(4, 2, 3, 2).sum(2)
        return a.sum() if kind == "tensor" else a.sum((0, 2))

    y, dx, dstep, dzero = lsq_plus_of(x, *map(spread, (step, zero)), dy, low, high)
    g = 1 / np.sqrt(summed(np.ones_like(x)) * high)
    for ours, theirs in zip(found, (y, dx, g * summed(dstep), g * summed(dzero)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)


def test_lsq_plus_at_a_zero_of_0_is_lsq():
    x, s = gg.placeholder((7,), name="x"), gg.placeholder((), name="s")
    ys = rules.lsq(x, s, bits=3), rules.lsq_plus(x, s, bits=3)
    one, other = values([[y, *gg.gradients(y, [x, s], DY)] for y in ys], {x: XS, s: 0.5})
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("format", "largest"), [("e4m3fn", 448.0), ("e5m2", 57344.0)])
def test_numbers_of_eight_bits_are_those_of_ml_dtypes(format, largest):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(ml_dtypes, f"float8_{format}")
    known = np.arange(256, dtype="uint8").view(dtype).astype("float64")
    known = np.sort(known[np.isfinite(known)])
    at = np.concatenate(
        [known, (known[1:] + known[:-1]) / 2, 1.3 * known, [2 * largest, -3 * largest]]
    )
    x, s = gg.placeholder(at.shape, name="x"), gg.placeholder(())
    y = rules.fake_float8(x, s, format)
    dy = np.cos(np.arange(at.size))
    y, dx, ds = values([y, *gg.gradients(y, [x, s], dy)], {x: 2 * at, s: 2.0})
    exact = np.clip(at, -largest, largest).astype(dtype).astype("float64")
    np.testing.assert_array_equal(y, 2 * exact)
    inside = np.abs(at) <= largest
    np.testing.assert_array_equal(dx, np.where(inside, dy, 0))
    slope = exact - np.where(inside, at, 0)
    np.testing.assert_allclose(ds, (dy * slope).sum())
    with pytest.raises(ValueError, match="format is one of e4m3fn, e5m2, got 'e4m3'"):
        rules.fake_float8(x, s, "e4m3")


def test_lsq_plus_refuses_what_does_not_fit():
    x = gg.placeholder(("N", 6), name="x")
    with pytest.raises(ValueError, match="pass axis= too"):
        rules.lsq_plus(x, 0.5, group=2)
    with pytest.raises(gg.ShapeError, match="groups of 4 do not divide axis 1"):
        rules.lsq_plus(x, 0.5, axis=1, group=4)
    with pytest.raises(gg.ShapeError, match="groups of 2 do not divide axis 0"):
        rules.lsq_plus(x, 0.5, axis=0, group=2)
    with pytest.raises(gg.ShapeError, match=r"step must have shape \(6,\) or \(\), got \(2,\)"):
        rules.lsq_plus(x, [0.5, 0.5], axis=1)
    with pytest.raises(gg.ShapeError, match=r"zero must have shape \(6,\) or \(\), got \(6, 1\)"):
        rules.lsq_plus(x, 0.5, np.zeros((6, 1)), axis=1)
    with pytest.raises(ValueError, match="group is an int, at least 1"):
        rules.lsq_plus(x, 0.5, axis=1, group=0)
    assert not x.graph.regions


@pytest.mark.parametrize("build", [rules.fake_quantise, rules.lsq, rules.lsq_plus, rules.pact])
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
    x, s, z = [gg.placeholder(n, name="x") for n in ((7,), (), ())]
    y = rules.lsq_plus(x, s, z, bits=3)
    dx, ds, dz = values(gg.gradients(y, [x, s, z], DY, overrides="none"), {x: XS, s: 0.5, z: 1.0})
    held, _, _, dzero = lsq_plus_of(XS, 0.5, 1.0, DY, -4, 3)
    assert not dx.any()
    np.testing.assert_allclose(ds, (DY * held / 0.5).sum())
    assert dz == 0.0  # it is rounded
    assert dzero.any()
