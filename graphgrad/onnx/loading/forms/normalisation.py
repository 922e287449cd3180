"""Normalisations."""

from __future__ import annotations

from typing import Any

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops import nn
from ....ops.arrays.nonzero import repeat
from ....ops.base import cast
from ....ops.create.creation import zeros_like
from ....ops.elementwise.exponential import sqrt
from ....ops.elementwise.logic import equal, where
from ....ops.linalg.norms import vector_norm
from ....ops.reduce import reductions
from ....ops.shape.padding import flip
from ....ops.shape.reshaping import normal_axis
from ..call import OperatorCall
from .table import form


@form("BatchNormalization")
def _batch_norm(call: OperatorCall) -> Any:
    x, scale, offset, mean, variance = call.tensors
    epsilon, momentum = call.attribute("epsilon", 1e-5), call.attribute("momentum", 0.9)
    training = call.attribute("training_mode", 0)
    if call.attribute("spatial", 1) != 1:
        raise FileError("it normalises each element of an image separately (spatial=0)")
    scale, offset = cast(scale, x.dtype), cast(offset, x.dtype)
    if not training:
        if any(call.wanted[1:]):
            raise FileError("its version returns running moments, which are not supported")
        moments = cast(mean, x.dtype), cast(variance, x.dtype)
        return nn.batch_norm(x, scale, offset, 1, epsilon, running=moments, training=False)[0]
    y, now, spread = nn.batch_norm(x, scale, offset, 1, epsilon)
    after = [
        cast(old * momentum + new * (1 - momentum), old.dtype)
        for old, new in ((mean, now), (variance, spread))
    ]
    return y, *after


@form("InstanceNormalization")
def _instance_norm(call: OperatorCall) -> Tensor:
    x, scale, offset = call.tensors
    return nn.instance_norm(x, scale, offset, 1, call.attribute("epsilon", 1e-5))


@form("GroupNormalization")
def _group_norm(call: OperatorCall) -> Tensor:
    x, scale, offset = call.tensors
    groups, epsilon = call.needed("num_groups"), call.attribute("epsilon", 1e-5)
    call.attribute("stash_type")
    if call.opset < 21:  # one number for each group
        channels = x.shape[1]
        if not isinstance(channels, int):
            raise ShapeError(f"{x!r} needs a known number of channels")
        scale, offset = (repeat(row, channels // groups) for row in (scale, offset))
    return nn.group_norm(x, groups, scale, offset, 1, epsilon)


@form("LayerNormalization")
def _layer_norm(call: OperatorCall) -> Any:
    x, scale, offset = call.tensor(0), call.tensor(1), call.optional(2)
    axes = tuple(range(normal_axis(call.attribute("axis", -1), x.ndim), x.ndim))
    epsilon = call.attribute("epsilon", 1e-5)
    call.attribute("stash_type")
    y = nn.standardize(x, axes, epsilon=epsilon) * scale
    y = y if offset is None else y + offset
    if not any(call.wanted[1:]):
        return y
    wide = cast(x, as_dtype("float32"))
    mean = reductions.mean(wide, axes, keepdims=True)
    variance = reductions.mean((wide - mean) ** 2, axes, keepdims=True)
    return y, mean, 1 / sqrt(variance + epsilon)


@form("RMSNormalization")
def _rms_norm(call: OperatorCall) -> Tensor:
    x, scale = call.tensors
    axes = tuple(range(normal_axis(call.attribute("axis", -1), x.ndim), x.ndim))
    call.attribute("stash_type")
    return nn.rms_norm(x, None, axes, call.attribute("epsilon", 1e-5)) * scale


@form("LpNormalization")
def _lp_norm(call: OperatorCall) -> Tensor:
    x, axis, p = call.tensor(0), call.attribute("axis", -1), call.attribute("p", 2)
    norm = vector_norm(x, axis=axis, keepdims=True, ord=p)
    return where(equal(norm, 0), zeros_like(x), x / where(equal(norm, 0), 1, norm).astype(x.dtype))


@form("MeanVarianceNormalization")
def _mean_variance(call: OperatorCall) -> Tensor:
    x, axes = call.tensor(0), tuple(call.attribute("axes", (0, 2, 3)))
    centred = x - reductions.mean(x, axes, keepdims=True)
    spread = sqrt(reductions.mean(centred * centred, axes, keepdims=True))
    return centred / (spread + 1e-9)


@form("LRN")
def _lrn(call: OperatorCall) -> Tensor:
    x, size = call.tensor(0), call.needed("size")
    alpha, beta = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75)
    bias = call.attribute("bias", 1.0)
    if size % 2:
        return nn.local_response_norm(x, size, alpha, beta, bias, 1)
    # of an even number of channels the odd one is after, not before
    return flip(nn.local_response_norm(flip(x, 1), size, alpha, beta, bias, 1), 1)


@form("Dropout")
def _dropout(call: OperatorCall) -> Any:
    x = call.tensor(0)
    call.attribute("seed")
    ratio = call.attribute("ratio", 0.5)
    if call.opset >= 12 and call.given(1):
        ratio = float(call.known(1, "ratio").reshape(()))
    training = call.opset >= 12 and call.given(2) and call.known(2, "training_mode").reshape(())
    if training and ratio:
        raise FileError(
            "it drops numbers at random, as in training: load a model that was exported for "
            "inference"
        )
    call.attribute("is_test")
    mask = equal(x, x) | True if call.wants(1) else None
    return x if mask is None else (x, mask if call.opset >= 10 else cast(mask, x.dtype))
