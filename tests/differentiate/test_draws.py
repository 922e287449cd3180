"""S41: a draw without a key that a rule makes is one of each call that the rule stands for."""

import pickle
import re

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.regions.index import bodies_of

from ..each import each

ZEROS = np.zeros(4)


def noise(site, dy):
    return dy + gg.random.normal(())


def keyed(site, dy):
    return dy + gg.random.normal((), seed=site.random_key())


def masked(site, dy):
    """Linear in dy, and its derivative is seen at second order."""
    return dy * site.inputs[0] * gg.random.normal(())


def in_a_branch(site, dy):
    key = site.random_key()
    return gg.cond(gg.sum(dy) > -9.0, lambda: dy + gg.random.normal((), seed=key), lambda: dy)


def drawn_in_a_branch(site, dy):
    return gg.cond(gg.sum(dy) > -9.0, lambda: dy + gg.random.normal(()), lambda: dy)


def drawn_in_a_loop(site, dy):
    rows = gg.scan(lambda c, _: (c, gg.random.normal(())), 0.0, None, length=2)[1]
    return dy + rows[0] + 1e3 * rows[1]


def drawn_in_a_batch(site, dy):
    rows = gg.vmap(lambda t: t * gg.random.normal(()))(gg.constant([1.0, 1e3]))
    return dy + rows[0] + rows[1]


def drawn_in_a_marked_branch(site, dy):
    with gg.override_gradient(lambda s, d: 2.0 * d) as region:
        y = gg.cond(gg.sum(dy) > -9.0, lambda: dy + gg.random.normal(()), lambda: dy)
        region.declare(outputs=[y])
    return y


def in_a_region(site, dy):
    with gg.override_gradient(lambda s, d: 2.0 * d) as region:
        y = dy + gg.random.normal(())
        region.declare(outputs=[y])
    return y


def by_default(site, dy):
    return [d + gg.random.normal(()) for d in site.default(dy)]


def as_the_inner(site, dy):
    return site.default(dy)


RULES = [
    *(noise, keyed, in_a_branch, drawn_in_a_branch, drawn_in_a_loop, drawn_in_a_marked_branch),
    *(in_a_region, by_default, drawn_in_a_batch),
]


def marked(rule, v):
    with gg.override_gradient(rule):
        return gg.identity(v)


def nested(rule, v):
    """A region in a region, whose rule asks for its default."""
    with gg.override_gradient(as_the_inner):
        return gg.identity(marked(rule, v))


def scanned(f, x):
    return gg.scan(lambda c, v: (c + f(v), None), gg.constant(0.0), x)[0]


def reversed_scan(f, x):
    return gg.scan(lambda c, v: (c + f(v), None), gg.constant(0.0), x, reverse=True)[0]


def mapped(f, x):
    return gg.sum(gg.map(f, x))


def counted(f, x):
    return gg.fori_loop(0, 4, lambda i, c: c + f(x[i]), gg.constant(0.0))


def while_short(f, x):
    start = gg.constant(0), gg.constant(0.0)
    return gg.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] + f(x[c[0]])), start)[1]


def bounded(f, x):
    start = gg.constant(0), gg.constant(0.0)
    step = lambda c: (c[0] + 1, c[1] + f(x[c[0]]))  # noqa: E731
    return gg.while_loop(lambda c: c[0] < 4, step, start, max_trips=6)[1]


def in_loops(f, x):
    rows = gg.reshape(x, (2, 2))
    return gg.sum(gg.map(lambda row: gg.sum(gg.map(f, row)), rows))


def chosen_in_a_loop(f, x):
    return gg.sum(gg.map(lambda v: gg.cond(v < 9.0, lambda: f(v), lambda: v), x))


def batch(f, x):
    return gg.sum(gg.vmap(f)(x))


def batch_of_loops(f, x):
    return gg.sum(gg.vmap(lambda row: scanned(f, row))(gg.reshape(x, (2, 2))))


def loop_of_batches(f, x):
    return gg.sum(gg.map(lambda row: gg.sum(gg.vmap(f)(row)), gg.reshape(x, (2, 2))))


def batch_of_choices(f, x):
    return gg.sum(gg.vmap(lambda v: gg.cond(v > 0.5, lambda: f(v), lambda: f(v) + v))(x))


def batch_of_whiles(f, x):
    def one(v):
        return gg.while_loop(lambda c: c < v - 1.0, lambda c: c + f(v) + 9.0, v - 2.0)

    return gg.sum(gg.vmap(one)(x))


