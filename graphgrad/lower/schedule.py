"""The plan of a program: slots, steps, and what is dropped after each.

Slots hold arrays while a program runs: first the inputs, then the constants, then temporaries,
whose slots are used again. A value is dropped right after its last use. What a backend may do with
the buffer behind a value depends on who else can see it, which `view` ops and Assign say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import TensorType, size_of
from ..ops.base import Constant
from ..ops.sources import Assign

NEVER = -1
SMALL = 1 << 15  # bytes; below this, writing into an old buffer saves nothing


class Step(NamedTuple):
    """One call of a kernel.

    node     what is computed
    inputs   slots read
    outputs  slots written; a slot that is read for the last time here may be among them
    frees    slots whose value is dropped after the step
    into     the slot of `inputs` whose buffer the result may be written into, or NEVER
    """

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    frees: tuple[int, ...]
    into: int


class Plan(NamedTuple):
    """How a program runs.

    program    what is run; its inputs are in the first slots
    constants  (slot, node) of the constants, which are there before the run
    steps      in order
    outputs    slots of the outputs
    slots      how many slots there are
    """

    program: Program
    constants: tuple[tuple[int, Node], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    slots: int


def _nothing(node: Node) -> bool:
    return False


def schedule(
    program: Program,
    writes: Callable[[Node], object] = _nothing,
    keeps: Callable[[Node], object] = _nothing,
) -> Plan:
    """The plan of a program, in its own order of nodes.

    writes: nodes that can write their result into a buffer they are given, element by element.
    keeps: other nodes that surely return new memory. Only what `writes` made, and only what nodes
    of these two kinds read, is ever written over, so an undeclared view does no harm.
    """
    last = last_uses(program)
    reusable = _written_over(program, last, writes, keeps)
    slot_of: dict[Tensor, int] = {t: i for i, t in enumerate(program.inputs)}
    arity = len(slot_of)
    constants = [n for n in program.nodes if type(n.op) is Constant]
    slot_of.update((n.outputs[0], arity + i) for i, n in enumerate(constants))
    slots = _Slots(arity + len(constants))
    steps: list[Step] = []
    for at, node in enumerate(program.nodes):
        if type(node.op) is Constant:
            continue
        inputs = tuple([slot_of[t] for t in node.inputs])
        gone = [s for t, s in zip(node.inputs, inputs, strict=True) if last[t] == at]
        frees = slots.release(gone)
        outputs = tuple([slots.take() for _ in node.outputs])
        unread = []
        for t, slot in zip(node.outputs, outputs, strict=True):
            if slot_of.setdefault(t, slot) != slot or last[t] == NEVER:
                unread.append(slot)  # nobody reads it, or it is an input of the program
        if frees or unread:
            frees = [*(s for s in frees if s not in outputs), *slots.release(unread)]
        target = reusable.get(node)
        into = NEVER if target is None else slot_of_input(node, target, inputs)
        steps.append(Step(node, inputs, outputs, tuple(frees), into))
    return Plan(
        program,
        tuple([(slot_of[n.outputs[0]], n) for n in constants]),
        tuple(steps),
        tuple([slot_of[t] for t in program.outputs]),
        slots.count,
    )


class _Slots:
    """Slots for temporaries: the one given back last is taken first."""

    def __init__(self, fixed: int) -> None:
        self.count = self.fixed = fixed
        self._free: list[int] = []

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self.count += 1
        return self.count - 1

    def release(self, slots: list[int]) -> list[int]:
        """Give slots back, each once; those of inputs and constants stay. What was given back."""
        if not slots:
            return slots
        if len(slots) > 1:
            slots = list(dict.fromkeys(slots))
        temporaries = [s for s in slots if s >= self.fixed]
        self._free += temporaries
        return temporaries


def slot_of_input(node: Node, target: Tensor, inputs: tuple[int, ...]) -> int:
    """The slot that holds an input of a node."""
    return next(s for t, s in zip(node.inputs, inputs, strict=True) if t is target)


def last_uses(program: Program) -> dict[Tensor, int]:
    """Tensor -> place of the last node that reads it; past the end for outputs, NEVER if unread."""
    last: dict[Tensor, int] = dict.fromkeys(program.inputs, NEVER)
    for at, node in enumerate(program.nodes):
        for t in node.inputs:
            last[t] = at
        for t in node.outputs:
            last.setdefault(t, NEVER)
    for t in program.outputs:
        last[t] = len(program.nodes)
    return last


def viewed(node: Node) -> Tensor | None:
    """The input whose memory the outputs of a node may share."""
    if type(node.op) is Assign:
        return node.inputs[1]
    return node.inputs[0] if node.op.view and node.inputs else None


def nbytes(type: TensorType) -> int | None:
    """Bytes of a value, None where a length is unknown."""
    size = size_of(type.shape)
    return None if size is None else size * type.dtype.itemsize


def _written_over(
    program: Program,
    last: dict[Tensor, int],
    writes: Callable[[Node], object],
    keeps: Callable[[Node], object],
) -> dict[Node, Tensor]:
    """Node -> the input that its result may be written into."""
    shown: set[Tensor] = set()
    made: set[Tensor] = set()
    for node in program.nodes:
        if writes(node):
            made.add(node.outputs[0])
        elif not keeps(node):
            shown.update(node.inputs)
    made.difference_update(shown, program.inputs, program.outputs)
    found: dict[Node, Tensor] = {}
    for at, node in enumerate(program.nodes):
        if not writes(node):
            continue
        (y,) = node.outputs
        if (nbytes(y.type) or 0) < SMALL:
            continue
        for t in node.inputs:
            if t in made and last[t] == at and t.type is y.type:
                found[node] = t
                break
    return found


class _Buffer:
    __slots__ = ("holders", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders = 0


def peak_bytes(plan: Plan) -> tuple[int, bool]:
    """Bytes that temporaries and outputs hold at the worst moment, and whether that is all.

    Values whose lengths are not known count as nothing; then the second is False. A view holds the
    buffer that it looks into, and so does a result that is written over it.
    """
    now = peak = 0
    exact = True
    held: dict[int, _Buffer] = {}
    for step in plan.steps:
        shared = step.into if step.into != NEVER else _viewed_slot(step)
        made = []
        for t in step.node.outputs:
            size = nbytes(t.type) if shared == NEVER else 0
            exact = exact and size is not None
            made.append(held.get(shared) or _Buffer(size or 0))
            made[-1].holders += 1
            now += size or 0
        peak = max(peak, now)
        gone = [held.pop(s) for s in (*step.frees, *step.outputs) if s in held]
        held.update(zip(step.outputs, made, strict=True))
        gone += [held.pop(s) for s in step.frees if s in held]
        for buffer in gone:
            buffer.holders -= 1
            now -= 0 if buffer.holders else buffer.size
    return peak, exact


def _viewed_slot(step: Step) -> int:
    source = viewed(step.node)
    return NEVER if source is None else slot_of_input(step.node, source, step.inputs)
