"""What selections say: their names, op types that are not there, near misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import RegionError, did_you_mean
from ...base.lazy import LazyModule
from ...base.position import of_function, show
from ...ir.graph import Graph
from ...ir.op import OP_TYPES
from ..scopes import _takes_inputs
from .targets import pool

_difflib = LazyModule("difflib")


def check_op_type(op_type: Any) -> None:
    """RegionError for input that is not an op type that has inputs."""
    if not isinstance(op_type, str):
        raise RegionError(f"an op type is a string such as 'Relu', got {op_type!r}")
    if op_type not in OP_TYPES:
        raise RegionError(no_type(op_type))
    if not _takes_inputs(OP_TYPES[op_type]):
        raise RegionError(no_inputs(op_type))


def no_type(op_type: str) -> str:
    """What to say of an op type that is not there."""
    return f"there is no op type {op_type!r}. {did_you_mean(op_type, OP_TYPES)}".rstrip()


def no_inputs(op_type: str) -> str:
    """What to say of an op type whose nodes read nothing."""
    return f"{op_type!r} has no inputs, so there is no gradient to override"


def shown(value: Any) -> str:
    """A value as it was written: a function by its name and line."""
    if callable(value) and hasattr(value, "__name__"):
        at = of_function(value)
        return f"{value.__name__}, {show(at)}" if at else str(value.__name__)
    return repr(value)


def no_hint(graph: Graph) -> str:
    """What to say of a test that no node passed."""
    return "It is called on the nodes that you built and that have inputs."


def types_near(types: Sequence[str]) -> Callable[[Graph], str]:
    """Op types of a graph that are nearly these."""
    return lambda graph: near(types, {n.type for n in pool(graph, False)}, "the op types there are")


def names_near(patterns: Sequence[str]) -> Callable[[Graph], str]:
    """Names of nodes that are nearly these."""
    return lambda graph: near(patterns, {n.name for n in pool(graph, False)}, "there are")


def scopes_near(name: str) -> Callable[[Graph], str]:
    """Name scopes that are nearly this one."""

    def hint(graph: Graph) -> str:
        scopes: set[str] = set()
        for node in pool(graph, False):
            parts = node.name.split("/")[:-1]
            scopes.update("/".join(parts[: i + 1]) for i in range(len(parts)))
        return near((name,), scopes, "the name scopes are") if scopes else "It has no name scopes."

    return hint


def near(wanted: Sequence[str], there: set[str], lead: str) -> str:
    """A near miss, else a few of what there is."""
    for name in wanted:
        close = _difflib.get_close_matches(name, there, n=1)
        if close:
            return f"Did you mean {close[0]!r}?"
    if not there:
        return ""
    some = ", ".join(map(repr, sorted(there)[:8]))
    return f"{lead[0].upper()}{lead[1:]} {some}{', ...' if len(there) > 8 else ''}."
