"""An attribution as a picture: red speaks for the score, blue against it."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..base.errors import ShapeError
from ..ir.types import Array

LEAST_SIDE = 224


def plane(values: Array) -> Array:
    """Rows and columns of the attribution of one example: (C, H, W) summed over channels."""
    if values.ndim == 3:
        return np.asarray(values.sum(0))
    if values.ndim == 2:
        return values
    if values.ndim == 1:
        return values[None]
    raise ShapeError(
        f"a picture takes values of shape (C, H, W), (H, W) or (W,), got {values.shape}"
    )


def pixels(values: Array) -> Array:
    """(H, W, 3) bytes: white is nothing, red the largest magnitude for, blue against the score."""
    most = np.abs(values).max() or 1.0
    level = np.clip(values / most, -1, 1)[..., None]
    red, blue = np.array([178, 24, 43]), np.array([33, 102, 172])
    colour = np.where(level > 0, red, blue)
    made = 255 + np.abs(level) * (colour - 255.0)
    once = np.round(made).astype(np.uint8)
    scale = max(1, -(-LEAST_SIDE // max(values.shape)))
    return once.repeat(scale, 0).repeat(scale, 1)


def png(image: Array) -> bytes:
    """The PNG file of (H, W, 3) bytes [PNG specification, W3C 2003]."""
    height, width, _ = image.shape
    rows = b"".join(b"\0" + image[i].tobytes() for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
