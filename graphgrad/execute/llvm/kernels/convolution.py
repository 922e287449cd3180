"""Convolutions as LLVM IR, on the tiles of `gemm`: no patches are written out.

Along a row of an image (H, W, C) the patch under a window of width v is v * C values side by side,
and the next patch starts t C values further on, for a stride of t. So a row of outputs is a sum of
matrix products, one for each row k of the window, whose left operand is the padded image itself,
read with overlap:

    z[h] = sum over k of patches(image[s h + k]) w[k]             (W', v C) (v C, O)
    dw[k] = sum over n, h of patches(image[n, s h + k])^T dz[n, h]    (v C, W') (W', O)

Where the window is dilated along a row its places are not side by side, and each of them is a part
of the sum by itself. An image, or the channels of one group of it, is padded into a buffer that
stays in the cache, one example at a time. The adjoint for the image is a convolution of dz with w
turned round and its channels exchanged; with strides, one for each of the s t places that pixels
have in a step. Images are (N, H, W, C), arrays contiguous but for what the adjoint writes: there
only the channels of a pixel are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text, function
from .gemm import WIDE, Gemm

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
        """The rows of an image, as far as they are read, into a buffer: some of the channels.

        What a vector writes behind a pixel is overwritten by the next; the last is masked.
        """
        t, gemm = Text(), self.gemm
        last = t.sub("%pixels", 1)

        def copied(source: str, target: str, keep: bool) -> None:
            def some(c: str) -> None:
                mask = gemm.first(t, t.sub("%channels", c))
                offset = t.mul(c, gemm.size)
                value = gemm.load(t, t.at(source, offset), mask)
                gemm.store(t, value, t.at(target, offset), mask if keep else None)

            t.loop(0, "%channels", gemm.lanes, some)

        def row(h: str) -> None:
            source = t.at("%image", t.mul(h, "%row"))
            target = t.at(t.at("%to", t.mul(t.add(h, "%top"), "%wide")), "%left")
            room = t.mul("%channels", gemm.size)

            def pixel(i: str, keep: bool) -> None:
                copied(t.at(source, t.mul(i, "%pixel")), t.at(target, t.mul(i, room)), keep)

            def pixels() -> None:
                t.loop(0, last, 1, lambda i: pixel(i, False))
                t.loop(last, "%pixels", 1, lambda i: pixel(i, True))

            whole = (
                f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
                f"i64 {t.mul('%pixels', room)}, i1 false)"
            )
            t.when(t(f"icmp eq i64 {room}, %pixel"), lambda: t.do(whole), pixels)

        some = t("icmp sgt i64 %pixels, 0")
        t.when(some, lambda: t.loop(0, "%rows", 1, row))
        takes = (
            "ptr %image, i64 %row, i64 %rows, i64 %pixel, i64 %pixels, i64 %channels, ptr %to, "
            "i64 %top, i64 %left, i64 %wide"
        )
        return function("void", "padded", takes, t)

    def _conv(self) -> str:
        """conv(x, w, z, top, left, start, stop, down, right, spread_down, spread_right, groups).

        down, right: the strides; then the dilations. Example n of group g is number g N + n, and
        those from start to stop are made.
        """
        t = Text()
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        g = _Geometry(t, self.gemm, x, w, z)
        gemm = self.gemm
        start, stop, examples = number(t, 5), number(t, 6), x.length(4)
        width = gemm.panel * gemm.size
        packed = t.mul(g.depth, width)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        block, slab = gemm.aligned(t, t.mul(t.mul(packed, g.panels), g.parts))

        def pack(group: str, k: str, p: str) -> None:
            target = t.at(slab, t.mul(t.add(t.mul(k, g.panels), p), packed))
            source, cols = g.filter_panel(w.data, group, k, p)
            t.do(
                f"call void @pack_rows(ptr {source}, i64 {g.filter_row}, ptr {target}, "
                f"i64 {g.depth}, i64 {cols})"
            )

        def stripe(group: str, n: str, h: str, p: str) -> None:
            out, cols = g.output_panel(group, n, h, p)

            def part(k: str) -> None:
                b = t.at(slab, t.mul(t.add(t.mul(k, g.panels), p), packed))
                given = (
                    f"ptr {g.patches(h, k)}, i64 {g.step}, i64 {gemm.size}, ptr {b}, i64 {width}, "
                    f"ptr {out}, i64 {g.out_pixel}, i64 {g.out_width}, i64 {g.depth}"
                )
                gemm.stripes(t, given, cols, t(f"icmp sgt i64 {k}, 0"))

            t.loop(0, g.parts, 1, part)

        def example(group: str, n: str) -> None:
            g.pad(x.data, group, n)
            t.loop(
                0,
                g.out_height,
                1,
                lambda h: t.loop(0, g.panels, 1, lambda p: stripe(group, n, h, p)),
            )

        def one(group: str, first: str, last: str) -> None:
            t.loop(0, g.parts, 1, lambda k: t.loop(0, g.panels, 1, lambda p: pack(group, k, p)))
            t.loop(first, last, 1, lambda n: example(group, n))

        _shared(t, start, stop, examples, one)
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
        """conv_filter(x, dw, dz, top, left, start, stop, ..., groups, work): pieces of dw.

        What stands for dots is as for conv. A group has `parts` times `panels` pieces, and piece q
        is panel q % panels of part q // panels, summed over all examples: TOGETHER rows of images
        at a time in work[0], which `settle` adds to dw. Before, dw and work[1] are 0.
        """
        t = Text()
        x, w, z, work = (ArrayArgument(t, i) for i in (0, 1, 2, 12))
        g = _Geometry(t, self.gemm, x, w, z)
        start, stop, examples = number(t, 5), number(t, 6), x.length(4)
        rows = t.mul(w.length(4), t.mul(w.length(3), w.length(2)))
        lost = t.at(work.data, t.mul(rows, g.filter_row))
        few = t(f"icmp sle i64 {g.out_height}, {TOGETHER}")
        together = t.chosen(few, "i64", t.div(TOGETHER, g.out_height), 1)
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def piece(group: str, n: str, q: str) -> None:
            k, p = t.div(q, g.panels), t(f"urem i64 {q}, {g.panels}")
            begun = t(f"icmp ne i64 {t(f'urem i64 {n}, {together}')}, 0")
            after = t.add(n, 1)
            whole = t(f"icmp eq i64 {t(f'urem i64 {after}, {together}')}, 0")
            last = t(f"or i1 {whole}, {t(f'icmp eq i64 {after}, {examples}')}")
            panels = [g.filter_panel(data, group, k, p) for data in (work.data, w.data, lost)]
            b, _ = g.output_panel(group, n, "0", p)
            self._filter_part(g, k, b, panels, begun, last)

        def one(group: str, first: str, last: str) -> None:
            def example(n: str) -> None:
                g.pad(x.data, group, n)
                t.loop(first, last, 1, lambda q: piece(group, n, q))

            t.loop(0, examples, 1, example)

        _shared(t, start, stop, t.mul(g.parts, g.panels), one)
        g.free()
        unlocked.stop()
        return built_in("conv_filter", t, w.object)

    def _filter_part(
        self, g: _Geometry, k: str, dz: str, panels: Panels, begun: str, last: str
    ) -> None:
        """What the example in the buffer adds to a panel of part k of the window.

        dz: its panel of row 0. panels: (where it is, its columns) of sums, of dw and of what
        rounding takes away. begun: there are sums of examples before; last: they go to dw now.
        """
        t, gemm = g.t, self.gemm
        (sums, cols), (total, _), (lost, _) = panels

        def row(h: str, top: str) -> None:
            given = (
                f"ptr {g.patches(h, k)}, i64 {gemm.size}, i64 {g.step}, ptr {g.row_of(dz, h)}, "
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


def _shared(
    t: Text, start: str, stop: str, each: str, one: Callable[[str, str, str], None]
) -> None:
    """one(group, first, last) for the groups that have some of the pieces from start to stop.

    Each group has as many pieces.
    """

    def group(i: str) -> None:
        before = t.mul(i, each)
        least = t.sub(start, before)
        first = t.chosen(t(f"icmp sgt i64 {least}, 0"), "i64", least, 0)
        one(i, first, t.least(t.sub(stop, before), each))

    t.loop(t.div(start, each), t.div(t.add(stop, t.sub(each, 1)), each), 1, group)


class _Geometry:
    """Lengths, in entries, and strides, in bytes, of x, w and z, and the buffer of one example.

    The window has `parts` parts of `depth` numbers: its rows, or where they are dilated its places.
    The buffer is taken here and given back by `free`.
    """

    def __init__(
        self, t: Text, gemm: Gemm, x: ArrayArgument, w: ArrayArgument, z: ArrayArgument
    ) -> None:
        self.t = t
        self.gemm = gemm
        size, self._channels = gemm.size, w.length(2)
        self._outputs = t.div(w.length(1), number(t, 11))
        self.out_height, self.out_width = z.length(3), z.length(2)
        self._group = t.mul(self._channels, size)
        self._down, right = number(t, 7), number(t, 8)
        self._spread_down, spread = number(t, 9), number(t, 10)
        self._near = t.mul(spread, self._group)
        self.step = t.mul(right, self._group)
        self.out_pixel, self._out_row, self._example = z.stride(2), z.stride(3), z.stride(4)
        self._outputs_at = z.data
        side = t(f"icmp eq i64 {spread}, 1")
        self._columns = t.chosen(side, "i64", 1, w.length(3))
        self.parts = t.mul(w.length(4), self._columns)
        self.depth = t.chosen(side, "i64", t.mul(w.length(3), self._channels), self._channels)
        self.filter_row = t.mul(w.length(1), size)
        self.panels = t.ceil(self._outputs, gemm.panel)
        self._top, left = number(t, 3), number(t, 4)
        high = self._reach(self.out_height, self._down, w.length(4), self._spread_down)
        wide = self._reach(self.out_width, right, w.length(3), spread)
        self._left, self._wide = t.mul(left, self._group), t.mul(wide, self._group)
        self._pixel = t.mul(x.length(1), size)
        self._row, self._image = t.mul(x.length(2), self._pixel), x.length(3)
        self._rows = t.least(self._image, t.sub(high, self._top))
        self._pixels = t.least(x.length(2), t.sub(wide, left))
        room = t.add(t.mul(high, self._wide), gemm.lanes * size)
        self._buffer = t(f"call ptr @malloc(i64 {room})")
        t.do(f"call void @llvm.memset.p0.i64(ptr {self._buffer}, i8 0, i64 {room}, i1 false)")

    def _reach(self, out: str, stride: str, window: str, spread: str) -> str:
        """How much of an axis is under the window."""
        t = self.t
        inside = t.mul(t.sub(window, 1), spread)
        return t.add(t.add(t.mul(t.sub(out, 1), stride), inside), 1)

    def pad(self, x: str, group: str, n: str) -> None:
        """The channels of a group of example n into the buffer."""
        t = self.t
        image = t.at(x, t.mul(n, t.mul(self._image, self._row)))
        t.do(
            f"call void @padded(ptr {t.at(image, t.mul(group, self._group))}, i64 {self._row}, "
            f"i64 {self._rows}, i64 {self._pixel}, i64 {self._pixels}, i64 {self._channels}, "
            f"ptr {self._buffer}, i64 {self._top}, i64 {self._left}, i64 {self._wide})"
        )

    def free(self) -> None:
        """Give the buffer back."""
        self.t.do(f"call void @free(ptr {self._buffer})")

    def patches(self, h: str, k: str) -> str:
        """Where the patches under part k of the window start, for row h of the outputs."""
        t = self.t
        down = t.mul(t.div(k, self._columns), self._spread_down)
        row = t.add(t.mul(h, self._down), down)
        across = t.mul(t(f"urem i64 {k}, {self._columns}"), self._near)
        return t.at(t.at(self._buffer, t.mul(row, self._wide)), across)

    def filter_panel(self, w: str, group: str, k: str, p: str) -> tuple[str, str]:
        """Panel p of part k of a group's filter, and how many columns it has."""
        row = self.t.at(w, self.t.mul(self.t.mul(k, self.depth), self.filter_row))
        return self._panel(row, group, p)

    def output_panel(self, group: str, n: str, h: str, p: str) -> tuple[str, str]:
        """Panel p of a group, of row h of example n of the outputs, and its number of columns."""
        example = self.t.at(self._outputs_at, self.t.mul(n, self._example))
        return self._panel(self.row_of(example, h), group, p)

    def row_of(self, outputs: str, h: str) -> str:
        """The same place h rows of the outputs further on."""
        return self.t.at(outputs, self.t.mul(h, self._out_row))

    def _panel(self, row: str, group: str, p: str) -> tuple[str, str]:
        t = self.t
        before = t.mul(p, self.gemm.panel)
        cols = t.least(t.sub(self._outputs, before), self.gemm.panel)
        first = t.add(t.mul(group, self._outputs), before)
        return t.at(row, t.mul(first, self.gemm.size)), cols
