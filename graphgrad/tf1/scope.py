"""What holds where an op is made: default graph, name scope, maps, controls, device, branch."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["ROOT", "ControlFrame", "Scope", "changed", "default_stack", "pushed", "scope_of"]


@dataclass(eq=False)
class ControlFrame:
    """A `with control_dependencies` block: what to wait for, and which ops wait already."""

    ops: tuple[Any, ...]
    seen: set[Any] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Scope:
    """What holds for the ops that are made now in one graph.

    prefix    the name scope, without the last slash
    maps      {op type: name of a gradient}, of all open blocks
    controls  the open blocks of control dependencies, outermost first
    device    what `device` said last
    flow      the branch or loop that is being built, or None
    original  the op for whose gradient this is made, or None
    """

    prefix: str = ""
    maps: dict[str, Any] = field(default_factory=dict)
    controls: tuple[ControlFrame, ...] = ()
    device: Any = ""
    flow: Any = None
    original: Any = None


ROOT = Scope()
_scopes: ContextVar[dict[Any, Scope]] = ContextVar("tf1_scopes", default={})  # noqa: B039
_defaults: ContextVar[dict[str, tuple[Any, ...]]] = ContextVar("tf1_defaults", default={})  # noqa: B039


def scope_of(graph: Any) -> Scope:
    """What holds in a graph now."""
    return _scopes.get().get(graph, ROOT)


def _set(graph: Any, scope: Scope) -> None:
    scopes = dict(_scopes.get())
    if scope is ROOT:
        scopes.pop(graph, None)
    else:
        scopes[graph] = scope
    _scopes.set(scopes)


@contextmanager
def changed(graph: Any, **fields: Any) -> Any:
    """Ops made in the block are under these. Blocks may end in any order."""
    before = scope_of(graph)
    _set(graph, replace(before, **fields))
    try:
        yield
    finally:
        back = {name: getattr(before, name) for name in fields}
        after = replace(scope_of(graph), **back)
        same = all(getattr(after, n) == getattr(ROOT, n) for n in Scope.__dataclass_fields__)
        _set(graph, ROOT if same else after)


def default_stack(kind: str) -> tuple[Any, ...]:
    """The defaults of a kind ("graph", "session"), innermost last."""
    return _defaults.get().get(kind, ())


@contextmanager
def pushed(kind: str, value: Any) -> Any:
    """The value is the default of its kind in the block. Blocks may end in any order."""
    _defaults.set({**_defaults.get(), kind: (*default_stack(kind), value)})
    try:
        yield value
    finally:
        stack = list(default_stack(kind))
        for place in reversed(range(len(stack))):
            if stack[place] is value:
                del stack[place]
                break
        _defaults.set({**_defaults.get(), kind: tuple(stack)})
