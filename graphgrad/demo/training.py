"""Training: any net, any updates, any state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg
from graphgrad import initializers, optimizers

from .digits import Digits
from .model import Net


class Settings(NamedTuple):
    """How long and how often: hidden units, passes over the data, starts, batch size, rate."""

    hidden: int = 32
    epochs: int = 40
    starts: int = 3
    batch: int = 32
    rate: float = 0.01


class Curve(NamedTuple):
    """One training run: after 0, 1, 2, ... epochs the loss and accuracies, then the seconds."""

    loss: list[float]
    train: list[float]
    test: list[float]
    seconds: float


def initial_state(net: Net, seed: int) -> gg.State:
    """Values for all parameters: Glorot's for the weights, zero for the biases."""
    state = gg.State()
    for i, p in enumerate(net.params.values()):
        if p.ndim == 2:
            state[p] = initializers.glorot_uniform(state[p].shape, seed=100 * seed + i)
    return state


def adam(net: Net, grads: Sequence[gg.Tensor], digits: Digits, settings: Settings) -> Any:
    """Updates of all parameters, at a rate that falls along a cosine."""
    steps = settings.epochs * (len(digits.train_labels) // settings.batch)
    rate = optimizers.cosine_decay(settings.rate, max(1, steps))
    return optimizers.Adam(rate).updates(list(net.params.values()), grads)


def train(
    net: Net,
    updates: Any,
    state: gg.State,
    digits: Digits,
    settings: Settings,
    seed: int,
    tick: Callable[[str], None],
) -> Curve:
    """Run the updates over shuffled batches; the state is left as trained."""
    started = time.perf_counter()
    feeds = [net.pixels, net.labels]
    step = gg.compile(feeds, net.loss, updates=updates, state=state)
    score = gg.compile(feeds, [net.loss, net.accuracy], state=state)
    rng = np.random.default_rng(seed)
    curve = Curve([], [], [], 0.0)
    _note(curve, score, digits)
    for _ in range(settings.epochs):
        for batch in _batches(rng, len(digits.train_labels), settings.batch):
            step(digits.train_pixels[batch], digits.train_labels[batch])
        _note(curve, score, digits)
        tick(f"test accuracy {curve.test[-1]:.3f}")
    return curve._replace(seconds=time.perf_counter() - started)


def _note(curve: Curve, score: Any, digits: Digits) -> None:
    loss, accuracy = score(digits.train_pixels, digits.train_labels)
    curve.loss.append(float(loss))
    curve.train.append(float(accuracy))
    curve.test.append(float(score(digits.test_pixels, digits.test_labels)[1]))


def _batches(rng: np.random.Generator, count: int, size: int) -> list[Any]:
    order = rng.permutation(count)
    return [order[i : i + size] for i in range(0, count - size + 1, size)]
