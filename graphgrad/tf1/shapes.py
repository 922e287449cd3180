"""Shapes that may be known in part: Dimension and TensorShape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["Dimension", "TensorShape"]


class Dimension:
    """A length, or None where it is not known. Equal to a number where it is known to be that.

    >>> Dimension(6) // 2, Dimension(None).value, Dimension(3) == 3
    (Dimension(3), None, True)
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        if isinstance(value, Dimension):
            value = value._value
        self._value: int | None = None if value is None else value.__index__()
        if self._value is not None and self._value < 0:
            raise ValueError(f"Dimension {value} must be >= 0")

    @property
    def value(self) -> int | None:
        """The number, or None."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both can be the same length."""
        a, b = self._value, as_dimension(other)._value
        return a is None or b is None or a == b

    def merge_with(self, other: Any) -> Dimension:
        """What is known of either. Raises ValueError where they differ."""
        other = as_dimension(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")
        return other if self._value is None else self

    def __int__(self) -> Any:
        return self._value

    def __index__(self) -> int:
        if self._value is None:
            raise TypeError("an unknown Dimension is no number; use tf.shape(x)[i] for its length")
        return self._value

    def __eq__(self, other: Any) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError, AttributeError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None
        return self._value == other._value

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented or equal is None else not equal

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def _with(self, other: Any, compute: Any) -> Any:
        try:
            a, b = self._value, as_dimension(other)._value
        except (TypeError, ValueError, AttributeError):
            return NotImplemented
        return Dimension(None) if a is None or b is None else Dimension(compute(a, b))

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b)

    __div__ = __floordiv__

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b // a)

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(f"a Dimension is an integer: write {self} // {other}")

    def __mod__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b % a)

    def _ordered(self, other: Any, compute: Any) -> Any:
        a, b = self._value, as_dimension(other)._value
        return None if a is None or b is None else compute(a, b)

    def __lt__(self, other: Any) -> Any:
        return self._ordered(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._ordered(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._ordered(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._ordered(other, lambda a, b: a >= b)


def as_dimension(value: Any) -> Dimension:
    """A Dimension of a number, None or a Dimension."""
    return value if isinstance(value, Dimension) else Dimension(value)


class TensorShape:
    """A shape whose lengths, or whose rank, may not be known.

    >>> TensorShape([None, 3]).as_list(), TensorShape(None).ndims
    ([None, 3], None)
    """

    __slots__ = ("lengths",)

    def __init__(self, dims: Any) -> None:
        self.lengths: tuple[int | None, ...] | None
        if dims is None:
            self.lengths = None
        elif isinstance(dims, TensorShape):
            self.lengths = dims.lengths
        elif type(dims) is tuple and all(type(d) is int for d in dims):
            self.lengths = dims
        else:
            try:
                found = list(dims)
            except TypeError:
                found = [dims]
            self.lengths = tuple([as_dimension(d)._value for d in found])

    @property
    def ndims(self) -> int | None:
        """The rank, or None."""
        return None if self.lengths is None else len(self.lengths)

    rank = ndims

    @property
    def dims(self) -> list[Dimension] | None:
        """The lengths as Dimensions, or None for an unknown rank."""
        return None if self.lengths is None else [Dimension(n) for n in self.lengths]

    def as_list(self) -> list[Any]:
        """The lengths as numbers and None. Raises ValueError for an unknown rank."""
        if self.lengths is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self.lengths)

    def is_fully_defined(self) -> bool:
        """Whether all lengths are known."""
        return self.lengths is not None and None not in self.lengths

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError where a length is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def num_elements(self) -> int | None:
        """The product of the lengths, or None."""
        if self.lengths is None or None in self.lengths:
            return None
        product = 1
        for n in self.lengths:
            product *= n or 0
        return product

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both can be the same shape."""
        a, b = self.lengths, as_shape(other).lengths
        if a is None or b is None:
            return True
        return len(a) == len(b) and all(
            m is None or n is None or m == n for m, n in zip(a, b, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError where they cannot be the same shape."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """What is known of either. Raises ValueError where they differ."""
        other = as_shape(other)
        if self.lengths is None or other.lengths is None:
            return other if self.lengths is None else self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        both = zip(self.lengths, other.lengths, strict=True)
        return TensorShape([n if m is None else m for m, n in both])

    def concatenate(self, other: Any) -> TensorShape:
        """The lengths of one behind those of the other."""
        other = as_shape(other)
        if self.lengths is None or other.lengths is None:
            return TensorShape(None)
        return TensorShape([*self.lengths, *other.lengths])

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, of that rank. Raises ValueError where it has another."""
        try:
            return self.merge_with(TensorShape([None] * int(rank)))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError where the rank is another."""
        self.with_rank(rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape. Raises ValueError where its rank is less."""
        if self.lengths is not None and len(self.lengths) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """The shape. Raises ValueError where its rank is more."""
        if self.lengths is not None and len(self.lengths) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def __getitem__(self, key: Any) -> Any:
        if self.lengths is None:
            if isinstance(key, slice):
                return TensorShape(None)
            return Dimension(None)
        if isinstance(key, slice):
            return TensorShape(list(self.lengths[key]))
        return Dimension(self.lengths[key])

    def __iter__(self) -> Iterator[Dimension]:
        if self.lengths is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(n) for n in self.lengths])

    def __len__(self) -> int:
        if self.lengths is None:
            raise ValueError("Cannot take the length of Shape with unknown rank.")
        return len(self.lengths)

    def __bool__(self) -> bool:
        return self.lengths is not None

    def __eq__(self, other: object) -> bool:
        try:
            return self.lengths == as_shape(other).lengths
        except (TypeError, ValueError, AttributeError):
            return False

    def __hash__(self) -> int:
        return hash(self.lengths)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __repr__(self) -> str:
        return f"TensorShape({self.lengths and [Dimension(n) for n in self.lengths]})"

    def __str__(self) -> str:
        if self.lengths is None:
            return "<unknown>"
        inside = ", ".join("?" if n is None else str(n) for n in self.lengths)
        return f"({inside},)" if len(self.lengths) == 1 else f"({inside})"


def as_shape(value: Any) -> TensorShape:
    """A TensorShape of whatever says a shape."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of that rank of which nothing else is known."""
    return TensorShape(None if rank is None else [None] * rank)


def broadcast(a: TensorShape, b: TensorShape) -> TensorShape:
    """The shape of an element-wise function of both. Raises ValueError where there is none."""
    if a.lengths is None or b.lengths is None:
        return TensorShape(None)
    if a.lengths == b.lengths:
        return a
    long, short = (a.lengths, b.lengths) if len(a) >= len(b) else (b.lengths, a.lengths)
    found = list(long[: len(long) - len(short)])
    for m, n in zip(long[len(long) - len(short) :], short, strict=True):
        if m == 1 or n == 1:
            found.append(n if m == 1 else m)
        elif m is not None and n is not None and m != n:
            raise ValueError(f"Dimensions must be equal, but are {m} and {n}: {a} and {b}")
        else:
            found.append(n if m is None else m)
    return TensorShape(found)


def axis_in(axis: Any, rank: int) -> int:
    """The place of an axis, which may be counted from the last. Raises ValueError beyond."""
    if not -rank <= int(axis) < rank:
        raise ValueError(f"Expected axis in the range [{-rank}, {rank}), but got {int(axis)}")
    return int(axis) % rank
