"""Offsets in the arena: what lives at the same time is apart, and little room is lost."""

import numpy as np
import pytest

from graphgrad.lower.memory import ALIGNMENT, Buffer, pack


def packed(rows):
    """Buffers of (size, first, last), and the bytes of their arena."""
    buffers = [Buffer(*row, False) for row in sorted(rows, key=lambda row: row[1])]
    return buffers, pack(buffers)


def most_at_once(buffers):
    ends = {b.last for b in buffers}
    rounded = [(-(-b.size // ALIGNMENT) * ALIGNMENT, b) for b in buffers]
    return max(sum(size for size, b in rounded if b.first <= at <= b.last) for at in ends)


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_at_the_same_time_is_apart(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 100, size=200)
    last = first + rng.geometric(0.1, size=200) - 1
    size = rng.choice([0, 1, 8, 64, 100, 4096, 5000], size=200)
    buffers, arena = packed(zip(size.tolist(), first.tolist(), last.tolist(), strict=True))
    for i, a in enumerate(buffers):
        assert a.offset % ALIGNMENT == 0
        assert a.offset + a.size <= arena
        for b in buffers[:i]:
            if a.size and b.size and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert most_at_once(buffers) <= arena <= 1.5 * most_at_once(buffers)


def test_a_place_is_used_again_after_its_last_use_and_not_at_it():
    (a, b, c), arena = packed([(64, 0, 1), (64, 1, 2), (64, 2, 3)])
    assert (a.offset, b.offset, c.offset, arena) == (0, 64, 0, 128)


def test_the_smallest_place_that_is_large_enough_is_taken():
    rows = [(256, 0, 1), (64, 0, 9), (128, 0, 1), (64, 0, 9), (128, 2, 9)]
    buffers, arena = packed(rows)
    assert buffers[4].offset == buffers[2].offset
    assert arena == 512


def test_places_that_become_free_join():
    buffers, arena = packed([(64, 0, 1), (64, 0, 1), (64, 0, 1), (192, 2, 3)])
    assert (buffers[3].offset, arena) == (0, 192)


def test_the_last_place_grows():
    buffers, arena = packed([(64, 0, 9), (64, 0, 1), (256, 2, 3)])
    assert (buffers[2].offset, arena) == (64, 320)


def test_nothing_takes_no_room():
    assert packed([]) == ([], 0)
    assert packed([(0, 0, 5)])[1] == 0
