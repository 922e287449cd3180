"""TensorFlow 2: tf.custom_gradient under a GradientTape."""

import tempfile

import numpy as np
import tensorflow as tf
from rows import elsewhere, own

NAME = "TensorFlow 2"
VERSIONS = {"tensorflow": tf.__version__}
API = "https://www.tensorflow.org/api_docs/python/tf/"
DOCUMENTED = {
    "captured": API + "custom_gradient",
    "shape": API + "custom_gradient",
    "dtype": API + "custom_gradient",
    "opaque": API + "numpy_function",
    "forward": API + "autodiff/ForwardAccumulator",
    "through_vmap": API + "vectorized_map",
    "keyword": "https://github.com/tensorflow/tensorflow/issues/77559",
}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "afterwards": "rules are put on functions when they are written",
    "choose": "a function has one rule",
}
CANNOT_BE = {
    "misspelt": "a rule is given as a function",
    "value": "there is one forward part, whether a gradient is taken or not",
}


def with_rule(f, rule=None):
    """A function with the rule."""

    @tf.custom_gradient
    def g(x):
        return f(x), rule or (lambda dy: dy * 6 * x**2)

    return g


cube = with_rule(lambda x: x**3)


def square(x):
    return cube(x) ** 2


def slope(f):
    """The derivative of a function."""

    def answer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return answer


def at(f, number=2.0):
    """The value of a function at a number."""
    return f(tf.constant(number, "float64")).numpy().tolist()


def first():
    return at(slope(square))


def many_ops():
    many = with_rule(lambda x: tf.exp(3 * tf.math.log(x)))
    return at(slope(lambda x: many(x) ** 2))


def second():
    return at(slope(slope(square)))


def kept():
    @tf.custom_gradient
    def f(x):
        steep = 6 * x**2
        return x**3, lambda dy: dy * steep

    return at(slope(slope(lambda x: f(x) ** 2)))


def branch():
    @tf.custom_gradient
    def f(x):
        return x**3, lambda dy: dy * 6 * x**2 if dy > 0 else 0 * dy

    return at(slope(lambda x: f(x) ** 2))


def opaque():
    """The tape skips ops that have no gradient and adds up the other paths."""

    @tf.custom_gradient
    def f(x):
        def rule(dy):
            return tf.numpy_function(lambda x, dy: np.asarray(dy * 6 * x**2), [x, dy], "float64")

        return x**3, rule

    return at(slope(slope(lambda x: x * f(x) ** 2)))


def forward():
    """The accumulator follows the ops of the forward pass and ignores the rule."""
    x = tf.constant(2.0, "float64")
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as moving:
        y = square(x)
    return moving.jvp(y).numpy().tolist()


def normalised(v):
    """The sum of squares of a vector whose gradient a rule normalises."""
    return tf.reduce_sum(with_rule(tf.identity, lambda dy: dy / tf.norm(dy))(v) ** 2)


def per_example():
    batch = [[3.0, 4.0], [6.0, 8.0]]
    return at(lambda batch: tf.vectorized_map(slope(normalised), batch), batch)


def through_vmap():
    """`vectorized_map` builds new ops for the batch, from the forward pass alone."""
    batch = [[3.0, 4.0], [6.0, 8.0]]
    return at(slope(lambda batch: tf.vectorized_map(normalised, batch)), batch)


def compiled():
    return at(slope(tf.function(square, jit_compile=True)))


def compiled_whole():
    return at(tf.function(slope(square), jit_compile=True))


def compiled_second():
    return at(slope(slope(tf.function(square, jit_compile=True))))


def checkpointed():
    return at(slope(tf.recompute_grad(square)))


def in_loop():
    @tf.function
    def twice(x):
        for _ in tf.range(2):
            x = cube(x)
        return x

    return at(slope(twice))


def around_loop():
    def power(x):
        one = tf.ones_like(x)
        return tf.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * x), (0, one))[1]

    return at(slope(lambda x: with_rule(power)(x) ** 2))


def copied():
    """The rule holds tensors of the graph in which it was traced."""
    traced = tf.function(square).get_concrete_function(tf.TensorSpec((), "float64"))
    names = traced.inputs[0].name, traced.outputs[0].name
    graph = traced.graph.as_graph_def()

    def f(x):
        return tf.graph_util.import_graph_def(graph, {names[0]: x}, [names[1]])[0]

    return at(slope(tf.function(f)))


def saved():
    module = tf.Module()
    module.f = tf.function(square, input_signature=[tf.TensorSpec((), "float64")])
    with tempfile.TemporaryDirectory() as folder:
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(module, folder, options=options)
        return elsewhere(f"""
import tensorflow as tf
module = tf.saved_model.load({folder!r})
x = tf.constant(2.0, "float64")
with tf.GradientTape() as tape:
    tape.watch(x)
    y = module.f(x)
print(tape.gradient(y, x).numpy())
""")


def captured():
    """A tensor that is not an argument gets no gradient."""

    def f(x):
        w = tf.identity(x)
        return with_rule(lambda x: w * x**3)(x)

    return at(slope(f))


def shape():
    """The tape does not check shapes."""
    f = with_rule(tf.identity, lambda dy: tf.broadcast_to(dy, (3, 2)))
    return at(slope(lambda x: tf.reduce_sum(f(x))), [1.0, 2.0])


def dtype():
    """It is passed on unchecked."""
    return at(slope(with_rule(tf.identity, lambda dy: tf.cast(dy / 3, "float32"))))


@own("a keyword argument", 384.0)
def keyword():
    """If all arguments are keywords, the rule is ignored."""
    return at(slope(lambda x: cube(x=x) ** 2))
