"""gradient_override_map: which ops of which block get which rule."""

from tests.tf1.recorded.saying import (
    error_of,
    fresh,
    inner,
    mapped,
    registered,
    run,
    shape_of,
    values,
)


def times(k):
    return lambda op, dy: k * dy


def case_only_what_is_built_inside(tf, np):
    x = tf.placeholder(tf.float32, [2])
    before = tf.exp(x)
    with mapped(tf, {"Exp": registered(tf, times(10.0))}):
        inside = tf.exp(x)
        outside = tf.gradients(before, x)[0]
    after = tf.exp(x)
    gradients = {k: tf.gradients(y, x)[0] for k, y in [("inside", inside), ("after", after)]}
    return values(tf, {"before": outside, **gradients}, {x: [0.0, 1.0]})


def case_inner_map_of_the_same_type_wins(tf, np):
    x = tf.constant([1.0, 2.0])
    with mapped(tf, {"Exp": registered(tf, times(10.0))}):
        a = tf.exp(x)
        with mapped(tf, {"Exp": registered(tf, times(100.0))}):
            b = tf.exp(x)
        c = tf.exp(x)
    return values(tf, {k: tf.gradients(y, x)[0] for k, y in zip("abc", [a, b, c])})


def case_maps_of_different_types_compose(tf, np):
    x = tf.constant(2.0)
    exp, square = registered(tf, times(10.0)), registered(tf, times(7.0))
    with mapped(tf, {"Exp": exp}), mapped(tf, {"Square": square}):
        y = tf.exp(tf.square(x))
    return values(tf, {"dx": tf.gradients(y, x)[0], "y": y})


def case_a_map_is_left_when_its_block_raises(tf, np):
    x = tf.constant(2.0)
    try:
        with mapped(tf, {"Exp": registered(tf, times(10.0))}):
            raise RuntimeError("on the way")
    except RuntimeError:
        pass
    return values(tf, {"dx": tf.gradients(tf.exp(x), x)[0]})


def case_a_type_mapped_to_itself_is_the_default_again(tf, np):
    x = tf.constant([-1.0, 3.0])
    with mapped(tf, {"Relu": registered(tf, times(10.0))}), mapped(tf, {"Relu": "Relu"}):
        y = tf.nn.relu(x)
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_round_as_identity(tf, np):
    x = tf.constant([0.4, 1.6, -2.2])
    with mapped(tf, {"Round": "Identity"}):
        y = tf.round(x)
    return values(tf, {"y": y, "dx": tf.gradients(y * y, x)[0]})


def case_sign_as_identity_floor_as_identity(tf, np):
    x = tf.constant([0.4, -1.6])
    with mapped(tf, {"Sign": "Identity", "Floor": "Identity", "Ceil": "Identity"}):
        ys = [tf.sign(x), tf.floor(x), tf.ceil(x)]
    return values(tf, {y.op.type: tf.gradients(y, x)[0] for y in ys})


def case_mul_as_add_sums_over_what_was_broadcast(tf, np):
    x, e = tf.constant([[1.0, -2.0], [0.5, 3.0]]), tf.constant(4.0)
    with mapped(tf, {"Sign": "Identity", "Mul": "Add"}):
        w = tf.sign(x) * e
    dx, de = tf.gradients(w, [x, e])
    return values(tf, {"dx": dx, "de": de, "w": w})


def case_operators_make_ops_that_maps_see(tf, np):
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    rule = registered(tf, lambda op, dy: (10.0 * dy, 100.0 * dy))
    out = {}
    for op_type, build in [
        ("AddV2", lambda: x + y),
        ("Sub", lambda: x - y),
        ("Mul", lambda: x * y),
        ("RealDiv", lambda: x / y),
        ("Pow", lambda: x**y),
        ("Maximum", lambda: tf.maximum(x, y)),
        ("SquaredDifference", lambda: tf.squared_difference(x, y)),
    ]:
        with mapped(tf, {op_type: rule}):
            z = build()
        dx, dy = tf.gradients(z, [x, y])
        out[op_type], out[f"{op_type}/y"] = dx, dy
    return values(tf, out)


def case_negation_and_matmul_operators(tf, np):
    x, w = tf.constant([[1.0, 2.0]]), tf.constant([[3.0], [4.0]])
    with mapped(tf, {"Neg": registered(tf, times(5.0))}):
        n = -x
    with mapped(tf, {"MatMul": registered(tf, lambda op, g: [2.0 * op.inputs[0], op.inputs[1]])}):
        m = x @ w
    dx, dw = tf.gradients(m, [x, w])
    return values(tf, {"n": tf.gradients(n, x)[0], "dx": dx, "dw": dw})


def case_composites_are_reached_by_their_parts(tf, np):
    x = tf.constant([-2.0, 0.5, 3.0])
    with mapped(tf, {"Minimum": registered(tf, lambda op, g: (7.0 * g, None))}):
        clipped = tf.clip_by_value(x, -1.0, 1.0)
    with mapped(tf, {"Rsqrt": registered(tf, times(0.0))}):
        normal = tf.nn.l2_normalize(x, 0)
    with mapped(tf, {"Sqrt": registered(tf, times(1.0))}):
        norm = tf.norm(x)
    return values(
        tf,
        {
            "clip": tf.gradients(clipped, x)[0],
            "l2_normalize": tf.gradients(normal * [1.0, 2.0, 3.0], x)[0],
            "norm": tf.gradients(norm, x)[0],
        },
    )


