"""Laws: every backend computes the same, and the one that checks each step agrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..execute.numpy.backend import NumpyBackend
from ..ir.op import Op
from .trying import Arrays, close, compiled, of_type, placed


def checked(op: Op, arrays: Arrays) -> None:
    """Promise, declared views, and no writing to inputs, checked after every step."""
    placement = placed(op, arrays)
    outputs = compiled(placement, backend=NumpyBackend(check=True))(*arrays)
    for got, want in zip(outputs, compiled(placement, backend="numpy")(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def agrees(op: Op, arrays: Arrays, backend: str) -> None:
    """A backend gives the types and values of NumPy."""
    for got, want in on_both(op, arrays, backend):
        of_type(got, want, f"what {backend} gives")
        close(np.asarray(got), want)


def on_both(op: Op, arrays: Arrays, backend: str) -> list[tuple[Any, Any]]:
    """The outputs on a backend, each with NumPy's."""
    placement = placed(op, arrays)
    expected = compiled(placement, backend="numpy")(*arrays)
    return list(zip(compiled(placement, backend=backend)(*arrays), expected, strict=True))
