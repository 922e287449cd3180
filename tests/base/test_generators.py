"""Scopes that a generator opens count only while it runs."""

import contextlib

import pytest

import graphgrad as gg
from graphgrad.base.errors import ScopeError
from graphgrad.base.generators import WhileRunning, opened_by


def opens(scope="scope"):
    """Stands for the `__init__` or `__enter__` of a scope: its caller opens it."""
    return opened_by(scope)


def test_a_function_opens_for_good():
    def nested():
        return opens()

    assert nested() is None
    assert (lambda: opens())() is None
    assert [opens() for _ in range(2)] == [None, None]


def test_a_function_that_a_generator_calls_opens_for_good():
    def generator():
        def nested():
            return opens()

        yield nested()

    assert next(generator()) is None


def test_the_check_is_whether_the_generator_is_on_the_stack():
    def generator():
        opened = opens("a region")
        opened.check()
        (lambda: opened.check())()
        yield opened
        opened.check()
        yield None

    running = generator()
    opened = next(running)
    assert isinstance(opened, WhileRunning)
    with pytest.raises(ScopeError) as error:
        opened.check()
    for part in [
        "a node is built at test_generators.py:",
        "'a region' is held open by the generator 'generator' (test_generators.py:",
        "stopped at a `yield`",
        "@contextlib.contextmanager",
    ]:
        assert part in str(error.value)
    assert next(running) is None
    with pytest.raises(ScopeError):
        opened.check()


def test_a_contextmanager_opens_for_good_unless_a_generator_enters_it():
    @contextlib.contextmanager
    def manager():
        yield opens()

    with manager() as opened:
        assert opened is None

    def generator():
        with manager() as opened:
            yield opened

    opened = next(generator())
    assert isinstance(opened, WhileRunning)
    assert opened.frame.f_code.co_name == "generator"


def test_another_run_of_the_same_generator_does_not_count():
    def generator(held):
        opened = opens("a region")
        for each in [opened, *held]:
            each.check()
        yield opened

    first = generator([])
    second = generator([next(first)])
    with pytest.raises(ScopeError, match="'a region' is held open by the generator"):
        next(second)


def test_an_asynchronous_generator_is_one_too():
    async def generator():
        yield opens()

    with pytest.raises(StopIteration) as stepped:
        generator().asend(None).send(None)
    assert isinstance(stepped.value.value, WhileRunning)


def test_what_the_library_opens_for_itself_is_open_for_good():
    source = "def generator():\n    yield opens()\n"
    found = {}
    for name in (gg.__file__, __file__):
        names = {"opens": opens}
        exec(compile(source, name, "exec"), names)
        found[name] = next(names["generator"]())
    assert found[gg.__file__] is None
    assert isinstance(found[__file__], WhileRunning)
