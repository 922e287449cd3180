"""Which nodes of two pictures are the same."""

from __future__ import annotations

import graphgrad as gg
from graphgrad.inspect.scene.matching import Matches
from graphgrad.inspect.scene.view import view_of

from .pages import marked, plain


def build(extra=False):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.tanh(x) * 2.0
        if extra:
            y = gg.exp(y)
        loss = gg.sum(y)
        return [loss, *gg.gradients([loss], [x])]


def test_the_same_nodes_have_one_number():
    shown = marked()
    one, two = view_of(shown), view_of(shown[0])
    key = Matches([one, two]).key
    assert sorted(key.values()) == list(range(len(one.nodes)))


def test_two_backward_parts_of_one_forward_part_are_matched_by_provenance():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: gg.sinh(dy)):
            y = gg.tanh(x)
        loss = gg.sum(gg.exp(y))
        one, two = (
            view_of([loss, *gg.gradients([loss], [x], overrides=choice)])
            for choice in (None, "none")
        )
    key = Matches([one, two]).key
    numbers = {key[n]: n for n in one.nodes}
    fresh = [n for n in two.nodes if n.origin is not None]
    same = [n for n in fresh if key[n] in numbers]
    assert same
    assert len(same) < len(fresh)
    assert {n.origin for n in same} == {loss.node, loss.node.inputs[0].node}
    assert all(numbers[key[n]].type == n.type for n in same)
    assert all(numbers[key[n]].origin is n.origin for n in same)


def test_no_number_stands_for_two_nodes_of_a_picture():
    shown = marked()
    for views in (
        [view_of(shown), view_of(plain(shown))],
        [view_of(build()), view_of(build(True))],
    ):
        key = Matches(views).key
        for view in views:
            assert len({key[n] for n in view.nodes}) == len(view.nodes)


def test_graphs_built_twice_are_matched_by_name_and_line():
    one, two = view_of(build()), view_of(build(extra=True))
    key = Matches([one, two]).key
    numbers = {key[n]: n for n in one.nodes}
    alone = [n.type for n in two.nodes if n.origin is None and key[n] not in numbers]
    assert alone == ["Exp"]
    assert all(numbers[key[n]].type == n.type for n in two.nodes if key[n] in numbers)


def test_passes_keep_names():
    shown = build()
    programs = [view_of(shown)]
    x = shown[0].graph.tensor("x")
    gg.compile([x], shown, watch=lambda _, program: programs.append(view_of(program)))
    key = Matches(programs).key
    first = {key[n]: n for n in programs[0].nodes}
    last = [n for n in programs[-1].nodes if key[n] in first]
    assert last
    assert all(first[key[n]].name == n.name or first[key[n]].type == n.type for n in last)


def test_what_is_read_twice_at_every_step_is_looked_at_once():
    with gg.Graph():
        h = x = gg.placeholder((), name="x")
        for _ in range(60):
            h = gg.tanh(h) * h
        one, two = (view_of(gg.gradients([h], [x], overrides=choice)) for choice in (None, "none"))
    key = Matches([one, two]).key
    assert len({key[n] for n in (*one.nodes, *two.nodes)}) == len(one.nodes)
