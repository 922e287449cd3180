"""Losses for regression, probabilities and margins; by default, their mean."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...base.domains import FINITE, INTEGER, NON_NEGATIVE, NUMBER, POSITIVE, Domain
from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import compatible
from ..base import Tensor, TensorLike, as_tensor, cast
from ..elementwise.arithmetic import negative
from ..elementwise.bounds import minimum
from ..elementwise.exponential import exp, log
from ..elementwise.logic import (
    equal,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    where,
)
from ..elementwise.magnitudes import absolute
from ..elementwise.powers import square
from ..reduce.cumulative import cumulative_prod
from ..reduce.reductions import any as any_of
from ..reduce.reductions import mean, sum
from ..reduce.sorting import take_along_axis
from ..shape.reshaping import expand_dims, normal_axis, squeeze
from ..sources import stop_gradient
from ..special.information import xlogy
from .activations import log_sigmoid, relu, softplus
from .classes import check_labels, one_hot
from .distances import cosine_similarity, pairwise_distance
from .loss_reduction import (
    REDUCTIONS,
    class_weights,
    kept_labels,
    reduce_losses,
    reduce_weighted,
    weights_at,
)
from .operands import known_length, one_of, real_operands

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]


def _alike(what: str, *operands: TensorLike, reduction: str) -> tuple[Tensor, ...]:
    """Real operands of one shape, but for numbers: what broadcasts by accident is an error."""
    one_of("reduction", reduction, REDUCTIONS)
    tensors = real_operands(what, *operands)
    first = tensors[0]
    for t in tensors[1:]:
        if t.ndim and not compatible(first.shape, t.shape):
            raise ShapeError(
                f"{what} takes operands of one shape, got {first.type!r} and {t.type!r}; use "
                "gg.broadcast_to to repeat one"
            )
    return tensors


def _reduced(losses: Tensor, weight: TensorLike | None, reduction: str) -> Tensor:
    """Losses, times factors where there are some, reduced."""
    return reduce_losses(losses if weight is None else losses * weight, reduction)


# --- regression --------------------------------------------------------------------------------


def mse_loss(
    x: TensorLike,
    target: TensorLike,
    reduction: str = "mean",
    *,
    weight: TensorLike | None = None,
) -> Tensor:
    """(x - target)**2.

    Parameters:
        x, target: of one shape; floating, ints and bools become float64.
        reduction: "mean" (over all elements), "sum" or "none".
        weight: None, or factors that broadcast with the losses.

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy * 2 (x - target), dtarget = -dx.

    Source: PyTorch, torch.nn.functional.mse_loss.

    >>> gg.evaluate(gg.nn.mse_loss([1.0, 3.0], [1.0, 1.0]))
    array(2.)
    """
    x, t = _alike("mse_loss", x, target, reduction=reduction)
    return _reduced(square(x - t), weight, reduction)


def l1_loss(
    x: TensorLike,
    target: TensorLike,
    reduction: str = "mean",
    *,
    weight: TensorLike | None = None,
) -> Tensor:
    """|x - target|.

    Parameters:
        x, target: of one shape; floating, ints and bools become float64.
        reduction: "mean" (over all elements), "sum" or "none".
        weight: None, or factors that broadcast with the losses.

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy * sign(x - target), 0 where they are equal; dtarget = -dx.

    Source: PyTorch, torch.nn.functional.l1_loss.

    >>> gg.evaluate(gg.nn.l1_loss([1.0, 3.0], [1.0, 1.0]))
    array(1.)
    """
    x, t = _alike("l1_loss", x, target, reduction=reduction)
    return _reduced(absolute(x - t), weight, reduction)


def smooth_l1_loss(
    x: TensorLike, target: TensorLike, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """d**2 / (2 beta) where d = |x - target| < beta, else d - beta / 2.

    Parameters:
        x, target: of one shape; floating, ints and bools become float64.
        reduction: "mean" (over all elements), "sum" or "none".
        beta: a Python number >= 0; of 0 it is l1_loss.

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction or beta.

    Gradient: dx = dy * (x - target) / beta near, dy * sign(x - target) far; dtarget = -dx.

    Source: Girshick 2015, "Fast R-CNN", eq. 3.

    >>> gg.evaluate(gg.nn.smooth_l1_loss([1.5, 3.0], [1.0, 1.0], "none"))
    array([0.125, 1.5  ])
    """
    NON_NEGATIVE("beta", beta)
    if beta == 0:
        return l1_loss(x, target, reduction)
    x, t = _alike("smooth_l1_loss", x, target, reduction=reduction)
    d = absolute(x - t)
    near = less(d, beta)
    return reduce_losses(_bent(d, near, 0.5 / beta, 1.0, 0.5 * beta), reduction)


def huber_loss(
    x: TensorLike,
    target: TensorLike,
    reduction: str = "mean",
    delta: float = 1.0,
    *,
    weight: TensorLike | None = None,
) -> Tensor:
    """d**2 / 2 where d = |x - target| <= delta, else delta * (d - delta / 2).

    Parameters:
        x, target: of one shape; floating, ints and bools become float64.
        reduction: "mean" (over all elements), "sum" or "none".
        delta: a Python number > 0.
        weight: None, or factors that broadcast with the losses.

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction or delta.

    Gradient: dx = dy * (x - target) near, dy * delta * sign(x - target) far; dtarget = -dx.

    Source: Huber 1964, "Robust estimation of a location parameter".

    >>> gg.evaluate(gg.nn.huber_loss([1.5, 3.0], [1.0, 1.0], "none"))
    array([0.125, 1.5  ])
    """
    POSITIVE("delta", delta)
    x, t = _alike("huber_loss", x, target, reduction=reduction)
    d = absolute(x - t)
    losses = _bent(d, less_equal(d, delta), 0.5, delta, 0.5 * delta)
    return _reduced(losses, weight, reduction)


def _bent(d: Tensor, near: Tensor, factor: float, slope: float, less_by: float) -> Tensor:
    """factor * d**2 near, a line far; the square is taken only of what is near."""
    return where(near, square(where(near, d, 0.0)) * factor, (d - less_by) * slope)


def poisson_nll_loss(
    x: TensorLike,
    target: TensorLike,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """-log of the probability of counts, Poisson distributed with mean exp(x), or x.

    Parameters:
        x: the logarithm of the mean, or the mean itself.
        target: the counts, of the shape of x.
        log_input: whether x is the logarithm: exp(x) - target * x; else x - target * log(x +
            epsilon).
        full: whether log(target!) is added, by Stirling's formula where target > 1.
        epsilon: a Python number >= 0.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy * (exp(x) - target), or dy * (1 - target / (x + epsilon)).

    Source: PyTorch, torch.nn.functional.poisson_nll_loss.

    >>> gg.evaluate(gg.nn.poisson_nll_loss([0.0, 0.0], [0.0, 2.0], reduction="none"))
    array([1., 1.])
    """
    NON_NEGATIVE("epsilon", epsilon)
    truth("log_input", log_input)
    truth("full", full)
    x, t = _alike("poisson_nll_loss", x, target, reduction=reduction)
    losses = exp(x) - t * x if log_input else x - t * log(x + epsilon)
    if full:
        many = where(t > 1, t, 1.0)
        stirling = many * log(many) - many + 0.5 * log(many * (2 * math.pi))
        losses = losses + where(t > 1, stirling, 0.0)
    return reduce_losses(losses, reduction)


def gaussian_nll_loss(
    x: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """-log of the density of target, normally distributed with mean x and variance var.

    Parameters:
        x, target: of one shape; floating, ints and bools become float64.
        var: v, what broadcasts with x; at least epsilon is taken.
        full: whether log(2 pi) / 2 is added.
        epsilon: a Python number > 0.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: (log(v) + (x - target)**2 / v) / 2, or its mean or sum; dtypes promoted.

    Raises: ShapeError where the shapes do not fit; DTypeError for complex operands; ValueError for
        an unknown reduction or epsilon.

    Gradient: dx = dy * (x - target) / v, dvar = dy * (1 - (x - target)**2 / v) / (2 v), as if v
        were var.

    Source: Nix and Weigend 1994, "Estimating the mean and variance of the target probability
        distribution".

    >>> gg.evaluate(gg.nn.gaussian_nll_loss([1.0], [3.0], [1.0]))
    array(2.)
    """
    POSITIVE("epsilon", epsilon)
    truth("full", full)
    x, t = _alike("gaussian_nll_loss", x, target, reduction=reduction)
    x, t, given = real_operands("gaussian_nll_loss", x, t, var)
    held = where(less(given, epsilon), epsilon, stop_gradient(given))
    v = held + (given - stop_gradient(given))
    losses = 0.5 * (log(v) + square(x - t) / v)
    return reduce_losses(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


# --- probabilities -----------------------------------------------------------------------------


def nll_loss(
    log_probs: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    axis: int = -1,
) -> Tensor:
    """Minus the log-probability of the class that target names.

    Parameters:
        log_probs: one for each class along the axis, as of log_softmax; floating.
        target: class numbers, integers, the shape of log_probs without the axis; the loss of one
            that is not a class is NaN.
        weight: None, or a factor for each class; the mean is over their sum.
        ignore_index: a class number whose examples have a loss of 0 and do not count in a mean.
        reduction: "mean", "sum" or "none".
        axis: that of the classes, of known length.

    Returns: 0-d, or the shape of target; dtype of log_probs.

    Raises: ShapeError where target or weight do not fit; DTypeError for class numbers that are
        not integers, and complex log_probs; ValueError for an unknown reduction.

    Gradient: dlog_probs = -dy at the classes that are named, times their weight, else 0.

    Source: PyTorch, torch.nn.functional.nll_loss.

    >>> gg.evaluate(gg.nn.nll_loss([[-1.0, -2.0], [-3.0, -4.0]], [0, 1]))
    array(2.5)
    """
    INTEGER.if_given("ignore_index", ignore_index)
    one_of("reduction", reduction, REDUCTIONS)
    (logs,) = real_operands("nll_loss", log_probs)
    at, labels = normal_axis(axis, logs.ndim), as_tensor(target)
    check_labels(labels.type)
    if not compatible((*logs.shape[:at], *logs.shape[at + 1 :]), labels.shape):
        raise ShapeError(f"labels {labels.type!r} do not fit {logs.type!r} along axis {at}")
    count = known_length("nll_loss", logs, at)
    kept, safe = kept_labels(labels, ignore_index)
    places = cast(safe, "int64")
    known = logical_and(greater_equal(places, 0), less(places, count))
    picked = take_along_axis(logs, expand_dims(where(known, places, 0), at), axis=at)
    losses = where(known, negative(squeeze(picked, at)), math.nan)
    counts = None
    if weight is not None:
        counts = weights_at(class_weights(weight, logs, at), safe)
        losses = losses * counts
    return reduce_weighted(losses, counts, kept, reduction)


def binary_cross_entropy(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-target * log(x) - (1 - target) * log(1 - x), where 0 * log(0) is 0.

    Where the other side is certain it is infinite: PyTorch stops at 100. Of logits, use
    binary_cross_entropy_with_logits, which loses no digits.

    Parameters:
        x: probabilities.
        target: likewise, of the shape of x.
        weight: None, or factors that broadcast with the losses.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy * ((1 - target) / (1 - x) - target / x), where 0 / 0 is 0; dtarget = dy *
        (log(1 - x) - log(x)).

    Source: Bishop 2006, "Pattern recognition and machine learning", eq. 4.90.

    >>> gg.evaluate(gg.nn.binary_cross_entropy([0.5, 1.0], [0.0, 1.0], reduction="none")).round(4)
    array([0.6931, 0.    ])
    """
    x, t = _alike("binary_cross_entropy", x, target, reduction=reduction)
    losses = 0.0 - (xlogy(t, x) + xlogy(1.0 - t, 1.0 - x))
    return _reduced(losses, weight, reduction)


