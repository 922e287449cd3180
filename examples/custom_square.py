"""The smallest custom gradient: a function that returns its result and its gradient function."""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def my_square(x):
    """y = x**2, element by element."""
    y = gg.square(x)

    def grad(dy):
        return dy * 2.0 * x

    return y, grad


with gg.Graph():
    x = gg.constant([1.0, 2.0, 3.0], dtype="float32")
    y = my_square(x)
    dx = gg.gradients(gg.sum(y), x)
    found_x, found_y, found_dx = gg.evaluate([x, y, dx])

print("Input:   ", found_x)
print("Output:  ", found_y)
print("Gradient:", found_dx)
np.testing.assert_array_equal(found_y, [1, 4, 9])
np.testing.assert_array_equal(found_dx, [2, 4, 6])
assert found_dx.dtype == np.float32
