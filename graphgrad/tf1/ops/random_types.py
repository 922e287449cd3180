"""Op types of random numbers: other ones in each run, the same within one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..definition import define
from ..dtypes import as_dtype
from ..shapes import TensorShape, unknown_shape
from ..static import constant_shape, constant_value
from .array_types import sized

__all__: list[str] = []


def _drawn(inputs: Any, attrs: Any) -> TensorShape:
    return constant_shape(inputs[0])


def _type(inputs: Any, attrs: Any) -> Any:
    return [as_dtype(attrs["dtype"])]


def _shape(trace: Any, op: Any) -> tuple[int, ...]:
    return tuple(sized(trace, op.inputs[0]))


def _draws(function: Callable[..., Any]) -> Callable[..., Any]:
    def lower(trace: Any, op: Any, shape: Any) -> Any:
        kind = as_dtype(op.attrs["dtype"]).numpy
        return function(_shape(trace, op), seed=trace.key(op), dtype=kind)

    return lower


DRAWS: dict[str, Callable[..., Any]] = {
    "RandomUniform": gg.random.uniform, "RandomStandardNormal": gg.random.normal,
    "TruncatedNormal": gg.random.truncated_normal,
}  # fmt: skip
for _op_type, _function in DRAWS.items():
    define(_op_type, "shape:int32", lower=_draws(_function), infer=_drawn, types=_type)


@define("RandomUniformInt", "shape:int32 minval maxval", infer=_drawn, like=1)
def _integers(trace: Any, op: Any, shape: Any, low: Any, high: Any) -> Any:
    draws: Any = gg.random.uniform(_shape(trace, op), seed=trace.key(op), dtype="float64")
    span = gg.cast(high, "float64") - gg.cast(low, "float64")
    return gg.cast(gg.floor(draws * span), low.dtype) + low


@define("RandomShuffle", "value", infer=lambda i, a: i[0]._shape)
def _shuffle(trace: Any, op: Any, value: Any) -> Any:
    return gg.random.shuffle(value, seed=trace.key(op))


def _multinomial_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, n = inputs[0]._shape, constant_value(inputs[1])
    if shape.lengths is None:
        return unknown_shape(2)
    return TensorShape([shape.lengths[0], None if n is None else int(n)])


@define("Multinomial", "logits num_samples:int32", infer=_multinomial_shape,
        types=lambda i, a: [as_dtype(a.get("output_dtype", "int64"))])  # fmt: skip
def _multinomial(trace: Any, op: Any, logits: Any, count: Any) -> Any:
    n = int(trace.value(op.inputs[1]))
    rows, classes = logits.shape
    noise: Any = gg.random.gumbel((rows, n, classes), seed=trace.key(op), dtype=logits.dtype)
    return gg.argmax(gg.expand_dims(logits, 1) + noise, axis=-1)


def _gamma_shape(inputs: Any, attrs: Any) -> TensorShape:
    return constant_shape(inputs[0]).concatenate(inputs[1]._shape)


@define("RandomGamma", "shape:int32 alpha:A", infer=_gamma_shape, like=1)
def _gamma(trace: Any, op: Any, shape: Any, alpha: Any) -> Any:
    full = (*_shape(trace, op), *alpha.shape)
    return gg.random.gamma(full, alpha, seed=trace.key(op), dtype=alpha.dtype)


@define("RandomPoissonV2", "shape:int32 rate:A", infer=_gamma_shape, types=_type)
def _poisson(trace: Any, op: Any, shape: Any, rate: Any) -> Any:
    full = (*_shape(trace, op), *rate.shape)
    return gg.cast(gg.random.poisson(full, rate, seed=trace.key(op)), np.float64)
