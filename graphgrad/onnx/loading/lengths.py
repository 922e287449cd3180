"""Lengths that are known only at run time, among numbers that are known while loading.

What `Shape` makes of a tensor with open lengths is an array of objects: ints, a `gg.Length` for
each length that inputs tell, and a `RunLength` for each that depends on data. Operators that move
numbers, and arithmetic, work on such arrays; so what exporters write to reshape a batch is settled
while loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from ...base.errors import FileError
from ...base.length import Length, divided_exactly
from ...ir.build import apply
from ...ir.node import Tensor
from ...ir.types import Array, as_dtype, broadcast
from ...ops.base import LengthValue, cast, constant, kind_of
from ...ops.create.creation import ones, zeros_like
from ...ops.reduce import reductions
from ...ops.shape.joining import stack
from ...ops.shape.reshaping import Reshape, broadcast_like, broadcast_to, reshape

__all__ = [
    "GIVE_SHAPES",
    "Dimension",
    "RunLength",
    "as_numbers",
    "entries",
    "expanded",
    "has_lengths",
    "lengths_of",
    "of_lengths",
    "reshaped",
    "told_by",
]

GIVE_SHAPES = "Pass the lengths of the inputs with shapes={name: shape}"
"""What to do where a length has to be known while loading."""


class RunLength:
    """A number, or a length, times lengths of axes, each (tensor, axis), that depend on data."""

    def __init__(self, axes: tuple[tuple[Tensor, int], ...], factor: Any = 1) -> None:
        self.axes = axes
        self.factor = factor

    def __mul__(self, other: Any) -> RunLength:
        if isinstance(other, RunLength):
            return RunLength((*self.axes, *other.axes), self.factor * other.factor)
        times = other if isinstance(other, Length) else int(other)
        return RunLength(self.axes, self.factor * times)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, RunLength):
            left = list(self.axes)
            for axis in other.axes:
                same = [a for a in left if _is_same(a, axis)]
                if not same:
                    return NotImplemented
                left.remove(same[0])
            factor = divided_exactly(self.factor, other.factor)
            if factor is None:
                return NotImplemented
            return RunLength(tuple(left), factor) if left else factor
        by = int(other) if isinstance(other, int | np.integer) else other
        factor = divided_exactly(self.factor, by) if isinstance(by, int | Length) else None
        return NotImplemented if factor is None else RunLength(self.axes, factor)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same for certain. No length is below 0."""
        if not isinstance(other, RunLength) or self.factor != other.factor:
            return False
        mine, theirs = ([_key(a) for a in x.axes] for x in (self, other))
        return sorted(mine) == sorted(theirs)

    def __hash__(self) -> int:
        return hash((self.factor, len(self.axes)))

    @property
    def tensor(self) -> Tensor:
        """It as a 0-d int64 tensor."""
        sizes = [apply(reductions.SizeOf((i,), as_dtype("int64")), t) for t, i in self.axes]
        product: Tensor = reduce(lambda a, b: a * b, sizes) * self.factor
        return product

    def __repr__(self) -> str:
        shown = [f"length {i} of {t.name}" for t, i in self.axes]
        return " times ".join([*([str(self.factor)] if self.factor != 1 else []), *shown])


Dimension: TypeAlias = int | Length | RunLength


def _key(axis: tuple[Tensor, int]) -> tuple[Any, ...]:
    t, i = axis
    return t.node.index, t.index, i


def _is_same(a: tuple[Tensor, int], b: tuple[Tensor, int]) -> bool:
    return _key(a) == _key(b)


def lengths_of(x: Tensor) -> list[Dimension]:
    """The lengths of a tensor: ints where they are known, lengths where inputs tell them."""
    return [RunLength(((x, i),)) if d is None else d for i, d in enumerate(x.shape)]


def of_lengths(dims: Sequence[Dimension]) -> Array:
    """Lengths as a vector: int64 if all are known, else of objects."""
    if all(isinstance(d, int) for d in dims):
        return np.array(dims, np.int64)
    vector = np.empty(len(dims), object)
    for i, d in enumerate(dims):
        vector[i] = d  # one by one: an open length is no array
    return vector


def has_lengths(value: Any) -> bool:
    """Whether a value is an array with lengths that are known only at run time."""
    return isinstance(value, np.ndarray) and value.dtype == object


def entries(value: Array) -> list[Dimension]:
    """The elements of a vector as ints and lengths."""
    return [d if isinstance(d, RunLength | Length) else int(d) for d in value.reshape(-1).tolist()]


