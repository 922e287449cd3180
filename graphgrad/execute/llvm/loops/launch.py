"""Kernels as functions of arrays, on as many threads as they are given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...run.threads import parallel
from ..emit.call import built_in, possible
from .groups import Kernel
from .ranges import check

Run = Callable[..., Any]


def runner(kernel: Kernel, threads: int) -> Run:
    """k(*inputs, *outputs): inputs of the group's types, outputs in row-major order.

    IndexError, before anything is written, for indices that are out of range.
    """
    if not possible():
        return plain_runner(kernel, threads)
    shared, loaded = kernel
    count = shared.inputs
    if not shared.blocks:

        def copied(*arrays: Any) -> Any:
            check(shared.ranges, arrays)
            whole = built_in(loaded, shared.name)  # another: no cycle of references
            return whole(*in_order(arrays[:count]), *arrays[count:])

        return built_in(loaded, shared.name, copied)
    part, finish = (built_in(loaded, name) for name in shared.built_in)
    blocks, size = shared.blocks, max(shared.scratch, 1)

    def run(*arrays: Any) -> None:
        check(shared.ranges, arrays)
        given = (*in_order(arrays[:count]), *arrays[count:], np.empty(size, np.uint8))
        parallel(partial(part, *given), blocks, threads)
        finish(*given)

    return run


def plain_runner(kernel: Kernel, threads: int) -> Run:
    """The same by way of ctypes: slower to call, but it does not look into Python's objects."""
    shared, loaded = kernel
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    rows_at, end_at = (loaded.address(name) for name in shared.plain[:2])
    rows = ctypes.CFUNCTYPE(None, pointer, number, number, pointer, pointer)(rows_at)
    end = ctypes.CFUNCTYPE(None, pointer, pointer)(end_at)
    blocks = max(shared.blocks, 1)

    def run(*arrays: Any) -> None:
        check(shared.ranges, arrays)
        given = (*in_order(arrays[: shared.inputs]), *arrays[shared.inputs :])
        frame = (pointer * len(given))(*[a.ctypes.data for a in given])
        scratch = np.empty(max(shared.scratch, 1), np.uint8)

        def block(i: int) -> None:
            workspace = np.empty(max(shared.workspace, 1), np.uint8)
            begin = i * shared.step
            stop = min(begin + shared.step, shared.rows)
            partial_at = scratch.ctypes.data + i * (shared.scratch // blocks)
            rows(ctypes.addressof(frame), begin, stop, partial_at, workspace.ctypes.data)

        parallel(block, blocks, threads)
        end(ctypes.addressof(frame), scratch.ctypes.data)

    run.loaded = loaded  # type: ignore[attr-defined]  # the code lives as long as this
    return run


def in_order(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arrays, copied where they do not lie in row-major order."""
    return tuple([a if type(a) is np.ndarray and _plain(a) else _copy(a) for a in arrays])


def _plain(a: Any) -> bool:
    return bool(a.flags.c_contiguous and a.flags.aligned)


def _copy(a: Any) -> Any:
    return np.array(a, order="C", copy=True, subok=False)
