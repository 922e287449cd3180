"""Normalisation by mean and variance."""

from __future__ import annotations

from functools import reduce

from ...base.domains import FINITE, NON_NEGATIVE, PROBABILITY
from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.kinds import accumulated_in, limits_of
from ...ir.types import compatible
from ..base import Any, Tensor, TensorLike, apply, as_tensor, cast, rounded_once, whole
from ..elementwise.arithmetic import add, multiply
from ..elementwise.exponential import sqrt
from ..reduce.reductions import mean, normal_axes, size_over
from ..shape.folding import merged, parted
from ..shape.padding import Pad
from ..shape.reshaping import Squeeze, expand_dims, normal_axis
from ..shape.slicing import FULL, Slice
from .operands import known_length, real_operands

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
    "standardize",
]

_mean = mean


def layer_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """y = (x - mean) / sqrt(variance + epsilon) over axes, times scale, plus offset.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        scale, offset: None, or what broadcasts with x.
        axis: an int, several in a tuple, or None for all of them.
        epsilon: a Python number >= 0.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or scale or offset do not broadcast; DTypeError if x
        is complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ba, Kiros and Hinton 2016, "Layer normalization".

    >>> gg.evaluate(gg.nn.layer_norm([[1.0, 3.0], [5.0, 5.0]], epsilon=0.0001)).round(3)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    NON_NEGATIVE("epsilon", epsilon)
    (x,) = real_operands("layer_norm", x)
    axes = normal_axes(axis, x.ndim)
    return _scaled(_normalised(x, axes, epsilon)[0], scale, offset)


def batch_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    *,
    running: tuple[TensorLike, TensorLike] | None = None,
    training: bool = True,
    momentum: float = 0.1,
) -> tuple[Tensor, Tensor, Tensor]:
    """x normalised over all axes but one, with the mean and the variance that belong to it.

    Without running moments these are those of x, which were used. With them, training uses those of
    x and returns the running ones moved towards them; else the running ones are used.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        scale, offset: None, or one number for each channel.
        axis: that of the channels.
        epsilon: a Python number >= 0.
        running: None, or mean and variance over the examples seen so far, one number for each
            channel.
        training: whether the moments of x are used.
        momentum: from 0 to 1: how much of the new running moments is that of x. The variance of n
            examples counts times n / (n - 1) there, as an estimate without bias.

    Returns: y = (x - mean) / sqrt(variance + epsilon) * scale + offset, of the shape of x; mean and
        variance, each of the length of the axis: of x, or the new running ones.

    Raises: ShapeError if x has no such axis, or scale, offset or running moments do not fit it;
        DTypeError if x is complex; ValueError where no training has no running moments, or for
        another momentum.

    Gradient: that of the formula, through mean and variance where they are of x.

    Source: Ioffe and Szegedy 2015, "Batch normalization: accelerating deep network training by
        reducing internal covariate shift", alg. 1.

    >>> y, mean, variance = gg.nn.batch_norm([[1.0, 5.0], [3.0, 5.0]])
    >>> gg.evaluate(mean), gg.evaluate(variance)
    (array([2., 5.]), array([1., 0.]))
    """
    PROBABILITY("momentum", momentum)
    NON_NEGATIVE("epsilon", epsilon)
    truth("training", training)
    (x,) = real_operands("batch_norm", x)
    channel = normal_axis(axis, x.ndim)
    if running is None and not training:
        raise ValueError("batch_norm without training uses running moments: running=(mean, var)")
    moments = None if running is None else [_of_channels(x, channel, t) for t in running]
    axes = tuple([a for a in range(x.ndim) if a != channel])
    after = tuple(range(1, x.ndim - channel))
    scale, offset = (
        None if t is None else expand_dims(t, after) if after else as_tensor(t)
        for t in (scale, offset)
    )
    if moments is not None and not training:
        average, variance = (expand_dims(t, after) if after else t for t in moments)
        wide = accumulated_in(x.dtype)
        y = (cast(x, wide) - average) / sqrt(cast(variance, wide) + epsilon)
        return _scaled(cast(y, x.dtype), scale, offset), moments[0], moments[1]
    y, *of_x = _normalised(x, axes, epsilon)
    average, variance = (apply(Squeeze(axes), t) for t in of_x)
    if moments is not None:
        count = size_over(x, axes, variance.dtype)
        unbiased = variance * (count / (count - 1.0))
        average = _moved(moments[0], average, momentum)
        variance = _moved(moments[1], unbiased, momentum)
    return _scaled(y, scale, offset), cast(average, x.dtype), cast(variance, x.dtype)


def _of_channels(x: Tensor, channel: int, given: TensorLike) -> Tensor:
    """Running moments in the dtype of x; ShapeError unless there is one for each channel."""
    t = cast(as_tensor(given), x.dtype)
    if not compatible(t.shape, (x.shape[channel],)):
        raise ShapeError(
            f"running moments have one number for each channel of {x.type!r}, axis {channel}, "
            f"got {t.type!r}"
        )
    return t


def _moved(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    """The running moment after another batch."""
    return old * (1.0 - momentum) + new * momentum


def group_norm(
    x: TensorLike,
    groups: int,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """x normalised, for each example (first axis), over each group of channels and all places.

    Parameters:
        x: (N, ..., C); floating, ints and bools become float64.
        groups: into how many groups of neighbours the channels are divided; divides C.
        scale, offset: None, or one number for each channel.
        axis: that of the channels, not the first one.
        epsilon: a Python number >= 0.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, C is unknown or not divided by groups, or scale or
        offset do not fit; DTypeError if x is complex.

    Gradient: that of the formula, through mean and variance.

    Source: Wu and He 2018, "Group normalization".

    >>> gg.evaluate(gg.nn.group_norm([[1.0, 3.0, 5.0, 9.0]], 2, epsilon=0.0))
    array([[-1.,  1., -1.,  1.]])
    """
    NON_NEGATIVE("epsilon", epsilon)
    (x,) = real_operands("group_norm", x)
    channel, count = _inner_channel("group_norm", x, axis), whole("groups", groups)
    length = known_length("group_norm", x, channel)
    if count < 1 or length % count:
        raise ShapeError(f"group_norm in {count} groups of {length} channels of {x.type!r}")
    split = parted(x, channel, count, length // count)
    axes = tuple([a for a in range(1, split.ndim) if a != channel])
    y = merged(_normalised(split, axes, epsilon)[0], channel)
    return _by_channel(y, channel, scale, offset)


def instance_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """x normalised over all places, for each example (first axis) and channel.

    Parameters:
        x: (N, ..., C); floating, ints and bools become float64.
        scale, offset: None, or one number for each channel.
        axis: that of the channels, not the first one.
        epsilon: a Python number >= 0.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or scale or offset do not fit; DTypeError if x is
        complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ulyanov, Vedaldi and Lempitsky 2016, "Instance normalization".

    >>> gg.evaluate(gg.nn.instance_norm([[[1.0, 5.0], [3.0, 9.0]]], epsilon=0.0))
    array([[[-1., -1.],
            [ 1.,  1.]]])
    """
    NON_NEGATIVE("epsilon", epsilon)
    (x,) = real_operands("instance_norm", x)
    channel = _inner_channel("instance_norm", x, axis)
    axes = tuple([a for a in range(1, x.ndim) if a != channel])
    return _by_channel(_normalised(x, axes, epsilon)[0], channel, scale, offset)


def _inner_channel(what: str, x: Tensor, axis: int) -> int:
    channel = normal_axis(axis, x.ndim)
    if channel == 0:
        raise ShapeError(
            f"{what} takes examples in the first axis, channels in another one, got "
            f"axis {axis} of {x.type!r}"
        )
    return channel


def _by_channel(
    y: Tensor, channel: int, scale: TensorLike | None, offset: TensorLike | None
) -> Tensor:
    """y times scale plus offset, one of each for every channel."""
    after = tuple(range(1, y.ndim - channel))
    parts = (None if t is None else _of_channels(y, channel, t) for t in (scale, offset))
    return _scaled(y, *[t if t is None or not after else expand_dims(t, after) for t in parts])


def rms_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    axis: Any = -1,
    epsilon: float | None = None,
) -> Tensor:
    """y = x / sqrt(mean of x**2 + epsilon) over axes, times scale.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        scale: None, or what broadcasts with x.
        axis: an int, several in a tuple, or None for all of them.
        epsilon: a Python number >= 0; None: the distance from 1 to the next number of the dtype.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or scale does not broadcast; DTypeError if x is
        complex.

    Gradient: with r the root: dx = (dy * scale - y * mean(dy * y)) / r, where y is before scale.

    Source: Zhang and Sennrich 2019, "Root mean square layer normalization".

    >>> gg.evaluate(gg.nn.rms_norm([[3.0, 4.0]]) * np.sqrt(12.5)).round(4)
    array([[3., 4.]])
    """
    NON_NEGATIVE.if_given("epsilon", epsilon)
    (x,) = real_operands("rms_norm", x)
    added = float(limits_of(x.dtype).eps) if epsilon is None else epsilon
    axes = normal_axes(axis, x.ndim)
    y = rounded_once(lambda x: x / sqrt(mean(x * x, axes, True) + added), x)
    return _scaled(y, scale, None)


def standardize(
    x: TensorLike,
    axis: Any = -1,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon), with the moments of x over axes or given ones.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        mean, variance: None, or what broadcasts with x.
        epsilon: a Python number >= 0.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or the moments do not broadcast; DTypeError if x is
        complex.

    Gradient: that of the formula, through the moments.

    Source: jax.nn.standardize.

    >>> gg.evaluate(gg.nn.standardize([1.0, 3.0], epsilon=0.0))
    array([-1.,  1.])
    """
    NON_NEGATIVE("epsilon", epsilon)
    (x,) = real_operands("standardize", x)
    axes = normal_axes(axis, x.ndim)

    def standard(x: Tensor) -> Tensor:
        centred = x - (_mean(x, axes, True) if mean is None else as_tensor(mean, x.dtype))
        spread = (
            _mean(centred * centred, axes, True)
            if variance is None
            else as_tensor(variance, x.dtype)
        )
        return centred / sqrt(spread + epsilon)

    return rounded_once(standard, x)


