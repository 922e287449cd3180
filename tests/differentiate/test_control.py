"""Rules in the branches of a choice mean there what they mean anywhere."""

import pickle
from functools import partial

import numpy as np
import pytest

import graphgrad as gg

from .helpers import Spy, value, values


def straight(f, x):
    return f()


def in_a_branch(f, x):
    return gg.cond(x > 0.0, f, lambda: gg.stop_gradient(x))


def in_the_other(f, x):
    return gg.cond(x < 0.0, lambda: gg.stop_gradient(x), f)


WAYS = [straight, in_a_branch, in_the_other]


@pytest.mark.parametrize("way", WAYS)
def test_S21_a_rule_speaks_for_inputs_that_the_value_does_not_need(way):
    """Swapped gradients: the gradient of k comes from y, which does not depend on it."""
    x, k = gg.placeholder(()), gg.placeholder(())

    def f():
        with gg.override_gradient(lambda site, dy, dz: (dz + 1.0 * dy, 5.0 * dy)) as region:
            y = gg.exp(x)
            z = gg.sin(k)
            region.declare(outputs=[y, z])
        return y

    y = way(f, x)
    assert values(gg.gradients(y, [x, k]), {x: 1.0, k: 2.0}) == [1, 5]


@pytest.mark.parametrize("way", WAYS)
def test_S28_an_argument_that_the_value_does_not_need(way):
    """A slope given as an argument, which only the gradient reads and has a gradient for."""
    x, slope = gg.placeholder(()), gg.placeholder(())

    @gg.custom_gradient
    def step(x, slope):
        return gg.sign(x), lambda dy: (dy * slope, dy * x)

    y = way(lambda: step(x, slope), x)
    assert values(gg.gradients(y, [x, slope]), {x: 2.0, slope: 3.0}) == [3, 2]
    dx = gg.gradients(y, x)
    assert value(gg.gradients(dx, slope), {x: 2.0, slope: 3.0}) == 1


@pytest.mark.parametrize("way", WAYS)
def test_S10_a_declared_input_that_is_computed_in_the_branch(way):
    x, k = gg.placeholder(()), gg.placeholder(())

    def f():
        h = gg.square(k)
        with gg.override_gradient(lambda site, dy: (dy, 7.0 * dy), inputs=[x, h]):
            return gg.exp(x)

    y = way(f, x)
    assert values(gg.gradients(y, [x, k]), {x: 1.0, k: 3.0}) == [1, 42]


@pytest.mark.parametrize("way", WAYS)
def test_S09_what_a_branch_returns_is_read_outside_of_its_regions(way):
    """Although it is read inside, too."""
    x, rule = gg.placeholder(()), Spy(lambda site, dy, dz: 3.0 * dy + 2.0 * dz)

    def f():
        with gg.override_gradient(rule):
            y = gg.exp(x)
            gg.sin(y)
        return y

    y = way(f, x)
    y = gg.identity(y)  # a reader, where there is no branch
    assert value(gg.gradients(y, x), {x: 1.0}) == 3
    assert rule.calls == 1


# --- a rule that is called for the value of a branch, and again for a derivative of it ----------


def squared(f, x, order):
    """A derivative of f(x) ** 2, which flows to f through its value and its own derivatives."""
    y = gg.square(f)
    for _ in range(order):
        y = gg.gradients(y, x)
    return y


def through(rule, way, order):
    x = gg.placeholder(())

    def f():
        with gg.override_gradient(rule):
            return gg.exp(x)

    return value(squared(way(f, x), x, order), {x: 0.3})


def steeper(site, dy):
    return 3.0 * dy * site.outputs[0]


