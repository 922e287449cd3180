"""Static shapes, shapes as data, dtypes and the rules between them."""

from tests.tf1.recorded.saying import error_of, inner, run, shape_of, values


def case_what_a_shape_says(tf, np):
    x = tf.placeholder(tf.float32, [None, 3, 4])
    s = x.get_shape()
    return {
        "list": s.as_list(),
        "rank": [s.ndims, len(s)],
        "items": [s[0].value, s[1].value, int(s[2])],
        "slice": s[1:].as_list(),
        "dims": [d.value for d in s],
        "defined": [s.is_fully_defined(), s[1:].is_fully_defined()],
        "count": [s.num_elements(), s[1:].num_elements()],
        "equal": s[1] == 3,
        "compatible": [s.is_compatible_with([2, 3, 4]), s.is_compatible_with([2, 3])],
        "arithmetic": [(s[1] * 2).value, (s[2] // 2).value, (s[0] + 1).value],
        "tuple": [str(v) for v in (x.shape.as_list()[1:])],
    }


def case_an_unknown_rank(tf, np):
    x = tf.placeholder(tf.float32)
    s = x.get_shape()
    return {
        "ndims": s.ndims,
        "list": error_of(lambda: s.as_list(), "unknown TensorShape"),
        "defined": s.is_fully_defined(),
        "sum": shape_of(tf.reduce_sum(x)),
        "exp": shape_of(tf.exp(x)),
        "plus a matrix": shape_of(x + tf.zeros([2, 3])),
        "matmul": shape_of(tf.matmul(x, tf.zeros([2, 3]))),
    }


def case_set_shape(tf, np):
    x = tf.placeholder(tf.float32)
    x.set_shape([None, 3])
    y = tf.exp(x)
    before = shape_of(y)
    x.set_shape([2, None])
    return {
        "y": before,
        "x": shape_of(x),
        "later": shape_of(tf.exp(x)),
        "wrong": error_of(lambda: x.set_shape([4, 3]), "shape"),
        "rank": error_of(lambda: x.set_shape([2]), "shape"),
    }


def case_dimensions_in_lists(tf, np):
    x = tf.placeholder(tf.float32, [None, 4])
    d = x.get_shape()[1]
    w = tf.get_variable("w", [d, 2])
    z = tf.zeros([d, 1])
    return {"w": shape_of(w), "z": shape_of(z), "reshape": shape_of(tf.reshape(x, [-1, d, 1]))}


def case_shapes_that_are_inferred(tf, np):
    x = tf.placeholder(tf.float32, [None, 6])
    image = tf.placeholder(tf.float32, [None, 7, 8, 3])
    out = {
        "matmul": tf.matmul(x, tf.zeros([6, 2])),
        "sum": tf.reduce_sum(x, 1),
        "keep": tf.reduce_sum(x, 1, keepdims=True),
        "concat": tf.concat([x, x], 1),
        "concat rows": tf.concat([x, x], 0),
        "stack": tf.stack([x, x], 1),
        "split": tf.split(x, 3, 1)[0],
        "reshape": tf.reshape(x, [-1, 2, 3]),
        "transpose": tf.transpose(x),
        "expand": tf.expand_dims(x, -1),
        "slice": x[:, 1:3],
        "row": x[0],
        "new axis": x[:, None],
        "broadcast": x + tf.zeros([1, 6]),
        "tile": tf.tile(x, [1, 2]),
        "gather": tf.gather(x, [0, 1], axis=1),
        "one_hot": tf.one_hot(tf.zeros([5], tf.int32), 3),
        "conv": tf.nn.conv2d(image, tf.zeros([3, 3, 3, 5]), [1, 2, 2, 1], "SAME"),
        "pool": tf.nn.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "shape": tf.shape(x),
        "pad": tf.pad(x, [[0, 0], [1, 2]]),
        "by data": tf.reshape(x, tf.shape(x)),
    }
    return {name: shape_of(t) for name, t in out.items()}


def case_shapes_as_data(tf, np):
    x = tf.placeholder(tf.float32, [None, 3])
    n = tf.shape(x)[0]
    out = {
        "zeros": tf.zeros([n, 2]),
        "ones": tf.ones(tf.shape(x)) * x,
        "fill": tf.fill([n], 7.0),
        "reshape": tf.reshape(x, [n * 3]),
        "stacked": tf.reshape(x, tf.stack([3, n])),
        "tile": tf.tile(x[:1], [n, 1]),
        "range": tf.range(n),
        "float range": tf.range(0.0, tf.to_float(n), 0.5),
        "eye": tf.eye(n),
        "slice": x[: n - 1],
        "size": tf.size(x),
        "rank": tf.rank(x),
        "flat": tf.reshape(x, [-1, tf.reduce_prod(tf.shape(x)[1:])]),
        "one_hot": tf.one_hot(tf.range(n), n),
        "mask": tf.sequence_mask([1, 2], n),
    }
    return run(tf, out, {x: np.arange(6.0).reshape(2, 3)})


def case_gradients_through_shapes_as_data(tf, np):
    x = tf.placeholder(tf.float32, [None, 2])
    n = tf.shape(x)[0]
    flat = tf.reshape(x, [n * 2])
    tiled = tf.tile(x, [n, 1]) * tf.reshape(tf.range(0.0, tf.to_float(n * n * 2)), [n * n, 2])
    rolled = tf.concat([x[1:], x[:1]], 0) * x
    out = {"flat": flat * flat, "tiled": tiled, "rolled": rolled, "mean": tf.reduce_mean(x) * x}
    gradients = {k: tf.gradients(y, x)[0] for k, y in out.items()}
    return {str(n): run(tf, gradients, {x: np.arange(2.0 * n).reshape(n, 2)}) for n in (2, 3)}


def case_shapes_that_do_not_fit(tf, np):
    a, b = tf.zeros([2, 3]), tf.zeros([4, 5])
    return {
        "add": error_of(lambda: a + b, "2", "4"),
        "matmul": error_of(lambda: tf.matmul(a, b), "3", "4"),
        "reshape": error_of(lambda: tf.reshape(a, [4, 2]), "6"),
        "concat": error_of(lambda: tf.concat([a, b], 0), "3"),
        "axis": error_of(lambda: tf.reduce_sum(a, 5), "5"),
        "squeeze": error_of(lambda: tf.squeeze(a, [0]), "squeeze"),
        "placeholder": error_of(lambda: tf.placeholder(tf.float32, [2]) + tf.zeros([3]), "2"),
    }


def case_static_values_of_zeros_like(tf, np):
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [None])
    return {
        "types": [tf.zeros_like(x).op.type, tf.zeros_like(y).op.type],
        "values": run(tf, [tf.zeros_like(y), tf.ones_like(y)], {y: [1.0, 2.0]}),
    }


def case_default_dtypes(tf, np):
    out = {
        "int": tf.constant(1),
        "float": tf.constant(1.0),
        "bool": tf.constant(True),
        "list": tf.constant([1, 2]),
        "mixed": tf.constant([1, 2.5]),
        "double": tf.constant(np.array([1.0])),
        "long": tf.constant(np.array([1])),
        "numpy scalar": tf.constant(np.float64(1.0)),
        "converted": tf.convert_to_tensor([1.0]),
        "given": tf.constant(1, tf.float16),
        "zeros": tf.zeros([2]),
        "range": tf.range(3),
        "argmax": tf.argmax(tf.zeros([2])),
        "shape": tf.shape(tf.zeros([2])),
        "string": tf.constant("a"),
        "complex": tf.constant(1j),
    }
    return {name: t.dtype.name for name, t in out.items()}


def case_dtypes_of_operands(tf, np):
    f, d, i = tf.constant([1.0]), tf.constant([1.0], tf.float64), tf.constant([7])
    long = tf.constant([7], tf.int64)
    return {
        "array": (f + np.ones(1)).dtype.name,
        "array first": (np.ones(1) + f).dtype.name,
        "int": (f + 1).dtype.name,
        "list": (f * [2]).dtype.name,
        "division": (i / 2).dtype.name,
        "floor": (i // 2).dtype.name,
        "tf.div": tf.div(i, 2).dtype.name,
        "mean of ints": tf.reduce_mean(i).dtype.name,
        "int and float": error_of(lambda: i + f, "int32", "float32"),
        "two floats": error_of(lambda: f + d, "float32", "float64"),
        "two ints": error_of(lambda: i + long),
        "int and 1.5": error_of(lambda: i + 1.5),
        "sqrt of int": error_of(lambda: tf.sqrt(i)),
        "matmul": error_of(lambda: tf.matmul(f[None], d[None])),
    }


def case_what_a_dtype_says(tf, np):
    v = tf.Variable(1.0)
    return {
        "numpy": tf.float32.as_numpy_dtype is np.float32,
        "equal": [tf.float32 == np.float32, tf.float32 == "float32", tf.float32 != tf.float64],
        "kind": [
            tf.float32.is_floating,
            tf.int32.is_integer,
            tf.bool.is_bool,
            tf.int32.is_floating,
        ],
        "limits": [tf.int32.max, tf.uint8.max, tf.int8.min],
        "size": tf.float64.size,
        "name": [tf.float16.name, tf.complex64.name],
        "ref": [
            v.dtype == tf.float32_ref if hasattr(tf, "float32_ref") else True,
            v.dtype.base_dtype == tf.float32,
        ],
        "from": [tf.as_dtype("float32") is tf.float32, tf.as_dtype(np.int64) == tf.int64],
        "hash": {tf.float32: 1}[tf.as_dtype(np.float32)],
        "strings": [tf.zeros([1], "float64").dtype.name, tf.placeholder("float", [1]).dtype.name],
    }


def case_casts(tf, np):
    x = tf.constant([1.7, -1.7, 0.0])
    out = {
        "int": tf.cast(x, tf.int32),
        "bool": tf.cast(x, tf.bool),
        "to_int64": tf.to_int64(x),
        "to_double": tf.to_double(x),
        "from bool": tf.cast(x > 0.0, tf.float32),
        "saturate": tf.saturate_cast(tf.constant([300.0, -5.0]), tf.uint8),
        "by name": tf.cast(x, "float64"),
    }
    double = tf.gradients(tf.to_double(x) * np.array([1.0, 2.0, 3.0]), x)[0]
    return {**run(tf, out), "dx": run(tf, double), "same": tf.cast(x, tf.float32) is x}


def case_integer_arithmetic(tf, np):
    a, b = tf.constant([7, -7, 7, -7]), tf.constant([2, 2, -2, -2])
    return run(
        tf,
        {
            "floordiv": a // b,
            "mod": a % b,
            "truediv": a / b,
            "div": tf.div(a, b),
            "truncate": tf.truncatediv(a, b),
            "truncatemod": tf.truncatemod(a, b),
            "pow": tf.pow(tf.constant([2, 3]), tf.constant([3, 2])),
        },
    )


def case_logic(tf, np):
    p, q = tf.constant([True, True, False]), tf.constant([True, False, False])
    x = tf.constant([1.0, 2.0, 3.0])
    return run(
        tf,
        {
            "and": p & q,
            "or": p | q,
            "xor": p ^ q,
            "not": ~p,
            "functions": tf.logical_and(p, tf.logical_not(q)),
            "equal": tf.equal(x, [1.0, 0.0, 3.0]),
            "not equal": tf.not_equal(x, 1.0),
            "all": [tf.reduce_all(p), tf.reduce_any(q)],
            "select": tf.where(p, x, -x),
            "where": tf.where(p),
            "mask": tf.boolean_mask(x, p),
            "rows": tf.where([True, False], [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]),
        },
    )


def case_indexing(tf, np):
    x = tf.constant(np.arange(24.0).reshape(2, 3, 4), tf.float32)
    i = tf.constant(1)
    out = {
        "number": x[1],
        "negative": x[-1, -2],
        "slice": x[:, 1:, ::2],
        "reversed": x[::-1, 0],
        "ellipsis": x[..., 0],
        "new axis": x[:, tf.newaxis, 0],
        "tensor": x[i],
        "tensor slice": x[:, : i + 1, i],
    }
    gradients = {f"d {k}": tf.gradients(y * y, x)[0] for k, y in out.items()}
    return values(tf, {**out, **gradients})


def case_known_values_of_tensors(tf, np):
    x = tf.constant([2, 3])
    static = inner(tf, "framework.tensor_util").constant_value(x)
    zeros, reshaped = tf.zeros(x), tf.reshape(tf.zeros([6]), x)
    return {"x": static, "reshaped": shape_of(reshaped), "zeros": shape_of(zeros)}
