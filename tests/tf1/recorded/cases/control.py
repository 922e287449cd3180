"""cond, case, while_loop, map_fn, scan, arrays of tensors, recurrent networks."""

from tests.tf1.recorded.saying import error_of, mapped, registered, run, shape_of, values


def both(tf, fetches, flag):
    """The values for True and False."""
    return {str(f): run(tf, fetches, {flag: f}) for f in (True, False)}


def case_cond(tf, np):
    x, flag = tf.constant(3.0), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: x * x, lambda: tf.exp(x))
    return both(tf, [y, tf.gradients(y, x)[0]], flag)


def case_cond_of_several_values(tf, np):
    x, flag = tf.constant(3.0), tf.placeholder(tf.bool, [])
    a, b = tf.cond(flag, lambda: (x, x * 2.0), lambda: (x * 3.0, x * 4.0))
    one = tf.cond(flag, lambda: [x], lambda: [x + 1.0])
    keyword = tf.cond(flag, true_fn=lambda: {"a": x}, false_fn=lambda: {"a": -x})
    return both(tf, [a, b, one, keyword["a"], tf.gradients([a, b], x)[0]], flag)


def case_cond_second_order(tf, np):
    x, flag = tf.constant(2.0), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: x**3, lambda: x**4)
    (dx,) = tf.gradients(y, x)
    return both(tf, [dx, tf.gradients(dx, x)[0]], flag)


def case_cond_in_cond(tf, np):
    x, p, q = tf.constant(2.0), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x * 3.0), lambda: x * 5.0)
    (dx,) = tf.gradients(y, x)
    return {f"{a}{b}": run(tf, [y, dx], {p: a, q: b}) for a in (True, False) for b in (True, False)}


def case_only_the_taken_branch_runs(tf, np):
    v, w = tf.Variable(0.0), tf.Variable(0.0)
    flag = tf.placeholder(tf.bool, [])
    outside = w.assign_add(1.0)
    y = tf.cond(flag, lambda: v.assign_add(1.0) * 1.0, lambda: outside * 0.0)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run(y, {flag: False})
        state = s.run([v, w])
        s.run(y, {flag: True})
        return {"first": first, "after false": state, "after true": s.run([v, w])}


def case_a_map_around_a_cond(tf, np):
    x, flag = tf.constant(2.0), tf.placeholder(tf.bool, [])
    with mapped(tf, {"Square": registered(tf, lambda op, dy: 100.0 * dy)}):
        y = tf.cond(flag, lambda: tf.square(x), lambda: x * 3.0)
    return both(tf, tf.gradients(y, x)[0], flag)


def case_a_map_inside_a_branch(tf, np):
    x, flag = tf.constant(0.4), tf.placeholder(tf.bool, [])

    def branch():
        with mapped(tf, {"Ceil": "Identity", "Round": "Identity"}):
            return tf.ceil(tf.round(x * 2.0))

    y = tf.cond(flag, branch, lambda: x * 3.0)
    (dx,) = tf.gradients(y + x, x)
    return both(tf, [y, dx], flag)


def case_gradients_inside_a_branch(tf, np):
    x, flag = tf.constant(2.0), tf.placeholder(tf.bool, [])

    def branch():
        z = x * 1.0
        return tf.gradients(z * z, z)[0]

    return both(tf, tf.cond(flag, branch, lambda: x), flag)


def case_variables_in_branches(tf, np):
    flag = tf.placeholder(tf.bool, [])
    v = tf.Variable([1.0, 2.0])
    y = tf.cond(flag, lambda: tf.reduce_sum(v * v), lambda: tf.reduce_sum(v))
    return both(tf, [y, tf.gradients(y, v)[0]], flag)


def case_branches_that_do_not_match(tf, np):
    flag, x = tf.placeholder(tf.bool, []), tf.constant(1.0)
    return {
        "dtypes": error_of(lambda: tf.cond(flag, lambda: x, lambda: tf.constant(1))),
        "counts": error_of(lambda: tf.cond(flag, lambda: x, lambda: (x, x))),
        "no function": error_of(lambda: tf.cond(flag, x, lambda: x), "callable"),
    }


