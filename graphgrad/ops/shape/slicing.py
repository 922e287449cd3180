"""Basic indexing: integers, slices and new axes. One node reads, another computes the gradient."""

from __future__ import annotations

import operator
from functools import cache

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.strided import Lengths, Strided
from ...ir.types import Dim, compatible, lengths
from ..base import (
    ZERO,
    Any,
    Derivative,
    Full,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Shape,
    Tensor,
    TensorType,
    Types,
    apply,
    np,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..onnx_places import placed_in_zeros, read_slices, scattered
from .updates import with_at

__all__ = [
    "FULL",
    "Key",
    "Slice",
    "Unslice",
    "UnsliceLike",
    "check_index",
    "normal_int",
    "normal_slice",
    "sliced",
    "trimmed",
    "unslice",
]

Key = tuple[Any, ...]
"""What is read of each axis: an int, a slice as (start, stop, step), or None for a new axis.

Axes beyond the key are read in full.
"""
FULL = (None, None, None)


class Slice(Op):
    """y = x[key] with integers, slices and new axes. Gradient: dx = dy put into zeros."""

    key: Key
    memory = Memory(view=True, alias=True)
    onnx = Onnx("Slice")
    linear = "joint"
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        return (tensor_type(sliced(x, self.key), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return x[_indices(self.key)]

    def to_onnx(self, to: Any, x: Any) -> Any:
        return read_slices(to, x, self.key)

    def strided(self, x: Strided, shape: Lengths) -> Strided:
        strides, offset, axis = [], x.offset, 0
        for item in self.key:
            if item is None:
                strides.append(0)
                continue
            length, step = x.shape[axis], x.strides[axis]
            axis += 1
            if isinstance(item, tuple):
                taken = range(length)[slice(*item)]
                offset += taken.start * step if taken else 0
                strides.append(taken.step * step)
            else:
                offset += item % length * step
        return Strided(shape, (*strides, *x.strides[axis:]), offset)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (unslice(dy, self.key, node.inputs[0]),)

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self.replace(key=(FULL, *self.key)), *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for key in [
            (0,),
            (FULL, -1),
            ((None, None, 2), None, (None, None, -1)),
            ((-2, None, None), (2, 0, -2), 1),
            ((1, 1, None),),
            (1, 2, 3),
        ]:
            yield cls(key), [rng.normal(size=(2, 3, 4))]
        yield cls((None,)), [rng.normal(size=()).astype("float32")]
        yield cls((FULL, (1, None, None))), [rng.normal(size=(0, 3))]


class Unslice(Op):
    """y = zeros of a known shape with y[key] = x; the adjoint of Slice. Gradient: dx = dy[key]."""

    key: Key
    shape: tuple[Any, ...]
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        return (_unsliced(x, tensor_type(self.shape, x.dtype), self.key),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return with_at(xp.zeros(self.shape, dtype=x.dtype), _indices(self.key), x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        def length(axis: int) -> Any:
            return to.lengths(self.shape[axis])

        made = placed_in_zeros(to, self.shape, length, self.key, x)
        if made is not None:
            return made
        return scattered(to, to.apply(Full(self.shape, 0, x.dtype)), self.key, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Slice(self.key), dy),)

    def batch(self, batch: Batch) -> Outputs:
        (x,), key = batch.inputs, (FULL, *self.key)
        if x.shape[0] is not None:
            return batch.build(Unslice(key, (x.shape[0], *self.shape)), x)
        like = batch.repeated(apply(Full(self.shape, 0, x.dtype)))
        return batch.build(UnsliceLike(key), x, like)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0,), (2, 3)), [rng.normal(size=(3,))]
        yield cls(((None, None, -2), None), (3, 2)), [rng.normal(size=(2, 1, 2))]
        yield cls((1, 0), (2, 3)), [rng.normal(size=()).astype("float32")]
        yield cls((None,), ()), [rng.normal(size=(1,))]


class UnsliceLike(Op):
    """y = zeros of the shape of the second input, known only at run time, with y[key] = x.

    Gradient: dx = dy[key]; zero for the second input.
    """

    key: Key
    linear = (0,)
    shape_only = (1,)
    derivative = Derivative(relevance="moved")
    flop_free = True

    def infer(self, x: TensorType, like: TensorType) -> Types:
        return (_unsliced(x, tensor_type(like.shape, x.dtype), self.key),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return with_at(xp.zeros(like.shape, dtype=x.dtype), _indices(self.key), x)

    def to_onnx(self, to: Any, x: Any, like: Any) -> Any:
        made = placed_in_zeros(to, like.shape, lambda axis: to.length(like, axis), self.key, x)
        if made is not None:
            return made
        zeros = to.ConstantOfShape(to.shape(like), value=np.zeros(1, x.dtype), shape=like.shape)
        return scattered(to, zeros, self.key, x)

    def static(self, inputs: Types) -> Op:
        return Unslice(self.key, lengths(inputs[1]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return apply(Slice(self.key), dy), ZERO

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self.replace(key=(FULL, *self.key)), *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0,)), [rng.normal(size=(3,)), rng.normal(size=(2, 3))]
        yield cls(((1, None, None),)), [rng.normal(size=(1, 2)), rng.normal(size=(2, 2))]


def unslice(dy: Tensor, key: Key, like: Tensor) -> Tensor:
    """Zeros of the shape of like, with dy at the key."""
    if like.type.static:
        return apply(Unslice(key, like.shape), dy)
    return apply(UnsliceLike(key), dy, like)


@cache
def _indices(key: Key) -> tuple[Any, ...]:
    """The key as NumPy takes it; the Ellipsis keeps a single element an array."""
    return (*(slice(*item) if type(item) is tuple else item for item in key), ...)


def sliced(x: TensorType, key: Key) -> Shape:
    """The shape of x[key]."""
    dims: list[Dim] = []
    axis = 0
    for item in key:
        if item is None:
            dims.append(1)
            continue
        if axis == len(x.shape):
            raise ShapeError(f"too many indices for {x!r}")
        if type(item) is tuple:
            dims.append(_length(x.shape[axis], item))
        else:
            check_index(x, axis, item)
        axis += 1
    return (*dims, *x.shape[axis:])


def check_index(x: TensorType, axis: int, index: int) -> None:
    """ShapeError where an index is known to be out of bounds."""
    length = x.shape[axis]
    if isinstance(length, int) and not -length <= index < length:
        raise ShapeError(f"index {index} is out of bounds for axis {axis} of {x!r}")


def _length(length: Dim, item: tuple[Any, ...]) -> Dim:
    if item in (FULL, (None, None, -1)) or length is None:
        return length if item in (FULL, (None, None, -1)) else None
    if isinstance(length, int) and not any(isinstance(i, Length) for i in item):
        return len(range(*slice(*item).indices(length)))
    made: Dim = _open_length(length, *item)
    return made


def _open_length(n: Any, start: Any, stop: Any, step: int | None) -> Any:
    """How many places a slice names of n, which is open, or between open bounds."""
    if step is None or step > 0:
        if _from_end(start) and stop is None and step in (None, 1):
            return Length.min(-start, n)
        first = 0 if start is None else Length.max(n + start, 0) if _from_end(start) else start
        end = n if stop is None else n + stop if _from_end(stop) else Length.min(stop, n)
        return Length.max(Length.ceil_div(end - first, step or 1), 0)
    first = n - 1 if start is None else n + start if _from_end(start) else Length.min(start, n - 1)
    end = -1 if stop is None else Length.max(n + stop, -1) if _from_end(stop) else stop
    return Length.max(Length.ceil_div(first - end, -step), 0)


def _from_end(bound: Any) -> bool:
    """Whether a bound counts from the end: a length never does."""
    return isinstance(bound, int) and bound < 0


def _unsliced(x: TensorType, whole: TensorType, key: Key) -> TensorType:
    if not compatible(sliced(whole, key), x.shape):
        raise ShapeError(f"{x!r} is not what is read of {whole!r} at {key}")
    return whole


def _bound(i: Any) -> Any:
    """A bound as None, an int, or a length, which counts from the front."""
    if i is None or type(i) is int:
        return i
    if not isinstance(i, Length):
        return operator.index(i)
    if at_least(0, i):
        raise ShapeError(
            f"the bound {i} of a slice: a length counts from the front, and this one is never "
            f"above 0. For the last {-i} places of an axis of length n write x[n - {-i} :]"
        )
    return Length.max(i, 0)


def normal_slice(item: slice, length: Dim) -> tuple[Any, ...]:
    """A slice as (start, stop, step), the same for all spellings where the length is known."""
    start, stop, step = map(_bound, _parts(item))
    if step == 0:
        raise ShapeError("the step of a slice cannot be 0")
    if isinstance(step, Length):
        raise ShapeError(f"the step of a slice is an int, got the length {step}")
    if isinstance(length, int) and not isinstance(start, Length) and not isinstance(stop, Length):
        start, stop, step = slice(start, stop, step).indices(length)
        if (start, step) == (0, 1) and stop == length:
            return FULL
        if not range(start, stop, step):
            return 0, 0, None
        return start, None if stop < 0 else stop, None if step == 1 else step
    if step in (None, 1):
        return None if start == 0 else start, stop, None
    return start, stop, step


def _parts(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


def normal_int(item: Any, length: Dim) -> int:
    """An index; not negative where the length is known and it fits."""
    index = operator.index(item)
    return index + length if isinstance(length, int) and -length <= index < 0 else index


def trimmed(key: list[Any]) -> Key:
    """The key without the full slices at its end."""
    while key and key[-1] == FULL:
        key.pop()
    return tuple(key)
