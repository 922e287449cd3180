"""Whole programs on images: overrides, attributions, quantisation, adversaries, style."""

from tests.tf1.recorded.networks import convolution, dense, start, trained
from tests.tf1.recorded.saying import inner, registered, run


def case_redirected_relus_of_an_imported_network(tf, np):
    """Optimises an image for a unit; where all gradients are blocked, they pass for a while."""

    def redirected(op, grad):
        x = op.inputs[0]
        blocked = tf.logical_and(x <= 0.0, grad < 0.0)
        relu = tf.where(x < 0.0, tf.zeros_like(grad), grad)
        step = tf.cast(op.graph.get_tensor_by_name("step/read:0"), tf.float32)
        share = tf.cond(step < 3.0, lambda: tf.constant(0.5), lambda: tf.constant(0.0))
        return relu + share * tf.where(blocked, grad, tf.zeros_like(grad))

    def redirected6(op, grad):
        x = op.inputs[0]
        outside = ((x < 0.0) & (grad < 0.0)) | ((x > 6.0) & (grad > 0.0))
        return tf.where(outside, 0.3 * grad, grad)

    model = tf.Graph()
    with model.as_default():
        x = tf.placeholder(tf.float32, [1, 8, 8, 3], name="input")
        h = tf.nn.relu(
            tf.nn.conv2d(x, start(np, 0, 3, 3, 3, 4), [1, 2, 2, 1], "SAME"), name="mixed"
        )
        h = tf.nn.relu6(tf.nn.conv2d(h, start(np, 1, 3, 3, 4, 5), [1, 1, 1, 1], "SAME") - 1.0)
        tf.identity(tf.nn.softmax(tf.reduce_mean(h, [1, 2])), name="output")
    names = [registered(tf, f) for f in (redirected, redirected6)]
    step = tf.Variable(0, trainable=False, name="step")
    spectrum = tf.Variable(start(np, 2, 1, 4, 4, 3), name="image")
    image = tf.sigmoid(tf.image.resize_bilinear(spectrum, [8, 8]))
    with tf.get_default_graph().gradient_override_map(dict(zip(["Relu", "Relu6"], names))):
        tf.import_graph_def(model.as_graph_def(), {"input": image}, name="import")
    tensor = tf.get_default_graph().get_tensor_by_name
    unit = tensor("import/mixed:0")[..., 2]
    loss = -tf.reduce_mean(unit) - tensor("import/output:0")[0, 1]
    train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step, var_list=[spectrum])
    return {"steps": trained(tf, train, [loss, tf.reduce_sum(image)], {})}


def case_guided_gradients_of_a_rebuilt_network(tf, np):
    def guided(op, grad):
        gate_g, gate_y = tf.cast(grad > 0, "float32"), tf.cast(op.outputs[0] > 0, "float32")
        return gate_y * gate_g * grad

    def network(x, reuse=None):
        with tf.variable_scope("vgg", reuse=reuse):
            h = tf.nn.relu(convolution(tf, np, x, "conv1", 4, seed=1))
            h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
            conv = tf.nn.relu(convolution(tf, np, h, "conv2", 4, seed=2))
            return conv, dense(tf, np, tf.reshape(conv, [-1, 4 * 4 * 4]), "fc", 3, seed=3)

    x = tf.placeholder("float", [None, 8, 8, 3])
    conv, logits = network(x)
    with tf.get_default_graph().gradient_override_map({"Relu": registered(tf, guided)}):
        guided_conv, guided_logits = network(x, reuse=True)
    target = tf.reduce_sum(logits * tf.one_hot([1, 2], 3), 1)
    (dconv,) = tf.gradients(target, conv)
    weights = tf.reduce_mean(dconv, axis=(1, 2), keep_dims=True)
    cam = tf.nn.relu(tf.reduce_sum(weights * conv, -1))
    cam = cam / (tf.reduce_max(cam, [1, 2], keep_dims=True) + 1e-7)
    saliency = tf.gradients(tf.reduce_sum(guided_logits * tf.one_hot([1, 2], 3)), x)[0]
    smooth = tf.gradients(tf.reduce_max(guided_conv, axis=3), x)[0]
    second = tf.exp(target) * dconv[:, 0, 0, 0]
    fetches = [cam, saliency[:, :3, 0], smooth[:, :3, 0], second]
    return {"maps": run(tf, fetches, {x: np.random.RandomState(5).rand(2, 8, 8, 3)})}


