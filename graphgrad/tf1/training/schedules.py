"""Learning rates that change with the step."""

from __future__ import annotations

import math
from typing import Any

from ..control_flow import case
from ..create import apply, convert_to_tensor, name_scope
from ..graph import Tensor
from ..ops import math as M

__all__ = [
    "cosine_decay", "exponential_decay", "inverse_time_decay", "natural_exp_decay",
    "piecewise_constant", "polynomial_decay",
]  # fmt: skip


def _ratio(step: Any, decay_steps: Any, kind: Any, staircase: bool) -> Tensor:
    p = M.truediv(M.cast(step, kind), M.cast(decay_steps, kind))
    return M.floor(p) if staircase else p


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: Any = None,
) -> Tensor:
    """lr rate^(step / steps)."""
    _needs(global_step)
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        lr = convert_to_tensor(learning_rate, name="learning_rate")
        p = _ratio(global_step, decay_steps, lr.dtype, staircase)
        return M.multiply(lr, M.pow(M.cast(decay_rate, lr.dtype), p), name=scope)


def _needs(global_step: Any) -> None:
    if global_step is None:
        raise ValueError("global_step is required for a schedule.")


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: Any = None,
) -> Tensor:
    """lr exp(-rate step / steps)."""
    _needs(global_step)
    rate = M.exp(M.negative(convert_to_tensor(decay_rate, "float32")))
    return exponential_decay(learning_rate, global_step, decay_steps, rate, staircase, name)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: Any = None,
) -> Tensor:
    """lr / (1 + rate step / steps)."""
    _needs(global_step)
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        lr = convert_to_tensor(learning_rate, name="learning_rate")
        p = _ratio(global_step, decay_steps, lr.dtype, staircase)
        below = M.add(1.0, M.multiply(M.cast(decay_rate, lr.dtype), p))
        return apply("RealDiv", lr, below, name=scope)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: Any = None,
) -> Tensor:
    """(lr - end) (1 - step / steps)^power + end; with cycle, steps grow to a multiple."""
    _needs(global_step)
    with name_scope(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        lr = convert_to_tensor(learning_rate, name="learning_rate")
        step, steps = M.cast(global_step, lr.dtype), M.cast(decay_steps, lr.dtype)
        end = M.cast(end_learning_rate, lr.dtype)
        if cycle:
            times = M.maximum(M.ceil(M.truediv(step, steps)), 1.0)
            steps = M.multiply(steps, times)
        else:
            step = M.minimum(step, steps)
        p = M.truediv(step, steps)
        rest = M.pow(M.subtract(1.0, p), M.cast(power, lr.dtype))
        return M.add(M.multiply(M.subtract(lr, end), rest), end, name=scope)


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: Any = None
) -> Tensor:
    """lr ((1 - alpha) (1 + cos(pi step / steps)) / 2 + alpha)."""
    _needs(global_step)
    with name_scope(name, "CosineDecay", [learning_rate, global_step]):
        lr = convert_to_tensor(learning_rate, name="learning_rate")
        step, steps = M.cast(global_step, lr.dtype), M.cast(decay_steps, lr.dtype)
        done = M.truediv(M.minimum(step, steps), steps)
        wave = M.multiply(0.5, M.add(1.0, M.cos(M.multiply(math.pi, done))))
        return M.multiply(lr, M.add(M.multiply(1 - alpha, wave), alpha))


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: Any = None) -> Tensor:
    """values[i], with i the number of boundaries that x is above."""
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name, "PiecewiseConstant", [x, *boundaries, *values]):
        x = convert_to_tensor(x)
        limits = [convert_to_tensor(b, x.dtype.base_dtype) for b in boundaries]
        given = [convert_to_tensor(v) for v in values]
        pairs = [(M.less_equal(x, b), (lambda v=v: v)) for b, v in zip(limits, given)]
        return case(pairs, default=lambda: given[-1])
