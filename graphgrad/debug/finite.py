"""Which node makes the first NaN or infinity, forward or backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.errors import GraphGradError
from ..ir.node import Node, Region, RuleCall
from ..ir.state import State
from ..ir.tree import flatten, unflatten
from ..ir.types import Array
from .running import Question, Ran
from .words import described, regions_of, who

__all__ = ["NotFiniteError", "nan_guard"]


class NotFiniteError(GraphGradError, FloatingPointError):
    """A NaN or infinity appeared.

    node     the node that made it; for a feed, the node that was fed
    region   the innermost region that it is in, or that its rule is for; None outside
    """

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node
        self.region = _region(node)


def nan_guard(
    outputs: Any,
    feeds: Mapping[Any, Any] | None = None,
    *,
    inf: bool = True,
    state: State | None = None,
) -> Any:
    """The values of outputs, or a NotFiniteError that names the first node to make a NaN or inf.

    outputs: a tensor or any nesting of them, gradients too. feeds: {tensor or name: array}. inf:
    False lets infinities pass (where masks are made of them) and stops at NaN alone. Nodes run one
    by one as they were built: for looking, not for speed. The error says node, types, region, rule,
    the user's line, and what went in.
    """
    question = Question(outputs, feeds, state)
    bad = _bad(inf)
    for t, array in question.given.items():
        if bad(array):
            raise NotFiniteError(
                f"{t.name} ({t.type!r}, built at {t.where}) is fed {described(array)}", t.node
            )
    held = dict(question.given)
    for ran in question.run():
        if any(map(bad, ran.outputs)):
            raise NotFiniteError(_message(ran, inf), ran.node)
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            held.setdefault(t, array)
    leaves = [None if t is None else np.array(held[t]) for t in flatten(outputs)]
    return unflatten(outputs, leaves)


def _bad(inf: bool) -> Any:
    def bad(array: Array) -> bool:
        array = np.asarray(array)
        if array.dtype.kind not in "fc":
            return False
        return not np.isfinite(array).all() if inf else bool(np.isnan(array).any())

    return bad


def _message(ran: Ran, inf: bool) -> str:
    rows = [f"the first {'NaN or inf' if inf else 'NaN'} is made by {who(ran.node)}"]
    for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
        rows.append(f"  made {t.name}: {described(array)}")
    for t, array in zip(ran.node.inputs, ran.inputs, strict=True):
        rows.append(f"  from {t.name}: {described(array)}, built at {t.where}")
    return "\n".join(rows)


def _region(node: Node) -> Region | None:
    if isinstance(node.origin, RuleCall) and isinstance(node.origin.site, Region):
        return node.origin.site
    around = regions_of(node) or (regions_of(node.origin) if isinstance(node.origin, Node) else [])
    return around[-1] if around else None
