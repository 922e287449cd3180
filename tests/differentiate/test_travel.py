"""S27: marks and rules survive where a graph is copied, cut out or imported."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph

from .test_random_programs import INPUTS, build, derivatives, random_program


@gg.register_gradient("travel/double_default")
def double_default(site, *dys):
    return [dx if dx is gg.NO_GRAD else 2.0 * dx for dx in site.default(*dys)]


def copied(g, xs, ys):
    new = g.copy()
    return new, *([new.nodes[t.node.index].outputs[t.index] for t in ts] for ts in (xs, ys))


def copied_twice(g, xs, ys):
    return copied(*copied(g, xs, ys))


def imported(g, xs, ys):
    with gg.Graph() as new:
        given = [gg.placeholder(()) for _ in xs]
        found = gg.import_graph(g, dict(zip(xs, given, strict=True)))
    return new, given, [found[y] for y in ys]


def imported_under_a_region(g, xs, ys):
    """Into a region whose rule is its own default; the results are read outside."""
    with gg.Graph() as new:
        given = [gg.placeholder(()) for _ in xs]
        with gg.override_gradient(lambda site, *dys: tuple(site.default(*dys))):
            found = gg.import_graph(g, dict(zip(xs, given, strict=True)))
        ys = [gg.identity(found[y]) for y in ys]
    return new, given, ys


def imported_copy(g, xs, ys):
    return imported(*copied(g, xs, ys))


def cut_out(g, xs, ys):
    g.subgraph(xs, ys)  # another one does not matter
    named = {x: f"in{i}" for i, x in enumerate(xs)}
    with g:
        outs = [gg.identity(y, name=f"out{i}") for i, y in enumerate(ys)]
    new = g.subgraph(xs, outs)
    placeholders = [n.outputs[0] for n in new.nodes if n.type == "Placeholder"]
    assert len(placeholders) == len(named)
    return new, placeholders, [new.tensor(f"out{i}:0") for i in range(len(ys))]


JOURNEYS = [copied, copied_twice, imported, imported_under_a_region, imported_copy, cut_out]


def after(journey, body, order, outputs):
    """The derivatives of a program that was marked, and then went on a journey."""
    rng = np.random.default_rng(7)
    with gg.Graph() as g:
        xs = [gg.placeholder(()) for _ in range(INPUTS)]
        known = list(xs)
        build(body, known, True)
        ys = [gg.identity(known[i]) for i in outputs]
    g, xs, ys = journey(g, xs, ys)
    wanted = list(ys)
    with g:
        for _ in range(order):
            weights = [np.float64(w) for w in rng.normal(size=len(ys))]
            found = gg.gradients(ys, xs, weights, unconnected="zero")
            wanted += found
            ys = found
    verify_graph(g)
    return gg.evaluate(wanted, dict(zip(xs, (0.3, -0.6, 0.9), strict=True)))


def run_seeds(journey, first, last):
    for seed in range(first, last):
        program, outputs = random_program(np.random.default_rng(seed))
        try:
            plain = derivatives(program, False, 3, outputs)
            assert after(journey, program, 3, outputs) == pytest.approx(plain, rel=1e-11, abs=1e-11)
        except Exception as error:
            error.add_note(f"seed {seed}, outputs {outputs}\n{program}")
            raise


@pytest.mark.parametrize("journey", JOURNEYS)
def test_S27_exact_rules_change_no_derivative_after_a_journey(journey):
    run_seeds(journey, 0, 8)


@pytest.mark.slow
@pytest.mark.parametrize("journey", JOURNEYS)
def test_S27_exact_rules_change_none_of_more_programs(journey):
    run_seeds(journey, 8, 25)


@pytest.mark.slow
@pytest.mark.parametrize("journey", JOURNEYS)
def test_S27_the_same_for_many_programs(journey):
    run_seeds(journey, 1000, 1300)


def values_of(tensors, feeds):
    """Values as Python numbers."""
    return np.array(gg.evaluate(tensors, feeds)).tolist()


def closure_program():
    """Rules that close over tensors: of the inside, of the outside, with a second rule."""
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        slope = gg.exp(x * 0.1)

        @gg.custom_gradient
        def f(z):
            y = z * z
            return y, lambda dy: dy * y * slope

        @gg.custom_gradient
        def h(z):
            u = gg.sin(z)

            def grad(dy):
                return dy * gg.cos(z) * 3.0, lambda ddx: ddx * u * 100.0

            return u, grad

        w = f(x)
        with gg.override_gradient(lambda site, dy: 2.0 * dy * w + site.outputs[0]):
            v = gg.exp(w)
        out = gg.identity(h(v), name="out")
    return g, [x], [out]


def orders(x, y, n=3):
    found = [y]
    for _ in range(n):
        found.append(gg.gradients(found[-1], x, unconnected="zero"))
    return found


@pytest.mark.parametrize("journey", [copied, copied_twice, imported, imported_copy, cut_out])
def test_S27_closures_keep_their_meaning(journey):
    g, (x,), (y,) = closure_program()
    with g:
        want = values_of(orders(x, y), {x: 0.7})
    new, (x,), (y,) = journey(*closure_program())
    with new:
        assert values_of(orders(x, y), {x: 0.7}) == pytest.approx(want, rel=1e-12)


def test_S27_what_rules_close_over_is_cut_out_too():
    with gg.Graph() as g:
        a, b = gg.placeholder((), name="a"), gg.placeholder((), name="b")
        x = gg.sin(a)
        k = gg.cos(x) * b
        unread = gg.cos(b)
        with gg.override_gradient(lambda site, dy: (dy * k * x, gg.NO_GRAD), inputs=[x, unread]):
            y = gg.exp(x)
    new = g.subgraph(x, y)
    names = [n.name for n in new.nodes if n.type == "Placeholder"]
    assert "b" in names
    assert "a" not in names
    (x2,) = (n.outputs[0] for n in new.nodes if n.type == "Placeholder" and n.name != "b")
    (y2,) = (n.outputs[0] for n in new.nodes if n.type == "Exp")
    with new:
        assert values_of([gg.gradients(y2, x2)], {x2: 0.7, new.tensor("b:0"): 3.0}) == (
            pytest.approx([np.cos(0.7) * 3.0 * 0.7])
        )


@pytest.mark.parametrize("stamped", [False, True])
def test_S27_what_rules_in_bodies_close_over_is_cut_out_too(stamped):
    """Of a choice in a loop: the rule's k is read nowhere else."""
    with gg.Graph() as g:
        x, b = gg.placeholder((), name="x"), gg.placeholder((), name="b")
        k = gg.cos(b)

        def rule(site, dy):
            return dy * k

        def one():
            over = gg.gradient_override_map({"Exp": rule}) if stamped else None
            with over or gg.override_gradient(rule):
                return gg.exp(x)

        def run(s, _):
            return s + gg.cond(s < 0, lambda: gg.identity(x), one), None

        y = gg.identity(gg.scan(run, 0.0, length=2)[0], name="y")
        dy = gg.gradients(y, x)
    new = g.subgraph(x, y)
    with new:
        found = gg.gradients(new.tensor("y:0"), new.tensor("x:0"))
    feeds = {"x": 0.5, "b": 0.3}
    one, other = (
        gg.evaluate(d, {h.tensor(f"{n}:0"): a for n, a in feeds.items()})
        for d, h in ((dy, g), (found, new))
    )
    assert one == other == pytest.approx(2 * np.cos(0.3))


