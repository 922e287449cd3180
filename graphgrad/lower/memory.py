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

from .alias import AliasAnalysis, Effect, Fields, nbytes

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
LODGED = 1 << 18  # bytes from which on a buffer is worth a new array in every run
NOTHING = -1, -1


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
    """The buffers of a program, by the numbers of values.

    last     place of the last action that reads a value; past the end for outputs, -1 if none does
    last_in  the same, of a value or a view of it
    handed   value -> the output that is handed to the caller in its memory, by place
    unread   values that are handed and that no action reads
    buffers  of written values, else None
    over     the value that a value is written over, or -1
    all      every buffer once, in the order in which they are first written
    fresh    those of them that are fresh, each with the type of what is first written
    """

    def __init__(self, aliases: AliasAnalysis) -> None:
        self._aliases = aliases
        self._arity = len(aliases.program.inputs)
        self.end = len(aliases.actions)
        count = len(aliases.types)
        self.outputs = [aliases.number[t] for t in aliases.program.outputs]
        self.last = aliases.last.copy()
        self.last_in = self._last_in()
        self.handed = self._handed()
        self.unread = {value for value in self.handed if self.last_in[value] < 0}
        for value in self.outputs:
            self.last[value] = self.last_in[aliases.root.get(value, value)] = self.end
        self.buffers: list[Buffer | None] = [None] * count
        self.over = [-1] * count
        self.all: list[Buffer] = []
        first = self._place()
        pairs = zip(self.all, first, strict=True)
        self.fresh = {b: aliases.types[value] for b, value in pairs if b.fresh}
        lodge(self.all, self.end)

    def _last_in(self) -> list[int]:
        last, root = self.last, self._aliases.root
        if not root:
            return last
        last_in = last.copy()
        for view, base in root.items():
            last_in[base] = max(last_in[base], last[view])
        return last_in

    def _handed(self) -> dict[int, int]:
        """One output a root; another one in the same memory, or in memory of others, is a copy.

        So is an output that is a part of its root, since it would keep all of it, or that shows
        elements of it more than once.
        """
        aliases = self._aliases
        handed: dict[int, int] = {}
        for place, value in enumerate(self.outputs):
            root = aliases.root.get(value, value)
            if root < self._arity or root in aliases.constants or root in handed:
                continue
            if value == root or self._shows_all(value, root):
                handed[root] = place
        return handed

    def _shows_all(self, view: int, root: int) -> bool:
        """Whether a view shows every element of its root once."""
        layout = self._aliases.layout(view)  # that of a broadcast is read-only
        once = layout is None or layout.flags.writeable
        size, whole = [nbytes(self._aliases.types[value]) for value in (view, root)]
        return once and size == whole is not None

    def _place(self) -> list[int]:
        """A buffer for each output of a node: one that is read here for the last time, or new.

        The value that is written first to each.
        """
        kept, types, root = self._aliases.kept, self._aliases.types, self._aliases.root
        handed, buffers, last_in = self.handed, self.buffers, self.last_in
        write, firsts = Effect.WRITE, []
        for at, action in enumerate(self._aliases.actions):
            _, kind, _, _, made, pairs = action
            if kind is not write:
                continue
            written, over = self._over(at, action) if pairs else NOTHING
            for value in made:
                fresh = value in handed or value in kept  # as no value is that is written over
                last = last_in[value]
                if last < 0:
                    last = at
                if value == written:
                    buffer = buffers[root.get(over, over)]
                    assert buffer is not None
                    buffer.last, buffer.fresh = last, fresh
                    self.over[value] = over
                else:
                    buffer = Buffer(nbytes(types[value]) or 0, at, last, fresh)
                    self.all.append(buffer)
                    firsts.append(value)
                buffers[value] = buffer
        return firsts

    def _over(self, at: int, action: Fields) -> tuple[int, int]:
        """An output, and the value that it is written over; at most one of a node."""
        _, _, _, inputs, values, pairs = action
        last, root, types = self.last, self._aliases.root, self._aliases.types
        for place, i in pairs:
            over, made = inputs[i], values[place]
            if last[over] != at or not self._dies(at, over):
                continue
            if last[made] < 0 and self._is_given(action, place):
                continue
            if not root and types[over] is types[made] and inputs.count(over) == 1:
                return made, over
            here = root.get(over, over)
            for k, value in enumerate(inputs):
                if root.get(value, value) == here and not (
                    types[value] is types[made] and (place, k) in pairs and self._dies(at, value)
                ):
                    break
            else:
                return made, over
        return NOTHING

    def _is_given(self, action: Fields, place: int) -> bool:
        """Whether another value is given for an output, so that nothing reads what is written."""
        node, _, _, _, made, _ = action
        return self._aliases.number[node.outputs[place]] != made[place]

    def _dies(self, at: int, value: int) -> bool:
        """Whether a value is all of a buffer that nothing reads after this place."""
        root = self._aliases.root.get(value, value)
        buffer = self.buffers[root]
        if buffer is None or buffer.last != at or root in self._aliases.kept:
            return False
        if value == root:
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
    ends: dict[int, list[tuple[int, int]]] = {}  # places and sizes, by their last reader
    now = 0
    for buffer in buffers:
        while now < buffer.first:
            for start, size in ends.pop(now, ()):
                free.give(start, size)
            now += 1
        size = -(-buffer.size // ALIGNMENT) * ALIGNMENT
        if size:
            buffer.offset = free.take(size)
            ends.setdefault(buffer.last, []).append((buffer.offset, size))
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
