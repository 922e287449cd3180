"""The records of the loop machine: words that writer and reader know by field alone."""

import pytest

from graphgrad.execute.llvm.machine import words
from graphgrad.execute.llvm.machine.words import (
    KINDS,
    CellPlace,
    CheckRecord,
    CopyRecord,
    FrameEntry,
    LoopRecord,
    Matrix,
    ProductRecord,
    RowMatrix,
    entry,
    fields,
    record_length,
    width,
)


def test_a_record_is_its_kind_its_length_and_its_fields():
    record = CopyRecord(CellPlace(1, 2), CellPlace(3, 4), size=5, times=6, target_stride=7,
                        source_stride=8)  # fmt: skip
    kind, length, *rest = words.words(record)
    assert KINDS[kind] is CopyRecord
    assert length == record_length(CopyRecord) == 2 + len(rest)
    assert rest == [1, 2, 3, 4, 5, 6, 7, 8]


def test_tuples_that_follow_are_counted():
    arrays = FrameEntry(1, 2, 3), FrameEntry(4, 5, 6)
    kind, length, *rest = words.words(CheckRecord(7, 8, arrays))
    assert KINDS[kind] is CheckRecord
    assert rest == [7, 8, 2, 1, 2, 3, 4, 5, 6]
    assert length == 2 + len(rest)
    assert entry(CheckRecord, "arrays") is FrameEntry
    assert words.words(CheckRecord(7, 8, ()))[2:] == [7, 8, 0]


@pytest.mark.parametrize("record", KINDS)
def test_each_field_is_read_where_it_is_written(record):
    """Numbers of their own for all words are at the places of their fields."""
    flat = iter(range(100, 200))

    def filled(kind):
        inner = getattr(kind, "_fields", None)
        if inner is None:
            return next(flat)
        return kind(*[filled(words.get_type_hints(kind)[name]) for name in inner])

    whole = record(*[
        () if name == "arrays" else filled(words.get_type_hints(record)[name])
        for name in record._fields
    ])  # fmt: skip
    written = words.words(whole)[words.HEAD :]
    assert len(written) == width(record)
    for name, at in fields(record).items():
        value = whole
        for part in name.split("."):
            value = getattr(value, part)
        first = value
        while isinstance(first, tuple) and first:
            first = first[0]
        assert written[at] == (0 if first == () else first), name


def test_matrices_take_their_words_in_the_record():
    places = fields(ProductRecord)
    assert places["b.column_stride"] - places["a.column_stride"] == width(Matrix) == 4
    assert places["rows"] - places["c"] == width(RowMatrix) == 3
    assert fields(LoopRecord)["done.offset"] == width(LoopRecord) - 1
