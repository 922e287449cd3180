"""What the devices tell each other where an array is divided, with products joined and left alone.

    python tools/costs/divided_products.py [--steps 12]

A recurrent network and its gradient, unrolled and as a scan, on 8 devices that the CPU pretends to
be: the batch divided, then the weights. Counted in the program that XLA compiles: exchanges, their
bytes, and the floating-point operations of one device, a loop's body once. graphgrad leaves
products alone where shardings are given.
"""

import argparse
import os
import re
from math import prod

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # before JAX starts

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import graphgrad as gg
from graphgrad.execute.jax.backend import JaxBackend

BATCH, N, H = 64, 32, 64
EXCHANGE = (
    r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(-start)?\("
)
BYTES = {"f64": 8, "f32": 4, "s64": 8, "u64": 8, "s32": 4, "u32": 4, "pred": 1}


def network(steps, loop):
    """Inputs, the weights by name, the loss and its gradients."""
    rng = np.random.default_rng(0)
    shapes = {"wx": (N, H), "wh": (H, H), "wo": (H, 8)}
    w = {name: gg.variable(rng.normal(size=s) / 10, name=name) for name, s in shapes.items()}

    def step(h, x):
        new = gg.tanh(x @ w["wx"] + h @ w["wh"])
        return new, gg.mean((new @ w["wo"]) ** 2)

    h = gg.zeros((BATCH, H))
    if loop:
        xs = [gg.placeholder((steps, BATCH, N), name="xs")]
        loss = gg.sum(gg.scan(step, h, xs[0])[1])
    else:
        xs = [gg.placeholder((BATCH, N), name=f"x{i}") for i in range(steps)]
        losses = []
        for x in xs:
            h, one = step(h, x)
            losses.append(one)
        loss = gg.sum(gg.stack(losses))
    return xs, w, [loss, *gg.gradients(loss, list(w.values()))]


def compiled(steps, loop, by, joining):
    """The program of XLA, on the mesh."""
    mesh = jax.make_mesh((8,), ("all",))
    with gg.Graph():
        xs, w, outputs = network(steps, loop)
        batch = {x: P(None, "all") if loop else P("all") for x in xs}
        weights = {w["wx"]: P(None, "all"), w["wh"]: P(None, "all"), w["wo"]: P("all", None)}
        backend = JaxBackend(mesh, batch if by == "batch" else weights)
        backend.joining = joining
        f = gg.compile(xs, outputs, backend=backend)
    run = f._executable.run
    with jax.enable_x64(True):
        arrays = [np.zeros(t.shape) for t in (*xs, *w.values())]
        return run._jitted.lower(tuple(run.placed.put(arrays)), ()).compile()


def exchanges(text):
    """How often the devices tell each other something, and the bytes."""
    found = [m[1] for line in text.splitlines() if (m := re.search(EXCHANGE, line))]
    parts = [part for shapes in found for part in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", shapes)]
    sizes = [BYTES.get(kind, 4) * prod(int(n) for n in s.split(",") if n) for kind, s in parts]
    return len(found), sum(sizes)


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=12)
    steps = parser.parse_args().steps
    for loop in (False, True):
        for by in ("batch", "weights"):
            for joining in (True, False):
                program = compiled(steps, loop, by, joining)
                count, size = exchanges(program.as_text())
                print(
                    f"{'scan' if loop else 'unrolled':8}  {by:7} divided  "
                    f"{'joined' if joining else 'left alone':10}  {count:4} exchanges "
                    f"{size / 1e3:8.0f} kB  {program.cost_analysis()['flops'] / 1e6:7.2f} MFLOP",
                    flush=True,
                )


if __name__ == "__main__":
    main()
