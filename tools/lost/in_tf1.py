"""TensorFlow 1's graph mode: RegisterGradient and gradient_override_map, tf.custom_gradient."""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from rows import elsewhere, own

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

NAME = "TensorFlow 1"
VERSIONS = {"tensorflow": tf2.__version__}
API = "https://www.tensorflow.org/api_docs/python/tf/"
MAP = API + "Graph#gradient_override_map"
DOCUMENTED = {
    "misspelt": MAP,
    "around_second_loop": "https://github.com/tensorflow/tensorflow/issues/36870",
    "gradients_in_the_block": MAP,
    "other_thread": MAP,
    "leaking_map": MAP,
    "captured": API + "custom_gradient",
    "opaque": API + "numpy_function",
    "dtype": API + "RegisterGradient",
    "dynamic_shape": API + "RegisterGradient",
    "checkpointed": API + "recompute_grad",
    "through_vmap": API + "vectorized_map",
}
NOT_OFFERED = {
    "theirs": "programs of other frameworks are not opened",
    "forward": "there is no forward mode",
    "choose": "a rule is fixed when a node is built",
}
CANNOT_BE = {"value": "there is one forward part, whether a gradient is taken or not"}


@tf.RegisterGradient("TwiceCube")
def twice(op, dy):
    """The rule: twice the derivative of x ** 3."""
    return [dy * 6 * op.inputs[0] ** 2, None]


@tf.RegisterGradient("Normalised")
def normalised_rule(op, dy):
    """A rule that normalises."""
    return dy / tf.norm(dy)


def put(**names):
    """A scope that puts rules on op types."""
    return tf.get_default_graph().gradient_override_map(names)


def cubed(x):
    """x ** 3 with the rule."""
    with put(Pow="TwiceCube"):
        return tf.pow(x, 3.0)


def region(f, rule=None):
    """A function with the rule."""

    @tf.custom_gradient
    def g(x):
        return f(x), rule or (lambda dy: dy * 6 * x**2)

    return g


def asked(answer, at=2.0, config=None):
    """The value of answer(x) at a number."""
    with tf.Graph().as_default():
        x = tf.placeholder("float64", (), name="x")
        y = answer(x)
        with tf.Session(config=config) as session:
            return session.run(y, {x: at}).tolist()


def order(n, y, x):
    """The n-th derivative."""
    for _ in range(n):
        (y,) = tf.gradients(y, x)
    return y


def first():
    return asked(lambda x: order(1, cubed(x) ** 2, x))


def many_ops():
    many = region(lambda x: tf.exp(3 * tf.log(x)))
    return asked(lambda x: order(1, many(x) ** 2, x))


def second():
    return asked(lambda x: order(2, cubed(x) ** 2, x))


def kept():
    @tf.custom_gradient
    def cube(x):
        slope = 6 * x**2
        return x**3, lambda dy: dy * slope

    return asked(lambda x: order(2, cube(x) ** 2, x))


@tf.RegisterGradient("Branch")
def branch_rule(op, dy):
    """The rule, where dy is positive."""
    return twice(op, dy) if dy > 0 else [0 * dy, None]


def branch():
    def answer(x):
        with put(Pow="Branch"):
            y = tf.pow(x, 3.0)
        return order(1, y**2, x)

    return asked(answer)


@tf.RegisterGradient("Opaque")
def opaque_rule(op, dy):
    """The rule, in NumPy."""
    x = op.inputs[0]
    return [tf.numpy_function(lambda x, dy: np.asarray(dy * 6 * x**2), [x, dy], "float64"), None]


def opaque():
    """`gradients` skips ops that have no gradient and adds up the other paths."""

    def answer(x):
        with put(Pow="Opaque"):
            y = tf.pow(x, 3.0)
        return order(2, x * y**2, x)

    return asked(answer)


def normalised(v):
    """The sum of squares of a vector whose gradient a rule normalises."""
    with put(Identity="Normalised"):
        y = tf.identity(v)
    return tf.reduce_sum(y**2)


def per_example():
    slope = lambda v: order(1, normalised(v), v)
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.constant([[3.0, 4.0], [6.0, 8.0]], "float64")
        return session.run(tf.vectorized_map(slope, batch)).tolist()


