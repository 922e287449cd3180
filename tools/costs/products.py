"""graphgrad's compiled matrix products beside NumPy's, by the kernels that OpenBLAS uses.

    python tools/costs/products.py [--sizes 256 512 1024 2048] [--cores unset Haswell SkylakeX]

OpenBLAS chooses its kernels by the processor, or by OPENBLAS_CORETYPE, which it reads as it is
loaded: so every choice runs in a process of its own. They take turns on one core, one thread each.
CPU time, medians, in units of 1e9 operations a second (2 n^3 a product of n x n matrices), higher
is better. A NumPy with another BLAS is measured as well, but all choices are then the same to it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import graphgrad as gg

try:
    import threadpoolctl
except ImportError:
    threadpoolctl = None

OURS = "graphgrad"


def product(maker, n, dtype):
    """A call without arguments that multiplies two n x n matrices."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, n)).astype(dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    if maker != OURS:
        return lambda: np.matmul(a, b, out=out)
    with gg.Graph():
        x, y = (gg.placeholder((n, n), dtype) for _ in range(2))
        f = gg.compile([x, y], x @ y, backend="llvm", num_threads=1)
    if not np.allclose(f(a, b), np.matmul(a, b), rtol=1e-3, atol=1e-2):
        raise ArithmeticError(f"graphgrad and NumPy disagree about a product of {n} x {n} {dtype}")
    return lambda: f(a, b)


def seconds(call, least):
    """CPU seconds of a call, over `least` seconds of calls."""
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < least:
        call()
        count += 1
    return spent / count


def chosen():
    """The kernels that NumPy's BLAS uses in this process, as far as that is known."""
    if threadpoolctl is None:
        return "not known without threadpoolctl"
    return ", ".join(
        f"{pool.get('internal_api')} {pool.get('version')}, {pool.get('architecture', '-')}"
        for pool in threadpoolctl.threadpool_info()
        if pool.get("user_api") == "blas"
    )


def serve(maker):
    """A process that measures: for each line `n dtype least` the seconds, on a line."""
    print(chosen(), flush=True)
    calls = {}
    for request in sys.stdin:
        n, dtype, least = request.split()
        if (n, dtype) not in calls:
            calls = {(n, dtype): product(maker, int(n), dtype)}
            calls[n, dtype]()
        print(seconds(calls[n, dtype], float(least)), flush=True)


def worker(maker):
    """The process for graphgrad, or for NumPy with kernels of this name."""
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    environment.pop("OPENBLAS_CORETYPE", None)
    if maker not in (OURS, "unset"):
        environment["OPENBLAS_CORETYPE"] = maker
    return subprocess.Popen(
        [sys.executable, __file__, "--serve", maker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def answer(process, request=None):
    """The next line of a worker, to a request."""
    if request is not None:
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError("a measuring process ended")
    return line


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 1024, 2048])
    parser.add_argument("--cores", nargs="+", default=["unset", "Haswell", "SkylakeX"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--least", type=float, default=0.1, help="seconds of a turn")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    makers = [OURS, *options.cores]
    workers = {maker: worker(maker) for maker in makers}
    for maker, process in workers.items():
        kernels = answer(process)
        if maker != OURS:
            print(f"OPENBLAS_CORETYPE {maker}: {kernels}")
    print(f"\n| n, dtype | {' | '.join([OURS, *(f'NumPy, {c}' for c in options.cores)])} |")
    print("|" + "---|" * (1 + len(makers)), flush=True)
    for dtype in ("float32", "float64"):
        for n in options.sizes:
            turns = [
                [float(answer(workers[m], f"{n} {dtype} {options.least}")) for m in makers]
                for _ in range(options.rounds)
            ]
            medians = [statistics.median(times) for times in zip(*turns, strict=True)]
            cells = [f"{2 * n**3 / t / 1e9:.0f}" for t in medians]
            print(f"| {n}, {dtype} | {' | '.join(cells)} |", flush=True)
    for process in workers.values():
        process.stdin.close()
        process.wait()
    return None


if __name__ == "__main__":
    main()
