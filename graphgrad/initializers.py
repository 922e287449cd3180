"""Initial values of variables: NumPy arrays from explicit seeds.

    w = gg.variable(gg.initializers.he_normal((784, 256), seed=0, dtype="float32"))

A weight of shape (..., fan_in, fan_out) is meant; axes before the last two (those of a
convolution's window) count for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .ir.errors import ShapeError
from .ir.types import Array, as_dtype

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


Lengths = int | Sequence[int]


def zeros(shape: Lengths, dtype: Any = "float64") -> Array:
    """All zeros."""
    return np.zeros(shape, as_dtype(dtype))


def ones(shape: Lengths, dtype: Any = "float64") -> Array:
    """All ones."""
    return np.ones(shape, as_dtype(dtype))


def normal(
    shape: Lengths, seed: int, mean: float = 0.0, std: float = 1.0, dtype: Any = "float64"
) -> Array:
    """Normal with this mean and standard deviation."""
    return np.asarray(np.random.default_rng(seed).normal(mean, std, shape), as_dtype(dtype))


def uniform(
    shape: Lengths, seed: int, low: float = -1.0, high: float = 1.0, dtype: Any = "float64"
) -> Array:
    """Uniform in [low, high)."""
    return np.asarray(np.random.default_rng(seed).uniform(low, high, shape), as_dtype(dtype))


def glorot_uniform(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Uniform of variance 2 / (fan_in + fan_out) [Glorot and Bengio 2010]."""
    limit = (6.0 / sum(_fans(shape))) ** 0.5
    return uniform(shape, seed, -limit, limit, dtype)


def glorot_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 2 / (fan_in + fan_out) [Glorot and Bengio 2010]."""
    return normal(shape, seed, 0.0, (2.0 / sum(_fans(shape))) ** 0.5, dtype)


def he_uniform(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Uniform of variance 2 / fan_in [He et al. 2015]."""
    limit = (6.0 / _fans(shape)[0]) ** 0.5
    return uniform(shape, seed, -limit, limit, dtype)


def he_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 2 / fan_in [He et al. 2015]."""
    return normal(shape, seed, 0.0, (2.0 / _fans(shape)[0]) ** 0.5, dtype)


def lecun_normal(shape: Sequence[int], seed: int, dtype: Any = "float64") -> Array:
    """Normal of variance 1 / fan_in [LeCun et al. 1998]."""
    return normal(shape, seed, 0.0, (1.0 / _fans(shape)[0]) ** 0.5, dtype)


def orthogonal(shape: tuple[int, int], seed: int, dtype: Any = "float64") -> Array:
    """A matrix with orthonormal rows or columns, whichever are fewer [Saxe et al. 2013]."""
    if len(shape) != 2:
        raise ShapeError(f"orthogonal takes the shape of a matrix, got {shape}")
    tall = np.random.default_rng(seed).normal(size=(max(shape), min(shape)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diagonal(r))  # else not uniform among orthogonal matrices
    return np.asarray(q if shape[0] >= shape[1] else q.T, as_dtype(dtype))


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2 or 0 in shape:
        raise ShapeError(f"fan in and out need at least two axes, none empty, got {tuple(shape)}")
    window = prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window
