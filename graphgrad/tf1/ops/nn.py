"""Functions of neural networks: `tf.nn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..create import apply, build, constant, convert_to_tensor, name_scope
from ..graph import Tensor
from ..refused import refuses
from . import array as A
from . import math as M
from .elementwise import elu, relu, relu6, selu, sigmoid, softplus, softsign, tanh
from .random import random_uniform

__all__ = [
    "atrous_conv2d", "avg_pool", "avg_pool2d", "avg_pool3d", "batch_normalization", "bias_add",
    "conv1d", "conv2d", "conv2d_backprop_filter", "conv2d_backprop_input", "conv2d_transpose",
    "conv3d", "convolution", "crelu", "depthwise_conv2d", "depthwise_conv2d_native", "dropout",
    "elu", "embedding_lookup", "fused_batch_norm", "in_top_k", "l2_loss", "l2_normalize",
    "leaky_relu", "local_response_normalization", "log_sigmoid", "log_softmax", "lrn", "max_pool",
    "max_pool2d", "max_pool3d", "moments", "norm", "pool", "relu", "relu6", "relu_layer", "selu",
    "separable_conv2d", "sigmoid", "sigmoid_cross_entropy_with_logits", "softmax",
    "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2", "softplus",
    "softsign", "sparse_softmax_cross_entropy_with_logits", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "xw_plus_b", "zero_fraction",
]  # fmt: skip
Name = str | None


def leaky_relu(features: Any, alpha: Any = 0.2, name: Name = None) -> Tensor:
    """x where x > 0, alpha x elsewhere."""
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        x = convert_to_tensor(features, name="features")
        if isinstance(alpha, Tensor):
            return M.maximum(M.multiply(alpha, x), x, name=scope)
        x = M.cast(x, "float32") if x.dtype.is_integer else x
        return apply("LeakyRelu", x, name=scope, alpha=float(alpha))


def crelu(features: Any, name: Name = None, axis: int = -1) -> Tensor:
    """relu of x and of -x, next to each other."""
    with name_scope(name, "CRelu", [features]):
        x = convert_to_tensor(features)
        return relu(A.concat([x, -x], axis))


def swish(features: Any, name: Name = None) -> Tensor:
    """x sigmoid(x)."""
    x = convert_to_tensor(features)
    return M.multiply(x, sigmoid(x), name=name)


def log_sigmoid(x: Any, name: Name = None) -> Tensor:
    """log(sigmoid(x))."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x)
        return M.negative(softplus(-x), name=scope)


def _along(type: str, x: Any, axis: Any, name: Name) -> Tensor:
    """An op along the last axis, with another axis put there before."""
    x = convert_to_tensor(x)
    axis = -1 if axis is None else int(axis)
    rank = x.shape.ndims
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"dimension {axis} must be in the range [{-rank}, {rank})")
    if axis == -1 or (rank is not None and axis == rank - 1):
        return apply(type, x, name=name)
    if rank is None:
        raise ValueError(f"{type} along axis {axis} needs a tensor of known rank")
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    made = apply(type, A.transpose(x, perm), name=name)
    return A.transpose(made, perm)


