"""tf.layers, tf.nn, initializers, images."""

from tests.tf1.recorded.saying import error_of, run, shape_of, values


def numbers(tf, np, *shape):
    """Fixed numbers between -1 and 1."""
    count = int(np.prod(shape))
    return tf.constant(np.sin(np.arange(count) * 1.7).reshape(shape), tf.float32)


def shapes_of(variables):
    return {v.name: shape_of(v) for v in variables}


def case_dense(tf, np):
    x = numbers(tf, np, 2, 3)
    ones = tf.ones_initializer()
    y = tf.layers.dense(x, 4, activation=tf.nn.relu, kernel_initializer=ones)
    z = tf.layers.dense(y, 1, use_bias=False, kernel_initializer=ones, name="last")
    (w, b, _) = variables = tf.trainable_variables()
    out = {"y": y, "z": z, "dw": tf.gradients(z, w)[0], "db": tf.gradients(z, b)[0]}
    return {**values(tf, out), "variables": shapes_of(variables), "names": [y.name, z.name]}


def case_dense_reused(tf, np):
    x = numbers(tf, np, 2, 3)
    for reuse in (None, True):
        with tf.variable_scope("net", reuse=reuse):
            tf.layers.dense(x, 3, name="fc")
    tf.layers.dense(x, 3)
    tf.layers.dense(x, 3)
    again = error_of(lambda: tf.layers.dense(x, 3, name="net/fc"), "already exists")
    return {"variables": shapes_of(tf.trainable_variables()), "again": again}


def case_conv2d_layers(tf, np):
    x = numbers(tf, np, 1, 5, 5, 2)
    start = tf.constant_initializer(0.1)
    y = tf.layers.conv2d(x, 3, 3, strides=2, padding="same", kernel_initializer=start)
    z = tf.layers.max_pooling2d(tf.layers.flatten(y)[:, :, None, None], (2, 1), (2, 1))
    variables = tf.trainable_variables()
    out = {"y": y, "z": z, "dx": tf.gradients(z, x)[0]}
    return {**values(tf, out), "variables": shapes_of(variables)}


def case_batch_normalization(tf, np):
    x = numbers(tf, np, 2, 2, 2, 2) * 3.0 + 1.0
    training = tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(x, training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    (dx,) = tf.gradients(y * y * y, x)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run([y, dx], {training: False})
        second = s.run([y, dx], {training: True})
        s.run(updates, {training: True})
        third = s.run(y, {training: False})
        moving = s.run([v for v in tf.global_variables() if "moving" in v.name])
    return {
        "inference": first,
        "training": second,
        "after an update": third,
        "moving": moving,
        "updates": len(updates),
        "variables": shapes_of(tf.global_variables()),
        "trainable": len(tf.trainable_variables()),
    }


def case_batch_normalization_of_rank_two(tf, np):
    x = numbers(tf, np, 4, 3)
    y = tf.layers.batch_normalization(x, training=True)
    gamma, _ = tf.trainable_variables()
    (dx,) = tf.gradients(y**3, x)
    return values(tf, {"y": y, "dx": dx, "dgamma": tf.gradients(y**3, gamma)[0]})


def case_fused_batch_norm(tf, np):
    x = numbers(tf, np, 2, 2, 1, 2)
    scale, offset = tf.constant([1.0, 2.0]), tf.constant([0.5, -0.5])
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset)
    dx, ds, do = tf.gradients(y**2, [x, scale, offset])
    return {
        **values(tf, {"y": y, "mean": mean, "variance": variance, "dx": dx, "ds": ds, "do": do}),
        "op": [y.op.type, len(y.op.outputs)],
    }


def case_moments_and_batch_normalization_by_hand(tf, np):
    x = numbers(tf, np, 4, 2)
    mean, variance = tf.nn.moments(x, [0])
    y = tf.nn.batch_normalization(
        x, mean, variance, tf.constant([0.5, 1.0]), tf.constant([2.0, 1.0]), 1e-3
    )
    return values(tf, {"y": y, "mean": mean, "variance": variance, "dx": tf.gradients(y**3, x)[0]})


def case_dropout(tf, np):
    x = tf.ones([1000])
    y, rate = tf.nn.dropout(x, keep_prob=0.75), tf.nn.dropout(x, rate=0.25)
    kept = tf.layers.dropout(x, 0.5, training=False)
    (dx,) = tf.gradients(y, x)
    a, b, c, d = run(tf, [y, rate, kept, dx])
    return {
        "values": [sorted(set(np.round(v, 4).tolist())) for v in (a, b, c)],
        "share": bool(abs(a.mean() - 1.0) < 0.1 and abs(b.mean() - 1.0) < 0.1),
        "gradient is the mask": bool((a == d).all()),
    }


