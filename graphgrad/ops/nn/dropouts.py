"""Dropout."""

from __future__ import annotations

import math

from ...base.domains import BELOW_ONE
from ...base.errors import ShapeError
from ...base.flags import truth
from ..base import Any, Tensor, TensorLike, apply, promoted
from ..elementwise.logic import where
from ..random import bernoulli
from ..shape.slicing import FULL, Slice
from .activations import SELU_ALPHA, SELU_SCALE
from .moving_windows import format_of
from .operands import real_operands

__all__ = ["alpha_dropout", "channel_dropout", "dropout"]


def dropout(
    x: TensorLike, rate: float, *, seed: TensorLike | None = None, training: bool = True
) -> Tensor:
    """x with each element 0 with probability rate, the others divided by 1 - rate.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        rate: a Python number, 0 <= rate < 1.
        seed: an int or a scalar integer tensor; one seed, one mask, forward and backward. None: the
            graph's own numbers, another mask in every run.
        training: whether to drop at all; if not, the result is x itself.

    Returns: shape and dtype of x.

    Raises: ValueError for another rate; DTypeError for another seed.

    Gradient: dx = dy / (1 - rate) where the element was kept, else 0.

    Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
        overfitting"; scaled in training.

    >>> gg.evaluate(gg.nn.dropout(np.ones(6), 0.5, seed=3))
    array([0., 2., 0., 2., 0., 0.])
    """
    truth("training", training)
    (x,) = promoted(x, floating=True)
    BELOW_ONE("rate", rate)
    if not training or rate == 0:
        return x
    kept = bernoulli(x, 1.0 - rate, seed=seed)
    return where(kept, x * (1.0 / (1.0 - rate)), 0.0)


def channel_dropout(
    x: TensorLike,
    rate: float,
    *,
    seed: TensorLike | None = None,
    training: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """x with each channel of each example 0 with probability rate, the others / (1 - rate).

    Parameters:
        x: (N, ..., C), or (N, C, ...) with data_format="NCHW"; floating or complex, ints and bools
            become float64.
        rate: a Python number, 0 <= rate < 1.
        seed: an int or a scalar integer tensor; one seed, one mask, forward and backward. None: the
            graph's own numbers, another mask in every run.
        training: whether to drop at all; if not, the result is x itself.
        data_format: "NHWC" or "NCHW".

    Returns: shape and dtype of x.

    Raises: ShapeError if x has less than two axes, or for another format; ValueError for another
        rate; DTypeError for another seed.

    Gradient: dx = dy / (1 - rate) where the channel was kept, else 0.

    Source: Tompson et al. 2015, "Efficient object localization using convolutional networks".

    >>> y = gg.nn.channel_dropout(np.ones((1, 3, 4)), 0.5, seed=5)
    >>> gg.evaluate(y)[0, :, :].std(0)
    array([0., 0., 0., 0.])
    """
    truth("training", training)
    (x,) = promoted(x, floating=True)
    BELOW_ONE("rate", rate)
    at = _spatial_start(x, data_format)
    if not training or rate == 0:
        return x
    kept = bernoulli(_of_channels(x, at), 1.0 - rate, seed=seed)
    return where(kept, x * (1.0 / (1.0 - rate)), 0.0)


SATURATED = -SELU_ALPHA * SELU_SCALE
"""What selu makes of -infinity."""


def alpha_dropout(
    x: TensorLike,
    rate: float,
    *,
    seed: TensorLike | None = None,
    training: bool = True,
    channels: bool = False,
    data_format: str = "NHWC",
) -> Tensor:
    """Dropout for selu: elements become selu(-inf), and the result keeps mean 0 and variance 1.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        rate: a Python number, 0 <= rate < 1.
        seed: an int or a scalar integer tensor; one seed, one mask, forward and backward. None: the
            graph's own numbers, another mask in every run.
        training: whether to drop at all; if not, the result is x itself.
        channels: whether a whole channel of an example is dropped or kept, as in channel_dropout.
        data_format: "NHWC" or "NCHW", where channels are dropped.

    Returns: shape and dtype of x.

    Raises: ShapeError if whole channels are requested of an x with fewer than two axes, or for
        another format; ValueError for another rate; DTypeError for another seed, or if x is
        complex.

    Gradient: dx = a * dy where the element was kept, else 0, with a = 1 / sqrt(q + s**2 q (1 - q)),
        q = 1 - rate and s = selu(-inf).

    Source: Klambauer et al. 2017, "Self-normalizing neural networks", sec. "Dropout".

    >>> gg.evaluate(gg.nn.alpha_dropout(np.zeros(4), 0.5, seed=3)).round(3)
    array([-0.779,  0.779, -0.779,  0.779])
    """
    truth("training", training)
    truth("channels", channels)
    (x,) = real_operands("alpha_dropout", x)
    BELOW_ONE("rate", rate)
    at = _spatial_start(x, data_format) if channels else None
    if not training or rate == 0:
        return x
    one = x if at is None else _of_channels(x, at)
    keep = 1.0 - rate
    scale = 1.0 / math.sqrt(keep + SATURATED**2 * keep * rate)
    kept = bernoulli(one, keep, seed=seed)
    return where(kept, x, SATURATED) * scale - scale * rate * SATURATED


def _spatial_start(x: Tensor, data_format: str) -> int:
    """The first axis of x that is neither that of the examples nor that of the channels."""
    if x.ndim < 2:
        raise ShapeError(f"channels of examples: two axes or more are needed, got {x.type!r}")
    return 2 if format_of(data_format) == "NCHW" else 1


def _of_channels(x: Tensor, at: int) -> Any:
    """The shape of one number for each channel of each example; a part of x where it is unknown."""
    inner = x.ndim - 2
    shape = (*x.shape[:at], *[1] * inner, *x.shape[at + inner :])
    if None not in shape:
        return shape
    ones: tuple[Any, ...] = ((None, 1, None),) * inner
    return apply(Slice((*[FULL] * at, *ones)), x) if inner else x
