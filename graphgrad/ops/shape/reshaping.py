"""Reshaping and transposing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from math import prod

from ...base.errors import ShapeError
from ...base.flags import truth_if_given
from ...base.length import Length, as_length, divided_exactly
from ...ir.strided import Lengths, Strided
from ...ir.types import (
    LENGTHS,
    Dim,
    as_shape,
    broadcast,
    compatible,
    count_of,
    elements,
    is_negative,
    lengths,
    never_equal,
    size_of,
)
from ..base import (
    ZERO,
    Any,
    Derivative,
    Full,
    Gradients,
    Memory,
    Node,
    OnesLike,
    Onnx,
    Op,
    Samples,
    Sequence,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    apply,
    as_tensor,
    cast,
    np,
    tensor_type,
    type_of,
    whole,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..elementwise.logic import LOGICAL_AND

__all__ = [
    "broadcast_arrays",
    "broadcast_like",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "reshape_like",
    "squeeze",
    "sum_to",
    "swapaxes",
    "transpose",
]


def normal_axis(axis: Any, ndim: int) -> int:
    """An axis as a non-negative int; ShapeError where it does not fit, TypeError for no int."""
    i = whole("an axis", axis)
    if not -ndim <= i < ndim:
        raise ShapeError(f"axis {axis} does not fit {ndim} axes")
    return i + ndim if i < 0 else i


def listed(given: Any) -> Sequence[Any]:
    """One number, or several in a sequence or an array, as a sequence."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    return given if isinstance(given, tuple | list | range) else (given,)


def distinct_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes in the order given, as non-negative ints; ShapeError for one named twice."""
    axes = tuple(normal_axis(a, ndim) for a in listed(axis))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes {axis} name one axis twice")
    return axes


class Reshape(Op):
    """The elements of x in row-major order under another shape.

    Gradient: dx = dy in the shape of x.

    A length of -1 is what is left over; ("axis", i) is the length of axis i of x.
    """

    shape: tuple[Any, ...]
    memory = Memory(view=True, alias=True, reshapes=True)
    onnx = Onnx("Reshape")
    linear = "joint"
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        dims: list[Dim] = [x.shape[d[1]] if isinstance(d, tuple) else d for d in self.shape]
        total = count_of(x.shape)
        if -1 in dims:
            at = dims.index(-1)
            rest = count_of(d for i, d in enumerate(dims) if i != at)
            if total is None or rest is None:
                dims[at] = _left_over(x.shape, dims, at)
            else:
                dims[at] = self._divided(x, total, rest)
        shape = tuple(dims)
        new = count_of(shape)
        if never_equal(total, new):
            raise ShapeError(f"{x!r} has {total} elements, {list(shape)} has {new}")
        return (tensor_type(shape, x.dtype),)

    def with_sizes(self, sizes: Mapping[str, Any]) -> Op:
        """The same for these sizes; ShapeError for a length that is negative, which -1 is not."""
        for d in self.shape:
            known = d.at(sizes) if isinstance(d, Length) else 0
            if isinstance(known, int | Length) and is_negative(known):
                raise ShapeError(f"a length is never negative, got {d} = {known}")
        return super().with_sizes(sizes)

    def _divided(self, x: TensorType, total: Any, rest: Any) -> Any:
        """What is left over: the quotient, which a run checks where it is not known to be exact."""
        if rest == 0 or (isinstance(total, int) and isinstance(rest, int) and total % rest):
            raise ShapeError(f"{x!r} cannot be reshaped to {self.shape}")
        exact = divided_exactly(total, rest)
        return total // rest if exact is None else exact

    def kernel(self, xp: Any, x: Any) -> Any:
        shape = tuple(x.shape[d[1]] if isinstance(d, tuple) else d for d in self.shape)
        return xp.reshape(x, shape)

    def to_onnx(self, to: Any, x: Any) -> Any:
        (y,) = self.infer(tensor_type(x.shape, x.dtype))
        if y.static:
            return to.reshape(x, *lengths(y))
        parts = [to.length(x, d[1]) if isinstance(d, tuple) else d for d in self.shape]
        if -1 in self.shape:
            return to.Reshape(x, to.lengths(*parts), shape=y.shape)
        return to.reshape(x, *parts, shape=y.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (reshape_like(dy, node.inputs[0]),)

    def batch(self, batch: Batch) -> Outputs:
        (one,) = self.infer(*batch.types)
        dims = [("axis", d[1] + 1) if isinstance(d, tuple) else d for d in self.shape]
        shape = (("axis", 0), *(one.shape if one.static else dims))
        return batch.build(Reshape(shape), *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((3, 2)), [rng.normal(size=(2, 3))]
        yield cls((-1,)), [rng.normal(size=(2, 3))]
        yield cls((("axis", 0), -1)), [rng.normal(size=(2, 3, 2))]
        yield cls(()), [rng.normal(size=(1, 1))]


def _by_columns(order: str) -> bool:
    """Whether the first axis runs first; a tensor has no memory, so "A" and "K" are row by row."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"an order is 'C', 'F', 'A' or 'K', got {order!r}")
    return order == "F"


