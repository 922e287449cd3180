"""Marks that can never act: their rule stands where no gradient flows."""

# ruff: noqa: SIM117, PT012  (blocks inside blocks are what is tested)

from __future__ import annotations

import contextvars
import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.sources import placeholder

from ..differentiate.helpers import value, values


def ste(site, *dys):
    return [dys[0]] * len(site.inputs)


def seven(site, dy):
    return 7.0 * dy


def is_told(error, *parts):
    """The message says what, where it is, and what to do."""
    message = str(error.value)
    for part in ("can never be called", "test_idle.py:", *parts):
        assert part in message, message


# --- regions -------------------------------------------------------------------------------------

IDLE_BLOCKS = {
    "greater": (lambda x, k: x > 0, "produces only tensors without a gradient"),
    "argmax": (lambda x, k: gg.argmax(x, 0), "produces only tensors without a gradient"),
    "cast": (lambda x, k: gg.cast(x, "int32") + 1, "produces only tensors without a gradient"),
    "of an integer": (
        lambda x, k: gg.cast(k, "float64") * 2.0,
        "reads only tensors without a gradient",
    ),
    "integers": (lambda x, k: k + 1, "produces only tensors without a gradient"),
}


@pytest.mark.parametrize("block", IDLE_BLOCKS)
def test_S13_a_region_whose_rule_can_never_be_called_is_told_at_the_end_of_its_block(block):
    x, k = placeholder((3,)), placeholder((3,), "int64")
    build, words = IDLE_BLOCKS[block]
    with pytest.raises(gg.RegionError) as error, gg.override_gradient(ste):
        build(x, k)
    is_told(error, words, "region 'ste'", "allow_empty=True")
    with gg.override_gradient(ste, allow_empty=True) as region:
        build(x, k)
    assert region.allow_empty


@pytest.mark.parametrize("how", ["inputs", "outputs"])
def test_S13_declared_boundaries_count(how):
    x, k = placeholder((3,)), placeholder((3,), "int64")
    given = {"inputs": [k]} if how == "inputs" else {}
    with pytest.raises(gg.RegionError) as error, gg.override_gradient(ste, **given) as region:
        y = gg.cast(k, "float64") if how == "inputs" else x * 2.0
        z = y > 0
        region.declare(outputs=[y if how == "inputs" else z])
    is_told(error, "reads only" if how == "inputs" else "produces only")


def test_S13_a_region_from_floats_to_floats_by_way_of_integers_is_fine():
    x = placeholder((3,))
    with gg.override_gradient(ste):
        y = gg.cast(gg.cast(4.0 * x, "int32"), "float64")
    with gg.override_gradient(ste):
        z = gg.where(x > 0, 1.0, -1.0)
    found = values(gg.gradients([y, z], x), {x: [0.1, -2.0, 3.0]})
    assert found.tolist() == [2, 2, 2]


def test_S13_what_is_known_only_when_the_boundary_settles_is_told_by_the_first_gradients():
    x = placeholder((3,))
    with gg.override_gradient(ste):
        k = (2.0 * x) > 0
    y = gg.where(k, x, -x)
    gg.gradients(y, y)  # the region has no part in it
    with pytest.raises(gg.RegionError) as error:
        gg.gradients(y, x)
    is_told(error, "region 'ste'", "produces only tensors without a gradient", "allow_empty=True")
    dx = gg.gradients(y, x, overrides="none")
    assert values(dx, {x: [1.0, -1.0, 2.0]}).tolist() == [1, -1, 1]
    with pytest.raises(gg.RegionError):
        gg.jvp(y, x, gg.ones_like(x))


def test_S13_an_outer_float_read_makes_it_a_region_like_any_other():
    x = placeholder((3,))
    with gg.override_gradient(ste):
        h = 2.0 * x
        k = h > 0
    y = gg.where(k, h, -h)
    assert values(gg.gradients(y, x), {x: [1.0, -1.0, 2.0]}).tolist() == [1, -1, 1]


@pytest.mark.parametrize("journey", ["here", "copy", "pickle", "import", "vmap", "cond"])
def test_S13_allow_empty_travels(journey):
    x = placeholder((3,), name="x")

    def f(t):
        with gg.override_gradient("Identity", allow_empty=True):
            k = (2.0 * t) > 0
        return gg.where(k, t, -t)

    if journey == "vmap":
        x = placeholder((2, 3), name="x")
        y = gg.vmap(f)(x)
    elif journey == "cond":
        y = gg.cond(gg.sum(x) < 99, lambda: f(x), lambda: x)
    else:
        y = f(x)
    graph, at = x.graph, y.node.index
    if journey in ("copy", "pickle"):
        graph = graph.copy() if journey == "copy" else pickle.loads(pickle.dumps(graph))
        x, y = graph.tensor("x"), graph.nodes[at].outputs[0]
    elif journey == "import":
        graph = gg.Graph()
        with graph:
            tensors = gg.import_graph(x.graph)
        x, y = tensors[x], tensors[y]
    with graph:
        found = values(gg.gradients(y, x), {x: np.broadcast_to([1.0, -1.0, 2.0], x.shape)})
    assert np.all(found == [1, -1, 1])


