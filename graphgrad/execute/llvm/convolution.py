"""Convolutions as LLVM IR, on the tiles of `gemm`: no patches are written out.

Along a row of an image (H, W, C) the patch under a window of width v is v * C values side by side,
and the next patch starts t C values further on, for a stride of t. So a row of outputs is a sum of
matrix products, one for each row k of the window, whose left operand is the padded image itself,
read with overlap:

    z[h] = sum over k of patches(image[s h + k]) w[k]             (W', v C) (v C, O)
    dw[k] = sum over n, h of patches(image[n, s h + k])^T dz[n, h]    (v C, W') (W', O)

An image is padded into a buffer that stays in the cache, one example at a time. The adjoint for the
image is a convolution of dz with w turned round and its channels exchanged; with strides, one for
each of the s t places that pixels have in a step. Dilations are 1, images (N, H, W, C), arrays
contiguous but for what the adjoint writes: there only the channels of a pixel are.
"""

from __future__ import annotations

from collections.abc import Sequence

from .arrays import ArrayArgument, Unlocked, built_in, number
from .gemm import WIDE, Gemm
from .text import Text, function

Panels = Sequence[tuple[str, str]]
TOGETHER = 64  # rows of images whose parts of a filter's gradient are summed one after the other


class Convolutions:
    """The text for the dtype of a Gemm, beside whose text it stands."""

    def __init__(self, gemm: Gemm) -> None:
        self.gemm = gemm

    def declarations(self) -> tuple[str, ...]:
        """What the text calls beyond what Gemm declares."""
        return (
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        )

    def functions(self) -> tuple[str, ...]:
        """The definitions; those for Python are `conv` and `conv_filter`."""
        return self._padded(), self._conv(), self._settle(), self._conv_filter()

    def _padded(self) -> str:
        """The rows of an image, as far as they are read, into a buffer."""
        t = Text()

        def row(h: str) -> None:
            source = t.at("%image", t.mul(h, "%row"))
            target = t.at(t.at("%to", t.mul(t.add(h, "%top"), "%wide")), "%left")
            t.do(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 %length, "
                "i1 false)"
            )

        t.loop(0, "%rows", 1, row)
        takes = (
            "ptr %image, i64 %row, i64 %rows, i64 %length, ptr %to, i64 %top, i64 %left, i64 %wide"
        )
        return function("void", "padded", takes, t)

    def _conv(self) -> str:
        """conv(x, w, z, top, left, start, stop, down, right): examples from start to stop of z.

        down, right: the strides.
        """
        t = Text()
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        g = _Geometry(t, self.gemm, x, w, z)
        gemm = self.gemm
        start, stop = number(t, 5), number(t, 6)
        width = gemm.panel * gemm.size
        packed = t.mul(g.depth, width)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        block, slab = gemm.aligned(t, t.mul(t.mul(packed, g.panels), g.window_rows))

        def pack(k: str, p: str) -> None:
            target = t.at(slab, t.mul(t.add(t.mul(k, g.panels), p), packed))
            source, cols = g.filter_panel(w.data, k, p)
            t.do(
                f"call void @pack_rows(ptr {source}, i64 {g.filter_row}, ptr {target}, "
                f"i64 {g.depth}, i64 {cols})"
            )

        t.loop(0, g.window_rows, 1, lambda k: t.loop(0, g.panels, 1, lambda p: pack(k, p)))

        def stripe(n: str, h: str, p: str) -> None:
            out, cols = g.output_panel(n, h, p)

            def window_row(k: str) -> None:
                b = t.at(slab, t.mul(t.add(t.mul(k, g.panels), p), packed))
                given = (
                    f"ptr {g.patches(h, k)}, i64 {g.step}, i64 {gemm.size}, ptr {b}, i64 {width}, "
                    f"ptr {out}, i64 {g.out_pixel}, i64 {g.out_width}, i64 {g.depth}"
                )
                gemm.stripes(t, given, cols, t(f"icmp sgt i64 {k}, 0"))

            t.loop(0, g.window_rows, 1, window_row)

        def example(n: str) -> None:
            g.pad(x.data, n)
            t.loop(0, g.out_height, 1, lambda h: t.loop(0, g.panels, 1, lambda p: stripe(n, h, p)))

        t.loop(start, stop, 1, example)
        g.free()
        t.do(f"call void @free(ptr {block})")
        unlocked.stop()
        return built_in("conv", t, z.object)

    def _settle(self) -> str:
        """total[:rows, :cols] += sums; what rounding takes away is kept in lost (Kahan's rule)."""
        t, gemm = Text(), self.gemm
        step, kind = gemm.lanes * gemm.size, gemm.vector
        masks = [gemm.first(t, t.sub("%cols", j * gemm.lanes)) for j in range(WIDE)]

        def one(below: str, mask: str) -> None:
            at = [t.at(base, below) for base in ("%total", "%sums", "%lost")]
            total, sums, lost = (gemm.load(t, where, mask) for where in at)
            more = t(f"fsub {kind} {sums}, {lost}")
            after = t(f"fadd {kind} {total}, {more}")
            rest = t(f"fsub {kind} {t(f'fsub {kind} {after}, {total}')}, {more}")
            finite = t(f"fcmp ord {kind} {t(f'fsub {kind} {rest}, {rest}')}, zeroinitializer")
            zeros = f"{kind} zeroinitializer"
            rest = t(f"select <{gemm.lanes} x i1> {finite}, {kind} {rest}, {zeros}")
            gemm.store(t, after, at[0], mask)
            gemm.store(t, rest, at[2], mask)

        def row(i: str) -> None:
            below = t.mul(i, "%row")
            for j, mask in enumerate(masks):
                one(t.add(below, j * step), mask)

        t.loop(0, "%rows", 1, row)
        takes = "ptr %total, ptr %sums, ptr %lost, i64 %row, i64 %rows, i64 %cols"
        return function("void", "settle", takes, t)

    def _conv_filter(self) -> str:
        """conv_filter(x, dw, dz, top, left, start, stop, down, right, work): parts of dw.

        Part q is panel q % panels of row q // panels of the window, summed over all examples:
        TOGETHER rows of images at a time in work[0], which `settle` adds to dw. Before, dw and
        work[1] are 0.
        """
        t = Text()
        x, w, z, work = (ArrayArgument(t, i) for i in (0, 1, 2, 9))
        g = _Geometry(t, self.gemm, x, w, z)
        start, stop, examples = number(t, 5), number(t, 6), x.length(4)
        lost = t.at(work.data, t.mul(g.window_rows, t.mul(g.depth, g.filter_row)))
        few = t(f"icmp sle i64 {g.out_height}, {TOGETHER}")
        group = t.chosen(few, "i64", t.div(TOGETHER, g.out_height), 1)
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def part(n: str, q: str) -> None:
            k, p = t.div(q, g.panels), t(f"urem i64 {q}, {g.panels}")
            begun = t(f"icmp ne i64 {t(f'urem i64 {n}, {group}')}, 0")
            after = t.add(n, 1)
            whole = t(f"icmp eq i64 {t(f'urem i64 {after}, {group}')}, 0")
            last = t(f"or i1 {whole}, {t(f'icmp eq i64 {after}, {examples}')}")
            panels = [g.filter_panel(data, k, p) for data in (work.data, w.data, lost)]
            self._filter_part(g, n, k, p, panels, begun, last)

        def example(n: str) -> None:
            g.pad(x.data, n)
            t.loop(start, stop, 1, lambda q: part(n, q))

        t.loop(0, examples, 1, example)
        g.free()
        unlocked.stop()
        return built_in("conv_filter", t, w.object)

    def _filter_part(
        self, g: _Geometry, n: str, k: str, p: str, panels: Panels, begun: str, last: str
    ) -> None:
        """What example n adds to panel p of row k of the window.

        panels: (where it is, its columns) of sums, of dw and of what rounding takes away. begun:
        there are sums of examples before; last: they go to dw now.
        """
        t, gemm = g.t, self.gemm
        (sums, cols), (total, _), (lost, _) = panels

        def row(h: str, top: str) -> None:
            b, _ = g.output_panel(n, h, p)
            given = (
                f"ptr {g.patches(h, k)}, i64 {gemm.size}, i64 {g.step}, ptr {b}, "
                f"i64 {g.out_pixel}, ptr {sums}, i64 {g.filter_row}, i64 {g.depth}, "
                f"i64 {g.out_width}"
            )
            gemm.stripes(t, given, cols, t(f"or i1 {begun}, {t(f'icmp sgt i64 {h}, {top}')}"))

        def settle() -> None:
            t.do(
                f"call void @settle(ptr {total}, ptr {sums}, ptr {lost}, i64 {g.filter_row}, "
                f"i64 {g.depth}, i64 {cols})"
            )

        def rows(top: str) -> None:
            t.loop(top, t.least(t.add(top, TOGETHER), g.out_height), 1, lambda h: row(h, top))
            t.when(last, settle)

        t.loop(0, g.out_height, TOGETHER, rows)


