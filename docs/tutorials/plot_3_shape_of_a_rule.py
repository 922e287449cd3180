"""
The shape of a rule
===================

A rule is best understood by drawing what it makes of a gradient. Here is the function that does it,
the choice between two rules by looking at them, and a rule of our own beside them.
:doc:`The gallery </_made/gallery>` has such a picture of every rule of the library, by purpose.

.. meta::
   :keywords: surrogate, gradient, spiking, clip, clipping
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

points = np.linspace(-3, 3, 301)

# %%
# The gradient that comes back
# ----------------------------
#
# A gradient of 1 arrives at every point; ``overrides="none"`` asks for what would have come back
# without any rule, from the same forward graph.


def curves(function, rule):
    """y, dx with the rule, and dx without, at the points."""
    with gg.Graph():
        x = gg.placeholder((len(points),), name="x")
        with gg.override_gradient(rule):
            y = function(x)
        dx = gg.gradients(y, x)
        plain = gg.gradients(y, x, overrides="none", unconnected="zero")
        return gg.compile(x, [y, dx, plain])(points)


def plot(rules, function):
    """One plot a rule, beside each other."""
    fig, axes = plt.subplots(1, len(rules), figsize=(3.2 * len(rules), 2.4), sharey=True)
    for axis, (name, rule) in zip(axes, rules.items(), strict=True):
        y, dx, plain = curves(function, rule)
        axis.plot(points, y, color="0.7", label="y")
        axis.plot(points, dx, color="C1", label="dx with the rule")
        axis.plot(points, plain, "--", color="C0", label="dx without")
        axis.set_title(name, fontsize=9)
    axes[0].legend(fontsize=7)
    fig.tight_layout()


# %%
# Training through a sign
# ------------------------------------
#
# The sign has the derivative zero, and what comes before it learns nothing. Straight-through passes
# all of the gradient; with a window, what is far outside and would not change its sign soon gets
# none.

rules = {"ste()": gg.rules.ste(), "ste(window=1.0)": gg.rules.ste(window=1.0)}
plot(rules, gg.sign)

# %%
# A rule of one's own
# -------------------
#
# Between the two: a window with soft edges. The rule builds graph functions, so it has a gradient
# too.


def soft_window(site, dy):
    """dx = dy * exp(-x**2)."""
    (x,) = site.inputs
    return dy * gg.exp(-(x**2))


plot({"ste(window=1.0)": gg.rules.ste(window=1.0), "soft_window": soft_window}, gg.sign)

# %%
# Second order
# ------------
#
# The derivative of what the rule built: for ours -2 x exp(-x²), for the window zero, since its
# edges are steps again.

for name, rule in {"the window": gg.rules.ste(window=1.0), "ours": soft_window}.items():
    with gg.Graph():
        x = gg.placeholder((len(points),), name="x")
        with gg.override_gradient(rule):
            y = gg.sign(x)
        second = gg.gradients(gg.gradients(y, x), x, unconnected="zero")
        values = gg.compile(x, second)(points)
    print(f"{name}: from {values.min():.2f} to {values.max():.2f}")

assert np.allclose(values, -2 * points * np.exp(-(points**2)))
