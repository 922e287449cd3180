"""Updates of elements, gg.at(x)[key].set(values), and slices at computed positions."""

from __future__ import annotations

from operator import sub
from typing import TYPE_CHECKING

from ...base.bounds import at_least
from ...base.errors import ShapeError, SymbolicError, did_you_mean
from ...ir.types import Shape, computed, elements, is_negative
from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Node,
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
    cast,
    count,
    is_inexact,
    kind_of,
    like,
    np,
    tensor_type,
    wants,
)
from ..batching import Batch, Outputs
from ..create.creation import counting, ones_like
from ..elementwise.arithmetic import add, divide, multiply
from ..elementwise.bounds import maximum, minimum
from ..elementwise.logic import (
    WHERE,
    Equal,
    NotEqual,
    greater_equal,
    less,
    logical_and,
    logical_or,
    where,
)
from ..elementwise.powers import power
from ..onnx_places import places_of, scattered
from ..reduce.reductions import size_over
from ..shape.indexing import AT as AN_ARRAY
from ..shape.indexing import (
    KIND_ORDER,
    AddAt,
    Indexed,
    Places,
    as_index,
    as_places,
    batched_key,
    check_integers,
    filled_key,
    getitem,
    indexed,
    is_basic,
    is_mask,
    picked_shape,
    places_at,
    read_at,
    reader_of,
    take,
    updated_at,
    zeros_of,
)
from ..shape.reshaping import (
    broadcast_like,
    broadcast_to,
    expand_dims,
    flatten,
    moveaxis,
    normal_axis,
    reshape_like,
)
from ..shape.slicing import FULL, Key
from ..shape.updates import extreme_at, set_at, times_at, winners

__all__ = ["At", "AtIndex", "at", "dynamic_slice", "dynamic_update_slice", "put_along_axis"]


# --- ops ---------------------------------------------------------------------------------------


class Updating(Op, abstract=True):
    """Family: x with updates put in at the key.

    Inputs: x, updates of the shape of x[key], and the index arrays of the key as for GetItem.
    """

    key: Key

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """Those of the key."""
        return indexed(self.key, 2)

    def infer(self, x: TensorType, updates: TensorType, *indices: TensorType) -> Types:
        check_integers(*indices)
        shape = picked_shape(x, self.key, [i.shape for i in indices])
        expected = tensor_type(shape, x.dtype)
        if updates.dtype is not x.dtype or len(updates.shape) != len(shape):
            raise ShapeError(f"putting {updates!r} into {x!r} at {self.key} needs {expected!r}")
        _fits(updates.shape, shape, expected)
        return (x,)

    def batch(self, batch: Batch) -> Outputs:
        x, updates = batch.every(0, 1)
        key, indices, here, there = batched_key(self.key, batch, 2, True)
        return batch.build(self.replace(key=key), x, moveaxis(updates, there, here), *indices)

    def read(self, t: Tensor, node: Node) -> Tensor:
        """t at the key."""
        return apply(reader_of(self.key), t, *node.inputs[2:])

    def added(self, t: Tensor, updates: Tensor, node: Node) -> Tensor:
        """t with updates added at the key."""
        return apply(AddAt(self.key), t, updates, *node.inputs[2:])


def _fits(given: Shape, shape: Shape, expected: TensorType) -> None:
    for a, b in zip(given, shape):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise ShapeError(f"updates of shape {list(given)} where {expected!r} is needed")


