"""Flip, roll, pad, tile and repeat."""

from __future__ import annotations

from operator import add, floordiv, mul, sub

from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.strided import Lengths, Strided
from ...ir.types import Dim, computed, is_negative
from ..base import (
    Any,
    Derivative,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    apply,
    as_tensor,
    count,
    kind_of,
    np,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..onnx_places import BACKWARD, read_slices
from .folding import merged
from .indexing import take
from .reshaping import (
    broadcast_to,
    distinct_axes,
    expand_dims,
    flatten,
    listed,
    normal_axis,
    reshape_like,
    summed,
)
from .slicing import FULL, Slice
from .updates import with_at

__all__ = ["flip", "roll", "tile"]


class Flip(Op):
    """x with the elements along the axes in reverse order. Gradient: dx = flip(dy, axis)."""

    axes: tuple[int, ...]
    traits = Traits(involution=True)
    memory = Memory(view=True, alias=True)
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        if any(a >= len(x.shape) for a in self.axes):
            raise ShapeError(f"flip of axes {self.axes} of {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.flip(x, axis=self.axes)

    def to_onnx(self, to: Any, x: Any) -> Any:
        key = [BACKWARD if a in self.axes else FULL for a in range(x.rank)]
        return read_slices(to, x, tuple(key))

    def strided(self, x: Strided, shape: Lengths) -> Strided:
        last = sum((x.shape[a] - 1) * x.strides[a] for a in self.axes)
        strides = [-step if a in self.axes else step for a, step in enumerate(x.strides)]
        return Strided(shape, tuple(strides), x.offset + last)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(self, dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0,)), [rng.normal(size=(3,))]
        yield cls((0, 2)), [rng.normal(size=(2, 3, 4))]
        yield cls(()), [rng.normal(size=())]


@documented(Flip)
def flip(x: TensorLike, axis: Any = None) -> Tensor:
    """x with the elements along axes in reverse order.

    Parameters:
        x: any shape and dtype.
        axis: one, or several in a tuple; None: all.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axis, or one is named twice.

    Source: the array API standard, flip.

    >>> gg.evaluate(gg.flip([1, 2, 3]))
    array([3, 2, 1])
    """
    x = as_tensor(x)
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(distinct_axes(axis, x.ndim)))
    return apply(Flip(axes), x) if axes else x


