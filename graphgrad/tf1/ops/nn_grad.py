"""TensorFlow's gradients of neural networks, as functions of an op and dy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..create import apply, constant
from ..derived import derived_gradient
from ..graph import Operation, Tensor
from ..registry import RegisterGradient

__all__: list[str] = []


def _of_output(type: str, doc: str) -> Callable[..., Any]:
    """A gradient that is one op, of dy and y."""

    def gradient(op: Operation, grad: Tensor) -> Any:
        return apply(f"{type}Grad", grad, op.outputs[0])

    gradient.__name__ = gradient.__qualname__ = f"_{type}Grad"
    gradient.__doc__ = doc
    return RegisterGradient(type)(gradient)


_ReluGrad = _of_output("Relu", "dy where y > 0.")
_Relu6Grad = _of_output("Relu6", "dy where 0 < y < 6.")
_EluGrad = _of_output("Elu", "dy where y > 0, dy (y + 1) elsewhere.")
_SeluGrad = _of_output("Selu", "scale dy where y > 0, dy (y + scale alpha) elsewhere.")


@RegisterGradient("ReluGrad")
@RegisterGradient("Relu6Grad")
@RegisterGradient("LeakyReluGrad")
def _ReluGradGrad(op: Operation, grad: Tensor) -> Any:
    """The same of dy, and zeros for y, of which it is piecewise constant."""
    y, slope = op.inputs[1], {k: v for k, v in op.attrs.items() if k == "alpha"}
    return [apply(op.type, grad, y, **slope), apply("ZerosLike", y, name="zeros_like")]


@RegisterGradient("EluGrad")
@RegisterGradient("SeluGrad")
def _EluGradGrad(op: Operation, grad: Tensor) -> Any:
    """The same of dy, and dy where y < 0, times the gradient that came in."""
    dy, y = op.inputs
    zeros = apply("ZerosLike", y, name="zeros_like")
    below = apply("Mul", grad, dy, name="mul")
    return [apply(op.type, grad, y), apply("SelectV2", apply("Less", y, zeros), below, zeros)]


@RegisterGradient("MaxPool")
def _MaxPoolGrad(op: Operation, grad: Tensor) -> Any:
    """dy at the greatest element of each window, the first of several."""
    return apply("MaxPoolGrad", op.inputs[0], op.outputs[0], grad, **op.attrs)


@RegisterGradient("MaxPoolGrad")
@RegisterGradient("MaxPool3DGrad")
def _MaxPoolGradGrad(op: Operation, grad: Tensor) -> Any:
    """dy at the places of the greatest elements, and zeros for what decides them."""
    found = zip(op.inputs, derived_gradient(op, grad), strict=True)
    return [apply("ZerosLike", t, name="zeros_like") if g is None else g for t, g in found]


@RegisterGradient("LeakyRelu")
def _LeakyReluGrad(op: Operation, grad: Tensor) -> Any:
    """dy where x > 0, alpha dy elsewhere."""
    return apply("LeakyReluGrad", grad, op.inputs[0], alpha=op.get_attr("alpha"))


@RegisterGradient("Softplus")
def _SoftplusGrad(op: Operation, grad: Tensor) -> Any:
    """dy sigmoid(x)."""
    return apply("SoftplusGrad", grad, op.inputs[0])


@RegisterGradient("Softmax")
def _SoftmaxGrad(op: Operation, grad: Tensor) -> Any:
    """(dy - sum(dy y)) y."""
    y = op.outputs[0]
    axis = constant(-1, "int32")
    inner = apply("Sum", apply("Mul", grad, y, name="mul"), axis, keep_dims=True)
    return apply("Mul", apply("Sub", grad, inner, name="sub"), y, name="mul")


@RegisterGradient("LogSoftmax")
def _LogSoftmaxGrad(op: Operation, grad: Tensor) -> Any:
    """dy - sum(dy) softmax."""
    p = apply("Exp", op.outputs[0])
    total = apply("Sum", grad, constant(-1, "int32"), keep_dims=True)
    return apply("Sub", grad, apply("Mul", total, p, name="mul"), name="sub")


@RegisterGradient("SoftmaxCrossEntropyWithLogits")
def _SoftmaxCrossEntropyWithLogitsGrad(op: Operation, grad: Tensor, grad_backprop: Tensor) -> Any:
    """dy (softmax - labels), and -dy log softmax."""
    logits = op.inputs[0]
    minus = apply("ExpandDims", grad, -1)
    through = apply("Mul", minus, op.outputs[1], name="mul")
    if not _is_zero(grad_backprop):
        p = apply("Softmax", logits)
        axis = constant(-1, "int32")
        inner = apply("Sum", apply("Mul", grad_backprop, p), axis, keep_dims=True)
        through = apply("AddV2", through, apply("Mul", apply("Sub", grad_backprop, inner), p))
    return [
        through,
        apply("Mul", minus, apply("Neg", apply("LogSoftmax", logits)), name="mul"),
    ]


@RegisterGradient("SparseSoftmaxCrossEntropyWithLogits")
def _SparseSoftmaxCrossEntropyWithLogitsGrad(op: Operation, grad: Tensor, back: Tensor) -> Any:
    """dy (softmax - one hot of labels)."""
    through = apply("Mul", apply("ExpandDims", grad, -1), op.outputs[1], name="mul")
    if not _is_zero(back):
        p = apply("Softmax", op.inputs[0])
        inner = apply("Sum", apply("Mul", back, p), constant(-1, "int32"), keep_dims=True)
        through = apply("AddV2", through, apply("Mul", apply("Sub", back, inner), p))
    return [through, None]


def _is_zero(t: Any) -> bool:
    return t is None or t.op.type in ("ZerosLike", "Zeros")


@RegisterGradient("FakeQuantWithMinMaxVars")
def _FakeQuantWithMinMaxVarsGradient(op: Operation, grad: Tensor) -> Any:
    """dy within the range; its sums below and above to min and max."""
    kinds = {n: op.get_attr(n) for n in ("num_bits", "narrow_range")}
    return apply("FakeQuantWithMinMaxVarsGradient", grad, *op.inputs, **kinds)


@RegisterGradient("FakeQuantWithMinMaxArgs")
def _FakeQuantWithMinMaxArgsGradient(op: Operation, grad: Tensor) -> Any:
    """dy within the range."""
    kinds = {n: op.get_attr(n) for n in ("num_bits", "narrow_range")}
    ends = [constant(op.get_attr(n), grad.dtype) for n in ("min", "max")]
    made = apply("FakeQuantWithMinMaxVarsGradient", grad, op.inputs[0], *ends, **kinds)
    return made[0]
