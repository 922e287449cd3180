"""One computation by several code generators: CPU time of a run and of a first result, and errors.

    python tools/costs/code_generators.py [--only "exp"] [--rounds 15] [--core N]

Programs are graphgrad's own, optimised; what is compared is what makes machine code of them:
graphgrad's LLVM backend, without and with fast_math; numba, with fastmath off and on; C by gcc -O3
-march=native, without and with -ffast-math (which calls libmvec); and NumPy, a line an op. One
thread on one core, taking turns, medians. numba and C write into arrays that are made once;
graphgrad and NumPy return new ones. A first result is that of one run after the generator made
something else, nothing cached.

Errors are the largest of any element, in units in its last place (in those of the largest element,
where an array has elements of both signs), against the same program in long double. What cannot
run here is left out, and said: so a Python with another numba may run this, too.
"""

import argparse
import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scalar_text as text

import graphgrad as gg

try:
    import numba
except ImportError:
    numba = None

GCC = ("gcc", "-O3", "-march=native", "-fPIC")
CHUNK = 1 << 16  # elements whose reference is computed at a time


# --- what is computed --------------------------------------------------------------------------


class Kernel(NamedTuple):
    """x: the argument. build: from its tensor to [an array of its shape, a sum], or one of them."""

    x: np.ndarray
    build: object


def with_gradient(f):
    """What builds the gradient of the sum of f(x), and that sum."""

    def build(x):
        y = gg.sum(f(x))
        return [gg.gradients(y, x), y]

    return build


def gelu_chain(x):
    """20 ops: tanh, exp, log1p, a division and a square root among them."""
    g = gg.nn.gelu(x, approximate=True)
    s = gg.log1p(gg.exp(-gg.abs(g))) + gg.maximum(g, 0.0)
    return gg.sqrt(s * s / (s + 1.0) + 1.0)


def polynomial(x):
    """20 ops, none of them a function."""
    h = x
    for k in range(6):
        h = h * x * 0.5 + 0.1 * (k + 1)
    return gg.maximum(h, 0.0) * 0.5


def kernels():
    """{name: Kernel}."""
    found = {}
    for dtype in ("float32", "float64"):

        def line(low, high, n, dtype=dtype):
            return np.linspace(low, high, n).astype(dtype)

        chain = with_gradient(gelu_chain)
        found[f"gelu chain with gradient, 1e6 {dtype}"] = Kernel(line(-3, 3, 10**6), chain)
        chain = with_gradient(polynomial)
        found[f"polynomial with gradient, 1e6 {dtype}"] = Kernel(line(-1, 1, 10**6), chain)
        found[f"exp, 1e6 {dtype}"] = Kernel(line(-10, 10, 10**6), lambda x: [gg.exp(x)])
        found[f"tanh, 64 {dtype}"] = Kernel(line(-3, 3, 64), lambda x: [gg.tanh(x)])
        found[f"sum, 1e7 {dtype}"] = Kernel(line(0, 1, 10**7), lambda x: [gg.sum(x)])
        rows = np.random.default_rng(0).normal(size=(1024, 1024)).astype(dtype)
        found[f"softmax of rows, 1024 x 1024 {dtype}"] = Kernel(rows, lambda x: [gg.nn.softmax(x)])
    return found


# --- code generators: each makes a call without arguments that returns [arrays..., sums...] ------


def compiled(kernel, backend, **options):
    """graphgrad's function of the kernel, from nothing."""
    with gg.Graph():
        x = gg.placeholder(kernel.x.shape, kernel.x.dtype)
        return gg.compile([x], kernel.build(x), backend=backend, num_threads=1, **options)


def by_llvm(fast_math):
    """A generator: graphgrad's LLVM backend; building and differentiating included."""

    def make(kernel, program):
        f, x = compiled(kernel, "llvm", fast_math=fast_math), kernel.x
        return lambda: f(x)

    return make


def by_numba(fastmath):
    """A generator: numba.njit."""

    def make(kernel, program):
        f = numba.njit(fastmath=fastmath)(text.numba_function(program))
        ys, sums = np.empty_like(kernel.x), np.empty(1, kernel.x.dtype)
        return written(program, ys, sums, lambda: f(kernel.x, ys, sums))

    return make


def by_gcc(*flags):
    """A generator: a shared library by gcc, called by ctypes.

    Linked without the flags: -ffast-math at that point would set the whole process to flush
    subnormal numbers to zero.
    """

    def make(kernel, program):
        folder = Path(tempfile.mkdtemp())
        (folder / "k.c").write_text(text.c_source(program))
        subprocess.run([*GCC, *flags, "-c", "k.c", "-o", "k.o"], cwd=folder, check=True)
        subprocess.run(["gcc", "-shared", "k.o", "-o", "k.so", "-lm"], cwd=folder, check=True)
        run = ctypes.CDLL(str(folder / "k.so")).run
        shutil.rmtree(folder)
        x, ys, sums = kernel.x, np.empty_like(kernel.x), np.empty(1, kernel.x.dtype)
        args = [ctypes.c_void_p(a.ctypes.data) for a in (x, ys, sums)]
        args += [ctypes.c_long(x.size), ctypes.c_long(x.shape[-1])]
        return written(program, ys, sums, lambda: run(*args))

    return make


