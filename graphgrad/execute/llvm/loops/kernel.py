"""A group as functions that Python calls.

A small group is one function of its arrays. A large one is `part`, which runs one block of rows and
gives the interpreter lock back meanwhile, and `finish`, which puts together what blocks leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from ....ir.types import DType
from ....lower.gathers import Range
from ....lower.items import lower
from ....lower.loop_ir import LoopGroup
from ..emit.arrays import Unlocked, argument, built_in, number
from ..emit.module import Module
from ..emit.text import Text, function
from .ends import Ends
from .expressions import DIALECT, HELPERS
from .inner import Inner
from .nest import Nest
from .outer import Outer
from .partition import divide
from .ranges import write_check

ON_STACK = 2048  # bytes to work in; more is taken from the heap
ON_HEAP = 1 << 16  # bytes of partial results from which on a group is run in blocks
INLINED = 12  # calls of functions in a kernel up to which they are written out
LINE = 64
CONTIGUOUS = 0x101  # NumPy's flags: row-major and aligned
NDARRAY = "graphgrad_ndarray"  # numpy.ndarray, as the linker knows it
TYPE_AT, DATA_AT, FLAGS_AT = 8, 16, 64  # bytes from the start of an array object

DECLARATIONS = (
    f"@{NDARRAY} = external global i8",
    "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "declare ptr @PyErr_NoMemory()",
    "declare ptr @malloc(i64)",
    "declare void @free(ptr)",
    "declare i64 @llvm.smin.i64(i64, i64)",
)


class Shared(NamedTuple):
    """What Python needs to know of a kernel.

    name        of its functions
    inputs      how many arrays it reads; the outputs come after them
    blocks      how many parts it is run in; 0 where it is one function
    scratch     bytes for the partial results of all blocks
    overwrites  (output, input) places that may be one buffer
    rows, step  how many rows there are, and in a block
    run         the elements of a row, or of all that are cut into rows, where row by row they are
                in the order of the group's shape and nothing is reduced; else 0
    workspace   bytes that rows need to work in
    ranges      the indices among the inputs that have to be in range
    """

    name: str
    inputs: int
    blocks: int
    scratch: int
    overwrites: tuple[tuple[int, int], ...]
    rows: int
    step: int
    run: int
    workspace: int
    ranges: tuple[Range, ...]

    @property
    def built_in(self) -> tuple[str, ...]:
        """The functions that take Python's objects."""
        return (f"{self.name}.part", f"{self.name}.finish") if self.blocks else (self.name,)

    @property
    def plain(self) -> tuple[str, ...]:
        """The functions that take addresses: see `Loops` and `Ends`, and `_fits` for indices."""
        checks = self.ranges and not self.blocks
        return f"{self.name}.rows", f"{self.name}.end", *((f"{self.name}.fits",) * bool(checks))


def write_kernel(group: LoopGroup, module: Module, name: str) -> Shared:
    """Add the functions of a group to a module."""
    lowered = lower(group, DIALECT)
    nest = Nest(lowered, group.space.row)
    blocks = divide(nest, module.target)
    outside = [i for i in range(len(nest.items)) if i not in nest.inner]
    computed = chain(outside, *[step.computes for step in nest.passes])
    calls = sum(nest.items[i].name in HELPERS for i in computed)
    how = (module, nest, blocks, len(group.inputs), calls <= INLINED)
    rows, ends = (Outer if nest.outer_lanes else Inner)(*how), Ends(*how)
    module.add(f"{name}.rows", rows.write(f"{name}.rows"))
    module.add(f"{name}.end", ends.write(f"{name}.end"))
    scratch = blocks.bytes * blocks.number
    apart = blocks.number > 1 or scratch > ON_HEAP
    pairs = tuple(nest.overwrites())
    run = 0 if nest.outer_lanes or nest.reduced else nest.size(nest.row_axes)
    shared = Shared(
        name,
        len(group.inputs),
        blocks.number if apart else 0,
        scratch,
        pairs,
        blocks.rows,
        blocks.step,
        run,
        rows.workspace.size,
        lowered.ranges,
    )
    dtypes = [t.dtype for t in group.inputs]
    if len(shared.plain) > 2:
        module.add(shared.plain[2], _fits(shared, dtypes))
    for symbol, text in _Entries(shared, len(nest.outputs), dtypes).write():
        module.add(symbol, text)
    return shared


def _fits(shared: Shared, dtypes: Sequence[DType]) -> str:
    """fits(frame): whether all indices are in range, of arrays whose addresses are in a frame."""
    t = Text()
    for one in shared.ranges:
        data = t.load("ptr", t.at("%frame", 8 * one.place))
        write_check(t, data, dtypes[one.place], one, partial(_unless, t))
    t.do("br label %well")
    t.label("other")
    t.do("ret i1 false")
    t.label("well")
    return function("i1", shared.plain[2], "ptr %frame", t, "true", internal=False)


