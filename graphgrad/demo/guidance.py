"""Second experiment: three gradients of one trained ReLU network, as pictures of pixels."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

import graphgrad as gg

from .checks import Check, close, distance
from .digits import Digits
from .model import CLASSES, Net, relu_net, saliency
from .progress import Ticker
from .training import Settings, adam, initial_state, train

RULES = {"plain": None, "guided": "guided", "deconvnet": "deconvnet"}
"""Row of the picture -> what the gradient of every ReLU is overridden with."""
TITLE = "ReLU network"


class Guidance(NamedTuple):
    """What came of it.

    accuracy  of the network, on the test digits
    pixels    one test digit of each class, (10, 64)
    maps      kind -> the gradient of the winning logit for each of them, (10, 64)
    apart     how far the guided gradient is from that of a graph built under
              gradient_override_map
    """

    accuracy: float
    pixels: Any
    maps: dict[str, Any]
    apart: float


def guide(digits: Digits, settings: Settings, seed: int, ticker: Ticker) -> Guidance:
    """Train with plain gradients; then ask for the gradients of the pixels, three times."""
    with gg.Graph("ReLU network"):
        net = relu_net(settings.hidden)
        grads = gg.gradients(net.loss, list(net.params.values()))
        maps = {kind: saliency(net, rule) for kind, rule in RULES.items()}
        updates = adam(net, grads, digits, settings)
    state = initial_state(net, seed)
    tick = partial(ticker.tick, TITLE)
    curve = train(net, updates, state, digits, settings, seed, tick)
    pixels = _one_of_each(net, state, digits)
    dxs = gg.compile(net.pixels, maps, state=state)(pixels)
    again = _marked_at_build(net, state, settings.hidden, pixels)
    return Guidance(curve.test[-1], pixels, dxs, float(np.abs(dxs["guided"] - again).max()))


def checks(guidance: Guidance) -> list[Check]:
    """What has to hold."""
    same = guidance.apart
    return [
        Check(
            "guided: chosen at differentiation or marked at build time, the gradient is the same",
            distance(same),
            close(same),
        )
    ]


def _one_of_each(net: Net, state: gg.State, digits: Digits) -> Any:
    """The first test digit of each class that is recognised; the first, if none is."""
    logits = gg.compile(net.pixels, net.logits, state=state)(digits.test_pixels)
    right = logits.argmax(axis=1) == digits.test_labels
    order = np.argsort(~right, kind="stable")
    firsts = [next(i for i in order if digits.test_labels[i] == c) for c in range(CLASSES)]
    return digits.test_pixels[firsts]


def _marked_at_build(net: Net, state: gg.State, hidden: int, pixels: Any) -> Any:
    """The guided gradient from a second graph, whose ReLUs are marked while they are built."""
    with gg.Graph("marked"):
        with gg.gradient_override_map({"Relu": "guided"}):
            marked = relu_net(hidden)
        dx = gg.gradients(gg.max(marked.logits, axis=1), marked.pixels)
    same = gg.State()
    for name, p in marked.params.items():
        same[p] = state[net.params[name]]
    return gg.compile(marked.pixels, dx, state=same)(pixels)
