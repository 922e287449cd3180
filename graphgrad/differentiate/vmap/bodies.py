"""Bodies of control flow, built for a batch of examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...base.errors import GraphError
from ...ir.build import apply
from ...ir.context import CONTEXT
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor, enclosing
from ...ir.op import Op
from ...ir.program import Program
from ...ops.control import BodyGraph, around
from ...ops.elementwise.logic import Where
from ...ops.random.keys import RandomKey
from ...ops.sources import Placeholder, stop_gradient
from ...regions.boundary import boundary_of
from ...regions.index import marked_regions
from ..control.bodies import body_of
from .batch import aligned, repeated
from .batcher import Batcher


def known(batcher: Batcher, program: Program, given: dict[Tensor, Tensor]) -> Batcher | None:
    """What built the body for a choice before this one; None where that does not serve.

    It has to have read the same, and what is built in place has to stand in the same region.
    """
    inner, before = batcher.inside.get(body_of(program), (None, {}))
    if inner is None or any(before.get(t, here) is not here for t, here in given.items()):
        return None
    in_place = inner.graph is CONTEXT.get().graph
    return None if in_place and inner.around is not CONTEXT.get().region else inner


def give(batcher: Batcher, inner: Batcher, given: dict[Tensor, Tensor]) -> None:
    """Let a body read what it is given, in the current graph, and remember it for `known`."""
    assert inner.enter is not None
    for t, here in given.items():
        if t not in inner.tensors:
            inner.tensors[t] = inner.enter(here)
    last, before = batcher.inside.get(inner.source, (inner, {}))
    batcher.inside[inner.source] = inner, (before if last is inner else {}) | given


def built(inner: Batcher, program: Program) -> list[Tensor]:
    """The outputs of a body, built with all that stood in it then, which its rules may read."""
    body = body_of(program)
    stood = body.nodes[: _end(program, body)]
    inner.run(_made_here(stood, inner))
    return [inner.tensor(t) for t in program.outputs]


def _made_here(nodes: Sequence[Node], inner: Batcher) -> list[Node]:
    """Those of a body's nodes that depend on nothing but captures and what the body is given.

    Others belong to another loop over it, or over a body around: that which is its derivative, or
    of which it is. A region that reads of them is none of this loop's, nor are those in it.
    """
    away: set[Region] = set()
    regions = {r for node in nodes for r in enclosing(node.region)}
    while True:
        own_nodes, strange = _apart(nodes, inner, away)
        more = {
            r for r in regions - away if r.parent in away or not strange.isdisjoint(_read_by(r))
        }
        if not more:
            inner.left_out = {*inner.left_out, *away}
            return own_nodes
        away |= more


def _apart(
    nodes: Iterable[Node], inner: Batcher, away: set[Region]
) -> tuple[list[Node], set[Tensor]]:
    """What depends on nothing strange, and what is strange; all in some regions is."""
    captured = set(inner.source.captures)  # type: ignore[attr-defined]
    strange = {t for t in captured if inner.unknown(t)}
    own_nodes = []
    for node in nodes:
        if not captured.isdisjoint(node.outputs):
            continue
        alone = isinstance(node.op, Placeholder) and inner.tensors.keys().isdisjoint(node.outputs)
        out = not away.isdisjoint(enclosing(node.region))
        if alone or out or not strange.isdisjoint(node.inputs):
            strange.update(node.outputs)
        else:
            own_nodes.append(node)
    return own_nodes, strange


def _read_by(region: Region) -> Iterable[Tensor]:
    """What a region reads: of others, and what it says that it reads."""
    return (*boundary_of(region).inputs, *(region.pinned_inputs or ()))


def _end(program: Program, body: Graph) -> int:
    """Where in a body to stop: what comes later belongs to derivatives that were built later."""
    end = 1 + max(t.node.index for t in program.outputs)
    spans = [(b.first, b.last) for b in map(boundary_of, marked_regions(body))]
    while True:
        last = max((b.index for a, b in spans if a and b and a.index < end), default=-1)
        if last < end:
            return end
        end = last + 1


def adopting(body: BodyGraph) -> Callable[[Tensor], Tensor]:
    """A tensor of the batch around is read through its placeholder.

    What was first read in a body of the body is its placeholder there, for that one alone.
    """
    return lambda t: t if t.graph is not None and body in around(t.graph) else body.adopt(t)


def door(batcher: Batcher, pred: Tensor, first: bool) -> Callable[[Tensor], Tensor]:
    """A tensor of the batch around is read through a door: y = x, dx = dy where chosen, else 0.

    Where an example chooses the other body nothing may flow back through this one, and be it NaN:
    not to what differs between examples, nor to what is shared, which is read for every example.
    """

    def enter(t: Tensor) -> Tensor:
        if not t.type.differentiable:
            return t
        row = t if t in batcher.examples else repeated(t, pred)
        sides = (row, stop_gradient(row)) if first else (stop_gradient(row), row)
        door = apply(Where(), *aligned((pred, *sides), (True, True, True)))
        batcher.examples.batched.add(door)
        return door

    return enter


def check_pure(node: Node, op: Op, how: str, what: str) -> None:
    """GraphError where somebody would notice that a body is run for who would not run it.

    how, what: what the examples do in the node, and what is run therefore. A draw is a function of
    its key, which each example has of its own.
    """
    programs = list(op.bodies)
    for program in programs:
        for inner in program.nodes:
            programs += inner.op.bodies
            if not (inner.op.pure or isinstance(inner.op, RandomKey)):
                raise GraphError(
                    f"under vmap, the examples {how} {node.name} ({node.where}), so {what} run for "
                    f"all of them; but {inner.name} ({inner.where}) is a {inner.type}, which may "
                    "have effects. Build it outside."
                )
