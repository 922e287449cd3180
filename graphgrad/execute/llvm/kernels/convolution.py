"""Convolutions as LLVM IR, on the tiles of `gemm`: products of a block of patches at a time.

A convolution is a matrix product, and so is its adjoint for the filter:

    z = patches(x) w         (N H' W', K) (K, O)      K = height * width * channels of the window
    dw = patches(x)^T dz     (K, N H' W') (N H' W', O)

Places of all rows and examples stand in one axis, so small images fill tiles as well as large ones.
The patches of a block of places, DEPTH of their numbers at a time, are gathered into a buffer that
stays in the cache; a window of one place that moves by one is read where it lies. Of wide images, a
block is a row of outputs, and patches are read, with overlap, in one example with its borders. A
run is what is side by side in the image: a row of the window, or where it is dilated, one place.
Filters are packed before, once for a program where they are constants.

The adjoint for the image is a convolution of dz with w turned round and its channels exchanged;
with strides, one for each of the s t places that pixels have in a step. Images are (N, H, W, C),
those that are read in groups (groups, N, H, W, C / groups); arrays are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....ops.nn.moving_windows import Window
from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text, function
from .gemm import DEPTH, WIDE, Gemm

WINDOW = (
    "height",
    "width",
    "out_height",
    "out_width",
    "down",
    "right",
    "top",
    "left",
    "spread_down",
    "spread_right",
)
"""What any function is told of a window that moves over an image."""
FIELDS = (
    *WINDOW,
    "own",
    "apart",
    "columns",
    "run",
    "depth",
    "outputs",
    "groups",
    "block",
    "chunk",
    "stretch",
    "slice",
    "mode",
    "high",
    "wide",
)
"""What the functions are told of a convolution, as an array of int64.

