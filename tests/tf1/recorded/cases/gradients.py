"""tf.gradients and its arguments; hessians; the checker of gradients."""

from tests.tf1.recorded.saying import error_of, mapped, registered, run, values


def case_a_list_always(tf, np):
    x = tf.constant(2.0)
    y = x * x
    return {
        "one": len(tf.gradients(y, x)),
        "lists": len(tf.gradients([y, y], [x, x])),
        "no xs": tf.gradients(y, []),
        "no ys": tf.gradients([], x),
        "is a list": isinstance(tf.gradients(y, (x,)), list),
    }


def case_several_ys_are_summed(tf, np):
    x = tf.constant([1.0, 2.0])
    return values(tf, {"dx": tf.gradients([x * x, 3.0 * x, tf.reduce_sum(x)], x)[0]})


def case_unconnected(tf, np):
    x, z = tf.constant([1.0, 2.0]), tf.constant([[3.0]])
    y = x * x
    zero = tf.UnconnectedGradients.ZERO
    dz = tf.gradients(y, [x, z], unconnected_gradients=zero)[1]
    by_string = tf.gradients(y, z, unconnected_gradients="zero")[0]
    return {
        **values(tf, {"none": tf.gradients(y, z)[0], "zero": dz, "string": by_string}),
        "nonsense": error_of(
            lambda: tf.gradients(y, z, unconnected_gradients="nonsense"), "nonsense"
        ),
    }


def case_integers_and_booleans_are_constants(tf, np):
    i, b = tf.constant([1, 2]), tf.constant([True, False])
    x = tf.to_float(i) * 2.0
    y = tf.constant([1.5, 2.5])
    through = tf.to_float(tf.to_int32(y)) * 3.0
    return values(
        tf,
        {
            "int": tf.gradients(x, i)[0],
            "bool": tf.gradients(tf.to_float(b), b)[0],
            "through int": tf.gradients(through, y)[0],
            "with": tf.gradients(through * y, y)[0],
        },
    )


def case_grad_ys_in_all_forms(tf, np):
    x = tf.constant([1.0, 2.0])
    y, z = x * x, x * 3.0
    return values(
        tf,
        {
            "tensor": tf.gradients(y, x, grad_ys=tf.constant([10.0, 100.0]))[0],
            "array": tf.gradients(y, x, grad_ys=np.array([10.0, 100.0], "float32"))[0],
            "list": tf.gradients([y, z], x, grad_ys=[tf.ones([2]), tf.constant([5.0, 6.0])])[0],
            "none": tf.gradients([y, z], x, grad_ys=[None, tf.constant([5.0, 6.0])])[0],
            "nested": tf.gradients(y, x, [[10.0, 100.0]])[0],
        },
    )


def case_grad_ys_that_do_not_fit(tf, np):
    x = tf.constant([1.0, 2.0])
    y = x * x
    return {
        "count": error_of(lambda: tf.gradients([y, x], x, grad_ys=[y]), "grad_ys", "2 ys"),
        "dtype": error_of(lambda: tf.gradients(y, x, grad_ys=[tf.constant([1, 2])])),
    }


def case_gradients_of_gradients(tf, np):
    x = tf.constant(2.0)
    y, out = x**5, {}
    for order in range(1, 6):
        (y,) = tf.gradients(y, x)
        out[str(order)] = y
    return values(tf, out)


def case_of_grad_ys_themselves(tf, np):
    """The forward mode by two backward ones."""
    x, v = tf.constant([1.0, 2.0]), tf.ones([2])
    y = tf.square(x) * x[0]
    (g,) = tf.gradients(y, x, grad_ys=v)
    (jvp,) = tf.gradients(g, v, grad_ys=tf.constant([1.0, 0.5]))
    return values(tf, {"jvp": jvp, "vjp": g})


def case_stop_gradients_gives_partial_derivatives(tf, np):
    a = tf.constant(1.0)
    b = 2.0 * a
    total, partial = tf.gradients(a + b, [a, b]), tf.gradients(a + b, [a, b], stop_gradients=[a, b])
    names = ["total a", "total b", "partial a", "partial b"]
    return values(tf, dict(zip(names, total + partial)))