def _left_over(old: Shape, dims: list[Dim], at: int) -> Dim:
    """The length that -1 stands for, or its name, where the rest cancels; else None."""
    rest = [d for i, d in enumerate(dims) if i != at]
    names = [d for d in old if not isinstance(d, int)]
    for name in (d for d in rest if not isinstance(d, int)):
        if name is None or name not in names:
            return None
        names.remove(name)
    before, after = (prod(d for d in each if isinstance(d, int)) for each in (old, rest))
    if not after or before % after or len(names) > 1:
        return None
    left = before // after
    return left if not names else names[0] if left == 1 else None


@documented(Reshape)
def reshape(x: TensorLike, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """x in another shape, elements in row-major order unless another is given.

    Parameters:
        x: any shape and dtype.
        shape: an int, a length, or several, at most one of them -1 (what is left over); a str
            names a length of x; a None stands for what is left over where there is no -1.
        order: "C" or "A": row by row; "F": column by column, the first axis running first.
        copy: taken for the standard's sake; it changes nothing, for tensors never change.

    Returns: x in this shape, of its dtype.

    Raises: ShapeError where the numbers of elements differ, more than one length is left over, or x
    has no length of that name; ValueError for an unknown order.

    Source: the array API standard, reshape.

    >>> x = gg.placeholder(("N", 2, 3))
    >>> gg.reshape(x, ("N", 6)).type
    float64[N, 6]
    """
    truth_if_given("copy", copy)
    x = as_tensor(x)
    if _by_columns(order):
        return transpose(reshape(transpose(x), tuple(listed(shape))[::-1]))
    given = [-1 if d is None else d for d in listed(shape)]
    if sum(isinstance(d, int | np.integer) and d == -1 for d in given) > 1:
        raise ShapeError(
            f"reshape of {x.type!r} to {shape}: only one length can be left over; give unknown "
            "lengths a name in the placeholder's shape"
        )
    dims: list[Any] = []
    names = {name for d in x.shape if isinstance(d, Length) for name in d.names}
    for d in given:
        length = as_length(d) if isinstance(d, str | Length) else None
        if isinstance(length, Length):
            if isinstance(d, str) and not length.names <= names:
                raise ShapeError(f"reshape of {x.type!r} to {shape}: x has no length named {d!r}")
            dims.append(("axis", x.shape.index(length)) if length in x.shape else length)
        elif not isinstance(d, int | np.integer) or d < -1:
            raise ShapeError(f"reshape of {x.type!r}: {d!r} is not a length{LENGTHS}")
        else:
            dims.append(int(d))
    if tuple(given) == x.shape and x.type.static:
        return x
    return apply(Reshape(tuple(dims)), x)


class ReshapeLike(Op):
    """The elements of x under the shape of the second input, which is known only at run time.

    Gradient: dx = dy in the shape of x; none to like, or zero where lengths of it are unknown.
    """

    memory = Memory(view=True, alias=True)
    linear = (0,)
    shape_only = (1,)
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if x.static and like.static and size_of(x.shape) != size_of(like.shape):
            raise ShapeError(
                f"{x!r} has {size_of(x.shape)} elements, {like!r} has {size_of(like.shape)}"
            )
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return xp.reshape(x, like.shape)

    def to_onnx(self, to: Any, x: Any, like: Any) -> Any:
        return to.reshape(x, to.shape(like), shape=like.shape)

    def static(self, inputs: Types) -> Op:
        return Reshape(lengths(inputs[1]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return reshape_like(dy, node.inputs[0]), ZERO

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(self, *batch.every())

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=(6,))]


@documented(ReshapeLike)
def reshape_like(x: TensorLike, like: TensorLike) -> Tensor:
    """x under the shape of another tensor, which may be known only at run time.

    Parameters:
        x: a tensor of any shape and dtype.
        like: a tensor of as many elements; read for its shape only.

    Returns: same shape as like, dtype of x.

    Raises: ShapeError where the numbers of elements differ.

    >>> gg.reshape_like(gg.ones(6), gg.zeros((2, 3))).type
    float64[2, 3]
    """
    x, of = as_tensor(x), type_of(like)
    if x.shape == of.shape and None not in of.shape:
        return x
    if of.static:
        return apply(Reshape(of.shape), x)
    return apply(ReshapeLike(), x, as_tensor(like))


class ExpandDims(Op):
    """Axes of length 1 put in at the given places of the result.

    Gradient: dx = dy without the axes.
    """

    axes: tuple[int, ...]
    memory = Memory(view=True, alias=True, reshapes=True)
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        shape = list(x.shape)
        for axis in self.axes:
            if axis > len(shape):
                raise ShapeError(f"expand_dims at {self.axes} of {x!r}")
            shape.insert(axis, 1)
        return (tensor_type(tuple(shape), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.expand_dims(x, axis=self.axes)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Unsqueeze(x, list(self.axes)) if self.axes else to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Squeeze(self.axes), dy) if self.axes else dy,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0, 2)), [rng.normal(size=(3,))]
        yield cls((0,)), [rng.normal(size=())]