def test_S27_a_tensor_that_nobody_saw_a_rule_hold_is_an_error_that_names_it():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        kept = SimpleNamespace(values=SimpleNamespace(k=gg.cos(x)))
        with gg.override_gradient(lambda site, dy: dy * kept.values.k):
            y = gg.exp(x)
    for journey in (copied, cut_out):
        _, (x2,), (y2,) = journey(g, [x], [y])
        with pytest.raises(gg.GraphError, match="Cos_1:0") as error:
            gg.gradients(y2, x2)
        assert "test_travel.py" in str(error.value)


@pytest.mark.parametrize("journey", [copied, imported, cut_out])
def test_S22_S27_a_map_that_a_rule_opens_stamps_what_its_default_builds_after_a_journey(journey):
    with gg.Graph() as g:
        x = gg.placeholder(())
        w = gg.constant(2.0)

        def rule(site, dy):
            with gg.gradient_override_map({"Multiply": double_default}):
                (dx,) = site.default(dy)
            return dx + w

        def marked(x):
            with gg.override_gradient(rule):
                return gg.sin(x)

        y = gg.identity(marked(x))
        batched = gg.sum(gg.vmap(marked)(x[None]))
        expected = gg.evaluate(orders(x, y), {x: 0.3})
        np.testing.assert_allclose(gg.evaluate(orders(x, batched), {x: 0.3}), expected)
    assert expected[2] == pytest.approx(-2.0 * np.sin(0.3))
    _, (x,), (y,) = journey(g, [x], [y])
    with x.graph:
        np.testing.assert_allclose(gg.evaluate(orders(x, y), {x: 0.3}), expected)


def one_run(x, s, k, hold):
    """What its gradient reads of tanh has a gradient of its own, by a rule that holds a carry."""
    with gg.override_gradient(lambda site, dy: dy * gg.sin(t), inputs=[x]) as region:
        with gg.gradient_override_map({"Tanh": hold(k)}):
            t = gg.tanh(x)
        y = gg.identity(t)
        region.declare(outputs=[y])
    return s + y


def in_a_loop(x, hold):
    def run(carry, _):
        s, k = carry
        return (one_run(x, s, k, hold), k * x), None

    return gg.scan(run, (x, x + 1.0), length=2)[0][0]


def in_a_loop_in_a_loop(x, hold):
    def run(carry, _):
        s, k = carry
        return (gg.fori_loop(0, 2, lambda i, t: one_run(x, t, k, hold), s), k * x), None

    return gg.scan(run, (x, x + 1.0), length=2)[0][0]


def pickled(g, xs, ys):
    return pickle.loads(pickle.dumps((g, xs, ys)))


@pytest.mark.parametrize("journey", [lambda *program: program, *JOURNEYS[:3], pickled])
@pytest.mark.parametrize("loop", [in_a_loop, in_a_loop_in_a_loop])
def test_S27_gradients_of_gradients_of_a_loop_have_what_rules_in_it_close_over(loop, journey):
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        y = loop(x, lambda k: lambda site, dy: dy * gg.sin(k))
    g, (x,), (y,) = journey(g, [x], [y])
    with g:
        d2 = gg.evaluate(gg.gradients(gg.gradients(y, x), x), {x: 0.3})
    times = 1 if loop is in_a_loop else 2
    assert d2 == pytest.approx(
        times * np.cos(np.tanh(0.3)) * (np.sin(1.3) + np.sin(1.3 * 0.3)), rel=1e-12
    )