def test_S13_a_block_left_by_an_exception_is_not_looked_at():
    x = placeholder((3,))
    with pytest.raises(ZeroDivisionError), gg.override_gradient(ste):
        assert (x > 0).node.region is not None
        1 / 0


# --- maps ----------------------------------------------------------------------------------------


def test_S13_an_entry_that_matched_only_what_no_gradient_reaches():
    x, k = placeholder((3,)), placeholder((3,), "int64")
    with pytest.raises(gg.RegionError) as error:
        with gg.gradient_override_map({"Greater": ste, "Exp": seven}):
            gg.greater(gg.exp(x), 0.0)
    is_told(error, "every 'Greater'", "gradient_override_map at")
    with pytest.raises(gg.RegionError) as error, gg.gradient_override_map({"Cast": "Identity"}):
        gg.cast(gg.cast(x, "int32"), "float64")
    is_told(error, "every 'Cast'")
    with gg.gradient_override_map({"Cast": "Identity"}, allow_empty=True):
        gg.cast(x, "int32")
    with gg.gradient_override_map({"Add": "Identity"}):
        k + k
        x + x  # one is enough
    with gg.gradient_override_map({"Greater": None, "Cast": "Cast"}):  # these take rules off
        gg.cast(x > 0, "float64")


def test_S13_entries_are_looked_at_for_functions_that_keep_their_graphs_too():
    f = gg.function(lambda x: gg.cast(x > 0, "float64"))
    for _ in range(2):
        with pytest.raises(gg.RegionError, match="every 'Greater'"):
            with gg.gradient_override_map({"Greater": ste}):
                f(np.zeros(3))


# --- marks put on afterwards ---------------------------------------------------------------------


def test_S13_a_mark_on_what_no_gradient_reaches(graph):
    x = placeholder((3,))
    k = x > 0
    y = gg.where(k, 1.0, -1.0)
    for selection in (k.node, "Greater", gg.select.nodes(k.node)):
        with pytest.raises(gg.RegionError) as error:
            graph.mark(selection, "Identity")
        is_told(error, "the mark at test_idle.py:", "produces only tensors without a gradient")
    assert k.node.stamp is k.node.region is None
    with pytest.raises(gg.RegionError, match="reads only tensors without a gradient"):
        graph.mark(y.node, "Identity", inputs=[k])
    graph.mark("Greater", ste, allow_empty=True)
    (region,) = graph.mark(gg.select.between(x, y), ste, replace=True)
    assert values(gg.gradients(y, x), {x: [1.0, -1.0, 2.0]}).tolist() == [1, 1, 1]
    assert not region.allow_empty


def test_S13_a_mark_of_which_one_site_can_act_is_a_mark(graph):
    x = placeholder((3,))
    k = gg.cast(x, "int32")
    y = gg.cast(x, "float32")
    assert graph.mark("Cast", "Identity", allow_empty=False) == [k.node, y.node]


# --- custom_gradient -----------------------------------------------------------------------------


def test_S13_a_custom_gradient_of_integers_is_told_at_the_call():
    x, k = placeholder((3,)), placeholder((3,), "int64")

    @gg.custom_gradient
    def f(a):
        return a > 0, lambda dy: dy

    @gg.custom_gradient
    def g(a):
        return gg.cast(a, "float64"), lambda dy: gg.NO_GRAD

    for fn, t, words in ((f, x, "produces only"), (g, k, "reads only"), (g, 3, "reads only")):
        with pytest.raises(gg.RegionError) as error:
            fn(t)
        is_told(error, f"{fn.__name__} (test_idle.py:", words, "decorated with custom_gradient")


def test_S13_a_custom_gradient_for_what_it_captures_is_fine():
    v, k = placeholder((3,)), placeholder((), "int64")

    @gg.custom_gradient
    def row(i):
        return v[i], lambda dy: {i: gg.NO_GRAD, v: gg.broadcast_like(5.0 * dy, v)}

    dv = gg.gradients(row(k), v)
    assert values([dv], {v: [1.0, 2.0, 3.0], k: 1})[0].tolist() == [5, 5, 5]


def test_S13_a_checkpoint_of_integers_loses_nothing():
    x = placeholder((3,))
    assert contextvars.copy_context().run(gg.rules.checkpoint(gg.argmax), x).dtype.kind == "i"
    y = gg.rules.checkpoint(gg.sin)(x[0])
    assert value(gg.gradients(y, x)[0], {x: [0.0, 1.0, 2.0]}) == 1
