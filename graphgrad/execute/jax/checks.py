"""Errors of kernels that run under jax.jit, where nothing can be raised.

A kernel says whether it refuses its inputs, as a boolean of the compiled program. The first refusal
of a run is an output of the program: its number, and an integer that its words name. The host reads
it when the run is done and raises the error. Loops carry it, and of a choice the branch that was
taken gives it. Where nobody asks for refusals (`as_jax`, exported files), none is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...base.collector import having
from ...base.kinds import kind_of
from ...ir.node import Node
from ...ir.op import Op
from ...ir.program import Program
from ..results import add_note
from .host import AT

__all__ = [
    "REFUSING",
    "Refusals",
    "Status",
    "asked",
    "check_indices",
    "first",
    "may_refuse",
    "note",
    "refuse",
    "unwatched",
    "watched",
]

Error = Callable[[int], Exception]


class Status(NamedTuple):
    """What was refused, traced: the number of the first refusal, and its integer.

    code   0: nothing
    value  what the error names, such as the index that was out of bounds
    """

    code: Any
    value: Any


class _Refusal(NamedTuple):
    """An error that a node may raise, of an integer; arrays: what the node reads, traced."""

    error: Error
    node: Node | None
    arrays: Sequence[Any]


class Refusals:
    """What the kernels of a program refuse, by number; those of all its traces differ."""

    def __init__(self) -> None:
        self._rows: dict[int, _Refusal] = {}
        self._next = count(1)

    def add(self, refusal: _Refusal) -> int:
        """The number of one more."""
        number = next(self._next)
        self._rows[number] = refusal
        return number

    def check(self, status: Status) -> None:
        """Raise what a run refused, if it did, with the node and its line."""
        code = int(np.asarray(status.code))
        if not code:
            return
        row = self._rows[code]
        error = row.error(int(np.asarray(status.value)))
        if row.node is not None:
            add_note(error, row.node, row.arrays)
        raise error


class _Level:
    """What is traced now: a program, or one run of a body in it."""

    def __init__(self, refusals: Refusals) -> None:
        self.refusals = refusals
        self.status: Status | None = None


_LEVEL: ContextVar[_Level | None] = ContextVar("level", default=None)

REFUSING: set[type[Op]] = set()
"""Ops whose kernels call `refuse`, beside those with indices."""


def may_refuse(programs: Iterable[Program]) -> bool:
    """Whether an op of these programs, or one inside it, refuses anything."""
    ops = [node.op for program in programs for node in program.nodes]
    for op in ops:
        if op.index_inputs or type(op) in REFUSING:
            return True
        ops += op.runs
        ops += [node.op for program in op.bodies for node in program.nodes]
    return False


def asked(programs: Iterable[Program]) -> Status | None:
    """The status before anything ran; None: nobody asks for it, or nothing can be refused."""
    if _LEVEL.get() is None or not may_refuse(programs):
        return None
    return Status(jnp.int32(0), jnp.int64(0))


def watched(
    fn: Callable[..., Any], start: Status | None, refusals: Refusals | None = None
) -> Callable[..., Any]:
    """fn, which returns what it made and the status: start, if nothing was refused.

    refusals: where they are written down; those of the program around it, if not given.
    """

    def run(*arrays: Any) -> tuple[Any, Status | None]:
        around = _LEVEL.get()
        into = around.refusals if refusals is None and around is not None else refusals
        if into is None:
            return fn(*arrays), start
        level = _Level(into)
        made = having(_LEVEL, level, fn, *arrays)
        return made, start if level.status is None else level.status

    return run


def unwatched(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, of which nobody asks what it refuses: JAX keeps its trace, and calls it elsewhere."""
    return partial(having, _LEVEL, None, fn)


def first(one: Status | None, other: Status | None) -> Status | None:
    """The status of two parts, one after the other."""
    if one is None or other is None:
        return other if one is None else one
    held = one.code != 0
    return Status(*[jnp.where(held, a, b) for a, b in zip(one, other, strict=True)])


def note(status: Status | None) -> None:
    """The status of a part of what is traced now."""
    level = _LEVEL.get()
    if level is not None:
        level.status = first(level.status, status)


def refuse(error: Error, find: Callable[[], tuple[Any, Any]], arrays: Sequence[Any]) -> bool:
    """Have the run raise an error, if find() says so: whether, and the integer that it is of.

    arrays: what the node reads, of which the error tells types. False: nobody asks for errors.
    """
    level = _LEVEL.get()
    if level is None:
        return False
    bad, value = find()
    here = level.refusals.add(_Refusal(error, AT.get(), [_type_of(a) for a in arrays]))
    note(Status(jnp.where(bad, jnp.int32(here), 0), jnp.asarray(value).astype("int64")))
    return True


class _Type(NamedTuple):
    """The type of an array, which is not kept."""

    shape: tuple[int, ...]
    dtype: Any


def _type_of(array: Any) -> _Type:
    return _Type(tuple(array.shape), array.dtype)


def check_indices(op: Op, arrays: Sequence[Any]) -> bool:
    """IndexError, in NumPy's words, for an index of `op.index_inputs` that is out of bounds.

    As in NumPy, none is where one of the index arrays is empty, so that they pick nothing. False:
    there is nothing to index, so the kernel is not to be called.
    """
    empty = False
    if not all(arrays[place].size for place, _ in op.index_inputs):
        return True
    for place, axis in op.index_inputs:
        length = arrays[0].shape[axis]
        refused = _check_index(arrays[place], axis, length, arrays)
        empty = empty or (refused and not length)
    return not empty


def _check_index(index: Any, axis: int, length: int, arrays: Sequence[Any]) -> bool:
    """One maximum: counted from -length on, what is less becomes the greatest unsigned numbers."""
    before = 0 if kind_of(index.dtype) == "u" else length

    def find() -> tuple[Any, Any]:
        worst = (index.astype("int64") + before).astype("uint64").max()
        return worst >= before + length, worst.astype("int64") - before

    def error(value: int) -> Exception:
        number = value if before else value % 2**64
        return IndexError(f"index {number} is out of bounds for axis {axis} with size {length}")

    return refuse(error, find, arrays)
