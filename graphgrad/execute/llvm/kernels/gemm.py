"""Matrix products as LLVM IR: one function per dtype for every shape, stride and stack.

The loops are those of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication",
ACM TOMS 34(3), 2008): B is packed into panels as wide as a tile of C; a tile of C stays in
registers while one pass over the shared axis feeds it; A is read where it lies, unless it is turned
and deep: its columns are then packed tile by tile. A tile is `rows` by WIDE vectors. What is left
at the edges is done by lower tiles and by masked vectors.

    C[i, j] = sum over k of A[i, k] B[k, j]          any strides of A and B

The entries of a row of C are adjacent. Each is a sum of chains of DEPTH fused multiply-adds in the
order of k, whatever the tiles are and however many threads share the rows: one chain for all of a
deep product would be up to 20 times less exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..emit.arrays import TAKES, ArrayArgument, Unlocked, built_in
from ..emit.text import Text, function

WIDE = 2  # vectors across a tile
DEPTH = (
    256  # of the shared axis: a panel of B this deep stays near, a sum this long is exact enough
)
BLOCK = 240  # rows of A that stay in the second-level cache
DIRECT = 64, 32  # rows of C up to which packing B does not pay; where its rows share cache sets
SETS = 4096  # bytes between rows of which a first-level cache has place for few lines
TURNED = 64  # of the shared axis, from which on packing a turned A pays
LINE, NEAR = 64, 2  # bytes of a cache line; the second-level cache, as LLVM has it
PACKED = -(1 << 63)  # in the place of a stride: the matrix is packed
FREE = 1 << 21  # multiplications from which on the interpreter lock is given back

_TILE = (
    "ptr %a, i64 %rsa, i64 %csa, ptr %b, i64 %rsb, ptr %c, i64 %rsc, i64 %depth, i64 %cols, "
    "i1 %more"
)
_STRIPE = _TILE.replace("i64 %depth", "i64 %rows, i64 %depth")
_PACK_ROWS = "ptr %b, i64 %rsb, ptr %to, i64 %depth, i64 %cols"
_PACK = "ptr %b, i64 %rsb, i64 %csb, ptr %to, i64 %cols, i64 %depth"
_SHAPES = ((WIDE, False), (WIDE, True), (1, False), (1, True))  # vectors across, and whether masked


class Gemm:
    """The text for one dtype, "float" or "double", and one width of vectors in bits."""

    def __init__(self, scalar: str, bits: int) -> None:
        self.scalar = scalar
        self.size = 4 if scalar == "float" else 8
        self.lanes = bits // 8 // self.size
        self.panel = WIDE * self.lanes
        self.heights = {512: (12, 8, 4, 2, 1), 256: (6, 4, 2, 1)}.get(bits, (4, 2, 1))
        self.vector = f"<{self.lanes} x {scalar}>"
        self._mask = f"<{self.lanes} x i1>"
        self._kind = f"v{self.lanes}f{8 * self.size}"

    def declarations(self) -> tuple[str, ...]:
        """What the text calls."""
        v, m, kind = self.vector, self._mask, self._kind
        return (
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {v} @llvm.fma.{kind}({v}, {v}, {v})",
            f"declare {v} @llvm.masked.load.{kind}.p0(ptr, i32, {m}, {v})",
            f"declare void @llvm.masked.store.{kind}.p0({v}, ptr, i32, {m})",
        )

    def functions(self) -> tuple[str, ...]:
        """The definitions that everything stands on."""
        return (
            self._pack_rows(),
            self._pack_columns(),
            self._pack_tiles(),
            *(self._tile(height, *shape) for height in self.heights for shape in _SHAPES),
            *(self._stripe(*shape) for shape in _SHAPES),
            self._pack(),
            self._gemm(),
        )

    def shared(self) -> dict[str, str]:
        """Declarations of the functions that convolutions stand on, by name."""
        parameters = {_name("stripe", *shape): _STRIPE for shape in _SHAPES} | {"pack": _PACK}
        return {name: f"declare void @{name}({takes})" for name, takes in parameters.items()}

    def entries(self) -> tuple[str, ...]:
        """The functions for Python, called as `entry_name` says."""
        flags = [(a, b) for a in (False, True) for b in (False, True)]
        return self._matmul(), *[self._entry(a, b) for a, b in flags]

    # --- vectors ------------------------------------------------------------------------------

    def load(self, t: Text, where: str, mask: str | None = None) -> str:
        """The vector at an address; 0 where the mask does not hold, which is not read."""
        if mask is None:
            return t(f"load {self.vector}, ptr {where}, align {self.size}")
        return t(
            f"call {self.vector} @llvm.masked.load.{self._kind}.p0(ptr {where}, i32 {self.size}, "
            f"{self._mask} {mask}, {self.vector} zeroinitializer)"
        )

    def store(self, t: Text, value: str, where: str, mask: str | None = None) -> None:
        """Write a vector where the mask holds."""
        if mask is None:
            t.do(f"store {self.vector} {value}, ptr {where}, align {self.size}")
            return
        t.do(
            f"call void @llvm.masked.store.{self._kind}.p0({self.vector} {value}, ptr {where}, "
            f"i32 {self.size}, {self._mask} {mask})"
        )

    def fma(self, t: Text, a: str, b: str, c: str) -> str:
        """a b + c, rounded once."""
        v = self.vector
        return t(f"call {v} @llvm.fma.{self._kind}({v} {a}, {v} {b}, {v} {c})")

    def spread(self, t: Text, kind: str, value: str) -> str:
        """A vector of one value."""
        vector = f"<{self.lanes} x {kind}>"
        one = t(f"insertelement {vector} poison, {kind} {value}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return t(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    def first(self, t: Text, count: str) -> str:
        """The mask of the first `count` lanes."""
        steps = ", ".join(f"i64 {i}" for i in range(self.lanes))
        return t(f"icmp slt <{self.lanes} x i64> <{steps}>, {self.spread(t, 'i64', count)}")

    # --- packing ------------------------------------------------------------------------------

    def _pack_rows(self) -> str:
        """panel[k, :cols] = B[k, :cols], where the entries of a row are adjacent."""
        t = Text()
        step = self.lanes * self.size
        masks = [self.first(t, t.sub("%cols", j * self.lanes)) for j in range(WIDE)]

        def row(k: str) -> None:
            source, target = t.at("%b", t.mul(k, "%rsb")), t.at("%to", t.mul(k, WIDE * step))
            for j, mask in enumerate(masks):
                self.store(t, self.load(t, t.at(source, j * step), mask), t.at(target, j * step))

        t.loop(0, "%depth", 1, row)
        return function("void", "pack_rows", _PACK_ROWS, t)

    def _pack_columns(self) -> str:
        """panel[k, :cols] = B[k, :cols], any strides; square by square where columns are adjacent.

        The last squares may write up to a square's height below the panel.
        """
        t = Text()
        near = t(f"icmp eq i64 %rsb, {self.size}")
        t.when(near, lambda: self._by_squares(t), lambda: self._one_by_one(t))
        takes = "ptr %b, i64 %rsb, i64 %csb, ptr %to, i64 %depth, i64 %cols"
        return function("void", "pack_columns", takes, t)

    def _by_squares(self, t: Text) -> None:
        def square(j: str, k: str) -> None:
            left = t.mul(j, self.lanes)
            mask = self.first(t, t.sub("%depth", k))
            columns = []
            for place in range(self.lanes):
                column = t.add(left, place)
                there = t(f"icmp slt i64 {column}, %cols")
                start = t.at("%b", t.mul(t.chosen(there, "i64", column, 0), "%csb"))
                columns.append(self.load(t, t.at(start, t.mul(k, self.size)), mask))
            corner = t.at("%to", t.mul(left, self.size))
            for place, row in enumerate(self._transposed(t, columns)):
                below = t.mul(t.add(k, place), self.panel * self.size)
                self.store(t, row, t.at(corner, below))

        t.loop(0, "%depth", self.lanes, lambda k: t.loop(0, WIDE, 1, lambda j: square(j, k)))

    def _one_by_one(self, t: Text) -> None:
        def entry(k: str, j: str) -> None:
            value = t.load(self.scalar, t.at(t.at("%b", t.mul(k, "%rsb")), t.mul(j, "%csb")))
            target = t.at("%to", t.mul(t.add(t.mul(k, self.panel), j), self.size))
            t.do(f"store {self.scalar} {value}, ptr {target}")

        t.loop(0, "%depth", 1, lambda k: t.loop(0, "%cols", 1, lambda j: entry(k, j)))

    def _transposed(self, t: Text, rows: list[str]) -> list[str]:
        """Columns for rows: log2(lanes) rounds, in each of which pairs exchange halves."""
        n, half = self.lanes, 1
        while half < n:
            made = list(rows)
            for i in range(n):
                if i & half:
                    continue
                low = [c if not c & half else (c ^ half) + n for c in range(n)]
                high = [c | half if not c & half else c + n for c in range(n)]
                for place, picks in ((i, low), (i | half, high)):
                    order = ", ".join(f"i32 {p}" for p in picks)
                    made[place] = t(
                        f"shufflevector {self.vector} {rows[i]}, {self.vector} {rows[i | half]}, "
                        f"<{n} x i32> <{order}>"
                    )
            rows, half = made, 2 * half
        return rows

    def _pack_tiles(self) -> str:
        """What a tile reads of A, k by k, and one tile after the other; rows of A are adjacent."""
        t = Text()

        def pack(i: str, height: int) -> None:
            source = t.at("%a", t.mul(i, self.size))
            target = t.at("%to", t.mul(t.mul(i, "%depth"), self.size))
            rows = f"<{height} x {self.scalar}>"

            def one(k: str) -> None:
                value = t(f"load {rows}, ptr {t.at(source, t.mul(k, '%csa'))}, align {self.size}")
                where = t.at(target, t.mul(k, height * self.size))
                t.do(f"store {rows} {value}, ptr {where}, align {self.size}")

            t.loop(0, "%depth", 1, one)

        self._by_heights(t, pack)
        takes = "ptr %a, i64 %csa, ptr %to, i64 %rows, i64 %depth"
        return function("void", "pack_tiles", takes, t)

    def _by_heights(self, t: Text, act: Callable[[str, int], None]) -> None:
        """act(first row, height) for the tiles over %rows rows, the highest first."""
        done: str | int = 0
        for height in self.heights:
            stop = t.add(done, t.mul(t.div(t.sub("%rows", done), height), height))

            def tile(i: str, height: int = height) -> None:
                act(i, height)

            t.loop(done, stop, height, tile)
            done = stop

    # --- tiles --------------------------------------------------------------------------------

    def _tile(self, height: int, wide: int, masked: bool) -> str:
        """C[:height, :cols] = A B, or += A B where `more`; depth is at least 1."""
        t = Text()
        step = self.lanes * self.size
        masks: list[str | None] = [None] * wide
        if masked:
            masks[-1] = self.first(t, t.sub("%cols", (wide - 1) * self.lanes))
        rows = [t.at("%c", t.mul(i, "%rsc")) for i in range(height)]
        places = [(t.at(row, j * step), masks[j]) for row in rows for j in range(wide)]
        bases = [t.at("%a", t.mul(i, "%rsa")) for i in range(0, height, 3)]  # x86 adds 1 or 2 rows
        self._accumulate(t, height, bases, masks)

        def added(n: int) -> str:
            return t(f"fadd {self.vector} {self.load(t, *places[n])}, %sum{n}.next")

        def finish(value: Callable[[int], str]) -> None:
            for n, place in enumerate(places):
                self.store(t, value(n), *place)

        t.when("%more", lambda: finish(added), lambda: finish("%sum{}.next".format))
        return function("void", _name("tile", height, wide, masked), _TILE, t)

    def _accumulate(
        self, t: Text, height: int, bases: Sequence[str], masks: Sequence[str | None]
    ) -> None:
        """%sum{n}.next = what A B adds up to in each register n of a tile, row by row of B.

        The panel behind that of B is fetched meanwhile.

        bases: where every third row of A is; masks: of the registers side by side.
        """
        v, step, wide = self.vector, self.lanes * self.size, len(masks)
        t.do("%ahead = mul i64 %depth, %rsb")
        t.do("br label %ready")
        t.label("ready")
        t.do("br label %deeper")
        t.label("deeper")
        t.do("%k = phi i64 [0, %ready], [%k.next, %deeper]")
        t.do("%row = phi ptr [%b, %ready], [%row.next, %deeper]")
        for g, base in enumerate(bases):
            t.do(f"%a{g} = phi ptr [{base}, %ready], [%a{g}.next, %deeper]")
        for n in range(height * wide):
            t.do(f"%sum{n} = phi {v} [zeroinitializer, %ready], [%sum{n}.next, %deeper]")
        b = [self.load(t, t.at("%row", j * step), mask) for j, mask in enumerate(masks)]
        for line in range(0, wide * step, LINE):
            where = t.at(t.at("%row", "%ahead"), line)
            t.do(f"call void @llvm.prefetch.p0(ptr {where}, i32 0, i32 {NEAR}, i32 1)")
        for i in range(height):
            where = t.at(f"%a{i // 3}", t.mul(i % 3, "%rsa"))
            a = self.spread(t, self.scalar, t.load(self.scalar, where))
            for j in range(wide):
                n = i * wide + j
                added = f"{v} {a}, {v} {b[j]}, {v} %sum{n}"
                t.do(f"%sum{n}.next = call {v} @llvm.fma.{self._kind}({added})")
        t.do("%row.next = getelementptr i8, ptr %row, i64 %rsb")
        for g in range(len(bases)):
            t.do(f"%a{g}.next = getelementptr i8, ptr %a{g}, i64 %csa")
        t.do("%k.next = add i64 %k, 1")
        t.do("%k.more = icmp slt i64 %k.next, %depth")
        t.do("br i1 %k.more, label %deeper, label %finish")
        t.label("finish")

    def _stripe(self, wide: int, masked: bool) -> str:
        """C[:rows, :cols] = A B or += A B, at most a panel wide: the highest tiles first."""
        t = Text()
        packed = t(f"icmp eq i64 %csa, {PACKED}")
        step = t.chosen(packed, "i64", t.mul("%depth", self.size), "%rsa")

        def tile(i: str, height: int) -> None:
            a, c = t.at("%a", t.mul(i, step)), t.at("%c", t.mul(i, "%rsc"))
            csa = t.chosen(packed, "i64", height * self.size, "%csa")
            given = _TILE.replace("%a,", f"{a},").replace("%c,", f"{c},").replace("%csa", csa)
            t.do(f"call void @{_name('tile', height, wide, masked)}({given})")

        self._by_heights(t, tile)
        return function("void", _name("stripe", wide, masked), _STRIPE, t, internal=False)

    def stripes(self, t: Text, given: str, cols: str, more: str) -> None:
        """Call the stripe for `cols` columns, at most a panel; given: its arguments before them."""

        def call(wide: int, masked: bool) -> Callable[[], None]:
            name = _name("stripe", wide, masked)
            return lambda: t.do(f"call void @{name}({given}, i64 {cols}, i1 {more})")

        full = t(f"icmp eq i64 {cols}, {self.panel}")
        narrow = t(f"icmp sle i64 {cols}, {self.lanes}")

        def one_vector() -> None:
            whole = t(f"icmp eq i64 {cols}, {self.lanes}")
            t.when(whole, call(1, False), call(1, True))

        def edge() -> None:
            t.when(narrow, one_vector, call(WIDE, True))

        t.when(full, call(WIDE, False), edge)

    # --- the product --------------------------------------------------------------------------

    def aligned(self, t: Text, room: str) -> tuple[str, str]:
        """Memory for packing: what is to be freed, and where a cache line starts in it."""
        slack = 64 + self.lanes * self.panel * self.size
        block = t(f"call ptr @malloc(i64 {t.add(room, slack)})")
        address = t.add(t(f"ptrtoint ptr {block} to i64"), 63)
        return block, t(f"inttoptr i64 {t(f'and i64 {address}, -64')} to ptr")

    def packed_bytes(self, depth: int, cols: int) -> int:
        """Bytes of a packed B, and of what is written behind it."""
        return (-(-cols // self.panel) * depth + self.lanes) * self.panel * self.size

    def _pack(self) -> str:
        """B packed for products to come, of which PACKED in the place of its stride says so."""
        t = Text()
        near = t(f"icmp eq i64 %csb, {self.size}")
        panels = t.ceil("%cols", self.panel)
        row = t.mul(panels, self.panel * self.size)

        def slice_of_depth(k: str) -> None:
            depth = t.least(t.sub("%depth", k), DEPTH)
            b, slab = t.at("%b", t.mul(k, "%rsb")), t.at("%to", t.mul(k, row))
            t.loop(0, panels, 1, lambda p: self._packed(t, near, b, p, slab, depth))

        t.loop(0, "%depth", DEPTH, slice_of_depth)
        return function("void", "pack", _PACK, t, internal=False)

    def _gemm(self) -> str:
        t = Text()
        width = self.panel * self.size
        near = t(f"icmp eq i64 %csb, {self.size}")
        turned = t(f"and i1 {t(f'icmp eq i64 %rsa, {self.size}')}, {self._deep(t)}")
        shared = t(f"icmp eq i64 {t(f'and i64 %rsb, {SETS - 1}')}, 0")
        most = t.chosen(shared, "i64", *reversed(DIRECT))
        low = t(f"icmp sle i64 %rows, {t.chosen(turned, 'i64', 0, most)}")
        direct = t(f"and i1 {near}, {low}")
        packed = t(f"icmp eq i64 %csb, {PACKED}")
        there = t(f"or i1 {direct}, {packed}")
        panels = t.ceil("%cols", self.panel)
        row = t.mul(panels, width)
        step = t.chosen(packed, "i64", row, "%rsb")
        panels_of_b = t.chosen(there, "i64", 0, t.mul(row, t.least("%depth", DEPTH)))
        tiles = t.mul(t.mul(t.least("%rows", BLOCK), t.least("%depth", DEPTH)), self.size)
        tiles = t.chosen(turned, "i64", tiles, 0)
        block, slab = self.aligned(t, t.add(panels_of_b, tiles))
        spare = t.at(slab, t.add(panels_of_b, self.lanes * width))

        def slice_of_depth(k: str) -> None:
            depth = t.least(t.sub("%depth", k), DEPTH)
            b = t.at("%b", t.mul(k, step))

            def pack() -> None:
                t.loop(0, panels, 1, lambda p: self._packed(t, near, b, p, slab, depth))

            t.when(there, lambda: None, pack)
            self._blocks(
                t,
                a=t.at("%a", t.mul(k, "%csa")),
                turned=turned,
                spare=spare,
                b=t.chosen(there, "ptr", b, slab),
                rsb=t.chosen(direct, "i64", "%rsb", width),
                panel=t.chosen(direct, "i64", width, t.mul(depth, width)),
                panels=panels,
                depth=depth,
                more=t(f"icmp sgt i64 {k}, 0"),
            )

        t.loop(0, "%depth", DEPTH, slice_of_depth)
        t.do(f"call void @free(ptr {block})")
        takes = (
            "ptr %a, i64 %rsa, i64 %csa, ptr %b, i64 %rsb, i64 %csb, ptr %c, i64 %rsc, i64 %rows, "
            "i64 %cols, i64 %depth"
        )
        return function("void", "gemm", takes, t, internal=False)

    def _deep(self, t: Text) -> str:
        """Whether packing A pays: it is read for several panels, and in long columns."""
        wide, deep = (
            t(f"icmp sge i64 {n}, {least}")
            for n, least in (("%cols", 2 * self.panel), ("%depth", TURNED))
        )
        return t(f"and i1 {wide}, {deep}")

    def _packed(self, t: Text, near: str, b: str, p: str, slab: str, depth: str) -> None:
        """Panel p of this slice of B, into its place in the slab."""
        left = t.mul(p, self.panel)
        source = t.at(b, t.mul(left, "%csb"))
        target = t.at(slab, t.mul(p, t.mul(depth, self.panel * self.size)))
        end = f"ptr {target}, i64 {depth}, i64 {t.least(t.sub('%cols', left), self.panel)}"
        t.when(
            near,
            lambda: t.do(f"call void @pack_rows(ptr {source}, i64 %rsb, {end})"),
            lambda: t.do(f"call void @pack_columns(ptr {source}, i64 %rsb, i64 %csb, {end})"),
        )

    def _blocks(
        self,
        t: Text,
        *,
        a: str,
        turned: str,
        spare: str,
        b: str,
        rsb: str,
        panel: str,
        panels: str,
        depth: str,
        more: str,
    ) -> None:
        """One slice of the shared axis, a block of A's rows at a time."""

        def block(i: str) -> None:
            rows = t.least(t.sub("%rows", i), BLOCK)
            a_i, c_i = t.at(a, t.mul(i, "%rsa")), t.at("%c", t.mul(i, "%rsc"))
            packs = f"ptr {a_i}, i64 %csa, ptr {spare}, i64 {rows}, i64 {depth}"
            t.when(turned, lambda: t.do(f"call void @pack_tiles({packs})"))
            a_i = t.chosen(turned, "ptr", spare, a_i)
            csa = t.chosen(turned, "i64", PACKED, "%csa")

            def stripe(p: str) -> None:
                left = t.mul(p, self.panel)
                given = (
                    f"ptr {a_i}, i64 %rsa, i64 {csa}, ptr {t.at(b, t.mul(p, panel))}, i64 {rsb}, "
                    f"ptr {t.at(c_i, t.mul(left, self.size))}, i64 %rsc, i64 {rows}, i64 {depth}"
                )
                self.stripes(t, given, t.least(t.sub("%cols", left), self.panel), more)

            t.loop(0, panels, 1, stripe)

        t.loop(0, "%rows", BLOCK, block)

    # --- for Python ---------------------------------------------------------------------------

    def _entry(self, transpose_a: bool, transpose_b: bool) -> str:
        t = Text()
        made = t(f"call ptr @matmul({TAKES}, i1 {int(transpose_a)}, i1 {int(transpose_b)})")
        name = entry_name(transpose_a, transpose_b)
        return function("ptr", name, TAKES, t, made, internal=False)

    def _matmul(self) -> str:
        """matmul(a, b, out): arrays of two axes, no length 0, and up to two axes before them,
        which broadcast; and of the two whether they are turned.
        """
        t = Text()
        a, b, c = (ArrayArgument(t, i) for i in range(3))
        lengths_a = a.length(2), a.length(1)
        rows, cols, depth = c.length(2), c.length(1), t.chosen("%ta", "i64", *lengths_a)
        outer, inner = c.length_or_one(4), c.length_or_one(3)
        work = t.mul(t.mul(t.mul(rows, cols), depth), t.mul(outer, inner))
        unlocked = Unlocked(t, t(f"icmp sgt i64 {work}, {FREE}"))
        strides_a, strides_b = _turned(t, a, "%ta"), _turned(t, b, "%tb")
        rsc = c.stride(2)
        steps = [(x.data, x.step(4), x.step(3)) for x in (a, b, c)]
        unlocked.start()

        def one(i: str, j: str) -> None:
            at = [t.at(t.at(data, t.mul(i, far)), t.mul(j, near)) for data, far, near in steps]
            t.do(
                f"call void @gemm(ptr {at[0]}, i64 {strides_a[0]}, i64 {strides_a[1]}, "
                f"ptr {at[1]}, i64 {strides_b[0]}, i64 {strides_b[1]}, ptr {at[2]}, i64 {rsc}, "
                f"i64 {rows}, i64 {cols}, i64 {depth})"
            )

        t.loop(0, outer, 1, lambda i: t.loop(0, inner, 1, lambda j: one(i, j)))
        unlocked.stop()
        return built_in("matmul", t, c.object, "i1 %ta", "i1 %tb")


def _turned(t: Text, x: ArrayArgument, turned: str) -> tuple[str, str]:
    """The strides of a matrix, or of what it is turned."""
    far, near = x.stride(2), x.stride(1)
    return t.chosen(turned, "i64", near, far), t.chosen(turned, "i64", far, near)


def entry_name(transpose_a: bool, transpose_b: bool) -> str:
    """The built-in function for a pair of MatMul's flags."""
    return f"matmul_{'t' if transpose_a else 'n'}{'t' if transpose_b else 'n'}"


def _name(what: str, *parts: int) -> str:
    return "_".join([what, *(str(int(p)) for p in parts)])
