"""Graphs made by chance, with maps, regions, branches, loops; gradients of random questions."""

from contextlib import nullcontext
from random import Random

from tests.tf1.recorded.saying import mapped, registered, values

BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "matmul", "squared_difference"]
UNARY = [
    "tanh",
    "sigmoid",
    "sin",
    "square",
    "exp",
    "abs",
    "negative",
    "identity",
    "transpose",
    "sign",
]
ACTIVATIONS = ["relu", "elu", "softplus", "relu6", "softmax"]
TYPES = [
    "Tanh",
    "Sigmoid",
    "Relu",
    "Square",
    "Exp",
    "Softplus",
    "Neg",
    "Sin",
    "Elu",
    "Sign",
]


def rules(tf):
    return [
        lambda op, g: 0.5 * g,
        lambda op, g: g * op.outputs[0],
        lambda op, g: tf.tanh(g) * tf.cos(op.inputs[0]),
        lambda op, g: [None],
        lambda op, g: tf.where(g > 0.0, g, tf.zeros_like(g)),
        lambda op, g: tf.stop_gradient(g) * tf.square(op.inputs[0]),
    ]


def region(tf, rng):
    k = rng.choice([0.3, -1.0, 2.0])

    @tf.custom_gradient
    def scaled(x):
        y = tf.tanh(x) * x
        return y, lambda dy: k * dy * tf.cos(x)

    return scaled


def bounded(tf, x):
    return x / (1.0 + tf.reduce_mean(tf.abs(x)))


def step(tf, rng, known, flag):
    """One more tensor of shape [3, 3], made of the known ones."""
    x, y = rng.choice(known), rng.choice(known)
    kind = rng.randrange(15)
    if kind <= 3:
        return getattr(tf, rng.choice(UNARY))(x)
    if kind <= 5:
        return getattr(tf, rng.choice(BINARY))(x, y)
    if kind == 6:
        return getattr(tf.nn, rng.choice(ACTIVATIONS))(x)
    if kind == 7:
        return region(tf, rng)(x)
    if kind == 8:
        return tf.concat([x[1:], y[:1]], 0) + tf.reduce_sum(x, rng.choice([0, 1]), keepdims=True)
    if kind == 9:
        return tf.gather(x, [2, 0, 0]) * tf.stack([y[0], y[1], x[2]])
    if kind == 10:
        return tf.cond(flag, lambda: tf.tanh(x) * y, lambda: tf.sigmoid(x) + x)
    if kind == 11:
        return tf.where(x > y, tf.square(x), tf.stop_gradient(x) * y)
    if kind == 12:
        return tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, tf.tanh(z) * y), (0, x))[1]
    if kind == 13:
        return tf.map_fn(lambda rows: tf.sin(rows[0]) * rows[1], (x, y), dtype=tf.float64)
    return tf.reshape(tf.scan(lambda a, row: tf.tanh(a) + row, x), tf.shape(y)) * y


def built(tf, np, seed):
    rng, numbers = Random(seed), np.random.RandomState(seed)
    flag = tf.placeholder(tf.bool, [])
    xs = [tf.constant(numbers.randn(3, 3) * 0.7) for _ in range(3)]
    known, feeds = list(xs), {flag: bool(seed % 2)}
    for _ in range(14):
        with around(tf, rng):
            known.append(bounded(tf, step(tf, rng, known, flag)))
    ys = rng.sample(known[6:], 2)
    asked = [*xs, rng.choice(known[3:8])]
    stops = rng.choice([None, [rng.choice(known[3:])]])
    seeds = rng.choice([None, [tf.constant(numbers.randn(3, 3)), None]])
    firsts = tf.gradients(ys, asked, grad_ys=seeds, stop_gradients=stops)
    known_firsts = [g for g in firsts if g is not None]
    out = {"y0": ys[0], "y1": ys[1]} | {f"d{i}": g for i, g in enumerate(firsts)}
    looped = any("while" in op.name for op in tf.get_default_graph().get_operations())
    if known_firsts and not looped:  # TensorFlow differentiates loops once
        total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in known_firsts])
        out |= {f"dd{i}": g for i, g in enumerate(tf.gradients(total, xs))}
    return values(tf, out, feeds)


def around(tf, rng):
    """Perhaps a map of two types."""
    if rng.random() < 0.6:
        return nullcontext()
    chosen = rng.sample(TYPES, 3)
    return mapped(tf, {t: registered(tf, rng.choice(rules(tf))) for t in chosen})


def case_seeds(tf, np):
    out = {}
    for seed in range(12):
        with tf.Graph().as_default():
            out[str(seed)] = built(tf, np, seed)
    return out
