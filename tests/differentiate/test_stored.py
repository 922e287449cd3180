"""S32: a pickle carries the rules of its marks, and answers with them in any process."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.travel import pickles

X = np.array([0.1, 0.2, 0.3])


def there(new, *tensors):
    return [new.nodes[t.node.index].outputs[t.index] for t in tensors]


def test_S32_a_name_means_in_a_pickle_what_it_meant_when_it_was_written():
    gg.register_gradient("stored/name")(lambda site, dy: 2.0 * dy)
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient("stored/name"):
            y = gg.sin(x)
        with gg.gradient_override_map({"Exp": "stored/name", "Round": "Identity"}):
            y = gg.round(gg.exp(y))
    data = pickle.dumps(g)
    gg.unregister_gradient("stored/name")
    new = pickle.loads(data)
    x, y = there(new, x, y)
    with new:
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 4.0
    assert [r.name for r in new.regions] == ["stored/name"]
    gg.register_gradient("stored/name")(lambda site, dy: 777.0 * dy)
    try:
        with new:
            assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 4.0
            new.mark(gg.select.rule("stored/name"), "stored/name", replace=True)
            assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 777.0 * 777.0
    finally:
        gg.unregister_gradient("stored/name")


def test_S32_a_late_name_that_nobody_registered_stays_a_name():
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient("stored/later", late=True):
            y = gg.sin(x)
    new = pickle.loads(pickle.dumps(g))
    x, y = there(new, x, y)
    with new:
        with pytest.raises(gg.UnknownGradientError, match="stored/later"):
            gg.gradients(y, x)
        with gg.temporary_gradient("stored/later", lambda site, dy: 5.0 * dy):
            assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 5.0


def test_S32_a_late_name_inside_a_region_that_asks_for_its_default():
    with gg.Graph() as g:
        x, n = gg.placeholder(()), gg.placeholder((), "int64")
        with gg.override_gradient(lambda site, dy: [2.0 * site.default(dy)[0], gg.NO_GRAD]):
            with gg.override_gradient("stored/later", late=True):
                y = gg.sin(x)
            y = y * gg.cast(n, "float64")
    new = pickle.loads(pickle.dumps(g))
    x, y, n = there(new, x, y, n)
    with new, gg.temporary_gradient("stored/later", lambda site, dy: 5.0 * dy):
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0, n: 3}) == 30.0


def test_S32_what_was_stored_of_reverse_mode_says_that_forward_mode_needs_its_home():
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient(
            lambda s, dy: gg.cond(gg.sum(s.inputs[0]) < 9, lambda: s.default(dy)[0], lambda: dy)
        ):
            own = gg.Rule(lambda s, dy: 3.0 * dy, "own", jvp=lambda s, dx: 3.0 * dx)
            with gg.override_gradient(own):
                y = gg.sin(x)
            y = y * 2.0
    new = pickle.loads(pickle.dumps(g))
    x, y = there(new, x, y)
    with new:
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 6.0
        with pytest.raises(gg.GradientError, match="was stored for reverse mode"):
            gg.jvp(y, x)


def test_S32_a_rule_that_opens_itself_and_one_that_reads_its_home():
    def rule(site, dy):
        with gg.override_gradient(lambda s, d: d * k):
            half = gg.sin(dy)
        with gg.override_gradient(rule):
            other = gg.exp(0.5 * dy)
        return half + other + site.outputs[0]

    def asked(x, y):
        found = [y]
        for _ in range(3):
            found.append(gg.gradients(found[-1], x))
        return gg.evaluate(found, {x: 0.3})

    with gg.Graph() as g:
        x = gg.placeholder(())
        k = gg.cos(x)
        with gg.override_gradient(rule):
            y = gg.exp(x)
        y = y * x
    new = pickle.loads(pickle.dumps(g))
    with g:
        expected = asked(x, y)
    with new:
        np.testing.assert_allclose(asked(*there(new, x, y)), expected)


def test_S32_what_a_rule_inside_reads_of_its_own_region_is_read_from_there_again():
    """Also in a trace of the rule around that differentiates it: the rule inside is no answer."""
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient(lambda s, dy: gg.gradients(s.outputs, s.inputs, [dy])):
            with gg.override_gradient(lambda s, dy: dy * k):
                k = gg.exp(x)
                y = gg.sin(k)
            y = y * 1.0
        y = y * x
    for graph in (g, pickle.loads(pickle.dumps(g))):
        found = there(graph, y)
        (at,) = there(graph, x)
        with graph:
            for _ in range(3):
                found.append(gg.gradients(found[-1], at))
            e, s = np.exp(0.3), np.sin(np.exp(0.3))
            wanted = [0.3 * s, s + 0.3 * e, 2 * e + 0.3 * e, 3 * e + 0.3 * e]
            np.testing.assert_allclose(gg.evaluate(found, {at: 0.3}), wanted)


def asking_inside(x):
    """A rule that differentiates a mark inside, and reads nothing else."""
    rule = lambda s, dy: [2.0 * dx for dx in gg.gradients(s.outputs, s.inputs, [dy])]  # noqa: E731
    with gg.override_gradient(rule):
        with gg.override_gradient(lambda s, dy: 3.0 * dy):
            y = gg.sin(x)
        return -y


def speaking_for_another(x):
    """A rule that gives the gradient of what is read undeclared."""
    z = gg.cos(x)
    with gg.override_gradient(lambda s, dy: {s.inputs[0]: 3.0 * dy, z: 5.0 * dy}, inputs=[x]):
        return gg.sin(x) * z


@pytest.mark.parametrize("build", [asking_inside, speaking_for_another])
def test_S32_what_a_stored_rule_means_in_its_graph_it_means_where_that_is_imported(build):
    """Where other nodes and regions come before."""
    with gg.Graph() as g:
        x = gg.placeholder(())
        y = build(x)
        expected = gg.evaluate(gg.gradients(y, x), {x: 0.3})
    stored = pickle.loads(pickle.dumps(g))
    with gg.Graph() as new:
        with gg.override_gradient(lambda site, dy: 9.0 * dy):
            gg.sin(gg.exp(gg.placeholder(())))
        found = gg.import_graph(stored)
        x, y = (found[t] for t in there(stored, x, y))
    again = pickle.loads(pickle.dumps(new))
    for graph, xs in ((new, (x, y)), (again, there(again, x, y))):
        with graph:
            assert gg.evaluate(gg.gradients(xs[1], xs[0]), {xs[0]: 0.3}) == expected


def branching(site, da, db):
    return 7.0 * da if gg.is_zero(db) else 3.0 * da + db


def forward(site, dx, dz):
    return 7.0 * dx if gg.is_zero(dz) else 3.0 * dx + dz


@pytest.mark.parametrize("times", [1, 2])
def test_S16_a_stored_rule_knows_which_gradients_are_zero(times):
    with gg.Graph() as g:
        x, z = gg.placeholder((3,)), gg.placeholder((3,))
        with gg.override_gradient(branching, inputs=[x]):
            a, b = gg.sin(x), gg.cos(x)
        rule = gg.Rule(lambda s, d: [d * d, d * d], "own", jvp=forward)
        with gg.override_gradient(rule, inputs=[x, z]):
            y = gg.sin(x) + z
        both = gg.sum(a) + gg.sum(b)
        a, b = gg.sum(a), gg.sum(b)
    for graph in (g, g.copy(), _pickled(g, times)):
        a2, b2, both2, x2, y2, z2 = there(graph, a, b, both, x, y, z)
        with graph:
            asked = [
                *(gg.gradients(t, x2) for t in (a2, b2, both2)),
                gg.jvp(y2, x2),
                gg.jvp(y2, [x2, z2]),
            ]
            found = gg.evaluate(asked, {x2: X, z2: X})
        assert [f[0] for f in found] == [7.0, 1.0, 4.0, 7.0, 4.0]


def _pickled(graph, times):
    for _ in range(times):
        graph = pickle.loads(pickle.dumps(graph))
    return graph


def test_S16_of_many_outputs_one_or_all_but_one_may_be_zero():
    def rule(site, *dys):
        return sum(float(10**i) * dy for i, dy in enumerate(dys) if not gg.is_zero(dy))

    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient(rule):
            ys = [gg.sin(x), gg.cos(x), gg.exp(x), gg.tanh(x), x * 2.0]
        ys = [gg.identity(y) for y in ys]
    new = pickle.loads(pickle.dumps(g))
    x, *ys = there(new, x, *ys)
    with new:
        for read, expected in ((ys, 11111.0), (ys[:1], 1.0), (ys[1:], 11110.0)):
            assert gg.evaluate(gg.gradients(read, x), {x: 0.0}) == expected
        with pytest.raises(gg.GradientError, match=r"'rule'.*these are zero: 2, 3, 4"):
            gg.gradients(ys[:2], x)


@pytest.mark.parametrize("journey", ["pickle", "copy of a pickle", "pickle of a pickle"])
@pytest.mark.parametrize("default", [False, True])
def test_S16_any_of_many_outputs_may_be_zero_for_a_rule_that_does_not_ask(default, journey):
    def rule(site, *dys):
        if default:
            return [2.0 * dx for dx in site.default(*dys)]
        return sum(float(10**i) * dy * y for i, (dy, y) in enumerate(zip(dys, site.outputs)))

    with gg.Graph() as g:
        x = gg.placeholder((2,))
        with gg.override_gradient(rule):
            ys = [gg.sin(x), gg.cos(x), gg.exp(x), gg.tanh(x), x * 2.0]
        ys = [gg.identity(y) for y in ys]
    new = pickle.loads(pickle.dumps(g))
    if journey != "pickle":
        new = new.copy() if journey == "copy of a pickle" else _pickled(new, 1)
    found = []
    for ts in ([x, *ys], there(new, x, *ys)):
        x, *ys = ts
        with x.graph:
            first = [gg.gradients(read, x) for read in (ys[:2], [ys[1], ys[4]], ys[2:4], ys)]
            second = gg.gradients(gg.sum(first[0] * first[2]), x)
            found.append(gg.evaluate([*first, second], {x: [0.3, -0.4]}))
    np.testing.assert_array_equal(found[0], found[1])


def test_S16_what_a_rule_raises_for_zeros_is_raised_when_they_come():
    def rule(site, da, db):
        if gg.is_zero(da):
            raise ValueError("both, please")
        return da

    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient(rule):
            a, b = gg.sin(x), gg.cos(x)
        a, b = gg.identity(a), gg.identity(b)
    new = pickle.loads(pickle.dumps(g))
    x, a, b = there(new, x, a, b)
    with new:
        assert gg.evaluate(gg.gradients(a, x), {x: 0.0}) == 1.0
        with pytest.raises(gg.GradientError, match="both, please"):
            gg.gradients(b, x)


def test_S32_a_stored_default_needs_the_inputs_to_which_something_flowed():
    """The rule may have asked which of its partials are zero."""
    with gg.Graph() as g:
        x, z = gg.placeholder((), name="x"), gg.placeholder((), name="z")

        def rule(site, dy):
            dx, dz = site.default(dy)
            return [dx * 2.0, 100.0 * dx if gg.is_zero(dz) else dz]

        with gg.override_gradient(rule, inputs=[x, z]):
            y = gg.sin(x) * gg.stop_gradient(z)
    new = pickle.loads(pickle.dumps(g))
    x2, y2, z2 = there(new, x, y, z)
    feeds = {x2: 0.0, z2: 3.0}
    with new:
        assert gg.evaluate(gg.gradients(y2, [x2, z2]), feeds) == [6.0, 300.0]
        new.mark("StopGradient", "Identity", allow_inside=True)
        with pytest.raises(gg.GradientError, match=r"when its default had gradients of x"):
            gg.gradients(y2, [x2, z2])


@pytest.mark.parametrize(
    "body",
    [lambda x, f: gg.cond(x < 1.0, lambda: f(x), lambda: x), lambda x, f: gg.map(f, x[None])[0]],
    ids=["branch", "loop"],
)
def test_S32_a_default_through_a_body_in_which_a_rule_closes_over_the_outside_is_stored(body):
    with gg.Graph() as g:
        x, k = gg.placeholder((), name="x"), gg.placeholder((), name="k")

        def marked(x):
            with gg.gradient_override_map({"Tanh": lambda site, dy: dy * k}):
                return gg.tanh(x)

        with gg.override_gradient(lambda site, dy: [2.0 * dx for dx in site.default(dy)]):
            y = body(x, marked) * 1.0
    new = pickle.loads(pickle.dumps(g))
    x, k, y = there(new, x, k, y)
    with new:
        assert gg.evaluate(gg.gradients(y, x), {x: 0.3, k: 5.0}) == 10.0


def test_S32_a_stored_default_has_the_same_gradients_in_a_batch_of_loops_that_end_apart():
    """Whether an example goes on depends on a carry, and no gradient flows through that."""
    with gg.Graph() as g:
        x, z = gg.placeholder((), name="x"), gg.placeholder((), name="z")
        with gg.override_gradient(
            lambda site, dy: [2.0 * dx for dx in site.default(dy)], inputs=[x, z]
        ):
            h = gg.sin(x)
            last = gg.while_loop(lambda c: c[0] < 0.7, lambda c: (h, c[1] * z), (z, z))
            y = gg.identity(last[1])
    new = pickle.loads(pickle.dumps(g))
    x, y, z = there(new, x, y, z)

    with gg.Graph():
        a, b = gg.placeholder((2,)), gg.placeholder((2,))
        ys = gg.vmap(lambda a, b: gg.import_graph(new, {x: a, z: b})[y])(a, b)
        f = gg.compile([a, b], gg.gradients(ys, [a, b], unconnected="zero"))
        dx, dz = f(np.array([1.5, 1.5]), np.array([0.5, 0.9]))
    np.testing.assert_allclose([dx, dz], [[0.0, 0.0], [2.0 * 2 * 0.5, 2.0]], rtol=1e-12)


# --- rules that open regions under themselves ----------------------------------------------------


@gg.register_gradient("stored/recursive")
def recursive(site, dy):
    """The derivative is 2 cos(x), whose own derivative is this rule's again."""
    (x,) = site.inputs
    with gg.override_gradient("stored/recursive"):
        s = 2.0 * gg.cos(x)
    return dy * s


