"""Sessions: values of variables of one's own, and runs by what is fetched and what is fed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias, overload

from .base.errors import GraphError
from .base.first_tries import answer
from .base.flags import truth
from .base.tree import flatten, unflatten
from .compiled import CompiledFunction, compile, feeds_of
from .execute.backend import Backend
from .execute.loading import load_backend
from .ir.graph import Graph, GraphScope, default_graph
from .ir.node import Node, Tensor
from .ir.state import State
from .ir.typed import K, Named
from .ir.types import Array

__all__ = ["Session"]

Feeds: TypeAlias = Mapping[Any, Any] | None


class Session:
    """Runs parts of a graph, with values of its variables that belong to the session.

    `with session:` makes its graph current, and closes the session at the end.

    Parameters:
        graph: the current default graph if none is given.
        backend: as for `compile`.
        fresh: start from the initial values of variables; else from the values that the graph's own
            state has now, as training with `compile(updates=)` left them. Neither sees later
            changes of the other.

    >>> v = gg.variable(1.0)
    >>> add = gg.assign(v, v + 1.0)
    >>> session = gg.Session()
    >>> session.run(add), session.run(v)
    (array(2.), array(2.))
    """

    def __init__(
        self, graph: Graph | None = None, backend: str | Backend = "auto", *, fresh: bool = False
    ) -> None:
        self.graph = default_graph() if graph is None else graph
        self.state = State(self.graph) if truth("fresh", fresh) else self.graph.state.copy()
        self._backend = load_backend(backend)
        self._compiled: dict[Any, CompiledFunction] = {}
        self._closed = False
        self._scopes: list[GraphScope] = []

    @overload
    def run(self, fetches: Named, feed_dict: Feeds = None) -> Any: ...
    @overload
    def run(self, fetches: Tensor | str, feed_dict: Feeds = None) -> Array: ...
    @overload
    def run(self, fetches: Node, feed_dict: Feeds = None) -> None: ...
    @overload
    def run(self, fetches: list[Tensor] | list[str], feed_dict: Feeds = None) -> list[Array]: ...
    @overload
    def run(
        self, fetches: tuple[Tensor | str, Tensor | str], feed_dict: Feeds = None
    ) -> tuple[Array, Array]: ...
    @overload
    def run(self, fetches: dict[K, Tensor], feed_dict: Feeds = None) -> dict[K, Array]: ...
    @overload
    def run(self, fetches: list[Any], feed_dict: Feeds = None) -> list[Any]: ...
    @overload
    def run(self, fetches: tuple[Any, ...], feed_dict: Feeds = None) -> tuple[Any, ...]: ...
    @overload
    def run(self, fetches: dict[K, Any], feed_dict: Feeds = None) -> dict[K, Any]: ...
    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of fetches. Assigns among what they need are written after the run.

        Parameters:
            fetches: tensors, names such as "x:0", and nodes, in any nesting of lists, tuples and
                dicts. A node is run and fetched as None.
            feed_dict: {tensor or name: array}; any tensor can be fed.

        Returns: NumPy arrays in the structure of fetches.

        Raises: RuntimeError after close(); GraphError for what is not in the session's graph, or a
        placeholder that is needed and not fed; ShapeError and DTypeError for an array that does not
        fit.
        """
        if self._closed:
            raise RuntimeError("the session is closed")
        leaves = [self._fetch(leaf) for leaf in flatten(fetches)]
        feeds = feeds_of(self.graph, feed_dict or {})
        tensors = [t for t in leaves if t is not None]
        for leaf in flatten(fetches):
            if isinstance(leaf, Node):
                tensors.extend(leaf.outputs[:1])
        results = self._function(tensors, list(feeds))(*feeds.values())
        supply = iter(results)
        return unflatten(fetches, [None if t is None else next(supply) for t in leaves])

    def close(self) -> None:
        """Forget the compiled functions; the session cannot run any more."""
        self._closed = True
        self._compiled.clear()

    def _fetch(self, leaf: Any) -> Tensor | None:
        if isinstance(leaf, str):
            leaf = self.graph.tensor(leaf)
        if leaf is None or isinstance(leaf, Node):
            return None
        if isinstance(leaf, Tensor):
            return leaf
        if callable(leaf):
            raise GraphError(f"{leaf!r} is a function, and is called with arrays: f(array)")
        raise GraphError(f"fetches are tensors, names and nodes, got {leaf!r}")

    def _function(self, tensors: list[Tensor], feeds: list[Tensor]) -> CompiledFunction:
        """Compiled once for these fetches and feeds: graphs only grow, so it stays right."""
        key = (tuple(map(id, tensors)), tuple(map(id, feeds)))
        cached = self._compiled.get(key)
        if cached is None:
            self._check_graph([*tensors, *feeds])
            cached = compile(feeds, tensors, backend=self._backend, state=self.state)
            self._compiled[key] = cached
        return cached

    def _check_graph(self, tensors: list[Tensor]) -> None:
        for t in tensors:
            if t.graph is not self.graph:
                raise GraphError(
                    f"{t.name} (built at {t.where}) is in {t.graph!r}, the session runs "
                    f"{self.graph!r}"
                )

    def __enter__(self) -> Session:
        scope = GraphScope(self.graph)
        self._scopes.append(scope)
        try:
            scope.__enter__()
        except BaseException:
            self._scopes.pop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._scopes[-1].__exit__(*exc)
        finally:
            self._scopes.pop()
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session cannot be copied or pickled; copy its state: session.state.copy()"
        )

    def __repr__(self) -> str:
        return f"<session of {self.graph!r}>"


answer(Session)
