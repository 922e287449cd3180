"""Where two executions of one graph part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.kinds import is_inexact
from ..base.words import visible
from ..compiled import compile
from ..ir.graph import restored
from ..ir.node import Node, Tensor
from ..ir.state import State
from ..ir.types import Array
from .rounding import allowed, distance, noise
from .running import KERNELS, Evaluation, Given, Ran
from .words import described, who

__all__ = ["Divergence", "compare"]

Held = dict[Tensor, Array]
"""What tensors were in one execution."""


class Divergence(NamedTuple):
    """The first tensor, in the order of running, that two executions disagree on.

    tensor          which
    first, second   what each made of it
    worst           |first - second| at the worst place
    allowed         the difference that was allowed there
    tolerance       what that is, in words
    at              where that is
    alone           True where it shows only when the tensor is the only output: keeping the values
                    on the way alive hides it, as other nodes are fused then

    >>> x = gg.constant([1.0, 2.0])
    >>> found = gg.debug.compare(gg.exp(x), tolerance=-1.0)  # nothing is near enough
    >>> found.tensor is x, found.worst
    (True, 0.0)
    """

    tensor: Tensor
    first: Array
    second: Array
    worst: float
    allowed: float
    tolerance: str
    at: tuple[int, ...]
    alone: bool

    def __str__(self) -> str:
        t = self.tensor
        row = f"{visible(t.name)}: {t.type!r}, made by {who(t.node)}, "
        if self.first.shape != self.second.shape:
            return f"{row}is {described(self.first)} or {described(self.second)}"
        alone = "\n  only if it is fetched alone, since other nodes are fused then"
        return (
            f"{row}differs by {self.worst:.3g} at {list(self.at)}:\n"
            f"  {self.first[self.at]!r}, in {described(self.first)}\n"
            f"  {self.second[self.at]!r}, in {described(self.second)}\n"
            f"  allowed there: {self.allowed:.3g}, {self.tolerance}" + (alone if self.alone else "")
        )


@restored
def compare(
    outputs: Any,
    feeds: Given = None,
    *,
    backends: Sequence[Any] | None = None,
    optimize: Sequence[bool] = (False, True),
    tolerance: float | None = None,
    state: State | None = None,
) -> Divergence | None:
    """The first tensor on the way to outputs on which two executions differ, or None.

    A node is judged by what it makes of what it read in the same execution, so that rounding does
    not add up on the way: where the two differ, each is compared with the op's own kernel on the
    same inputs. NaN equals NaN, inf equals inf of the same sign. Numbers drawn at random are not
    compared: backends draw different ones.

    Parameters:
        outputs: a tensor or any nesting of them, what gg.compile or gg.function made.
        feeds: {tensor or name: array}; of a compiled function its arguments in a tuple too, of a
            gg.function only those.
        backends: one for each of the two executions; NumPy and "auto", or the compiled function's
            own, by default.
        optimize: one entry for each of the two executions.
        tolerance: None allows what rounding can do: 16 sqrt(terms) times what the last bit of each
            input moves, and the last bit of the result; terms is how many numbers are added up. A
            number instead allows that difference, relative to 1 + |first|, between the two.
        state: where variables live; the graph's own by default.

    Returns: a Difference, or None.

    Raises: ValueError where there are not two backends or not two of optimize; what running raises.

    >>> x = gg.placeholder((2,))
    >>> print(gg.debug.compare(gg.tanh(x), {x: [1.0, 2.0]}))
    None
    """
    question = Evaluation(outputs, feeds, state)
    if backends is None:
        backends = ("numpy", "auto" if question.backend is None else question.backend)
    for what, pair in (("backends", backends), ("optimize", optimize)):
        if len(pair) != 2:
            raise ValueError(f"compare() runs twice: {what} takes two entries, got {pair!r}")
    runs = _Runs(question, backends, optimize)
    judge = _Direct(tolerance) if tolerance is not None else _Rounding(question)
    return runs.first(judge)


class _Runs:
    """Two executions of one question."""

    def __init__(
        self, question: Evaluation, backends: Sequence[Any], optimize: Sequence[bool]
    ) -> None:
        self.question = question
        self.ways = list(zip(backends, optimize, strict=True))
        self.inputs = list(question.given)[: question.fed]
        self.arrays = [question.given[t] for t in self.inputs]

    def of(self, tensors: Sequence[Tensor]) -> list[Held]:
        """The values of tensors, of each execution."""
        state = self.question.state
        made = [
            compile(self.inputs, list(tensors), backend=b, optimize=o, state=state)(*self.arrays)
            for b, o in self.ways
        ]
        return [dict(zip(tensors, arrays, strict=True)) for arrays in made]

    def first(self, judge: _Direct | _Rounding) -> Divergence | None:
        """What they differ in first: with all values kept, else with one output alone."""
        given = set(self.question.given)
        nodes = self.question.program.nodes
        on_the_way = [t for n in nodes for t in n.outputs if t not in given]
        kept = self.of(on_the_way)
        known = [{**self.question.given, **made} for made in kept]
        for node in nodes:
            divergence = judge.node(node, known[0], known[1])
            if divergence is not None:
                return divergence
        wanted = list(dict.fromkeys(t for t in self.question.outputs if t not in given))
        if self._alone(judge, wanted, known) is None:
            return None
        for t in on_the_way:  # what is kept alive for looking changes what is fused
            divergence = self._alone(judge, [t], known)
            if divergence is not None:
                return divergence
        return self._alone(judge, wanted, known)

    def _alone(
        self,
        judge: _Direct | _Rounding,
        tensors: list[Tensor],
        kept: list[Held],
    ) -> Divergence | None:
        if not tensors:
            return None
        return next(judge.alone(tensors, self.of(tensors), kept), None)


class _Direct:
    """The two values of a tensor may differ by a number, relative to 1 + |first|."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.words = f"{tolerance:g} (1 + |first|), as asked"

    def node(self, node: Node, first: Held, second: Held) -> Divergence | None:
        """Where the results of a node differ."""
        for t in node.outputs:
            if t in first and not _is_drawn(node):
                divergence = self._found(t, first[t], second[t], alone=False)
                if divergence is not None:
                    return divergence
        return None

    def alone(
        self, tensors: Sequence[Tensor], made: list[Held], kept: list[Held]
    ) -> Iterator[Divergence]:
        """Where tensors differ that were the only outputs."""
        for t in tensors:
            divergence = self._found(t, made[0][t], made[1][t], alone=True)
            if divergence is not None:
                yield divergence

    def _found(self, t: Tensor, a: Array, b: Array, *, alone: bool) -> Divergence | None:
        exact = not is_inexact(a.dtype)
        with np.errstate(all="ignore"):
            room = np.zeros(a.shape) if exact else self.tolerance * (1.0 + np.abs(a))
        return _beyond(t, a, b, np.asarray(room), self.words, alone=alone)


