"""Whole programs that learn: games, episodes, domains, chance, spikes, influence, reversibility."""

from tests.tf1.recorded.networks import dense, start, trained
from tests.tf1.recorded.saying import fresh, inner, registered, run


def case_wgan_with_a_gradient_penalty(tf, np):
    def generator(z):
        with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
            return dense(tf, np, tf.nn.relu(dense(tf, np, z, "h", 8, seed=1)), "o", 2, seed=2)

    def critic(x):
        with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
            h = tf.nn.leaky_relu(dense(tf, np, x, "h1", 8, seed=3))
            h = tf.nn.leaky_relu(dense(tf, np, h, "h2", 8, seed=4))
            return tf.reshape(dense(tf, np, h, "o", 1, seed=5), [-1])

    real, z = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 3])
    alpha = tf.placeholder(tf.float32, [None, 1])
    fake = generator(z)
    gap = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
    between = real + alpha * (fake - real)
    (slope,) = tf.gradients(critic(between), [between])
    norms = tf.sqrt(tf.reduce_sum(tf.square(slope), reduction_indices=[1]))
    penalty = tf.reduce_mean((norms - 1.0) ** 2)
    critic_loss, generator_loss = gap + 10.0 * penalty, -tf.reduce_mean(critic(fake))
    of = [[v for v in tf.trainable_variables() if v.name.startswith(s)] for s in ("cri", "gen")]
    optimizer = lambda: tf.train.AdamOptimizer(1e-2, beta1=0.5, beta2=0.9)  # noqa: E731
    train_critic = optimizer().minimize(critic_loss, var_list=of[0])
    train_generator = optimizer().minimize(generator_loss, var_list=of[1])
    rng, out = np.random.RandomState(0), []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            feed = {real: rng.randn(6, 2) + 1, z: rng.randn(6, 3), alpha: rng.rand(6, 1)}
            for _ in range(2):
                session.run(train_critic, feed)
            session.run(train_generator, feed)
            out.append(session.run([critic_loss, generator_loss, penalty], feed))
    return {"steps": out}


def case_maml_of_two_inner_steps(tf, np):
    weights = {
        "w1": tf.Variable(start(np, 1, 1, 10), name="w1"),
        "b1": tf.Variable(tf.zeros([10]), name="b1"),
        "w2": tf.Variable(start(np, 2, 10, 1), name="w2"),
        "b2": tf.Variable(tf.zeros([1]), name="b2"),
    }

    def forward(x, w):
        h = tf.nn.relu(tf.matmul(x, w["w1"]) + w["b1"])
        return tf.matmul(h, w["w2"]) + w["b2"]

    def mse(pred, label):
        return tf.reduce_mean(tf.square(tf.reshape(pred, [-1]) - tf.reshape(label, [-1])))

    def task(given):
        xa, ya, xb, yb = given
        fast, losses = weights, []
        for _ in range(2):
            loss = mse(forward(xa, fast), ya)
            grads = dict(zip(fast.keys(), tf.gradients(loss, list(fast.values()))))
            fast = {k: fast[k] - 0.1 * grads[k] for k in fast}
            losses.append(mse(forward(xb, fast), yb))
        return [mse(forward(xa, weights), ya), *losses]

    places = [tf.placeholder(tf.float32, [3, 5, 1]) for _ in range(4)]
    with tf.variable_scope("model", reuse=None):
        task([p[0] for p in places])
        out = tf.map_fn(task, places, dtype=[tf.float32] * 3, parallel_iterations=3)
    totals = [tf.reduce_sum(t) / 3.0 for t in out]
    optimizer = tf.train.AdamOptimizer(0.01)
    pairs = optimizer.compute_gradients(totals[-1])
    train = optimizer.apply_gradients([(tf.clip_by_value(g, -10, 10), v) for g, v in pairs])
    rng = np.random.RandomState(0)
    xs = rng.uniform(-3, 3, [2, 3, 5, 1])
    ys = np.sin(xs + rng.rand(1, 3, 1, 1) * 3)
    feed = dict(zip(places, [xs[0], ys[0], xs[1], ys[1]]))
    return {"steps": trained(tf, train, [*totals, pairs[0][0]], feed)}


