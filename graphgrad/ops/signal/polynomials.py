"""Polynomials as coefficient vectors, highest power first."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.kinds import limits_of
from ..arrays.grids import vander
from ..base import (
    Any,
    Tensor,
    TensorLike,
    as_dtype,
    as_tensor,
    cast,
    constant,
    is_inexact,
    like,
    np,
    promoted,
    result_dtype,
    whole,
)
from ..contract.products import matmul
from ..elementwise.arithmetic import add, subtract
from ..elementwise.complex_parts import real
from ..elementwise.exponential import sqrt
from ..elementwise.magnitudes import abs as moduli
from ..elementwise.powers import square
from ..linalg.eigenvalues import eigvals
from ..linalg.inverses import inv
from ..linalg.least_squares import lstsq, solution
from ..linalg.matrices import operands
from ..reduce.reductions import sum
from ..shape.joining import concat, unstack
from ..shape.reshaping import expand_dims, matrix_transpose
from .signal import convolve

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
]


def _coefficients(who: str, *polynomials: TensorLike) -> list[Tensor]:
    """Vectors of known lengths; a number is a constant polynomial."""
    vectors = [expand_dims(t, 0) if t.ndim == 0 else t for t in map(as_tensor, polynomials)]
    for t in vectors:
        if t.ndim != 1 or not isinstance(t.shape[0], int):
            raise ShapeError(
                f"{who} takes vectors of coefficients, each a step of the graph, so of known "
                f"lengths, got {t.type!r}, built at {t.where}; give the length as an int"
            )
    return vectors


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """The value of a polynomial: y = p[0] x**(n-1) + ... + p[n-1], by Horner's rule.

    Parameters:
        p: coefficients: a vector of known length.
        x: any shape.

    Returns: y, of the shape of x and the promoted dtype.

    Raises: ShapeError for input that is not a vector of coefficients.

    Gradient: dx = dy * p'(x), dp[k] = sum of dy * x**(n - 1 - k).

    Source: numpy.polyval.

    >>> gg.evaluate(gg.polyval([3, 0, 1], 5))
    array(76)
    """
    (p,) = _coefficients("polyval", p)
    p, x = promoted(p, x)
    y = like(0, x) * x
    for c in unstack(p):
        y = y * x + c
    return y


def polyadd(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The sum of two polynomials.

    Parameters:
        a1, a2: coefficients: vectors of known lengths.

    Returns: coefficients, as many as the longer of the two has.

    Raises: ShapeError for input that is not a vector of coefficients.

    Gradient: da1 and da2 = the dy of their powers.

    Source: numpy.polyadd.

    >>> gg.evaluate(gg.polyadd([1, 2], [9, 5, 4]))
    array([9, 6, 6])
    """
    return _aligned(add, *_coefficients("polyadd", a1, a2))


