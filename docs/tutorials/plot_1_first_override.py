"""
The first override
==================

This tutorial starts with a function whose gradient is useless, replaces it by a rule, and shows
three ways to check that the rule is where you put it.

A gradient that is zero
-----------------------

A graph consists of tensors, which stand for arrays that you feed later. The gradient of
``gg.sign`` is zero almost everywhere, so the layers before it do not learn.

.. meta::
   :keywords: override_gradient, ste, start, first
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

with gg.Graph() as plain:
    x = gg.placeholder(("N",), name="x")
    y = gg.sign(x)
    dx = gg.gradients(y, x)
    f = gg.compile(x, [y, dx])

print(f([-1.5, -0.2, 0.3, 2.0]))

# %%
# A rule
# ------
#
# A rule is a function of a *site*, the marked part of the graph, and of ``dy``, the gradient that
# arrives at its output. It returns a gradient for each input of the site. This one is the
# straight-through estimator: near the step, it passes ``dy`` through as if there were no step.


@gg.register_gradient("near")
def near(site, dy):
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1.0, dy, 0.0)


# %%
# Everything built in the ``with`` block is one region, whose gradient the rule computes. The
# forward value does not change.

with gg.Graph() as marked:
    x = gg.placeholder(("N",), name="x")
    with gg.override_gradient("near"):
        y = gg.sign(x)
    dx = gg.gradients(y, x)
    without = gg.gradients(y, x, overrides="none")
    f = gg.compile(x, [y, dx, without])

points = np.linspace(-2, 2, 401)
y_at, dx_at, without_at = f(points)

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6))
left.plot(points, y_at)
left.set_title("sign(x)")
right.plot(points, dx_at, label="with the rule")
right.plot(points, without_at, "--", label="without")
right.set_title("its gradient")
right.legend()
fig.tight_layout()

assert dx_at.sum() > 0
assert not without_at.any()

# %%
# Where does the rule apply?
# --------------------------
#
# ``gg.explain`` shows which rule applies on each path, with the line of the mark.

print(gg.explain(y, x))

# %%
# ``gg.graph_text`` writes the graph with its marks, forward and backward; ``gg.write_html`` and
# ``gg.write_picture`` draw it.

print(gg.graph_text([y, dx]))

# %%
# ``gg.check_gradient`` checks that a rule does what it declares. This one declares nothing, so it
# is compared with the true gradient of ``sign``, and the check fails as expected.

report = gg.check_gradient(near, gg.sign, np.array([-1.5, -0.2, 0.3, 2.0]))
print(report)
assert not report

# %%
# A *contract* declares what the rule computes: here the derivative of another function. Now the
# check passes.

clipped_identity = gg.surrogate_of(lambda x: gg.clip(x, -1.0, 1.0))
report = gg.check_gradient(near, gg.sign, np.array([-1.5, -0.2, 0.3, 2.0]), expect=clipped_identity)
print(report)
assert report

# %%
# A rule that uses the default gradient
# -------------------------------------
#
# ``site.default(dy)`` returns the gradients that the region would have without the rule. With it, a
# rule can clip, scale or guard the gradients of a region of any size.


def clipped(site, *dys):
    return [gg.clip(dx, -1.0, 1.0) for dx in site.default(*dys)]


with gg.Graph():
    x = gg.placeholder((), name="x")
    with gg.override_gradient(clipped):
        y = gg.exp(gg.exp(x))
    first = gg.gradients(y, x)
    f = gg.compile(x, [y, first, gg.gradients(y, x, overrides="none")])

print([float(v) for v in f(1.0)])

# %%
# A rule that cannot be applied is an error
# -----------------------------------------
#
# An unregistered name is an error at the ``with``. A rule that returns too few gradients, or a
# gradient of the wrong shape, is an error when you ask for a gradient. Nothing fails silently.

try:
    with gg.override_gradient("naer"):
        gg.sign(x)
except gg.UnknownGradientError as error:
    print(error)
