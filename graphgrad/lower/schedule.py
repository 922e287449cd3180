"""The plan of a program: steps in order, and the slot of every value.

Slots hold arrays while a program runs. Those from 0 on change from run to run: first the inputs,
then what steps make. Those below 0 are fixed, counted from the end: constants, and the arrays of an
*arena*, one block of memory in which the places of values are settled by when they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..ir.depth import check_room
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import Array, TensorType
from .alias import Action, AliasAnalysis, Kind, is_view, nbytes
from .binding import Binding, Body, Kernel
from .fused import Fused, nodes_within
from .memory import Buffer, Memory, pack

SMALL = 1 << 16  # bytes
SHOWN = 12  # groups, and nodes of a group, that are listed


class Step(NamedTuple):
    """One call of a kernel.

    node     what is computed
    kernel   what is called
    writes   whether as kernel(*inputs, *outputs); else outputs = kernel(*inputs)
    inputs   slots read
    outputs  slots written; a slot that is read for the last time here may be among them
    fresh    (slot, type) of arrays that are made right before, for this step or a later one
    lodged   (slot, slot of such an array, type) of outputs that are a part of one
    frees    slots whose value is dropped after the step
    dead     slots of arrays in the arena whose place is given away after the step
    over     slots of outputs that are written over an input
    """

    node: Node
    kernel: Kernel
    writes: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    fresh: tuple[tuple[int, TensorType], ...] = ()
    lodged: tuple[tuple[int, int, TensorType], ...] = ()
    frees: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    over: tuple[int, ...] = ()


class Place(NamedTuple):
    """An array in the arena: its slot, its offset in bytes, its type."""

    slot: int
    offset: int
    type: TensorType


class Result(NamedTuple):
    """An output: its slot, and what makes it the caller's own.

    copied  it is copied: its memory is also another's
    made    a kernel made it, so it is checked
    """

    slot: int
    copied: bool
    made: bool


class Plan(NamedTuple):
    """How a program runs.

    program    what is run; its inputs are in the first slots
    steps      in order
    results    one for each output
    constants  (slot, array)
    arena      bytes of the arena
    places     the arrays of an arena
    views      steps that make the fixed views of these, once for an arena
    changing   how many slots there are from 0 on
    fixed      how many there are below 0
    peak       bytes that arenas, fresh arrays and what kernels return take at the worst moment
    exact      whether that is all; not so where lengths are unknown
    over       how many results are written over what they are made from
    inside     types of the ops whose kernels take more while they run
    bodies     the programs that kernels run, each with the name of its node
    """

    program: Program
    steps: tuple[Step, ...]
    results: tuple[Result, ...]
    constants: tuple[tuple[int, Array], ...]
    arena: int
    places: tuple[Place, ...]
    views: tuple[Step, ...]
    changing: int
    fixed: int
    peak: int
    exact: bool
    over: int
    inside: tuple[str, ...]
    bodies: tuple[tuple[str, Body], ...]

    def explain(self) -> list[str]:
        """Lines about steps, memory and the groups that run as one."""
        types = ", ".join(repr(t.type) for t in self.program.inputs)
        looks = sum(not s.writes and is_view(s.node) for s in self.steps)
        copies = sum(r.copied for r in self.results)
        least = "" if self.exact else "at least "
        rows = [
            f"plan for ({types}): {len(self.steps)} steps, {len(self.constants)} constants",
            f"{len(self.views) + looks} views ({len(self.views)} made once), {self.over} results "
            f"written over what they are made from, {copies} outputs copied",
            f"arena {self.arena:,} bytes; peak {least}{self.peak:,} bytes beyond inputs, variables "
            "and constants"
            + (f", and what {', '.join(self.inside)} need inside" * bool(self.inside)),
        ]
        groups = [s.node for s in self.steps if isinstance(s.node.op, Fused)]
        rows += [f"as one: {_group(node)}" for node in groups[:SHOWN]]
        if len(groups) > SHOWN:
            rows.append(f"and {len(groups) - SHOWN} more groups")
        for name, body in self.bodies:
            if not body.plans:
                rows.append(f"{name}, {body.name}: planned when the lengths are known")
            for plan in body.plans:
                first, *others = plan.explain()
                rows += [f"{name}, {body.name}: {first}", *[f"  {row}" for row in others]]
        return rows

    @property
    def kept(self) -> int:
        """Bytes of the arena and those of bodies, which wait for the next run."""
        return self.arena + sum(plan.kept for _, body in self.bodies for plan in body.plans)


def _group(node: Node) -> str:
    """`Tanh, Multiply -> float64[3], float64[]`."""
    inside = [n.type for n in nodes_within(node)]
    more = f" and {len(inside) - SHOWN} more" if len(inside) > SHOWN else ""
    makes = ", ".join(repr(t.type) for t in node.outputs)
    return f"{', '.join(inside[:SHOWN])}{more} -> {makes}"


def schedule(program: Program, binding: Binding) -> Plan:
    """The plan of a program, in its own order of nodes."""
    check_room()  # branches in branches: a survey asks for their kernels, which are scheduled
    survey = AliasAnalysis(program, binding)
    memory = Memory(survey, binding)
    arena = pack(b for b in memory.all() if not b.fresh and b.host is None)
    slots = _Slots(survey, memory)
    steps = [step for at, a in enumerate(survey.actions) if (step := slots.step(at, a))]
    results = slots.results()
    nodes = [a.node for a in survey.actions]
    first = {n.op: n for n in reversed(nodes)}  # nodes of one op run the same programs
    bodies = [(n.name, body) for n in reversed(first.values()) for body in binding.bodies(n)]
    kept = sum(plan.kept for _, body in bodies for plan in body.plans)
    peak, exact = _peak(survey, memory, results, binding)
    return Plan(
        program,
        tuple(steps),
        results,
        tuple(slots.constants.values()),
        arena,
        tuple(slots.places.values()),
        tuple(slots.views.values()),
        slots.changing,
        slots.fixed,
        arena + kept + peak,
        exact,
        len(memory.over),
        tuple(sorted({a.node.type for a in survey.actions if _takes_more(a, binding)})),
        tuple(bodies),
    )


class _Slots:
    """Gives every value its slot, action by action."""

    def __init__(self, survey: AliasAnalysis, memory: Memory) -> None:
        self._survey = survey
        self._memory = memory
        self._given = frozenset(survey.program.inputs)
        self._slot: dict[Tensor, int] = {t: i for i, t in enumerate(survey.program.inputs)}
        self._arity = self.changing = len(self._slot)
        self._free: list[int] = []
        self._dead: dict[int, list[int]] = {}
        self._arrays: dict[Buffer, int] = {}  # fresh buffer -> its slot
        self._types: dict[Buffer, TensorType] = {}
        for y, buffer in memory.buffers.items():
            self._types.setdefault(buffer, y.type)
        self.fixed = 0
        self.constants: dict[Tensor, tuple[int, Array]] = {}
        self.places: dict[tuple[int, TensorType], Place] = {}
        self.views: dict[object, Step] = {}

    def step(self, at: int, action: Action) -> Step | None:
        """The step of an action; None for a view that is made with the arena."""
        node, kernel, kind = action.node, action.kernel, action.kind
        inputs = tuple([self._of(t) for t in action.inputs])
        if kind is Kind.FIXED and inputs[0] < 0:
            self._fixed_view(node, kernel, inputs)
            return None
        fresh: list[tuple[int, TensorType]] = []
        lodged: list[tuple[int, int, TensorType]] = []
        writes = kind is Kind.WRITE and not self._is_returned(action)
        if writes:
            outputs = self._written(at, node, fresh, lodged)
            gone = self._release(self._read_last(at, action, outputs))
        else:
            gone = self._release(self._read_last(at, action, ()))
            outputs = tuple([self._take() for _ in node.outputs])
            self._name(node, outputs)
            unread = [s for t, s in zip(node.outputs, outputs) if self._is_unread(t)]
            gone = [*(s for s in gone if s not in outputs), *self._release(unread)]
        dead = tuple(self._dead.pop(at, ()))
        over = [s for t, s in zip(node.outputs, outputs, strict=True) if t in self._memory.over]
        made = tuple(fresh), tuple(lodged)
        return Step(node, kernel, writes, inputs, outputs, *made, tuple(gone), dead, tuple(over))

    def results(self) -> tuple[Result, ...]:
        """Where the outputs are, and which have to be copied."""
        survey, memory = self._survey, self._memory
        found = []
        for place, t in enumerate(survey.program.outputs):
            value = survey.same.get(t, t)
            root = survey.root.get(value, value)
            copied = memory.handed.get(root) != place
            made = root not in memory.buffers and root not in self._given
            found.append(Result(self._of(value), copied, made))
        return tuple(found)

    def _is_returned(self, action: Action) -> bool:
        """Whether it costs less to let a ufunc make its result: a small one, for the caller."""
        y = action.node.outputs[0]
        return (
            isinstance(action.kernel, np.ufunc)
            and y in self._memory.handed
            and y not in self._memory.read
            and y not in self._memory.over
            and y.shape != ()  # of these it makes numbers
            and (nbytes(y.type) or 0) < SMALL
        )

    def _of(self, t: Tensor) -> int:
        slot = self._slot.get(t)
        if slot is None:  # a constant, when it is first read
            slot = self._slot[t] = self._fix()
            self.constants[t] = slot, self._survey.constants[t]
        return slot

    def _fix(self) -> int:
        self.fixed += 1
        return -self.fixed

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        self.changing += 1
        return self.changing - 1

    def _written(
        self,
        at: int,
        node: Node,
        fresh: list[tuple[int, TensorType]],
        lodged: list[tuple[int, int, TensorType]],
    ) -> tuple[int, ...]:
        """Slots of what a writer writes. fresh, lodged: the arrays that are made right before."""
        memory = self._memory
        outputs = []
        for place, y in enumerate(node.outputs):
            buffer = memory.unread.get((at, place)) or memory.buffers[y]
            if not buffer.fresh and buffer.host is None:
                slot = self._placed(buffer.offset, y.type)
                if buffer.first == at:
                    self._dead.setdefault(buffer.last, []).append(slot)
            elif y in memory.over:
                slot = self._slot[memory.over[y]]
            elif buffer.host is None:
                slot = self._made(buffer, fresh)
            else:
                slot = self._take()
                lodged.append((slot, self._made(buffer.host, fresh), y.type))
            outputs.append(slot)
            if y not in self._given:
                self._slot[y] = slot
        return tuple(outputs)

    def _made(self, buffer: Buffer, fresh: list[tuple[int, TensorType]]) -> int:
        """The slot of a fresh array, which is made now if it has not been for a lodger."""
        slot = self._arrays.get(buffer)
        if slot is None:
            slot = self._arrays[buffer] = self._take()
            fresh.append((slot, self._types[buffer]))
        return slot

    def _placed(self, offset: int, type: TensorType) -> int:
        found = self.places.get((offset, type))
        if found is None:
            found = self.places[offset, type] = Place(self._fix(), offset, type)
        return found.slot

    def _fixed_view(self, node: Node, kernel: Kernel, inputs: tuple[int, ...]) -> None:
        key = (node.op, inputs)
        found = self.views.get(key)
        if found is None:
            outputs = tuple([self._fix() for _ in node.outputs])
            found = self.views[key] = Step(node, kernel, False, inputs, outputs)
        self._name(node, found.outputs)

    def _name(self, node: Node, slots: Sequence[int]) -> None:
        pairs = zip(node.outputs, slots, strict=True)
        self._slot.update([(t, slot) for t, slot in pairs if t not in self._given])

    def _is_unread(self, t: Tensor) -> bool:
        return t in self._given or t not in self._memory.last

    def _read_last(self, at: int, action: Action, outputs: Sequence[int]) -> list[int]:
        """Slots that nobody reads after this action, but for those that it writes."""
        last, arity = self._memory.last, self._arity
        found: list[int] = []
        for value in action.inputs:
            slot = self._slot[value]
            if slot >= arity and last[value] == at and slot not in outputs and slot not in found:
                found.append(slot)
        return found

    def _release(self, slots: list[int]) -> list[int]:
        self._free += slots
        return slots


def _takes_more(action: Action, binding: Binding) -> bool:
    """Whether what runs for a node may need memory beyond that of its results."""
    if action.kind is Kind.CALL:
        return not binding.bodies(action.node)
    return action.kind is Kind.WRITE and not binding.lean(action.node)


def _peak(
    survey: AliasAnalysis, memory: Memory, results: Sequence[Result], binding: Binding
) -> tuple[int, bool]:
    """Bytes outside of arenas at the worst moment, and whether that is all."""
    changes = [0] * (memory.end + 2)
    exact = True
    for buffer in memory.all():
        if buffer.fresh:
            changes[buffer.since] += buffer.size
            changes[buffer.last + 1] -= buffer.size
    for at, action in enumerate(survey.actions):
        if action.kind is not Kind.CALL:
            continue
        made = 0
        for t in action.node.outputs:
            size = nbytes(t.type)
            exact = exact and size is not None
            made += size or 0
            changes[at] += size or 0
            changes[memory.last_in.get(t, at) + 1] -= size or 0
        bodies = binding.bodies(action.node)
        exact = exact and all(body.known and all(p.exact for p in body.plans) for body in bodies)
        inside = [plan.peak - plan.kept for body in bodies for plan in body.plans]
        more = max(0, max(inside, default=0) - made)
        changes[at] += more
        changes[at + 1] -= more
    for t, result in zip(survey.program.outputs, results, strict=True):
        if result.copied:
            size = nbytes(t.type)
            exact = exact and size is not None
            changes[memory.end] += size or 0
    now = peak = 0
    for change in changes:
        now += change
        peak = max(peak, now)
    return peak, exact
