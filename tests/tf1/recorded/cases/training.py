"""Optimizers, slots, averages, schedules, clipping, losses."""

from tests.tf1.recorded.saying import error_of, mapped, registered, run, values


def three_steps(tf, np, optimizer):
    """A variable after each of three steps, and what the optimizer keeps."""
    v = tf.Variable([1.0, -2.0], name="v")
    w = tf.Variable([0.0], name="w")
    loss = tf.reduce_sum(tf.square(v) * [0.5, 3.0]) + tf.reduce_sum(tf.square(w - 1.0))
    train = optimizer.minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        steps = []
        for _ in range(3):
            s.run(train)
            steps.append(s.run([v, w]))
        slots = optimizer.get_slot_names()
        kept = [s.run(optimizer.get_slot(v, name)) for name in slots]
    names = sorted(t.name for t in tf.global_variables())
    return {"steps": steps, "slots": slots, "kept": kept, "names": names, "op": train.name}


def case_gradient_descent(tf, np):
    return three_steps(tf, np, tf.train.GradientDescentOptimizer(0.1))


def case_momentum(tf, np):
    return three_steps(tf, np, tf.train.MomentumOptimizer(0.1, 0.9))


def case_nesterov(tf, np):
    return three_steps(tf, np, tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True))


def case_adam(tf, np):
    return three_steps(tf, np, tf.train.AdamOptimizer(0.1))


def case_adam_with_a_large_epsilon(tf, np):
    return three_steps(tf, np, tf.train.AdamOptimizer(0.1, 0.5, 0.9, 0.1))


def case_rmsprop(tf, np):
    return three_steps(tf, np, tf.train.RMSPropOptimizer(0.1))


def case_rmsprop_with_momentum(tf, np):
    return three_steps(tf, np, tf.train.RMSPropOptimizer(0.1, 0.5, 0.9, 0.01))


def case_rmsprop_centered(tf, np):
    return three_steps(tf, np, tf.train.RMSPropOptimizer(0.1, 0.5, 0.9, 0.01, centered=True))


def case_adagrad(tf, np):
    return three_steps(tf, np, tf.train.AdagradOptimizer(0.1))


def case_adadelta(tf, np):
    return three_steps(tf, np, tf.train.AdadeltaOptimizer(0.1, 0.9, 1e-4))


def case_ftrl(tf, np):
    return three_steps(tf, np, tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01))


def case_proximal_steps_are_descents_here(tf, np):
    return three_steps(tf, np, tf.train.ProximalGradientDescentOptimizer(0.1))


def case_compute_and_apply_gradients(tf, np):
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    unused = tf.Variable(3.0, name="unused")
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(v * v + 3.0 * w)
    scaled = [(g * 0.5 if g is not None else None, t) for g, t in pairs]
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients(scaled, global_step=step, name="mine")
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        out = s.run([v, w, unused, step])
    return {
        "pairs": [[g is None, t.name] for g, t in pairs],
        "values": out,
        "op": train.name,
        "kind": type(train).__name__,
    }


def case_var_list_and_grad_loss(tf, np):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train = optimizer.minimize(v * w, var_list=[v], grad_loss=tf.constant([1.0, 10.0]))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        return {"values": s.run([v, w])}


def case_no_gradients_for_any_variable(tf, np):
    tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return {
        "constant": error_of(lambda: optimizer.minimize(tf.constant(1.0) * 2.0), "no gradients"),
        "empty": error_of(lambda: optimizer.apply_gradients([]), "no"),
        "no variables": error_of(
            lambda: optimizer.minimize(tf.constant(1.0), var_list=[]), "variables"
        ),
    }


def case_learning_rates_of_all_kinds(tf, np):
    out = {}
    rate, v = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    variable = tf.Variable(0.25, trainable=False)
    for name, r in {
        "number": 0.5,
        "placeholder": rate,
        "variable": variable,
        "call": lambda: 0.125,
    }.items():
        train = tf.train.GradientDescentOptimizer(r).minimize(v * 1.0, var_list=[v])
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            s.run(train, {rate: 2.0})
            out[name] = s.run(v)
    return out


