"""NumPy's functions for stacking and splitting: rows, columns, blocks, parts."""

from __future__ import annotations

from itertools import accumulate, pairwise

from ...base.errors import ShapeError, SymbolicError
from ...base.length import Length
from ...ir.types import count_of, is_negative
from ..base import (
    Any,
    DTypeError,
    Sequence,
    Tensor,
    TensorLike,
    apply,
    array_of,
    as_tensor,
    constant,
    count,
    kind_of,
    like,
    np,
    promoted,
    tensor_type,
)
from ..create.creation import arange, zeros
from ..shape.indexing import take
from ..shape.joining import concat, split, tensors_of
from ..shape.padding import Pad, tile
from ..shape.reshaping import (
    broadcast_like,
    broadcast_to,
    expand_dims,
    flatten,
    listed,
    moveaxis,
    normal_axis,
    reshape,
    transpose,
)
from ..sources import identity

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "block_diag",
    "column_stack",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "resize",
    "vsplit",
    "vstack",
]


# --- at least so many axes ---------------------------------------------------------------------


def atleast_1d(*xs: TensorLike) -> Any:
    """Each x with one axis, if it has none.

    Parameters: *xs: any shapes and dtypes.

    Returns: a tensor; of several x, or none, a tuple of them.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy without the axis.

    Source: numpy.atleast_1d.

    >>> gg.atleast_1d(1.0).type
    float64[1]
    """
    return _each(xs, lambda x: x if x.ndim else expand_dims(x, 0))


def atleast_2d(*xs: TensorLike) -> Any:
    """Each x with two axes: what has fewer gets axes of length 1 in front.

    Parameters: *xs: any shapes and dtypes.

    Returns: a tensor; of several x, or none, a tuple of them.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy without these axes.

    Source: numpy.atleast_2d.

    >>> gg.atleast_2d([1.0, 2.0]).type
    float64[1, 2]
    """
    return _each(xs, lambda x: expand_dims(x, tuple(range(2 - x.ndim))))


def atleast_3d(*xs: TensorLike) -> Any:
    """Each x with three axes: a vector (N,) becomes (1, N, 1), a matrix (M, N) becomes (M, N, 1).

    Parameters: *xs: any shapes and dtypes.

    Returns: a tensor; of several x, or none, a tuple of them.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy without these axes.

    Source: numpy.atleast_3d.

    >>> gg.atleast_3d([1.0, 2.0]).type
    float64[1, 2, 1]
    """
    places = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(xs, lambda x: expand_dims(x, places.get(x.ndim, ())))


def _each(xs: Sequence[TensorLike], fn: Any) -> Any:
    made = tuple([fn(as_tensor(x)) for x in xs])
    return made[0] if len(made) == 1 else made


# --- joined ------------------------------------------------------------------------------------


