"""Recomputed parts give the same values from less memory."""

from functools import cache

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules
from graphgrad.base.errors import GradientError
from graphgrad.lower.loop_ir import nodes_within
from graphgrad.rules.recompute import forward_steps

from ..differentiate.helpers import value, values

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))


def peak(x, outputs):
    return gg.compile(x, outputs, verify=True, backend="numpy").peak_bytes


def test_values_and_gradients_are_the_same_at_two_orders():
    x, w = gg.placeholder((5, 4), name="x"), gg.placeholder((4, 4), name="w")

    def block(x):
        return gg.tanh(gg.tanh(x @ w) @ w)

    found = []
    for f in (block, rules.checkpoint(block)):
        y = f(x)
        first = gg.gradients(gg.sum(y * y), [x, w])
        second = gg.gradients(gg.sum(first[0] * first[1][0, 0]), [x, w])
        found.append([y, *first, *second])
    plain, again = values(found, {x: X, w: W})
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_allclose(a, b)


def wide(x):
    for _ in range(10):
        x = gg.sin(gg.exp(-x * x))
    return x


@pytest.mark.parametrize("segments", [None, 5, 40])
def test_a_chain_in_segments_keeps_less(segments):
    n = 40
    x = gg.placeholder((1000,), name="x")
    fns = [lambda x: gg.sin(gg.exp(-x * x))] * n
    plain = x
    for f in fns:
        plain = f(plain)
    cut = rules.checkpoint_chain(fns, x, segments)
    of_plain, of_cut = gg.gradients(plain, x), gg.gradients(cut, x)
    feeds = {x: RNG.normal(size=1000)}
    a, b = values([of_plain, of_cut], feeds)
    np.testing.assert_array_equal(a, b)
    assert peak(x, of_cut) < 0.6 * peak(x, of_plain)


def test_the_inside_is_computed_twice_and_not_merged_back():
    x = gg.placeholder((5, 4), name="x")
    y = rules.checkpoint(lambda x: gg.tanh(gg.exp(x)))(x)
    f = gg.compile(x, [y, gg.gradients(gg.sum(y**2), x)], verify=True)
    assert [n.type for n in f.program.nodes].count("Exp") == 2


def test_random_numbers_of_the_inside_are_the_same_again():
    x = gg.placeholder((100,), name="x")
    y = rules.checkpoint(lambda x: gg.nn.dropout(x, 0.5, seed=3))(x)
    y, dx = values([y, gg.gradients(y, x)], {x: np.ones(100)})
    np.testing.assert_array_equal(y, dx)


def test_overrides_hold_in_the_part_that_is_computed_again():
    x = gg.placeholder((), name="x")

    def f(x):
        with gg.override_gradient(rules.scale(10.0)):
            x = gg.exp(x)
        return gg.sign(x)

    with gg.gradient_override_map({"Sign": rules.ste()}):
        y = rules.checkpoint(f)(x)
    plain = rules.checkpoint(gg.sign)(x)
    assert value(gg.gradients(y, x), {x: 0.0}) == 10.0
    assert value(gg.gradients(plain, x), {x: 0.3}) == 0.0
    chosen = gg.gradients(plain, x, overrides={"Sign": rules.ste()})
    assert value(chosen, {x: 0.3}) == 1.0
    assert value(gg.gradients(y, x, overrides={"Sign": rules.scale(0.0)}), {x: 0.0}) == 0.0


def test_nested_arguments_results_and_integers():
    x, i = gg.placeholder((3,), name="x"), gg.placeholder((2,), "int64", name="i")

    @rules.checkpoint
    def picked(given):
        return {"a": gg.take(given["x"], given["i"]) ** 2, "b": given["i"] + 1, "c": given["x"]}

    y = picked({"x": x, "i": i})
    assert set(y) == {"a", "b", "c"}
    dx = gg.gradients([y["a"], y["c"]], x)
    np.testing.assert_array_equal(value(dx, {x: [1.0, 2.0, 3.0], i: [0, 2]}), [3.0, 1.0, 7.0])


def test_a_checkpoint_in_a_checkpoint():
    x = gg.placeholder((), name="x")
    y = rules.checkpoint(lambda x: gg.sin(rules.checkpoint(gg.exp)(x)))(x)
    np.testing.assert_allclose(
        value(gg.gradients(y, x), {x: 0.5}), np.cos(np.exp(0.5)) * np.exp(0.5)
    )


def test_without_marks_nothing_is_computed_again():
    x = gg.placeholder((5, 4), name="x")
    y = rules.checkpoint(wide)(x)
    f = gg.compile(x, gg.gradients(y, x, overrides="none"))
    assert [n.type for n in f.program.nodes].count("Exp") == 10


