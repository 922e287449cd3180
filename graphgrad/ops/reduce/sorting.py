"""Sorting, top-k, and element selection along an axis."""

from __future__ import annotations

from math import log2
from operator import sub

from ...base.errors import ShapeError
from ...base.flags import truth, truth_if_given
from ...ir.types import (
    Dim,
    broadcast,
    compatible,
    computed,
    elements,
    is_negative,
    lengths,
    merge_dims,
)
from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Samples,
    Shape,
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
    kind_of,
    like,
    np,
    tensor_type,
    wants,
    whole,
)
from ..documented import documented
from ..elementwise.complex_parts import imag, real
from ..elementwise.logic import isnan, where
from ..shape.indexing import Places, as_places, check_integers, check_updates, zeros_of
from ..shape.reshaping import broadcast_to, flatten, listed, normal_axis
from ..shape.updates import plus_at

__all__ = [
    "argpartition",
    "argsort",
    "partition",
    "sort",
    "sort_complex",
    "take_along_axis",
    "topk",
]

INT64 = as_dtype("int64")


class GatherElements(Op):
    """y[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis.

    Gradient: dx = dy added up at the indices, zeros elsewhere.

    x and indices have equal lengths of the other axes.
    """

    axis: int
    onnx = Onnx("GatherElements", axis="axis")
    linear = (0,)
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis",)

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """The indices."""
        return ((1, self.axis),)

    def infer(self, x: TensorType, indices: TensorType) -> Types:
        return (tensor_type(_along(x, indices, self.axis), x.dtype),)

    def kernel(self, xp: Any, x: Any, indices: Any) -> Any:
        return xp.take_along_axis(x, indices, axis=self.axis)

    def to_onnx(self, to: Any, x: Any, indices: Any) -> Any:
        return to.GatherElements(x, to.cast(indices, "int64"), axis=self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, indices = node.inputs
        return apply(ScatterElements(self.axis), zeros_of(x), indices, dy), NO_GRAD

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3, 2)), np.array([[0, 2], [0, -1]])]
        yield cls(1), [rng.normal(size=(2, 3)).astype("float32"), np.array([[1], [2]])]
        yield cls(0), [rng.normal(size=(0,)), np.zeros((0,), "int64")]


