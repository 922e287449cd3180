"""Forms of random bits: JAX's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg

__all__ = ["FORMS"]


_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(key1: Tensor, key2: Tensor, x1: Tensor, x2: Tensor, **_: Any) -> Any:
    """Threefry-2x32 in 20 rounds [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
    3"]."""

    def word(n: int) -> Any:
        return gg.constant(n, "uint32")

    keys = [key1, key2, gg.bitwise_xor(gg.bitwise_xor(key1, key2), word(0x1BD11BDA))]
    x1, x2 = x1 + keys[0], x2 + keys[1]
    for turn in range(5):
        for r in _TURNS[turn % 2]:
            x1 = x1 + x2
            left, right = (
                gg.bitwise_left_shift(x2, word(r)),
                gg.bitwise_right_shift(x2, word(32 - r)),
            )
            x2 = gg.bitwise_xor(gg.bitwise_or(left, right), x1)
        x1 = x1 + keys[(turn + 1) % 3]
        x2 = x2 + keys[(turn + 2) % 3] + word(turn + 1)
    return x1, x2


def _counts(*, shape: Sequence[int], **_: Any) -> Any:
    """0, 1, 2, ... of 64 bits in two words."""
    count = gg.reshape(gg.arange(int(np.prod(shape)), dtype="uint64"), tuple(shape))
    high = gg.bitwise_right_shift(count, gg.constant(32, "uint64"))
    return gg.cast(high, "uint32"), gg.cast(count, "uint32")


FORMS: dict[str, Form] = {
    "threefry2x32": _threefry,
    "iota_2x32_shape": _counts,
}
