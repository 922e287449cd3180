"""Layers with variables of their own: `tf.layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .control_flow import cond
from .create import convert_to_tensor
from .graph import GraphKeys, Tensor
from .initializers import ones_initializer, zeros_initializer
from .ops import array as A
from .ops import math as M
from .ops import nn
from .refused import refuses
from .training.averages import assign_moving_average
from .variable_scope import Scoped, variable_scope
from .weights import Parameter, biased, weights

__all__ = [
    "Conv2D", "Dense", "average_pooling1d", "average_pooling2d", "batch_normalization", "conv1d",
    "conv2d", "conv2d_transpose", "dense", "dropout", "flatten", "max_pooling1d", "max_pooling2d",
    "separable_conv2d",
]  # fmt: skip


def _named(name: Any, default: str, reuse: Any) -> Any:
    """The variable scope of a layer: of its name, or of a default one made unique."""
    if name is None:
        return variable_scope(None, default_name=default, reuse=None)
    return variable_scope(name, reuse=reuse)


def _finished(made: Any, bias: Any, form: Any, activation: Any, activity: Any) -> Any:
    made = biased(made, bias, form)
    if activation is not None:
        made = activation(made)
    if activity is not None:
        made.graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, activity(made))
    return made


def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    """x kernel + bias, along the last axis."""
    with _named(name, "dense", reuse):
        x = convert_to_tensor(inputs)
        n = x.shape[-1].value
        if n is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found "
                             "`None`.")  # fmt: skip
        kernel = Parameter("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        bias = Parameter("bias", bias_initializer, bias_regularizer, bias_constraint)
        w, b = weights(x, [n, units], units, kernel, bias if use_bias else None, trainable)
        rank = x.shape.ndims or 0
        made = M.tensordot(x, w, [[rank - 1], [0]]) if rank > 2 else M.matmul(x, w)
        return _finished(made, b, None, activation, activity_regularizer)


fully_connected = dense


def _pair(value: Any, count: int = 2) -> list[int]:
    given = [int(v) for v in np.atleast_1d(value)]
    return given * count if len(given) == 1 else given


def _channels(x: Tensor, data_format: str) -> int:
    n = x.shape[1 if data_format == "channels_first" else -1].value
    if n is None:
        raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
    return n


def _form(data_format: str) -> str:
    return "NCHW" if data_format == "channels_first" else "NHWC"


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    """A convolution of images with a kernel, and a bias."""
    with _named(name, "conv2d", reuse):
        x = convert_to_tensor(inputs)
        form = _form(data_format)
        shape = [*_pair(kernel_size), _channels(x, data_format), filters]
        kernel = Parameter("kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        bias = Parameter("bias", bias_initializer, bias_regularizer, bias_constraint)
        w, b = weights(x, shape, filters, kernel, bias if use_bias else None, trainable)
        made = nn.conv2d(x, w, _pair(strides), padding.upper(), data_format=form,
                         dilations=_pair(dilation_rate))  # fmt: skip
        return _finished(made, b, form, activation, activity_regularizer)


@refuses("data_format", "kernel_constraint", "bias_constraint")
def conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    """A convolution of rows with a kernel, and a bias."""
    with _named(name, "conv1d", reuse):
        x = convert_to_tensor(inputs)
        shape = [*_pair(kernel_size, 1), x.shape[-1].value, filters]
        kernel = Parameter("kernel", kernel_initializer, kernel_regularizer)
        bias = Parameter("bias", bias_initializer, bias_regularizer) if use_bias else None
        w, b = weights(x, shape, filters, kernel, bias, trainable)
        made = nn.conv1d(x, w, _pair(strides, 1)[0], padding.upper(), dilations=dilation_rate)
        return _finished(made, b, None, activation, activity_regularizer)


@refuses("kernel_constraint", "bias_constraint")
def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Tensor:
    """The other way round than `conv2d`: to larger images."""
    with _named(name, "conv2d_transpose", reuse):
        x = convert_to_tensor(inputs)
        form, size, steps = _form(data_format), _pair(kernel_size), _pair(strides)
        kernel = Parameter("kernel", kernel_initializer, kernel_regularizer)
        bias = Parameter("bias", bias_initializer, bias_regularizer) if use_bias else None
        sizes = [*size, filters, _channels(x, data_format)]
        w, b = weights(x, sizes, filters, kernel, bias, trainable)
        lengths = A.shape(x)
        at = 2 if form == "NCHW" else 1
        known = x.shape.as_list()
        space = [
            _wide(known[at + i] if known[at + i] is not None else lengths[at + i], k, s, padding)
            for i, (k, s) in enumerate(zip(size, steps, strict=True))
        ]
        batch = known[0] if known[0] is not None else lengths[0]
        shape = [batch, filters, *space] if form == "NCHW" else [batch, *space, filters]
        made = nn.conv2d_transpose(x, w, shape, steps, padding.upper(), form)
        return _finished(made, b, form, activation, activity_regularizer)


def _wide(n: Any, kernel: int, stride: int, padding: str) -> Any:
    made = n * stride
    return made + max(kernel - stride, 0) if padding.lower() == "valid" else made


def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    depth_multiplier: int = 1,
    activation: Any = None,
    use_bias: bool = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
    **_: Any,
) -> Tensor:
    """A convolution of each channel, and one of all channels at each place."""
    with _named(name, "separable_conv2d", reuse):
        x = convert_to_tensor(inputs)
        c = _channels(x, "channels_last")
        shape = [*_pair(kernel_size), c, depth_multiplier]
        deep = Parameter("depthwise_kernel", depthwise_initializer).of(x, shape, trainable)
        wide = Parameter("pointwise_kernel", pointwise_initializer)
        bias = Parameter("bias", bias_initializer) if use_bias else None
        sizes = [1, 1, c * depth_multiplier, filters]
        w, b = weights(x, sizes, filters, wide, bias, trainable)
        made = nn.separable_conv2d(x, deep, w, [1, *_pair(strides), 1], padding.upper())
        return _finished(made, b, None, activation, None)


def _pooling(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pooled(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: Any = None,
    ) -> Tensor:
        return function(inputs, _pair(pool_size), _pair(strides), padding.upper(),
                        data_format=_form(data_format), name=name)  # fmt: skip

    pooled.__doc__ = "One number of each window of images."
    return pooled


def _pooling1d(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pooled(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        name: Any = None,
        **_: Any,
    ) -> Tensor:
        wide = A.expand_dims(inputs, 2)
        made = function(wide, [_pair(pool_size, 1)[0], 1], [_pair(strides, 1)[0], 1],
                        padding.upper(), name=name)  # fmt: skip
        return A.squeeze(made, [2])

    pooled.__doc__ = "One number of each window of rows."
    return pooled


max_pooling2d, average_pooling2d = _pooling(nn.max_pool), _pooling(nn.avg_pool)
max_pooling1d, average_pooling1d = _pooling1d(nn.max_pool), _pooling1d(nn.avg_pool)


@refuses("data_format")
def flatten(inputs: Any, name: Any = None, data_format: str = "channels_last") -> Tensor:
    """All axes but the first as one."""
    x = convert_to_tensor(inputs)
    known = x.shape.as_list()
    size = -1 if None in known[1:] else int(np.prod(known[1:]))
    if known[0] is None and size == -1:
        made = A.reshape(x, [A.shape(x)[0], -1], name=name)
        made.set_shape([None, None])
        return made
    made = A.reshape(x, [known[0] if known[0] is not None else -1, size], name=name)
    made.set_shape([known[0], None if size == -1 else size])
    return made


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
    name: Any = None,
) -> Tensor:
    """x / (1 - rate) with probability 1 - rate, else 0, in training; x otherwise."""

    def dropped() -> Tensor:
        return nn.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed, name=name)

    return _if(training, dropped, lambda: A.identity(inputs))


def _if(training: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """One of two, now or in the run."""
    from_graph = isinstance(training, Tensor) or hasattr(training, "_tensor_of")
    if not from_graph:
        return yes() if training else no()
    return cond(training, yes, no)


@refuses("beta_constraint", "gamma_constraint", "adjustment")
def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: Any = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: Any = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) gamma + beta; averages move by UPDATE_OPS."""
    if renorm or virtual_batch_size is not None:
        raise NotImplementedError("batch_normalization without renorm and virtual batches only")
    x = convert_to_tensor(inputs)
    rank = len(x.shape)
    at = int(np.atleast_1d(axis)[0]) % rank
    n = x.shape[at].value
    zeros, ones = zeros_initializer(), ones_initializer()
    scales = Parameter("gamma", gamma_initializer or ones, gamma_regularizer)
    shifts = Parameter("beta", beta_initializer or zeros, beta_regularizer)
    means = Parameter("moving_mean", moving_mean_initializer or zeros)
    spreads = Parameter("moving_variance", moving_variance_initializer or ones)
    with _named(name, "batch_normalization", reuse):
        gamma = scales.of(x, [n], trainable) if scale else None
        beta = shifts.of(x, [n], trainable) if center else None
        mean, spread = (p.of(x, [n], trainable=False) for p in (means, spreads))
    one_op = (fused is None or fused) and rank == 4 and at in (1, 3)
    if one_op:
        made, batch_mean, batch_spread = _fused(x, gamma, beta, mean, spread, epsilon, at, training)
    else:
        made, batch_mean, batch_spread = _plain(x, gamma, beta, mean, spread, epsilon, at, training)
    _move(mean, batch_mean, momentum, training)
    _move(spread, batch_spread, momentum, training)
    return made


