"""What failed: the node to ring in a partial picture, out of a node, a name or an exception.

An error of building says which op was being built of which tensors, an error of running which node
was being run: both as `error.failed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...base.errors import GraphError
from ...base.position import Position, is_library
from ...ir.node import Node, Tensor, new_node
from ...ir.op import Op

__all__: list[str] = []


class Failure(NamedTuple):
    """What failed.

    nodes   the nodes to ring
    built   those among them that are in no graph, because building them failed
    reason  the first line of the error; "" where none was given
    """

    nodes: frozenset[Node]
    built: tuple[Node, ...]
    reason: str


NOTHING = Failure(frozenset(), (), "")


def failure_of(failed: Any, nodes: Iterable[Node]) -> Failure:
    """The failure that was meant.

    failed: None, a node, a tensor, a name, an exception, or several of these in a list. GraphError
    for what is not shown, TypeError for anything else. An exception that names no node counts with
    its reason alone.
    """
    if failed is None:
        return NOTHING
    shown = set(nodes)
    ringed: list[Node] = []
    built: list[Node] = []
    reasons: list[str] = []
    for item in failed if isinstance(failed, list | tuple | set) else [failed]:
        if isinstance(item, BaseException):
            reasons.append(_reason(item))
            what = getattr(item, "failed", None)
            if isinstance(what, tuple):
                op, inputs = what
                built.append(_unbuilt(op, inputs, len(shown) + len(built), _raised_at(item)))
                continue
            if what is None or what not in shown:
                continue
            item = what
        ringed.append(_named(item, shown))
    return Failure(frozenset([*ringed, *built]), tuple(built), "; ".join(reasons))


def _named(item: Any, shown: set[Node]) -> Node:
    if isinstance(item, str):
        node = next((n for n in shown if item in (n.name, *(t.name for t in n.outputs))), None)
    elif isinstance(item, Tensor | Node):
        node = item.node if isinstance(item, Tensor) else item
    else:
        raise TypeError(f"failed= takes nodes, tensors, names and exceptions, got {item!r}")
    if node is None or node not in shown:
        raise GraphError(f"{item!r} should be shown as failed, but is not in the picture")
    return node


def _reason(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _raised_at(error: BaseException) -> Position | None:
    """The innermost line of the user's on the way to where an error was raised."""
    position: Position | None = None
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not is_library(code.co_filename):
            position = code, step.tb_lasti
        step = step.tb_next
    return position


def _unbuilt(op: Op, inputs: tuple[Tensor, ...], place: int, position: Position | None) -> Node:
    """The node that could not be built: it stands in no graph and makes nothing."""
    scope = inputs[0].node.scope if inputs else ""
    return new_node(None, op, inputs, (), place, scope=scope, position=position)
