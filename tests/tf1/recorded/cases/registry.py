"""Rules: how they are registered, what they are given and what they may return."""

from tests.tf1.recorded.saying import error_of, fresh, inner, mapped, registered, run, values


def under(tf, rule, build, op_type="Exp"):
    """What `build` returns when its ops of one type have a rule."""
    with mapped(tf, {op_type: registered(tf, rule)}):
        return build()


def case_registering_a_name_twice(tf, np):
    name = registered(tf, lambda op, dy: dy)
    again = error_of(lambda: tf.RegisterGradient(name)(lambda op, dy: dy), "two gradient", name[:4])
    return {
        "again": again,
        "built in": error_of(lambda: tf.RegisterGradient("Exp")(lambda op, dy: dy), "two gradient"),
        "no string": error_of(lambda: tf.RegisterGradient(3), "string"),
    }


def case_the_decorator_returns_the_function(tf, np):
    def rule(op, dy):
        return dy

    return {"same": tf.RegisterGradient(fresh("Rule"))(rule) is rule}


def case_not_differentiable_is_none_and_not_zero(tf, np):
    ops = inner(tf, "framework.ops")
    name = fresh("Nothing")
    ops.NotDifferentiable(name)
    x = tf.constant(2.0)
    with mapped(tf, {"Exp": name}):
        y = tf.exp(x)
    zero = tf.gradients(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)[0]
    return values(
        tf, {"alone": tf.gradients(y, x)[0], "with x": tf.gradients(y + x, x)[0], "zero": zero}
    )


def case_one_value_a_list_and_a_tuple(tf, np):
    x = tf.constant([1.0, 2.0])
    rules = [lambda op, g: 2.0 * g, lambda op, g: [3.0 * g], lambda op, g: (4.0 * g,)]
    return values(
        tf,
        {str(i): tf.gradients(under(tf, r, lambda: tf.exp(x)), x)[0] for i, r in enumerate(rules)},
    )


def case_none_for_one_of_two_inputs(tf, np):
    x, y = tf.constant(2.0), tf.constant(3.0)
    z = under(tf, lambda op, g: (None, g * 10.0), lambda: x * y, "Mul")
    dx, dy = tf.gradients(z, [x, y])
    return values(tf, {"dx": dx, "dy": dy, "also by another path": tf.gradients(z + x, x)[0]})


def case_none_alone(tf, np):
    x = tf.constant(2.0)
    y = under(tf, lambda op, g: None, lambda: tf.exp(x))
    return values(tf, {"dx": tf.gradients(y, x)[0], "with": tf.gradients([y, x * x], x)[0]})


def case_too_many_and_too_few_values(tf, np):
    x = tf.constant(2.0)
    many = under(tf, lambda op, g: (g, g), lambda: tf.exp(x))
    few = under(tf, lambda op, g: [g], lambda: x * x, "Mul")
    return {
        "many": error_of(lambda: tf.gradients(many, x), "num", "gradients"),
        "few": error_of(lambda: tf.gradients(few, x), "num", "gradients"),
    }


def case_a_wrong_shape_is_an_error(tf, np):
    x = tf.constant([1.0, 2.0])
    y = under(tf, lambda op, g: tf.ones([3]), lambda: tf.exp(x))
    z = under(tf, lambda op, g: tf.constant(1.0), lambda: tf.exp(x))
    return {
        "three for two": error_of(lambda: tf.gradients(y, x), "shape"),
        "scalar": error_of(lambda: tf.gradients(z, x), "shape"),
    }


def case_what_a_rule_sees_of_its_op(tf, np):
    seen = {}

    def rule(op, g):
        seen.update(type=op.type, name=op.name, inputs=[t.name for t in op.inputs])
        seen.update(outputs=[t.name for t in op.outputs], graph=op.graph is tf.get_default_graph())
        seen.update(shape=g.get_shape().as_list(), dtype=g.dtype.name)
        return g

    x = tf.placeholder(tf.float64, [2, 3], name="x")
    y = under(tf, rule, lambda: tf.exp(x, name="here"))
    tf.gradients(y, x)
    return seen