class Squeeze(Op):
    """Axes of length 1 taken out. Gradient: dx = dy with the axes put back."""

    axes: tuple[int, ...]
    memory = Memory(view=True, alias=True, reshapes=True)
    onnx = Onnx("Squeeze")
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        for axis in self.axes:
            if axis >= len(x.shape) or (isinstance(x.shape[axis], int) and x.shape[axis] != 1):
                raise ShapeError(f"squeeze of axes {self.axes} of {x!r}: only length 1 can go")
        return (
            tensor_type(tuple(d for i, d in enumerate(x.shape) if i not in self.axes), x.dtype),
        )

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.squeeze(x, axis=self.axes)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Squeeze(x, list(self.axes)) if self.axes else to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(ExpandDims(self.axes), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0, 2)), [rng.normal(size=(1, 3, 1))]


@documented(ExpandDims)
def expand_dims(x: TensorLike, axis: Any) -> Tensor:
    """Axes of length 1 put in.

    Parameters:
        x: any shape and dtype.
        axis: their place in the result (negative: from its end), or several in a tuple.

    Returns: x with these axes; its dtype.

    Raises: ShapeError for a place that is not there or named twice.

    Source: the array API standard, expand_dims.

    >>> gg.expand_dims(gg.ones((2, 3)), (0, -1)).type
    float64[1, 2, 3, 1]
    """
    x = as_tensor(x)
    axes = tuple(sorted(distinct_axes(axis, x.ndim + len(listed(axis)))))
    return apply(ExpandDims(axes), x) if axes else x


