"""Sums, means, extrema over axes."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import Dim
from .base import (
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    np,
    tensor_type,
)
from .shaping import broadcast_like, expand_dims

Axes = tuple[int, ...]


def normal_axes(axis: Any, ndim: int) -> Axes:
    """Axes as sorted non-negative ints, all of them for None; ShapeError where they do not fit."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = sorted(int(a) + ndim if int(a) < 0 else int(a) for a in given)
    if any(not 0 <= a < ndim for a in axes) or len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} does not fit {ndim} axes")
    return tuple(axes)


def reduced(shape: Shape, axes: Axes, keepdims: bool) -> Shape:
    """The shape after a reduction."""
    if keepdims:
        one: Dim = 1
        return tuple(one if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


class Reduction(Op, abstract=True):
    """Family: axes are sorted and non-negative."""

    axes: Axes
    keepdims: bool = False

    def infer(self, x: TensorType) -> Types:
        if self.axes and self.axes[-1] >= len(x.shape):
            raise ShapeError(f"{self.type} over axes {self.axes} of {x!r}")
        return (tensor_type(reduced(x.shape, self.axes, self.keepdims), x.dtype),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for axes, keep in [((0, 1), False), ((1,), True), ((0,), False), ((), False)]:
            yield cls(axes, keep), [rng.uniform(*cls.domain, size=(2, 3))]
        yield cls((), False), [rng.uniform(*cls.domain, size=())]

    def spread(self, t: Tensor, x: Tensor) -> Tensor:
        """t, of the reduced shape, broadcast back to the shape of x."""
        return broadcast_like(t if self.keepdims else expand_dims(t, self.axes), x)


class ReduceSum(Reduction):
    """y = sum of x over axes, dx = dy broadcast."""

    onnx = "ReduceSum"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (self.spread(dy, node.inputs[0]),)


def sum(x: TensorLike, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over axes (all of them for None). Small ints and bools are summed as int64."""
    x = as_tensor(x)
    if x.dtype.kind in "bi" and x.dtype.itemsize < 8:
        x = x.astype("int64")
    return apply(ReduceSum(normal_axes(axis, x.ndim), bool(keepdims)), x)
