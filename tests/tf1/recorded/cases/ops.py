"""Which ops a call makes, with which inputs; values and gradients of many functions."""

from tests.tf1.recorded.saying import inner, run, types, values


def built(tf, build):
    """The types of the ops that a call makes, constants left out."""
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    build()
    return [t for t in types(graph)[before:] if t != "Const"]


def swept(tf, functions, *arrays):
    """Values, first gradients and the gradient of their squares' sum, of functions of arrays."""
    out = {}
    for name, f in functions.items():
        xs = [tf.constant(a, tf.float64) for a in arrays]
        y = f(*xs)
        firsts = tf.gradients(y * y, xs)
        known = [g for g in firsts if g is not None]
        seconds = tf.gradients(tf.add_n([tf.reduce_sum(g * g) for g in known]), xs) if known else []
        out |= {name: y}
        out |= {f"{name}/{i}": g for i, g in enumerate(firsts)}
        out |= {f"{name}//{i}": g for i, g in enumerate(seconds)}
    return values(tf, out)


def case_types_of_arithmetic(tf, np):
    x, y = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2, 2])
    builds = {
        "+": lambda: x + y,
        "-": lambda: x - y,
        "*": lambda: x * y,
        "/": lambda: x / y,
        "//": lambda: x // y,
        "%": lambda: x % y,
        "**": lambda: x**y,
        "neg": lambda: -x,
        "abs": lambda: abs(x),
        "@": lambda: x @ y,
        "<": lambda: x < y,
        "divide": lambda: tf.divide(x, y),
        "square": lambda: tf.square(x),
        "squared_difference": lambda: tf.squared_difference(x, y),
        "rsqrt": lambda: tf.rsqrt(x),
        "reciprocal": lambda: tf.reciprocal(x),
        "add_n": lambda: tf.add_n([x, y]),
        "maximum": lambda: tf.maximum(x, y),
        "matmul": lambda: tf.matmul(x, y),
        "batch": lambda: tf.matmul(x[None], y[None]),
        "clip": lambda: tf.clip_by_value(x, 0.0, 1.0),
        "sigmoid": lambda: tf.sigmoid(x),
        "norm": lambda: tf.norm(x),
        "l2_loss": lambda: tf.nn.l2_loss(x),
        "l2_normalize": lambda: tf.nn.l2_normalize(x, 1),
    }
    return {name: built(tf, build) for name, build in builds.items()}


def case_types_of_what_moves_elements(tf, np):
    x, p = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.bool, [2, 3])
    builds = {
        "reshape": lambda: tf.reshape(x, [6]),
        "transpose": lambda: tf.transpose(x),
        "expand": lambda: tf.expand_dims(x, 0),
        "squeeze": lambda: tf.squeeze(x),
        "concat": lambda: tf.concat([x, x], 0),
        "stack": lambda: tf.stack([x, x]),
        "unstack": lambda: tf.unstack(x),
        "split": lambda: tf.split(x, 3, 1),
        "split sizes": lambda: tf.split(x, [1, 2], 1),
        "item": lambda: x[0],
        "slice": lambda: tf.slice(x, [0, 0], [1, 1]),
        "gather": lambda: tf.gather(x, [0]),
        "gather_nd": lambda: tf.gather_nd(x, [[0, 0]]),
        "one_hot": lambda: tf.one_hot([0], 2),
        "cast": lambda: tf.cast(x, tf.int32),
        "tile": lambda: tf.tile(x, [1, 2]),
        "pad": lambda: tf.pad(x, [[0, 0], [1, 1]]),
        "reverse": lambda: tf.reverse(x, [0]),
        "cumsum": lambda: tf.cumsum(x),
        "argmax": lambda: tf.argmax(x, 1),
        "where": lambda: tf.where(p, x, x),
        "where of one": lambda: tf.where(p),
        "shape": lambda: tf.shape(x),
        "sum": lambda: tf.reduce_sum(x),
        "mean": lambda: tf.reduce_mean(x, 1),
        "max": lambda: tf.reduce_max(x),
        "prod": lambda: tf.reduce_prod(x),
        "all": lambda: tf.reduce_all(p),
        "identity": lambda: tf.identity(x),
        "stop": lambda: tf.stop_gradient(x),
        "diag": lambda: tf.diag_part(x[:, :2]),
        "matrix_diag": lambda: tf.matrix_diag(x),
        "top_k": lambda: tf.nn.top_k(x, 1),
    }
    return {name: built(tf, build) for name, build in builds.items()}


