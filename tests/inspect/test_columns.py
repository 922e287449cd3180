"""In which column a node stands."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.columns import column_title
from graphgrad.inspect.scene.view import view_of

from .seeing import chain


def columns(shown):
    view = view_of(shown)
    return {n.name: column_title(c) for n, c in view.column.items()}


def test_the_seed_of_a_second_gradient_stands_with_it():
    """Also where what was differentiated, a sum of gradients, is not shown itself."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        dx = gg.gradients(gg.sum(gg.exp(x)), x)
        total = gg.sum(gg.sin(dx))
        ddx = gg.gradients(total, x)
    found = columns([dx, ddx])
    assert total.node.name not in found
    seeds = [n.name for n in view_of([dx, ddx]).nodes if n.type == "Full"]
    assert [found[name] for name in seeds] == ["backward", "backward, order 2"]
    whole = columns([dx, total, ddx])
    assert {name: whole[name] for name in found} == found


def test_what_is_derived_from_what_is_not_shown_but_forward_is_backward():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        dx = gg.gradients(gg.sum(gg.exp(x)), x)
        other = gg.gradients(gg.sum(gg.sin(x)), x)
    assert set(columns([dx]).values()) == {"forward", "backward"}
    assert set(columns([other]).values()) == {"forward", "backward"}


@pytest.mark.ci
def test_a_long_hidden_chain_needs_no_recursion():
    y, dx = chain(3000)
    with y.graph:
        h = dx
        for _ in range(3000):
            h = gg.exp(h)
        ddx = gg.gradients(gg.sum(h), dx)
    (seed, *_) = [n for n in view_of([dx, ddx]).nodes if n.type == "Full"][1:]
    assert columns([dx, ddx])[seed.name] == "backward, order 2"
