"""What a gradient would compute again of a loop's runs is kept by the loop.

The gradient of a scan is a scan over the same body graph, which computes each run again from what
that run took. Nodes that stand in both bodies, and read the same there, compute the same: those
that cost more than an element-wise step of arithmetic become rows of the first loop, which the
second one takes. It is the first pass over loops: later ones make bodies of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...ir.node import Node, Tensor
from ...ir.program import Program, derive, needed
from ...ir.residual import Residual
from ...ops.base import Cast
from ...ops.control import Scan
from ...ops.elementwise.arithmetic import Add, Multiply, Negative, Subtract
from ...ops.sources import Identity
from ..facts import nbytes
from ..room import Room

CHEAP = Add, Subtract, Multiply, Negative, Cast, Identity, Residual


class Kept(NamedTuple):
    """What one loop keeps for another: tensors of their body, and the node of the first."""

    tensors: list[Tensor]
    loop: Node


def store_runs(program: Program, fired: Counter[str], room: Room) -> Program:
    """The program with loops that keep what their gradients would compute again, as far as there
    is room for it."""
    loops = [node for node in program.nodes if type(node.op) is Scan]
    kept: dict[Node, Kept] = {}
    for at, node in enumerate(loops):
        for first in loops[:at]:
            tensors = _again(first, node)
            if tensors and len(tensors) > len(kept[node].tensors if node in kept else ()):
                kept[node] = Kept(tensors, first)
    rows: dict[Node, list[Tensor]] = {}
    for entry in kept.values():
        wanted = rows.setdefault(entry.loop, [])
        wanted += [t for t in entry.tensors if t not in set(wanted)]
    if room.limited:
        rows = _fitting(rows, room)
        kept = _of_these(kept, rows)
    if not kept:
        return program
    fired["stored_runs"] += len(kept)
    return _rebuilt(program, kept, rows)


def _fitting(rows: Mapping[Node, Sequence[Tensor]], room: Room) -> dict[Node, list[Tensor]]:
    """What there is room for, first what saves the most work for its bytes."""
    wanted = []
    for loop, tensors in rows.items():
        op: Any = loop.op
        (body,) = op.programs
        runs, made = op.runs_of([t.type for t in loop.inputs]), set(body.outputs[op.carries :])
        for t in tensors:
            row = nbytes(t.type)
            if t in made:
                wanted.append((_work(body, t), 0, loop, t))
            elif isinstance(runs, int) and row is not None:  # else nobody knows if there is room
                wanted.append((_work(body, t) / max(1, runs * row), runs * row, loop, t))
    fitting: dict[Node, list[Tensor]] = {}
    for _, size, loop, t in sorted(wanted, key=lambda w: -w[0]):
        if room.take(size):
            fitting.setdefault(loop, []).append(t)
    return fitting


def _work(body: Program, t: Tensor) -> float:
    """Operations that make a tensor of a body from what a run takes."""
    total = 0.0
    for node in needed(body.inputs, [t]):
        types = [tuple([x.type for x in ts]) for ts in (node.inputs, node.outputs)]
        total += node.op.flops(*types) or 0.0
    return total


def _of_these(kept: Mapping[Node, Kept], rows: Mapping[Node, Sequence[Tensor]]) -> dict[Node, Kept]:
    """What is kept, as far as it is among these."""
    these = {loop: set(tensors) for loop, tensors in rows.items()}
    filtered = {
        node: Kept([t for t in tensors if t in these.get(loop, ())], loop)
        for node, (tensors, loop) in kept.items()
    }
    return {node: each for node, each in filtered.items() if each.tensors}


def _rebuilt(
    program: Program, kept: Mapping[Node, Kept], rows: Mapping[Node, Sequence[Tensor]]
) -> Program:
    originals = iter(program.nodes)
    stacks: dict[Node, dict[Tensor, Tensor]] = {}

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        old = next(originals)
        outputs: tuple[Tensor, ...] | None = None
        if old in kept:
            entry = kept[old]
            node = _taking(node, {t: stacks[entry.loop][t] for t in entry.tensors})
            outputs = node.outputs
        if old in rows:
            outputs, stacks[old] = _keeping(node, rows[old])
        return outputs

    return program.rebuild(visit)


def _again(first: Node, second: Node) -> list[Tensor]:
    """What the body of a loop computes that is better kept by another one, which runs before."""
    one, two = first.op, second.op
    assert isinstance(one, Scan)
    assert isinstance(two, Scan)
    given = _same(one, first, two, second)
    if not given:
        return []
    (body,), inside = two.programs, set(one.programs[0].nodes)
    there, free = set(given), set(given)
    twice: list[Node] = []
    read = set(body.outputs)
    for node in body.nodes:
        if node in inside and _moves(node) and there.issuperset(node.inputs):
            there.update(node.outputs)
            twice.append(node)
        else:
            read.update(node.inputs)
    tensors = []
    for node in twice:
        cheap = not node.inputs or node.op.memory.view or isinstance(node.op, CHEAP)
        if cheap and free.issuperset(node.inputs):
            free.update(node.outputs)
            continue
        wanted = [t for t in node.outputs if t in read]
        tensors += wanted
        free.update(wanted)
    return tensors


def _moves(node: Node) -> bool:
    return node.op.pure and not node.controls and not node.op.bodies


def _same(one: Scan, first: Node, two: Scan, second: Node) -> list[Tensor]:
    """Inputs of both bodies that are the same in each run; [] unless the runs are the same."""
    (a,), (b,) = one.programs, two.programs
    mine = dict(zip(b.inputs[two.carries :], second.inputs[two.carries :], strict=True))
    stacked = set(b.inputs[two.carries : two.carries + two.slices])
    kept = dict(zip(one.history, first.outputs[len(a.outputs) :], strict=True))
    shared, rows = [], False
    for at, (t, outer) in enumerate(zip(a.inputs, first.inputs, strict=True)):
        row = at < one.carries + one.slices
        source = kept.get(at) if at < one.carries else outer
        if t not in mine or source is None or (t in stacked) != row:
            continue
        if origin_of(mine[t]) is origin_of(source):
            shared.append(t)
            rows = rows or row
    return shared if rows else []


def origin_of(t: Tensor) -> Tensor:
    """What a tensor is, behind the nodes that pass it on."""
    while passes_on(t.node):
        t = t.node.inputs[t.index]
    return t


def passes_on(node: Node) -> bool:
    """Whether a node's outputs are its inputs."""
    return isinstance(node.op, Identity | Residual) and node.op.pure


