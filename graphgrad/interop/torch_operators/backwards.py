"""Forms of ATen's own gradients, which programs have that differentiate inside: those of forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.node import Tensor
from ..opened import Form, gg
from . import layers, products

__all__ = ["FORMS"]


class _Unread:
    """A node of which nothing but the first result is read."""

    users = ()


_UNREAD = _Unread()


def _pulled(form: Form, xs: Sequence[Any], dy: Any, mask: Sequence[bool]) -> tuple[Any, ...]:
    """The gradients of a form of xs, each for itself: where one is made of another, too."""
    own = [None if x is None else gg.identity(x) for x in xs]
    wanted = [x for x, asked in zip(own, mask, strict=True) if asked and x is not None]
    found = iter(gg.gradients([form(*own)], wanted, [dy], unconnected="zero"))
    pairs = zip(own, mask, strict=True)
    return tuple(next(found) if asked and x is not None else None for x, asked in pairs)


def _of_one(form: Form) -> Form:
    """(dy, x, parameters) of a form of (x, parameters)."""

    def call(dy: Tensor, x: Tensor, *more: Any, out: Any, node: Any) -> Any:
        def first(x: Tensor) -> Any:
            y = form(x, *more, out=out, node=_UNREAD)
            return y[0] if isinstance(y, tuple) else y

        return _pulled(first, [x], dy, [True])[0]

    return call


def _pool_backward(dy: Tensor, x: Tensor, *more: Any, out: Any, node: Any) -> Any:
    *parameters, _places = more
    return _of_one(_MAX_POOL)(dy, x, *parameters, out=out, node=node)


def _adaptive_backward(dy: Tensor, x: Tensor, *, out: Any, node: Any) -> Any:
    return _of_one(_ADAPTIVE)(dy, x, dy.shape[-2:], out=out, node=node)


def _convolution_backward(
    dy: Tensor, x: Tensor, w: Tensor, sizes: Any, *more: Any, **_: Any
) -> Any:
    *parameters, mask = more
    dx, dw = _pulled(
        lambda x, w: products.FORMS["convolution"](x, w, None, *parameters), [x, w], dy, mask[:2]
    )
    return dx, dw, _of_channels(dy) if mask[2] else None


def _of_channels(dy: Tensor) -> Any:
    return gg.sum(dy, axis=tuple(a for a in range(dy.ndim) if a != 1))


def _scaled(y: Any, weight: Any, bias: Any) -> Any:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


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

    def normalised(x: Tensor, weight: Any, bias: Any) -> Any:
        y = (x - gg.mean(x, axis=axes, keepdims=True)) * _rest(x, axes, rest)
        return _scaled(y, weight, bias)

    return _pulled(normalised, [x, weight, bias], dy, mask)


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
    shape = (channels, *(1,) * (x.ndim - 2))

    def normalised(x: Tensor, weight: Any) -> Any:
        rows = gg.reshape(x, (n, groups, -1))
        slopes = _rest(rows, (-1,), gg.reshape(rest, (n, groups, 1)))
        y = gg.reshape((rows - gg.mean(rows, axis=-1, keepdims=True)) * slopes, x.shape)
        return _scaled(y, None if weight is None else gg.reshape(weight, shape), None)

    dx, dw = _pulled(normalised, [x, weight], dy, mask[:2])
    return dx, dw, _of_channels(dy) if mask[2] else None


def _embedding_backward(
    dy: Tensor, indices: Tensor, rows: Any, padding_idx: int, scaled: bool, **_: Any
) -> Any:
    if scaled:
        raise NotImplementedError("scale_grad_by_freq")
    table = gg.zeros((rows, dy.shape[-1]), dy.dtype)
    embedding = layers.FORMS["embedding"]
    return _pulled(lambda w: embedding(w, indices, padding_idx), [table], dy, [True])[0]


_ADAPTIVE = layers.FORMS["_adaptive_avg_pool2d"]
_MAX_POOL = layers.FORMS["max_pool2d_with_indices"]

FORMS: dict[str, Form] = {
    "_adaptive_avg_pool2d_backward": _adaptive_backward,
    "avg_pool2d_backward": _of_one(layers.FORMS["avg_pool2d"]),
    "max_pool2d_with_indices_backward": _pool_backward,
    "convolution_backward": _convolution_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm_backward": _group_norm_backward,
    "embedding_dense_backward": _embedding_backward,
}
