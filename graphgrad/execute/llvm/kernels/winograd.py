"""Convolutions of 3 x 3 in steps of 1 by minimal filtering, F(2 x 2, 3 x 3), as LLVM IR.

A tile of 2 x 2 outputs sees 4 x 4 pixels d, and takes 16 products for a channel where the window
takes 36 (Winograd, "Arithmetic complexity of computations", 1980; Lavin and Gray, "Fast algorithms
for convolutional neural networks", CVPR 2016, arXiv:1509.09308):

    z = A^T [sum over channels of (G w G^T) * (B^T d B)] A
    dw = G^T [sum over tiles of (B^T d B) * (A dz A^T)] G

Each of the 16 sums is a matrix product over the tiles of a block. An output depends on the pixels
of its own window only, and is 0 where these are; but its error is relative to the largest of them.
Where an output is not finite, those of its block and panel are computed from the definition: sums
of pixels may overflow, and infinities of a tile would cancel to NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain, product

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text, function
from .convolution import Behind, Fields
from .gemm import DEPTH, WIDE, Gemm

EDGE, STEP, TAPS = 4, 2, 3  # pixels along a tile, its outputs, and those of a window
PLANES = EDGE * EDGE
NAMES = "winograd", "winograd_filters", "winograd_gradient", "winograd_settle"
"""The functions for Python. Of their fields, `high` and `wide` are tiles of an example, down and
across, and `block` is how many rows of tiles are computed at a time."""

Grid = list[list[str]]
Matrix = Sequence[Sequence[float]]
IMAGE = (1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)
FILTER = (1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)
OUTPUT = (1, 1, 1, 0), (0, 1, -1, -1)
COTANGENT, WEIGHT = (tuple(zip(*matrix, strict=True)) for matrix in (OUTPUT, FILTER))
"""B^T, G, A^T, A and G^T."""


class Winograd:
    """The text for the dtype of a Gemm, beside the text of which it stands."""

    def __init__(self, gemm: Gemm) -> None:
        self.gemm = gemm
        self.width = gemm.panel * gemm.size  # bytes of a row of a panel

    def functions(self) -> tuple[str, ...]:
        """The definitions; those for Python are `NAMES`."""
        return (
            self._pixels(),
            self._outputs(),
            self._direct(),
            self._filters(),
            self._winograd(),
            self._cotangents(),
            self._gradient(),
            self._settle(),
        )

    # --- transforms of vectors ------------------------------------------------------------------

    def _both(self, t: Text, matrix: Matrix, grid: Grid) -> list[str]:
        """matrix grid matrix^T: its entries, row by row."""
        columns = [self._times(t, matrix, column) for column in zip(*grid, strict=True)]
        return [e for row in zip(*columns, strict=True) for e in self._times(t, matrix, row)]

    def _times(self, t: Text, matrix: Matrix, vectors: Sequence[str]) -> list[str]:
        return [self._sum(t, list(zip(row, vectors, strict=True))) for row in matrix]

    def _sum(self, t: Text, terms: list[tuple[float, str]]) -> str:
        """What is multiplied by the same number is added up first."""
        kind, parts = self.gemm.vector, []
        for size in sorted({abs(c) for c, _ in terms if c}):
            plus, minus = ([v for c, v in terms if c == signed] for signed in (size, -size))
            part = plus.pop(0) if plus else t(f"fneg {kind} {minus.pop(0)}")
            for sign, vectors in (("fadd", plus), ("fsub", minus)):
                for vector in vectors:
                    part = t(f"{sign} {kind} {part}, {vector}")
            parts.append(part if size == 1 else t(f"fmul {kind} {part}, {self._number(size)}"))
        return reduce(lambda a, b: t(f"fadd {kind} {a}, {b}"), parts)

    def _number(self, value: float) -> str:
        return f"<{', '.join([f'{self.gemm.scalar} {value}'] * self.gemm.lanes)}>"

    # --- tiles ----------------------------------------------------------------------------------

    def _tiles(self, t: Text, f: Fields, tile: Callable[[str, str, str, str], None]) -> None:
        """tile(number, example, y, x) for %rows rows of tiles from %first on; y, x: of outputs."""

        def row(r: str) -> None:
            at = t.add("%first", r)
            example, y = t.div(at, f.high), t.mul(t(f"urem i64 {at}, {f.high}"), STEP)
            before = t.mul(r, f.wide)

            def column(c: str) -> None:
                tile(t.add(before, c), example, y, t.mul(c, STEP))

            t.loop(0, f.wide, 1, column)

        t.loop(0, "%rows", 1, row)

    def _there(self, t: Text, starts: tuple[str, str], lengths: tuple[str, str], edge: int) -> Grid:
        """Which pixels of a square exist."""
        axes = [
            [t(f"icmp ult i64 {t.add(start, i)}, {length}") for i in range(edge)]
            for start, length in zip(starts, lengths, strict=True)
        ]
        return [[t(f"and i1 {a}, {b}") for b in axes[1]] for a in axes[0]]

    def _read(
        self, t: Text, where: str, steps: tuple[str, str], masks: Sequence[Sequence[str | None]]
    ) -> Grid:
        """The vectors of a square of pixels."""
        rows = [t.at(where, t.mul(steps[0], i)) for i in range(len(masks))]
        return [
            [self.gemm.load(t, t.at(at, t.mul(steps[1], j)), mask) for j, mask in enumerate(some)]
            for at, some in zip(rows, masks, strict=True)
        ]

    def _masks(self, t: Text, there: Grid, some: str) -> Grid:
        bits = f"<{self.gemm.lanes} x i1>"
        none = f"{bits} zeroinitializer"
        return [[t(f"select i1 {i}, {bits} {some}, {none}") for i in row] for row in there]

    def _pixels(self) -> str:
        """to[plane, tile, channel] = B^T d B"""
        t, gemm = Text(), self.gemm
        f = Fields(t, "%fields")
        pixel = t.mul(f.own, gemm.size)
        steps = t.mul(pixel, f.width), pixel
        even = t.sub(f.own, t(f"urem i64 {f.own}, {gemm.lanes}"))
        rest, more = gemm.first(t, t.sub(f.own, even)), t(f"icmp slt i64 {even}, {f.own}")

        def tile(at: str, example: str, y: str, x: str) -> None:
            y, x = t.sub(y, f.top), t.sub(x, f.left)
            there = self._there(t, (y, x), (f.height, f.width), EDGE)
            place = t.add(t.mul(t.add(t.mul(example, f.height), y), f.width), x)
            source, target = t.at("%x", t.mul(place, pixel)), t.at("%to", t.mul(at, "%line"))

            def vector(j: str, masks: Sequence[Sequence[str | None]]) -> None:
                offset = t.mul(j, gemm.size)
                grid = self._read(t, t.at(source, offset), steps, masks)
                made = self._both(t, IMAGE, grid)
                for plane, value in enumerate(made):
                    gemm.store(t, value, t.at(t.at(target, offset), t.mul("%plane", plane)))

            free: list[list[str | None]] = [[None] * EDGE] * EDGE

            def whole() -> None:
                t.loop(0, even, gemm.lanes, lambda j: vector(j, free))

            def partly() -> None:
                every = gemm.first(t, str(gemm.lanes))
                masks = self._masks(t, there, every)
                t.loop(0, even, gemm.lanes, lambda j: vector(j, masks))

            t.when(_all(t, there), whole, partly)
            t.when(more, lambda: vector(even, self._masks(t, there, rest)))

        self._tiles(t, f, tile)
        takes = "ptr %x, ptr %fields, i64 %first, i64 %rows, ptr %to, i64 %line, i64 %plane"
        return function("void", "pixels", takes, t)

    def _columns(
        self, t: Text, f: Fields, before: str, whole: str, there: Grid, act: Callable[..., None]
    ) -> None:
        """act(vector of the panel, masks) for a square of outputs from column `before` on."""
        left = t.sub(f.outputs, before)
        full = t(f"and i1 {whole}, {t(f'icmp sge i64 {left}, {self.gemm.panel}')}")

        def every() -> None:
            for v in range(WIDE):
                act(v, [[None] * STEP] * STEP)

        def some() -> None:
            for v in range(WIDE):
                columns = self.gemm.first(t, t.sub(left, v * self.gemm.lanes))
                act(v, self._masks(t, there, columns))

        t.when(full, every, some)

    def _outputs(self) -> str:
        """z[tile, panel] = A^T m A, and whether all of these are finite."""
        t, gemm = Text(), self.gemm
        f = Fields(t, "%fields")
        pixel = t.mul(f.outputs, gemm.size)
        step, before = gemm.lanes * gemm.size, t.mul("%panel", gemm.panel)
        total = t(f"alloca {gemm.vector}")  # of the outputs times 0
        gemm.store(t, "zeroinitializer", total)

        def tile(at: str, example: str, y: str, x: str) -> None:
            there = self._there(t, (y, x), (f.out_height, f.out_width), STEP)
            place = t.add(t.mul(t.add(t.mul(example, f.out_height), y), f.out_width), x)
            target = t.at("%z", t.add(t.mul(place, pixel), t.mul(before, gemm.size)))
            source = t.at("%m", t.mul(at, self.width))

            def vector(v: int, masks: Sequence[Sequence[str | None]]) -> None:
                planes = [
                    gemm.load(t, t.at(t.at(source, v * step), t.mul("%plane", i)))
                    for i in range(PLANES)
                ]
                square = [planes[i : i + EDGE] for i in range(0, PLANES, EDGE)]
                made = self._both(t, OUTPUT, square)
                sums = gemm.load(t, total)
                for (i, j), value in zip(product(range(STEP), repeat=2), made, strict=True):
                    row = t.at(t.at(target, v * step), t.mul(t.mul(pixel, f.out_width), i))
                    gemm.store(t, value, t.at(row, t.mul(pixel, j)), masks[i][j])
                    sums = gemm.fma(t, value, self._number(0.0), sums)
                gemm.store(t, sums, total)

            self._columns(t, f, before, _all(t, there), there, vector)

        self._tiles(t, f, tile)
        some = t(f"fcmp uno {gemm.vector} {gemm.load(t, total)}, zeroinitializer")
        bits = t(f"bitcast <{gemm.lanes} x i1> {some} to i{gemm.lanes}")
        finite = t(f"icmp eq i{gemm.lanes} {bits}, 0")
        takes = "ptr %m, i64 %plane, ptr %z, i64 %panel, ptr %fields, i64 %first, i64 %rows"
        return function("i1", "outputs", takes, t, finite)

    def _direct(self) -> str:
        """z[place, panel] by the definition. w: rows of %row bytes, tap by tap."""
        t, gemm = Text(), self.gemm
        f = Fields(t, "%fields")
        sum_at = t(f"alloca {gemm.vector}")

        def place(m: str) -> None:
            h, column = t.div(m, f.out_width), t(f"urem i64 {m}, {f.out_width}")
            example, row = t.div(h, f.out_height), t(f"urem i64 {h}, {f.out_height}")

            def vector(k: str) -> None:
                gemm.store(t, "zeroinitializer", sum_at)

                def tap(i: str) -> None:
                    y = t.sub(t.add(row, t.div(i, TAPS)), f.top)
                    x = t.sub(t.add(column, t(f"urem i64 {i}, {TAPS}")), f.left)
                    there = self._there(t, (y, x), (f.height, f.width), 1)[0][0]
                    pixel = t.add(t.mul(t.add(t.mul(example, f.height), y), f.width), x)
                    source = t.at("%x", t.mul(t.mul(pixel, f.own), gemm.size))

                    def channel(c: str) -> None:
                        at = t.at(source, t.mul(c, gemm.size))
                        value = t.value_if(
                            there, gemm.scalar, lambda: t.load(gemm.scalar, at), "0.0"
                        )
                        filters = t.at("%w", t.mul(t.add(t.mul(i, f.own), c), "%row"))
                        b = gemm.load(t, t.at(filters, t.mul(k, gemm.size)))
                        a = gemm.spread(t, gemm.scalar, value)
                        gemm.store(t, gemm.fma(t, a, b, gemm.load(t, sum_at)), sum_at)

                    t.loop(0, f.own, 1, channel)

                t.loop(0, TAPS * TAPS, 1, tap)
                to = t.at("%z", t.mul(t.add(t.mul(m, f.outputs), k), gemm.size))
                gemm.store(t, gemm.load(t, sum_at), to, gemm.first(t, t.sub(f.outputs, k)))

            left = t.mul("%panel", gemm.panel)
            t.loop(left, t.add(left, gemm.panel), gemm.lanes, vector)

        t.loop("%first", "%last", 1, place)
        takes = "ptr %x, ptr %w, i64 %row, ptr %z, i64 %panel, ptr %fields, i64 %first, i64 %last"
        return function("void", "direct", takes, t)

    def _filters(self) -> str:
        """winograd_filters(w, to, fields): G w G^T in panels, plane by plane; then w, in rows."""
        t, gemm = Text(), self.gemm
        w, to = ArrayArgument(t, 0), ArrayArgument(t, 1)
        f = Fields(t, ArrayArgument(t, 2).data)
        panels = t.ceil(f.outputs, gemm.panel)
        row = t.mul(panels, self.width)
        plane = t.mul(f.own, row)
        kept = t.at(to.data, t.mul(plane, PLANES))
        line = t.mul(f.outputs, gemm.size)
        tap = t.mul(line, f.own)

        def panel(c: str, p: str) -> None:
            source = t.at(w.data, t.add(t.mul(c, line), t.mul(p, self.width)))
            target = t.at(to.data, t.mul(t.add(t.mul(p, f.own), c), self.width))
            there = t.at(kept, t.add(t.mul(c, row), t.mul(p, self.width)))
            for v in range(WIDE):
                before = t.add(t.mul(p, gemm.panel), v * gemm.lanes)
                mask = gemm.first(t, t.sub(f.outputs, before))
                offset = v * gemm.lanes * gemm.size
                masks = [[mask] * TAPS] * TAPS
                steps = t.mul(tap, TAPS), tap
                grid = self._read(t, t.at(source, offset), steps, masks)
                for i, value in enumerate(self._both(t, FILTER, grid)):
                    gemm.store(t, value, t.at(t.at(target, offset), t.mul(plane, i)))
                for i, value in enumerate(chain.from_iterable(grid)):
                    gemm.store(t, value, t.at(t.at(there, offset), t.mul(plane, i)))

        t.loop(0, f.own, 1, lambda c: t.loop(0, panels, 1, lambda p: panel(c, p)))
        return built_in("winograd_filters", t, to.object)

    # --- the convolution ------------------------------------------------------------------------

    def _line(self, t: Text, f: Fields) -> str:
        """Bytes of the channels of a tile in a plane."""
        whole = t.mul(t.ceil(f.own, self.gemm.lanes), self.gemm.lanes)
        return t.mul(t.add(whole, self.gemm.lanes), self.gemm.size)

    def _winograd(self) -> str:
        """winograd(x, w, z, fields, start, stop, left, right, ...): z of rows of tiles.

        start, stop: of these rows; w: of winograd_filters; the rest as for conv.
        """
        t, gemm = Text(), self.gemm
        x, w, z = (ArrayArgument(t, i) for i in range(3))
        fields = ArrayArgument(t, 3).data
        start, stop, left, right = (number(t, i) for i in range(4, 8))
        f = Fields(t, fields)
        row = t.mul(t.ceil(f.outputs, gemm.panel), self.width)
        filters = t.mul(f.own, row)
        tiles, line = t.mul(f.block, f.wide), self._line(t, f)
        plane, result = t.mul(tiles, line), t.mul(tiles, self.width)
        kept = t.at(w.data, t.mul(filters, PLANES))
        behind = Behind(t, gemm)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        memory, pixels = gemm.aligned(t, t.mul(t.add(plane, result), PLANES))
        made = t.at(pixels, t.mul(plane, PLANES))

        def block(r: str) -> None:
            rows = t.least(t.sub(stop, r), f.block)
            count = t.mul(rows, f.wide)
            where = f"ptr {fields}, i64 {r}, i64 {rows}"
            t.do(f"call void @pixels(ptr {x.data}, {where}, ptr {pixels}, i64 {line}, i64 {plane})")

            def product_of(i: str, p: str, k: str) -> None:
                depth = t.least(t.sub(f.own, k), DEPTH)
                a = t.at(pixels, t.add(t.mul(i, plane), t.mul(k, gemm.size)))
                rows_before = t.add(t.mul(p, f.own), k)
                b = t.at(w.data, t.add(t.mul(i, filters), t.mul(rows_before, self.width)))
                given = (
                    f"ptr {a}, i64 {line}, i64 {gemm.size}, ptr {b}, i64 {self.width}, "
                    f"ptr {t.at(made, t.mul(i, result))}, i64 {self.width}, i64 {count}, "
                    f"i64 {depth}"
                )
                gemm.stripes(t, given, str(gemm.panel), t(f"icmp sgt i64 {k}, 0"))

            first, last = self._place(t, f, r), self._place(t, f, t.add(r, rows))
            places = f"ptr {fields}, i64 {first}, i64 {last}"

            def panel(p: str) -> None:
                def plane_of(i: str) -> None:
                    t.loop(0, f.own, DEPTH, lambda k: product_of(i, p, k))

                t.loop(0, PLANES, 1, plane_of)
                to = f"ptr {z.data}, i64 {p}"
                finite = t(f"call i1 @outputs(ptr {made}, i64 {result}, {to}, {where})")
                again = f"call void @direct(ptr {x.data}, ptr {kept}, i64 {row}, {to}, {places})"
                t.when(finite, lambda: None, lambda: t.do(again))

            t.loop(left, right, 1, panel)
            behind.run(first, last)

        t.loop(start, stop, f.block, block)
        t.do(f"call void @free(ptr {memory})")
        behind.free()
        unlocked.stop()
        return built_in("winograd", t, z.object)

    def _place(self, t: Text, f: Fields, r: str) -> str:
        """The first output of a row of tiles."""
        y = t.mul(t(f"urem i64 {r}, {f.high}"), STEP)
        return t.mul(t.add(t.mul(t.div(r, f.high), f.out_height), y), f.out_width)

    # --- the filter's gradient ------------------------------------------------------------------

    def _cotangents(self) -> str:
        """to[plane, panel, tile] = A dz A^T"""
        t, gemm = Text(), self.gemm
        f = Fields(t, "%fields")
        pixel, step = t.mul(f.outputs, gemm.size), gemm.lanes * gemm.size
        panels = t.ceil(f.outputs, gemm.panel)
        each = t.mul("%tiles", self.width)
        plane = t.mul(panels, each)

        def tile(at: str, example: str, y: str, x: str) -> None:
            there = self._there(t, (y, x), (f.out_height, f.out_width), STEP)
            whole = _all(t, there)
            place = t.add(t.mul(t.add(t.mul(example, f.out_height), y), f.out_width), x)
            source = t.at("%z", t.mul(place, pixel))
            target = t.at("%to", t.mul(at, self.width))

            def panel(p: str) -> None:
                before = t.mul(p, gemm.panel)
                corner, there_to = (
                    t.at(source, t.mul(before, gemm.size)),
                    t.at(target, t.mul(p, each)),
                )

                def vector(v: int, masks: Sequence[Sequence[str | None]]) -> None:
                    steps = t.mul(pixel, f.out_width), pixel
                    grid = self._read(t, t.at(corner, v * step), steps, masks)
                    for i, value in enumerate(self._both(t, COTANGENT, grid)):
                        gemm.store(t, value, t.at(t.at(there_to, v * step), t.mul(plane, i)))

                self._columns(t, f, before, whole, there, vector)

            t.loop(0, panels, 1, panel)

        self._tiles(t, f, tile)
        takes = "ptr %z, ptr %fields, i64 %first, i64 %rows, ptr %to, i64 %tiles"
        return function("void", "cotangents", takes, t)

    def _gradient(self) -> str:
        """winograd_gradient(x, dz, total, fields, start, stop): total += the sums over tiles.

        total: plane by plane, of rows for channels, as long as panels are.
        """
        t, gemm = Text(), self.gemm
        x, z, total = (ArrayArgument(t, i) for i in range(3))
        fields = ArrayArgument(t, 3).data
        start, stop = number(t, 4), number(t, 5)
        f = Fields(t, fields)
        panels = t.ceil(f.outputs, gemm.panel)
        row = t.mul(panels, self.width)
        tiles, line = t.mul(f.block, f.wide), self._line(t, f)
        plane, each = t.mul(tiles, line), t.mul(tiles, self.width)
        unlocked = Unlocked(t, "true")
        unlocked.start()
        room = t.mul(t.add(plane, t.mul(panels, each)), PLANES)
        memory, pixels = gemm.aligned(t, room)
        cotangents = t.at(pixels, t.mul(plane, PLANES))

        def block(r: str) -> None:
            rows = t.least(t.sub(stop, r), f.block)
            where = f"ptr {fields}, i64 {r}, i64 {rows}"
            t.do(f"call void @pixels(ptr {x.data}, {where}, ptr {pixels}, i64 {line}, i64 {plane})")
            t.do(f"call void @cotangents(ptr {z.data}, {where}, ptr {cotangents}, i64 {tiles})")

            def product_of(i: str, p: str) -> None:
                b = t.at(cotangents, t.mul(t.add(t.mul(i, panels), p), each))
                to = t.add(t.mul(t.mul(i, f.own), row), t.mul(p, self.width))
                given = (
                    f"ptr {t.at(pixels, t.mul(i, plane))}, i64 {gemm.size}, i64 {line}, ptr {b}, "
                    f"i64 {self.width}, ptr {t.at(total.data, to)}, i64 {row}, i64 {f.own}, "
                    f"i64 {t.mul(rows, f.wide)}"
                )
                gemm.stripes(t, given, str(gemm.panel), "true")

            t.loop(0, PLANES, 1, lambda i: t.loop(0, panels, 1, lambda p: product_of(i, p)))

        t.loop(start, stop, f.block, block)
        t.do(f"call void @free(ptr {memory})")
        unlocked.stop()
        return built_in("winograd_gradient", t, total.object)

    def _settle(self) -> str:
        """winograd_settle(sums, dw, fields, count): dw = G^T (sums[0] + sums[1] + ...) G"""
        t, gemm = Text(), self.gemm
        sums, w = ArrayArgument(t, 0), ArrayArgument(t, 1)
        f, count = Fields(t, ArrayArgument(t, 2).data), number(t, 3)
        panels = t.ceil(f.outputs, gemm.panel)
        row, line = t.mul(panels, self.width), t.mul(f.outputs, gemm.size)
        plane, tap = t.mul(f.own, row), t.mul(f.own, line)
        each = t.mul(plane, PLANES)
        planes = [t(f"alloca {gemm.vector}") for _ in range(PLANES)]

        def vector(c: str, k: str) -> None:
            source = t.at(sums.data, t.add(t.mul(c, row), t.mul(k, gemm.size)))
            for at in planes:
                gemm.store(t, "zeroinitializer", at)

            def part(i: str) -> None:
                of_part = t.at(source, t.mul(i, each))
                for j, at in enumerate(planes):
                    more = gemm.load(t, t.at(of_part, t.mul(plane, j)))
                    gemm.store(t, t(f"fadd {gemm.vector} {gemm.load(t, at)}, {more}"), at)

            t.loop(0, count, 1, part)
            total = [gemm.load(t, at) for at in planes]
            made = self._both(t, WEIGHT, [total[i : i + EDGE] for i in range(0, PLANES, EDGE)])
            target = t.at(w.data, t.add(t.mul(c, line), t.mul(k, gemm.size)))
            mask = gemm.first(t, t.sub(f.outputs, k))
            for j, value in enumerate(made):
                gemm.store(t, value, t.at(target, t.mul(tap, j)), mask)

        t.loop(0, f.own, 1, lambda c: t.loop(0, f.outputs, gemm.lanes, lambda k: vector(c, k)))
        return built_in("winograd_settle", t, w.object)


def _all(t: Text, there: Grid) -> str:
    """Whether all hold: the corners do."""
    return t(f"and i1 {there[0][0]}, {there[-1][-1]}")
