"""Convolution over two spatial axes with its two adjoints.

Filters are (height, width, in / groups, out). The kernels work on (N, H, W, C): a
convolution is one matrix product with the patches under the window side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar, Self

from ...base.errors import ShapeError
from ...ir.onnx import NoOnnxForm
from ...ir.types import computed, elements, lengths
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorType,
    Types,
    apply,
    np,
    tensor_type,
    wants,
)
from ..batching import Batch, Outputs
from ..making import Making
from ..shape.folding import folded, unfolded
from ..shape.reshaping import Transpose
from . import by_channel
from .moving_windows import ONE, Extent, Padding, Pair, Window, Windowed, known_lengths, one_known
from .onnx_windows import OF_ONNX, around, first, last, placed_back, turned_moves, with_borders

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""The axes of an image with its channels first, in the order with them last; and back."""

IN, OUT = 2, 3
"""The axes of a filter (height, width, in / groups, out)."""


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
        size = known_lengths(self.spatial(x.shape))
        op = Conv2DBackpropInput(*self.attributes(), size)
        return apply(op, w, dz) if size else apply(op, w, dz, x)

    def grad_filter(self, x: Tensor, dz: Tensor, w: Tensor) -> Tensor:
        """The adjoint for the filter; w is read only where its lengths are not known."""
        size = known_lengths(w.shape[:2])
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

    def by_channel(self, image: Tensor, filters: tuple[int, ...]) -> int:
        """How many filters each channel has, where a convolution is taken apart; else 0."""
        return by_channel.fits(image.type, self.groups, filters)

    def patches(self, xp: Any, x: Any, window: Window) -> Any:
        """(groups, places in the output, places in the window * channels of the group)"""
        padded = window.pad(xp, self.last(xp, x))
        parts = [padded[cut] for cut in window.cuts()]
        patches = xp.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        n, h, w, _ = parts[0].shape
        g, c = self.groups, padded.shape[3] // self.groups
        patches = xp.reshape(patches, (n * h * w, len(parts), g, c))
        return xp.reshape(xp.permute_dims(patches, (2, 0, 1, 3)), (g, n * h * w, len(parts) * c))

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

    Gradient: the adjoints in x and in the filters, a transposed convolution of dz and a
        convolution of x with dz.

    x: an image    w: (height, width, in / groups, out)    z: an image of out channels. Each group
    of input channels makes its own group of output channels. The adjoints are Conv2DBackpropInput
    and Conv2DBackpropFilter, and theirs are the other two.
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

    def to_onnx(self, to: Any, x: Any, w: Any) -> Any:
        filters, moves = to.Transpose(w, perm=OF_ONNX), around(self, x, w.shape[:2], self.dilation)
        return last(to, self, to.Conv(first(to, self, x), filters, group=self.groups, **moves))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, w = node.inputs
        return (
            self.grad_input(w, dz, x) if wants(x) else NO_GRAD,
            self.grad_filter(x, dz, w) if wants(w) else NO_GRAD,
        )

    def decompose(self, make: Making) -> Tensor | None:
        """Of filters for single channels, as by_channel says."""
        x, w = make.inputs
        count = self.by_channel(x, lengths(w.type))
        if not count:
            return super().decompose(make)
        window = self.moved(self.spatial(x.shape), _size(w), self.dilation)
        x = by_channel.repeated(make, x, self.channels, count)
        return by_channel.convolved(make, x, w, self.channels, window)

    def batch(self, batch: Batch) -> Outputs | None:
        """Examples as more images; where filters differ, as more channels, or as groups of them."""
        (x, w), at, groups = batch.inputs, self.channels, self.groups
        if not self.countable(batch):
            return None
        if not batch.flags[1]:
            count, length = x.shape[:2]
            if not one_known(count, length):
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


def _size(w: Tensor) -> Pair:
    """Height and width of filters of known lengths."""
    high, wide = lengths(w.type)[:2]
    return high, wide


def turned(window: Window) -> Window | None:
    """The window of the convolution that takes dz to dx, of filters turned round; None if none."""
    if window.strides != ONE:
        return None
    axes = []
    for e, size, dilation in zip(window.axes, window.size, window.dilation, strict=True):
        reach = (size - 1) * dilation
        low = reach - e.low
        high = e.length + reach - e.out - low
        if low < 0 or high < 0:
            return None
        axes.append(Extent(e.out, e.length, low, high))
    return Window(window.size, window.strides, window.dilation, (axes[0], axes[1]))


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
    yield Conv2D(ONE, "SAME", "NHWC", (1, 2), 2), image, (3, 2, 1, 2)
    yield Conv2D(ONE, "VALID", "NHWC"), (0, 3, 3, 2), (2, 2, 2, 1)


