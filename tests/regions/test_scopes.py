"""Scopes: what a block marks, which map wins, what is checked where, who sees whose scopes."""

# ruff: noqa: SIM117, PT012  (blocks inside blocks are what is tested)

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import ExitStack, asynccontextmanager, contextmanager

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.arithmetic import multiply, negative, subtract
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.magnitudes import sign
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.shape.reshaping import broadcast_to
from graphgrad.ops.sources import placeholder, variable

from ..differentiate.helpers import Spy, default, message_of, scaled, value, values

# --- S1: regions ---------------------------------------------------------------------------------


def test_S01_every_node_built_in_the_block_is_a_member():
    x = placeholder(())
    before = exp(x)
    with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
        y = sin(before)
        z = cos(y)
    after = exp(z)
    assert before.node.region is None
    assert after.node.region is None
    assert y.node.region is z.node.region is region
    dx = gg.gradients(z, before)
    assert value(dx, {x: 0.3}) == 7


def test_S01_functions_called_in_the_block_mark_too():
    def layer(x):
        return sin(exp(x))

    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = layer(layer(x))
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S01_a_region_around_a_loop_is_one_step():
    spy = Spy(lambda site, dy: 7.0 * dy)
    y = x = placeholder(())
    with gg.override_gradient(spy):
        for _ in range(5):
            y = sin(y)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7
    assert spy.calls == 1


def test_S01_as_a_decorator_every_call_is_a_region_of_its_own(graph):
    @gg.override(lambda site, dy: 7.0 * dy)
    def f(x):
        return sin(exp(x))

    x = placeholder(())
    y = f(f(x))
    assert len(graph.regions) == 2
    assert value(gg.gradients(y, x), {x: 0.3}) == 49


def test_S01_a_decorated_function_may_call_itself():
    @gg.override_gradient(scaled(2.0))
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1) if n > 2 else x * x

    x = placeholder(())
    y = power(x, 3)  # outer region: x * inner; inner: x * x. Each doubles.
    assert value(gg.gradients(y, x), {x: 3.0}) == 2 * (9 + 3 * 2 * 6)


# --- S2: maps ------------------------------------------------------------------------------------


def test_S02_a_map_stamps_each_node_of_the_type_as_it_is_built():
    spy = Spy(lambda site, dy: 10.0 * dy)
    x = placeholder(())
    a = exp(x)
    with gg.gradient_override_map({"Exp": spy}):
        b = exp(a)
        c = exp(sin(b))
    d = exp(c)
    assert [t.node.stamp for t in (a, b, c, d)] == [None, spy, spy, None]
    db = gg.gradients(c, b)
    assert value(db, {x: 0.0}) == pytest.approx(10 * value(cos(b), {x: 0.0}))
    gg.gradients(d, x)
    assert spy.calls == 3


def test_S02_a_map_is_a_method_of_the_graph_too(graph):
    x = placeholder(())
    with graph.gradient_override_map({"Exp": lambda site, dy: 7.0 * dy}):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S02_the_inner_map_wins_for_its_type_and_others_compose():
    x = placeholder(())
    with gg.gradient_override_map({"Exp": lambda s, dy: 2.0 * dy, "Sin": lambda s, dy: 3.0 * dy}):
        a = exp(x)
        with gg.gradient_override_map({"Exp": lambda s, dy: 5.0 * dy}):
            b = exp(sin(a))
        c = exp(b)
    assert value(gg.gradients(c, x), {x: 0.3}) == 2 * 3 * 5 * 2


def test_S02_None_restores_the_default_inside_an_outer_map():
    x = placeholder(())
    with gg.gradient_override_map({"Sin": lambda s, dy: 2.0 * dy, "Cos": lambda s, dy: 2.0 * dy}):
        a = cos(x)
        with gg.gradient_override_map({"Sin": None}):
            y = sin(a)
        z = sin(a)
    assert value(gg.gradients(y, a), {x: 0.3}) == pytest.approx(value(cos(a), {x: 0.3}))
    assert value(gg.gradients(z, a), {x: 0.3}) == 2


