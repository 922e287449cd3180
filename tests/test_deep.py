"""What nests deep: without end where no function of the user nests, else as far as Python goes."""

from __future__ import annotations

import math
import pickle
import sys
from contextlib import ExitStack
from functools import cache

import pytest

import graphgrad as gg
from graphgrad import rules

from .test_growth import conds_in_a_row, half, name_scopes, nested_regions

DEEP = 1_000


def default(site, dy):
    return site.default(dy)


def conds(depth):
    """x, and a choice in a branch of a choice, depth times."""

    def nest(h, left):
        if not left:
            return gg.sin(h)
        return gg.cond(h > 0.0, lambda: nest(h * 1.01, left - 1), lambda: h)

    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        return g, x, nest(x, depth)


def asking(depth):
    """x, and the output of regions in regions, of which each asks for its default."""
    with gg.Graph() as g, ExitStack() as blocks:
        x = h = gg.placeholder((), name="x")
        for _ in range(depth):
            blocks.enter_context(gg.override_gradient(default))
            h = gg.sin(h)
    return g, x, h


LOOPS = {
    "scan": lambda f, h: gg.scan(lambda s, _: (f(s), None), h, length=1)[0],
    "map": lambda f, h: gg.map(f, gg.stack([h]))[0],
    "while": lambda f, h: gg.while_loop(lambda c: c[0] < 1, lambda c: (1, f(c[1])), (0, h))[1],
}


def loops(kind, depth):
    """x, and a loop in the body of a loop, depth times."""

    def nest(h, left):
        return LOOPS[kind](lambda s: nest(s * 1.01, left - 1), h) if left else gg.sin(h)

    with gg.Graph() as g:
        x = gg.placeholder((), name="x")
        return g, x, nest(x, depth)


@pytest.mark.parametrize(
    "kind", ["scan", *(pytest.param(kind, marks=pytest.mark.ci) for kind in ("map", "while"))]
)
def test_S37_loops_in_loops_are_copied_and_end_with_an_error_or_a_result(kind):
    """Each backend, too, runs them as calls in calls."""
    with pytest.raises(gg.GraphError, match="too deep for Python"):
        loops(kind, 200)
    g, x, y = limited(100_000, lambda: loops(kind, 200))
    for name in ("copy", "pickle", "subgraph", "lint"):
        ACTS[name](g, x, y)
    with pytest.raises(gg.GraphError, match="too deep for Python"):
        gg.gradients(y, x)
    with pytest.raises(gg.GraphError, match="too deep for Python"):
        gg.compile([x], y, backend="numpy")
    _, x, y = loops(kind, 4)
    value = gg.compile([x], [y, gg.gradients(y, x)], backend="numpy")(0.5)
    assert value == pytest.approx([math.sin(a := 0.5 * 1.01**4), 1.01**4 * math.cos(a)])


@cache
def many_conds():
    """400 choices in choices, once for all that look at them."""
    return limited(100_000, lambda: conds(400))


