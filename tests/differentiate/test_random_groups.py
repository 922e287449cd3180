"""Random programs: a group that calls name gives what the same group gives where it is marked.

Groups lie around runs of steps, nested at random, and have rules of many kinds. The same program is
differentiated to order 3 with the groups marked, named in every call, and some of each; where fewer
and fewer are named from order to order; and in a copy that was made between the orders.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.sources import identity, placeholder
from graphgrad.regions.select import Selection, select

from .helpers import scaled, values
from .test_random_programs import (
    INPUTS,
    OPS,
    by_a_region,
    by_default,
    by_entries,
    by_gradients,
    by_halves,
    by_linearity,
    by_mapping,
)

POINT = (0.3, -0.6, 0.9)
ERRORS = (gg.GradientError, gg.RegionError)
EXACT = (
    by_default,
    by_entries,
    by_mapping,
    by_gradients,
    by_linearity,
    by_halves,
    by_a_region,
)


def reading(site: Any, *dys: Any) -> Any:
    """A rule that reads outputs as outer values and the inside as residuals."""
    dy = next(dy for dy in dys if dy is not None)
    inside = site.nodes[0].outputs[0]
    return [
        gg.sum(dy) * site.outputs[0] * 0.5 + 0.1 * inside + 0.3 * dx for dx in site.default(*dys)
    ]


def nonlinear(site: Any, *dys: Any) -> Any:
    return [dx if gg.is_zero(dx) else 0.5 * dx * dx for dx in site.default(*dys)]


RULES = (*EXACT, *EXACT, scaled(2.0), reading, nonlinear)


@dataclass
class Program:
    """Steps, runs of them that are groups (outer ones first), a rule for each, and what is asked.

    steps    (op, the earlier values it reads)
    runs     (first step, end)
    outputs  values by place
    """

    steps: list[tuple[str, tuple[int, ...]]]
    runs: list[tuple[int, int]]
    rules: list[Callable[..., Any]]
    outputs: list[int]


def random_program(rng: np.random.Generator, length: int = 14) -> Program:
    steps = []
    for count in range(INPUTS, INPUTS + length):
        op = str(rng.choice(list(OPS)))
        near = max(0, count - 4) if rng.random() < 0.7 else 0
        steps.append((op, tuple(int(i) for i in rng.integers(near, count, size=OPS[op][0]))))
    runs: list[tuple[int, int]] = []

    def nested(a: int, b: int, x: int, y: int) -> bool:
        return b <= x or y <= a or (x <= a and b <= y) or (a <= x and y <= b)

    def divide(first: int, end: int, depth: int) -> None:
        for _ in range(int(rng.integers(1, 3)) if end - first > 1 and depth < 4 else 0):
            a = int(rng.integers(first, end - 1))
            b = int(rng.integers(a + 1, min(end, a + 7) + 1))
            if (a, b) not in runs and all(nested(a, b, x, y) for x, y in runs):
                runs.append((a, b))
                divide(a, b, depth + 1)

    divide(0, length, 0)
    runs.sort(key=lambda run: (run[0], -run[1]))
    rules = [RULES[int(rng.integers(len(RULES)))] for _ in runs]
    last = INPUTS + length - 1
    return Program(steps, runs, rules, sorted({last, int(rng.integers(INPUTS, last + 1))}))


class World:
    """A program that was built, and is differentiated again and again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.graph = gg.Graph()
        with self.graph:
            self.xs = [placeholder(()) for _ in range(INPUTS)]
            known, spans = list(self.xs), []
            for op, reads in program.steps:
                start = len(self.graph)
                known.append(OPS[op][1](*(known[i] for i in reads)))
                spans.append((start, len(self.graph)))
            self.results = [identity(known[i]) for i in program.outputs]
        self.start()
        self.nodes = [range(spans[a][0], spans[b - 1][1]) for a, b in program.runs]

    def start(self) -> None:
        """Ask for the derivatives of the results, from the first on."""
        self.ys = self.results
        self.found = list(self.results)
        self.rng = np.random.default_rng(7)

    def selection(self, group: int) -> Selection:
        nodes = [self.graph.nodes[i] for i in self.nodes[group]]
        return select.nodes([n for n in nodes if n.inputs])

    def mark(self, groups: Sequence[int]) -> dict[int, gg.ir.node.Region]:
        marked = {}
        for i in groups:
            rule = self.program.rules[i]
            (marked[i],) = self.graph.mark(self.selection(i), rule, allow_inside=True)
        return marked

    def named(self, groups: Sequence[int]) -> dict[Any, Any] | None:
        return {self.selection(i): self.program.rules[i] for i in groups} or None

    def differentiate(self, overrides: Any) -> None:
        weights = [np.float64(w) for w in self.rng.normal(size=len(self.ys))]
        with self.graph:
            self.ys = gg.gradients(
                self.ys, self.xs, weights, unconnected="zero", overrides=overrides
            )
        self.found += self.ys

    def move(self) -> None:
        """Go on in a copy of the graph."""
        new = self.graph.copy()
        for name in ("xs", "ys", "found"):
            moved = [new.nodes[t.node.index].outputs[t.index] for t in getattr(self, name)]
            setattr(self, name, moved)
        self.graph = new

    def values(self) -> list[float]:
        with self.graph:
            found: list[float] = values(self.found, dict(zip(self.xs, POINT, strict=True)))
        return found