def case_stop_gradients_stops_all_outputs_of_an_op(tf, np):
    x = tf.constant([1.0, 2.0])
    a, b = tf.split(x, 2)
    y = a * 3.0 + b * 5.0
    return values(tf, {"a": tf.gradients(y, x, stop_gradients=[a])[0], "y": y})


def case_x_among_ys_and_twice(tf, np):
    x = tf.constant([1.0, 2.0])
    twice = tf.gradients(x * x, [x, x])
    return values(
        tf,
        {
            "x of x": tf.gradients(x, x)[0],
            "x and x": tf.gradients([x, x], x)[0],
            "first": twice[0],
            "second": twice[1],
        },
    )


def case_ys_that_depend_on_each_other(tf, np):
    x = tf.constant(3.0)
    y = x * x
    z = y * 2.0
    dx, dy = tf.gradients([y, z], [x, y], grad_ys=[tf.constant(10.0), tf.constant(1.0)])
    return values(tf, {"dx": dx, "dy": dy})


def case_with_respect_to_what_is_between(tf, np):
    x = tf.constant(3.0)
    h = x * x
    y = tf.exp(h / 9.0) + h
    with mapped(tf, {"Square": registered(tf, lambda op, dy: 1 / 0)}):
        s = tf.square(x)
    return values(
        tf, {"dh": tf.gradients(y, h)[0], "made by a rule that fails": tf.gradients(s * s, s)[0]}
    )


def case_with_respect_to_variables(tf, np):
    v = tf.Variable([1.0, 2.0])
    w = tf.get_variable("w", initializer=3.0)
    y = tf.reduce_sum(v * v * w * w)
    dv, dw = tf.gradients(y, [v, w])
    return values(tf, {"dv": dv, "dw": dw, "hessian": tf.hessians(y, w)[0]})


def case_python_numbers_among_xs(tf, np):
    x = tf.constant(3.0)
    return {"none": tf.gradients(x * x, [x, 2.0])[1] is None}


