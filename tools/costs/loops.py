"""Loops against JAX's scan under jit: microseconds of CPU time for one run, and the ratio.

    python tools/costs/loops.py [name ...] [--rounds 15] [--backend numpy] [--unrolled]

Runs are interleaved, one core each: the ratio is the median of those of neighbouring runs. A name
is that of a loop here; `forward` and `both` (forward and gradient of the sum of what it leaves).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import jax.numpy as jnp
import numpy as np

import graphgrad as gg

jax.config.update("jax_platforms", "cpu")
Loop = tuple[Callable[..., Any], dict[str, tuple[int, ...]]]
RNG = np.random.default_rng(0)


def ema(ns: Any, scan: Any, x: Any, a: Any) -> Any:
    """A moving average, whose rows are read."""

    def run(m: Any, row: Any) -> Any:
        m = a * m + (1.0 - a) * row
        return m, m

    return scan(run, x[0] * 0.0, x)[1]


def rnn(ns: Any, scan: Any, x: Any, h: Any, w: Any, u: Any) -> Any:
    """A recurrent layer, whose last state is read."""

    def run(h: Any, row: Any) -> Any:
        h = ns.tanh(row @ w + h @ u)
        return h, h

    return scan(run, h, x)[1]


def gru(ns: Any, scan: Any, x: Any, h: Any, w: Any, u: Any, v: Any) -> Any:
    """Gates z and r, one candidate."""
    n = v.shape[0]

    def run(h: Any, row: Any) -> Any:
        wx = row @ w
        zr = 1.0 / (1.0 + ns.exp(-(wx[:, : 2 * n] + h @ u)))
        z, r = zr[:, :n], zr[:, n:]
        c = ns.tanh(wx[:, 2 * n :] + (r * h) @ v)
        h = (1.0 - z) * h + z * c
        return h, h

    return scan(run, h, x)[1]


def lstm(ns: Any, scan: Any, x: Any, h: Any, w: Any, u: Any) -> Any:
    """Four gates."""
    n = h.shape[1]

    def run(carry: Any, row: Any) -> Any:
        h, c = carry
        g = row @ w + h @ u
        i, f, o = (1.0 / (1.0 + ns.exp(-g[:, k * n : (k + 1) * n])) for k in range(3))
        c = f * c + i * ns.tanh(g[:, 3 * n :])
        h = o * ns.tanh(c)
        return (h, c), h

    return scan(run, (h, h * 0.5), x)[1]


def rk4(ns: Any, scan: Any, y: Any, t: Any, k: Any) -> Any:
    """Driven pendulums, by the method of Runge and Kutta; t: the force at each step."""
    dt = 0.01

    def run(y: Any, t: Any) -> Any:
        def f(q: Any, p: Any) -> Any:
            return p, t - k * ns.sin(q)

        q, p = y
        a, b = f(q, p)
        c, d = f(q + dt / 2 * a, p + dt / 2 * b)
        e, g = f(q + dt / 2 * c, p + dt / 2 * d)
        i, j = f(q + dt * e, p + dt * g)
        return (q + dt / 6 * (a + 2 * c + 2 * e + i), p + dt / 6 * (b + 2 * d + 2 * g + j)), None

    return scan(run, (y, y * 0.5), t)[0][0]


def scalar(ns: Any, scan: Any, x: Any, a: Any) -> Any:
    """One number, very often."""
    return scan(lambda s, row: (s * a + row, None), x[0], x)[0]


def choice(ns: Any, scan: Any, x: Any, h: Any, w: Any) -> Any:
    """A layer of which each step takes one of two ways."""
    cond = gg.cond if ns is gg else jax.lax.cond

    def run(h: Any, row: Any) -> Any:
        h = cond(ns.sum(row) > 0.0, lambda: ns.tanh(h @ w + row), lambda: h * row)
        return h, h

    return scan(run, h, x)[1]


def lookup(ns: Any, scan: Any, x: Any, table: Any) -> Any:
    """A row of a table in each step, which the step before finds."""

    def run(carry: Any, row: Any) -> Any:
        s, at = carry
        s = ns.tanh(s + table[at]) * row
        return (s, ((ns.abs(s[0]) * 20.0).astype("int64")) % 8), s

    at = gg.constant(0) if ns is gg else jnp.array(0, "int64")
    return scan(run, (x[0], at), x)[1]


LOOPS: dict[str, Loop] = {
    "ema 1x16": (ema, {"x": (1000, 1, 16), "a": ()}),
    "ema 32x64": (ema, {"x": (1000, 32, 64), "a": ()}),
    "rnn 16x64": (rnn, {"x": (200, 16, 64), "h": (16, 64), "w": (64, 64), "u": (64, 64)}),
    "rnn 1x16": (rnn, {"x": (500, 1, 16), "h": (1, 16), "w": (16, 16), "u": (16, 16)}),
    "gru 16x64": (
        gru,
        {"x": (200, 16, 64), "h": (16, 64), "w": (64, 192), "u": (64, 128), "v": (64, 64)},
    ),
    "lstm 16x64": (
        lstm,
        {"x": (200, 16, 64), "h": (16, 64), "w": (64, 256), "u": (64, 256)},
    ),
    "lstm 16x64, 1000": (
        lstm,
        {"x": (1000, 16, 64), "h": (16, 64), "w": (64, 256), "u": (64, 256)},
    ),
    "rk4 100": (rk4, {"y": (100,), "t": (1000,), "k": (100,)}),
    "choice 1x16": (choice, {"x": (1000, 1, 16), "h": (1, 16), "w": (16, 16)}),
    "lookup 16": (lookup, {"x": (1000, 16), "table": (8, 16)}),
    "scalar": (scalar, {"x": (1_000_000,), "a": ()}),
}


def unrolled(f: Any, init: Any, xs: Any) -> Any:
    """gg.scan, run by run."""
    made, carry = [], init
    for at in range(xs.shape[0]):
        carry, row = f(carry, xs[at])
        made.append(row)
    return carry, None if made[0] is None else gg.stack(made)


def ours(loop: Loop, both: bool, scan: Any, backend: str) -> Callable[..., Any]:
    """The loop as a function of arrays."""
    f, shapes = loop
    with gg.Graph():
        inputs = [gg.placeholder(shape, name=name) for name, shape in shapes.items()]
        y = gg.sum(f(gg, scan, *inputs))
        outputs = [y, *gg.gradients(y, inputs)] if both else [y]
        live = [t for t in outputs if t is not None]
        return gg.compile(inputs, live, backend=backend, num_threads=1)


def jaxs(loop: Loop, both: bool) -> Callable[..., Any]:
    """The same by jax.lax.scan."""
    f, shapes = loop

    def total(*arrays: Any) -> Any:
        return jnp.sum(f(jnp, jax.lax.scan, *arrays))

    jitted = jax.jit(jax.value_and_grad(total, tuple(range(len(shapes)))) if both else total)

    def run(*arrays: Any) -> Any:
        return jax.block_until_ready(jitted(*arrays))

    return run


def timed(run: Callable[[], Any]) -> float:
    """Microseconds of CPU time."""
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) / 1e3


def compare(loop: Loop, both: bool, rounds: int, backend: str, unroll: bool) -> str:
    """One row: ours, JAX's, their ratio; seconds of the first call of each."""
    arrays = [np.array(0.9) if not s else 0.1 * RNG.normal(size=s) for s in loop[1].values()]
    start = time.process_time()
    mine = ours(loop, both, unrolled if unroll else gg.scan, backend)
    found = mine(*arrays)
    built = time.process_time()
    theirs = jaxs(loop, both)
    wanted = theirs(*arrays)
    compiled = time.process_time()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    given = [jnp.array(a) for a in arrays]
    pairs = [(timed(lambda: mine(*arrays)), timed(lambda: theirs(*given))) for _ in range(rounds)]
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(x / y for x, y in pairs)
    return f"{a:12.1f} {b:12.1f} {ratio:8.2f}   first {built - start:6.2f} {compiled - built:6.2f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--backend", default="llvm")
    parser.add_argument("--unrolled", action="store_true")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{'':22}{'ours us':>12} {'jax us':>12} {'ratio':>8}")
    for name, loop in LOOPS.items():
        if asked.names and not any(n in name for n in asked.names):
            continue
        for both in (False, True):
            row = compare(loop, both, asked.rounds, asked.backend, asked.unrolled)
            print(f"{name:12} {'both' if both else 'forward':9}{row}", flush=True)


if __name__ == "__main__":
    main()