def case_schedules(tf, np):
    step, t = tf.placeholder(tf.int64, []), tf.train
    rates = {
        "exponential": t.exponential_decay(0.1, step, 10, 0.5),
        "staircase": t.exponential_decay(0.1, step, 10, 0.5, staircase=True),
        "piecewise": t.piecewise_constant(step, [5, 12], [1.0, 0.5, 0.1]),
        "polynomial": t.polynomial_decay(0.1, step, 20, 0.01, power=2.0),
        "inverse": t.inverse_time_decay(0.1, step, 10, 0.5),
        "natural": t.natural_exp_decay(0.1, step, 10, 0.5),
        "cosine": t.cosine_decay(0.1, step, 20),
    }
    return {str(k): run(tf, rates, {step: k}) for k in (0, 5, 12, 15, 30)}


def case_a_schedule_that_the_steps_drive(tf, np):
    v, step = tf.Variable(0.0), tf.Variable(0, trainable=False)
    rate = tf.train.exponential_decay(1.0, step, 1, 0.5)
    train = tf.train.GradientDescentOptimizer(rate).minimize(v * 1.0, global_step=step)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out = []
        for _ in range(4):
            s.run(train)
            out.append(s.run([v, step]))
    return {"steps": out}


def case_clipping(tf, np):
    x = tf.constant([3.0, 4.0])
    y = tf.constant([[0.3], [0.4]])
    clipped, norm = tf.clip_by_global_norm([x, None, y], 1.0)
    return {
        "by norm": run(tf, [tf.clip_by_norm(x, 1.0), tf.clip_by_norm(y, 1.0)]),
        "by value": run(tf, tf.clip_by_value(x, 3.5, 3.7)),
        "global": run(tf, [clipped[0], clipped[2], norm]),
        "none": clipped[1] is None,
        "average": run(tf, tf.clip_by_average_norm(x, 1.0)),
        "gradient": run(tf, tf.gradients(tf.clip_by_norm(x, 1.0) * [1.0, 0.0], x)[0]),
        "global norm": run(tf, tf.global_norm([x, y])),
    }


def case_clipped_training(tf, np):
    v = tf.Variable([10.0, -10.0])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v**2))
    grads, variables = zip(*pairs)
    clipped, _ = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(clipped, variables))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for _ in range(3):
            s.run(train)
        return {"v": s.run(v)}


def case_moving_averages(tf, np):
    v = tf.Variable(1.0, name="v")
    average = tf.train.ExponentialMovingAverage(0.9, num_updates=3)
    biased = tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name="debiased")
    x = v * 2.0
    update, other = average.apply([v, x]), biased.apply([x])
    assign = v.assign_add(1.0)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out = []
        for _ in range(2):
            s.run(assign)
            s.run([update, other])
            out.append(s.run([average.average(v), average.average(x), biased.average(x)]))
    return {"steps": out, "name": average.average(v).name}


def case_variables_to_restore(tf, np):
    v = tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="w", trainable=False)
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([v])
    return {"keys": sorted(average.variables_to_restore([v]))}


def case_update_ops_run_before_the_step(tf, np):
    v, mean = tf.Variable(1.0), tf.Variable(0.0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, mean.assign(0.5 * mean + 0.5 * v))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(v * v)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        return {"mean": s.run(mean), "v": s.run(v)}


def case_training_with_a_rule(tf, np):
    w = tf.Variable([[0.4], [-1.3]])
    x, y = tf.constant([[1.0, 2.0], [3.0, -1.0]]), tf.constant([[1.0], [0.0]])
    with mapped(
        tf, {"Sign": registered(tf, lambda op, g: g * tf.to_float(tf.abs(op.inputs[0]) < 1.0))}
    ):
        binary = tf.sign(w)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, binary) - y))
    train = tf.train.AdamOptimizer(0.15).minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out = []
        for _ in range(6):
            s.run(train)
            out.append(s.run([loss, w]))
    return {"steps": out}


