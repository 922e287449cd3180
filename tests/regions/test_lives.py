"""How long a scope acts, and where: from its `with` to its end, on the graph it was opened in."""

# ruff: noqa: SIM117, PT012  (blocks inside blocks are what is tested)

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import cos, sin
from graphgrad.ops.sources import placeholder
from graphgrad.regions.boundary import boundary_of

from ..differentiate.helpers import default, value


def seven(site, dy):
    return 7.0 * dy


def later(scope, fn, *inside):
    """fn(), called when `scope` was left, in a copy of the context made inside it."""
    with scope:
        for t in inside:
            exp(t)
        context = contextvars.copy_context()
    return context.run(fn)


# --- S31: a context that outlives the block ------------------------------------------------------

SCOPES = {
    "region": lambda: gg.override_gradient(default, allow_empty=True),
    "map": lambda: gg.gradient_override_map({"Sin": default}, allow_empty=True),
    "name_scope": lambda: gg.name_scope("encoder"),
    "graph": lambda: gg.default_graph(),
    "as_default": lambda: gg.default_graph().as_default(),
}
WORDS = {
    "region": "<region 'default' #",
    "map": "<gradient_override_map at test_lives.py:",
    "name_scope": "<name_scope('encoder') at test_lives.py:",
    "graph": "<`with` of <graph 'graph'",
    "as_default": "<`with` of <graph 'graph'",
}


@pytest.mark.parametrize("kind", SCOPES)
def test_S31_what_a_context_builds_after_the_block_is_a_ScopeError(kind, graph):
    x = placeholder(())
    count = len(graph)
    with pytest.raises(gg.ScopeError) as error:
        later(SCOPES[kind](), lambda: sin(x))
    for part in (WORDS[kind], "a node is built at test_lives.py:", "continues after it"):
        assert part in str(error.value)
    assert len(graph) == count
    assert sin(x).node.where.startswith("test_lives.py")


@pytest.mark.parametrize("kind", SCOPES)
def test_S31_what_a_task_builds_after_the_block_is_a_ScopeError(kind):
    x = placeholder(())

    async def main():
        async def task():
            before = sin(x)
            await ended.wait()
            sin(before)

        ended = asyncio.Event()
        with SCOPES[kind]():
            going_on = asyncio.create_task(task())
            await asyncio.sleep(0)
        ended.set()
        with pytest.raises(gg.ScopeError, match="continues after it"):
            await going_on

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["region", "name_scope", "graph", "as_default"])
@pytest.mark.parametrize("inner", ["name_scope", "map", "region"])
def test_S31_a_scope_opened_in_one_that_ended_does_not_prolong_it(kind, inner):
    x = placeholder(())
    context = None

    def opens():
        SCOPES[inner]().__enter__()

    with SCOPES[kind]():
        context = contextvars.copy_context()
        context.run(opens)
        context.run(lambda: cos(x))
    with pytest.raises(gg.ScopeError, match="continues after it"):
        context.run(lambda: cos(x))
    assert cos(x).node.scope == ""


def test_S31_a_map_that_ended_is_in_nobodys_way_where_it_would_not_act():
    x = placeholder(())

    def builds():
        with gg.gradient_override_map({"Sin": seven}):  # an inner map wins
            return cos(x), sin(x)

    y, z = later(gg.gradient_override_map({"Sin": default}, allow_empty=True), builds)
    assert y.node.stamp is None
    assert z.node.stamp is seven


def test_S31_gradients_in_a_context_that_outlived_a_graph_is_a_ScopeError_in_one_of_a_map_not():
    x = placeholder(())
    y = sin(x)
    with gg.gradient_override_map({"Cos": default}, allow_empty=True):
        assert later(SCOPES["map"](), lambda: value(gg.gradients(y, x), {x: 0.0})) == 1
    with pytest.raises(gg.ScopeError, match="continues after it"):
        later(SCOPES["graph"](), lambda: gg.gradients(y, x))


@pytest.mark.parametrize("when", ["before", "after"])
def test_S31_a_graph_that_the_context_enters_itself_is_its_own(when, graph):
    x = placeholder(())

    def steps():
        if when == "before":
            with graph:
                yield
                yield sin(x)
        else:
            yield
            with graph:
                yield sin(x)

    driven = steps()
    with graph:
        context = contextvars.copy_context()
        context.run(next, driven)
    (y,) = context.run(list, driven)
    assert y.graph is graph


@pytest.mark.parametrize("scope", ["name_scope", "region"])
def test_S31_entering_the_graph_again_does_not_bring_back_what_ended(scope, graph):
    x = placeholder(())

    def builds():
        with gg.Graph(), graph:
            cos(x)

    with pytest.raises(gg.ScopeError, match="continues after it"):
        later(SCOPES[scope](), builds, *([x] if scope == "region" else []))