def case_adversarial_domains(tf, np):
    def flip(x, factor):
        name = registered(tf, lambda op, grad: [tf.negative(grad) * factor])
        with tf.get_default_graph().gradient_override_map({"Identity": name}):
            return tf.identity(x)

    x, train_flag = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.bool, [])
    y, domain = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    factor = tf.placeholder(tf.float32, [])
    with tf.variable_scope("feature_extractor"):
        features = tf.nn.relu(dense(tf, np, x, "f", 6, seed=1))
    half = tf.cast(tf.shape(features)[0] / 2, tf.int32)
    source = lambda t: tf.slice(t, [0, 0], [half, -1])  # noqa: E731
    chosen = tf.cond(train_flag, lambda: source(features), lambda: features)
    labels = tf.cond(train_flag, lambda: source(y), lambda: y)
    chosen.set_shape([None, 6])
    with tf.variable_scope("label_predictor"):
        logits = dense(tf, np, chosen, "l", 2, seed=2)
        label_loss = tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    with tf.variable_scope("domain_predictor"):
        guess = dense(tf, np, flip(features, factor), "d", 2, seed=3)
        domain_loss = tf.nn.softmax_cross_entropy_with_logits(logits=guess, labels=domain)
    losses = [tf.reduce_mean(label_loss), tf.reduce_mean(domain_loss)]
    rate = tf.placeholder(tf.float32, [])
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(sum(losses))
    rng, out = np.random.RandomState(0), []
    with tf.Session() as session:
        tf.global_variables_initializer().run()
        for i in range(5):
            p = i / 5.0
            feed = {x: rng.randn(8, 4), y: np.eye(2)[rng.randint(2, size=8)], train_flag: True}
            feed |= {
                domain: np.eye(2)[[0] * 4 + [1] * 4],
                factor: 2.0 / (1.0 + np.exp(-10 * p)) - 1,
            }
            feed |= {rate: 0.01 / (1.0 + 10 * p) ** 0.75}
            _, *now = session.run([train, *losses], feed)
            out.append([*now, session.run(losses[0], {**feed, train_flag: False})])
    return {"steps": out}


def case_influence_of_examples_by_conjugate_gradients(tf, np):
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None])
    w = tf.get_variable("w", initializer=start(np, 1, 4))
    logits = tf.reduce_sum(x * w, 1)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=y)
    loss = tf.reduce_mean(losses) + 0.05 * tf.nn.l2_loss(w)
    (g,) = tf.gradients(loss, w)
    v = tf.placeholder(tf.float32, [4])
    products = tf.reduce_sum(tf.multiply(g, tf.stop_gradient(v)))
    (hvp,) = tf.gradients(products, w)
    (hessian,) = tf.hessians(loss, w)
    cross = tf.gradients(tf.reduce_sum(g * v), x)[0]
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    rng = np.random.RandomState(0)
    data, labels = rng.randn(12, 4), (rng.rand(12) < 0.5).astype("f")
    feed = {x: data, y: labels}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(train, feed)
        test = session.run(g, {x: data[:1], y: labels[:1]})
        h = session.run(hessian, feed)
        solved, residual = np.zeros(4), test.astype("float64")
        direction = residual.copy()
        for _ in range(4):
            product = session.run(hvp, {**feed, v: direction})
            step = residual @ residual / (direction @ product)
            solved, left = solved + step * direction, residual - step * product
            direction = left + left @ left / (residual @ residual) * direction
            residual = left
        each = [session.run(g, {x: data[i : i + 1], y: labels[i : i + 1]}) for i in range(3)]
        perturb = session.run(cross, {**feed, v: solved})[:3]
    influence = np.array([e @ solved for e in each])
    close = bool(np.allclose(solved, np.linalg.solve(h, test), atol=1e-3))
    return {"hessian": h, "solved": close, "influence": influence.astype("f"), "perturb": perturb}


