"""Recurrent layers, as one scan for each direction.

Weights are (directions, gates * hidden, inputs); gates stand one after the other: i o f c for
LSTM, z r h for GRU. x is (time, batch, inputs), or (batch, time, inputs) with layout=1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops import nn
from ....ops.base import cast, constant
from ....ops.create.creation import zeros_like
from ....ops.elementwise.bounds import clip
from ....ops.elementwise.logic import greater, where
from ....ops.elementwise.trigonometry import tanh
from ....ops.nn.activations import sigmoid
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import split, stack
from ....ops.shape.reshaping import expand_dims, transpose
from ..call import OperatorCall
from ..lengths import expanded, lengths_of
from .common import few
from .loops import over_rows
from .table import form

Activation: TypeAlias = Callable[[Tensor], Tensor]


class Direction(NamedTuple):
    """One direction of a recurrent layer.

    w, r        weights of inputs (gates * hidden, inputs) and of what came before
    b           both biases, or None
    states      what the first step takes, each (batch, hidden)
    peepholes   (3 * hidden,), or None
    activations what the gates go through
    """

    w: Tensor
    r: Tensor
    b: Tensor | None
    states: tuple[Tensor, ...]
    peepholes: Tensor | None
    activations: list[Activation]
    clip: float | None


Step: TypeAlias = Callable[[Direction, tuple[Tensor, ...], Tensor], tuple[Tensor, ...]]


@form("RNN")
def _rnn(call: OperatorCall) -> Any:
    def step(layer: Direction, states: tuple[Tensor, ...], x: Tensor) -> tuple[Tensor, ...]:
        (h,) = states
        return (layer.activations[0](_held(layer, _gates(layer, x, h))),)

    return _layer(call, 1, 1, ["Tanh"], step)


@form("GRU")
def _gru(call: OperatorCall) -> Any:
    later = call.attribute("linear_before_reset", 0)

    def step(layer: Direction, states: tuple[Tensor, ...], x: Tensor) -> tuple[Tensor, ...]:
        (h,) = states
        f, g = layer.activations
        wz, wr, wh = split(x, 3, -1)
        rz, rr, rh = split(layer.r, 3, 0)
        before: Any = (None, None, None)
        if layer.b is not None:
            wb, rb = split(layer.b, 2, 0)
            bias = split(wb, 3, 0)
            wz, wr, wh = wz + bias[0], wr + bias[1], wh + bias[2]
            before = split(rb, 3, 0)

        def recurrent(taken: Tensor, weights: Tensor, i: int) -> Tensor:
            made = taken @ transpose(weights)
            return made if before[i] is None else made + before[i]

        z = f(_held(layer, wz + recurrent(h, rz, 0)))
        r = f(_held(layer, wr + recurrent(h, rr, 1)))
        inner = r * recurrent(h, rh, 2) if later else recurrent(r * h, rh, 2)
        candidate = g(_held(layer, wh + inner))
        return ((1 - z) * candidate + z * h,)

    return _layer(call, 3, 1, ["Sigmoid", "Tanh"], step)


@form("LSTM")
def _lstm(call: OperatorCall) -> Any:
    coupled = call.attribute("input_forget", 0)

    def step(layer: Direction, states: tuple[Tensor, ...], x: Tensor) -> tuple[Tensor, ...]:
        h, c = states
        f, g, last = layer.activations
        i, o, forget, cell = split(_gates(layer, x, h), 4, -1)
        seen = (None, None, None)
        if layer.peepholes is not None:
            seen = split(layer.peepholes, 3, 0)  # type: ignore[assignment]
        i = f(_held(layer, _peeped(i, seen[0], c)))
        forget = 1 - i if coupled else f(_held(layer, _peeped(forget, seen[2], c)))
        c = forget * c + i * g(_held(layer, cell))
        o = f(_held(layer, _peeped(o, seen[1], c)))
        return o * last(c), c

    return _layer(call, 4, 2, ["Sigmoid", "Tanh", "Tanh"], step)


def _gates(layer: Direction, x: Tensor, h: Tensor) -> Tensor:
    """What goes into the gates: x has been multiplied by its weights before the loop."""
    made = x + h @ transpose(layer.r)
    if layer.b is None:
        return made
    wb, rb = split(layer.b, 2, 0)
    return made + wb + rb


def _peeped(x: Tensor, weights: Tensor | None, c: Tensor) -> Tensor:
    return x if weights is None else x + weights * c


def _held(layer: Direction, x: Tensor) -> Tensor:
    return x if layer.clip is None else clip(x, -layer.clip, layer.clip)


def _layer(call: OperatorCall, gates: int, states: int, default: list[str], step: Step) -> Any:
    """Y of all steps, and the states of the last one."""
    x = call.tensor(0)
    layout, hidden = call.attribute("layout", 0), call.attribute("hidden_size")
    x = transpose(x, (1, 0, 2)) if layout else x
    direction = call.attribute("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if ways is None:
        raise FileError(f"its direction {direction!r:.40} is unknown")
    hidden = call.tensor(2).shape[2] if hidden is None else hidden
    lengths = call.optional(4)
    activations = _activations(call, default, len(ways))
    at_most = call.attribute("clip")
    runs = []
    for i, reverse in enumerate(ways):
        start = tuple(_start(call, x, 5 + k, i, hidden, bool(layout)) for k in range(states))
        bias, seen = call.optional(3), call.optional(7) if states == 2 else None
        layer = Direction(
            getitem(call.tensor(1), i),
            getitem(call.tensor(2), i),
            None if bias is None else getitem(bias, i),
            start,
            None if seen is None else getitem(seen, i),
            activations[i * len(default) : (i + 1) * len(default)],
            at_most,
        )
        runs.append(_run(call, layer, x, lengths, reverse, step))
    last = [stack([run[0][k] for run in runs]) for k in range(states)]
    y = stack([run[1] for run in runs], 1)
    if layout:
        y, last = transpose(y, (2, 0, 1, 3)), [transpose(h, (1, 0, 2)) for h in last]
    return y, *last


def _start(call: OperatorCall, x: Tensor, i: int, way: int, hidden: Any, by_batch: bool) -> Tensor:
    """What the first step takes: given, or zeros."""
    given = call.optional(i)
    if given is not None:
        return getitem(given, (slice(None), way) if by_batch else way)
    batch = getitem(x, 0)
    zeros_ = constant(np.zeros((1, few(hidden))), x.dtype)
    return expanded(zeros_, [lengths_of(batch)[0], hidden])


def _run(
    call: OperatorCall,
    layer: Direction,
    x: Tensor,
    lengths: Tensor | None,
    reverse: bool,
    step: Step,
) -> tuple[tuple[Tensor, ...], Tensor]:
    """The last states, and the first state after each step."""
    rows = x @ transpose(layer.w)

    def plain(states: Any, taken: Any) -> Any:
        after = step(layer, states, taken[0])
        return after, (after[0],)

    if lengths is None:
        states, (y,) = over_rows(call, plain, layer.states, (rows,), reverse)
        return states, y
    count = x.shape[0]
    if not isinstance(count, int):
        raise ShapeError(f"{x!r} needs a known number of steps for sequence_lens")
    counts = expand_dims(cast(lengths, as_dtype("int64")), -1)

    def guarded(states: Any, taken: Any) -> Any:
        """Beyond the end of a sequence its states stay, and what comes out is zero."""
        row, t = taken
        after = step(layer, states, row)
        runs = t < counts
        kept = tuple([where(runs, a, b) for a, b in zip(after, states, strict=True)])
        return kept, (where(runs, after[0], zeros_like(after[0])),)

    times = constant(np.arange(few(count)), "int64")
    states, (y,) = over_rows(call, guarded, layer.states, (rows, times), reverse)
    return states, y


def _activations(call: OperatorCall, default: list[str], ways: int) -> list[Activation]:
    """The activation of each gate, each direction one after the other."""
    names = call.attribute("activations") or default * ways
    alphas = list(call.attribute("activation_alpha") or [])
    betas = list(call.attribute("activation_beta") or [])
    if len(names) != len(default) * ways:
        raise FileError(f"it has {len(names)} activations, not {len(default) * ways}")
    activations: list[Activation] = []
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            raise FileError(f"its activation {name!r:.40} is unknown")
        fn, alpha, beta = _ACTIVATIONS[key]
        a = alphas.pop(0) if alphas and alpha is not None else alpha
        b = betas.pop(0) if betas and beta is not None else beta
        activations.append(partial(fn, a, b))
    return activations


_ACTIVATIONS: dict[str, tuple[Any, float | None, float | None]] = {
    "relu": (lambda a, b, x: nn.relu(x), None, None),
    "tanh": (lambda a, b, x: tanh(x), None, None),
    "sigmoid": (lambda a, b, x: sigmoid(x), None, None),
    "affine": (lambda a, b, x: x * a + b, 1.0, 0.0),
    "leakyrelu": (lambda a, b, x: nn.leaky_relu(x, a), 0.01, None),
    "thresholdedrelu": (lambda a, b, x: where(greater(x, a), x, zeros_like(x)), 1.0, None),
    "scaledtanh": (lambda a, b, x: tanh(x * b) * a, 1.0, 1.0),
    "hardsigmoid": (lambda a, b, x: clip(x * a + b, 0.0, 1.0), 0.2, 0.5),
    "elu": (lambda a, b, x: nn.elu(x, a), 1.0, None),
    "softsign": (lambda a, b, x: nn.soft_sign(x), None, None),
    "softplus": (lambda a, b, x: nn.softplus(x), None, None),
}
"""Of (alpha, beta, x), with the defaults of what is read of them."""