def case_convolutions(tf, np):
    x, w = numbers(tf, np, 1, 5, 4, 2), numbers(tf, np, 3, 2, 2, 3)
    out = {}
    for name, strides, padding in [("same", 1, "SAME"), ("valid", 1, "VALID"), ("two", 2, "SAME")]:
        y = tf.nn.conv2d(x, w, [1, strides, strides, 1], padding)
        out[name] = y
        out[f"{name}/dx"], out[f"{name}/dw"] = tf.gradients(y * y, [x, w])
    (g,) = tf.gradients(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") ** 2, x)
    out["second"] = tf.gradients(g * g, w)[0]
    return values(tf, out)


def case_transposed_and_depthwise_convolutions(tf, np):
    x = numbers(tf, np, 1, 3, 3, 2)
    up = tf.nn.conv2d_transpose(x, numbers(tf, np, 2, 2, 3, 2), [1, 6, 6, 3], [1, 2, 2, 1], "SAME")
    depth = tf.nn.depthwise_conv2d(x, numbers(tf, np, 2, 2, 2, 2), [1, 1, 1, 1], "SAME")
    separable = tf.nn.separable_conv2d(
        x, numbers(tf, np, 2, 2, 2, 1), numbers(tf, np, 1, 1, 2, 3), [1, 1, 1, 1], "VALID"
    )
    dilated = tf.nn.conv2d(
        numbers(tf, np, 1, 5, 5, 1),
        numbers(tf, np, 2, 2, 1, 1),
        [1, 1, 1, 1],
        "VALID",
        dilations=[1, 2, 2, 1],
    )
    one = tf.nn.conv1d(numbers(tf, np, 1, 5, 2), numbers(tf, np, 2, 2, 2), 1, "SAME")
    out = {"up": up, "depth": depth, "separable": separable, "dilated": dilated, "one": one}
    types = {name: y.op.type for name, y in out.items() if name in ("up", "depth")}
    gradients = {f"{k}/dx": tf.gradients(y * y, x)[0] for k, y in out.items() if k in types}
    return {**values(tf, {**out, **gradients}), "types": types}


def case_pools(tf, np):
    x = numbers(tf, np, 1, 4, 5, 2)
    out = {}
    for name, pool in [("max", tf.nn.max_pool), ("avg", tf.nn.avg_pool)]:
        for padding in ("SAME", "VALID"):
            y = pool(x, [1, 2, 3, 1], [1, 2, 2, 1], padding)
            out[f"{name}/{padding}"], out[f"{name}/{padding}/dx"] = y, tf.gradients(y * y, x)[0]
    y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    (g,) = tf.gradients(y**3, x)
    return values(tf, {**out, "second": tf.gradients(g, x)[0]})


def case_local_response_normalization(tf, np):
    x = numbers(tf, np, 1, 1, 2, 5)
    y = tf.nn.lrn(x, 2, 1.0, 0.5, 0.75)
    return values(tf, {"y": y, "dx": tf.gradients(y * y, x)[0]})


def case_activations(tf, np):
    x, nn = tf.constant([-3.0, -0.5, 0.0, 0.5, 7.0]), tf.nn
    out = {}
    names = "relu relu6 elu selu leaky_relu softplus softsign sigmoid tanh softmax log_softmax"
    for name in (*names.split(), "swish", "crelu"):
        y = getattr(nn, name)(x)
        (g,) = tf.gradients(y * y, x)
        out[name], out[f"{name}/dx"] = y, g
        if name != "softsign":  # which TensorFlow differentiates once
            out[f"{name}/ddx"] = tf.gradients(g, x)[0]
    return values(tf, out)


def case_fixed_initializers(tf, np):
    initializers = {
        "zeros": tf.zeros_initializer(),
        "ones": tf.ones_initializer(),
        "constant": tf.constant_initializer(0.25),
        "array": tf.constant_initializer(np.arange(6.0)),
        "identity": tf.initializers.identity(2.0),
    }
    shape = [2, 3]
    return {k: run(tf, tf.get_variable(k, shape, initializer=i)) for k, i in initializers.items()}


SCALES = {
    "glorot uniform": (0.141, 0.0),
    "glorot normal": (0.141, 0.0),
    "normal": (0.2, 1.0),
    "truncated": (0.264, 0.0),
    "uniform": (0.1155, 0.1),
    "scaling": (0.1826, 0.0),
    "he": (0.1826, 0.0),
    "orthogonal": (0.129, 0.0),
    "default": (0.141, 0.0),
}


def case_random_initializers_have_their_scales(tf, np):
    shape = [60, 40]
    made = {
        "glorot uniform": tf.glorot_uniform_initializer(),
        "glorot normal": tf.glorot_normal_initializer(),
        "normal": tf.random_normal_initializer(1.0, 0.2),
        "truncated": tf.truncated_normal_initializer(stddev=0.3),
        "uniform": tf.random_uniform_initializer(-0.1, 0.3),
        "scaling": tf.variance_scaling_initializer(2.0, "fan_in"),
        "he": tf.initializers.he_normal(),
        "orthogonal": tf.orthogonal_initializer(),
        "default": None,
    }
    out = {}
    for name, initializer in made.items():
        w = run(tf, tf.get_variable(name.replace(" ", "_"), shape, initializer=initializer))
        std, mean = SCALES[name]
        out[name] = [bool(abs(w.std() / std - 1) < 0.1), bool(abs(w.mean() - mean) < 0.05)]
        if name == "orthogonal":
            out["columns"] = bool(np.allclose(w.T @ w, np.eye(40), atol=1e-4))
    return out


def case_biases_and_affine_maps(tf, np):
    x, w, b = numbers(tf, np, 2, 3), numbers(tf, np, 3, 2), numbers(tf, np, 2)
    y = tf.nn.xw_plus_b(x, w, b)
    z = tf.nn.bias_add(tf.matmul(x, w), b)
    channels_first = tf.nn.bias_add(numbers(tf, np, 1, 2, 2, 2), b, data_format="NCHW")
    return {
        **values(tf, {"y": y, "z": z, "first": channels_first, "db": tf.gradients(z * z, b)[0]}),
        "types": [y.op.type, z.op.type],
    }


def case_images(tf, np):
    x = numbers(tf, np, 1, 2, 3, 1)
    nearest = tf.image.resize_nearest_neighbor(x, [4, 6])
    bilinear = tf.image.resize_bilinear(x, [4, 5])
    flipped, padded = (
        tf.image.flip_left_right(x),
        tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"),
    )
    variation = tf.image.total_variation(x)
    out = {
        "nearest": nearest,
        "bilinear": bilinear,
        "flip": flipped,
        "pad": padded,
        "tv": variation,
    }
    return values(tf, out | {f"{k}/dx": tf.gradients(y * y, x)[0] for k, y in list(out.items())})


def case_pieces_of_images(tf, np):
    x = numbers(tf, np, 1, 4, 4, 4)
    depth, space = tf.depth_to_space(x, 2), tf.space_to_depth(x, 2)
    patches = tf.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    dx = [tf.gradients(y * y, x)[0] for y in (depth, space, patches)]
    return values(
        tf, {"depth": depth, "space": space, "patches": patches, "dx": dx[0] + dx[1] + dx[2]}
    )


def case_embeddings_and_top_k(tf, np):
    e, ids = numbers(tf, np, 5, 2), tf.constant([[0, 4], [1, 1]])
    rows = tf.nn.embedding_lookup(e, ids)
    top, places = tf.nn.top_k(e[:, 0], 3)
    right = tf.nn.in_top_k(e, tf.constant([0, 1, 0, 0, 1]), 1)
    return values(tf, {"rows": rows, "top": top, "places": places, "right": right})


def case_regularizers(tf, np):
    w = tf.get_variable("w", initializer=[1.0, 2.0], regularizer=lambda v: 0.1 * tf.nn.l2_loss(v))
    total = tf.reduce_sum(w) + tf.losses.get_regularization_loss()
    total_by_library = tf.losses.get_total_loss()
    return values(
        tf, {"total": total, "library": total_by_library, "dw": tf.gradients(total, w)[0]}
    )


def case_metrics_of_a_classifier(tf, np):
    logits, labels = tf.constant([[2.0, 1.0], [0.0, 3.0]]), tf.constant([0, 0])
    right = tf.equal(tf.argmax(logits, 1), tf.cast(labels, tf.int64))
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    return {"accuracy": run(tf, accuracy), "dtype": tf.argmax(logits, 1).dtype.name}


def case_fake_quantisation(tf, np):
    x = tf.constant([-7.0, -1.3, 0.2, 2.6, 8.0])
    low, high = tf.constant(-2.0), tf.constant(2.0)
    y = tf.fake_quant_with_min_max_args(x, -4.0, 4.0, num_bits=4)
    z = tf.fake_quant_with_min_max_vars(x, low, high)
    dz = tf.gradients(z * [1.0, 2.0, 3.0, 4.0, 5.0], [x, low, high])
    out = {"y": y, "dy": tf.gradients(y, x)[0], "z": z, "dx": dz[0], "low": dz[1], "high": dz[2]}
    return {**values(tf, out), "types": [y.op.type, z.op.type]}