def test_S31_another_graph_is_free_where_scopes_of_this_one_ended():
    def builds():
        with gg.Graph() as other:
            return sin(placeholder(())), other

    for kind in SCOPES:
        y, other = later(SCOPES[kind](), builds)
        assert y.graph is other
        assert (y.node.region, y.node.stamp, y.node.scope) == (None, None, "")


def test_S31_another_graph_that_was_entered_inside_goes_on_when_the_scope_has_ended():
    def steps(other):
        with other:
            yield
            yield sin(placeholder(()))

    for kind in ("region", "map", "name_scope"):
        driven = steps(gg.Graph())
        with SCOPES[kind]():
            context = contextvars.copy_context()
            context.run(next, driven)
        (y,) = context.run(list, driven)
        assert (y.node.region, y.node.stamp, y.node.scope) == (None, None, "")


def test_S31_a_branch_that_ended_takes_no_more_nodes():
    x = placeholder(())
    kept = []

    def branch():
        kept.append(contextvars.copy_context())
        return sin(x)

    gg.cond(x > 0, branch, lambda: x)
    with pytest.raises(gg.ScopeError, match="the body 'then of cond at test_lives"):
        kept[0].run(lambda: sin(x))


def test_S31_a_context_goes_on_as_long_as_the_block_does():
    x = placeholder(())
    with gg.name_scope("a"), gg.gradient_override_map({"Sin": seven}):
        context = contextvars.copy_context()
        with gg.name_scope("b"):
            pass
        y = context.run(lambda: sin(x))
    assert (y.node.scope, y.node.stamp) == ("a/", seven)


# --- S1, S2, S31: leaving for another graph, and coming back -------------------------------------


def by_way_of_another(graph, fn):
    """What a library does that works in a graph of its own, and comes back."""
    with gg.Graph() as other:
        with graph:
            found = fn()
        assert len(other) == 0
    return found


def test_S01_a_region_is_found_again_after_another_graph(graph):
    x = placeholder(())
    with gg.override_gradient(lambda site, *dys: [2.0 * sum(dys)]) as region:
        h = cos(x)
        y = by_way_of_another(graph, lambda: sin(x))
    z = sin(x)
    assert (y.node.region, z.node.region) == (region, None)
    assert value(gg.gradients(y + h, x), {x: 0.0}) == 4


def test_S02_maps_and_name_scopes_are_found_again_after_another_graph(graph):
    x = placeholder(())
    with gg.name_scope("a"), gg.gradient_override_map({"Sin": seven}):
        y = by_way_of_another(graph, lambda: by_way_of_another(graph, lambda: sin(x)))
    assert (y.node.scope, y.node.stamp) == ("a/", seven)


def test_S31_each_graph_has_its_own_open_scopes(graph):
    other = gg.Graph("other")
    x = placeholder(())
    with gg.name_scope("a"), gg.override_gradient(default) as outer:
        sin(x)
        with other, gg.name_scope("b"), gg.override_gradient(default) as theirs:
            u = sin(placeholder(()))
            with graph, gg.override_gradient(default) as inner:
                y = sin(x)
                with other:
                    v = sin(u)
            w = sin(v)
    assert (inner.parent, theirs.parent) == (outer, None)
    assert (y.node.region, y.node.scope) == (inner, "a/")
    assert {(t.node.region, t.node.scope) for t in (u, v, w)} == {(theirs, "b/")}


def test_S02_a_map_does_not_reach_another_graph():
    with pytest.raises(gg.RegionError, match="no node of type 'Sin' was built"):
        with gg.gradient_override_map({"Sin": seven}):
            with gg.Graph():
                y = sin(placeholder(()))
    assert y.node.stamp is None


def test_S02_the_map_of_a_graph_acts_on_its_nodes_only(graph):
    other = gg.Graph("other")
    with other:
        u = placeholder(())
    with other.gradient_override_map({"Sin": seven}) as opened:
        y = sin(placeholder(()))
        with other:
            v = sin(u)
            with gg.gradient_override_map({"Sin": default}):
                w = sin(u)
    with gg.gradient_override_map({"Sin": default}, allow_empty=True):
        with other.gradient_override_map({"Sin": seven}), other:
            z = sin(u)
    assert [t.node.stamp for t in (y, v, w, z)] == [None, seven, default, seven]
    assert opened in other.maps
    assert opened not in graph.maps
    assert opened.unmatched == []


