"""Values of derivatives where there is a choice: ties, kinks, poles, what has no gradient."""

from tests.tf1.recorded.saying import values


def of_two(tf, f, a, b):
    """f and both gradients, with weights 1, 2, ..., so that elements can be told apart."""
    x, y = tf.constant(a), tf.constant(b)
    z = f(x, y)
    dx, dy = tf.gradients(z, [x, y])
    return values(tf, {"z": z, "dx": dx, "dy": dy})


def of_one(tf, functions, x):
    """{name: gradient} of functions of one tensor."""
    x = tf.constant(x)
    return values(tf, {name: tf.gradients(f(x), x)[0] for name, f in functions.items()})


def case_maximum_and_minimum_at_ties(tf, np):
    a, b = [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]
    return {"max": of_two(tf, tf.maximum, a, b), "min": of_two(tf, tf.minimum, a, b)}


def case_maximum_with_a_number(tf, np):
    return of_one(
        tf,
        {"max": lambda x: tf.maximum(x, 0.0), "reversed": lambda x: tf.maximum(0.0, x)},
        [0.0, 1.0],
    )


def case_max_pool_ties(tf, np):
    x = tf.constant(
        np.array([[1, 1, 0, 2], [1, 0, 2, 2], [0, 0, 5, 5], [0, 0, 5, 5]], "f").reshape(1, 4, 4, 1)
    )
    window = [1, 2, 2, 1]
    y = tf.nn.max_pool(x, window, window, "VALID")
    overlap = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
    (dx,) = tf.gradients(y, x)
    return values(tf, {"dx": dx, "overlap": tf.gradients(overlap, x)[0]})


def case_reductions_share_ties(tf, np):
    x = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]
    return of_one(
        tf,
        {
            "max": lambda x: tf.reduce_max(x, 1) * [1.0, 2.0],
            "min": lambda x: tf.reduce_min(x, 1),
            "all": tf.reduce_max,
        },
        x,
    )


def case_relus_at_their_kinks(tf, np):
    nn = tf.nn
    functions = {f.__name__: f for f in [nn.relu, nn.relu6, nn.elu, nn.selu, nn.leaky_relu]}
    return of_one(tf, functions, [-1.0, 0.0, 6.0, 7.0])


def case_abs_sign_square_root_at_zero(tf, np):
    functions = {"abs": tf.abs, "sign": tf.sign, "sqrt": tf.sqrt, "pow": lambda x: x**2.0}
    return of_one(tf, functions, [0.0, 4.0])


def case_no_gradient_at_all(tf, np):
    return of_one(
        tf,
        {
            "round": tf.round,
            "floor": tf.floor,
            "ceil": tf.ceil,
            "argmax": lambda x: tf.to_float(tf.argmax(x)),
            "greater": lambda x: tf.to_float(x > 0.0),
            "stop": tf.stop_gradient,
            "floor div": lambda x: x // 2.0,
            "ones_like": tf.ones_like,
            "zeros_like": tf.zeros_like,
            "shape": lambda x: tf.to_float(tf.shape(x)),
            "one_hot": lambda x: tf.one_hot(tf.argmax(x), 2),
        },
        [1.2, -0.7],
    )


def case_mod_is_not_constant(tf, np):
    return of_two(tf, tf.floormod, [5.5, -5.5], [2.0, 2.0])


def case_norm_at_zero_is_nan(tf, np):
    return of_one(
        tf,
        {
            "norm": tf.norm,
            "squared": lambda x: tf.reduce_sum(tf.square(x)),
            "safe": lambda x: tf.sqrt(tf.reduce_sum(tf.square(x)) + 1e-12),
        },
        [0.0, 0.0],
    )


def case_norms(tf, np):
    functions = {str(k): lambda x, k=k: tf.norm(x, ord=k) for k in (1, 2, np.inf)}
    functions["axis"] = lambda x: tf.norm(x, axis=1, keepdims=True)
    return of_one(tf, functions, [[3.0, -4.0], [1.0, 2.0]])


def case_where_lets_nan_through(tf, np):
    x = tf.constant([0.0, 4.0])
    y = tf.where(x > 0.0, tf.sqrt(x), tf.zeros_like(x))
    safe = tf.where(x > 0.0, tf.sqrt(tf.where(x > 0.0, x, tf.ones_like(x))), tf.zeros_like(x))
    division = tf.where(x > 0.0, 1.0 / x, x)
    return values(
        tf,
        {
            "y": y,
            "dx": tf.gradients(y, x)[0],
            "safe": tf.gradients(safe, x)[0],
            "division": tf.gradients(division, x)[0],
        },
    )


