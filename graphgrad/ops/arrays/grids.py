"""Index grids, coordinates, triangles, and logarithmically spaced numbers."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from ...base.errors import ShapeError, SymbolicError
from ...base.flags import truth
from ...base.length import Length
from ...ir.types import count_of, is_negative
from ..base import (
    Any,
    DType,
    DTypeError,
    Tensor,
    TensorLike,
    as_dtype,
    as_tensor,
    cast,
    constant,
    count,
    kind_of,
    like,
    np,
    promoted,
    result_dtype,
    type_of,
    whole,
)
from ..create.creation import counting, full, linspace, ones_like, spaced, tril, triu
from ..elementwise.exponential import exp, log
from ..elementwise.logic import equal, less, where
from ..elementwise.magnitudes import abs, sign
from ..elementwise.powers import power
from ..reduce.cumulative import cumprod
from ..shape.indexing import as_places, check_integers
from ..shape.joining import stack, tensors_of
from ..shape.padding import flip
from ..shape.reshaping import broadcast_to, expand_dims, listed, moveaxis
from .at import at, indices_in_bounds
from .nonzero import nonzero

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
        dimensions: ints and lengths.
        dtype: of the indices.
        sparse: whether each axis is given by itself, with length 1 along the others.

    Returns: a tensor (N, *dimensions), for N of them; sparse: a tuple of N.

    Raises: ShapeError for a negative length; TypeError for input that is not a length.

    Source: numpy.indices.

    >>> gg.evaluate(gg.indices((2, 2)))
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]])
    """
    truth("sparse", sparse)
    dims, kind = _lengths("indices", dimensions), as_dtype(dtype)
    if any(isinstance(d, Length) for d in dims):
        lines = _lines(dims, kind)
        return tuple(lines) if sparse else stack([broadcast_to(line, dims) for line in lines])
    made = np.indices(dims, kind, sparse=sparse)  # type: ignore[call-overload]
    return tuple(map(constant, made)) if sparse else constant(made)


def _lines(dims: tuple[Any, ...], dtype: DType) -> list[Tensor]:
    """0, 1, 2, ... along each axis of a shape, with length 1 along the others."""
    axes = range(len(dims))
    lines = [cast(counting(d), dtype) for d in dims]
    return [expand_dims(t, tuple(a for a in axes if a != i)) for i, t in enumerate(lines)]


def fromfunction(function: Any, shape: Any, *, dtype: Any = "float64", **kwargs: Any) -> Any:
    """function(i, j, ...) of the indices of a shape, all at once.

    Parameters:
        function: of as many tensors as there are lengths, each of that shape.
        shape: ints and lengths.
        dtype: of the indices.
        **kwargs: further arguments of the function.

    Returns: what the function returns.

    Raises: ShapeError for a negative length; TypeError for input that is not a length.

    Source: numpy.fromfunction.

    >>> gg.evaluate(gg.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype="int64"))
    array([[ 0, 10],
           [ 1, 11]])
    """
    dims, kind = _lengths("fromfunction", shape), as_dtype(dtype)
    if any(isinstance(d, Length) for d in dims):
        return function(*[broadcast_to(line, dims) for line in _lines(dims, kind)], **kwargs)
    return function(*map(constant, np.indices(dims, kind)), **kwargs)


def _lengths(what: str, shape: Any) -> tuple[Any, ...]:
    dims = tuple([count(f"a length of {what}", d) for d in listed(shape)])
    if any(is_negative(d) for d in dims):
        raise ShapeError(f"{what} takes lengths >= 0, got {shape!r}")
    return dims


def tri(n_rows: Any, n_cols: Any = None, k: int = 0, dtype: Any = "float64") -> Tensor:
    """Ones on and below a diagonal, zeros above.

    Parameters:
        n_rows: the number of rows, an int or a length.
        n_cols: the number of columns; None: that of rows.
        k: the last diagonal with ones, counted upwards from the main one.
        dtype: any.

    Returns: a tensor (n_rows, n_cols).

    Raises: TypeError for input that is not integer.

    Source: numpy.tri.

    >>> gg.evaluate(gg.tri(2, 3))
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    rows, columns = _sides("tri", n_rows, n_cols)
    k, kind = whole("k", k), as_dtype(dtype)
    if isinstance(rows, Length) or isinstance(columns, Length):
        return tril(full((rows, columns), 1, kind), k)
    return constant(np.tri(rows, columns, k, dtype=kind))


def _sides(what: str, n: Any, m: Any) -> tuple[Any, Any]:
    rows, columns = _lengths(what, (n, n if m is None else m))
    return rows, columns


def tril_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Tensor, ...]:
    """Rows and columns of the elements on and below a diagonal, row by row.

    Parameters:
        n: the number of rows, an int or a length.
        k: the last diagonal, counted upwards from the main one.
        m: the number of columns; None: that of rows.

    Returns: two tensors of one length.

    Raises: TypeError for input that is not integer.

    Source: numpy.tril_indices.

    >>> gg.evaluate(gg.tril_indices(2))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = _sides("tril_indices", n, m)
    k = whole("k", k)
    if isinstance(rows, Length) or isinstance(columns, Length):
        mask = tril(full((rows, columns), True), k)
        return nonzero(mask, size=Length.max(_below(rows, columns, k), 0))
    return tuple(map(constant, np.tril_indices(rows, k, columns)))


