"""Dropout."""

from __future__ import annotations

from ..base import (
    Tensor,
    TensorLike,
    promoted,
)
from ..logic import where
from ..random import bernoulli

__all__ = ["dropout"]


def dropout(x: TensorLike, rate: float, *, seed: TensorLike, training: bool = True) -> Tensor:
    """x with each element 0 with probability rate, the others divided by 1 - rate.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        rate: a Python number, 0 <= rate < 1.
        seed: an int or a scalar integer tensor; one seed, one mask, forward and backward.
        training: whether to drop at all; if not, the result is x itself.

    Returns: shape and dtype of x.

    Raises: ValueError for another rate; DTypeError for another seed.

    Gradient: dx = dy / (1 - rate) where the element was kept, else 0.

    Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
        overfitting"; scaled in training.

    >>> gg.evaluate(gg.nn.dropout(np.ones(6), 0.5, seed=3))
    array([0., 2., 2., 0., 0., 0.])
    """
    (x,) = promoted(x, floating=True)
    if not 0 <= rate < 1:
        raise ValueError(f"a dropout rate is at least 0 and below 1, got {rate}")
    if not training or rate == 0:
        return x
    kept = bernoulli(x, 1.0 - rate, seed=seed)
    return where(kept, x * (1.0 / (1.0 - rate)), 0.0)
