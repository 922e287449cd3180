"""A program: a closed, immutable piece of graph, which is what gets optimised and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .node import Node, Tensor

Visit = Callable[[Node], tuple[Tensor, ...] | None]


class Program:
    """Nodes in an order in which they can run, from inputs to outputs.

    inputs   tensors whose values are given; any tensor may be one, its producer then does not run
    outputs  tensors whose values are wanted
    nodes    what computes them, inputs first, and nothing else

    A program is never differentiated: differentiation works on graphs, before.
    """

    __slots__ = ("inputs", "nodes", "outputs")

    def __init__(
        self,
        inputs: Iterable[Tensor],
        outputs: Iterable[Tensor],
        nodes: Sequence[Node] | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.nodes = tuple(needed(self.inputs, self.outputs) if nodes is None else nodes)

    def rebuild(self, visit: Visit) -> Program:
        """The program with visit applied to every node, inputs first.

        visit returns the tensors that stand for the node's outputs from then on, or None to keep
        it. Returns self, the very same object, when nothing changed.
        """
        new: dict[Tensor, Tensor] = {}
        get = new.get
        given = set(self.inputs)
        for node in self.nodes:
            inputs = node.inputs
            for t in inputs:
                if t in new:
                    inputs = tuple([get(t, t) for t in node.inputs])
                    break
            here = node if inputs is node.inputs else with_inputs(node, inputs)
            outputs = visit(here) or here.outputs
            if outputs is not node.outputs:
                pairs = zip(node.outputs, outputs, strict=True)
                new.update((t, made) for t, made in pairs if t not in given)
        if not new:
            return self
        outputs = tuple([get(t, t) for t in self.outputs])
        return Program(self.inputs, outputs)

    def __repr__(self) -> str:
        counts = len(self.inputs), len(self.nodes), len(self.outputs)
        return "<program: {} inputs, {} nodes, {} outputs>".format(*counts)


def needed(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> list[Node]:
    """The nodes that outputs need beyond inputs, in an order in which they can run."""
    given = set(inputs)
    seen: set[Node] = set()
    stack = [t.node for t in outputs if t not in given]
    loose = False
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        loose = loose or node.graph is None
        for t in node.inputs:
            if t not in given and t.node not in seen:
                stack.append(t.node)
        if node.controls:
            stack.extend(node.controls)
    if not loose:
        return sorted(seen, key=_index)
    return _ordered(outputs, given)


def _index(node: Node) -> int:
    return node.index


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


def derive(node: Node, op: object, inputs: tuple[Tensor, ...]) -> Node:
    """A node made by a pass in place of `node`, keeping its name, line and origin."""
    new = Node.__new__(Node)
    new.graph, new.op, new.inputs, new.controls = None, op, inputs, node.controls  # type: ignore[assignment]
    new.index, new.region, new.origin = node.index, node.region, node.origin
    new.stamp, new.scope, new.position, new._name = (
        node.stamp,
        node.scope,
        node.position,
        node._name,
    )
    key = tuple([t.type for t in inputs])
    types = (
        tuple([t.type for t in node.outputs])
        if op is node.op and all(a.type is b.type for a, b in zip(inputs, node.inputs, strict=True))
        else new.op.infer(*key)
    )
    new.outputs = tuple([Tensor(new, i, t) for i, t in enumerate(types)])
    return new
