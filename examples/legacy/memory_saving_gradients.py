"""Gradients in segments: what lies between checkpoints is computed again on the way back.

No rule, but surgery on the graph around `tf.gradients`: copies of the ops between checkpoints, fed
by checkpoints that no gradient passes [Chen et al. 2016, "Training deep nets with sublinear
memory cost"].
"""

import numpy as np

import graphgrad.tf1 as tf
from graphgrad.tf1.contrib import graph_editor as ge


def copy_between(targets, checkpoints, cut):
    """A copy of the ops that lead from checkpoints to targets, which reads the cut ones."""
    walked = ge.get_backward_walk_ops(
        [t.op for t in targets], inclusive=True, stop_at_ts=checkpoints
    )
    known = {t.op for t in checkpoints}
    copied = [op for op in walked if op not in known and op.inputs and "read" not in op.name]
    _, info = ge.copy_with_input_replacements(ge.sgv(copied), {})
    copies = [info.transformed(op) for op in copied]
    ge.reroute_ts([cut[t] for t in checkpoints], checkpoints, can_modify=copies)
    return [info.transformed(t) for t in targets], copies


def gradients(y, xs, checkpoints):
    """As tf.gradients, for checkpoints on a chain from xs to y."""
    cut = {t: tf.stop_gradient(t) for t in checkpoints}
    total, upstream, end = [None] * len(xs), None, y
    for known in [*reversed(checkpoints), None]:
        here = [known] if known is not None else []
        (target,), copies = copy_between([end], here, cut)
        if upstream is not None:
            ge.add_control_inputs(copies[0], [upstream.op])  # again, but not yet
        wanted = xs + [cut[t] for t in here]
        parts = tf.gradients(target, wanted, grad_ys=upstream)
        for i, part in enumerate(parts[: len(xs)]):
            if part is not None:
                total[i] = part if total[i] is None else total[i] + part
        if here:
            upstream, end = parts[-1], known
    return total


rng = np.random.RandomState(0)
x = tf.placeholder(tf.float32, [None, 8], name="x")
h, checkpoints, weights = x, [], []
for i in range(9):
    w = tf.get_variable(f"w{i}", initializer=rng.randn(8, 8).astype("f") / 2)
    weights.append(w)
    h = tf.nn.tanh(tf.matmul(h, w), name=f"h{i}")
    if i % 3 == 2 and i < 8:
        checkpoints.append(h)
loss = tf.reduce_mean(tf.square(h), name="loss")

plain = tf.gradients(loss, weights)
forward = len([op for op in loss.graph.get_operations() if op.type == "Tanh"])
saving = gradients(loss, weights, checkpoints)
again = len([op for op in loss.graph.get_operations() if op.type == "Tanh"]) - forward
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    a, b = session.run([plain, saving], {x: rng.randn(5, 8)})
print(f"{forward} layers, {again} computed again")
print("norms: " + " ".join(f"{np.linalg.norm(g):.5f}" for g in b))
for one, other in zip(a, b):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
