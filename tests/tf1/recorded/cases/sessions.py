"""Sessions: what can be fetched and fed, in which form it comes, what is an error."""

from collections import namedtuple

from tests.tf1.recorded.saying import error_of, run


def case_structures_of_fetches(tf, np):
    x = tf.constant(1.0)
    Pair = namedtuple("Pair", "a b")
    with tf.Session() as s:
        pair = s.run(Pair(x, [x, x]))
        return {
            "list": s.run([x, [x, (x, x)]]),
            "tuple is": type(s.run((x, x))).__name__,
            "dict": s.run({"a": x, "b": {"c": [x]}}),
            "pair": [type(pair).__name__, pair.a, pair.b],
            "empty": s.run([]),
            "same twice": s.run([x, x]),
        }


def case_scalars_are_numpy_scalars(tf, np):
    with tf.Session() as s:
        a, b, c = s.run([tf.constant(1.0), tf.constant([1.0]), tf.constant(3)])
        return {"types": [type(a).__name__, type(b).__name__, type(c).__name__], "float": float(a)}


def case_fetches_by_name(tf, np):
    tf.constant(2.0, name="x")
    with tf.Session() as s:
        return {
            "tensor": s.run("x:0"),
            "op": s.run("x"),
            "absent": error_of(lambda: s.run("y:0"), "y:0"),
        }


def case_what_cannot_be_fetched(tf, np):
    x = tf.constant(1.0)
    with tf.Session() as s:
        return {
            "None": error_of(lambda: s.run(None), "None"),
            "in a list": error_of(lambda: s.run([x, None]), "None"),
            "number": error_of(lambda: s.run(3.0)),
        }


def case_variables_and_ops_are_fetched(tf, np):
    v = tf.Variable([1.0, 2.0])
    return {"run": run(tf, [v, v.initializer, tf.no_op()])}


def case_sparse_gradients_are_fetched(tf, np):
    x = tf.constant([[1.0], [2.0]])
    g = tf.IndexedSlices(tf.constant([[3.0]]), tf.constant([1]), tf.constant([2, 1]))
    with tf.Session() as s:
        out = s.run(g)
        return {
            "values": out.values,
            "indices": out.indices,
            "dense": s.run(tf.convert_to_tensor(g)),
            "x": s.run(x),
        }


def case_keys_of_feeds(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 1.0])
    h = tf.exp(x)
    y = h + v
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return {
            "tensor": s.run(y, {x: [0.0, 0.0]}),
            "name": s.run(y, {"x:0": [0.0, 0.0]}),
            "variable": s.run(y, {x: [0.0, 0.0], v: [5.0, 5.0]}),
            "inner": s.run(y, {h: [7.0, 8.0]}),
            "kept": s.run(v),
            "keyword": s.run(y, feed_dict={x: np.zeros(2)}),
        }


def case_values_of_feeds_are_cast(tf, np):
    x, i = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    b = tf.placeholder(tf.bool)
    with tf.Session() as s:
        return {
            "ints": s.run(x * 2.0, {x: [1, 2]}),
            "double": s.run(x * 2.0, {x: np.array([1.5, 2.5])}),
            "int": s.run(i + 1, {i: np.int64(4)}),
            "bool": s.run(tf.logical_not(b), {b: True}),
            "tuple": s.run(x, {x: (1.0, 2.0)}),
        }


def case_feeds_that_do_not_fit(tf, np):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = x + 1.0
    with tf.Session() as s:
        return {
            "shape": error_of(
                lambda: s.run(y, {x: np.ones([3, 3])}), "Cannot feed", "(3, 3)", "x:0"
            ),
            "rank": error_of(lambda: s.run(y, {x: 1.0}), "Cannot feed"),
            "tensor": error_of(lambda: s.run(y, {x: tf.zeros([1, 2])}), "feed"),
            "ragged": error_of(lambda: s.run(y, {x: [[1.0], [1.0, 2.0]]})),
            "unknown key": error_of(lambda: s.run(y, {3: [[1.0, 2.0]]})),
            "None key": error_of(lambda: s.run(y, {None: 1.0})),
        }


