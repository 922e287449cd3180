"""Programs of JAX as they are traced: their equations, what of them has a form, and their lines."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax.extend import core

from ...base.errors import GraphError
from ...base.position import Position, show
from ...ir.types import TensorType
from ..reports import Tally
from .table import LEFT_OUT, TABLE

_JAX: Any = jax
_CORE: Any = core
_JAX_ITSELF, _INSTALLED, _STANDARD, _OURS = (
    os.path.abspath(folder) + os.sep
    for folder in (
        os.path.dirname(jax.__file__),
        os.path.dirname(os.path.dirname(jax.__file__)),
        os.path.dirname(os.__file__),
        os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
    )
)
WHO = "open_jax()"
INSTEAD = "gg.interop.from_jax takes such a function as one node"
_64_BITS = ("float64", "int64", "uint64", "complex128")
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "eval_jaxpr": "call_jaxpr",
}
RULES = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
_LOOPS = (
    "cond",
    "while",
    "scan",
    "platform_index",
    "dim_as_value",
    "call_hi_primitive",
    "linear_solve",
    "custom_linear_solve",
)
KEYS = (
    "random_seed",
    "random_wrap",
    "random_unwrap",
    "random_bits",
    "random_split",
    "random_fold_in",
    "random_clone",
)


class NoForm(GraphError):
    """There is no op for what this names."""

    def __init__(self, theirs: str, why: str = "") -> None:
        super().__init__(f"{WHO} has no form for {theirs}")
        self.theirs, self.why = theirs, why


def traced(fn: Callable[..., Any], avals: Sequence[Any]) -> Any:
    """fn as a program of JAX for these types; GraphError for what has no form."""
    closed = _JAX.make_jaxpr(fn)(*avals)
    tally = Tally()
    note_unknown(closed.jaxpr, tally)
    tally.check(WHO, INSTEAD)
    return closed


def note_unknown(jaxpr: Any, tally: Tally) -> None:
    """Note every equation, of the programs in it too, whose primitive has no form."""
    for eqn, position in _equations(jaxpr):
        if not is_opened(eqn):
            name = eqn.primitive.name
            tally.refused(name, show(position), LEFT_OUT.get(name, ""))


def is_opened(eqn: Any) -> bool:
    """Whether it has no effect, and the primitive a form."""
    return not eqn.effects and is_known(eqn.primitive.name)


def is_known(name: str) -> bool:
    """Whether a primitive has a form."""
    return name in TABLE or name in CALLS or name in RULES or name in _LOOPS or name in KEYS


def _equations(jaxpr: Any, around: Position | None = None) -> Iterator[tuple[Any, Position | None]]:
    """The equations of a program and of all programs in it, with their lines."""
    for eqn in jaxpr.eqns:
        position = position_of(eqn) or around
        yield eqn, position
        for value in eqn.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from _equations(inner, position)


def read_equations(jaxpr: Any) -> list[Any]:
    """The equations of which something is read: those that nobody reads would be in regions."""
    needed = {atom for atom in jaxpr.outvars if not isinstance(atom, _CORE.Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(atom for atom in eqn.invars if not isinstance(atom, _CORE.Literal))
    return kept[::-1]


def last_reads(eqns: Sequence[Any], outputs: Sequence[Any]) -> dict[Any, int]:
    """The place of the last equation that reads a variable; that of outputs is behind all."""
    last = {
        atom: i
        for i, eqn in enumerate(eqns)
        for atom in eqn.invars
        if not isinstance(atom, _CORE.Literal)
    }
    last.update((v, len(eqns)) for v in outputs if not isinstance(v, _CORE.Literal))
    return defaultdict(lambda: -1, last)


def position_of(eqn: Any) -> Position | None:
    """The line in what was traced: the innermost of the user's own, else of a library."""
    traceback, last = eqn.source_info.traceback, None
    for frame in traceback.frames if traceback is not None else ():
        if frame.file_name.startswith(_OURS):
            break
        if not frame.file_name.startswith((_JAX_ITSELF, "<")):
            last = last or (frame.file_name, frame.line_num)
            if not frame.file_name.startswith((_INSTALLED, _STANDARD)):
                return frame.file_name, frame.line_num
    return last


def is_key(dtype: Any) -> bool:
    """Whether it is that of random keys."""
    return bool(_JAX.dtypes.issubdtype(dtype, _JAX.dtypes.prng_key))


def wide(types: Sequence[TensorType]) -> AbstractContextManager[Any]:
    """A block in which JAX has 64-bit types on, where one of these types is such."""
    any_wide = any(t.dtype.name in _64_BITS for t in types)
    return _JAX.enable_x64(True) if any_wide else nullcontext()
