"""What flows: nodes, tensors, regions, and the record of why a derived node exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ancestry import OUTSIDE, Ancestry
from .errors import GraphError, RegionError, SymbolicError
from .op import Op
from .position import Position, show
from .tree import flatten
from .types import Array, DType, Shape, TensorType, size_of
from .words import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .graph import Graph


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
    position  the user's line; None for derived nodes (their origin has one)

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
        if self.position is not None or self.origin is None:
            return show(self.position)
        step: Any = self
        while step.position is None and step.origin is not None:
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


class Tensor:
    """A symbolic value: one output of a node. Compared with `is`; `==` builds a node.

    >>> x = gg.placeholder(("N", 2), "float32", name="x")
    >>> x.name, x.shape, x.dtype, (x @ x.T).shape
    ('x:0', ('N', 2), dtype('float32'), ('N', 'N'))
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

    def _symbolic(self, what: str, instead: str) -> SymbolicError:
        return SymbolicError(
            f"{what} is not possible: {self.name} ({self.type!r}, built at {self.where}) is "
            f"symbolic and has no value yet.\n{instead}"
        )

    def __bool__(self) -> bool:
        raise self._symbolic(
            "taking the truth of a tensor",
            "Use gg.where or gg.cond to choose inside the graph, `is` to compare tensors as "
            "objects, or gg.evaluate to get a value.",
        )

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._symbolic(
                f"formatting as {spec!r}", "Use gg.evaluate(t, feeds) for a value."
            )
        return repr(self)

    def __float__(self) -> float:
        raise self._symbolic("float()", "Use gg.evaluate(t, feeds) for a value.")

    def __int__(self) -> int:
        raise self._symbolic("int()", "Use gg.evaluate(t, feeds) for a value, t.astype to cast.")

    def __complex__(self) -> complex:
        raise self._symbolic("complex()", "Use gg.evaluate(t, feeds) for a value.")

    def __index__(self) -> int:
        raise self._symbolic(
            "using a tensor as a Python index", "Use gg.take for an index that is computed."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise self._symbolic(
            "turning a tensor into a NumPy array",
            "Use gg.evaluate(t, feeds) for a value, gg.stack or gg.concat to put tensors together.",
        )

    def __len__(self) -> int:
        if self.ndim == 0:
            raise SymbolicError(f"{self.name} is 0-d and has no length")
        length = self.type.shape[0]
        if not isinstance(length, int):
            raise self._symbolic("len()", f"Its first length is {length!r}, known only when run.")
        return length

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise SymbolicError(
                f"{self.name} (built at {self.where}) is 0-d and cannot be iterated over"
            )
        length = self.type.shape[0]
        if not isinstance(length, int):
            raise self._symbolic(
                "iterating over a tensor of unknown length",
                "Give the placeholder a length, or work on the whole axis at once.",
            )
        return iter(self.unstacked())

    def __contains__(self, item: Any) -> bool:
        raise self._symbolic("`in`", "Use gg.any(t == item).")

    if TYPE_CHECKING:  # put in place by ops.methods, which knows the ops
        T: Tensor

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __getitem__(self, key: Any) -> Tensor: ...
        def unstacked(self) -> tuple[Tensor, ...]: ...
        def astype(self, dtype: Any) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...
        def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def max(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def min(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def prod(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def any(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...
        def all(self, axis: Any = None, keepdims: bool = False) -> Tensor: ...


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


STAMP = "stamped "
"""With an op type, the kind of a region that stands for one stamped node in a batch."""


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
    boundary  what is known of what enters and leaves (regions.boundary)
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
        self.open: Any = open  # or only while a generator runs: ir.generators
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
        return (
            self.rule
            if isinstance(self.rule, str)
            else str(getattr(self.rule, "name", None) or getattr(self.rule, "__name__", self.rule))
        )

    @property
    def stamped(self) -> str | None:
        """The op type of the stamped node that it stands for in a batch; None for other regions."""
        return self.kind.removeprefix(STAMP) if self.kind.startswith(STAMP) else None

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
                f"the boundary of {self!r} is declared inside its block, before anybody asks for it"
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
            found = known[1]
            break
        inner.append(at)
        at = at._parent
    else:
        found = OUTSIDE
    for each in reversed(inner):
        found = Ancestry(each, found)
        each._ancestry = nesting, found
    return found


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
    found: Region | None = ancestry_of(a).common(ancestry_of(b)).item
    return found


def _node_of(graph: Graph, index: int) -> Node:
    return graph.nodes[index]


def _tensor_of(node: Node, index: int) -> Tensor:
    return node.outputs[index]


def _region_of(graph: Graph, index: int) -> Region:
    return graph.regions[index]