def case_bias_add_and_conv_in_one_block(tf, np):
    x = tf.constant(np.arange(9.0).reshape(1, 3, 3, 1), tf.float32)
    w, b = tf.constant(np.ones([2, 2, 1, 1]), tf.float32), tf.constant([0.5])
    with mapped(
        tf, {"BiasAdd": registered(tf, lambda op, g: (g, 3.0 * tf.reduce_sum(g, [0, 1, 2])))}
    ):
        y = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID"), b)
    dx, dw, db = tf.gradients(y, [x, w, b])
    return values(tf, {"dx": dx, "dw": dw, "db": db})


def case_max_pool_with_a_rule_that_spreads(tf, np):
    x = tf.constant(np.arange(16.0).reshape(1, 4, 4, 1), tf.float32)

    def spread(op, g):
        return tf.image.resize_nearest_neighbor(g, op.inputs[0].get_shape().as_list()[1:3])

    with mapped(tf, {"MaxPool": registered(tf, spread)}):
        y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return values(tf, {"dx": tf.gradients(y * [[[[1.0]], [[2.0]]]], x)[0]})


def case_guided_relu(tf, np):
    def guided(op, g):
        return tf.where(
            g > 0.0, tf.nn.relu(g) * tf.cast(op.outputs[0] > 0, tf.float32), tf.zeros_like(g)
        )

    x = tf.constant([[-1.0, 2.0, 3.0, 0.0]])
    with mapped(tf, {"Relu": registered(tf, guided)}):
        y = tf.nn.relu(x)
    return values(tf, {"dx": tf.gradients(y, x, tf.constant([[1.0, -1.0, 2.0, 5.0]]))[0]})


def case_relu6_elu_selu_softplus_by_their_types(tf, np):
    x = tf.constant([-1.0, 7.0])
    rule = registered(tf, times(3.0))
    with mapped(tf, dict.fromkeys(["Relu6", "Elu", "Selu", "Softplus", "LeakyRelu", "Tanh"], rule)):
        nn = tf.nn
        ys = [nn.relu6(x), nn.elu(x), nn.selu(x), nn.softplus(x), nn.leaky_relu(x), tf.tanh(x)]
    ys.append(tf.sigmoid(x))
    return values(tf, {y.op.type: tf.gradients(y, x)[0] for y in ys})


def case_ops_made_by_gradients_inside_a_block_are_mapped_too(tf, np):
    x = tf.constant(3.0)
    rule = registered(tf, lambda op, dy: (dy, dy))
    with mapped(tf, {"Mul": rule}):
        y = tf.square(x)
        inside = tf.gradients(y, x)[0]
    outside = tf.gradients(y, x)[0]
    return values(
        tf,
        {
            "first": inside,
            "second inside": tf.gradients(inside, x)[0],
            "second outside": tf.gradients(outside, x)[0],
        },
    )


def case_registered_after_the_block(tf, np):
    name, x = fresh("Later"), tf.constant(2.0)
    with mapped(tf, {"Exp": name}):
        y = tf.exp(x)
    tf.RegisterGradient(name)(times(10.0))
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_a_name_that_nobody_registers(tf, np):
    x, z = tf.constant(2.0), tf.constant(3.0)
    with mapped(tf, {"Exp": "NobodyRegistersThis"}):
        y = tf.exp(x)
    asked = error_of(lambda: tf.gradients(y, x), "no gradient defined", "Exp")
    out = values(tf, {"forward": y, "off the path": tf.gradients(y + z, z)[0]})
    return {**out, "asked": asked}


def case_a_type_that_does_not_exist_does_nothing(tf, np):
    x = tf.constant(2.0)
    with mapped(tf, {"clip_by_value": registered(tf, times(10.0)), "Div": "Add"}):
        y = tf.clip_by_value(x, 0.0, 1.0) + x / 2.0
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_what_a_map_is_made_of(tf, np):
    graph = tf.get_default_graph()

    def enter(types):
        with graph.gradient_override_map(types):
            pass

    return {
        "a list": error_of(lambda: enter([("Exp", "Exp")]), "dictionary"),
        "None": error_of(lambda: enter({"Exp": None}), "string"),
        "a number": error_of(lambda: enter({1: "Exp"}), "string"),
        "empty": error_of(lambda: enter({})),
    }


def case_the_mark_can_be_read(tf, np):
    x = tf.constant(2.0)
    name = registered(tf, times(10.0))
    with mapped(tf, {"Exp": name}):
        y = tf.exp(x)
    plain = error_of(lambda: tf.exp(x).op.get_attr("_gradient_op_type"), "_gradient_op_type")
    return {"marked": y.op.get_attr("_gradient_op_type") == name.encode(), "plain": plain}