def _fused(
    x: Tensor, gamma: Any, beta: Any, mean: Any, spread: Any, epsilon: float, at: int, training: Any
) -> Any:
    form = "NCHW" if at == 1 else "NHWC"
    n = x.shape[at].value
    kind = x.dtype.base_dtype
    gamma = A.ones([n], kind) if gamma is None else gamma
    beta = A.zeros([n], kind) if beta is None else beta

    def of_batch() -> Any:
        return nn.fused_batch_norm(x, gamma, beta, epsilon=epsilon, data_format=form)

    def of_averages() -> Any:
        return nn.fused_batch_norm(x, gamma, beta, mean, spread, epsilon, form, False)

    return _if(training, of_batch, of_averages)


def _plain(
    x: Tensor, gamma: Any, beta: Any, mean: Any, spread: Any, epsilon: float, at: int, training: Any
) -> Any:
    axes = [i for i in range(len(x.shape)) if i != at]

    def of_batch() -> Any:
        return nn.moments(x, axes)

    chosen_mean, chosen_spread = _if(training, of_batch, lambda: (
        A.identity(mean), A.identity(spread)))  # fmt: skip
    shape = [1] * len(x.shape)
    shape[at] = -1

    def wide(v: Any) -> Any:
        return v if v is None or at == len(x.shape) - 1 else A.reshape(v, shape)

    made = nn.batch_normalization(x, wide(chosen_mean), wide(chosen_spread), wide(beta),
                                  wide(gamma), epsilon)  # fmt: skip
    return made, chosen_mean, chosen_spread


