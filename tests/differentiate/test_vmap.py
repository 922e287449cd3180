"""S27: what stands under vmap is what stands there for every example, rules and choices too."""

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from .helpers import calls_of

X = np.array([[0.4, -0.7, 1.1], [-0.2, 0.9, 0.5], [1.0, 2.0, -3.5]])
W = 1.3
WEIGHTS = np.cos(np.arange(9.0)).reshape(3, 3)


def batch(f, xs, w):
    return gg.vmap(f, (0, None))(xs, w)


def one_by_one(f, xs, w):
    return gg.stack([f(xs[i], w) for i in range(xs.shape[0])])


def answers(f, over, examples, order, forward):
    """Values, gradients by the examples and by what they share, and tangents."""
    count = len(examples)
    with gg.Graph():
        xs, w = gg.placeholder(examples.shape), gg.placeholder(())
        ys = over(f, xs, w)
        found = [ys]
        rows = np.arange(1.0, count + 1).reshape((count,) + (1,) * (ys.ndim - 1))
        y = gg.sum(ys * ys * rows)
        for _ in range(order):
            dx, dw = gg.gradients(y, [xs, w], unconnected="zero")
            found += [dx, dw]
            y = gg.sum(dx * WEIGHTS.ravel()[: examples.size].reshape(examples.shape)) + 0.7 * dw
        if forward:
            found.append(gg.jvp(ys, [xs, w]))
        return gg.compile([xs, w], found)(examples, W)


