"""
Rules on an existing graph
==========================

*I have a function that builds a network, and I would like guided backpropagation in its first
layers only. Do I have to edit the function?* No: mark the graph afterwards. You need a selection,
which says where, and a rule, which says what the gradient is there.

.. meta::
   :keywords: mark, unmark, select, retrofit, guided, existing, graph, selection
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# A network without rules
# -----------------------
#
# Imagine that you did not write the function below. It has name scopes and no rules.

rng = np.random.default_rng(0)
weights = [rng.normal(size=shape) / 2 for shape in [(2, 32), (32, 32), (32, 1)]]


def network(x):
    with gg.name_scope("encoder"):
        h = gg.nn.relu(x @ weights[0])
    with gg.name_scope("body"):
        h = gg.nn.relu(h @ weights[1])
    with gg.name_scope("head"):
        return h @ weights[2]


graph = gg.Graph()
with graph:
    x = gg.placeholder(("N", 2), name="x")
    y = network(x)
    plain = gg.gradients(y, x)

# %%
# Select, then mark
# -----------------
#
# ``gg.select`` finds nodes by op type, name, scope, the path between two tensors, or a predicate;
# selections combine with ``&``, ``|`` and ``~``. Look at what a selection finds before you mark it.

relus = gg.select.op("Relu")
first = relus & gg.select.scope("encoder")
print([node.name for node in graph.find("encoder/*")])

sites = graph.mark(first, gg.rules.guided())
print([site.name for site in sites])

# %%
# The mark applies to every gradient that you build from now on. The one above, ``plain``, does not
# change.

with graph:
    guided_encoder = gg.gradients(y, x)
print(gg.explain(y, x))

# %%
# For a single call
# -----------------
#
# ``overrides=`` applies a rule to a selection in a single call and leaves the graph unmarked.
# Here the remaining ReLUs get the rule too.

with graph:
    guided_all = gg.gradients(y, x, overrides={relus & ~first: gg.rules.guided()})

# %%
# Remove a mark
# -------------

graph.unmark(first)
with graph:
    again = gg.gradients(y, x)

f = gg.compile(x, [plain, guided_encoder, guided_all, again])
points = np.stack(np.meshgrid(np.linspace(-1, 1, 60), np.linspace(-1, 1, 60)), axis=-1)
plain_at, encoder_at, all_at, again_at = f(points.reshape(-1, 2))
np.testing.assert_array_equal(plain_at, again_at)
assert not np.allclose(plain_at, encoder_at)

# %%
# A selection that finds nothing raises an error:

try:
    graph.mark(gg.select.op("Relu") & gg.select.scope("decoder"), gg.rules.guided())
except gg.RegionError as error:
    print(error)

# %%
# What the rule changes
# ---------------------
#
# The plots show the derivative with respect to the first input, over the plane of both inputs. One
# graph contains all three gradients.

fig, axes = plt.subplots(1, 3, figsize=(8.5, 2.8), sharey=True, layout="constrained")
drawn = {"no rule": plain_at, "guided in encoder": encoder_at, "guided everywhere": all_at}
limit = max(np.abs(values[:, 0]).max() for values in drawn.values())
for axis, (title, values) in zip(axes, drawn.items(), strict=True):
    field = values[:, 0].reshape(60, 60)
    image = axis.imshow(field, cmap="RdBu", vmin=-limit, vmax=limit, extent=(-1, 1, -1, 1))
    axis.set_title(title, fontsize=9)
fig.colorbar(image, ax=axes, label="dy/dx[0]")

# %%
# Models of JAX, PyTorch and ONNX are marked in the same way:
# :doc:`put a rule on a model you did not write </howto/open>`.
