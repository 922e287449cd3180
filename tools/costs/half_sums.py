"""Sums of float16, which graphgrad accumulates in float32, beside NumPy's and those of float32.

    python tools/costs/half_sums.py [--rounds 15] [--backends numpy llvm]

What takes turns, round by round: a compiled function of float16, the same one of float32, and
NumPy's own function of float16, which accumulates in float16. Medians of CPU time in milliseconds.
"""

import argparse
import statistics
import time

import numpy as np

import graphgrad as gg

ROWS, COLUMNS = 4000, 500
PLACES = np.random.default_rng(1).integers(0, ROWS, 2 * ROWS)


def embedding(xp, table):
    """The gradient of rows that are looked up: rows added at places."""
    if xp is np:
        made = np.zeros_like(table)
        np.add.at(made, PLACES, np.ones((len(PLACES), COLUMNS), table.dtype))
        return made
    return gg.gradients(gg.sum(table[PLACES]), table)


CASES = {
    "sum over axis 0": lambda xp, x: xp.sum(x, axis=0),
    "sum over axis 1": lambda xp, x: xp.sum(x, axis=1),
    "mean over axis 0": lambda xp, x: xp.mean(x, axis=0),
    "cumsum over axis 0": lambda xp, x: xp.cumsum(x, axis=0),
    "matmul with 64 columns": lambda xp, x: xp.matmul(x, x[:COLUMNS, :64]),
    "gradient of an embedding": embedding,
}


def compiled(case, a, backend):
    """A call without arguments of a case on an array."""
    with gg.Graph():
        x = gg.placeholder(a.shape, a.dtype)
        f = gg.compile([x], case(gg, x), backend=backend, num_threads=1)
    return lambda: f(a)


def milliseconds(calls, rounds):
    """The median CPU time of each call, which take turns."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    """Measure and print every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--backends", nargs="+", default=["numpy", "llvm"])
    given = parser.parse_args()
    half = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float16)
    single = half.astype(np.float32)
    for name, case in CASES.items():
        calls = {"NumPy float16": lambda case=case: case(np, half)}
        for b in given.backends:
            calls[f"{b} float16"] = compiled(case, half, b)
            calls[f"{b} float32"] = compiled(case, single, b)
        found = milliseconds(calls, given.rounds)
        print(f"{name}: " + ", ".join(f"{which} {ms:.1f}" for which, ms in found.items()))


if __name__ == "__main__":
    main()
