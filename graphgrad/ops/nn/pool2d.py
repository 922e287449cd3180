"""Pooling over two spatial axes, with its adjoints."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from itertools import accumulate
from math import prod

from ...ir.onnx import NoOnnxForm
from ...ir.types import elements, lengths
from ..base import (
    ZERO,
    Any,
    Cast,
    Constant,
    Derivative,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Samples,
    Sequence,
    Tensor,
    TensorType,
    Types,
    apply,
    is_floating,
    kind_of,
    np,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..elementwise.arithmetic import ADD, DIVIDE
from ..elementwise.bounds import MAXIMUM
from ..elementwise.logic import EQUAL, LOGICAL_OR, NOT_EQUAL, WHERE
from ..making import Making
from ..shape.folding import folded, unfolded
from ..shape.reshaping import BroadcastTo, Reshape
from ..shape.slicing import FULL, Slice
from .moving_windows import ONE, Padding, Pair, Window, Windowed, known_lengths, one_known
from .onnx_windows import around, first, is_static, joined_pieces, last, placed_back, static_lengths

PLACES = 16
"""Those in a window, at most, for which pooling is taken apart."""


class Pool(Windowed, abstract=True):
    """Family: one number out of every window, channel by channel."""

    window: Pair

    @property
    def spread(self) -> Pair:
        """How far the places of the window are apart."""
        return ONE

    def batch(self, batch: Batch) -> Outputs | None:
        """The batch axis as part of that of the images, if one of their lengths is known."""
        images = batch.every()
        count, length = images[0].shape[:2]
        if not self.countable(batch) or not one_known(count, length):
            return None
        made = apply(self, *[folded(t, 0) for t in images])
        return (unfolded(made, 0, count, length),)

    def pooled(self, x: TensorType) -> TensorType:
        """The type of what comes out."""
        self.check(x)
        out = self.outer(self.spatial(x.shape), self.window, self.spread)
        return tensor_type(self.image(x.shape[0], out, x.shape[self.channels]), x.dtype)

    def over(self, x: Any) -> Window:
        """The window over this image."""
        return self.moved(self.spatial(x.shape), self.window, self.spread)

    def attributes(self) -> tuple[Pair, Padding, str, Pair]:
        """What all pools have."""
        return self.strides, self.padding, self.data_format, self.window

    # Taken apart, pooling is element-wise nodes over views of the image, one for each place in the
    # window. Only where the windows meet no border, and gradients only where they lie side by side:
    # then an image is (N, H / k, k, W / m, m, C), and the places are axes of their own.

    def rows(self, xp: Any, pieces: list[Any]) -> Any:
        """Pieces (N, H', W', C) side by side, as ONNX joins them: (N, C * places, H' * W')."""
        stacked = xp.permute_dims(xp.stack(pieces, axis=-1), (0, 3, 4, 1, 2))
        _, c, k, h, w = stacked.shape
        return xp.reshape(stacked, (-1, c * k, h * w))

    def beside(self, x: Any) -> bool:
        """Whether a window may stand beside the image, where ONNX has another number for it."""
        if isinstance(self.padding, str):
            return False
        return any(max(p) >= k for p, k in zip(self.padding, self.window, strict=True))

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
        return (self.strides, self.spread) == (self.window, ONE) and all(
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
    dilation: how far the places of the window are apart.
    """

    ties: str = "first"
    dilation: Pair = ONE

    @property
    def spread(self) -> Pair:
        """The dilation."""
        return self.dilation

    def choices(self) -> tuple[Pair, Padding, str, Pair, str, Pair]:
        """The attributes of all three."""
        return *self.attributes(), self.ties, self.dilation

    @classmethod
    def tied(cls, rng: np.random.Generator) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Attributes with ties, and an image for them."""
        for attributes, x in cls.geometries(rng):
            yield (*attributes, "first"), x
        yield (*attributes, "share"), x
        yield ((1, 2), "SAME", "NHWC", (3, 3), "share"), rng.normal(size=(1, 3, 4, 2))
        spread = ((2, 1), ((2, 1), (0, 1)), "NHWC", (2, 3), "first", (2, 1))
        yield spread, rng.normal(size=(1, 4, 5, 1))


class MaxPool(Largest):
    """y = the largest element of every window; borders never win. See Largest for ties.

    Gradient: dx = dy to the largest element of each window, added up where windows overlap.
    """

    onnx = Onnx("MaxPool")
    derivative = Derivative(relevance="moved")

    def infer(self, x: TensorType) -> Types:
        if kind_of(x.dtype) not in "iuf":
            raise DTypeError(f"MaxPool takes an integer or floating image, got {x!r}")
        return (self.pooled(x),)

    def kernel(self, xp: Any, x: Any) -> Any:
        window = self.over(x)
        padded = window.pad(xp, self.last(xp, x), lowest(x.dtype))
        return self.back(xp, reduce(xp.maximum, [padded[c] for c in window.cuts()]))

    def to_onnx(self, to: Any, x: Any) -> Any:
        if not is_floating(x.dtype) or self.beside(x):
            return None
        moves = around(self, x, self.window, self.dilation)
        return last(
            to, self, to.MaxPool(first(to, self, x), kernel_shape=list(self.window), **moves)
        )

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (apply(MaxPoolGrad(*self.choices()), dy, x, y),)

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
    """dx = dy to the largest element of each window of x, or in shares to all.

    Gradient: ddy = MaxPoolGradGrad of what arrives; zero for x and y.

    Inputs: dy, x, and y, which is MaxPool of x.
    """

    derivative = Derivative(jumps=(1, 2))
    linear = (0,)

    def infer(self, dy: TensorType, x: TensorType, y: TensorType) -> Types:
        self.check(dy, x, y)
        return (x,)

    def kernel(self, xp: Any, dy: Any, x: Any, y: Any) -> Any:
        pieces = self.pieces(xp, dy, x, y)
        shape = (x.shape[0], x.shape[self.channels])
        return self.back(xp, self.over(x).scatter(xp, pieces, shape, dy.dtype))

    def pieces(self, xp: Any, dy: Any, x: Any, y: Any) -> list[Any]:
        """For each place in the window, what of dy goes there: (N, H', W', C)."""
        _, hits = self.hits(xp, x, y)
        share = self.shared(xp, self.last(xp, dy), hits)
        return [xp.where(hit, share, 0) for hit in hits]

    def to_onnx(self, to: Any, dy: Any, x: Any, y: Any) -> Any:
        if self.ties == "first" and not (is_static(self, x) and self.beside(x)):
            image = first(to, self, x)
            flat, none = to.Reshape(self.largest(to, x), [-1]), np.zeros(1, dy.dtype)
            zeros = to.ConstantOfShape(to.Reshape(to.Size(image), [1]), value=none)
            dys = to.Reshape(first(to, self, dy), [-1])
            dx = to.ScatterElements(zeros, flat, dys, axis=0, reduction="add")
            return last(to, self, to.Reshape(dx, to.Shape(image), allowzero=1))
        window = self.moved(static_lengths(self, x), self.window, self.dilation)
        rows = to.traced(lambda xp, *ts: self.rows(xp, self.pieces(xp, *ts)), dy, x, y)
        return joined_pieces(to, self, rows, window)

    def largest(self, to: Any, x: Any) -> Any:
        """Where in an image of ONNX, as a row of numbers, the largest of each window stands."""
        if self.beside(x):
            raise NoOnnxForm(f"{self.type} of windows beside an image needs known lengths")
        moves = around(self, x, self.window, self.dilation)
        window = list(self.window)
        return to.MaxPool(first(to, self, x), outputs=2, kernel_shape=window, **moves)[1]

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
        return apply(MaxPoolGradGrad(*self.choices()), ddx, x, y), ZERO, ZERO

    def decompose(self, make: Making) -> Tensor | None:
        """dy to the first place that is the largest, or in shares to all that are."""
        dy, x, y = make.inputs
        places = self.places(make, x)
        if places is None or not self.side_by_side(x):
            return None
        if len(places) == 1:
            return dy
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
    """The adjoint of MaxPoolGrad in dy: dx at the largest element of each window, or the mean.

    Gradient: that of its input is MaxPoolGrad of dx; zero for the others.
    """

    def infer(self, dx: TensorType, x: TensorType, y: TensorType) -> Types:
        self.check(dx, x, y)
        return (y,)

    def to_onnx(self, to: Any, dx: Any, x: Any, y: Any) -> Any:
        if is_static(self, x) or self.ties != "first":
            return None
        places = self.largest(to, x)
        row = to.Reshape(first(to, self, dx), [-1])
        return last(to, self, to.Gather(row, places))

    def kernel(self, xp: Any, dx: Any, x: Any, y: Any) -> Any:
        window, hits = self.hits(xp, x, y)
        padded = window.pad(xp, self.last(xp, dx))
        parts = [xp.where(h, padded[cut], 0) for h, cut in zip(hits, window.cuts(), strict=True)]
        return self.back(xp, self.shared(xp, reduce(xp.add, parts), hits))

    def vjp(self, node: Node, ddy: Tensor) -> Gradients:
        _, x, y = node.inputs
        return apply(MaxPoolGrad(*self.choices()), ddy, x, y), ZERO, ZERO

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
    return -np.inf if is_floating(dtype) else np.iinfo(dtype).min


def _is_largest(make: Making, x: Tensor, y: Tensor) -> Tensor:
    """Where x is y, or NaN."""
    return make(LOGICAL_OR, make(EQUAL, x, y), make(NOT_EQUAL, x, x))


def _first_of(make: Making, hits: Sequence[Tensor], dtype: DType) -> Tensor:
    """The number of the first place that is one; the last, if none before it is."""
    number = make.number(len(hits) - 1, dtype)
    for i in range(len(hits) - 2, -1, -1):
        number = make(WHERE, hits[i], make.number(i, dtype), number)
    return number


class AvgPool(Pool):
    """y = the mean of every window, borders left out.

    Gradient: dx = dy in equal shares to each window, added up where windows overlap.
    """

    onnx = Onnx("AveragePool")
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        if not is_floating(x.dtype):
            raise DTypeError(f"AvgPool takes a floating image, got {x!r}")
        return (self.pooled(x),)

    def kernel(self, xp: Any, x: Any) -> Any:
        window = self.over(x)
        padded = window.pad(xp, self.last(xp, x))
        total = reduce(xp.add, [padded[cut] for cut in window.cuts()])
        return self.back(xp, total / xp.asarray(window.counts(), dtype=x.dtype))

    def to_onnx(self, to: Any, x: Any) -> Any:
        if self.beside(x):
            return None
        moves = around(self, x, self.window)
        del moves["dilations"]
        window = list(self.window)
        return last(to, self, to.AveragePool(first(to, self, x), kernel_shape=window, **moves))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        size = known_lengths(self.spatial(x.shape))
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

    Gradient: ddy = AvgPool of what arrives; zero for a tensor like x.

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
        shape = (dy.shape[0], dy.shape[self.channels])
        return self.back(xp, window.scatter(xp, self.pieces(xp, dy, window), shape, dy.dtype))

    def pieces(self, xp: Any, dy: Any, window: Window) -> list[Any]:
        """For each place in the window, what of dy goes there: (N, H', W', C)."""
        share = self.last(xp, dy) / xp.asarray(window.counts(), dtype=dy.dtype)
        return [share] * (self.window[0] * self.window[1])

    def to_onnx(self, to: Any, dy: Any, like: Any = None) -> Any:
        lengths = self.size if like is None else self.spatial(like.shape)
        if like is not None and not is_static(self, like):
            return last(to, self, self._of_any_length(to, dy, like))
        window = self.moved(lengths, self.window)
        rows = to.traced(lambda xp, dy: self.rows(xp, self.pieces(xp, dy, window)), dy)
        return joined_pieces(to, self, rows, window)

    def _of_any_length(self, to: Any, dy: Any, like: Any) -> Any:
        """Equal shares, put back by a transposed convolution with ones."""
        channels, dtype = dy.shape[self.channels], dy.dtype
        if not isinstance(channels, int):
            raise NoOnnxForm(f"{self.type} of open lengths needs a known number of channels")
        at = 2 if self.data_format == "NCHW" else 1
        n = to.Shape(like, start=at, end=at + 2)
        ones = to.value(np.ones((channels, 1, *self.window), dtype))
        counts = to.value(np.asarray(prod(self.window), dtype))
        if self.padding == "SAME" or (self.padding != "VALID" and any(map(any, self.padding))):
            image = to.ConstantOfShape(to.Concat([1, 1], n, axis=0), value=np.ones(1, dtype))
            one = to.value(np.ones((1, 1, *self.window), dtype))
            counts = to.Conv(image, one, **around(self, like, self.window))
        share = to.Div(first(to, self, dy), counts)
        return placed_back(to, self, share, ones, n, ONE, channels)

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