def case_types_of_networks(tf, np):
    x = tf.placeholder(tf.float32, [2, 4, 4, 1])
    z, labels = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
    w = tf.placeholder(tf.float32, [2, 2, 1, 1])
    two = [1, 2, 2, 1]
    builds = {
        "conv2d": lambda: tf.nn.conv2d(x, w, two, "SAME"),
        "max_pool": lambda: tf.nn.max_pool(x, two, two, "SAME"),
        "avg_pool": lambda: tf.nn.avg_pool(x, two, two, "SAME"),
        "bias_add": lambda: tf.nn.bias_add(z, tf.zeros([3])),
        "softmax": lambda: tf.nn.softmax(z),
        "log_softmax": lambda: tf.nn.log_softmax(z),
        "sigmoid": lambda: tf.nn.sigmoid(z),
        "softplus": lambda: tf.nn.softplus(z),
        "elu": lambda: tf.nn.elu(z),
        "relu6": lambda: tf.nn.relu6(z),
        "leaky_relu": lambda: tf.nn.leaky_relu(z),
    }
    out = {name: built(tf, build) for name, build in builds.items()}
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=z)
    losses = types(tf.get_default_graph())
    return {
        **out,
        "sparse": "SparseSoftmaxCrossEntropyWithLogits" in losses,
        "outputs": [
            len(op.outputs)
            for op in sparse.graph.get_operations()
            if op.type.startswith("SparseSoft")
        ],
    }


def case_numbers_of_inputs(tf, np):
    x = tf.placeholder(tf.float32, [2, 3])
    built = {
        "sum": tf.reduce_sum(x, 1),
        "mean": tf.reduce_mean(x),
        "reshape": tf.reshape(x, [6]),
        "transpose": tf.transpose(x, [1, 0]),
        "concat": tf.concat([x, x], 1),
        "stack": tf.stack([x, x, x]),
        "split": tf.split(x, 3, 1)[0],
        "slice": tf.slice(x, [0, 0], [1, 1]),
        "strided": x[0],
        "gather": tf.gather(x, [0]),
        "one_hot": tf.one_hot([0], 2),
        "argmax": tf.argmax(x, 1),
        "fill": tf.fill([2], 1.0),
        "add_n": tf.add_n([x, x, x]),
        "placeholder": x,
        "constant": tf.constant(1.0),
        "range": tf.range(3),
        "cumsum": tf.cumsum(x),
    }
    sums = built["sum"].op.inputs[1]
    return {
        "counts": {name: len(t.op.inputs) for name, t in built.items()},
        "axis": run(tf, sums),
        "perm": run(tf, built["transpose"].op.inputs[1]),
        "concat": run(tf, built["concat"].op.inputs[2]),
        "names": [sums.op.type, sums.op.name],
    }


def case_functions_of_one_number(tf, np):
    names = "exp log sqrt rsqrt square tanh sigmoid sin cos tan asin acos atan sinh cosh log1p"
    names += " expm1 erf erfc lgamma digamma reciprocal abs negative sign asinh atanh"
    return swept(tf, {n: getattr(tf, n) for n in names.split()}, [0.3, 0.9])


def case_functions_of_two_numbers(tf, np):
    names = "add subtract multiply divide pow maximum minimum squared_difference atan2 floormod"
    functions = {n: getattr(tf, n) for n in names.split()}
    functions |= {"floordiv": lambda x, y: tf.floordiv(x, y) * x, "realdiv": tf.realdiv}
    return swept(tf, functions, [[0.5, 2.0], [1.5, 3.0]], [1.2, 0.7])


