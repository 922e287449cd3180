"""Where the path from one tensor to another ends, for messages."""

from __future__ import annotations

from ...base.errors import GraphGradError
from ...differentiate.gradients import gradients
from ...differentiate.site import is_zero
from ...ir.node import Node, Tensor
from ...ir.program import needed

__all__ = ["why_nothing_flows"]

SHOWN = 4


def why_nothing_flows(y: Tensor, x: Tensor) -> str:
    """The nodes between x and y through which nothing flows, or that there are none between."""
    live, reached, ends = {x}, {x}, list[str]()
    for node in needed([x], [y]):
        if reached.isdisjoint(node.inputs):
            continue
        reached.update(node.outputs)
        given = [t for t in dict.fromkeys(node.inputs) if t in live]
        if not given:
            continue
        if _passes(node, given):
            live.update(t for t in node.outputs if t.type.differentiable)
        else:
            ends.append(_end(node))
    if y not in reached:
        return "it does not depend on it"
    more = f" and {len(ends) - SHOWN} more" if len(ends) > SHOWN else ""
    return f"every path ends: {'; '.join(ends[:SHOWN])}{more}"


def _end(node: Node) -> str:
    made = node.outputs[0].type
    if not made.differentiable:
        return f"{node.name} ({node.type}) makes {made.dtype}"
    return f"the gradient of {node.name} ({node.type}) is 0"


def _passes(node: Node, given: list[Tensor]) -> bool:
    ys = [t for t in node.outputs if t.type.differentiable]
    if not ys:
        return False
    try:
        found = gradients(ys, given)
    except GraphGradError:
        return True
    return any(dx is not None and not is_zero(dx) for dx in found)
