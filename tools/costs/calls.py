"""What a call costs over NumPy's `x + 1`: one array, a hundred, and a hundred variables.

    python tools/costs/calls.py [--rounds 15]

CPU time of one process, taking turns with `x + 1` of NumPy: medians of microseconds, and of the
ratios. Arrays are of four float32, so that next to nothing is computed.
"""

import argparse
import statistics
import time

import numpy as np

import graphgrad as gg

X = np.ones(4, "float32")
MANY = 100


def calls(backend):
    """(name, how often a round, function) of each."""
    with gg.Graph():
        x = gg.placeholder((4,), "float32")
        one = gg.compile(x, x + 1, backend=backend)
    with gg.Graph():
        xs = [gg.placeholder((4,), "float32") for _ in range(MANY)]
        total = gg.compile(xs, sum(xs), backend=backend)
        two = gg.compile(xs, xs[0] + xs[1], backend=backend)
    with gg.Graph():
        vs = [gg.variable(X) for _ in range(MANY)]
        look = gg.compile([], sum(vs), backend=backend)
        loss = sum(gg.sum(v * v) for v in vs)
        grads = gg.gradients(loss, vs)
        updates = {v: v - 0.1 * g for v, g in zip(vs, grads, strict=True)}
        step = gg.compile([], loss, updates=updates, backend=backend)
    arrays = [X] * MANY
    yield "one array", 2000, lambda: one(X)
    yield "100 arrays, 2 of them read", 200, lambda: two(*arrays)
    yield "100 arrays, added", 200, lambda: total(*arrays)
    yield "100 variables, added", 200, look
    yield "a step of 100 variables", 100, step


def timed(function, repeat):
    """Microseconds of a call."""
    start = time.process_time()
    for _ in range(repeat):
        function()
    return (time.process_time() - start) / repeat * 1e6


def main():
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for backend in ("numpy", "llvm"):
        for name, repeat, function in calls(backend):
            timed(function, 50)
            pairs = [(timed(function, repeat), timed(lambda: X + 1, 2000)) for _ in range(rounds)]
            us = statistics.median(a for a, _ in pairs)
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"{backend:6} {name:28} {us:8.2f} us  {ratio:6.1f}", flush=True)


if __name__ == "__main__":
    main()
