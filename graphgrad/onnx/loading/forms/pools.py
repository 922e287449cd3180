"""Pools over windows, and over whole images."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....base.errors import DTypeError, ShapeError
from ....ir.node import Tensor
from ....ops import nn
from ....ops.arrays.at import at
from ....ops.arrays.borders import pad
from ....ops.arrays.grids import ravel_multi_index, unravel_index
from ....ops.base import cast, constant, kind_of
from ....ops.create.creation import ones, zeros
from ....ops.elementwise.magnitudes import absolute
from ....ops.elementwise.powers import power
from ....ops.linalg.norms import vector_norm
from ....ops.nn.pool2d import lowest
from ....ops.reduce import reductions
from ....ops.shape.reshaping import reshape
from ..call import OperatorCall
from .common import few
from .table import form
from .windows import Windows, known_spatial, padded, told_spatial, window_sums, windows_of


@form("MaxPool")
def _max_pool(call: OperatorCall) -> Any:
    x = call.tensor(0)
    w = windows_of(call, x, [])
    by_column = call.attribute("storage_order", 0)
    if kind_of(x.dtype) == "b":
        raise DTypeError(f"MaxPool takes numbers, got {x!r}")
    if not call.wants(1):
        if w.open_over(x.shape[2:]):
            w = w.spelled(told_spatial(x)).to_the_end(told_spatial(x))
        x, w = padded(x, w, lowest(x.dtype))
        return nn.max_pool(
            x, w.kernel, w.strides, w.pads, "NCHW", ceil_mode=w.ceil, dilation=w.dilations
        )
    y, places = nn.max_pool_with_indices(
        x, w.kernel, w.strides, w.pads, "NCHW", w.ceil, w.dilations
    )
    lengths = known_spatial(x)
    if by_column:
        at = unravel_index(places, tuple(lengths))
        places = ravel_multi_index(at[::-1], tuple(lengths[::-1]))
    n, c = x.shape[:2]
    if not isinstance(n, int) or not isinstance(c, int):
        raise ShapeError(f"the indices in {x!r} need known lengths: pass them with shapes=")
    begins = np.arange(few(n, c)).reshape((n, c) + (1,) * len(lengths)) * prod(lengths)
    return y, places + constant(begins, "int64")


@form("AveragePool")
def _average_pool(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    w = windows_of(call, x, [])
    with_borders = bool(call.attribute("count_include_pad", 0))
    if set(w.dilations) == {1} and not w.open_over(x.shape[2:]):
        return nn.avg_pool(x, w.kernel, w.strides, w.pads, "NCHW", w.ceil, with_borders)
    return cast(window_sums(x, w) / _terms(x, w, with_borders), x.dtype)


def _terms(x: Tensor, w: Windows, with_borders: bool) -> Tensor:
    """How many places of each window count."""
    lengths = told_spatial(x)
    few(*[n for n in lengths if isinstance(n, int)])
    inside = ones((1, 1, *lengths), x.dtype)
    if with_borders:  # but not what is behind them, where the last window may end
        w = w.spelled(lengths)
        inside = pad(inside, [(0, 0), (0, 0), *w.pads], constant_values=1)
        pairs = zip(w.to_the_end(lengths).pads, w.pads, strict=True)
        w = w._replace(pads=tuple((0, end - after) for (_, end), (_, after) in pairs), ceil=False)
    return window_sums(inside, w)


@form("LpPool")
def _lp_pool(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    w, p = windows_of(call, x, []), call.attribute("p", 2)
    if set(w.dilations) == {1} and not w.open_over(x.shape[2:]):
        return nn.lp_pool(x, p, w.kernel, w.strides, w.pads, "NCHW", w.ceil)
    return cast(power(window_sums(power(absolute(x), p), w), 1 / p), x.dtype)


@form("GlobalAveragePool")
def _global_average_pool(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return reductions.mean(x, tuple(range(2, x.ndim)), keepdims=True)


@form("GlobalMaxPool")
def _global_max_pool(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    return reductions.max(x, tuple(range(2, x.ndim)), keepdims=True)


@form("GlobalLpPool")
def _global_lp_pool(call: OperatorCall) -> Tensor:
    x, p = call.tensor(0), call.attribute("p", 2)
    return vector_norm(x, axis=tuple(range(2, x.ndim)), keepdims=True, ord=p)


@form("MaxUnpool")
def _max_unpool(call: OperatorCall) -> Tensor:
    x, places = call.tensor(0), call.tensor(1)
    n, c, lengths = x.shape[0], x.shape[1], known_spatial(x)
    if not isinstance(n, int) or not isinstance(c, int):
        raise ShapeError(f"{x!r} needs known lengths here: pass them with shapes=")
    w = windows_of(call, x, [])
    rows = zip(lengths, w.strides, w.kernel, w.pads, strict=True)
    extents = [(m - 1) * s + k - a - b for m, s, k, (a, b) in rows]
    zeros_ = zeros((n * c * prod(extents),), x.dtype)
    flat = at(zeros_)[reshape(places, (-1,))].set(reshape(x, (-1,)))
    image = reshape(flat, (n, c, *extents))
    if not call.given(2):
        return image
    wanted = [int(d) for d in call.known(2, "output shape")][2:]
    return pad(image, [(0, 0), (0, 0), *((0, b - a) for a, b in zip(extents, wanted, strict=True))])