own, outputs    channels of a group, of the image and of what comes out
apart           entries from the image of a group to the next
columns, run    runs in a row of the window, and the numbers in one
depth           numbers of a patch
block, chunk    places at a time, and those whose parts of a filter's gradient are one sum
stretch, slice  numbers of a patch that are cut into slices, and those of a slice
mode            GATHERED, or where else patches are read
high, wide      lengths of a bordered image
"""
GATHERED, PIXELS, BORDERED = range(3)


CORNER = 24  # bytes of what is known of a place


NAMES = "conv", "conv_filter", "conv_pack", "conv_spread"
"""The functions for Python."""
BESIDE = (
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)
"""What is called beyond what Gemm declares."""


def told_of(window: Window) -> dict[str, int]:
    """The numbers of `WINDOW`."""
    down, across = window.axes
    lengths = (down.length, across.length, down.out, across.out)
    moves = (*window.strides, down.low, across.low, *window.dilation)
    return dict(zip(WINDOW, (*lengths, *moves), strict=True))


class Fields:
    """Numbers that a function is told, read where it begins."""

    def __init__(self, t: Text, where: str, names: Sequence[str] = FIELDS) -> None:
        self._values = {name: t.load("i64", t.at(where, 8 * i)) for i, name in enumerate(names)}

    def __getattr__(self, name: str) -> str:
        return self._values[name]


class Convolutions:
    """The text for the dtype of a Gemm, beside whose text it stands."""

    def __init__(self, gemm: Gemm) -> None:
        self.gemm = gemm
        self._line = (DEPTH + gemm.lanes) * gemm.size  # bytes of a patch in the buffer

    def functions(self) -> tuple[str, ...]:
        """The definitions; those for Python are `NAMES`."""
        return (
            self._corners(),
            self._gather(),
            self._conv_pack(),
            self._conv(),
            self._settle(),
            self._conv_filter(),
            self._conv_spread(),
        )

    # --- patches ------------------------------------------------------------------------------

    def _corners(self) -> str:
        """Where the windows of places begin, above and to the left, and rows of examples before."""
        t = Text()
        f = Fields(t, "%fields")

        row = t.div("%first", f.out_width)
        starts = (
            t.mul(t.div(row, f.out_height), f.height),
            t(f"urem i64 {row}, {f.out_height}"),
            t(f"urem i64 %first, {f.out_width}"),
        )
        places = [t("alloca i64") for _ in starts]
        for place, start in zip(places, starts, strict=True):
            t.do(f"store i64 {start}, ptr {place}")

        def corner(i: str) -> None:
            above, h, w = (t.load("i64", place) for place in places)
            top, left = t.sub(t.mul(h, f.down), f.top), t.sub(t.mul(w, f.right), f.left)
            for at, value in enumerate((top, left, above)):
                where = t.at("%to", t.add(t.mul(i, CORNER), 8 * at))
                t.do(f"store i64 {value}, ptr {where}")
            right = t.add(w, 1)
            row = t(f"icmp eq i64 {right}, {f.out_width}")
            down = t.add(h, t(f"zext i1 {row} to i64"))
            example = t(f"icmp eq i64 {down}, {f.out_height}")
            following = (
                t.add(above, t.chosen(example, "i64", f.height, 0)),
                t.chosen(example, "i64", 0, down),
                t.chosen(row, "i64", 0, right),
            )
            for place, value in zip(places, following, strict=True):
                t.do(f"store i64 {value}, ptr {place}")

        t.loop(0, "%rows", 1, corner)
        takes = "ptr %fields, i64 %first, i64 %rows, ptr %to"
        return function("void", "corners", takes, t)

    def _gather(self) -> str:
        """The numbers from k to k + depth of the patches at corners, each into a line of a buffer.

        What a vector writes behind the end of a run is overwritten by the next; behind the last
        there is room for it.
        """
        t, gemm = Text(), self.gemm
        f = Fields(t, "%fields")
        end = t.add("%k", "%depth")
        first, last = t.div("%k", f.run), t.div(t.add(end, t.sub(f.run, 1)), f.run)

        def run(r: str) -> None:
            below = t.mul(t.div(r, f.columns), f.spread_down)
            across = t.mul(t(f"urem i64 {r}, {f.columns}"), f.spread_right)
            before = t.mul(r, f.run)
            begin, stop = _most(t, t.sub("%k", before), 0), t.least(t.sub(end, before), f.run)
            copies = _RunCopies(t, gemm, begin, stop)
            start = t.at("%to", t.mul(t.sub(before, "%k"), gemm.size))

            def line(i: str) -> None:
                corner = t.at("%corners", t.mul(i, CORNER))
                top, left, image = (t.load("i64", t.at(corner, 8 * at)) for at in range(3))
                y, x = t.add(top, below), t.add(left, across)
                there = t(f"icmp ult i64 {y}, {f.height}")
                low = t.mul(_most(t, t.sub(0, x), 0), f.own)
                high = t.chosen(there, "i64", t.mul(t.sub(f.width, x), f.own), 0)
                pixel = t.add(t.mul(t.add(image, y), f.width), x)
                source = t.at("%x", t.mul(t.mul(pixel, f.own), gemm.size))
                copies.copy(source, t.at(start, t.mul(i, self._line)), low, high)

            t.loop(0, "%rows", 1, line)

        t.loop(first, last, 1, run)
        takes = "ptr %x, ptr %fields, ptr %corners, i64 %rows, i64 %k, i64 %depth, ptr %to"
        return function("void", "gather", takes, t)

    # --- the convolution ----------------------------------------------------------------------

    def _conv_pack(self) -> str:
        """conv_pack(w, to, fields): the filters of every group, packed.

        w: rows of a matrix, in any strides; groups are side by side in a row.
        """
        t = Text()
        w, to = ArrayArgument(t, 0), ArrayArgument(t, 1)
        fields = ArrayArgument(t, 2).data
        f = Fields(t, fields)
        size, row, each = self.gemm.size, w.stride(2), self._packed(t, f)
        across = t.mul(t.ceil(f.outputs, self.gemm.panel), self.gemm.panel * size)

        def one(group: str) -> None:
            source = t.at(w.data, t.mul(t.mul(group, f.outputs), w.stride(1)))
            target = t.at(to.data, t.mul(group, each))

            def pack(k: str, depth: str) -> None:
                rows, there = t.at(source, t.mul(k, row)), t.at(target, t.mul(k, across))
                t.do(
                    f"call void @pack(ptr {rows}, i64 {row}, i64 {w.stride(1)}, ptr {there}, "
                    f"i64 {f.outputs}, i64 {depth})"
                )

            _slices(t, f, pack)

        t.loop(0, f.groups, 1, one)
        return built_in("conv_pack", t, to.object)

    def _packed(self, t: Text, f: Fields) -> str:
        """Bytes of a group's filter, as Gemm.packed_bytes has it."""
        panel = self.gemm.panel
        depth = t.add(t.mul(t.ceil(f.outputs, panel), f.depth), self.gemm.lanes)
        return t.mul(depth, panel * self.gemm.size)

    def _conv(self) -> str:
        """conv(x, w, z, fields, start, stop, left, right, ...): z at places start to stop.

        w: packed. left, right: which panels of the outputs of each group. What may follow is the
        function of a loop over places, of the type of `Loops`, which runs behind each block; bytes
        that it works in; and its arrays.
        """
        t, gemm = Text(), self.gemm
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        t.do(f"%fields = getelementptr i8, ptr {ArrayArgument(t, 3).data}, i64 0")
        start, stop, left, right = (number(t, i) for i in range(4, 8))
        f = Fields(t, "%fields")
        width, pixel = gemm.panel * gemm.size, t.mul(t.mul(f.outputs, f.groups), gemm.size)
        row = t.mul(t.ceil(f.outputs, gemm.panel), width)
        each = self._packed(t, f)
        behind = Behind(t, gemm)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        block = _PatchBlock(t, gemm, f, self._line)

        def part(group: str, m: str, rows: str) -> None:
            image = block.image(x.data, group)
            b = t.at(w.data, t.mul(group, each))
            c = t.at(t.at(z.data, t.mul(m, pixel)), t.mul(t.mul(group, f.outputs), gemm.size))

            def slice_of_depth(k: str, depth: str) -> None:
                a, stride = block.patches(image, m, rows, k, depth)
                slab = t.at(b, t.mul(k, row))

                def stripe(p: str) -> None:
                    before = t.mul(p, gemm.panel)
                    panel = t.at(slab, t.mul(p, t.mul(depth, width)))
                    given = (
                        f"ptr {a}, i64 {stride}, i64 {gemm.size}, ptr {panel}, i64 {width}, "
                        f"ptr {t.at(c, t.mul(before, gemm.size))}, i64 {pixel}, i64 {rows}, "
                        f"i64 {depth}"
                    )
                    cols = t.least(t.sub(f.outputs, before), gemm.panel)
                    gemm.stripes(t, given, cols, t(f"icmp sgt i64 {k}, 0"))

                t.loop(left, right, 1, stripe)

            _slices(t, f, slice_of_depth)

        def places(m: str) -> None:
            rows = t.least(t.sub(stop, m), f.block)
            block.start(x.data, m, rows)
            t.loop(0, f.groups, 1, lambda group: part(group, m, rows))
            behind.run(m, t.add(m, rows))

        t.loop(start, stop, f.block, places)
        block.free()
        behind.free()
        unlocked.stop()
        return built_in("conv", t, z.object)

    # --- the filter's gradient ----------------------------------------------------------------

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
        """conv_filter(x, dw, dz, fields, places, start, stop, work): slices of dw.

        Slice q of a group has the rows of dw from q times `slice` on; those from start to stop are
        made, group after group. Where there are several chunks of places, the sums of one are in
        work[0], which `settle` adds to dw. Before, dw and work[1] are 0.
        """
        t, gemm = Text(), self.gemm
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        t.do(f"%fields = getelementptr i8, ptr {ArrayArgument(t, 3).data}, i64 0")
        count, start, stop = (number(t, i) for i in range(4, 7))
        work = ArrayArgument(t, 7)
        f = Fields(t, "%fields")
        size = gemm.size
        pixel = t.mul(t.mul(f.outputs, f.groups), size)
        slices = t.div(t.add(f.depth, t.sub(f.slice, 1)), f.slice)
        several = t(f"icmp sgt i64 {count}, {f.chunk}")
        made = t.chosen(several, "ptr", work.data, w.data)
        lost = t.at(work.data, t.mul(f.depth, pixel))
        unlocked = Unlocked(t, "true")
        unlocked.start()
        block = _PatchBlock(t, gemm, f, self._line)
        panels = t.ceil(f.outputs, gemm.panel)

        def chunk(c: str) -> None:
            t.loop(start, stop, 1, lambda q: one(q, c, t.least(t.add(c, f.chunk), count)))

        def one(q: str, first: str, last: str) -> None:
            group = t.div(q, slices)
            k = t.mul(t(f"urem i64 {q}, {slices}"), f.slice)
            depth = t.least(t.sub(f.depth, k), f.slice)
            corner = t.mul(t.mul(group, f.outputs), size)
            below = t.add(t.mul(k, pixel), corner)

            def panel(p: str, act: Callable[[str, str], None]) -> None:
                before = t.mul(p, gemm.panel)
                act(t.mul(before, size), t.least(t.sub(f.outputs, before), gemm.panel))

            def places(m: str) -> None:
                rows = t.least(t.sub(last, m), f.block)
                block.start(x.data, m, rows)
                a, stride = block.patches(block.image(x.data, group), m, rows, k, depth)
                dz = t.at(z.data, t.add(t.mul(m, pixel), corner))
                begun = t(f"icmp ne i64 {m}, {first}")

                def summed(aside: str, cols: str) -> None:
                    given = (
                        f"ptr {a}, i64 {size}, i64 {stride}, ptr {t.at(dz, aside)}, i64 {pixel}, "
                        f"ptr {t.at(made, t.add(below, aside))}, i64 {pixel}, i64 {depth}, "
                        f"i64 {rows}"
                    )
                    gemm.stripes(t, given, cols, begun)

                t.loop(0, panels, 1, lambda p: panel(p, summed))

            def settled(aside: str, cols: str) -> None:
                there = t.add(below, aside)
                total, sums, rest = (t.at(base, there) for base in (w.data, made, lost))
                t.do(
                    f"call void @settle(ptr {total}, ptr {sums}, ptr {rest}, i64 {pixel}, "
                    f"i64 {depth}, i64 {cols})"
                )

            t.loop(first, last, f.block, places)
            t.when(several, lambda: t.loop(0, panels, 1, lambda p: panel(p, settled)))

        t.loop(0, count, f.chunk, chunk)
        block.free()
        unlocked.stop()
        return built_in("conv_filter", t, w.object)

    # --- the image's gradient, of few channels --------------------------------------------------

    def _conv_spread(self) -> str:
        """conv_spread(dz, w, dx, fields, start, stop): dx of examples start to stop, of one group.

        For each row of dz, what its places give to their windows is a product with the filters; it
        is added up in an image with borders. Windows that overlap are not added one after the
        other: each would wait for the one before. fields: of the convolution; w: packed by columns.
        """
        t, gemm = Text(), self.gemm
        z, w, x = (ArrayArgument(t, i) for i in range(3))
        f = Fields(t, ArrayArgument(t, 3).data)
        start, stop = number(t, 4), number(t, 5)
        size, width = gemm.size, gemm.panel * gemm.size
        pixel, line = t.mul(f.own, size), t.mul(t.mul(f.width, f.own), size)
        wide, places = t.mul(f.wide, pixel), t.mul(f.outputs, size)
        whole, row = t.mul(f.high, wide), t.mul(f.depth, size)
        panels, across = t.ceil(f.depth, gemm.panel), t.div(f.run, f.own)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        block, made = gemm.aligned(t, t.add(whole, t.mul(f.out_width, row)))
        total = t.at(made, t.mul(f.out_width, row))

        def products(source: str) -> None:
            def slice_of_depth(k: str) -> None:
                depth = t.least(t.sub(f.outputs, k), DEPTH)
                slab = t.at(w.data, t.mul(k, t.mul(panels, width)))

                def stripe(p: str) -> None:
                    before = t.mul(p, gemm.panel)
                    given = (
                        f"ptr {t.at(source, t.mul(k, size))}, i64 {places}, i64 {size}, "
                        f"ptr {t.at(slab, t.mul(p, t.mul(depth, width)))}, i64 {width}, "
                        f"ptr {t.at(made, t.mul(before, size))}, i64 {row}, i64 {f.out_width}, "
                        f"i64 {depth}"
                    )
                    cols = t.least(t.sub(f.depth, before), gemm.panel)
                    gemm.stripes(t, given, cols, t(f"icmp sgt i64 {k}, 0"))

                t.loop(0, panels, 1, stripe)

            t.loop(0, f.outputs, DEPTH, slice_of_depth)

        def spread(h: str, begin: str) -> None:
            r = t.mul(begin, t.mul(f.run, size))
            down = t.add(t.mul(h, f.down), t.mul(begin, f.spread_down))
            there = t.at(total, t.mul(down, wide))

            def place(at: str) -> None:
                source = t.at(t.at(made, t.mul(at, row)), r)
                target = t.at(there, t.mul(at, t.mul(f.right, pixel)))

                def vector(j: str) -> None:
                    mask = gemm.first(t, t.sub(f.run, j))
                    to = t.at(target, t.mul(j, size))
                    a, b = gemm.load(t, to, mask), gemm.load(t, t.at(source, t.mul(j, size)), mask)
                    gemm.store(t, t(f"fadd {gemm.vector} {a}, {b}"), to, mask)

                t.loop(0, f.run, gemm.lanes, vector)

            t.loop(0, across, 1, lambda first: t.loop(first, f.out_width, across, place))

        def example(n: str) -> None:
            t.do(f"call void @llvm.memset.p0.i64(ptr {total}, i8 0, i64 {whole}, i1 false)")
            source = t.at(z.data, t.mul(t.mul(t.mul(n, f.out_height), f.out_width), places))

            def given(h: str) -> None:
                products(t.at(source, t.mul(h, t.mul(f.out_width, places))))
                t.loop(0, t.div(f.depth, f.run), 1, lambda k: spread(h, k))

            t.loop(0, f.out_height, 1, given)
            inside = t.at(total, t.add(t.mul(f.top, wide), t.mul(f.left, pixel)))
            target = t.at(x.data, t.mul(t.mul(n, f.height), line))

            def taken(y: str) -> None:
                pair = f"ptr {t.at(target, t.mul(y, line))}, ptr {t.at(inside, t.mul(y, wide))}"
                t.do(f"call void @llvm.memcpy.p0.p0.i64({pair}, i64 {line}, i1 false)")

            t.loop(0, f.height, 1, taken)

        t.loop(start, stop, 1, example)
        t.do(f"call void @free(ptr {block})")
        unlocked.stop()
        return built_in("conv_spread", t, x.object)