def written(program, ys, sums, run):
    """The call that runs, and returns what was written."""
    found = [ys if t.shape else sums[0:1] for t in program.outputs]

    def call():
        run()
        return found

    return call


def by_numpy(kernel, program):
    """A line an op."""
    f = text.numpy_function(program)
    return lambda: f(kernel.x)


def generators():
    """{name: generator} of what can run here; the rest is said."""
    found, missing = {}, []
    try:
        compiled(Kernel(np.ones(8), lambda x: [gg.exp(x)]), "llvm")
        found["graphgrad"] = by_llvm(False)
        found["graphgrad fast_math"] = by_llvm(True)
    except (gg.GraphGradError, RuntimeError) as error:
        missing.append(f"graphgrad's LLVM backend ({str(error).splitlines()[0]})")
    if numba is None:
        missing.append("numba")
    else:
        svml = " SVML" if numba.config.USING_SVML else ""
        found[f"numba{svml}"] = by_numba(False)
        found[f"numba{svml} fastmath"] = by_numba(True)
    if shutil.which("gcc"):
        found["gcc"] = by_gcc()
        found["gcc -ffast-math"] = by_gcc("-ffast-math")
    else:
        missing.append("gcc")
    found["NumPy"] = by_numpy
    if missing:
        print(f"left out, not installed or not able to run: {'; '.join(missing)}\n", flush=True)
    return found


# --- measuring ---------------------------------------------------------------------------------


def cpu_seconds():
    """Of this process, and of those it has waited for."""
    spent = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(s.ru_utime + s.ru_stime for s in spent)


def first(make, kernel, program):
    """(CPU seconds to a first result, the call)."""
    start = cpu_seconds()
    call = make(kernel, program)
    call()
    return cpu_seconds() - start, call


def runs(calls, rounds, least):
    """Median CPU seconds of each call, in turn; each is repeated for `least` seconds a turn."""
    counts = [max(1, round(least / once(call, 3))) for call in calls]
    spent = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, times in zip(calls, counts, spent, strict=True):
            times.append(once(call, count))
    return [statistics.median(times) for times in spent]


def once(call, count):
    """CPU seconds of a call, averaged over some."""
    start = time.process_time()
    for _ in range(count):
        call()
    return max(time.process_time() - start, 1e-9) / count


def errors(results, kernel, program):
    """Largest error in units in the last place: of elements of the array, of the sum; as text."""
    f = text.numpy_function(program, np.longdouble)
    x = kernel.x.reshape(-1, kernel.x.shape[-1] if kernel.x.ndim > 1 else 1)
    worst = {}
    sums = [np.longdouble(0) for _ in results]
    step = max(1, CHUNK // x.shape[1])
    for start in range(0, len(x), step):
        some = x[start : start + step]
        wide = f((some if kernel.x.ndim > 1 else some[:, 0]).astype(np.longdouble))
        for k, (found, right) in enumerate(zip(results, wide, strict=True)):
            if np.ndim(right):
                part = found.reshape(x.shape)[start : start + step].reshape(right.shape)
                size = np.abs(found).max() if found.min() < 0 < found.max() else 0
                worst["array"] = max(worst.get("array", 0), in_last_places(part, right, size))
            else:
                sums[k] += right
    for total, found in zip(sums, results, strict=True):
        if found.size == 1:
            worst["sum"] = in_last_places(found.reshape(()), total, 0)
    return " / ".join(f"{e:.2f}" if e < 10 else f"{e:.0f}" for e in worst.values())


def in_last_places(found, right, size):
    """The largest error in units of the last place of what is right, or of size if that is more."""
    unit = np.spacing(np.maximum(np.abs(right), size).astype(found.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(found - right) / unit))


def measured(name, kernel, makers, options):
    """A row of each table: run, first result, error."""
    program = compiled(kernel, "numpy").program
    firsts, calls = zip(*(first(make, kernel, program) for make in makers), strict=True)
    spent = runs(calls, options.rounds, options.least)
    wrong = [errors([np.array(a) for a in call()], kernel, program) for call in calls]
    return (
        [name, *(f"{s * 1e6:.3g}" if s < 1e-3 else f"{s * 1e6:.0f}" for s in spent)],
        [name, *(f"{s * 1e3:.0f}" for s in firsts)],
        [name, *wrong],
    )


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--least", type=float, default=0.02, help="seconds of a turn")
    parser.add_argument("--core", type=int, help="where to run; the last one by default")
    options = parser.parse_args()
    os.environ["GRAPHGRAD_CACHE"] = "off"  # a first result is to be a first one
    if hasattr(os, "sched_setaffinity"):
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(cores) if options.core is None else options.core})
    makers = generators()
    warm = Kernel(np.ones(8), lambda x: [gg.sqrt(x)])
    for make in makers.values():
        first(make, warm, compiled(warm, "numpy").program)
    chosen = {name: kernel for name, kernel in kernels().items() if options.only in name}
    rows = [measured(name, kernel, makers.values(), options) for name, kernel in chosen.items()]
    titles = ("microseconds of a run", "milliseconds to a first result", "largest error, ulp")
    for title, table in zip(titles, zip(*rows, strict=True), strict=True):
        lines = [[title, *makers], ["---"] * (1 + len(makers)), *table]
        print("\n".join(f"| {' | '.join(row)} |" for row in lines), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
