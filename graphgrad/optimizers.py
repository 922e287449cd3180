"""Optimisers: from parameters and their gradients to updates, which `compile` takes.

    opt = gg.optimizers.Adam(1e-3)
    step = gg.compile([x, y], loss, updates=opt.updates(params, gg.gradients(loss, params)))

What an optimiser remembers (momentum, ...) is in variables of the same graph, so it is saved,
restored and shared as every variable is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np

from .ir.errors import GradientError, ShapeError, StateError
from .ir.graph import GraphScope
from .ir.node import Tensor
from .ops.arithmetic import floor, maximum, minimum, power, square
from .ops.base import as_tensor, cast
from .ops.exponential import sqrt
from .ops.logic import less, where
from .ops.reductions import sum as reduce_sum
from .ops.sources import Variable, variable
from .ops.trigonometry import cos

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSProp",
    "UpdateCall",
    "clip_by_global_norm",
    "cosine_decay",
    "exponential_decay",
    "piecewise_constant",
    "polynomial_decay",
    "warmup",
]


def __dir__() -> list[str]:
    return __all__


Schedule = Callable[[Tensor], Tensor]
Rate = float | Tensor | Schedule
Updates = dict[Tensor, Tensor]


class Optimizer:
    """What optimisers share. A subclass writes `update`.

    learning_rate: a number, a scalar tensor, or a schedule: a function of the step, which is an
    int64 tensor that counts the updates made before this one.
    """

    def __init__(self, learning_rate: Rate) -> None:
        self.learning_rate = learning_rate

    def updates(
        self, params: Sequence[Tensor], grads: Sequence[Any], *, skip_none: bool = False
    ) -> Updates:
        """{variable: its next value}, for the `updates` of compile. Each call remembers anew.

        GradientError names a variable whose gradient is None, unless skip_none leaves it as it is.
        """
        pairs = _pairs(list(params), list(grads), skip_none)
        if not pairs:
            return {}
        graph = pairs[0][0].node.graph
        assert graph is not None
        with GraphScope(graph):
            step = variable(0, "int64", name="optimizer/step")
            call = UpdateCall(self, step)
            for p, g in pairs:
                call.updates[p] = self.update(call, p, cast(as_tensor(g), p.dtype))
        return call.updates

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p. call: the rate, the step, and slots that are remembered."""
        raise NotImplementedError


class UpdateCall:
    """One call of `updates`.

    step     updates made before
    count    this update's number as float64, from 1
    updates  what is written; `slot` adds to it
    """

    def __init__(self, optimizer: Optimizer, step: Tensor) -> None:
        self.step = step
        self.updates: Updates = {step: step + 1}
        self.count = cast(step + 1, "float64")
        rate = optimizer.learning_rate
        if callable(rate) and not isinstance(rate, Tensor):
            rate = rate(step)
        self._rate = rate

    def rate(self, p: Tensor) -> Tensor:
        """The learning rate, in p's dtype."""
        return as_tensor(self._rate, p.dtype)

    def slot(self, p: Tensor, name: str, next_value: Callable[[Tensor], Tensor]) -> Tensor:
        """The next value of what is remembered of p under a name; zeros at first."""
        start = variable(np.zeros(p.shape, p.dtype), name=f"{p.node.name}/{name}")
        self.updates[start] = new = next_value(start)
        return new


class SGD(Optimizer):
    """p - rate * g; with momentum p - rate * v where v = momentum * v + g.

    nesterov: p - rate * (momentum * v + g) [Sutskever et al. 2013].
    """

    def __init__(
        self, learning_rate: Rate = 0.01, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum
        self.nesterov = nesterov

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        if not self.momentum:
            return p - call.rate(p) * g
        v = call.slot(p, "momentum", lambda v: self.momentum * v + g)
        return p - call.rate(p) * (self.momentum * v + g if self.nesterov else v)


class Adam(Optimizer):
    """Adam with bias correction [Kingma and Ba 2015].

    weight_decay: decoupled, added to the step as rate * weight_decay * p
    [Loshchilov and Hutter 2019].
    """

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(learning_rate)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.weight_decay = weight_decay

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        m = call.slot(p, "adam_m", lambda m: self.beta1 * m + (1 - self.beta1) * g)
        v = call.slot(p, "adam_v", lambda v: self.beta2 * v + (1 - self.beta2) * square(g))
        mean = m / cast(1 - power(self.beta1, call.count), p.dtype)
        spread = sqrt(v / cast(1 - power(self.beta2, call.count), p.dtype))
        step = mean / (spread + self.epsilon)
        if self.weight_decay:
            step = step + self.weight_decay * p
        return p - call.rate(p) * step


class AdamW(Adam):
    """Adam with decoupled weight decay, 0.01 by default [Loshchilov and Hutter 2019]."""

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, weight_decay)


