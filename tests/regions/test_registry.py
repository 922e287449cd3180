"""The registry of rules: names that are taken, known, forgotten, temporary."""

# ruff: noqa: PT012  (blocks inside blocks are what is tested)

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.sources import placeholder

from ..differentiate.helpers import default, scaled, value


@pytest.fixture(autouse=True)
def as_before():
    before = gg.registered_gradients()
    yield
    for name in set(gg.registered_gradients()) - set(before):
        gg.unregister_gradient(name)


def test_S29_register_gradient_returns_the_function_unchanged():
    def rule(site, dy):
        return dy

    assert gg.register_gradient("test/rule")(rule) is rule
    assert gg.get_gradient("test/rule") is rule
    assert gg.is_registered("test/rule")


def test_S29_RegisterGradient_is_an_alias():
    assert gg.RegisterGradient is gg.register_gradient


def test_S29_a_second_registration_shows_both_lines():
    gg.register_gradient("test/rule")(lambda site, dy: dy)
    with pytest.raises(gg.DuplicateGradientError, match="'test/rule'") as error:
        gg.register_gradient("test/rule")(default)
    message = str(error.value)
    lines = [int(part.split()[0].rstrip(",.")) for part in message.split("test_registry.py:")[1:]]
    here = test_S29_a_second_registration_shows_both_lines.__code__.co_firstlineno
    assert lines == [here + 1, here + 3]
    assert isinstance(error.value, KeyError)
    assert "\\n" not in message  # shown as text, not as KeyError shows its argument


def test_S29_the_first_rule_stays_after_a_refused_one():
    def first(site, dy):
        return dy

    gg.register_gradient("test/rule")(first)
    with pytest.raises(gg.DuplicateGradientError):
        gg.register_gradient("test/rule")(default)
    assert gg.get_gradient("test/rule") is first


def test_S29_the_same_function_again_is_no_error():
    def cell():
        @gg.register_gradient("test/rule")
        def rule(site, dy):
            return dy

        return rule

    cell()
    newest = cell()  # a notebook cell run twice
    assert gg.get_gradient("test/rule") is newest


def test_S29_replace_says_that_it_is_meant():
    gg.register_gradient("test/rule")(lambda site, dy: dy)
    gg.register_gradient("test/rule", replace=True)(default)
    assert gg.get_gradient("test/rule") is default


def test_S29_an_op_type_is_a_name_that_is_taken():
    with pytest.raises(gg.DuplicateGradientError, match="Exp"):
        gg.register_gradient("Exp")(default)


def test_S29_unregister_and_registered():
    gg.register_gradient("test/rule")(default)
    assert gg.registered_gradients()["test/rule"] is default
    gg.registered_gradients().clear()  # a copy
    assert gg.is_registered("test/rule")
    gg.unregister_gradient("test/rule")
    assert not gg.is_registered("test/rule")
    assert "test/rule" not in gg.registered_gradients()
    with pytest.raises(gg.UnknownGradientError):
        gg.unregister_gradient("test/rule")
    with pytest.raises(gg.UnknownGradientError):
        gg.get_gradient("test/rule")


def test_S29_an_unknown_name_gets_the_nearest_one():
    gg.register_gradient("test/guided")(default)
    with pytest.raises(gg.UnknownGradientError, match="Did you mean 'test/guided'"):
        gg.get_gradient("test/giuded")


def test_S29_temporary_puts_back_what_was_there_before():
    def first(site, dy):
        return dy

    gg.register_gradient("test/rule")(first)
    with pytest.raises(ZeroDivisionError), gg.temporary_gradient("test/rule", default):
        assert gg.get_gradient("test/rule") is default
        1 / 0
    assert gg.get_gradient("test/rule") is first
    with gg.temporary_gradient("test/other", default):
        assert gg.is_registered("test/other")
    assert not gg.is_registered("test/other")


def test_S29_temporary_is_no_entry_of_the_registry():
    with gg.temporary_gradient("test/rule", default):
        assert gg.registered_gradients()["test/rule"] is gg.get_gradient("test/rule") is default
        gg.register_gradient("test/rule")(scaled(2.0))  # the name is free there
        assert gg.get_gradient("test/rule") is default
    assert gg.get_gradient("test/rule") is not default


def test_S29_temporary_refuses_what_register_gradient_refuses():
    with pytest.raises(gg.DuplicateGradientError, match=r"'Exp' is an op type.*test_registry\.py"):
        gg.temporary_gradient("Exp", default)
    with pytest.raises(TypeError, match="a gradient rule is a function, got 3"):
        gg.temporary_gradient("test/rule", 3)
    with pytest.raises(TypeError, match="takes the name for the rule, got ''"):
        gg.temporary_gradient("", default)


def test_S29_temporary_may_be_entered_inside_itself_and_another():
    two, three = (gg.temporary_gradient("test/rule", scaled(k)) for k in (2.0, 3.0))
    found = []
    with two, three, two:
        found.append(gg.get_gradient("test/rule"))
        with three:
            found.append(gg.get_gradient("test/rule"))
        found.append(gg.get_gradient("test/rule"))
    assert found == [two.rule.fn, three.rule.fn, two.rule.fn]
    assert not gg.is_registered("test/rule")
    with two:
        assert gg.get_gradient("test/rule") is two.rule.fn


def test_S29_temporary_left_in_the_wrong_order_is_a_ScopeError():
    outer, inner = (gg.temporary_gradient(f"test/{k}", default) for k in ("outer", "inner"))
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(gg.ScopeError, match=r"'test/outer'.*test_registry\.py.*wrong order"):
        outer.__exit__()
    with pytest.raises(gg.ScopeError, match="in another thread or task"):
        contextvars.copy_context().run(inner.__exit__)
    assert gg.is_registered("test/inner")
    inner.__exit__()
    assert gg.is_registered("test/outer")
    outer.__exit__()
    assert not gg.is_registered("test/outer")
    with pytest.raises(gg.ScopeError, match="'test/outer'"):
        outer.__exit__()


