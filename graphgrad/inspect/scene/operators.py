"""Operators of a file: what one of them was built of is one box, with its weights in it.

A loader builds `Conv` of ONNX as several nodes. The last has the operator's name, `conv1/Conv`; the
others, without names of their own, stand in the scope of that name. Constants with a name are its
weights: they are at home where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from ...ir.node import Node, Tensor
from ...ir.properties import properties_of
from .wording import kind_of, short_type, value_of

__all__ = [
    "called",
    "homes_of",
    "is_parameter",
    "is_weight",
    "operators_of",
    "parameters_of",
    "weight_words",
]

Scope = tuple[str, ...]


def is_weight(node: Node) -> bool:
    """Whether it is a constant that was given a name, as the weights of a file are."""
    return kind_of(node) == "constant" and node._name is not None and node.origin is None


def is_parameter(node: Node) -> bool:
    """Whether it is a variable, or an array of weights from a file."""
    kind = kind_of(node)
    return kind == "variable" or (
        is_weight(node) and properties_of([node]) is not None and node.outputs[0].ndim > 0
    )


def parameters_of(nodes: Iterable[Node]) -> tuple[int, int]:
    """How many elements variables and weights have, and how many bytes; open lengths are 1."""
    types = [t.type for node in nodes if is_parameter(node) for t in node.outputs]
    counts = [prod(d if isinstance(d, int) else 1 for d in t.shape) for t in types]
    pairs = zip(counts, types, strict=True)
    return sum(counts), sum(count * t.dtype.itemsize for count, t in pairs)


def called(node: Node) -> str:
    """`W`: what the operator of a file calls a weight whose own name is no word; "" otherwise."""
    if not is_weight(node) or _last(node).replace("_", "").isalpha():
        return ""
    said = properties_of([node])
    return "" if said is None else said.weights.get(node.name, "")


def weight_words(node: Node) -> str:
    """`weight f32[64,3,7,7]` of `layer1.0.conv1.weight`: the type, and the last part of the name.

    `W f32[64,3,7,7]` of `conv2d_10.w_0` where an operator calls it so. A number stands with its
    value.
    """
    name, last = node.name.rpartition("/")[2], _last(node)
    type = node.outputs[0].type
    if not type.shape:
        return f"with {value_of(node)}"
    return f"{called(node) or (last if last.isidentifier() else name)} {short_type(type)}"


def _last(node: Node) -> str:
    return node.name.rpartition("/")[2].rpartition(".")[2]


def operators_of(nodes: Iterable[Node]) -> dict[str, Node]:
    """The scopes that hold nothing but what a node of that name is made of, and these nodes."""
    named: dict[str, Node] = {}
    inner: dict[str, bool] = {}
    for node in nodes:
        if node.origin is not None:
            continue
        if node._name is not None and node.inputs:
            named[f"{node.name}/"] = node
        scope = node.scope
        plain = node._name is None and node.region is None and node.stamp is None
        inner[scope] = inner.get(scope, True) and plain
        while scope := _around(scope):
            inner[scope] = False
    return {
        scope[:-1]: node
        for scope, node in named.items()
        if inner.get(scope) and node.region is None and node.stamp is None
    }


def _around(scope: str) -> str:
    """`a/` of `a/b/`; '' outside of all."""
    outer = scope[:-1].rpartition("/")[0]
    return f"{outer}/" if outer else ""


def homes_of(
    nodes: Sequence[Node],
    operators: dict[str, Node],
    reads: Callable[[Node], Sequence[tuple[Tensor, bool]]],
) -> dict[Node, Scope]:
    """The scopes of nodes that stand elsewhere than where they were built.

    An operator stands in its own scope. A scope with one operator in it, `conv1` of `conv1/Conv`,
    is no box: both words are the title of the operator. A weight stands in the scope that all
    which read it share.
    """
    own = [node for node in nodes if node.origin is None]
    lonely = _lonely(own, operators)
    homes: dict[Node, Scope] = {}
    for node in own:
        scope, inside = node.scope[:-1], node.scope[:-1] in operators
        operator = operators[scope] if inside else node
        if inside or operators.get(node.name) is node:
            homes[node] = _split(operator.scope, lonely) + _title(operator, lonely)
        elif operator.scope in lonely and node.inputs:
            homes[node] = _split(operator.scope, lonely)
    for node in own:
        home = homes[node] if node in homes else _split(node.scope, set())
        for t, _ in reads(node):
            if is_weight(t.node):
                homes[t.node] = _shared(homes.get(t.node, home), home)
    return homes


def _lonely(nodes: Sequence[Node], operators: dict[str, Node]) -> set[str]:
    """The scopes with a single named node in them, which is an operator or stands for one."""
    count: dict[str, int] = {}
    for node in nodes:
        if is_weight(node) or node.scope[:-1] in operators:
            continue
        plain = node._name is not None and node.inputs and node.region is None
        scope, more = node.scope, 1 if plain else 2
        while scope:
            count[scope] = count.get(scope, 0) + more
            scope, more = _around(scope), 2
    return {scope for scope, things in count.items() if things == 1}


def _split(scope: str, lonely: set[str]) -> Scope:
    return tuple(part for part in (_around(scope) if scope in lonely else scope).split("/") if part)


def _title(operator: Node, lonely: set[str]) -> Scope:
    """`conv1/Conv` or `Conv`, as one part of a scope."""
    name = operator.name.removeprefix(operator.scope)
    alone = operator.scope in lonely
    return (f"{operator.scope[:-1].rpartition('/')[2]}/{name}" if alone else name,)


def _shared(a: Scope, b: Scope) -> Scope:
    count = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    return min(a, b, key=len) if count is None else a[:count]
