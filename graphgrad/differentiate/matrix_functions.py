"""Functions of Hermitian matrices, whose derivatives are exact where eigenvalues repeat.

The k-th derivative of f(x) along e1, ..., ek is a sum, over their orders, of

    y = v @ (sum over b, c, ... of f[wa, wb, wc, ...] * g1[a, b] * g2[b, c] * ...) @ v.H

with x = v @ diag(w) @ v.H, gi = v.H @ ei @ v and the divided differences f[...], which are
derivatives of f where eigenvalues are equal [Daleckii and Krein 1965]. The derivative of y in x
along e is a sum of such with e at each place among the others, so one function has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.errors import GraphError
from ..base.kinds import kind_of, limits_of
from ..ir.graph import Graph
from ..ir.node import Tensor
from ..ops.base import Constant, TensorLike, apply, like, promoted, real_dtype
from ..ops.contract.einsum import einsum
from ..ops.elementwise.complex_parts import imag, real
from ..ops.elementwise.exponential import log, sqrt
from ..ops.elementwise.logic import logical_and, logical_not, logical_or, where
from ..ops.elementwise.magnitudes import abs as absolute
from ..ops.linalg.eigenvalues import eigh
from ..ops.linalg.matrices import adjoint, check_square, times
from ..ops.linalg.triangular import LowerHalf
from ..ops.reduce.reductions import sum as total
from ..ops.shape.reshaping import expand_dims, matrix_transpose
from ..ops.sources import placeholder
from .custom import custom_gradient
from .gradients import gradients

__all__ = ["logm", "matrix_function", "powm", "sqrtm"]

Function: TypeAlias = Callable[[Tensor], Any]
POINTS = {1: (8, 6)}
"""Points of Gauss along an axis, for an integral and for what is known of its error, by order."""
FURTHER_POINTS = (6, 4)
APART = 100.0
"""Two values that differ by so many of their errors are of a function with a jump between them."""
AXES = "abcdefghijkl"


def matrix_function(x: TensorLike, f: Function, /) -> Tensor:
    """f of Hermitian matrices: v @ diag(f(w)) @ v.H, where x = v @ diag(w) @ v.H.

    Values are those of eigh. Derivatives of every order exist where f has them, also where
    eigenvalues are equal, where eigenvectors have none.

    Parameters:
        x: (..., N, N); only the lower triangle is read; floating or complex, ints become
            float64.
        f: a function of a tensor of any shape, element by element; real or complex values. It reads
            no tensor but its argument, and numbers.

    Returns: (..., N, N), dtype of x; complex where f is.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16; TypeError for an
    f that is not a function or returns no tensor; ValueError for one that does not work element by
    element, or reads other tensors.

    Gradient: of the k-th order by divided differences f[w0, ..., wk], (f(w0) - f(w1)) / (w0 - w1)
    or, where that cancels, the integral of the k-th derivative of f, which gg.gradients gives
    [Higham 2008, "Functions of matrices", sec. 3.2 and B.16]; of N**(k + 1) numbers. It flows to
    the lower triangle.

    Source: Daleckii and Krein 1965, "Integration and differentiation of functions of Hermitian
    operators and applications to the theory of perturbations".

    >>> x = gg.constant([[2.0, 0.0], [0.0, 2.0]])
    >>> y = gg.linalg.matrix_function(x, lambda w: w**3)
    >>> gg.evaluate([y, gg.gradients(y[1, 0], x)])
    [array([[8., 0.],
           [0., 8.]]), array([[ 0.,  0.],
           [12.,  0.]])]
    """
    (x,) = promoted(x, floating=True)
    check_square("matrix_function", x.type)
    parts = _parts(f, x)
    half = apply(LowerHalf(), x)
    whole = half + adjoint(half)
    ys = [_multiple_integral(part)(whole) for part in parts]
    return ys[0] + 1j * ys[1] if len(ys) == 2 else ys[0]


def sqrtm(x: TensorLike, /) -> Tensor:
    """The principal square roots of positive semidefinite matrices: y @ y = x.

    Parameters: x: (..., N, N), Hermitian; only the lower triangle is read; floating or complex,
    ints become float64.

    Returns: (..., N, N), dtype of x; NaN for matrices with an eigenvalue below 0.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Gradient: as matrix_function; infinite where two eigenvalues are 0.

    Source: scipy.linalg.sqrtm, which takes any square matrix.

    >>> gg.evaluate(gg.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.],
           [0., 3.]])
    """
    return matrix_function(x, sqrt)


def logm(x: TensorLike, /) -> Tensor:
    """The logarithms of positive definite matrices: exp(y) = x.

    Parameters: x: (..., N, N), Hermitian; only the lower triangle is read; floating or complex,
    ints become float64.

    Returns: (..., N, N), dtype of x; NaN for matrices with an eigenvalue below 0.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Gradient: as matrix_function.

    Source: scipy.linalg.logm, which takes any square matrix.

    >>> gg.evaluate(gg.linalg.logm([[1.0, 0.0], [0.0, 1.0]]))
    array([[0., 0.],
           [0., 0.]])
    """
    return matrix_function(x, log)


def powm(x: TensorLike, p: float, /) -> Tensor:
    """Powers of Hermitian matrices: v @ diag(w**p) @ v.H.

    Parameters:
        x: (..., N, N), Hermitian; only the lower triangle is read; floating or complex, ints
            become float64.
        p: a number; where it is not an integer, NaN for matrices with an eigenvalue below 0.

    Returns: (..., N, N), dtype of x.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16; TypeError if p
    is not a real number, ValueError if it is not finite.

    Gradient: as matrix_function.

    Source: scipy.linalg.fractional_matrix_power, which takes any square matrix.

    >>> gg.evaluate(gg.linalg.powm([[4.0, 0.0], [0.0, 16.0]], -0.5))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating):
        raise TypeError(
            f"the power of powm is a number, got {p!r}; for other functions use matrix_function"
        )
    if not isfinite(p):
        raise ValueError(f"the power of powm is a finite number, got {p!r}")
    exponent = float(p)
    return matrix_function(x, lambda w: w**exponent)


