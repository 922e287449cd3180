"""A long computation with a short gradient: the matrix exponential.

The forward pass is a series. Its gradient is the exponential of a block matrix [Mathias 1996],
which the rule gets from the very function it belongs to, so that every order is there.
"""

import numpy as np

import graphgrad as gg

TERMS = 20


def series(x):
    total = term = gg.eye(x.shape[0])
    for k in range(1, TERMS):
        term = term @ x / float(k)
        total = total + term
    return total


@gg.custom_gradient
def expm(x):
    n = x.shape[0]

    def grad(dy):
        top = gg.concat([x.T, dy], axis=1)
        bottom = gg.concat([gg.zeros((n, n)), x.T], axis=1)
        return expm(gg.concat([top, bottom]))[:n, n:]

    return series(x), grad


a = np.random.default_rng(0).normal(size=(3, 3)) / 3

with gg.Graph():
    x = gg.placeholder((3, 3), name="x")
    first, second = [], []
    for function in (expm, series):
        y = gg.sum(gg.square(function(x)))
        first.append(gg.gradients(y, x))
        second.append(gg.gradients(gg.sum(gg.square(first[-1])), x))
    (by_rule, by_series), (second, second_by_series) = gg.compile(x, [first, second])(a)

print(np.round(by_rule, 4))
print("largest difference:", np.abs(by_rule - by_series).max())
np.testing.assert_allclose(by_rule, by_series, rtol=1e-9)
np.testing.assert_allclose(second, second_by_series, rtol=1e-9)
