"""Support vector machines of `ai.onnx.ml`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ....base.errors import FileError
from ....ir.node import Tensor
from ....ir.types import Array, as_dtype
from ....ops.arrays.taking import take
from ....ops.base import cast, constant
from ....ops.create.creation import ones_like, zeros_like
from ....ops.elementwise.bounds import clip
from ....ops.elementwise.exponential import exp
from ....ops.elementwise.logic import greater, where
from ....ops.elementwise.trigonometry import tanh
from ....ops.linalg.inverses import solve
from ....ops.nn.activations import sigmoid
from ....ops.reduce import reductions
from ....ops.reduce.reductions import argmax
from ....ops.shape.joining import concat, stack
from ..call import OperatorCall
from .classic import ML, as_floating, transformed
from .table import form

LEAST = 1e-7
"""Of the probability of one class of two, and of the other one."""


@form("SVMRegressor", domain=ML)
def _svm_regressor(call: OperatorCall) -> Tensor:
    x, count = as_floating(call.tensor(0)), call.attribute("n_supports", 0)
    if call.attribute("post_transform", "NONE") != "NONE":
        raise FileError(
            f"its post_transform {call.attribute('post_transform')!r:.40} is not supported"
        )
    weights = np.reshape(call.needed("coefficients"), (-1, 1))
    for name in ("kernel_type", "kernel_params"):  # of which a linear one has no need
        call.attribute(name)
    score = (_kernels(call, x, count) if count else x) @ constant(
        weights, x.dtype
    ) + call.attribute("rho", [0.0])[0]
    if call.attribute("one_class", 0):
        score = where(greater(score, 0), ones_like(score), -1)
    return cast(score, as_dtype("float32"))


@form("SVMClassifier", domain=ML)
def _svm_classifier(call: OperatorCall) -> tuple[Tensor, Tensor]:
    x, labels = as_floating(call.tensor(0)), call.attribute("classlabels_ints")
    if labels is None:
        raise FileError("its classes are strings, which tensors do not support")
    counts = call.attribute("vectors_per_class", [])
    if len(counts) != len(labels):
        raise FileError(f"it has {len(labels)} classes, and vectors for {len(counts)}")
    coefficients = np.reshape(call.needed("coefficients"), (len(labels) - 1, sum(counts)))
    rho = constant(call.needed("rho"), x.dtype)
    weights = constant(_of_pairs(coefficients, counts), x.dtype)
    scores = _kernels(call, x, sum(counts)) @ weights + rho
    label = take(constant(labels, "int64"), _voted(scores, len(labels)))
    a, b = (call.attribute(name) for name in ("prob_a", "prob_b"))
    if a:
        first = clip(
            sigmoid(-(scores * constant(a, x.dtype) + constant(b, x.dtype))), LEAST, 1 - LEAST
        )
        scores = _coupled(first, len(labels))
    elif len(labels) == 2:
        scores = concat([-scores, scores], 1)
        if call.attribute("post_transform", "NONE") not in ("NONE", "LOGISTIC"):
            raise FileError("its post_transform of one score for two classes is not supported")
    return label, cast(transformed(call, scores), as_dtype("float32"))


def _kernels(call: OperatorCall, x: Tensor, count: int) -> Tensor:
    """The kernel of each row of x and each support vector, (N, count)."""
    vectors = np.reshape(call.needed("support_vectors"), (count, -1))
    gamma, shift, degree = call.attribute("kernel_params") or (0.0, 0.0, 0.0)
    name = call.attribute("kernel_type", "LINEAR")
    if name == "RBF":  # by squares and products: of differences there would be count * features
        middle = vectors.mean(0)
        x, vectors = x - constant(middle, x.dtype), vectors - middle
        squares = constant((vectors**2).sum(1), x.dtype)
        far = reductions.sum(x * x, 1, keepdims=True) + squares
        return exp((far - 2 * (x @ constant(vectors.T, x.dtype))) * -gamma)
    z = x @ constant(vectors.T, x.dtype)
    if name == "LINEAR":
        return z
    z = z * gamma + shift
    if name == "POLY":
        return z ** (int(degree) if degree == int(degree) else degree)
    if name == "SIGMOID":
        return tanh(z)
    raise FileError(f"its kernel {name!r:.40} is unknown")


def _of_pairs(coefficients: Array, counts: list[int]) -> Array:
    """The weight of each support vector for each pair of classes, (count, pairs)."""
    pairs = list(combinations(range(len(counts)), 2))
    rows = np.zeros((len(pairs), sum(counts)))
    ends = np.cumsum([0, *counts])
    for row, (i, j) in zip(rows, pairs, strict=True):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        row[of_i], row[of_j] = coefficients[j - 1, of_i], coefficients[i, of_j]
    return rows.T


def _voted(scores: Tensor, classes: int) -> Tensor:
    """The class for which most pairs are; the first of those."""
    won = [greater(scores[:, k], 0) for k in range(classes * (classes - 1) // 2)]
    votes: list[Any] = [0] * classes
    for first, (i, j) in zip(won, combinations(range(classes), 2), strict=True):
        vote = cast(first, as_dtype("int64"))
        votes[i], votes[j] = votes[i] + vote, votes[j] + 1 - vote
    return argmax(stack(votes, 1), 1)


def _coupled(first: Tensor, classes: int) -> Tensor:
    """The probabilities p of classes of which those of pairs, r_ij for i against j, tell most: the
    least of the sum of (r_ji p_i - r_ij p_j)**2 [Wu, Lin and Weng 2004, "Probability estimates for
    multi-class classification by pairwise coupling", second method]. It is solved, where libsvm and
    onnxruntime go there step by step and stop at 0.005 / classes.
    """
    if classes == 2:
        return concat([first, 1 - first], 1)
    r: dict[tuple[int, int], Tensor] = {}
    for k, (i, j) in enumerate(combinations(range(classes), 2)):
        r[i, j], r[j, i] = first[:, k], 1 - first[:, k]
    one, zero = ones_like(first[:, 0]), zeros_like(first[:, 0])
    others = [[j for j in range(classes) if j != i] for i in range(classes)]
    rows = [
        [
            sum((r[k, i] ** 2 for k in others[i]), zero) if i == j else -(r[j, i] * r[i, j])
            for j in range(classes)
        ]
        for i in range(classes)
    ]
    rows = [*([*row, one] for row in rows), [*[one] * classes, zero]]
    matrices = stack([stack(row, 1) for row in rows], 1)
    right = stack([*[zero] * classes, one], 1)
    return solve(matrices, right[:, :, None])[:, :classes, 0]
