"""What a step and a node cost in TensorFlow 1's spelling, beside graphgrad's own.

    python tools/tf1/speed.py

Steps of gradient descent of two networks, and the building of a chain. CPU time, interleaved,
medians.
"""

import time
from statistics import median

import numpy as np

import graphgrad as gg
import graphgrad.tf1 as tf

RNG = np.random.default_rng(0)
MLP = [(64, 128), (128, 128), (128, 10)]
CNN = [(3, 3, 1, 8), (3, 3, 8, 16), (784, 10)]
LABELS = RNG.integers(0, 10, 32).astype("int32")


def numbers(*shape):
    """Fixed random numbers, small ones."""
    return (RNG.normal(size=shape) * 0.1).astype("float32")


def native(data, weights, network):
    """A step of graphgrad's own."""
    with gg.Graph():
        x, y = gg.placeholder(data.shape, "float32"), gg.placeholder(LABELS.shape, "int32")
        variables = [gg.variable(w) for w in weights]
        loss = gg.mean(gg.nn.cross_entropy(network(x, variables), y))
        pairs = zip(variables, gg.gradients(loss, variables), strict=True)
        step = gg.compile([x, y], loss, updates={v: v - np.float32(0.1) * g for v, g in pairs})
    return lambda: step(data, LABELS)


def spelt(data, weights, network):
    """The same step by a session."""
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, data.shape), tf.placeholder(tf.int32, LABELS.shape)
        variables = [tf.Variable(w) for w in weights]
        logits = network(x, variables)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    return lambda: session.run([loss, train], {x: data, y: LABELS})


def native_mlp(x, ws):
    """Two layers of relu and a linear one."""
    return gg.nn.relu(gg.nn.relu(x @ ws[0]) @ ws[1]) @ ws[2]


def spelt_mlp(x, ws):
    """The same."""
    return tf.matmul(tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, ws[0])), ws[1])), ws[2])


def native_cnn(x, ws):
    """Two convolutions with relu and pools, and a linear layer."""
    for w in ws[:2]:
        x = gg.nn.max_pool(gg.nn.relu(gg.nn.conv(x, w)), (2, 2))
    return gg.reshape(x, (32, 784)) @ ws[2]


def spelt_cnn(x, ws):
    """The same."""
    for w in ws[:2]:
        h = tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
        x = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return tf.matmul(tf.reshape(x, [32, 784]), ws[2])


def native_chain(n=300):
    """Nodes of a chain."""
    with gg.Graph() as graph:
        x = y = gg.placeholder((4,), "float32")
        for _ in range(n):
            y = gg.tanh(y * x)
        return len(graph.nodes)


def spelt_chain(n=300):
    """Ops of the same chain."""
    with tf.Graph().as_default() as graph:
        x = y = tf.placeholder(tf.float32, [4])
        for _ in range(n):
            y = tf.tanh(y * x)
        return len(graph.get_operations())


def medians(first, second, times, repeat):
    """Microseconds of CPU of both, a call."""
    for _ in range(12):
        first(), second()
    taken = [], []
    for _ in range(times):
        for function, found in zip((first, second), taken, strict=True):
            start = time.process_time()
            for _ in range(repeat):
                function()
            found.append((time.process_time() - start) / repeat * 1e6)
    return [median(t) for t in taken]


def main():
    """Print the figures."""
    rows = [
        ("MLP", numbers(32, 64), MLP, native_mlp, spelt_mlp, 20),
        ("CNN", numbers(32, 28, 28, 1), CNN, native_cnn, spelt_cnn, 2),
    ]
    for name, data, shapes, own, theirs, repeat in rows:
        weights = [numbers(*s) for s in shapes]
        a, b = medians(native(data, weights, own), spelt(data, weights, theirs), 40, repeat)
        print(f"{name}, a step: native {a:.1f} us, tf1 {b:.1f} us, {b - a:+.1f} us")
    a, b = medians(native_chain, spelt_chain, 40, 1)
    a, b = a / native_chain(), b / spelt_chain()
    print(f"building, a node: native {a:.2f} us, tf1 {b:.2f} us, {b / a:.2f} times")


if __name__ == "__main__":
    main()
