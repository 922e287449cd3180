"""Optimisers: from parameters and their gradients to updates, which `compile` takes.

    train = gg.optimizers.Adam(1e-3).minimize(loss)
    session.run([loss, train], feeds)

or, with gradients in between and as one function of arrays,

    opt = gg.optimizers.Adam(1e-3)
    step = gg.compile([x, y], loss, updates=opt.updates(params, gg.gradients(loss, params)))

What an optimiser remembers (momentum, ...) is in variables of the same graph, so it is saved,
restored and shared as every variable is. The gradients of complex variables are those of
gg.gradients; a loss falls along their conjugates, which is what `update` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.domains import BELOW_ONE, NON_NEGATIVE, POSITIVE, PROBABILITY
from .base.errors import GradientError, ShapeError, StateError
from .base.first_tries import answer, unknown_names
from .base.flags import truth
from .base.kinds import FLOAT32, accumulated_in, is_half
from .differentiate.gradients import gradients
from .ir.graph import GraphScope
from .ir.node import Tensor
from .ir.program import needed
from .ops.base import as_tensor, cast, real_dtype, result_dtype, rounded_once
from .ops.demands import within
from .ops.elementwise.bounds import maximum, minimum
from .ops.elementwise.complex_parts import conj, imag, real
from .ops.elementwise.exponential import sqrt
from .ops.elementwise.logic import less, where
from .ops.elementwise.powers import power, square
from .ops.elementwise.rounding import floor
from .ops.elementwise.trigonometry import cos
from .ops.reduce.reductions import sum as reduce_sum
from .ops.sources import Variable, assign_together, variable

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSProp",
    "UpdateCall",
    "clip_by_global_norm",
    "clip_by_norm",
    "cosine_decay",
    "exponential_decay",
    "piecewise_constant",
    "polynomial_decay",
    "warmup",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)


Schedule = Callable[[Tensor], Tensor]
Rate = float | Tensor | Schedule
Updates = dict[Tensor, Tensor]


class Optimizer:
    """What optimisers share. A subclass writes `update`.

    Parameters:
        learning_rate: a finite number >= 0, a scalar tensor of one, or a schedule: a function of
            the step, which is an int64 tensor that counts the updates made before this one. What
            a schedule returns is checked like a rate.

    >>> class Sign(gg.optimizers.Optimizer):
    ...     def update(self, call, p, g):
    ...         return p - call.rate(p) * gg.sign(g)
    >>> w = gg.variable([1.0, 2.0])
    >>> updates = Sign(0.5).updates([w], gg.gradients([gg.sum(w * w)], [w]))
    >>> gg.evaluate(updates[w])
    array([0.5, 1.5])
    """

    def __init__(self, learning_rate: Rate) -> None:
        self.learning_rate = _rate("learning_rate", learning_rate)

    def updates(
        self, params: Sequence[Tensor], grads: Sequence[Any], *, skip_none: bool = False
    ) -> Updates:
        """The next values, for the `updates` of compile. Each call remembers anew.

        Parameters:
            params: variables.
            grads: for each its gradient, of its shape, which is cast to its dtype.
            skip_none: whether a variable whose gradient is None is left as it is.

        Returns: {variable: its next value}, those that the optimiser remembers among them.

        Complex gradients are conjugated: the loss falls along -conj(g). The next value of a
        variable of 16 bits is computed in float32, which `update` is given; what rounding it takes
        off is remembered and counts in the next update.

        Raises: GradientError for a gradient that is None, which names the variable, or not one for
        each; StateError for input that is not a variable; ShapeError for a gradient of another
        shape.
        """
        pairs = _pairs(list(params), list(grads), skip_none)
        if not pairs:
            return {}
        graph = pairs[0][0].node.graph
        assert graph is not None
        with GraphScope(graph):
            step = variable(0, "int64", name="optimizer/step", slot=True)
            call = UpdateCall(self, step)
            for p, g in pairs:
                call.updates[p] = self._next(call, p, conj(as_tensor(g)))
        return call.updates

    def minimize(
        self, loss: Tensor, params: Sequence[Tensor] | None = None, *, overrides: Any = None
    ) -> Tensor:
        """One step down the loss: the run that fetches it writes every parameter.

            train = gg.optimizers.Adam(1e-3).minimize(loss)
            value, _ = session.run([loss, train], {x: inputs, y: targets})

        What else the run fetches sees the values from before the step. For gradients that are
        changed on the way (clipped, added up) write gg.gradients and `updates`.

        Parameters:
            loss: 0-d, floating.
            params: variables; None: the trainable ones that the loss is made of.
            overrides: as for gg.gradients.

        Returns: a 0-d int64 tensor, how many steps were made with this one; for Session.run or
        among the outputs of gg.compile.

        Raises: ShapeError for a loss that is not a single number; GradientError where there is
        no parameter, or nothing flows to one; StateError for input that is not a variable.

        >>> w = gg.variable([1.0, 2.0])
        >>> train = gg.optimizers.SGD(0.25).minimize(gg.sum(w * w))
        >>> session = gg.Session()
        >>> session.run(train), session.run(w)
        (array(1), array([0.5, 1. ]))
        """
        if loss.shape != ():
            raise ShapeError(
                f"minimize() takes a loss that is one number, got {loss.name}: {loss.type!r} "
                f"(built at {loss.where}). Write gg.mean(loss) or gg.sum(loss)."
            )
        chosen = _trained(loss) if params is None else list(params)
        if not chosen:
            raise GradientError(
                f"there is nothing to train: {loss.name} (built at {loss.where}) depends on no "
                "trainable gg.variable"
            )
        assert loss.graph is not None
        with GraphScope(loss.graph):
            grads = gradients(loss, chosen, overrides=overrides)
            (step, after), *others = self.updates(chosen, grads).items()
            return assign_together({**dict(others), step: after})

    def _next(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p. Of 16 bits it is made in float32, and what rounding takes off is
        remembered: small steps add up."""
        if not is_half(p.dtype):
            return self.update(call, p, cast(g, p.dtype))
        made = []

        def rounded_off(rest: Tensor) -> Tensor:
            whole = cast(p, FLOAT32) + rest
            call.parameters[whole] = p
            new = self.update(call, whole, cast(g, FLOAT32))
            made.append(cast(new, p.dtype))
            return new - cast(made[0], FLOAT32)

        call.slot(p, "rounded_off", rounded_off, FLOAT32)
        return made[0]

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p. call: the rate, the step, and slots that are remembered."""
        raise NotImplementedError


class UpdateCall:
    """One call of `updates`.

    step        updates made before
    count       this update's number as float64, from 1
    updates     what is written; `slot` adds to it
    parameters  the variable that a tensor stands for which `update` is given in its place

    >>> class Fading(gg.optimizers.Optimizer):
    ...     def update(self, call, p, g):
    ...         return p - call.rate(p) * g / call.count
    >>> w = gg.variable(3.0)
    >>> step = gg.compile([], w, updates=Fading(1.0).updates([w], [gg.constant(1.0)]))
    >>> step(), step(), step()
    (array(3.), array(2.), array(1.5))
    """

    def __init__(self, optimizer: Optimizer, step: Tensor) -> None:
        self.step = step
        self.updates: Updates = {step: step + 1}
        self.parameters: dict[Tensor, Tensor] = {}
        rate = optimizer.learning_rate
        if callable(rate) and not isinstance(rate, Tensor):
            rate = _one_rate("the learning_rate of a schedule", rate(step))
        self._rate = rate

    @cached_property
    def count(self) -> Tensor:
        """Built where it is first read."""
        return cast(self.step + 1, "float64")

    def rate(self, p: Tensor) -> Tensor:
        """The learning rate, in p's dtype."""
        return as_tensor(self._rate, p.dtype)

    def slot(
        self, p: Tensor, name: str, next_value: Callable[[Tensor], Tensor], dtype: Any = None
    ) -> Tensor:
        """The next value of what is remembered of p under a name; zeros at first, of p's dtype."""
        dtype = p.dtype if dtype is None else dtype
        of = self.parameters.get(p, p).node.name
        start = variable(np.zeros(p.shape, dtype), name=f"{of}/{name}", slot=True)
        self.updates[start] = new = next_value(start)
        return new