def case_matrix_products(tf, np):
    a, b = np.arange(6.0).reshape(2, 3) / 3 - 1, np.arange(6.0).reshape(3, 2) / 5 - 0.3
    functions = {
        "plain": tf.matmul,
        "a": lambda a, b: tf.matmul(a, a, transpose_a=True) @ b,
        "b": lambda a, b: tf.matmul(a, b * 2.0) + tf.matmul(a, a, transpose_b=True),
        "both": lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True),
        "tensordot": lambda a, b: tf.tensordot(a, b, [[1], [0]]),
        "einsum": lambda a, b: tf.einsum("ij,jk->ki", a, b),
        "full": lambda a, b: tf.tensordot(a, tf.transpose(b), 2),
    }
    out = swept(tf, functions, a, b)
    batch = tf.constant(np.stack([a, 2 * a]))
    y = tf.matmul(batch, batch, adjoint_b=True)
    return {**out, "batch": run(tf, [y, tf.gradients(y * y, batch)[0]])}


def case_reductions(tf, np):
    x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    functions = {
        f"{name} {axis}": lambda x, name=name, axis=axis: getattr(tf, f"reduce_{name}")(x, axis)
        for name in ("sum", "mean", "max", "min", "prod", "logsumexp")
        for axis in (None, 0, -1)
    }
    functions["keep"] = lambda x: tf.reduce_mean(x, [0, 1], keepdims=True)
    functions["std"] = lambda x: tf.math.reduce_std(x, 1)
    functions["variance"] = lambda x: tf.math.reduce_variance(x)
    return swept(tf, functions, x)


def case_old_names_of_arguments(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    return run(
        tf,
        {
            "keep_dims": tf.reduce_sum(x, 1, keep_dims=True),
            "reduction_indices": tf.reduce_mean(x, reduction_indices=[0]),
            "argmax": tf.argmax(x, dimension=1),
            "squeeze": tf.squeeze(x[None], squeeze_dims=[0]),
            "expand": tf.expand_dims(x, dim=0),
        },
    )


def case_what_moves_elements(tf, np):
    x = np.arange(1.0, 7.0).reshape(2, 3)
    functions = {
        "reshape": lambda x: tf.reshape(x, [3, 2]),
        "transpose": lambda x: tf.transpose(x) * [1.0, 2.0],
        "concat": lambda x: tf.concat([x, x * x], -1),
        "stack": lambda x: tf.stack([x, x * 2.0], 1),
        "unstack": lambda x: tf.unstack(x, axis=1)[1],
        "split": lambda x: tf.split(x, [1, 2], 1)[1],
        "tile": lambda x: tf.tile(x, [2, 1]),
        "pad": lambda x: tf.pad(x, [[1, 0], [0, 2]]),
        "pad value": lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=3.0),
        "pad symmetric": lambda x: tf.pad(x, [[1, 1], [2, 1]], "SYMMETRIC"),
        "reverse": lambda x: tf.reverse(x, [1]) * x,
        "cumsum": lambda x: tf.cumsum(x, 1, exclusive=True),
        "cumsum reversed": lambda x: tf.cumsum(x, 1, reverse=True),
        "cumprod": lambda x: tf.cumprod(x, 1),
        "gather": lambda x: tf.gather(x, [2, 0, 2], axis=1),
        "gather_nd": lambda x: tf.gather_nd(x, [[0, 1], [1, 2], [0, 1]]),
        "slice": lambda x: tf.slice(x, [0, 1], [-1, 2]),
        "strided": lambda x: x[::-1, ::2],
        "matrix_diag": tf.matrix_diag,
        "triangle": lambda x: tf.matrix_band_part(x, -1, 0),
        "roll": lambda x: tf.roll(x, 1, 1) * x,
        "broadcast": lambda x: tf.broadcast_to(x, [2, 2, 3]),
        "mask": lambda x: tf.boolean_mask(x, [True, False]),
        "where": lambda x: tf.where(x > 2.5, x * x, x),
        "segment": lambda x: tf.segment_sum(x, tf.constant([0, 0])),
        "unsorted": lambda x: tf.unsorted_segment_sum(x, tf.constant([1, 0]), 2),
        "partition": lambda x: tf.dynamic_partition(x, [1, 0], 2)[1],
        "meshgrid": lambda x: tf.meshgrid(x[0], x[1])[0],
    }
    return swept(tf, functions, x)