class Roll(Op):
    """x moved along axes, what leaves at one end coming in at the other.

    Gradient: dx = roll(dy, -shift, axis).
    """

    shifts: tuple[Any, ...]
    axes: tuple[int, ...]
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        if any(a >= len(x.shape) for a in self.axes):
            raise ShapeError(f"roll along axes {self.axes} of {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.roll(x, self.shifts, axis=self.axes)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """What leaves at one end, in front of the rest."""
        for shift, axis in zip(self.shifts, self.axes, strict=True):
            count = to.Squeeze(to.length(x, axis), [0])
            places = to.Range(np.int64(0), count, np.int64(1), shape=(None,))
            places = to.Mod(to.Sub(places, shift), to.Max(count, 1))
            x = to.Gather(x, places, axis=axis, shape=x.shape)
        return x if self.axes else to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Roll(tuple(-s for s in self.shifts), self.axes), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((1,), (0,)), [rng.normal(size=(3,))]
        yield cls((-4, 2), (1, 0)), [rng.normal(size=(2, 3))]
        yield cls((1,), (1,)), [rng.normal(size=(2, 0))]


@documented(Roll)
def roll(x: TensorLike, shift: Any, axis: Any = None) -> Tensor:
    """x moved along axes, what leaves at one end coming in at the other.

    Parameters:
        x: any shape and dtype.
        shift: by how many places, an int or a length, or a tuple: one for each axis.
        axis: one, or several in a tuple; None: x is flattened, and in its shape again.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axis, or there is not one shift for each; TypeError for a
    shift that is not an int.

    Source: the array API standard, roll.

    >>> gg.evaluate(gg.roll([1, 2, 3], 1))
    array([3, 1, 2])
    """
    x = as_tensor(x)
    if axis is None:
        return reshape_like(roll(flatten(x), shift, 0), x)
    axes = listed(axis)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll by {shift} along {axis}: one shift for each axis")
    places = tuple(normal_axis(a, x.ndim) for a in axes)
    return apply(Roll(tuple(count("a shift", s) for s in shifts), places), x)


class Pad(Op):
    """x with one number around it: (before, after) for each axis.

    Gradient: dx = the part of dy in the middle.
    """

    widths: tuple[tuple[Any, Any], ...]
    value: Any = 0
    onnx = Onnx("Pad")
    derivative = Derivative(relevance="moved")
    flop_free = True

    @property
    def linear(self) -> str | tuple[int, ...]:  # type: ignore[override]
        """Linear where the border is zero."""
        return "joint" if self.value == 0 else ()

    def infer(self, x: TensorType) -> Types:
        if len(self.widths) != len(x.shape):
            raise ShapeError(f"pad by {self.widths} of {x!r}")
        if any(is_negative(d) for w in self.widths for d in w):
            raise ShapeError(f"pad by {self.widths} of {x!r}: a width is never negative")
        pairs = zip(x.shape, self.widths)
        dims = [computed(add, d, sum(w)) for d, w in pairs]
        return (tensor_type(tuple(dims), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        pairs = list(zip(x.shape, self.widths))
        whole = xp.full(tuple(d + a + b for d, (a, b) in pairs), self.value, dtype=x.dtype)
        return with_at(whole, tuple(slice(a, a + d) for d, (a, _) in pairs) or (...,), x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        if not self.widths:
            return to.Identity(x)
        before, after = zip(*self.widths, strict=True)
        return to.Pad(x, [*before, *after], np.asarray(self.value, x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        inner = [_middle(d, *w) for d, w in zip(node.inputs[0].shape, self.widths)]
        return (apply(Slice(tuple(inner)), dy),)

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self.replace(widths=((0, 0), *self.widths)), *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(((1, 2),)), [rng.normal(size=(3,))]
        yield cls(((0, 0), (2, 0)), 1.5), [rng.normal(size=(2, 3))]
        yield cls(((0, 1), (1, 1))), [rng.normal(size=(0, 2)).astype("float32")]
        yield cls(()), [rng.normal(size=())]


def _middle(length: Dim, a: Any, b: Any) -> tuple[Any, ...]:
    """The slice of what is padded that has no border."""
    if isinstance(b, Length):
        return a, computed(add, a, length), None
    return None if a == 0 else a, -b or None, None


class EnsureLength(Op):
    """y = x, checked at run time to have so many places, or more, along an axis. Gradient: dx = dy.

    what  what needs them, for the error
    """

    axis: int
    length: Any
    what: str
    memory = Memory(view=True, alias=True)
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        missing = computed(sub, x.shape[self.axis], self.length)
        if missing is not None and is_negative(missing):
            raise ShapeError(f"{self.what} of axis {self.axis} of {x!r}: too short")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        length = x.shape[self.axis]
        if isinstance(length, int) and length < self.length:
            raise ShapeError(
                f"{self.what} of axis {self.axis} of {x.dtype}{list(x.shape)}: too short"
            )
        return x

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 3, "sample"), [rng.normal(size=(3, 2))]
        yield cls(1, 1, "sample"), [rng.normal(size=(2, 4)).astype("float32")]


class Tile(Op):
    """x repeated as a whole along each of its axes. Gradient: dx = dy added up over the copies."""

    repeats: tuple[int, ...]
    onnx = Onnx("Tile")
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        if len(self.repeats) != len(x.shape):
            raise ShapeError(f"tile by {self.repeats} of {x!r}: one number for each axis")
        pairs = zip(x.shape, self.repeats)
        dims = [d if r == 1 else computed(mul, d, r) for d, r in pairs]
        return (tensor_type(tuple(dims), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.tile(x, self.repeats)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Tile(x, list(self.repeats)) if self.repeats else to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Untile(self.repeats), dy),)

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self.replace(repeats=(1, *self.repeats)), *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((3,)), [rng.normal(size=(2,))]
        yield cls((2, 1, 3)), [rng.normal(size=(2, 3, 1))]
        yield cls((2, 2)), [rng.normal(size=(0, 3)).astype("float32")]
        yield cls(()), [rng.normal(size=())]


class Untile(Op):
    """The sum of the equal parts of x along each axis. The adjoint of Tile.

    Gradient: dx = dy tiled.
    """

    repeats: tuple[int, ...]
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        pairs = list(zip(x.shape, self.repeats))
        if len(self.repeats) != len(x.shape) or any(isinstance(d, int) and d % r for d, r in pairs):
            raise ShapeError(f"{x!r} is not tiled by {self.repeats}")
        dims = [d if r == 1 else computed(floordiv, d, r) for d, r in pairs]
        return (tensor_type(tuple(dims), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        shape = [n for d, r in zip(x.shape, self.repeats) for n in (r, d // r)]
        axes = tuple(range(0, len(shape), 2))
        return xp.sum(xp.reshape(x, tuple(shape)), axis=axes, dtype=x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        if not self.repeats:
            return to.Identity(x)
        parts = []
        for axis, r in enumerate(self.repeats):
            parts += [r, to.Div(to.length(x, axis), [r])]
        return to.ReduceSum(to.reshape(x, *parts), list(range(0, 2 * x.rank, 2)), keepdims=0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Tile(self.repeats), dy),)

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self.replace(repeats=(1, *self.repeats)), *batch.inputs)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is summed over; none where the shape stays."""
        return summed(inputs[0], outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((3,)), [rng.normal(size=(6,))]
        yield cls((2, 1)), [rng.normal(size=(4, 3))]
        yield cls(()), [rng.normal(size=())]


@documented(Tile)
def tile(x: TensorLike, repetitions: Any, /) -> Tensor:
    """x repeated as a whole along axes.

    Parameters:
        x: any shape and dtype.
        repetitions: an int or a length, or a tuple, of which the last belong to the last axes.

    Returns: x with the longer axes, more of them if there are more numbers; its dtype.

    Raises: ShapeError for a negative number; TypeError for input that is not integer.

    Source: the array API standard, tile.

    >>> gg.evaluate(gg.tile([1, 2], 2))
    array([1, 2, 1, 2])
    """
    x = as_tensor(x)
    reps = [count("a number of copies", r) for r in listed(repetitions)]
    if any(is_negative(r) for r in reps):
        raise ShapeError(f"tile by {repetitions}: a number of copies is never negative")
    missing = len(reps) - x.ndim
    x = expand_dims(x, tuple(range(missing))) if missing > 0 else x
    reps = [1] * -missing + reps
    if 0 in reps:
        x = apply(Slice(tuple((None, 0, None) if r == 0 else FULL for r in reps)), x)
        reps = [1 if r == 0 else r for r in reps]
    fixed = tuple([1 if isinstance(r, Length) else r for r in reps])
    x = x if all(r == 1 for r in fixed) else apply(Tile(fixed), x)
    for axis, r in enumerate(reps):
        x = _copied(x, r, axis, axis) if isinstance(r, Length) else x
    return x


def _copied(x: Tensor, times: Length, axis: int, at: int) -> Tensor:
    """So many copies of x on an axis at this place, which is made one with `axis`."""
    copies = broadcast_to(expand_dims(x, at), (*x.shape[:at], times, *x.shape[at:]))
    return merged(copies, axis)


class Repeat(Op):
    """Each element of x `count` times along an axis. Gradient: dx = dy summed over the copies."""

    count: int
    axis: int
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        dims = list(x.shape)
        dims[self.axis] = computed(mul, dims[self.axis], self.count)
        return (tensor_type(tuple(dims), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.repeat(x, self.count, axis=self.axis)

    def to_onnx(self, to: Any, x: Any) -> Any:
        ones = [1] * (x.rank + 1)
        ones[self.axis + 1] = self.count
        copies = to.Tile(to.Unsqueeze(x, [self.axis + 1]), ones)
        parts = [to.length(x, a) for a in range(x.rank)]
        parts[self.axis] = to.Mul(parts[self.axis], [self.count])
        return to.reshape(copies, *parts)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Unrepeat(self.count, self.axis), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(3, 0), [rng.normal(size=(2, 2))]
        yield cls(2, 1), [rng.normal(size=(2, 3)).astype("float32")]
        yield cls(2, 1), [rng.normal(size=(2, 0))]


class Unrepeat(Op):
    """The sum of every `count` neighbours along an axis; the adjoint of Repeat.

    Gradient: dx = dy repeated.
    """

    count: int
    axis: int
    linear = "joint"
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        dims = list(x.shape)
        d = dims[self.axis]
        if isinstance(d, int) and d % self.count:
            raise ShapeError(f"axis {self.axis} of {x!r} is not {self.count} times something")
        dims[self.axis] = computed(floordiv, d, self.count)
        return (tensor_type(tuple(dims), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        parts = (x.shape[self.axis] // self.count, self.count)
        shape = x.shape[: self.axis] + parts + x.shape[self.axis + 1 :]
        return xp.sum(xp.reshape(x, shape), axis=self.axis + 1, dtype=x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        parts = [to.length(x, a) for a in range(x.rank)]
        parts[self.axis] = to.Div(parts[self.axis], [self.count])
        apart = to.reshape(x, *parts[: self.axis + 1], self.count, *parts[self.axis + 1 :])
        return to.ReduceSum(apart, [self.axis + 1], keepdims=0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Repeat(self.count, self.axis), dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is summed over; none where the shape stays."""
        return summed(inputs[0], outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(3, 0), [rng.normal(size=(6, 2))]
        yield cls(1, 1), [rng.normal(size=(2, 3))]


def repeat_by_numbers(x: Tensor, repeats: Any, axis: int) -> Tensor:
    """gg.repeat by numbers that are known."""
    if isinstance(repeats, Length):
        return _repeated(x, repeats, axis)
    counts = np.asarray(repeats)
    if kind_of(counts.dtype) not in "iu" or (counts < 0).any():
        raise ShapeError(f"repeat takes numbers of copies, got {repeats!r}")
    if counts.size == 1:
        return _repeated(x, int(counts.reshape(())), axis)
    length = x.shape[axis]
    if not isinstance(length, int) or counts.shape != (length,):
        raise ShapeError(f"repeat of axis {axis} of {x.type!r} by {repeats!r}: one for each place")
    return take(x, np.repeat(np.arange(length), counts), axis)


def _repeated(x: Tensor, times: Any, axis: int) -> Tensor:
    if isinstance(times, Length):
        if is_negative(times):
            raise ShapeError(f"repeat takes numbers of copies, got {times}")
        return _copied(x, times, axis, axis + 1)
    if times == 0:
        return apply(Slice((*(FULL,) * axis, (None, 0, None))), x)
    return x if times == 1 else apply(Repeat(times, axis), x)
