"""Where things stand in a tree: who is around whom is known in a few steps, however deep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Ancestry:
    """One item of a tree, and those around it.

    Besides the next one around, each knows one further away, so that any one around is found in
    O(log depth) [Myers 1983, "An applicative random-access stack"].

    item   what stands there; None for what is around everything
    outer  the next one around
    depth  how many items stand there or around
    jump   one further away
    top    the item around all of them
    """

    __slots__ = ("depth", "item", "jump", "outer", "top")
    item: Any
    outer: Ancestry
    depth: int
    jump: Ancestry
    top: Any

    def __init__(self, item: Any, outer: Ancestry) -> None:
        self.item = item
        self.outer = outer
        self.depth = outer.depth + 1
        far = outer.jump
        even = outer.depth - far.depth == far.depth - far.jump.depth
        self.jump = far.jump if even else outer
        self.top = outer.top if outer.depth else item

    def up_to(self, depth: int) -> Ancestry:
        """The one around that has this depth; itself where that is not above it."""
        at = self
        while at.depth > depth:
            at = at.jump if at.jump.depth >= depth else at.outer
        return at

    def lies_in(self, other: Ancestry) -> bool:
        """Whether it is the other one, or that is around it. Everything lies in the outermost."""
        return self.up_to(other.depth).item is other.item

    def common(self, other: Ancestry) -> Ancestry:
        """The innermost that is around both, or is one of them."""
        if self.top is not other.top:
            return OUTSIDE
        a, b = self.up_to(other.depth), other.up_to(self.depth)
        while a.item is not b.item:
            higher = a.jump.item is not b.jump.item
            a, b = (a.jump, b.jump) if higher else (a.outer, b.outer)
        return a

    def __iter__(self) -> Iterator[Any]:
        """What stands there and around, innermost first."""
        at = self
        while at.depth:
            yield at.item
            at = at.outer

    def __len__(self) -> int:
        return self.depth

    def chain(self) -> tuple[Any, ...]:
        """What stands there and around, outermost first."""
        return tuple(reversed([*self]))


def _outermost() -> Ancestry:
    root = Ancestry.__new__(Ancestry)
    root.item, root.top, root.depth, root.outer, root.jump = None, None, 0, root, root
    return root


OUTSIDE = _outermost()
"""What is around everything."""