def case_reversible_network_trained(tf, np):
    """Its gradients are made by hand from the outputs, block by block."""

    def residual(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", initializer=start(np, len(name), 3, 3))
        return tf.nn.relu(tf.matmul(x, w))

    x, target = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.float32, [None, 6])
    first, second = tf.split(x, 2, axis=1)
    for i in range(3):
        first = first + residual(second, f"f{'f' * i}")
        second = second + residual(first, f"g{'gg' * i}")
    out = tf.concat([first, second], 1)
    loss = tf.losses.mean_squared_error(target, out)
    plain = dict(
        zip(
            [v.name for v in tf.trainable_variables()], tf.gradients(loss, tf.trainable_variables())
        )
    )
    y1, y2 = tf.split(tf.stop_gradient(out), 2, axis=1)
    d1, d2 = tf.gradients(loss, [first, second])
    pairs = []
    for i in reversed(range(3)):
        f, g = f"f{'f' * i}", f"g{'gg' * i}"
        wf, wg = (tf.trainable_variables(s + "/")[0] for s in (f, g))
        z1 = tf.stop_gradient(y1)
        gz = residual(z1, g)
        x2 = tf.stop_gradient(y2 - gz)
        fx = residual(x2, f)
        x1 = tf.stop_gradient(z1 - fx)
        through, dwg = tf.gradients(gz, [z1, wg], grad_ys=d2)
        d1 = d1 + through
        back, dwf = tf.gradients(fx, [x2, wf], grad_ys=d1)
        d2 = d2 + back
        pairs += [(dwf, wf), (dwg, wg)]
        y1, y2 = x1, x2
    gap = [tf.reduce_max(tf.abs(g - plain[v.name])) for g, v in pairs]
    optimizer = tf.train.RMSPropOptimizer(0.01, momentum=0.5)
    grads = tf.tuple([g for g, _ in pairs])  # all of them, before a variable is written
    train = optimizer.apply_gradients(zip(grads, [v for _, v in pairs]))
    rng = np.random.RandomState(0)
    feed = {x: rng.randn(4, 6), target: rng.randn(4, 6)}
    back = tf.reduce_max(tf.abs(tf.concat([y1, y2], 1) - x))
    close = [bool(v < 1e-4) for v in run(tf, [*gap, back], feed)]
    return {"steps": trained(tf, train, [loss, pairs[0][0]], feed), "close": close}


def case_spiking_neurons_with_a_surrogate(tf, np):
    """Leaky neurons that adapt, as a cell whose state is a tuple, through time."""
    from collections import namedtuple

    State = namedtuple("State", ["v", "b", "z"])

    def spike(v, threshold):
        name = fresh("Spike")

        @tf.RegisterGradient(name)
        def grad(op, dy):
            scaled = op.inputs[0]
            return [dy * 0.3 * tf.maximum(1.0 - tf.abs(scaled), 0.0)]

        scaled = (v - threshold) / threshold
        with tf.get_default_graph().gradient_override_map({"Sign": name}):
            return 0.5 * (tf.sign(scaled) + 1.0)

    class Cell:
        output_size = 5
        state_size = State(5, 5, 5)

        def __init__(self):
            self.w_in = tf.get_variable("w_in", initializer=start(np, 1, 3, 5))
            self.w_rec = tf.get_variable("w_rec", initializer=start(np, 2, 5, 5))

        def zero_state(self, batch, dtype):
            return State(*(tf.zeros([batch, 5], dtype) for _ in range(3)))

        def __call__(self, x, state, scope=None):
            current = tf.matmul(x, self.w_in) + tf.matmul(state.z, self.w_rec)
            v = 0.9 * state.v + current - state.z * (1.0 + 1.6 * state.b)
            b = 0.95 * state.b + 0.05 * state.z
            z = spike(v, 0.5 + 1.6 * b)
            return z, State(v, b, z)

    x, y = tf.placeholder(tf.float32, [None, 6, 3]), tf.placeholder(tf.float32, [None, 2])
    with tf.variable_scope("lsnn"):
        z, state = tf.nn.dynamic_rnn(Cell(), x, dtype=tf.float32)
    out = dense(tf, np, tf.reduce_mean(z, 1), "out", 2, seed=5)
    rate = tf.reduce_mean(z)
    loss = tf.reduce_mean(tf.square(out - y)) + 0.1 * tf.square(rate - 0.2)
    (dw,) = tf.gradients(loss, tf.trainable_variables("lsnn/w_rec"))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    rng = np.random.RandomState(0)
    feed = {x: rng.rand(4, 6, 3) * 2, y: rng.rand(4, 2)}
    return {"steps": trained(tf, train, [loss, rate, dw, state.b], feed)}


