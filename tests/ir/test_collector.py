"""The collector is paused for a block and put back as it was."""

import gc

import pytest

from graphgrad.ir.collector import collector_paused


@pytest.fixture(params=[True, False])
def before(request):
    """Whether the collector runs when the block begins."""
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_it_is_as_it_was_after_the_block(before):
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is before


def test_it_is_as_it_was_after_an_error(before):
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled() is before
