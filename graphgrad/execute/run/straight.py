"""A plan as one Python function with a line for each step: nothing is looked up while it runs.

def run(v0, v1):
 f0(v0, v1, a1)
 v2 = empty(s0, t0); f1(a1, a2, v2)
 v3 = n0(); v4 = array(s1, t1, v3); f1(a1, v2, v4)
 return (v2, v3)

v: slots that change; a: fixed arrays; f: kernels; n: what makes large arrays anew. All but
the v are globals of the function, and every arena has a function with globals of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ...lower.plan import Plan, Step
from ..kernels import ArrayFunction
from ..results import add_note, taken
from .arena import Renewed, fixed_arrays, is_renewed

_FILE = "<graphgrad plan>"
_FIRST = 2  # the line of the first step
SHORT = 4096  # characters; the code of such a text is kept
Note = Callable[[Exception, ArrayFunction], None]


def straight_line(plan: Plan) -> tuple[Callable[[], ArrayFunction], Note]:
    """What makes a run with an arena of its own, and what notes on its error which step it was."""
    space = _Space(plan)
    arguments = [space.name(slot) for slot in range(len(plan.program.inputs))]
    lines = [f"def run({', '.join(arguments)}):", *[space.line(step) for step in plan.steps]]
    lines.append(f" return {space.results()}")
    text = "\n".join(lines)
    code = _known(text) if len(text) <= SHORT else _code(text)
    fixed = [space.name(slot) for slot in range(-plan.fixed, 0)]

    def new() -> ArrayFunction:
        names = dict(space.names)
        names.update(zip(fixed, fixed_arrays(plan), strict=True))
        names.update([(f"n{i}", Renewed(type)) for i, type in enumerate(space.renewed)])
        return FunctionType(code.replace(), names)  # a copy remembers its own globals

    def note(error: Exception, run: ArrayFunction) -> None:
        _note(error, run, plan, space)

    return new, note


def _code(text: str) -> CodeType:
    """Of the one function in a text."""
    module = compile(text, _FILE, "exec")
    return next(c for c in module.co_consts if isinstance(c, CodeType))


_known = lru_cache(maxsize=512)(_code)
"""The same: programs of one shape have one text, whatever their kernels and types are."""


class _Space:
    """The names of a plan's slots, kernels and types.

    names    what the code finds under a name
    renewed  types of the large arrays that steps make, in their order
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: dict[str, Any] = {"empty": np.empty, "array": np.ndarray}
        self.renewed: list[TensorType] = []
        self._known: dict[int, str] = {}

    def name(self, slot: int) -> str:
        """The name of what is in a slot."""
        return f"v{slot}" if slot >= 0 else f"a{-slot}"

    def line(self, step: Step) -> str:
        """A step, with the arrays it needs made before and those nobody needs dropped after."""
        name = self.name
        parts = [f"{name(slot)} = {self._made(type)}" for slot, type in step.fresh]
        for slot, host, type in step.lodged:
            place = f"{self._named('s', type.shape)}, {self._named('t', type.dtype)}, {name(host)}"
            parts.append(f"{name(slot)} = array({place})")
        kernel = self._named("f", step.kernel)
        outputs = [name(slot) for slot in step.outputs]
        args = [name(slot) for slot in step.inputs]
        if step.writes:
            parts.append(f"{kernel}({', '.join(args + outputs)})")
        else:
            parts.append(f"{', '.join(outputs)} = {kernel}({', '.join(args)})")
        if step.frees:
            parts.append(f"{' = '.join([name(slot) for slot in step.frees])} = None")
        return " " + "; ".join(parts)

    def results(self) -> str:
        """The outputs, each the caller's own."""
        items = []
        for r, t in zip(self.plan.results, self.plan.program.outputs, strict=True):
            name = self.name(r.slot)
            if r.made:
                name = f"{self._named('r', taken(t, r.copied))}({name})"
            elif r.copied:
                name = f"{name}.copy()"
            items.append(name + ",")
        return f"({' '.join(items)})"

    def _made(self, type: TensorType) -> str:
        """A new array, or one that nobody holds any more."""
        if is_renewed(type):
            self.renewed.append(type)
            return f"n{len(self.renewed) - 1}()"
        return f"empty({self._named('s', type.shape)}, {self._named('t', type.dtype)})"

    def _named(self, letter: str, thing: Any) -> str:
        """The name of a kernel, shape or dtype, which is the same for the same thing."""
        name = self._known.get(id(thing))
        if name is None:
            name = self._known[id(thing)] = f"{letter}{len(self._known)}"
            self.names[name] = thing
        return name


def _note(error: Exception, run: Any, plan: Plan, space: _Space) -> None:
    """Which step it was: the line of the traceback says so."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not run.__code__:
        trace = trace.tb_next
    if trace is None or not _FIRST <= trace.tb_lineno < _FIRST + len(plan.steps):
        return
    step = plan.steps[trace.tb_lineno - _FIRST]
    here = trace.tb_frame.f_locals | run.__globals__
    add_note(error, step.node, [here[space.name(slot)] for slot in step.inputs])
