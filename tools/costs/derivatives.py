"""Training through gradients, and gradients of each example: CPU time beside JAX and PyTorch.

    python tools/costs/derivatives.py [--rounds 15]

Energy: a message-passing network of 64 atoms, whose negative gradient is trained on forces; a step
is the gradient of that loss with respect to the weights, so of second order. Examples: the
gradients of a small convolutional network for each of 32 images, by `vmap`. Float32, one thread;
values are compared first; CPU milliseconds, medians, all taking turns. PyTorch runs eagerly.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import graphgrad as gg  # noqa: E402

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
Step = Callable[[], Any]


def floats(*shape: int) -> Any:
    """Numbers of a magnitude that keeps that of what they multiply."""
    return (RNG.normal(size=shape) / np.sqrt(shape[0])).astype("float32")


ATOMS, WIDTH, BASIS = 64, 32, 16
ATOM = {
    "embed": floats(1, WIDTH),
    "filter 0": floats(BASIS, WIDTH),
    "update 0": floats(WIDTH, WIDTH),
    "filter 1": floats(BASIS, WIDTH),
    "update 1": floats(WIDTH, WIDTH),
    "out": floats(WIDTH, 1),
}
PLACES = (1.2 * RNG.normal(size=(ATOMS, 3))).astype("float32")
FORCES = RNG.normal(size=(ATOMS, 3)).astype("float32")
ONE = np.eye(ATOMS, dtype="float32")
CENTRES = np.linspace(0, 6, BASIS, dtype="float32")


def energy(ns: Any, p: Any, x: Any, one: Any, centres: Any) -> Any:
    """Of atoms at x: each adds up what it hears of the others, twice, by how far they are."""
    apart = x[:, None] - x[None]
    r = ns.sqrt((apart * apart).sum(-1) + one)
    near = (
        ns.exp(-((r[:, :, None] - centres) ** 2)) * (ns.exp(-0.1 * r * r) * (1 - one))[:, :, None]
    )
    h = (one @ (one * 0 + 1))[:, :1] @ p["embed"]
    for layer in ("0", "1"):
        heard = ((near @ p["filter " + layer]) * h[None]).sum(1)
        h = h + ns.tanh(heard @ p["update " + layer])
    return (h @ p["out"]).sum()


def energy_steps() -> tuple[Step, Step, Step]:
    """The gradients of the error of the forces, of each package."""
    with gg.Graph():
        x = gg.placeholder(PLACES.shape, "float32")
        p = {k: gg.variable(v) for k, v in ATOM.items()}
        (dx,) = gg.gradients(energy(gg, p, x, gg.constant(ONE), gg.constant(CENTRES)), [x])
        loss = gg.mean((dx + FORCES) ** 2)
        f = gg.compile(x, [loss, *gg.gradients(loss, list(p.values()))], backend="llvm")

    def of_jax(p: Any, x: Any) -> Any:
        forces = jax.grad(lambda x: energy(jnp, p, x, ONE, CENTRES))(x)
        return jnp.mean((forces + FORCES) ** 2)

    step = jax.jit(jax.value_and_grad(of_jax))
    put = jax.device_put((ATOM, PLACES))
    q = {k: torch.tensor(v, requires_grad=True) for k, v in ATOM.items()}
    places, one, centres, forces = map(torch.tensor, (PLACES, ONE, CENTRES, FORCES))

    def of_torch() -> Any:
        at = places.clone().requires_grad_()
        (dx,) = torch.autograd.grad(energy(torch, q, at, one, centres), at, create_graph=True)
        loss = ((dx + forces) ** 2).mean()
        return [loss, *torch.autograd.grad(loss, list(q.values()))]

    def by_jax() -> Any:
        loss, dp = jax.block_until_ready(step(*put))
        return [loss, *(dp[k] for k in ATOM)]

    return lambda: f(PLACES), by_jax, of_torch


NET = {
    "conv 0": floats(3, 3, 1, 16),
    "conv 1": floats(3, 3, 16, 32),
    "out": floats(7 * 7 * 32, 10),
}
IMAGES = RNG.normal(size=(32, 28, 28, 1)).astype("float32")
LABELS = RNG.integers(0, 10, 32)
ONE_HOT = np.eye(10, dtype="float32")[LABELS]


def example_steps() -> tuple[Step, Step, Step]:
    """The gradients of the loss of each image, of each package."""

    def own(image: Any, label: Any) -> Any:
        h = image[None]
        for k in ("conv 0", "conv 1"):
            h = gg.nn.max_pool(gg.nn.relu(gg.nn.conv(h, p[k])), 2)
        loss = gg.nn.cross_entropy(gg.reshape(h, (1, -1)) @ p["out"], label[None], reduction="sum")
        return gg.gradients(loss, list(p.values()))

    with gg.Graph():
        p = {k: gg.variable(v) for k, v in NET.items()}
        x, y = gg.placeholder(IMAGES.shape, "float32"), gg.placeholder(ONE_HOT.shape, "float32")
        f = gg.compile([x, y], list(gg.vmap(own)(x, y)), backend="llvm")

    def of_jax(p: Any, image: Any, label: Any) -> Any:
        h = image[None]
        for k in ("conv 0", "conv 1"):
            dims = ("NHWC", "HWIO", "NHWC")
            h = jax.nn.relu(
                jax.lax.conv_general_dilated(h, p[k], (1, 1), "SAME", dimension_numbers=dims)
            )
            h = h.reshape(1, h.shape[1] // 2, 2, h.shape[2] // 2, 2, -1).max((2, 4))
        return -(jax.nn.log_softmax(h.reshape(-1) @ p["out"]) * label).sum()

    step = jax.jit(jax.vmap(jax.grad(of_jax), (None, 0, 0)))
    put = jax.device_put((NET, IMAGES, ONE_HOT))

    def of_torch(p: Any, image: Any, label: Any) -> Any:
        h = image[None]
        for k in ("conv 0", "conv 1"):
            h = torch.nn.functional.conv2d(h, p[k].permute(3, 2, 0, 1), padding=1)
            h = torch.nn.functional.max_pool2d(torch.relu(h), 2)
        return -(torch.log_softmax(h.permute(0, 2, 3, 1).reshape(-1) @ p["out"], 0) * label).sum()

    q = {k: torch.tensor(v) for k, v in NET.items()}
    images, labels = torch.tensor(IMAGES).permute(0, 3, 1, 2).contiguous(), torch.tensor(ONE_HOT)
    eager = torch.func.vmap(torch.func.grad(of_torch), (None, 0, 0))

    def by_jax() -> Any:
        dp = jax.block_until_ready(step(*put))
        return [dp[k] for k in NET]

    def by_torch() -> Any:
        dp = eager(q, images, labels)
        return [dp[k] for k in NET]

    return lambda: f(IMAGES, ONE_HOT), by_jax, by_torch


def seconds(call: Step, count: int) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def main() -> None:
    """Print a row for each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print("| step | graphgrad, ms | JAX | PyTorch | over JAX | over PyTorch |\n" + 6 * "|---" + "|")
    for name, steps in (
        ("energy trained on forces", energy_steps()),
        ("gradients of each of 32 images", example_steps()),
    ):
        own, *others = [
            [np.asarray(getattr(a, "detach", lambda a=a: a)()) for a in s()] for s in steps
        ]
        for other in others:
            for a, b in zip(own, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * np.abs(b).max())
        counts = [max(2, int(0.1 / seconds(step, 2))) for step in steps]
        turns = [[seconds(s, n) for s, n in zip(steps, counts, strict=True)] for _ in range(rounds)]
        times = [1e3 * statistics.median(column) for column in zip(*turns, strict=True)]
        ratios = [statistics.median(turn[0] / turn[i] for turn in turns) for i in (1, 2)]
        cells = [f"{t:.3g}" for t in times] + [f"**{r:.2f}**" for r in ratios]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
