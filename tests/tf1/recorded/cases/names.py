"""Names of ops, scopes of names and variables, reuse, collections, graphs."""

from tests.tf1.recorded.saying import error_of, inner, run, types


def names(tf):
    return [op.name for op in tf.get_default_graph().get_operations()]


def case_default_names_are_numbered(tf, np):
    x = tf.placeholder(tf.float32, [2])
    y = tf.placeholder(tf.float32, [2])
    built = [
        x,
        y,
        x + y,
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        x**y,
        x // y,
        x % y,
        tf.add(x, y),
        tf.exp(x),
    ]
    built += [tf.exp(x), tf.constant(1.0), tf.constant(2.0), tf.identity(x), tf.nn.relu(x), x > y]
    return {"names": [t.name for t in built]}


def case_names_of_lower_case(tf, np):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    built = [
        tf.transpose(x),
        tf.concat([x, x], 0),
        tf.stack([x, x]),
        tf.split(x, 3, 1)[0],
        tf.unstack(x)[0],
        tf.one_hot([1], 2),
        tf.zeros([2]),
        tf.ones([2]),
        tf.range(3),
        tf.clip_by_value(x, 0.0, 1.0),
        tf.zeros_like(x),
        tf.ones_like(x),
        tf.reduce_sum(x),
        tf.reduce_mean(x),
        tf.reshape(x, [6]),
        tf.expand_dims(x, 0),
        tf.matmul(x, x, transpose_b=True),
        x[0],
        tf.cast(x, tf.int32),
        tf.shape(x),
        tf.argmax(x),
        tf.square(x),
        tf.nn.softmax(x),
        tf.gather(x, [0]),
        tf.tile(x, [1, 1]),
    ]
    return {"names": [t.name for t in built]}


def case_given_names_are_made_unique(tf, np):
    a = [tf.constant(1.0, name="a").name for _ in range(3)]
    return {"names": a, "taken": tf.constant(1.0, name="a_1").name}


def case_name_scopes(tf, np):
    with tf.name_scope("s") as s:
        a = tf.constant(1.0, name="a")
        with tf.name_scope("t") as t:
            b = tf.constant(1.0, name="b")
    with tf.name_scope("s") as again:
        c = tf.constant(1.0, name="a")
    with tf.name_scope(s):
        d = tf.constant(1.0, name="d")
    with tf.name_scope(None):
        e = tf.constant(1.0, name="e")
    with tf.name_scope("x"), tf.name_scope(None):
        f = tf.constant(1.0, name="f")
    return {"scopes": [s, t, again], "names": [v.name for v in (a, b, c, d, e, f)]}


def case_name_scope_with_default_and_values(tf, np):
    ops = inner(tf, "framework.ops")
    x = tf.constant(1.0)
    with tf.name_scope(None, "Default", [x]) as a, ops.name_scope("mine", "Default", [x]) as b:
        return {"a": a, "b": b, "op": tf.identity(x).name}


def case_bad_names(tf, np):
    return {
        "op": error_of(lambda: tf.constant(1.0, name="a b"), "not a valid"),
        "scope": error_of(lambda: tf.name_scope("_x").__enter__(), "not a valid"),
        "good": tf.constant(1.0, name="A.b-c/d_1").name,
    }


def case_variable_scopes_and_name_scopes(tf, np):
    with tf.name_scope("n"):
        a, b = tf.get_variable("a", [1]), tf.Variable(1.0)
        with tf.variable_scope("v"):
            c, d, e = tf.get_variable("c", [1]), tf.Variable(1.0), tf.constant(1.0)
    return {"names": [t.name for t in (a, b, c, d, e)]}


def case_a_variable_scope_entered_again(tf, np):
    with tf.variable_scope("s"):
        a, x = tf.get_variable("a", [1]), tf.constant(1.0, name="x")
    with tf.variable_scope("s", reuse=True) as scope:
        b, y = tf.get_variable("a", [1]), tf.constant(1.0, name="y")
    with tf.variable_scope(scope):
        z, c = tf.constant(1.0, name="z"), tf.get_variable("a")
    return {
        "same": [a is b, b is c],
        "names": [t.name for t in (a, x, y, z)],
        "scope": [scope.name, scope.original_name_scope],
    }


