"""Being in a graph: which one is current, and the scopes that enter one, or a part of its names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..base.collector import undisturbed
from ..base.errors import ScopeError, ShapeError
from ..base.ieee import SETTING
from ..base.keywords import note_keyword
from ..base.length import Inequality, Length
from ..base.position import caller, show
from ..base.solving import Assumption
from .context import CONTEXT, Context, NoGraph, Scope, bodies_around, stamps_on
from .node import Graph

__all__ = [
    "Graph",
    "GraphScope",
    "assume",
    "current",
    "default_graph",
    "name_scope",
    "reset_default_graph",
]


P = ParamSpec("P")
R = TypeVar("R")


def current() -> Context:
    """The current record; makes the default graph on first use in a context."""
    try:
        return CONTEXT.get()
    except LookupError:
        context = Context(Graph(), implicit=True)
        undisturbed(CONTEXT.set, context)
        return context


def restored(f: Callable[P, R]) -> Callable[P, R]:
    """Have a function leave the current graph and NumPy's error settings as it finds them.

    Its context managers do so where they are left. An interrupt that is served before `__exit__`
    begins keeps one of them from it.
    """

    @wraps(f)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        context, setting = current(), SETTING.get()
        try:
            try:
                return f(*args, **kwargs)
            finally:
                _put_back(CONTEXT, context)
                _put_back(SETTING, setting)
        except BaseException:  # an interrupt of the lines above, maybe
            _put_back(CONTEXT, context)
            _put_back(SETTING, setting)
            raise

    return run


def _put_back(variable: ContextVar[Any], value: Any) -> None:
    if variable.get() is not value:
        undisturbed(variable.set, value)


def reset_default_graph() -> None:
    """Replace the default graph by an empty one.

    Returns: nothing.

    Raises: ScopeError inside a scope of any kind.

    >>> x = gg.constant(1.0)
    >>> gg.reset_default_graph()
    >>> len(gg.default_graph())
    0
    """
    here = current()
    scoped = here.region is not None or here.maps or here.scope
    if not here.implicit or scoped:
        raise ScopeError("reset_default_graph() inside an open scope; leave the scope first")
    undisturbed(CONTEXT.set, Context(Graph(), implicit=True))


def entering(graph: Graph, implicit: bool = False) -> Context:
    """A record for building in a graph: what was open there when it was left is found again.

    implicit  nobody enters it: nodes go to the graph of their inputs
    """
    around = current()
    record: Context | None = around
    closed: NoGraph | None = None
    while record is not None and record.graph is not graph:
        if isinstance(record.ended, NoGraph):
            closed = record.ended
        record = record.left
    context = around.copy()
    context.graph, context.implicit, context.ended = graph, implicit, None
    if record is None:
        context.region, context.origin = None, None
        context.scope = context.scope if implicit else ""
    else:
        context.region, context.origin, context.scope = record.region, record.origin, record.scope
        if not isinstance(record.ended, GraphScope):
            context.ended = record.ended
    if closed is not None and graph.number < closed.number:
        context.ended = closed
    if record is not around:
        context.left = around
        context.stamps = stamps_on(graph, context.maps, implicit)
    return context


class GraphScope(Scope):
    """`with graph:`: new nodes go there, into the region, maps and name scope that are open there.

    implicit  they would go there anyway, for nobody entered a graph
    """

    def __init__(self, graph: Graph, implicit: bool = False) -> None:
        self.graph = graph
        self.implicit = implicit

    def __enter__(self) -> Graph:
        self.position = caller()
        self._push(entering(self.graph, self.implicit))
        return self.graph

    def __exit__(self, kind: object, *exc: Any) -> None:
        self._pop(kind)
        note_keyword(*exc)

    def _spares(self, inner: Scope) -> bool:
        return isinstance(inner, GraphScope)

    def _what(self) -> str:
        return f"`with` of {self.graph!r} at {show(self.position)}"

    def __repr__(self) -> str:
        return f"<{self._what()}>"


class name_scope(Scope):
    """`with gg.name_scope("encoder"):` nodes built in the block are named `encoder/...`.

    Nested scopes join with a slash; a scope opened twice is the same scope.

    Parameters: name: one or several names with slashes between them.

    Raises: ValueError for an empty name.

    >>> with gg.name_scope("encoder"):
    ...     gg.constant(1.0, name="c").name
    'encoder/c:0'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name.strip("/"):
            raise ValueError(f"a name scope needs a name, got {name!r}")
        self.name = name.strip("/")

    def __enter__(self) -> str:
        self.position = caller()
        context = current().copy()
        context.scope = f"{context.scope}{self.name}/"
        self._push(context)
        return context.scope[:-1]

    def __exit__(self, kind: object, *exc: object) -> None:
        self._pop(kind)

    def _what(self) -> str:
        return f"name_scope({self.name!r}) at {show(self.position)}"

    def __repr__(self) -> str:
        return f"<{self._what()}>"


