"""What an optimiser built: the updates of parameters, apart from the network that they train.

Known by the variables that optimisers remember things in, their slots: what is computed from these,
and what is read by nothing else. An optimiser that remembers nothing is known by its last step: a
parameter less something made of gradients, which at most an assignment reads. It stands in the
scope of the parameter that it is the update of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import Subtract
from ...ops.sources import Assign, Variable
from .wording import kind_of

__all__: list[str] = []

Reads = Callable[[Node], Sequence[tuple[Tensor, bool]]]
SHARED = "optimizer"
"""The scope of what is not a single parameter's, such as the count of steps."""


def updates_of(nodes: Sequence[Node], reads: Reads, column: Mapping[Node, int]) -> dict[Node, str]:
    """Node of an optimiser -> the name of its parameter, or `optimizer`, in order of the nodes."""
    updates: dict[Node, str] = {n: _parameter(n) for n in nodes if _is_slot(n)}
    updates.update(_descents(nodes, reads, column))
    if not updates:
        return {}
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for t, _ in reads(node):
            readers.setdefault(t.node, []).append(node)
        if node.origin is None and node not in updates:
            names = {updates[t.node] for t, _ in reads(node) if t.node in updates}
            if names:
                updates[node] = _one_of(names)
    for node in reversed(nodes):
        if node not in updates and node.origin is None and _serves(node):
            above = readers.get(node, ())
            if above and all(reader in updates for reader in above):
                updates[node] = _one_of({updates[reader] for reader in above})
    return {n: updates[n] for n in nodes if n in updates}


def _descents(nodes: Sequence[Node], reads: Reads, column: Mapping[Node, int]) -> dict[Node, str]:
    """The last step of an update without slots -> the name of its parameter."""
    taken = [n for n in nodes if type(n.op) is Subtract and n.origin is None and column[n] > 1]
    descents = {n: n.inputs[0].node.name for n in taken if _is_parameter(n.inputs[0].node)}
    if descents:
        for node in nodes:
            for t, _ in reads(node) if type(node.op) is not Assign else ():
                descents.pop(t.node, None)
    return descents


def _is_parameter(node: Node) -> bool:
    return isinstance(node.op, Variable) and not node.op.slot


def _is_slot(node: Node) -> bool:
    return isinstance(node.op, Variable) and node.op.slot


def _parameter(slot: Node) -> str:
    """`layer0/w` of `layer0/w/adam_m`."""
    return slot.name.rpartition("/")[0] or SHARED


def _one_of(names: set[str]) -> str:
    """The parameter among them: what is shared serves all."""
    own = names - {SHARED}
    return own.pop() if len(own) == 1 else SHARED


def _serves(node: Node) -> bool:
    """Whether it may be part of an update: parameters and inputs are not, whoever reads them."""
    return kind_of(node) in ("op", "constant")
