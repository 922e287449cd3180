"""Of tf.contrib: layers, slim, graph_editor, framework, distributions, cells."""

from tests.tf1.recorded.saying import run, shape_of, values

GRID = (1, 4, 4, 2)


def numbers(tf, np, *shape):
    """Fixed numbers between -1 and 1."""
    count = int(np.prod(shape))
    return tf.constant(np.sin(np.arange(count) * 1.7).reshape(shape), tf.float32)


def variables(tf):
    return {v.name: shape_of(v) for v in tf.global_variables()}


def case_fully_connected_and_conv2d(tf, np):
    layers, start = tf.contrib.layers, tf.constant_initializer(0.1)
    h = layers.conv2d(numbers(tf, np, *GRID), 3, [3, 3], stride=2, weights_initializer=start)
    y = layers.fully_connected(
        layers.flatten(h), 2, activation_fn=None, weights_initializer=start, scope="out"
    )
    loss = tf.reduce_sum(y * [[1.0, 2.0]])
    grads = dict(zip("wbuv", tf.gradients(loss, tf.trainable_variables())))
    return {
        **values(tf, {"h": h, "y": y, **grads}),
        "variables": variables(tf),
        "names": [h.op.type, y.name],
    }


def case_batch_norm_and_its_updates(tf, np):
    layers = tf.contrib.layers
    x = numbers(tf, np, 4, 3) * 2.0 + 1.0
    y = layers.batch_norm(x, is_training=True, decay=0.9, scale=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.variable_scope("", reuse=True):
        still = layers.batch_norm(x, is_training=False, decay=0.9, scale=True, scope="BatchNorm")
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run([y, still])
        s.run(updates)
        moving = {v.name: s.run(v) for v in tf.global_variables() if "moving" in v.name}
        dx = s.run(tf.gradients(y**3, x)[0])
    return {"first": first, "moving": moving, "dx": dx, "variables": variables(tf)}


def case_layer_norm(tf, np):
    x = numbers(tf, np, 2, 4)
    y = tf.contrib.layers.layer_norm(x)
    return {**values(tf, {"y": y, "dx": tf.gradients(y**3, x)[0]}), "variables": variables(tf)}


def case_regularizers_of_the_library(tf, np):
    layers, w = tf.contrib.layers, numbers(tf, np, 2, 3)
    return {
        "l2": run(tf, layers.l2_regularizer(0.1)(w)),
        "l1": run(tf, layers.l1_regularizer(0.1)(w)),
        "l2 of": run(tf, tf.gradients(layers.l2_regularizer(0.1)(w), w)[0]),
    }


def case_xavier_initializers(tf, np):
    layers = tf.contrib.layers
    dense = tf.get_variable("a", [40, 60], initializer=layers.xavier_initializer())
    normal = tf.get_variable("b", [40, 60], initializer=layers.xavier_initializer(uniform=False))
    conv = tf.get_variable("c", [3, 3, 20, 30], initializer=layers.xavier_initializer_conv2d())
    a, b, c = run(tf, [dense, normal, conv])
    return {
        "uniform": bool(np.abs(a).max() <= np.sqrt(6 / 100) and abs(a.std() - 0.1414) < 0.01),
        "normal": bool(abs(b.std() - 0.1414) < 0.01),
        "conv": bool(abs(c.std() - np.sqrt(2 / 450)) < 0.005),
    }


def case_slim_with_argument_scopes(tf, np):
    slim = tf.contrib.slim
    x = numbers(tf, np, *GRID)
    start = tf.constant_initializer(0.1)
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=slim.l2_regularizer(0.1),
            weights_initializer=start,
            activation_fn=tf.nn.elu,
        ),
        slim.arg_scope([slim.conv2d], padding="VALID"),
    ):
        h = slim.conv2d(x, 3, [3, 3], scope="c")
        h = slim.flatten(slim.max_pool2d(h, [2, 2]))
        y = slim.fully_connected(h, 2, activation_fn=None, scope="fc")
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return {
        **values(tf, {"y": y, "loss": tf.add_n(losses)}),
        "variables": variables(tf),
        "shapes": [shape_of(h), shape_of(y)],
    }


def case_slim_reused(tf, np):
    slim, x = tf.contrib.slim, numbers(tf, np, 2, 3)
    for reuse in (False, True):
        with tf.variable_scope("net", reuse=reuse):
            slim.fully_connected(x, 4, normalizer_fn=slim.batch_norm, scope="fc")
    return {"variables": variables(tf)}


