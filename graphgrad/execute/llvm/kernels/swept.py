"""Which windows sweep over images channel by channel as LLVM code, and how they are shared out."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....ir.node import Node
from ....ir.types import DType, lengths
from ....ops.nn.conv2d import Conv2D
from ....ops.nn.moving_windows import Window
from ....ops.nn.pool2d import MaxPool
from ...run.threads import ranges, shared_out
from . import library
from .convolution import told_of
from .sweeps import FIELDS

Writer = Callable[..., Any]
SHARED = 1 << 20  # taps of outputs from which on several threads take part


def is_swept(node: Node) -> bool:
    """Whether a convolution has a filter for each channel, or a pool windows over borders."""
    op: Any = node.op
    if type(op) not in (Conv2D, MaxPool) or op.data_format != "NHWC" or node.controls:
        return False
    if any(not t.type.static or 0 in t.shape for t in (*node.inputs, *node.outputs)):
        return False
    if node.outputs[0].dtype.char not in "fd" or not library.fast():
        return False
    if isinstance(op, MaxPool):
        return not op.is_plain(node.inputs[0])
    channels = node.inputs[0].shape[3]
    return bool(op.groups > 1 and op.groups == channels == node.outputs[0].shape[3])


def sweep_writer(node: Node, threads: int) -> Writer | None:
    """What writes the result of the node, None where it is none of these."""
    if not is_swept(node):
        return None
    run = swept(node, threads)
    if isinstance(node.op, MaxPool):
        return lambda x, z: run(np.ascontiguousarray(x), x, z)
    return lambda x, w, z: run(np.ascontiguousarray(x), np.ascontiguousarray(w), z)


def swept(node: Node, threads: int) -> Writer:
    """run(x, filters, z, ...), of arrays in order. What stands for dots is as for conv."""
    op: Any = node.op
    x, z = node.inputs[0], lengths(node.outputs[0].type)
    if isinstance(op, MaxPool):
        window, name = op.over(x), "largest"
    else:
        size = lengths(node.inputs[1].type)[:2]
        window, name = op.moved(op.spatial(x.shape), size, op.dilation), "by_channel"
    return _runner(x.dtype, name, window, z, threads)


def _runner(dtype: DType, name: str, window: Window, z: tuple[int, ...], threads: int) -> Writer:
    whole = np.flatnonzero(window.seen(1).all(1))
    first, stop = (int(whole[0]), int(whole[-1]) + 1) if whole.size else (0, 0)
    told = told_of(window) | {
        "channels": z[3],
        "high": window.size[0],
        "wide": window.size[1],
        "first": first,
        "stop": stop,
    }
    fields = np.array([told[name] for name in FIELDS], np.int64)
    sweep, rows = library.sweep(dtype, name), z[0] * z[1]
    shared = threads > 1 and prod(z) * prod(window.size) >= SHARED
    parts = min(4 * threads, rows) if shared else 1
    each = ranges(rows, parts)

    def run(x: Any, w: Any, z: Any, *behind: Any) -> None:
        def part(start: int, stop: int) -> None:
            sweep(x, w, z, fields, start, stop, 0, 0, *behind)

        shared_out(part, each, threads)

    return run
