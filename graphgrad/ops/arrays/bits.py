"""Packing bits into bytes and unpacking them."""

from __future__ import annotations

from typing import Any

from ...base.errors import ShapeError
from ...base.length import Length
from ..base import DTypeError, Tensor, TensorLike, as_tensor, cast, constant, kind_of, np, whole
from ..elementwise.logic import bitwise_and, bitwise_right_shift, not_equal
from ..reduce.reductions import sum
from ..shape.reshaping import expand_dims, flatten, moveaxis, normal_axis, reshape
from .borders import pad

__all__ = ["packbits", "unpackbits"]


def packbits(a: TensorLike, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Eight elements in a byte each: 1 for what is not 0, zeros behind the last.

    Parameters:
        a: any shape; bool or integer.
        axis: along which they are packed; None: a is flattened first.
        bitorder: "big": the first of eight is the highest bit; "little": the lowest.

    Returns: uint8, the shape of a with an eighth of the length along the axis, rounded up.

    Raises: DTypeError for input that is neither bool nor integer; ShapeError for a length that
        values decide, or no such axis; ValueError for an unknown bitorder.

    Gradient: none, the result is whole.

    Source: numpy.packbits.

    >>> gg.evaluate(gg.packbits([1, 0, 1, 1, 0, 0, 0, 0, 1]))
    array([176, 128], dtype=uint8)
    """
    shifts = _shifts(bitorder)
    a = as_tensor(a)
    if kind_of(a.dtype) not in "biu":
        raise DTypeError(f"packbits takes a bool or integer tensor, got {a.type!r}; use a != 0")
    bits, axis = _last(a, axis)
    count = _told("packbits", bits)
    bits = pad(cast(not_equal(bits, 0), "uint8"), [(0, 0)] * (bits.ndim - 1) + [(0, -count % 8)])
    lengths = _leading(bits)
    bits = reshape(bits, (*lengths, -(-count // 8), 8))
    return moveaxis(sum(bits * constant(1 << shifts, "uint8"), -1, dtype="uint8"), -1, axis)


def unpackbits(
    a: TensorLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Tensor:
    """The eight bits of each byte.

    Parameters:
        a: any shape; uint8.
        axis: along which they are laid out; None: a is flattened first.
        count: how many bits there are, zeros behind the last; negative: how many are left out at
            the end; None: all.
        bitorder: "big": the highest bit is the first of eight; "little": the lowest.

    Returns: uint8, zeros and ones: the shape of a, eight times as long along the axis, or count.

    Raises: DTypeError for input that is not uint8; ShapeError for a length that values decide, no
        such axis, or fewer bits than are left out; ValueError for an unknown bitorder.

    Gradient: none, the result is whole.

    Source: numpy.unpackbits.

    >>> gg.evaluate(gg.unpackbits(np.array([176, 128], "uint8"), count=9))
    array([1, 0, 1, 1, 0, 0, 0, 0, 1], dtype=uint8)
    """
    shifts = _shifts(bitorder)
    a = as_tensor(a)
    if a.dtype != np.uint8:
        raise DTypeError(f"unpackbits takes a uint8 tensor, got {a.type!r}")
    taken, axis = _last(a, axis)
    there = 8 * _told("unpackbits", taken)
    bits = bitwise_and(bitwise_right_shift(expand_dims(taken, -1), constant(shifts, "uint8")), 1)
    bits = reshape(bits, (*_leading(taken), there))
    wanted = there if count is None else whole("count", count)
    wanted = wanted + there if wanted < 0 else wanted
    if isinstance(wanted, int) and wanted < 0:
        raise ShapeError(f"{there} bits, less than count={count} leaves out")
    more = Length.max(wanted - there, 0)
    bits = pad(bits[..., :wanted], [(0, 0)] * (bits.ndim - 1) + [(0, more)])
    return moveaxis(bits, -1, axis)


def _shifts(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder is 'big' or 'little', got {bitorder!r}")
    return np.arange(8)[:: -1 if bitorder == "big" else 1].astype("uint8")


def _last(a: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """a with the axis behind all others, and where it was; flattened for None."""
    if axis is None:
        return flatten(a), 0
    axis = normal_axis(axis, a.ndim)
    return moveaxis(a, axis, -1), axis


def _told(what: str, a: Tensor) -> Any:
    if a.shape[-1] is None:
        raise ShapeError(f"{what} takes a length that does not depend on values, got {a.type!r}")
    return a.shape[-1]


def _leading(a: Tensor) -> tuple[Any, ...]:
    """The lengths of all axes but the last, for reshape: one may be unknown."""
    lengths = [-1 if d is None else d for d in a.shape[:-1]]
    if a.shape[:-1].count(None) > 1:
        raise ShapeError(f"bits take at most one unknown length, got {a.type!r}")
    return tuple(lengths)
