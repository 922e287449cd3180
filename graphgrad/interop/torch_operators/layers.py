"""Forms of layers: activations, norms, pools, resizing, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.node import Tensor
from ..opened import Form, gg
from .numbers import is_read, to
from .products import spatial
from .shapes import axes_of

__all__ = ["FORMS"]


def _same(name: str) -> Form:
    """A function of gg.nn of one tensor."""
    return lambda x, *_, **__: getattr(gg.nn, name)(x)


def _elu(x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1, **_: Any) -> Any:
    if (alpha, scale, input_scale) == (_SELU_ALPHA, _SELU_SCALE, 1):
        return gg.nn.selu(x)
    if input_scale != 1:
        if abs(alpha * input_scale - 1) > 1e-12:
            y = gg.where(x > 0, x, alpha * gg.expm1(gg.minimum(x, 0) * input_scale))
        else:
            y = gg.nn.celu(x, alpha)
    else:
        y = gg.nn.elu(x, alpha)
    return y if scale == 1 else y * scale


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20, **_: Any) -> Any:
    """Beyond the threshold x itself."""
    scaled = x if beta == 1 else x * beta
    beyond = scaled > threshold
    soft = gg.nn.softplus(gg.where(beyond, 0.0, scaled))
    return gg.where(beyond, x, soft if beta == 1 else soft / beta)


def _prelu(x: Tensor, weight: Tensor, **_: Any) -> Any:
    return gg.where(x > 0, x, weight * x)


def _softmax(name: str) -> Form:
    def call(x: Tensor, dim: int, *_: Any, out: Any, **__: Any) -> Any:
        if not x.ndim:
            y = getattr(gg.nn, name)(gg.reshape(to(x, out), (1,)), 0)
            return gg.reshape(y, ())
        return getattr(gg.nn, name)(to(x, out), dim)

    return call


def _rrelu(
    x: Tensor, noise: Tensor, low: Any, high: Any, training: bool, *_: Any, **__: Any
) -> Any:
    return gg.nn.rrelu(x, low, high, training=training), noise


# --- norms -------------------------------------------------------------------------------------


def _layer_norm(
    x: Tensor,
    shape: Sequence[Any],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
    **__: Any,
) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return gg.nn.layer_norm(x, weight, bias, axes if len(axes) > 1 else -1, eps)


def _native_layer_norm(
    x: Tensor, shape: Sequence[Any], weight: Any, bias: Any, eps: float, *, node: Any, **_: Any
) -> Any:
    if not is_read(node, 1) and not is_read(node, 2):
        return (_layer_norm(x, shape, weight, bias, eps),)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = gg.mean(x, axis=axes, keepdims=True)
    rest = gg.reciprocal(gg.sqrt(gg.var(x, axis=axes, keepdims=True) + eps))
    return _layer_norm(x, shape, weight, bias, eps), mean, rest


def _rms_norm(
    x: Tensor, shape: Sequence[Any], weight: Any = None, eps: Any = None, **_: Any
) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    eps = gg.finfo(x.dtype).eps if eps is None else eps
    return gg.nn.rms_norm(x, weight, axes if len(axes) > 1 else -1, float(eps))


def _group_norm(
    x: Tensor,
    groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
    **__: Any,
) -> Any:
    return gg.nn.group_norm(x, groups, weight, bias, 1, eps)


def _native_group_norm(
    x: Tensor,
    weight: Any,
    bias: Any,
    n: Any,
    channels: Any,
    places: Any,
    groups: int,
    eps: float,
    *,
    node: Any,
    **_: Any,
) -> Any:
    if not is_read(node, 1) and not is_read(node, 2):
        return (_group_norm(x, groups, weight, bias, eps),)
    rows = gg.reshape(x, (n, groups, -1))
    rest = gg.reciprocal(gg.sqrt(gg.var(rows, axis=-1) + eps))
    return _group_norm(x, groups, weight, bias, eps), gg.mean(rows, axis=-1), rest


def _batch_norm(
    x: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *,
    node: Any,
    **_: Any,
) -> Any:
    """y, the moments of x where they were used, and the new running ones."""
    running = None if mean is None else (mean, var)
    y, new_mean, new_var = gg.nn.batch_norm(
        x, weight, bias, 1, eps, running=running, training=training, momentum=momentum
    )
    if not is_read(node, 1) and not is_read(node, 2):
        return y, None, None, new_mean, new_var
    if not training:
        none = gg.zeros((0,), x.dtype)
        return y, none, none, new_mean, new_var
    axes = tuple(a for a in range(x.ndim) if a != 1)
    rest = gg.reciprocal(gg.sqrt(gg.var(x, axis=axes) + eps))
    return y, gg.mean(x, axis=axes), rest, new_mean, new_var


def _batch_norm_without_moments(
    x: Tensor,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
    *,
    node: Any,
    **_: Any,
) -> Any:
    return _batch_norm(x, weight, bias, None, None, True, 0.0, eps, node=node)[:3]


def _batch_norm_in_use(
    x: Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    momentum: float,
    eps: float,
    *,
    node: Any,
    **_: Any,
) -> Any:
    return _batch_norm(x, weight, bias, mean, var, False, momentum, eps, node=node)[:3]


# --- pools -------------------------------------------------------------------------------------


def _batched(x: Tensor, rank: int) -> tuple[Any, bool]:
    """An image with an axis of examples, and whether it has one of its own."""
    own = x.ndim == rank + 2
    return (x if own else gg.expand_dims(x, 0)), own


def _max_pool(rank: int) -> Form:
    def call(
        x: Tensor,
        window: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        *,
        node: Any,
        **_: Any,
    ) -> Any:
        x, own = _batched(x, rank)
        window = spatial(window, rank)
        stride = spatial(stride, rank) if stride else window
        around = tuple((p, p) for p in spatial(padding, rank))
        how = {"ceil_mode": ceil_mode, "dilation": spatial(dilation, rank)}
        if is_read(node, 1):
            made = gg.nn.max_pool_with_indices(x, window, stride, around, "NCHW", **how)
        else:
            made = (gg.nn.max_pool(x, window, stride, around, "NCHW", **how),)
        return made if own else tuple(gg.squeeze(y, 0) for y in made)

    return call


def _avg_pool(rank: int) -> Form:
    def call(
        x: Tensor,
        window: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor: Any = None,
        **_: Any,
    ) -> Any:
        x, own = _batched(x, rank)
        window = spatial(window, rank)
        stride = spatial(stride, rank) if stride else window
        around = tuple((p, p) for p in spatial(padding, rank))
        if divisor is not None and ceil_mode:
            raise NotImplementedError("divisor_override and ceil_mode")
        counted = count_include_pad or divisor is not None
        y = gg.nn.avg_pool(x, window, stride, around, "NCHW", ceil_mode, counted)
        if divisor is not None:
            count = 1
            for n in window:
                count *= n
            y = y * (count / divisor)
        return y if own else gg.squeeze(y, 0)

    return call


def _adaptive(name: str, rank: int) -> Form:
    def call(x: Tensor, size: Any, *, node: Any, **_: Any) -> Any:
        x, own = _batched(x, rank)
        several = name == "adaptive_max_pool" and is_read(node, 1)
        fn = getattr(gg.nn, f"{name}_with_indices" if several else name)
        made = fn(x, spatial(size, rank), "NCHW")
        made = made if several else (made,)
        made = made if own else tuple(gg.squeeze(y, 0) for y in made)
        return made if name == "adaptive_max_pool" else made[0]

    return call


# --- resizing ----------------------------------------------------------------------------------


def _upsample(mode: str, aligns: bool) -> Form:
    """(x, output_size, [align_corners], scale_factors) of the overloads named vec, and
    (x, output_size, [align_corners], scale for each axis) of the others."""

    def call(x: Tensor, size: Any, *more: Any, **_: Any) -> Any:
        align, scales = (more[0], more[1:]) if aligns else (False, more)
        if len(scales) == 1 and isinstance(scales[0], list | tuple):
            scales = tuple(scales[0])
        known = [s for s in scales if s is not None]
        if size is not None and (not known or align):
            return gg.nn.interpolate(x, tuple(size), None, mode, align, "NCHW")
        y = gg.nn.interpolate(x, None, tuple(known), mode, align, "NCHW")
        if size is not None and tuple(y.shape[2:]) != tuple(size):
            raise NotImplementedError("a size that does not match its scale")
        return y

    return call


_MODES = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")


def _grid(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool, **_: Any) -> Any:
    return gg.nn.grid_sample(x, grid, _MODES[mode], _PADDING[padding], align, "NCHW")


def _im2col(x: Tensor, window: Any, dilation: Any, padding: Any, stride: Any, **_: Any) -> Any:
    around = tuple((p, p) for p in spatial(padding, 2))
    x, own = _batched(x, 2)
    y = gg.nn.unfold(
        x, spatial(window, 2), spatial(stride, 2), around, "NCHW", spatial(dilation, 2)
    )
    return y if own else gg.squeeze(y, 0)


def _col2im(
    x: Tensor, size: Any, window: Any, dilation: Any, padding: Any, stride: Any, **_: Any
) -> Any:
    around = tuple((p, p) for p in spatial(padding, 2))
    own = x.ndim == 3
    y = gg.nn.fold(
        x if own else gg.expand_dims(x, 0),
        tuple(size),
        spatial(window, 2),
        spatial(stride, 2),
        around,
        "NCHW",
        spatial(dilation, 2),
    )
    return y if own else gg.squeeze(y, 0)


# --- embeddings and attention ------------------------------------------------------------------


def _embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    *_: Any,
    **__: Any,
) -> Any:
    if scale_grad_by_freq:
        raise NotImplementedError("scale_grad_by_freq")
    return gg.nn.embedding(indices, weight, None if padding_idx < 0 else padding_idx)


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
    **_: Any,
) -> Any:
    return gg.nn.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale, enable_gqa)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0, **_: Any) -> Any:
    axes = tuple(a for a in range(v.ndim) if a != dim % v.ndim) if dim != -1 else axes_of(v, None)
    norm = gg.linalg.vector_norm(v, axis=axes, keepdims=True)
    return v * (g / norm), norm


# --- quantisation ------------------------------------------------------------------------------


def _fake_quantised(
    x: Tensor, scale: Any, zero: Any, low: int, high: int, *, out: Any, **_: Any
) -> tuple[Any, Any]:
    """x on a grid, and what of it is within, which alone has a gradient: as if x were returned.

    torch takes the scale and its reciprocal in float32, and one scale for all times the steps too.
    """
    last = out if isinstance(scale, Tensor) and scale.ndim else "float32"
    scale = gg.cast(gg.asarray(scale), "float32")
    inverse, zero = (to(gg.asarray(t), out) for t in (gg.reciprocal(scale), zero))
    steps = gg.rint(x * inverse) + zero
    within = gg.logical_and(steps >= low, steps <= high)

    def passed(site: Any, dy: Tensor) -> Any:
        """The gradient of what is within the grid."""
        return gg.where(within, dy, 0.0)

    with gg.override_gradient(passed, inputs=[x]):
        y = gg.clip(gg.rint(x * inverse) + zero, low, high) - zero
        y = to(to(y, last) * to(scale, last), out)
    return y, within


def _along_channels(
    x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int, *, out: Any, **_: Any
) -> Any:
    row: list[Any] = [1] * x.ndim
    row[axis] = x.shape[axis]
    scale, zero = gg.reshape(scale, tuple(row)), gg.reshape(zero, tuple(row))
    return _fake_quantised(x, scale, zero, low, high, out=out)


FORMS: dict[str, Form] = {
    "fake_quantize_per_tensor_affine_cachemask": _fake_quantised,
    "fake_quantize_per_channel_affine_cachemask": _along_channels,
    "relu": _same("relu"),
    "relu6": _same("relu6"),
    "silu": _same("silu"),
    "mish": _same("mish"),
    "sigmoid": lambda x, *, out, **_: gg.nn.sigmoid(to(x, out)),
    "hardsigmoid": _same("hard_sigmoid"),
    "hardswish": _same("hard_silu"),
    "log_sigmoid": _same("log_sigmoid"),
    "log_sigmoid_forward": lambda x, **_: (gg.nn.log_sigmoid(x), gg.zeros((0,), x.dtype)),
    "selu": _same("selu"),
    "celu": lambda x, alpha=1.0, **_: gg.nn.celu(x, alpha),
    "elu": _elu,
    "gelu": lambda x, *, approximate="none", **_: gg.nn.gelu(x, approximate == "tanh"),
    "leaky_relu": lambda x, slope=0.01, **_: gg.nn.leaky_relu(x, slope),
    "hardtanh": lambda x, low=-1, high=1, **_: gg.nn.hard_tanh(x, low, high),
    "softplus": _softplus,
    "softshrink": lambda x, lambd=0.5, **_: gg.nn.softshrink(x, lambd),
    "hardshrink": lambda x, lambd=0.5, **_: gg.nn.hardshrink(x, lambd),
    "threshold": lambda x, t, value, **_: gg.nn.threshold(x, t, value),
    "glu": lambda x, dim=-1, **_: gg.nn.glu(x, dim),
    "_prelu_kernel": _prelu,
    "rrelu_with_noise_functional": _rrelu,
    "softmax": _softmax("softmax"),
    "_softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "layer_norm": _layer_norm,
    "native_layer_norm": _native_layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "native_group_norm": _native_group_norm,
    "_native_batch_norm_legit_functional": _batch_norm,
    "_native_batch_norm_legit.no_stats": _batch_norm_without_moments,
    "_native_batch_norm_legit_no_training": _batch_norm_in_use,
    "max_pool2d_with_indices": _max_pool(2),
    "max_pool3d_with_indices": _max_pool(3),
    "avg_pool1d": _avg_pool(1),
    "avg_pool2d": _avg_pool(2),
    "avg_pool3d": _avg_pool(3),
    "_adaptive_avg_pool2d": _adaptive("adaptive_avg_pool", 2),
    "_adaptive_avg_pool3d": _adaptive("adaptive_avg_pool", 3),
    "adaptive_avg_pool1d": _adaptive("adaptive_avg_pool", 1),
    "adaptive_max_pool2d": _adaptive("adaptive_max_pool", 2),
    "adaptive_max_pool3d": _adaptive("adaptive_max_pool", 3),
    "upsample_nearest1d": _upsample("nearest", False),
    "upsample_nearest2d": _upsample("nearest", False),
    "upsample_nearest3d": _upsample("nearest", False),
    "_upsample_nearest_exact1d": _upsample("nearest-exact", False),
    "_upsample_nearest_exact2d": _upsample("nearest-exact", False),
    "_upsample_nearest_exact3d": _upsample("nearest-exact", False),
    "upsample_linear1d": _upsample("linear", True),
    "upsample_bilinear2d": _upsample("bilinear", True),
    "upsample_trilinear3d": _upsample("trilinear", True),
    "upsample_bicubic2d": _upsample("bicubic", True),
    "grid_sampler_2d": _grid,
    "grid_sampler_3d": _grid,
    "im2col": _im2col,
    "col2im": _col2im,
    "pixel_shuffle": lambda x, factor, **_: gg.nn.pixel_shuffle(x, factor, "NCHW"),
    "pixel_unshuffle": lambda x, factor, **_: gg.nn.pixel_unshuffle(x, factor, "NCHW"),
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
    "_weight_norm_interface": _weight_norm,
    "_pdist_forward": lambda x, p=2.0, **_: gg.nn.pdist(x, p),
}
