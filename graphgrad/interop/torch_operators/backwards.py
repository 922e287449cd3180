"""Forms of ATen's own gradients, which programs have that differentiate inside: those of forms."""

from __future__ import annotations

from typing import Any

from ...ir.node import Tensor
from ..opened import Form, gg
from . import layers, products

__all__ = ["FORMS"]


class _Unread:
    """A node of which nothing but the first result is read."""

    users = ()


_UNREAD = _Unread()


def _gradients(y: Any, xs: list[Any], dy: Any) -> Any:
    return gg.gradients([y], xs, [dy], unconnected="zero")


def _of_one(form: Form) -> Form:
    """(dy, x, parameters) of a form of (x, parameters)."""

    def call(dy: Tensor, x: Tensor, *more: Any, **kwargs: Any) -> Any:
        y = form(x, *more, **kwargs)
        return _gradients(y[0] if isinstance(y, tuple) else y, [x], dy)[0]

    return call


def _pool_backward(
    dy: Tensor,
    x: Tensor,
    window: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    *_: Any,
    **__: Any,
) -> Any:
    pool = layers.FORMS["max_pool2d_with_indices"]
    return _of_one(pool)(dy, x, window, stride, padding, dilation, ceil, node=_UNREAD)


def _convolution_backward(
    dy: Tensor, x: Tensor, w: Tensor, sizes: Any, *more: Any, **_: Any
) -> Any:
    *parameters, mask = more
    y = products.FORMS["convolution"](x, w, None, *parameters)
    dx, dw = _gradients(y, [x, w], dy)
    db = gg.sum(dy, axis=tuple(a for a in range(dy.ndim) if a != 1)) if mask[2] else None
    return dx if mask[0] else None, dw if mask[1] else None, db


def _norm_backward(y: Any, dy: Tensor, x: Tensor, weight: Any, bias: Any, mask: Any) -> Any:
    given = [t for t in (x, weight, bias) if t is not None]
    found = dict(zip(map(id, given), _gradients(y, given, dy), strict=True))
    wanted = zip((x, weight, bias), mask, strict=True)
    return tuple(found.get(id(t)) if asked else None for t, asked in wanted)


def _layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    shape: Any,
    mean: Any,
    rest: Tensor,
    weight: Any,
    bias: Any,
    mask: Any,
    **_: Any,
) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - gg.mean(x, axis=axes, keepdims=True)) * _rest(x, axes, rest)
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return _norm_backward(y, dy, x, weight, bias, mask)


def _rest(x: Tensor, axes: Any, rest: Tensor) -> Any:
    """1 / sqrt(variance + eps), of x, where eps is what the value says."""
    variance = gg.var(x, axis=axes, keepdims=True)
    eps = gg.stop_gradient(gg.reciprocal(gg.square(rest)) - variance)
    return gg.reciprocal(gg.sqrt(variance + eps))


def _group_norm_backward(
    dy: Tensor,
    x: Tensor,
    mean: Any,
    rest: Tensor,
    weight: Any,
    n: Any,
    channels: int,
    places: Any,
    groups: int,
    mask: Any,
    **_: Any,
) -> Any:
    rows = gg.reshape(x, (n, groups, -1))
    normal = (rows - gg.mean(rows, axis=-1, keepdims=True)) * _rest(
        rows, (-1,), gg.reshape(rest, (n, groups, 1))
    )
    shape = (channels, *(1,) * (x.ndim - 2))
    y = gg.reshape(normal, x.shape)
    y = y if weight is None else y * gg.reshape(weight, shape)
    dx, dw, _ = _norm_backward(y, dy, x, weight, None, (mask[0], mask[1], False))
    db = gg.sum(dy, axis=tuple(a for a in range(dy.ndim) if a != 1)) if mask[2] else None
    return dx, dw, db


def _embedding_backward(
    dy: Tensor, indices: Tensor, rows: Any, padding_idx: int, scaled: bool, **_: Any
) -> Any:
    if scaled:
        raise NotImplementedError("scale_grad_by_freq")
    weight = gg.zeros((rows, dy.shape[-1]), dy.dtype)
    y = layers.FORMS["embedding"](weight, indices, padding_idx)
    return _gradients(y, [weight], dy)[0]


_ADAPTIVE = layers.FORMS["_adaptive_avg_pool2d"]

FORMS: dict[str, Form] = {
    "_adaptive_avg_pool2d_backward": lambda dy, x, **_: _of_one(_ADAPTIVE)(
        dy, x, dy.shape[-2:], node=_UNREAD
    ),
    "avg_pool2d_backward": _of_one(layers.FORMS["avg_pool2d"]),
    "max_pool2d_with_indices_backward": _pool_backward,
    "convolution_backward": _convolution_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm_backward": _group_norm_backward,
    "embedding_dense_backward": _embedding_backward,
}
