"""Concatenating, stacking and splitting along an axis."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.kinds import can_cast
from ...base.length import Length
from ...ir.types import Dim, computed, is_negative, merge_dims, never_equal
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Sequence,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    build,
    cast,
    count,
    like,
    np,
    promoted,
    tensor_type,
    wants,
)
from ..documented import documented
from .reshaping import broadcast_like, flatten, listed, normal_axis
from .slicing import FULL, Slice, normal_slice

__all__ = ["concat", "concatenate", "split", "stack", "unstack"]


class Concat(Op):
    """The inputs one after the other along an axis. Gradient: dxs = dy cut at the same places."""

    axis: int
    onnx = Onnx("Concat", axis="axis")
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, *types: TensorType) -> Types:
        first = types[0]
        dims = list(first.shape)
        if self.axis >= len(dims):
            raise ShapeError(f"concat along axis {self.axis} of {first!r}")
        for t in types[1:]:
            _check_joined(t, first)
            try:
                dims = [merge_dims(a, b) for a, b in _outside(dims, t.shape, self.axis)]
            except ShapeError as error:
                raise ShapeError(f"concat of {first!r} and {t!r}: {error}") from None
        dims[self.axis] = _total([t.shape[self.axis] for t in types])
        return (tensor_type(tuple(dims), first.dtype),)

    def kernel(self, xp: Any, *xs: Any) -> Any:
        return xp.concatenate(xs, axis=self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        xs = node.inputs
        ends = _ends([x.shape[self.axis] for x in xs])
        if ends is None:
            parts = [ConcatPart(self.axis, i) for i in range(len(xs))]
            return [apply(p, dy, *xs) if wants(x) else NO_GRAD for p, x in zip(parts, xs)]
        before = (FULL,) * self.axis
        cuts = [(*before, (a, b, None)) for a, b in zip([0, *ends], ends)]
        return [apply(Slice(cut), dy) if wants(x) else NO_GRAD for cut, x in zip(cuts, xs)]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(2, 3)), rng.normal(size=(1, 3))]
        yield cls(1), [rng.normal(size=(2, n)) for n in (1, 0, 3)]
        yield cls(0), [rng.normal(size=(2,)).astype("float32")] * 2


def _check_joined(t: TensorType, first: TensorType) -> None:
    if t.dtype is not first.dtype or len(t.shape) != len(first.shape):
        raise ShapeError(f"{first!r} and {t!r} cannot be joined: dtype and rank have to agree")


def _outside(a: Sequence[Dim], b: Sequence[Dim], axis: int) -> list[tuple[Dim, Dim]]:
    """The lengths in pairs; nothing is asked of those along the axis."""
    return [(None, None) if i == axis else pair for i, pair in enumerate(zip(a, b))]


def _ends(lengths: Sequence[Dim]) -> list[int] | None:
    """Where each of the lengths ends when they follow each other; None where one is unknown."""
    ends, end = [], 0
    for d in lengths:
        if not isinstance(d, int):
            return None
        end += d
        ends.append(end)
    return ends


def _total(lengths: Sequence[Dim]) -> Dim:
    return computed(lambda *dims: sum(dims), *lengths)  # type: ignore[no-any-return]


class ConcatPart(Op):
    """The part of the first input that is input 1 + index of a Concat of the others.

    Gradient: dx = dy among zeros.

    For lengths known only at run time.
    """

    axis: int
    index: int
    memory = Memory(view=True, alias=True)
    linear = (0,)
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, joined: TensorType, *xs: TensorType) -> Types:
        return (xs[self.index],)

    def kernel(self, xp: Any, joined: Any, *xs: Any) -> Any:
        start = 0
        for x in xs[: self.index]:
            start += x.shape[self.axis]
        part = slice(start, start + xs[self.index].shape[self.axis])
        return joined[(slice(None),) * self.axis + (part,)]

    def to_onnx(self, to: Any, joined: Any, *xs: Any) -> Any:
        before = [to.length(x, self.axis) for x in xs[: self.index]]
        start = reduce(to.Add, before, to.value([0]))
        end = to.Add(start, to.length(xs[self.index], self.axis))
        return to.Slice(joined, start, end, [self.axis])

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        xs = list(node.inputs[1:])
        parts = [dy if i == self.index else _zeros_of(x) for i, x in enumerate(xs)]
        return (apply(Concat(self.axis), *parts), *(ZERO for _ in xs))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for i in range(3):
            xs = [rng.normal(size=(2, n)) for n in (1, 0, 3)]
            yield cls(1, i), [rng.normal(size=(2, 4)), *xs]


def _zeros_of(x: Tensor) -> Tensor:
    return broadcast_like(like(0, x), x)


@documented(Concat)
def concat(
    xs: Any, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """The tensors one after the other along an axis.

    Parameters:
        xs: a sequence of tensors of one rank, at least 1; dtypes are promoted.
        axis: where lengths may differ; None: they are flattened first.
        dtype: that of the result unless it is the promoted one.
        casting: which casts to it are allowed, as for NumPy.

    Returns: a tensor whose length along the axis is the sum of theirs.

    Raises: ShapeError for no tensors, or ranks or lengths of the other axes that differ; DTypeError
    for a dtype that one of theirs is not cast to.

    Source: the array API standard, concat.

    >>> gg.evaluate(gg.concat([[1, 2], [3.5]]))
    array([1. , 2. , 3.5])
    """
    tensors = _joined(xs, "concat", dtype, casting)
    if axis is None:
        return concat([flatten(t) for t in tensors], 0)
    ranks = {t.ndim for t in tensors}
    if len(ranks) > 1 or 0 in ranks:
        shown = ", ".join(repr(t.type) for t in tensors)
        raise ShapeError(f"concat takes tensors of one rank, at least 1, got {shown}")
    axis = normal_axis(axis, tensors[0].ndim)
    return tensors[0] if len(tensors) == 1 else apply(Concat(axis), *tensors)


concatenate = concat


def tensors_of(xs: Any, what: str) -> list[Tensor]:
    """A sequence of tensors, or what lies along axis 0 of one, as a list; ShapeError for none."""
    if isinstance(xs, Tensor | np.ndarray):
        xs = unstack(xs)
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        raise ShapeError(f"{what} needs at least one tensor")
    return tensors


def _joined(xs: Any, what: str, dtype: Any, casting: str) -> tuple[Tensor, ...]:
    """The tensors in their common dtype, or in another one that they may be cast to."""
    tensors = tensors_of(xs, what)
    if dtype is None:
        return promoted(*tensors)
    target = as_dtype(dtype)
    for t in tensors:
        if not can_cast(t.dtype, target, casting):
            raise DTypeError(
                f"{what} as {target} of {t.type!r}, built at {t.where}: casting={casting!r} does "
                "not allow it; cast it first"
            )
    return tuple([cast(t, target) for t in tensors])


class Stack(Op):
    """The inputs side by side on a new axis. Gradient: dxs = unstack(dy, axis)."""

    axis: int
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, *types: TensorType) -> Types:
        dims = list(types[0].shape)
        for t in types[1:]:
            _check_joined(t, types[0])
            try:
                dims = [merge_dims(a, b) for a, b in zip(dims, t.shape)]
            except ShapeError as error:
                raise ShapeError(f"stack of {types[0]!r} and {t!r}: {error}") from None
        if self.axis > len(dims):
            raise ShapeError(f"stack on axis {self.axis} of {types[0]!r}")
        dims.insert(self.axis, len(types))
        return (tensor_type(tuple(dims), types[0].dtype),)

    def kernel(self, xp: Any, *xs: Any) -> Any:
        return xp.stack(xs, axis=self.axis)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        return to.Concat(*[to.Unsqueeze(x, [self.axis]) for x in xs], axis=self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return build(Unstack(self.axis, len(node.inputs)), (dy,)).outputs

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(2, 3)), rng.normal(size=(2, 3))]
        yield cls(1), [rng.normal(size=(2,)) for _ in range(3)]
        yield cls(0), [rng.normal(size=()).astype("float32")]


class Unstack(Op):
    """x taken apart along an axis of known length, one output an index; the adjoint of Stack.

    Gradient: dx = stack(dys, axis).
    """

    axis: int
    count: int
    memory = Memory(view=True, alias=True)
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape) or never_equal(x.shape[self.axis], self.count):
            raise ShapeError(f"unstack of {x!r} into {self.count} along axis {self.axis}")
        dims = x.shape[: self.axis] + x.shape[self.axis + 1 :]
        return (tensor_type(dims, x.dtype),) * self.count

    def kernel(self, xp: Any, x: Any) -> Any:
        before = (slice(None),) * self.axis
        return _outputs([x[(*before, i, ...)] for i in range(self.count)])

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        return (apply(Stack(self.axis), *dys),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 2), [rng.normal(size=(2, 3))]
        yield cls(1, 3), [rng.normal(size=(2, 3)).astype("float32")]


def _outputs(parts: Sequence[Any]) -> Any:
    """What a kernel returns: a tuple, but for a single output the array itself."""
    return tuple(parts) if len(parts) > 1 else parts[0]


@documented(Stack)
def stack(xs: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """The tensors side by side on a new axis.

    Parameters:
        xs: a sequence of tensors of one shape; dtypes are promoted.
        axis: the place of the new axis in the result.
        dtype: that of the result unless it is the promoted one.
        casting: which casts to it are allowed, as for NumPy.

    Returns: a tensor with one axis more, as long as xs.

    Raises: ShapeError for no tensors, shapes that differ, or an axis that does not fit; DTypeError
    for a dtype that one of theirs is not cast to.

    Source: the array API standard, stack.

    >>> gg.evaluate(gg.stack([[1, 2], [3, 4]], axis=1))
    array([[1, 3],
           [2, 4]])
    """
    tensors = _joined(xs, "stack", dtype, casting)
    return apply(Stack(normal_axis(axis, tensors[0].ndim + 1)), *tensors)


@documented(Unstack)
def unstack(x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """x[0], x[1], ... along an axis, as one node.

    Parameters:
        x: at least one axis, any dtype.
        axis: an axis whose length is an int.

    Returns: a tuple of tensors without the axis, of the dtype of x.

    Raises: ShapeError if x has no such axis, or its length is open.

    Source: the array API standard, unstack.

    >>> gg.evaluate(gg.unstack([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    rows = x.shape[axis]
    if not isinstance(rows, int):
        raise ShapeError(
            f"unstack along axis {axis} of {x.name}: {x.type!r}, built at {x.where}: it makes a "
            f"tensor for each row, and the number of rows, {_shown(rows)}, is only known at run "
            "time. Loop over the rows with gg.scan or gg.map, or give the placeholder that "
            "length as an int"
        )
    return build(Unstack(axis, rows), (x,)).outputs if rows else ()


def _shown(d: Dim) -> str:
    return "?" if d is None else str(d)


class Split(Op):
    """x cut along an axis. Gradient: dx = concat(dys, axis).

    at  the places of the cuts, or the number of equal parts
    """

    axis: int
    at: Any
    memory = Memory(view=True, alias=True)
    onnx = Onnx("Split")
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape):
            raise ShapeError(f"split along axis {self.axis} of {x!r}")
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        lengths = self._lengths(x)
        return tuple(tensor_type((*before, d, *after), x.dtype) for d in lengths)

    def _lengths(self, x: TensorType) -> list[Dim]:
        total = x.shape[self.axis]
        if isinstance(self.at, int):
            if isinstance(total, int) and total % self.at:
                raise ShapeError(f"{x!r} does not split into {self.at} equal parts")
            return [computed(lambda n: n // self.at, total)] * self.at
        cuts = [0, *self.at]
        last = computed(lambda n: n - cuts[-1], total)
        parts = [*(b - a for a, b in zip(cuts, self.at)), last]
        if any(d is not None and is_negative(d) for d in parts):
            raise ShapeError(f"split of {x!r} at {self.at}")
        return parts

    def kernel(self, xp: Any, x: Any) -> Any:
        at = self.at if isinstance(self.at, int) else list(self.at)
        return _outputs(xp.split(x, at, axis=self.axis))

    def to_onnx(self, to: Any, x: Any) -> Any:
        if isinstance(self.at, int):
            n = x.shape[self.axis]
            if isinstance(n, int):
                sizes = [n // self.at] * self.at
                return to.Split(x, sizes, axis=self.axis, outputs=self.at)
            return to.Split(x, axis=self.axis, outputs=self.at, num_outputs=self.at)
        cuts = [0, *self.at]
        parts = [b - a for a, b in pairwise(cuts)]
        rest = to.Sub(to.length(x, self.axis), [cuts[-1]])
        return to.Split(x, to.lengths(*parts, rest), axis=self.axis, outputs=len(cuts))

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        return (apply(Concat(self.axis), *dys),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, (1,)), [rng.normal(size=(3,))]
        yield cls(1, (0, 2, 2)), [rng.normal(size=(2, 4))]
        yield cls(1, 2), [rng.normal(size=(2, 4)).astype("float32")]


@documented(Split)
def split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """x cut along an axis.

    Parameters:
        x: at least one axis, any dtype.
        indices_or_sections: an int, the number of equal parts; or the places of the cuts, ints and
            lengths. As in NumPy a part is x[a:b] of two places that follow, also where b is before
            a.
        axis: the axis.

    Returns: a tuple of tensors, of the dtype of x; where they overlap, their gradients add up.

    Raises: ShapeError if x has no such axis, or where the parts would not be equal; for an open
    number of parts.

    Source: numpy.split.

    >>> gg.evaluate(gg.split([1, 2, 3, 4], [1, 3]))
    (array([1]), array([2, 3]), array([4]))
    """
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    total = x.shape[axis]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        if parts < 1:
            raise ShapeError(f"split of {x.type!r} into {parts} parts")
        return build(Split(axis, parts), (x,)).outputs
    if isinstance(indices_or_sections, Length):
        raise ShapeError(
            f"split of {x.name}: {x.type!r} into {indices_or_sections} parts: the number of "
            "tensors is only known at run time. Give the split points in a list, or loop over "
            "the parts with gg.scan"
        )
    at = [count("a place to split at", i) for i in listed(indices_or_sections)]
    cuts = [_cut(i, total) for i in at]
    if _in_order([0, *cuts], total):
        return build(Split(axis, tuple(cuts)), (x,)).outputs
    keys = [normal_slice(slice(*ends), total) for ends in pairwise([0, *cuts, None])]
    return tuple([apply(Slice((*(FULL,) * axis, key)), x) for key in keys])


def _cut(place: Any, total: Dim) -> Any:
    """A place to cut at as an int from the front, where that is known."""
    if isinstance(total, int) and not isinstance(place, Length):
        return slice(place).indices(total)[1]
    return place


def _in_order(cuts: list[Any], total: Dim) -> bool:
    """Whether places to cut at follow each other, inside of the axis where its length is open."""
    if total is None:
        return all(isinstance(cut, int) for cut in cuts) and cuts == sorted(cuts)
    return all(at_least(b, a) for a, b in pairwise([*cuts, total]))
