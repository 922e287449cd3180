"""
Looking at gradients
====================

If a network does not train, where does its gradient vanish? And if it returns NaN, where does the
NaN come from? This tutorial finds both with ``gg.debug``, ``gg.explain`` and pictures.

.. meta::
   :keywords: visualize, saliency, lrp, guided, backprop
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)

# %%
# The gradient at each layer
# --------------------------
#
# You can differentiate with respect to any tensor of the graph, so plot the gradient of every
# layer. In a chain of sigmoids it vanishes.

with gg.Graph():
    x = gg.placeholder(("N", 16), name="x")
    layers = [x]
    for i in range(8):
        with gg.name_scope(f"layer{i}"):
            w = gg.variable(rng.normal(size=(16, 16)) / 4, name="w")
            layers.append(gg.nn.sigmoid(layers[-1] @ w))
    loss = gg.mean(layers[-1] ** 2)
    grads = gg.gradients(loss, layers)
    norms = gg.compile(x, [gg.linalg.norm(g) for g in grads])(rng.normal(size=(32, 16)))

plt.figure(figsize=(6, 2.6))
plt.semilogy([float(n) for n in norms], "o-")
plt.xlabel("layer")
plt.ylabel("length of the gradient")
plt.tight_layout()
assert norms[0] < norms[-1] / 1000

# %%
# Which step zeroes it
# --------------------
#
# ``gg.debug.blame`` runs the backward pass and names two kinds of steps: those that turn finite
# values into NaN or infinity, and those that zero a gradient.

with gg.Graph():
    x = gg.placeholder((4,), name="x")
    with gg.name_scope("head"):
        bits = gg.round(gg.nn.sigmoid(x))
    dx = gg.gradients(gg.sum(bits * gg.sqrt(gg.abs(x))), x)

found = gg.debug.blame(dx, {x: np.array([0.0, 0.5, -1.0, 2.0])})
print(found)
assert found

# %%
# Which rule applies
# ------------------
#
# A rule on the rounding and another on the square root solve both problems. ``gg.explain``
# shows every site on the path.

with gg.Graph() as graph:
    x = gg.placeholder((4,), name="x")
    with gg.override_gradient(gg.rules.ste()):
        bits = gg.round(gg.nn.sigmoid(x))
    with gg.override_gradient(gg.rules.nan_guard(limit=10.0)):
        root = gg.sqrt(gg.abs(x))
    loss = gg.sum(bits * root)
    dx = gg.gradients(loss, x)

healed = gg.compile(x, dx)([0.0, 0.5, -1.0, 2.0])
print(gg.explain(loss, x))
print(healed)
assert np.isfinite(healed).all()

# %%
# In a picture
# ------------
#
# ``gg.write_picture`` draws SVG, PNG and PDF with Graphviz; ``gg.write_html`` writes one page
# that opens offline, with search and folding. Marked regions are dashed boxes, and nodes that a
# rule built are in filled boxes. Without Graphviz, print the graph as text:

print(gg.graph_text([loss, dx]))

# %%
# Likely mistakes
# ---------------
#
# ``gg.lint`` searches a graph for likely mistakes.

with gg.Graph() as graph:
    x = gg.placeholder((4,), name="x")
    y = gg.where(x > 0, gg.log(x), 0.0)
    gg.gradients(y, x)
for finding in gg.lint(graph):
    print(finding)
assert gg.lint(graph)
