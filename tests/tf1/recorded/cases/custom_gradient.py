"""tf.custom_gradient: regions whose gradient a function of Python gives."""

from tests.tf1.recorded.saying import error_of, mapped, registered, run, values


def scaled(tf, k):
    """The identity with a gradient k times as large."""

    @tf.custom_gradient
    def function(x):
        return tf.identity(x), lambda dy: k * dy

    return function


def case_log1pexp(tf, np):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = tf.constant([0.0, 100.0])
    y = log1pexp(x)
    (dx,) = tf.gradients(y, x)
    return values(tf, {"y": y, "dx": dx, "ddx": tf.gradients(dx, x)[0]})


def case_gradient_reversal(tf, np):
    x, w = tf.constant([[1.0, 2.0]]), tf.constant([[0.5], [-1.0]])
    h = tf.matmul(scaled(tf, -0.3)(x), w)
    dx, dw = tf.gradients(h, [x, w])
    return values(tf, {"dx": dx, "dw": dw})


def case_two_arguments_two_results(tf, np):
    @tf.custom_gradient
    def function(x, y):
        return (x * y, x + y), lambda da, db: (10.0 * da + db, 100.0 * da - db)

    x, y = tf.constant(2.0), tf.constant(3.0)
    a, b = function(x, y)
    out = {}
    for name, target in [("a", a), ("b", b), ("both", a * b)]:
        out[f"{name}/x"], out[f"{name}/y"] = tf.gradients(target, [x, y])
    return values(tf, out)


def case_none_for_an_argument(tf, np):
    @tf.custom_gradient
    def function(x, y):
        return x * y, lambda dz: (None, 7.0 * dz)

    x, y = tf.constant(2.0), tf.constant(3.0)
    dx, dy = tf.gradients(function(x, y), [x, y])
    return values(tf, {"dx": dx, "dy": dy})


def case_a_list_of_one(tf, np):
    @tf.custom_gradient
    def function(x):
        return tf.exp(x), lambda dy: [5.0 * dy]

    x = tf.constant([1.0, 2.0])
    return values(tf, {"dx": tf.gradients(function(x), x)[0]})


def case_nested_outer_wins(tf, np):
    @tf.custom_gradient
    def outer(x):
        return scaled(tf, 10.0)(x) * 2.0, lambda dy: 3.0 * dy

    x = tf.constant(1.0)
    return values(tf, {"dx": tf.gradients(outer(x), x)[0]})


def case_outer_asks_for_the_inner_gradient(tf, np):
    @tf.custom_gradient
    def outer(x):
        y = scaled(tf, 10.0)(x) * 2.0
        return y, lambda dy: 3.0 * tf.gradients(y, x, dy)[0]

    x = tf.constant(1.0)
    return values(tf, {"dx": tf.gradients(outer(x), x)[0]})


