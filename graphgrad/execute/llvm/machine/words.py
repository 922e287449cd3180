"""The records of the loop machine: what each of their words means.

A loop is a list of records, which one compiled function reads (`stepping`). A record is words of 8
bytes: its kind, how many words it has, and then the fields of its class in their order. A field
that is a tuple takes its words there. Whoever writes a record or reads one goes by field.

Values lie behind *cells*, which hold addresses: of what runs take and make, and of the arena.
Between two runs the cells of rows move on (`RowMove`), and those of carries change places
(`CarryTurn`), so nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

HEAD = 2  # words before the fields: kind and length
WORD = 8  # bytes


class CellPlace(NamedTuple):
    """Where a value lies: bytes behind the address in a cell."""

    cell: int
    offset: int


class Matrix(NamedTuple):
    """Where a matrix lies, and its strides in bytes."""

    cell: int
    offset: int
    row_stride: int
    column_stride: int


class RowMatrix(NamedTuple):
    """Where the rows of a matrix lie that are each contiguous, and how far apart, in bytes."""

    cell: int
    offset: int
    row_stride: int


class FrameEntry(NamedTuple):
    """An array of a frame whose address changes: its slot there, and where it lies."""

    slot: int
    cell: int
    offset: int


class RowMove(NamedTuple):
    """The cell of a row, and how many bytes it moves on between two runs."""

    cell: int
    stride: int


class CarryTurn(NamedTuple):
    """The cells of a carry: what a run takes, what it writes, and what comes next.

    stride: 0 where the last two change places; else what runs take is kept in rows, and these are
    the bytes to the next one, which the next run writes; the last run writes to `following`.
    """

    taken: int
    written: int
    following: int
    stride: int


class GroupRecord(NamedTuple):
    """Call a compiled group.

    rows, ends           functions: of the rows, and of what is complete in the end
    row_count            how many rows there are
    partials, workspace  addresses of memory for them
    frame                the address of the addresses of its arrays
    """

    rows: int
    ends: int
    row_count: int
    partials: int
    workspace: int
    frame: int
    arrays: tuple[FrameEntry, ...]


class ProductRecord(NamedTuple):
    """Call a matrix product: C = A @ B, of (rows, depth) and (depth, columns)."""

    gemm: int
    a: Matrix
    b: Matrix
    c: RowMatrix
    rows: int
    columns: int
    depth: int


class CopyRecord(NamedTuple):
    """Copy `size` bytes, `times` times, each so many bytes further on."""

    target: CellPlace
    source: CellPlace
    size: int
    times: int
    target_stride: int
    source_stride: int


class TestRecord(NamedTuple):
    """End the loop where a bool is false."""

    holds: CellPlace


class SetRecord(NamedTuple):
    """Set a cell to the address of a place."""

    cell: int
    place: CellPlace


class LoopRecord(NamedTuple):
    """Run a loop in the loop.

    code, stop  where its records begin and end
    moves       where its moves are, and how many; turns alike
    trips       where the number of its runs is: -1 for as many as it takes
    done        where the number of runs that were done goes
    """

    code: int
    stop: int
    moves: int
    move_count: int
    turns: int
    turn_count: int
    trips: CellPlace
    done: CellPlace


class PackRecord(NamedTuple):
    """Pack a matrix for products, before the first run. slab: the cell of where it goes."""

    pack: int
    matrix: Matrix
    slab: int
    columns: int
    depth: int


class CheckRecord(NamedTuple):
    """Leave the loop where a function of a frame says no: an index is out of range."""

    fits: int
    frame: int
    arrays: tuple[FrameEntry, ...]


class BranchRecord(NamedTuple):
    """Go on so many words further: as many as a bool says."""

    holds: CellPlace
    if_true: int
    if_false: int


class LimitRecord(NamedTuple):
    """Leave the loop, with a result, in a run that is not among the first so many."""

    runs: int
    result: int


class RowRecord(NamedTuple):
    """Set a cell to the address of the last row of as many as a place says."""

    cell: int
    rows: CellPlace
    row_count: CellPlace
    stride: int


class RepeatRecord(NamedTuple):
    """Repeat the last row, up to `most` rows, the first of which is there.

    row_count: where the number of rows is.
    """

    rows: CellPlace
    row_count: CellPlace
    stride: int
    most: int


KINDS: tuple[type[NamedTuple], ...] = (
    *(GroupRecord, ProductRecord, CopyRecord, TestRecord, SetRecord, LoopRecord, PackRecord),
    *(CheckRecord, BranchRecord, LimitRecord, RowRecord, RepeatRecord),
)
"""The classes of records, by the number of their kind."""


@cache
def fields(record: type) -> dict[str, int]:
    """The place of each field among the words of a tuple, `field.part` for those of a field."""
    places: dict[str, int] = {}
    at = 0
    for name, kind in get_type_hints(record).items():
        places[name] = at
        if hasattr(kind, "_fields"):
            places |= {f"{name}.{part}": at + place for part, place in fields(kind).items()}
            at += width(kind)
        else:
            at += 1  # a number, or how many tuples follow
    return places


@cache
def width(record: type) -> int:
    """How many words a tuple takes, without those that follow it."""
    kinds = get_type_hints(record).values()
    return sum(width(kind) if hasattr(kind, "_fields") else 1 for kind in kinds)


@cache
def entry(record: type, field: str) -> type:
    """The class of the tuples of a field, which follow their number."""
    cls: type = get_args(get_type_hints(record)[field])[0]
    return cls


def record_length(record: type) -> int:
    """How many words a record has of which nothing follows."""
    return HEAD + width(record)


def words(record: Any) -> list[int]:
    """The words of a record."""
    flat = list(_flat(record))
    return [KINDS.index(type(record)), HEAD + len(flat), *flat]


def _flat(value: Any) -> Iterator[int]:
    """The words of a value: of a number itself, of other tuples how many there are and all."""
    if not isinstance(value, tuple):
        yield int(value)
        return
    if not hasattr(value, "_fields"):
        yield len(value)
    for part in value:
        yield from _flat(part)
