"""What XLA's own errors do not say: which nodes they may be about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from ...base.words import visible_lines
from ...ir.node import Tensor
from ...ir.program import Program
from ...ir.types import tensor_type
from ...lower.alias import nbytes
from ...lower.specialise import specialise

__all__ = ["say_where"]

LARGEST = 3


def say_where(error: Exception, program: Program, arrays: Sequence[Any]) -> None:
    """A note on an error of XLA, which knows memory and devices, and no lines of the user's."""
    if not isinstance(error, jax.errors.JaxRuntimeError):
        return
    if not all(t.type.static for t in program.inputs):
        program = specialise(program, [tensor_type(a.shape, a.dtype) for a in arrays])
    made = [t for node in program.nodes for t in node.outputs]
    largest = sorted(made, key=_size, reverse=True)[:LARGEST]
    rows = "".join(
        f"\n  {t.name}: {t.type!r}, {_size(t)} bytes, built at {t.where}" for t in largest
    )
    ends = "".join(
        f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in program.outputs[:LARGEST]
    )
    note = f"while XLA ran the program of{ends}\nwhose largest values are{rows}"
    error.add_note(visible_lines(note))


def _size(t: Tensor) -> int:
    return nbytes(t.type) or 0