def orders(y, x, n):
    found = []
    for _ in range(n):
        y = gg.gradients(y, x)
        found.append(y)
    return found


@pytest.mark.parametrize("journey", ["p", "pp", "pcp", "cpc", "pip"])
def test_S32_a_rule_that_recurs_refers_to_itself(journey):
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with gg.override_gradient("stored/recursive"):
            y = gg.sin(x)
        y = gg.identity(y)
    expected = np.full(5, 2.0 * np.cos(0.3))
    for way in journey:
        if way == "i":
            with gg.Graph():
                found = gg.import_graph(x.graph)
            x, y = found[x], found[y]
        else:
            new = x.graph.copy() if way == "c" else pickle.loads(pickle.dumps(x.graph))
            x, y = there(new, x, y)
    with x.graph:
        np.testing.assert_allclose(gg.evaluate(orders(y, x, 5), {x: 0.3}), expected, rtol=1e-12)


def test_S32_a_rule_that_recurs_and_holds_a_tensor_is_stored_to_its_order():
    with gg.Graph() as g:
        x, w = gg.placeholder((), name="x"), gg.variable(2.0)

        def rule(site, dy):
            with gg.override_gradient(rule, inputs=site.inputs):
                s = w * gg.cos(site.inputs[0])
            return dy * s

        with gg.override_gradient(rule):
            y = gg.sin(x)
        y = gg.identity(y)
    new = pickle.loads(pickle.dumps(g))
    x2, y2 = there(new, x, y)
    with g:
        expected = gg.evaluate(orders(y, x, 2), {x: 0.3})
    with new:
        np.testing.assert_allclose(gg.evaluate(orders(y2, x2, 2), {x2: 0.3}), expected)
        with pytest.raises(gg.GradientError, match="stored to order 2"):
            orders(y2, x2, 3)


