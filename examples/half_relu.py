"""ReLU forward, half of what comes in backward: a gradient replaced by another one."""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def half_relu(x):
    def grad(dy):
        return dy * 0.5  # for negative inputs too: this is not the gradient of ReLU

    return gg.nn.relu(x), grad


@gg.register_gradient("half_of_default")
def half_of_default(site, dy):
    return 0.5 * site.default(dy)[0]  # half of what it would have been


with gg.Graph():
    x = gg.variable([-1.0, 2.0], name="x")
    with gg.gradient_override_map({"Relu": "half_of_default"}):
        halved = gg.nn.relu(x)
    y = half_relu(x)
    ys = [gg.nn.relu(x), y, halved]
    standard, replaced, halved_dx = gg.evaluate([gg.gradients(y, x) for y in ys])

print("standard ReLU:", standard)
print("half of dy:   ", replaced)
print("half of ReLU: ", halved_dx)
np.testing.assert_array_equal(standard, [0, 1])
np.testing.assert_array_equal(replaced, [0.5, 0.5])
np.testing.assert_array_equal(halved_dx, [0, 0.5])