def limited(limit, act):
    """What act() returns at another recursion limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        return act()
    finally:
        sys.setrecursionlimit(before)


def refused(act):
    """The error of act(), where it is one of graphgrad."""
    try:
        act()
    except gg.GraphGradError as error:
        return error
    return None


ACTS = {
    "copy": lambda g, x, y: g.copy(),
    "pickle": lambda g, x, y: pickle.loads(pickle.dumps(g)),
    "dot": lambda g, x, y: gg.to_dot(g),
    "html": lambda g, x, y: gg.to_html(g),
    "print": lambda g, x, y: gg.print_graph(g),
    "explain": lambda g, x, y: str(gg.explain(y, x)),
    "lint": lambda g, x, y: gg.lint(g),
    "subgraph": lambda g, x, y: g.subgraph([x], [y]),
    "numpy": lambda g, x, y: gg.compile([x], [y, gg.gradients(y, x)], backend="numpy")(0.5),
    "mark": lambda g, x, y: marked_for_now(g, gg.select.nodes([y.node])),
}


def marked_for_now(g, selection):
    """The graph may be one that others look at, too."""
    g.mark(selection, half, allow_inside=True)
    g.unmark(selection)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    "build",
    [
        pytest.param(nested_regions, marks=pytest.mark.ci),
        pytest.param(name_scopes, marks=pytest.mark.slow),
        pytest.param(conds_in_a_row, marks=pytest.mark.slow),
    ],
)
def test_S37_what_is_built_without_calls_in_calls_may_be_a_thousand_deep(build, act):
    ACTS[act](*build(DEEP))


def test_S37_gradients_of_a_thousand_regions_in_regions_at_two_orders():
    _, x, y = nested_regions(DEEP)
    dx = gg.gradients(y, x)
    assert gg.evaluate(dx, {x: 0.3}) == 0.5
    assert gg.gradients(dx, x) is None


@pytest.mark.parametrize(
    "act",
    [
        lambda: conds(DEEP),
        lambda: gg.gradients(*asking(DEEP)[:0:-1]),
        lambda: gg.explain(*asking(DEEP)[:0:-1]),
        lambda: pickle.dumps(asking(DEEP)[0]),
        *[
            pytest.param(
                lambda act=act: act(*many_conds()),
                marks=() if name in ("copy", "dot", "numpy") else pytest.mark.ci,
                id=name,
            )
            for name, act in ACTS.items()
        ],
    ],
)
def test_S37_calls_in_calls_end_with_an_error_that_says_so_or_not_at_all(act):
    with gg.Graph():
        x = gg.placeholder(())
        y = gg.sin(x)
        error = refused(act)
        if error is not None:
            assert "too deep for Python" in str(error)
            assert isinstance(error.__cause__, RecursionError)
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 1.0
        gg.cond(y > 0.0, lambda: y, lambda: x)


@pytest.mark.ci
def test_S37_the_graph_is_of_use_after_it_was_too_deep():
    g, x, y = asking(DEEP)
    before = len(g.regions)
    with pytest.raises(gg.GraphError, match="too deep"):
        gg.gradients(y, x)
    assert gg.evaluate(gg.gradients(y, x, overrides="none"), {x: 0.0}) == 1.0
    assert len(g.regions) == before
    with g, pytest.raises(gg.GraphError, match="too deep"):
        functions(x, DEEP)
    with g:
        z = gg.sin(x)
    assert z.node.region is None
    assert z.node.scope == ""


def functions(x, depth):
    """custom_gradient functions in custom_gradient functions."""

    @gg.custom_gradient
    def f(t):
        return (functions(t, depth - 1) if depth else gg.sin(t)), lambda dy: dy

    return f(x)


@pytest.mark.parametrize(
    "nest",
    [
        lambda h, inner: gg.vmap(lambda t: inner(gg.stack([t])))(h),
        lambda h, inner: rules.checkpoint(inner)(h),
        lambda h, inner: gg.cond(h[0] > 0.0, lambda: inner(h), lambda: h),
        lambda h, inner: gg.override("half")(inner)(h),
    ],
)
def test_S37_functions_in_functions_without_end_are_an_error_too(nest):
    with gg.Graph() as g, gg.temporary_gradient("half", half):
        x = gg.placeholder((1,))
        with pytest.raises(gg.GraphError, match="too deep for Python"):
            nest(x, lambda h: endless(nest, h))
        assert gg.sin(x).graph is g
        assert gg.sin(x).node.region is None


def endless(nest, h):
    return nest(h, lambda t: endless(nest, t))


def test_S20_a_rule_that_calls_itself_without_end_keeps_its_error():
    def rule(site, dy):
        return rule(site, dy)

    with gg.Graph():
        x = gg.placeholder(())
        with gg.override_gradient(rule):
            y = gg.sin(x)
        with pytest.raises(RecursionError):
            gg.gradients(y, x)


def test_S37_fifty_choices_in_choices_are_differentiated_copied_and_run():
    g, x, y = conds(50)
    dx = gg.gradients(y, x)
    new = pickle.loads(pickle.dumps(g.copy()))
    again = new.nodes[y.node.index].outputs[0]
    found = gg.compile([x], [y, dx])(0.5)
    assert found[0] == gg.evaluate(again, {new.tensor("x:0"): 0.5})
    assert found[1] == pytest.approx(1.01**50 * math.cos(0.5 * 1.01**50))
