"""What the ops of linear algebra share: which matrices they take, adjoints, and costs.

Gradients of what is not holomorphic (factors that hold a conjugate, norms, signs) are written for
the inner product Re <dx, x> = Re sum conj(dx) * x, in which adjoints stand where real formulas have
transposes. graphgrad's own convention is its conjugate: `conjugated` goes from one to the other,
and does nothing to what is real.
"""

from __future__ import annotations

from math import prod

from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import Dim, computed, lengths
from ..base import (
    Any,
    DTypeError,
    Tensor,
    TensorLike,
    TensorType,
    apply,
    as_tensor,
    cast,
    is_inexact,
    is_zero,
    np,
    promoted,
)
from ..contract.products import MATMUL
from ..create.creation import Tril
from ..elementwise.complex_parts import conj
from ..shape.reshaping import matrix_transpose

__all__: list[str] = []


# --- what is taken -------------------------------------------------------------------------------


def check_floating(what: str, x: TensorType) -> None:
    """DTypeError unless x is floating or complex, of 32 or 64 bits: there is no LAPACK for 16."""
    if not is_inexact(x.dtype):
        raise DTypeError(f"{what} takes floating matrices, got {x!r}")
    if x.dtype.itemsize == 2:
        raise DTypeError(f"{what} takes matrices of 32 or 64 bits, got {x!r}; use gg.cast")


def operands(*xs: TensorLike) -> tuple[Tensor, ...]:
    """Promoted, floating; integers count as float64, as in NumPy's linear algebra."""
    tensors = [as_tensor(x) for x in xs]
    return promoted(*[t if is_inexact(t.dtype) else cast(t, "float64") for t in tensors])


def check_square(what: str, x: TensorType) -> None:
    """ShapeError or DTypeError unless x is a (stack of) floating square matrices."""
    n, m = x.shape[-2:] if len(x.shape) >= 2 else (0, 1)
    if isinstance(n, int) and isinstance(m, int) and n != m:
        raise ShapeError(f"{what} takes (stacks of) square matrices, got {x!r}")
    check_floating(what, x)


def matrices(what: str, x: TensorType) -> tuple[Any, Dim, Dim]:
    """The axes of the stack, rows and columns; ShapeError or DTypeError if x has no such."""
    if len(x.shape) < 2:
        raise ShapeError(f"{what} takes (stacks of) matrices, got {x!r}")
    check_floating(what, x)
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def shorter(m: Dim, n: Dim) -> Dim:
    """The lesser of two lengths, where that is known."""
    return computed(Length.min, m, n)  # type: ignore[no-any-return]


def square(m: Dim, n: Dim) -> bool:
    """Whether two lengths are known to be equal."""
    return m is not None and m == n


# --- adjoints ------------------------------------------------------------------------------------


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transposes of matrices."""
    return matrix_transpose(conj(x))


def times(x: Tensor, y: Tensor, a: bool = False, b: bool = False) -> Tensor:
    """x @ y, of which those that are flagged are taken adjoint."""
    return apply(MATMUL[a, b], conj(x) if a else x, conj(y) if b else y)


def product(*xs: Tensor) -> Tensor:
    """x @ y @ ..., from left to right."""
    total = xs[0]
    for x in xs[1:]:
        total = apply(MATMUL[False, False], total, x)
    return total


def conjugated(dy: Tensor) -> Tensor:
    """From one of the two conventions for gradients to the other; structural zeros stay such."""
    return dy if is_zero(dy) else conj(dy)


def lower(x: Tensor, k: int = 0) -> Tensor:
    """The lower triangle, up to k above the diagonal."""
    return apply(Tril(k), x)


# --- costs and samples ---------------------------------------------------------------------------


def dense(x: TensorType, large: float, square: float) -> float:
    """large * m * n**2 + square * n**3 operations for each matrix (m, n) of a stack, m >= n
    [Golub and Van Loan 2013, "Matrix computations", sec. 5.4, 8.6].

    A complex operation counts as one.
    """
    *stack, m, n = lengths(x)
    m, n = max(m, n), min(m, n)
    return prod(stack) * (large * m * n**2 + square * n**3)


def positive(rng: np.random.Generator, *shape: int) -> Any:
    """Well conditioned, symmetric and positive definite."""
    x = rng.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1])


def normal(rng: np.random.Generator, *shape: int) -> Any:
    """Complex numbers with normal parts."""
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)
