"""Indices and coordinates: grids, triangles, numbers spaced evenly on a logarithmic scale."""

from __future__ import annotations

from ...base.errors import ShapeError, SymbolicError
from ...base.flags import truth
from ..base import (
    Any,
    DTypeError,
    Tensor,
    TensorLike,
    as_dtype,
    as_tensor,
    cast,
    constant,
    kind_of,
    like,
    np,
    promoted,
    result_dtype,
    type_of,
    whole,
)
from ..create.creation import linspace, ones_like, spaced
from ..elementwise.exponential import exp, log
from ..elementwise.logic import less, where
from ..elementwise.magnitudes import abs, sign
from ..elementwise.powers import power
from ..shape.indexing import as_places, check_integers
from ..shape.joining import stack, tensors_of
from ..shape.reshaping import expand_dims, listed, moveaxis
from .at import at, indices_in_bounds

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "fromfunction",
    "geomspace",
    "indices",
    "ix_",
    "logspace",
    "mask_indices",
    "ravel_multi_index",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
    "vander",
]


# --- constants ---------------------------------------------------------------------------------


def indices(dimensions: Any, dtype: Any = "int64", sparse: bool = False) -> Any:
    """The indices of a shape, axis by axis.

    Parameters:
        dimensions: known lengths.
        dtype: of the indices.
        sparse: whether each axis is given by itself, with length 1 along the others.

    Returns: a constant (N, *dimensions); sparse: a tuple of N of them.

    Raises: ShapeError for what are no known lengths.

    Source: numpy.indices.

    >>> gg.evaluate(gg.indices((2, 2)))
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]])
    """
    truth("sparse", sparse)
    made = np.indices(_lengths("indices", dimensions), as_dtype(dtype), sparse=sparse)  # type: ignore[call-overload]
    return tuple(map(constant, made)) if sparse else constant(made)


def fromfunction(function: Any, shape: Any, *, dtype: Any = "float64", **kwargs: Any) -> Any:
    """function(i, j, ...) of the indices of a shape, all at once.

    Parameters:
        function: of as many tensors as there are lengths, each of that shape.
        shape: known lengths.
        dtype: of the indices.
        **kwargs: further arguments of the function.

    Returns: what the function returns.

    Raises: ShapeError for what are no known lengths.

    Source: numpy.fromfunction.

    >>> gg.evaluate(gg.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype="int64"))
    array([[ 0, 10],
           [ 1, 11]])
    """
    grid = np.indices(_lengths("fromfunction", shape), as_dtype(dtype))
    return function(*map(constant, grid), **kwargs)


def _lengths(what: str, shape: Any) -> tuple[int, ...]:
    dims = tuple([whole(f"a length of {what}", d) for d in listed(shape)])
    if any(d < 0 for d in dims):
        raise ShapeError(f"{what} takes lengths >= 0, got {shape!r}")
    return dims


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = "float64") -> Tensor:
    """Ones on and below a diagonal, zeros above.

    Parameters:
        n_rows: how many rows.
        n_cols: how many columns; None: as many.
        k: the last diagonal with ones, counted upwards from the main one.
        dtype: any.

    Returns: a constant (n_rows, n_cols).

    Raises: TypeError for what are no integers.

    Source: numpy.tri.

    >>> gg.evaluate(gg.tri(2, 3))
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    rows, columns = _sides("tri", n_rows, n_cols)
    return constant(np.tri(rows, columns, whole("k", k), dtype=as_dtype(dtype)))


def _sides(what: str, n: Any, m: Any) -> tuple[int, int]:
    rows, columns = _lengths(what, (n, n if m is None else m))
    return rows, columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Rows and columns of the elements on and below a diagonal, row by row.

    Parameters:
        n: how many rows.
        k: the last diagonal, counted upwards from the main one.
        m: how many columns; None: as many.

    Returns: two constants of one length.

    Raises: TypeError for what are no integers.

    Source: numpy.tril_indices.

    >>> gg.evaluate(gg.tril_indices(2))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = _sides("tril_indices", n, m)
    return tuple(map(constant, np.tril_indices(rows, whole("k", k), columns)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Rows and columns of the elements on and above a diagonal, row by row.

    Parameters:
        n: how many rows.
        k: the first diagonal, counted upwards from the main one.
        m: how many columns; None: as many.

    Returns: two constants of one length.

    Raises: TypeError for what are no integers.

    Source: numpy.triu_indices.

    >>> gg.evaluate(gg.triu_indices(2))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _sides("triu_indices", n, m)
    return tuple(map(constant, np.triu_indices(rows, whole("k", k), columns)))


def tril_indices_from(x: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """tril_indices for the shape of a matrix.

    Parameters:
        x: a matrix of known lengths.
        k: the last diagonal, counted upwards from the main one.

    Returns: two constants of one length.

    Raises: ShapeError for another rank, or lengths that are not known.

    Gradient: none; only the shape of x is read.

    Source: numpy.tril_indices_from.

    >>> gg.evaluate(gg.tril_indices_from(gg.ones((2, 2))))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = _matrix("tril_indices_from", x)
    return tril_indices(rows, k, columns)


