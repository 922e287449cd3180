"""meProp: of each example's gradient only the k largest entries are passed back.

A matrix product as a `Defun` whose rule keeps k columns; k is an integer input, which has no
gradient [Sun et al. 2017, "meProp: sparsified back propagation"].
"""

import numpy as np
from graphgrad.tf1.python.framework import function

import graphgrad.tf1 as tf


def sparsified(dy, k):
    """Rows of dy with all but their k largest entries set to zero."""
    _, columns = tf.nn.top_k(tf.abs(dy), k)
    rows = tf.tile(tf.expand_dims(tf.range(tf.shape(dy)[0]), 1), [1, k])
    places = tf.reshape(tf.stack([rows, columns], axis=2), [-1, 2])
    return tf.scatter_nd(places, tf.gather_nd(dy, places), tf.shape(dy))


def meprop_grad(op, dy):
    x, w, k = op.inputs
    dy = sparsified(dy, k)
    return tf.matmul(dy, w, transpose_b=True), tf.matmul(x, dy, transpose_a=True), None


@function.Defun(
    tf.float32,
    tf.float32,
    tf.int32,
    python_grad_func=meprop_grad,
    shape_func=lambda op: [[op.inputs[0].get_shape()[0], op.inputs[1].get_shape()[1]]],
    func_name="MePropMatMul",
)
def meprop_matmul(x, w, k):
    return tf.matmul(x, w)


rng = np.random.RandomState(0)
x, labels = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.int32, [None])
k = tf.placeholder(tf.int32, [])
w1 = tf.get_variable("w1", initializer=(rng.randn(10, 16) / 3).astype("f"))
w2 = tf.get_variable("w2", initializer=(rng.randn(16, 3) / 3).astype("f"))
h = tf.nn.relu(meprop_matmul(x, w1, k))
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(h, w2))
loss = tf.reduce_mean(losses)
(dw1,) = tf.gradients(loss, w1)
train = tf.train.AdamOptimizer(0.05).minimize(loss)

data = rng.randn(40, 10)
feed = {x: data, labels: np.argmax(data[:, :3], 1)}
with tf.Session() as session:
    for kept in (16, 4, 1):
        session.run(tf.global_variables_initializer())
        one = {x: data[:1], labels: feed[labels][:1], k: kept}
        used = (np.abs(session.run(dw1, one)).sum(0) > 0).sum()
        trace = [session.run([loss, train], {**feed, k: kept})[0] for _ in range(15)]
        print(f"k {kept}: {used} columns, losses {trace[0]:.4f} {trace[5]:.4f} {trace[-1]:.4f}")
        assert used <= kept
        assert trace[-1] < trace[0]
