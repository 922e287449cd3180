"""Nested lists, tuples and dicts: taken apart and put together."""

from collections import namedtuple

import pytest

import graphgrad as gg
from graphgrad.base.tree import flatten, paths, tree_map, unflatten

Pair = namedtuple("Pair", "left right")
TREES = [
    (7, [7], [""]),
    ([], [], []),
    ([1, (2, [3]), {}], [1, 2, 3], ["[0]", "[1][0]", "[1][1][0]"]),
    ({"b": 1, "a": [2, 3]}, [2, 3, 1], ["['a'][0]", "['a'][1]", "['b']"]),
    (Pair(1, {"x": 2}), [1, 2], ["[0]", "[1]['x']"]),
    ({2: "two", "a": "one"}, ["two", "one"], ["[2]", "['a']"]),
    ({"a": None}, [None], ["['a']"]),
]


@pytest.mark.parametrize(("tree", "leaves", "names"), TREES)
def test_leaves_and_their_names_are_in_one_order_and_go_back(tree, leaves, names):
    assert flatten(tree) == leaves
    assert list(paths(tree)) == names
    assert unflatten(tree, leaves) == tree
    assert flatten(unflatten(tree, [*range(len(leaves))])) == [*range(len(leaves))]


def test_the_kinds_of_containers_and_the_order_of_keys_stay():
    mapped = tree_map(str, {"b": Pair(1, 2), "a": ([3], (4,))})
    assert list(mapped) == ["b", "a"]
    assert mapped == {"b": Pair("1", "2"), "a": (["3"], ("4",))}
    assert type(mapped["b"]) is Pair
    assert type(mapped["a"]) is tuple


def test_tensors_as_keys_stay_in_their_order_and_build_nothing():
    """Sorting would compare them, which builds a node or is an error of its own."""
    with gg.Graph() as g:
        x, w, v = (gg.placeholder((n,), name=f"x{n}") for n in (3, 2, 3))
        tree = {x: 1, w: {"a": 2}, v: 3}
        assert flatten(tree) == [1, 2, 3]
        assert unflatten(tree, [4, 5, 6]) == {x: 4, w: {"a": 5}, v: 6}
        assert len(list(paths(tree))) == 3
        assert len(g) == 3


def test_gradients_of_a_dict_of_which_the_keys_are_tensors():
    with gg.Graph():
        x, w = gg.placeholder((3,), name="x"), gg.placeholder((2,), name="w")
        found = gg.gradients(gg.sum(x) + gg.sum(2.0 * w), {x: x, w: w})
        values = gg.evaluate([found[w], found[x]], {x: [1.0] * 3, w: [1.0] * 2})
    assert [v.tolist() for v in values] == [[2.0, 2.0], [1.0, 1.0, 1.0]]


def test_flattening_does_not_recurse():
    deep = [1]
    for _ in range(50_000):
        deep = [deep]
    assert flatten(deep) == [1]
    while deep and isinstance(deep[0], list):  # taken apart by hand: so it is not freed in one go
        deep = deep[0]
