"""New tensors, from a shape or like another tensor; triangles and diagonals."""

from __future__ import annotations

import builtins

from ...base.errors import GraphGradError, ShapeError
from ...base.flags import truth, truth_if_given
from ...base.length import Length
from ...ir.types import as_shape, computed, is_negative
from ..base import (
    Any,
    Derivative,
    DType,
    DTypeError,
    Full,
    Gradients,
    Node,
    OnesLike,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    ZerosLike,
    apply,
    as_array,
    as_dtype,
    as_tensor,
    cast,
    constant,
    count,
    kind_of,
    np,
    promoted,
    tensor_type,
    type_of,
    whole,
)
from ..documented import documented
from ..dtypes import check_device
from ..elementwise.logic import GREATER_EQUAL, LESS_EQUAL, WHERE, equal, where
from ..elementwise.rounding import floor
from ..making import Making
from ..onnx_places import AT, scattered
from ..shape.joining import stack
from ..shape.reshaping import (
    broadcast_arrays,
    broadcast_like,
    broadcast_to,
    expand_dims,
    flatten,
    moveaxis,
    normal_axis,
)
from ..shape.slicing import FULL
from ..shape.updates import with_at
from ..sources import stop_gradient
from .diagonal import counted, diagonal, numbered

__all__ = [
    "arange",
    "asarray",
    "diag",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(
    x: TensorLike, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Tensor:
    """x as a tensor: itself, or a constant; cast if a dtype is given.

    gg.array and gg.copy are the same function: tensors never change, so each is its own copy.

    Parameters:
        x: a tensor, a number, an array, nested lists of numbers, or of tensors of one shape, which
            are stacked and promoted.
        dtype: the dtype to cast it to; None: its own.
        copy: taken for the standard's sake; it changes nothing, for tensors never change.
        device: "cpu", or None.

    Returns: a tensor of the shape of x.

    Raises: DTypeError for non-numeric input; ShapeError for lists of tensors of several
    shapes; DeviceError for an unsupported device.

    Gradient: dx = dy, cast back.

    Source: the array API standard, asarray.

    >>> gg.asarray([1, 2], dtype="float64").type
    float64[2]
    """
    truth_if_given("copy", copy)
    check_device(device)
    try:
        return as_tensor(x, dtype)
    except GraphGradError:
        if isinstance(x, Tensor) or not _has_tensors(x):
            raise
    return as_tensor(_stacked(x), dtype)


def _has_tensors(x: Any) -> bool:
    """Whether nested lists hold a tensor."""
    return isinstance(x, Tensor) or (isinstance(x, list | tuple) and any(map(_has_tensors, x)))


def _stacked(x: Any) -> Tensor:
    """A tensor of nested lists in which there are tensors."""
    return stack([_stacked(item) for item in x]) if isinstance(x, list | tuple) else as_tensor(x)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """A tensor of one number.

    Parameters:
        shape: an int, a length, or a tuple of these.
        fill_value: a number, or a 0-d tensor.
        dtype: that of the number unless given.
        device: "cpu", or None.

    Returns: a tensor of this shape.

    Raises: ShapeError for a length that is None, or a fill_value with axes; DTypeError for
    input that is not a number, or if an imaginary part would be dropped; OverflowError for a Python
    integer that does not fit; DeviceError for an unsupported device.

    Gradient: of a 0-d tensor, dx = sum of dy; none else.

    Source: the array API standard, full.

    >>> gg.evaluate(gg.full((2, 2), 7))
    array([[7, 7],
           [7, 7]])
    """
    check_device(device)
    lengths = _known(shape)
    if isinstance(fill_value, Tensor):
        return broadcast_to(as_tensor(fill_value, dtype), lengths)
    value = as_array(fill_value, dtype)
    if value.ndim:
        raise ShapeError(f"full takes one number, got an array of shape {list(value.shape)}")
    return apply(Full(lengths, value.item(), as_dtype(value.dtype)))


def _known(shape: Any) -> tuple[Any, ...]:
    lengths = as_shape(shape)
    if None in lengths:
        raise ShapeError(f"the lengths have to be known, got {shape}; use full_like")
    return lengths


def zeros(shape: Any, dtype: Any = "float64", *, device: Any = None) -> Tensor:
    """A tensor of zeros.

    Parameters:
        shape: an int, a length, or a tuple of these.
        dtype: any.
        device: "cpu", or None.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DeviceError for an unsupported device.

    Source: the array API standard, zeros.

    >>> gg.evaluate(gg.zeros(2))
    array([0., 0.])
    """
    check_device(device)
    return full(shape, 0.0, dtype=dtype)


def ones(shape: Any, dtype: Any = "float64", *, device: Any = None) -> Tensor:
    """A tensor of ones.

    Parameters:
        shape: an int, a length, or a tuple of these.
        dtype: any.
        device: "cpu", or None.

    Returns: a tensor of this shape and dtype.

    Raises: ShapeError for a length that is None; DeviceError for an unsupported device.

    Source: the array API standard, ones.

    >>> gg.evaluate(gg.ones(2))
    array([1., 1.])
    """
    check_device(device)
    return full(shape, 1.0, dtype=dtype)


empty = zeros


def full_like(
    x: TensorLike, /, fill_value: Any, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """A tensor of one number in the shape of x.

    Parameters:
        x: any shape, known or not; read for its shape only.
        fill_value: a number, or a 0-d tensor.
        dtype: that of x unless given.
        device: "cpu", or None.

    Returns: same shape as x.

    Raises: as full(); DeviceError for an unsupported device.

    Gradient: none to x; to a 0-d tensor, the sum of dy.

    Source: the array API standard, full_like.

    >>> gg.evaluate(gg.full_like([1.0, 2.0], 7))
    array([7., 7.])
    """
    check_device(device)
    like = type_of(x)
    fill_dtype = like.dtype if dtype is None else as_dtype(dtype)
    if like.static:
        return full(like.shape, fill_value, dtype=fill_dtype)
    return broadcast_like(full((), fill_value, dtype=fill_dtype), stop_gradient(x))


@documented(ZerosLike)
def zeros_like(x: TensorLike, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Zeros in the shape of x, and in its dtype unless another is given.

    Parameters:
        x: any shape, known or not; read for its shape only.
        dtype: that of x unless given.
        device: "cpu", or None.

    Returns: same shape as x.

    Raises: DTypeError for non-numeric input; DeviceError for an unsupported device.

    Source: the array API standard, zeros_like.

    >>> gg.evaluate(gg.zeros_like([1, 2]))
    array([0, 0])
    """
    check_device(device)
    return _of_shape(ZerosLike(), 0, x, dtype)


@documented(OnesLike)
def ones_like(x: TensorLike, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Ones in the shape of x, and in its dtype unless another is given.

    Parameters:
        x: any shape, known or not; read for its shape only.
        dtype: that of x unless given.
        device: "cpu", or None.

    Returns: same shape as x.

    Raises: DTypeError for non-numeric input; DeviceError for an unsupported device.

    Source: the array API standard, ones_like.

    >>> gg.evaluate(gg.ones_like([1, 2]))
    array([1, 1])
    """
    check_device(device)
    return _of_shape(OnesLike(), 1, x, dtype)


empty_like = zeros_like


def _of_shape(op: Op, value: int, x: TensorLike, dtype: Any) -> Tensor:
    if type_of(x).static:
        return full_like(x, value, dtype=dtype)
    made = apply(op, stop_gradient(x))
    return made if dtype is None else cast(made, dtype)


class Arange(Op):
    """Integers from start up to stop, without stop. Gradient: none."""

    start: Any
    stop: Any
    step: int
    dtype: DType
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        steps = self.stop - self.start
        first = Length.ceil_div(steps if self.step > 0 else -steps, builtins.abs(self.step))
        return (tensor_type((Length.max(first, 0),), self.dtype),)

    def kernel(self, xp: Any) -> Any:
        return xp.arange(self.start, self.stop, self.step, dtype=self.dtype)

    def to_onnx(self, to: Any) -> Any:
        if not self.open_lengths:
            return None
        ends = [to.value(n, as_dtype("int64")) for n in (self.start, self.stop, self.step)]
        (y,) = self.infer()
        return to.cast(to.Range(*ends, shape=y.shape), self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 5, 1, as_dtype("int64")), []
        yield cls(7, 1, -2, as_dtype("float32")), []
        yield cls(3, 3, 1, as_dtype("int32")), []


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Evenly spaced numbers from start up to stop, without stop.

    Parameters:
        start: the first number; the stop, if that is not given.
        stop: where they end; None: at start, beginning with 0.
        step: from each to the next; an int where start or stop is a length.
        dtype: of the numbers unless given.
        device: "cpu", or None.

    Returns: a constant (N,), N = ceil((stop - start) / step).

    Raises: ZeroDivisionError for a step of 0; TypeError for input that is not a number; DeviceError
    for an unsupported device.

    Source: the array API standard, arange.

    >>> gg.evaluate(gg.arange(1, 7, 2))
    array([1, 3, 5])
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if stop is None:
        raise DTypeError("arange takes a number to stop at, got None")
    if isinstance(start, Length) or isinstance(stop, Length):
        return _counted_out(start, stop, step, dtype)
    return constant(np.arange(start, stop, step, dtype=dtype))


def _counted_out(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """Integers between lengths."""
    step = whole("step of an arange between lengths,", step)
    if not step:
        raise ZeroDivisionError("arange with a step of 0")
    kind = as_dtype("int64" if dtype is None else dtype)
    return apply(Arange(count("start", start), count("stop", stop), step, kind))


def counting(n: Any) -> Tensor:
    """0, 1, 2, ...: so many, which a run refuses to make less than none of."""
    return broadcast_to(arange(n), (n,))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers from start to stop.

    Parameters:
        start, stop: numbers or tensors, which broadcast; integers become float64.
        num: how many, an int or a length.
        endpoint: whether the last one is stop; else the next one would be.
        retstep: whether to return the step from one to the next too.
        dtype: the dtype to cast them to; None: floating.
        axis: where the numbers lie in the result.
        device: "cpu", or None.

    Returns: a tensor with one axis, of length num, more than start and stop; with retstep, it and
    the step.

    Raises: ShapeError if num < 0, or for tensors that do not broadcast; DeviceError for an
    unsupported device.

    Gradient: with the weights w = i / (num - 1): dstart = sum of dy * (1 - w), dstop = sum of dy *
    w.

    Source: the array API standard, linspace.

    >>> gg.evaluate(gg.linspace(0, 1, 5))
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    truth("endpoint", endpoint)
    truth("retstep", retstep)
    check_device(device)
    number, axis = spaced("linspace", num, axis, start, stop)
    fixed = not isinstance(start, Tensor) and not isinstance(stop, Tensor)
    if fixed and not isinstance(number, Length):
        numpy_linspace: Any = np.linspace
        made = numpy_linspace(start, stop, number, endpoint, retstep, dtype, axis)
        return (constant(made[0]), constant(made[1])) if retstep else constant(made)
    first, last = promoted(start, stop, floating=True)
    steps = Length.max(number - int(endpoint), 0)
    behind = tuple(range(1, 1 + max(first.ndim, last.ndim)))
    if fixed:  # rounded as NumPy does
        place = expand_dims(cast(counting(number), first.dtype), behind)
        points = first + place * ((last - first) / Length.max(steps, 1))
        points = where(equal(place, Length.max(steps, 1)), last, points) if endpoint else points
    else:
        weight = expand_dims(cast(_weights(number, endpoint), first.dtype), behind)
        points = first * (1 - weight) + last * weight
    points = moveaxis(points, 0, axis)
    if dtype is not None:
        target = as_dtype(dtype)
        points = cast(floor(points) if kind_of(target) in "iu" else points, target)
    return (points, _step(first, last, steps)) if retstep else points


def _weights(number: Any, endpoint: bool) -> Tensor:
    """From 0 to 1, so many."""
    if not isinstance(number, Length):
        return constant(np.linspace(0.0, 1.0, number, endpoint=endpoint))
    weights: Tensor = counting(number) / Length.max(number - int(endpoint), 1)
    return weights


def _step(first: Tensor, last: Tensor, steps: Any) -> Tensor:
    if not isinstance(steps, Length):
        return (last - first) * (1 / steps if steps else np.nan)
    return (last - first) * where(equal(as_tensor(steps), 0), np.nan, 1 / Length.max(steps, 1))


def spaced(what: str, num: Any, axis: Any, *ends: Any) -> tuple[Any, int]:
    """How many numbers, and the axis where they lie."""
    number = count("num", num)
    if is_negative(number):
        raise ShapeError(f"{what} makes num >= 0 numbers, got {number}")
    return number, normal_axis(axis, 1 + max(_rank(end) for end in ends))


def _rank(x: Any) -> int:
    return x.ndim if isinstance(x, Tensor) else np.ndim(x)


class Eye(Op):
    """Ones on a diagonal, k above the main one, zeros elsewhere. Gradient: none."""

    rows: Any
    columns: Any
    k: int
    dtype: DType
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type((self.rows, self.columns), self.dtype),)

    def kernel(self, xp: Any) -> Any:
        return xp.eye(self.rows, self.columns, k=self.k, dtype=self.dtype)

    def to_onnx(self, to: Any) -> Any:
        if not self.open_lengths:
            return None
        shape = (self.rows, self.columns)
        zeros = to.ConstantOfShape([*shape], value=np.zeros(1, self.dtype), shape=shape)
        return to.EyeLike(zeros, k=self.k, shape=shape)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(2, 3, 1, as_dtype("float64")), []
        yield cls(3, 2, -1, as_dtype("int32")), []
        yield cls(0, 2, 0, as_dtype("float32")), []


def eye(
    n_rows: Any,
    n_cols: Any = None,
    /,
    k: int = 0,
    dtype: Any = "float64",
    *,
    device: Any = None,
) -> Tensor:
    """Ones on a diagonal, zeros elsewhere.

    Parameters:
        n_rows: the number of rows, an int or a length.
        n_cols: the number of columns; None: that of rows.
        k: how far the diagonal is above the main one (below for k < 0).
        dtype: any.
        device: "cpu", or None.

    Returns: a tensor (n_rows, n_cols).

    Raises: ShapeError for a negative length; TypeError if k is not an int; DeviceError for an
    unsupported device.

    Source: the array API standard, eye.

    >>> gg.evaluate(gg.eye(2, 3, k=1))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    check_device(device)
    rows, columns = _known((n_rows, n_rows if n_cols is None else n_cols))
    return apply(Eye(rows, columns, whole("k", k), as_dtype(dtype)))


class Tril(Op):
    """The lower triangles of matrices (..., M, N), up to k above the diagonal.

    Gradient: dx = tril(dy, k).
    """

    k: int = 0
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    stacks = True

    def infer(self, x: TensorType) -> Types:
        if len(x.shape) < 2:
            raise ShapeError(f"{self.type} takes matrices, got {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.tril(x, self.k)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Trilu(x, np.int64(self.k), upper=0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(self, dy),)

    def decompose(self, make: Making) -> Tensor | None:
        """x where the number of the column is not above that of the row and k, else 0."""
        (x,) = make.inputs
        if not counted(x):
            return None
        rows, columns = numbered(make, x, self.k)
        return make(WHERE, make(LESS_EQUAL, columns, rows), x, make.zero(x))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3, 3))]
        yield cls(1), [rng.normal(size=(2, 3, 4))]
        yield cls(-1), [rng.normal(size=(3, 2)).astype("float32")]
        yield cls(0), [rng.normal(size=(0, 2))]


class Triu(Tril):
    """The upper triangles of matrices (..., M, N), from k above the diagonal.

    Gradient: dx = triu(dy, k).
    """

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.triu(x, self.k)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Trilu(x, np.int64(self.k), upper=1)

    def decompose(self, make: Making) -> Tensor | None:
        """x where the number of the column is not below that of the row and k, else 0."""
        (x,) = make.inputs
        if not counted(x):
            return None
        rows, columns = numbered(make, x, self.k)
        return make(WHERE, make(GREATER_EQUAL, columns, rows), x, make.zero(x))


@documented(Tril)
def tril(x: TensorLike, /, k: int = 0) -> Tensor:
    """The lower triangles of matrices; zeros elsewhere.

    Parameters:
        x: (..., M, N), any dtype.
        k: the last diagonal that stays, counted upwards from the main one.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has fewer than two axes; TypeError if k is not an int.

    Source: the array API standard, tril.

    >>> gg.evaluate(gg.tril(np.ones((2, 2))))
    array([[1., 0.],
           [1., 1.]])
    """
    return apply(Tril(whole("k", k)), as_tensor(x))


@documented(Triu)
def triu(x: TensorLike, /, k: int = 0) -> Tensor:
    """The upper triangles of matrices; zeros elsewhere.

    Parameters:
        x: (..., M, N), any dtype.
        k: the first diagonal that stays, counted upwards from the main one.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has fewer than two axes; TypeError if k is not an int.

    Source: the array API standard, triu.

    >>> gg.evaluate(gg.triu(np.ones((2, 2)), k=1))
    array([[0., 1.],
           [0., 0.]])
    """
    return apply(Triu(whole("k", k)), as_tensor(x))


class Diag(Op):
    """Vectors (..., N) on the diagonals, k above the main one, of square matrices of zeros.

    Gradient: dx = diag(dy, k) of a vector; of a matrix, dy on that diagonal.
    """

    k: int = 0
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    stacks = True

    def infer(self, x: TensorType) -> Types:
        if not x.shape:
            raise ShapeError(f"{self.type} takes vectors, got {x!r}")
        n = x.shape[-1]
        side = computed(lambda n: n + builtins.abs(self.k), n)
        return (tensor_type((*x.shape[:-1], side, side), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        n = x.shape[-1]
        zeros = xp.zeros((*x.shape[:-1], n + abs(self.k), n + abs(self.k)), dtype=x.dtype)
        rows = xp.arange(n) + max(-self.k, 0)
        return with_at(zeros, (..., rows, rows + self.k), x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        before, n = x.rank - 1, to.length(x, x.rank - 1)
        side = to.Add(n, abs(self.k))
        shape = (*x.shape[:-1], None, None)
        lengths = to.lengths(*[to.length(x, a) for a in range(before)], side, side)
        zeros = to.ConstantOfShape(lengths, value=np.zeros(1, x.dtype), shape=shape)
        places = to.Range(np.int64(0), to.Squeeze(n, [0]), np.int64(1), shape=(None,))
        rows = to.Add(places, max(-self.k, 0))
        key = (*(FULL,) * before, AT, AT)
        return scattered(to, zeros, key, x, [rows, to.Add(rows, self.k)])

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (diagonal(dy, self.k, -2, -1),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3,))]
        yield cls(1), [rng.normal(size=(2, 3))]
        yield cls(-2), [rng.normal(size=(2,)).astype("float32")]


@documented(Diag)
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """The diagonal of a matrix; or the matrix with that diagonal.

    Parameters:
        x: a matrix (M, N), or a vector (N,); any dtype.
        k: how far the diagonal is above the main one (below for k < 0).

    Returns: a vector of a matrix; of a vector a square matrix with N + abs(k) rows. Dtype of x.

    Raises: ShapeError for other ranks; TypeError if k is not an int.

    Source: numpy.diag.

    >>> gg.evaluate(gg.diag([1, 2]))
    array([[1, 0],
           [0, 2]])
    """
    x, k = as_tensor(x), whole("k", k)
    if x.ndim == 1:
        return apply(Diag(k), x)
    if x.ndim != 2:
        raise ShapeError(f"diag takes a vector or a matrix, got {x.type!r}")
    return diagonal(x, k, 0, 1)


def meshgrid(
    *xs: TensorLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Tensor]:
    """Grids of coordinates of vectors: in each, one of the vectors varies along its own axis.

    Parameters:
        *xs: vectors (N1,), (N2,), ...; others are flattened; any dtypes.
        copy: taken for NumPy's sake; it changes nothing, for tensors never change.
        sparse: whether each keeps length 1 along the axes of the others.
        indexing: "ij" gives each the axis of its place, "xy" exchanges the first two axes.

    Returns: a list of tensors (N1, N2, ...), or (N2, N1, ...) for "xy", each of its vector's dtype.

    Raises: ShapeError for another indexing.

    Gradient: dx = dy summed over the other axes.

    Source: the array API standard, meshgrid.

    >>> gg.evaluate(gg.meshgrid([1, 2], [3, 4, 5], indexing="ij"))[0]
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    truth("copy", copy)
    truth("sparse", sparse)
    vectors = [as_tensor(x) for x in xs]
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid takes indexing 'xy' or 'ij', got {indexing!r}")
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    columns = [_column(v, order[i], len(vectors)) for i, v in enumerate(vectors)]
    return columns if sparse else list(broadcast_arrays(*columns))


def _column(x: Tensor, axis: int, ndim: int) -> Tensor:
    x = x if x.ndim == 1 else flatten(x)
    return expand_dims(x, tuple(i for i in range(ndim) if i != axis)) if ndim > 1 else x
