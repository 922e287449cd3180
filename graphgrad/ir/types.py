"""Shapes, dtypes and the interned pair of both: what is known of a tensor before it has a value.

A length is an int, a `Length` (known when the program runs), or None (nothing is known of it).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import reduce
from math import prod
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.bounds import at_least
from ..base.bounds import never_equal as lengths_differ
from ..base.errors import DTypeError, ShapeError
from ..base.interned import Interned
from ..base.kinds import bfloat16, common_dtype, is_bfloat16, is_inexact, kind_of
from ..base.length import Length, LengthTooLongError, as_length
from ..base.words import visible

Dim: TypeAlias = int | Length | None
Shape = tuple[Dim, ...]
DType = np.dtype[Any]
Array = np.ndarray[Any, np.dtype[Any]]


class TensorType:
    """dtype and shape of a tensor. Interned: equal types are the same object.

    static: whether every length is a known int.
    """

    __slots__ = ("__weakref__", "complex", "differentiable", "dtype", "shape", "static")
    dtype: DType
    shape: Shape
    differentiable: bool
    complex: bool
    static: bool

    def __repr__(self) -> str:
        return f"{self.dtype.name}{_show(self.shape)}"

    def __reduce__(self) -> tuple[Any, ...]:
        dtype = self.dtype
        return tensor_type, (self.shape, dtype.name if is_bfloat16(dtype) else dtype.str)


_interned: Interned[TensorType] = Interned(4096)
_dtypes: dict[Any, DType] = {}
_KINDS = "biufc"
_SHORT = ("float8_", "float6_", "float4_")
LENGTHS = ".\nLengths are known while the graph is built: take them from shapes, as x.shape[0]"
SHAPE_FIRST = "; the shape comes before the dtype"
_NO_SHAPE = (bytes, set, frozenset, dict)


def as_dtype(dtype: Any) -> DType:
    """The canonical np.dtype; DTypeError for object, string, datetime and other non-numbers."""
    try:
        return _dtypes[dtype]
    except (KeyError, TypeError):
        pass
    try:
        canonical: DType = np.dtype(dtype)
    except TypeError:
        canonical = _short(str(dtype), dtype)
    if kind_of(canonical) not in _KINDS:
        _refuse_short(canonical.name)
        raise DTypeError(f"dtype {canonical} is not supported: tensors hold numbers and bools")
    canonical = np.dtype(canonical.type)  # native byte order, the one object NumPy keeps for it
    canonical = _dtypes.setdefault(canonical, canonical)
    if isinstance(dtype, str | type | np.dtype):
        _dtypes[dtype] = canonical
    return canonical


def _short(name: str, given: Any) -> DType:
    """bfloat16 by its name, which NumPy knows when ml_dtypes was loaded; DTypeError for others."""
    if name == "bfloat16":
        return bfloat16()
    _refuse_short(name)
    swapped = SHAPE_FIRST if isinstance(given, list | tuple) else ""
    raise DTypeError(f"{given!r} is not a dtype{swapped}") from None


def _refuse_short(name: str) -> None:
    """DTypeError for floats of less than 16 bits, which NumPy gets from ml_dtypes."""
    if name.startswith(_SHORT):
        raise DTypeError(
            f"{name} is not supported: use bfloat16, float16 or float32, which hold its numbers; "
            'cast an array with a.astype("float32")'
        )


def check_unmasked(value: Any, who: str = "") -> None:
    """DTypeError for a masked array, or a list of such: an array of its values has no mask."""
    ma = sys.modules.get("numpy.ma")  # there are none where nobody has imported it
    if ma is None:
        return
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(part, ma.MaskedArray) for part in parts):
        raise DTypeError(
            f"{who}a masked array would lose its mask: give x.filled(number), or choose with "
            "gg.where(mask, number, x.data)"
        )


def as_shape(shape: Any) -> Shape:
    """A tuple of int, Length and None from what a user wrote; a str is the name of a length."""
    single = isinstance(shape, int | np.integer | str | Length) or shape is None
    dims = (shape,) if single else shape
    if type(dims) is not tuple and (isinstance(dims, _NO_SHAPE) or not isinstance(dims, Iterable)):
        swapped = SHAPE_FIRST if isinstance(shape, np.dtype | type) else ""
        raise ShapeError(f"a shape is a sequence of lengths, or one length, got {shape!r}{swapped}")
    out: list[Dim] = []
    for d in dims:
        if type(d) is not int and isinstance(d, np.integer | int):
            d = int(d)  # no subclass: equal types are one object, for all who ask
        elif isinstance(d, str):
            d = as_length(d)
        if not (d is None or isinstance(d, int | Length)):
            raise ShapeError(f"a length is an int, None or a name, got {d!r} in {shape!r}{LENGTHS}")
        if d is not None and is_negative(d):
            raise ShapeError(f"a length is never negative, got {d} in {shape!r}")
        out.append(d)
    return tuple(out)


def is_negative(d: int | Length) -> bool:
    """Whether a length is below 0, whatever the named ones are."""
    return d < 0 if isinstance(d, int) else at_least(-1, d)


def tensor_type(shape: Shape, dtype: Any) -> TensorType:
    """The one TensorType of this shape and dtype."""
    dtype = as_dtype(dtype)
    key = (shape, dtype)
    cached = _interned.get(key)
    return _interned.add(key, lambda: _new(shape, dtype)) if cached is None else cached


def _new(shape: Shape, dtype: DType) -> TensorType:
    if any(isinstance(d, str) for d in shape):
        shape = as_shape(shape)
    if any(type(d) is int and d < 0 for d in shape):
        raise ShapeError(f"a length is never negative, got {_show(shape)}")
    new_type = TensorType()
    new_type.shape, new_type.dtype = shape, dtype
    new_type.differentiable = is_inexact(dtype)
    new_type.complex = kind_of(dtype) == "c"
    new_type.static = all(type(d) is int for d in shape)
    return new_type


def type_of_array(array: Array) -> TensorType:
    """The type of a NumPy array."""
    return tensor_type(array.shape, array.dtype)


def broadcast_dims(a: Dim, b: Dim) -> Dim:
    """The length two axes have together, or ShapeError where no value of them fits.

    Lengths of the same names, as 2*(N//2) and N are, count as equal, and a run that makes another
    length of them is an error (lower/equated.py). Of lengths of other names one may be 1, so that
    nothing is known.
    """
    if a == b and a is not None:
        return a
    if a == 1 and isinstance(a, int):
        return b
    if b == 1 and isinstance(b, int):
        return a
    if never_equal(a, b) and _never_one(a) and _never_one(b):
        raise ShapeError(f"lengths {a} and {b} do not broadcast")
    if isinstance(a, int):
        return a  # the other is a, or 1
    if isinstance(b, int):
        return b
    if a is not None and b is not None and a.names & b.names:
        taken = min(a, b, key=lambda d: len(str(d)))
        if at_least(1 - a, 0) or at_least(1 - b, 0):
            taken, few = (b, a) if at_least(1 - a, 0) else (a, b)
            if few == Length.min(taken, 1):  # as of x[:1]
                return taken
        equated = _equated.get()
        if equated is not None:
            equated.append(Equated(a, b, taken))
        return taken
    return None


class Equated(NamedTuple):
    """Two lengths that count as equal, and which of them both together have."""

    a: Length
    b: Length
    taken: Length


_equated: ContextVar[list[Equated] | None] = ContextVar("equated", default=None)


def lengths_equated(infer: Callable[..., Any], types: Sequence[TensorType]) -> list[Equated]:
    """The lengths that `infer`, for these types, counts as equal."""
    equated: list[Equated] = []
    before = _equated.set(equated)
    try:
        infer(*types)
    finally:
        _equated.reset(before)
    return equated


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The common shape by NumPy's rules; unknown lengths stay unknown where they must."""
    first = shapes[0]
    if all(s == first for s in shapes[1:]):
        return first
    rank = max(map(len, shapes))
    dims: list[Dim] = []
    for axis in range(-rank, 0):
        column = [s[axis] for s in shapes if len(s) >= -axis]
        dim = column[0]
        for other in column[1:]:
            try:
                dim = broadcast_dims(dim, other)
            except ShapeError as error:
                shown = " and ".join(_show(s) for s in shapes)
                raise ShapeError(f"shapes {shown} do not broadcast: {error}") from None
        dims.append(dim)
    return tuple(dims)


def merge_dims(a: Dim, b: Dim) -> Dim:
    """The length of an axis known in two ways; ShapeError if they contradict."""
    if a is None or b is None:
        return a if b is None else b
    if never_equal(a, b):
        raise ShapeError(f"lengths {a} and {b} differ")
    return a if isinstance(a, int) or not isinstance(b, int) else b


def compatible(a: Shape, b: Shape) -> bool:
    """Whether some value of the unknown lengths makes the shapes equal."""
    return a == b or (len(a) == len(b) and not any(map(never_equal, a, b)))


def alike(*types: TensorType) -> TensorType | None:
    """The one type that several are, as far as that is known; None where they never are one."""
    first = types[0]
    shape = first.shape
    for t in types[1:]:
        if t.dtype is not first.dtype or not compatible(shape, t.shape):
            return None
        shape = tuple(map(merge_dims, shape, t.shape))
    return tensor_type(shape, first.dtype)


def never_equal(a: Dim, b: Dim) -> bool:
    """Whether two lengths differ whatever the named ones are."""
    return a is not None and b is not None and lengths_differ(a, b)


def _never_one(d: Dim) -> bool:
    return d != 1 if isinstance(d, int) else d is not None and (d == 0 or at_least(d, 2))


def sized(shape: Shape, sizes: Mapping[str, Any]) -> Shape:
    """The shape where named lengths have these values."""
    return tuple([d.at(sizes) if isinstance(d, Length) else d for d in shape])


def size_of(shape: Iterable[Dim]) -> int | None:
    """Number of elements, or None where a length is unknown."""
    n = 1
    for d in shape:
        if not isinstance(d, int):
            return None
        n *= d
    return n


def computed(f: Callable[..., Any], *dims: Dim) -> Any:
    """f of lengths, which is arithmetic where they are open; None where nothing is known of one, or
    the expression would be longer than anybody reads."""
    if any(d is None for d in dims):
        return None
    try:
        return f(*dims)
    except LengthTooLongError:
        return None


def count_of(shape: Iterable[Dim]) -> Any:
    """The number of elements, as arithmetic where lengths are open; None where one is unknown."""
    return computed(lambda *dims: reduce(mul, dims, 1), *shape)


def lengths(t: TensorType) -> tuple[int, ...]:
    """The shape of a type whose lengths are all known."""
    assert t.static
    return t.shape  # type: ignore[return-value]


def elements(t: TensorType) -> int:
    """The number of elements of a type whose lengths are all known."""
    return prod(lengths(t))


def _show(shape: Shape) -> str:
    return visible("[" + ", ".join("?" if d is None else str(d) for d in shape) + "]")


# --- promotion: NumPy 2, Python numbers are weak ---------------------------------------------

_weak = (bool, int, float, complex)
_promoted: dict[Any, DType] = {}


def result_dtype(operands: Sequence[Any]) -> DType:
    """The dtype NumPy 2 gives these dtypes and Python numbers; numbers are weak."""
    key = tuple(type(o) if type(o) in _weak else o for o in operands)
    promoted = _promoted.get(key)
    if promoted is None:
        numbers = [_WEAK_SAMPLE[type(o)] for o in operands if type(o) in _weak]
        dtypes = [o for o in operands if type(o) not in _weak]
        if not dtypes:
            dtypes, numbers = [np.asarray(a).dtype for a in numbers], []
        try:
            promoted = _promoted[key] = as_dtype(common_dtype(dtypes, numbers))
        except TypeError:
            shown = ", ".join(str(o) for o in operands)
            raise DTypeError(f"no common dtype for {shown}") from None
    return promoted


_WEAK_SAMPLE: dict[type, Any] = {bool: True, int: 0, float: 0.0, complex: 0j}


def inexact(dtype: DType) -> DType:
    """dtype itself if it is floating or complex, else float64 (as np.sqrt of an int64)."""
    return dtype if is_inexact(dtype) else as_dtype(np.float64)


def small_float(operands: Sequence[Any]) -> DType:
    """The result_dtype of operands; of bools and integers the least float that holds them all.

    That is float16 for those of 8 bits, float32 of 16 and float64 of more: what np.sqrt makes.
    """
    dtype = result_dtype(operands)
    if is_inexact(dtype):
        return dtype
    held = [o for o in operands if type(o) not in _weak and kind_of(o) != "b"] or [dtype]
    return as_dtype(reduce(np.promote_types, held, np.dtype(np.float16)))
