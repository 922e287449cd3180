"""Sums of products of three batches of matrices, and their gradients: what one of them costs.

    python tools/costs/einsums.py [--rounds 9]

graphgrad on LLVM and on NumPy, np.einsum with `optimize`, two np.matmul, and jax.jit where JAX is
installed, in turns on one core. CPU time of a call in microseconds, medians; float32.
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

import graphgrad as gg  # noqa: E402

try:
    import jax
except ImportError:
    jax = None

EQUATION = "bij,bjk,bkl->bil"
SIZES = [(256, 8), (32, 16), (64, 32), (8, 64)]


def of_graphgrad(arrays, backend, gradients):
    """A call of the compiled program."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        y = gg.einsum(EQUATION, *xs)
        ys = [y, *gg.gradients(gg.sum(y * y), xs)] if gradients else y
        f = gg.compile(xs, ys, backend=backend, num_threads=1)
    return lambda: f(*arrays)


def of_jax(arrays, gradients):
    """A call of the jitted function, which waits for its results."""

    def value(*xs):
        return jax.numpy.einsum(EQUATION, *xs)

    def both(*xs):
        y, pull = jax.vjp(value, *xs)
        return y, pull(2 * y)

    f = jax.jit(both if gradients else value)
    return lambda: jax.block_until_ready(f(*arrays))


def calls(arrays, gradients):
    """Who computes it, and how."""
    found = {
        "LLVM": of_graphgrad(arrays, "llvm", gradients),
        "NumPy backend": of_graphgrad(arrays, "numpy", gradients),
    }
    if not gradients:
        a, b, c = arrays
        found["np.einsum"] = lambda: np.einsum(EQUATION, a, b, c, optimize="optimal")
        found["np.matmul"] = lambda: a @ b @ c
    if jax is not None:
        found["JAX"] = of_jax(arrays, gradients)
    return found


def microseconds(call, count):
    """CPU time of a call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count * 1e6


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    for gradients in (False, True):
        for n, (batch, size) in enumerate(SIZES):
            arrays = [rng.normal(size=(batch, size, size)).astype("float32") for _ in range(3)]
            made = calls(arrays, gradients)
            if n == 0:
                print(f"\n{'value and gradients' if gradients else 'value'}")
                print(f"| shapes | {' | '.join(made)} |\n|{'---|' * (1 + len(made))}")
            for call in made.values():
                microseconds(call, 20)
            turns = [[microseconds(call, 200) for call in made.values()] for _ in range(rounds)]
            cells = [f"{statistics.median(times):.0f}" for times in zip(*turns, strict=True)]
            print(f"| ({batch}, {size}, {size}) | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
