"""Runs of a program with a clock around every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import ExecutionError
from ...ir.node import Node
from ...ir.program import Program
from ...ir.types import Array
from ...lower.binding import Binding, Writer
from ...lower.plan import BodyPlans, Kernel
from ...ops.control import Scan, While
from ..backend import Backend


class Span(NamedTuple):
    """One call of what runs for a node.

    start, end  nanoseconds of `time.perf_counter_ns`
    bytes       of the arrays that it read and wrote; 0 for a view
    """

    node: Node
    start: int
    end: int
    bytes: int


class Run(NamedTuple):
    """One run of a program: its own start and end, and its steps in order."""

    start: int
    end: int
    spans: tuple[Span, ...]


class LoopRuns(NamedTuple):
    """How often a loop ran its body, and what the first run took; None if there was none."""

    node: Node
    runs: int
    first: tuple[Array, ...] | None


def timed_runs(
    backend: Backend,
    program: Program,
    arrays: Sequence[Array],
    repeat: int,
    clock: Clock | None = None,
) -> list[Run]:
    """The program run `repeat` times, as the backend runs it, after two runs that do not count.

    The first of these makes what later runs have ready: memory, views into it. clock: a new one,
    which knows the loops then.
    ExecutionError for a backend that does not bind its nodes one by one.
    """
    if backend.bind() is None:
        raise ExecutionError(
            f"the backend {backend.name!r} runs a program as a whole, so its steps cannot be "
            "timed; use a profiler of its own, or compile with backend='numpy'"
        )
    clock = Clock() if clock is None else clock
    timing: Any = copy(backend)
    bind: Any = backend.bind
    timing.bind = lambda: TimedBinding(bind(), clock)
    call = timing.compile(program)
    call(*arrays)
    with clock.noting():
        call(*arrays)
    runs = []
    for _ in range(repeat):
        clock.stamps.clear()
        start = perf_counter_ns()
        call(*arrays)
        runs.append(clock.run(start, perf_counter_ns()))
    return runs


class Clock:
    """What timed kernels write down: in one run which they are, in the others only times.

    steps   node and bytes of each step, in order
    stamps  start and end of each step of a run
    loops   those of the program
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Node, int]] = []
        self.stamps: list[int] = []
        self.loops: list[LoopRuns] = []
        self._noting = False

    @contextmanager
    def noting(self) -> Iterator[None]:
        """The run in this block says which steps there are."""
        self._noting = True
        yield
        self._noting = False

    def timed(self, call: Kernel, node: Node, returns: bool) -> Kernel:
        """A kernel or a writer with the clock around it. returns: what it returns is the result."""
        stamp, several = self.stamps.append, len(node.outputs) > 1

        def run(*arrays: Any) -> Any:
            start = perf_counter_ns()
            made = call(*arrays)
            end = perf_counter_ns()
            stamp(start)
            stamp(end)
            if self._noting:
                results = () if not returns else made if several else (made,)
                touched = () if node.op.memory.view else (*arrays, *results)
                self.steps.append((node, sum(a.nbytes for a in touched)))
                if isinstance(node.op, Scan | While):
                    taken = arrays[: len(node.inputs)]
                    self.loops.append(_loop_runs(node, node.op, taken, made))
            return made

        return run

    def run(self, start: int, end: int) -> Run:
        """What the stamps say."""
        times = zip(self.stamps[::2], self.stamps[1::2], strict=True)
        steps = zip(self.steps, times, strict=True)
        return Run(start, end, tuple([Span(n, *when, size) for (n, size), when in steps]))


def _loop_runs(node: Node, op: Scan | While, arrays: Sequence[Array], made: Any) -> LoopRuns:
    """What a loop did, from what it took and made."""
    if isinstance(op, While):
        runs, first = int(made[-1]), arrays
    else:
        carries, stacked, constants = op.parts(arrays)
        runs = op.count(stacked)
        at = slice(-1, None) if op.reverse else slice(0, 1)
        first = (*carries, *(x[at].reshape(x.shape[1:]) for x in stacked if runs), *constants)
    return LoopRuns(node, runs, tuple([np.array(x) for x in first]) if runs else None)


class TimedBinding:
    """A binding whose kernels and writers are timed."""

    def __init__(self, binding: Binding, clock: Clock) -> None:
        self._binding = binding
        self._clock = clock

    def writer(self, node: Node) -> Writer | None:
        """The writer, timed."""
        writer = self._binding.writer(node)
        if writer is None:
            return None
        kernel, overwrites = writer
        return self._clock.timed(kernel, node, returns=False), overwrites

    def kernel(self, node: Node) -> Kernel:
        """The kernel, timed."""
        return self._clock.timed(self._binding.kernel(node), node, returns=True)

    def quiet(self, node: Node) -> bool:
        """As it is."""
        return self._binding.quiet(node)

    def lean(self, node: Node) -> bool:
        """As it is."""
        return self._binding.lean(node)

    def bodies(self, node: Node) -> tuple[BodyPlans, ...]:
        """As they are."""
        return self._binding.bodies(node)

    def release(self) -> None:
        """As it is."""
        self._binding.release()
