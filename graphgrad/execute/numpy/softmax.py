"""Softmax and its logarithm on NumPy: some rows at a time, which stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.node import Node
from ...ir.op import Op
from ...ops.nn.softmaxes import LogSoftmax, Softmax
from ..kernels import Kernel, MakeWriter
from ..run.threads import parallel

ROWS = 1 << 17  # bytes that are worked on at a time
WORTH_SHARING = 1 << 17  # elements; below this one thread does it sooner

Rows = Callable[[Any, int, Any], None]


def _softmax(x: Any, axis: int, out: Any) -> None:
    _shifted(x, axis, out)
    np.exp(out, out)
    np.divide(out, np.add.reduce(out, axis, keepdims=True), out)


def _log_softmax(x: Any, axis: int, out: Any) -> None:
    _shifted(x, axis, out)
    total = np.add.reduce(np.exp(out), axis, keepdims=True)
    np.subtract(out, np.log(total) if out.shape[axis] else total, out)


def _shifted(x: Any, axis: int, out: Any) -> None:
    """out = x less its largest along the axis."""
    np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf), out)


def _by_rows(rows: Rows) -> MakeWriter:
    """A writer that calls `rows` for parts along the first axis, where that is not summed over."""

    def make(node: Node, threads: int) -> Kernel:
        axis, shape = node.op.attrs["axis"], node.inputs[0].shape
        size = math.prod(shape)  # type: ignore[arg-type]
        if axis == 0 or not size:
            return lambda x, out: rows(x, axis, out)
        length: Any = shape[0]
        each = max(ROWS // (size // length * node.inputs[0].dtype.itemsize), 1)
        count = -(-length // each)
        used = threads if size >= WORTH_SHARING else 1

        def run(x: Any, out: Any) -> None:
            def task(i: int) -> None:
                part = slice(i * each, (i + 1) * each)
                rows(x[part], axis, out[part])

            parallel(task, count, used)

        return run if count > 1 else lambda x, out: rows(x, axis, out)

    return make


WRITERS: dict[type[Op], MakeWriter] = {
    Softmax: _by_rows(_softmax),
    LogSoftmax: _by_rows(_log_softmax),
}
