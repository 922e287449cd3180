"""Sites of tensors: one rule for the accumulated gradients of tensors that exist."""

import copy
import random

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.undoing import undone_on_error
from graphgrad.ir.verify import verify_graph
from graphgrad.regions.tensors import put_site

from ..differentiate.helpers import value


def values(*tensors):
    return gg.evaluate(list(tensors))


def clipped(site, *dys):
    """Not linear in all gradients at once."""
    norm = gg.sqrt(sum(gg.sum(d * d) for d in dys) + 0.1)
    return [d / norm for d in dys]


def reading(site, *dys):
    """Reads its tensors as inputs."""
    pairs = zip(dys, site.inputs, strict=True)
    return [d * (1.0 + 0.3 * x * x) + 0.1 * gg.sin(x) * gg.sum(dys[0]) for d, x in pairs]


def returning(site, *dys):
    """Returns its inputs."""
    return list(site.inputs)


def doubling(site, *dys):
    """Asks for its default."""
    return [2.0 * d for d in site.default(*dys)]


def asking(site, *dys):
    """Asks for a gradient of its own."""
    x = site.inputs[0]
    return [0.1 * gg.gradients(gg.sum(x**3 * dys[-1]), x), *dys[1:]]


RULES = [clipped, reading, returning, doubling, asking]


def handed_on(site, *dys):
    return list(dys)


def joined(tensors, rule):
    """The same as a region of identities, which is what a site stands for."""
    with gg.override_gradient(rule, inputs=tensors) as region:
        ys = [gg.identity(t) for t in tensors]
        region.declare(outputs=ys)
    return ys


# --- random programs -----------------------------------------------------------------------------


def tanh_rule(site, dy):
    return dy * (1.0 - site.outputs[0] ** 2)


def inside(site, *dys):
    return [1.5 * d if d is not gg.NO_GRAD else 0.0 for d in site.default(*dys)]


def program(seed, real):
    """A random program whose tensors are cut at random, by regions of identities or by sites."""
    draw = random.Random(seed)
    graph = gg.Graph()
    with graph:
        leaves = [[draw.uniform(-1, 1) for _ in "ab"] for _ in range(draw.randint(2, 4))]
        xs = [gg.variable(np.array(leaf)) for leaf in leaves]
        pool, unread, marks = list(xs), dict.fromkeys(range(len(xs))), []

        def any_of():
            i = draw.randrange(len(pool))
            unread.pop(i, None)
            return pool[i]

        def step():
            kind = draw.randrange(6)
            if kind < 2:
                return draw.choice([gg.sin, gg.cos, gg.tanh, lambda x: 0.5 * x * x])(any_of())
            if kind < 4:
                return any_of() * any_of()
            if kind == 4:
                with gg.override_gradient(tanh_rule):
                    return gg.tanh(any_of())
            with gg.override_gradient(inside):
                a = any_of()
                return gg.sin(a * any_of()) + a

        steps = draw.randint(4, 8)
        cuts = {draw.randrange(steps) for _ in range(draw.randint(1, 3))}
        for i in range(steps):
            if i in cuts and unread:
                chosen = draw.sample(sorted(unread), draw.randint(1, len(unread)))
                rules = [draw.choice(RULES) for _ in range(draw.choice([1, 1, 2]))]
                of = [chosen, *(draw.sample(chosen, 1) for _ in rules[1:])]
                if real:  # what is called first is nearest to those who read
                    for rule, places in reversed([*zip(rules, of, strict=True)]):
                        ys = joined([pool[j] for j in places], rule)
                        for j, y in zip(places, ys, strict=True):
                            pool[j] = y
                else:
                    pairs = zip(rules, of, strict=True)
                    marks[:0] = [([pool[j] for j in places], rule) for rule, places in pairs]
            pool.append(step())
            unread[len(pool) - 1] = None
        y = sum(gg.sum(pool[i] * (1.0 + 0.1 * i)) for i in unread)
        for tensors, rule in marks:
            graph.mark(tensors, rule, together=True)
    return graph, xs, y


