"""Ways in which a rule could be lost, or half applied, without a word."""

import asyncio
import contextvars
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph


def ten(site, *dys):
    return [dys[0] * 10.0 for _ in site.inputs]


def test_the_current_graph_entered_again_stays_in_the_region():
    with gg.Graph() as g:
        x = gg.placeholder(())
        with gg.override_gradient(ten), g:
            b = gg.exp(x)
        with gg.gradient_override_map({"Sin": ten}), g.as_default():
            c = gg.sin(x)
        assert gg.evaluate(gg.gradients(b, x), {x: 2.0}) == 10.0
        assert gg.evaluate(gg.gradients(c, x), {x: 2.0}) == 10.0


def test_a_rule_may_enter_its_graph():
    with gg.Graph() as g:
        x = gg.placeholder(())

        def rule(site, dy):
            with g:
                return gg.gradients(site.outputs[0], site.inputs[0], dy)

        with gg.override_gradient(rule):
            y = gg.exp(x)
        assert gg.evaluate(gg.gradients(y, x), {x: 0.0}) == 1.0


@pytest.mark.parametrize("op", [gg.exp, gg.tanh, gg.sin])
def test_S17_the_default_under_an_override_of_the_call_at_second_order(op):
    def rule(site, dy):
        return 2.0 * site.default(dy)[0]

    with gg.Graph() as g:
        x = gg.placeholder(())
        y = op(x)
        kind = y.node.type
        by_call = gg.gradients(gg.gradients(y, x, overrides={kind: rule}), x)
        g.mark(kind, rule)
        by_mark = gg.gradients(gg.gradients(y, x), x)
    plain = gg.Graph()
    with plain:
        z = gg.placeholder(())
        truth = gg.gradients(gg.gradients(op(z), z), z)
    want = 2 * gg.evaluate(truth, {z: 0.4})
    assert gg.evaluate(by_mark, {x: 0.4}) == pytest.approx(want)
    assert gg.evaluate(by_call, {x: 0.4}) == pytest.approx(want)


def test_S21_what_is_connected_does_not_depend_on_the_other_xs():
    def swapped(site, da, db):
        return [db * 1.0, da * 1.0]

    with gg.Graph():
        x, w = gg.placeholder(()), gg.placeholder(())
        with gg.override_gradient(swapped):
            a, b = x * 2.0, w * 3.0
        u = a + 0.0 * gg.stop_gradient(b)
        alone, both = gg.gradients(u, w), gg.gradients(u, [x, w])[1]
        assert gg.evaluate([alone, both], {x: 1.0, w: 1.0}) == [1.0, 1.0]


def test_S21_a_declared_input_behind_its_reader():
    with gg.Graph() as g:
        x = gg.placeholder(())
        a = x * 2.0
        n = gg.exp(a)
        w = gg.placeholder(())
        b = a * w
        _ = b + 0.0

        def rule(site, *dys):
            return [dys[0] * 7.0 for _ in site.inputs]

        g.mark(gg.select.nodes(a.node, b.node), rule, inputs=[x, w], outputs=[a, b])
        alone, both = gg.gradients(n, w), gg.gradients(n, [x, w])[1]
        found = gg.evaluate([alone, both], {x: 0.0, w: 1.0})
    assert found == [7.0, 7.0]


def test_a_boundary_is_declared_in_the_block():
    with gg.Graph():
        x = gg.placeholder(())
        with gg.override_gradient(ten) as region:
            y = gg.exp(x)
        with pytest.raises(gg.RegionError, match="inside its block"):
            region.declare(outputs=[y])


def test_a_feed_of_one_of_many_outputs_under_optimisation():
    with gg.Graph():
        values, indices = gg.topk(gg.constant([3.0, 1.0, 2.0]), 2)
        f = gg.compile([values], [values * 2.0, indices])
        np.testing.assert_array_equal(f([100.0, 200.0])[0], [200.0, 400.0])
        x = gg.placeholder((4,))
        a, b = gg.split(x, 2), gg.split(x, 2)
        f = gg.compile([x, b[0]], [a[0] + 0.5, b[0] * 3.0])
        found = f([0.0, 1.0, 2.0, 3.0], [100.0, 200.0])
        np.testing.assert_array_equal(found[1], [300.0, 600.0])


