"""Loops that run as long as a test of what they carry on is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.errors import ExecutionError
from ...ir.op import Op, Types
from ...ir.program import Program
from ...ir.types import TensorType, as_dtype, tensor_type
from .bodies import check_gives, check_takes, run
from .scan import Rows


class While(Op, interned=False):
    """A body, run on what the run before carries on as long as a test of that is true.

    Inputs: what the first run takes, and constants of the loop. Outputs: what the last run carries
    on, what each run took, stacked, and how many runs there were.

    programs   test and body: (carries, constants) -> bool, or the next carries
    carries    how many carries there are
    max_trips  how many runs there may be; as many rows are kept then, the last one repeated
    history    the carries, by place, of which is kept what each run took
    at         where it was built
    """

    programs: tuple[Program, Program]
    carries: int
    max_trips: int | None
    history: tuple[int, ...]
    at: str
    sparse = True
    linear_zero = False
    body_names = ("test", "body")

    @property
    def bodies(self) -> tuple[Program, Program]:  # type: ignore[override]
        """The test, and what is run."""
        return self.programs

    def replace_bodies(self, bodies: Sequence[Any]) -> Op:
        """The same loop of another test and body."""
        return self.replace(programs=tuple(bodies))

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

    def _rows(self, i: int) -> Rows | _Growing:
        """Where what the runs take is kept."""
        type = self.programs[1].inputs[i].type
        return _Growing(type) if self.max_trips is None else Rows(self.max_trips, type)

    def check_trips(self, more: Any, trips: Any) -> Any:
        """trips; ExecutionError where the test is still true behind the last run that may be."""
        if more:
            raise ExecutionError(
                f"the test of while_loop() at {self.at} is still true after max_trips={trips} runs"
            )
        return trips

    def __repr__(self) -> str:
        test, body = self.programs
        return f"While(test {len(test.nodes)} nodes, body {len(body.nodes)} nodes)"


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
