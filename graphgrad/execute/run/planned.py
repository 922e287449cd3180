"""Backends that plan before they run: what runs as one, in which order, in which memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ...base.collector import having
from ...base.ieee import IGNORE, SETTING, quietly
from ...base.locks import OwnLock
from ...base.solving import LengthSolver
from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Program
from ...ir.types import Array, tensor_type
from ...lower.alias import is_strange, is_view
from ...lower.binding import Binding, Writer
from ...lower.loop_ir import Fused
from ...lower.order import ordered
from ...lower.plan import BodyPlans, Looping, Plan
from ...lower.schedule import schedule
from ...lower.specialise import specialise
from ...lower.widen import widen
from ...ops.contract.products import MatMul
from ...ops.control import Cond, Scan, While
from ..backend import Backend, Compiled
from ..kernels import ArrayFunction, Kernel
from ..results import as_arrays, check_lengths, owning, promised, reading, sealing
from .checked import checked_loop
from .looped import looped
from .straight import Note, straight_line
from .threads import available_threads

CHECK = "GRAPHGRAD_CHECK"
LONG = 500  # steps; from here on compiling a function takes as long as many runs of a loop
OFTEN = 30  # runs after which it has paid
BIG = 1 << 20  # bytes; of arenas from here on at most one is kept for the next run
PLANS = 16  # sets of shapes for which a program keeps a plan


class PlannedBackend(Backend):
    """A backend of kernels that run on the host, by IEEE rules: NumPy's warnings are off.

    A subclass has a `name` and `kernels`, and says with `fuse` what runs as one node and with
    `bind` what runs for a node.

    check: verify every kernel's result and every use of memory. Slow. By default what the
        environment variable GRAPHGRAD_CHECK says: 1 is True, 0 or nothing False.
    num_threads: at most this many threads for one call; as many as there are processors by default.
    fast_math: allow results that differ by rounding, and in where they overflow.
    exact: compute convolutions by the sums of their definition, never by Winograd's algorithm, of
        which the error is larger. Only LLVM uses it.
    TypeError and ValueError for what these cannot be.
    """

    def __init__(
        self,
        check: bool | None = None,
        *,
        num_threads: int | None = None,
        fast_math: bool = False,
        exact: bool = False,
    ) -> None:
        self.check = _checking() if check is None else _flag("check", check)
        self.threads = available_threads() if num_threads is None else _threads(num_threads)
        self.fast_math = _flag("fast_math", fast_math)
        self.exact = _flag("exact", exact)

    def describe(self) -> str:
        """What runs a program here, in a line of `explain`."""
        return f"{self.name}, {self.threads} thread{'s' * (self.threads > 1)}"

    def fuse(self, program: Program) -> Program:
        """The program with what this backend runs as one node; the very same one by default."""
        return program

    def bind(self) -> Binding:
        """What runs for the nodes of one program."""
        return KernelBinding(self)

    def compile(self, program: Program) -> Planned:
        """The program as a function of arrays, safe to call from many threads."""
        return self._planned(program, 0)

    def compile_with_state(
        self,
        program: Program,
        given: Sequence[Tensor],
        read: Sequence[Node],
        written: Sequence[Node],
    ) -> Compiled:
        """The same, whose last outputs are read-only: small ones are written over old values."""
        if type(self).compile is not PlannedBackend.compile:
            return super().compile_with_state(program, given, read, written)
        return self._planned(program, len(written))

    def _planned(self, program: Program, written: int) -> Planned:
        if all(t.type.static for t in program.inputs):
            return PlannedProgram(self, program, written)
        return PlannedByShapes(self, program, written)

    def plan(self, program: Program) -> Plan:
        """How the program will run, as far as that is known without its arguments."""
        return schedule(ordered(self.fuse(widen(program))), self.bind())


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is True or False, got {value!r}")
    return bool(value)


def _checking() -> bool:
    named = os.environ.get(CHECK, "")
    if named not in ("", "0", "1"):
        raise ValueError(f"the environment variable {CHECK} is 1 or 0, got {named!r}")
    return named == "1"


def _threads(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"num_threads is a number of threads, got {value!r}")
    if value < 1:
        raise ValueError(f"num_threads is at least 1, got {value}")
    return int(value)


class PlannedProgram(Compiled):
    """One plan, and the arenas that wait for the next run.

    written: how many outputs, the last ones, are next values of variables.
    """

    seals = True

    def __init__(self, backend: PlannedBackend, program: Program, written: int = 0) -> None:
        self._written = written
        self._binding = binding = backend.bind()
        self.plan = plan = schedule(ordered(backend.fuse(widen(program))), binding)
        self._quiet = all(binding.quiet(step.node) for step in plan.steps)
        self._closed = all(map(_is_closed, {step.node.op for step in plan.steps}))
        self._idle: list[list[ArrayFunction]] = []
        self._parts: tuple[Callable[[], ArrayFunction], Note] | None = None
        if backend.check:
            self._call = self._entry(lambda: self._sealing(checked_loop(plan)), _nothing)
        elif len(plan.steps) < LONG:
            self._parts = straight_line(plan, written)
            self._call = self._entry(*self._parts)
        else:
            self._call = self._warming_up()

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """One array for each output, the caller's own."""
        return self._call(*arrays)

    @property
    def call(self) -> ArrayFunction:
        """What takes an arena for a run."""
        return self._call

    @property
    def plans(self) -> list[Plan]:
        """How it runs."""
        return [self.plan]

    def release(self) -> None:
        """Give back the memory that waits for the next run."""
        for idle in self._idle:
            idle.clear()
        self._binding.release()

    @contextmanager
    def held(self) -> Iterator[ArrayFunction]:
        """What runs it again and again in this block: memory is taken once.

        NumPy's warnings are off around it. Nothing is put back here: an interrupt may leave this
        to the garbage collector, which closes it at any time.
        """
        if self._parts is None:
            yield self.call
            return
        new, note = self._parts
        idle = self._idle[0]
        entered = idle.pop() if idle else self._entered(new())
        run = _run_in(entered)
        try:
            yield run
        except Exception as error:
            note(error, run)
            raise
        finally:
            if self.plan.arena < BIG or not idle:
                idle.append(entered)

    def _warming_up(self) -> ArrayFunction:
        """A loop over the steps until there were so many runs that a compiled function pays."""
        loop = self._entry(lambda: self._sealing(looped(self.plan)), _nothing)
        runs = count(1)
        compiled: list[ArrayFunction] = []

        def call(*arrays: Array) -> tuple[Array, ...]:
            if not compiled:
                if next(runs) <= OFTEN:
                    return loop(*arrays)
                self.release()
                compiled.append(self._entry(*straight_line(self.plan, self._written)))
            return compiled[0](*arrays)

        return call

    def _sealing(self, run: ArrayFunction) -> ArrayFunction:
        """A run whose next values of variables are read-only."""
        return sealing(run, len(self.plan.results) - self._written) if self._written else run

    def _entry(self, new: Callable[[], ArrayFunction], note: Note) -> ArrayFunction:
        """What takes an arena, runs on it, and puts it back. new: a run on an arena of its own."""
        idle: list[ArrayFunction] = []
        self._idle.append(idle)
        several = self.plan.arena < BIG

        def call(*arrays: Array) -> tuple[Array, ...]:
            try:
                entered = idle.pop()
            except IndexError:
                entered = self._entered(new())
            try:
                return entered(*arrays)
            except Exception as error:
                note(error, _run_in(entered))
                raise
            finally:
                if several or not idle:
                    idle.append(entered)

        return call

    def _entered(self, run: ArrayFunction) -> ArrayFunction:
        """A run without NumPy's warnings."""
        if self._quiet:
            return run
        enter = quietly() if self._closed else None
        return partial(having, SETTING, IGNORE, run) if enter is None else partial(enter, run)