def test_S27_S32_a_rule_in_a_rule_that_asked_for_its_default_may_take_gradients():
    """They stay among what the rules built: what the default reads of its home is not asked."""

    def within(site, dy):
        return gg.gradients(site.outputs[0], site.inputs[0], 3.0 * dy)

    def rule(site, dy):
        (dx,) = site.default(dy)
        with gg.override_gradient(within):
            return gg.sin(dx)

    def marked(x):
        with gg.override_gradient(rule):
            return x * x * x

    x = gg.placeholder((1,))
    y, batched = marked(x), gg.vmap(marked)(x)
    with pickle.loads(pickle.dumps(x.graph)) as new:
        stored = there(new, x, y, batched)
    expected = gg.evaluate(orders(y, x, 2), {x: [0.7]})
    for at, *results in (x, batched), stored:
        for result in results:
            assert np.allclose(gg.evaluate(orders(result, at, 2), {at: [0.7]}), expected)


# --- pickles -------------------------------------------------------------------------------------


def test_a_pickle_of_another_version_is_refused_by_name():
    with gg.Graph() as g:
        gg.sin(gg.placeholder(()))
    written = pickle.dumps(g)
    assert len(pickle.loads(written).nodes) == 2
    older = written.replace(b"graphgrad pickle, format", b"graphgrad pickle, FORMAT")
    moved = older.replace(
        b"graphgrad.ops.elementwise.trigonometry", b"graphgrad.ops.elementwise.trigonometrx"
    )
    assert len({written, older, moved}) == 3
    for other in (older, moved):
        with pytest.raises(
            gg.GraphFormatError, match=r"FORMAT \d'.*reads 'graphgrad pickle, format"
        ):
            pickle.loads(other)


