"""Branches and loops in each other, with gradients of one and two orders."""

from tests.tf1.recorded.saying import run

BOTH = [(a, b) for a in (True, False) for b in (True, False)]


def case_branches_in_branches(tf, np):
    x = tf.constant([1.0, -2.0])
    p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(
        p,
        lambda: tf.cond(q, lambda: x * x, lambda: tf.sin(x)),
        lambda: tf.cond(q, lambda: x * 3.0, lambda: tf.exp(x)),
    )
    (dx,) = tf.gradients(y, x)
    (ddx,) = tf.gradients(dx, x)
    return {f"{a} {b}": run(tf, [y, dx, ddx], {p: a, q: b}) for a, b in BOTH}


def case_a_branch_in_a_loop(tf, np):
    x = tf.constant(0.7)

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: tf.sin(y) + x)

    _, y = tf.while_loop(lambda i, y: i < 5, body, (0, tf.constant(1.0)))
    return {"y": run(tf, y), "dx": run(tf, tf.gradients(y, x)[0])}


def case_a_loop_in_a_branch(tf, np):
    x, p = tf.constant(0.7), tf.placeholder(tf.bool, [])

    def loop():
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, tf.constant(2.0)))

    y = tf.cond(p, lambda: loop()[1], lambda: x * 5.0)
    (dx,) = tf.gradients(y, x)
    return {str(a): run(tf, [y, dx], {p: a}) for a in (True, False)}


def case_a_loop_in_a_loop(tf, np):
    x = tf.constant(0.7)

    def outer(i, y):
        def inner(j, z):
            return j + 1, z * x + 0.1

        _, z = tf.while_loop(lambda j, z: j < i + 1, inner, (0, y))
        return i + 1, tf.tanh(z) + y

    _, y = tf.while_loop(lambda i, y: i < 3, outer, (0, tf.constant(1.0)))
    return {"y": run(tf, y), "dx": run(tf, tf.gradients(y, x)[0])}


def case_an_inner_step_for_each_row(tf, np):
    """Gradients within map_fn, and of what they made, outside."""
    w = tf.Variable([[1.0, 2.0], [0.5, -1.0]])
    rows = tf.constant(np.sin(np.arange(6.0)).reshape(3, 2), tf.float32)

    def loss_after_a_step(row):
        (g,) = tf.gradients(tf.reduce_sum(tf.tanh(tf.matmul(row[None], w))), w)
        return tf.reduce_sum(tf.square(tf.matmul(row[None], w - 0.1 * g)))

    losses = tf.map_fn(loss_after_a_step, rows, dtype=tf.float32)
    return {"losses": run(tf, losses), "dw": run(tf, tf.gradients(losses, w)[0])}


def case_cases_of_a_number(tf, np):
    x = tf.placeholder(tf.float32, [])
    pairs = [(x < 0.0, lambda: -x), (x < 1.0, lambda: x * x)]
    y = tf.case(pairs, default=lambda: tf.sqrt(x))
    (dx,) = tf.gradients(y, x)
    return {str(v): run(tf, [y, dx], {x: v}) for v in (-2.0, 0.5, 4.0)}


def case_symmetric_gradients(tf, np):
    a = np.sin(np.arange(9.0)).reshape(3, 3) + 3 * np.eye(3)
    s = tf.constant(a @ a.T)
    lower = tf.cholesky(s)
    e, _ = tf.self_adjoint_eig(s)
    made = {"cholesky": lower, "eig": e, "logdet": tf.linalg.logdet(s)}
    return {k: run(tf, tf.gradients(y, s)[0]) for k, y in made.items()}
