"""gradients() itself: the question, the structure of the answer, what adds up, what it costs."""

from __future__ import annotations

import gc
import sys
import threading
from collections import namedtuple

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.arithmetic import negative
from graphgrad.ops.elementwise.bounds import clip, maximum, minimum
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.magnitudes import abs as absolute
from graphgrad.ops.elementwise.magnitudes import sign
from graphgrad.ops.elementwise.trigonometry import cos, sin
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.shape.joining import split
from graphgrad.ops.sources import (
    identity,
    placeholder,
    stop_gradient,
    undefined_gradient,
    zero_gradient,
)

from .helpers import Spy, calls_of, default, scaled, value, values

# --- S33: the question ----------------------------------------------------------------------------


def test_S33_one_tensor_or_any_nesting_of_list_tuple_and_dict():
    x, z = placeholder(()), placeholder(())
    y = x * z
    feeds = {x: 2.0, z: 3.0}
    Pair = namedtuple("Pair", "a b")
    assert value(gg.gradients(y, x), feeds) == 3
    assert values(gg.gradients([y], [x]), feeds) == [3]
    assert values(gg.gradients((y, y), (x, z)), feeds) == (6, 4)
    nested = {"w": [x, (z,)], "b": Pair(z, x)}
    assert values(gg.gradients({"loss": y}, nested), feeds) == {"w": [3, (2,)], "b": Pair(2, 3)}
    assert type(gg.gradients(y, nested)["b"]) is Pair


def test_S33_the_order_of_keys_in_a_dict_is_kept():
    x, z = placeholder(()), placeholder(())
    found = gg.gradients(x * z, {"z": z, "a": x})
    assert list(found) == ["z", "a"]
    assert values(found, {x: 2.0, z: 3.0}) == {"z": 2, "a": 3}


def test_S33_nothing_asked_nothing_answered():
    x = placeholder(())
    assert gg.gradients(exp(x), []) == []
    assert gg.gradients(exp(x), {}) == {}
    assert gg.gradients([], [x]) == [None]


def test_S33_an_x_asked_twice_gets_the_whole_gradient_twice():
    x = placeholder(())
    assert values(gg.gradients(x * x, [x, x]), {x: 3.0}) == [6, 6]


def test_S33_ys_of_any_shape_are_summed():
    x = placeholder((2, 3))
    assert value(gg.gradients(2.0 * x, x)).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_S33_grad_ys_weigh_the_ys():
    x = placeholder((2,))
    y = x * x
    dy = placeholder((2,))
    feeds = {x: [1.0, 2.0], dy: [3.0, 5.0]}
    assert value(gg.gradients(y, x, dy), feeds).tolist() == [6, 20]
    assert value(gg.gradients(y, x, np.array([3.0, 5.0])), feeds).tolist() == [6, 20]
    assert value(gg.gradients([y, y], x, [None, dy]), feeds).tolist() == [8, 24]
    assert value(gg.gradients({"a": y}, x, {"a": dy}), feeds).tolist() == [6, 20]
    found = gg.gradients(reduce_sum(y), x, 10.0)
    assert value(found, feeds).tolist() == [20, 40]


def test_S33_shape_and_dtype_of_grad_ys_are_checked():
    x = placeholder((2,))
    y = x * x
    for bad in (
        np.ones(3),
        np.ones((1, 2)),
        np.ones(2, "float32"),
        np.ones(2, "int64"),
        1.0,
        gg.constant(1.0),
        gg.constant(np.ones(2, "float32")),
    ):
        with pytest.raises(gg.GradientError, match="shape and dtype") as error:
            gg.gradients(y, x, bad)
        assert y.name in str(error.value)
    with pytest.raises(gg.GradientError, match="shape and dtype"):
        gg.gradients([y, y], x, [None, np.ones(3)])  # also beyond one that is left out
    with pytest.raises(gg.GradientError, match="2 grad_ys for 1 ys"):
        gg.gradients([y], x, [np.ones(2), np.ones(2)])


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [("int64", "Cast"), ("uint8", "Cast"), ("bool", "Cast")],
)
def test_S33_ys_and_xs_are_floating_or_complex(dtype, hint):
    x, n = placeholder(()), placeholder((), dtype)
    y = exp(x)
    for ys, xs, what in ((n, x, "ys"), (y, n, "xs"), ([y, n], x, "ys"), (y, {"a": n}, "xs")):
        with pytest.raises(TypeError, match=what) as error:
            gg.gradients(ys, xs)
        assert n.name in str(error.value)
        assert "test_gradients.py" in str(error.value)
        assert hint in str(error.value)
    assert isinstance(error.value, gg.DTypeError)


