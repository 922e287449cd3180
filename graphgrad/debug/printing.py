"""Printing a value while a graph runs."""

from __future__ import annotations

import builtins
import sys
from typing import Any, TextIO

import numpy as np

from ..base.words import visible
from ..ir.node import Node, Tensor
from ..ops.base import TensorLike, as_tensor
from ..ops.python_function import py_function

__all__ = ["print"]


def print(
    t: TensorLike, label: str | None = None, *, summarize: int = 6, file: TextIO | None = None
) -> Tensor:
    """t, which is printed each time this node runs.

    Use the result in place of t: what nobody reads does not run.

    Parameters:
        t: any shape and dtype.
        label: what stands before the value; the tensor's name and line by default.
        summarize: how many entries are shown at either end of an axis.
        file: where to; sys.stdout by default.

    Returns: t, by another node.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy, which is not printed.

    >>> x = gg.debug.print([1.0, 2.0], "x")
    >>> gg.evaluate(gg.sum(x))
    x: float64[2] [1. 2.]
    array(3.)
    """
    t = as_tensor(t)
    start = visible(label if label is not None else f"{t.name} ({t.where})")

    def show(array: Any) -> Any:
        text = np.array2string(array, threshold=2 * summarize, edgeitems=summarize)
        builtins.print(f"{start}: {array.dtype}{list(array.shape)} {text}", file=file or sys.stdout)
        return array

    def through(node: Node, dy: Tensor) -> Tensor:
        return dy

    made: Tensor = py_function(show, [t], [t.type], vjp=through, name="print")
    return made
