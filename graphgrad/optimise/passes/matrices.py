"""What the passes over matrix products share: which ones, which axes, and what joining costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ops.contract.products import MatMul
from ...ops.identities.sequencing import After
from ..cuts import cut_of, follows
from ..facts import nbytes

FEW = 3  # products, at least, that are worth joining
MANY_ROWS = 64  # of a product that is as fast alone; twice as many where joining is free
CALL = 4096  # elements that are copied in the time that one small product takes to be called
MOST_BYTES = 1 << 26  # of what is joined for one product


def worth_a_look(program: Program) -> bool:
    """Whether there may be products to join.

    Not in a program that computes something again to save memory: joining keeps more alive.
    """
    products = 0
    for node in program.nodes:
        op = type(node.op)
        if op is MatMul:
            products += 1
        elif op is After:
            return False
    return products >= FEW


def is_plain(node: Node) -> bool:
    """Whether a node is a product of two matrices of known shapes."""
    return (
        type(node.op) is MatMul
        and not node.controls
        and all(x.ndim == 2 and x.type.static for x in node.inputs)
    )


def summed_axis(product: Node, side: int) -> int:
    """The axis of an operand of a product of matrices that is summed over."""
    op = product.op
    assert isinstance(op, MatMul)
    return int(op.transpose_b) if side else 1 - int(op.transpose_a)


def in_a_row(pieces: Sequence[Tensor], axis: int) -> bool:
    """Whether joining costs nothing: cuts of one tensor that follow each other along the axis."""
    cuts = [cut_of(t) for t in pieces]
    return all(
        a is not None and b is not None and a.axis == axis and follows(a, b)
        for a, b in pairwise(cuts)
    )


def in_parts(group: Sequence[Node], held: Callable[[Node], Iterable[Tensor]]) -> list[list[Node]]:
    """The products in parts, for each of which no more than MOST_BYTES are held at once."""
    parts: list[list[Node]] = [[]]
    size = 0
    for node in group:
        more = sum(nbytes(x.type) for x in held(node))
        if size + more > MOST_BYTES and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(node)
        size += more
    return [p for p in parts if len(p) >= FEW]