class BroadcastTo(Op):
    """x repeated to a shape of ints and lengths, by NumPy's rules.

    Gradient: dx = dy summed over the axes of repetition.
    """

    shape: tuple[Any, ...]
    memory = Memory(view=True, alias=True)
    onnx = Onnx("Expand")
    linear = "joint"
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        if not compatible(broadcast([x.shape, self.shape]), self.shape):
            raise ShapeError(f"{x!r} does not broadcast to {list(self.shape)}")
        return (tensor_type(self.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.broadcast_to(x, self.shape)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Expand(x, list(self.shape))

    def strided(self, x: Strided, shape: Lengths) -> Strided:
        extra = len(shape) - len(x.shape)
        lengths = zip(x.shape, shape[extra:], x.strides, strict=True)
        kept = [step if before == after else 0 for before, after, step in lengths]
        return Strided(shape, (0,) * extra + tuple(kept), x.offset)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (sum_to(dy, like=node.inputs[0]),)

    def batch(self, batch: Batch) -> Outputs:
        (x,) = batch.inputs
        extra = len(self.shape) - (x.ndim - 1)
        row = apply(ExpandDims(tuple(range(1, 1 + extra))), x) if extra else x
        if x.shape[0] is not None:
            return batch.build(BroadcastTo((x.shape[0], *self.shape)), row)
        like = batch.repeated(apply(Full(self.shape, 0, x.dtype)))
        return batch.build(BroadcastLike(), row, like)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3)), [rng.normal(size=(3,))]
        yield cls((2, 3)), [rng.normal(size=(2, 1))]
        yield cls((2, 3)), [rng.normal(size=())]
        yield cls((0, 3)), [rng.normal(size=(1, 3))]


@documented(BroadcastTo)
def broadcast_to(x: TensorLike, shape: Any) -> Tensor:
    """x repeated to a shape, by NumPy's rules.

    Parameters:
        x: any shape and dtype.
        shape: ints and lengths.

    Returns: x in this shape, of its dtype.

    Raises: ShapeError where x does not broadcast to it, or for a length that is None; where lengths
    are open, a run raises it.

    Source: the array API standard, broadcast_to.

    >>> gg.evaluate(gg.broadcast_to([1, 2], (2, 2)))
    array([[1, 2],
           [1, 2]])
    """
    x = as_tensor(x)
    lengths = as_shape(shape)
    if None in lengths:
        raise ShapeError(
            f"broadcast_to of {x.type!r} to {lengths}: a length that depends on values has no "
            "name; use gg.broadcast_like"
        )
    return x if x.shape == lengths else apply(BroadcastTo(lengths), x)


