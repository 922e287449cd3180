"""Probability distributions: `tf.distributions`."""

from __future__ import annotations

import math
from typing import Any

from .create import constant, convert_to_tensor, name_scope
from .dtypes import as_dtype
from .graph import Tensor
from .ops import array as A
from .ops import math as M
from .ops import nn
from .ops import random as R

__all__ = [
    "Bernoulli", "Categorical", "Distribution", "Normal", "Uniform", "kl_divergence",
]  # fmt: skip


class Distribution:
    """Base class: what is said of densities, in terms of each other."""

    dtype: Any = as_dtype("float32")

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density."""
        return M.exp(self.log_prob(value))

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Tensor:
        """Draws, of this shape before that of the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no sample")

    def kl_divergence(self, other: Any) -> Tensor:
        """How far this is from another."""
        return kl_divergence(self, other)


def _whole(sample_shape: Any, like: Tensor) -> Any:
    lead = [int(n) for n in ([sample_shape] if isinstance(sample_shape, int) else sample_shape)]
    if like.shape.is_fully_defined():
        return [*lead, *like.shape.as_list()]
    return A.concat([lead, A.shape(like)], 0) if lead else A.shape(like)


class Normal(Distribution):
    """The normal distribution, by mean and deviation."""

    def __init__(self, loc: Any, scale: Any, name: str = "Normal", **_: Any) -> None:
        with name_scope(name, values=[loc, scale]):
            self.loc = convert_to_tensor(loc, name="loc")
            self.scale = convert_to_tensor(scale, self.loc.dtype.base_dtype, name="scale")
        self.dtype = self.loc.dtype.base_dtype

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """-((x - mean) / deviation)^2 / 2 - log deviation - log(2 pi) / 2."""
        z = (convert_to_tensor(value, self.dtype) - self.loc) / self.scale
        return -0.5 * M.square(z) - (0.5 * math.log(2 * math.pi) + M.log(self.scale))

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Tensor:
        """mean + deviation times standard draws."""
        both = self.loc + self.scale
        return R.random_normal(_whole(sample_shape, both), dtype=self.dtype, seed=seed) * (
            self.scale) + self.loc  # fmt: skip

    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        return self.loc + A.zeros_like(self.scale)

    mode = mean

    def stddev(self, name: str = "stddev") -> Tensor:
        """The deviation."""
        return self.scale + A.zeros_like(self.loc)

    def variance(self, name: str = "variance") -> Tensor:
        """The deviation squared."""
        return M.square(self.stddev())

    def entropy(self, name: str = "entropy") -> Tensor:
        """log deviation + (1 + log(2 pi)) / 2."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + M.log(self.stddev())


class Uniform(Distribution):
    """The same density between two bounds."""

    def __init__(self, low: Any = 0.0, high: Any = 1.0, name: str = "Uniform", **_: Any) -> None:
        with name_scope(name, values=[low, high]):
            self.low = convert_to_tensor(low, name="low")
            self.high = convert_to_tensor(high, self.low.dtype.base_dtype, name="high")
        self.dtype = self.low.dtype.base_dtype

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """1 / (high - low) between the bounds, else 0."""
        x = convert_to_tensor(value, self.dtype)
        inside = M.logical_and(M.greater_equal(x, self.low), M.less(x, self.high))
        return M.cast(inside, self.dtype) / (self.high - self.low)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of it."""
        return M.log(self.prob(value))

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Tensor:
        """low + (high - low) times standard draws."""
        draws = R.random_uniform(_whole(sample_shape, self.low + self.high), dtype=self.dtype,
                                 seed=seed)  # fmt: skip
        return self.low + (self.high - self.low) * draws

    def mean(self, name: str = "mean") -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2.0

    def entropy(self, name: str = "entropy") -> Tensor:
        """log(high - low)."""
        return M.log(self.high - self.low)


class _Discrete(Distribution):
    """A distribution by logits or by probabilities: one of them is given."""

    def _parametrise(
        self, logits: Any, probs: Any, name: str, to_probs: Any, to_logits: Any
    ) -> None:
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        with name_scope(name):
            if logits is None:
                self.probs = convert_to_tensor(probs, name="probs")
                self.logits = to_logits(self.probs)
            else:
                self.logits = convert_to_tensor(logits, name="logits")
                self.probs = to_probs(self.logits)


