"""S4, S27: marks that are edited after a journey count there, and those of the home do not."""

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.node import rule_name
from graphgrad.regions.index import bodies_of
from graphgrad.regions.select import members_of

from ..each import crossed

gg.register_gradient("edited/twice")(lambda site, dy: [2.0 * site.default(dy)[0]])
gg.register_gradient("edited/inner")(lambda site, dy: 3.0 * dy)


def seven(site, dy):
    return 7.0 * dy


def block(x, rule, inner):
    """sin(sin(x)) in a region, the first sin in a region in it: at 0 the rule's factor times 3."""
    with gg.override_gradient(rule):
        with gg.override_gradient(inner):
            y = gg.sin(x)
        return gg.sin(y) * 1.0


def program(kind, journey):
    """The marked program, and its graph, x and y after a journey."""
    with gg.Graph() as home:
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.full(3, 2.0))
        rule = {
            "name": "edited/twice",
            "function": lambda site, dy: [2.0 * site.default(dy)[0]],
            "closure": lambda site, dy: [w * site.default(dy)[0]],
            "entry": lambda site, dy: {site.inputs[0]: 2.0 * site.default(dy)[0]},
        }[kind]
        if "vmap" in journey:
            (y,) = gg.vmap(lambda x: block(x, rule, "edited/inner"))(x[None])
        else:
            y = block(x, rule, "edited/inner")
    return home, *travelled(home, x, y, journey)


def travelled(home, x, y, journey):
    for way in journey.split("-"):
        graph = x.graph
        if way == "import":
            with gg.Graph():
                found = gg.import_graph(graph)
            x, y = found[x], found[y]
        elif way == "subgraph":
            new = graph.subgraph([x], [y])
            x, y = new.tensor("x"), new.nodes[-1].outputs[0]
        elif way in ("copy", "pickle"):
            new = graph.copy() if way == "copy" else pickle.loads(pickle.dumps(graph))
            x, y = (new.nodes[t.node.index].outputs[t.index] for t in (x, y))
    return x, y


def edit(graph, how):
    """At x = 0 the gradient is 2 * 3, and after this what is returned."""
    first, second = (n for n in graph.nodes if n.type == "Sin" and n.origin is None)
    if how == "mark":
        graph.mark(second, seven, allow_inside=True)
        return 2 * 7 * 3
    if how == "group":
        one = next(n for n in graph.nodes[second.index :] if n.type == "Multiply")
        graph.mark(gg.select.nodes(second, one), seven, allow_inside=True)
        return 2 * 7 * 3
    inner = first.region if first.stamp is None else first
    if how == "replace":
        graph.mark(inner, seven, replace=True)
        return 2 * 7
    graph.unmark(inner)
    return 2


def asked(y, x):
    with x.graph:
        return gg.evaluate(gg.gradients(gg.sum(y), x), {x: np.zeros(3)})[0]


KINDS = ["name", "function", "closure", "entry"]
EDITS = ["mark", "group", "replace", "unmark"]
JOURNEYS = [
    "stay",
    "copy",
    "import",
    "subgraph",
    "pickle",
    "vmap",
    "copy-pickle",
    "pickle-copy",
    "pickle-pickle",
    "import-copy",
    "vmap-copy",
    "vmap-pickle",
    "import-pickle-import",
]


@crossed(JOURNEYS, KINDS, EDITS)
def test_S04_marks_edited_after_a_journey_count(journey, kind, how):
    _, x, y = program(kind, journey)
    expected = edit(x.graph, how)
    assert asked(y, x) == expected


@crossed(JOURNEYS[1:], KINDS, EDITS)
def test_S27_what_is_edited_at_home_changes_nothing_elsewhere(journey, kind, how):
    home, x, y = program(kind, journey)
    if "vmap" in journey:
        home = x.graph.copy()  # of a batch the home is out of reach
    edit(home, how)
    assert asked(y, x) == 6


@crossed(["copy", "import", "pickle", "copy-copy"], KINDS)
def test_S27_taking_the_outer_mark_off_at_home_changes_nothing_elsewhere(journey, kind):
    home, x, y = program(kind, journey)
    home.unmark(home.regions[0])
    home.mark(gg.select.op("Sin").together(), seven, allow_inside=True)
    assert asked(y, x) == 6


