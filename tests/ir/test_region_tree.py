"""The tree of regions with groups put in, against a slow and plain reckoning."""

import random

import pytest

import graphgrad as gg
from graphgrad.ir.node import Members, Region
from graphgrad.ir.region_tree import MARKED, NamedTree, is_same


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
    assert [MARKED.around(i) for i in (x, b, a, z)] == [b, a, None, None]
    assert MARKED.chain(b) == (a, b)
    assert MARKED.chain(None) == ()
    assert [MARKED.holds(a, r) for r in (a, b, c, None)] == [True, True, False, False]
    assert [list(MARKED.between(v, b)) for v in (None, a, b, c)] == [[a, b], [b], [], [a, b]]
    assert (MARKED.regions, MARKED.moved) == ((), {})


def test_a_group_lies_around_what_was_put_in_it_for_who_has_it(tree):
    g, (a, b, c), (x, y, z) = tree
    named = NamedTree()
    group = region_in(g, None, Members("some", ()))
    assert named.chain(b) == (a, b)  # what was found before is found anew
    named.put(group, [a, z])
    assert named.regions == [group]
    around = [named.around(i) for i in (x, b, a, z, group, y, c)]
    assert around == [b, a, group, group, None, c, None]
    assert named.chain(b) == (group, a, b)
    assert named.chain(None) == ()
    assert list(named.between(group, b)) == [a, b]
    for region, inside in [(group, a), (group, b), (group, group), (a, b)]:
        assert named.holds(region, inside)
    for region, inside in [(a, group), (group, c), (group, None), (c, b), (b, a)]:
        assert not named.holds(region, inside)
    assert MARKED.around(a) is None  # nobody else sees it
    assert NamedTree().chain(b) == (a, b)


def test_an_inner_group_is_put_in_after_the_outer_one(tree):
    g, (a, b, _), (*_, z) = tree
    named = NamedTree()
    outer = region_in(g, None, Members("outer", ()))
    inner = region_in(g, outer, Members("inner", ()))
    named.put(outer, [a, z])
    named.put(inner, [a])
    assert named.chain(b) == (outer, inner, a, b)
    assert [named.around(i) for i in (a, z, inner, outer)] == [inner, outer, outer, None]
    assert named.holds(outer, inner)
    assert not named.holds(inner, outer)


def test_a_group_that_another_call_named_counts_as_far_as_this_one_names_it(tree):
    g, (a, b, _), _ = tree
    members = Members("some", ())
    theirs, ours = region_in(g, a, members), region_in(g, None, members)
    assert NamedTree().chain(theirs) == (a,)  # we do not name it: what it lay in is left
    theirs.parent, named = None, NamedTree()
    assert named.chain(theirs) == ()
    assert not named.holds(theirs, b)
    named = NamedTree()
    named.put(ours, [a])
    assert named.chain(theirs) == (ours,)
    assert named.around(theirs) is None
    assert named.holds(theirs, b)
    assert named.holds(ours, theirs)
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
        groups, put = NamedTree(), []
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
                assert groups.holds(r, s) == (r in groups.chain(s))


def test_what_a_rule_marks_while_the_call_runs_is_around_what_it_marked(tree):
    g, (a, b, c), (_, y, z) = tree
    named = NamedTree()
    group = region_in(g, None, Members("some", ()))
    named.put(group, [y, z])
    assert named.chain(b) == (a, b)
    a.parent = c
    assert named.chain(b) == (c, a, b)
    assert list(named.between(a, b)) == [b]
    b.parent = None
    assert named.chain(b) == (b,)