def case_cond_by_a_number_of_python(tf, np):
    x = tf.constant(1.0)
    taken = error_of(lambda: tf.cond(True, lambda: x, lambda: x), "bool")
    return {"taken": run(tf, tf.cond(tf.constant(True), lambda: x, lambda: -x)), "python": taken}


def case_case(tf, np):
    x = tf.placeholder(tf.float32, [])
    y = tf.case([(x < 0.0, lambda: -x), (x < 1.0, lambda: x * x)], default=lambda: x * 5.0)
    (dx,) = tf.gradients(y, x)
    return {str(v): run(tf, [y, dx], {x: v}) for v in (-2.0, 0.5, 3.0)}


def case_while_loop(tf, np):
    n, x = tf.placeholder(tf.int32, []), tf.constant(2.0)
    i, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), [tf.constant(0), x])
    (dx,) = tf.gradients(y, x)
    return {str(k): run(tf, [i, y, dx], {n: k}) for k in (0, 1, 3)}


def case_while_loop_by_a_value(tf, np):
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda y: y < 100.0, lambda y: y * y, [x])
    return {"y": run(tf, [y, tf.gradients(y, x)[0]], {x: 2.0})}


def case_while_loop_with_maximum_iterations_and_back_prop(tf, np):
    x = tf.constant(2.0)
    y = tf.while_loop(lambda y: y < 1e6, lambda y: y * y, [x], maximum_iterations=2)
    stopped = tf.while_loop(lambda y: y < 100.0, lambda y: y * y, [x], back_prop=False)
    return {"y": run(tf, y), "stopped": run(tf, stopped), "dx": run(tf, tf.gradients(y, x)[0])}


def case_while_loop_of_growing_shapes(tf, np):
    x = tf.constant([[1.0, 2.0]])
    out = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.concat([a, x * tf.to_float(i)], 0)),
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    return {"rows": run(tf, out[1]), "shape": shape_of(out[1])}


def case_a_shape_that_changes_in_a_loop(tf, np):
    x = tf.constant([[1.0, 2.0]])

    def grow():
        return tf.while_loop(lambda a: True, lambda a: tf.concat([a, a], 0), [x])

    return {"raised": error_of(grow, "shape")}


def case_a_map_inside_a_loop(tf, np):
    x = tf.constant(3.0)

    def body(i, y):
        with mapped(tf, {"Mul": registered(tf, lambda op, dy: (7.0 * dy, None))}):
            return i + 1, y * 2.0

    _, y = tf.while_loop(lambda i, y: i < 3, body, [tf.constant(0), x])
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_a_map_around_a_loop(tf, np):
    x = tf.constant(3.0)
    with mapped(tf, {"Square": registered(tf, lambda op, dy: dy * op.inputs[0])}):
        _, y = tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, tf.square(y)), [tf.constant(0), x]
        )
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_variables_and_nested_structures_in_loops(tf, np):
    w = tf.Variable([0.5, 2.0])
    x = tf.constant([1.0, 1.0])
    _, end = tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, {"h": tf.tanh(s["h"] * w)}), (0, {"h": x})
    )
    dw, dx = tf.gradients(end["h"], [w, x])
    return values(tf, {"h": end["h"], "dw": dw, "dx": dx})


def case_map_fn(tf, np):
    x, w = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant(2.0)
    y = tf.map_fn(lambda r: tf.reduce_sum(r * r) * w, x)
    dx, dw = tf.gradients(y, [x, w])
    return values(tf, {"y": y, "dx": dx, "dw": dw})


def case_map_fn_of_structures(tf, np):
    a, b = tf.constant([1.0, 2.0]), tf.constant([10, 20])
    y, z = tf.map_fn(
        lambda t: (t[0] * tf.to_float(t[1]), t[1] + 1), (a, b), dtype=(tf.float32, tf.int32)
    )
    return values(tf, {"y": y, "z": z, "da": tf.gradients(y, a)[0]})


