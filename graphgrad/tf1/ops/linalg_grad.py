"""TensorFlow's gradients of linear algebra, where it chooses among equal ones."""

from __future__ import annotations

from typing import Any

from ..create import apply
from ..derived import derived_gradient
from ..graph import Operation, Tensor
from ..registry import RegisterGradient
from .array import matrix_transpose

__all__: list[str] = []


@RegisterGradient("Cholesky")
@RegisterGradient("CholeskyGrad")
def _CholeskyGrad(op: Operation, *dys: Tensor) -> Any:
    """A symmetric matrix: the lower triangle that is read stands for both."""
    found = derived_gradient(op, *dys)
    lower, *rest = found if isinstance(found, list) else [found]
    return [apply("Mul", apply("AddV2", lower, matrix_transpose(lower)), 0.5), *rest]
