"""Matrix products, and what is made of them."""

from __future__ import annotations

from ....ir.node import Tensor
from ....ops.base import cast
from ....ops.contract.einsum import einsum
from ....ops.contract.products import matmul
from ....ops.linalg.determinants import det
from ....ops.shape.reshaping import transpose
from ..call import OperatorCall
from .table import form


@form("MatMul")
def _matmul(call: OperatorCall) -> Tensor:
    return matmul(*call.tensors)


@form("Gemm")
def gemm(call: OperatorCall) -> Tensor:
    """alpha x y + beta c, each factor transposed where it is said."""
    x, y = call.tensor(0), call.tensor(1)
    x = transpose(x) if call.attribute("transA", 0) else x
    y = transpose(y) if call.attribute("transB", 0) else y
    z = _times(matmul(x, y), call.attribute("alpha", 1.0))
    c, beta = call.optional(2), call.attribute("beta", 1.0)
    return z if c is None else z + _times(c, beta)


def _times(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else cast(x * factor, x.dtype)


@form("Einsum")
def _einsum(call: OperatorCall) -> Tensor:
    return einsum(call.needed("equation").replace(" ", ""), *call.tensors)


@form("Det")
def _det(call: OperatorCall) -> Tensor:
    return det(call.tensor(0))