def case_dorefa_network_with_batch_norm(tf, np):
    graph = tf.get_default_graph()

    def quantize(x, k):
        n = float(2**k - 1)
        with graph.gradient_override_map({"Floor": "Identity"}):
            return tf.floor(x * n + 0.5) / n

    def weight(x):
        x = tf.tanh(x)
        return 2 * quantize(x / tf.reduce_max(tf.abs(x)) * 0.5 + 0.5, 2) - 1

    def quantised_gradient(op, g):
        largest = tf.reduce_max(tf.abs(g), axis=list(range(1, g.get_shape().ndims)), keep_dims=True)
        g = tf.clip_by_value(g / largest * 0.5 + 0.5, 0.0, 1.0)
        return (quantize(g, 6) - 0.5) * largest * 2

    name = registered(tf, quantised_gradient)

    def getter(getter, *args, **kwargs):
        v = getter(*args, **kwargs)
        return weight(v) if v.op.name.endswith("weights") and "conv0" not in v.op.name else v

    x, labels = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int32, [None])
    with tf.variable_scope("net", custom_getter=getter):
        h = tf.nn.relu(convolution(tf, np, x, "conv0", 4, stride=2, seed=1))
        for i in (1, 2):
            h = quantize(tf.clip_by_value(h, 0.0, 1.0), 2)
            h = convolution(tf, np, h, f"conv{i}", 4, seed=i + 1)
            with graph.gradient_override_map({"Identity": name}):
                h = tf.identity(h)
            h = tf.layers.batch_normalization(h, training=True, fused=True)
        logits = dense(tf, np, tf.reduce_mean(h, [1, 2]), "fc", 3, seed=9)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    )
    rng = np.random.RandomState(0)
    feed = {x: rng.rand(6, 8, 8, 1), labels: [0, 1, 2, 0, 1, 2]}
    dw = tf.gradients(loss, tf.trainable_variables()[0])[0]
    norm = tf.reduce_sum(tf.square(dw))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.group(train)
    return {"steps": trained(tf, train, [loss, norm], feed, steps=2)}


def case_adversarial_training_with_fast_signs(tf, np):
    x, y = tf.placeholder(tf.float32, [None, 10], name="x"), tf.placeholder(tf.int64, [None])

    def model(x):
        with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
            return dense(tf, np, tf.nn.relu(dense(tf, np, x, "h", 12, seed=1)), "o", 3, seed=2)

    def loss_of(x):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=model(x), labels=y)
        return tf.reduce_mean(losses)

    clean = loss_of(x)
    perturbed = x + 0.1 * tf.sign(tf.gradients(clean, x)[0])
    perturbed = tf.stop_gradient(tf.clip_by_value(perturbed, -2.0, 2.0))
    rounds = perturbed
    for _ in range(2):
        rounds = rounds + 0.05 * tf.sign(tf.gradients(loss_of(rounds), rounds)[0])
        rounds = x + tf.clip_by_value(rounds - x, -0.15, 0.15)
    adversarial = loss_of(perturbed)
    projected = loss_of(tf.stop_gradient(rounds))
    right = tf.equal(tf.argmax(model(perturbed), 1), y)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    train = tf.train.AdamOptimizer(1e-2).minimize(0.5 * clean + 0.5 * adversarial)
    rng = np.random.RandomState(0)
    feed = {x: rng.randn(9, 10), y: rng.randint(3, size=9)}
    return {"steps": trained(tf, train, [clean, adversarial, projected, accuracy], feed)}


