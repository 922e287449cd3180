"""Windows that sweep over images channel by channel, as LLVM IR: no borders are written out.

    z[n, h, w, c] = sum over k, l of x[n, s h + k d - p, t w + l e - q, c] f[k, l, c]
    z[n, h, w, c] = the largest of x under the window

Channels are side by side, so a vector is some of those of a pixel. Where the window lies inside the
image along a row, ABREAST outputs side by side are made at a time, which share their filters.
Images are (N, H, W, C), arrays contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text
from .convolution import WINDOW, Behind, Fields
from .gemm import Gemm

ABREAST = 4
FIELDS = (*WINDOW, "channels", "high", "wide", "first", "stop")
"""What the functions are told, as an array of int64.

high, wide   lengths of the window
first, stop  outputs of a row for which the window lies inside the image
"""


class _Kind(NamedTuple):
    """start: what borders hold, and totals before the first tap.

    tap(text, total, x, filters): the total with another tap.
    """

    start: str
    tap: Callable[[Text, str, str, str], str]
    filters: bool


class Sweeps:
    """The text for the dtype of a Gemm."""

    names = "by_channel", "largest"

    def __init__(self, gemm: Gemm) -> None:
        self.gemm = gemm

    def functions(self) -> tuple[str, ...]:
        """by_channel(x, f, z, fields, start, stop, 0, 0, ...); largest(x, x, z, ...).

        Rows start to stop of the outputs, of all examples. What stands for dots is as for conv.
        """
        gemm, v = self.gemm, self.gemm.vector

        def product(t: Text, total: str, x: str, f: str) -> str:
            return gemm.fma(t, x, f, total)

        def largest(t: Text, total: str, x: str, f: str) -> str:
            bits = f"<{gemm.lanes} x i1>"
            most = t(f"select {bits} {t(f'fcmp ogt {v} {total}, {x}')}, {v} {total}, {v} {x}")
            none = t(f"fcmp uno {v} {total}, {total}")
            return t(f"select {bits} {none}, {v} {total}, {v} {most}")

        lowest = "0xFFF0000000000000"
        row = ", ".join([f"{gemm.scalar} {lowest}"] * gemm.lanes)
        return (
            self._sweep("by_channel", _Kind("zeroinitializer", product, True)),
            self._sweep("largest", _Kind(f"<{row}>", largest, False)),
        )

    def _sweep(self, name: str, kind: _Kind) -> str:
        t, gemm = Text(), self.gemm
        border, *totals = [t(f"alloca {gemm.vector}") for _ in range(ABREAST + 1)]
        t.do(f"store {gemm.vector} {kind.start}, ptr {border}")
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        f = Fields(t, ArrayArgument(t, 3).data, FIELDS)
        start, stop = number(t, 4), number(t, 5)
        pixel = t.mul(f.channels, gemm.size)
        line, beside = t.mul(f.width, pixel), t.mul(f.right, pixel)
        tap = t.mul(f.spread_right, pixel)
        behind = Behind(t, gemm) if kind.filters else None
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def row(r: str) -> None:
            n, h = t.div(r, f.out_height), t(f"urem i64 {r}, {f.out_height}")
            top = t.sub(t.mul(h, f.down), f.top)
            image = t.at(x.data, t.mul(t.mul(n, f.height), line))
            out = t.at(z.data, t.mul(t.mul(r, f.out_width), pixel))

            def outputs(w_at: str, count: int) -> None:
                left = t.sub(t.mul(w_at, f.right), f.left)
                to = t.at(out, t.mul(w_at, pixel))

                def channels(c: str, mask: str | None) -> None:
                    aside = t.mul(c, gemm.size)
                    for total in totals[:count]:
                        t.do(f"store {gemm.vector} {kind.start}, ptr {total}")

                    def one_row(k: str) -> None:
                        y = t.add(top, t.mul(k, f.spread_down))
                        there = t(f"icmp ult i64 {y}, {f.height}")
                        source = t.at(t.at(image, t.mul(y, line)), aside)
                        source = t.chosen(there, "ptr", t.at(source, t.mul(left, pixel)), border)
                        step, apart = (t.chosen(there, "i64", d, 0) for d in (tap, beside))
                        filters = t.at(t.at(w.data, t.mul(t.mul(k, f.wide), pixel)), aside)

                        def one(i: str) -> None:
                            under = t.at(source, t.mul(i, step))
                            if count == 1:
                                column = t.add(left, t.mul(i, f.spread_right))
                                inside = t(f"icmp ult i64 {column}, {f.width}")
                                under = t.chosen(inside, "ptr", under, border)
                            weight = "zeroinitializer"
                            if kind.filters:
                                weight = gemm.load(t, t.at(filters, t.mul(i, pixel)), mask)
                            for j, total in enumerate(totals[:count]):
                                value = gemm.load(t, t.at(under, t.mul(j, apart)), mask)
                                after = kind.tap(t, t.load(gemm.vector, total), value, weight)
                                t.do(f"store {gemm.vector} {after}, ptr {total}")

                        t.loop(0, f.wide, 1, one)

                    t.loop(0, f.high, 1, one_row)
                    for j, total in enumerate(totals[:count]):
                        place = t.at(to, t.add(t.mul(j, pixel), aside))
                        gemm.store(t, t.load(gemm.vector, total), place, mask)

                even = t.mul(t.div(f.channels, gemm.lanes), gemm.lanes)
                t.loop(0, even, gemm.lanes, lambda c: channels(c, None))
                rest = gemm.first(t, t.sub(f.channels, even))
                t.when(t(f"icmp slt i64 {even}, {f.channels}"), lambda: channels(even, rest))

            inner = t.sub(f.stop, f.first)
            middle = t.add(f.first, t.mul(t.div(inner, ABREAST), ABREAST))
            t.loop(0, f.first, 1, lambda at: outputs(at, 1))
            t.loop(f.first, middle, ABREAST, lambda at: outputs(at, ABREAST))
            t.loop(middle, f.out_width, 1, lambda at: outputs(at, 1))
            if behind is not None:
                behind.run(t.mul(r, f.out_width), t.mul(t.add(r, 1), f.out_width))

        t.loop(start, stop, 1, row)
        if behind is not None:
            behind.free()
        unlocked.stop()
        return built_in(name, t, z.object)
