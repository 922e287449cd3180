"""What the functions of neural networks ask of their operands."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import ShapeError
from ..base import (
    Any,
    DTypeError,
    Tensor,
    TensorLike,
    as_tensor,
    inexact,
    kind_of,
    operand_dtypes,
    result_dtype,
)


def check_real(what: str, x: Tensor) -> None:
    """DTypeError for a complex tensor."""
    if x.type.complex:
        raise DTypeError(f"{what} takes a real tensor, got {x.type!r}")


def real_operands(what: str, *operands: TensorLike) -> tuple[Tensor, ...]:
    """Floating operands of one dtype, DTypeError if complex.

    Ints and bools, as of targets, become what the others are; float64 where all are such.
    """
    dtypes = operand_dtypes(*operands)
    dtype = inexact(result_dtype([d for d in dtypes if _floating(d)] or dtypes))
    tensors = tuple([as_tensor(o, dtype) for o in operands])
    check_real(what, tensors[0])
    return tensors


def _floating(dtype: Any) -> bool:
    """Whether it is the dtype of tensors or arrays that are not integers."""
    return not isinstance(dtype, int | float | complex) and kind_of(dtype) not in "biu"


def known_length(what: str, x: Tensor, axis: int) -> int:
    """The length of an axis; ShapeError where it is unknown."""
    length = x.shape[axis]
    if not isinstance(length, int):
        raise ShapeError(
            f"{what} takes a known length along axis {axis}, got {x.name}: {x.type!r}, built at "
            f"{x.where}; give that length in the placeholder's shape"
        )
    return length


def told_length(what: str, x: Tensor, axis: int) -> Any:
    """The length of an axis, an int or a Length; ShapeError where it depends on values."""
    length = x.shape[axis]
    if length is None:
        raise ShapeError(
            f"{what} takes a length along axis {axis} that does not depend on values, got "
            f"{x.name}: {x.type!r}, built at {x.where}"
        )
    return length


def one_of(what: str, given: Any, known: Sequence[Any]) -> None:
    """ValueError for a choice that is none of the known ones."""
    if given not in known:
        listed = ", ".join(map(repr, known[:-1]))
        raise ValueError(f"{what} is {listed} or {known[-1]!r}, got {given!r}")
