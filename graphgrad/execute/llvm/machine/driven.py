"""Loops whose bodies are compiled code from end to end, run by one call of `stepping`.

The runs go in blocks of a few hundredths of a second, between which Python may interrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ....ir.types import Array, TensorType
from ....lower.alias import nbytes
from ....lower.plan import Plan, Step
from ....lower.schedule import of_one_run
from ....ops.control import Scan, While
from ..emit.call import possible
from ..loops.launch import in_order
from .inner_loops import ScanWithin, WhileWithin
from .records import UNKNOWN, Cells, KernelOf, Records, Unfit
from .stepping import FULL, MANY, pointers, stepper
from .words import (
    WORD,
    CarryTurn,
    CellPlace,
    CopyRecord,
    RowMove,
    SetRecord,
    TestRecord,
    fields,
    words,
)

FIRST = 256  # runs of the first block
PAUSE = 0.02  # seconds of a block from which on the next one is no longer
LARGE = 1 << 20  # bytes of arenas; runs of bodies that take more take long enough by themselves
SLACK = 1 << 16  # bytes that loops in a loop may take beyond those that were planned
ROOM = 64  # rows of what a loop with a test keeps, at first
MORE = 4  # times as many where these do not do, in a loop in the loop

Kernel = Callable[..., Any]
BIG = "takes so much memory in a run that to call it costs little"


def compiled_loop(
    op: Scan | While,
    bodies: Sequence[Any],
    kernel_of: KernelOf,
    driven: Kernel,
    *,
    there: bool,
    packs: bool,
) -> CompiledLoop | str:
    """A kernel of the loop; where that is known not to be compiled code, the reason.

    driven: what runs it otherwise. there: whether what it makes has its places. packs: whether
    matrices that stay the same may be packed, for speed, beside where they lie.
    """
    plans = [plan for body in bodies if not body.refines for plan in body.plans]
    if len(plans) < len(bodies):
        return f"it {UNKNOWN}"
    if not possible():
        return "compiled code cannot be called as built-in functions here"
    planned = of_one_run(op, plans, there)

    def new(rows: int) -> _Scan | _While:
        return _loop(op, plans, kernel_of, planned, Cells(packs, rows))

    return CompiledLoop(new, driven, planned)


def _loop(
    op: Scan | While, plans: Sequence[Plan], kernel_of: KernelOf, planned: int, cells: Cells
) -> _Scan | _While:
    kind: Any = _Scan if isinstance(op, Scan) else _While
    loop: _Scan | _While = kind(op, plans, kernel_of, cells)
    if cells.nested and loop.size - cells.packed - cells.kept > SLACK + planned:
        raise Unfit(f"takes {loop.size:,} bytes as a whole, much more than planned")
    loop.finish()
    return loop


def _inner(records: Records, at: int, step: Step, plans: Sequence[Plan]) -> None:
    """The records of a loop in the loop."""
    op, cells = step.node.op, records.cells
    cells.nested = True
    if len(plans) != len(op.bodies):
        raise Unfit(UNKNOWN)
    inputs = [records.in_order(records.values[slot]) for slot in step.inputs]
    loop: Any
    within: ScanWithin | WhileWithin
    if isinstance(op, Scan):
        loop = _Scan(op, plans, records.kernel_of, cells)
        within = ScanWithin(op, loop, records)
    else:
        assert isinstance(op, While)
        loop = _While(op, plans, records.kernel_of, cells)
        within = WhileWithin(op, loop, records)
    for cell, x in zip(loop.taken, inputs, strict=True):
        records.record(SetRecord(cell, x.place))
    within.write(step, at, inputs)
    if cells.size > LARGE:
        raise Unfit(BIG)


class CompiledLoop:
    """A loop as a function of arrays; a scan's outputs may be given behind them, and are written.

    What runs it waits for the next run, one for each thread.

    It is made at the first call, which never comes for a loop in a loop that is compiled as a
    whole; where a step of its bodies is not a compiled code, the loop is driven.

    Where an index is out of range, or a test is true for too long, it is left, and driven from the
    start, which says so. Where there is no room for what it keeps, it begins again with more.

    planned: bytes that were planned for a run, beyond what it makes and the arenas of its bodies.
    """

    orders = True

    def __init__(self, new: Callable[[int], _Scan | _While], driven: Kernel, planned: int) -> None:
        self._new, self._driven, self._planned = new, driven, planned
        self._idle: list[_Scan | _While] = []
        self._unfit = ""
        self._rows = ROOM

    def __call__(self, *arrays: Any) -> Any:
        """The outputs."""
        while (loop := self._taken()) is not None:
            count = len(loop.taken)
            try:
                return loop.run(arrays[:count], arrays[count:], self._driven)
            except Left as left:
                if not left.full:
                    break
                self._rows = max(self._rows, MORE * loop.cells.rows)
            finally:
                if loop.cells.rows == self._rows:
                    self._idle.append(loop)
        return self._driven(*arrays)

    def _taken(self) -> _Scan | _While | None:
        """What runs it; None if a step is not a compiled code."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return None if self._unfit else self._new(self._rows)
        except Unfit as error:
            self._unfit = error.why if error.told else f"it {error.why}"
            return None

    def told(self) -> str:
        """Whether it is one function, and why not."""
        if self.own() is None:
            return f"run by run from Python: {self._unfit}"
        return "as one compiled function"

    def own(self) -> int | None:
        """Bytes that it takes beyond what was planned; None where it is driven."""
        loop = self._taken()
        if loop is None:
            return None
        self._idle.append(loop)
        return max(0, loop.size - self._planned)

    def release(self) -> None:
        """Give back the memory that waits for the next run."""
        self._idle.clear()