def _log_odds(probs: Tensor) -> Tensor:
    return M.log(probs) - M.log1p(-1.0 * probs)


class Bernoulli(_Discrete):
    """1 with a probability, else 0; by logits or probabilities."""

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = "int32", name: str = "Bernoulli",
        **_: Any,
    ) -> None:  # fmt: skip
        self._parametrise(logits, probs, name, M.sigmoid, _log_odds)
        self.dtype = as_dtype(dtype)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """Minus the cross entropy."""
        z = M.cast(convert_to_tensor(value), self.logits.dtype)
        logits, z = self.logits + A.zeros_like(z), z + A.zeros_like(self.logits)
        return -nn.sigmoid_cross_entropy_with_logits(labels=z, logits=logits)

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Tensor:
        """Draws."""
        kind = self.probs.dtype
        draws = R.random_uniform(_whole(sample_shape, self.probs), dtype=kind, seed=seed)
        return M.cast(M.less(draws, self.probs), self.dtype)

    def mean(self, name: str = "mean") -> Tensor:
        """The probability."""
        return A.identity(self.probs)

    def mode(self, name: str = "mode") -> Tensor:
        """What is more probable."""
        return M.cast(M.greater(self.probs, 0.5), self.dtype)

    def entropy(self, name: str = "entropy") -> Tensor:
        """The expected cross entropy."""
        return nn.softplus(-self.logits) + (1.0 - self.probs) * self.logits


class Categorical(_Discrete):
    """A number of a class, by logits or probabilities along the last axis."""

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = "int32",
        name: str = "Categorical", **_: Any,
    ) -> None:  # fmt: skip
        self._parametrise(logits, probs, name, nn.softmax, M.log)
        self.dtype = as_dtype(dtype)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """Minus the cross entropy."""
        places = M.cast(convert_to_tensor(value), "int32")
        logits = self.logits
        if places.shape.ndims != len(logits.shape) - 1:
            shape = A.concat([A.shape(places), [1]], 0)
            logits = logits + A.zeros(shape, logits.dtype)
        return -nn.sparse_softmax_cross_entropy_with_logits(labels=places, logits=logits)

    def sample(self, sample_shape: Any = (), seed: Any = None, name: str = "sample") -> Tensor:
        """Draws."""
        flat = A.reshape(self.logits, [-1, self.logits.shape[-1]])
        lead = [int(n) for n in ([sample_shape] if isinstance(sample_shape, int) else sample_shape)]
        count = math.prod(lead)
        draws = A.transpose(R.multinomial(flat, count, seed))
        shape = A.concat([constant(lead, "int32"), A.shape(self.logits)[:-1]], 0) if lead else (
            A.shape(self.logits)[:-1])  # fmt: skip
        return M.cast(A.reshape(draws, shape), self.dtype)

    def mode(self, name: str = "mode") -> Tensor:
        """What is most probable."""
        return M.argmax(self.logits, -1, output_type=self.dtype)

    def entropy(self, name: str = "entropy") -> Tensor:
        """-sum(p log p)."""
        return -M.reduce_sum(nn.log_softmax(self.logits) * self.probs, -1)


def kl_divergence(distribution_a: Any, distribution_b: Any, name: Any = None) -> Tensor:
    """How far one distribution is from another of its kind."""
    a, b = distribution_a, distribution_b
    if isinstance(a, Normal) and isinstance(b, Normal):
        ratio = M.square(a.scale / b.scale)
        return M.square(a.loc - b.loc) / (2.0 * M.square(b.scale)) + 0.5 * (
            ratio - 1.0 - M.log(ratio))  # fmt: skip
    if isinstance(a, Categorical) and isinstance(b, Categorical):
        gap = nn.log_softmax(a.logits) - nn.log_softmax(b.logits)
        return M.reduce_sum(a.probs * gap, -1)
    if isinstance(a, Bernoulli) and isinstance(b, Bernoulli):
        of_one = nn.softplus(-b.logits) - nn.softplus(-a.logits)
        of_zero = nn.softplus(b.logits) - nn.softplus(a.logits)
        return a.probs * of_one + (1.0 - a.probs) * of_zero
    raise NotImplementedError(
        f"No KL(distribution_a || distribution_b) registered for {type(a).__name__} and "
        f"{type(b).__name__}"
    )
