"""How much memory passes may take to save time."""

from __future__ import annotations

from typing import NamedTuple


class Policy(NamedTuple):
    """What loops keep of their runs for their gradients.

    room      bytes for what could be computed again; None: as much as there is
    segments  how often loops are cut: of segments the first state is kept, and the rest run again
    """

    room: int | None = None
    segments: int = 0


FREELY = Policy()


class Room:
    """Bytes that are left of some room."""

    def __init__(self, size: int | None) -> None:
        self.left = size

    @property
    def limited(self) -> bool:
        """Whether there is an end to it."""
        return self.left is not None

    def take(self, size: int) -> bool:
        """Take so many bytes, if there is room for them."""
        if self.left is None:
            return True
        if size > self.left:
            return False
        self.left -= size
        return True