# --- which functions are taken -------------------------------------------------------------------


def _parts(f: Function, x: Tensor) -> list[Function]:
    """f, or its real and imaginary parts; an error unless it works element by element."""
    if not callable(f):
        raise TypeError(f"matrix_function takes a function of a tensor, got {f!r}")
    graph = Graph()
    try:
        with graph:
            w = placeholder((2, 3), real_dtype(x.dtype))
            y = f(w)
    except GraphError as error:
        raise ValueError(
            "the function of matrix_function reads a tensor from outside: it may read its argument "
            "and numbers"
        ) from error
    if not isinstance(y, Tensor):
        raise TypeError(f"the function of matrix_function returns a tensor, got {y!r}")
    for node in graph.nodes:
        if node is w.node or (isinstance(node.op, Constant) and set(node.outputs[0].shape) <= {1}):
            continue
        if not node.op.elementwise or not node.inputs or node.op.bodies:
            raise ValueError(
                "the function of matrix_function works element by element on its argument, and "
                f"{node.name} ({node.type}, {node.where}) does not"
            )
    if y.shape != w.shape or real_dtype(y.dtype) != w.dtype:
        raise ValueError(
            "the function of matrix_function must keep the shape and precision of its argument, "
            f"got {y.type!r} for {w.type!r}"
        )
    return [lambda w: real(f(w)), lambda w: imag(f(w))] if kind_of(y.dtype) == "c" else [f]


# --- multilinear forms ---------------------------------------------------------------------------


