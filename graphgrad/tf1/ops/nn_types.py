"""Op types of neural networks: activations, convolutions, pools, losses, normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..definition import define
from ..shapes import TensorShape, broadcast, unknown_shape
from ..static import constant_shape
from .array_types import _from_start, sized
from .elementwise import same

__all__: list[str] = []

define("Softmax", "logits", native=gg.nn.softmax, infer=same, kinds="f")
define("LogSoftmax", "logits", native=gg.nn.log_softmax, infer=same, kinds="f")


@define("LeakyRelu", "features", infer=same)
def _leaky_relu(trace: Any, op: Any, x: Any) -> Any:
    alpha = np.array(op.attrs["alpha"], x.dtype)
    return gg.where(gg.greater(x, 0), x, x * alpha)


@define("LeakyReluGrad", "gradients features", infer=same)
def _leaky_relu_grad(trace: Any, op: Any, dy: Any, x: Any) -> Any:
    return gg.where(gg.greater(x, 0), dy, dy * np.array(op.attrs["alpha"], dy.dtype))


def _bias_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape: TensorShape = inputs[0]._shape
    axis = 1 if attrs["data_format"] == b"NCHW" else -1
    if shape.ndims is not None and shape.ndims < 2:
        raise ValueError(f"Shape must be at least rank 2 but is rank {shape.ndims}")
    if shape.lengths is not None and inputs[1]._shape.lengths is not None:
        if not TensorShape([shape.lengths[axis]]).is_compatible_with(inputs[1]._shape):
            raise ValueError(
                f"Dimensions must be equal, but are {shape.lengths[axis]} and "
                f"{inputs[1]._shape.lengths[0]}"
            )
    return shape


@define("BiasAdd", "value bias", infer=_bias_shape)
def _bias_add(trace: Any, op: Any, x: Any, bias: Any) -> Any:
    if op.attrs["data_format"] == b"NCHW":
        bias = gg.reshape(bias, (-1,) + (1,) * (len(x.shape) - 2))
    return x + bias


# windows


def _window(values: Any, data_format: bytes) -> Any:
    """The numbers of the axes of space."""
    return tuple(values[2:] if data_format.startswith(b"NC") else values[1:-1])


def _format(op: Any) -> str:
    return "NCHW" if op.attrs["data_format"].startswith(b"NC") else "NHWC"


def _padding(op: Any) -> Any:
    padding = op.attrs["padding"].decode()
    if padding != "EXPLICIT":
        return padding
    pairs = np.reshape(op.attrs["explicit_paddings"], (-1, 2)).tolist()
    return _window([tuple(p) for p in pairs], op.attrs["data_format"])


def _length(n: int | None, k: int | None, stride: int, padding: bytes, dilation: int) -> Any:
    if n is None or k is None:
        return None
    if padding == b"SAME":
        return -(-n // stride)
    reach = (k - 1) * dilation + 1
    if n and reach > n:
        raise ValueError(f"Negative dimension size caused by subtracting {reach} from {n}")
    return max(0, -(-(n - reach + 1) // stride))


def _windowed(shape: Any, kernel: Any, channels: Any, attrs: Any) -> TensorShape:
    """The shape behind windows of these lengths."""
    form = attrs["data_format"]
    if shape.lengths is None:
        return unknown_shape(len(kernel) + 2)
    if attrs["padding"] == b"EXPLICIT":
        return TensorShape([None] * len(shape.lengths))
    strides = _window(attrs["strides"], form)
    dilations = _window(attrs.get("dilations") or [1] * len(shape.lengths), form)
    space = [
        _length(n, k, s, attrs["padding"], d)
        for n, k, s, d in zip(_window(shape.lengths, form), kernel, strides, dilations, strict=True)
    ]
    batch = shape.lengths[0]
    return TensorShape(
        [batch, channels, *space] if form.startswith(b"NC") else [batch, *space, channels]
    )


def _conv_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, kernel = inputs[0]._shape, inputs[1]._shape.lengths
    if shape.lengths is not None and kernel is not None:
        if len(shape.lengths) != len(kernel):
            raise ValueError(f"Shape must be rank {len(kernel)} but is rank {len(shape.lengths)}")
        axis = 1 if attrs["data_format"].startswith(b"NC") else -1
        given, wanted = shape.lengths[axis], kernel[-2]
        if (
            given is not None
            and wanted is not None
            and (given % max(wanted, 1) if len(kernel) == 4 else given != wanted)
        ):
            raise ValueError(
                f"Depth of input ({given}) is not a multiple of input depth of filter ({wanted})"
            )
    if kernel is None:
        return unknown_shape(shape.ndims)
    return _windowed(shape, kernel[:-2], kernel[-1], attrs)


def _conv(trace: Any, op: Any, x: Any, filters: Any) -> Any:
    channels = x.shape[1 if _format(op) == "NCHW" else -1]
    return _grouped(op, x, filters, channels // filters.shape[-2])


def _grouped(op: Any, x: Any, filters: Any, groups: int) -> Any:
    form = op.attrs["data_format"]
    return gg.nn.conv(
        x, filters, strides=_window(op.attrs["strides"], form), padding=_padding(op),
        data_format=_format(op), dilation=_window(op.attrs["dilations"], form), groups=groups,
    )  # fmt: skip


define("Conv2D", "input filter", lower=_conv, infer=_conv_shape)
define("Conv3D", "input filter", lower=_conv, infer=_conv_shape)


def _depthwise_shape(inputs: Any, attrs: Any) -> TensorShape:
    kernel = inputs[1]._shape.lengths
    if kernel is None:
        return unknown_shape(4)
    channels = None if None in kernel[2:] else kernel[2] * kernel[3]
    return _windowed(inputs[0]._shape, kernel[:2], channels, attrs)


@define("DepthwiseConv2dNative", "input filter", infer=_depthwise_shape)
def _depthwise(trace: Any, op: Any, x: Any, filters: Any) -> Any:
    h, w, c, m = filters.shape
    return _grouped(op, x, gg.reshape(filters, (h, w, 1, c * m)), c)


def _input_shape(inputs: Any, attrs: Any) -> TensorShape:
    return constant_shape(inputs[0])


@define("Conv2DBackpropInput", "input_sizes:int32 filter out_backprop", infer=_input_shape,
        like=1, no_gradient=[0])  # fmt: skip
def _conv_input(trace: Any, op: Any, sizes: Any, filters: Any, dy: Any) -> Any:
    shape = tuple(sized(trace, op.inputs[0]))
    x = gg.zeros(shape, dy.dtype)
    y = _conv(trace, op, x, filters)
    if y.shape != dy.shape:
        raise ValueError(f"Conv2DBackpropInput: out_backprop of shape {dy.shape} does not fit "
                         f"input sizes {shape}, which make {y.shape}")  # fmt: skip
    return gg.gradients(y, x, dy)


@define("Conv2DBackpropFilter", "input filter_sizes:int32 out_backprop", no_gradient=[1],
        infer=lambda i, a: constant_shape(i[1]))  # fmt: skip
def _conv_filter(trace: Any, op: Any, x: Any, sizes: Any, dy: Any) -> Any:
    filters = gg.zeros(tuple(sized(trace, op.inputs[1])), dy.dtype)
    return gg.gradients(_conv(trace, op, x, filters), filters, dy)


def _pool_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    form = attrs["data_format"]
    axis = 1 if form.startswith(b"NC") else -1
    channels = None if shape.lengths is None else shape.lengths[axis]
    depth = attrs["ksize"][axis]
    if depth > 1:
        if max(_window(attrs["ksize"], form)) > 1 or attrs["strides"][axis] != depth or axis == 1:
            raise ValueError(
                f"a window over {depth} channels is over nothing else, has their number as its "
                "stride, and takes channels last"
            )
        if channels is not None and channels % depth:
            raise ValueError(f"{channels} channels do not make up windows of {depth}")
        channels = channels and channels // depth
    return _windowed(shape, _window(attrs["ksize"], form), channels, attrs)


def _avg_pool_shape(inputs: Any, attrs: Any) -> TensorShape:
    if attrs["ksize"][1 if attrs["data_format"].startswith(b"NC") else -1] > 1:
        raise NotImplementedError("the mean of channels is no pooling: use tf.reshape and "
                                  "tf.reduce_mean")  # fmt: skip
    return _pool_shape(inputs, attrs)


def _max_pool(trace: Any, op: Any, x: Any) -> Any:
    form = op.attrs["data_format"]
    depth = op.attrs["ksize"][-1]
    if depth > 1 and not form.startswith(b"NC"):  # over channels: a row of them as an image
        row = gg.reshape(x, (-1, 1, x.shape[-1], 1))
        y = gg.nn.max_pool(row, (1, depth), strides=(1, depth), ties="first")
        steps = [slice(None, None, s) for s in op.attrs["strides"][1:-1]]
        return gg.reshape(y, (*x.shape[:-1], -1))[(slice(None), *steps)]
    return _pooled(gg.nn.max_pool, op, x, ties="first")


def _avg_pool(trace: Any, op: Any, x: Any) -> Any:
    return _pooled(gg.nn.avg_pool, op, x, count_include_pad=False)


def _pooled(function: Callable[..., Any], op: Any, x: Any, **how: Any) -> Any:
    form = op.attrs["data_format"]
    return function(
        x, _window(op.attrs["ksize"], form), strides=_window(op.attrs["strides"], form),
        padding=op.attrs["padding"].decode(), data_format=_format(op), **how,
    )  # fmt: skip


for _name in ("", "3D"):
    define(f"MaxPool{_name}", "input", lower=_max_pool, infer=_pool_shape)
    define(f"AvgPool{_name}", "input", lower=_avg_pool, infer=_avg_pool_shape)


@define("MaxPoolGrad", "orig_input orig_output grad", infer=same)
def _max_pool_grad(trace: Any, op: Any, x: Any, y: Any, dy: Any) -> Any:
    x = gg.identity(x)
    return gg.gradients(_max_pool(trace, op, x), x, dy)


@define("LRN", "input", infer=same)
def _lrn(trace: Any, op: Any, x: Any) -> Any:
    radius, bias = op.attrs["depth_radius"], op.attrs["bias"]
    alpha, beta = op.attrs["alpha"], op.attrs["beta"]
    size = 2 * radius + 1
    return gg.nn.local_response_norm(x, size, alpha * size, beta, bias)


def _patches_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    kernel = attrs["ksizes"][1:3]
    channels = (
        None
        if shape.lengths is None or shape.lengths[-1] is None
        else (shape.lengths[-1] * kernel[0] * kernel[1])
    )
    window = {**attrs, "data_format": b"NHWC", "dilations": attrs["rates"]}
    return _windowed(shape, kernel, channels, window)


@define("ExtractImagePatches", "images", infer=_patches_shape)
def _patches(trace: Any, op: Any, x: Any) -> Any:
    (kh, kw), c = op.attrs["ksizes"][1:3], x.shape[-1]
    filters = np.eye(kh * kw * c, dtype=x.dtype).reshape(kh, kw, c, kh * kw * c)
    return gg.nn.conv(
        x, filters, strides=tuple(op.attrs["strides"][1:3]), padding=op.attrs["padding"].decode(),
        dilation=tuple(op.attrs["rates"][1:3]),
    )  # fmt: skip


# losses


def _loss_shapes(inputs: Any, attrs: Any) -> list[TensorShape]:
    shape = inputs[0]._shape
    rows = unknown_shape(1) if shape.lengths is None else TensorShape(list(shape.lengths[:1]))
    return [rows.merge_with(inputs[1]._shape), shape]


def _entropy_shapes(inputs: Any, attrs: Any) -> list[TensorShape]:
    shape = broadcast(inputs[0]._shape, inputs[1]._shape)
    rows = unknown_shape(1) if shape.lengths is None else TensorShape(list(shape.lengths[:1]))
    return [rows, shape]


@define("SoftmaxCrossEntropyWithLogits", "features labels", infer=_entropy_shapes, like=(0, 0))
def _cross_entropy(trace: Any, op: Any, logits: Any, labels: Any) -> Any:
    log_p = gg.nn.log_softmax(logits)
    return gg.negative(gg.sum(labels * log_p, axis=-1)), gg.exp(log_p) - labels


@define("SparseSoftmaxCrossEntropyWithLogits", "features labels:A", infer=_loss_shapes, like=(0, 0))
def _sparse_cross_entropy(trace: Any, op: Any, logits: Any, labels: Any) -> Any:
    log_p = gg.nn.log_softmax(logits)
    labels = _from_start(trace, op.inputs[1], labels, logits.shape[-1])
    places = gg.expand_dims(gg.cast(labels, "int64"), -1)
    loss = gg.negative(gg.squeeze(gg.take_along_axis(log_p, places, -1), (-1,)))
    hot = gg.equal(places, np.arange(logits.shape[-1]))
    return loss, gg.exp(log_p) - gg.cast(hot, logits.dtype)


# normalisation


def _batch_norm_shapes(inputs: Any, attrs: Any) -> list[TensorShape]:
    shape, scale = inputs[0]._shape, inputs[1]._shape
    return [shape, scale, scale, scale, scale, unknown_shape()]


@define("FusedBatchNormV3", "x scale:A offset:A mean:A variance:A", infer=_batch_norm_shapes,
        like=(0, 1, 1, 1, 1, 1), no_gradient=[3, 4])  # fmt: skip
def _batch_norm(trace: Any, op: Any, x: Any, scale: Any, offset: Any, mean: Any, var: Any) -> Any:
    first = op.attrs["data_format"].startswith(b"NC")
    axes = tuple(i for i in range(len(x.shape)) if i != (1 if first else len(x.shape) - 1))
    shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    epsilon = np.array(op.attrs["epsilon"], x.dtype)
    if not op.attrs["is_training"]:
        inverse = 1.0 / gg.sqrt(var + epsilon)
        y = (x - gg.reshape(mean, shape)) * gg.reshape(inverse * scale, shape)
        return [y + gg.reshape(offset, shape), mean, var, mean, var, mean]
    count = int(np.prod([x.shape[a] for a in axes]))
    mu = gg.mean(x, axis=axes)
    centred = x - gg.reshape(mu, shape)
    spread = gg.mean(gg.square(centred), axis=axes)
    inverse = 1.0 / gg.sqrt(spread + epsilon)
    y = centred * gg.reshape(inverse * scale, shape) + gg.reshape(offset, shape)
    unbiased = spread * (count / max(count - 1, 1))
    mixed, factor = (mu, unbiased), op.attrs.get("exponential_avg_factor", 1.0)
    if factor != 1.0:
        mixed = (mean * (1 - factor) + mu * factor, var * (1 - factor) + unbiased * factor)
    return [y, *mixed, mu, spread, gg.zeros_like(mu)]


@define("InTopKV2", "predictions:A targets:A k:A", dtype="bool", infer=lambda i, a: i[1]._shape)
def _in_top_k(trace: Any, op: Any, predictions: Any, targets: Any, k: Any) -> Any:
    n = predictions.shape[-1]
    places = gg.expand_dims(gg.cast(targets, "int64"), -1)
    chosen = gg.take_along_axis(predictions, gg.clip(places, 0, n - 1), -1)
    above = gg.sum(gg.cast(gg.greater(predictions, chosen), "int64"), axis=-1)
    there = gg.logical_and(gg.greater_equal(targets, 0), gg.less(targets, n))
    there = gg.logical_and(there, gg.isfinite(gg.squeeze(chosen, (-1,))))
    return gg.logical_and(there, gg.less(above, gg.cast(k, "int64")))


def _quantised(x: Any, low: Any, high: Any, bits: int, narrow: bool) -> Any:
    """x, clipped and rounded to one of 2^bits levels between low and high, zero among them."""
    least, most = float(narrow), float(2**bits - 1)
    scale = (high - low) / (most - least)
    zero = gg.clip(gg.rint(least - low / scale), least, most)
    bottom, top = (least - zero) * scale, (most - zero) * scale
    inside = gg.minimum(gg.maximum(x, bottom), top)
    return gg.floor((inside - bottom) / scale + 0.5) * scale + bottom, bottom, top


@define("FakeQuantWithMinMaxVars", "inputs min max", infer=same)
def _fake_quant(trace: Any, op: Any, x: Any, low: Any, high: Any) -> Any:
    attrs = op.attrs
    return _quantised(x, low, high, attrs["num_bits"], attrs["narrow_range"])[0]


@define("FakeQuantWithMinMaxArgs", "inputs", infer=same)
def _fake_quant_args(trace: Any, op: Any, x: Any) -> Any:
    low, high = (gg.constant(np.array(op.attrs[n], x.dtype)) for n in ("min", "max"))
    return _quantised(x, low, high, op.attrs["num_bits"], op.attrs["narrow_range"])[0]


@define("FakeQuantWithMinMaxVarsGradient", "gradients inputs min max",
        infer=lambda i, a: [i[1]._shape, TensorShape(()), TensorShape(())],
        like=(0, 0, 0))  # fmt: skip
def _fake_quant_grad(trace: Any, op: Any, dy: Any, x: Any, low: Any, high: Any) -> Any:
    attrs = op.attrs
    _, bottom, top = _quantised(x, low, high, attrs["num_bits"], attrs["narrow_range"])
    below, above = gg.less(x, bottom), gg.greater(x, top)
    zero = gg.zeros_like(dy)
    inside = gg.where(gg.logical_or(below, above), zero, dy)
    return inside, gg.sum(gg.where(below, dy, zero)), gg.sum(gg.where(above, dy, zero))


@define("AvgPoolGrad", "orig_input_shape:int32 grad", infer=_input_shape, no_gradient=[0], like=1)
def _avg_pool_grad(trace: Any, op: Any, shape: Any, dy: Any) -> Any:
    x = gg.zeros(tuple(sized(trace, op.inputs[0])), dy.dtype)
    return gg.gradients(_avg_pool(trace, op, x), x, dy)