class _RunCopies:
    """Copies of entries begin to stop of a run: whole vectors, and a masked one."""

    def __init__(self, t: Text, gemm: Gemm, begin: str, stop: str) -> None:
        self.t, self.gemm, self.begin, self.stop = t, gemm, begin, stop
        self.even = t.sub(stop, t(f"urem i64 {t.sub(stop, begin)}, {gemm.lanes}"))
        self.rest = gemm.first(t, t.sub(stop, self.even))
        self.more = t(f"icmp slt i64 {self.even}, {stop}")

    def copy(self, source: str, to: str, low: str, high: str) -> None:
        """to[begin:stop] = source[begin:stop], 0 for what is not from low to high."""
        t, gemm, bits = self.t, self.gemm, f"<{self.gemm.lanes} x i1>"

        def vector(j: str, mask: str | None) -> None:
            offset = t.mul(j, gemm.size)
            gemm.store(t, gemm.load(t, t.at(source, offset), mask), t.at(to, offset))

        def whole() -> None:
            t.loop(self.begin, self.even, gemm.lanes, lambda j: vector(j, None))
            t.when(self.more, lambda: vector(self.even, self.rest))

        def partly(j: str) -> None:
            inside, outside = (gemm.first(t, t.sub(n, j)) for n in (high, low))
            vector(j, t(f"select {bits} {outside}, {bits} zeroinitializer, {bits} {inside}"))

        starts = t(f"icmp sle i64 {low}, {self.begin}")
        inside = t(f"and i1 {starts}, {t(f'icmp sge i64 {high}, {self.stop}')}")
        t.when(inside, whole, lambda: t.loop(self.begin, self.stop, gemm.lanes, partly))


