"""Convolutions and their adjoints. Filters are (out, in / groups, ...) in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.errors import FileError
from ....ir.node import Tensor
from ....ops import nn
from ....ops.arrays.borders import pad
from ....ops.shape.indexing import getitem
from ....ops.shape.reshaping import reshape, transpose
from ..call import OperatorCall
from ..lengths import GIVE_SHAPES
from .table import form
from .windows import Windows, padded, told_spatial, windows_of


@form("Conv")
def _conv(call: OperatorCall) -> Tensor:
    return convolved(call, call.tensor(0), call.tensor(1), call.optional(2))


def convolved(call: OperatorCall, x: Tensor, filters: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution that a call describes."""
    x, windows = padded(x, windows_of(call, x, filters.shape[2:]))
    w = transpose(filters, (*range(2, filters.ndim), 1, 0))
    groups = call.attribute("group", 1)
    z = nn.conv(x, w, windows.strides, windows.pads, "NCHW", windows.dilations, groups)
    return z if bias is None else z + by_channel(bias, z)


def by_channel(row: Tensor, x: Tensor) -> Tensor:
    """One number for each channel of (N, C, ...), ready to be broadcast."""
    return reshape(row, (-1,) + (1,) * (x.ndim - 2))


@form("ConvTranspose")
def _conv_transpose(call: OperatorCall) -> Tensor:
    x, filters, bias = call.tensor(0), call.tensor(1), call.optional(2)
    lengths, groups = told_spatial(x), call.attribute("group", 1)
    extra = call.attribute("output_padding", [0] * len(lengths))
    wanted, how = call.attribute("output_shape"), call.attribute("auto_pad", "NOTSET")
    if how in ("SAME_UPPER", "SAME_LOWER") and wanted is None:
        strides = call.attribute("strides", [1] * len(lengths))
        wanted = [n * s for n, s in zip(lengths, strides, strict=True)]
    call.unread.discard("auto_pad")
    windows = _plain(call, x, filters)
    full = [
        (n - 1) * s + r for n, s, r in zip(lengths, windows.strides, windows.reach, strict=True)
    ]
    if wanted is not None:
        pads = tuple(
            _shares(n + e - w, how == "SAME_UPPER")
            for n, e, w in zip(full, extra, wanted[-len(full) :], strict=True)
        )
    else:
        pads = windows.pads
    w = transpose(filters, (*range(2, filters.ndim), 1, 0))
    made = nn.conv_transpose(x, w, windows.strides, "VALID", "NCHW", windows.dilations, groups)
    made = _cropped(made, [(a, b - e) for (a, b), e in zip(pads, extra, strict=True)])
    return made if bias is None else made + by_channel(bias, made)


def _plain(call: OperatorCall, x: Tensor, filters: Tensor) -> Windows:
    """Windows whose borders are those that the call says, not made to fit."""
    how = call.attribute("auto_pad", "NOTSET")
    same = how in ("SAME_UPPER", "SAME_LOWER")
    return windows_of(call, x, filters.shape[2:], "VALID" if same else how)


def _shares(total: Any, upper: bool) -> tuple[int, int]:
    if not isinstance(total, int):
        raise FileError(
            f"it crops {total} elements, a number that is only known at run time. {GIVE_SHAPES}"
        )
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _cropped(x: Tensor, pads: Sequence[tuple[int, int]]) -> Tensor:
    """Without borders of these widths, or with zeros where they are negative."""
    widths = [(0, 0), (0, 0), *((max(0, -a), max(0, -b)) for a, b in pads)]
    if any(map(any, widths)):
        x = pad(x, widths)
    key = [slice(None), slice(None)]
    key += [slice(max(0, a) or None, -max(0, b) or None) for a, b in pads]
    return getitem(x, tuple(key)) if any(k != slice(None) for k in key) else x


@form("Col2Im")
def _col2im(call: OperatorCall) -> Tensor:
    size = [int(n) for n in call.known(1, "image_shape")]
    block = [int(n) for n in call.known(2, "block_shape")]
    ones = [1] * len(size)
    pads = call.attribute("pads", [0] * 2 * len(size))
    return nn.fold(
        call.tensor(0),
        tuple(size),
        tuple(block),
        tuple(call.attribute("strides", ones)),
        tuple(zip(pads[: len(size)], pads[len(size) :], strict=True)),
        "NCHW",
        tuple(call.attribute("dilations", ones)),
    )
