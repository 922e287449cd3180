"""Einsums as what they are made of: transposes, sums, products, and matrix products.

The sign of a zero may be another one: NumPy's einsum itself makes it 0.0 on some ways and -0.0 on
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ops.contract.einsum import Contraction, Einsum, contraction, einsum_terms, renamed
from ...ops.contract.products import MatMul
from ...ops.elementwise.arithmetic import MULTIPLY
from ...ops.reduce.reductions import ReduceSum
from ...ops.shape.reshaping import Reshape, Transpose
from ..build import beside, instead
from ..facts import elements, ints
from ..rule import ROUNDING, NodeOf, RewriteRule, rule

Operand: TypeAlias = tuple[Tensor, str]
"""A tensor, and the letters of its axes."""

EXHAUSTIVE = 5  # operands; the order of more is chosen pair by pair


@rule(Einsum, level=ROUNDING)
def einsum_of_one(node: NodeOf[Einsum]) -> Tensor | None:
    """einsum("ab->ba", x) -> x^T; einsum("ab->a", x) -> x summed over b"""
    terms, out = einsum_terms(node.op.equation)
    if len(terms) != 1:
        return None
    (x,), (term,) = node.inputs, terms
    x, kept = _summed(node, x, term, "".join([letter for letter in term if letter not in out]))
    return _ordered(node, x, kept, out)


@rule(Einsum, level=ROUNDING)
def einsum_of_two(node: NodeOf[Einsum]) -> Tensor | None:
    """einsum("ab,bc->ac", x, y) -> x @ y, with stacks; without a sum, x * y"""
    terms, out = einsum_terms(node.op.equation)
    if len(terms) != 2 or not _plain(node, terms):
        return None
    letters = contraction(terms[0], terms[1], out)
    x, y = map(_summed, (node, node), node.inputs, terms, letters.alone)
    if not letters.inner:
        return instead(node, MULTIPLY, _spread(node, *x, out), _spread(node, *y, out))
    return _as_matmul(node, x, y, letters, out)


@rule(Einsum, level=ROUNDING)
def einsum_of_many(node: NodeOf[Einsum]) -> Tensor | None:
    """einsum("ab,bc,cd->ad", x, y, z) -> einsum("ab,bc->ac", einsum("ab,bc->ac", x, y), z)"""
    terms, out = einsum_terms(node.op.equation)
    if len(terms) < 3 or not _plain(node, terms):
        return None
    blanks = [np.broadcast_to(np.empty(()), ints(t.shape)) for t in node.inputs]
    how = "optimal" if len(terms) <= EXHAUSTIVE else "greedy"
    pair, *rest = np.einsum_path(node.op.equation, *blanks, optimize=how)[0][1:]
    if len(pair) != 2 or not rest:  # no pair is worth a result of its own
        return None
    left = [(x, t) for i, (x, t) in enumerate(zip(node.inputs, terms)) if i not in pair]
    (x, a), (y, b) = [(node.inputs[i], terms[i]) for i in sorted(pair)]
    others = out + "".join([term for _, term in left])
    kept = "".join([c for c in dict.fromkeys(a + b) if c in others])
    stack, rows, columns, _, _ = contraction(a, b, kept)
    made = stack + rows + columns
    product = beside(node, Einsum(renamed(f"{a},{b}->{made}")), x, y)
    left.insert(min(pair), (product, made))
    equation = ",".join([term for _, term in left]) + "->" + out
    return instead(node, Einsum(renamed(equation)), *[x for x, _ in left])


def _plain(node: Node, terms: Sequence[str]) -> bool:
    """Whether every length is known, and one letter has one length."""
    lengths: dict[str, int] = {}
    for term, t in zip(terms, node.inputs, strict=True):
        if not t.type.static:
            return False
        for letter, d in zip(term, ints(t.shape), strict=True):
            if lengths.setdefault(letter, d) != d:
                return False
    return kind_of(node.outputs[0].dtype) in "iufc"


def _summed(node: Node, x: Tensor, term: str, lost: str) -> Operand:
    """x summed over letters, and those that are left."""
    axes = tuple([term.index(c) for c in lost])
    x = beside(node, ReduceSum(axes, False), x) if axes else x
    return x, "".join([c for c in term if c not in lost])


def _ordered(node: Node, x: Tensor, term: str, out: str) -> Tensor:
    """x with its axes in the order of the letters `out`."""
    return beside(node, Transpose(tuple([term.index(c) for c in out])), x)


def _spread(node: Node, x: Tensor, term: str, out: str) -> Tensor:
    """x in the order of the result, with axes of length 1 where it has none."""
    x = _ordered(node, x, term, "".join([c for c in out if c in term]))
    shape = iter(ints(x.shape))
    return beside(node, Reshape(tuple([next(shape) if c in term else 1 for c in out])), x)


def _as_matmul(node: Node, x: Operand, y: Operand, letters: Contraction, out: str) -> Tensor:
    """The product of two operands, as matrices or stacks of them."""
    stack, rows, columns, inner, _ = letters
    lengths = {c: d for t, term in (x, y) for c, d in zip(term, ints(t.shape), strict=True)}

    def matrices(operand: Operand, before: str, after: str) -> Tensor:
        t, term = operand
        groups = (stack, before, after) if stack else (before, after)
        shape = [elements(tuple([lengths[c] for c in group])) for group in groups]
        turned = _ordered(node, t, term, stack + before + after)
        return beside(node, Reshape(tuple(shape)), turned)

    turned = x[1] == stack + inner + rows, y[1] == stack + columns + inner
    first = matrices(x, inner, rows) if turned[0] else matrices(x, rows, inner)
    second = matrices(y, columns, inner) if turned[1] else matrices(y, inner, columns)
    made = beside(node, MatMul(*turned), first, second)
    order = stack + rows + columns
    made = beside(node, Reshape(tuple([lengths[c] for c in order])), made)
    return _ordered(node, made, order, out)


CONTRACTIONS: tuple[RewriteRule, ...] = (einsum_of_one, einsum_of_many, einsum_of_two)
