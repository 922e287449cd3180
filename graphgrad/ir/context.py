"""The one ambient record: current graph, open region, op-type stamps, name scope, origin."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from .errors import ScopeError

if TYPE_CHECKING:
    from .generators import WhileRunning
    from .graph import Graph
    from .groups import Groups
    from .node import Node, Region, RuleCall


class Context:
    """What every node built now takes on.

    graph    where nodes go
    implicit whether that is the default graph, which nobody entered
    region   the innermost open region
    stamps   op type -> (rule, the sets in which a match is noted), from the open maps
    scope    name scope, with its trailing slash
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
        "graph",
        "groups",
        "implicit",
        "live",
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
        self.stamps: dict[str, tuple[Any, tuple[set[str], ...], WhileRunning | None]] | None = None
        self.scope = ""
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


CONTEXT: ContextVar[Context] = ContextVar("graphgrad")


class Scope:
    """A with-block that changes the record, and puts it back on every exit.

    Leaving scopes in the wrong order, or in another thread or task than they were entered in, is a
    ScopeError; the record then stays as it is.
    """

    _saved: tuple[Token[Context], Context] | None = None

    def _push(self, context: Context) -> None:
        if self._saved is not None:
            raise ScopeError(f"{self._what()} is already open; make a new one for each `with`")
        self._saved = CONTEXT.set(context), context

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
        self._saved = None

    def is_current(self) -> bool:
        """Whether this is the innermost open scope here, in this thread or task."""
        saved = self._saved  # read once: another thread may leave this scope meanwhile
        return saved is not None and CONTEXT.get(None) is saved[1]

    def _what(self) -> str:
        return type(self).__name__
