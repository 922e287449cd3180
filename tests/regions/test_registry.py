"""The registry of rules: names that are taken, known, forgotten, temporary."""

# ruff: noqa: PT012  (blocks inside blocks are what is tested)

from __future__ import annotations

import threading

import pytest

import graphgrad as gg
from graphgrad.ops.exponential import exp
from graphgrad.ops.sources import placeholder

from ..differentiate.helpers import default, value


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
