"""What a machine can do at most: bytes moved and products added, measured where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ...execute.run.threads import parallel
from ...ir.node import Node
from ...ir.types import DType

__all__ = ["Limits"]

LARGE = 1 << 22  # float64 in each of three arrays: 96 MiB, more than caches hold
EDGE = 1024  # of the matrices
TURNS = 5


class Limits(NamedTuple):
    """What the machine does at most, in a second.

    bytes  read and written by NumPy's sum of two arrays that no cache holds, as in STREAM's `add`
    flops  dtype -> of NumPy's product of two matrices, of 1024 x 1024 elements
    threads  on how many threads the sum ran; the product runs on those of NumPy's BLAS

    >>> gg.Limits(8e9, {np.dtype("float32"): 1e11}, 1)
    <1 thread: 8.0 GB/s; GFLOP/s: 100.0 float32>
    """

    bytes: float
    flops: dict[DType, float]
    threads: int

    def least(self, nodes: Sequence[Node], moved: float, flops: float) -> float:
        """The seconds that nodes take at least which move so many bytes and compute that much.

        Of dtypes without a measured product the bytes alone count.
        """
        rates = [self.flops.get(t.dtype) for n in nodes for t in n.outputs]
        known = [rate for rate in rates if rate is not None]
        return max(moved / self.bytes, flops / max(known) if known else 0.0)

    def __repr__(self) -> str:
        rates = ", ".join(f"{rate / 1e9:.1f} {dtype}" for dtype, rate in self.flops.items())
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"<{threads}: {self.bytes / 1e9:.1f} GB/s; GFLOP/s: {rates}>"


@cache
def measured(threads: int) -> Limits:
    """Those of this machine: the best of some turns. About a second, once in a process."""
    a, b, c = np.ones((3, LARGE))
    cuts = np.linspace(0, LARGE, threads + 1).astype(int)
    parts = [slice(i, j) for i, j in pairwise(cuts)]

    def add(i: int) -> None:
        np.add(a[parts[i]], b[parts[i]], out=c[parts[i]])

    moved = a.nbytes + b.nbytes + c.nbytes
    flops = {}
    for dtype in (np.dtype("float32"), np.dtype("float64")):
        x = np.ones((EDGE, EDGE), dtype)
        flops[dtype] = 2 * EDGE**3 / _seconds(partial(np.matmul, x, x, np.empty_like(x)))
    return Limits(moved / _seconds(lambda: parallel(add, threads, threads)), flops, threads)


def _seconds(call: Callable[[], object]) -> float:
    """The least time of some calls."""
    times = []
    for _ in range(TURNS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)