def test_S02_the_own_name_of_a_type_restores_the_default_too():
    x = placeholder(())
    with gg.gradient_override_map({"Sin": lambda s, dy: 2.0 * dy}):
        with gg.gradient_override_map({"Sin": "Sin"}):
            y = sin(x)
    dx = gg.gradients(y, x)
    assert value(dx, {x: 0.3}) == pytest.approx(value(cos(x), {x: 0.3}))
    assert value(gg.gradients(dx, x), {x: 0.3}) == pytest.approx(-value(sin(x), {x: 0.3}))


def test_S02_a_builtin_op_type_is_a_rule_name():
    x = placeholder((3,))
    with gg.gradient_override_map({"Sign": "Identity"}):
        y = sign(x)
    dx = gg.gradients(y, x, grad_ys=np.array([1.0, 2.0, 3.0]))
    assert value(dx, {x: [5.0, -1.0, 0.0]}).tolist() == [1, 2, 3]


def test_S02_round_with_the_gradient_of_identity_is_straight_through():
    x = placeholder((2,))
    with gg.gradient_override_map({"Round": "Identity"}):
        y = gg.ops.elementwise.rounding.round(x)
    dx = gg.gradients(y * y, x)
    assert value(dx, {x: [1.2, 2.7]}).tolist() == [2, 6]


def test_S02_as_a_decorator_the_map_is_in_force_during_every_call():
    @gg.gradient_override_map({"Exp": lambda s, dy: 7.0 * dy})
    def f(x):
        return exp(x)

    x = placeholder(())
    assert value(gg.gradients(f(f(x)), x), {x: 0.3}) == 49
    assert exp(x).node.stamp is None


# --- S13: what marks nothing ---------------------------------------------------------------------


def test_S13_a_block_that_marked_nothing():
    with pytest.raises(gg.RegionError, match="nothing") as error, gg.override_gradient(default):
        pass
    assert "test_scopes.py" in str(error.value)


def test_S13_a_block_of_placeholders_and_variables_only_marked_nothing():
    with pytest.raises(gg.RegionError), gg.override_gradient(default):
        placeholder(())
        variable(1.0)


def test_S13_a_block_without_an_input_has_nothing_to_override():
    with pytest.raises(gg.RegionError, match="input"), gg.override_gradient(default):
        exp(gg.constant(1.0))


def test_S13_an_unknown_op_type_with_the_nearest_name_at_the_with_line():
    with pytest.raises(gg.RegionError, match=r"'Tanhh'.*'Tanh'"):
        gg.gradient_override_map({"Tanhh": default})


def test_S13_a_map_of_which_no_entry_matched():
    x = placeholder(())
    with pytest.raises(gg.RegionError, match=r"'Exp'.*'Log'"):
        with gg.gradient_override_map({"Exp": default, "Log": default}):
            sin(x)


def test_S13_one_matched_entry_is_enough_and_the_others_are_listed():
    x = placeholder(())
    with gg.gradient_override_map({"Exp": default, "Log": default}) as scope:
        exp(x)
    assert scope.unmatched == ["Log"]


def test_S13_a_map_of_which_no_entry_can_ever_act():
    i = placeholder((2,), "int64")
    with pytest.raises(gg.RegionError, match="only tensors without a gradient"):
        with gg.gradient_override_map({"Add": default}):
            i + i
    for own in (None, "Add"):  # nothing is lost
        with gg.gradient_override_map({"Add": own}):
            i + i


def test_S13_an_entry_counts_as_matched_where_an_inner_map_wins():
    x = placeholder(())
    with gg.gradient_override_map({"Exp": default}) as outer:
        with gg.gradient_override_map({"Exp": None}) as inner:
            exp(x)
    assert outer.unmatched == inner.unmatched == []


@pytest.mark.parametrize("op_type", ["Placeholder", "Variable"])
def test_S13_an_override_on_ops_without_inputs(op_type):
    with pytest.raises(gg.RegionError, match="input"):
        gg.gradient_override_map({op_type: default})


@pytest.mark.parametrize("op_type", ["Constant", "Full"])
def test_S13_an_override_on_constants_is_known_at_the_with_line(op_type):
    with pytest.raises(gg.RegionError, match="input"):
        gg.gradient_override_map({op_type: default})


