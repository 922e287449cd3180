"""Indexing with arrays (gather), and adding at indices (scatter)."""

from __future__ import annotations

from typing import NamedTuple

from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import Dim, broadcast, check_unmasked, compatible, elements
from ..base import (
    NO_GRAD,
    Any,
    Constant,
    Derivative,
    DTypeError,
    Full,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    ZerosLike,
    apply,
    as_tensor,
    cast,
    constant,
    kind_of,
    like,
    np,
    tensor_type,
    wants,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..elementwise.bounds import minimum
from ..onnx_places import places_of, scattered
from .places import mask_places
from .reshaping import (
    broadcast_to,
    expand_dims,
    flatten,
    moveaxis,
    moved_order,
    normal_axis,
    squeeze,
)
from .slicing import (
    FULL,
    Key,
    Slice,
    check_index,
    normal_int,
    normal_slice,
    sliced,
    trimmed,
)
from .updates import plus_along, plus_at

__all__ = [
    "add_at",
    "getitem",
    "scatter_add",
]

AT = "at"
"""In the key of GetItem and AddAt: the next of the index inputs."""

Places = tuple[tuple[int, int], ...]
"""(input, axis), as of `Op.index_inputs`."""


def zeros_of(x: Tensor) -> Tensor:
    """Zeros of the type of x, for an adjoint to add into."""
    if x.type.static:
        return apply(Full(x.shape, 0, x.dtype))
    return apply(ZerosLike(), x)


def check_integers(*indices: TensorType) -> None:
    """DTypeError for indices that are not integers."""
    for index in indices:
        if kind_of(index.dtype) not in "iu":
            raise DTypeError(f"an index is an integer, got {index!r}")


def as_places(indices: Tensor) -> Tensor:
    """Indices as ops take them: of uint64, those beyond int64 become its greatest number, which no
    length reaches, and not a negative one."""
    if indices.dtype.name != "uint64":
        return indices
    return cast(minimum(indices, 2**63 - 1), "int64")


# --- one array of indices along one axis -----------------------------------------------------


class Gather(Op):
    """y = x at the indices along an axis.

    Gradient: dx = dy added up at the indices, zeros elsewhere.

    x: (..., N, ...)    indices: any shape, -N to N - 1, in place of the axis in y
    """

    axis: int
    onnx = Onnx("Gather", axis="axis")
    linear = (0,)
    derivative = Derivative(relevance="moved")
    flop_free = True

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """The indices."""
        return ((1, self.axis),)

    def infer(self, x: TensorType, indices: TensorType) -> Types:
        check_integers(indices)
        if self.axis >= len(x.shape):
            raise ShapeError(f"gather along axis {self.axis} of {x!r}")
        return (tensor_type(_gathered(x.shape, indices.shape, self.axis), x.dtype),)

    def kernel(self, xp: Any, x: Any, indices: Any) -> Any:
        return xp.take(x, indices, axis=self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, indices = node.inputs
        return apply(ScatterAdd(self.axis), zeros_of(x), indices, dy), NO_GRAD

    def batch(self, batch: Batch) -> Outputs:
        if not batch.flags[1]:
            return batch.build(Gather(self.axis + 1), *batch.inputs)
        if not batch.flags[0]:
            return (moveaxis(apply(self, *batch.inputs), self.axis, 0),)
        return GetItem((*(FULL,) * self.axis, AT)).batch(batch)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3, 2)), np.array([0, 2, 0, -1])]
        yield cls(1), [rng.normal(size=(2, 3)), np.array([[1, 1], [0, 2]])]
        yield cls(0), [rng.normal(size=(3,)).astype("float32"), np.array(1)]
        yield cls(1), [rng.normal(size=(2, 3, 2)), np.zeros((0,), "int64")]