class BroadcastLike(Op):
    """x repeated to the shape of the second input, which is known only at run time.

    Gradient: dx = dy summed over the axes of repetition; none to like, or zero where lengths of
        it are unknown.
    """

    memory = Memory(view=True, alias=True)
    linear = (0,)
    shape_only = (1,)
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if not compatible(broadcast([x.shape, like.shape]), like.shape):
            raise ShapeError(f"{x!r} does not broadcast to the shape of {like!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return xp.broadcast_to(x, like.shape)

    def to_onnx(self, to: Any, x: Any, like: Any) -> Any:
        return to.Expand(x, to.shape(like))

    def static(self, inputs: Types) -> Op:
        return BroadcastTo(lengths(inputs[1]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return sum_to(dy, like=node.inputs[0]), ZERO

    def batch(self, batch: Batch) -> Outputs:
        x, like = batch.inputs
        target = like if batch.flags[1] else batch.repeated(like)
        row, _ = batch.of((x, target), (batch.flags[0], True)).aligned()
        return batch.build(self, row, target)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(3,)), rng.normal(size=(2, 3))]
        yield cls(), [rng.normal(size=(2, 1)), rng.normal(size=(2, 3))]


@documented(BroadcastLike)
def broadcast_like(x: TensorLike, like: TensorLike) -> Tensor:
    """x repeated to the shape of another tensor, by NumPy's rules.

    Parameters:
        x: any shape and dtype.
        like: a tensor; read for its shape only, which may be known only at run time.

    Returns: same shape as like, dtype of x.

    Raises: ShapeError where x does not broadcast to the shape of like.

    >>> x = gg.placeholder(("N", 2))
    >>> gg.broadcast_like([1.0, 2.0], x).type
    float64[N, 2]
    """
    x, like = as_tensor(x), as_tensor(like)
    if like.type.static:
        return broadcast_to(x, like.shape)
    if x.shape == like.shape and None not in x.shape:
        return x
    return apply(BroadcastLike(), x, like)


class Summing(Op, abstract=True):
    """Family: x summed to a shape, over the axes along which that would be broadcast to x."""

    memory = Memory(view=True)

    def aliases(self, inputs: Types, outputs: Types) -> bool:
        """Where nothing is summed; two shapes without elements may still be others."""
        (x, *_), (y,) = inputs, outputs
        ones = (1,) * (len(x.shape) - len(y.shape))
        return size_of(x.shape) is not None and x.shape == (*ones, *y.shape)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is summed over; none where the shape stays."""
        return summed(inputs[0], outputs[0])


class SumTo(Summing):
    """x summed over the axes along which the second input would be broadcast to x: the adjoint of
    broadcasting.

    Gradient: broadcasts back; none to like, or zero where lengths of it are unknown.
    """

    linear = (0,)
    shape_only = (1,)

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if len(like.shape) > len(x.shape) or not compatible(
            broadcast([x.shape, like.shape]), x.shape
        ):
            raise ShapeError(f"{x!r} cannot be summed to the shape of {like!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return _summed(xp, x, like.shape)

    def to_onnx(self, to: Any, x: Any, like: Any) -> Any:
        """Over the axes where that has length 1 and x another, or none at all."""
        extra = list(range(x.rank - like.rank))
        y = to.ReduceSum(x, extra, keepdims=0) if extra else x
        if not like.rank:
            return y
        of_y = x.shape[len(extra) :]
        if all(a == b or b == 1 for a, b in zip(of_y, like.shape, strict=True)):
            told = [i for i, (a, b) in enumerate(zip(of_y, like.shape, strict=True)) if a != b]
            return to.ReduceSum(y, told, keepdims=1) if told else to.Identity(y)
        shape = to.shape(like)
        apart = to.Not(to.Equal(shape, to.Shape(y)))
        axes = to.Squeeze(to.NonZero(apart), [0])
        return to.ReduceSum(y, axes, keepdims=1, noop_with_empty_axes=1)

    def static(self, inputs: Types) -> Op:
        return SumToShape(lengths(inputs[1]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return broadcast_like(dy, node.inputs[0]), ZERO

    def batch(self, batch: Batch) -> Outputs:
        x, like = batch.every()
        extra = tuple(range(1, 1 + x.ndim - like.ndim))
        if not extra:
            return batch.build(self, x, like)
        return batch.build(Squeeze(extra), apply(self, x, apply(ExpandDims(extra), like)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for small in [(3,), (2, 1), (), (2, 3), (1, 3)]:
            yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=small)]


class SumToShape(Summing):
    """x summed to a known shape, over the axes along which that shape would be broadcast to x.

    Gradient: broadcasts back.
    """

    shape: tuple[int, ...]
    linear = "joint"
    traits = Traits(reduction="sum")

    def infer(self, x: TensorType) -> Types:
        if len(self.shape) > len(x.shape) or not compatible(
            broadcast([x.shape, self.shape]), x.shape
        ):
            raise ShapeError(f"{x!r} cannot be summed to {list(self.shape)}")
        return (tensor_type(self.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return _summed(xp, x, self.shape)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Over the axes that go, and those of which length 1 is left."""
        extra = x.rank - len(self.shape)
        axes = [*range(extra), *[extra + i for i, d in enumerate(self.shape) if d == 1]]
        y = to.ReduceSum(x, axes, keepdims=1) if axes else to.Identity(x)
        return to.Squeeze(y, list(range(extra))) if extra else y

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (broadcast_like(dy, node.inputs[0]),)

    def batch(self, batch: Batch) -> Outputs:
        (x,) = batch.inputs
        extra = x.ndim - 1 - len(self.shape)
        ones = [extra + i for i, d in enumerate(self.shape) if d == 1]
        axes = tuple([a + 1 for a in (*range(extra), *ones)])
        total = batch.summed(x, axes) if axes else x
        return batch.build(Reshape((("axis", 0), *self.shape)), total)

    def reduced_axes(self, shape: Shape) -> tuple[int, ...]:
        """Those that the smaller shape has not, or with another length."""
        extra = len(shape) - len(self.shape)
        inner = [a for a in range(extra, len(shape)) if self.shape[a - extra] != shape[a]]
        return (*range(extra), *inner)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for small in [(3,), (2, 1), (), (2, 3), (1, 3)]:
            yield cls(small), [rng.normal(size=(2, 3))]


def summed(x: TensorType, y: TensorType) -> int:
    """The additions that take x to y: none where nothing is summed."""
    return 0 if elements(x) == elements(y) else elements(x)


def _summed(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, d in enumerate(shape) if d == 1 and x.shape[extra + i] != 1
    )
    y = xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype) if axes else x
    return xp.reshape(y, shape)


