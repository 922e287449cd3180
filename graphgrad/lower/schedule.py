"""Scheduling: every value gets a slot, every node its step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any

import numpy as np

from ..base.depth import check_room
from ..ir.program import Program
from ..ir.types import Array, TensorType
from ..ops.control import Scan, While
from .alias import Action, AliasAnalysis, Effect, Fields, nbytes
from .binding import Binding
from .memory import Buffer, Buffers, pack
from .plan import Place, Plan, Result, Step

SMALL = 1 << 16  # bytes
NONE = 1 << 62  # a slot that is not yet given: above all others
_LOOKS = attrgetter("looks")


def schedule(program: Program, binding: Binding) -> Plan:
    """The plan of a program, in its own order of nodes."""
    check_room()  # branches in branches: their kernels are asked for, and so scheduled, in here
    aliases = AliasAnalysis(program, binding)
    memory = Buffers(aliases)
    arena = pack(b for b in memory.all if not b.fresh and b.host is None)
    slots = _Slots(aliases, memory)
    steps = slots.steps()
    results = slots.results()
    others = aliases.others.values()
    first = {a.node.op: a.node for a in reversed(others)}  # nodes of one op run the same programs
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
        sum(map(_LOOKS, steps)),
        len(memory.over) - memory.over.count(-1),
        tuple(sorted({a.node.type for a in others if _takes_more(a, binding)})),
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


_Before = tuple[tuple[tuple[int, TensorType], ...], tuple[tuple[int, int, TensorType], ...]]
"""What is made before a step: fresh arrays, and parts of such."""


class _Slots:
    """Gives every value its slot, action by action.

    A writer's outputs get theirs while its inputs are there, those of a call when what it read
    for the last time is gone.
    """

    def __init__(self, aliases: AliasAnalysis, memory: Buffers) -> None:
        self._aliases = aliases
        self._memory = memory
        self._types = aliases.types
        self._arity = len(aliases.program.inputs)
        self._slot = [NONE] * len(aliases.types)
        self._slot[: self._arity] = range(self._arity)
        self.numbers = _Numbers(self._arity)
        self._dead: dict[int, list[int]] = {}
        self._arrays: dict[Buffer, int] = {}  # fresh buffer -> its slot
        self._fresh: list[tuple[int, TensorType]] = []  # what is made before the next step
        self._lodged: list[tuple[int, int, TensorType]] = []
        self.constants: dict[int, tuple[int, Array]] = {}
        self.places: dict[tuple[int, TensorType], Place] = {}
        self.views: dict[object, Step] = {}

    def steps(self) -> list[Step]:
        """The steps of the actions; views that are made with the arena have none."""
        slot, memory, arity, dying = self._slot, self._memory, self._arity, self._dead
        buffers, over, unread = memory.buffers, memory.over, memory.unread
        fresh, lodged = self._fresh, self._lodged
        slot_of, write, new = slot.__getitem__, Effect.WRITE, tuple.__new__
        steps: list[Step] = []
        for at, action in enumerate(self._aliases.actions):
            node, kind, kernel, values, made, _ = action
            if len(values) == 2:  # a map takes longer
                a, b = slot[values[0]], slot[values[1]]
                inputs: tuple[int, ...] = a, b
                most = a if a > b else b
            else:
                inputs = tuple(map(slot_of, values))
                most = max(inputs, default=0)
            if most == NONE:
                inputs = tuple(map(self._of, values))
                most = max(inputs)
            if kind is not write or (made[0] in unread and self._is_returned(action)):
                if kind is Effect.FIXED and inputs[0] < 0:
                    self._fixed_view(Action(*action), inputs)
                else:
                    steps.append(self._call(at, Action(*action), inputs))
                continue
            outputs: tuple[int, ...] = ()
            written = gone = dead = outputs
            before: _Before = (), ()
            for value in made:
                below = over[value]
                if below >= 0:  # one at most
                    same = buffers[below] is buffers[value]  # of one type, and no view
                    target = slot[below] if same else self._target(at, value)
                    written = (target,)
                else:
                    target = self._target(at, value)
                slot[value] = target
                outputs = (*outputs, target) if outputs else (target,)
            if fresh or lodged:
                before = tuple(fresh), tuple(lodged)
                fresh.clear()
                lodged.clear()
            if most >= arity:
                gone = tuple([s for s in self._read_last(at, values, inputs) if s not in outputs])
                self.numbers.release(gone)
            if at in dying:
                dead = tuple(dying.pop(at))
            row = (node, kernel, True, inputs, outputs, *before, gone, dead, written, False)
            steps.append(new(Step, row))
        return steps

    def results(self) -> tuple[Result, ...]:
        """Where the outputs are, and which have to be copied."""
        aliases, memory = self._aliases, self._memory
        results = []
        for place, value in enumerate(memory.outputs):
            root = aliases.root.get(value, value)
            copied = memory.handed.get(root) != place
            made = root >= self._arity and memory.buffers[root] is None
            results.append(Result(self._of(value), copied, made))
        return tuple(results)

    # --- steps -------------------------------------------------------------------------------

    def _call(self, at: int, action: Action, inputs: tuple[int, ...]) -> Step:
        node, numbers, last = action.node, self.numbers, self._memory.last
        gone = self._read_last(at, action.inputs, inputs)
        numbers.release(gone)
        outputs = tuple([numbers.take() for _ in node.outputs])
        self._name(action, outputs)
        unread = [s for value, s in zip(action.made, outputs, strict=True) if last[value] < 0]
        numbers.release(unread)
        frees = (*(s for s in gone if s not in outputs), *unread)
        dead = tuple(self._dead.pop(at, ()))
        looks = action.kind in (Effect.LOOK, Effect.FIXED)
        return Step(
            node, action.kernel, False, inputs, outputs, frees=frees, dead=dead, looks=looks
        )

    def _fixed_view(self, action: Action, inputs: tuple[int, ...]) -> None:
        node = action.node
        key = (node.op, inputs, *[t.type for t in node.inputs])
        step = self.views.get(key)
        if step is None:
            outputs = tuple([self.numbers.fix() for _ in node.outputs])
            step = self.views[key] = Step(node, action.kernel, False, inputs, outputs, looks=True)
        self._name(action, step.outputs)

    def _is_returned(self, action: Fields) -> bool:
        """Whether it costs less to let a ufunc make what nothing reads: a small one."""
        _, _, kernel, _, (value, *_), _ = action
        return (
            isinstance(kernel, np.ufunc)
            and self._memory.over[value] < 0
            and self._types[value].shape != ()  # of these it makes numbers
            and (nbytes(self._types[value]) or 0) < SMALL
        )

    # --- slots -------------------------------------------------------------------------------

    def _of(self, value: int) -> int:
        slot = self._slot[value]
        if slot == NONE:  # a constant, when it is first read
            slot = self._slot[value] = self.numbers.fix()
            self.constants[value] = slot, self._aliases.constants[value]
        return slot

    def _name(self, action: Action, slots: Sequence[int]) -> None:
        for value, slot in zip(action.made, slots, strict=True):
            self._slot[value] = slot

    def _target(self, at: int, value: int) -> int:
        """The slot that a writer writes a value to: over an input, in the arena, or new."""
        buffer, over = self._memory.buffers[value], self._memory.over[value]
        assert buffer is not None
        if not buffer.fresh and buffer.host is None:
            where = buffer.offset, self._types[value]
            place = self.places.get(where)
            if place is None:
                place = self.places[where] = Place(self.numbers.fix(), *where)
            slot = place.slot
            if buffer.first == at:
                self._dead.setdefault(buffer.last, []).append(slot)
            return slot
        if over >= 0:
            return self._slot[over]
        if buffer.host is None:
            return self._array(buffer)
        slot = self.numbers.take()
        self._lodged.append((slot, self._array(buffer.host), self._types[value]))
        return slot

    def _array(self, buffer: Buffer) -> int:
        """The slot of a fresh array, which is made now if it has not been for a lodger."""
        slot = self._arrays.get(buffer)
        if slot is None:
            slot = self._arrays[buffer] = self.numbers.take()
            self._fresh.append((slot, self._memory.fresh[buffer]))
        return slot

    # --- liveness ----------------------------------------------------------------------------

    def _read_last(self, at: int, values: Sequence[int], inputs: Sequence[int]) -> list[int]:
        """Slots that nobody reads after this action."""
        last, arity = self._memory.last, self._arity
        slots: dict[int, None] = {}
        for value, slot in zip(values, inputs, strict=True):
            if slot >= arity and last[value] == at:
                slots[slot] = None
        return list(slots)


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
    for buffer in memory.all:
        if buffer.fresh:
            use.lives(buffer.size, buffer.since, buffer.last)
    for at, action in aliases.others.items():
        made = 0
        if action.kind is Effect.CALL:
            for value, t in zip(action.made, action.node.outputs, strict=True):
                made += use.lives(nbytes(t.type), at, max(memory.last_in[value], at))
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
    for at, value in enumerate(action.inputs[op.carries :]):
        t = aliases.types[value]
        if t.static:
            array = aliases.likely(value)
            one = array[:1] if at < stacks else array  # rows may lie anywhere
            size += 0 if one.flags.c_contiguous else nbytes(t) or 0
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