def test_S13_a_selection_that_selects_nothing():
    x = placeholder(())
    y = exp(x)
    with pytest.raises(gg.RegionError, match="Sin"):
        gg.gradients(y, x, overrides={"Sin": default})
    with pytest.raises(gg.RegionError, match=r"'Exq'.*'Exp'"):
        gg.gradients(y, x, overrides={"Exq": default})


def test_S13_a_block_left_by_an_exception_is_not_checked():
    with pytest.raises(ZeroDivisionError):
        with gg.override_gradient(default), gg.gradient_override_map({"Exp": default}):
            1 / 0


def test_S13_allow_empty_opts_out_of_the_emptiness_errors_only():
    with gg.override_gradient(default, allow_empty=True):
        pass
    with gg.gradient_override_map({"Exp": default}, allow_empty=True):
        pass
    with pytest.raises(gg.RegionError):
        gg.gradient_override_map({"Exq": default}, allow_empty=True)
    with pytest.raises(gg.UnknownGradientError):
        gg.override_gradient("test/nobody", allow_empty=True)


def test_S13_declared_tensors_must_be_what_they_are_declared_as():
    x = placeholder(())
    y = exp(x)
    with pytest.raises(gg.RegionError, match="not built inside"):
        with gg.override_gradient(default) as region:
            sin(x)
            region.declare(outputs=[y])
    with pytest.raises(gg.RegionError, match="inside"), gg.override_gradient(default) as region:
        z = sin(x)
        region.declare(inputs=[z])


# --- S30: names ----------------------------------------------------------------------------------


def test_S30_an_unknown_name_is_an_error_at_the_with_line_with_near_misses():
    with gg.temporary_gradient("test/soft_clip", default):
        with pytest.raises(gg.UnknownGradientError, match="Did you mean 'test/soft_clip'") as error:
            gg.override_gradient("test/soft_clpi")
        assert "test_scopes.py" in str(error.value)
        with pytest.raises(gg.UnknownGradientError, match="Did you mean 'test/soft_clip'") as error:
            gg.gradient_override_map({"Exp": "test/soft_clpi"})
        assert "test_scopes.py" in str(error.value)


def test_S30_late_defers_the_check_to_the_gradient_that_needs_it():
    x = placeholder(())
    with gg.override_gradient("test/later", late=True):
        y = exp(x)
    with gg.gradient_override_map({"Sin": "test/later"}, late=True):
        z = sin(x)
    for t in (y, z):
        with pytest.raises(gg.UnknownGradientError, match="test/later"):
            gg.gradients(t, x)
    w = cos(x)
    gg.gradients(w, x)  # needs neither
    with gg.temporary_gradient("test/later", lambda site, dy: 7.0 * dy):
        assert value(gg.gradients(y, x), {x: 0.3}) == 7
        assert value(gg.gradients(z, x), {x: 0.3}) == 7


def test_S30_the_error_of_a_late_name_says_where_the_site_is_and_what_is_near():
    x = placeholder(())
    with gg.override_gradient("test/later", late=True):
        y = exp(x)
    with gg.temporary_gradient("test/latter", default):
        with pytest.raises(gg.UnknownGradientError, match="Did you mean 'test/latter'") as error:
            gg.gradients(y, x)
    assert "test_scopes.py" in str(error.value)


def test_S30_a_name_is_looked_up_at_differentiation():
    x = placeholder(())
    with gg.temporary_gradient("test/looked_up", lambda site, dy: 1.0 * dy):
        with gg.override_gradient("test/looked_up"):
            y = exp(x)
        with gg.temporary_gradient("test/looked_up", lambda site, dy: 7.0 * dy):
            assert value(gg.gradients(y, x), {x: 0.3}) == 7
        assert value(gg.gradients(y, x), {x: 0.3}) == 1
    with pytest.raises(gg.UnknownGradientError):
        gg.gradients(y, x)


