"""The logarithm of a symmetric positive definite matrix, safe where eigenvalues coincide.

A long forward part under a short rule: the derivative by divided differences of the logarithm,
which are 1/e where two eigenvalues meet. There the rule of the decomposition divides by zero
[Ionescu et al. 2015, "Matrix backpropagation"].
"""

import numpy as np
from graphgrad.tf1.python.framework import function

import graphgrad.tf1 as tf


def divided_differences(e):
    """(log a - log b) / (a - b) for each pair of eigenvalues."""
    a, b = tf.expand_dims(e, -1), tf.expand_dims(e, -2)
    near = tf.abs(a - b) < 1e-6 * (a + b)
    gap = tf.where(near, tf.ones_like(a - b), a - b)
    return tf.where(near, 2.0 / (a + b), (tf.log(a) - tf.log(b)) / gap)


def symmetric(x):
    return 0.5 * (x + tf.matrix_transpose(x))


def log_grad(op, dy):
    e, u = tf.self_adjoint_eig(op.inputs[0])
    inner = tf.matmul(u, tf.matmul(symmetric(dy), u), transpose_a=True)
    return tf.matmul(u, tf.matmul(divided_differences(e) * inner, u, transpose_b=True))


def log_by_eigenvalues(x):
    e, u = tf.self_adjoint_eig(x)
    return tf.matmul(u * tf.expand_dims(tf.log(e), -2), u, transpose_b=True)


matrix_log = function.Defun(
    tf.float64,
    python_grad_func=log_grad,
    shape_func=lambda op: [op.inputs[0].get_shape()],
    func_name="MatrixLog",
)(log_by_eigenvalues)

x = tf.placeholder(tf.float64, [3, 3])
w = tf.constant([[1.0, 2.0, 0.0], [2.0, -1.0, 0.5], [0.0, 0.5, 3.0]], tf.float64)
safe = tf.reduce_sum(w * matrix_log(x))
plain = tf.reduce_sum(w * log_by_eigenvalues(symmetric(x)))
(d_safe,), (d_plain,) = tf.gradients(safe, x), tf.gradients(plain, x)
second = symmetric(tf.gradients(tf.reduce_sum(d_safe * w), x)[0])

root = np.random.RandomState(0).randn(3, 3)
apart, meeting = root @ root.T + np.eye(3), 2.0 * np.eye(3)
with tf.Session() as session:
    value, a, b = session.run([safe, d_safe, d_plain], {x: apart})
    print(f"apart: value {value:.6f}, gradient {np.linalg.norm(a):.6f}")
    np.testing.assert_allclose(a, b, rtol=1e-6)
    a = session.run(d_safe, {x: meeting})
    print(f"meeting: gradient {np.linalg.norm(a):.6f}")
    np.testing.assert_allclose(a, session.run(w) / 2.0, atol=1e-9)
    d2, eps = session.run(second, {x: apart}), 1e-5 * session.run(w)
    ends = [session.run(d_safe, {x: apart + s * eps}) for s in (1, -1)]
    print(f"second order: {np.linalg.norm(d2):.5f}")
    np.testing.assert_allclose(d2, (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-4)