def default_graph() -> Graph:
    """The graph that new nodes go to.

    Returns: the graph of the innermost `with`; outside of all, that of this thread or task.

    >>> with gg.Graph() as g:
    ...     gg.default_graph() is g
    True
    """
    return current().graph


def as_default(graph: Graph) -> AbstractContextManager[Graph]:
    """A with-block in which new nodes go to this graph.

    Returns: a context manager that gives the graph.

    >>> g = gg.Graph()
    >>> with g.as_default():
    ...     x = gg.constant(1.0)
    >>> x.graph is g
    True
    """
    return GraphScope(graph)


def _enter(graph: Graph) -> Graph:
    scope = GraphScope(graph)
    graph._scopes.append(scope)
    try:
        scope.__enter__()
    except BaseException:
        graph._scopes.remove(scope)
        raise
    return graph


def _leave(graph: Graph, kind: object, *exc: Any) -> None:
    scope = None
    try:
        scope = _innermost(graph, kind)
        scope._pop(kind)
    except ScopeError:
        raise
    except BaseException as error:  # an interrupt on the way: left all the same
        scope = scope or _innermost(graph, error)
        if scope.is_around():
            scope._pop(error)
        raise
    graph._scopes.remove(scope)
    note_keyword(*exc)


def _innermost(graph: Graph, kind: object) -> GraphScope:
    """What leaving the graph here leaves; other threads enter and leave it, too."""
    scopes: tuple[GraphScope, ...] = tuple(graph._scopes)
    for scope in reversed(scopes):
        if scope.is_current() or (kind is not None and scope.is_around()):
            return scope
    raise ScopeError(f"{graph!r} was left in the wrong order, or in another thread or task")


Graph.as_default = as_default  # type: ignore
Graph.__enter__ = _enter  # type: ignore[method-assign]
Graph.__exit__ = _leave  # type: ignore[method-assign]


def assume(*stated: Inequality | bool) -> None:
    """State a fact about named lengths, which holds in the current graph from here on.

    It decides later comparisons and shapes. Runs check it once for every set of shapes.

    Parameters: *stated: comparisons of lengths, as `N >= 2` or `M <= 2 * N`; True says nothing new.

    Returns: nothing.

    Raises: ShapeError for what never holds; TypeError for input that is not a comparison of
    lengths. A run raises ShapeError where it is not so.

    >>> x = gg.placeholder(("N",), name="x")
    >>> x[1:].shape
    (max(N - 1, 0),)
    >>> gg.assume(x.shape[0] >= 1)
    >>> x[1:].shape, x.shape[0] > 0
    ((N - 1,), True)
    """
    where = show(caller())
    for each in stated:
        if each is False:
            raise ShapeError(f"gg.assume at {where}: no lengths satisfy this")
        if each is not True and not isinstance(each, Inequality):
            raise TypeError(f"gg.assume takes comparisons of lengths, as N >= 2, got {each!r}")
    new = [Assumption(e.left, e.sign, e.right, where) for e in stated if isinstance(e, Inequality)]
    for graph in bodies_around(current().graph):
        graph.assumptions.extend(new)


def _assumed() -> tuple[Length, ...]:
    context = CONTEXT.get(None)
    return () if context is None else facts_of(context.graph)


def facts_of(graph: Graph) -> tuple[Length, ...]:
    """The lengths that are at least 0 by what was stated in a graph, and in those around it."""
    stated = [a.excess for each in bodies_around(graph) for a in each.assumptions]
    return tuple(dict.fromkeys(excess for excess in stated if isinstance(excess, Length)))


Length.assumed = staticmethod(_assumed)
