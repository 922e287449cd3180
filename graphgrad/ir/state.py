"""Values of variables, held outside the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DTypeError, ShapeError, StateError
from .kinds import can_cast
from .locks import Turn, lock_of_module
from .types import Array, check_unmasked, compatible

if TYPE_CHECKING:
    from .node import Node, Tensor

_lock = lock_of_module()  # of all states: it is held for a copy

RUN: ContextVar[Any] = ContextVar("run", default=0)
"""The number of the run that is on, which what is random without a seed reads (ops.random.keys)."""


class State:
    """Variable -> value. A variable that was never written has its initial value.

    Arrays inside are never handed out writable and never written in place, so a run that has read a
    value keeps it whatever other threads do. Who writes has its turn from reading to writing:
    others that write wait for it, and who reads sees all of what was written or nothing.

    turn  that of writing: to write in it what the state is writing already is a StateError
    runs  how many runs have succeeded of programs that draw random numbers without a seed: each has
          other numbers than those before, and a copy of the state goes on with the same

    >>> v = gg.variable([1.0, 2.0])
    >>> state = gg.State()
    >>> state[v] = [3.0, 4.0]
    >>> gg.compile([], v, state=state)(), gg.evaluate(v)
    (array([3., 4.]), array([1., 2.]))
    """

    def __init__(self) -> None:
        self._values: dict[Node, Array] = {}
        self.runs = 0
        self.turn = Turn(_refused)

    def read(self, variables: Iterable[Node]) -> list[Array]:
        """Values of many variables, all from one moment.

        Parameters: variables: nodes of variables.

        Returns: a list of arrays, which are not to be written.
        """
        with _lock:
            return [self._values[v] if v in self._values else _initial(v) for v in variables]

    def commit(self, values: Mapping[Node, Array], runs: int = 0) -> None:
        """Write many variables together, whoever has the turn. The arrays become the state's.

        Parameters:
            values: {node of a variable: array of its shape and dtype}.
            runs: how many runs are counted with it.

        Returns: nothing.

        Raises: StateError for what is no variable.
        """
        for variable in values:
            if getattr(variable, "type", None) != "Variable":
                raise StateError(f"{variable!r} is not the node of a variable; it has no value")
        for value in values.values():
            value.flags.writeable = False
        with _lock:
            self._values.update(values)
            self.runs += runs

    def __getitem__(self, variable: Tensor) -> Array:
        return self.read([_variable(variable)])[0].copy()

    def __setitem__(self, variable: Tensor, value: Any) -> None:
        node = _variable(variable)
        check_unmasked(value, f"{node.name}: ")
        new = np.array(value)
        if not can_cast(new.dtype, variable.dtype, "same_kind"):
            raise DTypeError(f"{node.name} is {variable.dtype}, cannot take {new.dtype}")
        if not compatible(variable.shape, new.shape):
            raise ShapeError(f"{node.name} is {variable.type!r}, cannot take shape {new.shape}")
        self.turn.take(self.commit, {node: new.astype(variable.dtype)})

    def values(self) -> dict[Node, Array]:
        """What was written, by variable.

        Returns: {node: array}, a copy.
        """
        with _lock:
            return dict(self._values)

    def reset(self) -> None:
        """Back to the initial values, and to run 0.

        Returns: nothing.

        Raises: StateError in a thread that is writing this state.
        """
        self.turn.take(self._clear)

    def _clear(self) -> None:
        with _lock:
            self._values.clear()
            self.runs = 0

    def copy(self) -> State:
        """A state of its own with the same values.

        Returns: a State.
        """
        new = State()
        with _lock:
            new._values, new.runs = dict(self._values), self.runs
        return new

    def __len__(self) -> int:
        return len(self._values)

    def __getstate__(self) -> dict[str, Any]:
        with _lock:
            return {"_values": dict(self._values), "runs": self.runs}

    def __setstate__(self, given: dict[str, Any]) -> None:
        State.__init__(self)
        self._values.update(given["_values"])
        self.runs = given.get("runs", 0)  # older files have none


class RunNumber:
    """`with RunNumber(number):` what runs is the run of this number of a state.

    A Python int; where a program is traced, what stands for it.
    """

    __slots__ = ("_before", "number")

    def __init__(self, number: Any) -> None:
        self.number = number

    def __enter__(self) -> None:
        self._before = RUN.set(self.number)

    def __exit__(self, *exc: object) -> None:
        RUN.reset(self._before)


def _refused() -> StateError:
    return StateError(
        "a state is to be written by a thread that is writing it already, or that would wait in a "
        "circle of threads for one another's: in a py_function, a signal handler or __del__ that "
        "came while a run with updates was on.\nWrite it after that run, or give the variables of "
        "the inner run a State of their own."
    )


def _initial(variable: Node) -> Array:
    initial: Array = variable.op.attrs["initial"]
    return initial


def _variable(tensor: Tensor) -> Node:
    node = getattr(tensor, "node", None)
    if node is None:
        raise StateError(f"{tensor!r} is not a variable; a state is read by the variable itself")
    if node.type != "Variable":
        raise StateError(f"{tensor.name} (built at {tensor.where}) is not a variable")
    return tensor.node