class _Geometry:
    """Lengths, in entries, and strides, in bytes, of x, w and z, and the buffer of one example.

    The buffer is taken here and given back by `free`.
    """

    def __init__(
        self, t: Text, gemm: Gemm, x: ArrayArgument, w: ArrayArgument, z: ArrayArgument
    ) -> None:
        self.t = t
        self.gemm = gemm
        size, channels = gemm.size, x.length(1)
        self.window_rows = w.length(4)
        self._outputs = w.length(1)
        self.out_height, self.out_width = z.length(3), z.length(2)
        pixel = t.mul(channels, size)
        self._down, right = number(t, 7), number(t, 8)
        self.step = t.mul(right, pixel)
        self.out_pixel, self._out_row, self._example = z.stride(2), z.stride(3), z.stride(4)
        self._outputs_at = z.data
        self.depth = t.mul(w.length(3), channels)
        self.filter_row = t.mul(self._outputs, size)
        self.panels = t.ceil(self._outputs, gemm.panel)
        self._top, self._left = number(t, 3), t.mul(number(t, 4), pixel)
        high = t.add(t.mul(t.sub(self.out_height, 1), self._down), self.window_rows)
        wide = t.add(t.mul(t.sub(self.out_width, 1), right), w.length(3))
        self._wide = t.mul(wide, pixel)
        self._row, self._image = t.mul(x.length(2), pixel), x.length(3)
        self._rows = t.least(self._image, t.sub(high, self._top))
        length = t.least(self._row, t.sub(self._wide, self._left))
        self._length = t.chosen(t(f"icmp sgt i64 {length}, 0"), "i64", length, 0)
        room = t.mul(high, self._wide)
        self._buffer = t(f"call ptr @malloc(i64 {room})")
        t.do(f"call void @llvm.memset.p0.i64(ptr {self._buffer}, i8 0, i64 {room}, i1 false)")

    def pad(self, x: str, n: str) -> None:
        """Example n into the buffer."""
        image = self.t.at(x, self.t.mul(n, self.t.mul(self._image, self._row)))
        self.t.do(
            f"call void @padded(ptr {image}, i64 {self._row}, i64 {self._rows}, "
            f"i64 {self._length}, ptr {self._buffer}, i64 {self._top}, i64 {self._left}, "
            f"i64 {self._wide})"
        )

    def free(self) -> None:
        """Give the buffer back."""
        self.t.do(f"call void @free(ptr {self._buffer})")

    def patches(self, h: str, k: str) -> str:
        """Where the patches under row k of the window start, for row h of the outputs."""
        row = self.t.add(self.t.mul(h, self._down), k)
        return self.t.at(self._buffer, self.t.mul(row, self._wide))

    def filter_panel(self, w: str, k: str, p: str) -> tuple[str, str]:
        """Panel p of row k of the filter, and how many columns it has."""
        row = self.t.at(w, self.t.mul(self.t.mul(k, self.depth), self.filter_row))
        return self._panel(row, p)

    def output_panel(self, n: str, h: str, p: str) -> tuple[str, str]:
        """Panel p of row h of example n of the outputs, and how many columns it has."""
        example = self.t.at(self._outputs_at, self.t.mul(n, self._example))
        return self._panel(self.t.at(example, self.t.mul(h, self._out_row)), p)

    def _panel(self, row: str, p: str) -> tuple[str, str]:
        first = self.t.mul(p, self.gemm.panel)
        cols = self.t.least(self.t.sub(self._outputs, first), self.gemm.panel)
        return self.t.at(row, self.t.mul(first, self.gemm.size)), cols
