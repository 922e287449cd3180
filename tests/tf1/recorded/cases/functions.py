"""Python inside a graph: py_func, Defun, Print, Assert."""

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


def case_py_func(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.py_func(lambda a: a * 2.0, [x], tf.float32)
    many = tf.py_func(lambda a: (a + 1.0, np.int64(a.size)), [x], [tf.float32, tf.int64])
    return {
        "y": run(tf, y),
        "many": run(tf, many),
        "list": isinstance(many, list),
        "shape": shape_of(y),
        "types": [y.op.type, many[0].op.type],
        "stateless": tf.py_func(np.sin, [x], tf.float32, stateful=False).op.type,
    }


def case_py_func_has_no_gradient(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.py_func(lambda a: a * 2.0, [x], tf.float32)
    return values(tf, {"dx": tf.gradients(y, x)[0], "with": tf.gradients(y * x, x)[0]})


def case_py_func_with_a_rule(tf, np):
    def with_rule(f, inputs, dtype, rule):
        name = registered(tf, rule, "PyFuncGrad")
        with mapped(tf, {"PyFunc": name, "PyFuncStateless": name}):
            return tf.py_func(f, inputs, dtype)

    x = tf.constant([0.5, 2.0])
    y = with_rule(np.square, [x], tf.float32, lambda op, g: g * 2.0 * op.inputs[0])
    y.set_shape([2])
    (dx,) = tf.gradients(y * 3.0, x)
    return values(tf, {"y": y, "dx": dx, "ddx": tf.gradients(dx, x)[0]})


def case_py_func_of_several_values_with_a_rule(tf, np):
    name = registered(tf, lambda op, a, b: (10.0 * a + b, None))
    x, k = tf.constant([1.0, 2.0]), tf.constant(3)
    with mapped(tf, {"PyFunc": name}):
        y, z = tf.py_func(lambda x, k: (x * np.float32(k), -x), [x, k], [tf.float32, tf.float32])
    return values(tf, {"y": tf.gradients(y, x)[0], "both": tf.gradients([y, z], x)[0]})


def case_py_func_errors(tf, np):
    def fails(a):
        raise ValueError("of mine")

    x = tf.constant([1.0])
    return {
        "raises": error_of(lambda: run(tf, tf.py_func(fails, [x], tf.float32)), "of mine"),
        "dtype": error_of(lambda: run(tf, tf.py_func(lambda a: np.float64(1), [x], tf.float32))),
    }


def case_py_func_is_called_once_a_run(tf, np):
    calls = []
    x = tf.placeholder(tf.float32, [2])

    def seen(a):
        calls.append(a.tolist())
        return a

    y = tf.py_func(seen, [x], tf.float32)
    with tf.Session() as s:
        s.run([y + 1.0, y + 2.0], {x: [1.0, 2.0]})
        s.run(y, {x: [3.0, 4.0]})
        s.run(x, {x: [5.0, 6.0]})
    return {"calls": calls}


def case_py_funcs_in_order(tf, np):
    log = []
    first = tf.py_func(lambda: log.append("first") or np.float32(0), [], tf.float32)
    with tf.control_dependencies([first]):
        second = tf.py_func(lambda: log.append("second") or np.float32(0), [], tf.float32)
    run(tf, second)
    return {"log": log}


def case_defun_with_a_rule_of_python(tf, np):
    function = inner(tf, "framework.function")

    @function.Defun(
        tf.float32,
        tf.float32,
        python_grad_func=lambda op, dz: [10.0 * dz, 100.0 * dz],
        func_name=fresh("Product"),
    )
    def product(x, y):
        return x * y

    x, y = tf.constant(2.0), tf.constant(3.0)
    z = product(x, y)
    dx, dy = tf.gradients(z, [x, y])
    return values(tf, {"z": z, "dx": dx, "dy": dy})


def case_defun_with_a_gradient_function(tf, np):
    function = inner(tf, "framework.function")

    @function.Defun(tf.float32, tf.float32, func_name=fresh("Backward"))
    def backward(x, dy):
        return dy * 7.0 * x

    @function.Defun(tf.float32, grad_func=backward, func_name=fresh("Forward"))
    def forward(x):
        return tf.exp(x)

    x = tf.constant(2.0)
    y = forward(x)
    return values(tf, {"y": y, "dx": tf.gradients(y, x)[0]})


def case_defun_by_its_own_derivative(tf, np):
    function = inner(tf, "framework.function")

    @function.Defun(tf.float32, func_name=fresh("Plain"))
    def plain(x):
        return tf.exp(x) * 2.0

    x = tf.constant([0.0, 1.0])
    return values(tf, {"dx": tf.gradients(plain(x), x)[0]})


def case_defun_overridden_by_its_name(tf, np):
    function = inner(tf, "framework.function")
    name = fresh("Named")

    @function.Defun(tf.float32, func_name=name)
    def named(x):
        return tf.exp(x)

    x = tf.constant(1.0)
    with mapped(tf, {name: registered(tf, lambda op, dy: 5.0 * dy)}):
        y = named(x)
    return {"type": y.op.type == name, **values(tf, {"dx": tf.gradients(y, x)[0]})}


def case_defun_that_makes_gradients_dense(tf, np):
    function = inner(tf, "framework.function")

    @function.Defun(
        python_grad_func=lambda op, dy: tf.convert_to_tensor(dy),
        shape_func=lambda op: [op.inputs[0].get_shape()],
        func_name=fresh("Dense"),
    )
    def dense(x):
        return x

    x = tf.constant([[1.0], [2.0]])
    y = tf.gather(dense(x), [1, 1])
    return {"shape": shape_of(dense(x)), **values(tf, {"dx": tf.gradients(y * y, x)[0]})}


def case_print_and_check_numerics(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.Print(x, [x], "x: ") * 2.0
    z = tf.check_numerics(x, "bad") * 3.0
    out = values(tf, {"y": y, "dy": tf.gradients(y, x)[0], "dz": tf.gradients(z, x)[0]})
    bad = error_of(lambda: run(tf, tf.check_numerics(x / 0.0, "my message")), "my message")
    return {**out, "bad": bad}


def case_assertions(tf, np):
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.Assert(x > 0.0, ["not positive", x])]):
        y = tf.identity(x)
    with tf.control_dependencies([tf.assert_less(x, 5.0)]):
        z = tf.identity(x)
    return {
        "y": run(tf, [y, z], {x: 1.0}),
        "negative": error_of(lambda: run(tf, y, {x: -1.0}), "not positive"),
        "large": error_of(lambda: run(tf, z, {x: 7.0})),
    }


def case_the_trick_of_a_function_that_looks_like_one_op(tf, np):
    """A tensor stashed from Python, which a second py_func gives back with a rule on it."""
    store = []

    def keep(value):
        store.append(value)
        return np.int64(len(store) - 1)

    x = tf.constant([1.0, -2.0])
    y = tf.exp(x)
    place = tf.py_func(keep, [y], tf.int64)
    name = registered(tf, lambda op, g: [100.0 * g * op.inputs[0], None])
    with tf.control_dependencies([place]), mapped(tf, {"PyFunc": name}):
        out = tf.py_func(lambda a, i: store[i], [x, place], tf.float32)
    out.set_shape([2])
    return values(tf, {"y": out, "dx": tf.gradients(out, x)[0]})