def quadratic(site, dy):
    return dy * dy * site.outputs[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_S15_a_linear_rule_in_a_branch_at_higher_orders(way, order):
    assert through(steeper, way, order) == pytest.approx(through(steeper, straight, order))


@pytest.mark.parametrize("way", WAYS[1:])
def test_S15_a_rule_in_a_branch_that_is_not_linear(way):
    """At first order it is called once, as anywhere."""
    assert through(quadratic, way, 1) == pytest.approx(through(quadratic, straight, 1))


@pytest.mark.parametrize("way", WAYS[1:])
def test_S15_a_rule_in_a_branch_that_cannot_be_called_once_is_an_error(way):
    with pytest.raises(
        gg.GradientError, match=r"'quadratic' .* multiplies it with itself"
    ) as error:
        through(quadratic, way, 2)
    assert "for each part and not once" in str(error.value)
    assert "Put the override around the cond()" in str(error.value)


@pytest.mark.parametrize("way", WAYS[1:])
def test_S15_the_same_for_a_choice_in_a_choice(way):
    with pytest.raises(gg.GradientError, match="for each part and not once"):
        through(quadratic, lambda f, x: way(lambda: way(f, x), x), 2)


def test_S15_the_same_for_a_stamp_and_for_what_is_declared():
    declared = gg.Rule(quadratic, linear=True)
    refused = gg.Rule(steeper, linear=False)
    x = gg.placeholder(())

    def second(rule):
        with gg.gradient_override_map({"Exp": rule}):
            y = in_a_branch(lambda: gg.exp(x), x)
        return squared(y, x, 2)

    second(declared)
    for rule, why in ((quadratic, "with itself"), (refused, "linear=False")):
        with pytest.raises(gg.GradientError, match=why):
            second(rule)


def test_S15_the_same_where_the_choice_is_differentiated_in_another_body():
    x = gg.placeholder(())

    def f():
        with gg.override_gradient(quadratic):
            return gg.exp(x)

    y = in_a_branch(f, x)
    with pytest.raises(gg.GradientError, match="for each part and not once"):
        gg.cond(x > 1.0, lambda: squared(y, x, 2), lambda: x)


# --- the same under vmap -------------------------------------------------------------------------

POINTS, CHOICES = [0.7, 1.4], [True, True]
PARTS = [("vmap", "all"), ("stack", "all"), ("stack", "each")]


def absolute(site, dy):
    return gg.abs(dy)


def value_and_derivative(rule, how, chosen):
    """Of -2 y + dy/dv for each example: what flows to the site comes through y and dy/dv.

    how     over the examples: "vmap", "stack"
    chosen  "each": a bool for each example; "all": one for all; "plain": there is no choice
    """
    with gg.Graph():
        x, p = gg.placeholder((2,), "float64"), gg.placeholder((2,), "bool")

        def one(v, q):
            def f():
                with gg.override_gradient(rule):
                    t = gg.sin(v)
                return t * t * v

            y = f() if chosen == "plain" else gg.cond(q, f, lambda: v)
            return y * -2.0 + gg.gradients(y, v)

        q = p[0] if chosen == "all" else p
        if how == "vmap":
            z = gg.vmap(one, in_axes=(0, None if chosen == "all" else 0))(x, q)
        else:
            z = gg.stack([one(x[i], q if chosen == "all" else q[i]) for i in range(2)])
        dx = gg.gradients(gg.sum(z), x)
        return values([z, dx], {x: POINTS, p: CHOICES})


@pytest.mark.parametrize("chosen", ["all", "each"])
@pytest.mark.parametrize("how", ["vmap", "stack"])
def test_S15_S27_a_rule_that_is_linear_goes_on_under_vmap(how, chosen):
    z, dx = value_and_derivative(steeper, how, chosen)
    plain_z, plain_dx = value_and_derivative(steeper, "stack", "plain")
    assert z == pytest.approx(plain_z)
    assert dx == pytest.approx(plain_dx)


@pytest.mark.parametrize("rule", [absolute, quadratic])
def test_S15_S27_where_each_example_chooses_under_vmap_a_rule_is_called_once(rule):
    z, dx = value_and_derivative(rule, "vmap", "each")
    plain_z, plain_dx = value_and_derivative(rule, "stack", "plain")
    assert z == pytest.approx(plain_z)
    assert dx == pytest.approx(plain_dx)


@pytest.mark.parametrize("rule", [absolute, quadratic])
@pytest.mark.parametrize(("how", "chosen"), PARTS)
def test_S15_S27_a_rule_that_cannot_be_called_once_is_an_error_under_vmap(how, chosen, rule):
    with pytest.raises(gg.GradientError, match="for each part and not once"):
        value_and_derivative(rule, how, chosen)


@pytest.mark.parametrize("chosen", ["all", "each"])
@pytest.mark.parametrize(
    "put", [gg.override_gradient, lambda r: gg.gradient_override_map({"Exp": r})]
)
def test_S15_S27_the_same_where_a_branch_under_vmap_differentiates_the_choice(chosen, put):
    """The bodies are copied there, and the copies are batched apart from the others."""
    x, p = gg.placeholder((2,)), gg.placeholder((2,), "bool")

    def second(rule):
        def one(v, q):
            def f():
                with put(rule):
                    return gg.exp(v)

            y = gg.cond(q, f, lambda: v)
            return y * -2.0 + gg.cond(q, lambda: gg.gradients(gg.square(y), v), lambda: v)

        q, axes = (p, 0) if chosen == "each" else (p[0], None)
        return gg.gradients(gg.sum(gg.vmap(one, in_axes=(0, axes))(x, q)), x)

    second(steeper)
    with pytest.raises(gg.GradientError, match="for each part and not once"):
        second(quadratic)


@pytest.mark.parametrize("how", ["copy", "pickle", "file", "import", "subgraph"])
@pytest.mark.parametrize("batch", [False, True])
def test_S15_S27_copies_of_a_body_are_known_in_a_copy_of_the_graph(batch, how, tmp_path):
    with gg.Graph() as graph:
        x = gg.placeholder((2,) if batch else (), name="x")

        def one(v):
            def f():
                with gg.override_gradient(quadratic):
                    return gg.exp(v)

            y = in_a_branch(f, v)
            return y * -2.0 + gg.cond(v > 1.0, lambda: gg.gradients(gg.square(y), v), lambda: v)

        z = gg.identity(gg.sum(gg.vmap(one)(x) if batch else one(x)), name="z")
    with gg.Graph() as new:
        if how == "import":
            gg.import_graph(graph)
        elif how == "copy":
            new = graph.copy()
        elif how == "pickle":
            new = pickle.loads(pickle.dumps(graph))
        elif how == "file":
            gg.save(tmp_path / "graph.gg", graph)
            new = gg.load(tmp_path / "graph.gg").graph
        else:
            new = graph.subgraph(x, z)
    with new, pytest.raises(gg.GradientError, match="for each part and not once"):
        gg.gradients(new.tensor("z"), new.tensor("x"))


def test_S15_S27_two_imports_are_not_counted_together():
    x = gg.placeholder(())
    with gg.Graph() as graph:
        v = gg.placeholder((), name="v")

        def f():
            with gg.override_gradient(quadratic):
                return gg.exp(v)

        y = in_a_branch(f, v)
        gg.cond(v > 1.0, lambda: gg.gradients(y, v), lambda: v)
    both = gg.import_graph(graph, {v: x})[y] + gg.import_graph(graph, {v: x})[y]
    once = gg.import_graph(graph, {v: x})[y]
    assert value(gg.gradients(both, x), {x: 0.3}) == 2 * value(gg.gradients(once, x), {x: 0.3})


def test_S15_S27_the_value_of_a_choice_that_no_example_changes():
    """The choice is the same for all examples where its derivative is not."""
    x, k, p = gg.placeholder((2,)), gg.placeholder(()), gg.placeholder((), "bool")

    def first(rule):
        def one(v):
            def f():
                with gg.override_gradient(rule):
                    return gg.exp(k)

            y = gg.cond(p, f, lambda: k)
            return y * -2.0 + gg.gradients(gg.square(y) * v, k)

        return gg.gradients(gg.sum(gg.vmap(one)(x)), k)

    first(steeper)
    with pytest.raises(gg.GradientError, match="for each part and not once"):
        first(quadratic)


@pytest.mark.parametrize("chosen", ["all", "each"])
def test_S15_S27_calls_of_their_own_are_not_counted_together_under_vmap(chosen):
    """Each default of an enclosing region is one, and so is each question of a function."""

    def twice(way):
        def one(v, q):
            def f():
                with gg.override_gradient(quadratic):
                    return gg.exp(v)

            def rule(site, dy):
                both = zip(site.default(dy), site.default(dy), strict=True)
                return [a + b if isinstance(a, gg.Tensor) else a for a, b in both]

            with gg.override_gradient(rule):
                y = gg.sin(way(q, f, lambda: v))
            return gg.gradients(y, v) + gg.gradients(y, v)

        x, p = gg.placeholder((2,)), gg.placeholder((2,), "bool")
        q, axes = (p, 0) if chosen == "each" else (p[0], None)
        z = gg.vmap(one, in_axes=(0, axes))(x, q)
        return value(z, {x: POINTS, p: CHOICES})

    assert twice(gg.cond) == pytest.approx(twice(lambda q, f, g: f()))


def test_S15_around_the_choice_a_rule_is_called_once_at_every_order():
    x = gg.placeholder(())

    def around(rule, way):
        with gg.override_gradient(rule):
            y = way(lambda: gg.exp(x), x)
        return value(squared(y, x, 2), {x: 0.3})

    assert around(quadratic, in_a_branch) == pytest.approx(around(quadratic, straight))


def test_S15_calls_of_their_own_are_not_counted_together():
    """Each default of an enclosing region is one, and so is each gradients() call."""
    x = gg.placeholder(())

    def f():
        with gg.override_gradient(quadratic):
            return gg.exp(x)

    def twice(way):
        with gg.override_gradient(lambda site, dy: site.default(dy)[0] + site.default(dy)[0]):
            y = gg.sin(way(f, x))
        return values([gg.gradients(y, x), gg.gradients(y, x)], {x: 0.3})

    assert twice(in_a_branch) == pytest.approx(twice(straight))


@pytest.mark.parametrize("constant", [False, True])
def test_S16_an_output_without_a_gradient_is_known_as_such_in_a_branch(constant):
    """As outside: a structural zero for a missing one, and no call where all are missing."""

    def rule(site, dp, dq):
        if constant:
            return [5.0] * len(site.inputs)
        return 7.0 * dp if gg.is_zero(dq) else 3.0 * dp + dq

    def block(x):
        with gg.override_gradient(rule):
            p, q = gg.sin(x), gg.cos(x)
        return [p * 1.0, q * 1.0, 2.0 * x]

    with gg.Graph():
        x = gg.placeholder((3,))
        ways = [block(x), gg.cond(gg.sum(x) < 9.0, lambda: block(x), lambda: [x, x, x])]
        for asked in ([0], [0, 1], [2], [0, 2]):
            found = [gg.gradients([way[i] for i in asked], x) for way in ways]
            home, branch = gg.evaluate(found, {x: np.full(3, 0.1)})
            np.testing.assert_array_equal(home, branch)


def test_S27_a_choice_with_a_mark_in_a_batch_that_was_imported():
    def spread(site, *dys):
        return [2.0 * sum(gg.sum(d) for d in dys) * np.ones(x.shape) for x in site.inputs]

    def one(a, b):
        def then():
            with gg.override_gradient(spread):
                return a * 1.0, b * 1.0

        with gg.override_gradient(lambda site, *dys: [2.0 * d for d in site.default(*dys)]):
            u, v = gg.cond(gg.sum(a) > 0.0, then, lambda: (gg.sin(a), gg.sin(b)))
            return u * 1.0, v * 1.0

    found = []
    with gg.Graph() as g:
        a, b = gg.placeholder((2, 2)), gg.placeholder((2,))
        ys = gg.vmap(one, in_axes=(0, None), out_axes=1)(a, b)
    ts = [a, b, *ys]
    with gg.Graph() as h:
        made = gg.import_graph(g)
    for graph, (a, b, *ys) in ((g, ts), (h, [made[t] for t in ts])):
        with graph:
            asked = gg.gradients(ys, [a, b])
            found.append(gg.evaluate(asked, {a: [[0.5, 0.1], [-0.3, -0.2]], b: [0.1, 0.2]}))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def chosen_block(block, x):
    return gg.cond(gg.sum(x) < 9.0, lambda: block(x), lambda: [x, x])


@pytest.mark.parametrize("journey", ["home", "copy", "pickle"])
@pytest.mark.parametrize("how", ["asks", "does not ask", "says linear"])
def test_S15_a_rule_in_a_branch_that_asks_what_is_zero_is_not_called_in_parts(how, journey):
    def rule(site, dp, dq):
        p = site.outputs[0]
        if how != "does not ask" and gg.is_zero(dq):
            return (7.0 if how == "asks" else 3.0) * dp * p
        return 3.0 * dp * p + dq

    def block(x):
        with gg.override_gradient(gg.Rule(rule, "rule", linear=how == "says linear" or None)):
            p, q = gg.sin(x), gg.cos(x)
        return [p * 1.0, q * 1.0]

    found = []
    for within in (False, True):
        with gg.Graph() as g:
            x = gg.placeholder((3,))
            ts = chosen_block(block, x) if within else block(x)
        if journey != "home":
            new = g.copy() if journey == "copy" else pickle.loads(pickle.dumps(g))
            x, *ts = (new.nodes[t.node.index].outputs[t.index] for t in (x, *ts))
        with x.graph:
            p, q = ts
            dx = gg.gradients(gg.sum(p * p), x)
            loss = gg.sum(dx) + gg.sum(q)
            if within and how == "asks":
                with pytest.raises(gg.GradientError, match="it asks which of them are zero"):
                    gg.gradients(loss, x)
                return
            found.append(gg.evaluate(gg.gradients(loss, x), {x: np.full(3, 0.2)}))
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("read", [False, True], ids=["nothing flows", "a zero flows"])
def test_a_rule_in_a_branch_may_ask_for_what_is_zero_in_every_part(read):
    def rule(site, dp, dq):
        return (7.0 if gg.is_zero(dq) else 3.0) * dp * site.outputs[0]

    def block(x):
        with gg.override_gradient(rule):
            p, q = gg.sin(x), gg.cos(x)
        return [p * 1.0 + gg.floor(q) if read else p * 1.0, q * 1.0]

    found = []
    for within in (False, True):
        with gg.Graph():
            x = gg.placeholder((3,))
            p, _ = chosen_block(block, x) if within else block(x)
            loss = gg.sum(gg.gradients(gg.sum(p * p), x)) + gg.sum(p)
            found.append(gg.evaluate(gg.gradients(loss, x), {x: np.full(3, 0.2)}))
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("journey", ["home", "copy", "pickle", "vmap"])
@pytest.mark.parametrize("how", ["asks", "asks in vain", "does not ask", "says linear"])
def test_S15_a_rule_in_a_branch_that_asks_which_partials_are_zero_is_not_called_in_parts(
    how, journey
):
    def rule(site, dp, dq):
        p = site.outputs[0]
        dx, dz, none = site.default(dp, dq)
        asked = none if how == "asks in vain" else dz
        if how != "does not ask" and gg.is_zero(asked):
            return (7.0 if how == "asks" else 1.0) * dx * p, dz, none
        return dx * p, dz, none

    def block(x):
        z, w = 2.0 * x, 3.0 * x
        marked = gg.Rule(rule, "rule", linear=how == "says linear" or None)
        with gg.override_gradient(marked, inputs=[x, z, w]):
            p, q = gg.sin(x), gg.cos(z) + gg.stop_gradient(w)
        return [p * 1.0, q * 1.0]

    found = []
    for within in (False, True):
        f = partial(chosen_block, block) if within else block
        with gg.Graph() as g:
            x = gg.placeholder((1, 3))
            ts = gg.vmap(f)(x) if journey == "vmap" else f(x)
        if journey in ("copy", "pickle"):
            new = g.copy() if journey == "copy" else pickle.loads(pickle.dumps(g))
            x, *ts = (new.nodes[t.node.index].outputs[t.index] for t in (x, *ts))
        with x.graph:
            p, q = ts
            loss = gg.sum(gg.gradients(gg.sum(p * p), x)) + gg.sum(q)
            if within and how == "asks" and journey != "vmap":  # which has chosen both branches
                with pytest.raises(gg.GradientError, match="it asks which partials of its default"):
                    gg.gradients(loss, x)
                return
            found.append(gg.evaluate(gg.gradients(loss, x), {x: np.full((1, 3), 0.2)}))
    np.testing.assert_allclose(*found, rtol=1e-12)


# --- outputs of a choice that get no gradient -----------------------------------------------------


def taken(build, x):
    return gg.cond(gg.sum(x) < 9.0, lambda: build(x), lambda: [x, x])


def at_home(build, x):
    return build(x)


@pytest.mark.parametrize("way", [at_home, taken])
def test_S16_in_a_branch_too_an_output_without_a_gradient_is_a_structural_zero(way):
    def build(x):
        with gg.override_gradient(
            lambda site, dp, dq: 7.0 * dp if gg.is_zero(dq) else 3.0 * dp + dq
        ):
            p, q = gg.sin(x), gg.cos(x)
        return [p * 1.0, q * 1.0]

    with gg.Graph():
        x = gg.placeholder((3,))
        p, q = way(build, x)
        asked = [gg.gradients(gg.sum(p), x), gg.gradients(gg.sum(p + q), x)]
        found = gg.evaluate(asked, {x: np.ones(3)})
    np.testing.assert_array_equal(found, [np.full(3, 7.0), np.full(3, 4.0)])


@pytest.mark.parametrize("way", [at_home, taken])
def test_S16_in_a_branch_too_a_rule_of_which_no_output_has_a_gradient_is_not_called(way):
    def build(x):
        with gg.override_gradient(lambda site, dy: dy + 100.0):
            q = gg.sin(x)
        return [gg.cos(x), q * 1.0]

    with gg.Graph():
        x = gg.placeholder((3,))
        p, q = way(build, x)
        asked = [gg.gradients(gg.sum(p), x), gg.gradients(gg.sum(q), x)]
        found = gg.evaluate(asked, {x: np.zeros(3)})
    np.testing.assert_array_equal(found, [np.zeros(3), np.full(3, 101.0)])


TREES = [
    ({"a": 1.0, "b": 2.0}, {"b": 20.0, "z": 10.0}),
    ([1.0, (2.0, 3.0)], [(20.0, 10.0), 30.0]),
    (1.0, (2.0,)),
]


@pytest.mark.parametrize("trees", TREES, ids=["keys", "nesting", "a tuple of one"])
def test_branches_of_other_structures_are_not_taken_for_one_another(trees):
    x = gg.placeholder(())
    then, other = (lambda: trees[0]), (lambda: trees[1])
    with pytest.raises(gg.ShapeError, match="same structure"):
        gg.cond(x > 0.0, then, other)
    with pytest.raises(gg.ShapeError, match="same structure"):
        gg.switch(gg.cast(x, "int64"), [then, then, other])


def test_the_order_of_keys_and_lists_for_tuples_make_no_other_structure():
    found = gg.cond(
        gg.constant(False),
        lambda: {"a": 1.0, "b": [2.0, 3.0]},
        lambda: {"b": (20.0, 30.0), "a": 10.0},
    )
    assert gg.evaluate(found) == {"a": 10.0, "b": [20.0, 30.0]}


BODIES = {
    "scan": lambda keep, x: gg.scan(lambda c, _: (keep(c) * x, None), x, length=2)[0],
    "while": lambda keep, x: gg.while_loop(lambda c: c < 9.0, lambda c: keep(c) * x, x),
    "cond": lambda keep, x: gg.cond(x > 0.0, lambda: keep(x * x) * x, lambda: x),
}
ASKED = {
    "by": lambda y, x, inner: gg.gradients(y, inner),
    "of": lambda y, x, inner: gg.gradients(inner, x),
    "of both": lambda y, x, inner: gg.gradients([y, inner], x),
    "up to": lambda y, x, inner: gg.gradients(y, x, stop_gradients=inner),
    "forward": lambda y, x, inner: gg.jvp(y, inner),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("way", ASKED)
def test_a_tensor_that_leaked_out_of_a_body_has_no_gradient_and_says_so(kind, way):
    inner = []
    x = gg.placeholder(())
    y = BODIES[kind](lambda t: inner.append(t) or t, x)
    with pytest.raises(gg.GraphError, match="has a value only while that runs"):
        ASKED[way](y, x, inner[0])


@pytest.mark.parametrize(
    "stop", [gg.stop_gradient, lambda x: gg.cast(gg.cast(x, "int64"), "float64")]
)
def test_what_no_branch_lets_through_has_no_gradient(stop):
    x, y = gg.placeholder(()), gg.placeholder(())
    z = gg.cond(y > 0.0, lambda: stop(x) * y, lambda: stop(x) + y)
    assert gg.gradients(z, x) is None
    assert gg.gradients(z, [x, y])[0] is None


def test_a_branch_that_does_not_read_a_tensor_of_unknown_length_has_a_zero_of_its_length():
    x, y, p = gg.placeholder((None,)), gg.placeholder((None,)), gg.placeholder((), "bool")
    z = gg.cond(p, lambda: gg.sum(x * x), lambda: gg.sum(gg.sin(y)))
    f = gg.compile([x, y, p], gg.gradients(z, [x, y]), backend="numpy")
    dx, dy = f(np.ones(2), np.zeros(3), True)
    assert (dx.tolist(), dy.tolist()) == ([2.0, 2.0], [0.0, 0.0, 0.0])
    dx, dy = f(np.ones(2), np.zeros(3), False)
    assert (dx.tolist(), dy.tolist()) == ([0.0, 0.0], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("pred", [True, False])
def test_a_bool_of_python_decides_at_once(pred):
    """The other branch is not even built."""
    x, built = gg.constant(0.5), []

    def branch(fn):
        return lambda: built.append(fn) or fn(x)

    y = gg.cond(pred, *map(branch, (gg.sin, gg.exp) if pred else (gg.exp, gg.sin)))
    assert y.node.type == "Sin"
    assert built == [gg.sin]


def test_S16_a_structural_zero_of_one_output_is_one_in_the_branch_too():
    """zero_gradient() says that a gradient is zero: a rule in the branch is told so."""

    def rule(site, dp, dq):
        told.append((gg.is_zero(dp), gg.is_zero(dq)))
        return dp

    def branch():
        with gg.override_gradient(rule) as region:
            p, q = gg.sin(x), gg.cos(x)
            region.declare(outputs=[p, q])
        return p, q

    told = []
    x = gg.placeholder(())
    p, q = gg.cond(x > 0, branch, lambda: (x, x))
    dx = gg.gradients(p + gg.zero_gradient(q), x)
    assert told == [(False, True)]
    assert value(dx, {x: 0.5}) == 1.0
