"""The invariants of graphs and programs, checked. Tests run these after every build and pass.

1. inputs and controls of a node stand before it; 2. outputs know their node and place; 3. types are
what `infer` says; 4. a graph's node list and indices agree, names are unique; 5. a node's region
belongs to its graph; 6. a program is closed and contains nothing twice or that it does not need.
"""

from __future__ import annotations

from ..base.errors import GraphError
from .graph import Graph
from .node import Node
from .program import Program


def verify_graph(graph: Graph) -> None:
    """Raise GraphError naming the first node that breaks an invariant."""
    names: set[str] = set()
    for index, node in enumerate(graph.nodes):
        _check_node(node)
        if node.graph is not graph or node.index != index:
            raise GraphError(f"{node!r} stands at {index} but says {node.index}")
        if any(t.node.graph is not graph or t.node.index >= index for t in node.inputs):
            raise GraphError(f"{node!r} reads what was built after it, or in another graph")
        if any(c.graph is not graph or c.index >= index for c in node.controls):
            raise GraphError(f"{node!r} waits for what was built after it, or in another graph")
        if node.name in names:
            raise GraphError(f"the name {node.name!r} is used twice")
        if node.region is not None and node.region.graph is not graph:
            raise GraphError(f"{node!r} is in a region of another graph")
        names.add(node.name)
    sites = [(t, r) for r in graph.regions if r.on_tensors for t in r.pinned_inputs or ()]
    known = [(t, site) for t, standing in graph.sites.items() for site in standing]
    if set(sites) != set(known) or any(t.graph is not graph for t, _ in sites):
        raise GraphError("the sites of tensors of the graph are not those that its regions are")


def verify_program(program: Program) -> None:
    """Raise GraphError naming the first node that breaks an invariant."""
    known = set(program.inputs)
    needed = {t.node for t in program.outputs}
    for node in program.nodes:
        needed.update(t.node for t in node.inputs)
        needed.update(node.controls)
    placed: set[Node] = set()
    for node in program.nodes:
        _check_node(node)
        if node in placed:
            raise GraphError(f"{node!r} is in the program twice")
        for c in node.controls:
            if c not in placed:
                raise GraphError(f"{node!r} waits for {c!r}, which does not run before it")
        placed.add(node)
        for t in node.inputs:
            if t not in known:
                raise GraphError(f"{node!r} reads {t.name}, which nothing before it computes")
        if node not in needed:
            raise GraphError(f"{node!r} is in the program but nothing needs it")
        known.update(node.outputs)
    for t in program.outputs:
        if t not in known:
            raise GraphError(f"nothing in the program computes its output {t.name}")


def _check_node(node: Node) -> None:
    for i, t in enumerate(node.outputs):
        if t.node is not node or t.index != i:
            raise GraphError(f"output {i} of {node!r} belongs to {t.node!r}")
    if tuple(t.type for t in node.outputs) != node.op.infer(*(t.type for t in node.inputs)):
        raise GraphError(f"{node!r} is not of the types its op infers")