def through_vmap():
    """`vectorized_map` builds new ops for the batch, without the marks of the old ones."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.constant([[3.0, 4.0], [6.0, 8.0]], "float64")
        return session.run(order(1, tf.vectorized_map(normalised, batch), batch)).tolist()


JIT = tf.ConfigProto()
JIT.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1


def compiled():
    return asked(lambda x: order(1, cubed(x) ** 2, x), config=JIT)


def compiled_whole():
    return compiled()


def compiled_second():
    return asked(lambda x: order(2, cubed(x) ** 2, x), config=JIT)


def checkpointed():
    """The ops are recomputed under a tape, which uses the rule of the op type and ignores the
    map.
    """
    return asked(lambda x: order(1, tf2.recompute_grad(cubed)(x) ** 2, x))


def in_loop():
    def answer(x):
        _, y = tf.while_loop(lambda i, c: i < 2, lambda i, c: (i + 1, cubed(c)), (0, x))
        return order(1, y, x)

    return asked(answer)


def around_loop():
    def power(x):
        one = tf.ones_like(x)
        return tf.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * x), (0, one))[1]

    return asked(lambda x: order(1, region(power)(x) ** 2, x))


def copied():
    with tf.Graph().as_default() as graph:
        tf.identity(cubed(tf.placeholder("float64", (), name="x")) ** 2, name="y")

    def answer(x):
        (y,) = tf.import_graph_def(graph.as_graph_def(), {"x:0": x}, ["y:0"])
        return order(1, y, x)

    return asked(answer)


def saved():
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.meta"
        tf.identity(cubed(tf.placeholder("float64", (), name="x")) ** 2, name="y")
        tf.train.export_meta_graph(str(path))
        return elsewhere(f"""
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.train.import_meta_graph({str(path)!r})
x, y = map(tf.get_default_graph().get_tensor_by_name, ["x:0", "y:0"])
print(tf.Session().run(tf.gradients(y, x), {{x: 2.0}})[0])
""")


@tf.RegisterGradient("Passed")
def passed(op, dy):
    """The rule: as it comes."""
    return dy


def afterwards():
    """By importing its GraphDef once more."""
    with tf.Graph().as_default() as graph:
        tf.identity(3 * tf.tanh(tf.placeholder("float64", (), name="x")), name="y")

    def answer(x):
        with put(Tanh="Passed"):
            (y,) = tf.import_graph_def(graph.as_graph_def(), {"x:0": x}, ["y:0"])
        return order(1, y, x)

    return asked(answer)


def misspelt():
    """A map whose op type matches nothing is ignored."""

    def answer(x):
        with put(ReLU="Passed"):
            y = tf.nn.relu(x)
        return order(1, y, x)

    return asked(answer, at=-1.0)


def captured():
    """A tensor that is not an argument gets no gradient."""

    def answer(x):
        w = tf.identity(x)
        return order(1, region(lambda x: w * x**3)(x), x)

    return asked(answer)


@tf.RegisterGradient("Wide")
def wide(op, dy):
    """A rule that answers with too much."""
    return tf.broadcast_to(dy, (3, 2))


def shape():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1.0, 2.0])
        with put(Identity="Wide"):
            y = tf.identity(x)
        return session.run(order(1, tf.reduce_sum(y), x)).tolist()


@tf.RegisterGradient("Narrow")
def narrow(op, dy):
    """A rule that answers in float32."""
    return tf.cast(dy / 3, "float32")


def dtype():
    """It is passed on unchecked."""

    def answer(x):
        with put(Identity="Narrow"):
            y = tf.identity(x)
        return order(1, y, x)

    return asked(answer)


@own("a map around a loop whose body is a separate graph (control flow v2)", 9216.0)
def around_second_loop():
    """The map belongs to the outer graph; the body is another graph, without a map."""

    def answer(x):
        with put(Pow="TwiceCube"):
            body = lambda i, c: (i + 1, tf.pow(c, 3.0))
            _, y = tf.while_loop(lambda i, c: i < 2, body, (0, x))
        return order(1, y, x)

    tf.enable_control_flow_v2()
    try:
        return asked(answer)
    finally:
        tf.disable_control_flow_v2()


@own("a shape that is known only at run time", "an error")
def dynamic_shape():
    """Shapes are compared while the graph is built, as far as they are known, and not when it
    runs.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder("float32", (None,))
        with put(Identity="Doubled"):
            y = tf.identity(x)
        return session.run(order(1, tf.reduce_sum(y), x), {x: [1.0, 2.0]}).tolist()


@tf.RegisterGradient("Doubled")
def doubled(op, dy):
    """A rule that answers with twice as many numbers."""
    return tf.concat([dy, dy], 0)


@own("a second derivative, when the first is taken inside the map's block", 1536.0)
def gradients_in_the_block():
    """The map also marks the ops that `gradients` builds: here the `x**2` of the rule."""

    def answer(x):
        with put(Pow="TwiceCube"):
            y = tf.pow(x, 3.0)
            (dx,) = tf.gradients(y * y, x)
        return order(1, dx, x)

    return asked(answer)


@own("another thread that builds the same graph at the same time", 12.0)
def other_thread():
    """The map belongs to the graph: it marks every op that any thread builds while the block is
    open.
    """
    from threading import Thread

    def answer(x):
        built = []
        graph = tf.get_default_graph()

        def build():
            with graph.as_default():
                built.append(tf.pow(x, 3.0))

        with put(Pow="TwiceCube"):
            thread = Thread(target=build)
            thread.start()
            thread.join()
        return order(1, built[0], x)

    return asked(answer)


@own("after a map with an invalid entry has raised", 12.0)
def leaking_map():
    """The entries before the invalid one stay in force."""

    def answer(x):
        try:
            with put(Pow="TwiceCube", Relu=None):
                pass
        except TypeError:
            pass
        return order(1, tf.pow(x, 3.0), x)

    return asked(answer)