def case_existing_and_missing_variables(tf, np):
    tf.get_variable("a", [1])
    with tf.variable_scope("zz", reuse=True):
        missing = error_of(lambda: tf.get_variable("none", [1]), "does not exist", "zz/none")
    return {
        "exists": error_of(lambda: tf.get_variable("a", [1]), "already exists", "reuse"),
        "missing": missing,
        "shape": error_of(lambda: reused(tf, "a", [2]), "shape"),
        "no shape": error_of(lambda: tf.get_variable("b"), "shape"),
    }


def reused(tf, name, shape):
    with tf.variable_scope("", reuse=True):
        return tf.get_variable(name, shape)


def case_auto_reuse(tf, np):
    out = []
    for _ in range(2):
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            out.append(tf.get_variable("a", [1]))
    return {"same": out[0] is out[1], "count": len(tf.global_variables())}


def case_reuse_variables_in_the_middle(tf, np):
    with tf.variable_scope("s") as scope:
        a = tf.get_variable("a", [1])
        scope.reuse_variables()
        b = tf.get_variable("a", [1])
        flag = tf.get_variable_scope().reuse
    tf.get_variable("outside", [1])
    tf.get_variable_scope().reuse_variables()
    return {"same": a is b, "flag": flag, "outside": tf.get_variable("outside", [1]).name}


def case_default_names_of_variable_scopes(tf, np):
    out = []
    for _ in range(3):
        with tf.variable_scope(None, default_name="layer"):
            out.append(tf.get_variable("w", [1]).name)
    return {"names": out}


def case_nested_variable_scopes(tf, np):
    with tf.variable_scope("a"), tf.variable_scope("b"):
        v = tf.get_variable("v", [1])
        inside = tf.get_variable_scope().name
    return {"v": v.name, "inside": inside, "outside": tf.get_variable_scope().name}


def case_initializers_and_regularizers_of_scopes(tf, np):
    def l2(w):
        return 0.5 * tf.reduce_sum(w * w)

    with tf.variable_scope("s", initializer=tf.constant_initializer(3.0), regularizer=l2):
        a = tf.get_variable("a", [2])
        with tf.variable_scope("t", initializer=tf.ones_initializer()):
            b = tf.get_variable("b", [2])
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return {"values": run(tf, [a, b]), "losses": run(tf, losses)}


def case_regularizers_count_once_when_reused(tf, np):
    for _ in range(2):
        with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
            tf.get_variable("a", initializer=[3.0], regularizer=lambda w: tf.reduce_sum(w))
    losses = tf.losses.get_regularization_losses()
    return {"count": len(losses), "loss": run(tf, tf.losses.get_regularization_loss())}


def case_a_custom_getter(tf, np):
    def doubled(getter, name, *args, **kwargs):
        return getter(name, *args, **kwargs) * 2.0

    with tf.variable_scope("s", custom_getter=doubled):
        w = tf.get_variable("w", initializer=[3.0])
    return {"w": run(tf, w), "variables": [v.name for v in tf.trainable_variables()]}


def case_initial_values_of_get_variable(tf, np):
    a = tf.get_variable("a", initializer=np.array([1.0, 2.0], "float32"))
    b = tf.get_variable("b", initializer=3.0)
    c = tf.get_variable("c", [2], tf.int32)
    d = tf.get_variable("d", initializer=tf.ones([2]) * 4.0)
    e = tf.get_variable("e", [2, 1], initializer=tf.constant_initializer([5.0, 6.0]))
    f = tf.get_variable("f", [3], initializer=lambda shape, **_: tf.fill(shape, 7.0))
    g = tf.get_variable("g", [2], initializer=tf.zeros_initializer)
    return {"values": run(tf, [a, b, c, d, e, f, g])}


def case_collections(tf, np):
    tf.add_to_collection("mine", 1)
    tf.add_to_collection("mine", {"a": 2})
    copy = tf.get_collection("mine")
    copy.append(3)
    v = tf.Variable(1.0, name="s/v", collections=["other", tf.GraphKeys.GLOBAL_VARIABLES])
    tf.get_default_graph().get_collection_ref("mine").append(4)
    return {
        "mine": tf.get_collection("mine"),
        "empty": tf.get_collection("empty"),
        "other": [t.name for t in tf.get_collection("other", scope="s/")],
        "trainable": [t.name for t in tf.trainable_variables()],
        "global": tf.global_variables() == [v],
        "keys": sorted(tf.get_default_graph().get_all_collection_keys()),
    }