class Left(Exception):
    """A loop was left; full: since there was no room for what it keeps."""

    def __init__(self, full: bool) -> None:
        super().__init__()
        self.full = full


class _Loop:
    """Memory of one run at a time.

    words   the records of a run
    before  those of what is done once, before the first
    moves   rows that move on
    turns   carries
    spare   types of arrays that a run makes for itself
    """

    spare: list[TensorType]

    def __init__(self, plans: Sequence[Plan], cells: Cells) -> None:
        if sum(p.arena for p in plans) > LARGE:
            raise Unfit(BIG)
        self.cells = cells
        self.words: list[int] = []
        self.before: list[int] = []
        self.moves: list[RowMove] = []
        self.turns: list[CarryTurn] = []

    @property
    def size(self) -> int:
        """Bytes that it takes beside what it makes and arenas."""
        return self.cells.size + self.cells.packed + sum(_size(t) for t in self.spare)

    def finish(self) -> None:
        """All is noted."""
        self._code, self._before, self._moves, self._turns = (
            np.array(x, np.int64) for x in (self.words, self.before, self.moves, self.turns)
        )
        self.addresses = np.array(self.cells.addresses, np.int64)
        self._stop = self._code.ctypes.data + self._code.nbytes
        self._tables = (
            *(self.addresses.ctypes.data, self._code.ctypes.data, self._stop),
            *(self._moves.ctypes.data, len(self._moves)),
            *(self._turns.ctypes.data, len(self._turns)),
        )
        table, _, _, moves, _, turns, _ = self._tables
        begin = self._before.ctypes.data
        self._first = table, begin, begin + self._before.nbytes, moves, 0, turns, 0
        self._steps = stepper()
        self._block = 1 if self.cells.nested else FIRST

    def _run_of(self, *given: int) -> int:
        """How many runs are done; Left where the loop was left."""
        done = int(self._steps(*given))
        if done < 0:
            raise Left(done == FULL)
        return done

    def steps(self, begin: int, end: int, last: int) -> int:
        """Runs from `begin` on, at most to `end`: how many are done."""
        done = begin
        if not begin and len(self._before):
            self._run_of(*self._first, 0, 1, 1)
        while done < end:
            stop = min(done + self._block, end)
            start = perf_counter()
            done = self._run_of(*self._tables, done, stop, last)
            if done < stop:
                break
            if perf_counter() - start < PAUSE:
                self._block *= 2
            elif self._block > 1:
                self._block //= 2
        return done


