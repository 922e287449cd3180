"""The tree of regions with groups put in, against a slow and plain reckoning."""

import random

import pytest

import graphgrad as gg
from graphgrad.ir.groups import Groups, around, chain_of, holds, is_same
from graphgrad.ir.node import Members, Region


def region_in(graph, parent=None, group=None):
    region = Region(graph, "rule", parent=parent, origin=None, position=None)
    region.group = group
    return region


@pytest.fixture
def tree():
    """a { b { x } }, c { y }, z: regions a, b, c with nodes x, y, z"""
    with gg.Graph() as g:
        x, y, z = (gg.placeholder((), name=n).node for n in "xyz")
    a = region_in(g)
    b, c = region_in(g, a), region_in(g)
    x.region, y.region = b, c
    return g, (a, b, c), (x, y, z)


def test_without_groups_the_tree_is_that_of_the_marks(tree):
    _, (a, b, c), (x, _, z) = tree
    assert (around(x, None), around(b, None), around(a, None), around(z, None)) == (
        b,
        a,
        None,
        None,
    )
    assert chain_of(b, None) == (a, b)
    assert chain_of(None, None) == ()
    assert [holds(a, r, None) for r in (a, b, c, None)] == [True, True, False, False]


def test_a_group_lies_around_what_was_put_in_it_for_who_has_it(tree):
    g, (a, b, c), (x, y, z) = tree
    groups = Groups()
    group = region_in(g, None, Members("some", ()))
    groups.put(group, [a, z])
    assert groups.regions == [group]
    assert [groups.around(i) for i in (x, b, a, z, group, y, c)] == [
        b,
        a,
        group,
        group,
        None,
        c,
        None,
    ]
    assert groups.chain(b) == chain_of(b, groups) == (group, a, b)
    assert groups.chain(None) == ()
    for region, inside in [(group, a), (group, b), (group, group), (a, b)]:
        assert holds(region, inside, groups)
    for region, inside in [(a, group), (group, c), (group, None), (c, b), (b, a)]:
        assert not holds(region, inside, groups)
    assert around(a, None) is None  # nobody else sees it
    assert chain_of(b, Groups()) == (a, b)


def test_an_inner_group_is_put_in_after_the_outer_one(tree):
    g, (a, b, _), (*_, z) = tree
    groups = Groups()
    outer = region_in(g, None, Members("outer", ()))
    inner = region_in(g, outer, Members("inner", ()))
    groups.put(outer, [a, z])
    groups.put(inner, [a])
    assert groups.chain(b) == (outer, inner, a, b)
    assert [groups.around(i) for i in (a, z, inner, outer)] == [inner, outer, outer, None]
    assert holds(outer, inner, groups)
    assert not holds(inner, outer, groups)


def test_a_group_that_another_call_named_counts_as_far_as_this_one_names_it(tree):
    g, (a, b, _), _ = tree
    members = Members("some", ())
    theirs, ours = region_in(g, a, members), region_in(g, None, members)
    groups = Groups()
    assert groups.chain(theirs) == (a,)  # we do not name it: what it lay in is left
    theirs.parent, groups = None, Groups()
    assert groups.chain(theirs) == ()
    assert not holds(theirs, b, groups)
    groups = Groups()
    groups.put(ours, [a])
    assert groups.chain(theirs) == (ours,)
    assert groups.around(theirs) is None
    assert holds(theirs, b, groups)
    assert holds(ours, theirs, groups)
    assert is_same(theirs, ours)
    assert is_same(ours, ours)
    assert not is_same(a, b)
    assert not is_same(a, ours)
    assert not is_same(ours, a)
    assert not is_same(region_in(g, None, Members("some", ())), ours)
    assert not is_same("some", ours)


def slowly(item, groups, put):
    """What is around an item, innermost first, by looking at what was put last."""
    chain = []
    while True:
        inside = [group for group, items in put if item in items]
        item = inside[-1] if inside else item.parent
        if item is None:
            return chain[::-1]
        chain.append(item)


def test_random_trees():
    random_ = random.Random(5)
    for _ in range(60):
        g = gg.Graph()
        regions = []
        for _ in range(12):
            regions.append(region_in(g, random_.choice([None, *regions])))
        groups, put = Groups(), []
        for number in range(4):  # a group around some that have one parent
            parent = random_.choice([None, *regions])
            inside = [groups.around(r) for r in regions]
            siblings = [r for r, i in zip(regions, inside, strict=True) if i is parent]
            items = [r for r in siblings if random_.random() < 0.6]
            group = region_in(g, parent, Members(str(number), ()))
            groups.put(group, items)
            put.append((group, items))
        for r in [*regions, *groups.regions]:
            assert list(groups.chain(r)) == [*slowly(r, groups, put), r]
            for s in [*regions, *groups.regions]:
                assert holds(r, s, groups) == (r in groups.chain(s))
