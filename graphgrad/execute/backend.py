"""What a backend is, and what it makes of a program: each capability with a default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import Array
from ..lower.binding import Binding
from ..lower.plan import Plan
from .kernels import ArrayFunction, Kernels

__all__ = ["Backend", "Compiled", "as_backend"]


def _unchanged(program: Program) -> Program:
    return program


class Compiled:
    """A program as a function of arrays: one for each input, in order; one array for each output.

    The outputs are the caller's own: none shares memory with an input, a constant or another
    output. Calls from many threads at once are safe. A subclass says what else it can do; a
    capability that it does not name has a default, which is right and at most slower.

    refines      whether it compiles the program again for the lengths of a call, after `refine`
    refine       what optimises a program whose lengths have become known; nothing until it is set
    takes        types of arrays, beside NumPy's, that it takes as they are
    keeps_state  whether the values of variables stay where it runs, in the form it returns them
    lends        places, among the variables it reads, of those whose memory a run may take for the
                 next values. Then a call takes two keywords: `alone`, whether nobody else has the
                 value, for each of these; and `give_back`, called with the values where a run fails
    on_mesh      whether its arrays are divided among the devices of a mesh
    seals        whether it returns next values of variables as read-only arrays of NumPy's, which
                 it writes again only where nobody holds one
    """

    refines: bool = False
    refine: Callable[[Program], Program] = staticmethod(_unchanged)
    takes: tuple[type, ...] = ()
    keeps_state: bool = False
    lends: Sequence[int] = ()
    on_mesh: bool = False
    seals: bool = False

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """One array for each output."""
        raise NotImplementedError(f"{type(self).__name__} cannot be called")

    @property
    def call(self) -> ArrayFunction:
        """The function that does the same with the least overhead; by default this object."""
        return self

    @property
    def plans(self) -> list[Plan]:
        """The plans of the program, one for each set of lengths; by default none is known."""
        return []

    def program_for(self, shapes: Sequence[tuple[int, ...]]) -> Program | None:
        """The program that runs for inputs of these shapes; None, by default: the one compiled."""
        return None

    def notes(self) -> list[str]:
        """Lines of `explain` about its runs; by default none."""
        return []

    def release(self) -> None:
        """Give back the memory that waits for the next run; by default there is none."""

    def from_local(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of a call, made of the parts that this process has; where `on_mesh` holds."""
        raise NotImplementedError


class CompiledByFunction(Compiled):
    """A function of arrays, of which no more is known."""

    def __init__(self, function: ArrayFunction) -> None:
        self._function = function

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        """As the function does."""
        return self._function(*arrays)

    @property
    def call(self) -> ArrayFunction:
        """The function."""
        return self._function


class Backend:
    """Runs programs. A subclass has a `name` and `compile`; the rest has defaults.

    name       what users call it
    kernels    the kernels of its ops
    fast_math  whether the optimiser may use the algebra of real numbers
    joining    whether the optimiser may join equal work on several arrays into work on one
    threads    on how many threads a call runs at most
    """

    name: str
    kernels: Kernels
    fast_math: bool = False
    joining: bool = True
    threads: int = 1

    def compile(self, program: Program) -> ArrayFunction:
        """The program as a function of arrays: a `Compiled`, or a function called alike."""
        raise NotImplementedError(f"{type(self).__name__} has no compile(program)")

    def compile_with_state(
        self,
        program: Program,
        given: Sequence[Tensor],
        read: Sequence[Node],
        written: Sequence[Node],
    ) -> Compiled:
        """The same, told what the inputs and outputs are.

        Its inputs are the tensors `given` and then the variables `read`; its last outputs are the
        next values of the variables `written`. By default that makes no difference.
        """
        run = self.compile(program)
        return run if isinstance(run, Compiled) else CompiledByFunction(run)

    def bind(self) -> Binding | None:
        """What runs for each node of one program; None, by default: it runs as a whole.

        A backend that binds its nodes has plans, limits of memory and profiles.
        """
        return None

    def plan(self, program: Program) -> Plan | None:
        """How a program will run, as far as that is known without its arguments; else None."""
        return None

    def frugal(self) -> Backend:
        """This backend, but that takes no memory for speed alone."""
        return self

    def describe(self) -> str:
        """The first line of `explain`."""
        return self.name

    def notes(self, plan: Plan) -> list[str]:
        """Lines of `explain` about a plan; by default none."""
        return []


class _Adapted(Backend):
    """An object with `compile(program)` that is not a subclass of Backend."""

    def __init__(self, adapted: Any) -> None:
        self.adapted = adapted
        self.name = getattr(adapted, "name", type(adapted).__name__)

    def compile(self, program: Program) -> ArrayFunction:
        """As the object does."""
        compiled: ArrayFunction = self.adapted.compile(program)
        return compiled


def as_backend(backend: Any) -> Backend:
    """The backend itself, or one that compiles as an object with `compile(program)` does.

    TypeError for anything else.
    """
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, type) or not callable(getattr(backend, "compile", None)):
        raise TypeError(
            f"a backend is a name, or an object with `compile(program)`; got {backend!r}"
        )
    return _Adapted(backend)
