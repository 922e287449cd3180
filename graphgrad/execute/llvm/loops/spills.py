"""The values of one vector of elements while its body is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....lower.items import Item
from ..emit.values import Value
from ..emit.workspace import Workspace
from .access import ORDERED, Values, bytes_of, element, load, store

LONG = 300  # items from which on values are spilled for a reader that is far off
FAR = 32  # items in between


class Spills:
    """Values by item. `of_row` gives those that are the same for all elements.

    In a long body, what is read far from where it is made is spilled: LLVM takes very long to
    find out what to keep in which register there.
    """

    def __init__(
        self,
        items: Sequence[Item],
        computes: Sequence[int],
        at_last: Sequence[int],
        lanes: int,
        workspace: Workspace,
        of_row: Callable[[int], Value],
    ) -> None:
        self.items, self.lanes, self.workspace, self._of_row = items, lanes, workspace, of_row
        self.values: Values = {}
        self.long = len(computes) > LONG
        self._now = 0
        self._fresh: dict[int, int] = {}  # item -> when its value was last at hand
        self._offsets: dict[int, int] = {}
        self._last: dict[int, int] = {}  # item -> when it is read for the last time
        if self.long:
            for now, i in enumerate(computes):
                self._last.update(dict.fromkeys(items[i].args, now))
            self._last.update(dict.fromkeys(at_last, len(computes)))

    def get(self, i: int) -> Value:
        """An item that is there, or that the row has."""
        item = self.values.get(i)
        if item is None:
            return self._of_row(i)
        if i in self._offsets and self._now - self._fresh[i] > FAR:
            kind = element(self.items[i])
            where = self.workspace.at(self._offsets[i])
            item = load(item.body, kind, self.lanes, self.lanes, where, ORDERED)
            self.values[i] = item
            self._fresh[i] = self._now
        return item

    def put(self, i: int, x: Value) -> None:
        """The item that comes next."""
        self.values[i] = x
        if not self.long:
            return
        self._fresh[i] = self._now
        if self._last.get(i, 0) - self._now > FAR:
            self._offsets[i] = self.workspace.take(self._bytes(x))
            store(x, x.lanes, self.workspace.at(self._offsets[i]), ORDERED)
        for a in set(self.items[i].args):
            if a in self._offsets and self._last[a] == self._now:
                self.workspace.give(self._offsets.pop(a), self._bytes(self.values[a]))
        self._now += 1

    def _bytes(self, x: Value) -> int:
        return x.lanes * bytes_of(x.element)