def case_the_names_of_gradients(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.reduce_sum(tf.square(tf.exp(x, name="e"), name="s"), name="total")
    first, second = tf.gradients(y, x)[0], tf.gradients(y, x)[0]
    mine = tf.gradients(y, x, name="mine")[0]
    with tf.name_scope("scope"):
        scoped = tf.gradients(y, x)[0]
    return {k: t.name for k, t in [("1", first), ("2", second), ("mine", mine), ("scope", scoped)]}


def case_the_scope_of_a_rule_is_its_op(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    with mapped(tf, {"Exp": registered(tf, lambda op, dy: tf.multiply(dy, 2.0, name="mine"))}):
        y = tf.exp(x, name="a/e")
    return {"name": tf.gradients(y, x)[0].name}


def case_other_arguments_change_nothing(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.exp(x) * x + x
    out = {
        "colocate": tf.gradients(y, x, colocate_gradients_with_ops=True)[0],
        "gate": tf.gradients(y, x, gate_gradients=True)[0],
    }
    for method in ["ADD_N", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N", "DEFAULT"]:
        how = getattr(tf.AggregationMethod, method)
        out[method] = tf.gradients(y, x, aggregation_method=how)[0]
    return values(tf, out)


def case_an_unknown_aggregation_method(tf, np):
    x = tf.constant(1.0)
    y = tf.exp(x) * x
    return {
        "raised": error_of(lambda: tf.gradients(y, x, aggregation_method=99), "aggregation_method")
    }


def case_hessians(tf, np):
    x, a = tf.constant([1.0, 2.0]), tf.constant([[2.0, 1.0], [1.0, 5.0]])
    y = tf.reduce_sum(x * tf.reshape(tf.matmul(a, tf.reshape(x, [2, 1])), [2])) + x[0] ** 3
    m = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return values(
        tf, {"vector": tf.hessians(y, x)[0], "matrix": tf.hessians(tf.reduce_sum(m**3), m)[0]}
    )


def case_hessian_vector_product(tf, np):
    x, v = tf.placeholder(tf.float64, [3]), tf.constant([1.0, -1.0, 2.0], tf.float64)
    y = tf.reduce_prod(x) + tf.reduce_sum(tf.sin(x))
    (g,) = tf.gradients(y, x)
    (hv,) = tf.gradients(tf.reduce_sum(g * v), x)
    return values(tf, {"hv": hv}, {x: [0.5, 1.5, -2.0]})


def case_hessians_see_rules(tf, np):
    x = tf.constant([1.0, 2.0])
    with mapped(tf, {"Exp": registered(tf, lambda op, dy: dy * tf.square(op.inputs[0]))}):
        y = tf.exp(x)
    return values(tf, {"hessian": tf.hessians(tf.reduce_sum(y), x)[0]})


def case_sparse_gradients_of_gather(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    v = tf.Variable(x)
    rows = tf.gather(v, [0, 2, 0])
    looked_up = tf.nn.embedding_lookup(v, [1, 1])
    dense = [tf.convert_to_tensor(tf.gradients(t * t, v)[0]) for t in (rows, looked_up)]
    mixed = tf.gradients(tf.reduce_sum(rows) + tf.reduce_sum(v * v), v)[0]
    out = {"rows": dense[0], "looked up": dense[1], "mixed": tf.convert_to_tensor(mixed)}
    return values(tf, out)


def case_compute_gradient(tf, np):
    x = tf.placeholder(tf.float64, [2], name="x")
    y = tf.stack([x[0] * x[1], tf.sin(x[0]), x[1] ** 2])
    value = np.array([0.5, 2.0])
    with tf.Session():
        theirs, numeric = tf.test.compute_gradient(x, [2], y, [3], x_init_value=value)
        error = tf.test.compute_gradient_error(x, [2], y, [3], x_init_value=value)
    return {
        "analytic": theirs,
        "close": bool(np.abs(theirs - numeric).max() < 1e-6),
        "error": bool(error < 1e-6),
    }


def case_compute_gradient_tells_a_rule_from_the_derivative(tf, np):
    x = tf.placeholder(tf.float64, [2])
    with mapped(tf, {"Square": registered(tf, lambda op, dy: dy)}):
        y = tf.square(x)
    with tf.Session():
        error = tf.test.compute_gradient_error(x, [2], y, [2], x_init_value=np.array([3.0, 0.5]))
    return {"error": round(float(error), 4)}


def case_many_paths(tf, np):
    x = tf.constant(0.1)
    y = x
    for _ in range(20):
        y = y * 0.5 + y * 0.6
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_a_long_chain(tf, np):
    x = tf.constant([0.1, 0.9])
    y = x
    for _ in range(80):
        y = tf.sin(y) + 0.01 * x
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_float64_and_float16(tf, np):
    out = {}
    for name in ["float64", "float16"]:
        x = tf.constant([1.5, 2.5], getattr(tf, name))
        out[name] = tf.gradients(tf.exp(x) * x, x)[0]
    return values(tf, out)


def case_double_backward_of_a_norm_penalty(tf, np):
    x, w = tf.constant([[1.0, 2.0], [0.5, -1.0]]), tf.constant([[0.3], [-0.2]])
    f = tf.tanh(tf.matmul(x, w))
    (g,) = tf.gradients(f, x)
    slopes = tf.sqrt(tf.reduce_sum(tf.square(g), axis=[1]))
    penalty = tf.reduce_mean((slopes - 1.0) ** 2)
    return values(tf, {"penalty": penalty, "dw": tf.gradients(penalty, w)[0]})


def case_a_gradient_inside_the_loss(tf, np):
    """One inner step of a learner that learns to learn."""
    w = tf.constant([0.5, -1.0])
    x, y = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([1.0, 0.0])

    def loss(w):
        return tf.reduce_mean((tf.reduce_sum(x * w, 1) - y) ** 2)

    (g,) = tf.gradients(loss(w), w)
    exact = tf.gradients(loss(w - 0.1 * g), w)[0]
    first_order = tf.gradients(loss(w - 0.1 * tf.stop_gradient(g)), w)[0]
    return values(tf, {"exact": exact, "first order": first_order})


def case_feeding_what_is_on_the_way(tf, np):
    x = tf.constant(2.0)
    h = tf.square(x)
    y = tf.exp(h)
    (dx,) = tf.gradients(y, x)
    return {"fed": run(tf, dx, {h: 0.0}), "not": run(tf, dx), "fed y": run(tf, dx, {y: 1.0})}


def case_gradient_with_respect_to_a_part(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return {
        "of a slice made before": run(tf, tf.gradients(tf.reduce_sum(x * x), x)[0][1]),
        "of a slice made after": tf.gradients(tf.reduce_sum(x * x), x[1])[0],
    }
