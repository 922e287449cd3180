"""Cumulative maxima and minima along an axis."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...ir.types import elements
from ..base import (
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    apply,
    as_dtype,
    as_tensor,
    kind_of,
    np,
    tensor_type,
)
from ..documented import documented
from ..onnx_loops import greatest_so_far
from ..onnx_places import LAST
from ..shape.indexing import zeros_of
from ..shape.reshaping import normal_axis
from .sorting import ScatterElements

__all__ = ["cummax", "cummin"]


class CumMax(Op):
    """y[k] = the largest of x[0] to x[k] along an axis, NaN from the first one on.

    Gradient: dx = dy added up where y came from: at the first of equal elements.
    """

    axis: int
    axis_attrs = ("axis",)
    derivative = Derivative(relevance="moved")
    traits = Traits(idempotent=True)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape):
            raise ShapeError(f"{self.type} along axis {self.axis} of {x!r}")
        if kind_of(x.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.maximum.accumulate(x, axis=self.axis)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return greatest_so_far(to, "Max", x, self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        places = apply(RunStart(self.axis), y)
        return (apply(ScatterElements(self.axis), zeros_of(x), places, dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of x."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(5,))]
        yield cls(1), [rng.normal(size=(2, 4)).astype("float32")]
        yield cls(0), [np.array([1, 3, 3, 2, 4])]
        yield cls(0), [rng.normal(size=(0, 2))]


class CumMin(CumMax):
    """y[k] = the smallest of x[0] to x[k] along an axis."""

    traits = Traits(idempotent=True)
    derivative = Derivative(relevance="moved")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.minimum.accumulate(x, axis=self.axis)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return greatest_so_far(to, "Min", x, self.axis)


class RunStart(Op):
    """At each place along an axis, the last place (int64) where the value changed.

    Gradient: none.
    """

    axis: int
    differentiable = False
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape):
            raise ShapeError(f"{self.type} along axis {self.axis} of {x!r}")
        return (tensor_type(x.shape, "int64"),)

    def kernel(self, xp: Any, x: Any, largest: Any = None) -> Any:
        x = xp.moveaxis(x, self.axis, -1)
        new = (x[..., 1:] != x[..., :-1]) & (x[..., :-1] == x[..., :-1])
        first = xp.zeros_like(x[..., :1], dtype=bool)
        new = xp.concatenate([first, new], axis=-1)
        places = xp.where(new, xp.arange(x.shape[-1]), 0)
        places = (largest or xp.maximum.accumulate)(places, axis=-1)
        return xp.astype(xp.moveaxis(places, -1, self.axis), as_dtype("int64"))

    def to_onnx(self, to: Any, x: Any) -> Any:
        """The last place so far that differs from the one before, from 0 on."""
        axes = [self.axis]
        row, before = to.Slice(x, [1], [LAST], axes), to.Slice(x, [0], [-1], axes)
        new = to.And(to.Not(to.Equal(row, before)), to.Equal(before, before))
        count = to.Squeeze(to.length(x, self.axis), [0])
        places = to.Range(np.int64(1), count, np.int64(1))
        others = list(range(1, x.rank - self.axis))
        at = to.Mul(to.cast(new, "int64"), to.Unsqueeze(places, others) if others else places)
        widths = [0] * (2 * x.rank)
        widths[self.axis] = 1
        padded = to.Pad(at, widths)
        whole = to.Slice(padded, [0], to.length(x, self.axis), axes, shape=x.shape)
        return greatest_so_far(to, "Max", whole, self.axis)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One comparison for each element of x."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [np.array([1.0, 1.0, 2.0, np.nan, np.nan])]
        yield cls(1), [np.array([[3, 3, 1], [1, 2, 3]])]
        yield cls(0), [rng.normal(size=(0, 2))]


@documented(CumMax)
def cummax(x: TensorLike, axis: int = 0) -> Tensor:
    """The largest so far along an axis: y[k] = the largest of x[0] to x[k]; NaN from one on.

    Parameters:
        x: at least one axis; bool, integer or floating.
        axis: an int.

    Returns: shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Source: numpy.maximum.accumulate; jax.lax.cummax.

    >>> gg.evaluate(gg.cummax([1, 3, 2, 4]))
    array([1, 3, 3, 4])
    """
    x = as_tensor(x)
    return apply(CumMax(normal_axis(axis, x.ndim)), x)


@documented(CumMin)
def cummin(x: TensorLike, axis: int = 0) -> Tensor:
    """The smallest so far along an axis: y[k] = the smallest of x[0] to x[k]; NaN from one on.

    Parameters:
        x: at least one axis; bool, integer or floating.
        axis: an int.

    Returns: shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Source: numpy.minimum.accumulate; jax.lax.cummin.

    >>> gg.evaluate(gg.cummin([3, 1, 2, 0]))
    array([3, 1, 1, 0])
    """
    x = as_tensor(x)
    return apply(CumMin(normal_axis(axis, x.ndim)), x)
