"""Operators of `ai.onnx.ml` that are sums and products: what scikit-learn's models are made of."""

from __future__ import annotations

import numpy as np

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops import nn
from ....ops.arrays.taking import take
from ....ops.base import cast, constant, is_floating
from ....ops.elementwise.logic import equal, greater, isnan, where
from ....ops.linalg.norms import vector_norm
from ....ops.nn.activations import sigmoid
from ....ops.reduce import reductions
from ....ops.reduce.reductions import argmax
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import concat
from ....ops.shape.reshaping import reshape
from ..call import OperatorCall
from .table import form

ML = "ai.onnx.ml"


@form("Scaler", domain=ML)
def _scaler(call: OperatorCall) -> Tensor:
    x = as_floating(call.tensor(0))
    offset, scale = call.attribute("offset", [0.0]), call.attribute("scale", [1.0])
    return (x - constant(offset, x.dtype)) * constant(scale, x.dtype)


@form("Normalizer", domain=ML)
def _normalizer(call: OperatorCall) -> Tensor:
    x, norm = as_floating(call.tensor(0)), call.attribute("norm", "MAX")
    orders = {"MAX": np.inf, "L1": 1, "L2": 2}
    if norm not in orders:
        raise FileError(f"its norm {norm!r:.40} is unknown")
    if norm == "MAX":
        return x / reductions.max(x, -1, keepdims=True)
    return x / vector_norm(x, axis=-1, keepdims=True, ord=orders[norm])


@form("Imputer", domain=ML)
def _imputer(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    kind = "float" if is_floating(x.dtype) else "int64"
    old, new = call.attribute(f"replaced_value_{kind}", 0), call.needed(f"imputed_value_{kind}s")
    call.unread.clear()  # those of the other kind
    missing = isnan(x) if old != old else equal(x, constant(old, x.dtype))
    return where(missing, constant(new, x.dtype), x)


@form("Binarizer", domain=ML)
def _binarizer(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return cast(greater(x, call.attribute("threshold", 0.0)), x.dtype)


@form("ArrayFeatureExtractor", domain=ML)
def _array_feature_extractor(call: OperatorCall) -> Tensor:
    x, places = call.tensors
    taken = take(x, reshape(places, (-1,)), -1)
    return reshape(taken, (1, -1)) if x.ndim == 1 else taken


@form("FeatureVectorizer", domain=ML)
def _feature_vectorizer(call: OperatorCall) -> Tensor:
    call.attribute("inputdimensions")
    return concat([cast(x, as_dtype("float32")) for x in call.tensors], -1)


@form("LinearRegressor", domain=ML)
def _linear_regressor(call: OperatorCall) -> Tensor:
    x = as_floating(call.tensor(0))
    return transformed(call, _scores(call, x, call.attribute("targets", 1)))


@form("LinearClassifier", domain=ML)
def _linear_classifier(call: OperatorCall) -> tuple[Tensor, Tensor]:
    x = as_floating(call.tensor(0))
    labels = call.attribute("classlabels_ints")
    call.attribute("multi_class")
    if labels is None:
        raise FileError("its classes are strings, which tensors do not support")
    coefficients = call.attribute("coefficients")
    rows = len(coefficients) // _width(x)
    scores = _scores(call, x, rows)
    if rows == 1 and len(labels) == 2:
        label = where(getitem(scores, (slice(None), 0)) > 0, labels[1], labels[0])
        both = concat([-scores, scores], 1)
        if call.attribute("post_transform", "NONE") == "LOGISTIC":
            return cast(label, as_dtype("int64")), sigmoid(both)
        return cast(label, as_dtype("int64")), transformed(call, both)
    best = take(constant(labels, "int64"), argmax(scores, 1))
    return best, transformed(call, scores)


def _scores(call: OperatorCall, x: Tensor, rows: int) -> Tensor:
    weights = np.reshape(call.needed("coefficients"), (rows, -1)).T
    z = x @ constant(weights, x.dtype)
    bias = call.attribute("intercepts")
    return z if bias is None else z + constant(bias, x.dtype)


def _width(x: Tensor) -> int:
    width = x.shape[-1]
    if not isinstance(width, int):
        raise ShapeError(f"{x!r} needs a known number of features")
    return width


def transformed(call: OperatorCall, x: Tensor) -> Tensor:
    """Scores after what the attribute post_transform says."""
    name = call.attribute("post_transform", "NONE")
    if name == "NONE":
        return x
    if name == "LOGISTIC":
        return sigmoid(x)
    if name == "SOFTMAX":
        return nn.softmax(x, -1)
    raise FileError(f"its post_transform {name!r:.40} is not supported")


def as_floating(x: Tensor) -> Tensor:
    """Integers as float32."""
    return x if is_floating(x.dtype) else cast(x, as_dtype("float32"))