def test_S30_so_they_have_what_the_rule_of_a_name_closes_over():
    def hold(k):
        gg.register_gradient("travel/held", replace=True)(lambda site, dy: dy * gg.sin(k))
        return "travel/held"

    def run(carry, _):
        s, k = carry
        s = one_run(x, s, k, hold)
        with gg.override_gradient("travel/nobody registers this", late=True):
            aside = gg.exp(k)
        return (s, k * x + gg.stop_gradient(aside) * 0.0), None

    x = gg.placeholder((), name="x")
    y = gg.scan(run, (x, x + 1.0), length=1)[0][0]
    d2 = gg.evaluate(gg.gradients(gg.gradients(y, x), x), {x: 0.3})
    gg.unregister_gradient("travel/held")
    assert d2 == pytest.approx(np.cos(np.tanh(0.3)) * np.sin(1.3), rel=1e-12)


def test_S27_a_carry_that_nobody_saw_a_rule_hold_is_an_error_that_names_it():
    def hold(k):
        kept = SimpleNamespace(values=SimpleNamespace(k=k))
        return lambda site, dy: dy * kept.values.k

    x = gg.placeholder((), name="x")
    dx = gg.gradients(in_a_loop(x, hold), x)
    with pytest.raises(gg.GradientError, match=r"body of scan\(\).*<k:0:.*test_travel"):
        gg.gradients(dx, x)


def test_S27_what_was_differentiated_before_the_journey_can_be_differentiated_after_it():
    g, (x,), (y,) = closure_program()
    with g:
        first = gg.gradients(y, x)
        want = values_of(orders(x, first, 2), {x: 0.7})
    new, (x2,), (first2,) = copied(g, [x], [first])
    with new:
        assert values_of(orders(x2, first2, 2), {x2: 0.7}) == pytest.approx(want, rel=1e-12)


def test_S27_a_rule_is_traced_once_for_a_copy():
    calls = []
    with gg.Graph() as g:
        x = gg.placeholder(())
        c = gg.exp(x)
        with gg.override_gradient(lambda site, dy: calls.append(1) or dy * c):
            y = gg.sin(x)
    _, (x2,), (y2,) = copied(g, [x], [y])
    for _ in range(3):
        gg.gradients(y2, x2)
    assert len(calls) == 1


def test_S27_in_a_branch():
    def program():
        with gg.Graph() as g:
            x = gg.placeholder((), name="x")
            scale = x * 2.0

            def branch():
                with gg.override_gradient(lambda site, dy: dy * scale):
                    return gg.sin(x) * x

            y = gg.cond(x > 0, branch, lambda: x**3)
        return g, [x], [y]

    g, (x,), (y,) = program()
    with g:
        want = [values_of(orders(x, y), {x: v}) for v in (0.7, -0.7)]
    for journey in (copied, copied_twice, imported):
        new, (x,), (y,) = journey(*program())
        with new:
            found = [values_of(orders(x, y), {x: v}) for v in (0.7, -0.7)]
        assert found[0] == pytest.approx(want[0]), journey
        assert found[1] == pytest.approx(want[1]), journey


@pytest.mark.parametrize("journey", JOURNEYS)
def test_S27_a_rule_in_a_body_of_a_body_may_close_over_what_neither_reads(journey):
    def program():
        with gg.Graph() as g:
            x, w = gg.placeholder((), name="x"), gg.placeholder((), name="w")

            def inner(i, c):
                with gg.gradient_override_map({"Tanh": lambda site, dy: dy * w}):
                    return gg.tanh(c)

            y = gg.scan(lambda c, a: (gg.fori_loop(0, 2, inner, c), a), x, gg.ones((3,)))[0]
        return g, [x, w], [y]

    new, (x, w), (y,) = journey(*program())
    with new:
        dx, dw = gg.gradients(gg.gradients(y, x), [x, w], unconnected="zero")
        assert gg.evaluate([dx, dw], {x: 0.3, w: 0.7}) == pytest.approx([0, 6 * 0.7**5])


def test_S27_stamps_travel_and_win_over_a_map_that_is_open():
    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
        with gg.gradient_override_map({"Sin": lambda site, dy: 10.0 * dy}):
            y = gg.sin(x)
        z = gg.cos(y)
    with gg.Graph():
        a = gg.placeholder((2,))
        rules = {"Sin": lambda site, dy: 7.0 * dy, "Cos": lambda site, dy: 3.0 * dy}
        with gg.gradient_override_map(rules):
            found = gg.import_graph(g, {x: a})
        da = gg.gradients(found[z], a)
        np.testing.assert_array_equal(gg.evaluate(da, {a: [1.0, 2.0]}), [30.0, 30.0])


@pytest.mark.parametrize("journey", [copied, copied_twice, imported, imported_copy])
def test_S27_a_reader_among_the_members_of_a_region_stands_before_what_it_needs(journey):
    with gg.Graph() as g:
        z = gg.placeholder(())
        early = gg.sin(z)
        reader = gg.exp(early)
        x = gg.tanh(z)
        late = x * early
    g.mark(
        gg.select.nodes(early, late),
        lambda site, *dys: dict.fromkeys(site.inputs, 5.0 * dys[0]),
    )
    new, (there,), (y, x_there) = journey(g, [z], [reader, x])
    with new:
        dx = gg.gradients(y, x_there)
    assert gg.evaluate(dx, {there: np.array(0.3)}) == pytest.approx(5 * np.exp(np.sin(0.3)))


