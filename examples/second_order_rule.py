"""A rule for the second order too: `grad` returns the gradient and the gradient of that.

Here the Hessian is simplified on purpose; a step of Newton's method then uses it.
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
def with_another_hessian(x):
    def grad(dy):
        return 4 * x**3 * dy, lambda ddx: ddx * (12 * x**2 + 1)  # 1 keeps it away from zero

    return x**4, grad


with gg.Graph():
    x = gg.placeholder((1,), name="x")
    y = custom_quadratic(x)
    first = gg.gradients(y, x)
    second = gg.gradients(first, x)
    f = gg.compile(x, [y, first, second])

    point = gg.placeholder((), name="point")
    slope = gg.gradients(with_another_hessian(point), point)
    curvature = gg.gradients(slope, point)
    newton = gg.compile(point, point - slope / curvature)

y, first, second = f([1.0])
print("First-order gradient:", first, " second-order gradient:", second)
assert (y, first, second) == ([1], [2], [2])

at = 1.0
for _ in range(30):
    at = float(newton(at))
print("Newton's method ends at", at)
assert abs(newton(1.0) - (1 - 4 / 13)) < 1e-12
assert abs(at) < 1e-3
