"""What a form is: a function of the tensors that an equation reads, and of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.lazy import lazy_module

__all__ = ["Form", "gg", "of", "plain"]

gg: Any = lazy_module("graphgrad")
"""The vocabulary, by its public names."""

Form = Callable[..., Any]
"""A function of the tensors that an equation reads, and of its parameters by name."""


def plain(fn: Callable[..., Any]) -> Form:
    """A function that has no use for the parameters."""
    return lambda *xs, **_: fn(*xs)


def of(name: str) -> Form:
    """A public function by its name."""

    def call(*xs: Any, **_: Any) -> Any:
        fn = gg
        for part in name.split("."):
            fn = getattr(fn, part)
        return fn(*xs)

    return call
