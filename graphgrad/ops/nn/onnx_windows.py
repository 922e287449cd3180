"""Windows over images in ONNX: channels come first, and filters are (out, in, height, width)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.onnx import NoOnnxForm
from .moving_windows import ONE, Pair, Window, Windowed

__all__ = [
    "OF_ONNX",
    "around",
    "first",
    "is_static",
    "joined_pieces",
    "last",
    "placed_back",
    "static_lengths",
    "turned_moves",
    "with_borders",
]


ZERO: Pair = (0, 0)
OF_ONNX = [3, 2, 0, 1]
"""The axes of filters (height, width, in, out) in ONNX's order."""


def first(to: Any, op: Windowed, x: Any) -> Any:
    """An image with its channels first."""
    return x if op.data_format == "NCHW" else to.Transpose(x, perm=[0, 3, 1, 2])


def last(to: Any, op: Windowed, x: Any) -> Any:
    """An image with its channels where the op has them."""
    return x if op.data_format == "NCHW" else to.Transpose(x, perm=[0, 2, 3, 1])


def is_static(op: Windowed, x: Any) -> bool:
    """Whether height and width of an image are known."""
    return all(isinstance(d, int) for d in op.spatial(x.shape))


def static_lengths(op: Windowed, x: Any) -> tuple[int, int]:
    """Height and width of an image; NoOnnxForm where they are not known."""
    high, wide = op.spatial(x.shape)
    if not isinstance(high, int) or not isinstance(wide, int):
        raise NoOnnxForm(f"{op.type} in ONNX needs images of known height and width")
    return high, wide


def around(op: Windowed, x: Any, size: Any, dilation: Pair = ONE) -> dict[str, Any]:
    """The attributes of how a window of a size moves over an image."""
    moves = {"strides": list(op.strides), "dilations": list(dilation)}
    lengths = op.spatial(x.shape)
    if not all(isinstance(d, int) for d in size):
        raise NoOnnxForm(f"{op.type} in ONNX needs filters of known height and width")
    if op.padding == "SAME" and not all(isinstance(d, int) for d in lengths):
        if op.strides == ONE:  # as wide as the window reaches, whatever the image
            return {**moves, "pads": _joined(_same_of_one(size, dilation))}
        if dilation != ONE:
            raise NoOnnxForm(f'dilation and padding="SAME" of {op.type} need known lengths')
        return {**moves, "auto_pad": "SAME_UPPER"}
    known = [d if isinstance(d, int) else 0 for d in lengths]
    axes = op.moved(known, size, dilation).axes
    return {**moves, "pads": _joined([(e.low, e.high) for e in axes])}


def _same_of_one(size: Any, dilation: Pair) -> list[Pair]:
    """The borders of padding="SAME" where strides are 1."""
    total = [(k - 1) * d for k, d in zip(size, dilation, strict=True)]
    return [(t // 2, t - t // 2) for t in total]


def _joined(borders: Sequence[Pair]) -> list[int]:
    """Borders as ONNX has them: before every axis, then behind."""
    return [*(low for low, _ in borders), *(high for _, high in borders)]


def turned_moves(op: Any, filters: Any) -> dict[str, Any] | None:
    """How filters of single channels, turned round, move over dz to give the adjoint; None where
    that is not a convolution.

    Runtimes have fast kernels for these, and none for their transposed convolutions.
    """
    *size, per_group, out = filters
    if (per_group, out) != (1, op.groups) or op.strides != ONE:
        return None
    borders = _same_of_one(size, op.dilation) if op.padding == "SAME" else _told(op)
    reach = [(k - 1) * d for k, d in zip(size, op.dilation, strict=True)]
    turned = [(r - low, r - high) for r, (low, high) in zip(reach, borders, strict=True)]
    if any(n < 0 for pair in turned for n in pair):
        return None
    return {"strides": [1, 1], "dilations": list(op.dilation), "pads": _joined(turned)}


def placed_back(
    to: Any, op: Windowed, dz: Any, filters: Any, lengths: Any, dilation: Pair, groups: int
) -> Any:
    """The adjoint of a convolution with filters (out, in, height, width), for images of any length.

    dz: channels first. lengths: height and width of the image, a vector in the model. What a
    stride leaves over at the end of an image has no window, so it is 0.
    """
    moves = {"group": groups, "strides": list(op.strides), "dilations": list(dilation)}
    size = filters.shape[2:]
    if op.strides == ONE:
        borders = _same_of_one(size, dilation) if op.padding == "SAME" else _told(op)
        return to.ConvTranspose(dz, filters, pads=_joined(borders), **moves)
    full = to.ConvTranspose(dz, filters, **moves)
    low = to.value([low for low, _ in _told(op)])
    if op.padding == "SAME":
        low = to.Div(_total(to, op, lengths, size, dilation), [2])
    end = to.Add(lengths, low)
    more = to.Max(to.Sub(end, to.Shape(full, start=2, end=4)), [0])
    padded = to.Pad(full, to.Concat([0] * 6, more, axis=0))
    return to.Slice(padded, low, end, [2, 3])


def with_borders(to: Any, op: Windowed, image: Any, lengths: Any, size: Any, dilation: Pair) -> Any:
    """An image, channels first, with the borders of padding="SAME" of any length: zeros."""
    total = _total(to, op, lengths, size, dilation)
    low = to.Div(total, [2])
    return to.Pad(image, to.Concat([0, 0], low, [0, 0], to.Sub(total, low), axis=0))


def _told(op: Windowed) -> list[Pair]:
    """The borders that the padding says."""
    return [ZERO, ZERO] if isinstance(op.padding, str) else list(op.padding)


def _total(to: Any, op: Windowed, lengths: Any, size: Any, dilation: Pair) -> Any:
    """What padding="SAME" adds to height and width of an image: a vector in the model."""
    strides = list(op.strides)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    outputs = to.Div(to.Add(lengths, [s - 1 for s in strides]), strides)
    spanned = to.Add(to.Mul(to.Sub(outputs, [1]), strides), reach)
    return to.Max(to.Sub(spanned, lengths), [0])


def joined_pieces(to: Any, op: Windowed, pieces: Any, window: Window) -> Any:
    """Pieces (N, C * places, windows), added up where they stood in an image."""
    lengths = [e.length for e in window.axes]
    made = to.Col2Im(
        pieces,
        lengths,
        list(window.size),
        strides=list(window.strides),
        dilations=list(window.dilation),
        pads=[*(e.low for e in window.axes), *(e.high for e in window.axes)],
    )
    return last(to, op, made)