class _PatchBlock:
    """Patches of a block of places: see the modes."""

    def __init__(self, t: Text, gemm: Gemm, f: Fields, line: int) -> None:
        self.t, self.gemm, self.f, self.line = t, gemm, f, line
        modes = (GATHERED, PIXELS, BORDERED)
        self._gathered, self._pixels, self._bordered = (
            t(f"icmp eq i64 {f.mode}, {mode}") for mode in modes
        )
        self._pixel = t.mul(f.own, gemm.size)
        self._wide = t.mul(f.wide, self._pixel)
        self._whole = t.mul(f.high, self._wide)
        corners = t.mul(f.block, CORNER)
        borders = t.mul(self._whole, f.groups)
        room = t.chosen(self._gathered, "i64", t.add(t.mul(f.block, line), corners), borders)
        room = t.chosen(self._pixels, "i64", 0, room)
        self._memory, self._buffer = gemm.aligned(t, room)
        zeroed = f"call void @llvm.memset.p0.i64(ptr {self._buffer}, i8 0, i64 {room}, i1 false)"
        t.when(self._bordered, lambda: t.do(zeroed))
        self._corners = t.at(self._buffer, t.mul(f.block, line))
        self._row, self._example = t("alloca ptr"), t("alloca i64")
        t.do(f"store ptr {self._buffer}, ptr {self._row}")
        t.do(f"store i64 -1, ptr {self._example}")

    def start(self, x: str, m: str, rows: str) -> None:
        """The block from place m on."""
        given = f"ptr %fields, i64 {m}, i64 {rows}, ptr {self._corners}"
        corners = f"call void @corners({given})"
        self.t.when(self._gathered, lambda: self.t.do(corners))
        self.t.when(self._bordered, lambda: self._border(x, m))

    def _border(self, x: str, m: str) -> None:
        """Its row, in its example, which is copied where the block before was of another."""
        t, f = self.t, self.f
        row = t.div(m, f.out_width)
        n, h = t.div(row, f.out_height), t(f"urem i64 {row}, {f.out_height}")
        there = t.at(self._buffer, t.mul(t.mul(h, f.down), self._wide))
        t.do(f"store ptr {there}, ptr {self._row}")
        line = t.mul(f.width, self._pixel)
        rows = t.least(f.height, t.sub(f.high, f.top))
        size = t.mul(t.least(f.width, t.sub(f.wide, f.left)), self._pixel)
        example = t.mul(t.mul(n, f.height), line)

        def copy(group: str) -> None:
            source = t.at(self._apart(x, group), example)
            corner = t.add(t.mul(f.top, self._wide), t.mul(f.left, self._pixel))
            target = t.at(t.at(self._buffer, t.mul(group, self._whole)), corner)

            def one(y: str) -> None:
                pair = (
                    f"ptr {t.at(target, t.mul(y, self._wide))}, ptr {t.at(source, t.mul(y, line))}"
                )
                t.do(f"call void @llvm.memcpy.p0.p0.i64({pair}, i64 {size}, i1 false)")

            t.loop(0, rows, 1, one)

        def copies() -> None:
            t.loop(0, f.groups, 1, copy)
            t.do(f"store i64 {n}, ptr {self._example}")

        t.when(t(f"icmp ne i64 {t.load('i64', self._example)}, {n}"), copies)

    def _apart(self, x: str, group: str) -> str:
        return self.t.at(x, self.t.mul(group, self.t.mul(self.f.apart, self.gemm.size)))

    def image(self, x: str, group: str) -> str:
        """Where patches of a group are read: in its image, or in the row with borders."""
        t = self.t
        bordered = t.at(t.load("ptr", self._row), t.mul(group, self._whole))
        return t.chosen(self._bordered, "ptr", bordered, self._apart(x, group))

    def patches(self, image: str, m: str, rows: str, k: str, depth: str) -> tuple[str, str]:
        """Where numbers k to k + depth of its patches are, and the stride of these."""
        t, f = self.t, self.f
        given = (
            f"ptr {image}, ptr %fields, ptr {self._corners}, i64 {rows}, i64 {k}, i64 {depth}, "
            f"ptr {self._buffer}"
        )
        t.when(self._gathered, lambda: t.do(f"call void @gather({given})"))
        pixel = t.at(t.at(image, t.mul(m, self._pixel)), t.mul(k, self.gemm.size))
        r, rest = t.div(k, f.run), t(f"urem i64 {k}, {f.run}")
        below = t.mul(t.mul(t.div(r, f.columns), f.spread_down), self._wide)
        across = t.mul(t.mul(t(f"urem i64 {r}, {f.columns}"), f.spread_right), self._pixel)
        inside = t.at(image, t.add(t.add(below, across), t.mul(rest, self.gemm.size)))
        where = t.chosen(self._pixels, "ptr", pixel, inside)
        step = t.mul(t.chosen(self._bordered, "i64", f.right, 1), self._pixel)
        return (
            t.chosen(self._gathered, "ptr", self._buffer, where),
            t.chosen(self._gathered, "i64", self.line, step),
        )

    def free(self) -> None:
        """Give its memory back."""
        self.t.do(f"call void @free(ptr {self._memory})")