def case_linear_algebra(tf, np):
    a = np.array([[3.0, 1.0], [0.5, 2.0]])

    def symmetric(a):
        return a + tf.transpose(a)

    functions = {
        "inverse": tf.matrix_inverse,
        "determinant": tf.matrix_determinant,
        "cholesky": lambda a: tf.cholesky(symmetric(a)),
        "solve": lambda a: tf.matrix_solve(a, a * a),
        "triangular": lambda a: tf.matrix_triangular_solve(a, a * a),
        "logdet": lambda a: tf.linalg.logdet(symmetric(a)),
        "trace": tf.trace,
        "diag part": tf.diag_part,
        "eigenvalues": lambda a: tf.self_adjoint_eigvals(symmetric(a)),
    }
    out = swept(tf, functions, a)
    s = tf.svd(tf.constant(a), compute_uv=False)
    return {**out, "singular": run(tf, [s, tf.gradients(s * [1.0, 2.0], s.op.inputs[0])[0]])}


def case_set_operations_on_numbers(tf, np):
    x = tf.constant([3.0, 1.0, 2.0])
    return run(
        tf,
        {
            "argsort": tf.argsort(x),
            "sort": tf.sort(x, direction="DESCENDING"),
            "argmin": tf.argmin(x),
            "unique": tf.unique([1, 2, 1])[0],
            "linspace": tf.linspace(0.0, 1.0, 3),
            "one_hot": tf.one_hot([0, 2], 3, 5.0, -1.0),
            "eye": tf.eye(2, 3),
            "scatter": tf.scatter_nd([[1], [1], [0]], [1.0, 2.0, 3.0], [3]),
            "sequence_mask": tf.sequence_mask([1, 3], 3),
            "is_nan": tf.is_nan(x / 0.0 - x / 0.0),
            "is_finite": tf.is_finite(1.0 / (x - 1.0)),
            "invert": tf.invert_permutation([2, 0, 1]),
            "bincount": tf.math.bincount([0, 1, 1]),
            "identity_n": tf.identity_n([x, x + 1.0]),
        },
    )


def case_gradient_of_scatter(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    y = tf.scatter_nd([[1], [1], [0]], x, [3]) ** 2
    return values(tf, {"dx": tf.gradients(y, x)[0]})


def case_complex_numbers(tf, np):
    x, y = tf.constant([1.0, 2.0]), tf.constant([0.5, -1.0])
    z = tf.complex(x, y)
    parts = {
        "real": tf.real(z * z),
        "imaginary": tf.imag(z * z),
        "abs": tf.abs(z),
        "conjugate": tf.real(tf.conj(z) * z),
    }
    out = dict(parts)
    for name, part in parts.items():
        out[f"{name}/dx"], out[f"{name}/dy"] = tf.gradients(part, [x, y])
    return values(tf, out)


def case_functions_of_modules_below(tf, np):
    array_ops, math_ops = inner(tf, "ops.array_ops"), inner(tf, "ops.math_ops")
    nn_ops, control = inner(tf, "ops.nn_ops"), inner(tf, "ops.control_flow_ops")
    ops, clip = inner(tf, "framework.ops"), inner(tf, "ops.clip_ops")
    x = ops.convert_to_tensor([1.0, -2.0])
    return run(
        tf,
        {
            "zeros": array_ops.zeros_like(x),
            "sum": math_ops.reduce_sum(math_ops.square(x)),
            "relu": nn_ops.relu(x),
            "with": control.with_dependencies([math_ops.exp(x)], x),
            "clip": clip.clip_by_value(x, -1.0, 1.0),
            "group": control.group(x),
        },
    )


def case_a_piece_of_every_rule_of_reshaping_to_second_order(tf, np):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y = tf.reduce_sum(tf.transpose(tf.reshape(tf.concat([x, x * x], 0), [2, 4]))[1:] ** 2)
    (g,) = tf.gradients(y, x)
    return values(tf, {"g": g, "h": tf.gradients(g * x, x)[0]})
