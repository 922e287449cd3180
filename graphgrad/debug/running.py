"""Running a graph node by node, as it was built, with every value in sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.collector import having
from ..base.errors import GraphError
from ..base.tree import flatten
from ..compiled import CompiledFunction, compile, feeds_of
from ..execute.kernels import Kernels
from ..execute.results import add_note, check_promise
from ..execute.run.feeds import Feeds
from ..functions import Function
from ..ir.graph import restored
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.state import RUN, State
from ..ir.types import Array, tensor_type
from ..ops.control import Scan, While
from .words import who

__all__ = ["Values", "values"]

KERNELS = Kernels(np)
Given = Mapping[Any, Any] | Sequence[Any] | None


class Inside(NamedTuple):
    """The body of control flow that runs.

    node     the choice or loop
    word     which of its bodies: "then", "else", "body", "test"
    program  what the body computes
    reads    the tensors around it that stand for the program's inputs; None for what a loop carries
             or takes row by row
    step     of a loop, which run it is: of a scan the number of the row; None for a choice
    """

    node: Node
    word: str
    program: Program
    reads: tuple[Tensor | None, ...]
    step: int | None = None


def place_of(body: Inside) -> str:
    """`the then branch of Cond_4 (...)`, `run 3 of the body of Scan_4 (...)`."""
    if body.step is None:
        return f"the {body.word} branch of {who(body.node)}"
    return f"run {body.step} of the {body.word} of {who(body.node)}, counted from 0"


class Ran(NamedTuple):
    """One node, what it read and what it made.

    within  the bodies that it is in, the outermost first
    """

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    within: tuple[Inside, ...] = ()

    def outside(self, t: Tensor) -> Tensor:
        """What t stands for around the bodies, where it is an input of one; else t."""
        for body in reversed(self.within):
            outer = dict(zip(body.program.inputs, body.reads, strict=True)).get(t)
            t = t if outer is None else outer
        return t


See = Callable[[Ran], None]
"""Called with each node as it has run, in order."""


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

    def run(self, see: See) -> None:
        """Run it, and see each node as it has run; what ran in a choice or loop, before that."""
        with np.errstate(all="ignore"):
            having(RUN, self.state.runs, _run, self.program, dict(self.given), (), see)


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
            arrays = outputs._request.feeds(tuple(feeds), {})
            feeds = dict(zip(outputs.inputs, arrays, strict=True))
        return outputs.outputs, _by_key(feeds), outputs._access.state, outputs.backend
    return outputs, _by_key(feeds), None, None


def _by_key(feeds: Given) -> Mapping[Any, Any]:
    if feeds is not None and not isinstance(feeds, Mapping):
        raise TypeError(f"feeds are {{tensor or name: array}}, got {feeds!r}")
    return feeds or {}


def _run(program: Program, held: dict[Tensor, Array], within: tuple[Inside, ...], see: See) -> None:
    for node in program.nodes:
        inputs = tuple([held[t] for t in node.inputs])
        made = _driven(node, inputs, within, see) if node.op.bodies else _made(node, inputs)
        for t, array in zip(node.outputs, made, strict=True):
            check_promise(node, t.index, array)
            held.setdefault(t, array)  # what is fed stays what was fed
        see(Ran(node, inputs, made, within))


def _made(node: Node, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    try:
        made = KERNELS.of(node.op)(*inputs)
    except Exception as error:
        add_note(error, node, inputs)
        raise
    return tuple(made) if len(node.outputs) > 1 else (made,)


def _driven(
    node: Node, inputs: tuple[Array, ...], within: tuple[Inside, ...], see: See
) -> tuple[Array, ...]:
    """What a choice or loop makes, by runs of its bodies."""
    op: Any = node.op
    bodies = [_Body(node, number, inputs, within, see) for number in range(len(op.bodies))]
    made = op.drive(bodies, inputs)
    return tuple(made) if len(node.outputs) > 1 else (made,)


class _Body:
    """A body of control flow as a function of arrays, seen at work.

    own   how many of its inputs are its own in each run: carries and slices
    runs  how often it ran
    last  the number of the row that a reversed scan begins with
    """

    def __init__(
        self,
        node: Node,
        number: int,
        inputs: tuple[Array, ...],
        within: tuple[Inside, ...],
        see: See,
    ) -> None:
        op: Any = node.op
        program, word = op.bodies[number], op.body_names[number]
        self.within, self.see, self.runs = within, see, 0
        self.own = 0
        if _is_loop(node):
            self.own = op.carries + (op.slices if isinstance(op, Scan) else 0)
            reads: tuple[Any, ...] = (*([None] * self.own), *node.inputs[self.own :])
        else:
            reads = tuple([node.inputs[1 + i] for i in op.reads[number]])
        self.last: int | None = None
        if isinstance(op, Scan) and op.reverse:
            runs: Any = op.runs_of([tensor_type(a.shape, a.dtype) for a in inputs])
            self.last = runs - 1
        self.inside = Inside(node, word, program, reads)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        inside = self.inside
        if _is_loop(inside.node):
            step = self.runs if self.last is None else self.last - self.runs
            inside = inside._replace(step=step)
            self.runs += 1
        within = (*self.within, inside)
        held = dict(zip(inside.program.inputs, map(np.asarray, arrays), strict=True))
        for t in inside.program.inputs[: self.own]:
            self.see(Ran(t.node, (), (held[t],), within))
        _run(inside.program, held, within, self.see)
        return tuple([held[t] for t in inside.program.outputs])


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

    def _note(self, name: str, t: Tensor, array: Array) -> None:
        self[name] = array
        self.by_tensor.setdefault(t, array)


Path = tuple[tuple[Node, str], ...]
Steps = tuple[int, ...]


class _Notes:
    """The values of a run, before those of the runs of loops are stacked.

    runs  body and steps around it -> the steps that it ran
    """

    def __init__(self) -> None:
        self.values: dict[tuple[Path, Tensor], dict[Steps, Array]] = {}
        self.runs: dict[tuple[Path, Steps], set[int]] = {}

    def note(self, ran: Ran) -> None:
        """Keep copies; of what ran twice the first."""
        path, steps = tuple([(b.node, b.word) for b in ran.within]), steps_of(ran)
        for t, array in zip(ran.node.outputs, ran.outputs, strict=True):
            by_steps = self.values.setdefault((path, t), {})
            if ran.node.type == "Constant" and by_steps:
                array = next(iter(by_steps.values()))
                by_steps.setdefault(steps, array)
            elif steps not in by_steps:
                by_steps[steps] = np.array(array)
        loops = [i for i, body in enumerate(ran.within, 1) if body.step is not None]
        for depth, i in enumerate(loops):
            self.runs.setdefault((path[:i], steps[:depth]), set()).add(steps[depth])

    def made(self) -> Values:
        """By name: the runs of a loop stacked, or each under the number of its step."""
        by_name = Values()
        for (path, t), by_steps in self.values.items():
            for name, array in self._named(path, t.name, by_steps).items():
                by_name._note(name, t, array)
        return by_name

    def _named(self, path: Path, name: str, by_steps: dict[Steps, Array]) -> dict[str, Array]:
        """Name -> array; of loops in loops the inner ones are stacked first."""
        stacked = {steps: {name: array} for steps, array in by_steps.items()}
        depth = len(next(iter(by_steps)))
        for i in range(len(path), 0, -1):
            node, word = path[i - 1]
            around = f"{node.name}/{word}"
            if not _is_loop(node):
                stacked = {
                    steps: {f"{around}/{n}": a for n, a in named.items()}
                    for steps, named in stacked.items()
                }
                continue
            depth -= 1
            groups: dict[Steps, dict[int, dict[str, Array]]] = {}
            for steps, named in stacked.items():
                groups.setdefault(steps[:depth], {})[steps[depth]] = named
            stacked = {
                steps: _of_all_runs(around, by_step, self.runs[path[:i], steps])
                for steps, by_step in groups.items()
            }
        return stacked[()]


def _of_all_runs(
    around: str, by_step: dict[int, dict[str, Array]], runs: set[int]
) -> dict[str, Array]:
    """Stacked where every run made the same, of one shape; else each with its step."""
    kinds = {tuple([(n, a.shape) for n, a in named.items()]) for named in by_step.values()}
    if len(kinds) == 1 and len(by_step) == len(runs):
        in_order = [by_step[step] for step in sorted(by_step)]
        return {f"{around}/{n}": _stack([named[n] for named in in_order]) for n in in_order[0]}
    return {f"{around}[{step}]/{n}": a for step, named in by_step.items() for n, a in named.items()}


def _stack(rows: list[Array]) -> Array:
    """The rows stacked; of one array again and again, a view of it."""
    if all(row is rows[0] for row in rows):
        return np.broadcast_to(rows[0], (len(rows), *rows[0].shape))
    return np.stack(rows)


def steps_of(ran: Ran) -> Steps:
    """The steps of the loops around what ran, the outermost first."""
    return tuple([body.step for body in ran.within if body.step is not None])


def _is_loop(node: Node) -> bool:
    return isinstance(node.op, Scan | While)


@restored
def values(outputs: Any, feeds: Given = None, *, state: State | None = None) -> Values:
    """Every value on the way to outputs, by the name of its tensor, in the order of running.

    Inputs and variables come first. A value in the branch of a `cond` that ran is
    called `Cond_4/then/Log_1:0`. Those in the body of a loop are stacked: `Scan_4/body/Tanh_1:0`
    has a row for each run, that of `xs[i]` at `i`, `While_4/test/Less_1:0` one more. Where runs
    differ in what they make, each has a name of its own: `Scan_4/body[2]/Cond_5/then/Log_1:0`.
    Nothing is optimised away. `gg.Overlay.of_values(found.by_tensor)` makes an overlay of them.

    Parameters:
        outputs: a tensor or any nesting of them, what gg.compile or gg.function made.
        feeds: {tensor or name: array}; of a compiled function its arguments in a tuple too, of a
            gg.function only those.
        state: where variables live; the graph's own by default.

    Returns: a Values.

    Raises: the errors of running, with a note on the node.

    >>> x = gg.placeholder((), name="x")
    >>> gg.debug.values(gg.exp(x * 0.0), {x: 2.0})["x:0"]
    array(2.)
    """
    question = Evaluation(outputs, feeds, state)
    notes = _Notes()
    for t, array in question.given.items():
        notes.note(Ran(t.node, (), (array,)))
    question.run(notes.note)
    return notes.made()
