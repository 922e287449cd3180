"""
Loops and ODEs
==============

``gg.scan`` builds a loop as one node, whatever its length. Its gradient is a reversed loop. This
tutorial puts a rule inside a loop and around one.

.. meta::
   :keywords: scan, loop, training, ode, fixed, point, while
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# A scan
# ------
#
# ``gg.scan(step, init, xs)`` calls ``step`` once to build the body of the loop. Here it simulates a
# pendulum with drag, using Runge-Kutta steps.


def field(state, drag):
    angle, speed = state
    return [speed, -gg.sin(angle) - drag * speed]


def moved(state, slope, by):
    return [s + by * d for s, d in zip(state, slope, strict=True)]


def solve(state, drag, steps=300, h=0.05):
    def step(state, _):
        k1 = field(state, drag)
        k2 = field(moved(state, k1, h / 2), drag)
        k3 = field(moved(state, k2, h / 2), drag)
        k4 = field(moved(state, k3, h), drag)
        slopes = zip(k1, k2, k3, k4, strict=True)
        slope = [(a + 2.0 * b + 2.0 * c + d) / 6.0 for a, b, c, d in slopes]
        state = moved(state, slope, h)
        return state, state[0]

    return gg.scan(step, state, length=steps)


with gg.Graph() as graph:
    angle, drag = gg.placeholder((), name="angle"), gg.placeholder((), name="drag")
    _, path = solve([angle, gg.constant(0.0)], drag)
    d_drag = gg.jvp(path, drag, gg.constant(1.0))
    f = gg.compile([angle, drag], [path, d_drag])

path_at, d_drag_at = f(2.0, 0.2)
plt.figure(figsize=(6, 2.6))
plt.plot(path_at, label="the angle")
plt.plot(d_drag_at, label="what more drag changes (forward mode)")
plt.legend()
plt.tight_layout()
print(len(graph.nodes), "nodes")

# %%
# Fit it
# ------
#
# The gradient is propagated through all steps, so the drag can be estimated from the path alone.

with gg.Graph():
    wanted = gg.placeholder((300,), name="wanted")
    drag = gg.variable(0.05, name="drag")
    _, path = solve([gg.constant(2.0), gg.constant(0.0)], drag)
    loss = gg.mean((path - wanted) ** 2)
    updates = gg.optimizers.Adam(0.02).updates([drag], gg.gradients(loss, [drag]))
    step = gg.compile(wanted, loss, updates=updates)

for _ in range(100):
    step(path_at)
found = float(drag.graph.state[drag])
print("drag:", round(found, 3))
assert abs(found - 0.2) < 0.01

# %%
# A rule in the loop
# ------------------
#
# The rule applies in every iteration. This one clips the gradient to [-1, 1] at each backward step,
# which is common for recurrent networks.

with gg.Graph():
    x = gg.placeholder((), name="x")

    def doubled(carry, _):
        with gg.override_gradient(gg.rules.clip_value(1.0)):
            carry = 2.0 * carry
        return carry, None

    last, _ = gg.scan(doubled, x, length=20)
    with_rule = gg.gradients(last, x)
    without = gg.gradients(last, x, overrides="none")
    clipped, plain = gg.compile(x, [with_rule, without])(1.0)
print(float(clipped), float(plain))
assert (clipped, plain) == (1.0, 2.0**20)

# %%
# A rule around the loop
# ----------------------
#
# If an iteration converges to a fixed point z = f(z), the gradient follows from the implicit
# function theorem, without the steps. ``gg.rules.fixed_point`` runs the loop and marks it with a
# rule that uses the theorem.

with gg.Graph():
    a = gg.placeholder((), name="a")
    z = gg.rules.fixed_point(lambda z: gg.cos(a * z), gg.constant(0.5))
    f = gg.compile(a, [z, gg.gradients(z, a)])
z_at, dz_at = (float(v) for v in f(0.9))
exact = -np.sin(0.9 * z_at) * z_at / (1 + 0.9 * np.sin(0.9 * z_at))
print(dz_at, exact)
np.testing.assert_allclose(dz_at, exact, rtol=1e-6)

# %%
# Memory
# ------
#
# The gradient of a loop stores the carry of every iteration. ``gg.compile(..., memory=bytes)``
# stores as much as fits and recomputes the rest. An alternative for ODEs is the adjoint method,
# which solves an equation backward in time: see *ode adjoint* among the :doc:`examples
# </_made/examples>`.