def _run_in(entered: ArrayFunction) -> ArrayFunction:
    """What runs, of what calls it."""
    return entered.args[-1] if isinstance(entered, partial) else entered


def _is_closed(op: Op) -> bool:
    """Whether an op is known to call nobody's code, and to read no context."""
    computes = op.elementwise or op.memory.view or op.traits.reduction is not None
    return op.pure and (computes or isinstance(op, Fused | MatMul)) and not is_strange(op)


def _nothing(error: Exception, run: ArrayFunction) -> None:
    """The run has noted it."""


def _echo(*arrays: Array) -> tuple[Array, ...]:
    """What stands for a run before there was one."""
    return arrays


class PlannedByShapes(Compiled):
    """A plan for each set of shapes of the arguments, made when they come first.

    The plans used last are kept, and big arenas for the shapes used last.
    """

    refines = True
    seals = True

    def __init__(self, backend: PlannedBackend, program: Program, written: int = 0) -> None:
        self._backend = backend
        self._program = program
        self._written = written
        self._planning = OwnLock()
        self._made: dict[Any, PlannedProgram] = {}
        self._latest: PlannedProgram | None = None
        self._latest_call: tuple[Any, ArrayFunction] = None, _echo

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """One array an output, the caller's own."""
        shapes = [a.shape for a in arrays]
        latest, call = self._latest_call
        if shapes != latest:
            call = self._choose(tuple(shapes)).call
            self._latest_call = shapes, call
        return call(*arrays)

    @contextmanager
    def held(self) -> Iterator[ArrayFunction]:
        """What runs it again and again in this block."""
        yield self.call

    @property
    def plans(self) -> list[Plan]:
        """How it runs for the shapes that came, the latest ones last."""
        with self._planning.lock:
            return [made.plan for made in tuple(self._made.values())]

    def release(self) -> None:
        """Give back the memory that waits for the next run."""
        with self._planning.lock:
            for made in tuple(self._made.values()):
                made.release()

    def program_for(self, shapes: Sequence[tuple[int, ...]]) -> Program:
        """What runs for these shapes of the arguments."""
        known = LengthSolver()
        types = []
        for shape, t in zip(shapes, self._program.inputs, strict=True):
            check_lengths(t, shape, known)
            types.append(tensor_type(shape, t.dtype))
        return self.refine(specialise(self._program, types))

    def _choose(self, shapes: tuple[tuple[int, ...], ...]) -> PlannedProgram:
        with self._planning.lock:
            planned = self._made.pop(shapes, None)
            if planned is None:
                program = self.program_for(shapes)
                planned = PlannedProgram(self._backend, program, self._written)
            self._made[shapes] = planned
            if self._latest is not None and self._latest.plan.arena >= BIG:
                self._latest.release()
            self._latest = planned
            for old in tuple(self._made)[:-PLANS]:
                self._made.pop(old, None)
            return planned


