"""What a picture opens with: few things, under the names that the user gave them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.layout.picture import HUB, Picture
from graphgrad.inspect.scene.collapse import LARGE, READABLE
from graphgrad.inspect.scene.unrolled import runs_of
from graphgrad.inspect.scene.view import view_of

from .seeing import network
from .zoo import LARGE as LARGE_ONES
from .zoo import ZOO, layers, lstm, training_step, transformer


def first_view(shown, **options):
    return Picture(view_of(shown, **options))


def titles(picture, column):
    return [i.box.title for i in picture.items if i.box and i.box.column == column]


def drawn(picture):
    """The items, without copies of constants and hubs."""
    return [i for i in picture.items if "_" not in i.id]


@pytest.mark.parametrize("name", [*ZOO, "transformer24"])
def test_a_first_view_is_of_few_things(name):
    picture = first_view({**ZOO, **LARGE_ONES}[name]())
    assert len(drawn(picture)) <= READABLE
    if len(picture.view.nodes) > LARGE:
        assert any(i.box for i in picture.items)


def test_of_scopes_that_repeat_the_first_is_shown_and_the_rest_is_one_box():
    picture = first_view(lstm(20))
    for column in (0, 1):
        assert titles(picture, column) == ["step1 ... step19, x 19"]
    opened = {n.scope for i in picture.items if (n := i.node) and n.origin is None}
    assert {"step0/", "loss/"} <= opened
    left, right = next(pair for pair in picture.pairs() if pair[0].box)
    assert left.box.owner is right.box.owner
    assert {n.scope for n in left.box.members()} == {f"step{i}/" for i in range(1, 20)}


def test_inner_repeats_are_found_too():
    with gg.Graph():
        y = gg.placeholder((3,), name="x")
        for stage in "ab":
            with gg.name_scope(stage):
                for i in range(4):
                    with gg.name_scope(f"unit{i}"):
                        for _ in range(20):
                            y = gg.tanh(y)
                        y = y * y if (stage, i) == ("b", 3) else y
        view = view_of([y, gg.gradients(y, y.graph.tensor("x"))])
    found = [b.title for c in view.columns for b in c.within() if b.kind == "part"]
    assert found[:2] == ["unit1 ... unit3, x 3", "unit1 ... unit2, x 2"]
    assert sorted(found[2:]) == sorted(found[:2])


def test_what_is_not_alike_does_not_repeat():
    with gg.Graph():
        y = gg.placeholder((3,), name="x")
        for i in range(60):
            with gg.name_scope(f"layer{i}"):
                for k in range(1 + i * i % 7):
                    y = gg.tanh(y) + k
    view = view_of([y, gg.gradients(y, y.graph.tensor("x"))])
    assert len(view.nodes) > LARGE
    assert not any(", x " in b.title for c in view.columns for b in c.within() if b.kind == "part")


def test_layers_that_take_turns_repeat_too():
    with gg.Graph():
        y = gg.placeholder((3,), name="x")
        for i in range(60):
            with gg.name_scope(f"layer{i}"):
                y = gg.tanh(gg.tanh(y)) if i % 2 else gg.exp(gg.sin(gg.cos(y)))
                y = y + 1.0
    picture = first_view([y, gg.gradients(y, y.graph.tensor("x"))])
    for column in (0, 1):
        assert titles(picture, column) == ["layer2 ... layer59, x 58"]


def test_steps_without_scopes_are_known_by_the_lines_that_build_them():
    shown = lstm(20, scopes=False)
    picture = first_view(shown)
    lines = r"zoo.py:(\d+) to (\d+)"
    for column in (0, 1):
        (rest,) = titles(picture, column)
        assert re.fullmatch(rf"steps 1 \.\.\. 19 of {lines}, x 19", rest)
    (left, right), *_ = [pair for pair in picture.pairs() if pair[0].box]
    assert left.box.owner is right.box.owner
    view = picture.view
    (step,) = [b for b in view.columns[0].boxes if b.title.startswith("step 0 of")]
    scoped = lstm(20)[0].graph
    ops = [n.type for n in scoped.nodes if n.scope == "step0/" and n.inputs]
    assert [n.type for n in step.nodes] == ops
    assert sum(column.size for column in view.columns) == len(view.nodes)


def test_what_one_step_alone_reads_stands_in_it():
    picture = first_view(layers(60, scopes=False))
    assert len(drawn(picture)) < 40
    (rest,) = titles(picture, 0)
    assert rest.startswith("steps 1 ... 59 of zoo.py:")
    (step,) = [b for b in picture.view.columns[0].boxes if b.title.startswith("step 0 of")]
    assert sorted(n.type for n in step.nodes) == ["Add", "MatMul", "Tanh", "Variable", "Variable"]


@pytest.mark.parametrize(
    ("keys", "runs"),
    [
        ("abcabcabcx", [(0, 3, 3)]),
        ("xabcabcabca", [(1, 3, 3)]),
        ("abcabc", []),
        ("aaaaaaaa", []),
        ("abbbcabbbcabbbc", [(0, 5, 3)]),
        ("abcabcabcdefdefdef", [(0, 3, 3), (9, 3, 3)]),
        ("", []),
    ],
)
def test_runs_of_steps(keys, runs):
    assert list(runs_of(keys)) == runs


def test_small_pictures_are_drawn_in_whole():
    view = view_of(network(6))
    assert view.collapsed == set()
    assert {b.kind for c in view.columns for b in c.within()} <= {
        "column",
        "scope",
        "region",
        "rule",
    }


def test_an_optimiser_is_a_column_of_its_own_in_the_scopes_of_its_parameters():
    shown = training_step()
    picture = first_view(shown)
    view = picture.view
    assert [column.title for column in view.columns] == ["forward", "backward", "updates"]
    assert titles(picture, 2) == ["optimizer", "layer0", "layer1", "layer2"]
    slots = shown[0].graph.variables.slots
    assert all(view.column[t.node] == 2 for t in slots)
    assert all(view.column[t.node] == 2 for t in shown[1:])
    network_nodes = [n for n in view.nodes if view.column[n] == 0]
    assert not any(n in view.updates for n in network_nodes)
    assert sum(n.type == "Variable" for n in network_nodes) == 6
    for box in view.columns[2].boxes:
        if box.title.startswith("layer"):
            assert [inner.title for inner in box.boxes] == ["w", "b"]
    updates = [i for i in picture.items if i.box and i.box.column == 2]
    assert [[n.name for n in i.reads] for i in updates[1:]] == [
        [f"layer{k}/w", f"layer{k}/b"] for k in range(3)
    ]


@pytest.mark.parametrize(
    "make", [gg.optimizers.SGD, gg.optimizers.RMSProp, gg.optimizers.AdamW, gg.optimizers.AdaGrad]
)
def test_updates_of_every_optimiser_are_known(make):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        w, b = gg.variable(np.ones(3), name="w"), gg.variable(0.0, name="b")
        loss = gg.sum(gg.tanh(w * x) + b)
        grads, _ = gg.optimizers.clip_by_global_norm(gg.gradients(loss, [w, b]), 1.0)
        updates = make(1e-2).updates([w, b], grads)
    view = view_of([loss, *updates.values()])
    late = [n for n in view.nodes if view.column[n] == 2]
    assert all(n in view.updates for n in late)
    assert {view.updates[n] for n in late} == {"w", "b", "optimizer"}
    assert {n.type for n in view.nodes if view.column[n] == 0} == {
        *("Placeholder", "Variable", "Multiply", "Tanh", "Add", "ReduceSum")
    }


def test_a_step_that_the_network_goes_on_from_is_no_update():
    with gg.Graph():
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.ones(3), name="w")
        inner = w - 0.1 * gg.gradients(gg.sum(gg.tanh(w * x)), w)
        loss = gg.sum(gg.tanh(inner * x))
        shown = [loss, gg.gradients(loss, w), w - x]
        assigned = gg.assign(w, inner)
    assert view_of(shown).updates == {}
    assert view_of(assigned).updates[inner.node] == "w"


def test_what_very_many_things_read_is_drawn_beside_its_readers():
    shown = lstm(20)
    w = shown[0].graph.tensor("W").node
    picture = first_view(shown, collapse=[f"step{i}" for i in range(20)])
    hub = next(i for i in picture.items if i.node is w)
    assert hub.readers == 20
    assert not any(link.source is hub for link in picture.links)
    steps = [i for i in picture.items if i.box and i.box.column == 0]
    assert len(steps) == 20
    assert all([n.name for n in item.reads] == ["x", "W", "b"] for item in steps)
    whole = first_view(shown, collapse="none")
    copies = [i for i in whole.items if i.node is w]
    assert len(copies) == 21
    assert all(not i.readers for i in copies[1:])
    assert sum(link.source.node is w for link in whole.links) == 20
    assert "read by 20" in gg.to_dot(shown, collapse=["step*"])


def test_few_readers_have_lines_from_what_they_read():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        ys = [gg.exp(x) for _ in range(HUB)]
    picture = first_view(ys)
    assert len(picture.links) == HUB
    assert len(picture.items) == HUB + 1


def test_runs_of_a_crowded_box_have_the_names_of_what_is_in_them():
    view = view_of(layers(600))
    parts = [b.title for c in view.columns for b in c.within() if b.kind == "part"]
    assert "layer1 ... layer599, x 599" in parts
    assert all(title.startswith("layer") for title in parts)


@pytest.mark.ci
@pytest.mark.parametrize("name", LARGE_ONES)
def test_large_graphs_open_with_few_things(name):
    assert len(drawn(first_view(LARGE_ONES[name]()))) <= READABLE


def test_a_transformer_opens_with_its_first_block():
    picture = first_view(transformer(8))
    assert "block1 ... block7, x 7" in titles(picture, 0)
    names = [i.node.name for i in picture.items if i.node]
    for part in ("attention", "mlp"):
        opened = any(name.startswith(f"block0/{part}/") for name in names)
        assert opened or part in titles(picture, 0)
