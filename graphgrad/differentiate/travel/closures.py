"""What rules hold on to: tensors that they read whenever they are called."""

from __future__ import annotations

from typing import Any

from ...ir.flat import holds
from ...ir.graph import Graph
from ...ir.node import Node, Tensor
from ...ops.control import BodyGraph, BodyScope, needed
from ...regions.index import bodies_of
from ...regions.rules import as_rule, is_registered
from .stored import StoredRule
from .storing import marks_of
from .travelled import Travelled


def held_by(rule: Any, home: Graph | None) -> list[Node]:
    """The nodes whose values the rule of a site of home holds on to."""
    held: list[Any] = []
    for fn in (getattr(rule, "fn", None), getattr(rule, "jvp", None)):
        if isinstance(fn, StoredRule) and home is not None:
            held += fn.held(home)
        elif isinstance(fn, Travelled) and fn.home.graph is not None:
            held += fn.standing_for(held_by(fn.rule, fn.home.graph))
    held += [item.node if isinstance(item, Tensor) else item for item in holds(rule)]
    return [n for n in held if isinstance(n, Node)]


def held_in(body: BodyGraph) -> list[Tensor]:
    """The tensors of a body that rules of marks in it, and in the bodies in it, hold on to."""
    by_body: dict[Any, list[Tensor]] = {each: [] for each in bodies_of(body)}
    for each in by_body:
        for mark in {id(mark): mark for _, mark in marks_of(each)}.values():
            rule = as_rule(mark) if isinstance(mark, str) and is_registered(mark) else mark
            with BodyScope(each):
                held = held_by(rule, each)
            for node in held:
                if node.graph in by_body:
                    by_body[node.graph] += node.outputs
    for each, tensors in reversed(by_body.items()):  # bodies stand behind those that they are in
        if each is not body:
            by_body[each.outer] += [each.captures[t] for t in needed(each, tensors)]
    return by_body[body]
