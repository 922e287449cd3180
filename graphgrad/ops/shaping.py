"""The same elements in another shape, or with the axes in another order."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import Dim, as_shape, broadcast, compatible, size_of
from .base import (
    ZERO,
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Sequence,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    np,
    tensor_type,
    whole,
)

__all__ = [
    "broadcast_arrays",
    "broadcast_like",
    "broadcast_to",
    "expand_dims",
    "flatten",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "reshape_like",
    "squeeze",
    "sum_to",
    "swapaxes",
    "transpose",
]


def normal_axis(axis: Any, ndim: int) -> int:
    """An axis as a non-negative int; ShapeError where it does not fit, TypeError for no int."""
    i = whole("an axis", axis)
    if not -ndim <= i < ndim:
        raise ShapeError(f"axis {axis} does not fit {ndim} axes")
    return i + ndim if i < 0 else i


def listed(given: Any) -> Sequence[Any]:
    """One number, or several in a sequence or an array, as a sequence."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    return given if isinstance(given, tuple | list | range) else (given,)


def distinct_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes in the order given, as non-negative ints; ShapeError for one named twice."""
    axes = tuple(normal_axis(a, ndim) for a in listed(axis))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes {axis} name one axis twice")
    return axes


class Reshape(Op):
    """The elements of x in row-major order under another shape; dx = dy reshaped back.

    A length of -1 is what is left over; ("axis", i) is the length of axis i of x.
    """

    shape: tuple[Any, ...]
    view = True
    onnx = "Reshape"
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        dims: list[Dim] = [x.shape[d[1]] if isinstance(d, tuple) else d for d in self.shape]
        total = size_of(x.shape)
        if -1 in dims:
            at = dims.index(-1)
            rest = size_of(d for i, d in enumerate(dims) if i != at)
            if total is None or rest is None:
                dims[at] = _left_over(x.shape, dims, at)
            elif rest == 0 or total % rest:
                raise ShapeError(f"{x!r} cannot be reshaped to {self.shape}")
            else:
                dims[at] = total // rest
        shape = tuple(dims)
        new = size_of(shape)
        if total is not None and new is not None and total != new:
            raise ShapeError(f"{x!r} has {total} elements, {list(shape)} has {new}")
        return (tensor_type(shape, x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        shape = tuple(x.shape[d[1]] if isinstance(d, tuple) else d for d in self.shape)
        return xp.reshape(x, shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (reshape_like(dy, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((3, 2)), [rng.normal(size=(2, 3))]
        yield cls((-1,)), [rng.normal(size=(2, 3))]
        yield cls((("axis", 0), -1)), [rng.normal(size=(2, 3, 2))]
        yield cls(()), [rng.normal(size=(1, 1))]


def _left_over(old: Shape, dims: list[Dim], at: int) -> Dim:
    """The name of the length that -1 stands for, where the rest cancels; else None."""
    rest = [d for i, d in enumerate(dims) if i != at]
    left = list(old)
    for d in rest:
        if d in left and d is not None:
            left.remove(d)
        elif d != 1:
            return None
    left = [d for d in left if d != 1]
    return left[0] if len(left) == 1 else None


def reshape(x: TensorLike, shape: Any) -> Tensor:
    """x in another shape, elements in row-major order.

    shape: ints, at most one -1 (what is left over), and lengths taken from x.shape: a named length
    of x stands for itself; a None stands for what is left over where there is no -1.
    """
    x = as_tensor(x)
    given = list(listed(shape))
    if None in given and -1 not in given:
        given[given.index(None)] = -1
    if None in given or given.count(-1) > 1:
        raise ShapeError(
            f"reshape of {x.type!r} to {shape}: only one length can be left over; give unknown "
            "lengths a name in the placeholder's shape"
        )
    dims: list[Any] = []
    for d in given:
        if isinstance(d, str):
            if d not in x.shape:
                raise ShapeError(f"reshape of {x.type!r} to {shape}: x has no length named {d!r}")
            dims.append(("axis", x.shape.index(d)))
        elif not isinstance(d, int | np.integer) or d < -1:
            raise ShapeError(f"reshape of {x.type!r}: {d!r} is not a length")
        else:
            dims.append(int(d))
    if tuple(given) == x.shape and x.type.static:
        return x
    return apply(Reshape(tuple(dims)), x)


class ReshapeLike(Op):
    """The elements of x under the shape of the second input, which is known only when run."""

    view = True
    linear = (0,)

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if x.static and like.static and size_of(x.shape) != size_of(like.shape):
            raise ShapeError(
                f"{x!r} has {size_of(x.shape)} elements, {like!r} has {size_of(like.shape)}"
            )
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return xp.reshape(x, like.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return reshape_like(dy, node.inputs[0]), ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=(6,))]


def reshape_like(x: TensorLike, like: TensorLike) -> Tensor:
    """x under the shape of like."""
    x, like = as_tensor(x), as_tensor(like)
    if x.shape == like.shape and None not in x.shape:
        return x
    if like.type.static:
        return apply(Reshape(like.shape), x)
    return apply(ReshapeLike(), x, like)


class ExpandDims(Op):
    """Axes of length 1 put in at the given places of the result; dx = dy squeezed."""

    axes: tuple[int, ...]
    view = True
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        shape = list(x.shape)
        for axis in self.axes:
            if axis > len(shape):
                raise ShapeError(f"expand_dims at {self.axes} of {x!r}")
            shape.insert(axis, 1)
        return (tensor_type(tuple(shape), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        for axis in self.axes:
            x = xp.expand_dims(x, axis=axis)
        return x

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Squeeze(self.axes), dy) if self.axes else dy,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0, 2)), [rng.normal(size=(3,))]
        yield cls((0,)), [rng.normal(size=())]


class Squeeze(Op):
    """Axes of length 1 taken out; dx = dy with the axes put back."""

    axes: tuple[int, ...]
    view = True
    onnx = "Squeeze"
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        for axis in self.axes:
            if axis >= len(x.shape) or (isinstance(x.shape[axis], int) and x.shape[axis] != 1):
                raise ShapeError(f"squeeze of axes {self.axes} of {x!r}: only length 1 can go")
        return (
            tensor_type(tuple(d for i, d in enumerate(x.shape) if i not in self.axes), x.dtype),
        )

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.squeeze(x, axis=self.axes)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(ExpandDims(self.axes), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0, 2)), [rng.normal(size=(1, 3, 1))]


def expand_dims(x: TensorLike, axis: Any) -> Tensor:
    """Axes of length 1 put in, at these places of the result (negative: from its end)."""
    x = as_tensor(x)
    axes = tuple(sorted(distinct_axes(axis, x.ndim + len(listed(axis)))))
    return apply(ExpandDims(axes), x) if axes else x


class BroadcastTo(Op):
    """x repeated to a known shape, by NumPy's rules; dx = dy summed back."""

    shape: tuple[int, ...]
    view = True
    onnx = "Expand"
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if not compatible(broadcast([x.shape, self.shape]), self.shape):
            raise ShapeError(f"{x!r} does not broadcast to {list(self.shape)}")
        return (tensor_type(self.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.broadcast_to(x, self.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (sum_to(dy, like=node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3)), [rng.normal(size=(3,))]
        yield cls((2, 3)), [rng.normal(size=(2, 1))]
        yield cls((2, 3)), [rng.normal(size=())]
        yield cls((0, 3)), [rng.normal(size=(1, 3))]


def broadcast_to(x: TensorLike, shape: Any) -> Tensor:
    """x repeated to this shape, by NumPy's rules. Use broadcast_like for a shape not yet known."""
    x = as_tensor(x)
    lengths = tuple([d for d in as_shape(shape) if isinstance(d, int)])
    if len(lengths) != len(as_shape(shape)):
        raise ShapeError(f"broadcast_to takes known lengths, got {shape}; use gg.broadcast_like")
    return x if x.shape == lengths else apply(BroadcastTo(lengths), x)


class BroadcastLike(Op):
    """x repeated to the shape of the second input, which is known only when run."""

    view = True
    linear = (0,)

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if not compatible(broadcast([x.shape, like.shape]), like.shape):
            raise ShapeError(f"{x!r} does not broadcast to the shape of {like!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return xp.broadcast_to(x, like.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return sum_to(dy, like=node.inputs[0]), ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(3,)), rng.normal(size=(2, 3))]
        yield cls(), [rng.normal(size=(2, 1)), rng.normal(size=(2, 3))]


def broadcast_like(x: TensorLike, like: TensorLike) -> Tensor:
    """x repeated to the shape of like, by NumPy's rules."""
    x, like = as_tensor(x), as_tensor(like)
    if like.type.static:
        return broadcast_to(x, like.shape)
    if x.shape == like.shape and None not in x.shape:
        return x
    return apply(BroadcastLike(), x, like)


class SumTo(Op):
    """x summed over the axes along which the second input would be broadcast to x.

    The adjoint of broadcasting: dx = dy broadcast.
    """

    view = True
    linear = (0,)

    def infer(self, x: TensorType, like: TensorType) -> Types:
        if len(like.shape) > len(x.shape) or not compatible(
            broadcast([x.shape, like.shape]), x.shape
        ):
            raise ShapeError(f"{x!r} cannot be summed to the shape of {like!r}")
        return (tensor_type(like.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, like: Any) -> Any:
        return _summed(xp, x, like.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return broadcast_like(dy, node.inputs[0]), ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for small in [(3,), (2, 1), (), (2, 3), (1, 3)]:
            yield cls(), [rng.normal(size=(2, 3)), rng.normal(size=small)]


class SumToShape(Op):
    """x summed to a known shape, over the axes along which that shape would be broadcast to x."""

    shape: tuple[int, ...]
    view = True
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if len(self.shape) > len(x.shape) or not compatible(
            broadcast([x.shape, self.shape]), x.shape
        ):
            raise ShapeError(f"{x!r} cannot be summed to {list(self.shape)}")
        return (tensor_type(self.shape, x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return _summed(xp, x, self.shape)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (broadcast_like(dy, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for small in [(3,), (2, 1), (), (2, 3), (1, 3)]:
            yield cls(small), [rng.normal(size=(2, 3))]


def _summed(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, d in enumerate(shape) if d == 1 and x.shape[extra + i] != 1
    )
    y = xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype) if axes else x
    return xp.reshape(y, shape)


def sum_to(dy: TensorLike, *, like: TensorLike) -> Tensor:
    """dy summed over the axes along which `like` was broadcast, so that it has like's shape.

    dy: any shape that like broadcasts to. Returns dy itself where the shapes are already equal.
    """
    dy, like = as_tensor(dy), as_tensor(like)
    if dy.shape == like.shape and None not in like.shape:
        return dy
    lengths = tuple([d for d in like.shape if isinstance(d, int)])
    if len(lengths) == like.ndim:
        return apply(SumToShape(lengths), dy)
    return apply(SumTo(), dy, like)


def broadcast_arrays(*xs: TensorLike) -> tuple[Tensor, ...]:
    """The tensors repeated to their common shape, which has to be known."""
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        return ()
    shape = broadcast([t.shape for t in tensors])
    return tuple(broadcast_to(t, shape) for t in tensors)


def squeeze(x: TensorLike, axis: Any = None) -> Tensor:
    """Axes of length 1 taken out; all that are known to have length 1 for None."""
    x = as_tensor(x)
    if axis is None:
        axes = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        axes = tuple(sorted(distinct_axes(axis, x.ndim)))
    return apply(Squeeze(axes), x) if axes else x


def flatten(x: TensorLike) -> Tensor:
    """The elements of x on one axis, in row-major order."""
    x = as_tensor(x)
    return x if x.ndim == 1 else apply(Reshape((-1,) if x.ndim else (1,)), x)


ravel = flatten


# --- permuted --------------------------------------------------------------------------------


class Transpose(Op):
    """The axes of x in another order: axis i of y is axis axes[i] of x; dx = dy permuted back."""

    axes: tuple[int, ...]
    view = True
    onnx = "Transpose"
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if sorted(self.axes) != list(range(len(x.shape))):
            raise ShapeError(f"{self.axes} is not an order of the axes of {x!r}")
        return (tensor_type(tuple(x.shape[a] for a in self.axes), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.transpose(x, self.axes)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        back = tuple(sorted(range(len(self.axes)), key=self.axes.__getitem__))
        return (apply(Transpose(back), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((1, 0)), [rng.normal(size=(2, 3))]
        yield cls((2, 0, 1)), [rng.normal(size=(2, 3, 4))]
        yield cls((1, 0)), [rng.normal(size=(0, 3)).astype("float32")]
        yield cls(()), [rng.normal(size=())]


def permute_dims(x: TensorLike, axes: Any) -> Tensor:
    """x with its axes in this order: axis i of the result is axis axes[i] of x."""
    x = as_tensor(x)
    order = distinct_axes(axes, x.ndim)
    return x if order == tuple(range(x.ndim)) else apply(Transpose(order), x)


def transpose(x: TensorLike, axes: Any = None) -> Tensor:
    """x with its axes in this order, reversed for None."""
    x = as_tensor(x)
    return permute_dims(x, range(x.ndim)[::-1] if axes is None else axes)


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """x with its last two axes exchanged: (..., M, N) -> (..., N, M)."""
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose takes matrices, got {x.type!r}")
    return swapaxes(x, -1, -2)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged."""
    x = as_tensor(x)
    i, j = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return permute_dims(x, order)


def moveaxis(x: TensorLike, source: Any, destination: Any, /) -> Tensor:
    """x with the axes `source` moved to the places `destination`; the others keep their order."""
    x = as_tensor(x)
    old, new = distinct_axes(source, x.ndim), distinct_axes(destination, x.ndim)
    if len(old) != len(new):
        raise ShapeError(f"moveaxis from {source} to {destination}: one place for each axis")
    order = [a for a in range(x.ndim) if a not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)
