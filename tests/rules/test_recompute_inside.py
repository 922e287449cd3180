"""A checkpoint is transparent: what is inside counts as it would without it, wherever it is."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphgrad as gg
from graphgrad import rules
from graphgrad.base.errors import GradientError, GraphError, GraphGradError, RegionError

from ..differentiate.helpers import value, values
from ..each import each, every

pytestmark = pytest.mark.filterwarnings("ignore:PyFunction:graphgrad.PerformanceWarning")

X, W = np.array([0.3, -0.2, 0.7]), np.array([1.5, 2.0, -0.5])


def seven(site, dy):
    return 7 * dy


def twice_default(site, dy):
    return [2 * site.default(dy)[0]]


@pytest.fixture(autouse=True)
def _named():
    with gg.temporary_gradient("test/twice", twice_default):
        yield


def within(rule, f, **options):
    """f in a region."""

    def marked(x):
        with gg.override_gradient(rule, **options):
            return f(x)

    return marked


@gg.custom_gradient
def tripled(x):
    y = gg.exp(x)
    return y, lambda dy: 3 * dy * y


def of_gradient(x):
    return gg.gradients(gg.sum(gg.sin(x) * x), x) * x


def of_gradient_with_a_choice(x):
    y = gg.sum(gg.sin(x) * x)
    return gg.gradients(y, x, overrides={"Sin": seven}) * x


def of_gradient_with_a_group(x):
    a = gg.sin(x)
    b = a * a
    group = gg.select.nodes(a, b)
    return gg.gradients(gg.sum(b * x), x, overrides={group: seven}) * x


def of_gradient_of_a_region(x):
    y = within(lambda s, dy: dy * s.outputs[0], lambda x: gg.sin(x) * 2.0)(x)
    return gg.gradients(gg.sum(y * y), x) * x


def closing_over_the_inside(x):
    h = gg.cos(x)
    rule = lambda s, dy: [2 * s.default(dy)[0] * h]  # noqa: E731
    return within(rule, lambda x: gg.sin(x) * gg.cos(x))(x) * h


def chosen(x, inside=lambda x: gg.sin(x) * gg.exp(x)):
    return gg.cond(gg.sum(x) > 0, lambda: inside(x), lambda: x * 2.0)


def of_gradient_of_a_choice(x):
    return gg.gradients(gg.sum(chosen(x)), x) * x


def in_a_branch_closing_over_the_inside(x):
    h = gg.cos(x)
    return chosen(x, within(lambda s, dy: [2 * s.default(dy)[0] * h], gg.sin))


def by_python(x):
    square = partial(gg.py_function, lambda a: a**2, out_types=[((3,), "float64")])
    return square([x], vjp=lambda node, dy: [2 * dy * node.inputs[0]]) * x


def mapped(x):
    with gg.gradient_override_map({"Sin": seven}):
        return gg.sin(gg.sin(x) * 2.0)


def nested(x):
    return gg.sin(rules.checkpoint(lambda h: tripled(h) * of_gradient(h))(x))


def with_a_variable_of_its_own(x):
    v = gg.variable(W)
    return x * v * gg.sin(v * x)


FUNCTIONS = {
    "custom_gradient": tripled,
    "a gradient": of_gradient,
    "a gradient with a choice": of_gradient_with_a_choice,
    "a gradient with a group": of_gradient_with_a_group,
    "a gradient of a region": of_gradient_of_a_region,
    "a rule that closes over the inside": closing_over_the_inside,
    "cond": chosen,
    "cond of a region": partial(chosen, inside=within(twice_default, gg.sin)),
    "cond of a closure": in_a_branch_closing_over_the_inside,
    "cond of cond": partial(chosen, inside=chosen),
    "a gradient of cond": of_gradient_of_a_choice,
    "vmap": gg.vmap(lambda a: tripled(a) * a),
    "py_function": by_python,
    "dropout": lambda x: gg.nn.dropout(gg.exp(x), 0.5, seed=3),
    "a map": mapped,
    "a region in a region": within(
        twice_default, lambda x: gg.sin(within(lambda s, dy: 3 * dy, gg.sin)(x)) * gg.exp(x)
    ),
    "a mapping": within(lambda s, dy: {s.inputs[0]: 5 * dy}, gg.sin),
    "order through": within(lambda s, dy: dy * s.outputs[0], gg.sin, order="through"),
    "order again": within(lambda s, dy: dy * s.outputs[0], gg.sin),
    "a checkpoint": nested,
    "a variable": with_a_variable_of_its_own,
    "a jvp": lambda x: gg.jvp(gg.sin(x) * x, x, x),
}
JOURNEYS = ("home", "copy", "import", "pickle", "vmap", "region", "cond")


def first_word(name):
    return name.partition(",")[0]


def for_each_function(*others):
    """All of them with each of these arguments, in one test a function; by default a third."""
    named = [(f"{k}, {given}", f, *given) for k, f in FUNCTIONS.items() for given in others]
    return each(named, first_word, sample=3)


def moved(graph, journey):
    """A graph after a journey, and what stands there for a tensor of it."""
    if journey == "import":
        with gg.Graph() as there:
            found = gg.import_graph(graph)
        return there, found.__getitem__
    there = {"copy": graph.copy, "pickle": lambda: pickle.loads(pickle.dumps(graph))}.get(
        journey, lambda: graph
    )()
    return there, lambda t: there.nodes[t.node.index].outputs[t.index]


def put(f, x, journey):
    """f where it is to hold."""
    if journey == "vmap":
        return gg.vmap(f)(gg.stack([x, 2.0 * x]))
    if journey == "region":
        return within(lambda s, *dys: [2 * d for d in s.default(*dys)], lambda x: f(x * 1.0))(x)
    if journey == "cond":
        return gg.cond(gg.sum(x) > -9.0, lambda: f(x), lambda: x * 1.0)
    return f(x)


def answers(f, journey="home", overrides=None, edit=None, backend="numpy"):
    """First and second derivatives, after a journey and an edit there."""
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        y = gg.sum(gg.square(put(f, x, journey)))
    there, at = moved(graph, journey)
    x, y = at(x), at(y)
    if edit is not None:
        edit(there)
    with there:
        first = gg.gradients(y, x, overrides=overrides, unconnected="zero")
        second = gg.gradients(gg.sum(first * W), x, overrides=overrides, unconnected="zero")
        return gg.compile(x, [first, second], backend=backend, verify=True)(X)


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def agree(f, *given, **options):
    """With a checkpoint and without one the same values, or an error of the same class."""
    try:
        expected = answers(f, *given, **options)
    except GraphGradError as error:
        with pytest.raises(type(error)):
            answers(rules.checkpoint(f), *given, **options)
    else:
        same(answers(rules.checkpoint(f), *given, **options), expected)


@for_each_function(*[(journey,) for journey in JOURNEYS])
def test_S27_what_is_inside_counts_as_without_a_checkpoint(f, journey):
    agree(f, "copy" if f is by_python and journey == "pickle" else journey)


@for_each_function(
    *[(journey, {"Sin": seven}) for journey in ("home", "vmap")],
    ("home", {"Exp": None, "Cos": seven}),
)
def test_S05_choices_count_inside_at_both_orders(f, journey, overrides):
    def with_all(x):  # so that every entry selects something
        return f(x) + gg.sin(x) * gg.exp(x) * gg.cos(x)

    agree(with_all, journey, overrides=overrides)


@pytest.mark.slow
@for_each_function(*[(journey, {"Sin": seven}) for journey in ("copy", "import", "region", "cond")])
def test_S05_choices_count_inside_after_more_journeys(f, journey, overrides):
    test_S05_choices_count_inside_at_both_orders.__wrapped__(f, journey, overrides)


def two_sines(x):
    with gg.override_gradient("test/twice"):
        with gg.override_gradient(lambda s, dy: 3 * dy):
            y = gg.sin(x)
        return gg.sin(y) * 1.0


def sines(graph):
    return [n for n in graph.nodes if n.type == "Sin" and n.origin is None]


EDITS = {
    "mark": lambda g: g.mark(sines(g)[1], seven, allow_inside=True),
    "replace": lambda g: g.mark(sines(g)[0].region, seven, replace=True),
    "unmark": lambda g: g.unmark(sines(g)[0].region),
    "unmark the outer": lambda g: g.unmark(sines(g)[1].region),
    "group": lambda g: g.mark(
        gg.select.nodes(sines(g)[1], sines(g)[1].consumers[0]), "test/twice", allow_inside=True
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("depth", every(2, [3, 1]))
@pytest.mark.parametrize("journey", ["home", "copy", "import", "pickle"])
def test_S04_marks_put_replaced_and_removed_later_count(edit, depth, journey):
    f = two_sines
    for _ in range(depth):
        f = rules.checkpoint(f)
    same(answers(f, journey, edit=edit), answers(two_sines, "home", edit=edit))


@pytest.mark.parametrize(("edit", "wanted"), [("mark", 42.0), ("replace", 14.0), ("unmark", 2.0)])
def test_S17_the_default_of_a_rule_inside_is_the_inside_as_it_stands(edit, wanted):
    x = gg.placeholder((), name="x")
    y = rules.checkpoint(two_sines)(x)
    assert value(gg.gradients(y, x), {x: 0.0}) == 6.0
    EDITS[edit](x.graph)
    assert value(gg.gradients(y, x), {x: 0.0}) == wanted


LATER = {
    "mark": lambda g, sin: g.mark(sin, seven, allow_inside=True, replace=True),
    "unmark": lambda g, sin: g.unmark(sin),
    "another rule": lambda g, sin: g.mark(sin.region, seven, replace=True),
    "unmark the region": lambda g, sin: g.unmark(sin.region),
    "group": lambda g, sin: g.mark(_of_two(sin), "test/twice", allow_inside=True),
    "a group of which one is declared": lambda g, sin: g.mark(
        _of_two(sin),
        "test/twice",
        inputs=[sin.inputs[0]],
        outputs=[sin.consumers[0].outputs[0]],
        allow_inside=True,
    ),
    "a group for a while": lambda g, sin: g.unmark(
        g.mark(_of_two(sin), seven, allow_inside=True)[0]
    ),
    "boundary": lambda g, sin: g.mark(sin, seven, order="through", allow_inside=True, replace=True),
}
MARKED = {
    "nothing": lambda x: gg.sin(x) * 2.0,
    "a region": within(lambda s, dy: 3 * dy * s.outputs[0], lambda x: gg.sin(x) * 2.0),
    "a stamp": mapped,
    "a stamp in a region": within("test/twice", lambda x: mapped(x) * x),
    "a closure": closing_over_the_inside,
    "a gradient": of_gradient_of_a_region,
    "cond": partial(chosen, inside=within(twice_default, lambda x: gg.sin(x) * 2.0)),
}


def _of_two(sin):
    return gg.select.nodes(sin, sin.consumers[0])


def edited_between(f, edit, journey, after):
    """Derivatives of the first three orders, of which `after` are taken before an edit."""
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        y = gg.sum(gg.square(f(x)))
    there, at = moved(graph, journey)
    x, y = at(x), at(y)
    found = []
    with there:
        for order in range(3):
            if order == after:
                edit(there, first_sine(there))
            y = gg.sum(gg.gradients(y, x, unconnected="zero") * W)
            found.append(y)
        return gg.compile(x, found, backend="numpy", verify=True)(X)


def first_sine(graph):
    bodies = [p.outputs[0].graph for n in graph.nodes for p in n.op.bodies if n.origin is None]
    return next(n for g in (graph, *bodies) for n in g.nodes if n.type == "Sin" and not n.origin)


def for_each_edit(*others):
    """Of everything that is marked, in one test an edit."""
    named = [
        (f"{edit}, {name}, {given}", f, LATER[edit], *given)
        for edit in LATER
        for name, f in MARKED.items()
        for given in others
    ]
    return each(named, first_word, sample=3)


@for_each_edit((1, "home"))
def test_S04_marks_edited_between_orders_count_for_what_was_recomputed(f, edit, after, journey):
    plain = within(lambda s, *dys: list(s.default(*dys)), f)
    try:
        expected = edited_between(plain, edit, journey, after)
    except GraphGradError as error:
        with pytest.raises(type(error)):
            edited_between(rules.checkpoint(f), edit, journey, after)
        return
    again = [rules.checkpoint(f)]
    if after == 1:
        again.append(rules.checkpoint(again[0]))
    for g in again:
        same(edited_between(g, edit, journey, after), expected)


@pytest.mark.ci
@for_each_edit((2, "home"), (1, "copy"), (2, "import"))
def test_S04_marks_edited_between_orders_after_a_journey(f, edit, after, journey):
    test_S04_marks_edited_between_orders_count_for_what_was_recomputed.__wrapped__(
        f, edit, after, journey
    )


@pytest.mark.parametrize("journey", ["home", "vmap", "region", "cond"])
@pytest.mark.parametrize("how", ["replace", "temporary"])
def test_S30_a_name_means_another_rule_for_what_was_recomputed_too(journey, how):
    f = within("test/renamed", gg.sin)
    found = []
    for g in (f, rules.checkpoint(f)):
        x = gg.placeholder((3,))
        with gg.temporary_gradient("test/renamed", lambda s, dy: 3 * dy * s.outputs[0]):
            first = gg.gradients(gg.sum(gg.square(put(g, x, journey))), x)
        if how == "replace":
            gg.register_gradient("test/renamed", replace=True)(seven)
            second = gg.gradients(gg.sum(first * W), x)
            gg.unregister_gradient("test/renamed")
        else:
            with gg.temporary_gradient("test/renamed", seven):
                second = gg.gradients(gg.sum(first * W), x)
        found.append(value(second, {x: X}))
    np.testing.assert_allclose(*found)


def test_S04_a_group_that_was_recomputed_in_part_is_an_error_before_anything_changes():
    x = gg.placeholder((3,), name="x")
    y = rules.checkpoint(lambda x: gg.exp(gg.sin(x)))(x)
    sin, exp = (n for n in x.graph.nodes if n.type in ("Sin", "Exp"))
    gg.gradients(y, x)
    again = next(n for n, of in x.graph.again.items() if of is exp)
    del x.graph.again[again]
    with pytest.raises(RegionError, match=r"recomputed in part.*Exp_\d+ 0 times.*Sin_\d+ 1 times"):
        x.graph.mark(gg.select.nodes(sin, exp), seven, allow_inside=True)
    assert sin.region is exp.region
    assert sin.region.rule == rules.recompute.CHECKPOINT


def test_S04_inputs_that_a_mark_declares_are_declared_of_what_was_recomputed_too():
    x, w = gg.placeholder(()), gg.placeholder(())
    y = rules.checkpoint(lambda x, w: gg.exp(gg.sin(x) * w))(x, w)
    product, exp = (n for n in x.graph.nodes if n.type in ("Multiply", "Exp"))
    gg.gradients(y, x)
    sine, factor = product.inputs
    chosen = gg.select.nodes(product, exp)
    x.graph.mark(chosen, seven, inputs=[factor, sine], outputs=exp.outputs, allow_inside=True)
    first, second = x.graph.regions[-2:]
    twins = {of: new for new, of in x.graph.again.items()}
    assert twins[first] is second
    (read,) = {*twins[product].inputs} - {twins[sine.node].outputs[0]}
    assert second.pinned_inputs == (read, twins[sine.node].outputs[0])
    assert second.pinned_outputs == twins[exp].outputs


def test_S04_a_mark_by_type_counts_inside_and_outside():
    x = gg.placeholder((), name="x")
    y = rules.checkpoint(lambda h: gg.sin(h) * 1.0)(gg.sin(x))
    assert len(x.graph.mark("Sin", seven)) == 2
    assert value(gg.gradients(y, x), {x: 0.0}) == 49.0
    assert len(gg.select.op("Sin").find(x.graph)) == 2  # not what is built once more


def test_S27_the_derivative_that_was_taken_goes_along_with_what_it_was_built_from():
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        y = gg.sum(rules.checkpoint(lambda x: gg.sin(x) * gg.exp(x))(x))
        first = gg.gradients(y, x)
    found = []
    for journey in ("home", "copy", "import", "pickle"):
        there, at = moved(graph, journey)
        with there:
            second = gg.gradients(at(first), at(x), overrides={"Sin": seven})
            found.append(gg.evaluate(second, {at(x): X}))
            plain = gg.evaluate(gg.gradients(at(first), at(x)), {at(x): X})
            assert not np.allclose(plain, found[-1])
    same(found[1:], found[:1] * 3)


def test_S15_S27_so_it_does_in_choices_in_choices(tmp_path):
    """What flows to the site comes in two parts, to it and to what was built once more of it."""
    marked = within(lambda site, dy: dy * dy, gg.sin)

    def f(x):
        inner = partial(gg.cond, x < 8.0, lambda: marked(x) * x, lambda: x)
        return gg.cond(x < 9.0, inner, lambda: x)

    with gg.Graph() as graph:
        x = gg.placeholder((), name="x")
        y = rules.checkpoint(f)(x) * 1.0
        dx = gg.gradients(y, x)
    gg.save(tmp_path / "graph.gg", graph)
    file = gg.load(tmp_path / "graph.gg").graph
    moves = [moved(graph, journey) for journey in ("home", "copy", "import", "pickle")]
    for there, at in [*moves, (file, lambda t: file.nodes[t.node.index].outputs[t.index])]:
        with there, pytest.raises(GradientError, match="for each part and not once"):
            gg.gradients(at(y) * 2.0 + at(dx), at(x))


def test_S15_S27_so_it_does_in_a_batch():
    marked = within(lambda site, dy: dy * dy, gg.sin)

    def f(x):
        y = rules.checkpoint(lambda x: marked(x) * x)(x)
        return y * 2.0 + gg.gradients(y, x)

    x = gg.placeholder((2,), name="x")
    z = gg.vmap(f)(x)
    with pytest.raises(GradientError, match="for each part and not once"):
        gg.gradients(z, x)


def test_S05_a_choice_that_a_rule_inside_hides_is_an_error_that_names_that_rule():
    x = gg.placeholder((), name="x")
    hidden = within(seven, lambda x: gg.cos(x) * 2.0)
    y = rules.checkpoint(lambda x: hidden(gg.sin(x)))(x)
    with pytest.raises(RegionError, match=r"Cos_\d+.*inside region 'seven'"):
        gg.gradients(y, x, overrides={"Cos": rules.ste()})
    several = rules.checkpoint(lambda x: gg.cos(hidden(x)))(x)
    gg.gradients(several, x, overrides={"Cos": rules.ste()})


def test_S05_a_group_that_a_call_names_inside():
    def f(x):
        h = gg.sin(x)
        return gg.cos(h * h) * x

    found = []
    for g in (f, rules.checkpoint(f)):
        x = gg.placeholder((3,))
        y = g(x)
        nodes = [n for n in x.graph.nodes[x.node.index :] if n.type in ("Sin", "Multiply")][:2]
        dx = gg.gradients(y, x, overrides={gg.select.nodes(*nodes): seven})
        found.append(value(dx, {x: X}))
    np.testing.assert_allclose(*found)


# --- calling it -------------------------------------------------------------------------------


def test_arguments_and_results_of_any_kind():
    x = gg.placeholder((2, 3), name="x")

    @rules.checkpoint
    def f(x, axis, *, keep=False, scale=None, by=gg.sum):
        return {"y": by(gg.exp(x), axis, keep) * (scale or 1.0), "axis": axis, "none": None}

    y = f(x, 1, keep=True, scale=2.0)
    assert y["y"].shape == (2, 1)
    assert (y["axis"], y["none"]) == (1, None)
    dx = gg.gradients(y["y"], x)
    np.testing.assert_allclose(value(dx, {x: np.zeros((2, 3))}), np.full((2, 3), 2.0))


def test_what_has_no_gradient_may_be_checkpointed():
    i = gg.placeholder((3,), "int64", name="i")
    y = rules.checkpoint(lambda i: i + 1)(i)
    np.testing.assert_array_equal(value(y, {i: [1, 2, 3]}), [2, 3, 4])
    assert value(rules.checkpoint(lambda: gg.constant(3.0) * 2.0)()) == 6.0


def test_an_update_is_made_once():
    x, v = gg.placeholder((), name="x"), gg.variable(1.0)
    y = rules.checkpoint(lambda x: gg.exp(gg.assign(v, x * x)))(x)
    dx = gg.gradients(y, x)
    with gg.Session() as session:
        y, dx = session.run([y, dx], {x: 2.0})
        np.testing.assert_allclose([y, dx], [np.exp(4.0), 4 * np.exp(4.0)])


def test_a_missing_gradient_calls_no_rule_inside():
    x = gg.placeholder((), name="x")
    f = within(lambda s, dy: [1.0], lambda x: x * 2.0)
    a, _ = rules.checkpoint(lambda x: (gg.sin(x), f(x)))(x)
    assert value(gg.gradients(a, x), {x: 0.0}) == 1.0


def test_S25_forward_mode_judges_the_rules_inside():
    x = gg.placeholder((3,), name="x")
    clipped = rules.checkpoint(within(rules.clip_norm(0.1), gg.exp))(x)
    with pytest.raises(GradientError, match="forward mode through region 'clip_norm"):
        gg.jvp(clipped, x)
    own = rules.checkpoint(within(gg.Rule(lambda s, dy: dy * dy, jvp=lambda s, dx: 5 * dx), gg.exp))
    np.testing.assert_allclose(value(gg.jvp(own(x), x), {x: X}), np.full(3, 5.0))


# --- how much of it ---------------------------------------------------------------------------


def deep(n):
    f = gg.sin
    for _ in range(n):
        f = rules.checkpoint(partial(lambda f, x: gg.sin(f(x)), f))
    return f


@pytest.mark.ci
def test_checkpoints_in_checkpoints_to_where_the_stack_ends():
    x = gg.placeholder((), name="x")
    assert np.isfinite(value(gg.gradients(deep(20)(x), x), {x: 0.5}))
    y = deep(200)(x)
    with pytest.raises(GraphError, match="checkpoints inside one another"):
        gg.gradients(y, x)


def test_segments_cost_the_same_each():
    def built(n):
        with gg.Graph() as graph:
            x = gg.placeholder((3,))
            gg.gradients(rules.checkpoint_chain([gg.sin] * n, x, segments=n), x)
            return len(graph.nodes)

    assert built(80) - built(40) == 2 * (built(40) - built(20))


# --- at random --------------------------------------------------------------------------------

UNARY = (gg.sin, gg.tanh, lambda x: gg.exp(-x * x), lambda x: x * 0.5)
RULES = (None, seven, twice_default, lambda s, dy: dy * s.outputs[0])
STEP = st.tuples(st.sampled_from(range(len(UNARY))), st.sampled_from(range(len(RULES))))
KINDS = ("none", "mark", "unmark", "replace", "choose", "off")


def program(steps, split):
    """A function of several steps, some of them in regions, of which one holds what follows."""

    def f(x):
        start = x
        for i, (op, rule) in enumerate(steps):
            step = UNARY[op] if RULES[rule] is None else within(RULES[rule], UNARY[op])
            x = step(x) + start if i == split else step(x)
        return x

    return f


def exactly(f):
    """f in a region whose rule gives the derivative of the inside."""
    return within(lambda s, dy: list(s.default(dy)), f)


def edited(graph, kind, place):
    nodes = [n for n in graph.nodes if n.type in ("Sin", "Tanh", "Exp") and n.origin is None]
    regions = [r for r in graph.regions if r.parent is not None and r.origin is None]
    if kind == "mark" and nodes:
        graph.mark(nodes[place % len(nodes)], seven, allow_inside=True, replace=True)
    elif kind == "unmark" and regions:
        graph.unmark(regions[place % len(regions)])
    elif kind == "replace" and regions:
        graph.mark(regions[place % len(regions)], twice_default, replace=True)
    elif kind in ("choose", "off") and regions:
        return {regions[place % len(regions)]: None if kind == "off" else seven}
    return None


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(STEP, min_size=1, max_size=5),
    split=st.integers(0, 4),
    kind=st.sampled_from(KINDS),
    place=st.integers(0, 4),
    backend=st.sampled_from(["numpy", "llvm"]),
)
def test_random_functions_and_edits_agree_with_a_region_of_the_same(
    steps, split, kind, place, backend
):
    """Without a checkpoint: in a region that asks for its default, which is one step as well."""
    found = []
    for around in (rules.checkpoint, exactly):
        with gg.Graph() as graph:
            x = gg.placeholder((3,), name="x")
            y = gg.sum(gg.square(around(program(steps, split))(x)))
            overrides = edited(graph, kind, place)
            first = gg.gradients(y, x, overrides=overrides)
            second = gg.gradients(gg.sum(first * W), x, overrides=overrides, unconnected="zero")
            found.append(gg.compile(x, [first, second], backend=backend, verify=True)(X))
    same(*found)


def test_values_are_those_of_the_function_itself():
    x = gg.placeholder((3,), name="x")
    f = FUNCTIONS["a checkpoint"]
    a, b = values([f(x), rules.checkpoint(f)(x)], {x: X})
    np.testing.assert_array_equal(a, b)


def once(f, v):
    return gg.scan(lambda c, _: (f(c), None), v, gg.arange(1))[0]


def in_a_branch(f, v):
    return gg.cond(gg.sum(v) > 0, lambda: f(v), lambda: v)


BODIES = {
    "cond": in_a_branch,
    "scan": once,
    "while_loop": lambda f, v: gg.while_loop(lambda c: c[0] < 1, lambda c: (1, f(c[1])), (0, v))[1],
    "map": gg.map,
    "cond in scan": lambda f, v: once(partial(in_a_branch, f), v),
    "map in cond": lambda f, v: in_a_branch(partial(gg.map, f), v),
    "checkpoint in cond": lambda f, v: in_a_branch(rules.checkpoint(f), v),
}


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("stamped", every(2, [True, False]))
@pytest.mark.parametrize("body", BODIES)
def test_S23_a_rule_in_a_body_in_a_checkpoint_reads_what_only_it_reads(body, stamped, batched):
    """It is asked in a body of what was built once more, for which the outside is further out."""
    x, z = gg.placeholder((3,)), gg.placeholder(())

    def closing(site, dy):
        return dy * z * z

    def f(v):
        scope = {"Tanh": closing} if stamped else closing
        with (gg.gradient_override_map if stamped else gg.override_gradient)(scope):
            return gg.tanh(v)

    again = rules.checkpoint(lambda v: BODIES[body](f, v))
    y = gg.vmap(again)(gg.stack([x, x])) if batched else again(x)
    dx = gg.gradients(gg.sum(y), x)
    dz = gg.gradients(gg.sum(dx), z)
    times = 2 if batched else 1
    dx, dz = values([dx, dz], {x: [1.0, 2.0, 3.0], z: 0.7})
    np.testing.assert_allclose(dx, [times * 0.49] * 3)
    np.testing.assert_allclose(dz, times * 3 * 1.4)
