"""Scratch: arrays apart from each other, at lines of the cache, each thread its own."""

from __future__ import annotations

import threading

import numpy as np

from graphgrad.execute.scratch import LINE, scratch

PLACES = [
    (np.dtype(bool), (3,)),
    (np.dtype(float), (2, 5)),
    (np.dtype("f4"), ()),
    (np.dtype(int), (0, 2)),
]


def test_arrays_share_nothing_with_each_other():
    arrays = scratch(PLACES)
    assert [(a.dtype, a.shape) for a in arrays] == PLACES
    for i, a in enumerate(arrays):
        assert a.ctypes.data % LINE == 0
        for b in arrays[:i]:
            assert not np.shares_memory(a, b)


def test_the_memory_is_used_again():
    big = scratch([(np.dtype(float), (1000,))])[0]
    again = scratch([(np.dtype(float), (10,))])[0]
    assert np.shares_memory(big, again)


def test_each_thread_has_its_own():
    found = []
    threads = [threading.Thread(target=lambda: found.extend(scratch(PLACES[:1]))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found += scratch(PLACES[:1])
    assert not any(np.shares_memory(a, b) for i, a in enumerate(found) for b in found[:i])
