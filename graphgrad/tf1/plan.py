"""What a run does: stretches of compiled ops, and steps of Python between them.

A plan is a tree that grows with what comes in. A `Point` is a place in the order of ops, with all
that is known there; from it lead `Stretch`es, one for each set of small numbers that decided shapes
and branches; behind each is what Python does next, and the points for the shapes of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.extend import Program, load_backend, one_call_per_node, optimise

from .definition import definition_of
from .errors import InvalidArgumentError, OpError
from .graph import Operation, Tensor
from .schedule import needed_ops, ordered
from .trace import DEAD, SPECIAL, Break, Trace, variable_of

__all__ = ["Plan"]

COMPILED_AT = 8  # the run for which a program is compiled
VARIANTS = 64  # sets of small numbers that are kept at one point
Array = Any


class Compiled:
    """A program as a function: node by node at first, compiled when it is run again and again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runs = 0
        self._slow = one_call_per_node(program, load_backend("numpy").kernels)
        self._fast: Callable[..., Sequence[Array]] | None = None

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The outputs for these inputs."""
        if self._fast is not None:
            return self._fast(*arrays)
        self.runs += 1
        if self.runs < COMPILED_AT:
            with np.errstate(all="ignore"):
                return self._slow(*arrays)
        backend = load_backend("auto")
        self._fast = backend.compile(optimise(self.program, joining=backend.joining)[0])
        return self._fast(*arrays)


class Point:
    """A place in the order, and what is known there whatever the run."""

    def __init__(self, position: int, known: dict[Tensor, Any], dead: set[Operation]) -> None:
        self.position, self.known, self.dead = position, known, dead
        self.variants: list[Stretch] = []

    def stretch(self, arrays: dict[Tensor, Array]) -> Stretch | None:
        """The stretch that was traced for these small numbers."""
        for found in self.variants:
            if not found.guards or all(
                arrays[t].shape == a.shape and arrays[t].tobytes() == a.tobytes()
                for t, a in found.guards
            ):
                return found
        return None


class Stretch:
    """Ops that run as one program.

    guards    (tensor, value) for which it was traced
    sources   where its inputs come from
    tensors, variables  what its outputs are
    constants, written  tensors, and new values of variables, that are the same in every run
    host      what Python does behind it, or None
    """

    guards: list[tuple[Tensor, Array]]
    sources: list[Any]
    tensors: list[Tensor]
    variables: list[Operation]
    constants: dict[Tensor, Array]
    written: dict[Operation, Array]
    call: Compiled | None
    host: Operation | None
    last: bool
    arguments: list[Tensor]
    next: tuple[int, Trace]

    def __init__(self) -> None:
        self.points: dict[Any, Point] = {}


class Plan:
    """The ops that fetches need beyond feeds, and how they were run so far."""

    def __init__(
        self, fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
    ) -> None:
        self.fetches = list(fetches)
        self.order = ordered(needed_ops(fetches, targets, feeds), feeds)
        self._last_use: dict[Tensor, int] = {}
        for position, op in enumerate(self.order):
            for t in op._inputs:
                self._last_use[t] = position
        for t in fetches:
            self._last_use[t] = len(self.order)
        self._roots: dict[Any, Point] = {}
        self._variables = [op for op in self.order if op.type == "VariableV2"]
        self._version = -1
        self._kinds: Any = None

    def run(self, run: Any, arrays: dict[Tensor, Array]) -> None:
        """Run: results are added to arrays, new values of variables to the run's."""
        point = self._root(run, arrays)
        while True:
            stretch = point.stretch(arrays)
            if stretch is None:
                stretch = self._traced(point, run, arrays)
            self._execute(stretch, run, arrays)
            if stretch.last:
                return
            key: Any = None
            if stretch.host is not None:
                made = _on_host(run, stretch.host, [arrays[t] for t in stretch.arguments])
                for t, a in zip(stretch.host.outputs, made, strict=True):
                    arrays.setdefault(t, a)
                key = tuple([(a.shape, a.dtype.char) for a in made])
            point = stretch.points[key] if key in stretch.points else self._after(stretch, key)

    def _root(self, run: Any, arrays: dict[Tensor, Array]) -> Point:
        if run.version != self._version:
            self._kinds = tuple([run.kind_of(v) for v in self._variables])
            self._version = run.version
        key = (self._kinds, *[(a.shape, a.dtype.char) for a in arrays.values()])
        found = self._roots.get(key)
        if found is None:
            found = self._roots[key] = Point(0, {}, set())
        return found

    def _execute(self, stretch: Stretch, run: Any, arrays: dict[Tensor, Array]) -> None:
        if stretch.constants:
            arrays.update(stretch.constants)
        if stretch.written:
            run.written.update(stretch.written)
        call = stretch.call
        if call is None:
            return
        given = [arrays[s] if type(s) is Tensor else run.value_of(s) for s in stretch.sources]
        try:
            made = call(given)
        except (gg.GraphGradError, IndexError, ValueError) as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        n = len(stretch.tensors)
        arrays.update(zip(stretch.tensors, made))
        if stretch.variables:
            run.written.update(zip(stretch.variables, made[n:]))

    def _traced(self, point: Point, run: Any, arrays: dict[Tensor, Array]) -> Stretch:
        trace = Trace(point.known, point.dead, arrays, run.read)
        position, host, stopped = point.position, None, False
        wanted: Tensor | None = None
        while position < len(self.order):
            op = self.order[position]
            if _is_host(op) and not trace.is_dead(op) and not _is_given(op, arrays):
                host, stopped = op, True
                break
            try:
                trace.step(op)
            except Break as stop:
                wanted, stopped = stop.tensor, True
                break
            position += 1
        stretch = self._closed(trace, position, host, wanted)
        stretch.last = not stopped
        stretch.next = (position + (host is not None), trace)
        if len(point.variants) >= VARIANTS:
            del point.variants[0]
        point.variants.append(stretch)
        return stretch

    def _closed(
        self, trace: Trace, position: int, host: Operation | None, wanted: Tensor | None
    ) -> Stretch:
        """The trace as a program, of what is read from the position on."""
        stretch = Stretch()
        stretch.host = host
        stretch.arguments = list(host._inputs) if host is not None else []
        stretch.guards = list(trace.guards.items())
        stretch.tensors, stretch.constants = [], {}
        outputs = []
        for t in self._asked(trace, position, wanted, stretch.arguments):
            found = trace.known.get(t)
            if isinstance(found, np.ndarray):
                stretch.constants[t] = found
            elif found is None and t.op.type == "Const":
                stretch.constants[t] = t.op.attrs["value"]
            elif found is not DEAD:
                native = trace.of(t)
                stretch.tensors.append(t)
                outputs.append(native)
        stretch.variables, stretch.written = [], {}
        for variable, value in trace.versions.items():
            if isinstance(value, np.ndarray):
                stretch.written[variable] = value
            else:
                stretch.variables.append(variable)
                outputs.append(value)
        stretch.sources = list(trace.inputs)
        stretch.call = None
        if outputs:
            program = Program(tuple(trace.inputs.values()), tuple(outputs))
            stretch.call = Compiled(program)
        return stretch

    def _asked(
        self, trace: Trace, position: int, wanted: Tensor | None, arguments: list[Tensor]
    ) -> list[Tensor]:
        """Tensors of the trace that are read from the position on, beyond what is there."""
        asked = [
            t
            for t in trace.known
            if self._last_use.get(t, -1) >= position and t not in trace.arrays
        ]
        extra = [*arguments, *([wanted] if wanted is not None else [])]
        if position == len(self.order):
            extra += self.fetches
        for t in extra:
            if t not in asked and t not in trace.arrays:
                if variable_of(t) is t.op and position == len(self.order):
                    continue
                asked.append(t)
        return asked

    def _after(self, stretch: Stretch, key: Any) -> Point:
        position, trace = stretch.next
        known = {
            t: v
            for t, v in trace.known.items()
            if (v is DEAD or isinstance(v, np.ndarray))
            and self._last_use.get(t, -1) >= position - 1
        }
        made = stretch.points[key] = Point(position, known, trace.dead)
        return made


def _is_host(op: Operation) -> bool:
    """Whether Python runs it: what has no lowering, and what is about strings."""
    if op.type in SPECIAL:
        return False
    definition = definition_of(op.type)
    if definition.lower is None:
        return True
    return definition.host is not None and op._outputs[0].dtype.name == "string"


def _is_given(op: Operation, arrays: Any) -> bool:
    return bool(op.outputs) and all(t in arrays for t in op.outputs)


def _on_host(run: Any, op: Operation, given: list[Array]) -> list[Array]:
    """What a step of Python makes, as arrays of the types that the op promised."""
    definition = definition_of(op.type)
    if definition.host is None:
        raise NotImplementedError(f"graphgrad.tf1 cannot run ops of type {op.type!r}")
    try:
        made = definition.host(run, op, *given)
    except OpError as error:
        if error._op is None:
            error._op = op
        raise
    results = list(made) if isinstance(made, list | tuple) else [] if made is None else [made]
    kinds = [t.dtype.base_dtype.numpy for t in op.outputs]
    return [np.asarray(a).astype(k, copy=False) for a, k in zip(results, kinds, strict=True)]
