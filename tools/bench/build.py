"""Time and memory to build and differentiate chains of small ops, per forward node.

    python tools/bench/build.py [--nodes 10000 100000] [--rounds 5] [--million] [--no-peers]

CPU time of one process, median over rounds, the cyclic collector as users have it. JAX and
autograd stand beside where they are installed. --million runs a chain of 1,000,000 nodes in a
process of its own and prints its peak memory.
"""

import argparse
import gc
import importlib.util
import resource
import statistics
import subprocess
import sys
import time

import graphgrad as gg


def chain(xp, h, w, b, n):
    """h * w, h + b, sin, tanh, again and again."""
    for k in range(n):
        r = k & 3
        if r == 0:
            h = h * w
        elif r == 1:
            h = h + b
        elif r == 2:
            h = xp.sin(h)
        else:
            h = xp.tanh(h)
    return h


def graphgrad_chain(n):
    """Seconds to build, and to differentiate."""
    with gg.Graph():
        x, w, b = (gg.placeholder(()) for _ in range(3))
        start = time.process_time()
        h = chain(gg, x, w, b, n)
        built = time.process_time()
        gg.gradients(h, [x, w])
        return built - start, time.process_time() - built


def jax_chain(n):
    """Seconds to trace, and to trace the gradient (less the forward trace)."""
    jax = importlib.import_module("jax")

    def f(x, w):
        return chain(jax.numpy, x, w, 0.1, n)

    start = time.process_time()
    jax.make_jaxpr(f)(0.3, 1.01)
    built = time.process_time()
    jax.make_jaxpr(jax.grad(f, (0, 1)))(0.3, 1.01)
    done = time.process_time()
    return built - start, max(0.0, (done - built) - (built - start))


def autograd_chain(n):
    """Seconds to run eagerly, and to run the tape forward and back (less the eager run)."""
    autograd = importlib.import_module("autograd")
    numpy = importlib.import_module("autograd.numpy")

    def f(x, w):
        return chain(numpy, x, w, 0.1, n)

    start = time.process_time()
    f(0.3, 1.01)
    built = time.process_time()
    autograd.grad(f, (0, 1))(0.3, 1.01)
    done = time.process_time()
    return built - start, max(0.0, (done - built) - (built - start))


PEERS = {"graphgrad": graphgrad_chain, "jax": jax_chain, "autograd": autograd_chain}


def report(name, n, rounds):
    """One line: microseconds per forward node. No round pays for the garbage of the last."""
    runs = []
    for _ in range(rounds):
        gc.collect()
        runs.append(PEERS[name](n))
    build, grad = (statistics.median(part) / n * 1e6 for part in zip(*runs, strict=True))
    print(
        f"{name:10} {n:>9,} nodes  build {build:7.2f}  differentiate {grad:7.2f}  together "
        f"{build + grad:7.2f} us a forward node (median of {rounds})",
        flush=True,
    )


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    for n in args.nodes:
        report("graphgrad", n, args.rounds)
    if not args.no_peers:
        for name in ("jax", "autograd"):
            if importlib.util.find_spec(name):
                report(name, 10_000, 1 if name == "jax" else args.rounds)
            else:
                print(f"{name:10} is not installed")
    if args.million:
        command = [sys.executable, __file__, "--nodes", "1000000", "--rounds", "1", "--no-peers"]
        subprocess.run(command, check=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        print(f"peak memory of that process: {peak:.2f} GB")


if __name__ == "__main__":
    main()