def local_response_norm(
    x: TensorLike,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    axis: int = -1,
) -> Tensor:
    """y = x / (k + alpha * m)**beta, m the mean of x**2 over `size` channels around, 0 outside.

    Parameters:
        x: (N, ..., C); floating, ints and bools become float64.
        size: an int >= 1.
        alpha, beta, k: Python numbers.
        axis: that of the channels.

    Returns: shape and dtype of x.

    Raises: ShapeError if x has no such axis, or size < 1; DTypeError if x is complex.

    Gradient: that of the formula.

    Source: Krizhevsky, Sutskever and Hinton 2012, "ImageNet classification with deep convolutional
        neural networks", sec. 3.3.

    >>> gg.evaluate(gg.nn.local_response_norm([[1.0, 2.0]], 2, alpha=2.0, beta=1.0)).round(4)
    array([[0.5   , 0.3333]])
    """
    FINITE("alpha", alpha)
    FINITE("beta", beta)
    FINITE("k", k)
    (x,) = real_operands("local_response_norm", x)
    channel, count = normal_axis(axis, x.ndim), whole("size", size)
    if count < 1:
        raise ShapeError(f"local_response_norm takes a size >= 1, got {count}")
    around = [(0, 0)] * x.ndim
    around[channel] = (count // 2, (count - 1) // 2)
    before = (FULL,) * channel

    def normalised(x: Tensor) -> Tensor:
        squares = apply(Pad(tuple(around)), x * x)
        parts = [
            apply(Slice((*before, (i or None, i + 1 - count or None, None))), squares)
            for i in range(count)
        ]
        return x / (reduce(add, parts) * (alpha / count) + k) ** beta

    return rounded_once(normalised, x)


def _normalised(x: Tensor, axes: Any, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """x normalised, its mean and its variance. Of 16 bits, the moments are float32."""
    wide = cast(x, accumulated_in(x.dtype))
    average = mean(wide, axes, True)
    centred = wide - average
    variance = mean(centred * centred, axes, True)
    y = centred / sqrt(variance + epsilon)
    return cast(y, x.dtype), average, variance


def _scaled(y: Tensor, scale: TensorLike | None, offset: TensorLike | None) -> Tensor:
    y = y if scale is None else multiply(y, scale)
    return y if offset is None else y + offset