def checkpointed(f, x):
    return gg.rules.checkpoint(lambda x: mapped(f, x))(x)


def checkpoint_in_a_loop(f, x):
    return gg.sum(gg.map(gg.rules.checkpoint(f), x))


def gradients_in_a_loop(f, x):
    """What is drawn is a value here: so the sum of it times x has it as its gradient."""
    return gg.sum(gg.map(lambda v: gg.stop_gradient(gg.gradients(f(v), v)) * v, x))


def gradients_in_a_while(f, x):
    def step(c):
        v = x[c[0]]
        return c[0] + 1, c[1] + gg.stop_gradient(gg.gradients(f(v), v)) * v

    start = gg.constant(0), gg.constant(0.0)
    return gg.while_loop(lambda c: c[0] < 4, step, start)[1]


def sites(f, x):
    return f(x[0]) + f(x[1]) + f(x[2]) + f(x[3])


LOOPS = [
    *(scanned, reversed_scan, mapped, counted, while_short, bounded, in_loops, chosen_in_a_loop),
    *(batch, batch_of_loops, loop_of_batches, batch_of_choices, batch_of_whiles),
    *(checkpointed, checkpoint_in_a_loop, gradients_in_a_loop, gradients_in_a_while, sites),
]


def as_built(graph):
    return graph


def stored(graph):
    return pickle.loads(pickle.dumps(graph))


def imported(graph):
    with gg.Graph(seed=7) as new:
        made = gg.import_graph(graph)
        gg.identity(made[graph.tensor("x:0")], name="x_")
        gg.identity(made[graph.tensor("y:0")], name="y_")
    return new


def saved(graph, folder):
    gg.save(folder / "graph.gg", graph)
    return gg.load(folder / "graph.gg").graph


def built(loop, rule, mark=marked, seed=1):
    with gg.Graph(seed=seed) as graph:
        x = gg.placeholder((4,), name="x")
        gg.identity(loop(lambda v: mark(rule, v), x), name="y")
    return graph


def drawn(graph, runs=1, **how):
    """What the rule adds for each element of x, in each run."""
    with graph:
        x, y = graph.tensor("x:0"), graph.tensor("y:0")
        f = gg.compile([x], [gg.gradients(y, x)], **how)
    return np.array([f(ZEROS)[0] for _ in range(runs)])


def check_apart(found):
    assert len(np.unique(found)) == found.size, found


def cases(rules, journeys):
    return [
        (f"{loop.__name__}, {rule.__name__}, {way.__name__}", loop, rule, way)
        for loop in LOOPS
        for rule in rules
        for way in journeys
    ]


ERRORS = r"drawn without a seed at .*test_draws"
"""What is drawn in a branch in a region of the rule: in a trace it cannot know of loops around."""


def check_apart_or_refused(loop, rule, way, **how):
    try:
        found = drawn(way(built(loop, rule)), backend="numpy", **how)
    except gg.GraphGradError as error:
        if rule is not drawn_in_a_marked_branch or not re.search(ERRORS, str(error)):
            raise
    else:
        check_apart(found)


@each(cases(RULES, [as_built]), lambda name: name.partition(",")[0])
def test_S41_each_run_and_example_and_site_has_its_own_draw(loop, rule, way):
    check_apart_or_refused(loop, rule, way, runs=2)


@each(cases([noise, keyed], [gg.Graph.copy, stored, imported]), lambda name: name.partition(",")[0])
def test_S41_so_it_has_where_the_rule_travelled(loop, rule, way):
    check_apart(drawn(way(built(loop, rule)), backend="numpy"))


@pytest.mark.slow
@each(cases(RULES, [gg.Graph.copy, stored]), lambda name: name.partition(",")[0])
def test_S41_so_it_has_where_any_rule_travelled(loop, rule, way):
    check_apart_or_refused(loop, rule, way)


@each([(loop.__name__, loop) for loop in (scanned, in_loops, batch_of_loops)], lambda name: "all")
def test_S41_of_a_rule_inside_of_another(loop):
    check_apart(drawn(built(loop, noise, nested), backend="numpy"))


@each([(f.__name__, f) for f in (scanned, in_loops, while_short)], lambda name: "file")
def test_S41_in_a_file(loop, tmp_path_factory):
    check_apart(drawn(saved(built(loop, noise), tmp_path_factory.mktemp("file"))))


