"""Losses that put themselves into a collection: `tf.losses`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .create import constant, convert_to_tensor, name_scope
from .graph import GraphKeys, Tensor, get_default_graph
from .ops import array as A
from .ops import math as M
from .ops import nn

__all__ = [
    "Reduction", "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance",
    "get_losses", "get_regularization_loss", "get_regularization_losses", "get_total_loss",
    "hinge_loss", "huber_loss", "log_loss", "mean_squared_error", "sigmoid_cross_entropy",
    "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip


class Reduction:
    """What is made of the losses of elements."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"


DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = DEFAULT,
) -> Tensor:
    """The losses of elements with weights, reduced, and put into a collection."""
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        kind = losses.dtype
        x = M.cast(losses, "float32")
        w = M.cast(weights, "float32") if isinstance(weights, Tensor) else convert_to_tensor(
            weights, "float32")  # fmt: skip
        weighted = M.multiply(x, w)
        if reduction == Reduction.NONE:
            found = weighted
        else:
            found = M.reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                found = _safe(found, M.reduce_sum(A.ones_like(x) * w))
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                found = _safe(found, _present(x, w))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                found = _safe(found, M.cast(A.size(x), "float32"))
        found = M.cast(found, kind)
        add_loss(found, loss_collection)
        return found


def _present(losses: Tensor, weights: Tensor) -> Tensor:
    """How many elements have a weight that is not zero."""
    there = M.cast(M.not_equal(weights, 0.0), "float32")
    return M.reduce_sum(there * A.ones_like(losses))


def _safe(total: Tensor, count: Tensor) -> Tensor:
    return M.div_no_nan(total, count, name="value")


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Put a loss into a collection."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: Any = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: Any = None) -> list[Any]:
    """What regularizers made."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: Any = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of what regularizers made."""
    found = get_regularization_losses(scope)
    return M.add_n(found, name=name) if found else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: Any = None
) -> Tensor:
    """The sum of all losses."""
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return M.add_n(found, name=name)


def _pair(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    predictions = M.cast(convert_to_tensor(predictions), "float32")
    labels = M.cast(convert_to_tensor(labels), "float32")
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def _difference(name: str, loss_of: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    def function(
        labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
        loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
    ) -> Tensor:  # fmt: skip
        with name_scope(scope, name, [predictions, labels]) as names:
            labels, predictions = _pair(labels, predictions)
            losses = loss_of(predictions, labels)
            return compute_weighted_loss(losses, weights, names, loss_collection, reduction)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


mean_squared_error = _difference(
    "mean_squared_error", M.squared_difference, "The mean of squared differences."
)
absolute_difference = _difference(
    "absolute_difference", lambda p, z: M.abs(M.subtract(p, z)), "The mean of absolute differences."
)


def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """The mean cross entropy of probabilities."""
    with name_scope(scope, "log_loss", [predictions, labels]) as names:
        z, p = _pair(labels, predictions)
        losses = -z * M.log(p + epsilon) - (1 - z) * M.log(1 - p + epsilon)
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)


def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """Squares near zero, absolute values beyond delta."""
    with name_scope(scope, "huber_loss", [predictions, labels]) as names:
        labels, predictions = _pair(labels, predictions)
        distance = M.abs(M.subtract(predictions, labels))
        near = M.minimum(distance, delta)
        losses = 0.5 * near * near + delta * (distance - near)
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)


def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """max(0, 1 - y x), with labels of 0 and 1."""
    with name_scope(scope, "hinge_loss", [logits, labels]) as names:
        z, x = _pair(labels, logits)
        losses = nn.relu(1.0 - (2.0 * z - 1.0) * x)
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)


def cosine_distance(
    labels: Any, predictions: Any, axis: Any = None, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT, dim: Any = None,
) -> Tensor:  # fmt: skip
    """1 - the inner product along an axis."""
    with name_scope(scope, "cosine_distance_loss", [predictions, labels]) as names:
        z, p = _pair(labels, predictions)
        total = M.reduce_sum(M.multiply(p, z), dim if axis is None else axis, keepdims=True)
        return compute_weighted_loss(1 - total, weights, names, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: Any = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """The mean cross entropy of elements."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits]) as names:
        x = convert_to_tensor(logits)
        z = M.cast(multi_class_labels, x.dtype)
        if label_smoothing > 0:
            z = z * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x, name="xentropy")
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0,
    scope: Any = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """The mean cross entropy of rows."""
    with name_scope(scope, "softmax_cross_entropy_loss", [logits]) as names:
        x = convert_to_tensor(logits)
        z = M.cast(onehot_labels, x.dtype)
        if label_smoothing > 0:
            classes = z.shape[-1].value
            z = z * (1 - label_smoothing) + label_smoothing / classes
        z = A.stop_gradient(z)
        losses = nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x, name="xentropy")
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = DEFAULT,
) -> Tensor:  # fmt: skip
    """The mean cross entropy of rows, with labels as numbers."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits]) as names:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        rank = logits.shape.ndims
        if rank is not None and labels.shape.ndims == rank and labels.shape[-1].value == 1:
            labels = A.squeeze(labels, [-1])
        losses = nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits,
                                                             name="xentropy")  # fmt: skip
        return compute_weighted_loss(losses, weights, names, loss_collection, reduction)
