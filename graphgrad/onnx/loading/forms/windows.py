"""How windows lie on an image: what convolutions and pools of ONNX have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....base.errors import FileError, ShapeError
from ....base.length import Length
from ....ir.node import Tensor
from ....ops import nn
from ....ops.arrays.borders import pad
from ....ops.create.creation import ones
from ..call import OperatorCall
from ..lengths import lengths_of, reshaped


class Windows(NamedTuple):
    """Lengths, steps and borders of windows, one for each spatial axis of (N, C, ...)."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Any
    ceil: bool

    @property
    def reach(self) -> tuple[int, ...]:
        """How many places a window reaches over."""
        return tuple([(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)])

    def spelled(self, lengths: Sequence[Any]) -> Windows:
        """The same windows, with borders that are pairs of widths, also for "SAME"."""
        if self.pads != "SAME":
            return self
        pads = _same(lengths, self.kernel, self.strides, self.dilations, upper=True)
        return self._replace(pads=pads)

    @property
    def open(self) -> bool:
        """Whether widths of borders are known only at run time."""
        return any(isinstance(width, Length) for pair in self.pads for width in pair)

    def open_over(self, lengths: Sequence[Any]) -> bool:
        """Whether only a run knows what is beside an image of these lengths."""
        return self.open or (self.ceil and not all(isinstance(n, int) for n in lengths))

    def counts(self, lengths: Sequence[Any]) -> list[Any]:
        """How many windows there are along axes of these lengths."""
        counts = []
        rows = zip(lengths, self.reach, self.strides, self.pads, strict=True)
        for n, reach, stride, (before, after) in rows:
            room = n + before + after - reach
            count = room // stride + 1
            if self.ceil:  # none begins behind the image and the border before it
                count = Length.min((room + stride - 1) // stride, (n + before - 1) // stride) + 1
            counts.append(count)
        return counts

    def to_the_end(self, lengths: Sequence[Any]) -> Windows:
        """The same windows, with borders in which the last of them end, so that none is cut."""
        rows = zip(self.counts(lengths), lengths, self.reach, self.strides, self.pads, strict=True)
        pads = []
        for count, n, reach, stride, (before, after) in rows:
            end = (count - 1) * stride + reach - n - before
            pads.append((before, Length.max(after, end) if self.ceil else after))
        return self._replace(pads=tuple(pads), ceil=False)


def windows_of(
    call: OperatorCall, x: Tensor, kernel: Sequence[Any], auto_pad: str | None = None
) -> Windows:
    """The windows of a call over the spatial axes of x, with its auto_pad or another."""
    lengths = list(x.shape[2:])
    said = call.attribute("kernel_shape", [k or 0 for k in kernel])
    if len(said) != len(lengths) or not lengths or min(said) < 1:
        raise ShapeError(f"it has windows of {list(said)} for {x!r}")
    ones = [1] * len(said)
    strides = tuple(call.attribute("strides", ones))
    dilations = tuple(call.attribute("dilations", ones))
    pads = call.attribute("pads", [0] * 2 * len(said))
    how = auto_pad or call.attribute("auto_pad", "NOTSET")
    ceil = bool(call.attribute("ceil_mode", 0))
    if how == "SAME_UPPER" and not all(isinstance(n, int) for n in lengths):
        borders: Any = "SAME"
    elif how in ("SAME_UPPER", "SAME_LOWER"):
        borders = _same(told_spatial(x), said, strides, dilations, how == "SAME_UPPER")
    elif how == "VALID":
        borders = tuple((0, 0) for _ in said)
    elif how == "NOTSET":
        borders = tuple(zip(pads[: len(said)], pads[len(said) :], strict=True))
    else:
        raise FileError(f"its auto_pad {how!r:.40} is unknown")
    return Windows(tuple(said), strides, dilations, borders, ceil)


def _same(
    lengths: Sequence[Any],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    upper: bool,
) -> Any:
    """Borders that give ceil(length / stride) windows."""
    borders = []
    for n, k, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        behind = (n + stride - 1) % stride  # how many places come after the last window's first
        total = Length.max((k - 1) * dilation - behind, 0)
        less, more = total // 2, total - total // 2
        borders.append((less, more) if upper else (more, less))
    return tuple(borders)


def known_spatial(x: Tensor) -> list[int]:
    """The spatial lengths of (N, C, ...); ShapeError where one is not known."""
    if not all(isinstance(d, int) for d in x.shape[2:]):
        raise ShapeError(f"{x!r} needs spatial axes of known lengths here: pass them with shapes=")
    return [int(d) for d in x.shape[2:]]  # type: ignore[arg-type]


def told_spatial(x: Tensor) -> list[int | Length]:
    """The spatial lengths of (N, C, ...); ShapeError where one depends on data."""
    if None in x.shape[2:]:
        raise ShapeError(f"{x!r} has spatial axes of unknown number: pass them with shapes=")
    return list(x.shape[2:])  # type: ignore[arg-type]


def padded(x: Tensor, windows: Windows, value: Any = 0) -> tuple[Tensor, Windows]:
    """x with borders of which widths are known only at run time, and the windows without them."""
    if not windows.open:
        return x, windows
    wide = pad(x, [(0, 0), (0, 0), *windows.pads], constant_values=value)
    return wide, windows._replace(pads=tuple((0, 0) for _ in windows.kernel))


def window_sums(x: Tensor, windows: Windows) -> Tensor:
    """The sum over each window, channel by channel; zeros outside."""
    lengths = told_spatial(x)
    n, c = lengths_of(x)[:2]
    one = reshaped(x, [-1, 1, *lengths])
    filters = ones((*windows.kernel, 1, 1), x.dtype)
    one, w = padded(one, windows.spelled(lengths).to_the_end(lengths))
    made = nn.conv(one, filters, w.strides, w.pads, "NCHW", w.dilations)
    return reshaped(made, [n, c, *told_spatial(made)])
