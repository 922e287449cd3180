"""A plan as one Python function with a line for each step: nothing is looked up while it runs.

def run(v0, v1):
 (v5, u2), shown = next_values(); f0(v0, v1, a1)
 v2 = empty(s0, t0); f1(a1, a2, v2)
 v3 = n0(); v4 = array(s1, t1, v3); f1(a1, v2, v4)
 v2 = u2; f2(v0, k0, v2); f3(v1, v5)
 return (v4, sealed(v3), *shown)

v: slots that change; u: places for what will be in slots that are taken twice; a: fixed arrays;
f: kernels; k: what they get beside arrays; n: what makes large arrays anew; shown: next values of
variables, read-only. The f, k, a and n are globals of the function, and every arena has a function
with globals of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from ...ir.node import Tensor
from ...ir.types import TensorType
from ...lower.plan import Plan, Result, Step
from ..kernels import ArrayFunction, PartialKernel, TupleKernel
from ..results import add_note, sealed, taken
from .arena import NextValues, Renewed, fixed_arrays, is_gathered, is_renewed

_FILE = "<graphgrad plan>"
_FIRST = 2  # the line of the first step
SHORT = 4096  # characters; the code of such a text is kept
Note = Callable[[Exception, ArrayFunction], None]


def straight_line(plan: Plan, written: int = 0) -> tuple[Callable[[], ArrayFunction], Note]:
    """What makes a run with an arena of its own, and what notes on its error which step it was.

    written: how many outputs, the last ones, are next values of variables: they are read-only.
    """
    space = _Space(plan, written)
    arguments = [space.name(slot) for slot in range(len(plan.program.inputs))]
    lines = [space.line(at, step) for at, step in enumerate(plan.steps)]
    if space.gathered:
        lines[0] = f" {space.next_values()};{lines[0]}"
    lines = [f"def run({', '.join(arguments)}):", *lines, f" return {space.results()}"]
    text = "\n".join(lines)
    code = _known(text) if len(text) <= SHORT else _code(text)
    fixed = [space.name(slot) for slot in range(-plan.fixed, 0)]

    def new() -> ArrayFunction:
        names = dict(space.names)
        names.update(zip(fixed, fixed_arrays(plan), strict=True))
        names.update([(f"n{i}", Renewed(type)) for i, type in enumerate(space.renewed)])
        if space.gathered:
            names["next_values"] = NextValues([new.type for new in space.gathered.values()])
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

    names     what the code finds under a name
    renewed   types of the large arrays that steps make, in their order
    gathered  slot -> the next value of a variable that has its place in one block with others
    """

    def __init__(self, plan: Plan, written: int) -> None:
        self.plan = plan
        self.names: dict[str, Any] = {"empty": np.empty, "array": np.ndarray, "sealed": sealed}
        self.renewed: list[TensorType] = []
        self.kept = len(plan.results) - written
        self.gathered = _gathered(plan, self.kept)
        self._known: dict[int, str] = {}

    def name(self, slot: int) -> str:
        """The name of what is in a slot."""
        return f"v{slot}" if slot >= 0 else f"a{-slot}"

    def line(self, at: int, step: Step) -> str:
        """A step, with the arrays it needs made before and those nobody needs dropped after."""
        name = self.name
        made = [(name(slot), self._made(at, slot, type)) for slot, type in step.fresh]
        parts = [f"{slot} = {new}" for slot, new in made if slot != new]
        for slot, host, type in step.lodged:
            place = f"{self._named('s', type.shape)}, {self._named('t', type.dtype)}, {name(host)}"
            parts.append(f"{name(slot)} = array({place})")
        fn: Any = step.kernel
        own: list[str] = []
        together = isinstance(fn, TupleKernel)
        if together:
            fn = fn.fn
        if isinstance(fn, PartialKernel):
            own = [self._named("k", one) for one in fn.own]
            fn = fn.fn
        kernel = self._named("f", fn)
        outputs = [name(slot) for slot in step.outputs]
        args = [name(slot) for slot in step.inputs]
        if step.writes:
            args = [f"({' '.join([f'{arg},' for arg in args])})"] if together else args + own
            parts.append(f"{kernel}({', '.join(args + outputs)})")
        elif self._is_placed(at, step.outputs[0]):  # one of the arguments may be in its slot
            place = self._place(step.outputs[0])
            parts.append(f"{kernel}({', '.join([*args, place])})")
            parts += [f"{outputs[0]} = {place}"] * (outputs[0] != place)
        else:
            parts.append(f"{', '.join(outputs)} = {kernel}({', '.join(args)})")
        if step.frees:
            parts.append(f"{' = '.join([name(slot) for slot in step.frees])} = None")
        return " " + "; ".join(parts)

    def results(self) -> str:
        """The outputs, each the caller's own, or the state's."""
        results, wanted = self.plan.results, self.plan.program.outputs
        items = [self._result(r, t) for r, t in zip(results, wanted, strict=True)]
        if [r.slot for r in results[self.kept :]] == [*self.gathered]:
            items[self.kept :] = ["*shown"] if self.gathered else []
        else:
            places = {slot: i for i, slot in enumerate(self.gathered)}
            for i, r in enumerate(results[self.kept :], self.kept):
                placed = r.slot in places and not r.copied
                items[i] = f"shown[{places[r.slot]}]" if placed else f"sealed({items[i]})"
        return f"({' '.join([f'{item},' for item in items])})"

    def _result(self, result: Result, t: Tensor) -> str:
        name = self.name(result.slot)
        if result.made:
            return f"{self._named('r', taken(t, result.copied))}({name})"
        return f"{name}.copy()" if result.copied else name

    def next_values(self) -> str:
        """What gives the next values of variables their places."""
        written = " ".join([f"{self._place(slot)}," for slot in self.gathered])
        return f"({written}), shown = next_values()"

    def _place(self, slot: int) -> str:
        """The name of the place of the next value of a variable."""
        return self.name(slot) if self.gathered[slot].alone else f"u{slot}"

    def _is_placed(self, at: int, slot: int) -> bool:
        """Whether what a step makes in a slot is the next value of a variable, with a place."""
        return slot in self.gathered and self.gathered[slot].at == at

    def _made(self, at: int, slot: int, type: TensorType) -> str:
        """A new array, or one that nobody holds any more."""
        if self._is_placed(at, slot):
            return self._place(slot)
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


class _New(NamedTuple):
    """What a step makes in a slot: the step, the type, and whether nothing else is ever there."""

    at: int
    type: TensorType
    alone: bool


def _gathered(plan: Plan, kept: int) -> dict[int, _New]:
    """Next values of variables that are small and new in every run, by slot.

    kept: how many outputs are not of variables. What is in a slot was made by the last step that
    made anything in it.
    """
    made: dict[int, _New | None] = {}
    for at, step in enumerate(plan.steps):
        new = [*step.fresh]
        if not step.writes and isinstance(step.kernel, np.ufunc) and len(step.outputs) == 1:
            new.append((step.outputs[0], step.node.outputs[0].type))
        elif not step.writes:
            made.update(dict.fromkeys(step.outputs))
        made.update(dict.fromkeys([slot for slot, _, _ in step.lodged]))
        made.update({slot: _New(at, type, slot not in made) for slot, type in new})
    slots = [r.slot for r in plan.results[kept:] if not r.copied and not r.made]
    found = [(slot, made.get(slot)) for slot in slots]
    return {slot: new for slot, new in found if new is not None and is_gathered(new.type)}


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
