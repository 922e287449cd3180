"""
Second order and forward mode
=============================

A rule is graph code, so it is differentiated like everything else. This tutorial shows what a
second derivative means for a rule, and how tangents are propagated forward through a rule.

.. meta::
   :keywords: hessian, hvp, vector, product, second, order
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# The derivative of a rule
# ------------------------
#
# The rule below defines the derivative of a step as a bump. The second derivative is then the
# derivative of the bump, which the rule built, and not that of the step.


@gg.register_gradient("bump")
def bump(site, dy):
    (x,) = site.inputs
    return dy * gg.exp(-(x**2))


with gg.Graph():
    x = gg.placeholder(("N",), name="x")
    with gg.override_gradient("bump"):
        y = gg.sign(x)
    first = gg.gradients(y, x)
    second = gg.gradients(first, x)
    f = gg.compile(x, [y, first, second])

points = np.linspace(-3, 3, 301)
values = f(points)
plt.figure(figsize=(6, 2.8))
names = ["sign(x)", "first: the rule", "second: its derivative"]
for value, name in zip(values, names, strict=True):
    plt.plot(points, value, label=name)
plt.legend()
plt.tight_layout()
np.testing.assert_allclose(values[2], -2 * points * np.exp(-(points**2)), atol=1e-12)

# %%
# A rule for the second order, too
# --------------------------------
#
# With ``gg.custom_gradient``, the gradient function may return a second function, which computes
# the derivative of the gradient. Here it makes the curvature positive everywhere, so that
# Newton's method finds the minimum and not the maximum.


@gg.custom_gradient
def well(x):
    def grad(dy):
        return dy * (x**3 - x), lambda ddx: ddx * gg.abs(3 * x**2 - 1)

    return x**4 / 4 - x**2 / 2, grad


with gg.Graph():
    x = gg.placeholder((), name="x")
    slope = gg.gradients(well(x), x)
    newton = gg.compile(x, x - slope / gg.gradients(slope, x))

at = 0.3
for _ in range(10):
    at = float(newton(at))
print(at)
assert abs(at - 1) < 1e-9

# %%
# Forward mode
# ------------
#
# ``gg.jvp`` pushes a tangent forward. A rule defines how gradients are propagated backward. If it
# is linear in them, its transpose defines how tangents are propagated forward, and the two agree: u
# (J v) = (u J) v.

with gg.Graph():
    x, v = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="v")
    with gg.override_gradient("bump"):
        y = gg.sign(x)
    z = gg.cumsum(y)
    u = gg.constant([1.0, -2.0, 0.5])
    forward = gg.sum(u * gg.jvp(z, x, v))
    backward = gg.sum(gg.gradients(z, x, u) * v)
    there, back = gg.compile([x, v], [forward, backward])([0.1, -0.4, 1.0], [1.0, 2.0, 3.0])
print(there, back)
np.testing.assert_allclose(there, back)

# %%
# A rule that is not linear in its cotangents has no transpose. You get an error that names the rule
# and the node. With ``jvp=``, a rule defines its own tangents.

with gg.Graph():
    x = gg.placeholder((), name="x")
    with gg.override_gradient(gg.rules.clip_value(0.5)):
        y = gg.exp(x)
    try:
        gg.jvp(y, x, gg.constant(1.0))
    except gg.GradientError as error:
        print(error)
    else:
        raise AssertionError("a clip has no transpose")

# %%
# Hessians, products with them, batches
# -------------------------------------
#
# ``gg.hessian``, ``gg.hvp`` and ``gg.vmap`` apply rules like ``gg.gradients``.

with gg.Graph():
    x = gg.placeholder((2,), name="x")
    with gg.override_gradient("bump"):
        y = gg.sign(x)
    h = gg.compile(x, gg.hessian(gg.sum(y), x))([0.5, -1.0])
print(h)
