"""A plan as a loop over its steps: nothing is compiled before the first run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ...ir.types import Array, TensorType
from ...lower.plan import Plan, Step
from ..kernels import ArrayFunction
from ..results import add_note, taken
from .arena import Renewed, fixed_arrays, is_renewed, part_of


def looped(plan: Plan) -> ArrayFunction:
    """The loop, with an arena of its own. One run at a time."""
    blank: list[Any] = [None] * plan.changing
    values = [*blank, *fixed_arrays(plan)]
    arity, changing = len(plan.program.inputs), plan.changing
    rows = [_row(step) for step in plan.steps]
    results = [
        (r.slot, taken(t, r.copied) if r.made else np.ndarray.copy if r.copied else None)
        for r, t in zip(plan.results, plan.program.outputs, strict=True)
    ]

    def run(*arrays: Array) -> tuple[Array, ...]:
        values[:arity] = arrays
        try:
            for kernel, reads, before, output, rest, node in rows:
                if before is not None:
                    for slot, new in before[0]:
                        values[slot] = new()
                    for slot, host, type in before[1]:
                        values[slot] = part_of(values[host], type)
                args = reads(values)
                try:
                    made = kernel(*args)
                except Exception as error:
                    add_note(error, node, args)
                    raise
                if output is not None:
                    values[output] = made
                if rest is not None:
                    outputs, frees = rest
                    for slot, one in zip(outputs, made if outputs else (), strict=True):
                        values[slot] = one
                    for slot in frees:
                        values[slot] = None
            return tuple([values[s] if own is None else own(values[s]) for s, own in results])
        finally:
            values[:changing] = blank

    return run


def _row(step: Step) -> tuple[Any, ...]:
    """What is called, what it reads, what is made before; where its one output goes; the rest."""
    fresh = [(slot, _maker(type)) for slot, type in step.fresh]
    before = (fresh, step.lodged) if fresh or step.lodged else None
    reads = (*step.inputs, *step.outputs) if step.writes else step.inputs
    outputs = () if step.writes else step.outputs
    one = outputs[0] if len(outputs) == 1 else None
    several = outputs if one is None else ()
    rest = (several, step.frees) if several or step.frees else None
    return step.kernel, _getter(reads), before, one, rest, step.node


def _getter(slots: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes values out of their slots."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda values: [values[slot] for slot in slots]


def _maker(type: TensorType) -> Callable[[], Array]:
    shape: Any = type.shape
    return Renewed(type) if is_renewed(type) else partial(np.empty, shape, type.dtype)
