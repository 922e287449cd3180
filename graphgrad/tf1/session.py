"""Sessions: values of variables, and runs by what is fetched and what is fed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

import numpy as np

from .create import numpy_value
from .errors import FailedPreconditionError, InvalidArgumentError, OpError
from .graph import Graph, Operation, Tensor, get_default_graph
from .graph_def import GraphDef
from .plan import Plan
from .scope import default_stack, pushed

__all__ = ["InteractiveSession", "Session", "get_default_session"]

Array = Any


class Run:
    """One run: what it read and wrote of the session's values, and its random numbers.

    written  {variable op: new value}; they become the session's when the run has succeeded
    """

    def __init__(self, session: BaseSession, key: int) -> None:
        self.session = session
        self.version = session._version
        self.written: dict[Operation, Array] = {}
        self._seeds = session._entropy
        self._key = key

    def read(self, op: Operation) -> Array:
        """The value of a variable now. Raises FailedPreconditionError where it has none."""
        found = self.written.get(op)
        if found is None:
            found = self.session._values.get(op)
        if found is None:
            raise FailedPreconditionError(
                op.node_def, op, f"Attempting to use uninitialized value {op.name}"
            )
        return found

    def value_of(self, source: Any) -> Array:
        """The value of a variable, or of a key for random numbers."""
        if source == "random":
            return np.array((self._seeds + self._key * 0x9E3779B97F4A7C15) & 0x3FFFFFFFFFFFFFFF)
        if source == "seeded":
            return np.array((self._key * 0x9E3779B97F4A7C15) & 0x3FFFFFFFFFFFFFFF)
        return self.read(source)

    def kind_of(self, op: Operation) -> Any:
        """Shape and type of the value of a variable, or None."""
        found = self.session._values.get(op)
        return None if found is None else (found.shape, found.dtype.char)

    def part(self, number: int) -> Run:
        """The same run, with random numbers of their own: a run of a loop's body."""
        made = Run.__new__(Run)
        made.__dict__.update(self.__dict__)
        made._key = (self._key * 1000003 + number + 1) & 0x3FFFFFFFFFFFFFFF
        return made


class Fetch:
    """What is asked for: which tensors and ops, and how the results are put together."""

    def __init__(self, fetches: Any, graph: Graph) -> None:
        self.tensors: list[Tensor] = []
        self.targets: list[Operation] = []
        self.build = self._handler(fetches, graph)

    def _handler(self, fetches: Any, graph: Graph) -> Callable[[list[Any]], Any]:
        if fetches is None:
            raise TypeError(f"Argument `fetch` = {fetches} has invalid type \"NoneType\". "
                            "Fetch argument None has invalid type")  # fmt: skip
        if isinstance(fetches, list | tuple):
            parts = [self._handler(f, graph) for f in fetches]
            if hasattr(fetches, "_fields"):
                kind: Any = type(fetches)
                return lambda results: kind(*[p(results) for p in parts])
            make = list if isinstance(fetches, list) else tuple
            return lambda results: make([p(results) for p in parts])
        if isinstance(fetches, Mapping):
            named = {k: self._handler(v, graph) for k, v in fetches.items()}
            of: Any = type(fetches)
            return lambda results: of({k: p(results) for k, p in named.items()})
        as_parts = getattr(fetches, "_fetch_parts", None)
        if as_parts is not None:
            parts, make_one = as_parts()
            handlers = [self._handler(p, graph) for p in parts]
            return lambda results: make_one([h(results) for h in handlers])
        return self._leaf(fetches, graph)

    def _leaf(self, fetch: Any, graph: Graph) -> Callable[[list[Any]], Any]:
        try:
            element = graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__!r}, must be a "
                f"string or Tensor. ({error})"
            ) from None
        except ValueError as error:
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error})"
            ) from None
        except KeyError as error:
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error.args[0]})"
            ) from None
        if isinstance(element, Operation):
            self.targets.append(element)
            return lambda results: None
        place = len(self.tensors)
        self.tensors.append(element)
        return lambda results: results[place]


