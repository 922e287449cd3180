"""The Backend protocol, the kernels of a backend, and how a backend is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, Protocol
from warnings import warn

import numpy as np

from ..ir.errors import MissingBackendError, UnknownBackendError, did_you_mean
from ..ir.lazy import lazy_module
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import Array
from ..lower.alias import is_strange
from ..lower.binding import Binding, Pairs
from ..lower.plan import Kernel
from ..lower.widen import widen
from .results import add_note, own, promised, reading

__all__ = [
    "Backend",
    "Binding",
    "Compiled",
    "Kernel",
    "Kernels",
    "Pairs",
    "backends",
    "load_backend",
    "one_call_per_node",
]

Compiled = Callable[..., tuple[Array, ...]]
Make = Callable[[Any], Kernel | None]
MakeWriter = Callable[[Node, int], Kernel | None]
Overwrites = Callable[[Node], Pairs]

GROUP = "graphgrad.backends"
CHOICE = "GRAPHGRAD_BACKEND"
_metadata = lazy_module("importlib.metadata")


def _own(name: str) -> Any:
    module = import_module(f".{name}_backend", __package__)
    return getattr(module, f"{name.capitalize()}Backend")


BUILT_IN: dict[str, Callable[[], Any]] = {n: partial(_own, n) for n in ("numpy", "llvm", "jax")}
EXTRAS = {"llvm": "fast", "jax": "jax"}


class Backend(Protocol):
    """What runs programs.

    name     what users call it
    kernels  one callable per op
    compile  the program as a function of arrays: one per input, in order; returns one array per
             output, which are the caller's own: no output shares memory with an input, a constant
             or another output

    What `compile` returns may have an attribute `refine`: it is set to what optimises a program, to
    be called on one whose lengths have become known.
    """

    name: str
    kernels: Kernels

    def compile(self, program: Program) -> Compiled:
        """The program as a function of arrays."""
        ...


class Kernels:
    """Every op's kernel in one array namespace, and what a backend does better.

    `@kernels.override(Tanh)` decorates a function of the op that returns a callable of arrays, or
    None to leave this op as it is. `@kernels.writes(Tanh)` decorates a function of a node with
    static types and of a number of threads that returns a writer (see `Binding`) or None. Both
    speak for this very op type, not for subclasses.

    native  op types whose kernels compute of bfloat16 operands in float32 themselves, and round
            once; for the others they are cast

    Parameters: xp: the namespace that kernels are run with, such as numpy or jax.numpy.
    """

    native: frozenset[type[Op]] = frozenset()

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._overrides: dict[type[Op], Make] = {}
        self._writers: dict[type[Op], tuple[MakeWriter, Overwrites]] = {}

    def override(self, op_type: type[Op]) -> Callable[[Make], Make]:
        """Register what stands for the kernel of one op type."""

        def register(make: Make) -> Make:
            self._overrides[op_type] = make
            return make

        return register

    def writes(
        self, op_type: type[Op], overwrites: Overwrites = lambda node: ()
    ) -> Callable[[MakeWriter], MakeWriter]:
        """Register what writes the results of one op type, and over which of its inputs it may."""

        def register(make: MakeWriter) -> MakeWriter:
            self._writers[op_type] = make, overwrites
            return make

        return register

    def writer_of(self, node: Node, threads: int) -> Kernel | None:
        """What writes the results of a node into given arrays, where that is registered."""
        found = self._writers.get(type(node.op))
        return None if found is None else found[0](node, threads)

    def overwrites(self, node: Node) -> Pairs:
        """(output, input) places for which that writer may be given one buffer."""
        found = self._writers.get(type(node.op))
        return () if found is None else found[1](node)

    def of(self, op: Op) -> Kernel:
        """The callable of arrays for one op."""
        make = self._overrides.get(type(op))
        found = None if make is None else make(op)
        return partial(op.kernel, self.xp) if found is None else found

    def of_node(self, node: Node) -> Kernel:
        """The callable of arrays for one node: that for its op."""
        return self.of(node.op)


def one_call_per_node(program: Program, kernels: Kernels) -> Compiled:
    """The simplest way to run a program: a loop over its nodes, each value dropped in time."""
    program = widen(program, kernels.native)
    run = _loop(program, [_held_to_its_word(node, kernels) for node in program.nodes])
    if kernels.xp is not np:  # what is being traced owns nothing
        return run
    wanted = program.outputs

    def owned(*arrays: Array) -> tuple[Array, ...]:
        return own(run(*arrays), arrays, wanted)

    return owned


def _held_to_its_word(node: Node, kernels: Kernels) -> Kernel:
    """The kernel of a node; what is not of this library is checked, and cannot write into NumPy's
    arrays that it reads."""
    kernel = kernels.of_node(node)
    if not is_strange(node.op):
        return kernel
    if kernels.xp is np and not node.op.bodies:
        kernel = reading(kernel)
    return promised(kernel, node)


def _loop(program: Program, kernels: Sequence[Kernel]) -> Compiled:
    rows = list(zip(program.nodes, kernels, _done_with(program), strict=True))

    def run(*arrays: Array) -> tuple[Array, ...]:
        values: dict[Tensor, Any] = dict(zip(program.inputs, arrays, strict=True))
        for node, kernel, gone in rows:
            args = [values[t] for t in node.inputs]
            try:
                made = kernel(*args)
            except Exception as error:
                add_note(error, node, args)
                raise
            parts = made if len(node.outputs) > 1 else (made,)
            for t, one in zip(node.outputs, parts, strict=True):
                values.setdefault(t, one)  # an input keeps the value that was given
            for t in gone:
                del values[t]
        return tuple([values[t] for t in program.outputs])

    return run


def _done_with(program: Program) -> list[list[Tensor]]:
    """For each node, the values that nothing reads after it."""
    read = {*program.inputs, *program.outputs}
    found: list[list[Tensor]] = []
    for node in reversed(program.nodes):
        gone = [t for t in dict.fromkeys((*node.inputs, *node.outputs)) if t not in read]
        read.update(node.inputs)
        found.append(gone)
    return found[::-1]


def load_backend(name: str | Backend = "auto", **options: Any) -> Backend:
    """The backend of that name, made with these options, or the one that is given.

    "auto" is what the environment variable GRAPHGRAD_BACKEND names, else "llvm" where llvmlite is
    installed (the extra "fast"), else "numpy". Third parties add names by the entry point group
    "graphgrad.backends".
    UnknownBackendError names the nearest; MissingBackendError says which extra to install.
    TypeError for options that the backend does not take, for options beside a Backend, and for what
    is none.
    """
    if not isinstance(name, str):
        if options:
            raise TypeError(
                f"{', '.join(options)}: a backend that is given has its own options; give its name "
                f"({name.name!r}) or make it with them"
            )
        if isinstance(name, type) or not callable(getattr(name, "compile", None)):
            raise TypeError(
                f"a backend is a name, or an object with `compile(program)`; got {name!r}"
            )
        return name
    wanted = automatic() if name == "auto" else name
    load = BUILT_IN.get(wanted) or _third_party(wanted)
    try:
        make = load()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "graphgrad":
            raise
        raise MissingBackendError(
            f"the backend {wanted!r} needs the package {error.name!r}: "
            f"pip install 'graphgrad[{EXTRAS[wanted]}]'"
            if wanted in EXTRAS
            else f"the backend {wanted!r} needs the package {error.name!r}"
        ) from error
    taken = signature(make).parameters
    unknown = [o for o in options if o not in taken]
    if unknown and all(p.kind is not p.VAR_KEYWORD for p in taken.values()):
        known = ", ".join(taken) or "none"
        raise TypeError(
            f"the backend {wanted!r} takes no {', '.join(unknown)}. Its options are: {known}"
        )
    made: Backend = make(**options)
    return made


def automatic() -> str:
    """The name that "auto" stands for."""
    return os.environ.get(CHOICE) or _best_installed()


@cache
def _best_installed() -> str:
    """llvm where llvmlite is there; with a warning, numpy where it is there and does not load."""
    if find_spec("llvmlite") is None:
        return "numpy"
    try:
        _own("llvm")
    except Exception as error:  # of another package, which may be broken in any way
        warn(
            f"llvmlite is installed but cannot be loaded, so programs run on NumPy: {error}\n"
            f"Install it anew, or set {CHOICE}=numpy",
            RuntimeWarning,
            stacklevel=7,  # of compile()
        )
        return "numpy"
    return "llvm"


def backends() -> list[str]:
    """The names of every backend, installed packages or not."""
    return sorted({*BUILT_IN, *(e.name for e in _metadata.entry_points(group=GROUP))})


def _third_party(name: str) -> Callable[[], Any]:
    for entry in _metadata.entry_points(group=GROUP):
        if entry.name == name:
            found: Callable[[], Any] = entry.load
            return found
    known = ["auto", *backends()]
    hint = did_you_mean(name, known, f"There are {', '.join(known)}.")
    raise UnknownBackendError(f"no backend is called {name!r}. {hint}")
