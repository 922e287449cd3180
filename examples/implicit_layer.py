"""A layer that is the fixed point of a loop, and Newton's method: gradients without their steps.

The loops run until they have converged. The rule around each knows only the equation that holds at
its end: the gradient is that of the implicit function theorem, whatever the steps were
[Bai et al. 2019, "Deep equilibrium models"].
"""

import numpy as np

import graphgrad as gg


def fixed_point(w, x):
    """y = tanh(w y + x), by a loop that ends when y moves no more."""

    def moves(carry):
        y, before = carry
        return gg.max(gg.abs(y - before)) > 1e-13

    def step(carry):
        y, _ = carry
        return gg.tanh(w @ y + x), y

    return gg.while_loop(moves, step, (gg.tanh(x), gg.zeros_like(x)))[0]


@gg.custom_gradient
def equilibrium(w, x):
    y = fixed_point(w, x)

    def grad(dy):
        z = gg.stop_gradient(y)
        slope = 1.0 - gg.tanh(w @ z + x) ** 2
        system = gg.eye(3) - gg.transpose(w) * slope
        u = slope * gg.linalg.solve(system, dy)
        return gg.expand_dims(u, 1) * y, u

    return y, grad


@gg.custom_gradient
def cube_root(a):
    """Newton's method on r**3 = a; the rule knows only the equation: 3 r**2 dr = da."""
    r = gg.while_loop(
        lambda r: gg.abs(r**3 - a) > 1e-12 * a, lambda r: r - (r**3 - a) / (3.0 * r**2), a
    )
    return r, lambda dr: dr / (3.0 * r**2)


with gg.Graph():
    w, x = gg.placeholder((3, 3), name="w"), gg.placeholder((3,), name="x")
    found = [gg.gradients(gg.sum(layer(w, x) ** 2), [w, x]) for layer in (fixed_point, equilibrium)]
    f = gg.compile([w, x], found)
    a = gg.placeholder((), name="a")
    r = cube_root(a)
    dr = gg.gradients(r, a)
    g = gg.compile([a], [r, dr, gg.gradients(dr, a)])

rng = np.random.default_rng(0)
through, implicit = f(0.3 * rng.normal(size=(3, 3)), rng.normal(size=3))
print("through the steps:", through[1])
print("implicit:         ", implicit[1])
for one, other in zip(through, implicit):
    np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
root, slope, bend = g(8.0)
print(f"cube root of 8: {root:.6f}, slope {slope:.6f} = 1/12, bend {bend:.6f} = -1/144")
np.testing.assert_allclose([root, slope, bend], [2, 1 / 12, -1 / 144])
