"""TensorFlow's gradients of linear algebra, where it chooses among equal ones."""

from __future__ import annotations

from typing import Any

from ..create import apply
from ..derived import derived_of
from ..graph import Operation, Tensor
from ..registry import RegisterGradient
from .array import matrix_transpose

__all__: list[str] = []

_half = derived_of("Cholesky")


@RegisterGradient("Cholesky")
def _CholeskyGrad(op: Operation, grad: Tensor) -> Any:
    """A symmetric matrix: the lower triangle that is read stands for both."""
    lower = _half(op, grad)
    total = apply("AddV2", lower, matrix_transpose(lower))
    return apply("Mul", total, 0.5)