def _slices(t: Text, f: Fields, one: Callable[[str, str], None]) -> None:
    """one(k, depth) for the slices of a patch."""

    def stretch(start: str) -> None:
        stop = t.least(t.add(start, f.stretch), f.depth)
        t.loop(start, stop, f.slice, lambda k: one(k, t.least(t.sub(stop, k), f.slice)))

    t.loop(0, f.depth, f.stretch, stretch)


class Behind:
    """The loop behind blocks of a convolution, if there is one among the arguments."""

    FIRST = 8  # argument

    def __init__(self, t: Text, gemm: Gemm) -> None:
        self.t = t
        self._there = t(f"icmp sgt i64 %count, {self.FIRST}")
        address, room = (
            t.value_if(self._there, "i64", partial(number, t, at), "0")
            for at in (self.FIRST, self.FIRST + 1)
        )
        self._function = t(f"inttoptr i64 {address} to ptr")
        self._memory, self._workspace = gemm.aligned(t, room)
        t.do("%frame = alloca ptr, i64 %count")
        first = self.FIRST + 2

        def place(i: str) -> None:
            array = t.load("ptr", t.at("%args", t.mul(i, 8)))
            where = t.at("%frame", t.mul(t.sub(i, first), 8))
            t.do(f"store ptr {t.load('ptr', t.at(array, 16))}, ptr {where}")

        t.loop(first, "%count", 1, place)

    def run(self, start: str, stop: str) -> None:
        """From place start to stop."""
        given = f"ptr %frame, i64 {start}, i64 {stop}, ptr null, ptr {self._workspace}"
        self.t.when(self._there, lambda: self.t.do(f"call void {self._function}({given})"))

    def free(self) -> None:
        """Give its memory back."""
        self.t.do(f"call void @free(ptr {self._memory})")


def _most(t: Text, a: str | int, b: str | int) -> str:
    """max(a, b)"""
    return t(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")
