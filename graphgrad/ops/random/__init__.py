"""Random numbers: from explicit seeds, or new ones in every run.

A seed is an int or a scalar integer tensor (which a step can vary); `split` and `fold_in` make more
of one. The same call with the same seed draws the same numbers, on every backend; other seeds,
other numbers. Different functions draw independently of each other from one seed. Without a seed
the key is that of the graph's seed, the number of the draw in its graph, and the run, which the
State counts (`keys`).

All is made of the words of Philox, a counter-based generator (`philox`): bits and integers are the
same on every backend, floats to a few units in the last place.
"""

from .continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    weibull,
)
from .counts import multinomial
from .discrete import (
    bernoulli,
    binomial,
    bits,
    categorical,
    choice,
    geometric,
    integers,
    permutation,
    poisson,
    rademacher,
    shuffle,
)
from .gammas import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, student_t
from .inverse_gaussian import wald
from .keys import fold_in, seed, split
from .vectors import ball, multivariate_normal, orthogonal

__all__ = [
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "integers",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "rayleigh",
    "seed",
    "shuffle",
    "split",
    "student_t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull",
]
