"""Loops whose bodies are compiled code from end to end, run by one call of `stepping`.

The runs go in blocks of a few hundredths of a second, between which Python may interrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...ir.types import Array, TensorType, as_dtype, tensor_type
from ...lower.alias import nbytes
from ...lower.plan import Plan, Step
from ...ops.control import Scan, While
from .call import possible
from .records import Cells, KernelOf, Located, Records, Unfit, plain
from .stepping import COPY, LOOP, SET, TEST, stepper

FIRST = 256  # runs of the first block
PAUSE = 0.02  # seconds of a block from which on the next one is no longer
LARGE = 1 << 20  # bytes of arenas; runs of bodies that take more take long enough by themselves
SLACK = 1 << 16  # bytes that loops in a loop may take beyond those that were planned
MANY = 1 << 62  # runs: as many as it takes
ROOM = 64  # rows of what a loop with a test keeps, at first

Kernel = Callable[..., Any]


def compiled_loop(
    op: Scan | While, bodies: Sequence[Any], kernel_of: KernelOf, driven: Kernel
) -> CompiledLoop | None:
    """A kernel of the loop; None where that is known not to be compiled code.

    driven: what runs it otherwise.
    """
    plans: list[Plan] = [body.plan for body in bodies if hasattr(body, "plan")]
    if not possible() or len(plans) < len(bodies):
        return None
    return CompiledLoop(lambda: _loop(op, plans, kernel_of), driven)


def _loop(op: Scan | While, plans: Sequence[Plan], kernel_of: KernelOf) -> _Scan | _While:
    kind: Any = _Scan if isinstance(op, Scan) else _While
    cells = Cells()
    loop: _Scan | _While = kind(op, plans, kernel_of, cells)
    if cells.nested and cells.size > SLACK + sum(p.peak for p in plans):
        raise Unfit  # values in it share no memory, and more than planned is not taken
    loop.finish()
    return loop


def _inner(records: Records, at: int, step: Step, plans: Sequence[Plan]) -> None:
    """The records of a loop in the loop."""
    op, cells = step.node.op, records.cells
    cells.nested = True
    if len(plans) != len(op.bodies):
        raise Unfit
    inputs = [records.in_order(records.values[slot]) for slot in step.inputs]
    kind: Any = _Scan if isinstance(op, Scan) else _While
    loop = kind(op, plans, records.kernel_of, cells)
    for cell, x in zip(loop.taken, inputs, strict=True):
        records.record(SET, cell, x.cell, x.offset)
    made = zip(step.outputs, step.node.outputs, strict=True)
    loop.within(records, inputs, [records.place(at, slot, t.type) for slot, t in made])
    if cells.size > LARGE:
        raise Unfit


class CompiledLoop:
    """A loop as a function of arrays. What runs it waits for the next run, one for each thread.

    It is made at the first call, which never comes for a loop in a loop that is compiled as a
    whole; where a step of its bodies is no compiled code, the loop is driven.
    """

    def __init__(self, new: Callable[[], _Scan | _While], driven: Kernel) -> None:
        self._new, self._driven, self._fits = new, driven, True
        self._idle: list[_Scan | _While] = []

    def __call__(self, *arrays: Any) -> Any:
        """The outputs."""
        loop = self._taken()
        if loop is None:
            return self._driven(*arrays)
        try:
            given = [np.require(a, requirements=("C", "A")) for a in arrays]
            return loop.run(given, self._driven)
        finally:
            self._idle.append(loop)

    def _taken(self) -> _Scan | _While | None:
        """What runs it; None if a step is no compiled code."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._new() if self._fits else None
        except Unfit:
            self._fits = False
            return None

    def release(self) -> None:
        """Give back the memory that waits for the next run."""
        self._idle.clear()


