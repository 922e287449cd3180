"""`gg.function` is built on behalf of its caller: maps and temporary rules of the call count."""

# ruff: noqa: SIM117  (blocks inside blocks are what is tested)

from __future__ import annotations

import contextvars

import numpy as np
import pytest

import graphgrad as gg

X = np.zeros(2)


def seven(site, dy):
    return 7.0 * dy


def nine(site, dy):
    return 9.0 * dy


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


@pytest.fixture
def slope():
    """The derivative of the sine, as a function that keeps its graphs."""
    return gg.function(lambda x: gg.gradients(gg.sin(x), x))


def test_S02_the_maps_of_the_call_act_on_the_graph_of_the_function_and_on_no_other_call(slope):
    with gg.gradient_override_map({"Sin": seven}):
        assert slope(X).tolist() == [7, 7]
    assert slope(X).tolist() == [1, 1]
    with gg.gradient_override_map({"Sin": nine}):
        assert slope(X).tolist() == [9, 9]
        with gg.gradient_override_map({"Sin": None}):
            assert slope(X).tolist() == [1, 1]
    assert len(slope.compiled) == 4


def test_S13_a_map_matches_what_a_graph_that_is_kept_was_built_with(slope):
    for _ in range(3):
        with gg.gradient_override_map({"Sin": seven}) as scope:
            assert slope(X).tolist() == [7, 7]
        assert scope.unmatched == []
    assert len(slope.compiled) == 1
    for _ in range(2):
        with pytest.raises(gg.RegionError, match="no node of type 'Cos' was built"):
            with gg.gradient_override_map({"Cos": seven}):
                slope(X)


def test_S02_names_and_bound_methods_are_the_same_rule_each_time(slope):
    class Factor:
        def rule(self, site, dy):
            return 3.0 * dy

    three = Factor()
    for rule in (three.rule, three.rule, Factor().rule, "Identity", "Identity"):
        with gg.gradient_override_map({"Sin": rule}):
            assert slope(X)[0] in (1, 3)
    assert len(slope.compiled) == 3


def test_S31_a_temporary_rule_counts_in_the_calls_of_its_block():
    marked = gg.override("test/rule", late=True)(gg.sin)
    slope = gg.function(lambda x: gg.gradients(marked(x), x))
    for rule, factor in ((seven, 7), (nine, 9), (seven, 7)):
        with gg.temporary_gradient("test/rule", rule):
            assert slope(X).tolist() == [factor, factor]
    assert len(slope.compiled) == 2
    with pytest.raises(gg.UnknownGradientError, match="test/rule"):
        slope(X)


def test_S31_regions_and_name_scopes_of_the_caller_end_at_the_door(slope, graph):
    seen = []

    @gg.function
    def f(x):
        y = gg.sin(x)
        seen.append(y.node)
        return y

    x = gg.placeholder(())
    with gg.name_scope("a"), gg.override_gradient(seven):
        f(X)
        y = gg.sin(x)
    assert (seen[0].region, seen[0].scope) == (None, "")
    assert y.node.scope == "a/"
    assert seen[0].graph is not graph


@pytest.mark.parametrize("built", [False, True])
def test_S31_a_call_in_a_context_that_outlived_the_map_is_a_ScopeError(slope, built):
    with gg.gradient_override_map({"Sin": seven}, allow_empty=True):
        if built:
            slope(X)
        context = contextvars.copy_context()
    with pytest.raises(gg.ScopeError, match="continues after it"):
        context.run(slope, X)
    assert context.run(gg.function(gg.cos), X).tolist() == [1, 1]


def test_S02_a_map_of_another_graph_does_not_count(slope):
    with gg.Graph().gradient_override_map({"Sin": seven}, allow_empty=True):
        assert slope(X).tolist() == [1, 1]


def test_S02_a_checkpoint_runs_again_under_the_maps_of_its_call_after_other_graphs(graph):
    f = gg.rules.checkpoint(lambda x: gg.sin(x) * 2.0)
    x = gg.placeholder(())
    with gg.gradient_override_map({"Sin": seven}):
        with gg.Graph(), graph:
            y = f(x)
    assert float(gg.evaluate(gg.gradients(y, x), {x: 0.0})) == 14
