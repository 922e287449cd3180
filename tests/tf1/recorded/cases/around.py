"""What stands around a program: summaries, flags, devices, threads, versions, graphs as data."""

import os
from tempfile import TemporaryDirectory

from tests.tf1.recorded.saying import error_of, fresh, inner, mapped, registered, run, values


def case_summaries(tf, np):
    x = tf.constant([1.0, 2.0])
    made = [
        tf.summary.scalar("loss", tf.reduce_sum(x)),
        tf.summary.histogram("x", x),
        tf.summary.image("picture", tf.zeros([1, 2, 2, 1])),
    ]
    merged = tf.summary.merge_all()
    with tf.Session() as s:
        text, two = s.run([merged, tf.summary.merge(made[:2])])
        return {
            "kind": [type(text).__name__, type(two).__name__],
            "dtype": made[0].dtype.name,
            "count": len(tf.get_collection(tf.GraphKeys.SUMMARIES)),
        }


def case_no_summaries(tf, np):
    return {"merged": tf.summary.merge_all()}


def case_flags(tf, np):
    flags, name = tf.app.flags, fresh("flag")
    flags.DEFINE_integer(f"{name}_int", 3, "a number")
    flags.DEFINE_float(f"{name}_float", 0.5, "a number")
    flags.DEFINE_string(f"{name}_string", "a", "a word")
    flags.DEFINE_boolean(f"{name}_bool", True, "a choice")
    flags.DEFINE_bool(f"{name}_off", False, "a choice")
    given = flags.FLAGS
    given(["program", f"--{name}_float=2.5", f"--no{name}_bool", f"--{name}_off"])
    setattr(given, f"{name}_string", "b")
    names = ("int", "float", "string", "bool", "off")
    same = inner(tf, "platform.flags").FLAGS is given
    return {k: getattr(given, f"{name}_{k}") for k in names} | {"same": same}


def case_a_program_that_is_run(tf, np):
    seen = []

    def main(argv):
        seen.append(argv)

    try:
        tf.app.run(main, argv=["program"])
    except SystemExit as ended:
        return {"code": ended.code, "seen": len(seen)}
    return {"code": None, "seen": len(seen)}


def case_versions_and_modes(tf, np):
    return {
        "version": isinstance(tf.__version__, str),
        "eager": tf.executing_eagerly(),
        "level": tf.logging.set_verbosity(tf.logging.ERROR),
        "compat": tf.compat.v1.placeholder(tf.float32, [2]).get_shape().as_list(),
        "eager off": tf.disable_eager_execution(),
    }


def case_devices(tf, np):
    with tf.device("/cpu:0"):
        x = tf.constant(1.0)
    with tf.device(None):
        y = tf.constant(1.0)
    return {"x": "cpu" in x.device.lower(), "y": y.device, "value": run(tf, x + y)}


def case_coordinators_do_nothing(tf, np):
    with tf.Session() as s:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=s, coord=coordinator)
        stopped = coordinator.should_stop()
        coordinator.request_stop()
        coordinator.join(threads)
        return {"before": stopped, "after": coordinator.should_stop()}


def case_a_graph_read_again_with_its_variables(tf, np):
    with tf.Graph().as_default() as first:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.Variable([[1.0], [2.0]], name="w")
        tf.nn.relu(tf.matmul(x, w), name="y")
        tf.global_variables_initializer()
        with TemporaryDirectory() as home, tf.Session() as s:
            s.run(tf.global_variables_initializer())
            s.run(w.assign([[3.0], [-4.0]]))
            saver = tf.train.Saver()
            path = saver.save(s, os.path.join(home, "model"))
            with tf.Graph().as_default() as second, tf.Session() as t:
                name = registered(tf, lambda op, g: 10.0 * g)
                with second.gradient_override_map({"Relu": name}):
                    tf.import_graph_def(first.as_graph_def(), name="")
                saver.restore(t, path)
                x, y = second.get_tensor_by_name("x:0"), second.get_tensor_by_name("y:0")
                (dx,) = tf.gradients(y, x)
                return {
                    "y": t.run(y, {x: [[1.0, 0.5]]}),
                    "dx": t.run(dx, {x: [[1.0, 0.5]]}),
                    "variables": tf.global_variables(),
                }


def case_a_graph_imported_under_a_name(tf, np):
    with tf.Graph().as_default() as first:
        tf.multiply(tf.constant(2.0, name="a"), 3.0, name="b")
    tf.import_graph_def(first.as_graph_def())
    tf.import_graph_def(first.as_graph_def(), name="again")
    names = [op.name for op in tf.get_default_graph().get_operations()]
    value = run(tf, tf.get_default_graph().get_tensor_by_name("import/b:0"))
    wrong = error_of(
        lambda: tf.import_graph_def(first.as_graph_def(), return_elements=["nope:0"]), "nope"
    )
    return {"names": names, "b": value, "wrong": wrong}