def _below(rows: Any, columns: Any, k: int) -> Any:
    """How many elements of a matrix are on and below a diagonal.

    Row i has i + k + 1 of them, if not less than 0 or more than there are columns.
    """

    def up_to(last: Any) -> Any:
        rising = Length.min(Length.max(last, 0), columns)
        return rising * (rising + 1) // 2 + columns * Length.max(last - columns, 0)

    return up_to(rows + k) - up_to(k)


def triu_indices(n: Any, k: int = 0, m: Any = None) -> tuple[Tensor, ...]:
    """Rows and columns of the elements on and above a diagonal, row by row.

    Parameters:
        n: the number of rows, an int or a length.
        k: the first diagonal, counted upwards from the main one.
        m: the number of columns; None: that of rows.

    Returns: two tensors of one length.

    Raises: TypeError for input that is not integer.

    Source: numpy.triu_indices.

    >>> gg.evaluate(gg.triu_indices(2))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _sides("triu_indices", n, m)
    k = whole("k", k)
    if isinstance(rows, Length) or isinstance(columns, Length):
        mask = triu(full((rows, columns), True), k)
        above = rows * columns - _below(rows, columns, k - 1)
        return nonzero(mask, size=Length.max(above, 0))
    return tuple(map(constant, np.triu_indices(rows, k, columns)))


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


def _matrix(what: str, x: TensorLike) -> tuple[Any, Any]:
    of = type_of(x)
    if len(of.shape) != 2 or None in of.shape:
        raise ShapeError(f"{what} takes a matrix whose lengths do not depend on values, got {of!r}")
    return of.shape[0], of.shape[1]


def diag_indices(n: Any, ndim: int = 2) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of a shape (n, n, ...).

    Parameters:
        n: the length of each axis, an int or a length.
        ndim: how many axes.

    Returns: a tuple of ndim tensors (n,), all 0, 1, 2, ...

    Raises: TypeError for input that is not integer.

    Source: numpy.diag_indices.

    >>> gg.evaluate(gg.at(gg.zeros((2, 2)))[gg.diag_indices(2)].set(1.0))
    array([[1., 0.],
           [0., 1.]])
    """
    (length,) = _lengths("diag_indices", n)
    axes = whole("ndim", ndim)
    return (counting(length),) * axes if axes > 0 else ()


