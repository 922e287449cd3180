"""S42: what the override reads twice is one tensor where it is used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import graphgrad as gg

from .overrides import Made, Override
from .spelled import Spelling
from .transforms import (
    Body,
    Journey,
    Pairs,
    Transform,
    X,
    known,
    marked,
    pairs,
    plainly,
    second,
    world,
)


def by_one(row: Override, h: Any, k: Any, spelling: Spelling) -> Made:
    """What it means that h stands for k, too: two tensors that are equal."""
    return row.spelled(h, gg.identity(h), spelling)


def library_of_two(row: Override, h: Any, k: Any) -> Made:
    """A library of the override, imported with h for both of its inputs."""
    with gg.Graph() as library:
        a, b = gg.placeholder((3,)), gg.placeholder((3,))
        made = marked(row, a, b)
    there = gg.import_graph(library, {a: h, b: h})
    return replace(made, ys=[there[y] for y in made.ys], extra=[there[t] for t in made.extra])


def batch_of_two(row: Override, h: Any, k: Any) -> Made:
    """A batch of one example, which shares h as both of its inputs."""
    found: list[Made] = []

    def one(_: Any, a: Any, b: Any) -> Any:
        found[:] = [marked(row, a, b)]
        return found[0].ys

    ys = gg.vmap(one, in_axes=(0, None, None))(gg.constant([1.0]), h, h)
    return replace(found[0], ys=[y[0] for y in ys])


def one_for_two(go: Journey, body: Body = library_of_two) -> Transform:
    """One tensor in two slots, carried away and differentiated there."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row, body)
        w = go(g, w)
        with w.x.graph:
            found = plainly(second(w), {w.x: X})
        return pairs(found, known(row, second, spell=by_one))

    return run
