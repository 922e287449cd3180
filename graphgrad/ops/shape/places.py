"""Indices of true elements, whose number is known only at run time."""

from __future__ import annotations

from ...base.errors import ExecutionError, ShapeError, SymbolicError
from ...ir.types import compatible
from ..base import (
    Any,
    DTypeError,
    Op,
    Tensor,
    TensorType,
    Types,
    as_dtype,
    build,
    kind_of,
    np,
    tensor_type,
)
from ..batching import Batch, Outputs

__all__ = ["Counted", "MaskPlaces", "Nonzero", "RepeatedPlaces", "mask_places", "refuse_length"]

INT64 = as_dtype("int64")
PLACES = tensor_type((None,), INT64)
REMEDY = (
    "Give size= where the function takes it (gg.nonzero(x, size=n), gg.unique(x, size=n), "
    "gg.repeat(x, counts, total_repeat_length=n)), or write gg.where(mask, x, 0) for x[mask]"
)


class Counted(Op, abstract=True):
    """Family: lengths of the outputs depend on values, so the types leave them open.

    No gradient: what is made are places. They have no samples, since neither JAX nor vmap can run
    them: their laws are in tests/ops/test_nonzero.py.
    """

    differentiable = False
    flop_free = True

    def batch(self, batch: Batch) -> Outputs:
        raise SymbolicError(
            f"under vmap every example would have a different length: that of {self.type} depends "
            "on values.\n"
            f"{REMEDY}."
        )


def refuse_length(op: Op) -> Any:
    """The kernel of such an op on a backend that has to know every length before it runs."""
    raise ExecutionError(
        f"{op.type} returns a length that depends on values, but the jax backend needs every "
        "length before it runs.\n"
        f"{REMEDY}, or run it with backend='numpy' or 'llvm'."
    )


def _rows_of_places(to: Any, x: Any) -> Any:
    """Where x is not 0, an output for each axis, in ONNX."""
    places = to.NonZero(to.cast(x, "bool"))
    return tuple([to.Gather(places, np.int64(i), axis=0) for i in range(x.rank)])


class Nonzero(Counted):
    """The indices of the nonzero elements, in row-major order: an output for each axis.

    Gradient: none, the result is integer.
    """

    def infer(self, x: TensorType) -> Types:
        if not x.shape:
            raise ShapeError(f"nonzero takes at least one axis, got {x!r}; gg.reshape(x, (1,))")
        return (PLACES,) * len(x.shape)

    def kernel(self, xp: Any, x: Any) -> Any:
        return _places(xp, x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return _rows_of_places(to, x)


class MaskPlaces(Counted):
    """The places where a mask holds, which has to fit axes of another tensor, from `axis` on.

    Inputs: the mask, and the tensor, of which the shape is read.
    """

    axis: int
    shape_only = (1,)

    def infer(self, mask: TensorType, x: TensorType) -> Types:
        if kind_of(mask.dtype) != "b":
            raise DTypeError(f"a mask is bool, got {mask!r}")
        fits = x.shape[self.axis : self.axis + len(mask.shape)]
        if not compatible(fits, mask.shape):
            raise ShapeError(f"a mask {mask!r} does not fit axis {self.axis} of {x!r}")
        return (PLACES,) * len(mask.shape)

    def kernel(self, xp: Any, mask: Any, x: Any) -> Any:
        if x.shape[self.axis : self.axis + mask.ndim] != mask.shape:
            raise IndexError(
                f"a mask of shape {list(mask.shape)} does not fit axis {self.axis} of an array "
                f"of shape {list(x.shape)}"
            )
        return _places(xp, mask)

    def to_onnx(self, to: Any, mask: Any, x: Any) -> Any:
        return _rows_of_places(to, mask)


def _places(xp: Any, x: Any) -> Any:
    places = tuple([xp.astype(i, INT64) for i in xp.nonzero(x)])
    return places if len(places) > 1 else places[0]


def mask_places(x: Tensor, axis: int, mask: Tensor) -> tuple[Tensor, ...]:
    """Where a mask on axes of x holds, from this axis on: an index tensor for each axis."""
    if x.type.static and mask.type.static:
        MaskPlaces(axis).infer(mask.type, x.type)
        return build(Nonzero(), (mask,)).outputs
    return build(MaskPlaces(axis), (mask, x)).outputs


class RepeatedPlaces(Counted):
    """Each place 0 ... N - 1 as often as a vector of N counts says."""

    def infer(self, counts: TensorType) -> Types:
        if kind_of(counts.dtype) not in "iu" or len(counts.shape) != 1:
            raise ShapeError(f"numbers of copies are a vector of integers, got {counts!r}")
        return (PLACES,)

    def kernel(self, xp: Any, counts: Any) -> Any:
        return xp.repeat(xp.arange(counts.shape[0], dtype=INT64), xp.astype(counts, INT64))

    def to_onnx(self, to: Any, counts: Any) -> Any:
        """How many of the sums so far each place of the result has behind it."""
        ends = to.CumSum(to.cast(counts, "int64"), np.int64(0))
        total = to.ReduceSum(to.cast(counts, "int64"), [0], keepdims=0)
        places = to.Range(np.int64(0), total, np.int64(1))
        behind = to.LessOrEqual(to.Unsqueeze(ends, [1]), places)
        return to.ReduceSum(to.cast(behind, "int64"), [0], keepdims=0)
