"""The gradient of a function comes from another function, which any amount of thought may go into.

The rule is a plain Python function of tensors: it can be tested, shared and used alone.
"""

import numpy as np

import graphgrad as gg


def steering(dy, x):
    """What x gets: dy * sin(x), and a pull of 0.1 * x that does not depend on dy."""
    return dy * gg.sin(x) + 0.1 * x


@gg.custom_gradient
def steered_square(x):
    def grad(dy):
        return steering(dy, x)

    return x**2, grad


values = np.array([1.0, 2.0])

with gg.Graph():
    x = gg.variable(values, name="x")
    y = steered_square(x)
    dx = gg.gradients(y, x)

    with gg.override_gradient(lambda site, dy: steering(dy, site.inputs[0])):
        z = x**2  # the same rule, as a region and without a name
    dz = gg.gradients(z, x)

    found_y, found_dx, found_dz = gg.evaluate([y, dx, dz])

print("y =", found_y, " gradient =", found_dx)
np.testing.assert_array_equal(found_y, values**2)
np.testing.assert_allclose(found_dx, np.sin(values) + 0.1 * values)
np.testing.assert_array_equal(found_dx, found_dz)
