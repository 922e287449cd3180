"""What several families of forms need."""

from __future__ import annotations

from functools import reduce
from math import prod
from operator import mul
from typing import Any

from ....base.errors import FileError
from ....ir.build import apply
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops.base import constant
from ....ops.reduce import reductions
from ..lengths import lengths_of, reshaped

FAR = 1 << 31
"""A place beyond the end of every axis."""
FEW = 1 << 16
MANY = 1 << 24
"""How many numbers a form makes while loading, at most."""


def few(*lengths: int) -> int:
    """The product of lengths; FileError where it is more numbers than are made while loading."""
    count = prod(lengths)
    if count > MANY:
        raise FileError(
            f"it would compute {count} numbers; at most {MANY} are computed while loading"
        )
    return count


def as_size(x: Tensor, axis: int) -> Any:
    """The length of an axis: an int, or a tensor where it is known only at run time."""
    length = x.shape[axis]
    return (
        length
        if isinstance(length, int)
        else apply(reductions.SizeOf((axis,), as_dtype("int64")), x)
    )


def flat_from(x: Tensor, axis: int) -> Tensor:
    """A matrix: the axes before this one as one, and those from it on."""
    dims = lengths_of(x)
    rows: Any = reduce(mul, dims[:axis], 1)
    columns: Any = reduce(mul, dims[axis:], 1)
    if not 0 <= axis <= x.ndim:
        raise FileError(f"{x!r} is flattened at axis {axis}, which does not exist")
    return reshaped(x, [rows, columns])


def like(value: float, x: Tensor) -> Tensor:
    """A number as a constant of the dtype of x."""
    return constant(value, x.dtype)