class _Scan(_Loop):
    """The cells of a scan, in its order: what runs take, then what they leave and make."""

    def __init__(self, op: Scan, plans: Sequence[Plan], kernel_of: KernelOf, cells: Cells) -> None:
        super().__init__(plans, cells)
        (plan,) = plans
        self.op, program, c = op, plan.program, op.carries
        self.taken = [self.cells.open() for _ in program.inputs]
        self.left = [self.cells.open() for _ in program.outputs]
        self.following = [self.cells.open() for _ in range(c)]
        sign = -1 if op.reverse else 1
        stacks = zip(self.taken[c : c + op.slices], program.inputs[c : c + op.slices], strict=True)
        rows = zip(self.left[c:], program.outputs[c:], strict=True)
        for cell, t in (*stacks, *rows):
            self.moves.append(RowMove(cell, sign * _size(t.type)))
        for i in range(c):
            step = sign * _size(program.inputs[i].type) if i in op.history else 0
            self.turns.append(CarryTurn(self.taken[i], self.left[i], self.following[i], step))
        same = self.taken[c + op.slices :]
        made = Records(plan, cells, self.taken, same, self.left, kernel_of, _inner)
        self.words, self.before = made.words, made.before
        self.types = [t.type for t in program.outputs]
        self.spare = [self.types[i] for i in range(c) if i not in op.history]
        self._pointers = pointers()
        self._layout: tuple[int, tuple[int, ...]] | None = None

    def run(self, arrays: Sequence[Array], outs: Sequence[Array], driven: Kernel) -> Any:
        """The outputs. outs: where they go; new arrays where there are none."""
        op, c = self.op, self.op.carries
        middle = c + op.slices
        stacked = [*map(_rows_in_order, arrays[c:middle])]
        count = op.count(stacked)
        if not count:
            return driven(*arrays, *outs)
        carries, same = arrays[:c], in_order(tuple(arrays[middle:]))
        made = outs or self._new(carries, count)
        for stack, i in zip(made[len(self.left) :], op.history, strict=True):
            stack[-1 if op.reverse else 0] = carries[i]
        layout = count, tuple([x.strides[0] for x in stacked])
        if layout != self._layout:
            self._settle(*layout)
        spare = {i: _like(carries[i]) for i in range(c) if i not in op.history}
        second = made if count % 2 == 0 else spare
        first = [_laid(carries[i], second[i]) if i in spare else made[i] for i in range(c)]
        self._pointers(self._found, *first, *stacked, *same, *made, *spare.values())
        self.addresses[self._cells] = self._found[self._sources] + self._offsets
        self.steps(0, count, count)
        return made[0] if len(made) == 1 else tuple(made)

    def _new(self, carries: Sequence[Array], count: int) -> list[Array]:
        """Arrays for the outputs."""
        stacks = [*self.types[len(carries) :], *[self.types[i] for i in self.op.history]]
        return [*map(_like, carries), *[_empty(t, count) for t in stacks]]

    def _settle(self, count: int, strides: tuple[int, ...]) -> None:
        """Where cells point at first, for so many runs over stacks with these strides.

        As cells, places among the arrays of a run (what it is given, its outputs, a second place
        for each carry whose runs are not kept), and offsets in these.
        """
        op, c, given = self.op, self.op.carries, len(self.taken)
        begin = count - 1 if op.reverse else 0
        places = [(cell, at, 0) for at, cell in enumerate(self.taken)]
        for k, stride in enumerate(strides):
            places[c + k] = (self.taken[c + k], c + k, begin * stride)
            self._moves[k, fields(RowMove)["stride"]] = -stride if op.reverse else stride
        for at in range(c, len(self.left)):
            places.append((self.left[at], given + at, begin * _size(self.types[at])))
        kept = {i: given + at for at, i in enumerate(op.history, len(self.left))}
        spare = given + len(self.left) + len(kept)
        for i in range(c):
            if i in kept:
                places += self._kept(i, kept[i], begin, count)
                continue
            turns = (given + i, spare) if count % 2 else (spare, given + i)
            places += [(self.left[i], turns[0], 0), (self.following[i], turns[1], 0)]
            spare += 1
        self._cells, self._sources, self._offsets = np.array(places, np.int64).T.copy()
        self._found = np.empty(spare, np.int64)
        self._layout = count, strides

    def _kept(self, i: int, stack: int, begin: int, count: int) -> list[tuple[int, int, int]]:
        """Where the cells of a carry point at first of which is kept what runs took."""
        final, size = len(self.taken) + i, _size(self.types[i])
        following = begin - 1 if self.op.reverse else begin + 1
        return [
            (self.taken[i], stack, begin * size),
            (self.left[i], stack, following * size) if count > 1 else (self.left[i], final, 0),
            (self.following[i], final, 0),
        ]


