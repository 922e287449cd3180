"""`tf.contrib.layers`: layers with TensorFlow's other names and defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import layers as core
from ..create import convert_to_tensor
from ..graph import GraphKeys, Tensor
from ..initializers import (
    GlorotNormal,
    GlorotUniform,
    VarianceScaling,
    ones_initializer,
    zeros_initializer,
)
from ..ops import array as A
from ..ops import math as M
from ..ops import nn
from ..refused import refuses
from ..regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from ..variable_scope import variable_scope
from ..weights import Parameter, biased, weights
from .arg_scope import add_arg_scope

__all__ = [
    "apply_regularization", "avg_pool2d", "batch_norm", "bias_add", "conv2d", "conv2d_transpose",
    "convolution2d", "dropout", "flatten", "fully_connected", "instance_norm", "l1_l2_regularizer",
    "l1_regularizer", "l2_regularizer", "layer_norm", "linear", "max_pool2d", "one_hot_encoding",
    "relu", "separable_conv2d", "softmax", "stack", "sum_regularizer",
    "variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip


def xavier_initializer(uniform: bool = True, seed: Any = None, dtype: Any = "float32") -> Any:
    """Glorot's."""
    return GlorotUniform(seed, dtype) if uniform else GlorotNormal(seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: Any = None,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """Random numbers of variance factor / n."""
    kind = "uniform" if uniform else "truncated_normal"
    return VarianceScaling(factor, mode.lower(), kind, seed, dtype)


def _normalised(
    made: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any, collections: Any
) -> Any:
    if normalizer_fn is not None:
        made = normalizer_fn(made, **(normalizer_params or {}))
    if activation_fn is not None:
        made = activation_fn(made)
    if collections is not None:
        made.graph.add_to_collections(collections, made)
    return made


def _bias(initializer: Any, regularizer: Any, normalizer_fn: Any) -> Parameter | None:
    """What is added to a product, where nothing normalises it."""
    there = initializer is not None and normalizer_fn is None
    return Parameter("biases", initializer, regularizer) if there else None


@add_arg_scope
@refuses("variables_collections")
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """activation(x weights + biases)."""
    with variable_scope(scope, "fully_connected", [inputs], reuse=reuse):
        x = convert_to_tensor(inputs)
        n = x.shape[-1].value
        kernel = Parameter(
            "weights", weights_initializer or xavier_initializer(), weights_regularizer
        )
        bias = _bias(biases_initializer, biases_regularizer, normalizer_fn)
        w, b = weights(x, [n, num_outputs], num_outputs, kernel, bias, trainable)
        flat = x if x.shape.ndims in (2, None) else A.reshape(x, [-1, n])
        made = biased(M.matmul(flat, w), b)
        if flat is not x:
            lengths = [-1 if m is None else m for m in x.shape.as_list()[:-1]]
            made = A.reshape(made, [*lengths, num_outputs])
        return _normalised(made, normalizer_fn, normalizer_params, activation_fn,
                           outputs_collections)  # fmt: skip


def linear(*args: Any, **kwargs: Any) -> Tensor:
    """`fully_connected` without an activation."""
    return fully_connected(*args, **{"activation_fn": None, **kwargs})


def relu(*args: Any, **kwargs: Any) -> Tensor:
    """`fully_connected` with relu."""
    return fully_connected(*args, **kwargs)


@add_arg_scope
@refuses("variables_collections")
def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: Any = None,
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """activation(convolution of images with weights + biases)."""
    form = data_format or "NHWC"
    with variable_scope(scope, "Conv", [inputs], reuse=reuse):
        x = convert_to_tensor(inputs)
        c = x.shape[1 if form == "NCHW" else -1].value
        size = [int(k) for k in np.atleast_1d(kernel_size)]
        size = size * 2 if len(size) == 1 else size
        kernel = Parameter(
            "weights", weights_initializer or xavier_initializer(), weights_regularizer
        )
        bias = _bias(biases_initializer, biases_regularizer, normalizer_fn)
        shape = [*size, c, num_outputs]
        w, b = weights(x, shape, num_outputs, kernel, bias, trainable)
        made = nn.conv2d(x, w, stride, padding.upper(), data_format=form, dilations=rate)
        return _normalised(biased(made, b, form), normalizer_fn, normalizer_params, activation_fn,
                           outputs_collections)  # fmt: skip


convolution2d = convolution = conv2d


@add_arg_scope
@refuses("data_format")
def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: Any = None,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    reuse: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    **_: Any,
) -> Tensor:
    """The other way round than `conv2d`: to larger images."""
    with variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse) as opened:
        made = core.conv2d_transpose(
            inputs, num_outputs, kernel_size, stride, padding,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer or xavier_initializer(),
            kernel_regularizer=weights_regularizer, trainable=trainable, name=opened,
        )  # fmt: skip
        return _normalised(made, normalizer_fn, normalizer_params, activation_fn,
                           outputs_collections)  # fmt: skip


@add_arg_scope
def separable_conv2d(
    inputs: Any, num_outputs: Any, kernel_size: Any, depth_multiplier: int = 1, stride: Any = 1,
    padding: str = "SAME", activation_fn: Any = nn.relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, scope: Any = None, reuse: Any = None, **_: Any,
) -> Tensor:  # fmt: skip
    """A convolution of each channel, and one of all channels at each place."""
    with variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse) as opened:
        made = core.separable_conv2d(
            inputs, num_outputs, kernel_size, stride, padding, depth_multiplier,
            use_bias=normalizer_fn is None, name=opened,
        )  # fmt: skip
        return _normalised(made, normalizer_fn, normalizer_params, activation_fn, None)


