"""Nested lists, tuples and dicts of leaves: flatten and put back. Iterative callers stay simple."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def flatten(tree: Any) -> list[Any]:
    """The leaves in order; a dict in sorted order of its keys where they have one."""
    leaves: list[Any] = []
    stack = [tree]
    while stack:
        item = stack.pop()
        children = _children(item)
        if children is None:
            leaves.append(item)
        else:
            stack.extend(reversed(children))
    return leaves


def unflatten(tree: Any, leaves: Sequence[Any]) -> Any:
    """The structure of `tree` with `leaves` in place of its leaves."""
    supply = iter(leaves)
    return tree_map(lambda _: next(supply), tree)


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with fn applied to every leaf."""
    if isinstance(tree, dict):
        done = {k: tree_map(fn, tree[k]) for k in _keys(tree)}
        return {k: done[k] for k in tree}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(fn, c) for c in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(tree_map(fn, c) for c in tree)
    return fn(tree)


def paths(tree: Any, prefix: str = "") -> Iterator[str]:
    """A name for every leaf, such as `params['w'][0]`, in the order of flatten."""
    if isinstance(tree, dict):
        for k in _keys(tree):
            yield from paths(tree[k], f"{prefix}[{k!r}]")
    elif isinstance(tree, list | tuple):
        for i, c in enumerate(tree):
            yield from paths(c, f"{prefix}[{i}]")
    else:
        yield prefix


def children_of(item: Any) -> list[tuple[Any, Any]] | None:
    """(key, field or place, what stands there) in the order of flatten; None of a leaf."""
    children = _children(item)
    if children is None:
        return None
    names = _keys(item) if isinstance(item, dict) else getattr(item, "_fields", range(len(item)))
    return list(zip(names, children, strict=True))


def _children(item: Any) -> list[Any] | None:
    if isinstance(item, dict):
        return [item[k] for k in _keys(item)]
    if isinstance(item, list | tuple):
        return list(item)
    return None


def _keys(tree: dict[Any, Any]) -> list[Any]:
    if any(getattr(type(k), "__hash__", None) is object.__hash__ for k in tree):
        return list(tree)  # tensors and other things without an order: `<` would build a node
    try:
        return sorted(tree)
    except TypeError:
        return list(tree)
