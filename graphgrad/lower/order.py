"""The order in which nodes run, for less memory at once."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ops.sources import Assign
from .alias import is_view, nbytes

ENOUGH = 64 << 20  # bytes; where all values together are less, their order does not matter


def ordered(program: Program) -> Program:
    """The same nodes in an order in which less is in memory at once, where one is found.

    A node runs as soon as it frees no less than it takes; the others keep their order.
    """
    if sum([n * (nbytes(t) or 0) for t, n in program.types.items()]) < ENOUGH:
        return program
    flow = _Flow(program)
    order = _Early(flow).run()
    if peak(flow, order) >= peak(flow, range(len(program.nodes))):
        return program
    return Program(program.inputs, program.outputs, [program.nodes[i] for i in order])


class _Flow:
    """What nodes make and read, by place in the program. Values that are given do not count.

    sizes   bytes of each value that has memory of its own
    makes   values that a node makes
    reads   values that a node reads, or looks into
    before  nodes that have to run before a node
    kept    values that are needed at the end
    """

    def __init__(self, program: Program) -> None:
        self.sizes: list[int] = []
        self.makes: list[list[int]] = []
        self.reads: list[set[int]] = []
        self.before: list[set[int]] = []
        self._value: dict[Tensor, int] = {}
        given = frozenset(program.inputs)
        place: dict[Node, int] = {}
        for at, node in enumerate(program.nodes):
            place[node] = at
            self.reads.append({self._value[t] for t in node.inputs if t in self._value})
            before = {place[t.node] for t in node.inputs if t not in given}
            before.update([place[n] for n in node.controls])
            self.before.append(before)
            self.makes.append(self._made(node, [t for t in node.outputs if t not in given]))
        self.kept = {self._value[t] for t in program.outputs if t in self._value}

    def _made(self, node: Node, outputs: Iterable[Tensor]) -> list[int]:
        """New values; what is a view, or passed on, is the value that it may look into."""
        source = _looked_at(node)
        if source is not None:
            if source in self._value:
                self._value.update(dict.fromkeys(outputs, self._value[source]))
            return []
        made = []
        for t in outputs:
            self._value[t] = len(self.sizes)
            made.append(len(self.sizes))
            self.sizes.append(nbytes(t.type) or 0)
        return made


def _looked_at(node: Node) -> Tensor | None:
    """The input whose memory the outputs of a node may share."""
    if not node.op.memory.view or not node.inputs:
        return None
    source = node.inputs[1 if type(node.op) is Assign else 0]
    return source if is_view(node) or node.outputs[0].type is source.type else None


class _Early:
    """A list schedule: who frees as much as it takes goes first, then who stands first."""

    def __init__(self, flow: _Flow) -> None:
        count, values = len(flow.makes), len(flow.sizes)
        self.flow = flow
        self.waits = [len(before) for before in flow.before]
        self.after: list[list[int]] = [[] for _ in range(count)]
        for i, before in enumerate(flow.before):
            for b in before:
                self.after[b].append(i)
        self.uses = [0] * values
        self.readers = [0] * values  # the sum of their places: of the last one, its place
        for i, reads in enumerate(flow.reads):
            for v in reads:
                self.uses[v] += 1
                self.readers[v] += i
        for v in flow.kept:
            self.uses[v] += 2  # so that no reader is the last
        self.gain = [-sum([flow.sizes[v] for v in makes]) for makes in flow.makes]
        for v, n in enumerate(self.uses):
            if n == 1:
                self.gain[self.readers[v]] += flow.sizes[v]

    def run(self) -> list[int]:
        """Places in their new order."""
        ready = [i for i, n in enumerate(self.waits) if not n]
        first = [i for i in ready if self.gain[i] >= 0]
        heapify(ready)
        heapify(first)
        done = bytearray(len(self.waits))
        order: list[int] = []
        while ready:
            i = heappop(first or ready)
            if done[i]:
                continue
            done[i] = 1
            order.append(i)
            for j in self._reached(i):
                heappush(ready, j)
                if self.gain[j] >= 0:
                    heappush(first, j)
        return order

    def _reached(self, i: int) -> list[int]:
        """Nodes that can run, and would not before, or would free less, now that i has run."""
        ready = []
        for v in self.flow.reads[i]:
            self.uses[v] -= 1
            self.readers[v] -= i
            if self.uses[v] == 1:
                last = self.readers[v]
                self.gain[last] += self.flow.sizes[v]
                if not self.waits[last]:
                    ready.append(last)
        for j in self.after[i]:
            self.waits[j] -= 1
            if not self.waits[j]:
                ready.append(j)
        return ready


def peak(flow: _Flow, order: Iterable[int]) -> int:
    """Bytes at the worst moment, if nothing is written over what it is made from."""
    uses = [0] * len(flow.sizes)
    for reads in [*flow.reads, flow.kept]:
        for v in reads:
            uses[v] += 1
    now = worst = 0
    for i in order:
        now += sum([flow.sizes[v] for v in flow.makes[i]])
        worst = max(worst, now)
        now -= sum([flow.sizes[v] for v in flow.makes[i] if not uses[v]])
        for v in flow.reads[i]:
            uses[v] -= 1
            if not uses[v]:
                now -= flow.sizes[v]
    return worst
