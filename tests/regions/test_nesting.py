"""Regions in regions, hundreds deep: built, asked and differentiated, with no recursion."""

from __future__ import annotations

import random

import pytest

import graphgrad as gg
from graphgrad.ir.node import Region, common_region, enclosing
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import sin
from graphgrad.ops.sources import placeholder
from graphgrad.regions.boundary import boundary_of, scan
from graphgrad.regions.select import select

from ..differentiate.helpers import calls_of, default, value

DEEP = 1_000


def twice(site, *dys):
    return [2.0 * dys[0]] * len(site.inputs)


def nest(depth, rule=twice, pinned=False):
    """x, y, and the regions around y, each around a node of its own and the next."""
    x = y = placeholder(())
    scopes = []
    for _ in range(depth):
        scopes.append(gg.override_gradient(rule, inputs=[y] if pinned else None))
        scopes[-1].__enter__()
        y = sin(y)
    for scope in reversed(scopes):
        scope.__exit__(None, None, None)
    return x, y, [scope.region for scope in scopes]


# --- the tree ------------------------------------------------------------------------------------


def walked(region):
    """The regions around, by a walk over the parents."""
    found = []
    while region is not None:
        found.append(region)
        region = region.parent
    return tuple(reversed(found))


def test_what_is_kept_of_the_tree_is_what_a_walk_finds(graph):
    rng = random.Random(0)
    regions = [Region(graph, None, parent=None, origin=None, position=None)]
    for _ in range(60):
        around = rng.choice([*regions, None])
        regions.append(Region(graph, None, parent=around, origin=None, position=None))

    def check():
        for a in (*regions, None):
            assert enclosing(a) == walked(a)
            for b in (*regions, None):
                common = [r for r in walked(a) if r in walked(b)]
                assert common_region(a, b) is (common[-1] if common else None)
                assert a is None or a.contains(b) is (a in walked(b))

    check()
    for _ in range(10):  # regions that are marked afterwards come between
        inner = rng.choice(regions)
        regions.append(Region(graph, None, parent=inner.parent, origin=None, position=None))
        inner.parent = regions[-1]
        check()
        inner.parent = regions[-1].parent
        check()


def test_the_boundaries_of_a_nest(graph):
    for pinned in (False, True):
        x, y, regions = nest(12, pinned=pinned)
        z = exp(y)
        before = x
        for region in regions:
            boundary = boundary_of(region)
            assert (boundary.inputs, boundary.outputs) == ((before,), (y,))
            assert boundary.reach(before) == 1
            assert boundary.first is boundary.members[0]
            assert boundary.last is boundary.members[-1] is y.node
            before = boundary.first.outputs[0]
        assert gg.evaluate(gg.gradients(z, y), {x: 0.3}) == gg.evaluate(z, {x: 0.3})


def test_S28_a_declared_input_of_an_inner_region_that_begins_with_its_outer_one():
    x, w = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, *dys: dict.fromkeys(site.inputs, dys[0] * 3.0)):
        with gg.override_gradient(twice, inputs=[x, w]), gg.override_gradient(twice, inputs=[x]):
            h = sin(x)
        y = exp(h)
    (dw,) = gg.gradients(y, [w])
    assert value(dw, {x: 0.3, w: 0.0}) == 3


def slowly(region):
    """Inputs, in order of first use, and outputs, in order of building, by a look at all nodes."""
    nodes, regions = region.graph.nodes, region.graph.regions
    inside = [n for n in nodes if region in walked(n.region)]
    uses = [(n.index, 0, i, t, n.region) for n in nodes for i, t in enumerate(n.inputs)]
    for each in regions:
        first = next(n.index for n in nodes if each in walked(n.region)) - 0.5
        declared = enumerate(each.pinned_inputs or ())
        uses += [(first, len(walked(each)), i, t, each.parent) for i, t in declared]
    uses = [(*when, t, region in walked(at)) for *when, t, at in sorted(uses, key=lambda u: u[:3])]
    inputs = dict.fromkeys(t for *_, t, here in uses if here and t.node not in inside)
    left = {t for *_, t, here in uses if not here}
    used = {t for *_, t, here in uses if here}
    outputs = []
    for node in inside:
        found = [t for t in node.outputs if t in left]
        outputs += found or ([] if used.intersection(node.outputs) else node.outputs)
    return tuple(inputs), tuple(outputs), inside