def test_the_documentation_says_that_unpickling_runs_code():
    assert "unpickling runs code" in " ".join(pickles.reduce_graph.__doc__.split())


def test_S32_a_process_without_the_rules_answers_with_those_of_the_pickle(tmp_path):
    with gg.Graph() as g:
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.full(3, 2.0))
        with gg.override_gradient(gg.rules.clip_norm(1.0)):
            h = gg.tanh(x)
        with gg.override_gradient(lambda site, dy: [w * d for d in site.default(dy)]):
            with gg.override_gradient("stored/recursive"):
                h = gg.sin(h)
            h = h * 1.0
        with gg.name_scope("out"):
            y = gg.identity(gg.sum(h))
        expected = gg.evaluate(gg.gradients(y, x), {x: X})
        second = gg.evaluate(gg.gradients(gg.sum(gg.gradients(y, x) ** 2), x), {x: X})
    path = tmp_path / "graph.pickle"
    path.write_bytes(pickle.dumps(g))
    code = (
        "import pickle, numpy as np, graphgrad as gg\n"
        f"g = pickle.load(open({str(path)!r}, 'rb'))\n"
        "x, y = g.tensor('x'), g.find('out/Identity*')[0].outputs[0]\n"
        "with g:\n"
        "    dx = gg.gradients(y, x); d2 = gg.gradients(gg.sum(dx ** 2), x)\n"
        "    for a in gg.evaluate([dx, d2], {x: np.array([0.1, 0.2, 0.3])}): print(*a)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [[float(v) for v in line.split()] for line in done.stdout.splitlines()]
    np.testing.assert_allclose(found, [expected, second], rtol=1e-12)


def test_S32_a_rule_that_reads_its_home_is_stored_anew_where_regions_were_taken_off():
    """What it reads of the inside is found by the place of the region in the graph."""
    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        with gg.override_gradient(lambda site, dy: 11.0 * dy):
            a = gg.cos(x)

        @gg.custom_gradient
        def f(z):
            u = gg.sin(z)
            return u * u, lambda dy: 3.0 * dy * u

        gg.identity(f(x) + a, name="y")
    once = pickle.loads(pickle.dumps(g))
    once.unmark(once.regions[0])
    twice = pickle.loads(pickle.dumps(once))
    for there in (once, twice):
        with there:
            dx = gg.gradients(there.tensor("y:0"), there.tensor("x:0"))
            d2 = gg.gradients(dx, there.tensor("x:0"))
        found = gg.evaluate([dx, d2], {there.tensor("x:0"): np.array(0.3)})
        expected = [3 * np.sin(0.3) - np.sin(0.3), 3 * np.cos(0.3) - np.cos(0.3)]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("named", [False, True])
def test_what_was_unmarked_is_pickled_with_what_was_derived_from_it(named):
    def rule(site, *dys):
        first, *others = site.default(*dys)
        return [2.0 * first, *others]

    gg.register_gradient("stored/unmarked", replace=True)(rule)
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient("stored/unmarked" if named else rule) as region:
            y = gg.sin(x)
        dx = gg.gradients(y * 1.0, x)
        g.unmark(region)
    x, dx = there(pickle.loads(pickle.dumps(g)), x, dx)
    with x.graph:
        found = gg.evaluate([dx, gg.gradients(dx, x)], {x: 0.5})
    np.testing.assert_allclose(found, [2.0 * np.cos(0.5), -2.0 * np.sin(0.5)])


@pytest.mark.parametrize("journey", ["p", "pc", "pcp"])
def test_S24_a_second_rule_in_checkpoints_and_derivatives_of_them(journey):
    def f(x):
        return gg.custom_gradient(
            lambda x: (x * x, lambda dy: ([dy * gg.sin(x)], lambda dd: [0.3 * dd]))
        )(x)

    def slope(f):
        return lambda x: gg.gradients(f(x), x)

    with gg.Graph():
        x = gg.placeholder(())
        h = gg.rules.checkpoint(slope(gg.rules.checkpoint(f)))
        y = gg.custom_gradient(lambda x: (h(x), lambda dy: slope(h)(x) * dy * 2.0))(x)
        dx = gg.gradients(y, x)
    expected = gg.evaluate([y, dx], {x: 0.5})
    np.testing.assert_allclose(expected, [np.sin(0.5), 0.6])
    for way in journey:
        new = x.graph.copy() if way == "c" else pickle.loads(pickle.dumps(x.graph))
        x, y, dx = there(new, x, y, dx)
    with x.graph:
        found = gg.evaluate([y, dx, gg.gradients(y, x)], {x: 0.5})
    np.testing.assert_allclose(found, [*expected, expected[1]])
