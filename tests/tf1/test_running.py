"""Runs: what they keep, what they draw, and that the eighth is as the first."""

import threading

import numpy as np
import pytest

import graphgrad.tf1 as tf
from graphgrad.tf1.plan import COMPILED_AT


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_run_that_fails_keeps_nothing():
    v = tf.Variable(1.0)
    bump = v.assign_add(1.0)

    def fail(_):
        raise ValueError("no")

    with tf.control_dependencies([bump]):
        after = tf.py_func(fail, [v], tf.float32)
    with tf.Session() as s:
        s.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no"):
            s.run([bump, after])
        assert s.run(v) == 1.0


def test_compiled_runs_give_what_the_first_runs_gave():
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(np.linspace(-1, 1, 6).reshape(3, 2), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w)) - 0.5))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    data = np.sin(np.arange(12.0)).reshape(4, 3)

    def losses(session):
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], {x: data})[0] for _ in range(COMPILED_AT + 3)]

    with tf.Session() as s:
        first, again = losses(s), losses(s)
    np.testing.assert_allclose(first, again, rtol=1e-5)
    assert first[-1] < first[0]


def test_lengths_of_each_run_are_its_own():
    x, n = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [])
    y = tf.reshape(x, [tf.shape(x)[1], -1]) + tf.zeros([n, 1])
    with tf.Session() as s:
        for a, b in ((2, 3), (4, 1), (2, 3), (3, 3)):
            assert s.run(y, {x: np.ones([a, b]), n: b}).shape == (b, a)


def test_draws_are_one_within_a_run_and_others_in_the_next():
    x = tf.random_normal([3])
    y = x * 1.0
    with tf.Session() as s, tf.Session() as t:
        a, b = s.run([x, y])
        np.testing.assert_array_equal(a, b)
        assert (s.run(x) != a).all()
        assert (t.run(x) != a).all()


def test_seeds_make_sessions_repeat(graph):
    tf.set_random_seed(3)
    x = tf.random_uniform([2]) + tf.random_uniform([2], seed=5)
    with tf.Session() as s, tf.Session() as t:
        a, b = [s.run(x) for _ in range(3)], [t.run(x) for _ in range(3)]
    np.testing.assert_array_equal(a, b)
    assert (a[0] != a[1]).all()


def test_a_branch_that_is_not_taken_does_nothing():
    seen = []
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(0.0)
    note = lambda a: (seen.append(float(a)), np.float32(a))[1]  # noqa: E731
    y = tf.cond(
        p,
        lambda: tf.py_func(note, [v.assign_add(1.0)], tf.float32),
        lambda: tf.py_func(note, [tf.constant(-1.0)], tf.float32),
    )
    with tf.Session() as s:
        s.run(v.initializer)
        assert [s.run(y, {p: q}) for q in (True, False, True)] == [1.0, -1.0, 2.0]
        assert s.run(v) == 2.0
    assert seen == [1.0, -1.0, 2.0]


def test_results_are_the_callers_own():
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as s:
        s.run(v.initializer)
        fed = np.ones(2, "float32")
        for fetch in (v, v.value(), x, tf.identity(x), v.initial_value):
            s.run(fetch, {x: fed})[:] = 9.0
        np.testing.assert_array_equal(s.run(v), [1.0, 2.0])
        np.testing.assert_array_equal(fed, [1.0, 1.0])
        np.testing.assert_array_equal(s.run(v.initial_value), [1.0, 2.0])


def test_scopes_are_a_threads_own(graph):
    names = []

    def build():
        with graph.as_default():
            names.append(tf.constant(1.0).op.name)

    with tf.name_scope("outer"):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
        names.append(tf.constant(1.0).op.name)
    assert names == ["Const", "outer/Const"]


def test_sessions_of_one_graph_have_values_of_their_own():
    v = tf.Variable(1.0)
    with tf.Session() as s, tf.Session() as t:
        s.run(v.initializer)
        s.run(v.assign(5.0))
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value Variable"):
            t.run(v)
        t.run(v.initializer)
        assert (s.run(v), t.run(v)) == (5.0, 1.0)


def test_a_loop_has_gradients_of_two_orders_and_keeps_marks(graph):
    x = tf.constant(1.5)

    def power(n):
        return tf.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, tf.constant(1.0))
        )[1]

    y = power(4)
    (dx,) = tf.gradients(y, x)
    (ddx,) = tf.gradients(dx, x)
    tf.RegisterGradient("test_running/ten")(lambda op, g: [10.0 * g, None])
    with graph.gradient_override_map({"Mul": "test_running/ten"}):
        (marked,) = tf.gradients(power(3), tf.constant(1.0))
        z = power(3)
    assert marked is None
    with tf.Session() as s:
        np.testing.assert_allclose(
            s.run([y, dx, ddx]), [1.5**4, 4 * 1.5**3, 12 * 1.5**2], rtol=1e-5
        )
        assert s.run(z) == pytest.approx(1.5**3)