def as_numbers(value: Array) -> Tensor:
    """An array with lengths as an int64 tensor of the graph."""
    numbers = [cast(_tensor_of(d), as_dtype("int64")) for d in entries(value)]
    if value.ndim == 0:
        return numbers[0]
    return stack(numbers) if value.ndim == 1 else reshape(stack(numbers), value.shape)


def _tensor_of(d: Dimension) -> Tensor:
    if isinstance(d, RunLength):
        return d.tensor
    return (
        apply(LengthValue(d, as_dtype("int64"))) if isinstance(d, Length) else constant(d, "int64")
    )


def told_by(t: Tensor) -> Length | None:
    """The length that a tensor is, as one number of whatever dtype; None where it is another."""
    node = t.node
    while node.type in ("Cast", "Reshape", "Stack") and len(node.inputs) == 1:
        if kind_of(node.outputs[0].dtype) == "b":
            return None
        node = node.inputs[0].node
    return node.op.length if isinstance(node.op, LengthValue) else None


def reshaped(x: Tensor, dims: Sequence[Dimension]) -> Tensor:
    """x under a shape of ints, at most one of which is -1, and lengths known only at run time."""
    dims = _left_over(x, dims)
    if not any(isinstance(d, RunLength) for d in dims):
        return reshape(x, tuple(dims))
    shape: list[Any] = []
    for d in dims:
        at = _axis_of(x, d) if isinstance(d, RunLength | Length) else None
        shape.append(d if at is None else ("axis", at))
    unknown = [d for d in shape if isinstance(d, RunLength)]
    if len(unknown) + (-1 in shape) > 1:
        names = ", ".join(map(repr, unknown))
        raise FileError(
            f"{x.type!r} is reshaped to a shape with more than one length that is only known at "
            f"run time: {names}. Pass the lengths with shapes="
        )
    return apply(Reshape(tuple([-1 if isinstance(d, RunLength) else d for d in shape])), x)


def _left_over(x: Tensor, dims: Sequence[Dimension]) -> list[Dimension]:
    """The shape with the length that -1 stands for, where the rest cancels."""
    shape = list(dims)
    if -1 in shape and any(isinstance(d, RunLength) for d in shape):
        at = shape.index(-1)
        rest: Any = reduce(mul, [d for i, d in enumerate(shape) if i != at], 1)
        with suppress(TypeError):  # where nothing is left over for certain
            shape[at] = reduce(mul, lengths_of(x), 1) // rest
    return shape


def _axis_of(x: Tensor, d: RunLength | Length) -> int | None:
    """The axis of x that has this length for certain."""
    if isinstance(d, Length):
        return x.shape.index(d) if d in x.shape else None
    if len(d.axes) != 1 or d.factor != 1:
        return None
    axes = [i for i in range(x.ndim) if _is_same((x, i), d.axes[0])]
    return axes[0] if axes else None


def expanded(x: Tensor, dims: Sequence[Dimension]) -> Tensor:
    """x broadcast with a shape, of which lengths may be known only at run time."""
    known: Any = tuple([None if isinstance(d, RunLength) else d for d in dims])
    shape = broadcast([x.shape, known])
    if None not in (*known, *shape):
        return broadcast_to(x, shape)
    if len(known) <= x.ndim and all(d == 1 for d in known):
        return x
    return broadcast_like(x, x * 0 + _ones(dims, x) if _widens(x, dims) else _ones(dims, x))


def _widens(x: Tensor, dims: Sequence[Dimension]) -> bool:
    """Whether x has axes or lengths that the shape has not."""
    if len(dims) < x.ndim:
        return True
    pairs = zip(reversed(x.shape), reversed(list(dims)), strict=False)
    return any(d == 1 and n != 1 for n, d in pairs if isinstance(d, int))


def _ones(dims: Sequence[Dimension], x: Tensor) -> Tensor:
    """Ones of a shape."""
    tensor = ones(tuple(1 if isinstance(d, RunLength) else d for d in dims), x.dtype)
    for place, d in enumerate(dims):
        if isinstance(d, RunLength):
            row = _zeros_along(d, x.dtype)
            shape = [1] * len(dims)
            shape[place] = -1
            tensor = tensor + reshape(row, tuple(shape))
    return tensor


def _zeros_along(d: RunLength, dtype: Any) -> Tensor:
    """A vector of zeros of a length."""
    if d.factor != 1 or len(d.axes) != 1:
        raise FileError(f"a length is computed, {d!r}; pass the lengths with shapes=")
    t, i = d.axes[0]
    others = tuple(a for a in range(t.ndim) if a != i)
    zeros = zeros_like(t).astype(dtype)
    return reductions.sum(zeros, others).astype(dtype) if others else zeros
