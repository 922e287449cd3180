"""What a page knows besides its frames: default gradients, passes, and numbers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.node import Node, RuleCall, Tensor
from ...ir.program import Program
from ..scene.overlay import Overlay, by_name
from ..scene.view import View, view_of
from ..scene.wording import shortened, visible

__all__: list[str] = []

Numbers = Overlay | Mapping[Any, Any]
Frame = dict[str, Any]

NODE_LIMIT, CALL_LIMIT, GRAPH_LIMIT = 2_000, 300, 20_000
"""Up to so many nodes, calls of rules and nodes of their graph, a page holds default gradients."""


def with_bypassed(shown: Any, view: View, failed: Any) -> tuple[View | None, str]:
    """The view with the default gradients; or None, and a sentence that says why there is none.

    They are built in a copy of the graph, which takes as long as the graph is large, and calls the
    rules of regions in regions again.
    """
    calls = {n.origin for n in view.nodes if isinstance(n.origin, RuleCall)}
    if not calls:
        return None, "No rule was used: nothing is bypassed."
    largest = max(len(c.site.graph.nodes) for c in calls if c.site.graph is not None)
    if len(calls) > CALL_LIMIT or len(view.nodes) > NODE_LIMIT or largest > GRAPH_LIMIT:
        return None, "Default gradients are not part of the page of so large a graph."
    try:
        return view_of(shown, view.title, failed=failed, bypassed=True), ""
    except Exception as error:  # whatever a user's rule raises when it is called for a look
        text = shortened(f"{type(error).__name__}: {error}".partition("\n")[0], 200)
        return None, f"The default gradients could not be built: {visible(text)}"


def bypass_of(frame: Frame, view: View, place: int) -> dict[str, Any]:
    """The frame with default gradients, which a switch puts in the place of another.

    of     the place of that other frame
    nodes  the rows of the default gradients, which match nothing of other frames
    """
    rows: list[int] = frame["nodes"]
    apart = {row for row, node in zip(rows, view.nodes, strict=True) if node in view.bypassed}
    keys = frame["key"] or rows
    frame["key"] = [-1 - row if row in apart else key for row, key in zip(rows, keys, strict=True)]
    return {"of": place, "frame": frame, "nodes": sorted(apart)}


def made_by_passes(
    views: Sequence[View],
    frames: Sequence[Frame],
    passes: Sequence[tuple[str, Program]],
    made_by: Mapping[Node, str],
) -> dict[str, list[int]]:
    """Name of a pass -> the rows of the nodes it made; "" for passes that nobody named.

    A node with the name and the op type of one of the graph was not made, but given other inputs.
    """
    first: dict[tuple[str, str], str | None] = {}
    for view in views if passes else ():
        first.update(((n.name, n.type), None) for n in view.nodes if n.graph is not None)
    for name, program in passes:
        for node in program.nodes:
            first.setdefault((node.name, node.type), name)
    rows_of: dict[str, set[int]] = {}
    for view, frame in zip(views, frames, strict=True):
        for row, node in zip(frame["nodes"], view.nodes, strict=True):
            if node in made_by:
                rows_of.setdefault(made_by[node], set()).add(row)
            elif node.graph is None and node not in view.failed and node not in view.bodies:
                maker = first.get((node.name, node.type), "")
                if maker is not None:
                    rows_of.setdefault(maker, set()).add(row)
    return {visible(name): sorted(rows) for name, rows in rows_of.items()}


def by_rule(
    views: Sequence[View], frames: Sequence[Frame], rules: Mapping[Node, str]
) -> dict[str, list[int]]:
    """Words of a rewrite rule -> the rows of the nodes it made."""
    rows_of: dict[str, set[int]] = {}
    for view, frame in zip(views, frames, strict=True):
        for row, node in zip(frame["nodes"], view.nodes, strict=True):
            if node in rules:
                rows_of.setdefault(visible(rules[node]), set()).add(row)
    return {words: sorted(rows) for words, rows in rows_of.items()}


def keyed(name: str, numbers: Numbers, views: Sequence[View]) -> Mapping[Any, Any]:
    """The numbers of an overlay by tensor and node; names stand for what is shown.

    A name that nothing shown has is left out; ValueError where that is true of all of them.
    """
    if isinstance(numbers, Overlay):
        numbers = {**numbers.values, **numbers.named}
    if not isinstance(numbers, Mapping):
        return numbers
    names = [key for key in numbers if isinstance(key, str)]
    if not names:
        return numbers
    known: dict[str, Node | Tensor] = {}
    for view in views:
        known = {**by_name(view.nodes), **known}
    items = {known.get(k, k) if isinstance(k, str) else k: v for k, v in numbers.items()}
    left = {k: v for k, v in items.items() if not isinstance(k, str)}
    if not left:
        raise ValueError(
            f"overlay {name!r} has numbers for {len(names)} names, none of which is a tensor or "
            f"node that is shown; the first is {names[0]!r}"
        )
    return left
