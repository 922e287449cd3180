"""How losses become one number: reductions, weights of classes, and labels that do not count."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.kinds import accumulated_in
from ...ir.types import compatible
from ..base import Tensor, TensorLike, as_tensor, cast, like, rounded_once
from ..elementwise.logic import greater_equal, less, logical_and, not_equal, where
from ..reduce.reductions import mean, sum
from ..shape.indexing import take
from ..shape.reshaping import broadcast_like
from .operands import known_length

REDUCTIONS = ("none", "mean", "sum")


def reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    """The losses, their mean or their sum."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def class_weights(weight: TensorLike, x: Tensor, axis: int) -> Tensor:
    """A factor for each class, of the dtype of x; ShapeError where it does not fit the axis."""
    w = cast(as_tensor(weight), x.dtype)
    if not compatible(w.shape, (x.shape[axis],)):
        raise ShapeError(
            f"weight has one factor for each class, {x.type!r} along axis {axis}, got {w.type!r}"
        )
    return w


def kept_labels(labels: Tensor, ignored: int | None) -> tuple[Tensor | None, Tensor]:
    """Which labels count (None: all of them), and the labels with 0 for those that do not."""
    if ignored is None:
        return None, labels
    kept = not_equal(cast(labels, "int64"), ignored)
    return kept, where(kept, labels, like(0, labels))


def weights_at(weight: Tensor, labels: Tensor) -> Tensor:
    """The factors of labels; 1 for a label that is not a class."""
    count = known_length("weight", weight, 0)
    places = cast(labels, "int64")
    known = logical_and(greater_equal(places, 0), less(places, count))
    return where(known, take(weight, where(known, places, 0), 0), like(1, weight))


def reduce_weighted(
    losses: Tensor, counts: Tensor | None, kept: Tensor | None, reduction: str
) -> Tensor:
    """Losses reduced: some do not count, the others do for so much in a mean, or for 1."""
    if kept is not None:
        losses = where(kept, losses, 0)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if kept is not None:
        counts = where(kept, like(1, losses) if counts is None else counts, 0)
    elif counts is None:
        return mean(losses)
    else:
        counts = broadcast_like(counts, losses)
    wide = cast(counts, accumulated_in(counts.dtype))
    return rounded_once(lambda losses: sum(losses) / sum(wide), losses)
