"""Running a graph node by node, as it was built, with every value in sight."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiled import CompiledFunction, compile, feeds_of
from ..execute.backend import Kernels
from ..execute.feeds import Feeds
from ..execute.results import add_note, check_promise
from ..functions import Function
from ..ir.errors import GraphError
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.state import RunNumber, State
from ..ir.tree import flatten
from ..ir.types import Array
from ..ops.control import Cond

__all__ = ["Values", "values"]

KERNELS = Kernels(np)
Given = Mapping[Any, Any] | Sequence[Any] | None


class Branch(NamedTuple):
    """The branch of a choice that runs.

    node     the choice
    word     "then" or "else"
    program  what the branch computes
    reads    the tensors around it that stand for the program's inputs
    """

    node: Node
    word: str
    program: Program
    reads: tuple[Tensor, ...]


class Ran(NamedTuple):
    """One node, what it read and what it made.

    within  the branches that it is in, the outermost first
    """

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    within: tuple[Branch, ...] = ()

    def outside(self, t: Tensor) -> Tensor:
        """What t stands for around the branches, where it is an input of one; else t."""
        for body in reversed(self.within):
            if t in body.program.inputs:
                t = body.reads[body.program.inputs.index(t)]
        return t


class Evaluation:
    """Outputs, and what is fed: checked as `compile` checks them, nothing optimised.

    asked    the outputs, in the structure they were asked in
    outputs  the tensors wanted
    given    tensor -> the array it is fed, or the value of a variable
    fed      how many of these are fed; they stand first
    program  from what is fed, and the variables, to the outputs
    state    where variables live
    backend  that of a compiled function; None for tensors
    """

    def __init__(self, outputs: Any, feeds: Given = None, state: State | None = None) -> None:
        self.asked, keyed, known, self.backend = _meant(outputs, feeds)
        self.outputs: list[Tensor] = [t for t in flatten(self.asked) if t is not None]
        if not self.outputs:
            raise GraphError("there is no tensor among the outputs, only None: nothing to run")
        graph = next((t.node.graph for t in self.outputs if isinstance(t, Tensor)), None)
        fed = feeds_of(graph, keyed)
        state = known if state is None else state
        checked: CompiledFunction = compile(list(fed), self.outputs, optimize=False, state=state)
        self.program: Program = checked.program
        arrays = Feeds(list(fed))(tuple(fed.values()), {})
        self.fed = len(fed)
        self.given: dict[Tensor, Array] = dict(zip(fed, arrays, strict=True))
        variables = [t.node for t in self.program.inputs[len(fed) :]]
        self.state = state if state is not None else graph.state if graph is not None else State()
        read = self.state.read(variables)
        self.given |= {v.outputs[0]: a for v, a in zip(variables, read, strict=True)}

    def run(self) -> Iterator[Ran]:
        """Each node as it has run, in order; what ran in a choice, before the choice."""
        with np.errstate(all="ignore"):
            yield from _steps(self.program, dict(self.given), (), RunNumber(self.state.runs))


def _meant(outputs: Any, feeds: Given) -> tuple[Any, Mapping[Any, Any], State | None, Any]:
    """Outputs, feeds by tensor or name, state and backend of what was asked about."""
    if isinstance(outputs, Function):
        if feeds is not None and not isinstance(feeds, list | tuple):
            raise TypeError(
                f"feeds of {outputs!r} are the arguments of a call, in a tuple; got {feeds!r}"
            )
        arguments = tuple(feeds or ())
        outputs, feeds = outputs.build(*arguments), flatten(arguments)
    if isinstance(outputs, CompiledFunction):
        if isinstance(feeds, list | tuple):
            arrays = outputs._feeds(tuple(feeds), {})
            feeds = dict(zip(outputs.inputs, arrays, strict=True))
        return outputs.outputs, _by_key(feeds), outputs._state, outputs.backend
    return outputs, _by_key(feeds), None, None


def _by_key(feeds: Given) -> Mapping[Any, Any]:
    if feeds is not None and not isinstance(feeds, Mapping):
        raise TypeError(f"feeds are {{tensor or name: array}}, got {feeds!r}")
    return feeds or {}


def _steps(
    program: Program, held: dict[Tensor, Array], within: tuple[Branch, ...], run: RunNumber
) -> Iterator[Ran]:
    for node in program.nodes:
        inputs = tuple([held[t] for t in node.inputs])
        if type(node.op) is Cond:
            made = yield from _branch(node, inputs, within, run)
        else:
            made = _made(node, inputs, run)
        for t, array in zip(node.outputs, made, strict=True):
            check_promise(node, t.index, array)
            held.setdefault(t, array)  # what is fed stays what was fed
        yield Ran(node, inputs, made, within)


def _made(node: Node, inputs: tuple[Array, ...], run: RunNumber) -> tuple[Array, ...]:
    try:
        with run:
            made = KERNELS.of(node.op)(*inputs)
    except Exception as error:
        add_note(error, node, inputs)
        raise
    return tuple(made) if len(node.outputs) > 1 else (made,)


def _branch(
    node: Node, inputs: tuple[Array, ...], within: tuple[Branch, ...], run: RunNumber
) -> Generator[Ran, None, tuple[Array, ...]]:
    """Run the branch that a choice takes; the value of the generator is what the branch gives."""
    place = 0 if bool(inputs[0]) else 1
    program: Program = node.op.bodies[place]
    taken = [1 + i for i in node.attrs["reads"][place]]
    body = Branch(node, ("then", "else")[place], program, tuple([node.inputs[i] for i in taken]))
    held = dict(zip(program.inputs, [inputs[i] for i in taken], strict=True))
    yield from _steps(program, held, (*within, body), run)
    return tuple([held[t] for t in program.outputs])


class Values(dict[str, Array]):
    """Arrays by the names of their tensors, in the order of running.

    by_tensor  the same arrays by tensor: those of a branch that ran twice stand there once

    >>> x = gg.placeholder((), name="x")
    >>> y = x * x
    >>> gg.debug.values(y, {x: 2.0}).by_tensor[y]
    array(4.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_tensor: dict[Tensor, Array] = {}

    def _note(self, t: Tensor, array: Array, within: tuple[Branch, ...] = ()) -> None:
        """Keep a copy, unless there is one."""
        path = "".join([f"{body.node.name}/{body.word}/" for body in within])
        if path + t.name not in self:
            self[path + t.name] = kept = np.array(array)
            self.by_tensor.setdefault(t, kept)


def values(outputs: Any, feeds: Given = None, *, state: State | None = None) -> Values:
    """Every value on the way to outputs, by the name of its tensor, in the order of running.

    What is fed and the variables read stand first. A value in the branch of a `cond` that ran is
    called `Cond_4/then/Log_1:0`. Nothing is optimised away. `gg.Overlay.of_values(found.by_tensor)`
    makes an overlay of them.

    Parameters:
        outputs: a tensor or any nesting of them, what gg.compile or gg.function made.
        feeds: {tensor or name: array}; of a compiled function its arguments in a tuple too, of a
            gg.function only those.
        state: where variables live; the graph's own by default.

    Returns: a Values.

    Raises: what running raises, with a note on the node.

    >>> x = gg.placeholder((), name="x")
    >>> gg.debug.values(gg.exp(x * 0.0), {x: 2.0})["x:0"]
    array(2.)
    """
    question = Evaluation(outputs, feeds, state)
    found = Values()
    for t, array in question.given.items():
        found._note(t, array)
    for ran in question.run():
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            found._note(t, array, ran.within)
    return found
