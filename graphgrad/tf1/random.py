"""`tf.random`."""

from __future__ import annotations

from .ops import random as _random
from .ops.random import *
from .ops.random import (
    bernoulli,
    categorical,
    random_gamma,
    random_normal,
    random_poisson,
    random_shuffle,
    random_uniform,
    set_random_seed,
)

normal, uniform, shuffle = random_normal, random_uniform, random_shuffle
gamma, poisson, set_seed = random_gamma, random_poisson, set_random_seed
__all__ = [
    "bernoulli",
    "categorical",
    "gamma",
    "normal",
    "poisson",
    "set_seed",
    "shuffle",
    "uniform",
]
__all__ += _random.__all__
