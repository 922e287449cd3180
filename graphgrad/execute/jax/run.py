"""Programs under jax.jit: what stays on the device, what is given away, what lies where.

The values of variables are what the last run made, as JAX arrays, so no step moves them. Where the
caller says so, a run takes their memory for the new ones (donation). With a mesh every array has a
place on its devices (`layout`), and XLA puts in what the devices tell each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from ...base.collector import having
from ...base.errors import ExecutionError, StateError
from ...base.locks import OwnLock
from ...ir.digest import check_same, lines
from ...ir.held import fetched, is_gone
from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Program
from ...ir.state import RUN
from ...ir.types import Array
from ...lower.alias import is_strange
from ...ops.random.keys import draws_keys
from ..backend import Compiled
from ..kernels import ArrayFunction
from ..results import check_promise, fits, own
from .checks import Refusals, Status, watched
from .errors import say_where
from .host import HOST, HostCalls
from .layout import MeshLayout, Placed
from .processes import waiting_for_others

__all__ = ["JaxRun"]

_wait: Any = jax.block_until_ready  # it has no annotations
_Tracer: Any = jax.core.Tracer


@fetched.register(jax.Array)
def _fetched(value: Any) -> Array:
    """The value on the host, of all parts; those of other processes come from there."""
    try:
        if value.is_fully_addressable or value.is_fully_replicated:
            return np.asarray(value)
        with jax.enable_x64(True), waiting_for_others():
            gathered: Array = multihost_utils.process_allgather(value, tiled=True)
            return gathered
    except jax.errors.JaxRuntimeError as error:  # of a run that nobody waited for
        if is_gone(value):
            raise
        raise StateError(
            f"the run that made the value of a variable has failed: {error}"
        ) from error


class JaxRun(Compiled):
    """A program as a function of arrays: those of a call, then the values of variables.

    It returns the outputs as NumPy's arrays, and what is written as JAX left it.

    once     the program, a call of a kernel for each node
    given    the tensors that a call gives arrays for
    read     the variables that it reads, behind them
    written  those whose next values are its last outputs
    refusals what its kernels may refuse; None: nothing is checked
    lends    places among `read` of those whose memory the next values take, as they are written
    moved    what went from the host to the devices and back so far
    """

    keeps_state = True
    takes = (jax.Array,)

    def __init__(
        self,
        program: Program,
        once: ArrayFunction,
        given: Sequence[Tensor],
        read: Sequence[Node],
        written: Sequence[Node],
        layout: MeshLayout | None = None,
        donate: bool = False,
        refusals: Refusals | None = None,
    ) -> None:
        self.refusals = refusals
        self.given, self.read, self.written = tuple(given), tuple(read), tuple(written)
        self.once, self.wanted = once, program.outputs
        self._program = program
        self.counted = draws_keys(program)
        self.lends = self._donated(program) if donate else ()
        self._order = self._outputs_in_order()
        self.moved = Moved()
        self._host = HostCalls()
        self.placed = None if layout is None else Placed(layout, given, read, written)
        self.on_mesh = layout is not None
        if self.placed is not None and self.placed.several:
            check_same([*self.placed.lines(), *lines(program.nodes, program.inputs)], "programs")
        with jax.enable_x64(True):
            self._jitted = jax.jit(self._traced, donate_argnums=1, **self._shardings())

    def _donated(self, program: Program) -> tuple[int, ...]:
        """Places of the variables that are written, if nothing else could look at them."""
        foreign = next((n for n in program.nodes if _runs_foreign_code(n.op)), None)
        if foreign is not None and self.written:
            raise ExecutionError(
                f"donate=True cannot be combined with {foreign.name} = {foreign.op!r} (built at "
                f"{foreign.where}): your own code runs on the host during a run, and could read "
                "variables whose memory was donated. Leave out donate=True."
            )
        places = {v: i for i, v in enumerate(self.read)}
        return tuple(places[v] for v in self.written if v in places)

    def _outputs_in_order(self) -> list[int]:
        """Places of outputs, those first that take memory: JAX pairs what is given away with the
        first output of its type."""
        count = len(self.wanted)
        at = {v: count - len(self.written) + i for i, v in enumerate(self.written)}
        first = [at[self.read[i]] for i in self.lends]
        taken = set(first)
        return [*first, *(i for i in range(count) if i not in taken)]

    def _shardings(self) -> dict[str, Any]:
        """What jax.jit is told of places: of (what stays, what is given away, the run's number)."""
        if self.placed is None:
            return {}
        stays, lent = self._split(self.placed.inputs)
        number = (self.placed.everywhere,) if self.counted else ()
        outputs = [self.placed.everywhere] * (len(self.wanted) - len(self.written))
        outputs += self.placed.written
        return {
            "in_shardings": (tuple(stays), tuple(lent), *number),
            "out_shardings": (tuple(outputs[i] for i in self._order), self.placed.everywhere),
        }

    def _split(self, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Without those that are given away, and these."""
        lent = [len(self.given) + i for i in self.lends]
        gone = set(lent)
        return [a for i, a in enumerate(arrays) if i not in gone], [arrays[i] for i in lent]

    def _whole(self, stays: Sequence[Any], lent: Sequence[Any]) -> list[Any]:
        """The arrays in their order again."""
        given = {len(self.given) + i: one for i, one in zip(self.lends, lent, strict=True)}
        rest = iter(stays)
        count = len(self.given) + len(self.read)
        return [given[i] if i in given else next(rest) for i in range(count)]

    def _traced(
        self, stays: Sequence[Any], lent: Sequence[Any], *number: Any
    ) -> tuple[tuple[Any, ...], Status | None]:
        arrays = self._whole(stays, lent)
        once = watched(self.once, None, self.refusals)
        once = partial(having, RUN, number[0], once) if number else once
        computed, status = having(HOST, self._host, once, *arrays)
        outputs = self._distinct(computed, arrays)
        made = [outputs[i] for i in self._order]
        if status is not None:  # what was lent keeps its value
            made[: len(lent)] = [
                jnp.where(status.code == 0, new, old) for new, old in zip(made, lent, strict=False)
            ]
        return tuple(made), status

    def _distinct(self, made: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """What is written, as arrays that are not input and not each other."""
        first = len(made) - len(self.written)
        seen = {id(a) for a in arrays}
        done = list(made[:first])
        for one in made[first:]:
            done.append(jnp.copy(one) if id(one) in seen else one)
            seen.add(id(one))
        return done

    def __call__(
        self,
        *arrays: Any,
        alone: Sequence[bool] = (),
        give_back: Callable[[dict[Node, Any]], None] | None = None,
    ) -> tuple[Any, ...]:
        """Run.

        alone: for each of `lends`, whether nobody else has its value. give_back: called with the
        values of these, where a run that has their memory refused what it was given.
        """
        _check_concrete(arrays)
        number = (np.int64(RUN.get()),) if self.counted else ()
        self.moved.count(arrays, len(self.given))
        with jax.enable_x64(True):
            put: Sequence[Any] = arrays if self.placed is None else self.placed.put(arrays)
            if self.placed is not None:
                number = tuple(self.placed.anywhere(n) for n in number)
            stays, lent = self._split(put)
            lent = [a if ok else _copied(a) for a, ok in zip(lent, alone, strict=True)]
            try:
                with self._host.awaited():
                    outputs, status = self._jitted(tuple(stays), tuple(lent), *number)
                    self._check(status, outputs, give_back)
                    made = dict(zip(self._order, outputs, strict=True))
                    return self._handed_out([made[i] for i in range(len(made))], arrays)
            except Exception as error:
                self._say_what_was_raised(error)
                say_where(error, self._program, arrays)
                raise

    def _check(self, status: Status | None, outputs: Sequence[Any], give_back: Any) -> None:
        """Raise what the run refused, if it did."""
        if status is None or self.refusals is None:
            return
        try:
            self.refusals.check(status)
        except Exception:
            if give_back is not None:
                kept = zip([self.read[i] for i in self.lends], outputs, strict=False)
                give_back(dict(kept))
            raise

    def _say_what_was_raised(self, error: Exception) -> None:
        """Raise what a function on the host raised, if that is what XLA's error is about."""
        raised = self._host.begin_anew()
        if raised and "allback" in str(error):
            raise raised[-1] from None

    def _handed_out(self, made: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Outputs as the caller's own, and what is written, when the run has succeeded.

        Where a failed run may lose the state anyway and no array of the caller's is still being
        read, nobody waits for what is not fetched.
        """
        count = len(made) - len(self.written)
        outputs, written = made[:count], made[count:]
        mine = own([np.asarray(y) for y in outputs], arrays, self.wanted[:count])
        for t, one in zip(self.wanted[count:], written, strict=True):
            if not fits(one, t.type):
                check_promise(t.node, t.index, one)
        if not self.lends or any(type(a) is np.ndarray for a in arrays):
            _wait(written)
        self.moved.count_back(mine)
        return (*mine, *written)

    def from_local(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays for a call, of the parts that each process has; there is a layout."""
        assert self.placed is not None
        with jax.enable_x64(True):
            return self.placed.from_local(arrays)

    def notes(self) -> list[str]:
        """Where arrays lie, what is given away, and what was moved so far."""
        lent = ", ".join(self.read[i].name for i in self.lends)
        rows = [f"gives away the memory of {lent}"] if lent else []
        return [*(() if self.placed is None else self.placed.notes()), *rows, *self.moved.notes()]


def _runs_foreign_code(op: Op) -> bool:
    """Whether an op, or one in a body of it, is called on the host and is not of this library."""
    pending = [op]
    for each in pending:
        if not each.pure and not each.bodies and is_strange(each):
            return True
        pending += each.runs
        pending += [node.op for program in each.bodies for node in program.nodes]
    return False


class Moved:
    """What went from the host to the devices and back in the calls of a function.

    calls      how many there were
    fed        bytes of arguments that were NumPy's
    variables  how many values of variables were NumPy's, and their bytes
    fetched    bytes of outputs
    """

    def __init__(self) -> None:
        self.calls = self.fed = self.fetched = 0
        self.variables = (0, 0)
        self._lock = OwnLock()

    def count(self, arrays: Sequence[Any], given: int) -> None:
        """One more call, and what it takes there."""
        put = list(_sizes(arrays[given:]))
        with self._lock.lock:
            self.calls += 1
            self.fed += sum(_sizes(arrays[:given]))
            many, size = self.variables
            self.variables = many + len(put), size + sum(put)

    def count_back(self, outputs: Sequence[Array]) -> None:
        """What a call took back."""
        with self._lock.lock:
            self.fetched += sum(_sizes(outputs))

    def notes(self) -> list[str]:
        """A line, after the first call."""
        if not self.calls:
            return []
        many, size = self.variables
        return [
            f"moved in {self.calls} calls: {self.fed} bytes of inputs and {many} values of "
            f"variables ({size} bytes) to the device, {self.fetched} bytes of outputs from it"
        ]


def _sizes(arrays: Sequence[Any]) -> Iterator[int]:
    """The bytes of those that are NumPy's."""
    return (a.nbytes for a in arrays if isinstance(a, np.ndarray))


def _check_concrete(arrays: Sequence[Any]) -> None:
    """ExecutionError where JAX is tracing: the state would hold what has no value."""
    if any(isinstance(a, _Tracer) for a in arrays):
        raise ExecutionError(
            "a compiled function takes arrays, and was called on tracers while JAX traces a "
            "function (jit, grad, vmap); call f.as_jax() there"
        )


def _copied(value: Any) -> Any:
    """One that may be given away: what somebody else has is copied, what is NumPy's will be."""
    return jnp.copy(value) if isinstance(value, jax.Array) else value