def case_clip_at_its_bounds(tf, np):
    return of_one(
        tf, {"clip": lambda x: tf.clip_by_value(x, -1.0, 1.0)}, [-2.0, -1.0, 0.5, 1.0, 2.0]
    )


def case_prod_and_pow_with_zeros(tf, np):
    x = [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]
    out = of_one(tf, {"prod": lambda x: tf.reduce_prod(x, 1)}, x)
    return {**out, "pow": of_two(tf, tf.pow, [0.0, 2.0, -2.0], [2.0, 3.0, 2.0])}


def case_division_by_zero(tf, np):
    return {
        "divide": of_two(tf, tf.divide, [1.0, 0.0], [0.0, 0.0]),
        "no_nan": of_two(tf, tf.div_no_nan, [1.0, 6.0], [0.0, 2.0]),
    }


def case_logarithms_and_their_poles(tf, np):
    functions = {"log": tf.log, "log1p": tf.log1p, "reciprocal": tf.reciprocal, "rsqrt": tf.rsqrt}
    return of_one(tf, functions, [0.0, 1.0])


def case_xlogy_like_cross_entropies(tf, np):
    labels = tf.constant([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    logits = tf.constant([[100.0, 0.0, -100.0], [0.1, 0.2, 0.3]])
    v1 = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    v2 = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=logits)
    sigmoid = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    out = {}
    for name, loss in [("v1", v1), ("v2", v2), ("sparse", sparse), ("sigmoid", sigmoid)]:
        out[name] = loss
        out[f"d {name}"], out[f"labels {name}"] = tf.gradients(loss, [logits, labels])
    return values(tf, out)


def case_second_order_of_cross_entropies(tf, np):
    x = tf.constant([[0.1, 0.7, -0.3]])
    softmax = tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[0.2, 0.3, 0.5]], logits=x)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=x)
    out = {}
    for name, loss in [("softmax", softmax), ("sparse", sparse)]:
        (g,) = tf.gradients(loss, x)
        out[name] = tf.gradients(g * [[1.0, 2.0, 3.0]], x)[0]
    return values(tf, out)


def case_softmaxes_of_large_numbers(tf, np):
    return of_one(
        tf,
        {
            "softmax": lambda x: tf.nn.softmax(x) * [1.0, 2.0],
            "log_softmax": lambda x: tf.nn.log_softmax(x) * [1.0, 2.0],
            "logsumexp": lambda x: tf.reduce_logsumexp(x, 1),
            "softplus": lambda x: tf.nn.softplus(x),
            "sigmoid": lambda x: tf.nn.sigmoid(x),
        },
        [[1000.0, 0.0], [-1.0, 1.0]],
    )


def case_sorted_and_top_k(tf, np):
    weights = [1.0, 10.0]
    return of_one(tf, {"top_k": lambda x: tf.nn.top_k(x, 2)[0] * weights}, [3.0, 1.0, 3.0, 2.0])


def case_l2_normalize_below_its_epsilon(tf, np):
    weights = [1.0, 2.0]
    return of_one(tf, {"l2": lambda x: tf.nn.l2_normalize(x, 0) * weights}, [1e-8, 0.0]) | {
        "large": of_one(tf, {"l2": lambda x: tf.nn.l2_normalize(x, 0) * weights}, [3.0, 4.0])
    }


def case_repeated_rows_add_up(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    rows = tf.gather(x, [1, 1, 0])
    weights = tf.constant([[1.0], [10.0], [100.0]])
    pieces = tf.gather_nd(x, [[0, 1], [0, 1], [1, 0]])
    return values(
        tf,
        {
            "gather": tf.convert_to_tensor(tf.gradients(rows * weights, x)[0]),
            "gather_nd": tf.convert_to_tensor(tf.gradients(pieces * [1.0, 2.0, 3.0], x)[0]),
        },
    )


def case_no_nan_comes_from_a_path_without_a_gradient(tf, np):
    labels, p = tf.constant([1.0, 0.0]), tf.constant([-2.0, 3.0])
    loss = tf.losses.log_loss(labels, p)
    first = tf.gradients(loss, [labels, p])
    return values(tf, {"second": tf.gradients(first, labels)[0]})
