"""Default arguments of layers in a block: `arg_scope`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

__all__ = ["add_arg_scope", "arg_scope", "current_arg_scope", "has_arg_scope"]

_current: ContextVar[dict[Any, dict[str, Any]]] = ContextVar("tf1_arg_scope", default={})  # noqa: B039
SCOPED: set[Any] = set()


def add_arg_scope(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments `arg_scope` can say."""

    @wraps(function)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        given = _current.get().get(with_defaults, {})
        return function(*args, **{**given, **kwargs})

    SCOPED.add(with_defaults)
    return with_defaults


def has_arg_scope(function: Any) -> bool:
    """Whether `arg_scope` can say its arguments."""
    return function in SCOPED


def current_arg_scope() -> dict[Any, dict[str, Any]]:
    """What is said here."""
    return dict(_current.get())


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Any]:
    """Say arguments of functions for a block, or what another block said."""
    if isinstance(list_ops_or_scope, dict):
        said = dict(list_ops_or_scope)
    else:
        said = dict(_current.get())
        functions = list_ops_or_scope
        for f in functions if isinstance(functions, list | tuple) else [functions]:
            if not has_arg_scope(f):
                raise ValueError(f"{f} is not decorated with @add_arg_scope")
            said[f] = {**said.get(f, {}), **kwargs}
    token = _current.set(said)
    try:
        yield said
    finally:
        _current.reset(token)
