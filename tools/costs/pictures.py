"""What pictures cost: seconds to write, bytes, and seconds of Graphviz, for graphs of many sizes.

    python tools/costs/pictures.py [--sizes 100 500 2000 20000 100000] [--rounds 3] [--timeout 60]

A network of dense layers in name scopes, every other one under a region, with its gradients. CPU
time of one process, median over rounds; that of Graphviz is of its own process. "whole" has every
node, "as shown" is what to_dot gives without options: collapsed above 2,000 nodes.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import time

import numpy as np

import graphgrad as gg


def straight_through(site, dy):
    """dy where the input is within 1 of zero."""
    (x,) = site.inputs
    return gg.where(abs(x) <= 1.0, dy, 0.0)


def network(nodes):
    """Tensors of a network whose graph has about so many nodes."""
    with gg.Graph() as graph:
        x = h = gg.placeholder(("batch", 8), name="x")
        weights = []
        while len(graph) < nodes * 0.46:
            number = len(weights)
            with gg.name_scope(f"layer{number}"):
                w = gg.variable(np.ones((8, 8)), name="w")
                weights.append(w)
                h = h @ w
                if number % 2:
                    with gg.override_gradient(straight_through):
                        h = gg.sign(h)
                else:
                    h = gg.tanh(h)
        loss = gg.mean(h * h)
        return [loss, *gg.gradients(loss, [x, *weights])]


def clocked(call, rounds):
    """Median CPU seconds of a call, and what it returned."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), found


def laid_out(text, timeout):
    """CPU seconds of Graphviz, in words."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        subprocess.run(
            ["dot", "-Tsvg"], input=text.encode(), capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"> {timeout:g}"
    return f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before:.2f}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 500, 2000, 20_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0)
    options = parser.parse_args()
    print("| nodes | picture | to_dot, s | KB | Graphviz, s | graph_text, s | us a node |")
    print("|---|---|---|---|---|---|---|")
    for size in options.sizes:
        tensors = network(size)
        nodes = len(tensors[0].graph)
        listed, _ = clocked(lambda t=tensors: gg.graph_text(t), options.rounds)
        for name, chosen in (("whole", {"collapse": "none"}), ("as shown", {})):
            seconds, text = clocked(lambda t=tensors, o=chosen: gg.to_dot(t, **o), options.rounds)
            drawn = "-"
            if shutil.which("dot") and len(text) < 3_000_000:
                drawn = laid_out(text, options.timeout)
            print(
                f"| {nodes:,} | {name} | {seconds:.3f} | {len(text) / 1000:,.0f} | {drawn} "
                f"| {listed:.3f} | {seconds / nodes * 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
