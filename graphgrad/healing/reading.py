"""The term of a tensor: what its node computes, of the terms of what it reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from ..base.kinds import kind_of, limits_of
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Shape
from ..ops.contract.einsum import Einsum, einsum_terms
from ..ops.elementwise.accumulate import AddN
from ..ops.elementwise.arithmetic import Add, Divide, Multiply, Negative, Subtract
from ..ops.elementwise.exponential import EXP, LOG, SQRT, Exp, Log, Log1p, Log2, Log10, Sqrt
from ..ops.elementwise.powers import Power, Reciprocal, Square
from ..ops.reduce.reductions import ReduceMean, ReduceSum, Reduction
from ..ops.shape.reshaping import BroadcastLike, BroadcastTo, ExpandDims, Reshape
from ..ops.shape.slicing import FULL, Slice
from ..ops.sources import Identity
from ..optimise.facts import uniform_value
from .terms import CALL, PRODUCT, SUM, CancelsError, Term, Terms

WHOLE_POWERS = 64  # the largest exponent that is read as a product
DEEP = 8  # how far below new axes a sum is looked for


class Fit:
    """A call that gives a term another shape by broadcasting, or by axes of length 1."""

    __slots__ = ("shape",)
    _known: dict[Shape, Fit] = {}

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @classmethod
    def to(cls, shape: Shape) -> Fit:
        """The one call for a shape."""
        return cls._known.setdefault(shape, cls(shape))


class OutputOf:
    """A call of an op of several outputs: one of these."""

    __slots__ = ("index", "op")
    _known: dict[tuple[Op, int], OutputOf] = {}

    def __init__(self, op: Op, index: int) -> None:
        self.op, self.index = op, index

    @classmethod
    def of(cls, op: Op, index: int) -> Any:
        """The one call of an output of an op; the op itself where it has one output."""
        return cls._known.setdefault((op, index), cls(op, index))


class Reader:
    """Reads the terms of nodes whose inputs were read.

    of   tensor -> its term
    at   the node that is read
    unit  the rounding of its dtype, and so of numbers in it
    """

    def __init__(self) -> None:
        self.terms = Terms(EXP)
        self.of: dict[Tensor, Term] = {}
        self.at: Node | None = None
        self.unit = 0.0

    def term(self, t: Tensor) -> Term:
        """The term of a tensor; of one that was not read, itself."""
        known = self.of.get(t)
        if known is None:
            known = self.of[t] = self.terms.atom(t)
        return known

    def _number(self, t: Tensor) -> Term | None:
        """The number that was written in the expression that is read: 1 in 1 + exp(x).

        A constant from another line may be one that somebody differentiates by.
        """
        if self.at is None or t.node.position != self.at.position or kind_of(t.dtype) not in "fiu":
            return None
        value = uniform_value(t)
        if value is None or not math.isfinite(value):
            return None
        return self.terms.number(float(value))

    def shaped(self, term: Term, t: Tensor) -> Term:
        """The term of a tensor in its shape; the tensor itself where that has lengths unknown."""
        self.terms.note_written(term)
        if term.shape == t.shape:
            return term
        if None in t.shape:
            return self.terms.atom(t)
        return self.terms.call(Fit.to(t.shape), term, shape=t.shape)

    def loose(self, t: Tensor) -> Term:
        """The term of an operand that broadcasts."""
        term = self._number(t) or self.term(t)
        while term.kind == CALL and isinstance(term.key, Fit):
            term = term.parts[0]
        return term

    def read(self, node: Node) -> None:
        """Note the terms of a node's outputs."""
        self.at = node if len(node.inputs) > 1 else None
        if node.outputs and is_real(node.outputs[0]):
            self.unit = float(limits_of(node.outputs[0].dtype).eps)
        if len(node.outputs) != 1 or node.controls or not is_real(node.outputs[0]):
            for t in node.outputs:
                self.of[t] = self._opaque(node, t)
            return
        (y,) = node.outputs
        reading = READINGS.get(type(node.op))
        term = None
        if reading is not None and all(map(is_real, node.inputs)):
            try:
                term = reading(self, node)
            except CancelsError:
                term = None
        if term is None:
            term = self._opaque(node, y)
        self.of[y] = self.shaped(term, y)

    def _opaque(self, node: Node, y: Tensor) -> Term:
        """A call of the op, of which nothing else is known."""
        op = node.op
        if not node.inputs or not op.pure or op.bodies or node.controls or not is_real(y):
            return self.terms.atom(y)
        if len(node.outputs) > 1:
            args = [self.term(t) for t in node.inputs]
            return self.terms.call(OutputOf.of(op, y.index), *args, shape=y.shape)
        if op.elementwise:
            args = [self.loose(t) for t in node.inputs]
            term = self.terms.call(op, *args)
            return term if all(is_real(t) for t in node.inputs) else self.terms.atom(y)
        args = [self.term(t) for t in node.inputs]
        if op.memory.reshapes or type(op) is Slice:
            inner = args[0]
            if inner.kind == CALL and inner.key is EXP and inner.parts[0].shape == inner.shape:
                return self.terms.call(EXP, self.terms.call(op, inner.parts[0], shape=y.shape))
        return self.terms.call(op, *args, shape=y.shape)