def test_S27_what_is_replaced_at_home_changes_no_tangent_of_a_copy():
    """Of a default in a branch, which the home answers."""
    with gg.Graph() as home:
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.full(3, 2.0))

        def in_a_branch(site, dy):
            return gg.cond(w[0] > 0.0, lambda: w * site.default(dy)[0], lambda: dy)

        y = block(x, in_a_branch, "edited/inner")
    x, y = travelled(home, x, y, "copy")
    home.mark(home.regions[0], seven, replace=True)
    with x.graph:
        tangent = gg.jvp(y, x, np.ones(3))
    assert gg.evaluate(tangent, {x: np.zeros(3)}).tolist() == [6, 6, 6]


@pytest.mark.parametrize("journey", JOURNEYS)
def test_S27_what_is_edited_after_a_derivative_was_taken_counts_for_later_ones(journey):
    _, x, y = program("closure", journey)
    assert asked(y, x) == 6
    assert asked(y, x) == 6
    expected = edit(x.graph, "replace")
    assert asked(y, x) == expected


@pytest.mark.parametrize("journey", ["copy", "import", "subgraph", "vmap", "pickle"])
def test_S30_a_name_inside_is_looked_up_when_a_copy_is_differentiated(journey):
    _, x, y = program("closure", journey)
    assert asked(y, x) == 6
    with gg.temporary_gradient("edited/inner", lambda site, dy: 5.0 * dy):
        here = asked(y, x)
    assert here == (6 if journey == "pickle" else 10)  # a pickle has its own
    assert asked(y, x) == 6


def times(factor):
    return lambda site, dy: factor * dy


def test_S30_the_name_of_a_batched_rule_is_looked_up_when_it_is_differentiated():
    gg.register_gradient("edited/again")(lambda site, dy: 2.0 * dy)
    with gg.Graph():
        x = gg.placeholder((2,))

        def f(x):
            with gg.override_gradient("edited/again"):
                return gg.sin(x)

        dx = []
        y = gg.vmap(f)(x)
        for factor in (2.0, 4.0):
            gg.register_gradient("edited/again", replace=True)(times(factor))
            dx.append(gg.gradients(y, x))
        found = gg.evaluate(dx, {x: np.zeros(2)})
    gg.unregister_gradient("edited/again")
    np.testing.assert_array_equal(found, [[2.0, 2.0], [4.0, 4.0]])


# --- where only the home can answer --------------------------------------------------------------


def by_gradients(site, dy):
    return gg.gradients(site.outputs, list(site.inputs), [dy])


@pytest.mark.parametrize("how", EDITS)
@pytest.mark.parametrize("journey", ["copy", "import", "vmap", "pickle"])
def test_S04_an_edit_that_cannot_count_is_an_error_that_names_the_outer_rule(journey, how):
    """A rule that differentiates the inside itself, and holds a tensor, is called at home."""

    def build():
        with gg.Graph() as g:
            x, one = gg.placeholder((3,), name="x"), gg.constant(1.0)

            def outer(site, dy):
                return [2.0 * one * dx for dx in by_gradients(site, dy)]

            if journey == "vmap":
                (y,) = gg.vmap(lambda x: block(x, outer, "edited/inner"))(x[None])
            else:
                y = block(x, outer, "edited/inner")
        return travelled(g, x, y, journey)

    x, y = build()
    assert asked(y, x) == 6
    edit(x.graph, how)
    with pytest.raises((gg.RegionError, gg.GradientError), match=r"outer.*test_edited_marks\.py"):
        asked(y, x)


def test_S04_at_home_an_equal_name_is_the_same_mark_and_the_rule_of_another_region_is_not():
    with gg.Graph() as home:
        x, one = gg.placeholder((3,), name="x"), gg.constant(1.0)
        with gg.override_gradient(lambda s, dy: [one * dx for dx in by_gradients(s, dy)]):
            with gg.override_gradient("edited/inner"):
                y = gg.sin(x)
            with gg.override_gradient(lambda s, dy: 5.0 * one * dy):
                y = gg.sin(y)
            y = y * 1.0
    x, y = travelled(home, x, y, "copy")
    _, first, second = x.graph.regions
    x.graph.mark(first, "".join(["edited", "/inner"]), replace=True)
    assert asked(y, x) == 15
    x.graph.mark(first, second.rule, replace=True)
    with pytest.raises(gg.RegionError, match="differ from those that were copied"):
        asked(y, x)


