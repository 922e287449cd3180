"""Training steps beside the limits of the machine: the share of products, and what else there is.

    python tools/costs/limits.py [--rounds 15] [--only transformer] [--steps]

A step on LLVM, one thread on one core, float32. Its plan is timed step by step, by CPU time, in
turn with NumPy's product of matrices of the same shapes, turned in the same way. "Of NumPy's" is
NumPy's time over that of the products in the step, where operands are not in a cache: above 100 %,
graphgrad's are faster. Convolutions have no such product; they stand beside NumPy's of 1024 x 1024.
Then come the steps that are no products, the longest first. --steps prints every step.
"""

import argparse
import os
import statistics
import time

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402
from training_steps import PROGRAMS, floats, step  # noqa: E402

from graphgrad.execute.run import timed  # noqa: E402

CONVOLUTIONS = "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"
EDGE = 1024  # of the product beside convolutions


class Program:
    """A step of gradient descent and the products in it, of which NumPy's are timed."""

    def __init__(self, make):
        self.call, self.arrays = step(make, threads=1)
        steps = self.call.profile(*self.arrays, repeat=1).steps
        self.products = [numpys(s.node) for s in steps if s.node.type == "MatMul"]
        edge = np.ones((EDGE, EDGE), "float32")
        self.largest = lambda: np.matmul(edge, edge)

    def turn(self):
        """The steps with their CPU seconds, and those of NumPy's products."""
        steps = self.call.profile(*self.arrays, repeat=3).steps
        for product in self.products:
            product()
        return steps, [seconds(product) for product in self.products], seconds(self.largest)


def numpys(node):
    """NumPy's product of matrices as a node takes them."""
    a, b = (floats(*t.shape) for t in node.inputs)
    a, b = (a.mT if node.op.transpose_a else a), (b.mT if node.op.transpose_b else b)
    out = np.empty(node.outputs[0].shape, "float32")
    return lambda: np.matmul(a, b, out=out)


def seconds(call):
    """CPU seconds of a call."""
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1e9


def title(step):
    """The types of its ops, each once."""
    return ", ".join(dict.fromkeys(node.type for node in step.nodes))


def row(name, program, rounds, show):
    """Measure a program: a row of the table."""
    turns = [program.turn() for _ in range(rounds)]
    steps = [
        step[0]._replace(seconds=statistics.median(s.seconds for s in step))
        for step in zip(*(turn[0] for turn in turns), strict=True)
    ]
    numpy = sum(statistics.median(times) for times in zip(*(t[1] for t in turns), strict=True))
    peak = 2 * EDGE**3 / statistics.median(turn[2] for turn in turns)
    matrices = [s for s in steps if s.node.type == "MatMul"]
    windows = [s for s in steps if s.nodes[0].type in CONVOLUTIONS]
    others = [s for s in steps if s.node.type != "MatMul" and s.nodes[0].type not in CONVOLUTIONS]
    whole, ours, conv = (sum(s.seconds for s in some) for some in (steps, matrices, windows))
    if show:
        for s in steps:
            shapes = " ".join(str(t.shape) for t in s.node.inputs)
            print(f"{s.seconds * 1e6:9.1f} us  {title(s)}: {shapes} -> {s.node.outputs[0].shape}")
    rest = sorted(others, key=lambda s: -s.seconds)[:3]
    speed = sum(map(sum, (s.flops for s in windows))) / conv / peak if conv else 0
    return " | ".join(
        [
            f"| {name}",
            f"{whole * 1e3:.2f}",
            f"{100 * (ours + conv) / whole:.0f} %",
            f"{sum(map(sum, (s.flops for s in matrices))) / ours / 1e9:.0f}",
            f"{100 * numpy / ours:.0f} %",
            f"{100 * speed:.0f} %" if conv else "",
            "; ".join(f"{100 * s.seconds / whole:.1f} % {title(s)}" for s in rest) + " |",
        ]
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="a part of the name of a program")
    parser.add_argument("--steps", action="store_true", help="print every step")
    options = parser.parse_args()
    timed.perf_counter_ns = time.thread_time_ns  # a busy machine's time is not a step's
    head = "of NumPy's | convolutions, of NumPy's 1024 | most of the rest"
    print(f"| program | CPU ms | products, of the time | GFLOP/s | {head} |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, make in PROGRAMS.items():
        if options.only in name:
            print(row(name, Program(make), options.rounds, options.steps), flush=True)


if __name__ == "__main__":
    main()
