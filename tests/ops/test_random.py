"""Random numbers: reproducible by seed, distributed as promised."""

import pickle
import zlib

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import DTypeError, GradientError, ShapeError, StateError
from graphgrad.compiled import compile, evaluate
from graphgrad.differentiate.gradients import gradients
from graphgrad.execute.kernels import one_call_per_node
from graphgrad.execute.loading import load_backend
from graphgrad.ir.build import apply
from graphgrad.ir.graph import Graph
from graphgrad.ir.program import Program
from graphgrad.ir.state import State
from graphgrad.ops import random
from graphgrad.ops.base import constant
from graphgrad.ops.random.draws import _order
from graphgrad.ops.random.rejection import LogGammaSlope
from graphgrad.ops.shape.indexing import take
from graphgrad.ops.sources import placeholder
from graphgrad.ops.special.quantile import NormalPoint, NormalQuantile

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
        x = placeholder(("N", 2))
        a, b = random.permutation(10, seed=1), random.permutation(x, seed=1)
        found = evaluate([a, b], {x: np.zeros((10, 2))})
        other = evaluate(random.permutation(10, seed=2))
        assert random.permutation(placeholder((4, 2)), seed=1).shape == (4,)
    assert b.shape == ("N",)
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
        with pytest.raises(DTypeError, match="seed"):
            random.uniform((3,), seed=0.5)
        with pytest.raises(DTypeError, match="floating"):
            random.normal((3,), seed=1, dtype="int64")
        with pytest.raises(DTypeError, match="no integers"):
            random.integers(0, 300, (3,), seed=1, dtype="uint8")
        with pytest.raises(ShapeError, match="give ints and lengths"):
            random.uniform((None, 3), seed=1)


# --- the definition ------------------------------------------------------------------------------

BACKENDS = ["numpy", "llvm", "jax"]


def on(backend, build, seed=7):
    """The value of what is built of a seed that is fed: nothing is folded."""
    with Graph():
        key = placeholder((), "int64")
        return compile(key, build(key), backend=backend)(seed)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", [7, -3, 2**63 - 1])
def test_bits_are_the_words_of_numpys_philox(backend, seed):
    stream = zlib.crc32(b"RandomBits") << 64
    words = np.random.Philox(key=seed % 2**64 + stream).random_raw(103)
    np.testing.assert_array_equal(on(backend, lambda k: random.bits((103,), seed=k), seed), words)
    halves = on(backend, lambda k: random.bits((5, 41), seed=k, dtype="uint32"), seed)
    np.testing.assert_array_equal(halves.ravel(), words.astype("<u8").view("<u4")[:205])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_uniform_numbers_are_those_of_numpys_generator(backend, dtype):
    key = 7 + (zlib.crc32(b"RandomUniform") << 64)
    wanted = np.random.Generator(np.random.Philox(key=key)).random(101, dtype)
    found = on(backend, lambda k: random.uniform((101,), seed=k, dtype=dtype))
    np.testing.assert_array_equal(found, wanted)


EXACT = {
    "integers": lambda k: random.integers(-5, 5, (301,), seed=k),
    "integers of which half are refused": lambda k: random.integers(
        -(2**63), 2**62 + 1, (301,), seed=k
    ),
    "all integers": lambda k: random.integers(0, 2**64, (9,), seed=k, dtype="uint64"),
    "permutation": lambda k: random.permutation(301, seed=k),
    "bernoulli": lambda k: random.bernoulli((301,), 0.3, seed=k),
    "split": lambda k: random.split(k, 9),
    "fold_in": lambda k: random.fold_in(k, np.arange(50)),
    "rademacher": lambda k: random.rademacher((9,), seed=k),
    "poisson": lambda k: random.poisson((2, 100), [[3.0], [40.0]], seed=k),
    "binomial": lambda k: random.binomial((2, 100), 100, [[0.05], [0.7]], seed=k),
    "choice": lambda k: random.choice(9, (4,), False, seed=k),
}


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", EXACT)
def test_what_is_whole_is_the_same_on_every_backend(name, backend):
    np.testing.assert_array_equal(on(backend, EXACT[name]), on("numpy", EXACT[name]))


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_normal_numbers_are_within_4_units_on_every_backend(backend, dtype):
    found, wanted = (
        on(b, lambda k: random.normal((3001,), seed=k, dtype=dtype)) for b in (backend, "numpy")
    )
    np.testing.assert_array_less(np.abs(found - wanted), 4.5 * np.spacing(np.abs(wanted)))


