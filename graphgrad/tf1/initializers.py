"""What variables start with: functions of a shape, with TensorFlow's formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .create import apply, name_scope
from .create import constant as constant_of
from .dtypes import as_dtype
from .graph import Tensor
from .ops import array as A
from .ops import random as R
from .ops.math import sign

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Identity", "Ones", "Orthogonal", "RandomNormal",
    "RandomUniform", "TruncatedNormal", "UniformUnitScaling", "VarianceScaling", "Zeros",
    "constant", "constant_initializer", "glorot_normal", "glorot_normal_initializer",
    "glorot_uniform", "glorot_uniform_initializer", "he_normal", "he_uniform", "identity",
    "identity_initializer", "lecun_normal", "lecun_uniform", "ones", "ones_initializer",
    "orthogonal", "orthogonal_initializer", "random_normal", "random_normal_initializer",
    "random_uniform", "random_uniform_initializer", "truncated_normal",
    "truncated_normal_initializer", "uniform_unit_scaling_initializer", "variance_scaling",
    "variance_scaling_initializer", "zeros", "zeros_initializer",
]  # fmt: skip
Name = str | None


class Initializer:
    """A function of a shape that makes the tensor that a variable starts with."""

    dtype: Any = as_dtype("float32")

    def __init__(self, dtype: Any = "float32") -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return self._make([int(n) for n in shape], self.dtype if dtype is None else as_dtype(dtype))

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Its parameters."""
        return {k.lstrip("_"): v for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """One of these parameters."""
        return cls(**config)


class Zeros(Initializer):
    """Zeros."""

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return A.zeros(shape, dtype)


class Ones(Initializer):
    """Ones."""

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return A.ones(shape, dtype)


class Constant(Initializer):
    """One value everywhere, or the values of an array."""

    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        self.value, self.dtype = value, as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return constant_of(self.value, dtype, shape)


class RandomUniform(Initializer):
    """Uniform between two bounds."""

    def __init__(
        self, minval: Any = 0, maxval: Any = None, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        high = 1 if self.maxval is None else self.maxval
        return R.random_uniform(shape, self.minval, high, dtype, seed=self.seed)


class RandomNormal(Initializer):
    """Normal."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return R.random_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Normal, drawn again beyond two standard deviations."""

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return R.truncated_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class VarianceScaling(Initializer):
    """Random numbers whose variance is scale / n, with n the number of inputs, outputs or both."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        dtype: Any = "float32",
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}")
        self.scale, self.mode, self.distribution = scale, mode, distribution.lower()
        self.seed, self.dtype = seed, as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        inside, outside = fans(shape)
        count = {"fan_in": inside, "fan_out": outside, "fan_avg": (inside + outside) / 2}[self.mode]
        scale = self.scale / max(1.0, count)
        if self.distribution in ("normal", "truncated_normal"):
            deviation = math.sqrt(scale) / 0.87962566103423978
            return R.truncated_normal(shape, 0.0, deviation, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return R.random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        limit = math.sqrt(3.0 * scale)
        return R.random_uniform(shape, -limit, limit, dtype, seed=self.seed)


def fans(shape: list[int]) -> tuple[float, float]:
    """How many inputs and outputs a weight of this shape connects."""
    if len(shape) < 1:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = float(np.prod(shape[:-2]))
    return shape[-2] * field, shape[-1] * field


class GlorotUniform(VarianceScaling):
    """Uniform, with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: Any = None, dtype: Any = "float32") -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Normal, with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: Any = None, dtype: Any = "float32") -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class UniformUnitScaling(Initializer):
    """Uniform, so that the scale of what comes in is kept."""

    def __init__(self, factor: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.factor, self.seed, self.dtype = factor, seed, as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        limit = math.sqrt(3 / max(1.0, float(np.prod(shape[:-1])))) * self.factor
        return R.random_uniform(shape, -limit, limit, dtype, seed=self.seed)


class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns."""

    def __init__(self, gain: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.gain, self.seed, self.dtype = gain, seed, as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        if len(shape) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = int(np.prod(shape[:-1])), shape[-1]
        with name_scope("orthogonal"):
            flat = [max(rows, columns), min(rows, columns)]
            q, r = apply(
                "Qr", R.random_normal(flat, dtype=dtype, seed=self.seed), full_matrices=False
            )
            q = q * sign(A.matrix_diag_part(r))
            if rows < columns:
                q = A.transpose(q)
            return A.reshape(q, shape) * self.gain


class Identity(Initializer):
    """The identity matrix."""

    def __init__(self, gain: float = 1.0, dtype: Any = "float32") -> None:
        self.gain, self.dtype = gain, as_dtype(dtype)

    def _make(self, shape: list[int], dtype: Any) -> Tensor:
        return constant_of(np.eye(shape[0], shape[-1]) * self.gain, dtype)


zeros_initializer, ones_initializer, constant_initializer = Zeros, Ones, Constant
zeros, ones, constant, identity = Zeros, Ones, Constant, Identity
random_uniform, random_normal, truncated_normal = RandomUniform, RandomNormal, TruncatedNormal
orthogonal, glorot_uniform, glorot_normal = Orthogonal, GlorotUniform, GlorotNormal
variance_scaling = VarianceScaling
random_uniform_initializer, random_normal_initializer = RandomUniform, RandomNormal
truncated_normal_initializer, variance_scaling_initializer = TruncatedNormal, VarianceScaling
glorot_uniform_initializer, glorot_normal_initializer = GlorotUniform, GlorotNormal
orthogonal_initializer, identity_initializer = Orthogonal, Identity
uniform_unit_scaling_initializer = UniformUnitScaling


def he_normal(seed: Any = None) -> VarianceScaling:
    """Normal, with variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: Any = None) -> VarianceScaling:
    """Uniform, with variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: Any = None) -> VarianceScaling:
    """Normal, with variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: Any = None) -> VarianceScaling:
    """Uniform, with variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)