class RMSProp(Optimizer):
    """p - rate * g / (sqrt(v) + epsilon) where v = decay * v + (1 - decay) * g**2 [Hinton 2012]."""

    def __init__(
        self, learning_rate: Rate = 1e-3, decay: float = 0.9, epsilon: float = 1e-8
    ) -> None:
        super().__init__(learning_rate)
        self.decay = decay
        self.epsilon = epsilon

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        v = call.slot(p, "rms", lambda v: self.decay * v + (1 - self.decay) * square(g))
        return p - call.rate(p) * g / (sqrt(v) + self.epsilon)


class AdaGrad(Optimizer):
    """p - rate * g / (sqrt(v) + epsilon) where v = v + g**2 [Duchi et al. 2011]."""

    def __init__(self, learning_rate: Rate = 0.01, epsilon: float = 1e-8) -> None:
        super().__init__(learning_rate)
        self.epsilon = epsilon

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        v = call.slot(p, "adagrad", lambda v: v + square(g))
        return p - call.rate(p) * g / (sqrt(v) + self.epsilon)


def clip_by_global_norm(
    grads: Sequence[Tensor | None], norm: float | Tensor
) -> tuple[list[Tensor | None], Tensor]:
    """Gradients scaled so that all of them together have at most this norm, and the norm they had.

    None stays None. With a norm that is infinite or NaN the gradients become NaN.
    """
    present = [g for g in grads if g is not None]
    if not present:
        raise GradientError("clip_by_global_norm() was given no gradient")
    squares = [reduce_sum(square(g)) for g in present]
    total = squares[0]
    for more in squares[1:]:
        total = total + more
    had = sqrt(total)
    limit = cast(as_tensor(norm), had.dtype)
    scale = limit / maximum(had, limit)
    return [None if g is None else g * cast(scale, g.dtype) for g in grads], had


# --- learning rates as functions of the step ------------------------------------------------------


def exponential_decay(start: float, steps: int, rate: float, staircase: bool = False) -> Schedule:
    """start * rate ** (step / steps); staircase: in whole powers only."""

    def schedule(step: Tensor) -> Tensor:
        along = cast(step, "float64") / steps
        return start * power(rate, floor(along) if staircase else along)

    return schedule


def cosine_decay(start: float, steps: int, end: float = 0.0) -> Schedule:
    """From start to end along half a cosine, then end [Loshchilov and Hutter 2017]."""

    def schedule(step: Tensor) -> Tensor:
        return end + (start - end) * 0.5 * (1 + cos(pi * _part(step, steps)))

    return schedule


def polynomial_decay(start: float, steps: int, end: float = 0.0, degree: float = 1.0) -> Schedule:
    """From start to end as (1 - step / steps) ** degree, then end."""

    def schedule(step: Tensor) -> Tensor:
        return end + (start - end) * power(1 - _part(step, steps), degree)

    return schedule


def piecewise_constant(boundaries: Sequence[int], values: Sequence[float]) -> Schedule:
    """values[i] before boundaries[i], and the last value after them all."""
    if len(values) != len(boundaries) + 1 or sorted(boundaries) != list(boundaries):
        raise ValueError(
            f"one value more than boundaries, which increase: got {boundaries}, {values}"
        )

    def schedule(step: Tensor) -> Tensor:
        rate = as_tensor(values[-1], "float64")
        for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
            rate = where(less(step, boundary), value, rate)
        return rate

    return schedule


def warmup(steps: int, then: float | Schedule) -> Schedule:
    """Linearly from 0 over these steps, times what `then` gives."""

    def schedule(step: Tensor) -> Tensor:
        after = then(step) if callable(then) else then
        return minimum(cast(step + 1, "float64") / steps, 1.0) * after

    return schedule


def _part(step: Tensor, steps: int) -> Tensor:
    return minimum(cast(step, "float64") / steps, 1.0)


def _pairs(params: list[Tensor], grads: list[Any], skip_none: bool) -> list[tuple[Tensor, Any]]:
    if len(params) != len(grads):
        raise GradientError(f"{len(params)} parameters, but {len(grads)} gradients")
    for p, g in zip(params, grads, strict=True):
        if not isinstance(p, Tensor) or type(p.node.op) is not Variable:
            raise StateError(f"parameters are variables, got {p!r}")
        if g is None and not skip_none:
            raise GradientError(
                f"the gradient of {p.name} (built at {p.where}) is None: nothing flows to it.\n"
                "Leave it out, or say skip_none=True."
            )
        if isinstance(g, Tensor) and g.shape != p.shape:
            raise ShapeError(f"the gradient of {p.name} is {g.type!r}, the variable {p.type!r}")
    return [(p, g) for p, g in zip(params, grads, strict=True) if g is not None]
