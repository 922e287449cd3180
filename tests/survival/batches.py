"""Columns: what the examples of a batch share, and what they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphgrad as gg

from .overrides import Override
from .spelled import Spelling
from .transforms import (
    BESIDE,
    EXAMPLES,
    SEEDS,
    WEIGHTS,
    Pairs,
    X,
    asked,
    before,
    by_example,
    pairs,
    plainly,
    times_weights_too,
    world,
)

FACTORS = np.array([1.0, -0.4, 2.5])
Z = np.array([0.9, 0.2, -0.6])

Marked = Callable[[Any, Any], Any]
Ask = Callable[..., list[Any]]


def loss_of(h: Any, ys: Sequence[Any], factor: Any = 1.0) -> Any:
    """Quadratic in what the override gives, for one example."""
    terms = [gg.sum(seed * y * y) * factor for seed, y in zip(SEEDS, ys)]
    return sum(terms, gg.sum(BESIDE * h))


def slopes(ask: Ask, loss: Any, wrt: Sequence[Any]) -> list[Any]:
    """First order, and the second one of the sum of that."""
    dxs = ask([loss], wrt)
    weighted = [gg.sum(WEIGHTS * dx) if dx.ndim else 0.9 * dx for dx in dxs]
    return [*dxs, *ask([sum(weighted[1:], weighted[0])], wrt)]


def shared(row: Override) -> Pairs:
    """The override reads what the examples share; what arrives differs between them."""
    with gg.Graph():
        x, factors = gg.placeholder((3,), name="x"), gg.placeholder((3,))
        extra: list[Any] = []

        def one(factor: Any) -> Any:
            h, k = before(x)
            made = row.marked(h, k)
            extra[:] = made.extra
            return loss_of(h, made.ys, factor)

        def one_slope(factor: Any) -> Any:
            loss = one(factor)
            return asked([loss], [x, *extra])

        per_example = list(gg.vmap(one_slope)(factors))
        losses = gg.vmap(one)(factors)
        wrt = [x, *extra]
        found = plainly([*per_example, *slopes(asked, losses, wrt)], {x: X, factors: FACTORS})
    each = [spelled_out(row, X, None, factor) for factor in FACTORS]
    count = len(each[0]) // 2
    stacked = [np.stack(column) for column in zip(*(answers[:count] for answers in each))]
    return pairs(found, [*stacked, *(sum(column) for column in zip(*each))])


def spelled_out(row: Override, x: Any, z: Any, factor: float = 1.0) -> list[Any]:
    """The same of one example by meaning; k comes of z, where that is given."""
    with gg.Graph():
        spelling = Spelling()
        a, b = gg.placeholder((3,)), gg.placeholder((3,))
        h, k = before(a)
        if z is not None:
            k = np.cos(b)
        made = row.spelled(h, k, spelling)
        wrt = [a, *([b] if z is not None else []), *made.extra]
        answers = slopes(spelling.gradients, loss_of(h, made.ys, factor), wrt)
        return plainly(answers, {a: x, b: X if z is None else z})


def mixed(row: Override) -> Pairs:
    """One input of the override is shared, the other one differs: this way round and that."""
    found: list[Any] = []
    expected: list[Any] = []
    for axes in ((0, None), (None, 0)):
        with gg.Graph():
            x = gg.placeholder((2, 3) if axes[0] == 0 else (3,))
            z = gg.placeholder((2, 3) if axes[1] == 0 else (3,))
            extra: list[Any] = []

            def one(x: Any, z: Any, extra: list[Any] = extra) -> Any:
                h, _ = before(x)
                made = row.marked(h, np.cos(z))
                extra[:] = made.extra
                return loss_of(h, made.ys)

            losses = gg.vmap(one, in_axes=axes)(x, z)
            feeds = {x: EXAMPLES if axes[0] == 0 else X, z: EXAMPLES if axes[1] == 0 else Z}
            found += plainly(slopes(asked, losses, [x, z, *extra]), feeds)
        each = [spelled_out(row, *((x, Z) if axes[0] == 0 else (X, x))) for x in EXAMPLES]
        batched = axes.index(0), axes.index(0) + len(each[0]) // 2
        for place, column in enumerate(zip(*each)):
            expected.append(np.stack(column) if place in batched else sum(column))
    return pairs(found, expected)


def in_a_branch(row: Override) -> Pairs:
    """A batch in a branch of a choice."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")

        def then() -> Any:
            return gg.vmap(lambda x: world(row, x=x).loss)(xs)

        losses = gg.cond(gg.sum(xs) > -100.0, then, lambda: gg.sum(xs, axis=1))
        found = plainly([losses, *slopes(asked, losses, [xs])], {xs: EXAMPLES})
    return pairs(found, by_example(row, times_weights_too))
