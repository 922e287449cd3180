"""The array API's dtypes, dtype information, constants and devices."""

from __future__ import annotations

import builtins
import math
from typing import NamedTuple

from ..base import kinds
from ..base.errors import DeviceError
from ..base.flags import truth
from ..ir.types import as_shape
from .base import (
    Any,
    Cast,
    Constant,
    DType,
    DTypeError,
    Shape,
    Tensor,
    TensorLike,
    as_dtype,
    as_tensor,
    broadcast,
    cast,
    constant,
    is_inexact,
    kind_of,
    np,
    result_dtype,
)
from .documented import documented

__all__ = [
    "FloatInfo",
    "IntegerInfo",
    "astype",
    "bool",
    "broadcast_shapes",
    "can_cast",
    "complex64",
    "complex128",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "nan",
    "newaxis",
    "pi",
    "promote_types",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = as_dtype("bool")
int8, int16, int32, int64 = map(as_dtype, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(as_dtype, ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = map(as_dtype, ("float16", "float32", "float64"))
complex64, complex128 = map(as_dtype, ("complex64", "complex128"))

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None

DEVICE = "cpu"
"""Where arrays come from and go to, whatever a backend does in between."""

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""The standard's kinds of dtypes, as those that NumPy gives its dtypes."""

_STANDARD = (
    *(bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)


# --- devices -----------------------------------------------------------------------------------


def check_device(device: Any) -> None:
    """DeviceError unless it is "cpu", or None."""
    if not (device is None or (isinstance(device, str) and device == DEVICE)):
        raise DeviceError(
            f"there is no device {device!r}: arrays come from and go to the host, 'cpu', and "
            "tensors of a graph are on no device.\nWhat computes them is said when they are "
            "compiled: gg.compile(inputs, outputs, backend='jax')."
        )


def to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """x itself, which is on no device, or on the only one, "cpu"."""
    check_device(device)
    if stream is not None:
        raise DeviceError(f"there are no streams on the host, got stream={stream!r}")
    return x


def dlpack(
    x: Tensor,
    /,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: Any = None,
) -> Any:
    """x.__dlpack__: the value of a constant, a copy unless copy is False, when it is read-only.

    SymbolicError of what has no value yet.
    """
    if not isinstance(x.node.op, Constant):
        raise x._symbolic("__dlpack__()", "Use gg.evaluate(t, feeds), and export the array.")
    value = x.node.op.value if copy is False else x.node.op.value.copy()
    return value.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """The array of another library as a constant.

    Parameters:
        x: what has __dlpack__ and __dlpack_device__, on the host; or a tensor, which stays itself.
        device: "cpu", or None.
        copy: None or True: a constant is a copy always.

    Returns: a tensor of the shape and dtype of x.

    Raises: DTypeError for what cannot be exported, holds no numbers, or if copy is False;
    DeviceError for an unsupported device.

    Source: the array API standard, from_dlpack.

    >>> gg.from_dlpack(np.ones(3)).type
    float64[3]
    """
    check_device(device)
    if isinstance(x, Tensor):
        return x
    if copy is False:
        raise DTypeError("from_dlpack cannot do without a copy: a constant never changes")
    try:
        array = np.from_dlpack(x)
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        raise DTypeError(f"{type(x).__name__} cannot be read by DLPack: {error}") from None
    return constant(array)


# --- dtypes ------------------------------------------------------------------------------------


@documented(Cast)
def astype(
    x: TensorLike, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None
) -> Tensor:
    """x as another dtype, as gg.cast. Floats become integers by truncation.

    Parameters:
        x: any shape and dtype.
        dtype: what numpy.dtype takes, for bools and numbers.
        copy: taken for the standard's sake; it changes nothing, for tensors never change.
        device: "cpu", or None.

    Returns: same shape as x, of that dtype.

    Raises: DTypeError for an unsupported dtype, or if the imaginary part of x would be dropped;
    DeviceError for an unsupported device.

    Source: the array API standard, astype.

    >>> gg.evaluate(gg.astype([1.7, -1.7], gg.int32))
    array([ 1, -1], dtype=int32)
    """
    truth("copy", copy)
    check_device(device)
    return cast(as_tensor(x), dtype)


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether a dtype can be cast to another without loss of values.

    Parameters:
        from_: a dtype, or a tensor or array, of which the dtype is meant.
        to: a dtype.

    Returns: a bool.

    Raises: DTypeError for input that is not a dtype.

    Source: the array API standard, can_cast; numpy.can_cast.

    >>> gg.can_cast(gg.int32, gg.float64), gg.can_cast(gg.float64, gg.int32)
    (True, False)
    """
    return kinds.can_cast(_dtype_of(from_), as_dtype(to))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that these have together; Python numbers are weak.

    Parameters:
        *arrays_and_dtypes: tensors, arrays, dtypes and Python numbers.

    Returns: a np.dtype.

    Raises: DTypeError for none of them, or what is neither.

    Source: the array API standard, result_type; numpy.result_type.

    >>> gg.result_type(gg.int8, gg.uint8, 1)
    dtype('int16')
    """
    if not arrays_and_dtypes:
        raise DTypeError("result_type takes at least one tensor or dtype")
    weak = (int, float, complex)
    return result_dtype(
        [
            o if type(o) in weak or o is True or o is False else _dtype_of(o)
            for o in arrays_and_dtypes
        ]
    )


def _dtype_of(thing: Any) -> DType:
    """The dtype of a tensor or array, or the dtype itself."""
    return as_dtype(thing.dtype if isinstance(thing, Tensor | np.ndarray | np.generic) else thing)


def promote_types(type1: Any, type2: Any) -> DType:
    """The smallest dtype that holds the numbers of both.

    Parameters: type1, type2: dtypes, or what names them.

    Returns: a np.dtype.

    Raises: DTypeError for input that is not a dtype that tensors have.

    Source: numpy.promote_types.

    >>> gg.promote_types("int16", gg.float16)
    dtype('float32')
    """
    return result_dtype([as_dtype(type1), as_dtype(type2)])


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind.

    Parameters:
        dtype: a dtype.
        kind: a dtype; or "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating" or "numeric"; or a tuple of several, any of which may apply.

    Returns: a bool.

    Raises: DTypeError for input that is not a dtype, or no kind.

    Source: the array API standard, isdtype.

    >>> gg.isdtype(gg.float32, ("integral", "real floating"))
    True
    """
    candidate = as_dtype(dtype)
    return any(_is_of(candidate, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_of(dtype: DType, kind: Any) -> builtins.bool:
    if not isinstance(kind, str):
        return dtype is as_dtype(kind)
    if kind not in _KINDS:
        kinds = ", ".join(map(repr, _KINDS))
        raise DTypeError(f"{kind!r} is not a kind of dtypes; there are {kinds}")
    return kind_of(dtype) in _KINDS[kind]


class FloatInfo(NamedTuple):
    """What is known of a floating dtype, in Python numbers.

    bits              how many it takes, of one of the two parts of a complex number
    eps               the distance from 1 to the next larger number
    max, min          the largest and the least finite number
    smallest_normal   the least positive number of full precision
    dtype             that of the real part

    >>> gg.finfo("float32").bits
    32
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """What is known of an integer dtype: how many bits, and the largest and least number.

    >>> gg.iinfo("int8").max
    127
    """

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """What is known of a floating dtype; of a complex one, that of its parts.

    Parameters:
        type: a floating or complex dtype, or a tensor or array of it.

    Returns: bits, eps, max, min, smallest_normal and dtype.

    Raises: DTypeError for an unsupported dtype.

    Source: the array API standard, finfo.

    >>> gg.finfo(gg.float32).max
    3.4028234663852886e+38
    """
    dtype = _dtype_of(type)
    if not is_inexact(dtype):
        raise DTypeError(f"finfo takes a floating dtype, got {dtype}; gg.iinfo is for integers")
    limits = kinds.limits_of(dtype)
    return FloatInfo(
        int(limits.bits),
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        as_dtype(limits.dtype),
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """What is known of an integer dtype.

    Parameters:
        type: an integer dtype, or a tensor or array of it.

    Returns: bits, max, min and dtype.

    Raises: DTypeError for an unsupported dtype.

    Source: the array API standard, iinfo.

    >>> gg.iinfo(gg.uint16).max
    65535
    """
    dtype = _dtype_of(type)
    if kind_of(dtype) not in "iu":
        raise DTypeError(f"iinfo takes an integer dtype, got {dtype}; gg.finfo is for floats")
    limits = np.iinfo(dtype)
    return IntegerInfo(int(limits.bits), int(limits.max), int(limits.min), dtype)


def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that shapes have together, unknown lengths among them.

    Parameters:
        *shapes: ints, or tuples of lengths: ints, None or names.

    Returns: a tuple of lengths.

    Raises: ShapeError where they do not broadcast.

    Source: numpy.broadcast_shapes.

    >>> gg.broadcast_shapes((2, 1), ("N", 1, 3))
    (N, 2, 3)
    """
    given = [as_shape(shape) for shape in shapes]
    return broadcast(given) if given else ()


# --- the namespace of itself --------------------------------------------------------------------


class NamespaceInfo:
    """What the array API asks of a namespace; see `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """What it can do: masks and lengths that depend on values run on NumPy and LLVM."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The one there is."""
        return DEVICE

    def devices(self) -> list[str]:
        """All of them."""
        return [DEVICE]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of Python numbers, and of indices."""
        check_device(device)
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name, of a kind if one is given."""
        check_device(device)
        return {t.name: t for t in _STANDARD if kind is None or isdtype(t, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace can do, and which dtypes and devices it has.

    Returns: an object with capabilities(), default_device(), default_dtypes(), devices(), dtypes().

    Source: the array API standard, inspection.

    >>> gg.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int64')
    """
    return NamespaceInfo()
