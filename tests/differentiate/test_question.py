"""What a gradients() call asks is one object, there while it is answered and in what it calls."""

import threading
from contextlib import suppress

import pytest

import graphgrad as gg
from graphgrad.differentiate.question import Question
from graphgrad.ir.context import IDLE, UNASKED
from graphgrad.ir.graph import current

from .helpers import default, scaled, value


def asked():
    return current().question


def answering():
    return current().answering


def test_nobody_asks_outside_a_call_and_a_rule_sees_what_its_call_asks():
    seen = []

    def rule(site, dy):
        seen.append((asked(), answering().running))
        return dy

    x = gg.placeholder(())
    with gg.override_gradient(rule) as region:
        y = gg.sin(x)
    assert (asked(), answering()) == (UNASKED, IDLE)
    z = y * 2.0
    gg.gradients(z, x)
    assert (asked(), answering()) == (UNASKED, IDLE)
    ((question, running),) = seen
    assert isinstance(question, Question)
    assert (list(question.ys), list(question.xs), running) == ([z], [x], (region,))


def test_a_call_within_a_rule_is_a_question_of_its_own_in_which_the_site_counts_as_unmarked():
    seen = []

    def inner(site, dy):
        seen.append((asked(), answering().running))
        return dy

    def rule(site, dy):
        seen.append((asked(), answering().running))
        return gg.gradients(site.outputs[0], site.inputs[0], dy)

    x = gg.placeholder(())
    with gg.override_gradient(rule) as outer, gg.override_gradient(inner) as within:
        y = gg.sin(x)
    gg.gradients(y, x)
    (around, first), (question, second) = seen
    assert question is not around
    assert (first, second) == ((outer,), (outer, within))


def test_the_inside_that_a_default_is_taken_of_is_asked_about_under_the_choices_of_the_call():
    seen = []

    def inner(site, dy):
        seen.append((asked(), answering()))
        return 3.0 * dy

    x = gg.placeholder(())
    with gg.override_gradient(default) as outer, gg.override_gradient("Identity") as within:
        y = gg.sin(x)
    dx = gg.gradients(y, x, overrides={within: inner})
    ((question, known),) = seen
    assert value(dx, {x: 1.0}) == 3.0
    assert question.choice.rules == {within: inner}
    assert outer in question.off
    assert set(known.opened) == {outer}


@pytest.mark.parametrize("where", ["rule", "default", "inner"])
def test_what_was_asked_is_forgotten_where_a_rule_fails(where):
    def fails(site, dy):
        raise ValueError

    def outer(site, dy):
        if where == "rule":
            raise ValueError
        if where == "inner":
            return gg.gradients(site.outputs[0], site.inputs[0], dy)
        return site.default(dy)

    x = gg.placeholder(())
    with gg.override_gradient(outer), gg.override_gradient(fails):
        y = gg.sin(x)
    for ask in gg.gradients, gg.jvp:
        with pytest.raises(ValueError):
            ask(y, x)
        assert (asked(), answering()) == (UNASKED, IDLE)


def test_a_thread_started_by_a_rule_is_not_asked():
    seen = []

    def rule(site, dy):
        thread = threading.Thread(target=lambda: seen.append(asked()))
        thread.start()
        thread.join()
        return dy

    x = gg.placeholder(())
    with gg.override_gradient(rule):
        y = gg.sin(x)
    gg.gradients(y, x)
    assert seen == [UNASKED]


def test_forward_mode_judges_what_a_default_calls_and_not_what_the_rule_calls_itself():
    judges = []

    def inner(site, dy):
        return 2.0 * dy

    def rule(site, dy):
        judges.append(answering().judge)
        gg.gradients(site.outputs[0], site.inputs[0])
        return site.default(dy)

    x = gg.placeholder(())
    with gg.override_gradient(rule), gg.override_gradient(inner):
        y = gg.sin(x)
    assert value(gg.jvp(y, x), {x: 1.0}) == 2.0
    assert judges == [None]
    with gg.override_gradient(default), gg.override_gradient(lambda site, dy: dy * dy):
        z = gg.sin(x)
    with pytest.raises(gg.GradientError, match="forward mode"):
        gg.jvp(z, x)


def test_a_call_in_a_rule_that_chooses_nothing_takes_on_the_choices_and_reports_to_them():
    def rule(site, dy):
        return gg.gradients(site.outputs[0], site.inputs[0], dy)

    x = gg.placeholder(())
    with gg.override_gradient(rule), gg.override_gradient("Identity") as within:
        y = gg.sin(x)
    dx = gg.gradients(y, x, overrides={within: scaled(0.0)})
    assert value(dx, {x: 1.0}) == 0.0


def test_what_a_rule_calls_leaves_what_is_asked_and_known_as_it_was():
    seen = []

    def fails(site, dy):
        raise ValueError

    def rule(site, dy):
        before = asked(), answering()
        y, x = site.outputs[0], site.inputs[0]
        for call in (
            lambda: site.default(dy),
            lambda: gg.gradients(y, x, dy),
            lambda: gg.jvp(y, x),
            lambda: gg.gradients(y, x, overrides={"Sin": fails}),
        ):
            with suppress(ValueError):
                call()
            seen.append(asked() is before[0] and answering() is before[1])
        return dy

    x = gg.placeholder(())
    with gg.override_gradient(rule):
        y = gg.sin(x)
    gg.gradients(y, x)
    assert seen == [True] * 4


@pytest.mark.parametrize("record", [Question(), IDLE, UNASKED])
def test_nothing_of_a_question_or_its_answering_is_written(record):
    for name in record._fields:
        with pytest.raises(AttributeError):
            setattr(record, name, None)
