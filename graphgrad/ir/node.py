"""The records of the core: nodes, tensors, regions, calls of rules, graphs.

They name each other, so they stand in one file. What is done with them stands in others: nodes are
born in `build`, graphs are entered in `graph`, trees of regions are in `region_tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import count
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.ancestry import OUTSIDE, Ancestry
from ..base.errors import (
    GraphError,
    RegionError,
    counted,
    did_you_mean,
)
from ..base.first_tries import answer
from ..base.lazy import LazyMethod, lazy_module
from ..base.position import Position, show
from ..base.solving import Assumption
from ..base.tree import flatten
from ..base.words import shortened, visible
from .notebook import show_as_graph
from .op import OP_TYPES, Op
from .state import State
from .symbolic import Symbolic
from .types import DType, Shape, TensorType, size_of
from .variables import Variables

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import networkx

    from .properties import ModelProperties

_new = object.__new__


class Node:
    """One application of an op. Its fields never change, but for the marks `region` and `stamp`.

    graph     the graph it was built in; None for a node made by an optimisation pass
    op        what is computed
    inputs    tensors read
    controls  nodes that run before it although it reads nothing of them
    outputs   tensors made
    index     place in `graph.nodes`, which is a topological order
    region    the innermost region it is a member of
    origin    why it exists: None (the user built it), the node whose derivative it belongs to, or
              the call of a rule
    stamp     the rule that an op-type map put on it
    scope     name scope it was built in
    position  the user's line: of what a rule of the user's built, the line in the rule; None for
              other derived nodes (their origin has one)

    >>> x = gg.placeholder((2,), name="x")
    >>> node = gg.sum(x).node
    >>> node.type, node.attrs, [t.name for t in node.inputs]
    ('ReduceSum', {'axes': (0,), 'keepdims': False}, ['x:0'])
    """

    __slots__ = (
        "_name",
        "controls",
        "graph",
        "index",
        "inputs",
        "op",
        "origin",
        "outputs",
        "position",
        "region",
        "scope",
        "stamp",
    )
    graph: Graph | None
    op: Op
    inputs: tuple[Tensor, ...]
    controls: tuple[Node, ...]
    outputs: tuple[Tensor, ...]
    index: int
    region: Region | None
    origin: Node | RuleCall | None
    stamp: Any
    scope: str
    position: Position | None
    _name: str | None

    @property
    def type(self) -> str:
        """The op type, such as "MatMul"."""
        return self.op.type

    @property
    def attrs(self) -> dict[str, Any]:
        """The op's attributes by name."""
        return self.op.attrs

    def get_attr(self, name: str) -> Any:
        """One attribute of the op; KeyError with the known names."""
        try:
            return self.op.attrs[name]
        except KeyError:
            raise KeyError(
                f"{self.type} has no attribute {name!r}, it has {list(self.attrs)}"
            ) from None

    @property
    def name(self) -> str:
        """The given name, else op type and creation index; unique in the graph."""
        return self._name or f"{self.scope}{self.op.type}_{self.index}"

    @property
    def where(self) -> str:
        """`model.py:31`: where the user built it, or what it was derived from."""
        if self.origin is None:
            return show(self.position)
        step: Any = self
        while step.origin is not None and (type(step) is Node or step.position is None):
            origin = step.origin
            step = origin.site if isinstance(origin, RuleCall) else origin
        return f"gradient of {step.name} ({show(step.position)})"

    @property
    def consumers(self) -> list[Node]:
        """The nodes of the graph that read an output of this one (a scan of the graph)."""
        nodes = self.graph.nodes[self.index + 1 :] if self.graph else []
        return [n for n in nodes if any(t.node is self for t in n.inputs)]

    def __repr__(self) -> str:
        args = shortened(", ".join([t.name for t in self.inputs[:50]]), 120)
        types = shortened(", ".join([repr(t.type) for t in self.outputs[:50]]), 120)
        name, op = shortened(self.name, 80), shortened(repr(self.op), 120)
        return visible(f"<{name}: {types} = {op}({args}), {self.where}>")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.graph is None:
            raise GraphError(
                f"{self.name} (built at {self.where}) is part of a compiled program, which cannot "
                "be copied or pickled.\nTake the graph that was compiled, and compile it again."
            )
        return _node_of, (self.graph, self.index)