def case_an_imported_mark_stays(tf, np):
    with tf.Graph().as_default() as first:
        x = tf.placeholder(tf.float32, [], name="x")
        with first.gradient_override_map({"Exp": registered(tf, lambda op, g: 11.0 * g)}):
            tf.exp(x, name="y")
    x = tf.constant(1.0)
    (y,) = tf.import_graph_def(first.as_graph_def(), {"x": x}, ["y:0"])
    with mapped(tf, {"Exp": registered(tf, lambda op, g: 7.0 * g)}):
        (z,) = tf.import_graph_def(first.as_graph_def(), {"x:0": x}, ["y:0"])
    return values(tf, {"kept": tf.gradients(y, x)[0], "again": tf.gradients(z, x)[0]})


def case_a_function_that_returns_nothing(tf, np):
    """What lucid does: a py_func that stores a value, and one that gives it back with a rule."""
    state = {}

    def store(value):
        state["value"] = value

    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    z = tf.exp(x) * y
    stored = tf.py_func(store, [z], (), stateful=True, name="store")
    name = registered(tf, lambda op, g: (10.0 * g * op.inputs[0], 3.0 * g))
    with tf.control_dependencies([stored]), mapped(tf, {"PyFunc": name}):
        mock = tf.py_func(lambda *_: state["value"], [x, y], z.dtype, stateful=True, name="mock")
        mock.set_shape(z.get_shape())
    dx, dy = tf.gradients(mock, [x, y])
    return {**values(tf, {"z": mock, "dx": dx, "dy": dy}), "name": mock.op.name}


def case_asserts_inside_a_rule(tf, np):
    """A rule on batches that looks at its step, as redirected activations do."""

    def rule(op, grad):
        x = op.inputs[0]
        flat = tf.reshape(grad, [-1, tf.size(grad) // tf.shape(grad)[0]])
        relu = tf.where(x < 0.0, tf.zeros_like(grad), grad)
        lost = tf.reduce_mean(tf.square(relu)) < 1e-6
        with tf.control_dependencies([tf.Assert(tf.greater(tf.rank(flat), 1), [tf.rank(flat)])]):
            return tf.where(lost, grad, relu)

    x = tf.placeholder(tf.float32, [None, 2])
    with mapped(tf, {"Relu": registered(tf, rule)}):
        y = tf.nn.relu(x)
    (dx,) = tf.gradients(y * [[3.0, 5.0]], x)
    return {k: run(tf, dx, {x: v}) for k, v in [("dead", [[-1.0, -2.0]]), ("live", [[1.0, -2.0]])]}


def case_a_registry_as_a_class_is_used(tf, np):
    """Registered in a class, by a name that holds the object's own number."""

    class Flip:
        calls = 0

        def __call__(self, x, strength):
            name = f"{fresh('Flip')}_{self.calls}"

            @inner(tf, "framework.ops").RegisterGradient(name)
            def flip(op, grad):
                return [tf.negative(grad) * strength]

            Flip.calls += 1
            with tf.get_default_graph().gradient_override_map({"Identity": name}):
                return tf.identity(x)

    flip, x = Flip(), tf.constant([1.0, 2.0])
    y = flip(x, 0.5) + flip(x, tf.constant(2.0)) * x
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_utilities(tf, np):
    nest = inner(tf, "util.nest")
    deep = {"b": [1, (2, 3)], "a": 4}
    flat = nest.flatten(deep)
    return {
        "flat": flat,
        "packed": nest.pack_sequence_as(deep, [x * 10 for x in flat]),
        "mapped": nest.map_structure(lambda v: v + 1, deep),
        "is": [nest.is_sequence([1]) if hasattr(nest, "is_sequence") else True],
    }


def case_errors_are_exceptions_of_a_module(tf, np):
    names = "InvalidArgumentError FailedPreconditionError NotFoundError OutOfRangeError OpError"
    classes = {n: getattr(tf.errors, n) for n in names.split()}
    x = tf.placeholder(tf.float32, [], name="x")
    try:
        run(tf, x)
    except tf.errors.InvalidArgumentError as error:
        caught = [error.op.name if error.op is not None else "x", "x" in error.message]
    return {
        "bases": {n: issubclass(c, tf.errors.OpError) for n, c in classes.items()},
        "caught": caught,
    }
