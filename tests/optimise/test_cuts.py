"""What of a tensor is read along one axis, and which cuts follow each other."""

from itertools import pairwise

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.base import apply as node
from graphgrad.ops.shape.slicing import Slice
from graphgrad.optimise.cuts import cut_of, follows, joined


def cuts(build, *shape):
    with gg.Graph():
        x = gg.placeholder(shape)
        made = build(x)
    found = [cut_of(t) for t in made]
    assert all(c is None or c.source is x for c in found)
    return found


@pytest.mark.parametrize("at", [3, (1, 4), (0, 2, 2), (6,)])
def test_the_parts_of_a_split_begin_where_numpy_cuts(at):
    found = cuts(lambda x: gg.split(x, at, 1), 2, 6)
    parts = np.split(np.arange(6), at)
    assert [list(c.at) for c in found] == [p.tolist() for p in parts]
    assert {c.axis for c in found} == {1}
    assert all(follows(a, b) for a, b in pairwise(found))
    assert list(joined(found).at) == list(range(6))


def test_a_split_of_unknown_length_has_no_cuts():
    assert cuts(lambda x: gg.split(x, [1, 2]), None) == [None] * 3
    assert cuts(lambda x: gg.split(x, 2), "N") == [None] * 2


def test_an_index_and_a_range_do_not_follow_each_other():
    one, several = cuts(lambda x: [x[0], x[1:3]], 3)
    assert (one.at, several.at) == (0, range(1, 3))
    assert not follows(one, several)


def test_the_parts_of_an_unstacked_tensor_follow_each_other():
    found = cuts(lambda x: gg.unstack(x, 1), 2, 3)
    assert [c.at for c in found] == [0, 1, 2]
    assert follows(found[0], found[1])
    assert not follows(found[0], found[2])
    assert not follows(found[1], found[0])


def test_what_reads_two_axes_or_every_second_place_is_no_cut():
    assert cuts(lambda x: [x[:1, :1], x[:, ::2], x[None, 0], gg.exp(x)], 2, 3) == [None] * 4
    (whole,) = cuts(lambda x: [node(Slice(()), x)], 2)
    assert whole is None


def test_parts_of_two_splits_do_not_follow_each_other():
    with gg.Graph():
        x, y = gg.placeholder((4,)), gg.placeholder((4,))
        first, second = gg.split(x, 2), gg.split(y, 2)
    assert not follows(cut_of(first[0]), cut_of(second[1]))
    assert follows(cut_of(first[0]), cut_of(first[1]))
