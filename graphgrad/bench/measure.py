"""Times of the workloads: what is built by graph, what is run by backend."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg

from .workloads import (
    Sizes,
    Workload,
    building,
    chain,
    deep_network,
    elementwise,
    marked_chain,
    small_call,
    training_step,
)

_LEAST = 3  # calls
_BUILDS = 3


class Row(NamedTuple):
    """One line of a table: a number for each of its columns."""

    what: str
    numbers: list[float]


class Table(NamedTuple):
    """What was measured, in one unit."""

    title: str
    columns: list[str]
    rows: list[Row]


class Disagreement(NamedTuple):
    """Two backends that compute different numbers."""

    what: str
    backend: str
    other: str


def built(sizes: Sizes) -> Table:
    """CPU microseconds to build and to differentiate a node, and a region with one node."""
    kinds: list[tuple[str, int, Callable[..., gg.Tensor]]] = [
        ("a node", sizes.nodes, chain),
        ("a region of one node", sizes.regions, lambda x, w, b, n: marked_chain(x * w, n, _double)),
    ]
    rows = []
    for what, count, build in kinds:
        runs = []
        for _ in range(_BUILDS):
            gc.collect()
            runs.append(building(build, count))
        spent = [statistics.median(part) / count * 1e6 for part in zip(*runs, strict=True)]
        rows.append(Row(what, spent))
    return Table("CPU microseconds to", ["build", "differentiate"], rows)


def _double(site: Any, dy: gg.Tensor) -> gg.Tensor:
    return dy * 2.0


def called(sizes: Sizes, backends: Sequence[str]) -> tuple[Table, list[Disagreement]]:
    """Milliseconds of one call in each backend, and where backends disagree."""
    workloads: dict[str, Callable[[Sizes], Workload]] = {
        "x + 1": small_call,
        "element-wise chain": elementwise,
        "training step": training_step,
        "deep network": lambda sizes: deep_network(sizes, marked=False),
        "deep network, overridden": lambda sizes: deep_network(sizes, marked=True),
    }
    rows, wrong = [], []
    for what, workload in workloads.items():
        calls = {name: _call(workload, sizes, name) for name in backends}
        results = {name: call() for name, call in calls.items()}
        wrong += _disagreements(what, results)
        rows.append(Row(what, _medians(list(calls.values()), sizes.seconds)))
    return Table("milliseconds of one call", list(backends), rows), wrong


def _call(workload: Callable[[Sizes], Workload], sizes: Sizes, backend: str) -> Callable[[], Any]:
    with gg.Graph():
        inputs, outputs, updates, arrays = workload(sizes)
        f = gg.compile(inputs, outputs, updates=updates, backend=backend)
    return lambda: f(*arrays)


def _disagreements(what: str, results: dict[str, list[Any]]) -> list[Disagreement]:
    (first, expected), *others = results.items()
    return [
        Disagreement(what, name, first)
        for name, arrays in others
        if not all(
            np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(arrays, expected, strict=True)
        )
    ]


def _medians(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Median milliseconds of each call. The calls take turns, so that a busy moment hits all."""
    spent: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds * len(calls)
    while len(spent[-1]) < _LEAST or time.perf_counter() < end:
        for call, times in zip(calls, spent, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) * 1e3 for times in spent]
