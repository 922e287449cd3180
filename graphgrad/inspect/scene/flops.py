"""How many floating point operations a node takes: what its op says, for lengths that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir.node import Node, Tensor
from ...ir.op import Types
from ...ir.types import Dim, tensor_type

Length = Callable[[Dim], int]


def flops_of(node: Node, length: Length) -> int | None:
    """The operations of a node, where length(d) is the number that a length stands for.

    The bodies of control flow count together, as if all of them ran. None where it is not known:
    for Python functions, and for ops that do not say it.
    """
    total = 0.0
    stack = [node]
    while stack:
        node = stack.pop()
        if node.op.bodies:
            stack += [inner for body in node.op.bodies for inner in body.nodes]
            continue
        flops = _flops(node, _some) and _flops(node, length)
        if flops is None:
            return None
        total += flops
    return round(total)


def costs_something(node: Node) -> bool:
    """Whether a node takes operations at all, or may."""
    return flops_of(node, _some) != 0


def _flops(node: Node, length: Length) -> float | None:
    return node.op.flops(_types(node.inputs, length), _types(node.outputs, length))


def _types(tensors: Iterable[Tensor], length: Length) -> Types:
    return tuple([tensor_type(tuple(map(length, t.shape)), t.dtype) for t in tensors])


def _some(d: Dim) -> int:
    """A length that makes elements, for one that is not known."""
    return d if isinstance(d, int) else 2
