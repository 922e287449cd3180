"""The one ambient record: graph, open region, op-type stamps, name scope, origin, question."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..base.collector import undisturbed
from ..base.errors import ScopeError
from .region_tree import MARKED, RegionTree

if TYPE_CHECKING:
    from .node import Graph, Node, Region, RuleCall


_new = object.__new__


class AnyQuestion(Protocol):
    """What is asked for (differentiate.question), as far as it counts where nodes are built."""

    @property
    def choice(self) -> Any:
        """The rules that were chosen for the call (differentiate.choices); None: none."""

    @property
    def tree(self) -> RegionTree:
        """The tree of regions, with the groups of nodes that the call names."""


class Unasked(NamedTuple):
    """Nobody asks for a gradient."""

    choice: Any = None
    tree: RegionTree = MARKED


UNASKED = Unasked()


class Answering(NamedTuple):
    """What is known while a question is answered: never written, replaced for a part and put back.

    running  the sites whose rule is running: they count as unmarked meanwhile
    live     tensors that the running sweep wants a gradient for; None: all of them
    called   what rules gave so far, by site; None: a rule runs
    drawn    the numbers of their draws without a seed, by site; None: a rule runs
    draws    who counts those of the rule that runs; None: none does
    judge    who judges rules for forward mode before they are called; None: nobody
    asked    the steps that were asked for their gradient; None: nobody wants to know
    opened   the sites whose rule asked for their default
    given    the cotangents that running rules were given: what a rule differentiates ends at them
    """

    running: tuple[Node | Region, ...] = ()
    live: Container[Any] | None = None
    called: dict[Any, Any] | None = None
    drawn: dict[Any, Sequence[int]] | None = None
    draws: Any = None
    judge: Any = None
    asked: set[Node | Region] | None = None
    opened: set[Node | Region] | None = None
    given: tuple[Any, ...] = ()

    def within(self, live: Container[Any] | None = None) -> Answering:
        """What a question or a sweep within this one starts with; live: what it wants."""
        running, _, called, drawn, draws, judge, asked, opened, given = self
        called = {} if called is None else called
        drawn = {} if drawn is None else drawn
        return Answering(running, live, called, drawn, draws, judge, asked, opened, given)

    def calling(self, site: Node | Region, own: bool, draws: Any, judge: Any) -> Answering:
        """What is known while the rule of a site runs.

        own  it is one of graphgrad's own, which goes on with what is asked around it
        """
        running, _, called, drawn, _, _, asked, opened, given = self
        if not own:
            called = drawn = None
        return Answering((*running, site), None, called, drawn, draws, judge, asked, opened, given)

    def ending_at(self, dys: Sequence[Any]) -> Answering:
        """What is known while a rule runs that was given these cotangents."""
        running, live, called, drawn, draws, judge, asked, opened, given = self
        given = (*given, *dys)
        return Answering(running, live, called, drawn, draws, judge, asked, opened, given)


IDLE = Answering()


class NoGraph(NamedTuple):
    """Said where no graph is current: nothing may be built, but in graphs that are made there.

    instead  what to write instead
    number   that of the first graph that is made there
    """

    instead: str
    number: int


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
    ended    the scope acting here that was left, or NoGraph: nothing may be built; None: all are
             open
    origin   why nodes are being built: see Node.origin. The sweep writes it once a step.
    question what is asked for here: a running gradients() call, or UNASKED
    answering what is known while that is answered, or IDLE
    around   the record that was current when a scope made this one so
    """

    __slots__ = (
        "answering",
        "around",
        "ended",
        "graph",
        "implicit",
        "inner",
        "left",
        "maps",
        "origin",
        "question",
        "region",
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
        self.ended: Scope | NoGraph | None = None
        self.origin: Node | RuleCall | None = None
        self.question: AnyQuestion = UNASKED
        self.answering = IDLE
        self.around: Context | None = None

    def copy(self) -> Context:
        """The same record anew, for a scope to change."""
        new = _new(Context)  # written out: every scope does this
        new.graph, new.implicit, new.region = self.graph, self.implicit, self.region
        new.maps, new.stamps, new.scope = self.maps, self.stamps, self.scope
        new.left, new.inner, new.ended = self.left, self.inner, self.ended
        new.question, new.answering = self.question, self.answering
        new.origin, new.around = self.origin, self.around
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


def _chain(context: Context | None) -> list[Context]:
    """A record and those around it."""
    contexts = []
    while context is not None:
        contexts.append(context)
        context = context.around
    return contexts


class Scope:
    """A with-block that changes the record, and puts it back on every exit.

    Leaving scopes in the wrong order, or in another thread or task than they were entered in, is a
    ScopeError; the record then stays as it is.

    Interrupts come after a call or at the start of a function, anywhere. So `__enter__` pushes last
    and calls nothing then: what is interrupted was not entered. An `__exit__` that is interrupted
    before it begins leaves its scope open, for a scope around to close: a block that is left by an
    exception leaves all that is in it.
    """

    _saved: tuple[Token[Context], Context, Context] | None = None

    def _push(self, context: Context) -> None:
        if self._saved is not None:
            raise ScopeError(f"{self._what()} is already open; make a new one for each `with`")
        before = context.around = CONTEXT.get()
        context.inner = set()
        if before.inner is not None:
            before.inner.add(self)
        try:
            self._saved = undisturbed(CONTEXT.set, context), context, before
        except BaseException:
            CONTEXT.set(before)
            raise

    def _pop(self, kind: object = None) -> None:
        """kind: the type of the exception by which the block is left; None: it is at its end."""
        saved, is_open = self._saved, True
        if saved is None:
            raise ScopeError(f"{self._what()} was left without having been entered")
        try:
            is_open = CONTEXT.get(None) is saved[1] or (kind is not None and self._close_inside())
        finally:
            if is_open:
                is_open = self._put_back(saved)
        if not is_open:
            raise ScopeError(
                f"{self._what()} was left in the wrong order, or in another thread or task than "
                "the one that entered it"
            )
        _, context, outer = saved
        if outer.inner is not None:
            outer.inner.discard(self)
        self._end(context)

    def _put_back(self, saved: tuple[Token[Context], Context, Context]) -> bool:
        """Whether the record from before is current again: not in a copy of the context."""
        try:
            self._saved = None
            undisturbed(CONTEXT.reset, saved[0])
        except ValueError:
            self._saved = saved
            return False
        return True

    def _end(self, left: Context) -> None:
        """Mark the record that was left, and those that others hold open in it still, as ended."""
        pending = [left]
        for record in pending:
            acted = record is left or left.graph in bodies_around(record.graph)
            if acted and record.ended is None:
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

    def is_around(self) -> bool:
        """Whether this scope is open here, in this thread or task."""
        saved = self._saved
        return saved is not None and saved[1] in _chain(CONTEXT.get(None))

    def _close_inside(self) -> bool:
        """Whether this scope is open here; then what was opened in it, and not left, is closed."""
        if self._saved is None or not self.is_around():
            return False
        here = _chain(self._saved[1])
        kept = {context.region for context in here}
        for context in _chain(CONTEXT.get(None))[: -len(here)]:
            if context.region is not None and context.region not in kept:
                context.region.open = False
        return True

    def _what(self) -> str:
        return type(self).__name__


class Within(Scope):
    """`with Within(context):` this record is the current one."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> Context:
        self._push(self.context)
        return self.context

    def __exit__(self, kind: object, *exc: object) -> None:
        self._pop(kind)