@pytest.mark.parametrize("backend", ["llvm", pytest.param("jax", marks=pytest.mark.ci)])
def test_S41_on_every_backend_it_is_the_same(backend):
    pytest.importorskip(backend if backend == "jax" else "numpy")
    for loop in (scanned, in_loops, bounded):
        found = drawn(built(loop, noise), runs=2, backend=backend)
        np.testing.assert_allclose(found, drawn(built(loop, noise), runs=2, backend="numpy"))
        plain = drawn(built(loop, noise), runs=2, backend=backend, optimize=False)
        np.testing.assert_allclose(found, plain)


def derivatives(loop, x0, **how):
    """Of y = sum of f(x) with the rule dy * x * noise: what it gives, and the derivative of it."""
    with gg.Graph(seed=2):
        x = gg.placeholder((4,))
        y = loop(lambda v: marked(masked, v), x)
        dx = gg.gradients(y, x)
        return gg.compile([x], [dx, gg.gradients(dx, x)], **how)(x0)


SMALL = [scanned, mapped, counted, while_short, bounded, in_loops, batch, batch_of_loops, sites]


@each([(f.__name__, f) for f in SMALL], lambda name: "all")
def test_S41_a_derivative_of_the_rule_has_the_draws_of_the_call(loop):
    """dx = x * noise, so its derivative is noise: that of dx, not another one."""
    x = np.array([0.5, -1.0, 2.0, 3.0])
    first, second = derivatives(loop, x, backend="numpy")
    np.testing.assert_allclose(first / x, second, rtol=1e-12)
    check_apart(second)


@each([(f.__name__, f) for f in (scanned, bounded)], lambda name: "all")
def test_S41_a_memory_limit_repeats_the_draws(loop):
    x = np.array([0.5, -1.0, 2.0, 3.0])
    np.testing.assert_allclose(derivatives(loop, x, memory=4096), derivatives(loop, x))


@pytest.mark.parametrize("way", [as_built, gg.Graph.copy, stored])
def test_S41_parts_of_one_call_have_one_draw(way):
    """A gradient through a loop and through a derivative of it comes in two parts."""

    def rule(site, dy):
        return dy * k * gg.random.normal(())

    with gg.Graph() as graph:
        x, k = gg.placeholder((), name="x"), gg.constant(1.0)

        def step(c, _):
            with gg.override_gradient(rule):
                d = gg.sin(c)
            return d * d, None

        gg.identity(gg.scan(step, x, None, length=1)[0], name="y")
    with way(graph) as graph:
        x, y = graph.tensor("x:0"), graph.tensor("y:0")
        (slope,) = gg.gradients([y], [x])
        both = gg.gradients(y + 0.0 * slope, x)
        value, parts = gg.evaluate([slope, both], {x: 0.4})
        keys = {n.op.number for n in _keys(x.graph)}
    assert len(keys) == 2  # of the first call, and of the second in all its parts
    assert value != parts


def _keys(graph):
    pending = [graph]
    for each_graph in pending:
        for node in each_graph.nodes:
            if node.type == "RandomKey":
                yield node
            pending += [
                p.outputs[0].graph for p in node.op.bodies if p.outputs[0].graph not in pending
            ]


def test_S41_the_key_of_a_call_is_one_key():
    seen = []

    def rule(site, dy):
        with gg.override_gradient("Identity") as region:
            u = gg.identity(dy + gg.random.normal((), seed=site.random_key()))
            region.declare(outputs=[u])
        seen.append((site, site.random_key()))
        assert site.random_key().node.region is None
        assert site.random_key() is seen[-1][1]
        return u - gg.random.normal((), seed=site.random_key())

    with gg.Graph():
        x = gg.placeholder(())
        y = marked(rule, x)
        dx = gg.gradients(y, x)
        assert gg.evaluate(dx, {x: 1.0}) == pytest.approx(1.0)
        gg.gradients(y, x)
    (site, first), (_, second) = seen
    assert first.type == gg.constant(0).type
    assert first.node.op.number != second.node.op.number
    with pytest.raises(gg.GradientError, match=r"site\.random_key of .* only while its rule runs"):
        site.random_key()


def test_S41_a_trace_draws_anew_for_each_call_and_never_as_its_graph():
    with gg.Graph(seed=3) as graph:
        x = gg.placeholder((), name="x")
        for name in "yz":
            gg.identity(marked(noise, x), name=name)
        before = gg.random.normal(())
    for way in (as_built, gg.Graph.copy, stored, imported):
        g = way(built(sites, noise)) if way is imported else way(graph)
        with g:
            if way is imported:
                x = g.tensor("x:0")
                found = [gg.gradients(g.tensor("y:0"), x)[i] for i in (0, 1)]
                feeds = {x: ZEROS}
            else:
                x, y, z = (g.tensor(f"{n}:0") for n in "xyz")
                found = [gg.gradients(t, x) - 1.0 for t in (y, y, z)]
                feeds = {x: 0.0}
            found += [gg.random.normal(())]
            if way is as_built:
                found += [before]
            values = gg.evaluate(found, feeds)
        assert len({round(float(v), 12) for v in values}) == len(values), way


