"""Windows over images in ONNX: channels come first, and filters are (out, in, height, width)."""

from __future__ import annotations

from typing import Any

from ...ir.onnx import NoOnnxForm
from .moving_windows import ONE, Pair, Window, Windowed

__all__ = ["OF_ONNX", "around", "first", "joined_pieces", "last", "static_lengths"]


OF_ONNX = [3, 2, 0, 1]
"""The axes of filters (height, width, in, out) in ONNX's order."""


def first(to: Any, op: Windowed, x: Any) -> Any:
    """An image with its channels first."""
    return x if op.data_format == "NCHW" else to.Transpose(x, perm=[0, 3, 1, 2])


def last(to: Any, op: Windowed, x: Any) -> Any:
    """An image with its channels where the op has them."""
    return x if op.data_format == "NCHW" else to.Transpose(x, perm=[0, 2, 3, 1])


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
        if dilation != ONE:
            raise NoOnnxForm(f'dilation and padding="SAME" of {op.type} need known lengths')
        return {**moves, "auto_pad": "SAME_UPPER"}
    known = [d if isinstance(d, int) else 0 for d in lengths]
    axes = op.moved(known, size, dilation).axes
    return {**moves, "pads": [*(e.low for e in axes), *(e.high for e in axes)]}


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