def case_style_transfer_by_gradients_of_the_image(tf, np):
    def features(image):
        with tf.variable_scope("vgg", reuse=tf.AUTO_REUSE):
            first = tf.nn.relu(convolution(tf, np, image, "a", 4, seed=1))
            pooled = tf.nn.avg_pool(first, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
            return [first, tf.nn.relu(convolution(tf, np, pooled, "b", 6, seed=2))]

    def gram(t):
        _, h, w, c = t.get_shape().as_list()
        flat = tf.reshape(t, [h * w, c])
        return tf.matmul(flat, flat, transpose_a=True) / (2.0 * h * w * c)

    rng = np.random.RandomState(3)
    content, style = rng.rand(2, 1, 8, 8, 3).astype("f")
    image = tf.Variable(rng.rand(1, 8, 8, 3).astype("f"), name="image")
    kept = [tf.stop_gradient(f) for f in features(tf.constant(content))]
    grams = [tf.stop_gradient(gram(f)) for f in features(tf.constant(style))]
    mine = features(image)
    content_loss = 2.0 * tf.nn.l2_loss(mine[1] - kept[1])
    style_loss = tf.add_n([tf.nn.l2_loss(gram(f) - g) for f, g in zip(mine, grams)])
    variation = tf.reduce_sum(tf.image.total_variation(image))
    loss = content_loss + 10.0 * style_loss + 1e-3 * variation
    optimizer = tf.train.AdamOptimizer(0.02)
    ((g, _),) = optimizer.compute_gradients(loss, var_list=[image])
    train = optimizer.apply_gradients([(g / (tf.reduce_mean(tf.abs(g)) + 1e-8), image)])
    with tf.control_dependencies([train]):
        train = tf.assign(image, tf.clip_by_value(image, 0.0, 1.0))
    return {"steps": trained(tf, train, [loss, style_loss, tf.reduce_mean(tf.abs(g))], {})}


def case_attributions_by_a_replaced_table(tf, np):
    """DeepLIFT for activations and pools, by rules in the table of gradients."""
    table = inner(tf, "framework.ops")._gradient_registry._registry
    originals = {k: table[k]["type"] for k in ("Relu", "Sigmoid", "MaxPool")}

    def rescale(op, grad):
        x, x0 = tf.split(op.inputs[0], 2)
        y, y0 = tf.split(op.outputs[0], 2)
        rank = x.get_shape().ndims
        dx, dy = (tf.tile(a - b, [2] + [1] * (rank - 1)) for a, b in ((x, x0), (y, y0)))
        safe = tf.where(tf.abs(dx) < 1e-6, tf.ones_like(dx), dx)
        return tf.where(tf.abs(dx) < 1e-6, originals[op.type](op, grad), grad * dy / safe)

    def pool(op, grad):
        x, x0 = tf.split(op.inputs[0], 2)
        y, y0 = tf.split(op.outputs[0], 2)
        highest = tf.maximum(y, y0)
        (of_x, _), (_, of_x0) = (tf.split(t, 2) for t in pool_grads(op, grad, highest, y, y0))
        dx = x - x0
        safe = tf.where(tf.abs(dx) < 1e-6, tf.ones_like(dx), dx)
        out = tf.where(tf.abs(dx) < 1e-6, tf.zeros_like(dx), (of_x + of_x0) / safe)
        return tf.tile(out, [2, 1, 1, 1])

    def pool_grads(op, grad, highest, y, y0):
        g = tf.split(grad, 2)[0]
        a = tf.concat([g * (highest - y0), g * 0.0], 0)
        b = tf.concat([g * 0.0, g * (y0 - highest)], 0)
        original = originals["MaxPool"]
        return original(op, a), original(op, tf.concat([b[: tf.shape(g)[0]], g * (y - highest)], 0))

    x = tf.placeholder(tf.float32, [None, 6, 6, 1])
    h = tf.nn.relu(convolution(tf, np, x, "conv", 3, seed=1))
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    h = tf.nn.sigmoid(dense(tf, np, tf.reshape(h, [-1, 27]), "h", 5, seed=2))
    y = dense(tf, np, h, "o", 2, seed=3)
    table["Relu"]["type"] = table["Sigmoid"]["type"] = rescale
    table["MaxPool"]["type"] = pool
    try:
        phi = [tf.gradients(y[:, k], x)[0] for k in range(2)]
    finally:
        for name, original in originals.items():
            table[name]["type"] = original
    rng = np.random.RandomState(0)
    data, reference = rng.rand(2, 6, 6, 1), np.zeros([2, 6, 6, 1])
    feed = {x: np.concatenate([data, reference])}
    *phis, out = run(tf, [*phi, y], feed)
    totals = [(p[:2] * (data - reference)).sum((1, 2, 3)).astype("f") for p in phis]
    return {"phi": [p[0, :, :, 0] for p in phis], "sums": totals, "change": out[:2] - out[2:]}


def case_gradient_checkpoints_by_recomputing(tf, np):
    """Segments of a network run again from stopped checkpoints, each with its own grad_ys."""

    def segment(x, i):
        with tf.variable_scope(f"s{i}", reuse=tf.AUTO_REUSE):
            h = tf.nn.relu(dense(tf, np, x, "a", 6, seed=i))
            return tf.tanh(dense(tf, np, h, "b", 6, seed=i + 10))

    x, y = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.float32, [None, 6])
    ends = [x]
    for i in range(3):
        ends.append(segment(ends[-1], i))
    loss = tf.reduce_mean(tf.squared_difference(ends[-1], y))
    plain = tf.gradients(loss, tf.trainable_variables())
    cut = tf.stop_gradient(ends[-1])
    upstream = tf.gradients(tf.reduce_mean(tf.squared_difference(cut, y)), cut)
    pairs = []
    for i in reversed(range(3)):
        with tf.control_dependencies(upstream):
            known = tf.stop_gradient(tf.identity(ends[i]))
        again = segment(known, i)
        variables = tf.trainable_variables(f"s{i}/")
        *grads, dknown = tf.gradients(again, [*variables, known], grad_ys=upstream)
        pairs += zip(grads, variables)
        upstream = [dknown]
    saved = {v.name: g for g, v in pairs}
    gap = [
        tf.reduce_max(tf.abs(g - saved[v.name])) for g, v in zip(plain, tf.trainable_variables())
    ]
    grads = tf.tuple([g for g, _ in pairs])  # all of them, before a variable is written
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(zip(grads, [v for _, v in pairs]))
    rng = np.random.RandomState(0)
    feed = {x: rng.randn(4, 6), y: rng.rand(4, 6)}
    steps = trained(tf, train, [loss, *plain[:2]], feed)
    return {"steps": steps, "gap": bool(max(run(tf, gap, feed)) < 1e-5)}
