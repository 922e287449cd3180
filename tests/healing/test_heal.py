"""`heal`: what it rewrites, and what it leaves alone."""

import math

import numpy as np
import pytest

import graphgrad as gg

INF = math.inf


def healed(f, *args, dtype="float64"):
    """Value and gradients of what f becomes, and the names of what fired."""
    with gg.Graph():
        xs = [gg.placeholder(np.shape(a), dtype=dtype) for a in args]
        made = gg.heal(f(*xs))
        dxs = gg.gradients(made.ys, xs, unconnected="zero")
    with np.errstate(all="ignore"):
        values = gg.compile(xs, [made.ys, *dxs])(*[np.asarray(a, dtype) for a in args])
    return values[0], values[1:], [site.name for site in made.sites]


SPELLINGS = [
    (lambda x: gg.log(1 + gg.exp(x)), 1000.0, 1000.0, 1.0),
    (lambda x: gg.log(gg.exp(x) + 1), 1000.0, 1000.0, 1.0),
    (lambda x: gg.log1p(gg.exp(x)), 1000.0, 1000.0, 1.0),
    (lambda x: -gg.log(1 / (1 + gg.exp(x))), 1000.0, 1000.0, 1.0),
    (lambda x: x + gg.log(1 + gg.exp(-x)), 1000.0, 1000.0, 1.0),
    (lambda x: gg.sqrt(x * x), 1e200, 1e200, 1.0),
    (lambda x: gg.sqrt(x**2), -1e200, 1e200, -1.0),
    (lambda x: (x * x) ** 0.5, 1e-200, 1e-200, 1.0),
    (lambda x: gg.sin(x) / x, 0.0, 1.0, 0.0),
    (lambda x: gg.sin(3 * x) / x, 0.0, 3.0, 0.0),
    (lambda x: (1 - gg.cos(x)) / x**2, 0.0, 0.5, 0.0),
    (lambda x: (gg.exp(x) - 1 - x) / (x * x), 0.0, 0.5, 1 / 6),
    (lambda x: (x - gg.sin(x)) / x**3, 0.0, 1 / 6, 0.0),
    (lambda x: x / (gg.exp(x) - 1), 0.0, 1.0, -0.5),
    (lambda x: (gg.exp(x) - gg.exp(-x)) / (gg.exp(x) + gg.exp(-x)), 800.0, 1.0, 0.0),
    (lambda x: (1 - gg.exp(-2 * x)) / (1 + gg.exp(-2 * x)), -800.0, -1.0, 0.0),
    (lambda x: gg.exp(-gg.exp(-x)), -800.0, 0.0, 0.0),
    (lambda x: gg.where(x > 0, gg.sqrt(x), -x), -1.0, 1.0, -1.0),
    (lambda x: gg.where(x < 0, x, gg.exp(-x)), -800.0, -800.0, 1.0),
    (lambda x: gg.where(x > 0, x * gg.log(x), x), -1.0, -1.0, 1.0),
]


@pytest.mark.parametrize(("f", "x", "y", "dx"), SPELLINGS)
def test_values_and_gradients_are_those_of_the_real_function(f, x, y, dx):
    value, (slope,), fired = healed(f, x)
    np.testing.assert_allclose([value, slope], [y, dx], rtol=1e-12, atol=1e-300)
    assert fired


def test_nothing_is_rewritten_that_is_stable():
    for f in (gg.tanh, gg.nn.softplus, lambda x: x * x + 1, lambda x: (x + 1e16) - 1e16):
        value, _, fired = healed(f, 0.3)
        assert fired == []
        assert value == gg.evaluate(f(gg.constant(0.3)))


def test_a_graph_of_which_nothing_is_rewritten_gains_no_node():
    x = gg.placeholder((3,))
    y = gg.sum(x * gg.tanh(x))
    before = len(x.graph.nodes)
    assert gg.heal([y, x]).ys[0] is y
    assert len(x.graph.nodes) == before


