"""A loop in a loop that runs as one function: the records that run it, on what lies there.

How many runs a loop with a test has is known when it has run. What it keeps of them for a gradient
has so many rows, of which there is room for some; where there are more, everything is left, and
begins again with more room. Only another loop goes over such rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ....ir.types import TensorType, as_dtype, tensor_type
from ....lower.alias import nbytes
from ....lower.plan import Step
from ....ops.control import Scan, While
from .records import UNKNOWN, Cells, Located, Records, Unfit, plain
from .stepping import FULL, LEFT
from .words import (
    CarryTurn,
    CellPlace,
    LimitRecord,
    LoopRecord,
    RepeatRecord,
    RowMove,
    RowRecord,
    SetRecord,
    words,
)


class Cellular(Protocol):
    """A loop as cells and words: see `driven.Loop`."""

    cells: Cells
    words: list[int]
    before: list[int]
    moves: list[RowMove]
    turns: list[CarryTurn]
    taken: list[int]
    left: list[int]
    following: list[int]


class Testing(Cellular, Protocol):
    """One with a test, which ends at a word; behind it what runs take is kept in rows."""

    asked: int
    kept: list[int]


class ScanWithin:
    """The records of a scan that is a step of a loop's body."""

    def __init__(self, op: Scan, loop: Cellular, records: Records) -> None:
        self.op, self.loop, self.records = op, loop, records

    def write(self, step: Step, at: int, inputs: Sequence[Located]) -> None:
        """All of them."""
        made = zip(step.outputs, step.node.outputs, strict=True)
        outputs = [self.records.place(at, step, slot, t.type) for slot, t in made]
        count = self.op.runs_of([x.type for x in inputs])
        rows = {x.rows for x in self.op.parts(inputs)[1]}
        if isinstance(count, int) and rows <= {None}:
            self._of_known_length(count, inputs, outputs)
        elif len(rows) == 1 and (of_all := rows.pop()) is not None:
            self._of_rows(of_all, inputs, outputs)
        else:
            raise Unfit(UNKNOWN)

    def _row(self, cell: int, x: Located, at: int) -> None:
        self.records.record(SetRecord(cell, CellPlace(x.cell, x.offset + at * x.strides[0])))

    def _of_known_length(
        self, count: int, inputs: Sequence[Located], outputs: Sequence[Located]
    ) -> None:
        op, c, loop, records = self.op, self.op.carries, self.loop, self.records
        if not count:
            for x, out in zip(inputs, outputs, strict=False):
                records.copy(out, x)
            return
        begin, following = (count - 1, count - 2) if op.reverse else (0, 1)
        rows = [*loop.taken[c : c + op.slices], *loop.left[c:]]
        stacks = [*inputs[c : c + op.slices], *outputs[c : len(loop.left)]]
        for cell, x in zip(rows, stacks, strict=True):
            self._row(cell, x, begin)
        kept = dict(zip(op.history, outputs[len(loop.left) :], strict=True))
        for i, final in enumerate(outputs[:c]):
            if i not in kept:
                spare = plain(records.cells.buffer(_size(final.type)), final.type)
                one, two = (final, spare) if count % 2 else (spare, final)
                records.record(SetRecord(loop.left[i], one.place))
                records.record(SetRecord(loop.following[i], two.place))
                continue
            self._row(loop.taken[i], kept[i], begin)
            records.copy(plain(loop.taken[i], final.type), inputs[i])
            records.record(SetRecord(loop.left[i], final.place))
            records.record(SetRecord(loop.following[i], final.place))
            if count > 1:
                self._row(loop.left[i], kept[i], following)
        run(loop, records, _number(records.cells, count))

    def _of_rows(
        self, count: Located, inputs: Sequence[Located], outputs: Sequence[Located]
    ) -> None:
        """Over rows of which only a run knows how many there are."""
        op, c, loop, records = self.op, self.op.carries, self.loop, self.records
        for cell, x in zip(loop.taken[c : c + op.slices], inputs[c:], strict=False):
            if op.reverse:
                records.record(RowRecord(cell, x.place, count.place, x.strides[0]))
            else:
                self._row(cell, x, 0)
        _two_places(loop, records, outputs)
        run(loop, records, count)
        _carried_on(loop, records, outputs)


