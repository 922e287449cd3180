"""Normalisation by mean and variance."""

from __future__ import annotations

from ..arithmetic import multiply
from ..base import (
    Any,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    promoted,
)
from ..exponential import sqrt
from ..reductions import mean, normal_axes
from ..shaping import Squeeze, expand_dims, normal_axis
from .operands import check_real

__all__ = ["batch_norm", "layer_norm"]


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
        epsilon: a Python number.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or scale or offset do not broadcast; DTypeError if x
        is complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ba, Kiros and Hinton 2016, "Layer normalization".

    >>> gg.evaluate(gg.nn.layer_norm([[1.0, 3.0], [5.0, 5.0]], epsilon=0.0001)).round(3)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    (x,) = promoted(x, floating=True)
    check_real("layer_norm", x)
    axes = normal_axes(axis, x.ndim)
    return _scaled(_normalised(x, axes, epsilon)[0], scale, offset)


def batch_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """x normalised over all axes but one, with the mean and the variance that were used.

    For inference use stored moments: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        scale, offset: None, or one number for each channel.
        axis: that of the channels.
        epsilon: a Python number.

    Returns: y = (x - mean) / sqrt(variance + epsilon) * scale + offset, of the shape of x; mean and
        variance, each of the length of the axis.

    Raises: ShapeError if x has no such axis, or scale or offset do not fit it; DTypeError if x is
        complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ioffe and Szegedy 2015, "Batch normalization: accelerating deep network training by
        reducing internal covariate shift", alg. 1.

    >>> y, mean, variance = gg.nn.batch_norm([[1.0, 5.0], [3.0, 5.0]])
    >>> gg.evaluate(mean), gg.evaluate(variance)
    (array([2., 5.]), array([1., 0.]))
    """
    (x,) = promoted(x, floating=True)
    check_real("batch_norm", x)
    channel = normal_axis(axis, x.ndim)
    axes = tuple([a for a in range(x.ndim) if a != channel])
    y, average, variance = _normalised(x, axes, epsilon)
    after = tuple(range(1, x.ndim - channel))
    scale, offset = (
        None if t is None else expand_dims(t, after) if after else as_tensor(t)
        for t in (scale, offset)
    )
    return _scaled(y, scale, offset), apply(Squeeze(axes), average), apply(Squeeze(axes), variance)


def _normalised(x: Tensor, axes: Any, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    average = mean(x, axes, True)
    centred = x - average
    variance = mean(centred * centred, axes, True)
    return centred / sqrt(variance + epsilon), average, variance


def _scaled(y: Tensor, scale: TensorLike | None, offset: TensorLike | None) -> Tensor:
    y = y if scale is None else multiply(y, scale)
    return y if offset is None else y + offset