@pytest.mark.parametrize("names", [("test/a", "test/b"), ("test/same", "test/same")])
def test_S31_temporary_acts_in_the_thread_that_opened_it_only(names):
    both = threading.Barrier(2)
    found = {}

    def work(name, factor):
        with gg.Graph():
            x = placeholder(())
            with gg.temporary_gradient(name, scaled(factor)):
                both.wait()
                with gg.override_gradient(name):
                    y = exp(x)
                found[factor] = value(gg.gradients(y, x), {x: 0.0})
                others = [n for n in gg.registered_gradients() if n.startswith("test/")]
                both.wait()
            found[name, factor] = others == [name], gg.is_registered(name)

    given = zip(names, (2.0, 3.0), strict=True)
    threads = [threading.Thread(target=work, args=pair) for pair in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = dict.fromkeys(zip(names, (2.0, 3.0), strict=True), (True, False))
    assert found == {2.0: 2, 3.0: 3, **alone}


def test_S31_temporary_acts_in_the_task_that_opened_it_only():
    async def task(k, wait):
        with gg.Graph(), gg.temporary_gradient("test/rule", lambda site, dy: k * dy):
            x = placeholder(())
            with gg.override_gradient("test/rule"):
                y = exp(x)
            for _ in range(wait):
                await asyncio.sleep(0)
            return value(gg.gradients(y, x), {x: 0.3})

    async def main():
        return await asyncio.gather(task(2.0, 1), task(3.0, 3), task(4.0, 2))

    assert asyncio.run(main()) == [2, 3, 4]
    assert not gg.is_registered("test/rule")


@pytest.mark.parametrize("registered", [False, True])
def test_S31_a_task_that_outlives_a_temporary_name_may_not_use_it(registered):
    if registered:
        gg.register_gradient("test/rule")(default)
    x = placeholder(())

    async def main():
        async def waits():
            during = gg.get_gradient("test/rule")
            await ended.wait()
            return during

        async def later():
            await waits()
            assert gg.is_registered("test/rule") is registered
            with gg.override_gradient("test/rule"):
                raise AssertionError

        ended = asyncio.Event()
        with gg.temporary_gradient("test/rule", scaled(7.0)) as nothing:
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        assert nothing is None
        ended.set()
        with pytest.raises(gg.ScopeError, match="temporary_gradient at test_registry") as error:
            await task
        assert "is looked up at test_registry.py:" in str(error.value)

    asyncio.run(main())
    with gg.temporary_gradient("test/rule", scaled(7.0)):
        with gg.override_gradient("test/rule"):
            y = exp(x)
        outlives = contextvars.copy_context()
    for fn in (gg.get_gradient, lambda name: gg.gradient_override_map({"Exp": name})):
        with pytest.raises(gg.ScopeError, match="continues after it"):
            outlives.run(fn, "test/rule")
    with pytest.raises(gg.ScopeError, match="continues after it"):
        outlives.run(gg.gradients, y, x)

    def anew():
        with gg.temporary_gradient("test/rule", scaled(5.0)):
            return value(gg.gradients(y, x), {x: 0.0})

    assert outlives.run(anew) == 5


@pytest.mark.parametrize("name", ["", None, 3, lambda site, dy: dy])
def test_S29_a_name_is_a_string(name):
    with pytest.raises(TypeError, match="name"):
        gg.register_gradient(name)


def test_S29_a_rule_is_a_function():
    with pytest.raises(TypeError):
        gg.register_gradient("test/rule")(3)
    assert not gg.is_registered("test/rule")


def test_S29_many_threads_register_at_once():
    def register(k):
        for i in range(50):
            gg.register_gradient(f"test/{k}/{i}")(default)

    threads = [threading.Thread(target=register, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(name.startswith("test/") for name in gg.registered_gradients()) == 200


# --- S6 ------------------------------------------------------------------------------------------


def test_S06_a_rule_is_a_name_a_callable_or_a_rule_object():
    def seven(site, dy):
        return 7.0 * dy

    class Seven:
        def __call__(self, site, dy):
            return 7.0 * dy

    gg.register_gradient("test/seven")(seven)
    x = placeholder(())
    for rule in ("test/seven", seven, Seven(), gg.Rule(seven), lambda site, dy: 7.0 * dy):
        with gg.override_gradient(rule):
            y = exp(x)
        with gg.gradient_override_map({"Exp": rule}):
            z = exp(x)
        assert value(gg.gradients(y, x), {x: 0.3}) == 7
        assert value(gg.gradients(z, x), {x: 0.3}) == 7
        assert value(gg.gradients(exp(x), x, overrides={"Exp": rule}), {x: 0.3}) == 7


@pytest.mark.parametrize("rule", [3, None, 2.5, ["test/seven"]])
def test_S06_anything_else_is_an_error_at_the_with_line(rule):
    with pytest.raises(gg.GradientError, match="rule"):
        gg.override_gradient(rule)


def test_the_name_of_a_part_of_graphgrad_is_taken_and_not_listed():
    name = "gg.rules.checkpoint"
    with pytest.raises(gg.DuplicateGradientError, match=r"'gg.rules.checkpoint' is a part of"):
        gg.register_gradient(name)(lambda site, dy: dy)
    assert name not in gg.registered_gradients()
    assert not gg.is_registered(name)
    x = gg.placeholder((3,))
    gg.rules.checkpoint(gg.sin)(x)
    assert len(gg.select.rule(name).find(x.graph)) == 1
