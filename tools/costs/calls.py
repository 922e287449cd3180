"""What a call costs over NumPy's `x + 1`: one array, a hundred, and a hundred variables.

    python tools/costs/calls.py [--rounds 15]

CPU time of one process, taking turns with `x + 1` of NumPy: medians of microseconds, and of the
ratios. Arrays are of four float32, so that next to nothing is computed. The last column is what a
call takes over its kernels: on NumPy the same calls of NumPy's, written by hand with arrays to
write into, on LLVM the compiled loop.
"""

import argparse
import statistics
import time

import numpy as np

import graphgrad as gg

X = np.ones(4, "float32")
MANY = 100
RATE = 1e-9  # a variable stays what it is: subnormal numbers would take longer


def calls(backend):
    """(name, how often a round, function, its kernels or None) of each."""
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
        updates = {v: v - RATE * g for v, g in zip(vs, grads, strict=True)}
        step = gg.compile([], loss, updates=updates, backend=backend)
    arrays = [X] * MANY
    added = sum_by_hand() if backend == "numpy" else loop_of(total)
    stepped = step_by_hand() if backend == "numpy" else loop_of(step)
    yield "one array", 2000, lambda: one(X), None
    yield "100 arrays, 2 of them read", 200, lambda: two(*arrays), None
    yield "100 arrays, added", 200, lambda: total(*arrays), added
    yield "100 variables, added", 200, look, None
    yield "a step of 100 variables", 100, step, stepped


def sum_by_hand():
    """The sum of so many arrays, by NumPy."""
    lines = ["add(x, x, y)", *["add(y, x, y)"] * (MANY - 2)]
    return written(lines, x=X, y=np.empty(4, "float32"), add=np.add)


def step_by_hand():
    """The step, by NumPy."""
    names = {"square": np.square, "total": np.add.reduce, "add": np.add, "axes": (0,)}
    names |= {"multiply": np.multiply, "subtract": np.subtract, "dtype": X.dtype}
    names |= {"rate": np.array(RATE, "float32"), "loss": np.zeros((), "float32")}
    names |= {"square_of": np.empty(4, "float32"), "sum_of": np.empty((), "float32")}
    lines = []
    for i in range(MANY):
        names |= {f"v{i}": X.copy(), f"new{i}": np.empty(4, "float32")}
        lines += [f"square(v{i}, square_of)", "total(square_of, axes, dtype, sum_of)"]
        lines += ["add(loss, sum_of, loss)", f"add(v{i}, v{i}, new{i})"]
        lines += [f"multiply(rate, new{i}, new{i})", f"subtract(v{i}, new{i}, new{i})"]
    return written(["subtract(loss, loss, loss)", *lines], **names)


def written(lines, **names):
    """A function of these lines."""
    exec("\n ".join(["def run():", *lines]), names)
    return names["run"]


def loop_of(f):
    """The one compiled loop that a function runs, on arrays of its own."""
    (step,) = f.plans[0].steps
    arrays = [X.copy() for _ in step.inputs]
    arrays += [np.empty(t.shape, t.dtype) for t in step.node.outputs]
    return lambda: step.kernel(*arrays)


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
    print(f"{'':35} {'us':>8} {'ratio':>9} {'over its kernels':>17}")
    for backend in ("numpy", "llvm"):
        for name, repeat, function, kernels in calls(backend):
            turns = [function, lambda: X + 1, *[kernels] * (kernels is not None)]
            timed(function, 50)
            rows = [
                [timed(f, n) for f, n in zip(turns, (repeat, 2000, repeat), strict=False)]
                for _ in range(rounds)
            ]
            us = statistics.median(row[0] for row in rows)
            ratio = statistics.median(row[0] / row[1] for row in rows)
            over = [(row[0] - row[2]) / row[1] for row in rows if kernels is not None]
            rest = f"{statistics.median(over):17.1f}" if over else ""
            print(f"{backend:6} {name:28} {us:8.2f} {ratio:9.1f} {rest}", flush=True)


if __name__ == "__main__":
    main()
