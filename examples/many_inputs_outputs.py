"""Several inputs and several outputs, and an input that gets no gradient.

The gradient function gets one gradient per output and returns one per input. NO_GRAD (or None)
says that nothing flows to an input.
"""

import graphgrad as gg


@gg.custom_gradient
def two_in_two_out(x, y):
    z = x * y + gg.sin(x)
    w = gg.square(y)

    def grad(dz, dw):
        dx = dz * (y + gg.cos(x))
        dy = dz * x + dw * 2.0 * y
        return dx, dy

    return (z, w), grad  # the results are grouped: a pair and its gradient


@gg.custom_gradient
def weighted(x, weight, repeats):
    """x * weight, several times; neither the weight nor the count is to be learned."""

    def grad(dy):
        return dy * weight * repeats.astype("float64"), gg.NO_GRAD, None

    return x * weight * repeats.astype("float64"), grad


with gg.Graph():
    x, y = gg.placeholder((), name="x"), gg.placeholder((), name="y")
    z, w = two_in_two_out(x, y)
    dx, dy = gg.gradients(z + w, [x, y])
    only_z = gg.gradients(z, [x, y])  # dw is then zeros

    v = weighted(x, y, gg.constant(3))
    of_x, of_weight = gg.gradients(v, [x, y])
    zeros = gg.gradients(v, y, unconnected="zero")

    found = gg.compile([x, y], {"d": (dx, dy), "z": only_z, "v": (of_x, zeros)})(2.0, 3.0)

print("gradients of z + w:", *found["d"])
print("gradients of z:    ", *found["z"])
print("gradient of v by x:", found["v"][0], " by its weight:", of_weight)

cos2 = gg.evaluate(gg.cos(2.0))
assert found["d"] == (3 + cos2, 2 + 6)
assert found["z"] == [3 + cos2, 2]
assert of_weight is None
assert found["v"] == (9, 0)
