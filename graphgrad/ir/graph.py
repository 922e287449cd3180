"""The graph: nodes in creation order, which is a topological order, and its tree of regions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from operator import index
from typing import TYPE_CHECKING, Any

from .collector import undisturbed
from .context import CONTEXT, Context, Scope, stamps_on
from .errors import GraphError, ScopeError, counted, did_you_mean
from .lazy import lazy_module
from .node import Node, Region, Tensor
from .op import OP_TYPES
from .position import caller, show
from .state import State
from .variables import Variables
from .words import shortened, visible

if TYPE_CHECKING:
    import networkx

__all__ = [
    "Graph",
    "GraphScope",
    "current",
    "default_graph",
    "name_scope",
    "reset_default_graph",
]


class Twins:
    """What copies of one node or region have in common: who has the same one is one of them.

    graph  where the first of them was made; None where they came from a file
    first  that first one; None where it is not known
    """

    def __init__(self, graph: Graph | None = None, first: Node | Region | None = None) -> None:
        self.graph = graph
        self.first = first

    def __reduce__(self) -> tuple[Any, ...]:
        return Twins, ()


class Graph:
    """A static dataflow graph. It only grows: nodes never change and are never removed.

    `with g:` (or `with g.as_default():`) sends new nodes there.

    Parameters:
        name: what it is called; None: "graph".
        seed: of random numbers that are drawn without one of their own (gg.random.seed).

    nodes    every node, in creation order
    regions  every marked region, in the order they were opened
    state    the values of its variables
    maps     the op-type maps that were in force while nodes were built
    scattered  regions that were marked afterwards: their readers may stand among their members
    scanned  how many nodes the boundaries of the regions have taken in (regions.boundary)
    used_in, left_to  tensor -> where it is read (regions.boundary)
    pinned   nodes that make what regions declare as inputs, with those regions
    index    what selections and marks find again without a look at every node (regions.index)
    twins    node or region of which there are several copies -> what they have in common
    again    node or region that was built once more (rules.recompute) -> what it was built from
    seed, draws  of random numbers without a seed: the graph's, and how many were built so far

    Raises: GraphError for a name that is no string; TypeError for a seed that is no int.

    >>> g = gg.Graph("model")
    >>> with g:
    ...     y = 2 * gg.placeholder((), name="x")
    >>> g, [n.type for n in g.nodes]
    (<graph 'model': 3 nodes>, ['Placeholder', 'Constant', 'Multiply'])
    """

    def __init__(self, name: str | None = None, *, seed: int = 0) -> None:
        if name is not None:
            _check_name(name)
        self.name = name or "graph"
        self.nodes: list[Node] = []
        self.regions: list[Region] = []
        self.maps: list[Any] = []
        self.scattered: list[Region] = []
        self.state = State(self)
        self.scanned = 0
        self.used_in: dict[Tensor, Region] = {}
        self.left_to: dict[Tensor, Region | None] = {}
        self.pinned: dict[Node, dict[Region, None]] = {}
        self.index: Any = None
        self.residuals: dict[Any, Tensor] = {}
        self.twins: dict[Node | Region, Twins] = {}
        self.again: dict[Node | Region, Node | Region] = {}
        self.seed = index(seed)
        self.draws = 0
        self._named: dict[str, Node] = {}
        self._suffix: dict[str, int] = {}
        self._scopes: list[GraphScope] = []

    def claim_name(self, scope: str, name: str, node: Node) -> str:
        """Reserve a name given by the user; a taken one gets the suffix _1, _2, ...

        The name of an op type gets two underscores: with one it would be that of an unnamed node.
        """
        full = base = scope + name
        line = "__" if name.rpartition("/")[2] in OP_TYPES else "_"
        while self._named.setdefault(full, node) is not node:
            self._suffix[base] = self._suffix.get(base, 0) + 1
            full = f"{base}{line}{self._suffix[base]}"
        return full

    def node(self, name: str) -> Node:
        """The node of that name.

        Parameters: name: a name given by the user, or op type and creation index, after its scopes.

        Returns: a Node.

        Raises: GraphError with the nearest name where there is none.

        >>> x = gg.placeholder((2,), name="x")
        >>> x.graph.node("x") is x.node
        True
        """
        _check_name(name)
        found = self._named.get(name)
        if found is not None:
            return found
        number = name.rpartition("_")[2]
        if _is_number(number) and int(number) < len(self.nodes):
            found = self.nodes[int(number)]
            if found.name == name:
                return found
        hint = did_you_mean(name, (n.name for n in self.nodes))
        raise GraphError(f"no node is named {name!r} in {self!r}. {hint}".rstrip())

    def tensor(self, name: str) -> Tensor:
        """The tensor `node:output`; without `:output` the only output of the node.

        Parameters: name: as for `node`, with a colon and the output's number.

        Returns: a Tensor.

        Raises: GraphError where there is none, or several without a number.

        >>> x = gg.placeholder((2,), name="x")
        >>> x.graph.tensor("x:0") is x
        True
        """
        _check_name(name)
        base, colon, index = name.rpartition(":")
        node = self.node(base if colon else name)
        known = [str(i) for i in range(len(node.outputs))]
        if index in known if colon else len(known) == 1:
            return node.outputs[int(index) if colon else 0]
        names = shortened(", ".join([repr(t.name) for t in node.outputs]), 120)
        raise GraphError(f"no tensor is named {name!r} in {self!r}. {node.name!r} makes {names}")

    def find(self, pattern: str) -> list[Node]:
        """The nodes whose name matches a shell pattern, in creation order.

        Parameters: pattern: such as `*/relu*`.

        Returns: a list of nodes, maybe empty.

        Raises: GraphError for a pattern that is no string.

        >>> with gg.name_scope("enc"):
        ...     x = gg.placeholder((2,), name="x")
        >>> [n.name for n in x.graph.find("enc/*")]
        ['enc/x']
        """
        _check_name(pattern)
        return [n for n in self.nodes if fnmatchcase(n.name, pattern)]

    @property
    def variables(self) -> Variables[Tensor]:
        """Its variables, in the order in which they were built; by name too: `g.variables["w"]`."""
        return Variables(n.outputs[0] for n in self.nodes if n.type == "Variable")

    def as_default(self) -> AbstractContextManager[Graph]:
        """A with-block in which new nodes go to this graph.

        Returns: a context manager that gives the graph.

        >>> g = gg.Graph()
        >>> with g.as_default():
        ...     x = gg.constant(1.0)
        >>> x.graph is g
        True
        """
        return GraphScope(self)

    def __enter__(self) -> Graph:
        scope = GraphScope(self)
        self._scopes.append(scope)
        try:
            scope.__enter__()
        except BaseException:
            self._scopes.remove(scope)
            raise
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        scope = None
        try:
            scope = self._innermost(kind)
            scope._pop(kind)
        except ScopeError:
            raise
        except BaseException as error:  # an interrupt on the way: left all the same
            scope = scope or self._innermost(error)
            if scope.is_around():
                scope._pop(error)
            raise
        self._scopes.remove(scope)

    def _innermost(self, kind: object) -> GraphScope:
        """What leaving the graph here leaves; other threads enter and leave it, too."""
        for scope in reversed(tuple(self._scopes)):
            if scope.is_current() or (kind is not None and scope.is_around()):
                return scope
        raise ScopeError(f"{self!r} was left in the wrong order, or in another thread or task")

    def adopt(self, tensor: Tensor) -> Tensor:
        """A tensor of this graph for one of another graph. Only bodies of control flow can."""
        raise GraphError(
            f"{tensor.name} ({tensor.type!r}, built at {tensor.where}) belongs to "
            f"{tensor.graph!r}, but nodes are being built in {self!r}.\n"
            "Build in the tensor's own graph (`with graph:`), or feed the value through a "
            "placeholder."
        )

    def to_networkx(self) -> networkx.MultiDiGraph[Node]:
        """A view for algorithms: an edge for each read.

        Returns: a networkx.MultiDiGraph of nodes, with their type and name; an edge has the tensor
        under "tensor" and its place among the reader's inputs under "input".

        >>> x = gg.constant(3.0)
        >>> y = x * x
        >>> x.graph.to_networkx().number_of_edges()
        2
        """
        nx: Any = lazy_module("networkx")
        out: networkx.MultiDiGraph[Node] = nx.MultiDiGraph(name=self.name)
        out.add_nodes_from((n, {"type": n.type, "name": n.name}) for n in self.nodes)
        out.add_edges_from(
            (t.node, n, {"tensor": t, "input": i})
            for n in self.nodes
            for i, t in enumerate(n.inputs)
        )
        return out

    def __len__(self) -> int:
        return len(self.nodes)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        marked = sum(region.group is None for region in self.regions)
        regions = f", {counted(marked, 'region')}" if marked else ""
        name, nodes = shortened(self.name, 80), counted(len(self.nodes), "node")
        return visible(f"<graph {name!r}: {nodes}{regions}>")

    if TYPE_CHECKING:  # put in place by the floors above

        def copy(self) -> Graph: ...
        def subgraph(self, xs: Any, ys: Any) -> Graph: ...
        def mark(
            self,
            selection: Any,
            rule: Any,
            inputs: Any = None,
            outputs: Any = None,
            *,
            escape: str = "error",
            order: str = "again",
            late: bool = False,
            replace: bool = False,
            allow_inside: bool = False,
            allow_empty: bool = False,
            **attrs: Any,
        ) -> list[Node | Region]: ...
        def unmark(self, selection: Any) -> list[Node | Region]: ...
        def gradient_override_map(
            self, op_type_map: dict[str, Any], *, allow_empty: bool = False
        ) -> Any: ...


def check_given_name(name: str) -> None:
    """GraphError for what is not, or may not be, the name that a user gives a node."""
    _check_name(name)
    base, _, number = name.rpartition("/")[2].rpartition("_")
    if base in OP_TYPES and number.isdecimal():
        raise GraphError(
            f"the name {name!r} is reserved: op type and number is how unnamed nodes are called. "
            "Choose another."
        )
    if not name or name != name.strip("/"):
        raise GraphError(f"{name!r} is not a name: it may not be empty, or begin or end in '/'")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise GraphError(f"a name is a string, got {name!r}")


def _is_number(text: str) -> bool:
    """Whether it can be the index of a node: not more digits than Python turns into an int."""
    return text.isdecimal() and len(text) < 20


def current() -> Context:
    """The current record; makes the default graph on first use in a context."""
    try:
        return CONTEXT.get()
    except LookupError:
        context = Context(Graph(), implicit=True)
        undisturbed(CONTEXT.set, context)
        return context


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
    found: Context | None = around
    while found is not None and found.graph is not graph:
        found = found.left
    context = around.copy()
    context.graph, context.implicit, context.ended = graph, implicit, None
    if found is None:
        context.region, context.origin = None, None
        context.scope = context.scope if implicit else ""
    else:
        context.region, context.origin, context.scope = found.region, found.origin, found.scope
        if not isinstance(found.ended, GraphScope):
            context.ended = found.ended
    if found is not around:
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

    def __exit__(self, kind: object, *exc: object) -> None:
        self._pop(kind)

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
