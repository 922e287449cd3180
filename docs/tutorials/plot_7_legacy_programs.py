"""
Legacy programs
===============

A TensorFlow 1 program that defines gradients runs after you change one line, the import. Then you
can migrate it piece by piece.

.. meta::
   :keywords: tensorflow, registergradient, gradient_override_map
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg
import graphgrad.tf1 as tf  # was: import tensorflow as tf

# %%
# The original program
# --------------------
#
# This is guided backpropagation with a registered gradient, an override map, a session and feeds.


@tf.RegisterGradient("GuidedRelu")
def guided_relu(op, grad):
    gate = tf.cast(grad > 0.0, grad.dtype) * tf.cast(op.outputs[0] > 0.0, grad.dtype)
    return gate * grad


rng = np.random.default_rng(0)
w1, w2 = rng.normal(size=(1, 32)), rng.normal(size=(32, 1)) / 6
b1 = rng.normal(size=32)

graph = tf.Graph()
with graph.as_default():
    x = tf.placeholder(tf.float64, [None, 1], name="x")
    with graph.gradient_override_map({"Relu": "GuidedRelu"}):
        y = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2, name="y")
    (dx,) = tf.gradients(y, x)

points = np.linspace(-3, 3, 301)[:, None]
with tf.Session(graph=graph) as session:
    y_at, guided_at = session.run(["y:0", dx], feed_dict={"x:0": points})

# %%
# The same in graphgrad
# ---------------------
#
# ``op`` becomes ``site``. You can keep the map, use a rule of the library instead, or pass an
# override for one call, next to the plain gradient.

with gg.Graph():
    x = gg.placeholder(("N", 1), name="x")
    y = gg.nn.relu(x @ w1 + b1) @ w2
    guided = gg.gradients(y, x, overrides={"Relu": gg.rules.guided()})
    plain = gg.gradients(y, x)
    f = gg.compile(x, [y, guided, plain])

y_now, guided_now, plain_now = f(points)
np.testing.assert_allclose(y_now, y_at, atol=1e-12)
np.testing.assert_allclose(guided_now, guided_at, atol=1e-12)

plt.figure(figsize=(6, 2.8))
plt.plot(points, y_now, color="0.7", label="y")
plt.plot(points, guided_now, label="guided")
plt.plot(points, plain_now, "--", label="the gradient")
plt.legend()
plt.tight_layout()
assert np.abs(guided_now - plain_now).max() > 0.1

# %%
# Mistakes that TensorFlow ignores
# --------------------------------
#
# A map with a misspelled type marks nothing. TensorFlow ignores this; graphgrad warns.

with gg.Graph():
    x = gg.placeholder((2,), name="x")
    try:
        with gg.gradient_override_map({"ReLU": gg.rules.guided()}):
            gg.nn.relu(x)
    except (gg.GraphGradError, ValueError) as error:
        print(error)
    else:
        raise AssertionError("a map that marks nothing")

# %%
# :doc:`TensorFlow 1 programs </tf1>` lists the supported names, the differences, and a table for
# migration.
