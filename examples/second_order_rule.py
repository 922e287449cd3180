"""A rule for the second order too: `grad` returns the gradient and the gradient of that.

A Hessian that is changed on purpose keeps Newton's method away from a maximum.
"""

import graphgrad as gg


@gg.custom_gradient
def custom_quadratic(x):
    y = x**2

    def grad(dy):
        dx = 2 * x * dy  # first order

        def gradgrad(ddx):
            return 2 * ddx  # second order, at dy = 1

        return dx, gradgrad

    return y, grad


@gg.custom_gradient
def double_well(x):
    """x**4 / 4 - x**2 / 2, whose curvature is claimed to be positive also where it is not."""

    def grad(dy):
        return dy * (x**3 - x), lambda ddx: ddx * gg.abs(3 * x**2 - 1)

    return x**4 / 4 - x**2 / 2, grad


with gg.Graph():
    x = gg.placeholder((1,), name="x")
    y = custom_quadratic(x)
    first = gg.gradients(y, x)
    second = gg.gradients(first, x)
    f = gg.compile(x, [y, first, second])

    point = gg.placeholder((), name="point")
    slope = gg.gradients(double_well(point), point)
    curvature = gg.gradients(slope, point)
    newton = gg.compile(point, point - slope / curvature)

y, first, second = f([1.0])
print("First-order gradient:", first, " second-order gradient:", second)
assert (y, first, second) == ([1], [2], [2])

at = 0.3
for _ in range(10):
    at = newton(at)
print("Newton's method ends in the well at", at, "and not on the hill at 0")
assert abs(at - 1) < 1e-12
