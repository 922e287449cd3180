"""Matrix products that the calling thread does alone.

OpenBLAS, which NumPy brings along, shares a product out over threads of its own, which wait for
each other spinning; for many products of a fraction of a millisecond, or on a busy machine, that
costs more than it gains. It does products of at most ALONE multiplications on the thread that calls
[OpenBLAS, interface/gemm.c]; and with AVX-512 those are its fastest, since it need not pack them.
So a product is cut into slices of rows, and the threads of this library share the slices out. The
result does not depend on how many threads there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ALONE = 1 << 18  # multiplications
LEAST, MOST = 8, 32  # rows of a slice, multiples of 4


def slice_rows(inner: int, columns: int) -> int:
    """Rows of a slice of a product with a matrix (inner, columns), 0 if they would be too few."""
    fitting = ALONE // max(inner * columns, 1)
    return 0 if fitting < LEAST else min(fitting - fitting % 4, MOST)


def product(a: Any, b: Any, out: Any) -> None:
    """out = a @ b in slices of rows, or at once where they would be too small.

    a: (..., M, K)    b: (..., K, N)    out: (..., M, N), its last two axes in order.
    """
    *_, high, inner = a.shape
    rows = slice_rows(inner, b.shape[-1])
    even = high - high % rows if rows else 0
    if even <= rows:
        np.matmul(a, b, out)
        return
    _sliced(a[..., :even, :], b, out[..., :even, :], rows)
    if even < high:
        np.matmul(a[..., even:, :], b, out[..., even:, :])


def _sliced(a: Any, b: Any, out: Any, rows: int) -> None:
    """The slices as a stack of matrices: an axis that is cut in two needs no copy."""
    *stack, high, inner = a.shape
    cut = (high // rows, rows)
    to = out.reshape(*out.shape[:-2], *cut, out.shape[-1])
    np.matmul(a.reshape(*stack, *cut, inner), b[..., None, :, :], to)
