"""The Backend protocol, the kernels of a backend, and how a backend is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

import numpy as np

from ..ir.errors import GraphGradError, did_you_mean
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import Array
from ..lower.schedule import Plan, schedule
from .results import add_note, own

Compiled = Callable[..., tuple[Array, ...]]
Kernel = Callable[..., Any]
Make = Callable[[Any], Kernel | None]

GROUP = "graphgrad.backends"
BUILT_IN = {
    name: EntryPoint(name, f"graphgrad.execute.{name}_backend:{name.capitalize()}Backend", GROUP)
    for name in ("numpy", "jax")
}


class UnknownBackendError(GraphGradError, LookupError):
    """No backend of that name is installed."""


class MissingBackendError(GraphGradError, ImportError):
    """A backend whose package is not installed."""


class Backend(Protocol):
    """What runs programs.

    name     what users call it
    kernels  one callable per op
    compile  the program as a function of arrays: one per input, in order; returns one array per
             output, which are the caller's own: no output shares memory with an input, a constant
             or another output
    """

    name: str
    kernels: Kernels

    def compile(self, program: Program) -> Compiled:
        """The program as a function of arrays."""
        ...


class Kernels:
    """Every op's kernel in one array namespace, and what a backend does better.

    `@kernels.override(Tanh)` decorates a function of the op that returns a callable of arrays, or
    None to leave this op as it is. It speaks for this very op type, not for subclasses.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._overrides: dict[type[Op], Make] = {}

    def override(self, op_type: type[Op]) -> Callable[[Make], Make]:
        """Register what stands for the kernel of one op type."""

        def register(make: Make) -> Make:
            self._overrides[op_type] = make
            return make

        return register

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        make = self._overrides.get(type(op))
        found = None if make is None else make(op)
        return partial(op.kernel, self.xp) if found is None else found


def one_call_per_node(program: Program, kernels: Kernels) -> Compiled:
    """The simplest way to run a program: a loop over its nodes."""
    run = loop(schedule(program), kernels.of)
    if kernels.xp is not np:  # what is being traced owns nothing
        return run
    wanted = program.outputs

    def owned(*arrays: Array) -> tuple[Array, ...]:
        return own(run(*arrays), arrays, wanted)

    return owned


def loop(plan: Plan, kernel_of: Callable[[Op], Kernel]) -> Compiled:
    """A plan as a loop. An error in a kernel gains a note that says which node it was."""
    values: list[Any] = [None] * plan.slots
    for slot, node in plan.constants:
        values[slot] = kernel_of(node.op)()
    rows = [
        (kernel_of(s.node.op), s.inputs, s.outputs[0], s.outputs[1:] and s.outputs, s.frees, s.node)
        for s in plan.steps
    ]
    wanted, arity = plan.outputs, len(plan.program.inputs)

    def run(*arrays: Array) -> tuple[Array, ...]:
        v = values.copy()
        v[:arity] = arrays
        for kernel, inputs, output, outputs, frees, node in rows:
            args = [v[i] for i in inputs]
            try:
                made = kernel(*args)
            except Exception as error:
                add_note(error, node, args)
                raise
            if outputs:
                for slot, one in zip(outputs, made, strict=True):
                    v[slot] = one
            else:
                v[output] = made
            for slot in frees:
                v[slot] = None
        return tuple([v[i] for i in wanted])

    return run


def load_backend(name: str | Backend = "auto") -> Backend:
    """The backend of that name, or the one that is given.

    "auto" is NumPy. Third parties add names by the entry point group "graphgrad.backends".
    UnknownBackendError names the nearest; MissingBackendError says which extra to install.
    """
    if not isinstance(name, str):
        return name
    wanted = "numpy" if name == "auto" else name
    entry = BUILT_IN.get(wanted) or _third_party(wanted)
    try:
        made: Backend = entry.load()()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "graphgrad":
            raise
        raise MissingBackendError(
            f"the backend {wanted!r} needs the package {error.name!r}: "
            f"pip install 'graphgrad[{wanted}]'"
            if wanted in BUILT_IN
            else f"the backend {wanted!r} needs the package {error.name!r}"
        ) from error
    return made


def backends() -> list[str]:
    """The names of every backend, installed packages or not."""
    return sorted({*BUILT_IN, *(e.name for e in entry_points(group=GROUP))})


def _third_party(name: str) -> EntryPoint:
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return entry
    known = ["auto", *backends()]
    hint = did_you_mean(name, known, f"There are {', '.join(known)}.")
    raise UnknownBackendError(f"no backend is called {name!r}. {hint}")
