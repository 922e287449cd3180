"""Cross-entropy of logits with labels."""

from __future__ import annotations

from ...base.domains import INTEGER, PROBABILITY
from ...base.errors import ShapeError
from ...ir.types import compatible, elements, lengths
from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    cast,
    is_floating,
    np,
    promoted,
    tensor_type,
    wants,
)
from ..elementwise.arithmetic import MULTIPLY, NEGATIVE, negative
from ..elementwise.logic import EQUAL, WHERE, equal, where
from ..making import Making
from ..reduce.reductions import ReduceAny, ReduceSum, mean, reduced, size_over
from ..shape.reshaping import expand_dims, normal_axis
from .classes import OneHotLike, check_labels, hits_of
from .loss_reduction import (
    REDUCTIONS,
    class_weights,
    kept_labels,
    reduce_losses,
    reduce_weighted,
    weights_at,
)
from .operands import check_real, one_of
from .softmaxes import LogSoftmax, Softmax, decomposed_log_softmax, log_softmax_of

__all__ = ["cross_entropy"]


class SparseSoftmaxCrossEntropyWithLogits(Op):
    """y = -log_softmax(x)[label] along an axis; NaN for a label that is not a class.

    Gradient: dx = dy * (softmax(x) - one_hot(label)).

    x: floating    labels: integers, the shape of x without the axis; y: likewise.
    """

    axis: int
    axis_attrs = ("axis",)

    def infer(self, x: TensorType, labels: TensorType) -> Types:
        check_labels(labels)
        shape = reduced(x.shape, (self.axis,), False)
        if not is_floating(x.dtype) or not compatible(shape, labels.shape):
            raise ShapeError(f"labels {labels!r} do not fit logits {x!r} along axis {self.axis}")
        return (tensor_type(shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, labels: Any) -> Any:
        known = (labels >= 0) & (labels < x.shape[self.axis])
        at = xp.expand_dims(xp.where(known, labels, 0), axis=self.axis)
        logs = xp.take_along_axis(log_softmax_of(xp, x, self.axis), at, axis=self.axis)
        return xp.where(known, -xp.squeeze(logs, axis=self.axis), np.nan)

    def to_onnx(self, to: Any, x: Any, labels: Any) -> Any:
        count = to.Squeeze(to.length(x, self.axis), [0])
        labels = to.cast(labels, "int64")
        known = to.And(to.GreaterOrEqual(labels, 0), to.Less(labels, count))
        at = to.Unsqueeze(to.Where(known, labels, 0), [self.axis])
        logs = to.GatherElements(to.LogSoftmax(x, axis=self.axis), at, axis=self.axis)
        return to.Where(known, to.Neg(to.Squeeze(logs, [self.axis])), np.asarray(np.nan, x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, labels = node.inputs
        error = apply(Softmax(self.axis), x) - apply(OneHotLike(self.axis), labels, x)
        return expand_dims(dy, self.axis) * error, NO_GRAD

    def decompose(self, make: Making) -> Tensor | None:
        x, labels = make.inputs
        hits = hits_of(make, labels, lengths(x.type)[self.axis], self.axis)
        logs = make(WHERE, hits, decomposed_log_softmax(make, self.axis), make.zero(x))
        loss = make(NEGATIVE, make(ReduceSum((self.axis,), False), logs))
        known = make(ReduceAny((self.axis,), False), hits)
        return make(WHERE, known, loss, make.number(np.nan, x.dtype))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Six for each element of x."""
        return 6 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1), [rng.normal(size=(2, 3)), np.array([2, 0])]
        yield cls(0), [rng.normal(size=(3, 2)), np.array([2, 0], "uint8")]
        yield cls(0), [rng.normal(size=(3,)), np.array(1)]
        yield cls(1), [rng.normal(size=(2, 3)).astype("float32"), np.array([2, 0])]


class SoftmaxCrossEntropyWithLogits(Op):
    """y = -sum of p * log_softmax(x) along an axis, where 0 * -inf is 0.

    Gradient: dx = dy * (softmax(x) * sum of p - p), dp = -dy * log_softmax(x).
    """

    axis: int
    linear = (1,)
    axis_attrs = ("axis",)

    def infer(self, x: TensorType, p: TensorType) -> Types:
        if not is_floating(x.dtype) or p.dtype is not x.dtype or not compatible(x.shape, p.shape):
            raise ShapeError(f"probabilities {p!r} do not fit logits {x!r}")
        return (tensor_type(reduced(x.shape, (self.axis,), False), x.dtype),)

    def kernel(self, xp: Any, x: Any, p: Any) -> Any:
        logs = xp.where(p == 0, 0, log_softmax_of(xp, x, self.axis))
        return -xp.sum(p * logs, axis=self.axis)

    def to_onnx(self, to: Any, x: Any, p: Any) -> Any:
        logs = to.LogSoftmax(x, axis=self.axis)
        terms = to.Mul(p, to.Where(to.Equal(p, 0.0), 0.0, logs))
        return to.Neg(to.ReduceSum(terms, [self.axis], keepdims=0))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, p = node.inputs
        dy = expand_dims(dy, self.axis)
        total = apply(ReduceSum((self.axis,), True), p)
        return (
            dy * (apply(Softmax(self.axis), x) * total - p) if wants(x) else NO_GRAD,
            negative(dy * apply(LogSoftmax(self.axis), x)) if wants(p) else NO_GRAD,
        )

    def decompose(self, make: Making) -> Tensor | None:
        _, p = make.inputs
        zero = make.zero(p)
        logs = make(WHERE, make(EQUAL, p, zero), zero, decomposed_log_softmax(make, self.axis))
        return make(NEGATIVE, make(ReduceSum((self.axis,), False), make(MULTIPLY, p, logs)))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Six for each element of x."""
        return 6 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for axis, shape in [(1, (2, 3)), (0, (3, 2)), (0, (3,))]:
            yield cls(axis), [rng.normal(size=shape), rng.uniform(0.1, 1, size=shape)]
        yield cls(1), [rng.uniform(0.1, 1, size=(2, 3)).astype("float32") for _ in range(2)]


def cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    axis: int = -1,
    reduction: str = "none",
    *,
    weight: TensorLike | None = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log of the probability that softmax(logits) along an axis gives the labels.

    Parameters:
        logits: x, at least one axis; floating, ints and bools become float64.
        labels: class numbers, integers of one axis less than logits, NaN for one that is not a
            class; or probabilities p (or one-hot) of the shape of logits.
        axis: that of the classes.
        reduction: "none" (one loss an example), "mean" or "sum".
        weight: None, or a factor for each class. The mean of losses by class numbers is then their
            sum over that of the factors.
        ignore_index: a class number whose examples have a loss of 0 and do not count in a mean.
        label_smoothing: from 0 to 1: how much of each label is spread evenly over all classes.

    Returns: shape of logits without the axis, or 0-d; dtype of logits.

    Raises: ShapeError if the labels do not fit, or there is no such axis; DTypeError for complex
        logits and for class numbers that are not integers; ValueError for an unknown reduction or
        smoothing, and for an index to ignore among probabilities.

    Gradient: dx = dy * (softmax(x) - one_hot(label)), or dy * (softmax(x) * sum(p) - p); dp = -dy *
        log_softmax(x) [Bishop 2006, "Pattern recognition and machine learning", sec. 4.3.4].

    >>> gg.evaluate(gg.nn.cross_entropy([[0.0, 0.0], [0.0, 99.0]], [0, 0])).round(4)
    array([ 0.6931, 99.    ])
    """
    PROBABILITY("label_smoothing", label_smoothing)
    INTEGER.if_given("ignore_index", ignore_index)
    (logits,) = promoted(logits, floating=True)
    check_real("cross_entropy", logits)
    labels = as_tensor(labels)
    at = normal_axis(axis, logits.ndim)
    one_of("reduction", reduction, REDUCTIONS)
    if weight is None and label_smoothing == 0 and ignore_index is None:
        return reduce_losses(_plain(logits, labels, at), reduction)
    factors = None if weight is None else class_weights(weight, logits, at)
    if labels.ndim == logits.ndim:
        if ignore_index is not None:
            raise ValueError("ignore_index is a class number; these labels are probabilities")
        p = _smoothed(cast(labels, logits.dtype), at, label_smoothing)
        p = p if factors is None else p * _along(factors, logits, at)
        return reduce_losses(_plain(logits, p, at), reduction)
    return _of_classes(logits, labels, at, reduction, factors, ignore_index, label_smoothing)


def _plain(logits: Tensor, labels: Tensor, axis: int) -> Tensor:
    """One loss an example, by class numbers or probabilities."""
    if labels.ndim == logits.ndim:
        op = SoftmaxCrossEntropyWithLogits(axis)
        return apply(op, logits, cast(labels, logits.dtype))
    if logits.shape[axis] == 0:
        raise ShapeError(f"cross_entropy takes at least one class, got {logits.type!r}")
    return apply(SparseSoftmaxCrossEntropyWithLogits(axis), logits, labels)


def _smoothed(p: Tensor, axis: int, smoothing: float) -> Tensor:
    """Probabilities, a part of which is spread evenly over all classes."""
    if smoothing == 0:
        return p
    return p * (1.0 - smoothing) + smoothing / size_over(p, (axis,), p.dtype)


def _along(factors: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector that broadcasts with x along an axis of it."""
    after = tuple(range(1, x.ndim - axis))
    return expand_dims(factors, after) if after else factors


def _of_classes(
    logits: Tensor,
    labels: Tensor,
    axis: int,
    reduction: str,
    factors: Tensor | None,
    ignored: int | None,
    smoothing: float,
) -> Tensor:
    """Losses by class numbers, with all that can be chosen."""
    check_labels(labels.type)
    kept, safe = kept_labels(labels, ignored)
    losses = _plain(logits, safe, axis)
    counts = None if factors is None else weights_at(factors, safe)
    losses = losses if counts is None else losses * counts
    if smoothing:
        logs = apply(LogSoftmax(axis), logits)
        logs = logs if factors is None else logs * _along(factors, logits, axis)
        spread = negative(mean(logs, axis))
        spread = where(equal(losses, losses), spread, losses)
        losses = losses * (1.0 - smoothing) + spread * smoothing
    return reduce_weighted(losses, counts, kept, reduction)
