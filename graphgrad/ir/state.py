"""The number of the run that is on, and the values of variables.

A state knows a variable as the node that it reads: its name, its type and its graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..base.errors import DTypeError, ShapeError, StateError
from ..base.kinds import can_cast
from ..base.locks import Turn, lock_of_module
from ..base.words import shortened
from .held import any_gone, fetched, is_gone
from .types import Array, TensorType, check_unmasked, compatible
from .variables import near

__all__ = ["RUN", "State"]

RUN: ContextVar[Any] = ContextVar("run", default=0)
"""The number of the run that is on, which what is random without a seed reads (ops.random.keys)."""

_NDARRAY: Any = np.ndarray
_lock = lock_of_module()  # of all states: it is held for a copy


class State:
    """Variable -> value. A variable that was never written has its initial value.

    Arrays inside are never handed out writable and never written in place, so a run that has read a
    value keeps it whatever other threads do. A writer has exclusive access from reading to writing:
    others that write wait for it, and who reads sees all of what was written or nothing.

    A variable is named by its tensor or, where the state knows its graph, by its name.

    Parameters: graph: whose variables are known by name; None: that of what it is first used with,
    by `compile` or a key.

    graph  whose variables it knows by name
    turn  that of writing: to write in it what the state is writing already is a StateError
    runs  how many runs have succeeded of programs that draw random numbers without a seed: each has
          other numbers than those before, and a copy of the state goes on with the same

    >>> v = gg.variable([1.0, 2.0])
    >>> state = gg.State()
    >>> state[v] = [3.0, 4.0]
    >>> gg.compile([], v, state=state)(), gg.evaluate(v)
    (array([3., 4.]), array([1., 2.]))
    """

    def __init__(self, graph: Any = None) -> None:
        self.graph = graph
        self._values: dict[Any, Any] = {}  # None for those that are ahead
        self._foreign = False  # whether any value was not NumPy's
        self._own: set[Any] = set()  # whose values no copy of the state has
        self._lent = False  # whether a run may take the memory of values
        # variables read or written last, their values, and whether these are ahead of the others
        self._latest: tuple[tuple[Any, ...], tuple[Any, ...], bool] = (), (), False
        self.runs = 0
        self.turn = Turn(_refused)

    def read(self, variables: Iterable[Any]) -> list[Array]:
        """Values of many variables, all from one moment.

        Parameters: variables: nodes of variables.

        Returns: a list of NumPy arrays, which are not to be written.

        Raises: StateError for a value that was given to a run that failed (`donate=True`).
        """
        return [_shown(value) for value in self.for_run(tuple(variables))]

    def for_run(self, variables: tuple[Any, ...]) -> tuple[Array, ...]:
        """As `read`, for a run, which lets nobody have them for longer than it takes.

        Parameters: variables: nodes of variables.

        Returns: a tuple of NumPy arrays, which are not to be written.

        Raises: StateError for a value that was given to a run that failed (`donate=True`).
        """
        latest, found, _ = self._latest
        if latest is variables:
            return found
        with _lock:
            known = self._settled()
            values = tuple([known[v] if v in known else _initial(v) for v in variables])
            if not self._foreign:
                self._latest = variables, values, False
                return values
        return self._fetched(variables, values)

    def held(self, variables: Iterable[Any]) -> list[Any]:
        """As `read`, each value as the run that made it left it: on a device, maybe.

        Parameters: variables: nodes of variables.

        Returns: a list of arrays, which are not to be written.
        """
        with _lock:
            known = self._settled()
            return [known[v] if v in known else _initial(v) for v in variables]

    def _settled(self) -> dict[Any, Any]:
        """What was written, by variable, for who has the lock."""
        variables, values, ahead = self._latest
        if ahead:
            self._values.update(zip(variables, values, strict=True))
            self._latest = variables, values, False
        return self._values

    def _fetched(self, nodes: Sequence[Any], values: tuple[Any, ...]) -> tuple[Array, ...]:
        """Values as arrays of NumPy's. Those that were given to a run are read after it."""
        try:
            return tuple(map(fetched, values))
        except Exception:
            if not any_gone(values):
                raise
        return self.turn.take(lambda: tuple(map(fetched, self.there(nodes))))

    def there(self, variables: Iterable[Any]) -> list[Any]:
        """As `held`, for who has the turn.

        Parameters: variables: nodes of variables.

        Returns: a list of arrays.

        Raises: StateError for a value that was given to a run that failed (`donate=True`).
        """
        nodes = list(variables)
        values = self.held(nodes)
        lost = [n.name for n, value in zip(nodes, values, strict=True) if is_gone(value)]
        if lost:
            raise StateError(
                f"the values of {shortened(', '.join(lost), 120)} are lost: a run with donate=True "
                "took their memory and failed.\nTake them from a checkpoint "
                "(gg.Checkpoints.resume, state.load), or from the initial values (state.reset())"
            )
        return values

    @contextmanager
    def lent(self, variables: Sequence[Any]) -> Iterator[list[bool]]:
        """While a run may take the memory of these values, for who has the turn.

        Parameters: variables: nodes of variables.

        Returns: a context manager. It gives for each whether nobody else, such as a copy of the
        state, has the value.
        """
        with _lock:
            own = [v in self._own for v in variables]
            self._own.difference_update(variables)
            self._lent = True
        try:
            yield own
        finally:
            self._lent = False

    def commit(
        self,
        values: Mapping[Any, Any],
        runs: int = 0,
        *,
        own: bool = False,
        read: tuple[Any, ...] = (),
    ) -> None:
        """Write many variables together, whoever has the turn. The arrays become the state's.

        Parameters:
            values: {node of a variable: array of its shape and dtype}, NumPy's or a backend's.
            runs: how many runs are counted with it.
            own: whether nobody else has the arrays, so that a run may be given their memory.
            read: the same variables in the same order, if they are to be read next.

        Returns: nothing.

        Raises: StateError for input that is not a variable.
        """
        known = self._values
        for variable in [v for v in values if v not in known]:
            if getattr(variable, "type", None) != "Variable":
                raise StateError(f"{variable!r} is not the node of a variable; it has no value")
        foreign = False
        for value in values.values():
            if type(value) is _NDARRAY:
                value.setflags(False)  # write; by keyword it takes twice as long
            else:
                foreign = True
        with _lock:
            self._settled().update(values)
            self._foreign = self._foreign or foreign
            again = read and not self._foreign
            self._latest = (read, tuple(values.values()), False) if again else ((), (), False)
            if own:
                self._own.update(values)
            elif self._own:
                self._own.difference_update(values)
            self.runs += runs

    def advance(self, variables: tuple[Any, ...], values: tuple[Array, ...], runs: int = 0) -> None:
        """Write many variables together, whoever has the turn, in the time that one takes.

        Old values that nobody reads are given up.

        Parameters:
            variables: nodes of variables, the very tuple that is to be read next.
            values: for each a read-only array of NumPy's, which becomes the state's.
            runs: how many runs are counted with it.

        Returns: nothing.
        """
        with _lock:
            before = self._latest
            if before[2] and before[0] is variables:
                self._latest = variables, values, True
            else:
                old = self._settled()
                new = old | dict.fromkeys(variables)
                self._values, self._latest = new, (variables, values, True)
                self._own.difference_update(variables)
            self.runs += runs

    def __getitem__(self, variable: Any) -> Array:
        return self.for_run((self._node(variable),))[0].copy()

    def __setitem__(self, variable: Any, value: Any) -> None:
        node = self._node(variable)
        self.turn.take(self.commit, {node: _fitting(node, value)})

    def as_dict(self) -> dict[str, Array]:
        """All values by name, those that were never written too: what `load` takes.

        Returns: {name: array}, copies of one moment, in the order in which the variables were
        built.

        Raises: StateError for a state that knows no graph, or of two graphs with a name in common.

        >>> with gg.Graph() as g:
        ...     w = gg.variable([1.0, 2.0], name="w")
        >>> g.state.as_dict()
        {'w': array([1., 2.])}
        """
        named = self._named()
        values = self.read(named.values())
        return {name: value.copy() for name, value in zip(named, values, strict=True)}

    def load(self, values: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Write many variables by name, all of them or, where anything is wrong, none.

        Parameters:
            values: {name: array of the variable's shape, of a dtype that NumPy casts to its by
                same-kind casting}.
            strict: whether every variable has to be there, and nothing else; else what is missing
                keeps its value, and what is unknown is left out.

        Returns: the names that were missing, and those that were unknown; none if strict.

        Raises: StateError that lists all names that are missing, unknown or do not fit; in a thread
        that is writing this state.

        >>> with gg.Graph() as g:
        ...     w, b = gg.variable([1.0, 2.0], name="w"), gg.variable(0.5, name="b")
        >>> g.state.load({"w": [3.0, 4.0], "v": 1.0}, strict=False)
        (['b'], ['v'])
        >>> g.state["w"]
        array([3., 4.])
        """
        named = self._named()
        new: dict[Any, Array] = {}
        wrong: list[str] = []
        for name, node in named.items():
            if name in values:
                try:
                    new[node] = _fitting(node, values[name])
                except (DTypeError, ShapeError) as error:
                    wrong.append(f"does not fit: {error}")
        missing = [name for name in named if name not in values]
        unknown = [name for name in values if name not in named]
        if strict:
            wrong += [f"missing: {n}, {_type(named[n])!r}" for n in missing]
            wrong += [f"unknown: {n!r}. {near(str(n), named)}".rstrip() for n in unknown]
        if wrong:
            raise StateError(
                "the values do not fit the variables; none was written.\n  " + "\n  ".join(wrong)
            )
        self.turn.take(self.commit, new)
        return missing, unknown

    def concerns(self, graph: Any) -> State:
        """Know the variables of a graph by name, if it knows none yet.

        Parameters: graph: the one that it is used with.

        Returns: the state itself.
        """
        if self.graph is None:
            self.graph = graph
        return self

    def _node(self, variable: Any) -> Any:
        """The node of a variable that is given, or named."""
        if isinstance(variable, str):
            named = self._named()
            if variable not in named:
                raise StateError(
                    f"no variable is named {variable!r}. {near(variable, named)}".rstrip()
                )
            return named[variable]
        node = _variable(variable)
        self.concerns(node.graph)
        return node

    def _named(self) -> dict[str, Any]:
        """The variables it knows, by name."""
        if self.graph is None:
            raise StateError(
                "this state knows no variables by name: make it with their graph, "
                "gg.State(graph), or give the variables themselves"
            )
        named: dict[str, Any] = {}
        for node in self._known(self.graph):
            other = named.setdefault(node.name, node)
            if other is not node:
                raise StateError(
                    f"two variables are named {node.name!r}, built at {other.where} and at "
                    f"{node.where}, in two graphs; give the variables themselves"
                )
        return named

    def _known(self, graph: Any) -> Iterator[Any]:
        """Those of its graph, and of others those that were written."""
        yield from (t.node for t in graph.variables)
        with _lock:
            written = list(self._settled())
        yield from (node for node in written if node.graph is not graph)

    def values(self) -> dict[Any, Array]:
        """What was written, by variable.

        Returns: {node: array}, a copy.

        Raises: StateError for a value that was given to a run that failed (`donate=True`).
        """
        return self._written()[0]

    def _written(self) -> tuple[dict[Any, Array], int]:
        """What was written, as arrays of NumPy's, and the number of runs, of one moment."""
        with _lock:
            values, runs = dict(self._settled()), self.runs
        if not self._foreign:
            return {v: _shown(value) for v, value in values.items()}, runs
        try:
            return {v: fetched(value) for v, value in values.items()}, runs
        except Exception:
            if not any_gone(values.values()):
                raise
        return self.turn.take(self._written_now)

    def _written_now(self) -> tuple[dict[Any, Array], int]:
        """The same, for who has the turn."""
        nodes = list(self._values)
        values = map(fetched, self.there(nodes))
        return dict(zip(nodes, values, strict=True)), self.runs

    def reset(self) -> None:
        """Back to the initial values, and to run 0.

        Returns: nothing.

        Raises: StateError in a thread that is writing this state.
        """
        self.turn.take(self._clear)

    def _clear(self) -> None:
        with _lock:
            self._values.clear()
            self._latest = (), (), False
            self._own.clear()
            self.runs = 0

    def copy(self) -> State:
        """A state of its own with the same values.

        Returns: a State.
        """
        copied = self._copy()
        return self.turn.take(self._copy_now) if copied is None else copied

    def _copy(self) -> State | None:
        """A copy; None while a run may take the memory of values."""
        with _lock:
            return None if self._lent else self._copy_now()

    def _copy_now(self) -> State:
        """A copy. From now on two have the arrays, so no run may be given their memory."""
        new = State(self.graph)
        with _lock:
            values = dict(self._settled())
            new._values, new._foreign, new.runs = values, self._foreign, self.runs
            self._own.clear()
        return new

    def __copy__(self) -> State:
        return self.copy()

    def __len__(self) -> int:
        return len(self._values)

    def __getstate__(self) -> dict[str, Any]:
        values, runs = self._written()
        return {"_values": values, "runs": runs, "graph": self.graph}

    def __setstate__(self, given: dict[str, Any]) -> None:
        State.__init__(self, given.get("graph"))  # older files have none
        self._values.update(given["_values"])
        self.runs = given.get("runs", 0)  # older files have none


def _refused() -> StateError:
    return StateError(
        "a state cannot be written, or its values in a run read, by a thread that is already "
        "writing it, or in a cycle of threads that wait for each other's: this was called in a "
        "py_function, a signal handler or __del__ during a run with updates.\n"
        "Write it after that run, or give the variables of the inner run a State of their own."
    )


def _fitting(node: Any, value: Any) -> Array:
    """The value as an array of a variable's type; DTypeError or ShapeError where it is none."""
    check_unmasked(value, f"{node.name}: ")
    new = np.array(value)
    promised = _type(node)
    if not can_cast(new.dtype, promised.dtype, "same_kind"):
        raise DTypeError(f"{node.name} is {promised.dtype}, cannot take {new.dtype}")
    if not compatible(promised.shape, new.shape):
        raise ShapeError(f"{node.name} is {promised!r}, cannot take shape {new.shape}")
    return new.astype(promised.dtype)


def _type(node: Any) -> TensorType:
    type: TensorType = node.outputs[0].type
    return type


def _shown(value: Array) -> Array:
    """A value for who may keep it; a part of a block, which a run will write, as a view of it."""
    return value if value.base is None else value.view()


def _initial(variable: Any) -> Array:
    initial: Array = variable.op.attrs["initial"]
    return initial


def _variable(tensor: Any) -> Any:
    node: Any = getattr(tensor, "node", None)
    if node is None:
        raise StateError(
            f"{tensor!r} is not a variable; a state is read by the variable itself, or its name"
        )
    if node.type != "Variable":
        raise StateError(f"{tensor.name} (built at {tensor.where}) is not a variable")
    return node
