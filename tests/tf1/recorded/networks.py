"""Layers with fixed weights, and a loop of training, for cases that are whole programs."""


def start(np, seed, *shape, scale=0.4):
    """Fixed numbers to start from."""
    return (np.random.RandomState(seed).randn(*shape) * scale).astype("float32")


def convolution(tf, np, x, name, size, stride=1, kernel=3, seed=0):
    """A convolution with a bias, its variables under a scope."""
    shape = [kernel, kernel, int(x.get_shape()[-1]), size]
    with tf.variable_scope(name):
        w = tf.get_variable("weights", initializer=start(np, seed, *shape))
        b = tf.get_variable("biases", [size], initializer=tf.constant_initializer(0.05))
        return tf.nn.bias_add(tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME"), b)


def dense(tf, np, x, name, size, seed=0):
    """A layer without an activation."""
    with tf.variable_scope(name):
        shape = [int(x.get_shape()[-1]), size]
        w = tf.get_variable("w", initializer=start(np, seed, *shape))
        b = tf.get_variable("b", shape=[size], initializer=tf.zeros_initializer())
    return tf.nn.xw_plus_b(x, w, b)


def trained(tf, train, fetches, feed, steps=5):
    """Fetches before each of some steps, and after the last."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        out = [session.run(fetches, feed)]
        for _ in range(steps):
            session.run(train, feed)
            out.append(session.run(fetches, feed))
    return out