class _Rounding:
    """Each value may be as far from what the kernel makes of the same inputs as rounding brings it.

    Of what is computed alone no inputs are seen: it is compared with the same execution's value
    where all were kept, and may differ by what rounding does over the whole graph.
    """

    words = "the rounding error of this node"
    words_alone = "the rounding error accumulated up to it"

    def __init__(self, question: Evaluation) -> None:
        self.question = question
        self.given = set(question.given)
        self.noises: Held = {}

    def node(self, node: Node, first: Held, second: Held) -> Divergence | None:
        """Where the results of a node differ, and one of them is not what its inputs give."""
        if _is_drawn(node) or _equal(node, first, second):
            return None
        ran = [_ran(node, values) for values in (first, second)]
        rooms = [allowed(one) for one in ran]
        for i, t in enumerate(node.outputs):
            a, b = first[t], second[t]
            if t in self.given:
                continue
            if a.shape != b.shape:
                return _beyond(t, a, b, np.zeros(a.shape), self.words, alone=False)
            room = np.maximum(rooms[0][i], rooms[1][i])
            right = [
                distance(values[t], one.outputs[i]) <= room
                for values, one in zip((first, second), ran, strict=True)
            ]
            divergence = _beyond(t, a, b, np.where(right[0] & right[1], np.inf, room), self.words)
            if divergence is not None:
                return divergence
        return None

    def alone(
        self, tensors: Sequence[Tensor], made: list[Held], kept: list[Held]
    ) -> Iterator[Divergence]:
        """Where tensors that were the only outputs are not what they are where all were kept."""
        for t in tensors:
            for values, known in zip(made, kept, strict=True):
                if _same(known[t], values[t]):
                    continue
                room, words = self._noise(t), self.words_alone
                divergence = _beyond(t, known[t], values[t], room, words, alone=True)
                if divergence is not None:
                    yield divergence

    def _noise(self, t: Tensor) -> Array:
        if not self.noises:
            self.noises = noise(self.question)
        return self.noises[t]


def _is_drawn(node: Node) -> bool:
    """Whether a node draws random numbers, or does what cannot be done again for looking."""
    return not node.op.pure or hasattr(node.op, "draw")


def _equal(node: Node, first: Held, second: Held) -> bool:
    return all(_same(first[t], second[t]) for t in node.outputs if t in first)


def _same(a: Array, b: Array) -> bool:
    return bool(np.array_equal(a, b, equal_nan=is_inexact(a.dtype)))


def _ran(node: Node, values: Held) -> Ran:
    """What the op's own kernel makes of the values that an execution had."""
    inputs = tuple([values[t] for t in node.inputs])
    with np.errstate(all="ignore"):
        made = KERNELS.of(node.op)(*inputs)
    return Ran(node, inputs, tuple(made) if len(node.outputs) > 1 else (made,))


def _beyond(
    t: Tensor, a: Array, b: Array, room: Array, tolerance: str, *, alone: bool = False
) -> Divergence | None:
    """The place where a and b differ by the largest multiple of what is allowed."""
    if a.shape != b.shape:
        return Divergence(t, a, b, np.inf, 0.0, tolerance, (), alone)
    off = distance(a, b)
    if not (off > room).any():
        return None
    with np.errstate(all="ignore"):
        share = np.where(off > room, off / room, 0.0)
    share[np.isnan(share)] = np.inf
    at = tuple(map(int, np.unravel_index(np.argmax(share), share.shape)))
    return Divergence(t, a, b, float(off[at]), float(room[at]), tolerance, at, alone)
