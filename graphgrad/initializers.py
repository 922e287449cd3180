"""Initial values of variables: NumPy arrays from explicit seeds.

    w = gg.variable(gg.initializers.he_normal((784, 256), seed=0, dtype="float32"))

A weight of shape (..., fan_in, fan_out) is meant; axes before the last two (those of a
convolution's window) count for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .base.domains import FINITE, FROM_ZERO, NON_NEGATIVE
from .base.errors import DTypeError, ShapeError
from .base.first_tries import unknown_names
from .base.kinds import is_inexact
from .ir.types import Array, DType, as_dtype

__all__ = [
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "normal",
    "ones",
    "orthogonal",
    "uniform",
    "zeros",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)


Lengths = int | Sequence[int]


def zeros(shape: Lengths, dtype: Any = "float64") -> Array:
    """All zeros.

    Parameters:
        shape: an int or a sequence of ints.
        dtype: any.

    Returns: an array.

    Raises: DTypeError for a non-numeric dtype.

    >>> gg.initializers.zeros(2)
    array([0., 0.])
    """
    return np.zeros(shape, as_dtype(dtype))


def ones(shape: Lengths, dtype: Any = "float64") -> Array:
    """All ones.

    Parameters:
        shape: an int or a sequence of ints.
        dtype: any.

    Returns: an array.

    Raises: DTypeError for a non-numeric dtype.

    >>> gg.initializers.ones(2)
    array([1., 1.])
    """
    return np.ones(shape, as_dtype(dtype))


def normal(
    shape: Lengths, seed: int, mean: float = 0.0, std: float = 1.0, dtype: Any = "float64"
) -> Array:
    """Normally distributed numbers.

    Parameters:
        shape: an int or a sequence of ints.
        seed: an int >= 0; the same one gives the same numbers.
        mean, std: mean and standard deviation, finite numbers, std >= 0.
        dtype: floating or complex.

    Returns: an array.

    Raises: ValueError for a negative std; DTypeError for an unsupported dtype.

    >>> w = gg.initializers.normal(10_000, seed=0, std=2.0)
    >>> bool(abs(w.std() - 2.0) < 0.1)
    True
    """
    FINITE("mean", mean)
    NON_NEGATIVE("std", std)
    return np.asarray(_generator(seed).normal(mean, std, shape), _inexact(dtype))


def uniform(
    shape: Lengths, seed: int, low: float = -1.0, high: float = 1.0, dtype: Any = "float64"
) -> Array:
    """Numbers in [low, high), all equally likely.

    Parameters:
        shape: an int or a sequence of ints.
        seed: an int >= 0; the same one gives the same numbers.
        low, high: the ends, finite numbers, low <= high.
        dtype: floating or complex.

    Returns: an array.

    Raises: ValueError if high < low; DTypeError for an unsupported dtype.

    >>> w = gg.initializers.uniform(1000, seed=0)
    >>> bool(w.min() >= -1.0), bool(w.max() < 1.0)
    (True, True)
    """
    FINITE("low", low)
    FINITE("high", high)
    if high < low:
        raise ValueError(f"low <= high: got low={low} and high={high}")
    return np.asarray(_generator(seed).uniform(low, high, shape), _inexact(dtype))


def glorot_uniform(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Uniform of variance 2 / (fan_in + fan_out).

    Parameters:
        shape: (..., fan_in, fan_out); axes before the last two count for both.
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for fewer than two axes, or empty ones; DTypeError for an unsupported dtype.

    Source: [Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward
    neural networks"].

    >>> w = gg.initializers.glorot_uniform((100, 300), seed=0)
    >>> bool(abs(w.var() - 2 / 400) < 1e-4)
    True
    """
    limit = (6.0 / sum(_fans(shape))) ** 0.5
    return uniform(shape, seed, -limit, limit, dtype)


def glorot_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 2 / (fan_in + fan_out).

    Parameters:
        shape: (..., fan_in, fan_out); axes before the last two count for both.
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for fewer than two axes, or empty ones; DTypeError for an unsupported dtype.

    Source: [Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward
    neural networks"].

    >>> w = gg.initializers.glorot_normal((100, 300), seed=0)
    >>> bool(abs(w.var() - 2 / 400) < 1e-4)
    True
    """
    return normal(shape, seed, 0.0, (2.0 / sum(_fans(shape))) ** 0.5, dtype)


def he_uniform(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Uniform of variance 2 / fan_in.

    Parameters:
        shape: (..., fan_in, fan_out); axes before the last two count for both.
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for fewer than two axes, or empty ones; DTypeError for an unsupported dtype.

    Source: [He et al. 2015, "Delving deep into rectifiers"].

    >>> w = gg.initializers.he_uniform((100, 300), seed=0)
    >>> bool(abs(w.var() - 2 / 100) < 1e-3)
    True
    """
    limit = (6.0 / _fans(shape)[0]) ** 0.5
    return uniform(shape, seed, -limit, limit, dtype)


def he_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 2 / fan_in.

    Parameters:
        shape: (..., fan_in, fan_out); axes before the last two count for both.
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for fewer than two axes, or empty ones; DTypeError for an unsupported dtype.

    Source: [He et al. 2015, "Delving deep into rectifiers"].

    >>> w = gg.initializers.he_normal((100, 300), seed=0)
    >>> bool(abs(w.var() - 2 / 100) < 1e-3)
    True
    """
    return normal(shape, seed, 0.0, (2.0 / _fans(shape)[0]) ** 0.5, dtype)


def lecun_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 1 / fan_in.

    Parameters:
        shape: (..., fan_in, fan_out); axes before the last two count for both.
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for fewer than two axes, or empty ones; DTypeError for an unsupported dtype.

    Source: [LeCun et al. 1998, "Efficient BackProp"].

    >>> w = gg.initializers.lecun_normal((100, 300), seed=0)
    >>> bool(abs(w.var() - 1 / 100) < 1e-3)
    True
    """
    return normal(shape, seed, 0.0, (1.0 / _fans(shape)[0]) ** 0.5, dtype)


def orthogonal(shape: tuple[int, int], seed: int, dtype: Any = "float64") -> Array:
    """A matrix with orthonormal rows or columns, whichever are fewer.

    Parameters:
        shape: (rows, columns).
        seed: an int >= 0; the same one gives the same numbers.
        dtype: floating or complex.

    Returns: an array.

    Raises: ShapeError for an invalid shape of a matrix; DTypeError for an unsupported dtype.

    Source: [Saxe et al. 2013, "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks"].

    >>> w = gg.initializers.orthogonal((2, 3), seed=0)
    >>> bool(np.allclose(w @ w.T, np.eye(2)))
    True
    """
    if len(shape) != 2:
        raise ShapeError(f"orthogonal takes the shape of a matrix, got {shape}")
    tall = _generator(seed).normal(size=(max(shape), min(shape)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diagonal(r))  # else not uniform among orthogonal matrices
    return np.asarray(q if shape[0] >= shape[1] else q.T, _inexact(dtype))


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(FROM_ZERO("seed", seed))


def _inexact(dtype: Any) -> DType:
    """The dtype; DTypeError for integers and bools, to which such numbers would be cut off."""
    kind = as_dtype(dtype)
    if not is_inexact(kind):
        raise DTypeError(f"random initial values are floating or complex, not {kind}; use gg.cast")
    return kind


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2 or 0 in shape:
        raise ShapeError(f"fan in and out need at least two axes, none empty, got {tuple(shape)}")
    window = prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window
