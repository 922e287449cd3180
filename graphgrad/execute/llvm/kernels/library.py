"""Functions that are the same for every program: compiled once for a process, when first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ....ir.types import DType
from ..emit.arrays import DECLARATIONS
from ..emit.call import built_in, possible
from ..emit.jit import Loaded, host, loaded
from ..emit.types import FLOATS, element_of
from . import philox
from .accumulations import Accumulations
from .binary_search import NAMES as searches
from .binary_search import Searching
from .convolution import BESIDE, Convolutions
from .convolution import NAMES as WINDOWS
from .gemm import Gemm, entry_name
from .scatter_add import NAMES, Adding
from .sweeps import Sweeps
from .winograd import NAMES as TILED
from .winograd import Winograd

Functions = dict[str, Callable[..., Any]]


def fast() -> bool:
    """Whether this machine's vectors make these better than NumPy's BLAS: 256 bits and FMA.

    Their functions take arrays themselves, so `possible` must hold as well.
    """
    target = host()
    return possible() and target.fma and target.width >= 32


def panel(dtype: DType) -> int:
    """Columns of a panel of a packed matrix."""
    return _gemm(dtype).panel


def tallest(dtype: DType) -> int:
    """The height of the highest tile."""
    return _gemm(dtype).heights[0]


def tiles(dtype: DType, rows: int) -> list[int]:
    """The heights of the tiles over so many rows."""
    made = []
    for height in _gemm(dtype).heights:
        made += [height] * (rows // height)
        rows %= height
    return made


def matmul(dtype: DType, transpose_a: bool, transpose_b: bool) -> Callable[..., Any]:
    """matmul(a, b, out); see Gemm."""
    return _functions(dtype)[entry_name(transpose_a, transpose_b)]


def windows(dtype: DType, name: str) -> Callable[..., Any]:
    """The function of Convolutions or Winograd of this name."""
    return (_windows if name in WINDOWS else _winograd)(dtype)[name]


@cache
def adding(dtype: DType, rows: bool) -> Callable[..., Any]:
    """The function of Adding for a dtype, with an index for each row or for each number."""
    element = element_of(dtype)
    assert element is not None
    text = "\n".join((*DECLARATIONS, *Adding(element, host()).functions()))
    return load(text, NAMES)[NAMES[0 if rows else 1]]


@cache
def accumulating(dtype: DType, op: str) -> Functions:
    """The functions of Accumulations for a dtype and one of its ops."""
    element = element_of(dtype)
    assert element is not None
    made = Accumulations(element, op, host())
    least = "declare i64 @llvm.smin.i64(i64, i64)"
    return load("\n".join((*DECLARATIONS, least, *made.functions())), made.names)


@cache
def searching(dtype: DType, right: bool) -> Callable[..., Any]:
    """The function of Searching for a dtype and a side."""
    element = element_of(dtype)
    assert element is not None
    search = Searching(element)
    text = "\n".join((*DECLARATIONS, *search.declarations(), *search.functions()))
    return load(text, searches)[searches[int(right)]]


@cache
def filling(name: str) -> Callable[..., Any]:
    """The function of `philox.KINDS` of that name."""
    least = ("declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)")
    text = "\n".join((*DECLARATIONS, *least, philox.filling(name)))
    return load(text, [name])[name]


@cache
def sweep(dtype: DType, name: str) -> Callable[..., Any]:
    """The function of Sweeps of this name: by_channel or largest."""
    gemm = _gemm(dtype)
    sweeps = Sweeps(gemm)
    text = "\n".join((*DECLARATIONS, *gemm.declarations(), *sweeps.functions()))
    return load(text, Sweeps.names)[name]


def _gemm(dtype: DType) -> Gemm:
    return Gemm(FLOATS[dtype.itemsize], 8 * host().width)


def gemm_address(dtype: DType, name: str = "gemm") -> int:
    """Where Gemm's function for strided matrices is, or `pack` for them, which stays there."""
    return _code(dtype).address(name)


def packed_bytes(dtype: DType, depth: int, cols: int) -> int:
    """Bytes of a matrix that is packed as the second of a product."""
    return _gemm(dtype).packed_bytes(depth, cols)


@cache
def _functions(dtype: DType) -> Functions:
    code = _code(dtype)
    return {name: built_in(code, name) for name in _ENTRIES}


_ENTRIES = tuple([entry_name(a, b) for a in (False, True) for b in (False, True)])


@cache
def _code(dtype: DType) -> Loaded:
    gemm = _gemm(dtype)
    parts = (*DECLARATIONS, *gemm.declarations(), *gemm.functions(), *gemm.entries())
    return loaded("\n".join(parts), [*_ENTRIES, *gemm.shared(), "gemm"])


@cache
def _windows(dtype: DType) -> Functions:
    """Convolutions, in a module of their own: most programs have none, and need not wait."""
    return _beside(dtype, Convolutions(_gemm(dtype)).functions(), WINDOWS)


@cache
def _winograd(dtype: DType) -> Functions:
    return _beside(dtype, Winograd(_gemm(dtype)).functions(), TILED)


def _beside(dtype: DType, functions: Sequence[str], names: Sequence[str]) -> Functions:
    """Functions that call those of Gemm."""
    gemm, code = _gemm(dtype), _code(dtype)
    shared = gemm.shared()
    known = {name: code.address(name) for name in shared}
    text = (*DECLARATIONS, *gemm.declarations(), *shared.values(), *BESIDE, *functions)
    made = loaded("\n".join(text), names, known)
    return {name: built_in(made, name) for name in names}


def load(text: str, names: Sequence[str]) -> Functions:
    """The built-in functions of these names in a module's text, compiled or from the cache."""
    code = loaded(text, names)
    return {name: built_in(code, name) for name in names}
