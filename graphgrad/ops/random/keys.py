"""Random keys: given, split, derived from other keys, or the graph's own key for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from ...base.locks import lock_of_module
from ...ir.build import graph_elsewhere
from ...ir.context import Context, bodies_around
from ...ir.graph import Graph, GraphScope, current
from ...ir.program import Program
from ...ir.state import RUN
from ..base import (
    NO_GRAD,
    Any,
    Binary,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    kind_of,
    np,
    tensor_type,
    whole,
)
from ..documented import documented
from .draws import RandomBits, lengths_of
from .philox import folded

__all__ = ["fold_in", "seed", "split"]

_lock = lock_of_module()
TOGETHER = 1 << 32  # numbers of the draws of one graph; those of an import follow in their own


class FoldIn(Binary):
    """A key made of a key and a number, both integers: other numbers, other keys.

    Gradient: none, keys are integers.
    """

    differentiable = False
    flop_free = True

    def infer(self, *types: TensorType) -> Types:
        for t in types:
            if kind_of(t.dtype) not in "iu":
                raise DTypeError(f"a key and what is folded into it are integers, got {t!r}")
        return (tensor_type(super().infer(*types)[0].shape, as_dtype("int64")),)

    def kernel(self, xp: Any, key: Any, data: Any) -> Any:
        return folded(xp, key, data)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD, NO_GRAD)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array(7), np.array(-1)]
        yield cls(), [np.arange(3), np.array([[1], [2]])]
        yield cls(), [np.array(7), np.arange(40).reshape(1, 40)]


class LoopIndex(Op):
    """The number of the run of a loop that is on: the row that it goes over, from 0.

    It has no inputs, so it lies in the region in which it is built, as a constant does. Whatever
    makes a node of the body gives it a value (ops.control).

    loop  which one of those around: 0 is the innermost
    """

    loop: int
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type((), as_dtype("int64")),)


class RandomKey(Op):
    """The key of a draw without a seed: that of the graph's seed and the draw's number, and of the
    run.

    It is inside the region in which it is built and has no inputs, as a constant; but a run of a
    program that has one is counted by the State, and no two runs have the same. Within a run, all
    nodes with one number have one key: the forward pass and what is computed again for the backward
    one.

    number  of the draw: of those of the graph; below 0, of those of a call of a rule, in its trace
    loops   into how many loops around it, the innermost first, their index is folded
    """

    seed: int
    number: int
    loops: int = 0
    revision = 2
    pure = False
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type((), as_dtype("int64")),)

    def kernel(self, xp: Any) -> Any:
        return folded(np if isinstance(RUN.get(), int) else xp, self.of_draw(), RUN.get())

    @classmethod
    def from_revision(cls, revision: int, attrs: dict[str, Any]) -> Op:
        """Older keys are the same in all runs of a loop."""
        return cls(**attrs)

    def of_draw(self) -> Any:
        """The key of the draw, into which the number of the run is folded."""
        return folded(np, np.array(self.seed), np.array(self.number))


def draws_keys(program: Program) -> bool:
    """Whether anything in a program, or a body in it, is drawn without a seed."""
    return any(map(drawn_anew, program.ops))


def drawn_anew(op: Op) -> bool:
    """Whether an op, or one in a body of it, is the key of a draw without a seed."""
    pending = [op]
    for each in pending:
        if type(each) is RandomKey:
            return True
        pending += [node.op for program in each.bodies for node in program.nodes]
        pending += each.runs
    return False


def drawn_alike(op: Op) -> bool:
    """Whether an op in the body of a loop, or one in a body of it, is a key that all runs have."""
    pending = [(op, 1)]
    for each, loops in pending:
        if isinstance(each, RandomKey) and each.loops < loops:
            return True
        for body in each.bodies:
            inside = loops + body.outputs[0].graph.repeats
            pending += [(node.op, inside) for node in body.nodes]
    return False


def key_of(given: TensorLike | None, *near: Any) -> Tensor:
    """The key that is given as a seed; for None, one that no other draw and no other run has.

    near  what is drawn with it: where nobody entered a graph, the key is built in theirs
    """
    if given is None:
        return _next_key(graph_elsewhere(near))
    key = as_tensor(given)
    if kind_of(key.dtype) not in "iu" or key.shape != ():
        raise DTypeError(
            f"a seed is an int or a scalar integer tensor, got {key.type!r}; leave it out for "
            "numbers that are new in every run"
        )
    return key


def _next_key(graph: Graph | None) -> Tensor:
    if graph is not None:
        with GraphScope(graph, implicit=True):
            return _next_key(None)
    here = current()
    if here.answering.draws is not None:
        return call_key()
    return apply(RandomKey(root_of(here.graph).seed, _next_number()))


def call_key(number: int | None = None) -> Tensor:
    """The key of a draw of the rule that runs: one for each call that this call stands for.

    Each run of the loops around is such a call. In a trace the key stands for those of the calls
    that the trace is built anew for.

    number  that of the draw; None: the next one
    """
    here = current()
    loops = loops_around(here.graph)
    number = call_number() if number is None else number
    seed = root_of(here.graph).seed
    trace = trace_around(here.graph)
    if trace is None or _stays(here, trace):
        key = apply(RandomKey(seed, number, loops))
    else:  # where the trace is built anew, loops may be around it: their index is folded in there
        with GraphScope(trace):
            key = apply(RandomKey(seed, number))
    for loop in range(loops):
        key = apply(FoldIn(), key, apply(LoopIndex(loop)))
    return key


def _stays(here: Context, trace: Graph) -> bool:
    """Whether a key is built where it is drawn: in an open region, or of an example of a batch."""
    record: Context | None = here
    while record is not None and record.graph is not trace:
        if record.region is not None or record.graph.scratch:
            return True
        record = record.left
    return record is None or record.region is not None


def call_number() -> int:
    """The number of the next draw of the rule that runs."""
    draws: Draws = current().answering.draws
    return draws.next()


class Draws:
    """The numbers of what one call of a rule draws without a seed.

    around  those of the rule that asks for the gradient of which this is a part; None: none does
    again   gives, for a list of the numbers to come, what was drawn before where the call is
            another part of one: then it draws the same
    """

    __slots__ = ("_again", "_begun", "_made", "around")

    def __init__(self, around: Draws | None, again: Callable[[list[int]], Iterable[int]]) -> None:
        self.around = around
        self._again = again
        self._begun: Iterator[int] | None = None
        self._made: list[int] = []

    def next(self, known: int | None = None) -> int:
        """The number of the next draw. known: that, where a call within has drawn it before."""
        if self._begun is None:
            self._begun = iter(self._again(self._made))
        number = next(self._begun, known)
        if self.around is not None:
            number = self.around.next(number)
        elif number is None:
            number = _next_number()
        self._made.append(number)
        return number


def loops_around(graph: Graph) -> int:
    """How many loops a graph lies in; of a trace, those of the rule alone."""
    return sum([each.repeats for each in takewhile(_is_no_trace, bodies_around(graph))])


def trace_around(graph: Graph | None) -> Graph | None:
    """The innermost trace of a rule that a graph is or lies in."""
    return next((each for each in bodies_around(graph) if each.of_call), None)


def _is_no_trace(graph: Graph) -> bool:
    return not graph.of_call


def _next_number() -> int:
    """The number of the next draw in the current graph."""
    graph = current().graph
    trace = trace_around(graph)
    counts = root_of(graph) if trace is None else trace
    with _lock:
        number = counts.draws
        counts.draws = number + 1
    return number if trace is None else -1 - number


def numbers_for(source: Graph) -> int:
    """What is added here to the numbers of the draws of a graph that is imported, so that no other
    import of it, and no draw that is built here, has them. Nothing is, where nothing was drawn."""
    *_, home = bodies_around(source)
    *_, root = bodies_around(current().graph)
    if not home.draws:
        return 0
    with _lock:
        start = -(-root.draws // TOGETHER) * TOGETHER
        root.draws = start - (-home.draws // TOGETHER) * TOGETHER
    return start


def root_of(graph: Graph) -> Graph:
    """The graph that counts the draws of a graph: the one around all bodies."""
    *_, root = bodies_around(graph)
    return root


def draws_in(nodes: Iterable[Node]) -> set[int]:
    """The numbers of the draws without a seed among some nodes."""
    return {node.op.number for node in nodes if isinstance(node.op, RandomKey)}


def renumbered(op: Op, by: int) -> Op:
    """The key of another draw, for the key of a draw without a seed; any other op as it is."""
    return op.replace(number=op.number + by) if by and isinstance(op, RandomKey) else op


def seed(value: int) -> None:
    """Set the seed of the current graph: of what is drawn without one by what is built from now on.

    Such a draw has the key `fold_in(fold_in(value, number), run)`: number counts the draws without
    a seed as they are built in the graph, run the runs that its State has seen of programs with
    such draws. `gg.Graph(seed=value)` sets it from the start; it is 0 else. What is imported keeps
    its graph's seed, and each import has numbers of its own.

    Parameters: value: an int.

    Returns: nothing.

    Raises: TypeError for input that is not an int.

    >>> def first():
    ...     with gg.Graph():
    ...         gg.random.seed(5)
    ...         return gg.evaluate(gg.random.normal((2,)))
    >>> bool((first() == first()).all())
    True
    """
    *_, root = bodies_around(current().graph)
    root.seed = whole("seed", value)


@documented(RandomBits)
def split(key: TensorLike, n: int = 2) -> Tensor:
    """n keys made of one, for draws that are independent of one another.

    Parameters:
        key: an int or a scalar integer tensor.
        n: how many.

    Returns: a tensor (n,), int64: entry i is `fold_in(key, i)`, and a seed.

    Raises: DTypeError for a key that is not an integer; ShapeError for a negative n.

    Source: words of Philox [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"].

    >>> a, b = gg.random.split(7)
    >>> len({int(k) for k in gg.evaluate([a, b, gg.random.fold_in(7, 1)])})
    2
    """
    return apply(RandomBits(lengths_of((n,)), as_dtype("int64"), "key"), key_of(as_tensor(key)))


@documented(FoldIn)
def fold_in(key: TensorLike, data: TensorLike) -> Tensor:
    """A key made of a key and a number, such as that of a step, a layer or an example.

    Parameters:
        key: an int or an integer tensor.
        data: an int or an integer tensor; the two broadcast. Only 64 bits of it count.

    Returns: a tensor of the broadcast shape, int64; where that is (), a seed.

    Raises: DTypeError for input that is not an integer; ShapeError where the two do not broadcast.

    Source: words of Philox [Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"].

    >>> step = gg.placeholder((), "int64")
    >>> u = gg.random.uniform((), seed=gg.random.fold_in(7, step))
    >>> bool(gg.evaluate(u, {step: 0}) != gg.evaluate(u, {step: 1}))
    True
    """
    return apply(FoldIn(), as_tensor(key), as_tensor(data))