def case_global_step_of_the_library(tf, np):
    step = tf.contrib.framework.get_or_create_global_step()
    return {"name": step.name, "same": tf.train.get_global_step() is step}


def chain(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.exp(x, name="a")
    b = tf.multiply(a, x, name="b")
    c = tf.tanh(b, name="c")
    return x, a, b, c


def case_walks_through_a_graph(tf, np):
    ge = tf.contrib.graph_editor
    x, a, _, c = chain(tf)
    back = ge.get_backward_walk_ops([c.op], inclusive=True)
    stopped = ge.get_backward_walk_ops([c.op], inclusive=True, stop_at_ts=[a])
    forward = ge.get_forward_walk_ops([a.op], inclusive=True)
    within = ge.get_forward_walk_ops([x.op], inclusive=True, within_ops=[x.op, a.op])
    walks = {"back": back, "stopped": stopped, "forward": forward, "within": within}
    return {name: sorted(op.name for op in ops) for name, ops in walks.items()}


def case_a_copy_that_reads_other_tensors(tf, np):
    ge = tf.contrib.graph_editor
    x, a, b, c = chain(tf)
    _, info = ge.copy_with_input_replacements(ge.sgv([b.op, c.op]), {a: tf.constant([1.0, 2.0])})
    y = info._transformed_ops[c.op].outputs[0]
    feeds = {x: [0.5, 1.0]}
    return {
        "type": [y.op.type, info.transformed(c) is y],
        **values(tf, {"c": c, "y": y, "dy": tf.gradients(y, x)[0]}, feeds),
    }


def case_a_copy_rerouted_and_made_to_wait(tf, np):
    ge = tf.contrib.graph_editor
    x, a, b, c = chain(tf)
    _, info = ge.copy_with_input_replacements(ge.sgv([b.op, c.op]), {})
    copies = [info.transformed(op) for op in (b.op, c.op)]
    stopped = tf.stop_gradient(a)
    ge.reroute_ts([stopped], [a], can_modify=copies)
    v = tf.Variable(0.0)
    ge.add_control_inputs(copies[0], [v.assign_add(1.0).op])
    y = copies[-1].outputs[0]
    dx, ds = tf.gradients(y, [x, stopped])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out = s.run([y, dx, ds], {x: [0.5, 1.0]})
        return {"out": out, "v": s.run(v), "plain": s.run(tf.gradients(c, x)[0], {x: [0.5, 1.0]})}


def case_normal_distributions(tf, np):
    mean = tf.constant([0.0, 1.0])
    a = tf.distributions.Normal(mean, [1.0, 2.0])
    b = tf.distributions.Normal(0.5, 1.0)
    density = a.log_prob([0.5, 0.5])
    kl = tf.distributions.kl_divergence(a, b)
    return values(
        tf,
        {
            "density": density,
            "dmean": tf.gradients(density, mean)[0],
            "kl": kl,
            "dkl": tf.gradients(kl, mean)[0],
            "mean": a.mean(),
            "stddev": a.stddev(),
            "entropy": a.entropy(),
        },
    )


def case_distributions_over_numbers_of_things(tf, np):
    logits = tf.constant([[0.5, -1.0, 2.0]])
    c = tf.distributions.Categorical(logits=logits)
    b = tf.distributions.Bernoulli(logits=logits)
    log_prob = c.log_prob([2])
    return values(
        tf,
        {
            "log_prob": log_prob,
            "d": tf.gradients(log_prob, logits)[0],
            "entropy": c.entropy(),
            "bernoulli": b.log_prob([[1, 0, 1]]),
            "probabilities": b.probs,
        },
    )


def case_images_turned(tf, np):
    x = numbers(tf, np, 2, 5, 6, 2)
    out = {}
    for name, angles in [("one", 0.3), ("each", [0.4, -1.1])]:
        y = tf.contrib.image.rotate(x, angles)
        out[name], out[f"d {name}"] = y, tf.gradients(y * y, x)[0]
    smooth = tf.contrib.image.rotate(x, 0.3, interpolation="BILINEAR")
    return values(tf, {**out, "smooth": smooth, "d smooth": tf.gradients(smooth**2, x)[0]})
