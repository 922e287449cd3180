"""Einsums as what they are made of: transposes, sums, products, and matrix products.

The sign of a zero may be another one: NumPy's einsum itself makes it 0.0 on some ways and -0.0 on
others.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node, Tensor
from ...ops.arithmetic import MULTIPLY
from ...ops.einsum import Einsum, einsum_terms
from ...ops.products import MatMul
from ...ops.reductions import ReduceSum
from ...ops.shaping import Reshape, Transpose
from ..facts import elements, ints
from ..rule import ROUNDING, NodeOf, Rule, beside, instead, rule


@rule(Einsum, level=ROUNDING)
def einsum_of_one(node: NodeOf[Einsum]) -> Tensor | None:
    """einsum("ab->ba", x) -> x^T; einsum("ab->a", x) -> x summed over b"""
    terms, out = einsum_terms(node.op.equation)
    if len(terms) != 1:
        return None
    (x,) = node.inputs
    lost = tuple([i for i, letter in enumerate(terms[0]) if letter not in out])
    kept = [letter for letter in terms[0] if letter in out]
    if lost:
        x = beside(node, ReduceSum(lost, False), x)
    return _ordered(node, x, kept, out)


@rule(Einsum, level=ROUNDING)
def einsum_of_two(node: NodeOf[Einsum]) -> Tensor | None:
    """einsum("ab,bc->ac", x, y) -> x @ y, with stacks; without a sum, x * y"""
    terms, out = einsum_terms(node.op.equation)
    if len(terms) != 2 or not _plain(node, terms):
        return None
    x, y = (_summed(node, i, terms, out) for i in (0, 1))
    if all(letter in out for letter in (*x[1], *y[1])):
        spread = [_spread(node, t, term, out) for t, term in (x, y)]
        return instead(node, MULTIPLY, *spread)
    return _as_matmul(node, x, y, out)


def _plain(node: Node, terms: Sequence[str]) -> bool:
    """Whether every length is known, and one letter has one length."""
    lengths: dict[str, int] = {}
    for term, t in zip(terms, node.inputs, strict=True):
        if not t.type.static:
            return False
        for letter, d in zip(term, ints(t.shape), strict=True):
            if lengths.setdefault(letter, d) != d:
                return False
    return node.outputs[0].dtype.kind in "iufc"


def _summed(node: Node, i: int, terms: Sequence[str], out: str) -> tuple[Tensor, list[str]]:
    """An operand, summed over what only it has and the result has not; the letters left."""
    x, term, other = node.inputs[i], terms[i], terms[1 - i]
    lost = tuple([a for a, c in enumerate(term) if c not in other and c not in out])
    if lost:
        x = beside(node, ReduceSum(lost, False), x)
    return x, [c for a, c in enumerate(term) if a not in lost]


def _ordered(node: Node, x: Tensor, term: Sequence[str], out: Sequence[str]) -> Tensor:
    """x with its axes in the order of the letters `out`."""
    return beside(node, Transpose(tuple([term.index(c) for c in out])), x)


def _spread(node: Node, x: Tensor, term: list[str], out: str) -> Tensor:
    """x in the order of the result, with axes of length 1 where it has none."""
    x = _ordered(node, x, term, [c for c in out if c in term])
    shape = iter(ints(x.shape))
    return beside(node, Reshape(tuple([next(shape) if c in term else 1 for c in out])), x)


def _as_matmul(
    node: Node, x: tuple[Tensor, list[str]], y: tuple[Tensor, list[str]], out: str
) -> Tensor:
    """The product of two operands; letters of both are stacked if in the result, else summed."""
    (a, of_a), (b, of_b) = x, y
    stack = [c for c in out if c in of_a and c in of_b]
    inner = [c for c in of_a if c in of_b and c not in stack]
    rows = [c for c in out if c in of_a and c not in stack]
    columns = [c for c in out if c in of_b and c not in stack]
    lengths = dict(zip([*of_a, *of_b], [*ints(a.shape), *ints(b.shape)], strict=True))

    def matrix(t: Tensor, term: list[str], before: list[str], after: list[str]) -> Tensor:
        shape = [elements(tuple([lengths[c] for c in group])) for group in (before, after)]
        front = [lengths[c] for c in stack]
        merged = [elements(tuple(front))] if stack else []
        turned = _ordered(node, t, term, [*stack, *before, *after])
        return beside(node, Reshape((*merged, *shape)), turned)

    across = of_a == [*stack, *inner, *rows], of_b == [*stack, *columns, *inner]
    first = matrix(a, of_a, inner, rows) if across[0] else matrix(a, of_a, rows, inner)
    second = matrix(b, of_b, columns, inner) if across[1] else matrix(b, of_b, inner, columns)
    made = beside(node, MatMul(*across), first, second)
    letters = [*stack, *rows, *columns]
    made = beside(node, Reshape(tuple([lengths[c] for c in letters])), made)
    return _ordered(node, made, letters, out)


CONTRACTIONS: tuple[Rule, ...] = (einsum_of_one, einsum_of_two)
