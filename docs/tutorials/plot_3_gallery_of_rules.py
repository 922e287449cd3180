"""
Which rule for which purpose
============================

The library in plots: for each rule of one input, the forward function in grey and what the rule
makes of a gradient of 1 in colour. :doc:`The table of all rules </rules>` has the formulas and the
sources.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

points = np.linspace(-3, 3, 301)


def curve(function, rule, dy=None):
    """y, and dx for a gradient of 1 or dy, at the points."""
    with gg.Graph():
        x = gg.placeholder((len(points),), name="x")
        with gg.override_gradient(rule):
            y = function(x)
        arriving = None if dy is None else gg.constant(dy)
        dx = gg.gradients(y, x, arriving, unconnected="zero")
        return gg.compile(x, [y, dx])(points)


def plot(title, rules, function, dy=None):
    """One row of plots, one a rule."""
    fig, axes = plt.subplots(1, len(rules), figsize=(2.9 * len(rules), 2.4), squeeze=False)
    for axis, (name, rule) in zip(axes[0], rules.items(), strict=True):
        y, dx = curve(function, rule, dy)
        axis.plot(points, y, color="0.7")
        axis.plot(points, dx, color="C1")
        axis.set_title(name, fontsize=9)
        assert np.isfinite(dx).all()
    fig.suptitle(title, fontsize=10)
    fig.tight_layout()


# %%
# A step that shall be learned through
# ------------------------------------
#
# Rounding, signs, quantisers: **straight-through**. Take a window, so that what is far outside
# gets no gradient.

rules = {"ste()": gg.rules.ste(), "ste(window=1.0)": gg.rules.ste(window=1.0)}
plot("straight through sign", rules, gg.sign)

# %%
# Spikes
# ------
#
# A **surrogate** is the derivative of a smooth function that looks like the step.

rules = {
    "fast_sigmoid()": gg.rules.fast_sigmoid(),
    "atan()": gg.rules.atan(),
    "triangle()": gg.rules.triangle(),
    "surrogate(gg.tanh)": gg.rules.surrogate(gg.tanh),
}
plot("surrogates of a step at 0", rules, lambda x: gg.astype(x > 0, x.dtype))

# %%
# What a network looks at
# -----------------------
#
# At each ReLU, **guided** backpropagation lets through what is positive forth and back, the
# **deconvnet** what is positive back. Here ``dy`` is the cosine of x; :doc:`attributions
# </attribution>` use such rules over whole models.

rules = {"guided()": gg.rules.guided(), "deconvnet()": gg.rules.deconvnet()}
plot("ReLU, with dy = cos 2x", rules, gg.nn.relu, np.cos(2 * points))

# %%
# Too large, the wrong way, not at all
# ------------------------------------
#
# **clip_value** and **clip_norm** limit what passes, **scale** multiplies it, **reverse** turns it
# round (adversarial features), **stop** ends it. They are put on a ``gg.identity`` where no op is
# meant.

rules = {
    "clip_value(0.5)": gg.rules.clip_value(0.5),
    "scale(0.5)": gg.rules.scale(0.5),
    "reverse()": gg.rules.reverse(),
    "stop()": gg.rules.stop(),
}
plot("x ** 2 / 2, whose gradient is x", rules, lambda x: x**2 / 2)

# %%
# NaN and infinity
# ----------------
#
# **nan_guard** makes numbers of them. The square root has an infinite slope at zero and none below
# it.

plot(
    "sqrt(|x|)",
    {"nan_guard(limit=3.0)": gg.rules.nan_guard(limit=3.0)},
    lambda x: gg.sqrt(gg.abs(x)),
)

# %%
# The others
# ----------
#
# Rules of several inputs, and functions that build what they mark: see the table.

shown = {"ste", "fast_sigmoid", "atan", "triangle", "surrogate", "guided", "deconvnet"}
shown |= {"clip_value", "scale", "reverse", "stop", "nan_guard"}
for name, entry in sorted(gg.rules.library().items()):
    if name not in shown:
        print(f"{name:18} {entry.family}: {entry.summary}")