def test_S04_a_shared_input_of_a_batched_region_needs_the_marks_it_was_batched_with():
    """The partial of what examples share is one for each of them: the home gives it."""
    with gg.Graph() as g:
        x, w = gg.placeholder((2, 3)), gg.placeholder((3,))

        def f(x):
            with gg.override_gradient(lambda s, dy: [d * gg.abs(d) for d in s.default(dy)]):
                return gg.sum(gg.sin(x * w) * 1.0)

        y = gg.vmap(f)(x)
        feeds = {x: np.arange(6.0).reshape(2, 3), w: np.full(3, 0.3)}
        dw = gg.gradients(y, w)
        each = np.cos(feeds[x] * 0.3) * feeds[x]
        np.testing.assert_allclose(gg.evaluate(dw, feeds), (each * np.abs(each)).sum(0), 1e-12)
        (sin,) = (n for n in g.nodes if n.type == "Sin")
        g.mark(sin, seven, allow_inside=True)
        with pytest.raises(gg.RegionError, match=r"batched"):
            gg.gradients(y, w)
        g.unmark(sin)
        np.testing.assert_allclose(gg.evaluate(gg.gradients(y, w), feeds), gg.evaluate(dw, feeds))


@pytest.mark.parametrize("way", ["branch", "derivative", "region"])
@pytest.mark.parametrize("journey", ["copy", "import", "vmap", "pickle", "pickle-copy"])
def test_S17_a_default_in_a_branch_a_derivative_or_a_region_of_the_rule(way, journey):
    """What a travelled rule does with its default is what it does at home, edited or not."""
    with gg.Graph() as g:
        x, two = gg.placeholder((3,), name="x"), gg.constant(2.0)

        def rule(site, dy):
            if way == "branch":
                return gg.cond(gg.sum(two) > 0, lambda: 2.0 * site.default(dy)[0], lambda: dy)
            if way == "region":
                with gg.override_gradient(
                    lambda s, *ds: [ds[-1]] * len(s.inputs), allow_empty=True
                ):
                    return two * site.default(dy)[0]
            (dx,) = site.default(dy)
            return two * dx + 0.0 * gg.gradients(gg.sum(dx), site.inputs[0], unconnected="zero")

        def f(x):
            return block(x, rule, "edited/inner")

        (y,) = gg.vmap(f)(x[None]) if journey == "vmap" else (f(x),)
        x2, y2 = travelled(g, x, y, journey)
    for a, b in ((x, y), (x2, y2)):
        assert asked(b, a) == 6
    second = []
    for a, b in ((x, y), (x2, y2)) if way != "region" else ():
        with a.graph:
            dx = gg.gradients(gg.sum(b), a)
            again = gg.gradients(gg.sum(dx), a, unconnected="zero")
            second.append(gg.evaluate(again, {a: np.full(3, 0.3)}))
    np.testing.assert_allclose(*second or (0, 0), rtol=1e-12)


def test_S27_a_gradient_without_the_outputs_of_its_region_can_be_cut_out():
    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy * dy):
            y = gg.sin(x)
        loss = gg.sum(gg.gradients(3.0 * y, x) * x)
    new = g.subgraph([x], loss)
    x2, loss2 = new.tensor("x"), new.nodes[-1].outputs[0]
    with new:
        found = gg.evaluate([loss2, gg.gradients(loss2, x2)], {x2: np.ones(3)})
    assert found[0] == 27.0
    np.testing.assert_array_equal(found[1], np.full(3, 9.0))


