"""Loops over the rows of tensors, with a carry from one iteration to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from ...base.errors import ExecutionError, ShapeError
from ...base.lazy import LazyMethod
from ...ir.op import Op, Types
from ...ir.program import Program
from ...ir.types import Dim, TensorType, as_dtype, is_negative, tensor_type
from ..base import Derivative, Full, OnesLike, Tensor, apply, build, cast
from ..onnx_loops import scanned
from ..reduce.cumulative import CumSum
from ..reduce.reductions import sum
from .bodies import BodyGraph, check_gives, check_takes, constants_of, own_indices, run


class Scan(Op, interned=False):
    """A body, run for each row of stacked tensors on what the run before carries on.

    Gradient: a reversed scan that recomputes each iteration from its inputs [Griewank and Walther
        2008, "Evaluating Derivatives", 12.2].

    Inputs: what the first run takes, stacked tensors, and constants of the loop, which all runs
    read. Outputs: what the last run carries on, the rows that the runs made, stacked, and what
    each run took, stacked, which the gradient reads.

    programs  the body: (carries, slices, constants) -> (next carries, rows)
    carries   how many carries there are
    slices    how many stacked tensors
    length    how many runs; None: as many as the stacked tensors have rows
    reverse   from the last row to the first; a run writes its rows where it read them
    history   the carries, by place, of which is kept what each run took
    hidden    how many carries, the first ones, are the loop's own
    """

    programs: tuple[Program]
    carries: int
    slices: int
    length: Any
    reverse: bool
    history: tuple[int, ...]
    hidden: int = 0
    revision = 2
    derivative = Derivative(linear_zero=False, sparse=True)
    body_names = ("body",)

    @property
    def bodies(self) -> tuple[Program]:  # type: ignore[override]
        """What is run."""
        return self.programs

    def replace_bodies(self, bodies: Sequence[Any]) -> Op:
        """The same loop of another body."""
        return self.replace(programs=tuple(bodies))

    @classmethod
    def from_revision(cls, revision: int, attrs: dict[str, Any]) -> Op:
        """Older loops do not say which carries are their own."""
        return cls(**attrs)

    def returned(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """Neither its own carries nor what the gradient reads."""
        return outputs[self.hidden : len(self.programs[0].outputs)]

    def infer(self, *types: TensorType) -> Types:
        (body,) = self.programs
        length = self.runs_of(types)
        made = [t.type for t in body.outputs]
        kept = [types[i] for i in self.history]
        stacks = [tensor_type((length, *t.shape), t.dtype) for t in (*made[self.carries :], *kept)]
        return (*types[: self.carries], *stacks)

    def check_bodies(self, *types: TensorType) -> None:
        """The body takes carries, rows and constants, and gives carries first."""
        (body,) = self.programs
        carries, slices, constants = self.parts(types)
        rows = [tensor_type(t.shape[1:], t.dtype) for t in slices]
        check_takes(body, [*carries, *rows, *constants])
        check_gives(body, carries)

    def runs_of(self, types: Sequence[TensorType]) -> Dim:
        """How often the body runs for inputs of these types, as far as that is known."""
        lengths = [t.shape[0] for t in types[self.carries : self.carries + self.slices]]
        known: dict[Dim, None] = dict.fromkeys([self.length, *lengths])
        numbers = [n for n in known if isinstance(n, int)]
        if self.length is not None and is_negative(self.length):
            raise ShapeError(f"a loop runs {self.length} times")
        if len(numbers) > 1:
            raise ShapeError(f"a loop needs the same number of rows in every array, got {numbers}")
        return next(iter(numbers), next((n for n in known if n is not None), None))

    def parts(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Carries, slices and constants of what is given to the node, or to the body."""
        middle = self.carries + self.slices
        carries, slices = items[: self.carries], items[self.carries : middle]
        return list(carries), list(slices), list(items[middle:])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return self.drive([partial(run, xp, body) for body in self.programs], arrays)

    def drive(self, bodies: Sequence[Callable[..., Any]], arrays: Sequence[Any]) -> Any:
        """The outputs of the loop by calls of the body, as a function of arrays."""
        count = self.count(self.parts(arrays)[1])
        stacks = [Rows(count, type) for type in self._stacked_types()]
        carries = self._run(bodies, arrays, count, stacks)
        if not count:
            carries = [np.array(x) for x in carries]
        made = (*carries, *(stack.array for stack in stacks))
        return made[0] if len(made) == 1 else made

    vjp: ClassVar[Any] = LazyMethod("graphgrad.differentiate.control.loops")

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        """A loop over no rows of its own goes over zeros."""
        (body,) = self.programs
        carries, stacked, constants = self.parts(xs)
        if not stacked:
            stacked = [to.value(np.zeros(self.length or 0, np.int64))]

        def run(to: Any, *taken: Any) -> Any:
            made = to.program(body, *taken[: self.carries + self.slices], *constants)
            return (*made, *[taken[i] for i in self.history])

        return scanned(to, run, carries, stacked, self.infer(*map(to.type_of, xs)), self.reverse)

    def fill(
        self, bodies: Sequence[Callable[..., Any]], arrays: Sequence[Any], outs: Sequence[Any]
    ) -> None:
        """Write the outputs of the loop, of which all lengths are known, to arrays."""
        count = self.count(self.parts(arrays)[1])
        pairs = zip(self._stacked_types(), outs[self.carries :], strict=True)
        carries = self._run(bodies, arrays, count, [Rows(count, *pair) for pair in pairs])
        for out, last in zip(outs, carries, strict=False):
            out[...] = last

    def _stacked_types(self) -> list[TensorType]:
        """Of one row of each output behind the carries."""
        (body,) = self.programs
        rows = [t.type for t in body.outputs[self.carries :]]
        return [*rows, *[body.inputs[i].type for i in self.history]]

    def _run(
        self,
        bodies: Sequence[Callable[..., Any]],
        arrays: Sequence[Any],
        count: int,
        stacks: Sequence[Rows],
    ) -> Sequence[Any]:
        """What the last run carries on. stacks: where rows go, and then what runs took."""
        carries, stacked, constants = self.parts(arrays)
        c, body = self.carries, bodies[0]
        end = len(stacks) - len(self.history)
        rows, kept = stacks[:end], stacks[end:]
        put = [(i, stack.put) for i, stack in zip(self.history, kept, strict=True)]
        write = [stack.put for stack in rows]
        places = range(count - 1, -1, -1) if self.reverse else range(count)
        for at, taken in zip(places, self._taken(stacked), strict=False):
            for i, keep in put:
                keep(at, carries[i])
            outputs = body(*carries, *taken, *constants)
            carries = outputs[:c]
            for store, row in zip(write, outputs[c:], strict=True):
                store(at, row)
        return carries

    def _taken(self, stacked: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of stacked arrays, side by side in the order of the runs."""
        if not stacked:
            return repeat(())
        turned = [x[::-1] for x in stacked] if self.reverse else stacked
        return zip(*map(_rows_of, turned), strict=True)

    def count(self, stacked: Sequence[Any]) -> int:
        """How many runs there are over these arrays."""
        lengths = {len(x) for x in stacked} | ({self.length} if self.length is not None else set())
        if len(lengths) > 1:
            raise ExecutionError(
                f"a loop needs the same number of rows in every array, got {sorted(lengths)}"
            )
        (count,) = lengths
        return count

    def __repr__(self) -> str:
        (body,) = self.programs
        many = "" if self.length is None else f"{self.length} x "
        back = ", reverse" if self.reverse else ""
        return f"Scan({many}{len(body.nodes)} nodes{back})"


def _rows_of(stack: Any) -> Iterator[Any]:
    """The rows as arrays, those without axes too."""
    return iter(stack) if np.ndim(stack) > 1 else (stack[i, ...] for i in range(len(stack)))


class Rows:
    """Rows in one array, which is given, or made when the first one comes."""

    def __init__(self, count: int, type: TensorType, array: Any = None) -> None:
        self.count = count
        self._type = type
        self._made = array

    def put(self, at: int, row: Any) -> None:
        """This is the row at that place."""
        if self._made is None:
            self._made = np.empty((self.count, *np.shape(row)), self._type.dtype)
        self._made[at] = row

    def end(self, count: int, row: Any) -> None:
        """So many rows came. The last one is repeated; this row, where there was none."""
        for at in range(count, self.count):
            self.put(at, self._made[count - 1] if count else row)

    @property
    def array(self) -> Any:
        """All rows; of no row, lengths that are not known are 0."""
        if self._made is None:
            shape = [d if isinstance(d, int) else 0 for d in self._type.shape]
            return np.empty((0, *shape), self._type.dtype)
        return self._made


def row_numbers(count: Dim, stack: Tensor | None = None) -> Tensor:
    """0, 1, 2, ...: the number of every row of a stack, or of so many."""
    if stack is not None:
        count = stack.shape[0]
    if count is not None:
        ones = apply(Full((count,), 1, as_dtype("int64")))
    else:
        assert stack is not None
        column = stack[:, :0] if stack.ndim > 1 else stack
        counted = sum(column, axis=tuple(range(1, stack.ndim))) if stack.ndim > 1 else column
        ones = cast(apply(OnesLike(), counted), "int64")
    return apply(CumSum(0, False, True), ones)


def looped(
    body: BodyGraph,
    given: Sequence[Tensor],
    after: Sequence[Tensor],
    rows: Sequence[Tensor],
    inputs: Sequence[Tensor],
    length: Any,
    reverse: bool,
    hidden: int | None = None,
) -> tuple[Tensor, ...]:
    """The outputs of a scan over a body that is built.

    given: what the body takes, carries and then slices; inputs: the same of the node; hidden: how
    many carries are the loop's own, where it is the whole of the body; None: it is a part of it.
    """
    outputs = [*after, *rows]
    own = own_indices(body, outputs, given)
    if own:
        c = len(after)
        numbers = row_numbers(length, *inputs[c : c + 1])
        given, inputs = [*given, *own], [*inputs, *[numbers for _ in own]]
    constants = constants_of(body, outputs, given, whole=hidden is not None)
    program = Program([*given, *constants], outputs)
    c = len(after)
    op = Scan((program,), c, len(given) - c, length, reverse, tuple(range(c)), hidden or 0)
    return build(op, (*inputs, *constants.values())).outputs