def test_S27_named_rules_survive_pickling():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        with gg.override_gradient("travel/double_default"):
            y = gg.identity(gg.exp(gg.sin(x)), name="y")
        dx = gg.gradients(y, x)
        want = values_of(orders(x, y), {x: 0.3})
    for new in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g), copy.copy(g)):
        verify_graph(new)
        x2, y2 = new.tensor("x:0"), new.tensor("y:0")
        with new:
            assert values_of(orders(x2, y2), {x2: 0.3}) == pytest.approx(want)
            again = new.nodes[dx.node.index].outputs[0]
            found = values_of(gg.gradients(again, x2), {x2: 0.3})
        assert found == pytest.approx(want[2])


def pickled(g, xs, ys):
    """Through a pickle, which has no function of this module in it."""
    data = pickle.dumps(g)
    assert b"test_travel" not in data.replace(b"test_travel.py", b"")
    new = pickle.loads(data)
    return new, *([new.nodes[t.node.index].outputs[t.index] for t in ts] for ts in (xs, ys))


def test_S27_closures_survive_pickling():
    g, (x,), (y,) = closure_program()
    with g:
        want = values_of(orders(x, y, 2), {x: 0.7})
    new, (x,), (y,) = pickled(*closure_program())
    verify_graph(new)
    with new:
        assert values_of(orders(x, y, 2), {x: 0.7}) == pytest.approx(want, rel=1e-12)
    again, (x2,), (y2,) = copied(new, [x], [y])
    with again:
        assert values_of(orders(x2, y2, 2), {x2: 0.7}) == pytest.approx(want, rel=1e-12)


def test_S27_what_was_not_stored_is_an_error():
    """The rule of a rule of a rule: three levels of second-order rules."""

    @gg.custom_gradient
    def f(z):
        y = z**4

        def grad(dy):
            def grad2(ddx):
                return ddx * z, lambda dddx: dddx * 7.0

            return dy * z, grad2

        return y, grad

    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        y = gg.identity(f(x), name="y")
    new, (x,), (y,) = pickled(g, [x], [y])
    with new:
        assert values_of(orders(x, y, 2), {x: 3.0}) == [81.0, 3.0, 3.0]
        with pytest.raises(gg.GradientError, match="stored to order 2"):
            orders(x, y, 3)


def test_import_brings_names_values_and_lines():
    with gg.Graph() as g:
        v = gg.variable(2.0, name="v")
        y = gg.multiply(v, 3.0)
        g.state[v] = 5.0
    with gg.Graph() as new, gg.name_scope("there"):
        found = gg.import_graph(g)
    assert found[v].node.name == "there/v"
    assert "test_travel.py" in found[y].where
    assert gg.evaluate(found[y]) == 15.0
    assert new.state[found[v]] == 5.0


def test_import_checks_what_stands_for_what():
    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
    with gg.Graph():
        with pytest.raises(gg.GraphError, match="cannot stand for"):
            gg.import_graph(g, {x: gg.placeholder((3,))})
        with pytest.raises(gg.GraphError, match="cannot stand for"):
            gg.import_graph(g, {x: gg.placeholder((2,), "float32")})
    with g, pytest.raises(gg.GraphError, match="into itself"):
        gg.import_graph(g)


def test_a_subgraph_does_not_cut_a_region():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        with gg.override_gradient("travel/double_default"):
            h = gg.sin(x)
            y = gg.exp(h)
    with pytest.raises(gg.GraphError, match="would be split"):
        g.subgraph(h, y)


def test_a_gradient_inside_a_branch_with_respect_to_what_is_outside():
    with gg.Graph():
        x = gg.placeholder(())
        h = gg.sin(x)
        y = gg.cond(x > 0, lambda: gg.gradients(h * h, x), lambda: x)
        assert gg.evaluate(y, {x: 0.4}) == pytest.approx(2 * np.sin(0.4) * np.cos(0.4))


def test_S27_a_branch_that_was_differentiated_may_be_copied():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")

        def branch():
            with gg.override_gradient("travel/double_default"):
                h = x
                for _ in range(20):
                    h = gg.sin(h)
            return h

        y = gg.identity(gg.cond(x > 0, branch, lambda: x), name="y")
        dx = gg.gradients(y, x)
        want = values_of([dx, *orders(x, dx, 1)], {x: 0.5})
    for new in (g.copy(), pickle.loads(pickle.dumps(g))):
        verify_graph(new)
        x2, dx2 = new.tensor("x:0"), new.nodes[dx.node.index].outputs[0]
        with new:
            found = values_of([dx2, *orders(x2, dx2, 1)], {x2: 0.5})
        assert found == pytest.approx(want)


# --- what a rule means that was carried away -----------------------------------------------------


def pickled_and_imported(g, xs, ys):
    g, xs, ys = pickled(g, xs, ys)
    with gg.Graph() as new:
        gg.sin(gg.placeholder((2,)))
        given = [gg.placeholder(()) for _ in xs]
        found = gg.import_graph(g, dict(zip(xs, given, strict=True)))
    return new, given, [found[y] for y in ys]


def stayed(g, xs, ys):
    return g, xs, ys


EVERY = [stayed, *JOURNEYS, pickled, pickled_and_imported]


def seven(site, dy):
    return 7.0 * dy