def case_variational_autoencoder_with_importance_weights(tf, np):
    x = tf.placeholder(tf.float32, [None, 6])
    noise = tf.placeholder(tf.float32, [None, 3, 2])
    h = tf.nn.tanh(dense(tf, np, x, "enc", 5, seed=1))
    mean, log_var = dense(tf, np, h, "mean", 2, seed=2), dense(tf, np, h, "var", 2, seed=3)
    z = tf.expand_dims(mean, 1) + tf.exp(0.5 * tf.expand_dims(log_var, 1)) * noise
    flat = tf.nn.tanh(dense(tf, np, tf.reshape(z, [-1, 2]), "dec", 5, seed=4))
    logits = tf.reshape(dense(tf, np, flat, "out", 6, seed=5), [-1, 3, 6])
    tiled = tf.tile(tf.expand_dims(x, 1), [1, 3, 1])
    bernoulli = tf.nn.sigmoid_cross_entropy_with_logits(labels=tiled, logits=logits)
    log_px = -tf.reduce_sum(bernoulli, 2)
    log_pz = -0.5 * tf.reduce_sum(tf.square(z) + np.log(2 * np.pi), 2)
    log_qz = -0.5 * tf.reduce_sum(
        tf.square(noise) + tf.expand_dims(log_var, 1) + np.log(2 * np.pi), 2
    )
    log_w = log_px + log_pz - log_qz
    bound = tf.reduce_mean(tf.reduce_logsumexp(log_w, 1) - np.log(3.0))
    kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), axis=1)
    elbo = tf.reduce_mean(tf.reduce_mean(log_px, 1) - kl)
    weights = tf.stop_gradient(tf.nn.softmax(log_w, 1))
    doubly = tf.gradients(tf.reduce_sum(weights**2 * log_w), mean)[0]
    train = tf.train.AdamOptimizer(0.01).minimize(-bound)
    rng = np.random.RandomState(0)
    feed = {x: (rng.rand(4, 6) < 0.5) * 1.0, noise: rng.randn(4, 3, 2)}
    return {"steps": trained(tf, train, [bound, elbo, doubly], feed)}


def case_actor_and_critic(tf, np):
    with tf.variable_scope("step_model"):
        state = tf.placeholder(tf.float32, [None, 4], name="state")
        action, reward = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
        h = tf.nn.elu(dense(tf, np, state, "h", 8, seed=1))
        logits, value = dense(tf, np, h, "pi", 3, seed=2), dense(tf, np, h, "v", 1, seed=3)[:, 0]
    advantage = reward - value
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=action)
    policy_loss = tf.reduce_mean(tf.stop_gradient(advantage) * losses)
    shifted = logits - tf.reduce_max(logits, axis=-1, keep_dims=True)
    e = tf.exp(shifted)
    p = e / tf.reduce_sum(e, axis=-1, keep_dims=True)
    log_sum = tf.log(tf.reduce_sum(e, axis=-1, keep_dims=True))
    entropy = tf.reduce_mean(tf.reduce_sum(p * (log_sum - shifted), axis=-1))
    value_loss = tf.reduce_mean(tf.square(advantage)) / 2.0
    loss = policy_loss - 0.01 * entropy + 0.5 * value_loss
    old = tf.placeholder(tf.float32, [None])
    ratio = tf.exp(old - losses)
    clipped = tf.clip_by_value(ratio, 0.8, 1.2)
    surrogate = -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))
    variables = tf.trainable_variables("step_model")
    grads, norm = tf.clip_by_global_norm(tf.gradients(loss + 0.1 * surrogate, variables), 0.5)
    trainer = tf.train.RMSPropOptimizer(learning_rate=7e-3, decay=0.99, epsilon=1e-5)
    train = trainer.apply_gradients(list(zip(grads, variables)))
    rng = np.random.RandomState(0)
    feed = {state: rng.randn(7, 4), action: rng.randint(3, size=7), reward: rng.randn(7)}
    fetches = [policy_loss, value_loss, entropy, surrogate, norm]
    return {"steps": trained(tf, train, fetches, {**feed, old: rng.rand(7)})}