def orders(graph, xs, y, order):
    """All gradients up to an order, also of one x asked alone."""
    found = []
    with graph:
        for _ in range(order):
            dxs = gg.gradients(y, xs, unconnected="zero")
            found += [*dxs, gg.gradients(y, xs[-1], unconnected="zero")]
            y = sum(gg.sum(dx * (0.7 + i)) for i, dx in enumerate(dxs))
        return values(*found)


@pytest.mark.parametrize("seed", range(24))
def test_S46_a_site_is_what_a_region_of_identities_would_be(seed):
    real, site = (orders(*program(seed, real), 2) for real in (True, False))
    for a, b in zip(real, site, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


def test_S46_at_the_third_order_too():
    for seed in (3, 8):
        real, site = (orders(*program(seed, real), 3) for real in (True, False))
        for a, b in zip(real, site, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-8)


# --- an oracle of its own: differentiated by hand, cut at the tensors -----------------------------

SLOPES = {"sin": np.cos, "cube": lambda x: 3 * x**2}


def tape(seed):
    """(op, inputs) for each tensor after three leaves."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(3, 10):
        op = rng.choice(["sin", "cube", "times", "plus"])
        rows.append((op, tuple(rng.integers(0, i, 2 if op in ("times", "plus") else 1))))
    return rng.normal(size=(3, 2)), rows


def built(leaves, rows):
    xs = [gg.variable(leaf) for leaf in leaves]
    ts = list(xs)
    for op, at in rows:
        a, b = ts[at[0]], ts[at[-1]]
        ts.append({"sin": gg.sin(a), "cube": a**3, "times": a * b, "plus": a + b}[op])
    return xs, ts


def by_hand(leaves, rows, cut, rule):
    """The gradients of the sum of all tensors, where `rule` changes those of the tensors in cut."""
    ts = list(leaves)
    for op, at in rows:
        a, b = ts[at[0]], ts[at[-1]]
        ts.append({"sin": np.sin(a), "cube": a**3, "times": a * b, "plus": a + b}[op])
    below = {i for i in cut for i in before(rows, i)}
    grads = [np.ones(2) for _ in ts]
    for i in sorted(range(3, len(ts)), key=lambda i: (i in cut or i in below, -i)):
        if i in cut or i in below:
            continue
        push(ts, rows, grads, i)
    grads = dict(enumerate(grads))
    changed = rule([grads[i] for i in cut])
    grads.update(zip(cut, changed, strict=True))
    for i in sorted({*cut, *below} - {0, 1, 2}, reverse=True):
        push(ts, rows, grads, i)
    return [grads[i] for i in range(3)]


def before(rows, i):
    found, stack = set(), list(rows[i - 3][1]) if i >= 3 else []
    while stack:
        j = stack.pop()
        if j not in found:
            found.add(j)
            stack += rows[j - 3][1] if j >= 3 else ()
    return found


def push(ts, rows, grads, i):
    op, at = rows[i - 3]
    if op in SLOPES:
        grads[at[0]] = grads[at[0]] + grads[i] * SLOPES[op](ts[at[0]])
        return
    for one, other in ((at[0], at[1]), (at[1], at[0])):
        grads[one] = grads[one] + grads[i] * (ts[other] if op == "times" else 1.0)


def shrunk(ds):
    return [d / np.sqrt(sum((d * d).sum() for d in ds) + 0.1) for d in ds]


@pytest.mark.parametrize("seed", range(40))
def test_S46_the_gradients_are_those_of_the_graph_cut_at_the_tensors(seed):
    leaves, rows = tape(seed)
    cut = random.Random(seed).sample(range(10), 3)
    cut = [i for i in cut if not any(i in before(rows, j) for j in cut)]
    for rule, mine in ((handed_on, list), (clipped, shrunk)):
        graph = gg.Graph()
        with graph:
            xs, ts = built(leaves, rows)
            graph.mark([ts[i] for i in cut], rule, together=True)
            found = values(*gg.gradients(sum(map(gg.sum, ts)), xs))
        for a, b in zip(found, by_hand(leaves, rows, cut, mine), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


# --- laws -----------------------------------------------------------------------------------------


def net():
    """A small net: its loss, and what it learns."""
    x = gg.constant(np.linspace(-1.0, 1.0, 6).reshape(2, 3))
    w, b = gg.variable(np.arange(6.0).reshape(3, 2) / 7, name="w"), gg.variable(0.3, name="b")
    h = gg.tanh(x @ w + b)
    return gg.sum(h * h) + gg.sum(w), [w, b], h


def test_S46_the_identity_changes_nothing_at_any_order(graph):
    y, xs, h = net()
    plain = values(*gg.gradients(y, xs))
    graph.mark(gg.select.variables(), handed_on, together=True)
    graph.mark(h, handed_on, together=True)
    first = gg.gradients(y, xs)
    for a, b in zip(values(*first), plain, strict=True):
        np.testing.assert_array_equal(a, b)
    second = gg.gradients(sum(gg.sum(d * d) for d in first), xs)
    off = gg.gradients(y, xs, overrides="none")
    again = gg.gradients(sum(gg.sum(d * d) for d in off), xs, overrides="none")
    for a, b in zip(values(*second), values(*again), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_S46_a_constant_factor_is_there_once_for_each_order(graph):
    y, xs, _ = net()
    plain = gg.gradients(y, xs)
    hessian = values(*gg.gradients(sum(map(gg.sum, plain)), xs))
    graph.mark(xs, lambda site, *dys: [3.0 * d for d in dys], together=True)
    first = gg.gradients(y, xs)
    for a, b in zip(values(*first), values(*plain), strict=True):
        np.testing.assert_allclose(a, 3.0 * b, rtol=1e-12)
    second = values(*gg.gradients(sum(map(gg.sum, first)), xs))
    for a, b in zip(second, hessian, strict=True):
        np.testing.assert_allclose(a, 9.0 * b, rtol=1e-12)


def test_S46_clipping_of_leaves_is_that_of_all_plain_gradients(graph):
    y, xs, _ = net()
    plain = values(*gg.gradients(y, xs))
    norm = np.sqrt(sum((d * d).sum() for d in plain))
    graph.mark(gg.select.variables(), gg.rules.clip_global_norm(0.5), together=True)
    nodes = [n for n in graph.nodes if n.origin is None]
    for a, b in zip(values(*gg.gradients(y, xs)), plain, strict=True):
        np.testing.assert_allclose(a, b * 0.5 / norm, rtol=1e-12)
    assert [n for n in graph.nodes if n.origin is None] == nodes
    (alone,) = values(gg.gradients(y, xs[1]))  # the others count where one is asked for
    np.testing.assert_allclose(alone, plain[1] * 0.5 / norm, rtol=1e-12)


def test_S46_one_call_for_all_with_zeros_for_what_has_no_gradient(graph):
    calls = []

    def spy(site, *dys):
        calls.append(dys)
        return [d + 1.0 for d in dys]

    a, b, c = (gg.variable(float(i), name=n) for i, n in enumerate("abc"))
    y = a * a
    graph.mark([a, b, c], spy, together=True)
    assert values(*gg.gradients(y, [a, b])) == [1.0, 1.0]
    assert [gg.is_zero(d) for d in calls[0]] == [False, True, True]
    assert len(calls) == 1
    assert gg.gradients(gg.sin(gg.constant(1.0)), [a]) == [None]
    assert len(calls) == 1


def test_S46_the_rule_put_first_is_called_first(graph):
    x = gg.variable(2.0)
    y = x * 3.0
    graph.mark(x, lambda site, d: d + 1.0, together=True)
    graph.mark(x, lambda site, d: d * 10.0, together=True)
    assert value(gg.gradients(y, x)) == 40.0


def test_S46_ys_and_xs_among_the_tensors(graph):
    x = gg.variable(2.0)
    h = x * x
    y = h * 3.0
    graph.mark(h, lambda site, d: d * 10.0, together=True)
    assert value(gg.gradients([h, y], x)) == 4.0 * 10.0 * 4.0
    assert value(gg.gradients([h, y], h)) == 40.0
    assert value(gg.gradients(y, h)) == 30.0


def test_S46_a_stop_at_a_tensor_cuts_below_its_site(graph):
    x = gg.variable(2.0)
    h = x * x
    y = h * 3.0 + x
    graph.mark(h, lambda site, d: d * 10.0, together=True)
    assert value(gg.gradients(y, h, stop_gradients=h)) == 30.0
    assert value(gg.gradients(y, x, stop_gradients=h)) == 1.0


def test_S46_an_output_of_a_region_and_what_it_hides(graph):
    x = gg.variable(2.0)
    with gg.override_gradient(lambda site, dy: 5.0 * site.default(dy)[0]) as region:
        h = x * x
        out = h * 3.0
    y = out * 2.0
    graph.mark(out, lambda site, d: d + 1.0, together=True)
    assert value(gg.gradients(y, x)) == 5.0 * 3.0 * 4.0 * 3.0
    with pytest.raises(gg.RegionError, match=r"(?s)hidden inside <region .*allow_inside=True"):
        graph.mark(h, lambda site, d: d * 100.0, together=True)
    graph.mark(h, lambda site, d: d * 100.0, together=True, allow_inside=True)
    assert value(gg.gradients(y, x)) == 5.0 * 3.0 * 4.0 * 3.0 * 100.0
    graph.unmark(region)
    assert value(gg.gradients(y, x)) == 3.0 * 4.0 * 3.0 * 100.0


def test_S46_in_a_checkpoint_the_recomputed_tensors_have_it_too(graph):
    x = gg.variable(2.0)
    seen = {}

    def inner(x):
        seen["h"] = h = x * x
        return gg.sin(h)

    y = gg.rules.checkpoint(inner)(x)
    graph.mark(seen["h"], lambda site, d: d * 10.0, together=True, allow_inside=True)
    assert value(gg.gradients(y, x)) == pytest.approx(40.0 * np.cos(4.0))
    with pytest.raises(gg.RegionError, match="was recomputed"):
        graph.mark(seen["h"], handed_on, together=True, allow_inside=True)


def test_S23_S46_its_rule_reads_outputs_as_inputs(graph):
    x = gg.variable(2.0)
    y = x * x * x
    graph.mark(x, lambda site, d: d * site.outputs[0], together=True)
    dx = gg.gradients(y, x)  # 3 x^3; of its reads of x the factor x is no read from above the site
    assert value(dx) == 24.0
    assert value(gg.gradients(dx, x)) == 6.0 * 2.0 * 2.0 * 2.0 + 3.0 * 4.0


def in_a_checkpoint(real):
    """Third-order gradients through a checkpoint in which there is a site, and beside one."""
    with gg.Graph() as graph:
        x, w = gg.variable(np.array([0.3, 0.7])), gg.variable(np.array([1.0, -2.0]))
        k, seen = gg.variable(2.0), []

        def held(site, *dys):
            return [k * d for d in reading(site, *dys)]

        def inner(x, w):
            h, c = gg.sin(x * w), gg.cos(x)
            h, c = joined([h, c], held) if real else (h, c)
            seen.extend([h, c])
            return h * c * h

        y = gg.sum(gg.rules.checkpoint(inner)(*(joined([x, w], reading) if real else (x, w))))
        if not real:
            graph.mark(seen, held, together=True, allow_inside=True)
            graph.mark([x, w], reading, together=True)
        return orders(graph, [x, w], y, 3)


def test_S23_S46_what_a_checkpoint_computes_again_has_it_at_every_order():
    for a, b in zip(in_a_checkpoint(True), in_a_checkpoint(False), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


def test_S05_S46_a_call_chooses_for_it_and_switches_it_off(graph):
    y, xs, _ = net()
    plain = values(*gg.gradients(y, xs))
    (site,) = graph.mark(xs, lambda site, *dys: [2.0 * d for d in dys], together=True)
    for overrides, factor in (
        ("none", 1.0),
        ({site: None}, 1.0),
        ({site: lambda site, *dys: [7.0 * d for d in dys]}, 7.0),
        ({site: lambda site, *dys: [3.0 * d for d in site.default(*dys)]}, 6.0),
        (None, 2.0),
    ):
        found = values(*gg.gradients(y, xs, overrides=overrides))
        for a, b in zip(found, plain, strict=True):
            np.testing.assert_allclose(a, factor * b, rtol=1e-12)


def test_S04_S46_it_is_found_given_another_rule_and_taken_off(graph):
    y, xs, _ = net()
    plain = values(*gg.gradients(y, xs))

    def twice(site, *dys):
        return [2.0 * d for d in dys]

    (site,) = graph.mark(xs, twice, together=True)
    assert gg.select.rule("twice").find(graph) == [site]
    first = gg.gradients(y, xs)
    graph.mark(site, lambda site, *dys: [5.0 * d for d in dys], replace=True)
    for a, b in zip(values(*gg.gradients(y, xs)), plain, strict=True):
        np.testing.assert_allclose(a, 5.0 * b, rtol=1e-12)
    assert graph.unmark(site) == [site]
    for a, b in zip(values(*gg.gradients(y, xs)), plain, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(values(*first), plain, strict=True):
        np.testing.assert_allclose(a, 2.0 * b, rtol=1e-12)
    verify_graph(graph)
    with pytest.raises(gg.RegionError, match="nothing that is marked"):
        graph.unmark(site)
    graph.mark(xs, twice, together=True)
    verify_graph(graph)
    with pytest.raises(gg.RegionError, match=r"stands in <region 'twice'.*graph\.unmark that"):
        graph.unmark(gg.select.variables())


def test_S04_S46_variables_by_name(graph):
    _, (w, b), _ = net()
    gg.variable(0, name="step")
    gg.variable(0.0, name="running_mean", trainable=False)
    found = gg.select.variables().find(graph)
    assert found == [w.node, b.node]
    assert gg.select.variables("w*").find(graph) == [w.node]
    assert repr(gg.select.variables("w*")) == "select.variables('w*')"
    with pytest.raises(gg.RegionError, match=r"selects nothing[^\n]*\nThere are"):
        graph.mark(gg.select.variables("v"), handed_on, together=True)
    assert graph.mark(gg.select.variables("v"), handed_on, together=True, allow_empty=True) == []


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        (lambda y, xs, h: [xs[0], h], {}, "depends on w"),
        (lambda y, xs, h: [xs[0].node.index], {}, "got 0|got 1|got 2|got 3"),
        (lambda y, xs, h: [], {}, "at least one"),
        (lambda y, xs, h: [gg.constant(3)], {}, "integers and bools"),
        (lambda y, xs, h: xs, {"inputs": [1]}, "inputs= is not for"),
        (lambda y, xs, h: xs, {"escape": "default"}, "escape= is not for"),
        (lambda y, xs, h: xs, {"replace": True}, "replace= is not for"),
    ],
)
def test_S13_S46_what_cannot_be_a_site_is_an_error_and_changes_nothing(graph, given, options, says):
    tensors = given(*net())
    with pytest.raises(gg.RegionError, match=says):
        graph.mark(tensors, handed_on, together=True, **options)
    assert not graph.regions
    assert not graph.sites


def test_S46_tensors_of_several_graphs_or_an_open_block(graph):
    x = gg.variable(1.0)
    with gg.Graph():
        other = gg.variable(1.0)
    with pytest.raises(gg.RegionError, match="is not in"):
        graph.mark([x, other], handed_on, together=True)
    with gg.override_gradient(handed_on):
        h = x * x
        with pytest.raises(gg.RegionError, match="still open"):
            graph.mark(h, handed_on, together=True)


def test_S11_S46_sites_that_need_each_other_are_an_error_with_the_path(graph):
    a, b = gg.variable(1.0), gg.variable(2.0)
    t = gg.sin(a)
    y = a * b * t
    graph.mark([a, b], handed_on, together=True)
    graph.mark([b, t], handed_on, together=True)
    with pytest.raises(gg.RegionError, match=r"(?s)depend on each other in a cycle.*another order"):
        gg.gradients(y, [a, b])


def test_S46_a_region_that_would_hide_a_tensor_of_a_site(graph):
    x = gg.variable(1.0)
    h = gg.sin(x)
    k = gg.exp(h)
    graph.mark(h, handed_on, together=True)
    with pytest.raises(gg.RegionError, match="would hide"):
        graph.mark(gg.select.nodes(h, k), handed_on)
    with pytest.raises(gg.RegionError, match="would hide"):
        gg.gradients(k, x, overrides={gg.select.nodes(h, k): handed_on})
    graph.mark(gg.select.nodes(h), lambda site, d: 2.0 * d)
    assert value(gg.gradients(k, x)) == pytest.approx(2.0 * np.exp(np.sin(1.0)))


def test_S46_an_error_in_a_block_that_is_undone_takes_it_away(graph):
    y, xs, _ = net()
    plain = values(*gg.gradients(y, xs))

    def fails():
        with undone_on_error([graph]):
            graph.mark(xs, clipped, together=True)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    assert not graph.sites
    for a, b in zip(values(*gg.gradients(y, xs)), plain, strict=True):
        np.testing.assert_array_equal(a, b)


def test_S46_one_that_was_built_after_all_readers_gets_what_the_rule_gives(graph):
    a = gg.variable(0.5)
    y = gg.exp(a)
    b = gg.variable(3.0)
    graph.mark([a, b], returning, together=True)
    assert value(gg.gradients(y, b)) == 3.0
    copied = copy.deepcopy((y, b))
    assert value(gg.gradients(*copied)) == 3.0


def test_S46_tensors_of_a_body_and_of_the_graph_around_it_are_no_site(graph):
    w = gg.variable(2.0)
    found = []

    def step(carry, _):
        found.append(gg.sin(carry))
        return found[-1] * w, 0.0

    gg.scan(step, gg.constant(1.0), length=2)
    with pytest.raises(gg.RegionError, match="several graphs, as those of bodies"):
        graph.mark([w, found[-1]], handed_on, together=True)
    assert not graph.sites
    assert graph.mark([], handed_on, together=True, allow_empty=True) == []


def test_S46_what_is_put_twice_is_there_once(graph):
    """As where an interrupt has it put again."""
    y, xs, _ = net()
    (site,) = graph.mark(xs, doubling, together=True)
    (other,) = graph.mark(xs[0], doubling, together=True)
    regions, scattered = list(graph.regions), list(graph.scattered)
    for again in (site, other):
        assert put_site(again) is again
    assert (graph.regions, graph.scattered) == (regions, scattered)
    assert graph.sites == {x: (site, other) if x is xs[0] else (site,) for x in xs}
    assert y is not None


def test_S27_S46_a_copy_knows_sites_and_no_other_region_by_its_tensors(graph):
    x = gg.variable(2.0)
    with gg.override_gradient(handed_on, inputs=[x]):
        y = gg.sin(x)
    graph.mark(y, doubling, together=True)
    x, y = copy.deepcopy((x, y))
    assert list(y.graph.sites) == [y]
    assert value(gg.gradients(y, x)) == 2.0


def test_S25_S46_forward_mode_takes_linear_rules(graph):
    x = gg.variable([0.5, 1.0])
    y = gg.sin(x)
    (site,) = graph.mark(x, lambda site, d: 3.0 * d, together=True)
    np.testing.assert_allclose(value(gg.jvp(y, x)), 3.0 * np.cos([0.5, 1.0]))
    graph.mark(site, clipped, replace=True)
    with pytest.raises(gg.GradientError, match="has to be linear"):
        gg.jvp(y, x)


def test_S23_S46_order_error_refuses_a_second_derivative(graph):
    x = gg.variable(2.0)
    y = x * x * x
    graph.mark(x, lambda site, d: 3.0 * d, together=True, order="error")
    dx = gg.gradients(y, x)
    assert value(dx) == 36.0
    with pytest.raises(gg.GradientError, match="order='error'"):
        gg.gradients(dx, x)


def test_S39_S46_explain_names_it(graph):
    y, xs, _ = net()
    graph.mark(xs, clipped, together=True)
    for x in xs:
        assert [site.rule for site in gg.explain(y, x)[x].sites] == ["clipped"]


def test_S40_S46_lint_looks_at_its_rule(graph):
    y, xs, _ = net()
    graph.mark(xs, "not_there_yet", together=True, late=True)
    assert "late name" in [found.kind for found in gg.lint(graph)]
    assert y is not None
