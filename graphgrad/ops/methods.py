"""Operators and methods of Tensor. The tensor is declared in ir, which knows no ops."""

from __future__ import annotations

from typing import Any

from ..ir.node import Tensor
from .arithmetic import add, divide, multiply, negative, subtract
from .base import cast
from .reductions import sum
from .shaping import reshape


def _operator(name: str, fn: Any) -> None:
    setattr(Tensor, f"__{name}__", fn)
    setattr(Tensor, f"__r{name}__", lambda self, other: fn(other, self))


_operator("add", add)
_operator("sub", subtract)
_operator("mul", multiply)
_operator("truediv", divide)
Tensor.__neg__ = negative  # type: ignore[method-assign, assignment]
Tensor.astype = cast  # type: ignore[method-assign, assignment]
Tensor.sum = sum  # type: ignore[method-assign, assignment]
Tensor.reshape = lambda self, *shape: reshape(  # type: ignore[method-assign]
    self, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
)