def softmax(logits: Any, axis: Any = None, name: Name = None, dim: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, the last by default."""
    return _along("Softmax", logits, dim if axis is None else axis, name)


def log_softmax(logits: Any, axis: Any = None, name: Name = None, dim: Any = None) -> Tensor:
    """log(softmax(x)) along an axis, the last by default."""
    return _along("LogSoftmax", logits, dim if axis is None else axis, name)


# layers without variables


def bias_add(value: Any, bias: Any, data_format: Any = None, name: Name = None) -> Tensor:
    """value + bias, along the channels."""
    form = b"NCHW" if (_text(data_format) or "").startswith("NC") else b"NHWC"
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype, name="bias")
        return apply("BiasAdd", value, bias, name=scope, data_format=form)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: Name = None) -> Tensor:
    """x w + b."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(M.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: Name = None) -> Tensor:
    """relu(x w + b)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(M.matmul(x, weights), biases), name=scope)


def _numbers(value: Any, rank: int, data_format: str) -> list[int]:
    """Four (or five) numbers of axes, from one, two, or all of them."""
    given = [int(v) for v in np.atleast_1d(value)]
    if len(given) == 1:
        given *= rank - 2
    if len(given) == rank - 2:
        given = [1, 1, *given] if data_format.startswith("NC") else [1, *given, 1]
    return given


def _text(value: Any) -> Any:
    """Text, as `get_attr` gives it too."""
    return value.decode() if isinstance(value, bytes) else value


def _pads(padding: Any) -> tuple[bytes, list[int]]:
    padding = _text(padding)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding is SAME, VALID or a list of pairs, got {padding!r}")
        return padding.upper().encode(), []
    return b"EXPLICIT", [int(n) for pair in padding for n in pair]


def _windows(data_format: Any, padding: Any, rank: int = 4, **numbers: Any) -> dict[str, Any]:
    """The attributes of an op over windows: numbers of its axes, such as strides, and the rest."""
    form = _text(data_format)
    mode, explicit = _pads(padding)
    found = {name: _numbers(value, rank, form) for name, value in numbers.items()}
    return {
        **found, "padding": mode, "explicit_paddings": explicit, "data_format": form.encode()
    }  # fmt: skip


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Name = None,
    filters: Any = None,
) -> Tensor:
    """A convolution of images with filters [h, w, in, out]."""
    attrs = _windows(data_format or "NHWC", padding, strides=strides, dilations=dilations)
    return apply("Conv2D", input, filters if filter is None else filter, name=name,
                 use_cudnn_on_gpu=use_cudnn_on_gpu, **attrs)  # fmt: skip


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: Name = None,
    filters: Any = None,
) -> Tensor:
    """A convolution of volumes with filters [d, h, w, in, out]."""
    attrs = _windows(data_format, padding, 5, strides=strides, dilations=dilations)
    return apply("Conv3D", input, filters if filter is None else filter, name=name, **attrs)


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: Any = None,
    name: Name = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of rows with filters [w, in, out]."""
    value = input if value is None else value
    with name_scope(name, "conv1d", [value, filters]):
        channels_first = _text(data_format) in ("NCW", "NCHW")
        at = 2 if channels_first else 1
        wide = A.expand_dims(value, at)
        filters = A.expand_dims(filters, 0)
        steps = int(np.max(stride))
        numbers = [1, 1, 1, steps] if channels_first else [1, 1, steps, 1]
        rate = 1 if dilations is None else int(np.max(dilations))
        rates = [1, 1, 1, rate] if channels_first else [1, 1, rate, 1]
        form = "NCHW" if channels_first else "NHWC"
        made = conv2d(wide, filters, numbers, padding, data_format=form, dilations=rates)
        return A.squeeze(made, [at])


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: Name = None,
    data_format: Any = None,
) -> Tensor:
    """A convolution along all axes of space."""
    rank = len(input.shape)
    steps = 1 if strides is None else strides
    rates = 1 if dilation_rate is None else dilation_rate
    if rank == 3:
        return conv1d(input, filter, np.max(steps), padding, name=name, dilations=rates)
    if rank == 5:
        return conv3d(input, filter, steps, padding, dilations=rates, name=name)
    return conv2d(input, filter, steps, padding, data_format=data_format or "NHWC",
                  dilations=rates, name=name)  # fmt: skip


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: str, name: Name = None) -> Tensor:
    """A convolution whose filters have gaps."""
    return conv2d(value, filters, [1, 1, 1, 1], padding, dilations=[1, rate, rate, 1], name=name)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: str,
    rate: Any = None,
    name: Name = None,
    data_format: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of each channel with filters [h, w, channels, multiplier]."""
    rates = rate if rate is not None else dilations or 1
    attrs = _windows(data_format or "NHWC", padding, strides=strides, dilations=rates)
    return apply("DepthwiseConv2dNative", input, filter, name=name or "depthwise", **attrs)


depthwise_conv2d_native = depthwise_conv2d


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: str,
    rate: Any = None,
    name: Name = None,
    data_format: Any = None,
) -> Tensor:
    """A convolution of each channel, and one of all channels at each place."""
    with name_scope(name, "separable_conv2d", [input]):
        made = depthwise_conv2d(input, depthwise_filter, strides, padding, rate,
                                data_format=data_format)  # fmt: skip
        return conv2d(made, pointwise_filter, [1, 1, 1, 1], "VALID",
                      data_format=data_format or "NHWC")  # fmt: skip


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NHWC",
    name: Name = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of conv2d for its input, as a layer; filters are [h, w, out, in]."""
    value = input if value is None else value
    filter = filters if filter is None else filter
    attrs = _windows(data_format, padding, strides=strides, dilations=dilations or 1)
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        return apply("Conv2DBackpropInput", A._shape_value(output_shape), filter, value,
                     name=scope, use_cudnn_on_gpu=True, **attrs)  # fmt: skip


