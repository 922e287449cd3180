"""Variables: their values, the order of what is read and written, savers."""

import os
from tempfile import TemporaryDirectory

from tests.tf1.recorded.saying import error_of, shape_of, values


def started(tf):
    """A session in which all variables have been initialized."""
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def case_uninitialized(tf, np):
    v = tf.Variable(1.0, name="v")
    w = tf.Variable(2.0, name="w")
    with tf.Session() as session:
        before = error_of(lambda: session.run(v), "uninitialized", "v")
        unknown = sorted(n.decode() for n in session.run(tf.report_uninitialized_variables()))
        session.run(w.initializer)
        left = [n.decode() for n in session.run(tf.report_uninitialized_variables())]
        is_set = session.run([tf.is_variable_initialized(v), tf.is_variable_initialized(w)])
        return {"v": before, "unknown": unknown, "left": left, "w": session.run(w), "set": is_set}


def case_a_group_that_fails_changes_nothing_else(tf, np):
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [], name="x")
    with started(tf) as session:
        unfed = error_of(lambda: session.run(v.assign(x)), "x")
        return {"unfed": unfed, "v": session.run(v)}


def case_assign_and_what_it_returns(tf, np):
    v = tf.Variable([1.0, 2.0])
    a, b = tf.assign(v, [5.0, 6.0]), tf.assign_add(v, [1.0, 1.0])
    c, d = v.assign_sub([0.5, 0.5]), v.assign(tf.zeros([2]))
    with started(tf) as session:
        out = [session.run(t) for t in (a, v, b, v, c, v, d, v)]
    return {"values": out, "types": [t.op.type for t in (a, b, c)]}


def case_assign_and_its_variable_in_one_run(tf, np):
    v = tf.Variable(1.0)
    with started(tf) as session:
        return {"both": session.run([tf.assign(v, 5.0), v]), "after": session.run(v)}


def case_a_read_after_a_write(tf, np):
    v = tf.Variable(1.0)
    before = v * 10.0
    with tf.control_dependencies([before]):
        write = tf.assign_add(v, 1.0)
    with tf.control_dependencies([write]):
        after = v.read_value() * 10.0
        identity = tf.identity(v)
    with started(tf) as session:
        first = session.run([before, after, identity])
        return {"first": first, "second": session.run([before, after, identity])}


def case_writes_in_a_chain(tf, np):
    v = tf.Variable(1.0)
    steps = []
    for k in range(3):
        with tf.control_dependencies(steps[-1:]):
            steps.append(tf.assign(v, v.read_value() * 2.0 + k).op)
    with started(tf) as session:
        session.run(steps[-1])
        return {"v": session.run(v)}


def case_order_by_the_tensor_that_assign_returns(tf, np):
    v = tf.Variable(2.0)
    new = tf.assign(v, v * v)
    with started(tf) as session:
        return {"new": [session.run(new + 1.0) for _ in range(3)]}


def case_group_no_op_tuple(tf, np):
    v = tf.Variable(0.0)
    group = tf.group(v.assign_add(1.0), name="both")
    pair = tf.tuple([tf.constant(1.0), tf.constant(2.0)], control_inputs=[group])
    with started(tf) as session:
        first = session.run(pair[0])
        nothing = session.run([group, tf.no_op()])
        return {
            "first": first,
            "none": nothing,
            "v": session.run(v),
            "types": [group.type, tf.no_op().type],
        }


def case_a_fetched_write_runs_once(tf, np):
    v = tf.Variable(0.0)
    add = v.assign_add(1.0)
    with started(tf) as session:
        session.run([add, add.op, tf.group(add), add + 1.0])
        return {"v": session.run(v)}


def case_control_dependencies_can_be_cleared(tf, np):
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        inside = tf.constant(1.0) * 2.0
        with tf.control_dependencies(None):
            outside = tf.constant(3.0) * 2.0
    with started(tf) as session:
        session.run(outside)
        first = session.run(v)
        session.run(inside)
        return {"after outside": first, "after inside": session.run(v)}


def case_control_inputs_can_be_read(tf, np):
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([a]):
        b = tf.constant(2.0, name="b")
        c = tf.identity(a, name="c")
    return {
        "b": [op.name for op in b.op.control_inputs],
        "c": [op.name for op in c.op.control_inputs],
    }


def case_averages_after_a_step(tf, np):
    v = tf.Variable(4.0)
    step = v.assign_sub(1.0).op
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([step]):
        train = average.apply([v])
    with started(tf) as session:
        out = []
        for _ in range(3):
            session.run(train)
            out.append(session.run([v, average.average(v)]))
    return {"steps": out, "name": average.average_name(v)}


def case_initial_values_from_other_variables(tf, np):
    a = tf.Variable([1.0, 2.0])
    b = tf.Variable(a.initialized_value() * 10.0)
    c = tf.Variable(lambda: tf.ones([2]))
    return values(tf, {"a": a, "b": b, "c": c})


def case_running_an_initializer_again_resets(tf, np):
    v = tf.Variable(1.0)
    with started(tf) as session:
        session.run(v.assign(7.0))
        session.run(tf.variables_initializer([v]))
        return {"v": session.run(v)}


def case_initializers_that_draw_are_drawn_once(tf, np):
    v = tf.Variable(tf.random_normal([3]))
    w = tf.get_variable("w", [3], initializer=tf.random_uniform_initializer(2.0, 3.0))
    with started(tf) as session:
        a, b = session.run(v), session.run(v)
        session.run(tf.global_variables_initializer())
        c, u = session.run([v, w])
    return {
        "kept": bool((a == b).all()),
        "drawn again": bool((a != c).any()),
        "in range": bool((u >= 2.0).all() and (u <= 3.0).all()),
    }


