"""Conditionals with two branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import ClassVar, overload

from ...base.errors import ShapeError
from ...base.lazy import LazyMethod
from ...base.position import caller, show
from ...base.tree import flatten, paths, unflatten
from ...ir.build import adopted
from ...ir.graph import current
from ...ir.program import Program
from ...ir.typed import Leaf, X
from ..base import (
    Any,
    Derivative,
    DTypeError,
    Op,
    Shape,
    Tensor,
    TensorType,
    Types,
    as_tensor,
    build,
    kind_of,
    tensor_type,
)
from ..documented import documented
from .bodies import BodyGraph, as_outputs, check_takes, constants_of, run, traced


class Cond(Op, interned=False):
    """The outputs of one of two programs, chosen by a bool.

    Gradient: that of the branch that is taken.

    Inputs: the bool, then what the bodies read; `reads` says which inputs each body takes.
    """

    programs: tuple[Program, Program]
    reads: tuple[tuple[int, ...], tuple[int, ...]]
    derivative = Derivative(linear_zero=False, sparse=True, relevance="moved")
    body_names = ("then", "else")

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

    def check_bodies(self, *types: TensorType) -> None:
        """The bool is one, and each body takes what it reads of the rest."""
        pred, *rest = types
        if pred.shape != () or kind_of(pred.dtype) != "b":
            raise ShapeError(f"a choice goes by a bool without axes, got {pred!r}")
        for program, reads in zip(self.programs, self.reads, strict=True):
            check_takes(program, [rest[i] for i in reads])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return self.drive([partial(run, xp, body) for body in self.programs], arrays)

    def drive(self, bodies: Sequence[Callable[..., Any]], arrays: Sequence[Any]) -> Any:
        """The outputs by a call of one of the bodies, as functions of arrays."""
        pred, *rest = arrays
        branch = 0 if pred else 1
        outputs = bodies[branch](*[rest[i] for i in self.reads[branch]])
        return outputs[0] if len(outputs) == 1 else outputs

    vjp: ClassVar[Any] = LazyMethod("graphgrad.differentiate.control.choice")

    def to_onnx(self, to: Any, pred: Any, *xs: Any) -> Any:
        """An If: its branches read the values around it."""

        def branch(body: Program, reads: tuple[int, ...]) -> Any:
            return to.subgraph(lambda to: to.program(body, *[xs[i] for i in reads]))

        then, other = map(branch, self.programs, self.reads)
        types = self.infer(*[to.type_of(x) for x in (pred, *xs)])
        return to.If(pred, then_branch=then, else_branch=other, types=types)

    def __repr__(self) -> str:
        then, other = self.programs
        return f"Cond(then {len(then.nodes)} nodes, else {len(other.nodes)} nodes)"


@overload
def cond(pred: Any, then: Callable[[], X], otherwise: Callable[[], X]) -> X: ...
@overload
def cond(pred: Any, then: Callable[[], Leaf], otherwise: Callable[[], Leaf]) -> Tensor: ...
@documented(Cond)
def cond(pred: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Compute then() if pred is true, otherwise otherwise(); the other branch is not computed.

    Op-type maps and regions around the call also apply inside the branches.

    Parameters:
        pred: a 0-d bool tensor; a Python bool selects the branch while the graph is built.
        then, otherwise: functions without arguments that return tensors, with the same structure
            and dtypes. They may read tensors of the surrounding graph.

    Returns: the structure of tensors that the branches return; lengths in which they differ are
    unknown.

    Raises: ShapeError for a pred with axes (use gg.where to choose element by element), and where
    structures or ranks differ; DTypeError for a pred that is not a bool, and where dtypes differ;
    StateError for a placeholder, variable or assign() in a branch; TypeError for input that
    is not a function.

    >>> x = gg.constant(-2.0)
    >>> y = gg.cond(x > 0, lambda: x * x, lambda: -x)
    >>> gg.evaluate([y, gg.gradients(y, x)])
    [array(2.), array(-1.)]
    """
    for fn in (then, otherwise):
        if not callable(fn):
            raise TypeError(f"the branches of cond() are functions without arguments, got {fn!r}")
    if isinstance(pred, bool):
        return then() if pred else otherwise()
    test = as_tensor(pred)
    if test.ndim:
        raise ShapeError(
            f"cond() takes a single bool, got {test.name}: {test.type!r} (built at {test.where}).\n"
            "To choose element by element, use gg.where(condition, x, y)."
        )
    if kind_of(test.dtype) != "b":
        raise DTypeError(f"cond() takes a bool, got {test.type!r} (built at {test.where})")
    return chosen("cond()", "the branches", test, then, otherwise)


