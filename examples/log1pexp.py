"""log(1 + exp(x)) with a gradient that does not overflow.

In float32 exp(100) is infinite, and the chain rule makes 1/inf * inf of it, which is NaN. The
gradient can be simplified by hand to 1 - 1 / (1 + exp(x)), and that is 1 at x = 100.
"""

import numpy as np

import graphgrad as gg


def log1pexp(x):
    return gg.log(1 + gg.exp(x))


@gg.custom_gradient
def stable_log1pexp(x):
    e = gg.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return gg.log(1 + e), grad


with gg.Graph():
    x = gg.placeholder((), "float32", name="x")
    naive = gg.compile(x, gg.gradients(log1pexp(x), x))
    stable = gg.compile(x, gg.gradients(stable_log1pexp(x), x))

with np.errstate(all="ignore"):  # the forward value overflows either way
    for at in (-100.0, 0.0, 1.0, 100.0):
        print(f"x = {at:6}:  naive {naive(at)}  stable {stable(at)}")
    assert np.isnan(naive(100.0))
    assert stable(100.0) == 1.0
assert naive(0.0) == stable(0.0) == 0.5