def case_a_regularised_model_with_dropout_switched_off(tf, np):
    l2 = lambda w: 0.01 * tf.nn.l2_loss(w)  # noqa: E731
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int32, [None])
    training = tf.placeholder_with_default(False, [])
    with tf.variable_scope("net", regularizer=l2, initializer=tf.constant_initializer(0.1)):
        h = tf.layers.dense(x, 6, name="fc1")
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, name="bn"))
        h = tf.layers.dropout(h, 0.5, training=training)
        w = tf.get_variable("w", initializer=start(np, 3, 6, 3))
        logits = tf.layers.dense(h, 3, name="fc2") + tf.matmul(h, w)
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    total = tf.losses.get_total_loss()
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        train = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(total, step)
    average = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        train = average.apply(tf.trainable_variables())
    rng = np.random.RandomState(0)
    feed = {x: rng.randn(6, 5), y: [0, 1, 2, 0, 1, 2]}
    names = sorted(v.name for v in tf.global_variables())
    shadow = average.average(w)
    losses = len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    steps = trained(tf, train, [total, rate, tf.reduce_sum(shadow), step], feed)
    return {"steps": steps, "names": names, "losses": losses}


def case_layers_by_region_with_lists(tf, np):
    """fn_with_custom_grad as a Defun, and a dense layer that recomputes itself."""
    function = inner(tf, "framework.function")

    def recomputed(f, x, name):
        with tf.variable_scope(name) as scope:
            y = f(x)
        variables = tf.trainable_variables(scope.name + "/")
        reads = [v.value() for v in variables]

        def rule(op, *dys):
            given = list(op.inputs)
            with tf.control_dependencies(dys), tf.variable_scope(scope, reuse=True):
                again = f(tf.stop_gradient(given[0]))
            source = given[1:-1]
            dvs = tf.gradients(again, source, grad_ys=dys)
            dx = tf.matmul(dys[0] * (1.0 - tf.square(again)), source[1], transpose_b=True)
            return [dx, *dvs, tf.zeros_like(given[-1])]

        shape = y.get_shape()
        identity = function.Defun(
            *[tf.float32] * (2 + len(reads)),
            python_grad_func=rule,
            shape_func=lambda op: [shape],
            func_name=fresh("Recomputed"),
        )(lambda *args: tf.identity(args[-1]))
        return identity(x, *reads, y)

    def layer(x):
        b = tf.get_variable("b", [4], initializer=tf.constant_initializer(0.1))
        w = tf.get_variable("w", initializer=start(np, 1, 4, 4))
        return tf.tanh(tf.matmul(x, w) + b)

    x = tf.placeholder(tf.float32, [None, 4])
    y = recomputed(layer, recomputed(layer, x, "one"), "two")
    loss = tf.reduce_mean(tf.square(y - 0.3))
    dx = tf.gradients(loss, x)[0]
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    feed = {x: np.random.RandomState(0).randn(3, 4)}
    return {"steps": trained(tf, train, [loss, dx], feed)}


def case_a_learner_that_is_learnt(tf, np):
    """An optimizer of one weight per entry, unrolled, trained through its steps."""
    rate = tf.get_variable("log_rate", initializer=[-2.0, -2.0])
    momentum = tf.get_variable("momentum", initializer=0.3)
    a = tf.constant([[2.0, 0.3], [0.3, 0.7]])

    def loss_of(x):
        return 0.5 * tf.reduce_sum(
            x * tf.reshape(tf.matmul(a, tf.reshape(x, [2, 1])), [2])
        ) + tf.sin(x[0])

    def step(t, x, m, total):
        (g,) = tf.gradients(loss_of(x), x)
        m = momentum * m + tf.stop_gradient(g)
        x = x - tf.exp(rate) * m
        return t + 1, x, m, total + loss_of(x)

    start_x = tf.constant([1.0, -2.0])
    given = [tf.constant(0), start_x, tf.zeros([2]), tf.constant(0.0)]
    _, x, _, total = tf.while_loop(lambda t, *_: t < 5, step, given)
    grads = tf.gradients(total, [rate, momentum])
    train = tf.train.AdamOptimizer(0.05).minimize(total)
    return {"steps": trained(tf, train, [total, x, *grads], {})}
