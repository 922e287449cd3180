"""Loops that run while a condition on their carry is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...base.errors import ExecutionError
from ...base.lazy import LazyMethod
from ...ir.facts import Derivative
from ...ir.op import Op, Types
from ...ir.program import Program
from ...ir.types import TensorType, as_dtype, tensor_type
from .bodies import check_gives, check_takes, run
from .row_loops import Rows


class While(Op, interned=False):
    """A body, run on what the run before carries on as long as a test of that is true.

    Gradient: that of the iterations, from the last to the first.

    Inputs: what the first run takes, and constants of the loop. Outputs: what the last run carries
    on, what each run took, stacked, and how many runs there were.

    programs   test and body: (carries, constants) -> bool, or the next carries
    carries    how many carries there are
    max_trips  how many runs there may be; as many rows are kept then, the last one repeated
    history    the carries, by place, of which is kept what each run took
    at         where it was built
    hidden     how many carries, the first ones, are the loop's own
    """

    programs: tuple[Program, Program]
    carries: int
    max_trips: int | None
    history: tuple[int, ...]
    at: str
    hidden: int = 0
    revision = 2
    derivative = Derivative(linear_zero=False, sparse=True)
    body_names = ("test", "body")

    @property
    def bodies(self) -> tuple[Program, Program]:  # type: ignore[override]
        """The test, and what is run."""
        return self.programs

    def replace_bodies(self, bodies: Sequence[Any]) -> Op:
        """The same loop of another test and body."""
        return self.replace(programs=tuple(bodies))

    @classmethod
    def from_revision(cls, revision: int, attrs: dict[str, Any]) -> Op:
        """Older loops do not say which carries are their own."""
        return cls(**attrs)

    def returned(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """Neither its own carries nor what the gradient reads."""
        return outputs[self.hidden : self.carries]

    def infer(self, *types: TensorType) -> Types:
        kept = [types[i] for i in self.history]
        stacks = [tensor_type((self.max_trips, *t.shape), t.dtype) for t in kept]
        return (*types[: self.carries], *stacks, tensor_type((), as_dtype("int64")))

    def check_bodies(self, *types: TensorType) -> None:
        """Test and body take all that there is; they give a bool, and the carries."""
        test, body = self.programs
        check_takes(test, types)
        check_takes(body, types)
        check_gives(test, [tensor_type((), as_dtype("bool"))])
        check_gives(body, types[: self.carries])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return self.drive([partial(run, xp, body) for body in self.programs], arrays)

    def drive(self, bodies: Sequence[Callable[..., Any]], arrays: Sequence[Any]) -> Any:
        """The outputs of the loop by calls of test and body, as functions of arrays."""
        test, body = bodies
        carries, constants = list(arrays[: self.carries]), arrays[self.carries :]
        kept = [self._rows(i) for i in self.history]
        trips = 0
        while test(*carries, *constants)[0]:
            if trips == self.max_trips:
                self.check_trips(True, trips)
            for i, rows in zip(self.history, kept, strict=True):
                rows.put(trips, carries[i])
            carries = list(body(*carries, *constants))
            trips += 1
        if not trips:
            carries = [np.array(x) for x in carries]
        for i, rows in zip(self.history, kept, strict=True):
            rows.end(trips, carries[i])
        return (*carries, *[rows.array for rows in kept], np.array(trips))

    vjp: ClassVar[Any] = LazyMethod("graphgrad.differentiate.control.loops")

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        """A Loop, that counts its runs. One run too many is an index out of bounds."""
        test, body = self.programs
        first, constants = xs[: self.carries], xs[self.carries :]

        def run(to: Any, at: Any, going: Any, *carries: Any) -> Any:
            taken = carries[: self.carries]
            made = to.program(body, *taken, *constants)
            (more,) = to.program(test, *made, *constants)
            return (more, *made, to.Add(at, 1), *[taken[i] for i in self.history])

        types = self.infer(*map(to.type_of, xs))
        states = [(t.dtype, t.shape) for t in (*types[: self.carries], types[-1])]
        given = [("at", np.dtype("int64"), ()), ("going", np.dtype("bool"), ())]
        graph = to.subgraph(run, *given, *[("taken", *state) for state in states])
        (going,) = to.program(test, *xs)
        limit = None if self.max_trips is None else np.int64(self.max_trips + 1)
        kept = [tensor_type((None, *t.shape[1:]), t.dtype) for t in types[self.carries : -1]]
        start = (limit, going, *first, np.int64(0))
        made = to.Loop(*start, body=graph, types=(*types[: self.carries], types[-1], *kept))
        *last, trips = made[: self.carries + 1]
        if self.max_trips is None:
            return (*last, *made[self.carries + 1 :], trips)
        over = to.cast(to.Greater(trips, self.max_trips), "int64")
        last, trips = [_only(to, x, over) for x in last], _only(to, trips, over)
        ends = [last[i] for i in self.history]
        rows = [self._filled(to, *pair, trips) for pair in zip(made[self.carries + 1 :], ends)]
        return (*last, *rows, trips)

    def _filled(self, to: Any, rows: Any, end: Any, trips: Any) -> Any:
        """Rows for all runs that may be: the last one again, or the end where there was none."""
        rows = to.Concat(rows, to.Unsqueeze(end, [0]), axis=0)
        places = to.Min(to.value(np.arange(self.max_trips or 0)), to.Max(to.Sub(trips, 1), 0))
        return to.Gather(rows, places, axis=0)

    def _rows(self, i: int) -> Rows | _Growing:
        """Where what the runs take is kept."""
        type = self.programs[1].inputs[i].type
        return _Growing(type) if self.max_trips is None else Rows(self.max_trips, type)

    def check_trips(self, more: Any, trips: Any) -> Any:
        """trips; ExecutionError where the test is still true behind the last run that may be."""
        if more:
            raise self.too_many(trips)
        return trips

    def too_many(self, trips: Any) -> ExecutionError:
        """What is raised then."""
        return ExecutionError(
            f"the test of while_loop() at {self.at} is still true after max_trips={trips} runs"
        )

    def __repr__(self) -> str:
        test, body = self.programs
        return f"While(test {len(test.nodes)} nodes, body {len(body.nodes)} nodes)"


def _only(to: Any, x: Any, at: Any) -> Any:
    """x, if `at` is 0; an error of the runtime else."""
    return to.Gather(to.Unsqueeze(x, [0]), at, axis=0, shape=x.shape)


class _Growing:
    """Rows, of which nobody knows how many come."""

    def __init__(self, type: TensorType) -> None:
        self._type = type
        self._rows: list[Any] = []

    def put(self, at: int, row: Any) -> None:
        """This is the next one."""
        self._rows.append(row)

    def end(self, count: int, row: Any) -> None:
        """These are all."""

    @property
    def array(self) -> Any:
        """All rows."""
        stack = Rows(len(self._rows), self._type)
        for at, row in enumerate(self._rows):
            stack.put(at, row)
        return stack.array
