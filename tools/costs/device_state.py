"""A training step whose variables stay on the device, beside bare JAX doing the same.

    python tools/costs/device_state.py [--width 2048] [--layers 4] [--batch 64] [--rounds 15]

Layers of width x width with tanh, the mean square, Adam, float32: at 4 layers of 2048 the weights
and what Adam remembers are 192 MB. All take the same steps from the same weights, in turns, and
give the loss back each time; medians of wall and CPU time, and the least CPU time, which others on
the machine disturb least. Memory is what a process takes at most, each in a process of its own.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import graphgrad as gg

RATE, B1, B2, EPS = 1e-3, 0.9, 0.999, 1e-8


def weights(args):
    """The weights at first, and a batch."""
    rng = np.random.default_rng(0)
    made = [rng.normal(size=(args.width, args.width)).astype("float32") for _ in range(args.layers)]
    x = rng.normal(size=(args.batch, args.width)).astype("float32")
    return [w / np.float32(args.width**0.5) for w in made], x


def in_graphgrad(args, **options):
    """The step, compiled by graphgrad."""
    start, x = weights(args)
    with gg.Graph():
        h = given = gg.placeholder((None, args.width), "float32", name="x")
        ws = [gg.variable(w) for w in start]
        for w in ws:
            h = gg.tanh(h @ w)
        loss = gg.mean(h * h)
        updates = gg.optimizers.Adam(RATE, B1, B2, EPS).updates(ws, gg.gradients(loss, ws))
        step = gg.compile(given, loss, updates=updates, **options)
    return lambda: float(step(x))


def in_jax(args, donate):
    """The same by hand, in bare JAX."""
    start, x = weights(args)

    def loss_of(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.mean(h * h)

    def step(state):
        ws, ms, vs, n = state
        loss, gs = jax.value_and_grad(loss_of)(ws)
        n = n + 1
        ms = [B1 * m + (1 - B1) * g for m, g in zip(ms, gs, strict=True)]
        vs = [B2 * v + (1 - B2) * g * g for v, g in zip(vs, gs, strict=True)]
        c1, c2 = (-jnp.expm1(n * np.float32(np.log(b))) for b in (B1, B2))
        rows = zip(ws, ms, vs, strict=True)
        ws = [w - RATE * (m / c1) / (jnp.sqrt(v / c2) + EPS) for w, m, v in rows]
        return loss, (ws, ms, vs, n)

    run = jax.jit(step, donate_argnums=0 if donate else ())
    zeros = [np.zeros_like(w) for w in start]
    state = jax.device_put((start, zeros, zeros, np.float32(0)))
    state = jax.tree.map(jnp.copy, state)

    def call():
        nonlocal state
        loss, state = run(state)
        found = float(loss)
        jax.block_until_ready(state)
        return found

    return call


WAYS = {
    "bare JAX": lambda a: in_jax(a, False),
    "bare JAX, donated": lambda a: in_jax(a, True),
    "graphgrad jax": lambda a: in_graphgrad(a, backend="jax"),
    "graphgrad jax, donate=True": lambda a: in_graphgrad(a, backend="jax", donate=True),
    "graphgrad llvm": lambda a: in_graphgrad(a, backend="llvm"),
}


def timed(step):
    """Milliseconds of wall and CPU time of a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def most():
    """Kilobytes that this process had at most so far, on Linux."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def peak(name, argv):
    """Kilobytes that a process takes at most, beyond what it had before it built anything."""
    command = [sys.executable, __file__, *argv, "--alone", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, value in [("width", 2048), ("layers", 4), ("batch", 64), ("rounds", 15)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--alone", choices=WAYS, help="one of them; prints its peak memory")
    args = parser.parse_args()
    if args.alone:
        before = most()
        step = WAYS[args.alone](args)
        for _ in range(3):
            step()
        print(most() - before)
        return
    steps = {name: make(args) for name, make in WAYS.items()}
    losses = {name: [step() for _ in range(3)] for name, step in steps.items()}
    for name, found in losses.items():
        np.testing.assert_allclose(found, losses["bare JAX"], rtol=1e-3, err_msg=name)
    times = {name: [] for name in steps}
    for _ in range(args.rounds):
        for name, step in steps.items():
            times[name].append(timed(step))
    first = None
    for name, rows in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        least = min(cpu for _, cpu in rows)
        first = first or (wall, cpu, least)
        memory = peak(name, sys.argv[1:]) / 1e3
        print(
            f"{name:28} wall {wall:7.1f} ms ({wall / first[0]:4.2f})  CPU {cpu:7.1f} "
            f"({cpu / first[1]:4.2f}) least {least:7.1f} ({least / first[2]:4.2f})  "
            f"{memory:6.0f} MB at most",
            flush=True,
        )


if __name__ == "__main__":
    main()
