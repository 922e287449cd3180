"""Sums of many small arrays: NumPy adds them up in one call, in the order in which they were added.

A call of a ufunc takes as long as a hundred additions. So the bytes of all terms are put together,
which costs a tenth of a call for each, and reduced over the first axis: there NumPy adds row to
row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir.node import Node, Tensor
from ...ir.program import Program, derive
from ...ir.strided import Lengths
from ...ir.types import DType, lengths
from ...lower.alias import nbytes
from ...lower.loop_ir import is_number
from ...ops.base import Constant
from ...ops.elementwise.accumulate import AddN
from ...ops.elementwise.arithmetic import Add
from ..kernels import Pairs, TupleKernel

LEAST = 12  # terms; below this calls of `add` are as fast
SMALL = 512  # bytes of a term
ROWS = 1 << 16  # bytes of all terms: a chain keeps them until the end


# --- which sums ------------------------------------------------------------------------------


def gather_sums(program: Program) -> Program:
    """The program with AddN for (a + b) + c + ... of many small arrays of one type."""
    links = [n for n in program.nodes if type(n.op) is Add and type(n.inputs[0].node.op) is Add]
    if len(links) < LEAST - 2:
        return program
    sums = {chain[-1]: chain for chain in _chains(program) if len(chain) >= LEAST - 1}
    if not sums:
        return program
    inside = {node for chain in sums.values() for node in chain[:-1]}
    given = frozenset(program.inputs)
    new: dict[Tensor, Tensor] = {}
    made: dict[Node, Node] = {}
    for node in program.nodes:
        if node in inside:
            continue
        op, reads = node.op, node.inputs
        if node in sums:
            first, op, reads = _first(sums[node]), AddN(), _terms(sums[node])
            if first is not None:
                made[first] = first
                reads = (*first.outputs, *reads[1:])
        made[node] = derive(node, op, tuple([new.get(t, t) for t in reads]))
        made[node].controls = tuple([made[c] for c in node.controls])
        pairs = zip(node.outputs, made[node].outputs, strict=True)
        new.update([(t, y) for t, y in pairs if t not in given])
    return Program(program.inputs, [new.get(t, t) for t in program.outputs], [*made.values()])


def _terms(chain: Sequence[Node]) -> tuple[Tensor, ...]:
    return (chain[0].inputs[0], *[node.inputs[1] for node in chain])


def _first(chain: Sequence[Node]) -> Node | None:
    """The number that is the first term, as an array: Python's `sum` begins with 0."""
    x, y = chain[0].inputs[0], chain[0].outputs[0]
    if x.shape == y.shape:
        return None
    value: Any = x.node.op.kernel(np)
    return derive(x.node, Constant(np.full(lengths(y.type), value, y.dtype)), ())


def _chains(program: Program) -> Iterator[list[Node]]:
    """Additions each of which is the first operand of the next, and read by nothing else."""
    readers = Counter([t for node in program.nodes for t in node.inputs])
    readers.update([*program.outputs, *program.inputs])
    waited = {c for node in program.nodes for c in node.controls}
    given = frozenset(program.inputs)
    open_: dict[Tensor, list[Node]] = {}
    for node in program.nodes:
        if type(node.op) is not Add or not _is_small(node, given):
            continue
        if node.controls or node in waited:
            continue
        y = node.outputs[0]
        chain = open_.pop(node.inputs[0], None)
        most = ROWS // max(nbytes(y.type) or 0, 1)
        if chain is None or len(chain) + 2 > most or readers[node.inputs[0]] > 1:
            if chain is not None:
                yield chain
            chain = []
        chain.append(node)
        open_[y] = chain
    yield from open_.values()


def _is_small(node: Node, given: frozenset[Tensor]) -> bool:
    """Whether a node adds up small arrays of one type, the first one maybe a number."""
    y = node.outputs[0].type
    if not y.static or not _is_summed(y.dtype, lengths(y)) or node.inputs[1].type != y:
        return False
    x = node.inputs[0]
    number = x not in given and is_number(x.node.op) and x.dtype is y.dtype and x.shape == ()
    return x.type == y or number


def _is_summed(dtype: DType, shape: Lengths) -> bool:
    return dtype.kind in "biufc" and 0 < dtype.itemsize * math.prod(shape) <= SMALL


# --- how they are written --------------------------------------------------------------------


def is_long_sum(node: Node) -> bool:
    """Whether a node adds many arrays of one static type."""
    if type(node.op) is not AddN or len(node.inputs) < LEAST:
        return False
    y = node.outputs[0].type
    return y.static and all(t.type is y for t in node.inputs)


def long_sum(node: Node) -> tuple[Callable[..., object], Pairs]:
    """What writes such a sum, and over which inputs it may."""
    (y,) = node.outputs
    dtype, shape = y.dtype, lengths(y.type)
    if _is_summed(dtype, shape):
        return _summing(dtype, shape, len(node.inputs)), ()
    later = set(node.inputs[2:])
    return _adding, tuple([(0, i) for i, t in enumerate(node.inputs[:2]) if t not in later])


def _summing(dtype: DType, shape: Lengths, count: int) -> Callable[..., object]:
    ndarray, rows, join = np.ndarray, (count, *shape), b"".join
    reduce: Any = np.add.reduce
    zero = dtype.type(0)
    if dtype.kind in "fc":
        zero = -zero  # of a sum of -0.0, too
    alone = math.prod(shape) == 1  # NumPy would add such rows in pairs

    def write(terms: Sequence[Any], out: Any) -> None:
        try:
            together = join(terms)
        except TypeError:  # one of them does not lie in row-major order
            _one_by_one(terms, out)
            return
        row = ndarray(rows, dtype, together)
        if alone:
            out[...] = np.add.accumulate(row, 0, dtype)[-1]
        else:
            reduce(row, 0, dtype, out, False, zero)

    return TupleKernel(write)


def _adding(*arrays: Any) -> None:
    _one_by_one(arrays[:-1], arrays[-1])


def _one_by_one(terms: Sequence[Any], out: Any) -> None:
    np.add(terms[0], terms[1], out)
    for term in terms[2:]:
        np.add(out, term, out)
