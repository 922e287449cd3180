"""Random networks with marked regions, in scopes and without: what layouts are tried on."""

from __future__ import annotations

import random
from contextlib import nullcontext

import numpy as np

import graphgrad as gg

from .seeing import ste, twice


def random_net(seed):
    """[loss, *gradients] of a network of one to four layers, and the same without overrides."""
    dice = random.Random(seed)
    with gg.Graph(f"net{seed}"):
        h = gg.placeholder(("B", 8), name="x")
        weights = []
        for i in range(dice.randint(1, 4)):
            with gg.name_scope(f"layer{i}") if dice.random() < 0.7 else nullcontext():
                h = _layer(h, i, weights, dice)
        with gg.name_scope("loss") if dice.random() < 0.5 else nullcontext():
            loss = gg.mean(h * h)
        grads = gg.gradients(loss, weights)
        plain = gg.gradients(loss, weights, overrides="none")
    return [loss, *grads], [loss, *plain]


def _layer(h, i, weights, dice):
    w = gg.variable(np.ones((8, 8)), name=f"w{i}")
    weights.append(w)
    if dice.random() < 0.35:
        with gg.override_gradient(ste):
            w = gg.sign(w)
    h = h @ w
    if dice.random() < 0.5:
        b = gg.variable(np.ones(8), name=f"b{i}")
        weights.append(b)
        h = h + b
    rule = dice.choice([twice, ste, None])
    with gg.override_gradient(rule) if rule else nullcontext():
        return gg.sign(h) if dice.random() < 0.5 else gg.tanh(h)


def two_gradients():
    """Layers in scopes with signs between them; gradients with a rule, and later without."""
    with gg.Graph("layers"):
        h = gg.placeholder(("batch", 16), "float32", name="x")
        weights = []
        for i in range(3):
            with gg.name_scope(f"layer{i}"):
                w = gg.variable(np.ones((16, 16), np.float32), name="w")
                b = gg.variable(np.ones(16, np.float32), name="b")
                weights += [w, b]
                h = h @ w + b
                if i < 2:
                    with gg.override_gradient(_clipped):
                        h = gg.sign(h)
        loss = gg.mean(h * h)
        marked = gg.gradients(loss, weights)
        plain = gg.gradients(loss, weights, overrides="none")
    return [loss, *marked], [loss, *plain]


def _clipped(site, dy):
    (x,) = site.inputs
    return [gg.where(gg.abs(x) <= 1.0, dy, 0.0)]


def guided_cnn():
    """A convolutional network whose relus have the guided rule, and the same without overrides."""
    with gg.Graph("cnn"):
        image = h = gg.placeholder(("N", 16, 16, 1), "float32", name="image")
        with gg.gradient_override_map({"Relu": _guided}):
            for i, (c, d) in enumerate([(1, 8), (8, 16)]):
                with gg.name_scope(f"conv{i}"):
                    w = gg.variable(np.ones((3, 3, c, d), np.float32), name="w")
                    h = gg.nn.max_pool(gg.nn.relu(gg.nn.conv(h, w)), 2)
        with gg.name_scope("head"):
            w = gg.variable(np.ones((256, 10), np.float32), name="w")
            score = gg.sum(gg.max(gg.reshape(h, (-1, 256)) @ w, axis=1))
        guided = gg.gradients(score, image)
        plain = gg.gradients(score, image, overrides="none")
    return [score, guided], [score, plain]


def _guided(op, dy):
    return gg.where(op.outputs[0] > 0, gg.maximum(dy, 0.0), 0.0)
