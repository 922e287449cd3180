"""Reversible residual blocks: inputs are made again from outputs, so that none need be kept.

A `Defun` that does nothing carries the rule for all that stands before it [Gomez et al. 2017].
"""

from functools import partial

import numpy as np
from graphgrad.tf1.python.framework import function, ops

import graphgrad.tf1 as tf


def with_custom_grad(f, inputs, grad_function):
    """f(*inputs), with grad_function(inputs, variables, outputs, dys) -> (dxs, dvariables)."""
    before = len(tf.trainable_variables())
    outputs = f(*inputs)
    variables = [v.value() for v in tf.trainable_variables()[before:]]
    n, m = len(inputs), len(inputs) + len(variables)

    def rule(op, *dys):
        xs, vs, ys = (list(op.inputs)[part] for part in (slice(n), slice(n, m), slice(m, None)))
        dxs, dvs = grad_function(xs, vs, ys, list(dys))
        return [*dxs, *dvs, *(tf.zeros_like(y) for y in ys)]

    kinds = [t.dtype.base_dtype for t in [*inputs, *variables, *outputs]]

    @function.Defun(
        *kinds,
        python_grad_func=rule,
        shape_func=lambda op: [y.get_shape() for y in outputs],
        func_name=f"CustomGrad{ops.uid()}",
    )
    def identity(*args):
        return [tf.identity(y) for y in args[m:]]

    return identity(*inputs, *variables, *outputs)


def residual(x, name):
    start = np.random.RandomState(len(name)).randn(2, 4, 4).astype("f") / 2
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        a, b = (tf.get_variable(n, initializer=s) for n, s in zip("ab", start))
    return tf.matmul(tf.nn.relu(tf.matmul(x, a)), b)


def block(x1, x2, name, reversible):
    f, g = (partial(residual, name=name + s) for s in ("/f", "/gg"))

    def forward(x1, x2):
        y1 = x1 + f(x2)
        return y1, x2 + g(y1)

    def backward(xs, variables, ys, dys):
        y1, y2 = (tf.stop_gradient(y) for y in ys)
        x2 = tf.stop_gradient(y2 - g(y1))
        x1 = tf.stop_gradient(y1 - f(x2))
        z1 = x1 + f(x2)
        grads = tf.gradients([z1, x2 + g(z1)], [x1, x2, *variables], grad_ys=dys)
        return grads[:2], grads[2:]

    return with_custom_grad(forward, [x1, x2], backward) if reversible else forward(x1, x2)


data, results = np.random.RandomState(0).randn(6, 8), {}
for reversible in (False, True):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.split(x, 2, axis=1)
        for i in range(3):
            y = block(*y, f"block{'x' * i}", reversible)
        loss = tf.reduce_mean(tf.square(tf.concat(y, 1)))
        grads = tf.gradients(loss, [x, *tf.trainable_variables()])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            results[reversible] = session.run([loss, *grads], {x: data})
    norms = " ".join(f"{np.linalg.norm(g):.4f}" for g in results[reversible][1:5])
    print(f"reversible {reversible}: loss {results[reversible][0]:.4f}, gradients {norms}")
for one, other in zip(*results.values()):
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
