"""Loops in loops, branches in loops, rules, regions, state and Python inside of them."""

from tests.tf1.recorded.saying import error_of, mapped, registered, run, values


def loop(tf, times, body, start):
    """The body applied some times to one value, with the count given to it."""
    return tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, body(i, y)), (0, start))[1]


def case_a_loop_in_a_loop(tf, np):
    x, w = tf.constant([0.5, -0.3]), tf.Variable([1.2, 0.7])

    def inner(_, y):
        return loop(tf, 2, lambda i, z: tf.tanh(z * w) + x, y)

    y = loop(tf, 3, inner, x)
    dx, dw = tf.gradients(y, [x, w])
    return values(tf, {"y": y, "dx": dx, "dw": dw})


def case_a_branch_in_a_loop(tf, np):
    x = tf.constant([1.0, -2.0])

    def body(i, y):
        return tf.cond(tf.equal(i % 2, 0), lambda: y * 3.0, lambda: tf.sin(y) + x)

    y = loop(tf, 4, body, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_a_loop_in_a_branch(tf, np):
    x, flag = tf.constant(1.5), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: loop(tf, 3, lambda i, z: z * x, x), lambda: x * 7.0)
    (dx,) = tf.gradients(y, x)
    return {str(f): run(tf, [y, dx], {flag: f}) for f in (True, False)}


def case_a_branch_by_the_value_of_a_loop(tf, np):
    """Newton's steps until they are small."""
    x = tf.placeholder(tf.float64, [])

    def step(z, _):
        new = 0.5 * (z + x / z)
        return new, tf.abs(new - z)

    start = (tf.constant(1.0, tf.float64), tf.constant(1.0, tf.float64))
    y, _ = tf.while_loop(lambda z, gap: gap > 1e-9, step, start)
    return {str(v): run(tf, [y, tf.gradients(y, x)[0]], {x: v}) for v in (2.0, 9.0)}