def _pool(name: str, function: Any, doc: str) -> Any:
    def pooled(
        inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
        data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None,
    ) -> Tensor:  # fmt: skip
        return function(inputs, kernel_size, stride, padding, data_format, name=scope)

    pooled.__name__ = pooled.__qualname__ = name
    pooled.__doc__ = doc
    return add_arg_scope(refuses("outputs_collections")(pooled))


max_pool2d = _pool("max_pool2d", nn.max_pool, "The greatest element of each window.")
avg_pool2d = _pool("avg_pool2d", nn.avg_pool, "The mean of each window.")


@add_arg_scope
@refuses(
    "param_initializers",
    "param_regularizers",
    "variables_collections",
    "outputs_collections",
    "batch_weights",
    "zero_debias_moving_mean",
)
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: Any = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    **_: Any,
) -> Tensor:
    """Batch normalisation; with updates_collections=None the averages move with the result."""
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as opened:
        graph = convert_to_tensor(inputs).graph
        held = graph.get_collection(GraphKeys.UPDATE_OPS)
        x = convert_to_tensor(inputs)
        flat = x.shape.ndims == 2 and fused is not False
        if flat:  # one op, which is for images
            x = A.reshape(x, [-1, 1, 1, x.shape[-1]])
        made = core.batch_normalization(
            x, axis=1 if data_format == "NCHW" else -1, momentum=decay, epsilon=epsilon,
            center=center, scale=scale, training=is_training, trainable=trainable, name=opened,
            fused=fused,
        )  # fmt: skip
        if flat:
            made = A.reshape(made, [-1, x.shape[-1]])
            made.set_shape(convert_to_tensor(inputs).shape)
        updates = graph.get_collection_ref(GraphKeys.UPDATE_OPS)
        new = updates[len(held) :]
        if updates_collections != GraphKeys.UPDATE_OPS:
            del updates[len(held) :]
            if updates_collections is None:
                with graph.control_dependencies(new):
                    made = A.identity(made)
            else:
                for u in new:
                    graph.add_to_collections(updates_collections, u)
        return made if activation_fn is None else activation_fn(made)


@add_arg_scope
@refuses("variables_collections", "outputs_collections")
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """Each example less its mean, over its deviation."""
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        x = convert_to_tensor(inputs)
        rank = len(x.shape)
        shape = x.shape[begin_params_axis % rank :].as_list()
        axes = list(range(begin_norm_axis % rank, rank))
        made = _standardised(x, axes, shape, center, scale, trainable, 1e-12)
        return made if activation_fn is None else activation_fn(made)


def _standardised(
    x: Tensor, axes: Any, shape: Any, center: bool, scale: bool, trainable: bool, epsilon: float
) -> Tensor:
    """Less the mean, over the deviation along axes; then scaled and shifted by variables."""
    beta = Parameter("beta", zeros_initializer()).of(x, shape, trainable) if center else None
    gamma = Parameter("gamma", ones_initializer()).of(x, shape, trainable) if scale else None
    mean, variance = nn.moments(x, axes, keep_dims=True)
    return nn.batch_normalization(x, mean, variance, beta, gamma, epsilon)


@add_arg_scope
@refuses("param_initializers")
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6,
    activation_fn: Any = None, param_initializers: Any = None, reuse: Any = None,
    trainable: bool = True, scope: Any = None, **_: Any,
) -> Tensor:  # fmt: skip
    """Each channel of each example less its mean, over its deviation."""
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse):
        x = convert_to_tensor(inputs)
        shape, axes = [x.shape[-1].value], list(range(1, len(x.shape) - 1))
        made = _standardised(x, axes, shape, center, scale, trainable, epsilon)
        return made if activation_fn is None else activation_fn(made)


@add_arg_scope
@refuses("outputs_collections")
def dropout(
    inputs: Any, keep_prob: Any = 0.5, noise_shape: Any = None, is_training: Any = True,
    outputs_collections: Any = None, scope: Any = None, seed: Any = None,
) -> Tensor:  # fmt: skip
    """x / keep_prob with probability keep_prob, else 0, in training."""
    return core.dropout(inputs, 1 - keep_prob, noise_shape, seed, is_training, scope)


@add_arg_scope
@refuses("outputs_collections")
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """All axes but the first as one."""
    return core.flatten(inputs, name=scope)


@add_arg_scope
@refuses()
def bias_add(inputs: Any, activation_fn: Any = None, scope: Any = None, **_: Any) -> Tensor:
    """x + biases."""
    with variable_scope(scope, "BiasAdd", [inputs]):
        x = convert_to_tensor(inputs)
        b = Parameter("biases", zeros_initializer()).of(x, [x.shape[-1].value])
        made = nn.bias_add(x, b)
        return made if activation_fn is None else activation_fn(made)


def softmax(logits: Any, scope: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along the last axis."""
    return nn.softmax(logits, name=scope)


@refuses("outputs_collections")
def one_hot_encoding(labels: Any, num_classes: int, on_value: Any = 1.0, off_value: Any = 0.0,
                     outputs_collections: Any = None, scope: Any = None) -> Tensor:  # fmt: skip
    """Ones at the numbers of classes."""
    return A.one_hot(labels, num_classes, on_value, off_value)


def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """A layer again and again."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Stack", [inputs]):
        for i, args in enumerate(stack_args):
            given = args if isinstance(args, list | tuple) else [args]
            inputs = layer(inputs, *given, **{**kwargs, "scope": f"{layer.__name__}_{i + 1}"})
        return inputs


def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer again and again, with the same arguments."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        name = scope or layer.__name__
        for i in range(repetitions):
            inputs = layer(inputs, *args, **{**kwargs, "scope": f"{name}_{i + 1}"})
        return inputs
