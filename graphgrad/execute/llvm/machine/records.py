"""The plan of a loop's body as records of `stepping`, where every step of it is compiled code."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....ir.node import Node
from ....ir.op import Op
from ....ir.types import DType, TensorType, tensor_type
from ....lower.alias import is_view, looks_into, nbytes
from ....lower.plan import Plan, Step
from ....ops.contract.products import MatMul
from ....ops.control import Cond, Scan, While
from ....ops.shape.joining import Concat
from ....ops.shape.slicing import Slice, Unslice
from ...run.arena import fixed_arrays
from ..kernels import library
from ..kernels.gemm import PACKED
from ..loops.groups import Kernel
from .words import (
    BranchRecord,
    CellPlace,
    CheckRecord,
    CopyRecord,
    FrameEntry,
    GroupRecord,
    Matrix,
    PackRecord,
    ProductRecord,
    RowMatrix,
    SetRecord,
    record_length,
    words,
)

STACKED = 16  # products of one step; of more, or larger ones, what calls them costs little
COPIES = 64  # records of one copy
WORK = 1 << 22  # multiplications
SLABS = 1 << 20  # bytes of packed matrices of a loop, and of those in it
LINE = 64
NUMPY = "is run by NumPy"
UNKNOWN = "has lengths that are only known at run time"

KernelOf = Callable[[Node], Kernel | None]
"""The compiled group that a node is, None where it is none."""
Inner = Callable[["Records", int, Step, Sequence[Plan]], None]
"""Makes the records of a loop in the loop, which is a step, of its plans."""


class Unfit(Exception):
    """Why something is not a compiled code: `<it> is run by NumPy`; told: it is among the words."""

    def __init__(self, why: str, told: bool = False) -> None:
        self.why, self.told = why, told


class Located(NamedTuple):
    """Where a value lies: behind the address in a cell, with these strides.

    rows: where the number of its rows lies, if only a run knows that
    """

    cell: int
    offset: int
    strides: tuple[int, ...]
    type: TensorType
    rows: Located | None = None

    @property
    def place(self) -> CellPlace:
        """Where it begins."""
        return CellPlace(self.cell, self.offset)

    @property
    def plain(self) -> bool:
        """Whether it lies in row-major order, as far as axes are longer than 1."""
        steps = zip(_lengths(self.type), self.strides, _row_major(self.type), strict=True)
        return all(n == 1 or s == wanted for n, s, wanted in steps)


def _views(x: Located, kernel: Callable[[Any], Any]) -> list[tuple[int, tuple[int, ...]]]:
    """Offset and strides of what a kernel shows of a value."""
    if any(s < 0 for s in x.strides):
        raise Unfit("looks at rows from the last on")
    extent = sum((n - 1) * s for n, s in zip(_lengths(x.type), x.strides, strict=True) if n)
    canvas = np.empty(extent + x.type.dtype.itemsize, np.uint8)
    shown = as_strided(canvas[: x.type.dtype.itemsize].view(x.type.dtype)[0:1].reshape(()))
    made = kernel(as_strided(shown, _lengths(x.type), x.strides))
    parts = made if isinstance(made, tuple) else (made,)
    if not all(looks_into(part, canvas) for part in parts):
        raise Unfit("makes a copy")
    return [(part.ctypes.data - canvas.ctypes.data, part.strides) for part in parts]


def _row_major(type: TensorType) -> tuple[int, ...]:
    shape: Any = type.shape
    steps, step = [], type.dtype.itemsize
    for length in reversed(shape):
        steps.append(step)
        step *= length
    return tuple(reversed(steps))


class Cells:
    """Addresses, and what lies there.

    size    bytes of that
    packs   whether there may be packed matrices, and
    packed  bytes of those beside it
    rows    rows that are kept of a loop in the loop that has a test, and
    kept    bytes of those, which nobody planned
    nested  whether some of it is for loops in the loop
    """

    def __init__(self, packs: bool, rows: int) -> None:
        self.packs, self.rows = packs, rows
        self.addresses: list[int] = []
        self.held: list[Any] = []
        self.size, self.packed, self.kept, self.nested = 0, 0, 0, False

    def open(self) -> int:
        """A cell that gets its address when the loop is run."""
        self.addresses.append(0)
        return len(self.addresses) - 1

    def of(self, array: Any) -> int:
        """A cell with the address of an array, which is held."""
        self.held.append(array)
        self.addresses.append(array.ctypes.data)
        return len(self.addresses) - 1

    def slab(self, size: int) -> int:
        """A cell with the address of so many bytes for a packed matrix."""
        self.packed += size
        self.addresses.append(self._room(size))
        return len(self.addresses) - 1

    def space(self, size: int) -> int:
        """The address of so many bytes, from the start of a cache line."""
        self.size += size
        return self._room(size)

    def _room(self, size: int) -> int:
        block = np.empty(size + LINE, np.uint8)
        self.held.append(block)
        return int(-(-block.ctypes.data // LINE) * LINE)

    def buffer(self, size: int) -> int:
        """A cell with the address of so many bytes."""
        self.addresses.append(self.space(size))
        return len(self.addresses) - 1


class Records:
    """The records of one plan, with an arena of their own.

    given    for each input of the program its cell
    same     the cells of those that are the same in each run
    wanted   for each output the cell of where it is to be written, None where it may lie anywhere
    results  for each output where it lies
    before   what is done once, before the first run
    """

    def __init__(
        self,
        plan: Plan,
        cells: Cells,
        given: Sequence[int],
        same: Sequence[int],
        wanted: Sequence[int | None],
        kernel_of: KernelOf,
        inner: Inner,
    ) -> None:
        self.cells, self.wanted, self.kernel_of, self.inner = cells, wanted, kernel_of, inner
        self._bodies: dict[Op, list[Plan]] = {}
        for _, body in plan.bodies:
            self._bodies.setdefault(body.op, []).extend(body.plans)
        sizes = [nbytes(t.type) for t in (*plan.program.inputs, *plan.program.outputs)]
        if not all(sizes):
            raise Unfit(UNKNOWN if None in sizes else "takes or returns empty arrays")
        self.words: list[int] = []
        self.before: list[int] = []
        self._same = frozenset(same)
        self._packs: dict[Any, int] = {}
        self.moving = set(given)
        self.values: dict[int, Located] = {}
        for at, (t, cell) in enumerate(zip(plan.program.inputs, given, strict=True)):
            self.values[at] = plain(cell, t.type)
        self._fix(plan)
        self._redirected = _written(plan, wanted)
        for at, step in enumerate(plan.steps):
            try:
                self._step(at, step)
            except Unfit as error:
                raise error if error.told else Unfit(_said(step.node, error.why), True) from None
        self.results = [self.values[r.slot] for r in plan.results]
        for value, target in zip(self.results, wanted, strict=True):
            if target is not None and value.cell != target:
                self.copy(plain(target, value.type), value)

    def _fix(self, plan: Plan) -> None:
        for slot, array in zip(range(-plan.fixed, 0), fixed_arrays(plan), strict=True):
            if array is None:
                continue
            type = tensor_type(array.shape, array.dtype)
            self.values[slot] = Located(self.cells.of(array), 0, array.strides, type)

    def _step(self, at: int, step: Step) -> None:
        for slot, made in step.fresh:
            cell = self._redirected.get((at, slot))
            if cell is None:
                cell = self.cells.buffer(nbytes(made) or 0)
            else:
                self.moving.add(cell)
            self.values[slot] = plain(cell, made)
        for slot, host, made in step.lodged:
            self.values[slot] = plain(self.values[host].cell, made)
        if isinstance(step.node.op, Scan | While):
            self.inner(self, at, step, self._bodies.get(step.node.op, []))
            return
        inputs = [self.values[slot] for slot in step.inputs]
        if any(x.rows is not None for x in inputs):
            raise Unfit(UNKNOWN)
        if isinstance(step.node.op, Cond):
            self._choice(at, step, inputs)
            return
        if step.node.op.bodies:
            raise Unfit(NUMPY)
        if not step.writes:
            self._look(step, inputs)
            return
        outputs = [self.values[slot] for slot in step.outputs]
        kernel = self.kernel_of(step.node)
        if kernel is not None:
            self._group(kernel, [*map(self.in_order, inputs), *outputs])
        elif type(step.node.op) is MatMul:
            self._product(step.node, *inputs, *outputs)
        elif type(step.node.op) is Concat:
            self._concat(step.node, inputs, *outputs)
        elif type(step.node.op) is Unslice:
            self._unslice(step.node.op, *inputs, *outputs)
        else:
            raise Unfit(NUMPY)

    def place(self, at: int, step: Step, slot: int, type: TensorType) -> Located:
        """Where the output of a loop in the loop lies: in its place, where it is wanted, or by
        itself."""
        size = nbytes(type)
        if not size:
            raise Unfit(
                "returns arrays that are empty, or whose lengths are only known at run time"
            )
        if step.writes:
            return self.values[slot]
        cell = self._redirected.get((at, slot))
        if cell is None:
            cell = self.cells.buffer(size)
        else:
            self.moving.add(cell)
        self.values[slot] = located = plain(cell, type)
        return located

    def _choice(self, at: int, step: Step, inputs: Sequence[Located]) -> None:
        """The records of both bodies, of which those of one are passed over."""
        op = step.node.op
        assert isinstance(op, Cond)
        plans = self._bodies.get(op, [])
        if len(plans) != len(op.bodies):
            raise Unfit(UNKNOWN)
        holds, *given = inputs
        pairs = zip(step.outputs, step.node.outputs, strict=True)
        wanted = [self.place(at, step, slot, t.type).cell for slot, t in pairs]
        given = [self.in_order(x) for x in given]
        then, other = (
            self._branch(plan, [given[i] for i in reads], wanted)
            for plan, reads in zip(plans, op.reads, strict=True)
        )
        here = record_length(BranchRecord)
        behind = here + len(other)
        end = words(BranchRecord(holds.place, behind, behind))
        self.record(BranchRecord(holds.place, here, here + len(then) + len(end)))
        self.words += [*then, *end, *other]

    def _branch(self, plan: Plan, given: Sequence[Located], wanted: Sequence[int]) -> list[int]:
        """The words that run a body on what lies there."""
        cells = [self.cells.open() for _ in given]
        pairs = zip(cells, given, strict=True)
        begin = [word for cell, x in pairs for word in words(SetRecord(cell, x.place))]
        body = Records(plan, self.cells, cells, (), wanted, self.kernel_of, self.inner)
        return begin + body.words

    def _look(self, step: Step, inputs: Sequence[Located]) -> None:
        """A view is an offset and strides; those that depend on numbers do not fit."""
        if not is_view(step.node) or len(inputs) != 1:
            raise Unfit(NUMPY)
        (x,) = inputs
        parts = _views(x, step.kernel)
        for slot, (offset, strides), t in zip(step.outputs, parts, step.node.outputs, strict=True):
            self.values[slot] = Located(x.cell, x.offset + offset, strides, t.type)

    def _unslice(self, op: Unslice, x: Located, out: Located) -> None:
        """Zeros, and x among them."""
        zeros = np.zeros(_lengths(out.type), out.type.dtype)
        self.cells.size += zeros.nbytes
        self.copy(out, plain(self.cells.of(zeros), out.type))
        ((offset, strides),) = _views(out, partial(Slice(op.key).kernel, np))
        self.copy(Located(out.cell, out.offset + offset, strides, x.type), x)

    def _group(self, kernel: Kernel, arrays: Sequence[Located]) -> None:
        shared, code = kernel
        if shared.blocks:
            raise Unfit("is so large that it runs in blocks")
        frame = self.cells.space(8 * len(arrays))
        places = np.frombuffer(_memory(frame, 8 * len(arrays)), np.int64)
        moving = []
        for at, x in enumerate(arrays):
            if x.cell in self.moving:
                moving.append(FrameEntry(at, x.cell, x.offset))
            else:
                places[at] = self.cells.addresses[x.cell] + x.offset
        partial, workspace = self.cells.space(shared.scratch), self.cells.space(shared.workspace)
        rows, end, *fits = (code.address(name) for name in shared.plain)
        self.cells.held.append(code)
        arrays_there = tuple(moving)
        for check in fits:
            self.record(CheckRecord(check, frame, arrays_there))
        self.record(GroupRecord(rows, end, shared.rows, partial, workspace, frame, arrays_there))

    def _product(self, node: Node, a: Located, b: Located, c: Located) -> None:
        op: Any = node.op
        if not all(nbytes(x.type) for x in (a, b, c)):
            raise Unfit("multiplies empty arrays")
        *stack, rows, cols = _lengths(c.type)
        depth = _lengths(a.type)[-2 if op.transpose_a else -1]
        if c.type.dtype.char not in "fd" or not library.fast():
            raise Unfit(NUMPY)
        if math.prod(stack) > STACKED or math.prod(stack) * rows * cols * depth >= WORK:
            raise Unfit("is so large that the cost of a call does not matter")
        ends = []
        for x, turned in ((a, op.transpose_a), (b, op.transpose_b)):
            near = x.strides[-2:]
            ends.append(near[::-1] if turned else near)
        gemm = library.gemm_address(c.type.dtype)
        for place in product(*map(range, stack)):
            at = [_within(x, place) for x in (a, b, c)]
            first = Matrix(a.cell, at[0], *ends[0])
            second = Matrix(b.cell, at[1], *ends[1])
            second = self._packed(c.type.dtype, second, cols, depth) or second
            to = RowMatrix(c.cell, at[2], c.strides[-2])
            self.record(ProductRecord(gemm, first, second, to, rows, cols, depth))

    def _packed(self, dtype: DType, second: Matrix, cols: int, depth: int) -> Matrix | None:
        """A matrix that is the same in each run, packed before the first; None where it is not."""
        if second.cell not in self._same:
            return None
        key = second, cols, depth
        if key not in self._packs:
            size = library.packed_bytes(dtype, depth, cols)
            if not self.cells.packs or self.cells.packed + size > SLABS:
                return None
            slab = self._packs[key] = self.cells.slab(size)
            pack = library.gemm_address(dtype, "pack")
            self.before += words(PackRecord(pack, second, slab, cols, depth))
        return Matrix(self._packs[key], 0, 0, PACKED)

    def _concat(self, node: Node, parts: Sequence[Located], out: Located) -> None:
        op: Any = node.op
        offset = out.offset
        for part in parts:
            self.copy(Located(out.cell, offset, out.strides, part.type), part)
            offset += _lengths(part.type)[op.axis] * out.strides[op.axis]

    def in_order(self, x: Located) -> Located:
        """The value in row-major order: itself, or a copy."""
        if x.rows is not None or x.plain:
            return x
        copy = plain(self.cells.buffer(nbytes(x.type) or 0), x.type)
        self.copy(copy, x)
        return copy

    def copy(self, to: Located, x: Located) -> None:
        """Runs of adjacent bytes, as many as lie evenly by one record."""
        axes = list(zip(_lengths(x.type), to.strides, x.strides, strict=True))
        axes = [axis for axis in axes if axis[0] != 1]
        size = x.type.dtype.itemsize
        while axes and axes[-1][1:] == (size, size):
            size *= axes.pop()[0]
        count, *steps = axes.pop() if axes else (1, 0, 0)
        if math.prod(n for n, _, _ in axes) > COPIES:
            raise Unfit("is copied in many small pieces")
        for place in product(*[range(n) for n, _, _ in axes]):
            ats = [sum(i * a[k] for i, a in zip(place, axes, strict=True)) for k in (1, 2)]
            target = CellPlace(to.cell, to.offset + ats[0])
            source = CellPlace(x.cell, x.offset + ats[1])
            self.record(CopyRecord(target, source, size, count, *steps))

    def record(self, record: NamedTuple) -> None:
        """Note what is done next."""
        self.words += words(record)


def _said(node: Node, why: str) -> str:
    """`Sort_3 = Sort(0), built at x.py:3, is run by NumPy`."""
    return f"{node.name} = {node.op!r}, built at {node.where}, {why}"


def plain(cell: int, type: TensorType) -> Located:
    """A value in row-major order behind the address in a cell."""
    return Located(cell, 0, _row_major(type), type)


def _lengths(type: TensorType) -> tuple[int, ...]:
    shape: Any = type.shape
    lengths: tuple[int, ...] = shape
    return lengths


def _within(x: Located, place: Sequence[int]) -> int:
    """The offset of a matrix in a stack, which broadcasts."""
    offset, lengths = x.offset, _lengths(x.type)[:-2]
    kept = place[len(place) - len(lengths) :]
    for at, length, stride in zip(kept, lengths, x.strides, strict=False):
        offset += at * stride if length > 1 else 0
    return offset


def _memory(address: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(address)


def _written(plan: Plan, wanted: Sequence[int | None]) -> dict[tuple[int, int], int]:
    """(step, slot) of a new array that an output is written to -> the output's cell."""
    cells: dict[tuple[int, int], int] = {}
    for result, cell in zip(plan.results, wanted, strict=True):
        if cell is None:
            continue
        for at in range(len(plan.steps) - 1, -1, -1):
            step = plan.steps[at]
            made = not step.writes and result.slot in step.outputs
            looped = made and isinstance(step.node.op, Scan | While | Cond)
            if looped or any(slot == result.slot for slot, _ in step.fresh):
                cells.setdefault((at, result.slot), cell)
                break
            if made:
                break  # a view
    return cells