Planned = PlannedProgram | PlannedByShapes


class KernelBinding:
    """Kernels and writers of a backend, each made once."""

    def __init__(self, backend: PlannedBackend) -> None:
        self._backend = backend
        self._made: dict[Any, Kernel] = {}
        self._bodies: dict[Op, list[Planned]] = {}
        self._loops: dict[Op, Looping] = {}

    def writer(self, node: Node) -> Writer | None:
        """What `kernels.writes` registered for the op; a scan writes its rows where they go."""
        if isinstance(node.op, Scan) and not is_strange(node.op):
            return self._scan_writer(node.op), ()
        kernel = self._backend.kernels.writer_of(node, self._backend.threads)
        return None if kernel is None else (kernel, self._backend.kernels.overwrites(node))

    def kernel(self, node: Node) -> Kernel:
        """The op's kernel, checked where its results could be of other types or share memory."""
        op = node.op
        kernel = self._made.get(op)
        if kernel is None:
            kernel = self._control(op) if op.bodies else self._backend.kernels.of(op)
            self._made[op] = kernel
        strange = is_strange(op)
        if strange and not op.bodies and not self._backend.check:
            kernel = reading(kernel)
        if (op.memory.view and (strange or not is_view(node))) or (
            strange and not self._backend.check
        ):
            kernel = owning(kernel)
        if not all(t.shape for t in node.outputs):
            kernel = as_arrays(kernel)
        if strange or not all(t.type.static for t in node.outputs):
            kernel = promised(kernel, node)
        return kernel

    def quiet(self, node: Node) -> bool:
        """No: any kernel may call NumPy."""
        return False

    def lean(self, node: Node) -> bool:
        """Yes."""
        return True

    def bodies(self, node: Node) -> tuple[BodyPlans, ...]:
        """The branches of a choice, the body of a loop."""
        bodies = self._bodies.get(node.op, [])
        plans = [tuple(body.plans) for body in bodies]
        settled = [isinstance(body, PlannedProgram) for body in bodies]
        rows = zip(node.op.body_names, plans, settled, strict=True) if bodies else ()
        return tuple([BodyPlans(*row, node.op, self._loops.get(node.op)) for row in rows])

    def release(self) -> None:
        """Give back the memory that waits for the next run of a branch."""
        for branches in self._bodies.values():
            for branch in branches:
                branch.release()

    def _control(self, op: Op) -> Kernel:
        """What runs an op with bodies, each compiled by the same backend."""
        if not isinstance(op, Cond | Scan | While):
            return self._backend.kernels.of(op)
        bodies = self._bodies_of(op)
        if isinstance(op, Cond):
            calls = [body.call for body in bodies]
            return lambda *arrays: op.drive(calls, arrays)
        self._loops[op] = self._no_loops()
        return partial(_driven, op, bodies)

    def _scan_writer(self, op: Scan) -> Kernel:
        """What runs a scan whose outputs have their places."""
        self._loops[op] = self._no_loops()
        return partial(_filled, op, self._bodies_of(op))

    def _no_loops(self) -> Driven:
        return Driven(f"the {self._backend.name} backend compiles no loops")

    def _bodies_of(self, op: Op) -> list[Planned]:
        """The bodies of an op, each compiled by the same backend, once."""
        if op not in self._bodies:
            self._bodies[op] = [self._backend.compile(p) for p in op.bodies]
        return self._bodies[op]


class Driven:
    """A loop whose runs are called from Python."""

    orders = False

    def __init__(self, why: str) -> None:
        self.why = why

    def told(self) -> str:
        """With the reason."""
        return f"run by run from Python: {self.why}"

    def own(self) -> None:
        """What its bodies take is planned."""


def _driven(op: Scan | While, bodies: Sequence[Planned], *arrays: Array) -> Any:
    """The outputs of a loop, by calls of its bodies, each of which takes its memory once."""
    with ExitStack() as stack:
        return op.drive([stack.enter_context(body.held()) for body in bodies], arrays)


def _filled(op: Scan, bodies: Sequence[Planned], *arrays: Array) -> None:
    """The same, into the arrays behind the inputs."""
    count = len(op.programs[0].inputs)
    with ExitStack() as stack:
        calls = [stack.enter_context(body.held()) for body in bodies]
        op.fill(calls, arrays[:count], arrays[count:])
