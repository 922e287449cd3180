"""One compiled function that runs the steps of any loop: a table says what to call, and on what.

Cells hold addresses: of what runs take and make, and of the arena. Between two runs the cells of
rows move on, and those of carries change places, so nothing is copied. For each step there is a
record of words of 8 bytes, its kind and its length first:

    GROUP    rows, end, how many rows, partial results, workspace, frame, how many arrays,
             then for each array its place in the frame, its cell and an offset
    PRODUCT  gemm, cell, offset and two strides of A, the same of B, cell, offset and a stride of C,
             rows, columns, depth
    COPY     cell and offset of the target, the same of the source, bytes, how often, and how many
             bytes further on each time, in the target and in the source
    CHECK    a function of a frame, the frame, and its arrays as in GROUP; where it says no, the
             loop is left
    TEST     cell and offset of a bool; where it is false, the loop ends
    BRANCH   cell and offset of a bool, and how many words further on it goes on where that is true,
             and where it is false
    LIMIT    a number of runs, and a result: what is not one of so many leaves the loop with it
    SET      a cell, and the cell and offset of the address that it gets
    PACK     pack, cell, offset and two strides of a matrix, the cell of where it goes, columns,
             depth; before the first run
    ROW      a cell, cell and offset of an address, cell and offset of a number of rows, bytes of a
             row: it gets the address of the last one
    REPEAT   cell and offset of rows, cell and offset of how many there are, bytes of a row, and how
             many there may be: the last one is repeated; the first is there in any case
    LOOP     a loop in the loop: its records and their end, its moves and turns with their counts,
             cell and offset of how many runs there are, -1 for as many as it takes; cell and offset
             of where their number goes

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

KINDS = (
    *("group", "product", "copy", "test", "set", "loop", "pack"),
    *("check", "branch", "limit", "row", "repeat"),
)
GROUP, PRODUCT, COPY, TEST, SET, LOOP, PACK, CHECK, BRANCH, LIMIT, ROW, REPEAT = range(12)
LEFT, FULL = -1, -2
"""An index was out of range, or there were too many runs; there was no room for what is kept."""
MANY = 1 << 62  # runs: as many as it takes
TAKES = (
    "ptr %cells, ptr %code, ptr %stop, ptr %moves, i64 %moving, ptr %turns, i64 %turning, "
    "i64 %begin, i64 %end, i64 %last"
)
"""moves: (cell, bytes) of rows; turns: (cell taken, cell written, cell of the next, bytes) of
carries, see `_turn`; begin, end: runs by number; last: how many runs there are in all."""

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
    kind, size = _word(t, "%at", 0), _word(t, "%at", 1)
    labels = " ".join(f"i64 {at}, label %{name}" for at, name in enumerate(KINDS))
    t.do(f"switch i64 {kind}, label %group [{labels}]")
    for label, write in SIMPLE.items():
        t.label(label)
        write(t)
        t.do("br label %stepped")
    t.label("loop")
    runs = _loop(t)
    t.do(f"br i1 {t(f'icmp slt i64 {runs}, 0')}, label %gone, label %stepped")
    t.label("test")
    t.do(f"br i1 {_holds(t, 2)}, label %stepped, label %ended")
    t.label("check")
    t.do(f"br i1 {_check(t)}, label %stepped, label %left")
    t.label("limit")
    few = t(f"icmp slt i64 %run, {_word(t, '%at', 2)}")
    t.do(f"br i1 {few}, label %stepped, label %full")
    t.label("branch")
    words = t.chosen(_holds(t, 2), "i64", _word(t, "%at", 4), _word(t, "%at", 5))
    t.do(f"%at.far = getelementptr i64, ptr %at, i64 {words}")
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
    t.do(f"ret i64 {_word(t, '%at', 3)}")
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


def _word(t: Text, base: str, place: int) -> str:
    return t.load("i64", t.at(base, 8 * place))


def _pointer(t: Text, base: str, place: int) -> str:
    return t.load("ptr", t.at(base, 8 * place))


def _address(t: Text, cell: str) -> str:
    """Where the address in a cell is."""
    return t(f"getelementptr ptr, ptr %cells, i64 {cell}")


def _cell(t: Text, place: int) -> str:
    """What is at an offset behind the address in a cell; both are words of the record."""
    base = t.load("ptr", _address(t, _word(t, "%at", place)))
    return t.at(base, _word(t, "%at", place + 1))


def _holds(t: Text, place: int) -> str:
    """Whether a bool is true."""
    return t(f"icmp ne i8 {t.load('i8', _cell(t, place))}, 0")


def _number(t: Text, place: int) -> str:
    return t.load("i64", _cell(t, place))


def _fill(t: Text, frame: str, place: int) -> None:
    """Put the addresses of arrays into a frame; how many is a word of the record, they follow."""

    def one(i: str) -> None:
        row = t.at("%at", t.add(t.mul(i, 24), 8 * place + 8))
        base = t.load("ptr", _address(t, _word(t, row, 1)))
        where = t(f"getelementptr ptr, ptr {frame}, i64 {_word(t, row, 0)}")
        t.do(f"store ptr {t.at(base, _word(t, row, 2))}, ptr {where}")

    t.loop(0, _word(t, "%at", place), 1, one)


def _group(t: Text) -> None:
    rows, ends, partial, workspace, frame = (_pointer(t, "%at", i) for i in (2, 3, 5, 6, 7))
    _fill(t, frame, 8)
    given = f"ptr {frame}, i64 0, i64 {_word(t, '%at', 4)}, ptr {partial}, ptr {workspace}"
    t.do(f"call void {rows}({given})")
    t.do(f"call void {ends}(ptr {frame}, ptr {partial})")


def _check(t: Text) -> str:
    """Whether the indices are in range."""
    fits, frame = _pointer(t, "%at", 2), _pointer(t, "%at", 3)
    _fill(t, frame, 4)
    return t(f"call i1 {fits}(ptr {frame})")


def _product(t: Text) -> None:
    gemm = _pointer(t, "%at", 2)
    a, b, c = (_cell(t, place) for place in (3, 7, 11))
    words = {i: _word(t, "%at", i) for i in (5, 6, 9, 10, 13, 14, 15, 16)}
    t.do(
        f"call void {gemm}(ptr {a}, i64 {words[5]}, i64 {words[6]}, ptr {b}, i64 {words[9]}, "
        f"i64 {words[10]}, ptr {c}, i64 {words[13]}, i64 {words[14]}, i64 {words[15]}, "
        f"i64 {words[16]})"
    )


def _pack(t: Text) -> None:
    pack, b = _pointer(t, "%at", 2), _cell(t, 3)
    to = t.load("ptr", _address(t, _word(t, "%at", 7)))
    near, far, cols, depth = (_word(t, "%at", i) for i in (5, 6, 8, 9))
    given = f"ptr {b}, i64 {near}, i64 {far}, ptr {to}, i64 {cols}, i64 {depth}"
    t.do(f"call void {pack}({given})")


def _copy(t: Text) -> None:
    to, what = _cell(t, 2), _cell(t, 4)
    size, count, down, on = (_word(t, "%at", i) for i in (6, 7, 8, 9))

    def one(i: str) -> None:
        target, source = t.at(to, t.mul(i, down)), t.at(what, t.mul(i, on))
        t(f"call ptr @memcpy(ptr {target}, ptr {source}, i64 {size})")

    t.loop(0, count, 1, one)


def _set(t: Text) -> None:
    t.do(f"store ptr {_cell(t, 3)}, ptr {_address(t, _word(t, '%at', 2))}")


def _last_row(t: Text) -> None:
    before = t.mul(t.sub(_number(t, 5), 1), _word(t, "%at", 7))
    t.do(f"store ptr {t.at(_cell(t, 3), before)}, ptr {_address(t, _word(t, '%at', 2))}")


def _repeat(t: Text) -> None:
    rows, count, size = _cell(t, 2), _number(t, 4), _word(t, "%at", 6)
    begin = t(f"call i64 @llvm.smax.i64(i64 {count}, i64 1)")
    last = t.at(rows, t.mul(t.sub(begin, 1), size))

    def one(i: str) -> None:
        t(f"call ptr @memcpy(ptr {t.at(rows, t.mul(i, size))}, ptr {last}, i64 {size})")

    t.loop(begin, _word(t, "%at", 7), 1, one)


def _loop(t: Text) -> str:
    """How many runs there were; less than 0 where it was left."""
    code, stop, moves, turns = (_pointer(t, "%at", place) for place in (2, 3, 4, 6))
    moving, turning, last = _word(t, "%at", 5), _word(t, "%at", 7), _number(t, 8)
    most = t.chosen(t(f"icmp slt i64 {last}, 0"), "i64", MANY, last)
    runs = t(
        f"call i64 @steps(ptr %cells, ptr {code}, ptr {stop}, ptr {moves}, i64 {moving}, "
        f"ptr {turns}, i64 {turning}, i64 0, i64 {most}, i64 {last})"
    )
    t.do(f"store i64 {runs}, ptr {_cell(t, 10)}")
    return runs


SIMPLE = {
    "group": _group,
    "product": _product,
    "copy": _copy,
    "set": _set,
    "pack": _pack,
    "row": _last_row,
    "repeat": _repeat,
}
"""What writes the records after which the next one follows."""


def _move(t: Text, i: str) -> None:
    """The cell of a row moves on to the next."""
    row = t.at("%moves", t.mul(i, 16))
    where = _address(t, _word(t, row, 0))
    t.do(f"store ptr {t.at(t.load('ptr', where), _word(t, row, 1))}, ptr {where}")


def _turn(t: Text, i: str) -> None:
    """What was written is taken next.

    Where bytes are not 0, what is taken is kept in rows: the next row is written then, and by the
    last run what the cell of the next holds. Else two arrays change places.
    """
    turn = t.at("%turns", t.mul(i, 32))
    taken, written, following = (_address(t, _word(t, turn, k)) for k in range(3))
    step = _word(t, turn, 3)
    now, after = t.load("ptr", written), t.load("ptr", following)
    t.do(f"store ptr {now}, ptr {taken}")

    def kept() -> None:
        final = t(f"icmp eq i64 {t.add('%run.next', 1)}, %last")
        t.do(f"store ptr {t.chosen(final, 'ptr', after, t.at(now, step))}, ptr {written}")

    def turned() -> None:
        t.do(f"store ptr {after}, ptr {written}")
        t.do(f"store ptr {now}, ptr {following}")

    t.when(t(f"icmp ne i64 {step}, 0"), kept, turned)