@documented(SumTo)
def sum_to(dy: TensorLike, *, like: TensorLike) -> Tensor:
    """dy summed over the axes along which another tensor was broadcast, so that it has its shape.

    What a rule needs for an input that was broadcast: the adjoint of broadcast_like.

    Parameters:
        dy: any shape to which that of like broadcasts; any dtype.
        like: a tensor; read for its shape only.

    Returns: same shape as like, dtype of dy; dy itself where the shapes are already equal.

    Raises: ShapeError where like does not broadcast to the shape of dy.

    >>> b = gg.constant([0.0, 0.0])
    >>> gg.evaluate(gg.sum_to([[1.0, 2.0], [3.0, 4.0]], like=b))
    array([4., 6.])
    """
    dy, of = as_tensor(dy), type_of(like)
    if dy.shape == of.shape and None not in of.shape:
        return dy
    lengths = tuple([d for d in of.shape if isinstance(d, int)])
    if len(lengths) == len(of.shape):
        return apply(SumToShape(lengths), dy)
    return apply(SumTo(), dy, as_tensor(like))


@documented(BroadcastTo)
def broadcast_arrays(*xs: TensorLike) -> tuple[Tensor, ...]:
    """The tensors repeated to their common shape.

    Parameters: *xs: any dtypes, shapes that broadcast.

    Returns: a tuple of tensors of that shape, each of its dtype.

    Raises: ShapeError where the shapes do not broadcast; where lengths are open, a run raises it.

    Source: the array API standard, broadcast_arrays.

    >>> [t.shape for t in gg.broadcast_arrays(gg.ones((2, 1)), gg.ones(3))]
    [(2, 3), (2, 3)]
    """
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        return ()
    shape = broadcast([t.shape for t in tensors])
    if None not in shape:
        return tuple(broadcast_to(t, shape) for t in tensors)
    shapes = [cast(apply(OnesLike(), t), "bool") for t in tensors]
    like = reduce(lambda a, b: apply(LOGICAL_AND, a, b), shapes)
    return tuple(broadcast_like(t, like) for t in tensors)


@documented(Squeeze)
def squeeze(x: TensorLike, axis: Any = None) -> Tensor:
    """Axes of length 1 taken out.

    Parameters:
        x: any shape and dtype.
        axis: one, or several in a tuple; None: all that are known to have length 1.

    Returns: x without these axes; its dtype.

    Raises: ShapeError if x has no such axis, or its length is not 1.

    Source: the array API standard, squeeze.

    >>> gg.squeeze(gg.ones((1, 2, 1)), 0).type
    float64[2, 1]
    """
    x = as_tensor(x)
    if axis is None:
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = tuple(sorted(distinct_axes(axis, x.ndim)))
    return apply(Squeeze(axes), x) if axes else x


@documented(Reshape)
def flatten(x: TensorLike, order: str = "C") -> Tensor:
    """The elements of x on one axis, in row-major order unless another is given.

    Parameters:
        x: any shape and dtype.
        order: "C": row by row; "F": column by column, the first axis running first.

    Returns: x as a vector of its dtype.

    Raises: DTypeError for non-numeric input; ValueError for an unknown order.

    Source: numpy.ravel.

    >>> gg.evaluate(gg.flatten([[1, 2], [3, 4]]))
    array([1, 2, 3, 4])
    """
    x = as_tensor(x)
    x = transpose(x) if _by_columns(order) else x
    return x if x.ndim == 1 else apply(Reshape((-1,) if x.ndim else (1,)), x)


ravel = flatten


# --- permuted --------------------------------------------------------------------------------


