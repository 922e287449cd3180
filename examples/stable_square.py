"""A gradient of one's own for one step of a graph, and for nothing else.

The square is an ordinary square. Its gradient is not allowed to grow beyond 10, so that one huge
input does not throw a whole training step away. The rest of the graph keeps its own gradients.
"""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def stable_square(x):
    def grad(dy):
        return dy * gg.clip(2.0 * x, -10.0, 10.0)

    return x * x, grad


with gg.Graph():
    x = gg.placeholder(("N",), name="x")
    loss = gg.sum(stable_square(x)) + gg.sum(gg.exp(-x))
    plain = gg.sum(x * x) + gg.sum(gg.exp(-x))
    step = gg.compile(x, [loss, plain, gg.gradients(loss, x), gg.gradients(plain, x)])

values = np.array([1.0, -3.0, 1000.0])
value, same_value, dx, plain_dx = step(values)

print("inputs          ", values)
print("plain gradient  ", plain_dx)
print("stable gradient ", dx)
assert value == same_value  # the forward pass does not know about the rule
np.testing.assert_allclose(dx, np.clip(2 * values, -10, 10) - np.exp(-values))
np.testing.assert_allclose(plain_dx, 2 * values - np.exp(-values))