def test_domains_stay():
    assert math.isnan(healed(lambda x: gg.exp(gg.sum(gg.log(x))), [-1.0, -2.0])[0])
    assert math.isnan(healed(lambda x: gg.log(x) + gg.log(x), -1.0)[0])
    assert math.isnan(healed(lambda x: gg.sqrt(x) ** 2, -2.0)[0])
    assert math.isnan(healed(lambda x: gg.log(gg.exp(x) - 1), -1.0)[0])
    assert math.isnan(healed(lambda x, y: x * gg.log(x / y), 1.0, -1.0)[0])
    assert healed(lambda x: gg.log(gg.sum(gg.exp(x))), [-INF, -INF])[0] == -INF


def test_along_axes_and_with_axes_kept():
    x = np.array([[1000.0, 0.0, -1000.0], [1.0, 2.0, 3.0]])
    for options in [{"axis": 0}, {"axis": 1}, {"axis": 1, "keepdims": True}, {"keepdims": True}]:

        def naive(t, options=options):
            return gg.log(gg.sum(gg.exp(t), **options))

        value, _, fired = healed(lambda t, naive=naive: naive(t), x[:, :2])
        want = gg.evaluate(gg.special.logsumexp(x[:, :2], **options))
        np.testing.assert_allclose(value, want, rtol=1e-12)
        assert fired == ["logsumexp"]
    value, _, fired = healed(lambda t: gg.exp(t) / gg.sum(gg.exp(t), 1)[:, None], x)
    np.testing.assert_allclose(value, gg.evaluate(gg.nn.softmax(x)), rtol=1e-12)
    assert fired == ["softmax"]


