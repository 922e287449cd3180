"""TensorFlow's gradients of reshapes, choices and what only passes values on."""

from __future__ import annotations

from typing import Any

from ..create import apply
from ..graph import Operation, Tensor
from ..registry import RegisterGradient

__all__: list[str] = []


@RegisterGradient("Identity")
@RegisterGradient("RefIdentity")
@RegisterGradient("PlaceholderWithDefault")
@RegisterGradient("EnsureShape")
def _IdGrad(_: Operation, grad: Tensor) -> Tensor:
    """dy."""
    return grad


@RegisterGradient("IdentityN")
def _IdNGrad(_: Operation, *grads: Tensor) -> tuple[Tensor, ...]:
    """dy of each."""
    return grads


@RegisterGradient("Reshape")
@RegisterGradient("ExpandDims")
def _ReshapeGrad(op: Operation, grad: Tensor) -> list[Any]:
    """dy, of the shape of x."""
    return [_like(grad, op.inputs[0]), None]


@RegisterGradient("Squeeze")
def _SqueezeGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy, of the shape of x."""
    return _like(grad, op.inputs[0])


def _like(grad: Tensor, x: Tensor) -> Tensor:
    shape: Any = x.shape
    if not shape.is_fully_defined():
        shape = apply("Shape", x, out_type="int32")
    return apply("Reshape", grad, shape)


def _selected(op: Operation, grad: Tensor, kind: str) -> list[Any]:
    zeros = apply("ZerosLike", grad, name="zeros_like")
    condition = op.inputs[0]
    return [
        None,
        apply(kind, condition, grad, zeros, name="Select"),
        apply(kind, condition, zeros, grad, name="Select_1"),
    ]


@RegisterGradient("Select")
def _SelectGrad(op: Operation, grad: Tensor) -> list[Any]:
    """dy where it was chosen, zero elsewhere."""
    return _selected(op, grad, "Select")


@RegisterGradient("CheckNumerics")
def _CheckNumericsGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy, checked."""
    message = "Not a number (NaN) or infinity (Inf) values detected in gradient."
    return apply("CheckNumerics", grad, message=message.encode())


@RegisterGradient("PreventGradient")
def _PreventGradientGrad(op: Operation, _: Tensor) -> Tensor:
    """An error."""
    message = op.attrs.get("message", b"").decode()
    raise LookupError(f"Gradient explicitly disabled. Reason: {message}")
