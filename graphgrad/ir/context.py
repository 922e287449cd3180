"""The one ambient record: current graph, open region, op-type stamps, name scope, origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from .errors import ScopeError

if TYPE_CHECKING:
    from .graph import Graph
    from .groups import Groups
    from .node import Node, Region, RuleCall


class Context:
    """What every node built now takes on.

    graph    where nodes go
    implicit whether that is the default graph, which nobody entered
    region   the innermost open region
    maps     the open op-type maps of all graphs, outermost first
    stamps   op type -> those that have an entry for it and act here; the last one wins
    scope    name scope, with its trailing slash
    left     the record of the graph that was left for this one; what was open there is found again
    inner    the scopes opened in this record that are still open; None: nobody will ask
    ended    the scope acting here that was left: nothing may be built; None: all are open
    origin   why nodes are being built: see Node.origin. The sweep writes it once a step.
    running  the sites whose rule is running: they count as unmarked meanwhile
    overrides what the running gradients() call was given as overrides
    choice   what that says on its graph (differentiate.choices)
    groups   the groups of nodes that it names; None: none
    asked    the steps that were asked for their gradient in that call; None: nobody wants to know
    opened   the sites whose rule asked for their default in that call
    live     tensors that a gradient is wanted for; None: all of them
    called   what rules gave so far in the running question, by site; None: no question runs
    """

    __slots__ = (
        "asked",
        "called",
        "choice",
        "ended",
        "graph",
        "groups",
        "implicit",
        "inner",
        "left",
        "live",
        "maps",
        "opened",
        "origin",
        "overrides",
        "region",
        "running",
        "scope",
        "stamps",
    )

    def __init__(self, graph: Graph, implicit: bool = False) -> None:
        self.graph = graph
        self.implicit = implicit
        self.region: Region | None = None
        self.maps: tuple[Any, ...] = ()
        self.stamps: Stamps | None = None
        self.scope = ""
        self.left: Context | None = None
        self.inner: set[Scope] | None = None
        self.ended: Scope | None = None
        self.origin: Node | RuleCall | None = None
        self.running: tuple[Node | Region, ...] = ()
        self.overrides: Any = None
        self.choice: Any = None
        self.groups: Groups | None = None
        self.asked: set[Node | Region] | None = None
        self.opened: set[Node | Region] | None = None
        self.live: Any = None
        self.called: dict[Any, Any] | None = None

    def copy(self) -> Context:
        """The same record anew, for a scope to change."""
        new = Context.__new__(Context)
        for name in Context.__slots__:
            setattr(new, name, getattr(self, name))
        return new

    def without_maps(self) -> None:
        """Have no op-type map act here."""
        self.maps, self.stamps = (), None


CONTEXT: ContextVar[Context] = ContextVar("graphgrad")

Stamps = dict[str, tuple[Any, ...]]


def bodies_around(graph: Graph | None) -> Iterator[Graph]:
    """A graph and, for a body, the graphs around it."""
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer", None)


def stamps_on(graph: Graph, maps: Iterable[Any], implicit: bool = False) -> Stamps | None:
    """The op-type maps that act on a graph: those opened on it, or on a graph around it.

    implicit  nobody entered the graph: then those count too that were opened when nobody had
    """
    graphs = set(bodies_around(graph))
    stamps: Stamps = {}
    for each in maps:
        if each.graph in graphs or (implicit and each.implicit):
            add_stamps(stamps, each)
    return stamps or None


def add_stamps(stamps: Stamps, inner: Any) -> None:
    """Have an inner map win over those that are there."""
    for op_type in inner.map:
        stamps[op_type] = (*stamps.get(op_type, ()), inner)


class Scope:
    """A with-block that changes the record, and puts it back on every exit.

    Leaving scopes in the wrong order, or in another thread or task than they were entered in, is a
    ScopeError; the record then stays as it is.
    """

    _saved: tuple[Token[Context], Context, Context] | None = None

    def _push(self, context: Context) -> None:
        if self._saved is not None:
            raise ScopeError(f"{self._what()} is already open; make a new one for each `with`")
        outer = CONTEXT.get()
        context.inner = set()
        self._saved = CONTEXT.set(context), context, outer
        if outer.inner is not None:
            outer.inner.add(self)

    def _pop(self) -> None:
        if self._saved is None:
            raise ScopeError(f"{self._what()} was left without having been entered")
        try:
            if not self.is_current():
                raise ValueError
            CONTEXT.reset(self._saved[0])  # ValueError in a copy of the context
        except ValueError:
            raise ScopeError(
                f"{self._what()} was left in the wrong order, or in another thread or task than "
                "the one that entered it"
            ) from None
        context, outer = self._saved[1:]
        self._saved = None
        if outer.inner is not None:
            outer.inner.discard(self)
        self._end(context)

    def _end(self, left: Context) -> None:
        """Mark the record that was left, and those that others hold open in it still, as ended."""
        pending = [left]
        for record in pending:
            if record.ended is None and left.graph in bodies_around(record.graph):
                record.ended = self
            for inner in tuple(record.inner or ()):
                saved = inner._saved  # read once: another thread may leave it meanwhile
                if saved is not None and not self._spares(inner):
                    pending.append(saved[1])

    def _spares(self, inner: Scope) -> bool:
        """Whether a scope opened in this one does not depend on it."""
        return False

    def is_current(self) -> bool:
        """Whether this is the innermost open scope here, in this thread or task."""
        saved = self._saved  # read once: another thread may leave this scope meanwhile
        return saved is not None and CONTEXT.get(None) is saved[1]

    def _what(self) -> str:
        return type(self).__name__
