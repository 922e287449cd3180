"""Shapley values of a network by one handler for each op type, put into the table of gradients.

The table is replaced around one call of `tf.gradients` and restored. Every gradient sees examples
and reference in one batch and gives the slope between them [Lundberg and Lee 2017].
"""

import numpy as np
from graphgrad.tf1.python.framework import ops

import graphgrad.tf1 as tf

registry = ops._gradient_registry._registry
ORIGINAL = {}


def passthrough(op, *grads):
    return ORIGINAL[op.type](op, *grads)


def nonlinear(op, grad):
    """(f(x) - f(r)) / (x - r) for the first half of the batch and for the second."""
    x, r = tf.split(op.inputs[0], 2)
    y, r_y = tf.split(op.outputs[0], 2)
    delta = x - r
    twice = tf.tile(delta, [2] + [1] * (delta.get_shape().ndims - 1))
    slope = tf.tile((y - r_y) / delta, [2] + [1] * (delta.get_shape().ndims - 1))
    return tf.where(tf.abs(twice) < 1e-6, ORIGINAL[op.type](op, grad), grad * slope)


def softmax(op, grad):
    """As exp, sum and division, each with its handler."""
    z = op.inputs[0]
    centred = z - tf.reduce_max(z, axis=-1, keepdims=True)
    e = tf.exp(centred, name="in_exp")
    total = tf.reduce_sum(e, axis=-1, keepdims=True)
    out = e / total
    return tf.gradients(out, centred, grad_ys=grad)[0]


HANDLERS = {"Relu": nonlinear, "Tanh": nonlinear, "Exp": nonlinear, "Softmax": softmax}
HANDLERS |= dict.fromkeys(["MatMul", "AddV2", "BiasAdd", "Reshape", "StridedSlice"], passthrough)


def custom_gradients(y, x):
    """Gradients while the handlers stand in the table."""
    for name in HANDLERS:
        ORIGINAL[name] = registry[name]["type"]
        registry[name]["type"] = HANDLERS[name]
    try:
        return tf.gradients(y, x)[0]
    finally:
        for name, original in ORIGINAL.items():
            registry[name]["type"] = original


rng = np.random.RandomState(2)
x = tf.placeholder(tf.float32, [None, 3], name="x")
h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, tf.constant(rng.randn(3, 6), tf.float32)), [0.1] * 6))
logits = tf.matmul(tf.nn.tanh(h), tf.constant(rng.randn(6, 2), tf.float32))
y = tf.nn.softmax(logits)

phis = {"logits": custom_gradients(logits[:, 0], x), "softmax": custom_gradients(y[:, 0], x)}
plain = tf.gradients(logits[:, 0], x)[0]
data, background = rng.randn(4, 3), np.zeros((4, 3))
feed = {x: np.concatenate([data, background])}
with tf.Session() as session:
    for name, multipliers in phis.items():
        phi = session.run(multipliers, feed)[:4] * (data - background)
        print(
            f"{name}: " + " ".join(f"{v:.4f}" for v in phi.ravel()[:6]) + f", sum {phi.sum():.4f}"
        )
        if name == "logits":
            out = session.run(logits[:, 0], feed)
            np.testing.assert_allclose(phi.sum(1), out[:4] - out[4:], rtol=1e-3)
    print(f"plain gradient: sum {session.run(plain, feed)[:4].sum():.4f}")
