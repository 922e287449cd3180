"""What rows compute with: `m.where(x > 0, x, 0.0)`."""

from math import prod as prod_of

from ...base.errors import DTypeError
from ...differentiate.gradients import gradients
from ...differentiate.matrix_functions import matrix_function
from ...ir.node import Tensor
from ...ops.arrays.taking import take
from ...ops.base import as_tensor, cast
from ...ops.contract.products import matmul, matvec
from ...ops.control.loops import fori_loop
from ...ops.create.creation import arange, eye, ones, ones_like, zeros, zeros_like
from ...ops.elementwise.bounds import clip as clip_any
from ...ops.elementwise.bounds import maximum, minimum, nan_to_num
from ...ops.elementwise.complex_parts import conj, real
from ...ops.elementwise.exponential import exp, exp2, log, log1p, log2, sqrt
from ...ops.elementwise.logic import isfinite, isnan, logical_and, logical_or, where
from ...ops.elementwise.magnitudes import abs, sign
from ...ops.elementwise.powers import square
from ...ops.elementwise.rounding import ceil, floor, rint, trunc
from ...ops.elementwise.trigonometry import arcsin, arctan, arctan2, arctanh, cos, tanh
from ...ops.linalg.eigenvalues import eigvalsh
from ...ops.linalg.inverses import solve
from ...ops.linalg.least_squares import pinv
from ...ops.nn.activations import gelu, relu, sigmoid, silu, softplus
from ...ops.nn.classes import one_hot
from ...ops.nn.operands import known_length
from ...ops.nn.softmaxes import log_softmax, softmax
from ...ops.reduce.cumulative import cumsum
from ...ops.reduce.reductions import all, any, argmax, argmin, logsumexp, max, mean, min, sum
from ...ops.reduce.sorting import argsort, sort, take_along_axis, topk
from ...ops.shape.joining import concat, stack
from ...ops.shape.padding import flip
from ...ops.shape.reshaping import expand_dims, moveaxis, normal_axis, reshape, swapaxes
from ...ops.sources import identity, stop_gradient
from ...ops.special.error import erf


def clip(x: Tensor, low: float | Tensor | None, high: float | Tensor | None) -> Tensor:
    """x between two bounds; DTypeError where it is complex, for those have no order."""
    if x.type.complex:
        raise DTypeError(
            f"it brings real numbers between two bounds, got {x.dtype}; rules that clip by a norm "
            "take complex gradients"
        )
    return clip_any(x, low, high)


def root(x: Tensor, order: float = 2.0) -> Tensor:
    """The root of what is not negative, with the slope 0 at 0."""
    zero = x == 0
    return where(zero, 0.0, where(zero, 1.0, x) ** (1.0 / order))


def length(x: Tensor, axis: int = -1) -> int:
    """The length of an axis; ShapeError where it is unknown."""
    return known_length("this rule", x, axis)


def count(x: Tensor) -> int:
    """How many elements there are; ShapeError where a length is unknown."""
    return prod_of(length(x, i) for i in range(x.ndim))


def affine(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    """x (..., inputs) times w (outputs, inputs), and a bias."""
    y = matmul(x, swapaxes(w, -1, -2))
    return y if b is None else y + b