def case_a_region_in_a_loop(tf, np):
    x = tf.constant([0.5, -1.5])

    @tf.custom_gradient
    def clipped(z):
        kept = tf.cast(tf.abs(z) < 1.0, tf.float32)
        return tf.sign(z) * 0.9, lambda dy: dy * kept * 2.0

    y = loop(tf, 3, lambda i, z: clipped(z) + x * 0.1, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_a_rule_that_reads_inputs_and_outputs_in_a_loop(tf, np):
    x = tf.constant([0.5, 1.5])
    name = registered(tf, lambda op, dy: dy * op.outputs[0] * op.inputs[0])

    def body(_, z):
        with mapped(tf, {"Tanh": name}):
            return tf.tanh(z) * 2.0

    y = loop(tf, 3, body, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_python_with_a_rule_in_a_loop(tf, np):
    x = tf.constant([0.5, 1.5])
    name = registered(tf, lambda op, dy: 2.0 * dy * op.inputs[0])

    def body(_, z):
        with mapped(tf, {"PyFunc": name}):
            y = tf.py_func(np.square, [z], tf.float32)
        y.set_shape([2])
        return y

    y = loop(tf, 2, body, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_variables_written_in_a_loop(tf, np):
    total = tf.Variable(0.0)

    def body(i, y):
        with tf.control_dependencies([total.assign_add(tf.to_float(i))]):
            return y + 1.0

    y = loop(tf, 4, body, tf.constant(0.0))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return {"y": s.run(y), "total": s.run(total)}


def case_variables_written_in_a_branch(tf, np):
    v, flag = tf.Variable([1.0, 2.0]), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: tf.reduce_sum(v.assign(v * 2.0)), lambda: tf.reduce_sum(v))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return {"values": [s.run(y, {flag: f}) for f in (True, False, True)], "v": s.run(v)}


def case_stopped_in_a_loop(tf, np):
    x = tf.constant(2.0)
    y = loop(tf, 3, lambda i, z: tf.stop_gradient(z) * x, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_rows_of_unknown_number_gathered_in_a_loop(tf, np):
    x = tf.placeholder(tf.float32, [None, 2])
    n = tf.shape(x)[0]
    rows = tf.TensorArray(tf.float32, n).unstack(x)

    def body(i, h, out):
        h = tf.tanh(rows.read(i) + h)
        return i + 1, h, out.write(i, h)

    start = (0, tf.zeros([2]), tf.TensorArray(tf.float32, n))
    _, h, out = tf.while_loop(lambda i, *_: i < n, body, start)
    y = out.stack()
    (dx,) = tf.gradients([y, h], x)
    feeds = [np.arange(2.0 * k).reshape(k, 2) / 10 for k in (1, 3)]
    return {str(len(f)): run(tf, [y, h, dx], {x: f}) for f in feeds}


def case_scan_of_structures(tf, np):
    x, w = tf.constant([[1.0, 2.0], [0.5, -1.0], [0.1, 0.2]]), tf.constant([0.5, 0.25])

    def step(state, row):
        h, total = state
        h = tf.tanh(h * w + row)
        return h, total + tf.reduce_sum(h)

    h, total = tf.scan(step, x, initializer=(tf.zeros([2]), tf.constant(0.0)))
    back = tf.scan(lambda a, row: a * 0.5 + row, x, initializer=tf.zeros([2]), reverse=True)
    dx, dw = tf.gradients([h[-1], total[-1]], [x, w])
    return values(tf, {"h": h, "total": total, "back": back, "dx": dx, "dw": dw})


def case_map_fn_of_pairs_of_different_types(tf, np):
    x, i = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1, 0])
    y, k = tf.map_fn(
        lambda t: (tf.gather(t[0], t[1]) * t[0], t[1] * 10), (x, i), (tf.float32, tf.int32)
    )
    return values(tf, {"y": y, "k": k, "dx": tf.gradients(y, x)[0]})


def case_second_order_inside_map_fn(tf, np):
    """The square of a gradient of each example, differentiated outside."""
    x, w = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.Variable([0.5, -0.5])

    def slope(row):
        (g,) = tf.gradients(tf.tanh(tf.reduce_sum(row * w)), row)
        return tf.reduce_sum(g * g)

    y = tf.map_fn(slope, x)
    return values(tf, {"y": y, "dw": tf.gradients(y, w)[0]})


def case_optimizing_in_a_loop(tf, np):
    """Steps of descent inside the graph, and the gradient through all of them."""
    rate, target = tf.constant(0.1), tf.constant([1.0, -1.0])

    def step(_, x):
        (g,) = tf.gradients(tf.reduce_sum((x - target) ** 4), x)
        return x - rate * g

    x = loop(tf, 3, step, tf.zeros([2]))
    loss = tf.reduce_sum((x - target) ** 2)
    drate, dtarget = tf.gradients(loss, [rate, target])
    return values(tf, {"x": x, "drate": drate, "dtarget": dtarget})


def case_a_loop_that_is_never_entered(tf, np):
    x = tf.constant([1.0, 2.0])
    y = loop(tf, 0, lambda i, z: z * 2.0, x) * 3.0
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_wrong_bodies(tf, np):
    x = tf.constant(1.0)
    return {
        "count": error_of(lambda: tf.while_loop(lambda y: True, lambda y: (y, y), [x])),
        "no condition": error_of(lambda: tf.while_loop(True, lambda y: y, [x]), "callable"),
        "no variables": error_of(
            lambda: tf.while_loop(lambda: True, lambda: None, []), "variables"
        ),
    }


def case_a_mask_by_lengths(tf, np):
    """Losses of sequences of different lengths."""
    x, lengths = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
    mask = tf.sequence_mask(lengths, 3, tf.float32)
    loss = tf.reduce_sum(tf.square(x) * mask, 1) / tf.to_float(lengths)
    feeds = {x: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], lengths: [1, 3]}
    return values(tf, {"loss": loss, "dx": tf.gradients(loss, x)[0]}, feeds)
