"""Memory for a function to work in, which its caller makes."""

from __future__ import annotations

from .module import Body

LINE = 64


class Workspace:
    """Bytes after %workspace, taken from the start on; what is given back is taken again."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.size = 0
        self._free: dict[int, list[int]] = {}

    def take(self, size: int) -> int:
        """Where so many bytes are, from the start of a cache line."""
        size = -(-size // LINE) * LINE
        free = self._free.get(size)
        if free:
            return free.pop()
        self.size += size
        return self.size - size

    def give(self, offset: int, size: int) -> None:
        """Give back what was taken."""
        self._free.setdefault(-(-size // LINE) * LINE, []).append(offset)

    def at(self, offset: int) -> str:
        """The address of what was taken."""
        return self.body.at("%workspace", offset)