class SGD(Optimizer):
    """Gradient descent: p - rate * g; with momentum p - rate * v where v = momentum * v + g.

    nesterov: p - rate * (momentum * v + g).

    Parameters:
        learning_rate: as for Optimizer.
        momentum: how much of v stays, a number in [0, 1].
        nesterov: whether to look ahead.

    Source: [Sutskever et al. 2013, "On the importance of initialization and momentum in deep
    learning"].

    >>> w = gg.variable(1.0)
    >>> updates = gg.optimizers.SGD(0.1).updates([w], gg.gradients([w * w], [w]))
    >>> gg.evaluate(updates[w])
    array(0.8)
    """

    def __init__(
        self, learning_rate: Rate = 0.01, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__(learning_rate)
        self.momentum = PROBABILITY("momentum", momentum)
        self.nesterov = truth("nesterov", nesterov)

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        if not self.momentum:
            return p - call.rate(p) * g
        v = call.slot(p, "momentum", lambda v: self.momentum * v + g)
        return p - call.rate(p) * (self.momentum * v + g if self.nesterov else v)


class Adam(Optimizer):
    """Adam with bias correction: p - rate * m' / (sqrt(v') + epsilon).

    m = beta1 * m + (1 - beta1) * g, m' = m / (1 - beta1**t); v = beta2 * v + (1 - beta2) * |g|**2,
    v' = v / (1 - beta2**t); t counts updates, from 1.

    Parameters:
        learning_rate: as for Optimizer.
        beta1, beta2: how much of m and of v stays, numbers in [0, 1).
        epsilon: against division by zero, a finite number >= 0.
        weight_decay: decoupled, added to the step as rate * weight_decay * p; a finite number >= 0.

    Source: [Kingma and Ba 2015, "Adam: a method for stochastic optimization"]; the decay:
    [Loshchilov and Hutter 2019, "Decoupled weight decay regularization"].

    >>> w = gg.variable(1.0)
    >>> updates = gg.optimizers.Adam(0.1).updates([w], gg.gradients([w * w], [w]))
    >>> round(float(gg.evaluate(updates[w])), 6)
    0.9
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
        self.beta1 = BELOW_ONE("beta1", beta1)
        self.beta2 = BELOW_ONE("beta2", beta2)
        self.epsilon = NON_NEGATIVE("epsilon", epsilon)
        self.weight_decay = NON_NEGATIVE("weight_decay", weight_decay)

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        m = call.slot(p, "adam_m", lambda m: self.beta1 * m + (1 - self.beta1) * g)
        v = _squares(call, p, "adam_v", lambda v: self.beta2 * v + (1 - self.beta2) * _size(g))
        mean = m / cast(1 - power(self.beta1, call.count), p.dtype)
        spread = sqrt(v / cast(1 - power(self.beta2, call.count), v.dtype))
        step = mean / (spread + self.epsilon)
        if self.weight_decay:
            step = step + self.weight_decay * p
        return p - call.rate(p) * step


class AdamW(Adam):
    """Adam with decoupled weight decay, 0.01 by default.

    Parameters:
        learning_rate, beta1, beta2, epsilon, weight_decay: as for Adam.

    Source: [Loshchilov and Hutter 2019, "Decoupled weight decay regularization"].

    >>> w = gg.variable(1.0)
    >>> updates = gg.optimizers.AdamW(0.1).updates([w], gg.gradients([w * w], [w]))
    >>> round(float(gg.evaluate(updates[w])), 6)
    0.899
    """

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
    """p - rate * g / (sqrt(v) + epsilon) where v = decay * v + (1 - decay) * |g|**2.

    Parameters:
        learning_rate: as for Optimizer.
        decay: how much of v stays, a number in [0, 1].
        epsilon: against division by zero, a finite number >= 0.

    Source: [Hinton 2012, "Neural networks for machine learning", lecture 6e].

    >>> w = gg.variable(1.0)
    >>> updates = gg.optimizers.RMSProp(0.1, decay=0.75).updates([w], gg.gradients([w * w], [w]))
    >>> round(float(gg.evaluate(updates[w])), 6)
    0.8
    """

    def __init__(
        self, learning_rate: Rate = 1e-3, decay: float = 0.9, epsilon: float = 1e-8
    ) -> None:
        super().__init__(learning_rate)
        self.decay = PROBABILITY("decay", decay)
        self.epsilon = NON_NEGATIVE("epsilon", epsilon)

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        v = _squares(call, p, "rms", lambda v: self.decay * v + (1 - self.decay) * _size(g))
        return p - call.rate(p) * g / (sqrt(v) + self.epsilon)


class AdaGrad(Optimizer):
    """p - rate * g / (sqrt(v) + epsilon) where v = v + |g|**2.

    Parameters:
        learning_rate: as for Optimizer.
        epsilon: against division by zero, a finite number >= 0.

    Source: [Duchi et al. 2011, "Adaptive subgradient methods for online learning and stochastic
    optimization"].

    >>> w = gg.variable(1.0)
    >>> updates = gg.optimizers.AdaGrad(0.1).updates([w], gg.gradients([w * w], [w]))
    >>> round(float(gg.evaluate(updates[w])), 6)
    0.9
    """

    def __init__(self, learning_rate: Rate = 0.01, epsilon: float = 1e-8) -> None:
        super().__init__(learning_rate)
        self.epsilon = NON_NEGATIVE("epsilon", epsilon)

    def update(self, call: UpdateCall, p: Tensor, g: Tensor) -> Tensor:
        """The next value of p."""
        v = _squares(call, p, "adagrad", lambda v: v + _size(g))
        return p - call.rate(p) * g / (sqrt(v) + self.epsilon)


def _rate(what: str, rate: Any) -> Any:
    """A learning rate: a number, a tensor of one, or a schedule, which `UpdateCall` asks."""
    known = isinstance(rate, Tensor) or not callable(rate)
    return _one_rate(what, rate) if known else rate


def _one_rate(what: str, rate: Any) -> Any:
    """A number, or a tensor of one, that is >= 0."""
    if not isinstance(rate, Tensor):
        return NON_NEGATIVE(what, rate)
    if rate.shape != ():
        raise ShapeError(
            f"{what} is one number, got {rate.name}: {rate.type!r} (built at {rate.where})"
        )
    return within(NON_NEGATIVE, what, rate)


def _trained(loss: Tensor) -> list[Tensor]:
    """The trainable variables that a loss is made of, in the order in which they were built."""
    assert loss.graph is not None
    made_of = set(needed([], [loss]))
    return [v for v in loss.graph.variables.trainable if v.node in made_of]


def _squares(
    call: UpdateCall, p: Tensor, name: str, next_value: Callable[[Tensor], Tensor]
) -> Tensor:
    """The next value of what is remembered of squares: floating for complex p."""
    return call.slot(p, name, next_value, real_dtype(p.dtype))


def _size(g: Tensor) -> Tensor:
    """|g|**2, element by element; floating for complex g."""
    return square(real(g)) + square(imag(g)) if g.type.complex else square(g)


def clip_by_global_norm(
    grads: Sequence[Tensor | None], norm: float | Tensor
) -> tuple[list[Tensor | None], Tensor]:
    """Gradients scaled so that all of them together have at most this norm.

    With a norm that is infinite or NaN the gradients become NaN.

    Parameters:
        grads: floating or complex tensors; None stays None.
        norm: a finite number > 0, or a 0-d tensor of one.

    Returns: (the gradients times min(1, norm / had), had): had is the Euclidean norm they had.

    Raises: GradientError where all are None, or there are none.

    Source: [Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent neural
    networks"].

    >>> grads = [gg.constant([3.0]), None, gg.constant(4.0)]
    >>> gg.evaluate(gg.optimizers.clip_by_global_norm(grads, 1.0))
    ([array([0.6]), None, array(0.8)], array(5.))
    """
    present = [g for g in grads if g is not None]
    if not present:
        raise GradientError("clip_by_global_norm() was given no gradient")
    squares = [reduce_sum(_size(cast(g, accumulated_in(g.dtype)))) for g in present]
    total = squares[0]
    for more in squares[1:]:
        total = total + more
    had = sqrt(total)
    limit = cast(as_tensor(within(POSITIVE, "norm", norm)), had.dtype)
    scale = limit / maximum(had, limit)
    small = result_dtype([real_dtype(g.dtype) for g in present])

    def scaled(g: Tensor) -> Tensor:
        return g * cast(scale, g.dtype)

    return [None if g is None else rounded_once(scaled, g) for g in grads], cast(had, small)


def clip_by_norm(grads: Sequence[Tensor | None], norm: float | Tensor) -> list[Tensor | None]:
    """Gradients scaled so that each of them by itself has at most this norm.

    With a norm that is infinite or NaN a gradient becomes NaN.

    Parameters:
        grads: floating or complex tensors; None stays None.
        norm: a finite number > 0, or a 0-d tensor of one.

    Returns: the gradients, each times min(1, norm / its Euclidean norm).

    Raises: GradientError where all are None, or there are none.

    Source: [Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent neural
    networks"].

    >>> grads = [gg.constant([3.0, 4.0]), None, gg.constant(0.5)]
    >>> gg.evaluate(gg.optimizers.clip_by_norm(grads, 1.0))
    [array([0.6, 0.8]), None, array(0.5)]
    """
    if all(g is None for g in grads):
        raise GradientError("clip_by_norm() was given no gradient")
    return [None if g is None else clip_by_global_norm([g], norm)[0][0] for g in grads]


# --- learning rates as functions of the step ------------------------------------------------------


def exponential_decay(start: float, steps: int, rate: float, staircase: bool = False) -> Schedule:
    """start * rate ** (step / steps).

    Parameters:
        start: the value at step 0, a finite number >= 0.
        steps: in how many steps it is multiplied by the rate once, a finite number > 0.
        rate: the factor, a finite number > 0.
        staircase: in whole powers only.

    Returns: a function of the step, for the learning rate of an optimiser.

    >>> gg.evaluate(gg.optimizers.exponential_decay(1.0, 10, 0.5)(gg.constant(20)))
    array(0.25)
    """
    NON_NEGATIVE("start", start)
    POSITIVE("steps", steps)
    POSITIVE("rate", rate)
    truth("staircase", staircase)

    def schedule(step: Tensor) -> Tensor:
        along = cast(step, "float64") / steps
        return start * power(rate, floor(along) if staircase else along)

    return schedule


def cosine_decay(start: float, steps: int, end: float = 0.0) -> Schedule:
    """From start to end along half a cosine, then end.

    Parameters:
        start: the value at step 0, a finite number >= 0.
        steps: how many steps it takes, a finite number > 0.
        end: the value from there on, a finite number >= 0.

    Returns: a function of the step, for the learning rate of an optimiser.

    Source: [Loshchilov and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts"].

    >>> round(float(gg.evaluate(gg.optimizers.cosine_decay(1.0, 10)(gg.constant(5)))), 6)
    0.5
    """
    _check_way(start, steps, end)

    def schedule(step: Tensor) -> Tensor:
        return end + (start - end) * 0.5 * (1 + cos(pi * _part(step, steps)))

    return schedule


def polynomial_decay(start: float, steps: int, end: float = 0.0, degree: float = 1.0) -> Schedule:
    """From start to end as (1 - step / steps) ** degree, then end.

    Parameters:
        start: the value at step 0, a finite number >= 0.
        steps: how many steps it takes, a finite number > 0.
        end: the value from there on, a finite number >= 0.
        degree: 1 for a straight line; a finite number > 0.

    Returns: a function of the step, for the learning rate of an optimiser.

    >>> gg.evaluate(gg.optimizers.polynomial_decay(1.0, 10)(gg.constant(5)))
    array(0.5)
    """
    _check_way(start, steps, end)
    POSITIVE("degree", degree)

    def schedule(step: Tensor) -> Tensor:
        return end + (start - end) * power(1 - _part(step, steps), degree)

    return schedule


def piecewise_constant(boundaries: Sequence[int], values: Sequence[float]) -> Schedule:
    """values[i] before boundaries[i], and the last value after them all.

    Parameters:
        boundaries: steps, finite numbers >= 0, increasing.
        values: one more than boundaries, finite numbers >= 0.

    Returns: a function of the step, for the learning rate of an optimiser.

    Raises: ValueError for another number of values, or boundaries that are not in order.

    >>> gg.evaluate(gg.optimizers.piecewise_constant([10], [0.1, 0.01])(gg.constant(10)))
    array(0.01)
    """
    for boundary in boundaries:
        NON_NEGATIVE("boundaries", boundary)
    for value in values:
        NON_NEGATIVE("values", value)
    if len(values) != len(boundaries) + 1 or sorted(boundaries) != list(boundaries):
        raise ValueError(
            "values must have one entry more than boundaries, which must increase: got "
            f"{boundaries}, {values}"
        )

    def schedule(step: Tensor) -> Tensor:
        rate = as_tensor(values[-1], "float64")
        for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
            rate = where(less(step, boundary), value, rate)
        return rate

    return schedule


def warmup(steps: int, then: float | Schedule) -> Schedule:
    """Linearly up over these steps, times what `then` gives.

    Parameters:
        steps: how many steps it takes to the whole, a finite number > 0.
        then: a finite number >= 0, or a schedule.

    Returns: a function of the step, for the learning rate of an optimiser.

    Source: [Goyal et al. 2017, "Accurate, large minibatch SGD"].

    >>> gg.evaluate(gg.optimizers.warmup(4, 0.1)(gg.constant(0)))
    array(0.025)
    """
    POSITIVE("steps", steps)
    then = _rate("then", then)

    def schedule(step: Tensor) -> Tensor:
        after = then(step) if callable(then) else then
        return minimum(cast(step + 1, "float64") / steps, 1.0) * after

    return schedule


def _check_way(start: float, steps: int, end: float) -> None:
    """Of a schedule from start to end."""
    NON_NEGATIVE("start", start)
    POSITIVE("steps", steps)
    NON_NEGATIVE("end", end)


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


answer(Optimizer)
