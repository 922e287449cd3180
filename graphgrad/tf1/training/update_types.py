"""Op types that change variables by a gradient: TensorFlow 1's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphgrad as gg

from ..definition import define

__all__: list[str] = []


def _infer(inputs: Any, attrs: Any) -> Any:
    return inputs[0]._shape


def _ref(inputs: Any, attrs: Any) -> Any:
    return [inputs[0].dtype]


def update(type: str, arguments: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define an op type that changes variables."""
    return define(type, arguments, infer=_infer, types=_ref, stateful=True)


def _set(trace: Any, op: Any, place: int, value: Any) -> Any:
    return trace.assign(op.inputs[place], value)


@update("ApplyGradientDescent", "var:R alpha:A delta:A")
def _descent(trace: Any, op: Any, var: Any, alpha: Any, delta: Any) -> Any:
    return _set(trace, op, 0, var - alpha * delta)


@update("ApplyMomentum", "var:R accum:R lr:A grad:A momentum:A")
def _momentum(trace: Any, op: Any, var: Any, accum: Any, lr: Any, grad: Any, rate: Any) -> Any:
    accum = _set(trace, op, 1, accum * rate + grad)
    if op.attrs["use_nesterov"]:
        return _set(trace, op, 0, var - (grad * lr + accum * rate * lr))
    return _set(trace, op, 0, var - accum * lr)


@update(
    "ApplyAdam", "var:R m:R v:R beta1_power:A beta2_power:A lr:A beta1:A beta2:A epsilon:A grad"
)
def _adam(
    trace: Any, op: Any, var: Any, m: Any, v: Any, power1: Any, power2: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any, grad: Any,
) -> Any:  # fmt: skip
    alpha = lr * gg.sqrt(1 - power2) / (1 - power1)
    m = _set(trace, op, 1, m + (grad - m) * (1 - beta1))
    v = _set(trace, op, 2, v + (gg.square(grad) - v) * (1 - beta2))
    if op.attrs.get("use_nesterov"):
        m = grad * (1 - beta1) + beta1 * m
    return _set(trace, op, 0, var - m * alpha / (gg.sqrt(v) + epsilon))


@update("ApplyRMSProp", "var:R ms:R mom:R lr:A rho:A momentum:A epsilon:A grad")
def _rms(
    trace: Any, op: Any, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any,
    epsilon: Any, grad: Any,
) -> Any:  # fmt: skip
    ms = _set(trace, op, 1, ms + (gg.square(grad) - ms) * (1 - rho))
    mom = _set(trace, op, 2, mom * momentum + grad * lr / gg.sqrt(ms + epsilon))
    return _set(trace, op, 0, var - mom)


@update("ApplyCenteredRMSProp", "var:R mg:R ms:R mom:R lr:A rho:A momentum:A epsilon:A grad")
def _centred_rms(
    trace: Any, op: Any, var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any,
    epsilon: Any, grad: Any,
) -> Any:  # fmt: skip
    ms = _set(trace, op, 2, ms + (gg.square(grad) - ms) * (1 - rho))
    mg = _set(trace, op, 1, mg + (grad - mg) * (1 - rho))
    spread = gg.sqrt(ms - gg.square(mg) + epsilon)
    mom = _set(trace, op, 3, mom * momentum + grad * lr / spread)
    return _set(trace, op, 0, var - mom)


@update("ApplyAdagrad", "var:R accum:R lr:A grad:A")
def _adagrad(trace: Any, op: Any, var: Any, accum: Any, lr: Any, grad: Any) -> Any:
    accum = _set(trace, op, 1, accum + gg.square(grad))
    return _set(trace, op, 0, var - grad * lr / gg.sqrt(accum))


@update("ApplyAdadelta", "var:R accum:R accum_update:R lr:A rho:A epsilon:A grad")
def _adadelta(
    trace: Any, op: Any, var: Any, accum: Any, updates: Any, lr: Any, rho: Any, epsilon: Any,
    grad: Any,
) -> Any:  # fmt: skip
    accum = _set(trace, op, 1, accum * rho + gg.square(grad) * (1 - rho))
    step = gg.sqrt(updates + epsilon) / gg.sqrt(accum + epsilon) * grad
    _set(trace, op, 2, updates * rho + gg.square(step) * (1 - rho))
    return _set(trace, op, 0, var - step * lr)


@update("ApplyFtrl", "var:R accum:R linear:R grad lr:A l1:A l2:A lr_power:A")
def _ftrl(
    trace: Any, op: Any, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any,
    power: Any,
) -> Any:  # fmt: skip
    new = accum + gg.square(grad)
    strength = gg.power(new, -power) - gg.power(accum, -power)
    linear = _set(trace, op, 2, linear + grad - strength / lr * var)
    quadratic = gg.power(new, -power) / lr + 2 * l2
    pulled = (gg.sign(linear) * l1 - linear) / quadratic
    _set(trace, op, 1, new)
    return _set(trace, op, 0, gg.where(gg.greater(gg.abs(linear), l1), pulled, gg.zeros_like(var)))


@update("ApplyProximalGradientDescent", "var:R alpha:A l1:A l2:A delta:A")
def _proximal(trace: Any, op: Any, var: Any, lr: Any, l1: Any, l2: Any, delta: Any) -> Any:
    step = var - lr * delta
    shrunk = gg.sign(step) * gg.maximum(gg.abs(step) - lr * l1, 0)
    return _set(trace, op, 0, shrunk / (1 + lr * l2))
