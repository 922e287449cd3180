"""Functions of TensorFlow's generated modules: `gen_nn_ops.relu_grad`, ..."""

from __future__ import annotations

from typing import Any

from .create import apply
from .graph import Tensor
from .ops.nn import _windows
from .refused import refuses

__all__ = [
    "avg_pool_grad", "elu_grad", "leaky_relu_grad", "max_pool_grad", "relu6_grad", "relu_grad",
    "rsqrt_grad", "selu_grad", "sigmoid_grad", "softplus_grad", "sqrt_grad", "tanh_grad",
]  # fmt: skip


def relu_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy where the features are above zero."""
    return apply("ReluGrad", gradients, features, name=name)


def relu6_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy where the features are between zero and six."""
    return apply("Relu6Grad", gradients, features, name=name)


def elu_grad(gradients: Any, outputs: Any, name: Any = None) -> Tensor:
    """The gradient of elu from its results."""
    return apply("EluGrad", gradients, outputs, name=name)


def selu_grad(gradients: Any, outputs: Any, name: Any = None) -> Tensor:
    """The gradient of selu from its results."""
    return apply("SeluGrad", gradients, outputs, name=name)


def leaky_relu_grad(gradients: Any, features: Any, alpha: float = 0.2, name: Any = None) -> Tensor:
    """The gradient of leaky_relu."""
    return apply("LeakyReluGrad", gradients, features, name=name, alpha=alpha)


def softplus_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy sigmoid(x)."""
    return apply("SoftplusGrad", gradients, features, name=name)


def sigmoid_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy y (1 - y)."""
    return apply("SigmoidGrad", y, dy, name=name)


def tanh_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy (1 - y y)."""
    return apply("TanhGrad", y, dy, name=name)


def sqrt_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy / (2 y)."""
    return apply("SqrtGrad", y, dy, name=name)


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
