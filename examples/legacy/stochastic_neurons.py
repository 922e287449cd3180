"""Binary stochastic neurons: straight through, with slope annealing, and by REINFORCE.

Ceil passes its gradient on, the noise that is subtracted gets none; the estimators stand in the
branches of a `tf.cond` [Bengio et al. 2013, "Estimating or propagating gradients"].
"""

import numpy as np
from graphgrad.tf1.python.framework import ops

import graphgrad.tf1 as tf

graph = tf.get_default_graph()


@ops.RegisterGradient("BernoulliSample_ST")
def bernoulli_sample_st(op, grad):
    return [grad, tf.zeros(tf.shape(op.inputs[1]))]


@ops.RegisterGradient("BernoulliSample_REINFORCE")
def bernoulli_sample_reinforce(op, grad):
    """The advantage waits in a collection, the sample is what Ceil makes of the difference."""
    sample = op.outputs[0].consumers()[0].outputs[0]
    (advantage,) = op.graph.get_collection("advantage")
    return [-advantage * (sample - op.inputs[0]), tf.zeros_like(op.inputs[1])]


def bernoulli(p, noise, estimator):
    types = {"Ceil": "Identity", "Sub": f"BernoulliSample_{estimator}"}
    with ops.name_scope("BernoulliSample") as name, graph.gradient_override_map(types):
        return tf.ceil(p - noise, name=name)


def binary_round(p):
    types = {"Round": "Identity"}
    with ops.name_scope("BinaryRound") as name, graph.gradient_override_map(types):
        return tf.round(p, name=name)


def passthrough_sigmoid(a, slope):
    with graph.gradient_override_map({"Sigmoid": "Identity"}):
        return tf.nn.sigmoid(slope * a)


def neuron(a, slope, noise, stochastic, through, estimator):
    p = passthrough_sigmoid(a, slope) if through else tf.sigmoid(slope * a)
    return tf.cond(stochastic, lambda: bernoulli(p, noise, estimator), lambda: binary_round(p))


rng = np.random.RandomState(0)
x, noise = tf.constant(rng.randn(50, 4), tf.float32), tf.placeholder(tf.float32, [50, 3])
slope, stochastic = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
w = tf.Variable(rng.randn(4, 3).astype("f") * 0.5)
target = tf.constant((rng.rand(50, 3) < 0.5) * 1.0, tf.float32)
tf.add_to_collection("advantage", tf.constant(0.75))

feeds = {True: rng.rand(50, 3), False: np.zeros((50, 3))}
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for through, estimator in [(True, "ST"), (False, "ST"), (False, "REINFORCE")]:
        fired = neuron(tf.matmul(x, w), slope, noise, stochastic, through, estimator)
        loss = tf.reduce_mean(tf.square(fired - target))
        (dw,) = tf.gradients(loss, w)
        for flag, values in feeds.items():
            run = session.run([loss, dw], {noise: values, stochastic: flag, slope: 1.1})
            print(f"{estimator}, through {through}, stochastic {flag}: ", end="")
            print(f"loss {run[0]:.4f}, gradient {np.linalg.norm(run[1]):.5f}")
            assert np.linalg.norm(run[1]) > 0
    print(
        "name:",
        fired.op.type,
        sorted(o.name for o in graph.get_operations() if o.type == "Ceil")[0],
    )
