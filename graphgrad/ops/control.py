"""Control flow: a choice between two bodies, each a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.build import adopted
from ..ir.context import Scope, bodies_around
from ..ir.depth import check_room
from ..ir.errors import ShapeError, StateError
from ..ir.graph import Graph, GraphScope, current
from ..ir.node import enclosing
from ..ir.position import caller, show
from ..ir.program import Program
from ..ir.tree import flatten, unflatten
from ..ir.words import visible
from .base import (
    Any,
    DTypeError,
    Op,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    as_tensor,
    build,
    tensor_type,
)
from .sources import Identity, Placeholder

__all__ = ["cond"]


class BodyGraph(Graph):
    """The graph of a body. A tensor of the graph around it is captured when it is first read.

    outer     the graph around
    captures  outer tensor -> the placeholder that stands for it here
    """

    def __init__(self, outer: Graph, name: str) -> None:
        super().__init__(name)
        self.outer = outer
        self.captures: dict[Tensor, Tensor] = {}
        self._homes: tuple[int, dict[Tensor, Tensor]] = 0, {}

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
        found = self.captures.get(tensor)
        if found is None:
            with BodyScope(self):
                found = build(Placeholder(tensor.shape, tensor.dtype), ()).outputs[0]
            self.captures[tensor] = found
        return found

    def before_gradients(self) -> None:
        """Called before anything is differentiated in it."""

    def home_of(self, placeholder: Tensor) -> Tensor | None:
        """The outer tensor that a placeholder stands for."""
        count, homes = self._homes
        if count != len(self.captures):
            homes = {inner: outer for outer, inner in self.captures.items()}
            self._homes = len(homes), homes
        return homes.get(placeholder)


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


class Cond(Op, interned=False):
    """The outputs of one of two programs, chosen by a bool.

    Inputs: the bool, then what the bodies read; `reads` says which inputs each body takes.
    """

    programs: tuple[Program, Program]
    reads: tuple[tuple[int, ...], tuple[int, ...]]
    sparse = True
    linear_zero = False
    relevance = "moved"

    @property
    def bodies(self) -> tuple[Program, Program]:  # type: ignore[override]
        """What runs if the bool is true, and what runs else."""
        return self.programs

    def replace_bodies(self, bodies: Sequence[Any]) -> Op:
        """The choice, with the same reads, between others."""
        return self.replace(programs=tuple(bodies))

    def infer(self, pred: TensorType, *types: TensorType) -> Types:
        then, other = self.programs
        return tuple(
            tensor_type(_common(a.shape, b.shape), a.dtype)
            for a, b in zip(then.outputs, other.outputs, strict=True)
        )

    def kernel(self, xp: Any, pred: Any, *arrays: Any) -> Any:
        branch = 0 if bool(pred) else 1
        given = [arrays[i] for i in self.reads[branch]]
        found = interpret(self.programs[branch], xp, given)
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        then, other = self.programs
        return f"Cond(then {len(then.nodes)} nodes, else {len(other.nodes)} nodes)"


def interpret(program: Program, xp: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Run a program node by node with the ops' own kernels."""
    values = dict(zip(program.inputs, arrays, strict=True))
    for node in program.nodes:
        try:
            found = node.op.kernel(xp, *[values[t] for t in node.inputs])
        except Exception as error:
            error.add_note(visible(f"in {node.name}, {node.op!r}, built at {node.where}"))
            raise
        outputs = found if isinstance(found, tuple) else (found,)
        values.update(zip(node.outputs, outputs, strict=True))
    return tuple(values[t] for t in program.outputs)


