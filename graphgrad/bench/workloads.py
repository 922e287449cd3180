"""Small workloads: graphs to build and to differentiate, and functions to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg


class Sizes(NamedTuple):
    """How large the workloads are.

    nodes     in the chain that is built and differentiated
    regions   in the chain of overrides
    elements  of the array in the element-wise chain
    batch, width, layers  of the networks
    seconds   to spend on each function and backend
    """

    nodes: int = 10_000
    regions: int = 1_000
    elements: int = 1_000_000
    batch: int = 128
    width: int = 512
    layers: int = 24
    seconds: float = 0.5


TINY = Sizes(nodes=40, regions=4, elements=64, batch=4, width=16, layers=2, seconds=0.0)


class Workload(NamedTuple):
    """What to compile, and the arrays to call it with."""

    inputs: list[gg.Tensor]
    outputs: list[gg.Tensor]
    updates: dict[gg.Tensor, gg.Tensor]
    arrays: list[Any]


def chain(h: gg.Tensor, w: gg.Tensor, b: gg.Tensor, n: int) -> gg.Tensor:
    """n nodes: h * w, h + b, sin, tanh, again and again."""
    for k in range(n):
        r = k & 3
        if r == 0:
            h = h * w
        elif r == 1:
            h = h + b
        elif r == 2:
            h = gg.sin(h)
        else:
            h = gg.tanh(h)
    return h


def marked_chain(x: gg.Tensor, n: int, rule: Callable[..., Any] | None) -> gg.Tensor:
    """n sines, each in a region with this rule, or in none."""
    for _ in range(n):
        if rule is None:
            x = gg.sin(x)
        else:
            with gg.override_gradient(rule):
                x = gg.sin(x)
    return x


def building(build: Callable[..., gg.Tensor], n: int) -> tuple[float, float]:
    """CPU seconds to build h = build(x, w, b, n), and to differentiate it by x and w."""
    with gg.Graph():
        x, w, b = (gg.placeholder(()) for _ in range(3))
        start = time.process_time()
        h = build(x, w, b, n)
        built = time.process_time()
        gg.gradients(h, [x, w])
        return built - start, time.process_time() - built


def small_call(sizes: Sizes) -> Workload:
    """x + 1 on ten numbers: what a call costs."""
    x = gg.placeholder((10,))
    return Workload([x], [x + 1.0], {}, [np.arange(10.0)])


def elementwise(sizes: Sizes) -> Workload:
    """A sum of 20 element-wise operations on float32, with its gradient."""
    x = gg.placeholder((sizes.elements,), "float32")
    g = gg.nn.gelu(x, approximate=True)
    s = gg.log1p(gg.exp(-gg.abs(g))) + gg.maximum(g, 0.0)
    y = gg.sum(gg.sqrt(s * s / (s + 1.0) + 1.0))
    return Workload(
        [x], [y, gg.gradients(y, x)], {}, [np.linspace(-3, 3, sizes.elements, dtype="float32")]
    )


def training_step(sizes: Sizes) -> Workload:
    """Loss and SGD update of a network with two hidden layers."""
    rng = np.random.default_rng(0)
    shape = [sizes.width, sizes.width, sizes.width, 10]
    x = gg.placeholder((sizes.batch, shape[0]), "float32")
    t = gg.placeholder((sizes.batch,), "int64")
    params, h = [], x
    for rows, columns in pairwise(shape):
        w = gg.variable((rng.normal(size=(rows, columns)) * (2 / rows) ** 0.5).astype("float32"))
        b = gg.variable(np.zeros(columns, "float32"))
        params += [w, b]
        h = (gg.nn.relu(h) if h is not x else h) @ w + b
    loss = gg.nn.cross_entropy(h, t, reduction="mean")
    grads = gg.gradients(loss, params)
    updates = {p: p - 0.01 * g for p, g in zip(params, grads, strict=True)}
    data = rng.normal(size=(sizes.batch, shape[0])).astype("float32")
    return Workload([x, t], [loss], updates, [data, rng.integers(0, 10, sizes.batch)])


def deep_network(sizes: Sizes, marked: bool) -> Workload:
    """Value and gradient of many small layers, with an override on every activation or without."""
    rng = np.random.default_rng(0)
    width = max(1, sizes.width // 8)
    x = gg.placeholder((32, width), "float32")
    h, weights = x, []
    for _ in range(sizes.layers):
        weights.append(
            gg.variable((rng.normal(size=(width, width)) / width**0.5).astype("float32"))
        )
        h = h @ weights[-1]
        if marked:
            with gg.override_gradient(_tanh_rule):
                h = gg.tanh(h)
        else:
            h = gg.tanh(h)
    y = gg.mean(h * h)
    data = rng.normal(size=(32, width)).astype("float32")
    return Workload([x], [y, *gg.gradients(y, weights)], {}, [data])


def _tanh_rule(site: Any, dy: gg.Tensor) -> Any:
    """dx = dy * (1 - y**2): the gradient that tanh has anyway."""
    (y,) = site.outputs
    return dy * (1.0 - y * y)
