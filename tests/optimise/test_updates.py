"""An update of a variable with its own value is no write."""

import graphgrad as gg
from graphgrad.optimise.pipeline import optimise
from graphgrad.optimise.updates import without_idle_updates

from .helpers import types, verified


def test_a_variable_that_keeps_its_value_is_not_written():
    with gg.Graph():
        v, w = gg.variable(1.0), gg.variable(2.0)
        y = gg.exp(v)
        p = gg.Program([v, w], [y, v * 1.0, w + 1.0])
    after, _ = optimise(p)
    assert after.outputs[1] is after.inputs[0]
    fewer, kept = without_idle_updates(after, after.inputs)
    assert kept == [False, True]
    assert types(verified(fewer)) == ["Exp", "Constant", "Add"]
    assert fewer.outputs == (after.outputs[0], after.outputs[2])


def test_updates_with_other_values_stay():
    with gg.Graph():
        v, w = gg.variable(1.0), gg.variable(2.0)
        p = gg.Program([v, w], [w, v])
    same, kept = without_idle_updates(p, [v, w])
    assert same is p
    assert kept == [True, True]
