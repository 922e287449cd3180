"""Running a graph node by node, as it was built, with every value in sight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..compile import CompiledFunction, compile, feeds_of
from ..execute.backend import Kernels
from ..execute.feeds import Feeds
from ..execute.results import add_note, check_promise
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.state import State
from ..ir.tree import flatten
from ..ir.types import Array

__all__ = ["values"]

_KERNELS = Kernels(np)


class Ran(NamedTuple):
    """One node, what it read and what it made."""

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


class Question:
    """Outputs, and what is fed: checked as `compile` checks them, nothing optimised.

    outputs  the tensors wanted
    given    tensor -> the array it is fed
    program  from what is fed, and the variables, to the outputs
    """

    def __init__(
        self, outputs: Any, feeds: Mapping[Any, Any] | None = None, state: State | None = None
    ) -> None:
        self.outputs: list[Tensor] = [t for t in flatten(outputs) if t is not None]
        graph = next((t.node.graph for t in self.outputs if isinstance(t, Tensor)), None)
        keyed = feeds_of(graph, feeds or {})
        checked: CompiledFunction = compile(list(keyed), self.outputs, optimize=False, state=state)
        self.program: Program = checked.program
        arrays = Feeds(list(keyed))(tuple(keyed.values()), {})
        self.given: dict[Tensor, Array] = dict(zip(keyed, arrays, strict=True))
        variables = [t.node for t in self.program.inputs[len(keyed) :]]
        where = state if state is not None else graph.state if graph is not None else State()
        read = where.read(variables)
        self.given |= {v.outputs[0]: a for v, a in zip(variables, read, strict=True)}

    def run(self) -> Iterator[Ran]:
        """Each node as it has run, in order."""
        held = dict(self.given)
        with np.errstate(all="ignore"):
            for node in self.program.nodes:
                inputs = tuple([held[t] for t in node.inputs])
                try:
                    made = _KERNELS.of(node.op)(*inputs)
                except Exception as error:
                    add_note(error, node, inputs)
                    raise
                outputs = tuple(made) if len(node.outputs) > 1 else (made,)
                for t, array in zip(node.outputs, outputs, strict=True):
                    check_promise(node, t.index, array)
                    held.setdefault(t, array)  # what is fed stays what was fed
                yield Ran(node, inputs, outputs)


def values(
    outputs: Any, feeds: Mapping[Any, Any] | None = None, *, state: State | None = None
) -> dict[str, Array]:
    """Every value on the way to outputs, by the name of its tensor, in the order of running.

    outputs: a tensor or any nesting of them. feeds: {tensor or name: array}. state: where variables
    live; the graph's own by default. What is fed and the variables read stand first. Nothing is
    optimised away. Raises what running raises, with a note on the node.
    """
    question = Question(outputs, feeds, state)
    found = {t.name: np.array(a) for t, a in question.given.items()}
    for ran in question.run():
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            found.setdefault(t.name, np.array(array))
    return found
