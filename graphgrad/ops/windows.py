"""Convolution and pooling over two spatial axes, each with its adjoints.

Images are (N, H, W, C) or (N, C, H, W); filters (height, width, in / groups, out). The kernels work
on (N, H, W, C): a convolution is one matrix product with the patches under the window side by side.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from itertools import accumulate
from math import prod
from typing import ClassVar, NamedTuple, Self

from ..ir.errors import ShapeError
from ..ir.types import Dim, elements, lengths
from .arithmetic import ADD, DIVIDE, MAXIMUM
from .base import (
    NO_GRAD,
    ZERO,
    Any,
    Cast,
    Constant,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
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
    promoted,
    tensor_type,
    wants,
    whole,
)
from .batching import Batch, Outputs
from .folding import folded, unfolded
from .logic import EQUAL, LOGICAL_OR, NOT_EQUAL, WHERE
from .making import Making
from .shaping import BroadcastTo, Reshape, Squeeze, Transpose, expand_dims
from .slicing import FULL, Slice
from .updates import plus

__all__ = ["avg_pool", "conv", "conv_transpose", "max_pool"]

Pair = tuple[int, int]
Padding = str | tuple[Pair, Pair]
ONE: Pair = (1, 1)
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""The axes of an image with its channels first, in the order with them last; and back."""
IN, OUT = 2, 3
"""The axes of a filter (height, width, in / groups, out)."""
PLACES = 16
"""Those in a window, at most, for which pooling is taken apart."""


# --- geometry ----------------------------------------------------------------------------------


class Extent(NamedTuple):
    """One spatial axis: lengths of the input and the output, and what is padded at both ends."""

    length: int
    out: int
    low: int
    high: int