def region_that_asks(how):
    """exp(tanh(x)) in a region whose rule holds a tensor and asks for the inside, and a tanh."""
    with gg.Graph() as g:
        x, one = gg.placeholder((), name="x"), gg.constant(1.0)

        def by_default(site, dy):
            return [one * dx for dx in site.default(dy)]

        def by_gradients(site, dy):
            return [one * dx for dx in gg.gradients(site.outputs, list(site.inputs), [dy])]

        with gg.override_gradient({"default": by_default, "gradients": by_gradients}[how]):
            y = gg.exp(gg.tanh(x))
        y = gg.tanh(y)
    return g, [x], [y]


@pytest.mark.parametrize("how", ["default", "gradients"])
@pytest.mark.parametrize("journey", EVERY)
def test_S05_what_a_call_chooses_inside_of_what_travelled_counts_or_is_refused(journey, how):
    g, (x,), (y,) = journey(*region_that_asks(how))
    with g:
        plain = values_of(gg.gradients(y, x), {x: 0.0})
        assert plain == pytest.approx(1.0 - np.tanh(1.0) ** 2)
        for choice, expected in (({"Tanh": seven}, 49.0), ({"Tanh": seven, "Exp": seven}, 343.0)):
            if "pickled" in journey.__name__ and how == "gradients":  # it was traced with the marks
                with pytest.raises(
                    gg.GradientError, match="a different rule here than when"
                ) as error:
                    gg.gradients(y, x, overrides=choice)
                assert "test_travel.py" in str(error.value)
            else:
                dx = gg.gradients(y, x, overrides=choice)
                assert values_of(dx, {x: 0.0}) == expected
            assert values_of(gg.gradients(y, x), {x: 0.0}) == plain


def test_S05_a_node_or_region_chosen_inside_of_what_travelled_counts_or_is_refused():
    for how in ("default", "gradients"):
        g, (x,), (y,) = copied(*region_that_asks(how))
        (inside,) = (n for n in g.nodes if n.type == "Exp")
        (outside,) = (n for n in g.nodes if n.type == "Tanh" and n.region is None)
        if how == "default":
            dx = gg.gradients(y, x, overrides={inside: seven, outside: seven})
            assert values_of(dx, {x: 0.0}) == 49
        else:
            with pytest.raises(gg.GradientError, match="choice is not known"):
                gg.gradients(y, x, overrides={inside: seven, outside: seven})
    dx = gg.gradients(y, x, overrides={outside: seven, g.regions[0]: seven})
    assert values_of(dx, {x: 0.0}) == 49


def four_times(site, dx):
    return 4.0 * dx


def twice(site, dy):
    return 2.0 * dy


@pytest.mark.parametrize("journey", EVERY)
def test_S25_a_rules_own_jvp_travels_with_it(journey):
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        k = gg.exp(x)
        own = gg.Rule(twice, "own", jvp=lambda site, dx: dx * k * site.outputs[0])
        with gg.override_gradient(own, inputs=[x]):
            y = gg.sin(x)
        with gg.override_gradient(gg.Rule(twice, "own", jvp=four_times)):
            z = gg.identity(y)
    g, (x,), (z,) = journey(g, [x], [z])
    with g:
        tangent = gg.jvp(z, x)
        found = values_of([tangent, gg.gradients(tangent, x)], {x: 0.5})
    value = 4.0 * np.exp(0.5) * np.sin(0.5)
    assert found == pytest.approx([value, value + 4.0 * np.exp(0.5) * 2.0])  # y's rule is twice


@pytest.mark.parametrize("journey", EVERY)
def test_S25_a_rules_own_jvp_of_two_inputs_travels_with_it(journey):
    with gg.Graph() as g:
        x, w = gg.placeholder((), name="x"), gg.placeholder((), name="w")
        own = gg.Rule(
            lambda site, dy: (dy, dy), "own", jvp=lambda site, dx, dw: 3.0 * dx + 5.0 * dw
        )
        with gg.override_gradient(own, inputs=[x, w]):
            y = gg.sin(x) * w
        z = gg.identity(y)
    g, (x, w), (z,) = journey(g, [x, w], [z])
    with g:
        tangent = gg.jvp(z, [x, w], [1.0, 10.0])
    assert values_of(tangent, {x: 0.5, w: 0.25}) == 53


@pytest.mark.parametrize("journey", EVERY)
def test_S25_a_rules_own_jvp_inside_of_a_default_that_travels(journey):
    with gg.Graph() as g:
        x, k = gg.placeholder((), name="x"), gg.constant(3.0)
        with gg.override_gradient(lambda site, dy: [k * dx for dx in site.default(dy)]):
            with gg.override_gradient(gg.Rule(lambda s, dy: dy * dy, "own", jvp=four_times)):
                y = gg.exp(x)
            y = gg.identity(y)
    g, (x,), (y,) = journey(g, [x], [y])
    assert values_of(gg.jvp(y, x), {x: 0.5}) == 12


@pytest.mark.parametrize("journey", EVERY)
def test_S16_an_output_without_a_gradient_is_known_as_such_after_a_journey(journey):
    """The rule inside, which gives 5 for nothing, is not called for an output that nobody uses."""
    with gg.Graph() as g:
        x, k = gg.placeholder((), name="x"), gg.constant(3.0)
        with gg.override_gradient(lambda site, *dys: [k * d for d in site.default(*dys)]) as region:
            with gg.override_gradient(lambda site, dy: dy + 5.0):
                a = gg.exp(x)
            b = gg.sin(x)
            a = gg.identity(a)
            region.declare(outputs=[a, b])
        a, b = gg.identity(a), gg.identity(b)
    new, (x2,), (a2, b2) = journey(g, [x], [a, b])
    with new:
        both = gg.gradients([a2, b2], x2)
        assert values_of(both, {x2: 0.0}) == 3.0 * (6.0 + 1.0)
        assert values_of(gg.gradients(b2, x2), {x2: 0.0}) == 3.0
        assert values_of(gg.gradients(a2, x2), {x2: 0.0}) == 18.0


