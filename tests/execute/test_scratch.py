"""Scratch: arrays apart from each other, at lines of the cache; of a thread, and of a block."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphgrad.execute.numpy.scratch import LINE, scratch

PLACES = [
    (np.dtype(bool), (3,)),
    (np.dtype(float), (2, 5)),
    (np.dtype("f4"), ()),
    (np.dtype(int), (0, 2)),
]


def test_arrays_share_nothing_with_each_other():
    with scratch(PLACES) as arrays:
        assert [(a.dtype, a.shape) for a in arrays] == PLACES
        for i, a in enumerate(arrays):
            assert a.ctypes.data % LINE == 0
            for b in arrays[:i]:
                assert not np.shares_memory(a, b)


def test_the_memory_is_used_again():
    with scratch([(np.dtype(float), (1000,))]) as (big,):
        pass
    with scratch([(np.dtype(float), (10,))]) as (again,):
        assert np.shares_memory(big, again)


def test_the_memory_is_used_again_after_an_error():
    with pytest.raises(KeyError), scratch(PLACES[:1]) as (first,):
        raise KeyError
    with scratch(PLACES[:1]) as (again,):
        assert np.shares_memory(first, again)


@pytest.mark.parametrize("size", [10, 1000])
def test_a_block_within_a_block_has_memory_of_its_own(size):
    """And the outer one's memory is what is used again."""
    with scratch([(np.dtype(float), (100,))]) as (outer,):
        for _ in range(2):
            with scratch([(np.dtype(float), (size,))]) as (inner,):
                assert not np.shares_memory(outer, inner)
    with scratch([(np.dtype(float), (100,))]) as (again,):
        assert np.shares_memory(outer, again)


def test_each_thread_has_its_own():
    found, meeting = [], threading.Barrier(4, timeout=60)

    def work():
        with scratch(PLACES[:1]) as arrays:
            meeting.wait()
            found.extend(arrays)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    work()
    for t in threads:
        t.join()
    assert not any(np.shares_memory(a, b) for i, a in enumerate(found) for b in found[:i])