def test_overrides_of_the_call_for_a_node_or_a_region_of_the_inside():
    x = gg.placeholder((), name="x")

    def f(x):
        with gg.override_gradient(rules.scale(10.0)):
            x = gg.exp(x)
        return gg.sin(x)

    y = rules.checkpoint(f)(x)
    exp = x.graph.regions[1]
    node = next(n for n in x.graph.nodes if n.type == "Sin")
    assert value(gg.gradients(y, x, overrides={node: rules.ste()}), {x: 0.0}) == 10.0
    without = gg.gradients(y, x, overrides={exp: None})
    np.testing.assert_allclose(value(without, {x: 0.0}), np.cos(1.0))
    np.testing.assert_allclose(value(gg.gradients(y, x), {x: 0.0}), 10.0 * np.cos(1.0))


def test_a_function_is_called_once_so_that_it_need_not_be_repeatable():
    x, seeds = gg.placeholder((5,), name="x"), iter(range(100))
    y = rules.checkpoint(lambda h: h * gg.random.normal((5,), seed=next(seeds)))(x)
    y, dx = values([y, gg.gradients(y, x)], {x: np.ones(5)})
    np.testing.assert_array_equal(y, dx)
    assert next(seeds) == 1


@pytest.mark.parametrize(
    ("length", "snapshots", "steps"), [(10, 3, 15), (56, 5, 140), (100, 5, 316), (100, 10, 222)]
)
def test_the_published_numbers_of_forward_steps(length, snapshots, steps):
    assert forward_steps(length, snapshots) == steps


@cache
def fewest(length, snapshots):
    """Forward steps, over all places of the first snapshot."""
    if length == 1:
        return 0
    if snapshots == 0:
        return float("inf")
    return min(
        m + fewest(length - m, snapshots - 1) + fewest(m, snapshots) for m in range(1, length)
    )


def test_no_schedule_has_fewer_forward_steps():
    for length in range(1, 35):
        for snapshots in range(1, 7):
            assert forward_steps(length, snapshots) == fewest(length, snapshots)


def layers(n, batch=16, width=8, **options):
    """A chain of layers, its inputs, and how large an activation is."""
    x = gg.placeholder((batch, width), name="x")
    ws = [gg.placeholder((width, width)) for _ in range(n)]
    fns = [lambda h, w=w: gg.tanh(h @ w) for w in ws]
    return x, ws, rules.checkpoint_chain(fns, x, **options), batch * width * 8


@pytest.mark.parametrize(("n", "snapshots"), [(10, 3), (30, 2), (56, 5), (20, 1), (7, 7), (1, 1)])
def test_a_chain_is_reversed_from_snapshots_in_the_fewest_steps(n, snapshots):
    x, ws, y, size = layers(n, snapshots=snapshots)
    dx = gg.gradients(gg.sum(y), x)
    f = gg.compile([x, *ws], dx, backend="numpy", verify=True)
    types = [n.type for p in f.plans for node in p.program.nodes for n in nodes_within(node)]
    assert types.count("MatMul") == forward_steps(n, snapshots) + n + n  # and each layer's own dx
    assert f.peak_bytes <= (snapshots + 4) * size
    arrays = [RNG.normal(size=t.shape) for t in (x, *ws)]
    h = x
    for w in ws:
        h = gg.tanh(h @ w)
    plain = gg.compile([x, *ws], gg.gradients(gg.sum(h), x), backend="numpy")
    np.testing.assert_allclose(f(*arrays), plain(*arrays), rtol=1e-12)


@pytest.mark.ci
def test_a_thousand_layers_in_segments():
    x, ws, y, size = layers(1000)
    f = gg.compile([x, *ws], gg.gradients(gg.sum(y), x), backend="numpy")
    types = [n.type for p in f.plans for node in p.program.nodes for n in nodes_within(node)]
    forward = types.count("MatMul") - 1000  # less those of dx
    assert forward - 1000 <= 0.33 * 3000  # the gradient of a layer is two products
    (plan,) = f.plans
    live = {s for step in plan.steps for s in step.outputs if s < 0}
    places = [p for p in plan.places if p.slot in live and p.type.shape == x.shape]
    assert len(places) <= 64
    assert f.peak_bytes <= 66 * size


def test_snapshots_that_are_too_few_or_said_in_two_ways():
    x = gg.placeholder((2,), name="x")
    fns = [gg.sin] * 100
    with pytest.raises(GradientError, match="at least 1 snapshot"):
        rules.checkpoint_chain(fns, x, snapshots=0)
    with pytest.raises(GradientError, match="give more snapshots"):
        rules.checkpoint_chain(fns, x, snapshots=1)
    with pytest.raises(GradientError, match="not both"):
        rules.checkpoint_chain(fns, x, segments=2, snapshots=3)


@pytest.mark.parametrize("kind", ["placeholder", "constant", "variable"])
def test_S28_what_nobody_asks_about_needs_no_gradient_inside(kind):
    with gg.Graph():
        x = gg.placeholder(())
        c = {"placeholder": gg.placeholder((), name="c"), "constant": gg.constant(0.8)}.get(kind)
        c = gg.variable(0.8) if c is None else c

        @gg.custom_gradient
        def f(x):
            return x * c, lambda dy: 3.0 * dy

        y = gg.rules.checkpoint(f)(x)
        feeds = {x: 1.0, c: 0.8}
        assert gg.evaluate(gg.gradients(y, x), feeds) == 3.0
        with pytest.raises(gg.GradientError, match="which is not among its inputs"):
            gg.gradients(y, [x, c])