def test_a_choice_within_a_choice_on_the_same_condition():
    with gg.Graph():
        x, p = gg.placeholder(()), gg.placeholder((), "bool")

        def then():
            v = x * 2.0
            return gg.cond(p, lambda: v * 3.0, lambda: v)

        y = gg.cond(p, then, lambda: x)
        dx = gg.gradients(y, x)
        assert gg.evaluate([y, dx], {x: 1.0, p: True}) == [6.0, 6.0]
        assert gg.evaluate([y, dx], {x: 1.0, p: False}) == [1.0, 1.0]


def test_sources_inside_a_branch_are_refused():
    with gg.Graph():
        x = gg.placeholder(())
        for source in (lambda: gg.variable(1.0) * x, lambda: gg.placeholder(()) * x):
            with pytest.raises(gg.StateError, match="build it outside"):
                gg.cond(x > 0, source, lambda: x)


def test_a_temporary_gradient_within_itself_is_gone_afterwards():
    temporary = gg.temporary_gradient("test/temporary", ten)
    with temporary, temporary:
        assert gg.is_registered("test/temporary")
    assert not gg.is_registered("test/temporary")


def test_tasks_started_in_a_block_do_not_disturb_each_other():
    async def child(x):
        await asyncio.sleep(0)
        with gg.override_gradient(ten):
            return gg.exp(x)

    async def main():
        x = gg.placeholder(())
        ys = await asyncio.gather(*(child(x) for _ in range(4)))
        return [gg.evaluate(gg.gradients(y, x), {x: 1.0}) for y in ys]

    with gg.Graph():
        assert asyncio.run(main()) == [10.0] * 4


def test_S05_a_choice_inside_a_region_that_never_asks_is_an_error():
    with gg.Graph():
        x = gg.placeholder(())
        with gg.override_gradient(ten) as region:
            y = gg.exp(x)
        for rule in (lambda site, dy: 5.0 * dy, None):
            with pytest.raises(gg.RegionError, match="has no effect") as error:
                gg.gradients(y, x, overrides={"Exp": rule})
            assert "test_nothing_is_lost.py" in str(error.value)
        off = gg.gradients(y, x, overrides={region: None, "Exp": lambda site, dy: 5.0 * dy})
        assert gg.evaluate(off, {x: 1.0}) == 5.0


def test_S05_a_choice_off_the_path_is_harmless():
    with gg.Graph():
        x = gg.placeholder(())
        y, _ = gg.exp(x), gg.sin(x)
        dx = gg.gradients(y, x, overrides={"Sin": ten})
        assert gg.evaluate(dx, {x: 0.0}) == 1.0


def test_a_task_that_outlives_the_block_is_an_error():
    async def child(x):
        await asyncio.sleep(0)
        return gg.exp(x)

    async def main():
        x = gg.placeholder(())
        with gg.override_gradient(ten):
            task = asyncio.create_task(child(x))
            gg.sin(x)
        return await task

    with gg.Graph(), pytest.raises(gg.ScopeError, match="has already ended") as error:
        asyncio.run(main())
    assert "test_nothing_is_lost.py" in str(error.value)


def test_a_custom_gradient_on_a_tensor_of_a_graph_that_was_left():
    @gg.custom_gradient
    def f(x, scale):
        return gg.exp(x) * scale, lambda dy: (dy * 7.0, gg.NO_GRAD)

    with gg.Graph() as g:
        x = gg.placeholder(())

    def outside():
        y = f(x, 2.0)
        assert y.graph is g
        return gg.evaluate(gg.gradients(y, x), {x: 1.0})

    assert contextvars.Context().run(outside) == 7.0


def test_many_threads_may_build_in_one_graph():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with gg.Graph() as g:
            x = gg.placeholder(())

        def chain(_):
            with g.as_default():
                h = x
                for _ in range(3000):
                    h = gg.identity(h, name="h")
            return h

        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(chain, range(4)))
    finally:
        sys.setswitchinterval(before)
    verify_graph(g)
    assert gg.evaluate(gg.gradients(ends, x), {x: 1.0}) == 4.0