def case_attributes_of_conv_and_pool(tf, np):
    seen = {}

    def rule(op, g):
        keys = ["strides", "padding", "data_format"] + ["ksize"] * (op.type == "MaxPool")
        seen[op.type] = {k: op.get_attr(k) for k in keys}
        seen[op.type]["absent"] = error_of(lambda: op.get_attr("nope"), "nope")
        return [tf.zeros_like(t) for t in op.inputs]

    x = tf.constant(np.ones([1, 4, 4, 1]), tf.float32)
    w = tf.constant(np.ones([2, 2, 1, 1]), tf.float32)
    with mapped(tf, dict.fromkeys(["Conv2D", "MaxPool"], registered(tf, rule))):
        conv = tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME")
        pool = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 1, 2, 1], "VALID")
    tf.gradients([conv, pool], x)
    return seen


def case_attributes_of_matmul_and_sums(tf, np):
    x = tf.constant(np.ones([2, 3]), tf.float32)
    m, s = tf.matmul(x, x, transpose_b=True), tf.reduce_sum(x, 1, keepdims=True)
    return {
        "a": m.op.get_attr("transpose_a"),
        "b": m.op.get_attr("transpose_b"),
        "keep": s.op.get_attr("keep_dims"),
        "T": m.op.get_attr("T") == tf.float32,
        "cast": tf.cast(x, tf.int32).op.get_attr("DstT") == tf.int32,
    }


