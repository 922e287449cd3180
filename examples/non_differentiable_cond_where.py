"""A function with a kink at zero: 2x above, x below.

`gg.cond` chooses one of two computations by a single bool, `gg.where` chooses element by element.
The gradient function says what the gradient at the kink is.
"""

import numpy as np

import graphgrad as gg


@gg.custom_gradient
def kink_of_one(x):
    y = gg.cond(x > 0, lambda: x * 2, lambda: x)

    def grad(dy):
        return gg.where(x > 0, dy * 2, dy)

    return y, grad


@gg.custom_gradient
def kink_of_many(x):
    y = gg.where(x > 0, x * 2, x)

    def grad(dy):
        return gg.where(x > 0, dy * 2, dy)

    return y, grad


values = np.array([-1.0, 0.0, 1.0])

with gg.Graph():
    one = gg.placeholder((), name="one")
    of_one = gg.compile(one, gg.gradients(kink_of_one(one), one))

    many = gg.placeholder((3,), name="many")
    y = kink_of_many(many)
    of_many = gg.compile(many, [y, gg.gradients(gg.sum(y), many)])

    try:
        gg.cond(many > 0, lambda: many * 2, lambda: many)
    except gg.ShapeError as error:
        complaint = str(error)

output, gradient = of_many(values)
print("Input:   ", values)
print("Output:  ", output)
print("Gradient:", gradient, "one by one:", [float(of_one(v)) for v in values])
print("cond on a vector:", complaint)
np.testing.assert_array_equal(output, [-1, 0, 2])
np.testing.assert_array_equal(gradient, [1, 1, 2])
assert [of_one(v) for v in values] == [1, 1, 2]
assert "gg.where" in complaint