def test_S30_everything_is_validated_before_any_state_changes():
    x = placeholder(())
    with pytest.raises(gg.UnknownGradientError):
        with gg.gradient_override_map({"Exp": default, "Sin": "test/nobody"}):
            pass
    assert exp(x).node.stamp is None
    for bad in ({"Exp": default, 3: default}, {"Exp": 3}, {}, None, [("Exp", default)]):
        with pytest.raises((TypeError, gg.GraphGradError)), gg.gradient_override_map(bad):
            pass
        assert exp(x).node.stamp is None
    for bad in ({"escape": "nonsense"}, {"order": "nonsense"}):
        with pytest.raises(ValueError, match="nonsense"):
            with gg.override_gradient(default, **bad):
                pass
        assert exp(x).node.region is None


def test_S30_state_is_restored_on_every_exit():
    x = placeholder(())
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error):
            with gg.override_gradient(default), gg.gradient_override_map({"Exp": default}):
                raise error
        y = exp(x)
        assert y.node.region is None
        assert y.node.stamp is None
    with pytest.raises(gg.RegionError), gg.override_gradient(default):
        pass
    with pytest.raises(gg.RegionError), gg.gradient_override_map({"Exp": default}):
        pass
    y = exp(x)
    assert y.node.region is None
    assert y.node.stamp is None


def test_S30_an_error_in_a_rule_restores_the_state_of_gradients():
    def fails(site, dy):
        raise ValueError("no")

    x = placeholder(())
    with gg.override_gradient(fails):
        y = exp(x)
    with pytest.raises(ValueError, match="no"):
        gg.gradients(y, x)
    z = sin(x)
    assert z.node.origin is None
    assert z.node.name == f"Sin_{z.node.index}"
    assert value(gg.gradients(z, x), {x: 0.3}) == pytest.approx(value(cos(x), {x: 0.3}))


def test_S30_a_scope_left_in_the_wrong_order_is_an_error():
    x = placeholder(())
    outer, inner = gg.override_gradient(default), gg.override_gradient(default)
    outer.__enter__()
    inner.__enter__()
    exp(x)
    with pytest.raises(gg.ScopeError, match="wrong order"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert exp(x).node.region is None


def test_S30_a_scope_that_is_open_cannot_be_opened_again():
    x = placeholder(())
    scope = gg.override_gradient(default)
    with scope:
        with pytest.raises(gg.ScopeError):
            scope.__enter__()
        exp(x)
    assert exp(x).node.region is None


def test_S30_a_scope_left_without_having_been_entered_is_an_error():
    scopes = [gg.gradient_override_map({"Exp": default}) for _ in range(2)]
    with pytest.raises(KeyError), scopes[1]:
        raise KeyError
    for scope in scopes:
        for kind in (None, KeyError):
            with pytest.raises(gg.ScopeError, match="without having been entered"):
                scope.__exit__(kind, None, None)


# --- S31: threads and tasks ----------------------------------------------------------------------


def in_thread(fn):
    found = []
    thread = threading.Thread(target=lambda: found.append(fn()))
    thread.start()
    thread.join()
    return found[0]


def test_S31_threads_do_not_see_each_others_scopes(graph):
    x = placeholder(())
    with gg.override_gradient(default), gg.gradient_override_map({"Exp": default}):
        here = exp(x)
        with graph:
            pass

        def elsewhere():
            with graph:
                return exp(x)

        there = in_thread(elsewhere)
    assert here.node.region is not None
    assert here.node.stamp is default
    assert there.node.region is None
    assert there.node.stamp is None


def test_S31_a_thread_without_a_graph_has_a_default_graph_of_its_own(graph):
    def elsewhere():
        return placeholder(()).graph, gg.default_graph()

    theirs, default_there = in_thread(elsewhere)
    assert theirs is default_there
    assert theirs is not graph


def test_S31_many_threads_build_and_differentiate_at_once():
    def work(k):
        with gg.Graph():
            x = placeholder(())
            y = x
            for _ in range(200):
                with gg.override_gradient(lambda site, dy: k * dy):
                    a = sin(y)
                with gg.gradient_override_map({"Exp": lambda site, dy: dy / k}):
                    y = exp(negative(a))
            return value(gg.gradients(y, x), {x: 0.3})

    found = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: work(k)})) for k in (1.0, 2.0, 4.0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1.0: 1.0, 2.0: 1.0, 4.0: 1.0}