def test_S02_the_map_of_a_graph_reaches_its_branches():
    graph = gg.Graph()
    with graph.gradient_override_map({"Sin": seven}):
        with graph:
            x = placeholder(())
            y = gg.cond(x > 0, lambda: sin(x), lambda: x)
            dx = gg.gradients(y, x)
    assert value(dx, {x: 1.0}) == 7


def test_S02_in_a_branch_the_graph_around_is_found_with_its_scopes(graph):
    x = placeholder(())
    outside = []

    def branch():
        with graph:
            outside.append(sin(x))
        return exp(x)

    with gg.name_scope("a"), gg.override_gradient(default) as region:
        gg.cond(x > 0, branch, lambda: x)
    (y,) = outside
    assert (y.graph, y.node.region, y.node.scope) == (graph, region, "a/")


def test_S02_where_nobody_entered_a_graph_maps_act_on_the_graph_of_the_inputs():
    elsewhere = gg.Graph("elsewhere")
    with elsewhere:
        x = placeholder(())

    @gg.custom_gradient
    def f(t):
        return sin(t), lambda dy: dy

    def builds():
        u = placeholder(())
        with gg.gradient_override_map({"Sin": default, "Cos": default}):
            found = [sin(x), sin(u), gg.cond(x > 0, lambda: sin(x), lambda: x)]
            found.append(f(x).node.inputs[0])
            with elsewhere.gradient_override_map({"Sin": seven}):
                found += [sin(x), sin(u), cos(x)]
                with gg.gradient_override_map({"Sin": default}):
                    found.append(sin(x))
        return found

    found = contextvars.Context().run(builds)
    branch = found.pop(2).node.op.programs[0].outputs[0]
    assert branch.node.stamp is default
    expected = [default, default, default, seven, default, default, default]
    assert [t.node.stamp for t in found] == expected
    assert [t.graph is elsewhere for t in found] == [1, 0, 1, 1, 0, 1, 1]


def test_S22_gradients_of_another_graph_belong_to_the_region_that_is_open_there(graph):
    x = placeholder(())
    with gg.override_gradient(default) as region:
        y = sin(x)
        with gg.Graph(), gg.gradient_override_map({"Multiply": default}, allow_empty=True):
            dx = gg.gradients(y, x)
    assert dx.node.region is region
    assert dx.node.stamp is None
    assert value(dx, {x: 0.0}) == 1


def test_S23_what_a_rule_builds_by_way_of_another_graph_is_derived_all_the_same(graph):
    """Residuals, so the inside counts at second order: y = x**3 with rule dy * y / x."""

    def at(through):
        x = placeholder(())

        def rule(site, dy):
            with through():
                return dy * held[0]

        with gg.override_gradient(rule):
            held = [x * x]
            y = held[0] * x
        return value(gg.gradients(gg.gradients(y, x), x), {x: 3.0})

    @contextmanager
    def detour():
        with gg.Graph(), graph:
            yield

    assert at(detour) == at(nullcontext) == 6


# --- S31: who works for an open block without its context ----------------------------------------


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("entered", [False, True])
def test_S31_a_worker_that_enters_the_graph_itself_is_outside_of_the_blocks_of_others(
    copied, entered, graph
):
    """Each has its own blocks on one graph: what another thread has open does not count."""
    x = placeholder(())

    def work():
        with graph if entered else nullcontext():
            return cos(x)

    stamped = gg.gradient_override_map({"Cos": default}, allow_empty=True)
    with ThreadPoolExecutor(1) as pool, gg.override_gradient(default) as region, stamped:
        y = sin(x)
        run = contextvars.copy_context().run if copied else lambda f: f()
        z = pool.submit(run, work).result()
    assert y.node.region is region
    assert (z.graph, z.node.region) == (graph, region if copied else None)
    assert (z.node.stamp is not None) is copied
    assert boundary_of(region).outputs == ((y, z) if copied else (y,))


@pytest.mark.parametrize("copied", [False, True])
def test_S31_a_worker_that_reads_an_open_block_has_a_copy_of_its_context(copied, graph):
    x = placeholder(())
    with ThreadPoolExecutor(1) as pool, gg.override_gradient(default) as region:
        y = sin(x)
        if copied:
            z = pool.submit(contextvars.copy_context().run, cos, y).result()
            assert z.node.region is region
        else:
            count = len(graph)
            with pytest.raises(gg.ScopeError) as error:
                pool.submit(lambda: cos(y)).result()
            for part in (
                "still open in another thread",
                f"reads {y.name} (built at",
                "copy_context",
            ):
                assert part in str(error.value)
            assert len(graph) == count
    with ThreadPoolExecutor(1) as pool:  # the block is left: it is read from outside
        z = pool.submit(lambda: cos(y)).result()
    assert (z.graph, z.node.region) == (graph, None)