class _Loop:
    """Memory of one run at a time.

    moves  (cell, bytes) of rows that move on
    turns  see `stepping._turn`
    """

    def __init__(self, plans: Sequence[Plan], cells: Cells) -> None:
        if sum(p.arena for p in plans) > LARGE:
            raise Unfit
        self.cells = cells
        self.words: list[int] = []
        self.moves: list[int] = []
        self.turns: list[int] = []

    def finish(self) -> None:
        """All is noted."""
        self._code, self._moves, self._turns = (
            np.array(x, np.int64) for x in (self.words, self.moves, self.turns)
        )
        self.addresses = np.array(self.cells.addresses, np.int64)
        self._stop = self._code.ctypes.data + self._code.nbytes
        self._tables = (
            *(self.addresses.ctypes.data, self._code.ctypes.data, self._stop),
            *(self._moves.ctypes.data, len(self._moves) // 2),
            *(self._turns.ctypes.data, len(self._turns) // 4),
        )
        self._steps = stepper()
        self._block = 1 if self.cells.nested else FIRST

    def record(self, records: Records, last: int, most: int, done: Located) -> None:
        """The record that runs it as a loop in a loop. done: where the number of runs goes."""
        arrays = [np.array(x, np.int64) for x in (self.words, self.moves, self.turns)]
        self.cells.held += arrays
        code, moves, turns = (int(x.ctypes.data) for x in arrays)
        counts = len(self.moves) // 2, len(self.turns) // 4
        records.record(
            *(LOOP, code, code + arrays[0].nbytes, moves, counts[0], turns, counts[1]),
            *(last, most, done.cell, done.offset),
        )

    def steps(self, begin: int, end: int, last: int) -> int:
        """Runs from `begin` on, at most to `end`: how many are done."""
        done = begin
        while done < end:
            stop = min(done + self._block, end)
            start = perf_counter()
            done = self._steps(*self._tables, done, stop, last)
            if done < stop:
                break
            if perf_counter() - start < PAUSE:
                self._block *= 2
            elif self._block > 1:
                self._block //= 2
        return int(done)


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
            self.moves += [cell, sign * _size(t.type)]
        for i in range(c):
            step = sign * _size(program.inputs[i].type) if i in op.history else 0
            self.turns += [self.taken[i], self.left[i], self.following[i], step]
        self.words = Records(plan, cells, self.taken, self.left, kernel_of, _inner).words
        self.types = [t.type for t in program.outputs]

    def within(
        self, records: Records, inputs: Sequence[Located], outputs: Sequence[Located]
    ) -> None:
        """The records that run it in a loop, on what lies there."""
        op, c, cells = self.op, self.op.carries, self.cells
        count = op.runs_of([x.type for x in inputs])
        if not isinstance(count, int) or not count:
            raise Unfit
        begin, following = (count - 1, count - 2) if op.reverse else (0, 1)

        def row(cell: int, x: Located, at: int) -> None:
            records.record(SET, cell, x.cell, x.offset + at * x.strides[0])

        rows = [*self.taken[c : c + op.slices], *self.left[c:]]
        stacks = [*inputs[c : c + op.slices], *outputs[c : len(self.left)]]
        for cell, x in zip(rows, stacks, strict=True):
            row(cell, x, begin)
        kept = dict(zip(op.history, outputs[len(self.left) :], strict=True))
        for i, final in enumerate(outputs[:c]):
            if i not in kept:
                spare = plain(cells.buffer(_size(final.type)), final.type)
                one, two = (final, spare) if count % 2 else (spare, final)
                records.record(SET, self.left[i], one.cell, one.offset)
                records.record(SET, self.following[i], two.cell, two.offset)
                continue
            row(self.taken[i], kept[i], begin)
            records.copy(plain(self.taken[i], final.type), inputs[i])
            records.record(SET, self.left[i], final.cell, final.offset)
            records.record(SET, self.following[i], final.cell, final.offset)
            if count > 1:
                row(self.left[i], kept[i], following)
        done = plain(cells.buffer(8), tensor_type((), as_dtype("int64")))
        self.record(records, count, count, done)

    def run(self, arrays: Sequence[Array], driven: Kernel) -> Any:
        """The outputs."""
        op, c = self.op, self.op.carries
        carries, stacked, _ = op.parts(arrays)
        count = op.count(stacked)
        if not count:
            return driven(*arrays)
        begin = count - 1 if op.reverse else 0
        for cell, array in zip(self.taken, arrays, strict=True):
            self.addresses[cell] = array.ctypes.data
        for cell, array in zip(self.taken[c : c + op.slices], stacked, strict=True):
            self.addresses[cell] = _row(array, begin)
        rows = [_empty(t, count) for t in self.types[c:]]
        for cell, stack in zip(self.left[c:], rows, strict=True):
            self.addresses[cell] = _row(stack, begin)
        kept = {i: _empty(self.types[i], count) for i in op.history}
        spare = [np.empty_like(carries[i]) for i in range(c)]
        last = [self._begin(i, carries[i], spare[i], kept.get(i), begin, count) for i in range(c)]
        self.steps(0, count, count)
        made = (*last, *rows, *kept.values())
        return made[0] if len(made) == 1 else made

    def _begin(
        self, i: int, first: Array, spare: Array, kept: Array | None, begin: int, count: int
    ) -> Array:
        """Give a carry its places; the array in which the last run leaves it."""
        addresses, final = self.addresses, np.empty(first.shape, first.dtype)
        if kept is None:
            one, two = (final, spare) if count % 2 else (spare, final)
            addresses[self.left[i]], addresses[self.following[i]] = one.ctypes.data, two.ctypes.data
            return final
        kept[begin] = first
        addresses[self.taken[i]] = _row(kept, begin)
        following = begin - 1 if self.op.reverse else begin + 1
        addresses[self.left[i]] = _row(kept, following) if count > 1 else final.ctypes.data
        addresses[self.following[i]] = final.ctypes.data
        return final


class _While(_Loop):
    """The cells of a loop with a test. What runs took is copied into rows, where it is kept."""

    def __init__(self, op: While, plans: Sequence[Plan], kernel_of: KernelOf, cells: Cells) -> None:
        super().__init__(plans, cells)
        test, body = plans
        self.op, c = op, op.carries
        self.taken = [self.cells.open() for _ in body.program.inputs]
        self.left, self.following, self.kept = (
            [self.cells.open() for _ in places] for places in (range(c), range(c), op.history)
        )
        asked = Records(test, cells, self.taken, [None], kernel_of, _inner)
        (holds,) = asked.results
        self.words += [*asked.words, TEST, 4, holds.cell, holds.offset]
        self._asked = len(self.words)
        for i, cell in zip(op.history, self.kept, strict=True):
            size = _size(body.program.inputs[i].type)
            self.words += [COPY, 10, cell, 0, self.taken[i], 0, size, 1, 0, 0]
            self.moves += [cell, size]
        for i in range(c):
            self.turns += [self.taken[i], self.left[i], self.following[i], 0]
        self.words += Records(body, cells, self.taken, self.left, kernel_of, _inner).words

    def within(
        self, records: Records, inputs: Sequence[Located], outputs: Sequence[Located]
    ) -> None:
        """The records that run it in a loop, on what lies there."""
        if self.op.history or self.op.max_trips is not None:
            raise Unfit
        *carries, done = outputs
        for left, following, x in zip(self.left, self.following, carries, strict=True):
            for cell in (left, following):
                records.record(SET, cell, self.cells.buffer(_size(x.type)), 0)
        self.record(records, -1, MANY, done)
        for taken, x in zip(self.taken, carries, strict=False):
            records.copy(x, plain(taken, x.type))

    def run(self, arrays: Sequence[Array], driven: Kernel) -> Any:
        """The outputs."""
        op, addresses = self.op, self.addresses
        carries = arrays[: op.carries]
        for cell, array in zip(self.taken, arrays, strict=True):
            addresses[cell] = array.ctypes.data
        pairs = [(np.empty_like(x), np.empty_like(x)) for x in carries]
        for left, following, pair in zip(self.left, self.following, pairs, strict=True):
            addresses[left], addresses[following] = (x.ctypes.data for x in pair)
        stacks, trips = self._run([carries[i] for i in op.history])
        if not trips:
            return driven(*arrays)
        last = [pair[(trips - 1) % 2] for pair in pairs]
        return (*last, *[self._kept(stack, trips) for stack in stacks], np.array(trips))

    def _run(self, kept: Sequence[Array]) -> tuple[list[Array], int]:
        """What runs took, stacked, and how many there were."""
        trips, most = 0, self.op.max_trips
        room = ROOM if kept else MANY
        room = room if most is None else min(room, most)
        stacks = [np.empty((room, *x.shape), x.dtype) for x in kept]
        while True:
            for cell, stack in zip(self.kept, stacks, strict=True):
                self.addresses[cell] = _row(stack, trips)
            trips = self.steps(trips, room, -1)
            if trips < room:
                return stacks, trips
            if room == most:
                return stacks, self._ended(trips)
            room = 2 * room if most is None else min(2 * room, most)
            stacks = [
                np.concatenate([x, np.empty((room - trips, *x.shape[1:]), x.dtype)]) for x in stacks
            ]

    def _ended(self, trips: int) -> int:
        """trips, where the test is false behind the last run that may be."""
        table, code, _, moves, _, turns, _ = self._tables
        stop = code + 8 * self._asked
        more = self._steps(table, code, stop, moves, 0, turns, 0, 0, 1, -1)
        self.op.check_trips(bool(more), trips)
        return trips

    def _kept(self, stack: Array, trips: int) -> Array:
        """The rows of runs; the last one repeated where there may be more."""
        rows = trips if self.op.max_trips is None else self.op.max_trips
        found = np.empty((rows, *stack.shape[1:]), stack.dtype)
        found[:trips], found[trips:] = stack[:trips], stack[trips - 1]
        return found


def _size(type: TensorType) -> int:
    return nbytes(type) or 0


def _row(stack: Array, at: int) -> int:
    return int(stack.ctypes.data + at * stack.strides[0])


def _empty(type: TensorType, rows: int) -> Array:
    shape: Any = type.shape
    return np.empty((rows, *shape), type.dtype)
