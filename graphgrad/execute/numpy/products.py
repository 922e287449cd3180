"""Matrix products and sums of products on NumPy, written where they are wanted by the BLAS.

The BLAS reads matrices by rows or by columns, so views of transposed matrices cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...base.kinds import is_inexact, kind_of
from ...ir.node import Node
from ...ir.op import Op
from ...ops.contract.einsum import Einsum, einsum_terms
from ...ops.contract.products import MatMul
from ..kernels import Kernel, MakeWriter
from ..run.threads import parallel
from .blas import product, slice_rows

Look = Callable[[Any], Any]
Shape = tuple[int, ...]
WORTH_CONVERTING = 1 << 12  # multiplications of numbers that the BLAS does not take
WORTH_SHARING = 1 << 23  # multiplications; below this one thread does it sooner


def _has_blas(dtype: np.dtype[Any]) -> bool:
    return is_inexact(dtype)


def _matmul(node: Node, threads: int) -> Kernel:
    """np.dot for matrices, which gets to the BLAS faster than np.matmul; that one for stacks."""
    op, (x, y), (z,) = node.op, node.inputs, node.outputs
    assert isinstance(op, MatMul)
    matrices = x.ndim == y.ndim == 2
    left: Look = _transposed if op.transpose_a else _same
    right: Look = _transposed if op.transpose_b else _same
    one = any(math.prod(t.shape) == 1 for t in node.inputs)  # type: ignore[arg-type]
    dot = _has_blas(z.dtype) and not one  # which takes 0 * NaN for 0 where it multiplies by one
    if matrices and dot:
        return _dot(op.transpose_a, op.transpose_b)
    if y.ndim == 2 and not op.transpose_a and dot:
        rows, inner = math.prod(z.shape[:-1]), x.shape[-1]  # type: ignore[arg-type]
        columns = z.shape[-1]

        def as_one(x: Any, y: Any, out: Any) -> None:
            if x.flags.c_contiguous:
                np.dot(x.reshape(rows, inner), right(y), out.reshape(rows, columns))
            else:
                np.matmul(x, right(y), out)

        return as_one
    if kind_of(z.dtype) in "iu":
        depth: Any = x.shape[-2 if op.transpose_a else -1]
        if math.prod(z.shape) * depth >= WORTH_CONVERTING:  # type: ignore[arg-type]
            return lambda x, y, out: _by_doubles(depth, left(x), right(y), out)
    if z.ndim == 2 or not _has_blas(z.dtype):
        return lambda x, y, out: np.matmul(left(x), right(y), out)
    return _stack(left, right, z.shape, x.shape[-2 if op.transpose_a else -1], threads)


def _by_doubles(depth: int, x: Any, y: Any, out: Any) -> None:
    """The product of integers by the BLAS, where every sum is exact in float64."""
    most = [max(-int(a.min()), int(a.max())) for a in (x, y)]
    if most[0] * most[1] * depth >= 1 << 53:
        np.matmul(x, y, out)
    else:
        out[...] = np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.int64)


def _stack(left: Look, right: Look, made: Any, inner: Any, threads: int) -> Kernel:
    """Stacks of products, each on one thread, those along the first axis on several."""
    work = math.prod(made) * inner
    count = made[0] if work >= WORTH_SHARING and slice_rows(inner, made[-1]) else 1
    if count < 2 or threads < 2:
        return lambda x, y, out: product(left(x), right(y), out)

    def run(x: Any, y: Any, out: Any) -> None:
        pairs = [(a, a.ndim == out.ndim and len(a) > 1) for a in (left(x), right(y))]

        def task(i: int) -> None:
            a, b = (a[i] if each else a[0] if a.ndim == out.ndim else a for a, each in pairs)
            product(a, b, out[i])

        parallel(task, count, threads)

    return run


def _dot(transpose_a: bool, transpose_b: bool) -> Kernel:
    if transpose_a:
        if transpose_b:
            return lambda x, y, out: np.dot(x.T, y.T, out)
        return lambda x, y, out: np.dot(x.T, y, out)
    if transpose_b:
        return lambda x, y, out: np.dot(x, y.T, out)
    return np.dot


def _same(x: Any) -> Any:
    return x


def _transposed(x: Any) -> Any:
    return x.mT


# --- sums of products ------------------------------------------------------------------------


def _einsum(node: Node, threads: int) -> Kernel | None:
    """One product for two operands; NumPy's own, on a path settled before, for more."""
    op = node.op
    assert isinstance(op, Einsum)
    terms, out = einsum_terms(op.equation)
    shapes: list[Any] = [t.shape for t in node.inputs]
    if len(terms) == 1:
        return _summed(terms[0], out)
    if len(terms) == 2 and _has_blas(node.outputs[0].dtype):
        return _product_of_two(terms, out, shapes)
    blanks = [np.broadcast_to(np.empty((), t.dtype), s) for t, s in zip(node.inputs, shapes)]
    path = np.einsum_path(op.equation, *blanks, optimize="greedy")[0]

    def run(*arrays: Any) -> None:
        *xs, made = arrays
        if made.ndim:
            np.einsum(op.equation, *xs, out=made, optimize=path)
        else:  # into a single number NumPy 2.4.0 to 2.4.4 fail to write
            made[...] = np.einsum(op.equation, *xs, optimize=path)

    return run


