"""Activations, as compositions of those that are ops."""

from __future__ import annotations

from ....base.errors import ShapeError
from ....ir.node import Tensor
from ....ops import nn
from ....ops.base import is_floating
from ....ops.create.creation import zeros_like
from ....ops.elementwise.arithmetic import multiply
from ....ops.elementwise.bounds import clip
from ....ops.elementwise.logic import greater, less, where
from ....ops.nn.activations import sigmoid
from ....ops.nn.classes import one_hot
from ....ops.reduce.reductions import argmax
from ....ops.shape.reshaping import normal_axis
from ..call import OperatorCall
from ..lengths import lengths_of, reshaped
from .common import flat_from
from .convolutions import by_channel
from .table import form

SELU = 1.6732632423543772, 1.0507009873554805


@form("LeakyRelu")
def _leaky_relu(call: OperatorCall) -> Tensor:
    return nn.leaky_relu(call.tensor(0), call.attribute("alpha", 0.01))


@form("Elu")
def _elu(call: OperatorCall) -> Tensor:
    return nn.elu(call.tensor(0), call.attribute("alpha", 1.0))


@form("Selu")
def _selu(call: OperatorCall) -> Tensor:
    alpha, gamma = call.attribute("alpha", SELU[0]), call.attribute("gamma", SELU[1])
    return multiply(nn.elu(call.tensor(0), alpha), gamma)


@form("Celu")
def _celu(call: OperatorCall) -> Tensor:
    return nn.celu(call.tensor(0), call.attribute("alpha", 1.0))


@form("PRelu")
def _prelu(call: OperatorCall) -> Tensor:
    x, slope = call.tensors
    if slope.ndim == 1 and x.ndim > 1 and slope.shape[0] not in (1, x.shape[-1]):
        slope = by_channel(slope, x)  # as in versions below 7
    return where(less(x, 0), slope * x, x)


@form("HardSigmoid")
def _hard_sigmoid(call: OperatorCall) -> Tensor:
    alpha, beta = call.attribute("alpha", 0.2), call.attribute("beta", 0.5)
    return clip(call.tensor(0) * alpha + beta, 0.0, 1.0)


@form("HardSwish")
def _hard_swish(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return x * clip(x * (1 / 6) + 0.5, 0.0, 1.0)


@form("ThresholdedRelu")
def _thresholded_relu(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return where(greater(x, call.attribute("alpha", 1.0)), x, zeros_like(x))


@form("Softsign")
def _softsign(call: OperatorCall) -> Tensor:
    return nn.soft_sign(call.tensor(0))


@form("Mish")
def _mish(call: OperatorCall) -> Tensor:
    return nn.mish(call.tensor(0))


@form("Gelu")
def _gelu(call: OperatorCall) -> Tensor:
    return nn.gelu(call.tensor(0), call.attribute("approximate", "none") == "tanh")


@form("Swish")
def _swish(call: OperatorCall) -> Tensor:
    x, alpha = call.tensor(0), call.attribute("alpha", 1.0)
    return nn.silu(x) if alpha == 1.0 else x * sigmoid(x * alpha)


@form("Shrink")
def _shrink(call: OperatorCall) -> Tensor:
    x, bias, bound = call.tensor(0), call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    floating = is_floating(x.dtype)
    bias, bound = (value if floating else int(value) for value in (bias, bound))
    return where(less(x, -bound), x + bias, where(greater(x, bound), x - bias, zeros_like(x)))


@form("Softmax", "LogSoftmax", "Hardmax")
def _softmax(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    fn = {"Softmax": nn.softmax, "LogSoftmax": nn.log_softmax, "Hardmax": _hardmax}[call.type]
    if call.opset >= 13:
        return fn(x, call.attribute("axis", -1))
    axis = normal_axis(call.attribute("axis", 1), x.ndim)
    if axis == x.ndim - 1:
        return fn(x, axis)
    return reshaped(fn(flat_from(x, axis), 1), lengths_of(x))


def _hardmax(x: Tensor, axis: int) -> Tensor:
    axis = normal_axis(axis, x.ndim)
    length = x.shape[axis]
    if not isinstance(length, int):
        raise ShapeError(f"Hardmax of {x!r} needs a known length of axis {axis}")
    return one_hot(argmax(x, axis), length, x.dtype, axis)