def test_S31_asyncio_tasks_do_not_see_each_others_scopes():
    x = placeholder(())
    built = {}

    async def task(k, scope):
        with scope:
            await asyncio.sleep(0)
            built[k] = exp(x)
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(
            task("a", gg.override_gradient(scaled(2.0))),
            task("b", gg.override_gradient(scaled(3.0))),
            task("c", gg.gradient_override_map({"Exp": scaled(5.0)})),
        )

    asyncio.run(main())
    a, b, c = built["a"].node, built["b"].node, built["c"].node
    assert a.region is not b.region
    assert (c.region, a.stamp, b.stamp) == (None, None, None)
    for k, factor in {"a": 2, "b": 3, "c": 5}.items():
        assert value(gg.gradients(built[k], x), {x: 0.0}) == factor
    assert exp(x).node.region is None


def test_S31_a_scope_left_in_another_context_is_an_error():
    x = placeholder(())
    scope = gg.override_gradient(default)
    contextvars.copy_context().run(scope.__enter__)
    with pytest.raises(gg.ScopeError):
        scope.__exit__(None, None, None)
    assert exp(x).node.region is None


def test_S31_a_scope_left_in_another_thread_is_an_error(graph):
    x = placeholder(())
    scope = gg.override_gradient(default)
    with scope:
        exp(x)

        def leave():
            with pytest.raises(gg.ScopeError, match="thread"):
                scope.__exit__(None, None, None)
            return True

        assert in_thread(leave)
    assert exp(x).node.region is None


def test_S31_a_generator_that_leaves_its_scope_in_the_wrong_order_is_an_error():
    def numbers(x):
        with gg.override_gradient(default):
            yield exp(x)
            yield sin(x)

    x = placeholder(())

    def interleaved():
        steps = numbers(x)
        next(steps)
        with gg.gradient_override_map({"Log": default}, allow_empty=True):
            with pytest.raises(gg.ScopeError, match="wrong order"):
                list(steps)

    contextvars.copy_context().run(interleaved)
    assert exp(x).node.region is None


@pytest.mark.parametrize("how", ["inputs", "declare"])
def test_S10_inputs_of_a_region_in_a_branch_may_be_of_the_graph_around(how):
    x, w = placeholder(()), placeholder(())

    def branch():
        given = {"inputs": [w, x]} if how == "inputs" else {}
        with gg.override_gradient(lambda site, dy: (2.0 * dy, 3.0 * dy), **given) as region:
            y = multiply(x, w)
            if how == "declare":
                region.declare(inputs=[w, x])
        return y

    y = gg.cond(x > 0, branch, lambda: x)
    assert values(gg.gradients(y, [x, w]), {x: 1.0, w: 5.0}) == [3, 2]
    with gg.Graph() as other:
        z = placeholder(())
    with pytest.raises(gg.RegionError, match="is among the inputs"):
        with gg.override_gradient(default, inputs=[z]):
            pass
    assert len(other) == 1


# --- generators: a scope that is open at a `yield` -----------------------------------------------


def block(x):
    return sin(exp(x))


def in_a_region(x):
    with gg.override_gradient(default) as region:
        y = block(x)
        yield region, y
        yield region, tanh(y)


def in_a_map(x):
    with gg.gradient_override_map({"Exp": default, "Tanh": default}):
        y = block(x)
        yield None, y
        yield None, tanh(y)


@pytest.mark.parametrize("steps", [in_a_region, in_a_map])
def test_S31_what_is_built_at_a_yield_is_an_error(steps, graph):
    x = placeholder(())
    count = len(graph)
    driven = steps(x)
    next(driven)
    built = len(graph)
    with pytest.raises(gg.ScopeError, match="stopped at a `yield`") as error:
        exp(x)
    assert f"the generator '{steps.__name__}' (test_scopes.py:" in str(error.value)
    assert len(graph) == built
    region, z = next(driven)
    assert list(driven) == []
    marked = [n for n in graph.nodes[count:] if n.region is not None or n.stamp is not None]
    assert z.node in marked
    assert len(marked) == (3 if region else 2)
    assert exp(x).node.region is None