class _While(_Loop):
    """The cells of a loop with a test. What runs took is copied into rows, where it is kept."""

    def __init__(self, op: While, plans: Sequence[Plan], kernel_of: KernelOf, cells: Cells) -> None:
        super().__init__(plans, cells)
        test, body = plans
        self.op, c = op, op.carries
        self.spare = [t.type for t in body.program.outputs]
        self.taken = [self.cells.open() for _ in body.program.inputs]
        self.left, self.following, self.kept = (
            [self.cells.open() for _ in places] for places in (range(c), range(c), op.history)
        )
        same = self.taken[c:]
        asked = Records(test, cells, self.taken, same, [None], kernel_of, _inner)
        (holds,) = asked.results
        self.words += [*asked.words, *words(TestRecord(holds.place))]
        self.asked = len(self.words)
        for i, cell in zip(op.history, self.kept, strict=True):
            size = _size(body.program.inputs[i].type)
            kept = CopyRecord(CellPlace(cell, 0), CellPlace(self.taken[i], 0), size, 1, 0, 0)
            self.words += words(kept)
            self.moves.append(RowMove(cell, size))
        for i in range(c):
            self.turns.append(CarryTurn(self.taken[i], self.left[i], self.following[i], 0))
        made = Records(body, cells, self.taken, same, self.left, kernel_of, _inner)
        self.words += made.words
        self.before = asked.before + made.before

    def run(self, arrays: Sequence[Array], outs: Sequence[Array], driven: Kernel) -> Any:
        """The outputs, which are always new arrays."""
        op, addresses, c = self.op, self.addresses, self.op.carries
        carries, same = arrays[:c], in_order(tuple(arrays[c:]))
        for cell, array in zip(self.taken[c:], same, strict=True):
            addresses[cell] = array.ctypes.data
        pairs = self._pairs(carries)
        stacks, trips = self._run([carries[i] for i in op.history])
        if not trips:
            del pairs, stacks
            return driven(*arrays)
        last = [pair[(trips - 1) % 2] for pair in pairs]
        return (*last, *[self._kept(stack, trips) for stack in stacks], np.array(trips))

    def _pairs(self, carries: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Two places for each carry, of which the first run writes the first."""
        pairs = [(_like(x), _like(x)) for x in carries]
        addresses = self.addresses
        for left, following, pair in zip(self.left, self.following, pairs, strict=True):
            addresses[left], addresses[following] = (x.ctypes.data for x in pair)
        for cell, first, (_, second) in zip(self.taken, carries, pairs, strict=False):
            addresses[cell] = _laid(first, second).ctypes.data
        return pairs

    def _run(self, kept: Sequence[Array]) -> tuple[list[Array], int]:
        """What runs took, stacked, and how many there were."""
        trips, most = 0, self.op.max_trips
        room = (ROOM if kept else MANY) if most is None else most
        stacks = [np.empty((room, *x.shape), x.dtype) for x in kept]
        while True:
            for cell, stack in zip(self.kept, stacks, strict=True):
                self.addresses[cell] = _row(stack, trips)
            trips = self.steps(trips, room, -1)
            if trips < room:
                return stacks, trips
            if room == most:
                return stacks, self._ended(trips)
            room = 2 * room
            stacks = [_grown(x, room) for x in stacks]

    def _ended(self, trips: int) -> int:
        """trips, where the test is false behind the last run that may be."""
        table, code, _, moves, _, turns, _ = self._tables
        stop = code + WORD * self.asked
        more = self._run_of(table, code, stop, moves, 0, turns, 0, 0, 1, -1)
        self.op.check_trips(bool(more), trips)
        return trips

    def _kept(self, stack: Array, trips: int) -> Array:
        """The rows of runs; the last one repeated where there may be more."""
        if self.op.max_trips is None:
            return stack[:trips].copy()
        stack[trips:] = stack[trips - 1]
        return stack


def _size(type: TensorType) -> int:
    return nbytes(type) or 0


def _row(stack: Array, at: int) -> int:
    return int(stack.ctypes.data + at * stack.strides[0])


def _like(array: Array) -> Array:
    return np.empty(array.shape, array.dtype)


def _laid(array: Array, place: Array) -> Array:
    """The array in row-major order: itself, or written to a place."""
    if type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned:
        return array
    place[...] = array
    return place


def _grown(stack: Array, rows: int) -> Array:
    grown = np.empty((rows, *stack.shape[1:]), stack.dtype)
    grown[: len(stack)] = stack
    return grown


def _rows_in_order(stack: Array) -> Array:
    """The stack, or a copy where its rows do not lie in row-major order; those may be one row."""
    row = stack[:1]
    if row.flags.c_contiguous and stack.flags.aligned:
        return stack
    if stack.strides[0]:
        return np.ascontiguousarray(stack)
    return np.broadcast_to(np.ascontiguousarray(row), stack.shape)


def _empty(type: TensorType, rows: int) -> Array:
    shape: Any = type.shape
    return np.empty((rows, *shape), type.dtype)
