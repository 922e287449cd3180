"""Functions of TensorFlow's generated modules: `gen_nn_ops.relu_grad`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from .create import apply
from .definition import define
from .graph import Tensor
from .ops.elementwise import same
from .ops.nn import _windows
from .refused import refuses

__all__ = [
    "avg_pool_grad", "elu_grad", "leaky_relu_grad", "max_pool_grad", "relu6_grad", "relu_grad",
    "rsqrt_grad", "selu_grad", "sigmoid_grad", "softplus_grad", "sqrt_grad", "tanh_grad",
]  # fmt: skip


def _gradient(
    type: str, arguments: str, native: Callable[..., Any], doc: str
) -> Callable[..., Tensor]:
    """Define an op type of a gradient, of two tensors; the function that makes such ops."""
    define(type, arguments, native=native, infer=same)

    def of_features(gradients: Any, features: Any, name: Any = None) -> Tensor:
        return apply(type, gradients, features, name=name)

    def of_outputs(gradients: Any, outputs: Any, name: Any = None) -> Tensor:
        return apply(type, gradients, outputs, name=name)

    def of_result(y: Any, dy: Any, name: Any = None) -> Tensor:
        return apply(type, y, dy, name=name)

    named = {_FEATURES: of_features, _OUTPUTS: of_outputs, _RESULT: of_result}
    function = named[arguments]
    function.__name__ = function.__qualname__ = f"{type.removesuffix('Grad').lower()}_grad"
    function.__doc__ = doc
    return function


def _below_six(dy: Any, x: Any) -> Any:
    return gg.where(gg.logical_and(gg.greater(x, 0), gg.less(x, 6)), dy, gg.zeros_like(dy))


def _selu(dy: Any, y: Any) -> Any:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    below = dy * (y + np.array(scale * alpha, y.dtype))
    return gg.where(gg.less(y, 0), below, dy * np.array(scale, y.dtype))


_FEATURES, _OUTPUTS, _RESULT = "gradients features", "gradients outputs", "y dy"
relu_grad = _gradient(
    "ReluGrad", _FEATURES, lambda dy, x: gg.where(gg.greater(x, 0), dy, gg.zeros_like(dy)),
    "dy where the features are above zero.",
)  # fmt: skip
relu6_grad = _gradient(
    "Relu6Grad", _FEATURES, _below_six, "dy where the features are between zero and six."
)
softplus_grad = _gradient(
    "SoftplusGrad", _FEATURES, lambda dy, x: dy * gg.nn.sigmoid(x), "dy sigmoid(x)."
)
elu_grad = _gradient(
    "EluGrad", _OUTPUTS, lambda dy, y: gg.where(gg.less(y, 0), dy * (y + 1.0), dy),
    "The gradient of elu from its results.",
)  # fmt: skip
selu_grad = _gradient("SeluGrad", _OUTPUTS, _selu, "The gradient of selu from its results.")
sigmoid_grad = _gradient("SigmoidGrad", _RESULT, lambda y, dy: dy * y * (1.0 - y), "dy y (1 - y).")
tanh_grad = _gradient("TanhGrad", _RESULT, lambda y, dy: dy * (1.0 - y * y), "dy (1 - y y).")
sqrt_grad = _gradient(
    "SqrtGrad", _RESULT,
    lambda y, dy: gg.where(gg.equal(dy, 0), gg.zeros_like(dy), dy * 0.5 / y), "dy / (2 y).",
)  # fmt: skip


def leaky_relu_grad(gradients: Any, features: Any, alpha: float = 0.2, name: Any = None) -> Tensor:
    """The gradient of leaky_relu."""
    return apply("LeakyReluGrad", gradients, features, name=name, alpha=alpha)


def rsqrt_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """-dy y^3 / 2."""
    return -0.5 * dy * y * y * y


@refuses("explicit_paddings")
def max_pool_grad(
    orig_input: Any,
    orig_output: Any,
    grad: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    explicit_paddings: Any = (),
    name: Any = None,
) -> Tensor:
    """dy at the greatest element of each window."""
    attrs = _windows(data_format, padding, ksize=ksize, strides=strides)
    return apply("MaxPoolGrad", orig_input, orig_output, grad, name=name, **attrs)


def avg_pool_grad(
    orig_input_shape: Any,
    grad: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    name: Any = None,
) -> Tensor:
    """dy, spread over each window."""
    attrs = _windows(data_format, padding, ksize=ksize, strides=strides)
    return apply("AvgPoolGrad", orig_input_shape, grad, name=name, **attrs)


_relu_grad, _max_pool_grad, _softplus_grad = relu_grad, max_pool_grad, softplus_grad
_elu_grad, _relu6_grad, _avg_pool_grad = elu_grad, relu6_grad, avg_pool_grad
_sigmoid_grad, _tanh_grad = sigmoid_grad, tanh_grad