def _summed(term: str, out: str) -> Kernel | None:
    """The sum over letters; None where there is none, and a view does."""
    gone = [c for c in term if c not in out]
    if not gone:
        return None
    look = _arranged(term, [out, "".join(gone)])
    axes = tuple(range(len(out), len(term)))
    return lambda x, made: np.add.reduce(look(x), axes, made.dtype, made)


def _arranged(term: str, parts: Sequence[str]) -> Look:
    """A function that puts the axes of an array in another order."""
    order = tuple([term.index(c) for part in parts for c in part])
    if order == tuple(range(len(term))):
        return _same
    return lambda x: x.transpose(order)


class Letters(NamedTuple):
    """The letters of a product of two operands.

    stack    of both and the result: they count matrices
    rows     of the first one and the result
    columns  of the second one and the result
    inner    of both, summed
    """

    stack: str
    rows: str
    columns: str
    inner: str


def _letters(x: str, y: str, out: str) -> Letters:
    return Letters(
        "".join([c for c in out if c in x and c in y]),
        "".join([c for c in out if c in x and c not in y]),
        "".join([c for c in out if c in y and c not in x]),
        "".join([c for c in x if c in y and c not in out]),
    )


def _product_of_two(terms: Sequence[str], out: str, shapes: Sequence[Shape]) -> Kernel:
    """A sum of products as one (stack of) matrix products, or as a product where nothing is summed.

    What only one operand has is summed before, and a length of 1 that is broadcast is taken out.
    """
    lengths: dict[str, int] = {}
    pairs = [[*zip(*both, strict=True)] for both in zip(terms, shapes, strict=True)]
    for c, d in chain(*pairs):
        lengths[c] = d if lengths.get(c, 1) == 1 else lengths[c]
    whole = ["".join([c for c, d in pair if d == lengths[c]]) for pair in pairs]
    x, y = (
        "".join([c for c in term if c in other or c in out])
        for term, other in zip(whole, reversed(whole), strict=True)
    )
    first, second = (_reduced(*given) for given in zip(terms, whole, (x, y), strict=True))
    run = _multiplied(x, y, out, lengths)
    return lambda a, b, made: run(first(a), second(b), made)


def _multiplied(x: str, y: str, out: str, lengths: Mapping[str, int]) -> Kernel:
    """The product of what is left of two operands."""
    letters = _letters(x, y, out)
    stack, rows, columns, inner = letters
    if not inner:
        left, right = _spread(x, out), _spread(y, out)
        return lambda a, b, made: np.multiply(left(a), right(b), made)
    if rows and columns and out == stack + columns + rows:
        swapped = _matrices(y, x, letters._replace(rows=columns, columns=rows), out, lengths)
        return lambda a, b, made: swapped(b, a, made)
    return _matrices(x, y, letters, out, lengths)


def _matrices(x: str, y: str, letters: Letters, out: str, lengths: Mapping[str, int]) -> Kernel:
    """Matrix products; in place where the result has its axes in the order of these."""
    stack, rows, columns, inner = letters
    many, high, wide, deep = ([lengths[c] for c in part] for part in letters)
    left = _as(x, [stack, rows, inner], (*many, math.prod(high), math.prod(deep)))
    right = _as(y, [stack, inner, columns], (*many, math.prod(deep), math.prod(wide)))
    shape = (*many, math.prod(high), math.prod(wide))
    product: Any = np.matmul if many else np.dot
    order = stack + rows + columns
    if out == order:
        return lambda a, b, made: product(left(a), right(b), made.reshape(shape))
    apart, back = (*many, *high, *wide), tuple([order.index(c) for c in out])

    def run(a: Any, b: Any, made: Any) -> None:
        matrices = np.empty(shape, made.dtype)
        product(left(a), right(b), matrices)
        made[...] = matrices.reshape(apart).transpose(back)

    return run


def _reduced(term: str, whole: str, left: str) -> Look:
    """An operand without lengths of 1 that are broadcast, summed over what is not left."""
    axes = tuple([i for i, c in enumerate(term) if c not in whole])
    sums = tuple([i for i, c in enumerate(whole) if c not in left])
    if not axes and not sums:
        return _same
    if not sums:
        return lambda x: x.squeeze(axes)
    return lambda x: np.asarray(np.add.reduce(x.squeeze(axes), sums, x.dtype))


def _as(term: str, parts: Sequence[str], shape: Shape) -> Look:
    """A function that makes an operand a (stack of) matrices, without a copy where it can be."""
    look = _arranged(term, parts)
    if len(term) == len(shape) and all(len(part) == 1 for part in parts[1:]):
        return look
    return lambda x: look(x).reshape(shape)


def _spread(term: str, out: str) -> Look:
    """A function that puts the axes of an operand where the result has them."""
    look = _arranged(term, [c for c in out if c in term])
    key = (*[slice(None) if c in term else None for c in out], ...)
    return lambda x: look(x)[key]


WRITERS: dict[type[Op], MakeWriter] = {MatMul: _matmul, Einsum: _einsum}