def test_S41_an_import_renumbers_once_what_a_choice_and_its_gradient_draw():
    with gg.Graph() as home:
        x = gg.placeholder((), name="x")
        y = gg.cond(x > 0, lambda: x * gg.random.normal(()), lambda: x) * gg.random.normal(())
        gg.gradients(y, x)
    with gg.Graph() as new:
        gg.random.normal(())
        gg.import_graph(home)

    def numbers(graph):
        nodes = [n for g in bodies_of(graph) for n in g.nodes]
        return sorted({n.op.number for n in nodes if n.type == "RandomKey"})

    (inside, outside), (first, *there) = numbers(home), numbers(new)
    assert there == [there[0], there[0] + outside - inside]
    assert first < there[0]


def test_S41_what_an_import_draws_in_a_loop_is_an_error_that_names_the_draw():
    library = built(mapped, noise)
    with library:
        gg.identity(gg.gradients(library.tensor("y:0"), library.tensor("x:0")), name="dx")

    def step(c, row):
        made = gg.import_graph(library, {library.tensor("x:0"): row})
        return c + made[library.tensor("dx:0")], None

    with gg.Graph(), pytest.raises(gg.StateError, match=r"draw without a seed.*test_draws\.py"):
        gg.scan(step, gg.constant(ZEROS), gg.constant(np.zeros((2, 4))))


def test_S41_a_site_that_examples_share_draws_for_each_of_them():
    """By a rule that is linear in dy, whose sum over the examples is not one draw of their sum."""
    with gg.Graph():
        w, xs = gg.placeholder(()), gg.placeholder((4,))
        y = gg.sum(gg.vmap(lambda x: x * marked(masked, w))(xs))
        found = gg.evaluate(gg.gradients(y, w), {w: 1.0, xs: [1.0, -1.0, 2.0, -2.0]})
    assert abs(found) > 1e-6


@pytest.mark.parametrize("way", [as_built, gg.Graph.copy, stored])
def test_S41_what_is_recomputed_in_a_branch_has_the_draw_of_the_call(way):
    def noisy(x):
        return gg.cond(x > 0.0, lambda: k * gg.sin(x) * gg.random.normal(()), lambda: x)

    def rule(site, dy):
        (x,) = site.inputs
        y = gg.rules.checkpoint(noisy)(x)
        return dy * gg.gradients(y, x) / y

    with gg.Graph() as graph:
        x, k = gg.placeholder((), name="x"), gg.constant(1.0)
        gg.identity(marked(rule, x), name="y")
    with way(graph) as graph:
        x, y = graph.tensor("x:0"), graph.tensor("y:0")
        dx = gg.gradients(y, x)
        first, second = gg.evaluate([dx, gg.gradients(dx, x)], {x: 0.7})
    np.testing.assert_allclose(first, 1.0 / np.tan(0.7))
    np.testing.assert_allclose(second, -1.0 / np.sin(0.7) ** 2)


def test_S09_the_count_of_runs_that_draws_read_is_no_output_of_a_loop():
    with gg.Graph():
        x = gg.placeholder(())

        def step(c):
            return c + 1.0 + 0.0 * gg.stop_gradient(gg.gradients(marked(noise, c), c))

        with gg.override_gradient(lambda site, dy: 5.0 * dy):
            y = gg.while_loop(lambda c: c < 3.0, step, x)
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 5.0


@pytest.mark.parametrize("way", [as_built, gg.Graph.copy, stored])
def test_S41_each_example_of_a_batch_that_a_rule_builds_has_its_own_draw(way):
    def rule(site, dy):
        rows = gg.vmap(lambda t: k * t * gg.random.normal(()))(gg.ones((4,)))
        return dy * gg.max(rows) - gg.min(rows)

    with gg.Graph() as graph:
        x, k = gg.placeholder((), name="x"), gg.constant(1.0)
        gg.identity(marked(rule, x), name="y")
    with way(graph) as graph:
        dx = gg.gradients(graph.tensor("y:0"), graph.tensor("x:0"))
        assert gg.evaluate(dx, {graph.tensor("x:0"): 0.7}) > 1e-6