def test_S24_checkpoints_in_one_another_around_derivatives_of_a_second_rule():
    def f(x):
        return gg.custom_gradient(
            lambda x: (x * x, lambda dy: ([2.0 * dy], lambda dd: [0.3 * dd]))
        )(x)

    def derived(f):
        return lambda x: gg.gradients(f(x * 1.0), x, unconnected="zero")

    for inner in (f, gg.rules.checkpoint(f)):
        twice = derived(derived(inner))
        for outer in (twice, gg.rules.checkpoint(twice)):
            with gg.Graph():
                x = gg.placeholder(())
                assert gg.evaluate(outer(x), {x: 0.5}) == pytest.approx(0.3)


def test_S22_a_derivative_of_a_checkpoint_in_an_open_block_lies_in_it():
    def custom(x):
        return gg.custom_gradient(lambda x: (x * 1.0, lambda dy: dy * gg.sin(x)))(x)

    def spread(site, *dys):
        return [2.0 * sum(dys)] * len(site.inputs)

    for f in (custom, gg.rules.checkpoint(custom)):
        with gg.Graph():
            x = gg.placeholder(())
            with gg.override_gradient(spread):
                a = x * 1.0
                d = gg.gradients(f(a), a) * 1.0
            assert gg.evaluate(gg.gradients(d, x), {x: 0.5}) == 2.0


def ten(site, dy):
    return 10.0 * dy


@pytest.mark.parametrize("how", ["import", "mark", "unmark"])
@pytest.mark.parametrize("chosen", [False, True])
def test_S04_marks_count_for_the_derivative_of_what_was_recomputed(how, chosen):
    found = []

    def f(x):
        if chosen and how == "import":
            return gg.cond(x > 0, lambda: gg.sin(gg.tanh(x)), lambda: x)
        return gg.sin(gg.tanh(x))

    for wrap in (lambda f: f, gg.rules.checkpoint):
        with gg.Graph() as home:
            a = gg.placeholder(())
            first = {"Tanh": lambda site, dy: 3.0 * dy} if how == "unmark" else None
            with gg.gradient_override_map(first or {"Sin": "Sin"}):
                b = gg.gradients(wrap(f)(a), a)
        if how == "import":
            with gg.Graph() as g, gg.gradient_override_map({"Tanh": ten}, allow_empty=True):
                a, b = _imported(home, a, b)
        else:
            g, (tanh, *_) = home, home.find("Tanh*")
            if how == "unmark":
                home.unmark(tanh)
            else:
                home.mark(tanh, ten, allow_inside=True)
        with g:
            found.append(gg.evaluate(gg.gradients(b, a), {a: 0.5}))
    np.testing.assert_allclose(*found, rtol=1e-12)


def _imported(home, *tensors):
    made = gg.import_graph(home)
    return [made[t] for t in tensors]


def test_what_is_no_function_is_refused():
    with pytest.raises(
        TypeError, match=r"takes a function of tensors, got .*checkpoint\(fn\)\(x\)"
    ):
        rules.checkpoint(gg.constant(1.0))


def test_S27_a_rule_that_is_not_linear_in_a_checkpoint_is_refused_where_it_is_called_in_parts():
    """What flows to it comes through the value and through the first gradient."""

    def f(x, rule):
        with gg.override_gradient(rule):
            y = gg.tanh(x)
        return y * y

    def second(rule, checkpoint, overrides=None):
        """Without overrides, dx reads the inside as it was built, not what is recomputed."""
        with gg.Graph():
            x = gg.placeholder(())
            inside = gg.rules.checkpoint(f) if checkpoint else f
            y = gg.sin(inside(x, rule))
            dx = gg.gradients(y, x, overrides=overrides)
            return gg.evaluate(gg.gradients(y + dx, x), {x: 0.7})

    def doubled(site, dy):
        return 2.0 * dy

    for overrides in (None, "none"):
        expected = second(doubled, False, overrides)
        np.testing.assert_allclose(second(doubled, True, overrides), expected)
        with pytest.raises(gg.GradientError, match="in a checkpoint both through the value"):
            second(lambda site, dy: dy * dy, True, overrides)


@pytest.mark.parametrize("loop", [False, True])
def test_S27_what_a_rule_in_a_body_holds_on_to_is_there_each_time_that_is_recomputed(loop):
    """The first time, the body begins to read it; so does what is built of the body after that."""
    with gg.Graph():
        x, held = gg.placeholder(()), gg.constant(1.5)

        def marked(x):
            with gg.override_gradient(lambda site, dy: held * dy):
                return gg.sin(x)

        def body(x):
            if loop:
                return gg.scan(lambda c, _: (marked(c), c), x, length=1)[0]
            return gg.cond(x < 1.0, lambda: marked(x), lambda: x)

        y = gg.rules.checkpoint(body)(x)
        dx = [gg.gradients(y, x) for _ in range(2)]
    assert gg.evaluate(dx, {x: 0.3}) == [1.5, 1.5]