@refuses("explicit_paddings")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Name = None,
    filters: Any = None,
    explicit_paddings: Any = None,
) -> Tensor:
    """The gradient of conv2d for its input."""
    attrs = _windows(data_format, padding, strides=strides, dilations=dilations)
    return apply(
        "Conv2DBackpropInput", A._shape_value(input_sizes), filters if filter is None else filter,
        out_backprop, name=name, use_cudnn_on_gpu=use_cudnn_on_gpu, **attrs,
    )  # fmt: skip


@refuses("explicit_paddings")
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: Any = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Name = None,
    explicit_paddings: Any = None,
) -> Tensor:
    """The gradient of conv2d for its filters."""
    attrs = _windows(data_format, padding, strides=strides, dilations=dilations)
    return apply("Conv2DBackpropFilter", input, A._shape_value(filter_sizes), out_backprop,
                 name=name, use_cudnn_on_gpu=use_cudnn_on_gpu, **attrs)  # fmt: skip


def _pool(type: str, rank: int) -> Callable[..., Tensor]:
    form_of = "NHWC" if rank == 4 else "NDHWC"

    def function(
        value: Any = None,
        ksize: Any = None,
        strides: Any = None,
        padding: Any = None,
        data_format: str = form_of,
        name: Name = None,
        input: Any = None,
    ) -> Tensor:
        attrs = _windows(data_format or form_of, padding, rank, ksize=ksize, strides=strides)
        return apply(type, input if value is None else value, name=name, **attrs)

    function.__name__ = function.__qualname__ = type
    function.__doc__ = f"An op of type {type}: one number of each window."
    return function


max_pool, avg_pool = _pool("MaxPool", 4), _pool("AvgPool", 4)
max_pool3d, avg_pool3d = _pool("MaxPool3D", 5), _pool("AvgPool3D", 5)
max_pool2d, avg_pool2d = max_pool, avg_pool


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: Name = None,
    data_format: Any = None,
) -> Tensor:
    """The greatest element, or the mean, of each window."""
    if dilation_rate is not None and np.max(dilation_rate) > 1:
        raise NotImplementedError("tf.nn.pool without dilation only")
    function = {"MAX": max_pool, "AVG": avg_pool}[_text(pooling_type).upper()]
    steps = [1] * len(window_shape) if strides is None else list(strides)
    return function(input, list(window_shape), steps, padding, data_format or "NHWC", name)


def lrn(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: Name = None,
) -> Tensor:
    """x / (bias + alpha sum of squares of neighbouring channels)^beta."""
    return apply("LRN", input, name=name, depth_radius=depth_radius, bias=bias,
                         alpha=alpha, beta=beta)  # fmt: skip


local_response_normalization = lrn


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: Name = None,
    rate: Any = None,
) -> Tensor:
    """x / keep_prob with probability keep_prob, else 0."""
    if keep_prob is None and rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with name_scope(name, "dropout", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if rate is None:
            rate = 1 - keep_prob
        if isinstance(rate, int | float) and rate == 0:
            return x
        if isinstance(rate, int | float) and not 0 <= rate < 1:
            raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1), "
                             f"got {rate}")  # fmt: skip
        rate = convert_to_tensor(rate, x.dtype, name="rate")
        keep = 1 - rate
        scaled = M.multiply(x, 1 / keep, name="Mul")
        shape = A.shape(x) if noise_shape is None else noise_shape
        draws = random_uniform(shape, seed=seed, dtype=x.dtype)
        chosen = M.greater_equal(draws, rate)
        zeros = constant(np.zeros((), x.dtype.numpy))
        return apply("SelectV2", chosen, scaled, zeros, name=scope)


