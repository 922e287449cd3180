"""The plan of a program, as records: steps in order, and the slot of every value.

Slots hold arrays while a program runs. Those from 0 on change from run to run: first the inputs,
then what steps make. Those below 0 are fixed, counted from the end: constants, and the arrays of an
*arena*, one block of memory in which the places of values are settled by when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..ir.node import Node
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import Array, TensorType
from .loop_ir import Fused, nodes_within

Kernel = Callable[..., Any]
SHOWN = 12  # groups, and nodes of a group, that are listed


class Looping(Protocol):
    """What runs a loop over the plans of its bodies.

    orders: whether it needs what every run reads in row-major order, and copies what is not.
    """

    orders: bool

    def told(self) -> str:
        """How it runs them: "as one compiled function", "run by run from Python: " and why."""
        ...

    def own(self) -> int | None:
        """Bytes that it takes beyond the plan; None where it calls its bodies one by one."""
        ...


class BodyPlans(NamedTuple):
    """A program that a kernel runs: what it is called, and its plans, as far as there are any.

    known: whether these are all. op: what runs it. loop: the same, of a loop.
    """

    name: str
    plans: tuple[Plan, ...]
    known: bool
    op: Op
    loop: Looping | None = None


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
    looks    whether outputs that it does not write may be views of its first input; else they have
             memory of their own
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
    looks: bool = False


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
    planned    bytes that arenas, fresh arrays and what kernels return take at the worst moment
    exact      whether that is all; not so where lengths are unknown
    looks      how many steps make views
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
    planned: int
    exact: bool
    looks: int
    over: int
    inside: tuple[str, ...]
    bodies: tuple[tuple[str, BodyPlans], ...]

    @property
    def peak(self) -> int:
        """Bytes that a run takes at the worst moment, with what loops take beyond the plan."""
        peak, seen = self.planned, set()
        for _, body in self.bodies:
            own = None if body.loop is None else body.loop.own()
            if own is None:
                peak += sum(plan.peak - plan.planned for plan in body.plans)
            elif body.op not in seen:
                seen.add(body.op)
                peak += own
        return peak

    def explain(self, within: bool = False) -> list[str]:
        """Lines about steps, memory and the groups that run as one.

        within: whether it is the body of a loop that runs as one function.
        """
        types = ", ".join(repr(t.type) for t in self.program.inputs)
        copies = sum(r.copied for r in self.results)
        least = "" if self.exact else "at least "
        peak = self.planned if within else self.peak
        rows = [
            f"plan for ({types}): {len(self.steps)} steps, {len(self.constants)} constants",
            f"{len(self.views) + self.looks} views ({len(self.views)} made once), {self.over} "
            f"results written over what they are made from, {copies} outputs copied",
            f"arena {self.arena:,} bytes; peak {least}{peak:,} bytes beyond inputs, variables "
            "and constants"
            + (f", and what {', '.join(self.inside)} need inside" * bool(self.inside)),
        ]
        groups = [s.node for s in self.steps if isinstance(s.node.op, Fused)]
        rows += [f"as one: {_group(node)}" for node in groups[:SHOWN]]
        if len(groups) > SHOWN:
            rows.append(f"and {len(groups) - SHOWN} more groups")
        told: set[Op] = set()
        for name, body in self.bodies:
            loop = None if within else body.loop
            if loop is not None and body.op not in told:
                told.add(body.op)
                rows.append(f"{name} runs {loop.told()}")
            inside = within or (loop is not None and loop.own() is not None)
            if not body.plans:
                rows.append(f"{name}, {body.name}: planned when the lengths are known")
            for plan in body.plans:
                first, *others = plan.explain(inside)
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