class BaseSession:
    """Runs parts of a graph, with values of its variables that belong to the session."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        self._graph = get_default_graph() if graph is None else graph
        self.sess_str = target
        self._values: dict[Operation, Array] = {}
        self._version = 0
        self._runs = 0
        self._entropy = int.from_bytes(os.urandom(7), "little")
        self._fetches: dict[Any, Fetch] = {}
        self._plans: dict[Any, Plan] = {}
        self._plans_of = -1
        self._lock = RLock()
        self._closed = False

    @property
    def graph(self) -> Graph:
        """The graph whose parts it runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The description of the graph."""
        return GraphDef(self._graph.get_operations())

    def close(self) -> None:
        """Forget all values; it cannot run any more."""
        self._closed = True
        self._values.clear()
        self._plans.clear()

    def list_devices(self) -> list[Any]:
        """What it runs on: nothing that has a name."""
        return []

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """The values of fetches, in their structure. What the run writes is kept if it succeeds.

        fetches    tensors, variables, ops and names, in any nesting of lists, tuples and dicts
        feed_dict  {tensor, variable or name: value}; any tensor can be fed
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        fetch = self._fetch(fetches)
        feeds = self._fed(feed_dict) if feed_dict else {}
        with self._lock:
            results = self._run(fetch, feeds)
        return fetch.build(results)

    def _fetch(self, fetches: Any) -> Fetch:
        kind = type(fetches)
        if kind is list or kind is tuple:
            key: Any = (kind, *fetches)
            if any(type(f) is list or type(f) is str or isinstance(f, dict) for f in fetches):
                return Fetch(fetches, self._graph)
        elif kind is Tensor or kind is Operation:
            key = fetches
        else:
            return Fetch(fetches, self._graph)
        try:
            found = self._fetches.get(key)
        except TypeError:
            return Fetch(fetches, self._graph)
        if found is None:
            found = self._fetches[key] = Fetch(fetches, self._graph)
        return found

    def _fed(self, feed_dict: Any) -> dict[Tensor, Array]:
        found: dict[Tensor, Array] = {}
        for key, value in feed_dict.items():
            if type(key) is Tensor:
                if key.op.graph is not self._graph:
                    raise TypeError(f"Cannot interpret feed_dict key as Tensor: Tensor {key} is "
                                    "not an element of this graph.")  # fmt: skip
                found[key] = _fed_array(key, value)
            else:
                for t, v in _fed_parts(key, value, self._graph):
                    found[t] = _fed_array(t, v)
        return found

    def _run(self, fetch: Fetch, feeds: dict[Tensor, Array]) -> list[Any]:
        self._runs += 1
        run = Run(self, self._runs)
        arrays = dict(feeds)
        plan = self.plan(fetch.tensors, fetch.targets, list(feeds))
        try:
            plan.run(run, arrays)
        except OpError as error:
            if error._op is not None:
                error.add_note(
                    f"in {error._op.type} {error._op.name!r}, built at {error._op.where}"
                )
            raise
        results = [self._result(t, arrays, feeds, run) for t in fetch.tensors]
        self._commit(run.written)
        return results

    def plan(self, fetches: list[Tensor], targets: list[Operation], feeds: list[Tensor]) -> Plan:
        """How to run these, as found before or new."""
        if self._plans_of != self._graph._changes:
            self._plans.clear()
            self._plans_of = self._graph._changes
        key = (tuple(fetches), tuple(targets), tuple(feeds))
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = Plan(fetches, targets, feeds)
        return found

    def _result(self, t: Tensor, arrays: Any, feeds: Any, run: Run) -> Any:
        found = arrays.get(t)
        if found is None:
            if t.op.type == "VariableV2":
                found = run.read(t.op).copy()
            else:
                raise InvalidArgumentError(
                    t.op.node_def, t.op, f"Retval[0] does not have value: {t.name} is in a branch "
                    "that is not taken"
                )  # fmt: skip
        elif t in feeds or not found.flags.writeable:
            found = found.copy()
        return found if found.ndim else found[()]

    def _commit(self, written: dict[Operation, Array]) -> None:
        values = self._values
        for op, new in written.items():
            old = values.get(op)
            if old is None or old.shape != new.shape:
                self._version += 1
            values[op] = new

    def partial_run(self, *_: Any, **__: Any) -> Any:
        """Not there."""
        raise NotImplementedError("partial_run is not there: run all that is needed in one run")

    partial_run_setup = partial_run

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values of feed_list."""
        keys = list(feed_list or [])
        return lambda *values: self.run(fetches, dict(zip(keys, values, strict=True)))

    def as_default(self) -> Any:
        """It is the default session in the block; it stays open."""
        return pushed("session", self)

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be copied or pickled; use a Saver for its values")


class Session(BaseSession):
    """Runs parts of a graph. `with session:` makes it and its graph the default, then closes it."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._entered: list[Any] = []

    def __enter__(self) -> Session:
        scopes = (self._graph.as_default(), self.as_default())
        for scope in scopes:
            scope.__enter__()
        self._entered.append(scopes)
        return self

    def __exit__(self, *exc: Any) -> None:
        graph, session = self._entered.pop()
        session.__exit__(*exc)
        graph.__exit__(*exc)
        self.close()


class InteractiveSession(BaseSession):
    """A session that is the default one as soon as it is made."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._scopes = [self.as_default()]
        if graph is not None:
            self._scopes.append(graph.as_default())
        for scope in self._scopes:
            scope.__enter__()

    def close(self) -> None:
        """Forget all values; it is not a default session any more."""
        super().close()
        for scope in self._scopes:
            scope.__exit__(None, None, None)
        self._scopes = []


def get_default_session() -> Any:
    """The innermost default session, or None."""
    stack = default_stack("session")
    return stack[-1] if stack else None


def _fed_parts(key: Any, value: Any, graph: Graph) -> Any:
    """(tensor, value) of a feed whose key is not a tensor: a variable, a name, a tuple of
    tensors."""
    if isinstance(key, tuple | list):
        if len(key) != len(value):
            raise ValueError(f"a feed of {len(key)} tensors got {len(value)} values")
        for k, v in zip(key, value, strict=True):
            yield from _fed_parts(k, v, graph)
        return
    try:
        yield graph.as_graph_element(key, allow_operation=False), value
    except (TypeError, ValueError, KeyError) as error:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None


def _fed_array(t: Tensor, value: Any) -> Array:
    wanted = t._dtype.numpy
    if type(value) is np.ndarray and value.dtype == wanted:
        array = value
    else:
        if isinstance(value, Tensor) or hasattr(value, "_tensor_of"):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
                "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, "
                f"the tensor object was {value} which was passed to the feed with key {t}."
            )
        if isinstance(value, int) and not isinstance(value, bool) and wanted.kind in "iu":
            if wanted.type(value) != value:
                raise TypeError(
                    f"Type of feed value {value} with type {type(value)} is not compatible with "
                    f"Tensor type {t.dtype.name}. Try explicitly setting the type of the feed "
                    "tensor to a larger type (e.g. int64)."
                )
        array = np.asarray(value, wanted) if wanted.kind != "O" else numpy_value(value, t.dtype)
    lengths = t._shape.lengths
    if lengths is not None and array.shape != lengths:
        if not t._shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot feed value of shape {array.shape} for Tensor {t.name}, which has shape "
                f"{t._shape}"
            )
    if t not in t.op.graph._unfeedable:
        return array
    raise ValueError(f"Tensor {t} may not be fed.")
