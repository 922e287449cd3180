"""Comparisons: what is the same is so by identity or provenance; the rest came or went."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of

from .seeing import ONE_HOSTILE_NAME, hostile, labels, log1pexp, network, parsed, ste


def model(extra=False, override=None, width=4):
    with gg.Graph("model") as g:
        x = h = gg.placeholder(("N", width), name="x")
        with gg.name_scope("body"):
            h = gg.exp(h)
            if extra:
                h = gg.tanh(h)
            if override:
                with gg.override_gradient(override):
                    h = gg.sign(h)
            else:
                h = gg.sign(h)
        loss = gg.sum(h, axis=0)
        gg.gradients(gg.sum(loss), x)
    return g


def types(nodes):
    return sorted(n.type for n in nodes)


def test_with_and_without_an_override():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(ste):
            y = gg.sign(gg.exp(x))
        loss = gg.sum(y * 2.0)
        ruled, plain = gg.gradients(loss, x), gg.gradients(loss, x, overrides="none")
    found = gg.graph_diff([loss, plain], [loss, ruled])
    assert found
    assert {"Where", "LessEqual", "Abs"} <= set(types(found.added))
    same = {b for _, b in found.same}
    assert {n for n in loss.graph.nodes if n.origin is None and n.type != "Placeholder"} <= same
    assert all(n.origin is not None for n in (*found.added, *found.removed))
    assert not gg.graph_diff([loss, ruled], [loss, ruled])


def test_the_same_program_twice_is_the_same():
    found = gg.graph_diff(model(), model())
    assert not found
    assert len(found.same) == len(view_of(model()).nodes)
    assert not gg.graph_diff(model(), model().copy())


def test_what_was_put_in_is_added_and_what_read_it_changed():
    found = gg.graph_diff(model(), model(extra=True))
    assert types(n for n in found.added if n.origin is None) == ["Tanh"]
    assert [n for n in found.removed if n.origin is None] == []
    changed = {b.type for _, b in found.changed if b.origin is None}
    assert changed == {"Sign"}
    assert "reads body/Tanh_" in str(found)
    back = gg.graph_diff(model(extra=True), model())
    assert types(n for n in back.removed if n.origin is None) == ["Tanh"]


def test_a_mark_and_a_type_are_changes():
    marked = gg.graph_diff(model(), model(override=ste))
    assert "Sign" in {b.type for _, b in marked.changed} | set(types(marked.added))
    wider = gg.graph_diff(model(width=4), model(width=5))
    assert "f64[N,4] -> f64[N,5]" in str(wider)


def test_given_names_match_across_lines():
    def build(extra):
        with gg.Graph():
            x = gg.placeholder((3,), name="x")
            if extra:
                return gg.tanh(gg.exp(x))
            return gg.exp(x)

    found = gg.graph_diff(build(False), build(True))
    assert {b.name.partition("_")[0] for _, b in found.same} == {"x", "Exp"}
    assert types(found.added) == ["Tanh"]


def test_programs_before_and_after_a_pass():
    passes = gg.PassRecord()
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.exp(x * 1.0) + gg.exp(x)
    gg.compile(x, y, watch=passes)
    assert passes.made_by
    assert all(n.graph is None for n in passes.made_by)
    names = [name for name, _ in passes.programs]
    removed = [n.type for name in names[1:] for n in passes.diff(name).removed]
    assert "Multiply" in removed or len(passes.programs[-1][1].nodes) < 4
    assert "made by the pass" in gg.to_dot(passes.programs[-1][1], made_by=passes.made_by)
    with pytest.raises(KeyError, match="no pass named 'nothing'"):
        passes.diff("nothing")
    with pytest.raises(KeyError, match="first pass"):
        passes.diff(names[0])


def test_the_picture_says_what_changed_in_word_stroke_and_colour():
    found = gg.graph_diff(model(extra=True), model())
    text = gg.to_dot(found)
    shown = labels(parsed(text))
    assert any(label.startswith("- Tanh") for label in shown.values())
    assert any(label.startswith("~ Sign") for label in shown.values())
    assert any(name.startswith("r") for name in shown)
    assert "added" in text
    assert 'style="rounded,filled,dashed"' in text
    assert set(view_of(found).status.values()) >= {"removed", "changed", ""}


def test_what_was_removed_stands_in_the_box_it_was_in():
    found = gg.graph_diff(model(extra=True), model())
    view = view_of(found)
    (tanh,) = [n for n in found.removed if n.type == "Tanh"]
    assert view.box[tanh].title == "body"


def test_as_text_and_as_names():
    found = gg.graph_diff(model(), model(extra=True))
    said = found.to_dict()
    assert set(said) == {"added", "removed", "changed", "same"}
    assert any(name.startswith("body/Tanh") for name in said["added"])
    assert {"before", "after", "what"} == set(said["changed"][0])
    assert str(found).startswith("model: ")
    assert repr(found).startswith("<diff: ")


def test_higher_orders_match_too():
    first, second = log1pexp(2), log1pexp(2)
    assert not gg.graph_diff(first, second)


def test_other_numbers_are_other_attributes():
    def build(axis):
        with gg.Graph():
            return gg.sum(gg.placeholder((3, 3), name="x"), axis=axis)

    (pair,) = gg.graph_diff(build(0), build(1)).changed
    assert pair[1].type == "ReduceSum"


@pytest.mark.parametrize("name", ONE_HOSTILE_NAME)
def test_hostile_names_in_comparisons(name):
    found = gg.graph_diff(hostile(name), hostile("plain"))
    text = gg.to_dot(found)
    assert text.isascii()
    assert parsed(text) is not None
    assert all(c.isprintable() for c in str(found).replace("\n", ""))


def test_large_comparisons_are_linear():
    layers = [network(150), network(150)]
    assert not gg.graph_diff(*layers)


def test_of_several_gradients_of_a_node_the_one_with_equal_attributes_is_the_same():
    with gg.Graph():
        x = gg.placeholder((2, 3), name="x")
        w = gg.placeholder((3, 4), name="w")
        loss = gg.sum(x @ w)
        both, last = gg.gradients(loss, [x, w]), gg.gradients(loss, w)
    found = gg.graph_diff([loss, last], [loss, *both])
    assert not found.changed
    assert [n.attrs["transpose_b"] for n in found.added if n.type == "MatMul"] == [True]


def test_of_several_gradients_of_a_node_the_one_that_reads_the_same_is_the_same():
    """z * x has two products in its gradient with the override, and one of them without."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(ste):
            z = gg.sign(x)
        loss = gg.sum(z * x)
        ruled, plain = gg.gradients(loss, x), gg.gradients(loss, x, overrides="none")
    found = gg.graph_diff([loss, plain], [loss, ruled])
    assert not found.changed
    assert not found.removed
