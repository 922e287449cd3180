"""The steps of a group as one Python function with a line for each, and a place for every value.

def body(a0, a1, o0, s0):
    f0(a0, a1, s0)
    f1(s0, k0, o0)

a: inputs, o: outputs, s: scratch, k: numbers. Functions write into their last argument.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...ir.types import DType
from ...lower.calls import CHOOSE, Operand
from .elements import Elements, ReductionStep, UfuncStep
from .scratch import Place

MANY = 2048  # elements; below this a choice is NumPy's `where`, which makes an array
_FILE = "<graphgrad group>"


# --- functions that write into their last argument ------------------------------------------


def fill(x: Any, out: Any) -> None:
    """out = x, cast and broadcast."""
    out[...] = x


def where(condition: Any, x: Any, y: Any, out: Any) -> None:
    """out = x where the condition holds, else y."""
    out[...] = np.where(condition, x, y)


def blend(condition: Any, x: Any, y: Any, mask: Any, out: Any) -> None:
    """`where` by bits: out = y ^ ((x ^ y) & mask), where the mask is all ones or all zeros.

    mask: integers of the size of out's elements, to write in. out may be x. Four times as fast as
    np.where on 32,768 numbers of 4 bytes, twice on so many of 8.
    """
    mask[...] = condition
    np.negative(mask, mask)
    bits = mask.dtype
    y = y.view(bits)
    made = out.view(bits)
    np.bitwise_xor(x.view(bits), y, made)
    np.bitwise_and(made, mask, made)
    np.bitwise_xor(made, y, made)


def keep(condition: Any, x: Any, mask: Any, out: Any) -> None:
    """out = x where the condition holds, else 0."""
    mask[...] = condition
    np.negative(mask, mask)
    np.bitwise_and(x.view(mask.dtype), mask, out.view(mask.dtype))


def writing(ufunc: np.ufunc) -> Callable[..., Any]:
    """A ufunc as a function whose last argument may be the array to write into."""
    return _WRITING.get(ufunc, ufunc)


def _maximum(x: Any, y: Any, out: Any = None) -> Any:
    return np.maximum(x, y, out=out)


def _minimum(x: Any, y: Any, out: Any = None) -> Any:
    return np.minimum(x, y, out=out)


# By position NumPy 2.4 takes a third argument of these two for one more operand, and warns.
_WRITING: dict[np.ufunc, Callable[..., Any]] = {np.maximum: _maximum, np.minimum: _minimum}


# --- lines -----------------------------------------------------------------------------------


class Line(NamedTuple):
    """fn(*args, target), or target = fn(*args) where it is new."""

    fn: Callable[..., Any]
    args: tuple[str, ...]
    target: str
    new: bool = False


class ArrayFunction(NamedTuple):
    """A function of arrays, by position: the parameters it was written for, then scratch.

    overwrites: (output, input) places that may be one buffer.
    """

    run: Callable[..., object]
    scratch: tuple[Place, ...]
    overwrites: tuple[tuple[int, int], ...]


class Writer:
    """Gives every value that some steps make a place, and writes a line for each.

    names    what is there before, by value: inputs, and what else is given
    reduces  for each output that is reduced, the function that does it
    own      scratch is made by the lines themselves, or is an output that is not yet written;
             otherwise it is asked for
    """

    def __init__(
        self,
        elements: Elements,
        steps: Sequence[UfuncStep],
        names: Mapping[int, str],
        reduces: Mapping[int, Callable[..., object]],
        place: Callable[[int], Place],
        own: bool,
    ) -> None:
        self.steps, self.reduces, self.place, self.own = steps, reduces, place, own
        self.names = dict(names)
        self.elements = elements
        self.space: dict[str, Any] = {}
        self.lines: list[Line] = []
        self.scratch: list[Place] = []
        self.last = {o: i for i, s in enumerate(steps) for o in s.operands if isinstance(o, int)}
        self.home = {v: k for k, v in enumerate(elements.outputs) if v is not None}
        self.filled = {self.home[s.makes]: i for i, s in enumerate(steps) if s.makes in self.home}
        self.touched: dict[int, int] = {}  # output -> the first step that writes there
        self.free: dict[Place, list[str]] = {}
        self.idle: dict[Place, list[tuple[int, int]]] = {}  # (step that fills it, output)
        if own:
            for v, k in self.home.items():
                insort(self.idle.setdefault(place(v), []), (self.filled[k], k))

    def write(self, parameters: Sequence[str]) -> ArrayFunction:
        """The body with these parameters, of what `names` calls them and "o0", "o1", ..."""
        for i, step in enumerate(self.steps):
            if isinstance(step.fn, ReductionStep):
                at = step.fn.output
                self._line(self.reduces[at], step.operands, f"o{at}")
            else:
                self._make(i, step)
            self._release(i, step)
        names = [*parameters, *[f"s{n}" for n in range(0 if self.own else len(self.scratch))]]
        run = _compiled(self.lines, names, self.space)
        return ArrayFunction(run, () if self.own else tuple(self.scratch), self._overwrites())

    def _line(self, fn: Any, operands: Sequence[Operand], target: str, new: bool = False) -> None:
        self.lines.append(Line(fn, tuple([self._name(o) for o in operands]), target, new))

    def _name(self, operand: Operand) -> str:
        if isinstance(operand, int):
            return self.names[operand]
        name = f"k{len(self.space)}"
        self.space[name] = operand
        return name

    # --- places ------------------------------------------------------------------------------

    def _make(self, i: int, step: UfuncStep) -> None:
        """The line of a step that makes a value."""
        v = step.makes
        assert v is not None
        place = self.place(v)
        fn, operands = step.fn, step.operands
        mask = None
        if fn is CHOOSE and math.prod(place[1]) >= MANY and place[0].itemsize in (1, 2, 4, 8):
            mask = self._mask(operands[0], place[0])
        target, new = self._target(i, v, place, step)
        self.names[v] = target
        if mask is not None:
            zero = isinstance(operands[2], np.ndarray) and not any(operands[2].tobytes())
            args = [self._name(o) for o in (operands[:2] if zero else operands)]
            self._empty(target, place, new)
            self.lines.append(Line(keep if zero else blend, (*args, mask[0]), target))
            self.free.setdefault(mask[1], []).append(mask[0])
        elif isinstance(fn, np.ufunc):
            self._line(writing(fn), operands, target, new)
        else:
            self._empty(target, place, new)
            self._line(where if fn is CHOOSE else fill, operands, target)

    def _empty(self, name: str, place: Place, new: bool) -> None:
        if new:
            self.lines.append(Line(partial(np.empty, place[1], place[0]), (), name, True))

    def _mask(self, condition: Operand, dtype: DType) -> tuple[str, Place]:
        """Integers for the mask of a choice."""
        shape = self.place(condition)[1] if isinstance(condition, int) else ()
        place = np.dtype(f"i{dtype.itemsize}"), shape
        name, new = self._scratch(place)
        self._empty(name, place, new)
        return name, place

    def _target(self, i: int, v: int, place: Place, step: UfuncStep) -> tuple[str, bool]:
        """Where a value goes, and whether that is yet to be made."""
        if v in self.home:
            k = self.home[v]
            self.touched.setdefault(k, i)
            return f"o{k}", False
        if self.own and place[1] == ():
            self.scratch.append(place)
            return f"s{len(self.scratch) - 1}", True  # NumPy makes a number of this, not an array
        for o in overwritable(step):
            if self.last[o] == i and self._is_mine(o) and self.place(o) == place:
                name = self.names[o]
                if name[0] == "s" or self._lasts(int(name[1:]), v):
                    return name, False
        idle = self.idle.get(place)
        if idle and self._lasts(idle[-1][1], v):
            _, k = idle.pop()
            self.touched.setdefault(k, i)
            return f"o{k}", False
        return self._scratch(place)

    def _lasts(self, k: int, v: int) -> bool:
        """Whether output k can hold v for as long as v is read."""
        end, filled = self.last.get(v, -1), self.filled[k]
        return end < filled or (end == filled and v in overwritable(self.steps[filled]))

    def _scratch(self, place: Place) -> tuple[str, bool]:
        free = self.free.get(place)
        if free:
            return free.pop(), False
        self.scratch.append(place)
        return f"s{len(self.scratch) - 1}", self.own

    def _is_mine(self, v: int) -> bool:
        """Whether the place of a value may be used again after its last reader."""
        return v not in self.home and self.names[v][0] in "so"

    def _release(self, i: int, step: UfuncStep) -> None:
        """Give back the places of what is read for the last time."""
        kept = None if step.makes is None else self.names[step.makes]
        for o in {o for o in step.operands if isinstance(o, int)}:
            name = self.names[o]
            if self.last[o] != i or name == kept or not self._is_mine(o):
                continue
            place = self.place(o)
            if name[0] == "o":
                insort(self.idle[place], (self.filled[int(name[1:])], int(name[1:])))
            elif not (self.own and place[1] == ()):
                self.free.setdefault(place, []).append(name)

    def _overwrites(self) -> tuple[tuple[int, int], ...]:
        pairs = []
        for v, k in self.home.items():
            first = self.touched[k]
            for a in range(self.elements.arity):
                if self.elements.values[a] != self.elements.values[v]:
                    continue
                end = self.last.get(a, -1)
                if end < first or (end == first and a in overwritable(self.steps[first])):
                    pairs.append((k, a))
        return tuple(pairs)


def output_names(elements: Elements) -> list[str]:
    """What the lines call the outputs."""
    return [f"o{k}" for k in range(len(elements.outputs))]


def overwritable(step: UfuncStep) -> tuple[int, ...]:
    """Operands over which a step may write its result, if they are of the same type."""
    if isinstance(step.fn, np.ufunc):
        return tuple([o for o in step.operands if isinstance(o, int)])
    x = step.operands[1] if step.fn is CHOOSE else None
    return (x,) if isinstance(x, int) and x != step.operands[2] else ()


# --- functions -------------------------------------------------------------------------------


def _compiled(
    lines: Sequence[Line], parameters: Sequence[str], space: Mapping[str, Any]
) -> Callable[..., object]:
    """The lines as a Python function."""
    names: dict[int, str] = {}
    namespace = dict(space)
    text = [f"def body({', '.join(parameters)}):"]
    for line in lines:
        name = names.setdefault(id(line.fn), f"f{len(names)}")
        namespace[name] = line.fn
        if line.new:
            text.append(f" {line.target} = {name}({', '.join(line.args)})")
        else:
            text.append(f" {name}({', '.join([*line.args, line.target])})")
    exec(compile("\n".join([*text, " return"]), _FILE, "exec"), namespace)
    body: Callable[..., object] = namespace.pop("body")
    return body
