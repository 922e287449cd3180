"""Residuals: reads of a region's inside by what was derived from that region.

A tensor inside a region can be read in two ways. What the user builds outside reads it as an
*outer* value: the region's rule answers for it. What a rule of the region, or a derivative taken
inside it, builds reads it as a *residual*: its own producer answers. The second kind of read is a
node of its own, `Residual`, which reads its tensor *as if from inside* the region it names. It is
settled when the reader is born, is part of the structure that every copy keeps, and is the first
thing an optimisation pass takes away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.lazy import LazyModule
from .facts import Memory
from .node import Node, Region, RuleCall, Tensor, common_region, new_node
from .op import Gradients, Op, Types
from .region_tree import MARKED, RegionTree, is_same, sites_at
from .types import TensorType

if TYPE_CHECKING:
    from .context import Context

_sites = LazyModule("graphgrad.ir.tensor_sites")


class Residual(Op, interned=False):
    """y = x, read as from inside `region`. dx = dy, for the producer of x itself."""

    region: Region
    memory = Memory(view=True)
    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return x

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        return dys

    def batch(self, batch: Any) -> Any:
        return batch.build(self, *batch.inputs)


def residual_op(region: Region) -> Op:
    """The one Residual op of a region."""
    if region.residual_op is None:
        region.residual_op = Residual(region)
    return region.residual_op


def viewpoint(node: Node, tree: RegionTree = MARKED) -> Region | None:
    """The region that a node's reads are made from."""
    op = node.op
    return op.region if type(op) is Residual else tree.moved.get(node, node.region)


def settle(context: Context, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The inputs of a derived node, with a Residual for each read that is one."""
    moved, sites = context.question.tree.moved, context.graph.sites
    for t in inputs:
        if t.node.region is not None or t.node in moved or t in sites:
            return tuple([residual_of(t, context) for t in inputs])
    return inputs


def residual_of(t: Tensor, context: Context) -> Tensor:
    """t as a node that is born now reads it: t itself, or a Residual of it."""
    return _read(t, context, read_from)


def unbuilt_residual(t: Tensor, context: Context) -> Tensor:
    """As `residual_of`, by a node that is in no list: to want to know changes nothing."""
    return _read(t, context, unbuilt)


def _read(t: Tensor, context: Context, make: Callable[[Region, Tensor, Context], Tensor]) -> Tensor:
    at = vantage(t, context)
    return t if at is None or at.contains(context.region) else make(at, t, context)


def vantage(t: Tensor, context: Context) -> Region | None:
    """The region from inside which t is seen now: the open one, or one that is derived from."""
    tree, at = context.question.tree, context.region
    inside = tree.moved.get(t.node, t.node.region)
    sites = sites_at(t)
    if sites:
        for region in _sites.crossed(t, at, sites, tree):
            derived = _sites.is_below if region.on_tensors else derived_from
            if not derived(region, context.origin, t, tree):
                break
            at = region
        return at
    if inside is None:
        return at
    for region in tree.between(at, inside):
        if not derived_from(region, context.origin, t, tree):
            break
        at = region
    return at


def derived_from(
    region: Region, origin: Node | RuleCall | None, t: Tensor, tree: RegionTree = MARKED
) -> bool:
    """Whether a node of this origin was derived from the region and reads t as a residual."""
    while origin is not None:
        if isinstance(origin, RuleCall):
            site = origin.site
            if is_same(site, region):
                return t not in origin.outer
        else:
            site = origin
        if tree.holds(region, tree.around(site)):
            return True
        origin = site.origin
    return False


def unbuilt(at: Region, t: Tensor, context: Context) -> Tensor:
    """As `read_from`, by a node that is in no list."""
    index, outside = t.node.index, common_region(at.parent, context.region)
    made = (t.node.graph, residual_op(at), (t,), (t.type,), index, outside)
    return new_node(*made, context.origin, context.scope).outputs[0]


def read_from(at: Region, t: Tensor, context: Context) -> Tensor:
    """The Residual of t as read from inside `at`, one for each (t, at) and surroundings."""
    graph = t.node.graph
    assert graph is not None
    outside = common_region(at.parent, context.region)
    key = (t, at, outside)
    residual = graph.residuals.get(key)
    if residual is None:
        op, nodes, origin = residual_op(at), graph.nodes, context.origin
        index = len(nodes)
        node = new_node(graph, op, (t,), (t.type,), index, outside, origin, context.scope)
        nodes.append(node)
        if nodes[index] is not node:  # another thread was quicker
            node.index = nodes.index(node, index)
        residual = graph.residuals[key] = node.outputs[0]
    return residual
