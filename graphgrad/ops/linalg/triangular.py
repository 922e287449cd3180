"""Triangular matrices, and linear systems with them."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import broadcast, elements, lengths
from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    np,
    tensor_type,
    wants,
    whole,
)
from ..batching import Batch, Outputs
from ..contract.products import MATMUL, may_equal, squeezed
from ..create.creation import Tril, Triu
from ..documented import documented
from ..elementwise.complex_parts import conj
from ..shape.reshaping import expand_dims
from . import lapack, stepwise
from .matrices import check_square, operands, positive

__all__ = ["solve_triangular"]


class SolveTriangular(Op):
    """z = x1**-1 @ x2, or x1.T**-1 @ x2, with the lower or the upper triangle of x1.

    Gradient: dx2 = x1.T**-1 @ dz, dx1 = -dx2 @ z.T in the triangle that is read, without the
        diagonal if that is all ones, 0 in the other [Giles 2008, "An extended collection of matrix
        derivative results", sec. 2.3.1].
    """

    lower: bool
    transpose: bool = False
    unit: bool = False
    broadcasts = True
    linear = (1,)

    def infer(self, x: TensorType, y: TensorType) -> Types:
        check_square("solve_triangular", x)
        return (system("solve_triangular", x, y),)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return lapack.solve_triangular(x, y, self.lower, self.transpose, self.unit)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        def solve(xp: Any, x: Any, y: Any) -> Any:
            return stepwise.solve_triangular(xp, x, y, self.lower, self.transpose, self.unit)

        return to.in_double(solve, x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, _ = node.inputs
        (z,) = node.outputs
        dy = apply(self.replace(transpose=not self.transpose), x, dz)
        if not wants(x):
            return NO_GRAD, dy
        dx = -apply(MATMUL[False, True], *((z, dy) if self.transpose else (dy, z)))
        at = int(self.unit)
        return apply(Tril(-at) if self.lower else Triu(at), dx), dy

    def batch(self, batch: Batch) -> Outputs | None:
        """Matrices alone are a stack; vectors would be taken for one."""
        return batch.build(self, *batch.aligned())

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """n for each element of z."""
        return lengths(inputs[0])[-1] * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for lower, transpose, unit in [(True, False, False), (False, True, True)]:
            yield cls(lower, transpose, unit), [positive(rng, 3, 3), rng.normal(size=(3, 2))]
        yield cls(True, True, False), [positive(rng, 2, 3, 3), rng.normal(size=(3, 2))]
        yield cls(False, False, False), [positive(rng, 3, 3), rng.normal(size=(2, 3, 1))]


def system(what: str, x: TensorType, y: TensorType) -> TensorType:
    """The type of what x, square, is multiplied with to make y; ShapeError if there is none."""
    if len(y.shape) < 2 or x.dtype is not y.dtype:
        raise ShapeError(f"{what} takes (stacks of) matrices of one dtype, got {x!r}, {y!r}")
    if not may_equal(x.shape[-1], y.shape[-2]):
        raise ShapeError(f"{what} needs equal lengths, got {x!r} and {y!r}")
    stack = broadcast([x.shape[:-2], y.shape[:-2]])
    return tensor_type((*stack, *y.shape[-2:]), x.dtype)


class LowerHalf(Op):
    """The lower triangle of x with its diagonal halved. Gradient: dx = that of dy."""

    linear = "joint"
    stacks = True

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        if xp is np:
            return lapack.halved(x)
        return (xp.tril(x) + xp.tril(x, -1)) / 2

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(LowerHalf(), dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element."""
        return elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3, 3))]


@documented(SolveTriangular)
def solve_triangular(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
) -> Tensor:
    """The z with x1 @ z = x2, of which only one triangle of x1 is read.

    Parameters:
        x1: (..., N, N); floating or complex, dtypes promoted, ints become float64.
        x2: (..., N, K), or (N,) for one vector; the axes before broadcast.
        lower: whether the lower triangle is read; else the upper one.
        trans: 0 or "N" for x1 itself, 1 or "T" for its transpose, 2 or "C" for its adjoint.
        unit_diagonal: whether the diagonal is taken for ones, and not read.

    Returns: z, of the shape of x2, broadcast; when run, numpy.linalg.LinAlgError where there is a 0
        on the diagonal.

    Raises: ShapeError if x1 is not square, or x2 does not fit; DTypeError for float16; ValueError
        for an unknown trans.

    Source: scipy.linalg.solve_triangular.

    >>> x = [[2.0, 0.0], [1.0, 4.0]]
    >>> gg.evaluate(gg.linalg.solve_triangular(x, [2.0, 5.0], lower=True))
    array([1., 1.])
    """
    x, y = operands(x1, x2)
    kind = _kind_of(trans)
    if kind == 2:
        x = conj(x)
    op = SolveTriangular(truth("lower", lower), kind > 0, truth("unit_diagonal", unit_diagonal))
    if y.ndim == 1:
        return squeezed(apply(op, x, expand_dims(y, 1)), -1)
    return apply(op, x, y)


def _kind_of(trans: int | str) -> int:
    """0, 1 or 2."""
    if isinstance(trans, str) and trans in "NTC" and len(trans) == 1:
        return "NTC".index(trans)
    if isinstance(trans, str) or whole("trans", trans) not in (0, 1, 2):
        raise ValueError(f"trans is 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    return int(trans)
