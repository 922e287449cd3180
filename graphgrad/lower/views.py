"""Where the elements of a view lie in the memory of the value that it looks at."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ..ir.types import TensorType
from ..ops.padding import Flip
from ..ops.shaping import BroadcastTo, ExpandDims, Reshape, Squeeze, Transpose
from ..ops.slicing import Slice

Lengths = tuple[int, ...]
VIEWS = frozenset([BroadcastTo, ExpandDims, Flip, Reshape, Slice, Squeeze, Transpose])


class View(NamedTuple):
    """Element i of the view is element offset + sum of i[k] * strides[k] of the memory."""

    shape: Lengths
    strides: Lengths
    offset: int

    @property
    def squeezed(self) -> View:
        """The same without axes of length 1."""
        kept = [i for i, d in enumerate(self.shape) if d != 1]
        return View(
            tuple([self.shape[i] for i in kept]),
            tuple([self.strides[i] for i in kept]),
            self.offset,
        )

    @property
    def whole(self) -> bool:
        """Whether it is all of the memory, in order."""
        shape, strides, offset = self.squeezed
        return offset == 0 and strides == row_major(shape)


def keeps_order(op: Any, before: Lengths, after: Lengths) -> bool:
    """Whether a view has the axes of what it looks at, but for lengths of 1 and repeated ones."""
    if type(op) is Reshape:
        return [d for d in before if d != 1] == [d for d in after if d != 1]
    return type(op) in (BroadcastTo, ExpandDims, Squeeze)


@lru_cache(maxsize=1024)
def row_major(shape: Lengths) -> Lengths:
    """The strides of a C-contiguous array, in elements."""
    strides = []
    step = 1
    for d in reversed(shape):
        strides.append(step)
        step *= d
    return tuple(reversed(strides))


def memory_of(shape: Lengths) -> View:
    """A C-contiguous array looked at as it is."""
    return View(shape, row_major(shape), 0)


def viewed(op: Any, made: TensorType, view: View) -> View | None:
    """An op's view, of type `made`, of a view; None where it makes none, or would copy."""
    kind = type(op)
    if kind not in VIEWS or not made.static:
        return None
    shape: Any = made.shape
    if kind is Transpose:
        return View(shape, tuple([view.strides[a] for a in op.axes]), view.offset)
    if kind is BroadcastTo:
        extra = len(shape) - len(view.shape)
        pairs = zip(view.shape, shape[extra:], view.strides, strict=True)
        kept = [s if d == n else 0 for d, n, s in pairs]
        return View(shape, (0,) * extra + tuple(kept), view.offset)
    if kind is Flip:
        return _flipped(op.axes, view)
    if kind is Slice:
        return _sliced(op.key, view)
    return _reshaped(shape, view)


def _reshaped(shape: Lengths, view: View) -> View | None:
    """The same elements in another shape: only lengths of 1 come and go, or all lies in order."""
    if view.squeezed.shape == tuple([d for d in shape if d != 1]):
        left = iter(view.squeezed.strides)
        return View(shape, tuple([0 if d == 1 else next(left) for d in shape]), view.offset)
    if view.whole and 0 not in view.shape:
        return memory_of(shape)
    return None


def _flipped(axes: Lengths, view: View) -> View:
    start = view.offset + sum((view.shape[a] - 1) * view.strides[a] for a in axes)
    strides = [-s if a in axes else s for a, s in enumerate(view.strides)]
    return View(view.shape, tuple(strides), start)


def _sliced(key: tuple[Any, ...], view: View) -> View:
    """Integers, (start, stop, step) and None for a new axis, from the first axis on."""
    shape, strides, offset = [], [], view.offset
    axis = 0
    for entry in key:
        if entry is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(entry, tuple):
            picked = range(length)[slice(*entry)]
            offset += picked.start * stride if len(picked) else 0
            shape.append(len(picked))
            strides.append(picked.step * stride)
        else:
            offset += entry % length * stride
    return View((*shape, *view.shape[axis:]), (*strides, *view.strides[axis:]), offset)