def case_two_sessions_have_their_own_values(tf, np):
    v = tf.Variable(1.0)
    one, two = started(tf), started(tf)
    one.run(v.assign(5.0))
    out = [one.run(v), two.run(v)]
    one.close()
    two.close()
    return {"values": out}


def case_load_and_eval(tf, np):
    v = tf.Variable([1.0, 2.0])
    with started(tf) as session:
        v.load([3.0, 4.0], session)
        return {"v": v.eval(), "read": v.read_value().eval(), "initial": v.initial_value.eval()}


def case_what_a_variable_says(tf, np):
    v = tf.Variable(np.ones([2, 3], "float32"), name="v", trainable=False)
    w = tf.get_variable("w", [2], dtype=tf.float64)
    return {
        "names": [v.name, v.op.name, v.initializer.name, v.value().name],
        "types": [v.op.type, v.initializer.type, v.value().op.type],
        "shape": [shape_of(v), v.shape.as_list()],
        "dtype": [v.dtype.base_dtype.name, w.dtype.base_dtype.name],
        "tensor": isinstance(v, tf.Tensor),
        "variable": isinstance(v, tf.Variable),
        "hash": len({v, w, v}),
        "trainable": [t.name for t in tf.trainable_variables()],
    }


def case_inputs_of_assign_are_the_variable(tf, np):
    v = tf.Variable(1.0, name="v")
    update = v.assign(2.0)
    return {"first": update.op.inputs[0].name, "same": update.op.inputs[0].name == v.name}


def case_operators_of_variables(tf, np):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 5.0])
    return values(
        tf,
        {
            "sum": v + w,
            "right": 1.0 - v,
            "power": v**2,
            "divide": v / w,
            "item": w[1],
            "negative": -v,
            "matmul": tf.matmul(v[None], w[:, None]),
            "less": v < w,
        },
    )


def case_wrong_values(tf, np):
    v = tf.Variable([1.0, 2.0])
    return {
        "shape": error_of(lambda: tf.assign(v, [1.0, 2.0, 3.0]), "shape"),
        "dtype": error_of(lambda: tf.assign(v, tf.constant([1, 2])), "type"),
    }


def case_a_write_of_another_shape(tf, np):
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    with started(tf) as session:
        session.run(tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False))
        return {"v": session.run(v)}


def case_scatter_updates(tf, np):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with started(tf) as session:
        out = [session.run(tf.scatter_add(v, [0, 0], [[1.0, 1.0], [2.0, 2.0]]))]
        out.append(session.run(tf.scatter_update(v, [2], [[0.0, 0.0]])))
        out.append(session.run(tf.scatter_sub(v, [1], [[1.0, 1.0]])))
        return {"v": out}


def case_integers_and_booleans(tf, np):
    step = tf.Variable(0, trainable=False)
    flag = tf.Variable(False, trainable=False)
    flip = flag.assign(tf.logical_not(flag))
    with started(tf) as session:
        out = [session.run([step.assign_add(1), flip]) for _ in range(3)]
    return {"steps": out}


def case_saver_keeps_and_restores(tf, np):
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.get_variable("scope/w", initializer=3.0)
    saver = tf.train.Saver()
    with TemporaryDirectory() as home, started(tf) as session:
        session.run(v.assign([5.0, 6.0]))
        path = saver.save(session, os.path.join(home, "model"), global_step=7)
        session.run(tf.global_variables_initializer())
        reset = session.run(v)
        latest = tf.train.latest_checkpoint(home)
        saver.restore(session, latest)
        return {
            "path": os.path.basename(path),
            "latest": os.path.basename(latest),
            "reset": reset,
            "restored": session.run([v, w]),
        }


def case_saver_of_some_variables_and_in_another_graph(tf, np):
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.Variable(3.0, name="w")
    with TemporaryDirectory() as home:
        with started(tf) as session:
            path = tf.train.Saver({"renamed": v}).save(session, os.path.join(home, "model"))
        with tf.Graph().as_default():
            u = tf.get_variable("renamed", [2])
            with tf.Session() as session:
                tf.train.Saver([u]).restore(session, path)
                out = session.run(u)
            x = tf.get_variable("absent", [2])
            with tf.Session() as session:
                missing = error_of(lambda: tf.train.Saver([x]).restore(session, path), "absent")
    return {"u": out, "w": w.name, "missing": missing.classes[0] if missing else None}


def case_a_saver_needs_variables(tf, np):
    return {"raised": error_of(lambda: tf.train.Saver(), "variable")}


def case_global_step(tf, np):
    step = tf.train.get_or_create_global_step()
    same = tf.train.get_global_step()
    with started(tf) as session:
        out = session.run([step, tf.assign_add(step, 1)])
    kind = step.dtype.base_dtype.name
    return {"name": step.name, "same": same is step, "dtype": kind, "last": out[1]}


def case_a_copy_of_a_network_soft_updated(tf, np):
    def network(scope):
        with tf.variable_scope(scope):
            return tf.get_variable("w", initializer=[1.0 if scope == "main" else 0.0])

    main, target = network("main"), network("target")
    mine = tf.trainable_variables("main")
    theirs = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="target")
    soft = [t.assign(0.9 * t + 0.1 * m) for m, t in zip(mine, theirs)]
    with started(tf) as session:
        for _ in range(3):
            session.run(soft)
        return {"target": session.run(target), "main": session.run(main)}