class WhileWithin:
    """The records of a loop with a test that is a step of a loop's body."""

    def __init__(self, op: While, loop: Testing, records: Records) -> None:
        self.op, self.loop, self.records = op, loop, records

    def write(self, step: Step, at: int, inputs: Sequence[Located]) -> None:
        """All of them."""
        loop, records, c, most = self.loop, self.records, self.op.carries, self.op.max_trips
        made = list(zip(step.outputs, step.node.outputs, strict=True))
        carries = [records.place(at, step, slot, t.type) for slot, t in made[:c]]
        done = records.place(at, step, step.outputs[-1], step.node.outputs[-1].type)
        stacks = []
        for slot, t in made[c:-1]:
            stack = self._rows(t.type, done)
            stacks.append(stack)
            records.values[slot] = stack
        if most is not None:
            loop.words[loop.asked : loop.asked] = words(LimitRecord(most, LEFT))
        elif stacks:
            loop.words[loop.asked : loop.asked] = words(LimitRecord(records.cells.rows, FULL))
        for cell, i, stack in zip(loop.kept, self.op.history, stacks, strict=True):
            records.record(SetRecord(cell, stack.place))
            if most is not None:
                records.copy(plain(stack.cell, inputs[i].type), inputs[i])
        _two_places(loop, records, carries)
        run(loop, records, _number(records.cells, -1), done)
        _carried_on(loop, records, carries)
        for stack in stacks if most is not None else ():
            records.record(RepeatRecord(stack.place, done.place, stack.strides[0], most or 0))

    def _rows(self, type: TensorType, done: Located) -> Located:
        """Room for what the runs take."""
        cells, most = self.records.cells, self.op.max_trips
        many = cells.rows if most is None else most
        whole = tensor_type((many, *type.shape[1:]), type.dtype)
        if not nbytes(whole):
            raise Unfit("stores arrays that are empty, or whose lengths are only known at run time")
        room = plain(cells.buffer(_size(whole)), whole)
        cells.kept += 0 if most is not None else _size(whole)
        return room._replace(type=type, rows=done) if most is None else room


def run(loop: Cellular, records: Records, count: Located, done: Located | None = None) -> None:
    """The record that runs it so often. done: where the number of runs goes."""
    cells = records.cells
    if done is None:
        done = plain(cells.buffer(8), tensor_type((), as_dtype("int64")))
    arrays = [np.array(x, np.int64) for x in (loop.words, loop.moves, loop.turns)]
    cells.held += arrays
    records.words += loop.before
    code, moves, turns = (int(x.ctypes.data) for x in arrays)
    tables = (moves, len(loop.moves), turns, len(loop.turns))
    stop = code + arrays[0].nbytes
    records.record(LoopRecord(code, stop, *tables, count.place, done.place))


def _two_places(loop: Cellular, records: Records, carries: Sequence[Located]) -> None:
    """For each carry, which change places as often as a run knows."""
    for left, following, x in zip(loop.left, loop.following, carries, strict=False):
        for cell in (left, following):
            records.record(SetRecord(cell, CellPlace(records.cells.buffer(_size(x.type)), 0)))


def _carried_on(loop: Cellular, records: Records, carries: Sequence[Located]) -> None:
    """What the last run left, or the first one would have taken, goes where it is wanted."""
    for taken, x in zip(loop.taken, carries, strict=False):
        records.copy(x, plain(taken, x.type))


def _number(cells: Cells, n: int) -> Located:
    """A number that is there before the loop."""
    return plain(cells.of(np.array(n, np.int64)), tensor_type((), as_dtype("int64")))


def _size(type: TensorType) -> int:
    return nbytes(type) or 0