class ScatterElements(Op):
    """x with updates added at the indices along an axis, each column on its own.

    Gradient: dx = dy, dupdates = dy picked at the indices.

    x, indices and updates have equal lengths of the other axes; indices and updates have one shape.
    """

    axis: int
    linear = (0, 2)
    axis_attrs = ("axis",)

    @property
    def index_inputs(self) -> Places:  # type: ignore[override]
        """The indices."""
        return ((1, self.axis),)

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> Types:
        check_updates(x, _along(x, indices, self.axis), updates)
        return (x,)

    def kernel(self, xp: Any, x: Any, indices: Any, updates: Any) -> Any:
        columns = [
            indices if i == self.axis else xp.reshape(xp.arange(n), _only(i, x.ndim))
            for i, n in enumerate(indices.shape)
        ]
        return plus_at(xp.asarray(x), tuple(columns), updates)

    def to_onnx(self, to: Any, x: Any, indices: Any, updates: Any) -> Any:
        places = to.cast(indices, "int64")
        return to.ScatterElements(x, places, updates, axis=self.axis, reduction="add")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        indices, updates = node.inputs[1:]
        back = apply(GatherElements(self.axis), dy, indices) if wants(updates) else NO_GRAD
        return dy, NO_GRAD, back

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element that is added."""
        return elements(inputs[2])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x = rng.normal(size=(3, 2))
        yield cls(0), [x, np.array([[0, 2], [0, -1]]), rng.normal(size=(2, 2))]
        yield cls(1), [x.astype("float32"), np.ones((3, 1), "int64"), np.ones((3, 1), "float32")]


def _only(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(-1 if i == axis else 1 for i in range(ndim))


def _along(x: TensorType, indices: TensorType, axis: int) -> Shape:
    check_integers(indices)
    if len(x.shape) != len(indices.shape) or axis >= len(x.shape):
        raise ShapeError(f"picking from {x!r} along axis {axis} with {indices!r}: ranks differ")
    dims: list[Dim] = []
    for i, (d, n) in enumerate(zip(x.shape, indices.shape)):
        try:
            dims.append(n if i == axis else merge_dims(d, n))
        except ShapeError as error:
            raise ShapeError(f"picking from {x!r} with {indices!r}: {error}") from None
    return tuple(dims)


@documented(GatherElements)
def take_along_axis(x: TensorLike, indices: TensorLike, /, axis: int = -1) -> Tensor:
    """Elements picked along an axis, place by place: y[.., i, ..] = x[.., indices[.., i, ..], ..].

    Parameters:
        x: at least one axis, any dtype.
        indices: integers from -N to N - 1, of the rank of x; lengths of 1 beside the axis are
            broadcast, in x too.
        axis: an axis of x of length N.

    Returns: same shape as indices, but for what was broadcast; dtype of x.

    Raises: ShapeError where the ranks differ, lengths of the other axes do not broadcast, or there
    is no such axis; DTypeError for indices that are not integers. A run raises IndexError for an
    index that is out of bounds.

    Source: the array API standard, take_along_axis.

    >>> gg.evaluate(gg.take_along_axis([[1, 2], [3, 4]], [[1], [0]]))
    array([[2],
           [3]])
    """
    x, indices = as_tensor(x), as_places(as_tensor(indices))
    if x.ndim != indices.ndim:
        raise ShapeError(f"take_along_axis of {x.type!r} with {indices.type!r}: ranks differ")
    axis = normal_axis(axis, x.ndim)
    beside = broadcast([_without(x.shape, axis), _without(indices.shape, axis)])
    return apply(GatherElements(axis), _spread(x, beside, axis), _spread(indices, beside, axis))


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _spread(x: Tensor, beside: Shape, axis: int) -> Tensor:
    there = _without(x.shape, axis)
    if there == beside or (None in beside and compatible(there, beside)):
        return x
    return broadcast_to(x, (*beside[:axis], x.shape[axis], *beside[axis:]))


# --- order -----------------------------------------------------------------------------------


class Sort(Op):
    """x in order along an axis. Gradient: dx = dy, each element at the place it came from.

    Equal elements keep their order, so the first of a tie has the gradient of the first place.
    """

    axis: int
    descending: bool = False
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        _check_ordered(x, self.axis)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        if not self.descending:
            return _stably_sorted(xp, x, self.axis)
        y = _stably_sorted(xp, xp.flip(x, axis=self.axis), self.axis)
        return xp.flip(y, axis=self.axis)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return _top(to, x, to.length(x, self.axis), self.axis, self.descending)[0]

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        order = apply(ArgSort(self.axis, self.descending), x)
        return (apply(ScatterElements(self.axis), zeros_of(x), order, dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(n) comparisons for each element."""
        return comparisons(inputs[0], self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(5,))]
        yield cls(1, True), [rng.normal(size=(2, 4))]
        yield cls(0), [rng.normal(size=(3, 2)).astype("float32")]
        yield cls(0), [rng.normal(size=(0, 2))]


