"""What opened programs of JAX and of PyTorch share: forms, names and lines.

A form is a function of the tensors that an operation reads, and of its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..base.lazy import lazy_module
from ..base.position import Position
from ..ir.graph import current, name_scope
from ..ir.node import Tensor

__all__ = ["Form", "clean", "gg", "of", "placed", "plain"]

gg: Any = lazy_module("graphgrad")
"""The vocabulary, by its public names."""

Form = Callable[..., Any]
"""A function of the tensors that an operation reads, and of its parameters by name."""


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


def clean(name: str) -> str:
    """A name of ours: letters, digits, _, . and - in parts."""
    parts = [re.sub(r"[^\w.\-]+", "_", part).strip("_") for part in name.split("/")]
    return "/".join(part if part[:1].isalnum() else f"_{part}" for part in parts if part)


def placed(scope: str, position: Position | None, build: Callable[[], Any]) -> Sequence[Tensor]:
    """What is built, in a name scope, at a line of the program that was opened."""
    graph = current().graph
    start = len(graph.nodes)
    with name_scope(scope) if scope else nullcontext():
        made = build()
    for node in graph.nodes[start:]:
        if position is not None and not isinstance((node.position or ("", 0))[0], str):
            node.position = position
    return made if isinstance(made, tuple | list) else (made,)