def case_map_fn_of_an_unknown_length(tf, np):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.map_fn(lambda r: tf.exp(r[0]) * r[1], x)
    return {str(n): run(tf, [y, tf.gradients(y, x)[0]], {x: np.ones([n, 2])}) for n in (1, 2)}


def case_a_gradient_for_each_example(tf, np):
    x, w = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0.5, -0.5])
    per = tf.map_fn(lambda r: tf.gradients(tf.tanh(tf.reduce_sum(r * w)), w)[0], x)
    return values(tf, {"per": per})


def case_a_map_in_map_fn(tf, np):
    x = tf.constant([0.4, 1.6])
    with mapped(tf, {"Round": "Identity"}):
        y = tf.map_fn(lambda r: tf.round(r) * 2.0, x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_scan(tf, np):
    x, w = tf.constant([1.0, 2.0, 3.0]), tf.constant(0.5)
    y = tf.scan(lambda a, e: a * w + e, x, initializer=tf.constant(0.0))
    z = tf.scan(lambda a, e: a * e, x)
    dx, dw = tf.gradients(y, [x, w])
    return values(tf, {"y": y, "z": z, "dx": dx, "dw": dw, "dz": tf.gradients(z, x)[0]})


def case_folds(tf, np):
    x = tf.constant([1.0, 2.0, 4.0])
    left, right = tf.foldl(lambda a, e: a - e, x), tf.foldr(lambda a, e: a - e, x)
    return values(tf, {"left": left, "right": right, "dx": tf.gradients(left * left, x)[0]})


def case_tensor_arrays(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    source = tf.TensorArray(tf.float32, 3).unstack(x)

    def body(i, a):
        return i + 1, a.write(i, source.read(i) * 2.0)

    _, end = tf.while_loop(lambda i, a: i < 3, body, [0, tf.TensorArray(tf.float32, 3)])
    y = end.stack()
    return values(tf, {"y": y, "dx": tf.gradients(y * y, x)[0]})


class Cell:
    """h' = tanh((x + h) * w), as much of a cell as dynamic_rnn asks for."""

    state_size = output_size = 2

    def __init__(self, tf):
        self.tf = tf
        self.w = tf.get_variable("w", initializer=[0.5, -1.0])

    def __call__(self, x, h, scope=None):
        h = self.tf.tanh((x + h) * self.w)
        return h, h

    def zero_state(self, batch_size, dtype):
        return self.tf.zeros(self.tf.stack([batch_size, 2]), dtype)


def case_dynamic_rnn_of_a_cell_of_mine(tf, np):
    x = tf.placeholder(tf.float32, [None, 3, 2])
    cell = Cell(tf)
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    dx, dw = tf.gradients(state, [x, cell.w])
    feeds = {x: np.arange(12.0).reshape(2, 3, 2) / 10}
    return values(tf, {"outputs": outputs, "state": state, "dx": dx, "dw": dw}, feeds)


def case_dynamic_rnn_with_lengths(tf, np):
    x = tf.constant(np.arange(12.0).reshape(2, 3, 2) / 10, tf.float32)
    cell = Cell(tf)
    outputs, state = tf.nn.dynamic_rnn(
        cell, x, sequence_length=[1, 3], initial_state=tf.ones([2, 2]) * 0.1
    )
    return values(tf, {"outputs": outputs, "state": state, "dx": tf.gradients(state, x)[0]})


def case_cells_of_the_library(tf, np):
    x = tf.constant(np.arange(12.0).reshape(2, 3, 2) / 10 - 0.5, tf.float32)
    out, names = {}, []
    start = tf.constant_initializer(0.3)
    cells = {
        "basic": tf.nn.rnn_cell.BasicRNNCell,
        "lstm": tf.nn.rnn_cell.LSTMCell,
        "basic lstm": tf.nn.rnn_cell.BasicLSTMCell,
        "gru": tf.nn.rnn_cell.GRUCell,
    }
    for name, cell in cells.items():
        with tf.variable_scope(name.replace(" ", "_"), initializer=start):
            outputs, state = tf.nn.dynamic_rnn(cell(2), x, dtype=tf.float32)
        out[name], out[f"{name} state"] = outputs, state
        out[f"{name} dx"] = tf.gradients(outputs, x)[0]
    names = [v.name for v in tf.trainable_variables()]
    return {**values(tf, out), "names": names}


def case_a_cell_unrolled_by_hand(tf, np):
    x = tf.constant([[0.5, 0.2]])
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    with tf.variable_scope("r", initializer=tf.constant_initializer(0.3)) as scope:
        h = cell.zero_state(1, tf.float32)
        for step in range(3):
            if step:
                scope.reuse_variables()
            _, h = cell(x, h)
    (v, b) = tf.trainable_variables()
    return values(tf, {"h": h, "dv": tf.gradients(h, v)[0], "db": tf.gradients(h, b)[0]})


def case_truncated_backpropagation(tf, np):
    w, h = tf.constant(0.9), tf.constant(1.0)
    losses = []
    for step in range(4):
        if step == 2:
            h = tf.stop_gradient(h)
        h = tf.tanh(h * w)
        losses.append(h * h)
    return values(tf, {"dw": tf.gradients(tf.add_n(losses), w)[0]})


def case_a_spike_with_a_surrogate_in_a_loop(tf, np):
    @tf.custom_gradient
    def spike(v):
        return tf.to_float(v > 0.0), lambda dy: dy * 0.3 * tf.maximum(1.0 - tf.abs(v), 0.0)

    w, x = tf.constant(0.8), tf.constant([0.5, 0.9, 1.2, 0.1])

    def step(state, current):
        v, _ = state
        v = 0.9 * v + w * current
        z = spike(v - 1.0)
        return v - z, z

    v, z = tf.scan(step, x, initializer=(tf.constant(0.0), tf.constant(0.0)))
    return values(tf, {"v": v, "z": z, "dw": tf.gradients(tf.reduce_sum(z), w)[0]})


def growing(tf, x, start, steps):
    """A loop whose variable has one more row after each run, made of all that were there."""

    def body(i, rows):
        row = tf.reduce_sum(tf.tanh(rows) * x, 0, keepdims=True) + x
        return i + 1, tf.concat([rows * rows, row], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    return tf.while_loop(
        lambda i, _: tf.less(i, steps), body, [tf.constant(0), start], shape_invariants=shapes
    )[1]


def case_a_loop_whose_variable_grows(tf, np):
    x, start = tf.constant([[0.5, -1.0]]), tf.constant([[1.0, 2.0]])
    y = growing(tf, x, start, 3)
    dx, dstart = tf.gradients(y, [x, start])
    return values(tf, {"y": y, "dx": dx, "dstart": dstart})


def case_a_loop_whose_variable_grows_and_never_runs(tf, np):
    x, start = tf.constant([[0.5, -1.0]]), tf.constant([[1.0, 2.0]])
    y = growing(tf, x, start, 0)
    return values(tf, {"y": y, "dstart": tf.gradients(y, [start])[0]})


def case_a_loop_whose_variable_takes_the_shape_of_another(tf, np):
    x = tf.placeholder(tf.float32, [None])
    i, v = tf.constant(0), tf.constant([2.0])
    shapes = [i.get_shape(), tf.TensorShape([None])]
    last = tf.while_loop(
        lambda i, v: tf.less(i, 5), lambda i, v: [i + 1, x * v], [i, v], shape_invariants=shapes
    )[1]
    tensors = {"y": last, "dx": tf.gradients(last, x)[0], "dv": tf.gradients(last, v)[0]}
    return [values(tf, tensors, {x: feed}) for feed in ([3.0], [1.0, 2.0])]
