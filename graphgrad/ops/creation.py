"""Tensors made from nothing, or in the likeness of another; triangles and diagonals."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import as_shape, check_unmasked
from .base import (
    Any,
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
    array_of,
    as_dtype,
    as_tensor,
    cast,
    constant,
    np,
    promoted,
    tensor_type,
    whole,
)
from .diagonal import diagonal
from .shaping import broadcast_arrays, broadcast_like, broadcast_to, expand_dims
from .slicing import placed
from .sources import stop_gradient

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


def asarray(x: TensorLike, /, *, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """x as a tensor: itself, or a constant; cast if a dtype is given. `copy` changes nothing."""
    return as_tensor(x, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of one number; the dtype is that of the number unless given.

    shape: known lengths; for others use full_like. fill_value may be a 0-d tensor.
    """
    lengths = _known(shape)
    if isinstance(fill_value, Tensor):
        return broadcast_to(as_tensor(fill_value, dtype), lengths)
    check_unmasked(fill_value)
    value = array_of(fill_value)
    if value.ndim:
        raise ShapeError(f"full takes one number, got an array of shape {list(value.shape)}")
    found = as_dtype(value.dtype if dtype is None else dtype)
    if value.dtype.kind == "c" and found.kind != "c":
        raise DTypeError(f"the complex number {fill_value} does not fit {found}")
    return apply(Full(lengths, array_of(fill_value, found).item(), found))


def _known(shape: Any) -> tuple[int, ...]:
    lengths = tuple([d for d in as_shape(shape) if isinstance(d, int)])
    if len(lengths) != len(as_shape(shape)):
        raise ShapeError(f"the lengths have to be known, got {shape}; use full_like")
    return lengths


def zeros(shape: Any, *, dtype: Any = "float64") -> Tensor:
    """Zeros. shape: known lengths."""
    return full(shape, 0.0, dtype=dtype)


def ones(shape: Any, *, dtype: Any = "float64") -> Tensor:
    """Ones. shape: known lengths."""
    return full(shape, 1.0, dtype=dtype)


empty = zeros


def full_like(x: TensorLike, /, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of one number in the shape of x, and in its dtype unless another is given.

    x is read for its shape only: nothing flows to it.
    """
    x = as_tensor(x)
    found = x.dtype if dtype is None else as_dtype(dtype)
    if x.type.static:
        return full(x.shape, fill_value, dtype=found)
    return broadcast_like(full((), fill_value, dtype=found), stop_gradient(x))


def zeros_like(x: TensorLike, /, *, dtype: Any = None) -> Tensor:
    """Zeros in the shape of x, and in its dtype unless another is given. Nothing flows to x."""
    return _of_shape(ZerosLike(), 0, as_tensor(x), dtype)


def ones_like(x: TensorLike, /, *, dtype: Any = None) -> Tensor:
    """Ones in the shape of x, and in its dtype unless another is given. Nothing flows to x."""
    return _of_shape(OnesLike(), 1, as_tensor(x), dtype)


empty_like = zeros_like


def _of_shape(op: Op, value: int, x: Tensor, dtype: Any) -> Tensor:
    if x.type.static:
        return full_like(x, value, dtype=dtype)
    made = apply(op, stop_gradient(x))
    return made if dtype is None else cast(made, dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers from start (0 if only stop is given) up to stop, without stop."""
    if stop is None:
        start, stop = 0, start
    if stop is None:
        raise DTypeError("arange takes a number to stop at, got None")
    return constant(np.arange(start, stop, step, dtype=dtype))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, endpoint: bool = True
) -> Tensor:
    """num evenly spaced numbers from start to stop, with stop unless endpoint is False.

    start and stop are numbers, or 0-d tensors, to which gradients flow.
    """
    count = whole("num", num)
    if not isinstance(start, Tensor) and not isinstance(stop, Tensor):
        return constant(np.linspace(start, stop, count, endpoint=endpoint, dtype=dtype))
    first, last = promoted(start, stop, floating=True)
    weight = np.linspace(0.0, 1.0, count, endpoint=endpoint).astype(first.dtype)
    points = first * (1 - weight) + last * weight
    return points if dtype is None else cast(points, dtype)