@pytest.mark.parametrize("journey", EVERY)
def test_S27_a_choice_inside_of_what_is_marked(journey):
    """The default of a site with a choice inside, whose branches have rules of their own."""
    with gg.Graph() as g:
        x, k = gg.placeholder((), name="x"), gg.constant(3.0)

        def branch():
            h = gg.cos(x)
            with gg.override_gradient(lambda site, dy: dy * h * site.outputs[0]):
                return gg.sin(x)

        with gg.override_gradient(lambda site, dy: [k * dx for dx in site.default(dy)], inputs=[x]):
            y = gg.cond(x > 0, branch, lambda: x * x)
            y = gg.identity(y)
        z = y * y
    g, (x,), (z,) = journey(g, [x], [z])
    found = orders(x, z, 2)
    s, c = np.sin(0.5), np.cos(0.5)
    first = 3.0 * (2.0 * s) * c * s
    assert values_of(found[:2], {x: 0.5}) == pytest.approx([s * s, first])
    assert values_of(found, {x: -0.5}) == pytest.approx([0.0625, -1.5, 21.0])


def test_a_gradient_inside_a_branch_of_a_choice_that_is_outside():
    with gg.Graph():
        x = gg.placeholder(())
        h = gg.cond(x > 0, lambda: gg.sin(x), lambda: x * x)
        y = gg.cond(x > -5.0, lambda: gg.gradients(h * h, x), lambda: x)
        inside = [y, gg.gradients(y, x)]
        outside = orders(x, h * h, 2)[1:]
        for at in (0.4, -0.3):
            assert values_of(inside, {x: at}) == pytest.approx(values_of(outside, {x: at}))


def test_S22_maps_do_not_stamp_gradients_that_are_imported():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        dx = gg.gradients(gg.sin(x) * x, x)
        gg.identity(dx, name="dx")
    with gg.Graph():
        with gg.gradient_override_map({"Multiply": "travel/double_default"}):
            there = gg.import_graph(g)
        x, dx = there[g.tensor("x:0")], there[g.tensor("dx:0")]
        found = values_of(gg.gradients(dx, x), {x: 0.5})
    assert found == pytest.approx(2.0 * np.cos(0.5) - 0.5 * np.sin(0.5))


# --- nodes that run before another although it reads nothing of them ----------------------------


def waiting():
    """A graph in which a node, `late`, runs after an Exp of which it reads nothing."""
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        early, late = gg.exp(x), gg.identity(x, name="late")
        late.node.controls = (early.node,)
    return g, late


def moved_by(way, g, late):
    if way == "imported":
        with gg.Graph() as new:
            gg.import_graph(g)
        return new
    if way == "cut out":
        return g.subgraph([g.tensor("x:0")], [late])
    return {"copied": g.copy, "pickled": lambda: pickle.loads(pickle.dumps(g))}[way]()


@pytest.mark.parametrize("way", ["copied", "pickled", "imported", "cut out"])
def test_S27_what_runs_before_a_node_runs_before_it_elsewhere(way):
    g, late = waiting()
    new = moved_by(way, g, late)
    assert [n.type for n in new.node("late").controls] == ["Exp"]


def test_S27_what_runs_before_a_node_runs_before_it_in_a_batch():
    def f(x):
        early, late = gg.exp(x), gg.sin(x)
        late.node.controls = (early.node,)
        return late

    with gg.Graph():
        late = gg.vmap(f)(gg.placeholder((3,)))
    assert [n.type for n in late.node.controls] == ["Exp"]


def test_S27_what_runs_before_a_node_of_a_rule_runs_before_it_in_a_copy():
    def rule(site, dy):
        early, late = gg.exp(dy), gg.sin(dy)
        late.node.controls = (early.node,)
        return late + 0.0 * site.outputs[0]

    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(rule):
            gg.identity(x, name="y")
    new = g.copy()
    with new:
        gg.gradients(new.tensor("y:0"), new.tensor("x:0"))
    (late,) = [n for n in new.nodes if n.type == "Sin"]
    assert [n.type for n in late.controls] == ["Exp"]


@pytest.mark.parametrize("journey", [*EVERY, None])
def test_S24_a_second_rule_that_closes_over_an_inner_value_is_there_after_a_journey(journey):
    """What its rule built was built already: the region that it opened is still its own."""

    def part(x):
        @gg.custom_gradient
        def f(h):
            m = gg.sin(h)
            return gg.exp(m), lambda dy: (dy * m, lambda ddx: 5.0 * ddx * h)

        return gg.gradients(f(x), x)

    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        dx = gg.identity((gg.rules.checkpoint(part) if journey is None else part)(x), name="dx")
    g, (x,), (dx,) = journey(g, [x], [dx]) if journey is not None else (g, [x], [dx])
    with g:
        found = values_of([dx, gg.gradients(dx, x)], {x: 0.2})
    assert found == pytest.approx([np.sin(0.2), 1.0])


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("journey", [copied, imported, pickled])
def test_S27_what_a_carried_rule_closes_over_is_cut_out_too(journey, times):
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        k, w = gg.sin(x), gg.variable(3.0)

        @gg.custom_gradient
        def f(x):
            return x * x, lambda dy: dy * k * w

        y = gg.identity(f(x), name="y")
    xs, ys = [x], [y]
    for _ in range(times):
        g, xs, ys = journey(g, xs, ys)
    new = g.subgraph(xs, ys)
    y = new.nodes[-1].outputs[0]
    (x,) = (n.outputs[0] for n in new.nodes if n.type == "Placeholder")
    with new:
        assert values_of(gg.gradients(y, x), {x: 0.5}) == pytest.approx(3.0 * np.sin(0.5))