def answer(work: Callable[[], World]) -> Any:
    """The values, or the type of the error."""
    try:
        return work().values()
    except ERRORS as error:
        return type(error)


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, type) or isinstance(expected, type):
        return found is expected
    return bool(np.allclose(found, expected, rtol=1e-10, atol=1e-12))


def check_one_kind(seed: int) -> None:
    """All groups in all three orders: marked, named, and some of each; plain before and after."""
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    groups = [int(i) for i in rng.permutation(len(program.runs))]
    kept = sorted(groups[: len(groups) // 3])

    def differentiated(marked: Sequence[int], named: Sequence[int], times: int = 3) -> World:
        world = World(program)
        world.mark(marked)
        for _ in range(times):
            world.differentiate(world.named(named))
        return world

    expected = answer(lambda: differentiated(sorted(groups), []))
    assert same(answer(lambda: differentiated([], groups)), expected)
    rest = [i for i in groups if i not in kept]
    assert same(answer(lambda: differentiated(kept, rest)), expected)

    def again(overrides: bool) -> World:
        """Once more on a graph on which the groups were named."""
        world = World(program)
        with contextlib.suppress(*ERRORS):
            for _ in range(3):
                world.differentiate(world.named(groups))
        world.start()
        for _ in range(3):
            world.differentiate(world.named(groups) if overrides else None)
        return world

    assert same(answer(lambda: again(False)), answer(lambda: differentiated([], [])))
    assert same(answer(lambda: again(True)), expected)


def check_fewer(seed: int) -> None:
    """From order to order some of the groups are named no more; the copy agrees."""
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    groups = list(range(len(program.runs)))
    orders = []
    for _ in range(3):
        orders.append(groups)
        groups = [i for i in groups if rng.random() < 0.6]

    def marked() -> World:
        world = World(program)
        regions = world.mark(orders[0])
        for named in orders:
            world.differentiate({r: None for i, r in regions.items() if i not in named})
        return world

    def named(moving: bool) -> World:
        world = World(program)
        for k, groups in enumerate(orders):
            if moving and k:
                world.move()
            world.differentiate(world.named(groups))
        return world

    expected = answer(marked)
    assert same(answer(lambda: named(False)), expected)
    assert same(answer(lambda: named(True)), expected)


def run(check: Callable[[int], None], first: int, last: int) -> None:
    for seed in range(first, last):
        try:
            check(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_S05_named_groups_agree_with_marked_ones():
    run(check_one_kind, 0, 5)


def test_S05_groups_that_are_named_no_more_agree_with_marks_that_are_off():
    run(check_fewer, 1_000, 1_006)


@pytest.mark.slow
def test_S05_named_groups_agree_on_more_programs():
    run(check_one_kind, 5, 12)
    run(check_fewer, 1_006, 1_015)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 250))
def test_S05_named_groups_agree_with_marked_ones_on_thousands_of_programs(first):
    run(check_one_kind, first, first + 250)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 22_000, 250))
def test_S05_groups_that_are_named_no_more_agree_on_thousands_of_programs(first):
    run(check_fewer, first, first + 250)
