"""What files cost: CPU seconds to save and to load, and bytes, for graphs and weights.

    python tools/costs/files.py [--nodes 10000 100000] [--megabytes 128] [--rounds 3]

A chain with its gradient, regions of one rule, and weights, which np.savez writes beside it.
Medians over rounds, in one process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg


def chain(nodes: int) -> gg.Graph:
    """So many nodes, half of them of the gradient."""
    with gg.Graph() as graph:
        x = y = gg.placeholder((4,), name="x")
        while len(graph) < nodes // 2:
            y = gg.sin(y)
        gg.gradients(gg.sum(y), x)
    return graph


def regions(count: int) -> gg.Graph:
    """So many regions of one rule."""
    with gg.Graph() as graph:
        y = gg.placeholder((4,), name="x")
        for _ in range(count):
            with gg.override_gradient(lambda site, dy: 0.5 * dy):
                y = gg.sin(y)
    return graph


def weights(megabytes: int) -> gg.Graph:
    """Variables of so many MB in all."""
    rng = np.random.default_rng(0)
    with gg.Graph() as graph:
        for i in range(8):
            gg.variable(rng.normal(size=(megabytes, 1 << 14)), name=f"w{i}")
    return graph


def median(act: Callable[[], Any], rounds: int) -> float:
    """CPU seconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return statistics.median(times)


def row(what: str, graph: gg.Graph, path: Path, rounds: int) -> None:
    """Save, load, and say how long it took."""
    saved = median(lambda: gg.save(path, graph), rounds)
    loaded = median(lambda: gg.load(path), rounds)
    print(f"{what:24} {saved:8.3f} {loaded:8.3f} {path.stat().st_size:12,}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.gg"
        print(f"{'':24} {'save s':>8} {'load s':>8} {'bytes':>12}")
        for nodes in asked.nodes:
            row(f"{nodes:,} nodes", chain(nodes), path, asked.rounds)
        row("2,500 regions", regions(2500), path, asked.rounds)
        graph = weights(asked.megabytes)
        row(f"weights, {asked.megabytes} MB", graph, path, asked.rounds)
        arrays = graph.state.as_dict()
        wrote = median(lambda: np.savez(Path(folder) / "w.npz", **arrays), asked.rounds)
        print(f"{'by np.savez':24} {wrote:8.3f}")


if __name__ == "__main__":
    main()