@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("journey", EVERY)
def test_S22_what_a_carried_rule_builds_belongs_to_the_region_that_is_open(journey, ask):
    with gg.Graph() as g:
        x, k = gg.placeholder((), name="x"), gg.constant(3.0)
        with gg.override_gradient(
            lambda site, dy: [k * d for d in site.default(dy)] if ask else dy * k
        ):
            y = gg.sin(x)
        y = gg.identity(y)
    g, (x,), (y,) = journey(g, [x], [y])
    with g:
        before = len(g.nodes)
        with gg.override_gradient(lambda site, *dys: [sum(dys)] * len(site.inputs)) as region:
            gg.gradients(y, x)
        built = [n for n in g.nodes[before:] if n.type not in ("Residual", "Constant", "Variable")]
        assert built
        assert {n.region for n in built} == {region}


# --- what a rule opened, and what is hidden in its region ----------------------------------------


def slope_of_one_with_a_second_rule(x):
    """The gradient of a function whose grad_fn reads an inner value and has a gradient itself."""

    @gg.custom_gradient
    def f(h):
        m = gg.sin(h)
        return gg.exp(m), lambda dy: (dy * m, lambda ddx: 5.0 * ddx * h)

    return gg.gradients(gg.sum(f(x)), x)


def of_a_region(x):
    with gg.override_gradient(lambda site, dy: dy * slope_of_one_with_a_second_rule(x)):
        y = gg.sin(x)
    return gg.gradients(gg.sum(y), x)


def batched(x):
    return gg.vmap(slope_of_one_with_a_second_rule)(x[None])[0]


@pytest.mark.parametrize("way", ["stay", "copy", "import", "pickle", "subgraph"])
@pytest.mark.parametrize(
    "build",
    [
        slope_of_one_with_a_second_rule,
        of_a_region,
        batched,
        gg.rules.checkpoint(slope_of_one_with_a_second_rule),
        gg.rules.checkpoint(gg.rules.checkpoint(slope_of_one_with_a_second_rule)),
        gg.rules.checkpoint(batched),
    ],
    ids=["plain", "region", "vmap", "checkpoint", "checkpoint twice", "checkpoint of vmap"],
)
def test_S27_what_a_second_rule_reads_of_the_inside_is_spoken_for_away_from_home(build, way):
    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        dx = gg.identity(build(x), name="dx")
    if way == "import":
        with gg.Graph() as there:
            gg.import_graph(g)
        g = there
    elif way != "stay":
        g = {
            "copy": lambda: g.copy(),
            "pickle": lambda: pickle.loads(pickle.dumps(g)),
            "subgraph": lambda: g.subgraph([x], [dx]),
        }[way]()
    x, dx = g.tensor("x:0"), g.tensor("dx:0")
    at = np.array([0.1, 0.2, 0.3])
    with g:
        found = gg.evaluate([dx, gg.gradients(gg.sum(dx), x)], {x: at})
    np.testing.assert_allclose(found, [np.sin(at), 5.0 * at])


def gone(way, x, y):
    """The two tensors after a journey."""
    g = x.graph
    if way == "import":
        with gg.Graph():
            there = gg.import_graph(g)
        return there[x], there[y]
    if way == "subgraph":
        new = g.subgraph([x], [y])
    else:
        new = g.copy() if way == "copy" else pickle.loads(pickle.dumps(g))
    return new.tensor(x.name), new.tensor(y.name)


@pytest.mark.parametrize("batched", [False, True], ids=["one", "vmap"])
@pytest.mark.parametrize(
    "ways",
    ["subgraph", "copy-subgraph", "import-subgraph", "pickle-subgraph", "subgraph-pickle-subgraph",
     "copy-pickle-subgraph", "pickle-copy-subgraph", "subgraph-subgraph-copy"],
)  # fmt: skip
def test_S27_what_rules_that_travelled_hold_on_to_is_cut_out_with_them(ways, batched):
    with gg.Graph() as g:
        x, w = gg.placeholder((1, 3), name="x"), gg.variable(np.full(3, 2.0))

        def f(x):
            k = gg.cos(x) * w
            rule = gg.Rule(lambda site, dy: dy * k, "rule", jvp=lambda site, dx: dx * k * 3.0)
            with gg.override_gradient(rule):
                return gg.sin(x)

        y = gg.identity(gg.vmap(f)(x) if batched else f(x), name="y")
    assert len(g.regions) == 1
    for way in ways.split("-"):
        x, y = gone(way, x, y)
    at = np.array([[0.1, 0.2, 0.3]])
    with x.graph:
        found = gg.evaluate([gg.gradients(y, x), gg.jvp(y, x)], {x: at})
    np.testing.assert_allclose(found, [2.0 * np.cos(at), 6.0 * np.cos(at)])


