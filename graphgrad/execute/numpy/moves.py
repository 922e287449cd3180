"""Elements joined, placed, repeated and picked on NumPy, written where they are wanted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...ir.node import Node
from ...ir.op import Op
from ...ops.reduce.reductions import Flat
from ...ops.shape.indexing import Gather
from ...ops.shape.joining import Concat, Stack
from ...ops.shape.padding import Pad, Repeat, Roll, Tile, Unrepeat, Untile
from ...ops.shape.reshaping import Reshape, ReshapeLike
from ...ops.shape.slicing import Slice, Unslice, UnsliceLike
from ..kernels import Kernel, MakeWriter

Key = tuple[Any, ...]


def _concat(node: Node, threads: int) -> Kernel:
    axis = node.op.attrs["axis"]

    def run(*arrays: Any) -> None:
        np.concatenate(arrays[:-1], axis, arrays[-1])

    return run


def _stack(node: Node, threads: int) -> Kernel:
    before = (slice(None),) * node.op.attrs["axis"]
    keys = [(*before, i) for i in range(len(node.inputs))]

    def run(*arrays: Any) -> None:
        out = arrays[-1]
        for key, x in zip(keys, arrays, strict=False):
            out[key] = x

    return run


def _pad(node: Node, threads: int) -> Kernel:
    """The borders, axis by axis, and then the inside."""
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, Pad)
    value = op.value
    pairs = [*zip(shape, op.widths, strict=True)]
    inside: list[slice] = []
    borders: list[Key] = []
    for d, (low, high) in pairs:
        assert isinstance(d, int)
        borders += [(*inside, slice(low))] if low else []
        borders += [(*inside, slice(low + d, None))] if high else []
        inside.append(slice(low, low + d))
    key = (*inside, ...)

    def run(x: Any, out: Any) -> None:
        for border in borders:
            out[border] = value
        out[key] = x

    return run


def _unslice(node: Node, threads: int) -> Kernel:
    look = Slice(node.op.attrs["key"])

    def run(x: Any, *others: Any) -> None:
        out = others[-1]
        out[...] = 0
        look.kernel(np, out)[...] = x

    return run


def _tile(node: Node, threads: int) -> Kernel:
    shape, repeats = node.inputs[0].shape, node.op.attrs["repeats"]
    apart = tuple([n for d, r in zip(shape, repeats, strict=True) for n in (r, d)])
    once = tuple([n for d in shape for n in (1, d)])

    def run(x: Any, out: Any) -> None:
        out.reshape(apart)[...] = x.reshape(once)

    return run


def _untile(node: Node, threads: int) -> Kernel:
    shape, repeats = node.inputs[0].shape, node.op.attrs["repeats"]
    pairs: Any = zip(shape, repeats, strict=True)
    apart = tuple([n for d, r in pairs for n in (r, d // r)])
    axes = tuple(range(0, len(apart), 2))
    return lambda x, out: np.add.reduce(x.reshape(apart), axes, x.dtype, out)


def _repeat(node: Node, threads: int) -> Kernel:
    shape, (count, axis) = node.inputs[0].shape, node.op.attrs.values()
    apart = (*shape[: axis + 1], count, *shape[axis + 1 :])
    key = (*(slice(None),) * (axis + 1), None)

    def run(x: Any, out: Any) -> None:
        out.reshape(apart)[...] = x[key]

    return run


def _unrepeat(node: Node, threads: int) -> Kernel:
    shape, (count, axis) = node.inputs[0].shape, node.op.attrs.values()
    apart = (*shape[:axis], shape[axis] // count, count, *shape[axis + 1 :])
    return lambda x, out: np.add.reduce(x.reshape(apart), axis + 1, x.dtype, out)


def _roll(node: Node, threads: int) -> Kernel:
    """Piece by piece: along every axis what stays in order, and what comes in at the other end."""
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, Roll)
    shifts = [0] * len(shape)
    for shift, axis in zip(op.shifts, op.axes, strict=True):
        shifts[axis] += shift
    pieces = itertools.product(*map(_turns, shape, shifts))
    keys = [(tuple([to for to, _ in p]), tuple([of for _, of in p])) for p in pieces]

    def run(x: Any, out: Any) -> None:
        for to, of in keys:
            out[to] = x[of]

    return run


def _turns(length: Any, shift: int) -> list[tuple[slice, slice]]:
    """Where the parts of an axis go to, and come from."""
    shift %= max(length, 1)
    if not shift:
        return [(slice(None), slice(None))]
    end = length - shift
    return [(slice(shift, None), slice(end)), (slice(shift), slice(end, None))]


def _gather(node: Node, threads: int) -> Kernel:
    """np.take checks every index into a copy first, unless it need not raise."""
    axis = node.op.attrs["axis"]
    length: Any = node.inputs[0].shape[axis]
    every = np.broadcast_to(np.empty((), bool), (*(1,) * axis, length))

    def run(x: Any, indices: Any, out: Any) -> None:
        if indices.size and not (-length <= indices.min() and indices.max() < length):
            every[(*(slice(None),) * axis, indices)]  # raises; of an empty x np.take does not
        np.take(x, indices, axis, out, "wrap")

    return run


def _reshape(node: Node, threads: int) -> Kernel:
    """For what is not a view: the elements of a transposed array, say, in their new order."""

    def run(x: Any, *others: Any) -> None:
        others[-1].reshape(x.shape)[...] = x

    return run


WRITERS: dict[type[Op], MakeWriter] = {
    Concat: _concat,
    Flat: _reshape,
    Gather: _gather,
    Pad: _pad,
    Repeat: _repeat,
    Reshape: _reshape,
    ReshapeLike: _reshape,
    Roll: _roll,
    Stack: _stack,
    Tile: _tile,
    Unrepeat: _unrepeat,
    Unslice: _unslice,
    UnsliceLike: _unslice,
    Untile: _untile,
}