def _count(*tensors: Tensor) -> int | None:
    """The number of examples, which has to be known to be a number of groups."""
    return next((t.shape[0] for t in tensors if isinstance(t.shape[0], int) and t.shape[0]), None)


class Conv2DBackpropInput(Convolution):
    """dx = the adjoint of Conv2D in x, applied to dz.

    Gradient: dw = Conv2DBackpropFilter, ddz = Conv2D of what arrives: it is linear in w and in
        dz.

    Inputs: w, dz, and where `size` (the height and width of x) is None, a tensor like x.
    """

    size: Any = None
    linear = "each"
    shape_only = (2,)
    images = (1,)

    def infer(self, w: TensorType, dz: TensorType, like: TensorType | None = None) -> Types:
        self.check(w, dz)
        spatial = self.spatial(like.shape) if like else self.size
        per_group = w.shape[2]
        c = computed(lambda n: n * self.groups, per_group)
        if c is None and like is not None:
            c = like.shape[self.channels]
        return (tensor_type(self.image(dz.shape[0], spatial, c), w.dtype),)

    def kernel(self, xp: Any, w: Any, dz: Any, like: Any = None) -> Any:
        lengths = self.size if like is None else self.spatial(like.shape)
        window = self.moved(lengths, w.shape[:2], self.dilation)
        products = xp.matmul(self.rows(xp, dz), self.matrix(xp, w).mT)
        n, (h, v), g = dz.shape[0], window.axes, self.groups
        places, c = w.shape[0] * w.shape[1], w.shape[2]
        products = xp.reshape(products, (g, n, h.out, v.out, places, c))
        products = xp.permute_dims(products, (4, 1, 2, 3, 0, 5))
        pieces = xp.reshape(products, (places, n, h.out, v.out, g * c))
        return self.back(xp, window.scatter(xp, pieces, (n, g * c), dz.dtype))

    def to_onnx(self, to: Any, w: Any, dz: Any, like: Any = None) -> Any:
        around(self, dz, w.shape[:2])
        image, filters = first(to, self, dz), to.Transpose(w, perm=OF_ONNX)
        size = self.size if like is None else self.spatial(like.shape)
        if turned := turned_moves(self, w.shape):
            filters = to.Slice(filters, [-1, -1], [-(2**31), -(2**31)], [2, 3], [-1, -1])
            return last(to, self, to.Conv(image, filters, group=self.groups, **turned))
        if not all(isinstance(d, int) for d in size):
            filters.shape = tuple([w.shape[i] for i in OF_ONNX])
            at = 2 if self.data_format == "NCHW" else 1
            n = None  # of strides of 1 nothing reads it
            if self.strides != ONE:
                n = to.lengths(*size) if like is None else to.Shape(like, start=at, end=at + 2)
            dx = placed_back(to, self, image, filters, n, self.dilation, self.groups)
            return last(to, self, dx)
        axes = self.moved(size, w.shape[:2], self.dilation).axes
        moves = zip(axes, w.shape[:2], self.strides, self.dilation, strict=True)
        made = [(e.out - 1) * s + (k - 1) * d + 1 - e.low - e.high for e, k, s, d in moves]
        dx = to.ConvTranspose(
            image,
            filters,
            group=self.groups,
            strides=list(self.strides),
            dilations=list(self.dilation),
            pads=[*(e.low for e in axes), *(e.high for e in axes)],
            output_padding=[e.length - m for e, m in zip(axes, made, strict=True)],
        )
        return last(to, self, dx)

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        w, dz, *like = node.inputs
        return (
            self.grad_filter(dx, dz, w) if wants(w) else NO_GRAD,
            self.forward(dx, w) if wants(dz) else NO_GRAD,
            *(ZERO for _ in like),
        )

    def decompose(self, make: Making) -> Tensor | None:
        """Of filters for single channels, as by_channel says."""
        w, dz = make.inputs[:2]
        count = self.by_channel(dz, lengths(w.type))
        if self.size is None or not count:
            return super().decompose(make)
        window, at = self.moved(self.size, _size(w), self.dilation), self.channels
        dx = by_channel.gradient_of_image(make, w, dz, at, window, turned(window))
        return by_channel.added(make, dx, at, count)

    def batch(self, batch: Batch) -> Outputs | None:
        (w, dz, *like), at, groups = batch.inputs, self.channels, self.groups
        if like and batch.flags[0] and None not in (*batch.types[2].shape, *batch.types[0].shape):
            told = self.replace(size=self.spatial(batch.types[2].shape))
            return told.batch(batch.of((w, dz), batch.flags[:2]))
        if not self.countable(batch):
            return None
        if not batch.flags[0]:
            if not batch.flags[1]:
                return None
            count, length = dz.shape[:2]
            if not one_known(count, length):
                return None
            pairs = zip(like, batch.flags[2:], strict=True)
            like = [folded(t, 0) if flag else t for t, flag in pairs]
            return (unfolded(apply(self, w, folded(dz, 0), *like), 0, count, length),)
        per_group = w.shape[1 + IN]
        if like or per_group is None:
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
    """dw = the adjoint of Conv2D in w, applied to dz.

    Gradient: dx = Conv2DBackpropInput, ddz = Conv2D of what arrives: it is linear in x and in
        dz.

    Inputs: x, dz, and where `size` (the height and width of w) is None, a tensor like w.
    """

    size: Any = None
    linear = "each"
    shape_only = (2,)
    images = (0, 1)
    makes_image = False

    def infer(self, x: TensorType, dz: TensorType, like: TensorType | None = None) -> Types:
        self.check(x, dz)
        c, o = x.shape[self.channels], dz.shape[self.channels]
        size = like.shape[:2] if like else self.size or ()
        per_group = c // self.groups if isinstance(c, int) else like.shape[2] if like else None
        if per_group is None:
            per_group = computed(lambda n: n // self.groups, c)
        return (tensor_type((*size, per_group, o), x.dtype),)

    def kernel(self, xp: Any, x: Any, dz: Any, like: Any = None) -> Any:
        size = self.size if like is None else like.shape[:2]
        assert size is not None
        window = self.moved(self.spatial(x.shape), size, self.dilation)
        dw = xp.matmul(self.patches(xp, x, window).mT, self.rows(xp, dz))
        g, _, o = dw.shape
        c = x.shape[self.channels] // g
        return xp.reshape(xp.permute_dims(dw, (1, 0, 2)), (*size, c, g * o))

    def to_onnx(self, to: Any, x: Any, dz: Any, like: Any = None) -> Any:
        """A convolution with examples for channels, and dz for filters; strides are dilations."""
        size = like.shape[:2] if self.size is None else self.size
        moves = around(self, x, size, self.dilation)
        image = first(to, self, x)
        if "auto_pad" in moves:
            at = 2 if self.data_format == "NCHW" else 1
            lengths = to.Shape(x, start=at, end=at + 2)
            image = with_borders(to, self, image, lengths, size, self.dilation)
            moves = {}
        filters = to.Transpose(first(to, self, dz), perm=[1, 0, 2, 3])
        turned = {"strides": list(self.dilation), "dilations": list(self.strides)}
        examples = self._by_group(to, x, image)
        dw = to.Conv(examples, filters, group=self.groups, **(moves | turned))
        kept = to.Slice(dw, [0, 0], list(size), [2, 3])
        return to.Transpose(kept, perm=[2, 3, 0, 1])

    def _by_group(self, to: Any, x: Any, image: Any) -> Any:
        """Channels of a group in front, and examples of every group side by side behind."""
        channels = x.shape[self.channels]
        if self.groups == 1:
            return to.Transpose(image, perm=[1, 0, 2, 3])
        if not isinstance(channels, int):
            raise NoOnnxForm(f"{self.type} of groups needs a known number of channels")
        lengths = to.Shape(image, start=2, end=4)
        count, own = to.Shape(image, start=0, end=1), channels // self.groups
        apart = to.reshape(image, count, to.value([self.groups, own]), lengths)
        turned = to.Transpose(apart, perm=[2, 1, 0, 3, 4])
        return to.reshape(turned, to.value([own]), to.Mul(count, [self.groups]), lengths)

    def vjp(self, node: Node, dw: Tensor) -> Gradients:
        x, dz, *like = node.inputs
        return (
            self.grad_input(dw, dz, x) if wants(x) else NO_GRAD,
            self.forward(x, dw) if wants(dz) else NO_GRAD,
            *(ZERO for _ in like),
        )

    def decompose(self, make: Making) -> Tensor | None:
        """Of filters for single channels, as by_channel says."""
        x, dz = make.inputs[:2]
        at = self.channels
        if self.size is None or self.groups != x.shape[at]:
            return super().decompose(make)
        count = self.by_channel(x, (*self.size, 1, lengths(dz.type)[at]))
        if not count:
            return super().decompose(make)
        window = self.moved(self.spatial(x.shape), self.size, self.dilation)
        x = by_channel.repeated(make, x, at, count)
        return by_channel.gradient_of_filter(make, x, dz, at, window)

    def batch(self, batch: Batch) -> Outputs | None:
        (x, dz, *like), at, groups = batch.inputs, self.channels, self.groups
        if like and any(batch.flags[:2]) and None not in batch.types[2].shape:
            told = self.replace(size=batch.types[2].shape[:2])
            return told.batch(batch.of((x, dz), batch.flags[:2]))
        if like or not any(batch.flags[:2]) or not self.countable(batch):
            return None
        if not batch.flags[1]:
            c = x.shape[1 + at]
            if c is None:
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