def test_a_rule_that_holds_on_to_a_region_can_be_cut_out():
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(lambda site, dy: 3.0 * dy) as region:
            a = gg.sin(x)
        with gg.override_gradient(lambda site, dy: 5.0 * dy if region.name else dy):
            gg.identity(gg.exp(a), name="y")
    new = g.subgraph([x], [g.tensor("y:0")])
    with new:
        dx = gg.gradients(new.tensor("y:0"), new.tensor("x:0"))
    assert gg.evaluate(dx, {new.tensor("x:0"): np.array(0.3)}) == 15


@pytest.mark.parametrize("batched", [False, True], ids=["one", "vmap"])
def test_S02_a_stamp_wins_over_a_map_where_it_is_imported(batched):
    def times(k):
        return lambda site, dy: [k * site.default(dy)[0]]

    def f(x):
        with gg.gradient_override_map({"Exp": times(3.0)}):
            return gg.exp(x) + gg.sin(x)

    with gg.Graph() as home:
        a = gg.placeholder((2,))
        b = gg.vmap(f)(a) if batched else f(a)
    with gg.Graph():
        x = gg.placeholder((2,))
        with gg.gradient_override_map({"Exp": times(5.0), "Sin": times(7.0)}, allow_empty=True):
            y = gg.import_graph(home, inputs={a: x})[b]
        found = gg.evaluate(gg.gradients(y, x), {x: np.zeros(2)})
    assert found.tolist() == [10.0, 10.0]


@pytest.mark.parametrize("nested", [False, True])
def test_S02_an_open_map_stamps_bodies_that_are_imported_too(nested):
    def f(x):
        inner = gg.tanh
        if nested:
            inner = lambda x: gg.cond(x > -8.0, lambda: gg.tanh(x), lambda: x)  # noqa: E731
        return gg.cond(x > -9.0, lambda: inner(x), lambda: x)

    with gg.Graph() as home:
        a = gg.placeholder(())
        b = f(a)
        with gg.gradient_override_map({"Tanh": twice}):
            c = f(a)
    with gg.Graph():
        x = gg.placeholder(())
        with gg.gradient_override_map({"Tanh": seven}):  # the map matches what it stamps there
            found = gg.import_graph(home, inputs={a: x})
        dxs = [gg.gradients(found[t], x) for t in (b, c)]
        assert values_of(dxs, {x: 0.5}) == [7.0, 2.0]


def test_imports_of_one_graph_draw_independent_numbers_in_bodies_too():
    """As do draws that are built here, before and after, and imports of what imported."""
    with gg.Graph() as library:
        x = gg.placeholder((), name="x")
        drawn = [gg.random.normal(())]
        drawn += [gg.cond(x > 0, lambda: gg.random.normal(()), lambda: gg.constant(0.0))]
        again = drawn[0] + 1.0
    with gg.Graph() as between:
        own = [gg.random.normal(())]
        found = [gg.import_graph(library, {x: 1.0}) for _ in range(2)]
        parts = [*own, *[made[t] for made in found for t in drawn], gg.random.normal(())]
        copied, first = gg.evaluate([found[0][again], found[0][drawn[0]]])
    assert copied == first + 1.0
    with gg.Graph():
        found = [gg.import_graph(between) for _ in range(2)]
        numbers = gg.evaluate([made[t] for made in found for t in parts])
    assert len({float(v) for v in numbers}) == 2 * len(parts)
    with gg.Graph():  # where nothing was drawn, they are those of the library
        found = gg.import_graph(library, {x: 1.0})
        assert gg.evaluate(found[drawn[0]]) == gg.evaluate(drawn[0])


@pytest.mark.parametrize("carry", [copied, imported])
def test_S15_a_rule_inside_is_called_once_for_a_default_that_is_asked_elsewhere(carry):
    def inner(site, dy):
        calls.append(site)
        return 3.0 * dy

    calls = []
    with gg.Graph() as g:
        x, k = gg.placeholder(()), gg.placeholder(())
        with gg.override_gradient(lambda site, dy: [k * d for d in site.default(dy)]):
            with gg.override_gradient(inner):
                y = gg.sin(x)
            y = 2.0 * y
    new, xs, ys = carry(g, [x, k], [y])
    with new:
        (dx,) = gg.gradients(ys, xs[:1])
        assert gg.evaluate(dx, dict(zip(xs, [0.5, 5.0]))) == 30.0
    assert len(calls) == 1


def test_a_subgraph_brings_what_a_batched_region_only_might_read():
    """An input of a settled region that none of its members reads any more."""
    rows, z = gg.placeholder((2, 3), name="rows"), gg.placeholder((2,), name="z")

    @gg.rules.checkpoint
    def inside(row, z):
        def body(i, c):
            with gg.override_gradient(lambda site, dy: dy * z):
                unread = gg.sin(c)
            assert unread.shape == (3,)
            return gg.tanh(c)

        return gg.fori_loop(0, 2, body, row)

    y = gg.vmap(inside)(rows, z)
    y = gg.identity(y, name="y")
    answers = []
    for graph in (y.graph, y.graph.subgraph([rows, z], y)):
        with graph:
            row, number, out = map(graph.tensor, ("rows:0", "z:0", "y:0"))
            dx = gg.gradients(gg.sum(out), row)
            feeds = {row: [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], number: [5.0, 7.0]}
            answers.append(gg.evaluate([out, dx], feeds))
    np.testing.assert_array_equal(*answers)
