"""Nets on grids for tests: trained on the digits, and the same in integers, by NumPy.

Each scheme says how weights and activations are put on grids. The twin of a net computes with int64
what a runtime of integers is to compute, from the values of its variables.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import graphgrad as gg
from graphgrad.demo import digits


class Grid(NamedTuple):
    """step * (number - zero), number from low to high; of arrays, or of tensors."""

    step: Any
    zero: Any
    low: int
    high: int

    def numbers(self, x):
        held = np.rint(np.asarray(x, "float32") / np.float32(self.step)) + self.zero
        return np.clip(held, self.low, self.high).astype("int64")


def affine(low, high, bits):
    """The grid of fake_quantise, in float32 as there."""
    levels = np.float32(2**bits - 1)
    step = (high - low) / levels
    return Grid(step, np.clip(np.rint(-low / step), 0, levels), 0, levels)


# --- on grids: tensor, its variables, and the grid that these say --------------------------------


def learned(value):
    return gg.variable(np.asarray(value, "float32"))


def weights_by_tensor(w, size):
    s = learned(2 * size / 11.0)
    return gg.rules.lsq(w, s), [s], lambda s: Grid(s, 0, -128, 127)


def weights_by_channel(w, size, bits=8):
    s = learned(np.full(w.shape[-1], size * 4 / 2 ** (bits - 1)))
    high = 2 ** (bits - 1) - 1
    return (
        gg.rules.lsq_plus(w, s, bits=bits, axis=-1),
        [s],
        lambda s: Grid(s, 0, -high - 1, high),
    )


def weights_of_7_bits(w, size):
    return weights_by_channel(w, size, bits=7)


def weights_by_range(w, size):
    low, high = learned(-4 * size), learned(4.2 * size)
    return (
        gg.rules.fake_quantise(w, low, high),
        [low, high],
        lambda low, high: affine(low, high, 8),
    )


def unsigned(x, behind_relu, bits=8):
    low, high = np.float32(0.0 if behind_relu else -3.0), learned(6.0)
    y = gg.rules.fake_quantise(x, low, high, bits=bits)
    return y, [high], lambda high: affine(low, high, bits)


def signed(x, behind_relu):
    """Behind a Relu half of the numbers are for what never comes: nothing fuses."""
    s = learned(6.0 / 128)
    return gg.rules.lsq(x, s), [s], lambda s: Grid(s, 0, -128, 127)


def shifted(x, behind_relu):
    """Signed numbers whose zero is the least behind a Relu."""
    s, zero = learned(6.0 / 255), -128 if behind_relu else -43
    y = gg.rules.lsq_plus(x, s, np.float32(zero))
    return y, [s], lambda s: Grid(s, zero, -128, 127)


def of_4_bits(x, behind_relu):
    if not behind_relu:
        return unsigned(x, behind_relu)
    alpha = learned(6.0)
    y = gg.rules.pact(x, alpha, bits=4)
    return y, [alpha], lambda alpha: Grid(alpha / np.float32(15), 0, 0, 15)


SCHEMES = {
    "u8 s8": (weights_by_tensor, unsigned),
    "u8 s8 by channel": (weights_by_channel, unsigned),
    "u8 7 bits by channel": (weights_of_7_bits, unsigned),
    "u8 u8": (weights_by_range, unsigned),
    "s8 s8": (weights_by_tensor, signed),
    "s8 shifted, s8 by channel": (weights_by_channel, shifted),
    "u4 s8 by channel": (weights_by_channel, of_4_bits),
}


# --- the net ------------------------------------------------------------------------------------


class QuantisedNet(NamedTuple):
    """x to logits and what is on a grid on the way; the variables that are learned, and those of
    each layer and each grid, with what they say."""

    x: gg.Tensor
    logits: gg.Tensor
    hidden: list[gg.Tensor]
    layers: list[tuple[Any, Any, list[Any], Any]]
    grids: list[tuple[list[Any], Any]]

    @property
    def weights(self):
        return [v for w, b, *_ in self.layers for v in (w, b)]

    @property
    def ends(self):
        """What is learned of grids."""
        rows = [*[own for _, _, own, _ in self.layers], *[own for own, _ in self.grids]]
        return [v for row in rows for v in row]


def built(scheme):
    """Two convolutions, a pool, two dense layers, all on grids, biases and logits too."""
    of_weights, of_values = SCHEMES[scheme]
    rng = np.random.default_rng(0)
    x = gg.placeholder(("N", 8, 8, 1), "float32", name="x")
    layers, grids, hidden = [], [], []

    def on_grid(t, behind_relu):
        t, own, says = of_values(t, behind_relu)
        grids.append((own, says))
        hidden.append(t)
        return t

    def layer(h, *shape):
        size = np.sqrt(1 / np.prod(shape[:-1]))
        w = gg.variable((size * rng.normal(size=shape)).astype("float32"))
        b = gg.variable(np.zeros(shape[-1], "float32"))
        quantised, own, says = of_weights(w, size)
        layers.append((w, b, own, says))
        before, saying = grids[-1]
        step = gg.stop_gradient(saying(*before).step * says(*own).step)
        bias = gg.rules.lsq(b, step, bits=32)
        return (gg.nn.conv(h, quantised) if len(shape) == 4 else h @ quantised) + bias

    h = on_grid(x, False)
    h = on_grid(gg.nn.relu(layer(h, 3, 3, 1, 6)), True)
    h = on_grid(gg.nn.relu(layer(h, 3, 3, 6, 6)), True)
    h = gg.reshape(gg.nn.max_pool(h, 2), (x.shape[0], 96))
    h = on_grid(gg.nn.relu(layer(h, 96, 24)), True)
    logits = on_grid(layer(h, 24, 10) * np.float32(0.25), False)
    return QuantisedNet(x, logits, hidden, layers, grids)


@cache
def data():
    """Training pixels and labels, test pixels and labels, as images."""
    rows = digits.load(0)
    images = [
        a.astype("float32").reshape(-1, 8, 8, 1) for a in (rows.train_pixels, rows.test_pixels)
    ]
    return images[0], rows.train_labels, images[1], rows.test_labels


@cache
def trained(scheme):
    """A net after some steps, and its values."""
    images, labels, _, _ = data()
    with gg.Graph():
        net = built(scheme)
        y = gg.placeholder(("N",), "int64", name="y")
        loss = gg.mean(gg.nn.cross_entropy(net.logits * np.float32(4), y))
        updates = {}
        for rate, variables in ((0.02, net.weights), (1e-4, net.ends)):
            grads = gg.gradients(loss, variables)
            updates |= gg.optimizers.Adam(rate).updates(variables, grads)
        state = gg.State()
        step = gg.compile([net.x, y], loss, updates=updates, state=state)
        rng = np.random.default_rng(1)
        for _ in range(70):
            rows = rng.integers(len(images), size=64)
            step(images[rows], labels[rows])
    return net, state


# --- its twin -----------------------------------------------------------------------------------


def twin(net, state, images):
    """The numbers of every grid, by int64 alone."""
    grids = [says(*[state[v] for v in own]) for own, says in net.grids]
    layers = [
        (says(*[state[v] for v in own]), np.asarray(state[w]), np.asarray(state[b]))
        for w, b, own, says in net.layers
    ]
    numbers = [grids[0].numbers(images)]
    for i, (grid, w, b) in enumerate(layers):
        x = numbers[-1] - int(grids[i].zero)
        if i == 2:
            x = x.reshape(-1, 4, 2, 4, 2, 6).max((2, 4)).reshape(len(x), 96)
        y = _layer(x, grid, w, b, np.float32(grids[i].step))
        y = np.maximum(y, 0) if i < 3 else y / 4
        numbers.append(grids[i + 1].numbers(y))
    return numbers, grids


def _layer(x, grid, w, b, step):
    numbers = grid.numbers(w) - int(grid.zero)
    scale = step * np.float32(grid.step)
    bias = np.rint(b / scale).astype("int64")
    if w.ndim == 4:
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        x = sliding_window_view(padded, (3, 3), (1, 2)).transpose(0, 1, 2, 4, 5, 3)
        x = x.reshape(*x.shape[:3], -1)
    return (x @ numbers.reshape(-1, w.shape[-1]) + bias) * scale.astype("float64")