def _doubled(x):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), (0, x), back_prop=False)[
        1
    ]


@pytest.mark.parametrize(
    "loop",
    [
        _doubled,
        lambda x: tf.while_loop(
            lambda a: a < 9.0, lambda a: a * x, [x], back_prop=False, maximum_iterations=2
        ),
        lambda x: tf.map_fn(lambda v: v * x, tf.constant([1.0, 2.0]), back_prop=False),
        lambda x: tf.scan(lambda a, v: a * x + v, tf.constant([1.0, 2.0]), back_prop=False),
        lambda x: tf.foldl(lambda a, v: a * x + v, tf.constant([1.0, 2.0]), back_prop=False),
        lambda x: tf.foldr(lambda a, v: a * x + v, tf.constant([1.0, 2.0]), back_prop=False),
    ],
)
def test_back_prop_false_lets_no_gradient_pass(loop):
    x = tf.constant(2.0)
    y = loop(x)
    assert tf.gradients(y, x) == [None]
    with tf.Session() as s:
        assert s.run(tf.gradients(y + x * x, x)) == [4.0 * (1 if not y.shape.ndims else 2)]


def test_an_exclusive_case_fails_where_two_hold():
    x = tf.placeholder(tf.float32, [])
    pairs = [(x > 1, lambda: x * 2), (x > 0, lambda: x * 3)]
    found, alone = tf.case(pairs, lambda: x, exclusive=True), tf.case(pairs, lambda: x)
    with tf.Session() as s:
        assert s.run([found, alone], {x: 0.5}) == [1.5, 1.5]
        assert s.run(alone, {x: 2.0}) == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
            s.run(found, {x: 2.0})


def test_a_case_without_a_default_fails_where_none_holds():
    x = tf.placeholder(tf.float32, [])
    found = tf.case([(x > 1, lambda: x * 2), (x > 0, lambda: x * 3)])
    alone = tf.case([(x > 0, lambda: x * 3)])
    with tf.Session() as s:
        assert s.run([found, alone, *tf.gradients(found, x)], {x: 0.5}) == [1.5, 1.5, 3.0]
        assert s.run(found, {x: 2.0}) == 4.0
        for each in (found, alone, *tf.gradients(found, x)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions"):
                s.run(each, {x: -1.0})


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_places_of_unique_have_the_type_asked_for(kind):
    with tf.Session() as s:
        x = tf.constant([3.0, 1.0, 3.0])
        _, places = tf.unique(x, out_idx=tf.as_dtype(kind))
        _, again, counts = tf.unique_with_counts(x, kind)
        assert [t.dtype.name for t in (places, again, counts)] == [kind] * 3
        assert [f.dtype.name for f in s.run([places, again, counts])] == [kind] * 3
        assert s.run(places).tolist() == [0, 1, 0]
        assert s.run(tf.unique_with_counts(x).count).tolist() == [2, 1]
    with pytest.raises(TypeError, match="int32 or int64"):
        tf.unique(x, out_idx=tf.float32)


def test_derived_gradients_survive_another_table(monkeypatch):
    from graphgrad.tf1 import registry

    x0 = np.array([0.5, 0.2])
    x = tf.constant(x0, tf.float32)
    tf.gradients(tf.acos(x), x)  # the type of its derivative is defined now
    table = registry.gradient_registry
    monkeypatch.setattr(table, "_registry", {
        k: v for k, v in table._registry.items() if not k.endswith(("AcosGrad", "Derivative"))
    })  # fmt: skip
    dx = tf.gradients(tf.acos(x), x)[0]
    with tf.Session() as s:
        np.testing.assert_allclose(
            s.run(tf.gradients(dx, x)[0]), -x0 / (1 - x0**2) ** 1.5, rtol=1e-5
        )


@pytest.mark.parametrize("layer", [tf.layers.conv2d, tf.layers.conv2d_transpose])
def test_a_convolution_has_a_bias_for_each_filter(layer):
    y = layer(tf.ones([1, 4, 4, 3]), 2, 3, bias_initializer=tf.constant_initializer([1.0, 2.0]))
    kernel, bias = tf.trainable_variables()
    assert kernel.shape.as_list() == ([3, 3, 3, 2] if layer is tf.layers.conv2d else [3, 3, 2, 3])
    assert (bias.name, bias.shape.as_list()) == (f"{layer.__name__}/bias:0", [2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        shifted = session.run(y, {kernel: np.zeros(kernel.shape.as_list())})
    np.testing.assert_array_equal(shifted, np.broadcast_to([1.0, 2.0], shifted.shape))


def test_a_list_of_results_is_the_callers_own():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.complex64, [None, None])
        parts = tf.unstack(tf.shape(x), 2)
        parts[0] = tf.constant(7)
        assert session.run(parts, {x: np.ones((2, 4))}) == [7, 4]
        assert parts[1].op.outputs[0] is not parts[0]
        assert session.run(tf.signal.irfft2d(x), {x: np.ones((2, 4))}).shape == (2, 6)