def is_real(t: Tensor) -> bool:
    """Whether a tensor is floating and real."""
    return bool(t.type.differentiable) and kind_of(t.dtype) != "c"


# --- what ops compute ---------------------------------------------------------------------------


def _add(r: Reader, node: Node) -> Term:
    return r.terms.add([(r.loose(t), 1.0) for t in node.inputs])


def _subtract(r: Reader, node: Node) -> Term:
    x, y = map(r.loose, node.inputs)
    return r.terms.add([(x, 1.0), (y, -1.0)])


def _negative(r: Reader, node: Node) -> Term:
    return r.terms.scaled(r.loose(node.inputs[0]), -1.0)


def _multiply(r: Reader, node: Node) -> Term:
    x, y = map(r.loose, node.inputs)
    for a, b in ((x, y), (y, x)):
        if a.is_number:
            return _times(r, b, a.key)
    return r.terms.multiply([(x, 1), (y, 1)])


def _times(r: Reader, term: Term, c: float) -> Term:
    if c == 0 or not math.isfinite(c):
        raise CancelsError
    return r.terms.scaled(term, c)


def _divide(r: Reader, node: Node) -> Term:
    x, y = map(r.loose, node.inputs)
    if y.is_number:
        return _times(r, x, 1 / y.key if y.key else 0.0)
    return r.terms.multiply([(x, 1), (y, -1)])


def _square(r: Reader, node: Node) -> Term:
    return r.terms.multiply([(r.loose(node.inputs[0]), 2)])


def _reciprocal(r: Reader, node: Node) -> Term:
    return r.terms.multiply([(r.loose(node.inputs[0]), -1)])


def _power(r: Reader, node: Node) -> Term | None:
    x, y = map(r.loose, node.inputs)
    if not y.is_number or x.is_number:
        return None
    c = y.key
    if c == 0.5:
        return r.terms.call(SQRT, x)
    if c == -0.5:
        return r.terms.multiply([(r.terms.call(SQRT, x), -1)])
    if c == round(c) and 0 < abs(c) <= WHOLE_POWERS:
        return r.terms.multiply([(x, round(c))])
    return None


def _sqrt(r: Reader, node: Node) -> Term:
    return r.terms.call(SQRT, r.loose(node.inputs[0]))


def _exp(r: Reader, node: Node) -> Term:
    return r.terms.call(EXP, r.loose(node.inputs[0]))


def _log(r: Reader, node: Node) -> Term:
    return r.terms.call(LOG, r.loose(node.inputs[0]))


def _log_to(base: float) -> Callable[[Reader, Node], Term]:
    return lambda r, node: r.terms.scaled(_log(r, node), 1 / math.log(base))


def _log1p(r: Reader, node: Node) -> Term:
    return r.terms.call(LOG, r.terms.add([(r.loose(node.inputs[0]), 1.0)], 1.0))


def _identity(r: Reader, node: Node) -> Term:
    return r.term(node.inputs[0])


def _broadcast(r: Reader, node: Node) -> Term:
    return r.loose(node.inputs[0])


def reduced(terms: Terms, op: Any, x: Term, shape: Shape) -> Term:
    """A sum or mean of a term, with its number in front; axes in front are kept where all go."""
    inner, c = terms.monomial(x)
    if inner.shape != x.shape or inner.is_number:
        inner, c = x, 1.0
    if op.axes == tuple(range(len(op.axes))) and not op.keepdims:
        op = type(op)(op.axes, True)
        shape = (*(1,) * len(op.axes), *shape)
    return terms.scaled(terms.call(op, inner, shape=shape), c)


def _reduce(r: Reader, node: Node) -> Term:
    x = _fitted_within(r.terms, r.term(node.inputs[0]))
    return reduced(r.terms, node.op, x, node.outputs[0].shape)


def _fitted_within(terms: Terms, term: Term) -> Term:
    """A term without axes in front, as its parts without them: so it is met as what it is."""
    if term.kind != CALL or not isinstance(term.key, Fit):
        return term
    (inner,), shape = term.parts, term.shape
    more = len(inner.shape) - len(shape)
    if more <= 0 or inner.shape[more:] != shape:
        return term

    def fitted(t: Term) -> Term:
        less = t.shape[max(0, len(t.shape) - len(shape)) :]
        if t.kind == CALL and t.key in (EXP, LOG):
            return terms.call(t.key, fitted(t.parts[0]))
        return t if less == t.shape else terms.call(Fit.to(less), t, shape=less)

    if inner.kind == SUM:
        return terms.add([(fitted(t), c) for t, c in inner.parts], inner.key, loose=True)
    if inner.kind == PRODUCT:
        return terms.multiply([(fitted(t), e) for t, e in inner.parts], loose=True)
    return fitted(inner)


