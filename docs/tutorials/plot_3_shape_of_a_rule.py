"""
The shape of a rule
===================

The best way to understand a rule is to plot what it does to a gradient. This tutorial writes a
function for such plots, compares two rules of the library, and defines a new one.
:doc:`The gallery </_made/gallery>` has a plot of every rule of the library, by purpose.

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
# A gradient of 1 arrives at every point. ``overrides="none"`` gives the gradient without any rule,
# from the same forward graph.


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
# -----------------------
#
# The derivative of the sign is zero, so the layers before it learn nothing.
# The straight-through estimator passes the whole gradient; with a window, it passes none for points
# that are too far from the step to change sign soon.

rules = {"ste()": gg.rules.ste(), "ste(window=1.0)": gg.rules.ste(window=1.0)}
plot(rules, gg.sign)

# %%
# A rule of your own
# ------------------
#
# A window with soft edges is a compromise between passing everything and cutting off sharply. The
# rule is built from graph functions, so it has a gradient too.


def soft_window(site, dy):
    """dx = dy * exp(-x**2)."""
    (x,) = site.inputs
    return dy * gg.exp(-(x**2))


plot({"ste(window=1.0)": gg.rules.ste(window=1.0), "soft_window": soft_window}, gg.sign)

# %%
# Second order
# ------------
#
# The second derivative is the derivative of the nodes that the rule built: -2 x exp(-x²) for our
# rule, and zero for the window, whose edges are steps.

for name, rule in {"the window": gg.rules.ste(window=1.0), "ours": soft_window}.items():
    with gg.Graph():
        x = gg.placeholder((len(points),), name="x")
        with gg.override_gradient(rule):
            y = gg.sign(x)
        second = gg.gradients(gg.gradients(y, x), x, unconnected="zero")
        values = gg.compile(x, second)(points)
    print(f"{name}: from {values.min():.2f} to {values.max():.2f}")

assert np.allclose(values, -2 * points * np.exp(-(points**2)))
