"""Straight through without an override: x + stop_gradient(q(x) - x) is q(x), and its gradient 1."""

import numpy as np

import graphgrad as gg


def quantised(x):
    q = gg.round(x * 4.0) / 4.0
    return x + gg.stop_gradient(q - x)


with gg.Graph():
    x = gg.placeholder((3,), name="x")
    by_trick = quantised(x)
    by_rule = gg.grad_pass_through(lambda x: gg.round(x * 4.0) / 4.0)(x)
    ys = [by_trick, by_rule]
    dxs = [gg.gradients(gg.sum(gg.square(y)), x) for y in ys]
    f = gg.compile(x, [ys, dxs])

(trick, rule), (d_trick, d_rule) = f([0.3, 0.4, -1.2])
print("values   ", trick, rule)
print("gradients", d_trick, d_rule)
np.testing.assert_allclose(trick, rule)
np.testing.assert_allclose(d_trick, 2 * np.array([0.25, 0.5, -1.25]))
np.testing.assert_allclose(d_trick, d_rule)
