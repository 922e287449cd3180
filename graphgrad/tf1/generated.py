"""Functions of TensorFlow's generated modules: `gen_nn_ops.relu_grad`, ..."""

from __future__ import annotations

from typing import Any

from .create import apply
from .graph import Tensor
from .ops.nn import _numbers, _pads

__all__ = [
    "avg_pool_grad", "elu_grad", "leaky_relu_grad", "max_pool_grad", "relu6_grad", "relu_grad",
    "rsqrt_grad", "selu_grad", "sigmoid_grad", "softplus_grad", "sqrt_grad", "tanh_grad",
]  # fmt: skip


def relu_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy where the features are above zero."""
    made: Tensor = apply("ReluGrad", gradients, features, name=name)
    return made


def relu6_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy where the features are between zero and six."""
    made: Tensor = apply("Relu6Grad", gradients, features, name=name)
    return made


def elu_grad(gradients: Any, outputs: Any, name: Any = None) -> Tensor:
    """The gradient of elu from its results."""
    made: Tensor = apply("EluGrad", gradients, outputs, name=name)
    return made


def selu_grad(gradients: Any, outputs: Any, name: Any = None) -> Tensor:
    """The gradient of selu from its results."""
    made: Tensor = apply("SeluGrad", gradients, outputs, name=name)
    return made


def leaky_relu_grad(gradients: Any, features: Any, alpha: float = 0.2, name: Any = None) -> Tensor:
    """The gradient of leaky_relu."""
    made: Tensor = apply("LeakyReluGrad", gradients, features, name=name, alpha=alpha)
    return made


def softplus_grad(gradients: Any, features: Any, name: Any = None) -> Tensor:
    """dy sigmoid(x)."""
    made: Tensor = apply("SoftplusGrad", gradients, features, name=name)
    return made


def sigmoid_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy y (1 - y)."""
    made: Tensor = apply("SigmoidGrad", y, dy, name=name)
    return made


def tanh_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy (1 - y y)."""
    made: Tensor = apply("TanhGrad", y, dy, name=name)
    return made


def sqrt_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """dy / (2 y)."""
    made: Tensor = apply("SqrtGrad", y, dy, name=name)
    return made


def rsqrt_grad(y: Any, dy: Any, name: Any = None) -> Tensor:
    """-dy y^3 / 2."""
    made: Tensor = -0.5 * dy * y * y * y
    return made


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


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
    form = _text(data_format)
    made: Tensor = apply(
        "MaxPoolGrad", orig_input, orig_output, grad, name=name, ksize=_numbers(ksize, 4, form),
        strides=_numbers(strides, 4, form), padding=_pads(_text(padding))[0],
        data_format=form.encode(),
    )  # fmt: skip
    return made


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
    form = _text(data_format)
    made: Tensor = apply(
        "AvgPoolGrad", orig_input_shape, grad, name=name, ksize=_numbers(ksize, 4, form),
        strides=_numbers(strides, 4, form), padding=_pads(_text(padding))[0],
        data_format=form.encode(),
    )  # fmt: skip
    return made


_relu_grad, _max_pool_grad, _softplus_grad = relu_grad, max_pool_grad, softplus_grad
_elu_grad, _relu6_grad, _avg_pool_grad = elu_grad, relu6_grad, avg_pool_grad
_sigmoid_grad, _tanh_grad = sigmoid_grad, tanh_grad