def test_S33_what_is_no_tensor_is_an_error_that_says_where_it_stands():
    x = placeholder(())
    with pytest.raises(gg.GradientError, match=r"xs\['w'\]\[1\]"):
        gg.gradients(exp(x), {"w": [x, 3.0]})
    with pytest.raises(gg.GradientError, match="ys"):
        gg.gradients(None, x)
    with pytest.raises(gg.GradientError, match="stop_gradients"):
        gg.gradients(exp(x), x, stop_gradients=[3])


def test_S33_unconnected_is_none_or_zero():
    x, z = placeholder((2,)), placeholder((None,), "float32")
    y = exp(x)
    assert gg.gradients(y, z) is None
    zeros = gg.gradients(y, z, unconnected="zero")
    assert zeros.type is z.type or zeros.dtype == z.dtype
    assert value(zeros, {z: [1, 2, 3]}).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="nonsense"):
        gg.gradients(y, x, unconnected="nonsense")


def test_S33_ys_and_xs_are_of_one_graph():
    x = placeholder(())
    with gg.Graph("elsewhere"):
        z = placeholder(())
    with pytest.raises(gg.GraphError, match="elsewhere"):
        gg.gradients(exp(x), z)


def test_S33_a_gradient_has_the_shape_and_dtype_of_its_x():
    x = placeholder((2, 1), "float32")
    z = placeholder((3,), "float64")
    dx, dz = gg.gradients(gg.cast(x, "float64") * z, [x, z])
    assert (dx.shape, dx.dtype) == ((2, 1), np.float32)
    assert (dz.shape, dz.dtype) == ((3,), np.float64)
    feeds = {x: [[1.0], [2.0]], z: [1.0, 2.0, 3.0]}
    assert [a.tolist() for a in values([dx, dz], feeds)] == [[[6], [6]], [3, 3, 3]]


def test_S33_the_graph_of_ys_gets_the_nodes_whoever_is_current(graph):
    x = placeholder(())
    y = exp(x)
    with gg.Graph() as other:
        dx = gg.gradients(y, x)
    assert dx.graph is graph
    assert len(other) == 0


def test_S33_asking_leaves_the_callers_scopes_as_they_were():
    x = placeholder(())
    with gg.name_scope("mine"), gg.gradient_override_map({"Sin": default}):
        gg.gradients(exp(x), x)
        after = sin(x)
    assert after.node.name.startswith("mine/Sin_")
    assert after.node.stamp is default
    assert after.node.origin is None


# --- S34: what adds up ----------------------------------------------------------------------------


def test_S34_dependent_ys_add_up():
    x = placeholder(())
    y = x * x
    z = y * 5.0
    assert value(gg.gradients([y, z], x), {x: 3.0}) == 36
    assert value(gg.gradients([y, z], y), {x: 3.0}) == 6


def test_S34_x_among_ys_gives_one_plus_what_flows():
    x = placeholder(())
    assert value(gg.gradients(x, x)) == 1
    assert value(gg.gradients([x, x], x)) == 2
    assert value(gg.gradients([x, x * x], x), {x: 3.0}) == 7


def test_S34_with_respect_to_an_intermediate_it_is_the_total_derivative():
    x = placeholder(())
    a = exp(x)
    b = a * 3.0
    y = a * b
    assert values(gg.gradients(y, [a, b]), {x: 0.0}) == [6, 1]


def test_S34_with_respect_to_an_output_of_a_region_what_flows_through_readers_outside():
    x = placeholder(())
    with gg.override_gradient(lambda site, da, db: 7.0 * da + 11.0 * db):
        a = x * x
        b = a * 5.0  # a reader inside
    y = a * 2.0 + b * 3.0
    da, db, dx = gg.gradients(y, [a, b, x])
    assert values([da, db, dx], {x: 3.0}) == [2, 3, 14 + 33]


def test_S34_an_output_of_a_region_among_ys():
    x = placeholder(())
    with gg.override_gradient(lambda site, da, db: 7.0 * da + 11.0 * db):
        a = x * x
        b = a * 5.0
    y = identity(a) + b
    assert values(gg.gradients([a, y], [a, x])) == [2, 14 + 11]


def test_S34_stop_gradients_cuts_tensors():
    x = placeholder(())
    a = x * x
    y = a * x
    assert value(gg.gradients(y, x, stop_gradients=a), {x: 3.0}) == 9
    assert value(gg.gradients(y, x, stop_gradients=[a, x]), {x: 3.0}) == 9
    assert gg.gradients(a, x, stop_gradients=[a]) is None


def test_S34_not_whole_ops():
    x = placeholder((4,))
    first, second = split(x, 2)
    y = first * 2.0 + second * 3.0
    assert value(gg.gradients(y, x, stop_gradients=[first])).tolist() == [0, 0, 3, 3]