@refuses("max_norm")
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: Name = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """The rows of params by number."""
    if isinstance(params, list | tuple):
        if len(params) != 1:
            raise NotImplementedError("embedding_lookup of several parts: concatenate them first")
        params = params[0]
    return A.gather(params, ids, name=name or "embedding_lookup")


# sums of squares


def l2_loss(t: Any, name: Name = None) -> Tensor:
    """Half of the sum of squares."""
    return apply("L2Loss", t, name=name)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: Any = 1e-12, name: Name = None, dim: Any = None
) -> Tensor:
    """x / sqrt(max(sum of squares, epsilon)), along axes."""
    axis = dim if axis is None else axis
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        total = M.reduce_sum(M.square(x), axis, keepdims=True)
        return M.multiply(x, M.rsqrt(M.maximum(total, epsilon)), name=scope)


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: Any = None,
    name: Name = None,
    keep_dims: Any = None,
) -> Tensor:
    """The norm of vectors, or of matrices along two axes."""
    keep = bool(keepdims or keep_dims)
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        if ord in ("euclidean", "fro", 2, 2.0):
            squares = M.multiply(x, M.conj(x), name="mul")
            found = M.sqrt(M.reduce_sum(squares, axis, keepdims=True))
        elif ord in (1, 1.0):
            found = M.reduce_sum(M.abs(x), axis, keepdims=True)
        elif ord in (np.inf, "inf"):
            found = M.reduce_max(M.abs(x), axis, keepdims=True)
        elif isinstance(ord, int | float) and ord > 0:
            powers = M.pow(M.abs(x), ord)
            found = M.pow(M.reduce_sum(powers, axis, keepdims=True), 1.0 / ord)
        else:
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
        if keep:
            return found
        if axis is None and x.shape.ndims is not None:
            axis = list(range(x.shape.ndims))
        return A.squeeze(found, axis)


def zero_fraction(value: Any, name: Name = None) -> Tensor:
    """The share of zeros."""
    with name_scope(name, "zero_fraction", [value]):
        x = convert_to_tensor(value)
        zeros = M.equal(x, np.zeros((), x.dtype.numpy))
        return M.reduce_mean(M.cast(zeros, "float32"))


# normalisation


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: Name = None,
    keep_dims: Any = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along axes."""
    keep = bool(keepdims or keep_dims)
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x)
        mean = M.reduce_mean(x, axes, keepdims=True, name="mean")
        centre = A.stop_gradient(mean)
        variance = M.reduce_mean(M.squared_difference(x, centre), axes, keepdims=True,
                                 name="variance")  # fmt: skip
        if not keep:
            mean, variance = A.squeeze(mean, axes), A.squeeze(variance, axes)
        return mean, variance


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: Name = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) scale + offset."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inverse = M.rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        shift = -mean * inverse if offset is None else offset - mean * inverse
        return x * inverse + shift


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: Name = None,
    exponential_avg_factor: float = 1.0,
) -> Any:
    """Batch normalisation of images as one op: y, and mean and variance of the batch."""
    empty = np.zeros(0, "float32")
    outputs = build(
        "FusedBatchNormV3", x, scale, offset, empty if mean is None else mean,
        empty if variance is None else variance, name=name, epsilon=max(epsilon, 1.001e-5),
        data_format=_text(data_format).encode(), is_training=bool(is_training),
        exponential_avg_factor=float(exponential_avg_factor),
    ).outputs  # fmt: skip
    return outputs[0], outputs[1], outputs[2]


# losses


def _two_d(x: Tensor) -> Tensor:
    """All axes but the last as one."""
    last = x.shape[-1].value
    shape = [-1, last if last is not None else A.shape(x)[-1]]
    return A.reshape(x, shape)


def _only_named(sentinel: Any, function: str) -> None:
    if sentinel is not None:
        raise ValueError(
            f"Only call `{function}` with named arguments (labels=..., logits=..., ...)"
        )


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: Any = -1,
    name: Name = None,
    axis: Any = None,
) -> Tensor:
    """The cross entropy of each row; no gradient flows into labels."""
    _only_named(_sentinel, "softmax_cross_entropy_with_logits")
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = A.stop_gradient(convert_to_tensor(labels, name="labels"))
        return softmax_cross_entropy_with_logits_v2(
            labels=labels, logits=logits, axis=dim if axis is None else axis, name=scope
        )


def softmax_cross_entropy_with_logits_v2(
    labels: Any = None, logits: Any = None, axis: Any = None, name: Name = None, dim: Any = None,
    _sentinel: Any = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of each row; gradients flow into labels too."""
    axis = dim if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype, name="labels")
        rank = logits.shape.ndims
        at = -1 if axis is None or (rank is not None and int(axis) % rank == rank - 1) else axis
        if at != -1:
            perm = [i for i in range(rank) if i != at % rank] + [at % rank]
            logits, labels = A.transpose(logits, perm), A.transpose(labels, perm)
        shape = logits.shape
        flat = _two_d(logits), _two_d(labels)
        loss = apply("SoftmaxCrossEntropyWithLogits", *flat, name=scope)[0]
        return _rows_back(loss, logits, shape)