def _more_axes(r: Reader, node: Node) -> Term | None:
    """New axes of length 1: a sum, and a function of one, keeps those that it took out."""
    (x,), (y,) = node.inputs, node.outputs
    fits = _put_in(node.op, x.shape, y.shape)
    if fits is None:
        return None
    if fits(tuple(range(y.ndim - x.ndim))):
        return r.loose(x)
    return _kept(r.terms, r.term(x), fits, y.shape)


def _einsum(r: Reader, node: Node) -> Term | None:
    """A sum of products of elements at equal places."""
    (first, *others), out = einsum_terms(node.op.equation)  # type: ignore[attr-defined]
    if any(term != first for term in others) or [c for c in first if c in out] != list(out):
        return None
    axes = tuple([i for i, c in enumerate(first) if c not in out])
    if not axes or any(t.shape != node.inputs[0].shape for t in node.inputs):
        return None
    product = r.terms.multiply([(r.term(t), 1) for t in node.inputs])
    return reduced(r.terms, ReduceSum(axes, False), product, node.outputs[0].shape)


Fits: TypeAlias = Callable[[tuple[int, ...]], bool]


def _put_in(op: Any, x: Shape, y: Shape) -> Fits | None:
    """Whether axes may be those that an op puts in; None for an op that does something else."""
    if isinstance(op, ExpandDims):
        return lambda axes: axes == op.axes
    if isinstance(op, Slice):
        key = [*op.key, *[FULL] * (len(y) - len(op.key))]
        new = tuple([i for i, item in enumerate(key) if item is None])
        return (lambda axes: axes == new) if all(k is None or k == FULL for k in key) else None
    ones = len(y) - len(x)
    return lambda axes: (
        len(axes) == ones
        and all(y[i] == 1 for i in axes)
        and tuple([d for i, d in enumerate(y) if i not in axes]) == x
    )


def _kept(terms: Terms, term: Term, fits: Fits, shape: Shape, deep: int = DEEP) -> Term | None:
    """A term with axes put in where a sum in it, or in each part of it, took them out."""
    if term.shape == () or not deep:
        return term if term.shape == () else None
    if term.kind in (SUM, PRODUCT):
        kept = [(_kept(terms, t, fits, shape, deep - 1), c) for t, c in term.parts]
        parts = [(t, c) for t, c in kept if t is not None]
        if len(parts) < len(kept):
            return None
        if term.kind == SUM:
            return terms.add(parts, term.key, loose=True)
        return terms.multiply(parts, loose=True)
    key = term.key
    if (
        term.kind == CALL
        and is_elementwise(key)
        and all(t.shape in (term.shape, ()) for t in term.parts)
    ):
        args = [_kept(terms, t, fits, shape, deep - 1) for t in term.parts]
        known = [t for t in args if t is not None]
        return terms.call(key, *known) if len(known) == len(args) else None
    keeps = _keeping(key, fits)
    return None if keeps is None else terms.call(keeps, *term.parts, shape=shape)


def is_elementwise(key: Any) -> bool:
    """Whether what a term calls works element by element, for all that is known."""
    if isinstance(key, Op):
        return key.elementwise and key.pure
    return getattr(key, "options", None) == ()


def _keeping(key: Any, fits: Fits) -> Any:
    """What is called in a term, with the axes kept that it takes out; None where it takes none."""
    if isinstance(key, Reduction):
        return type(key)(key.axes, True) if not key.keepdims and fits(key.axes) else None
    axes, *keep = getattr(key, "options", None) or [()]
    return key.of(key.fn, axes, True) if keep == [False] and fits(axes) else None


READINGS: dict[type[Op], Callable[[Reader, Node], Term | None]] = {
    Add: _add,
    AddN: _add,
    Subtract: _subtract,
    Negative: _negative,
    Multiply: _multiply,
    Divide: _divide,
    Square: _square,
    Reciprocal: _reciprocal,
    Power: _power,
    Sqrt: _sqrt,
    Exp: _exp,
    Log: _log,
    Log1p: _log1p,
    Log2: _log_to(2.0),
    Log10: _log_to(10.0),
    Identity: _identity,
    BroadcastTo: _broadcast,
    BroadcastLike: lambda r, node: r.loose(node.inputs[0]),
    ReduceSum: _reduce,
    ReduceMean: _reduce,
    Einsum: _einsum,
    ExpandDims: _more_axes,
    Reshape: _more_axes,
    Slice: _more_axes,
}