@pytest.mark.parametrize("ways", ["", "copy", "import", "copy-copy", "import-copy"])
@pytest.mark.parametrize("batched", [False, True], ids=["one", "vmap"])
def test_S30_a_name_is_looked_up_for_each_order_after_any_journey(batched, ways):
    def f(x):
        with gg.override_gradient("edited/order"):
            return gg.sin(x)

    try:
        gg.register_gradient("edited/order")(lambda s, dy: dy * (1.0 + 0.1 * s.outputs[0]))
        with gg.Graph() as g:
            x = gg.placeholder((2,))
            y = gg.vmap(f)(x) if batched else f(x)
        x, y = travelled(g, x, y, ways)
        with x.graph:
            dx = gg.gradients(y, x)
            gg.register_gradient("edited/order", replace=True)(times(10.0))
            found = gg.evaluate(gg.gradients(dx, x), {x: np.array([0.3, 0.9])})
    finally:
        gg.unregister_gradient("edited/order")
    np.testing.assert_allclose(found, 1.0)


@pytest.mark.parametrize("before", [False, True])
def test_S04_regions_that_overlap_in_the_order_of_building_lead_to_each_others_late_members(before):
    with gg.Graph() as g:
        z = gg.placeholder(())
        first, _, last = gg.sin(z), gg.cos(z), gg.tanh(z)
        a = gg.sin(z)
        reader = gg.exp(a)
        b = gg.cos(z)
        late_a = b * a
        x = gg.tanh(z)
        late_b = x * b
    apart = [((first, last), 2.0)] if before else []
    for members, k in (*apart, ((a, late_a), 5.0), ((b, late_b), 3.0)):

        def rule(site, *dys, k=k):
            return dict.fromkeys(site.inputs, k * dys[0])

        g.mark(gg.select.nodes(*members), rule)
    with g:
        dx = gg.gradients(reader, x)
    assert gg.evaluate(dx, {z: np.array(0.3)}) == pytest.approx(15 * np.exp(np.sin(0.3)))


def test_S04_a_mark_inside_that_stops_a_gradient_counts_after_one_was_taken():
    with gg.Graph() as home:
        x, w = gg.placeholder((), name="x"), gg.placeholder((), name="w")
        with gg.override_gradient(lambda site, dy: [2.0 * d for d in site.default(dy)]):
            y = gg.sin(x) * w
    g = home.copy()
    x, w, y = (g.nodes[t.node.index].outputs[0] for t in (x, w, y))
    with g:
        before = gg.gradients(y, [x, w], unconnected="zero")
        g.mark("Sin", lambda site, dy: gg.NO_GRAD, allow_inside=True)
        after = gg.gradients(y, [x, w], unconnected="zero")
        found = gg.evaluate([*before, *after], {x: np.array(0.3), w: np.array(5.0)})
    assert found == pytest.approx([10 * np.cos(0.3), 2 * np.sin(0.3), 0.0, 2 * np.sin(0.3)])


def test_S04_an_edit_of_what_the_home_builds_once_more_is_an_error_that_names_the_outer_rule():
    """The home gives the partial of what is shared: a checkpoint there has marks of its own."""

    def f(w, x):
        @gg.custom_gradient
        def g(x):
            with gg.override_gradient("edited/inner"):
                y = gg.exp(x)
            return y * 1.0, lambda dy: dy * y

        with gg.override_gradient("edited/scaled", inputs=[w, x]):
            return gg.rules.checkpoint(lambda w, x: w * g(x))(w, x) * 1.0

    gg.register_gradient("edited/scaled", replace=True)(
        lambda site, dy: [0.5 * d for d in site.default(dy)]
    )
    with gg.Graph() as g:
        w, x = gg.placeholder(()), gg.placeholder((2,))
        y = gg.vmap(f, in_axes=(None, 0))(w, x)
        g.mark(gg.select.rule("edited/inner"), seven, replace=True)
        with pytest.raises(gg.RegionError, match=r"edited/scaled"):
            gg.gradients(y, [w, x])


@pytest.mark.parametrize("gone", [["edited/inner"], ["edited/inner", "edited/twice"]])
def test_S04_marks_that_are_taken_off_in_a_branch_of_what_was_stored_leave_the_others(gone):
    """The default of the rule around the choice made copies of its branches when it was traced."""
    with gg.Graph() as home:
        x = gg.placeholder((), name="x")
        with gg.override_gradient("edited/twice"):
            y = gg.cond(x < 1.0, lambda: block(x, seven, "edited/inner"), lambda: x) * 1.0
    pickle.dumps(home)
    for name in gone:
        home.unmark(gg.select.rule(name))
    copy = home.copy()
    x, y = copy.tensor("x:0"), copy.nodes[y.node.index].outputs[0]
    with copy:
        found = gg.evaluate(gg.gradients(y, x), {x: np.array(0.0)})
    assert found == (7.0 if len(gone) == 2 else 14.0)


