"""A program: a closed, immutable piece of graph, which is what gets optimised and run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from .build import check_op_of_tensors, without_graph
from .node import Node, Tensor
from .notebook import show_as_graph
from .op import Op
from .types import TensorType

_new = Node.__new__
Visit = Callable[[Node], tuple[Tensor, ...] | None]
WRITE = (
    "In a pass or a rewrite rule write number_of(node, value, dtype), filled(node, value, like) or "
    "array_of(node, array) of graphgrad.extend for a constant, and beside(node, op, *inputs) or "
    "instead(node, op, *inputs) for another op."
)
"""What stands for functions of tensors where a program is rebuilt."""


class Program:
    """Nodes in an order in which they can run, from inputs to outputs.

    inputs   tensors whose values are given; any tensor may be one, its producer then does not run
    outputs  tensors whose values are wanted
    nodes    what computes them, inputs first, and nothing else

    A program is never differentiated: differentiation works on graphs, before.

    Parameters: inputs, outputs, nodes: as above; without nodes, those that the outputs need.

    >>> x = gg.placeholder((2,))
    >>> [node.type for node in gg.Program([x], [gg.sum(x * x)]).nodes]
    ['Multiply', 'ReduceSum']
    """

    __slots__ = ("_ops", "_types", "inputs", "nodes", "outputs")

    def __init__(
        self,
        inputs: Iterable[Tensor],
        outputs: Iterable[Tensor],
        nodes: Sequence[Node] | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.nodes = tuple(needed(self.inputs, self.outputs) if nodes is None else nodes)
        self._ops: dict[Op, None] | None = None
        self._types: Counter[TensorType] | None = None

    @property
    def ops(self) -> Collection[Op]:
        """The ops of its nodes, each once: what holds of an op is asked once, not of every node."""
        if self._ops is None:
            self._ops = dict.fromkeys([node.op for node in self.nodes])
        return self._ops.keys()

    @property
    def types(self) -> Mapping[TensorType, int]:
        """The types of its tensors, each with the number of those that its nodes make."""
        if self._types is None:
            self._types = Counter([t.type for node in self.nodes for t in node.outputs])
            self._types.update(dict.fromkeys([t.type for t in self.inputs], 0))
        return self._types

    @property
    def open_lengths(self) -> frozenset[str]:
        """The named lengths in attributes of its ops, and of those in bodies."""
        return frozenset().union(*[op.open_lengths for op in self.ops])

    def rebuild(self, visit: Visit, placed: set[Node] | None = None) -> Program:
        """The program with visit applied to every node, inputs first, in this order of nodes.

        visit returns the tensors that stand for the node's outputs from then on, made of what was
        visited before, or None to keep it; no graph is current where it is called. placed: gains
        the nodes of the new program, one by one, for a visit to look at. Returns self, the very
        same object, when nothing changed.
        """
        return without_graph(WRITE, self._rebuilt, visit, set() if placed is None else placed)

    def _rebuilt(self, visit: Visit, placed: set[Node]) -> Program:
        rebuilding = _Rebuilding(self, placed)
        new, get, given = rebuilding.new, rebuilding.new.get, rebuilding.given
        kept, ordered = placed.add, rebuilding.order.append
        for node in self.nodes:
            here, inputs = node, node.inputs
            for t in inputs:
                if t in new:
                    here = derive(node, node.op, tuple(map(get, inputs, inputs)))
                    break
            if node.controls:
                here = rebuilding.controlled(here, node)
            outputs = visit(here)
            if outputs is None or outputs is here.outputs:
                kept(here)
                ordered(here)
                if here is node:
                    continue
                outputs = here.outputs
            else:
                rebuilding.place(outputs)
            for t, made in zip(node.outputs, outputs, strict=True):
                if t is not made and t not in given:
                    new[t] = made
        return rebuilding.done() if new else self

    def __repr__(self) -> str:
        counts = len(self.inputs), len(self.nodes), len(self.outputs)
        return "<program: {} inputs, {} nodes, {} outputs>".format(*counts)


class _Rebuilding:
    """What a program is becoming.

    new     what stands for a tensor that changed
    order   the nodes of the new program, and some that nothing needs any more
    placed  the same as a set
    """

    def __init__(self, program: Program, placed: set[Node]) -> None:
        self.program = program
        self.given = set(program.inputs)
        self.new: dict[Tensor, Tensor] = {}
        self.order: list[Node] = []
        self.placed = placed

    def place(self, outputs: Iterable[Tensor]) -> None:
        """The nodes behind tensors, where they are new: each after what it reads."""
        placed, given = self.placed, self.given
        stack = [t.node for t in outputs if t.node not in placed and t not in given]
        stack.reverse()
        while stack:
            node = stack[-1]
            if node in placed:
                stack.pop()
                continue
            first = [t.node for t in node.inputs if t.node not in placed and t not in given]
            first += [n for n in node.controls if n not in placed]
            if first:
                stack += reversed(first)
            else:
                placed.add(node)
                self.order.append(stack.pop())

    def controlled(self, here: Node, node: Node) -> Node:
        """The node with what stands for the nodes that run before it."""
        controls = tuple(dict.fromkeys(n for c in node.controls for n in self._makers(c)))
        if controls == node.controls:
            return here
        made = with_inputs(here, here.inputs)
        made.controls = controls
        return made

    def _makers(self, node: Node) -> list[Node]:
        """The nodes that make what stands for the outputs of a node."""
        made = [self.new[t] for t in node.outputs if t in self.new]
        return [t.node for t in made if t not in self.given] if made else [node]

    def done(self) -> Program:
        """The new program: what its outputs need."""
        outputs = tuple([self.new.get(t, t) for t in self.program.outputs])
        given = self.given
        live = {t.node for t in outputs if t not in given}
        nodes = []
        for node in reversed(self.order):
            if node in live:
                nodes.append(node)
                for t in node.inputs:
                    if t not in given:
                        live.add(t.node)
                if node.controls:
                    live.update(node.controls)
        nodes.reverse()
        return Program(self.program.inputs, outputs, nodes)


def needed(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> list[Node]:
    """The nodes that outputs need beyond inputs, in an order in which they can run."""
    given = set(inputs)
    stack = [t.node for t in outputs if t not in given]
    seen = set(stack)
    while stack:
        node = stack.pop()
        for t in node.inputs:
            if t.node not in seen and t not in given:
                seen.add(t.node)
                stack.append(t.node)
        if node.controls:
            stack += [n for n in node.controls if n not in seen]
            seen.update(node.controls)
        if node.graph is None:
            return _ordered(outputs, given)
    return sorted(seen, key=_INDEX)  # a set of nodes is almost in the order of their birth


_INDEX = attrgetter("index")


def _ordered(outputs: Iterable[Tensor], given: set[Tensor]) -> list[Node]:
    """Depth first, for nodes that passes made and that have no place in a graph."""
    order: list[Node] = []
    state: dict[Node, bool] = {}
    stack = [t.node for t in reversed(list(outputs)) if t not in given]
    while stack:
        node = stack[-1]
        if node in state:
            stack.pop()
            if not state[node]:
                state[node] = True
                order.append(node)
            continue
        state[node] = False
        reads = [t.node for t in node.inputs if t not in given]
        stack.extend(n for n in (*reversed(reads), *node.controls) if n not in state)
    return order


def with_inputs(node: Node, inputs: tuple[Tensor, ...]) -> Node:
    """The same application on other inputs of the same types, outside any graph."""
    return derive(node, node.op, inputs)


def derive(node: Node, op: Op, inputs: tuple[Tensor, ...]) -> Node:
    """A node made by a pass in place of `node`, keeping its name, line and origin."""
    new = _new(Node)
    new.graph = None
    new.op = op
    new.inputs = inputs
    new.controls = node.controls
    new.index = node.index
    new.region = node.region
    new.origin = node.origin
    new.stamp = node.stamp
    new.scope = node.scope
    new.position = node.position
    new._name = node._name
    if op is node.op and len(inputs) == len(node.inputs):
        for a, b in zip(inputs, node.inputs):
            if a.type is not b.type:
                break
        else:
            outputs = node.outputs
            if len(outputs) == 1:
                new.outputs = (Tensor(new, 0, outputs[0].type),)
            else:
                new.outputs = tuple([Tensor(new, t.index, t.type) for t in outputs])
            return new
    try:
        types = op.infer(*[t.type for t in inputs])
    except (AttributeError, TypeError):
        check_op_of_tensors(op, inputs, f".\n{WRITE}")
        raise
    new.outputs = tuple([Tensor(new, i, t) for i, t in enumerate(types)])
    return new


show_as_graph(Program)