def test_S34_a_stop_at_one_output_among_the_ys_leaves_the_others():
    x = placeholder((4,))
    first, second = split(x, 2)
    dx = gg.gradients([first, second], x, stop_gradients=[first])
    assert value(dx, {x: np.zeros(4)}).tolist() == [0, 0, 1, 1]


def test_S34_a_stop_at_an_x_still_gives_its_partial_derivative():
    x = placeholder(())
    a = x * 2.0
    y = x * a
    assert values(gg.gradients(y, [x, a], stop_gradients=[x, a]), {x: 3.0}) == [6, 3]


def test_S34_a_stop_at_an_output_of_a_region():
    x = placeholder(())
    spy = Spy(lambda site, da, db: 7.0 * da + 11.0 * db)
    with gg.override_gradient(spy):
        a, b = exp(x), sin(x)
    y = a * 2.0 + b * 3.0
    assert value(gg.gradients(y, x, stop_gradients=[a])) == 33
    assert gg.gradients(y, x, stop_gradients=[a, b]) is None
    assert spy.calls == 1


def test_S34_a_stop_at_an_input_of_a_region():
    x = placeholder(())
    h = x * 2.0
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = exp(h)
    assert gg.gradients(y, x, stop_gradients=[h]) is None
    assert values(gg.gradients(y, [h, x], stop_gradients=[h], unconnected="zero")) == [7, 0]


def test_S34_fan_out_and_fan_in():
    x = placeholder(())
    y = x
    for _ in range(10):
        y = y + y
    assert value(gg.gradients(y, x)) == 1024


# --- S35: zero, disconnected, undefined -----------------------------------------------------------


def test_S35_a_zero_gradient_is_zero():
    x = placeholder((2,))
    dx = gg.gradients(zero_gradient(x) * 3.0, x)
    assert value(dx, {x: [1, 2]}).tolist() == [0, 0]
    assert value(gg.gradients(zero_gradient(x) + x, x), {x: [1, 2]}).tolist() == [1, 1]
    assert value(zero_gradient(x), {x: [1, 2]}).tolist() == [1, 2]


def test_S35_a_stopped_gradient_is_none():
    x = placeholder((2,))
    assert gg.gradients(stop_gradient(x) * 3.0, x) is None
    assert value(gg.gradients(stop_gradient(x) * x, x), {x: [1, 2]}).tolist() == [1, 2]
    assert value(stop_gradient(x), {x: [1, 2]}).tolist() == [1, 2]


def test_S35_an_undefined_gradient_is_an_error_if_it_is_ever_needed():
    x, z = placeholder(()), placeholder(())
    u = undefined_gradient(x)
    y = u * z
    assert value(gg.gradients(y, z), {x: 3.0}) == 3
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, x)
    assert u.where in str(error.value)
    assert "test_gradients.py" in str(error.value)


def test_S35_they_may_be_stamped_like_any_op():
    x = placeholder(())
    for f in (zero_gradient, stop_gradient, undefined_gradient):
        y = f(x)
        found = gg.gradients(y, x, overrides={y.node.type: lambda site, dy: 7.0 * dy})
        assert value(found) == 7


def test_S35_a_product_with_a_structural_zero_is_zero_not_disconnected():
    x, z = placeholder(()), placeholder(())
    found = gg.gradients(sin(zero_gradient(x) * z), [x, z])
    assert values(found, {x: 0.0, z: 2.0}) == [0, 0]


def test_S35_second_order_of_zeros():
    x = placeholder(())
    dx = gg.gradients(sign(x) + x * x, x)
    assert values([dx, gg.gradients(dx, x)], {x: 3.0}) == [6, 2]


# --- S36: ties and kinks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (absolute, [-2.0, 0.0, 3.0], [-1, 0, 1]),
        (sign, [-2.0, 0.0, 3.0], [0, 0, 0]),
        (lambda x: clip(x, -1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 1, 1, 1, 0]),
        (lambda x: maximum(x, x), [-1.0, 0.0, 2.0], [1, 1, 1]),
        (lambda x: minimum(x, x), [-1.0, 0.0, 2.0], [1, 1, 1]),
        (lambda x: maximum(x, 0.0), [-1.0, 0.0, 2.0], [0, 0.5, 1]),
        (lambda x: minimum(x, 0.0), [-1.0, 0.0, 2.0], [1, 0.5, 0]),
    ],
)
def test_S36_ties_and_kinks(f, at, expected):
    x = placeholder((len(at),))
    assert value(gg.gradients(f(x), x), {x: at}).tolist() == expected


def test_S36_shares_of_a_tie_add_up_to_one():
    x, z = placeholder(()), placeholder(())
    for f in (maximum, minimum):
        dx, dz = values(gg.gradients(f(x, z), [x, z]), {x: 2.0, z: 2.0})
        assert dx == dz == 0.5