def test_a_rule_under_vmap_asks_anew_for_each_question():
    """What flows inside may be to other inputs than at the first question."""

    def both(x, w):
        with gg.override_gradient(lambda site, dy: [2.0 * dx for dx in site.default(dy)]):
            return gg.sin(x) * gg.exp(w)

    with gg.Graph() as graph:
        x, w = gg.placeholder((2,)), gg.placeholder((2,))
        y = gg.vmap(both)(x, w)
        before = gg.gradients(y, [x, w])
        graph.mark("Sin", lambda site, dy: gg.NO_GRAD, allow_inside=True)
        after = gg.gradients(y, [x, w], unconnected="zero")
        found = gg.evaluate([*before, *after], {x: [0.0, 0.0], w: [0.0, 0.0]})
    assert [a.tolist() for a in found] == [[2, 2], [0, 0], [0, 0], [0, 0]]


# --- where only the home can answer, and what is marked lies in a body --------------------------


def sine(x):
    """sin(exp(x) - 1) in a region: at 0 the factor is 3."""
    with gg.override_gradient("edited/inner"):
        return unmarked(x)


def unmarked(x):
    return gg.sin(gg.exp(x) - 1.0)


BODIES = {
    "cond": lambda f, x: gg.cond(x < 1.0, lambda: f(x), lambda: x),
    "switch": lambda f, x: gg.switch(gg.cast(x < 1.0, "int32"), [gg.exp, f, gg.sin], x),
    "scan": lambda f, x: gg.scan(lambda c, _: (f(c), c), x, length=1)[0],
    "while": lambda f, x: gg.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (gg.constant(0), x)
    )[1],
    "checkpoint": lambda f, x: gg.rules.checkpoint(f)(x),
    "scan in a cond": lambda f, x: BODIES["cond"](lambda x: BODIES["scan"](f, x), x),
    "cond in a scan": lambda f, x: BODIES["scan"](lambda x: BODIES["cond"](f, x), x),
    "cond in a checkpoint": lambda f, x: gg.rules.checkpoint(lambda x: BODIES["cond"](f, x))(x),
}


def in_a_branch(site, dy):
    """2 x the default, which a branch asks for: away from home the home answers."""
    two = gg.constant(2.0)
    return gg.cond(two > 0.0, lambda: two * site.default(dy)[0], lambda: dy)


def with_body(body, journey="", inner=sine, rule=in_a_branch):
    """A region around a body with something in it: the graph at home, x and y after a journey."""
    with gg.Graph() as home:
        x, one = gg.placeholder((), name="x"), gg.constant(1.0)

        def f(x):
            with gg.override_gradient(lambda site, dy: one * rule(site, dy)):
                return BODIES[body](inner, x) * 1.0

        y = gg.identity(gg.vmap(f)(x[None])[0] if journey == "vmap" else f(x))
    if journey == "import in a region":
        with gg.Graph():
            with gg.override_gradient(lambda site, *dys: site.default(*dys)):
                there = gg.import_graph(home)
            return home, there[x], gg.identity(there[y])
    return home, *travelled(home, x, y, journey)


def of_body(y, x):
    with x.graph:
        return gg.evaluate(gg.gradients(y, x), {x: 0.0})


def inner_region(graph):
    """The region of the forward body: those of derivatives are in graphs that were made later."""
    bodies = sorted(bodies_of(graph), key=lambda body: body.number)
    inner = [r for body in bodies for r in body.regions if rule_name(r.rule) == "edited/inner"]
    return next(filter(members_of, inner))


AWAY = ["copy", "import in a region", "subgraph", "pickle", "vmap"]
OTHERS = r"marks of .* differ from|has a different rule here than when"


@crossed(AWAY, sorted(BODIES))
def test_S27_marks_in_a_body_count_where_a_branch_of_the_rule_asks_for_its_default(journey, body):
    """A change of them, which the home does not know of, is an error, and none as it is undone."""
    _, x, y = with_body(body, journey)
    region = inner_region(x.graph)
    before = region.rule
    region.graph.mark(region, seven, replace=True)
    with pytest.raises((gg.RegionError, gg.GradientError), match=OTHERS):
        of_body(y, x)
    region.graph.mark(region, before, replace=True)
    assert of_body(y, x) == 6.0


