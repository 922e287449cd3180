"""Random vectors and matrices."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...ir.types import as_shape
from ..base import Any, Tensor, TensorLike, as_tensor, cast, whole
from ..contract.products import matmul
from ..create.diagonal import diagonal
from ..elementwise.exponential import exp, log, sqrt
from ..elementwise.logic import less, where
from ..linalg.orthogonal import qr
from ..linalg.positive_definite import cholesky
from ..reduce.reductions import sum
from ..shape.reshaping import expand_dims, squeeze
from .continuous import above_zero, drawn, floating
from .draws import RandomNormal, RandomUniform, lengths_of
from .keys import key_of

__all__ = ["ball", "multivariate_normal", "orthogonal"]


def multivariate_normal(
    mean: TensorLike,
    cov: TensorLike,
    shape: Any = (),
    *,
    seed: TensorLike | None = None,
    dtype: Any = "float64",
) -> Tensor:
    """Normal vectors of this mean and covariance.

    Parameters:
        mean: (n,).
        cov: (n, n), symmetric and positive definite.
        shape: ints and lengths, how many of them: axes before the last.
        seed: an int or a scalar integer tensor; the same one gives the same numbers. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of shape + (n,) and this dtype.

    Raises: ShapeError for a mean and covariance that do not fit, or lengths that are not known;
    DTypeError for an unsupported dtype, or a seed that is not an integer.

    Gradient: dmean = dy, and that of cov through its Cholesky factor, summed to theirs.

    Source: y = mean + L @ z of normal numbers z, with L @ L.T = cov.

    >>> cov = [[1.0, 0.9], [0.9, 1.0]]
    >>> y = gg.evaluate(gg.random.multivariate_normal([0.0, 5.0], cov, 9999, seed=1))
    >>> y.shape, bool(abs(np.corrcoef(y.T)[0, 1] - 0.9) < 0.02)
    ((9999, 2), True)
    """
    kind = floating(dtype)
    mean, cov = as_tensor(mean, kind), as_tensor(cov, kind)
    if mean.ndim != 1 or cov.shape != (*mean.shape, *mean.shape):
        raise ShapeError(f"a mean (n,) and a covariance (n, n), got {mean.type!r} and {cov.type!r}")
    before = lengths_of(as_shape(shape))
    full = (*before, *lengths_of(mean))
    z = drawn(RandomNormal, full, kind, seed, "multivariate_normal", near=(mean, cov))
    return mean + squeeze(matmul(cholesky(cov), expand_dims(z, -1)), -1)


def orthogonal(
    n: int, shape: Any = (), *, seed: TensorLike | None = None, dtype: Any = "float64"
) -> Tensor:
    """Orthogonal matrices, all equally likely.

    Parameters:
        n: rows and columns.
        shape: ints and lengths, how many of them: axes before the last two.
        seed: an int or a scalar integer tensor; the same one gives the same matrices. None: new
            ones in every run.
        dtype: a floating one.

    Returns: a tensor of shape + (n, n) and this dtype.

    Raises: ShapeError for a length that is None; DTypeError for an unsupported dtype, or a seed
    that is not an integer.

    Gradient: none, nothing that has one goes in.

    Source: q of the QR factors of normal numbers, its columns multiplied by the signs of r
    [Mezzadri 2007, "How to generate random matrices from the classical compact groups"].

    >>> q = gg.evaluate(gg.random.orthogonal(3, seed=1))
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    kind, n = floating(dtype), whole("n", n)
    full = (*lengths_of(as_shape(shape)), n, n)
    z = drawn(RandomNormal, full, "float64", seed, "orthogonal")
    q, r = qr(z)
    signs = where(less(diagonal(r, axis1=-2, axis2=-1), 0.0), -1.0, 1.0)
    return cast(q * expand_dims(signs, -2), kind)


def ball(
    n: int, shape: Any = (), *, seed: TensorLike | None = None, dtype: Any = "float64"
) -> Tensor:
    """Points of the ball of radius 1 in n dimensions, all equally likely.

    Parameters:
        n: the number of dimensions, at least 1.
        shape: ints and lengths, how many of them: axes before the last.
        seed: an int or a scalar integer tensor; the same one gives the same points. None: new ones
            in every run.
        dtype: a floating one.

    Returns: a tensor of shape + (n,) and this dtype.

    Raises: ValueError for n below 1; ShapeError for a length that is None; DTypeError for
    an unsupported dtype, or a seed that is not an integer.

    Gradient: none, nothing that has one goes in.

    Source: normal vectors, scaled to the length u**(1 / n) of a uniform u.

    >>> y = gg.evaluate(gg.random.ball(2, (1000,), seed=1))
    >>> y.shape, bool(((y * y).sum(-1) <= 1).all())
    ((1000, 2), True)
    """
    kind, n = floating(dtype), whole("n", n)
    if n < 1:
        raise ValueError(f"a ball has at least 1 dimension, got {n}")
    before, key = lengths_of(as_shape(shape)), key_of(seed)
    z = drawn(RandomNormal, (*before, n), "float64", key, "ball")
    u = above_zero(drawn(RandomUniform, (*before, 1), "float64", key, "ball length"))
    return cast(z / sqrt(sum(z * z, -1, keepdims=True)) * exp(log(u) / float(n)), kind)
