"""S27: what stands under vmap is what stands there for every example, rules and choices too."""

import contextvars
import pickle
from functools import partial

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules
from graphgrad.differentiate.vmap import batcher
from graphgrad.ir.verify import verify_graph
from graphgrad.regions.boundary import boundary_of, contents_of, scan

from .helpers import calls_of, default

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


def in_a_region(x, y):
    return marked(default_times(2.0), lambda: gg.gradients(gg.sum(y), x) * 1.0 + y)


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
    "a gradient of a choice in a region": lambda x, w: in_a_region(
        x, gg.cond(positive(x), lambda: gg.sin(x) * w, lambda: x**3)
    ),
    "a result that all examples share": lambda x, w: gg.add(
        *gg.cond(w > 0, lambda: [x * w, w * np.ones(3)], lambda: [x, np.ones(3)])
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


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_branches_of_different_shapes_are_an_error(dtype):
    def f(x, a, b):
        y = x if dtype == "float64" else 2  # all examples share what the branches return
        return gg.cond(x > 0, lambda: a * y, lambda: b * y)

    with gg.Graph():
        xs = gg.placeholder((2,))
        with pytest.raises(gg.ShapeError, match="equal shapes") as error:
            gg.vmap(f, (0, None, None))(xs, np.ones(3, dtype), np.ones(1, dtype))
        assert "test_vmap.py" in str(error.value)
        a, b = gg.placeholder((None,), dtype), gg.placeholder((None,), dtype)
        ys = gg.vmap(f, (0, None, None))(xs, a, b)
        fed = {xs: np.ones(2), a: np.ones(3, dtype)}
        assert gg.evaluate(ys, fed | {b: np.ones(3, dtype)}).shape == (2, 3)
        with pytest.raises(gg.ExecutionError, match="branches of Cond"):
            gg.evaluate(ys, fed | {b: np.ones(1, dtype)})


@pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")
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
            with pytest.raises(gg.GraphError, match=r"end at different runs of While.*PyFunction"):
                gg.vmap(lambda x, b=branch: gg.while_loop(lambda s: s < 9, b, x))(xs)
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


SHARED_SITES = {
    "clips": lambda x, w: x * marked(rules.clip_norm(0.1), lambda: gg.exp(w)),
    "reads the example": lambda x, w: x * marked(lambda site, dy: dy * x, lambda: gg.exp(w)),
    "reads it, linear by its word": lambda x, w: (
        x * marked(gg.Rule(lambda site, dy: dy * x, linear=True), lambda: gg.exp(w))
    ),
    "gives the same to all": lambda x, w: (
        x * marked(lambda site, dy: site.outputs[0], lambda: w * w)
    ),
    "gives a number": lambda x, w: x * marked(lambda site, dy: 0.5, lambda: gg.exp(w)),
    "a stamp": lambda x, w: x * stamped("Exp", squared, lambda: gg.exp(w) * w),
    "a stamp that reads the example": lambda x, w: (
        x * stamped("Exp", lambda site, dy: dy * x, lambda: gg.exp(w) * w)
    ),
    "in another, which is linear": lambda x, w: (
        x * marked(default_times(2.0), lambda: w * marked(squared, lambda: gg.exp(w)))
    ),
    "around another, which is linear": lambda x, w: (
        x * marked(squared_default, lambda: w * marked(default_times(2.0), lambda: gg.exp(w)))
    ),
    "in a chain": lambda x, w: (
        x * marked(squared, lambda: gg.sin(w * marked(squared, lambda: gg.exp(w))))
    ),
    "in a choice": lambda x, w: (
        x * gg.cond(w > 0, lambda: marked(squared, lambda: gg.exp(w)), lambda: w)
    ),
    "in a choice, which is linear": lambda x, w: (
        x * gg.cond(w > 0, lambda: marked(default_times(2.0), lambda: gg.exp(w)), lambda: w)
    ),
    "in a choice, reads the example": lambda x, w: (
        x * gg.cond(w > 0, lambda: marked(lambda site, dy: dy * x, lambda: gg.exp(w)), lambda: w)
    ),
    "in a choice for each, reads the example": lambda x, w: (
        x
        * gg.cond(x > 0, lambda: x * marked(lambda site, dy: dy * x, lambda: gg.exp(w)), lambda: w)
    ),
    "in a loop, reads the example": lambda x, w: gg.scan(
        lambda s, _: (s * marked(lambda site, dy: dy * x, lambda: gg.exp(w)), None), x, length=2
    )[0],
    "reads a choice that is made for each": lambda x, w: (
        x * times_a_choice(w, gg.cond(w > 0, lambda: marked(squared, lambda: gg.exp(w)), lambda: w))
    ),
    "a choice in it": lambda x, w: (
        x * marked(squared_default, lambda: gg.cond(w > 0, lambda: gg.exp(w) * w, lambda: w))
    ),
    "a batch in it": lambda x, w: (
        x * marked(squared_default, lambda: gg.sum(gg.vmap(lambda e: e * w)(gg.stack([w, w * w]))))
    ),
    "a custom gradient": lambda x, w: x * custom_square(w),
    "a custom gradient that reads the example": lambda x, w: (
        x * gg.custom_gradient(lambda w: (gg.exp(w), lambda dy: dy * dy * x))(w)
    ),
    "opened by a rule": lambda x, w: (
        w * marked(lambda site, dy: dy * marked(squared, lambda: gg.exp(w)), lambda: gg.sin(x))
    ),
}


def times_a_choice(w, chosen):
    return marked(lambda site, dy: dy * chosen, lambda: gg.sin(w))


@gg.custom_gradient
def custom_square(w):
    y = gg.exp(w)
    return y * w, lambda dy: dy * dy * y


def stamped(op_type, rule, f):
    with gg.gradient_override_map({op_type: rule}):
        return f()


@pytest.mark.parametrize("site", SHARED_SITES)
def test_S27_a_site_that_all_examples_share_is_called_for_each(site):
    check(SHARED_SITES[site], np.array([1.0, 2.0, -3.0]), forward=False)


@pytest.mark.parametrize("site", SHARED_SITES)
def test_S27_so_it_is_where_the_number_of_examples_is_not_known(site):
    found = []
    for count, over in ((None, batch), (3, one_by_one)):
        with gg.Graph():
            xs, w = gg.placeholder((count,)), gg.placeholder(())
            ys = over(SHARED_SITES[site], xs, w)
            firsts = gg.gradients(gg.sum(ys * ys), [xs, w], unconnected="zero")
            asked = [ys, *firsts, gg.gradients(gg.sum(firsts[0] ** 2) + firsts[1] ** 2, w)]
            found.append(gg.compile([xs, w], asked)(np.array([1.0, 2.0, -3.0]), W))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


@pytest.mark.parametrize("count", [3, None])
def test_S27_a_site_that_is_called_for_each_example_travels(count):
    def f(x, w):
        return x * marked(lambda site, dy: dy * dy * x * w, lambda: gg.exp(w)) * custom_square(w)

    with gg.Graph() as g:
        xs, w = gg.placeholder((count,), name="xs"), gg.placeholder((), name="w")
        gg.identity(gg.sum(gg.vmap(f, (0, None))(xs, w)), name="y")
    verify_graph(g)
    with gg.Graph() as into:
        gg.import_graph(g)
    with gg.Graph() as plain:
        xs, w = gg.placeholder((3,), name="xs"), gg.placeholder((), name="w")
        gg.identity(gg.sum(one_by_one(f, xs, w)), name="y")
    cut = g.subgraph([g.tensor("xs:0"), g.tensor("w:0")], [g.tensor("y:0")])
    found = []
    for new in (plain, g, g.copy(), pickle.loads(pickle.dumps(g)), into, cut, g.copy().copy()):
        with new:
            xs, w, y = (new.tensor(f"{name}:0") for name in ("xs", "w", "y"))
            first = gg.gradients(y, [xs, w])
            second = gg.gradients(gg.sum(first[0] ** 2) + first[1], [xs, w])
            found.append(gg.evaluate([y, *first, *second], {xs: X[0], w: 0.3}))
    for each in found[1:]:
        for a, b in zip(each, found[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_S27_a_shared_site_of_a_linear_rule_stays_one():
    """Its rule is called once, for the sum; what it marks is not made for every example."""
    declared = gg.Rule(lambda site, dy: dy * gg.sign(dy * dy + 1.0), linear=True)
    for rule in ("Identity", lambda site, dy: dy * 1.0, declared):

        def f(x, w, rule=rule):
            return x @ marked(rule, lambda: gg.round(w))

        with gg.Graph() as g:
            xs, w = gg.placeholder((3, 5)), gg.placeholder((5, 4))
            ys = gg.vmap(f, (0, None))(xs, w)
            assert all(t.shape != (3, 5, 4) for n in g.nodes for t in n.outputs)
            feeds = {xs: np.ones((3, 5)), w: np.ones((5, 4))}
            np.testing.assert_allclose(gg.evaluate(gg.gradients(ys, w), feeds), 3.0)


@pytest.mark.parametrize("loop", ["scan", "while"])
def test_S27_a_loop_that_all_examples_share_does_not_part_the_site_around_it(loop):
    """A linear rule marks a step of the loop: nothing of the site differs between examples."""

    def halved_exp(x):
        return stamped("Exp", lambda site, dy: 0.5 * dy, lambda: gg.exp(x))

    def run(v, w):
        if loop == "scan":
            return gg.scan(lambda c, a: (c + halved_exp(a), a), v, w)[0]
        return gg.while_loop(lambda c: c < 9, lambda c: c + halved_exp(c), v)

    def f(x, w):
        with gg.override_gradient(lambda site, *dys: 0.5 * gg.full((3,), sum(dys))) as region:
            y, z = gg.sin(w[0]), gg.identity(run(w[0], w))
            region.declare(outputs=[y, z])
        return x * y

    with gg.Graph():
        xs, w = gg.placeholder((4,)), gg.placeholder((3,))
        dw = gg.gradients(gg.vmap(f, (0, None))(xs, w), w)
        X, W = np.arange(4.0), np.arange(3.0)
        (each,) = [gg.gradients(f(x, w), w) for x in [gg.constant(1.0)]]
        found, once = gg.evaluate([dw, each], {xs: X, w: W})
        np.testing.assert_allclose(found, X.sum() * once)


@pytest.mark.parametrize("mark", [partial(stamped, "Tanh"), marked])
@pytest.mark.parametrize(("inside", "outside"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_S24_a_rule_of_a_batch_that_reads_its_output_is_asked_for_that_at_any_order(
    mark, inside, outside
):
    """Derivatives are taken of each example first, and then of the batch."""

    def rule(site, dy):
        return dy * gg.sin(site.outputs[0])

    def f(x):
        y = mark(rule, lambda: gg.tanh(x))
        for _ in range(inside):
            y = gg.gradients(y * y, x)
        return y

    with gg.Graph():
        y = u = gg.placeholder(())
        for _ in range(inside + outside):  # d/dx is sin(y) d/dy
            u = gg.gradients(u * u, y) * gg.sin(y)
        wanted = gg.evaluate(u, {y: np.tanh(0.37)})
    with gg.Graph():
        xs = gg.placeholder((2,))
        ys = gg.vmap(f)(xs)
        for _ in range(outside):
            ys = gg.gradients(gg.sum(ys * ys), xs)
        np.testing.assert_allclose(gg.evaluate(ys, {xs: [0.37, 0.37]}), [wanted, wanted])


def test_S27_a_rule_that_is_not_linear_any_more_when_it_is_called_is_an_error():
    def f(x, w):
        return x * gg.cond(w > 0, lambda: marked("now", lambda: gg.exp(w)), lambda: w)

    def g(x, w):
        return x * marked("now", lambda: gg.exp(w))

    def h(x, w):
        return x * stamped("Exp", "now", lambda: gg.exp(w))

    for fn in (f, g, h):
        with gg.Graph(), gg.temporary_gradient("now", lambda site, dy: 2.0 * dy):
            xs, w = gg.placeholder((3,)), gg.placeholder(())
            ys = gg.vmap(fn, (0, None))(xs, w)
            with (
                gg.temporary_gradient("now", squared),
                pytest.raises(
                    gg.GradientError, match=r"called for each example: .* multiplies"
                ) as error,
            ):
                gg.gradients(ys, w)
            assert "test_vmap.py" in str(error.value)


def test_S27_what_a_call_chooses_acts_on_the_batch():
    with gg.Graph():
        xs, w = gg.placeholder((3,)), gg.placeholder(())
        ys = gg.vmap(lambda x, w: x * gg.exp(w), (0, None))(xs, w)
        of_batch = gg.gradients(ys, w, overrides={gg.select.op("Exp"): squared})
        assert gg.evaluate(of_batch, {xs: np.array([1.0, 2.0, 3.0]), w: 0.0}) == 36.0


def test_S27_all_examples_may_read_the_batch_itself():
    """Closed over, given once more, or read by a rule: whole, not one example of it."""
    with gg.Graph():
        xs = gg.placeholder((3,))
        for f, axes in (
            (lambda x: x * gg.sum(xs), 0),
            (lambda x: marked(lambda site, dy: dy * gg.sum(xs), lambda: gg.sin(x)), 0),
        ):
            ys = gg.vmap(f, axes)(xs)
            alone = gg.stack([f(xs[i]) for i in range(3)])
            asked = [[y, gg.gradients(y, xs)] for y in (ys, alone)]
            found = gg.evaluate(asked, {xs: X[0]})
            np.testing.assert_allclose(*found)
        ys = gg.vmap(lambda x, every: x * gg.sum(every * every), (0, None))(xs, xs)
        np.testing.assert_allclose(gg.evaluate(ys, {xs: X[0]}), X[0] * np.sum(X[0] ** 2))


def test_what_is_run_in_a_loop_says_so_once(monkeypatch):
    monkeypatch.setattr(batcher, "_LOOPED", set())
    with gg.Graph():
        xs = gg.placeholder((3,))
        with pytest.warns(gg.PerformanceWarning, match="PyFunction has no batching rule") as told:
            ys = gg.vmap(lambda x: gg.py_function(abs, [x], [((), "float64")]))(xs)
        gg.vmap(lambda x: gg.py_function(abs, [x], [((), "float64")]))(xs)
        assert "test_vmap.py" in str(told[0].message)
        assert list(gg.evaluate(ys, {xs: X[0]})) == list(abs(X[0]))


def test_vmap_goes_to_the_graph_of_its_arguments():
    g = gg.Graph()
    with g:
        xs = gg.placeholder((3,))
    fresh = contextvars.Context()  # in which nobody entered a graph
    ys = fresh.run(lambda: gg.vmap(lambda x, y: x * y)(xs, np.ones(3)))
    assert ys.graph is g
    with g:
        for axis in (1, -2):
            with pytest.raises(gg.ShapeError, match="vmap over axis"):
                gg.vmap(gg.sin, axis)(xs)
        with pytest.raises(gg.ShapeError, match="vmap over axis"):
            gg.vmap(gg.sin)(1.0)
        with pytest.raises(gg.ShapeError, match="all None"):
            gg.vmap(gg.sin, None)(xs)


# --- in branches and rules -----------------------------------------------------------------------


def in_a_branch(f):
    """What f gives in a branch that is chosen, on tensors of the graph around it."""

    def chosen(x, w):
        return gg.cond(gg.sum(w) < 9.0, lambda: f(x, w), lambda: gg.sum(x) * w)

    return chosen


VMAP_INSIDE = {
    "of its arguments": lambda x, w: gg.sum(gg.vmap(gg.sin)(gg.stack([x, x]))) * w,
    "of what it captures": lambda x, w: gg.sum(gg.vmap(lambda a: gg.sin(a * w))(x)),
    "shared, captured": lambda x, w: gg.sum(
        gg.vmap(lambda a, b: gg.sin(a) * b, (0, None))(gg.stack([x, x * x]), w)
    ),
    "captured, shared": lambda x, w: gg.sum(
        gg.vmap(lambda a, b: gg.sin(a) * b, (0, None))(x, w * w)
    ),
    "in a vmap": lambda x, w: gg.sum(
        gg.vmap(lambda a: gg.vmap(lambda b: a * w * marked(squared, lambda: gg.sin(b)))(x))(x)
    ),
    "with rules": lambda x, w: gg.sum(
        gg.vmap(
            lambda a: a * marked(squared, lambda: gg.exp(w)) * marked(squared, lambda: gg.exp(a))
        )(x)
    ),
    "in a branch in it": lambda x, w: gg.sum(
        gg.vmap(
            lambda a: gg.cond(w > 0, lambda: gg.sum(gg.vmap(lambda b: a * b * w)(x)), lambda: a)
        )(x)
    ),
}


def unrolled(f, axes=0):
    """What vmap is, one example after the other."""

    def mapped(*args):
        places = [axes] * len(args) if isinstance(axes, int) else axes
        count = next(a.shape[0] for a, p in zip(args, places, strict=True) if p is not None)
        pairs = list(zip(args, places, strict=True))
        rows = [f(*[a if p is None else a[i] for a, p in pairs]) for i in range(count)]
        return gg.stack(rows)

    return mapped


@pytest.mark.parametrize("where", ["a branch", "a rule", "an example"])
@pytest.mark.parametrize("name", VMAP_INSIDE)
def test_S27_vmap_in_a_branch_a_rule_or_an_example(name, where, monkeypatch):
    f = VMAP_INSIDE[name]

    def placed(x, w):
        if where == "a branch":
            return in_a_branch(f)(x, w)
        if where == "a rule":
            return marked(
                lambda site, dy: [dy * f(x, w) * x, dy * f(*site.inputs)], lambda: gg.sum(x) * w
            )
        return gg.sum(gg.vmap(lambda a: f(a * x, w))(x))

    found = []
    for how in (gg.vmap, unrolled):
        monkeypatch.setattr(gg, "vmap", how)
        with gg.Graph():
            x, w = gg.placeholder((3,)), gg.placeholder(())
            y = placed(x, w)
            dx, dw = gg.gradients(y, [x, w])
            asked = [y, dx, dw]
            if name not in ("with rules", "in a vmap"):  # cond() refuses such a rule at that order
                asked += gg.gradients(gg.sum(dx * dx) + dw, [x, w])
            found.append(gg.compile([x, w], asked)(X[0], W))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_S27_what_is_imported_in_a_branch_or_an_example_has_its_gradient():
    with gg.Graph() as h:
        p = gg.placeholder((3,))
        with gg.override_gradient(lambda site, dy: 2.0 * dy):
            y = gg.sin(p)
        loss = gg.sum(y)

    def brought(t):
        return gg.import_graph(h, {p: t})[loss]

    with gg.Graph():
        x = gg.placeholder((3,))
        inside = gg.cond(gg.sum(x) < 9.0, lambda: brought(x), lambda: gg.sum(x))
        ruled = marked(lambda site, dy: dy * brought(x) * x, lambda: gg.exp(x))
        each = gg.vmap(lambda a: brought(a * x) + brought(x))(x)
        alone = [brought(x[i] * x) + brought(x) for i in range(3)]
        found = gg.evaluate([gg.gradients(t, x) for t in (inside, ruled, each, alone)], {x: X[0]})
    np.testing.assert_allclose(found[0], [2.0, 2.0, 2.0])
    np.testing.assert_allclose(found[1], np.sum(np.sin(X[0])) * X[0])
    np.testing.assert_allclose(found[2], found[3])


def test_S26_a_rule_that_cannot_be_called_is_heard_of_when_somebody_differentiates():
    def broken(site, dy):
        raise ValueError("not today")

    with gg.Graph():
        xs, w = gg.placeholder((3,)), gg.placeholder(())
        ys = gg.vmap(lambda x, w: x * marked(broken, lambda: gg.exp(w)), (0, None))(xs, w)
        assert list(gg.evaluate(ys, {xs: np.ones(3), w: 0.0})) == [1.0, 1.0, 1.0]
        with pytest.raises(ValueError, match="not today"):
            gg.gradients(ys, w)


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


def test_S27_a_region_that_a_rule_opens_reads_the_outputs_of_the_batch_from_outside():
    """Its gradient by them is that of the rule, and not of what is inside."""

    def f(x):
        def rule(site, dy):
            with gg.override_gradient(lambda _, d: d * site.outputs[0]):
                return gg.sin(dy)

        with gg.override_gradient(rule):
            y = gg.exp(x)
        return y * x

    x = gg.placeholder((2,))
    found = [[gg.vmap(f)(x)], [gg.stack([f(x[0]), f(x[1])])]]
    for ys in found:
        for _ in range(3):
            ys.append(gg.gradients(gg.sum(ys[-1]), x))
    batched, single = gg.evaluate(found, {x: [0.3, -0.4]})
    np.testing.assert_allclose(batched, single, rtol=1e-12)


def test_S30_a_region_of_a_batch_is_called_by_its_name_before_there_is_such_a_rule():
    def f(x):
        with gg.override_gradient("vmap/later", late=True):
            return gg.sin(x)

    y = gg.vmap(f)(gg.placeholder((2,)))
    (region,) = y.graph.regions
    assert repr(region).startswith("<region 'vmap/later' #0")
    with pytest.raises(gg.UnknownGradientError, match="vmap/later"):
        gg.gradients(gg.sum(y), y.graph.nodes[0].outputs)


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


def test_S27_a_rules_own_jvp_reads_the_example_where_all_share_the_site():
    def f(x, w):
        rule = gg.Rule(lambda site, dy: dy, "plain", jvp=lambda site, dw: dw * x)
        return x * marked(rule, lambda: gg.exp(w))

    with gg.Graph():
        xs, w = gg.constant(X[0]), gg.constant(W)
        tangents = [gg.jvp(over(f, xs, w), w) for over in (batch, one_by_one)]
        for tangent in gg.evaluate(tangents):
            np.testing.assert_allclose(tangent, X[0] ** 2)


def test_what_all_examples_share_is_built_as_it_stands():
    with gg.Graph() as graph:
        w = gg.placeholder(())
        with gg.gradient_override_map({"Exp": lambda site, dy: 2.0 * dy}):
            gg.vmap(lambda x: x * gg.exp(w))(gg.placeholder((3,)))
        (node,) = [n for n in graph.nodes if n.type == "Exp"]
    assert node.stamp is not None
    assert node.region is None


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


@pytest.mark.parametrize("chooses", ["each", "all"])
def test_a_region_of_a_branch_comes_whole_with_what_it_makes_after_the_value_of_the_branch(chooses):
    asked = []

    def rule(site, *dys):
        asked.append(len(site.outputs))
        return [3.0 * dys[0]]

    def branch(x, w):
        with gg.override_gradient(rule):
            y = gg.sin(x)
            gg.cos(x)
        return y

    def f(x, w):
        chosen = gg.sum(x) > 0 if chooses == "each" else w > 0
        return gg.cond(chosen, lambda: branch(x, w), lambda: x * w)

    with gg.Graph():
        xs, w = gg.placeholder(X.shape), gg.placeholder(())
        dx = gg.gradients(batch(f, xs, w), xs)
    found = gg.evaluate(dx, {xs: X, w: np.array(W)})
    picked = X.sum(axis=1, keepdims=True) > 0 if chooses == "each" else np.array(True)
    np.testing.assert_allclose(found, np.where(picked, 3.0, W) * np.ones_like(X))
    assert set(asked) == {2}


def test_in_axes_are_one_for_every_argument():
    with gg.Graph():
        x = gg.placeholder((3,))
        with pytest.raises(gg.ShapeError, match="vmap got 2 arguments and in_axes for 1"):
            gg.vmap(lambda a, b: a * b, (0,))(x, x)


def test_S15_parts_of_a_shared_site_in_a_branch_are_known_in_a_batch_too():
    """The default that the home gives, and the one that the batch gives, reach one site inside."""

    def norm(site, *dys):
        return [d / (1.0 + gg.sqrt(gg.sum(d * d) + 0.1)) for d in site.default(*dys)]

    def f(x, w):
        def then():
            held = []

            def reads(site, *dys):
                total = sum(2.0 * gg.sum(d) for d in dys) * gg.sum(gg.sin(held[0]))
                return [total * np.ones(t.shape) for t in site.inputs]

            with gg.override_gradient(reads):
                with gg.override_gradient(norm):
                    h = w + 2.0 * x
                held.append(h)
                return h * 1.0

        twice = lambda site, *dys: [2.0 * site.default(*dys)[0], gg.DEFAULT]  # noqa: E731
        with gg.override_gradient(twice, inputs=[x, w]):
            return gg.cond(x > 0.0, then, lambda: w * gg.sin(x)) * 1.0

    for batched in (False, True):
        with gg.Graph():
            x, w = gg.placeholder(()), gg.placeholder((2, 2))
            columns = [f(x, w[:, i]) for i in (0, 1)] if not batched else None
            y = gg.vmap(f, in_axes=(None, 1))(x, w) if batched else gg.stack(columns)
            d = gg.gradients(y, [x, w])
            with pytest.raises(gg.GradientError, match="called once for each part and not once"):
                gg.gradients(d, [x, w])


def test_declared_inputs_of_what_vmap_makes_are_known_where_the_graph_was_scanned_meanwhile(
    monkeypatch,
):
    """As another thread that differentiates the same graph does it."""
    batched_outputs = batcher.batched_outputs

    def scanned(*args):
        found = batched_outputs(*args)
        scan(found[0].graph)
        return found

    monkeypatch.setattr(batcher, "batched_outputs", scanned)
    with gg.Graph() as graph:
        x, b = gg.placeholder((2, 3)), gg.placeholder((2,))
        with gg.override_gradient(default), gg.gradient_override_map({"Add": default}):
            y = gg.vmap(lambda row, number: row + number)(x, b)
    around, stamped = graph.regions
    assert boundary_of(stamped).outputs == (y,)
    assert list(contents_of(around).children) == [stamped]
    assert all(stamped in graph.boundaries.declared[t.node] for t in stamped.pinned_inputs)


def test_examples_of_complex_numbers_have_indices_of_their_own():
    xs, indices = np.arange(6.0).reshape(2, 3) * 1j, np.array([[2, 0], [1, 1]])
    found = gg.evaluate(gg.vmap(lambda x, i: x[i])(gg.constant(xs), gg.constant(indices)))
    np.testing.assert_array_equal(found, np.take_along_axis(xs, indices, 1))
