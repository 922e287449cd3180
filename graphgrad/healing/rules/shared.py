"""What rules have in common."""

from __future__ import annotations

from typing import Any

from ...ops.elementwise.exponential import Sigmoid
from ...ops.elementwise.trigonometry import Asin, Atan, Sin, Sinh, Tan
from ...ops.nn.activations import Softplus
from ...ops.shape.joining import Split, Unstack
from ...ops.shape.reshaping import ExpandDims, Reshape, Squeeze, Transpose
from ...ops.shape.slicing import Slice
from ...ops.special.error import Erf, Erfc
from ..reading import Fit
from ..terms import CALL, SUM, CancelsError, Term, Terms

SIGMOID, SOFTPLUS, ERF, ERFC = Sigmoid(), Softplus(), Erf(), Erfc()
SIN, SINH, TAN, ATAN, ASIN = Sin(), Sinh(), Tan(), Atan(), Asin()
MOVES = (Slice, Reshape, ExpandDims, Squeeze, Transpose, Split, Unstack, Fit)
"""What only moves elements, so that a function of each may be taken before."""


def called(term: Term, key: Any) -> bool:
    """Whether a term is a call of an op, or of an op of a class."""
    return term.kind == CALL and (term.key is key or type(term.key) is key)


def in_shape(terms: Terms, term: Term, like: Term) -> Term:
    """A term in the shape of another; CancelsError for one with lengths unknown."""
    shape = like.shape
    if None in shape and term.shape != shape:
        raise CancelsError
    return term if term.shape == shape else terms.call(Fit.to(shape), term, shape=shape)


def two(term: Term) -> list[tuple[Term, float]] | None:
    """The terms of a sum of two; a constant counts as one, and is not among them."""
    if term.kind != SUM or len(term.parts) + bool(term.key) != 2:
        return None
    return list(term.parts)


def simpler(terms: Terms, a: Term, b: Term, p: float = 1.0, q: float = 1.0) -> Term | None:
    """p a - q b, if parts of it vanish and it does not change sign by rounding alone."""
    xs, c = terms.addends(a)
    ys, d = terms.addends(b)
    gap = terms.add([(a, p), (b, -q)], loose=True)
    parts, const = terms.addends(gap)
    before = len(xs) + len(ys) + bool(c) + bool(d)
    after = len(parts) + bool(const)
    return gap if 0 < after <= before - 2 else None
