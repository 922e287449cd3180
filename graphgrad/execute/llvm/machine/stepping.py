"""One compiled function that runs the steps of any loop: a table says what to call, and on what.

The records and what their words mean are in `words`.

A loop that is left gives LEFT or FULL, and the loops around it do the same.
A step of a few numbers takes some 10 ns: it is read, not compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from ..emit.arrays import DECLARATIONS as ARRAYS
from ..emit.arrays import ArrayArgument
from ..emit.arrays import built_in as built_in_text
from ..emit.call import built_in
from ..emit.jit import Loaded, loaded
from ..emit.text import Text, function
from .words import (
    HEAD,
    KINDS,
    WORD,
    BranchRecord,
    CarryTurn,
    CheckRecord,
    CopyRecord,
    GroupRecord,
    LimitRecord,
    LoopRecord,
    PackRecord,
    ProductRecord,
    RepeatRecord,
    RowMove,
    RowRecord,
    SetRecord,
    TestRecord,
    entry,
    fields,
    width,
)

LEFT, FULL = -1, -2
"""An index was out of range, or there were too many runs; there was no room for what is kept."""
MANY = 1 << 62  # runs: as many as it takes
TAKES = (
    "ptr %cells, ptr %code, ptr %stop, ptr %moves, i64 %moving, ptr %turns, i64 %turning, "
    "i64 %begin, i64 %end, i64 %last"
)
"""moves, turns: of rows (`RowMove`) and of carries (`CarryTurn`); begin, end: runs by number; last:
how many runs there are in all."""

DECLARATIONS = (
    "declare ptr @memcpy(ptr, ptr, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
)


@cache
def _code() -> Loaded:
    text = "\n".join((*ARRAYS, *DECLARATIONS, _text(), _pointers()))
    return loaded(text, ["steps", "pointers"])


@cache
def pointers() -> Callable[..., Any]:
    """pointers(out, *arrays): where the data of arrays begin, written into an array of int64."""
    return built_in(_code(), "pointers")


@cache
def stepper() -> Any:
    """run(cells, code, stop, moves, moving, turns, turning, begin, end, last).

    How many runs are done, which is less than `end` where a test was false; LEFT or FULL.
    """
    code = _code()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    takes = (pointer,) * 4 + (number, pointer, number, number, number, number)
    run = ctypes.CFUNCTYPE(number, *takes)(code.address("steps"))
    run.loaded = code  # type: ignore[attr-defined]  # the code lives as long as this
    return run


def _text() -> str:
    t = Text()
    t.do("br label %enter")
    t.label("enter")
    t.do("%none = icmp sge i64 %begin, %end")
    t.do("br i1 %none, label %over, label %again")
    t.label("again")
    t.do("%run = phi i64 [%begin, %enter], [%run.next, %moved]")
    t.do("br label %step")
    t.label("step")
    t.do("%at = phi ptr [%code, %again], [%at.next, %stepped], [%at.far, %branch]")
    t.do("%done = icmp eq ptr %at, %stop")
    t.do("br i1 %done, label %finished, label %record")
    t.label("record")
    number, size = _word(t, "%at", 0), _word(t, "%at", 1)
    labels = " ".join(f"i64 {at}, label %{_label(kind)}" for at, kind in enumerate(KINDS))
    t.do(f"switch i64 {number}, label %group [{labels}]")
    for kind, write in SIMPLE.items():
        t.label(_label(kind))
        write(_Record(t, kind))
        t.do("br label %stepped")
    t.label("loop")
    runs = _loop(_Record(t, LoopRecord))
    t.do(f"br i1 {t(f'icmp slt i64 {runs}, 0')}, label %gone, label %stepped")
    t.label("test")
    t.do(f"br i1 {_Record(t, TestRecord).holds()}, label %stepped, label %ended")
    t.label("check")
    t.do(f"br i1 {_check(_Record(t, CheckRecord))}, label %stepped, label %left")
    t.label("limit")
    limit = _Record(t, LimitRecord)
    few = t(f"icmp slt i64 %run, {limit.word('runs')}")
    t.do(f"br i1 {few}, label %stepped, label %full")
    t.label("branch")
    branch = _Record(t, BranchRecord)
    further = t.chosen(branch.holds(), "i64", branch.word("if_true"), branch.word("if_false"))
    t.do(f"%at.far = getelementptr i64, ptr %at, i64 {further}")
    t.do("br label %step")
    t.label("stepped")
    t.do(f"%at.next = getelementptr i64, ptr %at, i64 {size}")
    t.do("br label %step")
    t.label("ended")
    t.do("ret i64 %run")
    t.label("gone")
    t.do(f"ret i64 {runs}")
    t.label("left")
    t.do(f"ret i64 {LEFT}")
    t.label("full")
    t.do(f"ret i64 {limit.word('result')}")
    t.label("finished")
    t.do("%run.next = add i64 %run, 1")
    t.loop(0, "%moving", 1, lambda i: _move(t, i))
    t.loop(0, "%turning", 1, lambda i: _turn(t, i))
    t.do("br label %moved")
    t.label("moved")
    t.do("%more = icmp slt i64 %run.next, %end")
    t.do("br i1 %more, label %again, label %over")
    t.label("over")
    return function("i64", "steps", TAKES, t, "%end", internal=False)


def _pointers() -> str:
    t = Text()
    out = ArrayArgument(t, 0)

    def one(i: str) -> None:
        data = t.load("ptr", t.at(t.load("ptr", t.at("%args", t.mul(i, 8))), 16))
        t.do(f"store ptr {data}, ptr {t.at(out.data, t.mul(t.sub(i, 1), 8))}")

    t.loop(1, "%count", 1, one)
    return built_in_text("pointers", t, out.object)


def _label(kind: type) -> str:
    """The label of the records of a kind: `group` of GroupRecord."""
    return kind.__name__.removesuffix("Record").lower()


def _word(t: Text, base: str, place: int) -> str:
    return t.load("i64", t.at(base, WORD * place))


def _address(t: Text, cell: str) -> str:
    """Where the address in a cell is."""
    return t(f"getelementptr ptr, ptr %cells, i64 {cell}")


class _Record:
    """The fields of the record at %at, or of a tuple without a head at another address."""

    def __init__(self, t: Text, kind: type, base: str = "%at", head: int = HEAD) -> None:
        self.t, self.kind, self.base, self.head = t, kind, base, head

    def _place(self, field: str) -> int:
        return self.head + fields(self.kind)[field]

    def word(self, field: str) -> str:
        """A number."""
        return _word(self.t, self.base, self._place(field))

    def pointer(self, field: str) -> str:
        """An address."""
        return self.t.load("ptr", self.t.at(self.base, WORD * self._place(field)))

    def cell(self, field: str) -> str:
        """Where the address in a cell is."""
        return _address(self.t, self.word(field))

    def place(self, field: str) -> str:
        """What is at a place, or where a matrix begins."""
        base = self.t.load("ptr", self.cell(f"{field}.cell"))
        return self.t.at(base, self.word(f"{field}.offset"))

    def number(self, field: str) -> str:
        """The number at a place."""
        return self.t.load("i64", self.place(field))

    def holds(self) -> str:
        """Whether the bool at `holds` is true."""
        return self.t(f"icmp ne i8 {self.t.load('i8', self.place('holds'))}, 0")

    def fill(self, frame: str) -> None:
        """Put the addresses of the arrays, which follow their number, into a frame."""
        t, first = self.t, self._place("arrays") + 1
        kind = entry(self.kind, "arrays")

        def one(i: str) -> None:
            row = t.at(self.base, t.add(t.mul(i, WORD * width(kind)), WORD * first))
            array = _Record(t, kind, row, 0)
            base = t.load("ptr", array.cell("cell"))
            where = t(f"getelementptr ptr, ptr {frame}, i64 {array.word('slot')}")
            t.do(f"store ptr {t.at(base, array.word('offset'))}, ptr {where}")

        t.loop(0, self.word("arrays"), 1, one)


def _group(r: _Record) -> None:
    t = r.t
    rows, ends, partials, workspace, frame = (
        r.pointer(field) for field in ("rows", "ends", "partials", "workspace", "frame")
    )
    r.fill(frame)
    given = f"ptr {frame}, i64 0, i64 {r.word('row_count')}, ptr {partials}, ptr {workspace}"
    t.do(f"call void {rows}({given})")
    t.do(f"call void {ends}(ptr {frame}, ptr {partials})")


def _check(r: _Record) -> str:
    """Whether the indices are in range."""
    fits, frame = r.pointer("fits"), r.pointer("frame")
    r.fill(frame)
    return r.t(f"call i1 {fits}(ptr {frame})")


def _product(r: _Record) -> None:
    gemm = r.pointer("gemm")
    a, b, c = (r.place(matrix) for matrix in "abc")
    ends = [r.word(f"{m}.{end}_stride") for m in "ab" for end in ("row", "column")]
    to, rows, columns, depth = (r.word(f) for f in ("c.row_stride", "rows", "columns", "depth"))
    r.t.do(
        f"call void {gemm}(ptr {a}, i64 {ends[0]}, i64 {ends[1]}, ptr {b}, i64 {ends[2]}, "
        f"i64 {ends[3]}, ptr {c}, i64 {to}, i64 {rows}, i64 {columns}, i64 {depth})"
    )


def _pack(r: _Record) -> None:
    t, pack, b = r.t, r.pointer("pack"), r.place("matrix")
    to = t.load("ptr", r.cell("slab"))
    near, far = r.word("matrix.row_stride"), r.word("matrix.column_stride")
    columns, depth = r.word("columns"), r.word("depth")
    given = f"ptr {b}, i64 {near}, i64 {far}, ptr {to}, i64 {columns}, i64 {depth}"
    t.do(f"call void {pack}({given})")


def _copy(r: _Record) -> None:
    t, to, source = r.t, r.place("target"), r.place("source")
    size, count, down, on = (
        r.word(field) for field in ("size", "times", "target_stride", "source_stride")
    )

    def one(i: str) -> None:
        target, x = t.at(to, t.mul(i, down)), t.at(source, t.mul(i, on))
        t(f"call ptr @memcpy(ptr {target}, ptr {x}, i64 {size})")

    t.loop(0, count, 1, one)


def _set(r: _Record) -> None:
    r.t.do(f"store ptr {r.place('place')}, ptr {r.cell('cell')}")


def _last_row(r: _Record) -> None:
    t = r.t
    before = t.mul(t.sub(r.number("row_count"), 1), r.word("stride"))
    t.do(f"store ptr {t.at(r.place('rows'), before)}, ptr {r.cell('cell')}")


def _repeat(r: _Record) -> None:
    t = r.t
    rows, count, size = r.place("rows"), r.number("row_count"), r.word("stride")
    begin = t(f"call i64 @llvm.smax.i64(i64 {count}, i64 1)")
    last = t.at(rows, t.mul(t.sub(begin, 1), size))

    def one(i: str) -> None:
        t(f"call ptr @memcpy(ptr {t.at(rows, t.mul(i, size))}, ptr {last}, i64 {size})")

    t.loop(begin, r.word("most"), 1, one)


def _loop(r: _Record) -> str:
    """How many runs there were; less than 0 where it was left."""
    t = r.t
    code, stop, moves, turns = (r.pointer(field) for field in ("code", "stop", "moves", "turns"))
    moving, turning, last = r.word("move_count"), r.word("turn_count"), r.number("trips")
    most = t.chosen(t(f"icmp slt i64 {last}, 0"), "i64", MANY, last)
    runs = t(
        f"call i64 @steps(ptr %cells, ptr {code}, ptr {stop}, ptr {moves}, i64 {moving}, "
        f"ptr {turns}, i64 {turning}, i64 0, i64 {most}, i64 {last})"
    )
    t.do(f"store i64 {runs}, ptr {r.place('done')}")
    return runs


SIMPLE: dict[type, Callable[[_Record], None]] = {
    GroupRecord: _group,
    ProductRecord: _product,
    CopyRecord: _copy,
    SetRecord: _set,
    PackRecord: _pack,
    RowRecord: _last_row,
    RepeatRecord: _repeat,
}
"""What writes the code of the records after which the next one follows."""


def _row_of(t: Text, table: str, kind: type, i: str) -> _Record:
    """The i-th tuple of a table."""
    return _Record(t, kind, t.at(table, t.mul(i, WORD * width(kind))), 0)


def _move(t: Text, i: str) -> None:
    """The cell of a row moves on to the next."""
    move = _row_of(t, "%moves", RowMove, i)
    where = move.cell("cell")
    t.do(f"store ptr {t.at(t.load('ptr', where), move.word('stride'))}, ptr {where}")


def _turn(t: Text, i: str) -> None:
    """What was written is taken next."""
    turn = _row_of(t, "%turns", CarryTurn, i)
    taken, written, following = (turn.cell(cell) for cell in ("taken", "written", "following"))
    stride = turn.word("stride")
    now, after = t.load("ptr", written), t.load("ptr", following)
    t.do(f"store ptr {now}, ptr {taken}")

    def kept() -> None:
        final = t(f"icmp eq i64 {t.add('%run.next', 1)}, %last")
        t.do(f"store ptr {t.chosen(final, 'ptr', after, t.at(now, stride))}, ptr {written}")

    def turned() -> None:
        t.do(f"store ptr {after}, ptr {written}")
        t.do(f"store ptr {now}, ptr {following}")

    t.when(t(f"icmp ne i64 {stride}, 0"), kept, turned)