def diag_indices_from(x: TensorLike) -> tuple[Tensor, ...]:
    """diag_indices for the shape of a tensor.

    Parameters: x: at least two axes of one length.

    Returns: a vector for each axis.

    Raises: ShapeError for fewer axes, or lengths that differ or depend on values.

    Gradient: none; only the shape of x is read.

    Source: numpy.diag_indices_from.

    >>> gg.evaluate(gg.diag_indices_from(gg.ones((2, 2))))
    (array([0, 1]), array([0, 1]))
    """
    of = type_of(x)
    if len(of.shape) < 2 or len(set(of.shape)) != 1 or of.shape[0] is None:
        raise ShapeError(f"diag_indices_from takes equal lengths, got {of!r}")
    return diag_indices(of.shape[0], len(of.shape))


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> tuple[Tensor, ...]:
    """Rows and columns of an (n, n) matrix at which a mask function is not zero.

    Parameters:
        n: how many rows and columns.
        mask_func: a function of NumPy arrays (matrix, k), as numpy.triu.
        k: its second argument.

    Returns: two constants of one length.

    Raises: SymbolicError for a function that makes tensors; ShapeError for an open n.

    Source: numpy.mask_indices.

    >>> gg.evaluate(gg.mask_indices(2, np.triu))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    if isinstance(n, Length):
        raise ShapeError(
            f"mask_indices: a function of NumPy takes a matrix of known lengths, and n = {n} is "
            "open; use gg.nonzero(mask, size=...) of a mask that is a tensor, or gg.tril_indices"
        )
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

    Raises: ShapeError for input that is not a vector; SymbolicError for a computed mask.

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
                raise SymbolicError(
                    "ix_ of a computed mask: the number of elements that it picks depends on values"
                )
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
        shape: ints and lengths.
        order: "C": the last axis runs first; "F": the first one.

    Returns: a tuple of int64 tensors of the shape of indices, one for each length.

    Raises: DTypeError unless indices are integers; ValueError for an unknown order. A run raises
        IndexError for a number that is out of bounds.

    Gradient: none.

    Source: numpy.unravel_index.

    >>> gg.evaluate(gg.unravel_index([1, 5], (2, 3)))
    (array([0, 1]), array([1, 2]))
    """
    numbers, dims = as_tensor(indices), _lengths("unravel_index", shape)
    check_integers(numbers.type)
    if any(isinstance(d, Length) for d in dims):
        places = _looked_up(counting(count_of(dims)), cast(as_places(numbers), "int64"))
        pairs = zip(dims, _steps(dims, _order(order)))
        return tuple([places // Length.max(s, 1) % Length.max(d, 1) for d, s in pairs])
    table = np.indices(dims).reshape(len(dims), -1, order=_order(order))
    return tuple([_looked_up(row, cast(as_places(numbers), "int64")) for row in table])


def _looked_up(row: Any, numbers: Tensor) -> Tensor:
    from_end = where(less(numbers, 0), row.shape[0], numbers)
    return as_tensor(row)[from_end]


def _steps(dims: tuple[Any, ...], order: str) -> list[Any]:
    """How far apart neighbours along each axis are, in elements."""
    inner = dims[:0:-1] if order == "C" else dims[:-1]
    steps = list(accumulate(inner, mul, initial=1))[: len(dims)]
    return steps[::-1] if order == "C" else steps


def _order(order: str) -> Any:
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', got {order!r}")
    return order


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """The numbers of the elements of a shape with these indices along its axes.

    Parameters:
        multi_index: integers for each axis: a sequence of tensors, or a tensor whose axis 0 numbers
            the axes; they broadcast.
        dims: ints and lengths.
        mode: what an index out of bounds means, for all axes or one for each: "wrap" (modulo the
            length), "clip" (the nearest one), or "raise".
        order: "C": the last axis runs first; "F": the first one.

    Returns: int64, of the broadcast shape.

    Raises: ShapeError unless there is an index for each length; DTypeError for input that
        is not integer; ValueError for an unknown mode or order. A run raises IndexError for an
        index that is out of bounds.

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
    total = constant(0, "int64")
    for index, length, how, step in zip(coords, lengths, modes, _steps(lengths, _order(order))):
        total = total + _inside(index, length, how) * step
    return total


def _integers(t: Tensor) -> Tensor:
    check_integers(t.type)
    return t


def _inside(index: Tensor, length: Any, mode: str) -> Tensor:
    if mode == "raise":
        return _looked_up(counting(length), cast(as_places(index), "int64"))
    return indices_in_bounds(index, as_tensor(length), mode)


def vander(x: TensorLike, N: Any = None, increasing: bool = False) -> Tensor:
    """Powers of the elements of a vector, row by row: Vandermonde's matrix.

    Parameters:
        x: a vector.
        N: the number of powers, from 0 on, an int or a length; None: as many as x has elements.
        increasing: whether the powers increase from left to right, or decrease.

    Returns: a matrix with a row for each element; of the dtype of x promoted with int64:
        float64 for float32, too.

    Raises: ShapeError for input that is not a vector, or a number that depends on values.

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
    if x.ndim != 1 or (N is None and x.shape[0] is None):
        raise ShapeError(f"vander takes a vector of a length that has a name, or N, got {x.type!r}")
    (number,) = _lengths("vander", x.shape[0] if N is None else N)
    if isinstance(number, Length):
        factors = where(equal(counting(number), 0), 1, expand_dims(x, 1))
        made = cumprod(factors, 1)
        return made if increasing else flip(made, 1)
    powers = [ones_like(x)]
    for _ in range(number - 1):
        powers.append(powers[-1] * x)
    if not number:
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
        num: how many, an int or a length.
        endpoint: whether the last one is base**stop; else the next one would be.
        base: a number, or a tensor that broadcasts with them.
        dtype: the dtype to cast them to; None: floating.
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
    if not any(isinstance(v, Tensor | Length) for v in (start, stop, base, num)):
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
        start, stop: numbers or tensors of one sign, which broadcast; numbers may be complex where
            num is an int.
        num: how many, an int or a length.
        endpoint: whether the last one is stop; else the next one would be.
        dtype: the dtype to cast them to; None: floating.
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
    number, axis = spaced("geomspace", num, axis, start, stop)
    if not any(isinstance(v, Tensor | Length) for v in (start, stop, number)):
        made: Any = np.geomspace(start, stop, number, endpoint, dtype, axis)
        return constant(made)
    first, last = promoted(start, stop, floating=True)
    if kind_of(first.dtype) == "c":
        raise DTypeError(f"geomspace of tensors takes real numbers, got {first.type!r}")
    points = exp(linspace(log(abs(first)), log(abs(last)), number, endpoint=endpoint))
    points = points * sign(first)
    if isinstance(number, Length):
        place = expand_dims(counting(number), tuple(range(1, points.ndim)))
        points = where(equal(place, 0), first, points)
        if endpoint:
            points = where(equal(place, Length.max(number - 1, 1)), last, points)
    else:
        ends = [(0, first)] if number else []
        ends += [(number - 1, last)] if endpoint and number > 1 else []
        for i, end in ends:
            points = at(points)[i].set(end)
    points = moveaxis(points, 0, axis)
    return points if dtype is None else cast(points, dtype)
