"""Patterns: each match of a form as one group."""

from __future__ import annotations

from typing import Any

from ...base.errors import RegionError
from ...ir.graph import Graph
from ...ir.node import Node, Tensor
from ...ir.op import OP_TYPES
from ..index import has_gradient
from ..scopes import _takes_inputs
from .hints import no_inputs, no_type, types_near
from .targets import Group, Kind, Target, of_types


class Pattern(Kind):
    """Each match of a form, as one group."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        groups: dict[tuple[Node, ...], Target] = {}
        root = _root(self.form)
        for node in of_types(graph, (root,), derived):
            nodes = _match(self.form, node, derived)
            if nodes:
                group = Group(nodes, self)
                groups.setdefault(group.nodes, group)
        return list(groups.values())

    def _hint(self, graph: Graph) -> str:
        root = _root(self.form)
        count = len(of_types(graph, (root,), False))
        if count:
            return f"{count} nodes are of type {root!r}; what they read does not fit the form."
        return types_near((root,))(graph)

    def __repr__(self) -> str:
        return f"select.pattern({self.form!r})"


def _match(form: Any, root: Node, derived: bool) -> set[Node] | None:
    """The nodes of a match at a root, but for those without inputs; None where it does not fit."""
    nodes: set[Node] = set()
    bound: dict[str, Tensor] = {}
    stack: list[tuple[Any, Node, Tensor | None]] = [(form, root, None)]
    while stack:
        part, node, tensor = stack.pop()
        if part is None:
            continue
        if _is_variable(part):
            if tensor is None or bound.setdefault(part, tensor) is not tensor:
                return None
            continue
        if node.type != _root(part) or (node.origin is not None and not derived):
            return None
        if has_gradient(node):
            nodes.add(node)
        parts = list(part[1:]) if isinstance(part, tuple) else [...]
        if isinstance(part, tuple) and not parts:
            parts = [...]
        if parts[-1] is ...:
            parts.pop()
            if len(parts) > len(node.inputs):
                return None
        elif len(parts) != len(node.inputs):
            return None
        stack += [(p, t.node, t) for p, t in zip(parts, node.inputs, strict=False)]
    return nodes


def _root(form: Any) -> str:
    root: str = form if isinstance(form, str) else form[0]
    return root


def _is_variable(form: Any) -> bool:
    return isinstance(form, str) and form.startswith("?")


def check_form(form: Any) -> None:
    """RegionError for input that is not a form, or names an op type that is not there."""
    if form is None or _is_variable(form):
        raise RegionError(f"a pattern begins with an op type, got {form!r}, which matches anything")
    stack = [form]
    while stack:
        part = stack.pop()
        if part is None or _is_variable(part):
            continue
        if isinstance(part, tuple) and part and isinstance(part[0], str):
            inputs = part[1:]
            stack.extend(inputs[:-1] if inputs and inputs[-1] is ... else inputs)
            part = part[0]
        if not isinstance(part, str):
            raise RegionError(
                'a pattern is an op type, a tuple such as ("Add", "Exp", None), None or "?x", '
                f"got {part!r} in {form!r}"
            )
        if part not in OP_TYPES:
            raise RegionError(no_type(part))
    if not _takes_inputs(OP_TYPES[_root(form)]):
        raise RegionError(no_inputs(_root(form)))