def test_S31_at_a_yield_nothing_may_be_opened_or_differentiated_in_its_region(graph):
    x = placeholder(())
    y = x * x
    driven = in_a_region(x)
    next(driven)
    regions = len(graph.regions)
    with pytest.raises(gg.ScopeError, match="yield"), gg.override_gradient(default):
        raise AssertionError
    with pytest.raises(gg.ScopeError, match="yield"):
        gg.gradients(y, x)
    assert len(graph.regions) == regions
    list(driven)
    assert value(gg.gradients(y, x), {x: 3.0}) == 6


def test_S31_a_generator_that_ends_its_block_before_the_yield_is_as_any_function():
    def layers(x):
        for _ in range(3):
            with gg.override_gradient(scaled(2.0)):
                x = sin(x)
            yield x

    x = placeholder(())
    total = x
    for y in layers(x):
        total = total + exp(y)
    assert total.node.region is None
    assert sum(n.region is not None for n in total.graph.nodes) == 3


@contextmanager
def marked(rule):
    with gg.override_gradient(rule), gg.gradient_override_map({"Exp": rule}):
        yield


def test_S31_a_context_manager_holds_its_scopes_open():
    x = placeholder(())
    with marked(scaled(3.0)):
        y = exp(x)
    with ExitStack() as stack:
        stack.enter_context(marked(scaled(2.0)))
        stack.enter_context(gg.override_gradient(scaled(5.0)))
        z = sin(exp(x))
    assert y.node.region is not None
    assert y.node.stamp is not None
    assert z.node.region.parent is not None
    assert value(gg.gradients(y, x), {x: 0.0}) == 9

    @contextmanager
    def twice(rule):
        with marked(rule):
            yield

    with twice(scaled(7.0)):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: 0.0}) == 49


def test_S31_a_context_manager_that_a_generator_enters_belongs_to_the_generator():
    def steps(x):
        with marked(default), ExitStack() as stack:
            stack.enter_context(gg.override_gradient(default))
            yield exp(x)

    x = placeholder(())
    driven = steps(x)
    next(driven)
    with pytest.raises(gg.ScopeError, match="the generator 'steps'"):
        exp(x)
    list(driven)


def test_S31_yield_from_is_inside():
    def inner(x):
        yield exp(x)

    def outer(x):
        with gg.override_gradient(default):
            yield from inner(x)

    x = placeholder(())
    (y,) = outer(x)
    assert y.node.region is not None


def test_S31_asynchronous_generators_are_generators():
    x = placeholder(())

    async def numbers():
        with gg.override_gradient(default):
            yield exp(await later(x))

    async def later(x):
        await asyncio.sleep(0)
        return sin(x)

    @asynccontextmanager
    async def held():
        with gg.override_gradient(default):
            await asyncio.sleep(0)
            yield

    async def main():
        async for y in numbers():
            with pytest.raises(gg.ScopeError, match="the generator 'numbers'"):
                exp(y)
        async with held():
            return y, tanh(x)

    y, z = asyncio.run(main())
    assert y.node.region is y.node.inputs[0].node.region
    assert z.node.region not in (None, y.node.region)


def test_S31_a_coroutine_keeps_its_scope_while_it_waits():
    """Other tasks have contexts of their own, so nobody else builds in it."""
    x = placeholder(())
    order = []

    async def inside():
        with gg.override_gradient(default):
            a = exp(x)
            order.append("opened")
            await asyncio.sleep(0)
            order.append("closing")
            return a, sin(a)

    async def outside():
        await asyncio.sleep(0)
        order.append("built")
        return cos(x)

    async def main():
        return await asyncio.gather(outside(), inside())

    c, (a, b) = asyncio.run(main())
    assert order == ["opened", "built", "closing"]
    assert a.node.region is b.node.region is not None
    assert c.node.region is None


def test_S31_messages_name_the_users_file():
    with pytest.raises(gg.RegionError) as error, gg.gradient_override_map({"Exp": default}):
        broadcast_to(subtract(multiply(2.0, tanh(placeholder(()))), 1.0), (3,))
    assert "test_scopes.py" in message_of(error.value)


def test_S13_a_map_whose_block_was_left_by_an_exception_is_forgotten(graph):
    x = placeholder(())
    with pytest.raises(KeyError), gg.gradient_override_map({"Sin": default, "Tanh": default}):
        sin(x)
        raise KeyError
    assert graph.maps == []
