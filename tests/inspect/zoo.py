"""Graphs as people draw them: what first views, layouts and edges are tried on."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

import graphgrad as gg

from .seeing import ste


def training_step(layers=3):
    """An MLP with straight-through signs, its gradients, and the updates of Adam."""
    with gg.Graph("training"):
        h = gg.placeholder(("batch", 64), "float32", name="x")
        y = gg.placeholder(("batch",), "int32", name="y")
        params = []
        for i in range(layers):
            with gg.name_scope(f"layer{i}"):
                w = gg.variable(np.ones((64, 64), np.float32), name="w")
                b = gg.variable(np.zeros(64, np.float32), name="b")
                params += [w, b]
                h = h @ w + b
                if i < layers - 1:
                    with gg.override_gradient(ste):
                        h = gg.sign(h)
        with gg.name_scope("loss"):
            loss = gg.mean(gg.nn.cross_entropy(h, y))
        updates = gg.optimizers.Adam(1e-3).updates(params, gg.gradients(loss, params))
    return [loss, *updates.values()]


def lstm(steps=20, scopes=True):
    """An LSTM that is unrolled: one scope a step, and the gradients of its weights."""
    with gg.Graph("lstm"):
        xs = gg.placeholder((steps, 32, 8), "float32", name="x")
        w = gg.variable(np.ones((24, 64), np.float32), name="W")
        b = gg.variable(np.zeros(64, np.float32), name="b")
        h = c = gg.constant(np.zeros((32, 16), np.float32))
        for i in range(steps):
            with gg.name_scope(f"step{i}") if scopes else nullcontext():
                gates = gg.concat([xs[i], h], axis=1) @ w + b
                take, put, keep, new = (gates[:, 16 * k : 16 * k + 16] for k in range(4))
                c = gg.nn.sigmoid(keep) * c + gg.nn.sigmoid(take) * gg.tanh(new)
                h = gg.nn.sigmoid(put) * gg.tanh(c)
        with gg.name_scope("loss"):
            loss = gg.mean(h * h)
        return [loss, *gg.gradients(loss, [w, b])]


def transformer(blocks=2, width=32, heads=4):
    """A decoder of so many blocks, with the gradients of all weights."""
    with gg.Graph("transformer"):
        tokens = gg.placeholder(("batch", 16), "int32", name="tokens")
        params = []

        def weight(name, *shape):
            params.append(gg.variable(np.ones(shape, np.float32), name=name))
            return params[-1]

        with gg.name_scope("embed"):
            h = gg.nn.embedding(tokens, weight("table", 100, width))
        for i in range(blocks):
            with gg.name_scope(f"block{i}"):
                with gg.name_scope("attention"):
                    normed = gg.nn.layer_norm(h, weight("scale", width), weight("shift", width))
                    q, k, v = (_heads(normed @ weight(n, width, width), heads) for n in "qkv")
                    scores = gg.nn.softmax(q @ gg.transpose(k, (0, 1, 3, 2)) / np.float32(3.0))
                    mixed = gg.transpose(scores @ v, (0, 2, 1, 3))
                    h = h + gg.reshape(mixed, (-1, 16, width)) @ weight("out", width, width)
                with gg.name_scope("mlp"):
                    normed = gg.nn.layer_norm(h, weight("scale", width), weight("shift", width))
                    inner = normed @ weight("up", width, 4 * width)
                    h = h + gg.nn.gelu(inner) @ weight("down", 4 * width, width)
        with gg.name_scope("loss"):
            loss = gg.mean(gg.square(h @ weight("head", width, 100)))
        return [loss, *gg.gradients(loss, params)]


def _heads(x, heads):
    return gg.transpose(gg.reshape(x, (-1, 16, heads, x.shape[-1] // heads)), (0, 2, 1, 3))


def scan():
    """A loop over rows with a rule in its body, and its gradient."""
    with gg.Graph("scan"):
        xs = gg.placeholder(("steps", 4), name="xs")
        w = gg.variable(np.ones((4, 4)), name="w")

        def cell(h, x):
            with gg.override_gradient(ste):
                h = gg.sign(h @ w + x)
            return h, h

        h, ys = gg.scan(cell, np.zeros(4), xs)
        loss = gg.sum(h) + gg.mean(ys)
        return [loss, gg.gradients(loss, w)]


def layers(count, scopes=True):
    """So many dense layers with their gradients: about eight nodes a layer."""
    with gg.Graph("layers"):
        h = gg.placeholder(("batch", 8), name="x")
        params = []
        for i in range(count):
            with gg.name_scope(f"layer{i}") if scopes else nullcontext():
                w, b = gg.variable(np.ones((8, 8)), name="w"), gg.variable(np.zeros(8), name="b")
                params += [w, b]
                h = gg.tanh(h @ w + b)
        loss = gg.mean(h * h)
        return [loss, *gg.gradients(loss, params)]


ZOO = {
    "training": training_step,
    "lstm20": lstm,
    "transformer2": transformer,
    "scan": scan,
    "layers20": lambda: layers(20),
}
LARGE = {
    "lstm200": lambda: lstm(200),
    "transformer24": lambda: transformer(24),
    "layers4000": lambda: layers(4000),
}