def case_names_of_collections(tf, np):
    keys = "GLOBAL_VARIABLES TRAINABLE_VARIABLES UPDATE_OPS TRAIN_OP SUMMARIES LOSSES GLOBAL_STEP"
    keys += " REGULARIZATION_LOSSES LOCAL_VARIABLES MOVING_AVERAGE_VARIABLES"
    return {key: getattr(tf.GraphKeys, key) for key in keys.split()}


def case_variables_by_scope(tf, np):
    for scope in ["gen", "gen2", "dis"]:
        with tf.variable_scope(scope):
            tf.get_variable("w", [1])
    return {
        "gen": [v.name for v in tf.trainable_variables("gen")],
        "gen/": [v.name for v in tf.trainable_variables("gen/")],
        "expression": [v.name for v in tf.global_variables(".*2")],
    }


def case_elements_by_name(tf, np):
    graph = tf.get_default_graph()
    x = tf.placeholder(tf.float32, [2], name="x")
    a, b = tf.split(x, 2, name="halves")
    v = tf.Variable(1.0, name="v")
    return {
        "x": graph.get_tensor_by_name("x:0") is x,
        "second": graph.get_tensor_by_name("halves:1") is b,
        "index": [a.value_index, b.value_index],
        "read": graph.get_tensor_by_name("v/read:0") is v.value(),
        "op": graph.get_operation_by_name("x") is x.op,
        "element": graph.as_graph_element("x:0") is x,
        "absent": error_of(lambda: graph.get_tensor_by_name("nope:0"), "nope", "not exist"),
        "no index": error_of(lambda: graph.get_tensor_by_name("x"), "x"),
        "index too large": error_of(lambda: graph.get_tensor_by_name("x:1"), "x:1"),
        "no op": error_of(lambda: graph.get_operation_by_name("nope"), "nope"),
    }


def case_graphs_are_current_in_blocks(tf, np):
    first = tf.get_default_graph()
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0, name="x")
        inside = tf.get_default_graph() is graph
    y = tf.constant(1.0, name="x")
    return {
        "inside": inside,
        "outside": tf.get_default_graph() is first,
        "names": [x.name, y.name],
        "graphs": [x.graph is graph, y.graph is first],
        "mixed": error_of(lambda: x + y, "graph"),
    }


def case_finalized(tf, np):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.constant(1.0)
        graph.finalize()
        return {"raised": error_of(lambda: x + 1.0, "finalized"), "flag": graph.finalized}


def case_consumers_and_inputs(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y, z = tf.exp(x, name="y"), tf.multiply(x, x, name="z")
    return {
        "consumers": [op.name for op in x.consumers()],
        "inputs": [t.name for t in z.op.inputs],
        "none": len(x.op.inputs),
        "outputs": [t.name for t in y.op.outputs],
        "identity": y.op.inputs[0] is x,
    }


def case_ops_in_the_order_of_their_birth(tf, np):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.Variable(tf.zeros([3, 1]), name="w")
    tf.reduce_mean(tf.nn.sigmoid(tf.matmul(x, w) + 1.0))
    return {"names": names(tf), "types": types(tf.get_default_graph())}


def case_unique_names(tf, np):
    graph = tf.get_default_graph()
    with tf.name_scope("s"):
        out = [
            graph.unique_name("a"),
            graph.unique_name("a"),
            graph.unique_name("a", mark_as_used=False),
        ]
    return {"names": out}


def case_make_template(tf, np):
    def layer(x):
        return x * tf.get_variable("w", initializer=[2.0])

    shared = tf.make_template("layer", layer)
    x = tf.constant([1.0])
    return {"y": run(tf, shared(shared(x))), "variables": [v.name for v in tf.global_variables()]}


def case_equality_is_identity(tf, np):
    x, y = tf.constant(1.0), tf.constant(1.0)
    return {
        "equal": x == y,
        "itself": x == x,
        "unequal": x != y,
        "in": [x in [y, x], x in [y]],
        "keys": {x: "x", y: "y"}[x],
        "index": [y, x].index(x),
        "none": x == None,  # noqa: E711
    }


def case_what_a_tensor_is_not(tf, np):
    x = tf.constant([1.0, 2.0])
    return {
        "bool": error_of(lambda: bool(x)).classes.count("TypeError"),
        "iter": error_of(lambda: list(x)).classes.count("TypeError"),
        "len": error_of(lambda: len(x)).classes.count("TypeError"),
        "class": "tensor" in str(type(x)).lower(),
        "isinstance": isinstance(x, tf.Tensor),
        "float": error_of(lambda: float(x)).classes.count("TypeError"),
    }
