"""What the functions of neural networks ask of their operands."""

from __future__ import annotations

from ..base import (
    DTypeError,
    Tensor,
)

__all__ = ["check_real"]


def check_real(what: str, x: Tensor) -> None:
    """DTypeError for a complex tensor."""
    if x.type.complex:
        raise DTypeError(f"{what} takes a real tensor, got {x.type!r}")