def triu_indices_from(x: TensorLike, k: int = 0) -> tuple[Tensor, ...]:
    """triu_indices for the shape of a matrix.

    Parameters:
        x: a matrix of known lengths.
        k: the first diagonal, counted upwards from the main one.

    Returns: two constants of one length.

    Raises: ShapeError for another rank, or lengths that are not known.

    Gradient: none; only the shape of x is read.

    Source: numpy.triu_indices_from.

    >>> gg.evaluate(gg.triu_indices_from(gg.ones((2, 2))))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _matrix("triu_indices_from", x)
    return triu_indices(rows, k, columns)


def _matrix(what: str, x: TensorLike) -> tuple[int, int]:
    of = type_of(x)
    lengths = [d for d in of.shape if isinstance(d, int)]
    if len(of.shape) != 2 or len(lengths) != 2:
        raise ShapeError(f"{what} takes a matrix of known lengths, got {of!r}")
    return lengths[0], lengths[1]


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of a shape (n, n, ...).

    Parameters:
        n: the length of each axis.
        ndim: how many axes.

    Returns: a tuple of ndim constants (n,), all 0, 1, 2, ...

    Raises: TypeError for what are no integers.

    Source: numpy.diag_indices.

    >>> gg.evaluate(gg.at(gg.zeros((2, 2)))[gg.diag_indices(2)].set(1.0))
    array([[1., 0.],
           [0., 1.]])
    """
    (length,) = _lengths("diag_indices", n)
    axes = whole("ndim", ndim)
    return (constant(np.arange(length)),) * axes if axes > 0 else ()


