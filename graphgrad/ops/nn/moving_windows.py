"""Windows that move over images: lengths, borders and strides.

Images are (N, H, W, C) or (N, C, H, W).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import Dim, computed, is_negative
from ..base import (
    Any,
    DTypeError,
    Op,
    Shape,
    Tensor,
    TensorType,
    np,
    whole,
)
from ..batching import Batch
from ..shape.updates import plus

Pair = tuple[int, int]
Padding = str | tuple[Pair, Pair]
ONE: Pair = (1, 1)


class Extent(NamedTuple):
    """One spatial axis: lengths of the input and the output, and what is padded at both ends."""

    length: Any
    out: Any
    low: Any
    high: Any


def at_least_0(length: Any) -> Any:
    """A length, or 0 where that would be less."""
    return Length.max(length, 0)


def extent(
    length: Any,
    window: Any,
    stride: int,
    dilation: int,
    padding: Any,
    greatest: Callable[[Any, int], Any] = Length.max,
) -> Extent:
    """The extent of an axis. "SAME": ceil(length / stride) outputs, padded as evenly as can be."""
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        out = -(-length // stride)
        total = greatest((out - 1) * stride + reach - length, 0)
        return Extent(length, out, total // 2, total - total // 2)
    low, high = (0, 0) if padding == "VALID" else padding
    out = greatest((length + low + high - reach) // stride + 1, 0)
    return Extent(length, out, low, high)


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
        down, across = (np.maximum(self.seen(axis).sum(1), 1) for axis in (0, 1))
        return down[:, None, None] * across[:, None]

    def inside(self) -> Iterator[Any]:
        """For each place in the window where it is inside the image: (H', W', 1)."""
        down, across = self.seen(0), self.seen(1)
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                yield down[:, i, None, None] & across[:, j, None]

    def seen(self, axis: int) -> Any:
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
            extent(lengths[i], size[i], self.strides[i], dilation[i], padding[i], max)
            for i in (0, 1)
        )
        return Window(size, self.strides, dilation, (first, second))

    def outer(self, lengths: Any, size: Any, dilation: Pair = ONE) -> tuple[Dim, ...]:
        """The lengths of the output, where they are known."""
        padding = (self.padding,) * 2 if isinstance(self.padding, str) else self.padding
        out: list[Dim] = []
        for n, k, s, d, p in zip(lengths, size, self.strides, dilation, padding, strict=True):
            out.append(_outputs(n, k, s, d, p))
        return tuple(out)

    def countable(self, batch: Batch) -> bool:
        """Whether the number of examples is known, or can be told from what an image holds."""
        rows = [t.shape for t, flag in zip(batch.inputs, batch.flags, strict=True) if flag]
        unknown = any(shape[0] is None for shape in rows)
        return not unknown or not any(0 in t.shape for t in batch.types)

    def check(self, *types: TensorType) -> None:
        """ShapeError or DTypeError unless all have four axes and one dtype."""
        for t in types:
            if len(t.shape) != 4:
                raise ShapeError(f"{self.type} takes images and filters of four axes, got {t!r}")
            if t.dtype is not types[0].dtype:
                raise DTypeError(f"{self.type} takes one dtype, got {types[0]!r} and {t!r}")


def _outputs(length: Dim, window: Dim, stride: int, dilation: int, padding: Any) -> Any:
    """How many outputs an axis has, of lengths that may be open."""
    if padding == "SAME":
        return computed(lambda n: Length.ceil_div(n, stride), length)
    low, high = (0, 0) if padding == "VALID" else padding
    fixed = low + high - 1 + dilation
    return computed(
        lambda n, k: Length.max((n + fixed - k * dilation) // stride + 1, 0), length, window
    )


def rank_of(x: Tensor) -> int:
    """The number of spatial axes of an image; ShapeError unless there are one to three."""
    if x.ndim not in (3, 4, 5):
        raise ShapeError(
            f"an image has one to three spatial axes (3 to 5 axes in all), got {x.type!r}"
        )
    return x.ndim - 2


FORMATS = {"NHWC": "NHWC", "NCHW": "NCHW", "NWC": "NHWC", "NCW": "NCHW"}
FORMATS |= {"NDHWC": "NHWC", "NCDHW": "NCHW"}


def format_of(data_format: str) -> str:
    """ "NHWC" or "NCHW", whichever a data format means."""
    if data_format not in FORMATS:
        raise ShapeError(f"data_format is 'NHWC' or 'NCHW', got {data_format!r}")
    return FORMATS[data_format]


def numbers_of(what: str, given: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """An int for each spatial axis; ShapeError unless they are ints, and not too small."""
    sizes = sizes_of(what, given, rank, least)
    if any(isinstance(v, Length) for v in sizes):
        raise ShapeError(f"{what}: ints, for they say how the graph is built, got {given!r}")
    return sizes


def sizes_of(what: str, given: Any, rank: int, least: int = 1) -> tuple[Any, ...]:
    """An int or a length for each spatial axis; ShapeError for others and what is too small."""
    values = tuple(given) if isinstance(given, tuple | list) else (given,) * rank
    fit = all(isinstance(v, int | np.integer | Length) and not isinstance(v, bool) for v in values)
    if len(values) != rank or not fit or any(is_negative(v - least) for v in values):
        kind = "positive ints" if least else "ints >= 0"
        raise ShapeError(f"{what}: {rank} {kind}, or one for all, got {given!r}")
    return tuple([v if isinstance(v, Length) else int(v) for v in values])


def padding_of(given: Any, rank: int) -> Any:
    """ "SAME", "VALID", or a pair (before, after) for each spatial axis."""
    if isinstance(given, str):
        if given.upper() not in ("SAME", "VALID"):
            raise ShapeError(f"padding is 'SAME', 'VALID', ints or pairs of ints, got {given!r}")
        return given.upper()
    each = tuple(given) if isinstance(given, tuple | list | np.ndarray) else (given,) * rank
    try:
        pairs = tuple(_pair(p) for p in each)
    except (TypeError, ValueError):
        pairs = ()
    if len(pairs) != rank or any(v < 0 for pair in pairs for v in pair):
        raise ShapeError(
            f"padding: an int >= 0, or an int or a pair of ints for each of {rank} axes, got "
            f"{given!r}"
        )
    return pairs


def _pair(given: Any) -> Pair:
    low, high = given if isinstance(given, tuple | list | np.ndarray) else (given, given)
    return whole("padding", low), whole("padding", high)


def of_two(
    strides: Any, padding: Any, data_format: str, others: Any
) -> tuple[Pair, Padding, str, Pair]:
    """Attributes of an op over two axes; of one axis, that over a height of 1."""
    if len(strides) == 2:
        return strides, padding, data_format, others
    around = padding if isinstance(padding, str) else ((0, 0), padding[0])
    return (1, strides[0]), around, data_format, (1, others[0])


def one_known(*lengths: Dim) -> bool:
    """Whether one of two lengths is known, so that an axis can be cut into these."""
    return any(d is not None for d in lengths)


def known_lengths(shape: Any) -> Pair | None:
    """Two lengths, where both are known."""
    h, w = shape
    return (h, w) if isinstance(h, int) and isinstance(w, int) else None
