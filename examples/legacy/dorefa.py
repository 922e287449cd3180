"""DoReFa-Net: weights of one bit, activations of two, gradients of six [Zhou et al. 2016].

Rounding and signs have the gradient of the identity. The gradient itself is quantised by the rule
of an identity, which scales per example, adds noise and opens a map of its own.
"""

import numpy as np

import graphgrad.tf1 as tf

BITS_W, BITS_A, BITS_G = 1, 2, 6
graph = tf.get_default_graph()


def quantize(x, bits):
    n = float(2**bits - 1)
    with graph.gradient_override_map({"Round": "Identity"}):
        return tf.round(x * n) / n


def weights(w):
    if BITS_W == 1:
        scale = tf.stop_gradient(tf.reduce_mean(tf.abs(w)))
        with graph.gradient_override_map({"Sign": "Identity"}):
            return tf.sign(w / scale) * scale
    w = tf.tanh(w)
    return 2 * quantize(w / tf.reduce_max(tf.abs(w)) * 0.5 + 0.5, BITS_W) - 1


def ternary(x, threshold=0.05):
    """Signs and zeros, scaled; its product has the gradient of a sum."""
    limit = tf.stop_gradient(tf.reduce_max(tf.abs(x)) * threshold)
    mask = tf.stop_gradient(tf.where(tf.abs(x) < limit, tf.zeros_like(x), tf.ones_like(x)))
    with graph.gradient_override_map({"Sign": "Identity", "Mul": "Add"}):
        return tf.sign(x) * mask


@tf.RegisterGradient("FGGrad")
def grad_fg(op, x):
    rank = x.get_shape().ndims
    largest = tf.reduce_max(tf.abs(x), list(range(1, rank)), keepdims=True)
    n = float(2**BITS_G - 1)
    x = x / (largest + 1e-30) * 0.5 + 0.5
    x = x + tf.random_uniform(tf.shape(x), minval=-0.5 / n, maxval=0.5 / n) * NOISE
    return (quantize(tf.clip_by_value(x, 0.0, 1.0), BITS_G) - 0.5) * largest * 2


def quantized_gradient(x):
    with graph.gradient_override_map({"Identity": "FGGrad"}):
        return tf.identity(x)


rng = np.random.RandomState(0)
NOISE = tf.placeholder_with_default(0.0, [])
x, labels = tf.placeholder(tf.float32, [None, 6, 6, 1]), tf.placeholder(tf.int32, [None])
k = tf.get_variable("k", initializer=(rng.randn(3, 3, 1, 4) * 0.5).astype("f"))
w = tf.get_variable("w", initializer=(rng.randn(36, 2) * 0.5).astype("f"))
h = tf.nn.conv2d(x, k, [1, 1, 1, 1], "SAME")  # the first layer is not quantised
h = quantize(tf.clip_by_value(h, 0.0, 1.0), BITS_A)
h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
logits = quantized_gradient(tf.matmul(tf.reshape(h, [-1, 36]), weights(w)))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
train = tf.train.AdamOptimizer(0.02).minimize(loss)

data = rng.rand(32, 6, 6, 1)
data[::2, :3] += 1.0  # bright above, or below
data[1::2, 3:] += 1.0
feed = {x: data, labels: np.arange(32) % 2}
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    (dt,) = session.run(tf.gradients(ternary(w), w))
    for _ in range(12):
        losses.append(session.run([loss, train], feed)[0])
    (dk,) = session.run(tf.gradients(loss, k), feed)
    noisy = session.run(tf.gradients(loss, w), {**feed, NOISE: 1.0})[0]
print("losses: " + " ".join(f"{v:.4f}" for v in losses))
print(f"gradient of the kernel: {np.linalg.norm(dk):.4f}; of ternary weights: {dt.mean():.1f}")
assert losses[-1] < losses[0]
assert np.isfinite(noisy).all()