def binary_cross_entropy_with_logits(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross-entropy of sigmoid(x) with target, without overflow or log of zero.

    Parameters:
        x: logits.
        target: probabilities, of the shape of x.
        weight: None, or factors that broadcast with the losses.
        pos_weight: None, or factors of the losses where target is 1, which broadcast with x.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy * (sigmoid(x) - target); dtarget = -dy * x.

    Source: Bishop 2006, "Pattern recognition and machine learning", eq. 4.90.

    >>> loss = gg.nn.binary_cross_entropy_with_logits([0.0, 99.0], [1.0, 1.0])
    >>> round(float(gg.evaluate(loss)), 4)
    0.3466
    """
    x, t = _alike("binary_cross_entropy_with_logits", x, target, reduction=reduction)
    hit = t * softplus(negative(x))
    hit = hit if pos_weight is None else hit * pos_weight
    return _reduced(hit + (1.0 - t) * softplus(x), weight, reduction)


def kl_div(
    x: TensorLike, target: TensorLike, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """target * (log(target) - x): how far distributions target are from those with logarithm x.

    Parameters:
        x: log-probabilities.
        target: probabilities, or their logarithms, of the shape of x.
        reduction: "mean" (over all elements), "batchmean" (the sum over the length of the first
            axis, which is what the divergence is), "sum" or "none".
        log_target: whether target is logarithms.

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = -dy * target; dtarget = dy * (log(target) + 1 - x).

    Source: Kullback and Leibler 1951, "On information and sufficiency".

    >>> x = np.log([[0.5, 0.5]])
    >>> round(float(gg.evaluate(gg.nn.kl_div(x, [[1.0, 0.0]], "batchmean"))), 4)
    0.6931
    """
    truth("log_target", log_target)
    batch = reduction == "batchmean"
    one_of("reduction", reduction, (*REDUCTIONS, "batchmean"))
    x, t = _alike("kl_div", x, target, reduction="sum" if batch else reduction)
    losses = exp(t) * (t - x) if log_target else xlogy(t, t) - t * x
    if not batch:
        return reduce_losses(losses, reduction)
    if x.ndim == 0:
        raise ShapeError(f"'batchmean' takes a first axis of examples, got {x.type!r}")
    return mean(sum(losses, tuple(range(1, x.ndim))))


# --- margins -----------------------------------------------------------------------------------


def hinge_embedding_loss(
    x: TensorLike, target: TensorLike, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The distance x where target is 1, max(0, margin - x) where it is -1.

    Parameters:
        x: distances.
        target: 1 or -1, of the shape of x.
        margin: a Python number.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = dy where target is 1; -dy where it is -1 and x < margin; else 0.

    Source: PyTorch, torch.nn.functional.hinge_embedding_loss.

    >>> gg.evaluate(gg.nn.hinge_embedding_loss([0.25, 0.25], [1, -1], reduction="none"))
    array([0.25, 0.75])
    """
    FINITE("margin", margin)
    x, t = _alike("hinge_embedding_loss", x, target, reduction=reduction)
    losses = where(equal(t, -1), 0.0, x) + where(equal(t, 1), 0.0, relu(margin - x))
    return reduce_losses(losses, reduction)


def margin_ranking_loss(
    x1: TensorLike,
    x2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (x1 - x2)): target 1 says that x1 ranks higher, -1 that x2 does.

    Parameters:
        x1, x2: of one shape; floating, ints and bools become float64.
        target: 1 or -1, of that shape.
        margin: a Python number.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x1; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx1 = -dy * target where the loss is > 0, else 0; dx2 = -dx1.

    Source: PyTorch, torch.nn.functional.margin_ranking_loss.

    >>> gg.evaluate(gg.nn.margin_ranking_loss([3.0, 1.0], [1.0, 2.0], [1, 1], reduction="none"))
    array([0., 1.])
    """
    FINITE("margin", margin)
    a, b, t = _alike("margin_ranking_loss", x1, x2, target, reduction=reduction)
    return reduce_losses(relu(margin - t * (a - b)), reduction)


def soft_margin_loss(x: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x)), without overflow.

    Parameters:
        x: scores.
        target: 1 or -1, of the shape of x.
        reduction: "mean" (over all elements), "sum" or "none".

    Returns: 0-d, or the shape of x; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: dx = -dy * target * sigmoid(-target * x).

    Source: PyTorch, torch.nn.functional.soft_margin_loss.

    >>> gg.evaluate(gg.nn.soft_margin_loss([0.0, -99.0], [1, 1], "none")).round(4)
    array([ 0.6931, 99.    ])
    """
    x, t = _alike("soft_margin_loss", x, target, reduction=reduction)
    return reduce_losses(softplus(negative(t * x)), reduction)


def multilabel_soft_margin_loss(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes (the last axis) of the cross-entropies of sigmoid(x) with target.

    Parameters:
        x: scores, (..., C).
        target: 0 or 1, of the shape of x.
        weight: None, or a factor for each class.
        reduction: "mean" (over examples), "sum" or "none".

    Returns: 0-d, or the shape of x without its last axis; dtypes promoted.

    Raises: ShapeError where the shapes differ, or x has no axis; DTypeError for complex operands;
        ValueError for an unknown reduction.

    Gradient: dx = dy * weight * (sigmoid(x) - target) / C.

    Source: PyTorch, torch.nn.functional.multilabel_soft_margin_loss.

    >>> round(float(gg.evaluate(gg.nn.multilabel_soft_margin_loss([[0.0, 99.0]], [[1, 1]]))), 4)
    0.3466
    """
    x, t = _alike("multilabel_soft_margin_loss", x, target, reduction=reduction)
    _check_classes("multilabel_soft_margin_loss", x)
    losses = negative(t * log_sigmoid(x) + (1.0 - t) * log_sigmoid(negative(x)))
    if weight is not None:
        losses = losses * class_weights(weight, x, x.ndim - 1)
    return reduce_losses(mean(losses, -1), reduction)


def _check_classes(what: str, x: Tensor) -> None:
    if x.ndim == 0:
        raise ShapeError(f"{what} takes classes in the last axis, got {x.type!r}")


def multi_margin_loss(
    x: TensorLike,
    target: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i other than the target y of max(0, margin - x[y] + x[i])**p.

    It is the sum over these, divided by the number C of all classes.

    Parameters:
        x: scores, (..., C), C known.
        target: class numbers, integers, the shape of x without the last axis; the loss of one that
            is not a class is NaN.
        p: 1 or 2.
        margin: a Python number.
        weight: None, or a factor for each class, that of the target.
        reduction: "mean" (over examples), "sum" or "none".

    Returns: 0-d, or the shape of target; dtype of x.

    Raises: ShapeError where target does not fit; DTypeError for class numbers that are not
        integers; ValueError for an unknown reduction or p.

    Gradient: that of the formula, 0 where the margin is just met.

    Source: Crammer and Singer 2001, "On the algorithmic implementation of multiclass kernel-based
        vector machines".

    >>> gg.evaluate(gg.nn.multi_margin_loss([[0.5, 1.0, 0.0]], [0]))
    array(0.66666667)
    """
    Domain(1, 2, whole=True)("p", p)
    FINITE("margin", margin)
    one_of("reduction", reduction, REDUCTIONS)
    one_of("p", p, (1, 2))
    (x,) = real_operands("multi_margin_loss", x)
    _check_classes("multi_margin_loss", x)
    labels, count = as_tensor(target), known_length("multi_margin_loss", x, x.ndim - 1)
    score = nll_loss(x, labels, reduction="none")
    short = relu(margin + expand_dims(score, -1) + x)
    terms = where(one_hot(labels, count, "bool"), 0.0, short if p == 1 else square(short))
    losses = where(equal(score, score), sum(terms, -1) / count, math.nan)
    if weight is not None:
        losses = losses * weights_at(class_weights(weight, x, x.ndim - 1), labels)
    return reduce_losses(losses, reduction)


def multilabel_margin_loss(x: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The sum over target classes y and others i of max(0, 1 - x[y] + x[i]), divided by C.

    Parameters:
        x: scores, (..., C), C known.
        target: class numbers, integers of the shape of x: those before the first negative one.
        reduction: "mean" (over examples), "sum" or "none".

    Returns: 0-d, or the shape of x without its last axis; dtype of x.

    Raises: ShapeError where the shapes differ; DTypeError for class numbers that are not integers;
        ValueError for an unknown reduction. A run raises IndexError for one that is too great.

    Gradient: that of the formula, 0 where the margin is just met.

    Source: PyTorch, torch.nn.functional.multilabel_margin_loss.

    >>> round(float(gg.evaluate(gg.nn.multilabel_margin_loss([[0.5, 0.25, 0.0]], [[1, -1, 0]]))), 4)
    0.6667
    """
    one_of("reduction", reduction, REDUCTIONS)
    (x,) = real_operands("multilabel_margin_loss", x)
    _check_classes("multilabel_margin_loss", x)
    labels, count = as_tensor(target), known_length("multilabel_margin_loss", x, x.ndim - 1)
    check_labels(labels.type)
    if not compatible(x.shape, labels.shape):
        raise ShapeError(f"labels {labels.type!r} do not have the shape of {x.type!r}")
    named = cumulative_prod(cast(greater_equal(labels, 0), "int64"), axis=x.ndim - 1) > 0
    places = where(named, cast(labels, "int64"), 0)
    hits = logical_and(one_hot(places, count, "bool"), expand_dims(named, -1))
    others = logical_not(any_of(hits, -2))
    scores = expand_dims(take_along_axis(x, places, axis=x.ndim - 1), -1)
    pairs = logical_and(expand_dims(named, -1), expand_dims(others, -2))
    terms = where(pairs, relu(1.0 - scores + expand_dims(x, -2)), 0.0)
    return reduce_losses(sum(terms, (-2, -1)) / count, reduction)


def cosine_embedding_loss(
    x1: TensorLike,
    x2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where target is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Parameters:
        x1, x2: vectors in the last axis, of one shape.
        target: 1 or -1, the shape of x1 without its last axis.
        margin: a Python number.
        reduction: "mean" (over examples), "sum" or "none".

    Returns: 0-d, or the shape of target; dtypes promoted.

    Raises: ShapeError where the shapes do not fit; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: that of cosine_similarity, times -dy, or dy where the loss is > 0.

    Source: PyTorch, torch.nn.functional.cosine_embedding_loss.

    >>> x, y = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 2.0], [3.0, 0.0]]
    >>> gg.evaluate(gg.nn.cosine_embedding_loss(x, y, [1, -1], reduction="none"))
    array([1., 1.])
    """
    FINITE("margin", margin)
    x1, x2 = _alike("cosine_embedding_loss", x1, x2, reduction=reduction)
    _check_classes("cosine_embedding_loss", x1)
    similar, t = cosine_similarity(x1, x2), as_tensor(target)
    if t.ndim and not compatible(similar.shape, t.shape):
        raise ShapeError(f"target has one number for each of {x1.type!r}, got {t.type!r}")
    losses = where(equal(t, 1), 1.0 - similar, 0.0)
    losses = losses + where(equal(t, -1), relu(similar - margin), 0.0)
    return reduce_losses(losses, reduction)


def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2.0,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    *,
    distance: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Parameters:
        anchor, positive, negative: vectors in the last axis, of one shape.
        margin: a Python number.
        p, epsilon: those of pairwise_distance.
        swap: whether the distance of positive and negative counts where it is the smaller one.
        reduction: "mean" (over examples), "sum" or "none".
        distance: what takes two tensors to their distance; None: pairwise_distance.

    Returns: 0-d, or the shape of anchor without its last axis; dtypes promoted.

    Raises: ShapeError where the shapes differ; DTypeError for complex operands; ValueError for
        an unknown reduction.

    Gradient: that of the distances where the loss is > 0, else 0.

    Source: Balntas et al. 2016, "Learning local feature descriptors with triplets and shallow
        convolutional neural networks".

    >>> round(float(gg.evaluate(gg.nn.triplet_margin_loss([[0.0]], [[1.0]], [[1.5]]))), 3)
    0.5
    """
    NUMBER("p", p)
    FINITE("epsilon", epsilon)
    FINITE("margin", margin)
    truth("swap", swap)
    a, b, c = _alike("triplet_margin_loss", anchor, positive, negative, reduction=reduction)
    _check_classes("triplet_margin_loss", a)

    def apart(x: Tensor, y: Tensor) -> Tensor:
        return distance(x, y) if distance else pairwise_distance(x, y, p, epsilon)

    far = apart(a, c)
    if swap:
        far = minimum(far, apart(b, c))
    return reduce_losses(relu(apart(a, b) - far + margin), reduction)