def case_a_map_around_a_region(tf, np):
    @tf.custom_gradient
    def region(x):
        return tf.exp(x), lambda dy: 5.0 * dy

    x = tf.constant(1.0)
    with mapped(tf, {"Exp": registered(tf, lambda op, dy: 100.0 * dy)}):
        y = region(tf.exp(x))
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_captured_tensors_have_no_gradient(tf, np):
    x, w = tf.constant(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def function(x):
        return x * w, lambda dy: 10.0 * dy

    y = function(x)
    dx, dw = tf.gradients(y, [x, w])
    depends = tf.square(x)

    @tf.custom_gradient
    def other(x):
        return x * depends, lambda dy: 10.0 * dy

    return values(tf, {"dx": dx, "dw": dw, "other": tf.gradients(other(x), x)[0]})


def case_an_inner_tensor_that_escapes(tf, np):
    kept = []

    @tf.custom_gradient
    def function(x):
        kept.append(tf.square(x))
        return kept[0] + 1.0, lambda dy: 10.0 * dy

    x = tf.constant(3.0)
    y = function(x)
    return values(
        tf,
        {
            "inside": tf.gradients(y, kept[0])[0],
            "escaped": tf.gradients(kept[0], x)[0],
            "both": tf.gradients(y + kept[0], x)[0],
        },
    )


def case_the_inside_may_be_anything(tf, np):
    @tf.custom_gradient
    def quantised(x):
        steps = tf.to_float(tf.to_int32(tf.stop_gradient(x) * 4.0))
        return steps / 4.0, lambda dy: dy

    x = tf.constant([0.3, -1.6])
    y = quantised(x)
    return values(tf, {"y": y, "dx": tf.gradients(y * y, x)[0]})


def case_second_order_by_a_nested_function(tf, np):
    @tf.custom_gradient
    def sign_swish(x):
        def grad(dy):
            @tf.custom_gradient
            def inner(g, x):
                return g * tf.exp(-x), lambda d: (d * tf.exp(-x), 1000.0 * d)

            return inner(dy, x)

        return tf.sign(x), grad

    x = tf.constant(0.5)
    (dx,) = tf.gradients(sign_swish(x), x)
    return values(tf, {"dx": dx, "ddx": tf.gradients(dx, x)[0]})


def case_variables_inside(tf, np):
    @tf.custom_gradient
    def dense(x):
        w = tf.get_variable("w", initializer=[2.0, 3.0], use_resource=True)

        def grad(dy, variables=None):
            return 10.0 * dy, [100.0 * tf.reduce_sum(dy) * tf.ones_like(v) for v in variables]

        return x * w, grad

    x = tf.constant([1.0, 1.0])
    y = dense(x)
    (w,) = tf.trainable_variables()
    dx, dw = tf.gradients(y, [x, w])
    return values(tf, {"y": y, "dx": dx, "dw": dw})


def case_numbers_as_arguments(tf, np):
    @tf.custom_gradient
    def power(x, n):
        return x**n, lambda dy: (10.0 * dy, None)

    x = tf.constant([1.0, 2.0])
    y = power(x, 3.0)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_keywords_are_refused_in_a_graph(tf, np):
    @tf.custom_gradient
    def function(x, k=2.0):
        return x * k, lambda dy: dy

    x = tf.constant(1.0)
    return {
        "keyword": error_of(lambda: function(x, k=3.0), "keyword"),
        "default": run(tf, tf.gradients(function(x), x)[0]),
    }


def case_what_is_no_pair(tf, np):
    @tf.custom_gradient
    def function(x):
        return tf.exp(x)

    return {"raised": error_of(lambda: function(tf.constant(1.0))).classes.count("TypeError")}


def case_wrong_counts(tf, np):
    @tf.custom_gradient
    def function(x, y):
        return x * y, lambda dz: dz

    x = tf.constant(1.0)
    return {"raised": error_of(lambda: tf.gradients(function(x, x), x), "num", "gradients")}


def case_a_method(tf, np):
    class Model:
        k = 4.0

        @tf.custom_gradient
        def forward(self, x):
            return x * 2.0, lambda dy: dy * self.k

    x = tf.constant(1.0)
    return values(tf, {"dx": tf.gradients(Model().forward(x), x)[0]})


def case_a_name_inside_and_the_types_of_ops(tf, np):
    @tf.custom_gradient
    def function(x):
        with tf.name_scope("inside"):
            y = tf.exp(x, name="e")
        return y, lambda dy: dy

    with tf.name_scope("outside"):
        y = function(tf.constant(1.0))
    graph = tf.get_default_graph()
    return {
        "type": y.op.type,
        "inner": "outside/inside/e" in [o.name for o in graph.get_operations()],
    }


def case_applied_many_times_in_a_chain(tf, np):
    half = scaled(tf, 0.5)
    x = tf.constant([1.0, 2.0])
    y = x
    for _ in range(5):
        y = half(y)
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_inside_a_cond(tf, np):
    x, flag = tf.constant(2.0), tf.placeholder(tf.bool, [])
    y = tf.cond(flag, lambda: scaled(tf, 10.0)(x), lambda: x * 3.0)
    (dx,) = tf.gradients(y, x)
    return {str(f): run(tf, dx, {flag: f}) for f in (True, False)}


def case_grad_pass_through_and_the_stop_gradient_trick(tf, np):
    x = tf.constant([0.3, 1.7])
    passed = tf.grad_pass_through(tf.round)(x)
    trick = x + tf.stop_gradient(tf.round(x) - x)
    return values(
        tf,
        {
            "passed": passed,
            "d passed": tf.gradients(passed * x, x)[0],
            "trick": trick,
            "d trick": tf.gradients(trick * x, x)[0],
        },
    )


def case_unused_result_of_a_region_gives_zeros(tf, np):
    @tf.custom_gradient
    def function(x, y):
        return (x * 1.0, y * 1.0), lambda a, b: (a, b)

    x, y = tf.constant(2.0), tf.constant(3.0)
    a, _ = function(x, y)
    dx, dy = tf.gradients(a, [x, y])
    return values(tf, {"dx": dx, "dy": dy})
