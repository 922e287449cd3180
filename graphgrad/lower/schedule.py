"""Scheduling: every value gets a slot, every node its step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..base.depth import check_room
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import Array, TensorType
from ..ops.control import Scan, While
from .alias import Action, AliasAnalysis, Effect, nbytes
from .binding import Binding
from .memory import Buffer, Buffers, pack
from .plan import Kernel, Place, Plan, Result, Step

SMALL = 1 << 16  # bytes


def schedule(program: Program, binding: Binding) -> Plan:
    """The plan of a program, in its own order of nodes."""
    check_room()  # branches in branches: their kernels are asked for, and so scheduled, in here
    aliases = AliasAnalysis(program, binding)
    memory = Buffers(aliases, binding)
    arena = pack(b for b in memory.all() if not b.fresh and b.host is None)
    slots = _Slots(aliases, memory)
    steps = [step for at, a in enumerate(aliases.actions) if (step := slots.step(at, a))]
    results = slots.results()
    nodes = [a.node for a in aliases.actions]
    first = {n.op: n for n in reversed(nodes)}  # nodes of one op run the same programs
    bodies = [(n.name, body) for n in reversed(first.values()) for body in binding.bodies(n)]
    kept = sum(plan.kept for _, body in bodies for plan in body.plans)
    peak, exact = _peak(aliases, memory, results, binding)
    return Plan(
        program,
        tuple(steps),
        results,
        tuple(slots.constants.values()),
        arena,
        tuple(slots.places.values()),
        tuple(slots.views.values()),
        slots.numbers.changing,
        slots.numbers.fixed,
        arena + kept + peak,
        exact,
        sum(step.looks for step in steps),
        len(memory.over),
        tuple(sorted({a.node.type for a in aliases.actions if _takes_more(a, binding)})),
        tuple(bodies),
    )


class _Numbers:
    """Slots: those from 0 on are given out, and again when they are free; those below 0 stay."""

    def __init__(self, given: int) -> None:
        self.changing, self.fixed = given, 0
        self._free: list[int] = []

    def take(self) -> int:
        """One that is free."""
        if self._free:
            return self._free.pop()
        self.changing += 1
        return self.changing - 1

    def fix(self) -> int:
        """One for good."""
        self.fixed += 1
        return -self.fixed

    def release(self, slots: Sequence[int]) -> None:
        """These are free."""
        self._free += slots


_Made = tuple[list[tuple[int, TensorType]], list[tuple[int, int, TensorType]]]
"""The arrays that are made right before a step: fresh ones, and what lodges in such."""


class _Slots:
    """Gives every value its slot, action by action.

    A writer's outputs get theirs while its inputs are there, those of a call when what it read
    for the last time is gone.
    """

    def __init__(self, aliases: AliasAnalysis, memory: Buffers) -> None:
        self._aliases = aliases
        self._memory = memory
        self._given = frozenset(aliases.program.inputs)
        self._slot: dict[Tensor, int] = {t: i for i, t in enumerate(aliases.program.inputs)}
        self._arity = len(self._slot)
        self.numbers = _Numbers(self._arity)
        self._dead: dict[int, list[int]] = {}
        self._arrays: dict[Buffer, int] = {}  # fresh buffer -> its slot
        self._types: dict[Buffer, TensorType] = {}
        for y, buffer in memory.buffers.items():
            self._types.setdefault(buffer, y.type)
        self.constants: dict[Tensor, tuple[int, Array]] = {}
        self.places: dict[tuple[int, TensorType], Place] = {}
        self.views: dict[object, Step] = {}

    def step(self, at: int, action: Action) -> Step | None:
        """The step of an action; None for a view that is made with the arena."""
        inputs = tuple([self._of(t) for t in action.inputs])
        if action.kind is Effect.FIXED and inputs[0] < 0:
            self._fixed_view(action.node, action.kernel, inputs)
            return None
        if action.kind is Effect.WRITE and not self._is_returned(action):
            return self._write(at, action, inputs)
        return self._call(at, action, inputs)

    def results(self) -> tuple[Result, ...]:
        """Where the outputs are, and which have to be copied."""
        aliases, memory = self._aliases, self._memory
        results = []
        for place, t in enumerate(aliases.program.outputs):
            value = aliases.same.get(t, t)
            root = aliases.root.get(value, value)
            copied = memory.handed.get(root) != place
            made = root not in memory.buffers and root not in self._given
            results.append(Result(self._of(value), copied, made))
        return tuple(results)

    # --- steps -------------------------------------------------------------------------------

    def _write(self, at: int, action: Action, inputs: tuple[int, ...]) -> Step:
        node = action.node
        made: _Made = ([], [])
        outputs = tuple([self._target(at, i, y, made) for i, y in enumerate(node.outputs)])
        self._name(node, outputs)
        gone = self._read_last(at, action)
        if gone:
            gone = [s for s in gone if s not in outputs]
            self.numbers.release(gone)
        dead = tuple(self._dead.pop(at, ()))
        over: tuple[int, ...] = ()
        if not self._memory.over.keys().isdisjoint(node.outputs):
            over = tuple([s for t, s in zip(node.outputs, outputs) if t in self._memory.over])
        arrays = tuple(made[0]), tuple(made[1])
        return Step(node, action.kernel, True, inputs, outputs, *arrays, tuple(gone), dead, over)

    def _call(self, at: int, action: Action, inputs: tuple[int, ...]) -> Step:
        node, numbers = action.node, self.numbers
        gone = self._read_last(at, action)
        numbers.release(gone)
        outputs = tuple([numbers.take() for _ in node.outputs])
        self._name(node, outputs)
        unread = [s for t, s in zip(node.outputs, outputs) if self._is_unread(t)]
        numbers.release(unread)
        frees = (*(s for s in gone if s not in outputs), *unread)
        dead = tuple(self._dead.pop(at, ()))
        looks = action.kind in (Effect.LOOK, Effect.FIXED)
        return Step(
            node, action.kernel, False, inputs, outputs, frees=frees, dead=dead, looks=looks
        )

    def _fixed_view(self, node: Node, kernel: Kernel, inputs: tuple[int, ...]) -> None:
        key = (node.op, inputs, *[t.type for t in node.inputs])
        step = self.views.get(key)
        if step is None:
            outputs = tuple([self.numbers.fix() for _ in node.outputs])
            step = self.views[key] = Step(node, kernel, False, inputs, outputs, looks=True)
        self._name(node, step.outputs)

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

    # --- slots -------------------------------------------------------------------------------

    def _of(self, t: Tensor) -> int:
        slot = self._slot.get(t)
        if slot is None:  # a constant, when it is first read
            slot = self._slot[t] = self.numbers.fix()
            self.constants[t] = slot, self._aliases.constants[t]
        return slot

    def _name(self, node: Node, slots: Sequence[int]) -> None:
        for t, slot in zip(node.outputs, slots, strict=True):
            if t not in self._given:
                self._slot[t] = slot

    def _target(self, at: int, place: int, y: Tensor, made: _Made) -> int:
        """The slot that a writer writes an output to: in the arena, over an input, or new."""
        memory = self._memory
        buffer = memory.unread.get((at, place)) or memory.buffers[y]
        if not buffer.fresh and buffer.host is None:
            slot = self._placed(buffer.offset, y.type)
            if buffer.first == at:
                self._dead.setdefault(buffer.last, []).append(slot)
            return slot
        if y in memory.over:
            return self._slot[memory.over[y]]
        if buffer.host is None:
            return self._array(buffer, made)
        slot = self.numbers.take()
        made[1].append((slot, self._array(buffer.host, made), y.type))
        return slot

    def _array(self, buffer: Buffer, made: _Made) -> int:
        """The slot of a fresh array, which is made now if it has not been for a lodger."""
        slot = self._arrays.get(buffer)
        if slot is None:
            slot = self._arrays[buffer] = self.numbers.take()
            made[0].append((slot, self._types[buffer]))
        return slot

    def _placed(self, offset: int, type: TensorType) -> int:
        cached = self.places.get((offset, type))
        if cached is None:
            place = Place(self.numbers.fix(), offset, type)
            cached = self.places[offset, type] = place
        return cached.slot

    # --- liveness ----------------------------------------------------------------------------

    def _is_unread(self, t: Tensor) -> bool:
        return t in self._given or t not in self._memory.last

    def _read_last(self, at: int, action: Action) -> list[int]:
        """Slots that nobody reads after this action."""
        last, arity = self._memory.last, self._arity
        slots: list[int] = []
        for t in action.inputs:
            slot = self._slot[t]
            if slot >= arity and last[t] == at and slot not in slots:
                slots.append(slot)
        return slots


def _takes_more(action: Action, binding: Binding) -> bool:
    """Whether what runs for a node may need memory beyond that of its results."""
    if action.kind is Effect.CALL:
        return not binding.bodies(action.node)
    return action.kind is Effect.WRITE and not binding.lean(action.node)


def _peak(
    aliases: AliasAnalysis, memory: Buffers, results: Sequence[Result], binding: Binding
) -> tuple[int, bool]:
    """Bytes outside of arenas at the worst moment, and whether that is all."""
    use = _Use(memory.end)
    for buffer in memory.all():
        if buffer.fresh:
            use.lives(buffer.size, buffer.since, buffer.last)
    for at, action in enumerate(aliases.actions):
        made = 0
        if action.kind is Effect.CALL:
            for t in action.node.outputs:
                made += use.lives(nbytes(t.type), at, memory.last_in.get(t, at))
        if action.node.op.bodies:
            bodies = binding.bodies(action.node)
            plans = [plan for body in bodies for plan in body.plans]
            use.lives(_inside(action, plans, made), at, at)
            if any(body.loop is not None and body.loop.orders for body in bodies):
                use.lives(_turned(aliases, action), at, at)
            use.exact &= all(body.known for body in bodies) and all(p.exact for p in plans)
    for t, result in zip(aliases.program.outputs, results, strict=True):
        if result.copied:
            use.lives(nbytes(t.type), memory.end, memory.end)
    return max(0, max(accumulate(use.changes))), use.exact


def _inside(action: Action, plans: Sequence[Plan], made: int) -> int:
    """Bytes that control flow takes beside what it makes, while a program of these runs."""
    op = action.node.op
    if isinstance(op, Scan | While):
        return of_one_run(op, plans, action.kind is Effect.WRITE)
    return max(0, max((plan.planned - plan.kept for plan in plans), default=0) - made)


def _turned(aliases: AliasAnalysis, action: Action) -> int:
    """Bytes of what a loop reads in every run and is not in row-major order."""
    op: Any = action.node.op
    stacks = op.slices if isinstance(op, Scan) else 0
    size = 0
    for at, t in enumerate(action.inputs[op.carries :]):
        if t.type.static:
            array = aliases.likely(t)
            one = array[:1] if at < stacks else array  # rows may lie anywhere
            size += 0 if one.flags.c_contiguous else nbytes(t.type) or 0
    return size


def of_one_run(op: Scan | While, plans: Sequence[Plan], there: bool) -> int:
    """Bytes that a loop takes beside what it makes and keeps.

    What the run before left is there as well; its carries are among what the loop makes in the end.

    there: whether that has its places before the first run, so that the carries lie beside them.
    """
    inside = max((plan.planned - plan.kept for plan in plans), default=0)
    left = plans[-1].program.outputs if plans else ()
    return inside + sum(nbytes(t.type) or 0 for t in left[0 if there else op.carries :])


class _Use:
    """Bytes that are in use from action to action.

    changes  what each adds to them
    exact    whether all sizes are known
    """

    def __init__(self, end: int) -> None:
        self.changes = [0] * (end + 2)
        self.exact = True

    def lives(self, size: int | None, since: int, last: int) -> int:
        """Something is there from one action to another; its size, 0 where that is not known."""
        self.exact &= size is not None
        self.changes[since] += size or 0
        self.changes[last + 1] -= size or 0
        return size or 0