def _rows_back(loss: Tensor, logits: Tensor, shape: Any) -> Tensor:
    """A loss of rows in the shape of what the rows are of."""
    if shape.ndims == 2:
        lead = A.slice_(A.shape(logits), [0], [1])
        made = A.reshape(loss, shape[:-1] if shape[:-1].is_fully_defined() else lead)
    elif shape[:-1].is_fully_defined():
        made = A.reshape(loss, shape[:-1])
    else:
        made = A.reshape(loss, A.shape(logits)[:-1])
    made.set_shape(shape[:-1])
    return made


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: Name = None
) -> Tensor:
    """The cross entropy of each row, with labels as numbers."""
    _only_named(_sentinel, "sparse_softmax_cross_entropy_with_logits")
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]) as scope:
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        if logits.shape.ndims == 0:
            raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
        if logits.shape.ndims is not None and labels.shape.ndims is not None:
            if labels.shape.ndims != logits.shape.ndims - 1:
                raise ValueError(
                    "`labels.shape` must equal `logits.shape` except for the last dimension. "
                    f"Received: labels.shape={labels.shape} and logits.shape={logits.shape}"
                )
        if logits.shape.ndims in (None, 2):
            return apply("SparseSoftmaxCrossEntropyWithLogits", logits, labels, name=scope)[0]
        rows = A.shape(labels)
        flat = apply("SparseSoftmaxCrossEntropyWithLogits", _two_d(logits),
                     A.reshape(labels, [-1]), name=scope)[0]  # fmt: skip
        made = A.reshape(flat, rows)
        made.set_shape(labels.shape)
        return made


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: Name = None
) -> Tensor:
    """The cross entropy of each element."""
    _only_named(_sentinel, "sigmoid_cross_entropy_with_logits")
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype, name="labels")
        if not labels.shape.is_compatible_with(logits.shape):
            raise ValueError(
                f"`logits` and `labels` must have the same shape ({logits.shape} vs {labels.shape})"
            )
        zeros = apply("ZerosLike", logits, name="zeros_like")
        positive = M.greater_equal(logits, zeros)
        clipped = A.where(positive, logits, zeros)
        minus = A.where(positive, M.negative(logits), logits)
        return M.add(
            M.subtract(clipped, M.multiply(logits, labels, name="mul"), name="sub"),
            M.log1p(M.exp(minus)),
            name=scope,
        )


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: Name = None,
    targets: Any = None,
) -> Tensor:
    """The cross entropy of each element, with positive ones weighted."""
    labels = targets if labels is None else labels
    with name_scope(name, "logistic_loss", [logits, labels]):
        x, z = convert_to_tensor(logits), convert_to_tensor(labels)
        weight = 1 + (pos_weight - 1) * z
        smooth = M.log1p(M.exp(-M.abs(x))) + relu(-x)
        return (1 - z) * x + weight * smooth


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: Name = None) -> Any:
    """The greatest elements along the last axis, and where they are."""
    return tuple(apply("TopKV2", input, k, name=name))


def in_top_k(predictions: Any, targets: Any, k: Any, name: Name = None) -> Tensor:
    """Whether each target is among the k greatest predictions."""
    return apply("InTopKV2", predictions, targets, k, name=name)
