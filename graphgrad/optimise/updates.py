"""Updates of variables that write what is there."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.node import Tensor
from ..ir.program import Program


def without_idle_updates(
    program: Program, variables: Sequence[Tensor]
) -> tuple[Program, list[bool]]:
    """The program without the updates that write a variable's own value, and which it keeps.

    variables: for each of the last outputs of the program, the input that it is the next value of.
    """
    outputs, first = program.outputs, len(program.outputs) - len(variables)
    kept = [new is not old for new, old in zip(outputs[first:], variables, strict=True)]
    if all(kept):
        return program, kept
    written = [t for t, keep in zip(outputs[first:], kept, strict=True) if keep]
    return Program(program.inputs, [*outputs[:first], *written], program.nodes), kept