def test_lengths_that_are_open():
    x = gg.placeholder(("N", 3))
    y = gg.heal(gg.sum(gg.log(gg.sum(gg.exp(x), 1)))).ys
    np.testing.assert_allclose(gg.compile(x, y)(np.full((2, 3), 800.0)), 2 * (800 + np.log(3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_stay(dtype):
    value, (slope,), _ = healed(lambda x: gg.log(1 + gg.exp(x)), 95.0, dtype=dtype)
    assert (value.dtype, slope.dtype) == (np.dtype(dtype),) * 2
    assert (value, slope) == (95.0, 1.0)


def test_what_is_marked_is_left_alone():
    with gg.Graph():
        x = gg.placeholder(())
        with gg.gradient_override_map({"Log": "Identity"}):
            y = gg.log(1 + gg.exp(x))
        made = gg.heal(y)
    assert made.ys is y
    assert [(site.name, site.now) for site in made.sites] == [("log1pexp", "left alone: marked")]


def test_a_region_that_reads_what_is_healed_keeps_its_rule():
    with gg.Graph():
        x = gg.placeholder(())
        inner = gg.log(1 + gg.exp(x))
        with gg.override_gradient(lambda site, dy: 10 * dy):
            y = gg.tanh(inner)
        made = gg.heal(y)
        (dx,) = gg.gradients(made.ys, [x])
    assert gg.compile(x, dx)(1000.0) == 10.0


def test_a_condition_asks_what_was_written():
    value, _, _ = healed(lambda x: gg.where(gg.sqrt(x * x) > 1e308, INF, 1.0), 1e200)
    assert value == INF


def test_stop_gradient_and_draws_are_barriers():
    with gg.Graph():
        x = gg.placeholder(())
        y = gg.log(1 + gg.stop_gradient(gg.exp(x)))
        assert [s.name for s in gg.heal(y).sites] in ([], ["log1p"])
        noise = gg.random.normal((), seed=0)
        assert gg.heal(gg.exp(noise) * noise).sites == ()


def test_after_gradients_it_is_an_error():
    x = gg.constant(1.0)
    dx = gg.gradients(gg.tanh(x), x)
    with pytest.raises(gg.GraphError, match="before it is differentiated") as error:
        gg.heal(dx)
    assert "test_heal.py" in str(error.value)


def test_tensors_of_two_graphs_and_none_are_errors():
    ys = []
    for _ in range(2):
        with gg.Graph():
            ys.append(gg.exp(gg.constant(1.0)))
    with pytest.raises(gg.GraphError, match="different graphs"):
        gg.heal(ys)
    with pytest.raises(TypeError, match="got none"):
        gg.heal([])


def test_the_table_says_line_and_reason():
    x = gg.constant(1.0)
    text = str(gg.heal(gg.log(1 + gg.exp(x))))
    for words in ("test_heal.py", "log(1 + exp(x))", "softplus(x)", "overflows"):
        assert words in text
    assert str(gg.heal(gg.tanh(x))) == "nothing to heal"


@pytest.mark.parametrize(("dtype", "start"), [("float64", "709.8"), ("float32", "88.72")])
def test_the_table_says_from_where_in_the_dtype_in_use(dtype, start):
    x = gg.placeholder((), dtype=dtype)
    lines = str(gg.heal(gg.log(1 + gg.exp(x)))).splitlines()
    assert len(lines) == 3
    assert f"in {dtype}, x from {start}: the value is infinite, the gradient is NaN" in lines[2]


def test_quotients_that_cancel_once_they_are_healed():
    value, (slope,), _ = healed(lambda x: (gg.sqrt(1 + x) - 1) / x, 1e-20)
    np.testing.assert_allclose([value, slope], [0.5, -0.125])


def test_compile_and_function_heal():
    x = gg.placeholder(())
    y = gg.log(1 + gg.exp(x))
    assert gg.compile(x, y, heal=True)(1000.0) == 1000.0
    with np.errstate(all="ignore"):
        assert gg.compile(x, y)(1000.0) == INF
    with pytest.raises(gg.GraphError, match="before it is differentiated"):
        gg.compile(x, gg.gradients(y, x), heal=True)
    softplus = gg.function(lambda x: gg.log(1 + gg.exp(x)), heal=True)
    assert softplus(np.float64(1000.0)) == 1000.0
    slope = gg.function(lambda x: gg.gradients(gg.log(1 + gg.exp(x)), x), heal=True)
    with pytest.raises(gg.GraphError, match="before it is differentiated"):
        slope(np.float64(1000.0))


def test_lint_names_naive_forms():
    x = gg.placeholder((), dtype="float32")
    y = gg.log(1 + gg.exp(x))
    (found,) = gg.lint(y)
    assert found.kind == "naive form"
    assert "log(1 + exp(x))" in found.message
    assert "gg.heal" in found.suggestion


def test_at_feeds_only_what_loses_is_rewritten():
    pytest.importorskip("mpmath")
    x, y = gg.placeholder(()), gg.placeholder(())
    z = gg.log(1 + gg.exp(x)) + gg.sqrt(y * y)
    names = [s.name for s in gg.heal(z, at={x: np.float64(1000.0), y: np.float64(3.0)}).sites]
    assert names == ["log1pexp"]
    (site,) = gg.heal(z, at={x: np.float64(1.0), y: np.float64(1e200)}).sites
    assert (site.name, site.lost) == ("abs", 16.0)
    assert gg.heal(z, at={x: np.float64(1.0), y: np.float64(3.0)}).sites == ()
    tanh = (gg.exp(x) - gg.exp(-x)) / (gg.exp(x) + gg.exp(-x))
    made = gg.heal(tanh, at={x: np.float64(800.0)}).ys
    assert gg.compile(x, made)(800.0) == 1.0
    with pytest.raises(gg.GraphError, match="at= needs a value"):
        gg.heal(z, at={x: np.float64(1.0)})


def test_an_identity_of_the_user_is_shown_before_it_is_taken():
    pytest.importorskip("mpmath")
    words = {"written": "exp(4 log(x))", "now": "x**4", "wrong": "loses digits"}
    with pytest.raises(ValueError, match="does not hold: at"):
        gg.extend.identity("four", lambda x: gg.exp(4.0 * gg.log(x)), lambda x: x**3, **words)
    with pytest.raises(ValueError, match="already"):
        gg.extend.identity("tanh", gg.exp, gg.exp, **words)
    for naive in (lambda x: x, lambda x: 1.0 * x):
        with pytest.raises(ValueError, match="would never apply"):
            gg.extend.identity("all", naive, lambda x: x, **words)
    taken = (lambda x: gg.log(1 + gg.exp(x)), gg.nn.softplus)
    with pytest.raises(ValueError, match="a built-in identity already rewrites it"):
        gg.extend.identity("soft", *taken, **words)
    with pytest.raises(ValueError, match="the same number of arguments"):
        gg.extend.identity("soft", *taken, **words, ranges=[(0, 1)] * 2)
    with pytest.raises(ValueError, match="the same number of arguments"):
        gg.extend.identity("soft", gg.exp, gg.add, **words)
    with pytest.raises(TypeError, match="takes functions of tensors, got 3"):
        gg.extend.identity("soft", 3, gg.exp, **words)


def by_map(x):
    with gg.gradient_override_map({"Add": lambda site, dy: (7.0 * dy, None)}):
        return gg.where(x > 0, gg.log(x) + 1.0, x)


def by_region(x):
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        inner = gg.sin(x) + 2.0
    return gg.where(x > 0, gg.sqrt(inner), x)


def by_choice(x):
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        inner = gg.where(x > 0, 1.0 / x, x)
    return gg.where(x > 0, gg.log(inner), x)


@pytest.mark.parametrize("f", [by_map, by_region, by_choice])
def test_S27_a_rule_in_a_branch_of_a_choice_is_applied_in_the_healed_one(f):
    x = gg.placeholder((2,))
    y = f(x)
    made = gg.heal(y).ys
    slopes = [gg.gradients(gg.sum(t), x) for t in (y, made)]
    written, healed = gg.evaluate(slopes, {x: np.array([2.0, 0.7])})
    np.testing.assert_allclose(healed, written, rtol=1e-12)
    plain = gg.evaluate(gg.gradients(gg.sum(y), x, overrides="none"), {x: np.array([2.0, 0.7])})
    assert not np.allclose(plain, written)


def test_the_logarithm_of_a_ratio_is_taken_by_the_difference_near_1_alone():
    x = gg.placeholder((4,))
    made = gg.heal(gg.log(x / (x + 3.0))).ys
    at = {x: np.array([1e-20, 1e-270, 1e17, -5.0])}
    found, slopes = gg.evaluate([made, gg.gradients(gg.sum(made), x)], at)
    np.testing.assert_allclose(found, [np.log(1e-20 / 3), np.log(1e-270 / 3), -3e-17, np.log(2.5)])
    np.testing.assert_allclose(slopes, [1e20, 1e270, 3e-34, 0.3])


def test_sums_along_axes_of_open_lengths():
    x = gg.placeholder(("b", None))
    y = gg.log(gg.sum(gg.exp(x), axis=0))
    made = gg.heal(y)
    at = np.array([[800.0, 0.0], [800.0, 1.0]])
    np.testing.assert_allclose(
        gg.evaluate(made.ys, {x: at}), np.logaddexp.reduce(at, axis=0), rtol=1e-15
    )


def test_a_healed_form_in_a_branch_has_no_slope_where_it_is_not_chosen():
    x = gg.placeholder((3,))
    for f in (
        lambda x: x * gg.log(x),
        lambda x: x**2 * gg.log(x),
        lambda x: gg.log(x + 1) - gg.log(x),
        lambda x: 1 / gg.sinh(x),
        lambda x: 1 / gg.sqrt(x * x + x**4),
    ):
        y = gg.heal(gg.sum(gg.where(x > 0, f(x), x))).ys
        slopes = gg.compile(x, gg.gradients(y, x))(np.array([-1.0, 0.0, 0.5]))
        assert slopes[:2].tolist() == [1.0, 1.0]
        assert np.isfinite(slopes[2])


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (lambda x: gg.exp(x) / gg.sum(gg.exp(x)), [INF, 1.0]),
        (lambda x: gg.exp(x) / gg.sum(gg.exp(x)), [INF, -INF]),
        (lambda x: gg.nn.sigmoid(x) - gg.nn.sigmoid(2 * x), [INF, -INF]),
        (lambda x: gg.exp(x) - gg.exp(2 * x), [-INF, 0.0]),
        (lambda x: gg.log(gg.exp(2 * x) - gg.exp(x)), [-INF, 0.0]),
        (lambda x: 1 / gg.sinh(x), [0.0, -0.0]),
        (lambda x: gg.log(x + 1) - gg.log(x), [-0.0, 0.0]),
        (lambda x: gg.special.gammaln(x + 1) - gg.special.gammaln(x), [-1.0, -2.0]),
    ],
)
def test_infinities_zeros_and_poles_give_what_they_gave(f, at):
    x = gg.placeholder((2,))
    y = f(x)
    made = gg.heal(y)
    assert made.sites
    with np.errstate(all="ignore"):
        written, healed = gg.compile(x, [y, made.ys], optimize=False)(np.array(at))
    np.testing.assert_array_equal(healed, written)
    numbers = ~np.isnan(written)
    np.testing.assert_array_equal(np.signbit(healed)[numbers], np.signbit(written)[numbers])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: gg.sqrt(gg.sum(x * x)),
        lambda x: x / gg.sqrt(gg.sum(x * x)),
        lambda x: gg.exp(x) / gg.sum(gg.exp(x)),
        lambda x: gg.log(gg.sum(x * gg.exp(x))),
        lambda x: gg.sum(x * gg.exp(x)) / gg.sum(2 * x * x * gg.exp(x)),
    ],
)
@pytest.mark.parametrize("length", [0, "N"])
def test_of_no_elements_it_is_what_was_written(f, length):
    with gg.Graph(), np.errstate(all="ignore"):
        x = gg.placeholder((length,))
        made = gg.heal(f(x))
        run = gg.compile(x, [f(x), made.ys, gg.gradients(gg.sum(made.ys), x)])
        written, now, dx = run(np.zeros(0))
    assert made.sites
    assert now.shape == written.shape
    assert dx.shape == (0,)
    np.testing.assert_array_equal(now, written)