def check(f, examples=X, order=2, forward=True):
    found = answers(f, batch, examples, order, forward)
    for a, b in zip(found, answers(f, one_by_one, examples, order, forward), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# --- choices -------------------------------------------------------------------------------------


def positive(x):
    return gg.sum(x) > 0


CHOICES = {
    "each its own": lambda x, w: gg.cond(positive(x), lambda: gg.sin(x) * w, lambda: x * x),
    "all the first": lambda x, w: gg.cond(w > 0, lambda: gg.sin(x) * w, lambda: x * x),
    "all the second": lambda x, w: gg.cond(w < 0, lambda: gg.sin(x) * w, lambda: x * x),
    "a constant": lambda x, w: gg.cond(positive(x), lambda: gg.sin(x) * w, lambda: np.ones(3)),
    "shared": lambda x, w: gg.cond(positive(x), lambda: w * np.ones(3), lambda: np.ones(3)),
    "one for all or each": lambda x, w: gg.cond(w > 0, lambda: w * np.ones(3), lambda: x),
    "a choice in a choice": lambda x, w: gg.cond(
        positive(x),
        lambda: gg.cond(x[0] > 0.5, lambda: gg.exp(x), lambda: w * x),
        lambda: gg.cond(w > 0, lambda: x**3, lambda: w * x),
    ),
    "a batch in a choice": lambda x, w: gg.cond(
        positive(x),
        lambda: gg.vmap(lambda e: gg.cond(e > 0.5, lambda: gg.exp(e), lambda: e * w))(x),
        lambda: gg.sin(x),
    ),
    "a gradient in a branch": lambda x, w: gg.cond(
        positive(x), lambda: gg.gradients(gg.sin(x) * w * x, x), lambda: x * w
    ),
    "a gradient of a choice": lambda x, w: gg.gradients(
        gg.cond(positive(x), lambda: gg.sin(x) * w, lambda: x**3), x
    ),
    "several results": lambda x, w: gg.concat(
        gg.cond(positive(x), lambda: [x * w, gg.exp(x)], lambda: [gg.exp(x), x]), 0
    ),
    "random numbers": lambda x, w: gg.cond(
        positive(x), lambda: x * gg.random.uniform((3,), seed=3), lambda: w * x
    ),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_S27_a_choice_under_vmap_is_that_of_every_example(choice):
    check(CHOICES[choice])


def test_S27_a_choice_by_integers_that_belong_to_the_example():
    def f(x, i):
        return gg.cond(i > 0, lambda: gg.take(x, i) * 2.0, lambda: x[0])

    with gg.Graph():
        xs, places = gg.placeholder((3, 3)), gg.placeholder((3,), "int64")
        ys = gg.vmap(f)(xs, places)
        dx = gg.gradients(ys, xs)
        found = gg.evaluate([ys, dx], {xs: X, places: np.array([0, 1, 2])})
    np.testing.assert_allclose(found[0], [0.4, 1.8, -7.0])
    np.testing.assert_allclose(found[1], np.diag([1.0, 2.0, 2.0]))


AT_THE_EDGE = {
    "log": lambda x, w: gg.cond(x > 0, lambda: gg.log(x) * w, lambda: x * w),
    "sqrt": lambda x, w: gg.cond(x > 0, lambda: gg.sqrt(x * w), lambda: 0.0 * x),
    "divide": lambda x, w: gg.cond(gg.equal(x, 0.0), lambda: w * 1.0, lambda: w / x),
    "shared": lambda x, w: gg.cond(x > 0, lambda: gg.sqrt(w - W + x), lambda: w * x),
    "in a choice": lambda x, w: gg.cond(
        x > 0, lambda: gg.cond(x > 1.5, lambda: gg.log(x - 1.5), lambda: w * gg.log(x)), lambda: x
    ),
}


@pytest.mark.parametrize("choice", AT_THE_EDGE)
def test_S27_no_nan_comes_back_from_the_branch_that_is_not_chosen(choice):
    check(AT_THE_EDGE[choice], np.array([0.0, 1.0, 2.0, -1.0, 1.5]))


def test_S27_where_lengths_are_known_only_when_run():
    def f(x, w):
        return gg.cond(positive(x), lambda: gg.sin(x) * w, lambda: w)

    known, unknown = (3, 3), ("N", None)
    found = []
    for shape, over in ((unknown, batch), (known, one_by_one)):
        with gg.Graph():
            xs, w = gg.placeholder(shape), gg.placeholder(shape[1:])
            ys = over(f, xs, w)
            first = gg.gradients(ys, [xs, w])
            second = gg.gradients(gg.sum(first[0] ** 2) + gg.sum(first[1]), [xs, w])
            found.append(gg.compile([xs, w], [ys, *first, *second])(X, np.array([1.0, 2.0, 3.0])))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_branches_of_different_shapes_are_an_error():
    def f(x, a, b):
        return gg.cond(x > 0, lambda: a * x, lambda: b * x)

    with gg.Graph():
        xs = gg.placeholder((2,))
        with pytest.raises(gg.ShapeError, match="equal shapes") as error:
            gg.vmap(f, (0, None, None))(xs, np.ones(3), np.ones(1))
        assert "test_vmap.py" in str(error.value)
        a, b = gg.placeholder((None,)), gg.placeholder((None,))
        ys = gg.vmap(f, (0, None, None))(xs, a, b)
        fed = {xs: np.ones(2), a: np.ones(3)}
        assert gg.evaluate(ys, fed | {b: np.ones(3)}).shape == (2, 3)
        with pytest.raises(gg.ExecutionError, match="branches of Cond"):
            gg.evaluate(ys, fed | {b: np.ones(1)})


def test_what_may_have_effects_is_not_run_for_those_who_do_not_choose_it():
    calls = []

    def seen(x):
        calls.append(x)
        return x

    def f(x):
        return gg.py_function(seen, [x], [((), "float64")])

    with gg.Graph():
        xs = gg.placeholder((3,))
        for inner in (False, True):

            def branch(x, inner=inner):
                return gg.cond(x > 2, lambda: f(x), lambda: x) if inner else f(x)

            with pytest.raises(gg.GraphError, match="PyFunction, which may have effects") as error:
                gg.vmap(lambda x, b=branch: gg.cond(x > 0, lambda: b(x), lambda: x))(xs)
            assert str(error.value).count("test_vmap.py") == 2
        chosen = gg.placeholder((), "bool")
        ys = gg.vmap(lambda x: gg.cond(chosen, lambda: f(x), lambda: 2.0 * x))(xs)
        assert list(gg.evaluate(ys, {xs: X[0], chosen: False})) == list(2 * X[0])
        assert not calls
        assert list(gg.evaluate(ys, {xs: X[0], chosen: True})) == list(X[0])
        assert len(calls) == 3


# --- rules in choices, and around them ---------------------------------------------------------


def squared(site, dy):
    return dy * dy


def affine(site, dy):
    return dy + 1.0


def marked(rule, f):
    with gg.override_gradient(rule):
        return f()


def with_a_closure(x, w):
    def then():
        k = gg.cos(x) * w
        return marked(lambda site, dy: dy * k, lambda: gg.exp(x))

    return gg.cond(positive(x), then, lambda: x * w)


def with_a_map(x, w):
    def other():
        with gg.gradient_override_map({"Exp": lambda site, dy: 3.0 * dy * site.inputs[0]}):
            return gg.exp(x) * w

    return gg.cond(positive(x), lambda: x * w, other)


def default_times(k):
    return lambda site, *dys: [d if d is gg.NO_GRAD else k * d for d in site.default(*dys)]


def squared_default(site, *dys):
    return [d if d is gg.NO_GRAD else d * d for d in site.default(*dys)]


def choice(x, w, pred):
    return gg.cond(pred, lambda: gg.sin(x) * w, lambda: x * w * w)


def stamped_choice(x, w):
    with gg.gradient_override_map({"Cond": squared_default}):
        return choice(x, w, positive(x))


RULES = {
    "not linear": lambda x, w: gg.cond(
        positive(x), lambda: marked(squared, lambda: gg.exp(x)) * w, lambda: x
    ),
    "called with zeros": lambda x, w: gg.cond(
        positive(x), lambda: marked(affine, lambda: gg.exp(x)), lambda: w * x
    ),
    "a closure": with_a_closure,
    "a map": with_a_map,
    "around": lambda x, w: marked(default_times(2.0), lambda: choice(x, w, positive(x))),
    "around, all alike": lambda x, w: marked(default_times(2.0), lambda: choice(x, w, w > 0)),
    "around, not linear": lambda x, w: marked(squared_default, lambda: choice(x, w, positive(x))),
    "on the choice itself": stamped_choice,
}


@pytest.mark.parametrize("rule", RULES)
def test_S27_rules_and_choices_under_vmap(rule):
    order = 1 if rule == "not linear" else 2  # at order 2 cond() itself calls it twice: S15 below
    check(RULES[rule], order=order, forward=False)


def test_S15_under_vmap_what_arrives_at_a_rule_in_a_branch_is_added_first():
    """As if there were no choice, although it is not linear and is asked for second order."""

    def branch(x, w):
        return marked(squared, lambda: gg.exp(x)) * w

    def chosen(x, w):
        return gg.cond(positive(x) | True, lambda: branch(x, w), lambda: x)

    found = answers(chosen, batch, X, 2, False)
    for a, b in zip(found, answers(branch, one_by_one, X, 2, False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_S27_rules_that_are_linear_have_tangents_there_too():
    for name in ("a closure", "around", "around, all alike"):
        check(RULES[name], order=1, forward=True)


def test_S27_a_batch_of_choices_travels():
    def branch(x):
        return marked(lambda site, dy: dy * dy * site.inputs[0], lambda: gg.exp(x))

    with gg.Graph() as g:
        xs = gg.placeholder((3,), name="xs")
        ys = gg.vmap(lambda x: gg.cond(x > 0.5, lambda: branch(x), lambda: x))(xs)
        gg.identity(ys, name="ys")
    with gg.Graph() as into:
        gg.import_graph(g)
    for new in (g, g.copy(), pickle.loads(pickle.dumps(g)), into):
        with new:
            xs, ys = new.tensor("xs:0"), new.tensor("ys:0")
            first = gg.gradients(ys, xs)
            found = gg.evaluate([first, gg.gradients(first, xs)], {xs: np.array([0.1, 0.7, 2.0])})
        np.testing.assert_allclose(found, [[1.0, 0.7, 2.0], [0.0, 1.0, 1.0]])


# --- what is the same for all examples -----------------------------------------------------------


def test_S27_an_output_that_all_examples_share_gets_a_gradient_from_each():
    """p does not depend on the example, but the rule is that of each example."""

    def f(x, w):
        with gg.override_gradient(lambda site, dp, dq: (dq * w, 2.0 * dp + dq * x)) as region:
            p, q = 2.0 * w, x * w
            region.declare(outputs=[p, q])
        return p + q

    check(f, np.array([1.0, 2.0, 3.0]))

    def custom(x, w):
        @gg.custom_gradient
        def both(x, w):
            return (2.0 * w, x * w), lambda dp, dq: (dq * dq, dp * dp * x)

        p, q = both(x, w)
        return p * x + q

    check(custom, np.array([1.0, 2.0, 3.0]), forward=False)

    def in_a_branch(x, w):
        with gg.override_gradient(lambda site, *dys: [(dys[0] + dys[1]) * site.outputs[0]] * 2):
            gg.tanh(w)
            return x * 1.0

    def chosen(x, w):
        return gg.cond(w > 0, lambda: in_a_branch(x, w), lambda: x)

    check(chosen, np.array([1.0, 2.0, 3.0]), forward=False)


def test_a_shared_site_whose_rule_reads_the_example_is_an_error():
    with gg.Graph():
        xs, w = gg.placeholder((3,)), gg.placeholder(())

        def f(x):
            return x * marked(lambda site, dy: dy * x, lambda: gg.exp(w))

        ys = gg.vmap(f)(xs)
        with pytest.raises(gg.GradientError, match="one site for all of them") as error:
            gg.gradients(ys, w)
        assert "test_vmap.py" in str(error.value)


def test_S09_what_a_function_or_a_branch_returns_is_read_outside():
    """Although something inside of the region reads it too."""

    def f(x, w):
        with gg.override_gradient(lambda site, dy, dz: 3.0 * dy + dz * w) as region:
            y = gg.exp(x)
            z = gg.sin(y)
        assert region.settled is None
        return y, z

    def both(x, w):
        y, z = gg.cond(positive(x), lambda: f(x, w), lambda: (x, x))
        return y + 2.0 * z

    check(lambda x, w: gg.sum(gg.concat(f(x, w), 0)))
    check(both)
    with gg.Graph():
        xs = gg.placeholder((3,))
        ys, _ = gg.vmap(lambda x: f(x, 1.0))(xs)
        assert list(gg.evaluate(gg.gradients(ys, xs), {xs: X[0]})) == [3.0, 3.0, 3.0]


# --- marks ---------------------------------------------------------------------------------------


def test_S27_maps_around_vmap_stamp_once_and_not_what_gradients_built():
    def f(x):
        with gg.gradient_override_map({"Multiply": default_times(10.0)}):
            y = gg.sin(x) * x
        return gg.gradients(y, x)

    x, seconds = X[0], []
    for over in (lambda f, xs: gg.vmap(f)(xs), lambda f, xs: gg.stack([f(x) for x in xs])):
        with gg.Graph():
            xs = gg.placeholder((3,))
            with gg.gradient_override_map({"Multiply": default_times(100.0), "Sin": "Identity"}):
                ys = over(f, xs)
            first, second = gg.evaluate([ys, gg.gradients(ys, xs)], {xs: x})
        np.testing.assert_allclose(first, 10.0 * (x + np.sin(x)))
        seconds.append(second)
    np.testing.assert_allclose(*seconds)


def test_S27_a_rules_own_jvp_works_per_example():
    rule = gg.Rule(
        squared, "squared", jvp=lambda site, dx: dx / gg.sqrt(gg.sum(gg.square(site.outputs[0])))
    )

    def f(x, w):
        return marked(rule, lambda: gg.exp(x) * W)

    with gg.Graph():
        xs, w = gg.placeholder((3, 3)), gg.constant(W)
        tangents = [gg.jvp(over(f, xs, w), xs) for over in (batch, one_by_one)]
        seconds = [gg.gradients(t, xs) for t in tangents]
        a, b, c, d = gg.evaluate([*tangents, *seconds], {xs: X})
    np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(a[:, 0], 1.0 / np.linalg.norm(np.exp(X) * W, axis=1))
    np.testing.assert_allclose(c, d)


def test_S27_what_is_recomputed_is_recomputed_for_the_batch():
    with gg.Graph() as g:
        xs = gg.placeholder((3, 3))
        for f in (gg.sin, rules.checkpoint(lambda x: gg.sin(gg.exp(x)))):
            ys = gg.vmap(f)(xs)
            dx = gg.gradients(ys, xs)
        assert "After" in {n.type for n in g.nodes}
        assert "PerExample" not in {n.type for n in g.nodes}
        np.testing.assert_allclose(gg.evaluate(dx, {xs: X}), np.cos(np.exp(X)) * np.exp(X))


def test_a_batch_costs_as_many_calls_as_one_example():
    """Batches of choices do not grow with the number of examples."""

    def cost(count):
        with gg.Graph():
            xs = gg.placeholder((count,))
            f = gg.vmap(lambda x: gg.cond(x > 0, lambda: gg.log(x), lambda: x))
            return calls_of(lambda: gg.gradients(f(xs), xs))

    assert cost(1000) < 1.1 * cost(10)
