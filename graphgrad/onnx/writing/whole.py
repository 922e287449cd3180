"""Operators of ONNX that are several ops here: runtimes have one kernel for each.

A gradient may read of their parts: what an operator gives beside its result is taken from there,
and what costs most is computed once for both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...differentiate.gradients import gradients
from ...ir.build import apply
from ...ir.node import Tensor
from ...ir.types import TensorType, tensor_type
from ...ops.base import is_floating
from ...ops.elementwise.bounds import CLIP, clip
from ...ops.elementwise.exponential import sqrt
from ...ops.elementwise.logic import WHERE, where
from ...ops.nn.activations import RELU_GRAD
from ...ops.reduce.reductions import ReduceMean, mean
from ...ops.special.error import Erfc, erfc
from .patterns import OperatorPattern

__all__ = ["patterns_of"]

FLOAT32, BOOL = np.dtype("float32"), np.dtype("bool")
GELU_SINCE = 20
Parts = tuple[Tensor, ...]
Read = Sequence[bool]


def patterns_of(opset: int, fast_masks: bool, y: TensorType) -> Iterator[OperatorPattern]:
    """What may make a result of a type, the larger ones first.

    fast_masks: whether masks of gradients are factors.
    """
    if fast_masks and is_floating(y.dtype):
        yield from _masks(y)
    if y.dtype == FLOAT32:
        yield from _layer_norms(y)
        yield from _instance_norms(y)
        yield OperatorPattern(Erfc(), _gelu, (y,), partial(_write_gelu, opset >= GELU_SINCE))
        yield OperatorPattern(CLIP, _hard_swish_slope, (y, y), _write_hard_swish_slope, stays=True)
        yield OperatorPattern(CLIP, _hard_swish, (y,), _write_hard_swish)


# --- normalisations ------------------------------------------------------------------------------


def _normalised(x: Tensor, axes: tuple[int, ...], epsilon: Tensor) -> Parts:
    """(x - mean) / sqrt(variance + epsilon), with x - mean, the root and the mean."""
    average = mean(x, axes, True)
    centred = x - average
    root = sqrt(mean(centred * centred, axes, True) + epsilon)
    return centred / root, centred, root, average


def _layer_norms(y: TensorType) -> Iterator[OperatorPattern]:
    """Over the last axes, of known lengths, with a scale and an offset, or without."""
    number = tensor_type((), y.dtype)
    for axis in range(1, len(y.shape)):
        row, axes = tensor_type(y.shape[axis:], y.dtype), tuple(range(axis, len(y.shape)))
        if not row.static:
            continue
        for scaled, moved in ((True, True), (True, False), (False, True), (False, False)):
            formula = partial(_layer_norm, axes, scaled, moved)
            write = partial(_write_layer_norm, axis - len(y.shape), scaled)
            yield OperatorPattern(
                ReduceMean(axes, True), formula, (y, *[row] * (scaled + moved), number), write, 1
            )


def _layer_norm(axes: tuple[int, ...], scaled: bool, moved: bool, x: Tensor, *rest: Any) -> Parts:
    *rows, epsilon = rest
    z, *parts = _normalised(x, axes, epsilon)
    y = z * rows[0] if scaled else z
    return y + rows[-1] if moved else y, z, *parts


def _write_layer_norm(axis: int, scaled: bool, to: Any, read: Read, x: Any, *rest: Any) -> Any:
    *rows, epsilon = rest
    scale = [] if scaled else [np.ones(x.shape[axis:], x.dtype)]
    more = any(read[1:])
    made = to.LayerNormalization(
        x, *scale, *rows, axis=axis, epsilon=float(epsilon), outputs=3 if more else 1
    )
    if not more:
        return (made,)
    y, average, slope = made
    centred = to.Sub(x, average)
    return y, to.Mul(centred, slope), centred, to.Reciprocal(slope), average


def _instance_norms(y: TensorType) -> Iterator[OperatorPattern]:
    """Over all places, for each example and channel, without a scale."""
    if len(y.shape) < 3 or not isinstance(y.shape[1], int):
        return
    axes = tuple(range(2, len(y.shape)))

    def normalised(x: Tensor, epsilon: Tensor) -> Parts:
        return _normalised(x, axes, epsilon)[:1]

    yield OperatorPattern(
        ReduceMean(axes, True), normalised, (y, tensor_type((), y.dtype)), _write_instance_norm, 1
    )


def _write_instance_norm(to: Any, read: Read, x: Any, epsilon: Any) -> Any:
    ones = np.ones(x.shape[1], x.dtype)
    return (to.InstanceNormalization(x, ones, 0 * ones, epsilon=float(epsilon), shape=x.shape),)


# --- masks ---------------------------------------------------------------------------------------


def _masks(y: TensorType) -> Iterator[OperatorPattern]:
    """Gradients where a condition holds, else 0."""
    kept = tensor_type(y.shape, BOOL)
    parts = ((RELU_GRAD, _relu_slope, y), (WHERE, _kept, kept), (WHERE, _dropped, kept))
    for by, formula, beside in parts:
        types, write = (y, beside), partial(_write_masked, formula)
        yield OperatorPattern(by, formula, types, write, derived=True)


def _relu_slope(dy: Tensor, x: Tensor) -> Parts:
    return (apply(RELU_GRAD, dy, x),)


def _kept(dy: Tensor, keep: Tensor) -> Parts:
    return (where(keep, dy, 0.0),)


def _dropped(dy: Tensor, drop: Tensor) -> Parts:
    return (where(drop, 0.0, dy),)


def _write_masked(formula: Any, to: Any, read: Read, dy: Any, beside: Any) -> Any:
    if formula is _kept:
        keep = beside
    else:
        keep = to.Greater(beside, 0.0) if formula is _relu_slope else to.Not(beside)
    return (to.Mul(to.cast(keep, dy.dtype), dy),)


# --- activations ---------------------------------------------------------------------------------


def _gelu(x: Tensor) -> Parts:
    inner = x * -math.sqrt(0.5)
    tail = erfc(inner)
    gate = 0.5 * tail
    return x * gate, gate, tail, inner


def _write_gelu(is_known: bool, to: Any, read: Read, x: Any) -> Any:
    """By Erf where a gradient reads the gate: of a product with x its digits are enough."""
    _, of_gate, of_tail, of_inner = read
    inner = to.Mul(x, -math.sqrt(0.5)) if of_inner else None
    if is_known and not (of_gate or of_tail):
        return to.Gelu(x, shape=x.shape), None, None, inner
    tail = to.Sub(1.0, to.Erf(inner or to.Mul(x, -math.sqrt(0.5))))
    gate = to.Mul(tail, 0.5)
    return to.Mul(x, gate), gate, tail, inner


def _hard_swish(x: Tensor) -> Parts:
    inner = x * (1 / 6) + 0.5
    gate = clip(inner, 0.0, 1.0)
    return x * gate, gate, inner


def _write_hard_swish(to: Any, read: Read, x: Any) -> Any:
    inner = to.Add(to.Mul(x, 1 / 6), 0.5) if read[2] else None
    gate = _gate(to, x)
    return to.Mul(x, gate), gate, inner


def _gate(to: Any, x: Any) -> Any:
    return to.HardSigmoid(x, alpha=1 / 6, beta=0.5, shape=x.shape)


def _hard_swish_slope(dy: Tensor, x: Tensor) -> Parts:
    return tuple(gradients(_hard_swish(x)[0], [x], dy))


def _write_hard_swish_slope(to: Any, read: Read, dy: Any, x: Any) -> Any:
    """Of the gate g: dy * (g + (g - 1/2 from -3 to 3, else 0))."""
    gate = _gate(to, x)
    inside = to.cast(to.LessOrEqual(to.Abs(x), 3.0), x.dtype)
    return (to.Mul(dy, to.Add(gate, to.Mul(inside, to.Sub(gate, 0.5)))),)