def polysub(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The difference of two polynomials.

    Parameters:
        a1, a2: coefficients: vectors of known lengths.

    Returns: coefficients, as many as the longer of the two has.

    Raises: ShapeError for input that is not a vector of coefficients.

    Gradient: da1 = the dy of its powers, da2 = -dy of them.

    Source: numpy.polysub.

    >>> gg.evaluate(gg.polysub([2, 10, -2], [3, 10, -4]))
    array([-1,  0,  2])
    """
    return _aligned(subtract, *_coefficients("polysub", a1, a2))


def _aligned(fn: Any, a: Tensor, b: Tensor) -> Tensor:
    """fn of the coefficients of the same powers; higher ones are those of one alone."""
    a, b = promoted(a, b)
    less = _length(a) - _length(b)
    if less == 0:
        return fn(a, b)  # type: ignore[no-any-return]
    zeros = constant(np.zeros(abs(less)), a.dtype)
    return fn(*((a, concat([zeros, b])) if less > 0 else (concat([zeros, a]), b)))  # type: ignore[no-any-return]


def _length(t: Tensor) -> int:
    """The known length of a vector."""
    assert isinstance(t.shape[0], int)
    return t.shape[0]


def polymul(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The product of two polynomials. Leading zeros stay, which NumPy drops.

    Parameters:
        a1, a2: coefficients: vectors of known lengths.

    Returns: coefficients, one less than both have together.

    Raises: ShapeError for input that is not a vector of coefficients.

    Gradient: as of convolve.

    Source: numpy.polymul.

    >>> gg.evaluate(gg.polymul([1, 2, 3], [9, 5, 1]))
    array([ 9, 23, 38, 17,  3])
    """
    a, b = _coefficients("polymul", a1, a2)
    return convolve(a, b)


def polydiv(u: TensorLike, v: TensorLike) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials: u = q v + r.

    Parameters:
        u, v: coefficients: vectors of known lengths; that of the highest power of v is not 0.

    Returns: (q, r), floating: as many coefficients of q as u has more than v, and one; and one less
        of r than v has, at least one. Leading zeros of r stay, which NumPy drops.

    Raises: ShapeError for input that is not a vector of coefficients.

    Gradient: that of the long division.

    Source: numpy.polydiv; jax.numpy.polydiv for the lengths.

    >>> q, r = gg.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
    >>> gg.evaluate([q, r])
    [array([1.5 , 1.75]), array([0.25])]
    """
    u, v = operands(*_coefficients("polydiv", u, v))
    if not _length(u) or not _length(v):
        raise ShapeError(f"polydiv takes polynomials with coefficients, got {u.type!r}, {v.type!r}")
    more, n = _length(u) - _length(v), _length(v)
    scale, quotient, rest = 1 / v[:1], [], u
    for _ in range(more + 1):
        quotient.append(scale * rest[:1])
        rest = concat([(rest[:n] - quotient[-1] * v)[1:], rest[n:]])
    q = concat(quotient) if quotient else constant([0], u.dtype)
    return q, rest if _length(rest) else constant([0], u.dtype)


def roots(p: TensorLike) -> Tensor:
    """The zeros of a polynomial: the eigenvalues of its companion matrix.

    Parameters: p: coefficients, the highest power first: a vector of known length, at least 1; the
        first is not 0.

    Returns: the zeros, one less than there are coefficients, always complex, in the order of
        LAPACK. A run raises numpy.linalg.LinAlgError where the first coefficient is 0, which NumPy
        drops.

    Raises: ShapeError for input that is not a vector of coefficients; DTypeError for float16.

    Gradient: that of the eigenvalues: -dy * zero**k / p'(zero) for the coefficient of x**k, where
        no zero is double.

    Source: numpy.roots; jax.numpy.roots with strip_zeros=False.

    >>> gg.evaluate(gg.roots([1.0, -3.0, 2.0])).round(6)
    array([2.+0.j, 1.+0.j])
    """
    (p,) = operands(*_coefficients("roots", p))
    n = _length(p) - 1
    if n < 0:
        raise ShapeError(f"roots takes at least one coefficient, got {p.type!r}")
    if n == 0:
        return constant(np.zeros(0), result_dtype([p.dtype, as_dtype("complex64")]))
    below = constant(np.eye(n - 1, n), p.dtype)
    return eigvals(concat([expand_dims(-p[1:] / p[0], 0), below]))


def polyder(p: TensorLike, m: int = 1) -> Tensor:
    """The derivative of a polynomial, m times over.

    Parameters:
        p: coefficients: a vector of known length.
        m: how often, >= 0.

    Returns: coefficients, m less.

    Raises: ShapeError for input that is not a vector of coefficients; ValueError for a negative m.

    Gradient: dp[k] = dy[k] times the power.

    Source: numpy.polyder.

    >>> gg.evaluate(gg.polyder([1, 1, 1, 1]))
    array([3, 2, 1])
    """
    (p,) = _coefficients("polyder", p)
    if whole("m", m) < 0:
        raise ValueError(f"a derivative is taken m >= 0 times, got {m}")
    for _ in range(m):
        p = p[:-1] * np.arange(max(_length(p) - 1, 0), 0, -1)
    return p


def polyint(p: TensorLike, m: int = 1, k: TensorLike | None = None) -> Tensor:
    """The antiderivative of a polynomial, m times over.

    Parameters:
        p: coefficients: a vector of known length.
        m: how often, >= 0.
        k: the constant of integration, or one for each time; None: 0.

    Returns: coefficients, m more.

    Raises: ShapeError for input that is not a vector of coefficients, or another number of
        constants; ValueError for a negative m.

    Gradient: dp[i] = dy[i] over the power, dk = dy of the last.

    Source: numpy.polyint.

    >>> gg.evaluate(gg.polyint([6.0, 2.0], k=5))
    array([3., 2., 5.])
    """
    (p,) = _coefficients("polyint", p)
    if whole("m", m) < 0:
        raise ValueError(f"an integral is taken m >= 0 times, got {m}")
    if m == 0:
        return p
    (constants,) = _coefficients("polyint", 0.0 if k is None else k)
    if _length(constants) not in (1, m):
        raise ShapeError(f"polyint takes 1 or m={m} constants, got {constants.type!r}")
    for i in range(m):
        at = min(i, _length(constants) - 1)
        powers = np.arange(_length(p), 0, -1)
        p = concat([p / powers, constants[at : at + 1]])
    return p


def poly(seq_of_zeros: TensorLike) -> Tensor:
    """The polynomial with these zeros, and 1 before its highest power.

    Parameters:
        seq_of_zeros: a vector of known length; or a square matrix, whose eigenvalues are meant.

    Returns: coefficients, one more than there are zeros; float64 for integers and float16. Those of
        a real matrix are real.

    Raises: ShapeError for input that is not a vector of known length, nor a square matrix of that.

    Gradient: that of the products of (x - zero); of a matrix, that of its eigenvalues, which has to
        have as many eigenvectors as columns.

    Source: numpy.poly.

    >>> gg.evaluate(gg.poly([1.0, 2.0]))
    array([ 1., -3.,  2.])
    """
    matrix = as_tensor(seq_of_zeros)
    if matrix.ndim == 2:
        y = poly(eigvals(matrix))
        return y if matrix.type.complex else real(y)
    (zeros,) = _coefficients("poly", matrix)
    small = not is_inexact(zeros.dtype) or zeros.dtype == np.float16
    y = constant([1], "float64" if small else zeros.dtype)
    zeros = cast(zeros, y.dtype)
    for zero in unstack(zeros):
        y = concat([y, like([0], y)]) - concat([like([0], y), y * zero])
    return y


def polyfit(
    x: TensorLike,
    y: TensorLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: TensorLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial that fits points best: sum of (w (y - p(x)))**2 is least.

    Parameters:
        x: where the points are: a vector.
        y: their values: a vector, or a column for each polynomial.
        deg: the degree, >= 0.
        rcond: singular values of at most rcond times the greatest count as 0; None: the number of
            points times the spacing of x's dtype at 1.
        full: whether to say more of the least squares.
        w: how much each point counts: a vector.
        cov: whether the covariances of the coefficients are returned, too; "unscaled": as if w were
            1 / the deviation of y.

    Returns: deg + 1 coefficients, the highest power first, float64 or complex128; with cov,
        (coefficients, covariances); with full, (coefficients, sums of squares, rank, singular
        values, rcond), as of lstsq. Where several polynomials fit best, as where points coincide,
        that whose coefficients, each times the norm of its column, are least.

    Raises: ShapeError for shapes that do not fit, or fewer than deg + 1 points; ValueError for a
        negative deg, or if cov takes more points; DTypeError for bfloat16.

    Gradient: of the least squares, for y, x and w.

    Source: numpy.polyfit; Golub and Pereyra 1973, "The differentiation of pseudo-inverses and
        nonlinear least squares problems whose variables separate".

    >>> gg.evaluate(gg.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1)).round(6)
    array([2., 1.])
    """
    truth("full", full)
    if whole("deg", deg) < 0:
        raise ValueError(f"the degree of a polynomial is >= 0, got {deg}")
    (x,), (y,) = promoted(x, floating=True), promoted(y, floating=True)
    if x.ndim != 1 or y.ndim not in (1, 2) or 0 in x.shape:
        raise ShapeError(
            f"polyfit takes points x: (M,), y: (M,) or (M, K), got {x.type!r}, {y.type!r}"
        )
    n = x.shape[0]
    if isinstance(n, int) and n <= deg:
        raise ShapeError(f"{n} points do not say which polynomial of degree {deg} fits best")
    if rcond is None and isinstance(n, int):
        rcond = n * limits_of(x.dtype).eps
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = expand_dims(like(w, left), 1)
        left = left * weights
        right = right * (weights if y.ndim == 2 else weights[:, 0])
    scale = sqrt(sum(square(moduli(left)), 0))
    left = left / scale
    c, *more = (lstsq if full else solution)(left, right, rcond)
    c = c / (scale if y.ndim == 1 else expand_dims(scale, 1))
    if full:
        return (c, *more, rcond)
    return c if cov is False else (c, _covariances(left, right, scale, c, cov, deg))


def _covariances(
    left: Tensor, right: Tensor, scale: Tensor, c: Tensor, cov: bool | str, deg: int
) -> Tensor:
    base = inv(matmul(matrix_transpose(left), left)) / (expand_dims(scale, 1) * scale)
    if cov != "unscaled":
        n = left.shape[0]
        if not isinstance(n, int) or n <= deg + 1:
            raise ValueError(f"the covariances of polyfit take more than {deg + 1} points")
        distance = right - matmul(left * scale, c)
        factor = sum(square(moduli(distance)), 0) / (n - deg - 1)
    else:
        factor = like(1, base)
    if right.ndim == 1:
        return base * factor
    return expand_dims(base, -1) * factor
