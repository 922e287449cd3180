"""Searching and sorting: searchsorted, lexsort, isin."""

from __future__ import annotations

from math import log2

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import elements, lengths
from ..base import (
    Any,
    DTypeError,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    kind_of,
    np,
    promoted,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..elementwise.arithmetic import subtract
from ..elementwise.logic import equal, less, logical_and, logical_not
from ..reduce.reductions import Flat
from ..reduce.sorting import ArgSort, GatherElements, comparisons, sort
from ..shape.indexing import take
from ..shape.joining import concat, stack
from ..shape.padding import Pad
from ..shape.places import INT64
from ..shape.reshaping import flatten, moveaxis, normal_axis, reshape_like
from ..shape.slicing import FULL, Slice
from .nonzero import length_of

__all__ = ["isin", "lexsort", "searchsorted"]


class SearchSorted(Op):
    """How many elements of a vector in order are before each element of v.

    Gradient: none, the result is integer.

    right: equal ones are before it too.
    """

    right: bool = False
    differentiable = False

    def infer(self, x: TensorType, v: TensorType) -> Types:
        if len(x.shape) != 1 or x.dtype is not v.dtype:
            raise ShapeError(f"searchsorted takes a vector, and values like it, got {x!r}, {v!r}")
        if kind_of(x.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {x!r}")
        return (tensor_type(v.shape, INT64),)

    def kernel(self, xp: Any, x: Any, v: Any) -> Any:
        side = "right" if self.right else "left"
        return xp.astype(xp.asarray(xp.searchsorted(x, v, side=side)), INT64)

    def to_onnx(self, to: Any, x: Any, v: Any) -> Any:
        """Each element of v against each of x."""
        apart = to.Unsqueeze(v, [-1])
        before = to("LessOrEqual" if self.right else "Less", to.wide(x), to.wide(apart))
        return to.ReduceSum(to.cast(before, "int64"), [-1], keepdims=0)

    def batch(self, batch: Batch) -> Outputs | None:
        """With one order for all, as it is. Else what is before v when both are put in order
        together, less what is of v: equal elements stay in the order in which they stand.
        """
        if not batch.flags[0]:
            return batch.build(self, *batch.inputs)
        x, v = batch.every()
        rows = apply(Flat(1), v)
        n, count = x.shape[1], rows.shape[1]
        if not (isinstance(n, int) and isinstance(count, int)):
            return None
        both, start = ((x, rows), n) if self.right else ((rows, x), 0)
        ranks = apply(Slice((FULL, (start, start + count, None))), _ranks(concat(both, 1)))
        return (reshape_like(subtract(ranks, _ranks(rows)), v),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(n) comparisons for each value."""
        (n,) = lengths(inputs[0])
        return elements(inputs[1]) * max(1, round(log2(n))) if n else 0

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        x = np.array([0.0, 1.0, 1.0, 2.0])
        yield cls(), [x, np.array([[1.0, -1.0], [2.0, 3.0]])]
        yield cls(True), [x.astype("float32"), np.array(1.0, "float32")]
        yield cls(), [np.zeros((0,), "int64"), np.arange(3)]


def _ranks(rows: Tensor) -> Tensor:
    """The place of every element of a row when the row is in order."""
    return apply(ArgSort(1), apply(ArgSort(1), rows))


@documented(SearchSorted)
def searchsorted(
    x1: TensorLike, x2: TensorLike, /, side: str = "left", sorter: TensorLike | None = None
) -> Tensor:
    """The places in a vector in order at which values would be put in, so that it stays in order.

    Parameters:
        x1: (N,), in ascending order, NaN last; integer, bool or floating.
        x2: any shape; promoted with x1.
        side: "left": before elements that are equal; "right": behind them.
        sorter: the places that put x1 in order, as of argsort; None: it is in order.

    Returns: same shape as x2, int64: 0 to N.

    Raises: ShapeError if x1 or sorter is not a vector, or for another side; DTypeError for complex
    numbers. Whether x1 is in order is not looked at.

    Source: the array API standard, searchsorted.

    >>> gg.evaluate(gg.searchsorted([1.0, 3.0, 5.0], [3.0, 4.0]))
    array([1, 2])
    """
    if side not in ("left", "right"):
        raise ShapeError(f"side is 'left' or 'right', got {side!r}")
    x, v = promoted(x1, x2)
    if sorter is not None:
        x = take(x, sorter, 0)
    return apply(SearchSorted(side == "right"), x, v)


class LexSort(Op):
    """The order of the columns of keys (..., K, N): by the last key, ties by the one before it.

    Gradient: none, the result is integer.

    Ties of all keys stay in order.
    """

    differentiable = False
    stacks = True

    def infer(self, keys: TensorType) -> Types:
        if len(keys.shape) < 2 or keys.shape[-2] == 0:
            raise ShapeError(f"lexsort takes at least one key, got {keys!r}")
        if kind_of(keys.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {keys!r}")
        return (tensor_type((*keys.shape[:-2], keys.shape[-1]), INT64),)

    def kernel(self, xp: Any, keys: Any) -> Any:
        return xp.astype(xp.lexsort(xp.moveaxis(keys, -2, 0), axis=-1), INT64)

    def to_onnx(self, to: Any, keys: Any) -> Any:
        """By one key after the other, the last one last, each time leaving ties as they are."""
        count, last = keys.shape[-2], keys.rank - 2
        if not isinstance(count, int):
            return None
        order = None
        for i in range(count):
            key = to.Gather(keys, np.int64(i), axis=last, shape=(*keys.shape[:-2], keys.shape[-1]))
            if order is None:
                order = to.apply(ArgSort(last), key)
            else:
                moved = to.apply(GatherElements(last), key, order)
                order = to.apply(GatherElements(last), order, to.apply(ArgSort(last), moved))
        return order

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(N) comparisons for each element."""
        return comparisons(inputs[0], len(inputs[0].shape) - 1)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.integers(0, 2, size=(2, 5))]
        yield cls(), [rng.integers(0, 2, size=(2, 1, 4)).astype("float32")]


@documented(LexSort)
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The places of elements in order along an axis, by several keys: the last one counts first.

    Parameters:
        keys: tensors of one shape, or a tensor of them along its first axis; integer, bool or
            floating, promoted together.
        axis: the axis of a key along which is sorted.

    Returns: the shape of a key, int64.

    Raises: ShapeError for no keys, keys without axes or of different shapes, or if they have no
    such axis; DTypeError for complex numbers.

    Source: numpy.lexsort.

    >>> gg.evaluate(gg.lexsort(([3, 1, 2], [0, 1, 0])))
    array([2, 0, 1])
    """
    rows = stack(promoted(*keys)) if isinstance(keys, list | tuple) and keys else as_tensor(keys)
    if rows.ndim < 2:
        raise ShapeError(f"lexsort takes keys with at least one axis, got {rows.type!r}")
    axis = normal_axis(axis, rows.ndim - 1) + 1
    order = apply(LexSort(), moveaxis(rows, (0, axis), (-2, -1)))
    return moveaxis(order, -1, axis - 1)


def isin(
    element: TensorLike,
    test_elements: TensorLike,
    /,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is among others.

    Parameters:
        element: any shape; integer, bool or floating.
        test_elements: any shape, flattened; promoted with element.
        assume_unique: taken for NumPy's sake; it changes nothing.
        invert: whether to say where it is not among them.

    Returns: same shape as element, bool. NaN is among nothing.

    Raises: DTypeError for complex numbers.

    Gradient: none, the result is bool.

    Source: numpy.isin.

    >>> gg.evaluate(gg.isin([1, 2, 5], [2, 1]))
    array([ True,  True, False])
    """
    truth("assume_unique", assume_unique)
    truth("invert", invert)
    x, others = promoted(element, test_elements)
    rows = sort(flatten(others), 0)
    at = apply(SearchSorted(), rows, x)
    behind = apply(Pad(((0, 1),), 0), rows)
    present = logical_and(equal(take(behind, at, 0), x), less(at, length_of(rows)))
    return logical_not(present) if invert else present
