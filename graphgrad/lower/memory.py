"""Where values are while a program runs: which share a buffer, and where buffers are in the arena.

A buffer is in the arena, at an offset that is settled before any run, or *fresh*: new memory in
every run, for what is handed to the caller and for what may be looked at when the run is over. A
large one that is needed only before a result is written *lodges* in the memory of that result.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from heapq import heappop, heappush
from operator import attrgetter

from ..ir.node import Tensor
from .alias import Action, AliasAnalysis, Effect, nbytes
from .binding import Binding

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
LODGED = 1 << 18  # bytes from which on a buffer is worth a new array in every run


class Buffer:
    """Memory of a value, or of several that are written one over the other.

    size    bytes
    first   place of the action that writes it first
    last    place of the last action that reads it; past the end if it is needed after the run
    fresh   whether it is new in every run
    offset  where it is in the arena, if it is not
    host    the fresh buffer that it lodges in, if it does
    since   place of the action that the memory is made for: the first of a lodger, or its own
    """

    __slots__ = ("first", "fresh", "host", "last", "offset", "since", "size")

    def __init__(self, size: int, first: int, last: int, fresh: bool) -> None:
        self.size = size
        self.first = first
        self.last = last
        self.fresh = fresh
        self.offset = 0
        self.host: Buffer | None = None
        self.since = first


class Buffers:
    """The buffers of a program.

    last     value -> place of the last action that reads it; past the end for outputs
    read     values that an action reads, or a view of them
    handed   value -> the output that is handed to the caller in its memory, by place
    buffers  written value -> its buffer
    unread   (action, output), by place -> buffer of a value that is not used: another one is given
    over     written value -> the value that it is written over
    """

    def __init__(self, aliases: AliasAnalysis, binding: Binding) -> None:
        self._aliases = aliases
        self._binding = binding
        self._given = frozenset(aliases.program.inputs)
        self.end = len(aliases.actions)
        self.last: dict[Tensor, int] = {}
        self.read: set[Tensor] = set()
        self.last_in: dict[Tensor, int] = {}
        self._note_reads()
        self.handed = self._handed()
        self.buffers: dict[Tensor, Buffer] = {}
        self.unread: dict[tuple[int, int], Buffer] = {}
        self.over: dict[Tensor, Tensor] = {}
        for at, action in enumerate(aliases.actions):
            if action.kind is Effect.WRITE:
                self._place(at, action)
        lodge(self.all(), self.end)

    def all(self) -> list[Buffer]:
        """Every buffer once, in the order in which they are first written."""
        buffers = dict.fromkeys(self.buffers.values())
        return sorted([*buffers, *self.unread.values()], key=lambda b: b.first)

    def _note_reads(self) -> None:
        last, last_in = self.last, self.last_in
        root, same = self._aliases.root, self._aliases.same
        for at, action in enumerate(self._aliases.actions):
            for value in action.inputs:
                last[value] = at
                last_in[root.get(value, value)] = at
        self.read = set(last_in)
        for t in self._aliases.program.outputs:
            value = same.get(t, t)
            last[value] = last_in[root.get(value, value)] = self.end

    def _handed(self) -> dict[Tensor, int]:
        """One output a root; another one in the same memory, or in memory of others, is a copy.

        So is an output that is a part of its root, since it would keep all of it, or that shows
        elements of it more than once.
        """
        aliases = self._aliases
        handed: dict[Tensor, int] = {}
        for place, t in enumerate(aliases.program.outputs):
            value = aliases.same.get(t, t)
            root = aliases.root.get(value, value)
            if root in self._given or root in aliases.constants or root in handed:
                continue
            if value is root or self._shows_all(value, root):
                handed[root] = place
        return handed

    def _shows_all(self, view: Tensor, root: Tensor) -> bool:
        """Whether a view shows every element of its root once."""
        layout = self._aliases.layout(view)  # that of a broadcast is read-only
        once = layout is None or layout.flags.writeable
        return once and nbytes(view.type) == nbytes(root.type) is not None

    def _place(self, at: int, action: Action) -> None:
        """A buffer for each output of a node: one that is read here for the last time, or new."""
        kept, node = self._aliases.kept, action.node
        place, over = self._over(at, action)
        for i, y in enumerate(node.outputs):
            if y in self._given:
                self.unread[at, i] = Buffer(nbytes(y.type) or 0, at, at, False)
                continue
            fresh = y in self.handed or y in kept  # as no value is that is written over
            last = self.last_in.get(y, at)
            if over is None or i != place:
                self.buffers[y] = Buffer(nbytes(y.type) or 0, at, last, fresh)
                continue
            buffer = self.buffers[self._aliases.root.get(over, over)]
            buffer.last, buffer.fresh = last, fresh
            self.buffers[y], self.over[y] = buffer, over

    def _over(self, at: int, action: Action) -> tuple[int, Tensor | None]:
        """An output by its place, and the input that it is written over; at most one of a node."""
        inputs = action.inputs
        dying = [i for i, value in enumerate(inputs) if self._dies(at, value)]
        if not dying:
            return 0, None
        node, root = action.node, self._aliases.root
        pairs = self._binding.overwrites(node)
        for place, i in pairs:
            if i not in dying or node.outputs[place] in self._given:
                continue
            made, here = node.outputs[place].type, root.get(inputs[i], inputs[i])
            for k, value in enumerate(inputs):
                if root.get(value, value) is here and not (
                    k in dying and value.type is made and (place, k) in pairs
                ):
                    break
            else:
                return place, inputs[i]
        return 0, None

    def _dies(self, at: int, value: Tensor) -> bool:
        """Whether a value is all of a buffer that nothing reads after this place."""
        root = self._aliases.root.get(value, value)
        buffer = self.buffers.get(root)
        if buffer is None or buffer.last != at or root in self._aliases.kept:
            return False
        if value is root:
            return True
        layout = self._aliases.layout(value)
        if layout is None or layout.nbytes != buffer.size:
            return False
        return bool(layout.flags.c_contiguous and layout.flags.writeable)  # not a broadcast


def lodge(buffers: Iterable[Buffer], end: int) -> None:
    """Find hosts for large buffers, given in order of their first use.

    A host is needed after the run, and first written when its lodgers are not read any more. Each
    buffer gets the smallest that is large enough, and of these the one that is written the soonest.
    """
    large = [b for b in buffers if b.size >= LODGED]
    free: dict[int, list[Buffer]] = {}  # by size; each in order of their first use
    for buffer in large:
        if buffer.fresh and buffer.last >= end:
            free.setdefault(buffer.size, []).append(buffer)
    sizes = sorted(free)
    # hosts, by when their lodger is read for the last time
    taken: list[tuple[int, int, Buffer]] = []
    for i, buffer in enumerate(large if free else ()):
        while taken and taken[0][0] < buffer.first:
            host = heappop(taken)[2]
            insort(free[host.size], host, key=_FIRST)
        if buffer.fresh:
            continue
        for size in sizes[bisect_left(sizes, buffer.size) :]:
            hosts = free[size]
            at = bisect_right(hosts, buffer.last, key=_FIRST)
            if at < len(hosts):
                buffer.host = host = hosts.pop(at)
                host.since = min(host.since, buffer.first)
                heappush(taken, (buffer.last, i, host))
                break


_FIRST = attrgetter("first")


def pack(buffers: Iterable[Buffer]) -> int:
    """Settle the offsets of buffers, given in order of their first use; the bytes of the arena.

    Best fit: each gets the smallest free place that is large enough, at the lowest offset; places
    that become free join their neighbours.
    """
    free = _Free()
    taken: list[tuple[int, int, int]] = []
    for buffer in buffers:
        while taken and taken[0][0] < buffer.first:
            _, start, size = heappop(taken)
            free.give(start, size)
        size = -(-buffer.size // ALIGNMENT) * ALIGNMENT
        if size:
            buffer.offset = free.take(size)
            heappush(taken, (buffer.last, buffer.offset, size))
    return free.top


class _Free:
    """Free places below the top of the arena, and nothing above it."""

    def __init__(self) -> None:
        self.top = 0
        self._size_at: dict[int, int] = {}
        self._start_of_end: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """The offset of a place of this size."""
        best = bisect_left(self._by_size, (size, 0))
        if best < len(self._by_size):
            start = self._by_size[best][1]
            rest = self._remove(start) - size
            if rest:
                self._add(start + size, rest)
            return start
        start = self._start_of_end.get(self.top, self.top)  # the last place, if it is free
        if start < self.top:
            self._remove(start)
        self.top = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """A place is free again."""
        before = self._start_of_end.get(start)
        if before is not None:
            size += self._remove(before)
            start = before
        if start + size in self._size_at:
            size += self._remove(start + size)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        self._size_at[start] = size
        self._start_of_end[start + size] = start
        insort(self._by_size, (size, start))

    def _remove(self, start: int) -> int:
        size = self._size_at.pop(start)
        del self._start_of_end[start + size]
        del self._by_size[bisect_left(self._by_size, (size, start))]
        return size