def extent(length: int, window: int, stride: int, dilation: int, padding: Any) -> Extent:
    """The extent of an axis. "SAME": ceil(length / stride) outputs, padded as evenly as can be."""
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        out = -(-length // stride)
        total = max((out - 1) * stride + reach - length, 0)
        return Extent(length, out, total // 2, total - total // 2)
    low, high = (0, 0) if padding == "VALID" else padding
    return Extent(length, max((length + low + high - reach) // stride + 1, 0), low, high)


class Window(NamedTuple):
    """A window that moves over two axes of an image (N, H, W, C)."""

    size: Pair
    strides: Pair
    dilation: Pair
    axes: tuple[Extent, Extent]

    def cuts(self) -> Iterator[tuple[slice, ...]]:
        """For each place in the window, where in the padded image it stands."""
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                yield (slice(None), self._cut(0, i), self._cut(1, j))

    def _cut(self, axis: int, at: int) -> slice:
        start, stride, out = at * self.dilation[axis], self.strides[axis], self.axes[axis].out
        return slice(start, start + max((out - 1) * stride + 1, 0), stride)

    def pad(self, xp: Any, x: Any, value: Any = 0) -> Any:
        """The image with its borders."""
        pads = [(0, 0), *((e.low, e.high) for e in self.axes), (0, 0)]
        return xp.pad(x, pads, constant_values=value) if any(map(sum, pads)) else x

    def scatter(self, xp: Any, pieces: Any, shape: Any, dtype: Any) -> Any:
        """The adjoint of cutting: pieces added up where they stood, without the borders."""
        n, c = shape
        h, w = (e.length + e.low + e.high for e in self.axes)
        total = xp.zeros((n, h, w, c), dtype)
        for cut, piece in zip(self.cuts(), pieces, strict=True):
            total = plus(total, cut, piece)
        inside = [slice(e.low, e.low + e.length) for e in self.axes]
        return total[(slice(None), *inside)]

    def counts(self) -> Any:
        """How many places of the window are inside the image: (H', W', 1)."""
        down, across = (np.maximum(self._inside(axis).sum(1), 1) for axis in (0, 1))
        return down[:, None, None] * across[:, None]

    def inside(self) -> Iterator[Any]:
        """For each place in the window where it is inside the image: (H', W', 1)."""
        down, across = self._inside(0), self._inside(1)
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                yield down[:, i, None, None] & across[:, j, None]

    def _inside(self, axis: int) -> Any:
        """Whether the window is inside the image along an axis: (outputs, places)."""
        e = self.axes[axis]
        places = np.arange(e.out)[:, None] * self.strides[axis] - e.low
        places = places + np.arange(self.size[axis])[None, :] * self.dilation[axis]
        return (places >= 0) & (places < e.length)


class Windowed(Op, abstract=True):
    """Family: what convolution and pooling share.

    strides, dilation: along height and width. padding: "SAME", "VALID" or ((top, bottom), (left,
    right)). data_format: "NHWC" or "NCHW".
    """

    strides: Pair
    padding: Padding
    data_format: str

    @property
    def channels(self) -> int:
        """The axis of the channels."""
        return 1 if self.data_format == "NCHW" else 3

    def spatial(self, shape: Any) -> Any:
        """The lengths of height and width."""
        return shape[2:] if self.data_format == "NCHW" else shape[1:3]

    def image(self, n: Dim, spatial: Any, c: Dim) -> Shape:
        """The shape of an image in this format."""
        return (n, c, *spatial) if self.data_format == "NCHW" else (n, *spatial, c)

    def last(self, xp: Any, x: Any) -> Any:
        """An image with its channels last."""
        return xp.permute_dims(x, (0, 2, 3, 1)) if self.data_format == "NCHW" else x

    def back(self, xp: Any, x: Any) -> Any:
        """An image in this format again."""
        return xp.permute_dims(x, (0, 3, 1, 2)) if self.data_format == "NCHW" else x

    def moved(self, lengths: Any, size: Pair, dilation: Pair = ONE) -> Window:
        """The window over an image of these lengths."""
        padding = (self.padding,) * 2 if isinstance(self.padding, str) else self.padding
        first, second = (
            extent(lengths[i], size[i], self.strides[i], dilation[i], padding[i]) for i in (0, 1)
        )
        return Window(size, self.strides, dilation, (first, second))

    def outer(self, lengths: Any, size: Any, dilation: Pair = ONE) -> tuple[Dim, ...]:
        """The lengths of the output, where they are known."""
        padding = (self.padding,) * 2 if isinstance(self.padding, str) else self.padding
        out: list[Dim] = []
        for n, k, s, d, p in zip(lengths, size, self.strides, dilation, padding, strict=True):
            if isinstance(n, int) and (isinstance(k, int) or p == "SAME"):
                out.append(extent(n, k if isinstance(k, int) else 1, s, d, p).out)
            else:
                out.append(n if s == 1 and (p == "SAME" or (p == "VALID" and k == 1)) else None)
        return tuple(out)

    def countable(self, batch: Batch) -> bool:
        """Whether the number of examples is known, or can be told from what an image holds."""
        rows = [t.shape for t, flag in zip(batch.inputs, batch.flags, strict=True) if flag]
        unknown = any(not isinstance(shape[0], int) for shape in rows)
        return not unknown or not any(0 in t.shape for t in batch.types)

    def check(self, *types: TensorType) -> None:
        """ShapeError or DTypeError unless all have four axes and one dtype."""
        for t in types:
            if len(t.shape) != 4:
                raise ShapeError(f"{self.type} takes images and filters of four axes, got {t!r}")
            if t.dtype is not types[0].dtype:
                raise DTypeError(f"{self.type} takes one dtype, got {types[0]!r} and {t!r}")


# --- convolution -------------------------------------------------------------------------------


class Convolution(Windowed, abstract=True):
    """Family: convolution and its two adjoints, each of which has the other two as its adjoints.

    The kernels are products of stacks of matrices, one for each group.

    images: the inputs that are images, by place. makes_image: whether the output is one.
    """

    dilation: Pair = ONE
    groups: int = 1
    images: ClassVar[tuple[int, ...]] = (0,)
    makes_image: ClassVar[bool] = True

    def attributes(self) -> tuple[Pair, Padding, str, Pair, int]:
        """What the three have in common."""
        return self.strides, self.padding, self.data_format, self.dilation, self.groups

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """The convolution."""
        return apply(Conv2D(*self.attributes()), x, w)

    def grad_input(self, w: Tensor, dz: Tensor, x: Tensor) -> Tensor:
        """The adjoint for the image; x is read only where its lengths are not known."""
        size = _lengths(self.spatial(x.shape))
        op = Conv2DBackpropInput(*self.attributes(), size)
        return apply(op, w, dz) if size else apply(op, w, dz, x)

    def grad_filter(self, x: Tensor, dz: Tensor, w: Tensor) -> Tensor:
        """The adjoint for the filter; w is read only where its lengths are not known."""
        size = _lengths(w.shape[:2])
        op = Conv2DBackpropFilter(*self.attributes(), size)
        return apply(op, x, dz) if size else apply(op, x, dz, w)

    def grouped(self, count: int) -> Self:
        """The same with each group once for every example."""
        return self.replace(groups=self.groups * count)

    def decompose(self, make: Making) -> Tensor | None:
        """The same with channels last: loops next to it can turn images as they go."""
        if self.data_format != "NCHW" or len(make.inputs) > 2:
            return None
        inputs = [
            make(Transpose(LAST), t) if i in self.images else t for i, t in enumerate(make.inputs)
        ]
        made = make(self.replace(data_format="NHWC"), *inputs)
        return make(Transpose(FIRST), made) if self.makes_image else made

    def patches(self, xp: Any, x: Any, window: Window) -> Any:
        """(groups, places in the output, places in the window * channels of the group)"""
        padded = window.pad(xp, self.last(xp, x))
        parts = [padded[cut] for cut in window.cuts()]
        found = xp.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        n, h, w, _ = parts[0].shape
        g, c = self.groups, padded.shape[3] // self.groups
        found = xp.reshape(found, (n * h * w, len(parts), g, c))
        return xp.reshape(xp.permute_dims(found, (2, 0, 1, 3)), (g, n * h * w, len(parts) * c))

    def matrix(self, xp: Any, w: Any) -> Any:
        """(groups, places in the window * channels of the group, outputs of the group)"""
        rows, g = w.shape[0] * w.shape[1] * w.shape[2], self.groups
        return xp.permute_dims(xp.reshape(w, (rows, g, w.shape[3] // g)), (1, 0, 2))

    def rows(self, xp: Any, dz: Any) -> Any:
        """(groups, places in the output, outputs of the group)"""
        dz = self.last(xp, dz)
        n, h, w, o = dz.shape
        g = self.groups
        return xp.permute_dims(xp.reshape(dz, (n * h * w, g, o // g)), (1, 0, 2))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for op, x, w in geometries():
            arrays = rng.normal(size=x), rng.normal(size=w)
            yield from cls.sample_of(op, rng, *arrays)
        x, w = (rng.normal(size=s).astype("float32") for s in [(1, 3, 3, 2), (2, 2, 2, 1)])
        yield from cls.sample_of(Conv2D(ONE, "SAME", "NHWC"), rng, x, w)

    @classmethod
    def sample_of(cls, op: Convolution, rng: np.random.Generator, x: Any, w: Any) -> Samples:
        """Samples of cls for the geometry of the convolution `op` of x and w."""
        raise NotImplementedError


def taps(filters: TensorType) -> int:
    """Multiplications for one element of what a convolution makes: (height, width, in, out)."""
    return prod(lengths(filters)[:3])


class Conv2D(Convolution):
    """z[n, i, j, o] = sum over k, l, c of x[n, i*s + k*d - p, j*s + l*d - p, c] * w[k, l, c, o].

    x: an image    w: (height, width, in / groups, out)    z: an image of out channels. Each group
    of input channels makes its own group of output channels. The map is linear in x and in w; its
    adjoints are Conv2DBackpropInput and Conv2DBackpropFilter, and theirs are the other two.
    """

    onnx = Onnx("Conv")
    linear = "each"

    def infer(self, x: TensorType, w: TensorType) -> Types:
        self.check(x, w)
        c, per_group = x.shape[self.channels], w.shape[2]
        if isinstance(c, int) and isinstance(per_group, int) and c != per_group * self.groups:
            raise ShapeError(
                f"conv of {c} channels in {self.groups} groups takes filters of shape "
                f"(height, width, {c // self.groups}, out), got {x!r} and {w!r}"
            )
        out = self.outer(self.spatial(x.shape), w.shape[:2], self.dilation)
        return (tensor_type(self.image(x.shape[0], out, w.shape[3]), x.dtype),)

    def kernel(self, xp: Any, x: Any, w: Any) -> Any:
        window = self.moved(self.spatial(x.shape), w.shape[:2], self.dilation)
        z = xp.matmul(self.patches(xp, x, window), self.matrix(xp, w))
        n, (h, v) = x.shape[0], window.axes
        z = xp.reshape(xp.permute_dims(z, (1, 0, 2)), (n, h.out, v.out, w.shape[3]))
        return self.back(xp, z)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, w = node.inputs
        return (
            self.grad_input(w, dz, x) if wants(x) else NO_GRAD,
            self.grad_filter(x, dz, w) if wants(w) else NO_GRAD,
        )

    def batch(self, batch: Batch) -> Outputs | None:
        """Examples as more images; where filters differ, as more channels, or as groups of them."""
        (x, w), at, groups = batch.inputs, self.channels, self.groups
        if not self.countable(batch):
            return None
        if not batch.flags[1]:
            count, length = x.shape[:2]
            if not _one_known(count, length):
                return None
            return (unfolded(apply(self, folded(x, 0), w), 0, count, length),)
        out = w.shape[1 + OUT]
        if not batch.flags[0]:
            z = apply(self, x, folded(w, OUT, groups))
            return (unfolded(z, at, w.shape[0], out, groups),)
        number = _count(x, w)
        if number is None:
            return None
        z = apply(self.grouped(number), folded(x, at), folded(w, OUT))
        return (unfolded(z, at, number, out),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each tap of each element of the output."""
        return 2 * elements(outputs[0]) * taps(inputs[1])

    @classmethod
    def sample_of(cls, op: Convolution, rng: np.random.Generator, x: Any, w: Any) -> Samples:
        yield op, [x, w]


def geometries() -> Iterator[tuple[Conv2D, Any, Any]]:
    """Convolutions to try, with the shapes of x and w."""
    image, wide = (2, 4, 5, 2), (2, 2, 4, 5)
    yield Conv2D(ONE, "SAME", "NHWC"), image, (3, 3, 2, 3)
    yield Conv2D(ONE, "VALID", "NCHW"), wide, (2, 3, 2, 1)
    yield Conv2D((2, 1), "SAME", "NHWC"), image, (3, 2, 2, 2)
    yield Conv2D((2, 3), "VALID", "NCHW"), wide, (2, 2, 2, 2)
    yield Conv2D((3, 2), ((1, 0), (2, 1)), "NHWC", (2, 1)), image, (2, 3, 2, 1)
    yield Conv2D(ONE, "SAME", "NHWC", (2, 2)), image, (2, 3, 2, 2)
    yield Conv2D(ONE, "VALID", "NHWC"), image, (1, 1, 2, 3)
    yield Conv2D(ONE, "SAME", "NHWC", ONE, 2), image, (2, 2, 1, 4)
    yield Conv2D(ONE, "VALID", "NHWC"), (0, 3, 3, 2), (2, 2, 2, 1)


def _one_known(*lengths: Dim) -> bool:
    """Whether one of two lengths is known, so that an axis can be cut into these."""
    return any(isinstance(d, int) for d in lengths)


def _count(*tensors: Tensor) -> int | None:
    """The number of examples, which has to be known to be a number of groups."""
    return next((t.shape[0] for t in tensors if isinstance(t.shape[0], int) and t.shape[0]), None)


def _lengths(shape: Any) -> Pair | None:
    """Two lengths, where both are known."""
    h, w = shape
    return (h, w) if isinstance(h, int) and isinstance(w, int) else None


class Conv2DBackpropInput(Convolution):
    """dx = the adjoint of Conv2D in x, applied to dz. Linear in w and in dz.

    Inputs: w, dz, and where `size` (the height and width of x) is None, a tensor like x.
    """

    size: Pair | None = None
    linear = "each"
    shape_only = (2,)
    images = (1,)

    def infer(self, w: TensorType, dz: TensorType, like: TensorType | None = None) -> Types:
        self.check(w, dz)
        spatial = self.spatial(like.shape) if like else self.size
        per_group = w.shape[2]
        c = per_group * self.groups if isinstance(per_group, int) else None
        if c is None and like is not None:
            c = like.shape[self.channels]  # type: ignore[assignment]
        return (tensor_type(self.image(dz.shape[0], spatial, c), w.dtype),)

    def kernel(self, xp: Any, w: Any, dz: Any, like: Any = None) -> Any:
        lengths = self.size if like is None else self.spatial(like.shape)
        window = self.moved(lengths, w.shape[:2], self.dilation)
        found = xp.matmul(self.rows(xp, dz), self.matrix(xp, w).mT)
        n, (h, v), g = dz.shape[0], window.axes, self.groups
        places, c = w.shape[0] * w.shape[1], w.shape[2]
        found = xp.reshape(found, (g, n, h.out, v.out, places, c))
        found = xp.permute_dims(found, (4, 1, 2, 3, 0, 5))
        pieces = xp.reshape(found, (places, n, h.out, v.out, g * c))
        return self.back(xp, window.scatter(xp, pieces, (n, g * c), dz.dtype))

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        w, dz, *like = node.inputs
        return (
            self.grad_filter(dx, dz, w) if wants(w) else NO_GRAD,
            self.forward(dx, w) if wants(dz) else NO_GRAD,
            *(ZERO for _ in like),
        )

    def batch(self, batch: Batch) -> Outputs | None:
        (w, dz, *like), at, groups = batch.inputs, self.channels, self.groups
        if not self.countable(batch):
            return None
        if not batch.flags[0]:
            if not batch.flags[1]:
                return None
            count, length = dz.shape[:2]
            if not _one_known(count, length):
                return None
            pairs = zip(like, batch.flags[2:], strict=True)
            like = [folded(t, 0) if flag else t for t, flag in pairs]
            return (unfolded(apply(self, w, folded(dz, 0), *like), 0, count, length),)
        per_group = w.shape[1 + IN]
        if like or not isinstance(per_group, int):
            return None
        if not batch.flags[1]:
            dx = apply(self, folded(w, IN), dz)
            return (unfolded(dx, at, w.shape[0], per_group * groups, groups),)
        number = _count(w, dz)
        if number is None:
            return None
        dx = apply(self.grouped(number), folded(w, OUT), folded(dz, at))
        return (unfolded(dx, at, number, per_group * groups),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Those of the convolution."""
        return 2 * elements(inputs[1]) * taps(inputs[0])

    @classmethod
    def sample_of(cls, op: Convolution, rng: np.random.Generator, x: Any, w: Any) -> Samples:
        dz = rng.normal(size=op.kernel(np, x, w).shape).astype(x.dtype)
        yield cls(*op.attributes(), op.spatial(x.shape)), [w, dz]
        yield cls(*op.attributes(), None), [w, dz, x]


class Conv2DBackpropFilter(Convolution):
    """dw = the adjoint of Conv2D in w, applied to dz. Linear in x and in dz.

    Inputs: x, dz, and where `size` (the height and width of w) is None, a tensor like w.
    """

    size: Pair | None = None
    linear = "each"
    shape_only = (2,)
    images = (0, 1)
    makes_image = False

    def infer(self, x: TensorType, dz: TensorType, like: TensorType | None = None) -> Types:
        self.check(x, dz)
        c, o = x.shape[self.channels], dz.shape[self.channels]
        size = like.shape[:2] if like else self.size or ()
        per_group = c // self.groups if isinstance(c, int) else like.shape[2] if like else None
        return (tensor_type((*size, per_group, o), x.dtype),)

    def kernel(self, xp: Any, x: Any, dz: Any, like: Any = None) -> Any:
        size = self.size if like is None else like.shape[:2]
        assert size is not None
        window = self.moved(self.spatial(x.shape), size, self.dilation)
        dw = xp.matmul(self.patches(xp, x, window).mT, self.rows(xp, dz))
        g, _, o = dw.shape
        c = x.shape[self.channels] // g
        return xp.reshape(xp.permute_dims(dw, (1, 0, 2)), (*size, c, g * o))

    def vjp(self, node: Node, dw: Tensor) -> Gradients:
        x, dz, *like = node.inputs
        return (
            self.grad_input(dw, dz, x) if wants(x) else NO_GRAD,
            self.forward(x, dw) if wants(dz) else NO_GRAD,
            *(ZERO for _ in like),
        )

    def batch(self, batch: Batch) -> Outputs | None:
        (x, dz, *like), at, groups = batch.inputs, self.channels, self.groups
        if like or not any(batch.flags[:2]) or not self.countable(batch):
            return None
        if not batch.flags[1]:
            c = x.shape[1 + at]
            if not isinstance(c, int):
                return None
            dw = apply(self, folded(x, at, groups), dz)
            return (unfolded(dw, IN, x.shape[0], c // groups),)
        out = dz.shape[1 + at]
        if not batch.flags[0]:
            dw = apply(self, x, folded(dz, at, groups))
            return (unfolded(dw, OUT, dz.shape[0], out, groups),)
        number = _count(x, dz)
        if number is None:
            return None
        dw = apply(self.grouped(number), folded(x, at), folded(dz, at))
        return (unfolded(dw, OUT, number, out),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Those of the convolution."""
        return 2 * elements(inputs[1]) * taps(outputs[0])

    @classmethod
    def sample_of(cls, op: Convolution, rng: np.random.Generator, x: Any, w: Any) -> Samples:
        dz = rng.normal(size=op.kernel(np, x, w).shape).astype(x.dtype)
        yield cls(*op.attributes(), w.shape[:2]), [x, dz]
        yield cls(*op.attributes(), None), [x, dz, w]


# --- pooling -----------------------------------------------------------------------------------


class Pool(Windowed, abstract=True):
    """Family: one number out of every window, channel by channel."""

    window: Pair

    def batch(self, batch: Batch) -> Outputs | None:
        """The batch axis as part of that of the images, if one of their lengths is known."""
        images = batch.every()
        count, length = images[0].shape[:2]
        if not self.countable(batch) or not _one_known(count, length):
            return None
        made = apply(self, *[folded(t, 0) for t in images])
        return (unfolded(made, 0, count, length),)

    def pooled(self, x: TensorType) -> TensorType:
        """The type of what comes out."""
        self.check(x)
        out = self.outer(self.spatial(x.shape), self.window)
        return tensor_type(self.image(x.shape[0], out, x.shape[self.channels]), x.dtype)

    def over(self, x: Any) -> Window:
        """The window over this image."""
        return self.moved(self.spatial(x.shape), self.window)

    def attributes(self) -> tuple[Pair, Padding, str, Pair]:
        """What an op and its adjoints have in common, but for ties."""
        return self.strides, self.padding, self.data_format, self.window

    # Taken apart, pooling is element-wise nodes over views of the image, one for each place in the
    # window. Only where the windows meet no border, and gradients only where they lie side by side:
    # then an image is (N, H / k, k, W / m, m, C), and the places are axes of their own.

    def places(self, make: Making, x: Tensor) -> list[Tensor] | None:
        """What stands at each place of every window; None where that is not worth it."""
        if not self.is_plain(x):
            return None
        before = (FULL,) * self._first()
        return [
            make(Slice((*before, *[(c.start, c.stop, c.step) for c in cuts[1:]])), x)
            for cuts in self.over(x).cuts()
        ]

    def is_plain(self, x: Tensor) -> bool:
        """Whether the windows are small, and meet no border."""
        few = self.window[0] * self.window[1] <= PLACES
        return few and not any(e.low or e.high for e in self.over(x).axes)

    def side_by_side(self, x: Tensor) -> bool:
        """Whether the windows cover the image, each pixel once."""
        lengths = self.spatial(x.shape)
        return self.strides == self.window and all(
            d % k == 0 for d, k in zip(lengths, self.window, strict=True)
        )

    def apart(self, x: Tensor) -> tuple[int, ...]:
        """The shape of an image with the places of the windows as axes."""
        (h, w), (k, m) = self.spatial(x.shape), self.window
        return self._around(x, (h // k, k, w // m, m))

    def once(self, y: Tensor) -> tuple[int, ...]:
        """The shape of what comes out that broadcasts to `apart`."""
        h, w = self.spatial(y.shape)
        return self._around(y, (h, 1, w, 1))

    def whole(self, make: Making, t: Tensor, like: Tensor) -> Tensor:
        """What is apart as an image."""
        return make(Reshape(lengths(like.type)), t)

    def _around(self, t: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an image with these in the place of height and width."""
        shape, first = lengths(t.type), self._first()
        return (*shape[:first], *axes, *shape[first + 2 :])

    def _first(self) -> int:
        """The first of the two axes that the window moves over."""
        return 2 if self.data_format == "NCHW" else 1

    @classmethod
    def geometries(
        cls, rng: np.random.Generator
    ) -> Iterator[tuple[tuple[Pair, Padding, str, Pair], Any]]:
        """Attributes, and an image for them."""
        yield ((1, 1), "SAME", "NHWC", (2, 3)), rng.normal(size=(2, 4, 5, 2))
        yield ((2, 2), "VALID", "NHWC", (2, 2)), rng.normal(size=(2, 4, 5, 2))
        yield ((2, 1), "SAME", "NCHW", (3, 2)), rng.normal(size=(1, 2, 5, 4))
        yield ((2, 3), ((1, 0), (1, 1)), "NHWC", (2, 2)), rng.normal(size=(1, 4, 5, 2))
        yield ((1, 1), "VALID", "NHWC", (2, 2)), rng.normal(size=(0, 3, 3, 2))
        yield ((2, 2), "VALID", "NHWC", (2, 2)), rng.normal(size=(1, 4, 4, 1)).astype("float32")


class Largest(Pool, abstract=True):
    """Family: MaxPool and its adjoints.

    ties: whether the "first" of the largest elements of a window, in row-major order, has its
    gradient, or all of them "share" it equally. NaN is the largest.
    """

    ties: str = "first"

    @classmethod
    def tied(cls, rng: np.random.Generator) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Attributes with ties, and an image for them."""
        for attributes, x in cls.geometries(rng):
            yield (*attributes, "first"), x
        yield (*attributes, "share"), x
        yield ((1, 2), "SAME", "NHWC", (3, 3), "share"), rng.normal(size=(1, 3, 4, 2))


class MaxPool(Largest):
    """y = the largest element of every window; borders never win.

    dx = dy to the largest element of the window; see Largest for several.
    """

    onnx = Onnx("MaxPool")
    relevance = "moved"

    def infer(self, x: TensorType) -> Types:
        if x.dtype.kind not in "iuf":
            raise DTypeError(f"MaxPool takes an integer or floating image, got {x!r}")
        return (self.pooled(x),)

    def kernel(self, xp: Any, x: Any) -> Any:
        window = self.over(x)
        padded = window.pad(xp, self.last(xp, x), lowest(x.dtype))
        return self.back(xp, reduce(xp.maximum, [padded[c] for c in window.cuts()]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (apply(MaxPoolGrad(*self.attributes(), self.ties), dy, x, y),)

    def decompose(self, make: Making) -> Tensor | None:
        """The maximum of the places."""
        places = self.places(make, make.inputs[0])
        return None if places is None else reduce(lambda a, b: make(MAXIMUM, a, b), places)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element under each window."""
        return prod(self.window) * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for attributes, x in cls.tied(rng):
            yield cls(*attributes), [x]


class MaxPoolGrad(Largest):
    """dx = dy to the largest element of each window of x, or in shares to all. Linear in dy.

    Inputs: dy, x, and y, which is MaxPool of x.
    """

    jumps = (1, 2)
    linear = (0,)

    def infer(self, dy: TensorType, x: TensorType, y: TensorType) -> Types:
        self.check(dy, x, y)
        return (x,)

    def kernel(self, xp: Any, dy: Any, x: Any, y: Any) -> Any:
        window, hits = self.hits(xp, x, y)
        share = self.shared(xp, self.last(xp, dy), hits)
        pieces = [xp.where(hit, share, 0) for hit in hits]
        shape = (x.shape[0], x.shape[self.channels])
        return self.back(xp, window.scatter(xp, pieces, shape, dy.dtype))

    def hits(self, xp: Any, x: Any, y: Any) -> tuple[Window, list[Any]]:
        """For each place in the window whether the gradient goes there."""
        window, y = self.over(x), self.last(xp, y)
        padded = window.pad(xp, self.last(xp, x), lowest(x.dtype))
        places = [padded[cut] for cut in window.cuts()]
        hits = [
            ((p == y) | (p != p)) & xp.asarray(inside)
            for p, inside in zip(places, window.inside(), strict=True)
        ]
        return window, self._chosen(hits)

    def _chosen(self, hits: list[Any]) -> list[Any]:
        """All of them, or the first."""
        if self.ties == "share":
            return hits
        before = accumulate(hits, operator.or_)
        return [hits[0], *(h & ~b for h, b in zip(hits[1:], before, strict=False))]

    def shared(self, xp: Any, t: Any, hits: list[Any]) -> Any:
        """t, divided by how many places share it."""
        if self.ties == "first":
            return t
        return t / reduce(xp.add, [xp.astype(h, t.dtype) for h in hits])

    def vjp(self, node: Node, ddx: Tensor) -> Gradients:
        _, x, y = node.inputs
        return apply(MaxPoolGradGrad(*self.attributes(), self.ties), ddx, x, y), ZERO, ZERO

    def decompose(self, make: Making) -> Tensor | None:
        """dy to the first place that is the largest, or in shares to all that are."""
        dy, x, y = make.inputs
        places = self.places(make, x)
        if places is None or not self.side_by_side(x):
            return None
        hits = [_is_largest(make, p, y) for p in places]
        if self.ties == "share":
            counted = [make(Cast(dy.dtype), hit) for hit in hits]
            dy = make(DIVIDE, dy, reduce(lambda a, b: make(ADD, a, b), counted))
            apart, once = make(Reshape(self.apart(x)), x), make(Reshape(self.once(y)), y)
            here = _is_largest(make, apart, once)
        else:
            numbers = np.dtype(f"i{dy.dtype.itemsize}")
            first = make(Reshape(self.once(y)), _first_of(make, hits, numbers))
            here = make(EQUAL, first, make(Constant(self.numbered(numbers))))
        shared = make(WHERE, here, make(Reshape(self.once(y)), dy), make.zero(dy))
        return self.whole(make, shared, x)

    def numbered(self, dtype: DType) -> Any:
        """The numbers of the places, in the shape of a window that is apart."""
        (k, m), channels = self.window, () if self.data_format == "NCHW" else (1,)
        return np.arange(k * m, dtype=dtype).reshape(k, 1, m, *channels)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element under each window."""
        return prod(self.window) * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for attributes, x in cls.tied(rng):
            y = MaxPool(*attributes).kernel(np, x)
            yield cls(*attributes), [rng.normal(size=y.shape).astype(x.dtype), x, y]


class MaxPoolGradGrad(MaxPoolGrad):
    """The adjoint of MaxPoolGrad in dy: dx at the largest element of each window, or the mean."""

    def infer(self, dx: TensorType, x: TensorType, y: TensorType) -> Types:
        self.check(dx, x, y)
        return (y,)

    def kernel(self, xp: Any, dx: Any, x: Any, y: Any) -> Any:
        window, hits = self.hits(xp, x, y)
        padded = window.pad(xp, self.last(xp, dx))
        parts = [xp.where(h, padded[cut], 0) for h, cut in zip(hits, window.cuts(), strict=True)]
        return self.back(xp, self.shared(xp, reduce(xp.add, parts), hits))

    def vjp(self, node: Node, ddy: Tensor) -> Gradients:
        _, x, y = node.inputs
        return apply(MaxPoolGrad(*self.attributes(), self.ties), ddy, x, y), ZERO, ZERO

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element under each window."""
        return prod(self.window) * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for attributes, x in cls.tied(rng):
            y = MaxPool(*attributes).kernel(np, x)
            yield cls(*attributes), [rng.normal(size=x.shape).astype(x.dtype), x, y]


def lowest(dtype: DType) -> Any:
    """The number of a dtype that no other is less than."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _is_largest(make: Making, x: Tensor, y: Tensor) -> Tensor:
    """Where x is y, or NaN."""
    return make(LOGICAL_OR, make(EQUAL, x, y), make(NOT_EQUAL, x, x))


def _first_of(make: Making, hits: Sequence[Tensor], dtype: DType) -> Tensor:
    """The number of the first place that is one; the last, if none before it is."""
    found = make.number(len(hits) - 1, dtype)
    for i in range(len(hits) - 2, -1, -1):
        found = make(WHERE, hits[i], make.number(i, dtype), found)
    return found


class AvgPool(Pool):
    """y = the mean of every window, borders left out; dx = dy in equal shares."""

    onnx = Onnx("AveragePool")
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if x.dtype.kind != "f":
            raise DTypeError(f"AvgPool takes a floating image, got {x!r}")
        return (self.pooled(x),)

    def kernel(self, xp: Any, x: Any) -> Any:
        window = self.over(x)
        padded = window.pad(xp, self.last(xp, x))
        total = reduce(xp.add, [padded[cut] for cut in window.cuts()])
        return self.back(xp, total / xp.asarray(window.counts(), dtype=x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        size = _lengths(self.spatial(x.shape))
        op = AvgPoolGrad(*self.attributes(), size)
        return (apply(op, dy) if size else apply(op, dy, x),)

    def decompose(self, make: Making) -> Tensor | None:
        """The sum of the places, divided by how many there are."""
        places = self.places(make, make.inputs[0])
        if places is None:
            return None
        total = reduce(lambda a, b: make(ADD, a, b), places)
        return make(DIVIDE, total, make.number(len(places), total.dtype))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element under each window."""
        return prod(self.window) * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for attributes, x in cls.geometries(rng):
            yield cls(*attributes), [x]


class AvgPoolGrad(Pool):
    """dx = dy in equal shares to every window; the adjoint of AvgPool.

    Inputs: dy, and where `size` (the height and width of x) is None, a tensor like x.
    """

    size: Pair | None
    linear = (0,)
    shape_only = (1,)

    def infer(self, dy: TensorType, like: TensorType | None = None) -> Types:
        self.check(dy)
        if like is not None:
            return (tensor_type(like.shape, dy.dtype),)
        return (tensor_type(self.image(dy.shape[0], self.size, dy.shape[self.channels]), dy.dtype),)

    def kernel(self, xp: Any, dy: Any, like: Any = None) -> Any:
        lengths = self.size if like is None else self.spatial(like.shape)
        window = self.moved(lengths, self.window)
        share = self.last(xp, dy) / xp.asarray(window.counts(), dtype=dy.dtype)
        shape = (dy.shape[0], dy.shape[self.channels])
        pieces = [share] * (self.window[0] * self.window[1])
        return self.back(xp, window.scatter(xp, pieces, shape, dy.dtype))

    def vjp(self, node: Node, ddx: Tensor) -> Gradients:
        return apply(AvgPool(*self.attributes()), ddx), *(ZERO for _ in node.inputs[1:])

    def decompose(self, make: Making) -> Tensor | None:
        """dy, divided by how many places there are, to each of these."""
        dy, made = make.inputs[0], make.node.outputs[0]
        if not self.is_plain(made) or not self.side_by_side(made):
            return None
        count = make.number(self.window[0] * self.window[1], dy.dtype)
        each = make(BroadcastTo(self.apart(made)), make(Reshape(self.once(dy)), dy))
        return self.whole(make, make(DIVIDE, each, count), made)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element under each window."""
        return prod(self.window) * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for attributes, x in cls.geometries(rng):
            op = AvgPool(*attributes)
            dy = rng.normal(size=op.kernel(np, x).shape).astype(x.dtype)
            yield cls(*attributes, op.spatial(x.shape)), [dy]
            yield cls(*attributes, None), [dy, x]


# --- functions ---------------------------------------------------------------------------------


def conv(
    x: TensorLike,
    filters: TensorLike,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over two spatial axes (or one), as neural networks use the word: not flipped.

    z[n, i, j, o] = sum over k, l, c of x[n, i*s + k*d - p, j*s + l*d - p, c] * filters[k, l, c, o],
    with strides s, dilation d and p zeros before.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H; floating or complex,
            ints and bools become float64.
        filters: (height, width, C / groups, out), without height where x has no H.
        strides: an int >= 1, or one for each spatial axis.
        padding: "SAME" (ceil(length / stride) outputs), "VALID", or a pair (before, after) for each
            spatial axis.
        data_format: "NHWC" or "NCHW".
        dilation: an int >= 1, or one for each spatial axis.
        groups: into how many parts the channels are split, each with filters of its own.

    Returns: z, an image of out channels; dtypes promoted.

    Raises: ShapeError if filters do not fit x, or for another choice than these.

    Gradient: the adjoints in x and in filters, a transposed convolution of dz and a convolution of
        x with dz.

    Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep learning".

    >>> gg.evaluate(gg.nn.conv(np.ones((1, 4, 1)), np.ones((3, 1, 1))))[0, :, 0]
    array([2., 3., 3., 2.])
    """
    x, w = promoted(x, filters, floating=True)
    rank, parts = _rank(x), whole("groups", groups)
    if w.ndim != x.ndim:
        raise ShapeError(f"conv of {x.type!r} takes filters of {x.ndim} axes, got {w.type!r}")
    if parts < 1 or (isinstance(w.shape[-1], int) and w.shape[-1] % parts):
        raise ShapeError(f"conv in {parts} groups makes as many outputs in each, got {w.type!r}")
    data_format = _format(data_format)
    op = Conv2D(
        _pair("strides", strides, rank),
        _padding(padding, rank),
        data_format,
        _pair("dilation", dilation, rank),
        parts,
    )
    if rank == 2:
        return apply(op, x, w)
    at = 2 if data_format == "NCHW" else 1
    return apply(Squeeze((at,)), apply(op, expand_dims(x, at), expand_dims(w, 0)))


def conv_transpose(
    x: TensorLike,
    filters: TensorLike,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilation: Any = 1,
) -> Tensor:
    """The adjoint of conv over two spatial axes: from small images to large ones.

    Parameters:
        x: (N, H, W, in), or (N, in, H, W) with data_format="NCHW", of known lengths; floating or
            complex, ints and bools become float64.
        filters: (height, width, out, in), those of the convolution that goes back.
        strides: an int >= 1, or one for each spatial axis.
        padding: "SAME" (H * stride outputs), or "VALID" or a pair for each spatial axis (the least
            lengths that conv takes to H and W).
        data_format: "NHWC" or "NCHW".
        dilation: an int >= 1, or one for each spatial axis.

    Returns: an image of out channels; dtypes promoted.

    Raises: ShapeError for unknown lengths, operands that do not fit, or another choice than these.

    Gradient: of x the convolution conv of dz with filters; of filters that of the same conv, with
        dz for its image and x for its gradient.

    Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep learning", ch. 4.

    >>> gg.nn.conv_transpose(np.ones((1, 3, 3, 2)), np.ones((2, 2, 5, 2)), strides=2).shape
    (1, 6, 6, 5)
    """
    x, w = promoted(x, filters, floating=True)
    data_format = _format(data_format)
    op = Conv2D(
        _pair("strides", strides, 2),
        _padding(padding, 2),
        data_format,
        _pair("dilation", dilation, 2),
    )
    op.check(x.type, w.type)
    c, into = x.shape[op.channels], w.shape[3]
    if isinstance(c, int) and isinstance(into, int) and c != into:
        raise ShapeError(
            f"conv_transpose of {c} channels takes filters of shape (height, width, out, {c}), "
            f"got {x.type!r} and {w.type!r}"
        )
    small, window = _lengths(op.spatial(x.shape)), _lengths(w.shape[:2])
    if small is None or window is None:
        raise ShapeError(f"conv_transpose takes known lengths, got {x.type!r} and {w.type!r}")
    return apply(Conv2DBackpropInput(*op.attributes(), _grown(op, small, window)), w, x)


def _grown(op: Conv2D, small: Pair, window: Pair) -> Pair:
    """The lengths that op takes to the small ones: by "SAME" the greatest, else the least."""
    h, w = (n * s for n, s in zip(small, op.strides, strict=True))
    if op.padding == "SAME":
        return h, w
    pads = ((0, 0), (0, 0)) if isinstance(op.padding, str) else op.padding
    h, w = (
        (n - 1) * s + (k - 1) * d + 1 - low - high
        for n, s, k, d, (low, high) in zip(
            small, op.strides, window, op.dilation, pads, strict=True
        )
    )
    return h, w


def max_pool(
    x: TensorLike,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    ties: str = "first",
) -> Tensor:
    """The largest element of every window over two spatial axes (or one); borders never win.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H; integer or floating.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: "SAME", "VALID", or a pair (before, after) for each spatial axis, as for conv.
        data_format: "NHWC" or "NCHW".
        ties: which of several largest elements has the gradient: the "first" in row-major order, as
            in TensorFlow, PyTorch and ONNX, or all in equal shares ("share").

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes, or for another choice than these; DTypeError if x
        is bool or complex; ValueError for other ties.

    Gradient: dx = dy to the largest element of each window, added up where windows overlap.

    >>> gg.evaluate(gg.nn.max_pool(np.array([[[1.0], [5.0], [2.0], [3.0]]]), 2))[0, :, 0]
    array([5., 3.])
    """
    if ties not in ("first", "share"):
        raise ValueError(f"ties is 'first' or 'share', got {ties!r}")
    return _pool(MaxPool, as_tensor(x), window, strides, padding, data_format, ties)


def avg_pool(
    x: TensorLike,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
) -> Tensor:
    """The mean of every window over two spatial axes (or one); borders are left out of the mean.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H; floating, ints and
            bools become float64.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: "SAME", "VALID", or a pair (before, after) for each spatial axis, as for conv.
        data_format: "NHWC" or "NCHW".

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes, or for another choice than these; DTypeError if x
        is complex.

    Gradient: dx = dy in equal shares to each window, added up where windows overlap.

    >>> gg.evaluate(gg.nn.avg_pool(np.array([[[1.0], [5.0], [2.0], [3.0]]]), 2))[0, :, 0]
    array([3. , 2.5])
    """
    (x,) = promoted(x, floating=True)
    return _pool(AvgPool, x, window, strides, padding, data_format)


def _pool(
    op: type[Pool], x: Tensor, window: Any, strides: Any, padding: Any, data_format: str, *ties: str
) -> Tensor:
    rank, data_format = _rank(x), _format(data_format)
    size = _pair("window", window, rank)
    steps = size if strides is None else _pair("strides", strides, rank)
    made = op(steps, _padding(padding, rank), data_format, size, *ties)
    if rank == 2:
        return apply(made, x)
    at = 2 if data_format == "NCHW" else 1
    return apply(Squeeze((at,)), apply(made, expand_dims(x, at)))


def _rank(x: Tensor) -> int:
    if x.ndim not in (3, 4):
        raise ShapeError(f"an image has one or two spatial axes (3 or 4 in all), got {x.type!r}")
    return x.ndim - 2


def _format(data_format: str) -> str:
    known = {"NHWC": "NHWC", "NCHW": "NCHW", "NWC": "NHWC", "NCW": "NCHW"}
    if data_format not in known:
        raise ShapeError(f"data_format is 'NHWC' or 'NCHW', got {data_format!r}")
    return known[data_format]


def _pair(what: str, given: Any, rank: int) -> Pair:
    values = tuple(given) if isinstance(given, tuple | list) else (given,) * rank
    ints = all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values)
    if len(values) != rank or not ints or any(v < 1 for v in values):
        raise ShapeError(f"{what}: {rank} positive ints, or one for all, got {given!r}")
    return (1, int(values[0])) if rank == 1 else (int(values[0]), int(values[1]))


def _padding(given: Any, rank: int) -> Padding:
    if isinstance(given, str):
        if given.upper() not in ("SAME", "VALID"):
            raise ShapeError(f"padding is 'SAME', 'VALID' or pairs of ints, got {given!r}")
        return given.upper()
    try:
        pairs = tuple((whole("padding", low), whole("padding", high)) for low, high in given)
    except (TypeError, ValueError):
        pairs = ()
    if len(pairs) != rank or any(v < 0 for pair in pairs for v in pair):
        raise ShapeError(f"padding: a pair of ints >= 0 for each of {rank} axes, got {given!r}")
    return ((0, 0), pairs[0]) if rank == 1 else (pairs[0], pairs[1])