def diag_indices_from(x: TensorLike) -> tuple[Tensor, ...]:
    """diag_indices for the shape of a tensor.

    Parameters: x: at least two axes of one known length.

    Returns: a constant for each axis.

    Raises: ShapeError for fewer axes, or lengths that differ or are not known.

    Gradient: none; only the shape of x is read.

    Source: numpy.diag_indices_from.

    >>> gg.evaluate(gg.diag_indices_from(gg.ones((2, 2))))
    (array([0, 1]), array([0, 1]))
    """
    of = type_of(x)
    if len(of.shape) < 2 or len(set(of.shape)) != 1 or not isinstance(of.shape[0], int):
        raise ShapeError(f"diag_indices_from takes equal known lengths, got {of!r}")
    return diag_indices(of.shape[0], len(of.shape))


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> tuple[Tensor, ...]:
    """Rows and columns of an (n, n) matrix at which a mask function is not zero.

    Parameters:
        n: how many rows and columns.
        mask_func: a function of NumPy arrays (matrix, k), as numpy.triu.
        k: its second argument.

    Returns: two constants of one length.

    Raises: SymbolicError for a function that makes tensors.

    Source: numpy.mask_indices.

    >>> gg.evaluate(gg.mask_indices(2, np.triu))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _sides("mask_indices", n, None)
    mask = mask_func(np.ones((rows, columns), np.int64), k)
    if isinstance(mask, Tensor):
        raise SymbolicError(
            "mask_indices: the indices have to be known, but mask_func makes a tensor; use a "
            "function of NumPy, as np.triu for gg.triu"
        )
    return tuple(map(constant, np.nonzero(np.asarray(mask) != 0)))


def ix_(*args: TensorLike) -> tuple[Tensor, ...]:
    """Vectors, each along its own axis: x[gg.ix_(i, j)] has all pairs of rows i and columns j.

    Parameters: *args: vectors of integers, or masks of NumPy.

    Returns: a tuple of tensors, of length 1 but along their own axis.

    Raises: ShapeError for what is no vector; SymbolicError for a computed mask.

    Gradient: dx = dy.

    Source: numpy.ix_.

    >>> x = gg.constant([[1, 2, 3], [4, 5, 6]])
    >>> gg.evaluate(x[gg.ix_([1, 0], [0, 2])])
    array([[4, 6],
           [1, 3]])
    """
    vectors = []
    for arg in args:
        vector = as_tensor(np.zeros(0, np.int64) if isinstance(arg, list) and not arg else arg)
        if vector.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, got {vector.type!r}, built at {vector.where}")
        if kind_of(vector.dtype) == "b":
            if isinstance(arg, Tensor):
                raise SymbolicError("ix_ of a computed mask: how much it picks depends on values")
            vector = constant(np.flatnonzero(np.asarray(arg)))
        vectors.append(vector)
    count = len(vectors)
    return tuple(
        expand_dims(v, tuple(a for a in range(count) if a != i)) for i, v in enumerate(vectors)
    )


# --- flat indices ------------------------------------------------------------------------------


def unravel_index(indices: TensorLike, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """The index along each axis of the elements of a shape with these numbers.

    Parameters:
        indices: integers from 0 to the number of elements less one.
        shape: known lengths.
        order: "C": the last axis runs first; "F": the first one.

    Returns: a tuple of int64 tensors of the shape of indices, one for each length.

    Raises: DTypeError unless indices are integers; ValueError for another order. A run raises
        IndexError for a number that is out of bounds.

    Gradient: none.

    Source: numpy.unravel_index.

    >>> gg.evaluate(gg.unravel_index([1, 5], (2, 3)))
    (array([0, 1]), array([1, 2]))
    """
    numbers, dims = as_tensor(indices), _lengths("unravel_index", shape)
    check_integers(numbers.type)
    table = np.indices(dims).reshape(len(dims), -1, order=_order(order))
    return tuple([_looked_up(row, cast(as_places(numbers), "int64")) for row in table])


def _looked_up(row: Any, numbers: Tensor) -> Tensor:
    from_end = where(less(numbers, 0), row.size, numbers)
    return constant(row)[from_end]


def _order(order: str) -> Any:
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', got {order!r}")
    return order


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """The numbers of the elements of a shape with these indices along its axes.

    Parameters:
        multi_index: integers for each axis: a sequence of tensors, or a tensor whose axis 0 numbers
            the axes; they broadcast.
        dims: known lengths.
        mode: what an index out of bounds means, for all axes or one for each: "wrap" (counted round
            and round), "clip" (the nearest one), or "raise".
        order: "C": the last axis runs first; "F": the first one.

    Returns: int64, of the broadcast shape.

    Raises: ShapeError unless there is an index for each length; DTypeError for what are no
        integers; ValueError for another mode or order. A run raises IndexError for an index that is
        out of bounds.

    Gradient: none.

    Source: numpy.ravel_multi_index.

    >>> gg.evaluate(gg.ravel_multi_index(([0, 1], [1, 2]), (2, 3)))
    array([1, 5])
    """
    lengths = _lengths("ravel_multi_index", dims)
    coords = [_integers(t) for t in tensors_of(multi_index, "ravel_multi_index")]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(lengths)
    if len(coords) != len(lengths) or len(modes) != len(lengths):
        raise ShapeError(
            f"ravel_multi_index takes an index and a mode for each of {lengths}, got {len(coords)} "
            f"and {len(modes)}"
        )
    steps = np.cumprod([1, *(lengths[::-1] if _order(order) == "C" else lengths)])[:-1]
    steps = steps[::-1] if order == "C" else steps
    total = constant(0, "int64")
    for index, length, how, step in zip(coords, lengths, modes, steps.tolist()):
        total = total + _inside(index, length, how) * step
    return total


def _integers(t: Tensor) -> Tensor:
    check_integers(t.type)
    return t


def _inside(index: Tensor, length: int, mode: str) -> Tensor:
    if mode == "raise":
        return _looked_up(np.arange(length), cast(as_places(index), "int64"))
    return indices_in_bounds(index, constant(length), mode)


def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements of a vector, row by row: Vandermonde's matrix.

    Parameters:
        x: a vector.
        N: how many powers, from 0 on; None: as many as x has elements, whose number is then known.
        increasing: whether the powers increase from left to right, or decrease.

    Returns: a matrix with a row for each element; of the dtype of x promoted with int64:
        float64 for float32, too.

    Raises: ShapeError for what is no vector, or a length that is not known.

    Gradient: dx = the sum over rows of dy times the powers' derivatives.

    Source: numpy.vander.

    >>> gg.evaluate(gg.vander([1, 2, 3], 3))
    array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]])
    """
    truth("increasing", increasing)
    x = as_tensor(x)
    x = cast(x, result_dtype([x.dtype, as_dtype(np.int64)]))
    if x.ndim != 1 or (N is None and not isinstance(x.shape[0], int)):
        raise ShapeError(f"vander takes a vector of known length, or N, got {x.type!r}")
    (count,) = _lengths("vander", x.shape[0] if N is None else N)
    powers = [ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    if not count:
        return expand_dims(x, 1)[:, :0]
    return stack(powers if increasing else powers[::-1], axis=1)


# --- numbers -----------------------------------------------------------------------------------


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Numbers from base**start to base**stop, each the same multiple of the one before.

    Parameters:
        start, stop: numbers or tensors, which broadcast.
        num: how many.
        endpoint: whether the last one is base**stop; else the next one would be.
        base: a number, or a tensor that broadcasts with them.
        dtype: what to cast them to; None: floating.
        axis: where the numbers lie in the result.

    Returns: a tensor with one axis, of length num, more than start and stop.

    Raises: ShapeError if num < 0, or for tensors that do not broadcast.

    Gradient: that of base**linspace(start, stop).

    Source: numpy.logspace.

    >>> gg.evaluate(gg.logspace(0, 2, 3))
    array([  1.,  10., 100.])
    """
    truth("endpoint", endpoint)
    num, axis = spaced("logspace", num, axis, start, stop, base)
    if not any(isinstance(v, Tensor) for v in (start, stop, base)):
        made: Any = np.logspace(start, stop, num, endpoint, base, dtype, axis)
        return constant(made)
    points = linspace(start, stop, num, endpoint=endpoint)
    shift = max(points.ndim - 1, np.ndim(base) if not isinstance(base, Tensor) else base.ndim)
    points = expand_dims(points, tuple(range(1, 1 + shift - (points.ndim - 1))))
    made = moveaxis(power(like(base, points), points), 0, axis)
    return made if dtype is None else cast(made, dtype)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Numbers from start to stop, each the same multiple of the one before.

    Parameters:
        start, stop: numbers or tensors of one sign, which broadcast; numbers may be complex.
        num: how many.
        endpoint: whether the last one is stop; else the next one would be.
        dtype: what to cast them to; None: floating.
        axis: where the numbers lie in the result.

    Returns: a tensor with one axis, of length num, more than start and stop.

    Raises: ShapeError if num < 0, or for tensors that do not broadcast; DTypeError for complex
    tensors; ValueError for a number 0 at an end.

    Gradient: with the weights w = i / (num - 1): dstart = sum of dy y (1 - w) / start, dstop = sum
    of dy y w / stop.

    Source: numpy.geomspace.

    >>> gg.evaluate(gg.geomspace(1, 100, 3))
    array([  1.,  10., 100.])
    """
    truth("endpoint", endpoint)
    count, axis = spaced("geomspace", num, axis, start, stop)
    if not isinstance(start, Tensor) and not isinstance(stop, Tensor):
        made: Any = np.geomspace(start, stop, count, endpoint, dtype, axis)
        return constant(made)
    first, last = promoted(start, stop, floating=True)
    if kind_of(first.dtype) == "c":
        raise DTypeError(f"geomspace of tensors takes real numbers, got {first.type!r}")
    points = exp(linspace(log(abs(first)), log(abs(last)), count, endpoint=endpoint))
    points = points * sign(first)
    ends = [(0, first)] if count else []
    ends += [(count - 1, last)] if endpoint and count > 1 else []
    for place, end in ends:
        points = at(points)[place].set(end)
    points = moveaxis(points, 0, axis)
    return points if dtype is None else cast(points, dtype)