def _multiple_integral(f: Function) -> Callable[..., Tensor]:
    """y of x and e1, ..., ek; the same function has its gradient."""

    @custom_gradient
    def matrix_derivative(x: Tensor, *along: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        w, v = eigh(x)
        if along:
            turned = [times(v, times(e, v), a=True) for e in along]
            core = _chained(divided_differences(f, w, len(along)), turned)
            y = times(v, times(core, v, b=True))
        else:
            y = times(v * expand_dims(f(w), -2), v, b=True)

        def grad_fn(dy: Tensor) -> tuple[Tensor, ...]:
            flow = matrix_transpose(dy)
            k = len(along)
            of_x = [form(x, *along[m:], flow, *along[:m]) for m in range(k + 1)]
            of_along = [form(x, *along[m + 1 :], flow, *along[:m]) for m in range(k)]
            dx = of_x[0]
            for part in of_x[1:]:
                dx = dx + part
            return tuple([matrix_transpose(d) for d in (dx, *of_along)])

        return y, grad_fn

    form: Callable[..., Tensor] = matrix_derivative
    return form


def _chained(differences: Tensor, turned: list[Tensor]) -> Tensor:
    """The sum over b, c, ... of f[a, b, c, ..., z] * g1[a, b] * g2[b, c] * ..."""
    axes = AXES[: len(turned) + 1]
    pairs = ["..." + axes[i : i + 2] for i in range(len(turned))]
    spec = f"{','.join(['...' + axes, *pairs])}->...{axes[0]}{axes[-1]}"
    return einsum(spec, differences, *turned)


# --- divided differences -------------------------------------------------------------------------


class Known(NamedTuple):
    """Numbers, and how far off they may be."""

    value: Tensor
    error: Tensor


def divided_differences(f: Function, w: Tensor, k: int) -> Tensor:
    """f[w[i0], ..., w[ik]] (..., N, ..., N): the coefficients of Newton's interpolation.

    Each is the better one of the quotient of two of a lower order and of the integral of the k-th
    derivative over the simplex of its points [Hermite, Genocchi], by what is known of their errors.
    """
    return _known(f, w, k).value


def _known(f: Function, w: Tensor, k: int) -> Known:
    eps = float(limits_of(w.dtype).eps)
    if k == 0:
        value = f(w)
        return Known(value, eps * _rounding(f, w, 0))
    lower = _known(f, w, k - 1)
    points = [_along(w, i, k) for i in range(k + 1)]
    best = _integral(f, points, eps)
    for i, j in combinations(range(k + 1), 2):
        gap = points[j] - points[i]
        apart = gap != 0
        over = where(apart, gap, 1.0)
        up, down = (_without(t, i, k) for t in lower), (_without(t, j, k) for t in lower)
        (high, high_error), (low, low_error) = up, down
        value = (high - low) / over
        error = (high_error + low_error) / absolute(over) + eps * absolute(value)
        best = _better(Known(value, error), best, apart)
    return best


def _along(w: Tensor, i: int, k: int) -> Tensor:
    """w as the i-th of k + 1 last axes."""
    for _ in range(i):
        w = expand_dims(w, -2)
    for _ in range(k - i):
        w = expand_dims(w, -1)
    return w


def _without(t: Tensor, i: int, k: int) -> Tensor:
    """A tensor of k last axes with an i-th one of length 1."""
    return expand_dims(t, i - k - 1)


def _better(quotient: Known, other: Known, apart: Tensor) -> Known:
    """The quotient where it errs less, and where the integral has missed a jump or a pole."""
    worse = logical_not(other.error <= quotient.error)
    gap = absolute(quotient.value - other.value)
    jump = logical_not(gap <= APART * (quotient.error + other.error))
    chosen = logical_and(apart, logical_or(worse, jump))
    return Known(*[where(chosen, a, b) for a, b in zip(quotient, other, strict=True)])


def _integral(f: Function, points: list[Tensor], eps: float) -> Known:
    """The integral of the k-th derivative over the simplex of k + 1 points."""
    k = len(points) - 1
    of = derivative(f, k)
    fine, coarse = POINTS.get(k, FURTHER_POINTS)
    value = _by_gauss(of, points, fine)
    rest = absolute(value - _by_gauss(of, points, coarse))
    spread = _by_gauss(lambda w: _rounding(f, w, k), points, coarse)
    return Known(value, rest + 4 * eps * spread)


def _rounding(f: Function, w: Tensor, k: int) -> Tensor:
    """How much the k-th derivative is off, in units of eps, where w and the value are rounded."""
    return absolute(derivative(f, k)(w)) + absolute(w * derivative(f, k + 1)(w))


def _by_gauss(of: Function, points: list[Tensor], n: int) -> Tensor:
    """The integral of a function over the simplex."""
    shares, weights = simplex_rule(len(points) - 1, n)
    first = expand_dims(points[0], -1)
    at = first
    for i, point in enumerate(points[1:], 1):
        at = at + (expand_dims(point, -1) - first) * like(shares[:, i], first)
    value = of(at)
    return total(value * like(weights, value), -1)


def simplex_rule(k: int, n: int) -> tuple[Any, Any]:
    """Points (n**k, k + 1), as shares of the corners, and weights that add up to 1 / k!.

    Gauss and Legendre's rule along the axes of the cube that is mapped to the simplex
    [Stroud 1971, "Approximate calculation of multiple integrals", sec. 2.4].
    """
    roots, weights = np.polynomial.legendre.leggauss(n)
    roots, weights = (roots + 1) / 2, weights / 2
    shares, sizes = [], []
    for at in product(range(n), repeat=k):
        left, size, row = 1.0, 1.0, []
        for axis, i in enumerate(at):
            row.append(left * (1 - roots[i]))
            left *= roots[i]
            size *= weights[i] * roots[i] ** (k - 1 - axis)
        shares.append([*row, left])
        sizes.append(size)
    return np.array(shares), np.array(sizes)


def derivative(f: Function, k: int) -> Function:
    """The k-th derivative of a function that works element by element."""
    if k == 0:
        return f
    before = derivative(f, k - 1)
    return lambda w: gradients(total(before(w)), w, unconnected="zero")