class Eye(Op):
    """Ones on a diagonal, k above the main one, zeros elsewhere. No gradient."""

    rows: int
    columns: int
    k: int
    dtype: DType
    differentiable = False

    def infer(self) -> Types:
        return (tensor_type((self.rows, self.columns), self.dtype),)

    def kernel(self, xp: Any) -> Any:
        return xp.eye(self.rows, self.columns, k=self.k, dtype=self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(2, 3, 1, as_dtype("float64")), []
        yield cls(3, 2, -1, as_dtype("int32")), []
        yield cls(0, 2, 0, as_dtype("float32")), []


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = "float64") -> Tensor:
    """Ones on a diagonal, k above the main one (below for k < 0), zeros elsewhere."""
    rows, columns = _known((n_rows, n_rows if n_cols is None else n_cols))
    return apply(Eye(rows, columns, whole("k", k), as_dtype(dtype)))


class Tril(Op):
    """The lower triangles of matrices (..., M, N), up to k above the diagonal; dx = that of dy."""

    k: int = 0
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if len(x.shape) < 2:
            raise ShapeError(f"{self.type} takes matrices, got {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.tril(x, self.k)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(self, dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3, 3))]
        yield cls(1), [rng.normal(size=(2, 3, 4))]
        yield cls(-1), [rng.normal(size=(3, 2)).astype("float32")]
        yield cls(0), [rng.normal(size=(0, 2))]


class Triu(Tril):
    """The upper triangles of matrices (..., M, N), from k above the diagonal; dx = that of dy."""

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.triu(x, self.k)


def tril(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices (..., M, N), up to k above the diagonal; zeros elsewhere."""
    return apply(Tril(whole("k", k)), as_tensor(x))


def triu(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices (..., M, N), from k above the diagonal; zeros elsewhere."""
    return apply(Triu(whole("k", k)), as_tensor(x))


class Diag(Op):
    """Vectors (..., N) on the diagonals, k above the main one, of square matrices of zeros.

    dx = the diagonals of dy.
    """

    k: int = 0
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if not x.shape:
            raise ShapeError(f"{self.type} takes vectors, got {x!r}")
        n = x.shape[-1]
        side = n + abs(self.k) if isinstance(n, int) else n if self.k == 0 else None
        return (tensor_type((*x.shape[:-1], side, side), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        n = x.shape[-1]
        zeros = xp.zeros((*x.shape[:-1], n + abs(self.k), n + abs(self.k)), dtype=x.dtype)
        rows = xp.arange(n) + max(-self.k, 0)
        return placed(xp, zeros, (..., rows, rows + self.k), x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (diagonal(dy, self.k, -2, -1),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3,))]
        yield cls(1), [rng.normal(size=(2, 3))]
        yield cls(-2), [rng.normal(size=(2,)).astype("float32")]


def diag(x: TensorLike, k: int = 0) -> Tensor:
    """The diagonal of a matrix, k above the main one; or the matrix with that diagonal."""
    x, k = as_tensor(x), whole("k", k)
    if x.ndim == 1:
        return apply(Diag(k), x)
    if x.ndim != 2:
        raise ShapeError(f"diag takes a vector or a matrix, got {x.type!r}")
    return diagonal(x, k, 0, 1)


def meshgrid(*xs: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """Grids of coordinates of vectors: in each, one of the vectors varies along its own axis.

    indexing: "ij" gives it the axis of its place, "xy" exchanges the first two axes.
    """
    vectors = [as_tensor(x) for x in xs]
    if indexing not in ("xy", "ij") or any(v.ndim > 1 for v in vectors):
        raise ShapeError("meshgrid takes vectors, and indexing 'xy' or 'ij'")
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    columns = [_column(v, order[i], len(vectors)) for i, v in enumerate(vectors)]
    return list(broadcast_arrays(*columns))


def _column(x: Tensor, axis: int, ndim: int) -> Tensor:
    x = x if x.ndim else expand_dims(x, 0)
    return expand_dims(x, tuple(i for i in range(ndim) if i != axis)) if ndim > 1 else x
