"""Where things stand in a tree, as a linked path."""

from graphgrad.base.ancestry import OUTSIDE, Ancestry


def test_a_path_is_as_long_as_it_is_deep_and_goes_outwards():
    a = Ancestry("a", OUTSIDE)
    b = Ancestry("b", a)
    assert [*b] == ["b", "a"]
    assert b.chain() == ("a", "b")
    assert (len(b), b.top, b.up_to(1)) == (2, "a", a)
    assert not OUTSIDE
    assert [*OUTSIDE] == []


def test_two_paths_share_what_is_around_both():
    a = Ancestry("a", OUTSIDE)
    b, c = Ancestry("b", a), Ancestry("c", a)
    assert b.common(c) is a
    assert b.common(a) is a
    assert b.common(OUTSIDE) is OUTSIDE
    assert b.common(Ancestry("d", OUTSIDE)) is OUTSIDE