def case_second_order_goes_through_the_rule(tf, np):
    x = tf.constant([1.0, 2.0])
    with mapped(tf, {"Relu": registered(tf, lambda op, dy: dy * op.inputs[0] ** 3)}):
        y = tf.nn.relu(x)
    (dx,) = tf.gradients(y, x)
    (ddx,) = tf.gradients(dx, x)
    return values(tf, {"dx": dx, "ddx": ddx, "dddx": tf.gradients(ddx, x)[0]})


def case_second_order_of_a_rule_that_uses_the_op_itself(tf, np):
    def rule(op, dy):
        return dy * op.outputs[0]

    x = tf.constant(2.0)
    with mapped(tf, {"Exp": registered(tf, rule)}):
        y = tf.exp(2.0 * x)
    (dx,) = tf.gradients(y, x)
    return values(tf, {"dx": dx, "ddx": tf.gradients(dx, x)[0]})


def case_a_block_on_another_graph_marks_there(tf, np):
    other, x = tf.Graph(), tf.constant(2.0)
    with other.gradient_override_map({"Exp": registered(tf, times(10.0))}):
        here = tf.exp(x)
        with other.as_default():
            z = tf.constant(2.0)
            there = tf.exp(z)
            (dz,) = tf.gradients(there, z)
    with tf.Session(graph=other) as session:
        there = session.run(dz)
    return {**values(tf, {"here": tf.gradients(here, x)[0]}), "there": there}


def case_entered_and_left_in_the_same_order(tf, np):
    graph, out = tf.Graph(), {}
    default, block = graph.as_default(), graph.gradient_override_map({"Round": "Identity"})
    default.__enter__()
    block.__enter__()
    x = tf.constant(0.4)
    (dx,) = tf.gradients(tf.round(x), x)
    out["current inside"] = tf.get_default_graph() is graph
    with tf.Session(graph=graph) as session:
        out["dx"] = session.run(dx)
    block.__exit__(None, None, None)
    default.__exit__(None, None, None)
    out["current outside"] = tf.get_default_graph() is graph
    return out


def case_with_name_scopes_and_devices(tf, np):
    x = tf.constant(2.0)
    name = registered(tf, times(10.0))
    with tf.name_scope("outer"), mapped(tf, {"Exp": name}), tf.device("/cpu:0"):  # noqa: SIM117
        with tf.name_scope("inner"):
            y = tf.exp(x)
    return {"name": y.name, **values(tf, {"dx": tf.gradients(y, x)[0]})}


def case_rounds_named_after_a_scope_that_is_taken(tf, np):
    ops = inner(tf, "framework.ops")
    x = tf.constant(0.6)
    with ops.name_scope("Binarized") as name, mapped(tf, {"Round": "Identity"}):
        y = tf.round(x, name=name)
    return {"name": y.name, **values(tf, {"dx": tf.gradients(y, x)[0]})}


def case_a_rule_named_twice_in_a_chain_is_applied_twice(tf, np):
    x = tf.constant(1.0)
    with mapped(tf, {"Identity": registered(tf, times(-0.5))}):
        y = tf.identity(tf.identity(x))
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_stop_gradient_can_be_overridden(tf, np):
    x = tf.constant(1.0)
    with mapped(tf, {"StopGradient": "Identity"}):
        y = tf.stop_gradient(x) * 3.0
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_a_placeholder_is_not_asked(tf, np):
    with mapped(tf, {"Placeholder": "NobodyRegistersThis", "Const": "NobodyRegistersThis"}):
        x = tf.placeholder(tf.float32, [])
        y = x * 2.0
    return values(tf, {"dx": tf.gradients(y, x)[0]}, {x: 1.0})


def case_reads_of_variables_are_identities(tf, np):
    with mapped(tf, {"Identity": registered(tf, times(10.0))}):
        v = tf.Variable(3.0)
    return values(tf, {"dv": tf.gradients(v * v, v)[0], "read": tf.gradients(v * v, v.value())[0]})


def case_a_graph_imported_inside_a_block_is_mapped(tf, np):
    with tf.Graph().as_default() as plain:
        x = tf.placeholder(tf.float32, [3], name="x")
        tf.nn.relu(x - 1.0, name="y")
    with tf.Graph().as_default() as graph:
        with graph.gradient_override_map({"Relu": registered(tf, times(10.0))}):
            tf.import_graph_def(plain.as_graph_def(), name="")
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
        dx = tf.gradients(y, x)[0]
        return {
            "ops": [op.name for op in graph.get_operations() if "gradients" not in op.name],
            "shape": shape_of(y),
            "dx": run(tf, dx, {x: [0.0, 1.0, 2.0]}),
        }


def case_an_import_with_inputs_mapped_and_elements_returned(tf, np):
    with tf.Graph().as_default() as plain:
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.exp(x, name="y")
    mine = tf.constant([0.0, 1.0])
    with mapped(tf, {"Exp": registered(tf, times(10.0))}):
        y, op = tf.import_graph_def(plain.as_graph_def(), {"x:0": mine}, ["y:0", "y"], name="copy")
    out = values(tf, {"y": y, "dx": tf.gradients(y, mine)[0]})
    return {**out, "name": y.name, "op": op is y.op}