def chosen(
    fn: str,
    branches: str,
    pred: Tensor,
    then: Callable[[], Any],
    otherwise: Callable[[], Any],
) -> Any:
    """The choice that a function of this name makes. branches: what errors call the two."""
    (test,) = adopted((pred,))
    context = current()
    outer = test.graph if context.implicit else context.graph
    assert outer is not None
    at = show(caller())
    bodies = [BodyGraph(outer, f"{name} of {fn[:-2]} at {at}") for name in ("then", "else")]
    results = [
        traced(body, make, f"a branch of {fn}")
        for body, make in zip(bodies, (then, otherwise), strict=True)
    ]
    leaves = [flatten(r) for r in results]
    _check_alike(f"{branches} of {fn} at {at}", leaves, results)
    outputs = [as_outputs(b, ts) for b, ts in zip(bodies, leaves, strict=True)]
    _check_types(f"{branches} of {fn} at {at}", *outputs)
    return unflatten(results[0], choose(test, bodies, outputs, whole=True))


def choose(
    pred: Tensor,
    bodies: Sequence[BodyGraph],
    outputs: Sequence[Sequence[Tensor]],
    whole: bool = False,
) -> tuple[Tensor, ...]:
    """The node that chooses between outputs of two bodies, on the tensors that these capture.

    whole  on all of them, those that the outputs do not depend on included
    """
    slots: dict[tuple[Tensor, int], int] = {}
    programs, reads = [], []
    for body, wanted in zip(bodies, outputs, strict=True):
        taken = constants_of(body, wanted, whole=whole)
        programs.append(Program(taken, wanted))
        nth = defaultdict[Tensor, Iterator[int]](count)  # of the slots of a body for one tensor
        keys = [(outer, next(nth[outer])) for outer in taken.values()]
        reads.append(tuple([slots.setdefault(key, len(slots)) for key in keys]))
    op = Cond(tuple(programs), tuple(reads))  # type: ignore[arg-type]
    return build(op, (pred, *[outer for outer, _ in slots])).outputs


def _check_alike(what: str, leaves: list[list[Any]], results: list[Any]) -> None:
    then, other = leaves
    places, others = (list(paths(tree)) for tree in results)
    if places != others or any(x is None for x in (*then, *other)):
        raise ShapeError(
            f"{what} must return the same structure of tensors, got {results[0]!r} and "
            f"{results[1]!r}"
        )


def _check_types(what: str, then: Sequence[Tensor], other: Sequence[Tensor]) -> None:
    for a, b in zip(then, other, strict=True):
        both = " and ".join(f"{t.name}: {t.type!r} ({t.where})" for t in (a, b))
        if a.dtype is not b.dtype:
            raise DTypeError(f"{what} return {both}; cast one of them")
        if a.ndim != b.ndim:
            raise ShapeError(
                f"{what} return {both}: they must have the same rank, reshape one of them"
            )


def _common(a: Shape, b: Shape) -> Shape:
    """What is known of a shape that is one of two."""
    if len(a) != len(b):
        raise ShapeError(f"the branches of a choice return {list(a)} and {list(b)}: ranks differ")
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