def some(rng, known):
    """A few tensors to be declared as inputs, or None."""
    return rng.sample(known, 2) if rng.random() < 0.3 else None


def random_nest(rng, known, depth):
    """Nodes and regions, in the block that is open."""
    for _ in range(rng.randrange(1, 4)):
        if depth and rng.random() < 0.6:
            with gg.override_gradient(twice, inputs=some(rng, known)):
                known.append(exp(rng.choice(known)))
                random_nest(rng, known, depth - 1)
        elif rng.random() < 0.3:
            known += gg.split(gg.stack([rng.choice(known), rng.choice(known)]), 2)
            known[-2:] = [t[0] for t in known[-2:]]
        else:
            known.append(rng.choice(known[-4:]) * rng.choice(known))
        if rng.random() < 0.2:
            scan(known[0].graph)


def changed(rng, graph, known):
    """Whether a mark was put on, or taken off."""
    regions = graph.regions
    try:
        if regions and rng.random() < 0.4:
            graph.unmark(rng.choice(regions))
        else:
            start = rng.randrange(1, len(graph.nodes))
            chosen = graph.nodes[start : start + rng.randrange(1, 9)]
            graph.mark(select.nodes(chosen), twice, some(rng, known), allow_inside=True)
    except gg.RegionError:  # overlaps with a region
        return False
    return True


def test_S09_random_nests_with_marks_put_on_and_taken_off():
    rng = random.Random(3)
    changes = 0
    for _ in range(60):
        with gg.Graph() as graph:
            known = [placeholder(()), placeholder(())]
            random_nest(rng, known, 4)
            for _ in range(6):
                changes += changed(rng, graph, known)
                with graph:
                    known.append(sin(rng.choice(known)))
            for region in rng.sample(graph.regions, len(graph.regions)):
                boundary = boundary_of(region)
                inputs, outputs, inside = slowly(region)
                assert boundary.members == inside
                assert (boundary.first, boundary.last) == (inside[0], inside[-1])
                assert boundary.inputs == (region.pinned_inputs or inputs)
                assert boundary.outputs == outputs
                assert set(boundary.reads) == set(inputs)
    assert changes > 100


# --- costs ---------------------------------------------------------------------------------------


@pytest.mark.ci
def test_S37_a_nest_of_a_thousand_regions():
    with gg.Graph():
        x, y, regions = nest(DEEP)
        first = gg.gradients(y, x)
        assert value(first, {x: 0.3}) == 2
        plain = gg.gradients(y, x, overrides="none")
        assert gg.gradients(plain, x, overrides="none") is not None
        assert gg.gradients(y, x, overrides={regions[0]: None}) is not None


@pytest.mark.parametrize("pinned", [False, True])
def test_S37_asking_a_nest_with_all_marks_off_costs_at_most_its_nodes_times_its_depth(pinned):
    def cost(depth):
        def work():
            with gg.Graph():
                x, y, _ = nest(depth, pinned=pinned)
                gg.gradients(y, x)
                plain = gg.gradients(y, x, overrides="none")
                gg.gradients(plain, x, overrides="none")

        return calls_of(work)

    assert cost(100) < 1.2 * 4 * cost(50)


def test_S37_rules_that_ask_for_their_default_all_the_way_down():
    def cost(depth):
        with gg.Graph():
            x, y, _ = nest(depth, default)
            return calls_of(lambda: gg.gradients(y, x))

    assert cost(60) < 1.2 * 4 * cost(30)


@pytest.mark.ci
@pytest.mark.parametrize("outwards", [False, True])
def test_S37_marks_around_marks(outwards):
    def cost(depth):
        with gg.Graph() as graph:
            x = y = placeholder(())
            found = []
            for _ in range(depth):
                y = sin(y)
                found.append(y)
            sizes = range(1, depth + 1) if outwards else range(depth, 0, -1)

            def work():
                for size in sizes:
                    graph.mark(select.nodes(found[:size]), twice, allow_inside=True)
                gg.gradients(y, x)

            return calls_of(work)

    assert cost(100) < 1.3 * 4 * cost(50)


def test_S37_groups_in_groups():
    def cost(depth):
        with gg.Graph():
            x = y = placeholder(())
            found = []
            for _ in range(depth):
                y = sin(y)
                found.append(y)
            groups = {select.nodes(found[: size + 1]): default for size in range(depth)}
            return calls_of(lambda: gg.gradients(y, x, overrides=groups))

    assert cost(60) < 1.3 * 4 * cost(30)