class ScatterAdd(Op):
    """y = x with updates added at the indices along an axis.

    Gradient: dx = dy, dupdates = take(dy, indices, axis).

    x: (..., N, ...)    indices: any shape    updates: the shape of x, with that of indices in
    place of the axis. An index named twice is added twice.
    """

    axis: int
    linear = (0, 2)

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """The indices."""
        return ((1, self.axis),)

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> Types:
        check_integers(indices)
        if self.axis >= len(x.shape):
            raise ShapeError(f"scatter_add along axis {self.axis} of {x!r}")
        check_updates(x, _gathered(x.shape, indices.shape, self.axis), updates)
        return (x,)

    def kernel(self, xp: Any, x: Any, indices: Any, updates: Any) -> Any:
        return plus_along(xp.asarray(x), self.axis, indices, updates)

    def to_onnx(self, to: Any, x: Any, indices: Any, updates: Any) -> Any:
        return scattered(to, x, (*(FULL,) * self.axis, AT), updates, [indices], "add")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        indices, updates = node.inputs[1:]
        back = apply(Gather(self.axis), dy, indices) if wants(updates) else NO_GRAD
        return dy, NO_GRAD, back

    def batch(self, batch: Batch) -> Outputs:
        x, indices, updates = batch.inputs
        if batch.flags[1]:
            flags = (batch.flags[0], batch.flags[2], True)
            op = AddAt((*(FULL,) * self.axis, AT))
            return op.batch(batch.of((x, updates, indices), flags))
        x, updates = batch.every(0, 2)
        return batch.build(ScatterAdd(self.axis + 1), x, indices, updates)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is added."""
        return elements(inputs[2])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x = rng.normal(size=(3, 2))
        yield cls(0), [x, np.array([0, 2, 0, -1]), rng.normal(size=(4, 2))]
        yield cls(1), [x, np.array([[1, 1], [0, -2]]), rng.normal(size=(3, 2, 2))]
        yield cls(0), [x.astype("float32"), np.array(1), np.ones((2,), "float32")]
        yield cls(0), [x, np.zeros((0,), "int64"), np.zeros((0, 2))]


def _gathered(shape: Shape, indices: Shape, axis: int) -> Shape:
    return shape[:axis] + indices + shape[axis + 1 :]


def check_updates(x: TensorType, expected: Shape, updates: TensorType) -> None:
    """ShapeError unless updates have the dtype of x and this shape."""
    if updates.dtype is not x.dtype or not compatible(expected, updates.shape):
        wanted = tensor_type(expected, x.dtype)
        raise ShapeError(f"adding {updates!r} into {x!r} at these indices needs {wanted!r}")


# --- any mixture of slices and arrays of indices ---------------------------------------------


class GetItem(Op):
    """y = x[key], where the key has index arrays among integers, slices and new axes.

    Gradient: dx = dy added up at the key, zeros elsewhere.

    Inputs: x, and the index arrays in the order of their AT in the key. The shape is NumPy's: the
    arrays and integers broadcast together; that shape stands where they do, or in front if slices
    or new axes are between them.
    """

    key: Key
    memory = Memory(view=True)
    linear = (0,)
    derivative = Derivative(relevance="moved")

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """Those of the key."""
        return indexed(self.key, 1)

    def infer(self, x: TensorType, *indices: TensorType) -> Types:
        check_integers(*indices)
        return (tensor_type(picked_shape(x, self.key, [i.shape for i in indices]), x.dtype),)

    def kernel(self, xp: Any, x: Any, *indices: Any) -> Any:
        return x[filled_key(self.key, indices)]

    def to_onnx(self, to: Any, x: Any, *indices: Any) -> Any:
        return to.GatherND(x, places_of(to, x, self.key, indices))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, *indices = node.inputs
        dx = apply(AddAt(self.key), zeros_of(x), dy, *indices)
        return dx, *(NO_GRAD for _ in indices)

    def batch(self, batch: Batch) -> Outputs:
        x = batch.inputs[0]
        key, indices, here, there = batched_key(self.key, batch, 1, batch.flags[0])
        return (moveaxis(apply(GetItem(key), x, *indices), here, there),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x = rng.normal(size=(2, 3, 4))
        i, j = np.array([1, 0, 1]), np.array([[0], [2]])
        yield cls((AT, AT)), [x, i, j]
        yield cls((AT, FULL, AT)), [x, i, j]
        yield cls(((None, None, -1), None, AT, 1)), [x, j]
        yield cls((0, (1, None, None), AT)), [x.astype("float32"), i]
        yield cls((AT, 1, AT)), [x, np.array(1), np.array(-1)]


class AddAt(Op):
    """y = x with updates added at the key. Gradient: dx = dy, dupdates = dy[key].

    Inputs: x, updates, and the index arrays of the key as for GetItem.
    """

    key: Key
    linear = (0, 1)

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """Those of the key."""
        return indexed(self.key, 2)

    def infer(self, x: TensorType, updates: TensorType, *indices: TensorType) -> Types:
        check_integers(*indices)
        check_updates(x, picked_shape(x, self.key, [i.shape for i in indices]), updates)
        return (x,)

    def kernel(self, xp: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return plus_at(xp.asarray(x), filled_key(self.key, indices), updates)

    def to_onnx(self, to: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return scattered(to, x, self.key, updates, indices, "add")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        _, updates, *indices = node.inputs
        back = apply(reader_of(self.key), dy, *indices) if wants(updates) else NO_GRAD
        return dy, back, *(NO_GRAD for _ in indices)

    def batch(self, batch: Batch) -> Outputs:
        x, updates = batch.every(0, 1)
        key, indices, here, there = batched_key(self.key, batch, 2, True)
        return batch.build(AddAt(key), x, moveaxis(updates, there, here), *indices)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is added."""
        return elements(inputs[1])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x, i = rng.normal(size=(2, 3, 4)), np.array([1, 0, 1])
        yield cls((AT, AT)), [x, rng.normal(size=(3, 4)), i, i]
        yield cls((AT, FULL, AT)), [x, rng.normal(size=(3, 3)), i, i]
        yield cls((0, (1, None, None))), [x, rng.normal(size=(2, 4))]