@crossed(["copy", "import", "pickle", "vmap"], ["cond", "scan", "cond in a checkpoint"], EDITS[::3])
def test_S04_marks_put_in_or_taken_from_a_body_are_an_error_where_the_home_answers(
    journey, body, how
):
    _, x, y = with_body(body, journey)
    region = inner_region(x.graph)
    if how == "unmark":
        region.graph.unmark(region)
    else:
        exp = next(n for n in region.graph.nodes if n.region is region)
        region.graph.unmark(region)
        region.graph.mark(exp, seven, allow_inside=True)
    with pytest.raises((gg.RegionError, gg.GradientError), match=OTHERS):
        of_body(y, x)


@crossed(["copy", "import", "subgraph"], ["cond", "while", "cond in a scan"])
def test_S27_marks_changed_in_a_body_at_home_are_an_error_elsewhere(journey, body):
    home, x, y = with_body(body, journey)
    home.mark(gg.select.rule("edited/inner"), seven, replace=True)
    with pytest.raises(gg.RegionError, match="have since changed in the original graph"):
        of_body(y, x)


def test_S27_a_region_that_is_marked_at_home_later_is_an_error_elsewhere():
    with gg.Graph() as home:
        x = gg.placeholder((3,), name="x")
        one = gg.constant(1.0)
        with gg.override_gradient(lambda s, dy: [one * dx for dx in by_gradients(s, dy)]):
            y = gg.sin(gg.exp(x) - 1.0) * 1.0
    x, y = travelled(home, x, y, "copy")
    exp, sub, sin = (n for n in home.nodes if n.type in ("Exp", "Subtract", "Sin"))
    home.mark(gg.select.nodes(exp, sub, sin), seven, allow_inside=True)
    with pytest.raises(gg.RegionError, match=r"the marks of Exp_\d+ .* differ"):
        asked(y, x)


def test_S04_the_step_that_an_edit_is_an_error_for_is_the_first_in_the_graph():
    for body in ("cond", "scan", "scan in a cond"):
        _, x, y = with_body(body, "copy", unmarked)
        x.graph.mark(gg.select.op("Sin", "Exp", "Subtract"), "Identity", allow_inside=True)
        with pytest.raises(gg.RegionError, match=r"the marks of Exp_\d+ "):
            of_body(y, x)


@pytest.mark.parametrize("body", ["cond", "scan", "cond in a scan", "checkpoint"])
def test_S05_a_choice_for_a_step_in_a_body_counts_where_a_branch_asks_for_the_default(body):
    """Away from home it is an error."""
    for journey in ("", "copy", "vmap"):
        _, x, y = with_body(body, journey)
        chosen = {inner_region(x.graph): seven}
        with x.graph:
            if journey:
                with pytest.raises(gg.GradientError, match="its default is built from that graph"):
                    gg.gradients(y, x, overrides=chosen)
            else:
                dx = gg.gradients(y, x, overrides=chosen)
                assert gg.evaluate(dx, {x: 0.0}) == 14.0


def deferred(site, dy):
    return 2.0 * site.default(dy)[0]


@crossed(["", "copy", "import", "vmap", "pickle"], ["cond", "scan", "cond in a scan"])
def test_S04_a_mark_in_a_body_counts_for_what_a_derivative_built_once_more_of_it(journey, body):
    """As for the body itself, through which it goes where the default is asked for in no branch."""

    def second(rule, choose):
        _, x, y = with_body(body, journey, unmarked, rule)
        _, sin = min((b.number, n) for b in bodies_of(x.graph) for n in b.nodes if n.type == "Sin")
        with x.graph:
            dx = gg.gradients(y, x)
            if not choose:
                sin.graph.mark(sin, five_times_input, allow_inside=True)
            chosen = {sin: five_times_input} if choose else None
            again = gg.gradients(dx, x, unconnected="zero", overrides=chosen)
            return gg.evaluate(again, {x: 0.3})

    for choose in (False, True):
        assert second(in_a_branch, choose) == pytest.approx(second(deferred, choose), rel=1e-12)