def case_two_optimizers_one_after_the_other(tf, np):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    loss = (a * b - 3.0) ** 2
    one = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[a])
    two = tf.train.AdamOptimizer(0.1, name="Second").minimize(-loss, var_list=[b])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out = []
        for _ in range(3):
            s.run(one)
            s.run(two)
            out.append(s.run([a, b]))
    return {"steps": out, "names": sorted(v.name for v in tf.global_variables())}


def case_an_optimizer_of_mine(tf, np):
    class SignDescent(tf.train.Optimizer):
        def __init__(self, rate):
            super().__init__(False, "SignDescent")
            self._rate = rate

        def _apply_dense(self, grad, var):
            return tf.assign_sub(var, self._rate * tf.sign(grad))

    v = tf.Variable([1.0, -2.0])
    train = SignDescent(0.5).minimize(tf.reduce_sum(v * v))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        return {"v": s.run(v), "name": train.name}


def case_sparse_updates_of_an_embedding(tf, np):
    out = {}
    for make in [
        tf.train.GradientDescentOptimizer,
        tf.train.AdagradOptimizer,
        tf.train.AdamOptimizer,
    ]:
        e = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        rows = tf.nn.embedding_lookup(e, [0, 2, 0])
        train = make(0.1).minimize(tf.reduce_sum(rows * rows), var_list=[e])
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            s.run(train)
            s.run(train)
            out[make.__name__] = s.run(e)
    return out


def case_losses(tf, np):
    a, b = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.5, 2.0], [0.0, 4.0]])
    losses, onehot = tf.losses, tf.constant([[1.0, 0.0], [0.0, 1.0]])
    out = {
        "mse": losses.mean_squared_error(a, b),
        "weighted": losses.mean_squared_error(a, b, weights=[[1.0], [0.5]]),
        "absolute": losses.absolute_difference(a, b),
        "softmax": losses.softmax_cross_entropy(onehot, b),
        "smoothed": losses.softmax_cross_entropy(onehot, b, label_smoothing=0.1),
        "sparse": losses.sparse_softmax_cross_entropy([0, 1], b),
        "sigmoid": losses.sigmoid_cross_entropy(onehot, b),
        "huber": losses.huber_loss(a, b),
        "log": losses.log_loss(onehot, tf.constant([[0.9, 0.2], [0.1, 0.7]])),
        "hinge": losses.hinge_loss(onehot, b),
    }
    out |= {"total": losses.get_total_loss(), "d": tf.gradients(out["mse"], b)[0]}
    return {**values(tf, out), "count": len(losses.get_losses())}


def case_names_in_variables_of_an_optimizer(tf, np):
    with tf.variable_scope("net"):
        w = tf.get_variable("w", initializer=[1.0])
    before = set(tf.global_variables())
    with tf.variable_scope("train"):
        optimizer = tf.train.AdamOptimizer(0.1)
        train = optimizer.minimize(tf.reduce_sum(w * w), name="step")
    new = [v.name for v in tf.global_variables() if v not in before]
    return {
        "new": new,
        "variables": sorted(v.name for v in optimizer.variables()),
        "op": train.name,
    }


def case_accumulated_gradients(tf, np):
    w = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    ((g, _),) = optimizer.compute_gradients(tf.reduce_sum(w * x))
    total = tf.Variable(tf.zeros_like(w.initialized_value()), trainable=False)
    zero, add = total.assign(tf.zeros_like(total)), total.assign_add(g)
    train = optimizer.apply_gradients([(total, w)])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(zero)
        for row in ([1.0, 0.0], [2.0, 5.0]):
            s.run(add, {x: row})
        s.run(train)
        return {"w": s.run(w), "total": s.run(total)}
