"""Names, comments and small expressions of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ExportError
from ..base.position import show, source_line
from ..ir.node import Node, RuleCall
from .layout import WIDTH
from .literals import literal
from .syntax import Refused

__all__ = [
    "OWN_NAMES",
    "base_name",
    "check_dtype",
    "comment_of",
    "identifier",
    "key_text",
    "snake",
    "sorted_keys",
    "tuple_text",
]

OWN_NAMES = frozenset(
    (
        *("np", "math", "functools", "itertools", "operator", "zlib", "typing", "pathlib"),
        *("collections", "ARRAYS", "STATE", "state", "new_state", "lengths", "run", "_", "_file"),
        *("hashlib", "_beside", "_digest"),
        *(
            "_equal_lengths",
            "_given",
            "_same_length",
            "_solved_length",
            "_per_example",
            "_scan",
            "_stacked",
            "_while_loop",
        ),
    )
)
"""What a file may call something by itself."""


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refused for a dtype that another package has to be there for."""
    if not hasattr(np, dtype.name) and dtype.kind != "b":
        raise Refused(f"{dtype.name} is not a dtype of NumPy alone")


def comment_of(node: Node) -> str:
    """Where a node is from."""
    if isinstance(node.origin, RuleCall):
        site = node.origin.site
        return one_line(f"rule {node.origin.rule!r} for {site.name} ({site.where})")
    if node.origin is not None:
        return one_line(f"gradient of {node.origin.name} ({node.origin.where})")
    if node.position is None:
        return ""
    return one_line(f"{show(node.position)}: {source_line(node.position)}".removesuffix(": "))


def one_line(text: str) -> str:
    """Printable, and not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    most = WIDTH - 6
    return line if len(line) <= most else f"{line[: most - 3]}..."


def base_name(node: Node) -> str:
    """What the value of a node is called, by its name or its type."""
    return identifier(node.name) if node._name else snake(node.type)


def identifier(name: str) -> str:
    """The nearest name that Python has."""
    word = re.sub(r"\W+", "_", name).strip("_") or "x"
    word = f"x{word}" if word[0].isdigit() else word
    return word if word.isidentifier() else "x"


def snake(type_: str) -> str:
    """`reduce_sum` for ReduceSum."""
    return identifier(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type_).lower())


def tuple_text(items: Sequence[str]) -> str:
    """A tuple of expressions."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def sorted_keys(tree: dict[Any, Any]) -> list[Any]:
    """Its keys as flatten() goes through them."""
    try:
        return sorted(tree)
    except TypeError:
        return list(tree)


def key_text(key: Any) -> str:
    """The key of a dict; ExportError."""
    if isinstance(key, str | int | float | bool | None | tuple):
        return literal(key)
    raise ExportError(f"the outputs have the key {key!r}, which is not a string or number")
