"""Laws: what `infer` promises is what is computed, however arrays lie, and nobody's change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..ir.op import Op
from ..ir.types import Array, sized, type_of_array
from ..lower.specialise import sizes_of
from .trying import Arrays, NotTried, close, compiled, of_type, placed, placed_unknown, require


def executed_type(op: Op, arrays: Arrays) -> None:
    """What is computed has the promised type, shares no memory with inputs, and these stay."""
    placement = placed(op, arrays)
    before = [a.copy() for a in arrays]
    for optimize in (True, False):
        outputs = compiled(placement, optimize=optimize)(*arrays)
        for value, t in zip(outputs, placement[1].outputs, strict=True):
            require(isinstance(value, np.ndarray), f"{t.name} is not an array: {value!r}")
            of_type(value, t, f"{t.name}, which promised {t.type!r},")
            shared = any(np.shares_memory(value, a) for a in arrays)
            require(not shared, f"{t.name} shares memory with an input")
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b, "an input was written into")


def layouts(op: Op, arrays: Arrays) -> None:
    """The same values with other strides: Fortran order, a reversed view, a read-only array."""
    if not arrays:
        raise NotTried("it has no inputs")
    f = compiled(placed(op, arrays))
    expected = f(*arrays)
    changes: tuple[Callable[[Array], Array], ...] = (_fortran, _reversed_twice, _read_only)
    for change in changes:
        for got, want in zip(f(*[change(a) for a in arrays]), expected, strict=True):
            close(got, want)


def _fortran(a: Array) -> Array:
    return np.array(a, order="F")


def _reversed_twice(a: Array) -> Array:
    every = (slice(None, None, -1),) * a.ndim
    return np.array(a[every], order="C")[every]


def _read_only(a: Array) -> Array:
    a = a.copy()
    a.flags.writeable = False
    return a


def unknown_lengths(op: Op, arrays: Arrays) -> None:
    """Inferred with unknown lengths, it promises the shapes that come out and computes the same."""
    placement = placed_unknown(op, arrays)
    expected = compiled(placed(op, arrays))(*arrays)
    outputs = compiled(placement)(*arrays)
    sizes = sizes_of(placement[0], [type_of_array(a) for a in arrays])
    for value, want, t in zip(outputs, expected, placement[1].outputs, strict=True):
        shape = sized(t.shape, sizes)
        promised = len(shape) == value.ndim and all(
            d is None or d == n for d, n in zip(shape, value.shape, strict=True)
        )
        require(promised, f"{t.name}, which promised {t.type!r}, has the shape {value.shape}")
        close(value, want)
