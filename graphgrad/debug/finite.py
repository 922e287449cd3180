"""Which node makes the first NaN or infinity, forward or backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import GraphGradError
from ..base.flags import truth
from ..base.kinds import is_inexact
from ..base.tree import flatten, unflatten
from ..base.words import visible
from ..ir.node import Node, Region, RuleCall
from ..ir.state import State
from ..ir.types import Array
from .remedies import remedies
from .running import Evaluation, Given, Ran, place_of
from .words import described, regions_of, who

__all__ = ["NotFiniteError", "nan_guard"]


class NotFiniteError(GraphGradError, FloatingPointError):
    """A NaN or infinity appeared.

    node     the node that made it; for a feed, the node that was fed. It is `failed` too, which
             pictures ring: failed=error
    region   the innermost region that it is in, or that its rule is for; None outside
    """

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = self.failed = node
        self.region = _region(node)


def nan_guard(
    outputs: Any,
    feeds: Given = None,
    *,
    inf: bool = True,
    state: State | None = None,
) -> Any:
    """The values of outputs, or an error that names the first node to make a NaN or inf.

    Nodes run one by one as they were built, those in the branch of a `cond` and in each run of a
    loop too: for looking, not for speed.

    Parameters:
        outputs: a tensor or any nesting of them, gradients too; what gg.compile or gg.function
            made.
        feeds: {tensor or name: array}; of a compiled function its arguments in a tuple too, of a
            gg.function only those.
        inf: False lets infinities pass (where masks are made of them) and stops at NaN alone.
        state: where variables live; the graph's own by default.

    Returns: arrays in the structure of outputs.

    Raises: NotFiniteError with node, types, region, rule, the user's line, and what went in; what
    running raises.

    >>> gg.debug.nan_guard(gg.sqrt([1.0, 4.0]))
    array([1., 2.])
    """
    truth("inf", inf)
    question = Evaluation(outputs, feeds, state)
    bad = _bad(inf)
    for t, array in question.given.items():
        if bad(array):
            raise NotFiniteError(
                f"{visible(t.name)} ({t.type!r}, built at {t.where}) is fed {described(array)}",
                t.node,
            )
    held = dict(question.given)

    def see(ran: Ran) -> None:
        if any(map(bad, ran.outputs)):
            raise NotFiniteError(_message(ran, inf), ran.node)
        if not ran.within:
            held.update((t, a) for t, a in zip(ran.node.outputs, ran.outputs) if t not in held)

    question.run(see)
    leaves = [None if t is None else np.array(held[t]) for t in flatten(question.asked)]
    return unflatten(question.asked, leaves)


def _bad(inf: bool) -> Any:
    def bad(array: Array) -> bool:
        array = np.asarray(array)
        if not is_inexact(array.dtype):
            return False
        return not np.isfinite(array).all() if inf else bool(np.isnan(array).any())

    return bad


def _message(ran: Ran, inf: bool) -> str:
    rows = [f"the first {'NaN or inf' if inf else 'NaN'} is made by {who(ran.node)}"]
    rows += [f"  in {place_of(body)}" for body in reversed(ran.within)]
    for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
        rows.append(f"  made {visible(t.name)}: {described(array)}")
    for t, array in zip(ran.node.inputs, ran.inputs, strict=True):
        t = ran.outside(t)
        rows.append(f"  from {visible(t.name)}: {described(array)}, built at {t.where}")
    rows += remedies(ran.node.origin or ran.node)
    return "\n".join(rows)


def _region(node: Node) -> Region | None:
    if isinstance(node.origin, RuleCall) and isinstance(node.origin.site, Region):
        return node.origin.site
    around = regions_of(node) or (regions_of(node.origin) if isinstance(node.origin, Node) else [])
    return around[-1] if around else None