def test_a_branch_is_kept_from_a_constant_that_the_condition_asks_about():
    with gg.Graph():
        x = gg.constant([-1.0, 0.0, 4.0])
        y = gg.heal(gg.sum(gg.where(x > 0, gg.sqrt(x), 0.0))).ys
        np.testing.assert_array_equal(gg.evaluate(gg.gradients(y, x)), [0.0, 0.0, 0.25])


def test_a_branch_is_kept_from_a_constant_with_zeros():
    counts = np.array([0.0, 2.0])
    with gg.Graph():
        x = gg.constant([3.0, 3.0])
        y = gg.heal(gg.sum(gg.where(counts > 0, x / counts, 0.0))).ys
        np.testing.assert_array_equal(gg.evaluate(gg.gradients(y, x)), [0.0, 0.5])


def test_the_slope_of_a_share_of_squares_does_not_cancel():
    value, (dx,), names = healed(lambda x: x * x / (1 + x * x), 1e8)
    assert (value, names) == (1.0, ["over_squares"])
    np.testing.assert_allclose(dx, 2e-24, rtol=1e-15)
    _, dxs, _ = healed(lambda x, y: 3 * x * x / (x * x + 4 * y * y), 1e8, 0.5)
    np.testing.assert_allclose(dxs, (6e-24, -1.2e-15), rtol=1e-12)