class ArgSort(Op):
    """The places of the elements of x in order along an axis, ties as in x.

    Gradient: none, the result is integer.
    """

    axis: int
    descending: bool = False
    differentiable = False
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        _check_ordered(x, self.axis)
        return (tensor_type(x.shape, INT64),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.astype(_order(xp, x, self.axis, self.descending), INT64)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return _top(to, x, to.length(x, self.axis), self.axis, self.descending)[1]

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(n) comparisons for each element."""
        return comparisons(inputs[0], self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(5,))]
        yield cls(1, True), [rng.integers(0, 3, size=(2, 6))]


class TopK(Op):
    """The k largest (or smallest) elements along an axis, in order, and their places; of a tie the
    first.

    Gradient: dx = the gradient of values, each element at the place it came from.
    """

    k: Any
    axis: int
    largest: bool = True
    onnx = Onnx("TopK")
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        _check_ordered(x, self.axis)
        length = x.shape[self.axis]
        missing = computed(sub, length, self.k)
        if is_negative(self.k) or (missing is not None and is_negative(missing)):
            raise ShapeError(f"the first {self.k} along axis {self.axis} of {x!r}")
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return tensor_type(shape, x.dtype), tensor_type(shape, INT64)

    def kernel(self, xp: Any, x: Any) -> Any:
        order = _order(xp, x, self.axis, self.largest)
        places = order[(slice(None),) * self.axis + (slice(self.k),)]
        return xp.take_along_axis(x, places, axis=self.axis), xp.astype(places, INT64)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return _top(to, x, [self.k], self.axis, self.largest)

    def vjp(self, node: Node, dy: Tensor, _: Any) -> Gradients:
        (x,), places = node.inputs, node.outputs[1]
        return (apply(ScatterElements(self.axis), zeros_of(x), places, dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(n) comparisons for each element."""
        return comparisons(inputs[0], self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(2, 0), [rng.normal(size=(5,))]
        yield cls(1, 1, False), [rng.normal(size=(2, 4)).astype("float32")]


def comparisons(x: TensorType, axis: int) -> int:
    """What it takes to sort along an axis: about log2(n) for each element."""
    n = lengths(x)[axis]
    return elements(x) * max(1, round(log2(n))) if n else 0


def _top(to: Any, x: Any, k: Any, axis: int, largest: bool) -> Any:
    """The first of x in order, and their places, in ONNX: ties as in x."""
    wide = to.wide(x)
    values, places = to.TopK(wide, k, axis=axis, largest=largest, outputs=2)
    return values if wide is x else to.GatherElements(x, places, axis=axis), places


def _check_ordered(x: TensorType, axis: int) -> None:
    if axis >= len(x.shape):
        raise ShapeError(f"order along axis {axis} of {x!r}")
    if kind_of(x.dtype) == "c":
        raise DTypeError(f"complex numbers have no order, got {x!r}")


def _stably_sorted(xp: Any, x: Any, axis: int) -> Any:
    """x in order; where equal numbers can be told apart, as 0.0 and -0.0, by a stable argsort."""
    if xp is np and kind_of(x.dtype) == "f":
        signs = np.signbit(x[x == 0])
        if signs.any() and not signs.all():
            order = np.argsort(x, axis=axis, stable=True)
            return np.take_along_axis(x, order, axis=axis)
    return xp.sort(x, axis=axis)


def _order(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """A stable argsort; descending, the reverse of that of the reversed x keeps it stable."""
    if not descending:
        return _stable_order(xp, x, axis)
    order = _stable_order(xp, xp.flip(x, axis=axis), axis)
    return x.shape[axis] - 1 - xp.flip(order, axis=axis)


def _stable_order(xp: Any, x: Any, axis: int) -> Any:
    """A stable argsort, on NumPy by sorts that are not, which take a fifth to half the time."""
    words = xp is np and x.dtype.kind in "iuf" and x.dtype.itemsize in (4, 8)
    if not words or x.size < 1024:
        return xp.argsort(x, axis=axis, stable=True)
    rows = np.moveaxis(x, axis, -1)
    bits = max(rows.shape[-1] - 1, 0).bit_length()
    keys = _keys(rows, 64 - bits)
    order = _order_without_ties(rows) if keys is None else _order_by_keys(keys, bits)
    return np.moveaxis(order, -1, axis)


def _keys(rows: Any, bits: int) -> Any:
    """Integers of so many bits, in a new array of uint64, in the order of the elements; or None."""
    if rows.dtype == np.float32 and bits >= 32:
        words = (rows + np.float32(0)).view(np.int32)  # -0 is 0
        keys = (words ^ (words >> 31 | np.int32(-(2**31)))).view(np.uint32)
        np.copyto(keys, np.uint32(2**32 - 1), where=np.isnan(rows))
        return keys.astype(np.uint64)
    if rows.dtype.kind == "f":
        return None
    least, most = rows.min(), rows.max()
    fits = (int(most) - int(least)).bit_length() <= bits
    return (rows.astype(np.uint64) - least.astype(np.uint64)) if fits else None


def _order_by_keys(keys: Any, bits: int) -> Any:
    """By keys with places in their last bits."""
    keys <<= np.uint64(bits)
    keys |= np.arange(keys.shape[-1], dtype=np.uint64)
    keys.sort(axis=-1)
    keys &= np.uint64(2**bits - 1)
    return keys.view(np.int64)


def _order_without_ties(rows: Any) -> Any:
    """The order that only one can be, where no two of a row are equal; some tell most ties."""
    some = np.sort(rows.reshape(-1)[:: rows.size // 512])
    if (some[:-1] < some[1:]).all():
        order = np.argsort(rows, axis=-1)
        made = np.take_along_axis(rows, order, axis=-1)
        if (made[..., :-1] < made[..., 1:]).all():
            return order
    return np.argsort(rows, axis=-1, stable=True)


@documented(Sort)
def sort(
    x: TensorLike,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Tensor:
    """x in order along an axis; NaN counts as the largest.

    Parameters:
        x: at least one axis, any dtype; complex numbers go by the real part, ties by the imaginary
            one.
        axis: the axis; None: x is flattened first.
        kind: as in NumPy; it means nothing here.
        descending: whether the largest comes first.
        stable: taken for the standard's sake; equal elements always keep their order.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axis; DTypeError for input that is not an array.

    Source: the array API standard, sort.

    >>> gg.evaluate(gg.sort([3, 1, 2], descending=True))
    array([3, 2, 1])
    """
    truth_if_given("stable", stable)
    x = as_tensor(x)
    if axis is None:
        return sort(flatten(x), 0, descending=descending)
    if kind_of(x.dtype) == "c":
        axis = normal_axis(axis, x.ndim)
        return apply(GatherElements(axis), x, _order_of_complex(x, axis, descending))
    return apply(Sort(normal_axis(axis, x.ndim), truth("descending", descending)), x)


@documented(ArgSort)
def argsort(
    x: TensorLike,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> Tensor:
    """The indices that sort the elements along an axis; NaN counts as the largest.

    Parameters:
        x: at least one axis, any dtype; complex numbers go by the real part, ties by the imaginary
            one.
        axis: the axis; None: x is flattened first.
        kind: as in NumPy; it means nothing here.
        descending: whether the largest comes first.
        stable: taken for the standard's sake; equal elements always keep their order.

    Returns: same shape as x, int64.

    Raises: ShapeError if x has no such axis; DTypeError for input that is not an array.

    Source: the array API standard, argsort.

    >>> gg.evaluate(gg.argsort([3, 1, 2]))
    array([1, 2, 0])
    """
    truth_if_given("stable", stable)
    x = as_tensor(x)
    if axis is None:
        return argsort(flatten(x), 0, descending=descending)
    if kind_of(x.dtype) == "c":
        return _order_of_complex(x, normal_axis(axis, x.ndim), descending)
    return apply(ArgSort(normal_axis(axis, x.ndim), truth("descending", descending)), x)


def _order_of_complex(x: Tensor, axis: int, descending: bool) -> Tensor:
    """The places by the real part, ties by the imaginary one; then R + nanj, nan + Rj, nan + nanj.

    That is NumPy's order, found by stable sorts, the last key first.
    """
    first, second = real(x), imag(x)
    behind = like(np.inf, first)
    order = apply(ArgSort(axis, descending), first)
    for key in (second, where(isnan(second), where(isnan(first), first, behind), first)):
        moved = apply(GatherElements(axis), key, order)
        order = apply(GatherElements(axis), order, apply(ArgSort(axis, descending), moved))
    return order


def partition(x: TensorLike, kth: Any, axis: int | None = -1, kind: str | None = None) -> Tensor:
    """x along an axis with the kth element where it is in order, less before and more behind it.

    Everything is put in order, which is such a partition for every kth.

    Parameters:
        x: at least one axis, any dtype; complex numbers go by the real part, ties by the imaginary
            one.
        kth: an int or several: from -N to N - 1 for an axis of length N.
        axis: the axis; None: x is flattened first.
        kind: as in NumPy; it means nothing here.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no such axis, or it has no such place.

    Gradient: dx = dy, each element at the place it came from.

    Source: numpy.partition.

    >>> gg.evaluate(gg.partition([3, 1, 2], 1))
    array([1, 2, 3])
    """
    x, axis = _partitioned(x, kth, axis)
    return sort(x, axis)


def argpartition(x: TensorLike, kth: Any, axis: int | None = -1, kind: str | None = None) -> Tensor:
    """The places of the elements of partition(x, kth, axis).

    Parameters:
        x: at least one axis, any dtype; complex numbers go by the real part, ties by the imaginary
            one.
        kth: an int or several: from -N to N - 1 for an axis of length N.
        axis: the axis; None: x is flattened first.
        kind: as in NumPy; it means nothing here.

    Returns: same shape as x, int64.

    Raises: ShapeError if x has no such axis, or it has no such place.

    Gradient: none, the result is integer.

    Source: numpy.argpartition.

    >>> gg.evaluate(gg.argpartition([3, 1, 2], 1))
    array([1, 2, 0])
    """
    x, axis = _partitioned(x, kth, axis)
    return argsort(x, axis)


def _partitioned(x: TensorLike, kth: Any, axis: int | None) -> tuple[Tensor, int]:
    x = as_tensor(x)
    x, axis = (flatten(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    length = x.shape[axis]
    for k in listed(kth):
        place = whole("kth", k)
        if isinstance(length, int) and not -length <= place < length:
            raise ShapeError(f"partition at {place} along axis {axis} of {x.type!r}")
    return x, axis


def sort_complex(a: TensorLike) -> Tensor:
    """Complex numbers along the last axis in order: by the real part, ties by the imaginary one.

    Parameters:
        a: at least one axis; any dtype.

    Returns: same shape as a; complex128, or complex64 for ints of 16 bits and less and
        complex64.

    Raises: ShapeError for 0-d.

    Gradient: da = dy, each element at the place it came from.

    Source: numpy.sort_complex.

    >>> gg.evaluate(gg.sort_complex([2 + 1j, 1j, 2 - 1j]))
    array([0.+1.j, 2.-1.j, 2.+1.j])
    """
    a = as_tensor(a)
    axis = normal_axis(-1, a.ndim)
    if kind_of(a.dtype) == "c":
        return sort(a, axis)
    single = kind_of(a.dtype) in "iu" and a.dtype.itemsize <= 2
    return cast(sort(a, axis), as_dtype("complex64" if single else "complex128"))


@documented(TopK)
def topk(x: TensorLike, k: Any, axis: int = -1, *, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) elements along an axis, in order, and their places.

    Parameters:
        x: at least one axis; integer, bool or floating.
        k: how many, an int or a length, at most the length of the axis.
        axis: the axis.
        largest: whether the largest are taken.

    Returns: (values, places): x with length k along the axis, in its dtype and as int64.

    Raises: ShapeError if x has no such axis, or for a k that does not fit; DTypeError if x is
    complex.

    Source: torch.topk.

    >>> gg.evaluate(gg.topk([3.0, 1.0, 2.0], 2))
    (array([3., 2.]), array([0, 2]))
    """
    x = as_tensor(x)
    k = count("k", k)
    if is_negative(k):
        raise ShapeError(f"topk of {x.type!r}: k is {k}")
    op = TopK(k, normal_axis(axis, x.ndim), truth("largest", largest))
    values, places = build(op, (x,)).outputs
    return values, places


# --- one-hot ---------------------------------------------------------------------------------