def batched_key(
    key: Key, batch: Batch, start: int, of_batch: bool
) -> tuple[Key, Outputs, tuple[int, ...], tuple[int, ...]]:
    """The key for a batch with its indices, and which axes of what it picks to move where.

    start: the place of the first index input. of_batch: whether x has the batch axis. NumPy puts
    the axes of the indices where they stand in the key if they stand together, else in front.
    """
    arrays, together = arrays_of(key)
    together = together or AT not in key
    at = arrays[0] if together and arrays else 0
    rank = max((len(t.shape) for t in batch.types[start:]), default=0)
    if not any(batch.flags[start:]):
        axes = () if together else (rank,), () if together else (0,)
        return (FULL, *key), batch.inputs[start:], *axes
    indices = batch.aligned(*range(start, len(batch.inputs)))
    if not of_batch:
        return key, indices, (at,), (0,)
    rows = expand_dims(batch.numbers(), tuple(range(1, 1 + rank)))
    moved = tuple(range(1, 1 + rank))
    return (AT, *key), (rows, *indices), moved, tuple([i + at for i in moved])


def indexed(key: Key, start: int) -> Places:
    """(input, axis) for each AT of a key; start: the place of the first index input."""
    axes = [item for item in key if item is not None]
    return tuple(enumerate([axis for axis, item in enumerate(axes) if item == AT], start))


def arrays_of(key: Key) -> tuple[list[int], bool]:
    """Where a key has index arrays and integers, and whether they stand together."""
    arrays = [i for i, item in enumerate(key) if item == AT or type(item) is int]
    return arrays, not arrays or arrays[-1] - arrays[0] == len(arrays) - 1


def reader_of(key: Key) -> Op:
    """What reads the elements that a key names."""
    return GetItem(key) if AT in key else Slice(key)