class SetAt(Updating):
    """y = x with updates at the key; of what is named twice the last counts.

    Gradient: dx = dy, zero at the key; dupdates = dy[key], zero for updates that were not the
        last.
    """

    linear = (0, 1)
    derivative = Derivative(relevance="moved")
    flop_free = True

    def kernel(self, xp: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return set_at(xp, x, filled_key(self.key, indices), updates, AN_ARRAY in self.key)

    def to_onnx(self, to: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return scattered(to, x, self.key, updates, indices)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, updates, *indices = node.inputs
        dx = apply(self, dy, zeros_of(updates), *indices) if wants(x) else NO_GRAD
        return dx, self._of_updates(node, dy), *(NO_GRAD for _ in indices)

    def _of_updates(self, node: Node, dy: Tensor) -> Any:
        x, updates, *indices = node.inputs
        if not wants(updates):
            return NO_GRAD
        if not indices:
            return self.read(dy, node)
        last = apply(LastAt(self.key), x, *indices)
        return apply(WHERE, last, self.read(dy, node), like(0, dy))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x, i = rng.normal(size=(2, 3, 4)), np.array([1, 0, 1])
        yield cls((AN_ARRAY, AN_ARRAY)), [x, rng.normal(size=(3, 4)), i, i]
        yield cls((AN_ARRAY, FULL, AN_ARRAY)), [x, rng.normal(size=(3, 3)), i, i]
        yield cls((0, (1, None, None))), [x.astype("float32"), np.ones((2, 4), "float32")]


class LastAt(Op):
    """Whether an element of x[key] is the last of those that name its place. Gradient: none.

    Inputs: x, read for its shape, and the index arrays of the key.
    """

    key: Key
    shape_only = (0,)
    differentiable = False
    flop_free = True

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """Those of the key."""
        return indexed(self.key, 1)

    def infer(self, x: TensorType, *indices: TensorType) -> Types:
        check_integers(*indices)
        shape = picked_shape(x, self.key, [i.shape for i in indices])
        return (tensor_type(shape, as_dtype(bool)),)

    def kernel(self, xp: Any, x: Any, *indices: Any) -> Any:
        places, last = winners(xp, x.shape, filled_key(self.key, indices))
        return last == places

    def to_onnx(self, to: Any, x: Any, *indices: Any) -> Any:
        """The elements counted in order, and the greatest count of each place."""
        places = places_of(to, x, self.key, indices)
        zeros = to.ConstantOfShape(to.shape(x), value=np.zeros(1, "int64"))
        shape = to.Shape(to.GatherND(zeros, places))
        size = to.ReduceProd(shape, [0], keepdims=0)
        count = to.Reshape(to.Range(np.int64(0), size, np.int64(1)), shape, allowzero=1)
        greatest = to.ScatterND(zeros, places, count, reduction="max")
        return to.Equal(to.GatherND(greatest, places), count)

    def batch(self, batch: Batch) -> Outputs:
        (x,) = batch.every(0)
        key, indices, here, there = batched_key(self.key, batch, 1, True)
        return (moveaxis(apply(LastAt(key), x, *indices), here, there),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x, i = rng.normal(size=(2, 3, 4)), np.array([1, 0, 1])
        yield cls((AN_ARRAY, AN_ARRAY)), [x, i, i]
        yield cls((0, AN_ARRAY, AN_ARRAY)), [x, np.array([[0], [-1]]), np.array([2, 2])]


class MultiplyAt(Updating):
    """y = x multiplied by updates at the key; what is named twice is multiplied twice.

    Gradient: dx = dy multiplied the same way; dupdates = dy x times the other updates of the
        place. A place with two updates of zero has a right second derivative, and none after that.
    """

    linear = (0,)

    def kernel(self, xp: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return times_at(x, filled_key(self.key, indices), updates)

    def to_onnx(self, to: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return scattered(to, x, self.key, updates, indices, "mul")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, updates, *indices = node.inputs
        dx = apply(self, dy, updates, *indices) if wants(x) else NO_GRAD
        dupdates = self._of_updates(node, dy * x) if wants(updates) else NO_GRAD
        return dx, dupdates, *(NO_GRAD for _ in indices)

    def _of_updates(self, node: Node, dyx: Tensor) -> Tensor:
        """dyx times the product of the other updates of each place, whichever of them are zero."""
        updates, *indices = node.inputs[1:]
        if not indices:
            return self.read(dyx, node)
        zero, nothing = apply(Equal(), updates, like(0, updates)), like(0, updates)
        safe = apply(WHERE, zero, like(1, updates), updates)
        others = self.read(apply(self, dyx, safe, *indices), node) / safe
        zeros, none = cast(zero, updates.dtype), zeros_of(dyx)
        count = self.read(self.added(none, zeros, node), node) - zeros
        zeros = apply(WHERE, zero, updates, nothing)
        one = self.read(self.added(none, zeros, node), node) - zeros
        factor = where(count == 1, one, cast(count == 0, updates.dtype))
        return others * factor

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each update."""
        return elements(inputs[1])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x, i = rng.normal(size=(2, 3)), np.array([1, 0, 1])
        yield cls((AN_ARRAY,)), [x, rng.normal(size=(3, 3)), i]
        yield cls((0, (1, None, None))), [x + 0.5j, np.array([1.0 - 1j, 0.5j])]


class MaximumAt(Updating):
    """y = the greatest of x and the updates of each place.

    Gradient: dy in equal shares to all that tie.

    NaN counts as the greatest.
    """

    def infer(self, x: TensorType, updates: TensorType, *indices: TensorType) -> Types:
        if kind_of(x.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {x!r}")
        return super().infer(x, updates, *indices)

    def kernel(self, xp: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return extreme_at("max", x, filled_key(self.key, indices), updates)

    def to_onnx(self, to: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return scattered(to, x, self.key, updates, indices, "max")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, updates, *indices = node.inputs
        (y,) = node.outputs
        mine, theirs = _ties(x, y), _ties(updates, self.read(y, node))
        count = self.added(cast(mine, dy.dtype), cast(theirs, dy.dtype), node)
        share, zero = dy / count, like(0, dy)
        return (
            apply(WHERE, mine, share, zero) if wants(x) else NO_GRAD,
            apply(WHERE, theirs, self.read(share, node), zero) if wants(updates) else NO_GRAD,
            *(NO_GRAD for _ in indices),
        )

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each update."""
        return elements(inputs[1])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x, i = rng.normal(size=(2, 3)), np.array([1, 0, 1])
        yield cls((AN_ARRAY,)), [x, rng.normal(size=(3, 3)), i]
        yield cls((0, (1, None, None))), [x, rng.normal(size=(2,))]


class MinimumAt(MaximumAt):
    """y = the least of x and the updates of each place.

    Gradient: dy in equal shares to all that tie.
    """

    index_inputs = Updating.index_inputs

    def kernel(self, xp: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return extreme_at("min", x, filled_key(self.key, indices), updates)

    def to_onnx(self, to: Any, x: Any, updates: Any, *indices: Any) -> Any:
        return scattered(to, x, self.key, updates, indices, "min")


def _ties(x: Tensor, best: Tensor) -> Tensor:
    """Where x is the best, or NaN."""
    return logical_or(apply(Equal(), x, best), apply(NotEqual(), x, x))


# --- gg.at -------------------------------------------------------------------------------------


class At:
    """What gg.at(x) returns: gg.at(x)[key] names elements of x.

    >>> type(gg.at([1.0, 2.0])), type(gg.at([1.0, 2.0])[0])
    (<class 'graphgrad.ops.arrays.at.At'>, <class 'graphgrad.ops.arrays.at.AtIndex'>)
    """

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> AtIndex:
        return AtIndex(self._x, key)

    def __setitem__(self, key: Any, values: Any) -> None:
        raise SymbolicError(
            "a tensor never changes: gg.at(x)[key] = values is written "
            "y = gg.at(x)[key].set(values)"
        )

    def __repr__(self) -> str:
        return f"gg.at({self._x!r})"


class AtIndex:
    """Elements of a tensor: each method gives a new tensor in which they are changed.

    values: cast to the dtype of x and broadcast to x[key]. What the key names twice: `set` takes
    the last, the others take each value in turn. A tie of `max` and `min` shares the gradient.

    >>> places = gg.at([1.0, 2.0, 3.0])[[0, 0, 2]]
    >>> gg.evaluate(places.set([7.0, 8.0, 9.0])), gg.evaluate(places.add(1.0))
    (array([8., 2., 9.]), array([3., 2., 4.]))
    """

    __slots__ = ("_parts", "_places", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        self._x = x
        self._parts = key if type(key) is tuple else (key,)
        self._places: Indexed | None = None

    if not TYPE_CHECKING:  # a checker would take it for every name it does not know

        def __getattr__(self, name):
            known = [n for n in vars(AtIndex) if not n.startswith("_")]
            hint = did_you_mean(name, known, f"It has {', '.join(known)}.")
            raise AttributeError(f"gg.at(x)[key] has no method {name!r}. {hint}")

    def __repr__(self) -> str:
        return f"gg.at({self._x!r})[{', '.join(map(repr, self._parts))}]"

    def set(self, values: TensorLike) -> Tensor:
        """x with the values there."""
        return self._updated(SetAt, values)

    def add(self, values: TensorLike) -> Tensor:
        """x with the values added there."""
        return self._updated(AddAt, values)

    def subtract(self, values: TensorLike) -> Tensor:
        """x with the values subtracted there."""
        return self.add(-as_tensor(values))

    def multiply(self, values: TensorLike) -> Tensor:
        """x multiplied there by the values."""
        return self._updated(MultiplyAt, values)

    def divide(self, values: TensorLike) -> Tensor:
        """x divided there by the values; x is floating or complex."""
        x = self._x
        if not is_inexact(x.dtype):
            raise DTypeError(f"a quotient does not fit {x.type!r}, built at {x.where}; cast it")
        return divide(x, self._of(ones_like(x)).multiply(values))

    def power(self, values: TensorLike) -> Tensor:
        """x to the power of the values there."""
        return power(self._x, self._of(ones_like(self._x)).multiply(values))

    def min(self, values: TensorLike) -> Tensor:
        """x with the less of it and the values there."""
        return self._updated(MinimumAt, values)

    def max(self, values: TensorLike) -> Tensor:
        """x with the greater of it and the values there."""
        return self._updated(MaximumAt, values)

    def get(self, *, mode: str | None = None, fill_value: Any = None) -> Tensor:
        """x[key].

        mode: what an index array out of bounds means. None: an IndexError of the run; "clip": the
        nearest element; "wrap": modulo the length; "fill": fill_value (NaN unless given, of
        integers 0). Negative indices count from the end first, as in x[key].
        """
        if mode is None:
            if fill_value is not None:
                raise ValueError('a fill_value goes with mode="fill"')
            return getitem(self._x, self._parts)
        _check_mode(mode, fill_value)
        parts, inside = _within(self._x, self._parts, mode)
        picked = getitem(self._x, tuple(parts))
        if mode != "fill" or not inside:
            return picked
        return _filled_outside(picked, inside, parts, self._x, fill_value)

    def _of(self, x: Tensor) -> AtIndex:
        return AtIndex(x, self._parts)

    def _updated(self, kind: Any, values: TensorLike) -> Tensor:
        x = self._x
        if len(self._parts) == 1 and _is_computed_mask(self._parts[0]):
            return _where_masked(kind, x, self._parts[0], values)
        if self._places is None:
            self._places = places_at(x, self._parts)
        return updated_at(self._places, kind, _for_places(values, x, self._places))


def at(x: TensorLike) -> At:
    """gg.at(x)[key].set(values): x with some elements changed, as a new tensor.

    Other methods are `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max`, and `get`,
    which reads elements, with a mode for indices out of bounds.

    Parameters: x: any shape and dtype. The key is any that x[key] takes, masks included; values are
        cast to the dtype of x and broadcast to x[key].

    Returns: an object to index with [key]; its methods return a tensor of the shape and dtype of x.

    Raises: ShapeError for a key that does not fit x, or values that do not broadcast; DTypeError
        for an invalid index, and for values of a kind that x cannot hold, such as floats for
        integers. A run raises IndexError for a computed index that is out of bounds.

    Gradient: of `set`, dx = dy but zero at the key, dvalues = dy[key], zero for values that another
        one at the same place came after; of the others, that of the function at the key. Ties of
        `min` and `max` get equal shares.

    Source: jax.numpy.ndarray.at; of repeated indices `set` takes the last one, as NumPy does.

    >>> gg.evaluate(gg.at([[1.0, 2.0], [3.0, 4.0]])[:, 1].set(0.0))
    array([[1., 0.],
           [3., 0.]])
    """
    return At(as_tensor(x))


def put_along_axis(
    x: TensorLike, indices: TensorLike, values: TensorLike, axis: int | None = -1
) -> Tensor:
    """x with values put in where take_along_axis reads, as a new tensor: tensors never change.

    Parameters:
        x: at least one axis, any dtype.
        indices: integers from -N to N - 1, of the rank of x; lengths of 1 beside the axis are
            broadcast.
        values: cast to the dtype of x and broadcast to the shape of indices.
        axis: an axis of length N; None: x is flattened for it, and has its shape again after.

    Returns: same shape and dtype as x. Of indices named twice the last counts.

    Raises: ShapeError where the ranks differ, something does not broadcast, there is no such axis,
        or lengths of the other axes depend on values; DTypeError for indices that are not integers,
        and for values of a kind that x cannot hold. A run raises IndexError for an index that is
        out of bounds.

    Gradient: dx = dy but zero at the indices, dvalues = dy at the indices.

    Source: numpy.put_along_axis, which writes into x.

    >>> gg.evaluate(gg.put_along_axis([[1, 2], [3, 4]], [[1], [0]], 9, axis=1))
    array([[1, 9],
           [9, 4]])
    """
    x, indices = as_tensor(x), as_tensor(indices)
    if axis is None:
        return reshape_like(put_along_axis(flatten(x), indices, values, 0), x)
    axis = normal_axis(axis, x.ndim)
    beside = [d for i, d in enumerate(x.shape) if i != axis]
    if x.ndim != indices.ndim or None in beside:
        raise ShapeError(
            "put_along_axis takes indices of the rank of x, and other axes whose lengths do not "
            f"depend on values, got {x.type!r} with {indices.type!r}"
        )
    key: list[Any] = [
        indices if i == axis else expand_dims(counting(d), tuple(range(1, x.ndim - i)))
        for i, d in enumerate(x.shape)
    ]
    return at(x)[tuple(key)].set(values)


def _for_places(values: TensorLike, x: Tensor, places: Indexed) -> Tensor:
    """Values in the dtype of x and the shape of x[key]."""
    given = values.dtype if isinstance(values, Tensor) else np.asarray(values).dtype
    if (
        kind_of(given) not in KIND_ORDER
        or KIND_ORDER[kind_of(given)] > KIND_ORDER[kind_of(x.dtype)]
    ):
        raise DTypeError(
            f"values of {given} do not fit {x.name}: {x.type!r} (built at {x.where}). Cast one of "
            "them first."
        )
    updates = like(values, x)
    shape = places.shape
    if updates.shape == shape and None not in shape:
        return updates
    if None not in shape:
        return broadcast_to(updates, shape)
    return broadcast_like(updates, read_at(places))


def _is_computed_mask(part: Any) -> bool:
    return isinstance(part, Tensor) and kind_of(part.dtype) == "b"


def _where_masked(kind: Any, x: Tensor, mask: Tensor, values: TensorLike) -> Tensor:
    """x changed where a computed mask holds, by values that are the same for each place."""
    rest = x.ndim - mask.ndim
    given = values.ndim if isinstance(values, Tensor) else np.ndim(values)
    if rest < 0 or given > rest:
        raise ShapeError(
            f"with a computed mask of {mask.type!r} values have at most the {max(rest, 0)} axes of "
            f"x: {x.type!r} beside the mask, got {given}; use gg.where(mask, new, x)"
        )
    updates = _for_places(values, x, places_at(x, ()))
    make: dict[Any, Any] = {
        SetAt: lambda: updates,
        AddAt: lambda: add(x, updates),
        MultiplyAt: lambda: multiply(x, updates),
        MaximumAt: lambda: maximum(x, updates),
        MinimumAt: lambda: minimum(x, updates),
    }
    mask = expand_dims(mask, tuple(range(mask.ndim, x.ndim))) if rest else mask
    return where(mask, make[kind](), x)


# --- indices out of bounds -----------------------------------------------------------------------


_MODES = ("clip", "wrap", "fill")


def _check_mode(mode: str, fill_value: Any) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode is None or one of {', '.join(_MODES)}, got {mode!r}")
    if mode != "fill" and fill_value is not None:
        raise ValueError('a fill_value goes with mode="fill"')


def _within(x: Tensor, items: tuple[Any, ...], mode: str) -> tuple[list[Any], list[Tensor]]:
    """The parts of a key with indices that are in bounds, and where they were so before."""
    parts = [p if is_basic(p) else as_index(p) for p in items]
    counted = [p for p in parts if p is not None and p is not Ellipsis]
    if any(map(is_mask, counted)):
        raise DTypeError("a mask is never out of bounds; leave mode away")
    axis, inside = 0, []
    for i, part in enumerate(parts):
        if part is Ellipsis:
            axis = x.ndim - len([p for p in parts[i + 1 :] if p is not None])
        if part is None or part is Ellipsis:
            continue
        if not isinstance(part, slice) and axis < x.ndim:
            length = size_over(x, (axis,), as_dtype("int64"))
            parts[i], held = _in_bounds(as_tensor(part), length, mode)
            inside.append(held)
        axis += 1
    return parts, inside


def _in_bounds(index: Tensor, length: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """The index, negative ones from the end, made to be in bounds; and where it was so."""
    if mode == "wrap":
        return _wrapped(index, length), index
    index = cast(as_places(index), "int64")
    index = where(less(index, 0), index + length, index)
    held = logical_and(greater_equal(index, 0), less(index, length))
    return maximum(minimum(index, length - 1), 0), held


def _filled_outside(
    picked: Tensor, inside: list[Tensor], parts: list[Any], x: Tensor, fill_value: Any
) -> Tensor:
    """What was found, with the fill value where an index was out of bounds."""
    if fill_value is None:
        fill_value = np.nan if is_inexact(x.dtype) else 0
    held = inside[0]
    for other in inside[1:]:
        held = logical_and(held, other)
    behind = picked.ndim - held.ndim - places_at(x, tuple(parts)).start
    held = expand_dims(held, tuple(range(held.ndim, held.ndim + behind))) if behind else held
    return where(held, picked, like(fill_value, picked))


def indices_in_bounds(indices: Tensor, length: Tensor, mode: str) -> Tensor:
    """Indices for numpy.take with a mode: "wrap", or "clip", which knows no negative ones."""
    if mode == "wrap":
        return _wrapped(indices, length)
    if mode == "clip":
        return maximum(minimum(cast(as_places(indices), "int64"), length - 1), 0)
    raise ValueError(f"mode is 'raise', 'wrap' or 'clip', got {mode!r}")


def _wrapped(indices: Tensor, length: Tensor) -> Tensor:
    """Indices modulo the length, in their own kind of integers."""
    wide = "uint64" if kind_of(indices.dtype) == "u" else "int64"
    return cast(cast(indices, wide) % cast(length, wide), "int64")


# --- windows that move -------------------------------------------------------------------------


def dynamic_slice(x: TensorLike, starts: Any, sizes: Sequence[int]) -> Tensor:
    """A window of x of known size, at a place that is computed.

    Parameters:
        x: any shape and dtype.
        starts: the first index along each axis: a tensor (N,) of integers, or a sequence of 0-d
            tensors and ints; negative ones count from the end, and a window that would reach over
            an end is moved inside.
        sizes: the lengths of the window, one for each axis, at most those of x.

    Returns: a tensor of these lengths, dtype of x.

    Raises: ShapeError unless there is a start and a size for each axis, or for a size greater than
    a length; DTypeError for starts that are not integers.

    Gradient: dx = dy at the place of the window, zeros elsewhere.

    Source: jax.lax.dynamic_slice.

    >>> start = gg.constant(2)
    >>> gg.evaluate(gg.dynamic_slice([1.0, 2.0, 3.0, 4.0], [start], [2]))
    array([3., 4.])
    """
    x = as_tensor(x)
    for axis, index in _windows("dynamic_slice", x, starts, sizes):
        x = take(x, index, axis)
    return x


def dynamic_update_slice(x: TensorLike, update: TensorLike, starts: Any) -> Tensor:
    """x with a window overwritten, at a place that is computed.

    Parameters:
        x: any shape and dtype.
        update: of the rank of x; cast to its dtype.
        starts: the first index along each axis, as of dynamic_slice.

    Returns: same shape and dtype as x.

    Raises: ShapeError unless update fits and there is a start for each axis; DTypeError for starts
    that are not integers, and for an update of a kind that x cannot hold.

    Gradient: dx = dy, zero in the window; dupdate = dy in the window.

    Source: jax.lax.dynamic_update_slice.

    >>> start = gg.constant(3)
    >>> gg.evaluate(gg.dynamic_update_slice([1.0, 2.0, 3.0, 4.0], [7.0, 8.0], [start]))
    array([1., 2., 7., 8.])
    """
    x = as_tensor(x)
    update = update if isinstance(update, Tensor) else as_tensor(update)
    windows = _windows("dynamic_update_slice", x, starts, update.shape)
    key: list[Any] = [slice(None)] * x.ndim
    for i, (axis, index) in enumerate(windows):
        key[axis] = expand_dims(index, tuple(range(1, len(windows) - i)))
    moved = [axis for axis, _ in windows]
    if moved and moved != list(range(moved[0], moved[0] + len(moved))):
        update = moveaxis(update, moved, range(len(moved)))
    return at(x)[tuple(key)].set(update)


def _windows(what: str, x: Tensor, starts: Any, sizes: Any) -> list[tuple[int, Tensor]]:
    """(axis, indices) for each axis of which a window is not the whole."""
    if isinstance(starts, Tensor | np.ndarray):
        starts = [as_tensor(starts)[i] for i in range(x.ndim)]
    lengths, places = list(sizes), [as_tensor(s) for s in starts]
    if len(places) != x.ndim or len(lengths) != x.ndim:
        raise ShapeError(
            f"{what} of {x.type!r} needs a start and a size for each axis, got {len(places)} and "
            f"{len(lengths)}"
        )
    check_integers(*[s.type for s in places])
    return [
        (axis, _window(what, x, axis, start, size))
        for axis, (start, size) in enumerate(zip(places, lengths))
        if x.shape[axis] != size or size is None
    ]


def _window(what: str, x: Tensor, axis: int, start: Tensor, size: Any) -> Tensor:
    places, length = count(f"a size of {what}", size), x.shape[axis]
    missing = computed(sub, places, length)
    if is_negative(places) or (missing is not None and at_least(missing, 1)):
        raise ShapeError(f"{what}: a window of {places} does not fit axis {axis} of {x.type!r}")
    if start.ndim:
        raise ShapeError(f"{what}: a start is 0-d, got {start.type!r} for axis {axis}")
    total, start = size_over(x, (axis,), as_dtype("int64")), cast(start, "int64")
    start = where(less(start, 0), start + total, start)
    first = maximum(minimum(start, total - places), 0)
    return first + counting(places)