# --- S37: no recursion, and what it costs ---------------------------------------------------------


def chain(x, length):
    y = x
    for _ in range(length):
        y = negative(y)
    return y


def long_chain(length):
    gc.disable()
    try:
        assert sys.getrecursionlimit() <= 1000
        x = placeholder(())
        y = chain(x, length)
        dx = gg.gradients(y, x)
        assert value(dx) == 1
    finally:
        gc.enable()


@pytest.mark.ci
def test_S37_a_chain_of_50_000_nodes_differentiates(graph):
    long_chain(50_000)


@pytest.mark.slow
def test_S37_a_chain_of_a_million_nodes_differentiates(graph):
    long_chain(1_000_000)


def test_S37_regions_in_a_long_chain():
    x = placeholder(())
    y = x
    for _ in range(2_000):
        with gg.override_gradient(default):
            y = chain(y, 10)
    assert value(gg.gradients(y, x)) == 1


@pytest.mark.ci
def test_S37_a_long_chain_inside_a_region():
    x = placeholder(())
    with gg.override_gradient(default):
        y = chain(x, 10_000)
    assert value(gg.gradients(y, x)) == 1


def test_S37_a_fan_out_of_a_thousand_ways_stays_linear(graph):
    def fan(ways):
        with gg.Graph() as g:
            x = placeholder(())
            h = exp(x)
            y = None
            for _ in range(ways):
                part = sin(h)
                y = part if y is None else y + part
            before = len(g)
            calls = calls_of(lambda: gg.gradients(y, x))
            return len(g) - before, calls

    small, large = fan(100), fan(1_000)
    assert large[0] < 10.5 * small[0]
    assert large[1] < 10.5 * small[1]


def test_S37_what_is_added_up_is_added_once():
    x = placeholder(())
    parts = [sin(x) for _ in range(1_000)]
    dx = gg.gradients(parts, x)
    assert [n.type for n in gg.Program([x], [dx]).nodes].count("AddN") == 1
    assert value(dx, {x: 0.0}) == 1_000


def many_regions(count):
    x = placeholder(())
    ys = []
    for _ in range(count):
        with gg.override_gradient(scaled(2.0)):
            ys.append(sin(exp(x)))
    return x, ys


def test_S37_a_boundary_costs_nothing_in_a_call_that_does_not_touch_its_region():
    def cost(count):
        with gg.Graph():
            x, ys = many_regions(count)
            gg.gradients(ys[0], x)  # the first call takes in what was built
            return calls_of(lambda: gg.gradients(ys[1], x))

    assert cost(1_000) < 1.2 * cost(10)


@pytest.mark.ci
def test_S37_many_calls_on_one_graph_stay_linear():
    def cost(count):
        with gg.Graph():
            x, ys = many_regions(count)
            return calls_of(lambda: [gg.gradients(y, x) for y in ys])

    assert cost(400) < 4.4 * cost(100)


def test_S37_a_chain_of_regions_that_ask_for_their_default_stays_linear():
    def cost(count):
        with gg.Graph():
            y = x = placeholder(())
            for _ in range(count):
                with gg.override_gradient(default):
                    y = sin(exp(y))
            return calls_of(lambda: gg.gradients(y, x))

    assert cost(400) < 4.4 * cost(100)


@pytest.mark.ci
def test_S37_second_order_of_a_chain_of_regions_stays_linear():
    def cost(count):
        with gg.Graph():
            y = x = placeholder(())
            for _ in range(count):
                with gg.override_gradient(default):
                    y = sin(y)
            dx = gg.gradients(y, x)
            return calls_of(lambda: gg.gradients(dx, x))

    assert cost(400) < 4.6 * cost(100)


def test_S37_a_call_near_the_end_of_a_long_graph_does_not_walk_it():
    def cost(length):
        with gg.Graph():
            h = chain(placeholder(()), length)
            y = sin(h)
            gg.gradients(y, h)
            return calls_of(lambda: gg.gradients(y, h))

    assert cost(10_000) == cost(100)


def test_S37_the_collector_is_as_it_was():
    x = placeholder(())
    y = exp(x)
    gg.gradients(y, x)
    assert gc.isenabled()
    gc.disable()
    try:
        gg.gradients(y, x)
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(TypeError):
        gg.gradients(y, placeholder((), "int64"))
    assert gc.isenabled()


@pytest.mark.ci
def test_S37_threads_differentiate_graphs_of_their_own():
    found = {}

    def work(k):
        with gg.Graph():
            x = placeholder(())
            y = x
            for _ in range(60):
                with gg.override_gradient(default):
                    y = sin(y) * cos(y) + y
            first = gg.gradients(y, x)
            found[k] = values([first, gg.gradients(first, x)], {x: 0.1})

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work("here")
    assert all(found[k] == found["here"] for k in range(4))
