"""Attributions by one rule for all activations, which does what the enabled method asks.

Gradient times input, integrated gradients [Sundararajan et al. 2017], epsilon-LRP [Bach et al.
2015] and DeepLIFT with the rescale rule [Shrikumar et al. 2017].
"""

import numpy as np
from graphgrad.tf1.python.framework import ops
from graphgrad.tf1.python.ops import math_grad, nn_grad

import graphgrad.tf1 as tf

ENABLED = None  # the method whose rule is in force
ORIGINAL = {
    "Relu": nn_grad._ReluGrad,
    "Sigmoid": math_grad._SigmoidGrad,
    "Tanh": math_grad._TanhGrad,
}
ACTIVATIONS = {"Relu": tf.nn.relu, "Sigmoid": tf.nn.sigmoid, "Tanh": tf.nn.tanh}


@ops.RegisterGradient("DeepExplainGrad")
def _deep_explain_grad(op, grad):
    return ENABLED(op, grad) if ENABLED else ORIGINAL[op.type](op, grad)


def lrp(op, grad, epsilon=1e-4):
    x, y = op.inputs[0], op.outputs[0]
    away = tf.where(x >= 0, tf.ones_like(x), -tf.ones_like(x))
    return grad * y / (x + epsilon * away)


def deep_lift(op, grad):
    """The slope between input and reference; where they meet, the gradient halfway."""
    x, y = op.inputs[0], op.outputs[0]
    x0, y0 = (tf.constant(REFERENCES[t.name]) for t in (x, y))
    middle = ACTIVATIONS[op.type](0.5 * (x + x0)).op
    near = tf.less(tf.abs(x - x0), 1e-5)
    slope = (y - y0) / tf.where(near, tf.ones_like(x), x - x0)
    return tf.where(near, ORIGINAL[op.type](middle, grad), slope * grad)


graph, rng = tf.get_default_graph(), np.random.RandomState(1)
with graph.gradient_override_map(dict.fromkeys(ACTIVATIONS, "DeepExplainGrad")):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    h = tf.nn.relu(tf.matmul(x, tf.constant(rng.randn(4, 5), tf.float32)))
    h = tf.nn.tanh(tf.matmul(h, tf.constant(rng.randn(5, 4), tf.float32)) + 0.1)
    y = tf.matmul(tf.nn.sigmoid(h), tf.constant(rng.randn(4, 1), tf.float32))

session = tf.Session()
data, reference = np.array([[1.0, -2.0, 0.5, 0.0], [0.3, 0.8, -1.0, 2.0]]), np.zeros((1, 4))
kept = [op for op in graph.get_operations() if op.type in ACTIVATIONS]
tensors = [t for op in kept for t in (op.inputs[0], op.outputs[0])]
REFERENCES = dict(zip([t.name for t in tensors], session.run(tensors, {x: reference})))


def attribution(method, times):
    """The gradient under a method, times something."""
    global ENABLED
    ENABLED = method
    with graph.gradient_override_map(dict.fromkeys(ACTIVATIONS, "DeepExplainGrad")):
        (dx,) = tf.gradients(y, x)
    ENABLED = None
    return session.run(dx * times, {x: data})


results = {
    "gradient * input": attribution(None, x),
    "epsilon-LRP": attribution(lrp, x),
    "DeepLIFT": attribution(deep_lift, x - reference),
}
(plain,) = tf.gradients(y, x)
steps = [session.run(plain, {x: data * (k + 0.5) / 50}) for k in range(50)]
results["integrated"] = data * np.mean(steps, 0)
for name, r in results.items():
    print(f"{name}: " + " ".join(f"{v:.4f}" for v in r[0]) + f", sum {r.sum():.4f}")

change = session.run(y, {x: data}) - session.run(y, {x: reference})
for name in ("DeepLIFT", "integrated"):
    np.testing.assert_allclose(results[name].sum(1), change[:, 0], rtol=1e-2)