class Tensor(Symbolic):
    """A symbolic value: one output of a node. Compared with `is`; `==` builds a node.

    >>> x = gg.placeholder(("N", 2), "float32", name="x")
    >>> x.name, x.shape, x.dtype, (x @ x.T).shape
    ('x:0', (N, 2), dtype('float32'), (N, N))
    """

    __slots__ = ("index", "node", "type")
    node: Node
    index: int
    type: TensorType

    def __init__(self, node: Node, index: int, type: TensorType) -> None:
        self.node = node
        self.index = index
        self.type = type

    @property
    def shape(self) -> Shape:
        """Lengths: int, None (unknown) or str (named)."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The np.dtype."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int | None:
        """Number of elements, None where a length is unknown."""
        return size_of(self.type.shape)

    @property
    def name(self) -> str:
        """`node:output`, such as `encoder/h:0`."""
        return f"{self.node.name}:{self.index}"

    @property
    def graph(self) -> Graph | None:
        """The graph it was built in."""
        return self.node.graph

    @property
    def op(self) -> Node:
        """The node (the legacy spelling)."""
        return self.node

    @property
    def where(self) -> str:
        """Where the user built it."""
        return self.node.where

    def __repr__(self) -> str:
        return visible(f"<{shortened(self.name, 80)}: {self.type!r}, {self.node.where}>")

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor_of, (self.node, self.index)

    __hash__ = object.__hash__


def new_node(
    graph: Graph | None,
    op: Op,
    inputs: tuple[Tensor, ...],
    types: Sequence[TensorType],
    index: int,
    region: Region | None = None,
    origin: Node | RuleCall | None = None,
    scope: str = "",
    position: Position | None = None,
) -> Node:
    """A node that is in no list yet. `build.build` and `program.derive`, which make most of them,
    write the same out.
    """
    node = _new(Node)
    node.graph, node.op, node.inputs, node.index = graph, op, inputs, index
    node.region, node.origin, node.scope, node.position = region, origin, scope, position
    node.controls, node.stamp, node._name = (), None, None
    if len(types) == 1:
        node.outputs = (Tensor(node, 0, types[0]),)
    else:
        node.outputs = tuple([Tensor(node, i, t) for i, t in enumerate(types)])
    return node


UNNAMED = "graph"
"""The name of a graph that nobody named."""

NUMBERS = count()
"""Of graphs, in the order in which they are made."""

STAMP = "stamped "
"""With an op type, the kind of a region that stands for one stamped node in a batch."""

TENSORS = "tensors"
"""The kind of a region that is a site of tensors."""


class Region:
    """A marked set of nodes whose derivative is a rule's.

    rule      what the user gave: a name, a callable or a rule object; None for a group
    parent    the region around it
    origin    the rule call it was opened in, as for nodes
    position  the line of the `with`
    attrs     free keyword arguments for the rule
    escape, order, late, allow_empty   see override_gradient
    pinned_inputs, pinned_outputs   tensors where the boundary was declared, else None
    settled   inputs and outputs, once they are fixed; copied and saved with the region
    boundary  the settled boundary, once somebody asked (regions.boundary)
    group     nodes that are a region only in the calls that name them (regions.named); else None

    >>> x = gg.constant(2.0)
    >>> with gg.override_gradient("Identity") as region:
    ...     y = gg.floor(x)
    >>> region.name, y.node.region is region
    ('Identity', True)
    """

    __slots__ = (
        "_ancestry",
        "_parent",
        "allow_empty",
        "attrs",
        "boundary",
        "escape",
        "graph",
        "group",
        "index",
        "kind",
        "late",
        "open",
        "order",
        "origin",
        "pinned_inputs",
        "pinned_outputs",
        "position",
        "residual_op",
        "rule",
        "settled",
    )

    _nesting: object = object()
    """Another one whenever a region gets another parent: what was known of the tree is stale."""

    def __init__(
        self,
        graph: Graph,
        rule: Any,
        *,
        parent: Region | None = None,
        origin: Node | RuleCall | None = None,
        position: Position | None = None,
        attrs: dict[str, Any] | None = None,
        escape: str = "error",
        order: str = "again",
        late: bool = False,
        allow_empty: bool = False,
        kind: str = "scope",
        open: bool = True,
        pinned_inputs: tuple[Tensor, ...] | None = None,
        pinned_outputs: tuple[Tensor, ...] | None = None,
        group: Members | None = None,
    ) -> None:
        self.graph = graph
        self.rule = rule
        self._parent = parent
        self._ancestry: tuple[object, Ancestry] | None = None
        self.origin = origin
        self.position = position
        self.attrs = attrs or {}
        self.escape = escape
        self.order = order
        self.late = late
        self.allow_empty = allow_empty
        self.kind = kind
        self.open: Any = open  # or only while a generator runs: base.generators
        self.pinned_inputs = pinned_inputs
        self.pinned_outputs = pinned_outputs
        self.settled: tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None = None
        self.boundary: Any = None
        self.group = group
        self.residual_op: Op | None = None
        self.index = len(graph.regions)

    @property
    def options(self) -> dict[str, Any]:
        """What a copy is given as well: all that is not of one graph."""
        return {
            "attrs": dict(self.attrs),
            "escape": self.escape,
            "order": self.order,
            "late": self.late,
            "allow_empty": self.allow_empty,
            "kind": self.kind,
        }

    @property
    def parent(self) -> Region | None:
        """The region around it."""
        return self._parent

    @parent.setter
    def parent(self, region: Region | None) -> None:
        self._parent = region
        Region._nesting = object()

    @property
    def name(self) -> str:
        """The rule's name; of a group, the selection's."""
        if self.group is not None:
            return self.group.label
        return rule_name(self.rule)

    @property
    def stamped(self) -> str | None:
        """The op type of the stamped node that it stands for in a batch; None for other regions."""
        return self.kind.removeprefix(STAMP) if self.kind.startswith(STAMP) else None

    @property
    def on_tensors(self) -> bool:
        """Whether it is a site of tensors: nothing is inside, its inputs are its outputs."""
        return self.kind == TENSORS

    @property
    def where(self) -> str:
        """`model.py:40`: where it was opened."""
        if self.position is not None or self.origin is None:
            return show(self.position)
        origin = self.origin.site if isinstance(self.origin, RuleCall) else self.origin
        return f"gradient of {origin.name} ({origin.where})"

    def contains(self, region: Region | None) -> bool:
        """Whether region is this one or lies inside it."""
        if region is self:
            return True
        if region is None or region._parent is None:
            return False
        return ancestry_of(region).lies_in(ancestry_of(self))

    def declare(self, *, inputs: Any = None, outputs: Any = None) -> None:
        """Pin the inputs or outputs, in this order.

        Parameters: inputs, outputs: tensors, or any nesting of them; None: as before, or inferred.

        Returns: nothing.

        Raises: RegionError after the block, or once the boundary is settled.

        >>> x = gg.constant(2.0)
        >>> with gg.override_gradient(lambda site, dy: 10 * dy) as region:
        ...     y = x * x
        ...     region.declare(inputs=[x], outputs=[y])
        >>> gg.evaluate(gg.gradients(y, x))
        array(10.)
        """
        if not self.open or self.settled is not None:
            raise RegionError(
                f"the boundary of {self!r} is declared inside its block, before it is used"
            )
        pinned = self.pinned_inputs if inputs is None else tuple(flatten(inputs))
        made = self.pinned_outputs if outputs is None else tuple(flatten(outputs))
        self.pinned_inputs, self.pinned_outputs = pinned, made

    def __repr__(self) -> str:
        name = shortened(self.name, 80)
        return visible(f"<region {name!r} #{self.index}, {self.where}>")

    def __reduce__(self) -> tuple[Any, ...]:
        return _region_of, (self.graph, self.index)


class RuleCall:
    """One call of a rule: the origin of the nodes it builds.

    site   the node or region the rule speaks for
    rule   the rule's name
    outer  the site's outputs that the rule reads as the region's outputs; what else it reads of
           the inside is a residual
    """

    __slots__ = ("outer", "rule", "site")

    def __init__(self, site: Node | Region, rule: str, outer: frozenset[Tensor]) -> None:
        self.site = site
        self.rule = rule
        self.outer = outer

    def __repr__(self) -> str:
        rule, site = shortened(self.rule, 80), shortened(self.site.name, 80)
        return visible(f"<call of {rule!r} for {site} ({self.site.where})>")


class Members:
    """Nodes that are a region in the calls that name them, and in no other.

    label    how the selection that named them was written
    tensors  what they make; () where a graph was copied in part, without some of them
    """

    __slots__ = ("label", "tensors")

    def __init__(self, label: str, tensors: tuple[Tensor, ...]) -> None:
        self.label = label
        self.tensors = tensors


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


class HealedForm(NamedTuple):
    """A run of nodes, from first to before end, that compute what others did.

    name  of the identity; empty for one node that is built anew as it was
    of    the nodes of what was written, by index
    """

    first: int
    end: int
    name: str
    of: tuple[int, ...]


class Graph:
    """A static dataflow graph. It only grows: nodes never change and are never removed, but for
    those of a call of gg.onnx.differentiate that failed.

    `with g:` (or `with g.as_default():`) sends new nodes there.

    Parameters:
        name: what it is called; None: "graph".
        seed: of random numbers that are drawn without one of their own (gg.random.seed).

    nodes    every node, in creation order
    regions  every marked region, in the order they were opened
    state    the values of its variables
    maps     the op-type maps that were in force while nodes were built
    assumptions  what is stated of named lengths (assume)
    of_call  whether it is the trace of a rule: what one call builds, which stands for others
    scratch whether it is only built to be rebuilt: a trace, or one example of a batch
    number   how many graphs were made before it
    scattered  regions that were marked afterwards: their readers may stand among their members
    sites    tensor -> the sites of tensors that it stands in, the first marked first
    boundaries  what is known of what its regions hold, and what crosses them (regions.boundary)
    index    what selections and marks find again without a look at every node (regions.index)
    twins    node or region of which there are several copies -> what they have in common
    again    node or region that was built once more, for a gradient say -> what it was built from
    healed   nodes that compute what others did before the graph was healed, in order
    seed, draws  of random numbers without a seed: the graph's, and how many were built so far
    properties  what the file says from which it was loaded (ModelProperties), or None

    Raises: GraphError for a name that is not a string; TypeError for a seed that is not an int.

    >>> g = gg.Graph("model")
    >>> with g:
    ...     y = 2 * gg.placeholder((), name="x")
    >>> g, [n.type for n in g.nodes]
    (<graph 'model': 3 nodes>, ['Placeholder', 'Constant', 'Multiply'])
    """

    of_call = False
    scratch = False

    def __init__(self, name: str | None = None, *, seed: int = 0) -> None:
        if name is not None:
            _check_name(name)
        self.name = name or UNNAMED
        self.number = next(NUMBERS)
        self.nodes: list[Node] = []
        self.regions: list[Region] = []
        self.maps: list[Any] = []
        self.assumptions: list[Assumption] = []
        self.scattered: list[Region] = []
        self.sites: dict[Tensor, tuple[Region, ...]] = {}
        self.state = State(self)
        self.boundaries: Any = None
        self.index: Any = None
        self.residuals: dict[Any, Tensor] = {}
        self.twins: dict[Node | Region, Twins] = {}
        self.again: dict[Node | Region, Node | Region] = {}
        self.healed: list[HealedForm] = []
        self.properties: ModelProperties | None = None
        self.seed = index(seed)
        self.draws = 0
        self._named: dict[str, Node] = {}
        self._suffix: dict[str, int] = {}
        self._scopes: list[Any] = []  # GraphScope

    def claim_name(self, scope: str, name: str, node: Node) -> str:
        """Reserve a name given by the user; a taken one gets the suffix _1, _2, ...

        The name of an op type gets two underscores: with one it would be that of an unnamed node.
        """
        full = base = scope + name
        while self._named.setdefault(full, node) is not node:
            self._suffix[base] = self._suffix.get(base, 0) + 1
            line = "__" if name.rpartition("/")[2] in OP_TYPES else "_"
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
        node = self._named.get(name)
        if node is not None:
            return node
        number = name.rpartition("_")[2]
        if _is_number(number) and int(number) < len(self.nodes):
            node = self.nodes[int(number)]
            if node.name == name:
                return node
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

        Raises: GraphError for a pattern that is not a string.

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

    @property
    def repeats(self) -> bool:
        """Whether it is the body of a loop."""
        return False

    def adopt(self, tensor: Tensor) -> Tensor:
        """A tensor of this graph for one of another graph. Only bodies of control flow can."""
        raise GraphError(
            f"{tensor.name} ({tensor.type!r}, built at {tensor.where}) belongs to "
            f"{tensor.graph!r}, but nodes are being built in {self!r}.\n"
            "Build in the tensor's own graph (`with graph:`; a function that reads variables: "
            "@gg.function(graph=graph)), or feed the value through a placeholder."
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
        return visible(f"<graph {name!r}{self._begun}: {nodes}{regions}>")

    @property
    def _begun(self) -> str:
        """Where its first node was built: what tells graphs apart that nobody named."""
        if self.name != UNNAMED or not self.nodes:
            return ""
        return f" begun at {self.nodes[0].where}"

    if TYPE_CHECKING:  # put in place by what knows more, at import or when first asked for

        def as_default(self) -> AbstractContextManager[Graph]: ...
        def __enter__(self) -> Graph: ...
        def __exit__(self, kind: object, *exc: object) -> None: ...
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
            together: bool = False,
            **attrs: Any,
        ) -> list[Node | Region]: ...
        def unmark(self, selection: Any) -> list[Node | Region]: ...
        def gradient_override_map(
            self, op_type_map: dict[str, Any], *, allow_empty: bool = False
        ) -> Any: ...

    else:
        copy = LazyMethod("graphgrad.differentiate.travel.transplant")
        __copy__ = LazyMethod("graphgrad.differentiate.travel.transplant")
        __deepcopy__ = LazyMethod("graphgrad.differentiate.travel.transplant")
        __reduce__ = LazyMethod("graphgrad.differentiate.travel.pickles")
        subgraph = LazyMethod("graphgrad.differentiate.travel.importing")


def check_given_name(name: str) -> None:
    """GraphError for what is not, or may not be, the name that a user gives a node."""
    _check_name(name)
    base, _, number = name.rpartition("/")[2].rpartition("_")
    if number.isdecimal() and base in OP_TYPES:
        raise GraphError(
            f"the name {name!r} is reserved: unnamed nodes are named by op type and number. "
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


def rule_name(rule: Any) -> str:
    """What a rule is called: a name, a rule object, or any callable."""
    if isinstance(rule, str):
        return rule
    return str(getattr(rule, "name", None) or callable_name(rule))


def callable_name(fn: Any) -> str:
    """The name of a function, or of the class of what else can be called."""
    return str(getattr(fn, "__name__", type(fn).__name__))


def ancestry_of(region: Region | None) -> Ancestry:
    """Where a region stands in the tree of the marks."""
    if region is None:
        return OUTSIDE
    nesting, known = Region._nesting, region._ancestry
    if known is not None and known[0] is nesting:
        return known[1]
    at: Region | None = region
    inner = []
    while at is not None:
        known = at._ancestry
        if known is not None and known[0] is nesting:
            ancestry = known[1]
            break
        inner.append(at)
        at = at._parent
    else:
        ancestry = OUTSIDE
    for each in reversed(inner):
        ancestry = Ancestry(each, ancestry)
        each._ancestry = nesting, ancestry
    return ancestry


def enclosing(region: Region | None) -> tuple[Region, ...]:
    """The region and those around it, outermost first."""
    if region is None:
        return ()
    return (region,) if region._parent is None else ancestry_of(region).chain()


def depth_of(region: Region | None) -> int:
    """How many regions stand there or around."""
    if region is None:
        return 0
    return 1 if region._parent is None else ancestry_of(region).depth


def common_region(a: Region | None, b: Region | None) -> Region | None:
    """The innermost region that contains both."""
    if a is None or b is None or a is b:
        return a and b
    if a._parent is None and b._parent is None:
        return None
    region: Region | None = ancestry_of(a).common(ancestry_of(b)).item
    return region


def _node_of(graph: Graph, index: int) -> Node:
    return graph.nodes[index]


def _tensor_of(node: Node, index: int) -> Tensor:
    return node.outputs[index]


def _region_of(graph: Graph, index: int) -> Region:
    return graph.regions[index]


for _cls in (Graph, Node, Region, Tensor):
    show_as_graph(_cls)


answer(Graph)
