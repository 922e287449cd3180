"""What an entry of a rule depends on, and for which tensors another rule speaks."""

from __future__ import annotations

from ..ir.node import Region, Tensor, enclosing
from ..ir.residual import Residual, derived_from
from ..ops.base import ZeroTensor
from ..ops.control import BodyGraph


def depends(dx: Tensor, on: set[Tensor | None], start: int) -> bool:
    """Whether dx was computed from one of these, by nodes built from `start` on."""
    if dx in on:
        return True
    if isinstance(dx, ZeroTensor):
        return False
    seen = {dx.node}
    stack = [dx.node]
    while stack:
        for t in stack.pop().inputs:
            if t in on:
                return True
            if t.node not in seen and t.node.index >= start:
                seen.add(t.node)
                stack.append(t.node)
    return False


def spoken_for(t: Tensor, region: Region) -> bool:
    """Whether t is hidden in the region whose rule opened this one: then its rule speaks for t."""
    while isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
        t = home
    op = t.node.op
    return isinstance(op, Residual) and any(
        derived_from(around, region.origin, t.node.inputs[0]) for around in enclosing(op.region)
    )