class _Entries:
    """The functions for Python. They put the addresses of the arrays' data into a frame."""

    def __init__(self, shared: Shared, outputs: int, dtypes: Sequence[DType]) -> None:
        self.shared = shared
        self.dtypes = dtypes
        self.arrays = shared.inputs + outputs

    def write(self) -> list[tuple[str, str]]:
        """(name, text) of each."""
        if not self.shared.blocks:
            return [(self.shared.name, self._whole())]
        texts = (self._part(), self._finish())
        return list(zip(self.shared.built_in, texts, strict=True))

    def _begun(self) -> Text:
        t = Text()
        t.do(f"%frame = alloca ptr, i64 {self.arrays}")
        return t

    def _fill(self, t: Text) -> None:
        def one(place: str) -> None:
            data = t.load("ptr", t.at(_array(t, place), DATA_AT))
            where = t(f"getelementptr ptr, ptr %frame, i64 {place}")
            t.do(f"store ptr {data}, ptr {where}")

        t.loop(0, self.arrays, 1, one)

    def _call(self, t: Text, begin: str, end: str, partial: str, workspace: str) -> None:
        given = f"ptr %frame, i64 {begin}, i64 {end}, ptr {partial}, ptr {workspace}"
        t.do(f"call void @{self.shared.name}.rows({given})")

    def _whole(self) -> str:
        """k(*arrays); %self is called instead where an input does not lie as it should, and where
        an index is out of range.
        """
        t = self._begun()
        memory = _Memory(t, self.shared.scratch + LINE + self.shared.workspace)
        if self.shared.inputs:
            t.loop(0, self.shared.inputs, 1, lambda place: _check(t, place))
        for one in self.shared.ranges:
            data = t.load("ptr", t.at(argument(t, one.place), DATA_AT))
            write_check(t, data, self.dtypes[one.place], one, partial(_unless, t))
        self._fill(t)
        start = memory.take()
        workspace = t.at(start, -(-self.shared.scratch // LINE) * LINE)
        self._call(t, "0", str(self.shared.rows), start, workspace)
        t.do(f"call void @{self.shared.name}.end(ptr %frame, ptr {start})")
        memory.free()
        last = argument(t, self.arrays - 1)
        if self.shared.inputs:
            done = t.new("done")
            t.do(f"br label %{done}")
            t.label("other")
            again = t("call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %count, ptr null)")
            t.do(f"ret ptr {again}")
            t.label(done)
        return built_in(self.shared.name, t, last)

    def _part(self) -> str:
        """part(*arrays, scratch, i): block i."""
        t = self._begun()
        memory = _Memory(t, self.shared.workspace)
        self._fill(t)
        scratch, block = argument(t, self.arrays), number(t, self.arrays + 1)
        data = t.load("ptr", t.at(scratch, DATA_AT))
        begin = t.mul(block, self.shared.step)
        end = t.least(t.add(begin, self.shared.step), self.shared.rows)
        partial = t.at(data, t.mul(block, self.shared.scratch // self.shared.blocks))
        workspace = memory.take()
        unlocked = Unlocked(t, "true")
        unlocked.start()
        self._call(t, begin, end, partial, workspace)
        unlocked.stop()
        memory.free()
        return built_in(f"{self.shared.name}.part", t, scratch)

    def _finish(self) -> str:
        """finish(*arrays, scratch)."""
        t = self._begun()
        self._fill(t)
        scratch = argument(t, self.arrays)
        data = t.load("ptr", t.at(scratch, DATA_AT))
        t.do(f"call void @{self.shared.name}.end(ptr %frame, ptr {data})")
        return built_in(f"{self.shared.name}.finish", t, scratch)


class _Memory:
    """Bytes to work in, on the stack if they are few; MemoryError where there are none."""

    def __init__(self, t: Text, size: int) -> None:
        self.t, self.size = t, size
        self._block = ""
        if size <= ON_STACK:
            t.do(f"%memory = alloca i8, i64 {max(size, 1)}, align {LINE}")

    def take(self) -> str:
        """Where they are: the start of a cache line."""
        t = self.t
        if self.size <= ON_STACK:
            return "%memory"
        self._block = t(f"call ptr @malloc(i64 {self.size + LINE})")
        none, some = t.new("none"), t.new("some")
        t.do(f"br i1 {t(f'icmp eq ptr {self._block}, null')}, label %{none}, label %{some}")
        t.label(none)
        t.do(f"ret ptr {t('call ptr @PyErr_NoMemory()')}")
        t.label(some)
        address = t.add(t(f"ptrtoint ptr {self._block} to i64"), LINE - 1)
        return t(f"inttoptr i64 {t(f'and i64 {address}, {-LINE}')} to ptr")

    def free(self) -> None:
        """Give them back."""
        if self._block:
            self.t.do(f"call void @free(ptr {self._block})")


def _array(t: Text, place: str) -> str:
    return t.load("ptr", t(f"getelementptr ptr, ptr %args, i64 {place}"))


def _check(t: Text, place: str) -> None:
    """Go to %other unless an argument is an array that lies in order."""
    array = _array(t, place)
    _unless(t, t(f"icmp eq ptr {t.load('ptr', t.at(array, TYPE_AT))}, @{NDARRAY}"))
    flags = t(f"and i32 {t.load('i32', t.at(array, FLAGS_AT))}, {CONTIGUOUS}")
    _unless(t, t(f"icmp eq i32 {flags}, {CONTIGUOUS}"))


def _unless(t: Text, condition: str) -> None:
    fine = t.new("fine")
    t.do(f"br i1 {condition}, label %{fine}, label %other")
    t.label(fine)
