"""Piecewise activations: clipped, shrunk, with thresholds."""

from __future__ import annotations

from ...base.domains import FINITE, NON_NEGATIVE, NUMBER
from ...base.errors import ShapeError
from ...base.flags import truth
from ..base import Tensor, TensorLike
from ..elementwise.bounds import clip
from ..elementwise.logic import greater, greater_equal, less_equal, where
from ..elementwise.magnitudes import absolute, copysign
from ..elementwise.powers import square
from ..elementwise.trigonometry import tanh
from ..random import uniform
from ..shape.joining import split
from ..shape.reshaping import expand_dims, normal_axis
from .activations import sigmoid
from .operands import real_operands, told_length

__all__ = [
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "hardshrink",
    "prelu",
    "relu6",
    "rrelu",
    "softshrink",
    "sparse_plus",
    "sparse_sigmoid",
    "tanhshrink",
    "threshold",
]


def hard_tanh(x: TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x held between two bounds, element by element, flat at the bounds themselves.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        min_val, max_val: Python numbers, min_val < max_val.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; ValueError for other bounds.

    Gradient: dx = dy where min_val < x < max_val, else 0; gg.clip has dy at the bounds too.

    Source: Collobert 2004, "Large scale machine learning".

    >>> gg.evaluate(gg.nn.hard_tanh([-2.0, 0.5, 2.0]))
    array([-1. ,  0.5,  1. ])
    """
    NUMBER("min_val", min_val)
    NUMBER("max_val", max_val)
    (x,) = real_operands("hard_tanh", x)
    if not min_val < max_val:
        raise ValueError(f"hard_tanh takes min_val < max_val, got {min_val} and {max_val}")
    upper = where(greater_equal(x, max_val), max_val, x)
    return where(less_equal(x, min_val), min_val, upper)


def relu6(x: TensorLike) -> Tensor:
    """y = min(max(x, 0), 6), element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy where 0 < x < 6, else 0.

    Source: Krizhevsky 2010, "Convolutional deep belief networks on CIFAR-10".

    >>> gg.evaluate(gg.nn.relu6([-1.0, 3.0, 9.0]))
    array([0., 3., 6.])
    """
    return hard_tanh(x, 0.0, 6.0)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """y = min(max(x + 3, 0), 6) / 6, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy / 6 where -3 < x < 3, else 0.

    Source: Howard et al. 2019, "Searching for MobileNetV3", sec. 5.2.

    >>> gg.evaluate(gg.nn.hard_sigmoid([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """
    (x,) = real_operands("hard_sigmoid", x)
    return relu6(x + 3.0) / 6.0


def hard_silu(x: TensorLike) -> Tensor:
    """y = x * hard_sigmoid(x), element by element; also called hard swish.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * (hard_sigmoid(x) + x / 6) where -3 < x < 3, else dy * hard_sigmoid(x).

    Source: Howard et al. 2019, "Searching for MobileNetV3", sec. 5.2.

    >>> gg.evaluate(gg.nn.hard_silu([-4.0, 0.0, 4.0])) + 0.0
    array([0., 0., 4.])
    """
    (x,) = real_operands("hard_silu", x)
    return x * hard_sigmoid(x)


def hardshrink(x: TensorLike, lambd: float = 0.5) -> Tensor:
    """y = x where |x| > lambd, else 0, element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        lambd: a Python number >= 0.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; ValueError for another lambd.

    Gradient: dx = dy where |x| > lambd, else 0.

    Source: Donoho and Johnstone 1994, "Ideal spatial adaptation by wavelet shrinkage".

    >>> gg.evaluate(gg.nn.hardshrink([-1.0, 0.25, 1.0]))
    array([-1.,  0.,  1.])
    """
    (x,) = real_operands("hardshrink", x)
    NON_NEGATIVE("lambd", lambd)
    return where(less_equal(absolute(x), lambd), 0.0, x)


def softshrink(x: TensorLike, lambd: float = 0.5) -> Tensor:
    """x nearer to 0 by lambd, 0 where |x| <= lambd, element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        lambd: a Python number >= 0.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; ValueError for another lambd.

    Gradient: dx = dy where |x| > lambd, else 0.

    Source: Donoho 1995, "De-noising by soft-thresholding".

    >>> gg.evaluate(gg.nn.softshrink([-1.0, 0.25, 1.0]))
    array([-0.5,  0. ,  0.5])
    """
    (x,) = real_operands("softshrink", x)
    NON_NEGATIVE("lambd", lambd)
    return where(less_equal(absolute(x), lambd), 0.0, x - copysign(lambd, x))


def tanhshrink(x: TensorLike) -> Tensor:
    """y = x - tanh(x), element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * tanh(x)**2.

    Source: PyTorch, torch.nn.functional.tanhshrink.

    >>> gg.evaluate(gg.nn.tanhshrink([-2.0, 0.0, 2.0])).round(4)
    array([-1.036,  0.   ,  1.036])
    """
    (x,) = real_operands("tanhshrink", x)
    return x - tanh(x)


def threshold(x: TensorLike, threshold: float, value: float) -> Tensor:
    """y = x where x > threshold, else value, element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        threshold, value: Python numbers.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy where x > threshold, else 0.

    Source: PyTorch, torch.nn.functional.threshold.

    >>> gg.evaluate(gg.nn.threshold([-1.0, 0.5, 2.0], 1.0, -7.0))
    array([-7., -7.,  2.])
    """
    NUMBER("threshold", threshold)
    NUMBER("value", value)
    (x,) = real_operands("threshold", x)
    return where(less_equal(x, float(threshold)), float(value), x)


def sparse_plus(x: TensorLike) -> Tensor:
    """y = 0 for x <= -1, x for x >= 1, (x + 1)**2 / 4 between, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * sparse_sigmoid(x).

    Source: Martins and Astudillo 2016, "From softmax to sparsemax".

    >>> gg.evaluate(gg.nn.sparse_plus([-2.0, 0.0, 2.0]))
    array([0.  , 0.25, 2.  ])
    """
    (x,) = real_operands("sparse_plus", x)
    return where(greater_equal(x, 1.0), x, square(clip(x, -1.0, 1.0) + 1.0) / 4.0)


def sparse_sigmoid(x: TensorLike) -> Tensor:
    """y = 0 for x <= -1, 1 for x >= 1, (x + 1) / 2 between, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy / 2 where -1 < x < 1, else 0.

    Source: Martins and Astudillo 2016, "From softmax to sparsemax".

    >>> gg.evaluate(gg.nn.sparse_sigmoid([-2.0, 0.0, 2.0]))
    array([0. , 0.5, 1. ])
    """
    (x,) = real_operands("sparse_sigmoid", x)
    return hard_tanh(x) / 2.0 + 0.5


def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """y = a * sigmoid(b), where a and b are the halves of x along an axis.

    Parameters:
        x: an even length along the axis; floating, ints and bools become float64.
        axis: the axis that is halved.

    Returns: y, half as long as x along the axis.

    Raises: ShapeError if x has no such axis, or its length is odd; DTypeError if x is
        complex.

    Gradient: da = dy * sigmoid(b), db = dy * a * sigmoid(b) * (1 - sigmoid(b)).

    Source: Dauphin et al. 2017, "Language modeling with gated convolutional networks".

    >>> gg.evaluate(gg.nn.glu([1.0, 2.0, 0.0, 99.0]))
    array([0.5, 2. ])
    """
    (x,) = real_operands("glu", x)
    at = normal_axis(axis, x.ndim)
    odd = told_length("glu", x, at) % 2
    if isinstance(odd, int) and odd:
        raise ShapeError(f"glu takes an even length along axis {at}, got {x.type!r}")
    a, b = split(x, 2, at)
    return a * sigmoid(b)


def prelu(x: TensorLike, weight: TensorLike, axis: int = -1) -> Tensor:
    """y = x where x > 0, else weight * x; a weight for all, or one for each channel.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        weight: a number, or one for each place along the axis.
        axis: that of the channels.

    Returns: y, of the shape of x; dtypes promoted.

    Raises: ShapeError if weight has more axes, or does not fit that of x; DTypeError if x is
        complex.

    Gradient: dx = dy where x > 0, else dy * weight; dweight = the sum of dy * x where x <= 0.

    Source: He et al. 2015, "Delving deep into rectifiers".

    >>> gg.evaluate(gg.nn.prelu([[-1.0, -1.0], [1.0, -2.0]], [0.5, 0.1]))
    array([[-0.5, -0.1],
           [ 1. , -0.2]])
    """
    x, w = real_operands("prelu", x, weight)
    if w.ndim > 1:
        raise ShapeError(f"prelu takes a number, or one for each channel, got {w.type!r}")
    if w.ndim == 1:
        if x.ndim == 0:
            raise ShapeError(f"prelu of {x.type!r} has no channels for {w.type!r}")
        at = normal_axis(axis, x.ndim)
        if 1 != w.shape[0] != x.shape[at] and None not in (w.shape[0], x.shape[at]):
            raise ShapeError(
                f"prelu of {x.type!r} has one weight for each place along axis {at}, "
                f"or one for all, got {w.type!r}"
            )
        w = expand_dims(w, tuple(range(1, x.ndim - at))) if at < x.ndim - 1 else w
    return where(greater(x, 0), x, w * x)


def rrelu(
    x: TensorLike,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    *,
    seed: TensorLike | None = None,
    training: bool = False,
) -> Tensor:
    """y = x where x > 0, else a * x: a drawn from [lower, upper) in training, else their mean.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        lower, upper: Python numbers, lower <= upper.
        seed: for training: an int or a scalar integer tensor; None: other slopes in every run.
        training: whether to draw.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; ValueError for other bounds.

    Gradient: dx = dy where x > 0, else dy * a.

    Source: Xu et al. 2015, "Empirical evaluation of rectified activations in convolutional
        network".

    >>> gg.evaluate(gg.nn.rrelu([-2.0, 1.0], 0.0, 0.5))
    array([-0.5,  1. ])
    """
    FINITE("lower", lower)
    FINITE("upper", upper)
    truth("training", training)
    (x,) = real_operands("rrelu", x)
    if not lower <= upper:
        raise ValueError(f"rrelu takes lower <= upper, got {lower} and {upper}")
    if not training:
        return where(greater(x, 0), x, x * ((lower + upper) / 2))
    slope = uniform(x, float(lower), float(upper), seed=seed, dtype=x.dtype)
    return where(greater(x, 0), x, x * slope)
