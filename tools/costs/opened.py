"""What programs of JAX and PyTorch cost when they are opened: opening, and a training step.

A step is a loss with the gradients of all parameters: of the opened program compiled on LLVM,
beside `jax.jit` or PyTorch on one thread. Both take turns; CPU milliseconds, medians of nine.

    python tools/costs/opened.py jax
    python tools/costs/opened.py torch
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402

import graphgrad as gg  # noqa: E402

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    """Numbers of a magnitude that keeps that of what they multiply."""
    return (RNG.normal(size=shape) / np.sqrt(shape[0])).astype("float32")


def of_jax() -> None:
    """Networks, a loop, and the energy of a gas."""
    import jax
    import jax.numpy as jnp

    def mlp(p: Any, x: Any) -> Any:
        for w, b in p[:-1]:
            x = jax.nn.silu(x @ w + b)
        return x @ p[-1][0]

    def normalised(x: Any) -> Any:
        return jax.nn.standardize(x, axis=-1, epsilon=1e-5)

    def transformer(p: Any, x: Any) -> Any:
        for q in p:
            batch, length, width = x.shape
            parts = (normalised(x) @ q["qkv"]).reshape(batch, length, 3, 4, width // 4)
            a = jax.nn.dot_product_attention(*(parts[:, :, i] for i in range(3)))
            x = x + a.reshape(x.shape) @ q["o"]
            x = x + jax.nn.gelu(normalised(x) @ q["u"], approximate=False) @ q["d"]
        return x.mean(1)

    def recurrent(p: Any, x: Any) -> Any:
        def cell(h: Any, row: Any) -> Any:
            return jnp.tanh(row @ p["i"] + h @ p["h"]), None

        return jax.lax.scan(cell, jnp.zeros((x.shape[1], 64), "float32"), x)[0] @ p["o"]

    def gas(p: Any, x: Any) -> Any:
        one = jnp.eye(len(x), dtype=x.dtype)
        squares = ((x[:, None] - x[None]) ** 2).sum(-1) + one
        s = (p["sigma"] ** 2 / squares) ** 3
        return p["epsilon"] * (4 * (s * s - s) * (1 - one)).sum()[None] / 2

    deep = {"qkv": (128, 384), "o": (128, 128), "u": (128, 256), "d": (256, 128)}
    small = [(floats(16, 32), floats(32)), (floats(32, 32), floats(32)), (floats(32, 4),)]
    great = [(floats(256, 512), floats(512)), (floats(512, 512), floats(512)), (floats(512, 10),)]
    blocks = [{k: floats(*s) for k, s in deep.items()} for _ in range(2)]
    loop = {"i": floats(32, 64), "h": floats(64, 64), "o": floats(64, 10)}
    units = {"sigma": np.float32(0.3), "epsilon": np.float32(1.0)}
    for name, fn, p, x in (
        ("small MLP", mlp, small, floats(8, 16)),
        ("MLP", mlp, great, floats(128, 256)),
        ("transformer", transformer, blocks, floats(8, 64, 128)),
        ("recurrent, in a scan", recurrent, loop, floats(50, 16, 32)),
        ("Lennard-Jones", gas, units, 8 * floats(64, 3)),
    ):
        step = jax.jit(jax.value_and_grad(lambda p, x, fn=fn: jnp.mean(fn(p, x) ** 2)))
        put = jax.device_put((p, x))

        def theirs(step: Any = step, put: Any = put) -> Any:
            return jax.block_until_ready(step(*put))[0]

        def opened(x_: Any, fn: Any = fn, p: Any = p) -> Any:
            return gg.interop.open_jax(fn, p, x_)

        compare(name, opened, x, theirs)


def of_torch() -> None:
    """Networks, recurrent and convolutional too."""
    import torch
    from torch import nn

    torch.set_num_threads(1)

    def layer() -> Any:
        return nn.TransformerEncoderLayer(
            128, 4, 256, 0.0, "gelu", batch_first=True, norm_first=True
        )

    class Residual(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            convs = [nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2)]
            norms = [nn.BatchNorm2d(width) for _ in range(2)]
            self.inside = nn.Sequential(convs[0], norms[0], nn.ReLU(), convs[1], norms[1])

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.inside(x))

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.out = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.lstm(x)[0][:, -1])

    def mlp(*widths: int) -> Any:
        layers = [nn.Sequential(nn.Linear(a, b), nn.SiLU()) for a, b in pairwise(widths)]
        return nn.Sequential(*layers)

    images = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *(Residual(32) for _ in range(4)))
    for name, module, shape in (
        ("small MLP", mlp(16, 32, 32, 4), (8, 16)),
        ("MLP", mlp(256, 512, 512, 10), (128, 256)),
        ("transformer", nn.Sequential(layer(), layer()), (8, 64, 128)),
        ("LSTM, 50 steps", Recurrent(), (16, 50, 32)),
        ("residual, 9 convolutions", images, (4, 3, 32, 32)),
    ):
        module.eval()
        x, weights = torch.as_tensor(floats(*shape)), list(module.parameters())

        def theirs(module: Any = module, x: Any = x, weights: Any = weights) -> Any:
            loss = (module(x) ** 2).mean()
            torch.autograd.grad(loss, weights)
            return loss.detach()

        def opened(x_: Any, module: Any = module) -> Any:
            return gg.interop.open_torch(module, x_)

        compare(name, opened, x.numpy(), theirs)


def compare(name: str, opened: Callable[[Any], Any], x: Any, theirs: Callable[[], Any]) -> None:
    """One row: both have the same loss."""
    start = time.process_time()
    with gg.Graph() as graph:
        x_ = gg.placeholder(x.shape, "float32")
        y = opened(x_)
        opening = time.process_time() - start
        loss = gg.mean(y * y)
        weights = list(graph.variables.trainable)
        f = gg.compile(x_, [loss, *gg.gradients(loss, weights)], backend="llvm")
    np.testing.assert_allclose(f(x)[0], np.asarray(theirs()), rtol=1e-4)
    count = max(3, int(0.2 / max(seconds(theirs, 1), 1e-5)))
    pairs = [(seconds(lambda: f(x), count), seconds(theirs, count)) for _ in range(9)]
    own, other = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"| {name} | {opening:.2f} | {own:.3g} | {other:.3g} | **{own / other:.2f}** |")


def seconds(call: Callable[[], Any], count: int) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


if __name__ == "__main__":
    print(
        "| program | opening, CPU s | graphgrad, ms | theirs, ms | ratio |\n" + 5 * "| --- " + "|"
    )
    {"jax": of_jax, "torch": of_torch}[sys.argv[1]]()
