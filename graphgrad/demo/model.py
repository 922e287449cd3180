"""The models of the demo, and the gradient rules that are put on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg

PIXELS, CLASSES = 64, 10


@gg.register_gradient("ste")
def ste(site: Any, dy: gg.Tensor) -> gg.Tensor:
    """Straight through: the gradient passes as if sign were the identity, where |x| <= 1."""
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1, dy, 0.0)


@gg.register_gradient("guided")
def guided(site: Any, dy: gg.Tensor) -> gg.Tensor:
    """Guided backpropagation: only what is positive on the way back as on the way forth."""
    (x,) = site.inputs
    return gg.where(x > 0, gg.nn.relu(dy), 0.0)


@gg.register_gradient("deconvnet")
def deconvnet(site: Any, dy: gg.Tensor) -> gg.Tensor:
    """The deconvolutional network's ReLU: only what is positive on the way back."""
    return gg.nn.relu(dy)


class Net(NamedTuple):
    """A classifier of digits, as tensors of one graph.

    pixels    (digit, 64)
    labels    (digit,), the classes 0 to 9
    params    the variables, in order of layers
    edges     what enters and leaves the second layer's activation
    logits    (digit, 10)
    loss      mean cross entropy
    accuracy  share of the digits whose highest logit is their label's
    """

    pixels: gg.Tensor
    labels: gg.Tensor
    params: dict[str, gg.Tensor]
    edges: tuple[gg.Tensor, gg.Tensor]
    logits: gg.Tensor
    loss: gg.Tensor
    accuracy: gg.Tensor


def binary_weights(w: gg.Tensor) -> gg.Tensor:
    """The signs of the weights, with the straight-through gradient."""
    with gg.override_gradient("ste"):
        return gg.sign(w)


def binary_activation(z: gg.Tensor) -> gg.Tensor:
    """The sign of each activation, with the straight-through gradient."""
    with gg.override_gradient("ste"):
        return gg.sign(z)


def binary_net(hidden: int) -> Net:
    """64-H-H-10: weights and activations of the first two layers are signs."""
    x, labels, p = _leaves(hidden)
    z1 = x @ binary_weights(p["W1"]) / PIXELS**0.5 + p["b1"]
    h1 = binary_activation(z1)
    z2 = h1 @ binary_weights(p["W2"]) / hidden**0.5 + p["b2"]
    h2 = binary_activation(z2)
    logits = h2 @ p["W3"] + p["b3"]
    return Net(x, labels, p, (z2, h2), logits, *_goal(logits, labels))


def relu_net(hidden: int) -> Net:
    """64-H-H-10 with ReLU activations."""
    x, labels, p = _leaves(hidden)
    h1 = gg.nn.relu(x @ p["W1"] + p["b1"])
    z2 = h1 @ p["W2"] + p["b2"]
    h2 = gg.nn.relu(z2)
    logits = h2 @ p["W3"] + p["b3"]
    return Net(x, labels, p, (z2, h2), logits, *_goal(logits, labels))


def saliency(net: Net, rule: str | None) -> gg.Tensor:
    """The gradient of each digit's winning logit with respect to its own pixels.

    rule: what every ReLU's gradient is replaced by, in this call only; None: its own gradient.
    """
    winner = gg.max(net.logits, axis=1)
    dx: gg.Tensor = gg.gradients(winner, net.pixels, overrides={"Relu": rule})
    return dx


def _leaves(hidden: int) -> tuple[gg.Tensor, gg.Tensor, dict[str, gg.Tensor]]:
    x = gg.placeholder(("digit", PIXELS), name="pixels")
    labels = gg.placeholder(("digit",), "int64", name="labels")
    widths = [PIXELS, hidden, hidden, CLASSES]
    params = {}
    for layer in (1, 2, 3):
        before, after = widths[layer - 1 : layer + 1]
        params[f"W{layer}"] = gg.variable(np.zeros((before, after)), name=f"W{layer}")
        params[f"b{layer}"] = gg.variable(np.zeros(after), name=f"b{layer}")
    return x, labels, params


def _goal(logits: gg.Tensor, labels: gg.Tensor) -> tuple[gg.Tensor, gg.Tensor]:
    right = gg.argmax(logits, axis=1) == labels
    loss = gg.nn.cross_entropy(logits, labels, reduction="mean")
    return loss, gg.mean(right.astype("float64"))