def filled_key(key: Key, indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key as NumPy takes it, with the indices in their places."""
    supply = iter(indices)
    out = [slice(*i) if type(i) is tuple else next(supply) if i == AT else i for i in key]
    return (*out, ...)


def picked_shape(x: TensorType, key: Key, indices: list[Shape]) -> Shape:
    """The shape of x[key], by NumPy's rules."""
    if AT not in key:
        return sliced(x, key)
    arrays, together = arrays_of(key)
    basic = [(0, 1, None) if i in arrays else item for i, item in enumerate(key)]
    _check_ints(x, key)
    dims = sliced(tensor_type(_ones_at(x.shape, key), x.dtype), tuple(basic))
    kept: list[Dim] = [d for i, d in enumerate(dims) if i not in arrays]
    at = arrays[0] if together else 0
    return (*kept[:at], *broadcast(indices), *kept[at:])


def _ones_at(shape: Shape, key: Key) -> Shape:
    """The shape with length 1 on every axis that an array or integer reads."""
    items = [item for item in key if item is not None]
    if len(items) > len(shape):
        raise ShapeError(f"{len(items)} indices for {len(shape)} axes")
    reads: list[Dim] = [d if type(i) is tuple else 1 for i, d in zip(items, shape)]
    return (*reads, *shape[len(items) :])


def _check_ints(x: TensorType, key: Key) -> None:
    items = [item for item in key if item is not None]
    for axis, item in enumerate(items[: len(x.shape)]):
        if type(item) is int:
            check_index(x, axis, item)


# --- x[...] ----------------------------------------------------------------------------------


@documented(GetItem)
def getitem(x: TensorLike, key: Any, /) -> Tensor:
    """x[key], as NumPy indexes.

    How many elements a computed mask picks is known only at run time: the result has an unknown
    length, which runs on NumPy and LLVM. On JAX, and under vmap, it is an error; use gg.where
    there, or gg.nonzero(mask, size=...).

    Parameters:
        x: any shape and dtype.
        key: an integer, slice, None, ..., integer tensor or array, mask (a bool tensor or array),
            or several in a tuple.

    Returns: what NumPy's x[key] has for shape; dtype of x.

    Raises: ShapeError for too many indices, one that is out of bounds, or a mask that does not fit;
    DTypeError for an invalid index. A run raises IndexError for a computed index that is out of
    bounds, or a computed mask that does not fit.

    Source: NumPy's page "Indexing on ndarrays".

    >>> gg.evaluate(gg.getitem([[1, 2], [3, 4]], (slice(None), 1)))
    array([2, 4])
    """
    x = as_tensor(x)
    if type(key) is int:
        return apply(Slice((normal_int(key, x.shape[0] if x.shape else None),)), x)
    items = key if type(key) is tuple else (key,)
    if len(items) == 1 and is_whole_mask(x, items[0]):
        x, mask = flatten(x), flatten(items[0])
        return apply(Gather(0), x, *mask_places(x, 0, mask))
    return read_at(places_at(x, items))


def is_whole_mask(x: Tensor, part: Any) -> bool:
    """Whether it is a computed mask for all axes of x, of known lengths."""
    computed = isinstance(part, Tensor) and kind_of(part.dtype) == "b"
    return computed and part.shape == x.shape and x.type.static


class Indexed(NamedTuple):
    """The elements of x that a key names, as ops read and write them."""

    x: Tensor
    """With the new axes, on which masks without axes stand."""
    key: Key
    indices: list[Tensor]
    shape: Shape
    """NumPy's of x[key]."""
    start: int
    """The first of its axes that index arrays make."""
    new: tuple[int, ...]
    """The new axes of x."""
    moved: tuple[list[int], list[int]]
    """Which axes of what ops read stand elsewhere in x[key], and where."""


def places_at(x: Tensor, items: tuple[Any, ...]) -> Indexed:
    """The elements of x that the parts of a key name."""
    parts = _full_key(x, items)
    new = _axes_of_single_masks(parts)
    x = expand_dims(x, new)
    key, indices, gap = _normal_key(x, parts)
    shapes = [i.shape for i in indices]
    shape = picked_shape(x.type, key, shapes)
    _check_constants(x.type, key, indices)
    arrays, together = arrays_of(key)
    at = arrays[0] if arrays and together else 0
    # In NumPy an Ellipsis that stands for no axis keeps arrays apart: theirs are the first.
    parted = gap is not None and arrays and arrays[0] < gap <= arrays[-1]
    start = 0 if parted else at
    axes = range(max(map(len, shapes), default=0) if start != at else 0)
    moved = [a + at for a in axes], [a + start for a in axes]
    shape = tuple([shape[a] for a in moved_order(len(shape), *moved)])
    return Indexed(x, key, indices, shape, start, new, moved)


def read_at(places: Indexed) -> Tensor:
    """x[key]."""
    return moveaxis(_read(places.x, places.key, places.indices), *places.moved)


def updated_at(places: Indexed, kind: Any, updates: Tensor) -> Tensor:
    """x with updates of the shape of x[key] put in by this type of op."""
    updates = moveaxis(updates, *reversed(places.moved))
    y = apply(kind(places.key), places.x, updates, *places.indices)
    return squeeze(y, places.new) if places.new else y


def _read(x: Tensor, key: Key, indices: list[Tensor]) -> Tensor:
    if not indices:
        return apply(Slice(key), x) if key else x
    if key[-1] == AT and all(item == FULL for item in key[:-1]):
        return apply(Gather(len(key) - 1), x, *indices)
    return apply(GetItem(key), x, *indices)


def _full_key(x: Tensor, items: tuple[Any, ...]) -> list[Any]:
    """The parts of a key, its Ellipsis only where that stands for no axis."""
    parts = [p if is_basic(p) else as_index(p) for p in items]
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        raise ShapeError("an index can have one Ellipsis")
    used = sum(map(_axes_read, parts))
    if used > x.ndim:
        raise ShapeError(f"{used} indices for the {x.ndim} axes of {x.type!r}, built at {x.where}")
    if dots and used < x.ndim:
        parts[dots[0] : dots[0] + 1] = [slice(None)] * (x.ndim - used)
    return parts


def _axes_of_single_masks(parts: list[Any]) -> tuple[int, ...]:
    """New axes of x on which masks without axes stand; in the parts they become vectors of one."""
    axes, axis = [], 0
    for i, part in enumerate(parts):
        if is_mask(part) and part.ndim == 0:
            parts[i] = part.reshape((1,))
            axes.append(axis)
        axis += _axes_read(parts[i])
    return tuple(axes)


def _normal_key(x: Tensor, parts: list[Any]) -> tuple[Key, list[Tensor], int | None]:
    """The key as ops hold it, its index tensors, and where an Ellipsis of no axis was in it."""
    key: list[Any] = []
    indices: list[Tensor] = []
    axis, gap = 0, None
    for part in parts:
        if part is Ellipsis:
            gap = len(key)
            continue
        _add_part(x, axis, part, key, indices)
        axis += _axes_read(part)
    return trimmed(key), indices, gap


def is_basic(part: Any) -> bool:
    """Whether a part of a key is not an index tensor or mask."""
    return (
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, int | np.integer) and not isinstance(part, bool))
    )