def case_a_placeholder_that_is_not_fed(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as s:
        return {"raised": error_of(lambda: s.run(x + 1.0), "must feed", "x", "float")}


def case_a_default_that_can_be_fed(tf, np):
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    with tf.Session() as s:
        return {"default": s.run(x * 2.0), "fed": s.run(x * 2.0, {x: [5.0, 6.0]})}


def case_a_feed_that_nobody_needs(tf, np):
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.Session() as s:
        return {"x": s.run(x, {x: 1.0, y: 2.0})}


def case_lengths_that_are_not_known(tf, np):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.reduce_sum(x, 0) / tf.cast(tf.shape(x)[0], tf.float32)
    (dx,) = tf.gradients(y, x)
    with tf.Session() as s:
        return {str(n): s.run([y, dx], {x: np.ones([n, 2])}) for n in (1, 3)}


def case_a_rank_that_is_not_known(tf, np):
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(tf.square(x)) * 2.0
    (dx,) = tf.gradients(y, x)
    with tf.Session() as s:
        return {"scalar": s.run(dx, {x: 3.0}), "matrix": s.run(dx, {x: [[1.0, 2.0]]})}


def case_nodes_built_after_the_first_run(tf, np):
    x = tf.constant(2.0)
    with tf.Session() as s:
        first = s.run(x)
        return {"first": first, "second": s.run(x * 3.0)}


def case_default_sessions(tf, np):
    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.Session() as s:
        v.initializer.run()
        out = [x.eval(), v.eval(), tf.get_default_session() is s, s.graph is x.graph]
    none = tf.get_default_session()
    other = tf.Session()
    with other.as_default():
        again = x.eval()
    return {
        "inside": out,
        "none": none is None,
        "again": again,
        "without": error_of(lambda: x.eval(), "session"),
        "closed": error_of(lambda: s.run(x), "closed"),
        "open": other.run(x),
    }


def case_interactive_sessions(tf, np):
    s = tf.InteractiveSession()
    out = tf.constant([1.0, 2.0]).eval()
    s.close()
    return {"x": out}


def case_a_session_of_another_graph(tf, np):
    with tf.Graph().as_default() as graph:
        x = tf.constant(5.0)
    y = tf.constant(1.0)
    with tf.Session(graph=graph) as s:
        return {
            "x": s.run(x),
            "current": tf.get_default_graph() is graph,
            "y": error_of(lambda: s.run(y), "graph"),
        }


def case_one_value_of_a_random_op_in_a_run(tf, np):
    r = tf.random_uniform([3])
    with tf.Session() as s:
        a, b, c = s.run([r, r * 1.0, r + 0.0])
        d = s.run(r)
    return {"equal in a run": bool((a == b).all() and (a == c).all()), "new": bool((a != d).any())}


def case_random_ops_with_seeds_repeat(tf, np):
    tf.set_random_seed(5)
    a, b = tf.random_normal([4], seed=3), tf.random_normal([4])
    with tf.Session() as s:
        first = s.run([a, b]), s.run([a, b])
    with tf.Session() as s:
        second = s.run([a, b]), s.run([a, b])
    return {
        "repeats": all((x == y).all() for p, q in zip(first, second) for x, y in zip(p, q)),
        "goes on": bool((first[0][0] != first[1][0]).any()),
        "differ": bool((first[0][0] != first[0][1]).any()),
    }


def case_random_numbers_in_their_ranges(tf, np):
    with tf.Session() as s:
        u, n, t, i = s.run(
            [
                tf.random_uniform([2000], -1.0, 3.0),
                tf.random_normal([2000], 5.0, 0.5),
                tf.truncated_normal([2000], stddev=2.0),
                tf.random_uniform([2000], 0, 3, tf.int32),
            ]
        )
    return {
        "uniform": bool(u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.2),
        "normal": bool(abs(n.mean() - 5) < 0.1 and abs(n.std() - 0.5) < 0.1),
        "truncated": bool(np.abs(t).max() <= 4 and t.std() > 1.4),
        "ints": sorted(set(i.tolist())),
    }


def case_shapes_of_random_numbers_as_data(tf, np):
    x = tf.placeholder(tf.float32, [None, 2])
    r = tf.random_normal(tf.shape(x)) * 0.0 + x
    (dx,) = tf.gradients(r * r, x)
    with tf.Session() as s:
        return {"dx": s.run(dx, {x: [[1.0, 2.0], [3.0, 4.0]]})}


def case_invalid_arguments_at_run_time(tf, np):
    x, i = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    with tf.Session() as s:
        return {
            "shapes": error_of(lambda: s.run(x + tf.ones([2]), {x: [1.0, 2.0, 3.0]}), "shape"),
            "gather": error_of(lambda: s.run(tf.gather(x, i), {x: [1.0], i: 3})),
            "reshape": error_of(lambda: s.run(tf.reshape(x, [2, 2]), {x: [1.0]}), "reshape"),
        }


def case_make_callable(tf, np):
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as s:
        return {"y": s.make_callable(x * 2.0, [x])(3.0)}


def case_options_are_accepted(tf, np):
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    config.gpu_options.allow_growth = True
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.NO_TRACE)
    with tf.Session(config=config) as s, tf.device("/cpu:0"):
        return {"x": s.run(tf.constant(1.0), options=options, run_metadata=metadata)}


def case_strings(tf, np):
    s = tf.placeholder(tf.string, [])
    with tf.Session() as session:
        out = session.run(tf.identity(s), {s: "hello"})
        return {"value": out, "constant": session.run(tf.constant("abc")), "dtype": s.dtype.name}
