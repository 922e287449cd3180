"""Work grows as what there is to do: counted in calls of functions, never in time."""

from __future__ import annotations

import pickle
from contextlib import ExitStack

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.checks.lint import shadowed_rules
from graphgrad.regions.boundary import boundary_of

from .differentiate.helpers import calls_of


def half(site, dy):
    return dy * 0.5


def nested_regions(n):
    with gg.Graph() as g, ExitStack() as blocks:
        x = h = gg.placeholder(())
        for _ in range(n):
            blocks.enter_context(gg.override_gradient(half))
            h = gg.sin(h)
    return g, x, h


def regions_in_a_row(n):
    with gg.Graph() as g:
        x = h = gg.placeholder(())
        for _ in range(n):
            with gg.override_gradient(half):
                h = gg.sin(h)
    return g, x, h


def regions_in_a_region(n):
    with gg.Graph() as g:
        x = h = gg.placeholder(())
        with gg.override_gradient(lambda site, dy: site.default(dy)):
            for _ in range(n):
                with gg.override_gradient(half):
                    h = gg.sin(h)
    return g, x, h


def conds_in_a_row(n):
    with gg.Graph() as g:
        x = h = gg.placeholder(())
        for _ in range(n):
            h = gg.cond(h > 0.0, lambda h=h: gg.sin(h), lambda h=h: gg.cos(h))
    return g, x, h


def captures_of_a_cond(n):
    with gg.Graph() as g:
        x = gg.placeholder(())
        read = [gg.sin(x) for _ in range(n)]
        y = gg.cond(x > 0.0, lambda: sum(read), lambda: read[0])
    return g, x, y


def custom_gradients(n):
    with gg.Graph() as g:
        x = h = gg.placeholder(())
        for _ in range(n):
            h = gg.custom_gradient(lambda t: (gg.sin(t), lambda dy: dy * 2.0))(h)
    return g, x, h


def marked_afterwards(n):
    with gg.Graph() as g:
        x = h = gg.placeholder(())
        for _ in range(n):
            h = gg.sin(h)
    for node in g.nodes[1:]:
        g.mark(gg.select.nodes([node]), half)
    return g, x, h


def name_scopes(n):
    with gg.Graph() as g, ExitStack() as blocks:
        x = h = gg.placeholder(())
        for _ in range(n):
            blocks.enter_context(gg.name_scope("s"))
            h = gg.sin(h)
    return g, x, h


def slices(n):
    with gg.Graph() as g:
        x = gg.placeholder((n,))
        return g, x, sum(gg.sin(x[i] * float(i + 1)) for i in range(n))


def elements_of_a_concat(n):
    with gg.Graph() as g:
        x = gg.placeholder(())
        joined = gg.concat([gg.reshape(gg.sin(x * float(i)), (1,)) for i in range(n)])
        return g, x, sum(joined[i] * float(i + 1) for i in range(n))


def nested_custom_gradients(n):
    with gg.Graph() as g:
        x = gg.placeholder(())

        def nest(t, k):
            y = gg.sin(t)
            inner = gg.custom_gradient(lambda u: (nest(u, k - 1), lambda dy: dy * 2.0))
            return inner(y) if k else y

        return g, x, nest(x, n)


ALL = [
    nested_regions,
    regions_in_a_row,
    regions_in_a_region,
    conds_in_a_row,
    captures_of_a_cond,
    custom_gradients,
    marked_afterwards,
    name_scopes,
    slices,
    elements_of_a_concat,
]


@pytest.mark.parametrize("build", ALL)
def test_building_twice_as_much_takes_twice_the_calls(build):
    build(5)
    assert calls_of(lambda: build(60)) < 2.4 * calls_of(lambda: build(30))


ACTS = {
    "differentiate": lambda g, x, y: gg.gradients(y, x),
    "copy": lambda g, x, y: g.copy(),
    "explain": lambda g, x, y: str(gg.explain(y, x)),
    "compile": lambda g, x, y: gg.compile([x], [y, gg.gradients(y, x)], backend="numpy"),
}


@pytest.mark.ci
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("build", ALL)
def test_twice_as_much_takes_twice_the_calls(act, build):
    act = ACTS[act]
    small, medium, large = build(5), build(50), build(100)
    act(*small)
    once = calls_of(lambda: act(*medium))
    assert calls_of(lambda: act(*large)) < 2.4 * once


@pytest.mark.parametrize("build", [nested_regions, nested_custom_gradients])
def test_the_first_gradient_of_twice_as_many_nested_regions_takes_twice_the_calls(build):
    def cost(n):
        g, x, y = build(n)
        return calls_of(lambda: (gg.gradients(y, x), [boundary_of(r) for r in g.regions]))

    cost(5)
    assert cost(120) < 2.2 * cost(60)


SHOWN = {
    "dot": gg.to_dot,
    "html": gg.to_html,
    "text": gg.graph_text,
    "pickle": pickle.dumps,
    "unpickle": lambda g: pickle.loads(pickle.dumps(g)),
}


@pytest.mark.ci
@pytest.mark.parametrize("act", SHOWN)
@pytest.mark.parametrize("build", [nested_regions, regions_in_a_row, custom_gradients])
def test_what_is_shown_or_stored_of_twice_as_many_regions_takes_twice_the_calls(act, build):
    act, (small, *_), (medium, *_), (large, *_) = SHOWN[act], build(5), build(80), build(160)
    act(small)
    once = calls_of(lambda: act(medium))
    assert calls_of(lambda: act(large)) < 2.2 * once


def test_the_shadowed_rules_among_twice_as_many_regions_take_twice_the_calls():
    def cost(n):
        graph, *_ = nested_regions(n)
        return calls_of(lambda: list(shadowed_rules(graph)))

    cost(5)
    assert cost(160) < 2.2 * cost(80)


def test_marks_inside_twice_as_many_nested_regions_take_twice_the_calls():
    def cost(n):
        g, x, y = nested_regions(n)
        nodes = g.nodes[1:]
        gg.gradients(y, x)

        def work():
            for node in nodes:
                g.mark(gg.select.nodes([node]), half, allow_inside=True, note=1)
            gg.gradients(y, x)

        return calls_of(work)

    cost(5)
    assert cost(120) < 2.4 * cost(60)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_first_run_on_twice_as_many_open_lengths_takes_twice_the_calls(backend):
    def cost(n):
        with gg.Graph():
            xs = [gg.placeholder((f"N{i}", f"2*N{i}"), name=f"x{i}") for i in range(n)]
            run = gg.compile(xs, [gg.sin(x) for x in xs], backend=backend)
        arrays = [np.ones((2, 4))] * n
        return calls_of(lambda: run(*arrays))

    cost(5)
    assert cost(80) < 2.4 * cost(40)
