"""Domain adaptation: features that tell classes and cannot tell domains.

Between features and the domain's classifier stands an op that is the identity forward and turns
the gradient round, as in Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation".
"""

import numpy as np
from graphgrad.tf1.python.framework import ops

import graphgrad.tf1 as tf


class FlipGradientBuilder:
    """A name for each call: what is registered once cannot be registered again."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, strength=1.0):
        """x as it is, with a gradient that is turned round and scaled."""
        name = f"FlipGradient{self.calls}"
        self.calls += 1

        @ops.RegisterGradient(name)
        def _flip(op, grad):
            return [tf.negative(grad) * strength]

        with tf.get_default_graph().gradient_override_map({"Identity": name}):
            return tf.identity(x)


flip_gradient = FlipGradientBuilder()


def layer(x, size, name, activation):
    start = np.random.RandomState(len(name)).randn(int(x.get_shape()[1]), size) / 2
    with tf.variable_scope(name):
        w = tf.get_variable("w", initializer=start.astype("float32"))
        b = tf.get_variable("b", [size], initializer=tf.zeros_initializer())
        return activation(tf.matmul(x, w) + b)


def cross_entropy(labels, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def trained(strength):
    """Losses and the accuracy on domains after 60 steps."""
    rng = np.random.RandomState(0)
    classes, domains = rng.randint(2, size=64), rng.randint(2, size=64)
    data = rng.randn(64, 3) * 0.3
    data[:, 0] += 2 * classes - 1
    data[:, 1] += 2 * domains - 1
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y, d = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
        factor = tf.placeholder(tf.float32, [], name="factor")
        features = layer(x, 4, "features", tf.nn.tanh)
        label_loss = cross_entropy(y, layer(features, 2, "label", tf.identity))
        guess = layer(flip_gradient(features, factor), 2, "domain", tf.identity)
        domain_loss = cross_entropy(d, guess)
        right = tf.equal(tf.argmax(guess, 1), tf.cast(d, tf.int64))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        train = tf.train.MomentumOptimizer(0.1, 0.5).minimize(label_loss + domain_loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            feed = {x: data, y: classes, d: domains, factor: strength}
            for _ in range(60):
                session.run(train, feed)
            return session.run([label_loss, domain_loss, accuracy], feed)


for strength in (-1.0, 1.0):
    label, domain, accuracy = trained(strength)
    print(f"strength {strength}: labels {label:.4f}, domains {domain:.4f}, told {accuracy:.3f}")
    assert (accuracy > 0.9) == (strength < 0), "reversed, the domains are not told any more"
