"""Places in sorted tensors, and what is read there."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import compatible, lengths
from .base import (
    Any,
    DTypeError,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    np,
    promoted,
    tensor_type,
)
from .batching import Batch, Outputs
from .indexing import take

__all__ = ["searchsorted"]

INT64 = as_dtype("int64")


class SearchSorted(Op):
    """Where v would be put into sorted a (int64): before what is equal, or behind it. No gradient.

    a: (..., N)    v: (..., any shape), with the same axes in front, over which it is done in rows
    """

    right: bool
    differentiable = False

    def infer(self, a: TensorType, v: TensorType) -> Types:
        rows = len(a.shape) - 1
        if rows < 0 or not compatible(a.shape[:rows], v.shape[:rows]):
            raise ShapeError(f"searching {v!r} in {a!r}, which has to be a vector, or rows for it")
        if a.dtype is not v.dtype or a.dtype.kind == "c":
            raise DTypeError(f"searching takes real numbers of one dtype, got {a!r} and {v!r}")
        return (tensor_type(v.shape, INT64),)

    def kernel(self, xp: Any, a: Any, v: Any) -> Any:
        side = "right" if self.right else "left"
        if a.ndim == 1:
            return xp.asarray(xp.searchsorted(a, v, side=side), dtype=INT64)
        rows = a.ndim - 1
        if 0 in v.shape:
            return xp.zeros(v.shape, dtype=INT64)
        search = xp.vectorize(
            lambda x, y: xp.searchsorted(x, y, side=side), signature="(n),(k)->(k)"
        )
        places = search(a, xp.reshape(v, (*v.shape[:rows], -1)))
        return xp.asarray(xp.reshape(places, v.shape), dtype=INT64)

    def batch(self, batch: Batch) -> Outputs:
        a, v = batch.inputs
        if not batch.flags[0] and len(a.shape) == 1:
            return batch.build(self, a, v)
        return batch.build(self, *batch.every())

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """About log2(n) comparisons for each element of v."""
        n = lengths(inputs[0])[-1]
        return int(np.prod(lengths(inputs[1]))) * n.bit_length()

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(False), [np.array([0.0, 1.0, 1.0, 2.0]), np.array([[1.0, -1.0], [5.0, np.nan]])]
        yield cls(True), [np.array([0, 1, 1, 2]), np.array(1)]
        yield cls(True), [np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1.0, 0.5], [1.0, 2.5]])]
        yield cls(False), [np.zeros((0,)), np.zeros((2,))]


def searchsorted(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    side: str = "left",
    sorter: TensorLike | None = None,
) -> Tensor:
    """Where elements would be put into a sorted vector to keep it so; NaN counts as the largest.

    Parameters:
        x1: one axis, in order; bool, integer or floating.
        x2: any shape.
        side: "left": before what is equal; "right": behind it.
        sorter: the places of x1 in order, where x1 is not sorted, as from argsort.

    Returns: int64, the shape of x2: from 0 to the length of x1.

    Raises: ShapeError unless x1 is a vector; ValueError for another side; DTypeError for complex
        numbers.

    Gradient: none, the result is integer.

    Source: the array API standard, searchsorted.

    >>> gg.evaluate(gg.searchsorted([1.0, 2.0, 3.0], [2.0, 9.0]))
    array([1, 3])
    """
    if side not in ("left", "right"):
        raise ValueError(f'side is "left" or "right", got {side!r}')
    a, v = promoted(x1, x2)
    if a.ndim != 1:
        raise ShapeError(f"searchsorted takes a sorted vector, got {a.type!r}")
    if sorter is not None:
        a = take(a, sorter, 0)
    return apply(SearchSorted(side == "right"), a, v)
