"""The variables of a graph, by place and by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from ..base.errors import StateError, did_you_mean
from ..base.words import shortened, visible

T = TypeVar("T")
"""Tensor, which lies above this file."""

__all__ = ["Variables"]


class Variables(Sequence[T]):
    """Variables in the order in which they were built: by place as in a list, or by name.

    trainable  those that are meant to be trained: floating ones, unless `variable` was told else
    slots      those that hold what an optimiser remembers: momentum, the count of updates

    >>> with gg.Graph() as g:
    ...     w, n = gg.variable([1.0, 2.0], name="w"), gg.variable(0, name="n")
    >>> g.variables
    <2 variables: w: float64[2], trainable; n: int64[]>
    >>> g.variables["w"] is w, list(g.variables.trainable) == [w], g.variables.names
    (True, True, ['w', 'n'])
    """

    def __init__(self, tensors: Iterable[T]) -> None:
        self._tensors = list(tensors)
        self._named = {_node(t).name: t for t in self._tensors}

    @property
    def names(self) -> list[str]:
        """The names, in order: those of the nodes."""
        return list(self._named)

    @property
    def trainable(self) -> Variables[T]:
        """Those that are meant to be trained."""
        return self._which(lambda op: op.trainable)

    @property
    def slots(self) -> Variables[T]:
        """Those that hold what an optimiser remembers."""
        return self._which(lambda op: op.slot)

    @overload
    def __getitem__(self, key: str | int) -> T: ...

    @overload
    def __getitem__(self, key: slice) -> Variables[T]: ...

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            entry = self._tensors[key]
            return Variables(entry) if isinstance(entry, list) else entry
        if key in self._named:
            return self._named[key]
        raise StateError(f"no variable is named {key!r}. {near(key, self._named)}".rstrip())

    def __contains__(self, key: object) -> bool:
        return key in self._named if isinstance(key, str) else any(t is key for t in self)

    def __iter__(self) -> Iterator[T]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        rows = [_shown(_node(t)) for t in self]
        many = f"{len(rows)} variable{'s' * (len(rows) != 1)}"
        return visible(f"<{many}: {'; '.join(rows)}>" if rows else f"<{many}>")

    def _which(self, test: Callable[[Any], bool]) -> Variables[T]:
        return Variables(t for t in self if test(_node(t).op))


def near(name: str, known: Iterable[str]) -> str:
    """`Did you mean 'w'?`, or what names there are."""
    names = sorted(known)
    there = shortened(", ".join(map(repr, names)), 200)
    return did_you_mean(name, names, f"There are {there}." if names else "There is none.")


def _node(tensor: Any) -> Any:
    return tensor.node


def _shown(node: Any) -> str:
    """`w: float64[2], trainable`."""
    marks = ", trainable" * node.op.trainable + ", slot" * node.op.slot
    return f"{node.name}: {node.outputs[0].type!r}{marks}"