def case_axis_inputs_need_an_entry(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    counted = {}

    def rule(op, g):
        counted[op.type] = len(op.inputs)
        return [10.0 * tf.ones_like(op.inputs[0])] + [None] * (len(op.inputs) - 1)

    builds = {
        "Sum": lambda: tf.reduce_sum(x, 0),
        "Mean": lambda: tf.reduce_mean(x),
        "Max": lambda: tf.reduce_max(x, 1),
        "Prod": lambda: tf.reduce_prod(x, 1),
        "Reshape": lambda: tf.reshape(x, [4]),
        "Transpose": lambda: tf.transpose(x),
        "Tile": lambda: tf.tile(x, [2, 1]),
        "Pad": lambda: tf.pad(x, [[1, 0], [0, 1]]),
        "ExpandDims": lambda: tf.expand_dims(x, 0),
        "Squeeze": lambda: tf.squeeze(tf.reshape(x, [1, 4])),
        "StridedSlice": lambda: x[0],
        "Slice": lambda: tf.slice(x, [0, 0], [1, 2]),
        "GatherV2": lambda: tf.gather(x, [0, 0]),
        "Cumsum": lambda: tf.cumsum(x),
        "ReverseV2": lambda: tf.reverse(x, [0]),
    }
    out = {
        k: tf.gradients(under(tf, rule, b, k), x)[0] for k, b in builds.items() if k != "Squeeze"
    }
    return {**values(tf, out), "counts": counted}


def case_a_rule_for_concat_and_pack(tf, np):
    x, y = tf.constant([1.0]), tf.constant([2.0, 3.0])

    def rule(op, g):
        return [5.0 * tf.ones_like(t) for t in op.inputs[:-1]] + [None]

    c = under(tf, rule, lambda: tf.concat([x, y], 0), "ConcatV2")
    p = under(
        tf, lambda op, g: [6.0 * t for t in op.inputs], lambda: tf.stack([x, x + 1.0]), "Pack"
    )
    dx, dy = tf.gradients(c, [x, y])
    return values(tf, {"dx": dx, "dy": dy, "pack": tf.gradients(p, x)[0]})


def case_outputs_that_nobody_reads_have_zeros(tf, np):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    y = under(
        tf, lambda op, a, b: [None, tf.concat([a, b], 0) + 1.0], lambda: tf.split(x, 2), "Split"
    )
    return values(tf, {"first": tf.gradients(y[0], x)[0], "both": tf.gradients(y, x)[0]})


def case_integer_outputs_have_none(tf, np):
    x = tf.constant([1.0, 4.0, 3.0])
    seen = []

    def rule(op, dv, di):
        seen.append([dv is None, di is None])
        return [tf.ones_like(op.inputs[0]) * dv[0], None]

    v, _ = under(tf, rule, lambda: tf.nn.top_k(x, 2), "TopKV2")
    return {**values(tf, {"dx": tf.gradients(v, x)[0]}), "none": seen}


def case_a_rule_with_a_closure(tf, np):
    x, scale = tf.constant(2.0), tf.placeholder(tf.float32, [])
    y = under(tf, lambda op, g: -scale * g, lambda: tf.identity(x), "Identity")
    (dx,) = tf.gradients(y * y, x)
    out = {"dx": dx, "to the scale": tf.gradients(y * y, scale)[0]}
    return values(tf, {**out, "second": tf.gradients(dx, scale)[0]}, {scale: 0.5})


def case_a_rule_that_calls_gradients(tf, np):
    def rule(op, g):
        inside = tf.tanh(op.inputs[0])
        return tf.gradients(inside, op.inputs[0], g)[0] * 10.0

    x = tf.constant([0.5, 1.0])
    return values(tf, {"dx": tf.gradients(under(tf, rule, lambda: tf.exp(x)), x)[0]})


def case_a_rule_that_opens_a_map(tf, np):
    def rule(op, g):
        with mapped(tf, {"Round": "Identity"}):
            return tf.round(g * 4.0) / 4.0

    x = tf.constant([0.3, 1.0])
    (dx,) = tf.gradients(under(tf, rule, lambda: tf.identity(x), "Identity") ** 2, x)
    return values(tf, {"dx": dx, "ddx": tf.gradients(dx, x)[0]})


def case_a_rule_that_calls_the_built_in_one(tf, np):
    ops = inner(tf, "framework.ops")
    built_in = ops._gradient_registry.lookup("Exp")
    x = tf.constant([0.5, 1.0])
    y = under(tf, lambda op, g: 10.0 * built_in(op, g), lambda: tf.exp(x))
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_the_rule_of_an_op(tf, np):
    ops = inner(tf, "framework.ops")
    x = tf.constant([0.5, -1.0])

    def rule(op, g):
        return g

    y = under(tf, rule, lambda: tf.nn.relu(x), "Relu")
    plain = tf.nn.relu(x)
    return {
        "mine": ops.get_gradient_function(y.op) is rule,
        "plain": run(tf, ops.get_gradient_function(plain.op)(plain.op, tf.ones([2]))),
        "unknown": error_of(lambda: ops._gradient_registry.lookup("NobodyRegistersThis"), "Nobody"),
    }


def case_the_table_replaced_around_a_call(tf, np):
    table = inner(tf, "framework.ops")._gradient_registry._registry
    x = tf.constant([1.0, -2.0])
    y = tf.exp(x) * x + tf.nn.relu(x)
    original = table["Exp"]["type"]
    table["Exp"]["type"] = lambda op, g: 10.0 * original(op, g)
    try:
        (replaced,) = tf.gradients(y, x)
    finally:
        table["Exp"]["type"] = original
    return values(tf, {"replaced": replaced, "restored": tf.gradients(y, x)[0]})


def case_rules_by_their_functions(tf, np):
    nn_grad, math_grad = inner(tf, "ops.nn_grad"), inner(tf, "ops.math_grad")
    gen_nn_ops = inner(tf, "ops.gen_nn_ops")
    x = tf.constant([-0.5, 1.5])
    ops = {
        t.op.type: t.op
        for t in [tf.nn.relu(x), tf.nn.elu(x), tf.nn.softplus(x), tf.sigmoid(x), tf.tanh(x)]
    }
    g = tf.constant([1.0, 2.0])
    return values(
        tf,
        {
            "relu": nn_grad._ReluGrad(ops["Relu"], g),
            "elu": nn_grad._EluGrad(ops["Elu"], g),
            "softplus": nn_grad._SoftplusGrad(ops["Softplus"], g),
            "sigmoid": math_grad._SigmoidGrad(ops["Sigmoid"], g),
            "tanh": math_grad._TanhGrad(ops["Tanh"], g),
            "relu_grad": gen_nn_ops.relu_grad(g, tf.nn.relu(x)),
        },
    )


def case_max_pool_grad_by_its_function(tf, np):
    gen_nn_ops = inner(tf, "ops.gen_nn_ops")
    x = tf.constant(np.arange(16.0).reshape(1, 4, 4, 1) % 7, tf.float32)
    y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return values(
        tf, {"dx": gen_nn_ops.max_pool_grad(x, y, y + 1.0, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")}
    )


def case_a_class_that_is_called(tf, np):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, op, g):
            return self.k * g

    x = tf.constant(1.0)
    return values(tf, {"dx": tf.gradients(under(tf, Scale(4.0), lambda: tf.exp(x)), x)[0]})


def case_a_rule_that_looks_at_the_consumer(tf, np):
    def rule(op, g):
        follower = op.outputs[0].consumers()[0]
        return [
            tf.where(follower.outputs[0] > 0.0, g, tf.zeros_like(g)),
            tf.zeros_like(op.inputs[1]),
        ]

    x, noise = tf.constant([0.2, 0.8]), tf.constant([0.5, 0.5])
    with mapped(tf, {"Ceil": "Identity", "Sub": registered(tf, rule)}):
        y = tf.ceil(x - noise)
    dx, dn = tf.gradients(y * [3.0, 5.0], [x, noise])
    return values(tf, {"dx": dx, "dn": dn})


def case_a_rule_that_raises(tf, np):
    def rule(op, g):
        raise ZeroDivisionError("in my rule")

    x = tf.constant(1.0)
    y = under(tf, rule, lambda: tf.exp(x))
    return {"raised": error_of(lambda: tf.gradients(y, x), "in my rule")}


def case_a_rule_may_draw_and_keep_collections(tf, np):
    def rule(op, g):
        (k,) = op.graph.get_collection("scales")
        noise = tf.random_uniform(tf.shape(g), minval=0.0, maxval=1e-12)
        return k * g + noise

    x = tf.constant([1.0, 2.0])
    tf.add_to_collection("scales", tf.constant(7.0))
    return values(tf, {"dx": tf.gradients(under(tf, rule, lambda: tf.exp(x)), x)[0]})


def case_a_rule_that_keeps_a_moving_value(tf, np):
    v = tf.Variable(0.0, trainable=False)

    def rule(op, g):
        with tf.control_dependencies([tf.assign_add(v, tf.reduce_sum(g))]):
            return tf.identity(g) * 2.0

    x = tf.constant([1.0, 2.0])
    (dx,) = tf.gradients(under(tf, rule, lambda: tf.identity(x), "Identity"), x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, before = session.run(v), session.run(dx)
        session.run(dx)
        return {"first": first, "dx": before, "after two": session.run(v)}


def case_contributions_are_added_before_the_rule(tf, np):
    calls = []

    def rule(op, g):
        calls.append(g.op.type)
        return g

    x = tf.constant(1.0)
    y = under(tf, rule, lambda: tf.exp(x))
    (dx,) = tf.gradients(y * 2.0 + tf.square(y), x)
    return {"calls": calls, **values(tf, {"dx": dx})}


def case_a_rule_that_is_not_reached_is_not_called(tf, np):
    calls = []
    x, z = tf.constant(1.0), tf.constant(2.0)
    y = under(tf, lambda op, g: calls.append(1) or g, lambda: tf.exp(x))
    tf.gradients(y * z, z)
    stopped = tf.gradients(tf.stop_gradient(y) * x, x)[0]
    return {"calls": len(calls), **values(tf, {"stopped": stopped})}


def case_relevance_of_a_dense_layer(tf, np):
    """Layer-wise relevance propagation by a rule on MatMul and one on Relu."""

    def epsilon(op, r):
        x, w = op.inputs
        z = op.outputs[0]
        s = r / (z + 1e-3 * tf.where(z >= 0, tf.ones_like(z), -tf.ones_like(z)))
        return x * tf.matmul(s, w, transpose_b=True), None

    x = tf.constant([[1.0, -2.0, 0.5]])
    w1 = tf.constant([[0.2, -0.4], [-0.1, -0.3], [0.5, -0.6]])
    w2 = tf.constant([[1.0], [-2.0]])
    with mapped(tf, {"MatMul": registered(tf, epsilon), "Relu": "Identity"}):
        y = tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
    return values(tf, {"relevance": tf.gradients(y, x, grad_ys=y)[0]})
