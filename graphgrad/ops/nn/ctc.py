"""Connectionist temporal classification: sums over all alignments of labels with time steps.

Labels with blanks between them are states in a row; in a step of time one stays, goes on to the
next state, or beyond a blank to the next but one. Sums over ways are recurrences with three bands,
which are closed under differentiation.
"""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import alike, compatible, elements
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
    like,
    np,
    wants,
)
from ..batching import Batch, Outputs
from ..create.creation import arange, ones_like, zeros_like
from ..elementwise.arithmetic import negative
from ..elementwise.logic import equal, greater, logical_and, logical_or, not_equal, where
from ..elementwise.remainders import remainder
from ..reduce.cumulative import Shift
from ..reduce.reductions import logsumexp, mean, sum
from ..reduce.sorting import take_along_axis
from ..shape.folding import merged
from ..shape.joining import stack, unstack
from ..shape.padding import Pad
from ..shape.reshaping import broadcast_like, expand_dims, moveaxis, squeeze
from .classes import check_labels
from .loss_reduction import REDUCTIONS
from .operands import known_length, one_of, real_operands, told_length
from .softmaxes import Softmax

__all__ = ["ctc_loss"]

NEVER = -1e30
"""The logarithm of the probability of what cannot be: finite, so that gradients are."""
BANDS = 3


def _moved(xp: Any, x: Any, by: int, fill: float) -> Any:
    """x moved along the last axis by 0, 1, 2 (or -1, -2) places, with fill where nothing was."""
    if by == 0:
        return x
    n = x.shape[-1]
    width = min(abs(by), n)
    edge = xp.full((*x.shape[:-1], width), fill, dtype=x.dtype)
    parts = [edge, x[..., : n - width]] if by > 0 else [x[..., width:], edge]
    return xp.concatenate(parts, axis=-1)