def _axes_read(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if is_mask(part) else 1


def is_mask(part: Any) -> bool:
    """Whether a part of a key, of which arrays are settled, is a mask."""
    return isinstance(part, Tensor | np.ndarray) and kind_of(part.dtype) == "b"


def as_index(part: Any) -> Any:
    """An index tensor, or a NumPy array, of integers or bools."""
    if isinstance(part, Tensor):
        if kind_of(part.dtype) != "b":
            check_integers(part.type)
        return part
    if isinstance(part, Length):
        return as_tensor(part)
    if isinstance(part, list | tuple) and any(isinstance(p, Tensor) for p in part):
        raise DTypeError("a list of tensors is not an index; use gg.stack")
    check_unmasked(part)
    array = np.asarray(part)
    if isinstance(part, list | tuple) and not array.size:
        return array.astype(np.int64)
    if kind_of(array.dtype) not in "iub":
        raise DTypeError(f"an index is an integer, slice, None, ... or array, got {part!r}")
    return array


def _check_constants(x: TensorType, key: Key, indices: list[Tensor]) -> None:
    """ShapeError for a constant out of bounds; as in NumPy, not of arrays that pick nothing."""
    picked = broadcast([i.shape for i in indices]) if indices else ()
    some = all(isinstance(d, int) and d > 0 for d in picked)
    for place, axis in indexed(key, 0):
        op, shape = indices[place].node.op, indices[place].shape
        if isinstance(op, Constant) and (some or not shape):
            _check_bounds(x, axis, op.value)


def _check_bounds(x: TensorType, axis: int, index: Any) -> None:
    for bound in (index.min(), index.max()) if index.size else ():
        check_index(x, axis, int(bound))


def _add_part(x: Tensor, axis: int, part: Any, key: list[Any], indices: list[Tensor]) -> None:
    if part is None:
        key.append(None)
    elif isinstance(part, slice):
        key.append(normal_slice(part, x.shape[axis]))
    elif isinstance(part, Tensor):
        places = mask_places(x, axis, part) if kind_of(part.dtype) == "b" else (as_places(part),)
        key.extend([AT] * len(places))
        indices.extend(places)
    elif not isinstance(part, np.ndarray):
        key.append(normal_int(part, x.shape[axis]))
    elif kind_of(part.dtype) == "b":
        if x.shape[axis : axis + part.ndim] != part.shape:
            raise ShapeError(
                f"a mask of shape {list(part.shape)} does not fit axis {axis} of {x.type!r}; "
                "the lengths have to be known and equal"
            )
        key.extend([AT] * part.ndim)
        indices.extend(constant(places) for places in part.nonzero())
    else:
        key.append(AT)
        indices.append(constant(part))


@documented(AddAt)
def add_at(x: TensorLike, key: Any, updates: TensorLike) -> Tensor:
    """x with updates added at x[key]; what the key names twice is added twice.

    Parameters:
        x: any shape and dtype.
        key: as in x[key].
        updates: cast to the dtype of x, and broadcast to x[key].

    Returns: same shape and dtype as x.

    Raises: ShapeError for a key that does not fit x, or updates that do not broadcast; DTypeError
    for an invalid index, and for updates of a kind that x cannot hold, such as floats for integers.

    Source: numpy.add.at.

    >>> gg.evaluate(gg.add_at([1.0, 2.0, 3.0], slice(1, None), 10.0))
    array([ 1., 12., 13.])
    """
    x = as_tensor(x)
    places = places_at(x, key if type(key) is tuple else (key,))
    return updated_at(places, AddAt, _fitted(updates, x, places.shape))


KIND_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Which kind of numbers holds which."""


def _fitted(updates: TensorLike, x: Tensor, shape: Shape) -> Tensor:
    """updates in the dtype of x, broadcast where the shape is known.

    DTypeError where that is of a lesser kind: floats are not truncated.
    """
    fitted = like(updates, x)
    given = updates.dtype if isinstance(updates, Tensor) else np.asarray(updates).dtype
    if KIND_ORDER[kind_of(given)] > KIND_ORDER[kind_of(x.dtype)]:
        raise DTypeError(
            f"updates of {given} are added into {x.name}: {x.type!r} (built at {x.where}), which "
            "cannot hold them. Cast one of them first."
        )
    if compatible(fitted.shape, shape):
        return fitted
    if None in shape:
        raise ShapeError(
            f"updates of {fitted.type!r} cannot be broadcast to {list(shape)}, which depends on "
            "values; give updates in that shape"
        )
    return broadcast_to(fitted, shape)


@documented(ScatterAdd)
def scatter_add(x: TensorLike, indices: TensorLike, updates: TensorLike, axis: int = 0) -> Tensor:
    """x with updates added at indices along an axis; an index named twice is added twice.

    Parameters:
        x: any shape and dtype.
        indices: integers from -N to N - 1, of any shape.
        updates: cast to the dtype of x, and broadcast to its shape with that of indices in place of
            the axis.
        axis: an axis of length N.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axis, or updates do not broadcast; DTypeError for indices
    that are not integers, and for updates of a kind that x cannot hold, such as floats for
    integers. A run raises IndexError for an index that is out of bounds.

    >>> gg.evaluate(gg.scatter_add([1.0, 2.0, 3.0], [0, 0, 2], 10.0))
    array([21.,  2., 13.])
    """
    x, indices = as_tensor(x), as_places(as_tensor(indices))
    axis = normal_axis(axis, x.ndim)
    shape = _gathered(x.shape, indices.shape, axis)
    return apply(ScatterAdd(axis), x, indices, _fitted(updates, x, shape))


def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """x at indices along an axis.

    Parameters:
        x: any shape and dtype.
        indices: integers from -N to N - 1, of any shape, which takes the place of the axis.
        axis: an axis of length N; None: x is flattened first.

    Returns: x so, of its dtype.

    Raises: ShapeError if x has no such axis, or for an index that is known to be out of bounds;
    DTypeError for indices that are not integers. A run raises IndexError for a computed index that
    is out of bounds.

    Gradient: dx = dy added up at the indices, zeros elsewhere.

    Source: numpy.take; the array API standard, take.

    >>> gg.evaluate(gg.take([10, 20, 30], [2, 0, 2]))
    array([30, 10, 30])
    """
    x, indices = as_tensor(x), as_tensor(indices)
    if axis is None:
        return take(flatten(x), indices, 0)
    axis = normal_axis(axis, x.ndim)
    if isinstance(indices.node.op, Constant):
        check_integers(indices.type)
        _check_bounds(x.type, axis, indices.node.op.value)
    return apply(Gather(axis), x, as_places(indices))
