"""Copies of ops with other inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .graph import Operation, Tensor
from .scope import changed

__all__ = ["copied"]


def copied(
    ops: Iterable[Operation],
    known: dict[Tensor, Tensor],
    graph: Any = None,
) -> dict[Operation, Operation]:
    """Copies of ops, made in the order in which the ops were; inputs are looked up in `known`.

    known gains what the copies make. Stamps of maps are copied; those of maps around are put on
    where there are none.
    """
    made: dict[Operation, Operation] = {}
    for op in sorted(ops, key=lambda op: op._id):
        target = graph or op.graph
        inputs = tuple([known.get(t, t) for t in op._inputs])
        attrs = {k: known.get(v, v) if isinstance(v, Tensor) else v for k, v in op.attrs.items()}
        if op.type in DRAWS and "_draw" not in attrs:
            attrs["_draw"] = op._id
        with changed(target, controls=()):
            new = target._make(
                op.type,
                inputs,
                [t.dtype for t in op.outputs],
                [t.shape for t in op.outputs],
                attrs,
                op.name.rsplit("/", 1)[-1],
            )
        copies = [made[c] for c in op.control_inputs if c in made]
        new.control_inputs += [c for c in copies if c not in new.control_inputs]
        made[op] = new
        known.update(zip(op.outputs, new.outputs, strict=True))
    return made


DRAWS = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt"}
DRAWS |= {"RandomShuffle", "Multinomial", "RandomGamma", "RandomPoissonV2"}
