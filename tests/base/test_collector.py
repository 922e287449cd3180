"""The collector is paused while a function runs and put back as it was."""

import gc

import pytest

from graphgrad.base.collector import collector_paused


@pytest.fixture(params=[True, False])
def before(request):
    """Whether the collector runs when the block begins."""
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_it_is_as_it_was_after_the_function(before):
    @collector_paused
    def inner():
        assert not gc.isenabled()

    @collector_paused
    def outer():
        inner()
        inner()

    outer()
    assert gc.isenabled() is before


def test_it_is_as_it_was_after_an_error(before):
    @collector_paused
    def wrong():
        raise KeyError

    with pytest.raises(KeyError):
        wrong()
    assert gc.isenabled() is before