def cond(pred: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """then() or otherwise(), whichever pred says; only that one is computed.

    Op-type maps and regions around it reach into the branches.

    Parameters:
        pred: a 0-d bool tensor; a Python bool decides at once.
        then, otherwise: functions without arguments that build and return tensors, in the same
            structure and of the same dtypes. They may read tensors of the graph around.

    Returns: their structure of tensors; lengths in which the two differ are unknown.

    Raises: ShapeError for a pred with axes (use gg.where to choose element by element), and where
    structures or ranks differ; DTypeError for a pred that is no bool, and where dtypes differ;
    StateError for a placeholder, variable or assign() in a branch; TypeError for what is no
    function.

    Gradient: that of the branch that is taken.

    >>> x = gg.constant(-2.0)
    >>> y = gg.cond(x > 0, lambda: x * x, lambda: -x)
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array(2.), array(-1.)]
    """
    if isinstance(pred, bool):
        return then() if pred else otherwise()
    (test,) = adopted((as_tensor(pred),))
    if test.ndim:
        raise ShapeError(
            f"cond() takes a single bool, got {test.name}: {test.type!r} (built at {test.where}).\n"
            "To choose element by element, use gg.where(condition, x, y)."
        )
    if test.dtype.kind != "b":
        raise DTypeError(f"cond() takes a bool, got {test.type!r} (built at {test.where})")
    context = current()
    outer = test.graph if context.implicit else context.graph
    assert outer is not None
    at = show(caller())
    bodies = [BodyGraph(outer, f"{name} of cond at {at}") for name in ("then", "else")]
    results = [_traced(body, fn) for body, fn in zip(bodies, (then, otherwise), strict=True)]
    leaves = [flatten(r) for r in results]
    _check_alike(leaves, results, at)
    node = choose(test, bodies, [_as_tensors(b, ts) for b, ts in zip(bodies, leaves, strict=True)])
    return unflatten(results[0], node)


def choose(
    pred: Tensor, bodies: Sequence[BodyGraph], outputs: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, ...]:
    """The node that chooses between outputs of two bodies, on the tensors that these capture."""
    captured: dict[Tensor, int] = {}
    programs, reads = [], []
    for body, wanted in zip(bodies, outputs, strict=True):
        needed = _needed(body, wanted)
        taken = [(o, i) for o, i in body.captures.items() if i in needed]
        programs.append(Program([i for _, i in taken], wanted))
        reads.append(tuple(captured.setdefault(o, len(captured)) for o, _ in taken))
    op = Cond(tuple(programs), tuple(reads))  # type: ignore[arg-type]
    return build(op, (pred, *captured)).outputs


def _needed(body: BodyGraph, outputs: Sequence[Tensor]) -> set[Tensor]:
    """Those of the placeholders that the outputs depend on, in value or in gradient.

    The rule of a region may give a gradient to all that the region reads, so that counts whole.
    """
    inner = body.captures.values()
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


def _traced(body: BodyGraph, fn: Callable[[], Any]) -> Any:
    if not callable(fn):
        raise TypeError(f"the branches of cond() are functions without arguments, got {fn!r}")
    with BodyScope(body):
        found = fn()
    for node in body.nodes:
        if node.type == "Assign":
            raise StateError(
                f"assign() inside a branch of cond() (at {node.where}): choose the value with "
                "cond(), and assign it outside"
            )
        if node.op.source and body.home_of(node.outputs[0]) is None:
            raise StateError(
                f"a {node.type} inside a branch of cond() (at {node.where}): build it outside, "
                "where it can get a value"
            )
    return found


def _as_tensors(body: BodyGraph, leaves: Sequence[TensorLike]) -> list[Tensor]:
    """The results of a body as tensors of that body, read outside of the regions in it."""
    with BodyScope(body):
        tensors = [as_tensor(leaf) for leaf in leaves]
        return [read_outside(t if t.graph is body else body.adopt(t)) for t in tensors]


def read_outside(t: Tensor) -> Tensor:
    """t; behind an Identity that is not in a region, where t is: to return it is to read it."""
    return t if t.node.region is None else build(Identity(), (t,)).outputs[0]


def _check_alike(leaves: list[list[Any]], results: list[Any], at: str) -> None:
    then, other = leaves
    if len(then) != len(other) or any(x is None for x in (*then, *other)):
        raise ShapeError(
            f"the branches of cond() at {at} must return the same structure of tensors, got "
            f"{results[0]!r} and {results[1]!r}"
        )
    for a, b in zip(then, other, strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype is not b.dtype:
            raise DTypeError(
                f"the branches of cond() at {at} return {a.name}: {a.type!r} ({a.where}) and "
                f"{b.name}: {b.type!r} ({b.where}); cast one of them"
            )


def _common(a: Shape, b: Shape) -> Shape:
    """What is known of a shape that is one of two."""
    if len(a) != len(b):
        raise ShapeError(f"the branches of cond() return {list(a)} and {list(b)}: ranks differ")
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