@pytest.mark.parametrize("x", [8.0, 30.0, 720.0, 1000.0, 1e200])
def test_no_slope_is_infinity_over_infinity_where_an_exponential_overflows(x):
    _, (dx,), names = healed(lambda x: 1 / (gg.exp(x) - 1) - 1 / x, x)
    assert "bose" in names
    np.testing.assert_allclose(dx, 1 / x / x - (0.5 / np.sinh(min(x, 1200.0) / 2)) ** 2, rtol=1e-14)
    value, (dx,), names = healed(lambda x: gg.log(1 - gg.exp(-gg.exp(x))), x)
    assert "log1mexp_exp" in names or "cloglog" in names
    assert (value, dx) == (0.0, 0.0)


@pytest.mark.parametrize("x", [5e-324, 1e-310, 0.0, INF])
def test_a_difference_of_logarithms_of_a_subnormal_number_is_finite(x):
    value, _, names = healed(lambda x: gg.log(x + 1) - gg.log(x), x)
    assert "difference_of_logs" in names
    np.testing.assert_allclose(value, 0.0 if x == INF else INF if x == 0 else -math.log(x))


def test_S27_a_choice_with_a_rule_of_its_own_and_a_stable_call_stay_as_they_are():
    x = gg.placeholder(())
    with gg.gradient_override_map({"Where": lambda site, dy: (None, dy, dy)}):
        chosen = gg.where(x > 0, gg.log(x), x)
    for y in (chosen, gg.log1p(x)):
        made = gg.heal(y)
        assert made.ys is y
        assert not made.sites


