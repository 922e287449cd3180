"""Bodies of control flow: graphs of their own, which read tensors of the surrounding graph them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from ...base.depth import check_room
from ...base.errors import ShapeError, StateError
from ...base.words import visible
from ...ir.build import apply, build
from ...ir.context import Scope, bodies_around
from ...ir.graph import Graph, GraphScope, current
from ...ir.node import Tensor, enclosing
from ...ir.program import Program
from ...ir.types import TensorType
from ..base import TensorLike, as_tensor
from ..elementwise.widening import computed
from ..random.keys import LoopIndex, drawn_alike
from ..sources import Identity, Placeholder

BODY_OF = "body of "
"""What the name of the body of a loop begins with."""


class BodyGraph(Graph):
    """The graph of a body. A tensor of the graph around it is captured when it is first read.

    outer     the graph around
    captures  placeholder -> the outer tensor that it stands for; two may stand for one
    """

    def __init__(self, outer: Graph, name: str) -> None:
        super().__init__(name)
        self.outer = outer
        self.captures: dict[Tensor, Tensor] = {}
        self._first: dict[Tensor, Tensor] = {}

    def adopt(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for an outer tensor; GraphError where it is not outer."""
        bodies = [self]
        while tensor.graph is not (outer := bodies[-1].outer):
            if type(outer).adopt is not BodyGraph.adopt:
                tensor = outer.adopt(tensor)
                break
            assert isinstance(outer, BodyGraph)
            bodies.append(outer)
        for body in reversed(bodies):
            tensor = body._captured(tensor)
        return tensor

    def _captured(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of the graph around."""
        inner = self._first.get(tensor)
        if inner is None:
            with BodyScope(self):
                inner = build(Placeholder(tensor.shape, tensor.dtype), ()).outputs[0]
            self.capture(inner, tensor)
        return inner

    def capture(self, placeholder: Tensor, outer: Tensor) -> None:
        """Let a placeholder stand for an outer tensor."""
        self.captures[placeholder] = outer
        self._first.setdefault(outer, placeholder)

    def stands_for(self, outer: Tensor) -> Tensor | None:
        """The first placeholder that stands for an outer tensor."""
        return self._first.get(outer)

    @property
    def repeats(self) -> bool:
        """Whether it is the body of a loop."""
        return self.name.startswith(BODY_OF)

    def before_gradients(self, *, leaving: bool) -> None:
        """Called before anything is differentiated in it; leaving: through what it captured."""

    def home_of(self, placeholder: Tensor) -> Tensor | None:
        """The outer tensor that a placeholder stands for."""
        return self.captures.get(placeholder)


def around(graph: Graph) -> list[Graph]:
    """A graph and, for a body, the graphs around it."""
    return list(bodies_around(graph))


class BodyScope(Scope):
    """New nodes go to a body: op-type maps stay in force, open regions are outside."""

    def __init__(self, body: BodyGraph) -> None:
        self.body = body

    def __enter__(self) -> BodyGraph:
        check_room()
        around = current()
        context = around.copy()
        context.graph, context.region, context.implicit = self.body, None, False
        context.left = around
        self._push(context)
        return self.body

    def __exit__(self, kind: object, *exc: object) -> None:
        self._pop(kind)

    def _spares(self, inner: Scope) -> bool:
        return isinstance(inner, GraphScope)

    def __repr__(self) -> str:
        return f"<the body {self.body.name!r}>"


def run(xp: Any, program: Program, *arrays: Any) -> tuple[Any, ...]:
    """`interpret`, of arrays one by one."""
    return interpret(program, xp, arrays)


def interpret(program: Program, xp: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Run a program node by node with the ops' own kernels."""
    values = dict(zip(program.inputs, arrays, strict=True))
    for node in program.nodes:
        try:
            output = computed(node, xp, [values[t] for t in node.inputs])
        except Exception as error:
            error.add_note(visible(f"in {node.name}, {node.op!r}, built at {node.where}"))
            raise
        outputs = output if isinstance(output, tuple) else (output,)
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple(values[t] for t in program.outputs)


def needed(
    body: BodyGraph, outputs: Iterable[Tensor], given: Collection[Tensor] = ()
) -> set[Tensor]:
    """Those of its placeholders that the outputs depend on, in value or in gradient.

    given: placeholders that stand for nothing around it.

    The rule of a region may give a gradient to all that the region reads, so that counts whole.
    """
    inner = [*given, *body.captures]
    wanted = set(outputs)
    while True:
        nodes = Program(inner, wanted).nodes
        regions = {region for node in nodes for region in enclosing(node.region)}
        members = [n for n in body.nodes if n.region is not None] if regions else []
        more = {
            t for n in members if regions.intersection(enclosing(n.region)) for t in n.outputs
        }.union(*(region.pinned_inputs or () for region in regions))
        if more <= wanted:
            break
        wanted |= more
    read = {t for node in nodes for t in node.inputs} | wanted
    return {t for t in inner if t in read}


def constants_of(
    body: BodyGraph, outputs: Sequence[Tensor], given: Sequence[Tensor] = (), whole: bool = False
) -> dict[Tensor, Tensor]:
    """Placeholder -> tensor around, of all that the outputs depend on beside what is given.

    whole  of all that the body reads: a region around it reads that, too
    """
    reads = body.captures if whole else needed(body, outputs, given)
    constants = {inner: outer for inner, outer in body.captures.items() if inner in reads}
    for index, loop in indices_of(body, outputs, given):
        constants[index] = apply(LoopIndex(loop - body.repeats))
    return constants


def indices_of(
    body: BodyGraph, outputs: Sequence[Tensor], given: Sequence[Tensor]
) -> list[tuple[Tensor, int]]:
    """The indices of loops that the outputs depend on beside what is given, with their loops."""
    nodes = Program([*given, *body.captures], outputs).nodes
    return [(n.outputs[0], n.op.loop) for n in nodes if isinstance(n.op, LoopIndex)]


def own_indices(
    body: BodyGraph, outputs: Sequence[Tensor], given: Sequence[Tensor]
) -> list[Tensor]:
    """Those of the loop that a body is of."""
    return [index for index, loop in indices_of(body, outputs, given) if not loop]


def given_here(body: BodyGraph, types: Iterable[TensorType]) -> list[Tensor]:
    """New placeholders of a body, of these types, which whatever runs it gives values."""
    with BodyScope(body):
        return [build(Placeholder(t.shape, t.dtype), ()).outputs[0] for t in types]


def traced(
    body: BodyGraph,
    fn: Callable[..., Any],
    what: str,
    args: Any = (),
    given: Collection[Tensor] = (),
) -> Any:
    """What fn(*args) returns, built in a body; StateError for what cannot stand in one.

    what: how errors call the body, "a branch of cond()"; given: its placeholders.
    """
    with BodyScope(body):
        outputs = fn(*args)
    known = {*given, *body.captures}
    for node in body.nodes:
        if node.type == "Assign":
            raise StateError(
                f"assign() inside {what} (at {node.where}): let it return the value, and assign "
                "that outside"
            )
        if given and drawn_alike(node.op):
            raise StateError(
                f"a draw without a seed inside {what} (at {node.where}) would be the same in every "
                "step: give it one that differs, as seed=gg.random.fold_in(key, i) of a step's "
                "number i"
            )
        t = node.outputs[0] if node.op.source else None
        if t is not None and t not in known:
            raise StateError(
                f"a {node.type} inside {what} (at {node.where}): build it outside, where it can "
                "get a value"
            )
    return outputs


def as_outputs(body: BodyGraph, leaves: Sequence[TensorLike]) -> list[Tensor]:
    """The results of a body as tensors of that body, read outside of the regions in it."""
    with BodyScope(body):
        tensors = [as_tensor(leaf) for leaf in leaves]
        return [read_outside(t if t.graph is body else body.adopt(t)) for t in tensors]


def check_takes(program: Program, types: Sequence[TensorType]) -> None:
    """ShapeError where a body takes tensors of other types, or needs more than it is given."""
    _check_fit("takes", [t.type for t in program.inputs], types)
    for node in program.nodes:
        if node.op.source:
            raise ShapeError(f"a body reads {node.name}, which has no value there")


def check_gives(program: Program, types: Sequence[TensorType], first: int = 0) -> None:
    """ShapeError where a body gives tensors of other types from its output `first` on."""
    actual = [t.type for t in program.outputs[first : first + len(types)]]
    _check_fit("gives", actual, types)


def _check_fit(what: str, actual: Sequence[TensorType], types: Sequence[TensorType]) -> None:
    if len(actual) != len(types) or not all(map(_fits, actual, types)):
        raise ShapeError(
            f"a body {what} {list(actual)!r:.200}, where there are {list(types)!r:.200}"
        )


def _fits(a: TensorType, b: TensorType) -> bool:
    """Whether tensors may be of both types."""
    numbers = [(n, m) for n, m in zip(a.shape, b.shape) if type(n) is type(m) is int]
    same_rank = len(a.shape) == len(b.shape)
    return a.dtype == b.dtype and same_rank and all(n == m for n, m in numbers)


def read_outside(t: Tensor) -> Tensor:
    """t; behind an Identity that is not in a region, where t is: to return it is to read it."""
    return t if t.node.region is None else build(Identity(), (t,)).outputs[0]
