"""The marginal likelihood of a Gaussian process and its gradients, beside JAX on the CPU.

    python tools/bench/gaussian_process.py [--points 100 300 1000] [--rounds 40]

The kernel is s exp(-|x - x'|^2 / 2 l^2) + noise, the rest one Cholesky factor: a system and a sum
of logarithms. The gradients are those of the three parameters, or of these and the points. The two
take turns on one core, one thread each; CPU time, medians, in milliseconds. Exit code: 1 if their
results do not agree.
"""

import argparse
import os
import statistics
import sys
import time

ONE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "XLA_FLAGS": ONE}

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.scipy.linalg  # noqa: E402
import numpy as np  # noqa: E402

sys.path = [path for path in sys.path if not path.endswith("tools/bench")]  # graphgrad.py is there
import graphgrad as gg  # noqa: E402


def likelihood(m, cho_solve, diagonal, theta, x, y):
    """Minus its logarithm, but for a constant."""
    length, scale, noise = (m.exp(theta[i]) for i in range(3))
    squares = m.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    kernel = scale * m.exp(-0.5 * squares / length**2) + noise * m.eye(y.shape[0])
    factor = m.linalg.cholesky(kernel)
    return 0.5 * m.sum(y * cho_solve((factor, True), y)) + m.sum(m.log(diagonal(factor)))


def ours(args, places):
    """A function of nothing: value and gradients by graphgrad."""
    with gg.Graph():
        inputs = [gg.placeholder(a.shape) for a in args]
        loss = likelihood(gg, gg.linalg.cho_solve, gg.linalg.diagonal, *inputs)
        grads = gg.gradients(loss, [inputs[i] for i in places])
        f = gg.compile(inputs, [loss, *grads], num_threads=1)
    return lambda: f(*args)


def theirs(args, places):
    """The same by JAX."""

    def loss(*args):
        return likelihood(jnp, jax.scipy.linalg.cho_solve, jnp.diagonal, *args)

    f = jax.jit(jax.value_and_grad(loss, argnums=places))
    return lambda: jax.block_until_ready(f(*args))


def medians(calls, rounds):
    """CPU milliseconds of each, which take turns."""
    spent = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, spent, strict=True):
            start = time.process_time()
            call()
            times.append(1e3 * (time.process_time() - start))
    return [statistics.median(times) for times in spent]


def main():
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    print(f"{'points':>6}  {'gradients':<22} {'graphgrad':>9} {'jax':>9}  ratio")
    for n in asked.points:
        x = rng.normal(size=(n, 5))
        args = np.array([0.1, 0.2, -2.0]), x, np.sin(x[:, 0])
        for places, name in (((0,), "parameters"), ((0, 1), "parameters and points")):
            calls = [make(args, places) for make in (ours, theirs)]
            found = [[np.asarray(a) for a in jax.tree.leaves(call())] for call in calls]
            if not all(np.allclose(a, b, rtol=1e-6) for a, b in zip(*found, strict=True)):
                sys.exit(f"graphgrad and JAX disagree about {n} points")
            a, b = medians(calls, asked.rounds)
            print(f"{n:>6}  {name:<22} {a:9.2f} {b:9.2f}  {a / b:5.2f}")


if __name__ == "__main__":
    main()
