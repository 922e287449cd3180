"""Time and memory to build and differentiate chains of small ops, per forward node.

    python tools/costs/build.py [--nodes 10000 100000] [--rounds 5] [--million] [--compile]

CPU time of one process, median over rounds, the cyclic collector as users have it. --million runs a
chain of 1,000,000 nodes in a process of its own and prints its peak memory. --compile compiles the
chain with its gradient for NumPy, too: the least over rounds. Other packages beside it:
tools/bench/peers.py, workload W1.
"""

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import time

import graphgrad as gg
from graphgrad.bench.workloads import building, chain


def report(n, rounds):
    """One line: microseconds per forward node. No round pays for the garbage of the last."""
    runs = []
    for _ in range(rounds):
        gc.collect()
        runs.append(building(chain, n))
    build, grad = (statistics.median(part) / n * 1e6 for part in zip(*runs, strict=True))
    print(
        f"{n:>9,} nodes  build {build:7.2f}  differentiate {grad:7.2f}  together "
        f"{build + grad:7.2f} us a forward node (median of {rounds})",
        flush=True,
    )


def report_compiling(n, rounds):
    """One line: microseconds per forward node to compile a chain with its gradient."""
    runs = []
    for _ in range(rounds):
        gc.collect()
        with gg.Graph():
            x, w, b = (gg.placeholder(()) for _ in range(3))
            h = chain(x, w, b, n)
            outputs = [h, *gg.gradients(h, [x, w])]
            start = time.process_time()
            gg.compile([x, w, b], outputs, backend="numpy")
            runs.append(time.process_time() - start)
    print(
        f"{n:>9,} nodes  compile {min(runs) / n * 1e6:7.2f} us a forward node (least of {rounds})",
        flush=True,
    )


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    for n in args.nodes:
        report(n, args.rounds)
        if args.compile:
            report_compiling(n, args.rounds)
    if args.million:
        command = [sys.executable, __file__, "--nodes", "1000000", "--rounds", "1"]
        command += ["--compile"] * args.compile
        subprocess.run(command, check=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        print(f"peak memory of that process: {peak:.2f} GB")


if __name__ == "__main__":
    main()