class Banded(Op, abstract=True):
    """Family: a recurrence over the first axis, in which states in the last axis follow states.

    reverse  time runs backwards, and so do the states
    """

    reverse: bool = False

    def step(self, xp: Any, row: Any, before: Any, weights: Any) -> Any:
        """y[t], of b[t], y[t - 1] and the bands at t."""
        raise NotImplementedError

    def kernel(self, xp: Any, b: Any, *bands: Any) -> Any:
        n, step = b.shape[0], -1 if self.reverse else 1
        rows: list[Any] = []
        for t in range(n)[::step]:
            row = b[t]
            rows.append(self.step(xp, row, rows[-1], [w[t] for w in bands]) if rows else row)
        return xp.stack(rows[::step], axis=0) if rows else b * 1

    def infer(self, b: TensorType, *bands: TensorType) -> Types:
        made = alike(b, *bands)
        if len(b.shape) < 2 or len(bands) != BANDS or made is None:
            raise ShapeError(f"{self.type} takes b and three bands like it, got {b!r}, {bands!r}")
        return (made,)

    def batch(self, batch: Batch) -> Outputs:
        inputs = [moveaxis(t, 0, 1) for t in batch.every()]
        return (moveaxis(apply(self, *inputs), 1, 0),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Six for each element."""
        return 2 * BANDS * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(4, 2, 5)) for _ in range(4)]
        yield cls(True), [rng.normal(size=(3, 4)).astype("float32") for _ in range(4)]
        yield cls(), [rng.normal(size=(0, 2)) for _ in range(4)]


class BandedRecurrence(Banded):
    """y[t, s] = b[t, s] + sum over k = 0, 1, 2 of w_k[t, s] * y[t - 1, s - k]; w_k[0] is not read.

    Gradient: db is the recurrence of dy the other way round, with each band where it leads to,
        and dw_k[t, s] = db[t, s] * y[t - 1, s - k].
    """

    linear = (0,)

    def step(self, xp: Any, row: Any, before: Any, weights: Any) -> Any:
        step = -1 if self.reverse else 1
        for k, w in enumerate(weights):
            row = row + w * _moved(xp, before, k * step, 0)
        return row

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        bands, (y,) = node.inputs[1:], node.outputs
        step = -1 if self.reverse else 1
        last = dy.ndim - 1
        back = [_led(w, last, k, step) for k, w in enumerate(bands)]
        db = apply(BandedRecurrence(not self.reverse), dy, *back)
        before = apply(Shift(0, step), y)
        return db, *(
            db * (apply(Shift(last, k * step), before) if k else before) if wants(w) else NO_GRAD
            for k, w in enumerate(bands)
        )


class LogBandedRecurrence(Banded):
    """y[t, s] = b[t, s] + log of the sum over k = 0, 1, 2 of exp(w_k[t, s] + y[t - 1, s - k]).

    Gradient: with the shares p_k of the sum, db is the banded recurrence of dy the other way
        round, dw_k = db p_k.

    What would be before the first state is NEVER, and w_k[0] is not read: y[0] = b[0].
    """

    def step(self, xp: Any, row: Any, before: Any, weights: Any) -> Any:
        step = -1 if self.reverse else 1
        terms = [w + _moved(xp, before, k * step, NEVER) for k, w in enumerate(weights)]
        top = xp.maximum(xp.maximum(terms[0], terms[1]), terms[2])
        total = xp.exp(terms[0] - top) + xp.exp(terms[1] - top) + xp.exp(terms[2] - top)
        return row + (top + xp.log(total))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        bands, (y,) = node.inputs[1:], node.outputs
        step = -1 if self.reverse else 1
        last = dy.ndim - 1
        before = apply(Shift(0, step), y)
        terms = stack([w + _from(before, last, k * step) for k, w in enumerate(bands)], 0)
        shares = unstack(apply(Softmax(0), terms), 0)
        back = [_led(p, last, k, step) for k, p in enumerate(shares)]
        db = apply(BandedRecurrence(not self.reverse), dy, *back)
        later = apply(Shift(0, step), apply(Shift(0, -step), db))  # all but the first step
        return db, *(later * p if wants(w) else NO_GRAD for w, p in zip(bands, shares, strict=True))


def _led(band: Tensor, last: int, k: int, step: int) -> Tensor:
    """A band where it leads from: at the step before, k states nearer."""
    earlier = apply(Shift(0, -step), band)
    return apply(Shift(last, -k * step), earlier) if k else earlier


def _from(x: Tensor, last: int, by: int) -> Tensor:
    """x moved along its states, NEVER where there is none."""
    if by == 0:
        return x
    there = apply(Shift(last, by), ones_like(x))
    return apply(Shift(last, by), x) + (1.0 - there) * NEVER


def ctc_loss(
    log_probs: TensorLike,
    targets: TensorLike,
    input_lengths: TensorLike,
    target_lengths: TensorLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability that log_probs give the targets, with blanks and repeats dropped.

    Parameters:
        log_probs: (T, N, C), logarithms of the probabilities of C classes at each step, as of
            log_softmax; C known; floating.
        targets: (N, S), class numbers other than blank, integers.
        input_lengths: (N,), how many steps each example has, integers from 0 to T.
        target_lengths: (N,), how many targets, integers from 0 to S.
        blank: the class that says nothing.
        reduction: "mean" (of the losses, each divided by its number of targets, or 1), "sum" or
            "none".
        zero_infinity: whether a loss that is infinite, since there are too few steps, counts as 0.

    Returns: 0-d, or (N,); dtype of log_probs.

    Raises: ShapeError where the shapes do not fit, or lengths depend on values; DTypeError for
        numbers that are not integers; ValueError for an unknown reduction. A run raises IndexError
        for a class or a length that is too great.

    Gradient: dlog_probs[t, n, c] = -dy * the probability, given the targets, that class c is said
        at step t; 0 where the loss is infinite.

    Source: Graves et al. 2006, "Connectionist temporal classification: labelling unsegmented
        sequence data with recurrent neural networks", sec. 4.1.

    >>> logs = np.log(np.full((2, 1, 2), 0.5))
    >>> gg.evaluate(gg.nn.ctc_loss(logs, [[1]], [2], [1], reduction="none")).round(4)
    array([0.2877])
    """
    truth("zero_infinity", zero_infinity)
    one_of("reduction", reduction, REDUCTIONS)
    (logs,) = real_operands("ctc_loss", log_probs)
    numbers = [as_tensor(t) for t in (targets, input_lengths, target_lengths)]
    for t in numbers:
        check_labels(t.type)
    labels, steps, counts = (cast(t, "int64") for t in numbers)
    _check_sequences(logs, labels, steps, counts, blank)
    states, skips = _states(labels, blank)
    ways = _ways(logs, states, skips)
    one = like(1, steps)
    last = expand_dims(where(greater(steps, 0), steps - one, like(0, steps)), (0, 2))
    ends = squeeze(take_along_axis(ways, last, axis=0), 0)  # (N, states)
    numbered = arange(told_length("ctc_loss", states, 1))
    final = expand_dims(counts * 2, 1)
    here = logical_or(equal(numbered, final), equal(numbered, final - 1))
    total = logsumexp(where(here, ends, NEVER), -1)
    possible = logical_and(greater(total, NEVER / 2), greater(steps, 0))
    lost = 0.0 if zero_infinity else np.inf
    empty = logical_and(equal(steps, 0), equal(counts, 0))
    losses = where(possible, negative(total), where(empty, 0.0, like(lost, logs)))
    if reduction != "mean":
        return sum(losses) if reduction == "sum" else losses
    return mean(losses / cast(where(greater(counts, 1), counts, one), logs.dtype))


def _check_sequences(
    logs: Tensor, labels: Tensor, steps: Tensor, counts: Tensor, blank: int
) -> None:
    if logs.ndim != 3 or labels.ndim != 2 or steps.ndim != 1 or counts.ndim != 1:
        raise ShapeError(
            f"ctc_loss takes (T, N, C), targets (N, S) and lengths (N,), got {logs.type!r}, "
            f"{labels.type!r}, {steps.type!r} and {counts.type!r}"
        )
    if not all(compatible((logs.shape[1],), (t.shape[0],)) for t in (labels, steps, counts)):
        raise ShapeError(
            f"ctc_loss of {logs.type!r} with {labels.type!r}, {steps.type!r} and {counts.type!r}: "
            "the numbers of examples differ"
        )
    if told_length("ctc_loss", logs, 0) == 0:
        raise ShapeError(f"ctc_loss takes at least one step, got {logs.type!r}")
    classes = known_length("ctc_loss", logs, 2)
    if not 0 <= blank < classes:
        raise ShapeError(f"blank {blank} is none of {classes} classes of {logs.type!r}")


def _states(labels: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """(N, 2 S + 1): the class of each state, and whether it follows the one before its blank."""
    count = told_length("ctc_loss", labels, 1)
    blanks = labels * 0 + blank
    pairs = merged(stack([blanks, labels], -1), 1)
    edge = apply(Pad(((0, 0), (0, 1)), blank), pairs)
    differ = not_equal(edge, apply(Shift(1, 2), edge))
    odd = equal(remainder(arange(2 * count + 1), 2), 1)
    return edge, logical_and(differ, odd)


def _ways(logs: Tensor, states: Tensor, skips: Tensor) -> Tensor:
    """(T, N, states): log of the probability of all ways to be in a state after a step."""
    time, length = told_length("ctc_loss", logs, 0), told_length("ctc_loss", states, 1)
    said = take_along_axis(logs, expand_dims(states, 0), axis=2)
    said = where(greater(said, NEVER), said, where(equal(said, said), NEVER, said))
    first = expand_dims(equal(arange(time), 0), (1, 2))
    said = where(logical_and(first, greater(arange(length), 1)), NEVER, said)
    free = zeros_like(said)
    jump = broadcast_like(where(skips, like(0, logs), like(NEVER, logs)), said)
    return apply(LogBandedRecurrence(), said, free, free, jump)
