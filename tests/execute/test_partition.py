"""Blocks cover a shape, each element once, and know where they are in what is broadcast."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphgrad.execute.numpy.partition import blocks_of

SHAPES = [(1000,), (7, 30), (1, 500), (500, 1), (3, 4, 50), (2, 3, 4, 5), (50, 1, 4), (2, 90, 1)]


@pytest.mark.parametrize("limit", [1, 4, 16, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_element_is_in_one_block(shape, limit):
    blocks = blocks_of(shape, limit)
    if blocks is None:
        assert math.prod(shape) <= limit
        return
    seen = np.zeros(shape, int)
    key = blocks.key(shape)
    for i in range(blocks.number):
        part = seen[key(blocks.at(i))]
        assert 0 < part.size <= max(limit, 64)
        assert part.flags.c_contiguous
        part += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_that_are_broadcast_are_cut_where_the_whole_is(shape):
    blocks = blocks_of(shape, 10)
    rank = len(shape) - blocks.axis
    for keep in itertools.product([False, True], repeat=len(shape)):
        small = tuple([d if k else 1 for d, k in zip(shape, keep, strict=True)])
        for part in {small[start:] for start in range(len(shape) + 1) if not any(keep[:start])}:
            array = np.arange(math.prod(part)).reshape(part)
            spread = np.broadcast_to(array, shape)
            for i in range(blocks.number):
                block = blocks.at(i)
                here = array[blocks.key(part)(block)] if blocks.varies(part) else array
                here = here.reshape(here.shape[max(here.ndim - rank, 0) :])
                wanted = spread[blocks.key(shape)(block)]
                np.testing.assert_array_equal(np.broadcast_to(here, wanted.shape), wanted)
                if block.piece.stop - block.piece.start == blocks.length:
                    assert here.shape == blocks.of(part)


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_reductions_have_a_place_for_each_block(shape):
    blocks = blocks_of(shape, 10)
    for n in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), n):
            results = np.zeros(blocks.results(axes), int)
            key, inner = blocks.result_key(axes), tuple(a - blocks.axis for a in axes)
            for i in range(blocks.number):
                block = blocks.at(i)
                part = np.ones(blocks.of(shape), int)[: block.piece.stop - block.piece.start]
                results[key(block)] += part.sum(tuple(a for a in inner if a >= 0))
            across = tuple(a for a in axes if a <= blocks.axis)
            kept = [d for a, d in enumerate(shape) if a not in axes]
            np.testing.assert_array_equal(
                results.sum(across), np.full(kept, math.prod([shape[a] for a in axes]))
            )