def five_times_input(site, dy):
    return 5.0 * dy * site.inputs[0]


@pytest.mark.parametrize("journey", ["", "copy", "import", "pickle"])
def test_S04_a_mark_taken_off_in_a_body_is_off_in_what_a_derivative_built_once_more_of_it(journey):
    """Whether the graph or the body itself is told."""

    def scaled(x):
        with gg.override_gradient(lambda site, dy: dy * site.outputs[0]):
            return gg.sin(x)

    for by_body in (False, True):
        _, x, y = with_body("cond", journey, scaled)
        _, region = (r for body in bodies_of(x.graph) for r in body.regions)
        with x.graph:
            dx = gg.gradients(y, x)
            (region.graph if by_body else x.graph).unmark(region)
            again = gg.gradients(dx, x)
        expected = [2.0 * np.sin(0.3), 2.0 * np.cos(0.3)]
        assert gg.evaluate([dx, again], {x: 0.3}) == pytest.approx(expected)


@pytest.mark.parametrize("journey", ["vmap", "vmap-copy", "vmap-pickle"])
def test_S04_a_stamp_that_was_batched_is_one_step_where_the_home_answers(journey):
    with gg.Graph() as home:
        x, one = gg.placeholder((), name="x"), gg.constant(1.0)

        def f(x):
            with gg.override_gradient(lambda site, dy: one * in_a_branch(site, dy)):
                with gg.gradient_override_map({"Sin": "edited/inner"}):
                    y = gg.sin(x)
                return y * 1.0

        y = gg.identity(gg.vmap(f)(x[None])[0])
    x, y = travelled(home, x, y, journey)
    assert of_body(y, x) == 6.0
    (stamped,) = (region for region in x.graph.regions if region.stamped)
    x.graph.mark(stamped, seven, replace=True)
    with pytest.raises((gg.RegionError, gg.GradientError), match=OTHERS):
        of_body(y, x)


@pytest.mark.parametrize("put", [True, False])
def test_S04_a_mark_in_a_batched_loop_is_an_error_in_each_body_that_is_built_of_it(put):
    """Where examples end at different runs, what the test reads is built apart from the body."""
    with gg.Graph() as g:
        x, one = gg.placeholder((2,)), gg.constant(1.0)

        def f(x):
            with gg.override_gradient(lambda site, dy: one * in_a_branch(site, dy)):
                going = lambda y: gg.sin(y) < 0.5  # noqa: E731
                return gg.while_loop(going, lambda y: gg.exp(0.2 + y) - 1.0, x) * 1.0

        y = gg.vmap(f)(x)
        before = gg.gradients(gg.sum(y), x)
        bodies = sorted(bodies_of(g), key=lambda body: body.number)
        exps = [n for b in bodies for n in b.nodes if n.type == "Exp" and n.origin is None]
        (first, *_), exps = exps, [n for n in exps if n.graph is exps[0].graph]
        for exp in exps if put else ():
            first.graph.mark(exp, seven, allow_inside=True)
            with pytest.raises(gg.RegionError, match=r"the marks of Exp_\d+ "):
                gg.gradients(gg.sum(y), x)
            first.graph.unmark(exp)
        after = gg.gradients(gg.sum(y), x)
    found = gg.evaluate([before, after], {x: [0.1, 0.4]})
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("edited_at", ["home", "copy"])
def test_S04_a_region_around_whole_regions_is_an_error_where_the_home_answers(edited_at):
    with gg.Graph() as home:
        x, one = gg.placeholder((), name="x"), gg.constant(1.0)
        with gg.override_gradient(lambda site, dy: one * in_a_branch(site, dy)):
            with gg.override_gradient("edited/inner"):
                y = gg.sin(x)
            with gg.override_gradient("edited/inner"):
                z = gg.sin(y)
            z = z * 1.0
    x, z = travelled(home, x, z, "copy")
    assert of_body(z, x) == 18.0
    graph = home if edited_at == "home" else x.graph
    graph.mark(gg.select.op("Sin").together(), seven, allow_inside=True)
    with pytest.raises(gg.RegionError, match="the marks of edited/inner"):
        of_body(z, x)