def _keeping(
    node: Node, tensors: Sequence[Tensor]
) -> tuple[tuple[Tensor, ...], dict[Tensor, Tensor]]:
    """The outputs of a loop that keeps more of its runs, and the stacks of that."""
    op = node.op
    assert isinstance(op, Scan)
    (body,) = op.programs
    places = {t: at for at, t in enumerate(body.outputs) if at >= op.carries}
    more = [t for t in tensors if t not in places]
    end = len(body.outputs)
    places |= {t: end + at for at, t in enumerate(more)}
    new = op.replace(programs=(Program(body.inputs, (*body.outputs, *more)),))
    made = derive(node, new, node.inputs).outputs
    stacks = {t: made[places[t]] for t in tensors}
    return (*made[:end], *made[end + len(more) :]), stacks


def _taking(node: Node, stacks: Mapping[Tensor, Tensor]) -> Node:
    """The loop that takes what it would compute."""
    op = node.op
    assert isinstance(op, Scan)
    (body,) = op.programs
    end = op.carries + op.slices
    inputs = (*body.inputs[:end], *stacks, *body.inputs[end:])
    new = op.replace(programs=(Program(inputs, body.outputs),), slices=op.slices + len(stacks))
    return derive(node, new, (*node.inputs[:end], *stacks.values(), *node.inputs[end:]))
