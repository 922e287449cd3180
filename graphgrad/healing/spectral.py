"""Functions of matrices that are written by eigenvectors, `(v * f(w)) @ v.T` with w, v = eigh(x).

Eigenvectors have no derivative where eigenvalues are equal; the function has. `(u * f(s)) @ vh`
with u, s, vh = svd(x) and an odd f is its block of f([[0, x], [x.T, 0]]).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base.errors import GraphGradError
from ..compiled import compile
from ..differentiate.matrix_functions import matrix_function
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.tensor_sites import makes_sited
from ..ir.types import Array
from ..ops.base import Constant, apply, like
from ..ops.contract.products import MatMul
from ..ops.create.creation import Diag, zeros
from ..ops.elementwise.arithmetic import Multiply
from ..ops.linalg.eigenvalues import Eigh
from ..ops.linalg.singular_values import Svd
from ..ops.shape.joining import concatenate
from ..ops.shape.reshaping import ExpandDims, Transpose, matrix_transpose
from ..ops.shape.slicing import FULL, Slice
from ..optimise.facts import uniform_value
from .identity import CLOSED, RealIdentity
from .reading import is_real
from .shadow import ALL

FAR = 12
"""How many nodes of products are looked at."""
Step = tuple[Op, tuple["int | float", ...]]
"""An op, and for each argument the step that makes it, or a number."""

EIGENVECTORS, SINGULAR_VECTORS = (
    RealIdentity(
        name,
        CLOSED,
        algebra,
        "its gradient is NaN where values repeat",
        "Daleckii and Krein 1965",
        matrix_function,
        matrix_function,
    )
    for name, algebra in (
        ("matrix_function", "(v f(w)) @ v.T -> matrix_function(x, f)"),
        ("odd_matrix_function", "(u f(s)) @ vh -> matrix_function([[0, x], [x.T, 0]], f)[:M, M:]"),
    )
)


class Spectral(NamedTuple):
    """What a product is a function of, and by which values.

    values  the eigenvalues or singular values
    steps   what is done with them, each of those before
    factors the values that are multiplied, by step; 0 are the values themselves
    inside  the nodes of what was written
    """

    values: Tensor
    steps: list[Step]
    factors: list[int]
    inside: tuple[Node, ...]

    @property
    def x(self) -> Tensor:
        """The matrix."""
        return self.values.node.inputs[0]

    @property
    def identity(self) -> RealIdentity:
        """The row that speaks of it."""
        return EIGENVECTORS if isinstance(self.values.node.op, Eigh) else SINGULAR_VECTORS

    def function(self) -> Callable[[Tensor], Tensor]:
        """What is done with a value."""
        steps, factors = self.steps, self.factors

        def f(t: Tensor) -> Tensor:
            made = [t]
            for op, places in steps:
                args = [made[p] if isinstance(p, int) else like(p, t) for p in places]
                made.append(apply(op, *args))
            y = made[factors[0]]
            for place in factors[1:]:
                y = y * made[place]
            return y

        return f

    def lost(self, values: Array) -> float:
        """Decimal digits that a slope loses between the two values that are nearest.

        Those of the block of a matrix are its singular values with both signs.
        """
        if not np.isfinite(values).all():
            return ALL
        both = values if isinstance(self.values.node.op, Eigh) else np.hstack([values, -values])
        gaps = np.diff(np.sort(both, axis=-1), axis=-1)
        sizes = np.abs(both).max(axis=-1, keepdims=True, initial=0.0)
        with np.errstate(all="ignore"):
            lost = np.log10(np.where(gaps > 0, sizes / gaps, np.inf))
        return float(np.clip(lost.max(initial=0.0), 0.0, ALL))

    def build(self, x: Tensor) -> Tensor:
        """The stable form, of the matrix."""
        f = self.function()
        if isinstance(self.values.node.op, Eigh):
            return matrix_function(x, f)
        *stack, m, n = x.shape
        above = concatenate([zeros((*stack, m, m), x.dtype), x], axis=-1)
        below = concatenate([matrix_transpose(x), zeros((*stack, n, n), x.dtype)], axis=-1)
        whole = matrix_function(concatenate([above, below], axis=-2), f)
        return whole[..., :m, m:]


def spectral(node: Node) -> Spectral | None:
    """What a product of matrices is by the eigenvectors or singular vectors of one."""
    if type(node.op) is not MatMul or not is_real(node.outputs[0]):
        return None
    inside: dict[Node, None] = {}
    factors = _factors(node.outputs[0], inside)
    if len(factors) < 3:
        return None
    first, last = factors[0], factors[-1]
    source = first.node
    if not isinstance(source.op, Eigh | Svd) or last.node is not source:
        return None
    eigen = isinstance(source.op, Eigh)
    ends = (first.output, first.flipped, last.output, last.flipped)
    if ends != ((1, False, 1, True) if eigen else (0, False, 2, False)):
        return None
    values = source.outputs[0 if eigen else 1]
    made = _chain(values, factors[1:-1], inside)
    if made is None:
        return None
    found = Spectral(values, *made, tuple(inside))
    parts = (*inside, source)
    if any(n.region is not None or n.stamp is not None or makes_sited(n) for n in parts):
        return None
    return found if eigen or (_is_block(source) and _is_odd(found)) else None


class _Factor(NamedTuple):
    """A matrix of a product; diagonal: the vector on the diagonal of one."""

    node: Node
    output: int
    flipped: bool
    diagonal: Tensor | None = None


def _factors(t: Tensor, inside: dict[Node, None], flipped: bool = False) -> list[_Factor]:
    """The matrices that a tensor is the product of."""
    node = t.node
    op = node.op
    if len(inside) > FAR:
        return [_Factor(node, t.index, flipped)]
    if isinstance(op, MatMul):
        inside[node] = None
        x, y = node.inputs
        both = [
            _factors(x, inside, op.transpose_a != flipped),
            _factors(y, inside, op.transpose_b != flipped),
        ]
        return [f for part in (both[::-1] if flipped else both) for f in part]
    if isinstance(op, Transpose) and op.axes == _swapped(t.ndim):
        inside[node] = None
        return _factors(node.inputs[0], inside, not flipped)
    if isinstance(op, Diag) and op.k == 0:
        inside[node] = None
        return [_Factor(node, 0, False, node.inputs[0])]
    if isinstance(op, Multiply):
        for matrix, scale in (node.inputs, node.inputs[::-1]):
            side = _side(matrix, scale)
            if side is not None:
                inside[node] = None
                diagonal = _Factor(node, 0, False, scale)
                part = _factors(matrix, inside, flipped)
                return [*part, diagonal] if side != flipped else [diagonal, *part]
    return [_Factor(node, t.index, flipped)]


def _swapped(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2) if ndim > 1 else ()


def _side(matrix: Tensor, scale: Tensor) -> bool | None:
    """Whether a vector scales columns (True) or rows (False) of a matrix; None: neither."""
    if matrix.ndim < 2 or scale.ndim < 1 or scale.ndim > matrix.ndim:
        return None
    if scale.ndim == 1 or scale.shape[-2] == 1:
        return None if scale.shape[-1] == 1 else True
    return False if scale.shape[-1] == 1 else None


def _chain(
    values: Tensor, diagonals: list[_Factor], inside: dict[Node, None]
) -> tuple[list[Step], list[int]] | None:
    """The steps from the values to what stands on diagonals, and which of them do."""
    places: dict[Tensor, int] = {values: 0}
    steps: list[Step] = []
    found: list[int] = []
    for factor in diagonals:
        if factor.diagonal is None:
            return None
        place = _place(_as_vector(factor.diagonal, inside), places, steps, inside)
        if not isinstance(place, int):
            return None
        found.append(place)
    return steps, found


def _as_vector(t: Tensor, inside: dict[Node, None]) -> Tensor:
    """What was given axes of length 1."""
    op = t.node.op
    while isinstance(op, ExpandDims) or (
        isinstance(op, Slice) and all(key is None or key in (FULL, Ellipsis) for key in op.key)
    ):
        inside[t.node] = None
        t = t.node.inputs[0]
        op = t.node.op
    return t


def _place(
    t: Tensor, places: dict[Tensor, int], steps: list[Step], inside: dict[Node, None]
) -> int | float | None:
    """The step that makes a tensor, or the number that it is; None where it reads anything else."""
    if t in places:
        return places[t]
    node = t.node
    if isinstance(node.op, Constant):
        value = uniform_value(t)
        return None if value is None else float(value)
    if not node.op.elementwise or not node.inputs or not node.op.pure or len(steps) > 30:
        return None
    if not is_real(t) or t.shape != next(iter(places)).shape:
        return None
    args = [_place(s, places, steps, inside) for s in node.inputs]
    if any(a is None for a in args):
        return None
    inside[node] = None
    steps.append((node.op, tuple([a for a in args if a is not None])))
    places[t] = len(steps)
    return len(steps)


def _is_block(source: Node) -> bool:
    shape = source.inputs[0].shape
    op = source.op
    return isinstance(op, Svd) and not op.full and all(isinstance(d, int) for d in shape)


def _is_odd(found: Spectral) -> bool:
    """Whether a function is odd at some numbers, and 0 at 0."""
    points = np.array([0.0, 1e-3, 0.3, 1.0, 1.7, 5.0, 40.0])
    with Graph():
        t = like(points, found.values)
        run = compile((), [found.function()(t), found.function()(-t)], optimize=False)
    try:
        with np.errstate(all="ignore"):
            up, down = run()
    except GraphGradError:
        return False
    odd = np.allclose(up, -down, rtol=1e-6, atol=0.0) and up[0] == 0
    return bool(odd and np.isfinite(up).all())