class Transpose(Op):
    """The axes of x in another order: axis i of y is axis axes[i] of x.

    Gradient: dx = dy with its axes in the old order.
    """

    axes: tuple[int, ...]
    memory = Memory(view=True, alias=True)
    onnx = Onnx("Transpose", perm="axes")
    linear = "joint"
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        if sorted(self.axes) != list(range(len(x.shape))):
            raise ShapeError(f"{self.axes} is not an order of the axes of {x!r}")
        return (tensor_type(tuple(x.shape[a] for a in self.axes), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.transpose(x, self.axes)

    def strided(self, x: Strided, shape: Lengths) -> Strided:
        return Strided(shape, tuple([x.strides[a] for a in self.axes]), x.offset)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        back = tuple(sorted(range(len(self.axes)), key=self.axes.__getitem__))
        return (apply(Transpose(back), dy),)

    def batch(self, batch: Batch) -> Outputs:
        return batch.build(Transpose((0, *[a + 1 for a in self.axes])), *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((1, 0)), [rng.normal(size=(2, 3))]
        yield cls((2, 0, 1)), [rng.normal(size=(2, 3, 4))]
        yield cls((1, 0)), [rng.normal(size=(0, 3)).astype("float32")]
        yield cls(()), [rng.normal(size=())]


@documented(Transpose)
def permute_dims(x: TensorLike, axes: Any) -> Tensor:
    """x with its axes in another order: axis i of the result is axis axes[i] of x.

    Parameters:
        x: any shape and dtype.
        axes: every axis of x, once.

    Returns: x so, of its dtype.

    Raises: ShapeError where axes are not an order of the axes of x.

    Source: the array API standard, permute_dims.

    >>> gg.permute_dims(gg.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    order = distinct_axes(axes, x.ndim)
    return x if order == tuple(range(x.ndim)) else apply(Transpose(order), x)


@documented(Transpose)
def transpose(x: TensorLike, axes: Any = None) -> Tensor:
    """x with its axes in another order, reversed unless one is given.

    Parameters:
        x: any shape and dtype.
        axes: every axis of x, once: axis i of the result is axis axes[i] of x. None: reversed.

    Returns: x so, of its dtype.

    Raises: ShapeError where axes are not an order of the axes of x.

    Source: numpy.transpose.

    >>> gg.evaluate(gg.transpose([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    """
    x = as_tensor(x)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """x with its last two axes exchanged.

    Parameters: x: (..., M, N), any dtype.

    Returns: (..., N, M), of the dtype of x.

    Raises: ShapeError if x has fewer than two axes.

    Gradient: dx = matrix_transpose(dy).

    Source: the array API standard, matrix_transpose.

    >>> gg.matrix_transpose(gg.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose takes matrices, got {x.type!r}")
    return swapaxes(x, -1, -2)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged.

    Parameters:
        x: any shape and dtype.
        axis1, axis2: the axes.

    Returns: x so, of its dtype.

    Raises: ShapeError if x has no such axis.

    Gradient: dx = swapaxes(dy, axis1, axis2).

    Source: numpy.swapaxes.

    >>> gg.swapaxes(gg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_tensor(x)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return permute_dims(x, order)


def moveaxis(x: TensorLike, source: Any, destination: Any, /) -> Tensor:
    """x with axes moved to other places; the others keep their order.

    Parameters:
        x: any shape and dtype.
        source: an axis, or several in a tuple.
        destination: their places in the result, one for each.

    Returns: x so, of its dtype.

    Raises: ShapeError for axes or places that are not there, named twice, or not one for each.

    Gradient: dx = dy with the axes moved back.

    Source: the array API standard, moveaxis.

    >>> gg.moveaxis(gg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x)
    return permute_dims(x, moved_order(x.ndim, source, destination))


def moved_order(ndim: int, source: Any, destination: Any) -> list[int]:
    """The order in which moveaxis leaves axes."""
    old, new = distinct_axes(source, ndim), distinct_axes(destination, ndim)
    if len(old) != len(new):
        raise ShapeError(f"moveaxis from {source} to {destination}: one place for each axis")
    order = [a for a in range(ndim) if a not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return order
