"""Ops with their gradients on the LLVM backend beside the NumPy backend and, if installed, JAX.

    python tools/costs/compiled_ops.py [--rounds 9] [--only conv]

CPU milliseconds of a call, gradient included, on one thread; all take turns, medians. What is
compared agrees to 1e-3 of the largest number of a result.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np

import graphgrad as gg
from graphgrad.ops import nn

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

RNG = np.random.default_rng(0)


def floats(*shape):
    """Random numbers."""
    return RNG.normal(size=shape).astype("float32")


def places(n, *shape):
    """Random indices of an axis of n."""
    return RNG.integers(0, n, shape)


def convolution(stride, layout="NHWC"):
    """The sum of squares of a convolution, for graphgrad and for JAX."""

    def ours(x, w):
        return gg.sum(nn.conv(x, w, strides=stride, data_format=layout) ** 2)

    def jaxs(x, w):
        numbers = (layout, "HWIO", layout)
        z = jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)
        return jnp.sum(z**2)

    return ours, jaxs


def pooling():
    """The sum of squares of the maxima of windows of 2 x 2."""

    def jaxs(x):
        window = (1, 2, 2, 1)
        y = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        return jnp.sum(y**2)

    return lambda x: gg.sum(nn.max_pool(x, 2) ** 2), jaxs


def same(fn):
    """One function for both, of a namespace and arrays."""
    return lambda *arrays: fn(gg, *arrays), lambda *arrays: fn(jnp, *arrays)


def log_softmax_at(xp, x, labels):
    """Cross entropy with classes as numbers."""
    shifted = x - xp.max(x, axis=1, keepdims=True)
    logs = shifted - xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return -xp.mean(logs[np.arange(x.shape[0]), labels])


CASES = {
    "embedding, 4096 of 10,000 x 64": (
        same(lambda xp, t, i: xp.sum(xp.tanh(xp.take(t, i, axis=0)))),
        [floats(10_000, 64), places(10_000, 32, 128)],
    ),
    "cross entropy, 512 x 1000 classes": (
        same(log_softmax_at),
        [floats(512, 1000), places(1000, 512)],
    ),
    "neighbours, 20,000 of 5,000 x 16": (
        same(lambda xp, x, i, j: xp.sum((xp.take(x, i, axis=0) - xp.take(x, j, axis=0)) ** 2)),
        [floats(5_000, 16), places(5_000, 20_000), places(5_000, 20_000)],
    ),
    "convolution 3 x 3, 8 x 28 x 28 x 128": (
        convolution(1),
        [floats(8, 28, 28, 128), floats(3, 3, 128, 128) / 30],
    ),
    "with stride 2, 8 x 56 x 56 x 64": (
        convolution(2),
        [floats(8, 56, 56, 64), floats(3, 3, 64, 128) / 30],
    ),
    "with channels first, 8 x 64 x 56 x 56": (
        convolution(1, "NCHW"),
        [floats(8, 64, 56, 56), floats(3, 3, 64, 64) / 30],
    ),
    "max pool 2 x 2, 32 x 28 x 28 x 32": (pooling(), [floats(32, 28, 28, 32)]),
    "max, mean over a middle axis": (
        same(lambda xp, x: xp.sum(xp.max(x, axis=1) * xp.mean(x, axis=1))),
        [floats(64, 100, 128)],
    ),
    "softmax over a middle axis": (
        same(lambda xp, x: xp.sum((e := xp.exp(x)) / xp.sum(e, axis=1, keepdims=True) * x)),
        [floats(64, 50, 128)],
    ),
    "sums so far along rows, 1000 x 1000": (
        same(lambda xp, x: xp.sum(xp.cumsum(x, axis=1) ** 2)),
        [floats(1000, 1000)],
    ),
    "sums so far along columns": (
        same(lambda xp, x: xp.sum(xp.cumsum(x, axis=0) ** 2)),
        [floats(1000, 1000)],
    ),
    "medians of rows, 1000 x 1000": (
        same(lambda xp, x: xp.sum(xp.quantile(x, 0.5, axis=1) ** 2)),
        [floats(1000, 1000)],
    ),
    "rests of divisions, 1,000,000": (
        same(lambda xp, x: xp.sum(xp.remainder(x * 10, 0.7) * x)),
        [floats(1_000_000)],
    ),
}


def runs(pair, arrays):
    """A function without arguments for each of those that are compared; their values agree."""
    ours, jaxs = pair
    wanted = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        y = ours(*xs)
        outputs = [y, *gg.gradients(y, [xs[i] for i in wanted])]
        made = {
            name: gg.compile(xs, outputs, backend=name, num_threads=1) for name in ("llvm", "numpy")
        }
    found = {name: (lambda f=f: f(*arrays)) for name, f in made.items()}
    if jax is not None:
        given = [jnp.asarray(a) for a in arrays]
        jitted = jax.jit(jax.value_and_grad(jaxs, argnums=tuple(wanted)))
        found["jax"] = lambda: jax.block_until_ready(jitted(*given))
    right = found["numpy"]()
    for name, run in found.items():
        values = jax.tree.leaves(run()) if name == "jax" else run()
        for a, b in zip(values, right, strict=True):
            assert np.max(np.abs(a - b)) <= 1e-3 * np.max(np.abs(b)), name
    return found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print("| CPU ms | LLVM | NumPy | JAX | LLVM / NumPy | LLVM / JAX |\n|---|---|---|---|---|---|")
    for name, (pair, arrays) in CASES.items():
        if given.only not in name:
            continue
        found = runs(pair, arrays)
        times = {k: [] for k in found}
        for _ in range(given.rounds):
            for k, run in found.items():
                began = time.process_time()
                run()
                times[k].append(1e3 * (time.process_time() - began))
        llvm, numpy, other = (
            statistics.median(times.get(k, [np.nan])) for k in ("llvm", "numpy", "jax")
        )
        print(
            f"| {name} | {llvm:.2f} | {numpy:.2f} | {other:.2f} | {llvm / numpy:.2f} | "
            f"{llvm / other:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