def test_S5_a_condition_in_a_region_asks_what_enters_the_region():
    x = gg.placeholder(())
    length = gg.sqrt(x * x)
    with gg.override_gradient(lambda site, dy: 7.0 * dy, inputs=[length]):
        y = gg.where(length > 2.0, 2.0 * length, length)
    made = gg.heal(y).ys
    value, dx = gg.evaluate([made, gg.gradients(made, x)], {x: -1e200})
    assert (value, dx) == (2e200, -7.0)


def test_a_quotient_of_a_reciprocal_keeps_its_slope():
    """x log(1 + 1 / x) is no 0 / 0: log(1 + 1 / x) needs a slope of its own, and the product."""
    x = gg.placeholder(())
    healed = gg.heal(x * gg.log(1 + 1 / x))
    assert [site.name for site in healed.sites] == ["log1p_inverse", "x_log1p_inverse"]
    run = gg.compile(x, gg.gradients(healed.ys, x))
    assert run(1e-300) == pytest.approx(300 * np.log(10.0) - 1, rel=1e-15)
    assert run(1e20) == pytest.approx(5e-41, rel=1e-14)


def test_what_runs_before_a_node_runs_before_the_healed_one():
    x, v = gg.placeholder(()), gg.variable(0.0)
    soft = gg.log(1 + gg.exp(x))
    plain, healed = gg.assign(v, 2.0 * x), gg.assign(v, 2.0 * soft)
    y = 3.0 * soft
    y.node.controls = (plain.node, healed.node)
    first, second = gg.heal(y).ys.node.controls
    assert first is plain.node
    assert second is not healed.node
    assert gg.heal(y).ys.node.controls[1].op is healed.node.op
    soft.node.controls = (plain.node,)
    assert gg.heal(soft).ys is soft


def test_a_sum_that_log1p_took_in_is_healed():
    x = gg.placeholder(())
    healed = gg.heal(gg.log1p(-gg.exp(-x)))
    assert [site.name for site in healed.sites] == ["log1mexp"]
    assert gg.compile(x, healed.ys)(1e-300) == pytest.approx(-300 * np.log(10.0), rel=1e-15)


@pytest.mark.parametrize(("x", "y"), [(-892.0, 892.0), (892.0, -892.0), (900.0, 800.0)])
def test_one_over_a_sum_of_exponentials_is_not_infinity_times_0(x, y):
    for f in (
        lambda x, y: 1 / (gg.exp(x) + gg.exp(y)),
        lambda x, y: 3.0 * (2.0 * gg.exp(x) + gg.exp(y)) ** -2,
    ):
        assert healed(f, x, y)[0] == 0.0
    share, slopes, _ = healed(lambda x, y: gg.exp(y) * (1 / (gg.exp(x) + gg.exp(y))), x, y)
    assert share == (1.0 if y > x else pytest.approx(np.exp(y - x), abs=1e-300))
    assert np.isfinite(slopes).all()