def test_the_normal_quantile_is_scipys():
    special = pytest.importorskip("scipy.special")
    p = np.array([1e-300, 1e-20, 1e-9, 0.01, 0.0749, 0.0751, 0.3, 0.5, 0.9, 0.99])
    with Graph():
        found = evaluate(apply(NormalPoint(), constant(p)))
        near = evaluate(apply(NormalQuantile(), constant(p[2:] - 0.5)))
    np.testing.assert_allclose(found, special.ndtri(p), rtol=1e-14)
    np.testing.assert_allclose(near[1:], special.ndtri(p)[3:], rtol=1e-13, atol=1e-15)


def test_keys_of_split_are_those_of_fold_in():
    with Graph():
        keys, folded = evaluate([random.split(5, 40), random.fold_in(5, np.arange(40))])
        one = evaluate(random.fold_in(5, 3))
    np.testing.assert_array_equal(keys, folded)
    assert keys[3] == one
    assert len(set(keys.tolist())) == 40


def test_an_order_is_the_stable_order_of_words():
    row = np.array([3, 2**60, 1, 3, 2, 2**60 + 1], np.uint64)
    np.testing.assert_array_equal(_order(row), np.argsort(row, kind="stable"))


# --- distributions -------------------------------------------------------------------------------

N = 20_000
KNOWN = {
    "uniform": (lambda: random.uniform((N,), seed=1), "uniform", ()),
    "normal": (lambda: random.normal((N,), seed=1), "norm", ()),
    "exponential": (lambda: random.exponential((N,), 2.0, seed=1), "expon", (0, 2)),
    "gumbel": (lambda: random.gumbel((N,), 1.0, 2.0, seed=1), "gumbel_r", (1, 2)),
    "laplace": (lambda: random.laplace((N,), 1.0, 2.0, seed=1), "laplace", (1, 2)),
    "logistic": (lambda: random.logistic((N,), 1.0, 2.0, seed=1), "logistic", (1, 2)),
    "cauchy": (lambda: random.cauchy((N,), 1.0, 2.0, seed=1), "cauchy", (1, 2)),
    "lognormal": (lambda: random.lognormal((N,), 1.0, 0.5, seed=1), "lognorm", (0.5, 0, np.e)),
    "rayleigh": (lambda: random.rayleigh((N,), 2.0, seed=1), "rayleigh", (0, 2)),
    "weibull": (lambda: random.weibull((N,), 1.5, 2.0, seed=1), "weibull_min", (1.5, 0, 2)),
    "pareto": (lambda: random.pareto((N,), 3.0, 2.0, seed=1), "pareto", (3, 0, 2)),
    "maxwell": (lambda: random.maxwell((N,), 2.0, seed=1), "maxwell", (0, 2)),
    "wald": (lambda: random.wald((N,), 2.0, 5.0, seed=1), "invgauss", (0.4, 0, 5)),
    "generalized": (
        lambda: random.generalized_normal((N,), 3.0, 1.0, 2.0, seed=1),
        "gennorm",
        (3, 1, 2),
    ),
    "both sides": (
        lambda: gg.abs(random.double_sided_maxwell((N,), 0.0, 2.0, seed=1)),
        "maxwell",
        (0, 2),
    ),
    "triangular": (lambda: random.triangular((N,), 0.0, 1.0, 3.0, seed=1), "triang", (1 / 3, 0, 3)),
    "truncated": (lambda: random.truncated_normal((N,), 1.0, 2.5, seed=1), "truncnorm", (1, 2.5)),
    "gamma": (lambda: random.gamma((N,), 0.5, 2.0, seed=1), "gamma", (0.5, 0, 2)),
    "beta": (lambda: random.beta((N,), 0.5, 0.7, seed=1), "beta", (0.5, 0.7)),
    "chisquare": (lambda: random.chisquare((N,), 3.0, seed=1), "chi2", (3,)),
    "f": (lambda: random.f((N,), 4.0, 20.0, seed=1), "f", (4, 20)),
    "student_t": (lambda: random.student_t((N,), 3.0, 1.0, 2.0, seed=1), "t", (3, 1, 2)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_floating_numbers_are_distributed_as_scipys(name):
    stats = pytest.importorskip("scipy.stats")
    build, law, args = KNOWN[name]
    with Graph():
        y = evaluate(build())
    assert stats.kstest(y, law, args).pvalue > 1e-3
    ranks = getattr(stats, law).cdf(y, *args) - 0.5
    assert all(abs(np.corrcoef(ranks[lag:], ranks[:-lag])[0, 1]) < 0.03 for lag in (1, 2, 4))


@pytest.mark.parametrize(
    ("build", "law", "args"),
    [
        (lambda: random.poisson((N,), 0.7, seed=1), "poisson", (0.7,)),
        (lambda: random.poisson((N,), 30.0, seed=1), "poisson", (30.0,)),
        (lambda: random.binomial((N,), 10, 0.3, seed=1), "binom", (10, 0.3)),
        (lambda: random.binomial((N,), 100, 0.8, seed=1), "binom", (100, 0.8)),
        (lambda: random.geometric((N,), 0.3, seed=1), "geom", (0.3,)),
        (lambda: random.integers(0, 7, (N,), seed=1), "randint", (0, 7)),
        (lambda: random.multinomial(10, [1, 2, 0, 2, 5], (N,), seed=1)[:, 3], "binom", (10, 0.2)),
        (lambda: random.multinomial(10, [0.5, 0.5], (N,), seed=1)[:, 0], "binom", (10, 0.5)),
    ],
)
def test_whole_numbers_are_distributed_as_scipys(build, law, args):
    stats = pytest.importorskip("scipy.stats")
    with Graph():
        y = evaluate(build())
    known = getattr(stats, law)(*args)
    values = np.arange(known.ppf(1e-3), known.ppf(1 - 1e-3) + 1)
    seen, wanted = np.array([(y == v).sum() for v in values]), N * known.pmf(values)
    chance = stats.chi2(len(values) - 1).sf(((seen - wanted) ** 2 / wanted).sum())
    assert chance > 1e-4


@pytest.mark.parametrize(
    "build",
    [
        lambda a: random.weibull((3, 4), a, seed=1),
        lambda a: random.pareto((3, 4), a, 2.0, seed=1),
        lambda a: random.truncated_normal((3, 4), -a, 2.0 * a, seed=1),
        lambda a: random.lognormal((3, 4), a, 0.1 * a, seed=1),
        lambda a: random.triangular((3, 4), -a, 0.0, a, seed=1),
        lambda a: random.laplace((3, 4), a, a, seed=1),
    ],
)
def test_gradients_are_those_of_the_path(build):
    value, step = np.array([1.3, 2.0, 2.5, 3.0]), 1e-6
    weights = np.cos(np.arange(12.0)).reshape(3, 4)
    with Graph():
        a = placeholder((4,))
        y = build(a)
        run = compile(a, [y, gradients(y, a, weights)])
    moved = [(run(value + d)[0], run(value - d)[0]) for d in step * np.eye(4)]
    slopes = [((right - left) * weights).sum() / (2 * step) for right, left in moved]
    np.testing.assert_allclose(run(value)[1], slopes, rtol=1e-6)


@pytest.mark.parametrize(
    ("build", "slope"),
    [
        (lambda a: random.gamma((N,), a, 3.0, seed=1), 3.0),
        (lambda a: random.chisquare((N,), a, seed=1), 1.0),
        (lambda a: gg.square(random.generalized_normal((N,), a, seed=1)), -0.0581),
        (lambda a: random.beta((N,), a, 2.0, seed=1), 2 / 25),
        (lambda a: random.dirichlet(gg.stack([a, 2.0]), (N,), seed=1)[:, 0], 2 / 25),
        (lambda a: random.f((N,), 3.0, 3.0 * a, seed=1), -6 / 49),
        (lambda a: gg.abs(random.student_t((N,), a, seed=1)), -0.1546),
    ],
)
def test_the_mean_of_implicit_gradients_is_that_of_the_mean(build, slope):
    pytest.importorskip("scipy")
    with Graph():
        a = placeholder(())
        found = evaluate(gradients(gg.mean(build(a)), a), {a: 3.0})
    assert found == pytest.approx(slope, rel=0.08)


def test_wald_numbers_keep_their_rank_to_second_order():
    stats = pytest.importorskip("scipy.stats")
    with Graph():
        p = placeholder((2,))
        ys = [random.wald((), p[0], p[1], seed=k) for k in range(4)]
        slopes = [gradients(y, p) for y in ys]
        curves = [[gradients(d, p)[i] for i, d in enumerate(gg.unstack(dp))] for dp in slopes]
        f = compile(p, [gg.stack(ys), gg.stack(slopes), gg.stack([gg.stack(c) for c in curves])])
    point = np.array([2.0, 5.0])
    found, slope, curve = f(point)
    rank = stats.invgauss.cdf(found, 2 / 5, 0, 5)

    def moved(step):
        m, s = point + step
        return stats.invgauss.ppf(rank, m / s, 0, s)

    for i, h in enumerate(np.eye(2) * 1e-2):
        first = (moved(h / 100) - moved(-h / 100)) / 2e-4
        second = (moved(h) - 2 * found + moved(-h)) / 1e-4
        np.testing.assert_allclose(slope[:, i], first, rtol=1e-6)
        np.testing.assert_allclose(curve[:, i], second, rtol=1e-3)


def test_multinomial_numbers_add_up_and_say_what_is_none():
    with Graph():
        p = placeholder((None, 3))
        rows = random.multinomial([5, 7], p, seed=1)
        ill = [(3, [0.0, 0.0]), (3, [2.0, -1.0]), (2.0**54, [0.5, 0.5]), (3, [np.nan, 1.0])]
        none = [random.multinomial(n, q, seed=1) for n, q in ill]
        found, one = evaluate([rows, random.multinomial(3, [1.0], seed=1)], {p: np.ones((2, 3))})
        for y in evaluate(none):
            np.testing.assert_array_equal(y, [-1, -1])
        with pytest.raises(ShapeError, match="last axis"):
            random.multinomial(3, placeholder((None,)), seed=1)
    np.testing.assert_array_equal(found.sum(-1), [5, 7])
    np.testing.assert_array_equal(one, [3])
    assert found.shape == (2, 3)


def test_slopes_of_gamma_numbers_keep_the_rank():
    special = pytest.importorskip("scipy.special")
    a = np.array([0.1, 0.5, 1.0, 3.0, 30.0, 1000.0])[:, None]
    rank, step = np.array([0.02, 0.3, 0.6, 0.99]), 1e-5
    y, more, less = (np.log(special.gammaincinv(a * s, rank)) for s in (1, 1 + step, 1 - step))
    with Graph():
        found = evaluate(
            apply(LogGammaSlope(), *map(constant, (a + 0 * y, y, special.digamma(a + 0 * y))))
        )
    np.testing.assert_allclose(found, (more - less) / (2 * step * a), rtol=1e-6)


def test_a_second_derivative_of_a_concentration_is_an_error():
    with Graph():
        a = placeholder(())
        dy = gradients(random.gamma((), a, seed=1), a)
        with pytest.raises(GradientError, match="no further derivative"):
            gradients(dy, a)


def test_choice_shuffle_and_categorical():
    with Graph():
        x = constant(np.arange(12.0).reshape(4, 3))
        some = evaluate(random.choice(x, (3,), False, axis=0, seed=1))
        p = evaluate(random.choice(3, (N,), p=[0.0, 1.0, 3.0], seed=1))
        none = evaluate(random.choice(3, (2,), False, [0.0, 1.0, 3.0], seed=1))
        mixed = evaluate(random.shuffle(x, 1, seed=4))
        drawn = evaluate(random.categorical(np.log(np.tile([0.2, 0.8], (N, 1))), seed=1))
        with pytest.raises(ValueError, match="without replacement"):
            random.choice(3, (4,), False, seed=1)
    assert len({tuple(row) for row in some}) == 3
    np.testing.assert_allclose(np.bincount(p, minlength=3) / N, [0, 0.25, 0.75], atol=0.02)
    assert sorted(none) == [1, 2]
    np.testing.assert_array_equal(np.sort(mixed, 1), np.arange(12.0).reshape(4, 3))
    assert abs(drawn.mean() - 0.8) < 0.02


def test_parameters_out_of_range_end_and_are_seen():
    with Graph():
        a = np.array([np.nan, -1.0, 0.0, np.inf])
        g = evaluate(random.gamma((4,), a, seed=1))
        k = evaluate(random.poisson((3,), [np.nan, -1.0, np.inf], seed=1))
        b = evaluate(random.binomial((3,), [3.0, -1.0, np.nan], [2.0, 0.5, 0.5], seed=1))
    np.testing.assert_array_equal(g, [np.nan, np.nan, 0.0, np.inf])
    assert k.tolist() == b.tolist() == [-1, -1, -1]


# --- without a seed ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_seed_every_run_is_new_and_one_within(backend):
    with Graph() as g:
        x = placeholder((4,))
        m = random.normal((4,))
        y = x * m
        run = compile(x, [m, y, gradients(y, x), random.normal((4,))], backend=backend)
        first, second = run(np.ones(4)), run(np.ones(4))
    for m, y, dx, other in (first, second):
        np.testing.assert_array_equal(m, y)
        np.testing.assert_array_equal(m, dx)
        assert (m != other).all()
    assert (first[0] != second[0]).all()
    assert g.state.runs == 2


def test_runs_are_counted_by_the_state_and_saved_with_it():
    with Graph() as g:
        u = random.uniform((3,))
        run, states = compile([], u), [State(), State()]
        a, b = (compile([], u, state=s) for s in states)
        np.testing.assert_array_equal(a(), run())
        saved = pickle.loads(pickle.dumps((g, states[0])))
        following = a()
        np.testing.assert_array_equal(saved[0].state.runs, 1)
        np.testing.assert_array_equal(compile([], u, state=saved[1])(), following)
        np.testing.assert_array_equal(compile([], u, state=states[0].copy())(), a())
        states[0].reset()
        np.testing.assert_array_equal(a(), b())


def test_copies_draw_the_same_and_other_seeds_others():
    def drawn(**kwargs):
        with Graph(**kwargs):
            return evaluate(random.uniform((3,)))

    with Graph(seed=3) as g:
        u = random.uniform((3,), seed=None)
        twin = g.copy()
        value = evaluate(u)
    with twin:
        np.testing.assert_array_equal(evaluate(twin.nodes[u.node.index].outputs[0]), value)
        assert (evaluate(random.uniform((3,))) != value).all()
    np.testing.assert_array_equal(drawn(seed=3), value)
    assert (drawn() != value).all()
    with Graph():
        random.seed(3)
        np.testing.assert_array_equal(evaluate(random.uniform((3,))), value)


def test_a_run_that_fails_is_not_counted():
    with Graph() as g:
        x = placeholder((), "int64")
        u = random.uniform((3,))
        run = compile(x, [u, take(constant([1.0, 2.0]), x)])
        a = run(0)[0]
        with pytest.raises(IndexError):
            run(5)
        assert g.state.runs == 1
        b = run(0)[0]
    assert (a != b).all()


def test_a_checkpoint_draws_the_same_again():
    with Graph():
        x = placeholder((4,))
        seen = []

        def noisy(x):
            seen.append(random.normal((4,)))
            return x * x * seen[0]

        y = gg.rules.checkpoint(noisy)(x)
        m, dx = compile(x, [seen[0], gradients(y, x)])(np.ones(4))
    np.testing.assert_allclose(dx, 2 * m)


def test_a_region_with_a_draw_has_no_more_inputs():
    with Graph():
        x = placeholder((4,))
        with gg.override_gradient(lambda site, dy: 3 * dy):
            y = x * random.normal((4,))
        assert evaluate(gradients(y, x), {x: np.ones(4)}).tolist() == [3.0] * 4


@pytest.mark.parametrize("nested", [False, True])
def test_under_vmap_every_example_has_numbers_of_its_own(nested):
    with Graph():

        def one(r):
            return r + random.normal((2,))

        each = gg.vmap(one) if not nested else gg.vmap(gg.vmap(one))
        shape = (3, 2, 2) if nested else (3, 2)
        found = evaluate(each(constant(np.zeros(shape))))
        same = evaluate(
            gg.vmap(lambda r: r + random.normal((2,), seed=1))(constant(np.zeros((3, 2))))
        )
    assert len(set(found.ravel())) == found.size
    assert len(set(same.ravel())) == 2


def test_under_vmap_the_choice_of_a_branch_that_draws_is_of_each():
    with Graph():
        p = placeholder((), "bool")

        def one(r):
            return r + gg.cond(p, lambda: random.normal(()), lambda: random.uniform(()))

        y = gg.vmap(one)(constant(np.zeros(5)))
        values = compile(p, y)(True)
    assert len(set(values)) == 5


@pytest.mark.parametrize("inner", [lambda: random.normal(()), None])
def test_in_a_loop_a_draw_needs_a_seed(inner):
    with Graph():
        p = placeholder((), "bool")
        draw = inner or (lambda: gg.cond(p, lambda: random.normal(()), lambda: random.normal(())))
        with pytest.raises(StateError, match="fold_in"):
            gg.scan(lambda c, x: (c + draw(), c), constant(0.0), constant(np.zeros(3)))
        steps = constant(np.arange(3))

        def walk(c, i):
            c = c + random.normal((), seed=random.fold_in(7, i))
            return c, c

        _, path = gg.scan(walk, constant(0.0), steps)
        moved = np.diff(evaluate(path))
    assert len(set(moved)) == 2


def test_in_a_branch_and_in_debugging():
    with Graph() as g:
        p = placeholder((), "bool")
        y = gg.cond(p, lambda: random.normal((2,)), lambda: random.uniform((2,)))
        run = compile(p, y)
        shown = gg.debug.values(y, {p: True}).by_tensor[y]
        a, b = run(True), run(True)
    np.testing.assert_array_equal(shown, a)
    assert (a != b).all()
    assert g.state.runs == 2


def test_jax_traces_it_without_a_host_callback():
    jax = pytest.importorskip("jax")
    with Graph():
        key = placeholder((), "int64")
        ys = [
            random.normal((5,), seed=key),
            random.permutation(5, seed=key),
            random.poisson((5,), 20.0, seed=key),
        ]
    kernels = load_backend("jax").kernels
    run = one_call_per_node(Program([key], ys), kernels)
    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(run)(np.int64(7)))
    assert "callback" not in text
