"""Peak memory of a run: what the plan says before, and what the process took.

    python tools/costs/memory.py [--backend numpy] [--threads 1]

Every workload runs in a process of its own. Measured is how far the resident set grew from just
before the first run to its highest.
"""

import argparse
import multiprocessing
import resource

import numpy as np

import graphgrad as gg


def step(layers=6, batch=1024, width=1024):
    """A training step of a network: loss and new weights."""
    x, y = gg.placeholder((batch, width)), gg.placeholder((batch, width))
    ws = [gg.placeholder((width, width)) for _ in range(layers)]
    h = x
    for w in ws:
        h = gg.tanh(h @ w)
    loss = gg.mean((h - y) ** 2)
    dws = gg.gradients(loss, ws)
    return [x, y, *ws], [loss, *(w - 0.1 * dw for w, dw in zip(ws, dws, strict=True))]


def waves(n=10_000_000):
    """Element by element, in place where it can be."""
    x = gg.placeholder((n,))
    return [x], [gg.sin(x) * gg.cos(x) + gg.exp(-x) * x]


def chain(layers=200, batch=512, width=256, **options):
    """The gradient of a chain, with what `checkpoint_chain` keeps."""
    x = gg.placeholder((batch, width))
    ws = [gg.placeholder((width, width)) for _ in range(layers)]
    fns = [lambda h, w=w: gg.tanh(h @ w) for w in ws]
    y = gg.rules.checkpoint_chain(fns, x, **options)
    return [x, *ws], [gg.gradients(gg.sum(y), x)]


WORKLOADS = {
    "training step": (step, {}),
    "element by element": (waves, {}),
    "chain, all kept": (chain, {"segments": 1}),
    "chain, sqrt(n) segments": (chain, {}),
    "chain, 5 snapshots": (chain, {"snapshots": 5}),
}


def resident():
    """Bytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(name, backend, threads, results):
    """Put what was promised and what was taken into the queue."""
    build, options = WORKLOADS[name]
    with gg.Graph():
        inputs, outputs = build(**options)
        f = gg.compile(inputs, outputs, backend=backend, num_threads=threads)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=t.shape) * 0.05 for t in inputs]
    np.matmul(np.ones((600, 600)), np.ones((600, 600)))  # the buffers of the BLAS
    before = resident()
    kept = f(*arrays)
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.put((f.peak_bytes, highest - before, len(kept)))


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for name in WORKLOADS:
        results = context.Queue()
        process = context.Process(target=measure, args=(name, args.backend, args.threads, results))
        process.start()
        promised, taken, _ = results.get(timeout=600)
        process.join()
        print(
            f"{name:26} plan {promised / 1e6:8.1f} MB   taken {taken / 1e6:8.1f} MB   "
            f"{taken / promised - 1:+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
