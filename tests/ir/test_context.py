"""The ambient record, and the scopes that change it."""

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest

import graphgrad as gg
from graphgrad.base.errors import ScopeError
from graphgrad.ir.context import CONTEXT, IDLE, UNASKED, Context, Scope, Within
from graphgrad.ir.graph import current
from graphgrad.ir.region_tree import MARKED

from ..interrupting import interrupted, places


class Marked(Scope):
    """A scope that changes the name scope of the record."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        context = current().copy()
        context.scope = self.text
        self._push(context)
        return self

    def __exit__(self, kind=None, *exc):
        self._pop(kind)


@pytest.fixture(autouse=True)
def base():
    """A record of the test's own."""
    context = Context(gg.Graph())
    token = CONTEXT.set(context)
    yield context
    assert CONTEXT.get() is context
    CONTEXT.reset(token)


def test_a_copy_has_every_field_and_is_another(base):
    for name in Context.__slots__:
        setattr(base, name, object())
    copied = base.copy()
    assert copied is not base
    assert all(getattr(copied, n) is getattr(base, n) for n in Context.__slots__)


def test_a_record_begins_with_nothing_open(base):
    unset = [n for n in Context.__slots__ if not getattr(Context(gg.Graph()), n)]
    assert unset == [n for n in Context.__slots__ if n not in ("graph", "question", "answering")]
    assert Context(gg.Graph()).question is UNASKED
    assert Context(gg.Graph()).answering is IDLE
    assert UNASKED.tree is MARKED
    assert Context(gg.Graph(), implicit=True).implicit is True


def test_a_scope_changes_the_record_and_puts_it_back(base):
    with Marked("a") as outer:
        inside = current()
        assert (inside.scope, outer.is_current()) == ("a", True)
        with Marked("b") as inner:
            assert current().scope == "b"
            assert (outer.is_current(), inner.is_current()) == (False, True)
        assert current() is inside
        with pytest.raises(KeyError), Marked("c"):
            raise KeyError
        assert current() is inside
    assert current() is base
    assert not outer.is_current()
    assert base.scope == ""


def test_a_scope_can_be_entered_again_once_it_was_left(base):
    scope = Marked("a")
    for _ in range(2):
        with scope:
            assert current().scope == "a"


def test_entering_what_is_open_leaves_all_as_it_is(base):
    with Marked("a") as scope:
        inside = current()
        with pytest.raises(
            ScopeError, match="Marked is already open; make a new one for each `with`"
        ):
            scope.__enter__()
        assert current() is inside
    assert current() is base


def test_leaving_what_was_not_entered(base):
    with pytest.raises(ScopeError, match="Marked was left without having been entered"):
        Marked("a").__exit__()
    with Marked("a") as scope:
        pass
    with pytest.raises(ScopeError, match="without having been entered"):
        scope.__exit__()
    assert current() is base


def test_leaving_in_the_wrong_order_leaves_all_as_it_is(base):
    outer, inner = Marked("a"), Marked("b")
    outer.__enter__()
    inner.__enter__()
    inside = current()
    with pytest.raises(ScopeError, match="Marked was left in the wrong order"):
        outer.__exit__()
    assert current() is inside
    inner.__exit__()  # the right order still works
    outer.__exit__()
    assert current() is base


def test_a_scope_of_another_thread_or_context_cannot_be_left(base):
    with Marked("a") as scope, ThreadPoolExecutor(1) as pool:
        elsewhere = contextvars.Context().run, contextvars.copy_context().run
        for run in (lambda f: pool.submit(f).result(), *elsewhere):
            with pytest.raises(ScopeError, match="in another thread or task"):
                run(scope.__exit__)
            assert scope.is_current()
        assert contextvars.Context().run(scope.is_current) is False
    assert current() is base


# --- interrupts ----------------------------------------------------------------------------------


def test_a_block_left_by_an_exception_closes_what_was_left_open_in_it(base):
    outer = Marked("a")

    def action():
        with outer:
            Marked("b").__enter__()
            Marked("c").__enter__()
            raise KeyError

    with pytest.raises(KeyError):
        action()
    assert current() is base
    assert not outer.is_around()


def test_a_region_around_stays_open_when_a_block_in_it_is_left_by_an_exception(base):
    def leaves_open(scope):
        with Marked("a"):
            scope.__enter__()
            raise KeyError

    inner = gg.override_gradient(lambda site, dy: dy)
    with base.graph:
        x = gg.placeholder(())
        with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
            for scope in (Marked("b"), inner):
                with pytest.raises(KeyError):
                    leaves_open(scope)
                assert region.open
            assert len(base.graph.regions) == 2
            assert not base.graph.regions[1].open
            y = gg.exp(x)
        assert y.node.region is region


def test_a_block_that_ends_while_another_is_open_in_it_is_an_error_as_before(base):
    inner = Marked("b")
    with Marked("a") as outer:
        inner.__enter__()
        with pytest.raises(ScopeError, match="wrong order"):
            outer._pop()
        assert (outer.is_around(), outer.is_current()) == (True, False)
        inner.__exit__()


def test_an_exception_does_not_leave_what_is_open_elsewhere(base):
    inner, outer = Marked("b"), Marked("a")
    with outer:
        elsewhere = contextvars.copy_context()
        elsewhere.run(inner.__enter__)
        with pytest.raises(ScopeError, match="wrong order"):
            inner._pop(KeyError)
        elsewhere.run(inner.__exit__)


def test_a_scope_is_entered_and_left_or_neither_wherever_it_is_interrupted(base):
    def action():
        with Marked("a"), Marked("b"), Within(current().copy()):
            current().scope = "c"

    found = [p for p in places(action) if p.code[0].endswith("ir/context.py")]
    assert len(found) > 10
    for place in found:
        assert interrupted(lambda: alone(base, action), place)


def alone(base, action):
    """In a block of its own, at the end of which nothing is open."""
    try:
        with Within(base.copy()) as context:
            action()
    finally:
        assert current() is base
    assert context.around is base


def test_an_interrupt_while_the_variable_is_set_leaves_nothing_open(base, monkeypatch):
    def interrupted_after(put, value):
        put(value)
        raise KeyboardInterrupt

    def action():
        monkeypatch.setattr("graphgrad.ir.context.undisturbed", interrupted_after)
        try:
            with pytest.raises(KeyboardInterrupt):
                Marked("a").__enter__()
        finally:
            monkeypatch.undo()

    alone(base, action)