def hstack(xs: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """The tensors one after the other along axis 1, vectors along axis 0.

    Parameters:
        xs: a sequence of tensors of one rank; dtypes are promoted.
        dtype: that of the result unless it is the promoted one.
        casting: which casts to it are allowed, as for NumPy.

    Returns: a tensor of the rank of xs, at least 1.

    Raises: ShapeError for no tensors, or lengths of the other axes that differ; DTypeError for a
    dtype that the promoted one is not cast to.

    Gradient: dxs = dy cut at the same places.

    Source: numpy.hstack.

    >>> gg.evaluate(gg.hstack([[1, 2], [3]]))
    array([1, 2, 3])
    """
    rows = [atleast_1d(x) for x in tensors_of(xs, "hstack")]
    return concat(rows, 0 if rows[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def vstack(xs: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """The tensors one below the other, along axis 0; vectors are rows.

    Parameters:
        xs: a sequence of tensors of one rank; dtypes are promoted.
        dtype: that of the result unless it is the promoted one.
        casting: which casts to it are allowed, as for NumPy.

    Returns: a tensor of at least two axes.

    Raises: ShapeError for no tensors, or lengths of axes other than 0 that differ; DTypeError for a
    dtype that the promoted one is not cast to.

    Gradient: dxs = dy cut at the same places.

    Source: numpy.vstack.

    >>> gg.evaluate(gg.vstack([[1, 2], [3, 4]]))
    array([[1, 2],
           [3, 4]])
    """
    rows = [atleast_2d(x) for x in tensors_of(xs, "vstack")]
    return concat(rows, 0, dtype=dtype, casting=casting)


def dstack(xs: Any) -> Tensor:
    """The tensors one behind the other, along axis 2; see atleast_3d.

    Parameters: xs: a sequence of tensors of one rank; dtypes are promoted.

    Returns: a tensor of at least three axes.

    Raises: ShapeError for no tensors, or lengths of axes other than 2 that differ.

    Gradient: dxs = dy cut at the same places.

    Source: numpy.dstack.

    >>> gg.evaluate(gg.dstack([[1, 2], [3, 4]]))
    array([[[1, 3],
            [2, 4]]])
    """
    return concat([atleast_3d(x) for x in tensors_of(xs, "dstack")], 2)


def column_stack(xs: Any) -> Tensor:
    """The tensors side by side, along axis 1; vectors are columns.

    Parameters: xs: a sequence of vectors and matrices; dtypes are promoted.

    Returns: a matrix.

    Raises: ShapeError for no tensors, or lengths of axes other than 1 that differ.

    Gradient: dxs = dy cut at the same places.

    Source: numpy.column_stack.

    >>> gg.evaluate(gg.column_stack([[1, 2], [3, 4]]))
    array([[1, 3],
           [2, 4]])
    """
    tensors = tensors_of(xs, "column_stack")
    return concat([transpose(atleast_2d(x)) if x.ndim < 2 else x for x in tensors], 1)


def block(arrays: Any) -> Tensor:
    """A tensor made of blocks: the innermost lists are joined along the last axis, lists of these
    along the one before, and so on.

    Parameters: arrays: a tensor, or nested lists of tensors, all equally deep.

    Returns: a tensor of as many axes as lists are nested, or as its blocks have.

    Raises: ShapeError for an empty list, lists of different depths, or blocks that do not fit.

    Gradient: to each block, dy at its place.

    Source: numpy.block.

    >>> a = gg.ones((2, 2))
    >>> gg.evaluate(gg.block([[a, 2 * a]]))
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """
    leaves, depth = _leaves(arrays)
    ndim = max(depth, *[t.ndim for t in leaves])
    joined = _joined_blocks(arrays, depth, ndim)
    return identity(joined) if joined is arrays else joined


def _leaves(arrays: Any) -> tuple[list[Tensor], int]:
    """The tensors in nested lists, which are equally deep, and how deep."""
    level, depth = [arrays], 0
    while any(isinstance(a, list | tuple) for a in level):
        if not all(isinstance(a, list) for a in level):
            raise ShapeError("block takes nested lists, all equally deep, and no tuples")
        if any(len(a) == 0 for a in level):
            raise ShapeError("block takes no empty list")
        level, depth = [item for a in level for item in a], depth + 1
    return [as_tensor(a) for a in level], depth


def _joined_blocks(arrays: Any, depth: int, ndim: int) -> Tensor:
    if depth == 0:
        t = as_tensor(arrays)
        return expand_dims(t, tuple(range(ndim - t.ndim)))
    return concat([_joined_blocks(a, depth - 1, ndim) for a in arrays], -depth)


def append(x: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """x with values after it along an axis.

    Parameters:
        x: any shape and dtype.
        values: of the shape of x, but along the axis; dtypes are promoted.
        axis: the axis; None: both are flattened first.

    Returns: a tensor that is longer along the axis.

    Raises: ShapeError where ranks, or lengths of the other axes, differ.

    Gradient: dx, dvalues = dy cut.

    Source: numpy.append.

    >>> gg.evaluate(gg.append([1, 2], 3))
    array([1, 2, 3])
    """
    return concat((x, values), axis)


def insert(x: TensorLike, obj: Any, values: TensorLike, axis: int | None = None) -> Tensor:
    """x with values put in before some indices along an axis.

    Parameters:
        x: any shape and dtype.
        obj: an int, a slice, a mask, or ints: indices of x, before which the values come.
        values: cast to the dtype of x, and broadcast to as many layers as there are indices.
        axis: an axis of known length; None: x is flattened first.

    Returns: x with the longer axis, of its dtype.

    Raises: ShapeError if the length is not known, or values do not fit; IndexError for an index out
    of bounds; SymbolicError for computed indices.

    Gradient: dx = dy at the places of x, dvalues = dy at theirs.

    Source: numpy.insert.

    >>> gg.evaluate(gg.insert([1, 2, 3], [1, 3], [8, 9]))
    array([1, 8, 2, 3, 9])
    """
    x, axis, length = _along("insert", x, axis)
    before = _places("insert", obj, length)
    layers = like(values, x)
    if layers.ndim > x.ndim:
        raise ShapeError(f"insert of {layers.type!r} into {x.type!r}: too many axes")
    layers = expand_dims(layers, tuple(range(x.ndim - layers.ndim)))
    if before.ndim == 0:
        layers = moveaxis(layers, 0, axis)
    if before.size == 1:
        before = np.repeat(before, _known_layers(layers, axis))
    count = before.size
    order = np.insert(np.arange(length), before, length + np.arange(count))
    wanted = tensor_type((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)
    if wanted.static:
        layers = broadcast_to(layers, wanted.shape)
    else:
        layers = broadcast_like(layers, take(x, np.zeros(count, np.int64), axis))
    return take(concat([x, layers], axis), order, axis)


def _known_layers(layers: Tensor, axis: int) -> int:
    count = layers.shape[axis]
    if not isinstance(count, int):
        raise ShapeError(f"insert of {layers.type!r}: the number of layers must be known")
    return count


def delete(x: TensorLike, obj: Any, axis: int | None = None) -> Tensor:
    """x without some indices along an axis.

    Parameters:
        x: any shape and dtype.
        obj: an int, a slice, a mask, or ints: what to leave out.
        axis: an axis of known length; None: x is flattened first.

    Returns: x with the shorter axis, of its dtype.

    Raises: ShapeError if the length is not known; IndexError for an index out of bounds;
    SymbolicError for computed indices.

    Gradient: dx = dy at what is left, zeros elsewhere.

    Source: numpy.delete.

    >>> gg.evaluate(gg.delete([1, 2, 3], 1))
    array([1, 3])
    """
    x, axis, length = _along("delete", x, axis)
    return take(x, np.delete(np.arange(length), _places("delete", obj, length)), axis)


def _along(what: str, x: TensorLike, axis: int | None) -> tuple[Tensor, int, int]:
    """The tensor, the axis and its length."""
    x = as_tensor(x)
    x, axis = (flatten(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    length = x.shape[axis]
    if not isinstance(length, int):
        raise ShapeError(
            f"{what} along axis {axis} of {x.type!r}: indices of NumPy are put in order while the "
            "graph is built, so the length has to be an int; join slices of x with gg.concat"
        )
    return x, axis, length


def _places(what: str, obj: Any, length: int) -> Any:
    """Indices as an array of integers; of a mask, where it holds."""
    items = obj if isinstance(obj, list | tuple) else [obj]
    if any(isinstance(item, Tensor) for item in items):
        raise SymbolicError(
            f"{what} with computed indices: use gg.where, gg.take or gg.at(x)[i].set(v), whose "
            "shapes do not depend on them"
        )
    if isinstance(obj, slice):
        return np.arange(*obj.indices(length))
    places = array_of(obj)
    if places.size == 0:
        return np.zeros(0, np.int64)
    if kind_of(places.dtype) not in "iub" or places.ndim > 1:
        raise DTypeError(f"{what} takes an int, a slice, a mask or ints, got {obj!r}")
    if kind_of(places.dtype) != "b":
        return places
    if places.shape != (length,):
        raise ShapeError(f"{what}: a mask is as long as the axis, {length}, got {obj!r}")
    return np.flatnonzero(places)


def resize(x: TensorLike, new_shape: Any) -> Tensor:
    """The elements of x in another shape, repeated as often as it takes.

    Parameters:
        x: any shape and dtype.
        new_shape: an int, a length, or a tuple of these.

    Returns: a tensor of that shape, of the dtype of x; of no elements, zeros.

    Raises: ShapeError for lengths that are negative, or an x whose size depends on values.

    Gradient: dx = dy added up over the copies.

    Source: numpy.resize.

    >>> gg.evaluate(gg.resize([1, 2, 3], (2, 2)))
    array([[1, 2],
           [3, 1]])
    """
    x = as_tensor(x)
    shape = tuple(count("a length", d) for d in listed(new_shape))
    here, wanted = count_of(x.shape), count_of(shape)
    if here is None or any(is_negative(d) for d in shape):
        raise ShapeError(
            f"resize of {x.type!r} to {new_shape}: a number of elements does not depend on values, "
            "and lengths are >= 0"
        )
    if here == 0:
        return broadcast_to(like(0, x), shape)
    if isinstance(here, Length) or isinstance(wanted, Length):
        elements = concat([flatten(x), zeros(1, x.dtype)])  # the last one stands for none at all
        return reshape(take(elements, arange(wanted) % Length.max(here, 1)), shape)
    return reshape(tile(flatten(x), -(-wanted // here))[:wanted], shape)


# --- cut ---------------------------------------------------------------------------------------


def array_split(x: TensorLike, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """x cut along an axis, into parts that need not be equal.

    Parameters:
        x: at least one axis, any dtype.
        indices_or_sections: an int, the number of parts, of which the first are one longer where
            they cannot be equal; or the places of the cuts, in order.
        axis: the axis.

    Returns: a tuple of tensors, of the dtype of x.

    Raises: ShapeError if x has no such axis, or its length depends on values, and for less than one
    part.

    Gradient: dx = concat(dys, axis).

    Source: numpy.array_split.

    >>> gg.evaluate(gg.array_split([1, 2, 3], 2))
    (array([1, 2]), array([3]))
    """
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)
    if not isinstance(indices_or_sections, int | np.integer):
        return split(x, indices_or_sections, axis)
    parts, length = int(indices_or_sections), x.shape[axis]
    if parts < 1:
        raise ShapeError(f"array_split of {x.type!r} into {parts} parts")
    if length is None:
        raise ShapeError(
            f"array_split along axis {axis} of {x.type!r}: that length depends on values; use "
            "gg.split for equal parts"
        )
    short, longer = divmod(length, parts)
    return split(x, [i * short + Length.min(i, longer) for i in range(1, parts)], axis)


def block_diag(*arrays: TensorLike) -> Tensor:
    """A matrix with these along its diagonal, and zeros elsewhere.

    Parameters: *arrays: matrices; a vector or a number is one row. dtypes promoted as NumPy 2 does.

    Returns: (the sum of the numbers of rows, that of columns); (1, 0) of nothing.

    Raises: ShapeError for more than two axes, or a number of columns that depends on values.

    Gradient: of each its block of dy.

    Source: scipy.linalg.block_diag.

    >>> gg.evaluate(gg.block_diag([[1, 2]], 3))
    array([[1, 2, 0],
           [0, 0, 3]])
    """
    blocks = [atleast_2d(t) for t in promoted(*arrays)] if arrays else [constant(np.zeros((1, 0)))]
    for t in blocks:
        if t.ndim > 2 or t.shape[1] is None:
            raise ShapeError(
                f"block_diag takes matrices, whose numbers of columns do not depend on values, got "
                f"{t.type!r}, built at {t.where}"
            )
    widths: list[Any] = [t.shape[1] for t in blocks]
    ends = list(accumulate(widths, initial=0))
    rows = []
    for t, (start, stop) in zip(blocks, pairwise(ends), strict=True):
        rows.append(apply(Pad(((0, 0), (start, ends[-1] - stop))), t))
    return concat(rows)


def hsplit(x: TensorLike, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """x cut along axis 1, a vector along axis 0: the inverse of hstack.

    Parameters:
        x: at least one axis, any dtype.
        indices_or_sections: as for split.

    Returns: a tuple of tensors, of the dtype of x.

    Raises: ShapeError if x has no axis, and as split().

    Gradient: dx = hstack(dys).

    Source: numpy.hsplit.

    >>> gg.evaluate(gg.hsplit([[1, 2], [3, 4]], 2)[0])
    array([[1],
           [3]])
    """
    x = _with_axes("hsplit", x, 1)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x: TensorLike, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """x cut along axis 0: the inverse of vstack.

    Parameters:
        x: at least two axes, any dtype.
        indices_or_sections: as for split.

    Returns: a tuple of tensors, of the dtype of x.

    Raises: ShapeError if x has fewer axes, and as split().

    Gradient: dx = vstack(dys).

    Source: numpy.vsplit.

    >>> gg.evaluate(gg.vsplit([[1, 2], [3, 4]], 2)[0])
    array([[1, 2]])
    """
    return split(_with_axes("vsplit", x, 2), indices_or_sections, 0)


def dsplit(x: TensorLike, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """x cut along axis 2: the inverse of dstack.

    Parameters:
        x: at least three axes, any dtype.
        indices_or_sections: as for split.

    Returns: a tuple of tensors, of the dtype of x.

    Raises: ShapeError if x has fewer axes, and as split().

    Gradient: dx = dstack(dys).

    Source: numpy.dsplit.

    >>> gg.dsplit(gg.ones((1, 2, 4)), 2)[0].shape
    (1, 2, 2)
    """
    return split(_with_axes("dsplit", x, 3), indices_or_sections, 2)


def _with_axes(what: str, x: TensorLike, least: int) -> Tensor:
    x = as_tensor(x)
    if x.ndim < least:
        raise ShapeError(f"{what} takes at least {least} axes, got {x.type!r}")
    return x