def _move(variable: Any, value: Any, momentum: Any, training: Any) -> None:
    """An op among UPDATE_OPS that moves an average, in training."""
    from_graph = isinstance(training, Tensor) or hasattr(training, "_tensor_of")
    if not from_graph and not training:
        return
    decay = momentum
    if from_graph:
        decay = cond(training, lambda: convert_to_tensor(momentum, "float32"),
                     lambda: convert_to_tensor(1.0, "float32"))  # fmt: skip
    moved = assign_moving_average(variable, value, decay, zero_debias=False)
    variable.graph.add_to_collection(GraphKeys.UPDATE_OPS, moved)


class _Layer(Scoped):
    """A layer that is made before it is called; its calls share variables."""

    function: Callable[..., Tensor]
    default = "layer"

    def __init__(self, *args: Any, name: Any = None, **kwargs: Any) -> None:
        self._args, self._kwargs, self._given = args, kwargs, name

    def __call__(self, inputs: Any) -> Tensor:
        first = self._scope is None
        opened = _named(self._given, self.default, None) if first else variable_scope(
            self._scope, reuse=True)  # fmt: skip
        with opened as scope:
            self._scope = self._scope or scope
        return type(self).function(inputs, *self._args, name=self._scope, reuse=not first or None,
                                   **self._kwargs)  # fmt: skip

    apply = __call__

    @property
    def kernel(self) -> Any:
        """Its kernel."""
        return next(v for v in self.variables if v.op.name.endswith("kernel"))

    @property
    def bias(self) -> Any:
        """Its bias."""
        return next(v for v in self.variables if v.op.name.endswith("bias"))


class Dense(_Layer):
    """`dense`, as an object."""

    function, default = staticmethod(dense), "dense"


class Conv2D(_Layer):
    """`conv2d`, as an object."""

    function, default = staticmethod(conv2d), "conv2d"
