"""Memory and time of a loop's gradient within limits: `compile(memory=)`.

    python tools/costs/loop_memory.py [--runs 10000] [--rounds 5]

A recurrent layer, 16 x 64 float64, and the gradients of its weights. For each limit: the peak that
was known before the run, that of the process as it was measured, and milliseconds of CPU time.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np

import graphgrad as gg


def layer(runs: int) -> tuple[list[gg.Tensor], list[Any]]:
    """Inputs, and the loss with its gradients."""
    x, h = gg.placeholder((runs, 16, 64)), gg.placeholder((16, 64))
    w, u = gg.placeholder((64, 64)), gg.placeholder((64, 64))
    last, _ = gg.scan(lambda h, row: (gg.tanh(row @ w + h @ u), None), h, x)
    y = gg.sum(last)
    return [x, h, w, u], [y, *gg.gradients(y, [w, u, h])]


def measured(run: Any, arrays: list[Any], rounds: int) -> tuple[int, float]:
    """Bytes at the worst moment of a run, and the least CPU time of some."""
    run(*arrays)
    run.release()
    tracemalloc.start()
    run(*arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run(*arrays)
        times.append(time.process_time() - start)
    return peak, min(times)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    inputs, outputs = layer(asked.runs)
    rng = np.random.default_rng(0)
    arrays = [0.1 * rng.normal(size=t.shape) for t in inputs]
    state = asked.runs * 16 * 64 * 8
    print(f"{'limit MB':>10} {'known MB':>10} {'measured':>10} {'CPU ms':>10}")
    for limit in (None, 1.5 * state, 0.2 * state, 0.025 * state, 0.02 * state):
        run = gg.compile(inputs, outputs, memory=limit, num_threads=1)
        known = run.peak_bytes or 0
        peak, seconds = measured(run, arrays, asked.rounds)
        shown = "none" if limit is None else f"{limit / 1e6:.2f}"
        row = (known / 1e6, peak / 1e6, seconds * 1e3)
        print(f"{shown:>10} {row[0]:>10.2f} {row[1]:>10.2f} {row[2]:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
