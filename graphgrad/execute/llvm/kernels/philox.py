"""Words of Philox as LLVM IR: the definition of ops.random.philox, four words at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....ops.random.philox import MULTIPLIERS, ROUNDS, STEPS
from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text

LANES = 4


class WordKind(NamedTuple):
    """What is made of a word: the type stored, how many of them, and the bits that are left out.

    scale    by which they are multiplied as a float; "" for integers
    bounded  whether they are integers within bounds
    """

    stored: str
    each: int
    dropped: int
    scale: str
    bounded: bool = False


KINDS = {
    "words": WordKind("i64", 1, 0, ""),
    "halves": WordKind("i32", 2, 0, ""),
    "double": WordKind("double", 1, 11, "0x3CA0000000000000"),
    "float": WordKind("float", 2, 8, "0x3E70000000000000"),
    **{f"integers{bits}": WordKind(f"i{bits}", 1, 0, "", True) for bits in (8, 16, 32, 64)},
}
"""By name of the function: fill(out, seeds, stream, count, row, row_end, block, block_end), and
for integers fill(..., bounds, refused).

out      (rows, count), C-contiguous; seeds: (rows,) as uint64; blocks are counted from 0
bounds   uint64: one less than how many integers there are, the least of them, and 2**64 modulo
         their number
refused  int64: where a word is refused, 1 is written there [Lemire 2019]
"""

SIZES = {"i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}

Made = Callable[[str], list[str]]


def filling(name: str) -> str:
    """The function of that name, which returns out."""
    kind, t = KINDS[name], Text()
    out, seeds = (ArrayArgument(t, i) for i in range(2))
    stream, count, row, row_end, start, end = (number(t, i) for i in range(2, 8))
    unlocked = Unlocked(t, "true")
    unlocked.start()
    size = SIZES[kind.stored]
    of_word = _bounded(t, kind) if kind.bounded else lambda word: _plain(t, kind, word)
    per_block = LANES * kind.each
    whole = t.least(end, t.div(count, per_block))

    def rows(r: str) -> None:
        seed = t.load("i64", t.at(seeds.data, t.mul(r, 8)))
        here = t.at(out.data, t.mul(t.mul(r, count), size))

        def numbers(block: str) -> list[str]:
            words = _words(t, t.add(block, 1), seed, stream)
            return [made for word in words for made in of_word(word)]

        def full(b: str) -> None:
            at = t.at(here, t.mul(b, per_block * size))
            for i, made in enumerate(numbers(b)):
                t.do(f"store {kind.stored} {made}, ptr {t.at(at, i * size)}, align {size}")

        def partial(b: str) -> None:
            first = t.mul(b, per_block)
            for i, made in enumerate(numbers(b)):
                place = t.add(first, i)
                at = t.at(here, t.mul(place, size))
                store = f"store {kind.stored} {made}, ptr {at}, align {size}"
                t.when(t(f"icmp slt i64 {place}, {count}"), lambda store=store: t.do(store))  # type: ignore[misc]

        t.loop(start, whole, 1, full)
        t.loop(t(f"call i64 @llvm.smax.i64(i64 {start}, i64 {whole})"), end, 1, partial)

    t.loop(row, row_end, 1, rows)
    unlocked.stop()
    return built_in(name, t, out.object)


def _plain(t: Text, kind: WordKind, word: str) -> list[str]:
    """The word itself or its halves, as integers or floats."""
    parts = [word]
    if kind.each == 2:
        high = t(f"lshr i64 {word}, 32")
        parts = [t(f"trunc i64 {w} to i32") for w in (word, high)]
    return [_number(t, kind, p) for p in parts]


def _bounded(t: Text, kind: WordKind) -> Made:
    """What makes an integer within the bounds of a word: ops.random.draws.RandomIntegers."""
    bounds, refused = ArrayArgument(t, 8).data, ArrayArgument(t, 9).data
    last, least, rest = (t.load("i64", t.at(bounds, 8 * i)) for i in range(3))
    factor = t(f"zext i64 {last} to i128")

    def made(word: str) -> list[str]:
        wide = t(f"zext i64 {word} to i128")
        high, low = _halves(t, t(f"add i128 {t(f'mul i128 {wide}, {factor}')}, {wide}"))
        again = t(f"icmp ult i64 {low}, {rest}")
        t.when(again, lambda: t.do(f"store i64 1, ptr {refused}"))
        bounded = t.add(high, least)
        return [bounded if kind.stored == "i64" else t(f"trunc i64 {bounded} to {kind.stored}")]

    return made


def _number(t: Text, kind: WordKind, bits: str) -> str:
    if not kind.scale:
        return bits
    whole = "i64" if kind.each == 1 else "i32"
    left = t(f"lshr {whole} {bits}, {kind.dropped}")
    made = t(f"sitofp {whole} {left} to {kind.stored}")
    return t(f"fmul {kind.stored} {made}, {kind.scale}")


def _words(t: Text, counter: str, seed: str, stream: str) -> tuple[str, ...]:
    """The four words of the block of a counter."""
    c: tuple[str, ...] = (counter, "0", "0", "0")
    k0, k1 = seed, stream
    for i in range(ROUNDS):
        high0, low0 = _wide(t, c[0], MULTIPLIERS[0])
        high1, low1 = _wide(t, c[2], MULTIPLIERS[1])
        left = t(f"xor i64 {t(f'xor i64 {high1}, {c[1]}')}, {k0}")
        right = t(f"xor i64 {t(f'xor i64 {high0}, {c[3]}')}, {k1}")
        c = (left, low1, right, low0)
        if i + 1 < ROUNDS:
            k0, k1 = t.add(k0, STEPS[0]), t.add(k1, STEPS[1])
    return c


def _wide(t: Text, x: str, factor: int) -> tuple[str, str]:
    """x * factor: the high and the low 64 bits."""
    return _halves(t, t(f"mul i128 {t(f'zext i64 {x} to i128')}, {factor}"))


def _halves(t: Text, product: str) -> tuple[str, str]:
    high = t(f"trunc i128 {t(f'lshr i128 {product}, 64')} to i64")
    return high, t(f"trunc i128 {product} to i64")
