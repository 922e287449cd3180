"""The words that all random numbers are made of: Philox, a counter-based generator.

Word i of a stream is the i-th of NumPy's `Philox(key=seed + (stream << 64)).random_raw`, that is
lane i % 4 of the block whose counter is i // 4 + 1: four words of 64 bits, ten rounds
[Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"]. So every word can be computed
where it is wanted, and is the same on every backend and device.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ...base.kinds import kind_of

__all__ = [
    "HALF",
    "folded",
    "fractions",
    "halves",
    "stream_of",
    "wide_product",
    "words",
    "words_at",
]

MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
ROUNDS = 10
FEW = 32  # words so few that a generator of NumPy's for each is faster than arithmetic on arrays

HALF, _LOW = 32, 0xFFFFFFFF


@cache
def stream_of(name: str, attempt: int = 0) -> int:
    """The stream of a function's name; those of its further attempts are streams of their own."""
    return zlib.crc32(name.encode()) + (attempt << 32)


def words(xp: Any, seed: Any, stream: Any, count: Any) -> Any:
    """The first words of a stream as uint64, for each seed so many: seed.shape + (count,)."""
    seeds = _as_words(xp, seed)
    if xp is np:
        return _raw(seeds, stream, count)
    blocks = (count + 3) // 4
    block = np.uint64(1) + xp.arange(blocks, dtype=np.uint64)
    lanes = _block(xp, block, seeds[..., None], stream)
    return xp.stack(lanes, axis=-1).reshape((*seeds.shape, 4 * blocks))[..., :count]


def fractions(seed: Any, stream: Any, count: int, dtype: Any = np.float64) -> Any:
    """The first 53 bits of words as numbers in [0, 1), for float32 the first 24 of halves: what
    NumPy draws."""
    seeds = _as_words(np, seed)
    made = np.empty((seeds.size, count), dtype)
    for row, s in zip(made, seeds.ravel().tolist(), strict=True):
        _with_generator(s, int(stream), 0, partial(_fill, row))
    return made.reshape((*seeds.shape, count))


def _fill(row: Any, generator: np.random.Philox) -> None:
    np.random.Generator(generator).random(dtype=row.dtype, out=row)


def halves(xp: Any, seed: Any, stream: Any, count: Any) -> Any:
    """The same bits as uint32, the low half of each word first."""
    pairs = (count + 1) // 2
    made = words(xp, seed, stream, pairs)
    parts = [made & np.uint64(_LOW), made >> np.uint64(HALF)]
    made = xp.stack([p.astype(np.uint32) for p in parts], axis=-1)
    return made.reshape((*made.shape[:-2], 2 * pairs))[..., :count]


def words_at(xp: Any, seed: Any, stream: Any, index: Any) -> Any:
    """Word `index` of the stream of each seed; the two are of one shape, or broadcast."""
    seeds, index = xp.broadcast_arrays(_as_words(xp, seed), _as_words(xp, index))
    if xp is np and index.size <= FEW:
        pairs = zip(seeds.ravel().tolist(), index.ravel().tolist(), strict=True)
        numbers = [_word(s, int(stream), i) for s, i in pairs]
        return np.array(numbers, np.uint64).reshape(index.shape)
    lanes = _block(xp, (index >> np.uint64(2)) + np.uint64(1), seeds, stream)
    lane = index & np.uint64(3)
    numbers = lanes[3]
    for i in range(3):
        numbers = xp.where(lane == i, lanes[i], numbers)
    return numbers


def folded(xp: Any, key: Any, data: Any) -> Any:
    """A key made of a key and a number: word `data` of the stream of keys, as int64."""
    return words_at(xp, key, stream_of("key"), data).astype(np.int64)


def wide_product(x: Any, factor: int) -> tuple[Any, Any]:
    """x * factor of uint64, as the high and the low 64 of its 128 bits."""
    low, high = np.uint64(factor & _LOW), np.uint64(factor >> 32)
    mask, half = np.uint64(_LOW), np.uint64(HALF)
    x_low, x_high = x & mask, x >> half
    right = x_high * low + ((x_low * low) >> half)
    if factor <= _LOW:
        return right >> half, x * low
    left = x_low * high + (right & mask)
    return x_high * high + (right >> half) + (left >> half), x * np.uint64(factor)


def _as_words(xp: Any, x: Any) -> Any:
    """Integers modulo 2**64."""
    x = xp.asarray(x)
    return (x.astype(np.int64) if kind_of(x.dtype) == "i" else x).astype(np.uint64)


def _raw(seeds: Any, stream: Any, count: int) -> Any:
    """By NumPy's own generator, one seed after the other."""
    rows = [_drawn(s, int(stream), 0, count) for s in seeds.ravel().tolist()]
    if len(rows) == 1:
        return rows[0].reshape((*seeds.shape, count))
    return np.array(rows, np.uint64).reshape((*seeds.shape, count))


@cache
def _idle() -> list[np.random.Philox]:
    """Generators that nobody uses now: to make one takes as long as 10,000 numbers."""
    return []


def _drawn(seed: int, stream: int, counter: int, count: int) -> Any:
    """The words behind a counter."""
    return _with_generator(seed, stream, counter, lambda generator: generator.random_raw(count))


def _with_generator(
    seed: int, stream: int, counter: int, draw: Callable[[np.random.Philox], Any]
) -> Any:
    """What is drawn by a generator that stands behind a counter."""
    try:
        generator = _idle().pop()
    except IndexError:
        generator = np.random.Philox(key=0)
    none = np.zeros(4, np.uint64)
    generator.state = {
        "bit_generator": "Philox",
        "state": {
            "counter": np.array([counter, 0, 0, 0], np.uint64),
            "key": np.array([seed, stream], np.uint64),
        },
        "buffer": none,
        "buffer_pos": len(none),
        "has_uint32": 0,
        "uinteger": 0,
    }
    made = draw(generator)
    _idle().append(generator)
    return made


def _word(seed: int, stream: int, index: int) -> int:
    word: int = _drawn(seed, stream, index // 4, 4)[index % 4]
    return word


def _block(xp: Any, counter: Any, seed: Any, stream: Any) -> list[Any]:
    """The four words of blocks, for arrays of counters and keys."""
    zero = xp.zeros_like(counter ^ seed)
    c0, c1, c2, c3 = counter ^ zero, zero, zero, zero
    k0, k1 = seed, xp.asarray(stream, dtype=np.uint64).reshape((1,) * zero.ndim)
    for _ in range(ROUNDS):
        high0, low0 = wide_product(c0, MULTIPLIERS[0])
        high1, low1 = wide_product(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + np.uint64(STEPS[0]), k1 + np.uint64(STEPS[1])
    return [c0, c1, c2, c3]
